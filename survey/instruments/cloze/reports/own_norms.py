"""`cloze --norms FILE --readings FILE`: the whole analysis of norms and readings that somebody has, without a study."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from predictors.evaluation.reading_times import TimedWords
from survey.contracts.reports import ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures.words import integer, short
from survey.instruments.cloze.analysis import answers as counting
from survey.instruments.cloze.estimands import position_part
from survey.services.banks.frequencies import log_frequencies
from survey.services.base.seeds import generator

from . import figures
from .files import NormsFile, ReadModel, read_norms, read_readings

SEED = 0


@dataclass(frozen=True)
class NormSettings:
    """How norms are scored; the defaults are those of a study."""

    lenient: bool = True
    skip_first: bool = True
    skip_last: bool = True
    smoothing: float = 1.0
    least: int = 10
    responses_per_item: int = 25
    times: tuple[str, ...] = ()
    frequencies: str = ""
    keeps_punctuation: bool = False
    above: str = ""

    def check(self) -> None:
        """
        Raises:
            HunchError: a number is out of range.
        """
        if not 0 < self.smoothing <= 100:
            raise HunchError(f"--smoothing: {short(self.smoothing)} is not above 0 and up to 100")
        for name, value in (("least", self.least), ("responses-per-item", self.responses_per_item)):
            if not 1 <= value <= 100_000:
                raise HunchError(f"--{name}: {value} is not from 1 to 100,000")


def make(norms_path: Path, readings_path: Path, settings: NormSettings) -> ReportResult:
    """
    Raises:
        HunchError: a file cannot be used, or no position is left; says what to do.
    """
    settings.check()
    norms = read_norms(norms_path, lenient=settings.lenient, times=settings.times)
    read = read_readings(readings_path, norms)
    inside, notes = _inside(norms, settings)
    notes = [*norms.notes, *notes]
    models = [_column(model, norms, inside) for model in read]
    usable = [model for model in models if np.isfinite(model.surprisal).sum() >= 3]
    notes += [
        f"{model.name}: left out, since it has no surprisal at three positions of the norms or more"
        for model in models
        if model not in usable
    ]
    if not usable:
        raise HunchError(
            f"{readings_path}: no model has a surprisal at three positions of the norms; check that sentences and "
            "positions are named alike in both files, positions from 0"
        )
    for model in usable:
        missing = int((~np.isfinite(model.surprisal)).sum())
        if missing:
            notes.append(f"{model.name}: {missing} positions have no finite surprisal and are left out")
    table = _table(norms, inside, settings, notes)
    times = _times(norms, read, settings, notes)
    rng = generator(SEED, "cloze")
    worked_out = figures.work_out(table, usable, rng=rng, times=times)
    made = figures.report_result(
        table,
        worked_out,
        title="Cloze norms next to language models",
        lines=[
            f"{integer(len(table))} positions of {integer(len(set(table.sentence)))} sentences, {len(usable)} models"
        ],
        notes=notes,
        above=settings.above,
    )
    return replace(made, files=[ReportFile.of_json("cloze.json", worked_out.as_json())])


def _inside(norms: NormsFile, settings: NormSettings) -> tuple[np.ndarray, list[str]]:
    """Which rows enter the figures, and what a reader should know of the others."""
    notes: list[str] = []
    inside = (norms.n > 0) | np.isfinite(norms.surprisal)
    if settings.skip_first:
        inside &= norms.position > 0
    if settings.skip_last:
        inside &= ~norms.is_last
        if norms.is_last.any():
            notes.append(
                f"{int(norms.is_last.sum())} last words of sentences are left out, since they carry punctuation"
            )
        elif not norms.ends_known:
            notes.append("nothing tells where sentences end, so that last words are not left out")
    counted = norms.n > 0
    few = inside & counted & (norms.n < settings.least)
    if (inside & counted).any() and not (inside & counted & ~few).any():
        raise HunchError(
            f"no position has {settings.least} answers, which the figures need; collect more, or lower --least"
        )
    if few.any():
        notes.append(f"{int(few.sum())} positions have fewer than {settings.least} answers and are left out")
    inside &= ~few
    if not inside.any():
        raise HunchError("no position is left but first and last words: add --keep-first or --keep-last")
    if not norms.distinct_known:
        notes.append(
            "the norms do not say how many distinct answers there were: other words count as one. Add the column "
            "distinct, or answers"
        )
    return inside, notes


def _column(model: ReadModel, norms: NormsFile, inside: np.ndarray) -> figures.ModelColumn:
    rows = np.flatnonzero(inside).tolist()
    keys = [(norms.sentence[row], int(norms.position[row])) for row in rows]

    def values(of: Mapping[tuple[str, int], float]) -> np.ndarray:
        return np.array([of.get(key, math.nan) for key in keys], dtype=np.float64)

    return figures.ModelColumn(
        model.name,
        values(model.surprisal),
        values(model.corrected),
        values(model.entropy),
        (),
        model.facts,
        np.array([key in model.unknown for key in keys], dtype=bool),
    )


def _table(norms: NormsFile, inside: np.ndarray, settings: NormSettings, notes: list[str]) -> figures.NormTable:
    rows = np.flatnonzero(inside).tolist()
    n, k, distinct = norms.n[rows], norms.k[rows], norms.distinct[rows]
    most = settings.responses_per_item
    is_given = n == 0
    human = np.where(is_given, norms.surprisal[rows], 0.0)
    square = human**2
    counted = ~is_given
    if counted.any():
        mean, of_square = _thinned(n[counted], k[counted], distinct[counted], settings)
        human[counted], square[counted] = mean, of_square
        if (n[counted] > most).any():
            notes.append(
                f"{int((n[counted] > most).sum())} positions have more than {most} answers and are thinned to that many"
            )
    divisions: dict[str, Sequence[str]] = {"position": [position_part(int(norms.position[row])) for row in rows]}
    if any(norms.word_class):
        divisions["word class"] = [norms.word_class[row] or "none" for row in rows]
    return figures.NormTable(
        sentence=[norms.sentence[row] for row in rows],
        position=norms.position[rows],
        word=[norms.word[row] for row in rows],
        human=human,
        square=square,
        weight=np.ones(len(rows)),
        most=most,
        smoothing=settings.smoothing,
        n=n if counted.all() else None,
        k=k if counted.all() else None,
        distinct=distinct if counted.all() else None,
        frequent=[norms.frequent[row] for row in rows] if norms.frequent else (),
        divisions=divisions,
    )


def _thinned(
    n: np.ndarray, k: np.ndarray, distinct: np.ndarray, settings: NormSettings
) -> tuple[np.ndarray, np.ndarray]:
    """The surprisal and its square at no more than the answers that are aimed at. Of thinned counts the number of
    distinct answers is not known and stays."""
    most = settings.responses_per_item
    plain = counting.surprisal(k, n, distinct, settings.smoothing)
    if not (n > most).any():
        return plain, plain**2
    rng = generator(SEED, "thin")
    few = np.minimum(n, most)
    total, squares = np.zeros(len(n)), np.zeros(len(n))
    for _ in range(counting.THINNINGS):
        surprisals = counting.surprisal(
            rng.hypergeometric(k, n - k, few), few, np.minimum(distinct, few), settings.smoothing
        )
        total += surprisals
        squares += surprisals**2
    many = n > most
    return (
        np.where(many, total / counting.THINNINGS, plain),
        np.where(many, squares / counting.THINNINGS, plain**2),
    )


def _times(
    norms: NormsFile,
    read: Sequence[ReadModel],
    settings: NormSettings,
    notes: list[str],
) -> figures.ReadingTimes | None:
    """Words with their reading times; None where there are none, or nobody says how frequent words are."""
    if not norms.times:
        return None
    frequency = norms.log_frequency
    if settings.frequencies:
        frequency = log_frequencies(settings.frequencies, norms.word)
    if not np.isfinite(frequency).any():
        needed = (
            "reading times need the frequency of each word. Add the column log_frequency, or give --frequencies FILE "
            "(word, log_frequency or count), or --frequencies ngram:NAME"
        )
        if settings.times or settings.frequencies:
            raise HunchError(f"log_frequency: {needed}")
        # Who gave norms wants their figures; who named reading times wants those.
        notes.append(f"{', '.join(norms.times)}: no delta log-likelihood: {needed}")
        return None
    people = norms.surprisal.copy()
    counted = norms.n > 0
    people[counted] = counting.surprisal(
        norms.k[counted], norms.n[counted], norms.distinct[counted], settings.smoothing
    )
    number = np.unique(np.array(norms.sentence, dtype=str), return_inverse=True)[1].reshape(-1).astype(np.int64)
    keys = list(zip(norms.sentence, norms.position.tolist(), strict=True))
    return figures.ReadingTimes(
        words=TimedWords(norms.word, number, norms.position, frequency, norms.is_last),
        times=norms.times,
        people=people,
        models={model.name: np.array([model.surprisal.get(key, math.nan) for key in keys]) for model in read},
        keeps_punctuation=settings.keeps_punctuation,
    )
