"""Figures as SVG with the standard library: strengths with intervals, a matrix of shares, reliability."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH = 640
LEFT, RIGHT, TOP, ROW = 190, 28, 56, 26
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8d6e00", "#56b4e9")


@dataclass(frozen=True)
class RankingPoint:
    """A figure of a row; `series` is the place of its colour."""

    value: float
    low: float | None
    high: float | None
    series: int = 0


@dataclass(frozen=True)
class RankingRow:
    name: str
    points: Sequence[RankingPoint]


def write(path: Path, svg: str) -> None:
    path.write_text(svg, encoding="utf-8", newline="")


def forest(
    *,
    name: str,
    title: str,
    axis: str,
    rows: Sequence[RankingRow],
    series: Sequence[str],
    span: tuple[float, float] | None = None,
) -> str:
    """Rows of points with their intervals over one axis. The same rows give the same text."""
    ends = [
        end for row in rows for point in row.points for end in (point.value, point.low, point.high) if end is not None
    ]
    low, high = span or (min([*ends, 0.0]), max([*ends, 0.0]))
    if high - low < 1e-9:
        low, high = low - 1, high + 1
    steps = _steps(low, high)
    low, high = min(low, steps[0]), max(high, steps[-1])

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low)

    tall = max(ROW, 14 * len(series) + 8)
    bottom = TOP + tall * len(rows)
    legend = 20 * len(series) if len(series) > 1 else 0
    parts = _head(name, title, bottom + 52 + legend)
    for step in steps:
        x = f"{across(step):.1f}"
        parts.append(f'<path d="M{x},{TOP - 6}V{bottom}" stroke="currentColor" stroke-opacity="0.2"/>')
        parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" font-size="11">{step:g}</text>')
    if low < 0 < high:
        parts.append(f'<path d="M{across(0):.1f},{TOP - 6}V{bottom}" stroke="currentColor" stroke-opacity="0.6"/>')
    for place, row in enumerate(rows):
        middle = TOP + tall * (place + 0.5)
        parts.append(
            f'<text x="{LEFT - 10}" y="{middle:.1f}" text-anchor="end" dominant-baseline="middle">'
            f"{escape(_short(row.name))}</text>"
        )
        for point in row.points:
            y = middle + 14 * (point.series - (len(series) - 1) / 2)
            colour = COLOURS[point.series % len(COLOURS)]
            if point.low is not None and point.high is not None:
                parts.append(
                    f'<path d="M{across(max(point.low, low)):.1f},{y:.1f}H{across(min(point.high, high)):.1f}" '
                    f'stroke="{colour}" stroke-width="2"/>'
                )
            parts.append(f'<circle cx="{across(point.value):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
    parts.append(f'<text x="{(WIDTH + LEFT) / 2}" y="{bottom + 38}" text-anchor="middle">{escape(axis)}</text>')
    for place, words in enumerate(series if len(series) > 1 else ()):
        y = bottom + 58 + 20 * place
        parts.append(f'<circle cx="{LEFT}" cy="{y - 4}" r="4" fill="{COLOURS[place % len(COLOURS)]}"/>')
        parts.append(f'<text x="{LEFT + 12}" y="{y}">{escape(words)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def matrix(*, name: str, title: str, names: Sequence[str], cells: Sequence[Sequence[tuple[float, int] | None]]) -> str:
    """The share of each row's wins against each column's, with the number of judgements; ties half."""
    side = min(84.0, (WIDTH - LEFT - RIGHT) / max(len(names), 1))
    height = TOP + 24 + side * len(names) + 16
    parts = _head(name, title, height)
    for place, one in enumerate(names):
        x, y = LEFT + side * (place + 0.5), TOP + 24 + side * (place + 0.5)
        parts.append(
            f'<text x="{x:.1f}" y="{TOP + 12}" text-anchor="middle" font-size="11">{escape(_short(one, 11))}</text>'
        )
        parts.append(
            f'<text x="{LEFT - 10}" y="{y:.1f}" text-anchor="end" dominant-baseline="middle">'
            f"{escape(_short(one))}</text>"
        )
    for row, line in enumerate(cells):
        for column, cell in enumerate(line):
            x, y = LEFT + side * column, TOP + 24 + side * row
            if cell is None:
                continue
            share, n = cell
            colour, depth = (COLOURS[0] if share >= 0.5 else COLOURS[1]), abs(share - 0.5) * 1.2
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" fill="{colour}" '
                f'fill-opacity="{depth:.2f}" stroke="currentColor" stroke-opacity="0.3"/>'
            )
            parts.append(
                f'<text x="{x + side / 2:.1f}" y="{y + side / 2:.1f}" text-anchor="middle">{100 * share:.0f} %</text>'
            )
            parts.append(
                f'<text x="{x + side / 2:.1f}" y="{y + side / 2 + 15:.1f}" text-anchor="middle" font-size="11">'
                f"of {n:,}</text>"
            )
    return "\n".join([*parts, "</svg>", ""])


def _head(name: str, title: str, height: float) -> list[str]:
    return [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-labelledby="{escape(name)}-title" font-family="sans-serif" font-size="13" fill="currentColor">',
        f'<title id="{escape(name)}-title">{escape(title)}</title>',
        f'<text x="16" y="22" font-size="15">{escape(title)}</text>',
    ]


def _short(words: str, most: int = 24) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _steps(low: float, high: float) -> list[float]:
    """Round numbers in these limits, four to eight of them."""
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 7)
    first = math.ceil(low / step - 1e-9)
    found = []
    while first * step <= high + 1e-9 * span:
        found.append(round(first * step, 12))
        first += 1
    return found
