"""What all parts of the study file share: names, texts, and tables that refuse unknown keys. Imports pydantic alone.

A text is a string, or a table with a string for each language. Read from a file it is `Words`: a string in the file's
first language that knows its translations. Read inside `words_in(...)` it is a plain string in that language.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

# The keys from the top of the file down to the place. A list's entry is given by its number, from 0.
FieldPath = tuple[str | int, ...]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
# Every form of the pages has fields with these names; a check or question with such a name would be mixed up with them.
RESERVED = ("step", "screen", "csrfmiddlewaretoken", "consent")
# The languages of the pages' own words.
Language = Literal["en", "de"]
LANGUAGES: tuple[str, ...] = get_args(Language)


def dotted(place: FieldPath) -> str:
    """A place as people read it, entries of a list counted from 1: `stages.2.design`."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in place)


class WrongKey(ValueError):
    """Keys that are fine by themselves do not fit together. The file as a whole raises it and names one to change."""

    def __init__(self, place: FieldPath, message: str) -> None:
        super().__init__(f"{dotted(place)}: {message}")
        self.place = place
        self.message = message


class WrongKeys(ValueError):
    """Several rules between keys are broken: all of them at once."""

    def __init__(self, wrong_keys: "Sequence[WrongKey]") -> None:
        super().__init__("; ".join(map(str, wrong_keys)))
        self.found = tuple(wrong_keys)


@dataclass(frozen=True)
class Note:
    """Something to know before creating a study. `field` is empty where it is about the study as a whole."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def _not_reserved(name: str) -> str:
    if name in RESERVED or name.startswith("client_"):
        raise ValueError("this name is used by the pages themselves: choose another")
    return name


@dataclass(frozen=True)
class _Reading:
    """Which languages a file is being read in. `plain`: texts become plain strings in the first language."""

    languages: tuple[str, ...] = LANGUAGES
    plain: bool = False


_ANY = _Reading()
_reading: ContextVar[_Reading] = ContextVar("_reading", default=_ANY)


@contextmanager
def words_of(languages: tuple[str, ...]) -> Iterator[None]:
    """Read texts as `Words` in these languages, the file's first one first."""
    if _reading.get().plain:
        yield
        return
    token = _reading.set(_Reading(languages))
    try:
        yield
    finally:
        _reading.reset(token)


@contextmanager
def words_in(language: str) -> Iterator[None]:
    """Read texts as plain strings in this language, or in another one where the text has no words in this language."""
    token = _reading.set(_Reading((language,), plain=True))
    try:
        yield
    finally:
        _reading.reset(token)


def languages_being_read() -> tuple[str, ...]:
    """The languages that a text of the file may have, the file's first one first."""
    return _reading.get().languages


class Words(str):
    """A text in the file's first language. `by_language` has it in all that the file gives; empty for a bare string."""

    __slots__ = ("by_language",)
    by_language: Mapping[str, str]

    def __new__(cls, text: str, by_language: Mapping[str, str] | None = None) -> "Words":
        made = super().__new__(cls, text)
        made.by_language = dict(by_language or {})
        return made

    def __getnewargs__(self) -> tuple[str, dict[str, str]]:  # type: ignore[override]  # for copies and pickles
        return str(self), dict(self.by_language)


def _text(value: Any, handler: ValidatorFunctionWrapHandler) -> str:
    reading = _reading.get()
    content = value.by_language if isinstance(value, Words) and value.by_language else value
    if not isinstance(content, Mapping):
        text: str = handler(content)
        return str(text) if reading.plain else Words(text)
    if not content:
        raise ValueError('a text is a string, or a table such as { en = "...", de = "..." }')
    known = LANGUAGES if reading.plain else reading.languages
    if strangers := [str(code) for code in content if code not in known]:
        raise ValueError(
            f"{', '.join(strangers)} is not among the file's languages ({', '.join(known)}): see languages of [texts]"
        )
    texts: dict[str, str] = {}
    for code, words in content.items():
        try:
            texts[code] = handler(words)
        except ValidationError as exc:
            raise ValueError(f"{code}: {exc.errors()[0]['msg']}") from exc
    first = texts.get(reading.languages[0]) or next(iter(texts.values()))
    return first if reading.plain else Words(first, texts)


def _same_in_all_languages(value: Any, handler: ValidatorFunctionWrapHandler) -> str:
    """A bare string need not be translated: an address is the same everywhere."""
    text = _text(value, handler)
    return text if isinstance(text, Words) and text.by_language else str(text)


def _as_given(text: str) -> Any:
    if isinstance(text, Words):
        return dict(text.by_language) or str(text)
    return text


BY_LANGUAGE = WrapValidator(_text)
AS_GIVEN = PlainSerializer(_as_given)

FieldName = Annotated[Name, AfterValidator(_not_reserved)]
Text = Annotated[str, Field(min_length=1, max_length=20_000), BY_LANGUAGE, AS_GIVEN]
LongText = Annotated[str, Field(max_length=20_000), BY_LANGUAGE, AS_GIVEN]
HintText = Annotated[str, Field(max_length=2000), BY_LANGUAGE, AS_GIVEN]
TitleText = Annotated[str, Field(max_length=200), BY_LANGUAGE, AS_GIVEN]
StudyTitle = Annotated[str, Field(min_length=1, max_length=200), BY_LANGUAGE, AS_GIVEN]
Contact = Annotated[str, Field(max_length=300), WrapValidator(_same_in_all_languages), AS_GIVEN]
# A text of an instrument's example. A bare string need not be translated, since it may be a code such as "correct".
ExampleText = Annotated[str, Field(min_length=1, max_length=20_000), WrapValidator(_same_in_all_languages), AS_GIVEN]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
SEED_LIMIT = 2**53  # JSON keeps integers exactly up to here, and so do browsers.


class Strict(BaseModel):
    """Unknown keys are refused: otherwise a misspelt key would change a study without anybody noticing."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
