"""The templates' texts in further languages: line by line, so that a text of which a paragraph was taken out has them,
too.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from survey import study_file
from survey.study_file import FieldPath, StudyConfig
from survey.study_file.editing import EditableFile

FOLDER = Path(__file__).with_name("translations")  # A file for each language, from the lines of `FROM`.
FROM = "en"
WELCOME_AT: FieldPath = ("texts", "welcome")


@cache
def _lines_in(code: str) -> Mapping[str, str]:
    path = FOLDER / f"{code}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def translated(text: str, code: str) -> str:
    """The English text in that language; empty where one of its lines is not known."""
    known = _lines_in(code)
    lines = [line.strip() for line in text.split("\n")]
    if any(line and line not in known for line in lines):
        return ""
    return "\n".join(known.get(line, "") for line in lines)


def texts_without(file: EditableFile, code: str) -> Iterator[tuple[FieldPath, str]]:
    """Each text of the file that has no words in that language: its place, and the words that are known for it. None
    of a file that cannot be read."""
    try:
        config: StudyConfig = study_file.parse(file.text)
    except study_file.StudyFileError as exc:
        if exc.repaired is None:
            return
        config = exc.repaired.config
    for place in study_file.texts_missing_in(config, code):
        yield place, translated(_english(file.value(place), place), code)


def fill_in(file: EditableFile, code: str) -> None:
    """Write what is known in that language into the file."""
    for place, words in list(texts_without(file, code)):
        if words:
            old = file.value(place)
            others = old if isinstance(old, Mapping) else {FROM: _english(old, place)}
            file.set(place, {**others, code: words})


def _english(value: Any, place: FieldPath) -> str:
    if value is None and place == WELCOME_AT:
        return study_file.WELCOME
    return str(value.get(FROM, "") if isinstance(value, Mapping) else value or "")
