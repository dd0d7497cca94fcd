"""Compare our view of every submission with the panel's: do they agree, and what is to do where they do not?

This module only proposes what to do. Approvals and requests for a return are carried out together when somebody asks
for it. Paying what is owed is in `money`. Everything else is for a person to look at and settle with a sentence.
No rule ever rejects anybody.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelClient, PanelError, ReturnReason, SubmissionStatus
from survey.exceptions import StateRefused
from survey.models import (
    CompletionCode,
    PanelIdentity,
    Payment,
    PaymentBatch,
    Posting,
    Respondent,
    Sitting,
    Study,
    Submission,
    WaveIdentity,
)
from survey.services.answers.sitting_flags import marks_of
from survey.services.base.auditing import record
from survey.services.sittings.attention import FAILED_TO_REJECT, failed_checks

from .asking import at_time, client_of, status_of
from .money import CAME_BEFORE, Owed, ids_of, is_another_visit, owed, refuse_another_sum, sittings_of
from .submissions import read_posting, was_rejected

State = Sitting.State
Outcome = CompletionCode.Outcome
NOT_HERE = "not here"
INSTEAD_OF_THE_REWARD = (Payment.Kind.LATE, Payment.Kind.TURNED_AWAY)
Status = SubmissionStatus


class Action(StrEnum):
    NOTHING = "nothing"
    WAIT = "wait"
    APPROVE = "approve"
    ASK_BACK = "ask for a return"
    PAY = "pay what is owed"
    SAY = "say what became of the payment"
    LOOK = "look at it"


@dataclass(frozen=True)
class Judgement:
    action: Action
    sentence: str


@dataclass(frozen=True)
class Participation:
    """One participation in both views. `submission` is None if the panel knows none, `respondent` if we know none."""

    submission: Submission | None
    respondent: Respondent | None
    ours: str
    theirs: str
    code: str
    judgement: Judgement
    owed: tuple[Owed, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """The judgement in words, with the sitting's flags for the reader: nothing follows from a flag alone."""
        flagged = f"; flagged {', '.join(self.flags)}" if self.flags else ""
        return self.judgement.sentence + flagged

    @property
    def who(self) -> str:
        """Never the panel's id."""
        if self.respondent is not None:
            return self.respondent.pseudonym
        return f"submission {self.submission.pk}" if self.submission else "somebody"

    @property
    def status(self) -> Status:
        """The panel's status in our own words; unknown where the panel knows no such submission."""
        return status_of(self.submission, self.submission.posting) if self.submission else Status.UNKNOWN

    @property
    def is_settled(self) -> bool:
        return self.judgement.action == Action.NOTHING


@dataclass(frozen=True)
class Reconciliation:
    posting: Posting
    findings: tuple[Participation, ...]

    @property
    def differences(self) -> list[Participation]:
        return [finding for finding in self.findings if not finding.is_settled]

    def to(self, action: Action) -> list[Participation]:
        return [finding for finding in self.findings if finding.judgement.action == action]

    def of(self, submission: Submission) -> Participation | None:
        """What was found about one submission; None if it is none of this posting's."""
        rows = (
            finding
            for finding in self.findings
            if finding.submission is not None and finding.submission.pk == submission.pk
        )
        return next(rows, None)

    @property
    def counts(self) -> list[tuple[str, str, int]]:
        """(our state, the panel's state, how many)."""
        counter = Counter((finding.ours, finding.theirs) for finding in self.findings)
        return [(*key, count) for key, count in sorted(counter.items())]

    @property
    def owed_cents(self) -> int:
        return sum(bonus.amount for finding in self.findings for bonus in finding.owed)


