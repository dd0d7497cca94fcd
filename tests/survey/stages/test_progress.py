"""How far a stage is, and which answers count."""

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from survey.instruments.belief_update.capabilities import BeliefEstimates
from survey.services.answers import counting
from survey.services.results.estimates import outcome_table
from survey.services.sittings import capacity
from survey.services.stages.progress import stage_progress, stages_progress
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_progress_counts_answers_sittings_and_booklets() -> None:
    stage = cast.open_stage()
    cast.Visitor(stage.study).finish()
    half = cast.Visitor(stage.study).to_items()
    half.answer()
    failed = cast.Visitor(stage.study)
    failed.check(right=False)
    failed.check(right=False)
    progress = stage_progress(stage)
    assert (progress.slots, progress.in_time, progress.counted, progress.late) == (12, 4, 4, 0)
    assert progress.sittings == {"complete": 1, "live": 1, "failed_checks": 1} and progress.live == 1
    assert (progress.booklets, progress.free_booklets) == (4, 2)


def test_the_table_shows_the_share_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.open_stage()
    cast.Visitor(stage.study).finish(changes=True)
    cast.Visitor(stage.study).finish(changes=False)
    table = outcome_table.outcome_table(stage)
    assert table is not None
    assert (table.answers, table.share, table.by_stratum["all"].share) == (6, 0.5, 0.5)
    assert (table.outcome, table.is_share) == ("changed", True)
    both = {"first": np.arange(6.0), "second": np.zeros(6)}
    monkeypatch.setattr(BeliefEstimates, "outcomes", lambda self, answers: both)
    table = outcome_table.outcome_table(stage)
    assert table is not None and (table.outcome, table.share) == ("first", 2.5)


def test_a_stage_without_answers_has_no_table() -> None:
    assert outcome_table.outcome_table(cast.open_stage()) is None


def test_only_sampled_slots_train() -> None:
    stage = cast.closed_stage()
    held_out = stage.slots.first()
    type(held_out).objects.filter(pk=held_out.pk).update(role="holdout")
    assert len(counting.counted_answers(stage, roles=counting.TRAINED)) == 11
    assert len(counting.counted_answers(stage)) == 12
    cast.lifecycle.freeze(stage)
    assert len(counting.frozen_answers(stage)) == 11


@pytest.mark.thorough
def test_reading_more_answers_takes_no_more_queries() -> None:
    def queries(slug: str, people: int) -> int:
        stage = cast.open_stage(slug)
        cast.fill(stage, people=people)
        with CaptureQueriesContext(connection) as captured:
            outcome_table.outcome_table(stage)
        return len(captured)

    assert queries("few", 1) == queries("many", 4)


def test_no_place_is_counted_twice_between_those_who_wait_and_those_who_have_one() -> None:
    stage = cast.open_stage(panel={"kind": "generic"})
    waiting = [cast.Visitor(stage.study) for _person in range(3)]
    assert capacity.free_capacity(stage) == 1
    waiting[0].check()
    assert capacity.free_capacity(stage) == 1
    waiting[1].expire()
    assert capacity.free_capacity(stage) == 2


def test_more_stages_take_no_more_queries() -> None:
    """Also where flags exclude sittings of stages that are not frozen."""

    def queries(slug: str, count: int) -> int:
        study = cast.small_study(
            slug,
            stages=[{"sittings": 4, "design": {"kind": "uniform"}}] * count,
            flags={"same_answers": {"share": 1.0, "items": 3}},
            exclusions={"flags": ["same_answers"]},
        )
        stages = list(study.stages.select_related("study__bank").order_by("index"))
        with CaptureQueriesContext(connection) as captured:
            stages_progress(stages)
        return len(captured)

    assert queries("many", 6) == queries("few", 2)


def test_flags_exclude_by_the_rules_of_each_stages_own_study() -> None:
    rules = {"flags": {"same_answers": {"share": 1.0, "items": 3}}}
    first = cast.open_stage("first", **rules, exclusions={"flags": ["same_answers"]})
    second = cast.open_stage("second", **rules)
    for stage in (first, second):
        cast.Visitor(stage.study).finish(changes=False)
    assert counting.counting([first, second]).count() == counting.counting([second]).count() == 3
    assert counting.counting([first]).count() == 0
