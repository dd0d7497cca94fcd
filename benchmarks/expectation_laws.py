"""Do the intervals of agreement, calibration and gaps cover? 2,000 simulated studies of each kind with a known truth.

    python benchmarks/expectation_laws.py [--studies 2000] [--jobs 2] [--only TEXT]

A universe of 20,000 items in five parts. Every item has a mean of what all people would say, and models have a number
for it that agrees with that mean in part; people differ in their mean too. Two kinds of events: people choose (0 or
1), as in preferences and cloze, or they state a chance of what a model does, as in beliefs. Three designs: uniform; the
core's epsilon-greedy by a score that says something of the item (epsilon 0.2, top quarter); and the core's proportional
draw. A study draws 300 items and puts each to 4 people; a person answers 12 items.

A figure passes if its 95 % interval covers the truth in 93 % to 97 % of the studies, to the nearest percent. `cover` of
an item's gap is the mean over all items of the study. Truths that depend on how many answer an item (the correlation as
measured, the score of the other people) are the mean over all studies' own figures. Seeds come from the case's name.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import bandit
from survey.contracts.expectations import ComparedEvent, Expectations, ItemReader, Items
from survey.services.results.people_and_models.agreeing import agreement
from survey.services.results.people_and_models.calibrating import calibrations
from survey.services.results.people_and_models.gaps import gaps

UNIVERSE, PARTS, DRAWN, SEVERAL, BOOKLET = 20_000, 5, 300, 4, 12
FLOOR = 0.01
DESIGNS = {
    "uniform": bandit.Uniform(),
    "epsilon-greedy": bandit.EpsilonGreedy(epsilon=0.2, top_fraction=0.25),
    "proportional": bandit.Proportional(trade_off=0.2, power=2.0),
}
LEAST, MOST = 0.93, 0.97


@dataclass(frozen=True)
class World:
    """The truth of all items. `mean`: of all people's answers. `model`: the reader's number."""

    logit: np.ndarray
    mean: np.ndarray
    model: np.ndarray
    score: np.ndarray
    part: np.ndarray
    person_sd: float
    forecast: bool

    @staticmethod
    @cache
    def of(*, forecast: bool) -> World:
        rng = np.random.default_rng(7 + forecast)
        part = np.arange(UNIVERSE) % PARTS
        shared = rng.normal(0, 1, UNIVERSE)
        logit = 0.4 + 0.9 * shared + 0.3 * (part - 2) / 1.5 + rng.normal(0, 0.5, UNIVERSE)
        score = 1 / (1 + np.exp(-(shared + rng.normal(0, 0.7, UNIVERSE))))
        person_sd = 0.6
        nodes, weights = np.polynomial.hermite_e.hermegauss(15)
        spread = 1 / (1 + np.exp(-(logit[:, None] + person_sd * nodes)))
        mean = spread @ weights / weights.sum()
        if forecast:  # What the model did, which people foresee in part.
            model = (rng.random(UNIVERSE) < 1 / (1 + np.exp(-(0.8 * shared + rng.normal(0, 1.0, UNIVERSE))))) * 1.0
            noise_nodes = 0.9 * nodes
            both = logit[:, None, None] + person_sd * nodes[None, :, None] + noise_nodes[None, None, :]
            stated = np.clip(np.round(100 / (1 + np.exp(-both))) / 100, 0, 1)
            mean = np.einsum("ijk,j,k->i", stated, weights, weights) / weights.sum() ** 2
        else:
            model = 1 / (1 + np.exp(-(0.2 + 1.1 * shared + rng.normal(0, 0.6, UNIVERSE))))
        return World(logit, mean, model, score, part, person_sd, forecast)


EVENTS = {
    forecast: ComparedEvent("event", "an event", "people", "the model", people_forecast=forecast)
    for forecast in (False, True)
}


def study(world: World, design: bandit.Design, rng: np.random.Generator) -> Expectations:
    """One simulated study: the core's draw, the design's weights, and people's answers."""
    drawn = bandit.draw(
        design=design,
        n=DRAWN * SEVERAL,
        scores=world.score,
        n_candidates=UNIVERSE,
        rng=rng,
        responses_per_item=SEVERAL,
    )
    item = drawn.selected
    # Dealt as booklets of different items are: each round of replicates goes to people of its own.
    person = np.empty(len(item), dtype=np.int64)
    people = 0
    for replicate in range(1, SEVERAL + 1):
        own = np.flatnonzero(drawn.replicate == replicate)
        person[own] = people + rng.permutation(len(own)) // BOOKLET
        people = int(person[own].max()) + 1
    leaning = world.person_sd * rng.normal(size=people)
    logit = world.logit[item] + leaning[person]
    if world.forecast:
        value = np.clip(np.round(100 / (1 + np.exp(-(logit + 0.9 * rng.normal(size=len(item)))))) / 100, 0, 1)
    else:
        value = (rng.random(len(item)) < 1 / (1 + np.exp(-logit))).astype(np.float64)
    weight = 1 / drawn.inclusion_probability
    answered = rng.random(len(item)) > 0.05  # Some answers are lost.
    places, place = np.unique(item[answered], return_inverse=True)
    return Expectations(
        event=EVENTS[world.forecast],
        items=Items([str(place) for place in places], groups={"part": world.part[places]}),
        item=place.reshape(-1),
        person=person[answered],
        weight=weight[answered],
        value=value[answered],
        readers=(ItemReader("model", "model", world.model[places]),),
    )


