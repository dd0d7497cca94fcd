"""What the pages call the one who answers the questions: a model, a chatbot. Imports the file's base alone.

The forms are given whole, since their words change with article and case. The texts of the file may name them by
placeholders: `{answerer.the}` is "the chatbot", `{Answerer.the}` at the beginning of a sentence "The chatbot".
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from .base import AS_GIVEN, BY_LANGUAGE, FieldPath, Strict

FORMS = ("a", "the", "same", "another")
PLACEHOLDER = re.compile(r"(?<!\{)\{([Aa])nswerer\.([a-z_]*)\}")


def _one_line(text: str) -> str:
    if "{" in text or "\n" in text:
        raise ValueError('a few words on one line, such as "the chatbot"')
    return text


NameText = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_one_line), BY_LANGUAGE, AS_GIVEN]


class AnswererConfig(Strict):
    """The name in the forms that the pages need: "a chatbot", "the chatbot", "the same chatbot", "a different chatbot".
    In German all of them in the nominative."""

    a: NameText
    """At the first mention: `"a chatbot"`."""
    the: NameText
    """Afterwards: `"the chatbot"`."""
    same: NameText
    """`"the same chatbot"`."""
    another: NameText
    """`"a different chatbot"`."""

    def form(self, name: str, *, begins: bool = False) -> str:
        """One of `FORMS`; as the beginning of a sentence with a capital letter."""
        text = str(getattr(self, name))
        return text[:1].upper() + text[1:] if begins else text

    def named_in(self, value: Any) -> Any:
        """A file's values with all placeholders in its texts replaced."""
        if isinstance(value, str):
            return PLACEHOLDER.sub(lambda match: self.form(match[2], begins=match[1] == "A"), value)
        if isinstance(value, dict):
            return {key: self.named_in(inner) for key, inner in value.items()}
        return [self.named_in(inner) for inner in value] if isinstance(value, list) else value


def placeholders_in(value: Any, place: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """The placeholders in a file's values: where, and which form each names."""
    if isinstance(value, str):
        yield from ((place, match[2]) for match in PLACEHOLDER.finditer(value))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from placeholders_in(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from placeholders_in(inner, (*place, index))
