from __future__ import annotations

import shutil

import numpy as np
import pytest

from predictors import artifacts, embeddings, registry, training
from predictors.errors import CheckpointError, PredictorError, Stopped
from predictors.evaluation import area_under_curve
from predictors.features import Features, features_of
from predictors.settings import EmbeddingXgboostSettings
from tests.predictors.fresh_process import printed_by
from tests.predictors.tiny import learnable_labels, some_pairs

pytestmark = pytest.mark.torch

PAIRS = some_pairs(60, seed=1)
LABELS = learnable_labels(PAIRS)


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch):
    monkeypatch.delenv("HUNCH_EMBEDDINGS_CACHE", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    embeddings.forget_embeddings()
    training.forget_predictors()


@pytest.fixture
def params(tiny_bert):
    return {"embeddings": str(tiny_bert), "trees": 30, "learning_rate": 0.2}


def _fitted(params, pairs=PAIRS, labels=LABELS, weights=None, seed=0, progress=None):
    return registry.create("embedding_xgboost", params, seed).fit(pairs, labels, weights, progress)


@pytest.mark.thorough
@pytest.mark.learning
def test_it_learns_what_the_pairs_hold(params):
    pairs = some_pairs(500, seed=3)
    labels = learnable_labels(pairs)
    fitted = _fitted({**params, "trees": 100}, pairs[:400], labels[:400])
    assert area_under_curve(labels[400:], fitted.predict_proba(pairs[400:])[:, 1]) > 0.8


@pytest.mark.learning
def test_it_learns_from_the_texts_and_numbers_of_any_instrument(params, tmp_path):
    pairs = some_pairs(500, seed=3)
    numbers = np.random.default_rng(0).normal(size=500)
    rows = [
        Features({"passage": pair.target_text}, {"score": float(x)}) for pair, x in zip(pairs, numbers, strict=True)
    ]
    labels = np.array([float(len(row.texts["passage"].split()) > 4 or row.numbers["score"] > 1) for row in rows])
    fitted = _fitted({**params, "trees": 100}, rows[:400], labels[:400])
    probabilities = fitted.predict_proba(rows[400:])
    assert area_under_curve(labels[400:], probabilities[:, 1]) > 0.8
    artifacts.save(fitted, tmp_path / "saved")
    assert np.array_equal(artifacts.load(tmp_path / "saved").predict_proba(rows[400:]), probabilities)
    with pytest.raises(PredictorError, match="texts: the rows have no 'passage'; they have 'evidence', 'target'"):
        fitted.predict_proba(pairs)
    with pytest.raises(PredictorError, match="texts: the rows have none"):
        _fitted(params, [Features({}, {"score": 1.0})] * 4, [0, 1, 0, 1])


def test_trained_on_pairs_it_reads_pairs_as_features_too(params):
    fitted = _fitted(params)
    assert np.array_equal(fitted.predict_proba([features_of(pair) for pair in PAIRS]), fitted.predict_proba(PAIRS))


def test_both_texts_are_read_in_their_places(params):
    changed = _fitted(params).predict_proba
    pair = PAIRS[0]
    turned = pair._replace(evidence_text=pair.target_text, target_text=pair.evidence_text)
    assert changed([pair])[0, 1] != changed([turned])[0, 1]
    assert changed([pair._replace(outcome=0)])[0, 1] != changed([pair._replace(outcome=1)])[0, 1]


def test_probabilities_add_up_and_the_likelier_class_is_predicted(params):
    fitted = _fitted(params)
    both = fitted.predict_proba(PAIRS)
    assert both.shape == (60, 2) and both.dtype == np.float64 and both.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(fitted.predict(PAIRS), (both[:, 1] > 0.5).astype(int))
    assert fitted.predict_proba([]).shape == (0, 2)


def test_its_loss_is_the_one_of_its_predictions(params):
    weights = np.linspace(0.5, 2, 60)
    labels = np.clip(LABELS, 0.1, 0.8)
    fitted = _fitted(params, labels=labels, weights=weights)
    changed = fitted.predict_proba(PAIRS)[:, 1]
    losses = -(labels * np.log(changed) + (1 - labels) * np.log(1 - changed))
    assert fitted.loss_ == pytest.approx(np.average(losses, weights=weights), rel=1e-4)


@pytest.mark.thorough
def test_a_fraction_is_two_weighted_rows(params):
    # Without what depends on the size of the weights, which are brought to mean 1 over the rows given. Trees add up in
    # single precision: other rows with the same sums may part a near tie in another way, which moves a few predictions.
    params = {**params, "subsample": 1.0, "column_sample": 1.0, "l2": 0.0, "min_child_weight": 0.0, "trees": 10}
    fractions = [0.25] * 30 + [1.0] * 30
    rows, labels = [*PAIRS, *PAIRS[:30]], [1.0] * 60 + [0.0] * 30
    weights = [0.25] * 30 + [1.0] * 30 + [0.75] * 30
    expected = _fitted(params, rows, labels, weights).predict_proba(PAIRS)
    assert np.abs(_fitted(params, labels=fractions).predict_proba(PAIRS) - expected).mean() < 0.01
    assert np.abs(_fitted(params, labels=[0.75] * 30 + [1.0] * 30).predict_proba(PAIRS) - expected).mean() > 0.1


def test_weights_decide_between_contradicting_rows(params):
    pair = PAIRS[:1]
    low = _fitted(params, pair * 20, [0, 1] * 10, [9, 1] * 10).predict_proba(pair)[0, 1]
    high = _fitted(params, pair * 20, [0, 1] * 10, [1, 9] * 10).predict_proba(pair)[0, 1]
    assert low == pytest.approx(0.1, abs=0.03) and high == pytest.approx(0.9, abs=0.03)


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_trees_and_another_seed_others(params):
    first, same, other = (_fitted(params, seed=seed).predict_proba(PAIRS) for seed in (4, 4, 5))
    assert np.array_equal(first, same) and not np.array_equal(first, other)


@pytest.mark.thorough
def test_more_threads_give_the_same_trees(params, monkeypatch):
    probabilities = _fitted(params).predict_proba(PAIRS)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert np.array_equal(_fitted(params).predict_proba(PAIRS), probabilities)


@pytest.mark.thorough
def test_it_reloads_bit_for_bit_in_a_fresh_process(params, tmp_path):
    fitted = _fitted(params, seed=7)
    digest = artifacts.save(fitted, tmp_path / "saved")
    code = f"""
from predictors import artifacts
from tests.predictors.tiny import some_pairs
found = artifacts.load({str(tmp_path / "saved")!r})
print(found.predict_proba(some_pairs(90, seed=1)).tobytes().hex(), found.random_state)
"""
    output = printed_by(code)
    assert output.split() == [fitted.predict_proba(some_pairs(90, seed=1)).tobytes().hex(), "7"]
    assert artifacts.save(_fitted(params, seed=7), tmp_path / "again") == digest
    assert {path.suffix for path in (tmp_path / "saved").iterdir()} == {".json", ".ubj"}


def test_it_refuses_an_embedding_model_that_has_changed_since(params, tiny_bert, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    fitted = _fitted({**params, "embeddings": str(folder)})
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in weights.items()}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"^embeddings: the files of .* have changed"):
        fitted.predict_proba(PAIRS)


