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

    seconds_per_item: float = Field(default=4.0, ge=0, le=3600)
    """Flagged if the median item took less than this many seconds; 0 for no such limit."""
    words_per_second: float = Field(default=12.0, ge=0, le=1000)
    """Flagged if the median item was read faster than this; only the words of the questions count; 0 for no such
    limit."""

    @model_validator(mode="after")
    def flags_somebody(self) -> "SpeederRule":
        if not self.seconds_per_item and not self.words_per_second:
            raise ValueError("both limits are 0, so nobody is ever flagged: set one, or remove the table")
        return self


class SameAnswersRule(Strict):
    share: float = Field(default=0.9, gt=0, le=1)
    """Flagged if one answer makes up this share or more of all answers to the same kind of question (priors, or
    posteriors)."""
    items: int = Field(default=8, ge=2, le=200)
    """Sittings with fewer answers of that kind are not flagged; 2 to 200."""


class AttentionRule(Strict):
    failed: int = Field(default=1, ge=1, le=20)
    """Flagged if this many of the `[[sitting.attention_checks]]`, or more, were failed."""


class LookedUpRule(Strict):
    """An answer to a choice in a form. The defaults fit the ready form of this name."""

    block: Name = "looked_up"
    """The form."""
    field: Name = "looked_up"
    """The choice in it."""
    values: list[str] = Field(default=["looked_up", "asked_ai", "both"], min_length=1, max_length=60)
    """The answers that flag, by the field's `values` (or options); by default all of the ready form's except "no"."""


class HiddenRule(Strict):
    share: float = Field(default=0.5, gt=0, le=1)
    """Flagged if the page was hidden for this share or more of the time on items' screens, as the browser measured
    it."""


class FlagsConfig(Strict):
    """A rule applies if the file has its table."""

    speeder: SpeederRule | None = None
    """Faster than one can read; see `[flags.speeder]`."""
    same_answers: SameAnswersRule | None = None
    """Always the same answer; see `[flags.same_answers]`."""
    attention: AttentionRule | None = None
    """Failed attention checks; see `[flags.attention]`."""
    looked_up: LookedUpRule | None = None
    """Said that they looked something up; see `[flags.looked_up]`."""
    hidden: HiddenRule | None = None
    """Had the page in the background; see `[flags.hidden]`."""

    @property
    def names(self) -> tuple[FlagName, ...]:
        """The flags that the study has rules for, in a fixed order."""
        return tuple(name for name in FLAGS if getattr(self, name) is not None)


class ExclusionsConfig(Strict):
    """Whose answers do not count: those of sittings that have one of these flags when their stage is frozen."""

    flags: list[FlagName] = Field(default=[], max_length=len(FLAGS))
    """Answers of sittings with one of these flags are left out; none by default."""


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
