"""The sentences that respondents read in an instrument's items stay as they are: they are part of what is measured.

tests/sentences.txt has a row per sentence: the instrument, the edition that brought it, a hash of it in all languages,
and how it begins. A sentence of a row may not change, nor be removed: studies that were created with it show it. New
sentences are rows of the newest edition:

    python -m tests.renew sentences
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from survey.contracts import instruments
from tests.frontend.test_locale import APPS, catalogue

FILE = Path(__file__).parents[2] / "sentences.txt"
FOLDER = "survey/instruments/"
# Instrument and hash of a sentence, to its edition and its beginning.
Rows = dict[tuple[str, str], tuple[int, str]]


def rows_of(instrument: str, edition: int, translations: Mapping[str, str]) -> Rows:
    rows: Rows = {}
    for sentence, translated in translations.items():
        if sentence:  # Without one stand the catalogue's headers.
            sha256 = hashlib.sha256(json.dumps([sentence, translated]).encode()).hexdigest()
            rows[instrument, sha256[:16]] = edition, " ".join(sentence.split())[:60]
    return rows


def newest_edition(instrument: str) -> int:
    """The default of the option `edition`; an instrument whose sentences have never changed has none yet."""
    field = instruments.kind(instrument).options_model.model_fields.get("edition")
    return 1 if field is None else int(field.default)


def present_rows() -> Rows:
    rows: Rows = {}
    for app in APPS:
        if app.startswith(FOLDER):
            name = app.removeprefix(FOLDER)
            rows |= rows_of(name, newest_edition(name), catalogue(app))
    return rows


def read(text: str) -> Rows:
    rows: Rows = {}
    for line in text.splitlines():
        instrument, edition, sha256, beginning = line.split(" ", 3)
        rows[instrument, sha256] = int(edition), beginning
    return rows


def written(rows: Rows) -> str:
    lines = sorted((name, edition, beginning, sha256) for (name, sha256), (edition, beginning) in rows.items())
    return "".join(f"{name} {edition} {sha256} {beginning}\n" for name, edition, beginning, sha256 in lines)


def changed_sentences(stored: Rows, present: Rows) -> list[str]:
    """Sentences of the file that no longer exist, each as its instrument, edition and beginning."""
    return [
        f"{name}, edition {stored[name, sha256][0]}: {stored[name, sha256][1]}"
        for name, sha256 in stored.keys() - present.keys()
    ]


def test_no_sentence_changes_without_a_new_edition(request: pytest.FixtureRequest) -> None:
    stored, present = read(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}, present_rows()
    assert changed_sentences(stored, present) == [], (
        "people in running studies read these sentences, in one of their languages. Keep them, and give the new ones "
        "to a new edition: docs/usual-changes.md, 1. If no study can have been created with one, delete its row."
    )
    if request.config.getoption("--renew"):
        FILE.write_text(written(present | stored), encoding="utf-8")
        stored = present | stored
    assert [row for row in present if row not in stored] == [], "new sentences: python -m tests.renew sentences"


@pytest.mark.parametrize(
    ("later", "changed"),
    [
        ({"Why?": "Warum?"}, []),
        ({"Why?": "Warum?", "Why now?": "Warum jetzt?"}, []),
        ({"Why now?": "Warum jetzt?"}, ["asking, edition 1: Why?"]),
        ({"Why?": "Wieso?"}, ["asking, edition 1: Why?"]),
    ],
)
def test_a_sentence_may_come_and_none_may_change_in_any_language(later: dict[str, str], changed: list[str]) -> None:
    stored = read(written(rows_of("asking", 1, {"": "headers", "Why?": "Warum?"})))
    assert changed_sentences(stored, rows_of("asking", 2, later)) == changed


def test_a_sentence_keeps_the_edition_that_brought_it() -> None:
    first = rows_of("asking", 1, {"Why?": "Warum?"})
    second = rows_of("asking", 2, {"Why?": "Warum?", "Why now?": "Warum jetzt?"})
    assert [line.split()[:2] for line in written(second | first).splitlines()] == [["asking", "1"], ["asking", "2"]]
