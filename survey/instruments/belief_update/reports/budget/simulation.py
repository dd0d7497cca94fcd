"""What a study would find, and how precise it would be, by simulation. Imports neither Django nor models.

Combines `bandit` (designs, estimates, simulated people) and `predictors.evaluation` on plain arrays. In each simulated
study all policies meet the same truth, with different people. After each stage the predictor is trained again: a
logistic regression on outcome, same task, same domain, and both domains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit import Design, Estimate
from bandit.combining import CLUSTERING
from bandit.roles import NO_EVIDENCE
from predictors.evaluation import area_under_curve
from survey.contracts.budgets import POWER, Simulated, detectable
from survey.figures import Figure
from survey.services.results.estimates.study_figures import StagePart, combine, difference, effect, estimate

TRUTHS = 2  # different banks, so that one lucky bank does not decide
TEST_PAIRS = 4000
LOWEST_RATE = 0.02  # of changes without evidence, where a difference would take more than there is


@dataclass(frozen=True)
class World:
    """The bank, by task and domain of each question, and the truth about its pairs and the people.

    `rates`: shares that change after an incorrect and after a correct answer; `pair_sd`, `respondent_sd`: standard
    deviations of logits; `hidden_share`: the share of the pairs' variance that no text shows; `false_change`: the share
    that changes without evidence.
    """

    tasks: tuple[str, ...]
    domains: tuple[str, ...]
    rates: tuple[float, float]
    pair_sd: float
    hidden_share: float
    respondent_sd: float
    false_change: float


@dataclass(frozen=True)
class StudySetting:
    """A study: sittings by stage, items per sitting, candidates per stage, roles, and the shares of people who leave,
    who come back after their sitting has expired, and who answer at random."""

    sittings: tuple[int, ...]
    items: int
    candidates: int
    holdout: float
    controls: float
    dropout: float
    returners: float = 0.0
    speeders: float = 0.0

    def share_that_changes(self, world: World) -> float:
        """The true values over all pairs and people, including those who answer at random: what the study estimates."""
        return (1 - self.speeders) * sum(world.rates) / 2 + self.speeders * bandit.RANDOM_CHANGE


@dataclass(frozen=True)
class BeliefPlan:
    """What is simulated: a study under a policy.

    `designs`: of each stage in order, or one for all of them; the first stage is uniform all the same. `truth`: the
    seed of the truth about pairs and people.
    """

    world: World
    setting: StudySetting
    designs: tuple[Design, ...]
    truth: int = 0

    def design(self, stage: int) -> Design:
        """Of a stage, from 0. The first is always uniform, since nothing is scored before it."""
        return self.designs[min(stage, len(self.designs) - 1)] if stage else bandit.Uniform()


# One study


@cache
def truth_of(world: World, seed: int) -> bandit.BeliefTruth:
    return bandit.BeliefTruth.for_bank(
        tasks=world.tasks,
        domains=world.domains,
        seed=seed,
        pair_sd=world.pair_sd,
        hidden_share=world.hidden_share,
        respondent_sd=world.respondent_sd,
        outcome_rates=world.rates,
    )


@cache
def _codes(names: tuple[str, ...]) -> NDArray[np.int64]:
    return np.unique(names, return_inverse=True)[1]


@cache
def _ids(count: int) -> tuple[str, ...]:
    return tuple(f"question {number}" for number in range(count))


def features(world: World, pairs: bandit.Pairs) -> NDArray[np.float64]:
    """The predictor's features of pairs: an intercept, outcome, same task, same domain, both domains; (M, 4 + 2 D)."""
    task, domain = _codes(world.tasks), _codes(world.domains)
    count = int(domain.max()) + 1
    columns = np.zeros((len(pairs), 4 + 2 * count))
    columns[:, 0] = 1
    columns[:, 1] = pairs.outcome
    columns[:, 2] = task[pairs.evidence] == task[pairs.target]
    columns[:, 3] = domain[pairs.evidence] == domain[pairs.target]
    rows = np.arange(len(pairs))
    columns[rows, 4 + domain[pairs.target]] = 1
    columns[rows, 4 + count + domain[pairs.evidence]] = 1
    return columns