def test_a_worker_trains_it_and_scores_with_it(params, tmp_path):
    result = training.train_member("embedding_xgboost", params, 3, 0, PAIRS, LABELS, None, tmp_path / "model")
    assert result["steps"] == 30 and result["n_examples"] == 60 and 0 < result["loss"] < 0.7
    expected = _fitted(params, seed=3).predict_proba(PAIRS)[:, 1].astype(np.float32)
    assert np.array_equal(training.score([tmp_path / "model"], PAIRS), expected)


def test_progress_counts_texts_then_trees_and_may_stop_either(params):
    seen = []
    _fitted(params, progress=lambda done, total, text: seen.append((done, total, text)))
    assert [row[:2] for row in seen[-3:]] == [(10, 30), (20, 30), (30, 30)] and "texts" in seen[0][2]
    with pytest.raises(Stopped):
        _fitted(params, progress=lambda done, total, text: "tree" not in text)
    embeddings.forget_embeddings()
    with pytest.raises(Stopped):
        _fitted(params, progress=lambda done, total, text: "texts" not in text)


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        ([0.0] * 60, None, "training needs rows of the class 1 too"),
        ([float("nan")] * 60, None, "labels: row 0 is nan"),
        (LABELS[:3], None, "labels: shape"),
        (LABELS, [0.0] * 60, "every weight is 0"),
    ],
)
def test_it_refuses_what_cannot_be_learnt_from(params, labels, weights, message):
    with pytest.raises(PredictorError, match=message):
        _fitted(params, labels=labels, weights=weights)
    with pytest.raises(PredictorError, match="rows: there are none"):
        _fitted(params, [], [])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trees", 0),
        ("depth", 1.5),
        ("learning_rate", 0),
        ("subsample", 1.5),
        ("column_sample", 0),
        ("min_child_weight", -1),
        ("l2", float("nan")),
        ("embeddings", ""),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(PredictorError, match=f"^{field}: "):
        EmbeddingXgboostSettings(**{field: value})
    with pytest.raises(PredictorError, match=f"^{field}: "):
        _fitted({field: value})
