"""What a study has cost: the same here and at the panel, to the cent, with fees and VAT; what the panel says before it
is published; publishing later; and the group of those who took part."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.contracts.panels import (
    PanelIds,
    PanelRefused,
    PanelUnreachable,
    PayAdvice,
    PostingCost,
    PreparedBonuses,
    Wallet,
)
from survey.exceptions import EntryRefused, FileErrors, HunchError, PayTooLow, StateRefused
from survey.fees import FeeRates
from survey.models import AuditEntry, Payment, PaymentBatch, Posting, Response, Score, Sitting, Study, Submission
from survey.panels import accounts, demographics, groups, inviting, money, posting_checks, postings, reconciliation
from survey.panels.accounts import account_of, advice_of
from survey.panels.postings import Move
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import WORKSPACE, Breakage, FakeProlific
from survey.panels.prolific.panel import Prolific
from survey.panels.reconciliation import Action
from survey.panels.submissions import read_posting
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, find_sitting
from survey.services.sittings.entry import arrive
from survey.services.sittings.expiry import expire_sittings
from survey.services.sittings.hourly_pay import hourly_pay
from survey.services.sittings.identities import seal
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.studies import amending
from tests import cast

from .test_contract_with_prolific import SCREENER
from .test_entry import HOST, given
from .world import PAY, arrives, begins, ids_of, posted, sits, stored_posting, stored_submission

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PEOPLE = 30
RETURNING = 15
PARTS = ("5f0000000000000000000001", "5f0000000000000000000002")
FATES = (
    *("finishes", "scores", "finishes", "screened_out", "finishes", "late", "fails_checks", "returns", "scores"),
    *("finishes", "late_with_points", "no_code", "leaves", "finishes", "rejected"),
)


@pytest.fixture
def dear(fake: FakeProlific, settings: Any) -> FakeProlific:
    """A panel with fees that leave parts of a cent, and a workspace that can be asked."""
    fake.fee, fake.vat = Decimal("0.333"), Decimal("0.2")
    settings.HUNCH_PROLIFIC_WORKSPACE = WORKSPACE
    return fake


@pytest.mark.parametrize(
    ("rates", "cents", "fee", "vat"),
    [
        (FeeRates(3330, 2000), 100, 33, 7),
        (FeeRates(3330, 2000), 4500, 1499, 300),  # 1498.5
        (FeeRates(4280, 2000), 137, 59, 12),  # 58.636, 11.8
        (FeeRates(5000, 0), 1, 1, 0),  # Half a cent.
        (FeeRates(), 10_000, 0, 0),
    ],
)
def test_fees_are_whole_cents(rates: FeeRates, cents: int, fee: int, vat: int) -> None:
    assert (rates.fee_on(cents), rates.vat_on(cents), rates.on(cents)) == (fee, vat, fee + vat)


# The life of a study


def goes_through(fake: FakeProlific, posting: Posting, number: int, fate: str) -> None:
    study, part = posting.study, PARTS[number % 2]
    place = fake.take_place(posting.external_id, part=part, reserve=True)
    assert place is not None
    fake.enter(place["id"])
    visitor = arrive(study, given(place), host=HOST)
    assert visitor is not None
    sitting = begin_sitting(study=study, ids=visitor.ids)
    if fate == "screened_out":
        end = advance(sitting=sitting, step=cast.walk(sitting, until="form").number, data={"adult": "No"})
        fake.submit(place["id"], end.code)
        return
    advance(sitting=sitting, step=cast.walk(sitting, until="form").number, data={"adult": "Yes"})
    if fate == "fails_checks":
        step = cast.walk(sitting, until="checks")
        for _ in range(2):
            step = advance(sitting=sitting, step=step.number, data=cast.wrong_answers_for(step))
        fake.submit(place["id"], study.completion_code("failed_checks"))
        return
    if fate == "leaves":
        fake.give_up(place["id"])
        return
    cast.walk(sitting)
    if fate in ("scores", "late_with_points"):
        response = Response.objects.filter(assignment__sitting=sitting).earliest("pk")
        Score.objects.create(response=response, value="1.7", rule="r", version="1")
    if fate.startswith("late"):
        fake.time_out(place["id"])
        return
    fake.submit(place["id"], None if fate == "no_code" else study.completion_code("completed"))
    if fate == "returns":
        fake.give_up(place["id"])


@pytest.mark.slow
def test_many_people_cost_the_same_here_and_at_the_panel(dear: FakeProlific) -> None:
    """Quotas, screen-outs, bonuses, rejections, returns, and a second wave of those who finished."""
    blocks = cast.BASE["blocks"]
    weights = {"filter_id": "sex", "selected_values": ["0", "1"], "weightings": {"0": 1, "1": 1}}
    study = cast.open_study(
        panel={
            **cast.PROLIFIC, "reward": 137, "spending_cap": 30_000, "filters": [weights], "bonus_per_point": 7,
            "screen_out_pay": 23, "screen_out_places": 9, "participant_group": "took part",
        },
        blocks=[*blocks[:2], SCREENER, *blocks[2:]],
        sitting={"items": 1},
        stages=[{"sittings": PEOPLE}, {"sittings": PEOPLE, "wave": 2}],
        waves=[{"after_days": 14, "open_days": 7}],
    )  # fmt: skip
    posting = postings.publish(postings.draft(study.stages.get(index=1), places=PEOPLE - 5, root="http://testserver"))
    assert dear.studies[posting.external_id]["study_type"] == "QUOTA"
    rates = FeeRates(3330, 2000)
    assert posting.fees == rates and posting.people_cost == (PEOPLE - 5) * 137 + 9 * 23
    assert money.committed(study) == posting.people_cost + rates.on(posting.people_cost)
    postings.add_places(posting, 5)
    happened: Counter[str] = Counter()
    for number in range(PEOPLE):
        fate = FATES[number % len(FATES)]
        goes_through(dear, posting, number, fate)
        happened[fate] += 1
    (report,) = reconciliation.read_and_reconcile(study)
    assert len(report.findings) == PEOPLE
    waiting = posting.submissions.filter(status="AWAITING REVIEW", respondent__isnull=False)
    by_id = {money.ids_of(row).submission: row for row in waiting}
    places = list(dear.submissions.values())
    for number in range(PEOPLE):
        if FATES[number % len(FATES)] == "rejected":
            row = by_id[places[number]["id"]]
            reconciliation.reject(row, category="LOW_EFFORT", message="Every page was answered in one second. " * 4)
    approved = reconciliation.approve_finished(posting)
    assert approved == happened["finishes"] + happened["scores"] + happened["no_code"]
    reconciliation.ask_back(posting)
    dear.follow_requests()
    read_posting(posting)
    batches = money.pay_owed(posting)
    assert [batch.state for batch in batches] == ["paid"] * len(batches) and money.owed(posting) == []
    # A second payment, with a rounding of its own.
    goes_through(dear, posting, 0, "late")
    read_posting(posting)
    money.pay_owed(posting)
    read_posting(posting)
    posting = Posting.objects.select_related("study", "stage").get()
    account = account_of(posting)
    points = happened["scores"] + happened["late_with_points"]
    lates = happened["late"] + happened["late_with_points"] + 1
    assert account.here.rewards == approved * 137 + happened["screened_out"] * 23
    assert account.here.bonuses == lates * 137 + points * 12  # 1.7 points at 7 cents.
    assert account.there == account.here and account.difference == 0
    assert account.here.total <= money.committed(study)
    # And it is what left the wallet.
    cost = dear._cost(dear.studies[posting.external_id])
    assert account.here.total == sum(row["amount"] for part in cost.values() for row in part.values())
    # The group holds everybody who has begun here, by whichever end.
    (group,) = dear.groups.values()
    assert group["people"] == {row["participant_id"] for row in dear.submissions.values()}
    _come_back(dear, posting, cost_before=account.here.total)


def _come_back(dear: FakeProlific, first: Posting, *, cost_before: int) -> None:
    """Who finished is invited after two weeks, unless rejected or returned. The second wave has a posting, an account
    and a rounding of its own."""
    study = first.study
    Sitting.objects.filter(state="complete").update(ended_at=timezone.now() - timedelta(days=15))
    jobs.run_inline(lifecycle.close_stage(study.stages.get(index=1), now=True))
    lifecycle.open_stage(study.stages.get(index=2))
    not_there = first.submissions.filter(status__in=["REJECTED", "RETURNED"], respondent__isnull=False)
    complete = Sitting.objects.filter(state="complete")
    finished = complete.exclude(respondent__in=not_there.values("respondent")).count()
    assert RETURNING < finished < complete.count()
    assert inviting.invite(study, 2).invited == finished
    (people,) = (row["people"] for row in dear.groups.values() if row["name"].endswith("wave 2"))
    second = postings.publish(postings.draft(study.stages.get(index=2), places=RETURNING, root="http://testserver"))
    came: Counter[str] = Counter()
    for number, person in enumerate(sorted(people)[:RETURNING]):
        place = dear.take_place(second.external_id, person=person)
        assert place is not None
        visitor = arrive(study, given(place), host=HOST)
        assert visitor is not None
        sitting = begin_sitting(study=study, ids=visitor.ids)
        fate = ("finishes", "late", "finishes", "screened_out", "leaves")[number % 5]
        came[fate] += 1
        if fate == "leaves":
            dear.give_up(place["id"])
            continue
        adult = "No" if fate == "screened_out" else "Yes"
        end = advance(sitting=sitting, step=cast.walk(sitting, until="form").number, data={"adult": adult})
        if fate == "late":
            dear.time_out(place["id"])
        end = end if fate == "screened_out" else cast.walk(sitting)
        dear.submit(place["id"], end.code)
    read_posting(second)
    assert reconciliation.approve_finished(second) == came["finishes"]
    read_posting(second)
    money.pay_owed(second)
    accounts = []
    for posting in (first, second):
        read_posting(posting)
        accounts.append(account_of(Posting.objects.select_related("study", "stage").get(pk=posting.pk)))
    assert [account.difference for account in accounts] == [0, 0]
    assert accounts[0].here.total == cost_before, "what happens in the second wave changes nothing of the first"
    assert accounts[1].here.rewards == came["finishes"] * 137 + came["screened_out"] * 23
    assert accounts[1].here.bonuses == came["late"] * 137
    costs = [part for row in dear.studies.values() for part in dear._cost(row).values()]
    charged = sum(row["amount"] for part in costs for row in part.values())
    assert sum(account.here.total for account in accounts) == charged <= money.committed(study)
    assert not [finding for report in reconciliation.read_and_reconcile(study) for finding in report.to(Action.PAY)]


def test_a_difference_is_said_in_cents(dear: FakeProlific) -> None:
    posting = posted()
    place = arrives(dear, posting)
    begins(posting.study, place)
    dear.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    dear.approve_in_part(place["id"])
    read_posting(posting)
    posting = Posting.objects.select_related("study").get()
    assert account_of(posting).in_part == 1
    posting.panel_facts["spent"]["rewards"] = 40
    assert account_of(posting).sentence == (
        "the panel counts 0.60 less; 1 were paid in part there, and here with the whole reward"
    )
    posting.panel_facts = {}
    assert "has not said" in account_of(posting).sentence


def test_an_account_that_cannot_be_added_up_is_said_and_never_summed(
    dear: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    posting = posted()
    place = arrives(dear, posting)
    begins(posting.study, place)
    dear.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    reconciliation.approve_finished(posting)

    def said(rewards: Any, **more: Any) -> str:
        monkeypatch.setattr(dear, "_cost", lambda study, projected=False: {"rewards": rewards, **more})
        read_posting(posting)
        return account_of(Posting.objects.select_related("study").get()).sentence

    amount = {"amount": 100, "currency": "USD"}
    assert "'storage_fee' that is not known here" in said({"rewards": amount, "storage_fee": amount}, bonuses=None)
    assert "no fees that can be read" in said({"rewards": amount, "fees": {"amount": "lots"}}, bonuses=None)
    euros = {"amount": 40, "currency": "EUR"}
    assert "cannot be added up" in said({"rewards": amount, "fees": euros}, bonuses=None)
    assert said({"rewards": {"amount": 100, "currency": "EUR"}}, bonuses=None) == (
        "the panel counts in EUR, and here in USD: not compared"
    )
    fees = {"fees": {**amount, "amount": 33}, "tax": {**amount, "amount": 7}}
    assert said({"rewards": amount, **fees, "rep_sample_fees": None}, bonuses=None) == (
        "the same here and at the panel, to the cent"
    )
    dear.keeper.faults.clear()  # type: ignore[attr-defined] - Prolific never says such things


@pytest.mark.parametrize(
    ("quote", "fees"),
    [
        ({"total_cost": 13_996_000}, FeeRates(3996, 0)),
        ({"total_cost": 13_996_000, "fees": 1, "vat": None}, FeeRates(3996, 0)),  # Parts that do not add up.
        ({"total_cost": 13_996_000, "fees": 3_330_000, "vat": 666_000}, FeeRates(3330, 2000)),
        ({"total_cost": 100}, FeeRates(4280, 2000)),  # Less than the rewards.
        ({"total_cost": None}, FeeRates(4280, 2000)),
        ({}, FeeRates(4280, 2000)),
    ],
)
def test_fees_are_learnt_from_what_adds_up(
    dear: FakeProlific, monkeypatch: pytest.MonkeyPatch, quote: dict[str, Any], fees: FeeRates
) -> None:
    monkeypatch.setattr(dear, "_quote", lambda cents: quote)
    monkeypatch.setattr(dear, "_balance", lambda: {"available_balance": "none", "currency_code": "USD"})
    assert posted().fees == fees, "and a balance that cannot be read stops nothing"
    dear.keeper.faults.clear()  # type: ignore[attr-defined]


# Before publishing


def test_fees_count_under_the_cap(dear: FakeProlific) -> None:
    posting = posted(publish=False, spending_cap=839)  # 600, 200 as fee, 40 as VAT.
    with pytest.raises(StateRefused, match="840 more would make 840 of 839 cents, the panel's fees and VAT included"):
        postings.publish(posting)
    assert dear.studies[posting.external_id]["status"] == "UNPUBLISHED"
    study = posting.study
    study.stored_config["panel"]["spending_cap"] = 840
    study.save()
    posting = Posting.objects.select_related("study", "stage").get()
    assert postings.publish(posting).committed == 840
    with pytest.raises(StateRefused, match="140 more would make 980 of 840"):
        postings.add_places(posting, 1)


def test_bonuses_count_with_their_fees(dear: FakeProlific) -> None:
    posting = posted(spending_cap=979)
    place = arrives(dear, posting)
    begins(posting.study, place)
    dear.time_out(place["id"])
    read_posting(posting)
    with pytest.raises(StateRefused, match="140 more would make 980 of 979"):
        money.pay_owed(posting)
    assert dear.paid == [] and not PaymentBatch.objects.exists()


@pytest.mark.parametrize(("said", "state"), [(30, "paid"), (40, "paid"), (41, "refused")])
def test_what_the_panel_says_that_bonuses_cost_stands(
    dear: FakeProlific, monkeypatch: pytest.MonkeyPatch, said: int, state: str
) -> None:
    """It may be another sum than ours. Where it goes over the cap, nothing is paid."""
    posting = posted(spending_cap=980)
    place = arrives(dear, posting)
    begins(posting.study, place)
    dear.time_out(place["id"])
    read_posting(posting)
    prepare = ProlificAccount.prepare_bonuses

    def prepared(self: ProlificAccount, *args: Any) -> PreparedBonuses:
        return replace(prepare(self, *args), fees=said)

    monkeypatch.setattr(ProlificAccount, "prepare_bonuses", prepared)
    if state == "refused":
        with pytest.raises(StateRefused, match="1 more would make 981 of 980"):
            money.pay_owed(posting)
    else:
        money.pay_owed(posting)
    batch = PaymentBatch.objects.get()
    assert (batch.state, len(dear.paid)) == (state, 0 if state == "refused" else 1)
    assert money.committed(posting.study) == (840 if state == "refused" else 940 + said)


def test_without_a_breakdown_fee_and_vat_are_one_rate(dear: FakeProlific) -> None:
    dear.has_breakdown = False
    assert posted(publish=False).fees == FeeRates(3996, 0)


@pytest.mark.parametrize("how", [Breakage.FAILS, Breakage.REFUSED])
def test_where_the_fee_cannot_be_asked_the_highest_is_reckoned_with(dear: FakeProlific, how: Breakage) -> None:
    dear.break_next("study-cost-calculator", how, times=4)
    posting = posted(publish=False)
    assert posting.fees == Prolific.highest_fees == FeeRates(4280, 2000)
    dear._broken.clear()
    assert postings.publish(posting).fees == FeeRates(3330, 2000), "it is asked again before publishing"


def test_the_fee_of_a_representative_sample_counts_too(dear: FakeProlific, capsys: Any) -> None:
    posting = posted(representative_sample="US_REP_SAMPLE")
    assert posting.draft["study_type"] == "US_REP_SAMPLE" and posting.fixed_fee == 3000
    assert posting.committed == 600 + 240 + 3000 == dear.balance - dear._available()
    call_command("posting", posting.study.slug, "cost")
    assert "and 30.00 USD for the representative sample" in capsys.readouterr().out


def test_nothing_is_published_that_the_account_cannot_pay(dear: FakeProlific) -> None:
    posting = posted(publish=False)
    dear.balance = 839
    with pytest.raises(StateRefused, match=r"has 8\.39 USD, and 8\.40 are needed"):
        postings.publish(posting)
    assert money.committed(posting.study) == 0
    dear.balance = 840
    postings.publish(posting)
    drafts = {"draft": {**dear.studies[posting.external_id], "status": "UNPUBLISHED"}}
    dear.studies = {**drafts, **dear.studies}  # A draft holds none of the money that others hold.
    with pytest.raises(StateRefused, match=r"has 0\.00 USD, and 1\.40 are needed"):
        postings.add_places(posting, 1)
    dear.balance = 980
    assert postings.add_places(posting, 1).places == 7


def test_an_account_in_another_currency_is_refused(dear: FakeProlific) -> None:
    posting = posted(publish=False)
    dear.currency = "GBP"
    with pytest.raises(StateRefused, match=r"panel\.currency: cast counts in USD, and the panel in GBP"):
        postings.publish(posting)


def test_a_study_in_another_currency_is_not_taken_up(dear: FakeProlific) -> None:
    posting = posted(publish=False)
    made = {**dear.studies[posting.external_id], "id": "5f00000000000000000000aa", "currency_code": "GBP"}
    dear.studies[made["id"]] = made
    with pytest.raises(StateRefused, match=r"counts in USD, and the panel in GBP"):
        postings.adopt(posting.stage, made["id"])


@pytest.fixture
def in_pounds(fake: FakeProlific) -> FakeProlific:
    """An account that counts in pounds and, without a workspace, cannot be asked for its balance."""
    fake.currency = "GBP"
    return fake


OTHER_CURRENCY = r"panel\.currency: cast counts in USD, and the panel in GBP"


def test_a_draft_in_another_currency_is_refused_until_the_file_says_it(in_pounds: FakeProlific) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1}, stages=[{"sittings": 6}])
    for _time in range(2):
        with pytest.raises(StateRefused, match=OTHER_CURRENCY):
            postings.draft(study.stages.get(index=1), root="http://testserver")
        assert len(in_pounds.studies) == 1, "it is found again and refused again"
    row = Posting.objects.get()
    assert (row.external_id, row.pending) == ("", "")
    text = cast.study_text(
        panel={**cast.PROLIFIC, **PAY, "reward": 79, "currency": "GBP"}, sitting={"items": 1}, stages=[{"sittings": 6}]
    )
    amending.amend(study, text=text, source_name="new.toml", reason="the account counts in pounds")
    stage = Study.objects.get().stages.get(index=1)
    made = postings.publish(postings.draft(stage, root="http://testserver"))
    assert (made.pk, made.currency, made.reward, made.committed) == (row.pk, "GBP", 79, 6 * 79)
    assert in_pounds.studies[made.external_id]["reward"] == 79, "not the draft that was made for other sums"


def test_an_account_that_can_be_asked_refuses_another_currency_before_anything_is_drafted(dear: FakeProlific) -> None:
    dear.currency = "GBP"
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1}, stages=[{"sittings": 6}])
    with pytest.raises(StateRefused, match=OTHER_CURRENCY):
        postings.draft(study.stages.get(index=1), root="http://testserver")
    assert not dear.studies and not Posting.objects.exists()


def test_a_lost_draft_that_counts_in_another_currency_follows_the_file(fake: FakeProlific) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1}, stages=[{"sittings": 6}])
    fake.currency = "GBP"
    fake.break_next("/studies/", Breakage.ANSWER_LOST, method="POST")
    with pytest.raises(PanelUnreachable):
        postings.draft(study.stages.get(index=1), root="http://testserver")
    changed = {
        "panel": {**cast.PROLIFIC, **PAY, "currency": "GBP"},
        "sitting": {"items": 1},
        "stages": [{"sittings": 6}],
    }
    amending.amend(study, text=cast.study_text(**changed), source_name="new.toml", reason="pounds")
    made = postings.draft(Study.objects.get().stages.get(index=1), root="http://testserver")
    assert (made.currency, len(fake.studies)) == ("GBP", 1)


def test_nothing_is_published_scheduled_enlarged_or_paid_in_another_currency(fake: FakeProlific) -> None:
    """Without a workspace nobody can ask for the balance: the study at the panel says its currency."""
    waiting = posted(publish=False)
    fake.studies[waiting.external_id]["currency_code"] = "GBP"
    with pytest.raises(StateRefused, match=OTHER_CURRENCY):
        postings.publish(waiting)
    with pytest.raises(StateRefused, match=OTHER_CURRENCY):
        postings.schedule(waiting, timezone.now() + timedelta(days=1))
    assert fake.studies[waiting.external_id]["status"] == "UNPUBLISHED" and Posting.objects.get().committed == 0
    fake.studies[waiting.external_id]["currency_code"] = "USD"
    running = postings.publish(waiting)
    place = arrives(fake, running)
    begins(running.study, place)
    fake.time_out(place["id"])
    read_posting(running)
    fake.studies[running.external_id]["currency_code"] = "GBP"
    with pytest.raises(StateRefused, match=OTHER_CURRENCY):
        postings.add_places(running, 1)
    with pytest.raises(StateRefused, match=OTHER_CURRENCY):
        money.pay_owed(running)
    assert not fake.paid and not PaymentBatch.objects.exists() and Posting.objects.get().places == 6


def test_the_balance_in_another_currency_is_not_shown_as_ours(dear: FakeProlific) -> None:
    posting = posted(publish=False)
    dear.currency = "GBP"
    read_posting(posting)
    assert advice_of(posting).balance is None


# The sum that was agreed to


def test_a_fee_that_changed_since_is_asked_again(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    agreed = posting.cost
    fake.fee, fake.vat = Decimal("0.333"), Decimal("0.2")
    for act in (
        lambda: postings.publish(posting, cents=agreed),
        lambda: postings.schedule(posting, timezone.now() + timedelta(days=1), cents=agreed),
    ):
        with pytest.raises(StateRefused, match=r"it costs 8\.40 USD now, and 6\.00 USD was agreed to"):
            act()
    row = Posting.objects.get()
    assert (row.committed, row.cost, fake.studies[row.external_id]["status"]) == (0, 840, "UNPUBLISHED")
    assert postings.publish(posting, cents=840).committed == 840


def test_what_was_raised_at_the_panel_since_is_asked_again(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    at_panel = fake.studies[posting.external_id]
    at_panel["reward"], at_panel["total_available_places"] = 150, 8
    with pytest.raises(StateRefused, match=r"it costs 12\.00 USD now, and 6\.00 USD was agreed to"):
        postings.publish(posting, cents=600)
    assert Posting.objects.get().committed == 0
    assert postings.publish(posting, cents=1200).committed == 1200


def test_more_places_cost_what_the_panel_says_now(fake: FakeProlific) -> None:
    posting = posted(spending_cap=990)
    fake.fee, fake.vat = Decimal("0.333"), Decimal("0.2")
    with pytest.raises(StateRefused, match=r"279 more would make 1119 of 990"):
        postings.add_places(posting, 2)
    assert fake.studies[posting.external_id]["total_available_places"] == 6
    assert Posting.objects.get().committed == 840, "of the places offered before, the dearer fees count"
    with pytest.raises(StateRefused, match=r"it costs 1\.40 USD now, and 1\.00 USD was agreed to"):
        postings.add_places(posting, 1, cents=100)
    assert postings.add_places(posting, 1, cents=140).committed == 980


def test_cheaper_fees_do_not_make_places_cheaper_that_were_offered_before(fake: FakeProlific) -> None:
    fake.fee = Decimal("0.5")
    posting = posted()
    fake.fee = Decimal("0.1")
    assert posting.committed == 900
    assert postings.add_places(posting, 1, cents=150).committed == 1050


def test_places_added_meanwhile_are_asked_again(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    postings.add_places(Posting.objects.select_related("study", "stage").get(), 1)
    with pytest.raises(StateRefused, match=r"it costs 7\.00 USD now"):
        postings.publish(posting, cents=600)
    postings.publish(posting, cents=700)
    with pytest.raises(StateRefused, match=r"it costs 2\.00 USD now, and 1\.00 USD was agreed"):
        postings.add_places(posting, 2, cents=100)


def test_fees_that_the_panel_could_not_say_are_asked_again_later(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    read_posting(posting)
    fake.break_next("calculator", Breakage.FAILS, times=4)
    postings.publish(posting)
    assert Posting.objects.get().fees == Prolific.highest_fees
    read_posting(posting)
    assert (Posting.objects.get().fees, posting.committed) == (FeeRates(), 600)


def test_who_finished_or_is_owed_since_is_asked_again(fake: FakeProlific) -> None:
    posting = posted()

    def finishes(*, late: bool) -> None:
        place = arrives(fake, posting)
        begins(posting.study, place)
        fake.time_out(place["id"]) if late else fake.submit(place["id"], posting.study.completion_code("completed"))
        read_posting(posting)

    for late in (False, True) * 2:
        finishes(late=late)
    with pytest.raises(StateRefused, match=r"it costs 2\.00 USD now, and 1\.00 USD was agreed"):
        reconciliation.approve_finished(posting, cents=100)
    with pytest.raises(StateRefused, match=r"it costs 2\.00 USD now, and 1\.00 USD was agreed"):
        money.pay_owed(posting, cents=100)
    assert not fake.paid and not posting.submissions.filter(status="APPROVED").exists()
    assert reconciliation.approve_finished(posting, cents=200) == 2
    assert sum(batch.payments.count() for batch in money.pay_owed(posting, cents=200)) == 2


def test_a_balance_that_cannot_be_read_stops_nothing(dear: FakeProlific, settings: Any) -> None:
    """Prolific itself refuses what its wallet does not hold."""
    settings.HUNCH_PROLIFIC_WORKSPACE = ""
    posting = posted(publish=False)
    assert not [path for _method, path in dear.calls if "balance" in path]
    dear.balance = 0
    with pytest.raises(HunchError, match="are needed, and 0 are there"):
        postings.publish(posting)
    assert money.committed(posting.study) == 0


def test_the_panel_says_balance_pay_and_time_before_publishing(dear: FakeProlific) -> None:
    dear.balance, dear.recommended = 500, 2100
    posting = posted(publish=False)
    read_posting(posting)
    advice = advice_of(posting)
    assert (advice.balance, advice.recommended, advice.is_said, advice.hours) == (500, 2100, True, 0.12)
    checks_by_title = {
        check.title: check for check in posting_checks.checks(posting.stage, places=6, reward=100, posting=posting)
    }
    assert "has 5.00, and 8.40 USD are needed" in checks_by_title["The account at the panel has enough"].problem
    pay = checks_by_title["An hour is paid as the panel recommends"]
    assert "20.00 USD an hour, and the panel recommends 21.00 for this account" in pay.problem and not pay.stops
    dear.balance, dear.recommended = 840, 2000
    read_posting(posting)
    just_enough = posting_checks.checks(posting.stage, places=6, reward=100, posting=Posting.objects.get())
    problems = {check.title: check.problem for check in just_enough}
    assert not problems[pay.title] and not problems["The account at the panel has enough"]


def test_the_minimum_that_the_panel_says_stands_in_the_place_of_the_general_one(dear: FakeProlific) -> None:
    dear.minimum = 2050
    posting = posted(publish=False)
    assert hourly_pay(posting.study).minimum == 800  # type: ignore[union-attr]
    read_posting(posting)
    assert hourly_pay(posting.study).minimum == 2050  # type: ignore[union-attr]
    with pytest.raises(PayTooLow, match=r"20\.00 USD an hour .* minimum is 20\.50"):
        postings.publish(posting)


def test_a_group_needs_a_place(fake: FakeProlific) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY, "participant_group": "took part"})
    with pytest.raises(PanelRefused, match=r"panel\.participant_group: name the project too"):
        postings.draft(study.stages.get(index=1), root="http://testserver")


def test_where_pay_cannot_be_asked_the_general_recommendation_stands_in(fake: FakeProlific) -> None:
    posting = posted(publish=False, reward=50)
    read_posting(posting)
    advice = advice_of(posting)
    assert (advice.balance, advice.recommended, advice.is_said) == (None, 1200, False)
    checks_by_title = {
        check.title: check for check in posting_checks.checks(posting.stage, places=6, reward=50, posting=posting)
    }
    assert "recommends 12.00 in general" in checks_by_title["An hour is paid as the panel recommends"].problem


def told(*args: str) -> str:
    out = StringIO()
    call_command("posting", "cast", *args, stdout=out)
    return out.getvalue()


def test_the_command_says_what_it_costs(dear: FakeProlific) -> None:
    posting = posted(publish=False)
    before = told("cost")
    assert "it may cost 8.40 USD, with the panel's fee of 33.3 %, and 20 % VAT on it" in before
    assert "in the account at the panel: 100000.00 USD" in before and "0.1 hours, says the panel" in before
    postings.publish(posting)
    place = arrives(dear, posting)
    begins(posting.study, place)
    dear.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    reconciliation.approve_finished(posting)
    after = told("cost")
    assert "committed 8.40 USD of 100.00" in after and "the same here and at the panel, to the cent" in after
    assert " 1.40" in after


# Publishing later


def test_a_scheduled_posting_counts_at_once_and_can_be_taken_back(dear: FakeProlific) -> None:
    posting = posted(publish=False)
    at = timezone.now() + timedelta(days=2)
    assert "is SCHEDULED" in told("schedule", "--at", at.isoformat())
    study = dear.studies[posting.external_id]
    assert study["status"] == "SCHEDULED" and study["publish_at"] == at.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert money.committed(posting.study) == 840
    assert AuditEntry.objects.get(action="publish_posting").detail["at"] == at.isoformat()
    with pytest.raises(StateRefused, match="was published before"):
        postings.publish(Posting.objects.select_related("study", "stage").get())
    assert "is UNPUBLISHED" in told("unschedule")
    posting = Posting.objects.select_related("study", "stage").get()
    assert (posting.publish_at, money.committed(posting.study), study["status"]) == (None, 0, "UNPUBLISHED")
    with pytest.raises(StateRefused, match="only what is scheduled"):
        postings.unschedule(posting)


def test_a_scheduled_posting_becomes_active_by_itself(dear: FakeProlific) -> None:
    posting = posted(publish=False)
    postings.schedule(posting, timezone.now() + timedelta(days=2))
    dear.reach_the_time()
    read_posting(posting)
    assert posting.state == "ACTIVE" and money.committed(posting.study) == 840
    postings.change(posting, Move.PAUSE)


def test_the_time_may_have_to_stand_in_the_study(dear: FakeProlific) -> None:
    dear.time_in_study = True
    posting = posted(publish=False)
    at = timezone.now() + timedelta(days=2)
    postings.schedule(posting, at)
    study = dear.studies[posting.external_id]
    assert (posting.state, study["publish_at"]) == ("SCHEDULED", at.strftime("%Y-%m-%dT%H:%M:%SZ"))


def test_a_schedule_for_another_time_is_taken_back(dear: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the panel takes no notice of the time that it was given."""
    posting = posted(publish=False)
    transition = dear._transition

    def scheduled(study: dict[str, Any], action: Any) -> dict[str, Any]:
        return {**transition(study, action), "publish_at": "2026-01-01T00:00:00Z"}

    monkeypatch.setattr(dear, "_transition", scheduled)
    with pytest.raises(PanelRefused, match="it took 1 January 2026, 00:00 UTC instead; taken back"):
        postings.schedule(posting, timezone.now() + timedelta(days=2))
    assert dear.studies[posting.external_id]["status"] == "UNPUBLISHED"
    assert money.committed(posting.study) == 0 and Posting.objects.get().pending == ""