def one_study(plan: BeliefPlan, *, rng: np.random.Generator) -> Simulated:
    """Simulate one study of all stages, people and answers.

    Of each stage, from 1: `answers 1` to sampled items, `changed 1`, the changes among those of people who read
    (expected), and `auc 1` over uniform pairs of the predictor trained after it. Of all: `answers`, `changes_found`,
    `auc_last` and the highest that any could have (`auc_highest`); the final estimates `share`, `change` and `size`;
    `covered`, whether the first's interval holds the truth; `naive`, the plain share of all answers; what its answers
    say of the effects `outcome`, `condition` and `evidence`, and as `detectable_outcome` and so on the difference that
    is found with 80 % power.
    """
    world, setting = plan.world, plan.setting
    truth, ids = truth_of(world, plan.truth), _ids(len(world.tasks))
    test = bandit.uniform_pool(n_questions=len(ids), size=TEST_PAIRS, rng=rng).pairs
    judged = bandit.average_over_people(truth.probabilities(test, ids), world.respondent_sd)
    known = features(world, test)
    seen: list[NDArray[np.float64]] = []
    labels: list[NDArray[np.float64]] = []
    people: list[NDArray[np.int64]] = []
    predicted: list[NDArray[np.float64]] = []
    collected: list[_Collected] = []
    by_stage: dict[str, float] = {}
    coefficients: NDArray[np.float64] | None = None
    for index, sittings in enumerate(setting.sittings):
        roles = bandit.plan_roles(
            booklets=sittings,
            size=setting.items,
            holdout=setting.holdout,
            controls=setting.controls,
        )
        for part in ("sampled", "holdout"):
            role = getattr(roles, part)
            if not role.booklets:
                continue
            pool = bandit.uniform_pool(
                n_questions=len(ids), size=setting.candidates if part == "sampled" else role.items, rng=rng
            )
            columns = features(world, pool.pairs)
            scores = None if coefficients is None else bandit.predict_logistic(columns, coefficients)
            design = plan.design(index) if part == "sampled" else bandit.Uniform()
            if design.learns:
                design = design.learn(_evidence(design, collected, predicted), scores)
            drawn = bandit.draw(design=design, n=role.items, scores=scores, n_candidates=len(pool.pairs), rng=rng)
            taken = _answers(world, setting, truth, ids, pool, drawn, role, index, part, rng)
            collected.append(taken)
            if part == "sampled":
                at = taken.at
                seen.append(columns[at])
                predicted.append(_before_the_answers(columns[at], taken, None if scores is None else scores[at]))
                labels.append(taken.changed)
                people.append(taken.part.cluster)
                by_stage[f"answers {index + 1}"] = at.size
                by_stage[f"changed {index + 1}"] = float(taken.expected.sum())
        coefficients = _trained(np.concatenate(seen), np.concatenate(labels), np.concatenate(people))
        by_stage[f"auc {index + 1}"] = _auc(judged, bandit.predict_logistic(known, coefficients))
    stages = range(1, len(setting.sittings) + 1)
    return {
        **by_stage,
        "answers": sum(by_stage[f"answers {stage}"] for stage in stages),
        "changes_found": sum(by_stage[f"changed {stage}"] for stage in stages),
        "auc_last": by_stage[f"auc {stages[-1]}"],
        "auc_highest": _auc(judged, judged),
        **_estimates(collected, setting.share_that_changes(world)),
    }


@dataclass(frozen=True, eq=False)
class _Collected:
    """One part's answers: which candidates, the expected values, changed or not, the change; its controls' answers."""

    part: StagePart
    at: NDArray[np.int64]
    expected: NDArray[np.float64]
    outcome: NDArray[np.int8]
    changed: NDArray[np.float64]
    change: NDArray[np.float64]
    control_changed: NDArray[np.float64]
    control_cluster: NDArray[np.int64]


