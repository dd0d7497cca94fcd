"""Banks of texts without a key: sentences, passages and prompts, each a CSV file of its own columns.

A sentence's words are what stands between white space. `positions` says which of them may be asked, from 0 for the
first one; without it an instrument may ask all. A passage may have a yes/no question about it, with its answer.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .importing import Problems, QuestionRow, read_table, rows_of
from .tables import ReadTable

FORMATS = ("sentences", "passages", "prompts")
COLUMNS = ("id", "source", "text")
POSITIONS = "positions"
ASKED = ("question", "answer")
ANSWERS = ("yes", "no")
OPTIONAL = {"sentences": (POSITIONS,), "passages": ASKED}


def read(path: Path, problems: Problems, *, format: str) -> Iterator[QuestionRow]:
    """The texts of a file as questions without a key; what is wrong goes to `problems`."""
    rows = read_table(path, problems, required=COLUMNS, optional=OPTIONAL.get(format, ()))
    return _questions(rows, str(path), problems, format=format)


def are_sentences(header: Sequence[str]) -> bool:
    """Whether a table has the columns of a bank of sentences, and no others."""
    return sorted(header) in (sorted(COLUMNS), sorted((*COLUMNS, POSITIONS)))


def are_passages(header: Sequence[str]) -> bool:
    """Whether a table has the columns of a bank of passages with questions, and no others."""
    return sorted(header) == sorted((*COLUMNS, *ASKED))


def passages(table: ReadTable, problems: Problems) -> Iterator[QuestionRow]:
    """The passages of a table with these columns; what is wrong goes to `problems`."""
    return _of_table(table, problems, format="passages")


def sentences(table: ReadTable, problems: Problems) -> Iterator[QuestionRow]:
    """The sentences of a table with these columns; what is wrong goes to `problems`."""
    return _of_table(table, problems, format="sentences")


def _of_table(table: ReadTable, problems: Problems, *, format: str) -> Iterator[QuestionRow]:
    rows = rows_of(table, problems, required=COLUMNS, optional=OPTIONAL.get(format, ()))
    return _questions(rows, table.file, problems, format=format)


def _questions(
    rows: Iterator[tuple[int, dict[str, str]]], file: str, problems: Problems, *, format: str
) -> Iterator[QuestionRow]:
    first_of = dict[str, int]()
    for line, values in rows:
        text = values["text"]
        extra: dict[str, Any] = {}
        if format == "passages":
            extra = _asked(values, file, line, problems)
        if format == "sentences" and text.strip():
            words = text.split()
            if (first := first_of.setdefault(" ".join(words), line)) != line:
                problems.add(file, line, "text", f"the same sentence stands in line {first}: keep one")
            if len(words) < 2:
                problems.add(file, line, "text", "has one word: a sentence needs at least two")
            extra = _positions(values.get(POSITIONS, ""), len(words), file, line, problems)
        yield QuestionRow(
            id=values["id"],
            source=values["source"],
            question=text,
            answer="",
            extra=extra,
            text_column="text",
            file=file,
            line=line,
        )


def _asked(values: dict[str, str], file: str, line: int, problems: Problems) -> dict[str, str]:
    """The yes/no question about a passage; empty where it has none."""
    question, answer = (values.get(name, "").strip() for name in ASKED)
    if not question and not answer:
        return {}
    if not question:
        problems.add(
            file, line, "question", "is empty, and there is an answer: write the question, or remove the answer"
        )
    if answer.lower() not in ANSWERS:
        problems.add(file, line, "answer", f"{answer[:40]!r} is neither yes nor no: the question takes one of the two")
    if len(values["text"].split()) < 2:
        problems.add(file, line, "text", "has fewer than two words: a passage with a question needs at least two")
    return {"question": question, "answer": answer.lower()}


def _positions(given: str, words: int, file: str, line: int, problems: Problems) -> dict[str, list[int]]:
    if not given.strip():
        return {}
    found: list[int] = []
    for part in given.split(","):
        wanted = part.strip()
        if not wanted.isdecimal() or not wanted.isascii():
            problems.add(file, line, POSITIONS, f"{wanted[:40]!r} is no whole number: write them like 3,5,8")
        elif int(wanted) >= words:
            problems.add(
                file, line, POSITIONS, f"{wanted} lies outside the sentence: its {words} words are 0 to {words - 1}"
            )
        elif int(wanted) in found:
            problems.add(file, line, POSITIONS, f"{wanted} stands there twice: keep one")
        else:
            found.append(int(wanted))
    return {POSITIONS: sorted(found)}
