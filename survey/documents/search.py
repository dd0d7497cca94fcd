"""Searches the documents: every word that is asked for must be in a section, whole or as the beginning of a word.

Pages that are made from the code are left out: what they list stands, with more words, in the pages that explain it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from . import pages, reference
from .addresses import help_address

LONGEST = 100  # characters of what is asked for
MOST = 30
AROUND = 110  # characters before and after the first word that fits
# What a word counts in the title of a page, in a heading and in a text.
TITLE, HEADING, TEXT = 8, 12, 1
MOST_IN_TEXT = 5
# A whole page on a subject before a mention of it.
FIRST_SECTION = 4


@dataclass(frozen=True)
class Place:
    """A section that was searched for. `excerpt`: its words around the first that fits, each one marked."""

    page: str
    heading: str
    address: str
    excerpt: SafeString


@dataclass(frozen=True)
class _Entry:
    page: pages.Document
    section: pages.Section
    texts: tuple[str, str, str]


@cache
def _entries() -> Sequence[_Entry]:
    documents = [pages.document(name) for name in pages.names() if name not in reference.TITLES]
    return [
        _Entry(page, section, (page.title.lower(), section.heading.text.lower(), section.text.lower()))
        for page in documents
        if page is not None
        for section in page.sections
    ]


def search(question: str) -> list[Place]:
    """The sections that have all words, the best first."""
    words = sorted(set(re.findall(r"[\w-]+", question[:LONGEST].lower())))
    if not words:
        return []
    # An underscore ends a word too: people search for a part of a name.
    patterns = [re.compile(rf"(?<![^\W_]){re.escape(word)}") for word in words]
    ranked = [(score, place, entry) for place, entry in enumerate(_entries()) if (score := _score(entry, patterns))]
    ranked.sort(key=lambda row: (-row[0], row[1]))
    return [_place(entry, patterns) for _score, _place_in_menu, entry in ranked[:MOST]]


def _score(entry: _Entry, patterns: Sequence[re.Pattern[str]]) -> int:
    """0: a word is in none of its texts."""
    title, heading, text = entry.texts
    score = FIRST_SECTION if entry.section is entry.page.sections[0] else 0
    for pattern in patterns:
        points = TITLE * bool(pattern.search(title)) + HEADING * bool(pattern.search(heading))
        points += TEXT * min(len(pattern.findall(text)), MOST_IN_TEXT)
        if not points:
            return 0
        score += points
    return score


def _place(entry: _Entry, patterns: Sequence[re.Pattern[str]]) -> Place:
    heading = entry.section.heading
    address = help_address(f"{entry.page.name}#{heading.anchor}")
    return Place(entry.page.title, heading.text, address, _excerpt(entry.section.text, patterns))


def _excerpt(text: str, patterns: Sequence[re.Pattern[str]]) -> SafeString:
    line = " ".join(text.split())
    lower = line.lower()
    first = min((match.start() for pattern in patterns if (match := pattern.search(lower))), default=0)
    begin, end = max(first - AROUND, 0), first + AROUND
    begin = line.rfind(" ", 0, begin) + 1 if begin else 0
    cut = line[begin:end].rpartition(" ")[0] if end < len(line) else line[begin:]
    spans = sorted((match.start(), match.end()) for pattern in patterns for match in pattern.finditer(cut.lower()))
    marked, done = "", 0
    for start, stop in spans:
        if start >= done:
            marked += f"{escape(cut[done:start])}<mark>{escape(cut[start:stop])}</mark>"
            done = stop
    whole = f"{'… ' if begin else ''}{marked}{escape(cut[done:])}{' …' if end < len(line) else ''}"
    return mark_safe(whole)  # noqa: S308 - each part is escaped
