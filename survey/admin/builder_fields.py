"""The keys of a study file as fields of a form: which kind of box a key's type asks for, what stands in it, and what is
written back. Reads and writes the file's values, renders nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, PlainSerializer
from pydantic.fields import FieldInfo

from survey.figures.words import money
from survey.study_file import FieldPath, dotted
from survey.study_file.base import LANGUAGES
from survey.study_file.editing import EditableFile
from survey.study_file.meanings import in_plain_words

SHORT = 300  # A text that may be longer has a box of several lines.
LANGUAGE_NAMES = {"en": "English", "de": "German"}
# Keys that stand open although a file may leave them out: what nearly everybody decides.
OPEN = frozenset(
    {
        "title",
        "text",
        "welcome",
        "institution",
        "logo",
        "contact",
        "minutes",
        "items",
        "retention_until",
        "kind",
        "reward",
        "label",
    }
)
# What people call a key whose name in the file says too little; numbers in a place are left out.
LABELS: Mapping[FieldPath, str] = {
    ("slug",): "Short name, in addresses",
    ("seed",): "Seed of all random draws",
    ("bank",): "Bank of questions",
    ("blind",): "Blind: who had which condition stays hidden",
    ("stages", "sittings"): "People",
    ("stages", "design", "kind"): "Design",
    ("stages", "design", "trade_off"): "Trade-off: finding (0) or estimating (1)",
    ("stages", "opens"): "Opens",
    ("panel", "kind"): "Where people come from",
    ("panel", "reward"): "Pay of a person",
    ("panel", "completion_url"): "Where people go at the end",
    ("instrument",): "What is asked",
    ("instrument", "kind"): "Instrument",
    ("instrument", "options"): "How it is asked",
    ("data", "retention_until"): "Personal data is kept until",
    ("sitting", "items"): "Questions for each person",
    ("sitting",): "A person's sitting",
    ("questions",): "Which questions of the bank take part",
    ("texts",): "Words and languages",
    ("texts", "bank_language"): "Language of the bank's questions, if another",
    ("texts", "text_language"): "Language of your own texts, if another",
    ("texts", "institution"): "University or institution",
    ("conditions", "texts"): "What each level changes in the texts",
    ("conditions", "answerer"): "What each level calls the one who answers",
    ("conditions", "options"): "What each level changes in how it is asked",
    ("conditions", "per"): "Drawn for each",
}
LANGUAGES_AT: FieldPath = ("texts", "languages")


@dataclass(frozen=True)
class Box:
    """One box to type in: the name that is posted, and what stands in it."""

    name: str
    value: str
    language: str = ""

    @property
    def language_name(self) -> str:
        return LANGUAGE_NAMES.get(self.language, self.language)

    @property
    def rows(self) -> int:
        return min(14, max(2, sum(1 + len(line) // 60 for line in self.value.splitlines())))


@dataclass
class Field:
    """A key of the file. `kind`: line, text, lines (a list, one entry a line), number, money, date, choice, many
    (several of the choices), yes_no, scalar (a number or words), or fixed, which is shown and not changed here.
    `languages`: of a text; empty for others."""

    place: FieldPath
    kind: str
    value: Any
    meaning: str = ""
    default: Any = None
    choices: Sequence[str] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    languages: tuple[str, ...] = ()
    is_required: bool = False
    errors: list[str] = field(default_factory=list)
    typed: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return dotted(self.place)

    @property
    def label(self) -> str:
        return label_of(self.place)

    @property
    def help(self) -> str:
        words = in_plain_words(self.meaning)
        return words.replace("Cents ", "Money ", 1) if self.kind == "money" else words

    @property
    def is_open(self) -> bool:
        of_a_level = self.place[0] == "conditions" and "texts" in self.place
        return self.value is not None or self.is_required or of_a_level or self.place[-1] in OPEN

    @property
    def default_words(self) -> str:
        if self.default in (None, "", [], {}) or isinstance(self.default, BaseModel | list | dict):
            return ""
        return (
            {True: "yes", False: "no"}.get(self.default, "")
            if isinstance(self.default, bool)
            else self._shown(self.default)
        )

    @property
    def options(self) -> list[tuple[str, str, bool]]:
        """The choices: value, words, and whether it is chosen."""
        chosen = self.value if isinstance(self.value, list) else [self.boxes[0].value]
        values = dict.fromkeys([*self.choices, *(str(value) for value in chosen if value not in ("", None))])
        return [(value, self.words.get(value) or value.replace("_", " "), value in chosen) for value in values]

    @property
    def boxes(self) -> list[Box]:
        codes = self.languages or ("",)
        return [self._box(code, codes[0]) for code in codes]

    def _box(self, code: str, first: str) -> Box:
        name = f"{self.name}.{code}" if self.is_by_language else self.name
        if name in self.typed:
            return Box(name, self.typed[name], code)
        return Box(name, self._shown(in_language(self.value, code, first) if self.languages else self.value), code)

    @property
    def is_by_language(self) -> bool:
        return len(self.languages) > 1

    def _shown(self, value: Any) -> str:
        if value is None:
            return ""
        if self.kind == "fixed":
            return json.dumps(value, indent=1, ensure_ascii=False, default=str)
        if self.kind == "money" and isinstance(value, int):
            return money(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list):
            return "\n".join(map(str, value))
        return str(value).strip("\n")

    def read(self, posted: Mapping[str, Sequence[str]]) -> Any:
        """The key's value as it was posted; as in the file where nothing was. None: it is left out.

        Raises:
            ValueError: with what to write instead.
        """
        if self.kind == "fixed" or not all(box.name in posted for box in self.boxes):
            return self.value
        sent = [[value.replace("\r\n", "\n").strip() for value in posted[box.name]] for box in self.boxes]
        if self.kind == "many":
            chosen = [value for value in sent[0] if value]
            return chosen or None
        words = [values[-1] for values in sent]
        if self.kind == "lines":
            return self._read_lines(words)
        if self.languages:
            return self._read_text(words)
        return _read_one(self.kind, words[0], self.value) if words[0] else None

    def _read_text(self, words: Sequence[str]) -> Any:
        filled = {code: text for code, text in zip(self.languages, words, strict=True) if text}
        if not self.is_by_language and not isinstance(self.value, Mapping):
            return words[0] or None
        if isinstance(self.value, str) and set(filled) <= {self.languages[0]}:
            return filled.get(self.languages[0])
        return filled or None

    def _read_lines(self, words: Sequence[str]) -> Any:
        columns = [[line.strip() for line in text.split("\n") if line.strip()] for text in words]
        old = self.value or []
        if not self.languages:
            whole = [isinstance(entry, int) and not isinstance(entry, bool) for entry in old]
            number = self.choices == ("number",) or (bool(old) and all(whole))
            return [_read_one("number" if number else "line", line, 0) for line in columns[0]] or None
        filled = {code: column for code, column in zip(self.languages, columns, strict=True) if column}
        if not filled:
            return None
        if len({len(column) for column in filled.values()}) > 1:
            counts = ", ".join(f"{len(column)}" for column in filled.values())
            raise ValueError(f"Write the same number of lines in each language ({counts} are there).")
        entries: list[Any] = []
        for index, row in enumerate(zip(*filled.values(), strict=True)):
            before = old[index] if index < len(old) else None
            is_plain = set(filled) == {self.languages[0]} and not isinstance(before, Mapping)
            entries.append(row[0] if is_plain else dict(zip(filled, row, strict=True)))
        return entries

    def write(self, file: EditableFile, value: Any) -> None:
        """Write what differs, as small a part of the file as there is.

        Raises:
            NotEditable: the text cannot be changed there.
        """
        if self.place == LANGUAGES_AT:
            file.set(("texts", "language"), None)
        old, place = file.value(self.place), self.place
        if isinstance(value, list) and isinstance(old, list) and len(value) == len(old):
            for index, entry in enumerate(value):
                _write_text(file, (*place, index), entry)
        else:
            _write_text(file, place, value)


def label_of(place: FieldPath) -> str:
    named = tuple(part for part in place if isinstance(part, str))
    return LABELS.get(named) or named[-1].replace("_", " ").capitalize()


# Shapes of keys


@dataclass
class Shape:
    """What a key's type asks for: a kind of field, or a model, a table by name, or options that others check."""

    kind: str = "fixed"
    choices: Sequence[str] = ()
    is_text: bool = False
    model: Any = None
    is_list: bool = False
    is_optional: bool = False
    values: Any = None
    options: Any = None


