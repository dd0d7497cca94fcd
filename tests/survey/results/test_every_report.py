"""Every report of every instrument, at every door: command, page, files, API, export, and who is kept out.

The reports are those that the core and the instruments name, and each is opened on a golden study that is full of
answers, and of hostile texts. Each door shows all of it. And what it says is what it said before, number for number:

    python -m tests.renew reports

stores what is said now; the diff shows what has changed.
"""

import csv
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command, get_commands, load_command_class
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import capfirst

from survey.console.reports import ShortName
from survey.contracts import instruments
from survey.contracts.reports import Picture, Report, ReportEntry, ReportResult
from survey.figures import plain_columns, rendering
from survey.figures.charts import Chart
from survey.instruments.belief_update.models import Explanation
from survey.models import ApiToken, LanguageModel, QuestionReport, Study, Task
from survey.services.results import reports
from survey.services.results.export import codebook
from tests import cast
from tests.golden import store
from tests.golden.test_golden import golden, loaded, study_of
from tests.survey.figures import laws

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["golden", "loaded"]

EVIL = "<script>alert(1)</script>"
SVG = "{http://www.w3.org/2000/svg}"
NO_NUMBER = re.compile(r'(?<!")\b(nan|inf|infinity)\b', re.IGNORECASE)  # The word "nan" may stand in quotes.


# A study of each instrument on which its reports can be made, and of those that need another one.
STUDIES: Mapping[str, str] = {
    "belief_update": "beliefs",
    "cloze": "words",
    "next_token": "guesses",
    "preference": "replies",
    "self_paced_reading": "pace",
    "token_comparison": "chances",
}
OTHER_STUDIES: Mapping[str, str] = {"composition": "steps", "composition_live": "steps"}
# How often is simulated or drawn again: a few times say as much about a door.
# Those that say their main figure in words; the others are paragraphs, counts so far, plans or files.
WITH_HEADLINE = {
    *("estimates", "two_studies", "people", "agreement", "calibration", "gaps", "alignment", "domination"),
    *("cloze", "preferences", "reading", "next_token", "token_comparison"),
}
FEW = {"samples": ["100"], "resamples": ["20"], "studies": ["2"]}


def every_report() -> Iterator[Any]:
    """The core's reports on beliefs, and each instrument's own."""
    for core_report in reports.CORE:
        yield pytest.param("belief_update", core_report.entry, id=core_report.entry.name)
    for name in instruments.names():
        kind = instruments.kind(name)
        if kind.__module__.startswith("survey."):  # Tests have instruments of their own.
            for entry in kind().reports():
                yield pytest.param(name, entry, id=f"{name}-{entry.name}")


