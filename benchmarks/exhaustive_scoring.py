"""How fast all 2 N (N - 1) pairs of a bank are scored, stratified and drawn from, and how accurate the fast scores are.

    python benchmarks/exhaustive_scoring.py [--predictor bert] [--head paper] [--scored 12000] [--rank 64]
    python benchmarks/exhaustive_scoring.py --bank starter
    python benchmarks/exhaustive_scoring.py --shapes 64 128 256 [--questions 16439]

Trains a predictor on `belief_changes_labelled.csv` and `alignment_sample.csv` of `../shared/data` (or
HUNCH_STUDY_DATA), embeds the questions of `questions.csv`, distils the predictor into a fast pair scorer and measures
both on new pairs. Nothing is reused from an earlier run. `seconds` and `peak_gib` are those of a child process that
starts from the scorer's file: start, load, score and stratify every pair, draw the slots of a stage.
`cross_encoder_pairs_per_second` is the predictor's own speed on 1,000 uniform pairs.

With `--bank starter`: the project's own bank, and labels from a simulated truth. With `--shapes`: only the child
process runs, on random factors of these ranks; its time and memory depend only on the shape. The last line is JSON.
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
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DATA = Path(os.environ.get("HUNCH_STUDY_DATA", ROOT / "../shared/data"))
STARTER = ROOT / "survey/services/banks/starter.csv"
LABELS = ("belief_changes_labelled.csv", "alignment_sample.csv")
QUESTIONS = 16_439
STARTER_ROWS = 1_200
TIMED = 1_000
MAX_SECONDS, MAX_GIB, MIN_SPEARMAN, MIN_RECALL = 4.0, 0.5, 0.92, 0.96


def read_rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def study_bank() -> tuple[Any, Any]:
    """The study's questions, and the rows to train on."""
    from predictors import datasets
    from predictors.pair_scorer import Questions

    rows = read_rows(DATA / "questions.csv")
    questions = Questions([datasets.plain_text(row["question"]) for row in rows], [row["source"] for row in rows])
    table = datasets.join([datasets.read(DATA / name) for name in LABELS])
    return questions, (table.pairs, table.labels, table.weights)


def starter_bank() -> tuple[Any, Any]:
    """The project's own questions, and uniform pairs labelled with a simulated truth's chances."""
    import numpy as np

    from bandit import uniform_pool
    from bandit.simulation import BeliefTruth
    from predictors.datasets import plain_text
    from predictors.pair_scorer import Questions

    rows = read_rows(STARTER)
    questions = Questions([plain_text(row["question"]) for row in rows], [row["source"] for row in rows])
    truth = BeliefTruth.for_bank(tasks=questions.tasks, domains=[row["domain"] for row in rows], seed=0)
    pool = uniform_pool(n_questions=len(rows), size=STARTER_ROWS, rng=np.random.default_rng(0)).pairs
    pairs = as_texts(questions, pool)
    labels = truth.probabilities(pool, [row["id"] for row in rows])
    return questions, (pairs, labels, np.ones(len(pairs)))


def as_texts(questions: Any, pairs: Any) -> list[Any]:
    """The pairs (bandit's, by index) as a predictor reads them."""
    from predictors.pairs import Pair

    texts, tasks = questions
    places = zip(pairs.evidence.tolist(), pairs.target.tolist(), pairs.outcome.tolist(), strict=True)
    return [Pair(texts[e], texts[t], tasks[e], tasks[t], o) for e, t, o in places]


def random_scorer(file: Path, *, questions: int, rank: int) -> None:
    """A scorer's file of this shape with random content."""
    import numpy as np

    from predictors.pair_scorer import PairScorer

    rng = np.random.default_rng(0)
    largest = 2**18 if rank <= 900 else 2**14

    def factors() -> Any:
        return np.rint(rng.normal(0, 30, (2, questions, rank))).clip(-127, 127).astype(np.int8)

    def bias() -> Any:
        return rng.integers(-largest, largest, (2, questions), dtype=np.int32)

    nothing = np.empty(0, dtype=np.int64)
    scorer = PairScorer(factors(), factors(), bias(), bias(), unit=1.0, scored=nothing, unseen=nothing)
    scorer.save(file)


