"""The options of preferences in the study file. Imports only pydantic, the registry's base class and the study file's
errors."""

import re
from typing import Any, Literal

from pydantic import Field, field_validator

from survey.contracts.instruments import Options

SHARE = 'write "none", or a share above 0 and up to 1, for example 0.2'
NAME = r"^[A-Za-z][A-Za-z0-9 _-]{0,39}$"
RESERVED = ("cannot_judge", "reason")
# What a condition may change: what a screen asks in addition to the label, never which replies are shown.
BY_CONDITION = frozenset({"reason", "cannot_judge"})


class PreferenceOptions(Options):
    by_condition = BY_CONDITION

    models: tuple[str, ...] = Field(default=(), min_length=2)
    """Whose replies are compared: two or more names under which replies were imported or collected."""
    questions: tuple[str, ...] = Field(default=("helpful", "truthful"), min_length=1, max_length=6)
    """What is asked, as the word after "more": "Which reply is more helpful?" One to six; the first one is the label.
    Without it `["helpful", "truthful"]`."""
    cannot_judge: bool = True
    """Whether people may say "I cannot judge this". May differ by condition."""
    reason: str | float = "none"
    """At what share of the items, above 0 and up to 1, people may say why; drawn before it is answered. May differ by
    condition."""
    tie: Literal["none", "4-5"] = "none"
    """Analysis only. `"4-5"`: the two middle places are ties that count half."""
    max_reply_characters: int = Field(default=8000, ge=20, le=50_000)
    """The longest reply that is shown, 20 to 50,000."""
    replies_as: Literal["text", "markdown"] = "text"
    """How pages show replies: `"text"`, as they are; or `"markdown"`, with bold words, lists and tables, but without
    links and pictures. Exports have them as they are."""
    long_replies: Literal["refuse", "cut"] = "refuse"
    """Longer replies are refused when the study is created, or `"cut"` with a mark that people see."""
    responses_per_item: int | None = Field(default=None, ge=1, le=1000)
    """How many people judge each comparison: a check that every stage asks for so many. The stages' own key decides."""
    priority: Literal["information", "none"] = "information"
    """What stages other than uniform ones draw by; `"none"`: nothing, so that all stages must be uniform."""

    @field_validator("models", "questions")
    @classmethod
    def differ(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} stands there twice: name each once")
        return names

    @field_validator("questions")
    @classmethod
    def are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not re.match(NAME, name) or name in RESERVED:
                raise ValueError(f"{name!r}: a question is a word such as helpful, of letters, digits, spaces and -")
        return names

    @field_validator("reason", mode="before")
    @classmethod
    def is_a_share(cls, value: Any) -> Any:
        if value == "none":
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise ValueError(SHARE)
        return float(value)

    @property
    def reason_share(self) -> float:
        return self.reason if isinstance(self.reason, float) else 0.0
