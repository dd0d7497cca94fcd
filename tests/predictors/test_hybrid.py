from __future__ import annotations

import numpy as np
import pytest

from predictors import artifacts, registry, training
from predictors.errors import CheckpointError, PredictorError
from predictors.evaluation import area_under_curve, negative_log_likelihood
from predictors.pairs import Pair, Stopped
from predictors.settings import HybridSettings
from tests.predictors.fresh_process import printed_by
from tests.predictors.tiny import learnable_labels, some_pairs

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def no_memory() -> None:
    from predictors.models.hybrid_states import forget_states

    forget_states()


@pytest.fixture
def params(tiny_bert) -> dict:
    return {"checkpoint": str(tiny_bert), "landmarks": 64}


def hybrid(params, seed=0):
    return registry.create("hybrid", params, seed)


def test_texts_of_which_one_is_nothing_are_as_unlike_as_can_be() -> None:
    from predictors.models.hybrid_states import cosines

    alone = {"zero": np.zeros(3), "x": np.array([2.0, 0, 0]), "both": np.array([1.0, 1, 0])}
    pairs = [Pair(evidence, "both", "", "", 1) for evidence in ("zero", "x", "both")]
    assert cosines(pairs, alone) == pytest.approx([0, 1 / np.sqrt(2), 1])


def both_outcomes(count: int, *, seed: int = 0) -> list[Pair]:
    return [some_pair._replace(outcome=outcome) for some_pair in some_pairs(count, seed=seed) for outcome in (1, 0)]


def truth(pairs: list[Pair]) -> np.ndarray:
    """Logits that depend on the outcome and the target's length."""
    return np.array([0.8 - 1.6 * pair.outcome + 0.5 * (len(pair.target_text.split()) - 4) for pair in pairs])


def sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits))


def changed(estimator, pairs) -> np.ndarray:
    return estimator.predict_proba(pairs)[:, 1]


@pytest.mark.thorough
@pytest.mark.learning
def test_it_learns_what_depends_on_the_text_from_answers_alone(params):
    pairs = some_pairs(160, seed=1)
    fresh = some_pairs(120, seed=2)
    predictor = hybrid(params).fit(pairs, learnable_labels(pairs))
    assert area_under_curve(learnable_labels(fresh), changed(predictor, fresh)) > 0.75


@pytest.mark.thorough
def test_a_squeezed_teacher_is_unfolded_by_a_few_labels_of_people(params):
    taught, labelled, fresh = both_outcomes(100, seed=3), some_pairs(80, seed=4), some_pairs(300, seed=5)
    rng = np.random.default_rng(0)
    squeezed = sigmoid(0.15 * truth(taught) - 0.4)
    people = (rng.uniform(size=len(labelled)) < sigmoid(2 * truth(labelled))).astype(float)
    answers = (rng.uniform(size=len(fresh)) < sigmoid(2 * truth(fresh))).astype(float)
    alone = hybrid(params).fit(taught, squeezed)
    with_people = hybrid(params).fit(taught + labelled, np.append(squeezed, people))
    without_teacher = hybrid(params).fit(labelled, people)
    losses = [
        negative_log_likelihood(answers, changed(predictor, fresh))
        for predictor in (alone, with_people, without_teacher)
    ]
    assert losses[1] < losses[0] - 0.1
    assert losses[1] < losses[2]


@pytest.mark.thorough
def test_soft_labels_alone_are_learnt_as_they_are(params):
    taught, fresh = both_outcomes(120, seed=6), some_pairs(100, seed=7)
    predictor = hybrid(params).fit(taught, sigmoid(0.3 * truth(taught) - 0.4))
    assert np.abs(changed(predictor, fresh) - sigmoid(0.3 * truth(fresh) - 0.4)).mean() < 0.06