@pytest.mark.parametrize(
    ("at", "words"),
    [("soon", "is no time"), ("2027-01-31T09:00", "has no time zone"), ("2020-01-31T09:00+00:00", "is past")],
)
def test_a_time_that_cannot_be_meant_is_refused(
    dear: FakeProlific, at: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    posted(publish=False)
    with pytest.raises(SystemExit):
        told("schedule", "--at", at)
    assert words in capsys.readouterr().err


def test_a_study_that_publishes_slowly_becomes_active_with_the_next_reading(dear: FakeProlific) -> None:
    dear.slow = True
    posting = posted()
    assert posting.state == "PUBLISHING"
    read_posting(posting)
    read_posting(posting)
    assert posting.state == "ACTIVE" and posting.pending == ""


# The group of those who took part


def stages_of(fake: FakeProlific, **panel: Any) -> tuple[Study, Posting]:
    study = cast.open_study(
        panel={**cast.PROLIFIC, **PAY, **panel}, sitting={"items": 1}, stages=[{"sittings": 2}, {"sittings": 2}]
    )
    return study, postings.publish(postings.draft(study.stages.get(index=1), places=4, root="http://testserver"))


def test_who_found_it_full_may_come_to_a_later_stage_and_who_took_part_may_not(dear: FakeProlific) -> None:
    study, posting = stages_of(dear, participant_group="took part")
    finisher, leaver, late = arrives(dear, posting), arrives(dear, posting), arrives(dear, posting)
    begins(study, finisher)
    dear.submit(finisher["id"], study.completion_code("completed"))
    begin_sitting(study=study, ids=ids_of(leaver))
    with pytest.raises(HunchError, match="All places"):
        begin_sitting(study=study, ids=ids_of(late))
    dear.submit(late["id"], study.completion_code("study_full"))
    (key, group), = dear.groups.items()  # fmt: skip
    assert group["people"] == {finisher["participant_id"]}, "by the code alone"
    dear.give_up(leaver["id"])
    read_posting(posting)
    assert group["people"] == {finisher["participant_id"], leaver["participant_id"]}
    calls = len(dear.calls)
    read_posting(posting)
    assert not [path for _method, path in dear.calls[calls:] if "participant-groups" in path], "nobody is added twice"
    second = postings.draft(study.stages.get(index=2), root="http://testserver")
    sent = dear.studies[second.external_id]
    assert sent["filters"] == [{"filter_id": "participant_group_blocklist", "selected_values": [key]}]
    sent["status"] = "ACTIVE"
    assert dear.take_place(second.external_id, person=finisher["participant_id"]) is None
    assert dear.take_place(second.external_id, person=leaver["participant_id"]) is None
    assert dear.take_place(second.external_id, person=late["participant_id"]) is not None
    assert len(dear.groups) == 1, "it is found again by its name"


def test_who_agreed_and_then_found_it_full_may_come_to_a_later_stage_too(dear: FakeProlific) -> None:
    """They are in no group, and the door lets them in as somebody who has not begun. Both visits are paid for."""
    study, posting = stages_of(dear, participant_group="took part", turned_away_pay=30)
    slow = arrives(dear, posting)
    sitting = begins(study, slow, until="checks")
    read_posting(posting)
    (group,) = dear.groups.values()
    assert group["people"] == set(), "anyone who has no items yet may still find it full"
    expire_sittings(now=timezone.now() + timedelta(days=1))
    for place in (arrives(dear, posting), arrives(dear, posting)):
        begins(study, place)
        dear.submit(place["id"], study.completion_code("completed"))
    jobs.run_inline(lifecycle.close_stage(study.stages.get(index=1), now=True))
    assert cast.walk(begin_sitting(study=study, ids=ids_of(slow))).outcome == "study_full"
    dear.submit(slow["id"], study.completion_code("study_full"))
    dear.give_up(slow["id"])
    read_posting(posting)
    assert slow["participant_id"] not in group["people"] and len(group["people"]) == 2
    lifecycle.open_stage(study.stages.get(index=2))
    second = postings.publish(postings.draft(study.stages.get(index=2), root="http://testserver"))
    again = dear.take_place(second.external_id, person=slow["participant_id"])
    assert again is not None
    visitor = arrive(study, given(again), host=HOST)
    assert visitor is not None
    assert find_sitting(study, ids_of(slow)) == sitting, "the submission of then still shows how it ended"
    fresh = begins(study, again)
    dear.submit(again["id"], study.completion_code("completed"))
    read_posting(second)
    assert (fresh.state, fresh.stage.index, fresh.respondent.came_before) == ("complete", 2, sitting.respondent)
    assert begin_sitting(study=study, ids=ids_of(again)) == fresh
    with pytest.raises(HunchError, match="taken part"):
        find_sitting(study, replace(ids_of(again), submission="0" * 24))
    assert [payment.amount for payment in money.owed(posting)] == [30]
    assert second.submissions.get().respondent == fresh.respondent
    assert posting.submissions.filter(respondent=sitting.respondent).count() == 1
    withdraw(respondent=fresh.respondent, now=timezone.now())
    sitting.refresh_from_db()
    assert sitting.withdrawn_at is not None, "all that the person gave, also then"


def test_who_left_before_the_items_and_then_found_it_full_leaves_the_group(dear: FakeProlific) -> None:
    study, posting = stages_of(dear, participant_group="took part")
    slow = arrives(dear, posting)
    begins(study, slow, until="checks")
    expire_sittings(now=timezone.now() + timedelta(days=1))
    read_posting(posting)
    (group,) = dear.groups.values()
    assert group["people"] == {slow["participant_id"]}, "the door knows them: they have a sitting to go on with"
    for place in (arrives(dear, posting), arrives(dear, posting)):
        begins(study, place)
    assert cast.walk(begin_sitting(study=study, ids=ids_of(slow))).outcome == "study_full"
    dear.break_next("/participants/", Breakage.ANSWER_LOST, method="DELETE", times=4)
    with pytest.raises(PanelUnreachable):
        read_posting(posting)
    read_posting(posting)
    assert slow["participant_id"] not in group["people"] and len(group["people"]) == 2
    calls = len(dear.calls)
    read_posting(posting)
    assert not [path for _method, path in dear.calls[calls:] if "participant-groups" in path]


def test_a_study_of_several_stages_has_a_group_by_itself(dear: FakeProlific) -> None:
    study, posting = stages_of(dear)
    assert [row["name"] for row in dear.groups.values()] == ["cast took part"] and posting.group in dear.groups
    dear.break_next("participant-groups", Breakage.REFUSED, times=4)
    second = postings.draft(study.stages.get(index=2), root="http://testserver")
    filters = {study["filter_id"]: study["selected_values"] for study in dear.studies[second.external_id]["filters"]}
    assert filters == {"previous_studies_blocklist": [posting.external_id]}, (
        "where there can be none, the list stands in"
    )


def test_a_posting_from_before_the_group_is_blocked_by_its_id(dear: FakeProlific) -> None:
    study, posting = stages_of(dear, participant_group="took part")
    Posting.objects.update(group="")
    second = postings.draft(study.stages.get(index=2), root="http://testserver")
    names = {study["filter_id"]: study["selected_values"] for study in dear.studies[second.external_id]["filters"]}
    assert names["previous_studies_blocklist"] == [posting.external_id]
    assert names["participant_group_blocklist"] == [second.group]


@pytest.mark.parametrize(("group", "cannot"), [("g", ""), ("g", "remove_from_group"), ("g", "add_to_group"), ("", "")])
def test_who_is_put_into_the_group_and_taken_out(db: None, group: str, cannot: str) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    posting = stored_posting(study, group=group)
    submissions = {
        name: stored_submission(
            posting,
            None if name == "never here" else sits(study, state, **({"booklet": None} if "early" in name else {})),
            "ACTIVE",
            ids_encrypted=b"" if name == "forgotten" else seal(PanelIds("prolific", name, "s", name)).encode(),
            grouped_at=timezone.now() if "grouped" in name else None,
        )
        for name, state in (
            ("done", "complete"), ("grouped", "complete"), ("forgotten", "complete"), ("never here", ""),
            ("early", "live"), ("early expired", "expired"), ("early grouped", "turned_away"),
        )
    }  # fmt: skip
    calls = []
    client: Any = SimpleNamespace(
        can=lambda what: what != cannot,
        add_to_group=lambda *call: calls.append(("add", *call)),
        remove_from_group=lambda *call: calls.append(("remove", *call)),
    )
    does_something = group and cannot != "add_to_group"
    assert groups.feed(posting, client) == (2 if does_something else 0)
    taken_out = [] if cannot == "remove_from_group" else [("remove", "g", ["early grouped"])]
    assert calls == ([*taken_out, ("add", "g", ["done", "early expired"])] if does_something else [])
    in_it = {name for name, row in submissions.items() if Submission.objects.get(pk=row.pk).grouped_at}
    stays = {"grouped", "early grouped"} if not does_something or not taken_out else {"grouped"}
    assert in_it == stays | ({"done", "early expired"} if does_something else set())


def test_people_who_could_not_be_added_are_added_with_the_next_reading(dear: FakeProlific) -> None:
    study, posting = stages_of(dear, participant_group="took part")
    begins(study, arrives(dear, posting))
    dear.break_next("/participants/", Breakage.FAILS, times=4)
    with pytest.raises(PanelUnreachable):
        read_posting(posting)
    assert not posting.submissions.filter(grouped_at__isnull=False).exists()
    read_posting(posting)
    assert [len(group["people"]) for group in dear.groups.values()] == [1]
    assert posting.submissions.filter(grouped_at__isnull=False).count() == 1


def test_a_group_whose_answer_got_lost_is_found_by_its_name(dear: FakeProlific) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY, "participant_group": "took part", "project": "p1"})
    dear.break_next("participant-groups", Breakage.ANSWER_LOST, method="POST")
    with pytest.raises(PanelUnreachable):
        postings.draft(study.stages.get(index=1), root="http://testserver")
    made = postings.draft(study.stages.get(index=1), root="http://testserver")
    assert list(dear.groups) == [made.group]


