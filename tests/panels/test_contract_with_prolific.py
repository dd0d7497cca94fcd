"""What Prolific's own documents say, where it is easy to miss: parts of a study, pauses, reasons, secrets, errors."""

import json
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.contracts.panels import PanelRefused, PanelUnreachable
from survey.exceptions import FileErrors, StateRefused
from survey.models import Alert, AuditEntry, Posting, PostingPart, Study, Submission
from survey.operation.causes import still_paused
from survey.panels import money, postings, reconciliation, submissions, webhooks
from survey.panels.postings import Move
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.drafts import as_html
from survey.panels.prolific.fake import FakeProlific
from survey.panels.reconciliation import Action
from survey.panels.submissions import read_posting
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.entry import arrive
from tests import cast

from .prolific_contract import STUDY_MOVES, SUBMISSION_MOVES, Keeper, shortest_time_allowed
from .test_entry import HOST, given, refusal, signed
from .test_prolific import STUDY, Line
from .world import PAY, arrives, begins, ids_of, posted

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PART = "5f0000000000000000000001"


# Quotas and representative samples: a study has parts with ids of their own


def comes_by_a_part(fake: FakeProlific, posting: Posting, part: str = PART) -> dict[str, Any]:
    place = fake.take_place(posting.external_id, part=part)
    assert place is not None and place["study_id"] == part
    return place


def test_who_comes_by_a_part_is_let_in_and_counts_with_the_posting(fake: FakeProlific) -> None:
    posting = posted()
    place = comes_by_a_part(fake, posting)
    visitor = arrive(posting.study, given(place), host=HOST)
    assert visitor is not None and visitor.confirmed and visitor.ids.study == posting.external_id
    assert PostingPart.objects.get().external_id == PART
    fake.calls.clear()
    second = comes_by_a_part(fake, posting)
    assert arrive(posting.study, given(second), host=HOST) is not None
    assert len(fake.calls) == 1, "each person is looked up once, the part no more"


def test_a_part_of_somebody_elses_study_is_refused(fake: FakeProlific) -> None:
    posting, other = posted(), "5f00000000000000000000ff"
    fake.studies[other] = {**fake.studies[posting.external_id], "id": other}
    place = fake.take_place(other, part=PART)
    assert place is not None
    assert refusal(posting.study, given(place)) == "not_sent_by_panel"
    assert not PostingPart.objects.exists()


def test_by_a_signed_link_a_part_is_let_in_too(fake: FakeProlific) -> None:
    posting = posted(signed_entry=True)
    visitor = arrive(posting.study, signed(fake, comes_by_a_part(fake, posting)), host=HOST)
    assert visitor is not None and visitor.signed and visitor.ids.study == posting.external_id


def test_without_a_token_nobody_knows_parts(fake: FakeProlific, settings: Any) -> None:
    posting = posted()
    place = comes_by_a_part(fake, posting)
    settings.HUNCH_PROLIFIC_TOKEN = ""
    assert refusal(posting.study, given(place)) == "not_sent_by_panel"


def test_submissions_of_parts_are_read_and_told_with_the_posting(fake: FakeProlific) -> None:
    posting = posted()
    place = comes_by_a_part(fake, posting)
    visitor = arrive(posting.study, given(place), host=HOST)
    assert visitor is not None
    sitting = begins(posting.study, {**place, "study_id": visitor.ids.study})
    fake.submit(place["id"], posting.study.completion_code("completed"))
    for event in fake.webhooks():
        webhooks.take("prolific", headers=event.headers, body=event.body)
    assert webhooks.work_on_events() > 0
    row = Submission.objects.get()
    assert (row.posting, row.respondent, row.status) == (posting, sitting.respondent, "AWAITING REVIEW")
    assert read_posting(posting) == 1
    assert [finding.judgement.action for finding in reconciliation.reconcile(posting).findings] == [Action.APPROVE]
    assert reconciliation.approve_finished(posting) == 1


def test_a_link_of_another_workspace_is_refused(fake: FakeProlific, settings: Any) -> None:
    posting = posted(signed_entry=True)
    place = arrives(fake, posting)
    settings.HUNCH_PROLIFIC_WORKSPACE = "another"
    assert refusal(posting.study, signed(fake, place)) == "not_sent_by_panel"
    settings.HUNCH_PROLIFIC_WORKSPACE = "fake-workspace"
    assert arrive(posting.study, signed(fake, place), host=HOST) is not None


