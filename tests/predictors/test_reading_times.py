"""What surprisal adds to the prediction of reading times: next to fits of numpy to the same rows."""

import numpy as np
import pytest

from predictors.evaluation.reading_times import (
    Columns,
    SingleTimes,
    TimedWords,
    columns_of_times,
    columns_of_words,
    delta_log_likelihood,
    delta_of,
    natural_spline,
    prepared,
    slopes_of,
)

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
    delta = delta_of(columns)
    assert delta is not None and delta.words == 70
    assert delta.a_word == pytest.approx((by_model[1] - by_model[0]) / 70, rel=1e-6)


def test_what_it_adds_to_the_words_themselves_is_that_of_one_fit() -> None:
    columns, every = some_columns(), np.ones(70, dtype=bool)
    delta = delta_of(columns)
    base, both = (log_density(table, columns.wanted, every, every) for table in (columns.base, columns.both))
    assert delta is not None and delta.total == pytest.approx(both - base, rel=1e-6)


@pytest.mark.parametrize("smooth", [False, True])
def test_words_of_which_none_counts_are_no_rows(smooth: bool) -> None:
    """Words that hold a digit are no words of letters alone."""
    place = np.arange(4)
    words = TimedWords(
        sentence=np.zeros(4, dtype=np.int64),
        position=place,
        word=[f"w{number}" for number in place],
        log_frequency=np.zeros(4),
        is_last=place == 3,
    )
    made = prepared(words, smooth=smooth)
    assert len(made.row) == len(made.base) == len(made.fold) == 0 and made.before.shape == (0, 1)


def test_a_word_without_a_time_is_no_row() -> None:
    place = np.arange(5)
    words = TimedWords(["a", "bb", "ccc", "dd", "e"], np.zeros(5, dtype=np.int64), place, np.zeros(5), place == 4)
    times = np.array([300.0, 310, np.nan, 330, 340])
    assert columns_of_words(prepared(words), times, np.ones(5)).row.tolist() == [3]


def test_below_thirty_rows_nothing_is_said() -> None:
    columns = some_columns()

    def of(count: int) -> Columns:
        return Columns(*(getattr(columns, name)[:count] for name in ("base", "both", "wanted", "fold", "row")))

    assert delta_of(of(29)) is None and delta_of(of(30)) is not None


def text_of_words() -> TimedWords:
    """Two sentences: the words that count, and one of each kind that does not."""
    words = ["The", "old", "man,", "slept", "by", "rare", "water", "here", "End.", "So", "it", "went", "on", "well."]
    frequency = np.array([-1.0, -2, -3, -4, -5, np.nan, -7, -8, -9, -1, -2, -3, -4, -5])
    return TimedWords(
        word=words,
        sentence=np.array([4] * 9 + [7] * 5),
        position=np.array([*range(9), *range(5)]),
        log_frequency=frequency,
        is_last=np.array([False] * 8 + [True] + [False] * 4 + [True]),
    )


@pytest.mark.parametrize(
    ("previous", "keeps", "rows", "before"),
    [
        (1, False, [4, 7, 11, 12], [[3], [6], [10], [11]]),
        (1, True, [2, 3, 4, 7, 11, 12], [[1], [2], [3], [6], [10], [11]]),
        (2, False, [12], [[11, 10]]),
        (2, True, [3, 4, 12], [[2, 1], [3, 2], [11, 10]]),
    ],
)
def test_a_word_counts_where_it_and_those_before_it_do(
    previous: int, keeps: bool, rows: list[int], before: list[list[int]]
) -> None:
    """None first or last in its sentence, without a frequency, or (unless they are kept) with a comma."""
    words = text_of_words()
    prepared_words = prepared(words, keeps_punctuation=keeps, previous=previous)
    assert prepared_words.row.tolist() == rows and prepared_words.before.tolist() == before
    length = np.array([len(word.strip(".,")) for word in words.word], dtype=float)
    expected = [
        [
            1.0,
            *(
                value
                for which in (row, *earlier)
                for value in (length[which], words.log_frequency[which], length[which] * words.log_frequency[which])
            ),
            words.position[row],
        ]
        for row, earlier in zip(rows, before, strict=True)
    ]
    assert prepared_words.base == pytest.approx(np.array(expected))
    assert len({*prepared_words.fold.tolist()}) == len({*words.sentence[rows].tolist()})


