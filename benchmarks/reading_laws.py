"""Whether the intervals of reading studies cover: simulated studies with a known truth.

    python -m benchmarks.reading_laws --studies 2000

People and passages are drawn again for each study (`survey.instruments.self_paced_reading.analysis.simulation`). What a
study aims at is worked out on 40,000 people and as many passages, with the same rules of cleaning. Seeds follow from
the case's name. A row fails where the share of intervals that hold the truth lies outside 93 to 97 %.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from survey.instruments.self_paced_reading.analysis.simulation import ReadingPlan, ReadingWorld, study, truth
from survey.services.base.seeds import generator

WORLD = ReadingWorld()
SEED = 20261124
CASES = {
    "40 people, 8 of 16 passages": ReadingPlan(),
    "24 people, all of 12 passages": ReadingPlan(people=24, passages=12, each=12),
    "100 people, 5 of 40 passages": ReadingPlan(people=100, passages=40, each=5),
}
LOW, HIGH = 0.93, 0.97
Row = list[tuple[float, float, float]]


def one(plan: ReadingPlan, name: str, number: int) -> Row:
    """Of one study the value and the ends of each figure."""
    nan = float("nan")
    return [
        (estimate.value, nan if estimate.low is None else estimate.low, nan if estimate.high is None else estimate.high)
        for estimate in study(WORLD, plan, rng=generator(SEED, name, number)).values()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="the beginning of a case's name")
    arguments = parser.parse_args()
    failed = False
    print(f"{'case':32} {'figure':26} {'truth':>9} {'bias':>8} {'cover':>7} {'width':>8}")
    for name, plan in CASES.items():
        if not name.startswith(arguments.only):
            continue
        aimed = truth(WORLD, plan, rng=generator(SEED, name, "truth"))
        with ProcessPoolExecutor(arguments.jobs) as pool:
            made = np.array(list(pool.map(partial(one, plan, name), range(arguments.studies), chunksize=20)))
        for place, (figure, target) in enumerate(aimed.items()):
            value, low, high = made[:, place].T
            cover = float(np.mean((low <= target) & (target <= high)))
            wrong = not LOW <= cover <= HIGH
            failed = failed or wrong
            print(
                f"{name:32} {figure:26} {target:9.3f} {np.nanmean(value) - target:8.3f} {100 * cover:6.1f}% "
                f"{np.nanmean(high - low):8.3f}{'  FAILED' if wrong else ''}",
                flush=True,
            )
    sys.exit(failed)


if __name__ == "__main__":
    main()
