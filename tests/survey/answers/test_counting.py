"""Every screen says the same number of answers that count."""

import csv
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db.models import Count
from django.test import Client
from django.utils import timezone

from survey.contracts import instruments
from survey.exceptions import StateRefused
from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, Respondent, Sitting, Slot, Stage, Study
from survey.services.answers import counting
from survey.services.banks.eligibility import eligible_questions
from survey.services.results.estimates.outcome_table import outcome_table
from survey.services.results.estimates.stored_estimates import shown_estimates
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export.files import write_export
from survey.services.results.pilots.pilot_data import pilot_report
from survey.services.results.so_far import by_stage
from survey.services.sittings.withdrawal import runs_that_learnt_from, withdraw
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.kept import kept
from tests.survey import filled

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ENTER = {Slot.Role.SAMPLED, Slot.Role.HOLDOUT}


@pytest.fixture
def study() -> Study:
    return pilot_and_full_stage()


@kept
def pilot_and_full_stage() -> Study:
    """A pilot that is over, and a main stage that is full, but for a lost and two late answers, and open."""
    study = cast.small_study(
        on=cast.small_bank(120, name="wide"),
        stages=[{"sittings": 3, "pilot": True}, {"sittings": 10}],
        sitting={"items": 10},
        roles={"holdout": 0.2, "controls": 0.3},
        flags={"same_answers": {"share": 1.0, "items": 3}},
        exclusions={"flags": ["same_answers"]},
        predictor={"name": "same_task"},
    )
    filled.answer(lifecycle.open_stage(cast.stage_of(study, 1)))
    jobs.run_inline(lifecycle.close_stage(cast.stage_of(study, 1)))
    filled.answer(lifecycle.open_stage(cast.stage_of(study, 2)), seed=4, lose=1, late=2)
    return Study.objects.get(pk=study.pk)


def people(study: Study) -> list[Respondent]:
    return [sitting.respondent for sitting in Sitting.objects.filter(stage__study=study, stage__index=2).order_by("pk")]


def answer_alike(person: Respondent) -> None:
    """They say 50 throughout, which the study leaves out."""
    Belief.objects.filter(response__assignment__sitting__respondent=person).update(value=50)


def on_the_screens(study: Study, client: Client, folder: Path) -> dict[str, int]:
    """The number of answers that count, as each screen says it."""
    study = Study.objects.get(pk=study.pk)
    main = cast.stage_of(study, 2)
    page = client.get(f"/admin/survey/study/{study.pk}/change/").context["sections"]
    stages = client.get(f"/api/v1/studies/{study.slug}/stages/").json()
    answers = client.get(f"/api/v1/studies/{study.slug}/answers/?stage=2").json()["results"]
    listed = StringIO()
    call_command("study_status", study.slug, stdout=listed)
    _title, header, _line, *rows = [line.split("  ") for line in listed.getvalue().splitlines()]
    names = [cell.strip() for cell in header if cell.strip()]
    lines = [[cell.strip() for cell in row if cell.strip()] for row in rows[:2]]
    write_export(study, folder)
    exported = list(csv.DictReader((folder / "answers.csv").open(encoding="utf-8")))
    paper = list(csv.DictReader((folder / "belief_changes.csv").open(encoding="utf-8")))
    report = estimate(study)
    return {
        "study page": sum(section.counted for section, _actions in page),
        "its strata": sum(line.counted for section, _actions in page for line in section.strata),
        "API": sum(stage["counted"] for stage in stages),
        "study_status": sum(int(line[names.index("counted")]) for line in lines),
        "estimate": report.answers,
        "its strata's slots": sum(line.answered for part in report.parts for line in part.strata),
        "the estimates page": shown_estimates(study).report.answers,
        "answers.csv": sum(enters(row) for row in exported),
        "the API's answers": sum(enters(row) for row in answers),
        "belief_changes.csv": len(paper),
        "sampled and holdout": len(counting.counted_answers(main, roles=counting.TRAINED))
        + len(counting.counted_answers(main, roles=[Slot.Role.HOLDOUT])),
        "the study's answers": len(counting.study_answers(study)),
    }


def enters(row: dict[str, str]) -> bool:
    """As the codebook says it."""
    return (
        row["status"] == "counted"
        and not row["excluded"]
        and row["pilot"] in ("0", 0, False)
        and row["role"] in ("sampled", "holdout")
    )


def by_hand(study: Study, excluded: Respondent) -> int:
    """Counted from the rows, one by one."""
    assignments = Assignment.objects.filter(slot__stage__study=study).select_related("slot__stage", "sitting")
    return sum(
        assignment.state == "counted"
        and assignment.slot.stage.index == 2
        and assignment.slot.role in ("sampled", "holdout")
        and assignment.sitting.respondent_id != excluded.pk
        for assignment in assignments
    )


