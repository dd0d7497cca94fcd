"""Quotas: how many people with certain answers each stage takes, by forms before the items. Imports pydantic and base.

A quota cuts people into cells that exclude each other. Somebody who belongs in a full cell ends there.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from .base import FieldName, Name, Strict, WrongKey
from .blocks import BlockConfig
from .fields import NOT_SAID, FieldConfig

# What the kinds of fields are matched by. Of several choices at once, none could be said to decide.
CHOSEN_FROM, COUNTED = ("choice", "likert"), ("number",)
Numbers = Annotated[list[int], Field(min_length=2, max_length=2)]


class CellConfig(Strict):
    """Who belongs in it: people who gave one of these answers to each named question. `places` is for each stage;
    `share` is of a stage's sittings."""

    name: Name
    """Its name."""
    answers: dict[FieldName, list[str]] = {}
    """By question of the kind `choice` or `likert`: a list of values, as they are stored. `{ gender = ["woman"], region
    = ["north", "east"] }`"""
    between: dict[FieldName, Numbers] = {}
    """By question of the kind `number`: the lowest and the highest number."""
    places: int | None = Field(default=None, ge=1, le=100_000)
    """How many people of each stage."""
    share: float | None = Field(default=None, gt=0, le=1)
    """Instead of `places`: which part of a stage's sittings. The places of all cells are rounded so that they add
    up."""

    @model_validator(mode="after")
    def says_who_and_how_many(self) -> "CellConfig":
        if not self.fields:
            raise ValueError("give answers = { field = [...] } or between = { field = [from, to] }: who belongs in it")
        if both := sorted(set(self.answers) & set(self.between)):
            raise ValueError(f"{both[0]} stands in answers and in between: keep one")
        if empty := [name for name, values in self.answers.items() if not values]:
            raise ValueError(f"answers: {empty[0]} names none")
        if wrong := [name for name, (low, high) in self.between.items() if low > high]:
            raise ValueError(f"between: the first number of {wrong[0]} is above the second: swap them")
        if (self.places is None) == (self.share is None):
            raise ValueError("give places or share, and not both")
        return self

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.answers, *self.between)

    def holds(self, answers: Mapping[str, Any]) -> bool:
        """Whether somebody with these answers, by field, belongs in it."""
        chosen = all(str(answers.get(name)) in values for name, values in self.answers.items())
        return chosen and all(
            isinstance(answers.get(name), int) and low <= answers[name] <= high
            for name, (low, high) in self.between.items()
        )

    def excludes(self, other: "CellConfig") -> bool:
        """Whether nobody can belong in both: some question has no answer that is in both."""
        chosen = [name for name in self.answers if name in other.answers]
        counted = [name for name in self.between if name in other.between]
        return any(not set(self.answers[name]) & set(other.answers[name]) for name in chosen) or any(
            self.between[name][1] < other.between[name][0] or other.between[name][1] < self.between[name][0]
            for name in counted
        )


class QuotaConfig(Strict):
    """`when_full`: how the sitting of somebody ends whose cell is full. `otherwise`: what becomes of those who belong
    in no cell."""

    name: Name
    """Its name: lower-case letters, digits and `_`."""
    when_full: Literal["study_full", "screened_out"] = "study_full"
    """How a person ends whose cell is full, and so the code, the address and the pay: turned away (`turned_away_pay`),
    or screened out with pay (`screen_out_pay`)."""
    otherwise: Literal["screened_out", "study_full", "admit"] = "screened_out"
    """What becomes of people who belong in no cell."""
    cells: list[CellConfig] = Field(min_length=1, max_length=100)
    """The cells; see `[[quotas.cells]]`. No two may hold the same person."""

    @model_validator(mode="after")
    def cells_fit(self) -> "QuotaConfig":
        names = [cell.name for cell in self.cells]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two cells are called {twice}: make them differ")
        if len({cell.share is None for cell in self.cells}) > 1:
            raise ValueError("cells: some have places and some a share: give all of them the same")
        if self.has_shares and sum(cell.share or 0 for cell in self.cells) > 1 + 1e-9:
            raise ValueError("cells: the shares add up to more than 1: lower one")
        for first, other in combinations(self.cells, 2):
            if not first.excludes(other):
                raise ValueError(
                    f"cells: somebody can belong in {first.name} and in {other.name}: give them different "
                    "answers to one "
                    "question"
                )
        return self

    @property
    def has_shares(self) -> bool:
        return self.cells[0].share is not None

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(name for cell in self.cells for name in cell.fields)

    @property
    def screens_out(self) -> bool:
        return "screened_out" in (self.when_full, self.otherwise)

    def cell_of(self, answers: Mapping[str, Any]) -> CellConfig | None:
        """The one cell in which somebody with these answers belongs; None if there is none."""
        return next((cell for cell in self.cells if cell.holds(answers)), None)

    def places(self, sittings: int) -> dict[str, int]:
        """The places of each cell in a stage with so many sittings.

        Shares are rounded so that they add up: each down, then one more for the largest remainders (Hamilton's method;
        of equal ones the first).
        """
        if not self.has_shares:
            return {cell.name: cell.places or 0 for cell in self.cells}
        exact = [round((cell.share or 0) * sittings, 9) for cell in self.cells]
        whole = [int(number) for number in exact]
        missing = round(sum(exact)) - sum(whole)
        order = sorted(range(len(exact)), key=lambda index: (whole[index] - exact[index], index))
        for index in order[: max(0, missing)]:
            whole[index] += 1
        return {cell.name: number for cell, number in zip(self.cells, whole, strict=True)}