def _answers(
    world: World,
    setting: StudySetting,
    truth: bandit.BeliefTruth,
    ids: Sequence[str],
    pool: bandit.Pool,
    drawn: bandit.Draw,
    role: bandit.RolePart,
    stage: int,
    name: str,
    rng: np.random.Generator,
) -> _Collected:
    """Deals the part's slots to people at random and has them answered. Controls are numbered after the items."""
    order = rng.permutation(role.booklets * setting.items)
    came = bandit.attend(
        people=role.booklets, items=setting.items, dropout=setting.dropout, returners=setting.returners, rng=rng
    )
    stays = came.in_time.ravel()  # Late answers are stored, but estimates ignore them.
    speeder = rng.random(role.booklets) < setting.speeders if setting.speeders else np.zeros(role.booklets, dtype=bool)
    person = np.repeat(np.arange(role.booklets), setting.items)
    slot = order[stays]
    person = person[stays]
    item = slot < role.items
    without = (slot >= role.items) & (slot < role.items + dict(role.controls).get(NO_EVIDENCE, 0))
    chance = np.full(slot.size, world.false_change)
    outcome = rng.integers(2, size=slot.size)
    at = drawn.selected[slot[item]]
    pairs = pool.pairs.take(at)
    chance[item] = truth.probabilities(pairs, ids)
    outcome[item] = pairs.outcome
    answers = bandit.crowd_answers(
        probability=chance,
        outcome=outcome,
        person=person,
        rng=rng,
        respondent_sd=world.respondent_sd,
        speeder=speeder,
    )
    # Nobody takes part twice: people of other stages and parts have different numbers.
    cluster = person + 1_000_000 * (2 * stage + (name == "holdout"))
    whole = bool(pool.probability == 1)
    part = StagePart(
        stage=stage + 1,
        role=name,
        names=tuple(stratum.name for stratum in drawn.strata),
        sizes=tuple(stratum.size for stratum in drawn.strata),
        slots=tuple(stratum.n for stratum in drawn.strata),
        universe_size=None if whole else pool.universe_size,
        stratum=drawn.stratum[slot[item]].astype(np.int64),
        cluster=cluster[item],
        probability=drawn.inclusion_probability[slot[item]],
        planned_probability=drawn.inclusion_probability,
        people=role.booklets,
    )
    return _Collected(
        part=part,
        at=at,
        expected=bandit.average_over_people(chance[item], world.respondent_sd) * ~speeder[person[item]],
        outcome=outcome[item].astype(np.int8),
        changed=answers.changed[item].astype(np.float64),
        change=(answers.posterior - answers.prior)[item].astype(np.float64),
        control_changed=answers.changed[without].astype(np.float64),
        control_cluster=cluster[without],
    )


FIGURES = {
    "changed": lambda stage: stage.changed,
    "change": lambda stage: stage.change,
    "size": lambda stage: np.abs(stage.change),
}
# By their names and by the titles that `estimate` gives them.
NAMES = {
    **{name: name for name in FIGURES},
    "share that changes": "changed",
    "mean change": "change",
    "mean absolute change": "size",
}


def simulated_figures(design: Design) -> list[str]:
    """The figures of the simulation that a design is drawn for: those it names, the first where it has none of them."""
    wanted = [NAMES.get(name.partition("_over_")[0]) for name in design.estimated]
    return [name for name in dict.fromkeys(wanted) if name] or ["changed"]


def _evidence(
    design: Design, collected: Sequence[_Collected], predicted: Sequence[NDArray[np.float64]]
) -> bandit.Evidence:
    """What the sampled slots of the stages so far say of the design's figures."""
    sampled = [stage for stage in collected if stage.part.role == "sampled"]

    def together(of_stage: Callable[[_Collected], NDArray[np.generic]]) -> NDArray[np.generic]:
        return np.concatenate([of_stage(stage) for stage in sampled])

    return bandit.Evidence.of(
        values={name: together(FIGURES[name]) for name in simulated_figures(design)},
        scores=np.concatenate(predicted),
        chance=together(lambda stage: stage.part.probability),
        stage=together(lambda stage: np.full(stage.at.size, stage.part.stage)),
        cluster=together(lambda stage: stage.part.cluster),
    )


