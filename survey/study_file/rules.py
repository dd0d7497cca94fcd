"""Rules that flag sittings, and which of the flags leave answers out. A flag alone changes nothing."""

from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import Field, model_validator

from .base import Name, Strict, WrongKey
from .blocks import BlockConfig, SittingConfig
from .fields import CHOSEN

FlagName = Literal["speeder", "same_answers", "attention", "looked_up", "hidden"]
FLAGS: tuple[FlagName, ...] = get_args(FlagName)


class SpeederRule(Strict):
    """Flags people who are faster than anybody can read. 0 switches one of the two limits off."""

    seconds_per_item: float = Field(default=4.0, ge=0, le=3600, description="Flags a median item below this.")
    words_per_second: float = Field(default=12.0, ge=0, le=1000, description="Flags a median item above this.")

    @model_validator(mode="after")
    def flags_somebody(self) -> "SpeederRule":
        if not self.seconds_per_item and not self.words_per_second:
            raise ValueError("both limits are 0, so nobody is ever flagged: set one, or remove the table")
        return self


class SameAnswersRule(Strict):
    share: float = Field(default=0.9, gt=0, le=1, description="The share of the most frequent answer.")
    items: int = Field(default=8, ge=2, le=200, description="With fewer answered items nobody is flagged.")


class AttentionRule(Strict):
    failed: int = Field(default=1, ge=1, le=20, description="Flagged from this number of failed checks on.")


class LookedUpRule(Strict):
    """An answer to a choice in a form. The defaults fit the ready form of this name."""

    block: Name = "looked_up"
    field: Name = "looked_up"
    values: list[str] = Field(default=["looked_up", "asked_ai", "both"], min_length=1, max_length=60)


class HiddenRule(Strict):
    share: float = Field(default=0.5, gt=0, le=1, description="The share of the time on items with the page hidden.")


class FlagsConfig(Strict):
    """A rule applies if the file has its table."""

    speeder: SpeederRule | None = None
    same_answers: SameAnswersRule | None = None
    attention: AttentionRule | None = None
    looked_up: LookedUpRule | None = None
    hidden: HiddenRule | None = None

    @property
    def names(self) -> tuple[FlagName, ...]:
        """The flags that the study has rules for, in a fixed order."""
        return tuple(name for name in FLAGS if getattr(self, name) is not None)


class ExclusionsConfig(Strict):
    """Whose answers do not count: those of sittings that have one of these flags when their stage is frozen."""

    flags: list[FlagName] = Field(default=[], max_length=len(FLAGS))


def refuse_what_does_not_fit(
    flags: FlagsConfig, exclusions: ExclusionsConfig, blocks: Sequence[BlockConfig], sitting: SittingConfig
) -> None:
    """
    Raises:
        WrongKey: a rule asks for what the study does not have, or nobody can get a flag that leaves answers out.
    """
    if len(set(exclusions.flags)) != len(exclusions.flags):
        raise WrongKey(("exclusions", "flags"), "one is named twice: remove one")
    for name in exclusions.flags:
        if name not in flags.names:
            raise WrongKey(("exclusions", "flags"), f"no rule gives the flag {name}: add [flags.{name}]")
    if flags.attention is not None and flags.attention.failed > len(sitting.attention_checks):
        raise WrongKey(
            ("flags", "attention", "failed"),
            f"the sitting has {len(sitting.attention_checks)} attention checks: add "
            "[[sitting.attention_checks]], or ask for fewer",
        )
    if flags.same_answers is not None and flags.same_answers.items > sitting.items:
        raise WrongKey(
            ("flags", "same_answers", "items"), f"a sitting has {sitting.items} items: choose 2 to {sitting.items}"
        )
    if flags.looked_up is not None:
        _refuse_unasked(flags.looked_up, blocks)


def _refuse_unasked(rule: LookedUpRule, blocks: Sequence[BlockConfig]) -> None:
    block = next((block for block in blocks if block.kind == "form" and block.name == rule.block), None)
    if block is None:
        raise WrongKey(
            ("flags", "looked_up", "block"),
            f'no form is called {rule.block}: add a block with ready = "looked_up", or name one',
        )
    field = next((field for field in block.fields if field.name == rule.field), None)
    if field is None or field.kind not in CHOSEN:
        raise WrongKey(("flags", "looked_up", "field"), f"{rule.block} has no choice called {rule.field}")
    if strangers := [value for value in rule.values if value not in field.codes]:
        known = "values" if field.values else "options (or give values, which are the same in every language)"
        raise WrongKey(
            ("flags", "looked_up", "values"), f"{', '.join(strangers)} is not among the {known} of {rule.field}"
        )
