"""The figures of a study while it runs, from plain arrays: beliefs, changes, how well the predictor does. Imports no
rows. Beliefs are percentage points; shares, predictions and intervals are fractions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors import evaluation
from predictors.errors import PredictorError
from survey.contracts.reports import Picture
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, Line, LineChart
from survey.figures.words import number, percent, short

from ..paper.pieces import OUTCOMES, share_over_people

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BELIEF_EDGES = np.arange(0, 101, 10, dtype=np.float64)
CHANGE_EDGES = np.arange(-105, 106, 10, dtype=np.float64)  # So that no change stands in the middle of a bin.
SAMPLES = 1000
AS_THEY_CAME = "The answers as they came, each once, of drawn and held-out items."
CHANGED_SHARE = Axis("beliefs that changed", share=True, includes=(0.0,))
HISTOGRAMS = (
    Column("figure", "text", "prior, posterior or change."),
    Column(
        "outcome",
        "text",
        "How the evidence was answered: after a correct answer, or after an incorrect one.",
        heading="evidence",
    ),
    Column("from", "percentage points", "Lower end of the bin, included."),
    Column("to", "percentage points", "Its upper end; only the last bin includes it."),
    Column("n", "number", "How many answers fall in it.", heading="answers"),
    Column("share", "share", "Of all answers under this outcome."),
)
CHANGED = (
    Column("stage", "number", "The stage."),
    Column("stratum", "text", "The stratum from which the items were drawn; all: all drawn items of the stage."),
    Column("n", "number", "How many answers.", heading="answers"),
    Column("respondents", "number", "Of how many people.", heading="people"),
    FigureColumn(
        "share",
        "share",
        "Of these, how many changed the belief by more than the threshold.",
        heading="changed",
        prefix="",
        low="Lower end of the 95 % interval over people.",
    ),
)
AREAS = (
    Column("stage", "number", "The stage whose answers judge the predictor that planned it."),
    Column("examples", "number", "How many answers the predictor had learnt from.", heading="learnt from"),
    Column("part", "text", "Which answers.", heading="answers"),
    FigureColumn(
        "auc",
        "number",
        "The area under the curve, by the design's weights.",
        heading="AUC",
        digits=3,
        prefix="",
    ),
)
LIFTS = (
    Column("stage", "number", "The stage."),
    Column("n", "number", "Answers to drawn items.", heading="answers"),
    Column("drawn", "share", "Of these, how many changed."),
    Column("uniform", "share", "The same by the design's weights: what a uniform draw would have found."),
    FigureColumn(
        "lift",
        "number",
        "The first divided by the second.",
        prefix="",
        low="Lower end of the 95 % interval, people resampled.",
    ),
)
RELIABILITY = (
    Column("bin", "number", "1 has the lowest predictions."),
    Column("n", "number", "How many answers.", heading="answers"),
    Column("predicted", "share", "The mean prediction."),
    FigureColumn(
        "observed",
        "share",
        "How many of these beliefs changed.",
        heading="changed",
        prefix="",
        low="Lower end of the 95 % interval of the latter.",
    ),
)
RANKS = (
    Column("point", "number", "1 has the lowest predictions."),
    Column("n", "number", "How many answers.", heading="answers"),
    Column("rank", "share", "The share of answers that are predicted lower, at the middle of the point."),
    FigureColumn(
        "observed",
        "share",
        "How many of these beliefs changed.",
        heading="changed",
        prefix="",
        low="Lower end of the 95 % interval.",
    ),
)


@dataclass(frozen=True, eq=False)
class LiveAnswers:
    """n answers that count. `outcome` is 1 or 0, `stratum` a name, `drawn` whether the slot was sampled and not held
    out, `weight` how many items of all its item stands for, `score` what the stage's predictor gave (NaN: nothing);
    all (n,)."""

    stage: Ints
    stratum: NDArray[np.str_]
    drawn: NDArray[np.bool_]
    respondent: Ints
    outcome: Ints
    prior: Floats
    posterior: Floats
    weight: Floats
    score: Floats
    threshold: int

    def __len__(self) -> int:
        return len(self.stage)

    @property
    def change(self) -> Floats:
        return self.posterior - self.prior

    @property
    def changed(self) -> Floats:
        """1.0 where the belief changed by more than the threshold."""
        return (np.abs(self.change) > self.threshold).astype(np.float64)


@dataclass(frozen=True)
class AreaOfStage:
    """An area under the curve: of which predictor, on which answers."""

    stage: int
    examples: int
    part: str
    auc: Figure


@dataclass(frozen=True)
class LiveFigure:
    """A table, and its picture if there is something to draw."""

    table: Table
    pictures: tuple[Picture, ...]


def histograms(answers: LiveAnswers) -> LiveFigure:
    """Priors, posteriors and changes, by the outcome of the evidence."""
    rows: list[list[Any]] = []
    pictures = []
    for name, values, edges in (
        ("prior", answers.prior, BELIEF_EDGES),
        ("posterior", answers.posterior, BELIEF_EDGES),
        ("change", answers.change, CHANGE_EDGES),
    ):
        lines, means = [], []
        for outcome, words in OUTCOMES.items():
            inside = values[answers.outcome == outcome]
            if not len(inside):
                continue
            counts = np.histogram(inside, bins=edges)[0]
            shares = counts / len(inside)
            rows += [
                [name, words, low, high, n, share]
                for low, high, n, share in zip(
                    edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), shares.tolist(), strict=True
                )
            ]
            named = f"shown later: {words.removeprefix('after ')}" if name == "prior" else words
            lines.append(Line.steps(f"{named} (n = {len(inside)})", edges.tolist(), shares.tolist()))
            means.append(f"{words} the mean is {number(inside.mean(), 1)} and the median {short(np.median(inside))}")
        if lines:
            marks = range(-100, 101, 50) if name == "change" else range(0, 101, 20)
            x = Axis(f"{name}, percentage points", ticks=[(mark, str(mark)) for mark in marks])
            y = Axis("answers", share=True, includes=(0.0,))
            pictures.append(_picture(name, TITLES[name], x, y, lines, "; ".join(means)))
    note = f"{AS_THEY_CAME} Bins of 10 points; those without an answer are left out here."
    views = [_histogram_view(name, rows) for name in dict.fromkeys(str(row[0]) for row in rows)]
    table = Table("histograms", "Beliefs and their changes", HISTOGRAMS, rows, note, views=views)
    return LiveFigure(table, tuple(pictures))


def _histogram_view(name: str, rows: Sequence[Sequence[Any]]) -> TableView:
    """The outcomes next to each other, in the bins that have an answer; the picture and the file have all."""
    own = [place for place, row in enumerate(rows) if row[0] == name]
    filled = {rows[place][2] for place in own if rows[place][4]}
    counts: dict[str, int] = {}
    for place in own:
        counts[rows[place][1]] = counts.get(rows[place][1], 0) + rows[place][4]
    return TableView(
        ["from", "to"],
        title=TITLES[name],
        rows=[place for place in own if rows[place][2] in filled],
        across="outcome",
        cells="share",
        headings={outcome: f"{outcome} (n = {n})" for outcome, n in counts.items()},
    )


TITLES = {
    "prior": "Beliefs before the evidence",
    "posterior": "Beliefs after the evidence",
    "change": "Changes of belief",
}


def changed_by_stage(answers: LiveAnswers) -> LiveFigure:
    """The share of drawn items that changed a belief, by stage and stratum, with intervals over people."""
    changed, ones = answers.changed, np.ones(len(answers))
    stages = np.unique(answers.stage[answers.drawn]).tolist()
    # A uniform stage has one stratum, which is called "all" too.
    strata = ["all", *(name for name in dict.fromkeys(answers.stratum[answers.drawn].tolist()) if name != "all")]
    rows: list[list[Any]] = []
    lines = []
    for stratum in strata:
        points = []
        for stage in stages:
            inside = answers.drawn & (answers.stage == stage)
            if stratum != "all":
                inside &= answers.stratum == stratum
            if not inside.any():
                continue
            share = float(changed[inside].mean())
            figure = Figure.between(share, share_over_people(changed, ones, answers.respondent, inside))
            people = len(np.unique(answers.respondent[inside]))
            rows.append([stage, stratum, int(inside.sum()), people, figure])
            points.append((float(stage), figure))
        lines.append(Line.of(stratum, points))
    rows.sort(key=lambda row: (str(row[0]).zfill(3), strata.index(str(row[1]))))
    x = Axis("stage", ticks=[(stage, str(stage)) for stage in stages])
    words = "; ".join(f"stage {row[0]}, {row[1]}: {percent(row[4].value)}" for row in rows)
    table = Table(
        "changed_by_stage",
        "Share of beliefs that changed, by stage and stratum",
        CHANGED,
        rows,
        "Of items that were drawn, the answers as they came. Intervals are over people.",
    )
    return LiveFigure(
        table, (_picture("changed", "Share of beliefs that changed", x, CHANGED_SHARE, lines, words),) if rows else ()
    )


def areas_by_stage(areas: Sequence[AreaOfStage]) -> LiveFigure:
    """The area under the curve of the predictor that planned each stage, on that stage's answers."""
    rows = [[area.stage, area.examples, area.part, area.auc] for area in areas]
    stages = sorted({area.stage for area in areas})
    lines = [
        Line.of(part, [(float(area.stage), area.auc) for area in areas if area.part == part])
        for part in dict.fromkeys(area.part for area in areas)
    ]
    x = Axis("stage", ticks=[(stage, str(stage)) for stage in stages])
    words = "; ".join(f"stage {area.stage}, {area.part}: {number(area.auc.value, 3)}" for area in areas)
    table = Table(
        "auc_by_stage",
        "How well the predictor ranks, by stage",
        AREAS,
        rows,
        "Each predictor is judged by answers that it had not seen. Of a coin toss: 0.5.",
    )
    title = "How well the predictor ranks"
    return LiveFigure(table, (_picture("auc", title, x, Axis("AUC"), lines, words),) if rows else ())


