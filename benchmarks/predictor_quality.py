"""How well do predictors recognise pairs that change beliefs? Repeated cross-validation on labelled pairs.

    python benchmarks/predictor_quality.py --labelled FILE [--extra FILE] [--predictors a,b] [--folds 10] [--repeats 3]
    python benchmarks/predictor_quality.py --labelled FILE [--extra FILE] --nested 3 [--predictors a,b] [--folds 10]
    python benchmarks/predictor_quality.py --labelled FILE [--extra FILE] --cost [--predictors a,b]

Without --labelled the rows are those of belief_changes_labelled.csv under HUNCH_STUDY_DATA; where that file is absent,
nothing is measured, and the line says so.

Each repeat deals the labelled pairs to new folds; a pair, its reverse and its other outcome are in one fold. Rows of
the extra file (for instance soft labels) train in every fold, except those whose pair is tested there. A predictor
tunes its settings on the fold's training rows only. Figures are means over repeats; an interval is the 95 percent
bootstrap interval over pairs, with its ends averaged over repeats. The slope is that of a logistic regression of the
labels on the predictions' logits: 1 where they are calibrated, below 1 where they are too sure. The last line is JSON.

--share S: only this share of each fold's labelled training pairs is learnt from.

A row of --predictors may be NAME=PREDICTOR, with settings of its own in --params. The rows that --without-extra names
learn from the labelled pairs alone.

--nested K: the choice among the rows is cross-validated too. In each fold the row with the lowest negative
log-likelihood in K folds of the fold's own labelled training pairs is chosen, fitted on the fold's training rows, and
predicts the test pairs, which nothing of this has seen. The figures are those of the procedure "choose, then fit".

--cost: what one run costs. Each predictor, in a new process without any cache, learns from all rows and predicts new
pairs of the same texts, --score of them. Processor seconds count all threads of the process and its start.

--models FILE --questions FILE: who answered which question right (llm, question_id, correct) and the questions' texts
(id, question). Each labelled row then says which share of the models answers its target right, for predictors with the
setting `columns = ["models"]`. Labelled files that say `prior` serve `columns = ["people"]`.

`bert` fine-tunes a network for every fold and member, which takes an hour on two cores. It runs only if it is named.
"""

import argparse
import csv
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from predictors.calibration import Calibrator
from predictors.comparison import Contender, cross_validate, nested_cross_validate, train_and_predict
from predictors.datasets import PairTable, join, plain_text, read
from predictors.evaluation import PARTS_BY_OUTCOME as PARTS
from predictors.evaluation import evaluate_with_intervals, parts_by_outcome
from predictors.splits import Fold, shares_group, split
from predictors.training import limit_threads

DATA = Path(os.environ.get("HUNCH_STUDY_DATA", ROOT / "../shared/data"))


def with_models(table: PairTable, models: Path, questions: Path) -> PairTable:
    """The rows with the share of language models that answers the target right, NaN where the files do not have it."""
    verdicts: dict[str, list[float]] = {}
    with models.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            verdicts.setdefault(row["question_id"], []).append(float(row["correct"]))
    with questions.open(encoding="utf-8", newline="") as file:
        ids = {plain_text(row["question"]): row["id"] for row in csv.DictReader(file)}
    verdict_lists = [verdicts.get(ids.get(pair.target_text, ""), [np.nan]) for pair in table.pairs]
    return replace(table, models_right=np.array([np.mean(verdict_list) for verdict_list in verdict_lists]))


def folds_of(
    table: PairTable, extra: PairTable | None, folds: int, rng: np.random.Generator, share: float = 1.0
) -> tuple[PairTable, list[Fold]]:
    """Folds of the labelled rows; each trains on the other rows and on all extra rows whose pair it does not test.
    share: of the other rows, drawn at random."""
    made = split(table.pairs, table.respondents, folds=folds, rng=rng)
    if share < 1:
        made = [
            replace(fold, train=np.sort(rng.permutation(fold.train)[: round(share * len(fold.train))])) for fold in made
        ]
    if extra is None:
        return table, made
    more = []
    for fold in made:
        tested = shares_group(extra.pairs, [table.pairs[row] for row in fold.test])
        train = np.append(fold.train, len(table) + np.flatnonzero(~tested))
        more.append(Fold(train=train, test=fold.test, dropped=fold.dropped + int(tested.sum())))
    return join([table, extra]), more


