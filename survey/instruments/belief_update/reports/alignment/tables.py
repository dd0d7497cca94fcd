"""Tables and figure of language models on trial, of a study or from files. Imports only contracts, the results kit and
charts."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from survey.contracts.reports import Picture
from survey.figures import Column, Figure, FigureColumn, PartColumn, Table, TableView
from survey.figures.charts import Axis, Line, LineChart
from survey.figures.words import percent, short
from survey.services.results.people_and_models.unreadable_replies import UNREADABLE

from .scores import AlignmentComparison, ModelDifference, ModelScore, alpha_of, threshold_of

# 50 % to 99.9 %, evenly spaced in log odds, since the thresholds of interest lie close to 1.
THRESHOLDS: NDArray[np.float64] = 1 / (1 + np.exp(-np.linspace(0.0, np.log(999.0), 60)))
MARKS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999)

MEASURES: Mapping[str, str] = {
    "accuracy": "Weighted generalized accuracy (higher is better)",
    "cross_entropy": "Weighted binary cross-entropy (lower is better)",
}
ALPHA = Column("alpha", "number", "What a wrong deployment weighs against a missed one.")
SCORES = (
    Column("llm", "text", "The language model.", heading="model"),
    ALPHA,
    Column("threshold", "share", "The deployment threshold that alpha stands for: alpha / (1 + alpha)."),
    FigureColumn("accuracy", "share", "Weighted generalized accuracy.", style="number", digits=3, parts={}),
    FigureColumn("cross_entropy", "nats", "Weighted binary cross-entropy.", digits=3, parts={}),
    PartColumn("accuracy", "low", Column("accuracy_low", "share", "Lower end of the accuracy's 95 % interval.")),
    PartColumn("accuracy", "high", Column("accuracy_high", "share", "Its upper end.")),
    PartColumn(
        "cross_entropy",
        "low",
        Column("cross_entropy_low", "nats", "Lower end of the cross-entropy's 95 % interval."),
    ),
    PartColumn("cross_entropy", "high", Column("cross_entropy_high", "nats", "Its upper end.")),
    Column("pairs", "number", "The pairs that the model is scored on."),
    UNREADABLE,
)
DIFFERENCES = (
    Column("first", "text", "The first language model; differences are its figures less the second's."),
    Column("second", "text", "The second language model."),
    Column("pairs", "number", "The pairs that both have."),
    ALPHA,
    *(
        column
        for measure in MEASURES
        for column in (
            FigureColumn(f"{measure}_difference", "number", "The difference.", digits=3, prefix=f"{measure}_"),
            Column(f"{measure}_p", "share", "Two-sided p of no difference, by the resamples.", style="p"),
        )
    ),
)


def scores_table(
    scores: Sequence[ModelScore], *, pairs: int, unreadable: Mapping[str, int] | None = None, note: str = ""
) -> Table:
    """`pairs`: how many pairs were used. `unreadable`: how many of each model's replies could not be read; None where
    its answers are a file's."""
    alphas = scores[0].alphas.tolist()
    return Table(
        "alignment",
        "Scores",
        SCORES,
        [
            [
                *(score.name, _alpha(alpha), float(score.thresholds[place])),
                *(_figure(score, measure, place) for measure in MEASURES),
                *(score.pairs, (unreadable or {}).get(score.name)),
            ]
            for score in scores
            for place, alpha in enumerate(alphas)
        ],
        note=note,
        views=[
            TableView(
                ["llm", "pairs"],
                across="alpha",
                cells=measure,
                headings={alpha: f"{short(alpha)} ({percent(threshold_of(alpha)[0])})" for alpha in alphas},
                title=f"{title}, by alpha (deployment threshold alpha / (1 + alpha)); {pairs} pairs",
            )
            for measure, title in MEASURES.items()
        ],
    )


def differences_table(differences: Sequence[ModelDifference]) -> Table:
    """There may be no differences."""
    return Table(
        "differences",
        "Differences between two models",
        DIFFERENCES,
        [
            [
                *(difference.first, difference.second, difference.pairs, _alpha(alpha)),
                *(
                    cell
                    for measure in MEASURES
                    for cell in (
                        _figure(difference, measure, place),
                        float(getattr(difference, f"{measure}_p")[place]),
                    )
                ),
            ]
            for difference in differences
            for place, alpha in enumerate(difference.alphas.tolist())
        ],
        note="" if differences else "There is one model: nothing to compare it with.",
        views=[
            TableView(
                ["first", "second", "pairs"],
                across="alpha",
                cells=f"{measure}_difference",
                title=f"{title.partition(' (')[0]}: the first model's less the second's, by alpha",
            )
            for measure, title in MEASURES.items()
            if differences
        ],
    )


def _figure(scored: ModelScore | ModelDifference, measure: str, place: int) -> Figure:
    return Figure.between(getattr(scored, measure)[place], getattr(scored, f"{measure}_interval")[place])


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
    bands = f"{percent(comparison.level, 0)} bands over {comparison.resampled}"
    return LineChart(
        title=f"Alignment with what people expect ({bands})",
        x=Axis(
            "deployment threshold, alpha / (1 + alpha)",
            ticks=[(float(np.log(mark / (1 - mark))), f"{short(100 * mark)} %") for mark in MARKS],
        ),
        y=Axis("weighted generalized accuracy"),
        lines=lines,
    )


def _alpha(value: float) -> int | float:
    """As people write it: 19, and not 19.0."""
    return int(value) if value == int(value) else float(value)
