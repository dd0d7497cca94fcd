"""Charts as SVG: lines, points, histograms, bars, forests, and next to these a matrix and a flow of boxes.

The standard library alone, so that a web process draws them. The same data give the same text.
A chart holds no script, no style sheet and no address. What is not a series has the colour of the text around it
(`currentColor`), so that a page in dark colours needs nothing more. Series differ in their mark or dash too, for grey
prints. No name lies on another one: it is turned, moved, or shortened with the whole name as its tooltip. Each mark has
its number as its tooltip, an element `title` in it.
"""

import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from .figure import Figure
from .words import significant

WIDTH, EDGE = 560, 8  # narrow, so that letters stay legible where a phone shows it smaller
TITLE, TEXT, SMALL = 15, 13, 12  # sizes of letters
# Okabe and Ito's, which colour-blind people can distinguish. Their orange and yellow are one darker colour here, their
# black is the colour of the text, and their sky blue is left out: each has a contrast of 3 to 1 on white and on black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8d6e00", "currentColor")
DASHES = ("", "8 4", "2 3", "12 3 2 3", "5 2")
MARKS = (  # each from its middle
    "m-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z",  # a disc
    "m-4,-4h8v8h-8z",
    "m0,-5l5,9h-10z",
    "m0,-5.5l5.5,5.5l-5.5,5.5l-5.5,-5.5z",
    "m-5,-4h10l-5,9z",
    "m-1.5,-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",  # a cross
)
# So many marks of one chart are so large: few are large; many are small, and darker where they lie on each other.
SIZES = ((60, 1.0, 0.8), (400, 0.8, 0.75), (math.inf, 0.6, 0.7))  # at most so many, in parts of their size, opacity
# Of letters in parts of their size: no less than in Arial and Liberation Sans, and about as in DejaVu Sans.
NARROW, BROAD, FONTS = "fijlrtI.,:;'’|!()[] ·", "mwMW%@—…", "Arial, Liberation Sans, DejaVu Sans, sans-serif"
ARC = " 0 1,0 "
NUMBER = re.compile(r"-?\d*\.?\d+")
MAX_TARGETS = 24  # of a curve
UNDRAWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # XML has no place for them.
NOTHING = "There is nothing to draw: no figure is known."


# What charts are made of


@dataclass(frozen=True)
class Axis:
    """name: with its unit. share: fractions, written as percentages. includes: numbers that it shows at least.
    ticks: its only labels, as (value, words); without them it has round numbers. log: of values above 0."""

    name: str
    share: bool = False
    includes: Sequence[float] = ()
    ticks: Sequence[tuple[float, str]] = ()
    log: bool = False

    def said(self, value: float, ends: tuple[float, float] | None = None) -> str:
        """A number of this axis for a tooltip, with its interval; what stands at a named tick has its name."""
        named = next((name for place, name in self.ticks if place == value), "")
        if ends is None and named:
            return named
        if self.share:
            return Figure.between(value, ends, "share").in_words()
        text = significant(value)
        return text if ends is None else f"{text} [{', '.join(map(significant, ends))}]"


@dataclass(frozen=True)
class Line:
    """Points (x, y) in the order of x, which has an order: for names without one take bars.

    ends: the lower and the upper end at each point, or none at all.
    marked: each point is a measurement of its own, and its ends are whiskers; else it is a curve, and they are a band.
    reference: what the others are compared with, such as a diagonal. outline: that of a histogram, as `steps` makes
    it. What is no finite number is left out.
    """

    name: str
    points: Sequence[tuple[float, float]]
    ends: Sequence[tuple[float, float]] = ()
    marked: bool = True
    reference: bool = False
    outline: bool = False

    @classmethod
    def of(cls, name: str, figures: Iterable[tuple[float, Figure]]) -> "Line":
        """The value of a figure at each x, and its interval where it has one."""
        pairs = list(figures)
        points = [(x, figure.number) for x, figure in pairs]
        return cls(name, points, [figure.interval or (math.nan, math.nan) for _x, figure in pairs])

    @classmethod
    def steps(cls, name: str, edges: Sequence[float], shares: Sequence[float]) -> "Line":
        """The outline of a histogram, for several in one picture. edges: one more than shares."""
        tops = [(x, share) for ends, share in zip(pairwise(edges), shares, strict=True) for x in ends]
        return cls(name, [(edges[0], 0.0), *tops, (edges[-1], 0.0)], marked=False, outline=True)

    @classmethod
    def diagonal(cls, name: str) -> "Line":
        """From (0, 0) to (1, 1), to compare others with."""
        return cls(name, [(0.0, 0.0), (1.0, 1.0)], marked=False, reference=True)


@dataclass(frozen=True)
class ScatterPoint:
    """`name` stands next to it; `group` decides on colour and mark."""

    x: float
    y: float
    name: str = ""
    group: str = ""


class Bar(NamedTuple):
    """Of a histogram: from and to on x (equal: exactly this value), the share, and the ends of its interval or None."""

    low: float
    high: float
    share: float
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class ForestRow:
    """A name, a figure of each series, and words at the end of the row. Undefined figures are left out, and so is a row
    of these alone unless it has words."""

    name: str
    figures: Sequence[Figure]
    words: str = ""


