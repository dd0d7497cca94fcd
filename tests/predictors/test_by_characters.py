"""What a model expected at somebody else's tokens, by the characters that its likeliest tokens cover: known answers."""

import math

import numpy as np
import pytest

from predictors.readings import TextReading
from predictors.readings.by_characters import chances_of_spans
from predictors.readings.text_reading import Distributions, make_tokens

Listed = dict[str, float]


def reading(tokens: list[str], lists: list[Listed]) -> tuple[TextReading, str]:
    """A model's own tokens of a text, with the chances that it lists at each; its own token is among them."""
    ends = np.cumsum([len(token) for token in tokens])
    starts = ends - [len(token) for token in tokens]
    logs = [math.log(chances[token]) for token, chances in zip(tokens, lists, strict=True)]
    top = [sorted(((name, math.log(p)) for name, p in chances.items()), key=lambda row: -row[1]) for chances in lists]
    said = Distributions(np.full(len(tokens), np.nan), top, [()] * len(tokens))
    return TextReading(make_tokens(starts, ends, logs), "t", distributions=said), "".join(tokens)


def ends_of(chance: tuple) -> tuple[float, float]:
    return round(math.exp(chance[0]), 9), round(math.exp(chance[1]), 9)


def test_the_same_tokens_have_their_own_chances_and_the_likeliest_is_right_or_not() -> None:
    said, text = reading(["The", " cat"], [{"The": 0.5, "A": 0.3}, {" dog": 0.6, " cat": 0.3, " cats": 0.1}])
    whole = [(0, 3), (3, 7)]
    first, second = chances_of_spans(said, text, whole, first_token=lambda rest: rest)
    assert ends_of(first) == (0.5, 0.7) and first.is_right and first.is_sure
    assert ends_of(second) == (0.3, 0.3) and second.likeliest == " dog" and second.is_sure
    # Without their tokenizer nobody knows whether " cats" begins with the token " cat".
    _first, open_end = chances_of_spans(said, text, whole)
    assert ends_of(open_end) == (0.3, 0.4)


def test_a_token_of_several_of_the_models_own_has_their_product() -> None:
    said, text = reading([" go", "ing", "!"], [{" go": 0.5, " gone": 0.25}, {"ing": 0.8, "es": 0.2}, {"!": 1.0}])
    (chance,) = chances_of_spans(said, text, [(0, 6)], first_token=lambda rest: rest)
    assert ends_of(chance) == (0.4, 0.65)
    assert chance.likeliest == " going" and chance.is_right, "0.4 against 0.25 for gone and 0.1 for goes"
    assert not chance.is_sure, "0.25 is not listed, and gone may be a half"


def test_letters_within_a_token_are_asked_among_the_tokens_that_begin_so() -> None:
    lists = [{" the": 0.5, " to": 0.2, " and": 0.2, " an": 0.1}]
    said, text = reading([" the"], lists)
    letters = chances_of_spans(
        said, text, [(place, place + 1) for place in range(4)], first_token=lambda rest: rest[:1]
    )
    chances = [ends_of(letter)[0] for letter in letters]
    assert chances == [1.0, 0.7, pytest.approx(0.5 / 0.7), 1.0]
    assert math.prod(chances) == pytest.approx(0.5), "the letters of a token make its chance"
    assert [letter.is_right for letter in letters] == [True, True, True, True]
    said, text = reading([" an"], lists)
    letters = chances_of_spans(said, text, [(0, 1), (1, 2), (2, 3)], first_token=lambda rest: rest[:1])
    assert [letter.is_right for letter in letters] == [True, False, True] and letters[1].likeliest == "t"
    assert ends_of(letters[1]) == (0.3, 0.3), "both tokens that begin with a"


def letter(rest: str) -> str:
    return rest[:1]


def word(rest: str) -> str:
    return rest[:1] + rest[1:].partition(" ")[0]


CATS = ["the", " cat", " sat"], [{"the": 1.0}, {" cat": 0.3, " cats": 0.5, " dog": 0.2}, {" sat": 1.0}]


