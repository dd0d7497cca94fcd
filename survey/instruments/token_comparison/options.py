"""The options of token comparisons in the study file."""

from typing import ClassVar

from pydantic import Field, field_validator

from survey.contracts.instruments import Options

from .analysis.rewards import RATIOS, UNSURE

MIN_CONTEXT = 8
"""Tokens that every context has."""


class ComparisonOptions(Options):
    money: ClassVar[frozenset[str]] = frozenset({"endowment", "points_per_bonus_point"})

    generator: str = Field(default="", max_length=500)
    """What draws the other tokens: `local:FOLDER` or `ngram:NAME`. Required."""
    draws: int = Field(default=40, ge=2, le=1000)
    """Tokens drawn for each context. 2 to 1000."""
    context_tokens: int = Field(default=120, ge=MIN_CONTEXT, le=500)
    """The most tokens of a context, from the text's beginning. 8 to 500."""
    contexts_per_text: int = Field(default=1, ge=1, le=20)
    """Contexts of each text. 1 to 20."""
    draw_seed: int = Field(default=1, ge=0, lt=2**53)
    """Places and tokens are drawn from it; studies with the same one share their comparisons."""
    ratios: tuple[int, ...] = RATIOS
    """The chances in percent that people choose from: rising, symmetric about 50. Without it 1, 10, 20 ... 90, 99."""
    contexts_together: bool = False
    """Whether a person may get several comparisons of one text."""
    endowment: int = Field(default=2000, ge=0, le=1_000_000)
    """Points that every person starts with."""
    points_per_bonus_point: int = Field(default=100, ge=1, le=1_000_000)
    """So many points are one point of `panel.bonus_per_point`."""

    @field_validator("ratios")
    @classmethod
    def _ratios_fit(cls, ratios: tuple[int, ...]) -> tuple[int, ...]:
        if any(not 0 < ratio < 100 for ratio in ratios):
            raise ValueError("every ratio lies between 1 and 99: with 0 or 100 a reward could be infinite")
        if list(ratios) != sorted(set(ratios)):
            raise ValueError("write the ratios in rising order, each once")
        if UNSURE not in ratios or [100 - ratio for ratio in reversed(ratios)] != list(ratios):
            raise ValueError("ratios are symmetric about 50, and 50 is one of them: for each p also 100 - p")
        if not 3 <= len(ratios) <= 21:
            raise ValueError("name 3 to 21 ratios")
        return ratios
