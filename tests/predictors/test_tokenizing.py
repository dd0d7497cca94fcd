"""Byte pairs: every text survives, places are those of the characters, files are read back."""

from typing import Any

import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.readings import Detail, Text
from predictors.readings.ngrams import NgramReader
from predictors.readings.text_reading import Distributions
from predictors.readings.tokenizing import CharacterTokenizer, PairTokenizer, can_be_typed, check_survives

TEXTS = ["The rat sat on the mat. The cat sat on the rat.", "On the mat the cat saw the rat, and the rat ran."]
HARD = ["", " ", "\n\n \t", "naïve café – “quoted” x_1", "日本語 テキスト", "👩‍👩‍👧 e\u0301", "שלום 123", "a" * 300]


@pytest.fixture(scope="module")
def pairs() -> PairTokenizer:
    return PairTokenizer.train(TEXTS, size=300)


@pytest.mark.parametrize("text", [*TEXTS, *HARD])
def test_every_text_survives_and_its_tokens_cover_it(pairs: PairTokenizer, text: str) -> None:
    for tokenizer in (pairs, CharacterTokenizer()):
        cut = check_survives(tokenizer, text)
        covered = np.zeros(len(text), dtype=bool)
        for token in cut:
            assert token["start"] < token["end"]
            covered[token["start"] : token["end"]] = True
            alone = tokenizer.joined([int(token["id"])])
            if "�" not in alone:
                assert text[token["start"] : token["end"]] == alone
        assert covered.all()


def test_pairs_are_learnt_by_how_often_they_stand(pairs: PairTokenizer) -> None:
    assert pairs.vocabulary[256] == "at"  # nine times; the next most frequent pair stands less often
    assert " the" in pairs.vocabulary
    assert len(pairs.cut(TEXTS[0])) < len(TEXTS[0]) / 2
    again = PairTokenizer.from_json(pairs.to_json())
    assert again.sha256 == pairs.sha256
    assert again.cut(TEXTS[1]).tolist() == pairs.cut(TEXTS[1]).tolist()
    assert PairTokenizer.train(TEXTS, size=260).sha256 != pairs.sha256


@pytest.mark.parametrize("content", ["", "{}", '{"format": 9, "merges": []}', '{"format": 1, "merges": [[1, 999]]}'])
def test_a_damaged_file_is_refused(content: str) -> None:
    with pytest.raises(PredictorError, match="train it again"):
        PairTokenizer.from_json(content)


def test_sizes_and_texts_that_do_not_do_are_refused() -> None:
    with pytest.raises(PredictorError, match="size"):
        PairTokenizer.train(TEXTS, size=256)
    with pytest.raises(PredictorError, match="texts"):
        PairTokenizer.train([""], size=300)


def test_what_can_be_typed() -> None:
    assert [can_be_typed(text) for text in (" a", " ", ",", "\n", "a\t", "�", "", "\u200b")] == [
        *[True] * 3,
        *[False] * 5,
    ]


@pytest.mark.parametrize("smoothing", ["kneser_ney", "none"])
@pytest.mark.parametrize("unit", ["token", "character", "word"])
def test_an_n_gram_says_what_it_expected(pairs: PairTokenizer, unit: str, smoothing: str) -> None:
    model = NgramReader.train(TEXTS, order=3, unit=unit, smoothing=smoothing, cut_by=pairs if unit == "token" else None)
    detail = Detail(top=500, samples=50, seed=3)
    ((_number, reading),) = model.each([Text("one", TEXTS[0])], detail=detail)
    said = reading.distributions
    assert said is not None and said.mass is not None
    for place, token in enumerate(reading.of_text):
        chances = {
            token_id: value for token_id, (_word, value) in zip(said.top_ids[place], said.top[place], strict=True)
        }
        # <unk> and END have the rest.
        assert np.exp(list(chances.values())).sum() == pytest.approx(np.exp(said.mass[place]))
        own = next(
            token_id
            for token_id, (word, _value) in zip(said.top_ids[place], said.top[place], strict=True)
            if word == TEXTS[0][token["start"] : token["end"]].strip(" " if unit == "word" else "")
        )
        assert chances[own] == pytest.approx(token["logprob"])
        assert all(chances[token_id] == pytest.approx(value) for token_id, value in said.drawn[place])
        assert len(said.samples[place]) == 50


def test_what_it_draws_can_be_restricted(pairs: PairTokenizer) -> None:
    model = NgramReader.train(TEXTS, order=2, unit="token", cut_by=pairs)
    allowed = np.array(sorted({int(token_id) for token_id in pairs.cut(" the rat")["id"]}))
    detail = Detail(top=3, samples=20, seed=1, among=allowed)
    ((_number, reading),) = model.each([Text("one", TEXTS[0])], detail=detail)
    assert reading.distributions is not None
    assert {token_id for drawn in reading.distributions.drawn for token_id, _value in drawn} <= set(allowed.tolist())
    assert (reading.distributions.mass < 0).all()  # type: ignore[operator]


@pytest.mark.parametrize("smoothing", ["none", "kneser_ney"])
def test_it_says_the_same_where_only_some_places_are_looked_at(pairs: PairTokenizer, smoothing: str) -> None:
    model = NgramReader.train(TEXTS, order=3, unit="token", smoothing=smoothing, cut_by=pairs)
    allowed = np.array(sorted({int(token_id) for token_id in pairs.cut(" the rat")["id"]}))

    def expected(**options: Any) -> Distributions:
        ((_number, reading),) = model.each([Text("one", TEXTS[0])], detail=Detail(among=allowed, **options))
        assert reading.distributions is not None
        return reading.distributions

    whole, part = expected(top=3), expected(top=3, places=frozenset({1, 4, 10**6}))
    for place in (1, 4):
        assert part.top[place] == whole.top[place] and part.top_ids[place] == whole.top_ids[place]
        assert part.entropy[place] == whole.entropy[place] and part.mass[place] == whole.mass[place]  # type: ignore[index]
    assert not part.top[2] and np.isnan(part.entropy[2]) and whole.top[4]
    drawn = expected(samples=5, seed=1)
    assert expected(samples=5, seed=1, places=frozenset({4})).drawn == drawn.drawn
