"""Do the intervals of the report `arms` cover? 2,000 simulated studies of each kind with a known truth.

    python benchmarks/aid_laws.py [--studies 2000] [--jobs 2] [--only TEXT]

A bank of 150 questions in six tasks; the model is right on more questions of some tasks than of others. All 22,350
pairs with its real outcome are candidates. The aid is the model's share right on the ten most similar questions, by
`survey.instruments.belief_update.aids`: questions of a task share words. People give a prior by the target and
themselves, in steps of five points; with the aid it moves towards what the aid says by a weight (0: nobody uses it, or
0.5). After the evidence they move by ten points, or not at all. Two stages of 60 people with 12 items each: uniform,
and epsilon-greedy by a score that says something of the change (epsilon 0.3, top tenth). One answer in twenty is lost.
Levels are drawn for items, or for whole sittings, in blocks as `survey.services.answers.conditions` draws them.

A figure passes if its 95 % interval covers the truth in 93 % to 97 % of the studies, to the nearest percent. The truth
is the mean over all pairs and 400 people. Where nobody uses the aid, 1 less the cover of a difference is the share of
studies that would find an effect that is not there; where they do, `found` is the share that finds it. Seeds come from
the case's name. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import django
import numpy as np

import bandit

django.setup()

from survey.contracts.measures import Estimands, Measure
from survey.instruments.belief_update.aids import Similar
from survey.instruments.belief_update.reports.alignment.deployment import Rule
from survey.instruments.belief_update.reports.arms.measures import (
    ArmAnswers,
    ArmMeasure,
    as_measures,
    measures_of_arms,
)
from survey.services.results.estimates.study_estimates import level_figures
from survey.services.results.estimates.study_figures import StagePart

QUESTIONS, TASKS, K, PEOPLE, ITEMS = 150, 6, 10, 60, 12
LEVELS = ("alone", "aided")
DESIGNS: tuple[bandit.Design, ...] = (bandit.Uniform(), bandit.EpsilonGreedy(epsilon=0.3, top_fraction=0.1))
CASES = {
    "per item, weight 0.5": ("item", 0.5),
    "per sitting, weight 0.5": ("sitting", 0.5),
    "per item, nobody uses it": ("item", 0.0),
    "per sitting, nobody uses it": ("sitting", 0.0),
}
# Of beliefs after the evidence: those before it are estimated in the same way.
ALL = measures_of_arms([1.0, 19.0], [Rule("threshold", 0.5), Rule("proportional")])
WANTED = [measure for measure in ALL if measure.when != "prior"]
LEAST, MOST = 0.93, 0.97


@dataclass(frozen=True)
class Read:
    """What `level_figures` reads of a part."""

    part: StagePart
    estimands: Estimands
    divisions: dict[str, np.ndarray]
    odds_ratio: float = 2.0


@dataclass(frozen=True)
class World:
    """`evidence`, `target`: of all pairs. `right`: of the questions. `aid`: the share shown next to each pair."""

    evidence: np.ndarray
    target: np.ndarray
    right: np.ndarray
    aid: np.ndarray
    base: np.ndarray
    changes: np.ndarray
    score: np.ndarray

    @staticmethod
    @cache
    def one() -> World:
        rng = np.random.default_rng(11)
        task = np.arange(QUESTIONS) % TASKS
        right = (rng.random(QUESTIONS) < np.linspace(0.25, 0.95, TASKS)[task]).astype(np.float64)
        words = [(f"task{task[place]}", f"word{place}") for place in range(QUESTIONS)]
        places = np.arange(QUESTIONS * QUESTIONS)
        places = places[places // QUESTIONS != places % QUESTIONS]
        evidence, target = places // QUESTIONS, places % QUESTIONS
        similar = Similar(words).of_pairs(target.tolist(), evidence.tolist(), K)
        aid = np.array([right[own].mean() for own in similar])
        base = 0.55 + rng.normal(0, 0.12, QUESTIONS)
        changes = np.clip(0.15 + 0.3 * (task[evidence] == task[target]) + rng.normal(0, 0.1, len(target)), 0, 1)
        score = np.clip(changes + rng.normal(0, 0.1, len(target)), 0, 1)
        return World(evidence, target, right, aid, base, changes, score)

    def beliefs(
        self, pair: np.ndarray, person: np.ndarray, aided: np.ndarray, weight: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Prior and posterior of answers to these pairs, by people with these leanings."""
        own = self.base[self.target[pair]] + person + rng.normal(0, 0.1, pair.shape)
        prior = np.where(aided, (1 - weight) * own + weight * self.aid[pair], own)
        prior = np.clip(np.round(20 * prior) / 20, 0, 1)
        step = 0.1 * (2 * self.right[self.evidence[pair]] - 1) * (rng.random(pair.shape) < self.changes[pair])
        return prior, np.clip(np.round(20 * (prior + step)) / 20, 0, 1)

    def measures(self, pair: np.ndarray, prior: np.ndarray, posterior: np.ndarray) -> list[Measure]:
        answers = ArmAnswers(prior, posterior, self.right[self.target[pair]], np.ones(len(pair)))
        return list(as_measures(WANTED, answers))


