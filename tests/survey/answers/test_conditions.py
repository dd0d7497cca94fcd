"""Levels for sittings and items: balanced, stored with their chance, kept by people who come back; and as a filter."""

from collections import Counter
from typing import Any

import pytest

from survey.contracts import instruments
from survey.exceptions import FileErrors, HunchError
from survey.models import Assignment, AssignmentCondition, ChosenLevels, ConditionLevel, Sitting, Slot, Study
from survey.services.answers import conditions
from survey.services.sittings import expiry
from survey.services.studies import creating
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
FRAMED: dict[str, Any] = {
    "factor": "framing",
    "levels": ["machine", "anybody"],
    "per": "item",
    "options": {"anybody": {"answerer": "ai_or_person"}},
}
SHOWN = {"factor": "reply", "levels": ["hidden", "shown"], "options": {"shown": {"show_answer": True}}}


def levels_in_order(sitting: Sitting, factor: str = "framing") -> list[str]:
    return [assignment.levels()[factor] for assignment in sitting.assignments.order_by("position")]


def test_each_item_has_a_level_in_balanced_blocks_with_its_chance_and_seed() -> None:
    three = {"factor": "framing", "levels": ["one", "two", "three"], "per": "item"}
    stage = cast.open_stage(conditions=[three], sitting={"items": 6}, stages=[{"sittings": 6}])
    orders = []
    for _person in range(6):
        sitting = cast.Visitor(stage.study).to_items().sitting
        drawn = levels_in_order(sitting)
        assert set(drawn[:3]) == set(drawn[3:]) == {"one", "two", "three"}
        orders += [tuple(drawn[:3]), tuple(drawn[3:])]
    rows = AssignmentCondition.objects.all()
    assert {row.probability for row in rows} == {1 / 3}
    assert len(set(orders)) > 1, "every block has the same order"
    assert set(Counter(row.seed for row in rows).values()) == {3}
    assert not Sitting.objects.filter(conditions__isnull=False).exists()


def test_a_sittings_level_has_its_chance_however_many_factors_there_are() -> None:
    three = {"factor": "framing", "levels": ["one", "two", "three"]}
    stage = cast.open_stage(conditions=[three])
    assert set(cast.begin(stage.study).conditions.values_list("factor", "probability")) == {("framing", 1 / 3)}


def test_a_repeat_has_the_level_of_the_item_that_it_asks_again() -> None:
    stage = cast.open_stage(
        conditions=[FRAMED],
        sitting={"items": 5},
        stages=[{"sittings": 8}],
        roles={"holdout": 0, "controls": 0.2, "control_kinds": ["repeat"]},
    )
    seen = set()
    for _person in range(8):
        sitting = cast.Visitor(stage.study).to_items().sitting
        by_slot = {assignment.slot_id: assignment for assignment in sitting.assignments.select_related("slot")}
        for condition in by_slot.values():
            if condition.slot.role == Slot.Role.REPEAT:
                first, again = by_slot[condition.slot.repeat_of_id or 0].conditions.get(), condition.conditions.get()
                assert (first.level, first.probability, first.seed) == (again.level, again.probability, again.seed)
                seen.add(again.level)
    assert seen == {"machine", "anybody"}


@pytest.mark.thorough
def test_levels_do_not_follow_the_place_of_an_item() -> None:
    stage = cast.open_stage(conditions=[FRAMED], sitting={"items": 4}, stages=[{"sittings": 10}])
    firsts = [levels_in_order(cast.Visitor(stage.study).to_items().sitting)[0] for _person in range(10)]
    assert 2 <= firsts.count("machine") <= 8