# What the study file says


def test_warnings_go_out_as_the_panel_takes_them(dear: FakeProlific) -> None:
    sent = posted(publish=False, content_warning="sensitive", content_warning_details="It names a disease.").draft
    assert (sent["content_warnings"], sent["content_warning_details"]) == (["sensitive"], "It names a disease.")
    assert "content_warnings" not in posted_other(dear)


def posted_other(fake: FakeProlific) -> dict[str, Any]:
    study = cast.open_study(slug="other", panel={**cast.PROLIFIC, **PAY})
    return postings.draft(study.stages.get(index=1), root="http://testserver").draft


@pytest.mark.parametrize(
    ("panel", "words"),
    [
        ({"representative_sample": "MARS"}, "representative_sample"),
        ({"representative_sample": "US_REP_SAMPLE", "filter_set": "s"}, "takes no filters next to it"),
        ({"content_warning_details": "blood"}, "say of which kind"),
        ({"content_warning": "loud"}, "content_warning"),
        ({"participant_group": ""}, "participant_group"),
    ],
)
def test_what_cannot_be_meant_is_refused(panel: dict[str, Any], words: str) -> None:
    with pytest.raises(FileErrors, match=words):
        cast.open_study(panel={**cast.PROLIFIC, **PAY, **panel})


# Later waves


