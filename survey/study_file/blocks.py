"""What a sitting is made of: its size, its blocks, the instrument of its items, and its conditions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from .answerer import AnswererConfig
from .attention import MAX_CHECKS, AttentionCheckConfig
from .base import (
    ExampleText,
    FieldName,
    FieldPath,
    HintText,
    LongText,
    Name,
    Strict,
    Text,
    TitleText,
    WrongKey,
    dotted,
    languages_being_read,
)
from .fields import FieldConfig
from .ready import READY_FORMS, ready_form

MAX_EXAMPLES = 10
# Which keys belong to which kinds of blocks, and what is said where another kind has them; all others belong to all.
KEYS_OF_BLOCKS: dict[str, tuple[str, ...]] = {
    "example": ("practice",),
    "examples": ("practice",),
    "checks": ("checks",),
    "fields": ("form",),
    "ready": ("form",),
    "asks_to_use": ("debriefing",),
    "version": ("consent", "form"),
}
REFUSED_ELSEWHERE = {
    "example": "has an example",
    "examples": "has an example",
    "checks": "has checks",
    "fields": "has fields",
    "ready": "can be a ready one",
    "asks_to_use": "has asks_to_use",
}


class SittingConfig(Strict):
    items: int = Field(default=15, ge=1, le=200)
    """Items in a sitting, 1 to 200."""
    expires_after_minutes: int = Field(default=60, ge=1, le=24 * 60)
    """A sitting without activity for this long is expired and its open items go to others; 1 to 1440."""
    open_place_minutes: int = Field(default=15, ge=1, le=24 * 60)
    """The same in an open study (`[panel] kind = "open"`), where it is shorter than `expires_after_minutes`: anybody
    can begin there, so nobody holds a place for long without sending a page. 1 to 1440."""
    begins_per_address: int = Field(default=20, ge=0, le=100_000)
    """How many sittings may begin from one network address within an hour, where people can be made up: in open
    studies, and at panels that neither sign their addresses nor can be asked. 0: any number, for instance for a class
    that shares one address."""
    attention_checks: list[AttentionCheckConfig] = Field(default=[], max_length=MAX_CHECKS)
    """Questions between the items that show whether somebody reads; see `[[sitting.attention_checks]]`. Up to 10."""


class InstrumentConfig(Strict):
    """`options` are checked by the instrument itself."""

    kind: str = "belief_update"
    """The instrument by its name."""
    options: dict[str, Any] = {}
    """The instrument's own options, which it checks."""


class CheckConfig(Strict):
    """One comprehension check. The first option is the right one in the file; they are shown in random order."""

    name: FieldName
    """The check's name in the stored attempts."""
    question: Text
    """What is asked."""
    options: list[Text] = Field(min_length=2, max_length=6)
    """2 to 6 answers, **the right one first**; they are shown in random order."""
    hint: HintText = ""
    """Shown after a wrong first attempt, up to 2,000 characters."""

    @field_validator("options")
    @classmethod
    def options_differ(cls, options: list[str]) -> list[str]:
        if len(set(options)) != len(options):
            raise ValueError("two options are the same: make them differ")
        return options


