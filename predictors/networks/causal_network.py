"""Causal language models: finding and adapting one, laying out prompts, and the exact likelihoods of two answers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tokenizers import Encoding, Tokenizer

from predictors.artifacts import checkpoint_digest
from predictors.errors import CheckpointError, PredictorError
from predictors.pairs import Pair
from predictors.prompts import Template, answers_after, shipped, template_of
from predictors.settings import CausalLmSettings

from .checkpoints import read_checkpoint
from .encoder import compute_dtype, device_of
from .text import fair_lengths

MODEL_FOLDER, TOKENIZER_FILE, ADAPTER_FILE = "model", "tokenizer.json", "adapter.safetensors"
# Of each of the two questions, below which a prompt says too little to learn from.
_MIN_TOKENS = 4
# By model_type. transformers lists them among causal models.
_IN_ANY_ORDER = {"xlnet": "XLNet"}
# What a tokenizer returns for a text takes a hundred times the room of its token ids.
_TOKENISED_AT_ONCE = 256


class TokenPrompt(NamedTuple):
    """A tokenised prompt: `prefix` up to where the two answers part, and what is left of " 0" and of " 1"."""

    prefix: NDArray[np.int32]
    tails: tuple[list[int], list[int]]

    @property
    def length(self) -> int:
        """Tokens with the longer answer."""
        return len(self.prefix) + max(map(len, self.tails))


class PromptTokenizer:
    """Turns pairs into prompts of at most `max_length` tokens, whatever the tokenizer makes of the answers.

    A prompt is tokenised whole with each of its answers, as the model would read it. Tokens that both answers share
    (a space, say) cancel out of their ratio, so only what is left after them is ever scored.
    """

    def __init__(
        self, tokenizer: Tokenizer, max_length: int, template: Template | None = None, model: str = ""
    ) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.template = template or shipped("change")
        self.model = model
        # A question that holds "</s>" means these letters, not the end of a text.
        self.tokenizer.encode_special_tokens = True
        shortest = self._prompts([Pair("", "", "", "", outcome) for outcome in (0, 1)])
        needed = max(prompt.length for prompt in shortest) + 2 * _MIN_TOKENS
        if needed > max_length:
            raise PredictorError(
                f"max_length: {max_length} leaves the questions no room; with this checkpoint give {needed} or more."
            )

    def tokenise(self, pairs: Sequence[Pair]) -> list[TokenPrompt]:
        """A prompt a pair; long ones lose the ends of both questions fairly, nothing else."""
        prompts = self._prompts(pairs)
        return [
            prompt if prompt.length <= self.max_length else self._shortened(pair, prompt.length)
            for pair, prompt in zip(pairs, prompts, strict=True)
        ]

    def _prompts(self, pairs: Sequence[Pair]) -> list[TokenPrompt]:
        prompts = []
        for first in range(0, len(pairs), _TOKENISED_AT_ONCE):
            part = pairs[first : first + _TOKENISED_AT_ONCE]
            texts = [self.prompt(pair) for pair in part]
            answered = zip(*([text + answer for answer in answers_after(text)] for text in texts), strict=True)
            unchanged, changed = (self.tokenizer.encode_batch(list(column)) for column in answered)
            prompts += [self._parted(*both) for both in zip(unchanged, changed, strict=True)]
        return prompts

    def prompt(self, pair: Pair) -> str:
        """What the model reads of a pair, up to the answer."""
        words = self.template.about(pair.evidence_text, pair.target_text, pair.outcome)
        opening = f"{self.template.opening}\n\n" if self.template.opening else ""
        return self.template.as_text(self.model, opening + words)

    def _parted(self, unchanged: Encoding, changed: Encoding) -> TokenPrompt:
        first, second = _without_end(unchanged), _without_end(changed)
        same = 0
        while same < min(len(first), len(second)) and first[same] == second[same]:
            same += 1
        if same in (0, len(first), len(second)):
            raise CheckpointError("checkpoint: its tokenizer reads the answers 0 and 1 as the same tokens.")
        return TokenPrompt(np.array(first[:same], dtype=np.int32), (first[same:], second[same:]))

    def _shortened(self, pair: Pair, length: int) -> TokenPrompt:
        texts = (pair.evidence_text, pair.target_text)
        evidence, target = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        room = len(evidence.ids) + len(target.ids)
        while True:
            # Cutting may change how the words around the cut are parted, hence the loop.
            room -= max(1, length - self.max_length)
            first, second = fair_lengths([len(evidence.ids), len(target.ids)], max(room, 0))
            shorter = pair._replace(
                evidence_text=_first_tokens(pair.evidence_text, evidence, first),
                target_text=_first_tokens(pair.target_text, target, second),
            )
            (prompt,) = self._prompts([shorter])
            if prompt.length <= self.max_length:
                return prompt
            length = prompt.length


class CausalNetwork:
    """A causal model with its tokenizer. `model` is a transformers model, wrapped by peft where it has an adapter.

    `digest` is that of the checkpoint under an adapter.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Any,
        settings: CausalLmSettings,
        device: torch.device,
        digest: str,
        template: Template,
    ) -> None:
        self.device = device
        self.dtype = compute_dtype(settings.bfloat16, device)
        self.digest = digest
        # Only the places where an answer stands need logits over the whole vocabulary. Not every model can do that.
        self.picks_places = "logits_to_keep" in inspect.signature(model.forward).parameters
        positions = getattr(model.config, "max_position_embeddings", None) or settings.max_length
        longest = min(settings.max_length, int(positions))
        self.tokenizer = PromptTokenizer(tokenizer, longest, template, settings.checkpoint)
        self.model = (_adapted(model, settings) if settings.adaptation == "lora" else model).to(device).eval()

    def log_likelihoods(self, prompts: Sequence[TokenPrompt], wanted: NDArray[np.bool_] | None = None) -> torch.Tensor:
        """Log-probabilities of both answers of B prompts, float32 (B, 2), 0 where they are not `wanted` (B, 2).

        Answers of one token need one pass over their prompt; of longer ones each is read with its prompt. Probabilities
        are over the whole vocabulary, and of what is left of an answer after the tokens that both share.
        """
        rows: dict[tuple[int, tuple[int, ...]], int] = {}
        inputs: list[NDArray[np.int32]] = []
        cells, row_of, place_of, token_of = [], [], [], []
        for number, prompt in enumerate(prompts):
            for answer, tail in enumerate(prompt.tails):
                if wanted is not None and not wanted[number, answer]:
                    continue
                key = (number, tuple(tail[:-1]))
                if key not in rows:
                    rows[key] = len(inputs)
                    inputs.append(np.append(prompt.prefix, np.array(tail[:-1], dtype=np.int32)))
                for offset, token in enumerate(tail):
                    cells.append(2 * number + answer)
                    row_of.append(rows[key])
                    place_of.append(len(prompt.prefix) - 1 + offset)
                    token_of.append(token)
        logits = self._logits(inputs, row_of, place_of).float()
        scores = logits.log_softmax(dim=-1).gather(1, self._moved(token_of)[:, None])[:, 0]
        total = torch.zeros(2 * len(prompts), device=self.device)
        return total.index_add(0, self._moved(cells), scores).view(-1, 2)

    def save(self, folder: Path, adaptation: str) -> None:
        """Write the model, a checkpoint like any other, or its adapter alone; either with the tokenizer."""
        if adaptation == "full":
            with without_bars():
                self.model.save_pretrained(folder / MODEL_FOLDER)
            self.tokenizer.tokenizer.save(str(folder / MODEL_FOLDER / TOKENIZER_FILE))
            return
        self.tokenizer.tokenizer.save(str(folder / TOKENIZER_FILE))
        from peft import get_peft_model_state_dict

        adapter = get_peft_model_state_dict(self.model, save_embedding_layers=False)
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in adapter.items()}, folder / ADAPTER_FILE)

    def _logits(self, inputs: list[NDArray[np.int32]], rows: list[int], places: list[int]) -> torch.Tensor:
        """Logits (K, vocabulary) at K places of the padded inputs."""
        width = max(map(len, inputs))
        ids = np.zeros((len(inputs), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(inputs):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        wanted, columns = np.unique(places, return_inverse=True) if self.picks_places else (None, np.array(places))
        options = {} if wanted is None else {"logits_to_keep": self._moved(wanted)}
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype != torch.float32):
            logits = self.model(
                input_ids=self._moved(ids), attention_mask=self._moved(mask), use_cache=False, **options
            ).logits
        return logits[self._moved(rows), self._moved(columns)]

    def _moved(self, values: Any) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.int64, device=self.device)


