"""What `evaluate_predictors` prints and writes: table 1's layout, differences, tables 3 and 4, files."""

import csv
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.comparison import GROUPINGS, PredictorComparison
from predictors.datasets import PairTable
from predictors.evaluation import METRICS
from predictors.evaluation import PARTS_BY_OUTCOME as PARTS
from predictors.evaluation.intervals import Interval, PartMetricsWithIntervals
from predictors.evaluation.scoring import in_bits
from survey.figures import Figure
from survey.figures.charts import Axis, BarChart, Chart, ForestRow, Line, LineChart
from survey.figures.rendering import aligned
from survey.figures.words import NOTHING, number, p_value

GROUPS_SHOWN = 12
TITLES = {
    "evidence_task": "by the task generalized from",
    "target_task": "by the task generalized to",
    "task_pair": "by the pair of tasks",
}
DRAWN_PARTS = (("overall", "overall"), ("previous_correct", "after correct"), ("previous_incorrect", "after incorrect"))
PREDICTION_COLUMNS = ("q1", "q2", "source1", "source2", "previous_correct", "belief_change")


def sections(
    comparison: PredictorComparison,
    seconds: Mapping[str, float],
    failures: Mapping[str, str] | None = None,
    beside: Collection[str] = (),
) -> Iterator[str]:
    """The parts of the report, one by one. `failures`: why a predictor has no figures, by its name. `beside`: the
    predictors that read columns next to the texts, which have a table of their own."""
    metrics = comparison["metrics"]
    yield "Table 1: negative log-likelihood (lower is better) and area under the ROC curve (higher is better)"
    yield f"{comparison['n']} rows; below each value its 95 % interval"
    alone = {name: figures for name, figures in metrics.items() if name not in beside}
    yield table_1(alone, [name for name in failures or () if name not in beside])
    if beside:
        yield "\nWith columns next to the texts: how hard the target is for people (priors of training rows) or models"
        yield "The paper's task is text alone, so that these are not ranked with the rows above"
        with_columns = {name: figures for name, figures in metrics.items() if name in beside}
        yield table_1(with_columns, [name for name in failures or () if name in beside])
    for reason in (failures or {}).values():
        yield f"not measured: {reason}"
    yield "\nThe same log scores in bits (nats / ln 2; a coin toss has 1)"
    yield _bits_table(comparison["metrics"])
    if comparison["differences"]:
        yield f"\nDifference from {comparison['reference']}, on the same resamples (NLL: negative is better)"
        yield _differences(comparison)
    if (fresh := comparison["question_disjoint"]) is not None:
        n = next(iter(fresh.values()))["n"]
        yield f"\nQuestion-disjoint: the {n} test rows none of whose questions is in a training row"
        yield table_1(fresh)
    if "counts" in comparison:
        yield "\nLikelihood of the counts: NLL per single answer"
        rows = [
            [name, str(count["answers"]), number(count["nll_per_answer"], 3)]
            for name, count in comparison["counts"].items()
        ]
        yield aligned(["predictor", "answers", "NLL"], rows)
    yield "\nExpected calibration error (10 bins of equal weight), and seconds to train and predict"
    errors = {name: curve["calibration"]["expected_calibration_error"] for name, curve in comparison["curves"].items()}
    yield aligned(
        ["predictor", "ECE", "seconds"], [[n, number(e, 3), number(seconds[n], 1)] for n, e in errors.items()]
    )
    for grouping in GROUPINGS:
        yield from _groups(comparison, grouping)


def table_1(metrics: Mapping[str, PartMetricsWithIntervals], missing: Sequence[str] = ()) -> str:
    """One row for each predictor as in table 1 of the paper, with its intervals in the row below; a row of dashes for
    each that is missing."""
    header = ["predictor"] + [
        f"{metric.upper()}{part}" for metric in METRICS for part in ("", " correct", " incorrect")
    ]
    rows = []
    for name, metric_of in metrics.items():
        rows.append([name, *[number(metric_of[metric][part], 3) for metric in METRICS for part in PARTS]])
        rows.append(["", *[_interval(metric_of["intervals"][metric][part]) for metric in METRICS for part in PARTS]])
    rows += [[name, *[NOTHING] * (len(header) - 1)] for name in missing]
    return aligned(header, rows)


def _bits(figures: PartMetricsWithIntervals) -> dict[str, float | None]:
    """The log score of each part in bits."""
    return {part: None if figures["nll"][part] is None else in_bits(figures["nll"][part] or 0.0) for part in PARTS}


def _bits_table(metrics: Mapping[str, PartMetricsWithIntervals]) -> str:
    header = ["predictor", *(f"bits{part}" for part in ("", " correct", " incorrect"))]
    return aligned(
        header, [[name, *(number(bits, 3) for bits in _bits(measures).values())] for name, measures in metrics.items()]
    )


def writers_of(
    comparison: PredictorComparison,
    test: PairTable,
    predictions: Mapping[str, NDArray[np.float64]],
    facts: Mapping[str, Any],
) -> list[tuple[str, Callable[[Path], None]]]:
    """Every file of tables and figures by name, with the function that writes it."""
    metrics = {
        name: {"nll": figures["nll"], "auc": figures["auc"], "intervals": figures["intervals"]}
        for name, figures in comparison["metrics"].items()
    }
    curves = comparison["curves"]
    rest = {
        **facts,
        "n": comparison["n"],
        "reference": comparison["reference"],
        "differences": comparison["differences"],
        "question_disjoint": comparison["question_disjoint"],
        "counts": comparison.get("counts"),
        "bits": {name: _bits(figures) for name, figures in comparison["metrics"].items()},
        "calibration": {name: curve["calibration"] for name, curve in curves.items()},
        "rank_curve": {name: curve["rank"] for name, curve in curves.items()},
    }
    return [
        ("metrics.json", lambda path: _write_json(path, metrics)),
        ("comparison.json", lambda path: _write_json(path, rest)),
        ("predictions.csv", lambda path: _write_rows(path, _prediction_rows(test, predictions))),
        ("auc_by_group.csv", lambda path: _write_rows(path, _group_rows(comparison))),
        *((f"{name}.svg", partial(chart.write, name=name)) for name, chart in charts(comparison).items()),
    ]


