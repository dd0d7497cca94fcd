"""Simulated studies for the laws of estimates: few people, thin strata, tasks, agreement of stages, other policies.

The truth is fixed: 60,000 items in 20 tasks, and scores that tell half of what makes an item change beliefs. A stage
draws a new pool of 12,000; the first is uniform, the others take nine of ten slots from the tenth with the highest
scores. People differ by a normal on the logit scale. A tenth of all answers is lost at random.
"""

from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

import bandit

ITEMS, POOL, TASKS, UNIVERSE = 15, 12_000, 20, 60_000
STEPS = np.array([5, 10, 20, 25, 40])


@dataclass(frozen=True, eq=False)
class Truth:
    logit: np.ndarray
    score: np.ndarray
    task: np.ndarray
    chance: np.ndarray
    person_sd: float


@dataclass(frozen=True, eq=False)
class Collected:
    """One stage: its answers as `bandit` takes them, each answer's task, and the plan's weight; and the items that were
    given and lost: stratum, person, task."""

    changed: np.ndarray
    size: np.ndarray
    task: np.ndarray
    common: dict
    weight: float
    weight_of_kish: float
    lost: np.ndarray
    lost_person: np.ndarray
    lost_task: np.ndarray

    def stage(self, values, **parts):
        return bandit.StageAnswers(values=values, **self.common, **parts)


@dataclass(frozen=True)
class Law:
    """What a case showed over its studies: mean error with its Monte Carlo error, cover, and mean width."""

    bias: float
    error: float
    cover: float
    width: float
    se_over_spread: float
    studies: int


def law_of(rows):
    """Of (error, low, high, standard error) with the truth taken off."""
    rows = np.array([row for row in rows if not np.isnan(row).any()])
    spread = rows[:, 0].std(ddof=1)
    return Law(
        bias=float(rows[:, 0].mean()),
        error=float(spread / len(rows) ** 0.5),
        cover=float(((rows[:, 1] <= 0) & (rows[:, 2] >= 0)).mean()),
        width=float((rows[:, 2] - rows[:, 1]).mean()),
        se_over_spread=float(np.sqrt((rows[:, 3] ** 2).mean()) / spread),
        studies=len(rows),
    )


def minus(estimate, truth):
    if estimate is None:
        return (np.nan,) * 4
    low, high = estimate.interval
    return estimate.value - truth, low - truth, high - truth, estimate.standard_error


@cache
def truth_of(person_sd=1.0, pair_sd=0.9):
    rng = np.random.default_rng(7)
    logit = rng.normal(-0.5, pair_sd, UNIVERSE)
    people = person_sd * np.array([NormalDist().inv_cdf((place + 0.5) / 200) for place in range(200)])
    chance = np.mean([1 / (1 + np.exp(-(logit + person))) for person in people], axis=0)
    score = logit + rng.normal(0, 0.9, UNIVERSE)
    return Truth(logit, score, rng.integers(0, TASKS, UNIVERSE), chance, person_sd)


