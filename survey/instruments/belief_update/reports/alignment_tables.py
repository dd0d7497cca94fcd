"""Tables and figure of language models on trial, of a study or from files. Imports only contracts, columns and
charts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.contracts.reports import Layout, Picture, Table
from survey.contracts.tables import Column
from survey.figures.charts import Axis, Line, LineChart
from survey.services.results.unreadable_replies import UNREADABLE

from .alignment import AlignmentComparison, ModelDifference, ModelScore, alpha_of, threshold_of

NOTHING = "–"
# 50 % to 99.9 %, evenly spaced in log odds, since the thresholds of interest lie close to 1.
THRESHOLDS: NDArray[np.float64] = 1 / (1 + np.exp(-np.linspace(0.0, np.log(999.0), 60)))
MARKS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999)
MEASURES: Mapping[str, str] = {
    "accuracy": "Weighted generalized accuracy (higher is better)",
    "cross_entropy": "Weighted binary cross-entropy (lower is better)",
}
ALPHA = Column("alpha", "number", "What a wrong deployment weighs against a missed one.")
SCORES = (
    Column("llm", "text", "The language model."),
    ALPHA,
    Column("threshold", "share", "The deployment threshold that alpha stands for: alpha / (1 + alpha)."),
    Column("accuracy", "share", "Weighted generalized accuracy."),
    Column("cross_entropy", "nats", "Weighted binary cross-entropy."),
    Column("accuracy_low", "share", "Lower end of the accuracy's 95 % interval."),
    Column("accuracy_high", "share", "Its upper end."),
    Column("cross_entropy_low", "nats", "Lower end of the cross-entropy's 95 % interval."),
    Column("cross_entropy_high", "nats", "Its upper end."),
    Column("pairs", "number", "The pairs that the model is scored on."),
    UNREADABLE,
)
DIFFERENCES = (
    Column("first", "text", "The first language model; differences are its figures less the second's."),
    Column("second", "text", "The second language model."),
    Column("pairs", "number", "The pairs that both have."),
    ALPHA,
    *(
        Column(f"{measure}_{part}", kind, meaning)
        for measure in MEASURES
        for part, kind, meaning in (
            ("difference", "number", "The difference."),
            ("low", "number", "Lower end of its 95 % interval."),
            ("high", "number", "Its upper end."),
            ("p", "share", "Two-sided p of no difference, by the resamples."),
        )
    ),
)


def scores_table(
    scores: Sequence[ModelScore], *, pairs: int, unreadable: Mapping[str, int] | None = None, note: str = ""
) -> Table:
    """`pairs`: how many pairs were used. `unreadable`: how many of each model's replies could not be read; None where
    its answers are a file's."""
    alphas = list(scores[0].alphas)
    header = ["model", "pairs", *(f"{alpha:g} ({100 * threshold_of(alpha)[0]:.1f} %)" for alpha in alphas)]
    return Table(
        "alignment",
        "Scores",
        SCORES,
        [
            [*_score_row(score, place), (unreadable or {}).get(score.name)]
            for score in scores
            for place in range(len(alphas))
        ],
        note=note,
        layouts=[
            Layout(
                header,
                [
                    [
                        score.name,
                        str(score.pairs),
                        *map(with_interval, getattr(score, name), getattr(score, f"{name}_interval")),
                    ]
                    for score in scores
                ],
                title=f"{title}, by alpha (deployment threshold alpha / (1 + alpha)); {pairs} pairs",
            )
            for name, title in MEASURES.items()
        ],
    )


def _score_row(score: ModelScore, place: int) -> list[Any]:
    return [
        score.name,
        _alpha(score.alphas[place]),
        float(score.thresholds[place]),
        float(score.accuracy[place]),
        float(score.cross_entropy[place]),
        *map(float, score.accuracy_interval[place]),
        *map(float, score.cross_entropy_interval[place]),
        score.pairs,
    ]


def differences_table(differences: Sequence[ModelDifference], alphas: Sequence[float]) -> Table:
    """`alphas` are the weights of the differences; there may be no differences."""
    header = ["first", "second", "pairs", *(f"{alpha:g}" for alpha in alphas)]
    return Table(
        "differences",
        "Differences between two models",
        DIFFERENCES,
        [_difference_row(found, place) for found in differences for place in range(len(found.alphas))],
        layouts=[
            Layout(
                header,
                [
                    [
                        found.first,
                        found.second,
                        str(found.pairs),
                        *map(with_interval, getattr(found, name), getattr(found, f"{name}_interval")),
                    ]
                    for found in differences
                ],
                title=f"{title.partition(' (')[0]}: the first model's less the second's, by alpha",
            )
            for name, title in MEASURES.items()
        ]
        if differences
        else [Layout(header, [], note="There is one model: nothing to compare it with.")],
    )


def _difference_row(found: ModelDifference, place: int) -> list[Any]:
    values = [
        float(value)
        for measure in MEASURES
        for value in (
            getattr(found, measure)[place],
            *getattr(found, f"{measure}_interval")[place],
            getattr(found, f"{measure}_p")[place],
        )
    ]
    return [found.first, found.second, found.pairs, _alpha(found.alphas[place]), *values]


def accuracy_picture(comparison: AlignmentComparison) -> Picture:
    return Picture.of(
        "alignment",
        "Accuracy by deployment threshold",
        "Each model's weighted generalized accuracy for deployment thresholds from 50 % to 99.9 %, with its 95 % band.",
        _accuracy_curves(comparison),
    )


def _accuracy_curves(comparison: AlignmentComparison) -> LineChart:
    alphas = alpha_of(THRESHOLDS)
    places = np.log(THRESHOLDS / (1 - THRESHOLDS)).tolist()
    lines = []
    for name in comparison.trials:
        score = comparison.score(name, alphas)
        points = list(zip(places, score.accuracy.tolist(), strict=True))
        lines.append(Line(name, points, [(low, high) for low, high in score.accuracy_interval.tolist()], marked=False))
    return LineChart(
        title=f"Alignment with what people expect ({100 * comparison.level:g} % bands over {comparison.resampled})",
        x=Axis(
            "deployment threshold, alpha / (1 + alpha)",
            ticks=[(float(np.log(mark / (1 - mark))), f"{100 * mark:g} %") for mark in MARKS],
        ),
        y=Axis("weighted generalized accuracy"),
        lines=lines,
    )


WIDTH_OF_NOTHING = 1e-9


def with_interval(value: float, interval: Sequence[float]) -> str:
    """The value with its interval; without one where every resample gave the same, which says nothing of chance."""
    low, high = (float(end) for end in interval)
    return f"{rounded(value)} [{rounded(low)}, {rounded(high)}]" if high - low > WIDTH_OF_NOTHING else rounded(value)


def rounded(value: float) -> str:
    return f"{value:z.3f}" if np.isfinite(value) else NOTHING


def _alpha(value: float) -> int | float:
    """As people write it: 19, and not 19.0."""
    return int(value) if value == int(value) else float(value)
