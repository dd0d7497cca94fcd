"""The columns of self-paced reading, and a row for each word that was read."""

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from predictors.markup import plain_text
from survey.contracts.exports import AnswerColumn, Answered, AnswerExport, CountedAnswers
from survey.contracts.tables import ExtraFile, ValueColumn

from .labels import answer_of, times_of

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import PassageAnswer, ReadPassage, WordTimes


class ReadWord(NamedTuple):
    """A word of a passage, and how long it was looked at."""

    assignment: "Assignment"
    passage: "ReadPassage"
    times: "WordTimes"
    answer: "PassageAnswer | None"
    position: int
    word: str
    time: int


WORD_COLUMNS = (
    ValueColumn("person", "text", "Pseudonym of the respondent.", value="assignment.sitting.respondent.pseudonym"),
    ValueColumn("passage", "text", "Id of the passage.", value="passage.question.external_id"),
    ValueColumn(
        "order", "number", "Which of the person's items it was, from 1.", whole=True, value="assignment.position"
    ),
    ValueColumn("position", "number", "Words before this one in the passage.", whole=True),
    ValueColumn("word", "text", "The word, with its punctuation."),
    ValueColumn("time", "number", "Milliseconds from the press that showed the word to the next one.", whole=True),
    ValueColumn(
        "right",
        "0 or 1",
        "1: the passage's question was answered right; empty if it was not answered.",
        value=lambda word: None if word.answer is None else int(word.answer.right),
    ),
    ValueColumn(
        "marks",
        "text",
        "Why the times of this passage may not be used, parted by spaces; empty if they may.",
        value=lambda word: " ".join(word.times.marks),
    ),
)


def words_of(assignments: "Iterable[Assignment]") -> Iterator[ReadWord]:
    """The words of each answer that has times."""
    for assignment in assignments:
        times = times_of(assignment)
        if times is None:
            continue
        passage, answer = assignment.slot.item.read_passage, answer_of(assignment)
        for position, (word, time) in enumerate(zip(passage.words, times.times, strict=True)):
            yield ReadWord(assignment, passage, times, answer, position, word, time)


class ReadingExport(AnswerExport):
    first_look = MappingProxyType(
        {
            "reading_ms": "reading, in milliseconds",
            "marks": "why not used",
            "passage_question": "question about it",
            "answered_yes": "answered yes",
            "right": "right",
        }
    )
    columns = (
        AnswerColumn("passage_id", "text", "Id of the passage.", of="question__external_id"),
        AnswerColumn("source", "text", "Source of the passage.", of="question__task__name"),
        AnswerColumn(
            "words",
            "number",
            "Words of the passage.",
            whole=True,
            of="question__text",
            value=lambda text: len(plain_text(text).split()),
        ),
        AnswerColumn(
            "reading_ms",
            "number",
            "Milliseconds for all words together.",
            whole=True,
            of=Answered("word_times__times"),
            value=sum,
        ),
        AnswerColumn(
            "lead_ms",
            "number",
            "Milliseconds from the dashes to the first word.",
            whole=True,
            of=Answered("word_times__lead_ms"),
        ),
        AnswerColumn(
            "reading_server_ms",
            "number",
            "Milliseconds from the beginning to the answer by the server's clock; empty where this window said"
            " nothing.",
            whole=True,
            of=Answered("word_times__server_ms"),
        ),
        AnswerColumn(
            "means", "text", "By which means words were called: key, tap or both.", of=Answered("word_times__means")
        ),
        AnswerColumn(
            "marks",
            "text",
            "Why the times may not be used, parted by spaces; empty if they may.",
            of=Answered("word_times__marks"),
            value=" ".join,
        ),
        AnswerColumn(
            "passage_question",
            "text",
            "The question about the passage.",
            of="question__extra",
            value=lambda extra: str(extra.get("question", "")),
        ),
        AnswerColumn("answered_yes", "0 or 1", "1: yes was answered.", of=Answered("passage_answer__yes"), value=int),
        AnswerColumn("right", "0 or 1", "1: the answer is right.", of=Answered("passage_answer__right"), value=int),
    )
    codebook_note = "Reading times are in milliseconds, as they were measured; nothing is left out."

    def extra_files(self, answers: CountedAnswers) -> Iterable[ExtraFile]:
        return (ExtraFile.of("reading_times.csv", WORD_COLUMNS, words_of(answers)),)