def test_a_wave_is_posted_for_those_who_were_invited(dear: FakeProlific) -> None:
    study = cast.open_study(
        panel={**cast.PROLIFIC, **PAY, "participant_group": "took part", "project": "p1"},
        sitting={"items": 1},
        stages=[{"sittings": 3}, {"sittings": 3, "wave": 2}],
        waves=[{"after_days": 14, "open_days": 7}],
    )
    posting = postings.publish(postings.draft(study.stages.get(index=1), places=3, root="http://testserver"))
    early, late, leaver = (arrives(dear, posting) for _person in range(3))
    for place in (early, late):
        begins(study, place)
        dear.submit(place["id"], study.completion_code("completed"))
    begin_sitting(study=study, ids=ids_of(leaver))
    read_posting(posting)
    finished = Sitting.objects.filter(state="complete").order_by("pk")
    Sitting.objects.filter(pk=finished[0].pk).update(ended_at=timezone.now() - timedelta(days=15))
    invited = inviting.invite(study, 2)
    assert (invited.invited, invited.later) == (1, 1)
    inviting.invite(study, 2)
    assert [row["people"] for row in dear.groups.values() if row["name"].endswith("wave 2")] == [
        {early["participant_id"]}
    ]
    jobs.run_inline(lifecycle.close_stage(study.stages.get(index=1), now=True))
    lifecycle.open_stage(study.stages.select_related("study__bank").get(index=2))
    second = postings.publish(postings.draft(study.stages.get(index=2), root="http://testserver"))
    assert second.wave == 2
    filters = {study["filter_id"]: study["selected_values"] for study in dear.studies[second.external_id]["filters"]}
    assert filters == {"participant_group_allowlist": [second.invited_group]}
    assert dear.take_place(second.external_id, person=late["participant_id"]) is None
    place = dear.take_place(second.external_id, person=early["participant_id"])
    assert place is not None
    sitting = begins(study, place)
    dear.submit(place["id"], study.completion_code("completed"))
    read_posting(second)
    assert (sitting.wave, second.submissions.get().respondent_id) == (2, sitting.respondent_id)
    # The person's two participations are two to pay, and the cap counts the places of both waves.
    assert {row.respondent_id for row in posting.submissions.all()} >= {sitting.respondent_id}
    assert money.committed(study) == posting.committed + Posting.objects.get(pk=second.pk).committed
    table = demographics.read_demographics(study)
    assert (len(table.rows), table.unknown) == (3, 0), "each person once, in whichever waves they came"
    assert len(reconciliation.reconcile(second).findings) == 1


