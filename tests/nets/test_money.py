"""Money from a posting to its last payment: after each act what changed, what is committed, owed and to be done.

    python -m tests.renew money

writes the texts in `data/money` again.
"""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from survey.contracts.panels import PanelIds
from survey.models import PaymentBatch, Posting, Respondent, Response, Score, Sitting, Study
from survey.panels import accounts, inviting, money, owed_list, postings, purging, reconciliation, submissions
from survey.panels.postings import Move
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import WORKSPACE, Breakage, FakeProlific
from survey.services.base.auditing import record
from survey.services.sittings import expiry, withdrawal
from survey.services.stages import jobs, lifecycle
from survey.services.studies import amending
from tests import cast
from tests.panels.conftest import fake, signing_key
from tests.panels.world import ids_of

from .recording import Script, script

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.any_database]
__all__ = ["fake", "script", "signing_key"]

OUTCOMES = (Breakage.LOST, Breakage.ANSWER_LOST, Breakage.GARBAGE, Breakage.REFUSED)
ROOT = "http://testserver"
PANEL: dict[str, Any] = {**cast.PROLIFIC, "reward": 100, "spending_cap": 10_000}


@pytest.fixture(autouse=True)
def workspace(settings: Any) -> None:
    """Where the panel holds the groups of people, and whose money is spent."""
    settings.HUNCH_PROLIFIC_WORKSPACE = WORKSPACE


