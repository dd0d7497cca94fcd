"""Krippendorff's alpha: published figures, other ways to compute the same, missing values, refusals."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.evaluation.agreement import krippendorff_alpha

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: 4 observers, 12 units, 7 values missing.
# The package krippendorff 0.9.0 gives .74342, .81539, .84911 and, at the level ratio, .79740 (2026-11-29).
ROWS = ("1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3", ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 .")
OBSERVERS = [{str(unit): int(value) for unit, value in enumerate(row.split()) if value != "."} for row in ROWS]


def alpha(coders: Any, **options: Any) -> Any:
    return krippendorff_alpha(coders, rng=np.random.default_rng(0), **{"samples": 200, **options})


def by_coincidences(coders: Any, distance: Any) -> float:
    """The published formula, pair by pair: (n - 1) sum o d / sum n n d."""
    units: dict[str, list[Any]] = {}
    for coder in coders:
        for unit, value in coder.items():
            units.setdefault(unit, []).append(value)
    several = [values for values in units.values() if len(values) > 1]
    every = [value for values in several for value in values]
    inside = sum(distance(*two) / (len(values) - 1) for values in several for two in permutations(values, 2))
    return float(1 - (len(every) - 1) * inside / sum(distance(*two) for two in permutations(every, 2)))


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.74342), ("ordinal", 0.81539), ("interval", 0.84911), ("ratio", 0.79740)]
)
def test_it_gives_the_published_figures(level: str, published: float) -> None:
    agreement = alpha(OBSERVERS, level=level)
    assert agreement["alpha"] == pytest.approx(published, abs=0.000005)
    assert (agreement["units"], agreement["codes"]) == (11, 40)  # The last unit has one value and is left out.
    low, high = agreement["interval"]
    assert low < published < high <= 1


def test_it_is_the_sum_over_all_pairs_also_with_missing_codes() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 6, 60)
    coders = [
        {str(unit): float(value) for unit, value in enumerate(truth + rng.integers(-1, 2, 60)) if rng.random() < 0.7}
        for _ in range(4)
    ]
    assert alpha(coders)["alpha"] == pytest.approx(by_coincidences(coders, lambda a, b: a != b))
    assert alpha(coders, level="interval")["alpha"] == pytest.approx(by_coincidences(coders, lambda a, b: (a - b) ** 2))
    above = [{unit: value + 1 for unit, value in coder.items()} for coder in coders]  # 0 among them
    by_ratio = by_coincidences(above, lambda a, b: ((a - b) / (a + b)) ** 2 if a + b else 0)
    assert alpha(above, level="ratio")["alpha"] == pytest.approx(by_ratio)
    with pytest.raises(PredictorError, match=r"-1.0 is below 0; the level ratio"):
        alpha([{"a": -1.0, "b": 2.0}, {"a": 1.0, "b": 2.0}], level="ratio")
    # Far from 0 nothing is lost.
    far = [{unit: value + 1e6 for unit, value in coder.items()} for coder in coders]
    assert alpha(far, level="interval")["alpha"] == pytest.approx(alpha(coders, level="interval")["alpha"])


def test_ordinal_needs_the_order_of_texts_and_nominal_none() -> None:
    words = {1: "never", 2: "rarely", 3: "often", 4: "mostly", 5: "always"}
    coders = [{unit: words[value] for unit, value in coder.items()} for coder in OBSERVERS]
    assert alpha(coders)["alpha"] == pytest.approx(alpha(OBSERVERS)["alpha"])
    ordered = alpha(coders, level="ordinal", order=["unheard", *words.values()])["alpha"]
    assert ordered == pytest.approx(alpha(OBSERVERS, level="ordinal")["alpha"])
    assert alpha(coders, level="ordinal")["alpha"] != pytest.approx(ordered)


def test_chance_gives_0_and_opposites_less() -> None:
    rng = np.random.default_rng(5)
    chance = [{str(unit): int(value) for unit, value in enumerate(rng.integers(0, 3, 4000))} for _ in range(2)]
    assert abs(alpha(chance, samples=20)["alpha"]) < 0.05
    assert alpha([{"a": 0, "b": 1}, {"a": 1, "b": 0}])["alpha"] == pytest.approx(-0.5)


def test_where_there_is_nothing_to_tell_there_is_no_figure() -> None:
    alike = [{"a": "x", "b": "x"}, {"a": "x", "b": "x"}]
    assert alpha(alike) == {"units": 2, "codes": 4, "alpha": None, "interval": None}
    assert alpha([{"a": "x"}, {"b": "y"}]) == {"units": 0, "codes": 0, "alpha": None, "interval": None}
    assert alpha([]) == {"units": 0, "codes": 0, "alpha": None, "interval": None}
    whole = alpha([{"a": "x", "b": "y"}] * 2)
    assert whole["alpha"] == 1 and whole["interval"] is None


@pytest.mark.parametrize(
    ("coders", "options", "message"),
    [
        ([{"a": 1}], {"level": "polar"}, "level: 'polar' is not one of nominal, ordinal, interval, ratio"),
        ([{"a": "x"}], {"level": "interval"}, "codes: 'x' is no number; the level interval needs numbers"),
        ([{"a": float("nan")}], {}, "codes: nan is no finite number; leave out what is missing"),
        ([{"a": 1}, {"a": "x"}], {}, "codes: some are texts and some are numbers"),
        ([{"a": "x"}], {"order": ["y"]}, "codes: x is not in the order of the values"),
    ],
)
def test_what_cannot_be_codes_is_refused(coders: Any, options: Any, message: str) -> None:
    with pytest.raises(PredictorError, match=message):
        alpha(coders, **options)
