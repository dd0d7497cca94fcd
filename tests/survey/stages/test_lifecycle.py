"""The states of a stage: which may follow which, what closing waits for, what freezing keeps."""

from datetime import UTC, datetime, timedelta

import pytest

from survey.exceptions import StateRefused
from survey.models import Assignment, AuditEntry, JobStep, SnapshotAnswer, Stage
from survey.services.answers.counting import counted_answers, frozen_answers, training_examples
from survey.services.base.auditing import actor_of
from survey.services.plans import planning
from survey.services.stages import lifecycle
from survey.services.stages.lifecycle import StillLive
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TWO = [{"sittings": 4}, {"sittings": 4}]


def test_opening_the_first_stage_plans_it() -> None:
    stage = cast.open_stage()
    assert stage.state == "open" and stage.opened_at and stage.plan_sha256
    done = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert done == ["create_study", "plan_stage", "lock_study", "open_stage"]


def test_who_did_it_is_written_down(django_user_model: type) -> None:
    researcher = django_user_model.objects.create_user("researcher")
    lifecycle.open_stage(cast.stage_of(cast.small_study()), by=researcher, via="admin")
    entry = AuditEntry.objects.get(action="open_stage")
    assert (entry.actor, entry.via, entry.subject) == (actor_of(researcher), "admin", "small stage 1")


def test_a_stage_is_paused_and_goes_on() -> None:
    stage = cast.open_stage()
    opened_at = stage.opened_at
    assert lifecycle.pause_stage(stage).state == "paused"
    assert lifecycle.pause_stage(stage).state == "paused"
    stage = lifecycle.open_stage(stage)
    assert (stage.state, stage.opened_at) == ("open", opened_at)
    assert lifecycle.open_stage(stage).state == "open"


def test_those_inside_a_paused_stage_finish() -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).to_items()
    lifecycle.pause_stage(stage)
    assert visitor.finish().states() == ["counted"] * 3


@pytest.mark.parametrize("state", ["draft", "planned", "open", "paused", "closing"])
def test_the_second_stage_waits_until_the_first_is_frozen(state: str) -> None:
    study = cast.small_study(stages=TWO)
    first, second = cast.stage_of(study), cast.stage_of(study, 2)
    planning.plan_stage(second)
    if state != "draft":
        first = planning.plan_stage(first)
    if state in ("open", "paused", "closing"):
        first = lifecycle.open_stage(first)
    if state == "paused":
        lifecycle.pause_stage(first)
    if state == "closing":
        lifecycle.close_stage(first)
    with pytest.raises(StateRefused, match=f"stage 1 is still {state}"):
        lifecycle.open_stage(second)


def test_a_later_stage_is_not_opened_unplanned() -> None:
    study = cast.small_study(stages=TWO)
    with pytest.raises(StateRefused, match="stage 2 is not planned"):
        lifecycle.open_stage(cast.stage_of(study, 2))


@pytest.mark.parametrize(
    ("state", "fix"),
    [
        ("draft", "open and close stage 1 first"),
        ("planned", "open and close stage 1 first"),
        ("open", "close stage 1 first"),
        ("paused", "close stage 1 first"),
        ("closing", "stage 1 is closing; wait until nobody is inside"),
        ("frozen", "stage 1 is closed, and what plans this one is not done or failed"),
    ],
)
def test_what_is_to_be_done_before_a_later_stage_opens_goes_by_the_one_before(state: str, fix: str) -> None:
    study = cast.small_study(stages=TWO)
    if state != "draft":
        planning.plan_stage(cast.stage_of(study))
    Stage.objects.filter(study=study, index=1).update(
        state=state, opened_at=NOW, closing_at=NOW, frozen_at=NOW, snapshot_sha256="0" * 64
    )
    with pytest.raises(StateRefused) as refused:
        lifecycle.open_stage(cast.stage_of(study, 2))
    assert refused.value.message.startswith(f"stage 2 is not planned: {fix}")


