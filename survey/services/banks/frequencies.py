"""How frequent words are: log10 of counts or shares, from a file that somebody has or from an n-gram model."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from predictors.cell_numbers import number_of
from predictors.errors import PredictorError
from predictors.word_forms import normalised, stripped
from survey.exceptions import HunchError
from survey.input_tables import cells
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, read_rows

from . import ngrams

NGRAM = "ngram:"


def log_frequencies(source: str, words: Sequence[str]) -> np.ndarray:
    """log10 of how often each of n words occurs (n,), NaN where that is not known.

    Args:
        given: the path of a file with word and log_frequency or count, or ngram:NAME.

    Raises:
        HunchError: the file or the model cannot be used.
    """
    wanted = [normalised(word) for word in words]
    if not source.startswith(NGRAM):
        known = read_frequencies(Path(source))
        return np.array([known.get(word, math.nan) for word in wanted], dtype=np.float64)
    try:
        model: Any = ngrams.load(source.removeprefix(NGRAM))
    except PredictorError as exc:
        raise HunchError(f"frequencies: {exc}") from exc
    # The unigram of the model, pooled over the ways in which a word is written.
    shares: Counter[str] = Counter()
    for word, share in model.unigram().items():
        shares[normalised(word)] += share
    return np.array([math.log10(shares[word]) if shares[word] else math.nan for word in wanted], dtype=np.float64)


PRECISE = 10**12
"""What the counts add up to that are made of log frequencies."""


def read_counts(path: Path) -> dict[str, int]:
    """How often words occur, for a model of them: a file with `word` and `count`, or `word` and `log_frequency`. Of log
    frequencies the counts are shares of a large number.

    Raises:
        FileErrors: with every problem. HunchError: the file holds no word.
    """
    known = read_frequencies(path)
    if not known:
        raise HunchError(f"{path}: holds no word: give rows with word and count, or word and log_frequency")
    highest = max(known.values())
    total = sum(10 ** (value - highest) for value in known.values())
    exact = {word: 10**value for word, value in known.items()}
    if highest < 15 and all(abs(value - round(value)) <= 1e-9 * value and value >= 0.5 for value in exact.values()):
        return {word: round(value) for word, value in exact.items()}
    return {word: max(1, round(PRECISE * 10 ** (value - highest) / total)) for word, value in known.items()}


@declared
class FrequencyRow(TableRow):
    """How frequent a word is: one of the two numbers."""

    read_by = "`--frequencies FILE` of `cloze` and `reading`, `train_ngram FILE`"
    word: cells.Stripped = column("The word.")
    log_frequency: str = column("log10 of how often it occurs.", "")
    count: str = column("How often it occurs, more than 0, where there is no log_frequency.", "")


def read_frequencies(path: Path) -> dict[str, float]:
    """log10 of how often words occur: a table of `FrequencyRow`.

    Raises:
        FileErrors: with every problem.
    """
    rows = read_rows(FrequencyRow, path, Problems())
    known: dict[str, float] = {}
    for row in rows:
        value = number_of(text := row.log_frequency or row.count)
        if value is not None and not row.log_frequency:
            value = math.log10(value) if value > 0 else None
        if value is None:
            rows.wrong(row.line, "log_frequency, count", f"{text[:20]!r} is no number, or a count of 0")
            continue
        known[normalised(stripped(row.word))] = value
    rows.refuse()
    return known
