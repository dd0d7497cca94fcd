"""Files as people really have them: what is read, what is refused with its place, and what is said before it is stored.

The kinds are those of public bug reports of comparable tools. Every reader goes through one layer, so most are tried on
that layer, and each reader once.
"""

import csv
import io
import math
import shutil
from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from openpyxl import Workbook
from openpyxl.styles import Font
from pydantic import TypeAdapter

from predictors import datasets
from predictors.cell_numbers import number_of
from predictors.markup import as_letters, plain_text
from survey import letters
from survey.exceptions import FileErrors, HunchError
from survey.input_tables import cells, decoding, reader, spreadsheets
from survey.input_tables.problems import Problems
from survey.input_tables.reader import TableReading
from survey.input_tables.rows import TableRow, declared, read_rows
from survey.instruments.belief_update.reports.alignment import files as alignment_files
from survey.instruments.cloze.reports import files as cloze_files
from survey.instruments.self_paced_reading.reports import own_times
from survey.models import Bank, LanguageModel, ModelAnswer, Question
from survey.models.question import render_text
from survey.services.banks import (
    collecting,
    formats,
    frequencies,
    model_answers,
    question_flags,
    text_files,
    uploads,
)
from survey.services.banks.alike import equal_options, options_of
from survey.services.banks.columns import ColumnChoice
from survey.services.banks.importing import QuestionRow, find_bank, import_questions
from survey.services.banks.markup import in_markup
from survey.services.base.toml_files import read_toml
from survey.services.studies import creating

HEADER = ["id", "source", "question", "answer"]
ROWS = [["1", "geo", "Größe?", "Paris"], ["2", "geo", "Straße?", "Rome"]]


def sheet_of(fill: Callable[[Any], None], *, rows: list[list[Any]] | None = None) -> bytes:
    book = Workbook()
    sheet: Any = book.active
    for row in [HEADER, *ROWS] if rows is None else rows:
        sheet.append(row)
    fill(sheet)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def text_of(delimiter: str = ",", end: str = "\n", rows: list[list[str]] | None = None) -> str:
    return "".join(delimiter.join(row) + end for row in rows or [HEADER, *ROWS])


def refused(content: bytes, **options: Any) -> list[str]:
    with pytest.raises(FileErrors) as error:
        reader.read(content, "b", **options)
    return error.value.lines


def problems(table: reader.ReadTable) -> list[str]:
    return [str(problem) for problem in (*table.problems_in(), *table.shown_in())]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# Encodings


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_every_unicode_form_is_read_with_every_line_end(encoding: str, end: str, delimiter: str) -> None:
    table = reader.read(text_of(delimiter, end).encode(encoding), "b")
    assert (table.header, table.rows) == (HEADER, [(2, ROWS[0]), (3, ROWS[1])])
    assert "UTF" in table.said and ("Mac" in table.said) == (end == "\r")


@pytest.mark.parametrize(
    "text", ["id,text\n1,一二三 Ā\n2,Привет, мир\n".replace(", мир", " мир"), "id\ttext\r1\tשלום\r"]
)
def test_wide_files_of_other_scripts_are_read_without_a_mark(text: str) -> None:
    assert reader.read(text.encode("utf-16-le"), "b").header == ["id", "text"]
    assert reader.read(text.encode("utf-16-be"), "b").header == ["id", "text"]


def test_utf_8_with_some_other_bytes_is_refused_with_their_lines() -> None:
    lines = text_of().encode().splitlines(keepends=True)
    mixed = lines[0] + lines[1] + lines[2].decode().encode("latin-1") + b"3,geo,M\xfcll?,x\n"
    assert refused(mixed) == [
        "b:3: file: byte 11 of this line is not UTF-8, as the rest is: save the file as UTF-8",
        "b:4: file: byte 8 of this line is not UTF-8, as the rest is: save the file as UTF-8",
    ]
    assert refused(mixed.replace(b"\n", b"\r"))[0].startswith("b:3: file: byte 11")
    mostly = b"id,text\n0," + "Größe".encode() + b"\n" + b"1,M\xfcller wei\xdf\n" * 12
    assert len(refused(mostly)) == 12
    within = b"id,text\n1," + "Größe und ".encode() + b"Stra\xdfe\n"
    assert refused(within)[0].startswith("b:2: file: byte 19")
    assert reader.read(mixed, "b", TableReading(encoding="cp1252")).rows[1] == (3, ["2", "geo", "Straße?", "Rome"])


@pytest.mark.parametrize(
    ("encoding", "word"), [("cp1252", "Größe der Straße"), ("cp1250", "Žluťoučký kůň"), ("cp1251", "«НАТО» и «ГОСТ»")]
)
def test_a_file_that_is_of_an_older_encoding_as_a_whole_is_still_read(encoding: str, word: str) -> None:
    table = reader.read(text_of(rows=[["id", "text"], *[[str(n), word] for n in range(5)]]).encode(encoding), "b")
    assert table.rows[0] == (2, ["0", word]) and table.is_guess
    assert "is not UTF-8" in refused(text_of().encode("cp1252"), guesses=False)[0]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("letter", "said"), [("\a", "U+0007"), ("\x1b", "escape"), ("\v", "U+000B"), ("\x7f", "U+007F"), ("\0", "NUL")]
)
def test_control_characters_are_refused_with_each_line(letter: str, said: str, end: str) -> None:
    lines = refused(text_of(end=end, rows=[HEADER, ROWS[0], ["2", "geo", f"a{letter}b", "x"]]).encode())
    assert len(lines) == 1 and lines[0].startswith("b:3: file: holds ") and said in lines[0] and "remove it" in lines[0]