def test_shares_of_few_answers_are_answers_and_no_teacher(params):
    pairs = some_pairs(60, seed=8)
    shares = np.random.default_rng(1).binomial(9, sigmoid(truth(pairs))) / 9
    assert hybrid(params).fit(pairs, shares).ridge_ is None
    assert hybrid(params).fit(pairs, sigmoid(truth(pairs))).ridge_ is not None


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        lambda pair: pair._replace(outcome=1),
        lambda pair: pair._replace(evidence_task="a", target_task="a"),
        lambda pair: pair._replace(evidence_text="the", target_text="a"),
    ],
    ids=["one outcome", "one task", "one text"],
)
def test_it_learns_where_nothing_varies(params, change):
    pairs = [change(pair) for pair in some_pairs(20, seed=9)]
    labels = np.arange(20) % 2
    probabilities = changed(hybrid(params).fit(pairs, labels), pairs)
    assert ((probabilities > 0) & (probabilities < 1)).all()


def test_few_rows_give_cautious_predictions(params):
    pairs = some_pairs(6, seed=10)
    probabilities = changed(hybrid(params).fit(pairs, [0, 1, 0, 1, 1, 1]), some_pairs(50, seed=11))
    assert probabilities.min() > 0.1
    assert probabilities.max() < 0.95


@pytest.mark.thorough
def test_repeated_rows_count_by_their_weights_together(params):
    pairs, fresh = some_pairs(30, seed=12), some_pairs(20, seed=13)
    labels = np.append(np.arange(30) % 2, np.arange(10) % 2)
    alike = hybrid(params).fit(pairs + pairs[:10], labels)
    unlike = hybrid(params).fit(pairs + pairs[:10], labels, [1.5] * 10 + [1.0] * 20 + [0.5] * 10)
    heavy = hybrid(params).fit(pairs + pairs[:10], labels, [1.5] * 10 + [1.0] * 20 + [1.5] * 10)
    assert changed(unlike, fresh) == pytest.approx(changed(alike, fresh), abs=1e-9)
    assert not np.allclose(changed(heavy, fresh), changed(alike, fresh), atol=1e-3)


@pytest.mark.thorough
def test_a_row_without_weight_has_no_effect(params):
    pairs, fresh = some_pairs(30, seed=14), some_pairs(10, seed=15)
    labels = np.arange(30) % 2
    predictor = hybrid(params).fit(pairs, labels, [0.0] * 4 + [1.0] * 26, responses=[3] * 4 + [1] * 26)
    assert (changed(predictor, fresh) == changed(hybrid(params).fit(pairs[4:], labels[4:]), fresh)).all()


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_fit_and_kept_states_change_nothing(params):
    from predictors.models.hybrid_states import forget_states

    pairs, fresh = some_pairs(40, seed=16), some_pairs(10, seed=17)
    labels = learnable_labels(pairs)
    params = {**params, "landmarks": 16}
    first = changed(hybrid(params, 1).fit(pairs, labels), fresh)
    forget_states()
    hybrid(params, 1).fit(pairs[::-1], labels[::-1])
    assert (changed(hybrid(params, 1).fit(pairs, labels), fresh) == first).all()
    assert (changed(hybrid(params, 2).fit(pairs, labels), fresh) != first).any()


def test_a_folder_keeps_states_and_a_damaged_file_is_computed_anew(params, tmp_path, monkeypatch):
    from predictors.models.hybrid_states import forget_states

    monkeypatch.setenv("HUNCH_EMBEDDINGS_CACHE", str(tmp_path))
    pairs = some_pairs(24, seed=18)
    labels = np.arange(24) % 2

    def fitted() -> tuple[np.ndarray, list[str]]:
        forget_states()
        reports: list[str] = []
        predictor = hybrid(params).fit(pairs, labels, None, lambda _done, _total, text: reports.append(text))
        return changed(predictor, pairs), [text for text in reports if text.startswith("read")]

    first, read = fitted()
    assert read
    again, read = fitted()
    assert not read
    (file,) = (tmp_path / "states").iterdir()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    repaired, read = fitted()
    assert read
    assert (first == again).all() and (first == repaired).all()


@pytest.mark.thorough
def test_fewer_landmarks_than_rows_come_close_to_all(params):
    pairs, fresh = some_pairs(200, seed=19), some_pairs(60, seed=20)
    labels = learnable_labels(pairs)
    some, all_of_them = ({**params, "landmarks": most} for most in (160, 1024))
    gap = changed(hybrid(some).fit(pairs, labels), fresh) - changed(hybrid(all_of_them).fit(pairs, labels), fresh)
    assert np.abs(gap).mean() < 0.05


