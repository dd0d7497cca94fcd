"""What every chart must hold, read from its SVG, and charts of the same kind with other numbers of names and points."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from xml.etree import ElementTree

from survey.figures.charts import (
    WIDTH,
    Axis,
    Chart,
    FlowChart,
    ForestChart,
    HistogramChart,
    LineChart,
    MatrixChart,
    PointChart,
    ScatterPoint,
)

SVG = "{http://www.w3.org/2000/svg}"
LIGHT, DARK = "#ffffff", "#212121"  # the backgrounds of the admin's pages
SMALLEST = 5.0  # units of a mark's drawing; about as many pixels of a page
NUMBER = re.compile(r"−?[\d,]*\.?\d+( %)?")
MARK = re.compile(r"M[-\d.]+,[-\d.]+(m.+z)")
LETTER = 0.5  # the width of a letter in parts of its size


@dataclass(frozen=True)
class Label:
    """A text of a picture, with the corners of its box, the side at which it begins or ends, and its baseline."""

    words: str
    corners: tuple[tuple[float, float], ...]
    anchor: str
    x: float
    y: float
    turn: float

    def touches(self, other: "Label") -> bool:
        """Whether the two boxes lie on each other, turned ones too: no line separates them."""
        if not (self.turn or other.turn):
            (left, top), (right, bottom) = self.corners[0], self.corners[2]
            (other_left, other_top), (other_right, other_bottom) = other.corners[0], other.corners[2]
            return left < other_right and other_left < right and top < other_bottom and other_top < bottom
        for one in (self, other):
            for (x1, y1), (x2, y2) in pairwise([*one.corners, one.corners[0]]):
                normal = (y1 - y2, x2 - x1)
                mine = [x * normal[0] + y * normal[1] for x, y in self.corners]
                others = [x * normal[0] + y * normal[1] for x, y in other.corners]
                if max(mine) <= min(others) + 1e-6 or max(others) <= min(mine) + 1e-6:
                    return False
        return True


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - our own


def mark_of(path: ElementTree.Element) -> str:
    """The shape of a mark; empty if the path is none."""
    mark = MARK.fullmatch(path.get("d", ""))
    return mark[1] if mark else ""


def labels(element: ElementTree.Element, right: float = 0.0, down: float = 0.0) -> Iterator[Label]:
    """Every text, by letters that are half as wide as they are high."""
    transform = element.get("transform", "")
    moved = re.fullmatch(r"translate\(([-\d.]+),([-\d.]+)\)", transform)
    if moved:
        right, down = right + float(moved[1]), down + float(moved[2])
    if element.tag != f"{SVG}text":
        for inner in element:
            yield from labels(inner, right, down)
        return
    x, y, words = float(element.get("x", 0)) + right, float(element.get("y", 0)) + down, element.text or ""
    size, anchor = float(element.get("font-size", 13)), element.get("text-anchor", "start")
    width = LETTER * size * len(words)
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    turned = re.match(r"rotate\((-?\d+)", transform)
    angle = math.radians(float(turned[1])) if turned else 0.0
    sides = [(left, y - 0.7 * size), (left + width, y - 0.7 * size), (left + width, y), (left, y)]
    corners = tuple(
        (
            x + (across - x) * math.cos(angle) - (up - y) * math.sin(angle),
            y + (across - x) * math.sin(angle) + (up - y) * math.cos(angle),
        )
        for across, up in sides
    )
    yield Label(words, corners, anchor, x, y, angle)


def faults(chart: Chart) -> list[str]:
    """What is wrong with its picture, in words; empty if nothing is."""
    root = parsed(chart.svg("toy", "What it shows."))
    named = {words for axis in (getattr(chart, "x", None), getattr(chart, "y", None)) for words in _named(axis)}
    ticks = () if isinstance(chart, MatrixChart) else _uneven_ticks(root, named)
    return [*_on_each_other(root), *ticks, *_small_or_silent_marks(root), *_pale_colours(root)]


def _named(axis: object) -> list[str]:
    return [words for _value, words in axis.ticks] if isinstance(axis, Axis) else []


def _on_each_other(root: ElementTree.Element) -> Iterator[str]:
    height = float(root.get("viewBox", "").split()[3])
    placed = list(labels(root))
    for label in placed:
        if any(not (-0.1 <= x <= WIDTH + 0.1 and -0.1 <= y <= height + 0.1) for x, y in label.corners):
            yield f"{label.words!r} is cut"
    for first, second in combinations(placed, 2):
        if first.touches(second):
            yield f"{first.words!r} lies on {second.words!r}"


def _uneven_ticks(root: ElementTree.Element, named: set[str]) -> Iterator[str]:
    """Numbers below each other at one side, or next to each other on one line, are ticks: round, and evenly apart, or
    round each where the axis is logarithmic."""
    axes = defaultdict(list)
    for label in labels(root):
        if NUMBER.fullmatch(label.words) and not label.turn and label.words.replace("−", "-") not in named:
            side = ("x", label.y) if label.anchor == "middle" else ("y", label.x) if label.anchor == "end" else None
            if side is not None:
                axes[side].append(float(re.sub("[ %,]", "", label.words.replace("−", "-"))))
    for side, values in axes.items():
        if len(values) < 2:
            continue
        ordered = sorted(set(values))
        steps = [second - first for first, second in pairwise(ordered)]
        is_even = max(steps) - min(steps) <= 1e-6 * max(map(abs, ordered)) and _is_round(steps[0])
        if not is_even and not all(_is_round(value) for value in values):
            yield f"the ticks {values} of the axis at {side} are not round"


def _is_round(value: float) -> bool:
    """1, 2, 3 or 5 with noughts; several of the smallest step are skipped where there is no room."""
    first = f"{abs(value):.6e}"
    return value == 0 or float(first.split("e")[0]) in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)


def _small_or_silent_marks(root: ElementTree.Element) -> Iterator[str]:
    parents = {inner: element for element in root.iter() for inner in element}
    for path in root.iter(f"{SVG}path"):
        mark = mark_of(path)
        if not mark:
            continue
        begin = re.match(r"m([-\d.]+),([-\d.]+)", mark)  # from its middle to its edge
        size = 2 * max(abs(float(part)) for part in begin.groups()) if begin else 0.0
        if size < SMALLEST:
            yield f"a mark is {size:.1f} units large"
        above = [parents[path], parents.get(parents[path], root)]
        if any("translate" in element.get("transform", "") for element in above):
            continue  # a sample of the legend
        titles = [] if above[0] is root else [above[0].find(f"{SVG}title")]
        titles.append(path.find(f"{SVG}title"))
        if not any(title is not None and re.search(r"\d|∞", title.text or "") for title in titles):
            yield "a mark does not say its number"


def _pale_colours(root: ElementTree.Element) -> Iterator[str]:
    for colour in {element.get(name, "") for element in root.iter() for name in ("fill", "stroke")}:
        if colour.startswith("#"):
            for background in (LIGHT, DARK):
                if contrast(colour, background) < 3:
                    yield f"{colour} has too little contrast on {background}"
    for element in root.iter(f"{SVG}g"):
        opacity, colour = float(element.get("fill-opacity", 1)), element.get("fill", "")
        if colour.startswith("#"):
            for background in (LIGHT, DARK):
                if contrast(blended(colour, background, opacity), background) < 2:
                    yield f"{colour} at {opacity} is not seen on {background}"


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """As WCAG 2 has it, from 1 to 21."""
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def blended(colour: str, background: str, opacity: float) -> str:
    pairs = [(int(colour[at : at + 2], 16), int(background[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * above + (1 - opacity) * below):02x}" for above, below in pairs)


# The same chart of other sizes


def names(count: int) -> list[str]:
    """Some of them long, and alike at both ends."""
    return [f"maker/model-{n}-{'of-seventy-billion-that-chats' if n % 3 else 'small'}-it" for n in range(count)]


def with_names(chart: Chart, count: int) -> Chart:
    """A chart as it would be of so many models, from what it has of few."""
    own = names(count)
    if isinstance(chart, LineChart):
        lines = [line for line in chart.lines if line.points]
        if not lines:
            return chart
        fitting = [replace(_of(lines, place), name=name) for place, name in enumerate(own)]
        return replace(chart, lines=[_moved(line, 1 + place / 50) for place, line in enumerate(fitting)])
    if isinstance(chart, PointChart):
        named = [replace(_of(chart.points, place), name=name) for place, name in enumerate(own)]
        grouped = [replace(point, group=own[place % count]) for place, point in enumerate(chart.points)]
        return replace(chart, points=named if any(point.name for point in chart.points) else grouped)
    if isinstance(chart, ForestChart):
        return replace(chart, rows=[replace(_of(chart.rows, place), name=name) for place, name in enumerate(own)])
    if isinstance(chart, MatrixChart):
        size = len(chart.names)
        cells = [[None if i == j else chart.cells[i % size][j % size] for j in range(count)] for i in range(count)]
        return replace(chart, names=own, cells=cells)
    if isinstance(chart, HistogramChart):
        panels = list(chart.panels.values())
        return replace(chart, panels={name: _of(panels, place) for place, name in enumerate(own[:12])})
    if isinstance(chart, FlowChart):
        return replace(chart, steps=[_of(chart.steps, place) for place in range(count)])
    raise TypeError(f"{type(chart).__name__}: say what it is with many names")


def with_points(chart: Chart, count: int) -> Chart:
    """A chart as it would be of so many points; one whose size does not depend on answers stays."""
    if isinstance(chart, PointChart) and not any(point.name for point in chart.points):
        points = [
            ScatterPoint(*_near(_of(chart.points, place), place), group=_of(chart.points, place).group)
            for place in range(count)
        ]
        return replace(chart, points=points)
    return chart


def _of(parts: Sequence, place: int):  # type: ignore[no-untyped-def, type-arg]
    return parts[place % len(parts)]


def _near(point: ScatterPoint, place: int) -> tuple[float, float]:
    """Spread around a point, always the same."""
    return point.x * (1 + (place * 7919 % 199 - 99) / 400), point.y * (1 + (place * 104729 % 197 - 98) / 400)


def _moved(line, factor: float):  # type: ignore[no-untyped-def]
    return replace(
        line,
        points=[(x, y * factor) for x, y in line.points],
        ends=[(low * factor, high * factor) for low, high in line.ends],
    )