def truths(world: World) -> dict[str, float]:
    """What the intervals are to cover, over all items."""
    mu, m = world.mean, world.model
    gap = mu - m
    truths = {
        "agreement, corrected": float(np.corrcoef(mu, m)[0, 1]),
        "gap of all": float(gap.mean()),
        "gap of a part": float(gap[world.part == 3].mean()),
        "typical gap": float(np.sqrt(np.mean(gap**2))),
    }
    if not world.forecast:
        chance = np.clip(m, FLOOR, 1 - FLOOR)
        bits = -(mu * np.log2(chance) + (1 - mu) * np.log2(1 - chance))
        average = mu.mean()
        truths["bits of the model"] = float(bits.mean())
        truths["bits saved"] = float(-(average * np.log2(average) + (1 - average) * np.log2(1 - average)) - bits.mean())
        truths["bias of the model"] = float((m - mu).mean())
        truths["happened"] = float(average)
        truths["same as the model"] = float(np.mean(np.where(m > 0.5, mu, 1 - mu)))
        truths["two people alike"] = float(np.mean(pair_alike(world)))
    else:
        truths["bias of people"] = float((mu - m).mean())
        truths["happened"] = float(m.mean())
    return truths


def pair_alike(world: World) -> np.ndarray:
    return world.mean**2 + (1 - world.mean) ** 2  # Two people lean each their own way.


