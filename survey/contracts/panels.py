"""The contract of a panel, and where panels are found by name. Imports no model and no service.

A panel is where respondents come from. What every panel is stands in `Panel`: how its addresses name people, and who
may begin. What a panel's API can be asked stands in `PanelClient`, which a panel has or has not, and of which it
overrides the methods that its API can do. Rules use the statuses here; rows keep the panel's own words.
docs/panels.md says how to add one.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict

from survey.exceptions import EntryRefused, HunchError

from .plugins import Plugins

if TYPE_CHECKING:
    from survey.models import Posting, Study
    from survey.study_file import StudyConfig

# The version of this contract. Each panel states the one that it was written for.
CONTRACT = 1
ENTRY_POINTS = "hunch.panels"  # The group of entry points under which packages name their panel.
BUILT_IN = {
    "generic": "survey.panels.generic.panel.Generic",
    "links": "survey.panels.links.panel.Links",
    "open": "survey.panels.open.panel.Open",
    "prolific": "survey.panels.prolific.panel.Prolific",
}

# Keys of [panel] in a study file that every panel takes whose people are paid.
PAY_KEYS = frozenset({"reward", "expected_minutes", "turned_away_pay", "bonus_per_point"})

# No brace, bracket, percent or dollar sign, in which placeholders stand.
ANY_ID = re.compile(r"^[0-9A-Za-z][0-9A-Za-z._@:~+|-]{0,127}$")
NOT_FILLED_IN = re.compile(r"(?i:undefined|null|none|nil|nan)|[A-Z]+(_[A-Z]+)*_P?ID")


# What goes wrong with a panel


class PanelError(HunchError):
    """A call to the panel that did not do what it should. The message holds no id of a person and no token.

    `outcome_is_known` is False where the panel may have done what it was asked all the same: whoever spends money must
    not ask again.
    """

    code = "panel"
    status = 502

    def __init__(self, message: str, *, answered: int | None = None, outcome_is_known: bool = True) -> None:
        super().__init__(message)
        self.answered = answered
        self.outcome_is_known = outcome_is_known


class PanelUnreachable(PanelError):
    """No answer, or none that can be used, after all tries that were safe."""


class PanelRefused(PanelError):
    """The panel understood and said no: asking again in the same words does not help."""


class PanelMissing(PanelRefused):
    """The panel knows nothing under this id."""


class PanelCannot(PanelRefused):
    """The panel's API has no such call: somebody does it on the panel's own pages."""


class PanelBusy(PanelUnreachable):
    """Too many requests, and it asks for more patience than we have."""


class PanelUnknown(HunchError, LookupError):
    """No panel of that name can be used here."""

    code = "panel_unknown"
    status = 503


class EventRefused(HunchError):
    """What was posted as an event of the panel is not signed by it, not signed now, or no event."""

    code = "event_refused"
    status = 403


# Statuses of our own


class SubmissionStatus(StrEnum):
    """How one participation stands at the panel, as far as rules tell them apart."""

    RESERVED = "reserved"
    UNDER_WAY = "under way"
    AWAITING_REVIEW = "awaiting review"
    APPROVED = "approved"
    PARTIALLY_APPROVED = "partially approved"
    REJECTED = "rejected"
    RETURNED = "returned"
    TIMED_OUT = "timed out"
    SCREENED_OUT = "screened out"
    UNKNOWN = "unknown"

    @property
    def is_under_way(self) -> bool:
        return self in (SubmissionStatus.RESERVED, SubmissionStatus.UNDER_WAY)

    @property
    def is_paid(self) -> bool:
        return self in (SubmissionStatus.APPROVED, SubmissionStatus.PARTIALLY_APPROVED)

    @property
    def ended_unpaid(self) -> bool:
        """It ended without pay, and nobody decided against the person."""
        return self in (SubmissionStatus.RETURNED, SubmissionStatus.TIMED_OUT)


class PostingState(StrEnum):
    """How a posting stands at the panel, as far as rules tell them apart."""

    DRAFT = "draft"
    ACTIVE = "active"
    PAUSED = "paused"
    # All places are used: it must be started again to admit more people.
    AWAITING_REVIEW = "awaiting review"
    COMPLETED = "completed"
    UNKNOWN = "unknown"


class Verdict(Enum):
    """What a panel says of somebody who stands at the door."""

    SENT = "sent"
    NOT_SENT = "not sent"
    NOT_KNOWN = "not known"  # Nobody could be asked, or nobody answered in time.


class EventSubject(Enum):
    """What an event that the panel posts to us is about."""

    POSTING = "posting"
    SUBMISSION = "submission"
    NOTHING_OF_OURS = "nothing of ours"


# What is passed between a panel and the rest


@dataclass(frozen=True)
class PanelIds:
    """What a panel sends along: who, in which of its studies, in which submission. Printing one shows none of it."""

    panel: str
    person: str = field(repr=False)
    study: str = field(default="", repr=False)
    submission: str = field(default="", repr=False)


@dataclass(frozen=True)
class PostingAtPanel:
    """What the panel says of one posting. None where it does not say.

    `state` is the panel's own text. `codes` are the completion codes it was given. `facts` is what a stage's manifest
    records: whom the panel may send, and for what pay.
    """

    external_id: str
    state: str
    places: int | None = None
    reward: int | None = None
    minutes: int | None = None
    codes: frozenset[str] = frozenset()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SubmissionAtPanel:
    """What the panel says of one participation. `status` is the panel's own text; `code` is what the person entered."""

    submission: str = field(repr=False)
    person: str = field(repr=False)
    posting: str
    status: str
    code: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    seconds: int | None = None


