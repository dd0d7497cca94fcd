"""What a study may spend, what it owes, and paying it once. Money is in whole cents or pence.

A payment is stored before the panel is asked. Sometimes it stays unknown whether a call was carried out. Then it is
never repeated: somebody looks at the panel and records what happened. A payment's state moves by conditional updates
alone, so that of two who move it at once one does, and the other one learns of it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet, Sum
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import (
    Bonus,
    PanelCannot,
    PanelClient,
    PanelError,
    PanelIds,
    PreparedBonuses,
    SubmissionStatus,
)
from survey.exceptions import StateRefused
from survey.fees import FeeRates
from survey.figures.words import money
from survey.models import Payment, PaymentBatch, Posting, Score, Sitting, Study, Submission, Withdrawal
from survey.services.base.auditing import record
from survey.services.sittings.identities import unseal

from . import accounts
from .asking import at_time, client_of, longest_call, status_of, words_of

State = PaymentBatch.State
Kind = Payment.Kind
AWAITING_REVIEW = SubmissionStatus.AWAITING_REVIEW


@dataclass(frozen=True)
class Owed:
    """What a person should get in addition to the reward and was not sent yet."""

    submission: Submission
    kind: Payment.Kind
    amount: int


def committed(study: Study) -> int:
    """Cents, with the panel's fees and VAT: all places of published postings at their reward, and every bonus that was
    or may have been paid.

    People beyond the places count too: a panel gives the place of who returned to somebody else, and may then take
    both. So does what the panel charged beyond our rows. A payment that is void counts where its batch was paid all the
    same: the bonus was then paid twice.
    """
    payments = Payment.objects.filter(Q(is_void=False) | Q(batch__state=State.PAID), batch__posting__study=study)
    batches = PaymentBatch.objects.filter(posting__study=study).exclude(state=State.REFUSED)
    bonuses: Counter[int] = Counter()
    for sums in (
        payments.order_by().values_list("batch__posting").annotate(sum=Sum("amount")),
        batches.order_by().values_list("posting").annotate(sum=Sum("fees")),
    ):
        bonuses.update(dict(sums))
    postings = list(study.postings.all())
    statuses = _statuses_of(postings)
    return sum(_committed(posting, statuses[posting.pk], bonuses[posting.pk]) for posting in postings)


def _committed(posting: Posting, statuses: Counter[SubmissionStatus], bonuses: int) -> int:
    if posting.published_at is None:
        return bonuses
    people = sum(number for status, number in statuses.items() if status.is_paid or status == AWAITING_REVIEW)
    beyond = posting.cost_with(posting.fees, more=max(0, people - posting.places)) - posting.cost
    offered = posting.committed + beyond
    rewards = accounts.rewards_here(posting, statuses)
    here = rewards + accounts.fees_on_rewards(posting, rewards) + bonuses
    there = accounts.spent_there(posting)
    if there is None or there.currency not in ("", posting.currency):
        return offered + bonuses
    return offered + bonuses + max(0, there.total - here)


def _statuses_of(postings: Sequence[Posting]) -> dict[int, Counter[SubmissionStatus]]:
    """By posting: how many of its submissions have each status."""
    counts: dict[int, Counter[SubmissionStatus]] = {posting.pk: Counter() for posting in postings}
    panel_of = {posting.pk: panels.find(posting.panel) for posting in postings}
    rows = Submission.objects.filter(posting__in=counts).order_by().values_list("posting", "status")
    for posting, text, number in rows.annotate(number=Count("pk")):
        counts[posting][panel_of[posting].submission_status(text)] += number
    return counts


def fees_expected(study: Study) -> FeeRates:
    """What the panel takes of a posting that is not drafted yet: what it said of the newest one, or else the most that
    it takes."""
    newest = study.postings.order_by("-pk").first()
    highest = panels.of_study(study).highest_fees
    return FeeRates(newest.fee_rate, newest.vat_rate) if newest is not None and newest.fee_rate else highest


def refuse_over_cap(study: Study, extra: int) -> None:
    """
    Raises:
        StateRefused: the study names no cap, or would go over it.
    """
    cap = study.config.panel.spending_cap
    if cap is None:
        raise StateRefused(f"panel.spending_cap: {study.slug} names none, and without one nothing is spent")
    spent = committed(study)
    if spent + extra > cap:
        raise StateRefused(
            f"panel.spending_cap: {extra} more would make {spent + extra} of {cap} cents, the panel's fees and VAT "
            "included; nothing was done"
        )


def refuse_other_currency(study: Study, said: str, currency: str = "") -> None:
    """
    Args:
        said: the currency that the panel names; empty where it names none.
        currency: the posting's; empty for the study's.

    Raises:
        StateRefused: they are not the same, so that each sum would be another one than was agreed to.
    """
    ours = currency or study.config.panel.currency
    if said and said != ours:
        raise StateRefused(
            f"panel.currency: {study.slug} counts in {ours}, and the panel in {said}: write {said} and its sums into "
            "the study file, or use an account in the study's currency; nothing was done"
        )


def refuse_another_sum(now: int, agreed: int | None, currency: str) -> None:
    """
    Raises:
        StateRefused: it does not cost what somebody agreed to.
    """
    if agreed is not None and now != agreed:
        raise StateRefused(
            f"it costs {money(now, currency)} now, and {money(agreed, currency)} was agreed to: look at it "
            "again, and type the new sum; nothing was done"
        )


def locked_study(study: Study) -> Study:
    """The study's row, locked: two processes that spend at once must see each other's spending."""
    return Study.objects.select_for_update(no_key=True).get(pk=study.pk)


def locked_posting(posting: Posting) -> Posting:
    """The posting as it is now, under the lock of its study's row: what was read before may have changed since."""
    study = locked_study(posting.study)
    row = Posting.objects.select_related("stage").get(pk=posting.pk)
    row.study = row.stage.study = study
    return row


