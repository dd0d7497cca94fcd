"""Kinds of cells, for the fields of declared rows: each makes a value of a cell's text, or says what to write instead.

Numbers are read as programs write them. Python takes more for a number: digits of every script, and 1_0 for 10.
"""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

from pydantic import PlainValidator

from predictors.cell_numbers import number_of

INFINITE = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "infinity": math.inf, "-infinity": -math.inf}
# What stands for an empty cell in files of statistics programs.
UNKNOWN = ("", "na", "nan")
SHOWN = 40  # characters of a cell that a message shows
REFUSED: Any = object()  # What an empty cell stands for where it may not be empty.


def text(fix: str = "", *, longest: int | None = None, keeps_space: bool = False) -> PlainValidator:
    """A text, without the white space around it.

    Args:
        fix: what to do where it is empty; without it, it may be.
        longest: characters.
        keeps_space: it stays as it stands.
    """

    def check(cell: str) -> str:
        text = cell.strip()
        if fix and not text:
            raise ValueError(f"is empty: {fix}")
        if longest is not None and len(text) > longest:
            raise ValueError(f"has more than {longest} characters: give a shorter one")
        return cell if keeps_space else text

    return PlainValidator(check)


def number(
    says: str,
    fits: Callable[[float], bool] | None = None,
    *,
    empty: Any = REFUSED,
    unknown: Collection[str] = ("",),
    infinite: bool = False,
    words: Mapping[str, Any] | None = None,
) -> PlainValidator:
    """A number.

    Args:
        says: what is said of a cell that holds none; {} is its text.
        fits: whether a number is allowed.
        empty: what an empty cell stands for. unknown: what counts as empty, in small letters.
        infinite: whether inf and -inf are numbers here.
        words: other texts with what they stand for, in small letters; not asked whether they fit.
    """
    texts = {**dict.fromkeys(() if empty is REFUSED else unknown, empty), **(words or {})}

    def check(cell: str) -> Any:
        value = number_of(cell)
        if value is None:
            word = cell.strip().casefold()
            if word in texts:
                return texts[word]
            value = INFINITE.get(word) if infinite else None
        if value is None or not (fits is None or fits(value)):
            raise ValueError(says.format(repr(cell[:SHOWN])))
        return value

    return PlainValidator(check)


def choice(values: Mapping[str, Any], says: str) -> PlainValidator:
    """One of these words, in capital or small letters, and what it stands for."""

    def check(cell: str) -> Any:
        word = cell.strip().lower()
        if word not in values:
            raise ValueError(says.format(repr(cell.strip()[:SHOWN])))
        return values[word]

    return PlainValidator(check)


def whole_of(text: str) -> int | None:
    """A whole number from 0; None where it is none."""
    text = text.strip().removesuffix(".0")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else None


def position_from(lowest: int) -> PlainValidator:
    """A whole number from this one on."""

    def check(cell: str) -> int:
        value = whole_of(cell)
        if value is None or value < lowest:
            raise ValueError(f"{cell[:SHOWN]!r} is no whole number from {lowest}")
        return value

    return PlainValidator(check)


_position = position_from(0).func


# Kinds that many files have

Stripped = Annotated[str, PlainValidator(str.strip)]
"""A text without the white space around it; it may be empty."""
Number = Annotated[float, number("{} is no number", empty=math.nan, unknown=UNKNOWN)]
"""NaN where the cell is empty."""
AnyNumber = Annotated[float, number("{} is no number", empty=math.nan, unknown=UNKNOWN, infinite=True)]
"""The same, or infinite."""
Surprisal = Annotated[
    float,
    number(
        "{} is no surprisal: it must be 0 or more",
        lambda value: value >= 0,
        empty=math.nan,
        unknown=UNKNOWN,
        infinite=True,
    ),
]
"""Nats, NaN where they are not known."""
Position = Annotated[int, PlainValidator(_position)]
PositionIfKnown = Annotated[int | None, PlainValidator(lambda cell: _position(cell) if cell and cell.strip() else None)]
Correct = Annotated[
    float,
    number(
        "{} is neither 0 nor 1, nor a fraction between them",
        lambda value: 0 <= value <= 1,
        words={"true": 1.0, "false": 0.0},
    ),
]
"""How right an answer is, from 0 to 1."""
ZERO_OR_ONE = {"": math.nan, "0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0}
ZeroOrOne = Annotated[float, choice(ZERO_OR_ONE, "{} is neither 0 nor 1")]
"""NaN where the cell is empty."""
