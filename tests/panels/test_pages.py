"""The posting's page in the admin: what it shows, what is done from it, and by whom."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from survey.admin.posting_actions import ACTIONS, PostingFacts
from survey.contracts.panels import PanelError
from survey.models import PaymentBatch, Posting, Sitting
from survey.panels.money import pay_owed
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from survey.services.base.groups import ensure_researchers_group
from survey.services.sittings import hourly_pay
from tests import cast

from .world import PAY, arrives, begins, posted, sits, stored_posting, stored_submission

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.usefixtures("audit_names_who")]


@pytest.fixture
def posting(fake: FakeProlific) -> Posting:
    """One has finished, one finished too late, one returned after finishing, one is inside."""
    made = posted()
    code = made.study.completion_code("completed")
    places = [arrives(fake, made) for _ in range(4)]
    for place in places[:3]:
        begins(made.study, place)
    begins(made.study, places[3], until="item")
    fake.submit(places[0]["id"], code)
    fake.time_out(places[1]["id"])
    fake.submit(places[2]["id"], code)
    fake.give_up(places[2]["id"])
    read_posting(made)
    return made


def somebody(*permissions: str) -> Client:
    user = User.objects.create_user("somebody", password="x", is_staff=True)
    user.groups.add(ensure_researchers_group())
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    cast.join_all(user)
    client = Client()
    client.force_login(user)
    return client


def page(client: Client, posting: Posting) -> str:
    response = client.get(f"/admin/survey/posting/{posting.pk}/change/")
    assert response.status_code == 200
    return response.content.decode()


def do(client: Client, posting: Posting, rest: str, **data: str) -> tuple[int, list[str]]:
    response = client.post(f"/admin/survey/posting/{posting.pk}/{rest}/", data, follow=True)
    messages = [str(message) for message in response.context["messages"]] if response.context else []
    return response.status_code, messages


def test_the_page_shows_what_to_do_and_no_id_of_the_panels(posting: Posting, fake: FakeProlific) -> None:
    body = page(somebody(), posting)
    assert "finished after the panel&#x27;s time was over" in body
    assert "perhaps the answers are withdrawn" in body and "1 still on the way" in body
    assert "Approve those who finished" in body and "6.00 of 100.00" in body
    assert "Pay what is owed" not in body, "a permission of its own"
    for row in fake.submissions.values():
        assert row["id"] not in body and row["participant_id"] not in body


def test_looking_asks_the_panel_nothing(posting: Posting, fake: FakeProlific) -> None:
    fake.calls.clear()
    client = somebody("pay_people")
    page(client, posting)
    for name in ("read", "approve", "pay"):
        assert client.get(f"/admin/survey/posting/{posting.pk}/do/{name}/").status_code == 200
    assert fake.calls == []


def test_it_approves_pays_and_settles(posting: Posting, fake: FakeProlific) -> None:
    client = somebody("pay_people")
    for wrong in ("", "0.99", "6.00", "100"):
        status, _messages = do(client, posting, "do/pay", sum=wrong)
        assert status == 200 and not fake.paid
    assert do(client, posting, "do/approve", sum="1.00") == (200, ["1 submissions approved."])
    assert do(client, posting, "do/pay", sum="1.00") == (200, ["1 bonuses paid."])
    row = posting.submissions.get(status="RETURNED")
    assert do(client, posting, f"settle/{row.pk}", resolution="") == (
        200,
        ["Settle: resolution: say in a sentence what was decided"],
    )
    assert do(client, posting, f"settle/{row.pk}", resolution="The answers stay.") == (200, ["Settled."])
    assert do(client, posting, "do/pause")[1] == ["The panel says PAUSED now."]
    assert do(client, posting, "do/pause")[1][0].startswith("Pause: Prolific: to pause the study")
    assert do(client, posting, "do/read")[1] == ["4 submissions read."]
    body = page(client, posting)
    assert "Nothing: both sides agree." in body and len(fake.paid) == 1


def test_an_unknown_payment_is_settled_by_who_may_pay(posting: Posting, fake: FakeProlific) -> None:
    fake.lose_next_answer("/pay/")
    with pytest.raises(PanelError):
        pay_owed(posting)
    batch = PaymentBatch.objects.get()
    looker = somebody()
    assert "It was paid" not in page(looker, posting)
    assert do(looker, posting, f"payment/{batch.pk}", said="paid")[0] == 403
    User.objects.get().user_permissions.set(Permission.objects.filter(codename="pay_people"))
    client = Client()
    client.force_login(User.objects.get())
    assert "It was paid" in page(client, posting)
    assert do(client, posting, f"payment/{batch.pk}", said="perhaps", sum="1.00")[0] == 404
    _status, (said,) = do(client, posting, f"payment/{batch.pk}", said="paid", sum="1.00")
    assert "may be on its way: wait for its answer" in said
    over = timezone.now() - ProlificAccount.longest_call
    PaymentBatch.objects.update(created_at=over, sent_at=over)
    assert do(client, posting, f"payment/{batch.pk}", said="paid", sum="1.00") == (200, ["Written down."])
    batch.refresh_from_db()
    assert batch.state == PaymentBatch.State.PAID


def test_who_may_only_look_does_nothing(posting: Posting, fake: FakeProlific) -> None:
    user = User.objects.create_user("looker", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_posting"))
    cast.join_all(user, "editor")
    client = Client()
    client.force_login(user)
    fake.calls.clear()
    assert "Approve those" not in page(client, posting)
    for rest in ("do/approve", "do/pay", "do/read", f"settle/{posting.submissions.all()[0].pk}"):
        assert do(client, posting, rest)[0] == 403
    assert do(client, posting, "do/burn")[0] == 404
    assert fake.calls == []


def test_a_sinking_median_warns_on_the_studys_page_and_the_postings(
    posting: Posting, monkeypatch: pytest.MonkeyPatch, admin_client: Client
) -> None:
    study = f"/admin/survey/study/{posting.study_id}/change/"
    assert b"Too little is paid" not in admin_client.get(study).content
    monkeypatch.setattr(hourly_pay, "ENOUGH", 3)
    for sitting in Sitting.objects.filter(state="complete"):
        started: Any = sitting.ended_at
        sitting.started_at = started - timedelta(minutes=10)
        sitting.save()
    assert b"Too little is paid: 6.00 USD an hour by the median of 3" in admin_client.get(study).content
    assert "Too little is paid" in page(admin_client, posting)


def _offered(posting: Posting) -> set[str]:
    facts = PostingFacts(posting)
    return {action.name for action in ACTIONS if action.is_offered(facts)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("state", "is_published", "offered"),
    [
        ("UNPUBLISHED", False, {"publish"}),
        ("SCHEDULED", True, {"unschedule", "stop"}),
        ("ACTIVE", True, {"pause", "stop"}),
        ("PAUSED", True, {"start", "stop"}),
        ("COMPLETED", True, set()),
        ("odd", True, set()),
    ],
)
def test_what_a_posting_is_offered_by_its_state(db: None, state: str, is_published: bool, offered: set[str]) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1}, stages=[{"sittings": 6}])
    posting = stored_posting(study, state=state, published_at=timezone.now() if is_published else None)
    assert _offered(posting) == {"read", *offered}
    for status, name in (("AWAITING REVIEW", "approve"), ("TIMED-OUT", "pay")):
        row = stored_submission(posting, sits(study), status)
        assert _offered(posting) == {
            "read",
            *offered,
            name,
        }
        row.delete()
    stored_submission(posting, sits(study, "expired"), "AWAITING REVIEW")
    assert _offered(posting) == {
        "read",
        *offered,
        "ask-back",
    }


def test_a_page_says_why_not_in_place_of_asking_what_cannot_be_done_now(posting: Posting) -> None:
    client, here = somebody("pay_people"), f"/admin/survey/posting/{posting.pk}/do"
    assert 'value="Pause"' in client.get(f"{here}/pause/").content.decode()
    for name in ("start", "publish"):
        body = client.get(f"{here}/{name}/").content.decode()
        assert "It cannot be done now" in body and 'class="hunch-confirm"' not in body
    Posting.objects.update(external_id="")
    body = client.get(f"{here}/pause/").content.decode()
    assert "The posting is not at the panel yet." in body and 'value="Pause"' not in body


def test_rows_of_another_posting_are_not_settled_by_this_ones_page(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1}, stages=[{"sittings": 6}])
    posting, other = stored_posting(study), stored_posting(study)
    row = stored_submission(other, None, "APPROVED")
    batch = PaymentBatch.objects.create(posting=other, state="unknown", sent_at=timezone.now() - timedelta(days=1))
    client, here = somebody("pay_people"), f"/admin/survey/posting/{posting.pk}"
    assert client.post(f"{here}/settle/{row.pk}/", {"resolution": "yes"}).status_code == 404
    assert client.post(f"{here}/payment/{batch.pk}/", {"said": "paid", "sum": "0.00"}).status_code == 404
    batch.refresh_from_db()
    row.refresh_from_db()
    assert (batch.state, row.resolution) == ("unknown", "")
