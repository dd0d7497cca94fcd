"""What a reading is, and what every reader gives. Needs numpy alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from predictors.errors import PredictorError
from predictors.evaluation.scoring import TextScore
from predictors.pairs import Progress

READING_VERSION = "1"
"""Goes up when the same model and text would be read differently, so that older readings are not mixed in."""

TOKEN = np.dtype([("start", "<i4"), ("end", "<i4"), ("logprob", "<f8")])
"""A token: its first character, the one after its last, and its natural log-probability; NaN where it was not read."""


class Text(NamedTuple):
    """A text and its name in tables."""

    id: str
    text: str


@dataclass(frozen=True)
class Detail:
    """What else a reader says at each token: the `top` likeliest tokens there, `samples` drawn from the whole
    distribution by a generator of this seed, and with `boundary` the chance that a new word begins there. `among`: the
    ids of tokens, rising, to which the likeliest and the drawn ones are restricted. `places`: those that are looked at;
    unless something is drawn, which takes all of them in turn, a reader may say nothing of the others."""

    top: int = 0
    samples: int = 0
    seed: int = 0
    boundary: bool = False
    among: NDArray[np.int64] | None = field(default=None, compare=False)
    places: frozenset[int] | None = None

    def __post_init__(self) -> None:
        for name, value in (("top", self.top), ("samples", self.samples)):
            if not 0 <= value <= 1000:
                raise PredictorError(f"{name}: {value!r} must lie between 0 and 1000.")

    @property
    def is_wanted(self) -> bool:
        return bool(self.top or self.samples or self.boundary or self.among is not None)


NO_DETAIL = Detail()


@dataclass(frozen=True, eq=False)
class Distributions:
    """What a model expected at each of n tokens: entropy in nats (n,), NaN where it was not read; the likeliest tokens
    with their log-probabilities; tokens that were drawn; and where asked for, the natural logarithm of the chance that
    a token begins a word or the text ends there (n,), NaN where it was not read, None where no token of the model
    carries the space before it. `top_ids` has the ids of the likeliest tokens, and `drawn` the id and the
    log-probability of each token that was drawn, by the tokenizer whose hash the reader's `cutter` is; `mass` is the
    natural logarithm of the share of the tokens that it was restricted to (n,)."""

    entropy: NDArray[np.float64]
    top: Sequence[Sequence[tuple[str, float]]]
    samples: Sequence[Sequence[str]]
    boundary: NDArray[np.float64] | None = None
    top_ids: Sequence[Sequence[int]] = ()
    drawn: Sequence[Sequence[tuple[int, float]]] = ()
    mass: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class TextReading:
    """One text as one model reads it.

    tokens: (n,) of `TOKEN` in order. They cover the text without a gap; tokens that share a character, such as the
    bytes of one, have the same place. tokenizer: SHA-256 of what cut the text. reads_end: the last token is the end of
    the text, at the place after its last character.
    """

    tokens: NDArray[np.void]
    tokenizer: str
    reads_end: bool = False
    distributions: Distributions | None = field(default=None, repr=False)

    @property
    def log_probabilities(self) -> NDArray[np.float64]:
        """Those of the tokens of the text, without its end: natural logarithms (n,), NaN where not read."""
        log_probabilities: NDArray[np.float64] = self.of_text["logprob"]
        return log_probabilities

    @property
    def of_text(self) -> NDArray[np.void]:
        """The tokens without the end of the text."""
        return self.tokens[:-1] if self.reads_end else self.tokens

    @property
    def skips_first(self) -> bool:
        """Whether the first token was not read, because the model has no token for the beginning of a text."""
        return bool(len(self.of_text)) and math.isnan(self.of_text[0]["logprob"])

    @property
    def unread_until(self) -> int:
        """The character from which on every token was read."""
        unread = self.of_text[np.isnan(self.of_text["logprob"])]
        return int(unread["end"].max()) if len(unread) else 0

    def score(self, text: str, *, with_end: bool = False, begin: int | None = None) -> TextScore:
        """What reading this text cost, from `begin` on: where a token begins, or where reading began without it. Words
        and characters are those from there on, of a word that is cut by it the rest. A text of which nothing is left
        has no token.

        Args:
            with_end: the end of the text counts as a token too, where the model predicts it.
        """
        begin = self.unread_until if begin is None else begin
        tokens = self.tokens if with_end else self.of_text
        counted = tokens[tokens["start"] >= begin] if begin < len(text) else tokens[:0]
        rest = text[begin:]
        return TextScore.of(counted["logprob"], words=len(rest.split()), characters=len(rest))

    def strings(self, text: str) -> list[str]:
        """What each token covers of the text; empty for its end."""
        return [text[start:end] for start, end in zip(self.tokens["start"], self.tokens["end"], strict=True)]


class TextReader(Protocol):
    """What reads texts."""

    @property
    def source(self) -> str:
        """SHA-256 of all that a reading depends on apart from the text: weights, tokenizer, server and name. One source
        reads a text always alike."""

    @property
    def cutter(self) -> str:
        """SHA-256 of the tokenizer by whose ids it names tokens; empty where it names none."""

    @property
    def vocabulary_size(self) -> int | None:
        """How many tokens it chooses from at each place; None where that is not known."""

    def unknown_tokens(self, texts: Sequence[Text]) -> Sequence[NDArray[np.bool_]] | None:
        """Of each text which of its tokens (n,) were read as one class of everything unknown, so that the model did not
        say what stood there; None where that is not known."""

    def each(
        self, texts: Sequence[Text], *, detail: Detail = NO_DETAIL, progress: Progress | None = None
    ) -> Iterator[tuple[int, TextReading]]:
        """The number of each text and its reading, as they come; `progress` counts texts.

        Raises:
            PredictorError: a text cannot be read, or not in this detail. The readings before it are complete.
            Stopped: `progress` returned False.
        """


def common_begin(readings: Sequence[TextReading], length: int) -> int:
    """The first character of a text of `length` from which on all of these readings read it, and at which a token of
    each begins; `length` where there is none."""
    begin, before = max((reading.unread_until for reading in readings), default=0), -1
    while begin != before:
        before = begin
        for reading in readings:
            tokens = reading.of_text
            cut = tokens[(tokens["start"] < begin) & (tokens["end"] > begin)]
            begin = int(cut["end"].max()) if len(cut) else begin
    return min(begin, length)


def make_tokens(
    starts: Sequence[int] | NDArray[np.int64],
    ends: Sequence[int] | NDArray[np.int64],
    log_probabilities: Sequence[float] | NDArray[np.float64],
) -> NDArray[np.void]:
    """Tokens from three columns of n values.

    Raises:
        PredictorError: the columns have different lengths, or a log-probability is above 0.
    """
    if not len(starts) == len(ends) == len(log_probabilities):
        raise PredictorError("tokens: starts, ends and log-probabilities have different lengths.")
    tokens = np.empty(len(starts), dtype=TOKEN)
    tokens["start"], tokens["end"], tokens["logprob"] = starts, ends, log_probabilities
    if (tokens["logprob"] > 0).any():
        raise PredictorError("logprob: one is above 0; give natural logarithms of probabilities.")
    return tokens


def without_gaps(
    starts: NDArray[np.int64], ends: NDArray[np.int64], length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends (n,) of tokens that cover a text of `length` characters.

    Tokenizers leave out what they do not count as part of a word: blanks before it, or characters that they drop. Each
    gap goes to the token after it, and what is left at the end to the last one.
    """
    if not len(starts):
        return starts, ends
    ends = ends.copy()
    ends[-1] = max(int(ends[-1]), length)
    reached = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])
    starts = np.where(starts > reached, reached, starts)
    # A token that stands before what is reached shares a character with the one before it.
    return starts, np.maximum(ends, starts)
