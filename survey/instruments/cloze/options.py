"""The options of the cloze task in the study file."""

from typing import Literal

from pydantic import Field

from survey.contracts.instruments import Options


class ClozeOptions(Options):
    normalisation: Literal["lenient", "exact"] = "lenient"
    """`"lenient"`: a slip of one letter still counts as the sentence's own word; `"exact"`: it does not."""
    skip_first: bool = True
    """Whether the first word of a sentence is left out."""
    skip_last: bool = True
    """Whether the last word of a sentence is left out."""
    lists: bool = False
    """A Latin square: positions rotate over lists, and a person gets one list."""
    smoothing: float = Field(default=1.0, gt=0, le=100)
    """Added to the count of every distinct answer; above 0 and up to 100."""
    least: int = Field(default=10, ge=1, le=1000)
    """Answers that a position needs to enter the figures. 1 to 1000."""
    responses_per_item: int = Field(default=25, ge=1, le=1000)
    """The figures aim at so many answers at each position. 1 to 1000."""
    priority: Literal["none", "uncertainty", "gap"] = "none"
    """What later stages sample by: `"none"`, `"uncertainty"` or `"gap"`."""
    priority_model: str = Field(default="", max_length=120)
    """Which of `[[models]]` the priority reads; the first one if empty."""