class Ledger:
    """A script about one study's money."""

    def __init__(self, script: Script, fake: FakeProlific, **overrides: Any) -> None:
        self.script, self.fake = script, fake
        self.overrides = {"panel": PANEL, "sitting": {"items": 1}, "stages": [{"sittings": 6}], **overrides}
        self.study = script.prepare(lambda: cast.open_study(**self.overrides))

    def act(self, title: str, do: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Do it, and write the ledger below."""
        result = self.script.act(title, partial(do, *args, **options))
        self.script.lines += [f"   = {self.script.clean(line)}" for line in self.lines()]
        return result

    def lines(self) -> list[str]:
        lines = [f"committed {money.committed(self.study)}"]
        for posting in self.study.postings.order_by("pk"):
            lines.append(
                f"posting {posting.pk}: {posting.state} {posting.places} places, cost {posting.cost},"
                f" one more {postings.cost_of_more(posting, 1)}; {accounts.account_of(posting).sentence};"
                f" spent {accounts.spent_here(posting).total}"
            )
            lines += [f"owed {due.kind} {due.amount} to submission {due.submission.pk}" for due in money.owed(posting)]
            reconciled = reconciliation.reconcile(posting)
            to_approve = reconciliation.cost_of_approving(reconciled)
            lines.append(f"owed in all {reconciled.owed_cents}; to approve {to_approve}")
            for finding in reconciled.findings:
                submission = "-" if finding.submission is None else finding.submission.pk
                said = f"{finding.judgement.action}: {finding.why}"
                lines.append(f"submission {submission} {finding.ours}, {finding.theirs}: {said}")
        return lines

    @property
    def posting(self) -> Posting:
        return Posting.objects.select_related("study__bank", "stage__study").filter(study=self.study).latest("pk")

    def post(self, **options: Any) -> None:
        self.act("draft", postings.draft, self.study.stages.get(index=1), root=ROOT, **options)
        self.act("publish", lambda: postings.publish(self.posting))

    def arrives(self) -> dict[str, Any]:
        place = self.fake.take_place(self.posting.external_id)
        assert place is not None
        return place

    def comes(self, title: str, *, until: str = "end", fails: bool = False, points: str = "", code: str = "") -> Any:
        """Somebody takes part up to a step, and hands in the code of that outcome."""
        place = self.arrives()

        def take_part() -> None:
            sitting = cast.begin(self.study, ids_of(place))
            step = cast.walk(sitting, until="checks" if fails else until)
            for _attempt in range(2 * fails):
                step = cast.advance(sitting=sitting, step=step.number, data=cast.wrong_answers_for(step))
            if points:
                response = Response.objects.filter(assignment__sitting=sitting).earliest("pk")
                Score.objects.create(response=response, value=points, rule="r", version="1")
            if code:
                self.fake.submit(place["id"], self.study.completion_code(code))

        self.script.act(title, take_part, rows=False)
        return place

    def read(self) -> None:
        self.act("read", lambda: str(submissions.read_posting(self.posting)))


def test_from_a_draft_to_the_last_bonus(script: Script, fake: FakeProlific) -> None:
    fake.fee, fake.vat = Decimal("0.25"), Decimal("0.2")
    ledger = Ledger(script, fake, panel={**PANEL, "bonus_per_point": 7, "turned_away_pay": 30})
    ledger.post(places=8)
    ledger.comes("finishes with points", points="2.5", code="completed")
    late = ledger.comes("finishes late", points="1.5")
    ledger.comes("fails", fails=True, code="failed_checks")
    ledger.comes("is inside", until="item")
    gone = ledger.comes("gives up", until="item")
    ledger.comes("finishes without a code", code="study_full")
    fake.time_out(late["id"])
    fake.give_up(gone["id"])
    ledger.read()
    ledger.act("approve", lambda: str(reconciliation.approve_finished(ledger.posting)))
    ledger.act("approve again", lambda: str(reconciliation.approve_finished(ledger.posting)))
    ledger.act("ask back", lambda: str(reconciliation.ask_back(ledger.posting)))
    row = ledger.posting.submissions.order_by("pk")[2]
    ledger.act("reject", reconciliation.reject, row, category="FAILED_CHECK", message="x" * 99)
    ledger.act("reject, with more words", reconciliation.reject, row, category="FAILED_CHECK", message="x" * 100)
    ledger.act("reject, for no reason", reconciliation.reject, row, category="NONE", message="x" * 100)
    ledger.act("settle a difference", reconciliation.settle_difference, row, "We agreed.")
    ledger.act("pay another sum", lambda: money.pay_owed(ledger.posting, cents=1))
    ledger.act("pay", lambda: str(len(money.pay_owed(ledger.posting))))
    ledger.act("pay again", lambda: str(len(money.pay_owed(ledger.posting))))
    script.act("what was paid there", lambda: " ".join(str(amount) for _who, amount in fake.paid))
    ledger.read()
    ledger.act("add places", lambda: postings.add_places(ledger.posting, 2))
    ledger.act("add no places", lambda: postings.add_places(ledger.posting, 0))
    for move in (Move.PAUSE, Move.PAUSE, Move.START, Move.STOP):
        ledger.act(move, lambda move=move: postings.change(ledger.posting, move))
    for who in Sitting.objects.filter(state="complete").order_by("pk")[:1]:
        ledger.act("withdraw", withdrawal.withdraw, respondent=who.respondent, now=timezone.now(), reason="asked")
    ledger.read()
    for days in (0, 30):
        script.clock.shift(days * 24 * 3600)
        ledger.act("read all", lambda: str(submissions.read_all()))
        ledger.act("purge", lambda: str(purging.plan_purge(ledger.study, before=timezone.now(), with_hashes=True)))
    ledger.act("close", lambda: lifecycle.close_stage(cast.stage_of(ledger.study), now=True))
    ledger.act("the work of closing", lambda: jobs.run_inline(cast.stage_of(ledger.study)))
    ledger.act("purge", lambda: str(purging.purge(ledger.study, before=timezone.now(), with_hashes=True)))
    ledger.act("purge who withdrew", lambda: str(purging.purge_withdrawn()))


@pytest.mark.parametrize("how", OUTCOMES, ids=lambda how: how.name.lower())
def test_a_payment_with_an_outcome(script: Script, fake: FakeProlific, how: Breakage) -> None:
    fake.fee = Decimal("0.25")
    ledger = Ledger(script, fake)
    ledger.post()
    for number in range(2):
        place = ledger.comes(f"person {number} finishes late")
        fake.time_out(place["id"])
    ledger.read()
    fake.break_next("bulk-bonus-payments", how, method="POST", times=1)
    for number in range(2):
        ledger.act(f"pay {number}", lambda: str(money.pay_owed(ledger.posting)))
    fake.break_next("/pay/", how, method="POST", times=1)
    ledger.act("pay", lambda: str(money.pay_owed(ledger.posting)))
    script.clock.shift(3600)
    ledger.act("an hour later", lambda: str(money.pay_owed(ledger.posting)))
    for batch in PaymentBatch.objects.order_by("pk"):
        ledger.act("it was not paid", money.settle, batch, was_paid=False)
        ledger.act("it was paid", money.settle, batch, was_paid=True)
    ledger.act("pay", lambda: str(money.pay_owed(ledger.posting)))
    ledger.act("hold", lambda: str(money.hold(ledger.posting, since=timezone.now(), why="restored")))


@pytest.mark.parametrize(
    "how", [Breakage.LOST, Breakage.ANSWER_LOST, Breakage.REFUSED], ids=lambda how: how.name.lower()
)
def test_a_request_to_return(script: Script, fake: FakeProlific, how: Breakage) -> None:
    ledger = Ledger(script, fake)
    ledger.post()
    place = ledger.comes("stops inside", until="item")
    fake.submit(place["id"], None)
    ledger.read()
    fake.break_next("request-return", how, times=3)
    ledger.act(f"ask back, and {how}", lambda: str(reconciliation.ask_back(ledger.posting)))
    fake._broken.clear()
    ledger.act("ask back", lambda: str(reconciliation.ask_back(ledger.posting)))
    script.clock.shift(3600)
    ledger.read()
    ledger.act("ask back", lambda: str(reconciliation.ask_back(ledger.posting)))


@pytest.mark.parametrize("part", ["PUBLISH", "places", "approve"])
def test_a_call_that_gets_lost(script: Script, fake: FakeProlific, part: str) -> None:
    ledger = Ledger(script, fake)
    ledger.act("draft", postings.draft, ledger.study.stages.get(index=1), root=ROOT)
    for how in (Breakage.LOST, Breakage.ANSWER_LOST):
        for path, method in (("transition", "POST"), ("studies", "PATCH"), ("submissions", "POST")):
            fake.break_next(path, how, method=method, times=3)
        if part == "PUBLISH":
            ledger.act(f"publish, and {how}", lambda: postings.publish(ledger.posting))
        else:
            fake._broken.clear()
            if ledger.posting.published_at is None:
                ledger.act("publish", lambda: postings.publish(ledger.posting))
            for path, method in (("studies", "PATCH"), ("submissions", "POST")):
                fake.break_next(path, how, method=method, times=3)
        if part == "places":
            ledger.act(f"add a place, and {how}", lambda: postings.add_places(ledger.posting, 1))
        if part == "approve":
            ledger.comes("finishes", code="completed")
            ledger.read()
            ledger.act(f"approve, and {how}", lambda: str(reconciliation.approve_finished(ledger.posting)))
        fake._broken.clear()
        ledger.read()
        script.clock.shift(3600)
        ledger.read()


@pytest.mark.parametrize("cap", [899, 900, 901])
def test_a_cap(script: Script, fake: FakeProlific, cap: int) -> None:
    """Six places cost 900: 600 for the people, half as much for the panel."""
    fake.fee = Decimal("0.5")
    ledger = Ledger(script, fake, panel={**PANEL, "spending_cap": cap, "bonus_per_point": 1})
    ledger.post()
    ledger.act("publish for fewer", lambda: postings.publish(ledger.posting, cents=899))
    ledger.act("publish for as much", lambda: postings.publish(ledger.posting, cents=900))
    ledger.act("one place more", lambda: postings.add_places(ledger.posting, 1))
    if ledger.posting.published_at is not None:
        late = ledger.comes("finishes late")
        fake.time_out(late["id"])
        ledger.comes("finishes with a point", points="1", code="completed")
        ledger.read()
        ledger.act("approve", lambda: str(reconciliation.approve_finished(ledger.posting)))
        ledger.act("pay", lambda: str(money.pay_owed(ledger.posting)))


def test_a_draft_whose_answer_was_lost(script: Script, fake: FakeProlific) -> None:
    ledger = Ledger(script, fake)
    stage = ledger.study.stages.get(index=1)
    for how in (Breakage.LOST, Breakage.FAILS, Breakage.ANSWER_LOST):
        fake.break_next("studies", how, method="POST", times=3)
        ledger.act(f"draft, and {how}", postings.draft, stage, root=ROOT)
        fake._broken.clear()
        script.clock.shift(3600)
    ledger.act("draft again", postings.draft, stage, root=ROOT)
    script.act("drafts there", lambda: f"{len(fake.studies)}")


def test_who_may_not_be_sent(script: Script, fake: FakeProlific) -> None:
    """Nobody real comes to a study in which simulated people took part, and none of them to one that was posted."""
    ledger = Ledger(script, fake)
    stage = ledger.study.stages.get(index=1)
    ledger.act("a simulated person begins", cast.begin_sitting, study=ledger.study, ids=simulated(1), simulated=True)
    ledger.act("draft", postings.draft, stage, root=ROOT)
    Respondent.objects.update(is_simulated=False)
    ledger.act("draft once more", postings.draft, stage, root=ROOT)
    ledger.act("another one begins", cast.begin_sitting, study=ledger.study, ids=simulated(2), simulated=True)
    ledger.act("publish", lambda: postings.publish(ledger.posting))


def simulated(number: int) -> PanelIds:
    return PanelIds("prolific", f"{number:024x}", "simulated", f"{number:024x}")


def test_one_call_for_each_bonus(script: Script, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProlificAccount, "bonuses_at_once", 1)
    fake.fee = Decimal("0.25")
    ledger = Ledger(script, fake)
    ledger.post(reward=130)
    for number in range(3):
        place = ledger.comes(f"person {number} finishes late")
        fake.time_out(place["id"])
    ledger.read()
    for cents in (389, 390):
        ledger.act(f"pay {cents}", lambda cents=cents: str(money.pay_owed(ledger.posting, cents=cents)))


def test_fees_and_pay_that_change(script: Script, fake: FakeProlific) -> None:
    fake.fee = Decimal("0.25")
    ledger = Ledger(script, fake)
    ledger.act("draft", postings.draft, ledger.study.stages.get(index=1), root=ROOT, places=3, reward=130)
    fake.fee = Decimal("0.333")
    ledger.act("ask the price", lambda: postings.ask_price(ledger.posting))
    ledger.act("publish for the sum before", lambda: postings.publish(ledger.posting, cents=488))
    ledger.act("publish", lambda: postings.publish(ledger.posting))
    for pay in (90, 250):
        text = cast.study_text(**{**ledger.overrides, "panel": {**PANEL, "reward": pay, "turned_away_pay": 20}})
        ledger.act(f"a reward of {pay}", amending.amend, ledger.study, text=text, source_name="n.toml", reason="pay")
    late = ledger.comes("finishes late")
    fake.time_out(late["id"])
    fake.fee = Decimal("0.1")
    ledger.read()
    ledger.act("pay", lambda: str(money.pay_owed(ledger.posting)))
    at = timezone.now() + timedelta(days=2)
    ledger.act("a second posting", postings.draft, ledger.study.stages.get(index=1), root=ROOT, places=1)
    ledger.act("schedule", lambda: postings.schedule(ledger.posting, at))
    ledger.act("unschedule", lambda: postings.unschedule(ledger.posting))
    fake.currency = "GBP"
    ledger.act("publish in another currency", lambda: postings.publish(ledger.posting))


def test_two_waves(script: Script, fake: FakeProlific) -> None:
    ledger = Ledger(
        script, fake, panel={**PANEL, "bonus_per_point": 10}, waves=[{"after_days": 0, "open_days": 9}],
        stages=[{"sittings": 3}, {"sittings": 3, "wave": 2}],
    )  # fmt: skip
    ledger.post()
    people = [ledger.comes(f"person {number} finishes", points="1.5", code="completed") for number in range(2)]
    ledger.read()
    ledger.act("approve", lambda: str(reconciliation.approve_finished(ledger.posting)))
    ledger.act("pay", lambda: str(money.pay_owed(ledger.posting)))
    ledger.act("stop", lambda: postings.change(ledger.posting, Move.STOP))
    ledger.act("close", lambda: lifecycle.close_stage(cast.stage_of(ledger.study), now=True))
    ledger.act("the work of closing", lambda: jobs.run_inline(cast.stage_of(ledger.study)))
    ledger.act("open wave 2", lambda: lifecycle.open_stage(cast.stage_of(ledger.study, 2)))
    ledger.act("draft", postings.draft, ledger.study.stages.get(index=2), root=ROOT)
    ledger.act("publish", lambda: postings.publish(ledger.posting))
    ledger.act("invite", lambda: str(inviting.invite(ledger.study, 2).sentence))
    for number, (until, person) in enumerate(zip(("item", "end"), people, strict=True)):
        place = fake.take_place(ledger.posting.external_id, person=person["participant_id"])
        assert place is not None
        ledger.act(f"person {number} comes again, to {until}", again, ledger.study, place, until)
    ledger.read()
    ledger.act("pay", lambda: str(money.pay_owed(ledger.posting)))
    ledger.act("close", lambda: lifecycle.close_stage(cast.stage_of(ledger.study, 2), now=True))
    ledger.read()


def again(study: Study, place: Any, until: str) -> None:
    cast.walk(cast.begin(study, ids_of(place)), until=until)


def test_a_posting_that_was_made_there(script: Script, fake: FakeProlific) -> None:
    ledger = Ledger(script, fake)
    ledger.act("draft", postings.draft, ledger.study.stages.get(index=1), root=ROOT)
    first = ledger.posting
    made = {**fake.studies[first.external_id], "internal_name": "made there", "id": "f" * 24, "reward": 140}
    fake.studies["f" * 24] = made
    for external_id in ("f" * 24, "f" * 24, "0" * 24, first.external_id):
        ledger.act(f"adopt {external_id}", postings.adopt, ledger.study.stages.get(index=1), external_id)
    ledger.act("publish it", lambda: postings.publish(ledger.posting))
    ledger.act("pause the postings", lambda: str(submissions.pause_postings(cast.stage_of(ledger.study))))


def test_a_list(script: Script) -> None:
    """Where the panel cannot be asked: who is owed what, and what changes it."""
    panel = {"kind": "generic", "reward": 250, "turned_away_pay": 30, "bonus_per_point": 4}
    overrides: dict[str, Any] = {"panel": panel, "sitting": {"items": 1}, "stages": [{"sittings": 2}]}
    study = script.prepare(lambda: cast.open_study(**overrides))

    def listed() -> str:
        rows = owed_list.rows_of(study, owed_list.owed_list(study))
        return "\n".join(str(row) for row in rows) + f"\nwaiting {sorted(owed_list.waiting_for_list(study))}"

    def comes(name: str, until: str) -> None:
        sitting = cast.begin(study, cast.PanelIds("generic", name, "s1", f"tic-{name}"))
        cast.walk(sitting, until=until)
        if until == "end":
            response = Response.objects.filter(assignment__sitting=sitting).earliest("pk")
            Score.objects.create(response=response, value="2.5", rule="r", version="1")

    for name, until in (("a", "checks"), ("b", "end"), ("c", "end")):
        script.act(f"{name} to {until}", partial(comes, name, until), rows=False)
        script.act("the list", listed)
    script.act("a goes on, and finds no place", lambda: cast.walk(Sitting.objects.earliest("pk")), rows=False)
    script.act("the list", listed)
    text = cast.study_text(**{**overrides, "panel": {**panel, "reward": 200, "turned_away_pay": 10}})
    script.act("less pay", partial(amending.amend, study, text=text, source_name="n.toml", reason="less"))
    script.act("the list", listed)
    script.act("the list is taken", lambda: record(owed_list.LISTED, study, via="command"))
    script.act("the list", listed)
    script.act("expire", lambda: str(expiry.expire_sittings()))
