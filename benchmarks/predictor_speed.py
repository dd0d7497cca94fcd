"""How fast the BERT predictor trains and scores, side by side with transformers' Trainer on the same rows.

Trainer runs at its defaults (batches of 8, or of 32, in random order, padded to their longest row, float32), with the
same checkpoint, rows and epochs. On both sides, loading the model does not count and tokenising does. Every measurement
runs in a separate process; rounds alternate, and medians are reported.

    python benchmarks/predictor_speed.py [--rows 128] [--pairs 384] [--rounds 5] [--threads 2]
    python benchmarks/predictor_speed.py --demo [--frozen 4]

With --demo: seconds of a small ensemble on short texts (300 rows, 120 steps of 16, 2 members, 3,000 pairs), without
Trainer.

Ratios are given for wall seconds and for processor seconds; on a shared machine the latter are the fair ones. The texts
are those of `../shared/data/questions.csv` (or HUNCH_STUDY_DATA), else random words of similar length.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import csv
import html
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from predictors.pairs import Pair
from predictors.training import limit_threads

KINDS = ("ours", "trainer_8", "trainer_32")
DATA = Path(os.environ.get("HUNCH_STUDY_DATA", Path(__file__).resolve().parent.parent / "../shared/data"))


def question_texts(*, longest: int | None) -> list[str]:
    """Plain question texts, at most `longest` words each."""
    file = DATA / "questions.csv"
    if file.is_file():
        with file.open(newline="", encoding="utf-8") as lines:
            texts = [html.unescape(re.sub(r"<[^>]+>", " ", row["question"])) for row in csv.DictReader(lines)]
    else:
        from predictors.networks.checkpoints import locate

        words = [w for w in (locate("bundled:minilm-l6") / "vocab.txt").read_text("utf-8").split() if w.isalpha()]
        rng = np.random.default_rng(0)
        lengths = np.clip(rng.lognormal(np.log(38), 0.6, 2000), 4, 136).astype(int)
        texts = [" ".join(rng.choice(words, length)) for length in lengths]
    return [text for text in texts if longest is None or len(text.split()) <= longest]


def make_pairs(count: int, *, seed: int, longest: int | None = None, bank: int | None = None) -> list[Pair]:
    """Pairs of two different questions, of a bank of `bank` questions if given."""
    rng = np.random.default_rng(seed)
    texts = question_texts(longest=longest)
    if bank is not None:
        texts = [texts[index] for index in np.random.default_rng(0).choice(len(texts), bank, replace=False)]
    chosen = [rng.choice(len(texts), 2, replace=False) for _ in range(count)]
    return [Pair(texts[a], texts[b], "a", "b", int(rng.integers(2))) for a, b in chosen]


class Stopwatch:
    """Wall and processor seconds since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = perf_counter(), process_time()

    def read(self, name: str) -> dict[str, float]:
        return {name: perf_counter() - self.wall, f"{name}_cpu": process_time() - self.cpu}


def measure_ours(train: list[Pair], labels: np.ndarray, score: list[Pair]) -> dict[str, float]:
    """Seconds of training one epoch at the default settings, and of scoring."""
    from predictors.models import bert

    seconds: dict[str, float] = {}
    loop = bert.train

    def timed(*args):
        watch = Stopwatch()
        run = loop(*args)
        seconds.update(watch.read("train"))
        return run

    bert.train = timed
    member = bert.BertMember(epochs=1).fit(train, labels)
    watch = Stopwatch()
    member.predict_proba(score)
    return seconds | watch.read("score")


