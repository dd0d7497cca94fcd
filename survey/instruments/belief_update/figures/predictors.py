"""Predictors as pictures: ROC, calibration, rank of prediction (figure 3, right) and areas with intervals, as SVG.

Plain data in, one file out. matplotlib is imported when a figure is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from predictors.comparison import Curves
    from predictors.evaluation.intervals import PartMetricsWithIntervals

# Okabe and Ito's palette, which most colour-blind people can distinguish, and marks, which also work in a grey print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
PARTS = (("overall", "overall"), ("previous_correct", "after correct"), ("previous_incorrect", "after incorrect"))


def roc_figure(curves: Mapping[str, Curves], path: Path) -> None:
    """Share of changed against share of kept beliefs above each threshold, one line for each predictor."""

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for index, (name, found) in enumerate(curves.items()):
            if found["roc"]:
                kept, changed = zip(*found["roc"], strict=True)
                axes.plot(kept, changed, color=_colour(index), label=name, linewidth=1.6)
        axes.set_xlabel("kept beliefs predicted above the threshold")
        axes.set_ylabel("changed beliefs predicted above it")
        axes.set_title("ROC curves", fontsize=11)

    _save(draw, path, size=(5.5, 5))


def calibration_figure(curves: Mapping[str, Curves], path: Path) -> None:
    """Mean prediction against observed fraction changed in bins of equal weight, with 95 % intervals."""

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for index, (name, found) in enumerate(curves.items()):
            bins = found["calibration"]["bins"]
            _points(axes, index, name, [one["predicted"] for one in bins], bins)
        axes.set_xlabel("mean predicted probability of change")
        axes.set_ylabel("fraction of beliefs that changed")
        axes.set_title("Calibration (bins of equal weight, 95 % intervals)", fontsize=11)

    _save(draw, path, size=(6, 5))


def rank_figure(curves: Mapping[str, Curves], path: Path) -> None:
    """Rank of the prediction, in percent, against the fraction changed: figure 3 (right) of the paper."""

    def draw(axes: Axes) -> None:
        for index, (name, found) in enumerate(curves.items()):
            _points(axes, index, name, [100 * point["rank"] for point in found["rank"]], found["rank"])
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 1)
        axes.set_xlabel("percentile of predicted probability of change")
        axes.set_ylabel("fraction of beliefs that changed")
        axes.set_title("Changes found by rank of prediction (95 % intervals)", fontsize=11)

    _save(draw, path, size=(6.5, 4.5))


def auc_figure(metrics: Mapping[str, PartMetricsWithIntervals], path: Path) -> None:
    """Area under the curve of each predictor, overall and after each outcome, with bootstrap intervals."""

    def draw(axes: Axes) -> None:
        width = 0.8 / len(PARTS)
        for part_index, (part, label) in enumerate(PARTS):
            places, areas, spans = [], [], []
            for index, found in enumerate(metrics.values()):
                area = found["auc"][part]
                if area is None:
                    continue
                low, high = found["intervals"]["auc"][part] or (area, area)
                places.append(index + (part_index - 1) * width)
                areas.append(area)
                # A percentile interval may just miss the estimate, and an error bar must not have a negative length.
                spans.append((max(0.0, area - low), max(0.0, high - area)))
            below, above = zip(*spans, strict=True) if spans else ((), ())
            axes.bar(
                places, areas, width, color=_colour(part_index), label=label, yerr=[below, above], capsize=2,
                error_kw={"linewidth": 1},
            )  # fmt: skip
        axes.axhline(0.5, color="0.4", linewidth=1, linestyle="--")
        axes.set_xticks(range(len(metrics)), list(metrics), rotation=20, ha="right")
        axes.set_ylim(0, 1.12)  # Room for the legend above the bars.
        axes.set_ylabel("area under the ROC curve")
        axes.set_title("How well changed and kept beliefs are separated (95 % intervals)", fontsize=11)

    _save(draw, path, size=(7, 4.5), legend={"loc": "upper left", "ncols": len(PARTS)})


def _points(axes: Axes, index: int, name: str, places: Sequence[float], points: Sequence[Any]) -> None:
    below = [point["observed"] - point["interval"][0] for point in points]
    above = [point["interval"][1] - point["observed"] for point in points]
    axes.errorbar(
        places,
        [point["observed"] for point in points],
        yerr=[[max(0.0, span) for span in below], [max(0.0, span) for span in above]],
        color=_colour(index),
        marker=MARKS[index % len(MARKS)],
        markersize=4,
        linewidth=1.4,
        elinewidth=0.7,
        capsize=2,
        label=name,
    )


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _save(draw: Callable[[Axes], None], path: Path, *, size: tuple[float, float], legend: Any = None) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # The same input gives the same bytes: no date, and ids from a fixed salt.
    with rc_context({"svg.hashsalt": "hunch", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.grid(alpha=0.25)
        if axes.get_legend_handles_labels()[0]:  # There are none if the test set has only one class.
            axes.legend(frameon=False, fontsize=9, **(legend or {}))
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "Hunch"})
