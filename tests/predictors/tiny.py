"""A random BERT of a few thousand weights, saved as a local checkpoint, and a small cast of pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from predictors.pairs import Pair

WORDS = ["the", "a", "of", "to", "is", "what", "which", "river", "city", "metal", "planet"]
WORDS += ["sum", "two", "three", "plus", "long", "short", "red", "blue", "old", "new"]


def save_tiny_bert(folder: Path, *, seed: int = 0, pooler: bool = True) -> Path:
    """Write config, tokenizer and random safetensors weights, as a Hugging Face folder."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    # Written down and not learnt: the trainer numbers its words in another order in every process, and with random
    # weights another numbering is another network.
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [*WORDS, *["right", "wrong", ":", "?", "!", "0", "1", "2", "3"]]
    letters = sorted({letter for word in words for letter in word})
    known = dict.fromkeys([*specials, *letters, *(f"##{letter}" for letter in letters), *words])
    vocabulary = {word: number for number, word in enumerate(known)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(specials)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(word, vocabulary[word]) for word in ("[CLS]", "[SEP]")],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            initializer_range=0.2,
        )
        BertModel(config, add_pooling_layer=pooler).save_pretrained(folder, safe_serialization=True)
    return folder


def some_pairs(count: int, *, seed: int = 0, words: int = 8) -> list[Pair]:
    """Pairs of random words from four tasks, with texts of 1 to `words` words."""
    rng = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS, size=int(rng.integers(1, words + 1))))

    def task() -> str:
        return f"task_{rng.integers(4)}"

    return [Pair(text(), text(), task(), task(), int(rng.integers(2))) for _ in range(count)]


def learnable_labels(pairs: list[Pair]) -> np.ndarray:
    """1 where the evidence was answered incorrectly and the target text is longer than three words."""
    return np.array([float(pair.outcome == 0 and len(pair.target_text.split()) > 3) for pair in pairs])
