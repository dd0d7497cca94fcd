"""Rows of figures with their intervals as SVG, drawn without a library. Reports of every instrument draw with it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple, Protocol

WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM = 640, 210, 24, 56, 26, 52
LETTER, WIDEST = 7.4, 380  # about the width of a letter, and the most that names may take
LONGEST = 30  # of a name in the legend
# Okabe and Ito's, which colour-blind people can distinguish; marks differ too, for prints in grey.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8d6e00", "#56b4e9")
MARKS = (
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "M-4.5,-4.5h9v9h-9z",
    "M0,-6L6,0L0,6L-6,0z",
    "M0,-5L5,4H-5z",
    "M-5,-4H5L0,5z",
    "M-6,-2h12v4h-12z",
)
NAMES_A_LINE = 3  # of the legend


class DrawnFigure(Protocol):
    """A figure with its interval. None or NaN where it is not defined; no ends where no interval is."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class Whisker(NamedTuple):
    """The plainest of them."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ForestRow:
    """One line: its name, and a figure of each series; undefined ones are left out."""

    name: str
    figures: Sequence[DrawnFigure]


def forest(
    *,
    name: str,
    title: str,
    axis: str,
    series: Sequence[str],
    rows: Sequence[ForestRow],
    mark_at: float | None = None,
    limits: tuple[float, float] | None = None,
) -> str:
    """Each row's figures with their 95 % intervals, as SVG without script and style sheet.

    Args:
        name: a name that no other figure on the page has: letters, digits, hyphens.
        series: what the figures of a row are, in order. Colours and marks repeat after six.
        mark_at: where a dashed line stands, such as 0.
        limits: the axis shows at least these.

    Raises:
        ValueError: no figure is defined.
    """
    shown = [row for row in rows if any(_is_defined(figure) for figure in row.figures)]
    ends = [
        end
        for row in shown
        for figure in row.figures
        if _is_defined(figure)
        for end in (figure.value, figure.low, figure.high)
        if end is not None and math.isfinite(end)
    ]
    if not ends:
        raise ValueError("there is no figure to draw")
    ends += [*(limits or ()), *([] if mark_at is None else [mark_at])]
    steps = _round_steps(min(ends), max(ends))
    low, high = steps[0], steps[-1]
    tall = max(ROW, 8 * max(len(row.figures) for row in shown) + 8)
    legend = math.ceil(len(series) / NAMES_A_LINE) if len(series) > 1 else 0
    top = TOP + 18 * max(0, legend - 1)
    bottom = top + tall * len(shown)
    height = bottom + BOTTOM

    # Long names make room for themselves, so that two that begin alike can be told apart.
    left = min(max(LEFT, LETTER * max(len(row.name) for row in shown) + 20), WIDEST)
    longest = round((left - 20) / LETTER)

    def across(value: float) -> float:
        return left + (WIDTH - left - RIGHT) * (value - low) / (high - low)

    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="{escape(name)}-title" font-family="sans-serif" font-size="13" fill="currentColor">',
        f'<title id="{escape(name)}-title">{escape(title)}</title>',
        f'<text x="8" y="18" font-size="15">{escape(title)}</text>',
    ]
    for step in steps:
        x = f"{across(step):.1f}"
        parts.append(f'<path d="M{x},{top - 6}V{bottom}" stroke="currentColor" stroke-opacity="0.25"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" font-size="11">{step:g}</text>')
    if mark_at is not None:
        x = f"{across(mark_at):.1f}"
        parts.append(f'<path d="M{x},{top - 6}V{bottom}" stroke="currentColor" stroke-dasharray="4 3"/>')
    middle = (WIDTH + left - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{height - 12}" text-anchor="middle">{escape(axis)}</text>')
    for place, words in enumerate(series if len(series) > 1 else ()):
        begin, line = 8 + 205 * (place % NAMES_A_LINE), TOP - 20 + 18 * (place // NAMES_A_LINE)
        mark, colour = MARKS[place % len(MARKS)], COLOURS[place % len(COLOURS)]
        parts.append(
            f'<path d="{mark}" transform="translate({begin + 6},{line - 4})" fill="{colour}"/>'
            f'<text x="{begin + 18}" y="{line}" font-size="12">{escape(_short(words))}</text>'
        )
    for number, row in enumerate(shown):
        y = top + tall * (number + 0.5)
        parts.append(
            f'<text x="{left - 10:g}" y="{y + 4:.1f}" text-anchor="end">{escape(_short(row.name, longest))}</text>'
        )
        for place, figure in enumerate(row.figures):
            if _is_defined(figure):
                aside = y + 7 * (place - (len(row.figures) - 1) / 2)
                parts += _mark(figure, across, aside, place)
    return "\n".join([*parts, "</svg>", ""])


def _is_defined(figure: DrawnFigure) -> bool:
    return figure.value is not None and math.isfinite(figure.value)


def _mark(figure: DrawnFigure, across: Callable[[float], float], y: float, place: int) -> list[str]:
    colour = COLOURS[place % len(COLOURS)]
    found = [f'<g stroke="{colour}" fill="{colour}">']
    if figure.low is not None and figure.high is not None:
        found.append(f'<path d="M{across(figure.low):.1f},{y:.1f}H{across(figure.high):.1f}" stroke-width="2"/>')
    mark = MARKS[place % len(MARKS)]
    found.append(f'<path d="{mark}" transform="translate({across(figure.value or 0.0):.1f},{y:.1f})"/></g>')
    return found


def _short(name: str, longest: int = LONGEST) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _round_steps(low: float, high: float) -> list[float]:
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)):  # They are equal but for rounding, or both 0.
        span = abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]
