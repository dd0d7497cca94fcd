"""Which rule for small sums of a clustered variance holds, and which quantile Wilson's interval of a share needs?

    python benchmarks/cluster_laws.py [--studies 4000]

By chance the variance by person plus that by item less that by answer can be too small. Five rules are compared in 140
kinds of studies: 6 to 60 people and 6 to 60 items, answers that hang together by person, by item, by both or not at
all, normal or very skewed (log-normal), of equal and of very unequal weight; and in 28 kinds by person alone. The same
for three intervals of a share of 0.5 and of 0.9. An interval is Student's, with the degrees of freedom of
`bandit.clustered_freedom`; the truth is over all people and items. `width` is the mean standard error in those of the
figure. The rule that `bandit.clustered_variance` has is `smallest`; that it is, is checked. About a minute on one core.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import bandit

# People, items, and how many items each person answers.
SHAPES = ((6, 30, 10), (30, 6, 4), (8, 8, 6), (12, 12, 4), (20, 60, 8), (40, 40, 10), (60, 15, 5))
# The share of the variance of an answer that its person brings, and that its item brings.
PARTS = ((0.0, 0.0), (0.2, 0.0), (0.0, 0.2), (0.2, 0.2), (0.05, 0.05))
RULES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "none": lambda person, item, both: np.maximum(person + item - both, 0.0),
    "smallest": lambda person, item, both: np.maximum(person + item - both, np.minimum(person, item)),
    "least of three": lambda person, item, both: np.maximum(
        person + item - both, np.minimum(np.minimum(person, item), both)
    ),
    "largest": lambda person, item, both: np.maximum(person + item - both, np.maximum(person, item)),
    "nothing off": lambda person, item, both: person + item,
}
SHARES = (0.5, 0.9)
INTERVALS = ("Student", "Wilson, normal", "Wilson, t")
Draw = Callable[..., np.ndarray]


def skewed(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return (rng.lognormal(size=size) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


DISTRIBUTIONS: dict[str, Draw] = {"normal": lambda rng, size: rng.normal(size=size), "skewed": skewed}


def by(contributions: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The variance of each study's figure (studies,) by one kind of clusters, from what answers add (studies, n)."""
    totals = contributions @ np.eye(int(label.max()) + 1)[label]
    count = totals.shape[1]
    return count / (count - 1) * (totals**2).sum(axis=1)


