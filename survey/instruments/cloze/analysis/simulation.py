"""Simulated cloze studies with a known truth: for the benchmark of intervals, and for planning a study. numpy alone.

Sentences come from an endless supply. A sentence has a level, and its positions vary around it. The chance of the
sentence's own word at a position, the other words that people write there, and what models give follow from that.
People differ in how often they write the sentence's own word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bandit.designs import Design, Uniform
from bandit.draws import draw, inclusion_probabilities
from survey.figures import Figure

from .answers import WordAnswers, answer_influence, halves, human_surprisal
from .correlation import RESAMPLES, Positions, mean_surprisal, pnc, reliability
from .priority import drawn_at_least_once, gap, predicted_surprisal, uncertainty

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OTHERS = 15  # other words at a position


@dataclass(frozen=True)
class ClozeWorld:
    """How sentences, models and people are made.

    level, sentence_sd, position_sd: of the log odds of the sentence's own word. person_sd: how people differ in it.
    models: by name the spread of a model's surprisal around the truth, in nats.
    """

    level: float = -1.6
    sentence_sd: float = 0.6
    position_sd: float = 1.6
    person_sd: float = 0.5
    models: Mapping[str, float] = field(default_factory=lambda: {"near": 1.0, "far": 2.0})


@dataclass(frozen=True, eq=False)
class Texts:
    """N positions of sentences, and what is true of them. others: (N, 15) chances of the other words, given that the
    sentence's own is not written."""

    sentence: Ints
    logit: Floats
    others: Floats
    models: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.sentence)


@dataclass(frozen=True)
class ClozePlan:
    """A simulated study: a bank of sentences with so many positions each, and stages that each draw so many positions
    for so many answers, the later ones by a design and a priority ("" draws uniformly). A person answers `items`."""

    sentences: int = 300
    positions: int = 6
    drawn: tuple[int, ...] = (120, 120)
    responses: int = 10
    design: Design | None = None
    priority: str = ""
    gap_model: str = "near"
    smoothing: float = 1.0
    items: int = 20

    @property
    def people(self) -> int:
        """How many people all stages need: nobody is asked twice at a position."""
        return sum(max(math.ceil(count * self.responses / self.items), self.responses) for count in self.drawn)


@dataclass(frozen=True, eq=False)
class SimulatedFigures:
    """What a simulated study printed."""

    pnc: Mapping[str, Figure]
    differences: Mapping[tuple[str, str], Figure]
    mean: Figure
    reliability: float | None
    positions: int
    answers: int


def texts(world: ClozeWorld, *, sentences: int, positions: int, rng: np.random.Generator) -> Texts:
    """Sentences from the supply."""
    sentence = np.repeat(np.arange(sentences), positions)
    size = len(sentence)
    logit = (
        world.level
        + world.sentence_sd * rng.standard_normal(sentences)[sentence]
        + world.position_sd * rng.standard_normal(size)
    )
    weights = rng.gamma(0.35, size=(size, OTHERS)) + 1e-9
    surprisal = np.log1p(np.exp(-logit))
    models = {name: np.maximum(surprisal + sd * rng.standard_normal(size), 0.01) for name, sd in world.models.items()}
    return Texts(sentence, logit, weights / weights.sum(axis=1, keepdims=True), models)


def asked(
    world: ClozeWorld, bank: Texts, position: Ints, person: Ints, ability: Floats, rng: np.random.Generator
) -> tuple[Ints, NDArray[np.bool_]]:
    """The words (A,) that people write at positions, 0 being the sentence's own, and whether they are it."""
    chance = 1 / (1 + np.exp(-(bank.logit[position] + world.person_sd * ability[person])))
    match = rng.random(len(position)) < chance
    edges = np.cumsum(bank.others[position], axis=1)
    other = np.minimum((rng.random(len(position))[:, None] > edges).sum(axis=1), OTHERS - 1) + 1
    return np.where(match, 0, other), match


