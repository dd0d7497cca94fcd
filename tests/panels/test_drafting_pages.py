"""A posting from the pages alone: drafted, checked, published, given more places, stopped; and who may do it."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from survey.models import AuditEntry, Posting, StudyMembership
from survey.panels import postings, reconciliation
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from survey.services.stages.lifecycle import pause_stage
from survey.services.studies import test_copies
from tests import cast

from .test_pages import do, page, somebody
from .world import PAY, arrives, begins, posted

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.usefixtures("audit_names_who")]


@pytest.fixture
def study(fake: FakeProlific) -> Any:
    return cast.open_study(panel={**cast.PROLIFIC, **PAY}, stages=[{"sittings": 6}])


def draft(client: Client, study: Any, button: str = "draft", **changes: Any) -> Any:
    fields = {"stage": 1, "places": 4, "reward": 100, "root": "http://testserver", **changes}
    return client.post(f"/admin/survey/posting/draft/{study.pk}/", {**fields, button: "1"}, follow=True)


def test_everything_from_the_draft_to_the_end_is_done_in_the_pages(study: Any, fake: FakeProlific) -> None:
    client = somebody()
    response = client.get(f"/admin/survey/posting/draft/{study.pk}/")
    assert response.context["form"].initial == {"stage": 1, "places": 6, "reward": 100, "root": "http://127.0.0.1:8000"}
    draft(client, study, "check")
    assert not Posting.objects.exists() and not fake.studies
    draft(client, study)
    posting = Posting.objects.get()
    assert (posting.places, posting.reward, posting.published_at) == (4, 100, None)
    assert posting.draft["external_study_url"].startswith("http://testserver/s/cast/")
    body = page(client, posting)
    assert "Before publishing" in body and "no: " not in body
    assert do(client, posting, "do/publish", sum="4.00")[1] == ["Published: the panel shows it to people now."]
    asked = client.post(f"/admin/survey/posting/{posting.pk}/places/", {"more": "3", "check": "1"}).content.decode()
    assert "This moves 3.00 GBP" in asked or "This moves 3.00 USD" in asked
    assert do(client, posting, "places", more="3", add="1", sum="2.00")[1] == []
    posting.refresh_from_db()
    assert posting.places == 4
    assert do(client, posting, "places", more="3", add="1", sum="3.00")[1] == ["It has 7 places now."]
    assert do(client, posting, "do/stop")[0] == 200
    posting.refresh_from_db()
    assert posting.places == 7 and "do/stop/" not in page(client, posting)
    done = set(AuditEntry.objects.filter(via="admin").values_list("action", flat=True))
    assert {"draft_posting", "publish_posting", "add_places", "stop_posting"} <= done


def test_it_is_scheduled_and_taken_back_in_the_pages(study: Any, fake: FakeProlific) -> None:
    client = somebody()
    draft(client, study)
    posting = Posting.objects.get()
    assert "Publish later" in page(client, posting)
    address = f"/admin/survey/posting/{posting.pk}/schedule/"
    assert "4.00 USD count as spent from now on" in client.get(address).content.decode()
    past = client.post(address, {"at": "2020-01-31T09:00", "sum": "4.00"}).content.decode()
    assert "This is past: name a later time." in past
    assert "Type the sum as it is now" in client.post(address, {"at": "2127-01-31T09:00", "sum": "4"}).content.decode()
    assert Posting.objects.get().published_at is None
    said = do(client, posting, "schedule", at="2127-01-31T09:00", sum="4.00")[1]
    assert said == ["The panel shows it to people from 31 January 2127, 09:00 UTC on; it says SCHEDULED now."]
    assert Posting.objects.get().committed == 400
    assert do(client, posting, "do/unschedule")[1] == ["The panel says UNPUBLISHED now."]
    assert Posting.objects.get().committed == 0


def test_the_page_shows_what_it_has_cost_here_and_at_the_panel(study: Any, fake: FakeProlific) -> None:
    fake.fee, fake.vat = Decimal("0.333"), Decimal("0.2")
    posting = postings.publish(postings.draft(cast.stage_of(study), root="http://testserver"))
    place = arrives(fake, posting)
    begins(study, place)
    fake.submit(place["id"], study.completion_code("completed"))
    read_posting(posting)
    reconciliation.approve_finished(posting)
    client = somebody()
    assert "Something was approved or paid since the panel was read" in page(client, posting)
    read_posting(posting)
    body = page(client, posting)
    assert "What it has cost" in body and "The same here and at the panel, to the cent." in body
    assert "8.40 USD, with the panel's fee of 33.3 %, and 20 % VAT on it" in body


def test_what_would_stop_publishing_is_said_before_anything_is_drafted(study: Any) -> None:
    pause_stage(cast.stage_of(study))
    said = draft(somebody(), study, "check", places=500, reward=1000).content.decode()
    assert "no: stage 1 is paused: open it before publishing" in said
    assert "no: panel.spending_cap:" in said
    assert "500 places are offered, and the stage has 6 free" in said
    assert "nobody has gone through its pages in the test copy yet" in said
    assert "Publishing is refused until" in said and not Posting.objects.exists()


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("places", "0", "greater than or equal to 1"),
        ("reward", "x", "Enter a whole number"),
        ("root", "study.example.org/s", "Write scheme and host alone"),
        ("stage", "9", "not one of the available choices"),
    ],
)
def test_a_field_that_cannot_be_used_is_named_and_nothing_is_drafted(
    study: Any, field: str, given: str, message: str
) -> None:
    response = draft(somebody(), study, **{field: given})
    assert message in str(response.context["form"].errors[field]) and not Posting.objects.exists()


def test_what_the_panel_refuses_stands_on_the_page(study: Any, fake: FakeProlific) -> None:
    said = draft(somebody(), study, reward=1).content.decode()
    assert "the panel&#x27;s minimum is" in said and not fake.studies


def test_a_study_of_the_panels_own_pages_is_taken_up(study: Any, fake: FakeProlific) -> None:
    made = postings.draft(cast.stage_of(study), root="http://testserver")
    Posting.objects.all().delete()
    client, here = somebody(), f"/admin/survey/posting/adopt/{study.pk}/"
    unknown = client.post(here, {"stage": "1", "external_id": "nobody-knows-it"})
    assert unknown.context["form"].errors["external_id"]
    client.post(here, {"stage": "1", "external_id": made.external_id})
    assert Posting.objects.get().external_id == made.external_id
    again = client.post(here, {"stage": "1", "external_id": made.external_id}).content.decode()
    assert "is a posting already" in again


def test_each_step_asks_for_its_own_right(study: Any) -> None:
    client = somebody()
    posting = posted_in(study)
    StudyMembership.objects.update(may_spend=False)
    assert draft(client, study).status_code == 200  # An editor's or owner's right: it costs nothing.
    for page_of in ("places", "do/publish"):
        assert client.get(f"/admin/survey/posting/{posting.pk}/{page_of}/").status_code == 403
    # It may be anybody's study of the account, running and paid by others.
    here = f"/admin/survey/posting/adopt/{study.pk}/"
    assert client.get(here).status_code == 403
    assert client.post(here, {"stage": "1", "external_id": "x"}).status_code == 403
    assert here not in draft(client, study, "check").content.decode()
    StudyMembership.objects.update(may_spend=True)
    assert here in draft(client, study, "check").content.decode()
    StudyMembership.objects.update(may_spend=False)
    StudyMembership.objects.update(role="analyst")
    for what in ("draft", "adopt"):
        assert client.get(f"/admin/survey/posting/{what}/{study.pk}/").status_code == 403
    StudyMembership.objects.all().delete()
    for what in ("draft", "adopt"):
        assert client.get(f"/admin/survey/posting/{what}/{study.pk}/").status_code == 404


def posted_in(study: Any) -> Posting:
    return postings.draft(cast.stage_of(study), root="http://testserver")


def test_what_has_no_panel_to_ask_and_a_test_copy_are_not_posted(study: Any, as_owner: Client) -> None:
    lab = cast.study(slug="lab", panel={"kind": "links"})
    copy = test_copies.make_copy(study)
    for other_study in (lab, copy):
        for what in ("draft", "adopt"):
            said = as_owner.post(f"/admin/survey/posting/{what}/{other_study.pk}/", {"stage": "1", "external_id": "x"})
            assert b"never posted" in said.content or b"no panel that the study could be posted at" in said.content
        assert b"Draft a posting" not in as_owner.get(f"/admin/survey/study/{other_study.pk}/change/").content
    assert b"Draft a posting" in as_owner.get(f"/admin/survey/study/{study.pk}/change/").content


@pytest.fixture
def as_owner(django_user_model: Any) -> Client:
    client = Client()
    client.force_login(django_user_model.objects.create_superuser("super"))
    return client


def test_a_fee_that_changed_is_asked_again_in_the_pages(study: Any, fake: FakeProlific) -> None:
    client = somebody()
    draft(client, study)
    posting = Posting.objects.get()
    fake.fee, fake.vat = Decimal("0.333"), Decimal("0.2")
    again = "Publish: it costs 5.60 USD now, and 4.00 USD was agreed to"
    assert again in do(client, posting, "do/publish", sum="4.00")[1][0]
    assert do(client, posting, "do/publish", sum="5.60")[1] == ["Published: the panel shows it to people now."]
    fake.fee = Decimal("0.5")
    asked = client.post(f"/admin/survey/posting/{posting.pk}/places/", {"more": "1", "check": "1"})
    assert asked.context["cents"] == 160, "by what the panel says now"
    fake.fee = Decimal("0.6")
    said = do(client, posting, "places", more="1", add="1", sum="1.60")[1][0]
    assert "it costs 1.72 USD now, and 1.60 USD was agreed to" in said and Posting.objects.get().places == 4


def test_a_published_posting_shows_no_checks(fake: FakeProlific) -> None:
    posting = posted()
    assert "Before publishing" not in page(somebody(), posting)
