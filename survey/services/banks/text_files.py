"""Texts to be read: a plain file as one text or by lines, a CSV file with id and text, or a bank."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from predictors.readings import Text, TextReading
from predictors.readings.reading import make_tokens, without_gaps
from survey.models import Bank

from .csv_rows import INFINITE, csv_rows, number_of, whole_of
from .decoding import LINE_END
from .importing import Problems, read_text_file

LONGEST = 20_000_000  # characters of a file's texts
TABLES = (".csv", ".tsv", ".xlsx")
TOKEN_COLUMNS = ("text_id", "start", "end", "logprob")
UNKNOWN_COLUMN = "unknown"


class FileReading(NamedTuple):
    """A reading that somebody has, and which of its tokens were read as one class of everything unknown; None where
    the file has no column `unknown`."""

    reading: TextReading
    unknown: np.ndarray | None


def read_texts(paths: Sequence[Path | str], *, by_lines: bool = False) -> list[Text]:
    """The texts of files, in order. Texts keep their blanks and line ends.

    Args:
        by_lines: each line of a plain file that is not blank is a text.

    Raises:
        FileErrors: lists every problem with its line.
    """
    problems = Problems()
    found: list[Text] = []
    first_at: dict[str, str] = {}
    for path in paths:
        for line, text in _texts_of(Path(path), problems, by_lines=by_lines):
            place = f"{path}:{line}"
            if not text.text.strip():
                problems.add(str(path), line, "text", "is empty: leave it out, or give the text")
            elif (first := first_at.setdefault(text.id, place)) != place:
                problems.add(
                    str(path), line, "id", f"{text.id[:60]!r} is the name of a text in {first} too: name it anew"
                )
            found.append(text)
    if not found and not problems:
        problems.add(str(paths[0]) if paths else "", 1, "file", "holds no text: give at least one")
    if sum(len(one.text) for one in found) > LONGEST:
        problems.add(str(paths[0]), 1, "file", f"the texts have more than {LONGEST:,} characters: read them in parts")
    problems.raise_if_any()
    return found


def _texts_of(path: Path, problems: Problems, *, by_lines: bool) -> Iterator[tuple[int, Text]]:
    if path.suffix.lower() in TABLES:
        for line, row in csv_rows(path, ("id", "text"), problems, guesses=False):
            yield line, Text(row["id"], row["text"])
        return
    content = read_text_file(path, problems)
    if not by_lines:
        if content or not problems:
            yield 1, Text(path.name, content)
        return
    for line, text in enumerate(LINE_END.split(content), start=1):
        if text.strip():
            yield line, Text(f"{path.name}:{line}", text)


def texts_of_bank(bank: Bank) -> list[Text]:
    """The texts of a bank's questions without a flag, as a reader sees them, by their ids."""
    rows = bank.questions.filter(flag="").order_by("position").only("external_id", "text", "position", "bank_id")
    return [Text(question.external_id, question.plain) for question in rows.iterator(chunk_size=2000)]


def token_file(path: Path | str, texts: Sequence[Text], *, tokenizer: str) -> dict[int, FileReading]:
    """Readings that somebody has: a CSV file with text_id, start, end and logprob, one row a token, in order.

    `start` and `end` count characters from 0; `logprob` is a natural logarithm, -inf for a probability of 0, and empty
    for a token that was not read, such as the first one. A column `unknown` may say 1 where a token was read as one
    class of everything unknown, and else 0.

    Raises:
        FileErrors: lists every problem with its line and column.
    """
    problems = Problems()
    file = str(path)
    known = {one.id: number for number, one in enumerate(texts)}
    columns: dict[int, list[tuple[int, int, float]]] = {}
    marks: dict[int, list[bool]] = {}
    for line, row in csv_rows(Path(path), TOKEN_COLUMNS, problems, guesses=False):
        number = known.get(row["text_id"])
        if number is None:
            problems.add(file, line, "text_id", f"{row['text_id'][:60]!r} is none of the {len(texts)} texts")
            continue
        length, rows = len(texts[number].text), columns.setdefault(number, [])
        start, end = (whole_of(row[name]) for name in ("start", "end"))
        value = _logarithm(row["logprob"])
        if start is None or end is None or not start <= end <= length:
            problems.add(
                file, line, "start, end", f"{row['start'][:20]!r}, {row['end'][:20]!r} is no place in 0 to {length}"
            )
        elif rows and start < rows[-1][0]:
            problems.add(file, line, "start", f"{start} stands before the token above it: sort the rows by place")
        elif value is None or value > 0:
            problems.add(
                file,
                line,
                "logprob",
                f"{row['logprob'][:40]!r} is no logarithm of a probability: it must be 0 or less",
            )
        elif math.isnan(value) and rows:
            problems.add(file, line, "logprob", "is empty: only the first token of a text may be left unread")
        elif (mark := row.get(UNKNOWN_COLUMN)) not in (None, "0", "1"):
            problems.add(file, line, UNKNOWN_COLUMN, f"{mark[:20]!r} is not 0 or 1")
        else:
            rows.append((start, end, value))
            if mark is not None:
                marks.setdefault(number, []).append(mark == "1")
    if not problems:
        for number, one in enumerate(texts):
            if number not in columns:
                problems.add(file, 1, "text_id", f"has no token of the text {one.id[:60]!r}")
    problems.raise_if_any()
    return {
        number: FileReading(
            _reading(texts[number].text, rows, tokenizer),
            np.array(marks[number], dtype=bool) if number in marks else None,
        )
        for number, rows in columns.items()
    }


def _reading(text: str, rows: Sequence[tuple[int, int, float]], tokenizer: str) -> TextReading:
    starts, ends, values = (list(column) for column in zip(*rows, strict=True))
    covering = without_gaps(np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64), len(text))
    return TextReading(make_tokens(*covering, values), tokenizer)


def _logarithm(text: str) -> float | None:
    """The number of a cell; NaN where it is empty, None where it is none."""
    return math.nan if not text.strip() else INFINITE.get(text.strip().casefold(), number_of(text))


def tasks_of_bank(bank: Bank) -> list[str]:
    """The task of each text of `texts_of_bank`."""
    return list(bank.questions.filter(flag="").order_by("position").values_list("task__name", flat=True))
