"""Language models that read the study's items. Imports pydantic alone."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated

from pydantic import Field

from .base import Strict, WrongKey

MOST = 40
ModelName = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^\S(.*\S)?$")]


class LanguageModelConfig(Strict):
    """A model by the name that tables show, and what reads: `local:FOLDER`, `endpoint:MODEL`, `ngram:NAME`,
    `file:CSV`."""

    name: ModelName
    source: str = Field(pattern=r"^(local|endpoint|ngram|file):\S.*$", max_length=500)
    family: str = Field(default="", max_length=80, description="Models of one family get one colour in figures.")
    training_mb: float | None = Field(default=None, gt=0, description="Megabytes of text that it learnt from.")
    vocabulary: int | None = Field(default=None, ge=1, description="Tokens that it knows, for normalised perplexity.")
    trained: date | None = Field(default=None, description="The last day of what it may have learnt.")


def refuse_same_names(models: Sequence[LanguageModelConfig]) -> None:
    """
    Raises:
        WrongKey: two models have one name.
    """
    names = [model.name for model in models]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise WrongKey(("models", index, "name"), f"{name} is the name of another model: make them differ")
