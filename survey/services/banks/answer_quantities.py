"""Numbers as people and models write them: with a decimal comma, in thousands, as a fraction, a power or in words, with
a unit, a currency or a percent sign. Uses only the standard library; exact, in fractions."""

import re
from dataclasses import dataclass
from fractions import Fraction

ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
WORDS = {word: value for value, word in enumerate((*ONES, *TEENS))} | {
    word: 10 * value
    for value, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
}
SCALES = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
PARTS = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4), "fourth": Fraction(1, 4)}
# A power beyond this has more digits than anything that a key could mean, and would cost the memory of a server.
LARGEST_POWER = 400
LONGEST_NUMBER = 60

CURRENCIES = {
    "$": "$",
    "us$": "$",
    "usd": "$",
    "dollar": "$",
    "\u20ac": "\u20ac",
    "eur": "\u20ac",
    "euro": "\u20ac",
    "\u00a3": "\u00a3",
    "gbp": "\u00a3",
    "pound": "\u00a3",
    "\u00a5": "\u00a5",
    "jpy": "\u00a5",
    "yen": "\u00a5",
    "\u20b9": "\u20b9",
    "inr": "\u20b9",
    "rupee": "\u20b9",
}
# Unit to what it measures and how many of that measure's first unit it is. Units are distinguished by case: mW, MW.
MEASURES: dict[str, dict[str, str]] = {
    "length": {"m": "1", "meter": "1", "metre": "1", "km": "1000", "kilometer": "1000", "kilometre": "1000",
               "cm": "0.01", "centimeter": "0.01", "centimetre": "0.01", "mm": "0.001", "millimeter": "0.001",
               "millimetre": "0.001", "mi": "1609.344", "mile": "1609.344", "ft": "0.3048", "foot": "0.3048",
               "feet": "0.3048", "inch": "0.0254", "inches": "0.0254", "yard": "0.9144"},
    "mass": {"g": "1", "gram": "1", "kg": "1000", "kilogram": "1000", "mg": "0.001", "milligram": "0.001",
             "t": "1000000", "ton": "1000000", "tonne": "1000000"},
    "time": {"s": "1", "sec": "1", "second": "1", "min": "60", "minute": "60", "h": "3600", "hr": "3600",
             "hour": "3600", "day": "86400", "week": "604800", "ms": "0.001", "millisecond": "0.001"},
    "volume": {"l": "1", "L": "1", "liter": "1", "litre": "1", "ml": "0.001", "mL": "0.001", "milliliter": "0.001",
               "millilitre": "0.001"},
    "money": {"cent": "1", "\u00a2": "1"},
}  # fmt: skip
UNITS = {unit: (measure, Fraction(size)) for measure, units in MEASURES.items() for unit, size in units.items()}

NO_UNITS = {"or", "and", "to", "not", "no", "but", "plus", "minus", "than", "maybe", "perhaps", "is", "was"}
VARIABLES = ("x", "y", "z", "n")  # "2x" is no number.

_SIGN = r"[+-] ?"
_CURRENCY = r"US\$|[$\u20ac\u00a3\u00a5\u20b9]"
_GROUPED = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}"
)
_SPACED = r"\d{1,3}(?: \d{3})+(?:[.,]\d+)?|\d{1,3}(?:'\d{3})+(?:[.,]\d+)?"
_PLAIN = r"\d+(?:[.,]\d+)?|\.\d+"
_WHOLE = rf"(?:{_GROUPED}|{_SPACED}|{_PLAIN})(?![\d]|[.,']\d)"
_POWER = r"(?:\^|\*\*) ?(?:\{ ?[+-]?\d+ ?\}|\( ?[+-]?\d+ ?\)|[+-]?\d+)"
_NUMBER = (
    rf"(?:\d+ \d+ ?/ ?\d+|(?:{_PLAIN}) ?/ ?\d+(?:[.,]\d+)?(?![\d]|[.,]\d| ?/ ?\d)|"  # A mixed number, a fraction.
    rf"(?:{_PLAIN})[eE][+-]?\d+(?!\w)|"
    rf"(?:(?:{_PLAIN}) ?(?:\*|x) ?)?10 ?{_POWER}|\d+ ?{_POWER}|{_WHOLE})"
)
_SCALE = r"(?: ?(?:hundred|thousand|million|billion|trillion|dozen)s?\b|[kK]\b)"
_UNIT = (
    r"(?: ?%| percent\b| per cent\b| ?\u00b0 ?[CF]?\b|-?[A-Za-z\u00b5\u00a2]+(?:/[A-Za-z]+|\^-?\d)?|"
    r" ?[$\u20ac\u00a3\u00a5\u20b9\u00a2])"
)
QUANTITY = re.compile(
    rf"(?<![\w.,^/])(?<![A-Za-z]-)(?P<sign>(?<![\w)]){_SIGN})?(?P<currency>{_CURRENCY})? ?"
    rf"(?P<inner>(?<=[$\u20ac\u00a3\u00a5]){_SIGN})?"
    rf"(?P<number>{_NUMBER})(?![\w]*\d)(?P<scale>{_SCALE})?(?P<unit>{_UNIT})?"
    r"(?P<next> [A-Za-z\u00b0\u00b5/]+(?:\^-?\d)?)?"
)
# Digits that stand in a number which cannot be read: an address 192.168.0.1, a run 1,5,2.
UNREAD = re.compile(r"(?<![A-Za-z])\d[\d.,':/_^]*")


