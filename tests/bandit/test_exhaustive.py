import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit import (
    DesignError,
    EpsilonGreedy,
    Proportional,
    Softmax,
    TestSet,
    Uncertainty,
    Uniform,
    draw_exhaustively,
    draw_rescored,
    find_cut,
    rank_of,
    shortlist,
)
from bandit import exhaustive as module
from tests.bandit.laws import p_value_of_counts, p_value_of_largest_z
from tests.bandit.test_factored import every_score, some_factors


def assert_cut_is_right(cut, values, count):
    order = np.sort(values)[::-1]
    assert cut.score == order[count - 1]
    assert cut.count == count
    assert cut.above == np.count_nonzero(values > cut.score)
    assert cut.tied == np.count_nonzero(values == cut.score)
    assert cut.total == order[:count].sum()
    assert (cut.highest, cut.lowest, cut.next_lower) == (order[0], order[-1], order[count])


@pytest.mark.slow
@settings(deadline=None)
@given(
    questions=st.integers(3, 9),
    largest=st.sampled_from([0, 1, 127]),
    bias=st.sampled_from([0, 1, 3_000_000]),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_a_cut_is_exact_whatever_the_ties(questions, largest, bias, seed, data):
    scores = some_factors(questions=questions, largest=largest, bias=bias, seed=seed)
    values = every_score(scores)
    exclude = sorted(data.draw(st.sets(st.integers(0, values.size - 1), max_size=4)))
    left = np.delete(values, exclude)
    count = data.draw(st.integers(1, left.size - 1))
    assert_cut_is_right(find_cut(scores, count=count, exclude=exclude), left, count)


@pytest.mark.slow
@pytest.mark.parametrize("window", [(-40, -39), (50, 60), (-3, 2), (-(2**24) + 1, 2**24 - 1)])
@pytest.mark.parametrize("bins", [2, 16, 2**20])
def test_a_sample_that_misleads_costs_time_and_never_the_cut(monkeypatch, window, bins):
    monkeypatch.setattr(module, "_window", lambda *_: window)
    monkeypatch.setattr(module, "_BINS", bins)
    scores = some_factors(questions=12, seed=4)
    values = every_score(scores)
    for count in (1, 26, 130, values.size - 1):
        assert_cut_is_right(find_cut(scores, count=count, threads=2), values, count)


def test_a_cut_outside_the_pairs_is_refused():
    for count in (0, 84):
        with pytest.raises(DesignError, match="must be above 0 and below the 84 pairs"):
            find_cut(some_factors(), count=count)


def strata_by_hand(values, sizes):
    """Lowest, mean and highest of the strata of sorted values, highest values first."""
    parts = np.split(np.sort(values)[::-1], np.cumsum(sizes)[:-1])
    return [(float(part.min()), pytest.approx(part.mean()), float(part.max())) for part in parts]


@pytest.mark.parametrize("exclude", [[], [2, 40, 41, 263]])
def test_epsilon_greedy_over_all_pairs_has_exact_strata(exclude):
    scores = some_factors(questions=12, seed=1)
    values = every_score(scores)
    drawn = draw_exhaustively(
        design=EpsilonGreedy(epsilon=0.3), n=20, scores=scores, rng=np.random.default_rng(1), exclude=exclude
    )
    left = np.delete(values, exclude)
    n_top = -(-left.size // 10)
    assert [(s.name, s.size, s.n) for s in drawn.strata] == [("top", n_top, 14), ("rest", left.size - n_top, 6)]
    assert [(s.lowest, s.mean, s.highest) for s in drawn.strata] == strata_by_hand(left, (n_top, left.size - n_top))
    ranks = rank_of(drawn.pairs, 12)
    assert len(set(ranks.tolist())) == 20
    assert not np.isin(ranks, exclude).any()
    assert drawn.score.tolist() == values[ranks].tolist()
    assert drawn.score[drawn.stratum == 0].min() >= drawn.score[drawn.stratum == 1].max()
    rate = np.array([14 / n_top, 6 / (left.size - n_top)])
    assert drawn.inclusion_probability.tolist() == rate[drawn.stratum].tolist()


def test_a_test_set_over_all_pairs_takes_both_ends():
    scores = some_factors(questions=12, seed=2)
    design = TestSet(pairs=9, responses_per_pair=4, top_fraction=0.1, bottom_fraction=0.05)
    drawn = draw_exhaustively(design=design, n=36, scores=scores, rng=np.random.default_rng(1), exclude=[7])
    values = np.delete(every_score(scores), [7])
    top, bottom, middle = drawn.strata
    assert [(s.name, s.size, s.n) for s in drawn.strata] == [("top", 27, 24), ("bottom", 14, 12), ("middle", 222, 0)]
    by_hand = strata_by_hand(values, (27, 222, 14))
    assert [(s.lowest, s.mean, s.highest) for s in (top, middle, bottom)] == by_hand
    ranks = rank_of(drawn.pairs, 12)
    assert len(set(ranks.tolist())) == 9
    for rank in set(ranks.tolist()):
        assert sorted(drawn.replicate[ranks == rank].tolist()) == [1, 2, 3, 4]
    assert set(drawn.inclusion_probability[drawn.stratum == 1]) == {3 / 14}


@pytest.fixture
def cuts_found_once(monkeypatch):
    """There is no chance in a cut, so thousands of draws from the same scores share it."""
    find, cuts = module.find_cut, {}

    def once(scores, *, count, exclude=None, **how):
        key = scores, count, tuple(exclude)
        if key not in cuts:
            cuts[key] = find(scores, count=count, exclude=exclude, **how)
        return cuts[key]

    monkeypatch.setattr(module, "find_cut", once)


@pytest.mark.thorough
@pytest.mark.usefixtures("cuts_found_once")
@pytest.mark.parametrize("rare", [0, 1])
def test_pairs_at_the_cut_are_in_either_stratum_by_chance(monkeypatch, rare):
    """Both ways of drawing tied pairs; a pair's frequency is the mean of its stored probabilities."""
    monkeypatch.setattr(module, "_RARE", rare)
    monkeypatch.setattr(module, "_CHUNK", 128)
    rng = np.random.default_rng(3)
    scores = some_factors(questions=4, largest=1, bias=1, seed=3)
    values = every_score(scores)
    design = EpsilonGreedy(epsilon=0.25, top_fraction=0.4)  # 10 of 24 pairs
    cut = find_cut(scores, count=10)
    assert cut.tied > 2 and 0 < cut.count - cut.above < cut.tied
    lucky = (cut.count - cut.above) / cut.tied
    expected = np.select(
        [values > cut.score, values == cut.score], [6 / 10, lucky * 6 / 10 + (1 - lucky) * 2 / 14], 2 / 14
    )
    counts, tops = np.zeros(24), np.zeros(24)
    for _ in range(1500):
        drawn = draw_exhaustively(design=design, n=8, scores=scores, rng=rng)
        ranks = rank_of(drawn.pairs, 4)
        assert len(set(ranks.tolist())) == 8
        counts[ranks] += 1
        tops[ranks[drawn.stratum == 0]] += 1
    assert p_value_of_largest_z(counts, draws=1500, probability=expected) > 0.001
    in_top = np.select([values > cut.score, values == cut.score], [6 / 10, lucky * 6 / 10], 0)
    assert p_value_of_largest_z(tops, draws=1500, probability=in_top) > 0.001


def test_the_draw_is_the_same_with_any_number_of_threads():
    scores = some_factors(questions=40, largest=127, seed=5)
    first, two, other = (
        draw_exhaustively(design=EpsilonGreedy(), n=50, scores=scores, rng=np.random.default_rng(seed), threads=threads)
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert rank_of(first.pairs, 40).tolist() == rank_of(two.pairs, 40).tolist() != rank_of(other.pairs, 40).tolist()
    assert first.strata == two.strata


def test_a_uniform_draw_from_all_pairs_needs_no_scores_and_no_phase():
    drawn = draw_exhaustively(
        design=Uniform(), n=10, scores=some_factors(), rng=np.random.default_rng(1), exclude=[0, 1, 2, 3]
    )
    assert set(drawn.inclusion_probability) == {10 / 80}
    assert drawn.score is None
    assert rank_of(drawn.pairs, 7).min() > 3


@pytest.mark.parametrize("design", [Proportional(), Softmax(), Uncertainty()])
def test_designs_that_need_a_number_for_every_pair_at_once_are_refused(design):
    with pytest.raises(DesignError, match="cannot be drawn from all pairs; use a pool"):
        draw_exhaustively(design=design, n=3, scores=some_factors(), rng=np.random.default_rng(1))


def test_draws_that_do_not_fit_all_pairs_are_refused_with_the_sizes():
    rng = np.random.default_rng(1)
    with pytest.raises(DesignError, match="top gets 27 of 30 slots but holds 9 of 84"):
        draw_exhaustively(design=EpsilonGreedy(), n=30, scores=some_factors(), rng=rng)
    with pytest.raises(DesignError, match="all pairs are cut in two"):
        draw_exhaustively(design=EpsilonGreedy(rest_strata=2), n=3, scores=some_factors(), rng=rng)
    with pytest.raises(DesignError, match="at least 1 slot"):
        draw_exhaustively(design=EpsilonGreedy(), n=0, scores=some_factors(), rng=rng)
    flat = some_factors(largest=0, bias=0)
    with pytest.raises(DesignError, match="84 of 84 pairs share the score 0"):
        draw_exhaustively(design=TestSet(pairs=1, responses_per_pair=2), n=2, scores=flat, rng=rng)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.usefixtures("cuts_found_once")
@pytest.mark.parametrize("rare", [0, 1])
def test_a_shortlist_holds_the_best_with_ties_at_random(monkeypatch, rare):
    monkeypatch.setattr(module, "_RARE", rare)
    monkeypatch.setattr(module, "_CHUNK", 128)
    rng = np.random.default_rng(6)
    scores = some_factors(questions=4, largest=1, bias=1, seed=3)
    values = every_score(scores)
    counts = np.zeros(24)
    for _ in range(1500):
        ranks = shortlist(scores, size=10, rng=rng)
        assert ranks.size == 10
        assert (np.diff(ranks) > 0).all()
        counts[ranks] += 1
    cut = np.sort(values)[::-1][9]
    assert (counts[values > cut] == 1500).all()
    assert counts[values < cut].sum() == 0
    assert p_value_of_counts(counts[values == cut], draws=1500, n=10 - np.count_nonzero(values > cut)) > 0.001


@pytest.mark.thorough
def test_a_rescored_shortlist_has_the_chosen_and_all_other_pairs_as_strata():
    ranks, rescored = np.array([3, 10, 20, 50]), [0.2, 0.9, 0.4, 0.4]
    rng = np.random.default_rng(7)
    counts = np.zeros(84)
    for _ in range(1500):
        drawn = draw_rescored(
            ranks=ranks, rescored=rescored, chosen=2, n=4, n_questions=7, rng=rng, epsilon=0.5, exclude=[0, 1]
        )
        drawn_ranks = rank_of(drawn.pairs, 7)
        assert len(set(drawn_ranks.tolist())) == 4
        assert drawn.strata[0].size == 2 and drawn.strata[1].size == 80
        counts[drawn_ranks] += 1
    assert (counts[[0, 1]] == 0).all() and counts[10] == 1500  # chosen by two slots for two pairs
    # One of the two tied pairs is chosen, the other is one of the 80 others.
    expected = np.full(84, 2 / 80)
    expected[[0, 1, 10]] = [0, 0, 1]
    expected[[20, 50]] = 0.5 + 0.5 * 2 / 80
    assert p_value_of_largest_z(counts, draws=1500, probability=expected) > 0.001
    assert drawn.inclusion_probability[drawn.stratum == 1].tolist() == [2 / 80] * 2
    assert (drawn.strata[0].lowest, drawn.strata[0].highest) == (0.4, 0.9)
    assert drawn.strata[1].mean is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rescored": [0.1]}, "1 scores for a shortlist of 3"),
        ({"chosen": 4}, r"chosen: must lie in 1\.\.3"),
        ({"exclude": [5]}, "holds excluded pairs"),
        ({"ranks": [5, 2, 9]}, "strictly increasing"),
        ({"n": 40}, "holds 2 of 84"),
    ],
)
def test_a_shortlist_that_does_not_fit_is_refused(change, message):
    arguments = {"ranks": [2, 5, 9], "rescored": [0.1, 0.2, 0.3], "chosen": 2, "n": 2, "n_questions": 7}
    with pytest.raises(DesignError, match=message):
        draw_rescored(**(arguments | change), rng=np.random.default_rng(1))


def test_epsilon_0_draws_the_chosen_alone():
    drawn = draw_rescored(
        ranks=[2, 5, 9], rescored=[0.1, 0.2, 0.3], chosen=2, n=2, n_questions=7, rng=np.random.default_rng(1), epsilon=0
    )
    assert sorted(rank_of(drawn.pairs, 7).tolist()) == [5, 9]


# Where outcomes really happened


def real_factors(questions=6, *, seed=0, largest=3):
    happened = np.random.default_rng(seed).integers(2, size=questions)
    return dataclasses.replace(some_factors(questions=questions, seed=seed, largest=largest), happened=happened)


@pytest.mark.slow
@settings(deadline=None)
@given(
    questions=st.integers(3, 9),
    largest=st.sampled_from([0, 1, 127]),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_a_cut_of_what_happened_is_exact_whatever_the_ties(questions, largest, seed, data):
    scores = real_factors(questions, seed=seed, largest=largest)
    values = every_score(scores)
    exclude = sorted(data.draw(st.sets(st.integers(0, values.size - 1), max_size=4)))
    possible = np.setdiff1d(np.flatnonzero(scores.holds(np.arange(values.size))), exclude)
    count = data.draw(st.integers(1, possible.size - 1))
    assert_cut_is_right(find_cut(scores, count=count, exclude=exclude), values[possible], count)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.usefixtures("cuts_found_once")
@pytest.mark.parametrize("design", [EpsilonGreedy(epsilon=0.4, top_fraction=0.2), Uniform()])
def test_pairs_that_happened_are_drawn_as_often_as_stored_and_others_never(monkeypatch, design):
    monkeypatch.setattr(module, "_CHUNK", 128)  # As it stands it is meant for millions of pairs.
    scores = real_factors(5, seed=3, largest=127)
    every, exclude, draws = np.arange(40), [0, 1, 38, 39], 2000
    could = scores.holds(every) & ~np.isin(every, exclude)
    assert np.unique(every_score(scores)[could]).size == 18  # No ties, so that each pair has one stratum.
    counts, chance = np.zeros(40, dtype=int), np.zeros(40)
    rng = np.random.default_rng(11)
    for _ in range(draws):
        drawn = draw_exhaustively(design=design, n=5, scores=scores, rng=rng, exclude=exclude)
        ranks = rank_of(drawn.pairs, 5)
        assert np.unique(ranks).size == 5
        assert [sum(stratum.size for stratum in drawn.strata), sum(stratum.n for stratum in drawn.strata)] == [18, 5]
        counts[ranks] += 1
        assert ((chance[ranks] == 0) | (chance[ranks] == drawn.inclusion_probability)).all()
        chance[ranks] = drawn.inclusion_probability
    assert ((counts > 0) == could).all()
    assert chance.sum() == pytest.approx(5)
    assert p_value_of_largest_z(counts[could], draws=draws, probability=chance[could]) > 0.001


def test_the_strata_of_what_happened_have_their_exact_sizes_and_scores():
    scores = real_factors(12, seed=1, largest=100)
    values = every_score(scores)[scores.holds(np.arange(264))]
    drawn = draw_exhaustively(design=EpsilonGreedy(epsilon=0.3), n=20, scores=scores, rng=np.random.default_rng(1))
    assert [stratum.size for stratum in drawn.strata] == [14, 118]
    strata = [(stratum.lowest, stratum.mean, stratum.highest) for stratum in drawn.strata]
    assert strata == strata_by_hand(values, [14, 118])
    assert scores.holds(rank_of(drawn.pairs, 12)).all()
    threaded = draw_exhaustively(
        design=EpsilonGreedy(epsilon=0.3), n=20, scores=scores, rng=np.random.default_rng(1), threads=3
    )
    assert rank_of(threaded.pairs, 12).tolist() == rank_of(drawn.pairs, 12).tolist()


def test_a_test_set_of_what_happened_takes_both_ends_of_it():
    scores = real_factors(12, seed=2, largest=100)
    values = np.sort(every_score(scores)[scores.holds(np.arange(264))])
    design = TestSet(pairs=6, responses_per_pair=2, top_fraction=0.1, bottom_fraction=0.1, top_share=0.5)
    drawn = draw_exhaustively(design=design, n=12, scores=scores, rng=np.random.default_rng(1))
    assert drawn.score is not None
    assert set(drawn.score.tolist()) <= set(values[:14].tolist()) | set(values[-14:].tolist())
    assert scores.holds(rank_of(drawn.pairs, 12)).all()


def test_a_shortlist_of_what_happened_is_rescored_against_all_else_that_happened():
    scores = real_factors(12, seed=4)
    listed = shortlist(scores, size=20, rng=np.random.default_rng(1))
    assert scores.holds(listed).all()
    arguments = {"chosen": 5, "n": 10, "n_questions": 12, "epsilon": 0.5, "outcome": scores.happened}
    for seed in range(20):
        drawn = draw_rescored(
            ranks=listed, rescored=np.arange(20.0), rng=np.random.default_rng(seed), exclude=[0, 1], **arguments
        )
        assert scores.holds(rank_of(drawn.pairs, 12)).all()
    assert [stratum.size for stratum in drawn.strata] == [5, 132 - 1 - 5]
    impossible = np.flatnonzero(~scores.holds(np.arange(264)))[:20]
    with pytest.raises(DesignError, match="whose outcome did not happen"):
        draw_rescored(ranks=impossible, rescored=np.arange(20.0), rng=np.random.default_rng(1), **arguments)