PLAIN_KINDS: Mapping[Any, str] = {bool: "yes_no", int: "number", float: "number", date: "date", str: "line"}


def parts_of(annotation: Any) -> tuple[Any, list[Any]]:
    """The type itself, and what pydantic knows of it, however deep."""
    constraints: list[Any] = []
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        constraints += [
            part for extra in more for part in (extra.metadata if isinstance(extra, FieldInfo) else [extra])
        ]
    return annotation, constraints


def shape_of(annotation: Any, metadata: Sequence[Any] = ()) -> Shape:
    annotation, more = parts_of(annotation)
    constraints = [*metadata, *more]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        kinds = [part for part in parts if part is not NoneType]
        if len(kinds) > 1:
            inner = [shape_of(kind) for kind in kinds]
            return Shape("scalar" if all(part.kind in ("line", "number", "date") for part in inner) else "fixed")
        shape = shape_of(kinds[0], constraints)
        shape.is_optional = True
        return shape
    if origin is Literal:
        return Shape("choice", [str(part) for part in parts])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Shape(model=annotation)
    if origin in (list, tuple):
        entry = shape_of(parts[0])
        if entry.model is not None:
            return Shape(model=entry.model, is_list=True)
        if entry.values is not None:
            return Shape(values=entry.values, is_list=True)
        if entry.kind == "choice":
            return Shape("many", entry.choices)
        if entry.kind in ("line", "text", "number"):
            return Shape("lines", ("number",) if entry.kind == "number" else (), is_text=entry.is_text)
        return Shape()
    if origin is dict:
        return Shape(options=annotation) if parts[1] is Any else Shape(values=parts[1])
    kind = PLAIN_KINDS.get(annotation, "fixed")
    is_text = any(isinstance(rule, PlainSerializer) for rule in constraints)
    longest = next((rule.max_length for rule in constraints if hasattr(rule, "max_length")), 0)
    return Shape("text" if is_text and longest > SHORT else kind, is_text=is_text)


