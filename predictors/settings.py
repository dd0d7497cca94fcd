"""The settings of predictors. Their defaults stand here alone: estimators take their parameters from these classes.

Imports nothing heavy: web code may read them. `predictors.registry` says whose settings they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from predictors.errors import PredictorError
from predictors.hardness import checked_columns
from predictors.prompts import template_of

BUNDLED_CHECKPOINT = "bundled:minilm-l6"
# Said before the evidence question, so that one network learns both outcomes. Plain words: every tokenizer has them.
MARKS = ("wrong:", "right:")

Text = Annotated[str, Field(min_length=1)]
Marks = tuple[Text, Text]
Count = Annotated[int, Field(ge=0)]
AtLeast1 = Annotated[int, Field(ge=1)]
AtLeast2 = Annotated[int, Field(ge=2)]
Tokens = Annotated[int, Field(ge=16)]
Number = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
SmallShare = Annotated[float, Field(ge=0, le=0.5)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Auto = Literal[True, False, "auto"]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"{', '.join(names)} names one twice; name each once.")
    return names


def _of_llm(name: str) -> str:
    if not re.fullmatch(r"HUNCH_LLM_[A-Z0-9_]+", name):
        # Not shown: it may be a key that was put in the wrong place.
        raise ValueError("needs the name of an environment variable that begins with HUNCH_LLM_.")
    return name


Columns = Annotated[tuple[Text, ...], AfterValidator(checked_columns)]
Variable = Annotated[str, AfterValidator(_of_llm)]


def _of_changes(named: str) -> str:
    template_of(named, "change")
    return named


ChangeTemplate = Annotated[str, AfterValidator(_of_changes)]


@cache
def _model_of(settings: type) -> type[BaseModel]:
    """What checks the values of a class of settings: no value is taken for another type than its own."""
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in get_type_hints(settings, include_extras=True).items()}
    return create_model(settings.__name__, __config__=ConfigDict(strict=True, allow_inf_nan=False), **fields)


# What a value must be, by pydantic's name for what is wrong with it.
_MUST_BE = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "string_too_short": "must be a text that is not empty",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than": "must be below {lt:g}",
    "less_than_equal": "must be {le:g} or less",
    "literal_error": "must be one of {expected}",
}


def _in_words(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, and what it must be."""
    if error["type"] == "value_error":
        # Our own messages say all there is to say. They do not show a value that may be a key.
        return str(error["msg"].removeprefix("Value error, "))
    wanted = _MUST_BE.get(error["type"])
    words = error["msg"] if wanted is None else wanted.format(**error.get("ctx", {}))
    return f"{words}, not {error['input']!r}"


@dataclass(frozen=True)
class Settings:
    """A predictor's settings: fields with a type, a range and a default. The values stay as they were given.

    Raises:
        PredictorError: a value of another type or out of range; the message begins with the field.
    """

    def __post_init__(self) -> None:
        own: Any = type(self)  # Hashable, as every class: mypy takes the hash of its instances for its own.
        try:
            _model_of(own).model_validate(vars(self))
        except ValidationError as exc:
            error: Any = exc.errors(include_url=False)[0]
            raise PredictorError(f"{error['loc'][0]}: {_in_words(error)}") from None


@dataclass(frozen=True)
class NoSettings(Settings):
    """Nothing to set."""


@dataclass(frozen=True)
class ColumnSettings(Settings):
    """A predictor that may read columns next to its rows: `columns`, a list or a text that joins them with +."""

    def __post_init__(self) -> None:
        named: Any = getattr(self, "columns", ())
        if isinstance(named, str):
            named = re.split(r"[+,\s]+", named.strip())
        if isinstance(named, list):  # As files have them.
            named = tuple(named)
        object.__setattr__(self, "columns", named)
        super().__post_init__()
        object.__setattr__(self, "columns", checked_columns(named))


