"""How long do alignment's tables take? 8 models, 500 pairs, 10,000 resamples, compared with a plain loop.

    python benchmarks/alignment_speed.py [--models 8] [--pairs 500] [--samples 10000]

Answers and predictions are made up. The loop resamples 200 times and its time is scaled to all resamples.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # The stated figure is for one core.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from survey.instruments.belief_update.reports.alignment.scores import (
    PAPER_ALPHAS,
    AlignmentComparison,
    Trial,
    weighted_accuracy,
    weighted_cross_entropy,
)

LOOPED = 200


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--samples", type=int, default=10_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n = options.pairs
    everywhere = np.ones(n, dtype=bool)
    trials = [
        Trial(f"model {k}", rng.integers(0, 2, n).astype(np.int8), rng.integers(0, 2, n).astype(np.int8), everywhere)
        for k in range(options.models)
    ]
    change = {"change_if_correct": rng.uniform(size=n), "change_if_incorrect": rng.uniform(size=n)}

    started = time.perf_counter()
    comparison = AlignmentComparison(trials, **change, samples=options.samples, rng=rng)
    scores = [comparison.score(trial.name) for trial in trials]
    seconds = time.perf_counter() - started

    started = time.perf_counter()
    for trial in trials:
        belief = comparison.belief(trial.name)
        for _ in range(LOOPED):
            rows = rng.integers(0, n, n)
            weighted_accuracy(trial.correct[rows], belief[rows], PAPER_ALPHAS)
            weighted_cross_entropy(trial.correct[rows], belief[rows], PAPER_ALPHAS)
    loop = (time.perf_counter() - started) * options.samples / LOOPED
    size = f"{len(scores)} models, {n} pairs, {options.samples} resamples"
    print(f"{size}: {seconds:.2f} s; a plain loop would take {loop:.1f} s")
    print(json.dumps({"seconds": seconds, "loop_seconds": loop, "ratio": loop / seconds}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
