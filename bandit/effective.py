"""How many answers, people or items of equal weight would say as much as these."""

import numpy as np
from numpy.typing import ArrayLike

from bandit.errors import DesignError


def effective_size(weight: ArrayLike) -> float:
    """Kish's effective size: (sum of weights)^2 / sum of squared weights (Kish 1965, Survey Sampling, section 11.7).

    Args:
        weight: of 0 or more, shape (n,), in any unit: the size does not change when all weights are multiplied.

    Returns:
        A number from 1, where one weight is all there is, to n, where all weigh the same; 0 without any weight above 0.

    Raises:
        DesignError: weights are not one row of finite numbers of 0 or more.
    """
    w = np.asarray(weight, dtype=np.float64)
    if w.ndim == 1:
        with np.errstate(over="ignore"):
            squares = float(np.dot(w, w))
        if w.min(initial=0.0) >= 0 and 1e-200 < squares < 1e200:
            return float(w.sum() ** 2 / squares)
        if (np.isfinite(w) & (w >= 0)).all():
            # No square may be too large or too small for a float.
            largest = w.max(initial=0.0)
            return effective_size(w / largest) if largest > 0 else 0.0
    raise DesignError("weight: needs one row of finite numbers of 0 or more")
