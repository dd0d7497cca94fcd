"""How a typed word is compared with the sentence's own: normalisation rule 1."""

import string
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import Word

RULE = "1"
SHORTEST_LENIENT = 4
OUTER = string.punctuation + "“”„‘’«»…–—¿¡"


@dataclass(frozen=True)
class Match:
    exact: bool
    lenient: bool


def normalised(word: str) -> str:
    """NFC, case folded, straight apostrophes, without punctuation around it."""
    return unicodedata.normalize("NFC", word).casefold().replace("’", "'").strip(OUTER)


def match_of(typed: str, target: str, *, known: Collection[str]) -> Match:
    """Lenient takes a slip of one letter too, where the target has 4 letters or more and `known`, the bank's words,
    does not hold what was typed."""
    one, other = normalised(typed), normalised(target)
    if one == other:
        return Match(exact=True, lenient=True)
    slip = len(other) >= SHORTEST_LENIENT and one not in known and _is_one_slip(one, other)
    return Match(exact=False, lenient=slip)


def _is_one_slip(one: str, other: str) -> bool:
    """One letter more, fewer or another one, or two neighbours exchanged."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (len(a) > 1 < len(b) and a[:2] == b[1::-1] and a[2:] == b[2:])


def word_of(assignment: "Assignment") -> "Word | None":
    """The word that counts: the last one that was given."""
    words = [response.word for response in assignment.responses.all() if hasattr(response, "word")]
    return words[-1] if words else None
