"""`[weighting]`: to which population the figures are weighted too, by what people answered in forms. Imports the file's
forms alone."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise, product
from typing import Annotated

from pydantic import Field, model_validator

from .base import Strict, WrongKey
from .blocks import BlockConfig
from .fields import FieldConfig

BETWEEN = " | "  # the answers of a cell
ROUNDED = 0.01  # as far as printed shares may be from 1 together
GROUPED_BY = ("choice", "likert", "number")


class MarginConfig(Strict):
    by: list[Annotated[str, Field(min_length=1, max_length=130)]] = Field(min_length=1, max_length=3)
    """The question of a form that has the margin's groups, by its name (or `BLOCK.NAME`): of the kind `choice`,
    `likert`, or `number` with `bands`. Two or three make cells."""
    shares: dict[str, float] = Field(min_length=2, max_length=200)
    """The population's share of each group: 0.48 is 48 percent. A group is an option's value, a point, or a band as the
    estimates name it ("under 30", "30 to 49", "50 or more"); of cells, the answers in the order of `by` with `" | "`
    between them. Together they make 1, but for rounding to a hundredth. People in a group without a share are in no
    weighted figure."""

    @property
    def title(self) -> str:
        return " and ".join(self.by)

    @model_validator(mode="after")
    def is_whole(self) -> "MarginConfig":
        if len(set(self.by)) < len(self.by):
            raise ValueError("by: name each question once")
        for group, share in self.shares.items():
            if not 0 < share < 1:
                raise ValueError(
                    f"shares: {group} has {share:g}; give the share of the population, above 0 and below 1, and leave "
                    "out a group that it does not have"
                )
        if abs((total := sum(self.shares.values())) - 1) > ROUNDED:
            raise ValueError(f"shares: together they make {total:g} and not 1")
        return self


class WeightingConfig(Strict):
    """A population whose make-up is known, from a census or a survey of it."""

    margins: list[MarginConfig] = Field(min_length=1, max_length=6)
    """What is known of it; see `[[weighting.margins]]`. With several, people are weighted so that all hold (raking)."""
    trim: float = Field(default=5.0, gt=1, le=100)
    """No person weighs more than so many people do on average. Smaller weights make intervals narrower, and the margins
    hold less exactly; the estimates say by how much."""

    @model_validator(mode="after")
    def margins_differ(self) -> "WeightingConfig":
        titles = [frozenset(margin.by) for margin in self.margins]
        if len(set(titles)) < len(titles):
            raise ValueError("margins: two are about the same questions; keep one")
        return self


def grouping_questions(
    blocks: Sequence[BlockConfig], taken: Collection[str] = ()
) -> dict[str, tuple[BlockConfig, FieldConfig]]:
    """The questions of forms with one answer each, by the name that they have among divisions: their own, or BLOCK.NAME
    where something else has that name too.

    Args:
        taken: names of divisions and factors, which keep their meaning.
    """
    asked = [(block, field) for block in blocks for field in block.fields]
    names = [field.name for _block, field in asked]
    return {
        field.name
        if names.count(field.name) == 1 and field.name not in taken
        else f"{block.name or ''}.{field.name}": (
            block,
            field,
        )
        for block, field in asked
        if field.kind in GROUPED_BY
    }


def band_names(firsts: Sequence[int]) -> list[str]:
    """The bands of numbers in words. `firsts`: the first number of each band after the lowest."""
    if not firsts:
        return ["any number"]
    between = [f"{low} to {high - 1}" if high - 1 > low else str(low) for low, high in pairwise(firsts)]
    return [f"under {firsts[0]}", *between, f"{firsts[-1]} or more"]


def groups_in(field: FieldConfig) -> list[str]:
    """The groups that a question has before anybody answers it; none for numbers without bands."""
    if field.kind == "likert":
        return [str(point) for point in range(1, (field.points or 0) + 1)]
    if field.kind == "number":
        return band_names(field.bands) if field.bands else []
    return [*field.codes]


def refuse_unknown_groups(weighting: WeightingConfig, questions: Mapping[str, tuple[BlockConfig, FieldConfig]]) -> None:
    """
    Raises:
        WrongKey: a margin names a question that no form asks, or a group that nobody can be in.
    """
    for number, margin in enumerate(weighting.margins):
        where = ("weighting", "margins", number)
        parts = []
        for name in margin.by:
            if name not in questions:
                there_are = ", ".join(questions) or "none"
                raise WrongKey((*where, "by"), f"no form asks {name} with one answer; there are: {there_are}")
            groups = groups_in(questions[name][1])
            if not groups:
                raise WrongKey((*where, "by"), f"{name} is a number without bands: give the question bands")
            parts.append(groups)
        known = [BETWEEN.join(cell) for cell in product(*parts)]
        if strangers := [group for group in margin.shares if group not in known]:
            raise WrongKey(
                (*where, "shares"), f"{strangers[0]!r} is no group of {margin.title}; there are: {', '.join(known)}"
            )