def stage_of(truth, *, people, is_first, rng):
    n = people * ITEMS
    pool = rng.choice(UNIVERSE, POOL, replace=False)
    if is_first:
        drawn, label, sizes, slots = rng.choice(pool, n, replace=False), np.zeros(n, dtype=int), (POOL,), (n,)
    else:
        best = np.argpartition(-truth.score[pool], POOL // 10)
        rest = round(0.1 * n)
        sizes, slots = (POOL // 10, POOL - POOL // 10), (n - rest, rest)
        parts = (pool[best[: sizes[0]]], pool[best[sizes[0] :]])
        drawn = np.concatenate(
            [rng.choice(part, count, replace=False) for part, count in zip(parts, slots, strict=True)]
        )
        label = np.repeat([0, 1], slots)
    # Dealt as evenly as whole slots allow, in each stratum.
    order = np.concatenate([rng.permutation(np.flatnonzero(label == place)) for place in range(len(sizes))])
    person = np.empty(n, dtype=int)
    person[order] = rng.permutation(people)[np.arange(n) % people]
    stays = rng.random(n) > 0.1
    lost = {"lost": label[~stays], "lost_person": person[~stays], "lost_task": truth.task[drawn[~stays]]}
    drawn, label, person = drawn[stays], label[stays], person[stays]
    logit = truth.logit[drawn] + rng.normal(0, truth.person_sd, people)[person]
    changed = (rng.random(drawn.size) < 1 / (1 + np.exp(-logit))).astype(float)
    return Collected(
        **lost,
        changed=changed,
        size=changed * rng.choice(STEPS, drawn.size),
        task=truth.task[drawn],
        common={"stratum": label, "sizes": sizes, "cluster": person, "universe_size": UNIVERSE},
        weight=bandit.plan_weight(sizes=sizes, slots=slots, people=people),
        weight_of_kish=bandit.plan_weight(sizes=sizes, slots=slots),
    )


def study_of(truth, *, people, rng, stages=4):
    return [stage_of(truth, people=people, is_first=not place, rng=rng) for place in range(stages)]


def whole_studies(*, people, studies, seed, person_sd=1.0):
    """The share and the mean size of change over all items from four stages: laws, and the p values of agreement.

    Returns laws by name ("share", "size", and "share by Kish's weights"), and p by name, NaN where it is withheld.
    """
    truth, rng = truth_of(person_sd), np.random.default_rng([1, seed, people])
    mean = truth.chance.mean()
    rows, p = {}, {}
    for _ in range(studies):
        stages = study_of(truth, people=people, rng=rng)
        for name, is_share in (("share", True), ("size", False)):
            values = [stage.changed if is_share else stage.size for stage in stages]
            own = [
                bandit.stratified_mean(values=value, share=is_share, **stage.common)
                for value, stage in zip(values, stages, strict=True)
            ]
            for title, weights in (
                (name, [stage.weight for stage in stages]),
                (f"{name} by Kish's weights", [stage.weight_of_kish for stage in stages]),
            ):
                combined = bandit.combine_stages(estimates=own, plan_weights=weights)
                target = mean if is_share else mean * STEPS.mean()
                rows.setdefault(title, []).append(minus(combined.estimate, target))
            p.setdefault(name, []).append(np.nan if combined.agreement is None else combined.agreement.p)
    return {name: law_of(own) for name, own in rows.items()}, {name: np.array(own) for name, own in p.items()}


def by_task(*, people, studies, seed, tasks=3):
    """The share inside tasks: of all stages together, of one adaptive stage where it is given, and agreement's p."""
    from survey.services.results.estimates import study_figures

    truth, rng = truth_of(), np.random.default_rng([2, seed, people])
    rows, p, has_estimate = {"all stages": [], "one stage": []}, [], []
    for _ in range(studies):
        stages = study_of(truth, people=people, rng=rng)
        for task in range(tasks):
            mean = truth.chance[truth.task == task].mean()
            parts = [part_of(stage, place) for place, stage in enumerate(stages)]
            inside = [stage.task == task for stage in stages]
            own = [
                study_figures.estimate(part, stage.changed, where=mask, share=True)
                for part, stage, mask in zip(parts, stages, inside, strict=True)
            ]
            figure = study_figures.combine(
                parts,
                own,
                name="",
                title="",
                unit="share",
                naive=None,
                pooled=[
                    part.stage_answers(stage.changed, inside=mask)
                    for part, stage, mask in zip(parts, stages, inside, strict=True)
                ],
                share=True,
            )
            rows["all stages"].append(minus(figure.combined, mean))
            rows["one stage"].append(minus(own[1][0], mean))
            has_estimate.append(own[1][0] is not None)
            p.append(np.nan if figure.agreement is None else figure.agreement.p)
    return {name: law_of(own) for name, own in rows.items()}, np.array(p), float(np.mean(has_estimate))


def points_by_task(*, people, studies, seed, steps=STEPS, tasks=3):
    """The mean size of change inside tasks, from all stages together, and its bounds for an odds ratio of 2, where a
    tenth of all items is lost at random. `before`: without what is done for a few answers that decide."""
    from survey.services.results.estimates import study_figures

    truth, rng = truth_of(), np.random.default_rng([8, seed, people])
    rows = {"before": [], "plain": [], "bounds": []}
    for _ in range(studies):
        stages = study_of(truth, people=people, rng=rng)
        parts = [part_of(stage, place) for place, stage in enumerate(stages)]
        values = [stage.changed * rng.choice(steps, stage.changed.size) for stage in stages]
        for task in range(tasks):
            mean = truth.chance[truth.task == task].mean() * steps.mean()
            inside, lost = [stage.task == task for stage in stages], [stage.lost_task == task for stage in stages]
            figure = study_figures.combine(
                parts,
                [
                    study_figures.estimate(part, own, where=mask)
                    for part, own, mask in zip(parts, values, inside, strict=True)
                ],
                name="",
                title="",
                unit="points",
                naive=None,
                pooled=[
                    part.stage_answers(own, inside=mask) for part, own, mask in zip(parts, values, inside, strict=True)
                ],
            )
            rows["before"].append(minus(figure.combined, mean))
            figure = study_figures.for_a_part(figure, parts, values, inside, [None] * len(parts))
            ends = study_figures.bounds_of(
                figure,
                parts,
                values,
                where=[None] * len(parts),
                inside=inside,
                lost=lost,
                odds_ratio=2.0,
                span=(0.0, 100.0),
                share=False,
            )
            rows["plain"].append(minus(figure.combined, mean))
            rows["bounds"].append(
                (np.nan,) * 4
                if ends is None or figure.combined is None
                else (
                    figure.combined.value - mean,
                    *(end - mean for end in ends.interval),
                    figure.combined.standard_error,
                )
            )
    return {name: law_of(own) for name, own in rows.items()}


def part_of(stage, place):
    from survey.services.results.estimates.study_figures import StagePart, Unanswered

    count = len(stage.common["sizes"])
    return StagePart(
        stage=place + 1,
        role="sampled",
        names=("all",) if count == 1 else ("top", "rest"),
        sizes=stage.common["sizes"],
        slots=tuple(int(size) for size in np.bincount(stage.common["stratum"], minlength=count)),
        universe_size=UNIVERSE,
        stratum=stage.common["stratum"],
        cluster=stage.common["cluster"],
        probability=np.ones(stage.changed.size),
        planned_probability=np.ones(1),
        people=np.unique(stage.common["cluster"]).size,
        unanswered=Unanswered(
            stratum=stage.lost, cluster=stage.lost_person, probability=np.ones(stage.lost.size), divisions={}
        ),
    )


FEW_LARGE = np.array([2.0] * 9 + [60.0])  # a tenth of the changes is large


def thin_strata(*, rest, studies, seed, people=20, steps=STEPS, lost=0.05):
    """The mean size of change with so many answers in the stratum that holds nine tenths of the candidates, and its
    bounds for an odds ratio of 2 where a part of all items is lost at random."""
    rng = np.random.default_rng([3, seed, rest])
    n = people * ITEMS
    stratum = (np.arange(n) < rest).astype(int)
    logit = np.where(stratum, -1.0, 0.5)
    grid = np.array([NormalDist().inv_cdf((place + 0.5) / 400) for place in range(400)]) * np.hypot(0.9, 1)
    chances = [float((1 / (1 + np.exp(-(middle + grid)))).mean()) for middle in (-1.0, 0.5)]
    truth = steps.mean() * (0.9 * chances[0] + 0.1 * chances[1])
    rows = {"plain": [], "bounds": []}
    for _ in range(studies):
        person = rng.permutation(n) % people
        chance = 1 / (1 + np.exp(-(logit + rng.normal(0, 0.9, n) + rng.normal(0, 1, people)[person])))
        values = np.where(rng.random(n) < chance, rng.choice(steps, n), 0.0)
        # The answers in the rest are as many as was said; what is lost there comes on top.
        away = (rng.random(n) < lost) & (stratum == 0)
        also = rng.binomial(rest, lost)
        items = bandit.GivenItems(
            values=values[~away],
            stratum=stratum[~away],
            sizes=(1200, 10_800),
            cluster=person[~away],
            missing_stratum=np.concatenate([stratum[away], np.ones(also, dtype=int)]),
            missing_cluster=np.concatenate([person[away], rng.integers(0, people, also)]),
        )
        plain = bandit.stratified_mean(
            values=items.values, stratum=items.stratum, sizes=items.sizes, cluster=items.cluster
        )
        ends = bandit.bounds(stages=[items], plain=plain, span=(0, 100))
        rows["plain"].append(minus(plain, truth))
        low, high = ends.interval
        rows["bounds"].append((plain.value - truth, low - truth, high - truth, plain.standard_error))
    return {name: law_of(own) for name, own in rows.items()}


def policies(*, people, studies, seed, own="epsilon 0.2"):
    """Differences between other policies and the stage's own, with the mean effective sample size of each."""
    rng = np.random.default_rng([4, seed, people])
    truth = truth_of()
    items = rng.choice(UNIVERSE, POOL, replace=False)
    logit, chance = truth.logit[items], truth.chance[items]
    score = 1 / (1 + np.exp(-truth.score[items]))
    designs = {
        "epsilon 0.2": bandit.EpsilonGreedy(epsilon=0.2, top_fraction=0.1),
        "epsilon 0.1": bandit.EpsilonGreedy(epsilon=0.1, top_fraction=0.1),
        "epsilon 0.5": bandit.EpsilonGreedy(epsilon=0.5, top_fraction=0.1),
        "top 0.2": bandit.EpsilonGreedy(epsilon=0.2, top_fraction=0.2),
        "softmax": bandit.Softmax(temperature=0.15, floor=0.1),
        "proportional": bandit.Proportional(trade_off=0.2, power=4),
        "uniform": bandit.Uniform(),
    }
    n = people * ITEMS
    chances = {
        name: bandit.inclusion_probabilities(design=design, n=n, scores=score, n_candidates=POOL, rng=rng)
        for name, design in designs.items()
    }
    means = {
        name: float(np.dot(policy_chance, chance) / policy_chance.sum()) for name, policy_chance in chances.items()
    }
    rows, sizes = {}, {}
    for _ in range(studies):
        drawn = bandit.draw(design=designs[own], n=n, scores=score, n_candidates=POOL, rng=rng)
        person = rng.permutation(n) % people
        answered = rng.random(n) > 0.1
        odds = logit[drawn.selected] + rng.normal(0, 1, people)[person]
        values = (rng.random(n) < 1 / (1 + np.exp(-odds)))[answered].astype(float)
        for name in [name for name in designs if name != own]:
            comparison = bandit.compare_policies(
                values=values,
                selected=drawn.selected[answered],
                logged=chances[own],
                first=chances[own],
                second=chances[name],
                stratum=drawn.stratum[answered],
                planned=[stratum.n for stratum in drawn.strata],
                cluster=person[answered],
            )
            rows.setdefault(name, []).append(minus(comparison, means[name] - means[own]))
            sizes.setdefault(name, []).append(comparison.effective_sample_size)
    return {name: (law_of(own), float(np.mean(sizes[name]))) for name, own in rows.items()}


def proportional_stages(*, people, studies, seed, trade_offs=(0.05, 0.1, 0.4)):
    """The share over all items from one stage drawn in proportion to a power of the scores, by trade-off."""
    truth, rng = truth_of(), np.random.default_rng([5, seed, people])
    rows, n = {}, people * ITEMS
    for _ in range(studies):
        pool = rng.choice(UNIVERSE, POOL, replace=False)
        score = 1 / (1 + np.exp(-truth.score[pool]))
        person = np.repeat(np.arange(people), ITEMS)
        stays = rng.random(n) > 0.1
        odds = rng.normal(0, truth.person_sd, people)[person]
        for trade_off in trade_offs:
            design = bandit.Proportional(trade_off=trade_off, power=4)
            drawn = bandit.draw(design=design, n=n, scores=score, n_candidates=POOL, rng=rng)
            chance = 1 / (1 + np.exp(-(truth.logit[pool[drawn.selected]] + odds)))
            changed = (rng.random(n) < chance)[stays].astype(float)
            estimate = bandit.hajek(
                values=changed, probability=drawn.inclusion_probability[stays], cluster=person[stays], share=True
            )
            rows.setdefault(trade_off, []).append(minus(estimate, truth.chance.mean()))
    return {trade_off: law_of(own) for trade_off, own in rows.items()}


def levels_of_items(*, people, studies, seed, trade_off=0.2):
    """The difference between two levels that are drawn for items and change nothing, in one proportional stage whose
    scores tell much."""
    truth, rng = truth_of(), np.random.default_rng([6, seed, people])
    rows, n = [], people * ITEMS
    for _ in range(studies):
        pool = rng.choice(UNIVERSE, POOL, replace=False)
        score = 1 / (1 + np.exp(-(2 * truth.logit[pool] + rng.normal(0, 0.5, POOL))))
        drawn = bandit.draw(
            design=bandit.Proportional(trade_off=trade_off), n=n, scores=score, n_candidates=POOL, rng=rng
        )
        person = np.repeat(np.arange(people), ITEMS)
        odds = truth.logit[pool[drawn.selected]] + rng.normal(0, truth.person_sd, people)[person]
        level = rng.random(n) < 0.5
        difference = bandit.hajek_difference(
            values=(rng.random(n) < 1 / (1 + np.exp(-odds))).astype(float),
            probability=drawn.inclusion_probability,
            cluster=person,
            first=level,
            second=~level,
        )
        rows.append(minus(difference, 0.0))
    return law_of(rows)


def rare_looks(*, is_adaptive, share, studies, seed, people=200):
    """How often intervals of a rare share that hold at any time do so at all looks of one stage together, around the
    share (`plain`) and around its logit; looks after 30 people and every tenth more.

    An adaptive stage has nine of ten slots in the tenth of the candidates in which the share is three times as high.
    """
    rng, n = np.random.default_rng([9, seed]), people * ITEMS
    rho, person = bandit.mixture_parameter(people // 2), np.repeat(np.arange(people), ITEMS)
    chances, sizes = np.array([3 * share, 7 * share / 9]), [6000, 54_000]
    rest = n // 10 if is_adaptive else round(0.9 * n)
    held = {"plain": 0, "logit": 0}
    for _ in range(studies):
        label = rng.permutation(np.repeat([0, 1], [n - rest, rest]))
        readiness = rng.gamma(4, 0.25, people)[person]
        values = (rng.random(n) < chances[label] * readiness).astype(float)
        holds = dict.fromkeys(held, True)
        for seen in range(30, people + 1, 10):
            now = slice(0, seen * ITEMS)
            strata = {"stratum": label[now], "sizes": sizes}
            if not is_adaptive:
                strata = {"stratum": np.zeros(seen * ITEMS, dtype=int), "sizes": [sum(sizes)]}
            estimate = bandit.stratified_mean(values=values[now], cluster=person[now], share=True, **strata)
            for scale in held:
                low, high = bandit.anytime_interval(estimate, rho=rho, span=(0, 1), scale=scale).interval
                # Without a change there is no interval, and nothing is said.
                holds[scale] &= bool(low <= share <= high) or not estimate.standard_error > 0
        held = {scale: count + holds[scale] for scale, count in held.items()}
    return {scale: count / studies for scale, count in held.items()}


DESIGNS = ("uniform", "epsilon 0.1", "proportional 0.2")


def predictions_of(truth, rng):
    """What may predict, by name: arrays over the universe, of one predictor or of several."""
    chance, mean = truth.chance, truth.chance.mean()
    noise = rng.random((UNIVERSE, 3))
    return {
        "the true chances": chance,
        "shrunken to .3": mean + 0.3 * (chance - mean),
        "with noise of sd .15": chance + rng.normal(0, 0.15, UNIVERSE),
        "noise from 0 to 1": noise[:, 0],
        "three of noise": noise,
        "the true chances and noise": np.column_stack([chance, noise[:, 1]]),
        "overconfident": (truth.score > np.median(truth.score)).astype(float),
        "reversed": 2 * mean - chance,
        "missing for a third": np.where(noise[:, 2] < 1 / 3, np.nan, chance),
        "all alike": np.full(UNIVERSE, 0.4),
    }


def assistance(*, people, studies, seed, designs=DESIGNS, names=None, in_points=False, person_sd=0.6, pair_sd=1.3):
    """Of one stage, by design and by what predicts: how many more people the figure needs with the predictions than
    without (below 0: fewer), by squared standard errors (right on average) and by squared errors with their Monte Carlo
    error, and the law of the assisted estimate. The figure is the share that changes, or the mean size of changes."""
    truth, rng = truth_of(person_sd, pair_sd), np.random.default_rng([11, seed, people])
    predictions = {key: own for key, own in predictions_of(truth, rng).items() if names is None or key in names}
    n, rows, score = people * ITEMS, {}, 1 / (1 + np.exp(-truth.score))
    mean = truth.chance.mean() * (STEPS.mean() if in_points else 1)
    for _ in range(studies):
        pool = rng.choice(UNIVERSE, POOL, replace=False)
        for design in designs:
            if design == "proportional 0.2":
                drawing = bandit.Proportional(trade_off=0.2, power=3)
            else:
                drawing = bandit.Uniform() if design == "uniform" else bandit.EpsilonGreedy(0.1, 0.1)
            drawn = bandit.draw(design=drawing, n=n, scores=score[pool], n_candidates=POOL, rng=rng)
            at, label = pool[drawn.selected], drawn.stratum
            cut = drawing.strata(score[pool], np.random.default_rng(0), n_candidates=POOL).label
            person = rng.permutation(n) % people
            odds = truth.logit[at] + rng.normal(0, person_sd, people)[person]
            values = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(float)
            if in_points:
                values *= rng.choice(STEPS, n)
            common = {"values": values, "cluster": person}
            if design == "proportional 0.2":
                weight, estimate = 1 / drawn.inclusion_probability, bandit.hajek
                common |= {"probability": drawn.inclusion_probability, "candidates": POOL, "universe_size": UNIVERSE}
            else:
                sizes = [stratum.size for stratum in drawn.strata]
                weight, estimate = (np.array(sizes) / np.bincount(label))[label], bandit.stratified_mean
                common |= {"stratum": label, "sizes": sizes, "universe_size": UNIVERSE}
            plain = estimate(**common, share=not in_points)
            for name, predicted in predictions.items():
                fitted = bandit.assist(
                    values=values,
                    predictions=predicted[at],
                    prediction_means=[np.nanmean(predicted[pool[cut == number]], axis=0) for number in np.unique(cut)],
                    stratum=label,
                    weight=weight,
                    cluster=person,
                )
                helped = estimate(**common, share=not in_points, adjustment=fitted.adjustment)
                rows.setdefault((design, name), []).append((*minus(helped, mean), *minus(plain, mean)))
    return {key: (price_of(np.array(own)), law_of([row[:4] for row in own])) for key, own in rows.items()}


@dataclass(frozen=True)
class Price:
    """How many more people a figure needs: by standard errors, by errors, and the Monte Carlo error of the latter."""

    by_standard_error: float
    by_error: float
    uncertain: float


def price_of(rows):
    squares, plain = rows[:, 0] ** 2, rows[:, 4] ** 2
    ratio = squares.mean() / plain.mean()
    uncertain = (squares - ratio * plain).std() / len(rows) ** 0.5 / plain.mean()
    return Price(np.mean(rows[:, 3] ** 2) / np.mean(rows[:, 7] ** 2) - 1, ratio - 1, uncertain)


def carry_over(*, change, studies, seed, people=88, stages=4, holdout=0.2):
    """Studies in which a change makes the next item's change less likely, by `change` logits: how far the share of all
    stages and that of first items are from the share under uniform booklets, how often each holds it, and how often
    sampled minus holdout is said to be more than chance (.05 where nothing carries over)."""
    from survey.services.results.estimates import study_figures

    truth, rng = truth_of(), np.random.default_rng([10, seed, people])

    def answer(drawn, person):
        """In the order in which each person got them, which is that of the rows."""
        changed, before = np.zeros(drawn.size), np.zeros(int(person.max()) + 1)
        own = rng.normal(0, truth.person_sd, before.size)
        for place in range(ITEMS):
            rows = np.arange(place, drawn.size, ITEMS)
            who = person[rows]
            odds = truth.logit[drawn[rows]] + own[who] + change * before[who]
            changed[rows] = rng.random(rows.size) < 1 / (1 + np.exp(-odds))
            before[who] = changed[rows]
        return changed

    def part(kind, place, many):
        n = many * ITEMS
        pool = rng.choice(UNIVERSE, POOL, replace=False)
        label, sizes, slots = np.zeros(n, dtype=int), (POOL,), (n,)
        drawn = rng.choice(pool, n, replace=False)
        if kind == "sampled" and place:
            best = np.argpartition(-truth.score[pool], POOL // 10)
            rest, sizes = round(0.1 * n), (POOL // 10, POOL - POOL // 10)
            slots = (n - rest, rest)
            halves = (pool[best[: sizes[0]]], pool[best[sizes[0] :]])
            drawn = np.concatenate([rng.choice(half, count) for half, count in zip(halves, slots, strict=True)])
            order = rng.permutation(n)
            drawn, label = drawn[order], np.repeat([0, 1], slots)[order]
        person = np.repeat(np.arange(many), ITEMS)
        stage_part = study_figures.StagePart(
            stage=place + 1,
            role=kind,
            names=("all",) if len(sizes) == 1 else ("top", "rest"),
            sizes=sizes,
            slots=slots,
            universe_size=UNIVERSE,
            stratum=label,
            cluster=person,
            probability=np.ones(n),
            planned_probability=np.ones(1),
            people=many,
        )
        return stage_part, answer(drawn, person)

    def figure(parts, estimates):
        return study_figures.combine(parts, estimates, name="", title="", unit="share", naive=None).combined

    everybody = 4000
    uniform = answer(rng.choice(UNIVERSE, everybody * ITEMS), np.repeat(np.arange(everybody), ITEMS))
    target, first_target = truth.chance.mean(), truth.chance.mean()
    if change:
        # The mean under uniform booklets, by many people; chance is small next to what is looked for.
        target = float(
            np.mean(
                [
                    uniform.mean(),
                    *(
                        answer(rng.choice(UNIVERSE, everybody * ITEMS), np.repeat(np.arange(everybody), ITEMS)).mean()
                        for _ in range(9)
                    ),
                ]
            )
        )
    rows, p = {"all stages": [], "first items": []}, []
    held = round(holdout * people)
    for _ in range(studies):
        made = [
            part(kind, place, held if kind == "holdout" else people - held)
            for place in range(stages)
            for kind in ("sampled", "holdout")
        ]
        own = [study_figures.estimate(stage_part, values, share=True) for stage_part, values in made]
        rows["all stages"].append(minus(figure([stage_part for stage_part, _values in made], own), target))
        firsts = [
            (stage_part.under(np.arange(values.size) % ITEMS == 0), values[::ITEMS]) for stage_part, values in made
        ]
        started = [study_figures.estimate(stage_part, values, share=True) for stage_part, values in firsts]
        rows["first items"].append(minus(figure([stage_part for stage_part, _values in firsts], started), first_target))
        both = [
            (made[place + 1][0], study_figures.sampled_minus_holdout(own[place], own[place + 1]))
            for place in range(2, 2 * stages, 2)
        ]
        p.append(
            figure([stage_part for stage_part, _found in both], [estimate for _one, estimate in both]).p_two_sided()
        )
    return {name: law_of(own) for name, own in rows.items()}, float(np.mean(np.array(p) < 0.05))


BUDGET_SHARE, BUDGET_RATES = 0.39, (0.46, 0.32)


def power_of_budgets(*, sittings, studies, seed):
    """How often studies find the differences that `plan_budget` says are found with 80 % power, by effect.

    The outcome's and the evidence's difference are made as large as is said, and a study's own test is made. For two
    conditions the difference is added to what studies without one find.
    """
    from survey.instruments.belief_update.reports.budget import simulation as budget

    setting = budget.StudySetting(
        sittings=sittings, items=ITEMS, candidates=POOL, holdout=0.1, controls=0.0667, dropout=0.1
    )
    designs = (bandit.EpsilonGreedy(epsilon=0.1, top_fraction=0.1),)

    def simulated(offset, **change):
        shape = {
            "tasks": tuple(f"task {place // 10}" for place in range(400)),
            "domains": tuple(f"domain {place // 80}" for place in range(400)),
            "rates": BUDGET_RATES,
            "pair_sd": 0.9,
            "hidden_share": 1 / 3,
            "respondent_sd": 1.0,
            "false_change": 0.05,
        }
        world = budget.World(**(shape | change))
        return [
            budget.one_study(
                budget.BeliefPlan(world, setting, designs, truth=number % 2),
                rng=np.random.default_rng([seed, offset, number]),
            )
            for number in range(studies)
        ]

    def rejected(studies, name, *added):
        tests = [(study[name], more) for study in studies for more in added or (0.0,)]
        return float(
            np.mean(
                [
                    abs(effect.value + more)
                    > bandit.student_t_quantile(0.975, effect.degrees_of_freedom) * effect.standard_error
                    for effect, more in tests
                ]
            )
        )

    plain = simulated(0)
    outcome, condition, evidence = (
        float(np.mean([study[f"detectable_{name}"] for study in plain]))
        for name in ("outcome", "condition", "evidence")
    )
    by_outcome = simulated(1, rates=(BUDGET_SHARE + outcome / 2, BUDGET_SHARE - outcome / 2))
    by_evidence = simulated(2, false_change=chance_of_average(BUDGET_SHARE - evidence))
    return {
        "outcome": rejected(by_outcome, "outcome"),
        # Added and taken off, since the two levels are alike: that halves what chance does to the figure.
        "condition": rejected(plain, "condition", condition, -condition),
        "evidence": rejected(by_evidence, "evidence"),
    }


def chance_of_average(share, person_sd=1.0):
    """The chance for an average person where this share of all people changes."""
    people = person_sd * np.array([NormalDist().inv_cdf((place + 0.5) / 400) for place in range(400)])
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-(middle + people)))).mean() < share else (low, middle)
    return float(1 / (1 + np.exp(-low)))