def test_who_comes_back_keeps_the_levels_and_a_make_up_booklet_draws_its_own() -> None:
    stage = cast.open_stage(conditions=[FRAMED], sitting={"items": 4}, stages=[{"sittings": 1}])
    visitor = cast.Visitor(stage.study).to_items()
    before = list(AssignmentCondition.objects.order_by("pk").values_list("assignment", "level", "seed"))
    visitor.expire().answer()
    assert list(AssignmentCondition.objects.order_by("pk").values_list("assignment", "level", "seed")) == before
    visitor.expire()
    assert expiry.deal_make_up_booklets(stage) == 1
    other = cast.Visitor(stage.study).to_items().sitting
    drawn = AssignmentCondition.objects.filter(assignment__sitting=other)
    assert drawn.count() == other.assignments.count() == 3
    assert not {row.seed for row in drawn} & {seed for _assignment, _level, seed in before}


def test_a_level_changes_the_options_that_its_screens_read() -> None:
    stage = cast.open_stage(conditions=[FRAMED, SHOWN], sitting={"items": 4}, stages=[{"sittings": 4}])
    instrument = instruments.of_study(stage.study)
    for _person in range(2):
        sitting = cast.Visitor(stage.study).to_items().sitting
        for assignment in sitting.assignments.select_related("slot__stage__study", "sitting"):
            levels, options = assignment.levels(), instrument.options_for(assignment)
            assert options.answerer == {"machine": "model", "anybody": "ai_or_person"}[levels["framing"]]
            assert options.show_answer is (levels["reply"] == "shown")
    assert instrument.options.answerer == "model", "the study's own options stay"


def test_the_pages_say_what_an_items_level_says() -> None:
    stage = cast.open_stage(conditions=[FRAMED], sitting={"items": 4}, stages=[{"sittings": 1}])
    visitor = cast.Visitor(stage.study).to_items()
    has_part = {}
    while visitor.step.kind == "item":
        assert visitor.step.assignment is not None and visitor.step.screen is not None
        has_part[visitor.step.assignment.levels()["framing"]] = "answerer" in visitor.step.screen.parts
        visitor.answer()
    assert has_part == {"machine": False, "anybody": True}


def refused(**overrides: Any) -> str:
    if not cast.Bank.objects.filter(name="cast").exists():
        cast.bank()
    with pytest.raises(FileErrors) as refusal:
        creating.create_study(text=cast.study_text(**overrides), source_name="cast.toml")
    assert not Study.objects.exists()
    return refusal.value.message


def test_it_refuses_options_that_a_condition_may_not_change_and_values_that_they_may_not_have() -> None:
    said = refused(conditions=[{**FRAMED, "options": {"anybody": {"threshold": 5}}}])
    assert "conditions.1.options.anybody.threshold: belief_update lets conditions change these options: a" in said
    said = refused(conditions=[{**FRAMED, "options": {"anybody": {"answerer": "nobody"}}}])
    assert "conditions.1.options.anybody.answerer: " in said and "(it is 'nobody')" in said


def test_the_options_of_every_level_of_every_condition_are_judged() -> None:
    """A level with a strange option hides no problem of another one."""
    first = {**FRAMED, "options": {"machine": {"threshold": 5}, "anybody": {"answerer": "nobody"}}}
    other = {**SHOWN, "options": {"hidden": {"show_answer": "perhaps"}, "shown": {"threshold": 6}}}
    said = refused(conditions=[first, other])
    for place in (
        "conditions.1.options.machine.threshold: ",
        "conditions.1.options.anybody.answerer: ",
        "conditions.2.options.hidden.show_answer: ",
        "conditions.2.options.shown.threshold: ",
    ):
        assert place in said


def test_it_refuses_options_of_strange_levels_and_texts_of_single_items() -> None:
    said = refused(conditions=[{**FRAMED, "options": {"cold": {"answerer": "model"}}}])
    assert "conditions.1: options for cold, which is not among the levels" in said
    said = refused(conditions=[{**FRAMED, "texts": {"anybody": {"instructions": "Else."}}}])
    assert 'conditions.1: a block\'s text is the same for all items: texts need per = "sitting"' in said


