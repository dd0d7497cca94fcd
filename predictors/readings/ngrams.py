"""N-gram language models of order 1 to 5, over words, characters or the tokens of a tokenizer. Needs numpy alone.

The order counts the predicted unit: order 2 predicts a unit from the one before it. Every text begins with places that
hold nothing and ends with END, which is predicted and counted like a unit. Units that the training texts lack are read
as <unk>, which is in the vocabulary.

"none" takes the counts as they are: the maximum likelihood estimate, which gives 0 to what was never seen.
"kneser_ney" is interpolated modified Kneser-Ney smoothing (Chen and Goodman, "An empirical study of smoothing
techniques for language modeling", 1998, section 4.1.6), its lowest order interpolated with the uniform distribution.
Where the counts of counts give no discounts, 0.5, 1 and 1.5 are taken.

What <unk> stands for has to be paid for too, or a model that knows few units would look good. Over characters and
tokens, of which there is a known number, the probability of <unk> is shared evenly among those that training lacked, as
PPM does where it knows nothing (Cleary and Witten, "Data compression using adaptive coding and partial string
matching", 1984). There is no end of words: over words <unk> stays a class, and `unknown_tokens` says where it was read.

Units in a row are places of a trie: a sequence of k units is a number, the key of which is the number of its first
k - 1 units times the size of the vocabulary, plus its last unit. So counting and looking up are sorting and searching.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.errors import CheckpointError, PredictorError
from predictors.evaluation.scoring import TextScore, TrainTest, added
from predictors.pairs import Progress, report

from .text_reading import NO_DETAIL, Detail, Distributions, Text, TextReading, make_tokens, without_gaps
from .tokenizing import CharacterTokenizer, PairTokenizer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FORMAT = 1
UNITS = ("word", "character", "token")
SMOOTHINGS = ("none", "kneser_ney")
HIGHEST_ORDER = 5
UNK, END, BEGIN = 0, 1, 2  # Numbers of units; those of the texts follow.
UNKNOWN = "<unk>"
_SPECIAL = (UNKNOWN, "END", "BEGIN")
_FALLBACK = (0.5, 1.0, 1.5)
_WORD = re.compile(r"\S+")
_CODE_POINTS = 0x110000 - 0x800  # Characters of Unicode, without the surrogates.
_KEPT = 2**21  # Shares that are kept while a text is read: 16 MB.


class _Level(NamedTuple):
    """All sequences of k units: their keys in rising order, how often each was predicted, and by how many different
    units it was preceded (as often as predicted, if it begins with the beginning of a text)."""

    keys: Ints
    counts: Ints
    preceded: Ints


class _CutText(NamedTuple):
    """The units of a text by number, as `NgramReader._numbers` gives them, and its size."""

    units: Ints
    words: int
    characters: int


@dataclass(frozen=True)
class OrderLine:
    """A model of one order on training and test texts, END counted: a row of the textbook's table of overfitting.

    states: different contexts that the training texts hold.
    """

    order: int
    states: int
    scores: TrainTest | None
    train: TextScore


class NgramReader:
    """An n-gram model. `vocabulary` has <unk> and END, which are predicted, and the beginning, which is not. `cut_by`
    cuts texts into units of the kind "token", whose names in the vocabulary are their ids.

    Raises:
        PredictorError: an order, unit or smoothing that there is not; tokens without a tokenizer.
    """

    def __init__(
        self, *, order: int, unit: str, smoothing: str, vocabulary: Sequence[str], cut_by: PairTokenizer | None = None
    ) -> None:
        _check(order, unit, smoothing)
        _check_tokenizer(unit, cut_by)
        self.cut_by = cut_by
        self.order, self.unit, self.smoothing = order, unit, smoothing
        self.vocabulary = list(vocabulary)
        self._number = {unit: place for place, unit in enumerate(self.vocabulary)}
        self._levels: list[_Level] = []
        self._tables: dict[tuple[int, bool], _Table] = {}

    # Learning

    @classmethod
    def train(
        cls,
        texts: Sequence[str],
        *,
        order: int,
        unit: str = "word",
        smoothing: str = "kneser_ney",
        cut_by: PairTokenizer | None = None,
    ) -> NgramReader:
        """Count the units of n texts.

        Raises:
            PredictorError: a setting that there is not, or no unit in any text.
        """
        _check(order, unit, smoothing)
        _check_tokenizer(unit, cut_by)
        cut = [units_of(text, unit, cut_by)[0] for text in texts]
        known = sorted({unit for units in cut for unit in units})
        if not known:
            raise PredictorError(f"texts: hold no {unit}; give at least one text that is not empty.")
        model = cls(order=order, unit=unit, smoothing=smoothing, vocabulary=[*_SPECIAL, *known], cut_by=cut_by)
        model._count([model._numbers(units) for units in cut])
        return model

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> NgramReader:
        """A model of order 1 over words, without smoothing, from how often each word occurs (1 or more times). What
        ends a text was not counted, and has the probability 0.

        Raises:
            PredictorError: no word is counted, or something is no word or no count.
        """
        known = sorted(counts)
        if not known:
            raise PredictorError("counts: hold no word; give at least one.")
        for word in known:
            if not word or word.split() != [word]:
                raise PredictorError(f"counts: {word[:40]!r} is not one word.")
            if counts[word] < 1:
                raise PredictorError(f"counts: {word[:40]!r} has the count {counts[word]}; give 1 or more.")
        model = cls(order=1, unit="word", smoothing="none", vocabulary=[*_SPECIAL, *known])
        number = np.arange(len(known), dtype=np.int64) + BEGIN + 1
        times = np.array([counts[word] for word in known], dtype=np.int64)
        model._levels.append(_Level(number, times, times))
        return model

    def _numbers(self, units: Sequence[str]) -> Ints:
        """The units by number, between the beginnings and END."""
        # "END" in a text is a word like any other, which has the place after the special ones.
        known = [self._number_of(unit) for unit in units]
        return np.array([*[BEGIN] * (self.order - 1), *known, END], dtype=np.int64)

    def _number_of(self, unit: str) -> int:
        place = self._number.get(unit, UNK)
        return place if place > BEGIN else UNK

    def _count(self, sequences: Sequence[Ints]) -> None:
        units = np.concatenate(sequences)
        predicted = units != BEGIN
        before = np.zeros(len(units), dtype=np.int64)  # The number of the sequence that ends before each place.
        ends: list[Ints] = []
        for k in range(1, self.order + 1):
            keys, first, place = np.unique(
                before * len(self.vocabulary) + units, return_index=True, return_inverse=True
            )
            place = place.reshape(-1)
            counts = np.bincount(place[predicted], minlength=len(keys))
            self._levels.append(_Level(keys, counts, counts))
            if k > 1:
                shorter = self._levels[k - 2]
                # What follows the first unit of each sequence of k, among those of k - 1 units.
                suffix = ends[-1][first][counts > 0]
                preceded = np.bincount(suffix, minlength=len(shorter.keys))
                begins = np.zeros(len(shorter.keys), dtype=bool)
                begins[ends[-1][_first_of(units, k - 1) == BEGIN]] = True
                self._levels[k - 2] = shorter._replace(preceded=np.where(begins, shorter.counts, preceded))
            ends.append(place)
            before = np.concatenate([[0], place[:-1]])

    # Predicting

    @property
    def predicted_size(self) -> int:
        """How many units can come next: the vocabulary without the beginning."""
        return len(self.vocabulary) - 1

    @property
    def vocabulary_size(self) -> int:
        """The same, as every reader says it."""
        return self.predicted_size

    def states(self, order: int | None = None) -> int:
        """Different contexts of the training texts at an order (the model's own)."""
        level = self._levels[(order or self.order) - 1]
        return len(np.unique(level.keys[level.counts > 0] // len(self.vocabulary)))

    def log_probabilities(self, text: str, *, order: int | None = None) -> Floats:
        """Of each unit of a text and of END: natural logarithms (n + 1,), -inf where a probability is 0."""
        units, _starts, _ends = units_of(text, self.unit, self.cut_by)
        return self._log_probabilities(self._numbers(units), order or self.order)

    def _log_probabilities(self, units: Ints, order: int) -> Floats:
        scored = slice(self.order - 1, None)
        if self.smoothing == "none":
            *_shorter, (number, context) = self._places(units, order)
            table = self._table(order, adjusted=False)
            counts = np.where(number >= 0, table.counts[number], 0.0)
            total = np.where(context >= 0, table.total[context], 0.0)
            share = np.divide(counts, total, out=np.zeros(len(units)), where=total > 0)
            return self._paid(units, share)[scored]
        *_lower, (share, _left) = self._smoothed(units, order)
        return self._paid(units, share)[scored]

    def _smoothed(self, units: Ints, order: int) -> Iterator[tuple[Floats, Floats]]:
        """For each number of units up to `order`, at each place the smoothed share of its unit after those before it,
        and the part of the lower order's share in it: what is left by the discounts there, 1 where nothing is known."""
        share = np.full(len(units), 1 / self.predicted_size)
        for k, (number, context) in enumerate(self._places(units, order), start=1):
            table = self._table(k, adjusted=k < order)
            total = np.where(context >= 0, table.total[context], 0.0)
            seen = total > 0
            discounted = np.where(number >= 0, table.discounted[number], 0.0)
            safe = np.where(seen, total, 1.0)
            left = np.where(seen, np.where(context >= 0, table.left[context], 0.0) / safe, 1.0)
            share = np.where(seen, discounted / safe, 0.0) + left * share
            yield share, left

    def back_off(self) -> Iterator[Iterator[tuple[list[str], float, float]]]:
        """For each order the sequences of a smoothed model of words, with log10 of the share of the last word after the
        others and of the weight by which shares of the next lower order count after the sequence; as an ARPA file has
        them. Interpolated shares are such a model: what is not listed has the lower order's share times what is left.

        Raises:
            PredictorError: "<s>" or "</s>" are words of its texts.
        """
        for word in ("<s>", "</s>"):
            if self._number.get(word, 0) > BEGIN:
                raise PredictorError(f"arpa: {word} is a word of the training texts, and in an ARPA file it is none.")
        names = ["<unk>", "</s>", "<s>", *self.vocabulary[BEGIN + 1 :]]
        for k in range(1, self.order + 1):
            yield self._backed_off(self._sequences(k), names)

    def _sequences(self, k: int) -> Ints:
        """Sequences of k units (n, k). A text begins with one beginning and not with several. Of order 1 all units that
        can come next and the beginning, each once by its name."""
        if k == 1:
            is_word = UNKNOWN in self._number and self._number[UNKNOWN] > BEGIN
            return np.array([unit for unit in range(len(self.vocabulary)) if not (is_word and unit == UNK)])[:, None]
        columns: list[Ints] = []
        keys = self._levels[k - 1].keys
        for level in range(k - 1, -1, -1):
            columns.insert(0, keys % len(self.vocabulary))
            keys = self._levels[level - 1].keys[keys // len(self.vocabulary)] if level else keys
        sequences = np.stack(columns, axis=1)
        return sequences[(sequences[:, 1:] != BEGIN).all(axis=1)]

    def _backed_off(self, sequences: Ints, names: Sequence[str]) -> Iterator[tuple[list[str], float, float]]:
        k = sequences.shape[1]
        # Every row after as many beginnings as an order needs, and followed by END, where its weight as a context is.
        begins = sequences[:, 0] == BEGIN
        rows = np.full((len(sequences), 2 * self.order + 1), UNK, dtype=np.int64)
        rows[:, self.order : self.order + k] = sequences
        rows[:, self.order + k] = END
        rows[begins, : self.order] = BEGIN
        smoothed = [
            (share.reshape(rows.shape), left.reshape(rows.shape))
            for share, left in self._smoothed(rows.reshape(-1), self.order)
        ]
        # After a beginning the whole order is known; else the sequence alone.
        last, after = self.order + k - 1, self.order + k
        share = np.where(begins, smoothed[-1][0][:, last], smoothed[k - 1][0][:, last])
        weight = np.ones(len(rows))
        for order in range(2, self.order + 1):
            # Beyond the sequence itself only beginnings stand before it.
            weight *= np.where((order == k + 1) | (begins & (order > k)), smoothed[order - 1][1][:, after], 1.0)
        with np.errstate(divide="ignore"):
            columns = np.maximum(np.log10(share), -99.0).tolist(), np.maximum(np.log10(weight), -99.0).tolist()
        for row, begin, value, left in zip(sequences.tolist(), begins.tolist(), *columns, strict=True):
            yield [names[unit] for unit in row], -99.0 if begin and k == 1 else value, left

    def _paid(self, units: Ints, share: Floats) -> Floats:
        """The logarithms of the shares of units, that of <unk> divided by how many units it may stand for."""
        return _logarithms(np.where(units == UNK, share / self._meant_by_unknown, share))

    @cached_property
    def _meant_by_unknown(self) -> int:
        """How many units <unk> may stand for; 1 over words, where nobody knows."""
        if self.unit == "word":
            return 1
        everything = _CODE_POINTS if self.cut_by is None else sum(bool(unit) for unit in self.cut_by.vocabulary)
        return max(1, everything - (len(self.vocabulary) - len(_SPECIAL)))

    def _distributions(self, before: Mapping[int, Ints], places: Sequence[int]) -> Iterator[Floats]:
        """At each of these places the share of each unit of the vocabulary (V,); 0 where nothing is known. `before`:
        by order, rising, the number of what stands before each place. A share must not be written to: places with the
        same units before them have one in common."""
        smooth = self.smoothing != "none"
        nothing = np.full(len(self.vocabulary), 1 / self.predicted_size if smooth else 0.0)
        nothing[BEGIN] = 0.0
        known: dict[tuple[int, ...], Floats] = {}
        for place in places:
            share = nothing
            way: tuple[int, ...] = ()
            for k, contexts in before.items():
                if (context := int(contexts[place])) < 0:
                    continue
                way = (*way, k, context)
                if (distribution := known.get(way)) is None:
                    distribution = self._narrowed(share, k, context, adjusted=smooth and k < self.order)
                    if len(known) * len(self.vocabulary) < _KEPT:
                        known[way] = distribution
                share = distribution
            yield share

    def _narrowed(self, share: Floats, k: int, context: int, *, adjusted: bool) -> Floats:
        """The share of each unit, given that of the next lower order."""
        table = self._table(k, adjusted=adjusted)
        total = table.total[context]
        if not total > 0:
            return share
        keys = self._levels[k - 1].keys
        low, high = np.searchsorted(keys, [context * len(self.vocabulary), (context + 1) * len(self.vocabulary)])
        following = keys[low:high] % len(self.vocabulary)
        if self.smoothing == "none":
            distribution = share.copy()
            distribution[following] = table.counts[low:high] / total
            return distribution
        distribution = table.left[context] / total * share
        distribution[following] += table.discounted[low:high] / total
        return distribution

    def _expected(self, units: Ints, detail: Detail, rng: np.random.Generator) -> Distributions:
        """What was expected at each place of a text and at its end. <unk> and END are never among the likeliest or the
        drawn ones."""
        before = {k: context for k, (_number, context) in enumerate(self._places(units, self.order), start=1)}
        if self.smoothing == "none":
            before = {self.order: before[self.order]}
        names = self._ids
        allowed = names >= 0 if detail.among is None else np.isin(names, detail.among)
        read = range(len(units) - self.order + 1)
        looked_at = read if detail.places is None or detail.samples else sorted(detail.places.intersection(read))
        entropy, mass = np.full(len(read), np.nan), np.full(len(read), np.nan)
        top: list[list[tuple[str, float]]] = [[] for _place in read]
        samples: list[list[str]] = [[] for _place in read]
        top_ids: list[list[int]] = [[] for _place in read]
        drawn: list[list[tuple[int, float]]] = [[] for _place in read]
        shares = self._distributions(before, [place + self.order - 1 for place in looked_at])
        for place, share in zip(looked_at, shares, strict=True):
            known = share[share > 0]
            entropy[place] = -(known * np.log(known)).sum() if len(known) else np.nan
            inside = np.where(allowed, share, 0.0)
            total = float(inside.sum())
            mass[place] = np.log(total) if total > 0 else -np.inf
            first = _largest(inside, detail.top)
            top[place] = [(self._string(index), float(np.log(inside[index]))) for index in first.tolist()]
            top_ids[place] = names[first].tolist()
            wanted = detail.samples if total > 0 else 0
            sample = rng.choice(len(inside), size=wanted, p=inside / total).tolist() if wanted else []
            samples[place] = [self._string(index) for index in sample]
            drawn[place] = [(int(names[index]), float(np.log(inside[index]))) for index in sample]
        return Distributions(entropy, top, samples, top_ids=top_ids, drawn=drawn, mass=mass)

    @cached_property
    def _ids(self) -> Ints:
        """The id of each unit by its tokenizer (V,), of words their number; -1 for what is no text."""
        ids: Ints = np.full(len(self.vocabulary), -1, dtype=np.int64)
        for number, unit in enumerate(self.vocabulary[BEGIN + 1 :], start=BEGIN + 1):
            ids[number] = int(unit) if self.unit == "token" else ord(unit) if self.unit == "character" else number
        return ids

    def _string(self, number: int) -> str:
        unit = self.vocabulary[number]
        return self.cut_by.vocabulary[int(unit)] if self.cut_by is not None else unit

    def _places(self, units: Ints, order: int) -> Iterator[tuple[Ints, Ints]]:
        """For each number of units up to `order`, at each place the number of the last so many units, and of those but
        the last; -1 where never seen."""
        number = np.zeros(len(units), dtype=np.int64)
        for k in range(1, order + 1):
            context = np.concatenate([[-1], number[:-1]]) if k > 1 else np.zeros_like(number)
            keys = self._levels[k - 1].keys
            wanted = context * len(self.vocabulary) + units
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            number = np.where((context >= 0) & (keys[place] == wanted), place, -1)
            yield number, context

    def _table(self, k: int, *, adjusted: bool) -> _Table:
        if (k, adjusted) not in self._tables:
            level = self._levels[k - 1]
            counts = level.preceded if adjusted else level.counts
            # The beginning is never predicted.
            counts = np.where(level.keys % len(self.vocabulary) == BEGIN, 0, counts)
            size = 1 if k == 1 else len(self._levels[k - 2].keys)
            self._tables[k, adjusted] = _Table.of(counts, level.keys // len(self.vocabulary), size)
        return self._tables[k, adjusted]

    def unigram(self) -> dict[str, float]:
        """The share of each unit among those of the training texts, without <unk> and END."""
        level = self._levels[0]
        counts = {
            self.vocabulary[int(key)]: int(count)
            for key, count in zip(level.keys, level.counts, strict=True)
            if count and key > BEGIN
        }
        total = sum(counts.values())
        return {unit: count / total for unit, count in counts.items()}

    # Reading

    @property
    def tokenizer(self) -> str:
        """SHA-256 of what cuts a text."""
        if self.cut_by is not None:
            return self.cut_by.sha256
        return hashlib.sha256(json.dumps([self.unit, self.vocabulary]).encode()).hexdigest()

    @property
    def cutter(self) -> str:
        """SHA-256 of the tokenizer by whose ids it names units; empty for words."""
        if self.cut_by is not None:
            return self.cut_by.sha256
        return CharacterTokenizer.sha256 if self.unit == "character" else ""

    @property
    def source(self) -> str:
        """SHA-256 of all that its readings depend on."""
        digest = hashlib.sha256(json.dumps(self._facts(), sort_keys=True).encode())
        for level in self._levels:
            for column in level:
                digest.update(column.astype("<i8").tobytes())
        return digest.hexdigest()

    def each(
        self, texts: Sequence[Text], *, detail: Detail = NO_DETAIL, progress: Progress | None = None
    ) -> Iterator[tuple[int, TextReading]]:
        """As in `TextReader`; the last token of each text is its END."""
        if detail.boundary:
            raise PredictorError("boundary: an n-gram model does not say where a word begins; leave it out.")
        tokenizer = self.tokenizer
        rng = np.random.default_rng(detail.seed)
        for number, text in enumerate(texts):
            units, starts, ends = units_of(text.text, self.unit, self.cut_by)
            length = len(text.text)
            starts, ends = without_gaps(starts, ends, length)
            numbers = self._numbers(units)
            values = np.minimum(self._log_probabilities(numbers, self.order), 0.0)
            tokens = make_tokens(np.append(starts, length), np.append(ends, length), values)
            expected = self._expected(numbers, detail, rng) if detail.is_wanted else None
            yield number, TextReading(tokens, tokenizer, reads_end=True, distributions=expected)
            report(progress, number + 1, len(texts), "texts read")

    def unknown_tokens(self, texts: Sequence[Text]) -> list[NDArray[np.bool_]]:
        """As in `TextReader`: words that training lacked. Characters and tokens are distinguished."""
        numbers = [[self._number_of(unit) for unit in units_of(text.text, self.unit, self.cut_by)[0]] for text in texts]
        return [np.array([number == UNK and self.unit == "word" for number in row], dtype=np.bool_) for row in numbers]

    def score(self, texts: Sequence[str], *, order: int | None = None) -> TextScore:
        """What texts cost at an order, END counted as a token of each."""
        return self._score([self._cut(text) for text in texts], order or self.order)

    def _cut(self, text: str) -> _CutText:
        units = self._numbers(units_of(text, self.unit, self.cut_by)[0])
        return _CutText(units, words=len(text.split()), characters=len(text))

    def _score(self, cut: Sequence[_CutText], order: int) -> TextScore:
        return added(
            [
                TextScore.of(
                    np.minimum(self._log_probabilities(text.units, order), 0.0),
                    words=text.words,
                    characters=text.characters,
                )
                for text in cut
            ]
        )

    def overfitting(self, train: Sequence[str], test: Sequence[str]) -> list[OrderLine]:
        """A line for every order up to the model's own, on its training texts and on others."""
        cut_train, cut_test = ([self._cut(text) for text in texts] for texts in (train, test))
        lines = []
        for order in range(1, self.order + 1):
            of_train = self._score(cut_train, order)
            both = TrainTest(of_train, self._score(cut_test, order)) if test else None
            lines.append(OrderLine(order, self.states(order), both, of_train))
        return lines

    # Files

    def _facts(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "order": self.order,
            "unit": self.unit,
            "smoothing": self.smoothing,
            "vocabulary": self.vocabulary,
            **({} if self.cut_by is None else {"tokenizer": self.cut_by.sha256}),
            # Readings of the time when <unk> was free have no such line, and so another source.
            **({} if self.unit == "word" else {"unknown": "shared"}),
        }

    def save(self, folder: Path) -> None:
        """Write the model into an existing folder: JSON and arrays, never pickled."""
        (folder / "ngram.json").write_text(json.dumps(self._facts(), ensure_ascii=True), encoding="utf-8")
        if self.cut_by is not None:
            (folder / "tokenizer.json").write_text(self.cut_by.to_json(), encoding="utf-8")
        for k, level in enumerate(self._levels, start=1):
            with (folder / f"level_{k}.npy").open("wb") as file:
                np.save(file, np.stack(level).astype("<i8"), allow_pickle=False)

    @classmethod
    def load(cls, folder: Path) -> NgramReader:
        """Read back what `save` wrote.

        Raises:
            CheckpointError: a file is missing or damaged, or was written by another version.
        """
        try:
            facts = json.loads((folder / "ngram.json").read_text(encoding="utf-8"))
            if facts["format"] != FORMAT:
                raise CheckpointError(
                    f"n-gram model: its files have format {facts['format']!r}, this version reads {FORMAT}; train it "
                    "again."
                )
            cut_by = None
            if facts["unit"] == "token":
                cut_by = PairTokenizer.from_json((folder / "tokenizer.json").read_text(encoding="utf-8"))
            model = cls(**{name: facts[name] for name in ("order", "unit", "smoothing", "vocabulary")}, cut_by=cut_by)
            for k in range(1, model.order + 1):
                with (folder / f"level_{k}.npy").open("rb") as file:
                    columns = np.load(file, allow_pickle=False)
                model._levels.append(_Level(*columns.astype(np.int64)))
        except CheckpointError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise CheckpointError(f"n-gram model: its files cannot be read ({exc}); train it again.") from exc
        return model


class _Table(NamedTuple):
    """Counts of one order, and what smoothing needs of them: the counts less their discounts, and by context the sum of
    the counts and the sum of the discounts."""

    counts: Floats
    discounted: Floats
    total: Floats
    left: Floats

    @classmethod
    def of(cls, counts: Ints, context: Ints, size: int) -> _Table:
        discount = np.array([0.0, *_discounts(counts)])[np.minimum(counts, 3)]
        return cls(
            counts.astype(np.float64),
            counts - discount,
            np.bincount(context, weights=counts.astype(np.float64), minlength=size).astype(np.float64),
            np.bincount(context, weights=discount, minlength=size).astype(np.float64),
        )


def units_of(text: str, unit: str, cut_by: PairTokenizer | None = None) -> tuple[list[str], Ints, Ints]:
    """The words (what stands between white space), characters or tokens (by id) of a text, and where each starts and
    ends."""
    if cut_by is not None:
        cut = cut_by.cut(text)
        return [str(unit) for unit in cut["id"].tolist()], cut["start"].astype(np.int64), cut["end"].astype(np.int64)
    if unit == "character":
        places = np.arange(len(text), dtype=np.int64)
        return list(text), places, places + 1
    words = list(_WORD.finditer(text))
    return (
        [word[0] for word in words],
        np.array([word.start() for word in words], dtype=np.int64),
        np.array([word.end() for word in words], dtype=np.int64),
    )


def _first_of(units: Ints, k: int) -> Ints:
    """The first of the k units that end at each place."""
    return np.concatenate([np.full(k - 1, BEGIN), units[: len(units) - k + 1]]) if k > 1 else units


def _discounts(counts: Ints) -> tuple[float, float, float]:
    """The three discounts of modified Kneser-Ney smoothing, for counts of 1, of 2, and of 3 or more."""
    ones, twos, threes, fours = (int(np.count_nonzero(counts == times)) for times in (1, 2, 3, 4))
    if not (ones and twos and threes and fours):
        return _FALLBACK
    y = ones / (ones + 2 * twos)
    discounts = (1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos, 3 - 4 * y * fours / threes)
    return (
        discounts
        if all(0 < discount <= most for discount, most in zip(discounts, (1, 2, 3), strict=True))
        else _FALLBACK
    )


def _largest(shares: Floats, count: int) -> Ints:
    """The places of the `count` largest shares above 0, the largest first; of equal ones the first."""
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    positive = np.flatnonzero(shares > 0)
    if count < len(positive):
        above = shares[positive]
        positive = positive[above >= np.partition(above, -count)[-count]]
    ordered: Ints = positive[np.argsort(-shares[positive], kind="stable")][:count]
    return ordered


def _logarithms(shares: Floats) -> Floats:
    return np.log(shares, out=np.full(len(shares), -np.inf), where=shares > 0)


def _check_tokenizer(unit: str, cut_by: PairTokenizer | None) -> None:
    if (unit == "token") != (cut_by is not None):
        raise PredictorError("tokenizer: an n-gram model over tokens needs one, and no other does.")


def _check(order: int, unit: str, smoothing: str) -> None:
    if not 1 <= order <= HIGHEST_ORDER:
        raise PredictorError(f"order: {order!r} must lie between 1 and {HIGHEST_ORDER}.")
    if unit not in UNITS:
        raise PredictorError(f"unit: {unit!r} is not one of {', '.join(UNITS)}.")
    if smoothing not in SMOOTHINGS:
        raise PredictorError(f"smoothing: {smoothing!r} is not one of {', '.join(SMOOTHINGS)}.")
