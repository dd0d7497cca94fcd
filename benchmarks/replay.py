"""What adaptive sampling saves and costs: public data replayed as if people were asked again, 500 times a design.

    python benchmarks/replay.py [--replays 500] [--data ../shared/data/human] [--only preference|cloze]

Preference: PandaLM's 999 comparisons of replies of five models, each with the answers of three people. An answer is one
of the three, drawn at random. Cloze: de Varda's words of 205 sentences, without each sentence's last one. Public are
shares of people who wrote the word, and so an answer is the word with that chance. A replayed study has four stages.
The first is uniform; the others draw by the design, which scores all items by the answers so far. Draws, chances and
estimators are the core's: `bandit.draw`, `bandit.hajek` for each stage, `bandit.combine_stages` for all. Each person
answers ten items.

Designs: `epsilon-greedy` (epsilon 0.2, top quarter) and `proportional` (trade-off 0.2, power 2) by the predicted chance
of the label; `information` (preference) and `uncertainty`, `gap` (cloze) are epsilon-greedy by these priorities; next
to them `uniform`.

A figure's saving is 1 less the ratio of the mean squared half widths of its 95 % intervals, the design's over
uniform's: at equal width the number of answers, and of people, differs by that. Below 0 it is a loss: so many people
more are needed. `by error` is the same by the mean squared distance from the figure over all the data, which does not
trust the intervals. Both with 95 % intervals by resampling the replays. `cover`: how often the intervals hold the
figure over all the data. `found`: the share of answers with the label. The last line is JSON.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np

import bandit
from bandit.bradley_terry import fit_bradley_terry
from survey.contracts.expectations import ComparedEvent, Expectations, ItemReader, Items
from survey.services.results.people_and_models.agreeing import agreement

STAGES, PER_PERSON = 4, 10
GREEDY = bandit.EpsilonGreedy(epsilon=0.2, top_fraction=0.25)
PROPORTIONAL = bandit.Proportional(trade_off=0.2, power=2.0)
RIDGE = 0.1


@dataclass(frozen=True)
class Asked:
    """The answers of one replayed study so far: item, person, value, chance of its item in its stage, and stage."""

    item: np.ndarray
    person: np.ndarray
    value: np.ndarray
    chance: np.ndarray
    stage: np.ndarray

    def and_also(self, other: Asked) -> Asked:
        return Asked(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in vars(self)))


@dataclass(frozen=True)
class Interval:
    value: float
    half: float


# The two data sets. Each has: size, items a stage and answers an item; `answer`, `scores`, `figures`, `truths`.


class Preference:
    """Label: the reply that is shown second wins. A tie counts half."""

    slots, several = 100, 1
    designs = ("uniform", "epsilon-greedy", "proportional", "information")

    def __init__(self, folder: Path) -> None:
        rows = json.loads((folder / "pandalm" / "testset-v1.json").read_text(encoding="utf-8"))
        pairs = [row["cmp_key"].split("_", 1) for row in rows]
        self.names = sorted({name for pair in pairs for name in pair})
        place = {name: index for index, name in enumerate(self.names)}
        self.first = np.array([place[first] for first, _two in pairs])
        self.second = np.array([place[two] for _one, two in pairs])
        annotations = np.array([[row[f"annotator{number}"] for number in (1, 2, 3)] for row in rows])
        self.outcomes = np.where(annotations == 2, 1.0, np.where(annotations == 1, 0.0, 0.5))
        self.size = len(rows)

    def answer(self, item: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.outcomes[item, rng.integers(3, size=len(item))]

    @property
    def truths(self) -> dict[str, float]:
        everything = self.outcomes.ravel()
        ranked = fit_bradley_terry(
            first=np.repeat(self.second, 3),
            second=np.repeat(self.first, 3),
            outcome=everything,
            names=len(self.names),
            ridge=RIDGE,
            side=False,
        ).theta
        order = np.argsort(-ranked)
        truths = {"share of second replies that win": float(everything.mean())}
        for first, two in pairwise(order):
            truths[f"{self.names[first]} over {self.names[two]}"] = float(ranked[first] - ranked[two])
        return truths

    def fitted(self, asked: Asked, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Strengths, the inverse curvature, and each answer's part in the strengths' error (n, k)."""
        first, second = self.second[asked.item], self.first[asked.item]
        k = len(self.names)
        duels = bandit.Duels.of(
            first=first, second=second, outcome=asked.value, names=k, weight=weight, ridge=RIDGE, side=False
        )
        theta = duels.fit()
        return theta, duels.inverse(theta), duels.influence(theta)

    def scores(self, design: str, asked: Asked, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        theta, inverse, _errors = self.fitted(asked, weight)
        chance = 1 / (1 + np.exp(-(theta[self.second] - theta[self.first])))
        if design != "information":
            return chance
        first, two = self.second, self.first
        spread = inverse[first, first] + inverse[two, two] - 2 * inverse[first, two]
        return 0.5 * np.log1p(chance * (1 - chance) * spread)

    def figures(self, asked: Asked, weight: np.ndarray, mean: Interval) -> dict[str, Interval]:
        theta, _inverse, errors = self.fitted(asked, weight)
        figures = {"share of second replies that win": mean}
        place = {name: index for index, name in enumerate(self.names)}
        for title in self.truths:
            if " over " in title:
                first, two = (place[name] for name in title.split(" over "))
                added = errors[:, first] - errors[:, two]
                figures[title] = Interval(float(theta[first] - theta[two]), 1.96 * _clustered(added, asked))
        return figures


class Cloze:
    """Label: the person writes the sentence's own word."""

    slots, several = 120, 4
    designs = ("uniform", "epsilon-greedy", "proportional", "uncertainty", "gap")

    def __init__(self, folder: Path) -> None:
        with (folder / "devarda" / "all_measures.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        last = {row["sent_id"]: max(
            int(sibling["context_length"]) for sibling in rows if sibling["sent_id"] == row["sent_id"]
        )
                for row in rows}  # fmt: skip
        rows = [row for row in rows if int(row["context_length"]) < last[row["sent_id"]]]
        self.share = np.array([float(row["cloze_p_smoothed"]) for row in rows])
        self.model = np.exp(-np.array([float(row["s_GPT2"]) for row in rows]))
        frequency = np.array([float(row["Subtlex_log10"] or "nan") for row in rows])
        known = np.where(np.isfinite(frequency), frequency, np.nanmean(frequency))
        columns = [-np.log(self.model), known, [float(row["length"]) for row in rows],
                   [float(row["context_length"]) for row in rows]]  # fmt: skip
        table = np.stack([np.asarray(column) for column in columns], axis=1)
        scaled = (table - table.mean(axis=0)) / table.std(axis=0)
        self.features = np.hstack([np.ones((len(rows), 1)), scaled])
        self.size = len(rows)

    def answer(self, item: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (rng.random(len(item)) < self.share[item]).astype(np.float64)

    @property
    def truths(self) -> dict[str, float]:
        return {
            "share of words that are the sentence’s own": float(self.share.mean()),
            "agreement with GPT-2, corrected": float(np.corrcoef(self.share, self.model)[0, 1]),
        }

    def scores(self, design: str, asked: Asked, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        fitted = bandit.fit_logistic(
            columns=self.features[asked.item], label=asked.value, precision=np.r_[1e-4, np.ones(4)]
        )
        predicted = np.clip(bandit.predict_logistic(self.features, fitted), 1e-3, 1 - 1e-3)
        if design in ("epsilon-greedy", "proportional"):
            return predicted
        # What is expected of a position, as ten answers of a beta distribution, and what people answered there.
        n = np.bincount(asked.item, minlength=self.size)
        k = np.bincount(asked.item, weights=asked.value, minlength=self.size)
        chance = (k + 10 * predicted) / (n + 10)
        if design == "uncertainty":
            return np.sqrt((1 - chance) / ((n + 10) * chance))
        return np.abs(np.log(self.model) - np.log(chance))

    def figures(self, asked: Asked, weight: np.ndarray, mean: Interval) -> dict[str, Interval]:
        places, item = np.unique(asked.item, return_inverse=True)
        expectations = Expectations(
            event=ComparedEvent("word", "", "", ""),
            items=Items([str(place) for place in places]),
            item=item.reshape(-1),
            person=asked.person,
            weight=weight,
            value=asked.value,
            readers=(ItemReader("GPT-2", "model", self.model[places]),),
        )
        line = agreement(expectations, expectations.readers[0])
        low, high = line.corrected.low, line.corrected.high
        half = math.nan if low is None or high is None else (high - low) / 2
        first, second = self.truths
        return {first: mean, second: Interval(line.corrected.value, half)}


KINDS: dict[str, Callable[[Path], Preference | Cloze]] = {"preference": Preference, "cloze": Cloze}


@cache
def data_of(kind: str, folder: Path) -> Preference | Cloze:
    return KINDS[kind](folder)


def _clustered(added: np.ndarray, asked: Asked) -> float:
    """The standard error of a sum by person; items count as they were drawn, one answer each in a stage."""
    return math.sqrt(bandit.clustered_variance(added, asked.person))


def replayed(kind: str, folder: Path, design: str, number: int) -> tuple[dict[str, Interval], float]:
    """One study: its figures, and the share of answers with the label."""
    data = data_of(kind, folder)
    seed = int.from_bytes(sha256(f"replay {kind} {design} {number}".encode()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    asked: Asked | None = None
    estimates, plans = [], []
    weight = np.empty(0)
    for stage in range(STAGES):
        scores = None if asked is None or design == "uniform" else data.scores(design, asked, weight, rng)
        plan = bandit.Uniform() if scores is None else PROPORTIONAL if design == "proportional" else GREEDY
        drawn = bandit.draw(
            design=plan,
            n=data.slots * data.several,
            scores=scores,
            n_candidates=data.size,
            rng=rng,
            responses_per_item=data.several,
        )
        new = _answered(data, drawn, rng, stage, 0 if asked is None else int(asked.person.max()) + 1)
        asked = new if asked is None else asked.and_also(new)
        estimates.append(
            bandit.hajek(
                values=new.value,
                probability=new.chance,
                cluster=new.person,
                item=new.item if data.several > 1 else None,
            )
        )
        plans.append(bandit.kish_size(new.chance, people=len(np.unique(new.person))))
        weight = _weights(asked, plans)
    assert asked is not None
    combined = bandit.combine_stages(estimates=estimates, plan_weights=plans).estimate
    mean = Interval(combined.value, (combined.interval[1] - combined.interval[0]) / 2)
    return data.figures(asked, weight, mean), float(asked.value.mean())


def _answered(data: Preference | Cloze, drawn: bandit.Draw, rng: np.random.Generator, stage: int, people: int) -> Asked:
    """Each replicate of the items goes to people of its own, ten items each."""
    item = drawn.selected
    person = np.empty(len(item), dtype=np.int64)
    for replicate in range(1, data.several + 1):
        own = np.flatnonzero(drawn.replicate == replicate)
        person[own] = people + rng.permutation(len(own)) // PER_PERSON
        people = int(person[own].max()) + 1
    value = data.answer(item, rng)
    return Asked(item, person, value, drawn.inclusion_probability, np.full(len(item), stage))


def _weights(asked: Asked, plans: list[float]) -> np.ndarray:
    """1 / chance, and the stages by the information of their plans, as the core combines them."""
    weight = 1 / asked.chance
    for stage, plan in enumerate(plans):
        own = asked.stage == stage
        weight[own] *= plan / weight[own].sum()
    return weight * len(weight) / weight.sum()


def _saved(own: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """1 less the ratio of two means with its interval over replays."""
    value = 1 - own.mean() / other.mean()
    draws = [1 - rng.choice(own, len(own)).mean() / rng.choice(other, len(other)).mean() for _resample in range(1000)]
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(value), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replays", type=int, default=500)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "human")
    parser.add_argument("--only", choices=list(KINDS), default=None)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    rows = []
    for kind in [arguments.only] if arguments.only else list(KINDS):
        try:
            data = data_of(kind, arguments.data)
        except OSError as exc:
            print(f"{kind}: skipped, since its data are not there ({exc.filename})")
            continue
        answers = STAGES * data.slots * data.several
        print(f"{kind}: {data.size} items, {answers} answers of {answers // PER_PERSON} people a study")
        by_design = {}
        with ProcessPoolExecutor(arguments.jobs) as pool:
            for design in data.designs:
                work = partial(replayed, kind, arguments.data, design)
                by_design[design] = list(pool.map(work, range(arguments.replays), chunksize=10))
        rows += list(_rows(kind, data, by_design))
    print(json.dumps({"replays": arguments.replays, "rows": rows}))


def _rows(kind: str, data: Preference | Cloze, by_design: dict[str, list[tuple[dict[str, Interval], float]]]):
    header = f"{'figure':44}{'design':16}{'people saved':>24}{'by error':>24}{'half width':>12}{'cover':>8}{'found':>8}"
    print(header)
    for title, truth in data.truths.items():
        base = [studies[title] for studies, _label in by_design["uniform"]]
        for design, studies in by_design.items():
            own = [intervals[title] for intervals, _label in studies]
            rng = np.random.default_rng(1)
            half, half_of_base = (np.array([interval.half for interval in some]) for some in (own, base))
            there = [np.isfinite(widths) for widths in (half, half_of_base)]
            squares = [widths[finite] ** 2 for widths, finite in zip((half, half_of_base), there, strict=True)]
            errors = [np.array([(interval.value - truth) ** 2 for interval in some]) for some in (own, base)]
            errors = [error[np.isfinite(error)] for error in errors]
            row = {
                "kind": kind,
                "figure": title,
                "design": design,
                "saved": None if design == "uniform" else _saved(*squares, rng),
                "by_error": None if design == "uniform" else _saved(*errors, rng),
                "half_width": float(np.sqrt(squares[0].mean())),
                "cover": float(
                    np.mean(
                        [
                            abs(interval.value - truth) <= interval.half
                            for interval in own
                            if math.isfinite(interval.half)
                        ]
                    )
                ),
                "found": float(np.mean([label for _one, label in studies])),
                "without": int((~there[0]).sum()),
            }
            print(
                f"{title:44}{design:16}{_words(row['saved']):>24}{_words(row['by_error']):>24}"
                f"{row['half_width']:12.4f}{100 * row['cover']:7.1f}%{100 * row['found']:7.1f}%",
                flush=True,
            )
            yield row


def _words(saved: tuple[float, float, float] | None) -> str:
    if saved is None:
        return "-"
    value, low, high = (100 * share for share in saved)
    return f"{value:+.0f} % [{low:+.0f}, {high:+.0f}]"


if __name__ == "__main__":
    main()
