"""What adaptive sampling finds by stage 7, compared with a uniform draw and with an oracle, on a fixed truth.

    python benchmarks/bandit_lift.py [--studies 40] [--frontier 16] [--pool 60000] [--jobs 2] [--seed 1]

The bank has the same shape as the study's: 79 tasks in 5 domains, 16,432 questions. The truth is fixed: 0.46 of beliefs
change after an incorrect and 0.32 after a correct answer. Pairs' logits have sd 0.9; a third of this variance is in no
feature. Respondents' logits have sd 1. There are seven stages of 88 respondents with 15 slots, and a tenth of the
respondents leave at a random place. Stage 1 is uniform; the others are epsilon-greedy (epsilon 0.1, top fraction 0.1)
over a new uniform pool of 12,000 pairs. The predictor, trained on all earlier answers, is a logistic regression on
outcome, tasks and domains with an intercept for each respondent. At each stage, the likelihood of a third of its
respondents decides how strongly the tasks' own effects are shrunk.

Expected changes per answer at stage 7, over its own candidates: `found` by the design with the predictor's scores,
`uniform`, and `oracle`, the same design with every pair's true chance as its score. gain = (found - uniform) / (oracle
- uniform), lift = found / uniform; 95 % intervals over studies. All of it is repeated with a narrow (sd 0.6) and a wide
(1.3) truth.

Then the frontier between finding and estimating, with equal budgets: the same study on the first truth, and nine of the
88 respondents of each stage answer a uniform holdout. `found` is the expected share of changes among the pairs drawn by
the design from stage 2 on, `width` that of the 95 % interval of the share that changes over all pairs, from all stages.
Epsilon-greedy is estimated by strata, proportional and robust by each pair's chance. `more` is what proportional finds
more than epsilon-greedy at the same width, on the line between the trade-offs; the same of robust, and how much
narrower its interval is where it finds as much as epsilon 0.1. Robust learns from the answers so far and what was
predicted before them, in stage 1 by folds of respondents. All policies of a study meet the same pools and people.

**The bound** is what no design of so many slots can pass with these predictions: the chances with the least variance
for what they find, from what an answer at each of a hundred ranks of the prediction really is on average, and how far
it really lies from the mean. `by truth` is the same for somebody who knows every pair's chance.

`--pool` is the candidates of each stage of the frontier. Of 12,000, a stage's 1,185 slots take nearly the whole top
tenth by any design that finds as much as epsilon 0.1, and the bound itself is less than 20 % narrower and finds less
than 0.03 more: there the bars of `robust` can only be missed. So 60,000 is the default, where they can be met and a
worse design would miss them; epsilon-greedy, whose top is a tenth of the candidates, hardly changes. With a top of 2 %
(`epsilon top 2%`) it uses the larger pool too, at its wide interval.

The last line is JSON; `gain` and `lift` are those of the first truth. The exit status is 1 where gain is below 0.75, or
robust misses a bar: at what epsilon 0.1 finds an interval at least 20 % narrower, at its width 0.03 more found.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import perf_counter

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # studies run side by side instead
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

import bandit

STAGES, RESPONDENTS, ITEMS, POOL, DROPOUT = 7, 88, 15, 12_000, 0.1
FRONTIER_POOL = 60_000
SLOTS = RESPONDENTS * ITEMS
TASKS_OF_DOMAIN = (19, 13, 12, 13, 22)
TASKS = np.repeat(np.arange(79), 208)
DOMAINS = np.repeat(np.arange(5), TASKS_OF_DOMAIN)[TASKS]
IDS = [f"question {number}" for number in range(TASKS.size)]
PERSON_SD, RATES = 1.0, (0.46, 0.32)
PAIR_SDS = {"stated": 0.9, "narrow": 0.6, "wide": 1.3}
TRUTHS = 4
SHARED, OWN = 14, 2 * 79
TASK_SDS = (0.1, 0.2, 0.4)
GREEDY = bandit.EpsilonGreedy(epsilon=0.1, top_fraction=0.1)
HELD_OUT = 9  # respondents of each stage of the frontier whose items are a uniform holdout
EPSILONS = (0.1, 0.2, 0.3)
TRADE_OFFS = (0.1, 0.15, 0.2, 0.3, 0.4)
FINDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
KNOWN_FINDS = (0.4, 0.6, 0.8, 0.9, 0.97)
BANDS = 100
BY_RANK, BY_TRUTH = "bound", "by truth"
# The lines of the frontier, each from the narrowest interval to the widest.
LINES: dict[str, dict[str, bandit.Design]] = {
    "epsilon": {
        f"epsilon {epsilon}": bandit.EpsilonGreedy(epsilon=epsilon, top_fraction=0.1) for epsilon in EPSILONS[::-1]
    },
    "proportional": {f"trade_off {share}": bandit.Proportional(trade_off=share) for share in TRADE_OFFS[::-1]},
    "robust": {f"find {find}": bandit.Robust(find=find) for find in FINDS},
    BY_RANK: {f"{BY_RANK} {find}": bandit.Robust(find=find) for find in KNOWN_FINDS},
    BY_TRUTH: {f"{BY_TRUTH} {find}": bandit.Robust(find=find) for find in KNOWN_FINDS},
}
# A larger pool lets epsilon-greedy cut a smaller top out of it as well: as many candidates as a tenth of 12,000.
SHARPER = {"epsilon top 2%": bandit.EpsilonGreedy(epsilon=0.1, top_fraction=0.02)}
FRONTIER = {**{name: design for line in LINES.values() for name, design in line.items()}, **SHARPER}
BARS = {"narrower": 0.2, "more": 0.03}


@cache
def truth_of(seed: int, pair_sd: float) -> bandit.BeliefTruth:
    return bandit.BeliefTruth.for_bank(
        tasks=[str(task) for task in TASKS],
        domains=[str(domain) for domain in DOMAINS],
        seed=seed,
        pair_sd=pair_sd,
        respondent_sd=PERSON_SD,
        outcome_rates=RATES,
    )


def features(pairs: bandit.Pairs) -> NDArray[np.float64]:
    """Intercept, outcome, same task, same domain, both domains, then both tasks; shape (M, 172)."""
    evidence, other = pairs.evidence, pairs.target
    columns = np.zeros((len(pairs), SHARED + OWN))
    columns[:, 0] = 1
    columns[:, 1] = pairs.outcome
    columns[:, 2] = TASKS[evidence] == TASKS[other]
    columns[:, 3] = DOMAINS[evidence] == DOMAINS[other]
    rows = np.arange(len(pairs))
    columns[rows, 4 + DOMAINS[other]] = 1
    columns[rows, 9 + DOMAINS[evidence]] = 1
    columns[rows, SHARED + TASKS[other]] = 1
    columns[rows, SHARED + 79 + TASKS[evidence]] = 1
    return columns


def predicted_chances(pairs: bandit.Pairs, beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """`predict_logistic` of `features`, without making them (M,)."""
    evidence, other = pairs.evidence, pairs.target
    logit = beta[0] + beta[1] * pairs.outcome + beta[2] * (TASKS[evidence] == TASKS[other])
    logit += beta[3] * (DOMAINS[evidence] == DOMAINS[other]) + beta[4 + DOMAINS[other]] + beta[9 + DOMAINS[evidence]]
    logit += beta[SHARED + TASKS[other]] + beta[SHARED + 79 + TASKS[evidence]]
    return np.asarray(1 / (1 + np.exp(-logit)), dtype=np.float64)


def known(
    design: bandit.Robust, score: NDArray[np.float64], chance: NDArray[np.float64]
) -> tuple[bandit.Robust, NDArray[np.float64]]:
    """The best design for somebody who knows the truth at each rank of `score`, and the scores it draws by (M,)."""
    average = bandit.average_over_people(chance, PERSON_SD)
    mean = sum(RATES) / 2
    square = average * (1 - mean) ** 2 + (1 - average) * mean**2
    band = np.empty(score.size, dtype=np.int64)
    band[np.argsort(score)] = np.arange(score.size) * BANDS // score.size
    count = np.bincount(band, minlength=BANDS)
    value, spread = (np.bincount(band, weights=column) / count for column in (average, square))
    learned = bandit.Learned(spread=tuple(np.sqrt(spread[np.argsort(value)])), path=1.0, finds=True)
    return replace(design, learned=learned), value[band]


def fit(
    columns: NDArray[np.float64], label: NDArray[np.float64], person: NDArray[np.int64], task_sd: float
) -> NDArray[np.float64]:
    """Normal priors on all effects except the first, and an intercept for each respondent."""
    precision = np.concatenate([[1e-6], np.full(SHARED - 1, 1.0), np.full(OWN, task_sd**-2)])
    return bandit.fit_logistic(columns=columns, label=label, precision=precision, cluster=person)


def trained(columns: NDArray[np.float64], label: NDArray[np.float64], person: NDArray[np.int64]) -> NDArray[np.float64]:
    """The predictor with the task sd that has the highest likelihood for a third of the respondents."""
    apart = person % 3 == 0

    def likelihood(task_sd: float) -> float:
        chance = bandit.predict_logistic(columns[apart], fit(columns[~apart], label[~apart], person[~apart], task_sd))
        return float(np.log(np.where(label[apart] == 1, chance, 1 - chance)).sum())

    return fit(columns, label, person, max(TASK_SDS, key=likelihood))


def one_study(job: tuple[int, float]) -> tuple[float, float, float]:
    """Found, uniform and oracle: expected changes per answer at the last stage."""
    seed, pair_sd = job
    rng, truth = np.random.default_rng([5, seed]), truth_of(seed % TRUTHS, pair_sd)
    seen, labels, people = [], [], []
    for stage in range(STAGES):
        pool = bandit.uniform_pool(n_questions=TASKS.size, size=POOL, rng=rng).pairs
        columns, chance = features(pool), truth.probabilities(pool, IDS)
        score = None
        if stage:
            beta = trained(np.concatenate(seen), np.concatenate(labels), np.concatenate(people))
            score = bandit.predict_logistic(columns, beta)
        if stage == STAGES - 1:
            average = bandit.average_over_people(chance, PERSON_SD)
            return (
                *(
                    float(
                        bandit.inclusion_probabilities(design=GREEDY, n=SLOTS, scores=known, n_candidates=POOL, rng=rng)
                        @ average
                        / SLOTS
                    )
                    for known in (score, chance)
                ),
                float(average.mean()),
            )
        design = GREEDY if stage else bandit.Uniform()
        drawn = bandit.draw(design=design, n=SLOTS, scores=score, n_candidates=POOL, rng=rng)
        there, person, label = answers(chance[drawn.selected], RESPONDENTS, rng)
        seen.append(columns[drawn.selected[there]])
        labels.append(label)
        people.append(person + stage * RESPONDENTS)
    raise AssertionError("unreachable: the last stage returns")


def answers(
    chance: NDArray[np.float64], respondents: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
    """Which slots are answered (n,), and of these answers who gave them and whether a belief changed."""
    person = np.repeat(np.arange(respondents), ITEMS)
    stay = np.where(rng.random(respondents) < DROPOUT, rng.integers(0, ITEMS, respondents), ITEMS)
    there = np.tile(np.arange(ITEMS), respondents) < stay[person]
    at, person = chance[there], person[there]
    logit = np.log(at / (1 - at)) + rng.normal(0, PERSON_SD, respondents)[person]
    return there, person, (rng.random(at.size) < 1 / (1 + np.exp(-logit))).astype(float)


def frontier_study(job: tuple[int, str, int]) -> tuple[float, float, bool]:
    """Found from stage 2 on, the width of the interval over all stages, and whether it holds the true share."""
    seed, name, candidates = job
    truth = truth_of(seed % TRUTHS, PAIR_SDS["stated"])
    predicted: list[NDArray[np.float64]] = []
    sampled: list[NDArray[np.float64]] = []
    seen, labels, people, estimates, weights, found_shares = [], [], [], [], [], []
    for stage in range(STAGES):
        rng, own = np.random.default_rng([6, seed, stage]), np.random.default_rng([7, seed, stage])
        for role, respondents in (("sampled", RESPONDENTS - HELD_OUT), ("holdout", HELD_OUT)):
            size = candidates if role == "sampled" else respondents * ITEMS
            pool = bandit.uniform_pool(n_questions=TASKS.size, size=size, rng=rng)
            chance, score, design = truth.probabilities(pool.pairs, IDS), None, bandit.Uniform()
            if stage and role == "sampled":
                beta = trained(np.concatenate(seen), np.concatenate(labels), np.concatenate(people))
                score, design = predicted_chances(pool.pairs, beta), FRONTIER[name]
            by = score
            if score is not None and name.startswith((BY_RANK, BY_TRUTH)):
                design, by = known(design, chance if name.startswith(BY_TRUTH) else score, chance)
            elif design.learns:
                stages = [np.full(part.size, number) for number, part in enumerate(labels)]
                evidence = bandit.Evidence.of(
                    values={"changed": np.concatenate(labels)},
                    scores=np.concatenate(predicted),
                    chance=np.concatenate(sampled),
                    stage=np.concatenate(stages),
                    cluster=np.concatenate(people),
                )
                design = design.learn(evidence, score)
            drawn = bandit.draw(design=design, n=respondents * ITEMS, scores=by, n_candidates=size, rng=own)
            there, person, label = answers(chance[drawn.selected], respondents, rng)
            if role == "sampled":
                at = drawn.selected[there]
                columns = features(pool.pairs.take(at))
                seen.append(columns)
                labels.append(label)
                people.append(person + stage * RESPONDENTS)
                sampled.append(drawn.inclusion_probability[there])
                predicted.append(score[at] if score is not None else by_folds(columns, label, person))
            if score is not None:
                found_shares.append(float(bandit.average_over_people(chance[drawn.selected], PERSON_SD).mean()))
            estimates.append(estimated(drawn, there, person, label, pool.universe_size))
            weights.append(plan_weight(drawn))
    low, high = bandit.combine_stages(estimates=estimates, plan_weights=weights).estimate.interval
    return float(np.mean(found_shares)), high - low, low <= sum(RATES) / 2 <= high


def by_folds(
    columns: NDArray[np.float64], label: NDArray[np.float64], person: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What the predictor expects of a first stage's answers without those of a fifth of the respondents."""
    chance = np.empty(label.size)
    for fold in range(5):
        rest = person % 5 != fold
        coefficients = fit(columns[rest], label[rest], person[rest], TASK_SDS[1])
        chance[~rest] = bandit.predict_logistic(columns[~rest], coefficients)
    return chance


