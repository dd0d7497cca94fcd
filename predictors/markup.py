"""The markup in which banks and tables of pairs keep a question's text: `<b>`, `</b>` and `<br>`, in exactly this
spelling. All else, also `<b >` or `<BR>`, is text. Imports the standard library alone.

A text in which these are letters, such as "What does <br> do?", is kept with `&lt;br&gt;` in their place; and one with
the letters `&lt;br&gt;` with one more `amp;`. So each text has one form in the markup, and comes back as it was.
"""

import re

MARKUP = re.compile(r"(</?b>|<br>)")
LETTERS = re.compile(r"&(amp;)*lt;(/?b|br)&gt;")


def as_letters(text: str) -> str:
    """The form in the markup of a text that has none: its tags are shown as they stand."""
    text = LETTERS.sub(lambda match: f"&amp;{match[0][1:]}", text)
    return MARKUP.sub(lambda match: f"&lt;{match[0][1:-1]}&gt;", text)


def shown_letters(text: str) -> str:
    """A piece between two marks as a reader sees it."""
    return LETTERS.sub(lambda match: f"&{match[0][5:]}" if match[1] else f"<{match[2]}>", text)


def plain_text(text: str) -> str:
    """The text as a reader sees it: `<br>` is a line break, `<b>` and `</b>` are dropped. Predictors get this."""
    return shown_letters(MARKUP.sub(lambda match: "\n" if match[0] == "<br>" else "", text)).strip()
