"""Every training of a study's predictors and how it did on later answers, as lines of one table."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from predictors.evaluation import METRIC_TITLES, METRICS
from predictors.evaluation import PARTS_BY_OUTCOME as PARTS
from survey.contracts.tables import Column
from survey.models import Evaluation, PredictorRun, Study

SAMPLED, HOLDOUT = "sampled", "holdout"
LEVELS = "levels"  # In `Evaluation.metrics`: the same under each FACTOR=LEVEL.
# What `Evaluation.metrics` calls it -> whose answers, how they count.
WEIGHTINGS = {
    "weighted": (SAMPLED, "design"),
    "naive": (SAMPLED, "none"),
    "holdout": (HOLDOUT, "design"),
}


@dataclass(frozen=True)
class MetricValue:
    """A metric or a difference with its 95 % interval; None where it is not defined."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


Figures = Mapping[str, Mapping[str, MetricValue]]  # by metric, then by part
NONE_YET: Figures = {metric: dict.fromkeys(PARTS, MetricValue()) for metric in METRICS}


@dataclass(frozen=True)
class Line:
    """A predictor run, judged on a stage's answers counted one way; one line of dashes where it was not judged yet.

    `difference` is the run's figures less those of the main predictor, on the same answers.
    """

    run: PredictorRun
    trained_after: int
    evaluated_on: int | None = None
    answers: str = ""
    weighting: str = ""
    n: int | None = None
    figures: Figures = field(default_factory=lambda: NONE_YET)
    difference: Figures = field(default_factory=lambda: NONE_YET)

    @property
    def predictor(self) -> str:
        """Its name, with the parameters that were set: two may have one name."""
        params = ", ".join(f"{name} {value}" for name, value in self.run.params.items())
        return f"{self.run.name} ({params})" if params and not self.is_main else self.run.name

    @property
    def is_main(self) -> bool:
        return self.run.role == PredictorRun.Role.MAIN


def figures_of(metrics: Mapping[str, Any]) -> Figures:
    """The metrics of `predictors.evaluation` with their intervals."""
    intervals = metrics.get("intervals") or {}
    return {
        metric: {
            part: _figure((metrics.get(metric) or {}).get(part), (intervals.get(metric) or {}).get(part))
            for part in PARTS
        }
        for metric in METRICS
    }


def _differences_of(compared: Mapping[str, Any]) -> Figures:
    cells = {metric: compared.get(metric) or {} for metric in METRICS}
    return {
        metric: {
            part: _figure((cell.get(part) or {}).get("difference"), (cell.get(part) or {}).get("interval"))
            for part in PARTS
        }
        for metric, cell in cells.items()
    }


def _figure(value: float | None, interval: Sequence[float] | None) -> MetricValue:
    low, high = interval or (None, None)
    return MetricValue(value, low, high)


def _overall(metric: str) -> Callable[[Line], float | None]:
    return lambda line: line.figures[metric]["overall"].value


# What a line is sorted by, and whether the highest comes first.
SORTS: dict[str, tuple[Callable[[Line], Any], bool]] = {
    "evaluated": (lambda line: line.evaluated_on, False),
    "trained": (lambda line: line.trained_after, False),
    "predictor": (lambda line: line.predictor, False),
    "n": (lambda line: line.n, True),
    "auc": (_overall("auc"), True),
    "nll": (_overall("nll"), False),
}


