"""What the study page says to do next: the gravest first, and each at its bound."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from survey.live import paying
from survey.live.next_action import Facts, NextAction, next_action
from survey.live.paying import AtPanel, Debt, PayByHour
from survey.live.stage_sections import Inside, StepFacts
from survey.models import PaymentBatch, Posting, Respondent, Sitting, Stage, Study, Submission
from survey.services.stages.waiting import Waiting
from tests import cast

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def section(**facts: Any) -> Any:
    """Of an open stage of which one place of four is free."""
    there = {"index": 1, "complete": 3, "live": 0, "booklets": 4, "free_booklets": 1, "sittings": {"live": 1}}
    return SimpleNamespace(**{**there, "failed_steps": (), "is_working": False, "inside": None, **facts})


def said(
    study: Study,
    *,
    stage: dict[str, Any] | None = None,
    of_section: dict[str, Any] | None = None,
    newest: datetime | None = None,
    postings: tuple[AtPanel, ...] = (),
    debts: tuple[Debt, ...] = (),
    pay: PayByHour | None = None,
    has_slow: bool = True,
    problem: str = "",
) -> NextAction:
    row = Stage(**{"study": study, "index": 1, "state": "open", "seed": 1, "opened_at": NOW, **(stage or {})})
    money: Any = SimpleNamespace(postings=postings, debts=debts, pay=pay) if has_slow else None
    facts = Facts(study, [row], {1: section(**(of_section or {}))}, NOW, newest, money)
    return next_action(facts, problem=problem)


def at_panel(**facts: Any) -> AtPanel:
    there = {"posting": 7, "stage": 1, "state": "ACTIVE", "places": 4, "by_status": (), "error": ""}
    return AtPanel(**{**there, "to_review": 0, "unsettled": 0, **facts})


def test_what_is_broken_and_peoples_money_come_first() -> None:
    study = cast.stored_study(panel={**cast.PROLIFIC, "reward": 100, "spending_cap": 10_000})
    everything: dict[str, Any] = {
        "problem": "the instrument is gone",
        "of_section": {"failed_steps": [SimpleNamespace(title="Freeze", error="No room.\nTraceback")]},
        "postings": (at_panel(to_review=1), at_panel(posting=8, to_review=2, unsettled=1)),
        "debts": (Debt(None, 2, 250, "USD"),),
        "pay": PayByHour("2.00 USD an hour", is_too_low=True),
    }
    expected = [
        ("problem", "Fix this first: the instrument is gone", None, True),
        ("of_section", "A step of stage 1 has failed (Freeze): No room. Once that is mended, try", None, True),
        ("unsettled", "A payment of posting 8 may have been made or not", 8, True),
        ("one", "1 person waits to be approved", 7, False),
        ("postings", "2 people wait to be approved", 8, False),
        ("debts", "2 people are owed 2.50 USD: save the list and pay from it", None, False),
        ("pay", "Too little is paid: 2.00 USD an hour", None, True),
        ("", "Stage 1 is open, 3 of 4 people are done", None, False),
    ]
    for what, words, posting, is_urgent in expected:
        if what == "":
            everything["postings"] = (at_panel(),)
        action = said(study, **everything)
        assert action.words.startswith(words), action
        assert (action.posting, action.is_urgent) == (posting, is_urgent), action
        if what == "unsettled":
            everything["postings"] = (at_panel(to_review=1), at_panel(posting=8, to_review=2))
        elif what == "one":
            everything["postings"] = (at_panel(), at_panel(posting=8, to_review=2))
        else:
            everything.pop(what, None)
    of_posting = said(study, debts=(Debt(7, 1, 250, "USD"),), postings=(at_panel(),))
    assert of_posting.words == "1 person is owed 2.50 USD: pay them on the posting's page."
    assert said(study, pay=PayByHour("enough", is_too_low=False), postings=(at_panel(),)).words.endswith(
        "you have enough."
    )


def test_an_open_stage_is_closed_once_it_is_full_and_empty() -> None:
    study = cast.stored_study()
    full = said(study, of_section={"free_booklets": 0})
    assert (full.action, full.stage) == ("close", 1) and "is full, 3 of" in full.words
    assert said(study, of_section={"free_booklets": 0, "live": 1}).action == ""
    assert said(study, of_section={"free_booklets": 1}).action == ""
    assert said(study, of_section={"booklets": 0, "free_booklets": 0}).action == ""


def test_a_quiet_stage_is_urgent_from_the_minute_on_that_the_setting_says(settings: Any) -> None:
    settings.HUNCH_NO_ARRIVALS_MINUTES = 65
    study = cast.stored_study()
    long_ago = {"stage": {"opened_at": NOW - timedelta(days=1)}}
    quiet = said(study, **long_ago, newest=NOW - timedelta(minutes=65))
    assert quiet.is_urgent and "for 1 h 5 min, and 1 places are free" in quiet.words
    assert not said(study, **long_ago, newest=NOW - timedelta(minutes=64)).is_urgent
    assert said(study, **long_ago).is_urgent
    assert not said(study, newest=NOW - timedelta(days=1)).is_urgent, "it was opened just now"
    assert not said(study, **long_ago, of_section={"free_booklets": 0, "live": 1}).is_urgent
    settings.HUNCH_NO_ARRIVALS_MINUTES = 0
    assert not said(study, **long_ago).is_urgent


def test_where_nobody_has_come_it_says_how_to_invite_people() -> None:
    nobody = {"of_section": {"sittings": {}, "complete": 0}}
    at_prolific = cast.stored_study(panel={**cast.PROLIFIC, "reward": 100, "spending_cap": 10_000})
    assert said(at_prolific, **nobody).invites == "posting"
    assert said(at_prolific, **nobody, postings=(at_panel(stage=2),)).invites == "posting"
    assert said(at_prolific, **nobody, postings=(at_panel(),)).invites == ""
    assert said(at_prolific, **nobody, has_slow=False).invites == "", "not read yet"
    bank = at_prolific.bank
    assert said(cast.stored_study("links", on=bank, panel={"kind": "links"}), **nobody).invites == "links"
    open_study = cast.stored_study("open", on=bank)
    assert said(open_study, **nobody).invites == "address" and said(open_study).invites == ""
    open_study.test_of = at_prolific
    assert said(open_study, **nobody).invites == ""


def step(title: str, state: str = "queued", **facts: Any) -> StepFacts:
    there = {"pk": 1, "state_in_words": state, "progress_done": 0, "progress_total": 0, "progress_text": ""}
    there |= {"seconds": None, "seconds_left": None, "tries_left": 3, "error": "", "kind": title}
    return StepFacts(**{**there, "title": title, "state": state, **facts})


def at_work(*steps: StepFacts, training_left: float | None = None) -> dict[str, Any]:
    return {"is_working": True, "unfinished_steps": list(steps), "training_seconds_left": training_left}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "facts", "words", "action"),
    [
        ("paused", {}, "Stage 1 is paused, 3 of 4 people are done: resume it or close it.", "resume"),
        ("closing", {}, "Stage 1 is closing: its answers are frozen in a moment.", ""),
        (
            "closing",
            {"inside": Inside(1, datetime(2026, 11, 28, 4, 58, tzinfo=UTC)), **at_work(step("freeze"))},
            "Stage 1 waits for 1 person still inside, until 04:58 UTC if they send nothing more. Close it now if you "
            "will not wait.",
            "close-now",
        ),
        (
            "closing",
            at_work(step("freeze")),
            "Stage 1 is being worked on: freeze waits for its turn. It goes on by itself.",
            "",
        ),
        (
            "closing",
            at_work(step("freeze", "running")),
            "Stage 1 is being worked on: freeze. It goes on by itself.",
            "",
        ),
        (
            "frozen",
            at_work(step("evaluate"), step("score", waits=Waiting("for the worker that trains", is_untaken=True))),
            "Stage 1 does not go on: score waits for the worker that trains.",
            "",
        ),
        (
            "open",
            {"live": 2, "booklets": 8, "free_booklets": 3},
            "Stage 1 is open, 3 of 4 people are done and 2 people inside: it waits for 3 more people. Close it when "
            "you have enough.",
            "",
        ),
        (
            "open",
            {"live": 1, "booklets": 8, "free_booklets": 0},
            "Stage 1 is open, 3 of 4 people are done, and all places are taken: it waits for 1 person inside.",
            "",
        ),
        (
            "frozen",
            at_work(step("plan", waits=Waiting("behind work of another study."))),
            "Stage 1 does not go on: plan waits behind work of another study.",
            "",
        ),
        ("planned", {}, "Stage 1 is ready: open it.", "open"),
        ("draft", {}, "Stage 1 is ready: open it.", "open"),
        ("frozen", {}, "Every stage is frozen. Read the estimates and the reports, and export the data.", ""),
    ],
)
def test_each_state_of_a_stage_has_its_sentence(state: str, facts: dict[str, Any], words: str, action: str) -> None:
    advice = said(cast.stored_study(), stage={"state": state}, of_section=facts)
    assert (advice.words, advice.action) == (words, action)


def test_a_long_training_may_be_stopped_where_the_next_stage_waits_for_it() -> None:
    study = cast.stored_study(stages=[{"sittings": 2}, {"sittings": 2, "design": {"kind": "epsilon_greedy"}}])
    running = at_work(step("train", "running", seconds_left=60.0), step("train"), training_left=7530.0)

    def advice(state: str) -> NextAction:
        rows = [Stage(study=study, index=index, state=state, seed=1) for index, state in ((1, "frozen"), (2, state))]
        return next_action(Facts(study, rows, {1: section(**running)}, NOW))

    offered = advice("draft")
    assert (offered.action, offered.stage) == ("stop-training", 2)
    assert offered.words.startswith("Stage 1 is being worked on: train, about 2 h 5 min left. If you will not wait")
    assert "draw stage 2 uniformly" in offered.words
    not_needed = advice("planned")
    assert not_needed.action == "" and not_needed.words.endswith("2 h 5 min left. It goes on by itself.")


def test_people_here_and_at_the_panel_are_compared_as_far_as_it_was_read() -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, "reward": 100, "spending_cap": 10_000})
    stage = cast.stage_of(study)
    posting = Posting.objects.create(
        study=study, stage=stage, panel="prolific", internal_name="p", external_id="x", reward=100, currency="USD",
        places=4, expected_minutes=3, published_at=NOW, read_at=NOW,
    )  # fmt: skip

    def person(status: str = "", *, minutes: float = -5, is_simulated: bool = False, finished: bool = True) -> None:
        respondent = Respondent.objects.create(study=study, is_simulated=is_simulated)
        if finished:
            at = NOW + timedelta(minutes=minutes)
            cast.sitting(stage, respondent=respondent, state=Sitting.State.COMPLETE, ended_at=at)
        if status:
            Submission.objects.create(
                posting=posting, respondent=respondent, submission_hash=str(respondent.pk), status=status, read_at=NOW
            )

    def differences() -> list[str]:
        stage.arrivals = Sitting.objects.filter(stage=stage).count()
        return list(paying.paying(study, [stage]).differences)

    person("AWAITING REVIEW")
    person("APPROVED")
    person("TIMED-OUT")
    person(minutes=1)
    person(is_simulated=True)
    person("RETURNED", finished=False)
    person("TIMED-OUT", finished=False)
    assert differences() == []
    person("RETURNED")
    person()
    person("AWAITING REVIEW", finished=False)
    Submission.objects.create(posting=posting, respondent=None, submission_hash="s", status="APPROVED", read_at=NOW)
    here, there = differences()
    assert here.startswith("Stage 1: 2 of the 5 people who finished here have not handed in")
    assert there.startswith("Stage 1: the panel has 2 people as handed in or paid who did not finish here")
    for number, state in enumerate(("prepared", "sent", "unknown", "refused")):
        PaymentBatch.objects.create(posting=posting, state=state, external_id=str(number), sent_at=NOW)
    (line,) = paying.paying(study, [stage]).postings
    assert (line.to_review, line.unsettled) == (2, 2) and dict(line.by_status)["RETURNED"] == 2
    Posting.objects.update(read_at=None)
    assert differences() == [], "nothing is known of a panel that was not read"
    stage.arrivals = 99
    (arrivals,) = paying.paying(study, [stage]).differences
    assert arrivals.startswith("Stage 1 counted 99 arrivals and has")