def test_tabs_and_line_breaks_in_a_text_are_no_control_characters() -> None:
    assert reader.read(b'id,text\n1,"a\tb\r\nc"\n', "b").rows == [(2, ["1", "a\tb\r\nc"])]


# Marks, empty rows, columns without a name


def test_byte_order_marks_belong_to_no_header_and_no_id() -> None:
    mark = "\ufeff"
    for text in (f"{mark}{mark}{text_of()}", f'{mark}"id","source","question","answer"\n1,geo,Größe?,Paris\n'):
        assert reader.read(text.encode(), "b").header == HEADER
    joined = text_of() + mark + "3,geo,Was?,x\n" + f"4,{mark}geo,Was\ufeffhier?,x\n"
    table = reader.read(joined.encode(), "b")
    assert table.rows[2:] == [(4, ["3", "geo", "Was?", "x"]), (5, ["4", "geo", "Was\ufeffhier?", "x"])]
    assert reader.read(sheet_of(lambda sheet: sheet.__setitem__("A2", f"{mark}1")), "b").rows[0][1][0] == "1"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_rows_of_empty_cells_are_no_rows_with_every_separator(delimiter: str) -> None:
    empty = [["", "", "", ""], [" ", "\u00a0", "\u200b", "   "]]
    table = reader.read(text_of(delimiter, rows=[*empty, HEADER, ROWS[0], *empty, ROWS[1], *empty]).encode(), "b")
    assert (table.header_line, table.header) == (3, HEADER)
    assert table.rows == [(4, ROWS[0]), (7, ROWS[1])] and not problems(table)


def test_empty_cells_of_a_sheet_are_no_rows_however_far_away() -> None:
    def far(sheet: Any) -> None:
        sheet["D1048576"].font = Font(bold=True)
        sheet["XFD2"].font = Font(bold=True)
        sheet["B9"] = "  "

    table = reader.read(sheet_of(far), "b")
    assert table.rows == [(2, ROWS[0]), (3, ROWS[1])] and table.header == HEADER
    table = reader.read(sheet_of(lambda sheet: sheet.__setitem__("A1000000", "9")), "b")
    assert table.rows[-1] == (1000000, ["9", "", "", ""])
    assert refused(sheet_of(lambda sheet: sheet.__setitem__("DA2", "9"))) == [
        "b:2: header: has 105 columns; at most 100 are read: leave some out"
    ]


@pytest.mark.parametrize("rows_too", [True, False])
def test_columns_without_a_name_are_left_out_and_said(rows_too: bool) -> None:
    more = [""] if rows_too else []
    table = reader.read(text_of(rows=[["", *HEADER, ""], ["", *ROWS[0], *more]]).encode(), "b")
    assert (table.header, table.rows) == (HEADER, [(2, ROWS[0])]) and not problems(table)
    assert table.notes == ("b:1: header: columns without a name hold nothing and are left out (1, 6)",)
    assert reader.read(text_of().encode(), "b").notes == ()


def test_columns_without_a_name_that_hold_something_are_refused_with_its_place() -> None:
    table = reader.read(
        text_of(rows=[[*HEADER, ""], [*ROWS[0], ""], [*ROWS[1], "see"], [*ROWS[1], "more"]]).encode(), "b"
    )
    (said,) = problems(table)
    assert said == "b:3: column 5: holds 'see', and its column has no name: name it, or remove what it holds"
    (said,) = problems(reader.read(sheet_of(lambda sheet: sheet.__setitem__("F3", "see")), "b"))
    assert said.startswith("b:3: F3: holds 'see'")
    (said,) = problems(reader.read(sheet_of(lambda sheet: sheet.__setitem__("C1", None)), "b"))
    assert said.startswith("b:2: C2: holds 'Größe?'")


def test_fields_behind_the_header_are_a_row_with_too_many_and_empty_ones_are_not() -> None:
    table = reader.read(b"id,text\n1,a,b\n2,a,,\n3\n4,a\n", "b")
    assert table.rows == [(3, ["2", "a"]), (5, ["4", "a"])]
    assert [problem.line for problem in table.problems] == [2, 4] and "has 3 fields and the header 2" in problems(
        table
    )[0]


def test_letters_that_cannot_be_seen_are_removed_from_a_header_and_said() -> None:
    table = reader.read(b"id\xe2\x80\x8b,\xc2\xa0text\xc2\xad\n1,a\n", "b")
    assert table.header == ["id", "text"]
    assert table.notes == ("b:1: header: letters that cannot be seen were removed from id, text",)