# The states as they are


def test_a_place_given_back_after_all_were_used_pauses_the_study_and_somebody_is_told(fake: FakeProlific) -> None:
    posting = posted(sittings=1, places=1)
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    assert posting.state == "AWAITING REVIEW" and list(still_paused(timezone.now())) == []
    fake.give_up(place["id"])
    read_posting(posting)
    assert posting.state == "PAUSED"
    (trouble,) = still_paused(timezone.now())
    assert trouble.cause == Alert.Cause.POSTING_PAUSED
    assert f"hunch posting {posting.study.slug} start" in trouble.message
    assert [entry.detail["now"] for entry in AuditEntry.objects.filter(action="posting_state").order_by("pk")] == [
        "AWAITING REVIEW",
        "PAUSED",
    ]
    postings.change(posting, Move.START)
    assert list(still_paused(timezone.now())) == []


def test_who_pauses_it_here_is_not_told_so(fake: FakeProlific) -> None:
    posting = posted()
    postings.change(posting, Move.PAUSE)
    read_posting(posting)
    assert posting.state == "PAUSED" and list(still_paused(timezone.now())) == []


@pytest.mark.parametrize("state", ["AWAITING REVIEW", "COMPLETED"])
def test_more_places_make_it_active_again(fake: FakeProlific, state: str) -> None:
    posting = posted()
    fake.studies[posting.external_id]["status"] = state
    postings.add_places(posting, 2)
    assert fake.studies[posting.external_id]["status"] == posting.state == "ACTIVE"


def test_more_places_leave_it_paused(fake: FakeProlific) -> None:
    posting = posted()
    postings.change(posting, Move.PAUSE)
    postings.add_places(posting, 2)
    assert fake.studies[posting.external_id]["status"] == posting.state == "PAUSED"
    assert fake.studies[posting.external_id]["total_available_places"] == posting.places == 8


def test_a_completed_study_is_read_while_people_are_inside_and_once_a_day_after(fake: FakeProlific) -> None:
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.studies[posting.external_id]["status"] = "COMPLETED"
    read_posting(posting)
    assert submissions.read_all() == 1, "somebody is inside"
    fake.submit(place["id"], posting.study.completion_code("completed"))
    reconciliation.read_and_reconcile(posting.study)
    reconciliation.approve_finished(posting)
    read_posting(posting)
    assert submissions.read_all() == 0
    Posting.objects.update(read_at=timezone.now() - timedelta(days=1, minutes=1))
    assert submissions.read_all() == 1, "more places may have made it active again"


# Asking for a return


def test_nobody_is_asked_whom_the_panel_has_asked_by_the_code_or_by_hand(fake: FakeProlific) -> None:
    posting = posted()
    by_code, by_hand, leaver = (arrives(fake, posting) for _ in range(3))
    begins(posting.study, by_code, fails=True)
    fake.submit(by_code["id"], posting.study.completion_code("failed_checks"))
    for place in (by_hand, leaver):
        begins(posting.study, place, until="checks")
        fake.submit(place["id"], None)
    fake.submissions[by_hand["id"]]["return_requested"] = "2026-11-01T10:00:00Z"
    read_posting(posting)
    assert Submission.objects.filter(asked_back_at__isnull=False).count() == 2
    assert reconciliation.ask_back(posting) == 1
    assert [len(row["reasons"]) for row in fake.submissions.values()] == [1, 0, 1]
    assert fake.submissions[leaver["id"]]["reasons"] == ["Did not finish study."]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("no_consent", "Withdrew consent."),
        ("study_full", "All places of the study were taken."),
        ("failed_checks", "The questions about the instructions were not answered correctly."),
    ],
)
def test_each_is_asked_with_the_reason_of_their_case(fake: FakeProlific, outcome: str, reason: str) -> None:
    posting = posted(codes={outcome: "manually_review"})
    place = arrives(fake, posting)
    fake.submit(place["id"], posting.study.completion_code(outcome))
    read_posting(posting)
    assert reconciliation.ask_back(posting) == 1
    assert fake.submissions[place["id"]]["reasons"] == [reason]


