"""Slots in addition to the sampled ones: a uniform holdout with sittings of its own, and controls inside every
sitting."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bandit.errors import DesignError
from bandit.roles import RolePart
from survey.contracts import instruments
from survey.contracts.instruments import Booklets
from survey.contracts.item_rows import ItemRows
from survey.exceptions import PlanRefused
from survey.instruments.belief_update import controls
from survey.instruments.belief_update.models import Pair
from survey.models import Assignment, Question, Slot, Stage
from survey.services.answers.counting import counted_answers, training_examples
from survey.services.base.seeds import generator
from survey.services.plans import drafting, planning
from survey.services.plans.candidates import drawable_questions
from survey.services.plans.drafting import Draft, PlannedSlot, Recipe, recipe_of, slots_by_role, stage_recipe
from survey.services.results.export import answers_file, columns
from survey.services.sittings import expiry
from survey.services.stages import lifecycle
from survey.study_file import DesignConfig, StudyConfig
from tests import cast
from tests.survey import readings

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ROLES = {"holdout": 0.2, "controls": 0.15}
MIXED: dict[str, Any] = {
    "stages": [{"sittings": 10}],
    "sitting": {"items": 6, "expires_after_minutes": 30},
    "roles": ROLES,
}


def roles_of(stage: Stage) -> Counter[str]:
    return Counter(stage.slots.values_list("role", flat=True))


def test_a_stage_has_the_shares_of_holdout_and_controls_that_the_study_file_says() -> None:
    stage = cast.planned_stage(**MIXED)
    # 10 sittings of 6: 2 are the holdout's. 15 % of 48 and of 12 slots are 7 and 2 controls, spread over three kinds.
    assert roles_of(stage) == {"sampled": 41, "holdout": 10, "control": 7, "repeat": 2}
    kinds = Counter(stage.slots.filter(role="control").values_list("control_kind", flat=True))
    assert kinds == {"no_evidence": 4, "unrelated_evidence": 3}
    assert [booklet.slots.count() for booklet in stage.booklets.all()] == [6] * 10


def test_a_manifest_says_the_whole_recipe_again() -> None:
    stage = cast.planned_stage(**MIXED)
    assert Recipe.of_manifest(stage.manifest) == stage_recipe(stage)
    assert (stage_recipe(stage).holdout, stage_recipe(stage).controls) == (0.2, 0.15)


def test_no_booklet_mixes_sampled_and_holdout_slots() -> None:
    stage = cast.planned_stage(**MIXED)
    in_booklets = [set(booklet.slots.values_list("role", flat=True)) for booklet in stage.booklets.all()]
    assert not any({"sampled", "holdout"} <= roles for roles in in_booklets)
    assert sum("holdout" in roles for roles in in_booklets) == 2


@pytest.mark.thorough
def test_the_holdouts_booklets_do_not_all_come_last() -> None:
    places = set()
    for seed in range(1, 9):
        stage = cast.planned_stage(f"study-{seed}", seed=seed, **MIXED)
        places |= set(stage.booklets.filter(slots__role="holdout").values_list("number", flat=True))
    assert min(places) <= 5


def test_the_holdout_is_drawn_from_all_items_with_their_chance() -> None:
    stage = cast.planned_stage(**MIXED)
    universe = 2 * 40 * 39
    stratum = stage.strata.get(name="holdout")
    assert (stratum.size, stratum.slots) == (universe, 10)
    drawn = stage.slots.filter(role="holdout")
    assert set(drawn.values_list("inclusion_probability", "pool_probability", "stratum")) == {
        (10 / universe, 1.0, stratum.pk)
    }


def test_the_holdout_depends_on_the_stages_seed_alone_and_not_on_its_pool() -> None:
    wide = cast.planned_stage("wide", **MIXED)
    narrow = cast.planned_stage("narrow", **{**MIXED, "candidates": {"size": 100}})
    keys = [list(stage.slots.filter(role="holdout").values_list("item__key", flat=True)) for stage in (wide, narrow)]
    assert keys[0] == keys[1]


def test_controls_ask_without_evidence_or_with_evidence_of_another_domain() -> None:
    stage = cast.planned_stage(**MIXED)
    pairs = {
        kind: list(Pair.objects.filter(item__slots__stage=stage, item__slots__control_kind=kind))
        for kind in ("no_evidence", "unrelated_evidence")
    }
    assert pairs["no_evidence"] and pairs["unrelated_evidence"]
    assert all(pair.evidence is None and pair.outcome is None for pair in pairs["no_evidence"])
    assert all(pair.evidence.task != pair.target.task for pair in pairs["unrelated_evidence"])


def test_unrelated_evidence_is_never_of_the_targets_domain() -> None:
    places = [("life", "biology"), ("life", "medicine"), ("", "algebra"), ("", "drawing")]
    pairs = controls.unrelated_pairs(count=20, places=places, rng=np.random.default_rng(1))
    triples = set(zip(pairs.evidence.tolist(), pairs.target.tolist(), pairs.outcome.tolist(), strict=True))
    # 24 ordered pairs with an outcome, less the four of biology and medicine.
    assert len(triples) == 20
    assert not any({evidence, target} == {0, 1} for evidence, target, _outcome in triples)


def test_without_domains_evidence_is_of_another_task() -> None:
    places = [("one", "biology"), ("one", "biology"), ("one", "algebra")]
    pairs = controls.unrelated_pairs(count=8, places=places, rng=np.random.default_rng(1))
    assert all(2 in (evidence, target) for evidence, target in zip(pairs.evidence, pairs.target, strict=True))


@pytest.mark.parametrize(
    "change",
    [{"role": "holdout"}, {"control_kind": "other"}, {"repeat_of": 2}, {"replicate": 2}, {"key": "1:0>3"}],
)
def test_the_plans_hash_depends_on_what_every_slot_is(change: dict[str, Any]) -> None:
    control = PlannedSlot(number=3, key="1:0>2", role="control", control_kind="no_evidence", booklet=1, position=1)
    hashes = {Draft([slot], [], {}, 1).sha256 for slot in (control, replace(control, **change))}
    assert len(hashes) == 2


def test_controls_carry_no_probability_and_no_stratum() -> None:
    stage = cast.planned_stage(**MIXED)
    aside = stage.slots.filter(role__in=["control", "repeat"])
    assert set(aside.values_list("stratum", "inclusion_probability", "pool_probability", "score")) == {(None,) * 4}


def test_a_repeat_asks_an_earlier_item_of_its_own_booklet() -> None:
    stage = cast.planned_stage(**MIXED)
    repeats = list(stage.slots.filter(role="repeat").select_related("repeat_of"))
    assert len(repeats) == 2
    for repeat in repeats:
        asked = repeat.repeat_of
        assert (asked.booklet_id, asked.item_id) == (repeat.booklet_id, repeat.item_id)
        assert asked.position < repeat.position
        assert asked.role in ("sampled", "holdout")


def test_a_stage_may_differ_from_the_studys_roles() -> None:
    stages = [{"sittings": 10}, {"sittings": 10, "roles": {"holdout": 0, "control_kinds": ["repeat"]}}]
    study = cast.small_study(**{**MIXED, "stages": stages})
    first, second = (planning.plan_stage(cast.stage_of(study, index)) for index in (1, 2))
    assert set(roles_of(first)) == {"sampled", "holdout", "control", "repeat"}
    assert roles_of(second) == {"sampled": 51, "repeat": 9}


def test_a_study_without_roles_is_planned_as_before_there_were_any() -> None:
    # The hash that the first published version gave the plan of this very study.
    old = "fee69481c794b22f726911b9a9bd8521f51dab3aeaaae6026969df613e75f3c8"
    assert cast.planned_stage().plan_sha256 == old


def test_the_manifest_holds_all_that_a_plan_follows_from() -> None:
    manifest = cast.planned_stage(**MIXED).manifest
    assert manifest["design"] == {"kind": "uniform"}
    assert manifest["roles"] == {
        "holdout": 0.2,
        "controls": 0.15,
        "control_kinds": ["no_evidence", "unrelated_evidence", "repeat"],
    }
    assert (manifest["sittings"], manifest["items"], manifest["short_booklets"]) == (10, 6, False)
    assert len(manifest["code_sha256"]) == len(manifest["questions"]["positions_sha256"]) == 64
    assert manifest["predictor"] is None


def test_the_default_roles_are_a_tenth_and_a_fifteenth() -> None:
    config = cast.small_study(**MIXED).stored_config
    config = StudyConfig.model_validate(
        {**config, "roles": {}, "sitting": {"items": 15}, "stages": [{"sittings": 100}]}
    )
    plan = slots_by_role(recipe_of(config, index=1, seed=1))
    assert (plan.sampled.booklets, plan.holdout.booklets) == (90, 10)
    assert sum(n for _kind, n in plan.sampled.controls) == 90 and sum(n for _kind, n in plan.holdout.controls) == 10
    assert [kind for kind, _n in plan.sampled.controls] == ["no_evidence", "unrelated_evidence", "repeat"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": {"holdout": 0.96}}, "stage 1 cannot be planned: holdout: takes 10 of 10 booklets"),
        ({"roles": {"holdout": 0, "controls": 0.99}}, "stage 1 cannot be planned: controls: 59 of 60 slots|repeat"),
        ({"roles": {"control_kinds": ["sleep"]}}, "control_kinds: belief_update has no_evidence, unrelated_evidence, "),
        (
            {"roles": {"holdout": 0, "controls": 0.9, "control_kinds": ["no_evidence"]}},
            "controls: 54 without evidence need as many questions, and there are 40",
        ),
        (
            {"roles": {"holdout": 0, "controls": 0.6, "control_kinds": ["another_person"]}},
            "controls: 36 items to ask of another person, and there are 24 to choose from",
        ),
    ],
)
def test_roles_that_do_not_fit_are_refused_with_their_sizes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanRefused, match=message):
        planning.plan_stage(cast.stage_of(cast.stored_study(**{**MIXED, **changes})))
    assert not Slot.objects.exists()


def test_another_person_is_asked_an_item_that_no_other_part_or_control_has_and_each_once() -> None:
    def part(name: str, *slots: tuple[str, str, int]) -> drafting._Part:
        rows = [{"key": key, "role": role, "replicate": replicate} for key, role, replicate in slots]
        keys = [(key,) for key, _role, _replicate in slots]
        groups = [(role,) for _key, role, _replicate in slots]
        return drafting._Part(name, rows, keys, groups, [True] * len(rows), repeats=0)

    sampled = part("", *((key, "sampled", 1) for key in "abcde"), ("a", "sampled", 2), ("b", "control", 1))
    parts = [sampled, part("holdout", ("c", "holdout", 1), ("f", "holdout", 1))]
    drafting._ask_another_person(parts, 0, 3, np.random.default_rng(1))
    made = sampled.slots[7:]
    assert sorted(slot["key"] for slot in made) == ["a", "d", "e"]
    assert {(slot["role"], slot["control_kind"]) for slot in made} == {("control", "another_person")}
    assert sampled.keys[7:] == [(slot["key"],) for slot in made] and sampled.repeatable[7:] == [False] * 3
    # They are controls now, so that nobody else is asked them, and the other part passes them over as well.
    with pytest.raises(DesignError, match="1 items to ask of another person, and there are 0 to choose from"):
        drafting._ask_another_person(parts, 0, 1, np.random.default_rng(1))
    drafting._ask_another_person(parts, 1, 1, np.random.default_rng(1))
    assert parts[1].slots[2]["key"] == "f"


def test_evidence_cannot_be_unrelated_in_a_bank_of_one_task() -> None:
    bank = cast.small_bank(40, name="one", tasks=1)
    roles = {"holdout": 0, "controls": 0.1, "control_kinds": ["unrelated_evidence"]}
    with pytest.raises(PlanRefused, match=r"6 with unrelated evidence need .* and there are 0"):
        planning.plan_stage(cast.stage_of(cast.stored_study(on=bank, **{**MIXED, "roles": roles})))


def finished(stage: Stage) -> Stage:
    """Everybody has answered every slot."""
    cast.fill(lifecycle.open_stage(stage))
    return cast.stage_of(stage.study)


@pytest.mark.thorough
def test_a_person_meets_controls_and_repeats_like_any_other_item() -> None:
    stage = finished(cast.planned_stage(**MIXED))
    met = set(Assignment.objects.order_by().values_list("slot__role", "state", "responses__screen"))
    roles = ("control", "holdout", "repeat", "sampled")
    assert met == {(role, "counted", screen) for role in roles for screen in ("prior", "posterior")}
    assert stage.slots.filter(assignments=None).count() == 0


def test_without_evidence_the_second_screen_shows_none() -> None:
    kinds = {"holdout": 0, "controls": 0.5, "control_kinds": ["no_evidence"]}
    stage = lifecycle.open_stage(cast.planned_stage(**{**MIXED, "roles": kinds}))
    visitor = cast.Visitor(stage.study).to_items()
    seen = set()
    while visitor.step.kind == "item":
        slot = visitor.step.assignment.slot
        step = visitor.post(value=50)
        assert ("evidence" in step.screen.parts) == ("outcome" in step.screen.parts) == (slot.role == "sampled")
        seen.add(slot.role)
        visitor.post(value=50)
    assert seen == {"sampled", "control"}


@pytest.mark.thorough
def test_controls_and_the_holdout_never_train_and_controls_never_count() -> None:
    stage = finished(cast.planned_stage(**{**MIXED, "stages": [{"sittings": 10}, {"sittings": 10}]}))
    assert {answer.slot.role for answer in counted_answers(stage)} == {"sampled", "holdout"}
    lifecycle.close_stage(stage)
    lifecycle.freeze(cast.stage_of(stage.study))
    trained = training_examples(cast.stage_of(stage.study))
    assert {answer.slot.role for answer in trained} == {"sampled"}
    held_out = {
        frozenset((pair.evidence_id, pair.target_id)) for pair in Pair.objects.filter(item__slots__role="holdout")
    }
    assert not any(
        frozenset((answer.slot.item.pair.evidence_id, answer.slot.item.pair.target_id)) in held_out
        for answer in trained
    )
    assert {answer.slot.role for answer in answers_file.CountedAnswers(stage.study)} == {"sampled", "holdout"}


def test_the_export_says_what_a_control_asks_and_what_a_repeat_repeats() -> None:
    stage = cast.planned_stage(**MIXED)
    names = [column.name for column in columns.columns_of(stage.study)]
    rows = [dict(zip(names, row, strict=True)) for row in answers_file.answer_rows(stage.study)]
    by_slot = {row["slot"]: row for row in rows}
    for row in rows:
        assert (row["control_kind"] is not None) == (row["role"] == "control")
        assert (row["repeat_of"] is not None) == (row["role"] == "repeat")
        if row["role"] == "repeat":
            assert by_slot[row["repeat_of"]]["item"] == row["item"]


def test_a_repeat_that_lost_its_person_is_asked_of_nobody_else() -> None:
    stage = lifecycle.open_stage(cast.planned_stage(**{**MIXED, "roles": {"holdout": 0, "controls": 0.3}}))
    visitors = [cast.Visitor(stage.study).to_items() for _place in range(10)]
    for visitor in visitors:
        visitor.expire()
    expiry.deal_make_up_booklets(stage)
    dealt = Slot.objects.filter(booklet__kind="make_up")
    assert set(dealt.values_list("role", flat=True)) == {"sampled", "control"}
    assert dealt.count() == stage.slots.exclude(role="repeat").count()
    assert expiry.deal_make_up_booklets(stage) == 0


def test_what_is_left_of_the_holdout_is_dealt_into_sittings_of_its_own() -> None:
    stage = lifecycle.open_stage(cast.planned_stage(**MIXED))
    for visitor in [cast.Visitor(stage.study).to_items() for _place in range(10)]:
        visitor.expire()
    while expiry.deal_make_up_booklets(stage):
        stage.booklets.filter(claimed_at=None).update(
            claimed_at=stage.planned_at
        )  # Some go on only when all are taken.
        if not stage.slots.filter(booklet__kind="main").exclude(role="repeat").exists():
            break
    for booklet in stage.booklets.filter(kind="make_up"):
        roles = set(booklet.slots.values_list("role", flat=True))
        assert not {"sampled", "holdout"} <= roles
    assert stage.booklets.filter(kind="make_up", slots__role="holdout").exists()


def test_simulated_people_are_noisy_where_controls_measure_noise() -> None:
    kinds = {"holdout": 0, "controls": 0.5, "control_kinds": ["no_evidence", "repeat"]}
    stage = cast.planned_stage(**{**MIXED, "stages": [{"sittings": 10}], "roles": kinds})
    instrument = instruments.of_study(stage.study)
    changed, moved, asked = 0, 0, 0
    text = stage.slots.first().item.pair.target.plain
    for seed in range(300):
        person = instrument.simulated_person(seed=seed)
        prior = person.answer(screen="prior", parts={"target": text})["value"]
        posterior = person.answer(screen="posterior", parts={"target": text, "prior": prior})["value"]
        again = person.answer(screen="prior", parts={"target": text})["value"]
        asked += 1
        changed += posterior != prior
        moved += again != prior
        assert 0 <= int(posterior) <= 100 and 0 <= int(again) <= 100
    # 8 % and 30 % of 300, and six standard errors.
    assert abs(changed / asked - 0.08) < 0.1 and changed > 0
    assert abs(moved / asked - 0.3) < 0.16


def test_an_instrument_without_controls_of_its_own_still_repeats() -> None:
    keyless = cast.small_bank(40, name="keyless", keyless=40)
    study = cast.small_study(
        "toy",
        on=keyless,
        **{**MIXED, "candidates": {"size": 40}, "stages": [{"sittings": 6}], "instrument": {"kind": "toy"}},
    )
    stage = planning.plan_stage(cast.stage_of(study))
    assert set(roles_of(stage)) == {"sampled", "holdout", "repeat"}
    cast_roles = stage.slots.filter(role="repeat").select_related("repeat_of")
    assert all(slot.item_id == slot.repeat_of.item_id for slot in cast_roles)


@pytest.mark.thorough
def test_a_holdout_that_must_fit_a_small_bank_still_gives_every_pair_the_same_chance() -> None:
    """3 pairs over 8 questions in one booklet: most draws share a question and are drawn again."""
    study = cast.small_study(on=cast.small_bank(8, name="tiny"), sitting={"items": 1})
    questions = drawable_questions(cast.stage_of(study))
    recipe = Recipe(seed=0, sittings=2, items=3, design=DesignConfig(), holdout=0.5)
    instrument = instruments.kind("belief_update")()
    counts: Counter[str] = Counter()
    draws = 600
    for seed in range(draws):
        part, stratum = drafting.holdout_part(
            replace(recipe, seed=seed), slots_by_role(recipe).holdout, instrument, questions, {}
        )
        keys = [slot["key"] for slot in part.slots]
        numbers = [number for key in keys for number in (key.partition(":")[0], key.partition(">")[2])]
        assert len(set(numbers)) == len(numbers) == 6
        counts.update(keys)
        assert part.slots[0]["inclusion_probability"] == stratum.slots / stratum.size == 3 / 112
    expected = draws * 3 / 112
    # Every pair was drawn, none far too often; by its own chance a count is binomial.
    deviation = max(abs(counts[key] - expected) for key in counts) / (expected * (1 - 3 / 112)) ** 0.5
    assert len(counts) == 112 and deviation < 5
    # By outcome and by question the frequencies agree far more closely.
    for outcome in ("0", "1"):
        share = sum(count for key, count in counts.items() if f":{outcome}>" in key) / (3 * draws)
        assert abs(share - 0.5) < 5 * (0.25 / (3 * draws)) ** 0.5
    for position in range(8):
        share = sum(count for key, count in counts.items() if key.startswith(f"{position}:")) / (3 * draws)
        assert abs(share - 1 / 8) < 5 * (7 / 64 / (3 * draws)) ** 0.5


# Instruments whose items share their conflict keys unequally, or have none


def test_items_without_conflict_keys_have_a_holdout_too(monkeypatch: pytest.MonkeyPatch) -> None:
    readings.make_known(monkeypatch)
    roles = {"holdout": 0.25, "controls": 0}
    stage = planning.plan_stage(cast.stage_of(readings.study(roles=roles, stages=[{"sittings": 8}])))
    held_out = list(stage.slots.filter(role="holdout"))
    assert len(held_out) == len({slot.item_id for slot in held_out}) == 6
    assert {slot.inclusion_probability for slot in held_out} == {6 / 80}


class Sentences(readings.Readings):
    """Ten sentences have twelve gaps each and twenty have two. Nobody sees a sentence twice."""

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        gaps = [(place, gap) for place in range(30) for gap in range(12 if place < 10 else 2)]
        return np.array(gaps, dtype=[("question", "<i4"), ("gap", "<i4")])

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{row['question']}@{row['gap']}"

    rows = ItemRows(questions=("question",))


@pytest.mark.parametrize("alike", [False, True])
def test_only_where_keys_are_exchangeable_is_a_holdout_drawn_until_it_can_be_dealt(
    alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing again would favour gaps of short sentences, of which the stored chance knows nothing."""
    monkeypatch.setattr(Booklets, "keys_are_exchangeable", alike)
    instrument, plan = Sentences(), RolePart(booklets=4, items=24, controls=())
    redrawn = 0
    for seed in range(60):
        recipe = drafting.Recipe(seed=seed, sittings=8, items=6, design=DesignConfig(kind="uniform"), holdout=0.5)
        first = instrument.draw_candidates(questions=[], size=24, rng=generator(seed, "holdout"))
        part, _stratum = drafting.holdout_part(recipe, plan, instrument, [], {})
        drawn = [instrument.item_key(row, []) for row in first.rows]
        most = max(Counter(row["question"] for row in first.rows).values())
        assert (drawn == [slot["key"] for slot in part.slots]) == (most <= 4 or not alike)
        redrawn += most > 4
    assert redrawn > 5
