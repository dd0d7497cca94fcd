"""`reading --times FILE --readings FILE`: the whole analysis of reading times that somebody has, without a study."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from predictors.evaluation.reading_times import TimedWords
from predictors.word_forms import normalised
from survey.contracts.reports import ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures.words import integer, short
from survey.input_tables import cells
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, read_rows, renamed
from survey.instruments.self_paced_reading.analysis.cleaning import CleaningRules, ReadTimes
from survey.instruments.self_paced_reading.forms import LONGEST_MS
from survey.services.banks.frequencies import log_frequencies

from . import reading_results
from .material import ReadingMaterial
from .measures import make_measures

NOBODY = ""
Key = tuple[str, int]


@dataclass(frozen=True)
class Layout:
    """How a file of times calls its columns: by our names, theirs. measures: its columns of times. first_position: the
    number of a text's first word."""

    columns: Mapping[str, str] = field(default_factory=dict)
    measures: tuple[str, ...] = ("time",)
    first_position: int = 0


OWN = Layout()
LAYOUTS: Mapping[str, Layout] = {
    "natural_stories": Layout({"passage": "item", "position": "zone", "person": "WorkerId"}, ("RT",), 1),
    "provo": Layout(
        {
            "passage": "Text_ID",
            "position": "Word_Number",
            "word": "Word",
            "person": "Participant_ID",
            "skipped": "IA_SKIP",
        },
        ("IA_FIRST_FIXATION_DURATION", "IA_FIRST_RUN_DWELL_TIME", "IA_DWELL_TIME"),
        1,
    ),
}


TIME = cells.number(
    f"{{}} is no time from 0 to {LONGEST_MS} milliseconds",
    lambda time: 0 <= time <= LONGEST_MS,
    empty=math.nan,
    unknown=cells.UNKNOWN,
)


@declared
class TimeRow(TableRow):
    """How long somebody read a word; without `person`, a mean."""

    read_by = "`reading --times FILE`"
    passage: Annotated[str, cells.text("name the text that was read")] = column("The text's name.")
    position: cells.Position = column("The word's place in the text, from 0.")
    word: Annotated[str, cells.text("write the word that was read")] = column("The word.")
    time: Annotated[float, TIME] = column(f"Milliseconds, up to {LONGEST_MS}; empty where it is not known.")
    person: Annotated[str, cells.text("name who read, or remove the column")] = column("Who read.", NOBODY)
    right: cells.ZeroOrOne = column("1 where the question about the passage was answered right, and else 0.", math.nan)
    marks: cells.Stripped = column("Anything here marks the time as disturbed.", "")
    log_frequency: cells.Number = column("log10 of how frequent the word is.", math.nan)
    previous_fixated: cells.ZeroOrOne = column(
        "1 where the word before was fixated, in eye-tracking, and else 0.", math.nan
    )
    skipped: cells.ZeroOrOne = column(
        "1 where this word was not fixated, and else 0: it says of the next word whether the one before was.", math.nan
    )


@declared
class PassageReadingRow(TableRow):
    """What a model gave to a word of the passages."""

    read_by = "`reading --readings FILE`"
    model: Annotated[str, cells.text("name what read the passage")] = column("What read the passage.")
    passage: cells.Stripped = column("As in the times.")
    position: cells.Position = column("As in the times.")
    surprisal: cells.Surprisal = column("In nats; empty where it is not known.")
    word: cells.Stripped = column("The word, which must be that of the times.", "")


@dataclass(frozen=True)
class TimeSettings:
    """How times are cleaned and fitted; the defaults are those of a study. frequencies: a file, or ngram:NAME."""

    rules: CleaningRules = field(default_factory=CleaningRules)
    previous: int = 2
    frequencies: str = ""
    keeps_punctuation: bool = False
    fit: str = reading_results.LINEAR
    layout: Layout = OWN
    measures: tuple[str, ...] = ()
    """Columns of times; without any those of the layout."""

    @property
    def time_columns(self) -> tuple[str, ...]:
        return self.measures or self.layout.measures

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
        if self.fit not in reading_results.FITS:
            raise HunchError(f"--model: {self.fit!r} is none of: {', '.join(reading_results.FITS)}")
        if self.fit == reading_results.GAMM and len(self.time_columns) > 1:
            raise HunchError(f"--model: {self.fit} is about one --measure at a time; name one of them")
        if len(set(self.time_columns)) < len(self.time_columns):
            raise HunchError(f"--measure: {', '.join(self.time_columns)}: name each column once")


@dataclass(eq=False)
class _TimesFile:
    """Words in the file's order, and times by word."""

    words: dict[Key, tuple[int, str, int]] = field(default_factory=dict)  # number, word, line
    frequency: list[float] = field(default_factory=list)
    rows: list[tuple[int, TimeRow]] = field(default_factory=list)  # with the number of the word
    has_frequency: bool = False
    has_people: bool = False
    has_fixated: bool = False
    fixated: list[float] = field(default_factory=list)  # by row: whether the word before was
    skipped: dict[tuple[str, Key], float] = field(default_factory=dict)  # by person and word

    def know_fixated(self) -> None:
        """Whether the word before was fixated, by what the person skipped; unknown where nothing is said of it."""
        keys = list(self.words)
        for place, (number, row) in enumerate(self.rows):
            passage, position = keys[number]
            self.fixated[place] = 1 - self.skipped.get((row.person, (passage, position - 1)), math.nan)