@dataclass(frozen=True)
class LogisticSettings(ColumnSettings):
    """Logistic regression without a penalty, as in the paper (section 4).

    numbers: the names of the numbers that it reads; empty means all that the training rows have.
    columns: `people`, `models`: how hard the target is for them, next to the numbers (`predictors.hardness`); of pairs.
    """

    numbers: Annotated[tuple[Text, ...], AfterValidator(_each_once)] = ()
    columns: Columns = ()

    def __post_init__(self) -> None:
        if isinstance(self.numbers, list):  # As files have them.
            object.__setattr__(self, "numbers", tuple(self.numbers))
        super().__post_init__()


@dataclass(frozen=True)
class BertSettings(Settings):
    """The fine-tuned encoder of texts. The defaults are the paper's training recipe (appendix C), recalibrated.

    checkpoint: `bundled:minilm-l6`, a local folder or a Hugging Face id, for instance google-bert/bert-base-uncased.
    members: networks in the ensemble, their probabilities averaged.
    epochs, batch_size, learning_rate, weight_decay, max_grad_norm: AdamW, linear schedule without warm-up.
    min_steps: at least this many optimiser steps; epochs repeat until it is reached.
    head: `paper` (pooled [CLS] -> linear) or `segments` (means of the first text and of the others, and their
        interactions; of a pair also the outcome). Numbers of features enter either.
    marks: what stands before the evidence question of a pair for a wrong and for a right answer: words, or special
        tokens of the checkpoint, such as [unused1] and [unused2] of a BERT.
    head_learning_rate: of the head alone; None means 1e-3 for `segments`, else the learning rate.
    dropout: None keeps the checkpoint's own.
    max_length: tokens of one row, special ones included; longer rows lose the ends of their longest texts.
    frozen_layers: so many of the lowest layers, with the embeddings, stay as the checkpoint has them. What they compute
        is computed once a training row, and once for all members when scoring: a quick ensemble on a small machine.
    calibration_share: this share of the distinct pairs or rows, 1,000 at most, is kept back from each network, others
        from each. What the networks say of them recalibrates the average (Platt 1999). Where people's labels stand
        next to a teacher's fractions, it is a share of the people's. 0: none is kept back, as in the paper; none is
        either where fewer than 40 rows would be, or 20 of people next to a teacher's.
    token_budget: tokens in one forward pass; a batch above it is computed in parts, with the same result. None means
        2,048 on a processor, where more is slower and takes more memory, and 32,768 on a GPU.
    bfloat16: True, False or "auto" (where the processor or GPU computes in it).
    device: "auto", "cpu", "cuda", "cuda:1", ...
    """

    checkpoint: Text = BUNDLED_CHECKPOINT
    members: AtLeast1 = 5
    epochs: AtLeast1 = 2
    batch_size: AtLeast1 = 32
    learning_rate: Positive = 5e-5
    weight_decay: Number = 0.0
    max_grad_norm: Positive = 1.0
    min_steps: Count = 0
    head: Literal["paper", "segments"] = "paper"
    marks: Marks = MARKS
    head_learning_rate: Positive | None = None
    dropout: Dropout | None = None
    max_length: Tokens = 512
    frozen_layers: Count = 0
    calibration_share: SmallShare = 0.2
    token_budget: AtLeast1 | None = None
    bfloat16: Auto = "auto"
    device: Text = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.marks, list):  # As files have them.
            object.__setattr__(self, "marks", tuple(self.marks))
        super().__post_init__()
        if self.marks[0] == self.marks[1]:
            raise PredictorError("marks: both are the same; give one for a wrong and one for a right answer.")

    @property
    def rate_of_head(self) -> float:
        """Learning rate of the head: a fresh head of many inputs needs larger steps than a pretrained network."""
        if self.head_learning_rate is not None:
            return self.head_learning_rate
        return 1e-3 if self.head == "segments" else self.learning_rate


