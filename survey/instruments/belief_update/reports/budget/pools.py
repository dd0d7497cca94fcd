"""What larger pools would find: the study of a file, simulated with its own pool and with larger ones.

A larger pool has more candidates with a high prediction. It costs only scoring, and finds more with as many answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bandit.candidates import universe_size
from bandit.designs import Design, EpsilonGreedy, Uncertainty
from bandit.errors import DesignError
from survey.contracts.budgets import BudgetPlanner, PoolOutlook, StudyPlan
from survey.exceptions import FileErrors
from survey.models import Question
from survey.services.results import budgets
from survey.study_file import StageConfig, StudyConfig

from .simulation import BeliefPlan, StudySetting
from .tables import by_stage
from .worlds import TruthShape, kinds_of, world_over

TIMES = (4, 16)
STUDIES = 2
Planner = type[BudgetPlanner[Any, Any]]
# What the simulation holds of a pool: a number of 8 bytes for each candidate and feature.
MAX_NUMBERS = 8_000_000
MAX_CANDIDATES = 160_000  # A study of the paper's size with such a pool takes a second.


def larger_pools(planner: Planner, config: StudyConfig, questions: Sequence[Question]) -> list[PoolOutlook]:
    """The study's own pool first, then larger ones; none where it does not draw by predictions from a pool, where the
    pool has all pairs already, or where it cannot be simulated, as with several evidence questions."""
    if config.instrument.options.get("evidence_questions", 1) > 1:
        return []
    kinds = kinds_of(questions)
    stages = [stage for stage in config.stages[config.pilots :] if stage.design.kind != "test_set"]
    is_adaptive = any(stage.design.kind != "uniform" for stage in stages[1:])
    if config.candidates.kind != "pool" or not is_adaptive or len(kinds) < 2 or config.predictor is None:
        return []
    if any(stage.design.needs_disagreement or stage.sittings < 2 for stage in stages):
        return []
    outlooks = []
    domains = len({domain for _task, domain in kinds})
    most = min(MAX_CANDIDATES, universe_size(len(kinds)), MAX_NUMBERS // (4 + 2 * domains))
    for size in _sizes(config.candidates.size, most):
        try:
            outlooks.append(_outlook(planner, config, stages, kinds, size))
        except (DesignError, FileErrors):
            break
    return outlooks if len(outlooks) > 1 else []


def _sizes(own: int, most: int) -> Iterator[int]:
    yield own
    for times in TIMES:
        if own * times <= most:
            yield own * times


def _outlook(
    planner: Planner, config: StudyConfig, stages: Sequence[StageConfig], kinds: list[tuple[str, str]], size: int
) -> PoolOutlook:
    designs = tuple(_with_as_many_at_the_top(stage.design.build(), size / config.candidates.size) for stage in stages)
    plan = BeliefPlan(
        world_over(kinds, TruthShape()),
        StudySetting(
            sittings=tuple(stage.sittings for stage in stages),
            items=config.sitting.items,
            candidates=size,
            holdout=config.roles.holdout,
            controls=config.roles.controls,
            dropout=0.1,
        ),
        designs,
    )
    plans = [StudyPlan(str(size), plan)]
    (outlook,) = budgets.simulate(planner, plans, studies=STUDIES, seed=config.seed, source=config.slug)
    return PoolOutlook(size=size, share=sum(by_stage(outlook, "changed")[1:]) / sum(by_stage(outlook, "answers")[1:]))


def _with_as_many_at_the_top(design: Design, times: float) -> Design:
    if isinstance(design, EpsilonGreedy | Uncertainty):
        return replace(design, top_fraction=design.top_fraction / times)
    return design