# Sheets


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "number_format", "said"),
    [
        (time(8, 12), "h:mm:ss", "'h:mm:ss' and stores '08:12:00'"),
        (time(8, 12), "h:mm", "'h:mm' and stores '08:12:00'"),
        (datetime(2026, 1, 2), "yyyy-mm-dd h:mm:ss", "and stores '2026-01-02'"),
        (date(2026, 1, 2), "d/m/yy", "'d/m/yy' and stores '2026-01-02'"),
        (0.5, "0%", "as '50%' and stores '0.5'"),
        (0.125, "0.0%", "as '12.5%' and stores '0.125'"),
        (29, '"$"#,##0.00', "as '$29.00' and stores '29'"),
        (29, "[$€-407] #,##0.00", "as '€ 29.00'"),
        (1234567, "#,##0", "as '1,234,567'"),
        (7, "00000", "as '00007' and stores '7'"),
        (100000, "0.00E+00", "as '1.00E+05' and stores '100000'"),
        (0.5, "# ?/?", "in the format '# ?/?'"),
        (2.675, "0.00", "as '2.68' and stores '2.675'"),
        (3.0, "0.0", "as '3.0' and stores '3'"),
        (-3, "0;(0)", "as '(3)'"),
        (5, '0" kg"', "as '5 kg'"),
        (123456789012, "General", "in the form 1.2E+34 and stores '123456789012'"),
        (1e-7, "General", "in the form 1.2E+34"),
    ],
)
def test_what_a_sheet_shows_otherwise_than_it_stores_is_refused_with_its_cell(
    value: Any, number_format: str, said: str
) -> None:
    def fill(sheet: Any) -> None:
        sheet["D3"] = value
        sheet["D3"].number_format = number_format

    content = sheet_of(fill)
    table = reader.read(content, "b")
    (line,) = problems(table)
    assert line.startswith("b:3: D3: is shown ") and said in line and "format the column as text" in line
    choice = ColumnChoice({name: name for name in HEADER})
    assert [str(problem) for problem in uploads.proposal_of(table, choice).problems] == [line]
    without = ColumnChoice({name: name for name in HEADER if name != "answer"} | {"answer": "source"})
    assert line not in [str(problem) for problem in uploads.proposal_of(table, without).problems]


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.1 + 0.2, "General", "0.3"),
        (1 / 3, "General", "0.333333333333333"),
        (12345678901, "General", "12345678901"),
        (3.0, "General", "3"),
        (1.25, "0.00", "1.25"),
        (1.5, "0.##", "1.5"),
        (-4, "0", "-4"),
        (True, "General", "TRUE"),
        (date(2026, 1, 2), "yyyy-mm-dd", "2026-01-02"),
        (time(8, 12), "hh:mm:ss", "08:12:00"),
        ("00007", "@", "00007"),
        ("8:12", "General", "8:12"),
    ],
)
def test_what_a_sheet_shows_as_it_stores_it_is_taken(value: Any, number_format: str, text: str) -> None:
    def fill(sheet: Any) -> None:
        sheet["D3"] = value
        sheet["D3"].number_format = number_format

    table = reader.read(sheet_of(fill), "b")
    assert problems(table) == [] and table.rows[1][1][3] == text


def reads(kind: Any) -> Callable[[str], Any]:
    return TypeAdapter(kind).validate_python


@declared
class KeyedRow(TableRow):
    id: str
    answer: cells.Number


def test_a_table_of_measurements_is_read_by_what_its_cells_store_and_says_so(tmp_path: Path) -> None:
    def fill(sheet: Any) -> None:
        for cell in ("D2", "D3"):
            sheet[cell] = 0.5
            sheet[cell].number_format = "0%"

    problems = Problems()
    file = read_rows(KeyedRow, written(tmp_path / "a.xlsx", sheet_of(fill)), problems)
    assert [row.answer for row in file] == [0.5, 0.5] and not problems
    assert len(file.notes) == 1 and "D2: is shown as '50%'" in file.notes[0] and "1 more" in file.notes[0]


def test_every_problem_of_a_row_is_named_and_rules_between_rows_are_looked_at_beside_them(tmp_path: Path) -> None:
    header = ["person", "passage", "position", "word", "time", "log_frequency", "right"]
    rows = [["p", "a", "0", "one", "300", "-3", "1"], ["p", "a", "0", "two", "300", "x", "2"], ["", "", "x", "", "-1"]]
    path = written(tmp_path / "t.csv", text_of(rows=[header, *rows[:2], [*rows[2], "", ""]]))
    with pytest.raises(FileErrors) as error:
        own_times.make(path, path, own_times.TimeSettings())
    said = [(problem.line, problem.field) for problem in error.value.problems]
    assert said == [
        *((3, name) for name in ("right", "log_frequency", "word", "position")),
        *((4, name) for name in ("passage", "position", "word", "time", "person")),
    ]
    assert "the same word of p stands in line 2: keep one" in error.value.lines[3]


def test_a_count_beside_an_empty_logarithm_is_a_count(tmp_path: Path) -> None:
    path = written(tmp_path / "f.csv", "word,log_frequency,count\na,-2,9\nb,,100\n")
    assert frequencies.read_frequencies(path) == {"a": -2, "b": 2}


def test_escaped_breaks_of_a_sheet_are_line_breaks_and_escaped_escapes_are_letters() -> None:
    def fill(sheet: Any) -> None:
        sheet["C2"] = "first_x000D_\nsecond_x000D_third"
        sheet["C3"] = "What is _x005F_x000D_?"

    table = reader.read(sheet_of(fill), "b")
    assert [row[2] for _line, row in table.rows] == ["first\nsecond\nthird", "What is _x000D_?"]
    (said,) = problems(reader.read(sheet_of(lambda sheet: sheet.__setitem__("C3", "bell_x0007_")), "b"))
    assert said.startswith("b:3: C3: holds the character U+0007")
    assert "half a letter" in problems(reader.read(sheet_of(lambda sheet: sheet.__setitem__("C3", "_xD800_")), "b"))[0]