def designs(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Who answers what, for each of `SHAPES`: the person and the item of each answer."""
    for people, items, each in SHAPES:
        chosen = np.concatenate([rng.choice(items, each, replace=False) for _person in range(people)])
        yield np.repeat(np.arange(people), each), np.unique(chosen, return_inverse=True)[1]


def latent(rng: np.random.Generator, draw: Draw, person: np.ndarray, item: np.ndarray, parts: tuple[float, float],
           studies: int) -> np.ndarray:  # fmt: skip
    """What answers are made of, (studies, n), with mean 0 and variance 1."""
    of_person, of_item = (
        draw(rng, (studies, int(label.max()) + 1))[:, label] * np.sqrt(part)
        for label, part in zip((person, item), parts, strict=True)
    )
    return of_person + of_item + np.sqrt(1 - sum(parts)) * draw(rng, (studies, person.size))


def means(studies: int, rng: np.random.Generator) -> Iterator[tuple[str, str, str, float, float]]:
    """Kind of clusters, distribution, rule, cover and width of each kind of study."""
    for (person, item), parts, kind, unequal in product(list(designs(rng)), PARTS, DISTRIBUTIONS, (False, True)):
        weight = (1 / rng.uniform(0.1, 1, int(item.max()) + 1))[item] if unequal else np.ones(item.size)
        share = weight / weight.sum()
        values = latent(rng, DISTRIBUTIONS[kind], person, item, parts, studies)
        estimate = values @ share
        added = share * (values - estimate[:, None])
        three = [by(added, label) for label in (person, item, np.arange(person.size))]
        own = RULES["smallest"](*(part[:1] for part in three))[0]
        if not np.isclose(own, bandit.clustered_variance(added[0], person, item)):
            sys.exit("bandit.clustered_variance has another rule than the one that is measured here.")
        ways = {rule: (of(*three), (person, item)) for rule, of in RULES.items()}
        if parts[1] == 0 and not unequal:
            ways["by person alone"] = three[0], (person,)
        for rule, (variance, clusters) in ways.items():
            reach = bandit.student_t_quantile(0.975, bandit.clustered_freedom(share, *clusters)) * np.sqrt(variance)
            yield "mean", kind, rule, np.mean(np.abs(estimate) <= reach), np.mean(np.sqrt(variance)) / estimate.std()


def shares(studies: int, rng: np.random.Generator) -> Iterator[tuple[str, str, str, float, float]]:
    """The same of the intervals of a share, with the mean half width as width."""
    for (person, item), parts, truth in product(list(designs(rng)), PARTS, SHARES):
        values = latent(rng, DISTRIBUTIONS["normal"], person, item, parts, studies)
        label = (values < np.quantile(values, truth)).astype(np.float64)
        estimate = label.mean(axis=1)
        added = (label - estimate[:, None]) / person.size
        variance = RULES["smallest"](*(by(added, own) for own in (person, item, np.arange(person.size))))
        freedom = bandit.clustered_freedom(np.ones(person.size), person, item)
        for way in INTERVALS:
            ends = []
            for value, spread in zip(estimate.tolist(), variance.tolist(), strict=True):
                answers = bandit.effective_answers(value, spread, float(person.size))
                plain = bandit.student_interval(value, spread**0.5, freedom) or (value, value)
                wilson = bandit.wilson_interval(value, answers, freedom if way == "Wilson, t" else np.inf)
                ends.append(plain if way == "Student" else wilson)
            low, high = np.array(ends).T
            yield f"share {truth}", "0 or 1", way, np.mean((low <= truth) & (truth <= high)), np.mean(high - low) / 2


def three_kinds(studies: int, rng: np.random.Generator) -> Iterator[tuple[str, str, str, float, float]]:
    """Of people's beliefs about which models answer correctly (figure 7 of the belief study): each belief of 20 people
    about six of 20 questions stands next to half of the models, and answers hang together by question and model."""
    person = np.repeat(np.arange(20), 6)
    for answerers, part in product((3, 6, 12, 20), (0.0, 0.3)):
        estimates, errors, reaches = [], {"smallest": [], "largest": []}, []
        for _study in range(studies):
            question = np.concatenate([rng.permutation(20)[:6] for _person in range(20)])
            belief, answerer = np.nonzero(rng.random((person.size, answerers)) < 0.5)
            made_of = rng.normal(size=(20, 1)) + rng.normal(size=answerers), rng.normal(size=(20, answerers))
            right = part**0.5 * made_of[0] + (1 - 2 * part) ** 0.5 * made_of[1] > 0
            share = 1 / np.bincount(belief)[belief]
            share /= share.sum()
            values = right[question[belief], answerer]
            added, clusters = share * (values - share @ values), (person[belief], question[belief], answerer)
            variance = bandit.clustered_variance(added, *clusters)
            single = [bandit.clustered_variance(added, kind) for kind in clusters]
            estimates.append(float(share @ values) - 0.5)
            errors["smallest"].append(variance**0.5)
            errors["largest"].append(max(variance, *single) ** 0.5)
            reaches.append(bandit.student_t_quantile(0.975, bandit.clustered_freedom(share, *clusters)))
        for (rule, own), (way, reach) in product(errors.items(), (("t", np.array(reaches)), ("normal", 1.96))):
            cover = np.mean(np.abs(estimates) <= reach * np.array(own))
            yield "three", f"{answerers} models", f"{rule}, {way}", cover, np.mean(own) / np.std(estimates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=4000)
    studies = parser.parse_args().studies
    rng = np.random.default_rng(20261128)
    laws: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    few = max(studies // 8, 1)
    for *key, cover, width in [*means(studies, rng), *shares(few, rng), *three_kinds(few, rng)]:
        laws.setdefault((key[0], key[1], key[2]), []).append((100 * cover, width))
    print(f"{'figure':10} {'answers':10} {'rule':16} {'kinds':>5} {'cover':>6} {'from':>6} {'to':>6} {'width':>6}")
    rows = []
    for (figure, kind, rule), pairs in laws.items():
        cover, width = np.array(pairs).T
        covers = [round(float(value), 1) for value in (cover.mean(), cover.min(), cover.max())]
        rows.append([figure, kind, rule, len(pairs), *covers, round(float(width.mean()), 3)])
        print("{:10} {:10} {:16} {:5d} {:6.1f} {:6.1f} {:6.1f} {:6.3f}".format(*rows[-1]))
    print(json.dumps({"studies": studies, "rows": rows}))


if __name__ == "__main__":
    main()
