"""Models ranked by people's judgements, with the side and with style. Numpy and `bandit` alone.

logit P(A is better) = theta_A - theta_B + gamma side + beta style, fitted by `bandit.Duels`. The side is 1 where A was
shown first, -1 where B was, and 0 where that is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import bandit
from predictors.errors import PredictorError
from survey.figures import Figure

from .errors import figure, freedom
from .judgements import Judgements

Floats = NDArray[np.float64]

RIDGE = 0.1
EQUAL = 1e-6  # logits: strengths nearer than this are equal, for the fit says no more
LARGEST = 25.0  # logits of a side or a style, beyond which it has no finite size
NOT_TOLD = "which reply stood first went with the models, so that nothing tells the side bias from their strengths"
DECIDES = "the same side won in all judgements or nearly all, so that the side bias has no finite size"


class NoRanking(PredictorError):
    """The judgements do not rank the models."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """A fit to n judgements of m models.

    theta: (m,) strengths in logits with mean 0; NaN for a model that was not judged. gamma: what it adds to be shown
    first; None where no side is known. style: coefficients (s,). covariance: of theta, gamma and style, (k, k),
    clustered by people and prompts. inverse: that of the information with the ridge (k, k), for priorities. degrees:
    of freedom. n: judgements. sides: those of which the side is known. unbeaten: models that never lost, or never won,
    whose strength is finite by the ridge alone. side_lost: why the side does not count although it is known; empty
    where it counts, or nobody knows it.
    """

    models: tuple[str, ...]
    theta: Floats
    gamma: float | None
    style: Floats
    covariance: Floats
    inverse: Floats
    degrees: float
    n: int
    sides: int
    unbeaten: tuple[str, ...]
    side_lost: str = ""

    def of(self, model: int) -> Figure:
        """The strength of a model with its interval."""
        return figure(float(self.theta[model]), float(self.covariance[model, model]), self.degrees)

    def difference(self, first: int, other: int) -> Figure:
        """Of two models' strengths."""
        cov = self.covariance
        variance = cov[first, first] + cov[other, other] - 2 * cov[first, other]
        return figure(float(self.theta[first] - self.theta[other]), float(variance), self.degrees)

    @property
    def side(self) -> Figure:
        """The side bias with its interval."""
        if self.gamma is None:
            return Figure()
        place = len(self.models)
        return figure(self.gamma, float(self.covariance[place, place]), self.degrees)

    def styled(self, place: int) -> Figure:
        """A coefficient of style with its interval."""
        row = len(self.models) + (self.gamma is not None) + place
        return figure(float(self.style[place]), float(self.covariance[row, row]), self.degrees)

    @property
    def order(self) -> list[int]:
        """Places of the judged models, the strongest first."""
        return sorted(
            np.flatnonzero(np.isfinite(self.theta)).tolist(), key=lambda model: (-self._rounded[model], model)
        )

    @property
    def places(self) -> dict[int, int]:
        """The place of each judged model, from 1; equally strong ones share theirs."""
        places: dict[int, int] = {}
        for place, model in enumerate(self.order, start=1):
            stronger = self.order[place - 2] if place > 1 else None
            equal = stronger is not None and self._rounded[stronger] == self._rounded[model]
            places[model] = places[stronger] if equal and stronger is not None else place
        return places

    @property
    def first(self) -> list[int]:
        """The model at the first place, or those that share it."""
        return [model for model, place in self.places.items() if place == 1]

    @property
    def _rounded(self) -> Floats:
        return np.round(self.theta / EQUAL)

    def chances(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> Floats:
        """That A is better, where neither side has an advantage."""
        chances: Floats = 1 / (1 + np.exp(self.theta[b] - self.theta[a]))
        return chances


def fit(judged: Judgements, *, ridge: float = RIDGE, side: bool = True, style: Floats | None = None) -> Ranking:
    """The strengths of the models that were judged.

    Args:
        ridge: lambda of the penalty lambda / 2 sum theta^2, next to weights of mean 1; 0 for none.
        side: whether being first may count, where some sides are known.
        style: (n, s) further differences between A and B, such as log length; their coefficients are not penalised.

    Raises:
        NoRanking: there is no judgement, the models fall into parts that were never compared, or, without a ridge, one
            never won or never lost against the others.
    """
    judged_ones = np.unique(np.concatenate([judged.a, judged.b]))
    if not judged.n:
        raise NoRanking("no judgement is left to rank models by")
    _check_connected(judged, judged_ones)
    extreme = _extreme(judged, judged_ones)
    if ridge <= 0 and extreme:
        names = ", ".join(judged.models[model] for model in extreme)
        raise NoRanking(f"{names}: never lost or never won against the others, so that there is no finite strength; "
                        "give a ridge above 0")  # fmt: skip
    sided = side and bool(judged.first.any())
    lost = NOT_TOLD if sided and _goes_with_the_models(judged) else ""
    if sided and not lost:
        try:
            return _fitted(judged, judged_ones, extreme, ridge=ridge, sided=True, style=style)
        except (NoRanking, np.linalg.LinAlgError):
            lost = DECIDES
    try:
        ranking = _fitted(judged, judged_ones, extreme, ridge=ridge, sided=False, style=style)
    except np.linalg.LinAlgError as exc:
        raise NoRanking("the strengths do not settle: give a larger ridge") from exc
    return replace(ranking, side_lost=lost)


def _duels(judged: Judgements, columns: Floats, precision: Floats) -> bandit.Duels:
    return bandit.Duels(
        first=judged.a,
        second=judged.b,
        mass=judged.weight,
        wins=judged.weight * judged.win,
        columns=columns,
        names=len(judged.models),
        precision=precision,
    )


def _goes_with_the_models(judged: Judgements) -> bool:
    """Whether the side follows from the models, so that nothing tells its effect from their strengths."""
    names = np.eye(len(judged.models))
    design, first = names[judged.a] - names[judged.b], judged.first.astype(np.float64)
    weights = np.linalg.pinv(design.T @ design) @ (design.T @ first)
    rest = first - design @ weights
    return bool(rest @ rest < 1e-9 * (first @ first))


def _fitted(
    judged: Judgements,
    judged_ones: NDArray[np.int64],
    extreme: list[int],
    *,
    ridge: float,
    sided: bool,
    style: Floats | None,
) -> Ranking:
    """
    Raises:
        NoRanking, LinAlgError: there are no finite figures.
    """
    m = len(judged.models)
    parts = [judged.first[:, None].astype(np.float64)] if sided else []
    columns = np.hstack([np.zeros((judged.n, 0)), *parts, *([] if style is None else [style])])
    duels = _duels(judged, columns, np.r_[np.full(m, ridge), np.zeros(columns.shape[1])])
    try:
        beta = duels.fit()
    except bandit.DesignError as exc:
        raise NoRanking(
            "the strengths do not settle: give a larger ridge, or leave out a side or style that decides all judgements"
        ) from exc
    if np.abs(beta[m:]).max(initial=0.0) > LARGEST:  # It grows without end, and has only stopped by rounding.
        raise NoRanking("a side or a style decides all judgements: leave it out")
    theta = beta[:m] - beta[judged_ones].mean()
    theta[np.setdiff1d(np.arange(m), judged_ones)] = np.nan
    return Ranking(
        models=judged.models,
        theta=theta,
        gamma=float(beta[m]) if sided else None,
        style=beta[m + sided :],
        covariance=bandit.clustered_covariance(duels.influence(beta), judged.person, judged.prompt),
        inverse=duels.inverse(beta),
        degrees=freedom(person=judged.person, prompt=judged.prompt),
        n=judged.n,
        sides=int(np.count_nonzero(judged.first)),
        unbeaten=tuple(judged.models[model] for model in extreme),
    )


def _check_connected(judged: Judgements, there: NDArray[np.int64]) -> None:
    linked = np.zeros((len(judged.models),) * 2, dtype=bool)
    linked[judged.a, judged.b] = linked[judged.b, judged.a] = True
    reached = _reached(linked, int(there[0])) if len(there) else set()
    if lost := [judged.models[model] for model in there if model not in reached]:
        raise NoRanking(
            f"{', '.join(lost)}: never compared with {judged.models[there[0]]}, not even through others; models that "
            "are not connected cannot be ranked together"
        )


def _extreme(judged: Judgements, there: NDArray[np.int64]) -> list[int]:
    """Models outside the largest group in which each won against each, at least through others (Ford's condition)."""
    beats = np.zeros((len(judged.models),) * 2, dtype=bool)
    beats[judged.a[judged.win > 0], judged.b[judged.win > 0]] = True
    beats[judged.b[judged.win < 1], judged.a[judged.win < 1]] = True
    groups = [_reached(beats, model) & _reached(beats.T, model) for model in there.tolist()]
    largest = max(groups, key=len, default=set())
    return [model for model in there.tolist() if model not in largest]


def _reached(linked: NDArray[np.bool_], start: int) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        for other in np.flatnonzero(linked[waiting.pop()]).tolist():
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def posterior(judged: Judgements, *, ridge: float = RIDGE) -> tuple[Floats, Floats]:
    """Strengths (m,) and their covariance (m, m) under the ridge as a prior, for all models, judged or not and
    connected or not: those of which nothing is known have strength 0 and the prior's variance, 1 / ridge."""
    m = len(judged.models)
    duels = _duels(judged, judged.first[:, None].astype(np.float64), np.full(m + 1, ridge))
    beta = duels.fit()
    return beta[:m], duels.inverse(beta)[:m, :m]