def test_a_filter_names_factors_and_levels_that_there_are() -> None:
    made = cast.small_study(conditions=[FRAMED, SHOWN])
    wanted = conditions.read_condition(made, ["framing=anybody", "reply=shown"])
    assert wanted == {"framing": "anybody", "reply": "shown"}
    assert conditions.in_words(wanted) == "framing=anybody, reply=shown"
    for bad in (["framing"], ["framing=cold"], ["mood=warm"], ["framing=machine", "framing=anybody"]):
        with pytest.raises(HunchError, match="condition: "):
            conditions.read_condition(made, bad)


def test_an_answer_is_kept_only_where_all_levels_fit() -> None:
    stage = cast.open_stage(conditions=[FRAMED, SHOWN], sitting={"items": 4}, stages=[{"sittings": 1}])
    sitting = cast.Visitor(stage.study).to_items().sitting
    reply = sitting.levels()["reply"]
    assignments = list(Assignment.objects.order_by("position"))
    fitting = [
        assignment
        for assignment in assignments
        if conditions.has_levels(assignment, {"framing": "machine", "reply": reply})
    ]
    assert len(fitting) == 2 and {assignment.levels()["framing"] for assignment in fitting} == {"machine"}
    assert not any(
        conditions.has_levels(assignment, {"reply": {"hidden": "shown", "shown": "hidden"}[reply]})
        for assignment in assignments
    )
    assert all(conditions.has_levels(assignment, {}) for assignment in assignments)


WAVES: dict[str, Any] = {
    "panel": {"kind": "links", "currency": "USD", "reward": 100},
    "stages": [{"sittings": 2}, {"sittings": 2, "wave": 2}, {"sittings": 2, "wave": 3}],
    "waves": [{"after_days": 1, "open_days": 7, "levels": "drawn"}, {"after_days": 1, "open_days": 7}],
}


def test_a_level_is_kept_of_the_wave_before_unless_it_is_gone_or_another_one_was_chosen() -> None:
    study = cast.small_study(conditions=[{"factor": "framing", "levels": ["gain", "loss", "none"]}], **WAVES)
    stages = [cast.stage_of(study, index) for index in (1, 2, 3)]
    first = cast.sitting(stages[0])
    sittings = [first, *(cast.sitting(stage, respondent=first.respondent, wave=stage.index) for stage in stages[1:])]
    values = {"factor": "framing", "probability": 0.25, "seed": 7}
    ConditionLevel.objects.create(sitting=sittings[1], level="loss", **values)
    ConditionLevel.objects.create(sitting=sittings[0], level="gain", **values)
    third = sittings[2]
    ChosenLevels.objects.create(sitting=third, levels={"framing": "none"})

    def drawn() -> tuple[str, float, bool]:
        ConditionLevel.objects.filter(sitting=third).delete()
        conditions.draw_for_sitting(third, stages[2])
        row = ConditionLevel.objects.get(sitting=third)
        return row.level, row.probability, row.seed == 7

    assert drawn() == ("loss", 0.25, True), "that of wave 2; nobody chooses in a study that is no test copy"
    ConditionLevel.objects.filter(sitting=sittings[1]).update(level="gone")
    level, probability, is_kept = drawn()
    assert level in ("gain", "loss", "none") and (probability, is_kept) == (1 / 3, False)
    ConditionLevel.objects.filter(sitting=sittings[1]).update(level="loss")
    third.stage.study.test_of = study
    assert drawn() == ("none", 1.0, False)


def test_two_factors_with_the_same_levels_are_drawn_by_seeds_of_their_own() -> None:
    factors = [{"factor": name, "levels": ["one", "two"]} for name in ("framing", "order")]
    sitting = cast.begin(cast.open_stage(conditions=factors).study)
    assert len(set(sitting.conditions.values_list("seed", flat=True))) == 2


def test_it_refuses_levels_whose_options_do_not_fit_together() -> None:
    sure = {"factor": "sure", "levels": ["no", "yes"], "options": {"yes": {"confidence": True}}}
    own = {"factor": "own", "levels": ["yes", "no"], "options": {"no": {"own_answer": False}}}
    said = refused(conditions=[sure, own], instrument={"kind": "belief_update", "options": {"own_answer": True}})
    assert "conditions: sure=yes, own=no together: " in said and "own_answer = true" in said