# Approving


def test_several_are_approved_by_one_call(fake: FakeProlific) -> None:
    posting = posted()
    for place in [arrives(fake, posting) for _ in range(3)]:
        begins(posting.study, place)
        fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    fake.calls.clear()
    assert reconciliation.approve_finished(posting) == 3
    assert fake.calls == [("POST", "/api/v1/submissions/bulk-approve/")]
    assert reconciliation.reconcile(posting).to(Action.APPROVE) == [], "they wait for the next reading"
    read_posting(posting)
    assert reconciliation.reconcile(posting).differences == []


def test_approvals_of_which_nobody_knows_are_looked_at_before_they_are_asked_for_again(fake: FakeProlific) -> None:
    posting = posted()
    for place in [arrives(fake, posting) for _ in range(2)]:
        begins(posting.study, place)
        fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    fake.calls.clear()

    def lost(_submissions: Any) -> None:
        raise PanelUnreachable("no answer", outcome_is_known=False)

    with ProlificAccount.open() as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "approve_all", lost)
        with pytest.raises(PanelUnreachable):
            reconciliation.approve_finished(posting, client=client)
    assert reconciliation.approve_finished(posting) == 0 and fake.calls == []
    read_posting(posting)
    assert reconciliation.approve_finished(posting) == 2


# What is sent, and what comes back


def test_the_description_is_html_with_everything_else_escaped() -> None:
    text = "About <models>\n& people\n\n- one\n-  two\nAfter\n\n\n- three"
    assert as_html(text) == (
        "<p>About &lt;models&gt;<br>&amp; people</p><ul><li>one</li><li>two</li></ul>"
        "<p>After</p><ul><li>three</li></ul>"
    )


def test_whole_numbers_go_out_whole_and_the_project_is_named(fake: FakeProlific) -> None:
    filters = [{"filter_id": "age", "selected_range": {"lower": 18, "upper": 64.5}}]
    sent = fake.studies[posted(publish=False, filters=filters, project="p1").external_id]
    (age,) = sent["filters"]
    assert repr(age["selected_range"]) == "{'lower': 18, 'upper': 64.5}"
    assert sent["project"] == "p1" and sent["description"].startswith("<p>")


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("Too few places", "Too few places"),
        ({"reward": ["is too low"], "filters": {"age": "unknown"}}, "reward: is too low; filters.age: unknown"),
        (["one", {"name": ["two", 3]}], "one; name: two; name: 3"),
        ({}, "Error creating study"),
    ],
)
def test_an_errors_detail_is_shown_whatever_its_shape(detail: Any, words: str) -> None:
    error = {"error": {"error_code": 1, "title": "Error creating study", "detail": detail}}
    with pytest.raises(PanelRefused) as caught:
        Line(httpx.Response(400, json=error)).client.create_study({})
    assert caught.value.message.endswith(f": {words}")


def subscribe(*more: str) -> str:
    out = StringIO()
    address = "https://study.example/hooks/prolific"
    call_command("subscribe_webhooks", "--workspace", "w1", "--url", address, *more, stdout=out)
    return out.getvalue()


def test_a_workspaces_secret_stays_and_nothing_is_subscribed_twice(fake: FakeProlific) -> None:
    before = fake.secret
    assert f"HUNCH_PROLIFIC_WEBHOOK_SECRET={before}\n" in subscribe()
    assert len(fake.subscriptions) == 2
    assert subscribe().count("already") == 2
    assert (fake.secret, len(fake.subscriptions)) == (before, 2)
    subscribe("--new-secret")
    assert fake.secret != before


def test_a_workspace_without_a_secret_gets_one(fake: FakeProlific) -> None:
    fake.has_secret, before = False, fake.secret
    assert f"HUNCH_PROLIFIC_WEBHOOK_SECRET={fake.secret}" not in subscribe() and fake.secret != before


# Whom the panel may send


