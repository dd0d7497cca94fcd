"""A tiny Llama's folder written again as one GGUF file: the same float32 weights, tokenizer and settings.

The format is that of ggml (version 3); projections of queries and keys are permuted as llama.cpp does it.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
ORDINARY, CONTROL = 1, 3  # Kinds of tokens.
LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def save_as_gguf(llama: Path, path: Path) -> Path:
    """Write the model of the folder `llama` (config.json, model.safetensors, tokenizer.json) as the file `path`."""
    from safetensors.numpy import load_file

    config = json.loads((llama / "config.json").read_text())
    tokenizer = json.loads((llama / "tokenizer.json").read_text())
    weights = load_file(llama / "model.safetensors")
    tensors = {_name_of(name): _placed(name, value, config) for name, value in weights.items()}
    facts = {**_settings(config), **_tokens(tokenizer)}
    head, offset = bytearray(), 0
    for name, value in tensors.items():
        head += _text(name) + struct.pack("<I", value.ndim)
        head += struct.pack(f"<{value.ndim}Q", *reversed(value.shape)) + struct.pack("<IQ", 0, offset)
        offset += -(-value.nbytes // ALIGNMENT) * ALIGNMENT
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts))
    start += b"".join(_text(name) + _value(kind, value) for name, (kind, value) in facts.items()) + bytes(head)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(start + bytes(-len(start) % ALIGNMENT))
        for value in tensors.values():
            file.write(value.tobytes() + bytes(-value.nbytes % ALIGNMENT))
    return path


def _name_of(name: str) -> str:
    known = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    known["lm_head.weight"] = "output.weight"
    if name in known:
        return known[name]
    _model, _layers, number, *rest = name.removesuffix(".weight").split(".")
    return f"blk.{number}.{LAYER['.'.join(rest)]}.weight"


def _placed(name: str, value: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    value = np.ascontiguousarray(value, dtype="<f4")
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    for part, key in heads.items():
        if part in name:
            own = config[key]
            halves = value.reshape(own, 2, value.shape[0] // own // 2, -1)
            return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(value.shape))
    return value


def _settings(config: dict[str, Any]) -> dict[str, tuple[int, Any]]:
    rope = config.get("rope_parameters") or {}
    return {
        "general.architecture": (STRING, "llama"),
        "general.name": (STRING, "tiny"),
        "llama.context_length": (UINT32, config["max_position_embeddings"]),
        "llama.block_count": (UINT32, config["num_hidden_layers"]),
        "llama.embedding_length": (UINT32, config["hidden_size"]),
        "llama.feed_forward_length": (UINT32, config["intermediate_size"]),
        "llama.attention.head_count": (UINT32, config["num_attention_heads"]),
        "llama.attention.head_count_kv": (UINT32, config["num_key_value_heads"]),
        "llama.attention.layer_norm_rms_epsilon": (FLOAT32, config["rms_norm_eps"]),
        "llama.rope.dimension_count": (UINT32, config["hidden_size"] // config["num_attention_heads"]),
        "llama.rope.freq_base": (FLOAT32, config.get("rope_theta") or rope.get("rope_theta") or 10000.0),
        "llama.vocab_size": (UINT32, config["vocab_size"]),
    }


def _tokens(tokenizer: dict[str, Any]) -> dict[str, tuple[int, Any]]:
    places = tokenizer["model"]["vocab"]
    tokens = sorted(places, key=places.__getitem__)
    special = {token["content"] for token in tokenizer["added_tokens"] if token["special"]}
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    return {
        "tokenizer.ggml.model": (STRING, "gpt2"),
        "tokenizer.ggml.pre": (STRING, "gpt-2"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
        "tokenizer.ggml.token_type": (ARRAY, (INT32, [CONTROL if token in special else ORDINARY for token in tokens])),
        "tokenizer.ggml.merges": (ARRAY, (STRING, merges)),
        "tokenizer.ggml.bos_token_id": (UINT32, places["<s>"]),
        "tokenizer.ggml.eos_token_id": (UINT32, places["</s>"]),
        "tokenizer.ggml.add_bos_token": (BOOL, True),
    }


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _value(kind: int, value: Any) -> bytes:
    return struct.pack("<I", kind) + _content(kind, value)


def _content(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return _text(value)
    if kind == ARRAY:
        of, members = value
        return struct.pack("<IQ", of, len(members)) + b"".join(_content(of, member) for member in members)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], value)
