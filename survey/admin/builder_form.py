"""A study file as a form. Which fields there are follows from the file's models: a field's kind from the key's type,
its words from the text below the key. Reads posted values and writes them into the file's text; renders nothing.

A field is called by its place as the checker says it, counted from 1: `blocks.4.text`. Only what differs from the file
is written, so that a form that comes back as it went leaves every byte alone.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic.fields import FieldInfo

from predictors.errors import PredictorError
from predictors.registry import default_params
from predictors.registry import names as predictor_names
from survey.contracts import instruments, panels
from survey.services.studies import translating
from survey.study_file import (
    CANDIDATES,
    DESIGNS,
    PANEL_KEYS,
    BlockConfig,
    CandidatesConfig,
    DesignConfig,
    FieldConfig,
    FieldPath,
    PanelConfig,
    StudyConfig,
    TextsConfig,
    design_defaults,
    dotted,
    languages_of,
)
from survey.study_file.base import LANGUAGES
from survey.study_file.blocks import KEYS_OF_BLOCKS
from survey.study_file.editing import EditableFile, value_at
from survey.study_file.fields import KEYS_OF
from survey.study_file.meanings import in_plain_words, meanings_of
from survey.study_file.ready import READY_FORMS

from .builder_fields import (
    LANGUAGE_NAMES,
    LANGUAGES_AT,
    Field,
    codes_in,
    fits,
    in_language,
    kind_of_value,
    label_of,
    parts_of,
    shape_of,
)

# The cards of the page in their order, each with its keys at the top of the file. The last has what no card names.
CARDS = (
    ("study", "The study", ("slug", "title", "bank", "seed", "blind")),
    ("first-page", "First page", ("texts",)),
    ("way", "What people go through", ("blocks",)),
    ("items", "Questions and how they are asked", ("instrument", "sitting", "questions")),
    ("conditions", "Conditions", ("conditions",)),
    ("stages", "Stages", ("stages", "candidates", "roles", "predictor", "estimates", "waves")),
    ("people", "People and pay", ("panel", "quotas")),
    ("data", "Data", ("data", "flags", "exclusions", "models")),
)
LEVELS_AT = 3  # How deep in [[conditions]] a table has an entry for each level.
# What a table is called, by what in it.
NAMED_BY = ("title", "name", "factor", "filter_id")
WRITE = re.compile(r'write "([^"]+)"')
UNTRANSLATED = re.compile(r'has no text in "(\w+)"')  # As the checker says it; it goes on with how the file says it.


@dataclass
class Group:
    """A table of the file, or a list of them. `entry`: whether it can be moved and removed; `adds`: the orders to
    add something, each with its words."""

    place: FieldPath
    title: str
    help: str = ""
    fields: list[Field] = field(default_factory=list)
    groups: list["Group"] = field(default_factory=list)
    adds: list[tuple[str, str]] = field(default_factory=list)
    entry: bool = False
    is_optional: bool = False
    is_first: bool = False
    is_last: bool = False
    is_there: bool = True
    errors: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return dotted(self.place)

    @property
    def open_fields(self) -> list[Field]:
        return [box_field for box_field in self.fields if box_field.is_open or box_field.errors]

    @property
    def more_fields(self) -> list[Field]:
        return [box_field for box_field in self.fields if not (box_field.is_open or box_field.errors)]

    @property
    def open_groups(self) -> list["Group"]:
        return [group for group in self.groups if group.is_open]

    @property
    def more_groups(self) -> list["Group"]:
        return [group for group in self.groups if not (group.is_open or group.is_fold)]

    @property
    def folds(self) -> list["Group"]:
        """Tables that are folded by themselves, under their titles."""
        return [group for group in self.groups if group.is_fold and not group.is_open]

    @property
    def is_open(self) -> bool:
        is_a_level = self.place[:1] == ("conditions",) and len(self.place) > LEVELS_AT
        return self.is_there or self.has_errors or is_a_level

    @property
    def is_fold(self) -> bool:
        return self.place[:1] == ("conditions",) and len(self.place) == LEVELS_AT

    @property
    def alone(self) -> "Group":
        """Its fields without the tables in it."""
        return Group(self.place, self.title, fields=self.fields)

    @property
    def has_more(self) -> int:
        return len(self.more_fields) + len(self.more_groups)

    @property
    def has_errors(self) -> bool:
        return bool(self.errors) or any(box_field.errors for box_field in self.all_fields())

    @property
    def block(self) -> str:
        """Which page of the respondents shows it: a block's number, or "first"."""
        if self.place[:1] == ("blocks",) and len(self.place) > 1:
            return str(self.place[1])
        return {"texts": "first", "instrument": "items", "sitting": "items"}.get(
            str(self.place[0]) if self.place else "", ""
        )

    def all_fields(self) -> Iterator[Field]:
        yield from self.fields
        for group in self.groups:
            yield from group.all_fields()

    def all_groups(self) -> Iterator["Group"]:
        yield self
        for group in self.groups:
            yield from group.all_groups()

    def field(self, *names: str) -> Field | None:
        return next((box_field for box_field in self.all_fields() if box_field.place == (*self.place, *names)), None)


