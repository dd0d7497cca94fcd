"""One party acts in the middle of what another does, and processes that die at every line between two calls.

The other party is called from within a method of the panel's client. Whatever happens: nobody is paid twice, what is
committed never exceeds the cap, and a later reading or command leads out.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from survey.contracts import panel_api
from survey.contracts.panels import PanelRefused, PanelUnreachable, PostingAtPanel
from survey.exceptions import StateRefused
from survey.models import AuditEntry, Payment, PaymentBatch, Posting, Stage, Submission
from survey.panels import money, postings, reconciliation
from survey.panels.postings import Move
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import FakeProlific
from survey.panels.reconciliation import Action
from survey.panels.submissions import read_all, read_posting
from survey.services.base.auditing import actor_of
from survey.services.stages import lifecycle
from survey.services.studies import amending
from tests import cast

from .world import PAY, arrives, begins, posted

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.every_database]
State = PaymentBatch.State
WHY = "Both attention checks, each of which said which answer to choose, were answered otherwise than they asked for."


class Killed(BaseException):
    """The process has died: nothing catches it."""


def fresh() -> Posting:
    """As another process reads the row."""
    return Posting.objects.select_related("study__bank", "stage").get()


class Panel:
    """Changes what the calls of the panel's client do, the next time that they are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch

    def _once(self, method: str, instead: Callable[..., Any]) -> None:
        original = getattr(ProlificAccount, method)

        def replaced(client: ProlificAccount, *args: Any, **kwargs: Any) -> Any:
            self.patch.setattr(ProlificAccount, method, original)
            return instead(lambda: original(client, *args, **kwargs))

        self.patch.setattr(ProlificAccount, method, replaced)

    def meanwhile(self, method: str, act: Callable[[], Any]) -> None:
        """Somebody acts while the call is under way."""

        def instead(call: Callable[[], Any]) -> Any:
            act()
            return call()

        self._once(method, instead)

    def dies(self, method: str, *, after: bool = False) -> None:
        """The process dies before the call is made, or right after the panel did it."""

        def instead(call: Callable[[], Any]) -> Any:
            if after:
                call()
            raise Killed

        self._once(method, instead)

    def fails(self, method: str, error: Exception) -> None:
        """The call fails, and the panel did nothing."""

        def instead(call: Callable[[], Any]) -> Any:
            raise error

        self._once(method, instead)

    def passes(self, minutes: int = 11) -> None:
        """From now on it is that much later."""
        now = timezone.now
        self.patch.setattr(timezone, "now", lambda: now() + timedelta(minutes=minutes))


