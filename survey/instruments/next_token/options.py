"""The options of the next-token task in the study file."""

from typing import Literal

from pydantic import Field

from survey.contracts.instruments import Options


class NextTokenOptions(Options):
    tokenizer: str = Field(default="", max_length=500)
    """What cuts passages: `"pairs:NAME"`, `"local:FOLDER"` or `"ngram:NAME"`; left out with `unit = "character"`."""
    run: int = Field(default=20, ge=2, le=100)
    """Tokens of a run. 2 to 100."""
    start: Literal["beginning", "drawn"] = "beginning"
    """`"beginning"`: a run begins with the passage; `"drawn"`: it is one of the passage's runs, end to end."""
    unit: Literal["token", "character"] = "token"
    """What is guessed: `"token"`, or `"character"`, which is Shannon's game."""
    reveal: bool = True
    """Whether people see if a guess was right. The text goes on in any case."""
    priority: Literal["none", "gap", "uncertainty"] = "none"
    """What later stages sample by: `"none"`, `"gap"` or `"uncertainty"`."""
    priority_model: str = Field(default="", max_length=120)
    """Which of `[[models]]` the priority reads; the first one if empty."""