@dataclass(frozen=True)
class Bonus:
    """What one submission is paid beside the reward, in whole cents or pence."""

    submission: str = field(repr=False)
    person: str = field(repr=False)
    cents: int


@dataclass(frozen=True)
class Event:
    """One event that the panel posted. `kind` is the panel's own word; `resource` is the id of what it is about."""

    event_id: str
    kind: str
    resource: str = field(repr=False)
    person: str = field(default="", repr=False)


class PanelClient(ABC):
    """A panel's API, opened for some calls: `with kind.open() as client: ...`.

    A subclass overrides the calls that the API can do; the others say that the panel cannot. Amounts are in whole cents
    or pence. Every call raises PanelError where the panel did not do it, with `outcome_is_known=False` where it may
    have. What comes back of a state or status is the panel's own text, or empty where it says none.
    """

    # How many bonuses one call takes.
    bonuses_at_once: ClassVar[int] = 100
    # What a rejection must name and say; anything goes where there are none.
    rejection_categories: ClassVar[Sequence[str]] = ()
    shortest_reason: ClassVar[int] = 1
    # The category of those who failed attention checks; empty where there is none for it.
    attention_category: ClassVar[str] = ""

    @classmethod
    def missing_setting(cls) -> str:
        """Why it cannot be asked now, and what to do; empty where it can."""
        return ""

    @classmethod
    @abstractmethod
    def open(cls) -> Self:
        """A client of the account that the settings name.

        Raises:
            HunchError: a setting is missing.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what `open` took."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @classmethod
    def can(cls, call: str) -> bool:
        """Whether the API can do this call, one of those below."""
        owner = next((kind for kind in cls.__mro__ if call in vars(kind)), None)
        if owner is None:
            raise AttributeError(f"a panel's client has no call {call!r}")
        return owner is not PanelClient

    # Postings

    def compose(self, posting: "Posting", *, address: str) -> dict[str, Any]:
        """What the panel will be sent for a draft, as JSON values. It is stored before it is sent.

        Args:
            address: where the study's people enter, with the panel's own placeholders.
        """
        raise self._cannot("draft a posting")

    def facts(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """What a stage's manifest records of it: whom the panel may send, and for what pay."""
        return dict(sent)

    def drafts(self, internal_name: str) -> Iterable[PostingAtPanel]:
        """What is at the panel under that name: a draft whose answer got lost is among it."""
        return ()

    def draft(self, sent: Mapping[str, Any]) -> PostingAtPanel:
        """Make the draft; nobody sees it at the panel yet."""
        raise self._cannot("draft a posting")

    def posting(self, external_id: str) -> PostingAtPanel:
        raise self._cannot("read a posting")

    def publish(self, external_id: str) -> str:
        """Show it to people; its state then."""
        raise self._cannot("publish a posting")

    def pause(self, external_id: str) -> str:
        """Send nobody else, while those inside finish; its state then."""
        raise self._cannot("pause a posting")

    def start(self, external_id: str) -> str:
        """Go on after a pause, or when all places were used; its state then."""
        raise self._cannot("start a posting")

    def stop(self, external_id: str) -> str:
        """End it for good; its state then."""
        raise self._cannot("stop a posting")

    def set_places(self, external_id: str, places: int) -> str:
        """Offer so many places in all, which are never fewer than before; its state then."""
        raise self._cannot("change the places")

    # Submissions

    def submissions(self, external_id: str) -> Iterable[SubmissionAtPanel]:
        """Every submission of a posting."""
        raise self._cannot("list the submissions")

    def submission(self, submission: str) -> SubmissionAtPanel:
        raise self._cannot("read a submission")

    def approve(self, submission: str) -> str:
        """Approve it, which pays the reward; its status then. Safe to repeat."""
        raise self._cannot("approve a submission")

    def reject(self, submission: str, *, category: str, message: str) -> str:
        """Reject it, in a person's words; its status then."""
        raise self._cannot("reject a submission")

    def ask_to_return(self, submission: str) -> None:
        """Ask somebody who did not finish to give the submission back."""
        raise self._cannot("ask for a return")

    # Bonuses

    def prepare_bonuses(self, external_id: str, bonuses: Sequence[Bonus]) -> str:
        """Set bonuses up, where the panel wants that first, and return the id of what was set up. Nothing is paid by
        this alone. Empty where nothing is set up."""
        return ""

    def pay_bonuses(self, external_id: str, bonuses: Sequence[Bonus], *, prepared: str, key: str) -> None:
        """Pay them. The caller never asks again for the same ones, whatever comes back; neither may this.

        Args:
            prepared: what `prepare_bonuses` returned.
            key: ours, and never the same for two payments: for panels that take one to know a repeated call by.

        Raises:
            PanelError: `outcome_is_known` is False where they may have been paid.
        """
        raise self._cannot("pay bonuses")

    # Events that the panel posts to /hooks/NAME

    @classmethod
    def read_event(cls, *, headers: Mapping[str, str], body: bytes, now: float) -> Event:
        """The event in a request, once it is certain that the panel sent it.

        Args:
            now: in seconds since 1970, to refuse a request that was signed too long ago.

        Raises:
            EventRefused: it is not signed by the panel, or too old, or no event.
        """
        raise EventRefused("No webhooks are taken here.", status=404)

    @classmethod
    def event_subject(cls, kind: str) -> EventSubject:
        """What events of that kind are about."""
        return EventSubject.NOTHING_OF_OURS

    def _cannot(self, what: str) -> PanelCannot:
        return PanelCannot(f"this panel's API cannot {what}: do it on the panel's own pages")


