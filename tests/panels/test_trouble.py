"""A study under constant trouble at the panel: every few calls one gets lost, fails or is answered with nonsense.

Anyone who goes on as the messages say comes to the end with nothing paid twice and nothing lost."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from survey.contracts.panels import PanelError
from survey.exceptions import HunchError, StateRefused
from survey.models import PaymentBatch, Posting
from survey.panels import money, postings, reconciliation
from survey.panels.accounts import account_of
from survey.panels.prolific.fake import WORKSPACE, Breakage, FakeProlific
from survey.panels.submissions import read_posting
from tests import cast

from .test_killed import charged, time_passes
from .world import PAY, arrives, begins, posted

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
TRIES = 40


def until(done: Callable[[], Any], act: Callable[[], Any]) -> None:
    """Try, and after each failure wait and read the panel, as the messages say."""
    for _ in range(TRIES):
        try:
            act()
        except HunchError:
            time_passes()
        if done():
            return
    raise AssertionError(f"not done after {TRIES} tries")


@pytest.mark.parametrize("seed", range(4))
def test_who_goes_on_comes_to_the_end(fake: FakeProlific, settings: Any, seed: int) -> None:
    settings.HUNCH_PROLIFIC_WORKSPACE = WORKSPACE
    fake._rng.seed(seed)
    fake.fee, fake.vat, fake.trouble_every = Decimal("0.333"), Decimal("0.2"), 2 + seed
    fake.keeper.look_at_call = lambda *args: None  # type: ignore[attr-defined] - nonsense is no answer of Prolific's.
    study = cast.open_study(
        panel={**cast.PROLIFIC, **PAY, "participant_group": "all"}, sitting={"items": 1}, stages=[{"sittings": 8}]
    )
    stage = study.stages.get(index=1)

    def posting() -> Posting:
        return Posting.objects.select_related("study", "stage").get()

    def read() -> None:
        read_posting(posting())

    until(
        lambda: Posting.objects.exclude(external_id="").exists(),
        lambda: postings.draft(stage, places=4, root="http://testserver"),
    )
    assert len(fake.studies) == 1 and len(fake.groups) == 1

    def publish() -> None:
        if posting().pending:
            read()
        elif posting().published_at is None:
            postings.publish(posting())

    until(lambda: posting().state == "ACTIVE" and not posting().pending, publish)

    def add() -> None:
        if posting().pending:
            read()
        elif posting().places == 4:
            postings.add_places(posting(), 2)

    until(lambda: posting().places == 6 and not posting().pending, add)
    assert fake.studies[posting().external_id]["total_available_places"] == 6
    assert money.committed(study) >= charged(posting(), fake)
    places = [arrives(fake, posting()) for _ in range(4)]
    for number, place in enumerate(places):
        begins(study, place)
        if number < 2:
            fake.time_out(place["id"])
        else:
            fake.submit(place["id"], study.completion_code("completed"))

    def approve() -> None:
        read()
        reconciliation.approve_finished(posting())

    def approved() -> bool:
        return {fake.submissions[place["id"]]["status"] for place in places[2:]} == {"APPROVED"}

    until(approved, approve)
    until(lambda: posting().submissions.filter(status="APPROVED").count() == 2, read)
    until(lambda: len(money.owed(posting())) == 2 or fake.paid, read)

    def pay() -> None:
        for batch in PaymentBatch.objects.filter(state__in=["sent", "unknown"]):
            money.settle(batch, was_paid=bool(fake.paid))
        money.pay_owed(posting())

    until(lambda: not money.owed(posting()) and not PaymentBatch.objects.filter(state="unknown").exists(), pay)
    assert sorted(who for who, _units in fake.paid) == sorted(place["id"] for place in places[:2])
    fake.trouble_every = 0
    time_passes()
    read()
    account = account_of(posting())
    assert money.committed(study) == charged(posting(), fake)
    assert account.difference == 0 and account.here.total == 400 + 160
    assert [len(group["people"]) for group in fake.groups.values()] == [4]


def test_a_payment_that_came_twice_on_the_way_shows_in_the_account(fake: FakeProlific) -> None:
    """Nothing of ours can keep a network from sending a request twice. It is not silent."""
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    fake.break_next("/pay/", Breakage.TWICE)
    money.pay_owed(posting)
    read_posting(posting)
    account = account_of(Posting.objects.select_related("study").get())
    assert account.sentence == "the panel counts 1.00 more"


def test_a_draft_of_which_nothing_is_known_is_not_made_again_at_once(fake: FakeProlific) -> None:
    fake.break_next("/studies/", Breakage.LOST, method="POST")
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    stage = study.stages.get(index=1)
    with pytest.raises(PanelError):
        postings.draft(stage, root="http://testserver")
    with pytest.raises(StateRefused, match="may be at the panel already"):
        postings.draft(stage, places=3, root="http://testserver")
    assert postings.draft(stage, root="http://testserver").external_id in fake.studies
