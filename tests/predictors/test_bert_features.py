"""The BERT on features of any instrument: one text, two or more, and numbers at the head."""

from __future__ import annotations

import numpy as np
import pytest

from predictors import artifacts, registry, training
from predictors.errors import PredictorError
from predictors.evaluation import area_under_curve
from predictors.features import Features, features_of
from tests.predictors.fresh_process import printed_by
from tests.predictors.tiny import WORDS, some_pairs

pytestmark = pytest.mark.torch


def some_rows(count: int, *, texts: int = 1, seed: int = 0) -> list[Features]:
    """Rows of `texts` random texts of 1 to 8 words, and two numbers of very different sizes."""
    rng = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS, size=int(rng.integers(1, 9))))

    def numbers() -> dict[str, float]:
        return {"seconds": float(rng.normal(4000, 900)), "seen": float(rng.integers(2))}

    return [Features({f"text {number}": text() for number in range(texts)}, numbers()) for _ in range(count)]


def tokenizer_of(tiny_bert, max_length=64):
    from predictors.networks.checkpoints import read_checkpoint
    from predictors.networks.text import RowTokenizer

    return RowTokenizer(read_checkpoint(str(tiny_bert)).tokenizer, max_length)


def inputs_of(rows):
    from predictors.networks.text import Inputs

    return Inputs.learn(rows, np.ones(len(rows)))


def test_one_text_and_two_are_laid_out_as_the_tokenizer_itself_would(tiny_bert):
    tokenizer = tokenizer_of(tiny_bert)
    for count in (1, 2):
        rows = some_rows(1, texts=count)
        layout = tokenizer.lay_out(tokenizer.tokenise(rows, inputs_of(rows)))
        expected = tokenizer.tokenizer.encode(*rows[0].texts.values())
        assert layout.ids.tolist() == expected.ids
        assert layout.types.tolist() == expected.type_ids
        assert layout.lengths.tolist() == [len(expected.ids)]


def test_a_third_text_follows_the_second_after_a_separator(tiny_bert):
    tokenizer = tokenizer_of(tiny_bert)
    rows = [Features({"a": "red", "b": "blue", "c": "old city"})]
    (row,) = tokenizer.tokenise(rows, inputs_of(rows))
    layout = tokenizer.lay_out([row])
    back = {number: word for word, number in tokenizer.tokenizer.get_vocab().items()}
    words = ["[CLS]", "red", "[SEP]", "blue", "[SEP]", "old", "city", "[SEP]"]
    assert [back[number] for number in layout.ids.tolist()] == words
    assert layout.types.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    assert layout.segments.tolist() == [0, 1, 0, 2, 0, 2, 2, 0]
    assert tokenizer.length(row) == len(words)


def test_the_longest_of_several_texts_are_cut_first(tiny_bert):
    tokenizer = tokenizer_of(tiny_bert, max_length=16)
    rows = [Features({"a": " ".join(["red"] * 20), "b": "old", "c": " ".join(["blue"] * 20)})]
    (row,) = tokenizer.tokenise(rows, inputs_of(rows))
    assert [len(text) for text in row.texts] == [6, 1, 5]
    assert tokenizer.length(row) == 16


def test_more_texts_than_there_is_room_for_are_refused(tiny_bert):
    rows = some_rows(1, texts=9)
    with pytest.raises(PredictorError, match="max_length: 16 leaves 9 texts no room; give 19 or more"):
        tokenizer_of(tiny_bert, max_length=16).tokenise(rows, inputs_of(rows))


def test_numbers_are_standardised_by_the_training_rows_and_a_constant_is_0(tiny_bert):
    rows = [Features({"a": "red"}, {"x": value, "five": 5.0}) for value in (1000.0, 3000.0)]
    inputs = inputs_of(rows)
    assert inputs.numbers_of(rows).tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    assert inputs.numbers_of([Features({"a": "red"}, {"x": 4000.0, "five": 6.0})]).tolist() == [[2.0, 1.0]]


