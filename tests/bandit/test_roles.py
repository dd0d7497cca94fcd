import numpy as np
import pytest

from bandit import DesignError, Pairs, deal_with_repeats, plan_roles, shares_questions
from bandit.roles import CONTROL_KINDS
from tests.bandit.laws import p_value_of_counts


def test_a_stage_has_a_tenth_of_holdout_sittings_and_a_control_in_fifteen():
    plan = plan_roles(booklets=88, size=15)
    assert (plan.holdout.booklets, plan.sampled.booklets) == (9, 79)
    assert (plan.holdout.items, plan.sampled.items) == (9 * 14, 79 * 14)
    assert plan.sampled.controls == (("no_evidence", 27), ("unrelated_evidence", 26), ("repeat", 26))
    assert plan.holdout.controls == (("no_evidence", 3), ("unrelated_evidence", 3), ("repeat", 3))


def test_half_a_booklet_and_half_a_slot_go_to_the_even_number():
    assert [plan_roles(booklets=count, size=4, holdout=0.1).holdout.booklets for count in (4, 25, 35)] == [1, 2, 4]
    counts = [
        sum(count for _kind, count in plan_roles(booklets=1, size=size, holdout=0, controls=0.5).sampled.controls)
        for size in (5, 7)
    ]
    assert counts == [2, 4]


@pytest.mark.parametrize(
    ("booklets", "size", "holdout", "controls"), [(1, 15, 0, 0.1), (2, 3, 0.01, 0.5), (20, 7, 0.3, 0)]
)
def test_every_slot_has_one_role(booklets, size, holdout, controls):
    plan = plan_roles(booklets=booklets, size=size, holdout=holdout, controls=controls)
    slots = [part.items + sum(count for _, count in part.controls) for part in (plan.sampled, plan.holdout)]
    assert slots == [plan.sampled.booklets * size, plan.holdout.booklets * size]
    assert plan.sampled.booklets + plan.holdout.booklets == booklets
    assert (plan.holdout.booklets > 0) == (holdout > 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"holdout": 1.0}, "holdout: must be a share"),
        ({"controls": -0.1}, "controls: must be a share"),
        ({"booklets": 0}, "at least 1"),
        ({"booklets": 1}, "takes 1 of 1 booklets and leaves none"),
        ({"kinds": ()}, "at least one kind"),
        ({"size": 1, "controls": 0.96}, "leave no item"),
    ],
)
def test_roles_that_leave_nothing_are_refused(arguments, message):
    with pytest.raises(DesignError, match=message):
        plan_roles(**({"booklets": 10, "size": 15} | arguments))


def dealt(seed, *, slots=56, repeats=4, size=15, **others):
    return deal_with_repeats(
        conflict_keys=[(slot % 20,) for slot in range(slots)],
        groups=[("sampled", slot % 2) for slot in range(slots)],
        repeatable=[slot % 7 != 0 for slot in range(slots)],
        repeats=repeats,
        size=size,
        rng=np.random.default_rng(seed),
        **others,
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_repeat_stands_after_its_item_in_the_same_booklet_with_room_between(seed):
    plan = dealt(seed)
    assert sorted(slot for booklet in plan.booklets for slot in booklet) == list(range(60))
    assert [len(booklet) for booklet in plan.booklets] == [15] * 4
    assert sorted(plan.repeat_of) == [56, 57, 58, 59]
    for booklet in plan.booklets:
        (repeat,) = [slot for slot in booklet if slot >= 56]  # spread evenly: one per booklet
        item = plan.repeat_of[repeat]
        assert item % 7 != 0
        assert booklet.index(repeat) - booklet.index(item) >= 5


def test_several_repeats_in_a_booklet_ask_different_items():
    plan = dealt(3, repeats=16, slots=44)
    for booklet in plan.booklets:
        items = [plan.repeat_of[slot] for slot in booklet if slot >= 44]
        assert len(items) == 4 == len(set(items))
        assert all(booklet.index(plan.repeat_of[slot]) < booklet.index(slot) for slot in booklet if slot >= 44)


@pytest.mark.thorough
def test_any_early_enough_item_may_be_the_one_that_is_asked_again():
    counts = np.zeros(8)
    for seed in range(1500):
        plan = deal_with_repeats(
            conflict_keys=[()] * 8,
            groups=["a"] * 8,
            repeatable=[True] * 8,
            repeats=1,
            size=9,
            rng=np.random.default_rng(seed),
        )
        counts[plan.repeat_of[8]] += 1
    assert p_value_of_counts(counts, draws=1500, n=1) > 0.001


def test_a_short_booklet_repeats_as_late_as_it_can():
    plan = deal_with_repeats(
        conflict_keys=[()] * 2,
        groups=["a"] * 2,
        repeatable=[True] * 2,
        repeats=1,
        size=3,
        rng=np.random.default_rng(1),
    )
    (booklet,) = plan.booklets
    assert booklet == [plan.repeat_of[2], 1 - plan.repeat_of[2], 2]


def test_repeats_without_an_item_to_repeat_are_refused():
    with pytest.raises(DesignError, match="without an item to ask again"):
        deal_with_repeats(
            conflict_keys=[()] * 3,
            groups=["control"] * 3,
            repeatable=[False] * 3,
            repeats=1,
            size=4,
            rng=np.random.default_rng(1),
        )
    with pytest.raises(DesignError, match="2 entries for 56 slots"):
        deal_with_repeats(
            conflict_keys=[()] * 56,
            groups=["a"] * 56,
            repeatable=[True] * 2,
            repeats=1,
            size=4,
            rng=np.random.default_rng(1),
        )
    with pytest.raises(DesignError, match="repeats, gap"):
        dealt(1, gap=0)


def test_pairs_of_the_same_two_questions_are_kept_from_training():
    held_out = Pairs(evidence=np.array([1, 5]), target=np.array([2, 3]), outcome=np.array([0, 1]))
    pairs = Pairs(
        evidence=np.array([1, 2, 2, 3, 1]), target=np.array([2, 1, 3, 5, 5]), outcome=np.array([1, 0, 0, 0, 0])
    )
    shared = shares_questions(pairs=pairs, held_out=held_out, n_questions=6)
    assert shared.tolist() == [True, True, False, True, False]
    with pytest.raises(DesignError, match="outside the bank of 5"):
        shares_questions(pairs=pairs, held_out=held_out, n_questions=5)


def test_the_kinds_of_controls_are_the_three_that_measure_noise():
    assert CONTROL_KINDS == ("no_evidence", "unrelated_evidence", "repeat")