def test_formulas_errors_and_merged_cells_are_refused_with_their_cells() -> None:
    def fill(sheet: Any) -> None:
        sheet["D2"], sheet["D3"] = "=1+1", "#N/A"
        sheet["D3"].data_type = "e"
        sheet.merge_cells("B2:B3")

    lines = problems(reader.read(sheet_of(fill), "b"))
    assert [line.split(": ")[1] for line in lines] == ["D2", "D3", "B2"]
    assert "formula" in lines[0] and "the error #N/A: correct it" in lines[1] and "unmerge" in lines[2]
    assert problems(reader.read(sheet_of(lambda sheet: sheet.merge_cells("A1:A1")), "b")) == []


def test_hidden_rows_and_columns_are_read_and_said() -> None:
    def fill(sheet: Any) -> None:
        sheet.row_dimensions[3].hidden = True
        sheet.column_dimensions["D"].hidden = True

    table = reader.read(sheet_of(fill), "b.xlsx")
    assert len(table.rows) == 2
    assert table.notes == (
        "b.xlsx: rows 3 of the sheet are hidden, and are read as all others",
        "b.xlsx: columns D of the sheet are hidden, and are read as all others",
    )


def test_an_empty_sheet_is_refused_and_the_others_are_named() -> None:
    content = sheet_of(lambda sheet: sheet.parent.create_sheet("Data"), rows=[])
    assert refused(content)[0].endswith("the other sheets are Data")


