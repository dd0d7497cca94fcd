"""Published questions in the bank's markup: bold stem, `<br>` between lines, one line per option."""

import re
from collections.abc import Sequence

LINE_END = re.compile(r"\r\n|\r|\n")


def lines_to_breaks(text: str) -> str:
    return LINE_END.sub("<br>", text.strip())


def multiple_choice(stem: str, options: Sequence[str]) -> str:
    """A question with lettered options, A first."""
    lettered = [f"({chr(ord('A') + index)}) {option}" for index, option in enumerate(map(lines_to_breaks, options))]
    return f"<b>{lines_to_breaks(stem)}<br></b>{'<br>'.join(lettered)}"
