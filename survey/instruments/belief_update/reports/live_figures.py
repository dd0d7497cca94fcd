"""The figures of a study while it runs, from plain arrays: beliefs, changes, how well the predictor does. Imports no
rows. Beliefs are percentage points; shares, predictions and intervals are fractions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors import evaluation
from predictors.errors import PredictorError
from survey.contracts.reports import Layout, Picture, Table
from survey.contracts.tables import Column
from survey.services.results.line_chart import Axes, Line

from .paper import OUTCOMES, drawn, share_over_people

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BELIEF_EDGES = np.arange(0, 101, 10, dtype=np.float64)
CHANGE_EDGES = np.arange(-105, 106, 10, dtype=np.float64)  # So that no change stands in the middle of a bin.
SAMPLES = 1000
AS_THEY_CAME = "The answers as they came, each once, of drawn and held-out items."
HISTOGRAMS = (
    Column("figure", "text", "prior, posterior or change."),
    Column("outcome", "text", "How the evidence was answered: after a correct answer, or after an incorrect one."),
    Column("from", "percentage points", "Lower end of the bin, included."),
    Column("to", "percentage points", "Its upper end; only the last bin includes it."),
    Column("n", "number", "How many answers fall in it."),
    Column("share", "share", "Of all answers under this outcome."),
)
CHANGED = (
    Column("stage", "number", "The stage."),
    Column("stratum", "text", "The stratum from which the items were drawn; all: all drawn items of the stage."),
    Column("n", "number", "How many answers."),
    Column("respondents", "number", "Of how many people."),
    Column("share", "share", "Of these, how many changed the belief by more than the threshold."),
    Column("low", "share", "Lower end of the 95 % interval over people."),
    Column("high", "share", "Its upper end."),
)
AREAS = (
    Column("stage", "number", "The stage whose answers judge the predictor that planned it."),
    Column("examples", "number", "How many answers the predictor had learnt from."),
    Column("part", "text", "Which answers."),
    Column("auc", "number", "The area under the curve, by the design's weights."),
    Column("low", "number", "Lower end of its 95 % interval."),
    Column("high", "number", "Its upper end."),
)
LIFTS = (
    Column("stage", "number", "The stage."),
    Column("n", "number", "Answers to drawn items."),
    Column("drawn", "share", "Of these, how many changed."),
    Column("uniform", "share", "The same by the design's weights: what a uniform draw would have found."),
    Column("lift", "number", "The first divided by the second."),
    Column("low", "number", "Lower end of the 95 % interval, people resampled."),
    Column("high", "number", "Its upper end."),
)
RELIABILITY = (
    Column("bin", "number", "1 has the lowest predictions."),
    Column("n", "number", "How many answers."),
    Column("predicted", "share", "The mean prediction."),
    Column("observed", "share", "How many of these beliefs changed."),
    Column("low", "share", "Lower end of the 95 % interval of the latter."),
    Column("high", "share", "Its upper end."),
)
RANKS = (
    Column("point", "number", "1 has the lowest predictions."),
    Column("n", "number", "How many answers."),
    Column("rank", "share", "The share of answers that are predicted lower, at the middle of the point."),
    Column("observed", "share", "How many of these beliefs changed."),
    Column("low", "share", "Lower end of the 95 % interval."),
    Column("high", "share", "Its upper end."),
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
class Area:
    """An area under the curve with its interval; None if there is none."""

    stage: int
    examples: int
    part: str
    auc: float
    low: float | None
    high: float | None


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
            lines.append(Line(f"{words} (n = {len(inside)})", _steps(edges, shares), marked=False))
            means.append(f"{words} the mean is {float(inside.mean()):.1f} and the median {float(np.median(inside)):g}")
        if lines:
            axes = Axes(
                x=f"{name}, percentage points",
                y="share of answers",
                ticks=[
                    (float(mark), f"{mark:g}")
                    for mark in (range(-100, 101, 50) if name == "change" else range(0, 101, 20))
                ],
                from_zero=True,
            )
            pictures.append(_picture(name, TITLES[name], axes, lines, "; ".join(means)))
    note = f"{AS_THEY_CAME} Bins of 10 points."
    layouts = [
        Layout(
            ["figure", "evidence", "from", "to", "answers", "share"],
            [
                [
                    str(row[0]),
                    str(row[1]),
                    f"{row[2]:g}",
                    f"{row[3]:g}",
                    str(row[4]),
                    f"{100 * row[5]:.1f} %",
                ]
                for row in rows
            ],
        )
    ]
    return LiveFigure(
        Table("histograms", "Beliefs and their changes", HISTOGRAMS, rows, note, layouts), tuple(pictures)
    )


TITLES = {
    "prior": "Beliefs before the evidence",
    "posterior": "Beliefs after the evidence",
    "change": "Changes of belief",
}


def _steps(edges: Floats, shares: Floats) -> list[tuple[float, float]]:
    """The outline of the bars."""
    points = [(float(edges[0]), 0.0)]
    for low, high, share in zip(edges[:-1].tolist(), edges[1:].tolist(), shares.tolist(), strict=True):
        points += [(low, share), (high, share)]
    return [*points, (float(edges[-1]), 0.0)]


def changed_by_stage(answers: LiveAnswers) -> LiveFigure:
    """The share of drawn items that changed a belief, by stage and stratum, with intervals over people."""
    changed, ones = answers.changed, np.ones(len(answers))
    stages = np.unique(answers.stage[answers.drawn]).tolist()
    # A uniform stage has one stratum, which is called "all" too.
    strata = ["all", *(name for name in dict.fromkeys(answers.stratum[answers.drawn].tolist()) if name != "all")]
    rows: list[list[Any]] = []
    lines = []
    for stratum in strata:
        points, band = [], []
        for stage in stages:
            inside = answers.drawn & (answers.stage == stage)
            if stratum != "all":
                inside &= answers.stratum == stratum
            if not inside.any():
                continue
            share = float(changed[inside].mean())
            low, high = share_over_people(changed, ones, answers.respondent, inside)
            people = len(np.unique(answers.respondent[inside]))
            rows.append([stage, stratum, int(inside.sum()), people, share, _known(low), _known(high)])
            points.append((float(stage), share))
            band.append((low, high))
        lines.append(Line(stratum, points, band))
    rows.sort(key=lambda row: (str(row[0]).zfill(3), strata.index(str(row[1]))))
    layouts = [
        Layout(
            ["stage", "stratum", "answers", "people", "changed", "95 % interval"],
            [
                [
                    *(str(stage), str(stratum), str(n), str(people)),
                    *(f"{100 * share:.1f} %", _interval(low, high)),
                ]
                for stage, stratum, n, people, share, low, high in rows
            ],
        )
    ]
    axes = Axes(x="stage", y="share that changed", ticks=[(stage, str(stage)) for stage in stages], from_zero=True)
    words = "; ".join(f"stage {row[0]}, {row[1]}: {100 * row[4]:.1f} %" for row in rows)
    table = Table(
        "changed_by_stage",
        "Share of beliefs that changed, by stage and stratum",
        CHANGED,
        rows,
        "Of items that were drawn, the answers as they came. Intervals are over people.",
        layouts,
    )
    return LiveFigure(
        table, (_picture("changed", "Share of beliefs that changed", axes, lines, words),) if rows else ()
    )


def areas_by_stage(areas: Sequence[Area]) -> LiveFigure:
    """The area under the curve of the predictor that planned each stage, on that stage's answers."""
    rows: list[list[Any]] = [[one.stage, one.examples, one.part, one.auc, one.low, one.high] for one in areas]
    parts = list(dict.fromkeys(one.part for one in areas))
    stages = sorted({one.stage for one in areas})
    lines = []
    for part in parts:
        own = [one for one in areas if one.part == part]
        band = [(one.low, one.high) for one in own if one.low is not None and one.high is not None]
        lines.append(Line(part, [(float(one.stage), one.auc) for one in own], band if len(band) == len(own) else ()))
    layouts = [
        Layout(
            ["stage", "learnt from", "answers", "AUC", "95 % interval"],
            [
                [str(one.stage), str(one.examples), one.part, f"{one.auc:.3f}", _interval(one.low, one.high, 3)]
                for one in areas
            ],
        )
    ]
    axes = Axes(x="stage", y="AUC", ticks=[(stage, str(stage)) for stage in stages])
    words = "; ".join(f"stage {one.stage}, {one.part}: {one.auc:.3f}" for one in areas)
    table = Table(
        "auc_by_stage",
        "How well the predictor ranks, by stage",
        AREAS,
        rows,
        "Each predictor is judged by answers that it had not seen. Of a coin toss: 0.5.",
        layouts,
    )
    return LiveFigure(table, (_picture("auc", "How well the predictor ranks", axes, lines, words),) if rows else ())