def test_longer_tokens_that_begin_with_the_one_before_the_place_are_not_forgotten() -> None:
    """By hand: after "the cat" the model goes on with a blank after " cat", and with an s after " cats"."""
    (blank,) = chances_of_spans(*reading(*CATS), [(7, 8)], first_token=letter)
    assert ends_of(blank) == (0.375, 0.375) and blank.likeliest == "s" and blank.is_sure
    (c,) = chances_of_spans(*reading(["a", "c"], [{"a": 0.4, "ab": 0.6}, {"c": 1.0}]), [(1, 2)], first_token=letter)
    assert ends_of(c) == (0.4, 0.4)
    # One that reaches over several tokens of the text: 0.5 x 0.4 against 0.3 and 0.5 x 0.6.
    said = reading(["a", "b", "c"], [{"a": 0.5, "abd": 0.3, "x": 0.2}, {"b": 0.4, "bd": 0.6}, {"c": 1.0}])
    (c,) = chances_of_spans(*said, [(2, 3)], first_token=letter)
    assert ends_of(c) == (0.25, 0.25) and c.likeliest == "d"


def test_what_the_list_before_the_place_leaves_open_is_between_the_ends() -> None:
    said = reading(CATS[0], [{"the": 1.0}, {" cat": 0.3, " dog": 0.2}, {" sat": 1.0}])
    (blank,) = chances_of_spans(*said, [(7, 8)], first_token=letter)
    assert blank.least == pytest.approx(math.log(0.375)) and blank.most == 0 and not blank.is_sure


def test_longer_tokens_count_only_where_the_tokenizer_of_the_places_cuts_them_there() -> None:
    (whole,) = chances_of_spans(*reading(*CATS), [(7, 11)], first_token=word)
    assert ends_of(whole) == (1.0, 1.0) and whole.is_sure, "its tokenizer would have cut cats as one token"
    (stems,) = chances_of_spans(*reading(*CATS), [(7, 11)], first_token=lambda rest: rest[:4])
    assert ends_of(stems) == (0.375, 0.375) and stems.likeliest == "s"
    (unknown,) = chances_of_spans(*reading(*CATS), [(7, 11)])
    assert ends_of(unknown) == (0.375, 1.0), "without the tokenizer nobody knows"


def test_what_a_list_leaves_open_is_between_the_ends_and_more_of_the_list_narrows_them() -> None:
    rng = np.random.default_rng(5)
    names = [first + second for first in "abc" for second in ("", "x", "y", "xy")]
    for _try in range(50):
        chances = dict(zip(names, rng.dirichlet(np.full(len(names), 0.7)), strict=True))
        true = str(rng.choice(names))
        spans = [(place, place + 1) for place in range(len(true))]
        exact = chances_of_spans(*reading([true], [chances]), spans, first_token=lambda rest: rest[:1])
        widths = []
        for top in (12, 6, 3, 1):
            few = dict(sorted(chances.items(), key=lambda pair: -pair[1])[:top]) | {true: chances[true]}
            bounded = chances_of_spans(*reading([true], [few]), spans, first_token=lambda rest: rest[:1])
            for known, bound in zip(exact, bounded, strict=True):
                assert bound.least - 1e-9 <= known.least <= known.most + 1e-9 <= bound.most + 2e-9
                assert not bound.is_sure or bound.is_right == known.is_right
            widths.append(sum(bound.most - bound.least for bound in bounded))
        assert widths == sorted(widths)


def test_unread_tokens_and_parts_of_a_character_are_no_answers() -> None:
    tokens = make_tokens([0, 1, 1, 2], [1, 2, 2, 3], [math.nan, math.log(0.5), math.log(0.4), math.log(0.9)])
    top = [(), (("bytes:\\xc3", math.log(0.5)), ("a", math.log(0.5))), (("bytes:\\xa9", math.log(0.4)),), ()]
    said = TextReading(tokens, "t", distributions=Distributions(np.full(4, np.nan), top, [()] * 4))
    unread, sign, after = chances_of_spans(said, "xé!", [(0, 1), (1, 2), (2, 3)], first_token=lambda rest: rest[:1])
    assert math.isnan(unread.least) and unread.likeliest is None
    assert math.exp(sign.least) == pytest.approx(0.2) and math.exp(sign.most) == pytest.approx(0.5)
    assert after.likeliest is None and not after.is_right, "nothing is listed there"
