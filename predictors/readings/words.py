"""What a language model gives to the words of a sentence, from its tokens. Needs numpy alone.

A word's surprisal is the sum over its tokens, the space before it included and the punctuation after it left out.
Next to it stands the boundary-corrected one: less ln P(boundary | context, word), plus ln P(boundary | context), where
a boundary is any token that begins a word, or the end (Pimentel and Meister, "How to compute the probability of a
word", 2024).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from predictors.errors import PredictorError
from predictors.readings.text_reading import TextReading
from predictors.word_forms import is_outer

VERSION = "1"  # Goes up when the same reading would give other values.
LIKELIEST = 5
VALUES = np.dtype([("surprisal", "<f8"), ("corrected", "<f8"), ("entropy", "<f8")])
_WORD = re.compile(r"\S+")


def word_values(
    text: str, reading: TextReading, *, words_are_tokens: bool = False
) -> tuple[NDArray[np.void], list[list[tuple[str, float]]]]:
    """Of each word of a text its surprisal, the corrected one and the entropy where it begins, in nats, as a structured
    array (words,), NaN where a value is not known; and the likeliest words there with their chances.

    Args:
        words_are_tokens: every token is a whole word, so that a boundary is certain.

    Raises:
        PredictorError: a token covers parts of two words, or the tokens do not cover the text.
    """
    matches = list(_WORD.finditer(text))
    values = np.full(len(matches), np.nan, dtype=VALUES)
    likeliest: list[list[tuple[str, float]]] = []
    tokens, said = reading.of_text, reading.distributions
    starts, ends = tokens["start"].astype(np.int64), tokens["end"].astype(np.int64)
    if len(tokens) and int(ends.max()) != len(text):
        raise PredictorError(
            f"tokens: they end at character {int(ends.max())} of a text of {len(text)}; it is of another text."
        )
    before = 0
    for number, word in enumerate(matches):
        end = word.end()
        while end > word.start() + 1 and is_outer(text[end - 1]):
            end -= 1
        crossing = (starts < before) & (ends > word.start())
        if crossing.any():
            place = int(np.flatnonzero(crossing)[0])
            token = text[starts[place] : ends[place]]
            raise PredictorError(
                f"tokens: {token[:40]!r} covers parts of two words, of which the second is {word[0][:40]!r}; "
                "words of the sentence and of the model's text must agree."
            )
        inside = np.flatnonzero((starts >= before) & (starts < end))
        before = word.end()
        if not len(inside):
            likeliest.append([])
            continue
        row = values[number]
        row["surprisal"] = -float(tokens["logprob"][inside].sum())
        first, after = int(inside[0]), int(inside[-1]) + 1
        if words_are_tokens:
            row["corrected"] = row["surprisal"]
        if said is None:
            likeliest.append([])
            continue
        row["entropy"] = said.entropy[first]
        if said.boundary is not None and after < len(said.boundary):
            row["corrected"] = row["surprisal"] - said.boundary[after] + said.boundary[first]
        likeliest.append(_words(said.top[first]))
    return values, likeliest


def _words(top: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The likeliest tokens that hold a letter, with their chances; a token may be the beginning of a longer word."""
    words: dict[str, float] = {}
    for token, log_probability in top:
        word = token.strip()
        if any(character.isalpha() for character in word):
            words[word] = words.get(word, 0.0) + math.exp(log_probability)
    return list(words.items())[:LIKELIEST]
