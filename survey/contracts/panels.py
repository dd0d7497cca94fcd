"""The contract of a panel, and where panels are found by name. Imports no model and no service.

A panel is where respondents come from. `Panel` describes what all panels have: how entry addresses name people, and who
may begin. `PanelClient` describes a panel's API. A panel without an API has no client, and a client overrides only the
calls that its API has. Hunch's rules use the statuses defined here; rows store the panel's own words.
docs/panels.md explains how to add a panel.
"""

import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict

from survey.exceptions import EntryRefused, HunchError
from survey.fees import FeeRates
from survey.study_file import as_far_as_possible

from .plugins import Plugins

if TYPE_CHECKING:
    from survey.models import Posting, Stage, Study
    from survey.study_file import StudyConfig

# The version of this contract. Each panel states the version that it is written for.
CONTRACT = 1
ENTRY_POINTS = "hunch.panels"  # The group of entry points under which packages name their panel.
BUILT_IN = {
    "generic": "survey.panels.generic.panel.Generic",
    "links": "survey.panels.links.panel.Links",
    "open": "survey.panels.open.panel.Open",
    "prolific": "survey.panels.prolific.panel.Prolific",
}

# The keys of [panel] in a study file for every panel whose people are paid.
PAY_KEYS = frozenset({"reward", "expected_minutes", "turned_away_pay", "bonus_per_point"})

# No brace, bracket, percent or dollar sign, in which placeholders stand.
ANY_ID = re.compile(r"^[0-9A-Za-z][0-9A-Za-z._@:~+|-]{0,127}$")
NOT_FILLED_IN = re.compile(r"(?i:undefined|null|none|nil|nan)|[A-Z]+(_[A-Z]+)*_(P?ID|NOT_AVAILABLE)")


# Errors