def fits(kind: str, raw: Any) -> bool:
    """Whether the file's value is one that the field can show."""
    if raw is None or kind == "fixed":
        return True
    if kind in ("lines", "many"):
        return isinstance(raw, list) and all(
            (isinstance(entry, str | int) and "\n" not in str(entry))
            or (isinstance(entry, Mapping) and codes_in(entry))
            for entry in raw
        )
    return not isinstance(raw, list) and (not isinstance(raw, Mapping) or bool(codes_in(raw)))


def kind_of_value(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        return "lines"
    return "scalar" if value is None else PLAIN_KINDS.get(type(value), "fixed")


def codes_in(raw: Any) -> list[str]:
    """The languages that a text, or a list of texts, is written in."""
    entries = raw if isinstance(raw, list) else [raw]
    codes = [code for entry in entries if isinstance(entry, Mapping) for code in entry]
    return list(dict.fromkeys(codes)) if all(code in LANGUAGES for code in codes) else []


def in_language(value: Any, code: str, first: str) -> Any:
    if isinstance(value, list):
        return [text for entry in value if (text := in_language(entry, code, first))]
    if isinstance(value, Mapping):
        return value.get(code)
    return value if code == first else None


def _read_one(kind: str, text: str, old: Any) -> Any:
    if kind == "yes_no":
        return text == "true"
    if kind == "date":
        try:
            return date.fromisoformat(text)
        except ValueError as exc:
            raise ValueError("Write a day as YEAR-MONTH-DAY, such as 2036-12-31.") from exc
    if kind == "money":
        try:
            cents = Decimal(text.replace(",", ".")) * 100
        except InvalidOperation as exc:
            raise ValueError("Write an amount such as 2.50.") from exc
        if not cents.is_finite() or cents != int(cents):
            raise ValueError("Write an amount with at most two digits behind the point, such as 2.50.")
        return int(cents)
    if kind in ("number", "scalar"):
        try:
            number = float(text.replace(",", "."))
            if number != number or number in (float("inf"), float("-inf")):
                raise ValueError(text)
        except ValueError as exc:
            if kind == "scalar":
                return text
            raise ValueError("Write a number, such as 12.") from exc
        if number == old and not isinstance(old, bool):
            return old
        return int(number) if number == int(number) and not isinstance(old, float) else number
    return text


def _write_text(file: EditableFile, place: FieldPath, value: Any) -> None:
    old = file.value(place)
    if isinstance(old, Mapping) and isinstance(value, Mapping) and set(old) == set(value):
        for code, text in value.items():
            file.set((*place, code), text)
    else:
        file.set(place, value)