def draw_from(file: Path, *, slots: int, threads: int) -> dict[str, Any]:
    """The child's work: draws, and returns the number of pairs, the processor time and the most memory it used."""
    import numpy as np

    from bandit import EpsilonGreedy, FactoredScores, draw_exhaustively, universe_size
    from predictors.pair_scorer import PairScorer

    scorer = PairScorer.load(file)
    scores = FactoredScores(scorer.evidence, scorer.target, scorer.evidence_bias, scorer.target_bias)
    drawn = draw_exhaustively(
        design=EpsilonGreedy(), n=slots, scores=scores, rng=np.random.default_rng(1), threads=threads
    )
    assert sum(stratum.size for stratum in drawn.strata) == universe_size(scores.n_questions)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "pairs": universe_size(scores.n_questions),
        "slots": len(drawn.pairs),
        "rank": scores.rank,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "peak_gib": peak_kib() / 2**20,
    }


def peak_kib() -> int:
    """The most memory that this process used. `ru_maxrss` would include the parent's memory at our start."""
    status = Path("/proc/self/status")
    if status.is_file():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_child(file: Path, *, slots: int, threads: int) -> dict[str, Any]:
    """Run `draw_from` in a separate process, timed from its start to its end."""
    # One thread in the linear algebra library: the blocks run side by side instead.
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--child", str(file), "--slots", str(slots), "--threads", str(threads)]
    started = perf_counter()
    done = subprocess.run(command, env={**os.environ, **single}, stdout=subprocess.PIPE, text=True, check=True)
    result = {"seconds": perf_counter() - started, **json.loads(done.stdout)}
    print(
        f"rank {result['rank']}: {result['pairs']:,} pairs, {result['slots']} slots in {result['seconds']:.1f} s "
        f"({result['processor_seconds']:.1f} processor seconds), at most {result['peak_gib']:.2f} GiB",
        flush=True,
    )
    return result


