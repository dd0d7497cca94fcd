"""The columns of cloze answers."""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from survey.contracts.exports import AnswerExport
from survey.contracts.tables import Column, ExtraFile

from . import norms
from .analysis.normalising import RULES
from .labels import score_of, written_word_of
from .options import ClozeOptions
from .quick_export import ClozeQuickExport

if TYPE_CHECKING:
    from survey.models import Assignment

COLUMNS = (
    Column("sentence_id", "text", "Id of the sentence."),
    Column("source", "text", "Source of the sentence."),
    Column("words_shown", "number", "Words that were shown; the next one was asked for.", whole=True),
    Column("target", "text", "The sentence's own word, with its punctuation."),
    Column("typed", "text", "What was typed, the last time it was asked for.", written=True),
    Column("asked_twice", "0 or 1", "1: more than one word was typed at first, and one word was asked for again."),
    Column("several", "0 or 1", "1: more than one word was typed again, and the first one was taken."),
    Column("normalised", "text", "The word as it was compared.", written=True),
    Column("rule", "number", "Version of the rule by which it was compared.", whole=True),
    Column("exact", "0 or 1", "1: it is the sentence's own word."),
    Column("lenient", "0 or 1", "1: it is, but for a slip of one letter at most."),
)


def values(assignment: "Assignment") -> list[Any]:
    asked = assignment.slot.item.asked_word
    facts = [asked.question.external_id, asked.question.task.name, asked.position, asked.target]
    word = written_word_of(assignment)
    if word is None:
        return [*facts, *[None] * 7]
    typed = sum(hasattr(response, "written_word") for response in assignment.responses.all())
    score = score_of(word)
    judged = [None] * 4 if score is None else [score.normalised, score.rule, int(score.exact), int(score.lenient)]
    return [*facts, word.text, int(typed > 1), int(word.several), *judged]


class ClozeExport(AnswerExport):
    """`options`: None without a study."""

    columns = COLUMNS
    first_look = MappingProxyType(
        {"words_shown": "words shown", "target": "the sentence's own word", "typed": "typed", "exact": "the same word"}
    )
    codebook_note = "Surprisals and entropies are in nats."

    def __init__(self, options: "ClozeOptions | None") -> None:
        self.options = options

    def values(self, assignment: "Assignment") -> list[Any]:
        return values(assignment)

    def extra_files(self, assignments: "Iterable[Assignment]") -> Iterable[ExtraFile]:
        return (ExtraFile("cloze.csv", norms.COLUMNS, self._norms(assignments)),)

    def _norms(self, assignments: "Iterable[Assignment]") -> Iterator[Sequence[Any]]:
        options = self.options or ClozeOptions()
        yield from norms.rows_of(
            norms.norms_of(assignments),
            lenient=options.normalisation == "lenient",
            smoothing=options.smoothing,
        )

    @property
    def quick(self) -> ClozeQuickExport | None:
        return ClozeQuickExport() if len(RULES) == 1 else None
