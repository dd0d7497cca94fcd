"""Whole next-token studies in arrays, with a known truth: for laws and benchmarks. Numpy and bandit alone."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit import draw, inclusion_probabilities
from bandit.designs import Design, Uniform
from survey.figures import Figure
from survey.services.results.people_and_models.errors import UNDEFINED

from .guesses import GuessTable, ModelGuesses, ensemble, mean, numbers_of, people_above, perplexity, share
from .priority import gap, predicted_share, uncertainty

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WRONG = 4  # wrong tokens that people have in mind at a position


@dataclass(frozen=True)
class GuessWorld:
    """How hard tokens are: a level in log-odds, and how passages, positions and people differ. A model is right with
    a chance that goes with the position's."""

    level: float = -0.9
    passage_sd: float = 0.4
    position_sd: float = 1.5
    person_sd: float = 0.5
    model_level: float = -0.4
    model_noise: float = 0.8


@dataclass(frozen=True)
class GuessPlan:
    """A study: passages with so many runs of so many tokens; runs drawn in each stage, people per run, runs per
    person."""

    passages: int = 80
    runs: int = 3
    tokens: int = 12
    drawn: tuple[int, ...] = (80, 80)
    responses: int = 5
    items: int = 5
    design: Design | None = None
    priority: str = ""


class GuessFigures(NamedTuple):
    """What one study prints: people's share, the model's, their difference, the model's perplexity, the share of the
    first quarter of a run, and of the ensemble."""

    people: Figure
    model: Figure
    difference: Figure
    perplexity: Figure
    early: Figure
    together: Figure
    person: Figure


