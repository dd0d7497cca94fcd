from __future__ import annotations

import json

import numpy as np
import pytest

from bandit import FactoredScores, Pairs, universe_size
from predictors import artifacts, pair_scorer, pair_scorer_fit, registry, training
from predictors.errors import CheckpointError, PredictorError, Stopped
from predictors.pair_scorer import PairScorer, Questions, agreement, distil, fidelity
from predictors.pair_scorer_fit import IndexedPairs, QuestionEmbeddings, learn
from tests.predictors.tiny import learnable_labels, some_pairs

N = 240
RNG_SEED = 4


def _bank(count: int = N) -> Questions:
    texts = [pair.evidence_text + f" {number}" for number, pair in enumerate(some_pairs(count, seed=3))]
    return Questions(texts, [f"task_{number % 6}" for number in range(count)])


def _embeddings(count: int = N, width: int = 12, seed: int = 0) -> QuestionEmbeddings:
    rng = np.random.default_rng(seed)
    wrong = rng.normal(size=(count, width))
    right = wrong + 0.3 * rng.normal(size=(count, width))
    target = rng.normal(size=(count, width))
    return QuestionEmbeddings(np.stack([wrong, right]).astype(np.float32), target.astype(np.float32))


def _pairs(count: int, *, seed: int, n: int = N) -> IndexedPairs:
    rng = np.random.default_rng(seed)
    evidence = rng.integers(n, size=count)
    target = (evidence + rng.integers(1, n, size=count)) % n
    return IndexedPairs(evidence, target, rng.integers(2, size=count))


