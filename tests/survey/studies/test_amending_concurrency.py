"""A study's file is replaced while others plan, open and begin by it, on PostgreSQL with real threads."""

import pytest

from survey.exceptions import HunchError, StateRefused
from survey.models import Amendment, Sitting, Stage, Study
from survey.services.plans import planning
from survey.services.stages import lifecycle
from survey.services.studies import amending
from tests import cast
from tests.survey.sittings.test_concurrency import no_errors, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def amend(study: Study, **overrides: object) -> Amendment:
    mine = Study.objects.get(pk=study.pk)
    return amending.amend(mine, text=cast.study_text(**overrides), source_name="new.toml", reason="meanwhile")


def first(study: Study) -> Stage:
    return Stage.objects.select_related("study__bank").get(study=study, index=1)


@pytest.mark.parametrize("_time", range(3))
def test_a_stage_is_planned_by_the_old_file_or_the_new_one_and_never_against_the_one_in_force(_time: int) -> None:
    study = cast.study()
    results = together(
        lambda: planning.plan_stage(first(study)),
        lambda: amend(study, sitting={"items": 2}),
    )
    assert all(isinstance(result, Stage | Amendment | HunchError) for result in results), results
    stage, items = first(study), Study.objects.get(pk=study.pk).config.sitting.items
    if stage.state == Stage.State.PLANNED:
        assert stage.slots.count() == 4 * items
        assert stage.manifest["study_file_sha256"] == Study.objects.get(pk=study.pk).source_sha256
    else:
        assert isinstance(results[0], StateRefused) and items == 2


@pytest.mark.parametrize("_time", range(3))
def test_opening_locks_the_file_that_is_in_force_at_that_moment(_time: int) -> None:
    study = cast.study()
    planning.plan_stage(first(study))
    results = together(
        lambda: lifecycle.open_stage(first(study)),
        lambda: amend(study, title="Another title"),
    )
    no_errors(results)
    study = Study.objects.get(pk=study.pk)
    made = Amendment.objects.get()
    assert study.locked_sha256 == (made.old_sha256 if made.was_locked else made.new_sha256)
    assert study.source_sha256 == made.new_sha256


def test_people_who_come_meanwhile_have_the_old_file_or_the_new_one() -> None:
    study = cast.open_study()
    results = together(
        *[lambda: cast.begin(Study.objects.get(pk=study.pk))] * 3,
        lambda: amend(study, title="Another title"),
    )
    no_errors(results)
    made = Amendment.objects.get()
    assert set(Sitting.objects.values_list("study_sha256", flat=True)) <= {made.old_sha256, made.new_sha256}


def test_of_two_amendments_at_once_each_replaces_the_file_it_saw() -> None:
    study = cast.open_study()
    results = together(lambda: amend(study, title="One"), lambda: amend(study, title="Two"))
    no_errors(results)
    earlier, later = Amendment.objects.order_by("pk")
    assert earlier.new_sha256 == later.old_sha256
    assert Study.objects.get(pk=study.pk).source_sha256 == later.new_sha256
