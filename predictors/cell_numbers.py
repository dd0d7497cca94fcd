"""Numbers in the cells of files, as programs write them. Imports the standard library alone.

Python takes more for a number: digits of every script, and 1_0 for 10.
"""

import math
import re

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def number_of(text: str) -> float | None:
    """A finite number; None where the text is none."""
    text = text.strip()
    value = float(text) if NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None