@pytest.fixture
def made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each report is made once, with the arguments of the first door: all doors show the same."""
    findings: dict[str, ReportResult] = {}
    make = reports.make

    def once(study: Study, name: str, arguments: Mapping[str, Any] | None = None) -> ReportResult:
        if name not in findings:
            findings[name] = make(study, name, arguments)
        return findings[name]

    monkeypatch.setattr(reports, "make", once)


def study_for(instrument: str, entry: ReportEntry) -> Study:
    slug = OTHER_STUDIES.get(entry.name) or STUDIES.get(instrument)
    assert slug is not None, f"{instrument}: name a study in STUDIES on which its reports can be made"
    return study_of(slug)


@pytest.mark.parametrize(("instrument", "entry"), every_report())
def test_every_door_shows_all_of_a_report(
    instrument: str, entry: ReportEntry, golden: None, made_once: None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    study = study_for(instrument, entry)
    write_hostile_texts(study)
    doors = Doors(study, entry)
    assert {line.entry.name: line.obstacle for line in reports.lines_of(study)}[entry.name] == ""
    findings = reports.make(study, entry.name, doors.asked)
    check_findings(entry.name, findings)
    text = doors.check_command(findings, tmp_path / "command")
    doors.check_page(findings)
    doors.check_api(findings)
    doors.check_files(findings, tmp_path / "command")
    doors.check_export()
    doors.check_rights(findings)
    said = text.replace(str(tmp_path), "").encode()
    compare({f"{entry.name}.json": as_stored(study, entry, findings), f"{entry.name}.txt": said}, request)


@pytest.mark.parametrize(("instrument", "entry"), every_report())
def test_a_report_with_other_arguments_says_what_it_said(
    instrument: str, entry: ReportEntry, golden: None, request: pytest.FixtureRequest
) -> None:
    study, report = study_for(instrument, entry), entry.load()
    if not (asked := other_arguments(study, entry, report)):
        return
    findings = reports.make(study, entry.name, asked)
    compare({f"{entry.name}_asked.json": as_stored(study, entry, findings)}, request)


# Where the last choices do not go together.
TOGETHER = {
    "arms": {"by": ["framing"], "condition": ["mode=keep"]},
    "people": {"figure": ["prior"], "condition": ["mode=keep"]},
    "two_studies": {"by": ["outcome"], "condition": []},
}


def other_arguments(study: Study, entry: ReportEntry, report: Report) -> dict[str, list[str]]:
    """The last choice of each argument."""
    asked = {name: texts for name, texts in FEW.items() if name in {argument.name for argument in report.arguments}}
    for argument in report.arguments:
        if choices := reports.choices_of(study, entry, argument):
            asked[argument.name] = [*choices][-1:]
    return {**asked, **TOGETHER.get(entry.name, {})}


def as_stored(study: Study, entry: ReportEntry, findings: ReportResult) -> bytes:
    """The report as JSON, and of its pictures and further files the hash."""
    left_out = {f"{picture.name}.svg" for picture in findings.pictures if picture.heavy}
    left_out |= {f"{table.name}.csv" for table in findings.tables}
    with TemporaryDirectory() as folder:
        hashes = {
            name: hash_of(write, Path(folder, name))
            for name, write in reports.writers_of(findings)
            if name not in left_out
        }
    return store.as_bytes({**reports.as_json(study, entry.name, findings), "hashes": hashes})


def hash_of(write: Callable[[Path], None], path: Path) -> str:
    write(path)
    return sha256(path.read_bytes()).hexdigest()[:16]


def compare(results: Mapping[str, bytes], request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--renew"):
        store.write_results("reports", results)
    stored = store.read_results("reports")
    assert [line for name in results for line in store.differences_of(name, results[name], stored[name])] == []


@pytest.mark.thorough
@pytest.mark.parametrize(("instrument", "entry"), every_report())
def test_its_charts_are_read_with_any_number_of_names_and_points(
    instrument: str, entry: ReportEntry, golden: None
) -> None:
    """Of few and many names and points, as another study would have them; TO_LOOK_AT keeps them, to be looked at."""
    study = study_for(instrument, entry)
    findings = reports.make(study, entry.name, Doors(study, entry).asked)
    for picture in findings.pictures:
        for size in (3, 12, 32, 20, 2000):
            crowd = laws.with_points if size in (20, 2000) else laws.with_names
            chart = crowd(chart_of(picture), size)
            assert laws.faults(chart) == [] and len(chart.svg(picture.name)) < 300_000, (picture.name, size)
            if folder := os.environ.get("TO_LOOK_AT"):
                chart.write(Path(folder) / f"{instrument}-{picture.name}-{size}.svg", name=picture.name)


def write_hostile_texts(study: Study) -> None:
    """Into what people and models are called and have written, but for names by which the study file calls them."""
    for model in (Task, LanguageModel):
        names = model._default_manager.all()
        for row in names:
            if f'"{row.name}"' not in study.source_text:
                row.name += EVIL
                row.save(update_fields=["name"])
    for model, field in ((Explanation, "text"), (QuestionReport, "text")):
        model._default_manager.update(**{field: Concat(F(field), Value(EVIL))})


class Doors:
    """The doors of a report, for the people who may open them and for others."""

    def __init__(self, study: Study, entry: ReportEntry) -> None:
        self.study, self.entry = study, entry
        self.report: Report = entry.load()
        self.analyst, self.viewer = self.member("analyst"), self.member("viewer")
        few = {argument.name: FEW[argument.name] for argument in self.report.arguments if argument.name in FEW}
        self.asked = reports.pages_arguments(study, entry, self.report, few, reader=self.analyst)
        self.page = reverse("admin:survey_study_report", args=[study.pk, entry.name])
        self.api = f"/api/v1/studies/{study.slug}/reports/{entry.name}/"

    def member(self, role: str) -> User:
        user = User.objects.create_user(role, is_staff=True)
        user.user_permissions.add(*Permission.objects.filter(codename__in=["view_study", "export_study"]))
        for study in Study.objects.all():  # A report may read another study of the same people.
            cast.join(user, study, role)
        return user

    def arguments(self, underscore: str = "_") -> list[str]:
        asked = {name.replace("_", underscore): texts for name, texts in self.asked.items()}
        return [f"{name}={text}" for name, texts in asked.items() for text in texts]

    def check_command(self, findings: ReportResult, folder: Path) -> str:
        asked = self.arguments()
        text = run("report", self.study.slug, self.entry.name, *asked, "--out", str(folder))
        assert text.partition(self.entry.opening)[0] == "".join(f"note: {note}\n" for note in findings.notes)
        shown = [findings.headline, *findings.lines, *(f"note: {note}" for note in findings.notes)]
        for table in findings.tables:
            shown.append(table.note)
            for sheet in rendering.sheets_of(table):
                shown += [sheet.title or table.title, sheet.note, *(sheet.header if sheet.rows else ())]
        assert [part for part in shown if part not in text] == []
        assert not NO_NUMBER.search(text) and "Traceback" not in text and " object at 0x" not in text
        names = {path.name for path in folder.iterdir()}
        assert names == {*dict(reports.writers_of(findings)), f"{self.entry.name}.json"}
        for path in folder.iterdir():
            check_file(path)
        for table in findings.tables:
            with (folder / f"{table.name}.csv").open(newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
            assert header == [column.name for column in table.file_columns()]
            assert {len(row) for row in rows} <= {len(header)} and len(rows) == len(table.rows)
        whole = (folder / reports.MARKDOWN).read_text(encoding="utf-8")
        said = (f"# {findings.title}", self.entry.opening, findings.headline)
        assert whole.startswith("\n\n".join(map(rendering.markdown_text, said)).strip())
        assert [line for line in findings.lines if rendering.markdown_text(line) not in whole] == []
        for picture in findings.pictures:
            check_picture((folder / f"{picture.name}.svg").read_text(encoding="utf-8"))
        whole = run("report", self.study.slug, self.entry.name, *asked, "--json")
        assert read_json(whole[whole.index("{") :]) == read_json((folder / f"{self.entry.name}.json").read_bytes())
        for name, command in short_names().items():
            if command.name == self.entry.name:
                options = [f"--{part}" for part in self.arguments(underscore="-")]
                written = run(name, self.study.slug, *options, "--out", str(folder / "short"))
                assert written.replace("/short/", "/") == text
        return text

    def check_page(self, findings: ReportResult) -> None:
        response = logged_in(self.analyst).get(self.page, self.asked)
        assert response.status_code == 200
        text = response.content.decode()
        page = PageReader(text)
        for argument in self.report.arguments:
            if argument.choices is None or reports.choices_of(self.study, self.entry, argument, reader=self.analyst):
                assert f'id="ask-{argument.name}"' in text and squeezed(capfirst(argument.help)) in page.text
        assert "errornote" not in text and EVIL not in text
        sheets = [sheet for table in findings.tables for sheet in rendering.sheets_of(table) if sheet.rows]
        assert page.tables == [[[squeezed(cell) for cell in row] for row in table_of(sheet)] for sheet in sheets]
        said = [
            self.entry.opening,
            findings.headline,
            *findings.lines,
            *findings.notes,
            *(table.title for table in findings.tables),
        ]
        said += [text for picture in findings.pictures for text in (picture.title, picture.text)]
        # Of a command the page shows the button that does the same, or the command alone (tests/admin/test_cures.py).
        around = [piece for part in said for piece in re.split(r"`hunch [^`]*`", part)]
        assert [piece for piece in around if squeezed(piece).strip() not in page.text] == []
        assert page.figures == sum(not picture.heavy for picture in findings.pictures)
        assert text.count("<section") == text.count("</section")

    def check_api(self, findings: ReportResult) -> None:
        response = api_client(self.analyst).get(self.api, self.asked)
        assert response.status_code == 200, response.content
        body = read_json(response.content)
        assert body == read_json(json.dumps(reports.as_json(self.study, self.entry.name, findings)))
        for table, described in zip(findings.tables, body["tables"], strict=True):
            assert [column["name"] for column in described["columns"]] == [c.name for c in table.file_columns()]
            assert all(len(row) == len(described["columns"]) for row in described["rows"])

    def check_files(self, findings: ReportResult, folder: Path) -> None:
        """A file of each kind that the page offers is the one that the command has written."""
        client = logged_in(self.analyst)
        of_kind = {Path(name).suffix: name for name, _writer in reports.writers_of(findings)}
        for name in of_kind.values():
            response = client.post(f"{self.file(name)}{self.query}", {"exact": "1"})
            assert response.status_code == 200 and response.content == (folder / name).read_bytes(), name

    def check_export(self) -> None:
        """Every table that it names for exports is there, with the columns that it was declared with, and rows."""
        if not self.report.exported:
            return
        files = {file.name: file for file in reports.export_files(self.study, {}, ())}
        described = {(file, column.name) for file, column in codebook.codebook(self.study)}
        tables = {table.name: table for table in reports.make(self.study, self.entry.name, {}).tables}
        for table, columns in self.report.exported.items():
            file = files[f"{table}.csv"]
            names = [column.name for column in file.columns]
            assert names == [column.name for column in plain_columns(columns)]
            assert names == [column.name for column in tables[table].file_columns()]
            assert {(file.name, column.name) for column in file.columns} <= described
            rows = list(file.rows)
            assert {len(row) for row in rows} <= {len(file.columns)}
            assert not [cell for row in rows for cell in row if isinstance(cell, float) and not math.isfinite(cell)]
            assert len(rows) == len(tables[table].rows)

    def check_rights(self, findings: ReportResult) -> None:
        """Viewers see what nobody wrote, and take nothing out; who is no member sees nothing."""
        file = self.file(next(name for name, _writer in reports.writers_of(findings)))
        for address in (self.page, self.api):
            assert Client().get(address).status_code in (302, 401)
        viewer = logged_in(self.viewer)
        if any(table.verbatim for table in findings.tables):
            page = viewer.get(self.page, self.asked).content.decode()
            open_tables = [table for table in findings.tables if not table.verbatim]
            sheets = [sheet for table in open_tables for sheet in rendering.sheets_of(table) if sheet.rows]
            assert len(PageReader(page).tables) == len(sheets) and file not in page
        assert viewer.post(file).status_code == 403
        assert api_client(self.viewer).get(self.api, self.asked).status_code == 403
        self.study.memberships.filter(user=self.viewer).delete()
        assert viewer.get(self.page).status_code == viewer.post(file).status_code == 404

    def file(self, name: str) -> str:
        return reverse("admin:survey_study_report_file", args=[self.study.pk, self.entry.name, name])

    @property
    def query(self) -> str:
        return f"?{urlencode(self.asked, doseq=True)}" if self.asked else ""


class PageReader(HTMLParser):
    """The text of a page, its tables as lists of rows, and the number of its figures."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.figures = 0
        self._in_cell = False
        self._text: list[str] = []
        self.feed(page)
        self.text = squeezed(" ".join(self._text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = dict(attrs).get("class")
        if tag == "table" and kind == "hunch-stack":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables:
            self.tables[-1][-1].append("")
            self._in_cell = True
        self.figures += kind == "hunch-figure"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self._text.append(data)
        if self._in_cell:
            self.tables[-1][-1][-1] = squeezed(self.tables[-1][-1][-1] + data)


def table_of(sheet: rendering.Sheet) -> list[list[str]]:
    """As its page has it: the headings begin with a capital letter."""
    return [[squeezed(capfirst(title)) for title in sheet.header], *map(list, sheet.texts())]


def squeezed(text: str) -> str:
    return " ".join(text.split())


# What is asked of each part


def check_findings(report: str, findings: ReportResult) -> None:
    names = [f"{report}.json", *(name for name, _writer in reports.writers_of(findings))]
    assert len(set(names)) == len(names) > 1, "two files of one name"
    assert findings.title and findings.data is not None
    assert bool(findings.headline) == (report in WITH_HEADLINE)
    assert findings.headline == "" or (findings.headline[-1] == "." and findings.headline not in findings.lines)
    assert [fault for picture in findings.pictures for fault in laws.faults(chart_of(picture))] == []
    for table in findings.tables:
        assert table.title and all(column.description for column in table.file_columns())


def check_picture(text: str) -> None:
    drawing = ElementTree.fromstring(text)  # noqa: S314 - our own file
    assert drawing.tag == f"{SVG}svg"
    for label in ("title", "desc"):
        element = drawing.find(f"{SVG}{label}")
        assert element is not None and (element.text or "").strip(), f"a picture without {label}"
    assert not [element for element in drawing.iter() if element.tag in (f"{SVG}script", f"{SVG}foreignObject")]
    attributes = [name for element in drawing.iter() for name in element.attrib]
    assert not [name for name in attributes if name.startswith("on") or name.endswith("href")]


def chart_of(picture: Picture) -> Chart:
    """What `Picture.of` draws."""
    assert isinstance(picture.draw, partial)
    chart = picture.draw.func.__self__  # type: ignore[attr-defined]
    assert isinstance(chart, Chart)
    return chart


def check_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n") and not NO_NUMBER.search(text), path.name
    if path.suffix == ".json":
        read_json(text)
    elif path.suffix == ".html":
        assert EVIL not in text


def read_json(text: str | bytes) -> Any:
    """JSON as the standard has it, without NaN and Infinity."""
    return json.loads(text, parse_constant=pytest.fail)


# How a door is opened


def run(*command: str) -> str:
    """What a command prints, notes first."""
    out, err = io.StringIO(), io.StringIO()
    call_command(*command, stdout=out, stderr=err)
    return err.getvalue() + out.getvalue()


@cache
def short_names() -> dict[str, ShortName]:
    """The commands that are short names of a report."""
    commands = ((name, load_command_class(app, name)) for name, app in get_commands().items() if "survey" in str(app))
    return {name: command for name, command in commands if isinstance(command, ShortName)}


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def api_client(user: User) -> Client:
    return Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})