class Options(BaseModel):
    """A panel's own options, [panel.options] in a study file. A subclass adds fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Panel:
    """Where respondents come from. It keeps nothing: one object serves every study."""

    # The version of this contract that it was written for.
    contract: ClassVar[int]
    name: str
    title: str
    options_model: ClassVar[type[Options]] = Options
    # The keys of [panel] that it takes, beside kind, completion_url, currency, codes and options.
    keys: ClassVar[frozenset[str]] = frozenset()
    # Its API; None where it has none, so that people are paid from a list.
    client: ClassVar[type[PanelClient] | None] = None
    # Anybody with the address may begin, and nobody is paid.
    is_open: ClassVar[bool] = False
    # People come from its pages, to which they go back with a code, or return what they took.
    has_submissions: ClassVar[bool] = True
    # The least that an hour may be paid, in cents by currency; empty where it asks for nothing.
    minimum_an_hour: ClassVar[Mapping[str, int]] = {}
    # What its ids look like.
    id_pattern: ClassVar[re.Pattern[str]] = ANY_ID
    # What its submissions hold in the place of a completion code where the person entered none, beside nothing.
    no_codes: ClassVar[frozenset[str]] = frozenset()
    # Why it cannot be used; empty where it can.
    problem: str = ""

    def options(self, config: "StudyConfig") -> Any:
        """The study's options for this panel, checked."""
        return self.options_model.model_validate(config.panel.options)

    @property
    def pays_from_a_list(self) -> bool:
        """Whether somebody pays its people by hand, from a list that we make."""
        return self.client is None and not self.is_open and not self.problem

    # At the door

    def parameter_names(self, config: "StudyConfig") -> Mapping[str, str]:
        """What an entry address must carry: the names of its parameters, by what each is: `person`, and perhaps
        `study` and `submission`. Not one of study_file's OWN_PARAMETERS, which the pages use themselves."""
        return {}

    def placeholder(self, parameter: str) -> str:
        """What stands for a parameter's value in the address that the panel is given."""
        return "..."

    def address(self, config: "StudyConfig", entrance: str) -> str:
        """The address that the panel is given, from where the study's pages begin."""
        query = "&".join(f"{name}={self.placeholder(name)}" for name in self.parameter_names(config).values())
        return f"{entrance}?{query}" if query else entrance

    def recognise(self, study: "Study", query: Mapping[str, str]) -> PanelIds | None:
        """Who comes, by what the address carries; None where it carries nothing of this panel's. Writes nothing.

        Raises:
            EntryRefused: a parameter is missing, still a placeholder, or not an id.
        """
        names = self.parameter_names(study.config)
        given = {what: query.get(name, "").strip() for what, name in names.items()}
        if not any(given.values()):
            return None
        for what, value in given.items():
            name = names[what]
            # Everybody whom a broken link brings carries the same word, and would be taken for one person.
            unfilled = NOT_FILLED_IN.fullmatch(value) or value.lower() == name.lower()
            if unfilled or not self.id_pattern.match(value):
                raise EntryRefused(
                    _(
                        "The link is incomplete: %(name)s is missing or was not filled in. "
                        "Please start again from the panel's page."
                    )
                    % {"name": name},
                    code="bad_panel_ids",
                    status=400,
                )
        return PanelIds(self.name, given["person"], given.get("study", ""), given.get("submission", ""))

    def how_to_enter(self) -> str:
        """What somebody is told whose address carries nothing."""
        return _("This study is entered from the panel's own page. Please open it there once more; your place is kept.")

    def verdict(self, study: "Study", ids: PanelIds, *, query: Mapping[str, str], host: str) -> Verdict:
        """Whether the panel sent this person in this submission to this host. Somebody waits for the answer.

        Args:
            query: all parameters of the address that the person came with.
            host: ours, as the browser named it.
        """
        return Verdict.NOT_KNOWN

    def admit(self, study: "Study", ids: PanelIds, *, now: datetime) -> None:
        """Somebody begins: called once for each, in the transaction that stores it, under the stage's lock. No call to
        the panel belongs here.

        Raises:
            EntryRefused: the person may not begin; nothing is stored then.
        """

    # What its words mean

    def submission_status(self, text: str) -> SubmissionStatus:
        """What the panel's own text for a submission's status means."""
        return SubmissionStatus.UNKNOWN

    def posting_state(self, text: str) -> PostingState:
        """What the panel's own text for a posting's state means."""
        return PostingState.UNKNOWN

    # For trials

    def simulated_queries(self, study: "Study", *, count: int, root: str) -> Sequence[Mapping[str, str]] | None:
        """What the addresses of so many simulated people carry; None where made-up ids will do.

        Args:
            root: scheme and host of this server.
        """
        return None


