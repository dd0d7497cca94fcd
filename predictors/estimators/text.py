"""From pairs of texts to token ids: every text is tokenised once, pairs are put together from the pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from predictors.errors import CheckpointError
from predictors.pairs import Pair

# Said before the evidence question, so that one network learns both outcomes. Plain words: every tokenizer has them.
MARKS = ("wrong:", "right:")
NO_SEGMENT, EVIDENCE, TARGET = 0, 1, 2

Ids = NDArray[np.int64]


class TokenPair(NamedTuple):
    """One pair, tokenised and trimmed; the ids of both texts and the outcome."""

    evidence: Ids
    target: Ids
    outcome: int


class Rows(NamedTuple):
    """The tokens of several pairs, one after another without padding; T tokens of B pairs.

    ids, positions, types, segments: (T,) token ids, positions in the pair, token types, and which text (0 neither).
    lengths: (B,) tokens of each pair; outcomes: (B,).
    """

    ids: Ids
    positions: Ids
    types: Ids
    segments: Ids
    lengths: Ids
    outcomes: Ids


class PairTokenizer:
    """Lays out pairs as the tokenizer's own model expects: for a BERT, [CLS] mark evidence [SEP] target [SEP].

    `max_length` counts all tokens of a pair. Raises CheckpointError where the tokenizer cannot tell the marks apart.
    """

    def __init__(self, tokenizer: Tokenizer, max_length: int) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.fingerprint = (hashlib.sha256(tokenizer.to_str().encode()).hexdigest(), max_length)
        example = tokenizer.encode("right", "wrong")
        parts = np.array([-1 if part is None else part for part in example.sequence_ids])
        ids, types = np.array(example.ids, dtype=np.int64), np.array(example.type_ids, dtype=np.int64)
        first, second = np.flatnonzero(parts == 0), np.flatnonzero(parts == 1)
        if not len(first) or not len(second):
            raise CheckpointError("checkpoint: its tokenizer does not build sequence pairs.")
        self._start, self._between, self._end = ids[: first[0]], ids[first[-1] + 1 : second[0]], ids[second[-1] + 1 :]
        self._evidence_type, self._target_type = types[first[0]], types[second[0]]
        self._marks = [np.array(self._encode([mark])[0], dtype=np.int64) for mark in MARKS]
        if self._marks[0].tolist() == self._marks[1].tolist():
            raise CheckpointError(f"checkpoint: its tokenizer reads {MARKS[0]!r} and {MARKS[1]!r} as the same tokens.")
        self._extra = sum(map(len, (self._start, self._between, self._end))) + max(map(len, self._marks))

    def tokenise(self, pairs: Sequence[Pair]) -> list[TokenPair]:
        """Token ids of every pair, long ones trimmed at the ends of both texts so that all fit `max_length`."""
        texts = list(dict.fromkeys(text for pair in pairs for text in (pair.evidence_text, pair.target_text)))
        room = self.max_length - self._extra
        ids = {}
        for text, encoded in zip(texts, self._encode(texts), strict=True):
            ids[text] = np.array(encoded[:room], dtype=np.int64)
        return [self._trimmed(ids[pair.evidence_text], ids[pair.target_text], pair.outcome, room) for pair in pairs]

    def length(self, pair: TokenPair) -> int:
        """Tokens of the laid-out pair."""
        fixed = len(self._start) + len(self._between) + len(self._end) + len(self._marks[pair.outcome])
        return fixed + len(pair.evidence) + len(pair.target)

    def used_ids(self, pairs: Iterable[TokenPair]) -> Ids:
        """The distinct token ids that laying out `pairs` can give, ascending."""
        pieces = [self._start, self._between, self._end, *self._marks]
        for pair in pairs:
            pieces += [pair.evidence, pair.target]
        return np.unique(np.concatenate(pieces))

    def lay_out(self, pairs: Sequence[TokenPair]) -> Rows:
        """The pairs' tokens one after another, in the order given."""
        ids, types, segments, lengths = [], [], [], []
        for pair in pairs:
            mark = self._marks[pair.outcome]
            before, after = len(self._start) + len(mark), len(self._end)
            ids += [self._start, mark, pair.evidence, self._between, pair.target, self._end]
            first = before + len(pair.evidence) + len(self._between)
            length = first + len(pair.target) + after
            type_ids = np.full(length, self._evidence_type)
            type_ids[first:] = self._target_type
            segment_ids = np.full(length, NO_SEGMENT, dtype=np.int64)
            segment_ids[before : before + len(pair.evidence)] = EVIDENCE
            segment_ids[first : length - after] = TARGET
            types.append(type_ids)
            segments.append(segment_ids)
            lengths.append(length)
        return Rows(
            ids=np.concatenate(ids),
            positions=np.concatenate([np.arange(length) for length in lengths]),
            types=np.concatenate(types),
            segments=np.concatenate(segments),
            lengths=np.array(lengths, dtype=np.int64),
            outcomes=np.array([pair.outcome for pair in pairs], dtype=np.int64),
        )

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    @staticmethod
    def _trimmed(evidence: Ids, target: Ids, outcome: int, room: int) -> TokenPair:
        """Cut the longer text down to the other, then both alike, until they fit into `room`."""
        if len(evidence) + len(target) > room:
            half = room // 2
            if len(target) <= half:
                evidence = evidence[: room - len(target)]
            elif len(evidence) <= half:
                target = target[: room - len(evidence)]
            else:
                evidence, target = evidence[: room - half], target[:half]
        return TokenPair(evidence, target, outcome)
