"""What the documents for newcomers say is so: the sheet is a study file, and Hunch can what they say, and no more."""

import re

import pytest
import yaml

from survey.contracts import instruments
from survey.study_file import parsing
from survey.study_file.base import LANGUAGES
from tests.architecture.test_docs import OF_COMPOSE, read_by_settings

from .blocks import DOCS, files_of

pytestmark = pytest.mark.any_database


def test_the_sheet_is_a_study_file_with_the_tables_that_the_whole_page_has() -> None:
    (text,) = files_of("study-file-sheet.md").values()
    config = parsing.parse(text)
    assert config.slug == "sheet" and [stage.pilot for stage in config.stages] == [True, False, False]
    headings = re.findall(r"(?m)^## `\[+(\w+)\]+`", (DOCS / "study-file.md").read_text(encoding="utf-8"))
    rare = {"questions", "estimates", "waves", "quotas", "weighting", "models"}
    assert {name for name in headings if f"[{name}]" not in text} == rare


def test_what_is_said_of_instruments_languages_and_panels_is_so() -> None:
    text = (DOCS / "is-it-for-me.md").read_text(encoding="utf-8")
    ours = [name for name in instruments.names() if instruments.kind(name).__module__.startswith("survey.")]
    assert "seven instruments" in text and len(ours) == 7
    assert "other languages than English and German" in text and set(LANGUAGES) == {"en", "de"}


def test_every_setting_that_the_page_of_the_server_writes_is_one_that_containers_get() -> None:
    text = (DOCS / "server-and-panel.md").read_text(encoding="utf-8")
    written = set(re.findall(r"(?m)^ *([A-Z_]{6,})=", text))
    compose = (DOCS.parent / "docker-compose.yml").read_text(encoding="utf-8")
    assert len(written) >= 8 and written - {"POSTGRES_PASSWORD"} <= read_by_settings() | OF_COMPOSE
    assert {name for name in written if f"${{{name}" not in compose} == set()
    services = yaml.safe_load(compose)["services"]
    called = set(re.findall(r"docker compose (?:exec|run) (?:-\S+ |\S+:\S+ )*(\w+)", text))
    assert called and called <= set(services)
