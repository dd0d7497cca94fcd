"""Whether the intervals of next-token studies cover: simulated studies with a known truth, uniform and adaptive.

    python -m benchmarks.next_token_laws --studies 2000

Simulated people guess tokens with chances that depend on passage, position and person
(`survey.instruments.next_token.analysis.simulation`). What a study aims at is worked out on 16,000 passages. The share
of people above a model is of people on the texts that they read, so each study has an aim of its own: other people who
read the same. Seeds follow from the figure's name. A row fails where the share of intervals that hold the truth lies
outside 93 to 97 %, or a bias exceeds a tenth of the intervals' width.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from bandit.designs import Design, EpsilonGreedy, Softmax
from survey.instruments.next_token.analysis.simulation import (
    GuessFigures,
    GuessPlan,
    GuessWorld,
    above_a_model,
    study,
    truth,
)
from survey.services.base.seeds import generator

WORLD = GuessWorld()
SEED = 20261124
GREEDY: Design = EpsilonGreedy(epsilon=0.4, top_fraction=0.3)
CASES = {
    "uniform": GuessPlan(),
    "gap, epsilon-greedy": GuessPlan(design=GREEDY, priority="gap"),
    "uncertainty, softmax": GuessPlan(design=Softmax(temperature=0.1, floor=0.3), priority="uncertainty"),
}
ABOVE, PEOPLE = "people above a model", (30, 100)
LOW, HIGH = 0.93, 0.97


def one(plan: GuessPlan, name: str, number: int) -> list[tuple[float, float, float]]:
    """Of one study the value and the ends of each figure."""
    estimates = study(WORLD, plan, rng=generator(SEED, name, number))
    return [
        (
            estimate.value,
            np.nan if estimate.low is None else estimate.low,
            np.nan if estimate.high is None else estimate.high,
        )
        for estimate in estimates
    ]


def rows(cases: Sequence[str], *, studies: int, jobs: int) -> list[tuple[str, str, float, float, float, float]]:
    """(case, figure, truth, bias, cover, width) of each printed figure."""
    printed = []
    for name in cases:
        plan = CASES[name]
        targets = truth(WORLD, plan, rng=generator(SEED, name, "truth"))
        work = partial(one, plan, name)
        with ProcessPoolExecutor(jobs) as pool:
            made = np.array(list(pool.map(work, range(studies), chunksize=10)))
        for place, (figure, target) in enumerate(zip(GuessFigures._fields, targets, strict=True)):
            value, low, high = made[:, place].T
            cover = float(((low <= target) & (target <= high)).mean())
            printed.append((name, figure, target, float(value.mean() - target), cover, float((high - low).mean())))
    return printed


def one_above(people: int, number: int) -> tuple[float, float, float, float]:
    """Of one study the value and the ends of the share of people above a model, and what it aims at."""
    figure, aim = above_a_model(WORLD, people=people, rng=generator(SEED, "above", people, number))
    return figure.number, *(figure.interval or (np.nan, np.nan)), aim


def rows_above(*, studies: int, jobs: int) -> list[tuple[str, str, float, float, float, float]]:
    printed = []
    for people in PEOPLE:
        with ProcessPoolExecutor(jobs) as pool:
            made = np.array(list(pool.map(partial(one_above, people), range(studies), chunksize=10)), dtype=float)
        value, low, high, aim = made.T
        cover = float(((low <= aim) & (aim <= high)).mean())
        width, bias = float((high - low).mean()), float((value - aim).mean())
        printed.append((f"{people} people", "above", float(aim.mean()), bias, cover, width))
    return printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", action="append", choices=[*CASES, ABOVE], help="all without it")
    arguments = parser.parse_args()
    print(f"{'case':24} {'figure':12} {'truth':>8} {'bias':>8} {'cover':>6} {'width':>7}")
    failed = False
    cases = arguments.case or [*CASES, ABOVE]
    printed = rows([case for case in cases if case in CASES], studies=arguments.studies, jobs=arguments.jobs)
    if ABOVE in cases:
        printed += rows_above(studies=arguments.studies, jobs=arguments.jobs)
    for case, figure, target, bias, cover, width in printed:
        wrong = not LOW <= cover <= HIGH or abs(bias) > 0.1 * width
        failed |= wrong
        mark = "  <- outside" if wrong else ""
        print(f"{case:24} {figure:12} {target:8.4f} {bias:+8.4f} {cover:6.3f} {width:7.3f}{mark}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
