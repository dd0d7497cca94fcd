"""Numbers as people read them. Standard library alone. Files have every digit; these are for pages, terminals and
sentences, and a report formats no number elsewhere."""

import math
from datetime import UTC, datetime
from typing import Any

NOTHING = "–"
SHARES = ("share", "0 to 1")
DIFFERENCE = "difference of shares"  # a unit; 0.12 is read as 12 points, since 12 % of a share would be less


def is_share(unit: str) -> bool:
    """Whether numbers of this unit lie between 0 and 1 and are read as per cent."""
    return unit in SHARES or unit.startswith("share of ")


def number(value: Any, digits: int = 2, *, signed: bool = False) -> str:
    """1,234.50; a dash where there is none, ∞ where it has no end. A zero has no sign."""
    if is_missing(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    rounded = f"{value:{'+' if signed else ''},.{digits}f}"
    return rounded if float(rounded.replace(",", "")) else rounded.lstrip("+-")


def percent(share: Any, digits: int = 1, *, signed: bool = False) -> str:
    """12.3 %, of 0.123."""
    return NOTHING if is_missing(share) else f"{number(100 * share, digits, signed=signed)} %"


def points(share: Any, digits: int = 1) -> str:
    """12.3 points, of a difference of 0.123 between two shares."""
    return NOTHING if is_missing(share) else f"{number(100 * share, digits)} points"


def integer(value: int | None) -> str:
    """1,234."""
    return NOTHING if value is None else f"{value:,}"


def money(cents: Any, currency: str = "") -> str:
    """2.50 USD, of 250 cents; without a separator, so that it can be typed into a form."""
    amount = NOTHING if cents is None else f"{cents / 100:.2f}"
    return f"{amount} {currency}" if currency else amount


def short(value: Any) -> str:
    """As many digits as tell: 0.05, 12, 1e-07. For settings, such as a threshold that the study file names."""
    return NOTHING if is_missing(value) else f"{value + 0:g}"


def significant(value: Any) -> str:
    """Four digits that tell: 0.1235, 12.35, 1,235. For numbers whose column or axis says nothing of digits."""
    if is_missing(value):
        return NOTHING
    return number(value, 0) if 9999.5 <= abs(value) < math.inf else f"{value + 0.0:.4g}"


def p_value(p: float | None) -> str:
    return NOTHING if is_missing(p) else "< 0.001" if p is not None and p < 0.001 else number(p, 3)


def counted(n: int, one: str, several: str = "") -> str:
    """1 person, 2 persons; or 2 people, where the plural is another word."""
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def duration(seconds: float | None) -> str:
    """40 s, 12 min, 2 h 10 min: as exact as it is worth reading."""
    if is_missing(seconds) or seconds is None:
        return NOTHING
    minutes = round(seconds) // 60
    if not minutes:
        return f"{round(seconds)} s"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"


def date_and_time(at: datetime) -> str:
    """28 November 2026, 15:04 UTC: as the pages write it."""
    at = at.astimezone(UTC)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def spaced(name: str) -> str:
    """epsilon greedy, of epsilon_greedy: a name of the code or of a file as people read it."""
    return name.replace("_", " ")


def in_unit(value: Any, unit: str = "", digits: int | None = None, *, signed: bool = False) -> str:
    """A number of this unit: a share as per cent and a difference of two in points, with 1 digit by default; others
    with 2. Of the unit itself it has the sign alone."""
    if is_share(unit):
        return percent(value, 1 if digits is None else digits, signed=signed)
    if unit == DIFFERENCE:
        return number(None if is_missing(value) else 100 * value, 1 if digits is None else digits, signed=signed)
    return number(value, 2 if digits is None else digits, signed=signed)


def is_missing(value: Any) -> bool:
    """None, or no number."""
    return value is None or (isinstance(value, float) and math.isnan(value))
