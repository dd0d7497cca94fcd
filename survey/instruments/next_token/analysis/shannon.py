"""The uncertainty of the next character, from how many guesses people need until it is right. Numpy alone.

Source: Shannon, "Prediction and entropy of printed English", Bell System Technical Journal 30 (1951), equation 17. With
q_i, the share of characters that need i guesses, the entropy of the next character is at least the sum of
i (q_i - q_(i+1)) log i, and at most that of the q_i themselves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from survey.figures import Figure

from .guesses import GuessTable, mean

MOST_BITS = 1000.0  # 2 to the power of more is infinite: a float ends at 1,024

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tries:
    """For each of the n guesses of a table: how many there were at that character until it was right (n,), and whether
    the last one was; else the text showed the character after so many wrong ones."""

    number: Ints
    ended_right: NDArray[np.bool_]


@dataclass(frozen=True)
class Uncertainty:
    """Bits that the next character holds for people, at least and at most; `untold`: the share of characters that
    were shown after wrong guesses alone."""

    least: Figure
    most: Figure
    untold: float


def uncertainty(table: GuessTable, tries: Tries, *, characters: int) -> Uncertainty:
    """Both bounds, with intervals by person and passage.

    The lower bound is the mean of i log i - (i - 1) log(i - 1) over characters, which is the same sum in another order.
    It takes people to guess what is likelier first, as Shannon does, so i is the place of a number of guesses among
    these by how often it stands: for good players the number itself. The upper bound is corrected for the small sample
    (Miller, "Note on the bias of information estimates", 1955, with the effective number of guesses). A character that
    was shown after k wrong guesses counts for k + 1 in the lower bound, and in the upper one for any of those left.

    Args:
        characters: how many different ones there are to choose from. The upper bound is withheld where a character was
            shown after so many wrong guesses that fewer than two of them were left: there must have been more.
    """
    # Those who were shown a character are one class, with the fewest wrong guesses of any of them.
    fewest = int(tries.number[~tries.ended_right].min()) if not tries.ended_right.all() else 0
    is_told = tries.ended_right & ((tries.number <= fewest) if fewest else True)
    rank = np.where(is_told, tries.number, fewest + 1)
    share = np.bincount(rank, table.weight) / table.weight.sum()
    order = np.empty(len(share), dtype=np.int64)
    order[np.argsort(-share, kind="stable")] = np.arange(1, len(share) + 1)
    least = mean(_weights(order[rank]), table, scale="number")
    untold = float((table.weight * ~tries.ended_right).sum() / table.weight.sum())
    if fewest and characters - fewest < 2:
        why = f"{characters} different characters are known, and one was shown after {fewest} wrong guesses"
        return Uncertainty(_at_least_0(least), Figure(withheld=why), untold)
    surprise = -np.log2(share[rank])
    if fewest:
        surprise = np.where(is_told, surprise, surprise + math.log2(characters - fewest))
    most = mean(surprise, table, scale="number")
    effective = float(table.weight.sum() ** 2 / (table.weight**2).sum())
    missed = (int((share > 0).sum()) - 1) / (2 * effective * math.log(2))
    return Uncertainty(_at_least_0(least), _at_least_0(_moved(most, missed)), untold)


def _weights(rank: Ints) -> Floats:
    def i_log_i(values: Ints) -> Floats:
        return np.asarray(values * np.log2(np.maximum(values, 1)), dtype=np.float64)

    return i_log_i(rank) - i_log_i(rank - 1)


def _moved(figure: Figure, by: float) -> Figure:
    ends = [None if value is None else value + by for value in (figure.value, figure.low, figure.high)]
    return replace(figure, value=ends[0], low=ends[1], high=ends[2])


def _at_least_0(figure: Figure) -> Figure:
    ends = [None if value is None else max(0.0, value) for value in (figure.value, figure.low, figure.high)]
    return replace(figure, value=ends[0], low=ends[1], high=ends[2])


def perplexity_of(bits: Figure, length: float) -> Figure:
    """The perplexity of a unit of so many characters, each of which holds these bits: 2 to the power of both;
    infinite above `MOST_BITS`."""

    def power(value: float | None) -> float | None:
        return None if value is None else math.inf if value * length > MOST_BITS else 2 ** (value * length)

    return Figure(power(bits.value), power(bits.low), power(bits.high), withheld=bits.withheld)


def word_length(texts: Sequence[str]) -> float:
    """Characters of a word, with the blanks between words; NaN where no text has two words."""
    counts = [len(text.split()) for text in texts]
    return sum(map(len, texts)) / sum(counts) if max(counts, default=0) > 1 else math.nan