@pytest.mark.thorough
@pytest.mark.learning
@pytest.mark.parametrize(("texts", "head"), [(1, "paper"), (3, "segments")])
def test_it_learns_what_a_text_and_a_number_hold(tiny_params, texts, head):
    """The mean of three members, each from a seed of its own: a single one may learn nothing of the text. On 500 rows
    whose number says nothing, a network that does not read lies within .07 of .5."""
    rows = some_rows(1000, texts=texts, seed=1)
    labels = np.array([float("red" in row.texts["text 0"].split() or row.numbers["seconds"] > 4600) for row in rows])
    params = {**tiny_params, "members": 3, "epochs": 6, "learning_rate": 1e-2, "batch_size": 16, "head": head}
    probabilities = registry.create("bert", params).fit(rows[:350], labels[:350]).predict_proba(rows[350:])[:, 1]
    assert area_under_curve(labels[350:], probabilities) > 0.75
    without = np.array([row.numbers["seconds"] < 4600 for row in rows[350:]])
    assert area_under_curve(labels[350:][without], probabilities[without]) > 0.65


@pytest.mark.thorough
def test_the_head_starts_from_what_the_numbers_alone_say(tiny_params):
    rows = some_rows(300, seed=2)
    labels = np.array([float(row.numbers["seconds"] > 4000) for row in rows])
    params = {**tiny_params, "members": 1, "learning_rate": 1e-9, "dropout": 0.0}
    fitted = registry.create("bert", params).fit(rows, labels)
    assert area_under_curve(labels, fitted.predict_proba(rows)[:, 1]) > 0.95


def test_members_and_saved_folders_agree_bit_for_bit(tiny_params, tmp_path):
    rows = some_rows(24, texts=2, seed=1)
    labels = [0.0, 1.0] * 12
    folders = [tmp_path / f"member-{number}" for number in range(2)]
    for number, folder in enumerate(folders):
        training.train_member("bert", tiny_params, 5, number, rows, labels, None, folder)
    whole = registry.create("bert", tiny_params, 5).fit(rows, labels)
    expected = whole.predict_proba(rows)[:, 1].astype(np.float32)
    assert np.array_equal(training.score(folders, rows), expected)
    artifacts.save(whole, tmp_path / "whole")
    code = f"""
import numpy as np
from predictors import artifacts
from tests.predictors.test_bert_features import some_rows
found = artifacts.load({str(tmp_path / "whole")!r}).predict_proba(some_rows(24, texts=2, seed=1))
print(found[:, 1].astype(np.float32).tobytes().hex())
"""
    output = printed_by(code)
    assert output.strip() == expected.tobytes().hex()


def test_members_that_read_other_rows_do_not_join(tiny_params):
    predictor = registry.create("bert", tiny_params)
    labels = [0.0, 1.0] * 6
    members = [predictor.member(number).fit(some_rows(12, texts=texts), labels) for number, texts in enumerate((1, 2))]
    with pytest.raises(PredictorError, match="members: they read different texts or numbers"):
        type(predictor).from_members(members)


def test_rows_of_another_kind_than_in_training_are_refused(tiny_params):
    labels = [0.0, 1.0] * 6
    pairs = some_pairs(12)
    of_pairs = registry.create("bert", tiny_params).fit(pairs, labels)
    with pytest.raises(PredictorError, match="was trained on pairs; give it pairs"):
        of_pairs.predict_proba([features_of(pair) for pair in pairs])
    of_features = registry.create("bert", tiny_params).fit(some_rows(12), labels)
    with pytest.raises(PredictorError, match="texts: the rows have no 'text 0'; they have 'evidence', 'target'"):
        of_features.predict_proba(pairs)
    with pytest.raises(PredictorError, match="texts: the rows have none"):
        registry.create("bert", tiny_params).fit([Features({}, {"x": 1.0})] * 12, labels)
    assert of_features.predict_proba([]).shape == (0, 2)
