"""The networks under the heads: a BERT over packed tokens, and any other transformers model behind the same face.

Packed means that the tokens of a batch lie one after another without padding: every matrix product works on real
tokens only, and only the attention (a few percent of the work) pads, inside groups of similar length.

Weights lie in flat buffers: float32 masters that the optimiser moves, and where bfloat16 is fast a copy in bfloat16
that the products read. On processors without bfloat16 instructions both are the same buffer.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch.nn import functional

from predictors.errors import CheckpointError, PredictorError

from .checkpoints import Checkpoint, is_plain_bert
from .text import PackedRows

# A group of pairs ends where the next is this much shorter than its longest: what padding costs in attention.
_MIN_FILL = 0.8
# On a processor, lengths of groups and numbers of tokens are filled up to multiples of these. Softmax takes twice the
# time for rows of other lengths, and every new shape of a product costs its compilation.
_LENGTHS_IN, _TOKENS_IN = 32, 64
# Whole numbers of a float's size in bytes, in torch and in numpy.
_WHOLE_NUMBERS = {2: (torch.int16, np.int16), 4: (torch.int32, np.int32)}
# Counts up where the same inputs give other last bits than before: what is kept by an earlier layout is not used then.
LAYOUT = 2
# In numbers: 128 bytes of bfloat16, 256 of float32.
_ALIGNED_TO = 64


class Group(NamedTuple):
    """Neighbouring pairs of a batch that attention treats together: `pairs` of them padded to `length` tokens.

    `start` and `stop` are their tokens; `slots` the place of each in the padded block; `mask` (pairs, 1, 1, length) is
    0 for tokens and minus infinity for padding, None where there is none.
    """

    start: int
    stop: int
    pairs: int
    length: int
    slots: torch.Tensor | None
    mask: torch.Tensor | None


class Batch(NamedTuple):
    """Packed tokens on the device; fields as in `Rows`, and the groups for attention."""

    ids: torch.Tensor
    positions: torch.Tensor
    types: torch.Tensor
    segments: torch.Tensor
    starts: torch.Tensor
    pair_of_token: torch.Tensor
    numbers: torch.Tensor
    groups: list[Group]


class Encoder(Protocol):
    """What a head and the training loop need from a network."""

    hidden_size: int
    max_positions: int
    config: dict[str, Any]
    default_dropout: float

    frozen_layers: int

    def below(self, batch: Batch) -> torch.Tensor:
        """What the frozen layers make of the packed tokens, (T, hidden_size); only where there are any."""

    def frozen_digest(self) -> str:
        """Hash of the frozen weights: encoders of one digest agree in `below`."""

    def encode(self, batch: Batch, dropout: Dropout | None, below: torch.Tensor | None = None) -> torch.Tensor:
        """Last hidden states of all T packed tokens, float32 (T, hidden_size); `below` if it is known already."""

    def begin_training(self, used_ids: np.ndarray) -> list[FlatWeights]:
        """Make the weights trainable, given which token ids will occur; returns the buffers to optimise."""

    def end_training(self, kept: float) -> None:
        """Finish; `kept` is the factor that weight decay has left of weights which had no gradient."""

    def state(self) -> dict[str, torch.Tensor]:
        """All weights, float32 on the CPU, by Hugging Face's names."""


