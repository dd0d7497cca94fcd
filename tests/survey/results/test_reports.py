"""A report of an instrument in every place: command, page, API and export. The report here is a toy."""

import csv
import io
import json
import logging
import re
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from survey.console.reports import page
from survey.contracts import instruments
from survey.contracts.reports import (
    Argument,
    Picture,
    Report,
    ReportArguments,
    ReportEntry,
    ReportFile,
    ReportResult,
)
from survey.exceptions import HunchError, NotFound, StateRefused
from survey.figures import Column, LinkedCell, Table, TableView
from survey.instruments.belief_update.instrument import BeliefUpdate
from survey.models import ApiToken, AuditEntry, Question, Study
from survey.services.base import auditing
from survey.services.results import png, reports
from survey.services.results.export import codebook, files
from tests import cast

pytestmark = pytest.mark.django_db

HERE = "tests.survey.results.test_reports"
EVIL = "<script>alert(1)</script>"
OWN = ("methods", "estimates", "two_studies", "people", "policies")
COMPARING = (reports.AGREEMENT, reports.CALIBRATION, reports.GAPS)
WORDS = (Column("word", "text", "A word."), Column("times", "number", "How often."))
SHOWN = (
    *WORDS,
    Column("share", "share", "Of all words.", in_file=False),
    Column("about", "text", "A question.", in_file=False),
)
SVG = f"""<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 1 1"
onload="alert(2)">
<title>{EVIL.replace("<", "&lt;")}</title><style>body {{ display: none }}</style><script>alert(3)</script>
<foreignObject><p>alert(4)</p></foreignObject><use xlink:href="#mark"/><use xlink:href="https://elsewhere.example/x"/>
<path id="mark" d="M0,0h5" style="color: red" fill="url(https://elsewhere.example/y)" onclick="alert(5)"/></svg>
"""


class ToyReport(Report):
    """How often words stand somewhere, at least so often."""

    arguments = (
        Argument("least", "the least times", default="1", on_pages="2"),
        Argument("word", "only this word", many=True, choices=lambda study: ["fox", EVIL]),
        Argument("why", "a reason", required=True, choices=lambda study: ["fun", "science"]),
        reports.CONDITION,
    )

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        least = arguments.whole("least", lowest=0, highest=9)
        rows: list[list[Any]] = [["fox", 3], [EVIL, np.float64("nan")], ["dog, =1", np.int64(1)]]
        rows = [row for row in rows if not row[1] < least and row[0] in (arguments["word"] or [row[0]])]
        about = LinkedCell(EVIL, Question.objects.first())
        return ReportResult(
            title=f"Words, for {arguments.one('why')}",
            headline="A fox was said most often.",
            lines=[f"{len(rows)} words", EVIL],
            tables=[
                Table(
                    "words",
                    "Words",
                    SHOWN,
                    [[*row, 0.5, about] for row in rows],
                    note="Of a toy.",
                    views=[
                        TableView(["word", "share"], title="Shares", note="Rounded.", most=1),
                        TableView(["about"], rows=[0]),
                    ],
                ),
                Table("more", "More", WORDS, rows),
            ],
            pictures=[
                Picture("drawn", "A line", "It goes up.", lambda path: _write(path, SVG)),
                Picture("heavy", "A large one", "It is large.", lambda path: _write(path, SVG), heavy=True),
            ],
            files=[ReportFile("words.txt", lambda: b"fox\n")],
            notes=[f"A note & {EVIL}"],
            data={"least": least, "values": np.array([1.5, np.nan])},
        )


class LateReport(Report):
    def obstacle(self, study: Study) -> str:
        return f"{study.slug}: wait for the <moon>"

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        raise AssertionError("nobody may make it")


class ExportedReport(ToyReport):
    """Its table has a name that the export has already, and one that holds for a condition."""

    arguments = (reports.CONDITION,)
    exported = {"answers": WORDS, "conditions": WORDS}

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        return ReportResult(
            "", tables=[Table("conditions", "", WORDS, [[condition, 1] for condition in arguments["condition"]])]
        )


class WordsOfAll(ToyReport):
    """The same for exports, which ask nothing."""

    arguments = ()
    exported = {"words": SHOWN}

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        return super().make(study, ReportArguments(least=("1",), word=(), why=("fun",)))


