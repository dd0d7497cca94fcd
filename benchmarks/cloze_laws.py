"""Whether the intervals of cloze studies cover: simulated studies with a known truth, uniform and adaptive.

    python -m benchmarks.cloze_laws --studies 2000

Simulated people write words drawn from known distributions (`survey.instruments.cloze.analysis.simulation`). What a
study aims at is worked out on 20,000 sentences: the figure that it would print if every position of very many sentences
had as many answers as the study asks for at each. Seeds follow from the figure's name. A row fails where the share of
intervals that hold the truth lies outside 93 to 97 %, or a bias exceeds a tenth of the intervals' width.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from bandit.designs import Design, EpsilonGreedy, Softmax
from survey.instruments.cloze.analysis.simulation import ClozePlan, ClozeWorld, study, truth
from survey.services.base.seeds import generator

WORLD = ClozeWorld()
DIFFERENT_PEOPLE = "people differ by 1.5 logits"
WORLDS = {DIFFERENT_PEOPLE: ClozeWorld(person_sd=1.5)}  # every other case is of WORLD
SEED = 20261123
GREEDY: Design = EpsilonGreedy(epsilon=0.3, top_fraction=0.3)
CASES = {
    "uniform": ClozePlan(),
    "uncertainty, epsilon-greedy": ClozePlan(design=GREEDY, priority="uncertainty"),
    "uncertainty, softmax": ClozePlan(design=Softmax(temperature=0.3, floor=0.2), priority="uncertainty"),
    "gap, epsilon-greedy": ClozePlan(design=GREEDY, priority="gap"),
    "three stages, uncertainty": ClozePlan(drawn=(80, 80, 80), design=GREEDY, priority="uncertainty"),
    "many sentences drawn whole": ClozePlan(sentences=60, drawn=(240,)),
    DIFFERENT_PEOPLE: ClozePlan(),
}
LOW, HIGH = 0.93, 0.97


def one(plan: ClozePlan, name: str, number: int) -> list[tuple[float, float, float]]:
    """Of one study the value and the ends of each figure: PNC of each model, their difference, the mean surprisal."""
    estimates = study(WORLDS.get(name, WORLD), plan, rng=generator(SEED, name, number), samples=500)
    figures = [*estimates.pnc.values(), *estimates.differences.values(), estimates.mean]
    return [(figure.value or np.nan, *(figure.interval or (np.nan, np.nan))) for figure in figures]


def rows(cases: Sequence[str], *, studies: int, jobs: int) -> list[tuple[str, str, float, float, float, float]]:
    """(case, figure, truth, bias, cover, width) of each printed figure."""
    printed = []
    for name in cases:
        plan = CASES[name]
        pnc, mean = truth(WORLDS.get(name, WORLD), plan, rng=generator(SEED, name, "truth"))
        names = [f"PNC of {model}" for model in pnc]
        values = list(pnc.values())
        first, second = values
        truths = [*values, first - second, mean]
        names += ["difference of PNC", "mean human surprisal"]
        work = partial(one, plan, name)
        with ProcessPoolExecutor(jobs) as pool:
            made = np.array(list(pool.map(work, range(studies), chunksize=20)))
        for place, (figure, target) in enumerate(zip(names, truths, strict=True)):
            value, low, high = made[:, place].T
            cover = float(((low <= target) & (target <= high)).mean())
            printed.append((name, figure, target, float(value.mean() - target), cover, float((high - low).mean())))
    return printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", action="append", choices=list(CASES), help="all without it")
    arguments = parser.parse_args()
    print(f"{'case':32} {'figure':24} {'truth':>7} {'bias':>8} {'cover':>6} {'width':>7}")
    failed = False
    for case, figure, target, bias, cover, width in rows(
        arguments.case or list(CASES), studies=arguments.studies, jobs=arguments.jobs
    ):
        wrong = not LOW <= cover <= HIGH or abs(bias) > 0.1 * width
        failed |= wrong
        mark = "  <- outside" if wrong else ""
        print(f"{case:32} {figure:24} {target:7.3f} {bias:+8.4f} {cover:6.3f} {width:7.3f}{mark}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
