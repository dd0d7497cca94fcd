"""Norms and readings that somebody has: CSV files, checked as a whole before anything is worked out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import PlainValidator

from predictors.cell_numbers import number_of
from survey.input_tables import cells
from survey.input_tables.decoding import json_of
from survey.input_tables.problems import Problems
from survey.input_tables.rows import RowFile, TableRow, column, declared, read_rows
from survey.instruments.cloze.analysis.normalising import normalised
from survey.services.results.people_and_models.model_comparison import NOTHING_KNOWN, ModelFacts

# What else our own cloze.csv has.
PASSED_OVER = ("p", "low", "high", "entropy", "source", "length")
ENDS = ".!?…。！？؟"
CLOSES = "\"'”’»)]}"


def _word(text: str) -> str:
    word = text.strip()
    if not word or len(word.split()) > 1:
        raise ValueError(f"{word[:40]!r} is not one word")
    return word


@declared
class NormRow(TableRow):
    """What people gave for a word: n and k, or surprisal. Every further column with a number is a reading time, unless
    `--times` names those that are."""

    read_by = "`cloze --norms FILE`"
    sentence: Annotated[str, cells.text("give its id or its text")] = column("The sentence's id, or the text itself.")
    position: cells.Position = column("How many words stand before the word.")
    word: Annotated[str, PlainValidator(_word)] = column("The word that stands there.")
    n: str = column("How many people answered, 1 or more.", "")
    k: str = column("How many of them gave the word.", "")
    k_exact: str = column("In place of k, letter for letter.", "")
    k_lenient: str = column("In place of k, with slips; taken with `--lenient`.", "")
    distinct: str = column("How many different answers were given.", "")
    answers: str = column("In place of distinct: JSON, every answer with its count.", "")
    surprisal: str = column("In place of n and k, in nats; empty or NA leaves the position out.", "")
    log_frequency: cells.Number = column("log10 of how frequent the word is.", math.nan)
    word_class: cells.Stripped = column("The word's class.", "")


@declared
class ReadingRow(TableRow):
    """What a model gave to a word of the norms."""

    read_by = "`cloze --readings FILE`"
    model: Annotated[str, cells.text("name what read the sentence")] = column("What read the sentence.")
    sentence: cells.Stripped = column("As in the norms.")
    position: cells.Position = column("As in the norms.")
    surprisal: cells.Surprisal = column("In nats; empty where it is not known.")
    word: cells.Stripped = column("The word, which must be that of the norms.", "")
    surprisal_corrected: cells.AnyNumber = column("Surprisal of the word as a whole, where its end counts.", math.nan)
    entropy: cells.AnyNumber = column("Of what the model expects there.", math.nan)
    unknown: cells.ZeroOrOne = column("1 where the model read it as one class of everything unknown.", math.nan)
    corpus: cells.Stripped = column("What the model was trained on; its first row says it.", "")
    architecture: cells.Stripped = column("Its kind, as corpus.", "")
    size: cells.Stripped = column("Its size in units of your own, as corpus.", "")
    training_mb: cells.Stripped = column("Megabytes of text that it learnt from, as corpus.", "")
    vocabulary: cells.Stripped = column("How many tokens it knows, as corpus.", "")


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
    surprisal: dict[tuple[str, int], float]
    corrected: dict[tuple[str, int], float]
    entropy: dict[tuple[str, int], float]
    facts: ModelFacts = NOTHING_KNOWN
    unknown: set[tuple[str, int]] = field(default_factory=set)
    lines: dict[tuple[str, int], int] = field(default_factory=dict)


def read_norms(path: Path, *, lenient: bool, times: Sequence[str] = ()) -> NormsFile:
    """
    Args:
        lenient: where a file has both counts of matches, which of them is taken.
        times: the columns that are reading times; without it all that this file has, apart from the known ones.

    Raises:
        FileErrors: with every problem.
    """
    rows = read_rows(NormRow, path, Problems())
    rows.problems.raise_if_any()
    header, notes = rows.header, list(rows.notes)
    has_counts = "n" in header and any(name in header for name in ("k", "k_exact", "k_lenient"))
    if not has_counts and "surprisal" not in header:
        rows.wrong(1, "header", "has neither n and k nor surprisal: add the counts or the surprisal")
    if not rows.count:
        rows.wrong(1, "file", "holds no position: give at least one")
    further = _times_of(rows, times, notes)
    rows.refuse()
    reader = _NormReader(rows, lenient=lenient, has_counts=has_counts)
    for row in rows:
        reader.add(row)
    columns = {name: _column(rows, name) for name in further}
    rows.problems.found.sort(key=lambda problem: problem.line or 0)
    if reader.unknown == rows.count:
        rows.wrong(1, "surprisal", "is empty in every row: give people's surprisal, or n and k")
    rows.refuse()
    if reader.unknown:
        notes.append(f"{reader.unknown} positions have neither people's surprisal nor n and k, and are left out")
    return reader.made(columns, notes)


def _times_of(rows: RowFile[NormRow], wanted: Sequence[str], notes: list[str]) -> Sequence[str]:
    """The columns that are reading times: those that are named, or all further ones that hold a number."""
    for name in wanted:
        if name not in rows.header:
            rows.wrong(1, "header", f"has no column {name!r}, which --times names")
    if wanted:
        return wanted
    further = [name for name in rows.header if name not in (*NormRow.columns(), *PASSED_OVER)]
    texts = [name for name in further if not any(number_of(text) is not None for _line, text in rows.column(name))]
    if texts:
        notes.append(f"columns without a number are passed over: {', '.join(texts)}")
    return [name for name in further if name not in texts]


def _column(rows: RowFile[NormRow], name: str) -> np.ndarray:
    """The numbers of a further column, NaN where a cell is empty."""
    values = []
    for line, text in rows.column(name):
        value = math.nan if text.strip().casefold() in cells.UNKNOWN else number_of(text)
        if value is None:
            rows.wrong(line, name, f"{text[:20]!r} is no number; a further column is a reading time in milliseconds")
        values.append(value)
    return np.array(values, dtype=np.float64)


class _NormReader:
    def __init__(self, rows: RowFile[NormRow], *, lenient: bool, has_counts: bool) -> None:
        self.rows, self.wrong, self.has_counts = rows, rows.wrong, has_counts
        own = ("k", "k_lenient", "k_exact") if lenient else ("k", "k_exact", "k_lenient")
        self.own_k = next((name for name in own if name in rows.header), "")
        self.taken: list[NormRow] = []
        self.numbers: list[tuple[int, int, int, float]] = []
        self.frequent: list[str] = []
        self.distinct_known = True
        self.unknown = 0

    def add(self, row: NormRow) -> None:
        self._check_text(row)
        key = (row.sentence, row.position)
        self.rows.once(row, "position", key, f"{row.position} of this sentence stands already")
        self.numbers.append(self._numbers(row))
        self.taken.append(row)

    def _check_text(self, row: NormRow) -> None:
        """A sentence with white space is the text itself."""
        words = row.sentence.split()
        if len(words) == 1:
            return
        if row.position >= len(words):
            message = f"{row.position} lies outside the sentence: its words are 0 to {len(words) - 1}"
            self.wrong(row.line, "position", message)
        elif normalised(own := words[row.position]) != normalised(row.word):
            self.wrong(row.line, "word", f"{row.word[:40]!r} is not what stands at {row.position}: {own[:40]!r}")

    def _numbers(self, row: NormRow) -> tuple[int, int, int, float]:
        """n, k, how many distinct answers, and the surprisal; zeros where something is wrong with them."""
        own = getattr(row, self.own_k) if self.own_k else ""
        if not self.has_counts or not (row.n.strip() or own.strip()):
            return 0, 0, 0, self._surprisal(row)
        n, k = cells.whole_of(row.n), cells.whole_of(own)
        if n is None or n < 1:
            self.wrong(row.line, "n", f"{row.n[:20]!r} is no number of answers: it must be 1 or more")
        elif k is None or k > n:
            self.wrong(row.line, self.own_k, f"{own[:20]!r} is no number of matches: it must be 0 to n, {n}")
        else:
            return n, k, self._distinct(row, n, k), math.nan
        return 0, 0, 0, math.nan

    def _surprisal(self, row: NormRow) -> float:
        self.frequent.append("")
        if row.surprisal.strip().casefold() in cells.UNKNOWN:
            self.unknown += 1  # Said once for all.
            return math.nan
        value = number_of(row.surprisal)
        if value is None or value < 0:
            self.wrong(row.line, "surprisal", f"{row.surprisal[:20]!r} is no surprisal: it must be 0 or more")
            return math.nan
        return value

    def _distinct(self, row: NormRow, n: int, k: int) -> int:
        if row.answers.strip():
            counts = _answers(row.answers)
            if counts is None or sum(counts.values()) != n:
                self.wrong(row.line, "answers", f"is no JSON object of words with counts that sum to n, {n}")
                return 0
            ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
            self.frequent.append(", ".join(f"{word} {count}" for word, count in ordered[:5]))
            # Slips that were counted as the word are no distinct answers of their own.
            word = normalised(row.word)
            slips = sum(_one_slip(count, word) for count in counts) if k > counts.get(word, 0) else 0
            return max(1, len(counts) - slips)
        self.frequent.append("")
        if row.distinct.strip():
            distinct = cells.whole_of(row.distinct)
            if distinct is None or not 1 <= distinct <= n:
                self.wrong(row.line, "distinct", f"{row.distinct[:20]!r} is no number of distinct answers, 1 to {n}")
                return 0
            return distinct
        self.distinct_known = False
        return (k > 0) + (k < n)

    def made(self, times: Mapping[str, np.ndarray], notes: Sequence[str]) -> NormsFile:
        n, k, distinct, surprisal = (np.array(column) for column in zip(*self.numbers, strict=True))
        is_last, known = _ends(self.taken)
        return NormsFile(
            [row.sentence for row in self.taken],
            np.array([row.position for row in self.taken], dtype=np.int64),
            [row.word for row in self.taken],
            n.astype(np.int64),
            k.astype(np.int64),
            distinct.astype(np.int64),
            surprisal.astype(np.float64),
            np.array([row.log_frequency for row in self.taken], dtype=np.float64),
            [row.word_class for row in self.taken],
            times,
            is_last,
            known,
            self.distinct_known,
            self.frequent,
            notes,
        )


def _one_slip(entered: str, word: str) -> bool:
    from survey.instruments.cloze.analysis.normalising import SHORTEST_LENIENT, is_one_slip

    return entered != word and len(word) >= SHORTEST_LENIENT and is_one_slip(entered, word)


def _ends(rows: Sequence[NormRow]) -> tuple[np.ndarray, bool]:
    """Which rows are the last word of their sentence, and whether the file tells. Where a sentence is given as its
    text, that says so; else the highest position does, if its word ends with the mark of a sentence."""
    highest: dict[str, int] = {}
    for row in rows:
        highest[row.sentence] = max(highest.get(row.sentence, 0), row.position)
    are_last, known = np.zeros(len(rows), dtype=bool), False
    for number, row in enumerate(rows):
        length, word = len(row.sentence.split()), row.word.rstrip(CLOSES)
        if length > 1:
            known, are_last[number] = True, row.position == length - 1
        elif row.position == highest[row.sentence] and word and word[-1] in ENDS:
            known, are_last[number] = True, True
    return are_last, known


def read_readings(path: Path, norms: NormsFile) -> list[ReadModel]:
    """The models of a file of readings. Rows of positions that the norms lack are kept: reading times need them.

    Raises:
        FileErrors: with every problem, and the first word that is not the norms' word.
    """
    words = {
        (sentence, int(position)): word
        for sentence, position, word in zip(norms.sentence, norms.position, norms.word, strict=True)
    }
    rows = read_rows(ReadingRow, path, Problems())
    made: dict[str, ReadModel] = {}
    misaligned = False
    for row in rows:
        key = (row.sentence, row.position)
        word = words.get(key, "")
        if row.word and word and not misaligned and normalised(row.word) != normalised(word):
            misaligned = True
            message = f"{row.word[:40]!r} is not the norms' word at this position, {word[:40]!r}"
            rows.wrong(row.line, "word", f"{message}: the model read another text")
        model = made.get(row.model)
        if model is None:
            model = ReadModel(row.model, {}, {}, {}, ModelFacts.of_row(row, rows))
            made[row.model] = model
        model.lines.setdefault(key, row.line)
        rows.once(row, "position", (row.model, key), f"{row.model} has this position already")
        for value, into in (
            (row.surprisal, model.surprisal),
            (row.surprisal_corrected, model.corrected),
            (row.entropy, model.entropy),
        ):
            if not math.isnan(value):
                into[key] = value
        if row.unknown == 1:
            model.unknown.add(key)
    rows.refuse("" if made else "holds no reading: give at least one")
    return list(made.values())


def _answers(text: str) -> dict[str, int] | None:
    try:
        counts = json_of(text)
    except ValueError:
        return None
    if not isinstance(counts, dict) or not all(type(count) is int and count > 0 for count in counts.values()):
        return None
    return counts
