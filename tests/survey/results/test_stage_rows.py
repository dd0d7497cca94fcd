"""What estimates read with few objects is what the rows say."""

import pytest

from survey.contracts import instruments
from survey.instruments.belief_update.labels import beliefs_of
from survey.models import Assignment, Stage
from survey.services.answers.counting import ALL_ROLES, counted_answers
from survey.services.results.estimates.stage_rows import read_stage
from survey.services.stages import lifecycle
from tests import cast
from tests.kept import kept
from tests.survey import filled

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@kept
def stage_of_every_role() -> Stage:
    made = cast.study(
        stages=[{"sittings": 6}, {"sittings": 2}],
        sitting={"items": 5},
        roles={"holdout": 0.34, "controls": 0.4},
        conditions=[
            {"factor": "framing", "levels": ["plain", "warm"]},
            {"factor": "order", "levels": ["first", "last"], "per": "item"},
        ],
    )
    stage = filled.answer(lifecycle.open_stage(cast.stage_of(made, 1)), lose=2, late=1)
    drawn = {"probability": 0.5, "seed": 1}
    for place, sitting in enumerate(stage.sittings.order_by("pk")):
        sitting.conditions.create(factor="framing", level=("plain", "warm")[place % 2], **drawn)
        for number, assignment in enumerate(sitting.assignments.order_by("position")):
            assignment.conditions.create(factor="order", level=("first", "last")[number % 2], **drawn)
    return stage


@pytest.fixture
def stage(db: None) -> Stage:
    return cast.stage_of(stage_of_every_role().study, 1)


def facts_of(answer: Assignment) -> list[object]:
    pair = answer.slot.item.pair
    return [
        answer.pk,
        beliefs_of(answer),
        answer.levels(),
        answer.sitting.respondent_id,
        answer.slot.stage.pk,
        answer.slot.stratum and answer.slot.stratum.name,
        pair.outcome,
        pair.target.task.name,
        pair.evidence and (pair.evidence.pk, pair.evidence.task.domain),
    ]


def test_answers_are_those_that_count_with_all_that_labels_read(stage: Stage) -> None:
    rows = read_stage(stage, instruments.of_study(stage.study), {})
    assert {answer.slot.role for answer in rows.answers} == {"sampled", "holdout", "control", "repeat"}
    assert [*map(facts_of, rows.answers)] == [*map(facts_of, counted_answers(stage, roles=ALL_ROLES))]


def test_nothing_is_read_one_by_one(stage: Stage, django_assert_num_queries: object) -> None:
    instrument = instruments.of_study(stage.study)
    rows = read_stage(stage, instrument, {})
    with django_assert_num_queries(0):  # type: ignore[operator]
        list(map(facts_of, rows.answers))
        instruments.estimates_of(instrument).item_features([row.slot.item for row in rows.slots])


def test_the_parts_of_answers_are_those_of_their_items(stage: Stage) -> None:
    instrument = instruments.of_study(stage.study)
    rows = read_stage(stage, instrument, {})
    answers = [*rows.answers_to("sampled"), *rows.answers_to("holdout")]
    direct = instruments.estimates_of(instrument).divisions([answer.slot.item for answer in answers])
    divisions = rows.divisions_of(answers)
    assert divisions.keys() == direct.keys()
    assert all(divisions[name].tolist() == direct[name].tolist() for name in direct)


def test_answers_under_a_level_are_taken_and_all_slots(stage: Stage) -> None:
    instrument = instruments.of_study(stage.study)
    everything = read_stage(stage, instrument, {})
    warm = read_stage(stage, instrument, {"framing": "warm", "order": "last"})
    expected = [answer.pk for answer in everything.answers if answer.levels() == {"framing": "warm", "order": "last"}]
    assert 0 < len(expected) < len(everything.answers)
    assert [answer.pk for answer in warm.answers] == expected
    assert [row.state for row in warm.slots] == [row.state for row in everything.slots]


def test_what_became_of_a_slot_is_lost_or_withdrawn_only_once_the_stage_is_frozen(stage: Stage) -> None:
    """A withdrawn answer's slot can be answered by somebody else until then. Its position is that of the last try."""
    instrument = instruments.of_study(stage.study)
    assignment = Assignment.objects.filter(slot__stage=stage, slot__role="sampled", state="counted").order_by("pk")[0]
    states: dict[str, list[tuple[str, int | None]]] = {}
    Assignment.objects.filter(pk=assignment.pk).update(state="withdrawn", completed_at=None, position=2)
    other = stage.sittings.exclude(pk=assignment.sitting_id).order_by("pk")[0]
    Assignment.objects.create(
        sitting=other, slot=assignment.slot, position=9, state="released", assigned_at=assignment.assigned_at
    )
    for state in ("open", "frozen"):
        Stage.objects.filter(pk=stage.pk).update(state=state, snapshot_sha256="0" * 64)
        rows = read_stage(cast.stage_of(stage.study, 1), instrument, {}).slots
        states[state] = [(row.state, row.position) for row in rows if row.slot.pk == assignment.slot_id]
        assert ("lost" in {row.state for row in rows}) == (state == "frozen")
    assert states == {"open": [("open", 9)], "frozen": [("withdrawn", 9)]}
