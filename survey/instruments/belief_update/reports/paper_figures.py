"""The paper's figures 4, 6 and 7 from plain data, as `paper` has the others. Imports no rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.contracts.reports import Layout, Picture, Table
from survey.contracts.tables import Column
from survey.figures.charts import Axis, Line
from survey.services.results.unreadable_replies import UNREADABLE

from .figure7 import CalibrationLine, calibration_chart
from .paper import OUTCOMES, VALUE, N, PaperFigure, Piece, ScoredPairs, drawn, share_over_people

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
    Column("llm", "text", "The language model."),
    Column("rise", "text", "share: of which answers, by how far the belief rose. any: all of them."),
    N,
    *VALUE,
    Column("q1", "text", "pair: the evidence question, which the model answered correctly."),
    Column("q2", "text", "pair: the target question, which it then answered wrongly."),
    Column("source1", "text", "pair: the task of the first."),
    Column("source2", "text", "pair: the task of the second."),
    UNREADABLE,
)
FIGURE_6 = (
    Column("outcome", "0 or 1", "1: after a correct answer. 0: after an incorrect one."),
    Column("figure", "text", "highest or lowest: which end of the predictions."),
    Column("place", "number", "1 is the most extreme."),
    Column("n", "number", "How many pairs were scored under this outcome."),
    Column("value", "share", "The predicted probability of a change."),
    Column("q1", "text", "The evidence question."),
    Column("q2", "text", "The target question."),
)
FIGURE_7 = (
    Column("answerers_are", "text", "Whose answers: people or language models."),
    Column("from", "percentage points", "Lower end of the region of posterior belief, included."),
    Column("to", "percentage points", "Its upper end; only 100 is included."),
    Column("n", "number", "Stated posteriors in the region with an answerer that bears on them."),
    *VALUE,
    Column("mean_belief", "percentage points", "The mean of these posteriors."),
    Column("respondents", "number", "Who stated them."),
    Column("questions", "number", "The target questions."),
    Column("answerers", "number", "Who answered."),
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
    belief rose and from how many answers."""

    llm: str
    texts: tuple[str, str]
    tasks: tuple[str, str]
    n: int
    rise: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Rises:
    """From which rise on answers count, with its words; the first is a number below all, for any. `unit` names them
    on the axis, `pair` is how a pair's rise is written."""

    least: Sequence[tuple[float, str]]
    unit: str
    pair: Callable[[MisleadingPair], str]


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
    plain: list[list[Any]] = []
    known = unreadable or {}
    shown, lines = [], []
    for one in models:
        points = []
        for place, (least, words) in enumerate(rises.least):
            inside = (one.rise >= least) & (one.weight > 0)
            if not inside.any():
                continue
            value = float(np.average(one.wrong[inside], weights=one.weight[inside]))
            ends = share_over_people(one.wrong, one.weight, one.respondent, inside)
            figure = PaperFigure(int(inside.sum()), value, *ends)
            plain.append(["share", one.llm, words, *figure.cells[:-1], *[None] * 4, known.get(one.llm)])
            shown.append([one.llm, words, str(figure.n), str(figure)])
            points.append((place, value, ends))
        if points:
            lines.append(Line(one.llm, [(x, y) for x, y, _ in points], [(low, high) for _, _, (low, high) in points]))
    if not lines:
        raise ValueError("no language model was right on an evidence question and has answered the target too")
    plain += [
        ["pair", one.llm, None, one.n, one.rise, one.low, one.high, *one.texts, *one.tasks, known.get(one.llm)]
        for one in pairs
    ]
    listed = [[one.llm, rises.pair(one), str(one.n), *one.texts] for one in pairs[:SHOWN_PAIRS]]
    rest = f" figure4.csv has all {len(pairs)}." if len(pairs) > SHOWN_PAIRS else ""
    title = "How often a model fails after an answer that raised belief"
    last = max(place for line in lines for place, _share in line.points)  # Nothing was so high beyond it.
    ticks = [(place, words) for place, (_least, words) in enumerate(rises.least) if place <= last]
    x, y = Axis(rises.unit, ticks=ticks), Axis("targets answered wrongly", share=True, includes=(0.0,))
    layouts = [
        Layout(["model", "rise", "answers", "wrong on the target"], shown),
        Layout(
            ["model", "rise", "answers", "evidence, answered right", "target, answered wrongly"],
            listed,
            title="Figure 4: answers that misled people",
            note=("The largest rises first." + rest) if pairs else "No pair misled people.",
        ),
    ]
    return Piece(
        "",
        "",
        Table("figure4", f"Figure 4: {title.lower()}", FIGURE_4, plain, f"{note} {NO_NUMBER}", layouts),
        drawn("figure4", title, x, y, lines),
    )


