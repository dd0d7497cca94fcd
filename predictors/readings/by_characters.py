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
    tokenizer cuts them. Chances are among the listed tokens that agree with the text up to the place: of the token that
    began before it, or ended there, and of earlier ones where a listed token reaches over several. With `first_token`,
    one that passes the place's beginning counts only where it cuts that there too.

    What a list leaves open counts at the token that ends at the place too, unless `first_token` is not known or takes
    all that is listed there as its tokens. Left out of account are tokens that are not listed and reach over several of
    the text's, and all before a token that the model has not read.

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
        self._lists = [bool(place < len(listed) and len(listed[place])) for place in range(len(tokens))]
        self._rivals = [
            self._rivals_of(place, listed[place]) if self._lists[place] else [] for place in range(len(tokens))
        ]
        self._longest = max((len(string) for rivals in self._rivals for string, _chance in rivals), default=0)
        self._reaches = [self._reach(place) for place in range(len(tokens))]
        self._alike: dict[int, bool] = {}

    def chance(self, start: int, end: int) -> ChanceOfSpan:
        own_place = int(np.searchsorted(self._ends, start, side="right"))  # The first token that ends after `start`.
        if own_place >= len(self._ends):
            return UNREAD
        counted = own_place - 1 if self._is_open_before(own_place, start) else own_place
        at = self._earliest(counted, own_place, start)
        path, unknown = 1.0, 0.0
        pools: defaultdict[str, float] = defaultdict(float)
        token = self._text[start:end]
        lists = False
        while at < len(self._ends):
            if math.isnan(self._logs[at]):
                return UNREAD
            own_chance = math.exp(self._logs[at])
            goes_on = self._is_part(at) or self._ends[at] < end
            resolved = own_chance
            if not goes_on:
                pools[token] += path * own_chance
            lists |= at >= own_place and self._lists[at]
            for string, chance in self._rivals[at]:
                name = self._counts_for(at, string, start, end)
                if name is not None:
                    resolved += chance
                    if name:
                        pools[name] += path * chance
                elif at < counted and self._starts[at] + len(string) > start:
                    unknown += path * chance
            if at >= counted:
                unknown += path * max(0.0, 1.0 - resolved)
            if not goes_on:
                break
            path *= own_chance
            at += 1
        return _bounds(pools, token, unknown, lists=lists)

    def _rivals_of(self, at: int, listed: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
        """What is listed beside the text's own token, with its chance."""
        if self._is_inside(at):
            return []
        own = self._text[self._starts[at] : self._ends[at]]
        return [
            (string, math.exp(log))
            for string, log in listed
            if string != own and NO_CHARACTER not in string and not string.startswith("bytes:")
        ]

    def _is_inside(self, at: int) -> bool:
        """Tokens that are parts of one character share its place; only the last of them ends it."""
        return at > 0 and (self._starts[at - 1], self._ends[at - 1]) == (self._starts[at], self._ends[at])

    def _is_part(self, at: int) -> bool:
        return at + 1 < len(self._ends) and self._starts[at + 1] < self._ends[at]

    def _reach(self, at: int) -> int:
        """The last place at which a rival of this token goes on that agrees with the text up to there; -1 for none."""
        start, own_end = self._starts[at], self._ends[at]
        reached = -1
        for string, _chance in self._rivals[at]:
            for end in range(max(own_end, reached + 1), start + len(string)):
                if not self._text.startswith(string[: end - start], start):
                    break
                reached = end
        return reached

    def _is_open_before(self, at: int, start: int) -> bool:
        """Whether a token that is not listed may have stood for the one that ends at `start`, and gone on."""
        before = at - 1
        if before < 0 or self._ends[before] != start or not math.isfinite(self._logs[before]):
            return False
        if self._first_token is None or self._is_inside(before):
            return False
        if before not in self._alike:
            strings = [self._text[self._starts[before] : start], *(string for string, _chance in self._rivals[before])]
            self._alike[before] = all(self._first_token(string) == string for string in strings)
        return not self._alike[before]

    def _earliest(self, counted: int, own_place: int, start: int) -> int:
        """The first token of which a listed rival passes `start`, or the one that is counted anyway."""
        earliest = counted
        for place in range(own_place - 1, -1, -1):
            if self._starts[place] + self._longest <= start or not math.isfinite(self._logs[place]):
                break
            if self._reaches[place] >= start:
                earliest = min(earliest, place)
        return earliest

    def _counts_for(self, at: int, string: str, start: int, end: int) -> str | None:
        """The token for which a text counts that goes on with `string` at a token of the model; "" for none, None where
        that is open."""
        before = self._text[self._starts[at] : start]
        if not string.startswith(before):
            return None if string and before.startswith(string) else ""
        rest = self._text[start : self._starts[at]] + string[len(before) :]
        token = self._text[start:end]
        if not rest:
            return None if before else ""  # The end of the text says nothing.
        if rest.startswith(token) and self._text.startswith(rest, start):
            return token
        if before and self._first_token is not None and not _cuts(self._first_token, string, len(before)):
            return "" if _cuts(self._first_token, before + token, len(before)) else None
        if self._first_token is not None:
            return self._first_token(rest)
        return None if before or rest.startswith(token) else rest


def _cuts(first_token: Callable[[str], str], string: str, place: int) -> bool:
    """Whether one of its tokens ends at this place of a string."""
    reached = 0
    while reached < place:
        reached += max(1, len(first_token(string[reached:])))
    return reached == place


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
