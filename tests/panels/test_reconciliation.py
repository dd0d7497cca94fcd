"""Our view against the panel's: every awkward case, what is proposed, and what is forbidden."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelError, PanelIds, PanelRefused, PanelUnreachable, SubmissionAtPanel
from survey.contracts.panels import SubmissionStatus as Status
from survey.exceptions import StateRefused
from survey.models import AttentionAnswer, AuditEntry, CompletionCode, Posting, Respondent, Sitting, Submission
from survey.panels import postings, reconciliation, submissions
from survey.panels.money import ids_of as submissions_ids
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import Breakage, FakeProlific, Refused
from survey.panels.prolific.statuses import in_one_spelling
from survey.panels.reconciliation import NOT_HERE, Action, Participation, judge
from survey.panels.submissions import read_posting, store
from survey.services.base.auditing import actor_of
from survey.services.sittings.enrolment import begin_sitting
from tests import cast

from .world import PAY, arrives, begins, posted, row_of, sits, stored_posting, stored_submission

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def posting(fake: FakeProlific) -> Posting:
    return posted()


def finding(posting: Posting) -> Participation:
    read_posting(posting)
    (only_finding,) = reconciliation.reconcile(posting).findings
    return only_finding


def code(posting: Posting, outcome: str = "completed") -> str:
    return posting.study.completion_code(outcome)


def test_a_request_that_the_panel_refused_may_be_made_again(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    begins(posting.study, place, until="item")
    fake.submit(place["id"], None)
    read_posting(posting)
    fake.break_next("request-return", Breakage.REFUSED)
    with pytest.raises(PanelRefused):
        reconciliation.ask_back(posting)
    assert not fake.submissions[place["id"]]["asked_back"]
    assert (reconciliation.ask_back(posting), fake.submissions[place["id"]]["asked_back"]) == (1, True)


def test_timed_out_but_complete_is_owed_the_reward(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    fake.time_out(place["id"])
    begins(posting.study, place)
    only_finding = finding(posting)
    assert (only_finding.ours, only_finding.theirs, only_finding.judgement.action) == (
        "complete",
        "TIMED-OUT",
        Action.PAY,
    )
    assert [payment.amount for payment in only_finding.owed] == [100]


def test_who_finished_and_came_back_without_a_code_is_approved(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], None)
    only_finding = finding(posting)
    assert only_finding.judgement.action == Action.APPROVE and "without a code" in only_finding.judgement.sentence
    assert reconciliation.approve_finished(posting) == 1
    assert finding(posting).is_settled and fake.submissions[place["id"]]["status"] == "APPROVED"


def test_without_a_code_and_unfinished_a_return_is_asked_for_once(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    begins(posting.study, place, until="item")
    fake.submit(place["id"], None)
    assert finding(posting).judgement.action == Action.ASK_BACK
    assert (reconciliation.ask_back(posting), reconciliation.ask_back(posting)) == (1, 0)
    assert finding(posting).judgement.action == Action.WAIT
    fake.follow_requests()
    assert finding(posting).is_settled


def test_returned_after_completion_is_for_a_person_to_settle(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    fake.submit(place["id"], code(posting))
    fake.give_up(place["id"])
    only_finding = finding(posting)
    assert only_finding.judgement.action == Action.LOOK and "withdrawn" in only_finding.judgement.sentence
    with pytest.raises(StateRefused):
        reconciliation.settle_difference(row_of(posting, sitting), "  ")
    reconciliation.settle_difference(row_of(posting, sitting), "Asked: the answers stay.")
    assert finding(posting).is_settled
    fake.submissions[place["id"]]["status"] = "REJECTED"
    assert finding(posting).judgement.action == Action.LOOK, "what was settled was another status"


def test_flags_stand_beside_what_to_do_and_change_nothing_of_it(fake: FakeProlific) -> None:
    posting = posted()
    posting.study.stored_config["flags"] = {"speeder": {}}
    posting.study.save()
    posting = Posting.objects.get(pk=posting.pk)
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], code(posting))
    only_finding = finding(posting)
    assert (only_finding.flags, only_finding.judgement.action) == (("speeder",), Action.APPROVE)
    assert only_finding.why == "finished; flagged speeder"
    assert reconciliation.approve_finished(posting) == 1


def test_what_was_found_names_nobody_by_the_panels_id_and_says_every_flag() -> None:
    look = reconciliation.Judgement(Action.LOOK, "look at it")
    ours = Participation(None, Respondent(pseudonym="r-1"), "live", "–", "", look, flags=("speeder", "hidden"))
    theirs = Participation(Submission(pk=7), None, NOT_HERE, "ACTIVE", "", look)
    nobody = Participation(None, None, NOT_HERE, "–", "", reconciliation.Judgement(Action.NOTHING, "well"))
    assert [participation.why for participation in (ours, theirs)] == [
        "look at it; flagged speeder, hidden",
        "look at it",
    ]
    assert [participation.who for participation in (ours, theirs, nobody)] == ["r-1", "submission 7", "somebody"]
    assert (ours.is_settled, nobody.is_settled, nobody.status) == (False, True, Status.UNKNOWN)


def test_approved_while_unfinished_is_shown(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    begins(posting.study, place, until="item")
    fake.submissions[place["id"]]["status"] = "APPROVED"
    only_finding = finding(posting)
    assert only_finding.judgement == judge("live", Status.APPROVED, "", said="APPROVED")
    assert only_finding.judgement.action == Action.LOOK and "never finished" in only_finding.judgement.sentence


LETTERS = dict(zip(Action, ".wabpsl", strict=True))
# For each status in `SubmissionStatus`'s order: what is proposed where nothing is owed, and where something is.
PROPOSED = {
    # reserved, under way, awaiting, approved, in part, rejected, returned, timed out, screened out, unknown
    "live": "         ww ww bb ll ll ll .p .p ll ll",
    "complete": "     ww ww aa .p .p ll ll .p ll ll",
    "expired": "      ww ww bb ll ll ll .p .p ll ll",
    "failed_checks": "ww ww bb ll ll ll .p .p ll ll",
    "turned_away": "  ww ww bb .p .p ll .p .p ll ll",
    "screened_out": " ww ww bb .p .p ll .p .p .p ll",
    NOT_HERE: "       ww ww bb ll ll ll .p .p ll ll",
}  # fmt: skip


@pytest.mark.parametrize("ours", PROPOSED)
def test_what_is_proposed(ours: str) -> None:
    cells = [LETTERS[judge(ours, theirs, "", owes=owes).action] for theirs in Status for owes in (False, True)]
    assert "".join(cells) == PROPOSED[ours].replace(" ", "")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("ACTIVE", Status.UNDER_WAY),
        ("AWAITING REVIEW", Status.AWAITING_REVIEW),
        ("PARTIALLY APPROVED", Status.PARTIALLY_APPROVED),
        ("TIMED-OUT", Status.TIMED_OUT),
        ("SCREENED OUT", Status.SCREENED_OUT),
        ("PROCESSING", Status.UNKNOWN),
    ],
)
def test_the_panels_words_are_known(said: str, status: Status) -> None:
    assert panels.get("prolific").submission_status(said) == status


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("no_consent", "did not consent"),
        ("study_full", "found all places taken"),
        ("", "never began here"),
        ("screened_out", "never began here"),
    ],
)
def test_who_never_began_is_told_by_the_code_they_entered(code: str, sentence: str) -> None:
    assert judge(NOT_HERE, Status.AWAITING_REVIEW, code).sentence == sentence


@pytest.mark.parametrize("ours", [*Sitting.State.values, NOT_HERE])
def test_nobody_who_handed_in_is_left_without_something_to_do(ours: str) -> None:
    for entered in ("", *CompletionCode.Outcome.values, "unknown"):
        judgement = judge(ours, Status.AWAITING_REVIEW, entered)
        assert judgement.action in (Action.APPROVE, Action.ASK_BACK, Action.LOOK)
        assert (judgement.action == Action.APPROVE) == (ours == "complete")
        has_code_of_others = entered == "completed" and ours in ("live", "expired", NOT_HERE)
        assert (judgement.action == Action.LOOK) == has_code_of_others


def test_the_panels_two_spellings_are_one() -> None:
    assert in_one_spelling("TIMED_OUT") == in_one_spelling("TIMED-OUT") == "TIMED-OUT"
    assert in_one_spelling("awaiting_review") == "AWAITING REVIEW"
    assert in_one_spelling(None) == "UNKNOWN" and in_one_spelling("PROCESSING") == "PROCESSING"


def test_somebody_the_panel_does_not_know_is_shown(posting: Posting, fake: FakeProlific) -> None:
    stranger = PanelIds("prolific", "made-up", posting.external_id, "made-up-too")
    begin_sitting(study=posting.study, ids=stranger)
    robot = begin_sitting(study=posting.study, ids=PanelIds("prolific", "robot", "s", "x"))
    Respondent.objects.filter(sittings=robot).update(is_simulated=True)  # As before postings kept them out.
    only_finding = finding(posting)
    assert only_finding.submission is None and only_finding.judgement.action == Action.LOOK
    assert "made-up" not in f"{only_finding.who} {only_finding.judgement.sentence}"


def test_nobody_is_a_stranger_who_came_after_one_of_the_postings_was_read(posting: Posting, fake: FakeProlific) -> None:
    other = postings.publish(postings.draft(posting.stage, root="http://testserver"))
    read_posting(posting)
    begins(posting.study, arrives(fake, posting))
    read_posting(other)
    assert reconciliation.reconcile(other).findings == ()
    begin_sitting(study=posting.study, ids=PanelIds("prolific", "made-up", posting.external_id, "made-up-too"))
    for each in (posting, other):
        read_posting(each)
    assert [finding.submission for finding in reconciliation.reconcile(other).findings] == [None]


def test_an_older_answer_never_overwrites_a_newer_one(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    now = timezone.now()

    def read(status: str) -> SubmissionAtPanel:
        return SubmissionAtPanel(place["id"], place["participant_id"], posting.external_id, status)

    store(posting, [read("AWAITING REVIEW")], read_at=now)
    store(posting, [read("ACTIVE")], read_at=now - timedelta(seconds=5))
    assert posting.submissions.get().status == "AWAITING REVIEW"
    store(posting, [read("APPROVED")], read_at=now + timedelta(seconds=5))
    assert posting.submissions.get().status == "APPROVED"
    unread = SubmissionAtPanel("unread", "somebody", posting.external_id, "ACTIVE")
    assert store(posting, [read("ACTIVE"), unread], read_at=now) == 2
    assert list(posting.submissions.order_by("pk").values_list("status", flat=True)) == ["APPROVED", "ACTIVE"]


def test_an_older_answer_that_is_stored_while_a_newer_one_is_changes_nothing(
    posting: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newer one comes after the older one has looked which rows there are, and before it writes."""
    place = arrives(fake, posting)
    now, seal = timezone.now(), submissions.seal

    def read(status: str) -> SubmissionAtPanel:
        return SubmissionAtPanel(place["id"], place["participant_id"], posting.external_id, status)

    def newer_first(ids: PanelIds) -> str:
        monkeypatch.setattr(submissions, "seal", seal)
        store(posting, [read("APPROVED")], read_at=now + timedelta(seconds=5))
        return seal(ids)

    monkeypatch.setattr(submissions, "seal", newer_first)
    store(posting, [read("ACTIVE")], read_at=now)
    row = posting.submissions.get()
    assert (row.status, row.read_at) == ("APPROVED", now + timedelta(seconds=5))


