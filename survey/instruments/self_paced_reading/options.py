"""The options of self-paced reading in the study file."""

from pydantic import Field

from survey.contracts.instruments import Options


class ReadingOptions(Options):
    shortest: int = Field(default=100, ge=0, le=60_000)
    """Shorter times are left out of the figures, in milliseconds."""
    longest: int = Field(default=3000, ge=1, le=60_000)
    """Longer times are left out of the figures, in milliseconds."""
    least_right: float = Field(default=0.8, ge=0, le=1)
    """People with a smaller share of right answers are left out of the figures."""
    previous: int = Field(default=2, ge=1, le=3)
    """How many words before a word enter the analysis with it; 1 to 3."""
    frequencies: str = Field(default="", max_length=200)
    """Where word frequencies come from: `ngram:NAME`, a model of `train_ngram`. Needed with `[[models]]`."""
