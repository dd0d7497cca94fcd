"""What adaptive sampling saves and costs: public data replayed as if people were asked again, 500 times a design.

    python benchmarks/replay.py [--replays 500] [--data ../shared/data/human] [--only preference|cloze]

Preference: PandaLM's 999 comparisons of replies of five models, each with the answers of three people. An answer is one
of the three, drawn at random. Cloze: de Varda's words of 205 sentences, without each sentence's last one. Public are
shares of people who wrote the word, and so an answer is the word with that chance. A replayed study has four stages.
The first is uniform; the others draw by the design, which scores all items by the answers so far. Draws, chances and
estimators are the core's: `bandit.draw`, `bandit.hajek` for each stage, `bandit.combine_stages` for all. Each person
answers ten items.

Designs: `epsilon-greedy` (epsilon 0.2, top quarter) and `proportional` (trade-off 0.2, power 2) by the predicted chance
of the label; `information` (preference) and `uncertainty`, `gap` (cloze) are epsilon-greedy by these priorities;
`robust` is drawn for all figures of the table, by what is left of the answers so far after assistance; next to them
`uniform`. With `+ assistance` a figure is helped by predictions, through `bandit.assist` with its fitted, shrunk and
cross-fitted coefficient: for preference the verdicts of gpt-3.5-turbo on the same comparisons, for cloze a logistic
regression on GPT-2's surprisal, frequency, length and place, by folds of items. The share is assisted stage by stage,
exactly as `hunch estimate` does it. Of strengths and agreement `bandit.assist` gets what each answer adds to the figure
(its influence) and what the predictions expect of that; the interval is that of what is left.

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
from survey.services.results.people_and_models.agreeing import agreement, item_means, rows_of

STAGES, PER_PERSON = 4, 10
GREEDY = bandit.EpsilonGreedy(epsilon=0.2, top_fraction=0.25)
PROPORTIONAL = bandit.Proportional(trade_off=0.2, power=2.0)
RIDGE = 0.1
ASSISTED = " + assistance"
ROBUST = (f"uniform{ASSISTED}", "robust", f"robust{ASSISTED}")
FOLDS = 5


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

    def where(self, rows: np.ndarray) -> Asked:
        return Asked(*(getattr(self, name)[rows] for name in vars(self)))


@dataclass(frozen=True)
class Interval:
    value: float
    half: float


@dataclass(frozen=True)
class Predicted:
    """Chances of the label: `everywhere` (items, folds), without the answers of a fold, and each answer's `fold`."""

    everywhere: np.ndarray
    fold: np.ndarray

    def of_answers(self, item: np.ndarray, everywhere: np.ndarray | None = None) -> np.ndarray:
        return (self.everywhere if everywhere is None else everywhere)[item, self.fold]


@dataclass(frozen=True)
class Influence:
    """What a unit of weight of each answer adds to a figure's error (n,), and what it is expected to add where the
    chances are predicted: from (items, folds) to the same shape."""

    of_answers: np.ndarray
    expected: Callable[[np.ndarray], np.ndarray]


# The two data sets. Each has: size, items a stage and answers an item; `answer`, `scores`, `figures`, `truths`.


