"""Letters that no text and no name may hold. Imports the standard library alone.

Names are distinguished by their letters: ids of questions, tasks, language models, columns.
What cannot be seen makes two names of what looks like one. So such letters are refused, and names that differ in case,
spaces or forms of letters alone are said.
"""

import re
import unicodedata
from typing import Generic, TypeVar

Place = TypeVar("Place")
# A part of a surrogate pair alone cannot be stored either. What Windows-1252 has at 0x80 to 0x9f stays: published
# question banks hold such letters.
CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
# Letters that show nothing, in addition to those of the category Cf: a joiner, fillers, and marks that choose a form.
UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# Letters of other scripts that look like Latin ones in most fonts.
TWINS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u03bf\u03bd\u03c1",
    "aeopcyxijsdqovp",
)
# How a letter of two or three bytes looks where UTF-8 was read as Windows-1252.
TWICE = re.compile("[\u00c2\u00c3][\u00a0-\u00bf]|\u00e2\u20ac[\u0153\u02dc\u2122\u00a6]")
JOINERS = "\u200c\u200d"


def control_character(text: str) -> str:
    """What is wrong with a text that holds a control character, and what to do; empty where it holds none."""
    held = CONTROL.search(text)
    if held is None:
        return ""
    letter = ord(held[0])
    name = {0: "a NUL character", 0x1B: "an escape character (U+001B)"}.get(letter, f"the character U+{letter:04X}")
    kind = "" if letter == 0 else ", which is half a letter" if letter >= 0xD800 else ", a control character"
    return f"holds {name}{kind}: remove it"


def lost_letters(text: str) -> str:
    """What shows that a text was saved or read in a wrong encoding before; empty where nothing does."""
    if "\ufffd" in text:
        return "holds U+FFFD, the sign for a letter that was lost when the text was saved: compare it with its source"
    if held := TWICE.search(text):
        try:
            meant = held[0].encode("cp1252").decode()
        except UnicodeError:
            return ""
        return f"holds {held[0]!r}, which may be {meant!r} read in a wrong encoding: compare it with its source"
    return ""


def unseen_letter(name: str) -> str:
    """The first letter of a name that cannot be seen, or that is a space of another kind than the usual one."""
    for place, letter in enumerate(name):
        if letter in JOINERS and _joins(name[place - 1 : place], name[place + 1 : place + 2]):
            continue
        category = unicodedata.category(letter)
        if CONTROL.match(letter) or category in ("Cf", "Cc", "Zl", "Zp") or UNSEEN.match(letter):
            return letter
        if category == "Zs" and letter != " ":
            return letter
    return ""


def _joins(before: str, after: str) -> bool:
    """Whether a joiner stands where scripts such as Persian, Hindi and emoji write one."""
    return all(character > "\u024f" for character in (before, after)) if before and after else False


def problem_of(name: str) -> str:
    """What is wrong with a name, and what to do; empty where nothing is."""
    if letter := unseen_letter(name):
        what = "a space of another kind" if unicodedata.category(letter) == "Zs" else "which cannot be seen"
        return f"{name[:60]!r} holds U+{ord(letter):04X}, {what}: remove it"
    if name != name.strip():
        return f"{name[:60]!r} holds white space around it: remove it"
    return ""


def without_unseen(name: str) -> str:
    """A name without letters that cannot be seen and spaces around it: for headers, whose columns are named by hand."""
    seen = "".join(
        " " if unicodedata.category(character) == "Zs" else character for character in name if _is_seen(character)
    )
    return seen.strip()


def _is_seen(letter: str) -> bool:
    return unicodedata.category(letter) not in ("Cf", "Cc") and not UNSEEN.match(letter)


def look(name: str) -> str:
    """What two names have in common that look alike: not case, spaces, unseen letters or forms of letters."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    folded = folded.translate(TWINS)
    return " ".join(
        "".join(character if character.isspace() or _is_seen(character) else "" for character in folded).split()
    )


def differ(name: str, other: str) -> str:
    """What is said of two names that look alike; where the other one stands follows."""
    return f"{name[:60]!r} differs in case, spaces or forms of letters alone from {other[:60]!r}"


class LookAlikes(Generic[Place]):
    """Names in the order in which they come; tells the first other name that looks like one."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], tuple[str, Place]] = {}

    def add(self, name: str, place: Place, *, beside: str = "") -> tuple[str, Place] | None:
        """The name before it that looks the same and is another, with its place; None where there is none.

        Args:
            beside: only names of one kind are compared.
        """
        first = self._first.setdefault((beside, look(name)), (name, place))
        return first if first[0] != name else None
