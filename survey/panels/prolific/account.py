"""Prolific's API behind the contract: translates our calls into Prolific's words, and its answers into ours."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Self

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from survey.contracts.panel_api import whole_number
from survey.contracts.panels import (
    Bonus,
    Demographics,
    Event,
    EventSubject,
    FeeRates,
    PanelClient,
    PanelError,
    PanelRefused,
    PanelRehearsal,
    PanelUnreachable,
    PayAdvice,
    PostingAtPanel,
    PostingCost,
    PreparedBonuses,
    ReturnReason,
    SubmissionAtPanel,
    Wallet,
)
from survey.figures.words import date_and_time
from survey.models import Posting

from . import events
from .client import NOT_CONFIGURED, ProlificClient, is_configured, open_client
from .drafts import FACTS, PAYS_SCREEN_OUTS, draft_body
from .statuses import in_one_spelling

# The panel's own reasons where it has one; any other text is shown as it is.
# https://docs.prolific.com/api-reference/submissions/request-submission-return
RETURN_REASONS = {
    ReturnReason.NOT_FINISHED: "Did not finish study.",
    ReturnReason.NO_CONSENT: "Withdrew consent.",
    ReturnReason.FAILED_CHECKS: "The questions about the instructions were not answered correctly.",
    ReturnReason.STUDY_FULL: "All places of the study were taken.",
    ReturnReason.SCREENED_OUT: "This study looks for people in another situation.",
}
APPROVED, REJECTED = "APPROVED", "REJECTED"
# Rates are learnt from the cost of so many cents: a small sum would leave only a rounded part of them.
LEARNT_FROM = (10_000, 1000)  # reward, places
PEOPLE_AT_ONCE = 500
AT_THE_SAME_TIME = timedelta(minutes=1)
COST_PARTS = ("rewards", "fees", "tax", "rep_sample_fees", "rep_sample_tax")  # Of what `/cost/` says.
NO_WORKSPACE = "HUNCH_PROLIFIC_WORKSPACE is not set: without it Prolific cannot be asked for its balance and pay"
# The columns of a demographic export that are not facts about a person.
SUBMISSION_COLUMN, PERSON_COLUMN = "submission id", "participant id"
NO_FACTS = frozenset(
    (
        *(SUBMISSION_COLUMN, PERSON_COLUMN, "status", "custom study tncs accepted at", "started at", "completed at"),
        *("reviewed at", "archived at", "time taken", "completion code", "total approvals"),
    )
)


class ProlificAccount(PanelClient):
    """The account that the settings name.

    Args:
        api: its REST API.
    """

    bonuses_at_once = 200
    approvals_at_once = 1000
    rejection_categories = (
        "TOO_QUICKLY",
        "TOO_SLOWLY",
        "FAILED_INSTRUCTIONS",
        "INCOMP_LONGITUDINAL",
        "FAILED_CHECK",
        "LOW_EFFORT",
        "MALINGERING",
        "NO_CODE",
        "BAD_CODE",
        "NO_DATA",
        "UNSUPP_DEVICE",
        "OTHER",
    )
    shortest_reason = 100
    attention_category = "FAILED_CHECK"

    def __init__(self, api: ProlificClient) -> None:
        self.api = api

    @classmethod
    def missing_setting(cls) -> str:
        return "" if is_configured() else NOT_CONFIGURED

    @classmethod
    def open(cls) -> Self:
        return cls(open_client())

    def close(self) -> None:
        self.api.close()

    # Postings

    def compose(self, posting: Posting, *, address: str) -> dict[str, Any]:
        return draft_body(posting, address=address)

    def facts(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        return {name: sent[name] for name in FACTS if name in sent}

    def drafts(self, internal_name: str) -> Iterator[PostingAtPanel]:
        for study in self.api.studies():
            if study.get("internal_name") == internal_name:
                yield self.posting(str(study.get("id")))  # A list leaves out the codes.

    def draft(self, sent: Mapping[str, Any]) -> PostingAtPanel:
        made = self._read(self.api.create_study(sent))
        if not made.external_id:
            raise PanelError("Prolific: to create the draft: its answer has no id", outcome_is_known=False)
        return made

    def posting(self, external_id: str) -> PostingAtPanel:
        return self._read(self.api.study(external_id), external_id)

    def _read(self, row: Mapping[str, Any], external_id: str = "") -> PostingAtPanel:
        codes = row.get("completion_codes")
        entries = codes if isinstance(codes, list) else []
        return PostingAtPanel(
            external_id=str(row.get("id") or external_id),
            state=str(row.get("status") or ""),
            places=whole_number(row.get("total_available_places")),
            reward=whole_number(row.get("reward")),
            minutes=whole_number(row.get("estimated_completion_time")),
            currency=str(row.get("presentment_currency_code") or row.get("currency_code") or ""),
            mark=str(row.get("metadata") or ""),
            screen_outs=_screen_outs(entries),
            codes=frozenset(str(entry["code"]) for entry in entries if isinstance(entry, Mapping) and "code" in entry),
            facts=self.facts(row),
        )

    def publish(self, external_id: str) -> str:
        return self._move(external_id, "PUBLISH")

    def pause(self, external_id: str) -> str:
        return self._move(external_id, "PAUSE")

    def start(self, external_id: str) -> str:
        return self._move(external_id, "START")

    def stop(self, external_id: str) -> str:
        return self._move(external_id, "STOP")

    def schedule(self, external_id: str, at: datetime) -> str:
        # The documents have the time of a study collection in either place, and name the field of a study only.
        moment = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            made = self.api.transition(external_id, "SCHEDULE_PUBLISH", publish_at=moment)
        except PanelRefused as refusal:
            if "publish_at" not in refusal.message:
                raise
            self.api.set_publish_at(external_id, moment)
            made = self.api.transition(external_id, "SCHEDULE_PUBLISH")
        self._refuse_another_time(external_id, made, at)
        return str(made.get("status") or "")

    def _refuse_another_time(self, external_id: str, made: Mapping[str, Any], at: datetime) -> None:
        """Take a schedule back that is not the one asked for.

        Raises:
            PanelRefused: it is for another time.
        """
        said = _time(made.get("publish_at"))
        if said is None or abs(said - at) < AT_THE_SAME_TIME:
            return
        self._move(external_id, "CANCEL_PUBLISH")
        raise PanelRefused(f"Prolific: to schedule the study: it took {date_and_time(said)} instead; taken back")

    def unschedule(self, external_id: str) -> str:
        return self._move(external_id, "CANCEL_PUBLISH")

    def _move(self, external_id: str, action: str) -> str:
        return str(self.api.transition(external_id, action).get("status") or "")

    def rehearse(self, sent: Mapping[str, Any]) -> PanelRehearsal:
        # Test participants need not fit the study's filters, and no sample is drawn of them.
        left_out = ("filters", "filter_set_id", "study_type")
        draft = self.draft({name: value for name, value in sent.items() if name not in left_out})
        made = self.api.test_study(draft.external_id)
        if not made.get("study_id"):
            raise PanelError("Prolific: to make a test study: its answer has no id", outcome_is_known=False)
        return PanelRehearsal(str(made["study_id"]), str(made.get("study_url") or ""))

    def recruitment_hours(self, external_id: str) -> float:
        hours = self.api.recruitment_time(external_id).get("precise_recruitment_time_hours")
        if not isinstance(hours, int | float):
            raise PanelUnreachable("Prolific: to predict the time of recruiting: its answer holds no number")
        return float(hours)

    # What it costs

    def fees(self, external_id: str = "") -> FeeRates:
        fixed = 0
        if external_id:
            rewards = _table(self.api.study_cost(external_id, projected=True).get("rewards"))
            fixed = sum(_cents(rewards.get(name)) for name in ("rep_sample_fees", "rep_sample_tax"))
        reward, places = LEARNT_FROM
        people, quote = reward * places, self.api.cost_of(reward, places)
        # The total alone is documented; it has fee and VAT in one number. The parts count where they add up to it.
        total = _read_cents(quote.get("total_cost"), "total_cost", "calculate the cost")
        if total < people:
            raise PanelUnreachable("Prolific: to calculate the cost: its total is less than the rewards")
        fees, vat = _cents(quote.get("fees")), _cents(quote.get("vat"))
        if abs(people + fees + vat - total) > 1:
            return FeeRates(_hundredths(total - people, people), 0, fixed)
        return FeeRates(_hundredths(fees, people), _hundredths(vat, fees), fixed)

    def spent(self, external_id: str) -> PostingCost:
        response = self.api.study_cost(external_id)
        parts = [_table(response.get(name)) for name in ("rewards", "bonuses")]
        amounts = [row for part in parts for row in part.values() if isinstance(row, Mapping)]
        currencies = {str(row["currency"]) for row in amounts if row.get("currency")}
        # A part that is not named costs nothing yet. One that nobody here knows would make the sum wrong.
        if len(currencies) > 1 or not response.keys() & {"rewards", "bonuses"}:
            raise PanelUnreachable("Prolific: to read the cost: its answer cannot be added up")
        sums = [
            {name: _read_cents(value, name, "read the cost") for name, value in part.items() if value is not None}
            for part in parts
        ]
        if strange := sorted(name for part in sums for name, cents in part.items() if cents and name not in COST_PARTS):
            raise PanelUnreachable(f"Prolific: to read the cost: it has a part {strange[0]!r} that is not known here")
        return PostingCost(
            rewards=sums[0].get("rewards", 0),
            bonuses=sums[1].get("rewards", 0),
            fees=sum(cents for part in sums for name, cents in part.items() if name != "rewards"),
            currency=next(iter(currencies), ""),
        )

    def wallet(self) -> Wallet:
        response = self.api.balance(_workspace())
        balance = _read_cents(response.get("available_balance"), "available_balance", "read the balance")
        return Wallet(balance, str(response.get("currency_code") or ""))

    def pay_advice(self, currency: str) -> PayAdvice:
        rows = self.api.reward_recommendations(_workspace(), currency)
        if not rows:
            raise PanelUnreachable("Prolific: to read the recommended reward: its answer holds none")
        newest, what = rows[0], "read the recommended reward"
        least, good = "min_reward_per_hour", "recommended_reward_per_hour"
        return PayAdvice(
            minimum=_read_cents(newest.get(least), least, what),
            recommended=_read_cents(newest.get(good), good, what),
            currency=str(newest.get("currency") or currency),
        )

    # People

    def group(self, name: str, *, project: str = "") -> str:
        if not project and not settings.HUNCH_PROLIFIC_WORKSPACE:
            raise PanelRefused("panel.participant_group: name the project too, or set HUNCH_PROLIFIC_WORKSPACE")
        place = {"project_id": project} if project else {"workspace_id": _workspace()}
        for row in self.api.groups(place):
            if row.get("name") == name and row.get("id"):
                return str(row["id"])
        made = str(self.api.create_group(name, place).get("id") or "")
        if not made:
            raise PanelError("Prolific: to make a participant group: its answer has no id")
        return made

    def add_to_group(self, group: str, people: Sequence[str]) -> None:
        for start in range(0, len(people), PEOPLE_AT_ONCE):
            self.api.add_to_group(group, people[start : start + PEOPLE_AT_ONCE])

    def remove_from_group(self, group: str, people: Sequence[str]) -> None:
        for start in range(0, len(people), PEOPLE_AT_ONCE):
            self.api.remove_from_group(group, people[start : start + PEOPLE_AT_ONCE])

    def demographics(self, external_id: str) -> Iterator[Demographics]:
        for row in csv.DictReader(io.StringIO(self.api.demographics(external_id).lstrip("\ufeff"))):
            ids = {name.lower(): value or "" for name, value in row.items() if name}
            if missing := [name for name in (SUBMISSION_COLUMN, PERSON_COLUMN) if name not in ids]:
                raise PanelUnreachable(f"Prolific: to export demographic data: it has no column {missing[0]!r}")
            facts = {name: value or "" for name, value in row.items() if name and name.lower() not in NO_FACTS}
            yield Demographics(ids[SUBMISSION_COLUMN], ids[PERSON_COLUMN], facts)

    def set_places(self, external_id: str, places: int) -> str:
        return str(self.api.set_places(external_id, places).get("status") or "")

    # Submissions

    def submissions(self, external_id: str) -> Iterable[SubmissionAtPanel]:
        for row in self.api.submissions(external_id):
            if row.get("id"):
                yield _submission(row, external_id)

    def submission(self, submission: str) -> SubmissionAtPanel:
        return _submission({"id": submission, **self.api.submission(submission)}, "")

    def approve(self, submission: str) -> str:
        return in_one_spelling(self.api.approve(submission).get("status") or APPROVED)

    def approve_all(self, submissions: Sequence[str]) -> None:
        self.api.approve_all(submissions)

    def reject(self, submission: str, *, category: str, message: str) -> str:
        row = self.api.reject(submission, category=category, message=message)
        return in_one_spelling(row.get("status") or REJECTED)

    def ask_to_return(self, submission: str, why: ReturnReason) -> None:
        self.api.request_return(submission, [RETURN_REASONS[why]])

    # Bonuses

    def prepare_bonuses(self, external_id: str, bonuses: Sequence[Bonus]) -> PreparedBonuses:
        amounts = [(bonuse.submission, f"{Decimal(bonuse.cents) / 100:.2f}") for bonuse in bonuses]
        made = self.api.set_up_bonuses(external_id, amounts)
        prepared = str(made.get("id") or "")
        if not prepared:
            raise PanelError("Prolific: to set up the bonuses: its answer has no id")
        asked, amount = sum(bonuse.cents for bonuse in bonuses), made.get("amount")
        if amount is not None and _cents(amount) != asked:
            raise PanelRefused(f"Prolific: to set up the bonuses: {asked} cents were asked for, and it has {amount}")
        total = made.get("total_amount")
        if total is None:
            return PreparedBonuses(prepared, None)
        cents = _read_cents(total, "total_amount", "set up the bonuses")
        if cents < asked:
            raise PanelRefused(f"Prolific: to set up the bonuses: {asked} cents were asked for, and {cents} in total")
        return PreparedBonuses(prepared, cents - asked)

    def pay_bonuses(self, external_id: str, bonuses: Sequence[Bonus], *, prepared: str, key: str) -> None:
        self.api.pay_bonuses(prepared)

    # Events

    @classmethod
    def read_event(cls, *, headers: Mapping[str, str], body: bytes, now: float) -> Event:
        return events.read_event(headers=headers, body=body, now=now)

    @classmethod
    def event_subject(cls, kind: str) -> EventSubject:
        return events.subject_of(kind)


def _workspace() -> str:
    """
    Raises:
        PanelRefused: it is not set.
    """
    if not settings.HUNCH_PROLIFIC_WORKSPACE:
        raise PanelRefused(NO_WORKSPACE)
    return str(settings.HUNCH_PROLIFIC_WORKSPACE)


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _read_cents(value: Any, name: str, what: str) -> int:
    """Whole cents of a number, or of an amount with its currency, which must be one.

    Raises:
        PanelUnreachable: it is missing, or no number.
    """
    amount = value.get("amount") if isinstance(value, Mapping) else value
    try:
        if isinstance(amount, int | float | str) and not isinstance(amount, bool) and Decimal(str(amount)).is_finite():
            return _cents(amount)
    except ArithmeticError:
        pass
    raise PanelUnreachable(f"Prolific: to {what}: its answer holds no {name} that can be read")


def _cents(value: Any) -> int:
    """Whole cents of a number, or of an amount with its currency; half a cent counts as a whole one."""
    amount = value.get("amount") if isinstance(value, Mapping) else value
    if isinstance(amount, bool) or not isinstance(amount, int | float | str):
        return 0
    try:
        return int(Decimal(str(amount)).quantize(Decimal(1), rounding=ROUND_HALF_UP))
    except ArithmeticError:
        return 0


def _hundredths(part: int, whole: int) -> int:
    """A share in hundredths of a percent."""
    return (2 * part * 10_000 + whole) // (2 * whole) if whole else 0


def _screen_outs(codes: Sequence[Any]) -> int | None:
    """What the codes may pay to people who are screened out; None if no code pays them."""
    actions = [action for entry in codes if isinstance(entry, Mapping) for action in entry.get("actions") or ()]
    screen_out_actions = [
        action for action in actions if isinstance(action, Mapping) and action.get("action") == PAYS_SCREEN_OUTS
    ]
    if not screen_out_actions:
        return None
    return sum(
        (whole_number(action.get("fixed_screen_out_reward")) or 0) * (whole_number(action.get("slots")) or 0)
        for action in screen_out_actions
    )


def _submission(row: Mapping[str, Any], external_id: str) -> SubmissionAtPanel:
    code = str(row.get("study_code") or row.get("entered_code") or "")
    return SubmissionAtPanel(
        submission=str(row["id"]),
        # A list calls it participant_id, a single submission participant.
        person=str(row.get("participant_id") or row.get("participant") or ""),
        posting=external_id or str(row.get("study_id") or ""),
        status=in_one_spelling(row.get("status")),
        code=code,
        parent=str(row.get("parent_study_id") or ""),
        asked_back_at=_time(row.get("return_requested")),
        started_at=_time(row.get("started_at")),
        completed_at=_time(row.get("completed_at")),
        seconds=whole_number(row.get("time_taken")),
    )


def _time(text: Any) -> datetime | None:
    try:
        moment = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is None or timezone.is_aware(moment) else timezone.make_aware(moment)