def pretrained(settings: CausalLmSettings) -> CausalNetwork:
    """The checkpoint that `settings` name, ready for training; an adapter starts without effect.

    Raises:
        CheckpointError: it is missing, damaged, no causal model, or its hub is out of reach.
        PredictorError: an unusable setting.
    """
    device = device_of(settings.device)
    checkpoint = read_checkpoint(settings.checkpoint)
    check_causal(settings.checkpoint, checkpoint.config)
    model = _loaded(checkpoint.folder, settings, device)
    digest = checkpoint_digest(checkpoint.folder) if settings.adaptation == "lora" else ""
    template = template_of(settings.template, "change")
    return CausalNetwork(checkpoint.tokenizer, model, settings, device, digest, template)


def reloaded(folder: Path, settings: CausalLmSettings, digest: str, template: Template) -> CausalNetwork:
    """The model that `CausalNetwork.save` wrote. An adapter needs its checkpoint again, whose digest must be the same.

    Raises:
        CheckpointError: the checkpoint under an adapter is missing or not the one of the training.
    """
    device = device_of(settings.device)
    if settings.adaptation == "full":
        tokenizer = Tokenizer.from_file(str(folder / MODEL_FOLDER / TOKENIZER_FILE))
        model = _loaded(folder / MODEL_FOLDER, settings, device)
        return CausalNetwork(tokenizer, model, settings, device, digest, template)
    from peft import set_peft_model_state_dict

    base = read_checkpoint(settings.checkpoint)
    if checkpoint_digest(base.folder) != digest:
        raise CheckpointError(
            f"checkpoint: {settings.checkpoint} is not what the adapter in {folder} was trained on; restore its files."
        )
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    model = _loaded(base.folder, settings, device)
    language_model = CausalNetwork(tokenizer, model, settings, device, digest, template)
    set_peft_model_state_dict(language_model.model, load_file(folder / ADAPTER_FILE))
    return language_model


