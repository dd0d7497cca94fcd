"""Histograms as SVG, a panel each, as the paper's figures 3 and 5 have them. Standard library."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM = 640, 190, 64, 24, 40, 44
COLOUR, EXACT = "#0072b2", 4.0  # points of the picture by which a bar of exactly one value is wide


class Bar(NamedTuple):
    """From and to on x (equal: exactly this value), the share, and the ends of its interval or None."""

    low: float
    high: float
    share: float
    ends: tuple[float, float] | None


def histograms(*, name: str, title: str, x: str, panels: Mapping[str, Sequence[Bar]]) -> str:
    """One panel below the other, each with its own x: beliefs go from 0 to 100, changes from -100 to 100.

    Raises:
        ValueError: a panel has no bar.
    """
    if not panels or not all(panels.values()):
        raise ValueError("there is no bar to draw")
    height = TOP + PANEL * len(panels) + 16
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="{escape(name)}-title" font-family="sans-serif" font-size="13" fill="currentColor">',
        f'<title id="{escape(name)}-title">{escape(title)}</title>',
        f'<text x="{LEFT}" y="20" font-size="15">{escape(title)}</text>',
    ]
    for place, (what, bars) in enumerate(panels.items()):
        parts += _panel(what, bars, TOP + PANEL * place)
    parts.append(f'<text x="{(WIDTH + LEFT - RIGHT) / 2}" y="{height - 6}" text-anchor="middle">{escape(x)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(what: str, bars: Sequence[Bar], top: float) -> list[str]:
    low, high = min(bar.low for bar in bars), max(bar.high for bar in bars)
    ends = [bar.ends[1] for bar in bars if bar.ends is not None]
    most = max([bar.share for bar in bars] + ends) or 1.0
    step = next(size for size in (0.02, 0.05, 0.1, 0.2, 0.25) if size >= most / 5 or size == 0.25)
    marks = [step * number for number in range(int(most / step) + 2)]
    floor, tall = top + PANEL - BOTTOM, PANEL - BOTTOM - 24

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / ((high - low) or 1.0)

    def up(share: float) -> float:
        return floor - tall * share / marks[-1]

    parts = [f'<text x="{LEFT}" y="{top + 12}">{escape(what)}</text>']
    for mark in marks:
        y = up(mark)
        parts.append(f'<path d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity="0.2"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" font-size="11">{100 * mark:g} %</text>')
    for mark in (-100, -50, 0, 50, 100):
        if low <= mark <= high:
            x = f"{across(mark):.1f}"
            parts.append(f'<text x="{x}" y="{floor + 16}" text-anchor="middle" font-size="11">{mark}</text>')
    for bar in bars:
        exact = bar.low == bar.high
        left = across(bar.low) - EXACT if exact else across(bar.low) + 1
        right = across(bar.high) + EXACT if exact else across(bar.high) - 1
        opacity = "0.95" if exact else "0.6"
        parts.append(
            f'<path d="M{left:.1f},{floor}V{up(bar.share):.1f}H{right:.1f}V{floor}Z" fill="{COLOUR}" '
            f'fill-opacity="{opacity}"/>'
        )
        if bar.ends is not None:
            middle = (left + right) / 2
            parts.append(f'<path d="M{middle:.1f},{up(bar.ends[0]):.1f}V{up(bar.ends[1]):.1f}" stroke="currentColor"/>')
    return parts
