"""Judgements of two replies as arrays, and what each item got. Numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

A, B, TIE, UNREADABLE = 1, -1, 0, 2
NEAREST = 0.5
"""The rating next to the middle: places 4 and 5 of the scale of eight."""


@dataclass(frozen=True, eq=False)
class Judgements:
    """n judgements of an item's two replies; arrays of shape (n,).

    models, prompts: names. prompt: place in `prompts`. a, b: places in `models`; every judgement of an item has the
    same order of these two. category: of the prompt. person: who judged, as a whole number; no two people share one.
    outcome: 1 where A is better, -1 where B is, 0 for a tie, 2 for a verdict that could not be read. value: how far
    towards A, -3.5 to 3.5 where it was rated, else -1, 0 or 1; 0 where it could not be read. first: 1 where A was shown
    first, -1 where B was, 0 where that is not known. probability: the chance with which the item was asked; 1 where
    nothing was drawn. chance: the chance of A that the judge itself stated, NaN where it stated none.
    """

    models: tuple[str, ...]
    prompts: tuple[str, ...]
    prompt: Whole
    a: Whole
    b: Whole
    category: NDArray[np.str_]
    person: Whole
    outcome: Whole
    value: Floats
    first: Whole
    probability: Floats
    chance: Floats

    @property
    def n(self) -> int:
        return len(self.a)

    @cached_property
    def win(self) -> Floats:
        """1 where A is better, 0 where B is, a half else."""
        return np.where(self.outcome == A, 1.0, np.where(self.outcome == B, 0.0, 0.5))

    @cached_property
    def key(self) -> Whole:
        """One number an item, the same in every set with these models and prompts."""
        low, high = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
        return (self.prompt * len(self.models) + low) * len(self.models) + high

    @cached_property
    def item(self) -> Whole:
        """The item of each judgement, from 0 in the order of `key`."""
        return np.unique(self.key, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @cached_property
    def weight(self) -> Floats:
        """1 / probability, with mean 1."""
        weight = 1 / self.probability
        mean = weight.mean() if self.n else 1.0
        scaled: Floats = weight / mean
        return scaled

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Judgements:
        """Those judgements alone, by a mask or by their places. Models and prompts keep their places."""
        columns = ("prompt", "a", "b", "category", "person", "outcome", "value", "first", "probability", "chance")
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})

    def unweighted(self) -> Judgements:
        """The same, each judgement counted once."""
        return replace(self, probability=np.ones(self.n))

    def with_ties(self, tie: str) -> Judgements:
        """The same with ties as the study file says: `4-5` makes the two middle places a tie."""
        if tie == "none":
            return self
        near = (np.abs(self.value) == NEAREST) & (self.outcome != UNREADABLE)
        return replace(self, outcome=np.where(near, TIE, self.outcome))


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """m items with what their judgements say; arrays of shape (m,), in the order of `key`.

    n: judgements. outcome: what more than half of them say, a tie where no answer has more than half. value: their
    mean. share: of them for A, ties half. where: the first judgement of each.
    """

    key: Whole
    n: Whole
    outcome: Whole
    value: Floats
    share: Floats
    where: Whole

    @classmethod
    def of(cls, judged: Judgements) -> JudgedItems:
        key, where, inverse, n = np.unique(judged.key, return_index=True, return_inverse=True, return_counts=True)
        inverse = inverse.reshape(-1)
        counts = {
            outcome: np.bincount(inverse[judged.outcome == outcome], minlength=len(key))
            for outcome in (A, B, TIE, UNREADABLE)
        }
        outcome = np.full(len(key), TIE, dtype=np.int64)
        for verdict in (A, B, UNREADABLE):
            outcome[2 * counts[verdict] > n] = verdict
        return cls(
            key=key,
            n=n.astype(np.int64),
            outcome=outcome,
            value=np.bincount(inverse, weights=judged.value, minlength=len(key)) / n,
            share=np.bincount(inverse, weights=judged.win, minlength=len(key)) / n,
            where=where.astype(np.int64),
        )


def majorities(judged: Judgements) -> Judgements:
    """One judgement an item: its majority, with the mean value. Nobody's in particular and shown on no side."""
    items = JudgedItems.of(judged)
    majority = judged.where(items.where)
    return replace(
        majority,
        outcome=items.outcome,
        value=items.value,
        person=np.arange(len(items.key)),
        first=np.zeros(len(items.key), dtype=np.int64),
    )


def numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Whole]:
    """The different names in order, and the place of each."""
    known, place = np.unique(np.asarray(names, dtype=str), return_inverse=True)
    return tuple(str(name) for name in known), place.reshape(-1).astype(np.int64)
