"""Several different people answer each item, whatever the design: r slots an item, in r booklets."""

from collections import Counter
from typing import Any

import pytest

from survey.exceptions import PlanRefused
from survey.models import Slot, Stage
from survey.services.plans import planning
from survey.services.sittings import expiry
from survey.services.stages import verifying
from survey.study_file import StageConfig
from tests import cast
from tests.survey import readings
from tests.survey.plans.test_designs import TEST, scored

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

THREE = {"responses_per_item": 3}
DESIGNS: dict[str, dict[str, Any]] = {
    "uniform": {"kind": "uniform"},
    "epsilon_greedy": {"kind": "epsilon_greedy", "epsilon": 0.25},
    "softmax": {"kind": "softmax", "temperature": 0.2},
    "proportional": {"kind": "proportional", "power": 4},
    "uncertainty": {"kind": "uncertainty", "epsilon": 0.25},
}


def slots_by_item(stage: Stage, role: str = "sampled") -> dict[int, list[Slot]]:
    by_item: dict[int, list[Slot]] = {}
    for slot in stage.slots.filter(role=role).select_related("stratum").order_by("number"):
        by_item.setdefault(slot.item_id, []).append(slot)
    return by_item


FIRST, *OTHERS = DESIGNS


@pytest.mark.parametrize("design", [FIRST, *(pytest.param(other, marks=pytest.mark.thorough) for other in OTHERS)])
def test_every_design_gives_each_drawn_item_its_slots_in_as_many_booklets(design: str) -> None:
    stage = planning.plan_stage(scored(DESIGNS[design], stage=THREE))
    items = slots_by_item(stage)
    assert len(items) == 4 and stage.slots.count() == 12
    for slots in items.values():
        assert sorted(slot.replicate for slot in slots) == [1, 2, 3]
        assert len({slot.booklet_id for slot in slots}) == 3
        assert len({(slot.inclusion_probability, slot.score, slot.stratum_id) for slot in slots}) == 1
    drawn = Counter(slots[0].stratum.name for slots in items.values() if slots[0].stratum)
    for stratum in stage.strata.all():
        assert stratum.slots == drawn[stratum.name]
        chances = {slots[0].inclusion_probability for slots in items.values() if slots[0].stratum == stratum}
        if design not in ("softmax", "proportional") and chances:
            assert chances == {stratum.slots / stratum.size}
    assert stage.manifest["responses_per_item"] == 3
    assert verifying.verify_stage(stage).differences == []


@pytest.mark.thorough
def test_the_chance_of_an_item_is_that_of_a_draw_of_so_many_items() -> None:
    """By the frequencies of many draws, softmax's own chances among them."""
    import numpy as np

    from bandit import Softmax, draw

    scores = np.linspace(0, 1, 12)
    rng = np.random.default_rng(4)
    seen = np.zeros(12)
    for _draw in range(4000):
        drawn = draw(
            design=Softmax(temperature=0.4), n=9, scores=scores, n_candidates=12, rng=rng, responses_per_item=3
        )
        assert sorted(Counter(drawn.selected.tolist()).values()) == [3, 3, 3]
        seen[np.unique(drawn.selected)] += 1
        chance = dict(zip(drawn.selected.tolist(), drawn.inclusion_probability.tolist(), strict=True))
        if _draw == 0:
            known_chances = {}
        known_chances |= chance
    expected = np.array([known_chances[place] for place in range(12)])
    assert expected.sum() == pytest.approx(3)
    assert np.abs(seen / 4000 - expected).max() < 4 * np.sqrt(0.25 / 4000)


def test_with_all_items_there_are_each_is_drawn_once_and_asked_three_times() -> None:
    stage = planning.plan_stage(
        cast.stage_of(cast.small_study(candidates={"kind": "exhaustive"}, stages=[{"sittings": 4, **THREE}]))
    )
    items = slots_by_item(stage)
    assert len(items) == 4 and {len(slots) for slots in items.values()} == {3}
    assert {slot.inclusion_probability for slots in items.values() for slot in slots} == {4 / 3120}
    assert verifying.verify_stage(stage).differences == []


