"""Are draws and estimates correct? 20,000 draws of each design (5,000 from all pairs), and 2,000 seven-stage studies.

    python benchmarks/sampling_laws.py [--studies 2000] [--draws 20000] [--jobs 2] [--seed 1]

Draws: how often each candidate was drawn is compared with its stored probability, by a statistic that uses the design's
covariance (the largest |z| if chances are unequal). All tests together are at level 0.001.

Studies: a fixed truth over all pairs of 400 questions (0.46 of beliefs change after an incorrect, 0.32 after a correct
answer; a third of the variance between pairs is in no feature). Each stage has 88 respondents with 15 slots each, and a
tenth of them leave at a random place. Stage 1 is uniform; the others are epsilon-greedy by a logistic predictor trained
on all earlier answers, over a new uniform pool of 12,000 pairs. Slots are dealt at random, and a person may meet a
question twice. The stages' estimates are combined with weights from the designs and compared with the truth over all
pairs. An estimate passes if its bias is under 3 Monte Carlo errors (a ratio: under a tenth of its standard error) and
its 95 % interval covers the truth in 93 % to 97 % of the studies.

Looks: one stage of 300 people with 15 slots each over a pool of 12,000 pairs, looked at after 30 people and every 18th
more. An interval that holds at any time passes if in 95 % of the studies or more it holds the truth at all looks
together. `ordinary` are the usual 95 % intervals at the same looks.

Cases: few people, thin strata, tasks, stages that agree, other policies, unequal chances, a budget's power
(`_estimate_cases.py`), people who leave, questions as a sample, the limit of the AUC (`_estimate_laws.py`), shares of
variance (`_component_laws.py`): a row each, with what the figure was before. The last line is JSON; `processor_seconds`
is of all processes together.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # studies run side by side instead
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

import bandit
from benchmarks import _component_laws, _estimate_laws
from benchmarks._estimate_cases import CASES
from benchmarks._law_rows import Row, table
from benchmarks._meter import Meter
from tests.bandit.laws import p_value_of_counts, p_value_of_largest_z

LEVEL = 0.001
STAGES, RESPONDENTS, ITEMS, POOL, DROPOUT = 7, 88, 15, 12_000, 0.1
SLOTS = RESPONDENTS * ITEMS
TASKS = np.repeat(np.arange(20), 20)
DOMAINS = TASKS // 4
IDS = [f"question {number}" for number in range(TASKS.size)]
LOOKED_AT, FIRST_LOOK, EVERY = 300, 30, 18
ALL_PAIRS, DEARER = "all pairs, tied at the cut", 4  # A draw from all pairs takes four times as long.
RATIOS = ("hajek", "share incorrect", "share correct", "posterior incorrect", "posterior correct", "share domain 0")


class World:
    """The truth over all pairs: chances of a change, sizes of changes and priors."""

    # By how many points a belief changes, after an incorrect and after a correct answer; each size is equally likely.
    SIZES = (np.array([5, 10, 20, 25, 40]), np.array([5, 5, 10, 20, 20]))
    PERSON_SD, PRIOR_SD, NOISE_SD = 1.0, 9.0, 9.0

    def __init__(self) -> None:
        truth = bandit.BeliefTruth.for_bank(
            tasks=[str(task) for task in TASKS],
            domains=[str(domain) for domain in DOMAINS],
            seed=1,
            pair_sd=0.9,
            respondent_sd=self.PERSON_SD,
            outcome_rates=(0.46, 0.32),
        )
        self.universe = bandit.universe_size(TASKS.size)
        pairs = bandit.pair_from_rank(np.arange(self.universe), TASKS.size)
        chance = truth.probabilities(pairs, IDS)
        self.logit = np.log(chance) - np.log1p(-chance)
        self.prior = 63 + np.random.default_rng(2).normal(0, 12, TASKS.size)
        average = bandit.average_over_people(chance, self.PERSON_SD)
        size = np.array([sizes.mean() for sizes in self.SIZES])[pairs.outcome] * average
        moved = np.where(pairs.outcome == 1, size, -size)
        prior = self.prior[pairs.target]
        wrong, right = pairs.outcome == 0, pairs.outcome == 1
        self.means = {
            "share": average.mean(),
            "assisted": average.mean(),
            "hajek": average.mean(),
            "change": moved.mean(),
            "size": size.mean(),
            "prior": prior.mean(),
            "prior by outcome": 0.0,
            "share incorrect": average[wrong].mean(),
            "share correct": average[right].mean(),
            "posterior incorrect": (prior + moved)[wrong].mean(),
            "posterior correct": (prior + moved)[right].mean(),
            "share domain 0": average[DOMAINS[pairs.target] == 0].mean(),
        }


@cache
def world() -> World:
    return World()


def features(pairs: bandit.Pairs) -> NDArray[np.float64]:
    """An intercept, outcome, same task, same domain, and the domains of target and evidence; shape (M, 14)."""
    evidence, other = pairs.evidence, pairs.target
    columns = np.zeros((len(pairs), 14))
    columns[:, 0] = 1
    columns[:, 1] = pairs.outcome
    columns[:, 2] = TASKS[evidence] == TASKS[other]
    columns[:, 3] = DOMAINS[evidence] == DOMAINS[other]
    rows = np.arange(len(pairs))
    columns[rows, 4 + DOMAINS[other]] = 1
    columns[rows, 9 + DOMAINS[evidence]] = 1
    return columns


def fit(columns: NDArray[np.float64], label: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logistic regression with a weak ridge."""
    ridge = np.full(columns.shape[1], 0.5)
    ridge[0] = 1e-3
    return bandit.fit_logistic(columns=columns, label=label, precision=ridge, iterations=8, tolerance=1e-5)


