"""Whether the report on evidence in steps can be trusted: cover of its intervals, size, and how it tells people apart.

    python -m benchmarks.steps_laws --studies 2000

Simulated people put evidence together in a known way (`survey.instruments.belief_update.analysis.step_simulation`).
What a study aims at is worked out on 4,000 items with 40 answers each: the figure that it would print with very many
items and people, rounding and clipping included. Seeds follow from the case. A row fails where the share of intervals
that hold the truth lies outside 93 to 97 %, a bias exceeds a fifth of the intervals' width, or more than 3 % of the
studies have no interval. Of `scale`, a ratio, bias and width are by the median. For people who follow Bayes' rule,
`excludes 1` of the slope is the size of a test against 1, and `excludes Bayes` that of the report's test, against the
slope that Bayesian people would have with these beliefs: 3 to 7 % is wanted. For others both are power.
The last line of a case says how often each way was said to fit best.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from survey.figures import Figure
from survey.instruments.belief_update.analysis.bayes_person import bayes_slope
from survey.instruments.belief_update.analysis.composing import NAMES
from survey.instruments.belief_update.analysis.composition import (
    CLIPS,
    Composition,
    StepAnswers,
    best_of,
    compose,
    fits,
    order_effect,
    scale_of_adding,
)
from survey.instruments.belief_update.analysis.step_simulation import StepPlan, study
from survey.services.base.seeds import generator

SEED = 20261124
COARSE = StepPlan(noise=0.4, step=5, spread=0.5)
CASES = {
    **{name: StepPlan(kind=name) for name in NAMES},
    **{f"{name}, in fives, noisy": replace(COARSE, kind=name) for name in NAMES},
    "bayes, three steps": StepPlan(steps=3, people=240),
    "averaging, three steps": StepPlan(kind="averaging", steps=3, people=240),
    "bayes, half the people": StepPlan(people=60, items=30),
    "bayes, few answers an item": StepPlan(people=120, items=100),
}
LOW, HIGH = 0.93, 0.97
LARGE = {"items": 4000, "people": 16_000}


def figures(
    answers: StepAnswers, *, rng: np.random.Generator
) -> tuple[dict[str, Figure], Composition, Composition, list[Figure]]:
    """Every figure that the report gives an interval, and what of it says which way fits best."""
    by_clip = [compose(answers, clip=clip) for clip in CLIPS]
    in_points = compose(answers, in_points=True)
    main = by_clip[0]
    if main is None or in_points is None:
        raise ValueError("the plan is too small")
    scale, uncut = (scale_of_adding(answers, rng=rng, cut=cut) for cut in (True, False))
    estimates = {
        "slope": main.slope,
        **{f"weight of step {step}": weight for step, weight in enumerate(main.weights, 1)},
        "last less first": main.recency,
        **{f"slope, clip {fit.clip:g}": fit.slope for fit in by_clip[1:] if fit is not None},
        "slope, points": in_points.slope,
        **{f"weight {step}, points": weight for step, weight in enumerate(in_points.weights, 1)},
        "order effect": order_effect(answers),
        "order, points": order_effect(answers, in_points=True),
        "scale": scale,
    }
    return estimates, main, in_points, [scale, uncut]


def one(plan: StepPlan, name: str, number: int) -> tuple[list[tuple[float, float, float]], float, str, bool]:
    """Of one study the figures with their ends (NaN where there are none), the slope without parting the people, the
    way that fits best, and whether the interval excludes the slope of Bayesian people."""
    rng = generator(SEED, name, number)
    answers = study(plan, rng=rng)
    estimates, main, in_points, scales = figures(answers, rng=rng)
    best = best_of(fits(main, in_points), scales)
    values = [
        (float("nan"),) * 3
        if each.value is None or each.low is None or each.high is None
        else (each.value, each.low, each.high)
        for each in estimates.values()
    ]
    aim = bayes_slope(answers, rng=rng)
    return values, main.naive or 0.0, best, aim is not None and not main.slope.holds(aim)


def rows(cases: Sequence[str], *, studies: int, jobs: int) -> bool:
    """Print every case; whether a row failed."""
    failed = False
    for name in cases:
        plan = CASES[name]
        aims = generator(SEED, name, "truth")
        truth, *_rest = figures(study(replace(plan, **LARGE), rng=aims), rng=aims)
        with ProcessPoolExecutor(jobs) as pool:
            made = list(pool.map(partial(one, plan, name), range(studies), chunksize=20))
        values = np.array([estimates for estimates, *_others in made])
        for place, (figure, target) in enumerate(truth.items()):
            value, low, high = values[np.isfinite(values[:, place, 1]), place].T
            aim = target.value or 0.0
            cover = float(((low <= aim) & (aim <= high)).mean())
            # The mean of a ratio says little where the denominator is nearly 0 in a few studies.
            centre = np.median if figure == "scale" else np.mean
            bias, width = float(centre(value) - aim), float(centre(high - low))
            wrong = not LOW <= cover <= HIGH or abs(bias) > 0.2 * width or len(value) < 0.97 * studies
            failed |= wrong
            beside = f"{float(((low > 1) | (high < 1)).mean()):10.3f}" if figure == "slope" else " " * 10
            mark = "  <- outside" if wrong else ""
            print(f"{name:28} {figure:18} {aim:7.3f} {bias:+8.4f} {cover:6.3f} {width:7.3f} {beside}{mark}")
        excludes = float(np.mean([excluded for *_others, excluded in made]))
        if plan.kind == "bayes":
            failed |= not 0.03 <= round(excludes, 2) <= 0.07
        naive = np.mean([naive_value for _values, naive_value, *_others in made])
        named = Counter(best for _values, _naive, best, _excludes in made)
        shares = ", ".join(f"{way} {count / studies:.3f}" for way, count in named.most_common())
        print(f"{name:28} excludes Bayes: {excludes:.3f}")
        print(f"{name:28} best: {shares}; slope without parting the people {naive:.3f}", flush=True)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", action="append", choices=list(CASES), help="all without it")
    arguments = parser.parse_args()
    print(f"{'case':28} {'figure':18} {'truth':>7} {'bias':>8} {'cover':>6} {'width':>7} {'excludes 1':>10}")
    sys.exit(rows(arguments.case or list(CASES), studies=arguments.studies, jobs=arguments.jobs))


if __name__ == "__main__":
    main()
