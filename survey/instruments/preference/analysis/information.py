"""What one more comparison is expected to tell of the models' strengths. Numpy alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def information(theta: Floats, covariance: Floats, a: NDArray[np.int64], b: NDArray[np.int64]) -> Floats:
    """1/2 ln(1 + p (1 - p) x'Cx) of each comparison (n,), in nats.

    Args:
        theta: (m,) strengths. covariance: (m, m) of them. a, b: (n,) models.
    """
    chance = 1 / (1 + np.exp(theta[b] - theta[a]))
    spread = covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]
    gain: Floats = 0.5 * np.log1p(chance * (1 - chance) * np.maximum(spread, 0.0))
    return gain