def test_single_times_are_those_of_a_reading_less_its_mean() -> None:
    """Of a person in a passage; words that do not count and times that nobody has are passed over."""
    words = prepared(text_of_words(), keeps_punctuation=True)
    surprisal = np.arange(14) / 3.0
    surprisal[6] = np.nan  # So that neither it nor the word after it counts.
    rng = np.random.default_rng(5)
    word = np.array([2, 3, 4, 7, 0, 11, 12, 2, 3, 11, 12, 4])
    times = SingleTimes(
        word=word,
        person=np.array([0] * 7 + [1] * 5),
        passage=np.array([0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0]),
        time=np.where(np.arange(12) == 11, np.nan, rng.normal(300, 40, 12)),
    )
    columns = columns_of_times(words, times, surprisal)
    used = [0, 1, 2, 5, 6, 7, 8, 9, 10]
    assert columns.row.tolist() == used
    place = {row: number for number, row in enumerate(words.row.tolist())}
    whole = np.array(
        [
            [*words.base[place[word[index]]], surprisal[word[index]], surprisal[word[index] - 1], times.time[index]]
            for index in used
        ]
    )
    for reading in ([0, 1, 2], [3, 4], [5, 6], [7, 8]):
        whole[reading] -= whole[reading].mean(axis=0)
    whole[:, 0] = 1.0
    assert np.column_stack([columns.both, columns.wanted]) == pytest.approx(whole)
    assert columns.base == pytest.approx(whole[:, : words.base.shape[1]])
    assert columns.fold.tolist() == [words.fold[place[word[index]]] for index in used]


def test_slopes_are_least_squares_and_each_row_adds_what_it_moves_them_by() -> None:
    columns = some_columns()
    fit = slopes_of(columns)
    coefficients = np.linalg.lstsq(columns.both, columns.wanted, rcond=None)[0]
    assert fit.slopes == pytest.approx(coefficients[3:])
    rest = columns.wanted - columns.both @ coefficients
    expected = rest[:, None] * (columns.both @ np.linalg.inv(columns.both.T @ columns.both))[:, 3:]
    assert fit.added == pytest.approx(expected)


# Curves, and what eye-tracking adds


def test_a_spline_is_straight_beyond_its_outer_knots_and_follows_a_curve_between() -> None:
    values = np.arange(101.0)
    columns = natural_spline(values, 5)
    assert columns.shape == (101, 4)
    bends = np.diff(columns, 2, axis=0)
    assert np.abs(bends[:4]).max() < 1e-9 and np.abs(bends[-4:]).max() < 1e-9  # The outer knots stand at 5 and 95.
    assert (np.abs(bends[20:80]).max(axis=0) > 1e-6).tolist() == [False, True, True, True]
    table = np.column_stack([np.ones(101), columns])
    wave = np.sin(values / 30)
    assert np.abs(wave - table @ np.linalg.lstsq(table, wave, rcond=None)[0]).max() < 0.03


@pytest.mark.parametrize(("values", "width"), [([3.0, 3, 3], 1), ([1.0, 2, 1, 2], 1), ([1.0, 2, 3, 1], 2)])
def test_few_different_values_bend_little_or_not_at_all(values: list[float], width: int) -> None:
    columns = natural_spline(np.array(values), 4)
    assert columns.shape == (len(values), width) and np.isfinite(columns).all()


def test_smooth_models_take_up_what_a_curve_of_frequency_explains() -> None:
    """Times bend with frequency, and surprisal is a bent function of it: it adds much to lines, little to curves."""
    rng = np.random.default_rng(8)
    sentence, position = np.divmod(np.arange(1200), 12)
    frequency = rng.uniform(-6, -1, 1200)
    bent = np.exp(-frequency / 2)
    word = ["a" * length for length in rng.integers(2, 9, 1200)]
    words = TimedWords(word, sentence, position, frequency, position == 11)
    times = 250 + 8 * bent + rng.normal(0, 15, 1200)
    straight, smooth = (delta_log_likelihood(prepared(words, smooth=smooth), times, bent) for smooth in (False, True))
    assert straight is not None and smooth is not None and straight.words == smooth.words == 900
    assert straight.total > 100 and 0 <= smooth.total < straight.total / 10
    # Columns without surprisal: 1, and 3 + 3 + 9 of each of two words, and 4 of the position.
    assert prepared(words, smooth=True).base.shape == (900, 35)


def test_whether_the_word_before_was_fixated_enters_both_models() -> None:
    words = prepared(text_of_words(), keeps_punctuation=True)
    fixated = np.array([1.0, 0, 1, 0, np.nan, 1])
    times = SingleTimes(
        np.array([2, 3, 4, 7, 11, 12]), np.zeros(6, dtype=int), np.zeros(6, dtype=int), np.arange(6.0), fixated
    )
    columns = columns_of_times(words, times, np.arange(14.0))
    assert columns.row.tolist() == [0, 1, 2, 3, 5]  # Nothing is known of the fifth.
    assert columns.base.shape[1] == words.base.shape[1] + 1
    assert columns.base[:, -1] == pytest.approx(np.array([0.4, -0.6, 0.4, -0.6, 0.4]))
    assert columns.both[:, : columns.base.shape[1]] == pytest.approx(columns.base)


def test_fewer_than_two_rows_for_each_column_say_nothing() -> None:
    rng = np.random.default_rng(9)

    def of(count: int) -> Columns:
        both = rng.normal(size=(count, 20))
        return Columns(both[:, :19], both, rng.normal(size=count), np.arange(count) % 5, np.arange(count))

    assert delta_of(of(39)) is None and delta_of(of(40)) is not None