def test_who_was_rejected_is_not_invited_until_that_is_taken_back(dear: FakeProlific) -> None:
    study = cast.open_study(
        panel={**cast.PROLIFIC, **PAY, "participant_group": "took part", "project": "p1"},
        sitting={"items": 1},
        stages=[{"sittings": 4}, {"sittings": 4, "wave": 2}],
        waves=[{"after_days": 0, "open_days": 7}],
    )
    posting = postings.publish(postings.draft(study.stages.get(index=1), places=4, root="http://testserver"))
    good, rejected, back, slow = (arrives(dear, posting) for _person in range(4))
    for place in (good, rejected, back, slow):
        begins(study, place)
    for place in (good, rejected):
        dear.submit(place["id"], study.completion_code("completed"))
    dear.submissions[rejected["id"]]["status"] = "REJECTED"
    dear.give_up(back["id"])
    dear.submissions[slow["id"]]["status"] = "TIMED-OUT"
    read_posting(posting)
    assert inviting.invite(study, 2).invited == 2
    (people,) = [row["people"] for row in dear.groups.values() if row["name"].endswith("wave 2")]
    assert people == {good["participant_id"], slow["participant_id"]}
    jobs.run_inline(lifecycle.close_stage(study.stages.get(index=1), now=True))
    lifecycle.open_stage(study.stages.select_related("study__bank").get(index=2))
    again = replace(ids_of(rejected), submission="0" * 24)
    with pytest.raises(HunchError, match="was accepted"):
        begin_sitting(study=study, ids=again)
    dear.submissions[rejected["id"]]["status"] = "APPROVED"
    read_posting(posting)
    inviting.invite(study, 2)
    assert rejected["participant_id"] in people and back["participant_id"] not in people
    assert begin_sitting(study=study, ids=again).wave == 2