@pytest.mark.parametrize(("place", "name"), [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")])
def test_columns_have_the_sheets_letters(place: int, name: str) -> None:
    assert reader.letters_of(place) == name


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [(0, '0;(0);"none"', None), (1234.5, "#,##0.0#", "1,234.5"), (-0.5, "0%", "-50%"), (0.005, "0.00", "0.01")],
)
def test_a_number_is_shown_as_its_format_says(value: float, number_format: str, shown: str | None) -> None:
    if shown is not None:
        assert spreadsheets.shown_number(value, number_format) == shown


# Names


@pytest.mark.parametrize(
    "name",
    [
        "q1\u200b",
        "q\u00ad1",
        "q1\u200f",
        "\u2066q1",
        "q\u00a01",
        "q1\ufeff",
        "q\u3000 1",
        "a\u200cb",
        "q\u0085",
        "q\u2028",
    ],
)
def test_a_name_with_a_letter_that_cannot_be_seen_is_refused(name: str) -> None:
    assert "U+" in letters.problem_of(name) and letters.problem_of(name).endswith("remove it")


@pytest.mark.parametrize("name", ["q 1", "می\u200cشود", "क्\u200dष", "ﬁne", "é", "👩\u200d🔬", "gpt-4o (v2)"])
def test_names_of_any_script_are_names(name: str) -> None:
    assert letters.problem_of(name) == ""


def test_names_look_alike_whatever_case_spaces_and_forms() -> None:
    alike = letters.LookAlikes[int]()
    assert alike.add("m one", 1) is None and alike.add("m one", 2) is None
    for name in ("M one", "m  one", "m\u00a0one", "m\u200b one", "ｍ one"):
        assert alike.add(name, 3) == ("m one", 1)
    assert alike.add("m two", 4) is None and alike.add("M ONE", 5, beside="other") is None
    assert alike.add("gpt-4o", 6) is None and alike.add("gpt-4\u043e", 7) == ("gpt-4o", 6)
    assert alike.add("\u0410", 8) is None and alike.add("\u0391", 9) is None
    assert letters.look("é") == letters.look("e\u0301") and letters.look("STRASSE") == letters.look("straße")


def test_ids_and_tasks_that_cannot_be_told_apart_are_refused_or_said(tmp_path: Path) -> None:
    rows = [HEADER, ["q1", "geo", "A?", "x"], ["q1\u200b", "geo", "B?", "x"]]
    table = reader.read(text_of(rows=rows).encode(), "b")
    assert [str(problem) for problem in uploads.proposal_of(table).problems] == [
        "b:3: id: 'q1\\u200b' holds U+200B, which cannot be seen: remove it"
    ]
    rows = [HEADER, ["q1", "geo", "A?", "x"], ["Q1", "Geo", "B?", "x"]]
    proposal = uploads.proposal_of(reader.read(text_of(rows=rows).encode(), "b"))
    assert not proposal.problems
    assert list(proposal.notes) == [
        "b:3: id: 'Q1' differs in case, spaces or forms of letters alone from 'q1' in line 2",
        "b:3: source: 'Geo' differs in case, spaces or forms of letters alone from 'geo' in line 2",
    ]


# Letters and markup


@pytest.mark.parametrize(
    "text", ["What does <br> do?", "<b>x</b>", "&lt;br&gt;", "&amp;lt;b&gt; <b>", "a & b < c", "<BR>"]
)
def test_each_text_has_one_form_in_the_markup_and_comes_back(text: str) -> None:
    form = as_letters(text)
    assert plain_text(form) == text
    assert "<b>" not in render_text(form) and "<br>" not in render_text(form)
    assert as_letters(form) == form or plain_text(as_letters(form)) == form


def test_letters_of_a_table_never_become_markup_and_markup_stays() -> None:
    assert render_text(as_letters("a <b>b</b>")) == "a &lt;b&gt;b&lt;/b&gt;"
    assert render_text(as_letters("<script>")) == "&lt;script&gt;"
    assert render_text("<b>a &lt;br&gt;</b><br>c") == "<b>a &lt;br&gt;</b><br>c"
    assert plain_text("<b>a</b><br>c") == "a\nc"


def rows_with(*texts: str) -> list[QuestionRow]:
    return [QuestionRow(str(n), "s", text, "k", file="b", line=n + 2) for n, text in enumerate(texts)]


def test_texts_are_letters_unless_most_of_them_begin_in_bold_or_somebody_says_so() -> None:
    rows, (said,) = in_markup(rows_with("What is <br>?", "And <b>x</b>?", "Plain?"))
    assert [row.question for row in rows] == ["What is &lt;br&gt;?", "And &lt;b&gt;x&lt;/b&gt;?", "Plain?"]
    assert said.startswith("b: question: 2 texts hold <b>, </b> or <br> (line 2, 3)") and "--html" in said
    rows, (said,) = in_markup(rows_with("<b>One?</b><br>(A) 1", "<b>Two\n?</b>", "Which <br>?", "Plain?"))
    assert rows[2].question == "Which <br>?" and "--letters" in said
    rows, notes = in_markup(rows_with("<b>One?</b>"), html=False)
    assert rows[0].question == "&lt;b&gt;One?&lt;/b&gt;" and len(notes) == 1
    rows, notes = in_markup(rows_with("What is <br>?"), html=True)
    assert rows[0].question == "What is <br>?" and notes == []
    assert in_markup(rows_with("Plain?")) == (rows_with("Plain?"), [])


@pytest.mark.django_db
def test_literal_tags_reach_people_models_and_predictors_as_letters(tmp_path: Path, capsys: Any) -> None:
    text = "id,source,question,answer\na,html,Which tag is <br> in HTML?,line break\nb,html,What does <b> do?,bold\n"
    path = written(tmp_path / "q.csv", text)
    call_command("import_questions", str(path), bank="letters")
    output = capsys.readouterr()
    assert "2 texts hold <b>, </b> or <br>" in output.err and "imported 2" in output.out
    question = Question.objects.get(external_id="a")
    assert question.plain == "Which tag is <br> in HTML?" and question.html == "Which tag is &lt;br&gt; in HTML?"
    assert "Which tag is <br> in HTML?" in collecting.prompt_for(question)
    call_command("import_questions", str(path), bank="marked", html=True)
    assert Question.objects.get(external_id="a", bank__name="marked").plain == "Which tag is \n in HTML?"
    import_questions(path, "api")
    assert find_bank("api").questions.get(external_id="b").plain == "What does <b> do?"


def test_tags_in_a_published_benchmark_stay_letters(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    written(tmp_path / "test" / "college_computer_science_test.csv", "Which is <br>?,<b>,two,three,four,A\n,,,,,\n")
    (row,) = formats.read(tmp_path, problems := Problems(), format="mmlu")
    assert not problems and row.line == 1 and row.id.endswith(":0")
    assert plain_text(row.question) == "Which is <br>?\n(A) <b>\n(B) two\n(C) three\n(D) four"


# Doubles


@pytest.mark.parametrize(
    "text",
    [
        "Which is it? (A) one (B) two (C) three",
        "Which (A)?\n(A) one\n(B) two\n(C)  three",
        "Which?\nA. one\nB. two\nC) three",
    ],
)
def test_options_are_read_from_lines_and_from_within_them(text: str) -> None:
    assert options_of(text) == {"A": "one", "B": "two", "C": "three"}
    assert options_of("Vitamin (B) or (C)?") == {} and options_of("(A) alone") == {}


@pytest.mark.parametrize("key", ["B", "(C)", "two"])
def test_equal_options_of_which_one_is_the_key_are_named(key: str) -> None:
    row = QuestionRow("q", "s", "Which? (A) one (B) two (C) two", key, file="b", line=7)
    assert equal_options([row]) == [
        "b:7: question: the options B and C of q have the same words, 'two', and one of them is the key"
    ]
    assert equal_options([QuestionRow("q", "s", "Which? (A) one (B) two (C) two", "A")]) == []


@pytest.mark.django_db
def test_doubles_of_tables_and_benchmarks_are_said_before_they_are_stored(tmp_path: Path, capsys: Any) -> None:
    question = "Which is it? (A) one (B) two (C) two (D) three"
    path = written(tmp_path / "q.csv", text_of(rows=[HEADER, ["1", "t", question, "C"], ["2", "t", question, "C"]]))
    call_command("import_questions", str(path), bank="doubles")
    said = capsys.readouterr().err
    assert "lines 2 and 3: the same question under two ids (1, 2)" in said
    assert "q.csv:2: question: the options B and C" in said
    (tmp_path / "m").mkdir()
    written(tmp_path / "m" / "elementary_mathematics_test.csv", "2+2?,3,4,4,5,B\n2+2?,3,4,4,5,B\n3+3?,1,2,6,7,C\n")
    call_command("import_questions", str(tmp_path / "m"), bank="mmlu", format="mmlu")
    said = capsys.readouterr().err
    assert "lines 1 and 2: the same question" in said and said.count("the options B and C") == 2
    assert Bank.objects.get(name="mmlu").question_count == 3


# Every reader


ANSWERS = ["llm", "question_id", "correct"]


@pytest.fixture
def bank(tmp_path: Path, db: Any) -> Bank:
    rows = [HEADER, *[[f"q{n}", "t", f"Is it {n}?", "x"] for n in range(1, 3)]]
    return import_questions(written(tmp_path / "bank.csv", text_of(rows=rows)), "mine")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_answers_of_models_are_read_in_every_form(bank: Bank, tmp_path: Path, delimiter: str, end: str) -> None:
    rows = [[*ANSWERS, ""], ["m", "q1", "1", ""], ["", "", "", ""], ["m", "q2", "TRUE", ""]]
    path = written(tmp_path / "a.csv", ("\ufeff" + text_of(delimiter, end, rows)).encode("utf-16"))
    done = model_answers.import_answers(path, bank)
    assert done.new == {"m": 2} and "without a name" in done.notes[0]


def test_models_that_look_alike_are_named_and_nothing_is_stored(bank: Bank, tmp_path: Path) -> None:
    rows = [ANSWERS, ["m one", "q1", "1"], ["M one", "q1", "0"], ["m\u00a0one", "q2", "1"], ["m\u200bone", "q2", "0"]]
    with pytest.raises(FileErrors) as error:
        model_answers.import_answers(written(tmp_path / "a.csv", text_of(rows=rows)), bank)
    said = [(problem.line, problem.field) for problem in error.value.problems]
    assert said == [(3, "llm"), (4, "llm"), (5, "llm")]
    assert "from 'm one' in line 2: write one name" in error.value.lines[0]
    assert not LanguageModel.objects.exists() and not ModelAnswer.objects.exists()


def test_a_model_that_looks_like_a_stored_one_is_named(bank: Bank, tmp_path: Path) -> None:
    LanguageModel.objects.create(name="GPT-4")
    path = written(tmp_path / "a.csv", text_of(rows=[ANSWERS, ["gpt-4", "q1", "1"]]))
    with pytest.raises(FileErrors, match="from 'GPT-4', which is stored"):
        model_answers.import_answers(path, bank)
    LanguageModel.objects.create(name="gpt-4")
    assert model_answers.import_answers(path, bank).new == {"gpt-4": 1}


def test_a_models_name_is_checked_wherever_it_is_made(db: Any) -> None:
    assert LanguageModel.named("m").pk == LanguageModel.named("m").pk
    for name in ("m\u200b", "m\x1b[31m", " m", "", "m" * 121):
        with pytest.raises(HunchError, match="name of a language model"):
            LanguageModel.named(name)


@pytest.mark.parametrize("text", ["1_0", "١", "0x1", "1,5", "", "nan", "inf", "1e999", "--1", "1 0"])
def test_what_python_alone_takes_for_a_number_is_none(text: str) -> None:
    assert number_of(text) is None
    with pytest.raises(ValueError, match="is neither 0 nor 1"):
        reads(cells.Correct)(text)


def test_numbers_of_cells_are_read_as_programs_write_them() -> None:
    assert [number_of(text) for text in (" 1 ", "-.5", "1.", "1e-3", "+2E2")] == [1, -0.5, 1, 0.001, 200]
    nats, signed = reads(cells.Surprisal), reads(cells.AnyNumber)
    assert nats("inf") == float("inf") and signed("-1") == -1 and math.isnan(nats("NA"))
    for text in ("-1", "1_0", "-inf"):
        with pytest.raises(ValueError, match=f"'{text}' is no surprisal"):
            nats(text)
    assert cells.whole_of("1_0") is None and cells.whole_of("3.0") == 3


def test_texts_and_their_readings_come_from_every_form(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", "id;text\r\n;\r\nx;one two\r\n".encode("utf-16"))
    texts = text_files.read_texts([table])
    assert [(text.id, text.text) for text in texts] == [("x", "one two")]
    plain = written(tmp_path / "p.txt", "\ufeffone\rtwo\r\rthree\u2028more\r".encode("utf-16"))
    assert [(read_text.id, read_text.text) for read_text in text_files.read_texts([plain], by_lines=True)] == [
        ("p.txt:1", "one"),
        ("p.txt:2", "two"),
        ("p.txt:4", "three\u2028more"),
    ]
    path = written(tmp_path / "r.tsv", "text_id\tstart\tend\tlogprob\t\nx\t0\t3\t\t\n\t\t\t\t\nx\t3\t7\t-inf\t\n")
    assert len(text_files.token_file(path, texts, tokenizer="t")[0].reading.tokens) == 2
    written(path, "text_id\tstart\tend\tlogprob\nx\t0\t3\t-1_0\n")
    with pytest.raises(FileErrors, match="logprob: '-1_0' is no logarithm"):
        text_files.token_file(path, texts, tokenizer="t")
    with pytest.raises(FileErrors, match=r"p\.txt:2: file: holds the character U\+000C"):
        text_files.read_texts([written(plain, "one\r\ntwo\f\n")])


def test_lists_of_ids_to_flag_come_from_every_form(tmp_path: Path) -> None:
    path = written(tmp_path / "ids.csv", "\ufeffid;reason;\n;;\nq1;broken;\n")
    assert question_flags.read_ids(path) == [question_flags.Wish("q1", "broken")]
    assert [question.external_id for question in question_flags.read_ids(written(path, "q1\r\rq2\r"))] == ["q1", "q2"]
    with pytest.raises(FileErrors, match="its column has no name"):
        question_flags.read_ids(written(path, "id,\nq1,x\n"))


def test_pairs_and_their_labels_come_from_every_form(tmp_path: Path) -> None:
    header = ["q1", "q2", "source1", "source2", "previous_correct", "belief_change", ""]
    row = ["A &lt;br&gt;?", "<b>B?</b><br>c", "s", "t", "1", "0.5", ""]
    path = written(tmp_path / "l.csv", text_of("\t", "\r\n", [header, [""] * 7, row]).encode("utf-16"))
    pairs = alignment_files.read_pairs(path)
    assert (pairs.pairs[0].evidence_text, pairs.pairs[0].target_text) == ("A <br>?", "B?\nc")
    plain = written(tmp_path / "m.csv", text_of(rows=[header[:6], [""] * 6, row[:6]]))
    assert datasets.read(plain).labels.tolist() == [0.5]
    with pytest.raises(Exception, match="belief_change: '1_0' is not a number"):
        datasets.read(written(plain, text_of(rows=[header[:6], [*row[:5], "1_0"]])))
    with pytest.raises(FileErrors, match="U\\+0007"):
        alignment_files.read_pairs(written(plain, text_of(rows=[header[:6], ["a\a", *row[1:6]]])))


def test_files_of_alignment_skip_empty_rows_and_name_the_cell(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", text_of(";", rows=[ANSWERS, ["", "", ""], ["m", "q1", "0.5"]]))
    assert alignment_files.read_answers(path).correct == {"m": {"q1": 0.5}}
    with pytest.raises(FileErrors, match="3: correct: '0_5'"):
        alignment_files.read_answers(written(path, "llm,question_id,correct\n,,\nm,q1,0_5\n"))


def test_json_of_a_benchmark_is_refused_with_what_cannot_be_stored(tmp_path: Path) -> None:
    text = '{"examples": [{"input": "a", "target": "x"}, {"input": "b \\u0007", "target": "\\ud800"}]}'
    written(tmp_path / "navigate.json", text.encode("utf-16"))
    problems = Problems()
    assert len(list(formats.read(tmp_path, problems, format="bbh"))) == 2
    assert [problem.field for problem in problems.found] == ["examples.1.input", "examples.1.target"]


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ('{"examples": [{"input": null, "target": "x"}]}', "examples.0.input", "is no text"),
        ('{"examples": [{"input": "a", "target": true}]}', "examples.0.target", "is no text"),
        ('{"examples": [{"input": "a", "target": 1}]}', "examples.0.target", "is no text"),
        ('{"examples": [], "examples": [{"input": "a", "target": "x"}]}', "file", "'examples' stands twice"),
        ('{"examples": [{"input": "a", "input": "b", "target": "x"}]}', "file", "'input' stands twice"),
        ('{"examples": [{"input": "a", "target": NaN}]}', "file", "NaN is no number of JSON"),
        ('{"examples": [{"input": "a", "target": 1e400}]}', "file", "too large a number"),
        ('{"n": ' + "9" * 5000 + "}", "file", "too large a number"),
        ('{"n": ' + "[" * 100_000, "file", "nests too deep"),
        ('{"examples": 3}', "examples", "is not a list"),
        ("[1, 2]", "examples", "is not a list"),
    ],
)
def test_json_that_two_readers_read_otherwise_is_refused(tmp_path: Path, text: str, field: str, said: str) -> None:
    written(tmp_path / "navigate.json", text.encode())
    problems = Problems()
    assert not list(formats.read(tmp_path, problems, format="bbh"))
    assert [problem.field for problem in problems.found] == [field] and said in problems.found[0].message


@pytest.mark.parametrize("text", ['{"dog": true}', '{"dog": 1, "dog": 2}', '{"dog": NaN}', '{"dog": 0}', "[" * 100_000])
def test_counts_of_answers_are_whole_numbers_that_stand_once(text: str) -> None:
    assert cloze_files._answers(text) is None


def test_letters_that_were_lost_before_are_said() -> None:
    table = reader.read(
        text_of(rows=[HEADER, ["q1", "geo", "caf\ufffd?", "Ã©tÃ©"], ["q2", "geo", "é Ã b", "Â£"]]).encode(), "b"
    )
    proposal = uploads.proposal_of(table)
    assert not proposal.problems
    assert [note.split(": ", 2)[:2] for note in proposal.notes] == [
        ["b:2", "question"],
        ["b:2", "answer"],
        ["b:3", "answer"],
    ]
    assert "U+FFFD" in proposal.notes[0] and "may be 'é'" in proposal.notes[1] and "may be '£'" in proposal.notes[2]


@pytest.mark.parametrize("content", ["<!DOCTYPE html><html>", "<table><tr>", '[{"id": "q1"}]', '{"id": "q1"}'])
def test_a_page_or_json_is_called_what_it_is(content: str) -> None:
    with pytest.raises(FileErrors, match="save the table as CSV"):
        reader.read(content.encode(), "b.csv")
    assert reader.read(content.encode(), "b.csv", header=("text",)).rows


# Study files

STUDY = 'title = "One\\u0007"\r[a]\rb = ["x", "y\\u001b"]\r'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_toml_is_read_in_every_form(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path / "s.toml", 'title = "Größe"\r[a]\rb = 1\r'.encode(encoding))
    assert creating.read_study_file(path) == 'title = "Größe"\n[a]\nb = 1\n'
    assert read_toml(path) == {"title": "Größe", "a": {"b": 1}}


def test_toml_of_another_encoding_is_refused_with_the_line_and_its_windows_ends_stay(tmp_path: Path) -> None:
    path = written(tmp_path / "s.toml", b'title = "x"\r\nwho = "M\xfcller"\r\n')
    for read in (creating.read_study_file, read_toml):
        with pytest.raises(FileErrors, match=r"s\.toml:2: file: byte 9 of this line is not UTF-8"):
            read(path)
    assert creating.read_study_file(written(path, "a = 1\r\nb = 2\r\n")) == "a = 1\r\nb = 2\r\n"
    with pytest.raises(FileErrors, match="a study file has at most"):
        creating.read_study_file(written(path, b"#" * 300_000))


@pytest.mark.django_db
def test_control_characters_of_a_study_file_are_refused_with_their_keys() -> None:
    with pytest.raises(FileErrors) as error:
        creating.checked_study(text="\ufeff" + STUDY, source_name="s.toml")
    said = [line for line in error.value.lines if "control character" in line]
    assert [line.split(": ")[:2] for line in said] == [["s.toml:1", "title"], ["s.toml:3", "a.b[1]"]] or len(said) == 2


# The small inputs that outsiders made


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "said", "stored"),
    [
        ("blank_rows.csv", "imported 2", 2),
        ("far_cell.xlsx", "imported 2", 2),
        ("nameless_column.xlsx", "D2: holds 'note'", 0),
        ("trailing_separator.csv", "columns without a name", 2),
        ("shown_as_time.xlsx", "D2: is shown", 0),
        ("shown_as_percent.xlsx", "D4: is shown as '00007'", 0),
        ("escaped_breaks.xlsx", "imported 2", 2),
        ("control_characters.csv", ":2: file: holds", 0),
        ("two_encodings.csv", ":3: file: byte", 0),
        ("look_alike_ids.csv", "U+200B", 0),
        ("equal_options.csv", "the same question under two ids", 2),
        ("equal_options.csv", "the options B and C", 2),
        ("two_marks.csv", "imported 1", 1),
        ("mark_inside.csv", "imported 2", 2),
        ("literal_tags.csv", "shown as these letters", 2),
    ],
)
def test_small_inputs_of_other_trackers(tracker_inputs: Path, name: str, said: str, stored: int, capsys: Any) -> None:
    status = 0
    try:
        call_command("import_questions", str(tracker_inputs / name), bank="inputs")
    except SystemExit as exc:
        status = exc.code
    output = capsys.readouterr()
    assert said in output.out + output.err and status == (not stored)
    assert Question.objects.count() == stored
    ids = set(Question.objects.values_list("external_id", flat=True))
    assert all(decoding.MARK not in question_id for question_id in ids)