def judge(
    ours: str, theirs: Status, code: str, *, said: str = "", owes: bool = False, asked_back: bool = False
) -> Judgement:
    """What to do about one submission.

    Args:
        ours: a sitting's state, or NOT_HERE.
        theirs: how it stands at the panel.
        said: the panel's own word for that.
        code: the outcome whose code was entered; "" for none, "unknown" for one that is not the study's.
        owes: something is owed in addition to the reward.
        asked_back: we asked for a return before.
    """
    said = said or str(theirs)
    if theirs == Status.UNKNOWN:
        return Judgement(Action.LOOK, f"the panel says {said}, of which no rule is known")
    if theirs.is_under_way:
        return Judgement(Action.WAIT, "not handed in at the panel yet")
    rule = {
        State.COMPLETE: _finished,
        State.FAILED_CHECKS: _failed_checks,
        State.TURNED_AWAY: _turned_away,
        State.SCREENED_OUT: _screened_out,
        NOT_HERE: _never_here,
    }.get(State(ours) if ours in State.values else ours, _unfinished)
    judgement = rule(theirs, said, code, owes)
    if judgement.action == Action.ASK_BACK and asked_back:
        return Judgement(Action.WAIT, "asked to return it")
    if judgement.action == Action.NOTHING and owes:
        return Judgement(Action.PAY, "a bonus is owed")
    return judgement


def _finished(theirs: Status, said: str, code: str, owes: bool) -> Judgement:
    if theirs.is_paid:
        return Judgement(Action.NOTHING, "finished and approved")
    if theirs == Status.AWAITING_REVIEW:
        how = {"completed": "finished", "": "finished, and came back without a code"}
        return Judgement(Action.APPROVE, how.get(code, "finished, and entered another code than the one for it"))
    if theirs == Status.TIMED_OUT:
        if owes:
            return Judgement(Action.PAY, "finished after the panel's time was over: the reward is owed as a bonus")
        return Judgement(Action.NOTHING, "finished after the panel's time was over, and was paid")
    if theirs == Status.RETURNED:
        return Judgement(Action.LOOK, "returned after finishing: perhaps the answers are withdrawn; ask, then settle")
    return Judgement(Action.LOOK, f"finished, but the panel says {said}: nobody who finished goes unpaid by mistake")


def _failed_checks(theirs: Status, said: str, code: str, owes: bool) -> Judgement:
    if theirs.ended_unpaid:
        return Judgement(Action.NOTHING, "failed the checks and left")
    if theirs == Status.AWAITING_REVIEW:
        return Judgement(Action.ASK_BACK, "failed the checks: a return is asked for, never a rejection")
    if theirs == Status.REJECTED:
        return Judgement(Action.LOOK, "rejected for comprehension checks, which the panel forbids: take it back there")
    return Judgement(Action.LOOK, f"failed the checks, but the panel says {said}")


def _turned_away(theirs: Status, said: str, code: str, owes: bool) -> Judgement:
    if theirs.ended_unpaid:
        if owes:
            return Judgement(Action.PAY, "consented and found all places taken: paid for the time")
        return Judgement(Action.NOTHING, "found all places taken and left")
    if theirs.is_paid:
        return Judgement(Action.NOTHING, "found all places taken, and was paid in full")
    if theirs == Status.AWAITING_REVIEW:
        return Judgement(Action.ASK_BACK, "found all places taken")
    return Judgement(Action.LOOK, f"found all places taken, but the panel says {said}")


def _screened_out(theirs: Status, said: str, code: str, owes: bool) -> Judgement:
    if theirs.ended_unpaid or theirs == Status.SCREENED_OUT:
        return Judgement(Action.NOTHING, "was screened out and left")
    if theirs.is_paid:
        return Judgement(Action.NOTHING, "was screened out, and was paid")
    if theirs == Status.AWAITING_REVIEW:
        return Judgement(Action.ASK_BACK, "was screened out: a return is asked for, never a rejection")
    return Judgement(Action.LOOK, f"was screened out, but the panel says {said}")


