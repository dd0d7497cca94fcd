"""N-gram models in ARPA files, as KenLM, SRILM and `train_ngram --arpa` write them. Needs numpy alone.

A file lists, for each order, sequences of words with log10 of the probability of the last one after the others, and
log10 of the back-off weight of the sequence as a context. A sequence that is not listed has the probability of its end
at the next lower order times the back-off weight of its context, which is 1 where that is not listed (Katz, "Estimation
of probabilities from sparse data", 1987). <s> and </s> begin and end a text; what is not listed at all is <unk>.

Sequences are kept as `NgramReader` keeps them: 24 bytes each, whatever their order.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.artifacts import file_digest
from predictors.errors import CheckpointError, PredictorError
from predictors.pairs import Progress, report

from .ngrams import NgramReader, units_of
from .text_reading import NO_DETAIL, Detail, Text, TextReading, make_tokens, without_gaps

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BEGIN_WORD, END_WORD, UNKNOWN_WORD = "<s>", "</s>", "<unk>"
NOTHING = -99.0  # What files write for a probability of 0.
_LN10 = math.log(10)


class _Sequences(NamedTuple):
    """All sequences of one order: keys in rising order, log10 of probabilities and of back-off weights."""

    keys: Ints
    probability: Floats
    weight: Floats


class ArpaReader:
    """The model of an ARPA file, plain or packed with gzip. Words are what stands between white space.

    Raises:
        CheckpointError: the file cannot be read; says in which line.
    """

    cutter = ""  # It names no ids.

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise CheckpointError(f"{path}: cannot be read as an ARPA file: there is no such file; check the path.")
        try:
            self.source = hashlib.sha256(f"arpa {file_digest(self._path)}".encode()).hexdigest()
            with _opened(self._path) as file:
                self._number, self._orders = _Parser(file).parse()
        except CheckpointError as exc:
            raise CheckpointError(f"{path}: {exc}") from exc
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as exc:
            raise CheckpointError(f"{path}: cannot be read as an ARPA file ({exc}).") from exc
        except (MemoryError, OverflowError, ValueError) as exc:
            raise CheckpointError(f"{path}: says that it has more sequences than this machine can hold.") from exc
        self.tokenizer = self.source
        self._unknown = self._number.get(UNKNOWN_WORD, -1)

    @property
    def order(self) -> int:
        """How many words the longest sequences have."""
        return len(self._orders)

    @property
    def vocabulary_size(self) -> int:
        """Words that can come next, with <unk> and </s>, without <s>."""
        return len(self._number) - 1

    def log_probabilities(self, text: str) -> Floats:
        """Of each word of a text and of its end: natural logarithms (n + 1,), -inf where a probability is 0."""
        return self._log_probabilities(units_of(text, "word")[0])

    def _number_of(self, word: str) -> int:
        # Who writes "</s>" in a text means these letters.
        return self._unknown if word in (BEGIN_WORD, END_WORD) else self._number.get(word, self._unknown)

    def _log_probabilities(self, words: Sequence[str]) -> Floats:
        known = [self._number_of(word) for word in words]
        units = np.array([self._number[BEGIN_WORD], *known, self._number[END_WORD]], dtype=np.int64)
        sequence = np.zeros(len(units), dtype=np.int64)  # Its place at the order before; -1 where it is not listed.
        value = np.full(len(units), -math.inf)
        weight = np.zeros(len(units))  # Of what stands before each unit, at the order before.
        for place, order in enumerate(self._orders):
            before = np.concatenate([[-1], sequence[:-1]]) if place else sequence
            sequence = _looked_up(order.keys, before, units, len(self._number))
            listed = sequence >= 0
            value = np.where(listed, order.probability[sequence], weight + value)
            weight = np.concatenate([[0.0], np.where(listed, order.weight[sequence], 0.0)[:-1]])
        return value[1:] * _LN10

    def unknown_tokens(self, texts: Sequence[Text]) -> list[NDArray[np.bool_]]:
        """As in `TextReader`: words that the file does not list."""
        numbers = [[self._number_of(word) for word in units_of(text.text, "word")[0]] for text in texts]
        return [np.array([number == self._unknown for number in row], dtype=np.bool_) for row in numbers]

    def each(
        self, texts: Sequence[Text], *, detail: Detail = NO_DETAIL, progress: Progress | None = None
    ) -> Iterator[tuple[int, TextReading]]:
        """As in `TextReader`; the last token of each text is its end."""
        if detail.is_wanted:
            raise PredictorError("top, samples, boundary: an ARPA file is not asked for these; leave them out.")
        for number, text in enumerate(texts):
            words, starts, ends = units_of(text.text, "word")
            length = len(text.text)
            starts, ends = without_gaps(starts, ends, length)
            values = np.minimum(self._log_probabilities(words), 0.0)
            tokens = make_tokens(np.append(starts, length), np.append(ends, length), values)
            yield number, TextReading(tokens, self.tokenizer, reads_end=True)
            report(progress, number + 1, len(texts), "texts read")


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8")


def _looked_up(keys: Ints, before: Ints, units: Ints, size: int) -> Ints:
    """The places of sequences among the keys of their order; -1 where they are not listed."""
    if not len(keys):
        return np.full(len(units), -1, dtype=np.int64)
    wanted = before * size + units
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((before >= 0) & (units >= 0) & (keys[place] == wanted), place, -1)


class _Parser:
    """Reads an ARPA file from its first line to `\\end\\`, order by order."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._line = 0

    def parse(self) -> tuple[dict[str, int], list[_Sequences]]:
        """The number of each word, and the sequences of each order."""
        counts = self._counts()
        number: dict[str, int] = {}
        orders: list[_Sequences] = []
        for order, count in enumerate(counts, start=1):
            units = np.empty((count, order), dtype=np.int64)
            values = np.zeros((count, 2))
            for place in range(count):
                self._entry(units[place], values[place], number, last=order == len(counts))
            if (ending := self._next()) not in (f"\\{order + 1}-grams:", "\\end\\"):
                raise self._wrong(f"{ending[:40]!r} stands where \\{order + 1}-grams: or \\end\\ should")
            if order == 1:
                for word in (BEGIN_WORD, END_WORD):
                    if word not in number:
                        raise CheckpointError(f"has no {word} among its words; every model of texts has one.")
            orders.append(self._sorted(units, values, orders, len(number)))
        return number, orders

    def _counts(self) -> list[int]:
        while (line := self._next()) != "\\data\\":
            pass
        counts: list[int] = []
        while (line := self._next()).startswith("ngram "):
            order, equals, count = line[6:].partition("=")
            if not equals or order.strip() != str(len(counts) + 1) or not count.strip().isdigit():
                raise self._wrong(f"{line[:40]!r} does not say how many sequences of {len(counts) + 1} there are")
            counts.append(int(count))
        if not counts or line != "\\1-grams:":
            raise self._wrong(f"{line[:40]!r} stands where \\1-grams: should")
        return counts

    def _entry(self, units: Ints, values: Floats, number: dict[str, int], *, last: bool) -> None:
        cells = self._next().split()
        order = len(units)
        if not order + 1 <= len(cells) <= order + 2:
            raise self._wrong(f"is no log10 probability with {order} words; check the number after ngram {order}=")
        try:
            values[0] = float(cells[0])
            values[1] = float(cells[order + 1]) if len(cells) == order + 2 else 0.0
        except ValueError:
            raise self._wrong("begins or ends with something that is no number") from None
        if not (values[0] <= 0 and math.isfinite(values[1])) or (last and values[1]):
            raise self._wrong("has a probability above 1, no number, or a back-off weight at the highest order")
        if values[0] <= NOTHING:
            values[0] = -math.inf
        words = cells[1 : order + 1]
        if order == 1:
            if _same(words[0]) in number:
                raise self._wrong(f"{words[0]!r} stands there twice")
            number[_same(words[0])] = len(number)
        for place, word in enumerate(words):
            if (known := number.get(_same(word))) is None:
                raise self._wrong(f"{word!r} is not among the words of order 1")
            units[place] = known

    def _sorted(self, units: Ints, values: Floats, orders: Sequence[_Sequences], size: int) -> _Sequences:
        place = np.zeros(len(units), dtype=np.int64)
        for column, shorter in enumerate(orders):
            place = _looked_up(shorter.keys, place, units[:, column], size)
        if (place < 0).any():
            raise self._wrong(
                f"above it, a sequence of {units.shape[1]} words has a context that is not among those of "
                f"{units.shape[1] - 1}; the file is cut or was pruned by hand"
            )
        keys = place * size + units[:, -1]
        order = np.argsort(keys, kind="stable")
        if (np.diff(keys[order]) == 0).any():
            raise self._wrong(f"above it, a sequence of {units.shape[1]} words stands there twice")
        return _Sequences(keys[order], values[order, 0], values[order, 1])

    def _next(self) -> str:
        for line in self._file:
            self._line += 1
            if stripped := line.strip():
                return stripped
        raise CheckpointError(f"ends after line {self._line}, before \\end\\; is it an ARPA file, and whole?")

    def _wrong(self, message: str) -> CheckpointError:
        return CheckpointError(f"line {self._line}: {message}.")


def _same(word: str) -> str:
    """SRILM also writes <UNK>."""
    return UNKNOWN_WORD if word == "<UNK>" else word


def write_arpa(model: NgramReader, path: Path) -> None:
    """Write a model of words as an ARPA file, which gives every text the same probability.

    A text that holds "<unk>" as a word, as Penn Treebank and WikiText do, means what is unknown: such a file has that
    word's probability for all unknown words.

    Raises:
        PredictorError: it is not a smoothed model of words, or "<s>" or "</s>" are words of its texts.
    """
    if model.unit != "word" or model.smoothing != "kneser_ney":
        raise PredictorError("arpa: only a model of words with --smoothing kneser_ney can be written as an ARPA file.")
    orders = [list(order) for order in model.back_off()]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\\data\\\n")
        file.writelines(f"ngram {order}={len(rows)}\n" for order, rows in enumerate(orders, start=1))
        for order, rows in enumerate(orders, start=1):
            file.write(f"\n\\{order}-grams:\n")
            for words, probability, weight in rows:
                ends = "" if order == len(orders) else f"\t{weight:.9g}"
                file.write(f"{probability:.9g}\t{' '.join(words)}{ends}\n")
        file.write("\n\\end\\\n")