def measure_trainer(train: list[Pair], labels: np.ndarray, score: list[Pair], batch_size: int) -> dict[str, float]:
    """The same with Trainer."""
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    from predictors.networks.checkpoints import locate

    folder = locate("bundled:minilm-l6")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2, use_safetensors=True)

    def rows(pairs: list[Pair], values: np.ndarray) -> list[dict]:
        firsts = [("right: " if pair.outcome else "wrong: ") + pair.evidence_text for pair in pairs]
        encoded = tokenizer(firsts, [pair.target_text for pair in pairs], truncation=True, max_length=512)
        return [
            {**{key: encoded[key][row] for key in encoded}, "labels": int(value)} for row, value in enumerate(values)
        ]

    with tempfile.TemporaryDirectory() as output:
        settings = TrainingArguments(
            output_dir=output,
            num_train_epochs=1,
            per_device_train_batch_size=batch_size,
            save_strategy="no",  # Nothing is written on our side either.
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(model=model, args=settings, data_collator=DataCollatorWithPadding(tokenizer))
        watch = Stopwatch()
        trainer.train_dataset = rows(train, labels)
        trainer.train()
        seconds = watch.read("train")
        watch = Stopwatch()
        trainer.predict(rows(score, np.zeros(len(score))))
        return seconds | watch.read("score")


def measure_demo(rows: int, pairs: int, members: int, frozen: int) -> dict[str, float]:
    """Seconds that the demonstration's ensemble needs: short texts, head `segments`, 120 steps of 16."""
    from predictors.models.bert import BertPredictor

    train = make_pairs(rows, seed=1, longest=30, bank=150)
    labels = (np.random.default_rng(2).random(rows) < 0.4).astype(float)
    settings = {"head": "segments", "batch_size": 16, "min_steps": 120, "frozen_layers": frozen}
    watch = Stopwatch()
    ensemble = BertPredictor(members=members, **settings).fit(train, labels)
    seconds = watch.read("train")
    watch = Stopwatch()
    ensemble.predict_proba(make_pairs(pairs, seed=3, longest=30, bank=150))
    return seconds | watch.read("score")


def child(arguments: argparse.Namespace) -> None:
    """Measure one kind in this process and print it as JSON."""
    limit_threads(arguments.threads)
    if arguments.child == "demo":
        times = measure_demo(300, 3000, 2, arguments.frozen)
    else:
        train = make_pairs(arguments.rows, seed=1)
        labels = (np.random.default_rng(2).random(len(train)) < 0.4).astype(float)
        score = make_pairs(arguments.pairs, seed=3)
        if arguments.child == "ours":
            times = measure_ours(train, labels, score)
        else:
            times = measure_trainer(train, labels, score, int(arguments.child.removeprefix("trainer_")))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**times, "peak_mib": peak}))


def run_child(kind: str, arguments: argparse.Namespace) -> dict[str, float]:
    options = [f"--{name}={getattr(arguments, name)}" for name in ("rows", "pairs", "threads", "frozen")]
    command = [sys.executable, __file__, f"--child={kind}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--pairs", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--frozen", type=int, default=0, help="frozen layers, with --demo")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    if arguments.demo:
        times = run_child("demo", arguments)
        print(
            f"training {times['train']:.1f} s, scoring {times['score']:.1f} s, "
            f"processor {times['train_cpu']:.1f} and {times['score_cpu']:.1f} s, peak {times['peak_mib']:.0f} MiB"
        )
        print(json.dumps({"benchmark": "predictor_speed_demo", **times}))
        return
    rounds: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for number in range(arguments.rounds):
        for kind in KINDS:
            rounds[kind].append(times := run_child(kind, arguments))
            print(
                f"round {number + 1} {kind:11s} {arguments.rows / times['train']:7.1f} rows/s trained "
                f"{arguments.pairs / times['score']:7.1f} pairs/s scored {times['peak_mib']:6.0f} MiB",
                flush=True,
            )

    def ratio(what: str, other: str) -> float:
        return median(b[what] / a[what] for a, b in zip(rounds["ours"], rounds[other], strict=True))

    summary = {
        "benchmark": "predictor_speed",
        "train_rows_per_second": arguments.rows / median(measurement["train"] for measurement in rounds["ours"]),
        "score_pairs_per_second": arguments.pairs / median(measurement["score"] for measurement in rounds["ours"]),
        "train_times_trainer_8": ratio("train", "trainer_8"),
        "train_times_trainer_8_cpu": ratio("train_cpu", "trainer_8"),
        "train_times_trainer_32": ratio("train", "trainer_32"),
        "train_times_trainer_32_cpu": ratio("train_cpu", "trainer_32"),
        "score_times_trainer_8": ratio("score", "trainer_8"),
        "score_times_trainer_8_cpu": ratio("score_cpu", "trainer_8"),
        "peak_mib": {kind: max(measurement["peak_mib"] for measurement in rounds[kind]) for kind in KINDS},
        "threads": arguments.threads,
        "rounds": arguments.rounds,
    }
    print(json.dumps({key: round(value, 2) if isinstance(value, float) else value for key, value in summary.items()}))


if __name__ == "__main__":
    main()