def lift_by_stage(answers: LiveAnswers, seed: int) -> LiveFigure:
    """How many times more changes the drawn items hold than a uniform draw from the same candidates would."""
    rows: list[list[Any]] = []
    changed = answers.changed
    for stage in np.unique(answers.stage[answers.drawn]).tolist():
        inside = answers.drawn & (answers.stage == stage)
        shares = lift(changed[inside], answers.weight[inside], answers.respondent[inside], seed=seed + stage)
        if shares is not None:
            rows.append([stage, int(inside.sum()), *shares])
    x = Axis("stage", ticks=[(row[0], str(row[0])) for row in rows])
    y = Axis("times as many changes", includes=(0.0,))
    table = Table(
        "lift_by_stage",
        "Changes found, against a uniform draw",
        LIFTS,
        rows,
        "A lift of 1 is what a uniform draw finds. People are resampled for the intervals.",
    )
    words = "; ".join(f"stage {row[0]}: {number(row[4].value)}" for row in rows)
    line = Line.of("the study's design", [(row[0], row[4]) for row in rows])
    title = "Lift by stage"
    return LiveFigure(table, (_picture("lift", title, x, y, [line], words),) if rows else ())


def lift(changed: Floats, weight: Floats, respondent: Ints, *, seed: int) -> tuple[float, float, Figure] | None:
    """The share that changed, the same by weights, and their ratio with its 95 % percentile interval over people.

    All arguments are (n,). None where nothing changed by the weights, so that there is no ratio. No interval with fewer
    than two people, or where a resample holds no change.
    """
    if not (changed * weight).sum() > 0:
        return None
    people, person = np.unique(respondent, return_inverse=True)
    sums = np.stack(
        [
            np.bincount(person, weights=values, minlength=len(people))
            for values in (changed, np.ones(len(changed)), changed * weight, weight)
        ]
    )
    drawn, uniform = float(sums[0].sum() / sums[1].sum()), float(sums[2].sum() / sums[3].sum())
    without = drawn, uniform, Figure(drawn / uniform)
    if len(people) < 2:
        return without
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(len(people), np.full(len(people), 1 / len(people)), size=SAMPLES)
    totals = counts @ sums.T
    if not (totals[:, 2] > 0).all():
        return without
    ratios = (totals[:, 0] / totals[:, 1]) / (totals[:, 2] / totals[:, 3])
    return drawn, uniform, Figure.between(drawn / uniform, evaluation.percentile_interval(ratios))