@dataclass(frozen=True)
class Quantity:
    """A number with what it counts. `percent`: it is in hundredths. `unit`: a currency's sign, or a word."""

    value: Fraction
    percent: bool = False
    unit: str = ""

    def __str__(self) -> str:
        sign = "%" if self.percent else f" {self.unit}" if self.unit else ""
        return f"{self.value}{sign}"

    def is_same(self, key: "Quantity") -> bool:
        """Whether it says what the key says. Who leaves out the unit or the percent sign means the key's."""
        if self.percent != key.percent:
            bare, percent = (key, self) if self.percent else (self, key)
            means_percent = abs(percent.value) >= 1 and percent.value == bare.value
            return not bare.unit and (percent.value / 100 == bare.value or means_percent)
        if not key.unit or not self.unit or self.unit == key.unit:
            return self.value == key.value
        if self.unit in UNITS and key.unit in UNITS:
            (own, size), (wanted, its) = UNITS[self.unit], UNITS[key.unit]
            return own == wanted and self.value * size == key.value * its
        return False


def quantities_in(text: str) -> list[tuple[Quantity | None, int, int]]:
    """Each number of a text with its place; None where digits make no number."""
    result: list[tuple[Quantity | None, int, int]] = []
    place = 0
    while True:
        match = QUANTITY.search(text, place)
        unread = UNREAD.search(text, place)
        if unread is not None and (match is None or unread.start() < match.start("number")):
            if _is_part_of_a_word(text, unread.start()):
                place = unread.end()
                continue
            result.append((None, *unread.span()))
            place = unread.end()
            continue
        if match is None:
            return result
        end = max(match.end("number"), match.end("scale"))
        result.append((_quantity(match), match.start(), end))
        place = end


def _is_part_of_a_word(text: str, start: int) -> bool:
    """The 19 of COVID-19, the 2 of H2O: no number is stated."""
    before = text[:start]
    return bool(re.search(r"[A-Za-z_]-?$", before[-2:])) or before[-1:] == "^"


def quantity_of(text: str) -> Quantity | None:
    """The number that is the whole of a text, with its unit if any."""
    match = QUANTITY.match(text)
    if match is None:
        return None
    rest = text[max(match.end("number"), match.end("scale"), match.end("unit")) :].strip(" .")
    words = rest.split()
    if not rest:
        return _quantity(match)
    if (
        match["unit"] is None
        and len(words) <= 2
        and all(re.fullmatch(r"[A-Za-z\u00b0\u00b5/]+(?:\^-?\d)?", word) for word in words)
        and NO_UNITS.isdisjoint(word.casefold() for word in words)
    ):
        return _quantity(match)
    return None


def _quantity(match: re.Match[str]) -> Quantity | None:
    value = value_of(match["number"])
    if value is None or match["unit"] in VARIABLES:
        return None
    if "-" in (match["sign"] or "") or "-" in (match["inner"] or ""):
        value = -value
    if match["scale"]:
        scale = match["scale"].strip().casefold()
        value *= 1000 if scale == "k" else SCALES[scale.removesuffix("s")]
    unit = (match["unit"] or match["next"] or "").strip().lstrip("-")
    currency = CURRENCIES.get((match["currency"] or "").casefold(), "")
    if unit in ("%", "percent") or unit == "per cent":
        return Quantity(value, percent=True)
    return Quantity(value, unit=currency or unit_of(unit))


