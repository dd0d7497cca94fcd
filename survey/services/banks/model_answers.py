"""Answers of language models that others collected: all are imported, or none."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from survey.exceptions import HunchError
from survey.models import Bank, LanguageModel, ModelAnswer
from survey.services.base.auditing import record

from .importing import Problems, read_text_file

COLUMNS = ("llm", "question_id", "correct")
REPLY_COLUMNS = ("llm", "question_id", "response")
YES_NO = {"true": 1.0, "false": 0.0}
BATCH = 2000


@dataclass(frozen=True)
class Imported:
    """How many answers of each language model are new, and how many were already stored."""

    new: dict[str, int]
    known: dict[str, int]


def import_answers(path: Path | str, bank: Bank, *, by: Any = None, via: str = "command") -> Imported:
    """Import a CSV file (llm, question_id, correct; response is optional) of answers to a bank's questions.

    `correct` is 0 or 1, or a fraction between them: the share of right replies, or the grade of one.

    A verdict is added to a reply that nobody judged, and a reply to an answer of which only the verdict was imported.

    Raises:
        FileErrors: lists every problem with its line; nothing is written.
        HunchError: the file's answers contradict stored ones.
    """
    problems = Problems()
    rows: dict[str, dict[int, tuple[float, str]]] = {}
    for line, llm, question, row in _answers(path, problems, bank, COLUMNS):
        correct = fraction_of(row["correct"])
        if correct is None:
            problems.add(
                str(path), line, "correct", f"{row['correct'][:40]!r} is neither 0 nor 1, nor a fraction between them"
            )
        elif question is not None:
            rows.setdefault(llm, {})[question] = (correct, row.get("response") or "")
    if not rows and not problems:
        problems.add(str(path), 1, "file", "holds no answer: add at least one row")
    problems.raise_if_any()
    return _write(rows, bank, by=by, via=via)


def import_replies(path: Path | str, bank: Bank, *, by: Any = None, via: str = "command") -> Imported:
    """Import a CSV file (llm, question_id, response) of whole replies, of which nobody says whether they are right.

    A reply is added to an answer of which only the verdict was imported.

    Raises:
        FileErrors: lists every problem with its line; nothing is written.
        HunchError: the file's replies contradict stored ones.
    """
    problems = Problems()
    rows: dict[str, dict[int, str]] = {}
    for line, llm, question, row in _answers(path, problems, bank, REPLY_COLUMNS):
        if not row["response"].strip():
            problems.add(str(path), line, "response", "is empty: leave the row out, or give the reply")
        elif question is not None:
            rows.setdefault(llm, {})[question] = row["response"]
    if not rows and not problems:
        problems.add(str(path), 1, "file", "holds no reply: add at least one row")
    problems.raise_if_any()
    return _write_replies(rows, bank, by=by, via=via)


def fraction_of(text: str) -> float | None:
    """How right an answer is by a file's cell, from 0 to 1; None if it does not say."""
    text = text.strip().lower()
    try:
        value = YES_NO[text] if text in YES_NO else float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _answers(
    path: Path | str, problems: Problems, bank: Bank, columns: Sequence[str]
) -> Iterator[tuple[int, str, int | None, dict[str, str]]]:
    """Line, language model, question by primary key (None where it is none of the bank's) and row."""
    ids = dict(bank.questions.values_list("external_id", "pk"))
    lines: dict[tuple[str, str], int] = {}
    for line, row in _rows(path, problems, columns):
        llm, question = row["llm"].strip(), row["question_id"].strip()
        if not llm or len(llm) > 120:
            problems.add(str(path), line, "llm", "is empty or longer than 120 characters: name the language model")
        if question not in ids:
            problems.add(str(path), line, "question_id", f"{question[:60]!r} is no question of {bank}")
        if (first := lines.setdefault((llm, question), line)) != line:
            problems.add(str(path), line, "question_id", f"{llm} answered it already in line {first}: keep one")
        yield line, llm, ids.get(question), row