@cache
def truths(weight: float) -> dict[tuple[str, str], float]:
    """By level and measure, over all pairs and many people."""
    world, rng = World.one(), np.random.default_rng(5)
    every = np.arange(len(world.target))
    sums: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(2))
    for _person in range(400):
        leaning = rng.normal(0, 0.1, len(every))
        for level in LEVELS:
            prior, posterior = world.beliefs(every, leaning, np.full(len(every), level == "aided"), weight, rng)
            for measure in world.measures(every, prior, posterior):
                assert measure.per is not None
                sums[level, measure.name] += (measure.values.sum(), measure.per.sum())
    return {key: float(values / per) for key, (values, per) in sums.items()}


def study(world: World, per: str, weight: float, rng: np.random.Generator) -> list[Read]:
    """The answers of one study, stage by stage."""
    read = []
    for number, design in enumerate(DESIGNS):
        n = PEOPLE * ITEMS
        drawn = bandit.draw(design=design, n=n, scores=world.score, n_candidates=len(world.target), rng=rng)
        person = np.arange(n) // ITEMS
        place = person if per == "sitting" else np.arange(n) % ITEMS
        block = place // 2 if per == "sitting" else person * ITEMS + place // 2
        aided = (rng.random(int(block.max()) + 1) < 0.5)[block] ^ (place % 2 == 1)
        leaning = rng.normal(0, 0.1, PEOPLE)[person]
        pair = drawn.selected
        prior, posterior = world.beliefs(pair, leaning, aided, weight, rng)
        answered = rng.random(n) > 0.05
        part = StagePart(
            stage=number + 1,
            role="sampled",
            names=tuple(stratum.name for stratum in drawn.strata),
            sizes=tuple(stratum.size for stratum in drawn.strata),
            slots=tuple(np.bincount(drawn.stratum, minlength=len(drawn.strata)).tolist()),
            universe_size=None,
            stratum=drawn.stratum[answered],
            cluster=(number * PEOPLE + person)[answered],
            probability=drawn.inclusion_probability[answered],
            planned_probability=drawn.inclusion_probability,
            people=PEOPLE,
        )
        measures = world.measures(pair[answered], prior[answered], posterior[answered])
        read.append(Read(part, Estimands(measures), {"help": np.where(aided, "aided", "alone")[answered]}))
    return read


def simulated(case: tuple[str, int, int]) -> dict[tuple[str, str], list[tuple[float, float, float]]]:
    """By arm (or "difference") and figure: value and ends, of some studies."""
    title, first, count = case
    per, weight = CASES[title]
    estimates: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for number in range(first, first + count):
        seed = int.from_bytes(sha256(f"aid {title} {number}".encode()).digest()[:8], "big")
        made = level_figures("help", LEVELS, study(World.one(), per, weight, np.random.default_rng(seed)))
        for arm, figures in zip((*LEVELS, "difference"), (*made.figures, *made.differences), strict=True):
            for measure, figure in zip(WANTED, figures, strict=True):
                if (known := figure.combined) is not None:
                    estimates[arm, measure.name].append((known.value, *known.interval))
    return dict(estimates)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose title has this text")
    asked = parser.parse_args(arguments)
    rows = []
    print(f"{'case':29}{'arm':12}{'figure':34}{'truth':>9}{'mean':>9}{'cover':>8}{'half width':>12}{'found':>8}")
    for title, (_per, weight) in CASES.items():
        if asked.only not in title:
            continue
        step = max(1, asked.studies // (4 * asked.jobs))
        cases = [(title, first, min(step, asked.studies - first)) for first in range(0, asked.studies, step)]
        merged: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
        with ProcessPoolExecutor(asked.jobs) as pool:
            for estimates in pool.map(simulated, cases):
                for key, values in estimates.items():
                    merged[key] += values
        for (arm, name), values in merged.items():
            rows.append(row_of(title, arm, name, values, weight))
            print(line_of(rows[-1]), flush=True)
    print(json.dumps({"studies": asked.studies, "rows": rows}))
    if any(not row["kept"] for row in rows):
        raise SystemExit("an interval does not cover as it should")


def row_of(title: str, arm: str, name: str, values: list[tuple[float, float, float]], weight: float) -> dict:
    known = truths(weight)
    truth = known["aided", name] - known["alone", name] if arm == "difference" else known[arm, name]
    if arm == "difference" and (name == ArmMeasure("correct").name or not weight):
        truth = 0.0
    own = np.array(values)
    cover = float(np.mean((own[:, 1] <= truth) & (truth <= own[:, 2])))
    slack = 2.6 * (0.05 * 0.95 / len(own)) ** 0.5 if len(own) < 1000 else 0.0
    return {
        "case": title,
        "arm": arm,
        "figure": name,
        "truth": truth,
        "mean": float(own[:, 0].mean()),
        "cover": cover,
        "half_width": float(np.mean(own[:, 2] - own[:, 1]) / 2),
        "found": float(np.mean((own[:, 1] > 0) | (own[:, 2] < 0))) if arm == "difference" else None,
        "studies": len(own),
        "kept": LEAST - slack <= round(cover, 2) <= MOST + slack,
    }


def line_of(row: dict) -> str:
    found_share = "-" if row["found"] is None else f"{100 * row['found']:.1f}%"
    head = f"{row['case']:29}{row['arm']:12}{row['figure']:34}{row['truth']:9.4f}{row['mean']:9.4f}"
    return (
        head
        + f"{100 * row['cover']:7.1f}%{row['half_width']:12.4f}{found_share:>8}"
        + ("" if row["kept"] else "  FAILS")
    )


if __name__ == "__main__":
    main()
