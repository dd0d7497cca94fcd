"""How a typed word is compared with the sentence's own: rule 1.

A later rule gets a number of its own and a place in `RULES`; what was judged by an earlier one stays as it is.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from predictors.word_forms import normalised, stripped

__all__ = [
    "LONGEST",
    "RULE",
    "RULES",
    "SHORTEST_LENIENT",
    "Match",
    "is_one_slip",
    "letters",
    "match_of",
    "normalised",
    "stripped",
]

LONGEST = 40  # characters of an answer
SHORTEST_LENIENT = 4  # letters of a target for which a slip is forgiven


@dataclass(frozen=True)
class Match:
    """`lenient`: it is the word, or the word but for a slip."""

    exact: bool
    lenient: bool


def match_of(typed: str, target: str, *, known: Collection[str]) -> Match:
    """Whether one typed word is the target.

    Args:
        known: the bank's words as `normalised` gives them. A slip that is one of them is another word.
    """
    typed_text, other = normalised(typed), normalised(target)
    if typed_text == other:
        return Match(exact=True, lenient=True)
    slip = letters(other) >= SHORTEST_LENIENT and is_one_slip(typed_text, other) and typed_text not in known
    return Match(exact=False, lenient=slip)


def letters(word: str) -> int:
    """How many letters a word has; marks that combine with a letter are no letters of their own."""
    return sum(character.isalpha() for character in word)


def is_one_slip(word: str, other: str) -> bool:
    """One character more, fewer or another one, or two neighbours exchanged."""
    start = 0
    while start < min(len(word), len(other)) and word[start] == other[start]:
        start += 1
    a, b = word[start:], other[start:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (len(a) > 1 < len(b) and a[:2] == b[1::-1] and a[2:] == b[2:])


RULES: Mapping[str, Callable[..., Match]] = {"1": match_of}
RULE = "1"