class BuggyReport(Report):
    exported = {"lost": WORDS}

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        return ReportResult("", lines=[str(1 / len(arguments))])


class FailingReport(Report):
    exported = {"nothing": WORDS}

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        raise StateRefused("there is nothing to show: ask <somebody>")


class OddChoices(Report):
    arguments = (Argument("of", "of what", required=True, choices=lambda study: [str(1 // 0)]),)

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        raise AssertionError("nobody may make it")


class RemarksReport(Report):
    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        return ReportResult(
            "",
            tables=[
                Table("said", "Said", WORDS, [["my own words", 1]], verbatim=True),
                Table("counted", "Counted", WORDS, [["not secret", 1]]),
            ],
        )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def entry(name: str, kind: str) -> ReportEntry:
    return ReportEntry(name, f"The {name}", f"What {name} says.", f"How to read {name}.", f"{HERE}.{kind}")


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    entries = (entry("words", "ToyReport"), entry("late", "LateReport"), entry("broken", "NoSuchReport"))
    monkeypatch.setattr(BeliefUpdate, "reports", lambda self: entries)
    monkeypatch.setattr(BeliefUpdate, "expectations", None)  # Without the core's reports that compare.
    return cast.open_study()


def having(monkeypatch: pytest.MonkeyPatch, **kinds: str) -> None:
    entries = [entry(name, kind) for name, kind in kinds.items()]
    monkeypatch.setattr(BeliefUpdate, "reports", lambda self: entries)


def test_a_page_fills_in_every_argument_that_was_not_given() -> None:
    def filled(**arguments: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return reports.pages_arguments(Study(), entry("words", "ToyReport"), ToyReport(), arguments, reader=None)

    assert filled() == {"least": ["2"], "why": ["fun"]}
    assert filled(least=["5"], word=["", "fox"]) == {"least": ["5"], "word": ["fox"], "why": ["fun"]}
    assert filled(least=[""], why=["science"]) == {"least": ["2"], "why": ["science"]}


def report(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("report", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def refused(*arguments: str) -> str:
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("report", *arguments, stdout=io.StringIO(), stderr=err)
    return err.getvalue()


def page_of(study: Study, name: str = "words") -> str:
    return reverse("admin:survey_study_report", args=[study.pk, name])


def file_of(study: Study, file: str, name: str = "words") -> str:
    return reverse("admin:survey_study_report_file", args=[study.pk, name, file])


def reader(*, may_export: bool = True) -> Client:
    user = User.objects.create_user(f"reader {may_export}")
    if may_export:
        user.user_permissions.add(Permission.objects.get(codename="export_study"))
    cast.join_all(user)
    return Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})


# The command


def test_the_command_lists_every_report_with_what_keeps_it_from_being_made(study: Study) -> None:
    out, _err = report("cast")
    assert "words: What words says.\n" in out and "late: What late says.\n  not now: cast: wait for the <moon>" in out
    assert "  least=...  the least times (default 1)" in out
    assert "  why=...  a reason (required)" in out and "may be given again" in out
    assert "broken: What broken says.\n  not now: " in out and "cannot be loaded" in out
    names = [line["name"] for line in json.loads(report("cast", "--json")[0])]
    assert names == [*OWN, "words", "late", "broken"]


def test_the_command_prints_lines_layouts_plain_tables_and_notes(study: Study) -> None:
    out, err = report("cast", "words", "why=fun")
    assert out.startswith(f"How to read words.\nA fox was said most often.\n3 words\n{EVIL}\n")
    assert "Shares" in out and "50.0 %" in out and "Rounded." in out and "Of a toy." in out
    assert "dog, =1      1" in out and f"{EVIL}      –" in out
    assert "A line: --out DIR draws drawn.svg" in out
    assert err == f"note: A note & {EVIL}\n"


@pytest.mark.parametrize("opening", ["", " ", "Answers", "Answers, by stage:", " Begins with a blank."])
def test_an_entry_without_a_sentence_to_open_with_is_refused(opening: str) -> None:
    with pytest.raises(ValueError, match="opening"):
        ReportEntry("words", "Words", "What words say.", opening, "no.Matter")
    with pytest.raises(TypeError, match="opening"):
        ReportEntry(name="words", title="Words", summary="What words say.", path="no.Matter")  # type: ignore[call-arg]


def test_the_markdown_has_all_of_a_report_and_no_markup_of_others(study: Study) -> None:
    text = reports.as_markdown(reports.make(study, "words", {"why": ["fun"]}))
    parts = [
        "# Words, for fun",
        "How to read words.",
        "A fox was said most often.",
        "3 words",
        "![It goes up.](drawn.svg)",
    ]
    assert [part for part in parts if part not in text.split("\n\n")] == []
    assert sorted(parts, key=text.index) == parts and "| fox | 3 |" in text and "- A note & " in text
    assert "<script" not in text.replace("\\<script", "")


def test_a_long_cell_is_cut_in_the_terminal_and_stays_on_its_line() -> None:
    text = "word " * 30
    findings = ReportResult("", tables=[Table("words", "Words", WORDS, [[f"a\n{text}", 0.123456]])])
    *_head, row = list(page(findings))[-1].splitlines()
    assert row.startswith("a word word") and "…  0.1235" in row and len(row) < 75


def test_the_command_writes_tables_pictures_files_and_all_as_json(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    out, _err = report("cast", "words", "--out", str(folder), "why=science", "word=fox", f"word={EVIL}")
    names = {"words.csv", "more.csv", "drawn.svg", "heavy.svg", "words.txt", "words.json", "report.md"}
    assert {path.name for path in folder.iterdir()} == names
    assert all(f"wrote {folder / name}" in out for name in names)
    with (folder / "words.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["word", "times"], ["fox", "3"], [EVIL, ""]]
    assert (folder / "drawn.svg").read_text() == SVG and (folder / "words.txt").read_bytes() == b"fox\n"
    whole = json.loads((folder / "words.json").read_text())
    assert (whole["title"], whole["data"]) == ("Words, for science", {"least": 1, "values": [1.5, None]})
    assert whole["tables"][0]["rows"] == [["fox", 3], [EVIL, None]]
    assert json.loads(report("cast", "words", "why=science", "--json")[0])["report"] == "words"


def test_pictures_are_written_as_png_too(study: Study, tmp_path: Path) -> None:
    out, _err = report("cast", "words", "why=fun", "--out", str(tmp_path), "--png")
    for name in ("drawn", "heavy"):
        content = (tmp_path / f"{name}.png").read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n" and (tmp_path / f"{name}.svg").exists()
        assert struct.unpack(">II", content[16:24]) == (3, 3), "three pixels for each unit of the drawing"
        assert f"wrote {tmp_path / name}.png" in out


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (None, "pip install resvg-py"),
        (SimpleNamespace(svg_to_bytes=lambda **_options: b"no letters"), "fonts-dejavu-core"),
    ],
)
def test_png_says_what_is_missing_before_a_report_is_made(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Any, message: str
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", library)
    assert message in refused("cast", "words", "why=fun", "--out", str(tmp_path), "--png")
    assert list(tmp_path.iterdir()) == []
    assert "add --out DIR" in refused("cast", "words", "why=fun", "--png")


def test_a_folder_that_cannot_be_written_is_refused(study: Study, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "--out" in refused("cast", "words", "why=fun", "--out", str(tmp_path / "file"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["words", "why=fun", "wide=1"], "wide: words has no such argument; there are: least, word, why, condition"),
        (["words"], "why: name a reason; there are: fun, science"),
        (["words", "why="], "why: name a reason"),
        (["words", "why=fun", "least=1", "least=2"], "least: give it once, not 2 times"),
        (["words", "why=fun", "least=many"], "least: 'many' is not a whole number from 0 to 9"),
        (["words", "why=fun\x00"], "why: holds a character that cannot be used"),
        (["words", "why"], "'why': write ARGUMENT=VALUE"),
        (["late"], "cast: wait for the <moon>"),
        (["broken"], "cannot be loaded"),
        (
            ["gull"],
            "cast has no report 'gull'; there are: methods, estimates, two_studies, people, policies, words, late, "
            "broken",
        ),
        (["pilot"], "cast has no pilot: set pilot = true in its first stage"),
    ],
)
def test_what_cannot_be_made_is_said_in_words(study: Study, arguments: list[str], message: str) -> None:
    assert message in refused("cast", *arguments)


def test_every_problem_with_arguments_is_said_at_once(study: Study) -> None:
    assert len(refused("cast", "words", "wide=1", "least=1", "least=2").splitlines()) == 3


# The page


def test_the_page_shows_everything_and_escapes_all_of_it(study: Study, admin_client: Client) -> None:
    page = admin_client.get(page_of(study)).content.decode()
    assert '<h2 id="table-words">Words</h2>' in page and "<h3>Shares</h3>" in page and "Of a toy." in page
    assert re.search(r'<td class="number" data-label="[^"]+">50.0 %</td>', page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and EVIL not in page
    assert f"/admin/survey/question/{Question.objects.first().pk}/change/" in page  # type: ignore[union-attr]
    assert "<code>hunch report cast words --out DIR</code> (for the person who runs this server" in page
    for file in ("words.csv", "more.csv", "drawn.svg", "words.txt"):
        assert file_of(study, file) in page
    assert file_of(study, "heavy.svg") not in page


def test_a_picture_keeps_what_draws_and_nothing_else(study: Study, admin_client: Client) -> None:
    page = admin_client.get(page_of(study)).content.decode()
    drawn = page[page.index('<div class="hunch-figure">') :].partition("</div>")[0]
    assert 'd="M0,0h5"' in drawn and 'href="#mark"' in drawn
    for danger in ("<script", "alert(2)", "alert(3)", "alert(4)", "alert(5)", "style", "elsewhere", "foreignObject"):
        assert danger not in drawn, danger


def test_the_form_is_made_of_the_arguments(study: Study, admin_client: Client) -> None:
    page = admin_client.get(page_of(study)).content.decode()
    assert '<input type="text" name="least" id="ask-least" value="2"' in page  # a page's own start
    assert '<option value="fun" selected>fun</option>' in page  # the first choice of what is required
    assert 'name="word" id="ask-word" aria-describedby="help-word" multiple' in page
    assert 'name="condition"' not in page, "the study has no factors to choose from"
    assert "2 words" in page
    asked = admin_client.get(page_of(study), {"why": "science", "word": "fox", "least": "0"}).content.decode()
    assert "1 words" in asked and "Words, for science" in asked
    assert all(f'<option value="{word}" selected>{word}</option>' in asked for word in ("fox", "science"))


def test_a_wrong_argument_is_said_on_the_page_beside_the_form(study: Study, admin_client: Client) -> None:
    page = admin_client.get(page_of(study), {"least": EVIL, "wide": "1"}).content.decode()
    assert "wide: words has no such argument" in page and 'name="least"' in page and EVIL not in page


def test_files_are_those_of_the_arguments(study: Study, admin_client: Client) -> None:
    page = admin_client.get(page_of(study), {"word": "fox"}).content.decode()
    assert f'{file_of(study, "words.csv")}?word=fox"' in page
    for asked, name in (({}, "cast-words.spreadsheet.csv"), ({"exact": "1"}, "cast-words.csv")):
        response = admin_client.post(f"{file_of(study, 'words.csv')}?word=fox", asked)
        assert response.content == b"word,times\nfox,3\n"
        assert response["Content-Type"] == "text/csv; charset=utf-8"
        assert response["Content-Disposition"] == f'attachment; filename="{name}"'
    assert admin_client.post(file_of(study, "drawn.svg"))["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert admin_client.post(file_of(study, "words.txt")).content == b"fox\n"
    for file in ("heavy.svg", "words.json", "nothing.csv"):
        assert admin_client.post(file_of(study, file)).status_code == 404
    assert admin_client.post(f"{file_of(study, 'words.csv')}?least=x").status_code == 404


def test_a_file_is_for_who_may_export_and_the_audit_records_it(study: Study, client: Client) -> None:
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_study"))
    cast.join_all(user)
    client.force_login(user)
    page = client.get(page_of(study)).content.decode()
    assert "50.0 %" in page and file_of(study, "words.csv") not in page
    for method in (client.get, client.post):
        assert method(file_of(study, "words.csv")).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    assert client.get(file_of(study, "words.csv")).status_code == 405
    assert not AuditEntry.objects.filter(action="export_report").exists()
    assert client.post(f"{file_of(study, 'words.csv')}?word=fox").status_code == 200
    entry = AuditEntry.objects.get(action="export_report")
    assert (entry.actor, entry.via, entry.subject) == (auditing.actor_of(user), "admin", "cast")
    assert entry.detail == {"report": "words", "asked": {"word": ["fox"]}, "file": "words.csv"}


def test_a_command_that_writes_a_report_is_in_the_audit_and_one_that_shows_it_is_not(
    study: Study, tmp_path: Path
) -> None:
    report("cast", "words", "why=fun")
    assert not AuditEntry.objects.filter(action="export_report").exists()
    report("cast", "words", "why=fun", "word=fox", "--out", str(tmp_path))
    entry = AuditEntry.objects.get(action="export_report")
    assert (entry.actor, entry.via, entry.study) == ("", "command", "cast")
    assert entry.detail == {"report": "words", "asked": {"why": ["fun"], "word": ["fox"]}}


def test_what_people_wrote_is_shown_to_who_may_export(
    study: Study, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    having(monkeypatch, remarks="RemarksReport")
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_study"))
    cast.join_all(user)
    client.force_login(user)
    page = client.get(page_of(study, "remarks")).content.decode()
    assert "It holds what people wrote" in page and "my own words" not in page and "not secret" in page
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    page = client.get(page_of(study, "remarks")).content.decode()
    assert "It holds what people wrote" not in page and "my own words" in page


def test_page_files_and_api_share_what_was_made_until_something_changes(
    study: Study, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ReportArguments] = []
    whole = ToyReport.make

    def counted(self: ToyReport, study: Study, arguments: ReportArguments) -> ReportResult:
        made.append(arguments)
        return whole(self, study, arguments)

    monkeypatch.setattr(ToyReport, "make", counted)
    page = admin_client.get(page_of(study)).content
    assert admin_client.get(page_of(study)).content.count(b"<tr>") == page.count(b"<tr>")
    for file in ("words.csv", "drawn.svg", "words.txt"):
        assert admin_client.post(file_of(study, file)).status_code == 200
    mine = reader()
    assert mine.get(f"{API}words/?why=fun&least=2").json()["lines"] == ["2 words", EVIL]
    assert len(made) == 1, "the page asks the same"
    admin_client.get(page_of(study), {"least": "3"})
    assert len(made) == 2
    cast.walk(cast.begin(study), until="item", screen="posterior")
    admin_client.get(page_of(study))
    assert len(made) == 3
    auditing.record("import_answers", study.bank)
    admin_client.get(page_of(study))
    assert len(made) == 4


def test_a_list_of_reports_names_what_its_reader_may_see(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[Any] = []

    def choices(_study: Study, _entry: Any, _argument: Any, *, reader: Any = None) -> list[str]:
        readers.append(reader)
        return []

    monkeypatch.setattr(reports, "choices_of", choices)
    reports.lines_as_json(study, reader="somebody")
    assert readers and set(readers) == {"somebody"}


def test_pages_and_api_take_no_number_above_the_webs_limit(
    study: Study, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    least, *others = ToyReport.arguments
    monkeypatch.setattr(ToyReport, "arguments", (replace(least, most_on_web=2), *others))
    api = reader()
    answer = api.get(f"{API}words/?why=fun&least=3")
    assert answer.status_code == 400
    assert answer.json()["error"]["fields"] == {
        "least": ["pages and the API take at most 2; for more: `hunch report cast words least=3`"]
    }
    assert api.get(f"{API}words/?why=fun&least=2").status_code == 200
    page = admin_client.get(page_of(study), {"least": "3"}).content.decode()
    assert "pages and the API take at most 2" in page and 'value="3"' in page
    assert admin_client.post(f"{file_of(study, 'words.csv')}?least=3").status_code == 404
    assert "words" in report("cast", "words", "why=fun", "least=3")[0]


def test_the_study_page_links_what_can_be_made_and_says_why_the_rest_cannot(study: Study, admin_client: Client) -> None:
    page = admin_client.get(reverse("admin:survey_study_change", args=[study.pk])).content.decode()
    assert f'<a href="{page_of(study)}">The words</a>' in page
    assert page_of(study, "late") not in page and "Not now: cast: wait for the &lt;moon&gt;" in page
    assert "The broken" in page and "cannot be loaded" in page
    assert page_of(study, "pilot") not in page and page_of(study, "alignment") not in page
    late = admin_client.get(page_of(study, "late")).content.decode()
    assert "wait for the &lt;moon&gt;" in late
    assert admin_client.get(page_of(study, "gull")).status_code == 404


def test_only_who_may_see_the_study_sees_its_reports(study: Study, client: Client) -> None:
    client.force_login(User.objects.create_user("staff", is_staff=True))
    for address in (page_of(study), file_of(study, "words.csv")):
        assert client.get(address).status_code == 404
    assert Client().get(page_of(study)).status_code == 302


# The API

API = "/api/v1/studies/cast/reports/"


def test_the_api_lists_reports_and_gives_one(study: Study) -> None:
    mine = reader()
    _methods, _estimates, _two_studies, _people, _policies, words, late, broken = mine.get(API).json()
    assert words["url"] == f"http://testserver{API}words/" and words["obstacle"] == ""
    assert words["arguments"][1] == {
        "name": "word",
        "help": "only this word",
        "many": True,
        "required": False,
        "default": "",
        "choices": ["fox", EVIL],
    }
    assert late["obstacle"] == "cast: wait for the <moon>" and "cannot be loaded" in broken["obstacle"]
    report = mine.get(f"{API}words/", {"why": "fun", "word": ["fox", EVIL]}).json()
    (taken,) = AuditEntry.objects.filter(action="export_report").values_list("via", "detail")
    assert taken == ("api", {"report": "words", "asked": {"why": ["fun"], "word": ["fox", EVIL]}})
    assert report == {
        "study": "cast",
        "report": "words",
        "title": "Words, for fun",
        "opening": "How to read words.",
        "headline": "A fox was said most often.",
        "lines": ["2 words", EVIL],
        "notes": [f"A note & {EVIL}"],
        "tables": [
            {
                "name": name,
                "title": name.capitalize(),
                "note": note,
                "columns": [{"name": word.name, "kind": word.kind, "description": word.description} for word in WORDS],
                "rows": [["fox", 3], [EVIL, None]],
            }
            for name, note in (("words", "Of a toy."), ("more", ""))
        ],
        "pictures": [
            {"name": "drawn", "title": "A line", "text": "It goes up."},
            {"name": "heavy", "title": "A large one", "text": "It is large."},
        ],
        "files": ["words.txt"],
        "data": {"least": 1, "values": [1.5, None]},
    }


@pytest.mark.parametrize(
    ("address", "status", "message"),
    [
        ("words/", 400, "why: name a reason"),
        ("words/?why=fun&wide=1", 400, "wide: words has no such argument"),
        ("words/?why=fun&least=%00", 400, "least: "),
        ("late/", 409, "wait for the <moon>"),
        ("broken/", 500, "cannot be loaded"),
        ("gull/", 404, "there are: methods, estimates, two_studies, people, policies, words, late, broken"),
    ],
)
def test_the_api_says_what_cannot_be_made(study: Study, address: str, status: int, message: str) -> None:
    answer = reader().get(API + address)
    assert answer.status_code == status and message in answer.json()["error"]["message"]


def test_the_api_names_each_argument_that_is_wrong(study: Study) -> None:
    error = reader().get(f"{API}words/?wide=1&least=1&least=2").json()["error"]
    assert (error["code"], sorted(error["fields"])) == ("invalid", ["least", "why", "wide"])


@pytest.mark.parametrize("address", [API, f"{API}words/?why=fun"])
def test_the_api_is_for_who_may_export(study: Study, client: Client, address: str) -> None:
    assert client.get(address).status_code == 401
    assert reader(may_export=False).get(address).status_code == 403
    assert reader().get(address).status_code == 200


# The export


def test_an_export_brings_the_tables_along_and_the_codebook_lists_them(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    having(monkeypatch, words="WordsOfAll")
    files.write_export(study, tmp_path)
    assert (tmp_path / "words.csv").read_text() == f'word,times\nfox,3\n{EVIL},\n"dog, =1",1\n'
    assert ("words.csv", WORDS[1]) in codebook.codebook(study)


def test_what_cannot_be_made_leaves_an_empty_table_and_a_line_in_the_log(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    having(monkeypatch, fails="FailingReport", buggy="BuggyReport")
    with caplog.at_level(logging.INFO):
        files.write_export(study, tmp_path)
    assert (tmp_path / "nothing.csv").read_text() == (tmp_path / "lost.csv").read_text() == "word,times\n"
    assert "fails has no rows in the export: there is nothing to show" in caplog.text
    assert "buggy has no rows in the export" in caplog.text


def test_a_fault_of_a_report_is_a_sentence_at_every_door(
    study: Study, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    having(monkeypatch, buggy="BuggyReport", fails="FailingReport")
    assert "BuggyReport fails (division by zero)" in refused("cast", "buggy")
    answer = reader().get(f"{API}buggy/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "report_broken")
    assert "division by zero" in admin_client.get(page_of(study, "buggy")).content.decode()
    assert "ask &lt;somebody&gt;" in admin_client.get(page_of(study, "fails")).content.decode()
    assert admin_client.post(file_of(study, "lost.csv", "buggy")).status_code == 404


def test_choices_that_fail_are_a_sentence_and_the_other_reports_go_on(
    study: Study, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    having(monkeypatch, odd="OddChoices", words="ToyReport")
    odd, words = (line for line in reader().get(API).json() if line["name"] not in OWN)
    assert (
        "OddChoices cannot list the values of of (integer division or modulo by zero)" in odd["obstacle"]
        and words["obstacle"] == ""
    )
    assert odd["arguments"][0]["choices"] == []
    page = admin_client.get(page_of(study, "odd"))
    assert page.status_code == 200 and "cannot list the values of of" in page.content.decode()
    assert "cannot list the values of of" in refused("cast", "odd")
    assert admin_client.post(file_of(study, "x.csv", "odd")).status_code == 404


@pytest.mark.slow
def test_an_instrument_that_cannot_list_its_reports_keeps_its_study_page(
    study: Study, admin_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_instrument: BeliefUpdate) -> Any:
        yield entry("words", "ToyReport")
        raise KeyError("lost")

    monkeypatch.setattr(BeliefUpdate, "reports", broken)
    page = admin_client.get(reverse("admin:survey_study_change", args=[study.pk]))
    assert page.status_code == 200 and "BeliefUpdate cannot list its reports" in page.content.decode()
    assert [line["name"] for line in reader().get(API).json()] == [*OWN, "belief_update"]
    assert "cannot list its reports" in refused("cast", "words")
    files.write_export(study, tmp_path)
    assert (tmp_path / "answers.csv").exists() and not (tmp_path / "words.csv").exists()


@pytest.mark.slow
def test_no_table_of_a_report_takes_a_files_place_and_conditions_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    having(monkeypatch, extra="ExportedReport")
    made = cast.open_study(conditions=[{"factor": "framing", "levels": ["plain", "warm"]}])
    files.write_export(made, tmp_path, levels={"framing": "warm"})
    assert (tmp_path / "answers.csv").read_text().startswith("study,stage,")
    assert (tmp_path / "conditions.csv").read_text() == "word,times\nframing=warm,1\n"


def test_the_reports_of_today_add_what_compares_language_models() -> None:
    made = cast.open_study()
    files_added = {file.name: list(file.rows) for file in reports.export_files(made, {}, ())}
    compared = ["agreement.csv", "calibration.csv", "reliability.csv", "gaps.csv"]
    assert list(files_added) == [
        *("estimates.csv", "slots.csv", "leaving.csv", "noise.csv"),
        *compared,
        "arms.csv",
        "arm_differences.csv",
        "domination.csv",
        "domination_deployed.csv",
    ]
    assert not any(files_added.values())


# Which there are


def test_a_pilot_brings_the_cores_report_and_its_name_cannot_be_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = cast.open_study(stages=[{"sittings": 2, "pilot": True}, {"sittings": 2}])
    having(monkeypatch, pilot="ToyReport", words="ToyReport")
    monkeypatch.setattr(
        BeliefUpdate, "reports", lambda self: [entry("pilot", "ToyReport"), entry("Odd name", "ToyReport")]
    )
    assert [entry.name for entry in reports.entries_of(made)] == ["pilot", *OWN, *COMPARING]
    assert "'pilot' is left out" in caplog.text and "'Odd name' is left out" in caplog.text
    line, *_others = reports.lines_of(made)
    assert line.obstacle == "cast: nobody has begun the pilot yet"
    cast.walk(cast.begin(made))
    assert reports.lines_of(made)[0].obstacle == ""
    assert reports.make(made, "pilot").data["finished"] == 1


def test_a_study_without_its_instrument_keeps_the_cores_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cast.open_study(stages=[{"sittings": 2, "pilot": True}, {"sittings": 2}])
    monkeypatch.delitem(instruments._kinds, "belief_update")
    assert [entry.name for entry in reports.entries_of(made)] == ["pilot", "methods"]
    with pytest.raises(NotFound, match="there are: pilot, methods"):
        reports.find_entry(made, "alignment")


def test_belief_studies_have_theirs_and_other_instruments_have_none() -> None:
    names = [entry.name for entry in reports.entries_of(cast.open_study())]
    theirs = ["live", "alignment", "arms", "domination", "human_calibration", "reasons", "budget", "release", "paper"]
    assert names == [*OWN, *COMPARING, *theirs]
    assert list(instruments.kind("own_answers")().reports()) == []


# What is given


@pytest.mark.parametrize(
    ("text", "is_good"), [("0.5", True), ("1", True), ("1.01", False), ("nan", False), ("", False)]
)
def test_numbers_are_held_to_their_limits(text: str, is_good: bool) -> None:
    arguments = ReportArguments(share=(text,), shares=(text, "0"))
    if is_good:
        assert arguments.number("share", lowest=0, highest=1) == float(text)
        assert arguments.numbers("shares", lowest=0, highest=1) == [float(text), 0.0]
        return
    for read in (arguments.number, arguments.numbers):
        with pytest.raises(HunchError, match="is not a number from 0 to 1"):
            read("share", lowest=0, highest=1)


# Adding one, as docs/reports.md says


@pytest.mark.slow
def test_a_report_that_is_added_as_the_page_says_appears_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, admin_client: Client
) -> None:
    document = (Path(settings.BASE_DIR) / "docs" / "reports.md").read_text(encoding="utf-8")
    source, call = re.findall(r"(?ms)^```python\n(.*?)^```", document)
    (tmp_path / "documented_report.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    made = eval(call, {"ReportEntry": ReportEntry})  # noqa: S307 - our own page
    documented = replace(made, path=made.path.replace("my_instrument.reports.answer_count", "documented_report"))
    monkeypatch.setattr(BeliefUpdate, "reports", lambda self: (documented,))
    made_study = cast.open_study()
    assert "no answer counts yet" in refused("cast", "answer_count")
    cast.walk(cast.begin(made_study))
    out, _err = report("cast", "answer_count", "--out", str(tmp_path / "out"))
    assert "3 answers count" in out and "Answers by stage" in out
    assert (tmp_path / "out" / "answer_count.csv").read_text() == "stage,answers\n1,3\n"
    assert "3 answers count" in admin_client.get(page_of(made_study, "answer_count")).content.decode()
    assert reader().get(f"{API}answer_count/?least=0").json()["data"] == {"stages": {"1": 3}}
    files.write_export(made_study, tmp_path / "export")
    assert (tmp_path / "export" / "answer_count.csv").read_text() == "stage,answers\n1,3\n"
    with pytest.raises(HunchError, match="least"):
        reports.make(made_study, "answer_count", {"least": ["few"]})


def test_the_page_on_reports_names_those_that_there_are() -> None:
    document = (Path(settings.BASE_DIR) / "docs" / "reports.md").read_text(encoding="utf-8")
    there_are = {report.entry.name for report in reports.CORE} | {report.name for report in BeliefUpdate().reports()}
    assert set(re.findall(r"(?m)^\| `([a-z_]+)` \| (?:every|belief|studies|the same)", document)) == there_are


def test_a_picture_that_cannot_be_png_says_how_to_get_it(tmp_path: Path) -> None:
    def draw(_svg: str) -> bytes:
        raise ValueError("no such font")

    with pytest.raises(HunchError, match="no such font; leave --png out"):
        png._write(draw, lambda path: path.write_text("<svg/>", encoding="utf-8") and None, tmp_path / "a.png")
