"""Tables of every kind are read, how they were read is said, and nothing else is let in."""

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from survey.exceptions import FileErrors
from survey.input_tables import cells, reader, spreadsheets
from survey.input_tables.reader import TableReading
from survey.services.banks import columns
from survey.services.banks.columns import ColumnChoice

HEADER = ("id", "source", "question", "answer")
ROWS = [("a:0", "café", "Wie groß ist „groß“?", "1,5"), ("a:1", "café", "Was kostet\ndas?", "2")]
COMMAS = 'id,source,question,answer\na:0,café,"Wie groß ist das, bitte?","1,5"\na:1,café,"Was kostet\ndas?",2\n'
SEMICOLONS = 'id;source;question;answer\na:0;café;Wie groß ist das, bitte?;1,5\na:1;café;"Was kostet\ndas?";2\n'
TABS = COMMAS.replace(",café,", "\tcafé\t").replace("id,source,question,answer", "id\tsource\tquestion\tanswer")
TABS = TABS.replace('","', '"\t"').replace('",2', '"\t2')
WANTED = [["a:0", "café", "Wie groß ist das, bitte?", "1,5"], ["a:1", "café", "Was kostet\ndas?", "2"]]


def workbook(rows: list[Any], *, title: str = "Questions", more: tuple[str, ...] = ()) -> bytes:
    book = Workbook()
    sheet: Any = book.active
    sheet.title = title
    for row in rows:
        sheet.append(row)
    for name in more:
        book.create_sheet(name)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def refusal(content: bytes, reading: TableReading | None = None) -> str:
    with pytest.raises(FileErrors) as refused:
        reader.read(content, "bank", reading)
    return refused.value.lines[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (COMMAS.encode(), "UTF-8, fields separated by commas"),
        (b"\xef\xbb\xbf" + SEMICOLONS.encode(), "UTF-8, fields separated by semicolons"),
        (TABS.encode(), "UTF-8, fields separated by tabs"),
        (SEMICOLONS.replace(";", "|").encode(), "UTF-8, fields separated by vertical bars"),
        (COMMAS.encode("utf-16"), "UTF-16, fields separated by commas"),
        (SEMICOLONS.encode("utf-16-le"), "UTF-16, fields separated by semicolons"),
        (SEMICOLONS.encode("utf-16-be"), "UTF-16, fields separated by semicolons"),
        (SEMICOLONS.encode("latin-1"), "Windows-1252 (Latin-1), fields separated by semicolons"),
        (
            b"sep=;\r\n" + SEMICOLONS.replace("\n", "\r\n").encode(),
            "UTF-8, fields separated by semicolons, Windows line ends",
        ),
    ],
)
def test_a_text_is_read_as_it_was_written(content: bytes, said: str) -> None:
    table = reader.read(content, "bank.csv")
    assert table.said == said
    assert table.header == list(HEADER)
    assert [[text.replace("\r\n", "\n") for text in values] for _line, values in table.rows] == WANTED


def test_only_encodings_without_a_mark_are_a_guess() -> None:
    assert not reader.read(SEMICOLONS.encode(), "b").is_guess
    assert not reader.read(SEMICOLONS.encode("utf-16"), "b").is_guess
    assert reader.read(SEMICOLONS.encode("latin-1"), "b").is_guess


def test_the_reading_can_be_said() -> None:
    content = "id;question\n1;Čaj?\n".encode("cp1250")
    table = reader.read(content, "b", TableReading(encoding="cp1250", delimiter=";"))
    assert table.rows == [(2, ["1", "Čaj?"])]
    assert "is not UTF-8: choose another encoding" in refusal(content, TableReading(encoding="utf_8"))


def test_lines_are_those_of_the_file_behind_a_line_that_names_the_mark() -> None:
    table = reader.read(b"sep=;\r\nid;question\r\n1;a\r\n", "b")
    assert (table.header_line, table.rows) == (2, [(3, ["1", "a"])])


def test_a_spreadsheet_gives_the_values_as_texts() -> None:
    content = workbook([HEADER, (1, "algebra", "=", 3.0), (), (2, "algebra", True, None)], more=("Notes",))
    table = reader.read(content, "bank.xlsx")
    assert table.said == "an Excel file, sheet 'Questions' of 2" and table.sheets == ("Questions", "Notes")
    assert table.rows == [(2, ["1", "algebra", "=", "3"]), (4, ["2", "algebra", "TRUE", ""])]
    assert (
        refusal(content, TableReading(sheet="Nots")) == "bank: sheet: has no sheet 'Nots'; there are: Questions, Notes"
    )


def test_a_formula_is_refused_at_its_cell_and_never_evaluated() -> None:
    content = workbook([HEADER, (1, "algebra", "What?", "=1+1"), (2, "algebra", '=HYPERLINK("http://x")', "2")])
    problems = reader.read(content, "bank.xlsx").problems_in()
    assert [(problem.line, problem.field) for problem in problems] == [(2, "D2"), (3, "C3")]
    assert "holds a formula, which is not evaluated" in problems[0].message


def test_a_text_that_looks_like_a_formula_stays_a_text() -> None:
    table = reader.read(b"id,question\n1,=1+1\n2,@SUM(A1)\n", "b")
    assert [values[1] for _line, values in table.rows] == ["=1+1", "@SUM(A1)"]