@pytest.fixture
def panel(fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> Panel:
    return Panel(monkeypatch)


def lost() -> PanelUnreachable:
    return PanelUnreachable("the connection broke", outcome_is_known=False)


def test_the_longest_call_covers_all_tries_and_waits() -> None:
    timeout = panel_api.TIMEOUT
    call_seconds = sum(part or 0.0 for part in (timeout.connect, timeout.read, timeout.write, timeout.pool))
    jitter = sum(0.5 * 2**number for number in range(panel_api.TRIES - 1))
    waits = panel_api.LONGEST_WAIT * (panel_api.TRIES - 1) + jitter
    assert timedelta(seconds=panel_api.TRIES * call_seconds + waits) <= ProlificAccount.longest_call


# A reading, while somebody changes what is read


def test_what_is_published_while_a_reading_is_under_way_stays_published(fake: FakeProlific, panel: Panel) -> None:
    worker = posted(publish=False)
    panel.meanwhile("submissions", lambda: postings.publish(fresh()))
    read_posting(worker)
    row = Posting.objects.get()
    assert (row.state, row.committed, row.pending) == ("ACTIVE", 600, "")
    assert row.published_at is not None and worker.published_at == row.published_at
    read_posting(worker)
    assert (worker.state, worker.committed) == ("ACTIVE", 600)


def test_a_reading_that_began_before_the_call_and_ends_within_it_undoes_nothing(
    fake: FakeProlific, panel: Panel
) -> None:
    posting = posted(publish=False)
    panel.meanwhile("publish", lambda: read_posting(fresh()))
    postings.publish(posting)
    row = Posting.objects.get()
    assert (row.state, row.committed, row.pending) == ("ACTIVE", 600, "")


def test_places_added_while_a_reading_is_under_way_stay_counted(fake: FakeProlific, panel: Panel) -> None:
    worker = posted(places=2, spending_cap=600)
    panel.meanwhile("submissions", lambda: postings.add_places(fresh(), 4))
    read_posting(worker)
    row = Posting.objects.get()
    assert (row.places, row.committed) == (6, 600)
    assert fake.studies[row.external_id]["total_available_places"] == 6
    with pytest.raises(StateRefused, match="spending_cap"):
        postings.add_places(row, 1)


def test_an_older_reading_that_ends_after_a_newer_one_changes_nothing(fake: FakeProlific, panel: Panel) -> None:
    worker = posted()

    def newer() -> None:
        fake.studies[worker.external_id] |= {"status": "PAUSED", "total_available_places": 8}
        read_posting(fresh())

    panel.meanwhile("submissions", newer)
    read_posting(worker)
    row = Posting.objects.get()
    assert (row.state, row.places) == ("PAUSED", 8)
    assert worker.state == "PAUSED", "what the caller goes on with is what is stored"


def test_a_pause_stands_against_a_reading_that_began_before_it(fake: FakeProlific, panel: Panel) -> None:
    worker = posted()
    panel.meanwhile("submissions", lambda: postings.change(fresh(), Move.PAUSE))
    read_posting(worker)
    assert Posting.objects.get().state == "PAUSED"


def test_a_failed_older_reading_leaves_no_error_behind_a_newer_one(fake: FakeProlific, panel: Panel) -> None:
    worker = posted()

    def newer_and_then_lost() -> None:
        read_posting(fresh())
        raise lost()

    panel.meanwhile("submissions", newer_and_then_lost)
    with pytest.raises(PanelUnreachable):
        read_posting(worker)
    assert Posting.objects.get().error == ""


def test_a_stage_that_opens_while_its_posting_is_read_is_not_paused(fake: FakeProlific, panel: Panel) -> None:
    posting = posted()
    lifecycle.pause_stage(Stage.objects.select_related("study__bank").get(pk=posting.stage_id))

    def opens() -> None:
        lifecycle.open_stage(Stage.objects.select_related("study__bank").get(pk=posting.stage_id))

    panel.meanwhile("submissions", opens)
    assert read_all() == 1
    assert fake.studies[posting.external_id]["status"] == Posting.objects.get().state == "ACTIVE"


def test_a_reward_that_was_raised_at_the_panel_is_counted(fake: FakeProlific) -> None:
    posting = posted()
    fake.studies[posting.external_id]["reward"] = 130
    read_posting(posting)
    assert money.committed(posting.study) == 780


# Publishing


def test_one_that_died_before_it_published_is_found_to_be_a_draft_and_published_again(
    fake: FakeProlific, panel: Panel
) -> None:
    posting = posted(publish=False)
    panel.dies("publish")
    with pytest.raises(Killed):
        postings.publish(posting)
    row = fresh()
    assert (row.pending, row.committed) == ("publish", 600)
    with pytest.raises(StateRefused, match=r"asked at .* to publish it, and has not answered\. Read it"):
        postings.publish(row)
    with pytest.raises(StateRefused, match="has not answered"):
        postings.add_places(row, 1)
    read_posting(row)
    assert (row.pending, row.committed) == ("publish", 600), "the call may still be under way"
    panel.passes()
    read_posting(row)
    assert (row.pending, row.published_at, row.committed) == ("", None, 0)
    assert AuditEntry.objects.get(action="end_pending").detail == {
        "asked_for": "publish", "published": False, "places": 6,
    }  # fmt: skip
    with pytest.raises(StateRefused, match="never published"):
        postings.change(row, Move.START)
    assert postings.publish(row).state == "ACTIVE"
    assert money.committed(row.study) == 600
    assert fake.calls.count(("POST", f"/api/v1/studies/{row.external_id}/transition/")) == 1


def test_one_that_died_after_it_published_is_found_to_be_published(fake: FakeProlific, panel: Panel) -> None:
    posting = posted(publish=False)
    panel.dies("publish", after=True)
    with pytest.raises(Killed):
        postings.publish(posting)
    row = fresh()
    read_posting(row)
    assert (row.pending, row.state, row.committed) == ("", "ACTIVE", 600)
    with pytest.raises(StateRefused, match="published before"):
        postings.publish(row)


def test_a_lost_answer_leaves_the_question_open_and_a_later_reading_answers_it(
    fake: FakeProlific, panel: Panel
) -> None:
    posting = posted(publish=False)
    panel.fails("publish", lost())
    with pytest.raises(PanelUnreachable):
        postings.publish(posting)
    assert (fresh().pending, fresh().committed) == ("publish", 600)
    panel.passes()
    read_posting(posting)
    assert postings.publish(posting).committed == 600


def test_a_call_that_outlasts_all_patience_and_publishes_is_counted_all_the_same(
    fake: FakeProlific, panel: Panel
) -> None:
    posting = posted(publish=False)

    def a_long_time() -> None:
        panel.passes()
        read_posting(fresh())
        assert fresh().committed == 0

    panel.meanwhile("publish", a_long_time)
    postings.publish(posting)
    assert (fresh().committed, fresh().state, fresh().pending) == (600, "ACTIVE", "")


def test_one_that_stood_as_published_and_is_a_draft_can_be_published(fake: FakeProlific) -> None:
    """As older versions left it where the process died."""
    posting = posted(publish=False)
    Posting.objects.update(published_at=timezone.now() - timedelta(hours=1), changed_at=None)
    with pytest.raises(StateRefused, match="published before"):
        postings.publish(fresh())
    read_posting(posting)
    assert Posting.objects.get().committed == 0
    assert postings.publish(fresh()).committed == 600


def test_a_panel_that_names_no_state_is_taken_for_one_that_published(fake: FakeProlific, panel: Panel) -> None:
    posting = posted(publish=False)
    panel.fails("publish", lost())
    with pytest.raises(PanelUnreachable):
        postings.publish(posting)
    panel.passes()
    silent = PostingAtPanel(posting.external_id, "")
    postings.take_over(posting, silent, read_at=timezone.now(), patience=timedelta(minutes=10))
    assert (posting.pending, posting.committed, posting.state) == ("", 600, "UNPUBLISHED")


def test_what_is_published_is_what_the_row_says_then_and_not_what_the_caller_read(fake: FakeProlific) -> None:
    posted(publish=False, spending_cap=700)
    mine = fresh()
    postings.add_places(fresh(), 4)
    with pytest.raises(StateRefused, match="1000 more would make 1000 of 700"):
        postings.publish(mine)
    assert fake.studies[mine.external_id]["status"] == "UNPUBLISHED" and money.committed(mine.study) == 0


def test_a_cap_that_an_amendment_lowered_meanwhile_counts(fake: FakeProlific) -> None:
    posted(publish=False)
    mine = fresh()
    assert mine.study.config.panel.spending_cap == 10_000
    text = cast.study_text(
        panel={**cast.PROLIFIC, **PAY, "spending_cap": 500}, sitting={"items": 1}, stages=[{"sittings": 6}]
    )
    amending.amend(fresh().study, text=text, source_name="new.toml", reason="less money")
    with pytest.raises(StateRefused, match="600 more would make 600 of 500"):
        postings.publish(mine)


# More places


def test_one_that_died_before_it_added_places_is_corrected_by_what_the_panel_says(
    fake: FakeProlific, panel: Panel
) -> None:
    posting = posted(places=6)
    panel.dies("set_places")
    with pytest.raises(Killed):
        postings.add_places(posting, 50)
    row = fresh()
    assert (row.pending, row.committed) == ("places", 5600)
    with pytest.raises(StateRefused, match="to offer more places"):
        postings.add_places(row, 50)
    read_posting(row)
    assert row.committed == 5600
    panel.passes()
    read_posting(row)
    assert (row.pending, row.places, row.committed) == ("", 6, 600)
    assert postings.add_places(row, 50).places == 56
    assert fake.studies[row.external_id]["total_available_places"] == 56


def test_one_that_died_after_it_added_places_is_answered_by_the_next_reading(fake: FakeProlific, panel: Panel) -> None:
    posting = posted(places=6)
    panel.dies("set_places", after=True)
    with pytest.raises(Killed):
        postings.add_places(posting, 2)
    row = fresh()
    read_posting(row)
    assert (row.pending, row.places) == ("", 8)


def test_places_that_the_panel_refused_are_taken_back_unless_it_has_them(fake: FakeProlific, panel: Panel) -> None:
    posting = posted(places=6)
    panel.fails("set_places", PanelRefused("no"))
    with pytest.raises(PanelRefused):
        postings.add_places(posting, 2)
    assert (fresh().pending, fresh().places) == ("", 6)
    assert AuditEntry.objects.get(action="add_places_failed").detail == {"why": "no"}

    def somebody_adds_there_and_we_read_it() -> None:
        fake.studies[posting.external_id]["total_available_places"] = 9
        read_posting(fresh())
        raise PanelRefused("no")

    panel.meanwhile("set_places", somebody_adds_there_and_we_read_it)
    with pytest.raises(PanelRefused):
        postings.add_places(posting, 2)
    assert (fresh().pending, fresh().places) == ("", 9)


def test_a_call_that_outlasts_all_patience_and_adds_places_is_counted_all_the_same(
    fake: FakeProlific, panel: Panel
) -> None:
    posting = posted(places=6)

    def a_long_time() -> None:
        panel.passes()
        read_posting(fresh())
        assert fresh().places == 6

    panel.meanwhile("set_places", a_long_time)
    postings.add_places(posting, 2)
    assert (fresh().places, fake.studies[posting.external_id]["total_available_places"]) == (8, 8)


def test_places_of_one_that_was_published_meanwhile_are_held_against_the_cap(fake: FakeProlific) -> None:
    posted(publish=False, spending_cap=700)
    mine = fresh()
    postings.publish(fresh())
    with pytest.raises(StateRefused, match="200 more would make 800 of 700"):
        postings.add_places(mine, 2)
    assert money.committed(mine.study) == 600


# Drafting


@pytest.fixture
def stage(fake: FakeProlific) -> Stage:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1}, stages=[{"sittings": 6}])
    return study.stages.select_related("study__bank").get(index=1)


