"""What a pretrained cross-encoder makes of a pair, without any fine-tuning: the hybrid's view of the texts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from predictors.errors import PredictorError
from predictors.memory import ArrayMemory
from predictors.networks.checkpoints import Checkpoint
from predictors.networks.encoder import LAYOUT, Batch, Encoder, build_encoder, compute_dtype, to_batch, tokens_at_once
from predictors.networks.heads import mean_of
from predictors.networks.text import FIRST, OTHERS, RowTokenizer, TokenRow
from predictors.pairs import Pair, Progress, report

States = NDArray[np.float32]

_PAIRS_BETWEEN_REPORTS = 16
# Of states kept in memory: 21,000 pairs at two layers of 384 numbers.
_KEPT_BYTES = 128 * 2**20


class StateReader:
    """Mean hidden states of both texts of a pair, read together, at two depths of a BERT: (n, depths, 2, hidden).

    The middle layer and the one after five sixths: layers below know words, the last serves the checkpoint's own
    task. Layers above are not computed and not saved. Other networks than plain BERTs give their last layer alone.
    """

    def __init__(self, tokenizer: RowTokenizer, encoder: Encoder, dtype: torch.dtype, device: torch.device) -> None:
        self.tokenizer, self.encoder = tokenizer, encoder
        self.dtype, self.device = dtype, device

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, max_length: int, bfloat16: Any, device: torch.device
    ) -> StateReader:
        """The reader over a pretrained checkpoint. Errors as in `encoder.build_encoder`."""
        dtype = compute_dtype(bfloat16, device)
        frozen = 0
        if checkpoint.weights is not None:
            count = int(checkpoint.config["num_hidden_layers"])
            top = max(1, round(count * 5 / 6))
            frozen = min(count // 2, top - 1) or 0
            checkpoint = checkpoint._replace(config={**checkpoint.config, "num_hidden_layers": top})
        encoder = build_encoder(checkpoint, dtype, device, frozen)
        tokenizer = RowTokenizer(checkpoint.tokenizer, min(max_length, encoder.max_positions))
        return cls(tokenizer, encoder, dtype, device)

    def fingerprint(self) -> str:
        """Hash of all that states depend on besides the pair: weights, tokenizer, lengths, device and numbers."""
        digest = hashlib.sha256(f"{self.tokenizer.fingerprint} {self.dtype} {self.device.type} {LAYOUT}".encode())
        digest.update(f" {self.encoder.frozen_layers} {sorted(self.encoder.config.items(), key=str)}".encode())
        for name, tensor in sorted(self.encoder.state().items()):
            digest.update(name.encode())
            digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()

    def read_each(self, pairs: Sequence[Pair], progress: Progress | None) -> States:
        """States of n distinct pairs, kept between calls.

        One pair a forward pass: in a batch the products round differently with every company a pair is in, so that a
        fit would depend on what was computed before. States stay in memory up to a limit, and in the folder that
        HUNCH_EMBEDDINGS_CACHE names, if it is set, a file for each set of pairs.
        """
        fingerprint = self.fingerprint()
        names = [_name_of(fingerprint, pair) for pair in pairs]
        states = _memory.get_all(names)
        folder = os.environ.get("HUNCH_EMBEDDINGS_CACHE")
        shelf = _Shelf(Path(folder) / "states", names) if folder else None
        if shelf and len(states) < len(set(names)):
            states |= shelf.read()
        missing = [number for number, name in enumerate(names) if name not in states]
        tokens = self.tokenizer.tokenise([pairs[number] for number in missing])
        for done, (number, sequence) in enumerate(zip(missing, tokens, strict=True), start=1):
            states[names[number]] = self._states([sequence])[0]
            if done % _PAIRS_BETWEEN_REPORTS == 0 or done == len(missing):
                report(progress, done, len(missing), f"read {done} of {len(missing)} pairs")
        if missing and shelf:
            shelf.write(states)
        _memory.put_all({name: states[name] for name in names})
        return np.stack([states[name] for name in names])

    def read(self, pairs: Sequence[Pair], token_budget: int | None, progress: Progress | None) -> States:
        """States of n pairs in batches of like length, up to `token_budget` tokens; nothing is kept."""
        tokens = self.tokenizer.tokenise(pairs)
        all_states: States | None = None
        done = 0
        for rows in self.tokenizer.by_length(tokens, tokens_at_once(token_budget, self.device)):
            states = self._states([tokens[row] for row in rows])
            all_states = (
                np.empty((len(pairs), *states.shape[1:]), dtype=np.float32) if all_states is None else all_states
            )
            all_states[rows] = states
            done += len(rows)
            report(progress, done, len(pairs), f"scored {done} of {len(pairs)} pairs")
        if all_states is None:
            raise PredictorError("pairs: there are none to read.")
        return all_states

    def _states(self, tokens: Sequence[TokenRow]) -> States:
        """States of pairs that are sorted by falling length."""
        with torch.inference_mode():
            batch = to_batch(self.tokenizer.lay_out(tokens), self.dtype, self.device)
            layers = []
            below = None
            if self.encoder.frozen_layers:
                below = self.encoder.below(batch)
                layers.append(_means(below.float(), batch))
            layers.append(_means(self.encoder.encode(batch, None, below), batch))
            return torch.stack(layers, dim=1).cpu().numpy()


def cosines(pairs: Sequence[Pair], alone: Mapping[str, NDArray[np.floating]]) -> NDArray[np.float64]:
    """Cosine similarity of each pair's texts, (n,), from what is known of each text alone, (hidden,)."""
    evidence = np.array([alone[pair.evidence_text] for pair in pairs], dtype=np.float64)
    target = np.array([alone[pair.target_text] for pair in pairs], dtype=np.float64)
    lengths = np.linalg.norm(evidence, axis=1) * np.linalg.norm(target, axis=1)
    products = np.einsum("ij,ij->i", evidence, target)
    return np.divide(products, lengths, out=np.zeros(len(pairs)), where=lengths > 0)


