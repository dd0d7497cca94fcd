"""How long it takes to score, stratify and draw from all 2 N (N - 1) pairs of a bank.

    python benchmarks/exhaustive_scoring.py [--rank 64] [--slots 1320] [--threads 2] [--questions N]

N is the number of questions in `../shared/data/questions.csv` (or HUNCH_STUDY_DATA), else 16,439. The factors are
random whole numbers: time and memory depend on their shape alone. `seconds` and `peak_gib` are those of a child process
that starts from the factors' file: start, load, score and stratify every pair, draw. The last line is JSON.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DATA = Path(os.environ.get("HUNCH_STUDY_DATA", ROOT / "../shared/data"))
QUESTIONS = 16_439


def bank_size() -> int:
    """The questions of the study's bank."""
    file = DATA / "questions.csv"
    if not file.is_file():
        return QUESTIONS
    with file.open(newline="", encoding="utf-8") as lines:
        return sum(1 for _ in csv.DictReader(lines))


def write_factors(file: Path, *, questions: int, rank: int) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    largest = 2**18 if rank <= 900 else 2**14
    np.savez(
        file,
        evidence=np.rint(rng.normal(0, 30, (2, questions, rank))).clip(-127, 127).astype(np.int8),
        target=np.rint(rng.normal(0, 30, (2, questions, rank))).clip(-127, 127).astype(np.int8),
        evidence_bias=rng.integers(-largest, largest, (2, questions), dtype=np.int32),
        target_bias=rng.integers(-largest, largest, (2, questions), dtype=np.int32),
    )


def draw_from(file: Path, *, slots: int, threads: int) -> dict[str, float | int | list[dict[str, object]]]:
    """The child's work: what was drawn from, and the most memory that took."""
    import numpy as np

    from bandit import EpsilonGreedy, FactoredScores, draw_exhaustively, universe_size

    with np.load(file) as stored:
        scores = FactoredScores(**stored)
    drawn = draw_exhaustively(
        design=EpsilonGreedy(), n=slots, scores=scores, rng=np.random.default_rng(1), threads=threads
    )
    assert sum(stratum.size for stratum in drawn.strata) == universe_size(scores.n_questions)
    return {
        "pairs": universe_size(scores.n_questions),
        "slots": len(drawn.pairs),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "strata": [vars(stratum) for stratum in drawn.strata],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rank", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--slots", type=int, default=1320)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--questions", type=int, help="questions in the bank")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(draw_from(options.child, slots=options.slots, threads=options.threads)))
        return 0
    questions = options.questions or bank_size()
    results = []
    with tempfile.TemporaryDirectory(prefix="hunch-factors-") as folder:
        for rank in options.rank:
            file = Path(folder) / f"factors-{rank}.npz"
            write_factors(file, questions=questions, rank=rank)
            # One thread in the linear algebra library: the blocks run side by side instead.
            single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            command = [sys.executable, __file__, "--child", str(file), "--slots", str(options.slots)]
            started = perf_counter()
            done = subprocess.run(
                [*command, "--threads", str(options.threads)],
                env={**os.environ, **single},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            result = {"rank": rank, "seconds": perf_counter() - started, **json.loads(done.stdout)}
            print(
                f"rank {rank}: {result['pairs']:,} pairs, {result['slots']} slots in {result['seconds']:.1f} s, "
                f"at most {result['peak_gib']:.2f} GiB"
            )
            results.append(result)
    slowest = max(results, key=lambda result: result["seconds"])
    print(
        json.dumps(
            {
                "pairs": slowest["pairs"],
                "seconds": round(slowest["seconds"], 2),
                "peak_gib": round(max(result["peak_gib"] for result in results), 3),
                "rank": slowest["rank"],
                "threads": options.threads,
                "by_rank": {result["rank"]: round(result["seconds"], 2) for result in results},
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
