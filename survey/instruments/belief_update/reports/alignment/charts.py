"""The figure of language models on trial, as a line chart."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from survey.services.results.line_chart import Axes, Line, line_chart

from .scores import AlignmentComparison, alpha_of

# 50 % to 99.9 %, evenly spaced in log odds, since the thresholds of interest lie close to 1.
THRESHOLDS: NDArray[np.float64] = 1 / (1 + np.exp(-np.linspace(0.0, np.log(999.0), 60)))
MARKS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999)


def accuracy_curves(comparison: AlignmentComparison, path: Path) -> None:
    """Weighted generalized accuracy of each model for thresholds from 50 % to 99.9 %, with its band; one SVG file."""
    alphas = alpha_of(THRESHOLDS)
    places = np.log(THRESHOLDS / (1 - THRESHOLDS)).tolist()
    lines = []
    for name in comparison.trials:
        score = comparison.score(name, alphas)
        points = list(zip(places, score.accuracy.tolist(), strict=True))
        lines.append(Line(name, points, [(low, high) for low, high in score.accuracy_interval.tolist()], marked=False))
    axes = Axes(
        x="deployment threshold, alpha / (1 + alpha)",
        y="weighted generalized accuracy",
        ticks=[(float(np.log(mark / (1 - mark))), f"{100 * mark:g} %") for mark in MARKS],
    )
    title = f"Alignment with what people expect ({100 * comparison.level:g} % bands over {comparison.resampled})"
    path.write_text(line_chart(name="alignment", title=title, axes=axes, lines=lines), encoding="utf-8", newline="")