def _unfinished(theirs: Status, said: str, code: str, owes: bool) -> Judgement:
    if theirs.ended_unpaid:
        return Judgement(Action.NOTHING, "left before the end")
    if theirs.is_paid:
        return Judgement(Action.LOOK, f"{said.lower()} at the panel, but never finished here")
    if theirs == Status.AWAITING_REVIEW:
        if code == "completed":
            return Judgement(Action.LOOK, "not finished here, yet entered the code of those who did")
        return Judgement(Action.ASK_BACK, "handed in without finishing")
    return Judgement(Action.LOOK, f"not finished here, and the panel says {said}")


def _never_here(theirs: Status, said: str, code: str, owes: bool) -> Judgement:
    if theirs.ended_unpaid:
        return Judgement(Action.NOTHING, "never began here")
    if theirs == Status.AWAITING_REVIEW:
        if code in ("no_consent", "study_full"):
            return Judgement(Action.ASK_BACK, "did not consent" if code == "no_consent" else "found all places taken")
        if code in ("", "failed_checks", "screened_out", "unknown"):
            return Judgement(Action.ASK_BACK, "never began here")
        return Judgement(Action.LOOK, "never began here, yet entered the code of those who finished")
    return Judgement(Action.LOOK, f"never began here, but the panel says {said}")


def reconcile(posting: Posting) -> Reconciliation:
    """Every submission of the posting as both sides see it. Reads only our rows: call `read_posting` before."""
    rows = list(posting.submissions.select_related("respondent").order_by("pk"))
    sittings = sittings_of(posting, rows)
    outcomes = {code.code: code.outcome for code in posting.study.codes.all()}
    debts: dict[int, list[Owed]] = {}
    for bonus in owed(posting):
        debts.setdefault(bonus.submission.pk, []).append(bonus)
    payments = Payment.objects.filter(submission__posting=posting, is_void=False).exclude(
        batch__state=PaymentBatch.State.PREPARED
    )
    unsettled: dict[int, int] = {}
    instead: dict[int, int] = {}
    for submission, batch, state, kind in payments.values_list("submission", "batch", "batch__state", "kind"):
        if state != PaymentBatch.State.PAID:
            unsettled[submission] = batch
        if kind in INSTEAD_OF_THE_REWARD:
            instead[submission] = batch
    failed = failed_checks(sittings.values())
    flags = marks_of(posting.study, [sitting.pk for sitting in sittings.values()])
    findings = []
    for row in rows:
        sitting = sittings.get(row.respondent_id or 0)
        participation = _finding(posting, row, sitting, outcomes, debts.get(row.pk, []))
        if participation.judgement.action == Action.APPROVE and sitting is not None:
            participation = _inattentive(posting, participation, failed.get(sitting.pk, 0))
        if row.pk in instead:
            participation = _paid_instead(participation, row, instead[row.pk])
        if participation.is_settled and row.pk in unsettled:
            sentence = f"payment {unsettled[row.pk]} may have been made or not: look at the panel"
            participation = replace(participation, judgement=Judgement(Action.SAY, sentence))
        if sitting is not None:
            again = (CAME_BEFORE,) if is_another_visit(sitting) else ()
            participation = replace(participation, flags=(*flags.get(sitting.pk, ()), *again))
        findings.append(participation)
    return Reconciliation(posting, (*findings, *_unknown_to_the_panel(posting)))