def simulated(case: tuple[str, bool, int, int]) -> dict[str, list[tuple[float, float | None, float | None]]]:
    """Figures by name, of some studies."""
    title, forecast, first, count = case
    world = World.of(forecast=forecast)
    estimates: dict[str, list[tuple[float, float | None, float | None]]] = defaultdict(list)
    for number in range(first, first + count):
        seed = int.from_bytes(sha256(f"expectations {title} {forecast} {number}".encode()).digest()[:8], "big")
        expectations = study(world, DESIGNS[title], np.random.default_rng(seed))
        reader = expectations.readers[0]
        agreed = agreement(expectations, reader)
        parted = gaps(expectations, reader)
        figures = {
            "agreement as measured": agreed.correlation,
            "ceiling": agreed.ceiling,
            "agreement, corrected": agreed.corrected,
            "gap of all": parted.parts[0].gap,
            "gap of a part": next(part.gap for part in parted.parts if part.part == "3"),
            "typical gap": parted.typical,
        }
        lines = {calibration.forecaster: calibration for calibration in calibrations(expectations, floor=FLOOR)}
        if forecast:
            people = lines["people"]
            figures |= {
                "bits of people": people.bits,
                "bits saved": people.saved,
                "bias of people": people.bias,
                "happened": people.happened,
                **{f"reliability, bin {place}": edge.happened for place, edge in _edges(people.bins)},
            }
        else:
            model, others = lines["model"], lines["the other people"]
            figures |= {
                "bits of the model": model.bits,
                "bits saved": model.saved,
                "bias of the model": model.bias,
                "happened": model.happened,
                "bits of the other people": others.bits,
                "same as the model": agreed.same,
                "two people alike": agreed.two_people,
                **{f"reliability, bin {place}": edge.happened for place, edge in _edges(model.bins)},
            }
        for name, figure in figures.items():
            estimates[name].append((figure.value, figure.low, figure.high))
        truth = world.mean[np.array([int(label) for label in expectations.items.labels])]
        inside = [
            item.shrunk.low <= truth[item.item] - item.reader <= item.shrunk.high
            for item in parted.items
            if item.shrunk.low is not None and item.shrunk.high is not None
        ]
        if inside:
            estimates["gap of an item"].append((float(np.mean(inside)), None, None))
    return dict(estimates)


def _edges(bins):
    return [(1, bins[0]), (len(bins) // 2 + 1, bins[len(bins) // 2])] if bins else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose title has this text")
    arguments = parser.parse_args()
    rows = []
    print(f"{'event':10}{'design':16}{'figure':28}{'truth':>9}{'mean':>9}{'cover':>8}{'half width':>12}")
    for forecast in (False, True):
        expected = truths(World.of(forecast=forecast))
        for title in DESIGNS:
            event = "forecast" if forecast else "choice"
            if arguments.only not in f"{event} {title}":
                continue
            part = max(1, arguments.studies // (4 * arguments.jobs))
            cases = [
                (title, forecast, first, min(part, arguments.studies - first))
                for first in range(0, arguments.studies, part)
            ]
            merged: dict[str, list[tuple[float, float | None, float | None]]] = defaultdict(list)
            with ProcessPoolExecutor(arguments.jobs) as pool:
                for estimates in pool.map(simulated, cases):
                    for name, values in estimates.items():
                        merged[name] += values
            for name, values in merged.items():
                rows.append(row_of(event, title, name, values, expected.get(name)))
                print(line_of(rows[-1]), flush=True)
    print(json.dumps({"studies": arguments.studies, "rows": rows}))
    if any(not row["kept"] for row in rows):
        raise SystemExit("an interval does not cover as it should")


def row_of(event, title, name, values, truth):
    own = np.array([value for value, _low, _high in values])
    average = float(np.nanmean(own))
    if name == "gap of an item":
        cover, width, truth = average, float("nan"), None
    else:
        aim = average if truth is None else truth
        ends = np.array([(low, high) for _value, low, high in values if low is not None])
        if not len(ends):
            ends = np.full((1, 2), np.nan)
        cover = float(np.mean((ends[:, 0] <= aim) & (aim <= ends[:, 1])))
        width = float(np.mean(ends[:, 1] - ends[:, 0]) / 2)
    slack = 2.6 * (0.05 * 0.95 / len(values)) ** 0.5 if len(values) < 1000 else 0.0
    return {
        "event": event,
        "design": title,
        "figure": name,
        "truth": truth,
        "mean": average,
        "cover": cover,
        "half_width": None if width != width else width,
        "kept": LEAST - slack <= round(cover, 2) <= MOST + slack,
    }


def line_of(row) -> str:
    truth = "-" if row["truth"] is None else f"{row['truth']:.4f}"
    width = "-" if row["half_width"] is None else f"{row['half_width']:.4f}"
    head = f"{row['event']:10}{row['design']:16}{row['figure']:28}{truth:>9}{row['mean']:9.4f}"
    return head + f"{100 * row['cover']:7.1f}%{width:>12}" + ("" if row["kept"] else "  FAILS")


if __name__ == "__main__":
    main()
