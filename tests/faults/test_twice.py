"""Every task comes twice, and two beats send: the rows are those of one."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from celery import Task
from django.db import connection

from survey import tasks
from survey.celery import app
from survey.models import Booklet, JobStep, SnapshotAnswer, Stage
from survey.services.stages import lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]
TWO: dict[str, Any] = {
    "stages": [
        {"sittings": 4},
        {
            "sittings": 4,
            "design": {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.2},
            "opens": "automatically",
            "train": False,
        },
    ],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 200},
}
Sent = list[tuple[Any, tuple[Any, ...]]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What beat's tasks send, in place of a broker."""
    messages: Sent = []
    monkeypatch.setattr(Task, "apply_async", lambda self, args=(), **_options: messages.append((self, tuple(args))))
    return messages


def every_beat() -> list[Callable[[], object]]:
    """What beat sends, by its schedule."""
    return [app.tasks[entry["task"]] for entry in app.conf.beat_schedule.values()]


def test_the_schedule_names_tasks_that_are_here() -> None:
    ours = {name for name in app.tasks if name.startswith("survey.")}
    sent_by_rows = {task.name for task in (tasks.run_step, tasks.run_ml_step, tasks.run_collection)}
    sent_by_rows |= {tasks.help_with_scoring.name, tasks.compute_estimates.name, tasks.run_job.name}
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} | sent_by_rows == ours


def test_a_stage_whose_every_task_comes_twice_ends_as_if_it_came_once(sent: Sent) -> None:
    stage = cast.closed_stage(**TWO)
    for _round in range(12):
        for beat in every_beat():
            beat()
            beat()
        messages, sent[:] = [*sent, *reversed(sent)], []
        for task, args in messages:
            task(*args)
    assert cast.stage_of(stage.study, 2).state == Stage.State.OPEN
    assert not JobStep.objects.exclude(state="done").exists()
    assert set(JobStep.objects.values_list("attempt", flat=True)) == {1}
    assert SnapshotAnswer.objects.count() == 12
    for index in (1, 2):
        assert verify_stage(cast.stage_of(stage.study, index)).differences == []


def test_people_who_left_are_expired_once_and_dealt_once(sent: Sent) -> None:
    stage = cast.open_stage()
    people = [cast.Visitor(stage.study).to_items() for _person in range(2)]
    for person in people:
        person.expire()
    before = Booklet.objects.count()
    for _round in range(2):
        for beat in every_beat():
            beat()
            beat()
    assert Booklet.objects.count() == before + 2
    slots = list(stage.slots.filter(booklet__kind="make_up").values_list("pk", flat=True))
    assert len(slots) == len(set(slots)) == 6


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
def test_two_beats_at_the_same_moment_send_each_step_once(sent: Sent) -> None:
    for name in ("one", "two", "three"):
        cast.closed_stage(name)
    gate = threading.Barrier(4)

    def beat() -> None:
        try:
            connection.ensure_connection()
            gate.wait(timeout=PATIENCE)
            tasks.run_due_steps()
        finally:
            connection.close()

    threads = [threading.Thread(target=beat) for _beat in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE)
    assert sorted(args for _task, args in sent) == sorted((step.pk,) for step in JobStep.objects.filter(kind="freeze"))


def test_closing_twice_and_by_two_is_closing_once(sent: Sent) -> None:
    stage = cast.full_of_answers(cast.open_stage())
    for _press in range(2):
        lifecycle.close_stage(stage)
        lifecycle.close_stage(stage, now=True)
    assert stage.job_steps.filter(kind="freeze").count() == 1
