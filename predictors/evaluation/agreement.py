"""How far two people agree who put the same texts into classes. scikit-learn comes with the first figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from predictors.errors import PredictorError


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
    same = np.array([one == other for one, other in cells], dtype=bool)
    agree = float(count[same].sum() / count.sum())
    if len({*ones, *others}) < 2:
        return CoderAgreement(n=len(first), agree=agree, kappa=None, interval=None)

    def kappa_of(weight: np.ndarray) -> float:
        there = weight > 0
        codes = [(ones[place], others[place]) for place in np.flatnonzero(there).tolist()]
        if len({code for pair in codes for code in pair}) < 2:
            return float("nan")
        left, right = zip(*codes, strict=True)
        return float(cohen_kappa_score(left, right, sample_weight=weight[there]))

    drawn = rng.multinomial(count.sum(), count / count.sum(), size=samples)
    kappas = np.array([kappa_of(weight) for weight in drawn])
    known = kappas[np.isfinite(kappas)]
    tail = (1 - level) / 2
    ends = np.quantile(known, [tail, 1 - tail]).tolist() if len(known) >= samples / 2 else None
    if ends is not None and ends[0] == ends[1]:
        ends = None
    return CoderAgreement(n=len(first), agree=agree, kappa=kappa_of(count), interval=ends)
