"""Tables as CSV text: byte-exact, and with guards for spreadsheets."""

import csv
import io

import pytest

from survey.figures.csv_lines import csv_line, guarded

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "＝1",
    "＋a",
    "－a",
    "＠a",
    "\tx",
    "\rx",
    "\nx",
    '"=1+1',
    "-",
    " =1",
    "=a,b",
]


def read(text: str) -> list[str]:
    (row,) = csv.reader(io.StringIO(text, newline=""))
    return row


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_a_spreadsheet_could_run_gets_an_apostrophe(text: str) -> None:
    assert read(csv_line(["a", text, "b"])) == ["a", text, "b"]
    assert read(guarded(csv_line(["a", text, "b"]))) == ["a", f"'{text}", "b"]


@pytest.mark.parametrize("value", [0, -3, -0.25, 1e-300, "+3", "-.5", "-1E5", "", None, "a=b", "x-y", "−5", "[1, -2]"])
def test_numbers_and_other_texts_keep_their_bytes(value: object) -> None:
    assert guarded(csv_line([value, 'a "b", c', value])) == csv_line([value, 'a "b", c', value])


@pytest.mark.parametrize("mark", [";", "; ", ';"', "\n", "\t", "\r\n"])
def test_a_cell_that_another_separator_would_begin_is_guarded_too(mark: str) -> None:
    text = f"reason{mark}=cmd()"
    head = mark.rstrip(' "')
    assert read(guarded(csv_line([text]))) == [f"reason{head}'{text.removeprefix('reason' + head)}"]


def test_headers_and_line_ends_stay() -> None:
    table = 'a,b\r\n1,"x\ny"\r\n,\n'
    assert guarded(table) == table
