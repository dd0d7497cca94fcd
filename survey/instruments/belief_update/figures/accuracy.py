"""Alignment as a picture: weighted accuracy over deployment thresholds. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from survey.instruments.belief_update.reports.alignment import Comparison, alpha_of

# 50 % to 99.9 %, evenly spaced in log odds: the thresholds at which people deploy crowd towards 1.
CURVE_THRESHOLDS: NDArray[np.float64] = 1 / (1 + np.exp(-np.linspace(0.0, np.log(999.0), 80)))
# Distinct in hue, lightness and dash, so that a print in grey can be read too.
COLOURS = ("#1b6ca8", "#c1440e", "#2e7d32", "#7b1fa2", "#8d6e00", "#00838f", "#ad1457", "#455a64")
DASHES = ("-", "--", "-.", ":")


def accuracy_curves(comparison: Comparison, path: Path, *, names: Sequence[str] | None = None) -> None:
    """Weighted generalized accuracy of each model for thresholds from 50 % to 99.9 %, with its band; one SVG file."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # The same input gives the same bytes: no date, and ids from a fixed salt.
    with rc_context({"svg.hashsalt": "hunch", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(7.5, 5), layout="constrained")
        axes = figure.add_subplot()
        alphas = alpha_of(CURVE_THRESHOLDS)
        place = np.log(CURVE_THRESHOLDS / (1 - CURVE_THRESHOLDS))
        for index, name in enumerate(names or comparison.trials):
            score = comparison.score(name, alphas)
            colour, dash = COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]
            axes.fill_between(place, *score.accuracy_interval.T, color=colour, alpha=0.12, linewidth=0)
            axes.plot(place, score.accuracy, dash, color=colour, label=name, linewidth=1.6)
        marks = np.asarray([0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999])
        axes.set_xticks(np.log(marks / (1 - marks)), [f"{100 * mark:g} %" for mark in marks])
        axes.set_xlabel("deployment threshold, alpha / (1 + alpha)")
        axes.set_ylabel("weighted generalized accuracy")
        axes.set_title(
            f"Alignment with what people expect ({100 * comparison.level:g} % bands over pairs)", fontsize=11
        )
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "Hunch"})
