"""How well do predictors recognise pairs that change beliefs? Repeated cross-validation on labelled pairs.

    python benchmarks/predictor_quality.py --labelled FILE [--extra FILE] [--predictors a,b] [--folds 10] [--repeats 3]

Each repeat deals the labelled pairs to new folds; a pair, its reverse and its other outcome are in one fold. Rows of
the extra file (for instance soft labels) train in every fold, except those whose pair is tested there. A predictor
tunes its settings on the fold's training rows only. Figures are means over repeats; an interval is the 95 percent
bootstrap interval over pairs, with its ends averaged over repeats. The last line is JSON.

`bert` fine-tunes a network for every fold and member, which takes an hour on two cores. It runs only if it is named.
"""

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from predictors.comparison import cross_validate
from predictors.datasets import PairTable, join, read
from predictors.evaluation import PARTS_BY_OUTCOME as PARTS
from predictors.evaluation import evaluate_with_intervals, parts_by_outcome
from predictors.splits import Fold, shares_group, split


def folds_of(
    table: PairTable, extra: PairTable | None, folds: int, rng: np.random.Generator
) -> tuple[PairTable, list[Fold]]:
    """Folds of the labelled rows; each trains on the other rows and on all extra rows whose pair it does not test."""
    made = split(table.pairs, table.respondents, folds=folds, rng=rng)
    if extra is None:
        return table, made
    more = []
    for fold in made:
        tested = shares_group(extra.pairs, [table.pairs[row] for row in fold.test])
        train = np.append(fold.train, len(table) + np.flatnonzero(~tested))
        more.append(Fold(train=train, test=fold.test, dropped=fold.dropped + int(tested.sum())))
    return join([table, extra]), more


def measured(
    name: str, params: dict[str, Any], table: PairTable, extra: PairTable | None, folds: int, repeats: int
) -> dict[str, Any]:
    """Mean figures of one predictor over the repeats, with intervals and the seconds of one repeat."""
    found: list[Any] = []
    started = perf_counter()
    for repeat in range(repeats):
        whole, made = folds_of(table, extra, folds, np.random.default_rng(repeat))
        predicted = cross_validate(name, params, seed=repeat, table=whole, folds=made).probabilities[: len(table)]
        found.append(
            evaluate_with_intervals(
                table.labels,
                predicted,
                parts_by_outcome(table.outcomes),
                cluster=table.pair_ids,
                rng=np.random.default_rng(0),
            )
        )
    figures: dict[str, Any] = {"seconds": round((perf_counter() - started) / repeats, 1)}
    for metric in ("auc", "nll"):
        values = np.array([[one[metric][part] for part in PARTS] for one in found], dtype=np.float64)
        figures[metric] = dict(zip(PARTS, values.mean(axis=0).round(4).tolist(), strict=True))
        figures[f"{metric}_of_repeats"] = values[:, 0].round(4).tolist()
        ends = np.array([one["intervals"][metric]["overall"] for one in found], dtype=np.float64)
        figures[f"{metric}_interval"] = ends.mean(axis=0).round(4).tolist()
    return figures


def main() -> None:
    """Measure every predictor asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, required=True)
    parser.add_argument("--extra", type=Path)
    parser.add_argument("--predictors", default="previous_correct,same_task,embedding_xgboost,hybrid")
    parser.add_argument("--params", type=json.loads, default={}, help='JSON by predictor: {"bert": {"members": 2}}')
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    table = read(options.labelled)
    extra = read(options.extra) if options.extra else None
    results = {}
    print(f"{'predictor':20} {'AUC':>7} {'95 %':>16} {'NLL':>7} {'95 %':>16}   after correct, after incorrect (AUC)")
    for name in options.predictors.split(","):
        one = measured(name, options.params.get(name, {}), table, extra, options.folds, options.repeats)
        results[name] = one
        low, high = one["auc_interval"]
        left, right = one["nll_interval"]
        print(
            f"{name:20} {one['auc']['overall']:7.3f} {low:8.3f}-{high:.3f} {one['nll']['overall']:8.3f} "
            f"{left:8.3f}-{right:.3f}   {one['auc']['previous_correct']:.3f}, {one['auc']['previous_incorrect']:.3f}",
            flush=True,
        )
    rows = {"labelled": len(table), "extra": 0 if extra is None else len(extra)}
    print(json.dumps({"rows": rows, "folds": options.folds, "repeats": options.repeats, "predictors": results}))


if __name__ == "__main__":
    main()
