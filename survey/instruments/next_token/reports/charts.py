"""The figure of people and models as SVG: a dot a person, a line a model. Standard library."""

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 44, 60
NAME_OF_TWO = 26  # letters of a name, up to which two stand in a line of the legend
# Okabe and Ito's, which colour-blind people can distinguish; lines differ in their dashes too.
COLOURS = ("#d55e00", "#009e73", "#cc79a7", "#8d6e00", "#56b4e9")
DASHES = ("", "8 4", "2 4", "12 3 2 3", "4 2")
DOT = "#0072b2"


def dots(people: Sequence[tuple[str, int, float]], models: Sequence[tuple[str, float]]) -> str:
    """People as (name, guesses, share right), models as (name, share right). The same ones give the same text."""
    title = "Right guesses of each person, and models on the same positions"
    shown = [(name, share) for name, share in models if math.isfinite(share)]
    most = max(n for _name, n, _share in people)
    least = min(n for _name, n, _share in people)
    highest = max([share for _name, _n, share in people] + [share for _name, share in shown])
    top = min(1.0, math.ceil(highest * 10 + 0.2) / 10)
    columns = 1 if any(len(name) > NAME_OF_TWO for name, _share in shown) else 2
    height = HEIGHT + 20 * math.ceil(len(shown) / columns)
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-labelledby="next-token-people-title" font-family="sans-serif" font-size="13" fill="currentColor">',
        f'<title id="next-token-people-title">{title}</title>',
        f'<text x="16" y="22" font-size="15">{title}</text>',
    ]
    for step in range(round(top * 10) + 1):
        y = _up(step / 10, top)
        parts.append(f'<path d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity="0.2"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" font-size="12">{10 * step} %</text>')
    for n in _ticks(least, most):
        x = _across(n, least, most)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" font-size="12">{n:,}</text>')
    parts.append(
        f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - BOTTOM + 38}" text-anchor="middle">guesses of the person</text>'
    )
    for number, (name, share) in enumerate(shown):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
        y = _up(share, top)
        stroke = f'stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else "")
        parts.append(f'<path d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}" {stroke}/>')
        lx, ly = LEFT + 280 * (number % columns), HEIGHT - 4 + 20 * (number // columns)
        parts.append(f'<path d="M{lx},{ly}h28" {stroke}/>')
        parts.append(f'<text x="{lx + 34}" y="{ly + 4}" font-size="12">{escape(name)}, {100 * share:.1f} %</text>')
    for _name, n, share in people:
        x, y = _across(n, least, most), _up(share, top)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{DOT}" fill-opacity="0.6"/>')
    return "\n".join([*parts, "</svg>", ""])


def _ticks(least: int, most: int) -> list[int]:
    steps = [factor * 10**power for power in range(1, 7) for factor in (1, 2, 5)]
    return [one for one in steps if least <= one <= most] or sorted({least, most})


def _across(n: int, least: int, most: int) -> float:
    if most == least:
        return (LEFT + WIDTH - RIGHT) / 2
    part = (math.log(n) - math.log(least)) / (math.log(most) - math.log(least))
    return LEFT + 12 + (WIDTH - LEFT - RIGHT - 24) * part


def _up(share: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share / top
