"""The options of the next-token task in the study file."""

from typing import ClassVar, Literal

from pydantic import Field

from survey.contracts.instruments import Options


class NextTokenOptions(Options):
    money: ClassVar[frozenset[str]] = frozenset({"pays", "until_right", "run", "play_on"})

    tokenizer: str = Field(default="", max_length=500)
    """What cuts passages: `"pairs:NAME"`, `"local:FOLDER"` or `"ngram:NAME"`; left out with `unit = "character"`."""
    run: int = Field(default=20, ge=2, le=100)
    """Tokens of a run. 2 to 100."""
    start: Literal["beginning", "drawn"] = "beginning"
    """`"beginning"`: a run begins with the passage; `"drawn"`: it is one of the passage's runs, end to end."""
    unit: Literal["token", "character"] = "token"
    """What is guessed: `"token"`, or `"character"`."""
    until_right: bool = False
    """Whether each character is guessed until it is right, or 15 guesses were wrong: Shannon's game in full. Needs
    `unit = "character"`. Capital and small letters are the same."""
    reveal: bool = True
    """Whether people see if a guess was right. The text goes on in any case."""
    beside_models: bool = False
    """Whether the page behind each text says how many guesses were right so far, and how many of each of `[[models]]`
    in the same places."""
    play_on: bool = False
    """Whether people may stop behind each text. `items` of `[sitting]` is then the most that anybody plays."""
    pays: Literal["right", "guess", "minute"] = "right"
    """What is a point of `panel.bonus_per_point`: `"right"`, a right guess; `"guess"`, any guess; `"minute"`, a minute
    of guessing, where a token counts for a minute at most. Further guesses of a token earn no more."""
    priority: Literal["none", "gap", "uncertainty"] = "none"
    """What later stages sample by: `"none"`, `"gap"` or `"uncertainty"`."""
    priority_model: str = Field(default="", max_length=120)
    """Which of `[[models]]` the priority reads; the first one if empty."""

    @property
    def may_stop(self) -> bool:
        return self.play_on
