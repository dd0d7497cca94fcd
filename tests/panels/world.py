"""A posted study and people at it, made by the services and the fake."""

from typing import Any

from survey.contracts.panels import PanelIds
from survey.models import Posting, Sitting, Study, Submission
from survey.panels import postings
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting
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
