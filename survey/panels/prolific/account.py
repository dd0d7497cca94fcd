"""Prolific's API behind the contract: translates our calls into Prolific's words, and its answers into ours."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Self

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from survey.contracts.panels import (
    Bonus,
    Event,
    EventSubject,
    PanelClient,
    PanelError,
    PostingAtPanel,
    ReturnReason,
    SubmissionAtPanel,
)
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
        for one in self.api.studies():
            if one.get("internal_name") == internal_name:
                yield self.posting(str(one.get("id")))  # A list leaves out the codes.

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
            places=_whole(row.get("total_available_places")),
            reward=_whole(row.get("reward")),
            minutes=_whole(row.get("estimated_completion_time")),
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

    def _move(self, external_id: str, action: str) -> str:
        return str(self.api.transition(external_id, action).get("status") or "")

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

    def prepare_bonuses(self, external_id: str, bonuses: Sequence[Bonus]) -> str:
        amounts = [(one.submission, f"{Decimal(one.cents) / 100:.2f}") for one in bonuses]
        prepared = str(self.api.set_up_bonuses(external_id, amounts).get("id") or "")
        if not prepared:
            raise PanelError("Prolific: to set up the bonuses: its answer has no id")
        return prepared

    def pay_bonuses(self, external_id: str, bonuses: Sequence[Bonus], *, prepared: str, key: str) -> None:
        self.api.pay_bonuses(prepared)

    # Events

    @classmethod
    def read_event(cls, *, headers: Mapping[str, str], body: bytes, now: float) -> Event:
        return events.read_event(headers=headers, body=body, now=now)

    @classmethod
    def event_subject(cls, kind: str) -> EventSubject:
        return events.subject_of(kind)


def _screen_outs(codes: Sequence[Any]) -> int | None:
    """What the codes may pay to people who are screened out; None if no code pays them."""
    actions = [action for entry in codes if isinstance(entry, Mapping) for action in entry.get("actions") or ()]
    found = [action for action in actions if isinstance(action, Mapping) and action.get("action") == PAYS_SCREEN_OUTS]
    if not found:
        return None
    return sum((_whole(one.get("fixed_screen_out_reward")) or 0) * (_whole(one.get("slots")) or 0) for one in found)


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
        seconds=_whole(row.get("time_taken")),
    )


def _time(text: Any) -> datetime | None:
    try:
        found = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is None or timezone.is_aware(found) else timezone.make_aware(found)


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**31 else None
