"""No stage opens without a date until when personal data is kept, or after it."""

import logging
from typing import Any

import pytest

from survey.exceptions import StateRefused
from survey.models import Stage
from survey.services.base.retention import is_over
from survey.services.stages import jobs, lifecycle
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def fresh(stage: Stage, index: int = 1) -> Stage:
    return cast.stage_of(stage.study, index)


def keep_until(stage: Stage, until: str | None) -> None:
    study = cast.Study.objects.get(pk=stage.study_id)
    study.stored_config["data"]["retention_until"] = until
    study.save(update_fields=["stored_config"])


@pytest.mark.parametrize(
    ("data", "words"),
    [({}, "data.retention_until: is missing"), ({"retention_until": "2020-01-01"}, "2020-01-01 is past")],
)
def test_a_stage_does_not_open_without_a_term_that_lies_ahead(data: dict[str, Any], words: str) -> None:
    stage = cast.stage_of(cast.small_study(data=data))
    with pytest.raises(StateRefused, match=words):
        lifecycle.open_stage(stage)
    assert fresh(stage).state == "draft"


def test_a_paused_stage_does_not_go_on_after_it() -> None:
    stage = lifecycle.pause_stage(cast.open_stage())
    keep_until(stage, "2020-01-01")
    with pytest.raises(StateRefused, match="is past"):
        lifecycle.open_stage(fresh(stage))
    keep_until(stage, "2099-01-01")
    assert lifecycle.open_stage(fresh(stage)).state == "open"


def test_the_last_day_is_still_in_it(time_machine: Any) -> None:
    stage = cast.stage_of(cast.small_study(data={"retention_until": "2030-06-01"}))
    time_machine.move_to("2030-06-01T20:00:00Z")
    assert not is_over(stage.study) and lifecycle.open_stage(stage).state == "open"
    time_machine.move_to("2030-06-02T00:00:01Z")
    assert is_over(stage.study)


def test_what_opens_by_itself_waits_until_a_person_has_mended_it(caplog: pytest.LogCaptureFixture) -> None:
    stage = cast.closed_stage(stages=[{"sittings": 4}, {"sittings": 4, "opens": "automatically"}])
    keep_until(stage, None)
    with caplog.at_level(logging.WARNING, logger="survey.services.stages.lifecycle"):
        jobs.run_inline(fresh(stage))
        jobs.due_steps()
        jobs.due_steps()
    assert caplog.text.count("does not open by itself: data.retention_until: is missing") == 1
    assert fresh(stage, 2).state == "planned" and fresh(stage).settled_at is None
    keep_until(stage, "2099-12-31")
    jobs.due_steps()
    assert fresh(stage, 2).state == "open" and fresh(stage).settled_at is not None
