"""What is wrong with a study file, in our words: for the errors of pydantic and of Python's TOML parser. Imports the
standard library alone.

Each message says what to write. The field and the line are said by who shows the message.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from difflib import get_close_matches
from typing import Any

SHAPES = {
    r"^[a-z0-9]+(-[a-z0-9]+)*$": ("small letters, digits and single hyphens between them", "-"),
    r"^[a-z][a-z0-9_]{0,39}$": ("small letters, digits and _, a letter first, at most 40", "_"),
    r"^[A-Za-z][A-Za-z0-9_-]{0,39}$": ("letters, digits, - and _, a letter first, at most 40", "_"),
    r"^[A-Za-z0-9_-]+(@[1-9][0-9]*)?$": ("a bank's name (letters, digits, - and _), or NAME@VERSION", "-"),
}
LANGUAGE = "the code of a language, such as en, de or zh-Hans"
# A date as people write it, in whichever order.
WRITTEN_DATE = re.compile(r"^\s*[\"']?(\d{1,4})([-./])(\d{1,2})\2(\d{1,4})\b")
A_DATE = "write a date as YEAR-MONTH-DAY, such as 2030-01-31"


def near(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; empty where none is near."""
    by_plain = {name.casefold().replace("-", "_"): name for name in known}
    matches = get_close_matches(word.casefold().replace("-", "_"), by_plain, 1, 0.7)
    return by_plain[matches[0]] if matches else ""


def with_hint(word: str, known: Iterable[str], rest: str) -> str:
    """The rest of a message, behind a question with the known word that was probably meant, where one is near."""
    suggestion = near(word, known)
    if not suggestion:
        return rest
    # A name at the beginning is kept as it is written.
    begins = rest.split(" ")[0] in ("the", "there", "choose", "check")
    return f'did you mean "{suggestion}"? {rest[0].upper() if begins else rest[0]}{rest[1:]}'


def unknown_key(key: str, known: Iterable[str], *, what: str = "key", where: str = "the keys here are") -> str:
    names = sorted(known)
    listed = with_hint(key, names, f"{where} {', '.join(names) or 'none'}")
    return f"{f'unknown {what}'.strip()}; {listed}"


# Of values


def message_of(error: Mapping[str, Any]) -> str | None:
    """What to write instead; None where the error's own message says it."""
    say = WORDS.get(error["type"])
    return say(error.get("input"), error.get("ctx", {})) if say else None


def _shape(value: Any, ctx: Mapping[str, Any]) -> str:
    shape = SHAPES.get(ctx["pattern"])
    if shape is None:
        return f"write {LANGUAGE}" if "[a-z]{2,3}" in ctx["pattern"] else "has characters that are not allowed here"
    words, mark = shape
    better = _in_shape(value, mark) if isinstance(value, str) else ""
    return f"write {words}" + (f', such as "{better}"' if better else "")


def _in_shape(text: str, mark: str) -> str:
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    made = re.sub(r"[^a-z0-9]+", mark, plain).strip(mark)
    return made[:40] if mark == "-" else re.sub(r"^[^a-z]+", "", made)[:40]


def _whole_number(value: Any, _ctx: Mapping[str, Any]) -> str:
    if isinstance(value, bool):
        return "write a whole number, not true or false"
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value.strip()):
        return "write the number without quotes"
    return "write a whole number, without quotes"


def _choice(value: Any, ctx: Mapping[str, Any]) -> str:
    known = re.findall(r"'([^']*)'", ctx["expected"])
    return with_hint(str(value), known, f"choose one of {', '.join(known) or ctx['expected']}")


def _date(value: Any, _ctx: Mapping[str, Any]) -> str:
    return date_words(value if isinstance(value, str) else "")


def date_words(text: str) -> str:
    """What to write instead of a date in another form, or of one that does not exist."""
    match = WRITTEN_DATE.match(text)
    if match is None:
        return A_DATE
    first, second, third = int(match[1]), int(match[3]), int(match[4])
    year, month, day = (first, second, third) if len(match[1]) == 4 else (third, second, first)
    try:
        better = date(year, month, day).isoformat()
    except ValueError:
        return f"there is no such day: {A_DATE}"
    return f"write a date as YEAR-MONTH-DAY: {better}"


def _entries(word: str) -> Callable[[Any, Mapping[str, Any]], str]:
    def say(_given: Any, ctx: Mapping[str, Any]) -> str:
        limit = ctx.get("min_length", ctx.get("max_length"))
        return (
            f"has {ctx.get('actual_length')} entries; {word} {limit} are needed"
            if word == "at least"
            else (f"has {ctx.get('actual_length')} entries; {word} {limit} are allowed")
        )

    return say


