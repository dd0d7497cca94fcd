"""What a body may be: JSON with few levels, and names that an error can quote. Imports only rest_framework."""

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

DEEPEST = 8  # No documented body has more than three levels.


class PlainJSONParser(JSONParser):
    """Standard JSON. What Python's parser fails on is refused with an error of our own."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            text = stream.read().decode((parser_context or {}).get("encoding") or "utf-8")
            body = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_said_once)
        except RecursionError:
            raise _too_deep() from None
        except (LookupError, ValueError):  # LookupError: an encoding that is none of texts, by the request's own word.
            raise ParseError("The body is not JSON in UTF-8, or a number in it is too large.") from None
        _refuse_odd(body, DEEPEST)
        return body


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON.


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """
    Raises:
        ParseError: an object gives one name two different values: nobody can say which of them was meant.
    """
    body: dict[str, Any] = {}
    for name, value in pairs:
        if name in body and body[name] != value:
            raise ParseError("A name stands twice in the body, with different values.")
        body[name] = value
    return body


def _refuse_odd(value: Any, levels: int) -> None:
    """
    Raises:
        ParseError: too many levels, or a name with half a surrogate pair, which no answer could quote.
    """
    if not isinstance(value, dict | list):
        return
    if not levels:
        raise _too_deep()
    if isinstance(value, dict):
        for name in value:
            try:
                name.encode()
            except UnicodeEncodeError:
                raise ParseError("A name in the body holds a character that is none.") from None
    for inner in value.values() if isinstance(value, dict) else value:
        _refuse_odd(inner, levels - 1)


def _too_deep() -> ParseError:
    return ParseError("The body has too many levels.")
