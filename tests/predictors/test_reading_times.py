"""What surprisal adds to the prediction of reading times: beside fits of numpy to the same rows."""

import numpy as np
import pytest

from predictors.evaluation.reading_times import Columns, delta_of

FOLD = np.repeat(np.arange(5), [10, 14, 20, 8, 18])


def some_columns() -> Columns:
    rng = np.random.default_rng(3)
    base = np.column_stack([np.ones(70), rng.normal(5, 2, 70), rng.normal(size=70)])
    both = np.column_stack([base, rng.normal(4, 1.5, 70)])
    wanted = both @ [250.0, 4.0, 9.0, 12.0] + rng.normal(0, 25, 70)
    return Columns(base, both, wanted, FOLD, np.arange(70))


def log_density(columns: np.ndarray, wanted: np.ndarray, learn: np.ndarray, score: np.ndarray) -> float:
    """The sum over `score` of the normal log density around a fit to `learn`, with its mean square as variance."""
    coefficients = np.linalg.lstsq(columns[learn], wanted[learn], rcond=None)[0]
    variance = np.mean((wanted[learn] - columns[learn] @ coefficients) ** 2)
    rest = wanted[score] - columns[score] @ coefficients
    return float(np.sum(-0.5 * np.log(2 * np.pi * variance) - rest**2 / (2 * variance)))


def test_what_it_adds_to_unseen_sentences_is_that_of_fits_to_the_other_folds() -> None:
    columns = some_columns()
    by_model = [
        sum(log_density(table, columns.wanted, fold != own, fold == own) for own in range(5))
        for table in (columns.base, columns.both)
        for fold in [columns.fold]
    ]
    found = delta_of(columns)
    assert found is not None and found.words == 70
    assert found.a_word == pytest.approx((by_model[1] - by_model[0]) / 70, rel=1e-6)


def test_what_it_adds_to_the_words_themselves_is_that_of_one_fit() -> None:
    columns, every = some_columns(), np.ones(70, dtype=bool)
    found = delta_of(columns)
    base, both = (log_density(table, columns.wanted, every, every) for table in (columns.base, columns.both))
    assert found is not None and found.total == pytest.approx(both - base, rel=1e-6)
