"""The matrix of win shares as SVG, with the standard library."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

WIDTH = 640
LEFT, RIGHT, TOP, ROW = 275, 90, 56, 26
LETTER, LONGEST = 6.6, 34  # about the width of a letter; letters of a name, beyond which it is cut
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8d6e00", "#56b4e9")


def write(path: Path, svg: str) -> None:
    path.write_text(svg, encoding="utf-8", newline="")


def matrix(*, name: str, title: str, names: Sequence[str], cells: Sequence[Sequence[tuple[float, int] | None]]) -> str:
    """The share of each row's wins against each column's, with the number of judgements; ties half."""
    side = min(84.0, (WIDTH - LEFT - RIGHT) / max(len(names), 1))
    # Names that are wider than their column stand slanted above it, so that none of them is cut.
    slanted = max(map(len, names), default=0) * LETTER > side
    top = TOP + (LETTER * 0.75 * min(max(map(len, names)), LONGEST) if slanted else 0)
    height = top + 24 + side * len(names) + 16
    parts = _head(name, title, height)
    for place, one in enumerate(names):
        x, y = LEFT + side * (place + 0.5), top + 24 + side * (place + 0.5)
        turned = (
            f'text-anchor="start" transform="rotate(-45 {x:.1f} {top + 16:.1f})"' if slanted else 'text-anchor="middle"'
        )
        parts.append(f'<text x="{x:.1f}" y="{top + 16:.1f}" {turned} font-size="11">{escape(_short(one))}</text>')
        parts.append(
            f'<text x="{LEFT - 10}" y="{y:.1f}" text-anchor="end" dominant-baseline="middle">'
            f"{escape(_short(one))}</text>"
        )
    for row, line in enumerate(cells):
        for column, cell in enumerate(line):
            x, y = LEFT + side * column, top + 24 + side * row
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


def _short(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
