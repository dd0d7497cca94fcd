"""Planning a budget: a TOML file with a truth, a study, its prices and policies, and the results of simulating them.

`budget` is the simulation. `budget_report` plans the budget of an existing study by its study file.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from bandit.designs import MIN_TRADE_OFF, Design, EpsilonGreedy, Proportional
from bandit.errors import DesignError
from bandit.roles import plan_roles
from survey.exceptions import FileErrors, Problem
from survey.figures.words import number, percent, points, short
from survey.models import Question
from survey.services.banks.importing import find_bank
from survey.services.results import budget_files
from survey.services.results.budget_files import Costs, PolicyConfig, Prices, checked, own_names, read_toml
from survey.study_file import SEED_LIMIT, Strict

from . import simulation as budget
from .simulation import Policy, PolicyOutlook, StudySetting, World

OUTCOME, CONDITION, EVIDENCE = budget.EFFECTS


class BankShape(Strict):
    """An imported bank by name, or the shape of one: questions spread evenly over tasks, and tasks over domains."""

    name: str = ""
    questions: int | None = Field(default=None, ge=2, le=100_000)
    tasks: int | None = Field(default=None, ge=1, le=1000)
    domains: int | None = Field(default=None, ge=1, le=100)

    @model_validator(mode="after")
    def one_or_the_other(self) -> "BankShape":
        shape = (self.questions, self.tasks, self.domains)
        if bool(self.name) == any(part is not None for part in shape) or (not self.name and None in shape):
            raise ValueError("give either a name or all of questions, tasks and domains")
        if self.questions and self.tasks and self.domains and not self.questions >= self.tasks >= self.domains:
            raise ValueError("there must be at least as many questions as tasks, and as many tasks as domains")
        return self


class TruthShape(Strict):
    changes_incorrect: float = Field(default=0.46, gt=0, lt=1)
    changes_correct: float = Field(default=0.32, gt=0, lt=1)
    pair_sd: float = Field(default=0.9, ge=0, le=5)
    hidden_share: float = Field(default=1 / 3, ge=0, le=1)
    respondent_sd: float = Field(default=1.0, ge=0, le=5)
    false_change: float = Field(default=0.05, ge=0, le=1)


class StudyShape(Strict):
    sittings: list[int] = Field(min_length=1, max_length=50)
    items: int = Field(default=15, ge=1, le=200)
    candidates: int = Field(default=12_000, ge=1, le=1_000_000)
    holdout: float = Field(default=0.1, ge=0, lt=1)
    controls: float = Field(default=0.0667, ge=0, lt=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    returners: float = Field(default=0.0, ge=0, lt=1)
    speeders: float = Field(default=0.0, ge=0, lt=1)
    minutes: float = Field(default=12, gt=0, le=600)

    @model_validator(mode="after")
    def sittings_are_people(self) -> "StudyShape":
        if any(not 2 <= sittings <= 100_000 for sittings in self.sittings):
            raise ValueError("sittings: each stage needs from 2 to 100,000")
        if self.dropout + self.returners >= 1:
            raise ValueError("dropout and returners: nobody would stay; lower one")
        return self


class BudgetConfig(Strict):
    title: str = Field(min_length=1, max_length=200)
    seed: int = Field(default=1, ge=0, lt=SEED_LIMIT)
    studies: int = Field(default=30, ge=2, le=10_000)
    bank: BankShape
    truth: TruthShape = TruthShape()
    study: StudyShape
    money: Prices = Prices()
    policies: list[PolicyConfig] = Field(min_length=1, max_length=12)
    # Each of them is simulated as the epsilon of epsilon_greedy and as the trade_off of proportional.
    frontier: list[Annotated[float, Field(ge=MIN_TRADE_OFF, le=1)]] = Field(default=[0.1, 0.2, 0.4], max_length=10)
    # Simulated studies of each point; as many as of each policy where it is left out.
    frontier_studies: int | None = Field(default=None, ge=2, le=10_000)

    @model_validator(mode="after")
    def policies_have_names_of_their_own(self) -> "BudgetConfig":
        own_names(self.policies)
        if len(set(self.frontier)) != len(self.frontier):
            raise ValueError("frontier: a number is there twice: remove one")
        return self


@dataclass(frozen=True)
class FrontierPoint:
    """What a design finds and how precisely it estimates, where it draws every stage but the first.

    `value`: the epsilon of `epsilon_greedy`, the trade_off of `proportional`. `found`: the share of the answers from
    stage 2 on that are changes, expected; `error`: the simulation's own standard error of it. `width`: of the final
    95 % interval of the share that changes over all pairs.
    """

    kind: str
    value: float
    found: float
    error: float
    width: float


@dataclass(frozen=True)
class PlannedBudget:
    """The results of a file's policies, and the frontier between finding and estimating; `left_out` names points of
    it that cannot be drawn, with the reasons."""

    config: BudgetConfig
    costs: Costs
    outlooks: tuple[PolicyOutlook, ...]
    frontier: tuple[FrontierPoint, ...] = ()
    left_out: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """One sentence for each policy, to paste into a plan or a preregistration."""
        return [_sentence(self.config, self.costs, outlook) for outlook in self.outlooks]


def read_budget(path: Path) -> BudgetConfig:
    """
    Raises:
        FileErrors: the file cannot be read, is not TOML, or holds wrong values; lists every problem.
    """
    return checked(BudgetConfig, read_toml(path), path)


def plan_budget(
    config: BudgetConfig,
    *,
    world: World | None = None,
    policies: Sequence[Policy] = (),
    jobs: int = 2,
    progress: Callable[[], None] = lambda: None,
) -> PlannedBudget:
    """Simulate every policy of the file, and its frontier; `progress` is called after each of `simulated_studies`.

    Args:
        world: the bank and its truth, to replace those that the file describes.
        policies: instead of the file's.

    Raises:
        FileErrors: a policy does not fit the candidates, with the sizes.
        NotFound: no such bank.
    """
    asked = list(policies) or [Policy(policy.name, policy.build()) for policy in config.policies]
    designs, left_out = frontier_of(config)
    study = config.study
    same: dict[str, Any] = {
        "world": world or world_of(config),
        "setting": StudySetting(
            sittings=tuple(study.sittings),
            items=study.items,
            candidates=study.candidates,
            holdout=study.holdout,
            controls=study.controls,
            dropout=study.dropout,
            returners=study.returners,
            speeders=study.speeders,
        ),
        "seed": config.seed,
        "jobs": jobs,
        "progress": progress,
    }
    along = [Policy(f"{kind} {value}", design) for kind, value, design in designs]
    try:
        outlooks = budget.simulate(policies=asked, studies=config.studies, **same)
        traced = budget.simulate(policies=along, studies=_frontier_studies(config), **same)
    except DesignError as exc:
        raise FileErrors([Problem(config.title, None, "", f"a policy cannot be simulated: {exc}")]) from exc
    return PlannedBudget(
        config=config,
        costs=costs_of(config),
        outlooks=tuple(outlooks),
        frontier=tuple(
            _point(kind, value, outlook) for (kind, value, _design), outlook in zip(designs, traced, strict=True)
        ),
        left_out=left_out,
    )


def _frontier_studies(config: BudgetConfig) -> int:
    return config.frontier_studies or config.studies


def simulated_studies(config: BudgetConfig) -> int:
    """How many studies the file asks for: of each policy, and of each point of the frontier."""
    return config.studies * len(config.policies) + _frontier_studies(config) * len(frontier_of(config)[0])


def frontier_of(config: BudgetConfig) -> tuple[list[tuple[str, float, Design]], tuple[str, ...]]:
    """The designs of the frontier with their kinds and values, and those that do not fit the study, with reasons.

    Empty for a study of one stage, which is drawn uniformly.
    """
    study = config.study
    if len(study.sittings) < 2:
        return [], ()
    designs: list[tuple[str, float, Design]] = [
        *(("epsilon_greedy", value, EpsilonGreedy(epsilon=value)) for value in sorted(config.frontier)),
        *(("proportional", value, Proportional(trade_off=value)) for value in sorted(config.frontier)),
    ]
    fitting, left_out = [], []
    for kind, value, design in designs:
        try:
            for sittings in study.sittings[1:]:
                roles = plan_roles(booklets=sittings, size=study.items, holdout=study.holdout, controls=study.controls)
                design.allocate(roles.sampled.items, design.ends(study.candidates).sizes)
        except DesignError as exc:
            left_out.append(f"{kind} {short(value)} is not on the frontier: {exc}")
        else:
            fitting.append((kind, value, design))
    return fitting, tuple(left_out)


def _point(kind: str, value: float, outlook: PolicyOutlook) -> FrontierPoint:
    later = sum(outlook.answers[1:])
    return FrontierPoint(
        kind=kind,
        value=value,
        found=sum(outlook.found[1:]) / later if later else math.nan,
        # Of the total, in which the first stage's share is small and the same under every policy.
        error=outlook.found_error / later if later else math.nan,
        width=outlook.widths[0],
    )


def world_of(config: BudgetConfig) -> World:
    """The bank's tasks and domains with the truth about them."""
    shape = config.bank
    if shape.name:
        kinds = kinds_of(find_bank(shape.name).questions.filter(flag=Question.Flag.NONE).select_related("task"))
        if len(kinds) < 2:
            message = f"{shape.name} has {len(kinds)} questions without a flag, fewer than 2"
            raise FileErrors([Problem("", None, "bank.name", message)])
    else:
        count, tasks, domains = shape.questions or 0, shape.tasks or 1, shape.domains or 1
        of_question = [number * tasks // count for number in range(count)]
        kinds = [(f"task {task}", f"domain {task * domains // tasks}") for task in of_question]
    return world_over(kinds, config.truth)


def kinds_of(questions: Iterable[Question]) -> list[tuple[str, str]]:
    """Task and domain of each question; a task without a domain counts as its own domain."""
    return [(question.task.name, question.task.domain or question.task.name) for question in questions]


def world_over(kinds: Sequence[tuple[str, str]], truth: TruthShape) -> World:
    """Questions of these tasks and domains with the truth about their pairs."""
    return World(
        tasks=tuple(task for task, _domain in kinds),
        domains=tuple(domain for _task, domain in kinds),
        rates=(truth.changes_incorrect, truth.changes_correct),
        pair_sd=truth.pair_sd,
        hidden_share=truth.hidden_share,
        respondent_sd=truth.respondent_sd,
        false_change=truth.false_change,
    )


def costs_of(config: BudgetConfig) -> Costs:
    """What the people of a file cost."""
    study = config.study
    people = sum(study.sittings)
    return budget_files.costs_of(
        config.money, people=people, complete=people * (1 - study.dropout), minutes=study.minutes
    )


def _sentence(config: BudgetConfig, costs: Costs, outlook: PolicyOutlook) -> str:
    effects = {
        OUTCOME: "between evidence answered incorrectly and correctly",
        CONDITION: "between two conditions",
        EVIDENCE: "between evidence and none",
    }
    detectable = ", ".join(
        f"{points(size)} {effects[name]}"
        for name, size in zip(budget.EFFECTS, outlook.detectable, strict=True)
        if size is not None
    )
    width = outlook.widths[0]
    precise = (
        f"the share of beliefs that change over all pairs within {points(width / 2)} (95 % interval)"
        if math.isfinite(width)
        else "no share over all pairs, since some pairs have no chance of being shown"
    )
    stages = len(config.study.sittings)
    return (
        f"With {costs.people} people in {stages} stage{'' if stages == 1 else 's'} of {config.study.items} items per "
        f'person, of whom {number(costs.complete, 0)} are expected to finish, the policy "{outlook.name}" is '
        "expected to "
        f"find {number(outlook.total, 0)} changes of belief ({number(outlook.per_answer)} per answer) and to "
        f"estimate {precise}"
        + (f"; with 80 % power (two-sided, 5 %) it detects differences of {detectable}" if detectable else "")
        + f". This takes {number(costs.hours, 0)} hours of people's time and costs {number(costs.total)} "
        f"{costs.currency}, platform fee included. (Simulated: {outlook.studies} studies with a stated truth, in which "
        f"{percent(config.truth.changes_incorrect, 0)} of beliefs change after an incorrect and "
        f"{percent(config.truth.changes_correct, 0)} after a correct answer.)"
    )
