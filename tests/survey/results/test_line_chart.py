"""Line charts: where numbers are drawn, and that texts stay texts."""

import math
import re
from xml.etree import ElementTree

import pytest

from survey.admin.pictures import NotAPicture, inline
from survey.services.results.line_chart import Axes, Line, line_chart

AXES = Axes("time", "size", [(0.0, "begin"), (10.0, "end")], from_zero=True)


def chart(*lines: Line, axes: Axes = AXES) -> str:
    return line_chart(name="toy", title="Toy <b>chart</b>", axes=axes, lines=lines)


def test_points_stand_in_proportion() -> None:
    text = chart(Line("one", [(0.0, 0.0), (5.0, 50.0), (10.0, 100.0)]))
    (course,) = re.findall(r'<path d="M([^"]+)" fill="none"', text)
    (x1, y1), (x2, y2), (x3, y3) = ([float(part) for part in point.split(",")] for point in course.split("L"))
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2) and y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert x1 < x3 and y1 > y3
    assert re.findall(r'dominant-baseline="middle">([^<]+)<', text) == ["0", "20", "40", "60", "80", "100"]


def test_the_same_lines_give_the_same_text_and_a_page_shows_all_of_it() -> None:
    line = Line('"<i>one</i>"', [(0.0, 1.0), (10.0, 2.0)], [(0.5, 1.5), (1.5, 2.5)], marked=False)
    assert chart(line) == chart(line)
    ElementTree.fromstring(chart(line))  # noqa: S314 - our own
    shown = inline(chart(line))
    assert "<i>" not in shown and "<b>" not in shown and "Toy &lt;b&gt;chart" in shown
    assert shown.count("<path") == chart(line).count("<path") and "fill-opacity" in shown


def test_what_is_no_number_is_left_out_and_nothing_at_all_is_refused() -> None:
    text = chart(
        Line("one", [(0.0, 1.0), (5.0, math.nan), (10.0, 3.0)], [(0.0, 2.0), (math.nan, math.nan), (2.0, 4.0)])
    )
    assert "nan" not in re.findall(r"[a-z]+", text)
    with pytest.raises(ValueError, match="no point"):
        chart(Line("one", [(0.0, math.nan)]))


@pytest.mark.parametrize("values", [(0.0, 0.0), (0.39, 0.41), (7.0, 7.0), (-2.0, 1e6), (1.0, 1 + 2e-16)])
def test_every_value_lies_between_the_first_and_the_last_step(values: tuple[float, float]) -> None:
    axes = Axes("x", "y", [(0.0, "a"), (1.0, "b")])
    text = chart(Line("one", [(0.0, values[0]), (1.0, values[1])]), axes=axes)
    steps = [float(step) for step in re.findall(r'dominant-baseline="middle">([^<]+)<', text)]
    assert steps[0] <= min(values) and steps[-1] >= max(values) and 2 <= len(steps) <= 9


@pytest.mark.parametrize("text", ["", "<html/>", "no picture", "<svg/>"])
def test_what_is_no_svg_is_not_shown(text: str) -> None:
    with pytest.raises(NotAPicture):
        inline(text)