def leaderboard(study: Study, *, sort: str = "evaluated", reverse: bool = False, level: str = "") -> list[Line]:
    """All lines of a study. Those of one value stand in the order of stages and answers, the main predictor first;
    what has no value comes last.

    Args:
        sort: one of `SORTS`.
        reverse: against the sort's own direction.
        level: FACTOR=LEVEL, to be judged by the answers under this level alone.
    """
    runs = PredictorRun.objects.filter(stage__study=study).select_related("stage").order_by("stage__index", "pk")
    judged: dict[int, list[Evaluation]] = {}
    for found in Evaluation.objects.filter(stage__study=study).select_related("stage").order_by("stage__index"):
        judged.setdefault(found.predictor_run_id, []).append(found)
    lines: list[Line] = []
    for run in runs:
        lines += [line for found in judged.get(run.pk, []) for line in _lines(run, found, level)] or [
            Line(run=run, trained_after=run.stage.index)
        ]
    order = {name: place for place, name in enumerate(WEIGHTINGS.values())}
    lines.sort(
        key=lambda line: (
            line.evaluated_on is None,
            line.evaluated_on or 0,
            order.get((line.answers, line.weighting), 0),
            not line.is_main,
        )
    )
    value, falls = SORTS[sort]
    with_value = [line for line in lines if value(line) is not None]
    without = [line for line in lines if value(line) is None]
    return sorted(with_value, key=value, reverse=falls != reverse) + without


def _lines(run: PredictorRun, found: Evaluation, level: str) -> list[Line]:
    metrics = (found.metrics.get(LEVELS) or {}).get(level, {}) if level else found.metrics
    differences = metrics.get("difference") or {}
    return [
        Line(
            run=run,
            trained_after=run.stage.index,
            evaluated_on=found.stage.index,
            answers=answers,
            weighting=weighting,
            n=metrics[name].get("n"),
            figures=figures_of(metrics[name]),
            difference=_differences_of(differences.get(name) or {}),
        )
        for name, (answers, weighting) in WEIGHTINGS.items()
        if name in metrics
    ]


# As a file

PART_TITLES = {
    "overall": "over all answers",
    "previous_correct": "after a correct answer",
    "previous_incorrect": "after an incorrect one",
}
FILE = "leaderboard.csv"


def _figure_columns(name: str, description: str) -> list[Column]:
    return [
        Column(name, "number", f"{description}."),
        Column(f"{name}_low", "number", f"Lower end of the 95 % interval of {name}, by resampling respondents."),
        Column(f"{name}_high", "number", "Its upper end."),
    ]


COLUMNS: tuple[Column, ...] = (
    Column("predictor", "text", "Name of the predictor."),
    Column("role", "text", "main: plans the next stage. compared: named in the study file. baseline: always trained."),
    Column("params", "JSON object", "Its parameters, where they differ from the defaults."),
    Column("trained_after", "number", "The last stage whose answers it was trained on."),
    Column("training_answers", "number", "How many answers it was trained on."),
    Column("evaluated_on", "number", "The stage whose answers judge it; empty where none do yet."),
    Column("answers", "text", "sampled, or holdout: the uniform one, without pairs that trained."),
    Column("weighting", "text", "design: by 1 / (inclusion_probability * pool_probability). none: each counts once."),
    Column("n", "number", "How many answers judge it."),
    *(
        column
        for metric in METRICS
        for part in PARTS
        for column in _figure_columns(f"{metric}_{part}", f"{METRIC_TITLES[metric]} {PART_TITLES[part]}")
    ),
    *(
        column
        for metric in METRICS
        for column in _figure_columns(
            f"{metric}_difference", f"Its {metric} less that of the main predictor, over all of the same answers"
        )
    ),
)


def file_rows(study: Study) -> Iterator[list[Any]]:
    """The lines as rows of `COLUMNS`."""
    for line in leaderboard(study):
        figures = [line.figures[metric][part] for metric in METRICS for part in PARTS]
        figures += [line.difference[metric]["overall"] for metric in METRICS]
        yield [
            line.run.name,
            line.run.role,
            json.dumps(line.run.params, sort_keys=True) if line.run.params else None,
            line.trained_after,
            line.run.example_count,
            line.evaluated_on,
            line.answers or None,
            line.weighting or None,
            line.n,
            *(value for figure in figures for value in (figure.value, figure.low, figure.high)),
        ]