# The charts


@dataclass(frozen=True, kw_only=True)
class Chart(ABC):
    """A subclass draws what stands below the title."""

    title: str

    def svg(self, name: str, text: str = "") -> str:
        """The picture.

        Args:
            name: a name that no other picture of the page has.
            text: what it shows, in words, for those who do not see it.
        """
        name = escape(re.sub(r"[^\w-]", "-", name))
        head, top = _lines_of_text(EDGE, 22, _wrapped(self.title, WIDTH - 2 * EDGE, TITLE), size=TITLE)
        parts, height = self._draw(top)
        described = f' aria-describedby="{name}-text"' if text else ""
        return "\n".join(
            [
                '<?xml version="1.0" encoding="utf-8"?>',
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {math.ceil(height)}" role="img" '
                f'aria-labelledby="{name}-title"{described} font-family="{FONTS}" font-size="{TEXT}" '
                'fill="currentColor">',
                f'<title id="{name}-title">{_safe(self.title)}</title>',
                *([f'<desc id="{name}-text">{_safe(text)}</desc>'] if text else []),
                *head,
                *parts,
                "</svg>",
                "",
            ]
        )

    def write(self, path: Path, *, name: str, text: str = "") -> None:
        path.write_text(self.svg(name, text), encoding="utf-8", newline="")

    @abstractmethod
    def _draw(self, top: float) -> tuple[list[str], float]:
        """The parts from `top` on, and where they end."""


