"""Answers of language models that others collected: all are imported, or none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

from django.db import transaction

from survey import letters
from survey.exceptions import HunchError
from survey.input_tables import cells
from survey.input_tables.problems import Problems
from survey.input_tables.rows import RowFile, TableRow, column, declared, read_rows
from survey.models import Bank, LanguageModel, ModelAnswer
from survey.services.base.auditing import record

BATCH = 2000
LONGEST_NAME = 120


Reply = Annotated[str, cells.text("leave the row out, or give the reply", keeps_space=True)]


@declared
class ReplyRow(TableRow):
    """A language model's whole reply to a question, of which nobody says whether it is right."""

    read_by = "`import_replies FILE --bank NAME`"
    llm: Annotated[str, cells.text("name the language model")] = column("The language model's name.")
    question_id: Annotated[str, cells.text("name the question")] = column("The question's id in the bank.")
    response: Annotated[str, cells.text("leave the row out, or give the reply", keeps_space=True)] = column(
        "The reply."
    )


@declared
class AnswerRow(ReplyRow):
    """A language model's answer to a question, and how right it is."""

    read_by = "`import_answers FILE --bank NAME`, `alignment --answers FILE`, `paper --answers FILE`"
    response: str = column("The reply.", "")
    correct: cells.Correct = column("0 or 1, or a fraction: the share of right replies, or the grade of one.")


Row = TypeVar("Row", bound=ReplyRow)


@dataclass(frozen=True)
class Imported:
    """How many answers of each language model are new, and how many were already stored. `notes`: what is said of the
    file."""

    new: dict[str, int]
    known: dict[str, int]
    notes: Sequence[str] = ()


def import_answers(path: Path | str, bank: Bank) -> Imported:
    """Import a CSV file (llm, question_id, correct; response is optional) of answers to a bank's questions.

    `correct` is 0 or 1, or a fraction between them: the share of right replies, or the grade of one.

    A verdict is added to a reply that nobody judged, and a reply to an answer of which only the verdict was imported.

    Raises:
        FileErrors: lists every problem with its line; nothing is written.
        HunchError: the file's answers contradict stored ones.
    """
    rows = read_rows(AnswerRow, path, Problems(), guesses=False)
    answers: dict[str, dict[int, tuple[float, str]]] = {}
    for question, row in _of_questions(rows, bank):
        answers.setdefault(row.llm, {})[question] = (row.correct, row.response)
    rows.refuse("" if answers else "holds no answer: add at least one row")
    return replace(_write(answers, bank), notes=rows.problems.notes)


def import_replies(path: Path | str, bank: Bank) -> Imported:
    """Import a CSV file (llm, question_id, response) of whole replies, of which nobody says whether they are right.

    A reply is added to an answer of which only the verdict was imported.

    Raises:
        FileErrors: lists every problem with its line; nothing is written.
        HunchError: the file's replies contradict stored ones.
    """
    rows = read_rows(ReplyRow, path, Problems(), guesses=False)
    replies: dict[str, dict[int, str]] = {}
    for question, row in _of_questions(rows, bank):
        replies.setdefault(row.llm, {})[question] = row.response
    rows.refuse("" if replies else "holds no reply: add at least one row")
    return replace(_write_replies(replies, bank), notes=rows.problems.notes)


def _of_questions(rows: RowFile[Row], bank: Bank) -> Iterator[tuple[int, Row]]:
    """Rows with the primary key of their question, of those that are the bank's; what is wrong goes to the problems."""
    ids = dict(bank.questions.values_list("external_id", "pk"))
    named = _ModelNames()
    for row in rows:
        if message := named.problem_of(row.llm, row.line):
            rows.wrong(row.line, "llm", message)
        if row.question_id not in ids:
            rows.wrong(row.line, "question_id", f"{row.question_id[:60]!r} is no question of {bank}")
        rows.once(row, "question_id", (row.llm, row.question_id), f"{row.llm} answered it already")
        if row.question_id in ids:
            yield ids[row.question_id], row


class _ModelNames:
    """The names of a file's language models, next to those that are stored: a model is known by its name alone."""

    def __init__(self) -> None:
        self._stored: dict[str, set[str]] = {}
        for name in LanguageModel.objects.values_list("name", flat=True):
            self._stored.setdefault(letters.look(name), set()).add(name)
        self._of_file = letters.LookAlikes[int]()
        self._said: dict[str, str] = {}

    def problem_of(self, name: str, line: int) -> str:
        """What is wrong with the name, and what to do; empty where nothing is, or it was said before."""
        if name in self._said:
            return ""
        self._said[name] = message = self._problem(name, line)
        return message

    def _problem(self, name: str, line: int) -> str:
        if len(name) > LONGEST_NAME:
            return f"is longer than {LONGEST_NAME} characters: give the language model a shorter name"
        if message := letters.problem_of(name):
            return message
        stored = self._stored.get(letters.look(name), {name})
        if name not in stored:
            return f"{letters.differ(name, min(stored))}, which is stored: write the one name"
        if (other := self._of_file.add(name, line)) is not None and len(stored) == 1:
            return f"{letters.differ(name, other[0])} in line {other[1]}: write one name"
        return ""


@transaction.atomic
def _write(rows: dict[str, dict[int, tuple[float, str]]], bank: Bank) -> Imported:
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
    record("import_answers", bank, new=new, known=known)
    return Imported(new=new, known=known)


@transaction.atomic
def _write_replies(rows: dict[str, dict[int, str]], bank: Bank) -> Imported:
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
    record("import_replies", bank, new=new, known=known)
    return Imported(new=new, known=known)


def _stored(llm: str, bank: Bank) -> tuple[LanguageModel, dict[int, ModelAnswer]]:
    """The language model, and what is stored of its answers to the bank by question. The rows are locked."""
    model = LanguageModel.named(llm)
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
