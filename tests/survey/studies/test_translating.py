"""Every template's texts exist in German, and the builder fills them in."""

import re

import pytest

from survey import study_file
from survey.services.studies import translating
from survey.services.studies.file_texts import STARTING_FILES
from survey.storage.paths import STUDIES_DIR
from survey.study_file.editing import EditableFile
from tests import cast

NAMES = re.compile(r"\{[^}]*\}")
LANGUAGES = ("texts", "languages")


@pytest.mark.parametrize("name", sorted({template.file for template in STARTING_FILES}))
def test_every_text_of_a_template_has_german_words_with_the_same_values_in_it(name: str) -> None:
    file = EditableFile((STUDIES_DIR / name).read_text(encoding="utf-8"))
    file.set(("texts", "language"), None)
    file.set(LANGUAGES, ["en", "de"])
    assert [place for place, words in translating.texts_without(file, "de") if not words] == []
    translating.fill_in(file, "de")
    config = study_file.parse(file.text)
    assert study_file.missing_texts(config) == [] and translating.translated("What you will do", "de")
    assert str(config.in_language("en").title) != str(config.in_language("de").title)


def test_the_lines_name_the_same_values_in_both_languages() -> None:
    for english, german in translating._lines_in("de").items():
        assert sorted(NAMES.findall(english)) == sorted(NAMES.findall(german)), english
        assert english.startswith("- ") == german.startswith("- ") and english.strip() and german.strip()


def test_a_text_of_ones_own_stays_without_german_words_and_nothing_that_is_there_is_written_again() -> None:
    file = EditableFile(cast.study_text(title="What I ask", texts={"languages": ["en", "de"], "welcome": "Hello."}))
    file.set(("blocks", 0, "title"), {"en": "Before you begin", "de": "Vorher"})
    left = {place for place, words in translating.texts_without(file, "de") if not words}
    assert {("title",), ("texts", "welcome")} <= left and ("blocks", 0, "title") not in left
    translating.fill_in(file, "de")
    assert file.value(("blocks", 0, "title")) == {"en": "Before you begin", "de": "Vorher"}
    assert file.value(("title",)) == "What I ask"
    assert translating.translated("What you will do\n\nWhat I ask", "de") == ""
    assert list(translating.texts_without(EditableFile("title = 1"), "de")) == []
