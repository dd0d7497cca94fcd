"""Norms: of each gap, how many people wrote which word, its smoothed probability and surprisal."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from survey.contracts.tables import Column

from .labels import normalised, word_of

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import Gap

COLUMNS = (
    Column("sentence", "text", "Id of the sentence."),
    Column("position", "number", "Place of the word, 0 for the first one."),
    Column("word", "text", "The sentence's own word."),
    Column("n", "number", "Answers."),
    Column("k_exact", "number", "Answers that match exactly."),
    Column("k_lenient", "number", "Answers that match leniently."),
    Column("p", "fraction", "Smoothed share of the word, by the study's normalisation."),
    Column("surprisal", "nats", "-ln p."),
    Column("entropy", "nats", "Of the smoothed answers."),
    Column("answers", "text", "Every answer with its count."),
)


@dataclass(frozen=True)
class Norm:
    gap: "Gap"
    counts: Counter[str]
    exact: int
    lenient: int

    @property
    def n(self) -> int:
        return sum(self.counts.values())

    def p(self, k: int, smoothing: float) -> float:
        """(k + a) / (n + a K), K the distinct answers and one more."""
        return (k + smoothing) / (self.n + smoothing * (len(self.counts) + 1))

    def entropy(self, smoothing: float) -> float:
        shares = [self.p(count, smoothing) for count in [*self.counts.values(), 0]]
        return -sum(share * math.log(share) for share in shares if share)


def norms_of(assignments: "Iterable[Assignment]") -> list[Norm]:
    """One a gap that has an answer, by sentence and position."""
    words = defaultdict(list)
    gaps = {}
    for assignment in assignments:
        if (word := word_of(assignment)) is not None and assignment.is_complete:
            gap = assignment.slot.item.gap
            gaps[gap.pk] = gap
            words[gap.pk].append(word)
    found = [
        Norm(
            gap,
            Counter(word.normalised for word in words[pk]),
            sum(word.exact for word in words[pk]),
            sum(word.lenient for word in words[pk]),
        )
        for pk, gap in gaps.items()
    ]
    return sorted(found, key=lambda norm: (norm.gap.question.position, norm.gap.position))


def rows_of(norms: Sequence[Norm], *, lenient: bool, smoothing: float) -> Iterator[Sequence[Any]]:
    for norm in norms:
        p = norm.p(norm.lenient if lenient else norm.exact, smoothing)
        answers = "; ".join(f"{word} {count}" for word, count in sorted(norm.counts.items()))
        yield (
            norm.gap.question.external_id,
            norm.gap.position,
            normalised(norm.gap.target),
            norm.n,
            norm.exact,
            norm.lenient,
            round(p, 6),
            round(-math.log(p), 6),
            round(norm.entropy(smoothing), 6),
            answers,
        )