def test_one_answer_an_item_is_planned_as_it_was_and_says_nothing_more() -> None:
    plan = planning.plan_stage(cast.stage_of(cast.small_study("one")))
    other = planning.plan_stage(
        cast.stage_of(cast.small_study("other", stages=[{"sittings": 4, "responses_per_item": 1}]))
    )
    assert plan.plan_sha256 == other.plan_sha256
    assert "responses_per_item" not in plan.manifest


def test_the_holdout_stays_single() -> None:
    stage = planning.plan_stage(
        cast.stage_of(
            cast.small_study(
                on=cast.small_bank(300, name="wide"),
                roles={"holdout": 0.25, "controls": 0},
                stages=[{"sittings": 8, **THREE}],
                sitting={"items": 4},
            )
        )
    )
    assert {len(slots) for slots in slots_by_item(stage).values()} == {3}
    assert {len(slots) for slots in slots_by_item(stage, "holdout").values()} == {1}


def test_sittings_that_do_not_divide_are_refused_with_those_that_do() -> None:
    config = cast.small_config(stages=[{"sittings": 5, "responses_per_item": 2}])
    with pytest.raises(PlanRefused, match=r"5 sittings leave 15 slots .* with 2 answers each; plan 4 or 6 sittings"):
        planning.check_designs(config, universe_size=3120)
    config = cast.small_config(stages=[{"sittings": 2, **THREE}])
    with pytest.raises(PlanRefused, match=r"3 different people .* there are 2 sittings to sample"):
        planning.check_designs(config, universe_size=3120)


def test_a_test_set_is_asked_by_either_name_of_the_number() -> None:
    by_pair = StageConfig.model_validate({"sittings": 4, "design": TEST})
    by_item = StageConfig.model_validate(
        {"sittings": 4, "responses_per_item": 3, "design": {**TEST, "responses_per_pair": None}}
    )
    assert by_pair == by_item and by_pair.responses_per_item == by_pair.design.responses_per_pair == 3
    assert StageConfig.model_validate({"sittings": 4, "design": {"kind": "test_set"}}).responses_per_item == 9
    with pytest.raises(ValueError, match="2 answers to each item, and the design says responses_per_pair = 3"):
        StageConfig.model_validate({"sittings": 4, "responses_per_item": 2, "design": TEST})
    stage = planning.plan_stage(scored(TEST))
    assert {len(slots) for slots in slots_by_item(stage).values()} == {3}
    assert "responses_per_item" not in stage.manifest  # Its design says it.


def test_an_item_that_conflicts_with_nothing_is_still_asked_once_a_person_make_up_booklets_included(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings.make_known(monkeypatch)
    study = readings.study(questions=20, candidates={"size": 20}, stages=[{"sittings": 6, **THREE}])
    stage = planning.plan_stage(cast.stage_of(study))
    Stage.objects.filter(pk=stage.pk).update(state="open")
    for slots in slots_by_item(stage).values():
        assert len({slot.booklet_id for slot in slots}) == 3
    # Four of six people claim their booklet and leave.
    for booklet in stage.booklets.order_by("number")[:6]:
        sitting = cast.sitting(stage, booklet=booklet, state="expired")
        for slot in booklet.slots.all():
            cast.assignment(sitting, slot, position=slot.position, state="released")
        booklet.claimed_at = sitting.started_at
        booklet.save()
    assert expiry.deal_make_up_booklets(cast.stage_of(study)) >= 6
    made = slots_by_item(cast.stage_of(study))
    assert {slot.booklet.kind for slots in made.values() for slot in slots if slot.booklet} == {"make_up"}
    for slots in made.values():
        assert len({slot.booklet_id for slot in slots}) == 3