def one_study(seed: int) -> dict[str, tuple[float, float, float, float]]:
    """Value, interval and standard error of every estimate of one study, and the naive share."""
    rng, truth = np.random.default_rng([3, seed]), world()
    seen: list[NDArray[np.float64]] = []
    labels: list[NDArray[np.float64]] = []
    stages: dict[str, list[bandit.Estimate]] = {}
    parts: dict[str, list[bandit.StageAnswers]] = {}
    weights = []
    for number in range(STAGES):
        pool = bandit.uniform_pool(n_questions=TASKS.size, size=POOL, rng=rng).pairs
        columns = features(pool)
        score = bandit.predict_logistic(columns, fit(np.concatenate(seen), np.concatenate(labels))) if number else None
        design = bandit.EpsilonGreedy(epsilon=0.1, top_fraction=0.1) if number else bandit.Uniform()
        drawn = bandit.draw(design=design, n=SLOTS, scores=score, n_candidates=POOL, rng=rng)
        sizes = [stratum.size for stratum in drawn.strata]
        weights.append(
            bandit.plan_weight(sizes=sizes, slots=[stratum.n for stratum in drawn.strata], people=RESPONDENTS)
        )

        person = np.repeat(np.arange(RESPONDENTS), ITEMS)
        stay = np.where(rng.random(RESPONDENTS) < DROPOUT, rng.integers(0, ITEMS, RESPONDENTS), ITEMS)
        there = np.tile(np.arange(ITEMS), RESPONDENTS) < stay[person]
        at, person, label = drawn.selected[there], person[there], drawn.stratum[there]
        pairs = pool.take(at)
        logit = truth.logit[bandit.rank_of(pairs, TASKS.size)] + rng.normal(0, truth.PERSON_SD, RESPONDENTS)[person]
        changed = (rng.random(at.size) < 1 / (1 + np.exp(-logit))).astype(float)
        prior = truth.prior[pairs.target] + rng.normal(0, truth.PRIOR_SD, RESPONDENTS)[person]
        prior += rng.normal(0, truth.NOISE_SD, at.size)
        size = changed * np.choose(pairs.outcome, [rng.choice(sizes_, at.size) for sizes_ in truth.SIZES])
        posterior = prior + np.where(pairs.outcome == 1, size, -size)

        common = {"stratum": label, "sizes": sizes, "cluster": person, "universe_size": truth.universe}
        wrong, right = pairs.outcome == 0, pairs.outcome == 1
        named_estimates = {
            "share": bandit.stratified_mean(values=changed, share=True, **common),
            "assisted": assisted(changed, columns, at, score, number, person, common, rng),
            "hajek": bandit.hajek(
                values=changed, probability=drawn.inclusion_probability[there], cluster=person, share=True
            ),
            "change": bandit.stratified_mean(values=posterior - prior, **common),
            "size": bandit.stratified_mean(values=size, **common),
            "prior": bandit.stratified_mean(values=prior, **common),
        }
        for name, estimate in named_estimates.items():
            stages.setdefault(name, []).append(estimate)
        inside = {
            "prior by outcome": (prior, {"first": wrong, "inside": right}),
            "share incorrect": (changed, {"inside": wrong}),
            "share correct": (changed, {"inside": right}),
            "posterior incorrect": (posterior, {"inside": wrong}),
            "posterior correct": (posterior, {"inside": right}),
            "share domain 0": (changed, {"inside": DOMAINS[pairs.target] == 0}),
        }
        for name, (values, masks) in inside.items():
            parts.setdefault(name, []).append(bandit.StageAnswers(values=values, **common, **masks))
        seen.append(columns[at])
        labels.append(changed)
    results = {}
    for name, estimates in stages.items():
        combined = bandit.combine_stages(estimates=estimates, plan_weights=weights).estimate
        results[name] = (combined.value, *combined.interval, combined.standard_error)
    for name, answers in parts.items():
        if answers[0].first is not None:
            named_estimates = bandit.pooled_difference(stages=answers, plan_weights=weights)
        else:
            named_estimates = bandit.pooled_mean(stages=answers, plan_weights=weights, share=name.startswith("share"))
        results[name] = (named_estimates.value, *named_estimates.interval, named_estimates.standard_error)
    return {**results, "naive": (float(np.concatenate(labels).mean()), 0.0, 0.0, 0.0)}


