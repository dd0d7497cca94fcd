"""A budget as pictures: changes found and the predictor's AUC over the stages. matplotlib is imported to draw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from survey.instruments.belief_update.reports.budget import PolicyOutlook

# Distinct in hue, lightness and mark, so that a print in grey can be read too.
COLOURS = ("#1b6ca8", "#c1440e", "#2e7d32", "#7b1fa2", "#8d6e00", "#00838f")
MARKS = ("o", "s", "^", "D", "v", "P")


def found_by_stage(outlooks: Sequence[PolicyOutlook], path: Path) -> None:
    """Expected changes found so far, after each stage, a line a policy; one SVG file."""
    _lines(
        path,
        title="Changes of belief found, expected",
        label="changes so far",
        lines=[(one.name, list(accumulate(one.found))) for one in outlooks],
        from_zero=True,
    )


def auc_by_stage(outlooks: Sequence[PolicyOutlook], path: Path) -> None:
    """AUC over all pairs of the predictor trained after each stage, and the highest there can be; one SVG file."""
    best = sum(one.best_auc for one in outlooks) / len(outlooks)
    _lines(
        path,
        title="How well the predictor ranks pairs that nobody chose",
        label="AUC over uniform pairs",
        lines=[(one.name, list(one.auc)) for one in outlooks],
        level=("highest possible", best),
    )


def _lines(
    path: Path,
    *,
    title: str,
    label: str,
    lines: Sequence[tuple[str, list[float]]],
    level: tuple[str, float] | None = None,
    from_zero: bool = False,
) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # The same input gives the same bytes: no date, and ids from a fixed salt.
    with rc_context({"svg.hashsalt": "hunch", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(6.5, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for index, (name, values) in enumerate(lines):
            colour, mark = COLOURS[index % len(COLOURS)], MARKS[index % len(MARKS)]
            axes.plot(range(1, len(values) + 1), values, marker=mark, color=colour, label=name, linewidth=1.6)
        if level is not None:
            axes.axhline(level[1], color="#555555", linestyle=":", label=level[0])
        axes.set_xticks(range(1, max(len(values) for _name, values in lines) + 1))
        axes.set_xlabel("after stage")
        axes.set_ylabel(label)
        axes.set_title(title, fontsize=11)
        if from_zero:
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "Hunch"})
