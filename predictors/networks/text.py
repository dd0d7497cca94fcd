"""From rows of texts to token ids: every text is tokenised once, rows are put together from the pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from predictors.errors import CheckpointError, PredictorError
from predictors.features import PAIR_TEXTS, Row, number_columns, number_names, text_column, text_names
from predictors.pairs import Pair
from predictors.settings import MARKS, Marks

NO_SEGMENT, FIRST, OTHERS = 0, 1, 2

Ids = NDArray[np.int64]


class TokenRow(NamedTuple):
    """One row, tokenised and trimmed: ids before the first text, ids of each text, and numbers for the head, (k,)."""

    mark: Ids
    texts: tuple[Ids, ...]
    numbers: NDArray[np.float32]


class PackedRows(NamedTuple):
    """The tokens of several rows, one after another without padding; T tokens of B rows.

    ids, positions, types: (T,) token ids, positions in the row, token types.
    segments: (T,) whether a token is of the first text, of another one, or of none.
    lengths: (B,) tokens of each row; numbers: float32 (B, k) for the head.
    """

    ids: Ids
    positions: Ids
    types: Ids
    segments: Ids
    lengths: Ids
    numbers: NDArray[np.float32]


@dataclass(frozen=True)
class Inputs:
    """What of a row a network reads: texts by tokens, numbers at the head, each as (number - centre) / scale.

    marked: rows are pairs, whose outcome is said in words before the evidence question as well.
    """

    texts: tuple[str, ...] = tuple(PAIR_TEXTS)
    numbers: tuple[str, ...] = ()
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    marked: bool = True

    @classmethod
    def learn(cls, rows: Sequence[Row], weights: NDArray[np.float64]) -> Inputs:
        """All texts and numbers of n rows of features, the numbers standardised by these rows and weights (n,).

        Raises:
            PredictorError: the rows have no texts.
        """
        if not text_names(rows):
            raise PredictorError("texts: the rows have none; choose a predictor of numbers, such as logistic.")
        names = number_names(rows)
        values = number_columns(rows, names)
        centre = np.average(values, axis=0, weights=weights)
        deviation = np.sqrt(np.average((values - centre) ** 2, axis=0, weights=weights))
        scale = np.where(deviation > 1e-12 * np.abs(values).max(axis=0, initial=0.0), deviation, 1.0)
        return cls(text_names(rows), names, tuple(centre.tolist()), tuple(scale.tolist()), marked=False)

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Inputs:
        """The inputs that JSON was made of by `dataclasses.asdict`."""
        texts, numbers, centre, scale = (tuple(state[name]) for name in ("texts", "numbers", "centre", "scale"))
        return cls(texts, numbers, centre, scale, marked=bool(state["marked"]))

    def numbers_of(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        """The numbers for the head, float32 (n, k)."""
        values = (number_columns(rows, self.numbers) - np.array(self.centre)) / np.array(self.scale)
        return values.astype(np.float32)


class RowTokenizer:
    """Lays out rows as the tokenizer's own model expects: for a BERT, [CLS] mark first [SEP] second [SEP].

    Pairs have a mark, the outcome in words. Features have none, and one text or more than two are laid out alike: the
    tokenizer's separator stands between texts, and all but the first have the token type of a second text.
    `max_length` counts all tokens of a row. Raises CheckpointError where the tokenizer reads both marks alike.
    """

    def __init__(self, tokenizer: Tokenizer, max_length: int, marks: Marks = MARKS) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.fingerprint = (hashlib.sha256(tokenizer.to_str().encode()).hexdigest(), max_length, *marks)
        example = tokenizer.encode("right", "wrong")
        parts = np.array([-1 if part is None else part for part in example.sequence_ids])
        ids, types = np.array(example.ids, dtype=np.int64), np.array(example.type_ids, dtype=np.int64)
        first, second = np.flatnonzero(parts == 0), np.flatnonzero(parts == 1)
        if not len(first) or not len(second):
            raise CheckpointError("checkpoint: its tokenizer does not build sequence pairs.")
        self._start, self._between, self._end = ids[: first[0]], ids[first[-1] + 1 : second[0]], ids[second[-1] + 1 :]
        self._first_type, self._others_type = types[first[0]], types[second[0]]
        self._marks = [self._mark(mark) for mark in marks]
        if self._marks[0].tolist() == self._marks[1].tolist():
            raise CheckpointError(f"checkpoint: its tokenizer reads {marks[0]!r} and {marks[1]!r} as the same tokens.")

    def tokenise(self, rows: Sequence[Row], inputs: Inputs = Inputs()) -> list[TokenRow]:
        """Token ids of every checked row; long ones lose the ends of their longest texts so that all fit `max_length`.

        Raises:
            PredictorError: a text is missing, features for a network of pairs, or no room for so many texts.
        """
        if inputs.marked and not all(isinstance(row, Pair) for row in rows):
            raise PredictorError("rows: this predictor was trained on pairs; give it pairs, or train it on features.")
        columns = [text_column(rows, name) for name in inputs.texts]
        longest_mark = max(map(len, self._marks)) if inputs.marked else 0
        fixed = len(self._start) + (len(columns) - 1) * len(self._between) + len(self._end) + longest_mark
        room = self.max_length - fixed
        if room < len(columns):
            least = fixed + len(columns)
            raise PredictorError(
                f"max_length: {self.max_length} leaves {len(columns)} texts no room; give {least} or more."
            )
        distinct = list(dict.fromkeys(text for texts in zip(*columns, strict=True) for text in texts))
        ids = {
            text: np.array(encoded[:room], dtype=np.int64)
            for text, encoded in zip(distinct, self._encode(distinct), strict=True)
        }
        numbers = inputs.numbers_of(rows)
        nothing = np.empty(0, dtype=np.int64)
        return [
            TokenRow(
                self._marks[row.outcome] if inputs.marked and isinstance(row, Pair) else nothing,
                _trimmed([ids[column[place]] for column in columns], room),
                numbers[place],
            )
            for place, row in enumerate(rows)
        ]

    def length(self, row: TokenRow) -> int:
        """Tokens of the laid-out row."""
        between = (len(row.texts) - 1) * len(self._between)
        return len(self._start) + len(row.mark) + between + sum(map(len, row.texts)) + len(self._end)

    def by_length(self, rows: Sequence[TokenRow], token_budget: int) -> Iterator[Ids]:
        """Row numbers by falling length, in batches as in `by_length`."""
        return by_length(np.array([self.length(row) for row in rows], dtype=np.int64), token_budget)

    def used_ids(self, rows: Iterable[TokenRow]) -> Ids:
        """The distinct token ids that laying out `rows` can give, ascending."""
        pieces = [self._start, self._between, self._end, *self._marks]
        for row in rows:
            pieces += row.texts
        return np.unique(np.concatenate(pieces))

    def lay_out(self, rows: Sequence[TokenRow]) -> PackedRows:
        """The rows' tokens one after another, in the order given."""
        ids, types, segments, lengths = [], [], [], []
        for row in rows:
            first, *others = row.texts
            ids += [self._start, row.mark, first]
            places = [NO_SEGMENT] * (len(self._start) + len(row.mark)) + [FIRST] * len(first)
            for other in others:
                ids += [self._between, other]
                places += [NO_SEGMENT] * len(self._between) + [OTHERS] * len(other)
            ids.append(self._end)
            places += [NO_SEGMENT] * len(self._end)
            length = len(places)
            type_ids = np.full(length, self._first_type)
            if others:
                type_ids[len(self._start) + len(row.mark) + len(first) + len(self._between) :] = self._others_type
            types.append(type_ids)
            segments.append(np.array(places, dtype=np.int64))
            lengths.append(length)
        return PackedRows(
            ids=np.concatenate(ids),
            positions=np.concatenate([np.arange(length) for length in lengths]),
            types=np.concatenate(types),
            segments=np.concatenate(segments),
            lengths=np.array(lengths, dtype=np.int64),
            numbers=np.stack([row.numbers for row in rows]),
        )

    def _mark(self, mark: str) -> Ids:
        """A token of the checkpoint by its name, which reading the letters would take apart; else the letters."""
        token = self.tokenizer.token_to_id(mark)
        return np.array(self._encode([mark])[0] if token is None else [token], dtype=np.int64)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False)]


