"""2. Everything that one person saw and did on one page, and rejecting them from there."""

import pytest
from django.test import Client

from survey.models import AuditEntry
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from tests.panels.world import arrives, begins, posted

from .pages import read, send

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]
REASON = "Every answer is the same number, and each was given faster than the question can be read. " * 2


def test_a_researcher_reads_the_sitting_and_rejects_the_person_with_words(
    fake: FakeProlific, browser_of: Client
) -> None:
    posting = posted()
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    replay = f"/admin/survey/sitting/{sitting.pk}/replay/"
    assert replay in read(browser_of, f"/admin/survey/sitting/{sitting.pk}/change/")
    body = read(browser_of, replay)
    places = [
        body.index(words) for words in ("consented to version", "Which one?", "item 1, prior", "Your age", "ended")
    ]
    assert places == sorted(places) and "60 %" in body
    assert place["participant_id"] not in body and place["id"] not in body
    ask = f"/admin/survey/sitting/{sitting.pk}/do/reject/"
    assert "held against them" in read(browser_of, ask)
    assert "The submission is rejected." in send(browser_of, ask, category="LOW_EFFORT", message=REASON)
    assert fake.submissions[place["id"]]["status"] == "REJECTED"
    assert "rejected by us: LOW_EFFORT" in read(browser_of, replay)
    assert AuditEntry.objects.filter(action="reject_submission").exists()