def test_who_returns_frees_the_place_at_once(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    sitting = begins(posting.study, place, until="item")
    fake.give_up(place["id"])
    read_posting(posting)
    sitting.refresh_from_db()
    assert sitting.state == Sitting.State.EXPIRED
    assert list(sitting.assignments.values_list("state", flat=True)) == ["released"]


def test_a_submission_read_before_its_person_began_is_joined_later(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    assert row_of(posting).respondent is None
    sitting = begins(posting.study, place)
    assert row_of(posting).respondent == sitting.respondent


def test_one_that_cannot_be_approved_does_not_stop_the_others(
    posting: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [arrives(fake, posting) for _ in range(3)]
    for place in places:
        begins(posting.study, place)
        fake.submit(place["id"], code(posting))
    read_posting(posting)
    with ProlificAccount.open() as client:
        approve = client.approve

        def sometimes(submission: str) -> Any:
            if submission == places[0]["id"]:
                raise PanelUnreachable("no")
            return approve(submission)

        def together(submissions: Any) -> None:
            raise PanelRefused("one of them is not possible")

        monkeypatch.setattr(client, "approve", sometimes)
        monkeypatch.setattr(client, "approve_all", together)
        with pytest.raises(PanelUnreachable):
            reconciliation.approve_finished(posting, client=client)
    assert [fake.submissions[place["id"]]["status"] for place in places] == [
        "AWAITING REVIEW",
        "APPROVED",
        "APPROVED",
    ]


def test_a_bulk_approval_that_breaks_off_in_the_middle_is_gone_on_with(
    posting: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The panel approves some and answers with 500, each time it is asked; then it works again."""
    for _person in range(4):
        place = arrives(fake, posting)
        begins(posting.study, place)
        fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    answer, asked = fake._answer, []

    def breaks_off(method: str, path: str, *args: Any, **more: Any) -> Any:
        if "bulk-approve" not in path:
            return answer(method, path, *args, **more)
        asked.append(path)
        waiting = [row for row in fake.submissions.values() if row["status"] == "AWAITING REVIEW"]
        if len(waiting) > 2:
            fake._move(waiting[0], "APPROVED")
        raise Refused(500, "Server error")

    monkeypatch.setattr(fake, "_answer", breaks_off)
    with pytest.raises(PanelUnreachable):
        reconciliation.approve_finished(posting)
    assert asked, "and nobody is asked for alone while it may be under way"
    (report,) = reconciliation.read_and_reconcile(posting.study)
    approved = [row for row in fake.submissions.values() if row["status"] == "APPROVED"]
    assert 0 < len(approved) < 4 and len(report.to(Action.APPROVE)) == 4 - len(approved)
    monkeypatch.setattr(fake, "_answer", answer)
    owner = User.objects.create_user("owner")
    assert reconciliation.approve_finished(posting, by=owner, via="admin") == 4 - len(approved)
    entry = AuditEntry.objects.filter(action="approve").latest("pk")
    assert (entry.actor, entry.via, entry.detail) == (actor_of(owner), "admin", {"people": 4 - len(approved)})
    (report,) = reconciliation.read_and_reconcile(posting.study)
    assert report.differences == []


def test_every_posting_that_is_at_the_panel_is_read_before_it_is_compared(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    first, _not_there, second = (stored_posting(study, **more) for more in ({}, {"external_id": ""}, {}))
    read: list[Posting] = []
    monkeypatch.setattr(reconciliation, "read_posting", read.append)
    assert [report.posting for report in reconciliation.read_and_reconcile(study)] == read == [first, second]


def test_what_approving_costs_is_the_reward_of_who_waits_for_it(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    posting = stored_posting(study)
    first, _second, unfinished, _approved, _late = (
        stored_submission(posting, sits(study, state), status)
        for state, status in (
            ("complete", "AWAITING REVIEW"), ("complete", "AWAITING REVIEW"), ("live", "AWAITING REVIEW"),
            ("complete", "APPROVED"), ("complete", "TIMED-OUT"),
        )
    )  # fmt: skip
    report = reconciliation.reconcile(posting)
    assert [reconciliation.cost_of_approving(report, only) for only in (None, first, unfinished)] == [200, 100, 0]


def test_nothing_is_approved_without_a_cap(posting: Posting, fake: FakeProlific) -> None:
    posting.study.stored_config["panel"]["spending_cap"] = None
    posting.study.save()
    fresh = Posting.objects.get()
    with pytest.raises(StateRefused, match=r"panel\.spending_cap"):
        reconciliation.approve_finished(fresh)


def fails_checks(sitting: Sitting, *names: str) -> None:
    """Attention checks answered wrongly."""
    now = timezone.now()
    AttentionAnswer.objects.bulk_create(
        AttentionAnswer(sitting=sitting, name=name, position=1, answer=1, shown=[0, 1], passed=False, at=now)
        for name in names
    )


WHY = "Both attention checks, each of which said which answer to choose, were answered otherwise than they asked for."


def test_a_rejection_is_a_persons_with_grounds_and_words(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    fake.submit(place["id"], code(posting))
    row = row_of(posting, sitting)
    with pytest.raises(StateRefused, match="message: 9 characters"):
        reconciliation.reject(row, category="FAILED_CHECK", message="Too short")
    with pytest.raises(StateRefused, match="category"):
        reconciliation.reject(row, category="RUDE", message=WHY)
    fails_checks(sitting, "first")
    with pytest.raises(StateRefused, match="FAILED_CHECK needs 2 failed attention checks"):
        reconciliation.reject(row, category="FAILED_CHECK", message=WHY)
    fails_checks(sitting, "second")
    reconciliation.reject(row, category="FAILED_CHECK", message=WHY)
    assert fake.submissions[place["id"]]["status"] == "REJECTED"
    assert finding(posting).is_settled
    assert AuditEntry.objects.filter(action="reject_submission").count() == 1


def test_two_failed_attention_checks_are_looked_at_and_nobody_is_rejected_by_them(
    posting: Posting, fake: FakeProlific
) -> None:
    places = [arrives(fake, posting) for _ in range(2)]
    once, twice = (begins(posting.study, place) for place in places)
    for place in places:
        fake.submit(place["id"], code(posting))
    fails_checks(once, "first")
    fails_checks(twice, "first", "second")
    read_posting(posting)

    def found() -> dict[str, reconciliation.Judgement]:
        return {finding.who: finding.judgement for finding in reconciliation.reconcile(posting).findings}

    assert found()[once.respondent.pseudonym].action == Action.APPROVE
    looked = found()[twice.respondent.pseudonym]
    assert looked.action == Action.LOOK and "failed 2 attention checks" in looked.sentence
    assert reconciliation.approve_finished(posting) == 1
    assert fake.submissions[places[1]["id"]]["status"] == "AWAITING REVIEW"
    # A person read the answers and keeps them: then they are paid like everybody.
    reconciliation.settle_difference(row_of(posting, twice), "The answers are thoughtful.")
    assert found()[twice.respondent.pseudonym].action == Action.APPROVE
    assert reconciliation.approve_finished(posting) == 1
    assert fake.submissions[places[1]["id"]]["status"] == "APPROVED"


def test_attention_checks_that_were_passed_are_no_failed_ones(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    fake.submit(place["id"], code(posting))
    fails_checks(sitting, "first", "second")
    AttentionAnswer.objects.update(passed=True)
    assert finding(posting).judgement.action == Action.APPROVE


def test_people_are_asked_back_for_what_happened_here_or_else_for_the_code_they_entered(
    db: None,
) -> None:
    reason = {
        ("failed_checks", "completed"): "failed checks", ("turned_away", ""): "study full",
        ("screened_out", ""): "screened out", ("live", "no_consent"): "not finished",
        ("expired", "failed_checks"): "not finished", (NOT_HERE, ""): "not finished",
        (NOT_HERE, "no_consent"): "no consent", (NOT_HERE, "failed_checks"): "failed checks",
        (NOT_HERE, "study_full"): "study full", (NOT_HERE, "screened_out"): "screened out",
        (NOT_HERE, "unknown"): "not finished",
    }  # fmt: skip
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    posting = stored_posting(study)
    codes = dict(study.codes.values_list("outcome", "code"))
    asked: list[Any] = []
    client: Any = SimpleNamespace(ask_to_return=lambda _submission, why: asked.append(str(why)), can=lambda _call: True)
    for ours, entered in reason:
        sitting = None if ours == NOT_HERE else sits(study, ours)
        code_entered = "nonsense" if entered == "unknown" else codes.get(entered, "")
        stored_submission(posting, sitting, "AWAITING REVIEW", entered_code=code_entered)
    assert reconciliation.ask_back(posting, client=client) == len(reason)
    assert asked == list(reason.values())
    assert posting.submissions.filter(asked_back_at__isnull=False, pending="").count() == len(reason)
    assert reconciliation.ask_back(posting, client=client) == 0


@pytest.mark.parametrize("is_known", [True, False])
def test_a_rejection_of_which_nobody_knows_waits_for_the_panels_word(db: None, is_known: bool) -> None:
    posting = stored_posting(cast.open_study(panel={**cast.PROLIFIC, **PAY}))
    row = stored_submission(posting, None, "AWAITING REVIEW")

    def fails(_submission: str, **_why: str) -> str:
        raise PanelError("no answer", outcome_is_known=is_known)

    client: Any = SimpleNamespace(
        rejection_categories=("LOW_EFFORT",), shortest_reason=5, attention_category="", reject=fails
    )
    with pytest.raises(PanelError, match="no answer"):
        reconciliation.reject(row, category="LOW_EFFORT", message=" Words. ", client=client)
    row.refresh_from_db()
    assert (row.pending, row.pending_at is None) == (("", True) if is_known else ("reject", False))
    assert (row.rejection_category, row.rejection_message, row.rejected_at) == ("LOW_EFFORT", "Words.", None)
    actions = ["reject_submission", *(["reject_submission_failed"] if is_known else [])]
    entries = AuditEntry.objects.filter(action__startswith="reject_submission").order_by("pk")
    assert list(entries.values_list("action", flat=True)) == actions
    if not is_known:
        with pytest.raises(StateRefused, match="has not answered"):
            reconciliation.reject(row, category="LOW_EFFORT", message="Words.", client=client)


@pytest.mark.parametrize(
    ("what", "status", "minutes", "was_asked", "is_ended", "is_rejected"),
    [
        ("reject", "REJECTED", 1, False, True, True),
        ("reject", "AWAITING REVIEW", 1, False, False, False),
        ("reject", "AWAITING REVIEW", 1, True, False, False),
        ("reject", "AWAITING REVIEW", 60, False, True, False),
        ("reject", "APPROVED", 1, False, True, False),
        ("reject", "REJECTED", -1, False, False, False),
        ("ask_back", "AWAITING REVIEW", 60, False, False, False),
        ("ask_back", "AWAITING REVIEW", 1, True, True, False),
        ("ask_back", "RETURNED", 1, False, True, False),
        ("ask_back", "REJECTED", 1, False, True, False),
    ],
)
def test_what_the_panel_was_asked_for_ends_by_what_it_says_later(
    db: None, what: str, status: str, minutes: int, was_asked: bool, is_ended: bool, is_rejected: bool
) -> None:
    posting = stored_posting(cast.open_study(panel={**cast.PROLIFIC, **PAY}))
    now = timezone.now()
    row = stored_submission(
        posting, None, "AWAITING REVIEW", pending=what, pending_at=now, read_at=now - timedelta(hours=1),
        rejection_category="LOW_EFFORT",
    )  # fmt: skip
    ids = submissions_ids(row)
    at_panel = SubmissionAtPanel(
        ids.submission, ids.person, posting.external_id, status, asked_back_at=now if was_asked else None
    )
    store(posting, [at_panel], read_at=now + timedelta(minutes=minutes))
    row.refresh_from_db()
    assert (row.pending == "", row.pending_at is None) == (is_ended, is_ended)
    assert (row.rejected_at == now and row.resolution == "rejected by us: LOW_EFFORT") is is_rejected
    assert row.resolved_status == ("REJECTED" if is_rejected else "")
    assert (row.asked_back_at is not None) is was_asked


@pytest.mark.parametrize("state", ["failed_checks", "turned_away", "screened_out"])
def test_nobody_is_rejected_who_was_sent_away(posting: Posting, fake: FakeProlific, state: str) -> None:
    place = arrives(fake, posting)
    sitting = begins(posting.study, place, until="checks")
    Sitting.objects.filter(pk=sitting.pk).update(state=state, ended_at=timezone.now())
    fake.submit(place["id"], None)
    with pytest.raises(StateRefused, match="nobody is rejected for comprehension checks, for being screened out"):
        reconciliation.reject(row_of(posting, sitting), category="LOW_EFFORT", message=WHY)
    assert fake.submissions[place["id"]]["status"] == "AWAITING REVIEW"


def test_failed_comprehension_checks_never_lead_to_a_rejection(posting: Posting, fake: FakeProlific) -> None:
    place = arrives(fake, posting)
    sitting = begins(posting.study, place, fails=True)
    fake.submit(place["id"], None)
    with pytest.raises(StateRefused, match="ask for a return"):
        reconciliation.reject(row_of(posting, sitting), category="FAILED_CHECK", message=WHY)
    assert finding(posting).judgement.action == Action.ASK_BACK
