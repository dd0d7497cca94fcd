"""The replay of a sitting, and what is done about its person from there: approve, pay, ask for a return, reject."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from survey.live.replay import BLIND, CHANGED, replay
from survey.models import AuditEntry, Posting, Question, QuestionReport, Response, Sitting
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from survey.services.base.groups import ensure_researchers_group
from survey.services.sittings.withdrawal import withdraw
from tests import cast

from .test_pages import somebody
from .world import arrives, begins, posted

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MAY_ALL = ("pay_people", "recruit", "view_posting", "view_sitting", "view_study", "view_submission")
REASON = "You gave the same answer to every question, and answered faster than anybody can read. " * 2


@pytest.fixture
def posting(fake: FakeProlific) -> Posting:
    return posted()


def sitting_of(study: Any) -> Sitting:
    return Sitting.objects.select_related("stage__study__bank", "respondent").get(stage__study=study)


def handed_in(posting: Posting, fake: FakeProlific) -> Sitting:
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    return sitting


def shown(client: Client, sitting: Sitting) -> str:
    response = client.get(f"/admin/survey/sitting/{sitting.pk}/replay/")
    assert response.status_code == 200
    return response.content.decode()


def act(client: Client, sitting: Sitting, name: str, **data: str) -> str:
    return client.post(f"/admin/survey/sitting/{sitting.pk}/do/{name}/", data, follow=True).content.decode()


# What was shown and answered


def test_every_page_stands_in_its_order_with_what_was_shown_and_answered() -> None:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    sitting_of(study).screen_timings.filter(kind="instructions").update(server_ms=2500)
    replayed = replay(sitting_of(study))
    assert [page.title for page in replayed.pages] == [
        *("arrived", "consented to version 2", "instructions", "checks, attempt 1"),
        *(f"item {number}, {screen}" for number in (1, 2, 3) for screen in ("prior", "posterior")),
        *("form about_you", "debriefing", "ended: complete"),
    ]
    by_title = {page.title: page for page in replayed.pages}
    assert by_title["checks, attempt 1"].answers == [("Which one?", "right one"), ("And here?", "right")]
    assert ("Your age", "30") in by_title["form about_you"].answers
    assert by_title["instructions"].seconds == 2.5
    first = sitting_of(study).assignments.get(position=1).slot.item.pair
    assert any(first.target.plain in text for text in by_title["item 1, prior"].texts)
    assert "60 %" in by_title["item 1, prior"].answers[0][1] and "70 %" in by_title["item 1, posterior"].answers[0][1]
    assert not any(page.note or page.failed for page in replayed.pages)


def test_times_are_in_seconds_and_what_went_to_others_is_said() -> None:
    study = cast.open_stage().study
    visitor = cast.Visitor(study).to_items()
    sitting = visitor.sitting
    visitor.answer()
    Response.objects.filter(assignment__sitting=sitting).update(server_ms=1500)
    visitor.expire()
    pages = replay(sitting_of(study)).pages
    seconds = {page.title: page.seconds for page in pages}
    assert (seconds["item 1, prior"], seconds["arrived"]) == (1.5, None)
    given_back = [page.title for page in pages if page.title.startswith("item") and page.seconds is None]
    assert given_back == ["item 2: released unanswered", "item 3: released unanswered"]
    assert any(page.title == "was silent for too long: the sitting expired" for page in pages)


def test_a_page_that_is_not_the_one_that_was_shown_says_so() -> None:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    target = sitting_of(study).assignments.get(position=1).slot.item.pair.target
    Question.objects.filter(pk=target.pk).update(text="Another question?")
    pages = replay(sitting_of(study)).pages
    assert {page.title for page in pages if page.note == CHANGED} >= {"item 1, prior", "item 1, posterior"}


def test_failed_checks_pages_that_were_left_and_remarks_stand_between_the_pages() -> None:
    study = cast.open_study()
    sitting = cast.begin(study)
    step = cast.walk(sitting, until="checks")
    cast.advance(sitting=sitting, step=step.number, data=cast.wrong_answers_for(step))
    cast.walk(sitting, until="item")
    answer = sitting.assignments.get(position=1)
    QuestionReport.objects.create(sitting=sitting, assignment=answer, screen="prior", text="UNCLEAR", at=timezone.now())
    pages = {page.title: page for page in replay(sitting_of(study)).pages}
    assert pages["checks, attempt 1"].failed and not pages["checks, attempt 2"].failed
    assert pages["wrote about item 1, prior"].answers == [("", "UNCLEAR")]


def test_nothing_is_left_to_replay_after_a_withdrawal() -> None:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    withdraw(respondent=sitting_of(study).respondent, now=timezone.now())
    replayed = replay(sitting_of(study))
    assert all(not page.answers for page in replayed.pages)
    assert "withdrew all answers, which are deleted" in [page.title for page in replayed.pages]


def test_a_blind_study_shows_the_questions_alone() -> None:
    condition = {"factor": "framing", "levels": ["plain", "warm"], "texts": {"warm": {"lead": "A WARM WELCOME"}}}
    blocks = [dict(block) for block in cast.BASE["blocks"]]
    blocks[1]["name"] = "lead"
    study = cast.open_study(blind=True, conditions=[condition], blocks=blocks)
    for _person in range(2):
        cast.walk(cast.begin(study))
    for sitting in Sitting.objects.select_related("stage__study__bank", "respondent"):
        replayed = replay(sitting)
        assert replayed.levels == {} and "WARM" not in str(replayed.pages)
        assert any(page.note == BLIND for page in replayed.pages)


def test_a_viewer_and_a_stranger_read_nobodys_answers(django_user_model: Any) -> None:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    client = Client()
    client.force_login(user)
    address = f"/admin/survey/sitting/{sitting_of(study).pk}/replay/"
    assert client.get(address).status_code in (403, 404)
    cast.join(user, study, "viewer", may_spend=False)
    assert client.get(address).status_code in (403, 404)


# The person's pay


def test_one_person_is_approved_by_who_types_the_reward(posting: Posting, fake: FakeProlific) -> None:
    sitting, other = handed_in(posting, fake), handed_in(posting, fake)
    client = somebody(*MAY_ALL)
    assert "finished" in shown(client, sitting) and "Approve" in shown(client, sitting)
    assert "Type the sum as it is now: 1.00" in act(client, sitting, "approve", sum="2.00")
    assert "The submission is approved." in act(client, sitting, "approve", sum="1.00")
    statuses = dict(posting.submissions.values_list("respondent", "status"))
    assert statuses[sitting.respondent_id] == "APPROVED" and statuses[other.respondent_id] != "APPROVED"


def test_one_person_is_paid_what_is_owed_once(posting: Posting, fake: FakeProlific) -> None:
    late = []
    for _person in range(2):
        place = arrives(fake, posting)
        fake.time_out(place["id"])
        late.append(begins(posting.study, place))
    read_posting(posting)
    client = somebody(*MAY_ALL)
    assert "finished after the panel&#x27;s time was over" in shown(client, late[0])
    assert "What was owed is paid." in act(client, late[0], "pay", sum="1.00")
    assert len(fake.paid) == 1
    assert "Pay what is owed" not in shown(client, late[0]) and "Pay what is owed" in shown(client, late[1])
    act(client, late[0], "pay", sum="1.00")
    assert len(fake.paid) == 1


def test_one_person_is_asked_for_a_return_and_one_is_rejected_with_words(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    asked = begins(posting.study, place, until="item")
    fake.submit(place["id"], None)
    rejected = handed_in(posting, fake)
    client = somebody(*MAY_ALL)
    assert "asked to return" in act(client, asked, "ask-back")
    row = posting.submissions.get(respondent=asked.respondent)
    assert row.asked_back_at is not None
    assert posting.submissions.get(respondent=rejected.respondent).asked_back_at is None
    short = act(client, rejected, "reject", category="LOW_EFFORT", message="No.")
    assert "the panel asks for" in short and "No.</textarea>" in short, "nothing that was typed is lost"
    assert "The submission is rejected." in act(client, rejected, "reject", category="LOW_EFFORT", message=REASON)
    assert posting.submissions.get(respondent=rejected.respondent).rejected_at is not None
    assert AuditEntry.objects.filter(action="reject_submission").count() == 1


def test_who_may_not_spend_can_do_neither(posting: Posting, fake: FakeProlific) -> None:
    sitting = handed_in(posting, fake)
    user = User.objects.create_user("analyst", is_staff=True)
    user.groups.add(ensure_researchers_group())
    cast.join(user, posting.study, "analyst", may_spend=False)
    client = Client()
    client.force_login(user)
    assert "Approve" not in shown(client, sitting)
    for name in ("approve", "pay", "ask-back", "reject"):
        assert client.post(f"/admin/survey/sitting/{sitting.pk}/do/{name}/", {"sum": "1.00"}).status_code in (403, 404)
    assert posting.submissions.get().status != "APPROVED"