@pytest.mark.parametrize("act", [lifecycle.pause_stage, lifecycle.close_stage])
def test_a_stage_that_was_never_opened_is_neither_paused_nor_closed(act: object) -> None:
    stage = cast.planned_stage()
    with pytest.raises(StateRefused, match="is planned and cannot become"):
        act(stage)  # type: ignore[operator]
    assert not JobStep.objects.exists()


def test_a_closing_stage_never_opens_again() -> None:
    stage = lifecycle.close_stage(cast.open_stage())
    with pytest.raises(StateRefused, match="is closing and cannot become open"):
        lifecycle.open_stage(stage)
    with pytest.raises(StateRefused):
        lifecycle.pause_stage(stage)


def test_closing_twice_queues_one_freeze() -> None:
    stage = cast.open_stage()
    for _time in range(2):
        lifecycle.close_stage(stage)
    assert [step.kind for step in JobStep.objects.all()] == ["freeze"]
    assert AuditEntry.objects.filter(action="close_stage").count() == 1


def test_a_stage_says_when_it_was_first_closed() -> None:
    stage = cast.open_stage()
    assert stage.closing_at is None
    closed_at = lifecycle.close_stage(stage).closing_at
    assert closed_at is not None and lifecycle.close_stage(stage, now=True).closing_at == closed_at


def test_closing_now_what_is_closing_already_is_written_down_too() -> None:
    stage = lifecycle.close_stage(cast.open_stage())
    lifecycle.close_stage(stage, now=True)
    assert [entry.detail["now"] for entry in AuditEntry.objects.filter(action="close_stage").order_by("pk")] == [
        False,
        True,
    ]


@pytest.mark.parametrize("waited", [False, True])
def test_several_who_close_at_once_are_one_entry_and_one_freeze(waited: bool) -> None:
    """In each study: the entry of another one with stages of the same number says nothing of this one."""
    for slug in ("first", "second"):
        stage = cast.open_stage(slug)
        if waited:
            lifecycle.close_stage(stage)
        for _person in range(4):
            lifecycle.close_stage(stage, now=True)
        said = [entry.detail["now"] for entry in AuditEntry.objects.filter(action="close_stage", study=slug)]
        assert sorted(said) == ([False, True] if waited else [True])
        assert JobStep.objects.filter(stage=stage, kind="freeze").count() == 1


def test_only_a_closing_stage_is_frozen() -> None:
    with pytest.raises(StateRefused, match="is open; only a closing stage"):
        lifecycle.freeze(cast.open_stage())


@pytest.mark.parametrize("reached", ["checks", "items"])
def test_freezing_waits_for_whoever_is_inside(reached: str) -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study)
    if reached == "items":
        visitor.to_items()
    lifecycle.close_stage(stage)
    with pytest.raises(StillLive):
        lifecycle.freeze(stage)
    assert not SnapshotAnswer.objects.exists()
    visitor.finish()
    assert lifecycle.freeze(stage)["answers"] == 3


def test_closing_now_waits_for_nobody() -> None:
    stage = cast.open_stage()
    visitors = [cast.Visitor(stage.study).to_items() for _person in range(2)]
    visitors[0].answer()
    lifecycle.close_stage(stage)
    stage = lifecycle.close_stage(stage, now=True)  # Asked for later, too.
    assert {visitor.reload().state for visitor in visitors} == {"expired"}
    assert lifecycle.freeze(stage)["answers"] == 1


def test_freezing_twice_takes_one_snapshot() -> None:
    stage = cast.closed_stage()
    first = lifecycle.freeze(stage)
    assert lifecycle.freeze(stage) == first
    assert SnapshotAnswer.objects.count() == first["answers"] == 12


def test_the_snapshot_is_in_the_order_of_the_plan_and_not_of_answering() -> None:
    stage = cast.closed_stage()
    for answer in Assignment.objects.filter(slot__stage=stage).select_related("slot"):
        answer.completed_at -= timedelta(minutes=answer.slot.number)
        answer.save()
    lifecycle.freeze(stage)
    numbers = stage.snapshot.order_by("number").values_list("assignment__slot__number", flat=True)
    assert list(numbers) == list(range(1, 13))