def _truth(embeddings: QuestionEmbeddings, pairs: IndexedPairs, seed: int = 1) -> np.ndarray:
    """A logit of rank 3 with main effects, an effect of the outcome and one of the same task."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(2, embeddings.target.shape[1], 3))
    evidence, target = embeddings.evidence[pairs.outcome, pairs.evidence], embeddings.target[pairs.target]
    same = pairs.evidence % 6 == pairs.target % 6
    return (
        0.05 * ((evidence @ left) * (target @ right)).sum(axis=1)
        + 0.2 * evidence[:, 0]
        - 0.1 * target[:, 1]
        - 0.4 * pairs.outcome
        + 0.5 * same * (1 + pairs.outcome)
    )


def _learned(*, pairs: IndexedPairs, logits: np.ndarray, rank: int = 24, **others) -> PairScorer:
    learned = learn(
        embeddings=others.get("embeddings", _embeddings()),
        tasks=_bank().tasks,
        pairs=pairs,
        logits=logits,
        rank=rank,
        rng=np.random.default_rng(RNG_SEED),
    )
    nothing = np.empty(0, dtype=np.int64)
    return PairScorer(**learned._asdict(), scored=nothing, unseen=nothing)


def _agreement(first, second, samples: int = 5) -> dict:
    return agreement(np.asarray(first), np.asarray(second), rng=np.random.default_rng(0), samples=samples)


def test_it_ranks_unseen_pairs_as_a_bilinear_truth_does():
    known, fresh = _pairs(4000, seed=1), _pairs(3000, seed=2)
    scorer = _learned(pairs=known, logits=_truth(_embeddings(), known))
    truth = _truth(_embeddings(), fresh)
    agreement = _agreement(truth, scorer.of(fresh))
    assert agreement["spearman"] > 0.99 and agreement["top_decile_recall"] > 0.99
    assert scorer.held_out_r2 > 0.97
    # A step of the score is worth `unit` logits.
    assert np.abs(scorer.unit * scorer.of(fresh) - truth).mean() < 0.1 * truth.std()


def test_the_factors_are_what_the_bandit_streams():
    known = _pairs(2000, seed=1)
    scorer = _learned(pairs=known, logits=_truth(_embeddings(), known))
    factored = FactoredScores(scorer.evidence, scorer.target, scorer.evidence_bias, scorer.target_bias)
    assert factored.n_questions == scorer.n_questions == N and factored.rank == scorer.rank
    pairs = Pairs(evidence=known.evidence, target=known.target, outcome=known.outcome)
    assert np.array_equal(factored.of(pairs), scorer.of(known))


@pytest.mark.slow
def test_rounding_costs_next_to_nothing_of_the_ranking():
    known, fresh = _pairs(4000, seed=1), _pairs(3000, seed=2)
    logits = _truth(_embeddings(), known)
    full, short = (_learned(pairs=known, logits=logits, rank=rank) for rank in (24, 3))
    truth = _truth(_embeddings(), fresh)
    assert _agreement(truth, short.of(fresh))["spearman"] > _agreement(truth, full.of(fresh))["spearman"] - 0.01


def test_a_predictor_of_outcome_and_same_task_is_matched_exactly():
    known, fresh = _pairs(2000, seed=1), _pairs(2000, seed=2)

    def logit(pairs):
        return 0.7 * (pairs.evidence % 6 == pairs.target % 6) * (1 + pairs.outcome) - 0.3 * pairs.outcome

    scorer = _learned(pairs=known, logits=logit(known))
    assert scorer.penalty is None and scorer.rank == 6
    assert len(np.unique(scorer.of(fresh))) == 4
    assert _agreement(logit(fresh), scorer.of(fresh))["spearman"] == pytest.approx(1)


def test_a_predictor_of_the_outcome_alone_has_two_scores():
    known = _pairs(500, seed=1)
    scorer = _learned(pairs=known, logits=0.3 - 0.2 * known.outcome)
    assert scorer.rank == 1 and len(np.unique(scorer.of(known))) == 2
    FactoredScores(scorer.evidence, scorer.target, scorer.evidence_bias, scorer.target_bias)


def test_noise_that_no_feature_explains_raises_the_penalty():
    known = _pairs(2000, seed=1)
    logits = _truth(_embeddings(), known)
    noise = np.random.default_rng(0).normal(size=len(logits))
    clean, noisy = _learned(pairs=known, logits=logits), _learned(pairs=known, logits=logits + 3 * noise)
    assert noisy.penalty > clean.penalty


def test_large_logits_still_stay_where_float32_is_exact():
    known = _pairs(2000, seed=1)
    scorer = _learned(pairs=known, logits=1e6 + _truth(_embeddings(), known), rank=200)
    largest = max(np.abs(bias).max() for bias in (scorer.evidence_bias, scorer.target_bias))
    assert largest <= pair_scorer_fit.LARGEST_BIAS
    columns = pair_scorer_fit.LARGEST_RANK + pair_scorer_fit.MAX_EXACT_TASKS
    assert columns * pair_scorer_fit.LARGEST_FACTOR**2 + 2 * pair_scorer_fit.LARGEST_BIAS < 2**24
    FactoredScores(scorer.evidence, scorer.target, scorer.evidence_bias, scorer.target_bias)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": 0}, "rank: 0 is not between 1 and 512"),
        ({"embeddings": _embeddings(N - 1)}, "embeddings: are not those of 240 questions"),
        ({"logits": np.full(200, np.nan)}, "logits: some are not finite"),
        ({"logits": np.zeros(3)}, "pairs: 200 with 3 logits"),
    ],
)
def test_learning_refuses_what_it_cannot_use(change, message):
    known = _pairs(200, seed=1)
    with pytest.raises(PredictorError, match=message):
        _learned(**{"pairs": known, "logits": np.zeros(200), **change})


# Agreement


def test_agreement_is_the_rank_correlation_of_scipy_with_ties():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    first, second = rng.normal(size=500).round(1), rng.integers(40, size=500)
    agreement = _agreement(first, second, samples=200)
    assert agreement["spearman"] == pytest.approx(spearmanr(first, second)[0])
    low, high = agreement["spearman_interval"]
    assert low < agreement["spearman"] < high and 0.1 < high - low < 0.3


def test_recall_counts_the_best_tenth_inside_the_best_two_tenths():
    predicted = np.arange(100)
    scores = np.arange(100)
    scores[[95, 0]] = scores[[0, 95]]
    assert _agreement(predicted, scores)["top_decile_recall"] == 0.9
    scores[[85, 99]] = scores[[99, 85]]
    assert _agreement(predicted, scores)["top_decile_recall"] == 0.9
    assert _agreement(predicted, -predicted)["top_decile_recall"] == 0


def test_a_scorer_that_tells_nothing_apart_has_no_correlation():
    agreement = _agreement(np.arange(50), np.zeros(50, dtype=int))
    assert agreement["spearman"] is None and agreement["spearman_interval"] is None


# From a saved predictor


@pytest.fixture(scope="module")
def same_task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("same-task") / "model"
    pairs = some_pairs(300, seed=5)
    labels = [0.8 * (pair.evidence_task == pair.target_task) + 0.1 + 0.05 * pair.outcome for pair in pairs]
    artifacts.save(registry.create("same_task").fit(pairs, labels), folder)
    return [folder]


def _distil(folders, **others) -> PairScorer:
    settings = {"n_pairs": 1500, "rank": 8, "unseen_share": 0.1, "embeddings": _embeddings(), **others}
    settings.setdefault("questions", _bank())
    return distil(folders=folders, rng=np.random.default_rng(RNG_SEED), **settings)


def test_a_saved_predictor_is_distilled_and_measured_on_pairs_it_was_not_learnt_from(same_task, monkeypatch):
    scorer = _distil(same_task)
    assert len(scorer.scored) == len(np.unique(scorer.scored)) == 1500
    assert len(scorer.unseen) == 24
    used = pair_scorer._from_ranks(scorer.scored, N)
    assert not np.isin(used.evidence, scorer.unseen).any() and not np.isin(used.target, scorer.unseen).any()
    assert scorer.scored.min() >= 0 and scorer.scored.max() < universe_size(N)

    measured = []
    score = training.score

    def remembered(folders, pairs, progress=None):
        measured.append(pairs.pairs)
        return score(folders, pairs, progress)

    monkeypatch.setattr(training, "score", remembered)
    comparison = fidelity(
        scorer,
        folders=same_task,
        questions=_bank(),
        rng=np.random.default_rng(9),
        n_pairs=2000,
        n_unseen=300,
        samples=20,
    )
    uniform, unseen = measured
    assert not np.isin(pair_scorer._ranks(uniform, N), scorer.scored).any()
    assert len(np.unique(pair_scorer._ranks(uniform, N))) == comparison["uniform"]["n"] == 2000
    assert np.isin(uniform.evidence, scorer.unseen).any()
    assert np.isin(unseen.evidence, scorer.unseen).all() and np.isin(unseen.target, scorer.unseen).all()
    assert comparison["unseen_questions"]["n"] == 300
    assert comparison["uniform"]["spearman"] == pytest.approx(1)
    json.dumps(comparison)


def test_the_same_seed_gives_the_same_file(same_task, tmp_path):
    first, second = (_distil(same_task).save(tmp_path / name) for name in ("first", "second"))
    assert first == second
    assert first != _distil(same_task, n_pairs=1499).save(tmp_path / "third")


def test_a_scorer_reads_back_as_it_was_written(same_task, tmp_path):
    scorer = _distil(same_task)
    scorer.save(tmp_path / "scorer")
    again = PairScorer.load(tmp_path / "scorer")
    for name in ("evidence", "target", "evidence_bias", "target_bias", "scored", "unseen"):
        stored, read = getattr(scorer, name), getattr(again, name)
        assert np.array_equal(stored, read) and stored.dtype == read.dtype
    assert (again.unit, again.penalty, again.held_out_r2) == (scorer.unit, scorer.penalty, scorer.held_out_r2)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "scorer").write_bytes(b"not a scorer at all")
    for name in ("scorer", "missing"):
        with pytest.raises(CheckpointError, match="is no pair scorer that can be read"):
            PairScorer.load(tmp_path / name)


def test_a_small_bank_keeps_a_fifth_of_its_pairs_to_measure_on(same_task):
    bank = _bank(10)
    scorer = _distil(same_task, embeddings=_embeddings(10), n_pairs=12_000, unseen_share=0.0, questions=bank)
    assert len(scorer.scored) == 144
    measured = fidelity(scorer, folders=same_task, questions=bank, rng=np.random.default_rng(1), samples=5)
    assert measured["uniform"]["n"] == 36 and measured["unseen_questions"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"questions": Questions(["a", "b", "c", "d"], ["x"] * 4)}, "a bank of 4 has too few pairs"),
        ({"questions": Questions(["a"] * 9, ["x"] * 8)}, "questions: 9 texts and 8 tasks"),
        ({"unseen_share": 0.6}, "unseen_share: 0.6"),
        ({"n_pairs": 19}, "n_pairs: 19 is not 20 or more"),
        ({"rank": 513}, "rank: 513 is not between 1 and 512"),
    ],
)
def test_distilling_refuses_what_it_cannot_use(same_task, change, message):
    with pytest.raises(PredictorError, match=message):
        _distil(same_task, **change)


def test_fidelity_refuses_another_bank(same_task):
    with pytest.raises(PredictorError, match="questions: there are 10; the scorer was learnt on 240"):
        fidelity(_distil(same_task), folders=same_task, questions=_bank(10), rng=np.random.default_rng(1))


# With networks


@pytest.fixture(scope="module")
def tiny_network(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny-network") / "model"
    pairs = some_pairs(160, seed=6)
    params = {"checkpoint": str(tiny_bert), "members": 2, "min_steps": 60, "learning_rate": 3e-3, "head": "segments"}
    artifacts.save(registry.create("bert", params).fit(pairs, learnable_labels(pairs)), folder)
    return [folder]


@pytest.mark.thorough
@pytest.mark.torch
def test_questions_are_embedded_as_the_networks_read_them_in_a_pair(tiny_network):
    bank = _bank(30)
    embeddings = pair_scorer.question_embeddings(folders=tiny_network, questions=bank)
    assert embeddings.evidence.shape == (2, 30, 32) and embeddings.target.shape == (30, 32)
    assert embeddings.evidence.dtype == embeddings.target.dtype == np.float32
    # The mark changes what a question's tokens become, and so does standing second.
    assert np.abs(embeddings.evidence[0] - embeddings.evidence[1]).max() > 1e-3
    assert np.abs(embeddings.evidence[0] - embeddings.target).max() > 1e-3
    alone = pair_scorer.question_embeddings(folders=tiny_network, questions=Questions(bank.texts[7:8], ["x"]))
    assert alone.evidence[:, 0] == pytest.approx(embeddings.evidence[:, 7], abs=2e-2)


@pytest.mark.thorough
@pytest.mark.torch
def test_a_fine_tuned_ensemble_is_distilled(tiny_network):
    reports = []
    bank = _bank()
    scorer = _distil(tiny_network, embeddings=None, progress=lambda done, total, text: reports.append(text))
    measured = fidelity(
        scorer,
        folders=tiny_network,
        questions=bank,
        rng=np.random.default_rng(1),
        n_pairs=1000,
        n_unseen=200,
        samples=20,
    )
    assert measured["uniform"]["spearman"] > 0.85
    assert any("embedded" in text for text in reports) and any("scored" in text for text in reports)


@pytest.mark.torch
def test_distilling_can_be_stopped(tiny_network):
    with pytest.raises(Stopped):
        _distil(tiny_network, embeddings=None, progress=lambda done, total, text: False)


@pytest.mark.torch
def test_a_predictor_without_networks_is_given_fixed_embeddings(same_task, monkeypatch):
    asked = []

    def embed(texts, progress):
        asked.append(list(texts))
        return np.ones((len(texts), 3), dtype=np.float32)

    monkeypatch.setattr("predictors.pair_scorer_embeddings.embed", embed)
    bank = _bank(5)
    embeddings = pair_scorer.question_embeddings(folders=same_task, questions=bank)
    assert asked == [list(bank.texts)] and embeddings.evidence.shape == (2, 5, 3)


@pytest.mark.torch
def test_networks_that_are_frozen_alike_are_read_once(tiny_bert, tmp_path):
    pairs = some_pairs(60, seed=6)
    params = {"checkpoint": str(tiny_bert), "members": 2, "head": "segments", "epochs": 1}
    bank = _bank(20)
    for frozen, width in ((1, 32), (2, 16)):
        folder = tmp_path / str(frozen)
        artifacts.save(registry.create("bert", {**params, "frozen_layers": frozen}).fit(pairs, [0.0, 1.0] * 30), folder)
        embeddings = pair_scorer.question_embeddings(folders=[folder], questions=bank)
        assert embeddings.evidence.shape == (2, 20, width)


class _Reader:
    """Reads pairs as the hybrid's network does: (n, 2 depths, 2 texts, 3 numbers), here the lengths of the texts."""

    def read(self, pairs, token_budget, progress):
        lengths = [[len(pair.evidence_text) * (1 + pair.outcome), len(pair.target_text)] for pair in pairs]
        return np.broadcast_to(np.array(lengths, dtype=np.float32)[:, None, :, None], (len(pairs), 2, 2, 3))


@pytest.mark.torch
def test_a_predictor_that_reads_pairs_by_a_frozen_network_reads_each_question_alone(monkeypatch):
    class Hybrid:
        reader_ = _Reader()

    monkeypatch.setattr(artifacts, "load", lambda folder: Hybrid())
    bank = _bank(9)
    lengths = np.array([len(text) for text in bank.texts])
    embeddings = pair_scorer.question_embeddings(folders=["one"], questions=bank)
    assert embeddings.evidence.shape == (2, 9, 6) and embeddings.target.shape == (9, 6)
    for rows, expected in (
        (embeddings.evidence[0], lengths),
        (embeddings.evidence[1], 2 * lengths),
        (embeddings.target, lengths),
    ):
        assert np.array_equal(rows, np.repeat(expected[:, None], 6, axis=1))
