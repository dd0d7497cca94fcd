from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest

from predictors import artifacts, registry, training
from predictors.errors import CheckpointError, PredictorError, Stopped
from predictors.features import Features
from tests.predictors.tiny import some_pairs

PAIRS = some_pairs(24, seed=1)
LABELS = [0.0, 1.0] * 12


@pytest.fixture(autouse=True)
def _forgetful():
    training.forget_predictors()


def _train(name, params, member, folder, **kwargs):
    return training.train_member(name, params, 5, member, PAIRS, LABELS, None, folder, **kwargs)


def test_a_regression_is_trained_saved_and_scores(tmp_path):
    report = _train("same_task", {}, 0, tmp_path / "model")
    assert report["digest"] == artifacts.folder_digest(tmp_path / "model")
    assert report["n_examples"] == 24 and report["steps"] > 0 and 0 < report["loss"] < 1
    fitted = registry.create("same_task", {}, 5).fit(PAIRS, LABELS)
    scores = training.score([tmp_path / "model"], PAIRS)
    assert scores.dtype == np.float32
    assert np.array_equal(scores, fitted.predict_proba(PAIRS)[:, 1].astype(np.float32))


def test_features_of_any_instrument_are_trained_on_and_scored(tmp_path):
    rows = [Features({"text": str(number)}, {"x": float(number % 5)}) for number in range(24)]
    training.train_member("logistic", {"numbers": ["x"]}, 5, 0, rows, LABELS, None, tmp_path / "model")
    scores = training.score([tmp_path / "model"], (row for row in rows), block=7)
    expected = registry.create("logistic", {"numbers": ["x"]}).fit(rows, LABELS).predict_proba(rows)[:, 1]
    assert np.array_equal(scores, expected.astype(np.float32))
    with pytest.raises(PredictorError, match="numbers: the rows have no 'x'"):
        training.score([tmp_path / "model"], PAIRS)


@pytest.mark.thorough
@pytest.mark.torch
def test_members_trained_one_by_one_score_like_the_ensemble(tmp_path, tiny_params):
    folders = [tmp_path / f"member-{index}" for index in range(training.members_of("bert", tiny_params))]
    reports = [_train("bert", tiny_params, index, folder) for index, folder in enumerate(folders)]
    assert [report["steps"] for report in reports] == [3, 3]
    ensemble = registry.create("bert", tiny_params, 5).fit(PAIRS, LABELS)
    expected = ensemble.predict_proba(PAIRS)[:, 1].astype(np.float32)
    assert np.array_equal(training.score(folders, PAIRS), expected)
    assert training.score(folders, iter(PAIRS), block=7) == pytest.approx(expected, abs=2e-3)


@pytest.mark.torch
def test_training_that_is_stopped_leaves_no_folder(tmp_path, tiny_params):
    with pytest.raises(Stopped):
        _train("bert", tiny_params, 0, tmp_path / "model", progress=lambda done, total, text: False)
    assert not (tmp_path / "model").exists()


def test_a_member_beyond_the_last_is_refused(tmp_path):
    with pytest.raises(PredictorError, match="member: 1 is not one of the 1 members of same_task"):
        _train("same_task", {}, 1, tmp_path / "model")


def test_a_generator_is_scored_in_blocks_that_are_never_held_together(tmp_path):
    _train("same_task", {}, 0, tmp_path / "model")
    count, held = 3000, []

    def stream():
        for index in range(count):
            yield PAIRS[index % 24]._replace(evidence_text=f"{index:04d}" * 500)

    training.score([tmp_path / "model"], PAIRS)
    tracemalloc.start()
    scores = training.score(
        [tmp_path / "model"], stream(), block=50, progress=lambda done, total, text: held.append((done, total))
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(scores) == count and held[-1] == (count, 0)
    assert [done for done, _ in held] == sorted(done for done, _ in held)
    assert peak < 2_000_000, "3,000 texts of 2,000 characters are 6 MB; a block of 50 is 0.1 MB"
    assert np.array_equal(scores[:24], training.score([tmp_path / "model"], PAIRS))


def test_progress_knows_the_total_of_a_list_and_may_stop_the_scoring(tmp_path):
    _train("same_task", {}, 0, tmp_path / "model")
    seen = []
    training.score([tmp_path / "model"], PAIRS, block=10, progress=lambda done, total, text: seen.append((done, total)))
    assert {(10, 24), (20, 24), (24, 24)} <= set(seen)
    with pytest.raises(Stopped):
        training.score([tmp_path / "model"], PAIRS, progress=lambda done, total, text: False)


def test_a_saved_predictor_is_read_once_a_process(tmp_path, monkeypatch):
    _train("same_task", {}, 0, tmp_path / "model")
    loaded = []
    original = artifacts.load
    monkeypatch.setattr(artifacts, "load", lambda folder: loaded.append(folder) or original(folder))
    for _ in range(3):
        training.score([tmp_path / "model"], PAIRS)
    assert len(loaded) == 1


def test_scoring_nothing_gives_nothing_and_scoring_with_nothing_is_refused(tmp_path):
    _train("same_task", {}, 0, tmp_path / "model")
    assert training.score([tmp_path / "model"], []).shape == (0,)
    with pytest.raises(PredictorError, match="folders: there are none"):
        training.score([], PAIRS)
    with pytest.raises(PredictorError, match="block: 0"):
        training.score([tmp_path / "model"], PAIRS, block=0)
    with pytest.raises(CheckpointError, match="no manifest"):
        training.score([tmp_path / "nowhere"], PAIRS)


def test_threads_are_limited_in_the_environment_and_in_torch(monkeypatch):
    import sys
    from types import SimpleNamespace

    threads = []
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=threads.append))
    for variable in training._THREAD_VARIABLES:
        monkeypatch.setenv(variable, "64")
    training.limit_threads(3)
    assert threads == [3] and os.environ["OMP_NUM_THREADS"] == "3"
    with pytest.raises(PredictorError, match="threads: 0"):
        training.limit_threads(0)


def test_the_member_that_was_used_longest_ago_is_dropped_from_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_CACHED_PREDICTORS", 2)
    for number, name in enumerate(("same_task", "previous_correct", "logistic")):
        _train(name, {}, 0, tmp_path / str(number))
    loaded = []
    original = artifacts.load
    monkeypatch.setattr(artifacts, "load", lambda folder: loaded.append(folder.name) or original(folder))
    for name in ("0", "1", "0", "2", "0", "1"):
        training.score([tmp_path / name], PAIRS)
    assert loaded == ["0", "1", "2", "1"]


def test_several_members_score_as_their_mean(tmp_path):
    for name in ("same_task", "previous_correct"):
        _train(name, {}, 0, tmp_path / name)
    first, other = (training.score([tmp_path / name], PAIRS) for name in ("same_task", "previous_correct"))
    both = training.score([tmp_path / "same_task", tmp_path / "previous_correct"], PAIRS)
    assert both == pytest.approx((first + other) / 2, abs=1e-7) and np.abs(first - other).max() > 0.01