class Preference:
    """Label: the reply that is shown second wins. A tie counts half."""

    slots, several = 100, 1
    designs = ("uniform", "epsilon-greedy", "proportional", "information", *ROBUST)

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
        verdicts = json.loads((folder / "pandalm" / "gpt-3.5-turbo-testset-v1.json").read_text(encoding="utf-8"))
        of_row = {int(verdict["idx"]): {"1": 0.0, "2": 1.0}.get(verdict["gpt_result"], 0.5) for verdict in verdicts}
        self.judge = np.array([of_row[int(row["idx"])] for row in rows])

    def predicted(self, asked: Asked) -> Predicted:
        """The judge has learnt nothing here, so that there is one fold."""
        return Predicted(self.judge[:, None], np.zeros(len(asked.item), dtype=np.int64))

    def influences(self, asked: Asked, weight: np.ndarray) -> dict[str, Influence]:
        theta, inverse, _errors = self.fitted(asked, weight)
        mean = np.average(asked.value, weights=weight)
        chance = 1 / (1 + np.exp(-(theta[self.second] - theta[self.first])))
        place = {name: index for index, name in enumerate(self.names)}
        influences = {}
        for title in self.truths:
            first, _over, two = title.partition(" over ")
            pull, centre = np.ones(self.size), np.full(self.size, mean)
            if two:
                row = (inverse[place[first]] - inverse[place[two]]) * weight.sum()
                pull, centre = row[self.second] - row[self.first], chance
            influences[title] = Influence(
                pull[asked.item] * (asked.value - centre[asked.item]),
                lambda chances, pull=pull, centre=centre: pull[:, None] * (chances - centre[:, None]),
            )
        return influences

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
        if design == "robust":
            return self.judge
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
    designs = ("uniform", "epsilon-greedy", "proportional", "uncertainty", "gap", *ROBUST)

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

    def predicted(self, asked: Asked) -> Predicted:
        items, place = np.unique(asked.item, return_inverse=True)
        fold = np.random.default_rng(0).permutation(np.arange(len(items)) % FOLDS)[place]
        everywhere = np.empty((self.size, FOLDS))
        for number in range(FOLDS):
            rest = fold != number
            fitted = bandit.fit_logistic(
                columns=self.features[asked.item[rest]], label=asked.value[rest], precision=np.r_[1e-4, np.ones(4)]
            )
            everywhere[:, number] = bandit.predict_logistic(self.features, fitted)
        return Predicted(everywhere, fold)

    def influences(self, asked: Asked, weight: np.ndarray) -> dict[str, Influence]:
        """Of the share; and of cov / sqrt(var without people's noise * var of the model), as `agreement` makes it."""
        share_title, agreement_title = self.truths
        expectations = self.expectations(asked, weight)
        rows = rows_of(expectations, expectations.readers[0])
        means = item_means(rows)
        share = means.weight / means.weight.sum()
        grown = 1 / (1 - float(np.square(share).sum()))
        people, model = means.mean - share @ means.mean, rows.chance - share @ rows.chance
        noise = float(share @ means.noise)
        both, across = (grown * float(share @ (side * model)) for side in (people, model))
        true = grown * float(share @ people**2) - noise
        root, corrected = math.sqrt(true * across), both / math.sqrt(true * across)
        # By one answer: its item's weight, which it has a part in, and its part in its item's mean and noise.
        part = share[rows.item] * rows.weight / means.total[rows.item]
        own, far = people[rows.item], model[rows.item]
        moved = share[rows.item] * means.mean_change
        of_both = part * (own * far - both) + moved * far
        of_true = part * (own**2 - true - means.noise[rows.item]) + 2 * moved * own
        of_true = of_true - share[rows.item] * means.noise_change
        of_across = part * (far**2 - across)
        added = of_both / root - corrected * (of_true / true + of_across / across) / 2
        mean = np.average(asked.value, weights=weight)
        off = (self.model - share @ rows.chance)[:, None]

        def expected(chances: np.ndarray) -> np.ndarray:
            side = chances - mean
            return (side * off - both) / root - corrected * ((side**2 - true) / true + (off**2 - across) / across) / 2

        return {
            share_title: Influence(asked.value - mean, lambda chances: chances - mean),
            agreement_title: Influence(added * weight.sum() / weight, expected),
        }

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
        if design in ("epsilon-greedy", "proportional", "robust"):
            return predicted
        # What is expected of a position, as ten answers of a beta distribution, and what people answered there.
        n = np.bincount(asked.item, minlength=self.size)
        k = np.bincount(asked.item, weights=asked.value, minlength=self.size)
        chance = (k + 10 * predicted) / (n + 10)
        if design == "uncertainty":
            return np.sqrt((1 - chance) / ((n + 10) * chance))
        return np.abs(np.log(self.model) - np.log(chance))

    def expectations(self, asked: Asked, weight: np.ndarray) -> Expectations:
        places, item = np.unique(asked.item, return_inverse=True)
        return Expectations(
            event=ComparedEvent("word", "", "", ""),
            items=Items([str(place) for place in places]),
            item=item.reshape(-1),
            person=asked.person,
            weight=weight,
            value=asked.value,
            readers=(ItemReader("GPT-2", "model", self.model[places]),),
        )

    def figures(self, asked: Asked, weight: np.ndarray, mean: Interval) -> dict[str, Interval]:
        expectations = self.expectations(asked, weight)
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


def assistance_of(
    data: Preference | Cloze, asked: Asked, predicted: Predicted, influence: Influence, weight: np.ndarray
) -> np.ndarray:
    """What `bandit.assist` takes off the answers of a figure, in the unit of their influence (n,)."""
    expected = influence.expected(predicted.everywhere)
    off = predicted.of_answers(asked.item, expected) - expected.mean(axis=0)[predicted.fold]
    return bandit.assist(
        values=influence.of_answers,
        predictions=off,
        prediction_means=[0.0],
        stratum=np.zeros(len(off), dtype=np.int64),
        weight=weight,
        cluster=asked.person,
        item=asked.item if data.several > 1 or len(np.unique(asked.item)) < len(off) else None,
    ).adjustment


