"""Banks of texts without a key: sentences, passages and prompts, each a CSV file of its own columns.

A sentence's words are what stands between white space. `positions` says which of them may be asked, from 0 for the
first one; without it an instrument may ask all. A passage may have a yes/no question about it, with its answer.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from survey.input_tables.problems import Problems
from survey.input_tables.reader import ReadTable
from survey.input_tables.rows import RowFile, TableRow, column, declared, read_rows, rows_of

from .importing import QuestionRow

ANSWERS = ("yes", "no")


@declared
class PromptRow(TableRow):
    """A text without a key."""

    is_strict = True
    read_by = "`import_questions FILE --bank NAME --format prompts`"
    id: str = column("The text's own id.")
    source: str = column("The task or kind that it belongs to.")
    text: str = column("The text.")


@declared
class SentenceRow(PromptRow):
    """A sentence of at least two words; none stands twice."""

    read_by = "`import_questions FILE --bank NAME --format sentences`"
    positions: str = column("Which words may be asked, from 0, such as 3,5,8; empty: all.", "")


@declared
class PassageRow(PromptRow):
    """A passage, perhaps with a yes/no question about it."""

    read_by = "`import_questions FILE --bank NAME --format passages`"
    question: str = column("A question about the passage; empty: none.", "")
    answer: str = column("yes or no, where there is a question.", "")


FORMATS: dict[str, type[PromptRow]] = {"sentences": SentenceRow, "passages": PassageRow, "prompts": PromptRow}


def read(path: Path, problems: Problems, *, format: str) -> Iterator[QuestionRow]:
    """The texts of a file as questions without a key; what is wrong goes to `problems`."""
    return _questions(read_rows(FORMATS[format], path, problems, limits=None))


def of_table(table: ReadTable, problems: Problems, *, format: str) -> Iterator[QuestionRow]:
    """The same of a table that has been read."""
    return _questions(rows_of(FORMATS[format], table, problems))


def format_of(header: Sequence[str]) -> str:
    """passages or sentences, where a table has the columns of such a bank and no others; empty elsewhere."""
    columns = sorted(header)
    if columns == sorted(PassageRow.columns()):
        return "passages"
    return "sentences" if columns in (sorted(PromptRow.columns()), sorted(SentenceRow.columns())) else ""


def _questions(rows: RowFile[PromptRow]) -> Iterator[QuestionRow]:
    for row in rows:
        extra: dict[str, Any] = {}
        words = row.text.split()
        if isinstance(row, PassageRow):
            extra = _asked(row, rows)
        if isinstance(row, SentenceRow) and words:
            rows.once(row, "text", " ".join(words), "the same sentence stands")
            if len(words) < 2:
                rows.wrong(row.line, "text", "has one word: a sentence needs at least two")
            extra = _positions(row, len(words), rows)
        yield QuestionRow(
            row.id, row.source, row.text, "", extra=extra, text_column="text", file=rows.file, line=row.line
        )


def _asked(row: PassageRow, rows: RowFile[PromptRow]) -> dict[str, str]:
    """The yes/no question about a passage; empty where it has none."""
    question, answer = row.question.strip(), row.answer.strip()
    if not question and not answer:
        return {}
    if not question:
        rows.wrong(row.line, "question", "is empty, and there is an answer: write the question, or remove the answer")
    if answer.lower() not in ANSWERS:
        rows.wrong(row.line, "answer", f"{answer[:40]!r} is neither yes nor no: the question takes one of the two")
    if len(row.text.split()) < 2:
        rows.wrong(row.line, "text", "has fewer than two words: a passage with a question needs at least two")
    return {"question": question, "answer": answer.lower()}


def _positions(row: SentenceRow, words: int, rows: RowFile[PromptRow]) -> dict[str, list[int]]:
    if not row.positions.strip():
        return {}
    positions: list[int] = []
    for part in map(str.strip, row.positions.split(",")):
        if not part.isdecimal() or not part.isascii():
            rows.wrong(row.line, "positions", f"{part[:40]!r} is no whole number: write them like 3,5,8")
        elif int(part) >= words:
            rows.wrong(
                row.line, "positions", f"{part} lies outside the sentence: its {words} words are 0 to {words - 1}"
            )
        elif int(part) in positions:
            rows.wrong(row.line, "positions", f"{part} stands there twice: keep one")
        else:
            positions.append(int(part))
    return {"positions": sorted(positions)}
