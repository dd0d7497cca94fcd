"""The paper's figures 4, 6 and 7 from plain data, as `paper` has the others. Imports no rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.contracts.reports import Picture
from survey.figures import Column, Figure, Table, TableView
from survey.figures.charts import Axis, Line
from survey.services.results.people_and_models.unreadable_replies import UNREADABLE

from ..calibration.figure7 import CalibrationLine, calibration_chart
from .pieces import OUTCOMES, VALUE, N, Piece, ScoredPairs, as_figure, drawn, share_over_people

EXTREME_PAIRS = 10
SHOWN_PAIRS = 20
NO_NUMBER = "The paper prints no number for this figure."
FIGURE_4 = (
    Column(
        "figure",
        "text",
        "share: how often the model is wrong on the target, after an answer that it really gave right on the evidence. "
        "pair: one pair that misled people.",
    ),
    Column("llm", "text", "The language model.", heading="model"),
    Column("rise", "text", "share: of which answers, by how far the belief rose. any: all of them."),
    replace(N, heading="answers"),
    replace(VALUE, digits=None),
    Column(
        "q1",
        "text",
        "pair: the evidence question, which the model answered correctly.",
        heading="evidence, answered right",
    ),
    Column(
        "q2", "text", "pair: the target question, which it then answered wrongly.", heading="target, answered wrongly"
    ),
    Column("source1", "text", "pair: the task of the first."),
    Column("source2", "text", "pair: the task of the second."),
    UNREADABLE,
)
FIGURE_6 = (
    Column("outcome", "0 or 1", "1: after a correct answer. 0: after an incorrect one."),
    Column("figure", "text", "highest or lowest: which end of the predictions."),
    Column("place", "number", "1 is the most extreme."),
    Column("n", "number", "How many pairs were scored under this outcome."),
    Column(
        "value", "share", "The predicted probability of a change.", heading="predicted change", style="number", digits=3
    ),
    Column("q1", "text", "The evidence question.", heading="evidence"),
    Column("q2", "text", "The target question.", heading="target"),
)
FIGURE_7 = (
    Column("answerers_are", "text", "Whose answers: people or language models.", heading="answerers"),
    Column("from", "percentage points", "Lower end of the region of posterior belief, included."),
    Column("to", "percentage points", "Its upper end; only 100 is included."),
    Column("n", "number", "Stated posteriors in the region with an answerer that bears on them.", heading="beliefs"),
    replace(VALUE, heading="accuracy"),
    Column("mean_belief", "percentage points", "The mean of these posteriors.", digits=1),
    Column("respondents", "number", "Who stated them."),
    Column("questions", "number", "The target questions."),
    Column("answerers", "number", "Who answered.", heading="who answered"),
    UNREADABLE,
)


# Figure 4


@dataclass(frozen=True, eq=False)
class SeenRight:
    """Rows where a model was right on the evidence: how far the belief rose, how often the model is wrong on the target
    (a fraction), the weight, and whose answer it is; (n,) each."""

    llm: str
    rise: NDArray[np.float64]
    wrong: NDArray[np.float64]
    weight: NDArray[np.float64]
    respondent: NDArray[np.int64]


@dataclass(frozen=True)
class MisleadingPair:
    """A pair on which the model was right on the evidence and wrong on the target: questions and tasks, by how much the
    belief rose, in points or as a probability, and from how many answers."""

    llm: str
    texts: tuple[str, str]
    tasks: tuple[str, str]
    n: int
    rise: Figure


@dataclass(frozen=True)
class Rises:
    """From which rise on answers count, with its words; the first is a number below all, for any. `unit` names them
    on the axis."""

    least: Sequence[tuple[float, str]]
    unit: str


def figure_4(
    models: Sequence[SeenRight],
    pairs: Sequence[MisleadingPair],
    rises: Rises,
    note: str,
    unreadable: Mapping[str, int] | None = None,
) -> Piece:
    """How often a model that was right on the evidence is wrong on the target, by how far that raised beliefs; and the
    pairs that misled people, in the given order. `unreadable`: how many of each model's replies could not be read; None
    where its answers are a file's.

    Raises:
        ValueError: no model was right on any evidence.
    """
    rows: list[list[Any]] = []
    known = unreadable or {}
    lines = []
    for model in models:
        points = []
        for place, (least, words) in enumerate(rises.least):
            inside = (model.rise >= least) & (model.weight > 0)
            if not inside.any():
                continue
            value = float(np.average(model.wrong[inside], weights=model.weight[inside]))
            ends = share_over_people(model.wrong, model.weight, model.respondent, inside)
            share = replace(as_figure(value, ends), unit="share")
            rows.append(["share", model.llm, words, int(inside.sum()), share, *[None] * 4, known.get(model.llm)])
            points.append((place, share))
        if points:
            lines.append(Line.of(model.llm, points))
    if not lines:
        raise ValueError("no language model was right on an evidence question and has answered the target too")
    rows += [
        ["pair", pair.llm, None, pair.n, pair.rise, *pair.texts, *pair.tasks, known.get(pair.llm)] for pair in pairs
    ]
    title = "How often a model fails after an answer that raised belief"
    last = max(place for line in lines for place, _share in line.points)  # Nothing was so high beyond it.
    ticks = [(place, words) for place, (_least, words) in enumerate(rises.least) if place <= last]
    x, y = Axis(rises.unit, ticks=ticks), Axis("targets answered wrongly", share=True, includes=(0.0,))
    views = [
        TableView({"llm": "", "rise": "", "n": "", "value": "wrong on the target"}, where={"figure": "share"}),
        TableView(
            {"llm": "", "value": "rise", "n": "", "q1": "", "q2": ""},
            where={"figure": "pair"},
            title="Figure 4: answers that misled people",
            note="The largest rises first." if pairs else "No pair misled people.",
            most=SHOWN_PAIRS,
        ),
    ]
    return Piece(
        "",
        "",
        Table("figure4", f"Figure 4: {title.lower()}", FIGURE_4, rows, f"{note} {NO_NUMBER}", views=views),
        drawn("figure4", title, x, y, lines),
    )


# Figure 6


def figure_6(pairs: Mapping[int, ScoredPairs], note: str, *, most: int = EXTREME_PAIRS) -> Piece:
    """The pairs with the highest and the lowest predictions, by outcome.

    Raises:
        ValueError: there is no prediction.
    """
    rows: list[list[Any]] = []
    lines, views = [], []
    for outcome, words in OUTCOMES.items():
        of_outcome = pairs.get(outcome)
        if of_outcome is None or not len(of_outcome.score):
            continue
        order = np.argsort(-of_outcome.score, kind="stable")
        for which, places in (("highest", order), ("lowest", order[::-1])):
            chosen = places[:most].tolist()
            points = list(enumerate(of_outcome.score[chosen].tolist(), start=1))
            rows += [
                [outcome, which, number, len(order), score, *of_outcome.texts(place)]
                for (number, score), place in zip(points, chosen, strict=True)
            ]
            lines.append(Line(f"{which}, {words}", points))
            views.append(
                TableView(
                    ["place", "value", "q1", "q2"],
                    where={"outcome": outcome, "figure": which},
                    title=f"Figure 6: the {which} predictions {words}",
                )
            )
    if not rows:
        raise ValueError("no pair has a prediction")
    if len({row[4] for row in rows}) == 1:
        note += " The predictor gives every pair the same number, so that which pairs stand here means nothing."
    title = "The highest and lowest predictions"
    x = Axis("place", ticks=[(place, str(place)) for place in range(1, max(row[2] for row in rows) + 1)])
    y = Axis("predicted probability of a change", includes=(0.0,))
    return Piece(
        "",
        "",
        Table("figure6", f"Figure 6: {title.lower()}", FIGURE_6, rows, f"{note} {NO_NUMBER}", views=views),
        drawn("figure6", title, x, y, lines),
    )


# Figure 7


def figure_7(lines: Sequence[CalibrationLine], note: str, unreadable: Mapping[str, int]) -> Piece:
    """How often answerers are right, by what was expected of them, with Student's intervals.
    `unreadable`: how many of the language models' replies could not be read, by the line's name."""
    rows: list[list[Any]] = []
    for line in lines:
        for region in line.regions:
            belief = region.mean_belief if np.isfinite(region.mean_belief) else None
            rows.append(
                [
                    *(
                        line.name,
                        region.lower,
                        region.upper,
                        region.beliefs,
                        as_figure(region.accuracy, region.interval),
                        belief,
                    ),
                    *(region.respondents, region.questions, region.answerers, unreadable.get(line.name)),
                ]
            )
    title = "Do people foresee who answers correctly?"
    words = "The accuracy of the answerers in three regions of what people expected of them, with standard errors."
    return Piece(
        "",
        "",
        Table("figure7", f"Figure 7: {title[0].lower()}{title[1:]}", FIGURE_7, rows, f"{note} {NO_NUMBER}"),
        Picture.of("figure7", title, words, calibration_chart(lines)),
    )
