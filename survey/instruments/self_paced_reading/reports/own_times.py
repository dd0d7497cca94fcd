"""`reading --times FILE --readings FILE`: the whole analysis of reading times that somebody has, without a study."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from predictors.evaluation.reading_times import TimedWords
from predictors.word_forms import normalised
from survey.contracts.reports import Findings
from survey.exceptions import HunchError
from survey.figures.words import integer, short
from survey.instruments.self_paced_reading.analysis.cleaning import CleaningRules, ReadTimes
from survey.instruments.self_paced_reading.forms import LONGEST_MS
from survey.services.banks.csv_rows import csv_rows, nats_of, number_or_nan, whole_of
from survey.services.banks.frequencies import log_frequencies
from survey.services.banks.importing import Problems

from . import findings
from .material import ReadingMaterial

TIMES = ("passage", "position", "word", "time")
READINGS = ("model", "passage", "position", "surprisal")
NOBODY = ""
Key = tuple[str, int]


@dataclass(frozen=True)
class TimeSettings:
    """How times are cleaned and fitted; the defaults are those of a study. frequencies: a file, or ngram:NAME."""

    rules: CleaningRules = field(default_factory=CleaningRules)
    previous: int = 2
    frequencies: str = ""
    keeps_punctuation: bool = False
    fit: str = findings.LINEAR

    def check(self) -> None:
        """
        Raises:
            HunchError: a setting is out of range.
        """
        if not 0 <= self.rules.shortest < self.rules.longest:
            raise HunchError(
                f"--shortest: {short(self.rules.shortest)} must be 0 or more and below --longest, "
                f"{short(self.rules.longest)}"
            )
        if not 0 <= self.rules.least_right <= 1:
            raise HunchError(f"--least-right: {short(self.rules.least_right)} is no share from 0 to 1")
        if not 1 <= self.previous <= 3:
            raise HunchError(f"--previous: {self.previous} is not from 1 to 3")
        if self.fit not in findings.FITS:
            raise HunchError(f"--model: {self.fit!r} is none of: {', '.join(findings.FITS)}")


@dataclass(eq=False)
class _TimesFile:
    """Words in the file's order, and times by word."""

    words: dict[Key, tuple[int, str, int]] = field(default_factory=dict)  # number, word, line
    frequency: list[float] = field(default_factory=list)
    rows: list[tuple[int, str, str, float, float, bool, float]] = field(default_factory=list)
    has_frequency: bool = False
    has_people: bool = False
    has_fixated: bool = False


def make(times: Path, readings: Path, settings: TimeSettings) -> Findings:
    """
    Raises:
        HunchError: a file or a setting cannot be used; says what to do.
    """
    settings.check()
    read = _read_times(times)
    if not settings.frequencies and not read.has_frequency:
        raise HunchError(
            "--frequencies: is missing: what surprisal adds is stated beside how frequent words are. Give a file with "
            "word and log_frequency or count, or ngram:NAME, a model that train_ngram makes; or add the column "
            f"log_frequency to {times}"
        )
    numbered = {key: (number, word) for key, (number, word, _line) in read.words.items()}
    models = _read_readings(readings, numbered)
    texts = [word for _number, word in numbered.values()]
    frequency = (
        log_frequencies(settings.frequencies, texts)
        if settings.frequencies
        else np.array(read.frequency, dtype=np.float64)
    )
    if not np.isfinite(frequency).any():
        raise HunchError(f"--frequencies: {settings.frequencies or times} has none of the words of {times}")
    passages = list(dict.fromkeys(passage for passage, _position in numbered))
    number = {name: place for place, name in enumerate(passages)}
    stretch = np.array([number[passage] for passage, _position in numbered], dtype=np.int64)
    position = np.array([place for _passage, place in numbered], dtype=np.int64)
    highest = np.zeros(len(passages), dtype=np.int64)
    np.maximum.at(highest, stretch, position)
    material = ReadingMaterial(
        tuple(passages),
        TimedWords(texts, stretch, position, frequency, position == highest[stretch]),
        _read_columns(read, number),
        has_people=read.has_people,
        models=models,
        rules=settings.rules,
        previous=settings.previous,
        keeps_punctuation=settings.keeps_punctuation,
        fixated=np.array([row[6] for row in read.rows]) if read.has_fixated else None,
    )
    who = f"{integer(len({row[2] for row in read.rows}))} people, " if read.has_people else ""
    return findings.make(
        material,
        fit=settings.fit,
        title="Reading times",
        lines=[f"{who}{integer(len(passages))} passages of {integer(len(texts))} words, {len(models)} models"],
        notes=[],
    )


def _read_columns(read: _TimesFile, number: Mapping[str, int]) -> ReadTimes:
    people = {name: place for place, name in enumerate(dict.fromkeys(row[2] for row in read.rows))}
    return ReadTimes(
        np.array([row[0] for row in read.rows], dtype=np.int64),
        np.array([number[row[1]] for row in read.rows], dtype=np.int64),
        np.array([people[row[2]] for row in read.rows], dtype=np.int64),
        np.array([row[3] for row in read.rows], dtype=np.float64),
        np.array([row[4] for row in read.rows], dtype=np.float64),
        np.array([row[5] for row in read.rows], dtype=bool),
    )


