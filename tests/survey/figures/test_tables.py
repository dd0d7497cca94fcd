"""The results kit: figures and numbers in words, tables in files, and what of them people see."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import bandit
from survey.figures import Column, Figure, FigureColumn, LinkedCell, PartColumn, Table, TableView, rendering, words
from survey.figures.tables import Columns

GAP = FigureColumn("gap", "share", "The gap.", signed=True)
COLUMNS = (
    Column("reader", "text", "Who."),
    Column("stage", "number", "The stage.", whole=True),
    Column("answers", "number", "How many.", whole=True, heading="answers so far"),
    GAP,
    Column("p", "share", "By chance.", style="p"),
    Column("why", "text", "Why it is missing."),
)
ROWS = (
    ("model", 1, 1200, Figure(0.123, 0.05, 0.196), 0.0001, ""),
    ("model", 2, 40, Figure(-0.0001), 0.5, ""),
    ("judge", 1, 7, Figure(withheld="too few people"), None, "too few people"),
)


def table(*views: TableView, rows: object = ROWS) -> Table:
    return Table("gaps", "Gaps", COLUMNS, rows, views=views)  # type: ignore[arg-type]


def texts(*views: TableView) -> list[list[str]]:
    (sheet,) = rendering.sheets_of(table(*views))
    return [sheet.header, *sheet.texts()]


@pytest.mark.parametrize(
    ("figure", "digits", "text"),
    [
        (Figure(0.7104, 0.601, 0.792, unit="share"), None, "71.0 % [60.1, 79.2]"),
        (Figure(0.7104, 0.601, 0.792), None, "0.71 [0.60, 0.79]"),
        (Figure(1234.5, unit="points"), 0, "1,234 points"),
        (Figure(-0.001, -2.5, 1.25, unit="percentage points"), None, "0.00 points [-2.50, 1.25]"),
        (Figure(low=-1.0, high=2.0, unit="nats"), None, "-1.00 to 2.00 nats"),
        (Figure(-0.167, -0.589, 0.255, unit=words.DIFFERENCE), None, "-16.7 points [-58.9, 25.5]"),
        (Figure(-0.0004, unit=words.DIFFERENCE), None, "0.0 points"),
        (Figure(-0.0004, unit="share"), None, "0.0 %"),
        (Figure(math.nan, math.nan, math.nan), None, "–"),
        (Figure(math.inf, unit="share"), None, "∞ %"),
        (Figure(low=0.1, high=0.2, unit="share"), None, "10.0 to 20.0 %"),
        (Figure(0.5, low=0.4), None, "0.50"),  # One end alone is no interval.
        (Figure(0.5, 0.5, 0.5 + 1e-12), None, "0.50"),  # Every resample gave the same.
    ],
)
def test_a_figure_in_words(figure: Figure, digits: int | None, text: str) -> None:
    assert figure.in_words(digits) == text


def test_a_figure_holds_what_an_estimate_says() -> None:
    estimate = bandit.hajek(
        values=np.array([0.0, 1, 1, 0, 1]), probability=np.full(5, 0.5), cluster=np.array([1, 1, 2, 2, 3]), share=True
    )
    figure = Figure.of(estimate, "share")
    assert (figure.value, figure.interval) == (estimate.value, estimate.interval)
    assert (figure.answers, figure.people, figure.degrees_of_freedom) == (5, 3, estimate.degrees_of_freedom)
    assert figure.note == f"too few: {estimate.too_few}"
    assert Figure.of(None, withheld="nobody").withheld == "nobody"


def test_in_another_unit_value_ends_and_error_change() -> None:
    figure = Figure(0.1, 0.0, 0.2, standard_error=0.05, people=9, unit="share").times(100, "points")
    assert figure == Figure(10.0, 0.0, 20.0, standard_error=5.0, people=9, unit="points")


def test_a_figure_without_value_or_interval_says_so_in_arithmetic() -> None:
    assert math.isnan(Figure().number) and Figure(0.5).number == 0.5
    assert Figure(0.5, 0.4, 0.6).holds(0.6) and not Figure(0.5, 0.4, 0.6).holds(0.61) and Figure(0.5).holds(9)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0004, "< 0.001"), (0.0449, "0.045"), (float("nan"), "–")],
)
def test_a_p_value_in_words(value: float | None, text: str) -> None:
    assert words.p_value(value) == text


def test_yes_and_no_are_1_and_0_in_the_file() -> None:
    column = Column("best", "0 or 1", "It is.", style="yes or no")
    made = Table("ways", "Ways", (column,), [[1], [0]])
    assert rendering.sheets_of(made)[0].texts() == [["yes"], ["no"]] and list(made.file_rows()) == [[1], [0]]


def test_counted_things_in_words() -> None:
    assert words.points(0.123) == "12.3 points" and words.points(None) == "–"
    assert [words.counted(1, "person", "people"), words.counted(2000, "answer")] == ["1 person", "2,000 answers"]


def test_a_file_has_a_plain_column_for_each_part_of_a_figure_with_every_digit() -> None:
    assert rendering.csv(table()) == (
        "reader,stage,answers,gap,gap_low,gap_high,p,why\n"
        "model,1,1200,0.123,0.05,0.196,0.0001,\n"
        "model,2,40,-0.0001,,,0.5,\n"
        "judge,1,7,,,,,too few people\n"
    )
    assert table().records()[0]["gap_high"] == 0.196
    as_json = rendering.as_json(table())
    assert [column["name"] for column in as_json["columns"]][3:6] == ["gap", "gap_low", "gap_high"]
    assert json.dumps(as_json["rows"][1], allow_nan=False)


def test_parts_may_stand_apart_from_their_figure_and_what_people_alone_see_is_in_no_file() -> None:
    figures = [FigureColumn(name, "number", "A figure.", parts={}) for name in "ab"]
    apart: Columns = (
        *figures,
        *(PartColumn(figure.name, part, column) for figure in figures for part, column in figure.ends.items()),
        Column("about", "text", "A link.", in_file=False),
    )
    rows = [{"a": Figure(1, 0, 2), "b": Figure(3, 2, 4), "about": LinkedCell("fox", None)}]
    assert rendering.csv(Table("t", "T", apart, rows)) == "a,b,a_low,a_high,b_low,b_high\n1,3,0,2,2,4\n"


def test_a_file_names_the_parts_of_a_figure_as_its_column_says() -> None:
    error = Column("error", "number", "Its standard error.")
    columns = (
        FigureColumn("theta", "number", "Strength.", prefix="", low="Lower end over prompts."),
        FigureColumn("mean", "number", "Mean.", parts={"standard_error": error}),
    )
    file = Table("t", "T", columns, [(Figure(1.5, 1, 2), Figure(0.5, standard_error=0.25))])
    assert file.records() == [{"theta": 1.5, "low": 1, "high": 2, "mean": 0.5, "error": 0.25}]
    assert [column.description for column in file.file_columns()][1:3] == ["Lower end over prompts.", "Its upper end."]


def test_without_views_people_see_all_of_it_in_rounded_numbers() -> None:
    assert texts() == [
        ["reader", "stage", "answers so far", "gap [95 % interval]", "p", "why"],
        ["model", "1", "1,200", "+12.3 % [+5.0, +19.6]", "< 0.001", "–"],
        ["model", "2", "40", "0.0 %", "0.500", "–"],
        ["judge", "1", "7", "–", "–", "too few people"],
    ]


def test_a_view_chooses_columns_rows_and_headings_and_leaves_out_what_is_empty() -> None:
    view = TableView({"stage": "", "gap": "difference", "why": ""}, where={"reader": "model"})
    assert texts(view) == [["stage", "difference [95 % interval]"], ["1", "+12.3 % [+5.0, +19.6]"], ["2", "0.0 %"]]
    assert texts(TableView(["answers"], rows=[2, 0])) == [["answers so far"], ["7"], ["1,200"]]


def test_a_view_says_how_many_rows_it_leaves_out_and_why_figures_are_withheld() -> None:
    first, withheld = rendering.sheets_of(
        table(TableView(["reader", "gap"], note="Of a toy.", most=2), TableView(["reader", "gap"], rows=[2]))
    )
    assert len(first.rows) == 2
    assert first.note == "Of a toy. The first 2 of 3 rows; gaps.csv has all."
    assert withheld.note == "judge: too few people."


def test_a_remark_names_three_of_its_rows_or_says_all() -> None:
    columns = (Column("who", "text", ""), FigureColumn("share", "share", "", parts={}))
    few = Figure(0.5, note="few answers")
    rows = [*((name, few) for name in "abcde"), ("f", Figure(0.5))]
    (sheet,) = rendering.sheets_of(Table("t", "T", columns, rows))
    assert sheet.note == "a; b; c; and 2 more: few answers."
    (sheet,) = rendering.sheets_of(Table("t", "T", columns, rows[:2]))
    assert sheet.note == "all: few answers."


def test_a_page_folds_what_is_longer_than_a_screen() -> None:
    columns = (Column("who", "text", ""),)
    sheets = [rendering.sheets_of(Table("t", "T", columns, [["a"]] * count))[0] for count in (40, 41)]
    assert [sheet.is_long for sheet in sheets] == [False, True]


def test_a_view_may_show_a_part_of_a_figure_in_its_unit() -> None:
    parts = {"standard_error": Column("error", "number", "Its error."), "people": Column("people", "number", "Who.")}
    columns = (FigureColumn("share", "share", "A share.", parts=parts),)
    table = Table("t", "T", columns, [(Figure(0.5, standard_error=0.0123, people=1234, unit="share"),)])
    assert rendering.csv(table) == "share,error,people\n0.5,0.0123,1234\n"
    (sheet,) = rendering.sheets_of(replace(table, views=[TableView(["share", "error", "people"])]))
    assert sheet.texts() == [["50.0 %", "1.2 %", "1,234"]]


def test_a_view_turns_a_column_into_columns() -> None:
    view = TableView(["reader"], across="stage", cells="gap", headings={1: "stage 1"})
    (sheet,) = rendering.sheets_of(table(view))
    assert sheet.header == ["reader", "stage 1", "2"]
    assert sheet.texts() == [["model", "+12.3 % [+5.0, +19.6]", "0.0 %"], ["judge", "–", "–"]]
    assert sheet.note == "In brackets: 95 % intervals. judge, stage 1: too few people."


def test_turned_columns_stand_in_the_order_of_their_headings() -> None:
    (sheet,) = rendering.sheets_of(table(TableView(["reader"], across="stage", cells="gap", headings={2: "", 9: "x"})))
    assert sheet.header == ["reader", "2", "1"]


def test_a_column_is_of_numbers_by_what_it_holds() -> None:
    (sheet,) = rendering.sheets_of(table())
    assert [column.is_number for column in sheet.columns] == [False, True, True, True, True, False]


@pytest.mark.parametrize(
    ("rows", "views", "fault"),
    [
        ([("model", 1)], (), "2 cells for 6 columns"),
        ([{"stages": 1}], (), "no column stages"),
        (ROWS, (TableView(["gaps"]),), "no column gaps"),
        (ROWS, (TableView(where={"model": 1}),), "no column model"),
        (ROWS, (TableView(["reader"], across="wave", cells="gap"),), "no column wave"),
    ],
)
def test_a_table_refuses_what_does_not_fit_its_columns(rows: object, views: tuple[TableView, ...], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        table(*views, rows=rows)


def test_documents_escape_what_would_end_a_cell() -> None:
    rows = [("a|b & c_d", 1, 2, Figure(0.5), 0.5, "two\nlines")]
    made = table(TableView(["reader", "gap", "why"]), rows=rows)
    assert "| a\\|b & c_d | +50.0 % | two lines |" in rendering.markdown(made)
    assert r"a|b \& c\_d & +50.0 \% & two lines \\" in rendering.latex(made)
    assert r"\begin{tabular}{lrl}" in rendering.latex(made)


def test_a_terminal_shows_titles_notes_and_aligned_columns() -> None:
    view = TableView(["reader", "answers"], title="By reader", rows=[1])
    assert list(rendering.terminal(table(view))) == [
        "\nBy reader",
        "reader  answers so far\n------  --------------\n model              40",
    ]


def test_nothing_has_one_sign_and_zero_none() -> None:
    columns = (
        Column("text", "text", "What."),
        Column("number", "number", "How many.", digits=3),
        Column("share", "share", "Which part."),
        Column("tells", "number", "As many digits as tell."),
        Column("points", "number", "A difference.", style="points"),
        FigureColumn("figure", "number", "A figure."),
    )
    nothing = [["", None, math.nan, None, math.nan, Figure()], ["a", -0.0001, -0.0, -0.0, -0.0, Figure(-0.0)]]
    (sheet,) = rendering.sheets_of(Table("t", "T", columns, nothing))
    assert sheet.texts() == [["–"] * 6, ["a", "0.000", "0.0 %", "0", "0.0 points", "0.00"]]
    assert "-0" not in "".join(rendering.markdown(Table("t", "T", columns, nothing)).split())
    assert words.short(-0.0) == words.significant(-0.0) == "0"
