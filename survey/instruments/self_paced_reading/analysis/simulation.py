"""Simulated studies of reading times with a known truth, for the laws of the intervals. Needs numpy alone.

People and passages are both drawn again for each study, from the same populations: a person has a pace and a slope of
surprisal of their own, a passage a level and a slope of its own. What a study aims at is worked out on very many of
both, with the same rules of cleaning and as many passages per person.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predictors.evaluation.reading_times import (
    SingleTimes,
    TimedWords,
    columns_of_times,
    prepared,
)
from survey.figures import Figure

from . import figures
from .cleaning import CleaningRules, ReadTimes, cleaned


@dataclass(frozen=True)
class ReadingWorld:
    """Milliseconds, nats and letters; standard deviations of people and of passages. `slopes`: of this word's surprisal
    and of the words before it, on average. guessers: the share of people who guess and hurry."""

    level: float = 250.0
    letter: float = 6.0
    slopes: tuple[float, ...] = (12.0, 6.0, 0.0)
    person_sd: float = 60.0
    person_slope_sd: float = 5.0
    passage_sd: float = 15.0
    passage_slope_sd: float = 2.0
    noise_sd: float = 90.0
    guessers: float = 0.06
    easy: float = 3.0
    question_sd: float = 0.7


@dataclass(frozen=True)
class ReadingPlan:
    """How many people read how many of the passages, and how many words a passage has."""

    people: int = 40
    passages: int = 16
    each: int = 8
    words: int = 30


@dataclass(frozen=True, eq=False)
class DrawnPassages:
    """Words of P passages of N words, one after the other, and their surprisals (P N,)."""

    words: TimedWords
    surprisal: np.ndarray


def draw_passages(plan: ReadingPlan, rng: np.random.Generator) -> DrawnPassages:
    """Rarer words are longer and more surprising, as in real texts."""
    size = plan.passages * plan.words
    rarity = rng.gamma(2.0, 1.0, size)
    surprisal = np.clip(0.9 * rarity + rng.gamma(1.5, 1.2, size), 0.05, 15.0)
    letters = np.clip(np.round(2.5 + 1.3 * rarity + rng.normal(0, 1.2, size)), 1, 16).astype(np.int64)
    passage = np.repeat(np.arange(plan.passages), plan.words)
    place = np.tile(np.arange(plan.words), plan.passages)
    spelt = ["a" * count for count in range(17)]
    words = TimedWords(
        [spelt[count] for count in letters.tolist()], passage, place, -1.0 - rarity / 2, place == plan.words - 1
    )
    return DrawnPassages(words, surprisal)


def read(world: ReadingWorld, plan: ReadingPlan, drawn: DrawnPassages, rng: np.random.Generator) -> ReadTimes:
    """The times of all people: each reads `each` passages, spread so that every passage is read about equally often."""
    order = np.concatenate(
        [rng.permutation(plan.passages) for _ in range(1 + plan.people * plan.each // plan.passages)]
    )
    chosen = np.stack(
        [_different(order, number * plan.each, plan.each, plan.passages, rng) for number in range(plan.people)]
    )
    guesses = rng.random(plan.people) < world.guessers
    pace = rng.normal(0, world.person_sd, plan.people) - 60.0 * guesses
    own_slope = rng.normal(0, world.person_slope_sd, plan.people)
    level = rng.normal(0, world.passage_sd, plan.passages)
    passage_slope = rng.normal(0, world.passage_slope_sd, plan.passages)
    hard = rng.normal(0, world.question_sd, plan.passages)
    apt = world.easy + rng.normal(0, world.question_sd, plan.people)
    reader = np.repeat(np.arange(plan.people), plan.each)
    passage = chosen.reshape(-1)
    chance = np.where(guesses[reader], 0.5, 1 / (1 + np.exp(-(apt[reader] + hard[passage]))))
    right = (rng.random(len(reader)) < chance).astype(np.float64)
    word = (passage[:, None] * plan.words + np.arange(plan.words)).reshape(-1)
    person, of, correct = (np.repeat(column, plan.words) for column in (reader, passage, right))
    length = np.array([len(word) for word in drawn.words.word], dtype=np.float64)
    cost = sum(slope * _earlier(drawn.surprisal, back, plan.words) for back, slope in enumerate(world.slopes))
    time = (
        world.level
        + pace[person]
        + level[of]
        + world.letter * length[word]
        + np.asarray(cost)[word]
        + (own_slope[person] + passage_slope[of]) * drawn.surprisal[word]
        + rng.normal(0, world.noise_sd, len(word))
    )
    marked = np.zeros(len(word), dtype=bool)
    return ReadTimes(word, of, person, np.round(np.clip(time, 20, 20_000)), correct, marked)


def _different(order: np.ndarray, begin: int, count: int, passages: int, rng: np.random.Generator) -> np.ndarray:
    """The next passages of a shuffled order; one that comes twice is replaced by another one."""
    chosen = list(dict.fromkeys(order[begin : begin + count].tolist()))
    if len(chosen) < count:
        rest = np.setdiff1d(np.arange(passages), chosen)
        chosen += rng.choice(rest, size=count - len(chosen), replace=False).tolist()
    return np.array(chosen, dtype=np.int64)


def _earlier(surprisal: np.ndarray, back: int, words: int) -> np.ndarray:
    """The surprisal of the word so many words before, in the same passage; 0 where there is none."""
    table = surprisal.reshape(-1, words)
    moved = np.zeros_like(table)
    moved[:, back:] = table[:, : words - back]
    return moved.reshape(-1)


def study(world: ReadingWorld, plan: ReadingPlan, *, rng: np.random.Generator) -> dict[str, Figure]:
    """Every figure of one simulated study that is printed with an interval."""
    drawn = draw_passages(plan, rng)
    times = read(world, plan, drawn, rng)
    keep = cleaned(times, CleaningRules()).keep
    kept_times = ReadTimes(
        times.word[keep],
        times.passage[keep],
        times.person[keep],
        times.time[keep],
        times.right[keep],
        times.marked[keep],
    )
    columns = columns_of_times(
        prepared(drawn.words, previous=2),
        SingleTimes(kept_times.word, kept_times.person, kept_times.passage, kept_times.time),
        drawn.surprisal,
    )
    slopes, total = figures.slopes(columns, kept_times.person[columns.row], kept_times.passage[columns.row])
    names = ("slope of this word", "slope of the word before", "slope two words before")
    return {
        "mean time": figures.mean_time(kept_times),
        "share right": figures.right_share(times),
        **dict(zip(names, slopes, strict=True)),
        "slope of all together": total,
    }


def truth(world: ReadingWorld, plan: ReadingPlan, *, rng: np.random.Generator, parts: int = 40) -> dict[str, float]:
    """What such a study aims at: the mean over studies of very many people and passages."""
    large = ReadingPlan(people=1000, passages=1000, each=plan.each, words=plan.words)
    studies = [study(world, large, rng=rng) for _ in range(parts)]
    return {name: float(np.mean([study[name].number for study in studies])) for name in studies[0]}
