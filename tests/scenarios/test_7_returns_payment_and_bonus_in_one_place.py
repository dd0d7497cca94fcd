"""7. What a person is owed and why, and paying it, on one page."""

import pytest
from django.test import Client

from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from tests.panels.world import arrives, begins, posted

from .pages import read, send, study_page

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_who_finished_too_late_is_found_on_the_study_page_and_paid_in_one_click(
    fake: FakeProlific, browser_of: Client
) -> None:
    posting = posted()
    place = arrives(fake, posting)
    fake.time_out(place["id"])
    sitting = begins(posting.study, place)
    read_posting(posting)
    assert "1 person is owed 1.00" in read(browser_of, study_page(posting.study))
    replay = f"/admin/survey/sitting/{sitting.pk}/replay/"
    assert "the reward is owed as a bonus" in read(browser_of, replay)
    pay = f"/admin/survey/sitting/{sitting.pk}/do/pay/"
    assert "This moves 1.00" in read(browser_of, pay)
    assert "Type the sum as it is now: 1.00" in send(browser_of, pay, sum="1")
    assert not fake.paid
    assert "What was owed is paid." in send(browser_of, pay, sum="1.00")
    assert len(fake.paid) == 1
    assert "is owed" not in read(browser_of, study_page(posting.study))


def test_who_left_is_asked_for_a_return_and_who_finished_is_approved(fake: FakeProlific, browser_of: Client) -> None:
    posting = posted()
    left, done = arrives(fake, posting), arrives(fake, posting)
    leaver, finisher = begins(posting.study, left, until="item"), begins(posting.study, done)
    for place in (left, done):
        fake.submit(place["id"], posting.study.completion_code("completed") if place is done else None)
    read_posting(posting)
    assert "asked to return" in send(browser_of, f"/admin/survey/sitting/{leaver.pk}/do/ask-back/")
    approve = f"/admin/survey/sitting/{finisher.pk}/do/approve/"
    assert "The submission is approved." in send(browser_of, approve, sum="1.00")
    assert fake.submissions[done["id"]]["status"] == "APPROVED"
