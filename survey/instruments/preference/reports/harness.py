"""Results of EleutherAI's lm-evaluation-harness next to people's ranking: its results files, as it writes them."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import bandit
from survey.contracts.reports import ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table
from survey.figures.words import number

from ..analysis.errors import figure as interval_of
from .tables import ENDS

LARGEST = 50_000_000  # bytes of a results file; its samples lie in files of their own
HARNESS = (
    Column("model", "text", "The model."),
    Column("task", "text", "The benchmark, as the harness calls it."),
    Column("metric", "text", "The metric, with the harness's filter unless that is none."),
    FigureColumn(
        "value",
        "number",
        "Its value, with the interval of the harness's standard error.",
        digits=3,
        parts=ENDS,
    ),
)


@dataclass(frozen=True)
class HarnessResult:
    """What one model reached in one metric of one task."""

    model: str
    task: str
    metric: str
    figure: Figure

    @property
    def measure(self) -> tuple[str, str]:
        return self.task, self.metric


def read_results(named: str) -> list[HarnessResult]:
    """The results of MODEL=FILE.

    Raises:
        HunchError: it is no such pair, or the file is no results file; says which part.
    """
    model, equals, path = named.partition("=")
    if not equals or not model.strip() or not path:
        raise HunchError(f"--harness: {named[:80]!r} is not MODEL=FILE, such as owl=results.json")
    try:
        if Path(path).stat().st_size > LARGEST:
            raise HunchError(f"--harness: {path} has more than {LARGEST:,} bytes; give the results, not the samples")
        results = json.loads(Path(path).read_text(encoding="utf-8"))["results"]
        tasks = [(str(task), dict(values)) for task, values in dict(results).items()]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise HunchError(
            f"--harness: {path} is no results file of lm-evaluation-harness, a JSON object with `results` by task "
            f"({type(exc).__name__}: {str(exc)[:100]})"
        ) from exc
    read = [_result(model.strip(), task, name, values) for task, values in tasks for name in values]
    measured = [result for result in read if result is not None]
    if not measured:
        raise HunchError(f"--harness: {path} has no metric with a number")
    return measured


def _result(model: str, task: str, name: str, values: Mapping[str, Any]) -> HarnessResult | None:
    metric, _comma, filter_name = name.partition(",")
    value = _number_in(values, name)
    if metric.endswith("_stderr") or not filter_name or value is None:
        return None
    error = _number_in(values, f"{metric}_stderr,{filter_name}")
    named = metric if filter_name == "none" else f"{metric}, {filter_name}"
    # The harness gives no degrees of freedom: its benchmarks are large.
    return HarnessResult(model, task, named, interval_of(value, (error or 0.0) ** 2, math.inf))


def _number_in(values: Mapping[str, Any], name: str) -> float | None:
    value = values.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if value is not None and is_number else None


def with_harness(findings: ReportResult, results: Iterable[HarnessResult]) -> ReportResult:
    """The findings of an analysis with the harness's results beside, and how far both rank the models alike.

    Raises:
        HunchError: a model has no judgement.
    """
    results = list(results)
    strengths: Mapping[str, float | None] = findings.data["bradley_terry"]["people"]
    if unknown := sorted({result.model for result in results} - set(strengths)):
        raise HunchError(f"--harness: {', '.join(unknown)}: the models are {', '.join(strengths)}")
    ranks = []
    for measure in dict.fromkeys(result.measure for result in results):
        own = [
            (result.figure.number, strength)
            for result in results
            if result.measure == measure and (strength := strengths[result.model]) is not None
        ]
        if len(own) > 2:
            value = bandit.weighted_correlation(*(bandit.ranks(part) for part in zip(*own, strict=True)))
            if not math.isnan(value):
                ranks.append({"task": measure[0], "metric": measure[1], "models": len(own), "value": float(value)})
    said = "; ".join(f"{rank['task']} {rank['metric']} {number(rank['value'])}" for rank in ranks)
    table = Table(
        "harness",
        "Results of lm-evaluation-harness",
        HARNESS,
        [(result.model, result.task, result.metric, result.figure) for result in results],
        note=f"Rank correlation with people's strengths: {said}. The models are no sample of models, so that there is "
        "no interval."
        if said
        else "",
    )
    listed = [
        {"model": result.model, "task": result.task, "metric": result.metric, **result.figure.as_json()}
        for result in results
    ]
    data = {**findings.data, "harness": listed, "harness_rank_correlations": ranks}
    return replace(findings, tables=[*findings.tables, table], data=data)