def test_majorities_teach_what_one_person_does(params):
    pairs, fresh = some_pairs(300, seed=21), some_pairs(150, seed=22)
    rng = np.random.default_rng(2)

    def person(rows: list[Pair]) -> np.ndarray:
        return np.array([0.3 if pair.outcome else 0.7 for pair in rows])

    labels = (rng.binomial(9, person(pairs)) > 4.5).astype(float)
    params = {**params, "concentration": 100.0}
    with_number = hybrid(params).fit(pairs, labels, responses=np.full(300, 9))
    without = hybrid(params).fit(pairs, labels)
    assert np.abs(changed(with_number, fresh) - person(fresh)).mean() < 0.06
    assert np.abs(changed(without, fresh) - person(fresh)).mean() > 0.12
    assert with_number.predict_majority(fresh, 9) == pytest.approx(changed(without, fresh), abs=0.08)
    assert with_number.predict_majority(fresh, 1) == pytest.approx(changed(with_number, fresh))


def test_shares_tell_how_far_people_scatter(params):
    pairs = some_pairs(200, seed=23)
    rng = np.random.default_rng(3)
    mean = sigmoid(truth(pairs))
    together = rng.binomial(20, mean) / 20
    apart = rng.binomial(20, rng.beta(mean, 1 - mean)) / 20
    counts = np.full(200, 20)
    close = hybrid(params).fit(pairs, together, responses=counts).concentration_
    far = hybrid(params).fit(pairs, apart, responses=counts).concentration_
    assert far < 3 < 5 < close


@pytest.mark.parametrize("soft", [False, True])
def test_it_reloads_bit_for_bit_in_a_fresh_process_and_refuses_a_changed_byte(params, tmp_path, soft):
    pairs = both_outcomes(30, seed=24)
    labels = np.where(np.arange(60) < 40, sigmoid(truth(pairs)), learnable_labels(pairs))
    labels = labels if soft else learnable_labels(pairs)
    folder = tmp_path / "saved"
    trained = training.train_member("hybrid", params, 5, 0, pairs, labels, None, folder)
    assert trained["digest"] == artifacts.folder_digest(folder)
    fresh = some_pairs(20, seed=25)
    code = f"""
import torch; torch.set_num_threads(1)
from predictors import training
from tests.predictors.tiny import some_pairs
print(training.score([{str(folder)!r}], some_pairs(20, seed=25)).tobytes().hex())
"""
    output = printed_by(code)
    expected = changed(hybrid(params, 5).fit(pairs, labels), fresh).astype(np.float32)
    assert output.strip() == expected.tobytes().hex()
    file = folder / "hybrid.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"hybrid\.safetensors was changed"):
        artifacts.load(folder)


def test_it_stops_when_progress_says_so(params):
    with pytest.raises(Stopped):
        hybrid(params).fit(some_pairs(40, seed=26), np.arange(40) % 2, None, lambda *_: False)


def test_it_refuses_answers_that_are_no_counts(params):
    with pytest.raises(PredictorError, match="responses: must be whole numbers"):
        hybrid(params).fit(some_pairs(4), [0, 1, 0, 1], responses=[1, 2, 0, 1])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("landmarks", 0),
        ("concentration", 0),
        ("max_length", 3),
        ("token_budget", 0),
        ("bfloat16", "no"),
        ("device", ""),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(PredictorError, match=f"^{field}: "):
        HybridSettings(**{field: value})


def test_the_ridge_leaves_groups_out_as_fitting_without_them_would():
    from predictors.models.hybrid_models import _held_out_error

    rng = np.random.default_rng(4)
    design, target, noise = rng.normal(size=(12, 4)), rng.normal(size=12), 0.7
    members = [np.arange(0, 5), np.arange(5, 6), np.arange(6, 12)]

    def solved(rows: np.ndarray) -> np.ndarray:
        return np.linalg.solve(design[rows].T @ design[rows] + noise * np.eye(4), design[rows].T @ target[rows])

    expected = sum(
        np.sum((target[rows] - design[rows] @ solved(np.setdiff1d(np.arange(12), rows))) ** 2) for rows in members
    )
    values, vectors = np.linalg.eigh(design.T @ design)
    turned = design @ vectors
    coefficients = turned.T @ target / (values + noise)
    assert _held_out_error(turned, coefficients, values + noise, target, members) == pytest.approx(expected)