def test_groups_weightings_and_dates_go_out_as_the_panel_takes_them(fake: FakeProlific) -> None:
    filters = [
        {
            "filter_id": "or",
            "selected_filters": [
                {"filter_id": "age", "selected_range": {"lower": 18.0}},
                {"filter_id": "joined", "selected_range": {"lower": date(2024, 1, 31)}},
            ],
        },
        {"filter_id": "handedness", "selected_values": ["0", "1"], "weightings": {"0": 1, "1": 3}},
    ]
    sent = fake.studies[posted(publish=False, filters=filters).external_id]
    assert sent["filters"] == [
        {
            "filter_id": "or",
            "selected_filters": [
                {"filter_id": "age", "selected_range": {"lower": 18}},
                {"filter_id": "joined", "selected_range": {"lower": "2024-01-31"}},
            ],
        },
        {"filter_id": "handedness", "selected_values": ["0", "1"], "weightings": {"0": 1, "1": 3}},
    ]
    assert sent["study_type"] == "QUOTA"


def test_a_filter_set_goes_out_in_place_of_filters(fake: FakeProlific) -> None:
    sent = fake.studies[posted(publish=False, filter_set="set1").external_id]
    assert sent["filter_set_id"] == "set1" and "filters" not in sent


LEAF = {"filter_id": "age", "selected_range": {"lower": 18}}
DEEP = {"filter_id": "or", "selected_filters": [LEAF]}
for _ in range(3):
    DEEP = {"filter_id": "and", "selected_filters": [DEEP]}


@pytest.mark.parametrize(
    ("panel", "words"),
    [
        ({"filters": [{"filter_id": "or"}]}, "needs selected_filters"),
        ({"filters": [{**LEAF, "selected_filters": [LEAF]}]}, "belong to a group"),
        ({"filters": [DEEP]}, "at most 3"),
        ({"filters": [{"filter_id": "a", "selected_values": ["0"], "weightings": {"1": 1}}]}, "not among selected"),
        ({"filters": [{"filter_id": "a", "selected_range": {"lower": 1, "upper": date(2024, 1, 1)}}]}, "both be"),
        ({"filters": [LEAF], "filter_set": "set1"}, "one of the two"),
        ({"screen_out_pay": 20}, "belong together"),
        ({"reward": 100, "screen_out_pay": 100, "screen_out_places": 5}, "below the reward"),
    ],
)
def test_what_the_panel_would_refuse_is_refused_here(panel: dict[str, Any], words: str) -> None:
    with pytest.raises(FileErrors, match=words):
        cast.open_study(panel={**cast.PROLIFIC, **PAY, **panel})


# People who are screened out are paid


ADULT = {"name": "adult", "label": "Adult?", "kind": "choice", "options": ["Yes", "No"], "required": True}
SCREENER = {"kind": "form", "name": "screener", "fields": [{**ADULT, "screen_out": ["No"]}]}
PAID = {"screen_out_pay": 20, "screen_out_places": 2}


def study_that_screens(**panel: Any) -> Study:
    blocks = cast.BASE["blocks"]
    return cast.open_study(
        panel={**cast.PROLIFIC, **PAY, **PAID, **panel},
        blocks=[*blocks[:2], SCREENER, *blocks[2:]],
        sitting={"items": 1},
        stages=[{"sittings": 6}],
    )


def screening() -> Posting:
    return postings.publish(postings.draft(study_that_screens().stages.get(index=1), root="http://testserver"))


def is_screened_out(fake: FakeProlific, posting: Posting) -> dict[str, Any]:
    place = arrives(fake, posting)
    sitting = begin_sitting(study=posting.study, ids=ids_of(place))
    step = cast.walk(sitting, until="form")
    end = advance(sitting=sitting, step=step.number, data={"adult": "No"})
    fake.submit(place["id"], end.code)
    return place