def _finding(
    posting: Posting, row: Submission, sitting: Sitting | None, outcomes: dict[str, str], debts: Sequence[Owed]
) -> Participation:
    entered, panel = row.entered_code, panels.find(posting.panel)
    code = "" if not entered or entered in panel.no_codes else outcomes.get(entered, "unknown")
    ours = str(sitting.state) if sitting else NOT_HERE
    theirs = panel.submission_status(row.status)
    # The panel asks by itself on such a code: a second request would look like pressure.
    in_file = posting.study.config.panel
    action = getattr(in_file.codes, code, "") if code else ""
    if code == Outcome.SCREENED_OUT and in_file.screen_out_pay is not None:
        action = "pay"
    asks_itself = action == "request_return" and bool(posting.draft)
    asked_back = row.asked_back_at is not None or asks_itself
    judgement = judge(ours, theirs, code, said=row.status, owes=bool(debts), asked_back=asked_back)
    if action == "pay" and judgement.action == Action.ASK_BACK:
        sentence = "was screened out and not paid yet: look at the panel whether its places for screen-outs are used"
        judgement = Judgement(Action.LOOK, sentence)
    if judgement.action == Action.APPROVE and _is_being_approved(row):
        judgement = Judgement(Action.WAIT, "finished; approved, which the next reading of the panel shows")
    if row.pending_at is not None and theirs == Status.AWAITING_REVIEW:
        judgement = _unanswered(row, row.pending_at)
    if row.resolution and row.resolved_status == row.status and judgement.action == Action.LOOK:
        judgement = Judgement(Action.NOTHING, f"settled: {row.resolution}")
    return Participation(row, row.respondent, ours, row.status, code, judgement, tuple(debts))


def _is_being_approved(row: Submission) -> bool:
    """Whether the panel was asked to approve it and was not read since. Where a reading shows that nothing came of it,
    it is asked again, which does no harm."""
    return row.approved_at is not None and row.read_at < row.approved_at


def _unanswered(row: Submission, since: datetime) -> Judgement:
    if row.pending == Submission.Pending.REJECT:
        sentence = f"a rejection was sent at {at_time(since)}, and the panel has not answered: a later reading shows it"
        return Judgement(Action.WAIT, sentence)
    sentence = (
        f"a return was asked for at {at_time(since)}, and the panel has not answered: look there whether the request "
        "arrived, write to the person if not, then settle it with a sentence"
    )
    return Judgement(Action.LOOK, sentence)


def _inattentive(posting: Posting, participation: Participation, failed: int) -> Participation:
    """Ask for a look at a person who finished but failed enough attention checks to be rejected."""
    row = participation.submission
    if failed < FAILED_TO_REJECT or row is None or (row.resolution and row.resolved_status == row.status):
        return participation
    client = panels.find(posting.panel).client
    category = client.attention_category if client is not None and client.can("reject") else ""
    reject = f"reject ({category}), or " if category else ""
    sentence = (
        f"finished, but failed {failed} attention checks: read the answers, then {reject}settle it with a sentence, "
        "and it is approved"
    )
    return replace(participation, judgement=Judgement(Action.LOOK, sentence))


def _paid_instead(participation: Participation, row: Submission, batch: int) -> Participation:
    """Who got a bonus in place of the reward is not given the reward too, unless a person decides so. A panel may
    put a submission that was over back to review, and somebody may approve it on the panel's own pages."""
    is_to_be_approved = participation.judgement.action == Action.APPROVE
    if not (is_to_be_approved or status_of(row, row.posting).is_paid):
        return participation
    if row.resolution and row.resolved_status == row.status:
        return participation
    had = f"payment {batch} was made in place of the reward"
    if is_to_be_approved:
        sentence = f"finished, but {had}: decide whether the reward is paid too, then settle it with a sentence"
        return replace(participation, judgement=Judgement(Action.LOOK, f"{sentence}, and it is approved"))
    sentence = f"{participation.judgement.sentence}; but {had}: the person was paid twice; settle it with a sentence"
    return replace(participation, judgement=Judgement(Action.LOOK, sentence))


