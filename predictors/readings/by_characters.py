"""What a model expected at a place of a text that somebody else's tokenizer cut, from the likeliest tokens that it
lists. Standard library and numpy.

A server lists its own tokens with the likeliest ones at each, and no more. What it gave to the characters of a token
follows as bounds: at least the listed tokens that spell it, at most these and all that the list leaves open.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .text_reading import TextReading
from .tokenizing import NO_CHARACTER

MOST_LISTED, LISTED_BY_SERVERS = 50, 5
"""Tokens that are asked for at each place. Servers of the completions protocol list 5 at most."""


class ChanceOfSpan(NamedTuple):
    """Natural logarithms of the least and the most chance that a model can have given to the characters of a token;
    NaN where it has not read them. `likeliest`: what of its list has the greatest chance there; None where it lists
    nothing. `is_right`: that is the token. `is_sure`: whatever the list leaves open cannot change that."""

    least: float
    most: float
    likeliest: str | None
    is_right: bool
    is_sure: bool


UNREAD = ChanceOfSpan(math.nan, math.nan, None, is_right=False, is_sure=False)


def chances_of_spans(
    reading: TextReading,
    text: str,
    spans: Sequence[tuple[int, int]],
    *,
    first_token: Callable[[str], str] | None = None,
) -> list[ChanceOfSpan]:
    """What the model expected at each of n places.

    A listed token counts for what it begins with: for the place's token where the text goes on as it says, and else for
    `first_token` of what it says. Tokens that are shorter than the place's are followed where the model itself cut the
    text so: by the rule of chances times those of the next list. Otherwise the model is taken to write texts as its
    tokenizer cuts them. Where one of its tokens began before the place, chances are among those that agree with the
    text up to there.

    Args:
        reading: with `distributions` of its likeliest tokens.
        spans: first character, and the one after the last, of each place's token.
        first_token: the first token of a text by the tokenizer that cut the spans; without it, a listed token that
            begins with the place's and then leaves the text is left open.
    """
    reader = _Spans(reading, text, first_token)
    return [reader.chance(start, end) for start, end in spans]


class _Spans:
    def __init__(self, reading: TextReading, text: str, first_token: Callable[[str], str] | None) -> None:
        tokens = reading.of_text
        self._text, self._first_token = text, first_token
        self._starts, self._ends = tokens["start"].tolist(), tokens["end"].tolist()
        self._logs = tokens["logprob"].tolist()
        listed = reading.distributions.top if reading.distributions is not None else ()
        self._listed = [listed[place] if place < len(listed) else () for place in range(len(tokens))]

    def chance(self, start: int, end: int) -> ChanceOfSpan:
        at = int(np.searchsorted(self._ends, start, side="right"))  # The first token that ends after `start`.
        if at >= len(self._ends):
            return UNREAD
        begin, path, unknown = self._starts[at], 1.0, 0.0
        pools: defaultdict[str, float] = defaultdict(float)
        token = self._text[start:end]
        lists = False
        while at < len(self._ends):
            if math.isnan(self._logs[at]):
                return UNREAD
            own, own_chance = self._text[self._starts[at] : self._ends[at]], math.exp(self._logs[at])
            # Tokens that are parts of one character share its place; only the last of them ends it.
            inside = at > 0 and (self._starts[at - 1], self._ends[at - 1]) == (self._starts[at], self._ends[at])
            is_part = at + 1 < len(self._ends) and self._starts[at + 1] < self._ends[at]
            goes_on = is_part or self._ends[at] < end
            resolved = own_chance
            if not goes_on:
                pools[token] += path * own_chance
            for string, log in self._listed[at]:
                lists = True
                if inside or string == own or NO_CHARACTER in string or string.startswith("bytes:"):
                    continue
                name = self._counts_for(self._text[begin : self._starts[at]] + string, begin, start, end)
                if name is not None:
                    resolved += math.exp(log)
                    if name:
                        pools[name] += path * math.exp(log)
            unknown += path * max(0.0, 1.0 - resolved)
            if not goes_on:
                break
            path *= own_chance
            at += 1
        return _bounds(pools, token, unknown, lists=lists)

    def _counts_for(self, string: str, begin: int, start: int, end: int) -> str | None:
        """The token for which a text from `begin` on counts; "" for none, None where that is open."""
        before = self._text[begin:start]
        if not string.startswith(before):
            return None if string and before.startswith(string) else ""
        rest = string[len(before) :]
        token = self._text[start:end]
        if not rest:
            return None if before else ""  # The end of the text says nothing.
        if rest.startswith(token) and self._text.startswith(rest, start):
            return token
        if self._first_token is not None:
            return self._first_token(rest)
        return None if rest.startswith(token) else rest


def _bounds(pools: dict[str, float], token: str, unknown: float, *, lists: bool) -> ChanceOfSpan:
    own, total = pools[token], sum(pools.values()) + unknown
    if not total > 0:
        return ChanceOfSpan(-math.inf, -math.inf, None, is_right=False, is_sure=False)
    # Equal chances are the true token's only where no other has as much: a tie is not known to be right.
    likeliest = max(pools, key=lambda name: (pools[name], name != token)) if lists else None
    other = max((chance for name, chance in pools.items() if name != token), default=0.0)
    is_right = likeliest == token
    is_sure = lists and (own > other + unknown if is_right else other > own + unknown)
    return ChanceOfSpan(_log(own / total), _log((own + unknown) / total), likeliest, is_right, is_sure)


def _log(chance: float) -> float:
    return math.log(min(1.0, chance)) if chance > 0 else -math.inf