def test_who_is_screened_out_is_paid_by_the_panel_and_all_of_it_is_under_the_cap(fake: FakeProlific) -> None:
    posting = screening()
    codes = {entry["code"]: entry for entry in fake.studies[posting.external_id]["completion_codes"]}
    declared = codes[posting.study.completion_code("screened_out")]
    assert declared["code_type"] == "FIXED_SCREENOUT"
    assert declared["actions"] == [{"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 20, "slots": 2}]
    assert money.committed(posting.study) == 6 * 100 + 2 * 20
    first = is_screened_out(fake, posting)
    read_posting(posting)
    assert fake.paid == [(first["id"], Decimal("0.2"))]
    assert reconciliation.reconcile(posting).differences == [] and posting.state == "ACTIVE"
    is_screened_out(fake, posting)
    read_posting(posting)
    assert posting.state == "PAUSED", "its places for screen-outs are used"
    assert [trouble.cause for trouble in still_paused(timezone.now())] == [Alert.Cause.POSTING_PAUSED]


def test_places_for_screen_outs_raised_at_the_panel_count_too(fake: FakeProlific) -> None:
    posting = screening()
    for entry in fake.studies[posting.external_id]["completion_codes"]:
        for action in entry["actions"]:
            action["slots"] = 10
    read_posting(posting)
    assert money.committed(posting.study) == 6 * 100 + 10 * 20


def test_the_cap_covers_screen_outs(fake: FakeProlific) -> None:
    study = study_that_screens(spending_cap=639)
    draft = postings.draft(study.stages.get(index=1), root="http://testserver")
    with pytest.raises(StateRefused, match="640 more would make"):
        postings.publish(draft)


def test_who_is_screened_out_and_was_not_paid_is_looked_at_and_not_asked_to_return(fake: FakeProlific) -> None:
    posting = screening()
    for entry in fake.studies[posting.external_id]["completion_codes"]:
        entry["actions"] = [{"action": "MANUALLY_REVIEW"}]
    is_screened_out(fake, posting)
    read_posting(posting)
    (finding,) = reconciliation.reconcile(posting).findings
    assert finding.judgement.action == Action.LOOK and "not paid yet" in finding.why


# The contract itself


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "answer", "words"),
    [
        ("GET", "/api/v1/users/me/", None, 200, {}, "no such call"),
        ("GET", "/api/v1/studies/?size=3", None, 200, {"results": []}, "parameters ['size']"),
        ("POST", "/api/v1/studies/s/transition/", {"action": "OPEN"}, 200, {}, "'OPEN' is not one of"),
        ("PATCH", "/api/v1/studies/s/", {"reward": 3}, 200, {}, "'total_available_places' is a required property"),
        ("GET", "/api/v1/submissions/x/", None, 200, {"id": "x", "status": "DONE"}, "'DONE' is not one of"),
        ("GET", "/api/v1/submissions/x/", None, 404, {"detail": "no"}, "'error' is a required property"),
        ("POST", "/api/v1/submissions/bonus-payments/", {"study_id": "s", "csv_bonuses": "x,1.5\n"}, 201, {}, "match"),
    ],
)
def test_what_breaks_the_contract_is_noticed(
    method: str, path: str, sent: Any, status: int, answer: Any, words: str
) -> None:
    keeper = Keeper()
    keeper.look_at_call(method, path, json.dumps(sent).encode() if sent else b"", status, answer)
    assert any(words in fault for fault in keeper.faults)


def test_a_status_that_cannot_follow_is_noticed() -> None:
    keeper = Keeper()
    keeper.look_at_move("study", "AWAITING REVIEW", "ACTIVE", STUDY_MOVES)
    keeper.look_at_move("submission", "APPROVED", "APPROVED", SUBMISSION_MOVES)
    assert keeper.faults == []
    keeper.look_at_move("study", "UNPUBLISHED", "PAUSED", STUDY_MOVES)
    keeper.look_at_move("submission", "APPROVED", "RETURNED", SUBMISSION_MOVES)
    assert len(keeper.faults) == 2


@pytest.mark.parametrize("minutes", [1, 5, 12, 60])
def test_the_fake_refuses_too_short_a_time_as_prolific_does(fake: FakeProlific, minutes: int) -> None:
    shortest = shortest_time_allowed(minutes)
    with ProlificAccount.open() as client:
        client.api.create_study({**STUDY, "estimated_completion_time": minutes, "maximum_allowed_time": shortest})
        with pytest.raises(PanelRefused, match=f"maximum_allowed_time: must be at least {shortest}"):
            client.api.create_study(
                {**STUDY, "estimated_completion_time": minutes, "maximum_allowed_time": shortest - 1}
            )
