"""Values of the file in its texts: `{items}` is what `[sitting]` says. Imports the file's base alone.

They stand in the first page's words, in the blocks' texts and in the texts of conditions. `{{` and `}}` are single
braces there.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .base import FieldPath, Words

ITEMS, MINUTES, REWARD, UNTIL = "items", "minutes", "reward", "retention_until"
VALUES = (ITEMS, MINUTES, REWARD, UNTIL)
IN_BRACES = re.compile(r"\{\{|\}\}|\{([^{}\n]{0,60})\}")
OF_THE_ANSWERER = re.compile(r"[Aa]nswerer\.")


def with_values(text: str, values: Mapping[str, str]) -> str:
    """The text with these values in place of their names. A name without a value stays as it stands."""

    def said(match: re.Match[str]) -> str:
        name = match[1]
        return match[0][0] if name is None else values.get(name, match[0])

    return IN_BRACES.sub(said, text) if "{" in text or "}" in text else text


def names_in(text: str) -> list[str]:
    """The names in braces, but for those of the answerer, which `answerer.py` checks."""
    return [name for name in IN_BRACES.findall(text) if name and not OF_THE_ANSWERER.match(name)]


def money_for_people(cents: int, currency: str, language: str) -> str:
    """2.50 USD; in German 2,50 USD."""
    amount = f"{cents / 100:.2f}"
    return f"{amount.replace('.', ',') if language == 'de' else amount} {currency}"


def texts_with_values(raw: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """The texts of a file's values that may name values of it: where each stands, in every language."""
    texts = raw.get("texts")
    if isinstance(texts, Mapping):
        yield from _in_languages(("texts", "welcome"), texts.get("welcome"))
    for index, block in enumerate(_tables(raw.get("blocks"))):
        yield from _in_languages(("blocks", index, "text"), block.get("text"))
    for index, condition in enumerate(_tables(raw.get("conditions"))):
        by_level = condition.get("texts")
        for level, of_blocks in by_level.items() if isinstance(by_level, Mapping) else ():
            for name, text in of_blocks.items() if isinstance(of_blocks, Mapping) else ():
                yield from _in_languages(("conditions", index, "texts", str(level), str(name)), text)


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [table if isinstance(table, Mapping) else {} for table in value] if isinstance(value, list) else []


def _in_languages(place: FieldPath, value: Any) -> Iterator[tuple[FieldPath, str]]:
    content = value.by_language or str(value) if isinstance(value, Words) else value
    for text in content.values() if isinstance(content, Mapping) else [content]:
        if isinstance(text, str):
            yield place, text
