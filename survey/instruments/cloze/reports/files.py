"""Norms and readings that somebody has: CSV files, checked as a whole before anything is worked out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from survey.instruments.cloze.analysis.normalising import normalised
from survey.services.banks.csv_rows import nats_of, number_or_nan, row_file, whole_of
from survey.services.banks.decoding import json_of
from survey.services.banks.importing import Problems

NORMS = ("sentence", "position", "word")
COUNTS = ("n", "k", "k_exact", "k_lenient", "distinct", "answers", "surprisal")
# What else our own cloze.csv has, and what describes a word.
PASSED_OVER = ("p", "low", "high", "entropy", "source")
DESCRIBING = ("length", "log_frequency", "word_class")
READINGS = ("model", "sentence", "position", "surprisal")
FURTHER = ("surprisal_corrected", "entropy", "word", "family", "training_mb", "vocabulary")
ENDS = ".!?…。！？؟"
CLOSES = "\"'”’»)]}"


@dataclass(frozen=True, eq=False)
class NormsFile:
    """W rows of a file of norms. surprisal: NaN where n and k stand instead; n 0 where a surprisal does, or neither.
    times: numbers of the further columns, NaN where a cell is empty. ends_known: whether the file tells where sentences
    end."""

    sentence: Sequence[str]
    position: np.ndarray
    word: Sequence[str]
    n: np.ndarray
    k: np.ndarray
    distinct: np.ndarray
    surprisal: np.ndarray
    log_frequency: np.ndarray
    word_class: Sequence[str]
    times: Mapping[str, np.ndarray]
    is_last: np.ndarray
    ends_known: bool
    distinct_known: bool
    frequent: Sequence[str] = ()
    notes: Sequence[str] = ()
    """What a reader of the figures should know of the file."""


@dataclass(frozen=True, eq=False)
class ReadModel:
    """One model of a file of readings, by sentence and position."""

    name: str
    surprisal: Mapping[tuple[str, int], float]
    corrected: Mapping[tuple[str, int], float]
    entropy: Mapping[tuple[str, int], float]
    family: str = ""
    training_mb: float | None = None
    vocabulary: int | None = None
    lines: Mapping[tuple[str, int], int] = field(default_factory=dict)


def read_norms(path: Path, *, lenient: bool, times: Sequence[str] = ()) -> NormsFile:
    """
    Args:
        lenient: where a file has both counts of matches, which of them is taken.
        times: the columns that are reading times; without it all that this file has beside the known ones.

    Raises:
        FileErrors: with every problem.
    """
    problems = Problems()
    file = row_file(path, NORMS, problems)
    problems.raise_if_any()
    header, rows = file.header, file.rows
    has_counts = "n" in header and any(name in header for name in ("k", "k_exact", "k_lenient"))
    if not has_counts and "surprisal" not in header:
        problems.add(str(path), 1, "header", "has neither n and k nor surprisal: add the counts or the surprisal")
    if not rows:
        problems.add(str(path), 1, "file", "holds no position: give at least one")
    notes = list(file.notes)
    further = _times_of(path, header, rows, times, problems, notes)
    problems.raise_if_any()
    reader = _NormReader(str(path), problems, lenient=lenient, has_counts=has_counts)
    for line, row in rows:
        reader.add(line, row, further)
    if reader.unknown == len(rows):
        problems.add(str(path), 1, "surprisal", "is empty in every row: give people's surprisal, or n and k")
    problems.raise_if_any()
    if reader.unknown:
        notes.append(f"{reader.unknown} positions have neither people's surprisal nor n and k, and are left out")
    return reader.made(further, notes)


def _times_of(
    path: Path,
    header: Sequence[str],
    rows: Sequence[tuple[int, Mapping[str, str]]],
    wanted: Sequence[str],
    problems: Problems,
    notes: list[str],
) -> list[str]:
    """The columns that are reading times: those that are named, or all further ones that hold a number."""
    known = {*NORMS, *COUNTS, *PASSED_OVER, *DESCRIBING}
    for name in wanted:
        if name not in header:
            problems.add(str(path), 1, "header", f"has no column {name!r}, which --times names")
    if wanted:
        return list(wanted)
    further = [name for name in header if name not in known]
    texts = [name for name in further if not any(_is_number(row[name]) for _line, row in rows)]
    if texts:
        notes.append(f"columns without a number are passed over: {', '.join(texts)}")
    return [name for name in further if name not in texts]


def _is_number(text: str) -> bool:
    value = nats_of(text, signed=True)
    return value is not None and math.isfinite(value)


class _NormReader:
    def __init__(self, file: str, problems: Problems, *, lenient: bool, has_counts: bool) -> None:
        self.file, self.problems, self.has_counts = file, problems, has_counts
        self.own_k = ("k", "k_lenient", "k_exact") if lenient else ("k", "k_exact", "k_lenient")
        self.first: dict[tuple[str, int], int] = {}
        self.sentence: list[str] = []
        self.position: list[int] = []
        self.word: list[str] = []
        self.numbers: list[tuple[int, int, int, float, float]] = []
        self.word_class: list[str] = []
        self.frequent: list[str] = []
        self.columns: dict[str, list[float]] = {}
        self.distinct_known = True
        self.unknown = 0

    def add(self, line: int, row: Mapping[str, str], further: Sequence[str]) -> None:
        before = len(self.problems)
        sentence, word = row["sentence"].strip(), row["word"].strip()
        position = whole_of(row["position"])
        if not sentence:
            self._wrong(line, "sentence", "is empty: give its id or its text")
        if not word or len(word.split()) > 1:
            self._wrong(line, "word", f"{word[:40]!r} is not one word")
        if position is None:
            self._wrong(line, "position", f"{row['position'][:20]!r} is no whole number from 0")
            return
        self._check_text(line, sentence, position, word)
        if (other := self.first.setdefault((sentence, position), line)) != line:
            self._wrong(line, "position", f"{position} of this sentence stands already in line {other}: keep one")
        numbers = self._numbers(line, row, word)
        times = {name: self._number(line, name, row[name]) for name in further}
        if len(self.problems) > before or numbers is None:
            return
        self.sentence.append(sentence)
        self.position.append(position)
        self.word.append(word)
        self.numbers.append(numbers)
        self.word_class.append(row.get("word_class", "").strip())
        for name, value in times.items():
            self.columns.setdefault(name, []).append(value)

    def _check_text(self, line: int, sentence: str, position: int, word: str) -> None:
        """A sentence with white space is the text itself."""
        words = sentence.split()
        if len(words) == 1:
            return
        if position >= len(words):
            self._wrong(line, "position", f"{position} lies outside the sentence: its words are 0 to {len(words) - 1}")
        elif normalised(words[position]) != normalised(word):
            self._wrong(
                line,
                "word",
                f"{word[:40]!r} is not what stands at {position}: {words[position][:40]!r}",
            )

    def _numbers(self, line: int, row: Mapping[str, str], word: str) -> tuple[int, int, int, float, float] | None:
        frequency = self._number(line, "log_frequency", row.get("log_frequency", ""))
        own = next((name for name in self.own_k if name in row), "")
        if not self.has_counts or not (row["n"].strip() or row[own].strip()):
            value = nats_of(row.get("surprisal", ""))
            if value is None or math.isinf(value):
                self._wrong(line, "surprisal", f"{row['surprisal'][:20]!r} is no surprisal: it must be 0 or more")
                return None
            self.unknown += math.isnan(value)  # Said once for all.
            self.frequent.append("")
            return 0, 0, 0, value, frequency
        n, k = whole_of(row["n"]), whole_of(row[own])
        if n is None or n < 1:
            self._wrong(line, "n", f"{row['n'][:20]!r} is no number of answers: it must be 1 or more")
            return None
        if k is None or k > n:
            self._wrong(line, own, f"{row[own][:20]!r} is no number of matches: it must be 0 to n, {n}")
            return None
        distinct = self._distinct(line, row, n, k, normalised(word))
        return n, k, distinct, math.nan, frequency

    def _distinct(self, line: int, row: Mapping[str, str], n: int, k: int, word: str) -> int:
        if row.get("answers", "").strip():
            counts = _answers(row["answers"])
            if counts is None or sum(counts.values()) != n:
                self._wrong(line, "answers", f"is no JSON object of words with counts that sum to n, {n}")
                return 0
            ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
            self.frequent.append(", ".join(f"{one} {count}" for one, count in ordered[:5]))
            # Slips that were counted as the word are no distinct answers of their own.
            return max(
                1, len(counts) - max(0, sum(_one_slip(one, word) for one in counts) if k > counts.get(word, 0) else 0)
            )
        self.frequent.append("")
        if row.get("distinct", "").strip():
            found = whole_of(row["distinct"])
            if found is None or not 1 <= found <= n:
                self._wrong(line, "distinct", f"{row['distinct'][:20]!r} is no number of distinct answers, 1 to {n}")
                return 0
            return found
        self.distinct_known = False
        return (k > 0) + (k < n)

    def _number(self, line: int, name: str, text: str) -> float:
        """The number of a cell; NaN where it is empty."""
        value = number_or_nan(text)
        if value is None:
            self._wrong(line, name, f"{text[:20]!r} is no number; a further column is a reading time in milliseconds")
            return math.nan
        return value

    def _wrong(self, line: int, name: str, message: str) -> None:
        self.problems.add(self.file, line, name, message)

    def made(self, further: Sequence[str], notes: Sequence[str]) -> NormsFile:
        n, k, distinct, surprisal, frequency = (np.array(column) for column in zip(*self.numbers, strict=True))
        is_last, known = _ends(self.sentence, self.position, self.word)
        return NormsFile(
            self.sentence,
            np.array(self.position, dtype=np.int64),
            self.word,
            n.astype(np.int64),
            k.astype(np.int64),
            distinct.astype(np.int64),
            surprisal.astype(np.float64),
            frequency.astype(np.float64),
            self.word_class,
            {name: np.array(self.columns[name], dtype=np.float64) for name in further},
            is_last,
            known,
            self.distinct_known,
            self.frequent,
            notes,
        )


def _one_slip(one: str, word: str) -> bool:
    from survey.instruments.cloze.analysis.normalising import SHORTEST_LENIENT, is_one_slip

    return one != word and len(word) >= SHORTEST_LENIENT and is_one_slip(one, word)


def _ends(sentences: Sequence[str], positions: Sequence[int], words: Sequence[str]) -> tuple[np.ndarray, bool]:
    """Which rows are the last word of their sentence, and whether the file tells. Where a sentence is given as its
    text, that says so; else the highest position does, if its word ends with the mark of a sentence."""
    highest: dict[str, int] = {}
    for sentence, position in zip(sentences, positions, strict=True):
        highest[sentence] = max(highest.get(sentence, 0), position)
    found, known = np.zeros(len(words), dtype=bool), False
    for row, (sentence, position, word) in enumerate(zip(sentences, positions, words, strict=True)):
        length = len(sentence.split())
        if length > 1:
            known, found[row] = True, position == length - 1
        elif position == highest[sentence] and word.rstrip(CLOSES)[-1:] in ENDS and word.rstrip(CLOSES):
            known, found[row] = True, True
    return found, known


def read_readings(path: Path, norms: NormsFile) -> list[ReadModel]:
    """The models of a file of readings. Rows of positions that the norms lack are kept: reading times need them.

    Raises:
        FileErrors: with every problem, and the first word that is not the norms' word.
    """
    problems = Problems()
    file = str(path)
    words = {
        (sentence, int(position)): word
        for sentence, position, word in zip(norms.sentence, norms.position, norms.word, strict=True)
    }
    made: dict[str, ReadModel] = {}
    misaligned = False
    for line, row in row_file(path, READINGS, problems).rows:
        name, sentence, position = row["model"].strip(), row["sentence"].strip(), whole_of(row["position"])
        value = nats_of(row["surprisal"])
        if not name:
            problems.add(file, line, "model", "is empty: name what read the sentence")
        if position is None:
            problems.add(file, line, "position", f"{row['position'][:20]!r} is no whole number from 0")
        if value is None:
            problems.add(file, line, "surprisal", f"{row['surprisal'][:20]!r} is no surprisal: it must be 0 or more")
        if not name or position is None or value is None:
            continue
        key = (sentence, position)
        own = row.get("word", "").strip()
        if own and key in words and not misaligned and normalised(own) != normalised(words[key]):
            misaligned = True
            problems.add(
                file,
                line,
                "word",
                f"{own[:40]!r} is not the norms' word at this position, {words[key][:40]!r}: the model read "
                "another text",
            )
        model = made.get(name)
        if model is None:
            model = made[name] = ReadModel(name, {}, {}, {}, *_facts(file, line, row, problems), lines={})
        if key in model.lines:
            problems.add(
                file, line, "position", f"{name} has this position already in line {model.lines[key]}: keep one"
            )
        model.lines[key] = line  # type: ignore[index]
        if not math.isnan(value):
            model.surprisal[key] = value  # type: ignore[index]
        for column, into in (("surprisal_corrected", model.corrected), ("entropy", model.entropy)):
            further = nats_of(row.get(column, ""), signed=True)
            if further is None:
                problems.add(file, line, column, f"{row[column][:20]!r} is no number")
            elif not math.isnan(further):
                into[key] = further  # type: ignore[index]
    if not made and not problems:
        problems.add(file, 1, "file", "holds no reading: give at least one")
    problems.raise_if_any()
    return list(made.values())


def _facts(file: str, line: int, row: Mapping[str, str], problems: Problems) -> tuple[str, float | None, int | None]:
    found: list[float | None] = []
    for name in ("training_mb", "vocabulary"):
        text = row.get(name, "").strip()
        value = nats_of(text) if text else math.nan
        if value is None or value == 0:
            problems.add(file, line, name, f"{text[:20]!r} is no number above 0")
        found.append(None if value is None or math.isnan(value) else value)
    size, vocabulary = found
    return row.get("family", "").strip(), size, None if vocabulary is None else int(vocabulary)


def _answers(text: str) -> dict[str, int] | None:
    try:
        found = json_of(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(type(one) is int and one > 0 for one in found.values()):
        return None
    return found