def figures_of(table: PairTable, predictions: list[np.ndarray], seconds: Mapping[str, float]) -> dict[str, Any]:
    """Mean figures over the repeats' predictions, with intervals, and the seconds of one repeat."""
    evaluations: list[Any] = [
        evaluate_with_intervals(
            table.labels,
            predicted,
            parts_by_outcome(table.outcomes),
            cluster=table.pair_ids,
            rng=np.random.default_rng(0),
        )
        for predicted in predictions
    ]
    figures: dict[str, Any] = {name: round(value / len(evaluations), 1) for name, value in seconds.items()}
    slopes = [Calibrator().fit(predicted, table.labels).coefficients_[1] for predicted in predictions]
    figures["slope"] = round(float(np.mean(slopes)), 3)
    for metric in ("auc", "nll"):
        values = np.array(
            [[evaluation[metric][part] for part in PARTS] for evaluation in evaluations], dtype=np.float64
        )
        figures[metric] = dict(zip(PARTS, values.mean(axis=0).round(4).tolist(), strict=True))
        figures[f"{metric}_of_repeats"] = values[:, 0].round(4).tolist()
        ends = np.array([evaluation["intervals"][metric]["overall"] for evaluation in evaluations], dtype=np.float64)
        figures[f"{metric}_interval"] = ends.mean(axis=0).round(4).tolist()
    return figures


def measured(
    row: Contender, table: PairTable, extra: PairTable | None, folds: int, repeats: int, share: float
) -> dict[str, Any]:
    """Figures of one row by repeated cross-validation."""
    probabilities = []
    wall, processor = perf_counter(), process_time()
    for repeat in range(repeats):
        whole, made = folds_of(table, extra, folds, np.random.default_rng(repeat), share)
        predictions = cross_validate(row.predictor, row.params, seed=repeat, table=whole, folds=made)
        probabilities.append(predictions.probabilities[: len(table)])
    seconds = {"seconds": perf_counter() - wall, "processor_seconds": process_time() - processor}
    return figures_of(table, probabilities, seconds)


def nested(
    rows: list[tuple[Contender, bool]], table: PairTable, extra: PairTable | None, folds: int, repeats: int, inner: int
) -> dict[str, Any]:
    """Figures of choosing among the rows inside each fold. `rows` says whether a row learns from the extra rows."""
    probabilities, chosen = [], Counter[str]()
    wall, processor = perf_counter(), process_time()
    own = np.arange(len(table) + (0 if extra is None else len(extra))) < len(table)
    for repeat in range(repeats):
        whole, made = folds_of(table, extra, folds, np.random.default_rng(repeat))
        helping = [(row, np.ones_like(own) if helped else own) for row, helped in rows]
        predictions, names = nested_cross_validate(
            helping, seed=repeat, table=whole, folds=made, inner=inner, validated=own
        )
        probabilities.append(predictions.probabilities[: len(table)])
        chosen.update(names)
    seconds = {"seconds": perf_counter() - wall, "processor_seconds": process_time() - processor}
    return figures_of(table, probabilities, seconds) | {"chosen": dict(chosen)}


def cost_of(row: Contender, train: PairTable, score: int, threads: int) -> dict[str, float]:
    """Seconds of one training and one prediction, in this process."""
    limit_threads(threads)
    rng = np.random.default_rng(0)
    evidence, target = rng.integers(len(train), size=(2, score))
    new = [
        train.pairs[first]._replace(target_text=train.pairs[two].target_text, target_task=train.pairs[two].target_task)
        for first, two in zip(evidence.tolist(), target.tolist(), strict=True)
    ]
    test = replace(train.take(evidence), pairs=new)
    started = perf_counter()
    train_and_predict(row.predictor, row.params, seed=0, train=train, test=test)
    return {"seconds": round(perf_counter() - started, 1), "processor_seconds": round(process_time(), 1)}