def unit_of(word: str) -> str:
    """A unit in one spelling: "dollars" is $, "kilometers" is kilometer."""
    small = word.casefold()
    for spelling in (small, small.removesuffix("s")):
        if spelling in CURRENCIES:
            return CURRENCIES[spelling]
    for spelling in (word, small, small.removesuffix("s")):
        if spelling in UNITS and (len(spelling) > 2 or spelling == word):
            return spelling
    return word if len(word) <= 3 else small.removesuffix("s")


def value_of(number: str) -> Fraction | None:
    """A number without sign and unit; None where it is too long, or divides by zero."""
    text = re.sub(r"[{}()]", "", number).replace("**", "^").replace("x", "*").strip()
    if len(text) > LONGEST_NUMBER:
        return None
    try:
        if "^" in text:
            front, _star, power = text.rpartition("*")
            base, _hat, exponent = power.partition("^")
            if abs(int(exponent)) > LARGEST_POWER or len(base.strip()) > 4 or (int(base) == 0 and int(exponent) < 0):
                return None
            return (_decimal(front) if front else Fraction(1)) * Fraction(int(base)) ** int(exponent)
        if match := re.fullmatch(r"(\d+) (\d+) ?/ ?(\d+)", text):
            whole, parts, size = (int(part) for part in match.groups())
            return whole + Fraction(parts, size)
        if "/" in text:
            above, _slash, below = text.partition("/")
            return _decimal(above) / _decimal(below)
        mantissa, _e, exponent = text.lower().partition("e")
        if exponent:
            return _decimal(mantissa) * Fraction(10) ** int(exponent) if abs(int(exponent)) <= LARGEST_POWER else None
        return _decimal(text)
    except (ValueError, ZeroDivisionError):
        return None


def _decimal(text: str) -> Fraction:
    """Digits with a decimal mark and marks of thousands. A comma before three digits parts thousands, "1,000", unless
    they begin with 0; any other single comma is a decimal mark, "1,5". Of two kinds of marks the last is decimal."""
    text = text.strip().replace(" ", "").replace("'", "")
    if "," in text and "." in text:
        decimal = max(text.rfind(","), text.rfind("."))
        whole, part = re.sub(r"[.,]", "", text[:decimal]), text[decimal + 1 :]
        return Fraction(f"{whole}.{part}")
    if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+|[1-9]\d?(,\d{2})+,\d{3}", text):
        return Fraction(text.replace(",", ""))
    if text.count(".") > 1:
        return Fraction(text.replace(".", ""))
    if text.count(",") > 1:
        raise ValueError(text)
    return Fraction(text.replace(",", "."))


_WORD = "|".join(sorted(WORDS, key=len, reverse=True))
_BIG = "|".join(SCALES)
_PART = "|".join(PARTS)
IN_WORDS = re.compile(
    rf"(?<![\w-])(?P<sign>minus |negative )?(?P<words>(?:(?:{_WORD}|an? (?=(?:{_BIG})\b)|{_BIG})(?:[ -]|,? and )?)+)"
    rf"(?:(?P<point>point(?: (?:{_WORD}))+))?"
    rf"(?P<half>(?<=and )a half\b)?(?P<part>(?:{_PART})s?\b)?(?![\w])|\b(?P<alone>(?:a )?half)\b"
)


def words_in(text: str) -> list[Fraction | None]:
    """Each number that a text has in words; None where words of numbers make no number ("two three")."""
    return [_said(match) for match in IN_WORDS.finditer(text.casefold())]


def _said(match: re.Match[str]) -> Fraction | None:
    if match["alone"]:
        return Fraction(1, 2)
    words = re.findall(rf"\b(?:{_WORD}|{_BIG}|an?)\b", match["words"])
    total, group, last = Fraction(0), Fraction(0), 1000
    for word in words:
        if word in ("a", "an"):
            group = Fraction(1)
        elif word in WORDS:
            small = WORDS[word]
            fits = (last == 1000) or (last >= 20 and small < 10 and last % 10 == 0)
            if not fits:
                return None
            group, last = group + small, small
        elif SCALES[word] <= 100:
            group, last = max(group, Fraction(1)) * SCALES[word], 1000
        else:
            total, group, last = total + max(group, Fraction(1)) * SCALES[word], Fraction(0), 1000
    value: Fraction = total + group
    if match["point"]:
        digits = [WORDS[word] for word in match["point"].split()[1:]]
        if any(digit > 9 for digit in digits):
            return None
        value += Fraction(int("".join(map(str, digits))), 10 ** len(digits))
    if match["half"]:
        value += Fraction(1, 2)
    if match["part"]:
        value *= PARTS[match["part"].removesuffix("s")] if match["part"] != "halves" else Fraction(1, 2)
    return -value if match["sign"] else value
