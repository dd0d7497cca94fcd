"""Replies of a causal model on disk: a tiny random Llama, greedy, the same however prompts are batched."""

import shutil

import pytest

from predictors.errors import CheckpointError, PredictorError
from tests.predictors.tiny_llama import save_tiny_llama

pytestmark = pytest.mark.torch

PROMPTS = ["Is water wet?", "A", "What is the capital of France?\n(A) Lyon\n(B) Paris\nAnswer:"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return str(save_tiny_llama(tmp_path_factory.mktemp("llama")))


def replies(checkpoint, prompts, **settings):
    from predictors.generation import generate

    by_index = dict(generate(checkpoint, prompts, **settings))
    return [by_index[index] for index in range(len(prompts))]


def test_every_prompt_gets_its_own_reply_however_they_are_batched(checkpoint):
    together = replies(checkpoint, PROMPTS, max_tokens=4)
    alone = [replies(checkpoint, [prompt], max_tokens=4)[0] for prompt in PROMPTS]
    assert [reply.texts for reply in together] == [reply.texts for reply in alone]
    assert [reply.usage.prompt_tokens for reply in together] == [reply.usage.prompt_tokens for reply in alone]


def test_replies_are_the_same_twice_and_no_longer_than_asked(checkpoint):
    first, second = (replies(checkpoint, PROMPTS, max_tokens=3) for _ in range(2))
    assert first == second
    assert all(reply.usage.completion_tokens <= 3 for reply in first)


def test_a_prompt_beyond_the_models_reach_loses_its_beginning(checkpoint):
    tail = "so the answer is"
    long, longer = ("x" * 5000 + tail, "x" * 9000 + tail)
    assert replies(checkpoint, [long], max_tokens=2)[0].texts == replies(checkpoint, [longer], max_tokens=2)[0].texts


def test_weights_that_are_pickled_are_not_read(checkpoint, tmp_path):
    import torch
    from safetensors.torch import load_file

    from predictors.networks.checkpoints import read_checkpoint
    from predictors.readings.causal import CausalReader

    folder = shutil.copytree(checkpoint, tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    for read in (lambda name: replies(name, PROMPTS), CausalReader, read_checkpoint):
        with pytest.raises(CheckpointError, match="safetensors"):
            read(str(folder))


def test_it_refuses_what_is_no_model_and_numbers_that_make_no_sense(checkpoint, tmp_path):
    with pytest.raises(CheckpointError, match="cannot be used"):
        replies(str(tmp_path), PROMPTS)
    with pytest.raises(PredictorError, match="max_tokens"):
        replies(checkpoint, PROMPTS, max_tokens=0)