def by_length(lengths: NDArray[np.int64], token_budget: int) -> Iterator[NDArray[np.int64]]:
    """Row numbers by falling length, cut into batches of at most `token_budget` tokens, each of at least one row."""
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    first = 0
    while first < len(order):
        before = ends[first] - lengths[order[first]]
        last = max(first + 1, int(np.searchsorted(ends, before + token_budget, side="right")))
        yield order[first:last]
        first = last


def _trimmed(texts: Sequence[Ids], room: int) -> tuple[Ids, ...]:
    counts = fair_lengths([len(text) for text in texts], room)
    return tuple(text[:count] for text, count in zip(texts, counts, strict=True))


def fair_lengths(lengths: Sequence[int], room: int) -> list[int]:
    """How much of each length to keep in `room`: the longest are cut down to the others, then all alike."""
    shortened = list(lengths)
    if sum(shortened) <= room:
        return shortened
    shortest_first = sorted(range(len(shortened)), key=lambda place: shortened[place])
    left = room
    for done, place in enumerate(shortest_first):
        longer = sorted(shortest_first[done:])
        share, over = divmod(left, len(longer))
        if shortened[place] > share:
            # What does not divide evenly goes to the texts that stand first.
            for number, other in enumerate(longer):
                shortened[other] = share + (number < over)
            break
        left -= shortened[place]
    return shortened
