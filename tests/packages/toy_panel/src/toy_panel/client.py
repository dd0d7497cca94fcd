"""Hunch's calls in the toy's words, and the toy's answers in Hunch's."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from survey.contracts.panels import (
    Bonus,
    Event,
    EventRefused,
    EventSubject,
    PanelClient,
    PanelMissing,
    PanelUnreachable,
    PostingAtPanel,
    ReturnReason,
    SubmissionAtPanel,
)
from survey.exceptions import HunchError
from survey.models import Posting

from . import server


class ToyClient(PanelClient):
    """It can do most calls. It cannot stop a posting for good, nor reject anybody."""

    bonuses_at_once = 2

    @classmethod
    def missing_setting(cls) -> str:
        return "" if os.environ.get("TOY_PANEL_TOKEN") else "TOY_PANEL_TOKEN is not set: without it nobody is asked"

    @classmethod
    def open(cls) -> Self:
        if missing := cls.missing_setting():
            raise HunchError(missing)
        return cls()

    def close(self) -> None:
        """Nothing was opened."""

    def compose(self, posting: Posting, *, address: str) -> dict[str, Any]:
        config = posting.study.config
        return {
            "label": posting.internal_name,
            "crew": config.panel.options["crew"],
            "door": address,
            "seats": posting.places,
            "coins": posting.reward,
            "words": {code.outcome: code.code for code in posting.study.codes.all()},
        }

    def facts(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        return {name: sent[name] for name in ("crew", "seats", "coins")}

    def drafts(self, internal_name: str) -> Iterable[PostingAtPanel]:
        return [_posting(job) for job in server.SERVER.jobs.values() if job["label"] == internal_name]

    def draft(self, sent: Mapping[str, Any]) -> PostingAtPanel:
        return _posting(server.SERVER.sketch(dict(sent)))

    def posting(self, external_id: str) -> PostingAtPanel:
        return _posting(_known(server.SERVER.job, external_id))

    def publish(self, external_id: str) -> str:
        return server.SERVER.set_mood(external_id, "swinging")

    def pause(self, external_id: str) -> str:
        return server.SERVER.set_mood(external_id, "resting")

    def start(self, external_id: str) -> str:
        return server.SERVER.set_mood(external_id, "swinging")

    def set_places(self, external_id: str, places: int) -> str:
        job = _known(server.SERVER.job, external_id)
        job["seats"] = places
        return str(job["mood"])

    def submissions(self, external_id: str) -> Iterable[SubmissionAtPanel]:
        return [_submission(ticket) for ticket in server.SERVER.tickets_of(external_id)]

    def submission(self, submission: str) -> SubmissionAtPanel:
        return _submission(_known(server.SERVER.ticket, submission))

    def approve(self, submission: str) -> str:
        _known(server.SERVER.ticket, submission)["mood"] = "thanked"
        return "thanked"

    def ask_to_return(self, submission: str, why: ReturnReason) -> None:
        _known(server.SERVER.ticket, submission)["asked"] = why.value

    def pay_bonuses(self, external_id: str, bonuses: Sequence[Bonus], *, prepared: str, key: str) -> None:
        try:
            server.SERVER.give([(bonus.submission, bonus.cents) for bonus in bonuses], key)
        except server.LineBroke as exc:
            raise PanelUnreachable("toy panel: to pay: no answer", outcome_is_known=False) from exc

    @classmethod
    def read_event(cls, *, headers: Mapping[str, str], body: bytes, now: float) -> Event:
        if headers.get("X-Toy-Secret") != server.SECRET:
            raise EventRefused("The secret is not right.")
        said = json.loads(body)
        return Event(str(said["number"]), said["what"], said["id"], said["who"])

    @classmethod
    def event_subject(cls, kind: str) -> EventSubject:
        return EventSubject.SUBMISSION if kind == "ticket" else EventSubject.NOTHING_OF_OURS


def _known(read: Any, identifier: str) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = read(identifier)
    except server.NoSuchThing as exc:
        raise PanelMissing("toy panel: it knows nothing under this id") from exc
    return entry


def _posting(job: Mapping[str, Any]) -> PostingAtPanel:
    return PostingAtPanel(
        external_id=job["job"],
        state=job["mood"],
        places=job["seats"],
        reward=job["coins"],
        codes=frozenset(job["words"].values()),
        facts={"crew": job["crew"], "seats": job["seats"], "coins": job["coins"]},
    )


def _submission(ticket: Mapping[str, Any]) -> SubmissionAtPanel:
    return SubmissionAtPanel(
        submission=ticket["ticket"],
        person=ticket["who"],
        posting=ticket["job"],
        status=ticket["mood"],
        code=ticket["word"],
    )