def owed(posting: Posting) -> list[Owed]:
    """Who is owed what, each once: people who finished too late, were turned away after consent, or earned points."""
    rows = list(posting.submissions.select_related("respondent").order_by("pk"))
    sittings = sittings_of(posting, rows)
    payments = Payment.objects.filter(submission__posting=posting, is_void=False).exclude(
        batch__in=_never_sent(posting)
    )
    paid = set(payments.values_list("submission_id", "kind"))
    points = promised_points(posting.study, sittings.values())
    bonuses: list[Owed] = []
    for row in rows:
        sitting = sittings.get(row.respondent_id or 0)
        if sitting is None:
            continue
        is_complete = sitting.state == Sitting.State.COMPLETE
        status = status_of(row, posting)
        if is_complete and status == SubmissionStatus.TIMED_OUT:
            bonuses.append(Owed(row, Kind.LATE, posting.reward))
        pay = promised(posting.study, sitting)
        if sitting.state == Sitting.State.TURNED_AWAY and status.ended_unpaid and turned_away_pay(sitting, pay):
            bonuses.append(Owed(row, Kind.TURNED_AWAY, pay.turned_away))
        if is_complete and (status.is_paid or status == SubmissionStatus.TIMED_OUT):
            cents = points.get(sitting.pk, Decimal(0)) * pay.point
            amount = int(cents.quantize(Decimal(1), rounding=ROUND_HALF_UP))
            if amount > 0:
                bonuses.append(Owed(row, Kind.SCORE, amount))
    return [bonus for bonus in bonuses if (bonus.submission.pk, bonus.kind.value) not in paid]


def _never_sent(posting: Posting) -> QuerySet[PaymentBatch]:
    """Payments that were stored so long ago that the process that stored them has died: they were not made, and never
    will be. One that is younger is about to be sent."""
    before = timezone.now() - longest_call(posting.panel)
    return posting.payment_batches.filter(state=State.PREPARED, created_at__lte=before)


@dataclass(frozen=True)
class Promised:
    """Cents, by what somebody may earn."""

    reward: int
    turned_away: int
    point: int
    screened_out: int = 0  # From a list: a panel with an API pays them by itself.


CAME_BEFORE = "came_before"  # Among the flags of a visit.


def is_another_visit(sitting: Sitting) -> bool:
    """Whether its person found no place here in an earlier visit, and none in this one either. They may try as often as
    they like, and at some panels by ids that they make up: they are paid for the first visit."""
    is_turned_away = sitting.state == Sitting.State.TURNED_AWAY and sitting.wave == 1
    return is_turned_away and sitting.respondent.came_before_id is not None


def turned_away_pay(sitting: Sitting, pay: Promised) -> int:
    return 0 if is_another_visit(sitting) else pay.turned_away


def promised(study: Study, sitting: Sitting) -> Promised:
    """What the person can earn: the higher of what two study files say, the sitting's first and the one in force."""
    files = [config.panel for config in (study.as_of(sitting.study_sha256), study.config)]
    return Promised(
        reward=max(panel.reward or 0 for panel in files),
        turned_away=max(panel.turned_away_pay for panel in files),
        screened_out=max(panel.screen_out_pay or 0 for panel in files),
        point=max(panel.bonus_per_point for panel in files),
    )


