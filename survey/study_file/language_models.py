"""Language models that read the study's items. Imports pydantic alone."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated

from pydantic import Field

from .base import Strict, WrongKey

MAX_MODELS = 40
ModelName = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^\S(.*\S)?$")]


class LanguageModelConfig(Strict):
    """A model by the name that tables show, and what reads: `local:FOLDER`, `endpoint:MODEL`, `ngram:NAME`,
    `lm:NAME`, `arpa:FILE`, `file:CSV`."""

    name: ModelName
    """The name in tables, up to 120 characters. No two models have the same."""
    source: str = Field(pattern=r"^(local|endpoint|ngram|lm|arpa|file):\S.*$", max_length=500)
    """What reads: `local:FOLDER`, `endpoint:MODEL`, `ngram:NAME`, `lm:NAME`, `arpa:FILE` or `file:CSV`
    ([language-models.md](language-models.md#how-well-models-predict-texts))."""
    corpus: str = Field(default="", max_length=80)
    """What it was trained on. Tables are grouped by it, and pictures have a colour for each."""
    architecture: str = Field(default="", max_length=80)
    """Its kind, such as `LSTM`. Tables are grouped by it inside a corpus; without corpora it gives the colours."""
    size: str = Field(default="", max_length=80)
    """Its size in units of your own, such as `"650"` or `"5-gram"`: the order inside an architecture."""
    training_mb: float | None = Field(default=None, gt=0)
    """Megabytes of text that it learnt from."""
    vocabulary: int | None = Field(default=None, ge=1)
    """How many tokens it knows, for perplexity as a share of them."""
    trained: date | None = None
    """The last day of what it may have learnt. Without it a text may be older than the model."""


def refuse_same_names(models: Sequence[LanguageModelConfig]) -> None:
    """
    Raises:
        WrongKey: two models have one name.
    """
    names = [model.name for model in models]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise WrongKey(("models", index, "name"), f"{name} is the name of another model: make them differ")