def _loaded(folder: Path, settings: CausalLmSettings, device: torch.device) -> Any:
    """The transformers model in `folder`. What is trained is held in float32: steps of 1e-5 vanish in bfloat16."""
    from transformers import AutoModelForCausalLM

    held_in = torch.float32 if settings.adaptation == "full" else compute_dtype(settings.bfloat16, device)
    try:
        with without_bars():
            model, report = AutoModelForCausalLM.from_pretrained(
                folder, dtype=held_in, trust_remote_code=False, use_safetensors=True, output_loading_info=True
            )
    except Exception as exc:  # transformers and safetensors raise a dozen kinds for damaged or unknown models
        raise CheckpointError(f"checkpoint: transformers cannot load {folder}: {exc}") from exc
    if report["missing_keys"]:
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise CheckpointError(f"checkpoint: {folder} lacks weights of a causal model ({missing}); name another.")
    return model


@contextmanager
def without_bars() -> Iterator[None]:
    """Keep transformers from drawing progress bars between those of the caller."""
    from transformers.utils import logging

    bars_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if bars_shown:
            logging.enable_progress_bar()


def check_causal(name: str, config: dict[str, Any]) -> None:
    """Refuse models that see both sides of a word: transformers would load a BERT as a causal model without a word."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind = config.get("model_type")
    if kind in _IN_ANY_ORDER:
        raise CheckpointError(
            f"checkpoint: {name} is an {_IN_ANY_ORDER[kind]}, which learnt to predict words in any order: read in one "
            "pass it sees the words that it should predict. Name a model that reads forwards, such as "
            "meta-llama/Llama-2-7b-hf."
        )
    causal = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind)
    built_as = config.get("architectures") or [causal]
    reads_both_sides = kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not config.get("is_decoder")
    if causal is None or causal not in built_as or reads_both_sides:
        raise CheckpointError(
            f"checkpoint: {name} is a {built_as[0] or kind}, not a causal language model; name one such as "
            "meta-llama/Llama-2-7b-hf, or use the predictor bert."
        )


def _adapted(model: Any, settings: CausalLmSettings) -> Any:
    from peft import LoraConfig, TaskType, get_peft_model

    targets: str | list[str] = settings.lora_targets
    if targets != "all-linear":
        targets = [target.strip() for target in settings.lora_targets.split(",")]
    config = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=targets,
    )
    try:
        return get_peft_model(model, config)
    except ValueError as exc:
        raise PredictorError(f"lora_targets: {settings.lora_targets!r} fit no layer of this checkpoint: {exc}") from exc


def _without_end(encoding: Encoding) -> list[int]:
    """Token ids without the special tokens that some tokenizers put after a text."""
    end = len(encoding.ids)
    while end and encoding.special_tokens_mask[end - 1]:
        end -= 1
    return list(encoding.ids[:end])


def _first_tokens(text: str, encoding: Encoding, count: int) -> str:
    """The beginning of a text that its first `count` tokens cover."""
    if count >= len(encoding.ids):
        return text
    return text[: encoding.offsets[count - 1][1]] if count else ""