def _unknown_to_the_panel(posting: Posting) -> list[Participation]:
    """Real people who began here before the panel was last asked, and whom no posting of the study knows.

    They are listed once, with the study's newest posting: without a submission we cannot know their posting.
    """
    study = posting.study
    newest = study.postings.order_by("-created_at", "-pk").first()
    read = [other.read_at for other in study.postings.all() if other.external_id]
    if newest is None or newest.pk != posting.pk or not read or None in read:
        return []
    known = Submission.objects.filter(posting__study=study).values("submission_hash")
    strangers = (
        PanelIdentity.objects.filter(
            study=study,
            panel=posting.panel,
            respondent__is_simulated=False,
            created_at__lt=min(at for at in read if at is not None),
        )
        .exclude(submission_hash__in=known)
        .select_related("respondent")
    )
    participations = []
    later = WaveIdentity.objects.filter(
        identity__in=PanelIdentity.objects.filter(study=study, panel=posting.panel, respondent__is_simulated=False),
        created_at__lt=min(at for at in read if at is not None),
    ).exclude(submission_hash__in=known)
    came = [(identity.respondent, 1) for identity in strangers]
    came += [(identity.identity.respondent, identity.wave) for identity in later.select_related("identity__respondent")]
    for respondent, wave in came:
        sitting = respondent.sittings.filter(wave=wave).first()
        sentence = "the panel knows no such submission: check how this person came here"
        judgement = Judgement(Action.LOOK, sentence)
        participations.append(
            Participation(None, respondent, str(sitting.state) if sitting else NOT_HERE, "–", "", judgement)
        )
    return participations


def cost_of_approving(reconciled: Reconciliation, only: Submission | None = None) -> int:
    """In cents, without the panel's fees: the rewards of everybody who is to be approved, or of nobody but one."""
    rows = [finding.submission for finding in reconciled.to(Action.APPROVE) if finding.submission is not None]
    return reconciled.posting.reward * sum(only is None or row.pk == only.pk for row in rows)