def lift_by_stage(answers: LiveAnswers, seed: int) -> LiveFigure:
    """How many times more changes the drawn items hold than a uniform draw from the same candidates would."""
    rows: list[list[Any]] = []
    changed = answers.changed
    for stage in np.unique(answers.stage[answers.drawn]).tolist():
        inside = answers.drawn & (answers.stage == stage)
        found = lift(changed[inside], answers.weight[inside], answers.respondent[inside], seed=seed + stage)
        if found is not None:
            rows.append([stage, int(inside.sum()), *found])
    points = [(row[0], row[4]) for row in rows]
    ends = [(row[5], row[6]) for row in rows if row[5] is not None and row[6] is not None]
    axes = Axes(x="stage", y="times as many changes", ticks=[(x, f"{x:g}") for x, _y in points], from_zero=True)
    layouts = [
        Layout(
            ["stage", "answers", "drawn", "uniform", "lift", "95 % interval"],
            [
                [
                    *(
                        str(row[0]),
                        str(row[1]),
                        f"{100 * row[2]:.1f} %",
                        f"{100 * row[3]:.1f} %",
                    ),
                    *(f"{row[4]:.2f}", _interval(row[5], row[6], 2)),
                ]
                for row in rows
            ],
        )
    ]
    table = Table(
        "lift_by_stage",
        "Changes found, against a uniform draw",
        LIFTS,
        rows,
        "A lift of 1 is what a uniform draw finds. People are resampled for the intervals.",
        layouts,
    )
    words = "; ".join(f"stage {row[0]}: {row[4]:.2f}" for row in rows)
    line = Line("the study's design", points, ends if len(ends) == len(points) else ())
    title = "Lift by stage"
    return LiveFigure(table, (_picture("lift", title, axes, [line], words),) if rows else ())


