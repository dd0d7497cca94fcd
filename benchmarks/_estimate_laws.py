"""Cases of `sampling_laws.py` about people who leave, questions as a sample, and the limit of the AUC, each with what
the figure was before: see `docs/estimates.md`.

Every case is a function of a seed that gives one simulated study's numbers; `rows` sums them up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from benchmarks._law_rows import Row
from benchmarks._meter import Meter
from tests.bandit import leaving_cases, noise_cases, question_cases
from tests.bandit.leaving_cases import AFTER_A_CHANGE, BY_TRAIT, INSTEAD, NOBODY_MORE, Leaving
from tests.bandit.noise_cases import ALL, CARRY_OVER, EXTREMITY, PERSON, Habits


def rows(pool: Meter, *, studies: int, seed: int) -> list[Row]:
    """Half of the studies for people who leave and for questions, a quarter for the limit of the AUC."""
    half = studies // 2
    return [*_leaving(pool, half, seed), *_questions(pool, half, seed), *_noise(pool, studies // 4, seed)]


def _leaving(pool: Meter, studies: int, seed: int) -> list[Row]:
    rows = []
    cases: Sequence[tuple[str, Leaving, int]] = (
        ("nobody leaves by answers", NOBODY_MORE, 88),
        ("nobody leaves by answers, 20 people", NOBODY_MORE, 20),
        ("leaves after a change", AFTER_A_CHANGE, 88),
        ("leaves after a change, 20 people", AFTER_A_CHANGE, 20),
        ("leaves by a trait", BY_TRAIT, 88),
        ("leaves instead of answering", INSTEAD, 88),
    )
    for number, (title, leaving, people) in enumerate(cases):
        study = partial(leaving_study, leaving, people, seed * 100 + number)
        made = np.array(list(pool.map(study, range(studies), chunksize=25)))
        if leaving is NOBODY_MORE:
            test = made[:, 0, 10]
            rows.append(Row(title, "test: size at .05", "none", float(np.nanmean(test < 0.05)), 0.03, 0.07, studies))
        for place, name in enumerate((title, f"{title}, one task")):
            rows += _ways(made[:, place], name, leaving, of_task=bool(place))
    study = partial(levels_study, seed * 100 + len(cases))
    made = np.array(list(pool.map(study, range(studies), chunksize=25)))
    title, plain = "people leave one of two levels, no effect", made[:, 0:3]
    before = (f"{plain[:, 0].mean():+.4f}", f"{_holds(plain[:, 1:], 0):.3f}")
    slack = 0.005 + 2 * float(made[:, 3].std()) / studies**0.5
    rows.append(Row(title, "weighted: bias of difference", before[0], float(made[:, 3].mean()), -slack, slack, studies))
    rows.append(Row(title, "weighted: cover", before[1], _holds(made[:, 4:6], 0), 0.93, 0.97, studies))
    rows.append(Row(title, "bounds, odds ratio 2: cover", before[1], _holds(made[:, 6:8], 0), 0.93, 1, studies))
    return rows


def _holds(ends: np.ndarray, truth: float) -> float:
    return float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())


def levels_study(stream: int, number: int) -> list[float]:
    """The difference between two levels: plain, weighted for leaving, and the ends of its bounds."""
    rng = np.random.default_rng([7, stream, number])
    difference = leaving_cases.difference_of_levels(rng, Leaving(0.3, 0.02), NOBODY_MORE, people=88)
    assert difference.combined and difference.stayed and difference.bounds
    return [
        *(
            difference.combined.value,
            *difference.combined.interval,
            difference.stayed.value,
            *difference.stayed.interval,
        ),
        *difference.bounds.interval,
    ]


def _ways(made: np.ndarray, name: str, leaving: Leaving, *, of_task: bool) -> Iterator[Row]:
    """The four figures of one case; what was before are the plain ones."""
    truth, studies = leaving_cases.truth(of_task=of_task), len(made)
    plain, stayed, bounds, worst = made[:, 0:3], made[:, 3:6], made[:, 6:8], made[:, 8:10]

    def cover(ends: np.ndarray) -> float:
        return _holds(ends, truth)

    before = (f"{plain[:, 0].mean() - truth:+.4f}", f"{cover(plain[:, 1:]):.3f}")
    if leaving is BY_TRAIT:  # What the weights take off is said, and nothing is promised.
        yield Row(name, "weighted: bias", before[0], float(stayed[:, 0].mean() - truth), -1, 0, studies)
    elif leaving is not INSTEAD:
        # What chance alone does to a mean of so many studies comes on top.
        slack = 0.005 + 2 * float(stayed[:, 0].std()) / studies**0.5
        bias = float(stayed[:, 0].mean() - truth)
        yield Row(name, "weighted: bias", before[0], bias, -slack, slack, studies)
        yield Row(name, "weighted: cover", before[1], cover(stayed[:, 1:]), 0.93, 0.97, studies)
    yield Row(name, "bounds, odds ratio 2: cover", before[1], cover(bounds), 0.93, 1, studies)
    yield Row(name, "worst case: cover", before[1], cover(worst), 0.93, 1, studies)


def leaving_study(leaving: Leaving, people: int, stream: int, number: int) -> list[list[float]]:
    study = leaving_cases.study(np.random.default_rng([7, stream, number]), leaving, people=people)
    rows = []
    for figure in (study.everything, study.task):
        plain, stayed, bounds, worst = leaving_cases.three_ways(figure)
        ends = [*bounds, *worst, np.nan if study.test is None else study.test]
        rows.append([plain.value, *plain.interval, stayed.value, *stayed.interval, *ends])
    return rows


def _questions(pool: Meter, studies: int, seed: int) -> list[Row]:
    rows = []
    for number, (questions, people) in enumerate(((60, 50), (200, 88))):
        study = partial(question_study, questions, people, seed * 100 + number)
        made = np.array(list(pool.map(study, range(studies), chunksize=25)))
        for place, (name, task) in enumerate((("", None), (", one task of four", 0))):
            truth = question_cases.truth(0.8, 0.6, task)
            low, high = made[:, place, 0::2], made[:, place, 1::2]
            these, such = ((low <= truth) & (truth <= high)).mean(axis=0)
            case = f"{questions} questions{name}"
            rows.append(Row(case, "such questions: cover", f"{these:.3f}", such, 0.93, 0.97, studies))
    return rows


def question_study(questions: int, people: int, stream: int, number: int) -> list[list[float]]:
    made = question_cases.study(np.random.default_rng([8, stream, number]), questions=questions, people=people)
    return [[*figure.these.interval, *figure.such.interval] for figure in made.values()]


# Before: what a ceiling from one person's repeats and the false changes was, in 300 studies of a case like this.
HABITS = (
    ("people differ", PERSON, "0.01"),
    ("less room after a change", CARRY_OVER, "0.80"),
    ("stable extremity", EXTREMITY, "0.00"),
    ("all of these", ALL, "-"),
)


def _noise(pool: Meter, studies: int, seed: int) -> list[Row]:
    rows = []
    for number, (name, habits, before) in enumerate(HABITS):
        for uneven in (False, True):
            study = partial(noise_study, habits, uneven, seed * 100 + number)
            made = np.array(list(pool.map(study, range(studies), chunksize=25)))
            case = f"limit of the AUC: {name}" + (", uneven" if uneven else "")
            rows.append(
                Row(case, "below the best AUC", before, float((made[:, 0] < made[:, 1]).mean()), 0, 0.05, studies)
            )
    return rows


def noise_study(habits: Habits, uneven: bool, stream: int, number: int) -> tuple[float, float]:
    return noise_cases.limit(np.random.default_rng([9, stream, number]), habits, uneven=uneven)