class BlockConfig(Strict):
    kind: Literal["consent", "instructions", "practice", "checks", "items", "form", "debriefing", "end"]
    """`"consent"`, `"instructions"`, `"practice"`, `"checks"`, `"items"`, `"form"`, `"debriefing"` or `"end"`."""
    name: Name | None = None
    """The block's name in conditions and exports; a form needs one."""
    title: TitleText = ""
    """The page's heading, up to 200 characters."""
    text: LongText = ""
    """What the page says, up to 20,000 characters; needed by consent, instructions and debriefing. `{items}`,
    `{minutes}`, `{reward}` and `{retention_until}` are the file's own values; a brace is written `{{`."""
    version: str = Field(default="1", max_length=40)
    """The version of the consent text; stored with each consent."""
    checks: list[CheckConfig] = []
    """The comprehension checks of a block of kind `checks`; see `[[blocks.checks]]`."""
    fields: list[FieldConfig] = []
    """The questions of a block of kind `form`; see `[[blocks.fields]]`."""
    example: dict[Name, ExampleText] = {}
    """The texts of a block of kind `practice`, by the instrument's names; see below."""
    examples: list[dict[Name, ExampleText]] = Field(default=[], max_length=MAX_EXAMPLES)
    """Several of them, up to 10: `[[blocks.examples]]` instead of `[blocks.example]`."""
    ready: Literal[READY_FORMS] | None = None  # type: ignore[valid-type]  # a tuple of literals
    """A form that needs no `fields`: `"demographics"` (age, gender, education), `"ai_use"`, `"looked_up"` ("Did you
    look anything up or ask an AI? Your pay is unaffected.") or `"comment"`. Its name and version are fixed."""
    asks_to_use: bool = False
    """A debriefing that ends with two buttons, to let the data be used or to withdraw it. After the items, once. People
    who withdraw count as finished, and are paid like everybody."""

    @property
    def all_examples(self) -> "list[dict[str, str]]":
        """Those of a practice block, in order, whichever way they were written."""
        return self.examples or [self.example]

    @model_validator(mode="before")
    @classmethod
    def fill_in_a_ready_form(cls, data: Any) -> Any:
        """The study stores the questions themselves, so that a later change of the ready form does not change it."""
        if not isinstance(data, Mapping) or data.get("ready") not in READY_FORMS or data.get("fields"):
            return data
        return {**ready_form(data["ready"], languages_being_read()), **data}

    @model_validator(mode="after")
    def has_what_its_kind_needs(self) -> "BlockConfig":
        if self.kind in ("consent", "instructions", "debriefing") and not self.text:
            raise ValueError(f'a block of kind "{self.kind}" needs text')
        if self.kind == "checks" and not self.checks:
            raise ValueError('a block of kind "checks" needs at least one [[blocks.checks]]')
        if self.kind == "form" and not (self.fields and self.name):
            raise ValueError('a block of kind "form" needs a name and at least one [[blocks.fields]]')
        if self.kind == "practice" and not (self.example or self.examples):
            raise ValueError(
                'a block of kind "practice" needs [blocks.example] with the texts of its screens, or several '
                "[[blocks.examples]]"
            )
        if self.example and self.examples:
            raise ValueError("[blocks.example] and [[blocks.examples]] stand side by side: keep one of them")
        for key, words in REFUSED_ELSEWHERE.items():
            (kind,) = KEYS_OF_BLOCKS[key]
            if self.kind != kind and getattr(self, key):
                raise ValueError(f'only a block of kind "{kind}" {words}')
        if self.ready and self.name != self.ready:
            raise ValueError(f"a ready form is always called {self.ready}: remove name")
        for entries in (self.checks, self.fields):
            names = [entry.name for entry in entries]
            if len(set(names)) != len(names):
                raise ValueError("two entries have the same name: make them differ")
        return self


def refuse_misplaced(blocks: Sequence[BlockConfig]) -> None:
    """
    Raises:
        WrongKey: a block comes too early or too late for what it asks. It carries the place in the file.
    """
    items = [block.kind for block in blocks].index("items")
    asking: list[FieldPath] = []
    practised: list[FieldPath] = []
    for index, block in enumerate(blocks):
        place = ("blocks", index)
        if index > items and any(field.screen_out for field in block.fields):
            raise WrongKey((*place, "fields"), "people are screened out before the items only: move this block")
        if block.kind == "practice":
            practised.append(place)
            if index > items:
                raise WrongKey(place, "practice comes before the items: move the block before them")
        if block.asks_to_use:
            asking.append(place)
            if index < items:
                raise WrongKey(
                    (*place, "asks_to_use"), "no answers have been given yet: move the block behind the items"
                )
    if len(practised) > 1:
        raise WrongKey(practised[1], f"{dotted(practised[0])} is a practice item already: one is enough")
    if len(asking) > 1:
        raise WrongKey((*asking[1], "asks_to_use"), f"{dotted(asking[0])} asks already: ask once")


class ConditionConfig(Strict):
    """A factor whose level is drawn for each sitting or for each item, in balanced random blocks. `texts` changes
    blocks' texts, `answerer` what pages call the one who answers, `options` the instrument's options."""

    factor: Name
    """The factor's name in exports."""
    levels: list[Name] = Field(min_length=2, max_length=12)
    """2 to 12 levels."""
    per: Literal["sitting", "item"] = "sitting"
    """`"sitting"`: one level for everything that a person sees. `"item"`: a level for each item."""
    texts: dict[Name, dict[str, LongText]] = {}
    """By level, other texts for blocks: `[conditions.texts.LEVEL]` with `BLOCK = "..."`, where BLOCK is a block's name,
    or its kind where only one block has it."""
    answerer: dict[Name, AnswererConfig] = {}
    """By level, another name for the one who answers; see `[conditions.answerer]`. Needs `per = "sitting"` and
    `[texts.answerer]`."""
    options: dict[Name, dict[str, Any]] = {}
    """By level, other options of the instrument: `[conditions.options.LEVEL]` with `OPTION = ...`. Only options that
    change what a screen shows or asks may differ; the instrument's table says which."""

    @model_validator(mode="after")
    def levels_fit(self) -> "ConditionConfig":
        if len(set(self.levels)) != len(self.levels):
            raise ValueError("two levels have the same name: make them differ")
        tables: Mapping[str, Mapping[str, Any]] = {
            "texts": self.texts,
            "answerer": self.answerer,
            "options": self.options,
        }
        for name, by_level in tables.items():
            if strangers := sorted(set(by_level) - set(self.levels)):
                raise ValueError(f"{name} for {', '.join(strangers)}, which is not among the levels")
        if self.per == "item" and self.texts:
            raise ValueError('a block\'s text is the same for all items: texts need per = "sitting"')
        if self.per == "item" and self.answerer:
            raise ValueError('the name is the same on all pages: answerer needs per = "sitting"')
        return self
