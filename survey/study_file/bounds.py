"""Bounds of a study file's text, looked at before it is parsed. Imports the exceptions and the standard library.

Python's parser takes seconds, or fails without a line, on texts that no study needs: brackets in brackets, names of a
thousand parts, numbers of a million digits. One pass over the text finds them and names the line.
"""

import re
from collections.abc import Iterator

from survey.exceptions import Problem

LONGEST_FILE = 256 * 1024  # bytes
DEEPEST = 20  # brackets inside each other
MAX_PARTS = 8  # of a dotted name
LONGEST_WORD = 100  # characters of a number or of a part of a name
MAX_LINES = 8_000
# A comment, the mark that begins a string, one character that has a meaning, or a run of others.
PART = re.compile(r"""#[^\n]*|\"\"\"|'''|["'\[\]{}=,.\n]|[^\s"'\[\]{}=,.#]+""")
ENDS_A_NAME = frozenset("=,\n[]{}")


def too_large(size: int) -> str:
    return f"has {size:,} bytes; a study file has at most {LONGEST_FILE:,}"


def problem_of(text: str) -> Problem | None:
    """The first bound that the text breaks."""
    size = len(text.encode(errors="surrogatepass"))
    if size > LONGEST_FILE:
        return Problem("", None, "file", too_large(size))
    if (lines := text.count("\n")) > MAX_LINES:
        return Problem("", None, "file", f"has {lines:,} lines; a study file has at most {MAX_LINES:,}")
    for message, position in _broken(text):
        return Problem("", text.count("\n", 0, position) + 1, "file", message)
    return None


def _broken(text: str) -> Iterator[tuple[str, int]]:
    """What is too much, and where. A string that does not end ends the search: the parser says so."""
    depth = dots = position = 0
    while match := PART.search(text, position):
        part, start, position = match[0], match.start(), match.end()
        if part in ('"""', "'''", '"', "'"):
            end = _end_of_string(text, part, position)
            if end is None:
                return
            position = end
        elif part in "[{":
            depth += 1
            if depth > DEEPEST:
                yield f"brackets stand in each other more than {DEEPEST} deep: no key of a study file needs that", start
        elif part in "]}":
            depth = max(0, depth - 1)
        elif part == ".":
            dots += 1
            if dots >= MAX_PARTS:
                yield f"a name has more than {MAX_PARTS} parts with dots between: write tables instead", start
        elif len(part) > LONGEST_WORD and not part.startswith("#"):
            yield f"a name or number has {len(part):,} characters; at most {LONGEST_WORD} are read", start
        if part in ENDS_A_NAME:
            dots = 0


def _end_of_string(text: str, mark: str, start: int) -> int | None:
    """Where the string ends that begins at `start`; None if it does not end."""
    lasts = len(mark) == 3
    line_end = text.find("\n", start)
    limit = len(text) if lasts or line_end < 0 else line_end
    end = text.find(mark, start, limit)
    if mark[0] == '"':
        while end >= 0 and _is_escaped(text, end, start):
            end = text.find(mark, end + 1, limit)
    if end < 0:
        return None
    end += len(mark)
    # A text between three marks may itself end with one or two of them.
    more = len(text[end : end + 2]) - len(text[end : end + 2].lstrip(mark[0])) if lasts else 0
    return end + more


def _is_escaped(text: str, position: int, start: int) -> bool:
    before = position
    while before > start and text[before - 1] == "\\":
        before -= 1
    return (position - before) % 2 == 1
