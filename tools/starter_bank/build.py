"""Puts the bank together: the handwritten questions, then those from templates.

Dependency rule: the standard library and this package only.
"""

import csv
import io
from pathlib import Path

from . import handwritten, templates
from .drafts import Row

STARTER_BANK = Path(__file__).parents[2] / "survey/services/banks/starter.csv"


def bank_rows() -> list[Row]:
    """Every question of the bank, in the order of the file."""
    return handwritten.rows() + templates.rows()


def bank_text() -> str:
    """The whole file `starter.csv` as text: UTF-8, lines ended by a line feed, header first."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(Row.__annotations__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(bank_rows())
    return text.getvalue()
