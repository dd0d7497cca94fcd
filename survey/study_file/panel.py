"""Where respondents come from, and the money they are paid."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from .base import Slug, Strict


class RangeConfig(Strict):
    """From `lower` to `upper`, both included; one of them may be left out."""

    lower: float | None = None
    upper: float | None = None

    @model_validator(mode="after")
    def has_an_end(self) -> "RangeConfig":
        if self.lower is None and self.upper is None:
            raise ValueError("needs lower, upper or both")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError("lower is above upper: swap them")
        return self


class FilterConfig(Strict):
    """One of the panel's filters by the panel's own id, with the panel's own values."""

    filter_id: str = Field(min_length=1, max_length=100)
    selected_values: list[str] = Field(default=[], max_length=500)
    selected_range: RangeConfig | None = None

    @model_validator(mode="after")
    def selects_something(self) -> "FilterConfig":
        if bool(self.selected_values) == (self.selected_range is not None):
            raise ValueError("needs either selected_values or selected_range")
        return self


class CodesConfig(Strict):
    """What the panel does on each completion code."""

    completed: Literal["manually_review", "automatically_approve"] = "manually_review"
    no_consent: Literal["manually_review", "request_return"] = "request_return"
    failed_checks: Literal["manually_review", "request_return"] = "request_return"
    study_full: Literal["manually_review", "request_return"] = "request_return"


# What only a panel with submissions has: an open study has nobody to pay and nobody to leave out.
PANEL_KEYS = (
    "reward",
    "places",
    "expected_minutes",
    "maximum_minutes",
    "spending_cap",
    "turned_away_pay",
    "bonus_per_point",
    "exclude_people_of",
    "signed_entry",
    "devices",
    "filters",
)
Cents = Annotated[int, Field(ge=0, le=100_000_000)]
# Loopback addresses are those of the fake panel.
COMPLETION_URL = r"^((https://|http://(127\.0\.0\.1|localhost)(?=[:/]))[^\s{}]*(\{code\})?[^\s{}]*)?$"


class PanelConfig(Strict):
    """Where respondents come from. `open`: anybody with the address. `prolific`: with Prolific's three parameters.

    Money is in whole cents or pence of `currency`, as the panel counts it.
    """

    kind: Literal["open", "prolific"] = "open"
    completion_url: str = Field(default="", max_length=500)
    currency: Literal["USD", "GBP"] = "USD"
    reward: int | None = Field(default=None, ge=1, le=100_000)
    places: int | None = Field(default=None, ge=1, le=100_000)
    expected_minutes: int | None = Field(default=None, ge=1, le=600)
    maximum_minutes: int | None = Field(default=None, ge=2, le=24 * 60 - 1)
    spending_cap: Cents | None = None
    turned_away_pay: Cents = 0
    bonus_per_point: Cents = 0
    exclude_people_of: list[Slug] = Field(default=[], max_length=100)
    signed_entry: bool = False
    devices: list[Literal["desktop", "tablet", "mobile"]] = []
    filters: list[FilterConfig] = Field(default=[], max_length=50)
    codes: CodesConfig = CodesConfig()

    @field_validator("completion_url")
    @classmethod
    def leads_back_to_the_panel(cls, address: str) -> str:
        if not re.fullmatch(COMPLETION_URL, address):
            raise ValueError("write https://..., with {code} at most once where the code belongs")
        return address

    @model_validator(mode="after")
    def fits_its_kind(self) -> "PanelConfig":
        given = [name for name in PANEL_KEYS if getattr(self, name)]
        if self.kind == "open" and given:
            raise ValueError(f"only a panel has {', '.join(given)}: set kind, or remove it")
        if self.reward is not None and self.turned_away_pay > self.reward:
            raise ValueError("turned_away_pay is above the reward of those who finish: lower it")
        return self
