"""Where respondents come from, and the money they are paid."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticKnownError

from .base import Slug, Strict
from .closing import (
    CODE,
    CompletionSignatureConfig,
    CompletionUrl,
    CompletionUrlsConfig,
    FormatConfig,
    filled,
    placeholders_of,
    refuse_signatures_that_do_not_fit,
)

GROUPS = ("and", "or")
DEEPEST_GROUP = 3


class RangeConfig(Strict):
    """From `lower` to `upper`, both included; one of them may be left out. Numbers or dates."""

    lower: float | date | None = None
    """The lowest value that is admitted."""
    upper: float | date | None = None
    """The highest."""

    @model_validator(mode="after")
    def has_an_end(self) -> "RangeConfig":
        if self.lower is None and self.upper is None:
            raise ValueError("needs lower, upper or both")
        if self.lower is None or self.upper is None:
            return self
        if isinstance(self.lower, date) != isinstance(self.upper, date):
            raise ValueError("lower and upper must both be numbers or both be dates")
        if self.lower > self.upper:  # type: ignore[operator]
            raise ValueError("lower is above upper: swap them")
        return self


class FilterConfig(Strict):
    """One of the panel's filters by the panel's own id, with the panel's own values. "and" and "or" are groups of
    filters. `weightings` ask for so many people of each value."""

    filter_id: str = Field(min_length=1, max_length=100)
    """For instance `"fluent-languages"`."""
    selected_values: list[str] = Field(default=[], max_length=500)
    """The panel's ids of the chosen values."""
    selected_range: RangeConfig | None = None
    """Instead of values; see `[panel.filters.selected_range]`."""
    weightings: dict[str, Annotated[int, Field(ge=1, le=100_000)]] = {}
    """By chosen value, a whole number: how many people of each, as a ratio or as counts."""
    selected_filters: list["FilterConfig"] = Field(default=[], max_length=50)
    """For the groups `"and"` and `"or"` alone: the filters in the group, with the same keys. Groups lie in each other
    at most three deep."""

    @model_validator(mode="after")
    def selects_something(self) -> "FilterConfig":
        if self.filter_id in GROUPS:
            if not self.selected_filters or self.selected_values or self.selected_range or self.weightings:
                raise ValueError(f'a group "{self.filter_id}" needs selected_filters and nothing else')
            if self.depth > DEEPEST_GROUP:
                raise ValueError(f"groups lie in each other {self.depth} deep; at most {DEEPEST_GROUP} are allowed")
            return self
        if self.selected_filters:
            raise ValueError('selected_filters belong to a group: filter_id = "and" or "or"')
        if bool(self.selected_values) == (self.selected_range is not None):
            raise ValueError("needs either selected_values or selected_range")
        if strangers := sorted(set(self.weightings) - set(self.selected_values)):
            raise ValueError(f"weightings: {strangers[0]} is not among selected_values")
        return self

    @property
    def depth(self) -> int:
        """How many groups lie in each other, this one included; 0 for a filter."""
        return (
            1 + max(selected_filter.depth for selected_filter in self.selected_filters) if self.selected_filters else 0
        )

    @property
    def is_weighted(self) -> bool:
        return bool(self.weightings) or any(selected_filter.is_weighted for selected_filter in self.selected_filters)


class CodesConfig(Strict):
    """What the panel does on each completion code."""

    completed: Literal["manually_review", "automatically_approve"] = "manually_review"
    """`"manually_review"`: approved by `reconcile --approve`. `"automatically_approve"`: by the panel at once."""
    no_consent: Literal["manually_review", "request_return"] = "request_return"
    """`"request_return"` or `"manually_review"`."""
    failed_checks: Literal["manually_review", "request_return"] = "request_return"
    """The same."""
    study_full: Literal["manually_review", "request_return"] = "request_return"
    """The same."""
    screened_out: Literal["manually_review", "request_return"] = "request_return"
    """The same; posted only where a form has `screen_out` or a quota screens out."""


# Names that the pages and the API use themselves. A panel's parameter with such a name would be mixed up with theirs.
OWN_PARAMETERS = (
    "consent",
    "csrfmiddlewaretoken",
    "person",
    "parameters",
    "language",
    "link",
    "preview",
    "step",
    "screen",
    "prolific_token",
)


def _not_our_own(name: str) -> str:
    if name.lower() in OWN_PARAMETERS:
        raise ValueError("this name is used by the pages themselves: have the panel use another name")
    return name


PanelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$"), AfterValidator(_not_our_own)]


class ParametersConfig(Strict):
    """The names of the parameters in a generic panel's address. A signed address has `time` and `signature` as well."""

    person: ParameterName = "pid"
    """The parameter with the panel's id of a person."""
    study: ParameterName | None = None
    """The parameter with its study, if it sends one."""
    submission: ParameterName | None = None
    """The parameter with the participation, if it sends one: a sitting can be continued only in the same
    participation."""
    time: ParameterName | None = None
    """With `signed_entry`: the parameter with the time at which the address was signed; `ts` if it is left out."""
    signature: ParameterName | None = None
    """With `signed_entry`: the parameter with the signature; `sig` if it is left out."""

    @model_validator(mode="after")
    def names_differ(self) -> "ParametersConfig":
        return self._with_different_names()

    def _with_different_names(self) -> "ParametersConfig":
        named = (self.person, self.study, self.submission, self.time, self.signature)
        names = [name.lower() for name in named if name]
        if len(set(names)) != len(names):
            raise ValueError("two parameters have the same name: make them differ")
        return self

    def of_signed(self) -> "ParametersConfig":
        """The same names, with those of a signed address filled in.

        Raises:
            ValueError: two parameters have the same name.
        """
        filled = {"time": self.time or "ts", "signature": self.signature or "sig"}
        return self.model_copy(update=filled)._with_different_names()


# https://docs.prolific.com/api-reference/representative-sample-studies
Sample = Literal[
    "UK_REP_SAMPLE",
    "UK_REGIONAL_REP_SAMPLE",
    "REP_SAMPLE_UK_ENGLISH_AGE_POLITICAL_AFFILIATION",
    "US_REP_SAMPLE",
    "US_REGIONAL_REP_SAMPLE",
    "REP_SAMPLE_US_ENGLISH_AGE_POLITICAL_AFFILIATION",
    "REP_SAMPLE_US_ENGLISH_AGE_POLITICAL_AFFILIATION_ETHNICITY",
]

# Keys that not every panel takes: each says in the contract which it does.
PANEL_KEYS = (
    "reward",
    "places",
    "expected_minutes",
    "maximum_minutes",
    "spending_cap",
    "turned_away_pay",
    "screen_out_pay",
    "screen_out_places",
    "bonus_per_point",
    "exclude_people_of",
    "signed_entry",
    "project",
    "devices",
    "filters",
    "filter_set",
    "participant_group",
    "representative_sample",
    "content_warning",
    "content_warning_details",
    "parameters",
    "formats",
    "completion_urls",
    "completion_signature",
)


def _no_truth(value: Any) -> Any:
    """Read as a number, `reward = true` would pay one cent."""
    if isinstance(value, bool):
        raise PydanticKnownError("int_type")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Cents = Annotated[Whole, Field(ge=0, le=100_000_000)]