def sittings_of(posting: Posting, rows: Iterable[Submission]) -> dict[int, Sitting]:
    """By respondent: their sitting of the posting's wave."""
    respondents = [row.respondent_id for row in rows if row.respondent_id is not None]
    sittings = Sitting.objects.filter(
        respondent__study=posting.study_id, wave=posting.wave, respondent__in=respondents
    ).select_related("respondent")
    return {sitting.respondent_id: sitting for sitting in sittings}


def promised_points(study: Study, sittings: Collection[Sitting]) -> dict[int, Decimal]:
    """`points_of`, read only where one of these people was promised money for them."""
    return points_of(sittings) if any(promised(study, sitting).point for sitting in sittings) else {}


def points_of(sittings: Collection[Sitting]) -> dict[int, Decimal]:
    scores = Score.objects.filter(response__assignment__sitting__in=[sitting.pk for sitting in sittings])
    sums = scores.order_by().values_list("response__assignment__sitting").annotate(sum=Sum("value"))
    point_sums = {sitting: Decimal(total) for sitting, total in sums}
    # People who withdrew their answers earned the points all the same.
    people = {sitting.respondent_id: sitting.pk for sitting in sittings if sitting.withdrawn_at}
    taken_back = Withdrawal.objects.filter(respondent__in=people).values_list("respondent", "points")
    return {**point_sums, **{people[who]: points for who, points in taken_back}}


