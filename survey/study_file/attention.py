"""Attention checks between items: what they are and where they may stand. Imports pydantic alone."""

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from .base import FieldName, Strict, Text, WrongKey

MAX_CHECKS = 10


class AttentionCheckConfig(Strict):
    """One attention check, after so many items. The first `right` options are the right ones in the file.

    `instruction`: the question says which answer to choose. `nonsense`: everybody who reads it can see the right
    answer. Panels allow only these two kinds; a check of memory or knowledge is not allowed.
    """

    name: FieldName
    """The check's name in the stored answers."""
    after_item: int = Field(ge=1, le=200)
    """After how many items it comes, 1 to `items`. In a shorter booklet it comes after the last one at the latest."""
    kind: Literal["instruction", "nonsense"]
    """`"instruction"`: the text says which answer to choose. `"nonsense"`: everybody who reads it can see the right
    answer. Never ask for memory or knowledge."""
    text: Text
    """The question; an instruction must contain the right option word for word."""
    options: list[Text] = Field(min_length=2, max_length=11)
    """2 to 11 answers, **the right one first**."""
    right: int = Field(default=1, ge=1, le=10)
    """How many options, counted from the first, are right: for a nonsense item on a scale those in the right
    direction."""
    shuffle: bool = True
    """Whether each sitting has its own order. False shows a scale in the order of the file."""

    @model_validator(mode="after")
    def can_be_passed_and_failed(self) -> "AttentionCheckConfig":
        if len(set(self.options)) != len(self.options):
            raise ValueError("two options are the same: make them differ")
        if self.right >= len(self.options):
            raise ValueError(f"right: {self.right} of {len(self.options)} options are right, so that nobody can fail")
        if self.kind == "instruction":
            if self.right != 1:
                raise ValueError("right: an instruction names one answer: set right to 1 or leave it out")
            wanted = rf"(?<!\w){re.escape(self.options[0])}(?!\w)"
            if not re.search(wanted, self.text, re.IGNORECASE):
                raise ValueError(
                    f'text: say in it which answer to choose; the first option, "{self.options[0]}", is not named'
                )
        return self


def refuse_misplaced(checks: Sequence[AttentionCheckConfig], *, items: int) -> None:
    """
    Raises:
        WrongKey: no sitting reaches a check, or two checks have one name. It carries the place in the file.
    """
    names: set[str] = set()
    for index, check in enumerate(checks):
        place = ("sitting", "attention_checks", index)
        if check.after_item > items:
            raise WrongKey((*place, "after_item"), f"a sitting has {items} items: choose 1 to {items}")
        if check.name in names:
            raise WrongKey((*place, "name"), f"two attention checks are called {check.name}: make them differ")
        names.add(check.name)