def _rows(path: Path | str, problems: Problems, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    text = read_text_file(path, problems)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        header = reader.fieldnames or []
        missing = [name for name in columns if name not in header]
        if missing:
            if not problems:
                problems.add(
                    str(path), 1, "header", f"has no column {', '.join(missing)}: it needs {', '.join(columns)}"
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
def _write(rows: dict[str, dict[int, tuple[float, str]]], bank: Bank, *, by: Any, via: str) -> Imported:
    new, known = {}, {}
    for llm, answers in rows.items():
        model, stored = _stored(llm, bank)
        # A reply that nobody judged does not contradict a verdict: the verdict is added to it, if it is the same reply.
        different = [
            question
            for question, (correct, response) in answers.items()
            if question in stored
            and (stored[question].fraction not in (correct, None) or _is_another(response, stored[question]))
        ]
        if different:
            raise _contradiction(llm, bank, len(different), "answers")
        fresh = [
            ModelAnswer(language_model=model, question_id=question, response=response)
            for question, (_correct, response) in answers.items()
            if question not in stored
        ]
        for answer in fresh:
            answer.grade(answers[answer.question_id][0])
        ModelAnswer.objects.bulk_create(fresh, batch_size=BATCH)
        changed = []
        for question, (correct, response) in answers.items():
            known_answer = stored.get(question)
            if known_answer is not None and (known_answer.fraction is None or (response and not known_answer.response)):
                known_answer.grade(correct)
                known_answer.response = known_answer.response or response
                changed.append(known_answer)
        ModelAnswer.objects.bulk_update(changed, ["correct", "share_correct", "response"], batch_size=BATCH)
        new[llm], known[llm] = len(fresh), len(answers) - len(fresh)
    record("import_answers", bank, by=by, via=via, new=new, known=known)
    return Imported(new=new, known=known)


@transaction.atomic
def _write_replies(rows: dict[str, dict[int, str]], bank: Bank, *, by: Any, via: str) -> Imported:
    new, known = {}, {}
    for llm, replies in rows.items():
        model, stored = _stored(llm, bank)
        different = [
            question
            for question, reply in replies.items()
            if question in stored and _is_another(reply, stored[question])
        ]
        if different:
            raise _contradiction(llm, bank, len(different), "replies")
        fresh = [
            ModelAnswer(language_model=model, question_id=question, correct=None, response=reply)
            for question, reply in replies.items()
            if question not in stored
        ]
        ModelAnswer.objects.bulk_create(fresh, batch_size=BATCH)
        without = [stored[question] for question in replies if question in stored and not stored[question].response]
        for answer in without:
            answer.response = replies[answer.question_id]
        ModelAnswer.objects.bulk_update(without, ["response"], batch_size=BATCH)
        new[llm], known[llm] = len(fresh) + len(without), len(replies) - len(fresh) - len(without)
    record("import_replies", bank, by=by, via=via, new=new, known=known)
    return Imported(new=new, known=known)


def _stored(llm: str, bank: Bank) -> tuple[LanguageModel, dict[int, ModelAnswer]]:
    """The language model, and what is stored of its answers to the bank by question. The rows are locked."""
    model, _created = LanguageModel.objects.get_or_create(name=llm)
    rows = ModelAnswer.objects.select_for_update().filter(language_model=model, question__bank=bank)
    return model, {answer.question_id: answer for answer in rows}


def _is_another(reply: str, answer: ModelAnswer) -> bool:
    """Whether a file's reply is not the stored one. A file may leave replies out, and an imported answer may have none
    yet; a collected one is stored as it came, even where it came empty."""
    if not reply or (not answer.response and not answer.request_sha256):
        return False
    return reply != answer.response


def _contradiction(llm: str, bank: Bank, count: int, what: str) -> HunchError:
    return HunchError(
        f"{llm}: {count} of its {what} differ from those that are stored for {bank}; nothing was imported. Give it "
        "another name in the file (for instance with the date it was asked)"
    )
