"""Charts: where numbers stand, that names stay apart and inside, that series differ in grey, that texts stay texts."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from survey.admin.pictures import NotAPicture, inline
from survey.figures import Figure, charts
from survey.figures.charts import (
    COLOURS,
    WIDTH,
    Axis,
    Bar,
    BarChart,
    Chart,
    FlowChart,
    ForestChart,
    ForestRow,
    HistogramChart,
    Line,
    LineChart,
    MatrixChart,
    PointChart,
    ScatterPoint,
)
from tests.survey.figures import laws

SVG = "{http://www.w3.org/2000/svg}"
X, Y = Axis("time (s)"), Axis("size (mm)", includes=(0.0,))


def parsed(chart: Chart) -> ElementTree.Element:
    return laws.parsed(chart.svg("toy", "What it shows."))


def lines(*of: Line, x: Axis = X, y: Axis = Y) -> LineChart:
    return LineChart(title="Toy <b>chart</b>", x=x, y=y, lines=of)


def kinds(count: int) -> dict[str, Chart]:
    own = laws.names(count)
    figure = Figure(0.4, 0.2, 0.7)
    return {
        "marked lines": lines(*(Line(name, [(0.0, 1.0), (4.0, 2.0 + n)]) for n, name in enumerate(own))),
        "curves": lines(*(Line(n, [(x / 9, x + len(n)) for x in range(50)], marked=False) for n in own)),
        "named ticks": lines(
            Line("a", [(n, n) for n in range(count)]), x=Axis("day", ticks=[(n, f"{n} November") for n in range(count)])
        ),
        "points": PointChart(
            title="t", x=Axis("x", log=True), y=Y,
            points=[ScatterPoint(10 ** (n % 7), (n * 7 % 32) / 32, name, "g") for n, name in enumerate(own)],
        ),
        "points in a crowd": PointChart(
            title="t", x=X, y=Y, points=[ScatterPoint(1 + n % 3 / 1e3, 1 + n / 1e4, name) for n, name in enumerate(own)]
        ),
        "levels": PointChart(title="t", x=X, y=Y, points=[ScatterPoint(1, 1)], levels=[(n, 1.0) for n in own]),
        "forest": ForestChart(title="t", x=X, rows=[ForestRow(name, [figure], "0.4 of 1") for name in own]),
        "series": ForestChart(title="t", x=X, rows=[ForestRow("a", [figure] * count)], series=own),
        "bars": BarChart(title="t", x=X, rows=[ForestRow(name, [figure] * 3) for name in own], series=["a", "b", "c"]),
        "matrix": MatrixChart(title="t", names=own, cells=[[(0.25, 12)] * count for _ in own]),
        "histogram": HistogramChart(
            title="t", x="points", y="answers",
            panels={name: [Bar(0, 0, 0.2, (0.1, 0.3)), Bar(0, 50, 0.5), Bar(50, 100, 0.3)] for name in own[:3]},
        ),
        "flow": FlowChart(title="t", steps=[(name * 5, n % 2 == 0) for n, name in enumerate(own)]),
    }  # fmt: skip


@pytest.mark.parametrize("count", [1, 3, 12, 32])
@pytest.mark.parametrize("kind", kinds(1))
def test_names_stay_apart_ticks_are_round_and_every_mark_is_seen_and_says_its_number(kind: str, count: int) -> None:
    chart = kinds(count)[kind]
    assert len(list(laws.labels(parsed(chart)))) > 1 and laws.faults(chart) == []


@pytest.mark.parametrize(
    ("found", "old", "new"),
    [
        ("lies on", 'x="8.0" y="22.0"', 'x="44.0" y="50.0"'),
        ("is cut", 'x="8.0" y="22.0"', 'x="-9.0" y="22.0"'),
        ("are not round", ">40<", ">41<"),
        ("does not say its number", "<title>a; 1: 20</title>", ""),
        ("units large", "m-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z", "m-1,0a1,1 0 1,0 2,0a1,1 0 1,0 -2,0z"),
        ("too little contrast", "#0072b2", "#ffe600"),
    ],
)
def test_the_laws_notice_each_fault(found: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = LineChart(title="toy", x=X, y=Axis("size"), lines=[Line("a", [(0.0, 0.0), (1.0, 20.0), (2.0, 100.0)])])
    svg = chart.svg("toy", "What it shows.")
    assert laws.faults(chart) == [] and old in svg
    monkeypatch.setattr(LineChart, "svg", lambda *_arguments: svg.replace(old, new))
    assert any(found in fault for fault in laws.faults(chart))


@pytest.mark.parametrize("count", [3, 12, 32])
@pytest.mark.parametrize("kind", sorted(set(kinds(1)) - {"named ticks", "histogram", "flow"}))
def test_every_name_is_there_whole_at_least_as_a_tooltip(kind: str, count: int) -> None:
    if kind == "matrix" and count == 32:
        count = 16  # More have numbers.
    words = [
        element.text or "" for tag in ("text", "title") for element in parsed(kinds(count)[kind]).iter(f"{SVG}{tag}")
    ]
    assert [name for name in laws.names(count) if not any(name in text for text in words)] == []


@pytest.mark.parametrize("kind", ["marked lines", "curves", "levels", "series"])
def test_a_legend_of_few_names_has_them_whole(kind: str) -> None:
    words = {text.text for text in parsed(kinds(12)[kind]).iter(f"{SVG}text")}
    assert set(laws.names(12)) <= words


def test_a_matrix_of_many_numbers_its_names() -> None:
    words = [text.text for text in parsed(kinds(32)["matrix"]).iter(f"{SVG}text")]
    assert words.count("32") == 1 and any((word or "").startswith("32 mak") for word in words)


def test_named_ticks_are_turned_where_they_would_touch() -> None:
    def turned(count: int) -> int:
        return sum(
            "-40" in (text.get("transform") or "") for text in parsed(kinds(count)["named ticks"]).iter(f"{SVG}text")
        )

    assert turned(3) == 0 and turned(12) == 12


@pytest.mark.parametrize("kind", kinds(1))
def test_it_has_a_title_a_text_and_nothing_but_drawing(kind: str) -> None:
    chart = kinds(12)[kind]
    text = chart.svg("toy <1>", "What <it> shows.")
    root = ElementTree.fromstring(text)  # noqa: S314 - our own
    title, words = root.find("{*}title"), root.find("{*}desc")
    assert title is not None and words is not None and root.get("role") == "img"
    assert (root.get("aria-labelledby"), root.get("aria-describedby")) == (title.get("id"), words.get("id"))
    assert (title.text, words.text) == (chart.title, "What <it> shows.") and text == chart.svg(
        "toy <1>", "What <it> shows."
    )
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg",
        "title",
        "desc",
        "g",
        "path",
        "rect",
        "text",
    }
    on_page = ElementTree.fromstring(inline(text))  # noqa: S314 - our own
    assert [sorted(part.attrib.items()) for part in on_page.iter()] == [
        sorted(part.attrib.items()) for part in root.iter()
    ]


def test_series_differ_without_their_colour() -> None:
    for kind in ("marked lines", "curves", "series"):
        groups = [group for group in parsed(kinds(12)[kind]).iter(f"{SVG}g") if group.get("stroke")]
        looks = {
            (
                tuple(laws.mark_of(path) for path in group.findall("{*}path") if laws.mark_of(path)),
                tuple(path.get("stroke-dasharray") for path in group.findall("{*}path")),
            )
            for group in groups[:6]
        }
        assert len(looks) == 6, kind
    few = [group.findall("{*}path") for group in parsed(kinds(3)["curves"]).iter(f"{SVG}g") if group.get("stroke")]
    assert len({paths[0].get("stroke-dasharray") for paths in few}) == 3, "curves without marks by their dashes"
    pairs = {
        (laws.mark_of(path), path.get("fill"))
        for path in parsed(kinds(32)["series"]).iter(f"{SVG}path")
        if laws.mark_of(path)
    }
    assert len(pairs) == 32


# Numbers


def ticks(chart: LineChart) -> list[str]:
    """The numbers next to the vertical axis."""
    placed = [
        (float(text.get("y", 0)), text.text or "")
        for text in parsed(chart).iter(f"{SVG}text")
        if text.get("text-anchor") == "end"
    ]
    return [words for _y, words in sorted(placed, reverse=True)]


def courses(chart: Chart) -> list[list[tuple[float, float]]]:
    """The corners of each line."""
    drawn = re.findall(r'<path d="M([-\d.,L]+)" fill="none" stroke-width="2"', chart.svg("toy"))
    return [[tuple(map(float, point.split(","))) for point in course.split("L")] for course in drawn if "L" in course]  # type: ignore[misc]


def test_points_stand_in_proportion() -> None:
    chart = lines(Line("one", [(0.0, 0.0), (5.0, 50.0), (10.0, 100.0)]))
    ((x1, y1), (x2, y2), (x3, y3)) = courses(chart)[0]
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2) and y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert x1 < x3 and y1 > y3
    assert ticks(chart) == ["0", "20", "40", "60", "80", "100"]


@pytest.mark.parametrize(
    ("values", "axis", "words"),
    [
        ((0.0, 1.0), Axis("y", share=True), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        ((0.001, 0.004), Axis("y", share=True), ["0.10 %", "0.15 %", "0.20 %", "0.25 %", "0.30 %", "0.35 %", "0.40 %"]),
        ((-1.0, 0.4), Axis("y"), ["−1.0", "−0.5", "0.0", "0.5"]),
        ((0.0, 1.1e6), Axis("y"), ["0", "200,000", "400,000", "600,000", "800,000", "1,000,000", "1,200,000"]),
        ((7.0, 7.0), Axis("y", includes=(0.0,)), ["0", "2", "4", "6", "8"]),
        ((0.28, 0.28), Axis("y"), ["0.20", "0.25", "0.30", "0.35"]),
        ((0.28, 0.28), Axis("y", share=True), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
    ],
)
def test_ticks_are_round_and_say_their_unit(values: tuple[float, float], axis: Axis, words: list[str]) -> None:
    assert ticks(lines(Line("one", list(enumerate(values))), y=axis)) == words


@pytest.mark.parametrize("values", [(0.0, 0.0), (0.39, 0.41), (7.0, 7.0), (-2.0, 1e6), (1.0, 1 + 2e-16)])
def test_every_value_lies_between_the_first_and_the_last_tick(values: tuple[float, float]) -> None:
    steps = [
        float(step.replace(",", "").replace("−", "-"))
        for step in ticks(lines(Line("one", list(enumerate(values))), y=Axis("y")))
    ]
    assert steps[0] <= min(values) and steps[-1] >= max(values) and 2 <= len(steps) <= 9


def test_a_short_logarithmic_axis_has_round_numbers() -> None:
    points = [ScatterPoint(x, 0.5, f"m{x}") for x in (60.0, 110.0, 240.0)]
    chart = PointChart(title="t", x=Axis("x", log=True), y=Axis("y"), points=points)
    words = [text.text for text in parsed(chart).iter(f"{SVG}text") if text.get("text-anchor") == "middle"]
    assert [word for word in words if (word or "").isdigit()] == ["50", "100", "200", "500"]


def test_what_is_no_number_is_left_out_and_nothing_at_all_is_said() -> None:
    line = Line("one", [(0.0, 1.0), (5.0, math.nan), (10.0, 3.0)], [(0.0, 2.0), (math.nan, math.nan), (2.0, 4.0)])
    text = lines(line).svg("toy") + lines(replace(line, marked=False)).svg("toy")
    assert "nan" not in re.findall(r"[a-z]+", text) and text.count('fill-opacity="0.14"') == 1
    for chart in (
        lines(Line("one", [(0.0, math.nan)])),
        PointChart(title="t", x=Axis("x", log=True), y=Y, points=[ScatterPoint(0.0, 1.0)]),
        ForestChart(title="t", x=X, rows=[ForestRow("left out", [Figure(math.nan)])]),
        HistogramChart(title="t", x="x", y="y", panels={"prior": []}),
        MatrixChart(title="t", names=[], cells=[]),
    ):
        assert "nothing to draw" in chart.svg("toy") and "left out" not in chart.svg("toy")


def test_a_row_without_a_figure_keeps_its_words_and_an_endless_end_stops_at_the_axis() -> None:
    rows = [ForestRow("model", [Figure(math.inf)], "inf"), ForestRow("wide", [Figure(1.0, -math.inf, 2.0)])]
    root = parsed(ForestChart(title="t", x=X, rows=rows))
    assert {"model", "inf", "wide"} <= {text.text for text in root.iter(f"{SVG}text")}
    assert not re.search(r"(inf|nan)[,HV\d]", " ".join(path.get("d", "") for path in root.iter(f"{SVG}path")))


def test_names_hold_no_markup_and_no_character_that_xml_lacks() -> None:
    root = parsed(ForestChart(title="a & b", x=X, rows=[ForestRow('"<i>\x00\x1b\ud800', [Figure(1.0)])]))
    assert '"<i>\ufffd\ufffd\ufffd' in {text.text for text in root.iter(f"{SVG}text")}


def test_few_points_are_large_and_many_small_and_of_too_many_a_part_is_drawn_and_said() -> None:
    def drawn(count: int) -> tuple[int, float, str]:
        points = [ScatterPoint(n % 83, n % 97) for n in range(count)]
        chart = PointChart(title="t", x=X, y=Y, points=points)
        marks = [mark for path in parsed(chart).iter(f"{SVG}path") if (mark := laws.mark_of(path))]
        assert len(set(marks)) == 1 and (count > 400 or laws.faults(chart) == [])
        return len(marks), float(marks[0][1:].split(",")[0]), chart.svg("toy")

    assert drawn(20)[:2] == (20, -4.5)
    assert drawn(400)[:2] == (400, -3.6)
    count, reach, text = drawn(2000)
    assert (count, reach) == (2000, -2.7) and len(text) < 250_000
    assert drawn(9000)[0] == 3000 and "One of 3 points is drawn, of 9,000." in drawn(9000)[2]


@pytest.mark.parametrize("mark", charts.MARKS)
def test_a_smaller_mark_has_the_same_shape(mark: str) -> None:
    small = charts._scaled(mark, 0.5)
    assert re.sub(r"[\d.]+", "", small) == re.sub(r"[\d.]+", "", mark) and small.count(" 0 1,0 ") == mark.count(
        " 0 1,0 "
    )
    lengths = [[float(n) for n in re.findall(r"-?\d*\.?\d+", of.replace(charts.ARC, " "))] for of in (small, mark)]
    assert lengths[0] == pytest.approx([length / 2 for length in lengths[1]])


def test_measured_points_have_whiskers_side_by_side_and_no_line_that_runs_straight_down() -> None:
    figures = [(stage, Figure(0.5, 0.4, 0.6)) for stage in (1.0, 2.0)]
    stages = Axis("stage", ticks=[(1.0, "1"), (2.0, "2")])
    chart = LineChart(title="t", x=stages, y=Y, lines=[Line.of("a", figures), Line.of("b", figures)])
    places = [course[0][0] for course in courses(chart)]
    assert places[1] - places[0] == pytest.approx(12, abs=0.2) and "fill-opacity" not in chart.svg("toy")
    assert "a; 1: 0.5 [0.4, 0.6]" in chart.svg("toy")
    close = lines(Line("a", [(0.0, 0.0), (1.0, 1.0), (1.001, 5.0), (9.0, 2.0)]))
    assert courses(close) == [] and len(courses(lines(replace(close.lines[0], marked=False)))) == 1


def test_an_outline_says_each_bar_and_where_it_is() -> None:
    chart = lines(Line.steps("prior", [0.0, 50.0, 100.0], [0.25, 0.75]), y=Axis("answers", share=True))
    said = [title.text for title in parsed(chart).iter(f"{SVG}title")]
    assert said[1:] == ["prior", "prior; 0 to 50: 25.0 %", "prior; 50 to 100: 75.0 %"]
    corners = courses(chart)[0]
    assert len(corners) == 6 and corners[0][0] == corners[1][0] and corners[1][1] == corners[2][1]


def test_a_level_that_is_known_has_a_line_over_the_whole_width() -> None:
    levels = [("one <b>, 40.0 %", 0.4), ("none", math.nan)]
    points = [ScatterPoint(50, 0.2), ScatterPoint(400, 0.3)]
    text = PointChart(title="t", x=Axis("x", log=True), y=Y, points=points, levels=levels).svg("toy")
    assert len(re.findall(rf"M[\d.]+,[\d.]+H{WIDTH - 8}\" fill=\"none\" stroke-width=\"2\"", text)) == 1
    assert ">one &lt;b&gt;, 40.0 %<" in text and ">none<" not in text


def test_bars_begin_at_0_and_a_histogram_has_a_bar_for_each() -> None:
    text = BarChart(title="t", x=X, rows=[ForestRow("a", [Figure(3.0)]), ForestRow("b", [Figure(4.0)])]).svg("toy")
    begin = {float(x) for x in re.findall(r'd="M([\d.]+),[\d.]+H[\d.]+v8', text)}
    words = [element.text for element in ElementTree.fromstring(text).iter(f"{SVG}text")]  # noqa: S314 - our own
    assert len(begin) == 1 and "0" in words
    assert kinds(3)["histogram"].svg("toy").count(f'Z" fill="{COLOURS[0]}"') == 9


@pytest.mark.parametrize("text", ["", "<html/>", "no picture", "<svg/>"])
def test_what_is_no_svg_is_not_shown(text: str) -> None:
    with pytest.raises(NotAPicture):
        inline(text)


def test_a_line_of_figures_has_their_intervals_where_they_have_any() -> None:
    line = Line.of("answers", [(1.0, Figure(0.5, 0.25, 0.75)), (2.0, Figure(0.25)), (3.0, Figure())])
    assert line.points[:2] == [(1.0, 0.5), (2.0, 0.25)] and math.isnan(line.points[2][1])
    assert line.ends[0] == (0.25, 0.75) and all(math.isnan(end) for ends in line.ends[1:] for end in ends)
    chart = LineChart(title="Some", x=Axis("x"), y=Axis("y"), lines=[line, Line.diagonal("equal")])
    svg = chart.svg("some", "Some.")
    assert "nan" not in svg.lower() and "equal" in svg


@pytest.mark.parametrize(
    ("low", "high", "steps"),
    [
        (1, 100, [1, 2, 5, 10, 20, 50, 100]),
        (1.5, 90, [1, 2, 5, 10, 20, 50, 100]),
        (1, 200, [1, 3, 10, 30, 100, 300]),
        (0.01, 1000, [0.01, 0.1, 1, 10, 100, 1000]),
        (3, 4, [2, 5]),
        (10, 10, [5, 10, 20]),
    ],
)
def test_steps_of_a_logarithmic_axis_end_at_the_first_round_number_beyond(
    low: float, high: float, steps: list[float]
) -> None:
    logarithms = charts._log_steps(math.log10(low), math.log10(high))
    assert [10**step for step in logarithms] == pytest.approx(steps)