class _Missing(Panel):
    """In the place of a panel that cannot be used: its studies admit nobody, those who have begun finish."""

    contract = CONTRACT

    def __init__(self, name: str, problem: str) -> None:
        self.name = self.title = name
        self.problem = problem

    def recognise(self, study: "Study", query: Mapping[str, str]) -> PanelIds | None:
        raise self._closed()

    def admit(self, study: "Study", ids: PanelIds, *, now: datetime) -> None:
        raise self._closed()

    def _closed(self) -> EntryRefused:
        return EntryRefused(_("This study is not open at the moment. Nothing has been recorded."), code="closed")


_panels: Plugins[Panel] = Plugins(kind="panel", base=Panel, contract=CONTRACT, group=ENTRY_POINTS, built_in=BUILT_IN)


def get(name: str) -> Panel:
    """The panel of that name.

    Raises:
        PanelUnknown: there is none that can be used. The message says why, and which there are.
    """
    try:
        return _panels.get(name)
    except LookupError as exc:
        raise PanelUnknown(str(exc)) from None


def find(name: str) -> Panel:
    """The panel of that name, or one in its place whose `problem` says why it cannot be used: what is stored of its
    studies can be shown all the same."""
    try:
        return get(name)
    except PanelUnknown as exc:
        return _Missing(name, exc.message)


def of_study(study: "Study") -> Panel:
    """The panel that the study's file names, as `find` gives it."""
    return find(study.config.panel.kind)


def names() -> list[str]:
    """The names of the panels that can be used."""
    return _panels.names()


def look_again() -> None:
    """Find panels of packages that were installed since."""
    _panels.look_again()
