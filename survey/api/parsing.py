"""What a body may be: JSON with few levels, and names that an error can quote. Imports only rest_framework."""

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
            body = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise _too_deep() from None
        except ParseError:
            raise ParseError("The body is not JSON in UTF-8, or a number in it is too large.") from None
        _refuse_odd(body, DEEPEST)
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