class PanelConfig(Strict):
    """Where respondents come from. `kind` names a panel; which there are is checked where the study is created, and so
    is which of these keys the panel takes. `options` are the panel's own.

    Money is in whole cents or pence of `currency`, as the panel counts it.
    """

    kind: PanelName = "open"
    """`"open"`: anybody with the address. `"prolific"`: people whose link carries PROLIFIC_PID, STUDY_ID and
    SESSION_ID. `"generic"`: people of another panel, whose link carries the `parameters`. `"links"`: people with one of
    the links that `hunch links` makes, one person for each link. Or the name of a panel from another package ([Adding a
    panel](panels.md#adding-a-panel))."""
    options: dict[str, Any] = {}
    """The panel's own options; the four above have none."""
    completion_url: CompletionUrl = ""
    """Where the end page's button leads, `https://` only (except on loopback); `{code}` stands for the completion code.
    `generic`: other placeholders too, see `[panel.completion_urls]`."""
    parameters: ParametersConfig | None = None
    """`generic`: the names of the parameters in its address; see `[panel.parameters]`."""
    formats: list[FormatConfig] = Field(default=[], max_length=3)
    """`generic`: what the panel's ids look like; see `[[panel.formats]]`."""
    completion_urls: CompletionUrlsConfig | None = None
    """`generic`: an address for each outcome; see `[panel.completion_urls]`."""
    completion_signature: CompletionSignatureConfig | None = None
    """`generic`: how `{signature}` in these addresses is made; see `[panel.completion_signature]`."""
    currency: Literal["USD", "GBP"] = "USD"
    """What `reward` and all other money is counted in: the currency of your account at the panel."""
    reward: Whole | None = Field(default=None, ge=1, le=100_000)
    """Cents for a finished sitting. Needed before anything is posted. A stage does not open if this is below the
    panel's minimum per hour."""
    places: Whole | None = Field(default=None, ge=1, le=100_000)
    """Places of a posting; by default the stage's free booklets when it is drafted."""
    expected_minutes: Whole | None = Field(default=None, ge=1, le=600)
    """How long a sitting takes, as stated to the panel; by default `minutes` of `[texts]`."""
    maximum_minutes: Whole | None = Field(default=None, ge=2, le=24 * 60 - 1)
    """After how long the panel gives the place to somebody else; by default the panel's own rule."""
    spending_cap: Cents | None = None
    """Cents that the study may cost: rewards, screen-outs and bonuses, with the panel's fees and VAT. Nothing is
    published or paid without it."""
    turned_away_pay: Cents = 0
    """Cents for those who consented and then found all places taken, once a person. Later visits that find no place
    either are flagged `came_before`."""
    bonus_per_point: Cents = 0
    """Cents for each point of an instrument's score, for those who finished."""
    exclude_people_of: list[Slug] = Field(default=[], max_length=100)
    """Slugs of studies on this server; people who took part in one of them are not admitted."""
    signed_entry: bool = False
    """Admit only links that the panel signed. `prolific`: needs the feature switched on in your workspace. `generic`:
    needs `HUNCH_GENERIC_SECRET`; what is signed is in [panels.md](panels.md#signed-addresses)."""
    screen_out_pay: Whole | None = Field(default=None, ge=1, le=100_000)
    """Cents for each person whom an answer of a form or a quota screens out. `generic`, `links`: part of what the list
    says is owed. `prolific`: paid by Prolific itself (its fixed screen-out payment, if your workspace has it), below
    the reward; at least 10 pence or 14 cents."""
    screen_out_places: Whole | None = Field(default=None, ge=1, le=100_000)
    """With `screen_out_pay`: how many people a posting may screen out; then Prolific pauses it. Pay times places counts
    under `spending_cap`. Elsewhere it is for the sum of the cost alone."""
    project: str | None = Field(default=None, pattern=r"^[0-9A-Za-z_-]{1,64}$")
    """`prolific`: the id of the project that drafts belong to, and so the wallet that pays; by default the account's
    first one."""
    devices: list[Literal["desktop", "tablet", "mobile"]] = []
    """Any of `"desktop"`, `"tablet"`, `"mobile"`; by default all."""
    filters: list[FilterConfig] = Field(default=[], max_length=50)
    """Whom the panel may send; see `[[panel.filters]]`."""
    filter_set: str | None = Field(default=None, pattern=r"^[0-9A-Za-z_-]{1,64}$")
    """Instead of `filters`: the id of a filter set that you made at Prolific."""
    participant_group: str | None = Field(default=None, min_length=1, max_length=100)
    """`prolific`: the name of a participant group of your workspace (or of `project`), made where there is none.
    Anyone who begins here is put into it, and later postings keep its members away, and nobody else. Several studies
    may name the same group. Needs `project`, or `HUNCH_PROLIFIC_WORKSPACE`; with either, a study of several stages has
    the group `SLUG took part` where none is named."""
    representative_sample: Sample | None = None
    """`prolific`: draws the sample by itself; instead of filters. One of `"UK_REP_SAMPLE"`, `"UK_REGIONAL_REP_SAMPLE"`,
    `"REP_SAMPLE_UK_ENGLISH_AGE_POLITICAL_AFFILIATION"`, `"US_REP_SAMPLE"`, `"US_REGIONAL_REP_SAMPLE"`,
    `"REP_SAMPLE_US_ENGLISH_AGE_POLITICAL_AFFILIATION"`, `"REP_SAMPLE_US_ENGLISH_AGE_POLITICAL_AFFILIATION_ETHNICITY"`.
    Its own fee counts under `spending_cap`."""
    content_warning: Literal["explicit", "sensitive"] | None = None
    """`prolific`: the warning that people see before they take part."""
    content_warning_details: str = Field(default="", max_length=1000)
    """`prolific`: what the warning is about."""
    codes: CodesConfig = CodesConfig()
    """What the panel does on each code; see `[panel.codes]`."""

    @model_validator(mode="after")
    def the_turned_away_earn_no_more(self) -> "PanelConfig":
        if self.reward is not None and self.turned_away_pay > self.reward:
            raise ValueError("turned_away_pay is above the reward of those who finish: lower it")
        return self

    @model_validator(mode="after")
    def the_screened_out_are_paid_less(self) -> "PanelConfig":
        if (self.screen_out_pay is None) != (self.screen_out_places is None):
            raise ValueError("screen_out_pay and screen_out_places belong together: give both or none")
        if self.reward is not None and self.screen_out_pay is not None and self.screen_out_pay >= self.reward:
            raise ValueError("screen_out_pay must be below the reward: lower it")
        return self

    @model_validator(mode="after")
    def filters_are_said_once(self) -> "PanelConfig":
        if self.filter_set and self.filters:
            raise ValueError("filters and filter_set: the panel takes one of the two, so leave one out")
        return self

    @model_validator(mode="after")
    def a_sample_is_the_panels_own(self) -> "PanelConfig":
        if self.representative_sample and (self.filters or self.filter_set):
            raise ValueError(
                "representative_sample: the panel draws the sample itself and takes no filters next to it: leave out "
                "filters and filter_set"
            )
        return self

    @model_validator(mode="after")
    def a_warning_has_a_kind(self) -> "PanelConfig":
        if self.content_warning_details and self.content_warning is None:
            raise ValueError('content_warning_details: say of which kind: content_warning = "sensitive" or "explicit"')
        return self

    @property
    def screen_outs(self) -> int:
        """What all who are screened out may cost, in cents."""
        return (self.screen_out_pay or 0) * (self.screen_out_places or 0)

    @model_validator(mode="after")
    def signed_parameters_differ(self) -> "PanelConfig":
        named = self.parameters or ParametersConfig()
        if self.signed_entry:
            named.of_signed()
        elif named.time or named.signature:
            raise ValueError(
                "parameters: time and signature are read of signed addresses only: add signed_entry = true"
            )
        return self

    @model_validator(mode="after")
    def each_id_has_one_format(self) -> "PanelConfig":
        named = [id_format.of for id_format in self.formats]
        if twice := sorted({name for name in named if named.count(name) > 1}):
            raise ValueError(f"formats: {twice[0]} is named twice: write one entry for it")
        return self

    @model_validator(mode="after")
    def signatures_fit(self) -> "PanelConfig":
        refuse_signatures_that_do_not_fit(self.completion_addresses, self.completion_signature)
        return self

    @property
    def given_keys(self) -> list[str]:
        """Those of `PANEL_KEYS` that the file gives a value."""
        return [name for name in PANEL_KEYS if getattr(self, name)]

    @property
    def completion_addresses(self) -> Sequence[str]:
        """All of them, as the file has them."""
        own = self.completion_urls.model_dump().values() if self.completion_urls is not None else ()
        return [address for address in (self.completion_url, *own) if address]

    @property
    def needed_for_closing(self) -> frozenset[str]:
        """What is filled into completion addresses, and into what they are signed by, next to the code."""
        names = {name for address in self.completion_addresses for name in placeholders_of(address)}
        signature = self.completion_signature
        return frozenset((names | set(signature.of if signature and isinstance(signature.of, list) else ())) - {CODE})

    def closing_template(self, outcome: str) -> str:
        """The address a respondent goes to after an outcome, with its placeholders; empty if the panel gave none."""
        own = getattr(self.completion_urls, outcome, "") if self.completion_urls is not None else ""
        return own or self.completion_url

    def is_personal_after(self, outcome: str) -> bool:
        """Whether the address after an outcome differs from person to person, so that it is made when they leave."""
        return bool(set(placeholders_of(self.closing_template(outcome))) - {CODE})

    @property
    def uses_codes(self) -> bool:
        """Whether an address after some outcome holds its code."""
        return any(CODE in placeholders_of(address) for address in self.completion_addresses)

    def takes_code_after(self, outcome: str) -> bool:
        """Whether the address after an outcome holds the code."""
        return CODE in placeholders_of(self.closing_template(outcome))

    def address_after(self, outcome: str, code: str) -> str:
        """The address a respondent goes to after an outcome; empty if the panel gave none, or if it is personal."""
        if self.is_personal_after(outcome):
            return ""
        return filled(self.closing_template(outcome), {CODE: code})