def pay_owed(
    posting: Posting,
    *,
    only: Submission | None = None,
    cents: int | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> list[PaymentBatch]:
    """Pay everything that is owed, in batches. What was sent before is never sent again.

    Args:
        only: what is owed to nobody but this one.
        cents: what somebody agreed to pay in all; None: anything under the cap.

    Raises:
        StateRefused: no cap, over the cap, or the outcome of an earlier payment is unknown; somebody else pays just
            now; the panel counts in another currency; or another sum is owed by now.
        PanelError: the last batch's state says how far it got; the batches before it are paid.
    """
    paid = []
    with client_of(posting.panel, client) as asked:
        if not asked.can("pay_bonuses"):
            raise PanelCannot(f"{posting.panel} cannot pay bonuses by its API: pay them on the panel's own pages")
        if asked.can("posting"):
            refuse_other_currency(posting.study, asked.posting(posting.external_id).currency, posting.currency)
        while batch := _prepare(posting, only, cents, at_once=asked.bonuses_at_once, by=by, via=via):
            cents = None if cents is None else cents - sum(payment.amount for payment in batch.payments.all())
            _send(batch, asked)
            record("pay_bonuses", batch, by=by, via=via, state=batch.state)
            paid.append(batch)
    return paid


@transaction.atomic
def _prepare(
    posting: Posting, only: Submission | None, agreed: int | None, *, at_once: int, by: Any, via: str
) -> PaymentBatch | None:
    posting = locked_posting(posting)
    # Locked, so that none is marked as sent between this look and its end here: it would be paid a second time.
    unfinished = posting.payment_batches.exclude(state__in=[State.PAID, State.REFUSED])
    patience = longest_call(posting.panel)
    now = timezone.now()
    for unsettled in unfinished.select_for_update(of=("self",)):
        if unsettled.state != State.PREPARED:
            raise StateRefused(
                f"payment {unsettled.pk} may have been made or not: look at the panel, then say which "
                f"(`hunch pay_bonuses {posting.study.slug} --settle {unsettled.pk} paid`, or not-paid)"
            )
        if now < unsettled.created_at + patience:
            raise StateRefused(
                f"payment {unsettled.pk} was begun at {at_time(unsettled.created_at)}, and is about to be sent: look "
                f"again in a minute; if it broke off, pay after {at_time(unsettled.created_at + patience)}"
            )
        _move(unsettled, State.REFUSED, was=[State.PREPARED], error="was never sent")
    everything = [bonus for bonus in owed(posting) if only is None or bonus.submission.pk == only.pk]
    due = everything[:at_once]
    if not due:
        return None
    refuse_another_sum(sum(bonus.amount for bonus in everything), agreed, posting.currency)
    cents = sum(bonus.amount for bonus in due)
    fees = posting.fees.on(cents)
    refuse_over_cap(posting.study, cents + fees)
    batch = PaymentBatch.objects.create(posting=posting, fees=fees, created_by=by if getattr(by, "pk", None) else None)
    Payment.objects.bulk_create(
        Payment(batch=batch, submission=bonus.submission, kind=bonus.kind, amount=bonus.amount) for bonus in due
    )
    record("prepare_bonuses", batch, by=by, via=via, people=len(due), cents=cents, fees=fees)
    return batch


def _send(batch: PaymentBatch, client: PanelClient) -> None:
    posting = batch.posting.external_id
    try:
        bonuses = _bonuses(batch)
        prepared = client.prepare_bonuses(posting, bonuses)
        if isinstance(prepared, PreparedBonuses):
            _take_fees(batch, prepared)
            prepared = prepared.external_id
    except Exception as exc:
        # Setting up pays nothing, so this payment can be dropped, whether the call arrived or not. If it stayed, those
        # who pay next would have to wait until it must be over.
        _move(batch, State.REFUSED, was=[State.PREPARED], error=words_of(exc))
        raise
    if not _move(batch, State.SENT, was=[State.PREPARED], sent_at=timezone.now(), external_id=prepared[:64]):
        raise StateRefused(f"payment {batch.pk} was taken up by somebody else")
    try:
        client.pay_bonuses(posting, bonuses, prepared=prepared, key=f"{batch.posting.internal_name} {batch.pk}")
    except Exception as exc:
        is_refused = isinstance(exc, PanelError) and exc.outcome_is_known
        ended = State.REFUSED if is_refused else State.UNKNOWN
        if not _move(batch, ended, was=[State.SENT], error=words_of(exc)):
            settled = PaymentBatch.objects.filter(pk=batch.pk)
            settled.update(error=f"a person said how it ended, and then the panel answered: {words_of(exc)}")
        raise
    if error := _record_paid(batch):
        raise StateRefused(f"payment {batch.pk} counts as paid: {error}")


@transaction.atomic
def _take_fees(batch: PaymentBatch, prepared: PreparedBonuses) -> None:
    """What the panel says that these bonuses cost on top of that, in place of what we reckoned with. Nothing is
    paid yet.

    Raises:
        StateRefused: with it, they would go over the cap.
    """
    if prepared.fees is None or prepared.fees == batch.fees:
        return
    study = locked_study(batch.posting.study)
    if prepared.fees > batch.fees:
        refuse_over_cap(study, prepared.fees - batch.fees)
    PaymentBatch.objects.filter(pk=batch.pk, state=State.PREPARED).update(fees=prepared.fees)
    batch.fees = prepared.fees


@transaction.atomic
def hold(posting: Posting, *, since: datetime, why: str) -> PaymentBatch:
    """What is owed or was prepared may have been paid since then: nothing is paid before a person has looked."""
    posting = locked_posting(posting)
    posting.payment_batches.filter(state=State.PREPARED).update(state=State.UNKNOWN, sent_at=since, error=why)
    due = owed(posting)
    fees = posting.fees.on(sum(bonus.amount for bonus in due))
    batch = PaymentBatch.objects.create(posting=posting, state=State.UNKNOWN, sent_at=since, error=why, fees=fees)
    Payment.objects.bulk_create(
        Payment(batch=batch, submission=bonus.submission, kind=bonus.kind, amount=bonus.amount) for bonus in due
    )
    record("hold_bonuses", batch, via="restore", people=len(due), cents=sum(bonus.amount for bonus in due))
    return batch


def _held(posting: Posting) -> QuerySet[PaymentBatch]:
    """What a restore held: it may have been sent before these rows were written."""
    return posting.payment_batches.filter(state=State.UNKNOWN, external_id="", sent_at__lt=F("created_at"))


@transaction.atomic
def hold_more(posting: Posting) -> None:
    """Call it after a reading. What is owed by now to people who ended before a restore may have been paid as well: the
    restored rows did not say yet that they were approved, or late."""
    if not _held(posting).exists():
        return
    posting = locked_posting(posting)
    batch = _held(posting).first()
    if batch is None:
        return
    debts = owed(posting)
    sittings = sittings_of(posting, [debt.submission for debt in debts])
    due = [
        debt
        for debt in debts
        if (ended_at := sittings[debt.submission.respondent_id or 0].ended_at) and ended_at < batch.created_at
    ]
    if not due:
        return
    Payment.objects.bulk_create(
        Payment(batch=batch, submission=debt.submission, kind=debt.kind, amount=debt.amount) for debt in due
    )
    cents = batch.payments.aggregate(sum=Sum("amount"))["sum"] or 0
    PaymentBatch.objects.filter(pk=batch.pk).update(fees=posting.fees.on(cents))
    record("hold_bonuses", batch, via="worker", people=len(due), cents=sum(debt.amount for debt in due))


def _bonuses(batch: PaymentBatch) -> Sequence[Bonus]:
    """By submission: a person may have several, and each is paid separately."""
    sums: dict[int, int] = {}
    rows: dict[int, Submission] = {}
    for payment in batch.payments.select_related("submission"):
        sums[payment.submission_id] = sums.get(payment.submission_id, 0) + payment.amount
        rows[payment.submission_id] = payment.submission
    bonuses = []
    for key, cents in sums.items():
        ids = ids_of(rows[key])
        bonuses.append(Bonus(ids.submission, ids.person, cents))
    return bonuses


def ids_of(row: Submission) -> PanelIds:
    """What the panel calls it.

    Raises:
        StateRefused: the ids were removed, or cannot be decrypted.
    """
    if not row.ids_encrypted:
        raise StateRefused(
            "the panel's ids were removed, as was promised: it cannot be asked about these people any more"
        )
    ids = unseal(bytes(row.ids_encrypted).decode())
    if ids is None:
        raise StateRefused("HUNCH_IDENTITY_KEY: the ids were encrypted with another key")
    return ids


@transaction.atomic
def _move(batch: PaymentBatch, state: State, *, was: Collection[State], **values: Any) -> bool:
    """Move a payment on if it is still in one of those states; False if somebody else has moved it. What a payment that
    was not made would have paid is owed again."""
    if state != State.SENT:
        values["settled_at"] = timezone.now()
    moved = PaymentBatch.objects.filter(pk=batch.pk, state__in=was).update(state=state, **values)
    if moved and state == State.REFUSED:
        batch.payments.update(is_void=True)
    batch.refresh_from_db()
    return bool(moved)


@transaction.atomic
def _record_paid(batch: PaymentBatch) -> str:
    """The panel has paid. That stands, even if a person has said meanwhile that it was not paid; then say so."""
    locked_study(batch.posting.study)
    if _move(batch, State.PAID, was=[State.SENT]) or batch.state == State.PAID:
        return ""
    void = {(payment.submission_id, payment.kind): payment for payment in batch.payments.all()}

    def again() -> list[Payment]:
        same = Payment.objects.filter(submission__in=[submission for submission, _kind in void], is_void=False)
        return [payment for payment in same.select_related("batch") if (payment.submission_id, payment.kind) in void]

    for other in {payment.batch for payment in again()}:
        # Only those that were not sent yet: they never will be.
        _move(other, State.REFUSED, was=[State.PREPARED], error=f"payment {batch.pk} has paid these people")
    twice = {(payment.submission_id, payment.kind) for payment in again()}
    error = "somebody said that it was not paid, and then the panel answered that it was"
    if twice:
        error += f"; {len(twice)} of its bonuses were sent again meanwhile, so that people were paid twice"
    _move(batch, State.PAID, was=[State.REFUSED], error=error)
    Payment.objects.filter(pk__in=[payment.pk for key, payment in void.items() if key not in twice]).update(
        is_void=False
    )
    record("paid_after_all", batch, via="worker", people=len(void), twice=len(twice))
    return error


@transaction.atomic
def settle(batch: PaymentBatch, *, was_paid: bool, by: Any = None, via: str = "command") -> PaymentBatch:
    """Record what somebody saw at the panel about a payment whose outcome was unknown.

    Raises:
        StateRefused: its outcome is known, or the panel may still answer.
    """
    locked_study(batch.posting.study)
    batch = PaymentBatch.objects.select_for_update(of=("self",)).select_related("posting__study").get(pk=batch.pk)
    if not batch.needs_a_person:
        raise StateRefused(f"payment {batch.pk} is {batch.get_state_display()}: there is nothing to say about it")
    read_at = batch.posting.read_at
    is_readable = not batch.posting.submissions.filter(ids_encrypted=b"").exists()
    if (
        is_readable
        and _held(batch.posting).filter(pk=batch.pk).exists()
        and (read_at is None or read_at < batch.created_at)
    ):
        raise StateRefused(
            f"payment {batch.pk} is held since a restore, and the panel was not read since then: read it first, since "
            "more may be owed by now that was paid before"
        )
    if batch.sent_at is not None:
        # What a restore holds may have been sent by the server before it, until the very end.
        over = max(batch.sent_at, batch.created_at) + longest_call(batch.posting.panel)
        if timezone.now() < over:
            raise StateRefused(
                f"payment {batch.pk} was sent at {at_time(batch.sent_at)} and may be on its way: wait for its answer, "
                f"or look at the panel after {at_time(over)}, then say it"
            )
    if was_paid:
        _move(batch, State.PAID, was=[State.SENT, State.UNKNOWN])
    else:
        error = batch.error or "not paid, says a person"
        _move(batch, State.REFUSED, was=[State.SENT, State.UNKNOWN], error=error)
    record("settle_payment", batch, by=by, via=via, was_paid=was_paid)
    return batch
