"""What a sitting is made of: its size, its blocks, the instrument of its items, and its conditions."""

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from .base import FieldName, HintText, LongText, Name, Strict, Text, TitleText


class SittingConfig(Strict):
    items: int = Field(default=15, ge=1, le=200)
    expires_after_minutes: int = Field(default=60, ge=1, le=24 * 60)


class InstrumentConfig(Strict):
    """`options` are checked by the instrument itself."""

    kind: str = "belief_update"
    options: dict[str, Any] = {}


class CheckConfig(Strict):
    """One comprehension check. The first option is the right one in the file; they are shown in random order."""

    name: FieldName
    question: Text
    options: list[Text] = Field(min_length=2, max_length=6)
    hint: HintText = ""

    @field_validator("options")
    @classmethod
    def options_differ(cls, options: list[str]) -> list[str]:
        if len(set(options)) != len(options):
            raise ValueError("two options are the same: make them differ")
        return options


class FieldConfig(Strict):
    """One question of a form block."""

    name: FieldName
    label: Text
    kind: Literal["choice", "text", "number"]
    options: list[Text] = []
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None

    @model_validator(mode="after")
    def fits_its_kind(self) -> "FieldConfig":
        if self.kind == "choice" and len(self.options) < 2:
            raise ValueError("a choice needs at least two options")
        if self.kind != "choice" and self.options:
            raise ValueError('only kind = "choice" has options')
        if self.kind != "number" and (self.minimum is not None or self.maximum is not None):
            raise ValueError('only kind = "number" has minimum and maximum')
        return self


class BlockConfig(Strict):
    kind: Literal["consent", "instructions", "checks", "items", "form", "debriefing", "end"]
    name: Name | None = None
    title: TitleText = ""
    text: LongText = ""
    version: str = Field(default="1", max_length=40)
    checks: list[CheckConfig] = []
    fields: list[FieldConfig] = []

    @model_validator(mode="after")
    def has_what_its_kind_needs(self) -> "BlockConfig":
        if self.kind in ("consent", "instructions", "debriefing") and not self.text:
            raise ValueError(f'a block of kind "{self.kind}" needs text')
        if self.kind == "checks" and not self.checks:
            raise ValueError('a block of kind "checks" needs at least one [[blocks.checks]]')
        if self.kind == "form" and not (self.fields and self.name):
            raise ValueError('a block of kind "form" needs a name and at least one [[blocks.fields]]')
        if self.kind != "checks" and self.checks:
            raise ValueError('only a block of kind "checks" has checks')
        if self.kind != "form" and self.fields:
            raise ValueError('only a block of kind "form" has fields')
        for entries in (self.checks, self.fields):
            names = [entry.name for entry in entries]
            if len(set(names)) != len(names):
                raise ValueError("two entries have the same name: make them differ")
        return self


class ConditionConfig(Strict):
    """A factor whose level is drawn for each sitting or for each item, in balanced random blocks. `texts` changes
    blocks' texts, `options` the instrument's options."""

    factor: Name
    levels: list[Name] = Field(min_length=2, max_length=12)
    per: Literal["sitting", "item"] = "sitting"
    texts: dict[Name, dict[str, LongText]] = {}
    options: dict[Name, dict[str, Any]] = {}

    @model_validator(mode="after")
    def levels_fit(self) -> "ConditionConfig":
        if len(set(self.levels)) != len(self.levels):
            raise ValueError("two levels have the same name: make them differ")
        for name, tables in (("texts", self.texts), ("options", self.options)):
            if strangers := sorted(set(tables) - set(self.levels)):
                raise ValueError(f"{name} for {', '.join(strangers)}, which is not among the levels")
        if self.per == "item" and self.texts:
            raise ValueError('a block\'s text is the same for all items: texts need per = "sitting"')
        return self