def estimated(
    drawn: bandit.Draw,
    there: NDArray[np.bool_],
    person: NDArray[np.int64],
    label: NDArray[np.float64],
    universe_size: int,
) -> bandit.Estimate:
    """The share that changes over all pairs, as `hunch estimate` has it of one stage."""
    if np.ptp(drawn.inclusion_probability) and len(drawn.strata) == 1:
        return bandit.hajek(values=label, probability=drawn.inclusion_probability[there], cluster=person, share=True)
    return bandit.stratified_mean(
        values=label,
        stratum=drawn.stratum[there],
        sizes=[stratum.size for stratum in drawn.strata],
        cluster=person,
        universe_size=universe_size,
        share=True,
    )


def plan_weight(drawn: bandit.Draw) -> float:
    if np.ptp(drawn.inclusion_probability) and len(drawn.strata) == 1:
        return bandit.kish_size(drawn.inclusion_probability)
    return bandit.plan_weight(
        sizes=[stratum.size for stratum in drawn.strata], slots=[stratum.n for stratum in drawn.strata]
    )


def frontier(pool: ProcessPoolExecutor, seeds: list[int], candidates: int) -> dict[str, float]:
    """Prints found, width and cover of every policy, and where the lines lie next to epsilon-greedy."""
    jobs = [(seed, name, candidates) for name in FRONTIER for seed in seeds]
    rows = np.array(list(pool.map(frontier_study, jobs, chunksize=2))).reshape(len(FRONTIER), len(seeds), 3)
    of_policy = dict(zip(FRONTIER, rows, strict=True))
    print(f"\n{candidates} candidates\n{'policy':14} {'found':>7} {'width':>7} {'cover':>6}")
    for name, studies in of_policy.items():
        found_share, width, cover = studies.mean(axis=0)
        print(f"{name:14} {found_share:7.3f} {width:7.4f} {cover:6.2f}")
    lines = {kind: np.array([of_policy[name] for name in line]) for kind, line in LINES.items()}
    result = {}
    for kind in list(lines)[1:]:
        for epsilon in EPSILONS:
            more = _apart(lines[kind], of_policy[f"epsilon {epsilon}"], at=1, of=0)
            result[f"{kind.replace(' ', '_')}_more_at_epsilon_{epsilon}"] = round(float(np.mean(more)), 4)
            print(f"at the width of epsilon {epsilon}, {kind} finds {np.mean(more):+.4f} +- {_reach(more):.4f} more")
        narrower = -_apart(lines[kind], of_policy["epsilon 0.1"], at=0, of=1) / of_policy["epsilon 0.1"][:, 1]
        result[f"{kind.replace(' ', '_')}_narrower_at_epsilon_0.1"] = round(float(np.mean(narrower)), 4)
        reach = _reach(narrower)
        print(f"where it finds as much as epsilon 0.1, {kind} is {np.mean(narrower):.1%} +- {reach:.1%} narrower")
    return result