def test_the_fixed_fee_is_spent_once_somebody_is_paid(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY, "screen_out_pay": 20, "screen_out_places": 5})
    posting = stored_posting(study, fee_rate=3330, vat_rate=2000, fixed_fee=3000)
    for status in ("RETURNED", "AWAITING REVIEW", "REJECTED", "TIMED-OUT", "odd"):
        stored_submission(posting, None, status)
    assert account_of(posting).here == PostingCost(0, 0, 0, "USD")
    for status in ("APPROVED", "PARTIALLY APPROVED", "SCREENED OUT"):
        stored_submission(posting, None, status)
    assert account_of(posting).here == PostingCost(220, 0, 73 + 15 + 3000, "USD")
    assert account_of(posting).in_part == 1
    row = posting.submissions.first()
    for number, state in enumerate(("paid", "refused", "unknown", "prepared", "paid")):
        batch = PaymentBatch.objects.create(posting=posting, state=state, sent_at=timezone.now(), fees=10 + number)
        Payment.objects.create(batch=batch, submission=row, kind="late", amount=1 + number, is_void=True)
    assert account_of(posting).here == PostingCost(220, 1 + 5, 73 + 15 + 3000 + 10 + 14, "USD")


def test_who_is_screened_out_costs_what_was_declared_to_the_panel(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY, "screen_out_pay": 20, "screen_out_places": 5})
    action = {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 35, "slots": 5}
    posting = stored_posting(study, draft={"completion_codes": [{"actions": [{"action": "x"}, action]}]})
    stored_submission(posting, None, "SCREENED OUT")
    assert account_of(posting).here.rewards == 35


