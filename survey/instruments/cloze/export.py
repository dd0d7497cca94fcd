"""The columns of cloze answers."""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

from predictors.markup import plain_text
from survey.contracts.exports import AnswerColumn, Answered, AnswerExport, CountedAnswers
from survey.contracts.tables import ExtraFile

from . import norms
from .options import ClozeOptions

TYPED = Answered("written_word__text", every=True)


class ClozeExport(AnswerExport):
    """`options`: None without a study."""

    first_look = MappingProxyType(
        {"words_shown": "words shown", "target": "the sentence's own word", "typed": "typed", "exact": "the same word"}
    )
    columns = (
        AnswerColumn("sentence_id", "text", "Id of the sentence.", of="question__external_id"),
        AnswerColumn("source", "text", "Source of the sentence.", of="question__task__name"),
        AnswerColumn(
            "words_shown", "number", "Words that were shown; the next one was asked for.", whole=True, of="position"
        ),
        AnswerColumn(
            "target",
            "text",
            "The sentence's own word, with its punctuation.",
            of=("question__text", "position"),
            value=lambda text, position: plain_text(text).split()[position],
        ),
        AnswerColumn(
            "typed",
            "text",
            "What was typed, the last time it was asked for.",
            written=True,
            of=Answered("written_word__text"),
        ),
        AnswerColumn(
            "asked_twice",
            "0 or 1",
            "1: more than one word was typed at first, and one word was asked for again.",
            of=TYPED,
            value=lambda texts: int(len(texts) > 1),
        ),
        AnswerColumn(
            "several",
            "0 or 1",
            "1: more than one word was typed again, and the first one was taken.",
            of=Answered("written_word__several"),
            value=int,
        ),
        AnswerColumn(
            "normalised",
            "text",
            "The word as it was compared.",
            written=True,
            of=Answered("written_word__scores__normalised"),
        ),
        AnswerColumn(
            "rule",
            "number",
            "Version of the rule by which it was compared.",
            whole=True,
            of=Answered("written_word__scores__rule"),
        ),
        AnswerColumn(
            "exact",
            "0 or 1",
            "1: it is the sentence's own word.",
            of=Answered("written_word__scores__exact"),
            value=int,
        ),
        AnswerColumn(
            "lenient",
            "0 or 1",
            "1: it is, but for a slip of one letter at most.",
            of=Answered("written_word__scores__lenient"),
            value=int,
        ),
    )
    response_order = ("written_word__scores__rule",)  # The newest rule that judged a word counts.
    codebook_note = "Surprisals and entropies are in nats."

    def __init__(self, options: "ClozeOptions | None") -> None:
        self.options = options

    def extra_files(self, answers: CountedAnswers) -> Iterable[ExtraFile]:
        return (ExtraFile("cloze.csv", norms.COLUMNS, self._norms(answers)),)

    def _norms(self, answers: CountedAnswers) -> Iterator[Sequence[Any]]:
        options = self.options or ClozeOptions()
        yield from norms.rows_of(
            norms.norms_of(answers), lenient=options.normalisation == "lenient", smoothing=options.smoothing
        )
