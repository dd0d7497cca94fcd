"""How a typed word is compared with the sentence's own: rule 1. Standard library.

A later rule gets a number of its own and a place in `RULES`; what was judged by an earlier one stays as it is.
"""

import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

LONGEST = 40  # characters of an answer
SHORTEST_LENIENT = 4  # letters of a target for which a slip is forgiven
APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ´`＇", "'"))


@dataclass(frozen=True)
class Match:
    """`lenient`: it is the word, or the word but for a slip."""

    exact: bool
    lenient: bool


def is_outer(character: str) -> bool:
    """Whether a character is taken off both ends of a word: punctuation, symbols, and marks that nobody sees."""
    category = unicodedata.category(character)
    return category[0] in "PSZ" or category in ("Cf", "Cc")


def stripped(word: str) -> str:
    """The word without the punctuation around it; the word itself where nothing else is left."""
    start, end = 0, len(word)
    while start < end and is_outer(word[start]):
        start += 1
    while end > start and is_outer(word[end - 1]):
        end -= 1
    return word[start:end] or word


def normalised(word: str) -> str:
    """NFC, case folded, straight apostrophes, without punctuation around it."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", word).casefold())
    return stripped(folded.translate(APOSTROPHES).strip())


def match_of(typed: str, target: str, *, known: Collection[str]) -> Match:
    """Whether one typed word is the target.

    Args:
        known: the bank's words as `normalised` gives them. A slip that is one of them is another word.
    """
    one, other = normalised(typed), normalised(target)
    if one == other:
        return Match(exact=True, lenient=True)
    slip = letters(other) >= SHORTEST_LENIENT and is_one_slip(one, other) and one not in known
    return Match(exact=False, lenient=slip)


def letters(word: str) -> int:
    """How many letters a word has; marks that combine with a letter are no letters of their own."""
    return sum(character.isalpha() for character in word)


def is_one_slip(one: str, other: str) -> bool:
    """One character more, fewer or another one, or two neighbours exchanged."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (len(a) > 1 < len(b) and a[:2] == b[1::-1] and a[2:] == b[2:])


RULES: Mapping[str, Callable[..., Match]] = {"1": match_of}
RULE = "1"
