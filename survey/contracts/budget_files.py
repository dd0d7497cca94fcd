"""What the file of a budget says under every instrument: people, prices, policies by name; and what people cost.

Imports the study file and the results kit. `BudgetPlanner` says what an instrument does with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from survey.figures.words import integer, number
from survey.study_file import SEED_LIMIT, DesignConfig, Strict

MOST_STUDIES = 10_000  # of each plan


class Prices(Strict):
    currency: str = Field(default="USD", min_length=1, max_length=10)
    reward: float = Field(default=2.5, ge=0)
    platform_fee: float = Field(default=0.333, ge=0, le=5)
    tax_on_fee: float = Field(default=0.0, ge=0, le=1)


class NamedPlan(Strict):
    """What a file compares has a name."""

    name: str = Field(min_length=1, max_length=60)


class PolicyConfig(NamedPlan, DesignConfig):
    """A design with a name. It holds from stage 2; the first stage is uniform under every policy."""

    # The figures of a simulated study that a design may learn from, each by its names. None: no design can learn.
    figures: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="after")
    def can_be_simulated(self) -> Self:
        if self.kind == "test_set" or self.needs_disagreement:
            raise ValueError("a test set, or a design by disagreement, cannot be simulated here: choose another")
        design = self.build()
        if design.learns and not self.figures:
            raise ValueError(f"{self.kind} learns from earlier answers, which is not simulated here: choose another")
        unknown = [name for name in design.estimated if name.partition("_over_")[0] not in self.figures]
        if design.learns and unknown:
            simulated = ", ".join(dict.fromkeys(self.figures.values()))
            raise ValueError(f'for: "{unknown[0]}" is not simulated: choose from {simulated}')
        return self


class PriorityPolicyConfig(PolicyConfig):
    """A policy of an instrument whose adaptive designs sample by uncertainty or by the gap to a model."""

    priority: Literal["", "uncertainty", "gap"] = ""

    @model_validator(mode="after")
    def has_something_to_sample_by(self) -> Self:
        if (self.kind == "uniform") != (self.priority == ""):
            raise ValueError('priority: a design other than uniform needs "uncertainty" or "gap", and uniform neither')
        return self


class PeopleConfig(Strict):
    """The people of a study: `sittings` finish, stage by stage. `dropout` is the share of those who begin that leaves;
    what they have left is dealt to somebody else."""

    sittings: list[int] = Field(min_length=1, max_length=50)
    items: int = Field(ge=1, le=200)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    minutes: float = Field(default=10, gt=0, le=600)

    @model_validator(mode="after")
    def stages_have_people(self) -> Self:
        if any(not 2 <= sittings <= 100_000 for sittings in self.sittings):
            raise ValueError("sittings: each stage needs from 2 to 100,000")
        return self

    @property
    def complete(self) -> int:
        """People who finish."""
        return sum(self.sittings)


class SharedItemsConfig(PeopleConfig):
    """A study in which several people may answer the same item of a stage."""

    responses_per_item: int = Field(default=1, ge=1, le=1000)

    # What an item is called in messages, and the fewest that a stage may draw.
    units: ClassVar[str] = "items"
    fewest: ClassVar[int] = 1

    @model_validator(mode="after")
    def stages_draw_enough(self) -> Self:
        if min(self.drawn) < self.fewest:
            raise ValueError(
                f"responses_per_item: a stage draws fewer than {self.fewest} {self.units}: lower it, or add sittings"
            )
        return self

    @property
    def drawn(self) -> tuple[int, ...]:
        """Items that each stage draws."""
        return tuple(people * self.items // self.responses_per_item for people in self.sittings)


class WholeItemsConfig(SharedItemsConfig):
    """The same, where each item gets its full number of answers."""

    @model_validator(mode="after")
    def stages_draw_whole_items(self) -> Self:
        if any(people * self.items % self.responses_per_item for people in self.sittings):
            raise ValueError("responses_per_item: sittings x items must be a multiple of it in every stage")
        return self


class BudgetConfig(Strict):
    """The whole file, but for its key `instrument`. A subclass adds what its instrument needs, such as a bank."""

    title: str = Field(min_length=1, max_length=200)
    seed: int = Field(default=1, ge=0, lt=SEED_LIMIT)
    studies: int = Field(default=100, ge=2, le=MOST_STUDIES)
    study: PeopleConfig
    money: Prices = Prices()

    # The key of what is compared.
    # What is compared: the file's key, and the word for one of them.
    compared: ClassVar[str] = "policies"
    each: ClassVar[str] = "policy"

    @model_validator(mode="after")
    def plans_have_names_of_their_own(self) -> Self:
        names = [plan.name for plan in getattr(self, self.compared)]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.compared}: two have the same name: make them differ")
        return self


class PoliciesConfig(BudgetConfig):
    """A file that compares policies."""

    policies: list[PolicyConfig] = Field(min_length=1, max_length=12)


@dataclass(frozen=True)
class Costs:
    """People, hours and money, in expectation: the same under every policy.

    `people` begin, `complete` finish and are paid; `hours` are all people's: those who leave spend half the time.
    """

    people: int
    complete: float
    hours: float
    rewards: float
    fees: float
    currency: str

    @classmethod
    def of(cls, money: Prices, *, people: int, complete: float, minutes: float) -> Self:
        """People who leave are not paid, and spend half the time on average."""
        rewards = complete * money.reward
        return cls(
            people=people,
            complete=complete,
            hours=(complete + (people - complete) / 2) * minutes / 60,
            rewards=rewards,
            fees=rewards * money.platform_fee * (1 + money.tax_on_fee),
            currency=money.currency,
        )

    @property
    def total(self) -> float:
        return self.rewards + self.fees

    def __str__(self) -> str:
        paid = f"{number(self.rewards)} rewards + {number(self.fees)} fees = {number(self.total)} {self.currency}"
        return (
            f"{integer(self.people)} people begin, {number(self.complete, 0)} finish; {number(self.hours, 0)} hours; "
            f"{paid if self.total else 'nobody is paid'}."
        )
