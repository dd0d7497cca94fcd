"""Whether the intervals of token comparisons cover: simulated studies with a known truth.

    python -m benchmarks.token_comparison_laws --studies 2000

People hold known distributions (`survey.instruments.token_comparison.analysis.simulation`). The truth is the mean of
L - L_G, and of L, over very many contexts. Where the generator is unlike the people, or draws are few, the estimator's
terms are heavy-tailed: its mean over studies lies below the truth, and no interval around it can cover the truth as
often as it should. A report then prints no interval and no perplexity (`has_enough_draws`). The last column is the
share of studies in which it prints them; the cover is that of these studies. A row fails where it lies outside 93 to
97 % and more than a tenth print it. The figure "as stated" takes rounded chances as they are, and is not asked. Seeds
follow from the figure's name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from survey.instruments.token_comparison.analysis.loss import (
    by_draws,
    estimate,
    has_enough_draws,
    interval,
    resampled,
    rise,
    values_of,
)
from survey.instruments.token_comparison.analysis.rewards import RATIOS
from survey.instruments.token_comparison.analysis.rounding import unrounded
from survey.instruments.token_comparison.analysis.simulation import TokenPlan, TokenWorld, study
from survey.services.base.seeds import generator

SEED = 20261124
LOW, HIGH = 0.93, 0.97


@dataclass(frozen=True)
class Case:
    world: TokenWorld
    plan: TokenPlan


CASES = {
    "generator near people": Case(TokenWorld(distance=0.5), TokenPlan()),
    "one context a text": Case(TokenWorld(distance=0.5), TokenPlan(texts=80, contexts=1)),
    "few answers, some x unanswered": Case(TokenWorld(distance=0.5), TokenPlan(people=8)),
    "generator farther, 1 nat": Case(TokenWorld(distance=1.0), TokenPlan()),
    "generator far, 2 nats": Case(TokenWorld(distance=2.0), TokenPlan()),
    "rounded to 11 chances, near": Case(TokenWorld(distance=0.5, rounded=True), TokenPlan()),
    "rounded, 1 nat": Case(TokenWorld(distance=1.0, rounded=True), TokenPlan()),
    "rounded, 1 nat, three answers": Case(
        TokenWorld(distance=1.0, rounded=True, person_sd=0.4, answer_sd=0.5),
        TokenPlan(texts=60, contexts=1, asked=1200, responses=3),
    ),
    "rounded, 2 nats": Case(TokenWorld(distance=2.0, rounded=True), TokenPlan()),
    "rounded, 5 draws": Case(TokenWorld(distance=1.0, rounded=True), TokenPlan(draws=5)),
}
FIGURES = ("L - L_G", "L", "L - L_G as stated")


def one(case: Case, name: str, number: int) -> list[tuple[float, float, float]]:
    """Of one study the value and the ends of each figure; no ends where the report prints none."""
    rng = generator(SEED, name, number)
    made = study(case.world, case.plan, rng=rng)
    stated, nothing = made.answers, (np.nan, np.nan)
    answers = unrounded(made.comparisons, stated, RATIOS) if case.world.rounded else stated
    figure, as_stated = estimate(made.comparisons, answers), estimate(made.comparisons, stated)
    if figure is None or as_stated is None:
        return [(np.nan, *nothing)] * len(FIGURES)
    drawn = resampled(made.comparisons, answers, rng=rng, samples=400)
    texts = case.plan.texts
    ends = interval(figure.difference, drawn[:, 0], texts)
    moved = rise(list(by_draws(made.comparisons, values_of(made.comparisons, answers), rng=rng)))
    is_printed = ends is not None and has_enough_draws(moved, ends)
    of_stated = resampled(made.comparisons, stated, rng=rng, samples=400)[:, 0]
    return [
        (figure.difference, *((is_printed and ends) or nothing)),
        (figure.loss, *((is_printed and interval(figure.loss, drawn[:, 1], texts)) or nothing)),
        (as_stated.difference, *(interval(as_stated.difference, of_stated, texts) or nothing)),
    ]


def truth_of(case: Case, name: str) -> tuple[float, float]:
    """L - L_G and L, over 100,000 contexts."""
    rng = generator(SEED, name, "truth")
    plan = TokenPlan(texts=2000, contexts=1, draws=1, people=1)
    made = [study(case.world, plan, rng=rng) for _ in range(50)]
    difference = float(np.mean([study.true.mean() for study in made]))
    return difference, float(np.mean([-study.people.log_true.mean() for study in made]))


def rows(cases: Sequence[str], *, studies: int, jobs: int) -> list[tuple[str, str, float, float, float, float, float]]:
    """(case, figure, truth, mean over studies, cover of the truth, width, share of studies that print it)."""
    printed = []
    for name in cases:
        case = CASES[name]
        difference, loss = truth_of(case, name)
        with ProcessPoolExecutor(jobs) as pool:
            made = np.array(list(pool.map(partial(one, case, name), range(studies), chunksize=20)))
        for place, (figure, target) in enumerate(zip(FIGURES, (difference, loss, difference), strict=True)):
            value, low, high = made[:, place].T
            has = np.isfinite(low)
            cover = float(((low <= target) & (target <= high))[has].mean()) if has.any() else np.nan
            width = float((high - low)[has].mean()) if has.any() else np.nan
            printed.append((name, figure, target, float(value.mean()), cover, width, float(has.mean())))
    return printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", action="append", choices=list(CASES), help="all without it")
    arguments = parser.parse_args()
    print(f"{'case':32} {'figure':18} {'truth':>7} {'mean':>7} {'covers it':>10} {'width':>7} {'printed':>8}")
    failed = False
    for case, figure, target, mean, cover, width, share in rows(
        arguments.case or list(CASES), studies=arguments.studies, jobs=arguments.jobs
    ):
        wrong = "stated" not in figure and share > 0.1 and not LOW <= cover <= HIGH
        failed |= wrong
        mark = "  <- outside" if wrong else ""
        print(f"{case:32} {figure:18} {target:7.3f} {mean:7.3f} {cover:10.3f} {width:7.3f} {share:8.2f}{mark}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