def test_predictions_are_averaged_over_what_the_coefficients_may_be():
    from predictors.models.hybrid_models import Landmarks, Likeness, Logistic, Named, Posterior, View

    likeness = Likeness(np.zeros((1, 4), dtype=np.float32), np.ones((1, 4), dtype=np.float32))
    marks = Landmarks(likeness, View(np.zeros((1, 1, 2, 1), dtype=np.float32), np.ones(1), np.zeros(1), np.zeros(1)))
    posterior = Posterior(share=1.0, variance=0.0, coefficients=np.array([2.0]), root=np.array([[3.0]]))
    named = Named(np.ones((1, 1)), np.ones(1), np.zeros(1))
    probabilities = Logistic(marks, np.ones((1, 1)), [posterior], 1).predict_smooth(np.zeros((1, 1)), named)
    drawn = sigmoid(np.random.default_rng(5).normal(2.0, 3.0, 200_000)).mean()
    assert probabilities[0] == pytest.approx(drawn, abs=0.02)
    assert abs(probabilities[0] - sigmoid(np.array([2.0]))[0]) > 0.1


def test_a_share_of_several_answers_is_of_people_and_no_teachers():
    from predictors.features import TrainingData
    from predictors.models.hybrid import _by_source

    pairs = some_pairs(24, seed=3)
    labels = np.append(np.random.default_rng(0).uniform(0.1, 0.9, 22), [0.5, 1.0])
    weights = np.arange(1.0, 25.0)
    responses = np.append(np.ones(22, dtype=np.int64), [2, 1])
    taught, answered = _by_source(TrainingData(pairs, labels, weights), responses, pairs)
    assert taught is not None and answered is not None
    assert taught.labels == pytest.approx(labels[:22]) and taught.weights.tolist() == weights[:22].tolist()
    assert answered.labels.tolist() == [0.5, 1.0] and answered.responses.tolist() == [2, 1]
    # Repeated single answers are the weighted mean of their pair.
    again = TrainingData([pairs[0], pairs[1], pairs[0]], np.array([1.0, 1.0, 0.0]), np.array([3.0, 2.0, 1.0]))
    nobody, mean = _by_source(again, np.ones(3, dtype=np.int64), pairs[:2])
    assert nobody is None and mean is not None
    assert (mean.labels.tolist(), mean.weights.tolist()) == ([0.75, 1.0], [4.0, 2.0])


def test_of_many_rows_each_stays_with_its_own_value_and_weight(monkeypatch):
    from predictors.models import hybrid_models
    from predictors.models.hybrid_models import Landmarks, Likeness, View

    rng = np.random.default_rng(8)
    columns = [np.arange(12.0) + 100 * number for number in range(4)]
    view = View(rng.normal(size=(12, 1, 2, 1)).astype(np.float32), *columns[:3], beside=columns[3][:, None])
    some = view.take(np.array([7, 2]))
    assert some.beside is not None and some.beside.tolist() == [[307], [302]]
    assert (some.sides.tolist(), some.similarity.tolist(), some.same_task.tolist()) == ([7, 2], [107, 102], [207, 202])
    seen = []
    monkeypatch.setattr(hybrid_models, "_ROWS_FOR_SHARES", 5)
    monkeypatch.setattr(hybrid_models, "likeliest_shares", lambda _parts, *of_rows: seen.append(of_rows))
    likeness = Likeness(np.zeros((1, 4), dtype=np.float32), np.ones((1, 4), dtype=np.float32))
    Landmarks(likeness, view).with_shares_of(view, columns[1], columns[3], np.random.default_rng(2))
    ((sides, values, weights),) = seen
    assert len(sides) == 5 and (values == sides + 100).all() and (weights == sides + 300).all()


