"""The questions of a form block: what kinds there are, and what each kind needs. Imports pydantic alone."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from .base import FieldName, Name, Strict, Text

LONGEST_TEXT = 5000
# Stored when somebody chose not to say. No option may use this value.
NOT_SAID = "prefer_not_to_say"
CHOSEN = ("choice", "multiple")
# Which keys belong to which kinds; every other key belongs to all kinds.
KEYS_OF: dict[str, tuple[str, ...]] = {
    "options": CHOSEN,
    "values": CHOSEN,
    "exclusive": ("multiple",),
    "screen_out": ("choice",),
    "prefer_not_to_say": (*CHOSEN, "likert"),
    "points": ("likert",),
    "labels": ("likert",),
    "minimum": ("number",),
    "maximum": ("number",),
    "bands": ("number",),
    "max_characters": ("text",),
}


class FieldConfig(Strict):
    """One question of a form block."""

    name: FieldName
    """The answer's name in exports."""
    label: Text
    """What is asked."""
    kind: Literal["choice", "multiple", "likert", "text", "number"]
    """`"choice"` (one of the options), `"multiple"` (any of them), `"likert"` (a point of a scale), `"text"` or
    `"number"` (a whole number)."""
    options: list[Text] = Field(default=[], max_length=60)
    """`choice`, `multiple`: the answers, 2 to 60."""
    values: list[Name] = []
    """`choice`, `multiple`: what is stored for each option; by default its text in the file's first language. Needed by
    `exclusive` and `screen_out` in a file of several languages."""
    exclusive: list[str] = []
    """`multiple`: options (by value, where there are values) that go with no other one, such as "none of these"."""
    screen_out: list[str] = []
    """`choice`, before the items, required: people who give one of these answers get no further questions, and the code
    for `screened_out`."""
    prefer_not_to_say: bool = False
    """`choice`, `multiple`, `likert`: a last option not to say, stored as `prefer_not_to_say`."""
    points: int | None = Field(default=None, ge=2, le=11)
    """`likert`: how many points, 2 to 11."""
    labels: list[Text] = []
    """`likert`: the words of both ends, or of every point."""
    required: bool = False
    """Whether it must be answered."""
    minimum: int | None = None
    """The smallest number that is accepted."""
    maximum: int | None = None
    """The largest number that is accepted."""
    bands: list[int] = Field(default=[], max_length=12)
    """`number`: how `estimate --by` cuts the answers: the first number of each band after the lowest, so that `[30,
    50]` is under 30, 30 to 49, and 50 or more; up to 12. Without it the people's quartiles are taken. Respondents do
    not see them."""
    max_characters: int | None = Field(default=None, ge=1, le=LONGEST_TEXT)
    """`text`: the longest text that is accepted; at most, and by default, 5,000."""

    @model_validator(mode="after")
    def fits_its_kind(self) -> "FieldConfig":
        for key, kinds in KEYS_OF.items():
            if self.kind not in kinds and getattr(self, key) not in ([], None, False):
                raise ValueError(f"only kind = {' or '.join(repr(kind) for kind in kinds)} has {key}")
        if self.kind in CHOSEN:
            self._options_fit()
        if any(low >= high for low, high in pairwise(self.bands)):
            raise ValueError("bands: give the first number of each band after the lowest, each above the one before")
        if self.bands and (
            (self.minimum is not None and self.bands[0] <= self.minimum)
            or (self.maximum is not None and self.bands[-1] > self.maximum)
        ):
            raise ValueError("bands: nobody can be in the lowest or highest band: keep them inside minimum and maximum")
        if self.kind == "likert":
            if self.points is None:
                raise ValueError("a likert scale needs points: how many there are to choose from, 2 to 11")
            if len(self.labels) not in (2, self.points):
                raise ValueError(f"labels: give 2, for the two ends, or {self.points}, one for each point")
        return self

    def _options_fit(self) -> None:
        if len(self.options) < 2:
            raise ValueError(f"a {self.kind} needs at least two options")
        if len(set(self.options)) != len(self.options):
            raise ValueError("options: two are the same: make them differ")
        if self.values and len(self.values) != len(self.options):
            raise ValueError(f"values: give one for each option: {len(self.options)}, not {len(self.values)}")
        if len(set(self.values)) != len(self.values):
            raise ValueError("values: two are the same: make them differ")
        if NOT_SAID in self.codes:
            raise ValueError(f"{NOT_SAID} is what prefer_not_to_say = true stores: choose another value")
        for key in ("exclusive", "screen_out"):
            if strangers := [code for code in getattr(self, key) if code not in self.codes]:
                known = "values" if self.values else "options (or give values, which are the same in every language)"
                raise ValueError(f"{key}: {', '.join(strangers)} is not among the {known}")
        if self.screen_out and not self.required:
            raise ValueError(
                "screen_out: set required = true, or people can skip the question and are not screened out"
            )
        if self.screen_out and set(self.screen_out) >= set(self.codes):
            raise ValueError("screen_out: every option screens out, so that nobody could take part")

    @property
    def codes(self) -> Sequence[str]:
        """The values that are sent and stored for the options, in order."""
        return self.values or self.options

    def label_of_point(self, point: int) -> str:
        """The words of a scale's point, from 1; empty between two labelled ends."""
        if len(self.labels) == self.points:
            return self.labels[point - 1]
        return {1: self.labels[0], self.points: self.labels[-1]}.get(point, "")