def study(world: GuessWorld, plan: GuessPlan, *, rng: np.random.Generator) -> GuessFigures:
    """One simulated study, from its passages to its figures."""
    size, tokens = plan.passages * plan.runs, plan.tokens
    passage_of = np.repeat(np.arange(plan.passages), plan.runs)
    by_passage = world.passage_sd * rng.standard_normal(plan.passages)
    hard = world.position_sd * rng.standard_normal((size, tokens))
    logit = world.level + by_passage[passage_of][:, None] + hard
    of_model = world.model_level + by_passage[passage_of][:, None] + hard
    of_model = of_model + world.model_noise * rng.standard_normal((size, tokens))
    model_right = (of_model > 0).astype(np.float64)
    nats = np.log1p(np.exp(-of_model))
    run: list[Ints] = []
    person: list[Ints] = []
    right: list[Floats] = []
    wrong: list[Ints] = []
    weight: list[Floats] = []
    people = 0
    for stage, count in enumerate(plan.drawn):
        adaptive = stage > 0 and plan.design is not None and bool(plan.priority)
        design: Design = plan.design if adaptive and plan.design is not None else Uniform()
        scores = _scores(plan, passage_of, model_right, nats, run, right) if adaptive else None
        seed = int(rng.integers(2**53))
        drawn = draw(design=design, n=count, scores=scores, n_candidates=size, rng=np.random.default_rng(seed))
        chances = inclusion_probabilities(
            design=design, n=count, scores=scores, n_candidates=size, rng=np.random.default_rng(seed)
        )
        own = np.repeat(drawn.selected, plan.responses)
        needed = math.ceil(len(own) / plan.items)
        who = rng.permutation(len(own)) % needed
        ability = world.person_sd * rng.standard_normal(needed)
        hits = rng.random((len(own), tokens)) < 1 / (1 + np.exp(-(logit[own] + ability[who][:, None])))
        run.append(own)
        person.append(who + people)
        right.append(hits.astype(np.float64))
        wrong.append(np.minimum(rng.geometric(0.5, size=hits.shape), WRONG))
        weight.append(1 / chances[own] / plan.responses)
        people += needed
    runs, hits = np.concatenate(run), np.concatenate(right)
    others, n = np.concatenate(wrong), hits.size
    code = np.repeat(np.concatenate(person), tokens)
    place = np.tile(np.arange(tokens), len(runs))
    table = GuessTable(
        person=code,
        passage=np.repeat(passage_of[runs], tokens),
        people=[str(number) for number in range(people)],
        passages=[str(number) for number in range(plan.passages)],
        position=np.repeat(runs % plan.runs, tokens) * tokens + place,
        place=place + 1,
        number=numbers_of(code[:1]).repeat(n),
        right=hits.ravel().astype(np.float64),
        weight=np.repeat(np.concatenate(weight), tokens),
        guess=np.where(hits.ravel() > 0, 0, others.ravel()).tolist(),
        truth=[""] * n,
        models=[ModelGuesses("model", model_right[runs].ravel(), nats[runs].ravel())],
    )
    (model,) = table.models
    together = ensemble(table)  # None with fewer than five people per run
    return GuessFigures(
        share(table).figure,
        mean(model.right, table),
        mean(table.right - model.right, table, scale="difference"),
        perplexity(model, table),
        mean(table.right, table, table.place <= tokens // 4),
        UNDEFINED if together is None else together.ensemble,
        UNDEFINED if together is None else together.person,
    )


AGAIN = 50  # times that other people play the same runs


def above_a_model(world: GuessWorld, *, people: int, rng: np.random.Generator) -> tuple[Figure, float]:
    """What one study prints of people above a model, and what it aims at: the share among very many people who play the
    same runs. 40 runs of 12 tokens, of which each person plays 5."""
    runs, tokens, items = 40, 12, 5
    hard = world.position_sd * rng.standard_normal((runs, tokens)) + world.passage_sd * rng.standard_normal((runs, 1))
    of_model = world.model_level + hard + world.model_noise * rng.standard_normal((runs, tokens))
    played = np.array([rng.choice(runs, size=items, replace=False) for _person in range(people)])
    logit, model = world.level + hard[played], (of_model[played] > 0).astype(np.float64)

    def play() -> Floats:
        ability = world.person_sd * rng.standard_normal((people, 1, 1))
        return (rng.random(logit.shape) < 1 / (1 + np.exp(-(logit + ability)))).astype(np.float64)

    right, n = play(), people * items * tokens
    person = np.repeat(np.arange(people), items * tokens)
    table = GuessTable(
        person=person,
        passage=np.repeat(played.ravel(), tokens),
        people=[str(number) for number in range(people)],
        passages=[str(number) for number in range(runs)],
        position=np.tile(np.arange(tokens), people * items),
        place=np.tile(np.arange(tokens), people * items) + 1,
        number=numbers_of(person),
        right=right.ravel(),
        weight=np.ones(n),
        guess=[""] * n,
        truth=[""] * n,
        models=[ModelGuesses("model", model.ravel(), np.ones(n))],
    )
    others = [(play() - model).sum(axis=(1, 2)) > 0 for _time in range(AGAIN)]
    return people_above(table.models[0], table).figure, float(np.mean(others))


def _scores(
    plan: GuessPlan, passage: Ints, model: Floats, nats: Floats, runs: list[Ints], right: list[Floats]
) -> Floats:
    size, tokens = model.shape
    who, hits = np.concatenate(runs), np.concatenate(right)
    times = np.bincount(who, minlength=size).astype(np.float64)
    scores = np.zeros((size, tokens))
    np.add.at(scores, who, hits)
    guessed = np.flatnonzero(np.repeat(times > 0, tokens))
    n, text = np.repeat(times, tokens)[guessed], np.repeat(passage, tokens)
    predicted = predicted_share(nats.reshape(-1, 1), text, guessed, n, scores.ravel()[guessed])
    run = np.repeat(np.arange(size), tokens)
    return gap(predicted, model.ravel(), run) if plan.priority == "gap" else uncertainty(predicted, run, times)


def truth(world: GuessWorld, plan: GuessPlan, *, rng: np.random.Generator, passages: int = 16_000) -> list[float]:
    """What studies aim at: the figures of the same plan, drawn uniformly, over very many passages and people."""
    size = 400
    drawn = tuple(count * size // plan.passages for count in plan.drawn)
    whole = replace(plan, passages=size, drawn=drawn, design=None, priority="")
    made = np.array([[figure.number for figure in study(world, whole, rng=rng)] for _part in range(passages // size)])
    made[:, 3] = np.log(made[:, 3])
    values = made.mean(axis=0)
    return [*values[:3].tolist(), math.exp(values[3]), *values[4:].tolist()]