@pytest.mark.parametrize("name", ["study_utf16.toml", "study_mac.toml"])
def test_study_files_of_other_trackers_are_read(tracker_inputs: Path, name: str) -> None:
    assert creating.read_study_file(tracker_inputs / name).startswith('slug = "g"\n')


def test_look_alike_models_of_other_trackers_are_named(tracker_inputs: Path, bank: Bank) -> None:
    with pytest.raises(FileErrors) as error:
        model_answers.import_answers(tracker_inputs / "look_alike_models.csv", bank)
    assert [line.split(":")[1] for line in error.value.lines] == ["3", "4", "5"] and not ModelAnswer.objects.exists()


@pytest.mark.django_db
def test_doubles_of_other_trackers_are_said(tracker_inputs: Path, capsys: Any) -> None:
    call_command("import_questions", str(tracker_inputs / "mmlu_doubles"), bank="inputs", format="mmlu")
    said = capsys.readouterr()
    assert "the same question" in said.out + said.err and "and one of them is the key" in said.out + said.err


def test_ties_of_other_trackers_have_no_first(tracker_inputs: Path, tmp_path: Path, capsys: Any) -> None:
    call_command("preferences", comparisons=tracker_inputs / "all_ties.csv", out=tmp_path / "out")
    said = capsys.readouterr().out
    assert "First is" not in said and "equal" in said


@pytest.mark.django_db
def test_readings_of_other_trackers_are_compared_on_what_all_have_read(tracker_inputs: Path, tmp_path: Path) -> None:
    models = [f"{name}=file:{tracker_inputs / f'readings_{name}_first.csv'}" for name in ("without", "with")]
    texts = shutil.copy(tracker_inputs / "first_tokens.txt", tmp_path / "t49_lines.txt")  # As its readings call it.
    call_command("perplexity", texts, "--lines", *(f"--model={model}" for model in models), out=tmp_path)
    with (tmp_path / "perplexity.csv").open(newline="", encoding="utf-8") as file:
        bits = [row["bits_per_character"] for row in csv.DictReader(file)]
    assert len(bits) == 2 and bits[0] == bits[1]