def decided_in(quota: QuotaConfig, blocks: Sequence[BlockConfig]) -> int:
    """The index of the form after which it is known where people belong: the last before the items that asks one of the
    quota's questions."""
    before = blocks[: [block.kind for block in blocks].index("items")]
    return max(index for index, block in enumerate(before) if {field.name for field in block.fields} & quota.fields)


def questions_before_items(blocks: Sequence[BlockConfig]) -> dict[str, list[FieldConfig]]:
    """The forms' questions before the items, by name."""
    questions: dict[str, list[FieldConfig]] = {}
    for block in blocks[: [block.kind for block in blocks].index("items")]:
        for field in block.fields:
            questions.setdefault(field.name, []).append(field)
    return questions


def unplaced_values(quota: QuotaConfig, blocks: Sequence[BlockConfig]) -> dict[str, list[str]]:
    """By question, the answers that are in no cell, for those with options that every cell asks about."""
    asked = questions_before_items(blocks)
    unplaced = {}
    for name in sorted(quota.fields):
        if all(name in cell.answers for cell in quota.cells):
            placed = {value for cell in quota.cells for value in cell.answers[name]}
            if rest := [value for value in values_of(asked[name][0]) if value not in placed]:
                unplaced[name] = rest
    return unplaced


def values_of(field: FieldConfig) -> list[str]:
    """What is stored of an answer to a question with options or points."""
    values = (
        [str(point) for point in range(1, (field.points or 0) + 1)] if field.kind == "likert" else list(field.codes)
    )
    return [*values, NOT_SAID] if field.prefer_not_to_say else values


def refuse_what_is_not_asked(quotas: Sequence[QuotaConfig], blocks: Sequence[BlockConfig]) -> None:
    """
    Raises:
        WrongKey: a quota asks for what no form before the items asks, or for an answer that nobody can give.
    """
    names = [quota.name for quota in quotas]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise WrongKey(("quotas",), f"two are called {twice}: make them differ")
    asked = questions_before_items(blocks)
    for number, quota in enumerate(quotas):
        for place, cell in enumerate(quota.cells):
            where = ("quotas", number, "cells", place)
            for name in cell.fields:
                _refuse_unasked((*where, "answers" if name in cell.answers else "between"), name, cell, asked)


def _refuse_unasked(
    where: tuple[str | int, ...], name: str, cell: CellConfig, asked: Mapping[str, Sequence[FieldConfig]]
) -> None:
    fields = asked.get(name, ())
    if not fields:
        raise WrongKey(where, f"no form before the items asks {name}: add the question, or move its form before them")
    if len(fields) > 1:
        raise WrongKey(where, f"two forms before the items ask {name}: give one of the questions another name")
    field = fields[0]
    wanted = CHOSEN_FROM if name in cell.answers else COUNTED
    if field.kind not in wanted:
        kinds = " or ".join(repr(kind) for kind in wanted)
        raise WrongKey(where, f"{name} is of the kind {field.kind!r}, and {where[-1]} takes {kinds}")
    if not field.required:
        raise WrongKey(where, f"{name}: set required = true there, or people can skip it and belong nowhere")
    strangers = [value for value in cell.answers.get(name, ()) if value not in values_of(field)]
    if strangers:
        raise WrongKey(where, f"{strangers[0]} is no answer to {name}; there are: {', '.join(values_of(field))}")