@pytest.mark.parametrize("earlier", [True, False])
def test_an_account_is_behind_once_something_was_paid_after_the_reading(db: None, earlier: bool) -> None:
    now = timezone.now()
    at = now - timedelta(minutes=1) if earlier else now + timedelta(minutes=1)
    posting = stored_posting(cast.open_study(panel={**cast.PROLIFIC, **PAY}), read_at=now)
    row = stored_submission(posting, None, "APPROVED", approved_at=at)
    assert account_of(posting).is_behind is not earlier
    row.approved_at = None
    row.save()
    assert not account_of(posting).is_behind
    batch = PaymentBatch.objects.create(posting=posting, state="refused", sent_at=now, settled_at=at)
    assert not account_of(posting).is_behind, "nothing was paid by it"
    PaymentBatch.objects.filter(pk=batch.pk).update(state="paid")
    assert account_of(posting).is_behind is not earlier
    Posting.objects.filter(pk=posting.pk).update(read_at=None)
    assert account_of(Posting.objects.get()).is_behind


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ({"rewards": 210, "fees": 5}, "the panel counts 0.15 more"),
        ({"rewards": 90}, "the panel counts 1.10 less"),
        ({"rewards": 210, "currency": ""}, "the panel counts 0.10 more"),
        ({"rewards": 200}, "the same here and at the panel, to the cent"),
        ({"rewards": 200, "currency": "GBP"}, "the panel counts in GBP, and here in USD: not compared"),
    ],
)
def test_a_difference_is_said_with_its_sign(db: None, there: dict[str, Any], words: str) -> None:
    said = {"rewards": 0, "bonuses": 0, "fees": 0, "currency": "USD", **there}
    posting = stored_posting(
        cast.open_study(panel={**cast.PROLIFIC, **PAY}), read_at=timezone.now(), panel_facts={"spent": said}
    )
    for _person in range(2):
        stored_submission(posting, None, "APPROVED")
    assert account_of(posting).sentence == words


