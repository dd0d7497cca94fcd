"""The columns of self-paced reading, and a row for each word that was read."""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from survey.contracts.exports import AnswerExport
from survey.contracts.tables import Column, ExtraFile

from .labels import answer_of, times_of

if TYPE_CHECKING:
    from survey.models import Assignment

COLUMNS = (
    Column("passage_id", "text", "Id of the passage."),
    Column("source", "text", "Source of the passage."),
    Column("words", "number", "Words of the passage.", whole=True),
    Column("reading_ms", "number", "Milliseconds for all words together.", whole=True),
    Column("lead_ms", "number", "Milliseconds from the dashes to the first word.", whole=True),
    Column(
        "reading_server_ms",
        "number",
        "Milliseconds from the beginning to the answer by the server's clock; empty where this window said nothing.",
        whole=True,
    ),
    Column("means", "text", "By which means words were called: key, tap or both."),
    Column("marks", "text", "Why the times may not be used, parted by spaces; empty if they may."),
    Column("passage_question", "text", "The question about the passage."),
    Column("answered_yes", "0 or 1", "1: yes was answered."),
    Column("right", "0 or 1", "1: the answer is right."),
)
WORD_COLUMNS = (
    Column("person", "text", "Pseudonym of the respondent."),
    Column("passage", "text", "Id of the passage."),
    Column("order", "number", "Which of the person's items it was, from 1.", whole=True),
    Column("position", "number", "Words before this one in the passage.", whole=True),
    Column("word", "text", "The word, with its punctuation."),
    Column("time", "number", "Milliseconds from the press that showed the word to the next one.", whole=True),
    Column("right", "0 or 1", "1: the passage's question was answered right; empty if it was not answered."),
    Column("marks", "text", "Why the times of this passage may not be used, parted by spaces; empty if they may."),
)


def values(assignment: "Assignment") -> list[Any]:
    passage, read, answer = assignment.slot.item.read_passage, times_of(assignment), answer_of(assignment)
    question = passage.question
    facts = [question.external_id, question.task.name, len(passage.words)]
    times: list[Any] = [None] * 5
    if read is not None:
        times = [sum(read.times), read.lead_ms, read.server_ms, read.means, " ".join(read.marks)]
    judged = [None, None] if answer is None else [int(answer.yes), int(answer.right)]
    return [*facts, *times, passage.asks, *judged]


def word_rows(assignments: "Iterable[Assignment]") -> "Iterator[Sequence[Any]]":
    """One row per word of each answer that has times."""
    for assignment in assignments:
        read = times_of(assignment)
        if read is None:
            continue
        passage, answer = assignment.slot.item.read_passage, answer_of(assignment)
        right = None if answer is None else int(answer.right)
        name, person = passage.question.external_id, assignment.sitting.respondent.pseudonym
        marks = " ".join(read.marks)
        for position, (word, time) in enumerate(zip(passage.words, read.times, strict=True)):
            yield person, name, assignment.position, position, word, time, right, marks


class ReadingExport(AnswerExport):
    columns = COLUMNS
    first_look = MappingProxyType(
        {
            "reading_ms": "reading, in milliseconds",
            "marks": "why not used",
            "passage_question": "question about it",
            "answered_yes": "answered yes",
            "right": "right",
        }
    )
    codebook_note = "Reading times are in milliseconds, as they were measured; nothing is left out."

    def values(self, assignment: "Assignment") -> list[Any]:
        return values(assignment)

    def extra_files(self, assignments: "Iterable[Assignment]") -> Iterable[ExtraFile]:
        return (ExtraFile("reading_times.csv", WORD_COLUMNS, word_rows(assignments)),)