def _read_times(path: Path) -> _TimesFile:
    problems, read, file = Problems(), _TimesFile(), str(path)
    seen: dict[tuple[str, Key], int] = {}
    for line, row in csv_rows(path, TIMES, problems):
        read.has_people, read.has_frequency = "person" in row, "log_frequency" in row
        read.has_fixated = "previous_fixated" in row
        passage, word, person = row["passage"].strip(), row["word"].strip(), row.get("person", NOBODY).strip()
        position, time = whole_of(row["position"]), nats_of(row["time"])
        if not passage:
            problems.add(file, line, "passage", "is empty: name the text that was read")
        if not word:
            problems.add(file, line, "word", "is empty: write the word that was read")
        if position is None:
            problems.add(file, line, "position", f"{row['position'][:20]!r} is no whole number from 0")
        if time is None or time > LONGEST_MS:
            problems.add(file, line, "time", f"{row['time'][:20]!r} is no time from 0 to {LONGEST_MS} milliseconds")
        if "person" in row and not person:
            problems.add(file, line, "person", "is empty: name who read, or remove the column")
        right, fixated = _zero_or_one(row, "right"), _zero_or_one(row, "previous_fixated")
        for name, value in (("right", right), ("previous_fixated", fixated)):
            if value is None:
                problems.add(file, line, name, f"{row[name][:20]!r} is neither 0 nor 1")
        frequency = number_or_nan(row.get("log_frequency", ""))
        if frequency is None:
            problems.add(file, line, "log_frequency", f"{row['log_frequency'][:20]!r} is no number")
        if not passage or not word or position is None or time is None or time > LONGEST_MS:
            continue
        key = (passage, position)
        number, own, first = read.words.setdefault(key, (len(read.words), word, line))
        if own != word:
            problems.add(file, line, "word", f"{word[:40]!r} is {own[:40]!r} in line {first}: a passage has one text")
        if number == len(read.frequency):
            read.frequency.append(math.nan if frequency is None else frequency)
        if (before := seen.setdefault((person, key), line)) != line:
            problems.add(file, line, "position", f"the same word of {person or 'the passage'} stands in line {before}")
        if not math.isnan(time):  # An empty cell is a word that nobody's time is known of.
            marked = bool(row.get("marks", "").strip())
            read.rows.append(
                (number, passage, person, time, math.nan if right is None else right, marked, fixated or 0.0)
            )
    if not read.rows and not problems:
        problems.add(file, 1, "file", "holds no time: give at least one")
    problems.raise_if_any()
    return read


def _read_readings(path: Path, words: Mapping[Key, tuple[int, str]]) -> dict[str, np.ndarray]:
    """The surprisal of each word (W,) by model; NaN where it says nothing."""
    problems, found, file = Problems(), dict[str, np.ndarray](), str(path)
    lines: dict[tuple[str, Key], int] = {}
    misaligned = False
    for line, row in csv_rows(path, READINGS, problems):
        name, key = row["model"].strip(), (row["passage"].strip(), whole_of(row["position"]))
        value = nats_of(row["surprisal"])
        if not name:
            problems.add(file, line, "model", "is empty: name what read the passage")
        if key[1] is None:
            problems.add(file, line, "position", f"{row['position'][:20]!r} is no whole number from 0")
        if value is None:
            problems.add(file, line, "surprisal", f"{row['surprisal'][:20]!r} is no surprisal: it must be 0 or more")
        if not name or key[1] is None or value is None:
            continue
        place = (key[0], key[1])
        if (before := lines.setdefault((name, place), line)) != line:
            problems.add(file, line, "position", f"{name} has this position already in line {before}: keep one")
        column = found.setdefault(name, np.full(len(words), np.nan))
        if place not in words:
            continue
        number, word = words[place]
        own = row.get("word", "").strip()
        if own and not misaligned and normalised(own) != normalised(word):
            misaligned = True
            problems.add(
                file,
                line,
                "word",
                f"{own[:40]!r} is not the word that was read at this position, {word[:40]!r}: the model read another "
                "text",
            )
        if math.isfinite(value):
            column[number] = value
    if not found and not problems:
        problems.add(file, 1, "file", "holds no reading: give at least one")
    problems.raise_if_any()
    for name, column in found.items():
        if np.isfinite(column).sum() < 3:
            raise HunchError(
                f"{path}: {name} has no surprisal at three words that were read; check that passages and positions are "
                "named alike in both files, positions from 0"
            )
    return found


def _zero_or_one(row: Mapping[str, str], name: str) -> float | None:
    """0 or 1; NaN where the cell is empty or missing; None where it is neither."""
    text = row.get(name, "").strip().removesuffix(".0")
    return math.nan if not text else float(text) if text in ("0", "1") else None
