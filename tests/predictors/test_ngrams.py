"""N-gram models: probabilities that sum to 1, END, the textbook's overfitting, smoothing that leaves nothing at 0."""

import json
import math

import numpy as np
import pytest

from predictors.errors import CheckpointError, PredictorError
from predictors.readings import Detail, Text, ngrams
from predictors.readings.ngrams import END, NgramReader
from predictors.readings.tokenizing import PairTokenizer

SYLLABLES = ["ka", "lo", "mi", "ren", "tas", "ul", "vo", "dis", "per", "nan", "tor", "el", "su", "rim", "gol"]


def made_text(characters: int, seed: int = 0) -> str:
    """Sentences of made-up words whose frequencies fall as those of words do, each depending on the one before."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(SYLLABLES, size=rng.integers(1, 4))) for _ in range(900)]
    chance = 1 / np.arange(1, 901)
    chance /= chance.sum()
    text, last = "", 0
    while len(text) < characters:
        last = (last * 7 + int(rng.integers(3))) % 900 if rng.random() < 0.5 else int(rng.choice(900, p=chance))
        text += words[last] + (". " if rng.random() < 0.1 else " ")
    return text[:characters]


@pytest.mark.parametrize("smoothing", ["none", "kneser_ney"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_what_can_come_next_sums_to_one(smoothing, order):
    model = NgramReader.train(["a b a c", "b a b", "c"], order=order, smoothing=smoothing)
    for context in ("", "a", "a b", "c"):
        units = [*context.split()]
        chances = [
            math.exp(model.log_probabilities(" ".join([*units, unit]))[len(units)]) for unit in ("a", "b", "c", "zzz")
        ]
        chances.append(math.exp(model.log_probabilities(context)[-1]))  # END
        assert sum(chances) == pytest.approx(1.0, abs=1e-12)


def test_counts_make_a_unigram_of_words(tmp_path):
    model = NgramReader.from_counts({"the": 6, "cat": 3, "END": 1})
    assert model.unigram() == pytest.approx({"the": 0.6, "cat": 0.3, "END": 0.1})
    assert np.exp(model.log_probabilities("the cat")) == pytest.approx([0.6, 0.3, 0.0])
    assert np.isneginf(model.log_probabilities("dog")[0])
    model.save(tmp_path)
    assert NgramReader.load(tmp_path).unigram() == model.unigram()
    for counts, said in (({}, "hold no word"), ({"two words": 1}, "is not one word"), ({"a": 0}, "has the count 0")):
        with pytest.raises(PredictorError, match=said):
            NgramReader.from_counts(counts)


def test_the_raw_bigram_is_the_share_of_the_counts():
    model = NgramReader.train(["a b", "a c", "a b"], order=2, smoothing="none")
    assert np.exp(model.log_probabilities("a b")) == pytest.approx([1.0, 2 / 3, 1.0])
    assert np.isneginf(model.log_probabilities("b")[0])


def test_end_is_predicted_and_counted_as_in_the_textbook():
    model = NgramReader.train(["I am", "I am"], order=2, smoothing="none")
    assert len(model.log_probabilities("I am")) == 3
    assert model.score(["I am"]).tokens == 3 and model.score(["I am"]).perplexity_per_token == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["character", "word"])
def test_without_smoothing_higher_orders_learn_their_texts_by_heart(unit):
    text = made_text(20_000)
    train, test = [text[:18_000]], [text[18_000:]]
    raw = NgramReader.train(train, order=5, unit=unit, smoothing="none").overfitting(train, test)
    of_train = [line.train.perplexity_per_token for line in raw]
    assert of_train == sorted(of_train, reverse=True) and of_train[-1] < of_train[0] / 2
    assert math.isinf(raw[-1].scores.test.perplexity_per_token) and raw[-1].scores.is_overfitted
    assert [line.states for line in raw] == sorted(line.states for line in raw) and raw[0].states == 1
    assert raw[1].states < raw[-1].states
    smooth = NgramReader.train(train, order=5, unit=unit).overfitting(train, test)
    assert all(math.isfinite(line.scores.test.perplexity_per_token) for line in smooth)


def test_kneser_ney_prefers_what_follows_many_things():
    # "york" is more frequent than "sea", but comes only after "new".
    texts = ["new york"] * 6 + ["the sea", "a sea", "my sea", "one sea"]
    model = NgramReader.train(texts, order=2)
    after_unknown = {word: model.log_probabilities(f"zzz {word}")[1] for word in ("york", "sea")}
    assert after_unknown["sea"] > after_unknown["york"]
    assert model.log_probabilities("new york")[1] > math.log(0.5)


@pytest.mark.parametrize("smoothing", ["none", "kneser_ney"])
def test_read_at_a_lower_order_it_says_what_a_model_of_that_order_says(smoothing):
    texts = [made_text(900, seed) for seed in range(3)]
    whole = NgramReader.train(texts, order=3, smoothing=smoothing)
    for order in (1, 2):
        alone = NgramReader.train(texts, order=order, smoothing=smoothing)
        for text in (texts[0], "a b " + texts[1][:60]):
            assert whole.log_probabilities(text, order=order) == pytest.approx(alone.log_probabilities(text), abs=1e-9)
        assert whole.states(order) == alone.states()


def test_words_that_it_does_not_know_are_read_as_unk():
    model = NgramReader.train(["a b c"], order=2)
    (marks,) = model.unknown_tokens([Text("t", "a zzz <unk> END")])
    assert marks.tolist() == [False, True, True, True]
    assert np.isfinite(model.log_probabilities("a zzz END")).all()


def test_characters_and_tokens_that_training_lacked_share_what_unk_has():
    model = NgramReader.train(["ab", "ba"], order=1, unit="character")
    unseen = np.exp(model.log_probabilities("c")[0])
    assert unseen * (0x110000 - 0x800 - 2) + np.exp(model.log_probabilities("ab")).sum() == pytest.approx(1.0)
    pairs = PairTokenizer.train(["one two two two one three"], size=260)
    tokens = NgramReader.train(["one one"], order=1, unit="token", cut_by=pairs)
    known = [tokens.log_probabilities(text)[0] for text in ("o", "ne", " ")]
    assert len(tokens.vocabulary) == 3 + len(known)
    rest = (len(pairs.vocabulary) - len(known)) * np.exp(tokens.log_probabilities("x")[0])
    assert np.exp(known).sum() + rest + np.exp(tokens.log_probabilities("")[-1]) == pytest.approx(1.0)
    assert not tokens.unknown_tokens([Text("t", "three")])[0].any()


def test_a_reading_covers_the_text_and_ends_with_end():
    model = NgramReader.train(["one two three"], order=2)
    texts = [Text("a", "  one  two\n"), Text("b", "three")]
    readings = dict(model.each(texts))
    assert readings[0].strings(texts[0].text) == ["  one", "  two\n", ""]
    assert readings[0].reads_end and len(readings[0].log_probabilities) == 2
    assert readings[0].score(texts[0].text, with_end=True).tokens == 3
    with pytest.raises(PredictorError, match="n-gram"):
        next(model.each(texts, detail=Detail(boundary=True)))


def test_what_was_saved_reads_alike_and_another_version_is_refused(tmp_path):
    text = made_text(3000)
    model = NgramReader.train([text], order=3, unit="character")
    model.save(tmp_path)
    again = NgramReader.load(tmp_path)
    assert again.source == model.source and again.tokenizer == model.tokenizer
    assert np.array_equal(again.log_probabilities(text[:500]), model.log_probabilities(text[:500]))
    facts = json.loads((tmp_path / "ngram.json").read_text())
    (tmp_path / "ngram.json").write_text(json.dumps({**facts, "format": 99}))
    with pytest.raises(CheckpointError, match="format 99"):
        NgramReader.load(tmp_path)
    (tmp_path / "ngram.json").write_text(json.dumps(facts))
    (tmp_path / "level_2.npy").write_bytes(b"no array")
    with pytest.raises(CheckpointError, match="cannot be read"):
        NgramReader.load(tmp_path)


def test_another_text_makes_another_source():
    assert NgramReader.train(["a b"], order=2).source != NgramReader.train(["a b a"], order=2).source


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"order": 0}, "order"), ({"order": 6}, "order"), ({"unit": "byte"}, "unit"), ({"smoothing": "x"}, "smoothing")],
)
def test_it_refuses_settings_that_there_are_not(settings, named):
    with pytest.raises(PredictorError, match=named):
        NgramReader.train(["a b"], **{"order": 2, **settings})


def test_texts_without_a_unit_are_refused():
    with pytest.raises(PredictorError, match="hold no word"):
        NgramReader.train(["  ", ""], order=2)


def test_numbers_of_units_are_not_mixed_with_the_special_ones():
    model = NgramReader.train(["END BEGIN <unk>"], order=1)
    assert END == 1 and len(model.vocabulary) == 6


def test_discounts_are_those_of_the_counts_of_counts():
    """Chen and Goodman's, by hand: of four counts of 1, three of 2, two of 3 and one of 4."""
    counts = np.array([1] * 4 + [2] * 3 + [3] * 2 + [4, 0, 9])
    assert ngrams._discounts(counts) == pytest.approx((0.4, 1.2, 2.2))
    table = ngrams._Table.of(counts, np.arange(12) % 2, 3)
    assert table.discounted.tolist() == pytest.approx([0.6] * 4 + [0.8] * 3 + [0.8] * 2 + [1.8, 0.0, 6.8])
    assert table.total.tolist() == [counts[::2].sum(), counts[1::2].sum(), 0]
    assert table.left.tolist() == pytest.approx([2 * 0.4 + 2 * 1.2 + 2.2, 2 * 0.4 + 1.2 + 3 * 2.2, 0])
    odd = np.array([1] * 9 + [2] + [3] * 9 + [4])
    # Where one of them is missing, or they are no discounts, half a count, one and one and a half are taken.
    assert ngrams._discounts(counts[counts != 4]) == ngrams._discounts(odd) == (0.5, 1.0, 1.5)


