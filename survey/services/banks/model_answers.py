"""Answers of language models that others collected: imported whole or not at all."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from survey.exceptions import HunchError
from survey.models import Bank, LanguageModel, ModelAnswer
from survey.services.base.auditing import record

from .importing import Problems, read_text_file

COLUMNS = ("llm", "question_id", "correct")
YES_NO = {"1": True, "0": False, "1.0": True, "0.0": False, "true": True, "false": False}
BATCH = 2000


@dataclass(frozen=True)
class Imported:
    """How many answers of each language model are new, and how many were there already, the same."""

    new: dict[str, int]
    known: dict[str, int]


def import_answers(path: Path | str, bank: Bank, *, by: Any = None, via: str = "command") -> Imported:
    """Import a CSV file (llm, question_id, correct; response may be there) of answers to a bank's questions.

    Raises:
        FileErrors: with every problem and its line; nothing is written.
        HunchError: the file's answers contradict stored ones.
    """
    problems = Problems()
    ids = dict(bank.questions.values_list("external_id", "pk"))
    rows: dict[str, dict[int, tuple[bool, str]]] = {}
    lines: dict[tuple[str, str], int] = {}
    for line, row in _rows(path, problems):
        correct = YES_NO.get(row["correct"].strip().lower())
        llm, question = row["llm"].strip(), row["question_id"].strip()
        if not llm or len(llm) > 120:
            problems.add(str(path), line, "llm", "is empty or longer than 120 characters: name the language model")
        if correct is None:
            problems.add(str(path), line, "correct", f"{row['correct'][:40]!r} is neither 0 nor 1")
        if question not in ids:
            problems.add(str(path), line, "question_id", f"{question[:60]!r} is no question of {bank}")
        if (first := lines.setdefault((llm, question), line)) != line:
            problems.add(str(path), line, "question_id", f"{llm} answered it already in line {first}: keep one")
        if correct is not None and question in ids:
            rows.setdefault(llm, {})[ids[question]] = (correct, row.get("response") or "")
    if not rows and not problems:
        problems.add(str(path), 1, "file", "holds no answer: add at least one row")
    problems.raise_if_any()
    return _write(rows, bank, by=by, via=via)


def _rows(path: Path | str, problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    text = read_text_file(path, problems)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        header = reader.fieldnames or []
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            if not problems:
                problems.add(
                    str(path), 1, "header", f"has no column {', '.join(missing)}: it needs {', '.join(COLUMNS)}"
                )
            return
        line = reader.line_num + 1
        for row in reader:
            if None in row or None in row.values():
                problems.add(
                    str(path), line, "row", f"does not have the header's {len(header)} fields: check its commas"
                )
            else:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as exc:
        problems.add(str(path), reader.line_num, "row", f"not CSV ({exc}): check the quotes")


@transaction.atomic
def _write(rows: dict[str, dict[int, tuple[bool, str]]], bank: Bank, *, by: Any, via: str) -> Imported:
    new, known = {}, {}
    for llm, answers in rows.items():
        model, _created = LanguageModel.objects.get_or_create(name=llm)
        stored = dict(
            ModelAnswer.objects.filter(language_model=model, question__bank=bank).values_list("question_id", "correct")
        )
        different = [question for question, (correct, _) in answers.items() if stored.get(question, correct) != correct]
        if different:
            raise HunchError(
                f"{llm}: {len(different)} of its answers differ from those that are stored for {bank}; nothing was "
                "imported. Give it another name in the file (for instance with the date it was asked)"
            )
        fresh = [
            ModelAnswer(language_model=model, question_id=question, correct=correct, response=response)
            for question, (correct, response) in answers.items()
            if question not in stored
        ]
        ModelAnswer.objects.bulk_create(fresh, batch_size=BATCH)
        new[llm], known[llm] = len(fresh), len(answers) - len(fresh)
    record("import_answers", bank, by=by, via=via, new=new, known=known)
    return Imported(new=new, known=known)
