"""Questions in the bank's markup: bold stem, `<br>` between lines, one line per option.

A table's texts are letters, of which none is taken out, unless the table is HTML: the paper's questions are. Their
texts stand in `<b>...</b>`, by which such a table is known where nobody says what it is.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from predictors.markup import MARKUP, as_letters
from survey.input_tables.decoding import LINE_END

if TYPE_CHECKING:
    from .importing import QuestionRow

BOLD = re.compile(r"<b>.*</b>", re.DOTALL)
LINES_SHOWN = 10


def lines_to_breaks(text: str) -> str:
    return LINE_END.sub("<br>", as_letters(text.strip()))


def multiple_choice(stem: str, options: Sequence[str]) -> str:
    """A question with lettered options, A first."""
    lettered = [f"({chr(ord('A') + index)}) {option}" for index, option in enumerate(map(lines_to_breaks, options))]
    return f"<b>{lines_to_breaks(stem)}<br></b>{'<br>'.join(lettered)}"


def in_markup(rows: "Sequence[QuestionRow]", html: bool | None = None) -> "tuple[list[QuestionRow], list[str]]":
    """A table's questions in the bank's markup, and what is said of it.

    Args:
        html: whether the table's texts are in this markup already; None: if most of those with a tag begin in bold.
    """
    tagged = [row for row in rows if MARKUP.search(row.question)]
    is_html = 2 * sum(bool(BOLD.match(row.question)) for row in tagged) > len(tagged) if html is None else html
    notes = []
    if tagged and (html is None or not is_html):
        lines = ", ".join(str(row.line) for row in tagged[:LINES_SHOWN]) + (", ..." if tagged[LINES_SHOWN:] else "")
        first = tagged[0]
        where = f"{first.file}: {first.text_column}: {len(tagged):,} texts hold <b>, </b> or <br> (line {lines})"
        notes.append(
            f"{where}: most begin in bold, so these are taken as HTML; choose --letters (on the page: letters) if they "
            "are to be seen"
            if is_html
            else f"{where}: they are shown as these letters; choose --html (on the page: HTML) if they are markup"
        )
    if is_html:
        return list(rows), notes
    return [replace(row, question=as_letters(row.question)) for row in rows], notes
