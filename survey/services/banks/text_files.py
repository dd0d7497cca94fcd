"""Texts to be read: a plain file as one text or by lines, a CSV file with id and text, or a bank."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from predictors.readings import Text, TextReading
from predictors.readings.text_reading import make_tokens, without_gaps
from survey.input_tables import cells
from survey.input_tables.decoding import LINE_END
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, read_rows, read_text_file
from survey.models import Bank, NgramModel

from . import ngrams
from .importing import load_starter_bank

LONGEST = 20_000_000  # characters of a file's texts
LogProbability = Annotated[
    float,
    cells.number(
        "{} is no logarithm of a probability: it must be 0 or less",
        lambda value: value <= 0,
        empty=math.nan,
        infinite=True,
    ),
]
ReadAsUnknown = Annotated[bool | None, cells.choice({"0": False, "1": True}, "{} is not 0 or 1")]
TABLES = (".csv", ".tsv", ".xlsx")


@declared
class TextRow(TableRow):
    """A text."""

    read_by = (
        "`perplexity FILE`, `train_ngram FILE`, `train_lm FILE`, `train_tokenizer FILE`, where FILE ends in .csv, .tsv "
        "or .xlsx"
    )
    id: str = column("The text's own id.")
    text: str = column("The text.")


@declared
class ReadTokenRow(TableRow):
    """A token of a text, in the order of the text, which is named as `perplexity` names it."""

    read_by = "`perplexity FILE --model file:TABLE`"
    text_id: str = column("The text.")
    start: cells.Position = column("Where it begins, in characters from 0.")
    end: cells.Position = column("Where it ends.")
    logprob: LogProbability = column(
        "Natural logarithm of its probability, -inf for 0; empty for an unread first token."
    )
    unknown: ReadAsUnknown = column("1 where it was read as one class of everything unknown, and else 0.", None)


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
    texts: list[Text] = []
    first_at: dict[str, str] = {}
    for path in paths:
        for line, text in _texts_of(Path(path), problems, by_lines=by_lines):
            place = f"{path}:{line}"
            if not text.text.strip():
                problems.add(str(path), line, "text", "is empty: leave it out, or give the text")
            elif (first := first_at.setdefault(text.id, place)) != place:
                problems.add(str(path), line, "id", f"{text.id[:60]!r} is the name of a text in {first} too: rename it")
            texts.append(text)
    if not texts and not problems:
        problems.add(str(paths[0]) if paths else "", 1, "file", "holds no text: give at least one")
    if sum(len(text.text) for text in texts) > LONGEST:
        problems.add(str(paths[0]), 1, "file", f"the texts have more than {LONGEST:,} characters: read them in parts")
    problems.raise_if_any()
    return texts


def _texts_of(path: Path, problems: Problems, *, by_lines: bool) -> Iterator[tuple[int, Text]]:
    if path.suffix.lower() in TABLES:
        for row in read_rows(TextRow, path, problems, guesses=False):
            yield row.line, Text(row.id, row.text)
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
    """Readings that somebody has, by the number of their text: a table of `ReadTokenRow`.

    Raises:
        FileErrors: lists every problem with its line and column.
    """
    rows = read_rows(ReadTokenRow, path, Problems(), guesses=False)
    number_of_text = {text.id: number for number, text in enumerate(texts)}
    columns: dict[int, list[tuple[int, int, float]]] = {}
    marks: dict[int, list[bool]] = {}
    for row in rows:
        number = number_of_text.get(row.text_id)
        if number is None:
            rows.wrong(row.line, "text_id", f"{row.text_id[:60]!r} is none of the {len(texts)} texts")
            continue
        length, tokens = len(texts[number].text), columns.setdefault(number, [])
        if not row.start <= row.end <= length:
            rows.wrong(row.line, "start, end", f"{row.start}, {row.end} is no place in 0 to {length}")
        elif tokens and row.start < tokens[-1][0]:
            rows.wrong(row.line, "start", f"{row.start} stands before the token above it: sort the rows by place")
        elif math.isnan(row.logprob) and tokens:
            rows.wrong(row.line, "logprob", "is empty: only the first token of a text may be left unread")
        else:
            tokens.append((row.start, row.end, row.logprob))
            if row.unknown is not None:
                marks.setdefault(number, []).append(row.unknown)
    if not rows.problems:
        for number, text in enumerate(texts):
            if number not in columns:
                rows.wrong(1, "text_id", f"has no token of the text {text.id[:60]!r}")
    rows.refuse()
    return {
        number: FileReading(
            _reading(texts[number].text, tokens, tokenizer),
            np.array(marks[number], dtype=bool) if number in marks else None,
        )
        for number, tokens in columns.items()
    }


def _reading(text: str, rows: Sequence[tuple[int, int, float]], tokenizer: str) -> TextReading:
    starts, ends, values = (list(column) for column in zip(*rows, strict=True))
    covering = without_gaps(np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64), len(text))
    return TextReading(make_tokens(*covering, values), tokenizer)


def tasks_of_bank(bank: Bank) -> list[str]:
    """The task of each text of `texts_of_bank`."""
    return list(bank.questions.filter(flag="").order_by("position").values_list("task__name", flat=True))


def train_on_starter_bank(orders: Iterable[tuple[str, int]]) -> None:
    """Train those n-gram models, by name and order, that are not stored, on the texts of the bank that comes with
    Hunch."""
    missing = [(name, order) for name, order in orders if not NgramModel.objects.filter(name=name).exists()]
    starter_texts = texts_of_bank(load_starter_bank()) if missing else []
    for name, order in missing:
        ngrams.train(starter_texts, name=name, order=order, unit="word", smoothing="kneser_ney")
