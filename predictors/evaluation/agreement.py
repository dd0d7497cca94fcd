"""How far people agree who put the same things into classes or give them numbers. numpy alone; scikit-learn comes with
the first kappa.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

import numpy as np

from predictors.errors import PredictorError
from predictors.evaluation.intervals import percentile_interval


class CoderAgreement(TypedDict):
    """`n` texts that both coded, the share on which they agree, and Cohen's kappa with its interval over texts. `kappa`
    is None where both used one code alone, `interval` where it cannot be estimated."""

    n: int
    agree: float
    kappa: float | None
    interval: list[float] | None


def agreement(
    first: Sequence[str],
    second: Sequence[str],
    *,
    rng: np.random.Generator,
    samples: int = 2000,
    level: float = 0.95,
) -> CoderAgreement:
    """Cohen's kappa (1960) of n texts, and the percentiles of its bootstrap over texts.

    Args:
        first, second: (n,) the code of each text by either coder.

    Raises:
        PredictorError: lengths differ, or there is no text.
    """
    from sklearn.metrics import cohen_kappa_score

    if len(first) != len(second) or not len(first):
        raise PredictorError(f"codes: {len(first)} and {len(second)} codes; give each text a code by both coders.")
    cells = Counter(zip(first, second, strict=True))
    ones, others = zip(*cells, strict=True)
    count = np.array(list(cells.values()), dtype=np.int64)
    same = np.array([first_code == other for first_code, other in cells], dtype=bool)
    agree = float(count[same].sum() / count.sum())
    if len({*ones, *others}) < 2:
        return CoderAgreement(n=len(first), agree=agree, kappa=None, interval=None)

    kappa = float(cohen_kappa_score(ones, others, sample_weight=count))
    codes = sorted({*ones, *others})
    by_first = np.array([[first_code == code for code in codes] for first_code in ones], dtype=np.float64)
    by_second = np.array([[other == code for code in codes] for other in others], dtype=np.float64)
    drawn = rng.multinomial(count.sum(), count / count.sum(), size=samples)
    # All resamples at once; where all codes of one are the same, it has no kappa.
    agreed = drawn[:, same].sum(axis=1) / count.sum()
    by_chance = ((drawn @ by_first) * (drawn @ by_second)).sum(axis=1) / count.sum() ** 2
    varied = by_chance < 1
    kappas = np.full(samples, np.nan)
    kappas[varied] = (agreed - by_chance)[varied] / (1 - by_chance)[varied]
    return CoderAgreement(n=len(first), agree=agree, kappa=kappa, interval=_ends(kappas, level))


def _ends(values: np.ndarray, level: float) -> list[float] | None:
    """The percentile interval; None also where all resamples are alike."""
    ends = percentile_interval(np.where(np.isfinite(values), values, np.nan), level)
    return None if ends is None or ends[0] == ends[1] else list(ends)


Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")
NUMBERS: tuple[Level, ...] = ("interval", "ratio")  # levels of values that are numbers
CELLS = 2_000_000  # of one block of resamples


class Alpha(TypedDict):
    """Krippendorff's alpha of `units` things that at least two coders coded, with `codes` codes in all. `alpha` is None
    where fewer than two different values were given, `interval` where it cannot be estimated."""

    units: int
    codes: int
    alpha: float | None
    interval: list[float] | None


def krippendorff_alpha(
    coders: Sequence[Mapping[str, str | float]],
    *,
    level: Level = "nominal",
    order: Sequence[str | float] | None = None,
    rng: np.random.Generator,
    samples: int = 2000,
    confidence: float = 0.95,
) -> Alpha:
    """Alpha of two or more coders, each with the value of every unit that they coded; what is not there is missing.

    Units with one value say nothing of agreement and are left out. Sources: Krippendorff, "Computing Krippendorff's
    Alpha-Reliability" (2011). The interval is the percentiles of resampled units. With three simulated coders and a
    fifth of their codes missing, it held the true alpha in 92 to 93 % of samples of 15 units and 93 to 95 % of 150.

    Args:
        coders: for each coder the value by unit. Units are joined by their key.
        level: nominal values are the same or not; ordinal ones differ by the ranks between them; interval ones by
            their numbers, and ratio ones by their difference over their sum (from 0 up).
        order: all values from lowest to highest; by default as `sorted` has them. Only ordinal needs it, for texts.

    Raises:
        PredictorError: an unknown level, a value outside `order`, a value that is no finite number, texts at the levels
            interval and ratio, or a number below 0 at the level ratio.
    """
    values = _values_in_order(coders, level, order)
    place = {value: column for column, value in enumerate(values)}
    units = {unit: row for row, unit in enumerate(dict.fromkeys(unit for coder in coders for unit in coder))}
    counts = np.zeros((len(units), len(values)))
    for coder in coders:
        for unit, value in coder.items():
            counts[units[unit], place[value]] += 1
    counts = counts[counts.sum(axis=1) >= 2]
    scale = np.array([float(value) for value in values]) if level in NUMBERS else None

    def of(weights: np.ndarray) -> np.ndarray:
        return alphas(counts, weights, level=level, scale=scale)

    alpha = Alpha(units=len(counts), codes=int(counts.sum()), alpha=None, interval=None)
    if (counts.sum(axis=0) > 0).sum() < 2:
        return alpha
    alpha["alpha"] = float(of(np.ones((1, len(counts))))[0])
    share, block = np.full(len(counts), 1 / len(counts)), max(1, CELLS // max(counts.shape))
    sizes = [min(block, samples - start) for start in range(0, samples, block)]
    drawn = np.concatenate([of(rng.multinomial(len(counts), share, size=size)) for size in sizes])
    alpha["interval"] = _ends(drawn, confidence)
    return alpha


def alphas(counts: np.ndarray, weights: np.ndarray, *, level: Level, scale: np.ndarray | None = None) -> np.ndarray:
    """Krippendorff's alpha of the same units under several weights, as for resamples of units, people or prompts.

    With R the values' positions (their mid-ranks at the level ordinal, their numbers at interval), the disagreement
    inside a unit of m codes is the sum of squared differences of R over its ordered pairs, divided by m - 1. The
    formula by coincidences is the same sum in another order.

    Args:
        counts: (units, values) how many coders gave a unit each value; columns from lowest to highest; every unit
            has at least two codes.
        weights: (samples, units) how often each unit is in each sample.
        scale: (values,) the values as numbers, for interval and ratio alone.

    Returns:
        (samples,) NaN where a sample holds fewer than two different values.

    Raises:
        PredictorError: the level is interval or ratio and there is no scale, or the other way round.
    """
    if (level in NUMBERS) != (scale is not None):
        raise PredictorError("scale: the levels interval and ratio need the values as numbers, and no other one does.")
    codes = counts.sum(axis=1)
    totals = weights @ counts
    total = totals.sum(axis=1)
    if level == "nominal":
        observed = weights @ ((codes**2 - (counts**2).sum(axis=1)) / (codes - 1))
        expected = total**2 - (totals**2).sum(axis=1)
    elif level == "ratio" and scale is not None:  # No position says how far apart two values are.
        sums = scale[:, None] + scale
        apart = np.divide(scale[:, None] - scale, sums, out=np.zeros(sums.shape), where=sums > 0) ** 2
        observed = weights @ (((counts @ apart) * counts).sum(axis=1) / (codes - 1))
        expected = ((totals @ apart) * totals).sum(axis=1)
    else:
        position = totals.cumsum(axis=1) - totals / 2 if scale is None else np.broadcast_to(scale, totals.shape)
        # Differences do not change with the origin, and small numbers keep their digits.
        position = position - (totals * position).sum(axis=1, keepdims=True) / total[:, None]
        squares = ((weights * (codes / (codes - 1))) @ counts * position**2).sum(axis=1)
        observed = 2 * (squares - (weights / (codes - 1) * (position @ counts.T) ** 2).sum(axis=1))
        expected = 2 * total * (totals * position**2).sum(axis=1)
    several = (totals > 0).sum(axis=1) >= 2
    result = np.full(len(weights), np.nan)
    result[several] = 1 - (total[several] - 1) * observed[several] / expected[several]
    return result


def _values_in_order(
    coders: Sequence[Mapping[str, str | float]], level: Level, order: Sequence[str | float] | None
) -> list[str | float]:
    if level not in LEVELS:
        raise PredictorError(f"level: {level!r} is not one of {', '.join(LEVELS)}.")
    values = {value for coder in coders for value in coder.values()}
    texts = {value for value in values if isinstance(value, str)}
    if level in NUMBERS and texts:
        raise PredictorError(f"codes: {min(texts)!r} is no number; the level {level} needs numbers.")
    if odd := [value for value in values - texts if not np.isfinite(float(value))]:
        raise PredictorError(f"codes: {odd[0]!r} is no finite number; leave out what is missing.")
    if level == "ratio" and (below := [value for value in values - texts if float(value) < 0]):
        raise PredictorError(f"codes: {below[0]!r} is below 0; the level ratio needs numbers of 0 or more.")
    if order is None:
        if texts and texts != values:
            raise PredictorError("codes: some are texts and some are numbers; give all of one kind.")
        return sorted(values)
    if unknown := values - set(order):
        raise PredictorError(f"codes: {sorted(map(str, unknown))[0]} is not in the order of the values; add it there.")
    return list(order)