def forget_states() -> None:
    """Drop the states kept in this process."""
    _memory.clear()


def _means(hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean hidden state of the tokens of each pair's texts, (B, 2, hidden); zeros where a text is empty."""
    return torch.stack([mean_of(hidden, batch, segment) for segment in (FIRST, OTHERS)], dim=1)


def _name_of(fingerprint: str, pair: Pair) -> str:
    content = "\x00".join([fingerprint, pair.evidence_text, pair.target_text, str(pair.outcome)])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


class _Shelf:
    """The states of one set of pairs on disk, in one file named by the hash of that set."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.names = sorted(set(names))
        self.path = folder / f"{hashlib.sha256(' '.join(self.names).encode()).hexdigest()}.safetensors"

    def read(self) -> dict[str, States]:
        """All states by name; none where there is no such file or it is damaged."""
        try:
            content = load_file(self.path)
            states, digest = content["states"], content["sha256"].tobytes()
        except (OSError, SafetensorError, KeyError):  # Missing or unreadable: the states are computed again.
            return {}
        if len(states) != len(self.names) or hashlib.sha256(states.tobytes()).digest() != digest:
            return {}
        return dict(zip(self.names, states, strict=True))

    def write(self, states: dict[str, States]) -> None:
        block = np.stack([states[name] for name in self.names])
        digest = np.frombuffer(hashlib.sha256(block.tobytes()).digest(), dtype=np.uint8)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=self.path.parent, prefix=".", delete=False) as file:
                pass
            save_file({"states": block, "sha256": digest}, file.name)
            Path(file.name).replace(self.path)
        except OSError as exc:
            raise PredictorError(
                f"HUNCH_EMBEDDINGS_CACHE: {self.path.parent} cannot be written ({exc.strerror}); name another folder."
            ) from exc


_memory = ArrayMemory(_KEPT_BYTES)
