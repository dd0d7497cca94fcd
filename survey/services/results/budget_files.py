"""What the budget files of all instruments share: people, prices, policies by name, and what people cost."""

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

import bandit
from bandit import DesignError
from survey.contracts.budgets import BudgetPlanner
from survey.exceptions import FileErrors, Problem
from survey.figures.words import integer, number
from survey.input_tables import decoding
from survey.study_file import SEED_LIMIT, DesignConfig, Strict, dotted

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")
NORMAL = bandit.student_t_quantile(0.975, math.inf)
POWER = NORMAL + bandit.student_t_quantile(0.8, math.inf)
"""The smallest difference that a two-sided test at 5 % finds with 80 % power, in standard errors."""


def found_by_width(width: float) -> float:
    """That difference, from the width of the difference's 95 % interval and in its unit."""
    return POWER * width / (2 * NORMAL)


class Prices(Strict):
    currency: str = Field(default="USD", min_length=1, max_length=10)
    reward: float = Field(default=2.5, ge=0)
    platform_fee: float = Field(default=0.333, ge=0, le=5)
    tax_on_fee: float = Field(default=0.0, ge=0, le=1)


class PolicyConfig(DesignConfig):
    """A design with a name. It holds from stage 2; the first stage is uniform under every policy."""

    name: str = Field(min_length=1, max_length=60)

    @model_validator(mode="after")
    def can_be_simulated(self) -> "PolicyConfig":
        if self.kind == "test_set" or self.needs_disagreement:
            raise ValueError("a test set, or a design by disagreement, cannot be simulated here: choose another")
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


class BudgetFileConfig(Strict):
    """What the budget file of every instrument says, next to its bank and its policies."""

    title: str = Field(min_length=1, max_length=200)
    seed: int = Field(default=1, ge=0, lt=SEED_LIMIT)
    studies: int = Field(default=100, ge=2, le=10_000)
    study: PeopleConfig
    money: Prices = Prices()


Config = TypeVar("Config", bound=BudgetFileConfig)


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

    @property
    def total(self) -> float:
        return self.rewards + self.fees


def costs_of(money: Prices, *, people: int, complete: float, minutes: float) -> Costs:
    """People who leave are not paid, and spend half the time on average."""
    rewards = complete * money.reward
    return Costs(
        people=people,
        complete=complete,
        hours=(complete + (people - complete) / 2) * minutes / 60,
        rewards=rewards,
        fees=rewards * money.platform_fee * (1 + money.tax_on_fee),
        currency=money.currency,
    )


def read_toml(path: Path) -> dict[str, Any]:
    """
    Raises:
        FileErrors: the file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(decoding.toml_text(decoding.read_bytes(path), str(path)))
    except tomllib.TOMLDecodeError as exc:
        raise FileErrors([Problem(str(path), None, "", f"not TOML: {exc}")]) from exc


def checked(model: type[Model], raw: Mapping[str, Any], path: Path) -> Model:
    """
    Raises:
        FileErrors: values are wrong; lists every problem.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as exc:
        raise FileErrors(_problem(path, error) for error in exc.errors(include_url=False)) from exc


def _problem(path: Path, error: Mapping[str, Any]) -> Problem:
    return Problem(str(path), None, dotted(error["loc"]) or "file", error["msg"].removeprefix("Value error, "))


def own_names(policies: Sequence[PolicyConfig]) -> None:
    """
    Raises:
        ValueError: two policies have the same name.
    """
    names = [policy.name for policy in policies]
    if len(set(names)) != len(names):
        raise ValueError("policies: two have the same name: make them differ")


def cost_lines(costs: Costs) -> Iterator[str]:
    """People, hours and money in a sentence."""
    yield (
        f"{integer(costs.people)} people begin, {number(costs.complete, 0)} finish; {number(costs.hours, 0)} hours; "
        f"{number(costs.rewards)} rewards + {number(costs.fees)} fees = {number(costs.total)} {costs.currency}."
    )


def each_study(work: Callable[[int], Result], studies: int, *, jobs: int, progress: Callable[[], None]) -> list[Result]:
    """What `work` makes of each number of a study, in their order.

    Args:
        work: a function that a process without Django can load. progress: is called after each study.
    """
    outcomes = []
    if jobs == 1:
        for study in range(studies):
            outcomes.append(work(study))
            progress()
        return outcomes
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for result in pool.map(work, range(studies), chunksize=max(1, studies // (8 * jobs))):
            outcomes.append(result)
            progress()
    return outcomes


@dataclass(frozen=True)
class BudgetFile(BudgetPlanner, Generic[Config]):
    """The budget file of an instrument, read as its `config_class`."""

    path: Path
    config: Config

    config_class: ClassVar[type[BudgetFileConfig]]

    @classmethod
    def read(cls, raw: Mapping[str, Any], *, path: Path, studies: int | None) -> Self:
        config: Any = checked(cls.config_class, raw, path)
        return cls(path, config if studies is None else config.model_copy(update={"studies": studies}))

    @property
    def costs(self) -> Costs:
        study = self.config.study
        begin = round(study.complete / (1 - study.dropout))
        return costs_of(self.config.money, people=begin, complete=study.complete, minutes=study.minutes)

    @contextmanager
    def policy(self, name: str) -> Iterator[None]:
        """A design that does not fit the sizes is a problem of the policy with that name.

        Raises:
            FileErrors: it does not fit.
        """
        try:
            yield
        except DesignError as exc:
            raise FileErrors([Problem(str(self.path), None, f"policies.{name}", str(exc))]) from exc