def archive(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty: it needs a header"),
        (b" \n\n ", "is empty: it needs a header"),
        (archive({"bank.csv": COMMAS.encode()}), "is a ZIP archive: unpack it and upload the table in it"),
        (archive({"mimetype": b"x", "content.xml": b"x"}), "is an OpenDocument file"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "is an old Excel file (.xls)"),
        (b"%PDF-1.7 ...", "is a PDF"),
        (b"\x1f\x8b\x08 ...", "is a compressed file (gzip)"),
        (b"PK\x03\x04 and then nothing", "begins like a spreadsheet and is broken"),
        (b"id,question\n1,\xff\x00\x01\x02\x9d\x81\n", "bank:2: file: byte 3 of this line is not UTF-8"),
        (archive({"xl/workbook.xml": b"<!DOCTYPE x [<!ENTITY a 'b'>]><workbook/>"}), "declares entities"),
        (archive({"xl/workbook.xml": b"<workbook/>"}), "is no spreadsheet that can be read"),
        (("a," * 101 + "b\n").encode(), "has 102 columns; at most 100 are read"),
        (b'id,question\n1,"open\n', "2: row: not CSV"),
    ],
)
def test_what_is_no_table_is_refused_with_what_to_do(content: bytes, expected: str) -> None:
    assert expected in refusal(content)


def test_a_spreadsheet_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(monkeypatch: Any) -> None:
    monkeypatch.setattr(spreadsheets, "LARGEST_UNPACKED", 1_000_000)
    bomb = archive({"xl/workbook.xml": b"<workbook/>", "xl/worksheets/sheet1.xml": b"0" * 2_000_000})
    assert len(bomb) < 10_000
    assert "unpacks to 2,000,011 bytes" in refusal(bomb)


def test_too_many_rows_cells_or_bytes_are_refused(monkeypatch: Any) -> None:
    monkeypatch.setattr(reader, "MAX_ROWS", 3)
    assert "more than 3 rows" in refusal(b"id,question\n" + b"1,a\n" * 4)
    assert reader.read(b"id,question\n" + b"1,a\n" * 3, "b").rows
    assert "more than 3 rows" in refusal(workbook([("id", "question"), *[(1, "a")] * 4]))
    gap = workbook([("id", "question"), (1, "a"), *[()] * 20, (2, "b")])
    assert [line for line, _values in reader.read(gap, "b").rows] == [2, 23]
    monkeypatch.setattr(reader, "MAX_CELLS", 5)
    assert "more than 5 cells" in refusal(b"id,question\n1,a\n1,a\n")
    monkeypatch.setattr(reader, "LARGEST_FILE", 10)
    assert "at most 10: leave out columns and rows" in refusal(b"id,question\n")


def test_a_file_that_is_too_large_is_not_even_read(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    monkeypatch.setattr(Path, "read_bytes", lambda _path: pytest.fail("it was read"))
    with pytest.raises(FileErrors, match="has 209,715,200 bytes; a table has at most"):
        reader.read_path(path)


# Columns


def table_of(text: str) -> reader.ReadTable:
    return reader.read(text.encode(), "b.csv")


def test_columns_are_guessed_by_other_names_that_people_give_them() -> None:
    header = ["Nr.", "Fach", "Frage", "Lösung", "Kommentar"]
    assert columns.guessed(header).columns == {"id": "Nr.", "source": "Fach", "question": "Frage", "answer": "Lösung"}
    assert columns.guessed(["id", "text", "question"]).columns == {"id": "id", "question": "question"}


def test_ids_can_be_numbered_and_one_task_named() -> None:
    choice = ColumnChoice({"question": "Frage", "answer": "Key"}, numbered=True, task="maths")
    rows = list(columns.questions(table_of("Frage,Key\nWas?,1\nWie?,2\n"), choice))
    assert [(row.id, row.source, row.question, row.answer, row.line) for row in rows] == [
        ("q00001", "maths", "Was?", "1", 2),
        ("q00002", "maths", "Wie?", "2", 3),
    ]


def test_a_choice_that_does_not_fit_says_everything_at_once() -> None:
    choice = ColumnChoice({"question": "Farge", "answer": "Key", "reason": "Key"})
    messages = [problem.message for problem in columns.problems_of(table_of("Frage,Key\nWas?,1\n"), choice)]
    assert messages == [
        "has no column 'Farge' for question: did you mean 'Frage'?",
        "the column 'Key' is chosen for answer and reason: choose one",
        "no column is chosen for id: choose one, or have the rows numbered",
        "no column is chosen for source: choose one, or name one task for all questions",
    ]


@pytest.mark.parametrize(
    ("kind", "cell", "value"),
    [
        (cells.text("give one", longest=3), " abc ", "abc"),
        (cells.text("give one", longest=3, keeps_space=True), " abc ", " abc "),
        (cells.text("give one", longest=3), "abcd", None),
        (cells.text("give one"), "  ", None),
        (cells.text(), "  ", ""),
        (cells.number("{}", lambda value: value > 0), "0.5", 0.5),
        (cells.number("{}", lambda value: value > 0), "0", None),
        (cells.number("{}", infinite=True), "inf", math.inf),
        (cells.number("{}"), "inf", None),
        (cells.number("{}"), "", None),
        (cells.number("{}", empty=2, unknown=("", "na")), "NA", 2),
        (cells.choice({"yes": 1}, "{}"), " YES ", 1),
        (cells.choice({"yes": 1}, "{}"), "no", None),
    ],
)
def test_a_cell_of_a_kind_is_what_the_kind_says(kind: Any, cell: str, value: Any) -> None:
    if value is None:
        with pytest.raises(ValueError):
            kind.func(cell)
    else:
        assert kind.func(cell) == value
