"""Scatter plots as SVG, simple enough to need no library. Standard library."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 40, 56
# Okabe and Ito's, which colour-blind people can distinguish; groups differ in their mark too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8d6e00", "#56b4e9")
MARKS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "M-4,-4h8v8h-8z",
    "M0,-5L5,4H-5z",
    "M0,-5L5,0L0,5L-5,0z",
)
LETTER, LINE = 6.6, 13.0  # of a name at a size of 11: about the width of a letter, and its height
# Where a name may stand, the nearest place first: so far beside its point (below 0: to its left) and above or below it.
WAYS = sorted(
    ((aside, lift * LINE) for aside in (0, -1, 40, -41, 90, -91, 150, -151, 240, -241) for lift in range(-24, 25)),
    key=lambda way: (abs(way[0]) / 2 + abs(way[1]), way[0] < 0, way[1]),
)
SMALL = "M-1.6,0a1.6,1.6 0 1,0 3.2,0a1.6,1.6 0 1,0 -3.2,0z"
MOST_POINTS = 4000


@dataclass(frozen=True)
class ScatterPoint:
    """`name` is written beside it, `group` decides on colour and mark."""

    x: float
    y: float
    name: str = ""
    group: str = ""


def scatter(*, name: str, title: str, x: str, y: str, points: Sequence[ScatterPoint], log_x: bool = False) -> str:
    """Points with their names. The same points give the same text.

    Raises:
        ValueError: no point has two finite numbers.
    """
    usable = [one for one in points if math.isfinite(one.x) and math.isfinite(one.y) and (one.x > 0 or not log_x)]
    if not usable:
        raise ValueError("there is no point to draw")
    usable = usable[:: max(1, math.ceil(len(usable) / MOST_POINTS))]
    place = [math.log10(one.x) if log_x else one.x for one in usable]
    across = _log_steps(min(place), max(place)) if log_x else _steps(min(place), max(place))
    up = _steps(min(one.y for one in usable), max(one.y for one in usable))
    groups = list(dict.fromkeys(one.group for one in usable if one.group))
    height = HEIGHT + 20 * math.ceil(len(groups) / 3)
    parts = _head(name, title, height)
    for step in up:
        at = _up(step, up)
        parts.append(f'<path d="M{LEFT},{at:.1f}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity="0.2"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" font-size="12">{step:g}</text>')
    for step in across:
        at = _across(step, across)
        shown = _number(10**step) if log_x else f"{step:g}"
        # Near the right edge a number ends at its tick, so that none is cut off.
        anchor = "end" if at + LETTER * len(shown) / 2 > WIDTH else "middle"
        parts.append(
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="{anchor}" font-size="12">{shown}</text>'
        )
    parts.append(f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 16}" text-anchor="middle">{escape(x)}</text>')
    middle = (HEIGHT + TOP - BOTTOM) / 2
    parts.append(
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">{escape(y)}</text>'
    )
    where = [(_across(at, across), _up(one.y, up)) for at, one in zip(place, usable, strict=True)]
    labels = _placed([(*at, one.name) for at, one in zip(where, usable, strict=True) if one.name])
    for (dx, dy), one in zip(where, usable, strict=True):
        number = groups.index(one.group) if one.group else 0
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)] if one.name else SMALL
        opacity = "" if one.name else ' fill-opacity="0.45"'
        parts.append(f'<path d="{mark}" transform="translate({dx:.1f},{dy:.1f})" fill="{colour}"{opacity}/>')
    parts += labels
    for number, group in enumerate(groups):
        gx, gy = LEFT + 190 * (number % 3), HEIGHT + 6 + 20 * (number // 3)
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<path d="{MARKS[number % len(MARKS)]}" transform="translate({gx},{gy})" fill="{colour}"/>')
        parts.append(f'<text x="{gx + 12}" y="{gy + 4}" font-size="12">{escape(group)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _head(name: str, title: str, height: float) -> list[str]:
    return [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-labelledby="{escape(name)}-title" font-family="sans-serif" font-size="13" fill="currentColor">',
        f'<title id="{escape(name)}-title">{escape(title)}</title>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]


def _placed(named: Sequence[tuple[float, float, str]]) -> list[str]:
    """The names of points (x, y, name), each beside its point and on no other name or mark: at the nearest free place,
    with a line to the point where that is not next to it."""
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y, _name in named]
    parts = []
    for x, y, name in sorted(named, key=lambda one: (one[1], one[0], one[2])):
        width = LETTER * len(name)
        best = None
        for aside, lift in WAYS:
            begin = x + 8 + aside if aside >= 0 else x - 8 - width + aside + 1
            middle = y + lift
            box = (begin, middle - LINE / 2, begin + width, middle + LINE / 2)
            inside = box[0] >= LEFT and box[2] <= WIDTH and box[1] >= TOP - 8 and box[3] <= HEIGHT - BOTTOM
            if inside and not any(_overlap(box, other) for other in taken):
                best = box
                break
        if best is None:  # No room is left: better on another name than nowhere.
            begin = x + 8 if x + 8 + width <= WIDTH else max(0.0, x - 8 - width)
            best = (begin, y - LINE / 2, begin + width, y + LINE / 2)
        taken.append(best)
        middle = (best[1] + best[3]) / 2
        if abs(middle - y) > LINE or best[0] - x > 10 or x - best[2] > 10:
            edge = best[0] - 1 if best[0] > x else best[2] + 1
            parts.append(
                f'<path d="M{x:.1f},{y:.1f}L{edge:.1f},{middle:.1f}" stroke="currentColor" stroke-opacity="0.4"/>'
            )
        parts.append(f'<text x="{best[0]:.1f}" y="{middle + 4:.1f}" font-size="11">{escape(name)}</text>')
    return parts


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _log_steps(low: float, high: float) -> list[float]:
    """The logarithms of round numbers around these: powers of ten, and twos and fives between few of them."""
    for factors in ((1, 2, 5), (1, 3), (1,)):
        first, last = math.floor(low), math.ceil(high)
        steps = [power + math.log10(factor) for power in range(first, last + 1) for factor in factors]
        below = max([step for step in steps if step <= low + 1e-9], default=steps[0])
        above = min([step for step in steps if step >= high - 1e-9], default=steps[-1])
        steps = [step for step in steps if below <= step <= above]
        if len(steps) <= 7:
            break
    return steps if len(steps) > 1 else [steps[0], steps[0] + math.log10(2)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _across(value: float, steps: Sequence[float]) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (value - steps[0]) / (steps[-1] - steps[0])


def _up(value: float, steps: Sequence[float]) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - steps[0]) / (steps[-1] - steps[0])


def _steps(low: float, high: float) -> list[float]:
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]
