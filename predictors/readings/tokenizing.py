"""Tokenizers: what cuts a text into tokens, with a number for each. Standard library and numpy; transformers is
imported by `FileTokenizer`, on first use.

A tokenizer is known by its hash. One token of a text has an id, and a place in the text; tokens that share a character,
such as the bytes of one, have the same place.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from predictors.errors import CheckpointError, PredictorError

from .text_reading import without_gaps

CUT = np.dtype([("id", "<i4"), ("start", "<i4"), ("end", "<i4")])
"""A token of a text: its id, its first character, and the one after its last."""

FORMAT = 1
SMALLEST, LARGEST = 256, 20_000  # Tokens of a byte-pair tokenizer that is trained here.
NO_CHARACTER = "�"  # What bytes that are no character are shown as.
# Runs in which bytes are joined: a space and a word, a space and digits, other marks, further white space.
_RUN = re.compile(r" ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s")


class TextTokenizer(Protocol):
    """What cuts texts."""

    @property
    def sha256(self) -> str:
        """Of all that decides how a text is cut."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """The text of each token alone, by its id; empty for ids that no text has."""

    def cut(self, text: str) -> NDArray[np.void]:
        """(n,) of `CUT`, in order."""

    def joined(self, ids: Sequence[int]) -> str:
        """The text that these tokens make."""


def can_be_typed(token: str) -> bool:
    """Whether a person can type a token: it holds no line break or other control character, and no part of one."""
    return bool(token) and not any(
        character == NO_CHARACTER or unicodedata.category(character) in _NOT_TYPED for character in token
    )


_NOT_TYPED = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


def check_survives(tokenizer: TextTokenizer, text: str) -> NDArray[np.void]:
    """The tokens of a text, which is the same after it is cut and joined again.

    Raises:
        PredictorError: it is not.
    """
    cut = tokenizer.cut(text)
    back = tokenizer.joined(cut["id"].tolist())
    if back != text:
        place = next(
            (at for at, (character, other) in enumerate(zip(text, back, strict=False)) if character != other), len(back)
        )
        raise PredictorError(
            f"text: does not survive the tokenizer: from character {place + 1} on, {text[place : place + 20]!r} comes "
            f"back as {back[place : place + 20]!r}; write it otherwise, or take another tokenizer."
        )
    return cut


class PairTokenizer:
    """A byte-pair tokenizer: a text's bytes, joined pair by pair in the order in which the pairs were learnt.

    Sennrich, Haddow and Birch, "Neural machine translation of rare words with subword units", 2016, section 3.2, on
    bytes. Tokens 0 to 255 are bytes; token 256 + k joins pair k. Bytes are joined within words with the space before
    them, never beyond. So every text survives.

    merges: pairs of ids, each of tokens that are known before.
    """

    def __init__(self, merges: Sequence[tuple[int, int]]) -> None:
        self.merges = [(int(first), int(second)) for first, second in merges]
        self._pieces = [bytes([byte]) for byte in range(256)]
        for first, second in self.merges:
            if not (0 <= first < len(self._pieces) and 0 <= second < len(self._pieces)):
                raise PredictorError("tokenizer: joins tokens that it does not have; train it again.")
            self._pieces.append(self._pieces[first] + self._pieces[second])
        self._widths = np.array([len(piece) for piece in self._pieces], dtype=np.int64)
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}
        self._known: dict[str, list[int]] = {}

    @classmethod
    def train(cls, texts: Sequence[str], *, size: int) -> PairTokenizer:
        """Learn pairs from texts until there are `size` tokens, or no pair stands twice.

        Of pairs that stand equally often the one with the smaller ids is joined first.

        Raises:
            PredictorError: a size out of range, or nothing to learn from.
        """
        if not SMALLEST < size <= LARGEST:
            raise PredictorError(f"size: {size!r} must lie between {SMALLEST + 1} and {LARGEST}.")
        runs = Counter(run for text in texts for run in _RUN.findall(text))
        if not runs:
            raise PredictorError("texts: hold nothing to learn from; give at least one text that is not empty.")
        words = [list(run.encode()) for run in runs]
        times = list(runs.values())
        counts: Counter[tuple[int, int]] = Counter()
        where: dict[tuple[int, int], set[int]] = defaultdict(set)
        for place, word in enumerate(words):
            for pair in itertools.pairwise(word):
                counts[pair] += times[place]
                where[pair].add(place)
        # The most frequent pair stands first. A count that has changed since it was put there is passed over.
        queue = [(-count, pair) for pair, count in counts.items() if count > 1]
        heapq.heapify(queue)
        merges: list[tuple[int, int]] = []
        while len(merges) < size - SMALLEST and queue:
            count, best = heapq.heappop(queue)
            if counts[best] != -count:
                continue
            changed: set[tuple[int, int]] = set()
            for place in sorted(where[best]):
                for pair in itertools.pairwise(words[place]):
                    counts[pair] -= times[place]
                    where[pair].discard(place)
                    changed.add(pair)
                words[place] = _join(words[place], best, SMALLEST + len(merges))
                for pair in itertools.pairwise(words[place]):
                    counts[pair] += times[place]
                    where[pair].add(place)
                    changed.add(pair)
            for pair in changed:
                if counts[pair] > 1:
                    heapq.heappush(queue, (-counts[pair], pair))
            merges.append(best)
        return cls(merges)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(json.dumps(["byte pairs", FORMAT, self.merges]).encode()).hexdigest()

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        return [piece.decode("utf-8", "replace") for piece in self._pieces]

    def cut(self, text: str) -> NDArray[np.void]:
        ids: list[int] = []
        for run in _RUN.findall(text):
            ids += self._of_run(run)
        cuts = np.empty(len(ids), dtype=CUT)
        cuts["id"] = ids
        # The character that each byte belongs to.
        of_byte = np.arange(len(text), dtype=np.int64)
        if not text.isascii():
            of_byte = np.repeat(of_byte, [len(character.encode()) for character in text])
        widths = self._widths[cuts["id"]]
        ends = np.cumsum(widths)
        starts = ends - widths
        if ids:
            cuts["start"], cuts["end"] = of_byte[starts], of_byte[ends - 1] + 1
        return cuts

    def joined(self, ids: Sequence[int]) -> str:
        return b"".join(self._pieces[number] for number in ids).decode("utf-8", "replace")

    def _of_run(self, run: str) -> list[int]:
        known = self._known.get(run)
        if known is not None:
            return known
        ids = list(run.encode())
        while len(ids) > 1:
            # Each pair has a rank of its own, so that no two are first.
            pair = min(itertools.pairwise(ids), key=lambda candidate: self._rank.get(candidate, len(self._rank)))
            rank = self._rank.get(pair)
            if rank is None:
                break
            ids = _join(ids, pair, SMALLEST + rank)
        if len(self._known) < 100_000:
            self._known[run] = ids
        return ids

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, "merges": self.merges})

    @classmethod
    def from_json(cls, content: str | bytes) -> PairTokenizer:
        """
        Raises:
            CheckpointError: damaged, or written by another version.
        """
        try:
            facts = json.loads(content)
            if facts["format"] != FORMAT:
                raise CheckpointError(
                    f"tokenizer: has format {facts['format']!r}, this version reads {FORMAT}; train it again."
                )
            return cls([(first, second) for first, second in facts["merges"]])
        except CheckpointError:
            raise
        except (ValueError, KeyError, TypeError, PredictorError) as exc:
            raise CheckpointError(f"tokenizer: cannot be read ({exc}); train it again.") from exc


def _join(ids: Sequence[int], pair: tuple[int, int], new: int) -> list[int]:
    joined: list[int] = []
    place = 0
    while place < len(ids):
        if place + 1 < len(ids) and (ids[place], ids[place + 1]) == pair:
            joined.append(new)
            place += 2
        else:
            joined.append(ids[place])
            place += 1
    return joined


class CharacterTokenizer:
    """Every character is a token, and its id is its code point: the tokenizer of Shannon's game ("Prediction and
    entropy of printed English", 1951). `characters`: those that the vocabulary lists."""

    sha256 = hashlib.sha256(b"characters 1").hexdigest()

    def __init__(self, characters: Sequence[str] = ()) -> None:
        self._characters = sorted(set(characters))

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        known = set(self._characters)
        size = 1 + max((ord(character) for character in known), default=0)
        return [chr(code) if chr(code) in known else "" for code in range(size)]

    def cut(self, text: str) -> NDArray[np.void]:
        cuts = np.empty(len(text), dtype=CUT)
        cuts["id"] = [ord(character) for character in text]
        cuts["start"] = np.arange(len(text))
        cuts["end"] = cuts["start"] + 1
        return cuts

    def joined(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


class FileTokenizer:
    """The fast tokenizer in a model's folder, or in its one GGUF file. Needs transformers.

    Its hash is that of the readings of the model in this folder (`predictors.readings.causal`).

    Raises:
        CheckpointError: there is none, or it cannot be read.
    """

    def __init__(self, folder: Path | str) -> None:
        path = Path(folder).expanduser()
        if not path.is_dir():
            raise CheckpointError(f"tokenizer: {folder} is no folder; give that of a model with a fast tokenizer.")
        from transformers import AutoTokenizer

        gguf = sorted(file.name for file in path.glob("*.gguf"))
        options = {"gguf_file": gguf[0]} if len(gguf) == 1 and not (path / "tokenizer.json").exists() else {}
        try:
            own = AutoTokenizer.from_pretrained(path, trust_remote_code=False, local_files_only=True, **options)
        except Exception as exc:  # transformers and tokenizers raise a dozen kinds for damaged or unknown files
            raise CheckpointError(
                f"tokenizer: that of {folder} cannot be read ({' '.join(str(exc).split())[:200]})."
            ) from exc
        if not getattr(own, "is_fast", False):
            raise CheckpointError(
                f"tokenizer: that of {folder} does not say which characters a token covers; save it as tokenizer.json "
                "(a fast tokenizer)."
            )
        self._own = as_read(own.backend_tokenizer)

    @cached_property
    def sha256(self) -> str:
        return fingerprint(self._own)

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        size = 1 + max(self._own.get_vocab(with_added_tokens=True).values(), default=-1)
        special = {place for place, token in self._own.get_added_tokens_decoder().items() if token.special}
        return ["" if number in special else self._alone(number) for number in range(size)]

    def _alone(self, token: int) -> str:
        """The text of a token within a text. Some tokenizers drop the space before the first token of a text."""
        alone = str(self._own.decode([token], skip_special_tokens=False))
        raw = self._own.id_to_token(token) or ""
        return f" {alone}" if raw[:1] == "▁" and not alone.startswith(" ") else alone

    def cut(self, text: str) -> NDArray[np.void]:
        encoding = self._own.encode(text, add_special_tokens=False)
        places = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        cuts = np.empty(len(encoding.ids), dtype=CUT)
        cuts["id"] = encoding.ids
        cuts["start"], cuts["end"] = without_gaps(places[:, 0], places[:, 1], len(text))
        return cuts

    def joined(self, ids: Sequence[int]) -> str:
        return str(self._own.decode(list(ids), skip_special_tokens=False))


def as_read(tokenizer: Any) -> Any:
    """A `tokenizers.Tokenizer` as readings use it: whole texts, without padding. A text that holds "</s>" means these
    letters."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def fingerprint(tokenizer: Any) -> str:
    """The SHA-256 of a `tokenizers.Tokenizer`."""
    return hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