def _apart(line: NDArray[np.float64], other: NDArray[np.float64], *, at: int, of: int) -> NDArray[np.float64]:
    """A line (policies, studies, 3) less another policy (studies, 3) in the column `of`, where their means are the same
    in the column `at`; of each study, so that pools and people are the same on both sides."""
    means = line[:, :, at].mean(axis=1)
    return (
        np.array(
            [np.interp(other[:, at].mean(), means, study) for study in line[:, :, of].T],
        )
        - other[:, of]
    )


def _reach(by_study: NDArray[np.float64]) -> float:
    return float(1.96 * np.std(by_study, ddof=1) / len(by_study) ** 0.5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=40, help="studies of each width of the truth")
    parser.add_argument("--frontier", type=int, default=16, help="studies of each policy of the frontier")
    parser.add_argument("--pool", type=int, default=FRONTIER_POOL, help="candidates of each stage of the frontier")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = perf_counter()
    seeds = [options.seed * 1_000_000 + number for number in range(options.studies)]
    figures = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        print(f"{'truth':8} {'sd':>4} {'uniform':>8} {'found':>8} {'oracle':>8} {'gain':>16} {'lift':>16}")
        for name, pair_sd in PAIR_SDS.items():
            found_share, oracle, uniform = np.array(
                list(pool.map(one_study, [(seed, pair_sd) for seed in seeds], chunksize=2))
            ).T
            gain, lift = (found_share - uniform) / (oracle - uniform), found_share / uniform
            reach = [1.96 * values.std(ddof=1) / len(seeds) ** 0.5 for values in (gain, lift)]
            print(
                f"{name:8} {pair_sd:4} {uniform.mean():8.3f} {found_share.mean():8.3f} {oracle.mean():8.3f} "
                f"{gain.mean():7.3f} +- {reach[0]:.3f} {lift.mean():7.3f} +- {reach[1]:.3f}",
                flush=True,
            )
            figures[name] = {
                "gain": round(float(gain.mean()), 4),
                "lift": round(float(lift.mean()), 4),
                "lowest_gain": round(float(gain.min()), 4),
            }
        more = frontier(pool, [options.seed * 1_000_000 + number for number in range(options.frontier)], options.pool)
    result = {
        **more,
        "gain": figures["stated"]["gain"],
        "lift": figures["stated"]["lift"],
        "truths": figures,
        "studies": options.studies,
        "seed": options.seed,
        "seconds": round(perf_counter() - started, 1),
    }
    print(json.dumps(result))
    reached = [more[f"robust_{what}_at_epsilon_0.1"] >= bar for what, bar in BARS.items()]
    return 0 if result["gain"] >= 0.75 and all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
