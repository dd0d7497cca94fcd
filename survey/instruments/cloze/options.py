"""The options of the cloze task in the study file."""

from typing import Literal

from pydantic import Field

from survey.contracts.instruments import Options


class ClozeOptions(Options):
    normalisation: Literal["lenient", "exact"] = Field(
        default="lenient", description="Whether a slip of one letter still counts as the sentence's own word."
    )
    skip_first: bool = Field(default=True, description="The first word of a sentence is not asked for.")
    skip_last: bool = Field(default=True, description="The last word of a sentence is not asked for.")
    lists: bool = Field(
        default=False,
        description="A Latin square: positions rotate over lists, and a person gets one list of sentences.",
    )
    smoothing: float = Field(default=1.0, gt=0, le=100, description="Added to the count of every distinct answer.")
    least: int = Field(default=10, ge=1, le=1000, description="Answers that a position needs to enter the figures.")
    responses_per_item: int = Field(
        default=25, ge=1, le=1000, description="The figures aim at so many answers at each position."
    )
    priority: Literal["none", "uncertainty", "gap"] = Field(
        default="none", description="What later stages sample positions by, with a design that needs scores."
    )
    priority_model: str = Field(
        default="",
        max_length=120,
        description="Which of [[models]] the priority reads; the first one if empty.",
    )