def lift(
    changed: Floats, weight: Floats, respondent: Ints, *, seed: int
) -> tuple[float, float, float, float | None, float | None] | None:
    """The share that changed, the same by weights, their ratio and its 95 % percentile interval over people.

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
    drawn, uniform = sums[0].sum() / sums[1].sum(), sums[2].sum() / sums[3].sum()
    if len(people) < 2:
        return float(drawn), float(uniform), float(drawn / uniform), None, None
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(len(people), np.full(len(people), 1 / len(people)), size=SAMPLES)
    totals = counts @ sums.T
    if not (totals[:, 2] > 0).all():
        return float(drawn), float(uniform), float(drawn / uniform), None, None
    ratios = (totals[:, 0] / totals[:, 1]) / (totals[:, 2] / totals[:, 3])
    low, high = evaluation.percentile_interval(ratios) or (None, None)
    return float(drawn), float(uniform), float(drawn / uniform), low, high


def judged(answers: LiveAnswers) -> Iterator[LiveFigure]:
    """The reliability of the predictions, and the rank curve; nothing without predictions between 0 and 1."""
    inside = answers.drawn & np.isfinite(answers.score)
    if not inside.any():
        return
    given = answers.changed[inside], answers.score[inside]
    try:
        bins = evaluation.calibration(*given, sample_weight=answers.weight[inside])
        ranks = evaluation.rank_curve(*given, sample_weight=answers.weight[inside])
    except PredictorError:  # What the stage was planned by is no chance of a change.
        return
    rows: list[list[Any]] = [
        [place, one["n"], one["predicted"], one["observed"], *one["interval"]]
        for place, one in enumerate(bins["bins"], start=1)
    ]
    points = [(one["predicted"], one["observed"]) for one in bins["bins"]]
    ends = [(one["interval"][0], one["interval"][1]) for one in bins["bins"]]
    lines = [Line("answers", points, ends), Line("predicted as observed", [(0.0, 0.0), (1.0, 1.0)], marked=False)]
    quarters = [(mark, f"{mark:g}") for mark in (0.0, 0.25, 0.5, 0.75, 1.0)]
    error = bins["expected_calibration_error"]
    note = "Drawn items of all stages with a prediction, by the design's weights, in bins of about equal weight."
    if error is not None:
        note += f" Expected calibration error: {error:.3f}."
    axes = Axes(x="predicted chance of a change", y="share that changed", ticks=quarters, from_zero=True)
    words = "; ".join(f"predicted {x:.2f}, observed {y:.2f}" for x, y in points)
    yield LiveFigure(
        Table(
            "reliability", "Reliability of the predictor", RELIABILITY, rows, note, [_judged_layout(rows, "predicted")]
        ),
        (_picture("reliability", "Predicted and observed changes", axes, lines, words),),
    )
    rows = [
        [place, one["n"], one["rank"], one["observed"], *one["interval"]] for place, one in enumerate(ranks, start=1)
    ]
    line = Line(
        "answers",
        [(one["rank"], one["observed"]) for one in ranks],
        [(one["interval"][0], one["interval"][1]) for one in ranks],
    )
    axes = Axes(x="rank of the prediction", y="share that changed", ticks=quarters, from_zero=True)
    words = "; ".join(f"rank {one['rank']:.2f}: {100 * one['observed']:.0f} %" for one in ranks)
    note = "The same answers, in points of about equal weight by rising prediction."
    yield LiveFigure(
        Table("rank_curve", "Changes by the rank of the prediction", RANKS, rows, note, [_judged_layout(rows, "rank")]),
        (_picture("rank_curve", "Rank curve", axes, [line], words),),
    )


def _judged_layout(rows: Sequence[Sequence[Any]], what: str) -> Layout:
    return Layout(
        ["place", "answers", what, "changed", "95 % interval"],
        [
            [
                str(row[0]),
                str(row[1]),
                f"{row[2]:.3f}",
                f"{row[3]:.3f}",
                _interval(row[4], row[5], 3),
            ]
            for row in rows
        ],
    )


def _picture(name: str, title: str, axes: Axes, lines: Sequence[Line], words: str) -> Picture:
    found = drawn(f"live-{name}", title, axes, lines)
    return Picture(name, title, f"{title}. {words[:1].upper()}{words[1:]}.", found.draw)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _interval(low: float | None, high: float | None, digits: int = 0) -> str:
    """In words; without digits as percentages."""
    if low is None or high is None:
        return "–"
    if digits:
        return f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{100 * low:.1f} to {100 * high:.1f} %"
