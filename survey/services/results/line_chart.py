"""A line chart as SVG, simple enough to need no library: uses only the standard library."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 28, 34, 60
_LEGEND_LINE, _COLUMNS = 20, 2
_TICK_LETTER = 6  # wide, about, at a size of 11
# Okabe and Ito's, which colour-blind people can distinguish; lines differ in mark and dash too, for prints in grey.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8d6e00", "#56b4e9")
_DASHES = ("", "7 4", "2 3", "10 3 2 3")
_MARKS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",  # a disc
    "M-4,-4h8v8h-8z",
    "M0,-5L5,4H-5z",
    "M0,-5L5,0L0,5L-5,0z",
)


@dataclass(frozen=True)
class Line:
    """Points (x, y) in order; `band`: the lower and the upper end at each of them, or none at all. What is no finite
    number is left out. `marked`: each point is a measurement of its own."""

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float]] = ()
    marked: bool = True


@dataclass(frozen=True)
class Axes:
    """The labels of the axes. `ticks` are positions on x with their labels."""

    x: str
    y: str
    ticks: Sequence[tuple[float, str]]
    from_zero: bool = False


def line_chart(*, name: str, title: str, axes: Axes, lines: Sequence[Line]) -> str:
    """The same lines give the same text. It holds no script and no style sheet, so a page may include it.

    Args:
        name: a name that no other chart on the same page has: letters, digits, hyphens.

    Raises:
        ValueError: there is no point to draw.
    """
    scale = _Scale.of(axes, lines)
    rows = math.ceil(len(lines) / _COLUMNS)
    height = HEIGHT + _LEGEND_LINE * rows
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="{escape(name)}-title" font-family="sans-serif" font-size="13" fill="currentColor">',
        f'<title id="{escape(name)}-title">{escape(title)}</title>',
        f'<text x="{_LEFT}" y="{_TOP - 14}" font-size="15">{escape(title)}</text>',
        *scale.drawn(axes),
    ]
    for place, line in enumerate(lines):
        colour, dash = _COLOURS[place % len(_COLOURS)], _DASHES[place % len(_DASHES)]
        mark = _MARKS[place % len(_MARKS)] if line.marked else ""
        parts.append(f'<g stroke="{colour}" fill="{colour}">')
        parts += scale.line(line, dash, mark)
        x = _LEFT + (WIDTH - _LEFT - _RIGHT) / _COLUMNS * (place % _COLUMNS)
        y = HEIGHT + _LEGEND_LINE * (place // _COLUMNS)
        parts.append(f'<path d="M{x:.1f},{y}h28" stroke-width="2" stroke-dasharray="{dash}"/>')
        if mark:
            parts.append(f'<path d="{mark}" transform="translate({x + 14:.1f},{y})"/>')
        parts.append(f'</g><text x="{x + 36:.1f}" y="{y + 5}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True)
class _Scale:
    """Converts numbers to positions in the picture. `steps` are the round numbers of y that get a line."""

    left: float
    right: float
    steps: Sequence[float]

    @classmethod
    def of(cls, axes: Axes, lines: Sequence[Line]) -> "_Scale":
        xs = [x for line in lines for x, y in line.points if math.isfinite(x) and math.isfinite(y)]
        ys = [y for line in lines for _x, y in line.points if math.isfinite(y)]
        ys += [end for line in lines for ends in line.band for end in ends if math.isfinite(end)]
        if not xs:
            raise ValueError("there is no point to draw")
        xs += [x for x, _words in axes.ticks]
        lowest = 0.0 if axes.from_zero else min(ys)
        return cls(min(xs), max(xs), _round_steps(lowest, max(ys)))

    def across(self, x: float) -> float:
        share = (x - self.left) / (self.right - self.left) if self.right > self.left else 0.5
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * share

    def up(self, y: float) -> float:
        low, high = self.steps[0], self.steps[-1]
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (y - low) / (high - low)

    def drawn(self, axes: Axes) -> Iterator[str]:
        for step in self.steps:
            y = f"{self.up(step):.1f}"
            yield f'<path d="M{_LEFT},{y}H{WIDTH - _RIGHT}" stroke="currentColor" stroke-opacity="0.25"/>'
            yield f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end" dominant-baseline="middle">{step:g}</text>'
        for x, words in axes.ticks:
            place, below = self.across(x), HEIGHT - _BOTTOM + 18
            # Near the right edge a label ends at its tick, so that none is cut off.
            anchor = "end" if place + _TICK_LETTER * len(words) / 2 > WIDTH else "middle"
            yield f'<text x="{place:.1f}" y="{below}" text-anchor="{anchor}" font-size="11">{escape(words)}</text>'
        middle, side = (WIDTH + _LEFT - _RIGHT) / 2, (HEIGHT + _TOP - _BOTTOM) / 2
        yield f'<text x="{middle}" y="{HEIGHT - 22}" text-anchor="middle">{escape(axes.x)}</text>'
        yield (
            f'<text x="16" y="{side}" text-anchor="middle" transform="rotate(-90 16 {side})">{escape(axes.y)}</text>'
        )

    def line(self, line: Line, dash: str, mark: str) -> Iterator[str]:
        ends = [
            (x, low, high)
            for (x, _y), (low, high) in zip(line.points, line.band, strict=False)
            if math.isfinite(low) and math.isfinite(high)
        ]
        if len(ends) > 1:
            there = [f"{self.across(x):.1f},{self.up(high):.1f}" for x, _low, high in ends]
            back = [f"{self.across(x):.1f},{self.up(low):.1f}" for x, low, _high in reversed(ends)]
            yield f'<path d="M{"L".join([*there, *back])}Z" fill-opacity="0.12" stroke="none"/>'
        points = [(self.across(x), self.up(y)) for x, y in line.points if math.isfinite(x) and math.isfinite(y)]
        if len(points) > 1:
            course = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
            yield f'<path d="M{course}" fill="none" stroke-width="2" stroke-dasharray="{dash}"/>'
        if mark or len(points) == 1:
            for x, y in points:
                yield f'<path d="{mark or _MARKS[0]}" transform="translate({x:.1f},{y:.1f})"/>'


def _round_steps(low: float, high: float) -> list[float]:
    """Round numbers, four to eight of them, of which the first is not above `low` and the last not below `high`."""
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)):  # They are equal but for rounding, or both 0.
        span = abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]
