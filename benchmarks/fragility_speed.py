"""How long it takes to say which judgements carry a ranking, at 100,000 judgements. It must stay under a second.

    python benchmarks/fragility_speed.py [--judgements 100000] [--names 20] [--seed 1]

Two rankings: Bradley-Terry with side and ridge on simulated comparisons, a tenth of them ties, with and without unequal
weights; and means of 0/1 figures of as many names on the same rows. Each time is of the whole ranking: the first place
and every two neighbours, found by influence and confirmed by fitting again. Seconds are of the processor. The last line
is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from time import process_time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bandit.fragility import Fragility, fragile_bradley_terry, fragile_means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=100_000)
    parser.add_argument("--names", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    n, k = arguments.judgements, arguments.names
    strengths = rng.normal(0, 0.6, k)
    first = rng.integers(k, size=n)
    second = (first + 1 + rng.integers(k - 1, size=n)) % k
    chance = 1 / (1 + np.exp(-(strengths[first] - strengths[second] + 0.1)))
    outcome = (rng.random(n) < chance).astype(np.float64)
    outcome[rng.random(n) < 0.1] = 0.5
    weight = 1 / rng.uniform(0.05, 1, n)
    right = (rng.random((n, k)) < rng.uniform(0.5, 0.6, k)).astype(np.float64)
    duels = {"first": first, "second": second, "outcome": outcome, "names": k}
    cases = {
        "Bradley-Terry, equal weights": lambda: fragile_bradley_terry(**duels),
        "Bradley-Terry, unequal weights": lambda: fragile_bradley_terry(**duels, weight=weight),
        "means": lambda: fragile_means(values=right),
    }
    print(f"{n:,} rows, {k} names")
    print(f"{'ranking':32}{'seconds':>9}{'rows for the first place':>26}{'rows for neighbours':>24}")
    rows = []
    for title, work in cases.items():
        started = process_time()
        fragility: Fragility = work()
        seconds = process_time() - started
        counts = [pair.count for pair in fragility.neighbours if pair.count is not None]
        first_place = fragility.first.count if fragility.first is not None else None
        print(f"{title:32}{seconds:9.2f}{first_place or 0:26,}{f'{min(counts):,} to {max(counts):,}':>24}")
        rows.append({"ranking": title, "seconds": round(seconds, 3), "first_place": first_place, "neighbours": counts})
    print(json.dumps({"rows": n, "names": k, "rankings": rows}))
    if any(row["seconds"] > 1 for row in rows):
        raise SystemExit("over a second")


if __name__ == "__main__":
    main()