@pytest.mark.thorough
def test_the_kernel_counts_the_parts_that_made_the_values():
    from predictors.models.hybrid_models import Landmarks, Likeness, View, likeliest_shares

    rng = np.random.default_rng(6)
    count = 160
    states = rng.normal(size=(count, 2, 2, 3)).astype(np.float32)
    sides = np.where(np.arange(count) % 2, 1.0, -1.0)
    view = View(states, sides, rng.normal(size=count), (rng.uniform(size=count) < 0.3).astype(float))
    parts = Landmarks(Likeness.learn(view, rng), view).parts(view)
    noise = 0.1 * rng.normal(size=count)
    by_similarity = likeliest_shares(parts, sides, np.sin(2 * view.similarity) + sides + noise, np.ones(count))
    by_outcome = likeliest_shares(parts, sides, sides * np.sin(2 * view.similarity) + noise, np.ones(count))
    by_task = likeliest_shares(parts, sides, 2 * view.same_task + noise, np.ones(count))
    assert by_similarity.shape == (4, 2)
    assert by_similarity.sum() == pytest.approx(1)
    assert by_similarity[2, 0] > 0.8
    assert by_outcome[2, 1] > 0.8
    assert by_task[3, 0] > 0.8


@pytest.mark.thorough
def test_a_fold_is_predicted_without_its_labels_and_the_kernel_chosen_without_any_of_people(params):
    """What the hybrid chooses it chooses inside `fit`, so that every cross-validation of it is a nested one."""
    from predictors.splits import cross_predict, split
    from tests.predictors.test_comparison import table_of

    people, taught = some_pairs(40, seed=20), both_outcomes(30, seed=21)
    answers, soft = learnable_labels(people), sigmoid(0.5 * truth(taught))
    folds = split(people + taught, None, folds=4, rng=np.random.default_rng(1))[:1]
    tested = folds[0].test
    predictions, shares = [], []
    for turned in (tested, np.setdiff1d(np.arange(40), tested)):
        for labels in (answers, np.where(np.isin(np.arange(40), turned), 1 - answers, answers)):
            table = table_of(people + taught, np.append(labels, soft))
            fitted = []

            def create(fitted=fitted):
                fitted.append(hybrid(params))
                return fitted[-1]

            predictions.append(cross_predict(create, table, folds)[tested])
            shares.append(fitted[0].ridge_.landmarks.shares)
    assert (predictions[0] == predictions[1]).all()
    assert (predictions[2] != predictions[3]).any()
    assert all((share == shares[0]).all() for share in shares)
    assert shares[0].std() > 0


def test_inverse_and_determinant_are_those_of_the_matrix():
    from predictors.models.hybrid_models import _inverse_and_log_determinant

    rng = np.random.default_rng(8)
    square = rng.normal(size=(20, 20))
    matrix = square @ square.T + np.eye(20)
    inverse, logarithm = _inverse_and_log_determinant(matrix)
    assert inverse @ matrix == pytest.approx(np.eye(20), abs=1e-10)
    assert logarithm == pytest.approx(np.linalg.slogdet(matrix)[1])
    barely = matrix - 1.5 * np.linalg.eigvalsh(matrix)[0] * np.eye(20)
    inverse, logarithm = _inverse_and_log_determinant(barely)
    assert inverse @ barely == pytest.approx(np.eye(20), abs=1e-8)
    assert logarithm == pytest.approx(np.linalg.slogdet(barely)[1])


def test_similar_texts_are_known_as_similar(params):
    """Where labels follow the similarity of the texts alone, and no task, word or outcome says it."""
    rng = np.random.default_rng(7)
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"])

    def rows(count: int) -> tuple[list[Pair], np.ndarray]:
        pairs, alike = [], rng.uniform(size=count) < 0.5
        for same in alike:
            evidence = " ".join(rng.choice(words, 4))
            pairs.append(Pair(evidence, evidence if same else " ".join(rng.choice(words, 4)), "a", "b", 1))
        return pairs, alike.astype(float)

    pairs, labels = rows(80)
    fresh, expected = rows(80)
    assert area_under_curve(expected, changed(hybrid(params).fit(pairs, labels), fresh)) > 0.95