class Dropout:
    """Dropout whose randomness on the CPU comes from numpy: torch draws it ten times slower there, on one thread.

    The rate is rounded to 1/256, and what is kept is scaled accordingly, so expectations are exact.
    """

    def __init__(self, rate: float, generator: np.random.Generator) -> None:
        self.threshold = round(rate * 256)
        self.scale = 256 / (256 - self.threshold)
        self.generator = generator

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return values * self.factors(values) if self.threshold else values

    def factors(self, values: torch.Tensor) -> torch.Tensor:
        """What to multiply `values` by: 0 for what is dropped, else `scale`."""
        if values.device.type != "cpu":
            draws = torch.randint(256, values.shape, dtype=torch.uint8, device=values.device)
            return (draws >= self.threshold).to(values.dtype).mul_(self.scale)
        words = self.generator.integers(0, 2**64, size=-(-values.numel() // 8), dtype=np.uint64)
        staying = words.view(np.uint8)[: values.numel()] >= np.uint8(self.threshold)
        # A kept value's factor is written as bits: torch converts truth values ten times slower than numpy multiplies.
        whole = _WHOLE_NUMBERS[values.element_size()]
        bits = torch.tensor(self.scale, dtype=values.dtype).view(whole[0]).item()
        factors = np.multiply(staying, np.array(bits, dtype=whole[1]), dtype=whole[1])
        return torch.from_numpy(factors).view(values.dtype).view(values.shape)


class FlatWeights:
    """Named tensors in one float32 buffer `master`, read through `views` in the dtype of computation.

    Tensors lie in the order of their names, each on a boundary of its own, with zeros between: products may round
    differently at another alignment, and a reloaded network must predict what the trained one did.
    """

    def __init__(self, tensors: dict[str, torch.Tensor], dtype: torch.dtype, device: torch.device) -> None:
        self.shapes = {name: tensors[name].shape for name in sorted(tensors)}
        self.starts, size = {}, 0
        for name, shape in self.shapes.items():
            self.starts[name] = size
            size += -(-shape.numel() // _ALIGNED_TO) * _ALIGNED_TO
        self.master = torch.zeros(size, dtype=torch.float32, device=device)
        for name, view in self._views(self.master).items():
            view.copy_(tensors[name].detach())
        self.working = self.master if dtype == torch.float32 else self.master.to(dtype)
        self.views = self._views(self.working)

    def begin_training(self) -> None:
        """Give every view a place in one gradient buffer, so that clipping and the optimiser need one call each."""
        self.gradient = torch.zeros_like(self.working)
        gradients = self._views(self.gradient)
        for name, view in self.views.items():
            view.requires_grad_(True)
            view.grad = gradients[name]

    def decayed(self) -> list[torch.Tensor]:
        """Views of the master that weight decay applies to: matrices, not biases or norms."""
        return [view for view in self._views(self.master).values() if view.ndim > 1]

    def collect_gradient(self) -> None:
        """Give the master its gradient, float32, ready for clipping."""
        self.master.grad = self.gradient if self.working is self.master else self.gradient.float()

    def after_step(self) -> None:
        """Bring the optimiser's result to the working copy and clear the gradient."""
        if self.working is not self.master:
            self.working.copy_(self.master)
        self.gradient.zero_()

    def end_training(self) -> None:
        """Drop the gradients."""
        self.master.grad = None
        del self.gradient
        self.views = self._views(self.working)

    def state(self) -> dict[str, torch.Tensor]:
        """Copies of the masters on the CPU."""
        return {name: view.to("cpu", copy=True) for name, view in self._views(self.master).items()}

    def _views(self, buffer: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            name: buffer[self.starts[name] : self.starts[name] + shape.numel()].view(shape).detach()
            for name, shape in self.shapes.items()
        }


class PackedBert:
    """A BERT encoder (post-norm, GELU, absolute positions) over packed tokens; the same function as transformers'."""

    def __init__(
        self,
        config: dict[str, Any],
        weights: dict[str, torch.Tensor],
        dtype: torch.dtype,
        device: torch.device,
        frozen_layers: int = 0,
    ) -> None:
        self.config = config
        self.hidden_size = int(config["hidden_size"])
        self.heads = int(config["num_attention_heads"])
        self.epsilon = float(config.get("layer_norm_eps", 1e-12))
        self.max_positions = int(config["max_position_embeddings"])
        self.default_dropout = float(config.get("hidden_dropout_prob", 0.1))
        self.dtype, self.device = dtype, device
        self.layer_count = int(config["num_hidden_layers"])
        if frozen_layers > self.layer_count:
            raise PredictorError(
                f"frozen_layers: {frozen_layers} is more than the {self.layer_count} of the checkpoint."
            )
        self.frozen_layers = frozen_layers
        layers = [self._fused(weights, number) for number in range(self.layer_count)]
        lower = {name: tensor for layer in layers[:frozen_layers] for name, tensor in layer.items()}
        upper = {name: tensor for layer in layers[frozen_layers:] for name, tensor in layer.items()}
        self.frozen = FlatWeights(lower, dtype, device)
        self.layers = FlatWeights(upper, dtype, device)
        self.word = weights["embeddings.word_embeddings.weight"].to(device)
        rest = {name: t for name, t in weights.items() if name.startswith("embeddings.") and ".word_" not in name}
        self.embeddings = FlatWeights(rest, torch.float32, device)
        self.trained: list[FlatWeights] = []

    def below(self, batch: Batch) -> torch.Tensor:
        """See `Encoder`. Without dropout, so that the result may be kept."""
        with torch.no_grad():
            hidden = self._filled(self._embedded(batch, None))
            for number in range(self.frozen_layers):
                hidden = self._layer(hidden, self.frozen.views, number, batch.groups, None)
        return hidden[: len(batch.ids)]

    def frozen_digest(self) -> str:
        """See `Encoder`."""
        digest = hashlib.sha256(json.dumps([self.frozen_layers, str(self.dtype)]).encode())
        for tensor in (self.word, self.embeddings.master, self.frozen.master):
            digest.update(tensor.cpu().numpy().data)
        return digest.hexdigest()

    def encode(self, batch: Batch, dropout: Dropout | None, below: torch.Tensor | None = None) -> torch.Tensor:
        """See `Encoder`."""
        if self.frozen_layers:
            hidden = self.below(batch) if below is None else below
        else:
            hidden = self._embedded(batch, dropout)
        hidden = self._filled(hidden)
        for number in range(self.frozen_layers, self.layer_count):
            hidden = self._layer(hidden, self.layers.views, number, batch.groups, dropout)
        return hidden[: len(batch.ids)].float()

    def begin_training(self, used_ids: np.ndarray) -> list[FlatWeights]:
        """See `Encoder`. Words that do not occur get no gradient, and Adam leaves such rows where they are, so only
        the rows that occur are optimised: the same result without half of a small BERT's optimiser state."""
        used = torch.from_numpy(used_ids).to(self.device)
        self.compact_id = torch.zeros(len(self.word), dtype=torch.int64, device=self.device)
        self.compact_id[used] = torch.arange(len(used), device=self.device)
        self.used_ids = used
        words = FlatWeights({"word": self.word[used]}, torch.float32, self.device)
        self.trained = [self.layers] if self.frozen_layers else [self.layers, self.embeddings, words]
        for buffer in self.trained:
            buffer.begin_training()
        return self.trained

    def end_training(self, kept: float) -> None:
        """See `Encoder`."""
        for buffer in self.trained:
            buffer.end_training()
        if not self.frozen_layers:
            if kept != 1.0:
                self.word = self.word * kept
            self.word[self.used_ids] = self.trained[-1].views["word"]
        self.trained = []
        del self.compact_id, self.used_ids

    def state(self) -> dict[str, torch.Tensor]:
        """See `Encoder`."""
        state = {"embeddings.word_embeddings.weight": self.word.to("cpu", copy=True), **self.embeddings.state()}
        for name, tensor in (self.frozen.state() | self.layers.state()).items():
            if ".qkv." in name:
                for part, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                    state[name.replace(".qkv.", f".{part}.")] = piece.clone()
            else:
                state[name] = tensor
        return state

    def _embedded(self, batch: Batch, dropout: Dropout | None) -> torch.Tensor:
        weights = self.embeddings.views
        if self.trained and not self.frozen_layers:
            words = functional.embedding(self.compact_id[batch.ids], self.trained[-1].views["word"])
        else:
            words = functional.embedding(batch.ids, self.word)
        hidden = words + weights["embeddings.position_embeddings.weight"][batch.positions]
        hidden = hidden + weights["embeddings.token_type_embeddings.weight"][batch.types]
        return _dropped(self._norm(hidden, weights, "embeddings.LayerNorm").to(self.dtype), dropout)

    def _filled(self, hidden: torch.Tensor) -> torch.Tensor:
        """The packed tokens with rows of zeros after them, up to a round number; no token attends to these."""
        lacking = -len(hidden) % _TOKENS_IN
        if self.device.type != "cpu" or not lacking:
            return hidden
        return torch.cat([hidden, hidden.new_zeros(lacking, self.hidden_size)])

    def _layer(
        self,
        hidden: torch.Tensor,
        weights: dict[str, torch.Tensor],
        number: int,
        groups: list[Group],
        dropout: Dropout | None,
    ) -> torch.Tensor:
        prefix = f"encoder.layer.{number}."
        mixed = _linear(hidden, weights, prefix + "attention.self.qkv")
        contexts = [_Attention.apply(mixed[group.start : group.stop], group, self.heads, dropout) for group in groups]
        if filler := len(hidden) - groups[-1].stop:
            contexts.append(hidden.new_zeros(filler, self.hidden_size))
        context = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        mixed = _linear(context, weights, prefix + "attention.output.dense")
        hidden = self._norm(hidden + _dropped(mixed, dropout), weights, prefix + "attention.output.LayerNorm")
        inner = functional.gelu(_linear(hidden, weights, prefix + "intermediate.dense"))
        inner = _linear(inner, weights, prefix + "output.dense")
        return self._norm(hidden + _dropped(inner, dropout), weights, prefix + "output.LayerNorm")

    def _norm(self, hidden: torch.Tensor, weights: dict[str, torch.Tensor], name: str) -> torch.Tensor:
        shape = (self.hidden_size,)
        return functional.layer_norm(hidden, shape, weights[name + ".weight"], weights[name + ".bias"], self.epsilon)

    @staticmethod
    def _fused(weights: dict[str, torch.Tensor], number: int) -> dict[str, torch.Tensor]:
        """One layer's tensors with query, key and value as one matrix."""
        prefix = f"encoder.layer.{number}."
        layer = {name: tensor for name, tensor in weights.items() if name.startswith(prefix)}
        for kind in ("weight", "bias"):
            parts = [layer.pop(f"{prefix}attention.self.{part}.{kind}") for part in ("query", "key", "value")]
            layer[f"{prefix}attention.self.qkv.{kind}"] = torch.cat(parts)
        return layer


class TransformersEncoder:
    """Any other encoder that transformers knows, padded as it wants; for checkpoints that are no plain BERT."""

    frozen_layers = 0

    def __init__(self, model: Any, config: dict[str, Any], dtype: torch.dtype, device: torch.device) -> None:
        self.model = model.to(device).float()
        parameters = {name: parameter.data for name, parameter in self.model.named_parameters()}
        self.weights = FlatWeights(parameters, torch.float32, device)
        for name, parameter in self.model.named_parameters():
            parameter.data = self.weights.views[name]
        self.config = config
        self.hidden_size = int(model.config.hidden_size)
        self.max_positions = _positions_of(model.config)
        self.default_dropout = float(getattr(model.config, "hidden_dropout_prob", 0.1))
        self.dtype, self.device = dtype, device
        self.has_types = getattr(model.config, "type_vocab_size", 0) > 1
        self.pad_id = model.config.pad_token_id or 0

    def below(self, batch: Batch) -> torch.Tensor:
        """See `Encoder`."""
        raise PredictorError("frozen_layers: only BERT checkpoints have them.")

    def frozen_digest(self) -> str:
        """See `Encoder`."""
        raise PredictorError("frozen_layers: only BERT checkpoints have them.")

    def encode(self, batch: Batch, dropout: Dropout | None, below: torch.Tensor | None = None) -> torch.Tensor:
        """See `Encoder`. The model's own dropout layers are used, on or off."""
        self.model.train(dropout is not None)
        count = len(batch.starts)
        width = max(group.length for group in batch.groups)
        slots = batch.pair_of_token * width + batch.positions
        ids = torch.full((count * width,), self.pad_id, device=self.device).index_copy_(0, slots, batch.ids)
        mask = torch.zeros_like(ids).index_fill_(0, slots, 1)
        inputs = {"input_ids": ids.view(count, width), "attention_mask": mask.view(count, width)}
        if self.has_types:
            inputs["token_type_ids"] = torch.zeros_like(ids).index_copy_(0, slots, batch.types).view(count, width)
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype != torch.float32):
            hidden = self.model(**inputs).last_hidden_state
        return hidden.reshape(count * width, self.hidden_size)[slots].float()

    def begin_training(self, used_ids: np.ndarray) -> list[FlatWeights]:
        """See `Encoder`."""
        self.weights.begin_training()
        for name, parameter in self.model.named_parameters():
            parameter.grad = self.weights.views[name].grad
        return [self.weights]

    def end_training(self, kept: float) -> None:
        """See `Encoder`. Every weight was optimised here, so nothing is left to decay."""
        for parameter in self.model.parameters():
            parameter.grad = None
        self.weights.end_training()

    def state(self) -> dict[str, torch.Tensor]:
        """See `Encoder`."""
        return {name: tensor.detach().to("cpu", copy=True) for name, tensor in self.model.state_dict().items()}


def build_encoder(checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device, frozen_layers: int = 0) -> Encoder:
    """The encoder of a pretrained checkpoint.

    Raises:
        CheckpointError: transformers does not know the model, or it would need code from the hub.
        PredictorError: it has not so many layers to freeze, or is no BERT.
    """
    if checkpoint.weights is not None:
        return PackedBert(checkpoint.config, checkpoint.weights, dtype, device, frozen_layers)
    if frozen_layers:
        raise PredictorError("frozen_layers: only BERT checkpoints can have frozen layers; use 0.")
    from transformers import AutoModel

    try:
        model = AutoModel.from_pretrained(checkpoint.folder, trust_remote_code=False, use_safetensors=True)
    except (OSError, ValueError, KeyError) as exc:
        raise CheckpointError(f"checkpoint: transformers cannot load {checkpoint.folder}: {exc}") from exc
    return TransformersEncoder(model, checkpoint.config, dtype, device)


def rebuild_encoder(
    folder: Path,
    config: dict[str, Any],
    weights: dict[str, torch.Tensor],
    dtype: torch.dtype,
    device: torch.device,
    frozen_layers: int = 0,
) -> Encoder:
    """The encoder of a saved predictor: `config` lies in `folder`, `weights` are the trained ones."""
    if is_plain_bert(config):
        return PackedBert(config, weights, dtype, device, frozen_layers)
    from transformers import AutoConfig, AutoModel

    model = AutoModel.from_config(AutoConfig.from_pretrained(folder, trust_remote_code=False))
    model.load_state_dict(weights)
    return TransformersEncoder(model, config, dtype, device)


def to_batch(rows: PackedRows, dtype: torch.dtype, device: torch.device) -> Batch:
    """Put laid-out pairs, sorted by falling length, on the device and plan their attention."""
    ends = np.cumsum(rows.lengths)
    starts = ends - rows.lengths
    groups, first = [], 0
    for pair in range(1, len(rows.lengths) + 1):
        if pair == len(rows.lengths) or rows.lengths[pair] < _MIN_FILL * rows.lengths[first]:
            groups.append(_group(rows.lengths[first:pair], int(starts[first]), int(ends[pair - 1]), dtype, device))
            first = pair

    def moved(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(device)

    return Batch(
        ids=moved(rows.ids),
        positions=moved(rows.positions),
        types=moved(rows.types),
        segments=moved(rows.segments),
        starts=moved(starts),
        pair_of_token=moved(np.repeat(np.arange(len(rows.lengths)), rows.lengths)),
        numbers=moved(rows.numbers),
        groups=groups,
    )


def device_of(name: str) -> torch.device:
    """The device that a setting names; "auto" is a GPU where there is one.

    Raises:
        PredictorError: it is not available here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as exc:
        raise PredictorError(f"device: {name!r} is not available here; use 'auto' or 'cpu'.") from exc
    return device


def compute_dtype(choice: bool | str, device: torch.device) -> torch.dtype:
    """bfloat16 where asked for or, for "auto", where the hardware multiplies matrices in it; else float32."""
    if choice == "auto":
        if device.type == "cuda":
            choice = torch.cuda.is_bf16_supported()
        elif device.type == "cpu":
            choice = torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.cpu._is_avx512_bf16_supported()
        else:
            choice = False
    return torch.bfloat16 if choice else torch.float32


def tokens_at_once(budget: int | None, device: torch.device, on_cpu: int = 2048, on_gpu: int = 32768) -> int:
    """The token budget of a forward pass: what a setting says, or what suits the device."""
    return budget or (on_cpu if device.type == "cpu" else on_gpu)


def _group(lengths: np.ndarray, start: int, stop: int, dtype: torch.dtype, device: torch.device) -> Group:
    count, longest = len(lengths), int(lengths[0])
    if device.type == "cpu":
        longest += -longest % _LENGTHS_IN
    if int(lengths[-1]) == longest:
        return Group(start, stop, count, longest, None, None)
    real = np.arange(longest)[None, :] < lengths[:, None]
    slots = torch.from_numpy(np.flatnonzero(real)).to(device)
    padding = torch.from_numpy(~real).to(device)
    mask = torch.zeros(real.shape, dtype=dtype, device=device).masked_fill_(padding, float("-inf"))
    return Group(start, stop, count, longest, slots, mask[:, None, None, :])


class _Attention(torch.autograd.Function):
    """Self-attention of one group: packed queries, keys and values (T, 3 hidden) to contexts (T, hidden).

    Written out, as torch's own attention in bfloat16 is several times slower backwards on processors, and so that
    little is held for the way back: of the (pairs, heads, length, length) blocks only the probabilities and dropout.
    """

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, group: Group, heads: int, dropout: Dropout | None) -> torch.Tensor:
        block = _by_head(rows, group, 3, heads)
        query, key, value = block
        query *= query.shape[-1] ** -0.5
        scores = query @ key.transpose(-1, -2)
        if group.mask is not None:
            scores += group.mask
        probabilities = torch.softmax(scores, -1)
        factors, weights = None, probabilities
        if dropout is not None and dropout.threshold:
            factors = dropout.factors(probabilities)
            weights = probabilities * factors
        ctx.group, ctx.heads = group, heads
        ctx.save_for_backward(block, probabilities, factors)
        return _by_token((weights @ value)[None], group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        block, probabilities, factors = ctx.saved_tensors
        query, key, value = block
        (gradient,) = _by_head(gradient, ctx.group, 1, ctx.heads)
        gradients = torch.empty_like(block)
        to_weights = gradient @ value.transpose(-1, -2)
        weights = probabilities
        if factors is not None:
            weights = probabilities * factors
            to_weights *= factors
        torch.matmul(weights.transpose(-1, -2), gradient, out=gradients[2])
        to_scores = torch._softmax_backward_data(to_weights, probabilities, -1, block.dtype)
        torch.matmul(to_scores, key, out=gradients[0])
        gradients[0] *= query.shape[-1] ** -0.5
        torch.matmul(to_scores.transpose(-1, -2), query, out=gradients[1])
        return _by_token(gradients, ctx.group), None, None, None


def _by_head(rows: torch.Tensor, group: Group, parts: int, heads: int) -> torch.Tensor:
    """Packed rows (T, parts * hidden) as a padded block (parts, pairs, heads, length, size)."""
    if group.slots is not None:
        rows = rows.new_zeros(group.pairs * group.length, rows.shape[1]).index_copy_(0, group.slots, rows)
    size = rows.shape[1] // parts // heads
    return rows.reshape(group.pairs, group.length, parts, heads, size).permute(2, 0, 3, 1, 4).contiguous()


def _by_token(block: torch.Tensor, group: Group) -> torch.Tensor:
    """The reverse of `_by_head`: packed rows (T, parts * hidden)."""
    rows = block.permute(1, 3, 0, 2, 4).reshape(group.pairs * group.length, -1)
    return rows if group.slots is None else rows.index_select(0, group.slots)


def _dropped(values: torch.Tensor, dropout: Dropout | None) -> torch.Tensor:
    return values if dropout is None else dropout(values)


def _linear(hidden: torch.Tensor, weights: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    return functional.linear(hidden, weights[name + ".weight"], weights[name + ".bias"])


def _positions_of(config: Any) -> int:
    # RoBERTa counts positions from pad_token_id + 1; two fewer is right for it and costs others nothing.
    positions = getattr(config, "max_position_embeddings", None)
    return int(positions) - 2 if positions and positions > 0 else 1_000_000