# Figure 6


def figure_6(pairs: Mapping[int, ScoredPairs], note: str, *, most: int = EXTREME_PAIRS) -> Piece:
    """The pairs with the highest and the lowest predictions, by outcome.

    Raises:
        ValueError: there is no prediction.
    """
    plain: list[list[Any]] = []
    lines, layouts = [], []
    for outcome, words in OUTCOMES.items():
        found = pairs.get(outcome)
        if found is None or not len(found.score):
            continue
        order = np.argsort(-found.score, kind="stable")
        for which, places in (("highest", order), ("lowest", order[::-1])):
            chosen = places[:most].tolist()
            scores = found.score[chosen].tolist()
            texts = [found.texts(place) for place in chosen]
            numbers = range(1, len(chosen) + 1)
            plain += [
                [outcome, which, number, len(order), score, *both]
                for number, score, both in zip(numbers, scores, texts, strict=True)
            ]
            lines.append(Line(f"{which}, {words}", list(zip(numbers, scores, strict=True))))
            layouts.append(
                Layout(
                    ["place", "predicted change", "evidence", "target"],
                    [
                        [str(number), f"{score:.3f}", *both]
                        for number, score, both in zip(numbers, scores, texts, strict=True)
                    ],
                    title=f"Figure 6: the {which} predictions {words}",
                )
            )
    if not plain:
        raise ValueError("no pair has a prediction")
    if len({row[4] for row in plain}) == 1:
        note += " The predictor gives every pair the same number, so that which pairs stand here means nothing."
    title = "The highest and lowest predictions"
    x = Axis("place", ticks=[(place, str(place)) for place in range(1, max(row[2] for row in plain) + 1)])
    y = Axis("predicted probability of a change", includes=(0.0,))
    return Piece(
        "",
        "",
        Table("figure6", f"Figure 6: {title.lower()}", FIGURE_6, plain, f"{note} {NO_NUMBER}", layouts),
        drawn("figure6", title, x, y, lines),
    )


# Figure 7


def figure_7(lines: Sequence[CalibrationLine], note: str, unreadable: Mapping[str, int]) -> Piece:
    """How often answerers are right, by what was expected of them, with Student's intervals.
    `unreadable`: how many of the language models' replies could not be read, by the line's name."""
    plain: list[list[Any]] = []
    shown = []
    for line in lines:
        for one in line.regions:
            accuracy = one.accuracy if np.isfinite(one.accuracy) else None
            figure = PaperFigure(one.beliefs, accuracy, *(one.interval or (None, None)))
            belief = one.mean_belief if np.isfinite(one.mean_belief) else None
            plain.append(
                [
                    *(line.name, one.lower, one.upper, *figure.cells[:-1], belief),
                    *(one.respondents, one.questions, one.answerers, unreadable.get(line.name)),
                ]
            )
            shown.append(
                [
                    *(line.name, f"{one.lower} to {one.upper} %", str(one.beliefs), str(figure)),
                    *("–" if belief is None else f"{belief:.1f} %", str(one.answerers)),
                ]
            )
    title = "Do people foresee who answers correctly?"
    layouts = [Layout(["answerers", "belief", "beliefs", "accuracy", "mean belief", "who answered"], shown)]
    words = "The accuracy of the answerers in three regions of what people expected of them, with standard errors."
    return Piece(
        "",
        "",
        Table("figure7", f"Figure 7: {title[0].lower()}{title[1:]}", FIGURE_7, plain, f"{note} {NO_NUMBER}", layouts),
        Picture.of("figure7", title, words, calibration_chart(lines)),
    )
