"""Texts to be read: a plain file as one text or by lines, a CSV file with id and text, or a bank."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from predictors.readings import Text, TextReading
from predictors.readings.reading import make_tokens, without_gaps
from survey.models import Bank

from .importing import Problems, read_text_file

LONGEST = 20_000_000  # characters of a file's texts
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
    content = read_text_file(path, problems)
    if not content:
        if not problems:
            yield 1, Text(path.name, "")
        return
    if path.suffix.lower() == ".csv":
        for line, row in _rows(str(path), content, ("id", "text"), problems):
            yield line, Text(row["id"], row["text"])
    elif by_lines:
        for line, text in enumerate(content.splitlines(), start=1):
            if text.strip():
                yield line, Text(f"{path.name}:{line}", text)
    else:
        yield 1, Text(path.name, content)


def _rows(file: str, content: str, columns: Sequence[str], problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(content, newline=""), strict=True)
    try:
        header = reader.fieldnames or []
        if missing := [name for name in columns if name not in header]:
            needed = ", ".join(columns)
            problems.add(file, 1, "header", f"has no column {', '.join(missing)}: it needs {needed}")
            return
        line = reader.line_num + 1
        for row in reader:
            if None in row or None in row.values():
                problems.add(file, line, "row", f"does not have the header's {len(header)} fields: check its commas")
            else:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as exc:
        problems.add(file, reader.line_num, "row", f"not CSV ({exc}): check the quotes")


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
    file, content = str(path), read_text_file(path, problems)
    known = {one.id: number for number, one in enumerate(texts)}
    columns: dict[int, list[tuple[int, int, float]]] = {}
    marks: dict[int, list[bool]] = {}
    for line, row in _rows(file, content, TOKEN_COLUMNS, problems) if content else ():
        number = known.get(row["text_id"])
        if number is None:
            problems.add(file, line, "text_id", f"{row['text_id'][:60]!r} is none of the {len(texts)} texts")
            continue
        length, rows = len(texts[number].text), columns.setdefault(number, [])
        start, end = (_whole(row[name], 0, length) for name in ("start", "end"))
        value = _log_probability(row["logprob"])
        if start is None or end is None or end < start:
            problems.add(
                file, line, "start, end", f"{row['start'][:20]!r}, {row['end'][:20]!r} is no place in 0 to {length}"
            )
        elif rows and start < rows[-1][0]:
            problems.add(file, line, "start", f"{start} stands before the token above it: sort the rows by place")
        elif value is None:
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


def _whole(text: str, lowest: int, highest: int) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if lowest <= value <= highest else None


def _log_probability(text: str) -> float | None:
    """The natural logarithm of a cell; NaN where it is empty, None where it is none."""
    if not text.strip():
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value <= 0 else None


def tasks_of_bank(bank: Bank) -> list[str]:
    """The task of each text of `texts_of_bank`."""
    return list(bank.questions.filter(flag="").order_by("position").values_list("task__name", flat=True))
