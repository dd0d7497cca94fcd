"""A posted study and people at it, made by the services and the fake."""

from typing import Any

from django.utils import timezone

from survey.contracts.panels import PanelIds
from survey.models import Posting, Sitting, Study, Submission
from survey.panels import postings
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.identities import seal, submission_hash
from tests import cast

PAY = {"reward": 100, "spending_cap": 10_000}


def posted(*, publish: bool = True, sittings: int = 6, **panel: Any) -> Posting:
    """An open study, posted at the fake."""
    study = cast.open_study(
        panel={**cast.PROLIFIC, **PAY, **panel}, sitting={"items": 1}, stages=[{"sittings": sittings}]
    )
    posting = postings.draft(study.stages.get(index=1), root="http://testserver")
    return postings.publish(posting) if publish else posting


def arrives(fake: FakeProlific, posting: Posting) -> dict[str, Any]:
    place = fake.take_place(posting.external_id)
    assert place is not None
    return place


def ids_of(place: dict[str, Any]) -> PanelIds:
    return PanelIds("prolific", place["participant_id"], place["study_id"], place["id"])


def begins(study: Study, place: dict[str, Any], *, until: str = "end", fails: bool = False) -> Sitting:
    """The person's sitting, walked to a step; with `fails` through both attempts at the checks."""
    sitting = begin_sitting(study=study, ids=ids_of(place))
    if fails:
        step = cast.walk(sitting, until="checks")
        for _ in range(2):
            step = advance(sitting=sitting, step=step.number, data=cast.wrong_answers_for(step))
    else:
        cast.walk(sitting, until=until)
    sitting.refresh_from_db()
    return sitting


def row_of(posting: Posting, sitting: Sitting | None = None) -> Submission:
    """The submission's row after the panel was read."""
    read_posting(posting)
    rows = posting.submissions.select_related("posting__study")
    return rows.get(respondent=sitting.respondent) if sitting else rows.get()


# Rows alone, where no panel needs to be asked


def stored_posting(study: Study, *, index: int = 1, **columns: Any) -> Posting:
    stage = study.stages.select_related("study").get(index=index)
    number = Posting.objects.count() + 1
    fields = {
        "wave": stage.wave, "internal_name": f"posting {number}", "external_id": f"at-panel-{number}",
        "state": "ACTIVE", "reward": 100, "currency": "USD", "places": 6, "expected_minutes": 3,
        "published_at": timezone.now(),
    }  # fmt: skip
    return Posting.objects.create(study=study, stage=stage, panel="prolific", **{**fields, **columns})


def stored_submission(posting: Posting, sitting: Sitting | None, status: str, **columns: Any) -> Submission:
    ids = PanelIds("prolific", "person", posting.external_id, f"submission-{Submission.objects.count()}")
    fields = {
        "respondent": sitting.respondent if sitting else None,
        "submission_hash": submission_hash(posting.study, ids),
        "ids_encrypted": seal(ids).encode(),
        "read_at": timezone.now(),
    }
    return Submission.objects.create(posting=posting, status=status, **{**fields, **columns})


def sits(study: Study, state: str = "complete", *, name: str = "", **columns: Any) -> Sitting:
    """A sitting that was begun and then only set to that state."""
    ids = PanelIds("prolific", name or f"person-{Sitting.objects.count()}", "s", f"x{Sitting.objects.count()}")
    sitting = begin_sitting(study=study, ids=ids)
    ended = None if state == "live" else timezone.now()
    Sitting.objects.filter(pk=sitting.pk).update(**{"state": state, "ended_at": ended, **columns})
    sitting.refresh_from_db()
    return sitting