def test_a_smoothed_bigram_is_that_of_the_formula():
    """By hand, with the fallback's discounts: counts less a discount, and what is taken off goes to the lower order."""
    model = NgramReader.train(["a b", "a b", "a c"], order=2)
    # After how many different units: a after the beginning, b and c after a, END after both of these.
    continuations = {"a": 1, "b": 1, "c": 1, "END": 2}
    discounts = {1: 0.5, 2: 1.0}
    total = sum(continuations.values())
    left = sum(discounts[count] for count in continuations.values()) / total
    uniform = 1 / 5  # a, b, c, <unk> and END
    single = {unit: (count - discounts[count]) / total + left * uniform for unit, count in continuations.items()}
    after_a = {"b": (2 - 1.0) / 3, "c": (1 - 0.5) / 3}
    expected = [after_a[unit] + (1.0 + 0.5) / 3 * single[unit] for unit in ("b", "c")]
    chances = [math.exp(model.log_probabilities(f"a {unit}")[1]) for unit in ("b", "c")]
    assert chances == pytest.approx(expected)


def test_the_largest_shares_come_first_and_of_equal_ones_the_earlier():
    shares = np.array([0.1, 0.3, 0.0, 0.3, 0.2, 0.1])
    assert ngrams._largest(shares, 3).tolist() == [1, 3, 4]
    assert ngrams._largest(shares, 9).tolist() == [1, 3, 4, 0, 5] and ngrams._largest(shares, 0).tolist() == []