def timed(name: str, work: Callable[[], Any]) -> tuple[Any, float]:
    started = perf_counter()
    result = work()
    seconds = perf_counter() - started
    print(f"{name}: {seconds:.1f} s", flush=True)
    return result, seconds


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Train, embed, distil, measure on fresh pairs, and draw from all pairs."""
    from predictors.training import limit_threads

    limit_threads(options.threads)
    import numpy as np

    from bandit import uniform_pool
    from predictors import artifacts, pair_scorer, registry, training

    questions, rows = study_bank() if options.bank == "study" else starter_bank()
    print(f"{len(questions.texts):,} questions, {len(rows[0]):,} rows to train on", flush=True)
    params = {"members": options.members, "head": options.head} if options.predictor == "bert" else {}
    estimator = registry.create(options.predictor, params, seed=0)
    fitted, train_seconds = timed(f"training {options.predictor}", lambda: estimator.fit(*rows))
    folders = [folder / "predictor"]
    artifacts.save(fitted, folders[0])
    embeddings, embedding_seconds = timed(
        "embedding the questions", lambda: pair_scorer.question_embeddings(folders=folders, questions=questions)
    )
    rng = np.random.default_rng(options.seed)
    scorer, distil_seconds = timed(
        f"scoring {options.scored:,} pairs and fitting the scorer",
        lambda: pair_scorer.distil(
            folders=folders,
            questions=questions,
            rng=rng,
            n_pairs=options.scored,
            rank=options.rank,
            embeddings=embeddings,
        ),
    )
    scorer.save(folder / "scorer")
    pool = uniform_pool(n_questions=len(questions.texts), size=TIMED, rng=rng).pairs
    timed_pairs = as_texts(questions, pool)
    _, speed_seconds = timed(f"scoring {len(pool):,} pairs", lambda: training.score(folders, timed_pairs))
    speed = len(pool) / speed_seconds
    fidelity, fidelity_seconds = timed(
        f"scoring {options.fresh + options.unseen:,} fresh pairs",
        lambda: pair_scorer.fidelity(
            scorer, folders=folders, questions=questions, rng=rng, n_pairs=options.fresh, n_unseen=options.unseen
        ),
    )
    drawn = in_child(folder / "scorer", slots=options.slots, threads=options.threads)
    uniform, unseen = fidelity["uniform"], fidelity["unseen_questions"]
    for name, part in fidelity.items():
        print(f"{name}: {json.dumps(part)}")
    print(f"the predictor scores {speed:.0f} pairs a second: {drawn['pairs'] / speed / 86400:.1f} days for all pairs")
    return {
        "pairs": drawn["pairs"],
        "seconds": round(drawn["seconds"], 2),
        "peak_gib": round(drawn["peak_gib"], 3),
        "cross_encoder_pairs_per_second": round(speed, 1),
        "cross_encoder_days_for_all_pairs": round(drawn["pairs"] / speed / 86400, 2),
        "spearman": uniform["spearman"],
        "spearman_interval": uniform["spearman_interval"],
        "top_decile_recall": uniform["top_decile_recall"],
        "top_decile_recall_interval": uniform["top_decile_recall_interval"],
        "unseen_questions": unseen,
        "train_seconds": round(train_seconds, 1),
        "embedding_seconds": round(embedding_seconds, 1),
        "distil_seconds": round(distil_seconds, 1),
        "fidelity_seconds": round(fidelity_seconds, 1),
        "processor_seconds": round(drawn["processor_seconds"], 1),
        "bank": options.bank,
        "predictor": options.predictor,
        "params": params,
        "scored": len(scorer.scored),
        "rank": drawn["rank"],
        "penalty": scorer.penalty,
        "held_out_r2": scorer.held_out_r2,
        "threads": options.threads,
        "seed": options.seed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bank", choices=("study", "starter"), default="study")
    parser.add_argument("--predictor", default="bert", help="any name of the registry")
    parser.add_argument("--head", default="paper", help="of the bert predictor")
    parser.add_argument("--members", type=int, default=1, help="of the bert predictor")
    parser.add_argument("--scored", type=int, default=12_000, help="pairs to distil from")
    parser.add_argument("--fresh", type=int, default=10_000, help="uniform pairs to measure on")
    parser.add_argument("--unseen", type=int, default=4_000, help="pairs of questions in no scored pair")
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--slots", type=int, default=1320)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shapes", type=int, nargs="+", metavar="RANK", help="time random factors of these ranks")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="questions, with --shapes")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(draw_from(options.child, slots=options.slots, threads=options.threads)))
        return 0
    if (
        not options.shapes
        and options.bank == "study"
        and not all((DATA / f).is_file() for f in ("questions.csv", *LABELS))
    ):
        print(f"Skipped: the study's data are not in {DATA}; set HUNCH_STUDY_DATA, or use --bank starter.")
        print(json.dumps({"skipped": "no study data"}))
        return 0
    with tempfile.TemporaryDirectory(prefix="hunch-scorer-") as name:
        folder = Path(name)
        if options.shapes:
            results = []
            for rank in options.shapes:
                random_scorer(folder / f"scorer-{rank}", questions=options.questions, rank=rank)
                results.append(in_child(folder / f"scorer-{rank}", slots=options.slots, threads=options.threads))
            print(json.dumps({"threads": options.threads, "shapes": results}))
            return 0
        result = measure(options, folder)
    print(json.dumps(result))
    reached = (
        result["seconds"] <= MAX_SECONDS
        and result["peak_gib"] <= MAX_GIB
        and result["spearman"] >= MIN_SPEARMAN
        and result["top_decile_recall"] >= MIN_RECALL
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
