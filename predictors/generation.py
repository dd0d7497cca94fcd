"""Replies of a Hugging Face causal language model in this process: greedy, a few tokens each. Needs torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from predictors.endpoints import ChatReply, Usage
from predictors.errors import CheckpointError, PredictorError
from predictors.prompts import laid_out

MAX_PROMPT_TOKENS = 4096  # tokens of a prompt; its beginning goes, its end says what is asked


def generate(
    checkpoint: str,
    prompts: Sequence[str],
    *,
    max_tokens: int = 5,
    batch: int = 8,
    device: str = "auto",
    system: str = "",
    layout: str | None = None,
) -> Iterator[tuple[int, ChatReply]]:
    """The number of each prompt and its reply, long prompts first; temperature 0.

    A model with a chat template is asked as in a chat, another one with the prompt as it stands, below
    the system message. `layout` is the text of a whole chat, with the places {system} and {prompt}, in place of both.

    Args:
        checkpoint: a local folder or a Hugging Face id.

    Raises:
        CheckpointError: it cannot be read, or is no causal language model. PredictorError: a number out of range.
    """
    for name, value in (("max_tokens", max_tokens), ("batch", batch)):
        if value < 1:
            raise PredictorError(f"{name}: {value!r} is not 1 or more.")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = device if device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        tokenizer = AutoTokenizer.from_pretrained(checkpoint, trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(
            checkpoint,
            dtype=torch.bfloat16 if where != "cpu" else torch.float32,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except Exception as exc:  # transformers raises whatever its readers do
        raise CheckpointError(
            f"model: {checkpoint!r} cannot be used as a causal language model ({type(exc).__name__}: "
            f"{' '.join(str(exc).split())[:300]}). Give a folder with its files, weights as safetensors, or a Hugging "
            "Face id if the hub can be reached."
        ) from exc
    model = model.to(where).eval()
    tokenizer.padding_side = tokenizer.truncation_side = "left"
    if tokenizer.pad_token is None:
        # Padding is masked, so that any token will do.
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.convert_ids_to_tokens(0)
    longest = (
        min(MAX_PROMPT_TOKENS, getattr(model.config, "max_position_embeddings", None) or MAX_PROMPT_TOKENS) - max_tokens
    )
    texts = [_as_text(tokenizer, prompt, system, layout) for prompt in prompts]
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        inputs = tokenizer(
            [texts[index] for index in part],
            return_tensors="pt",
            padding=True,
            truncation=True,
            max_length=longest,
            return_token_type_ids=False,
            add_special_tokens=layout is not None or tokenizer.chat_template is None,
        ).to(where)
        with torch.inference_mode():
            made = model.generate(
                **inputs, max_new_tokens=max_tokens, do_sample=False, pad_token_id=tokenizer.pad_token_id
            )
        width = inputs["input_ids"].shape[1]
        for row, index in enumerate(part):
            text = tokenizer.decode(made[row, width:], skip_special_tokens=True)
            sent = int(inputs["attention_mask"][row].sum())
            yield index, ChatReply((text,), None, Usage(sent, int(made.shape[1] - width)), (None,))


def _as_text(tokenizer: Any, prompt: str, system: str, layout: str | None) -> str:
    if layout is not None:
        return laid_out(layout, system, prompt)
    if tokenizer.chat_template is None:
        return f"{system}\n\n{prompt}" if system else prompt
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": prompt})
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    except Exception as exc:  # What a checkpoint's own template raises.
        raise PredictorError(
            f"system: the chat template of this model refuses it ({exc}); write the words into the prompt, or give the "
            "model a format."
        ) from exc