@dataclass
class StageRow:
    """A stage as a row of a table: the people, the design and its trade-off; and all else."""

    group: Group
    people: Field
    design: Field | None
    parameters: list[Field]


class BuilderForm:
    """The whole file as a form.

    Args:
        banks: the names that the reader can choose from; `logos` likewise.
    """

    def __init__(self, file: EditableFile, *, banks: Sequence[str] = (), logos: Sequence[str] = ()) -> None:
        self.file = file
        self.languages = languages_of(file.data)
        self._choices: Mapping[FieldPath, Sequence[str]] = {
            ("bank",): banks,
            ("texts", "logo"): logos,
            ("instrument", "kind"): instruments.names(),
            ("panel", "kind"): panels.names(),
            ("predictor", "name"): predictor_names(),
        }
        self._words: Mapping[FieldPath, Mapping[str, str]] = {
            ("instrument", "kind"): {name: instruments.kind(name).title for name in instruments.names()},
            ("panel", "kind"): {name: f"{name}: {panels.find(name).title}" for name in panels.names()},
        }
        whole = self._table(StudyConfig, (), "")
        self.errors: list[str] = []
        self.cards = self._in_cards(whole)
        self.whole = whole

    def _in_cards(self, whole: Group) -> list[Group]:
        named = {key: place for place, (_name, _title, keys) in enumerate(CARDS) for key in keys}
        cards = [Group((), title, help=name) for name, title, _keys in CARDS]
        for box_field in whole.fields:
            cards[named.get(str(box_field.place[0]), -1)].fields.append(box_field)
        for group in whole.groups:
            cards[named.get(str(group.place[0]), -1)].groups.append(group)
        order = {key: number for _name, _title, keys in CARDS for number, key in enumerate(keys)}
        for card in cards:
            card.groups.sort(key=lambda group: order.get(str(group.place[0]), 99))
        return cards

    @property
    def stages(self) -> list[StageRow]:
        """The stages as the rows of a table; what stands in a row is taken out of its group."""
        listed = next((group for group in self.whole.groups if group.place == ("stages",)), None)
        rows = []
        for group in listed.groups if listed is not None else ():
            people, design = group.field("sittings"), group.field("design", "kind")
            own = next((inner for inner in group.groups if inner.place[-1] == "design"), None)
            parameters = [box_field for box_field in own.fields if box_field is not design] if own is not None else []
            if people is not None:
                rest = Group(
                    group.place,
                    group.title,
                    fields=[box_field for box_field in group.fields if box_field is not people],
                    groups=[inner for inner in group.groups if inner is not own],
                    entry=True,
                    is_first=group.is_first,
                    is_last=group.is_last,
                    errors=[*group.errors, *(own.errors if own is not None else [])],
                )
                rows.append(StageRow(rest, people, design, parameters))
        return rows

    @property
    def factors(self) -> list[tuple[str, list[str]]]:
        """The factors with their levels, as far as they can be read."""
        tables = [table for table in self.file.data.get("conditions") or () if isinstance(table, Mapping)]
        return [
            (str(table.get("factor")), [str(level) for level in table["levels"]])
            for table in tables
            if isinstance(table.get("levels"), list)
        ]

    def fields(self) -> Iterator[Field]:
        return self.whole.all_fields()

    # Reading and writing

    def apply(self, posted: Any) -> dict[str, tuple[str, Mapping[str, str]]]:
        """Write into the file what was posted and differs from it. Returns by field what could not be written: why, and
        what was typed.

        Args:
            posted: a QueryDict.
        """
        sent = dict(posted.lists())
        refused: dict[str, tuple[str, Mapping[str, str]]] = {}
        turned = []  # Tables that are of another kind now.
        for box_field in list(self.fields()):
            try:
                value = box_field.read(sent)
                if value != box_field.value:
                    box_field.write(self.file, value)
                    turned += [box_field.place[:-1]] if box_field.place[-1] == "kind" else []
            except ValueError as exc:  # NotEditable is one.
                typed = {box.name: sent[box.name][-1] for box in box_field.boxes if box.name in sent}
                refused[box_field.name] = (str(exc), typed)
        for place in turned:
            self._leave_out_what_it_no_longer_has(place)
        return refused

    def _leave_out_what_it_no_longer_has(self, place: FieldPath) -> None:
        """Remove the keys that mean nothing for a table's new kind: the file would be refused for them."""
        table = self.file.value(place)
        if isinstance(table, Mapping):
            for key in sorted(_not_of_its_kind(_model_at(place), table) & table.keys()):
                self.file.remove((*place, key))

    def show_errors(
        self, refused: Mapping[str, tuple[str, Mapping[str, str]]], found: Sequence[tuple[str, str]]
    ) -> None:
        """Put each problem beside its field; what belongs to none of them is in `errors`.

        Args:
            refused: as `apply` returned it.
            found: what the checker says: the place as it writes it, and the message.
        """
        fields = {box_field.name: box_field for box_field in self.fields()}
        groups = {group.name: group for group in self.whole.all_groups() if group.place}
        for name, (message, typed) in refused.items():
            if name in fields:
                fields[name].errors.append(message)
                fields[name].typed = typed
        for name, message in found:
            place = name
            while place and place not in fields and place not in groups:
                place = place.rpartition(".")[0]
            holder: Field | Group | None = fields.get(place) or groups.get(place)
            if holder is None or not place:
                self.errors.append(f"{name}: {message}")
            elif missing := UNTRANSLATED.match(message):
                code = missing[1]
                holder.errors.append(f"There is no {LANGUAGE_NAMES.get(code, code)} text yet.")
            elif message not in holder.errors:
                holder.errors.append(message)

    def act(self, order: str) -> str:
        """Move, remove or add an entry: `up:blocks.3`, `down:blocks.3`, `to:blocks.3:1`, `remove:blocks.3`,
        `add:blocks:form`. Returns the name of what to look at next.

        Raises:
            ValueError: the form has no such order.
        """
        what, _colon, rest = order.partition(":")
        name, _colon, more = rest.partition(":")
        group = next((group for group in self.whole.all_groups() if group.place and group.name == name), None)
        if group is None or (what != "add" and not (group.entry or group.is_optional)):
            raise ValueError("This part is not in the file any more.")
        if what == "add":
            return self._add(group, more)
        if what == "remove":
            self.file.remove(group.place)
            return dotted(group.place[:-1])
        if not group.entry:
            raise ValueError("This part cannot be moved.")
        index, last = int(group.place[-1]), len(value_at(self.file.data, group.place[:-1])) - 1
        wanted = {"up": index - 1, "down": index + 1}.get(what, int(more) - 1 if more.isdecimal() else index)
        to = min(max(wanted, 0), last)
        self.file.move(group.place, to)
        return dotted((*group.place[:-1], to))

    def _add(self, group: Group, variant: str) -> str:
        if (f"add:{group.name}:{variant}".rstrip(":")) not in {order for order, _words in group.adds}:
            raise ValueError("This cannot be added here.")
        model = _model_at(group.place)
        entry = self._starter(model, group.place, variant)
        if group.is_optional:
            self.file.add_table(group.place, entry)
            return group.name
        entries = self.file.value(group.place) or []
        index = len(entries)
        if group.place == ("blocks",):
            kinds = [block.get("kind") for block in entries]
            index = kinds.index("items") if variant in BEFORE_ITEMS and "items" in kinds else max(0, len(entries) - 1)
        if group.place == ("stages",) and entries:  # The last stage need not train; one before another must.
            self.file.set(("stages", index - 1, "train"), None)
        self.file.insert((*group.place, index), entry)
        return dotted((*group.place, index))

    def _starter(self, model: Any, place: FieldPath, variant: str) -> dict[str, Any]:
        """What a new entry says before anybody has changed it: the least that the file accepts."""
        entry: dict[str, Any] = {}
        for name, info in model.model_fields.items():
            if info.is_required():
                entry[name] = self._sample(name, info, place)
        if model is BlockConfig:
            kind, _colon, ready = variant.partition("-")
            entry["kind"] = kind
            if ready:
                return {**entry, "ready": ready}
            if kind in ("instructions", "debriefing"):
                entry |= {"title": self._text("A heading"), "text": self._text("Write here what people read.")}
            if kind == "checks":
                entry["checks"] = [self._starter(_model_at(("blocks", 0, "checks")), ("blocks", 0, "checks"), "")]
            if kind == "form":
                entry |= {"name": self._free_name("form")}
                entry["fields"] = [self._starter(FieldConfig, ("blocks", 0, "fields"), "")]
            if kind == "practice":
                entry["example"] = self._practice_example()
        if model is FieldConfig:
            entry |= {"kind": "choice", "options": [self._text("Yes"), self._text("No")]}
        if place == ("stages",):
            before = (self.file.value(place) or [{}])[-1]
            entry = {key: value for key, value in before.items() if key not in ("train", "pilot")} or {"sittings": 30}
        return entry

    def _sample(self, name: str, info: FieldInfo, place: FieldPath) -> Any:
        shape = shape_of(info.annotation, info.metadata)
        if name in ("name", "factor"):
            return self._free_name(str(place[-1]).rstrip("s"))
        if shape.kind == "choice":
            return shape.choices[0]
        if shape.kind == "number":
            return 30 if name in ("sittings", "after_days") else 1
        if shape.kind == "lines":
            return [self._text("First answer"), self._text("Second answer")] if shape.is_text else ["one", "two"]
        return self._text("Please choose “First answer” here.") if shape.is_text else name

    def _text(self, words: str) -> Any:
        return dict.fromkeys(self.languages, words) if len(self.languages) > 1 else words

    def _free_name(self, stem: str) -> str:
        taken = json.dumps(self.file.data, default=str)
        number = 1
        while f'"{stem}_{number}"' in taken:
            number += 1
        return f"{stem}_{number}"

    def _practice_names(self) -> list[str]:
        return list(self._practice_example())

    def _practice_example(self) -> dict[str, str]:
        """The texts of the instrument's practice, each with the word that it asks for where it takes but some."""
        try:
            instrument = instruments.kind(str(value_at(self.file.data, ("instrument", "kind")) or "belief_update"))
        except instruments.InstrumentMissing:
            return {}
        practice = instrument(None).practice
        if practice is None:
            return {}
        example = dict.fromkeys((name for name, _message in practice.problems({})), "Write here what people see.")
        wanted = {name: WRITE.search(message) for name, message in practice.problems(example)}
        return {**example, **{name: match[1] for name, match in wanted.items() if match and name in example}}

    # What the models say

    def _table(self, model: Any, place: FieldPath, meaning: str, *, only: Sequence[str] | None = None) -> Group:
        raw = self.file.value(place) if place else self.file.data
        group = Group(place, _title(place, raw), in_plain_words(meaning), is_there=raw is not None)
        known, meanings = raw if isinstance(raw, Mapping) else {}, meanings_of(model)
        left_out = _not_of_its_kind(model, known)
        for name, info in model.model_fields.items():
            if model is BlockConfig and name == "kind":
                continue  # It is in the title: another kind is another block.
            if (only is None or name in only or name in known) and (name not in left_out or name in known):
                self._put(group, (*place, name), info.annotation, info.metadata, meanings.get(name, ""), info)
        for name in known:
            if name not in model.model_fields:
                group.fields.append(Field((*place, name), "fixed", known[name]))
        if model is TextsConfig:
            group.fields = [
                box_field for box_field in group.fields if box_field.place[-1] not in ("language", "languages")
            ]
            group.fields.append(
                Field(
                    LANGUAGES_AT,
                    "many",
                    list(self.languages),
                    "Each text has a box for each of them.",
                    choices=LANGUAGES,
                    words={code: self._language_in_words(code) for code in LANGUAGES},
                )
            )
        return group

    def _language_in_words(self, code: str) -> str:
        """Of a language that the file does not have, what choosing it leaves to write."""
        name = LANGUAGE_NAMES[code]
        if code in self.languages:
            return name
        known = [bool(words) for _place, words in translating.texts_without(self.file, code)]
        if all(known):
            return f"{name} (its texts are there)"
        return f"{name} (of {len(known)} texts {sum(known)} are there; you write the others)"

    def _put(
        self,
        group: Group,
        place: FieldPath,
        annotation: Any,
        metadata: Sequence[Any],
        meaning: str,
        info: FieldInfo | None,
    ) -> None:
        """Add the field or the group of a key."""
        shape, raw = shape_of(annotation, metadata), self.file.value(place)
        if shape.options is not None:
            group.groups.append(self._options(place, meaning))
        elif shape.model is not None and shape.is_list:
            group.groups.append(self._list(shape.model, place, raw, meaning))
        elif shape.model is not None:
            inner = self._table(shape.model, place, meaning)
            if shape.is_optional and raw is None:
                inner = Group(place, _title(place, None), in_plain_words(meaning), is_there=False)
                inner.adds = [(f"add:{dotted(place)}", f"Add: {inner.title.lower()}")]
            inner.is_optional = shape.is_optional
            group.groups.append(inner)
        elif shape.values is not None and shape.is_list:
            listed = Group(place, _title(place, None), in_plain_words(meaning), is_there=bool(raw))
            for index in range(len(raw) if isinstance(raw, list) else 0):
                inner = self._by_name(shape.values, (*place, index), "")
                inner.entry, inner.is_first, inner.is_last = True, index == 0, index == len(raw) - 1
                listed.groups.append(inner)
            group.groups.append(listed)
        elif shape.values is not None:
            group.groups.append(self._by_name(shape.values, place, meaning))
        else:
            default = None if info is None or info.is_required() else info.get_default(call_default_factory=True)
            kind = shape.kind
            if kind == "number" and place[0] == "panel" and meaning.startswith("Cents"):
                kind = "money"
            choices = self._choices.get(place, shape.choices)
            kind = "choice" if place in self._choices and choices else kind
            if not fits(kind, raw):
                kind = "fixed"
            languages = tuple(dict.fromkeys([*self.languages, *codes_in(raw)])) if shape.is_text else ()
            required = info is not None and info.is_required()
            words = self._words.get(place, {})
            group.fields.append(Field(place, kind, raw, meaning, default, choices, words, languages, required))

    def _list(self, model: Any, place: FieldPath, raw: Any, meaning: str) -> Group:
        group = Group(place, _title(place, None), in_plain_words(meaning), is_there=bool(raw))
        if raw is not None and not (isinstance(raw, list) and all(isinstance(entry, Mapping) for entry in raw)):
            group.fields.append(Field(place, "fixed", raw, meaning))
            return group
        entries = raw or []
        if (len(place) > 1 and _model_at(place) is None) or model.__name__ == "FilterConfig":
            if entries:
                group.fields.append(Field(place, "fixed", entries, meaning))
            return group
        for index, _entry in enumerate(entries):
            inner = self._table(model, (*place, index), "")
            inner.entry, inner.is_first, inner.is_last = True, index == 0, index == len(entries) - 1
            group.groups.append(inner)
        singular = group.title.lower().removesuffix("s")
        group.adds = (
            [(f"add:{dotted(place)}", f"Add: {singular}")] if place != ("blocks",) else self._new_blocks(entries)
        )
        return group

    def _new_blocks(self, blocks: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
        """The blocks that can be added: one of a kind that may come once, and each ready form once."""
        there = {*(block.get("kind") for block in blocks), *(f"form-{block.get('ready')}" for block in blocks)}
        once = {"checks", "practice", *NEW_BLOCKS[5:]} & there
        if not self._practice_names():
            once.add("practice")
        words = {"checks": "comprehension checks"}
        return [
            (f"add:blocks:{kind}", f"Add: {words.get(kind) or kind.replace('form-', 'ready form, ').replace('_', ' ')}")
            for kind in NEW_BLOCKS
            if kind not in once
        ]

    def _by_name(self, values: Any, place: FieldPath, meaning: str) -> Group:
        """A table whose keys are names of the file itself: levels, blocks, the texts of an example."""
        raw = self.file.value(place)
        group = Group(place, _title(place, None), in_plain_words(meaning), is_there=bool(raw))
        annotation, metadata = parts_of(values)
        for name in dict.fromkeys([*self._names_at(place), *(raw if isinstance(raw, Mapping) else ())]):
            self._put(group, (*place, name), annotation, metadata, "", None)
        return group

    def _names_at(self, place: FieldPath) -> Sequence[str]:
        data = self.file.data
        if place[0] == "conditions" and len(place) == 3:
            levels = value_at(data, (*place[:2], "levels"))
            return [str(level) for level in levels] if isinstance(levels, list) else ()
        if place[0] == "conditions" and len(place) == 4:
            blocks = [block for block in data.get("blocks") or () if isinstance(block, Mapping)]
            kinds = [block.get("kind") for block in blocks]
            return [
                str(block.get("name") or block.get("kind"))
                for block in blocks
                if block.get("text") and (block.get("name") or kinds.count(block.get("kind")) == 1)
            ]
        return self._practice_names() if "example" in place or "examples" in place else ()

    def _options(self, place: FieldPath, meaning: str) -> Group:
        """Options that an instrument, a panel or a predictor has of its own, with its own words."""
        model, only = self._options_model(place)
        if model is not None:
            group = self._table(model, place, meaning, only=only)
            group.is_there = group.is_there or place[0] == "instrument"
            return group
        raw = self.file.value(place)
        group = Group(place, _title(place, None), in_plain_words(meaning), is_there=bool(raw))
        defaults: dict[str, Any] = {}
        if place == ("predictor", "params"):
            try:
                defaults = default_params(str(value_at(self.file.data, ("predictor", "name")) or "bert"))
            except PredictorError:
                defaults = {}
        for name in dict.fromkeys([*(raw if isinstance(raw, Mapping) else ()), *defaults]):
            value, default = (raw or {}).get(name), defaults.get(name)
            kind = kind_of_value(value if value is not None else default)
            group.fields.append(Field((*place, name), kind, value, default=default))
        return group

    def _options_model(self, place: FieldPath) -> tuple[Any, Sequence[str] | None]:
        if place == ("panel", "options"):
            panel = panels.find(str(value_at(self.file.data, ("panel", "kind")) or "open"))
            return panel.options_model, None
        if place[0] in ("instrument", "conditions"):
            try:
                model = instruments.kind(
                    str(value_at(self.file.data, ("instrument", "kind")) or "belief_update")
                ).options_model
            except instruments.InstrumentMissing:
                return None, None
            return model, (None if place[0] == "instrument" else sorted(model.by_condition))
        return None, None


BEFORE_ITEMS = ("instructions", "practice", "checks")
NEW_BLOCKS = (*BEFORE_ITEMS, "form", "debriefing", *(f"form-{name}" for name in READY_FORMS))


def _not_of_its_kind(model: Any, raw: Mapping[str, Any]) -> set[str]:
    """Keys that mean nothing for what the table is."""
    kind = raw.get("kind")
    if model is BlockConfig:
        other = {key for key, kinds in KEYS_OF_BLOCKS.items() if kind not in kinds}
        return (
            other
            | ({"fields", "version", "name"} if raw.get("ready") else {"ready"})
            | {"examples" if "example" in raw else "example"}
        )
    if model is FieldConfig:
        return {key for key, kinds in KEYS_OF.items() if kind not in kinds}
    if model is DesignConfig:
        own = design_defaults(str(kind)) if kind in DESIGNS else {}
        return {key for name in DESIGNS for key in design_defaults(name)} - set(own)
    if model is CandidatesConfig:
        return {key for name, keys in CANDIDATES.items() if name != (kind or "pool") for key in keys}
    if model is PanelConfig:
        return set(PANEL_KEYS) - set(panels.find(str(kind or "open")).keys)
    return set()


def _model_at(place: FieldPath) -> Any:
    """The model of a table, or of a list's entries."""
    model: Any = StudyConfig
    for part in place:
        if isinstance(part, int):
            continue
        info = model.model_fields.get(part) if model is not None else None
        model = shape_of(info.annotation, info.metadata).model if info is not None else None
    return model


def _title(place: FieldPath, raw: Any) -> str:
    if not place:
        return ""
    if not isinstance(place[-1], int):
        return label_of(place)
    number, listed = place[-1] + 1, str(place[-2])
    known = raw if isinstance(raw, Mapping) else {}
    if listed == "blocks":
        kind = "ready form" if known.get("ready") else str(known.get("kind", "block"))
        own = in_language(
            known.get("title") or known.get("ready") or known.get("name"), *_first_code(known.get("title"))
        )
        return f"{number}. {kind.capitalize()}" + (f": {own}" if isinstance(own, str) and own else "")
    own = next((known[name] for name in NAMED_BY if isinstance(known.get(name), str)), "")
    return f"{listed.rstrip('s').replace('_', ' ').capitalize()} {number}" + (f": {own}" if own else "")


def _first_code(value: Any) -> tuple[str, str]:
    code = next(iter(value), "") if isinstance(value, Mapping) else ""
    return code, code