def charts(comparison: PredictorComparison) -> dict[str, Chart]:
    """The figures by name: areas with their intervals, ROC curves, calibration, and the rank of the prediction (figure
    3, right)."""
    changed = Axis("beliefs that changed", share=True, includes=(0.0, 1.0))
    curves = comparison["curves"].items()
    return {
        "auc": BarChart(
            title="How well changed and kept beliefs are separated (95 % intervals)",
            x=Axis("area under the ROC curve", includes=(1.0,)),
            series=[words for _part, words in DRAWN_PARTS],
            rows=[
                ForestRow(name, [_area(measured, part) for part, _words in DRAWN_PARTS])
                for name, measured in comparison["metrics"].items()
            ],
            mark_at=0.5,
        ),
        "roc": LineChart(
            title="ROC curves",
            x=Axis("kept beliefs predicted above the threshold", share=True, includes=(0.0, 1.0)),
            y=Axis("changed beliefs predicted above it", share=True, includes=(0.0, 1.0)),
            lines=[Line.diagonal("chance"), *(Line(name, curve["roc"], marked=False) for name, curve in curves)],
        ),
        "calibration": LineChart(
            title="Calibration (bins of equal weight, 95 % intervals)",
            x=Axis("mean predicted probability of change", share=True, includes=(0.0, 1.0)),
            y=changed,
            lines=[
                Line.diagonal("calibrated"),
                *(
                    _observed(name, [(bin_["predicted"], bin_) for bin_ in curve["calibration"]["bins"]])
                    for name, curve in curves
                ),
            ],
        ),
        "rank_curve": LineChart(
            title="Changes found by rank of prediction (95 % intervals)",
            x=Axis("percentile of predicted probability of change", share=True, includes=(0.0, 1.0)),
            y=changed,
            lines=[_observed(name, [(point["rank"], point) for point in curve["rank"]]) for name, curve in curves],
        ),
    }


def _area(metrics: PartMetricsWithIntervals, part: Any) -> Figure:
    return Figure.between(metrics["auc"][part], metrics["intervals"]["auc"][part])


def _observed(name: str, points: Sequence[tuple[float, Any]]) -> Line:
    """What was observed at each place, with its interval."""
    figures = [(place, Figure.between(point["observed"], point["interval"])) for place, point in points]
    return Line.of(name, figures)


def _interval(bounds: Interval) -> str:
    return NOTHING if bounds is None else f"[{number(bounds[0], 3)}, {number(bounds[1], 3)}]"


def _differences(comparison: PredictorComparison) -> str:
    rows = []
    for name, difference in comparison["differences"].items():
        row = [name]
        for metric in METRICS:
            cell = difference[metric]["overall"]
            signed = number(cell["difference"], 3, signed=True)
            row += [signed, _interval(cell["interval"]), p_value(cell["p"])]
        rows.append(row)
    return aligned(["predictor", "NLL", "interval", "p", "AUC", "interval", "p"], rows)


def _groups(comparison: PredictorComparison, grouping: str) -> Iterator[str]:
    """The areas by group of the reference predictor: tables 3 and 4."""
    areas = comparison["groups"][comparison["reference"]][grouping]
    yield f"\nAUC of {comparison['reference']} {TITLES[grouping]} (tables 3 and 4)"
    groups = list(areas["groups"].items())
    if groups:
        rows = [
            [_group_name(group), str(figures["n"]), number(figures["auc"], 3)]
            for group, figures in groups[:GROUPS_SHOWN]
        ]
        yield aligned(["group", "rows", "AUC"], rows)
    more = f"{len(groups) - GROUPS_SHOWN} more in auc_by_group.csv; " if len(groups) > GROUPS_SHOWN else ""
    yield f"{more}left out: {areas['too_small']} groups of under five rows, {areas['one_class']} of one class"


def _group_name(group: Any) -> str:
    return " -> ".join(group) if isinstance(group, tuple) else str(group)


def _prediction_rows(test: PairTable, predictions: Mapping[str, NDArray[np.float64]]) -> Iterator[list[Any]]:
    yield [*PREDICTION_COLUMNS, *predictions]
    columns = [column.tolist() for column in predictions.values()]
    for index, (pair, questions, label) in enumerate(
        zip(test.pairs, test.questions, test.labels.tolist(), strict=True)
    ):
        label_text = f"{label:.12g}"
        tasks = (pair.evidence_task, pair.target_task)
        yield [*questions, *tasks, pair.outcome, label_text, *[repr(column[index]) for column in columns]]


def _group_rows(comparison: PredictorComparison) -> Iterator[list[Any]]:
    yield ["predictor", "grouping", "evidence_task", "target_task", "rows", "auc"]
    for name, groupings in comparison["groups"].items():
        for grouping, areas in groupings.items():
            for group, area in areas["groups"].items():
                yield [name, grouping, *_tasks(grouping, group), area["n"], repr(area["auc"])]


def _tasks(grouping: str, group: Any) -> tuple[str, str]:
    """Evidence task and target task of a group, empty where it has all of them."""
    if grouping == "task_pair":
        return group[0], group[1]
    return (group, "") if grouping == "evidence_task" else ("", group)


def _write_rows(path: Path, rows: Iterator[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")
