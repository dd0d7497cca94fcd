"""The options of the next-token task in the study file."""

from typing import Literal

from pydantic import Field

from survey.contracts.instruments import Options


class NextTokenOptions(Options):
    tokenizer: str = Field(
        default="",
        max_length=500,
        description='What cuts passages: "pairs:NAME", "local:FOLDER" or "ngram:NAME"; not with unit = "character".',
    )
    run: int = Field(default=20, ge=2, le=100, description="Tokens of a run.")
    start: Literal["beginning", "drawn"] = Field(
        default="beginning",
        description="Whether a run begins with the passage, or is drawn among the passage's runs, end to end.",
    )
    unit: Literal["token", "character"] = Field(
        default="token", description="What is guessed; characters make it Shannon's game."
    )
    reveal: bool = Field(
        default=True, description="Whether people are told if a guess was right. The text goes on in any case."
    )
    priority: Literal["none", "gap", "uncertainty"] = Field(
        default="none", description="What later stages sample runs by, with a design that needs scores."
    )
    priority_model: str = Field(
        default="", max_length=120, description="Which of [[models]] the priority reads; the first one if empty."
    )
