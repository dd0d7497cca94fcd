from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

from predictors import embeddings
from predictors.embeddings import embed
from predictors.errors import CheckpointError, PredictorError, Stopped
from tests.predictors import fake_endpoint

TEXTS = ["the red river", "what is two plus three ?", "a", "", "the red river"]


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch):
    for variable in ("HUNCH_EMBEDDINGS_URL", "HUNCH_EMBEDDINGS_KEY", "HUNCH_EMBEDDINGS_CACHE", "VOYAGE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    embeddings.forget_embeddings()
    yield
    embeddings.forget_embeddings()


@pytest.fixture
def server(monkeypatch):
    with fake_endpoint.running() as running:
        running.answer = fake_endpoint.embeddings
        monkeypatch.setenv("HUNCH_EMBEDDINGS_URL", running.url)
        yield running


@pytest.fixture
def counted(monkeypatch):
    """The texts that a local model was asked for, call by call."""
    from predictors.networks.embedder import LocalEmbedder

    asked = []
    original = LocalEmbedder.embed

    def counting(self, texts, *args):
        asked.append(texts)
        return original(self, texts, *args)

    monkeypatch.setattr(LocalEmbedder, "embed", counting)
    return asked


@pytest.mark.torch
def test_an_embedding_is_the_mean_of_all_tokens_with_norm_one(tiny_bert):
    import torch
    from transformers import AutoTokenizer, BertModel

    embeddings = embed(TEXTS, model=str(tiny_bert))
    tokenizer, model = AutoTokenizer.from_pretrained(tiny_bert), BertModel.from_pretrained(tiny_bert).eval()
    assert embeddings.dtype == np.float32 and embeddings.shape == (5, 16)
    for text, row in zip(TEXTS, embeddings, strict=True):
        with torch.no_grad():
            mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy()
        assert row == pytest.approx(mean / np.linalg.norm(mean), abs=0.02), "bfloat16 where the processor has it"
    assert np.linalg.norm(embeddings, axis=1) == pytest.approx(1, abs=1e-6)


@pytest.mark.thorough
@pytest.mark.torch
def test_the_bundled_model_puts_like_texts_together():
    capital, city, sums = embed(
        ["What is the capital of France?", "Paris is the seat of the French government.", "What is 17 times 23?"]
    )
    assert capital.shape == (384,)
    assert capital @ city > 0.4 > capital @ sums


@pytest.mark.torch
def test_a_text_has_one_embedding_whatever_stands_beside_it(tiny_bert):
    together = embed(TEXTS, model=str(tiny_bert))
    for text, row in zip(TEXTS, together, strict=True):
        embeddings.forget_embeddings()
        assert np.array_equal(embed([text], model=str(tiny_bert))[0], row)


@pytest.mark.torch
def test_a_long_text_is_cut_at_the_models_positions(tiny_bert):
    long = embed(["river " * 62, "river " * 500], model=str(tiny_bert))
    assert np.array_equal(long[0], long[1])


@pytest.mark.torch
def test_each_distinct_text_is_computed_once_a_process(tiny_bert, counted):
    first = embed(TEXTS, model=str(tiny_bert))
    again = embed([*TEXTS, "old metal"], model=str(tiny_bert))
    assert counted == [TEXTS[:4], ["old metal"]]
    assert np.array_equal(again[:5], first)


@pytest.mark.torch
def test_a_changed_checkpoint_is_read_anew(tmp_path, tiny_bert):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(tiny_bert, tmp_path / "copy")
    before = embed(TEXTS, model=str(folder))
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"] = -weights["embeddings.word_embeddings.weight"]
    save_file(weights, folder / "model.safetensors")
    assert not np.allclose(embed(TEXTS, model=str(folder)), before, atol=0.1)


@pytest.mark.torch
def test_the_memory_forgets_the_longest_unused(tiny_bert, counted, monkeypatch):
    monkeypatch.setattr(embeddings._memory, "room", 2 * 16 * 4)
    for text in ("a", "the", "a", "red", "a", "the"):
        embed([text], model=str(tiny_bert))
    assert counted == [["a"], ["the"], ["red"], ["the"]]


@pytest.mark.torch
def test_what_another_device_computed_is_not_taken(tiny_bert, tmp_path, counted, monkeypatch):
    embed(TEXTS, model=str(tiny_bert), cache=tmp_path)
    monkeypatch.setattr("predictors.networks.embedder.numerics", lambda: "cuda bfloat16 1")
    embed(TEXTS, model=str(tiny_bert), cache=tmp_path)
    assert len(counted) == 2


@pytest.mark.torch
def test_a_folder_keeps_embeddings_for_other_processes(tiny_bert, tmp_path, counted):
    first = embed(TEXTS, model=str(tiny_bert), cache=tmp_path)
    embeddings.forget_embeddings()
    assert np.array_equal(embed(TEXTS, model=str(tiny_bert), cache=tmp_path), first)
    assert len(counted) == 1
    assert not list(tmp_path.rglob(".*")), "no temporary file stays"


@pytest.mark.torch
def test_the_environment_may_name_the_folder(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setenv("HUNCH_EMBEDDINGS_CACHE", str(tmp_path))
    embed(TEXTS, model=str(tiny_bert))
    assert len(list(tmp_path.rglob("*.f32"))) == 4


@pytest.mark.torch
@pytest.mark.parametrize(
    "damage", [lambda content: content[:-1], lambda content: b"", lambda content: content[:-4] + b"abcd"]
)
def test_a_damaged_entry_is_computed_anew_and_repaired(tiny_bert, tmp_path, counted, damage):
    first = embed(TEXTS, model=str(tiny_bert), cache=tmp_path)
    victim = sorted(tmp_path.rglob("*.f32"))[2]
    sound = victim.read_bytes()
    victim.write_bytes(damage(sound))
    embeddings.forget_embeddings()
    assert np.array_equal(embed(TEXTS, model=str(tiny_bert), cache=tmp_path), first)
    assert [len(texts) for texts in counted] == [4, 1]
    assert victim.read_bytes() == sound


@pytest.mark.torch
def test_a_cache_that_cannot_be_written_is_reported(tiny_bert, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PredictorError, match=r"^cache: .*give another"):
        embed(TEXTS, model=str(tiny_bert), cache=tmp_path / "file")


@pytest.mark.torch
def test_progress_counts_what_was_not_kept_and_may_stop_it(tiny_bert):
    seen = []
    texts = [f"river {number}" for number in range(40)]
    embed(texts, model=str(tiny_bert), progress=lambda done, total, text: seen.append((done, total)))
    assert seen == [(16, 40), (32, 40), (40, 40)]
    with pytest.raises(Stopped):
        embed(["new"], model=str(tiny_bert), progress=lambda done, total, text: False)


@pytest.mark.torch
def test_what_was_embedded_before_a_stop_is_kept(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setattr(embeddings, "_BLOCK", 2)
    with pytest.raises(Stopped):
        embed(TEXTS, model=str(tiny_bert), cache=tmp_path, progress=lambda done, total, text: done < 4)
    assert len(list(tmp_path.rglob("*.f32"))) == 4


@pytest.mark.torch
@pytest.mark.parametrize("model", ["bundled:large", "/no/such/folder"])
def test_a_model_that_is_not_there_is_refused(model):
    with pytest.raises(CheckpointError, match=r"^checkpoint: "):
        embed(TEXTS, model=model)


@pytest.mark.torch
def test_no_texts_give_no_rows(tiny_bert):
    assert embed([], model=str(tiny_bert)).shape[0] == 0


def test_a_server_is_asked_for_each_distinct_text_once(server, monkeypatch):
    monkeypatch.setenv("HUNCH_EMBEDDINGS_KEY", "a-secret")
    embeddings = embed(["abc", "zz", "abc"], model="endpoint:some-model")
    assert embeddings[0] == pytest.approx(np.array([3, 97]) / np.hypot(3, 97)) and np.array_equal(
        embeddings[0], embeddings[2]
    )
    embed(["zz"], model="endpoint:some-model")
    (seen,) = server.seen
    assert seen.path == "/v1/embeddings" and seen.body["model"] == "some-model" and seen.body["input"] == ["abc", "zz"]
    assert "input_type" not in seen.body
    assert {key.lower(): value for key, value in seen.headers.items()}["authorization"] == "Bearer a-secret"


def test_a_servers_progress_counts_texts(server):
    seen = []
    texts = [f"text {number}" for number in range(130)]
    embed(texts, model="endpoint:m", progress=lambda done, total, text: seen.append((done, total)))
    assert seen[-1] == (130, 130) and len(seen) >= 3 and all(total == 130 for _, total in seen)
    with pytest.raises(Stopped):
        embed(["other"], model="endpoint:m", progress=lambda done, total, text: False)


def test_two_servers_do_not_share_what_is_kept(server, monkeypatch):
    embed(["abc"], model="endpoint:m")
    with fake_endpoint.running() as other:
        other.answer = fake_endpoint.embeddings
        monkeypatch.setenv("HUNCH_EMBEDDINGS_URL", other.url)
        embed(["abc"], model="endpoint:m")
        assert len(other.seen) == 1
        embed(["abc"], model="endpoint:another")
        assert [seen.body["model"] for seen in other.seen] == ["m", "another"]


def test_voyage_learns_that_the_texts_are_documents(server, monkeypatch):
    monkeypatch.setattr(embeddings, "VOYAGE_URL", server.url)
    with pytest.raises(PredictorError, match=r"^VOYAGE_API_KEY: not set"):
        embed(["abc"], model="voyage:voyage-3")
    monkeypatch.setenv("VOYAGE_API_KEY", "a-secret")
    embed(["abc"], model="voyage:voyage-3")
    (seen,) = server.seen
    assert seen.body["input_type"] == "document" and seen.body["model"] == "voyage-3"


def test_a_server_without_an_address_or_a_model_is_refused(monkeypatch, server):
    with pytest.raises(PredictorError, match="names no model"):
        embed(["abc"], model="endpoint:")
    monkeypatch.delenv("HUNCH_EMBEDDINGS_URL")
    with pytest.raises(PredictorError, match=r"^HUNCH_EMBEDDINGS_URL: not set"):
        embed(["abc"], model="endpoint:m")


def test_a_blank_text_is_not_sent(server):
    with pytest.raises(PredictorError, match="blank text"):
        embed(["abc", " "], model="endpoint:m")
    assert not server.seen


def test_vectors_without_a_direction_are_refused(server):
    server.answer = fake_endpoint.Raw({"data": [{"index": 0, "embedding": [0.0, 0.0]}]})
    with pytest.raises(PredictorError, match="norm 0"):
        embed(["abc"], model="endpoint:m")


def test_a_server_that_changed_its_model_is_noticed(server):
    embed(["abc"], model="endpoint:m")
    server.answer = fake_endpoint.Raw({"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]})
    with pytest.raises(PredictorError, match="vectors of 2 and 3 numbers"):
        embed(["abc", "other"], model="endpoint:m")


@pytest.mark.thorough
def test_it_imports_nothing_heavy_before_a_local_model_is_used():
    code = """
import os, sys
import predictors.embeddings
os.environ["HUNCH_EMBEDDINGS_URL"] = "http://127.0.0.1:9/v1"
predictors.embeddings.source_of("endpoint:m")
print(sorted({"torch", "transformers", "sklearn", "xgboost", "safetensors", "tokenizers"} & set(sys.modules)))
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