@dataclass(frozen=True, kw_only=True)
class LineChart(Chart):
    x: Axis
    y: Axis
    lines: Sequence[Line]

    def _draw(self, top: float) -> tuple[list[str], float]:
        lines = [(line, points) for line in self.lines if (points := _finite_points(line))]
        if not lines:
            return _nothing(top)
        places = iter(range(len(lines)))
        styles = [_REFERENCE if line.reference else _style(next(places)) for line, _points in lines]
        many = len(lines) > len(DASHES)  # Dashes repeat then, so that lines without marks get a few.
        legend, top = _legend(
            [
                (style.line_sample(marked=line.marked or (many and not line.reference)), line.name)
                for (line, _points), style in zip(lines, styles, strict=True)
            ],
            top,
        )
        ends = [end for line, _points in lines for pair in line.ends for end in pair]
        xs = [x for _line, points in lines for x, _y in points]
        # Whiskers at the same place, such as those of a stage, stand side by side.
        beside = [line for line, _points in lines if line.marked and line.ends] if self.x.ticks else []
        apart = min(12.0, 0.6 * (WIDTH - 80) / (len(self.x.ticks) or 1) / len(lines)) if len(beside) > 1 else 0.0
        spread = apart * (len(beside) - 1) / 2
        ys = [y for _line, points in lines for _x, y in points] + ends
        plot = _Plot.of(self.x, self.y, xs, ys, top, 320, spread=spread)
        parts = [*legend, *plot.parts]
        size, _opacity = _size(sum(len(points) for line, points in lines if line.marked))
        for place, ((line, points), style) in enumerate(zip(lines, styles, strict=True)):
            aside = apart * beside.index(line) - spread if line in beside else 0.0
            at = [(plot.x.at(x) + aside, plot.y.at(y)) for x, y in points]
            parts.append(style.group(line.name))
            parts += plot.whiskers(line, aside) if line.marked else plot.band(line, min(0.14, 0.5 / len(lines)))
            if len(at) > 1 and (not line.marked or _stand_apart(at)):
                parts.append(_path("L".join(f"{x:.1f},{y:.1f}" for x, y in at), style.dash))
            if line.marked or len(at) == 1:
                ends_at = {x: (low, high) for x, low, high in _ends(line)}
                for (x, y), (across, up) in zip(points, at, strict=True):
                    parts.append(style.mark_at(across, up, size, self._said(line, x, y, ends_at.get(x))))
            elif not line.reference:
                parts += self._targets(line, points, at)
                if many:
                    every = max(1, len(at) // 5)
                    parts += [style.mark_at(x, y) for x, y in at[(place * every // len(lines)) :: every]]
            parts.append("</g>")
        return parts, plot.bottom

    def _said(self, line: Line, x: float, y: float, ends: tuple[float, float] | None = None) -> str:
        """A point in words."""
        return f"{line.name}; {self.x.said(x)}: {self.y.said(y, ends)}"

    def _targets(
        self, line: Line, points: Sequence[tuple[float, float]], at: Sequence[tuple[float, float]]
    ) -> Iterator[str]:
        """What a pointer finds on a curve, which has no marks: some of its points, or each bar of an outline."""
        if line.outline:
            for place in range(1, len(at) - 1, 2):
                (left, y), (right, _y) = at[place : place + 2]
                words = f"{line.name}; {self.x.said(points[place][0])} to {self.x.said(points[place + 1][0])}: "
                yield _target(left, y - 5, right - left, 10, words + self.y.said(points[place][1]))
            return
        every = math.ceil(len(at) / MAX_TARGETS)
        ends_at = {x: (low, high) for x, low, high in _ends(line)}
        for (x, y), (across, up) in zip(points[::every], at[::every], strict=True):
            yield _target(across - 6, up - 6, 12, 12, self._said(line, x, y, ends_at.get(x)))


@dataclass(frozen=True, kw_only=True)
class PointChart(Chart):
    """levels: horizontal lines over the whole width, by name."""

    x: Axis
    y: Axis
    points: Sequence[ScatterPoint]
    levels: Sequence[tuple[str, float]] = ()

    MAX_POINTS = 4000  # points without a name; of more, an equal part is left out

    def _draw(self, top: float) -> tuple[list[str], float]:
        usable = [point for point in self.points if _is_finite(point.x, point.y) and (point.x > 0 or not self.x.log)]
        levels = [(name, value) for name, value in self.levels if _is_finite(value)]
        if not usable:
            return _nothing(top)
        every = math.ceil(len(usable) / self.MAX_POINTS)
        named = [point for point in usable if point.name]
        points = named + [point for point in usable if not point.name][::every]
        groups = list(dict.fromkeys(point.group for point in points))
        styles = {group: _style(place) for place, group in enumerate(groups)}
        size, opacity = _size(len(points))
        names = [(styles[group].mark_at(14, 0), group) for group in groups if group]
        of_levels = [_style(len(groups) + place) for place in range(len(levels))]
        names += [(style.line_sample(), name) for style, (name, _value) in zip(of_levels, levels, strict=True)]
        legend, top = _legend(names, top)
        ys = [point.y for point in points] + [value for _name, value in levels]
        plot = _Plot.of(self.x, self.y, [point.x for point in points], ys, top, 340)
        parts = [*legend, *plot.parts]
        for (name, value), style in zip(levels, of_levels, strict=True):
            course = f"{plot.left:.1f},{plot.y.at(value):.1f}H{WIDTH - EDGE}"
            parts += [style.group(name), _path(course, style.dash), "</g>"]
        where = [(plot.x.at(point.x), plot.y.at(point.y)) for point in points]
        for group, style in styles.items():
            # What many points have alike stands at their group: a page of thousands stays small.
            parts.append(f'<g fill="{style.colour}" fill-opacity="{opacity:g}">')
            for point, (x, y) in zip(points, where, strict=True):
                if point.group == group and not point.name:
                    parts.append(style.mark_at(x, y, size, self._said(point), alone=False))
            parts.append("</g>")
        parts += [
            styles[point.group].mark_at(x, y, said=self._said(point))
            for point, (x, y) in zip(points, where, strict=True)
            if point.name
        ]
        bottom = plot.bottom
        if named:
            beside, key = plot.names_beside(where[: len(named)], [point.name for point in named])
            parts += beside
            listed, bottom = _legend(key, bottom + 12)
            parts += listed
        if every > 1:
            words = f"One of {every} points is drawn, of {len(usable):,}."
            parts.append(_text(plot.left, bottom + 12, words, size=SMALL))
            bottom += 20
        return parts, bottom

    def _said(self, point: ScatterPoint) -> str:
        """A point in words; of an axis only its numbers, so that a page of thousands stays small."""
        name = ", ".join(filter(None, (point.name, point.group)))
        return f"{name}: {self.x.said(point.x)}, {self.y.said(point.y)}".removeprefix(": ")


@dataclass(frozen=True, kw_only=True)
class HistogramChart(Chart):
    """A panel below the other, each with its own x. x: the name of the axis of all; y: what a share is of."""

    x: str
    y: str
    panels: Mapping[str, Sequence[Bar]]

    def _draw(self, top: float) -> tuple[list[str], float]:
        panels = {name: bars for name, bars in self.panels.items() if bars}
        if not panels:
            return _nothing(top)
        parts: list[str] = []
        for place, (name, bars) in enumerate(panels.items()):
            parts.append(_text(EDGE, top + 6, name, room=WIDTH - 2 * EDGE))
            ends = [end for bar in bars if bar.ends for end in bar.ends]
            x = Axis(self.x if place == len(panels) - 1 else "")
            y = Axis(self.y, share=True, includes=(0.0,))
            xs = [end for bar in bars for end in (bar.low, bar.high)]
            plot = _Plot.of(x, y, xs, [bar.share for bar in bars] + ends, top + 20, 150, tight=True)
            parts += plot.parts
            for bar in bars:
                parts += plot.bar(bar, name)
            top = plot.bottom + 14
        return parts, top - 14


@dataclass(frozen=True, kw_only=True)
class ForestChart(Chart):
    """Each row's figures with their intervals: a mark on a line. mark_at: where a dashed line stands, such as 0."""

    x: Axis
    rows: Sequence[ForestRow]
    series: Sequence[str] = ("",)
    mark_at: float | None = None

    bars = False

    def _draw(self, top: float) -> tuple[list[str], float]:
        rows = [row for row in self.rows if row.words or any(figure.is_defined for figure in row.figures)]
        numbers = [
            *(
                end
                for row in rows
                for figure in row.figures
                if figure.is_defined
                for end in (figure.value, figure.low, figure.high)
            ),
            *([0.0] if self.bars else []),
            *([] if self.mark_at is None else [self.mark_at]),
        ]
        if not rows:
            return _nothing(top)
        styles = [_style(place) for place in range(max(len(row.figures) for row in rows))]
        named = zip(styles, self.series, strict=False) if len(self.series) > 1 else ()
        legend, top = _legend([(self._sample(style), name) for style, name in named], top)
        # Long names make room for themselves, so that two that begin alike can be distinguished.
        names = [row.name for row in rows]
        most = WIDTH / 2 if _stay_apart(names, WIDTH / 2 - EDGE - 12, TEXT) else WIDTH * 2 / 3
        left = min(_widest(names, TEXT) + EDGE + 13, most)
        right = WIDTH - EDGE - 12 - _widest([row.words for row in rows], SMALL)
        tall = max(26.0, 11 * len(styles) + 12)
        bottom = top + tall * len(rows)
        x = _Scale.of(self.x, [end for end in numbers if end is not None], left, right - 8)
        parts = [*legend]
        for value, _words in x.ticks:
            parts.append(_path(f"{x.at(value):.1f},{top:.1f}V{bottom:.1f}", faint=True))
        if self.mark_at is not None:
            parts.append(_path(f"{x.at(self.mark_at):.1f},{top:.1f}V{bottom:.1f}", "4 3", width=1, colour=True))
        for number, row in enumerate(rows):
            y = top + tall * (number + 0.5)
            parts.append(_text(left - 12, y + 4, row.name, anchor="end", room=left - 12 - EDGE))
            if row.words:
                parts.append(_text(right + 12, y + 4, row.words, size=SMALL))
            for place, (style, figure) in enumerate(zip(styles, row.figures, strict=False)):
                if figure.is_defined:
                    aside = 11 * (place - (len(styles) - 1) / 2)
                    name = ", ".join(filter(None, (row.name, dict(enumerate(self.series)).get(place, ""))))
                    parts += self._figure(figure, style, x, y + aside, name)
        below, height = _under(x, bottom, left, right)
        return [*parts, *below], height

    def _figure(self, figure: Figure, style: "_Style", x: "_Scale", y: float, name: str) -> Iterator[str]:
        value = x.at(figure.value or 0.0)
        yield style.group(f"{name}: {self.x.said(figure.number, figure.interval)}")
        if self.bars:
            yield f'<path d="M{x.at(0.0):.1f},{y - 4:.1f}H{value:.1f}v8H{x.at(0.0):.1f}z" fill-opacity="0.35"/>'
        if figure.interval is not None:
            low, high = map(x.at, figure.interval)
            yield _path(f"{low:.1f},{y:.1f}H{high:.1f}M{low:.1f},{y - 3:.1f}v6M{high:.1f},{y - 3:.1f}v6", width=1.6)
        yield f"{style.mark_at(value, y)}</g>"

    def _sample(self, style: "_Style") -> str:
        inside = '<path d="M0,-4h14v8h-14z" fill-opacity="0.35"/>' if self.bars else _path("2,0H26", width=1.6)
        return f"{style.group()}{inside}{style.mark_at(14, 0)}</g>"


@dataclass(frozen=True, kw_only=True)
class BarChart(ForestChart):
    """Bars from 0 to each figure, lying, so that names have room: for what has no order, where a line would say one."""

    bars = True


@dataclass(frozen=True, kw_only=True)
class MatrixChart(Chart):
    """A share for each row and column, with the number that it is of; None: not known. The fuller, the higher."""

    names: Sequence[str]
    cells: Sequence[Sequence[tuple[float, int] | None]]

    def _draw(self, top: float) -> tuple[list[str], float]:
        if not self.names:
            return _nothing(top)
        count = len(self.names)
        left = min(_widest(self.names, TEXT) + EDGE + 10, 240.0)
        side = min(84.0, (WIDTH - left - 40) / count)
        numbered = side < 22  # There is no room for names above such columns: they have the numbers of the rows.
        rows = [f"{place} {name}" for place, name in enumerate(self.names, start=1)] if numbered else self.names
        if numbered:
            side = min(12.5, (WIDTH - 70 - EDGE) / count)
            left = min(_widest(rows, SMALL) + EDGE + 10, WIDTH - EDGE - side * count)
        samples = [(_shade(share, 0, -7, 28, 14), f"{100 * share:.0f} %") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        parts, top = _legend(samples, top)
        turned = not numbered and _widest(self.names, SMALL) > side - 4
        top += 0.78 * min(150.0, _widest(self.names, SMALL)) + 14 if turned else 14
        every = math.ceil(12.5 / side)
        for place in range(0, count, every):
            x, y, name = left + side * (place + 0.5), top + side * (place + 0.5), self.names[place]
            parts.append(_text(left - 10, y + 4, rows[place], anchor="end", size=SMALL, room=left - 10 - EDGE))
            if turned:  # What leans over the right edge is shorter.
                room = min(150.0, (WIDTH - EDGE - x) / 0.62)
                parts.append(_text(x, top - 6, name, size=SMALL, room=room, turn=-52))
            else:
                head = str(place + 1) if numbered else name
                parts.append(_text(x, top - 6, head, anchor="middle", size=9 if numbered else SMALL))
        for row, line in enumerate(self.cells):
            for column, cell in enumerate(line):
                if cell is not None:
                    parts += self._cell(row, column, *cell, left + side * column, top + side * row, side)
        return parts, top + side * count + EDGE

    def _cell(self, row: int, column: int, share: float, n: int, x: float, y: float, side: float) -> Iterator[str]:
        said = f"{self.names[row]}, {self.names[column]}: {100 * share:.0f} % of {n:,}"
        yield f"<g><title>{_safe(said)}</title>{_shade(share, x, y, side, side)}</g>"
        middle, size = x + side / 2, min(TEXT, side / 2.2)
        if side >= 52:
            yield _text(middle, y + side / 2, f"{100 * share:.0f} %", anchor="middle")
            yield _text(middle, y + side / 2 + 15, f"of {n:,}", anchor="middle", size=11)
        elif side >= 22:  # Smaller numbers could not be read; the file and the tooltip have them.
            yield _text(middle, y + side / 2 + size / 3, f"{100 * share:.0f}", anchor="middle", size=size)


@dataclass(frozen=True, kw_only=True)
class FlowChart(Chart):
    """Boxes from top to bottom. steps: words, and whether they are about those who go on; the others stand aside."""

    steps: Sequence[tuple[str, bool]]

    def _draw(self, top: float) -> tuple[list[str], float]:
        parts: list[str] = []
        last = top
        for number, (words, on) in enumerate(self.steps):
            x = 10 if on else 90
            lines = _wrapped(words, WIDTH - x - 40, TEXT)
            tall = 20 + 17 * len(lines)
            middle = top + tall / 2
            if number:
                course = f"V{top:.1f}" if on else f"V{middle:.1f}H{x}"
                parts.append(_path(f"40,{last:.1f}{course}", width=1, colour=True))
            last = top + tall if on else middle
            parts.append(
                f'<rect x="{x}" y="{top:.1f}" width="{WIDTH - x - 10}" height="{tall}" rx="4" fill="none" '
                f'stroke="currentColor" stroke-width="{2 if on else 1}"/>'
            )
            parts += _lines_of_text(x + 14, top + 23, lines)[0]
            top += tall + 14
        return parts, top


# Styles, scales and the plot


@dataclass(frozen=True)
class _Style:
    colour: str
    mark: str
    dash: str

    def group(self, said: str = "") -> str:
        """What it holds has this colour, and these words as its tooltip."""
        title = f"<title>{_safe(said)}</title>" if said else ""
        return f'<g stroke="{self.colour}" fill="{self.colour}">{title}'

    def mark_at(self, x: float, y: float, size: float = 1.0, said: str = "", *, alone: bool = True) -> str:
        """said: its tooltip. alone: not in a group that has its colour and no outline."""
        course = f'd="M{x:.1f},{y:.1f}{_scaled(self.mark, size)}"'
        looks = f' fill="{self.colour}" stroke="none"' if alone else ""
        return f"<path {course}{looks}><title>{_safe(said)}</title></path>" if said else f"<path {course}{looks}/>"

    def line_sample(self, *, marked: bool = False) -> str:
        return f"{self.group()}{_path('0,0h28', self.dash)}{self.mark_at(14, 0) if marked else ''}</g>"


_REFERENCE = _Style("currentColor", MARKS[0], "3 4")


@cache
def _scaled(mark: str, size: float) -> str:
    """A mark in parts of its size; what says which arc of a circle is drawn is no length."""
    lengths = mark.split(ARC)
    return ARC.join(NUMBER.sub(lambda number: f"{size * float(number[0]):.3g}", part) for part in lengths)


def _size(count: int) -> tuple[float, float]:
    """Of each of so many marks: its size and its opacity."""
    return next((size, opacity) for most, size, opacity in SIZES if count <= most)


def _style(place: int) -> _Style:
    """Colour and mark together are another pair for each of 36 places, and colour and dash for each of 30."""
    turn = place + place // len(COLOURS)
    return _Style(COLOURS[place % len(COLOURS)], MARKS[turn % len(MARKS)], DASHES[turn % len(DASHES)])


@dataclass(frozen=True)
class _Scale:
    """Where numbers stand in the picture. `low` and `high` are logarithms where the axis is logarithmic."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[tuple[float, str]]

    @classmethod
    def of(cls, axis: Axis, values: Iterable[float], start: float, end: float, *, tight: bool = False) -> "_Scale":
        """tight: it ends with the values, and not at a round number."""
        numbers = [
            number
            for number in (*values, *axis.includes, *(x for x, _words in axis.ticks))
            if _is_finite(number) and (number > 0 or not axis.log)
        ]
        low, high = min(numbers, default=1.0 if axis.log else 0.0), max(numbers, default=1.0)
        if axis.log:
            steps = _log_steps(math.log10(low), math.log10(high))
            ticks = [(10**step, _number(10**step)) for step in steps]
            return cls(axis, steps[0], steps[-1], start, end, ticks)
        if axis.ticks:
            return cls(axis, low, high, start, end, [(x, re.sub(r"^-(?=\d)", "−", name)) for x, name in axis.ticks])
        if axis.share and low == high and 0 <= low <= 1:
            low, high = 0.0, 1.0
        steps = _round_steps(low, high)
        factor, unit = (100, " %") if axis.share else (1, "")
        digits = max(0, -math.floor(math.log10(factor * (steps[1] - steps[0])) + 1e-9))
        ticks = [(step, f"{factor * step + 0.0:,.{digits}f}{unit}".replace("-", "−")) for step in steps]
        if tight:
            ticks = [(step, words) for step, words in ticks if low <= step <= high]
            return cls(axis, low, high, start, end, ticks)
        return cls(axis, steps[0], steps[-1], start, end, ticks)

    def at(self, value: float) -> float:
        """What is endless stands at the axis's end."""
        if self.axis.log:
            value = math.log10(value) if value > 0 else self.low
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))


@dataclass(frozen=True)
class _Plot:
    """Two axes. bottom: where the picture goes on below them."""

    x: _Scale
    y: _Scale
    left: float
    top: float
    bottom: float
    parts: Sequence[str]

    @classmethod
    def of(
        cls,
        x: Axis,
        y: Axis,
        xs: Sequence[float],
        ys: Sequence[float],
        top: float,
        tall: float,
        *,
        tight: bool = False,
        spread: float = 0.0,
    ) -> "_Plot":
        """spread: how far marks stand next to their place, on either side."""
        up = _Scale.of(y, ys, top + tall, top)
        left = 38 + _widest([words for _value, words in up.ticks], SMALL)
        across = _Scale.of(x, xs, left + 14 + spread, WIDTH - EDGE - 14 - spread, tight=tight)
        parts = []
        for value, words in up.ticks:
            at = up.at(value)
            parts.append(_path(f"{left:.1f},{at:.1f}H{WIDTH - EDGE}", faint=True))
            parts.append(_text(left - 6, at + 4, words, anchor="end", size=SMALL))
        for value, _words in across.ticks:
            parts.append(_path(f"{across.at(value):.1f},{top + tall:.1f}v5", width=1, colour=True))
        parts.append(_text(16, top + tall / 2, y.name, anchor="middle", room=tall + 20, turn=-90))
        below, bottom = _under(across, top + tall, left, WIDTH - EDGE)
        return cls(across, up, left, top, bottom, [*parts, *below])

    def band(self, line: Line, opacity: float) -> Iterator[str]:
        ends = _ends(line)
        if len(ends) > 1:
            there = [f"{self.x.at(x):.1f},{self.y.at(high):.1f}" for x, _low, high in ends]
            back = [f"{self.x.at(x):.1f},{self.y.at(low):.1f}" for x, low, _high in reversed(ends)]
            yield f'<path d="M{"L".join([*there, *back])}Z" fill-opacity="{opacity:.2g}" stroke="none"/>'

    def whiskers(self, line: Line, aside: float) -> Iterator[str]:
        for x, low, high in _ends(line):
            at, below, above = self.x.at(x) + aside, self.y.at(low), self.y.at(high)
            yield _path(
                f"{at:.1f},{below:.1f}V{above:.1f}M{at - 4:.1f},{below:.1f}h8M{at - 4:.1f},{above:.1f}h8", width=1.4
            )

    def bar(self, bar: Bar, name: str) -> Iterator[str]:
        values = self.x.axis.said(bar.low) + ("" if bar.low == bar.high else f" to {self.x.axis.said(bar.high)}")
        yield f"<g><title>{_safe(f'{name}; {values}: {self.y.axis.said(bar.share, bar.ends)}')}</title>"
        exact, floor = bar.low == bar.high, self.y.at(0.0)
        left = self.x.at(bar.low) - 4 if exact else self.x.at(bar.low) + 1
        right = self.x.at(bar.high) + 4 if exact else self.x.at(bar.high) - 1
        yield (
            f'<path d="M{left:.1f},{floor:.1f}V{self.y.at(bar.share):.1f}H{right:.1f}V{floor:.1f}Z" '
            f'fill="{COLOURS[0]}" fill-opacity="{0.95 if exact else 0.55}"/>'
        )
        if bar.ends is not None:
            low, high, at = self.y.at(bar.ends[0]), self.y.at(bar.ends[1]), (left + right) / 2
            yield _path(
                f"{at:.1f},{low:.1f}V{high:.1f}M{at - 3:.1f},{low:.1f}h6m-6,{high - low:.1f}h6", width=1, colour=True
            )
        yield "</g>"

    def names_beside(
        self, where: Sequence[tuple[float, float]], names: Sequence[str]
    ) -> tuple[list[str], list[tuple[str, str]]]:
        """The names next to their points. Where they do not all find room: numbers, and the key to these."""
        boxes = self._free(where, names)
        if any(box is None for box in boxes):
            numbers = [str(place) for place in range(1, len(names) + 1)]
            key = [
                (_text(24, 4, number, anchor="end", size=SMALL), name)
                for number, name in zip(numbers, names, strict=True)
            ]
            return self._beside(where, numbers, self._free(where, numbers)), key
        return self._beside(where, names, boxes), []

    def _free(self, where: Sequence[tuple[float, float]], names: Sequence[str]) -> list["_Box | None"]:
        """The nearest free place for each, on no other name or mark."""
        taken = [_Box(x - 6, y - 6, x + 6, y + 6) for x, y in where]
        boxes: list[_Box | None] = [None] * len(names)
        for place in sorted(range(len(names)), key=lambda index: (where[index][1], where[index][0], names[index])):
            (x, y), width = where[place], _wide(names[place], SMALL)
            for aside, lift in WAYS:
                begin = x + 9 + aside if aside >= 0 else x - 8 - width + aside
                begin = max(min(begin, WIDTH - 2 - width), self.left)
                box = _Box(begin, y + lift - 7, begin + width, y + lift + 7)
                inside = box.right <= WIDTH and self.top - 6 <= box.top and box.bottom <= self.y.start
                if inside and not any(box.touches(other) for other in taken):
                    boxes[place] = box
                    taken.append(box)
                    break
        return boxes

    @staticmethod
    def _beside(
        where: Sequence[tuple[float, float]], names: Sequence[str], boxes: Sequence["_Box | None"]
    ) -> list[str]:
        parts = []
        for (x, y), name, box in zip(where, names, boxes, strict=True):
            if box is None:
                continue  # The point's tooltip has its name.
            middle = (box.top + box.bottom) / 2
            if abs(middle - y) > 13 or box.left - x > 10 or x - box.right > 10:
                edge = box.left - 1 if box.left > x else min(box.right + 1, x)
                parts.append(_path(f"{x:.1f},{y:.1f}L{edge:.1f},{middle:.1f}", faint=True))
            parts.append(_text(box.left, middle + 4, name, size=SMALL))
        return parts


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: "_Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


# Where a name may stand, the nearest place first: so far next to its point (below 0: to its left) and above or below
# it.
WAYS = sorted(
    ((aside, lift * 14) for aside in (0, -1, 40, -41, 90, -91, 150, -151, 240, -241) for lift in range(-24, 25)),
    key=lambda way: (abs(way[0]) / 2 + abs(way[1]), way[0] < 0, way[1]),
)


def _under(x: _Scale, y: float, left: float, right: float) -> tuple[list[str], float]:
    """The labels under a horizontal axis and its name, and where these end. Labels that would touch are turned if they
    are words, and only some are shown if they are numbers or still touch."""
    labels = [(x.at(value), words) for value, words in x.ticks]
    boxes = [
        (min(max(at, _wide(words, SMALL) / 2 + 2), WIDTH - _wide(words, SMALL) / 2 - 2), words) for at, words in labels
    ]
    is_named = _widest([words for _at, words in boxes], SMALL) > 48 and bool(x.axis.ticks)
    turned = is_named and _touch([(at, _wide(words, SMALL) + 8) for at, words in boxes])
    width = 17.0 if turned else None
    every = next(
        step
        for step in range(1, len(boxes) + 1)
        if not _touch([(at, width or _wide(words, SMALL) + 8) for at, words in (labels if turned else boxes)[::step]])
        or step == len(boxes)
    )
    parts, tall = [], 18.0
    if turned:
        for at, words in labels[::every]:
            room = min(150.0, (at - 4) / 0.77)
            parts.append(_text(at + 4, y + 16, words, anchor="end", size=SMALL, room=room, turn=-40))
            tall = max(tall, 18 + 0.65 * min(room, _wide(words, SMALL)))
    else:
        parts = [_text(at, y + 18, words, anchor="middle", size=SMALL) for at, words in boxes[::every]]
    if not x.axis.name:
        return parts, y + tall + 8
    middle, lines = (left + right) / 2, _wrapped(x.axis.name, WIDTH - 2 * EDGE, TEXT)
    half = _widest(lines, TEXT) / 2
    middle = min(max(middle, half + EDGE), WIDTH - EDGE - half)
    named, bottom = _lines_of_text(middle, y + tall + 20, lines, anchor="middle")
    return [*parts, *named], bottom - 6


def _touch(labels: Sequence[tuple[float, float]]) -> bool:
    """Whether any of these (middle, width) lies on the next one."""
    ordered = sorted(labels)
    return any(second - first < (wide + wider) / 2 for (first, wide), (second, wider) in pairwise(ordered))


# Texts and paths


def _legend(samples: Sequence[tuple[str, str]], top: float) -> tuple[list[str], float]:
    """Samples, drawn around (14, 0), each with its name, in as many columns as the longest name leaves room for; and
    where they end."""
    if not samples:
        return [], top
    room = WIDTH - 2 * EDGE
    names = [name for _sample, name in samples]
    columns = int(min(len(names), max(1 if len(names) <= 12 else 2, room // (_widest(names, SMALL) + 48))))
    if not _stay_apart(names, room / columns - 40, SMALL):
        columns = 1
    parts = []
    for place, (sample, name) in enumerate(samples):
        x, y = EDGE + room / columns * (place % columns), top + 6 + 18 * (place // columns)
        parts.append(f'<g transform="translate({x:.1f},{y:.1f})">{sample}</g>')
        parts.append(_text(x + 36, y + 4, name, size=SMALL, room=room / columns - 40))
    return parts, top + 14 + 18 * math.ceil(len(samples) / columns)


def _lines_of_text(
    x: float, y: float, lines: Sequence[str], *, anchor: str = "start", size: int = TEXT
) -> tuple[list[str], float]:
    parts = [_text(x, y + (size + 4) * place, line, anchor=anchor, size=size) for place, line in enumerate(lines)]
    return parts, y + (size + 4) * (len(lines) - 1) + 18


def _text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: float = TEXT,
    room: float | None = None,
    turn: int = 0,
) -> str:
    """room: its width; what is wider is shortened, and the whole is its tooltip."""
    short = words if room is None else _short(words, room, size)
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    letters = "" if size == TEXT else f' font-size="{size:.3g}"'
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    text = f'<text x="{x:.1f}" y="{y:.1f}"{placed}{letters}{turned}>{_safe(short)}</text>'
    return text if short == words else f"<g><title>{_safe(words)}</title>{text}</g>"


def _safe(words: str) -> str:
    return escape(UNDRAWABLE.sub("\ufffd", words))


def _path(course: str, dash: str = "", *, width: float = 2, faint: bool = False, colour: bool = False) -> str:
    """A line without a filling. faint: of the grid; colour: of the text, else of the group around it."""
    if faint:
        return f'<path d="M{course}" fill="none" stroke="currentColor" stroke-opacity="0.25"/>'
    own = ' stroke="currentColor"' if colour else ""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="M{course}" fill="none"{own} stroke-width="{width:g}"{dashed}/>'


def _target(x: float, y: float, width: float, height: float, said: str) -> str:
    """What is not seen, and has a tooltip."""
    return (
        f'<path d="M{x:.1f},{y:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z" stroke="none" fill-opacity="0">'
        f"<title>{_safe(said)}</title></path>"
    )


def _shade(share: float, x: float, y: float, width: float, height: float) -> str:
    """Darker on white, and brighter on black, the higher the share; text on it stays legible."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{COLOURS[0]}" '
        f'fill-opacity="{0.6 * min(1.0, max(0.0, share)):.2f}" stroke="currentColor" stroke-opacity="0.3"/>'
    )


def _wide(words: str, size: float) -> float:
    """About the width of a text."""
    return size * sum(_letter(letter) for letter in words)


def _widest(names: Iterable[str], size: float) -> float:
    return max(_wide(name, size) for name in names)


def _stay_apart(names: Sequence[str], room: float, size: float) -> bool:
    """Whether names that differ still do when they are shortened."""
    return len({_short(name, room, size) for name in names}) == len(set(names))


def _letter(letter: str) -> float:
    if letter in NARROW:
        return 0.38
    if letter in BROAD:
        return 0.95
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    return 0.7 if letter.isupper() else 0.6


def _short(words: str, room: float, size: float) -> str:
    """With its middle left out: names of models differ at both ends."""
    if _wide(words, size) <= room:
        return words
    for length in range(len(words) - 1, 0, -1):
        begin = (length + 1) // 2
        cut = f"{words[:begin].rstrip()}…{words[len(words) - length + begin :].lstrip()}"
        if _wide(cut, size) <= room:
            return cut
    return "…"


def _wrapped(words: str, room: float, size: float) -> list[str]:
    """In lines; a single word that is too long is shortened."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if _wide(longer, size) <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return [_short(line, room, size) for line in lines]


def _nothing(top: float) -> tuple[list[str], float]:
    return [_text(EDGE, top + 20, NOTHING)], top + 40


# Numbers


def _is_finite(*values: float | None) -> bool:
    return all(value is not None and math.isfinite(value) for value in values)


def _finite_points(line: Line) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in line.points if _is_finite(x, y)]


def _stand_apart(at: Sequence[tuple[float, float]]) -> bool:
    """Whether no mark stands above or below the next one, where a line between them would run straight down."""
    return all(abs(second - first) >= 6 for (first, _y), (second, _up) in pairwise(at))


def _ends(line: Line) -> list[tuple[float, float, float]]:
    """x with the two ends there, where all are known."""
    return [
        (x, low, high)
        for (x, y), (low, high) in zip(line.points, line.ends, strict=False)
        if _is_finite(x, y, low, high)
    ]


def _round_steps(low: float, high: float) -> list[float]:
    """Round numbers, three to eight of them, of which the first is not above `low` and the last not below `high`."""
    span = high - low
    is_single = span <= 1e-9 * max(abs(low), abs(high))  # They are equal but for rounding, or both 0.
    span = abs(high) or 1.0 if is_single else span
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if is_single:  # A lone tick says nothing of the distance from it.
        first, last = first - (low != 0), last + 1
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]


def _log_steps(low: float, high: float) -> list[float]:
    """The logarithms of round numbers around these: powers of ten, and twos and fives between few of them."""
    if high - low < 1e-9:  # A lone tick says nothing of the distance from it.
        low, high = low - math.log10(2), high + math.log10(2)
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