def _too_long(value: Any, ctx: Mapping[str, Any]) -> str:
    return f"has {len(value):,} characters; at most {ctx['max_length']:,} are allowed: shorten it"


def _says(message: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda _given, ctx: message.format(**ctx)


WORDS: Mapping[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "string_pattern_mismatch": _shape,
    "string_too_short": _says("is empty or too short: write at least {min_length} characters"),
    "string_too_long": _too_long,
    "string_type": _says("write a text in quotes"),
    "int_type": _whole_number,
    "int_parsing": _whole_number,
    "int_from_float": _says("write a whole number, without a decimal point"),
    "int_parsing_size": _says("this number is too large"),
    "float_type": _says("write a number, without quotes"),
    "float_parsing": _says("write a number, without quotes"),
    "finite_number": _says("write a number, not inf or nan"),
    "bool_type": _says("write true or false, without quotes"),
    "bool_parsing": _says("write true or false, without quotes"),
    "greater_than_equal": _says("must be {ge:g} or more"),
    "greater_than": _says("must be more than {gt:g}"),
    "less_than_equal": _says("must be at most {le:g}"),
    "less_than": _says("must be less than {lt:g}"),
    "literal_error": _choice,
    "date_type": _date,
    "date_parsing": _date,
    "date_from_datetime_parsing": _date,
    "date_from_datetime_inexact": _says("write a date without a time, such as 2030-01-31"),
    "list_type": _says("write a list in square brackets: [...]"),
    "dict_type": _says("write a table, with a key and a value on each line"),
    "model_type": _says("write a table, with a key and a value on each line"),
    "model_attributes_type": _says("write a table, with a key and a value on each line"),
    "too_short": _entries("at least"),
    "too_long": _entries("at most"),
}


# Of TOML


VALUE = re.compile(r"^\s*[^=#\[\]]+?=\s*(.*)$")
CURLY = "“”„‟«»‘’‚"
# By what Python's parser says: what to do.
PARSER_SAYS = (
    (r"Expected '=' after a key", "a key is followed by = and its value"),
    (
        r"Invalid initial character for a key part",
        "a key has no name, or one with a character that needs quotes",
    ),
    (r"Unterminated string|Unclosed string", "a text has no closing quotes"),
    (
        r"Illegal character '\\n'",
        "a text has no closing quotes on its line: several lines need three quotes",
    ),
    (r"Illegal character", "a character that cannot be seen stands here: type the line again"),
    (r"Unclosed array", "a list has no closing ]"),
    (r"Unclosed inline table|inline table", "a table in braces { } is not closed, or breaks its line"),
    (r"Expected '\]' at the end of a table|Expected '\]\]'", "the name of a table has no closing ] or ]]"),
    (
        r"Unescaped '\\'|Invalid hex|Escaped character",
        "a \\ stands in a text: write it twice, or use single quotes",
    ),
    (
        r"Cannot declare \((.*?),?\) twice",
        "this table is there already: keep one, or write [[...]] for one more entry",
    ),
    (r"Cannot overwrite a value|Duplicate inline table key", "this key stands in the table already: keep one"),
    (r"Cannot mutate immutable|Cannot redefine", "this table was written in another way above: keep one of the two"),
    (r"Expected newline or end of document", "something is left over behind the value: a text stands in quotes"),
    (r"Invalid date or datetime", f"there is no such day: {A_DATE}"),
    (r"Invalid statement", "this is no key and no table: a comment begins with #"),
)


def toml_words(message: str, line: str) -> str:
    """What is wrong with a line that is no TOML.

    Args:
        message: the parser's.
        line: the text of the line.
    """
    value = match[1].strip() if (match := VALUE.match(line)) else ""
    if any(mark in value[:1] for mark in CURLY):
        return 'curly quotes stand around the text: write straight ones, "..."'
    if WRITTEN_DATE.match(value) and value[:1].isdigit():
        return f"{date_words(value)}, without quotes" if "no such day" not in date_words(value) else date_words(value)
    if re.match(r"[^\W\d]", value) and not re.match(r"(true|false|inf|nan)\b", value):
        if value.casefold().rstrip(",") in ("true", "false"):
            return "write true or false in small letters"
        return f'a text stands in quotes: write "{value.partition("#")[0].strip()[:60]}"'
    if match and not value:
        return "the value is missing behind the ="
    for pattern, words in PARSER_SAYS:
        if re.search(pattern, message):
            return words
    return f"this line cannot be read ({message[:80]})"
