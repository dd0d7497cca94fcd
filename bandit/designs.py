"""How a stage's slots are shared out over its candidates. Numpy alone: scores come in as an array.

Every design knows the exact chance with which each candidate comes into the plan. Epsilon-greedy over a finite
candidate set is stratified sampling with two strata, so its chances are n_h / N_h; softmax and proportional give every
candidate its own chance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError
from bandit.unequal import power_shares, softmax_shares

if TYPE_CHECKING:
    from bandit.robust import Evidence


@dataclass(frozen=True, eq=False)
class Strata:
    """A cut of M candidates: stratum names, the stratum of each candidate (int8, shape (M,)), the strata's sizes."""

    names: tuple[str, ...]
    label: NDArray[np.int8]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Ends:
    """Where a design cuts `size` candidates in the order of their scores: so many highest, so many lowest.

    `names` are the strata's names: the highest, the lowest and what lies between, as far as the design has them.
    """

    names: tuple[str, ...]
    highest: int
    lowest: int
    size: int

    @property
    def sizes(self) -> tuple[int, ...]:
        counts = (self.highest, self.lowest, self.size - self.highest - self.lowest)
        return tuple(count for count in counts if count > 0)


class Design(ABC):
    """What `draw` asks of a design. A design is a frozen data class and draws nothing itself but ties at a cut.

    It has one stratum, `all`, unless it says otherwise.
    """

    # Whether the candidates of a stratum have different chances.
    is_unequal: ClassVar[bool] = False
    # Whether it draws by what a predictor says: chances from 0 to 1, or disagreement. The others take any number.
    needs_chances: ClassVar[bool] = False
    # Whether it needs the number of every candidate at once, so that it cannot draw from pairs that are not listed.
    needs_list: ClassVar[bool] = False
    # Whether answers of earlier stages decide its chances, next to the scores: `learn` comes before the draw.
    learns: ClassVar[bool] = False

    @property
    def estimated(self) -> tuple[str, ...]:
        """The names of the figures that it is drawn for; empty where that is not its concern, or for the first one."""
        return ()

    def learn(self, evidence: Evidence | None, scores: ArrayLike | None = None) -> Design:
        """The design with what answers of earlier stages say, of which there may be none; `scores` of the candidates.
        A design that does not learn stays as it is."""
        return self

    def facts(self) -> Mapping[str, Any] | None:
        """What a design that has learnt must keep to draw again, as plain values; None where it has not."""
        return None

    def with_facts(self, facts: Mapping[str, Any]) -> Design:
        """The design as it was when it gave these `facts`."""
        return self

    @property
    def learned_in_words(self) -> str:
        """What it has learnt, as a clause; empty where it has not."""
        return ""

    @property
    def needs_disagreement(self) -> bool:
        """Whether it ranks the candidates by how much the members of an ensemble disagree about them."""
        return False

    @property
    def replicates(self) -> int:
        """How many slots each drawn candidate gets."""
        return 1

    def strata(
        self,
        scores: ArrayLike | None,
        rng: np.random.Generator,
        *,
        n_candidates: int | None = None,
        disagreement: ArrayLike | None = None,
    ) -> Strata:
        """The cut of the candidates, ties at a cut broken at random.

        `scores` and `disagreement`: one number a candidate, shape (M,), or None for a design that needs none;
        `n_candidates`: M, for a design without any.
        """
        ranked = self.ranked_by(scores, disagreement)
        size = n_candidates if ranked is None else ranked.size
        if size is None or size < 1:
            raise DesignError(f"n_candidates: a draw needs at least 1 candidate, not {size}")
        return _cut(ranked, self.ends(size), rng)

    @abstractmethod
    def ranked_by(self, scores: ArrayLike | None, disagreement: ArrayLike | None) -> NDArray[np.float64] | None:
        """The numbers by which the candidates are put in order before they are cut, float64 of shape (M,), checked."""

    def ends(self, size: int) -> Ends:
        """Where `size` candidates are cut.

        Raises:
            DesignError: they are too few for the cut.
        """
        return Ends(names=("all",), highest=0, lowest=0, size=size)

    def allocate(self, n: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """How many candidates each stratum gives for `n` slots. Raises DesignError if they do not fit."""
        return fitting((n,), names=("all",), sizes=sizes)

    def inclusion_probabilities(
        self, *, scores: ArrayLike | None, strata: Strata, allocation: Sequence[int]
    ) -> NDArray[np.float64]:
        """The exact chance of each candidate, given the cut, shape (M,): n_h / N_h. They sum to the allocation's."""
        rate = np.array([n / size for n, size in zip(allocation, strata.sizes, strict=True)])
        return rate[strata.label]


@dataclass(frozen=True)
class Uniform(Design):
    """Every candidate has the same chance: one stratum, `all`."""

    def ranked_by(self, scores: ArrayLike | None, disagreement: ArrayLike | None) -> NDArray[np.float64] | None:
        """The scores, which decide nothing, if there are any."""
        return None if scores is None else checked_scores(scores)


MAX_STRATA = 20


class _Greedy(Design):
    """The stratum `best` gets a share 1 - epsilon of the slots, `rest` the others. Its data classes have the fields."""

    best: ClassVar[str]
    epsilon: float
    top_fraction: float
    floor: float

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise DesignError(f"epsilon: must lie in 0..1, not {self.epsilon}")
        if not 0 < self.top_fraction < 1:
            raise DesignError(f"top_fraction: must lie above 0 and below 1, not {self.top_fraction}")
        if not 0 <= self.floor < 1:
            raise DesignError(
                f"floor: must be at least 0 and below 1 of the uniform chance, not {self.floor}; or use Uniform"
            )

    def ends(self, size: int) -> Ends:
        """The ceil(top_fraction * M) highest are best.

        Raises:
            DesignError: the top fraction leaves no candidate in rest.
        """
        n_top = _ceiling(self.top_fraction, size)
        if n_top >= size:
            raise DesignError(
                f"top_fraction: {self.top_fraction} of {size} candidates leaves none in rest; add candidates"
            )
        return Ends(names=(self.best, "rest"), highest=n_top, lowest=0, size=size)

    def allocate(self, n: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """round((1 - epsilon) * n) slots to best (a half rounds to even), the others to rest; refused if too many."""
        return self._in_two(n, sizes)

    def _in_two(self, n: int, sizes: Sequence[int]) -> tuple[int, ...]:
        n_top = int(((1 - _decimal(self.epsilon)) * int(n)).to_integral_value(ROUND_HALF_EVEN))
        if self.floor and len(sizes) == 2:
            least = [_ceiling(self.floor, n * size, sum(sizes)) for size in sizes]
            if sum(least) > n:
                raise DesignError(
                    f"floor: {self.floor} needs {least[0]} slots in {self.best} and {least[1]} in rest, and there are "
                    f"{n}; lower it or plan more slots"
                )
            n_top = min(max(n_top, least[0]), n - least[1])
        return fitting((n_top, n - n_top), names=(self.best, "rest"), sizes=sizes)


@dataclass(frozen=True)
class EpsilonGreedy(_Greedy):
    """Stratified epsilon-greedy: `top`, the best `top_fraction` by score, gets a share 1 - epsilon of the slots.

    The paper's adaptive stages (section 3): most pairs from the top tenth of predicted change, the rest from elsewhere.
    `floor` holds every candidate's chance at or above floor * n / M, whatever epsilon says. With floor 0 and epsilon 0
    or 1 one stratum gets no slot, and no estimate for all candidates is possible from that stage.

    With `rest_strata` above 1 the rest is cut by score into so many strata of equal size (to one candidate), `rest 1`
    with the highest scores, and the slots of the rest are shared out evenly: what the scores know of the rest then
    makes no estimate uncertain.
    """

    best = "top"
    epsilon: float = 0.1
    top_fraction: float = 0.1
    floor: float = 0.0
    rest_strata: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.rest_strata <= MAX_STRATA:
            raise DesignError(f"rest_strata: must be from 1 to {MAX_STRATA}, not {self.rest_strata}")

    def ranked_by(self, scores: ArrayLike | None, disagreement: ArrayLike | None) -> NDArray[np.float64]:
        """The scores."""
        return _needed(scores, "epsilon-greedy needs a score for each candidate; or use Uniform")

    def strata(
        self,
        scores: ArrayLike | None,
        rng: np.random.Generator,
        *,
        n_candidates: int | None = None,
        disagreement: ArrayLike | None = None,
    ) -> Strata:
        """As for every design; the rest is cut once more if it is to have several strata."""
        cut = super().strata(scores, rng, n_candidates=n_candidates, disagreement=disagreement)
        if self.rest_strata == 1:
            return cut
        best, rest = cut.sizes
        if rest < self.rest_strata:
            raise DesignError(f"rest_strata: {rest} candidates are no {self.rest_strata} strata; add candidates")
        ranked = self.ranked_by(scores, disagreement)
        inside = np.flatnonzero(cut.label)
        parts = np.array_split(inside[np.lexsort((rng.random(rest), -ranked[inside]))], self.rest_strata)
        label = cut.label.copy()
        for number, part in enumerate(parts, start=1):
            label[part] = number
        return Strata(
            names=(self.best, *(f"rest {number}" for number in range(1, self.rest_strata + 1))),
            label=label,
            sizes=(best, *(part.size for part in parts)),
        )

    def allocate(self, n: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """As in two strata. The slots of the rest go to its strata alike, those that are left over to the first."""
        if self.rest_strata == 1:
            return self._in_two(n, sizes)
        best, rest = self._in_two(n, (sizes[0], sum(sizes[1:])))
        if rest < self.rest_strata:
            raise DesignError(
                f"rest_strata: {self.rest_strata} strata of the rest get {rest} of {n} slots, fewer than one each; "
                "lower it or raise epsilon"
            )
        even, over = divmod(rest, self.rest_strata)
        names = (self.best, *(f"rest {number}" for number in range(1, self.rest_strata + 1)))
        return fitting((best, *(even + (place < over) for place in range(self.rest_strata))), names=names, sizes=sizes)


@dataclass(frozen=True)
class Uncertainty(_Greedy):
    """Epsilon-greedy for what the predictor knows least about: `uncertain` gets a share 1 - epsilon of the slots.

    `by` "closeness" ranks by how near the score, a probability, is to 1/2. "disagreement" ranks by the second array of
    numbers, `disagreement`, for instance the standard deviation between an ensemble's members.
    """

    best = "uncertain"
    needs_chances = True
    needs_list = True
    epsilon: float = 0.1
    top_fraction: float = 0.1
    by: Literal["closeness", "disagreement"] = "closeness"
    floor: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by not in ("closeness", "disagreement"):
            raise DesignError(f'by: must be "closeness" or "disagreement", not {self.by!r}')

    @property
    def needs_disagreement(self) -> bool:
        return self.by == "disagreement"

    def ranked_by(self, scores: ArrayLike | None, disagreement: ArrayLike | None) -> NDArray[np.float64]:
        """How little is known of each candidate."""
        if self.needs_disagreement:
            if disagreement is None:
                raise DesignError('disagreement: by = "disagreement" needs one number a candidate; or use "closeness"')
            return checked_scores(disagreement, field="disagreement")
        score = _needed(scores, "the uncertainty design needs a score for each candidate; or use Uniform")
        if score.min() < 0 or score.max() > 1:
            raise DesignError(
                f"scores: closeness to 1/2 needs probabilities, not {score.min():g}..{score.max():g}; "
                'give probabilities or use by = "disagreement"'
            )
        return -np.abs(score - 0.5)


@dataclass(frozen=True)
class Softmax(Design):
    """Chances that grow with the score: proportional to exp(score / temperature), above a floor of floor * n / M.

    One stratum, `all`. The chance of candidate i is floor * n / M + c * exp(score_i / temperature), with the one c that
    makes the sum n. Chances that would exceed 1 are set to 1, and the rest is shared among the others in proportion.
    With floor 0 a low temperature gives some candidates no chance, and no estimate for all candidates is possible.
    """

    is_unequal = True
    needs_list = True
    temperature: float = 0.1
    floor: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise DesignError(f"temperature: must be a number above 0, in the units of the scores: {self.temperature}")
        if not 0 <= self.floor <= 1:
            raise DesignError(f"floor: must lie in 0..1 of the uniform chance, not {self.floor}")

    def ranked_by(self, scores: ArrayLike | None, disagreement: ArrayLike | None) -> NDArray[np.float64]:
        """The scores, which make the chances and not the strata."""
        return _needed(scores, "softmax needs a score for each candidate; or use Uniform")

    def inclusion_probabilities(
        self, *, scores: ArrayLike | None, strata: Strata, allocation: Sequence[int]
    ) -> NDArray[np.float64]:
        """The chance of each candidate, shape (M,): whole multiples of 2^-40 that sum to n exactly."""
        score = self.ranked_by(scores, None)
        return softmax_shares(score, temperature=self.temperature, n=sum(allocation), floor=self.floor)


MIN_TRADE_OFF = 0.02


@dataclass(frozen=True)
class Proportional(Design):
    """Chances in proportion to a power of the score, a predicted chance, mixed with uniform ones.

    One stratum, `all`. The chance of candidate i is trade_off * n / M + c * score_i^power, with the one c that makes
    the sum n. Chances that would exceed 1 are set to 1, and the rest is shared among the others in proportion. The size
    is fixed: the draw is systematic, through the candidates in random order.

    `trade_off` is the share of the slots that are given out evenly: near 0 the design finds most changes, at 1 it is
    uniform and estimates the mean over all candidates best. No candidate's weight is above 1 / trade_off times that of
    a uniform draw, so that an estimate over all candidates is always possible.
    """

    is_unequal = True
    needs_chances = True
    needs_list = True
    trade_off: float = 0.2
    power: float = 16.0

    def __post_init__(self) -> None:
        if not MIN_TRADE_OFF <= self.trade_off <= 1:
            raise DesignError(
                f"trade_off: must lie between {MIN_TRADE_OFF} (finds most) and 1 (estimates best), not {self.trade_off}"
            )
        if not 0 < self.power <= 100:
            raise DesignError(f"power: must be above 0 and at most 100, not {self.power}")

    def ranked_by(self, scores: ArrayLike | None, disagreement: ArrayLike | None) -> NDArray[np.float64]:
        """The scores, which make the chances and not the strata."""
        score = _needed(scores, "proportional needs a score for each candidate; or use Uniform")
        if score.min() < 0 or score.max() > 1:
            raise DesignError(
                f"scores: proportional needs predicted chances, not {score.min():g}..{score.max():g}; give "
                "probabilities or use Softmax"
            )
        return score

    def inclusion_probabilities(
        self, *, scores: ArrayLike | None, strata: Strata, allocation: Sequence[int]
    ) -> NDArray[np.float64]:
        """The chance of each candidate, shape (M,): whole multiples of 2^-40 that sum to n exactly."""
        score = self.ranked_by(scores, None)
        return power_shares(score, power=self.power, n=sum(allocation), floor=self.trade_off)


@dataclass(frozen=True)
class TestSet(Design):
    """The paper's test stage (section 3): several answers to each of a few pairs from the two ends of the scores.

    Of `pairs` candidates a share `top_share` comes from the best `top_fraction` (`top`), the others from the worst
    `bottom_fraction` (`bottom`); what is between gets no slot, so this stage supports statements about its ends alone.
    Each drawn candidate gets `responses_per_pair` slots, its replicates, which dealing puts into different booklets.
    """

    __test__ = False  # its name would make pytest collect it

    pairs: int = 492
    responses_per_pair: int = 9
    top_fraction: float = 0.01
    bottom_fraction: float = 0.01
    top_share: float = 2 / 3

    def __post_init__(self) -> None:
        for name, count in (("pairs", self.pairs), ("responses_per_pair", self.responses_per_pair)):
            if count < 1:
                raise DesignError(f"{name}: must be at least 1, not {count}")
        for name, fraction in (("top_fraction", self.top_fraction), ("bottom_fraction", self.bottom_fraction)):
            if not 0 < fraction < 1:
                raise DesignError(f"{name}: must lie above 0 and below 1, not {fraction}")
        if not 0 <= self.top_share <= 1:
            raise DesignError(f"top_share: must lie in 0..1, not {self.top_share}")

    @property
    def replicates(self) -> int:
        return self.responses_per_pair

    @property
    def slots(self) -> int:
        """The slots of the stage: the pairs times the responses to each."""
        return self.pairs * self.responses_per_pair

    @property
    def at_each_end(self) -> tuple[int, int]:
        """How many pairs come from the top and from the bottom: round(top_share * pairs), a half to even, and the
        others."""
        n_top = int((_decimal(self.top_share) * self.pairs).to_integral_value(ROUND_HALF_EVEN))
        return n_top, self.pairs - n_top

    @property
    def least_candidates(self) -> int:
        """The fewest candidates whose two ends have that many pairs."""
        ends = zip(self.at_each_end, (self.top_fraction, self.bottom_fraction), strict=True)
        return max(_least_size(count, fraction) for count, fraction in ends)

    def ranked_by(self, scores: ArrayLike | None, disagreement: ArrayLike | None) -> NDArray[np.float64]:
        """The scores."""
        return _needed(scores, "the test set needs a score for each candidate")

    def ends(self, size: int) -> Ends:
        """`top`, `bottom` and `middle`, with ceil(fraction * M) candidates at each end.

        Raises:
            DesignError: the two ends leave no candidate between them.
        """
        highest, lowest = _ceiling(self.top_fraction, size), _ceiling(self.bottom_fraction, size)
        if highest + lowest >= size:
            raise DesignError(
                f"top_fraction, bottom_fraction: {highest} and {lowest} of {size} candidates leave none between the "
                "ends; add candidates"
            )
        return Ends(names=("top", "bottom", "middle"), highest=highest, lowest=lowest, size=size)

    def allocate(self, n: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """round(top_share * pairs) candidates from top, the others from bottom; `n` counts slots."""
        if n != self.slots:
            raise DesignError(
                f"n: {self.pairs} pairs with {self.responses_per_pair} responses each are {self.slots} slots, not {n}"
            )
        wanted = (*self.at_each_end, 0)
        if len(sizes) == len(wanted):
            for name, fraction, count, size in zip(
                ("top", "bottom"), (self.top_fraction, self.bottom_fraction), wanted, sizes, strict=False
            ):
                if count > size:
                    raise DesignError(
                        f"pairs: {count} from the {name} {fraction:.3g} need {_least_size(count, fraction)} "
                        f"candidates, there are {sum(sizes)}, with {size} in {name}; add candidates or take fewer pairs"
                    )
        return fitting(wanted, names=("top", "bottom", "middle"), sizes=sizes)


def replicates_of(design: Design, responses_per_item: int) -> int:
    """How many slots each drawn candidate gets, where every item is answered by so many different people.

    Raises:
        DesignError: fewer than 1, or the design has a number of its own.
    """
    if responses_per_item < 1:
        raise DesignError(f"responses_per_item: must be at least 1, not {responses_per_item}")
    if responses_per_item > 1 and design.replicates > 1:
        raise DesignError(f"responses_per_item: the design gives each item {design.replicates} slots by itself; use 1")
    return responses_per_item * design.replicates


def items_in(n: int, responses_per_item: int) -> int:
    """How many different candidates are drawn for `n` slots.

    Raises:
        DesignError: the slots do not divide.
    """
    if n % responses_per_item:
        raise DesignError(
            f"responses_per_item: {n} slots are no whole number of items with {responses_per_item} slots each"
        )
    return n // responses_per_item


def checked_scores(scores: ArrayLike, *, field: str = "scores") -> NDArray[np.float64]:
    """The scores as float64 of shape (M,). NaN and infinity are refused, since they cannot be put in order."""
    score = np.asarray(scores, dtype=np.float64)
    if score.ndim != 1 or score.size == 0:
        raise DesignError(f"{field}: must be a flat array with one score a candidate, not of shape {score.shape}")
    bad = int(np.count_nonzero(~np.isfinite(score)))
    if bad:
        raise DesignError(f"{field}: {bad} of {score.size} are NaN or infinite; score these candidates again")
    return score


def fitting(allocation: tuple[int, ...], *, names: Sequence[str], sizes: Sequence[int]) -> tuple[int, ...]:
    """The allocation itself, if each stratum holds at least one candidate and no fewer than its slots."""
    if len(sizes) != len(names):
        raise DesignError(f"sizes: this design has the strata {', '.join(names)}, not {len(sizes)} of them")
    for name, n, size in zip(names, allocation, sizes, strict=True):
        if n < 0:
            raise DesignError(f"n: cannot plan {n} slots in stratum {name}")
        if size < 1:
            raise DesignError(f"sizes: stratum {name} is empty; add candidates or change top_fraction")
        if n > size:
            raise DesignError(
                f"n: stratum {name} gets {n} of {sum(allocation)} slots but holds {size} of {sum(sizes)} candidates; "
                "add candidates or plan fewer slots"
            )
    return allocation


def _needed(scores: ArrayLike | None, message: str) -> NDArray[np.float64]:
    if scores is None:
        raise DesignError(f"scores: {message}")
    return checked_scores(scores)


def _cut(ranked: NDArray[np.float64] | None, ends: Ends, rng: np.random.Generator) -> Strata:
    """The candidates in `ends`, ties at a cut broken at random; strata in the order highest, lowest, between."""
    label = np.full(ends.size, len(ends.names) - 1, dtype=np.int8)
    if ranked is not None and ends.highest:
        label[_highest(ranked, ends.highest, rng)] = 0
    if ranked is not None and ends.lowest:
        others = np.flatnonzero(label)
        label[others[_highest(-ranked[others], ends.lowest, rng)]] = 1
    return Strata(names=ends.names, label=label, sizes=ends.sizes)


def _highest(score: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which are the `count` highest, ties at the cut broken at random."""
    cut = np.partition(score, score.size - count)[score.size - count]
    chosen: NDArray[np.bool_] = score > cut
    tied = np.flatnonzero(score == cut)
    chosen[rng.choice(tied, size=count - int(np.count_nonzero(chosen)), replace=False)] = True
    return chosen


def _ceiling(fraction: float, size: int, divisor: int = 1) -> int:
    # Decimal, since 0.07 * 100 is 7.000000000000001 in floats and would move the cut.
    return int((_decimal(fraction) * size / divisor).to_integral_value(ROUND_CEILING))


def _least_size(count: int, fraction: float) -> int:
    """The smallest number of candidates whose ceil(fraction * size) is at least `count`."""
    return int(((count - 1) / _decimal(fraction)).to_integral_value("ROUND_FLOOR")) + 1


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))
