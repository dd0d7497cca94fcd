"""Planning the budget of a belief study: what its file says, and its policies and frontier."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from bandit.designs import MIN_TRADE_OFF, Design, EpsilonGreedy, Proportional
from bandit.errors import DesignError
from bandit.robust import MIN_PEOPLE, Robust
from bandit.roles import plan_roles
from survey.contracts.budget_files import MOST_STUDIES, BudgetConfig, Costs, PeopleConfig, PolicyConfig
from survey.contracts.budgets import BudgetPlanner, PlanOutlook, PoolOutlook, Simulated, StudyPlan
from survey.contracts.reports import ReportFile, ReportResult
from survey.figures.words import number, percent, points, short
from survey.models import Question
from survey.study_file import StudyConfig

from . import tables
from .pools import larger_pools
from .simulation import NAMES, TRUTHS, BeliefPlan, StudySetting, World, one_study
from .worlds import BankShape, TruthShape, world_of


class StudyShape(PeopleConfig):
    """The people who begin; what those who leave have left is dealt to nobody."""

    items: int = Field(default=15, ge=1, le=200)
    candidates: int = Field(default=12_000, ge=1, le=1_000_000)
    holdout: float = Field(default=0.1, ge=0, lt=1)
    controls: float = Field(default=0.0667, ge=0, lt=1)
    returners: float = Field(default=0.0, ge=0, lt=1)
    speeders: float = Field(default=0.0, ge=0, lt=1)
    minutes: float = Field(default=12, gt=0, le=600)

    @model_validator(mode="after")
    def somebody_stays(self) -> "StudyShape":
        if self.dropout + self.returners >= 1:
            raise ValueError("dropout and returners: nobody would stay; lower one")
        return self


class BeliefPolicyConfig(PolicyConfig):
    figures: ClassVar[Mapping[str, str]] = NAMES


class BeliefBudgetConfig(BudgetConfig):
    policies: list[BeliefPolicyConfig] = Field(min_length=1, max_length=12)
    studies: int = Field(default=30, ge=2, le=MOST_STUDIES)
    bank: BankShape
    truth: TruthShape = TruthShape()
    study: StudyShape
    # Each is simulated as the epsilon of epsilon_greedy, the trade_off of proportional, and 1 less the find of robust.
    frontier: list[Annotated[float, Field(ge=MIN_TRADE_OFF, le=1)]] = Field(default=[0.1, 0.2, 0.4], max_length=10)
    # Simulated studies of each point; as many as of each policy where it is left out.
    frontier_studies: int | None = Field(default=None, ge=2, le=MOST_STUDIES)

    @model_validator(mode="after")
    def frontier_has_each_number_once(self) -> "BeliefBudgetConfig":
        if len(set(self.frontier)) != len(self.frontier):
            raise ValueError("frontier: a number is there twice: remove one")
        return self


EFFECTS = {
    "outcome": "between evidence answered incorrectly and correctly",
    "condition": "between two conditions",
    "evidence": "between evidence and none",
}


class BeliefBudget(BudgetPlanner[BeliefBudgetConfig, BeliefPlan]):
    """A file such as `studies/example-budget.toml`: its policies, then the points of the frontier between finding and
    estimating. `left_out` names points that cannot be drawn, with the reasons.

    Args:
        world: the bank and its truth, to replace those that the file describes. policies: designs by name, in place of
            the file's.
    """

    config_model = BeliefBudgetConfig
    columns = tables.POLICIES
    views = tables.POLICY_VIEWS
    note = ""

    def __init__(
        self,
        config: BeliefBudgetConfig,
        *,
        world: World | None = None,
        policies: Mapping[str, tuple[Design, ...]] | None = None,
    ) -> None:
        super().__init__(config)
        self._world = world
        self.policies = policies or {policy.name: (policy.build(),) for policy in config.policies}
        self.frontier, self.left_out = frontier_of(config)

    @classmethod
    def larger_pools(cls, config: StudyConfig, questions: Sequence[Question]) -> Sequence[PoolOutlook]:
        return larger_pools(cls, config, questions)

    @property
    def needs_database(self) -> bool:
        return bool(self.config.bank.name)

    @property
    def plans(self) -> Sequence[StudyPlan[BeliefPlan]]:
        """
        Raises:
            NotFound: no such bank.
        """
        config = self.config
        world = self._world = self._world or world_of(config.bank, config.truth)
        shape = config.study.model_dump(exclude={"minutes"})
        setting = StudySetting(**{**shape, "sittings": tuple(config.study.sittings)})
        return [
            *(StudyPlan(name, BeliefPlan(world, setting, designs)) for name, designs in self.policies.items()),
            *(
                StudyPlan(f"{kind} {value}", BeliefPlan(world, setting, (design,)), config.frontier_studies)
                for kind, value, design in self.frontier
            ),
        ]

    @classmethod
    def of_study(cls, plan: BeliefPlan, number: int) -> BeliefPlan:
        return replace(plan, truth=number % TRUTHS)

    @staticmethod
    def simulate(plan: BeliefPlan, rng: np.random.Generator) -> Simulated:
        return one_study(plan, rng=rng)

    @property
    def costs(self) -> Costs:
        study = self.config.study
        complete = study.complete * (1 - study.dropout)
        return Costs.of(self.config.money, people=study.complete, complete=complete, minutes=study.minutes)

    @property
    def sizes(self) -> str:
        truth = self.config.truth
        return (
            f"assumed: {percent(truth.changes_incorrect, 0)} of beliefs change after an incorrect, "
            f"{percent(truth.changes_correct, 0)} after a correct answer; logit sd {short(truth.pair_sd)} between "
            f"pairs ({percent(truth.hidden_share, 0)} of it in no text) and {short(truth.respondent_sd)} between people"
        )

    def report_result(self, outlooks: Sequence[PlanOutlook[BeliefPlan]]) -> ReportResult:
        """The usual one, with a sentence for each policy, what each stage finds, the frontier, and pictures."""
        of_policies, along = outlooks[: len(self.policies)], outlooks[len(self.policies) :]
        result, costs = super().report_result(of_policies), self.costs
        sentences = [sentence(self.config, costs, outlook) for outlook in of_policies]
        frontier = [
            tables.FrontierPoint.of(kind, value, outlook)
            for (kind, value, _design), outlook in zip(self.frontier, along, strict=True)
        ]
        return replace(
            result,
            lines=[*result.lines, *sentences],
            tables=[
                tables.with_costs(result.tables[0], costs),
                tables.stages(of_policies),
                *([tables.frontier(frontier)] if frontier else []),
            ],
            pictures=tables.pictures(of_policies, frontier),
            files=[ReportFile("sentences.txt", lambda: ("\n\n".join(sentences) + "\n").encode())],
            notes=(*self.left_out, *self._taught_by_too_few()),
            data={
                "config": self.config.model_dump(mode="json", exclude={"policies"}),
                "costs": {**vars(costs), "total": costs.total},
                "policies": [tables.as_json(outlook) for outlook in of_policies],
                "frontier": [vars(point) for point in frontier],
                "sentences": sentences,
            },
        )

    def _taught_by_too_few(self) -> Iterator[str]:
        """That a design which learns draws uniformly after a first stage of a few people."""
        study = self.config.study
        people = plan_roles(
            booklets=study.sittings[0], size=study.items, holdout=study.holdout, controls=study.controls
        ).sampled.booklets
        learning = [name for name, designs in self.policies.items() if any(design.learns for design in designs)]
        if len(study.sittings) > 1 and people < MIN_PEOPLE and learning:
            yield (
                f"{', '.join(learning)}: stage 1 has {people} people without a holdout's, and {MIN_PEOPLE} are needed "
                "to learn from, so that stage 2 is uniform but for find, as it would be in the study."
            )


def frontier_of(config: BeliefBudgetConfig) -> tuple[list[tuple[str, float, Design]], tuple[str, ...]]:
    """The designs of the frontier with their kinds and values, and those that do not fit the study, with reasons.

    Empty for a study of one stage, which is drawn uniformly.
    """
    study = config.study
    if len(study.sittings) < 2:
        return [], ()
    designs: list[tuple[str, float, Design]] = [
        *(("epsilon_greedy", value, EpsilonGreedy(epsilon=value)) for value in sorted(config.frontier)),
        *(("proportional", value, Proportional(trade_off=value)) for value in sorted(config.frontier)),
        *(("robust", find, Robust(find=find)) for find in sorted(round(1 - value, 6) for value in config.frontier)),
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


def sentence(config: BeliefBudgetConfig, costs: Costs, outlook: PlanOutlook[BeliefPlan]) -> str:
    """A policy's results, to paste into a plan or a preregistration."""
    sizes = {words: outlook.mean(f"detectable_{effect}") for effect, words in EFFECTS.items()}
    differences = ", ".join(f"{points(size)} {words}" for words, size in sizes.items() if size is not None)
    width = outlook.width("share")
    precise = (
        f"the share of beliefs that change over all pairs within {points(width / 2)} (95 % interval)"
        if width is not None
        else "no share over all pairs, since some pairs have no chance of being shown"
    )
    stages = len(config.study.sittings)
    paid = f" and costs {number(costs.total)} {costs.currency}, platform fee included" if costs.total else ""
    return (
        f"With {costs.people} people in {stages} stage{'' if stages == 1 else 's'} of {config.study.items} items per "
        f'person, of whom {number(costs.complete, 0)} are expected to finish, the policy "{outlook.plan.name}" is '
        "expected to "
        f"find {number(outlook.mean('changes_found'), 0)} changes of belief ({number(tables.per_answer(outlook))} per "
        f"answer) and to estimate {precise}"
        + (f"; with 80 % power (two-sided, 5 %) it detects differences of {differences}" if differences else "")
        + f". This takes {number(costs.hours, 0)} hours of people's time{paid}. (Simulated: {len(outlook.studies)} "
        "studies with a stated truth, in which "
        f"{percent(config.truth.changes_incorrect, 0)} of beliefs change after an incorrect and "
        f"{percent(config.truth.changes_correct, 0)} after a correct answer.)"
    )