def assisted(
    changed: NDArray[np.float64],
    columns: NDArray[np.float64],
    at: NDArray[np.int64],
    score: NDArray[np.float64] | None,
    number: int,
    person: NDArray[np.int64],
    common: dict,
    rng: np.random.Generator,
) -> bandit.Estimate:
    """The model-assisted share: with the predictor that planned the stage, in stage 1 with predictions by folds."""
    if score is None:
        score, predictions = np.zeros(len(columns)), np.zeros(at.size)
        for fold in bandit.cross_fit_folds(cluster=person, item=at, rng=rng):
            everywhere = bandit.predict_logistic(columns, fit(columns[at[fold.train]], changed[fold.train]))
            predictions[fold.held] = everywhere[at[fold.held]] - everywhere.mean()
    else:
        predictions = score[at]
    # Tied candidates have the same score, so it does not matter which of them are in a stratum.
    parts = np.split(np.sort(score)[::-1], np.cumsum(common["sizes"])[:-1])
    weight = (np.array(common["sizes"]) / np.bincount(common["stratum"]))[common["stratum"]]
    fitted = bandit.assist(
        values=changed,
        predictions=predictions,
        prediction_means=[part.mean() for part in parts],
        stratum=common["stratum"],
        weight=weight,
        cluster=person,
    )
    return bandit.stratified_mean(values=changed, share=True, **common, adjustment=fitted.adjustment)