def test_only_answers_of_a_snapshot_are_frozen() -> None:
    stage = cast.closed_stage()
    assert frozen_answers(stage) == [] and len(counted_answers(stage)) == 12
    lifecycle.freeze(stage)
    assert len(frozen_answers(cast.stage_of(stage.study))) == 12


def test_the_snapshot_names_every_counted_answer_by_a_keyed_hash(settings: object) -> None:
    stage = cast.open_stage()
    cast.Visitor(stage.study).finish()
    partly = cast.Visitor(stage.study).to_items()
    partly.answer()
    partly.post(value=1)
    lifecycle.close_stage(stage, now=True)
    lifecycle.freeze(stage)
    stage.refresh_from_db()
    rows = list(SnapshotAnswer.objects.all())
    assert [row.number for row in rows] == [1, 2, 3, 4]
    assert all(row.assignment.state == "counted" for row in rows)
    assert stage.manifest["snapshot"] == {"answers": 4, "sha256": stage.snapshot_sha256}

    instrument = lifecycle.instruments.of_study(stage.study)
    answer = rows[0].assignment
    assert lifecycle.answer_digest(answer, instrument) == rows[0].digest
    type(answer.responses.first().belief).objects.filter(response__assignment=answer, kind="prior").update(value=99)
    assert lifecycle.answer_digest(cast.Assignment.objects.get(pk=answer.pk), instrument) != rows[0].digest
    settings.HUNCH_IDENTITY_KEY = "b" * 43 + "="  # type: ignore[attr-defined]
    assert lifecycle.answer_digest(rows[1].assignment, instrument) != rows[1].digest


def test_a_stage_without_answers_freezes() -> None:
    stage = lifecycle.close_stage(cast.open_stage())
    assert lifecycle.freeze(stage)["answers"] == 0
    stage.refresh_from_db()
    assert stage.state == "frozen" and stage.snapshot_sha256


def test_a_withdrawn_answer_trains_nothing_any_more() -> None:
    stage = cast.closed_stage()
    lifecycle.freeze(stage)
    withdrawn = SnapshotAnswer.objects.first()
    SnapshotAnswer.objects.filter(pk=withdrawn.pk).update(withdrawn_at=stage.closing_at)
    assert len(frozen_answers(stage)) == 11
    stage.refresh_from_db()
    assert withdrawn.assignment not in list(training_examples(stage))


def test_only_frozen_stages_up_to_this_one_train() -> None:
    stage = cast.closed_stage(stages=TWO)
    assert list(training_examples(stage)) == []
    lifecycle.freeze(stage)
    assert len(list(training_examples(stage))) == 12


def test_a_stage_opens_by_itself_where_the_study_file_says_so() -> None:
    stage = cast.closed_stage(stages=[{"sittings": 4}, {"sittings": 4, "opens": "automatically"}])
    cast.jobs.run_inline(stage)
    assert cast.stage_of(stage.study, 2).state == "open"


def test_a_stage_waits_for_a_researcher_otherwise() -> None:
    stage = cast.closed_stage(stages=TWO)
    cast.jobs.run_inline(stage)
    assert Stage.objects.get(index=2).state == "planned"


@pytest.mark.thorough
def test_a_stage_with_answers_about_many_questions_is_frozen_and_read() -> None:
    """SQLite takes no statement with more than a thousand keys that are compared one by one."""
    cast.small_bank(8000)
    stage = cast.closed_stage(
        candidates={"size": 4000}, sitting={"items": 12, "expires_after_minutes": 30}, stages=[{"sittings": 100}]
    )
    assert lifecycle.freeze(stage)["answers"] == 1200
    answers = frozen_answers(cast.stage_of(stage.study))
    pairs = [answer.slot.item.pair for answer in answers]
    assert len({question for pair in pairs for question in (pair.target_id, pair.evidence_id)}) > 2000
    assert [answer.slot.number for answer in answers] == list(range(1, 1201))
    assert len(counted_answers(cast.stage_of(stage.study))) == 1200