def judged(answers: LiveAnswers) -> Iterator[LiveFigure]:
    """The reliability of the predictions, and the rank curve; nothing without predictions between 0 and 1."""
    inside = answers.drawn & np.isfinite(answers.score)
    if not inside.any():
        return
    columns = answers.changed[inside], answers.score[inside]
    try:
        bins = evaluation.calibration(*columns, sample_weight=answers.weight[inside])
        ranks = evaluation.rank_curve(*columns, sample_weight=answers.weight[inside])
    except PredictorError:  # What the stage was planned by is no chance of a change.
        return
    rows: list[list[Any]] = [
        [place, part["n"], part["predicted"], Figure.between(part["observed"], part["interval"])]
        for place, part in enumerate(bins["bins"], start=1)
    ]
    lines = [Line.of("answers", [(row[2], row[3]) for row in rows]), Line.diagonal("predicted as observed")]
    error = bins["expected_calibration_error"]
    note = "Drawn items of all stages with a prediction, by the design's weights, in bins of about equal weight."
    if error is not None:
        note += f" Expected calibration error: {number(error, 3)}."
    x = Axis("predicted chance of a change", share=True, includes=(0.0, 1.0))
    words = "; ".join(f"predicted {number(row[2])}, observed {number(row[3].value)}" for row in rows)
    yield LiveFigure(
        Table("reliability", "Reliability of the predictor", RELIABILITY, rows, note),
        (_picture("reliability", "Predicted and observed changes", x, CHANGED_SHARE, lines, words),),
    )
    rows = [
        [place, part["n"], part["rank"], Figure.between(part["observed"], part["interval"])]
        for place, part in enumerate(ranks, start=1)
    ]
    line = Line.of("answers", [(row[2], row[3]) for row in rows])
    x = Axis("rank of the prediction", includes=(0.0, 1.0))
    words = "; ".join(f"rank {number(part['rank'])}: {percent(part['observed'], 0)}" for part in ranks)
    note = "The same answers, in points of about equal weight by rising prediction."
    yield LiveFigure(
        Table("rank_curve", "Changes by the rank of the prediction", RANKS, rows, note),
        (_picture("rank_curve", "Rank curve", x, CHANGED_SHARE, [line], words),),
    )


def _picture(name: str, title: str, x: Axis, y: Axis, lines: Sequence[Line], words: str) -> Picture:
    text = f"{title}. {words[:1].upper()}{words[1:]}."
    return Picture.of(name, title, text, LineChart(title=title, x=x, y=y, lines=lines))