def study(
    world: ClozeWorld, plan: ClozePlan, *, rng: np.random.Generator, splits: int = 0, samples: int = RESAMPLES
) -> SimulatedFigures:
    """One simulated study, from its bank to its figures."""
    bank = texts(world, sentences=plan.sentences, positions=plan.positions, rng=rng)
    size = len(bank)
    chances = np.zeros((len(plan.drawn), size))
    stages: list[tuple[Ints, Ints, Ints, NDArray[np.bool_]]] = []
    people = 0
    for stage, count in enumerate(plan.drawn):
        adaptive = stage > 0 and plan.design is not None and bool(plan.priority)
        design: Design = plan.design if adaptive and plan.design is not None else Uniform()
        scores = _scores(bank, plan, stages) if adaptive else None
        seed = int(rng.integers(2**53))
        drawn = draw(design=design, n=count, scores=scores, n_candidates=size, rng=np.random.default_rng(seed))
        # The same generator breaks the same ties, so these are the chances that the draw had.
        chances[stage] = inclusion_probabilities(
            design=design, n=count, scores=scores, n_candidates=size, rng=np.random.default_rng(seed)
        )
        own = np.repeat(drawn.selected, plan.responses)
        needed = max(math.ceil(len(own) / plan.items), plan.responses)
        who = _dealt(count, plan.responses, needed, rng)
        words, hits = asked(world, bank, own, who, rng.standard_normal(needed), rng)
        stages.append((own, who + people, words, hits))
        people += needed
    position, person, word, match = (np.concatenate(column) for column in zip(*stages, strict=True))
    there, place = np.unique(position, return_inverse=True)
    answers = WordAnswers(len(there), place.reshape(-1), word, match, person)
    human = human_surprisal(answers, smoothing=plan.smoothing, most=plan.responses, rng=rng)
    weight = 1 / drawn_at_least_once(chances[:, there])
    positions = Positions(
        human.mean,
        human.square,
        weight,
        bank.sentence[there],
        answers.position,
        answer_influence(answers, smoothing=plan.smoothing, most=plan.responses),
        answers.person,
    )
    models = {name: values[there] for name, values in bank.models.items()}
    single, differences = pnc(positions, models, rng=rng, samples=samples)
    pairs = halves(answers, smoothing=plan.smoothing, most=plan.responses, rng=rng, splits=splits)
    return SimulatedFigures(
        single,
        differences,
        mean_surprisal(positions, rng=rng, samples=samples),
        reliability(pairs, weight) if splits else None,
        len(there),
        len(position),
    )


def _dealt(positions: int, responses: int, people: int, rng: np.random.Generator) -> Ints:
    """(positions x responses,): who answers each position, those with the fewest answers so far, at random."""
    answers, who = np.zeros(people, dtype=np.int64), np.empty((positions, responses), dtype=np.int64)
    for row in who:
        row[:] = np.lexsort((rng.random(people), answers))[:responses]
        answers[row] += 1
    return who.reshape(-1)


def _scores(bank: Texts, plan: ClozePlan, stages: list[tuple[Ints, Ints, Ints, NDArray[np.bool_]]]) -> Floats:
    position, person, word, match = (np.concatenate(column) for column in zip(*stages, strict=True))
    n, k, distinct = WordAnswers(len(bank), position, word, match, person).counts()
    rows = np.flatnonzero(n)
    surprisal = -np.log((k[rows] + plan.smoothing) / (n[rows] + plan.smoothing * (distinct[rows] + 1)))
    predicted = predicted_surprisal(np.stack(list(bank.models.values()), axis=1), rows, surprisal)
    if plan.priority == "gap":
        return gap(predicted, bank.models[plan.gap_model])
    return uncertainty(predicted, rows, k[rows], n[rows], smoothing=plan.smoothing, responses=plan.responses)


def truth(
    world: ClozeWorld, plan: ClozePlan, *, rng: np.random.Generator, sentences: int = 20_000
) -> tuple[dict[str, float], float]:
    """What a study aims at: the PNC of each model and people's mean surprisal if every position of very many sentences
    had `responses` answers, those at one position from different people."""
    sums = {name: np.zeros(6) for name in world.models}
    total, size = 0.0, 2000
    parts = math.ceil(sentences / size)
    for _ in range(parts):
        bank = texts(world, sentences=size, positions=plan.positions, rng=rng)
        position = np.repeat(np.arange(len(bank)), plan.responses)
        person = np.arange(len(position))
        words, hits = asked(world, bank, position, person, rng.standard_normal(len(position)), rng)
        answers = WordAnswers(len(bank), position, words, hits, person)
        human = human_surprisal(answers, smoothing=plan.smoothing, most=plan.responses, rng=rng).mean
        total += float(human.mean())
        for name, values in bank.models.items():
            columns = [np.ones_like(human), values, human, values**2, human**2, values * human]
            sums[name] += np.stack(columns).sum(axis=1)
    correlations = {}
    for name, (n, x, y, xx, yy, xy) in sums.items():
        correlations[name] = float(
            (xy / n - x * y / n**2) / math.sqrt((xx / n - (x / n) ** 2) * (yy / n - (y / n) ** 2))
        )
    return correlations, total / parts