def drafted(stage: Stage, **options: Any) -> Posting:
    return postings.draft(stage, root="http://testserver", **options)


def recorded(stage: Stage) -> list[str]:
    stage.refresh_from_db()
    return [entry["internal_name"] for entry in stage.manifest.get("postings", ())]


def test_of_two_who_draft_at_once_one_does(stage: Stage, fake: FakeProlific, panel: Panel) -> None:
    refusals = []

    def the_other() -> None:
        with pytest.raises(StateRefused, match=r"is being drafted since .*, or that broke off") as refused:
            drafted(stage)
        refusals.append(refused)

    panel.meanwhile("draft", the_other)
    posting = drafted(stage)
    assert len(refusals) == 1 and list(fake.studies) == [posting.external_id]
    assert (Posting.objects.count(), posting.pending, recorded(stage)) == (1, "", [posting.internal_name])


def test_a_draft_is_stored_together_with_the_manifest_or_not_at_all(
    stage: Stage, fake: FakeProlific, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = postings._write_into_manifest

    def dies(*args: Any) -> None:
        monkeypatch.setattr(postings, "_write_into_manifest", write)
        raise Killed

    monkeypatch.setattr(postings, "_write_into_manifest", dies)
    with pytest.raises(Killed):
        drafted(stage)
    assert (Posting.objects.get().external_id, recorded(stage)) == ("", [])
    panel.passes()
    posting = drafted(stage)
    assert list(fake.studies) == [posting.external_id], "it was found under its name"
    assert (Posting.objects.count(), recorded(stage)) == (1, [posting.internal_name])


@pytest.mark.parametrize("after", [False, True])
def test_one_that_died_while_it_drafted_is_continued(
    stage: Stage, fake: FakeProlific, panel: Panel, after: bool
) -> None:
    panel.dies("draft", after=after)
    with pytest.raises(Killed):
        drafted(stage)
    with pytest.raises(StateRefused, match="draft it again after"):
        drafted(stage)
    panel.passes()
    posting = drafted(stage)
    assert list(fake.studies) == [posting.external_id] and Posting.objects.count() == 1


def test_a_refused_draft_takes_the_places_and_the_pay_that_are_asked_for_next(
    stage: Stage, fake: FakeProlific, panel: Panel
) -> None:
    panel.fails("draft", PanelRefused("no"))
    with pytest.raises(PanelRefused):
        drafted(stage)
    posting = drafted(stage, reward=300, places=2)
    sent = fake.studies[posting.external_id]
    assert (posting.reward, posting.places) == (sent["reward"], sent["total_available_places"]) == (300, 2)
    assert Posting.objects.count() == 1


def test_a_draft_that_may_be_at_the_panel_is_continued_as_it_was_sent(
    stage: Stage, fake: FakeProlific, panel: Panel
) -> None:
    panel.dies("draft", after=True)
    with pytest.raises(Killed):
        drafted(stage)
    panel.passes()
    with pytest.raises(StateRefused, match=r"^places: .* with 6, .* without --places"):
        drafted(stage, places=2)
    with pytest.raises(StateRefused, match=r"^reward: .* with 100, .* without --reward"):
        drafted(stage, reward=300)
    posting = drafted(stage, places=6, reward=100)
    assert list(fake.studies) == [posting.external_id]
    assert drafted(stage, places=2, reward=300).places == 2, "the next one is another posting"


def test_who_is_slower_than_all_patience_stores_nothing_and_says_so(
    stage: Stage, fake: FakeProlific, panel: Panel
) -> None:
    def a_long_time() -> None:
        panel.passes()
        drafted(stage)

    panel.meanwhile("draft", a_long_time)
    with pytest.raises(StateRefused, match=r"If the panel has a second draft .* delete it there"):
        drafted(stage)
    assert Posting.objects.count() == 1 and len(recorded(stage)) == 1


def test_what_is_asked_and_not_answered_is_shown(
    fake: FakeProlific, panel: Panel, admin_client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    posting = posted(publish=False)
    panel.dies("publish")
    with pytest.raises(Killed):
        postings.publish(posting)
    call_command("posting", "cast", "show")
    assert "UNPUBLISHED (no answer yet: publish it)" in capsys.readouterr().out
    body = admin_client.get(f"/admin/survey/posting/{posting.pk}/change/").content.decode()
    assert "to publish it, and has not answered" in body and "/do/publish/" not in body
    panel.passes()
    read_posting(posting)
    assert "/do/publish/" in admin_client.get(f"/admin/survey/posting/{posting.pk}/change/").content.decode()


# Payments


@pytest.fixture
def late(fake: FakeProlific) -> Posting:
    """A posting that owes two people the reward."""
    posting = posted()
    for _person in range(2):
        place = arrives(fake, posting)
        begins(posting.study, place)
        fake.time_out(place["id"])
    read_posting(posting)
    return posting


def paid(fake: FakeProlific) -> list[str]:
    return [str(amount) for _who, amount in fake.paid]


def settle_newest(*, was_paid: bool) -> None:
    money.settle(PaymentBatch.objects.select_related("posting__study").latest("pk"), was_paid=was_paid)


def test_a_payment_in_flight_cannot_be_settled(late: Posting, fake: FakeProlific, panel: Panel) -> None:
    refusals = []

    def somebody_settles() -> None:
        for was_paid in (False, True):
            with pytest.raises(StateRefused, match="may be on its way: wait for its answer") as refused:
                settle_newest(was_paid=was_paid)
            refusals.append(refused)

    panel.meanwhile("pay_bonuses", somebody_settles)
    (batch,) = money.pay_owed(late)
    assert len(refusals) == 2 and batch.state == State.PAID
    assert (paid(fake), money.committed(late.study)) == (["1.00", "1.00"], 800)


def test_one_that_died_while_paying_can_be_settled_once_the_call_must_be_over(
    late: Posting, fake: FakeProlific, panel: Panel
) -> None:
    panel.dies("pay_bonuses")
    with pytest.raises(Killed):
        money.pay_owed(late)
    with pytest.raises(StateRefused, match="may be on its way"):
        settle_newest(was_paid=False)
    panel.passes()
    settle_newest(was_paid=False)
    assert (PaymentBatch.objects.get().state, money.committed(late.study)) == (State.REFUSED, 600)
    money.pay_owed(late)
    assert paid(fake) == ["1.00", "1.00"]


def test_a_payment_that_succeeds_after_somebody_said_it_did_not_is_paid_and_not_owed_again(
    late: Posting, fake: FakeProlific, panel: Panel
) -> None:
    def a_long_time() -> None:
        panel.passes()
        settle_newest(was_paid=False)
        assert len(money.owed(late)) == 2

    panel.meanwhile("pay_bonuses", a_long_time)
    with pytest.raises(StateRefused, match=r"payment .* counts as paid: somebody said that it was not paid, and then"):
        money.pay_owed(late)
    batch = PaymentBatch.objects.get()
    assert batch.state == State.PAID and "then the panel answered that it was" in batch.error
    assert not Payment.objects.filter(is_void=True).exists() and money.owed(late) == []
    assert (paid(fake), money.committed(late.study)) == (["1.00", "1.00"], 800)
    assert AuditEntry.objects.get(action="paid_after_all").detail == {"people": 2, "twice": 0}


def test_what_was_paid_twice_all_the_same_counts_twice_and_says_so(
    late: Posting, fake: FakeProlific, panel: Panel
) -> None:
    def a_long_time() -> None:
        panel.passes()
        settle_newest(was_paid=False)
        assert [batch.state for batch in money.pay_owed(fresh())] == [State.PAID]

    panel.meanwhile("pay_bonuses", a_long_time)
    with pytest.raises(StateRefused, match="so that people were paid twice"):
        money.pay_owed(late)
    first, second = PaymentBatch.objects.order_by("pk")
    assert (first.state, second.state) == (State.PAID, State.PAID)
    assert "2 of its bonuses were sent again meanwhile" in first.error
    assert (len(fake.paid), money.committed(late.study), money.owed(late)) == (4, 1000, [])


def test_a_payment_that_is_not_sent_yet_is_dropped_when_an_older_one_turns_out_to_be_paid(
    late: Posting, fake: FakeProlific, panel: Panel
) -> None:
    prepared: list[PaymentBatch | None] = []

    def a_long_time() -> None:
        panel.passes()
        settle_newest(was_paid=False)
        prepared.append(money._prepare(fresh(), None, None, at_once=200, by=None, via="test"))

    panel.meanwhile("pay_bonuses", a_long_time)
    with pytest.raises(StateRefused, match="counts as paid"):
        money.pay_owed(late)
    (other,) = prepared
    assert other is not None
    with ProlificAccount.open() as client, pytest.raises(StateRefused, match="taken up by somebody else"):
        money._send(other, client)
    other.refresh_from_db()
    assert (other.state, paid(fake)) == (State.REFUSED, ["1.00", "1.00"])
    assert (money.committed(late.study), money.owed(late)) == (800, [])


def test_a_payment_that_is_under_way_stays_a_question_when_an_older_one_turns_out_to_be_paid(
    late: Posting, fake: FakeProlific, panel: Panel
) -> None:
    def a_long_time() -> None:
        panel.passes()
        settle_newest(was_paid=False)
        panel.dies("pay_bonuses", after=True)
        with pytest.raises(Killed):
            money.pay_owed(fresh())

    panel.meanwhile("pay_bonuses", a_long_time)
    with pytest.raises(StateRefused, match="so that people were paid twice"):
        money.pay_owed(late)
    first, second = PaymentBatch.objects.order_by("pk")
    assert (first.state, second.state, second.needs_a_person) == (State.PAID, State.SENT, True)
    assert (len(fake.paid), money.committed(late.study), money.owed(late)) == (4, 1000, [])


def test_what_the_panel_refused_after_somebody_said_it_was_paid_is_not_sent_again_and_is_shown(
    late: Posting, fake: FakeProlific, panel: Panel
) -> None:
    def a_long_time() -> None:
        panel.passes()
        settle_newest(was_paid=True)
        raise PanelRefused("no such participant")

    panel.meanwhile("pay_bonuses", a_long_time)
    with pytest.raises(PanelRefused):
        money.pay_owed(late)
    batch = PaymentBatch.objects.get()
    assert (batch.state, fake.paid, money.owed(late)) == (State.PAID, [], [])
    assert batch.error == "a person said how it ended, and then the panel answered: no such participant"


def test_an_error_of_a_plug_in_while_paying_leaves_the_outcome_unknown(
    late: Posting, fake: FakeProlific, panel: Panel
) -> None:
    panel.fails("pay_bonuses", KeyError("somebody"))
    with pytest.raises(KeyError):
        money.pay_owed(late)
    batch = PaymentBatch.objects.get()
    assert batch.state == State.UNKNOWN and "KeyError" in batch.error and "somebody" not in batch.error
    panel.passes()
    settle_newest(was_paid=False)
    assert len(money.owed(late)) == 2


def test_points_and_pay_are_those_of_the_file_in_force_and_not_of_the_one_the_caller_read(
    late: Posting, fake: FakeProlific
) -> None:
    mine = fresh()
    assert mine.study.config.panel.spending_cap == 10_000
    text = cast.study_text(
        panel={**cast.PROLIFIC, **PAY, "spending_cap": 700}, sitting={"items": 1}, stages=[{"sittings": 6}]
    )
    amending.amend(fresh().study, text=text, source_name="new.toml", reason="less money")
    with pytest.raises(StateRefused, match="200 more would make 800 of 700"):
        money.pay_owed(mine)
    assert fake.paid == []


# Asking for a return


@pytest.fixture
def unfinished(fake: FakeProlific) -> Posting:
    """Two people handed in without finishing."""
    posting = posted()
    for _person in range(2):
        place = arrives(fake, posting)
        begins(posting.study, place, until="item")
        fake.submit(place["id"], None)
    read_posting(posting)
    return posting


def requests(fake: FakeProlific) -> list[int]:
    """How often each submission was asked about."""
    asked = [path for method, path in fake.calls if method == "POST" and path.endswith("/request-return/")]
    return sorted(asked.count(path) for path in set(asked))


def test_of_two_who_ask_for_returns_at_once_each_person_hears_one(
    unfinished: Posting, fake: FakeProlific, panel: Panel
) -> None:
    others = []
    panel.meanwhile("ask_to_return", lambda: others.append(reconciliation.ask_back(fresh())))
    assert reconciliation.ask_back(unfinished) == 1 and others == [1]
    assert requests(fake) == [1, 1]
    assert set(Submission.objects.values_list("pending", flat=True)) == {""}


def test_a_request_that_the_panel_refused_is_made_again(unfinished: Posting, fake: FakeProlific, panel: Panel) -> None:
    panel.fails("ask_to_return", PanelRefused("no"))
    with pytest.raises(PanelRefused):
        reconciliation.ask_back(unfinished)
    assert Submission.objects.filter(asked_back_at__isnull=True, pending="").count() == 1
    assert reconciliation.ask_back(unfinished) == 1
    assert requests(fake) == [1, 1]


@pytest.mark.parametrize("how", ["lost", "died"])
def test_a_request_of_which_nobody_knows_is_never_made_again_and_a_person_looks(
    unfinished: Posting, fake: FakeProlific, panel: Panel, how: str
) -> None:
    if how == "lost":
        fake.lose_next_answer("/request-return/")
    else:
        panel.dies("ask_to_return")
    with pytest.raises((PanelUnreachable, Killed)):
        reconciliation.ask_back(unfinished)
    reconciliation.ask_back(unfinished)
    assert reconciliation.ask_back(unfinished) == 0 and max(requests(fake)) == 1
    panel.passes()
    for row in fake.submissions.values():
        row["return_requested"] = None  # A panel that does not say whether it asked.
    read_posting(unfinished)
    (looked,) = reconciliation.reconcile(unfinished).to(Action.LOOK)
    assert "a return was asked for at" in looked.why and "look there whether the request arrived" in looked.why
    assert looked.submission is not None and looked.submission.pending == "ask_back"
    reconciliation.settle_difference(looked.submission, "It was there.")
    assert reconciliation.reconcile(unfinished).to(Action.LOOK) == []
    fake.give_up(next(row["id"] for row in fake.submissions.values() if row["status"] == "AWAITING REVIEW"))
    for row in fake.submissions.values():
        fake.give_up(row["id"])
    read_posting(unfinished)
    assert set(Submission.objects.values_list("pending", flat=True)) == {""}
    assert reconciliation.reconcile(unfinished).differences == []


# Rejecting and approving


@pytest.fixture
def finished(fake: FakeProlific) -> Submission:
    """Somebody who finished and waits for review."""
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    return Submission.objects.select_related("posting__study").get()


def rejects(row: Submission, **more: Any) -> None:
    reconciliation.reject(row, category="LOW_EFFORT", message=WHY, **more)


def status_at(fake: FakeProlific) -> str:
    (submission,) = fake.submissions.values()
    return str(submission["status"])


@pytest.mark.parametrize("after", [False, True])
def test_who_rejects_whom_and_why_is_stored_before_the_panel_is_asked(
    finished: Submission, fake: FakeProlific, panel: Panel, after: bool
) -> None:
    somebody = User.objects.create_user("somebody")
    panel.dies("reject", after=after)
    with pytest.raises(Killed):
        rejects(finished, by=somebody)
    row = Submission.objects.get()
    assert (row.pending, row.rejection_category, row.rejection_message) == ("reject", "LOW_EFFORT", WHY)
    entry = AuditEntry.objects.get(action="reject_submission")
    assert (entry.actor, entry.detail) == (actor_of(somebody), {"category": "LOW_EFFORT", "reason": WHY})
    posting = fresh()
    (waits,) = reconciliation.reconcile(posting).findings
    assert waits.judgement.action == Action.WAIT and "a rejection was sent" in waits.why
    with pytest.raises(StateRefused, match="to reject it, and has not answered"):
        rejects(row)
    assert reconciliation.approve_finished(posting) == 0
    read_posting(posting)
    row.refresh_from_db()
    if after:
        assert (row.pending, row.status, row.resolution) == ("", "REJECTED", "rejected by us: LOW_EFFORT")
        assert row.rejected_at is not None and reconciliation.reconcile(posting).differences == []
        return
    assert (row.pending, row.rejected_at) == ("reject", None), "the call may still be under way"
    panel.passes()
    read_posting(posting)
    row.refresh_from_db()
    assert (row.pending, row.rejected_at, row.resolution) == ("", None, "")
    rejects(row)
    assert (status_at(fake), row.status, row.pending) == ("REJECTED", "REJECTED", "")


def test_a_rejection_that_the_panel_refused_leaves_nothing_open(
    finished: Submission, fake: FakeProlific, panel: Panel
) -> None:
    panel.fails("reject", PanelRefused("no"))
    with pytest.raises(PanelRefused):
        rejects(finished)
    row = Submission.objects.get()
    assert (row.pending, row.rejected_at, row.resolution) == ("", None, "")
    assert AuditEntry.objects.get(action="reject_submission_failed").detail == {"why": "no"}
    assert reconciliation.approve_finished(fresh()) == 1


def test_of_two_who_reject_at_once_one_does(finished: Submission, fake: FakeProlific, panel: Panel) -> None:
    refusals = []

    def the_other() -> None:
        with pytest.raises(StateRefused, match="has not answered") as refused:
            rejects(Submission.objects.select_related("posting__study").get())
        refusals.append(refused)

    panel.meanwhile("reject", the_other)
    rejects(finished)
    assert len(refusals) == 1 and finished.rejected_at is not None
    assert AuditEntry.objects.filter(action="reject_submission").count() == 1


def test_who_rejects_while_the_panels_answer_is_being_stored_rejects_nothing(
    finished: Submission, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember = reconciliation._remember
    refusals = []

    def the_other_first(row: Submission, status: str, **done: Any) -> None:
        with pytest.raises(StateRefused, match="has not answered") as refused:
            rejects(Submission.objects.select_related("posting__study").get())
        refusals.append(refused)
        remember(row, status, **done)

    monkeypatch.setattr(reconciliation, "_remember", the_other_first)
    rejects(finished)
    finished.refresh_from_db()
    assert len(refusals) == 1 and (finished.status, finished.pending) == ("REJECTED", "")
    assert AuditEntry.objects.filter(action="reject_submission").count() == 1


def test_nobody_is_approved_while_a_rejection_is_under_way(
    finished: Submission, fake: FakeProlific, panel: Panel
) -> None:
    approved = []
    panel.meanwhile("reject", lambda: approved.append(reconciliation.approve_finished(fresh())))
    rejects(finished)
    assert approved == [0] and status_at(fake) == "REJECTED"


def test_a_decision_of_one_who_looked_before_the_rejection_is_not_carried_out(
    finished: Submission, fake: FakeProlific, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = reconciliation.reconcile(fresh())
    assert len(report.to(Action.APPROVE)) == 1
    panel.dies("reject")
    with pytest.raises(Killed):
        rejects(finished)
    monkeypatch.setattr(reconciliation, "reconcile", lambda posting: report)
    assert reconciliation.approve_finished(fresh()) == 0
    assert status_at(fake) == "AWAITING REVIEW"


def test_a_reading_that_began_before_the_approval_does_not_undo_it(
    finished: Submission, fake: FakeProlific, panel: Panel
) -> None:
    posting = fresh()
    account = ProlificAccount.submissions

    def read_and_then_approve(client: ProlificAccount, external_id: str) -> Any:
        rows = list(account(client, external_id))
        assert reconciliation.approve_finished(fresh()) == 1
        return rows

    panel.patch.setattr(ProlificAccount, "submissions", read_and_then_approve)
    read_posting(posting)
    row = Submission.objects.get()
    assert (row.status, row.approved_at is not None) == ("APPROVED", True)


def test_an_approval_is_stored_before_the_panel_is_asked_and_may_be_repeated(
    finished: Submission, fake: FakeProlific, panel: Panel
) -> None:
    panel.fails("approve", PanelRefused("no"))
    with pytest.raises(PanelRefused):
        reconciliation.approve_finished(fresh())
    assert Submission.objects.get().approved_at is None
    panel.fails("approve", lost())
    with pytest.raises(PanelUnreachable):
        reconciliation.approve_finished(fresh())
    assert Submission.objects.get().approved_at is not None, "it may be approved"
    Submission.objects.update(approved_at=None)
    panel.dies("approve")
    with pytest.raises(Killed):
        reconciliation.approve_finished(fresh())
    assert Submission.objects.get().approved_at is not None
    assert reconciliation.approve_finished(fresh()) == 0, "a reading says first whether it was done"
    panel.passes()
    read_posting(fresh())
    assert reconciliation.approve_finished(fresh()) == 1
    assert status_at(fake) == Submission.objects.get().status == "APPROVED"