def test_all_screens_say_one_number_before_and_after_the_freeze(
    study: Study, admin_client: Client, tmp_path: Path
) -> None:
    alike, gone, later, *_others = people(study)
    everybody = on_the_screens(study, admin_client, tmp_path)
    assert set(everybody.values()) == {by_hand(study, Respondent())}
    answer_alike(alike)
    withdraw(respondent=gone, now=timezone.now())
    Sitting.objects.filter(respondent=alike).update(last_seen_at=timezone.now())  # Flags follow pages that were sent.
    expected = by_hand(study, alike)
    assert 0 < expected < max(everybody.values()) - 10
    actual = on_the_screens(study, admin_client, tmp_path)
    assert actual == dict.fromkeys(actual, expected)
    jobs.run_inline(lifecycle.close_stage(cast.stage_of(study, 2)))
    assert cast.stage_of(study, 2).state == Stage.State.FROZEN
    actual = on_the_screens(study, admin_client, tmp_path)
    assert actual == dict.fromkeys(actual, expected)
    withdraw(respondent=later, now=timezone.now())
    actual = on_the_screens(study, admin_client, tmp_path)
    assert actual == dict.fromkeys(actual, by_hand(study, alike)) and by_hand(study, alike) < expected


def test_training_judging_and_withdrawal_rest_on_the_same_answers(study: Study) -> None:
    alike, other, *_others = people(study)
    answer_alike(alike)
    main = cast.stage_of(study, 2)
    before = counting.counted_answers(main, roles=counting.TRAINED)
    table = outcome_table(main)
    assert table is not None and table.answers == len(before)
    jobs.run_inline(lifecycle.close_stage(main))
    main = cast.stage_of(study, 2)
    assert [frozen_answer.pk for frozen_answer in counting.frozen_answers(main)] == [
        assignment.pk for assignment in before
    ]
    for step in main.job_steps.filter(kind="train"):
        assert step.result["n_examples"] + step.result["held_out"] == len(before)
    assert runs_that_learnt_from(alike) == [] and runs_that_learnt_from(other)


def test_a_pilot_is_shown_by_the_same_rules_and_counts_nowhere(study: Study, admin_client: Client) -> None:
    pilot = cast.stage_of(study, 1)
    assert counting.counted_answers(pilot) == [] and counting.frozen_answers(pilot) == []
    own = counting.counted_answers(pilot, pilots=True)
    roles = {assignment.slot.role for assignment in own}
    assert len(own) == pilot.slots.filter(role__in=ENTER).count() > 0 and roles == ENTER
    (_outcome, _mean, n) = pilot_report(study).outcomes[0]
    assert n == len(own)
    section = admin_client.get(f"/admin/survey/study/{study.pk}/change/").context["sections"][0][0]
    assert (section.counted, section.in_time) == (0, pilot.slots.count())
    assert section.outcomes.overall.n == sum(assignment.slot.role == "sampled" for assignment in own)


def test_weights_are_one_over_both_probabilities_and_controls_have_none(study: Study) -> None:
    main = cast.stage_of(study, 2)
    answers = counting.counted_answers(main)
    for answer, weight in zip(answers, counting.design_weights(answers), strict=True):
        slot = answer.slot
        assert slot.inclusion_probability and slot.pool_probability
        assert weight * slot.inclusion_probability * slot.pool_probability == pytest.approx(1)
    control = main.slots.filter(role="control").first()
    with pytest.raises(ValueError, match="is a control slot: it has no probabilities"):
        _weight = control.design_weight


def test_live_figures_count_every_answer_and_each_person_once() -> None:
    stage = cast.full_of_answers(cast.open_stage())
    answers = stage.slots.filter(role__in=ENTER).count()
    assert answers > stage.sittings.count() > 1
    assert by_stage(stage.study, Belief, beliefs=Count("pk")) == [
        {"stage": 1, "people": stage.sittings.count(), "beliefs": 2 * answers}
    ]


def test_only_answers_under_the_levels_are_read() -> None:
    framing = {"factor": "framing", "levels": ["warm", "cold", "none"]}
    made = cast.small_study(conditions=[framing], stages=[{"sittings": 3}], **filled.NO_ROLES)
    stage = cast.full_of_answers(lifecycle.open_stage(cast.stage_of(made)))
    for sitting, level in zip(stage.sittings.order_by("pk"), ("warm", "cold", "warm"), strict=True):
        sitting.conditions.create(factor="framing", level=level, probability=1 / 3, seed=1)
    warm = list(Assignment.objects.filter(sitting__conditions__level="warm").order_by("slot__number"))
    assert 0 < len(warm) < len(counting.study_answers(made)) == len(counting.labelled_answers(made))
    for read in (counting.study_answers, counting.labelled_answers):
        assert read(made, levels={"framing": "warm"}) == warm
        with pytest.raises(StateRefused, match="no answer under framing=none counts yet"):
            read(made, levels={"framing": "none"})
    assert counting.counted_answers(stage, levels={"framing": "warm"}) == warm


@pytest.mark.parametrize("several", [1, 3])
def test_an_item_that_several_people_answer_stands_for_itself_once(several: int) -> None:
    """Stages are pooled by these weights: one with three answers an item must not count three times."""
    stages = [{"sittings": 10, "responses_per_item": several}]
    made = cast.small_study(on=cast.small_bank(200, name="wide"), stages=stages, roles={"holdout": 0.2, "controls": 0})
    stage = cast.full_of_answers(lifecycle.open_stage(cast.stage_of(made)))
    universe = instruments.of_study(stage.study).universe_size(eligible_questions(stage.study))
    for role in ENTER:
        answers = counting.counted_answers(stage, roles=[role])
        assert sum(counting.design_weights(answers)) == pytest.approx(universe, rel=1e-6), role