def make(times: Path, readings: Path, settings: TimeSettings) -> ReportResult:
    """
    Raises:
        HunchError: a file or a setting cannot be used; says what to do.
    """
    settings.check()
    materials = {}
    for measure in settings.time_columns:
        read = _read_times(times, settings.layout, measure)
        materials[measure] = _material(read, times, readings, settings)
    material = materials[settings.time_columns[0]]
    who = f"{integer(len({row.person for _number, row in read.rows}))} people, " if material.has_people else ""
    passages, words, models = len(material.passage_names), len(material.words.word), len(material.models)
    line = f"{who}{integer(passages)} passages of {integer(words)} words, {models} models"
    title = "Reading times"
    if len(materials) > 1:
        report = make_measures(materials, fit=settings.fit, title=title, lines=[line])
    else:
        report = reading_results.make(material, fit=settings.fit, title=title, lines=[line], notes=[])
    return replace(report, files=[*report.files, ReportFile.of_json("reading.json", report.data)])


def _material(read: _TimesFile, times: Path, readings: Path, settings: TimeSettings) -> ReadingMaterial:
    if not settings.frequencies and not read.has_frequency:
        raise HunchError(
            "--frequencies: is missing: what surprisal adds is stated next to how frequent words are. Give a file with "
            "word and log_frequency or count, or ngram:NAME, a model that `hunch train_ngram FILE` makes; or add the "
            f"column log_frequency to {times}"
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
    return ReadingMaterial(
        tuple(passages),
        TimedWords(texts, stretch, position, frequency, position == highest[stretch]),
        _read_columns(read, number),
        has_people=read.has_people,
        models=models,
        rules=settings.rules,
        previous=settings.previous,
        keeps_punctuation=settings.keeps_punctuation,
        fixated=np.array(read.fixated) if read.has_fixated else None,
        smooth=settings.fit == reading_results.SMOOTH,
    )


def _read_columns(read: _TimesFile, number: Mapping[str, int]) -> ReadTimes:
    people = {name: place for place, name in enumerate(dict.fromkeys(row.person for _word, row in read.rows))}
    return ReadTimes(
        np.array([word for word, _row in read.rows], dtype=np.int64),
        np.array([number[row.passage] for _word, row in read.rows], dtype=np.int64),
        np.array([people[row.person] for _word, row in read.rows], dtype=np.int64),
        np.array([row.time for _word, row in read.rows], dtype=np.float64),
        np.array([row.right for _word, row in read.rows], dtype=np.float64),
        np.array([bool(row.marks) for _word, row in read.rows], dtype=bool),
    )


def _read_times(path: Path, layout: Layout, measure: str) -> _TimesFile:
    names = {**layout.columns, "time": measure}
    rows, read = read_rows(renamed(TimeRow, names), path, Problems()), _TimesFile()
    read.has_people = names.get("person", "person") in rows.header
    read.has_frequency = names.get("log_frequency", "log_frequency") in rows.header
    read.has_fixated = names.get("previous_fixated", "previous_fixated") in rows.header
    for row in rows:
        key = (row.passage, row.position - layout.first_position)
        if key[1] < 0:
            message = f"{row.position} is before the first position, {layout.first_position} (--first-position)"
            rows.wrong(row.line, names.get("position", "position"), message)
            continue
        number, own, first = read.words.setdefault(key, (len(read.words), row.word, row.line))
        if own != row.word:
            message = f"{row.word[:40]!r} is {own[:40]!r} in line {first}: a passage has one text"
            rows.wrong(row.line, names.get("word", "word"), message)
        if number == len(read.frequency):
            read.frequency.append(row.log_frequency)
        what = f"the same word of {row.person or 'the passage'} stands"
        rows.once(row, names.get("position", "position"), (row.person, key), what)
        if not math.isnan(row.time):  # An empty cell is a word that nobody's time is known of.
            read.rows.append((number, row))
            read.fixated.append(row.previous_fixated)
        if not math.isnan(row.skipped):
            read.skipped[row.person, key] = row.skipped
    rows.refuse("" if read.rows else "holds no time: give at least one")
    if read.skipped and not read.has_fixated:
        read.know_fixated()
        read.has_fixated = True
    return read


def _read_readings(path: Path, words: Mapping[Key, tuple[int, str]]) -> dict[str, np.ndarray]:
    """The surprisal of each word (W,) by model; NaN where it says nothing."""
    rows = read_rows(PassageReadingRow, path, Problems())
    columns: dict[str, np.ndarray] = {}
    misaligned = False
    for row in rows:
        key = (row.passage, row.position)
        rows.once(row, "position", (row.model, key), f"{row.model} has this position already")
        column = columns.setdefault(row.model, np.full(len(words), np.nan))
        if key not in words:
            continue
        number, word = words[key]
        if row.word and not misaligned and normalised(row.word) != normalised(word):
            misaligned = True
            message = f"{row.word[:40]!r} is not the word that was read at this position, {word[:40]!r}"
            rows.wrong(row.line, "word", f"{message}: the model read another text")
        if math.isfinite(row.surprisal):
            column[number] = row.surprisal
    rows.refuse("" if columns else "holds no reading: give at least one")
    for name, column in columns.items():
        if np.isfinite(column).sum() < 3:
            raise HunchError(
                f"{path}: {name} has no surprisal at three words that were read; check that passages and positions are "
                "named alike in both files, positions from 0"
            )
    return columns