def taken_off(data: Preference | Cloze, asked: Asked, weight: np.ndarray) -> dict[str, tuple[Influence, np.ndarray]]:
    """Each figure's influence and what is taken off it: the mean's by stage, as `hunch estimate` does it, and the
    others' from all answers together, as the judge-assisted win rates are."""
    predicted = data.predicted(asked)
    mean_title, *_others = data.truths
    pieces = {}
    for title, influence in data.influences(asked, weight).items():
        adjustment = np.zeros(len(weight))
        for own in stages_of(asked) if title == mean_title else [np.ones(len(weight), dtype=bool)]:
            part = Influence(influence.of_answers[own], influence.expected)
            there = Predicted(predicted.everywhere, predicted.fold[own])
            adjustment[own] = assistance_of(data, asked.where(own), there, part, weight[own])
        pieces[title] = influence, adjustment
    return pieces


def stages_of(asked: Asked) -> list[np.ndarray]:
    return [asked.stage == stage for stage in np.unique(asked.stage)]


def evidence_of(data: Preference | Cloze, asked: Asked, weight: np.ndarray) -> bandit.Evidence:
    """What the answers leave unexplained, for the next stage."""
    return bandit.Evidence.of(
        values={
            title: influence.of_answers - adjustment
            for title, (influence, adjustment) in taken_off(data, asked, weight).items()
        },
        scores=np.clip(data.predicted(asked).of_answers(asked.item), 0, 1),
        chance=asked.chance,
        stage=asked.stage,
        cluster=asked.person,
        item=asked.item if data.several > 1 else None,
    )


def assisted(
    data: Preference | Cloze, asked: Asked, weight: np.ndarray, plans: list[float], figures: dict[str, Interval]
) -> dict[str, Interval]:
    """The figures with the help of predictions."""
    share, helped = weight / weight.sum(), {}
    for title, (influence, adjustment) in taken_off(data, asked, weight).items():
        if title == next(iter(data.truths)):
            helped[title] = combined_mean(data, asked, plans, adjustment)
            continue
        errors = [
            bandit.clustered_variance(
                share * (part - share @ part), asked.person, *([asked.item] if data.several > 1 else [])
            )
            for part in (influence.of_answers - adjustment, influence.of_answers)
        ]
        plain = figures[title]
        value = plain.value - float(share @ adjustment)
        helped[title] = Interval(value, plain.half * math.sqrt(errors[0] / errors[1]))
    return helped


def combined_mean(
    data: Preference | Cloze, asked: Asked, plans: list[float], adjustment: np.ndarray | None = None
) -> Interval:
    """The mean of all stages, as the core combines them."""
    estimates = [
        bandit.hajek(
            values=asked.value[own],
            probability=asked.chance[own],
            cluster=asked.person[own],
            item=asked.item[own] if data.several > 1 else None,
            adjustment=None if adjustment is None else adjustment[own],
        )
        for own in stages_of(asked)
    ]
    combined = bandit.combine_stages(estimates=estimates, plan_weights=plans).estimate
    return Interval(combined.value, (combined.interval[1] - combined.interval[0]) / 2)


def replayed(kind: str, folder: Path, design: str, number: int) -> tuple[dict[str, Interval], float]:
    """One study: its figures, and the share of answers with the label."""
    data = data_of(kind, folder)
    seed = int.from_bytes(sha256(f"replay {kind} {design} {number}".encode()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    design, assistance, _rest = design.partition(ASSISTED)
    asked: Asked | None = None
    plans: list[float] = []
    weight = np.empty(0)
    for stage in range(STAGES):
        scores = None if asked is None or design == "uniform" else data.scores(design, asked, weight, rng)
        plan: bandit.Design = bandit.Uniform()
        if asked is not None and scores is not None:
            plan = PROPORTIONAL if design == "proportional" else GREEDY
            if design == "robust":
                plan = bandit.Robust().learn(evidence_of(data, asked, weight), scores)
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
        plans.append(bandit.kish_size(new.chance, people=len(np.unique(new.person))))
        weight = _weights(asked, plans)
    assert asked is not None
    figures = data.figures(asked, weight, combined_mean(data, asked, plans))
    if assistance:
        figures = assisted(data, asked, weight, plans, figures)
    return figures, float(asked.value.mean())


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
    header = f"{'figure':44}{'design':22}{'people saved':>24}{'by error':>24}{'half width':>12}{'cover':>8}{'found':>8}"
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
                f"{title:44}{design:22}{_words(row['saved']):>24}{_words(row['by_error']):>24}"
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