@dataclass(frozen=True)
class EmbeddingXgboostSettings(Settings):
    """Boosted trees over fixed sentence embeddings of the texts, and the numbers: of a pair, the outcome (section 4).

    The defaults suit a few hundred to some ten thousand rows: many small, slow trees, each seeing a part of the rows
    and of the hundreds of columns.

    embeddings: `bundled:minilm-l6`, a local folder, a Hugging Face id, `endpoint:MODEL` or `voyage:MODEL` (see
        `predictors.embeddings`).
    trees, depth, learning_rate: boosting rounds, greatest depth of a tree, and how much of each tree is added.
    subsample, column_sample: share of rows and of columns that a tree may use.
    min_child_weight: least sum of p (1 - p) over the rows of a leaf, weights having mean 1.
    l2: penalty on the squared values of leaves.
    """

    embeddings: Text = BUNDLED_CHECKPOINT
    trees: AtLeast1 = 300
    depth: AtLeast1 = 4
    learning_rate: Share = 0.03
    subsample: Share = 0.7
    column_sample: Share = 0.3
    min_child_weight: Number = 2.0
    l2: Number = 1.0


@dataclass(frozen=True)
class CausalLmSettings(Settings):
    """A causal language model fine-tuned on prompts that end in 0 or 1 (section 4; the defaults are the paper's).

    checkpoint: a local folder or a Hugging Face id of a causal model, for instance meta-llama/Llama-2-7b-hf.
    adaptation: `full` moves every weight; `lora` moves small matrices next to them and saves only those.
    template: the prompt, by the name of one of ours or as the text of one (`predictors.prompts`).
    lora_rank, lora_alpha, lora_dropout: of the small matrices; they count for lora_alpha / lora_rank.
    lora_targets: `all-linear`, or names of the layers to adapt with commas between: `q_proj,v_proj`.
    members: networks in the ensemble, each from a seed of its own, their probabilities averaged.
    epochs, batch_size, weight_decay, max_grad_norm: AdamW, linear schedule without warm-up.
    learning_rate: None means 1e-5 for `full` and 2e-4 for `lora`.
    gradient_accumulation: so many batches are added up to one step of the optimiser.
    max_length: tokens of a prompt with its answer; longer ones lose the ends of both questions fairly.
    token_budget: tokens in one forward pass when scoring. None means 1,024 on a processor and 16,384 on a GPU.
    bfloat16: True, False or "auto" (where the processor or GPU computes in it).
    device: "auto", "cpu", "cuda", "cuda:1", ...
    """

    checkpoint: Text = "meta-llama/Llama-2-7b-hf"
    adaptation: Literal["full", "lora"] = "full"
    template: ChangeTemplate = "change"
    lora_rank: AtLeast1 = 16
    lora_alpha: AtLeast1 = 32
    lora_dropout: Dropout = 0.05
    lora_targets: Text = "all-linear"
    members: AtLeast1 = 1
    epochs: AtLeast1 = 3
    batch_size: AtLeast1 = 4
    learning_rate: Positive | None = None
    gradient_accumulation: AtLeast1 = 1
    weight_decay: Number = 0.0
    max_grad_norm: Positive = 1.0
    max_length: AtLeast1 = 1024
    token_budget: AtLeast1 | None = None
    bfloat16: Auto = "auto"
    device: Text = "auto"

    @property
    def rate(self) -> float:
        """The learning rate: LoRA's fresh matrices need larger steps than pretrained weights."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 2e-4 if self.adaptation == "lora" else 1e-5


@dataclass(frozen=True)
class LlmPromptSettings(Settings):
    """A chat model asked with a few examples (section 4). Its server's address and key come from the environment.

    model: a name that the server knows; None means what HUNCH_LLM_MODEL says.
    url_variable, key_variable: the environment variables that hold address and key. They must begin with HUNCH_LLM_,
        so that no study file can have another secret of the machine sent away.
    template: the prompt, by the name of one of ours or as the text of one (`predictors.prompts`).
    shots: examples in the prompt. examples: `balanced`, as many of both classes, or `drawn`, as the rows come.
    mode: `exact` (likelihoods of 0 and 1 as the first token), `samples`, or `auto` (exact where the server can).
    samples, temperature, max_tokens: replies drawn for a pair, how freely, and the tokens in one. average: of k ones
        among n, `smoothed` is (k + 1/2) / (n + 1), `plain` is k / n, as in the paper.
    max_characters: of one question; longer ones lose their middle.
    concurrency: requests in flight at once. timeout: seconds for one request.
    """

    model: Text | None = None
    url_variable: Variable = "HUNCH_LLM_URL"
    key_variable: Variable = "HUNCH_LLM_KEY"
    template: ChangeTemplate = "forecast"
    shots: Count = 10
    examples: Literal["balanced", "drawn"] = "balanced"
    mode: Literal["auto", "exact", "samples"] = "auto"
    samples: AtLeast1 = 5
    temperature: Number = 1.0
    average: Literal["smoothed", "plain"] = "smoothed"
    max_tokens: AtLeast1 = 8
    max_characters: Annotated[int, Field(ge=50)] = 4000
    concurrency: AtLeast1 = 4
    timeout: Positive = 60.0


@dataclass(frozen=True)
class HybridSettings(ColumnSettings):
    """A frozen cross-encoder's view of pairs, distilled soft labels, people's labels on top; all tuned inside `fit`.

    checkpoint: `bundled:minilm-l6`, a local folder or a Hugging Face id.
    landmarks: training rows that pairs are compared with, at most; more rows than that are learnt from all the same.
    concentration: how closely the share of people who change follows the prediction, where the answers do not show it:
        a share is Beta(p c, (1 - p) c).
    columns: `people`, `models`: how hard the target is for them, next to the texts (`predictors.hardness`). Empty:
        texts alone, as in the paper.
    max_length: tokens of one pair, special ones included; longer pairs lose the ends of both texts fairly.
    token_budget: tokens in one forward pass when scoring. None means 2,048 on a processor and 32,768 on a GPU.
    bfloat16: True, False or "auto" (where the processor or GPU computes in it).
    device: "auto", "cpu", "cuda", "cuda:1", ...
    """

    checkpoint: Text = BUNDLED_CHECKPOINT
    landmarks: AtLeast1 = 1024
    concentration: Positive = 5.0
    columns: Columns = ()
    max_length: Tokens = 512
    token_budget: AtLeast1 | None = None
    bfloat16: Auto = "auto"
    device: Text = "auto"


@dataclass(frozen=True)
class WordNetworkSettings(Settings):
    """A small language model of words, trained here from its first weight on.

    kind: `lstm` (Hochreiter and Schmidhuber 1997) or `transformer`, layers of masked self-attention (Vaswani et al.
        2017), normalised before each part, four times as wide between attention layers.
    layers, units, heads: units is the width of everything, word vectors included; heads of a transformer alone.
    dropout: of word vectors, between layers and before the output, while it learns.
    tied: one table of word vectors for input and output (Press and Wolf 2017).
    optimizer, learning_rate: `adam`, or `sgd` without momentum; None means 0.002, and for `sgd` 20 for an LSTM and 1
        for a transformer. Halved after each epoch that does not improve the held-out part.
    max_grad_norm: longer gradients are shortened to it.
    batch_size, context: so many rows of so many words are learnt from at once. A transformer sees no more than
        `context` words; an LSTM keeps its state from one part of a text to the next.
    epochs, patience: at most so many; fewer, where the last `patience` ones did not improve the held-out part. What
        counts are the weights after the best epoch.
    min_count: words that occur less often are read as <unk>.
    """

    kind: Literal["lstm", "transformer"] = "lstm"
    layers: AtLeast1 = 2
    units: AtLeast1 = 200
    heads: AtLeast1 = 2
    dropout: Dropout = 0.2
    tied: bool = True
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Positive | None = None
    max_grad_norm: Positive = 0.25
    batch_size: AtLeast1 = 32
    context: AtLeast2 = 48
    epochs: AtLeast1 = 20
    patience: AtLeast1 = 2
    min_count: AtLeast1 = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "transformer" and self.units % self.heads:
            raise PredictorError(f"units: {self.units} cannot be shared among {self.heads} heads; give a multiple.")