def approve_finished(
    posting: Posting,
    *,
    only: Submission | None = None,
    cents: int | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> int:
    """Approve everybody who finished and waits for approval; return how many. A failure does not stop the others.

    Args:
        only: nobody but this one.
        cents: what somebody agreed that it costs; None: whatever it does.

    Raises:
        StateRefused: the study names no spending cap, or it costs another sum by now.
        PanelError: the first failure, raised after all were tried.
    """
    if posting.study.config.panel.spending_cap is None:
        raise StateRefused(f"panel.spending_cap: {posting.study.slug} names none, and without one nothing is spent")
    if cost := cost_of_approving(reconcile(posting), only):
        refuse_another_sum(cost, cents, posting.currency)

    def approve(client: PanelClient, row: Submission) -> bool:
        ids, now = ids_of(row), timezone.now()
        # Asking again does no harm, so that a mark of an earlier try is written over.
        if not Submission.objects.filter(pk=row.pk, pending="").update(approved_at=now):
            return False
        try:
            status = client.approve(ids.submission)
        except PanelError as exc:
            if exc.outcome_is_known:
                Submission.objects.filter(pk=row.pk, approved_at=now).update(approved_at=None)
            raise
        _remember(row, status)
        return True

    with client_of(posting.panel, client) as asked:
        together = only is None and asked.can("approve_all")
        done = _approve_together(posting, asked, by=by, via=via) if together else 0
        return done + _each(posting, Action.APPROVE, approve, asked, by=by, via=via, only=only)


def _approve_together(posting: Posting, client: PanelClient, *, by: Any, via: str) -> int:
    """Approve several by one call; return how many. The panel carries it out after its answer: until a reading shows
    it, they wait. Where the panel refuses them together, nothing is done, and each is asked for alone."""
    rows = [finding.submission for finding in reconcile(posting).to(Action.APPROVE) if finding.submission is not None]
    done, failure = 0, None
    for start in range(0, len(rows), client.approvals_at_once):
        part = {row.pk: ids_of(row).submission for row in rows[start : start + client.approvals_at_once]}
        now = timezone.now()
        # Asking again does no harm, so that a mark of an earlier try is written over.
        Submission.objects.filter(pk__in=part, pending="").update(approved_at=now)
        mine = Submission.objects.filter(pk__in=part, approved_at=now)
        asked_for = [part[pk] for pk in mine.values_list("pk", flat=True)]
        if len(asked_for) < 2:
            mine.update(approved_at=None)
            break
        try:
            client.approve_all(asked_for)
        except PanelError as exc:
            if exc.outcome_is_known:
                mine.update(approved_at=None)
            else:
                failure = exc
            break
        done += len(asked_for)
    if done:
        record("approve", posting, by=by, via=via, people=done)
    if failure is not None:
        raise failure
    return done


def ask_back(
    posting: Posting,
    *,
    only: Submission | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> int:
    """Ask people for a return where it is due, each person once; return how many.

    Args:
        only: nobody but this one.
    """

    def ask(client: PanelClient, row: Submission) -> bool:
        why = reasons[row.pk]
        # Written first, and only where nobody else has: two requests for one submission look like pressure.
        ids, now, what = ids_of(row), timezone.now(), Submission.Pending.ASK_BACK
        unasked = Submission.objects.filter(pk=row.pk, asked_back_at__isnull=True, pending="")
        if not unasked.update(asked_back_at=now, pending=what, pending_at=now):
            return False
        mine = Submission.objects.filter(pk=row.pk, pending=what, pending_at=now)
        try:
            client.ask_to_return(ids.submission, why)
        except PanelError as exc:
            if exc.outcome_is_known:
                mine.update(asked_back_at=None, pending="", pending_at=None)
            raise
        mine.update(pending="", pending_at=None)
        return True

    reasons = {
        finding.submission.pk: _why_to_return(finding) for finding in reconcile(posting).findings if finding.submission
    }
    with client_of(posting.panel, client) as asked:
        return _each(posting, Action.ASK_BACK, ask, asked, by=by, via=via, only=only)


def _why_to_return(participation: Participation) -> ReturnReason:
    """By how the sitting ended here; for people who never began, by the code that they entered."""
    by_state = {
        State.FAILED_CHECKS: ReturnReason.FAILED_CHECKS,
        State.TURNED_AWAY: ReturnReason.STUDY_FULL,
        State.SCREENED_OUT: ReturnReason.SCREENED_OUT,
    }
    by_code = {
        Outcome.NO_CONSENT: ReturnReason.NO_CONSENT,
        Outcome.FAILED_CHECKS: ReturnReason.FAILED_CHECKS,
        Outcome.STUDY_FULL: ReturnReason.STUDY_FULL,
        Outcome.SCREENED_OUT: ReturnReason.SCREENED_OUT,
    }
    if participation.ours in by_state:
        return by_state[State(participation.ours)]
    if participation.ours == NOT_HERE and participation.code in by_code:
        return by_code[Outcome(participation.code)]
    return ReturnReason.NOT_FINISHED


def _each(
    posting: Posting,
    action: Action,
    call: Callable[[PanelClient, Submission], bool],
    client: PanelClient,
    *,
    by: Any,
    via: str,
    only: Submission | None = None,
) -> int:
    done, failure = 0, None
    reconciled = reconcile(posting)
    wanted = reconciled.to(action)
    if only is not None:
        wanted = [finding for finding in wanted if finding.submission is not None and finding.submission.pk == only.pk]
    for finding in wanted:
        if finding.submission is None:
            continue
        try:
            done += call(client, finding.submission)
        except PanelError as exc:
            failure = failure or exc
    if done:
        record(action.replace(" ", "_"), posting, by=by, via=via, people=done)
    if failure is not None:
        raise failure
    return done


def reject(
    submission: Submission,
    *,
    category: str,
    message: str,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> None:
    """Reject one submission. Somebody must decide this and give the words.

    Raises:
        StateRefused: the panel's rules forbid it (the category, the message, or comprehension checks), or somebody else
            is rejecting it.
        PanelError: the panel did not do it.
    """
    message, ids = message.strip(), ids_of(submission)
    with client_of(submission.posting.panel, client) as asked:
        row = _intend_to_reject(submission, asked, category=category, message=message, by=by, via=via)
        mine = Submission.objects.filter(pk=row.pk, pending=row.pending, pending_at=row.pending_at)
        try:
            status = asked.reject(ids.submission, category=category, message=message)
        except PanelError as exc:
            if exc.outcome_is_known and mine.update(pending="", pending_at=None):
                record("reject_submission_failed", row, by=by, via=via, why=exc.message)
            raise
        # In this order: as long as the status does not say it, what is pending keeps others from rejecting again.
        _remember(row, status, **was_rejected(category, (status or row.status)[:40], at=timezone.now()))
        mine.update(pending="", pending_at=None)
    submission.refresh_from_db()


@transaction.atomic
def _intend_to_reject(
    submission: Submission, client: PanelClient, *, category: str, message: str, by: Any, via: str
) -> Submission:
    """Store who rejects whom and why, before the panel is asked."""
    rows = Submission.objects.select_for_update(of=("self",), no_key=True).select_related("posting__study")
    row = rows.get(pk=submission.pk)
    if row.pending_at is not None:
        raise StateRefused(
            f"the panel was asked at {at_time(row.pending_at)} to {row.get_pending_display()}, and has not answered: "
            "read it again, then decide"
        )
    _refuse_to_reject(row, client, category=category, message=message)
    row.pending, row.pending_at = Submission.Pending.REJECT, timezone.now()
    row.rejection_category, row.rejection_message = category[:80], message
    row.save(update_fields=["pending", "pending_at", "rejection_category", "rejection_message"])
    record("reject_submission", row, by=by, via=via, category=category, reason=message)
    return row


def _remember(row: Submission, status: str, **done: Any) -> None:
    """What the panel answered, as read at this moment: a reading that began before must not overwrite it."""
    now = timezone.now()
    said = {"status": status[:40]} if status else {}
    Submission.objects.filter(pk=row.pk).update(read_at=now, **said, **done)


def _refuse_to_reject(submission: Submission, client: PanelClient, *, category: str, message: str) -> None:
    if client.rejection_categories and category not in client.rejection_categories:
        raise StateRefused(f"category: use one of {', '.join(client.rejection_categories)}")
    if len(message) < client.shortest_reason:
        raise StateRefused(f"message: {len(message)} characters; the panel asks for {client.shortest_reason}")
    sitting = sittings_of(submission.posting, [submission]).get(submission.respondent_id or 0)
    if sitting is not None and sitting.state in (State.FAILED_CHECKS, State.TURNED_AWAY, State.SCREENED_OUT):
        raise StateRefused(
            "nobody is rejected for comprehension checks, for being screened out or for a study that was full: "
            "ask for a return"
        )
    is_for_attention = bool(category) and category == client.attention_category
    failed = failed_checks([sitting]).get(sitting.pk, 0) if sitting is not None else 0
    if is_for_attention and failed < FAILED_TO_REJECT:
        raise StateRefused(f"category: {category} needs {FAILED_TO_REJECT} failed attention checks")
    if status_of(submission, submission.posting) != Status.AWAITING_REVIEW:
        raise StateRefused(f"it is {submission.status}: only what waits for review can be rejected")


def settle_difference(submission: Submission, text: str, *, by: Any = None, via: str = "command") -> None:
    """Record what somebody decided about a difference. It counts until the submission's status changes.

    Raises:
        StateRefused: the sentence is empty.
    """
    if not text.strip():
        raise StateRefused("resolution: say in a sentence what was decided")
    submission.resolution = text.strip()[:300]
    submission.resolved_status, submission.resolved_at = submission.status, timezone.now()
    submission.save(update_fields=["resolution", "resolved_status", "resolved_at"])
    record("settle_difference", submission, by=by, via=via, resolution=submission.resolution)


def read_and_reconcile(study: Study) -> list[Reconciliation]:
    """Ask the panel about every posting of the study, then compare."""
    postings = list(study.postings.exclude(external_id="").select_related("study__bank", "stage").order_by("pk"))
    for posting in postings:
        read_posting(posting)
    return [reconcile(posting) for posting in postings]