def test_what_the_panel_says_of_money_is_asked_when_it_matters_and_kept_where_it_cannot_be_asked(db: None) -> None:
    stored_posting(cast.open_study(panel={**cast.PROLIFIC, **PAY}), state="UNPUBLISHED", published_at=None)
    says: dict[str, Any] = {
        "fees": FeeRates(3000, 2000, 7), "wallet": Wallet(500, "USD"), "pay_advice": PayAdvice(800, 1200, "USD"),
        "recruitment_hours": 1.5, "spent": PostingCost(1, 2, 3, "USD"),
    }  # fmt: skip
    asked: list[str] = []

    def answers(call: str) -> Any:
        def answer(*_facts: Any) -> Any:
            asked.append(call)
            if isinstance(says[call], Exception):
                raise says[call]
            return says[call]

        return answer

    client: Any = SimpleNamespace(can=lambda call: call in says, **{call: answers(call) for call in says})

    def read() -> tuple[list[str], dict[str, Any]]:
        asked.clear()
        accounts.read(Posting.objects.get(), client)
        facts = dict(Posting.objects.get().panel_facts)
        facts.pop("at", None)
        return list(asked), facts

    advice = {"balance": 500, "recommended": 1200, "minimum": 800, "hours": 1.5, "fees": True}
    assert read() == (["fees", "wallet", "pay_advice", "recruitment_hours"], advice)
    assert Posting.objects.get().fees == FeeRates(3000, 2000, 7)
    says |= {"wallet": Wallet(900, "GBP"), "pay_advice": PayAdvice(1, 2, "GBP"), "recruitment_hours": 2.0}
    advice |= {"balance": None, "hours": 2.0}
    assert read() == (["wallet", "pay_advice", "recruitment_hours"], advice), "fees are asked once"
    Posting.objects.update(state="ACTIVE")
    spent = {"rewards": 1, "bonuses": 2, "fees": 3, "currency": "USD"}
    assert read() == (["spent"], {**advice, "spent": spent, "spent_error": ""})
    says["spent"] = PanelUnreachable("no answer")
    assert read() == (["spent"], {**advice, "spent": spent, "spent_error": "no answer"})
    says["spent"] = PostingCost(4, 0, 0, "USD")
    assert read()[1]["spent"]["rewards"] == 4 and account_of(Posting.objects.get()).why_not_read == ""
    del says["spent"]
    assert read()[0] == []


def test_who_withdrew_before_the_items_is_and_stays_in_the_group(dear: FakeProlific) -> None:
    """The door knows them, and lets nobody in again who took their answers back."""
    study, posting = stages_of(dear, participant_group="took part")
    places = [arrives(dear, posting) for _ in range(2)]
    sittings = [begins(study, place, until="checks") for place in places]
    read_posting(posting)
    (group,) = dear.groups.values()
    assert group["people"] == set()
    withdraw(respondent=sittings[0].respondent, now=timezone.now())
    Sitting.objects.filter(pk=sittings[1].pk).update(state="turned_away", ended_at=timezone.now())
    read_posting(posting)
    assert group["people"] == {places[0]["participant_id"]}
    Sitting.objects.filter(pk=sittings[1].pk).update(state="failed_checks")
    read_posting(posting)
    read_posting(posting)
    assert group["people"] == {place["participant_id"] for place in places}


def test_who_found_no_place_and_took_the_answers_back_comes_into_the_group_as_the_door_refuses_them(
    dear: FakeProlific,
) -> None:
    study, posting = stages_of(dear, participant_group="took part")
    places = [arrives(dear, posting) for _ in range(2)]
    for sitting in [begins(study, place, until="checks") for place in places]:
        Sitting.objects.filter(pk=sitting.pk).update(state="turned_away", ended_at=timezone.now())
    read_posting(posting)
    (group,) = dear.groups.values()
    assert group["people"] == set()
    withdraw(respondent=Sitting.objects.order_by("pk")[0].respondent, now=timezone.now())
    assert Sitting.objects.order_by("pk")[0].state == "turned_away"
    read_posting(posting)
    assert group["people"] == {places[0]["participant_id"]}
    back = [{**place, "id": f"again-{number}"} for number, place in enumerate(places)]
    with pytest.raises(EntryRefused, match="before"):
        begins(study, back[0])
    assert begins(study, back[1]).state == "complete"
