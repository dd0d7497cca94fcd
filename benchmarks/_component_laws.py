"""Cases of `sampling_laws.py` about shares of variance between people, items and questions: see `docs/estimates.md`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial

import numpy as np

import bandit
from bandit.components import PEOPLE, plain_shares
from benchmarks._law_rows import Row
from tests.bandit import component_cases
from tests.bandit.component_cases import Case

CASES = (
    ("60 people, two answers an item", component_cases.BASE),
    ("60 people, one answer an item", component_cases.ONE_ANSWER),
    ("30 people", component_cases.FEW_PEOPLE),
    ("80 people, 0 or 1", component_cases.BINARY),
    ("60 people, skewed", component_cases.SKEWED),
    ("30 people, skewed", component_cases.SKEWED_FEW),
    ("60 people, weights 1 or 5", component_cases.WEIGHTED),
)


def rows(pool: Executor, *, studies: int, seed: int) -> list[Row]:
    return [row for number in range(len(CASES)) for row in _of_case(pool, number, studies, seed)]


def _of_case(pool: Executor, number: int, studies: int, seed: int) -> Iterator[Row]:
    name, case = CASES[number]
    truth = component_cases.truth(case)
    study = partial(component_study, case, seed * 100 + number)
    made = np.array(list(pool.map(study, range(studies), chunksize=25)))
    title = f"shares of variance: {name}"
    for place, (part, share) in enumerate(truth.items()):
        plain, low, high = made[:, place].T
        yield Row(
            f"shares of variance: {name}", f"{part}: bias", "none", float(plain.mean() - share), -0.02, 0.02, studies
        )
        if part == PEOPLE:
            cover = float(((low <= share) & (share <= high)).mean())
            yield Row(title, f"{part}: cover", "none", cover, 0.93, 0.97, studies)


def component_study(case: Case, stream: int, number: int) -> list[list[float]]:
    """Of each share in the order of the truth: the plain estimate and its interval."""
    arrays = component_cases.study(np.random.default_rng([10, stream, number]), case)
    plain = plain_shares(**arrays)
    components = bandit.variance_components(
        **arrays, rng=np.random.default_rng([11, stream, number]), resamples=100, only=(PEOPLE,)
    )
    ends = {share.name: share.interval for share in components.shares}
    return [[plain[name], *ends[name]] for name in component_cases.truth(case)]
