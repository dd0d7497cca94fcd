"""Norms: how many people wrote which word at each position, and the chance and surprisal of the sentence's own word."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import bandit
from survey.contracts.tables import Column

from .analysis.answers import entropy, surprisal
from .analysis.normalising import normalised
from .labels import judged_word_of

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import AskedWord

COLUMNS = (
    Column("sentence", "text", "Id of the sentence."),
    Column("position", "number", "Words before the one that was asked for.", whole=True),
    Column("word", "text", "The sentence's own word, with its punctuation."),
    Column("n", "number", "Answers.", whole=True),
    Column("k_exact", "number", "Answers that are exactly the word.", whole=True),
    Column("k_lenient", "number", "Answers that are the word, but for a slip of one letter at most.", whole=True),
    Column("p", "number", "Smoothed share of the word, by the study's normalisation: (k + a) / (n + a K).", digits=2),
    Column("low", "number", "Lower end of the 95 % interval (Wilson) of k / n.", digits=2),
    Column("high", "number", "Its upper end.", digits=2),
    Column("surprisal", "number", "-ln p, in nats.", digits=2),
    Column("entropy", "number", "Of the smoothed answers, in nats.", digits=2),
    Column("answers", "JSON", "Every answer with its count, the most frequent first.", written=True),
)


@dataclass
class Norm:
    """One position. `words`: what each answer is as it was compared; a match counts as the sentence's own word."""

    asked: "AskedWord"
    exact: Counter[str] = field(default_factory=Counter)
    lenient: Counter[str] = field(default_factory=Counter)
    k_exact: int = 0
    k_lenient: int = 0
    _own: str | None = None

    @property
    def own(self) -> str:
        """The sentence's own word, as answers are compared with it."""
        if self._own is None:
            self._own = normalised(self.asked.target)
        return self._own

    @property
    def n(self) -> int:
        return sum(self.exact.values())

    def add(self, word: str, *, exact: bool, lenient: bool) -> None:
        self.exact[word] += 1
        # A slip is the sentence's own word, and so no further distinct answer.
        self.lenient[self.own if lenient else word] += 1
        self.k_exact += exact
        self.k_lenient += lenient

    def counts(self, *, lenient: bool) -> Counter[str]:
        return self.lenient if lenient else self.exact

    def k(self, *, lenient: bool) -> int:
        return self.k_lenient if lenient else self.k_exact


def norms_of(assignments: "Iterable[Assignment]") -> list[Norm]:
    """One of each position that has an answer, by sentence and position."""
    norms: dict[int, Norm] = {}
    for assignment in assignments:
        score = judged_word_of(assignment)
        if score is None or not assignment.is_complete:
            continue
        asked = assignment.slot.item.asked_word
        norm = norms.setdefault(asked.pk, Norm(asked))
        norm.add(score.normalised, exact=score.exact, lenient=score.lenient)
    return sorted(norms.values(), key=lambda norm: (norm.asked.question.position, norm.asked.position))


def rows_of(norms: Sequence[Norm], *, lenient: bool, smoothing: float) -> Iterator[Sequence[Any]]:
    for norm in norms:
        counts, k = norm.counts(lenient=lenient), norm.k(lenient=lenient)
        low, high = bandit.wilson_interval(k / norm.n, norm.n)
        value = float(surprisal(k, norm.n, len(counts), smoothing))
        yield (
            norm.asked.question.external_id,
            norm.asked.position,
            norm.asked.target,
            norm.n,
            norm.k_exact,
            norm.k_lenient,
            round(math.exp(-value), 6),
            round(low, 6),
            round(high, 6),
            round(value, 6),
            round(entropy(list(counts.values()), smoothing), 6),
            answers_json(norm.exact),
        )


def answers_json(counts: Mapping[str, int]) -> str:
    """Every answer with its count, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return json.dumps(dict(ordered), ensure_ascii=False)