def _before_the_answers(
    columns: NDArray[np.float64], taken: _Collected, scores: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """What was predicted of the answers: the scores that planned the stage, in the first one by folds of people."""
    if scores is not None:
        return scores
    return bandit.cross_fitted_chances(
        columns=columns[:, 1:],
        label=taken.changed,
        cluster=taken.part.cluster,
        item=taken.at,
        rng=np.random.default_rng(0),
    )


def _trained(
    columns: NDArray[np.float64], label: NDArray[np.float64], person: NDArray[np.int64]
) -> NDArray[np.float64]:
    precision = np.ones(columns.shape[1])
    precision[0] = 1e-3
    return bandit.fit_logistic(columns=columns, label=label, precision=precision, cluster=person)


def _auc(chance: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    area = area_under_curve(chance, scores)
    return math.nan if area is None else area


def _estimates(collected: Sequence[_Collected], truth: float) -> Simulated:
    """The final estimates and effects. `truth`: the share of all answers that really changes."""
    changed, change = [stage.changed for stage in collected], [stage.change for stage in collected]
    share = _combined(collected, changed, share=True)
    outcome, condition = _outcome_effect(collected), _condition_effect(collected)
    return {
        "share": Figure.of(share),
        "change": Figure.of(_combined(collected, change, share=False)),
        "size": Figure.of(_combined(collected, [np.abs(own) for own in change], share=False)),
        "covered": float(share is not None and share.interval[0] <= truth <= share.interval[1]),
        "naive": float(np.concatenate(changed).mean()),
        "outcome": outcome,
        "condition": condition,
        "evidence": _evidence_effect(collected, share),
        "detectable_outcome": detectable(outcome),
        "detectable_condition": detectable(condition),
        "detectable_evidence": _smallest_of_evidence(collected, share),
    }


def _combined(
    collected: Sequence[_Collected], values: Sequence[NDArray[np.float64]], *, share: bool
) -> Estimate | None:
    parts = [stage.part for stage in collected]
    estimates = [estimate(part, value, share=share) for part, value in zip(parts, values, strict=True)]
    return combine(parts, estimates, name="", title="", unit="", naive=None).combined


def _outcome_effect(collected: Sequence[_Collected]) -> Figure:
    parts = [stage.part for stage in collected]
    differences = [
        difference(stage.part, stage.changed, first=stage.outcome == 1, second=stage.outcome == 0)
        for stage in collected
    ]
    pooled = [
        stage.part.stage_answers(stage.changed, first=stage.outcome == 1, inside=stage.outcome == 0)
        for stage in collected
    ]
    return Figure.of(combine(parts, differences, name="", title="", unit="", naive=None, pooled=pooled).combined)


def _condition_effect(collected: Sequence[_Collected]) -> Figure:
    """Two conditions, to which people are assigned in turn."""
    parts = [stage.part for stage in collected]
    effects = [
        effect(stage.part, stage.changed, first=stage.part.cluster % 2 == 0, second=stage.part.cluster % 2 == 1)
        for stage in collected
    ]
    return Figure.of(combine(parts, effects, name="", title="", unit="", naive=None).combined)


def _evidence_effect(collected: Sequence[_Collected], share: Estimate | None) -> Figure:
    """Evidence against none: the items' share less the controls' share, as if different people had answered them."""
    changed = np.concatenate([stage.control_changed for stage in collected])
    cluster = np.concatenate([stage.control_cluster for stage in collected])
    if share is None or np.unique(cluster).size < 2:
        return Figure()
    without = bandit.false_change_rate(changed=changed, cluster=cluster)
    variances = share.standard_error**2, without.standard_error**2
    freedoms = share.degrees_of_freedom, without.degrees_of_freedom
    error, freedom = _difference_error(variances, freedoms)
    return Figure(share.value - without.value, standard_error=error, degrees_of_freedom=freedom)


def _smallest_of_evidence(collected: Sequence[_Collected], share: Estimate | None) -> float:
    """The smallest difference between evidence and none that is found with the stated power.

    The error is that at this difference: there the controls' share is that much below the items', and varies more than
    where next to nobody changes without evidence. A share's variance is that of so many answers of people whose own
    answers correlate by `CLUSTERING`.

    The test's own error is estimated from the same answers. Where by chance more controls change, the difference is
    smaller and its error larger, so that both work against the test. The spread that counts is therefore that of the
    difference less t errors (by the delta method), and not that of the difference alone.
    """
    cluster = np.concatenate([stage.control_cluster for stage in collected])
    people = np.unique(cluster, return_counts=True)[1]
    if share is None or people.size < 2:
        return math.nan
    per_answer = float(1 + CLUSTERING * ((people**2).sum() / people.sum() - 1)) / float(people.sum())
    spread = share.value * (1 - share.value)

    def found_if(difference: float) -> float:
        """What is found with the stated power where the error is that at this difference."""
        rate = min(max(share.value - difference, LOWEST_RATE), 1 - LOWEST_RATE)
        variances = share.standard_error**2, rate * (1 - rate) * per_answer
        error, freedom = _difference_error(variances, (share.degrees_of_freedom, people.size - 1))
        critical = bandit.student_t_quantile(0.975, freedom)
        # How much more the critical difference becomes for each unit that a share is higher.
        by_items = critical * variances[0] * (1 - 2 * share.value) / spread / (2 * error) if spread > 0 else 0.0
        by_controls = critical * (1 - 2 * rate) * per_answer / (2 * error)
        moves = math.sqrt(variances[0] * (1 - by_items) ** 2 + variances[1] * (1 + by_controls) ** 2)
        return critical * error + bandit.student_t_quantile(POWER, freedom) * moves

    return _fixed_point(found_if)


def _fixed_point(function: Callable[[float], float]) -> float:
    """The x of at least 0 that the function returns for itself, by secants; by halves where these lead astray."""
    before, x = 0.0, function(0.0)
    above = before - x
    for _ in range(60):
        gap = x - function(x)
        if abs(gap) < 1e-12 or gap == above:
            break
        step = gap * (x - before) / (gap - above)
        before, above = x, gap
        x = x - step if 0 <= x - step <= 2 * x else x - gap / 2
    return x


def _difference_error(variances: tuple[float, float], freedoms: tuple[float, float]) -> tuple[float, float]:
    """Standard error and degrees of freedom of a difference of two independent estimates."""
    return math.sqrt(sum(variances)), bandit.satterthwaite(variances, freedoms)
