"""A random Llama of a few thousand weights with a byte-level tokenizer of its own, saved as a local checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from predictors.prompts import shipped
from tests.predictors.tiny import WORDS

ANSWERS = (" 0", " 1")


def change_prompt(evidence: str, target: str, outcome: int) -> str:
    template = shipped("change")
    return f"{template.opening}\n\n{template.about(evidence, target, outcome)}"


def byte_tokenizer(**words: str) -> Any:
    """Byte-level BPE, whole words of the prompt, a token before each text.

    `_0` and `_1` are what it makes of these digits at the end of a text, letter by letter.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    prompts = [change_prompt(" ".join(WORDS), " ".join(WORDS), outcome) for outcome in (0, 1)]
    tokenizer.train_from_iterator([prompt + answer for prompt in prompts for answer in ANSWERS] * 3, trainer)
    if words:
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Replace(Regex(f"{digit[1:]}$"), word) for digit, word in words.items()]
        )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def save_tiny_llama(folder: Path, *, tokenizer: Any = None, seed: int = 0, **config: Any) -> Path:
    """Write config, tokenizer and random safetensors weights, as a Hugging Face folder."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tokenizer or byte_tokenizer()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = {
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "max_position_embeddings": 256,
            "initializer_range": 0.2,
        }
        LlamaForCausalLM(LlamaConfig(**{**sizes, **config})).save_pretrained(folder)
    return folder
