"""docs/reading-reports.md has a section for each report: what it shows and how to read it, as the report itself says
it, and an example of a study of the tests.

    python -m tests.renew reading

makes the sections again.
"""

import re
from typing import Any

import pytest
from django.db import transaction
from django.utils.text import capfirst

from survey.contracts import instruments
from survey.contracts.reports import ReportEntry, ReportResult
from survey.figures import rendering
from survey.services.results import reports
from tests.golden.test_golden import golden, loaded
from tests.survey.results import test_every_report as every

from .blocks import DOCS

PAGE = DOCS / "reading-reports.md"
BEGINS = "<!-- From here on this page is made of the reports: python -m tests.renew reading -->\n"
MOST_ROWS, MOST_COLUMNS, MOST_LINES = 4, 5, 3
ENTRIES = [(case.values[0], case.values[1]) for case in every.every_report()]
pytestmark = pytest.mark.any_database
__all__ = ["golden", "loaded"]


def study_kind(instrument: str, entry: ReportEntry) -> str:
    """Which studies have the report."""
    if entry in [core_report.entry for core_report in reports.CORE]:
        return "Of every study to which it applies."
    return f"Of studies with the instrument “{instruments.kind(instrument).title}”."


def head_of(instrument: str, entry: ReportEntry) -> str:
    """What the page says of a report without making it."""
    words = [f"## {entry.title} (`{entry.name}`)", f"{entry.summary} {study_kind(instrument, entry)}"]
    return "\n\n".join([*words, f"**How to read it.** {entry.opening}"]) + "\n"


def example_of(findings: ReportResult) -> str:
    said = [findings.headline, *findings.lines][: MOST_LINES + 1]
    parts = ["\n>\n".join(f"> {escaped(line)}" for line in said if line)]
    sheet = next((sheet for table in findings.tables for sheet in shown_sheets(table)), None)
    if sheet is not None:
        parts += ["", *table_of(sheet)]
    return "\n".join(["For example:", "", *parts]) + "\n"


def shown_sheets(table: Any) -> list[rendering.Sheet]:
    """Those that hold nobody's own words."""
    return [] if table.verbatim else [sheet for sheet in rendering.sheets_of(table) if sheet.rows]


def table_of(sheet: rendering.Sheet) -> list[str]:
    header = [capfirst(title) for title in sheet.header][:MOST_COLUMNS]
    rows = [row[:MOST_COLUMNS] for row in sheet.texts()[:MOST_ROWS]]
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(map(escaped, line))} |" for line in lines]


def escaped(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= 300 else line[:300].rpartition(" ")[0] + " …"
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", line)


def shape(section: str) -> str:
    """Its sentences and the heads of its tables, without numbers: people of some studies answer otherwise each time."""
    text = re.sub(r"(?m)(^\| --- .*\n)(?:\|.*\n?)+", r"\1", section)
    return re.sub(r"[−-]?\d[\d.,]*|–", "0", text).strip()


def sections() -> dict[str, str]:
    """The page's sections by the report's name."""
    _head, _begins, made = PAGE.read_text(encoding="utf-8").partition(BEGINS)
    parts = re.split(r"(?m)^(?=## )", made)[1:]
    return {match[1]: part for part in parts if (match := re.match(r"## .* \(`([a-z0-9_-]+)`\)\n", part))}


def test_each_report_has_a_section_with_what_it_shows_and_how_to_read_it() -> None:
    written = sections()
    assert set(written) == {entry.name for _instrument, entry in ENTRIES}
    wrong = [entry.name for kind, entry in ENTRIES if not written[entry.name].startswith(head_of(kind, entry))]
    assert wrong == []
    assert all("\nFor example:\n" in section and "\n|" in section for section in written.values())


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.django_db
def test_each_example_is_what_the_report_says(golden: None, request: pytest.FixtureRequest) -> None:
    made: list[str] = []
    for kind, entry in ENTRIES:
        with transaction.atomic():
            study = every.study_for(kind, entry)
            report = entry.load()
            known = {part.name for part in report.arguments}
            few = {name: texts for name, texts in every.FEW.items() if name in known}
            asked = reports.pages_arguments(study, entry, report, few, reader=None)
            made.append(f"{head_of(kind, entry)}\n{example_of(reports.make(study, entry.name, asked))}")
            transaction.set_rollback(True)
    if request.config.getoption("--renew"):
        head, begins, _made = PAGE.read_text(encoding="utf-8").partition(BEGINS)
        PAGE.write_text(f"{head}{begins}\n" + "\n".join(made), encoding="utf-8")
    written = sections().values()
    assert len(written) == len(made)
    assert [shape(section) for section in written] == [shape(section) for section in made]