def print_cost(rows: list[Contender], train: PairTable, score: int, threads: int) -> None:
    """Each row in a process of its own, one after the other."""
    os.environ.pop("HUNCH_EMBEDDINGS_CACHE", None)
    costs = {}
    print(f"{'predictor':20} {'processor':>10} {'wall':>8}   (seconds; {len(train)} training rows, {score} scored)")
    for row in rows:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            cost = costs[row.name] = pool.submit(cost_of, row, train, score, threads).result()
        print(f"{row.name:20} {cost['processor_seconds']:10.1f} {cost['seconds']:8.1f}", flush=True)
    total = {key: round(sum(cost[key] for cost in costs.values()), 1) for key in ("processor_seconds", "seconds")}
    print(f"{'together':20} {total['processor_seconds']:10.1f} {total['seconds']:8.1f}")
    print(json.dumps({"train": len(train), "score": score, "threads": threads, "together": total, "predictors": costs}))


def show(name: str, figures: dict[str, Any]) -> None:
    """A line of the table."""
    low, high = figures["auc_interval"]
    left, right = figures["nll_interval"]
    print(
        f"{name:20} {figures['auc']['overall']:7.3f} {low:8.3f}-{high:.3f} {figures['nll']['overall']:8.3f} "
        f"{left:8.3f}-{right:.3f} {figures['slope']:6.2f}   {figures['auc']['previous_correct']:.3f}, "
        f"{figures['auc']['previous_incorrect']:.3f}",
        flush=True,
    )


def main() -> None:
    """Measure every predictor asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, default=DATA / "belief_changes_labelled.csv")
    parser.add_argument("--extra", type=Path)
    parser.add_argument("--predictors", default="previous_correct,same_task,embedding_xgboost,hybrid")
    parser.add_argument("--params", type=json.loads, default={}, help='JSON by row: {"bert": {"members": 2}}')
    parser.add_argument("--without-extra", default="", help="rows that learn from the labelled pairs alone")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the labelled training pairs that are learnt from")
    parser.add_argument("--models", type=Path, help="with --questions: which language model answers which one right")
    parser.add_argument("--questions", type=Path, help="with --models: ids and texts of questions")
    parser.add_argument("--nested", type=int, metavar="K", help="choose among the rows inside each fold, by K folds")
    parser.add_argument("--cost", action="store_true", help="processor seconds of one run, without figures")
    parser.add_argument("--score", type=int, default=492, help="with --cost: pairs to predict (the paper's test set)")
    parser.add_argument("--threads", type=int, default=1, help="with --cost: threads")
    options = parser.parse_args()
    if not options.labelled.is_file():
        print(json.dumps({"benchmark": "predictor_quality", "skipped": f"there is no file {options.labelled}"}))
        return
    table = read(options.labelled)
    if not 0 < options.share <= 1 or (options.share < 1 and options.nested):
        parser.error("--share is above 0 and at most 1, and not with --nested")
    if (options.models is None) != (options.questions is None):
        parser.error("--models and --questions belong together")
    if options.models:
        table = with_models(table, options.models, options.questions)
        print(f"models are known for {np.isfinite(table.models_right).sum()} of {len(table)} targets")
    extra = read(options.extra) if options.extra else None
    alone = set(filter(None, options.without_extra.split(",")))
    rows = []
    for text in options.predictors.split(","):
        name, _, predictor = text.partition("=")
        rows.append(Contender(name, predictor or name, options.params.get(name, {})))
    if unknown := (alone | options.params.keys()) - {row.name for row in rows}:
        parser.error(f"{', '.join(sorted(unknown))}: not among --predictors")
    if options.cost:
        print_cost(rows, table if extra is None else join([table, extra]), options.score, options.threads)
        return
    results = {}
    header = f"{'predictor':20} {'AUC':>7} {'95 %':>16} {'NLL':>7} {'95 %':>16} {'slope':>6}"
    print(f"{header}   after correct, after incorrect (AUC)")
    if options.nested:
        helped = [(row, row.name not in alone) for row in rows]
        results["nested"] = nested(helped, table, extra, options.folds, options.repeats, options.nested)
        show("chosen inside folds", results["nested"])
    else:
        for row in rows:
            more = None if row.name in alone else extra
            results[row.name] = measured(row, table, more, options.folds, options.repeats, options.share)
            show(row.name, results[row.name])
    counts = {"labelled": len(table), "extra": 0 if extra is None else len(extra)}
    print(json.dumps({"rows": counts, "folds": options.folds, "repeats": options.repeats, "predictors": results}))


if __name__ == "__main__":
    main()
