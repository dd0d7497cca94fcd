"""The figures of budgets, as line charts."""

import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from survey.services.results.line_chart import Axes, Line, line_chart

from .budgeting import FrontierPoint
from .simulation import PolicyOutlook


def found_by_stage(outlooks: Sequence[PolicyOutlook], path: Path) -> None:
    """Expected changes found so far, after each stage, one line for each policy; one SVG file."""
    lines = [Line(one.name, list(enumerate(accumulate(one.found), start=1))) for one in outlooks]
    axes = Axes(x="after stage", y="changes so far", ticks=_stages(outlooks), from_zero=True)
    _write(path, line_chart(name="found", title="Changes of belief found, expected", axes=axes, lines=lines))


def auc_by_stage(outlooks: Sequence[PolicyOutlook], path: Path) -> None:
    """AUC over all pairs of the predictor trained after each stage, and the highest there can be; one SVG file."""
    best = sum(one.best_auc for one in outlooks) / len(outlooks)
    stages = _stages(outlooks)
    lines = [
        *(Line(one.name, list(enumerate(one.auc, start=1))) for one in outlooks),
        Line("highest possible", [(place, best) for place, _words in stages], marked=False),
    ]
    axes = Axes(x="after stage", y="AUC over uniform pairs", ticks=stages)
    title = "How well the predictor ranks pairs that nobody chose"
    _write(path, line_chart(name="auc", title=title, axes=axes, lines=lines))


def frontier(points: Sequence[FrontierPoint], path: Path) -> None:
    """What each design finds against the width of the final interval, one line for each kind of design; one SVG."""
    lines = [
        Line(
            f"{kind} ({', '.join(f'{one.value:g}' for one in own)})",
            [(100 * one.width, one.found) for one in own],
            [(one.found - 1.96 * one.error, one.found + 1.96 * one.error) for one in own],
        )
        for kind in dict.fromkeys(one.kind for one in points)
        if (own := sorted((one for one in points if one.kind == kind), key=lambda one: -one.width))
    ]
    widths = [100 * one.width for one in points if math.isfinite(one.width)]
    low, high = min(widths), max(widths)
    places = [low + (high - low) * part / 4 for part in range(5)] if high > low else [low]
    axes = Axes(
        x="width of the final 95 % interval of the share, in points",
        y="changes found an answer from stage 2 on",
        ticks=[(place, f"{place:.1f}") for place in places],
    )
    _write(path, line_chart(name="frontier", title="Between finding and estimating", axes=axes, lines=lines))


def _stages(outlooks: Sequence[PolicyOutlook]) -> list[tuple[float, str]]:
    count = max(len(one.auc) for one in outlooks)
    every = max(1, round(count / 12))
    return [(float(stage), str(stage)) for stage in range(1, count + 1, every)]


def _write(path: Path, svg: str) -> None:
    path.write_text(svg, encoding="utf-8", newline="")