def looked_at(seed: int) -> dict[str, tuple[bool, bool]]:
    """Whether the intervals that hold at any time held the truth at all looks of one study, and the ordinary ones."""
    rng, truth = np.random.default_rng([8, seed]), world()
    slots, rho = LOOKED_AT * ITEMS, bandit.mixture_parameter(LOOKED_AT // 2)
    pool = bandit.uniform_pool(n_questions=TASKS.size, size=POOL, rng=rng)
    logit = truth.logit[bandit.rank_of(pool.pairs, TASKS.size)]
    # As good a predictor as a trained one: it knows two thirds of the spread between pairs.
    score = 1 / (1 + np.exp(-(logit + rng.normal(0, 0.6, POOL))))
    person = np.repeat(np.arange(LOOKED_AT), ITEMS)
    stay = np.where(rng.random(LOOKED_AT) < DROPOUT, rng.integers(0, ITEMS, LOOKED_AT), ITEMS)
    there = np.tile(np.arange(ITEMS), LOOKED_AT) < stay[person]
    readiness = rng.normal(0, World.PERSON_SD, LOOKED_AT)
    designs = {
        "share, epsilon-greedy": bandit.EpsilonGreedy(epsilon=0.5, top_fraction=0.3),
        "share, proportional": bandit.Proportional(trade_off=0.4, power=4),
        "difference, uniform": bandit.Uniform(),
    }
    figures = {}
    for name, design in designs.items():
        drawn = bandit.draw(design=design, n=slots, scores=score, n_candidates=POOL, rng=rng)
        chance = 1 / (1 + np.exp(-(logit[drawn.selected] + readiness[person])))
        label = (rng.random(slots) < chance).astype(float)
        sizes = [stratum.size for stratum in drawn.strata]
        mean = 0.0 if name.startswith("difference") else truth.means["share"]
        holds = ordinary = True
        for people in range(FIRST_LOOK, LOOKED_AT + 1, EVERY):
            seen = there & (person < people)
            answered = {"values": label[seen], "cluster": person[seen]}
            strata = {"stratum": drawn.stratum[seen], "sizes": sizes, "universe_size": pool.universe_size}
            if name.startswith("difference"):  # Two levels, to which people are assigned in turn, without an effect.
                second = person[seen] % 2 == 1
                estimate = bandit.stratified_effect(**answered, **strata, first=~second, second=second)
            elif isinstance(design, bandit.Proportional):
                estimate = bandit.hajek(**answered, probability=drawn.inclusion_probability[seen], share=True)
            else:
                estimate = bandit.stratified_mean(**answered, **strata, share=True)
            scale = "plain" if name.startswith("difference") else "logit"
            low, high = bandit.anytime_interval(estimate, rho=rho, scale=scale).interval
            holds &= low <= mean <= high
            ordinary &= estimate.interval[0] <= mean <= estimate.interval[1]
        figures[name] = (holds, ordinary)
    return figures


def draw_laws(draws: int, seed: int) -> dict[str, float]:
    """The p value of every test of the draws."""
    rng = np.random.default_rng([4, seed])
    score, doubt = np.round(rng.random(200), 2), rng.random(200)
    laws = {}
    designs: dict[str, tuple[bandit.Design, int]] = {
        "uniform": (bandit.Uniform(), 20),
        "epsilon-greedy": (bandit.EpsilonGreedy(epsilon=0.3, top_fraction=0.15), 20),
        "epsilon-greedy, rest in strata": (bandit.EpsilonGreedy(epsilon=0.5, rest_strata=4), 20),
        "epsilon-greedy with a floor": (bandit.EpsilonGreedy(epsilon=0.1, floor=0.5), 20),
        "uncertainty": (bandit.Uncertainty(epsilon=0.3, by="disagreement"), 20),
        "softmax": (bandit.Softmax(temperature=0.15, floor=0.1), 20),
        "softmax, some certain": (bandit.Softmax(temperature=0.05, floor=0.05), 60),
        "proportional": (bandit.Proportional(trade_off=0.2, power=4), 20),
        "proportional, some certain": (bandit.Proportional(trade_off=0.1, power=16), 60),
        "test set": (bandit.TestSet(10, 3, top_fraction=0.1, bottom_fraction=0.1), 30),
    }
    for name, (design, n) in designs.items():
        arguments = {"design": design, "n": n, "scores": score, "n_candidates": 200, "disagreement": doubt}
        # The cut is fixed. Otherwise a candidate at the cut would be top in one draw and rest in another.
        frozen = Frozen(design, design.strata(score, rng, n_candidates=200, disagreement=doubt))
        chance = bandit.inclusion_probabilities(**(arguments | {"design": frozen}), rng=rng)
        counts = np.zeros(200)
        for _ in range(draws):
            drawn = bandit.draw(**(arguments | {"design": frozen}), rng=rng)
            counts[drawn.selected[drawn.replicate == 1]] += 1
        p_values = []
        for stratum in range(len(frozen.cut.names)):
            inside = frozen.cut.label == stratum
            n_h = round(chance[inside].sum())
            if np.ptp(chance[inside]):
                p_values.append(p_value_of_largest_z(counts[inside], draws=draws, probability=chance[inside]))
            elif n_h:
                p_values.append(p_value_of_counts(counts[inside], draws=draws, n=n_h))
            elif counts[inside].any():
                p_values.append(0.0)
        laws[name] = min(1.0, min(p_values) * len(p_values))
    laws[ALL_PAIRS] = exhaustive_law(draws // DEARER, rng)
    return laws


def wave_rows(studies: int, seed: int) -> list[Row]:
    """The change within people between two waves: levels and changes differ between people, chances between items, and
    a third of the people do not come back."""
    rng, truth, people, items = np.random.default_rng([9, seed]), 0.3, 60, 5
    values, errors, held = [], [], 0
    for _ in range(studies):
        level, own = rng.normal(0, 1, people), rng.normal(truth, 0.4, people)
        first = np.repeat(np.arange(people), items)
        second = np.repeat(np.flatnonzero(rng.random(people) < 0.67), items)
        change = bandit.paired_change(
            first=level[first] + rng.normal(0, 1, first.size),
            first_weight=rng.choice([1.0, 2.0, 4.0], first.size),
            first_person=first,
            second=(level + own)[second] + rng.normal(0, 1, second.size),
            second_weight=rng.choice([1.0, 3.0], second.size),
            second_person=second,
        )
        if change is not None:
            values.append(change.value)
            errors.append(change.standard_error)
            held += change.interval[0] <= truth <= change.interval[1]
    spread, case = float(np.std(values, ddof=1)), "waves: change within 60 people, a third lost"
    bias = float(np.mean(values) - truth) / spread
    accuracy = float(np.mean(np.square(errors)) ** 0.5) / spread
    return [
        Row(case, "bias in spreads", "", bias, -0.15, 0.15, studies),
        Row(case, "standard error / spread", "", accuracy, 0.93, 1.07, studies),
        Row(case, "coverage of 95 %", "", held / studies, 0.93, 0.97, studies),
    ]


class Frozen(bandit.Design):
    """A design with its cut already made."""

    def __init__(self, design: bandit.Design, cut: bandit.Strata) -> None:
        self.design, self.cut = design, cut

    @property
    def replicates(self) -> int:
        return self.design.replicates

    def strata(self, *_args: object, **_options: object) -> bandit.Strata:
        return self.cut

    def ranked_by(self, scores: object, disagreement: object) -> None:
        return None

    def allocate(self, n: int, sizes: object) -> tuple[int, ...]:
        return self.design.allocate(n, self.cut.sizes)

    def inclusion_probabilities(self, **arguments: object) -> NDArray[np.float64]:
        return self.design.inclusion_probabilities(**arguments)


def exhaustive_law(draws: int, rng: np.random.Generator) -> float:
    """All 60 pairs of 6 questions, many tied: a pair's frequency must be the mean of its stored probabilities."""
    factors = {name: rng.integers(-2, 3, (2, 6, 2)) for name in ("evidence", "target")}
    biases = {name: np.zeros((2, 6), dtype=int) for name in ("evidence_bias", "target_bias")}
    scores = bandit.FactoredScores(**factors, **biases)
    values = scores.of(bandit.pair_from_rank(np.arange(60), 6))
    cut = bandit.find_cut(scores, count=18)
    lucky = (cut.count - cut.above) / cut.tied
    top, rest = 9 / 18, 3 / 42
    expected = np.select([values > cut.score, values == cut.score], [top, lucky * top + (1 - lucky) * rest], rest)
    counts = np.zeros(60)
    design = bandit.EpsilonGreedy(epsilon=0.25, top_fraction=0.3)
    for _ in range(draws):
        counts[bandit.rank_of(bandit.draw_exhaustively(design=design, n=12, scores=scores, rng=rng).pairs, 6)] += 1
    return p_value_of_largest_z(counts, draws=draws, probability=expected)


def processor_seconds() -> float:
    """Of this process and of those it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=float, default=1.0, help="the part of the cases' studies, such as 0.1")
    options = parser.parse_args()
    started = perf_counter()
    with ProcessPoolExecutor(options.jobs) as processes:
        pool = Meter(processes)
        drawing = pool.submit(draw_laws, options.draws, options.seed)
        running = [pool.submit(case, share=options.cases, seed=options.seed) for case in CASES]
        seeds = [options.seed * 1_000_000 + number for number in range(options.studies)]
        studies = list(pool.map(one_study, seeds, chunksize=10))
        rows = _estimate_laws.rows(pool, studies=options.studies, seed=options.seed)
        rows += _component_laws.rows(pool, studies=options.studies // 2, seed=options.seed)
        looks = list(pool.map(looked_at, seeds, chunksize=10))
        laws = drawing()
        rows += [row for work in running for row in work()]
        rows += pool.submit(wave_rows, options.studies, options.seed)()
    for name, p in laws.items():
        drawn = options.draws // DEARER if name == ALL_PAIRS else options.draws
        print(f"{name:30}  {drawn:5} draws  p = {p:.3g}")
    lowest = min(1.0, min(laws.values()) * len(laws))

    means = world().means
    print(f"\n{'estimate':20} {'truth':>8} {'mean':>8} {'bias/MC':>8} {'bias/SE':>8} {'SE/spread':>9} {'coverage':>9}")
    biases, ratio_biases, coverages = {}, {}, {}
    for name, mean in means.items():
        value, low, high, error = np.array([study[name] for study in studies]).T
        spread = value.std(ddof=1)
        in_errors, in_spreads = (value.mean() - mean) / spread * len(studies) ** 0.5, (value.mean() - mean) / spread
        (ratio_biases if name in RATIOS else biases)[name] = in_spreads if name in RATIOS else in_errors
        coverages[name] = float(((low <= mean) & (mean <= high)).mean())
        accuracy = (error**2).mean() ** 0.5 / spread
        print(
            f"{name:20} {mean:8.3f} {value.mean():8.3f} {in_errors:8.2f} {in_spreads:8.3f} {accuracy:9.3f} "
            f"{coverages[name]:9.3f}"
        )
    naive = float(np.mean([study["naive"][0] for study in studies]) - means["share"])
    print(f"{'naive share':20} {means['share']:8.3f} {means['share'] + naive:8.3f}")
    print()
    for line in table(rows):
        print(line)
    print(f"\n{'at all looks together':28} {'any time':>9} {'ordinary':>9}")
    held = {name: np.mean([look[name] for look in looks], axis=0) for name in looks[0]}
    for name, (any_time, ordinary) in held.items():
        print(f"{name:28} {any_time:9.3f} {ordinary:9.3f}")
    print(f"\n{'processor seconds':40} of {processor_seconds():.1f}")
    for name, seconds in pool.seconds.most_common():
        print(f"{name:40} {seconds:8.1f}")
    result = {
        "cases_that_fail": [f"{row.case}: {row.figure}" for row in rows if not row.kept],
        "any_time_min": float(min(any_time for any_time, _ordinary in held.values())),
        "max_bias_z": round(max(map(abs, biases.values())), 3),
        "max_ratio_bias": round(max(map(abs, ratio_biases.values())), 3),
        "coverage_min": min(coverages.values()),
        "coverage_max": max(coverages.values()),
        "naive_bias": round(naive, 4),
        "lowest_p": lowest,
        "studies": options.studies,
        "draws": options.draws,
        "seed": options.seed,
        "seconds": round(perf_counter() - started, 1),
        "processor_seconds": round(processor_seconds(), 1),
        "processor_seconds_by_case": {name: round(seconds, 1) for name, seconds in pool.seconds.items()},
    }
    print(json.dumps(result))
    holds = not result["cases_that_fail"] and result["any_time_min"] >= 0.95
    holds = holds and lowest > LEVEL and result["max_bias_z"] < 3 and result["max_ratio_bias"] < 0.1
    return 0 if holds and result["coverage_min"] >= 0.93 and result["coverage_max"] <= 0.97 else 1


if __name__ == "__main__":
    sys.exit(main())
