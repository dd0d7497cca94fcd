from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit import DesignError, deal
from bandit.short_booklets import deal_short, deal_short_with_repeats
from tests.bandit.laws import p_value_of_counts

pytestmark = pytest.mark.slow


def assert_dealt(booklets, *, keys, size):
    n = len(keys)
    assert sorted(slot for booklet in booklets for slot in booklet) == list(range(n))
    assert [len(booklet) for booklet in booklets[:-1]] == [size] * (len(booklets) - 1)
    for booklet in booklets:
        held = [key for slot in booklet for key in set(keys[slot])]
        assert len(held) == len(set(held))


def spread(booklets, groups, size):
    """The largest difference between full booklets in how many slots of a group they hold."""
    full = [Counter(groups[slot] for slot in booklet) for booklet in booklets if len(booklet) == size]
    return max((max(c[g] for c in full) - min(c[g] for c in full) for g in set(groups) if full), default=0)


@st.composite
def solvable_deals(draw):
    """Slots made booklet by booklet, so that a deal exists, with questions in most of the booklets."""
    booklets, size = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    n_questions = 2 * size + draw(st.integers(6, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    keys = []
    for _ in range(booklets):
        chosen = rng.permutation(n_questions)[: 2 * size]
        keys += [(int(a), int(b)) for a, b in zip(chosen[::2], chosen[1::2], strict=True)]
    keys = keys[: len(keys) - draw(st.integers(0, size - 1))]
    keys = [keys[i] for i in rng.permutation(len(keys))]
    groups = [int(g) for g in rng.integers(0, 3, size=len(keys))]
    return keys, groups, size, draw(st.integers(0, 2**32))


@settings(deadline=None)
@given(solvable_deals())
def test_every_slot_is_dealt_once_and_no_key_twice_in_a_booklet(case):
    keys, groups, size, seed = case
    booklets = deal(conflict_keys=keys, groups=groups, size=size, rng=np.random.default_rng(seed))
    assert len(booklets) == -(-len(keys) // size)
    assert_dealt(booklets, keys=keys, size=size)


@pytest.mark.thorough
@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=80), st.integers(1, 9), st.integers(0, 2**32))
def test_groups_are_mixed_evenly_where_nothing_conflicts(groups, size, seed):
    booklets = deal(conflict_keys=[()] * len(groups), groups=groups, size=size, rng=np.random.default_rng(seed))
    assert_dealt(booklets, keys=[()] * len(groups), size=size)
    assert spread(booklets, groups, size) <= 1
    last = Counter(groups[slot] for slot in booklets[-1])
    for group, count in Counter(groups).items():
        assert abs(last[group] - count * len(booklets[-1]) / len(groups)) < 1


@pytest.mark.thorough
@pytest.mark.parametrize("n_questions", [60, 420, 16_439])
def test_a_stage_of_1320_slots_is_dealt_evenly_with_questions_in_almost_every_booklet(n_questions):
    rng = np.random.default_rng(5)
    popularity = 1 / (np.arange(n_questions) + 3.0)
    seen, keys = Counter(), []
    while len(keys) < 1320:
        pair = tuple(rng.choice(n_questions, size=2, replace=False, p=popularity / popularity.sum()).tolist())
        if max(seen[key] for key in pair) < 88:
            seen.update(pair)
            keys.append(pair)
    assert max(seen.values()) == 88
    groups = [("top" if rng.random() < 0.9 else "rest", "sampled" if rng.random() < 0.9 else "holdout") for _ in keys]
    booklets = deal(conflict_keys=keys, groups=groups, size=15, rng=rng)
    assert_dealt(booklets, keys=keys, size=15)
    assert spread(booklets, groups, 15) <= 1


def test_the_slot_that_is_left_over_falls_on_each_booklet_equally_often():
    """7 slots of one group and 5 of another in 4 booklets of 3: of each group 3 booklets, or 1, have one slot more."""
    groups, more = ["a"] * 7 + ["b"] * 5, np.zeros(4)
    for seed in range(400):
        booklets = deal(conflict_keys=[()] * 12, groups=groups, size=3, rng=np.random.default_rng(seed))
        more += [sum(groups[slot] == "a" for slot in booklet) == 2 for booklet in booklets]
    assert more.sum() == 1200 and p_value_of_counts(more, draws=400, n=3) > 1e-4


def test_groups_give_way_where_the_conflicts_leave_no_other_deal_and_the_others_stay_even():
    # Each slot of "a" conflicts with each of "b", so the two of "a" must share one booklet.
    keys = [("p", "q"), ("r", "s"), ("p", "r"), ("q", "s")] + [()] * 40
    groups = ["a", "a", "b", "b"] + ["c"] * 20 + ["d"] * 20
    booklets = deal(conflict_keys=keys, groups=groups, size=22, rng=np.random.default_rng(1))
    assert_dealt(booklets, keys=keys, size=22)
    assert sorted(Counter(groups[slot] for slot in booklets[0])) in (["a", "c", "d"], ["b", "c", "d"])
    assert Counter(groups[slot] for slot in booklets[0])["c"] == 10


def test_a_question_in_more_slots_than_booklets_is_refused_by_name():
    keys = [("popular", i) for i in range(5)] + [("other", i) for i in range(5, 9)]
    with pytest.raises(DesignError, match="'popular' is in 5 slots, but 9 slots make only 3 booklets"):
        deal(conflict_keys=keys, groups=["a"] * 9, size=3, rng=np.random.default_rng(1))


def test_a_plan_that_no_deal_fits_is_refused():
    # Four slots, each pair of them in conflict over some question, and two booklets.
    keys = [("ab", "ac", "ad"), ("ab", "bc", "bd"), ("ac", "bc", "cd"), ("ad", "bd", "cd")]
    with pytest.raises(DesignError, match="no way to deal 4 slots into 2 booklets"):
        deal(conflict_keys=keys, groups=["a"] * 4, size=2, rng=np.random.default_rng(1))


def test_the_last_booklet_may_be_shorter_only_if_allowed():
    options = {"conflict_keys": [()] * 7, "groups": ["a"] * 7, "size": 3}
    assert [len(b) for b in deal(**options, rng=np.random.default_rng(1))] == [3, 3, 1]
    with pytest.raises(DesignError, match="1 are left over"):
        deal(**options, rng=np.random.default_rng(1), allow_short_last=False)


def test_no_slots_make_no_booklets():
    assert deal(conflict_keys=[], groups=[], size=15, rng=np.random.default_rng(1)) == []


def test_bad_sizes_are_refused():
    with pytest.raises(DesignError, match="size"):
        deal(conflict_keys=[()], groups=["a"], size=0, rng=np.random.default_rng(1))
    with pytest.raises(DesignError, match="2 groups for 1 slots"):
        deal(conflict_keys=[()], groups=["a", "b"], size=1, rng=np.random.default_rng(1))


@pytest.mark.thorough
def test_any_slot_can_land_at_any_position_of_any_booklet():
    rng = np.random.default_rng(9)
    keys = [("x", "y"), ("x",), ("y",), (3,), (4,), (5,), (6,), (7,)]
    landed = np.zeros((8, 8))
    for _ in range(1500):
        places = [
            slot for booklet in deal(conflict_keys=keys, groups=list("aabbabab"), size=3, rng=rng) for slot in booklet
        ]
        landed[places, np.arange(8)] += 1
    assert (landed > 0).all()
    # The slot with the most conflicts is dealt first. It must be in each of the two full booklets equally often.
    assert p_value_of_counts([landed[0, :3].sum(), landed[0, 3:6].sum()], draws=int(landed[0, :6].sum()), n=1) > 0.001
    for slot in range(8):
        assert p_value_of_counts(landed[slot, :6], draws=int(landed[slot, :6].sum()), n=1) > 0.001 / 8


def test_the_same_seed_deals_the_same_booklets():
    rng = np.random.default_rng(4)
    keys = [tuple(rng.choice(90, size=2, replace=False).tolist()) for _ in range(90)]
    first, two, other = (
        deal(conflict_keys=keys, groups=["a"] * 90, size=15, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first == two != other


def test_short_booklets_are_filled_one_after_the_other_and_hold_no_key_twice():
    keys = [(slot % 4, "all" if slot < 3 else f"own {slot}") for slot in range(23)]
    booklets = deal_short(keys, size=5, rng=np.random.default_rng(3))
    assert sorted(slot for booklet in booklets for slot in booklet) == list(range(23))
    for booklet in booklets:
        own = [key for slot in booklet for key in keys[slot]]
        assert len(booklet) <= 5 and len(own) == len(set(own))
    # A slot stands in a later booklet only where an earlier one had no room, or one of its keys.
    for place, booklet in enumerate(booklets):
        for slot in booklet:
            for before in booklets[:place]:
                assert len(before) == 5 or not {*keys[slot]}.isdisjoint(key for other in before for key in keys[other])
    assert [len(booklet) for booklet in deal_short([()] * 12, size=5, rng=np.random.default_rng(3))] == [5, 5, 2]
    assert deal_short(keys, size=5, rng=np.random.default_rng(4)) != booklets


@pytest.mark.parametrize("repeats", [0, 2, 9])
def test_a_short_booklet_with_room_asks_one_of_its_items_again_at_its_end(repeats):
    """Four booklets of a slot of each key, one of which is full; two slots may not be asked again."""
    keys = [("one", slot) if slot < 4 else ("two", slot) if slot < 8 else (slot,) for slot in range(9)]
    repeatable = [slot not in (3, 7) for slot in range(9)]
    for seed in range(20):
        plan = deal_short_with_repeats(
            keys, repeatable=repeatable, repeats=repeats, size=3, rng=np.random.default_rng(seed)
        )
        room = [[slot for slot in booklet if slot < 9] for booklet in plan.booklets]
        possible = sum(len(booklet) < 3 and any(repeatable[slot] for slot in booklet) for booklet in room)
        assert len(plan.repeat_of) == min(repeats, possible) and possible >= 2
        assert sorted(plan.repeat_of) == list(range(9, 9 + len(plan.repeat_of)))
        for booklet in plan.booklets:
            again = [slot for slot in booklet if slot >= 9]
            assert len(booklet) <= 3 and len(again) <= 1 and booklet[len(booklet) - len(again) :] == again
            assert all(repeatable[plan.repeat_of[slot]] and plan.repeat_of[slot] in booklet for slot in again)
