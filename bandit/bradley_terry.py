"""Bradley and Terry's model with the side and other differences, by Newton's method. Numpy alone.

logit P(the first is better) = theta_first - theta_second + columns @ beta. The strengths are those of Bradley and
Terry, "Rank analysis of incomplete block designs", Biometrika 39, 1952; a column of sides is that of Davidson and
Beaver, "On extending the Bradley-Terry model to incorporate within-pair order effects", Biometrics 33, 1977.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_STEPS = 100
CONVERGED = 1e-10
LARGEST = 40.0  # a difference of log-odds above which two names are not distinguished


@dataclass(frozen=True, eq=False)
class BradleyTerry:
    """theta: (k,) log-odds strengths, centred. side: log-odds that the first shown gains by being first; 0 without."""

    theta: Floats
    side: float


@dataclass(frozen=True, eq=False)
class Duels:
    """n judgements, or sets of judgements that are alike, of k names. They are not checked; `Duels.of` does that.

    first, second: (n,) the two names, from 0. mass: (n,) the weight of each row, 0 or more. wins: (n,) of this weight
    the part where the first was better. columns: (n, s) further differences between the first and the second. names: k.
    precision: (k + s,) that of the normal prior around 0 of each strength, then of each column's coefficient.
    """

    first: Ints
    second: Ints
    mass: Floats
    wins: Floats
    columns: Floats
    names: int
    precision: Floats

    @classmethod
    def of(
        cls,
        *,
        first: ArrayLike,
        second: ArrayLike,
        outcome: ArrayLike,
        names: int,
        weight: ArrayLike | None = None,
        ridge: float = 0.1,
        side: bool = True,
    ) -> Duels:
        """A row for each judgement. Arguments and errors as in `fit_bradley_terry`."""
        firsts, two, y = np.asarray(first), np.asarray(second), np.asarray(outcome, dtype=np.float64)
        w = np.ones(y.size) if weight is None else np.asarray(weight, dtype=np.float64)
        if not firsts.shape == two.shape == y.shape == w.shape or y.ndim != 1 or not y.size:
            raise DesignError(
                f"first, second, outcome, weight: shapes {firsts.shape}, {two.shape}, {y.shape} and {w.shape}; "
                "give one of each for each judgement"
            )
        for name, places in (("first", firsts), ("second", two)):
            if not np.issubdtype(places.dtype, np.integer) or not ((places >= 0) & (places < names)).all():
                raise DesignError(f"{name}: must be whole numbers from 0 to {names - 1}")
        if (firsts == two).any():
            raise DesignError(f"second: row {int(np.flatnonzero(firsts == two)[0])} compares a name with itself")
        if not ((y >= 0) & (y <= 1)).all():
            raise DesignError("outcome: must lie between 0 and 1")
        if not (np.isfinite(w) & (w >= 0)).all() or not w.any():
            raise DesignError("weight: must be at least 0 everywhere, and above 0 somewhere")
        if not ridge >= 0:
            raise DesignError(f"ridge: {ridge!r} is below 0")
        w = w / w[w > 0].mean()
        columns = np.ones((y.size, int(side)))
        precision = np.r_[np.full(names, float(ridge)), np.zeros(int(side))]
        duels = cls(firsts.astype(np.int64), two.astype(np.int64), w, w * y, columns, names, precision)
        apart = np.setdiff1d(np.arange(names), duels.connected(0))
        if apart.size:
            raise DesignError(
                f"first, second: no judgements connect the names {', '.join(map(str, apart[:5]))} with name 0"
            )
        return duels

    def connected(self, start: int) -> Ints:
        """The names that judgements with weight connect with one of them, also through others; it is one of these."""
        linked = np.zeros((self.names, self.names), dtype=bool)
        used = self.mass > 0
        linked[self.first[used], self.second[used]] = linked[self.second[used], self.first[used]] = True
        reached = np.arange(self.names) == start
        while (grown := reached | linked[reached].any(axis=0)).sum() > reached.sum():
            reached = grown
        return np.flatnonzero(reached)

    def fit(self, start: Floats | None = None) -> Floats:
        """(k + s,) the strengths and then the columns' coefficients with the highest posterior density. Strengths that
        have no prior have a mean of 0; what no judgement says anything of is 0.

        Raises:
            DesignError: there is no finite fit. LinAlgError: or the judgements do not tell two coefficients apart.
        """
        at = np.zeros(self.precision.size) if start is None else start.copy()
        for _step in range(MAX_STEPS):
            chance = self.chances(at)
            step = np.linalg.solve(self.curvature(chance), self._slope(at, chance))
            at = at + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
            if np.abs(at).max() > LARGEST:
                raise DesignError("ridge: without one some strengths are infinite; give a ridge above 0")
            if np.abs(step).max() < CONVERGED:
                return at
        raise DesignError("outcome: the fit does not end; give a ridge above 0")

    def chances(self, at: Floats) -> Floats:
        """(n,) that the first is judged better."""
        logit = at[self.first] - at[self.second] + self.columns @ at[self.names :]
        return np.asarray(1 / (1 + np.exp(-np.clip(logit, -LARGEST, LARGEST))))

    def inverse(self, at: Floats) -> Floats:
        """(k + s, k + s) the inverse of the curvature there: with a prior for each, the covariance of its posterior."""
        return np.asarray(np.linalg.inv(self.curvature(self.chances(at))))

    def influence(self, at: Floats) -> Floats:
        """(n, k + s) what each row adds to the error of the fit, to first order."""
        inverse, k = self.inverse(at), self.names
        rest = self.wins - self.mass * self.chances(at)
        return rest[:, None] * (inverse[self.first] - inverse[self.second] + self.columns @ inverse[k:])

    def curvature(self, chance: Floats) -> Floats:
        """(k + s, k + s) minus the second derivatives of the log posterior density."""
        k, v = self.names, self.mass * chance * (1 - chance)
        pairs = np.bincount(self.first * k + self.second, weights=v, minlength=k * k).reshape(k, k)
        both, weighted = pairs + pairs.T, v[:, None] * self.columns
        matrix = np.diag(self.precision + self._unknown)
        matrix[:k, :k] += np.diag(both.sum(axis=1)) - both
        if not self.precision[:k].any():  # The judgements fix only differences; this fixes their mean at 0.
            matrix[:k, :k] += v.sum() / k**2
        across = np.stack([self._by_name(column) for column in weighted.T], axis=1) if weighted.shape[1] else 0
        matrix[:k, k:], matrix[k:, :k] = across, np.transpose(across)
        matrix[k:, k:] += weighted.T @ self.columns
        return matrix

    def _slope(self, at: Floats, chance: Floats) -> Floats:
        rest = self.wins - self.mass * chance
        return np.r_[self._by_name(rest), self.columns.T @ rest] - self.precision * at

    def _by_name(self, values: Floats) -> Floats:
        """(k,) the sum of the values (n,) of the rows where a name is first, less that where it is second."""
        first, second = (
            np.bincount(place, weights=values, minlength=self.names) for place in (self.first, self.second)
        )
        return np.asarray(first - second, dtype=np.float64)

    @cached_property
    def _unknown(self) -> Floats:
        """1 for each coefficient of which no row says anything, else 0; so that the curvature has an inverse."""
        used = np.bincount(np.r_[self.first, self.second], weights=np.r_[self.mass, self.mass], minlength=self.names)
        return np.r_[used == 0, ~(self.columns != 0).any(axis=0)] * (self.precision == 0).astype(np.float64)


def fit_bradley_terry(
    *,
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    names: int,
    weight: ArrayLike | None = None,
    ridge: float = 0.1,
    side: bool = True,
) -> BradleyTerry:
    """Strengths by weighted logistic regression: logit P(first is better) = theta_first - theta_second + side.

    Args:
        first, second: (n,) who was shown first and second, from 0.
        outcome: (n,) 1 where the first was better, 0 where the second was, 0.5 for a tie.
        names: how many are ranked, k.
        weight: (n,) of 0 or more; scaled to mean 1 over the rows with weight.
        ridge: (ridge / 2) sum of theta^2 is taken off the log-likelihood, so that an unbeaten name stays finite.

    Raises:
        DesignError: shapes or values do not fit, names that no row connects, or no finite fit without a ridge.
    """
    duels = Duels.of(first=first, second=second, outcome=outcome, names=names, weight=weight, ridge=ridge, side=side)
    at = duels.fit()
    return BradleyTerry(at[:names] - at[:names].mean(), float(at[-1]) if side else 0.0)
