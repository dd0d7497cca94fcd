"""ARPA files: a bigram by hand, unknown words, and the same probabilities as the model that wrote the file."""

import gzip
import math

import numpy as np
import pytest

from predictors.errors import CheckpointError, PredictorError
from predictors.readings import Detail, Text
from predictors.readings.arpa import ArpaReader, write_arpa
from predictors.readings.ngrams import NgramReader

from .test_ngrams import made_text

# log10: <unk> .1, a .4 (weight .5), b .3 (weight .25), </s> .2; a after <s> .8, b after a .6, </s> after b .9.
BIGRAM = """\
\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.69897000
-0.39794001\ta\t-0.30103000
-0.52287875\tb\t-0.60205999
-0.69897000\t</s>

\\2-grams:
-0.09691001\t<s> a
-0.22184875\ta b
-0.04575749\tb </s>

\\end\\
"""


def reader(tmp_path, content=BIGRAM):
    path = tmp_path / "model.arpa"
    path.write_text(content)
    return ArpaReader(path)


@pytest.mark.parametrize(
    ("text", "chances"),
    [
        ("a b", [0.8, 0.6, 0.9]),
        ("b a", [0.2 * 0.3, 0.25 * 0.4, 0.5 * 0.2]),  # each backs off by the weight of what stands before it
        ("a a", [0.8, 0.5 * 0.4, 0.5 * 0.2]),
        ("zzz a", [0.2 * 0.1, 0.4, 0.5 * 0.2]),  # <unk> has no weight, which is a weight of 1
        ("</s>", [0.2 * 0.1, 0.2]),  # these letters in a text are no end
        ("", [0.2 * 0.2]),
    ],
)
def test_a_bigram_is_read_as_by_hand(tmp_path, text, chances):
    assert np.exp(reader(tmp_path).log_probabilities(text)) == pytest.approx(chances, rel=1e-6)


def test_a_reading_covers_the_text_and_names_the_unknown(tmp_path):
    model, texts = reader(tmp_path), [Text("t", " a  zzz\n")]
    ((_number, reading),) = model.each(texts)
    assert reading.strings(texts[0].text) == [" a", "  zzz\n", ""] and reading.reads_end
    assert reading.score(texts[0].text).tokens == 2
    assert model.unknown_tokens(texts)[0].tolist() == [False, True]
    assert (model.order, model.vocabulary_size) == (2, 4)
    with pytest.raises(PredictorError, match="leave them out"):
        next(model.each(texts, detail=Detail(top=3)))


@pytest.mark.parametrize("order", [1, 2, 4])
def test_what_is_written_gives_every_text_the_same_probability(tmp_path, order):
    texts = [*(made_text(600, seed) for seed in range(3)), "a b", "a", "b b b a"]
    model = NgramReader.train(texts, order=order)
    write_arpa(model, tmp_path / "model.arpa")
    again = ArpaReader(tmp_path / "model.arpa")
    for text in (texts[0], "", "b a b zzz qqq a b", f"{made_text(200, 9)} a b {texts[1][:200]}"):
        assert again.log_probabilities(text) == pytest.approx(model.log_probabilities(text), abs=1e-6)
    assert again.vocabulary_size == model.vocabulary_size


def test_unk_in_the_training_texts_is_what_is_unknown(tmp_path):
    write_arpa(NgramReader.train(["a <unk> b", "a <unk>"], order=2), tmp_path / "model.arpa")
    model = ArpaReader(tmp_path / "model.arpa")
    assert model.log_probabilities("a zzz").tolist() == model.log_probabilities("a <unk>").tolist()
    assert model.log_probabilities("a zzz")[1] > math.log(0.3)


def test_a_packed_file_is_read_and_another_file_is_another_source(tmp_path):
    (tmp_path / "model.arpa.gz").write_bytes(gzip.compress(BIGRAM.encode()))
    packed, plain = ArpaReader(tmp_path / "model.arpa.gz"), reader(tmp_path)
    assert packed.log_probabilities("a b").tolist() == plain.log_probabilities("a b").tolist()
    assert packed.source != plain.source


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\data\\", "", "is it an ARPA file"),
        ("\\end\\\n", "", "ends after line 16"),
        ("ngram 2=3", "ngram 2=4", "line 17: is no log10 probability with 2 words"),
        ("ngram 2=3", "ngram 3=3", "line 3: 'ngram 3=3' does not say"),
        ("a b", "a c", "line 14: 'c' is not among the words of order 1"),
        ("-0.22184875", "much", "line 14: begins or ends with something that is no number"),
        ("-0.22184875", "0.5", "line 14: has a probability above 1"),
        ("b </s>", "a b", "a sequence of 2 words stands there twice"),
        ("-0.39794001\ta", "-0.39794001\tb", "'b' stands there twice"),
        ("-0.69897000\t</s>", "-0.69897000\tz", "has no </s>"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, old, new, message):
    with pytest.raises(CheckpointError, match=r"model\.arpa: ") as refused:
        reader(tmp_path, BIGRAM.replace(old, new, 1))
    assert message in str(refused.value)


def test_a_file_that_is_missing_or_packed_badly_is_refused(tmp_path):
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8bnothing")
    for name in ("none.arpa", "bad.gz"):
        with pytest.raises(CheckpointError, match="cannot be read as an ARPA file"):
            ArpaReader(tmp_path / name)


def test_only_smoothed_models_of_words_can_be_written(tmp_path):
    for settings in ({"unit": "character"}, {"smoothing": "none"}):
        with pytest.raises(PredictorError, match="only a model of words"):
            write_arpa(NgramReader.train(["a b"], order=2, **settings), tmp_path / "model.arpa")
    with pytest.raises(PredictorError, match="<s> is a word of the training texts"):
        write_arpa(NgramReader.train(["a <s>"], order=2), tmp_path / "model.arpa")