class PanelError(HunchError):
    """A call to the panel that did not do what it should. The message holds no id of a person and no token.

    `outcome_is_known` is False if the panel may have done what it was asked anyway: a call that spends money must not
    be repeated then.
    """

    code = "panel"
    status = 502

    def __init__(
        self, message: str, *, answered: int | None = None, outcome_is_known: bool = True, retry_after: int = 0
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.answered = answered
        self.outcome_is_known = outcome_is_known


class PanelUnreachable(PanelError):
    """No usable answer, after all tries that were safe."""


class PanelRefused(PanelError):
    """The panel understood the request and refused it: the same request will fail again."""


class PanelMissing(PanelRefused):
    """The panel knows nothing under this id."""


class PanelCannot(PanelRefused):
    """The panel's API has no such call: do it by hand on the panel's own pages."""


class PanelBusy(PanelUnreachable):
    """Too many requests, and the panel asks for a longer wait than we allow. `retry_after` says how long, if it did."""


class PanelUnknown(HunchError, LookupError):
    """No panel with that name can be used here."""

    code = "panel_unknown"
    status = 503


class EventRefused(HunchError):
    """A posted event has no valid signature, is too old, or is not an event."""

    code = "event_refused"
    status = 403


# Our own statuses


class SubmissionStatus(StrEnum):
    """The status of one participation at the panel. Only the differences that rules need."""

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
        """Whether it ended without pay and without a rejection."""
        return self in (SubmissionStatus.RETURNED, SubmissionStatus.TIMED_OUT)


class PostingState(StrEnum):
    """The state of a posting at the panel. Only the differences that rules need."""

    DRAFT = "draft"
    # It was asked to be shown, and is not shown yet.
    SCHEDULED = "scheduled"
    PUBLISHING = "publishing"
    ACTIVE = "active"
    PAUSED = "paused"
    # All places are used. More places make it active again.
    AWAITING_REVIEW = "awaiting review"
    COMPLETED = "completed"
    UNKNOWN = "unknown"


class ReturnReason(StrEnum):
    """Why somebody is asked to give a submission back."""

    NOT_FINISHED = "not finished"
    NO_CONSENT = "no consent"
    FAILED_CHECKS = "failed checks"
    STUDY_FULL = "study full"
    SCREENED_OUT = "screened out"


class Verdict(Enum):
    """Whether the panel sent a person."""

    SENT = "sent"
    NOT_SENT = "not sent"
    NOT_KNOWN = "not known"  # The panel has no way of saying, or cannot say now.


@dataclass(frozen=True)
class LookedUp:
    """What looking somebody up has shown. `part_of` is the posting that the one in the address is a part of, if any."""

    verdict: Verdict
    part_of: str = field(default="", repr=False)


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
    """What the panel says about one posting. None means that it does not say.

    `state` is the panel's own text. `codes` are its completion codes. `facts` go into the stage's manifest: whom the
    panel may send, and for what pay.
    """

    external_id: str
    state: str
    places: int | None = None
    reward: int | None = None
    minutes: int | None = None
    screen_outs: int | None = None  # What all screen-outs may cost, in cents.
    currency: str = ""
    # What Hunch wrote on it when it was drafted, so that a draft whose answer was lost is known again.
    mark: str = ""
    codes: frozenset[str] = frozenset()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SubmissionAtPanel:
    """What the panel says about one participation. `status` is the panel's own text, `code` what people entered.

    `parent` is the posting that `posting` is a part of, where a panel divides one into parts. `asked_back_at` says when
    the person was asked for a return, by whomever.
    """

    submission: str = field(repr=False)
    person: str = field(repr=False)
    posting: str
    status: str
    code: str = ""
    parent: str = ""
    asked_back_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    seconds: int | None = None


@dataclass(frozen=True)
class Bonus:
    """What one submission is paid on top of the reward, in whole cents or pence."""

    submission: str = field(repr=False)
    person: str = field(repr=False)
    cents: int


@dataclass(frozen=True)
class Invitee:
    """Somebody who may come for a later wave, by the ids of wave 1, and when they may begin it."""

    ids: PanelIds
    opens: datetime
    closes: datetime


@dataclass(frozen=True)
class InviteLink:
    """A person's own link to a later wave, as it is shown once. `first_number` is that of their first link."""

    first_number: int
    number: int
    address: str = field(repr=False)
    opens: datetime
    closes: datetime


@dataclass(frozen=True)
class Invitations:
    """How many people a panel has invited, with their links if it is people with links."""

    invited: int
    links: Sequence[InviteLink] = ()


@dataclass(frozen=True)
class PostingCost:
    """Money by what it is for, in whole cents or pence: what people get for their submissions and as bonuses, and the
    fees on both with their VAT."""

    rewards: int
    bonuses: int
    fees: int
    currency: str

    @property
    def total(self) -> int:
        return self.rewards + self.bonuses + self.fees


@dataclass(frozen=True)
class Wallet:
    """What can be spent at the panel now, in whole cents or pence."""

    available: int
    currency: str


@dataclass(frozen=True)
class PayAdvice:
    """Cents an hour that the panel demands and that it recommends."""

    minimum: int
    recommended: int
    currency: str


@dataclass(frozen=True)
class PreparedBonuses:
    """Bonuses that are set up and not paid yet. `fees`: what they cost on top of that, VAT included, in cents; None
    if the panel does not say."""

    external_id: str
    fees: int | None = None


@dataclass(frozen=True)
class PanelRehearsal:
    """A posting's trial at the panel, which only test participants see and which costs nothing. `address`: where it is
    taken part in."""

    external_id: str
    address: str


@dataclass(frozen=True)
class Demographics:
    """What the panel knows of one of its people, by its own names for it."""

    submission: str = field(repr=False)
    person: str = field(repr=False)
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """One event that the panel posted. `kind` is the panel's own word; `resource` is the id of what it is about.

    `event_id` is the same whenever the panel sends the same event again. `signed` is a hash of exactly the bytes that
    were signed: the same bytes are taken once, whatever stands around them. Without it, only `event_id` is compared.
    """

    event_id: str
    kind: str
    resource: str = field(repr=False)
    person: str = field(default="", repr=False)
    signed: str = ""


class PanelClient(ABC):
    """A panel's API, opened for some calls: `with kind.open() as client: ...`.

    A subclass overrides the calls that the API has; all others raise PanelCannot. Amounts are in whole cents or pence.
    A call that fails raises PanelError, with `outcome_is_known=False` if the panel may have done it anyway. States and
    statuses are returned in the panel's own words, or empty if the panel does not say.
    """

    # How long a call may last, with everything that is tried again and waited in between. Where the process that made a
    # call has died, this long after it began the panel's own view says what became of it.
    longest_call: ClassVar[timedelta] = timedelta(minutes=10)
    # How many bonuses one call takes, and how many submissions a common approval.
    bonuses_at_once: ClassVar[int] = 100
    approvals_at_once: ClassVar[int] = 500
    # The categories of a rejection (none: any text is accepted), and the least length of its message.
    rejection_categories: ClassVar[Sequence[str]] = ()
    shortest_reason: ClassVar[int] = 1
    # The category for failed attention checks; empty if there is none.
    attention_category: ClassVar[str] = ""

    @classmethod
    def missing_setting(cls) -> str:
        """Which setting is missing, and what it is for; empty if none is."""
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
        """Release what `open` acquired."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @classmethod
    def can(cls, call: str) -> bool:
        """Whether the API has this call, one of those below."""
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
        """The postings at the panel with this name, among them a draft whose answer was lost."""
        return ()

    def draft(self, sent: Mapping[str, Any]) -> PostingAtPanel:
        """Make the draft; nobody sees it at the panel yet."""
        raise self._cannot("draft a posting")

    def posting(self, external_id: str) -> PostingAtPanel:
        raise self._cannot("read a posting")

    def publish(self, external_id: str) -> str:
        """Show it to people. Returns the state."""
        raise self._cannot("publish a posting")

    def pause(self, external_id: str) -> str:
        """Send nobody else; people who have begun finish. Returns the state."""
        raise self._cannot("pause a posting")

    def start(self, external_id: str) -> str:
        """Continue after a pause. Returns the state."""
        raise self._cannot("start a posting")

    def stop(self, external_id: str) -> str:
        """End it for good. Returns the state."""
        raise self._cannot("stop a posting")

    def set_places(self, external_id: str, places: int) -> str:
        """Set the total number of places, which never decreases. A posting whose places were all used becomes active
        again. Returns the state."""
        raise self._cannot("change the places")

    def schedule(self, external_id: str, at: datetime) -> str:
        """Have it shown to people from then on. Returns the state."""
        raise self._cannot("schedule a posting")

    def unschedule(self, external_id: str) -> str:
        """Take that back: it is a draft again. Returns the state."""
        raise self._cannot("take back a posting's schedule")

    def rehearse(self, sent: Mapping[str, Any]) -> PanelRehearsal:
        """Make a trial of what would be drafted, which only test participants see and which costs nothing."""
        raise self._cannot("rehearse a posting")

    def recruitment_hours(self, external_id: str) -> float:
        """How long the panel expects to need for all places."""
        raise self._cannot("predict how long recruiting takes")

    # What it costs

    def fees(self, external_id: str = "") -> FeeRates:
        """What the panel takes in addition to what people get, for the posting if one is named."""
        raise self._cannot("say what it costs")

    def spent(self, external_id: str) -> PostingCost:
        """What a posting has cost so far."""
        raise self._cannot("say what a posting has cost")

    def wallet(self) -> Wallet:
        raise self._cannot("say what can be spent")

    def pay_advice(self, currency: str) -> PayAdvice:
        raise self._cannot("say what should be paid")

    # People

    def group(self, name: str, *, project: str = "") -> str:
        """The id of the panel's group of people with that name, made where there is none."""
        raise self._cannot("keep groups of people")

    def add_to_group(self, group: str, people: Sequence[str]) -> None:
        """Add people; who is in it already stays once. Safe to repeat."""
        raise self._cannot("keep groups of people")

    def remove_from_group(self, group: str, people: Sequence[str]) -> None:
        """Take people out of it; who is not in it stays out. Safe to repeat."""
        raise self._cannot("keep groups of people")

    def demographics(self, external_id: str) -> Iterable[Demographics]:
        """What the panel knows of a posting's people."""
        raise self._cannot("export demographic data")

    # Submissions

    def submissions(self, external_id: str) -> Iterable[SubmissionAtPanel]:
        """Every submission of a posting."""
        raise self._cannot("list the submissions")

    def submission(self, submission: str) -> SubmissionAtPanel:
        raise self._cannot("read a submission")

    def approve(self, submission: str) -> str:
        """Approve it, which pays the reward. Safe to repeat. Returns the status."""
        raise self._cannot("approve a submission")

    def approve_all(self, submissions: Sequence[str]) -> None:
        """Approve several at once, where the API can; the next reading shows their status. Safe to repeat."""
        raise self._cannot("approve several submissions at once")

    def reject(self, submission: str, *, category: str, message: str) -> str:
        """Reject it with a person's message. Returns the status."""
        raise self._cannot("reject a submission")

    def ask_to_return(self, submission: str, why: ReturnReason) -> None:
        """Ask somebody to give the submission back, with the reason in the panel's own words."""
        raise self._cannot("ask for a return")

    # Bonuses

    def prepare_bonuses(self, external_id: str, bonuses: Sequence[Bonus]) -> str | PreparedBonuses:
        """First step of a payment, if the panel needs two: prepares the bonuses and returns an id, or the id with what
        they cost on top of that. This alone pays nothing. Returns an empty text if nothing is prepared."""
        return ""

    def pay_bonuses(self, external_id: str, bonuses: Sequence[Bonus], *, prepared: str, key: str) -> None:
        """Pay the bonuses. Neither the caller nor this method may ever repeat the request, whatever the answer is.

        Args:
            prepared: what `prepare_bonuses` returned.
            key: different for every payment, for APIs that detect repeated requests by a key.

        Raises:
            PanelError: `outcome_is_known` is False if they may have been paid.
        """
        raise self._cannot("pay bonuses")

    # Events that the panel posts to /hooks/NAME

    @classmethod
    def read_event(cls, *, headers: Mapping[str, str], body: bytes, now: float) -> Event:
        """Check that the panel sent this request, and return its event.

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


class PanelOptions(BaseModel):
    """A panel's own options, [panel.options] in a study file. A subclass adds fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Panel:
    """Where respondents come from. One object serves all studies, so it stores no state."""

    # The version of this contract that it is written for: 1. A panel with another version is not used.
    contract: ClassVar[int]
    # Its name in study files: lower-case letters, digits and `_`.
    name: str
    # Its name in sentences.
    title: str
    # Its own options in [panel.options], a subclass of PanelOptions; checked when a study is created.
    options_model: ClassVar[type[PanelOptions]] = PanelOptions
    # The keys of [panel] that it accepts, apart from kind, completion_url, currency, codes and options. PAY_KEYS are
    # those of every panel whose people are paid. A study file with any other key is refused.
    keys: ClassVar[frozenset[str]] = frozenset()
    # Its API. Without one, people are paid from a list.
    client: ClassVar[type[PanelClient] | None] = None
    # Whether anybody with the address may begin, and nobody is paid.
    is_open: ClassVar[bool] = False
    # Whether people are invited to later waves by links of their own, which are made here.
    invites_by_links: ClassVar[bool] = False
    # The name under which people know it, to be shown on their pages ("Go back to Prolific"); empty if it has none.
    name_for_people: ClassVar[str] = ""
    # Whether people come from its pages, and return there with a code or give their place back.
    has_submissions: ClassVar[bool] = True
    # Whether it divides a posting into parts, as quotas do, whose people come with the part's id. `look_up` then
    # returns LookedUp(verdict, part_of=...), and the part is remembered.
    has_parts: ClassVar[bool] = False
    # The lowest hourly pay that it allows, in cents by currency; a lower reward is refused. Empty if it has no minimum.
    minimum_an_hour: ClassVar[Mapping[str, int]] = {}
    # What it recommends for an hour where it cannot be asked, in cents by currency.
    recommended_an_hour: ClassVar[Mapping[str, int]] = {}
    # The highest fee and VAT that it takes, in hundredths of a percent: what is reckoned with where it cannot be asked.
    highest_fees: ClassVar[FeeRates] = FeeRates()
    # The least that it allows as a fixed pay for people who are screened out, in cents by currency.
    minimum_screen_out: ClassVar[Mapping[str, int]] = {}
    # Whether an id is known to its person alone, so that who names it is that person and gets their sitting back.
    ids_are_secret: ClassVar[bool] = False
    # Whether its completion addresses may hold the ids that its people came with, and a signature.
    gives_ids_back: ClassVar[bool] = False
    # A regular expression for its ids.
    id_pattern: ClassVar[re.Pattern[str]] = ANY_ID
    # What its submissions contain instead of an empty text if the person entered no completion code.
    no_codes: ClassVar[frozenset[str]] = frozenset()
    # Why it cannot be used; empty if it can.
    problem: str = ""

    def options(self, config: "StudyConfig") -> Any:
        """The study's options for this panel, checked; as far as they can be where an earlier version accepted them."""
        if config.problems:
            return as_far_as_possible(self.options_model, config.panel.options)
        return self.options_model.model_validate(config.panel.options)

    @property
    def pays_from_a_list(self) -> bool:
        """Whether a person pays the respondents from a list that Hunch makes."""
        return self.client is None and not self.is_open and not self.problem

    # When a person arrives

    def parameter_names(self, config: "StudyConfig") -> Mapping[str, str]:
        """What an entry address must carry: the names of its parameters, by what each is: `person`, and perhaps
        `study` and `submission`. Not one of study_file's OWN_PARAMETERS, which the pages use themselves."""
        return {}

    def proof_names(self, config: "StudyConfig") -> Sequence[str]:
        """The names of further parameters, with which a signed entry address proves that the panel made it."""
        return ()

    def token_name(self, config: "StudyConfig") -> str:
        """The name of a further parameter that the panel itself puts into each address, and by which the address proves
        that the panel made it: a key of its own in the API. Empty if the study asks for none."""
        return ""

    def missing_setting(self, config: "StudyConfig") -> str:
        """Which setting is missing without which nobody can enter, and what it is for; empty if none is."""
        return ""

    def placeholder(self, parameter: str) -> str:
        """The placeholder for a parameter's value in the address that is entered at the panel."""
        return "..."

    def address(self, config: "StudyConfig", entrance: str) -> str:
        """The address that is entered at the panel: the study's entrance with parameters and placeholders."""
        names = [*self.parameter_names(config).values(), *self.proof_names(config)]
        query = "&".join(f"{name}={self.placeholder(name)}" for name in names)
        return f"{entrance}?{query}" if query else entrance

    def shortest_maximum(self, minutes: int) -> int:
        """The least `maximum_minutes` that the panel takes for so many expected minutes; 0 if it takes any."""
        return 0

    def said_once(self, config: "StudyConfig", query: Mapping[str, str | Sequence[str]]) -> Mapping[str, str]:
        """The parameters of an address, each with its value. Of any other name the last value counts, as in a form.

        Args:
            query: the value of each parameter, or its values in their order.

        Raises:
            EntryRefused: it names two different persons, studies or submissions, or two proofs: nobody can say which of
                them was meant, and the wrong one would take part, or be paid.
        """
        all_values = {name: (some,) if isinstance(some, str) else some for name, some in query.items()}
        values = {name: some[-1] for name, some in all_values.items() if some}
        own = (*self.parameter_names(config).values(), *self.proof_names(config), self.token_name(config))
        for name in own:
            different = {value.strip() for value in all_values.get(name, ())} - {""}
            if len(different) > 1:
                raise EntryRefused(
                    _(
                        "The link is not right: it names two different values of %(name)s. "
                        "Please start again from the page on which you found this study."
                    )
                    % {"name": name},
                    code="bad_panel_ids",
                    status=400,
                )
            if different:
                (values[name],) = different
        return values

    def recognise(self, study: "Study", query: Mapping[str, str]) -> PanelIds | None:
        """Who the person is, read from the address; None if it has none of the panel's parameters. Writes nothing.

        Raises:
            EntryRefused: a parameter is missing, still a placeholder, or not an id.
        """
        names = self.parameter_names(study.config)
        ids = {what: query.get(name, "").strip() for what, name in names.items()}
        if not any(ids.values()):
            return None
        for what, value in ids.items():
            name = names[what]
            # A broken link gives everybody the same word in place of an id, and they would all count as one person.
            unfilled = NOT_FILLED_IN.fullmatch(value) or value.lower() == name.lower()
            if unfilled or not self.id_pattern.match(value):
                raise EntryRefused(
                    _(
                        "The link is incomplete: %(name)s is missing or was not filled in. "
                        "Please start again from the page on which you found this study."
                    )
                    % {"name": name},
                    code="bad_panel_ids",
                    status=400,
                )
        return PanelIds(self.name, ids["person"], ids.get("study", ""), ids.get("submission", ""))

    def how_to_enter(self) -> str:
        """What the page says to people whose address has no parameters."""
        return _("This study cannot be opened by this address alone. Please start from the page on which you found it.")

    def verdict(self, study: "Study", ids: PanelIds, *, query: Mapping[str, str], host: str) -> Verdict:
        """Whether the panel sent this person with this submission to this host, as the address itself shows. The person
        waits for the answer.

        Where the study's entry is signed (`panel.signed_entry`), SENT means that the signature is valid now. Such an
        address gives its person's sitting back, too.

        Args:
            query: all parameters of the address that the person came with.
            host: ours, as the browser named it.
        """
        return Verdict.NOT_KNOWN

    def can_look_up(self) -> bool:
        """Whether `look_up` can be called: there is an API, and every setting for it is there."""
        return False

    def look_up(self, study: "Study", ids: PanelIds) -> Verdict | LookedUp:
        """Ask the panel's API whether it sent this person. The person waits: ask once, with a short timeout.

        Called where `verdict` does not know, within a budget by address and in all. What is answered is kept for some
        minutes. After several failures nobody is asked for a while.

        Raises:
            PanelError: the panel could not be asked. The person reads when to try again.
        """
        return Verdict.NOT_KNOWN

    def admit(self, study: "Study", ids: PanelIds, *, now: datetime) -> None:
        """Called once when a person begins, in the same transaction and under the stage's lock. Do not call the panel's
        API here.

        Raises:
            EntryRefused: the person may not begin. Nothing is stored.
        """

    # When a person leaves

    def closing_address(self, study: "Study", *, outcome: str, code: str, ids: PanelIds | None) -> str:
        """The address at the panel that a person is sent to; empty if there is none. Called when the person leaves, on
        the server alone. The host is always the study file's.

        Args:
            ids: those that the person came with; None where they are not known any more.
        """
        return study.config.panel.address_after(outcome, code)

    # Later waves

    def refuse_invitations(self, study: "Study") -> None:
        """
        Raises:
            PanelCannot: it has no way of inviting people again.
        """
        if type(self).invite is Panel.invite:
            raise PanelCannot(
                f"{self.name} cannot invite people again from here: invite them on the panel's own pages; "
                f"reconcile {study.slug} --out FILE.csv --with-panel-ids lists who finished"
            )

    def invite(
        self,
        stage: "Stage",
        people: Sequence[Invitee],
        *,
        root: str = "",
        client: PanelClient | None = None,
    ) -> Invitations:
        """Invite people to the stage's wave. Safe to repeat: who was invited is not invited a second time.

        Args:
            root: where people reach this server, for a panel that invites by links.
            client: open, for a panel that is asked.

        Raises:
            PanelCannot: it has no way of doing so.
        """
        self.refuse_invitations(stage.study)
        return Invitations(0)

    def own_group(self, config: "StudyConfig") -> str:
        """The name of a group of those who have begun in the study, where its file names none; empty if the panel
        keeps none by itself."""
        return ""

    def invited_group(self, posting: "Posting") -> str:
        """The name of the group of those who are invited to the posting's wave; empty if it keeps none."""
        return ""

    def returning_queries(
        self, study: "Study", people: Sequence[PanelIds], *, root: str
    ) -> Sequence[Mapping[str, str]]:
        """The parameters with which simulated people come back for a later wave, by the ids of wave 1."""
        names = self.parameter_names(study.config)
        return [
            {
                name: ids.person if what == "person" else secrets.token_hex(12)
                for what, name in names.items()
                if what in ("person", "study", "submission")
            }
            for ids in people
        ]

    # What its words mean

    def mark(self, posting: "Posting") -> str:
        """What a draft of this posting bears at the panel (`PostingAtPanel.mark`); empty if the panel has no place for
        it."""
        return ""

    def submission_status(self, text: str) -> SubmissionStatus:
        """What the panel's own text for a submission's status means."""
        return SubmissionStatus.UNKNOWN

    def posting_state(self, text: str) -> PostingState:
        """What the panel's own text for a posting's state means."""
        return PostingState.UNKNOWN

    # For trials

    def simulated_queries(self, study: "Study", *, count: int, root: str) -> Sequence[Mapping[str, str]] | None:
        """The parameters in the addresses of `count` simulated people; None if made-up ids work.

        Args:
            root: scheme and host of this server.
        """
        return None


class _Missing(Panel):
    """Replaces a panel that cannot be used. Its studies admit nobody; people who have begun can finish."""

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
        PanelUnknown: there is none, or it cannot be used. The message says why, and which panels there are.
    """
    try:
        return _panels.get(name)
    except LookupError as exc:
        raise PanelUnknown(str(exc)) from None


def find(name: str) -> Panel:
    """The panel of that name. If it cannot be used, a replacement whose `problem` says why: pages still show what is
    stored of its studies."""
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
    """Search the installed packages for panels again."""
    _panels.look_again()
