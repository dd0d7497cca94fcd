"""What the budget files of all instruments share: prices, policies by name, and what people cost."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from survey.exceptions import FileErrors, Problem
from survey.study_file import DesignConfig, Strict, dotted

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")
POWER = 1.959964 + 0.841621
"""The smallest difference that a two-sided test at 5 % finds with 80 % power, in standard errors."""


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
        if self.kind == "test_set" or self.by == "disagreement":
            raise ValueError("a test set, or a design by disagreement, cannot be simulated here: choose another")
        return self


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
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise FileErrors([Problem(str(path), None, "", f"cannot be read: {exc.strerror}")]) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
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
        f"{costs.people:,} people begin, {costs.complete:,.0f} finish; {costs.hours:,.0f} hours; "
        f"{costs.rewards:,.2f} rewards + {costs.fees:,.2f} fees = {costs.total:,.2f} {costs.currency}."
    )


def each_study(work: Callable[[int], Result], studies: int, *, jobs: int, progress: Callable[[], None]) -> list[Result]:
    """What `work` makes of each number of a study, in their order.

    Args:
        work: a function that a process without Django can load. progress: is called after each study.
    """
    found = []
    if jobs == 1:
        for number in range(studies):
            found.append(work(number))
            progress()
        return found
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for one in pool.map(work, range(studies), chunksize=max(1, studies // (8 * jobs))):
            found.append(one)
            progress()
    return found
