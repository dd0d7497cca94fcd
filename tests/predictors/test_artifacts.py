from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from predictors import artifacts, registry
from predictors.errors import CheckpointError, PredictorError
from tests.predictors.fresh_process import printed_by
from tests.predictors.tiny import some_pairs

PAIRS = some_pairs(24, seed=1)
LABELS = [0, 1] * 12


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "saved"
    artifacts.save(registry.create("same_task").fit(PAIRS, LABELS), folder)
    return folder


@pytest.mark.parametrize("name", ["previous_correct", "same_task"])
def test_a_regression_reloads_to_the_same_predictions(name, tmp_path):
    fitted = registry.create(name, seed=3).fit(PAIRS, LABELS)
    artifacts.save(fitted, tmp_path / "saved")
    again = artifacts.load(tmp_path / "saved")
    assert np.array_equal(fitted.predict_proba(PAIRS), again.predict_proba(PAIRS))
    assert again.get_params() == fitted.get_params()


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.parametrize("head", ["paper", "segments"])
def test_a_bert_reloads_bit_for_bit_in_a_fresh_process_without_its_checkpoint(tiny_params, tmp_path, head):
    import shutil

    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(tiny_params["checkpoint"], checkpoint)
    fitted = registry.create("bert", {**tiny_params, "checkpoint": str(checkpoint), "head": head}).fit(PAIRS, LABELS)
    artifacts.save(fitted, tmp_path / "saved")
    shutil.rmtree(checkpoint)
    code = f"""
from predictors import artifacts
from tests.predictors.tiny import some_pairs
found = artifacts.load({str(tmp_path / "saved")!r}).predict_proba(some_pairs(24, seed=1))
print(found.tobytes().hex())
"""
    output = printed_by(code)
    assert output.strip() == fitted.predict_proba(PAIRS).tobytes().hex()


@pytest.mark.torch
def test_nothing_saved_is_pickled(tiny_params, tmp_path):
    artifacts.save(registry.create("bert", tiny_params).fit(PAIRS, LABELS), tmp_path / "saved")
    kinds = {path.suffix for path in (tmp_path / "saved").rglob("*") if path.is_file()}
    assert kinds == {".json", ".safetensors"}


def test_equal_content_has_an_equal_digest_wherever_it_lies(saved, tmp_path):
    other = tmp_path / "elsewhere" / "copy"
    digest = artifacts.save(registry.create("same_task").fit(PAIRS, LABELS), other)
    assert digest == artifacts.folder_digest(saved) == artifacts.folder_digest(other)
    assert len(digest) == 64


def test_a_changed_byte_is_refused_with_the_name_of_the_file(saved):
    path = saved / "logistic.json"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"the file logistic\.json was changed"):
        artifacts.load(saved)


def test_a_missing_file_is_refused_by_name(saved):
    (saved / "logistic.json").unlink()
    with pytest.raises(CheckpointError, match=r"logistic\.json is missing"):
        artifacts.load(saved)


def test_a_file_that_was_not_saved_is_refused_by_name(saved):
    (saved / "extra.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"extra\.json is not in"):
        artifacts.load(saved)


def test_a_folder_without_a_manifest_is_refused(saved):
    (saved / artifacts.MANIFEST).unlink()
    with pytest.raises(CheckpointError, match=r"no manifest\.json"):
        artifacts.load(saved)


@pytest.mark.parametrize(
    "change", [{"kind": "os.system"}, {"format": 99}, {"files": []}], ids=["kind", "format", "files"]
)
def test_a_manifest_of_an_unknown_kind_or_format_is_refused(saved, change):
    manifest = json.loads((saved / artifacts.MANIFEST).read_text())
    (saved / artifacts.MANIFEST).write_text(json.dumps({**manifest, **change}))
    with pytest.raises(CheckpointError, match="unknown here"):
        artifacts.load(saved)


def test_a_garbled_manifest_is_refused(saved):
    (saved / artifacts.MANIFEST).write_text("[]")
    with pytest.raises(CheckpointError, match="cannot be read"):
        artifacts.load(saved)


def test_it_does_not_write_into_a_folder_that_holds_something(saved):
    with pytest.raises(PredictorError, match="not empty"):
        artifacts.save(registry.create("same_task").fit(PAIRS, LABELS), saved)


def test_it_saves_nothing_that_has_not_learnt_and_no_stranger(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        artifacts.save(registry.create("same_task"), tmp_path / "unfitted")
    with pytest.raises(PredictorError, match="cannot be saved"):
        artifacts.save(object(), tmp_path / "stranger")


def test_a_checkpoints_digest_is_that_of_its_files_by_name_wherever_they_lie(tmp_path):
    """Of configuration, tokenizer and weights; one that was changed is read again though it is as long as before."""
    names = ("config.json", "model.safetensors", "vocab.txt", "spiece.model")

    def made(folder: str) -> Path:
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text("one")
        return tmp_path / folder

    one_folder, other = made("one"), made("other")
    first = artifacts.checkpoint_digest(one_folder)
    assert artifacts.checkpoint_digest(other) == first
    (one_folder / "README.md").write_text("about it")
    assert artifacts.checkpoint_digest(one_folder) == first
    known = {first}
    for number, name in enumerate(names, start=1):
        (one_folder / name).write_text("two")
        os.utime(one_folder / name, ns=(number * 10**9, number * 10**9))
        known.add(artifacts.checkpoint_digest(one_folder))
        # The same name, length and time in another folder is another file.
        os.utime(other / name, ns=(number * 10**9, number * 10**9))
        assert artifacts.checkpoint_digest(other) == first
    assert len(known) == 5
    (other / "vocab.txt").rename(other / "merges.txt")
    assert artifacts.checkpoint_digest(other) not in known
