from __future__ import annotations

import json

import numpy as np
import pytest

from predictors import artifacts, registry, training
from predictors.errors import CheckpointError, PredictorError, Stopped
from predictors.evaluation import area_under_curve, negative_log_likelihood
from predictors.networks.text import RowTokenizer
from predictors.pairs import Pair
from predictors.settings import BertSettings
from tests.predictors.tiny import learnable_labels, save_tiny_bert, some_pairs

pytestmark = pytest.mark.torch

LABELS = np.array([0.0, 1.0] * 8)


def _fitted(params, pairs=None, labels=LABELS, weights=None, seed=0, progress=None):
    pairs = some_pairs(len(labels)) if pairs is None else pairs
    return registry.create("bert", params, seed).fit(pairs, labels, weights, progress)


@pytest.mark.parametrize("lengths", [[9, 9, 9], [30, 28, 12, 5]])
def test_the_packed_encoder_computes_what_transformers_computes(tiny_bert, lengths):
    import torch
    from transformers import BertModel

    from predictors.networks.checkpoints import read_checkpoint
    from predictors.networks.encoder import build_encoder, to_batch
    from predictors.networks.text import PackedRows

    rng = np.random.default_rng(0)
    total = sum(lengths)
    rows = PackedRows(
        ids=rng.integers(5, 50, total),
        positions=np.concatenate([np.arange(n) for n in lengths]),
        types=rng.integers(0, 2, total),
        segments=np.zeros(total, dtype=np.int64),
        lengths=np.array(lengths),
        numbers=np.empty((len(lengths), 0), dtype=np.float32),
    )
    device = torch.device("cpu")
    encoder = build_encoder(read_checkpoint(str(tiny_bert)), torch.float32, device)
    encoded = encoder.encode(to_batch(rows, torch.float32, device), None)
    reference = BertModel.from_pretrained(tiny_bert).eval()
    start = 0
    for length in lengths:
        part = slice(start, start + length)
        with torch.no_grad():
            expected = reference(
                input_ids=torch.from_numpy(rows.ids[part])[None],
                token_type_ids=torch.from_numpy(rows.types[part])[None],
            ).last_hidden_state[0]
        assert torch.allclose(encoded[part], expected, atol=1e-5)
        start += length


def test_gradients_are_those_of_transformers(tiny_bert):
    import torch
    from transformers import BertModel

    from predictors.networks.checkpoints import read_checkpoint
    from predictors.networks.encoder import build_encoder, to_batch
    from predictors.networks.text import PackedRows

    lengths = [12, 7]
    ids = np.random.default_rng(1).integers(5, 50, 19)
    positions = np.concatenate([np.arange(12), np.arange(7)])
    zeros = np.zeros(19, dtype=np.int64)
    rows = PackedRows(ids, positions, zeros, zeros, np.array(lengths), np.zeros(2, dtype=np.int64))
    device = torch.device("cpu")
    encoder = build_encoder(read_checkpoint(str(tiny_bert)), torch.float32, device)
    encoder.begin_training(np.unique(ids))
    encoder.encode(to_batch(rows, torch.float32, device), None).square().sum().backward()
    reference = BertModel.from_pretrained(tiny_bert).eval()
    for start, length in ((0, 12), (12, 7)):
        part = torch.from_numpy(ids[start : start + length])[None]
        reference(input_ids=part).last_hidden_state.square().sum().backward()
    attention = reference.encoder.layer[1].attention.self
    expected = torch.cat([attention.query.weight.grad, attention.key.weight.grad, attention.value.weight.grad])
    assert torch.allclose(encoder.layers.views["encoder.layer.1.attention.self.qkv.weight"].grad, expected, atol=1e-4)
    words = reference.embeddings.word_embeddings.weight.grad[np.unique(ids)]
    assert torch.allclose(encoder.trained[-1].views["word"].grad, words, atol=1e-4)


@pytest.mark.thorough
@pytest.mark.learning
@pytest.mark.parametrize("head", ["paper", "segments"])
def test_it_learns_what_the_pairs_hold(tiny_params, head):
    pairs = some_pairs(700, seed=3)
    labels = learnable_labels(pairs)
    params = {**tiny_params, "members": 2, "head": head, "epochs": 5, "learning_rate": 1e-2, "batch_size": 16}
    fitted = _fitted(params, pairs[:300], labels[:300])
    changed = fitted.predict_proba(pairs[300:])[:, 1]
    assert area_under_curve(labels[300:], changed) > 0.75


@pytest.mark.thorough
@pytest.mark.learning
def test_weights_decide_between_contradicting_rows(tiny_params):
    pair = some_pairs(1)
    params = {**tiny_params, "members": 1, "epochs": 40, "learning_rate": 1e-2, "dropout": 0.0}
    low = _fitted(params, pair * 2, [0, 1], [9, 1]).predict_proba(pair)[0, 1]
    high = _fitted(params, pair * 2, [0, 1], [1, 9]).predict_proba(pair)[0, 1]
    assert low < high - 0.3


@pytest.mark.thorough
@pytest.mark.learning
def test_a_fraction_is_learnt_as_a_probability(tiny_params):
    pair = some_pairs(1)
    fitted = _fitted({**tiny_params, "members": 1, "epochs": 40, "learning_rate": 1e-2, "dropout": 0.0}, pair, [0.3])
    assert fitted.predict_proba(pair)[0, 1] == pytest.approx(0.3, abs=0.1)


def test_frozen_layers_and_embeddings_stay_as_they_were_and_the_rest_learns(tiny_bert, tiny_params):
    from safetensors.torch import load_file

    fitted = _fitted({**tiny_params, "members": 1, "frozen_layers": 1, "weight_decay": 0.1})
    before = load_file(tiny_bert / "model.safetensors")
    after = fitted.members_[0].network_.encoder.state()
    same = {name for name in after if (before[name] == after[name]).all()}
    assert same == {name for name in after if name.startswith(("embeddings.", "encoder.layer.0."))}


@pytest.mark.thorough
@pytest.mark.learning
def test_with_every_layer_frozen_the_head_alone_learns(tiny_bert, tiny_params, tmp_path):
    from safetensors.torch import load_file

    pairs = some_pairs(200, seed=6)
    labels = np.array([float(pair.outcome == 0) for pair in pairs])
    fitted = _fitted({**tiny_params, "members": 1, "head": "segments", "frozen_layers": 2, "epochs": 8}, pairs, labels)
    assert area_under_curve(labels, fitted.predict_proba(pairs)[:, 1]) > 0.8
    before = load_file(tiny_bert / "model.safetensors")
    assert all((before[name] == weight).all() for name, weight in fitted.members_[0].network_.encoder.state().items())
    artifacts.save(fitted, tmp_path / "saved")
    assert np.array_equal(artifacts.load(tmp_path / "saved").predict_proba(pairs), fitted.predict_proba(pairs))


def test_members_with_frozen_layers_compute_them_once_a_batch(tiny_params, monkeypatch):
    from predictors.networks import encoder

    ensemble = _fitted({**tiny_params, "frozen_layers": 1})
    pairs = some_pairs(5, seed=4)
    alone = [member.predict_proba(pairs)[:, 1] for member in ensemble.members_]
    calls = []
    below = encoder.PackedBert.below
    monkeypatch.setattr(encoder.PackedBert, "below", lambda self, batch: calls.append(1) or below(self, batch))
    together = ensemble.predict_proba(pairs)[:, 1]
    assert len(calls) == 1
    assert together == pytest.approx(np.mean(alone, axis=0), abs=1e-15)
    assert not np.array_equal(*alone)


def test_rows_that_no_longer_fit_in_memory_are_computed_anew_with_the_same_result(tiny_params, monkeypatch):
    from predictors.networks import finetuning

    params = {**tiny_params, "members": 1, "frozen_layers": 1, "epochs": 3}
    expected = _fitted(params).predict_proba(some_pairs(16))
    monkeypatch.setattr(finetuning, "_KEPT_BYTES", 5000)
    # Only rounding may differ: rows computed together are multiplied together.
    assert _fitted(params).predict_proba(some_pairs(16)) == pytest.approx(expected, abs=2e-3)


def test_more_frozen_layers_than_there_are_is_refused(tiny_params):
    with pytest.raises(PredictorError, match="frozen_layers: 3 is more than the 2"):
        _fitted({**tiny_params, "frozen_layers": 3})


def test_members_of_different_trainings_do_not_join(tiny_params):
    first = _fitted({**tiny_params, "members": 1})
    second = _fitted({**tiny_params, "members": 1, "max_length": 32})
    with pytest.raises(PredictorError, match="different tokenizers"):
        type(first).from_members([*first.members_, *second.members_])


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tiny_params, tmp_path):
    digests = []
    for number, seed in enumerate((4, 4, 5)):
        digests.append(artifacts.save(_fitted(tiny_params, seed=seed), tmp_path / str(number)))
    assert digests[0] == digests[1] != digests[2]


def test_members_fitted_one_by_one_make_the_same_ensemble(tiny_params):
    pairs = some_pairs(16)
    whole = _fitted(tiny_params, pairs, seed=7)
    alone = registry.create("bert", tiny_params, 7)
    joined = type(alone).from_members([alone.member(index).fit(pairs, LABELS) for index in (0, 1)])
    assert np.array_equal(whole.predict_proba(pairs), joined.predict_proba(pairs))
    parts = [member.predict_proba(pairs) for member in joined.members_]
    assert not np.array_equal(*parts)
    assert joined.predict_proba(pairs) == pytest.approx(np.mean(parts, axis=0), abs=1e-15)


def test_a_batch_above_the_token_budget_gives_the_same_gradients_in_parts(tiny_params):
    pairs = some_pairs(16)
    params = {**tiny_params, "members": 1, "dropout": 0.0, "bfloat16": False, "batch_size": 16}
    whole = _fitted({**params, "token_budget": 10_000}, pairs).predict_proba(pairs)
    parts = _fitted({**params, "token_budget": 40}, pairs).predict_proba(pairs)
    assert parts == pytest.approx(whole, abs=1e-5)


def test_the_steps_repeat_until_the_least_number_is_reached(tiny_params):
    seen = []
    fitted = _fitted(
        {**tiny_params, "members": 1, "min_steps": 13}, progress=lambda done, total, text: seen.append((done, total))
    )
    assert fitted.members_[0].n_steps_ == 13
    assert seen == [(5, 13), (10, 13), (13, 13)]


def test_progress_of_an_ensemble_counts_all_its_members(tiny_params):
    seen = []
    _fitted(tiny_params, progress=lambda done, total, text: seen.append((done, total)))
    assert seen == [(2, 4), (4, 4)]


def test_training_and_scoring_stop_when_progress_says_so(tiny_params):
    with pytest.raises(Stopped):
        _fitted({**tiny_params, "min_steps": 50}, progress=lambda done, total, text: done < 5)
    with pytest.raises(Stopped):
        _fitted(tiny_params).predict_proba(some_pairs(4), progress=lambda done, total, text: False)


def test_words_that_no_training_pair_holds_keep_their_vectors(tiny_bert, tiny_params):
    from safetensors.torch import load_file

    fitted = _fitted({**tiny_params, "members": 1}, [pair._replace(target_text="red") for pair in some_pairs(16)])
    tokenizer = fitted.members_[0].network_.tokenizer.tokenizer
    before = load_file(tiny_bert / "model.safetensors")["embeddings.word_embeddings.weight"]
    after = fitted.members_[0].network_.encoder.state()["embeddings.word_embeddings.weight"]
    unused, used = tokenizer.token_to_id("!"), tokenizer.token_to_id("red")
    assert (before[unused] == after[unused]).all()
    assert (before[used] != after[used]).any()


def test_weight_decay_shrinks_every_matrix_and_no_bias(tiny_bert, tiny_params):
    from safetensors.torch import load_file

    params = {**tiny_params, "members": 1, "learning_rate": 1e-7, "weight_decay": 1e6, "dropout": 0.0, "epochs": 1}
    fitted = _fitted({**params, "batch_size": 16})
    before = load_file(tiny_bert / "model.safetensors")
    after = fitted.members_[0].network_.encoder.state()
    for name in ("embeddings.word_embeddings.weight", "encoder.layer.0.attention.self.query.weight"):
        assert after[name].norm().item() == pytest.approx(0.9 * before[name].norm().item(), rel=1e-3)
    name = "encoder.layer.0.output.LayerNorm.weight"
    assert after[name].norm().item() == pytest.approx(before[name].norm().item(), rel=1e-3)


def test_long_texts_are_trimmed_alike_and_the_mark_stays(tiny_bert):
    from predictors.networks.checkpoints import read_checkpoint
    from predictors.networks.text import FIRST, OTHERS, RowTokenizer

    tokenizer = RowTokenizer(read_checkpoint(str(tiny_bert)).tokenizer, 20)
    vocabulary = tokenizer.tokenizer.get_vocab()
    long, short = " ".join(["red"] * 40), "blue old"
    pair = some_pairs(1)[0]
    for evidence, target, expected in ((long, long, (8, 7)), (long, short, (13, 2)), (short, long, (2, 13))):
        tokenised = tokenizer.tokenise([pair._replace(evidence_text=evidence, target_text=target, outcome=0)])
        rows = tokenizer.lay_out(tokenised)
        assert rows.lengths.tolist() == [20] == [tokenizer.length(tokenised[0])]
        assert ((rows.segments == FIRST).sum(), (rows.segments == OTHERS).sum()) == expected
        assert rows.ids[:3].tolist() == [vocabulary["[CLS]"], vocabulary["wrong"], vocabulary[":"]]


def test_a_laid_out_pair_is_what_the_tokenizer_itself_would_build(tiny_bert):
    from predictors.networks.checkpoints import read_checkpoint
    from predictors.networks.text import RowTokenizer

    tokenizer = RowTokenizer(read_checkpoint(str(tiny_bert)).tokenizer, 64)
    pair = some_pairs(1)[0]._replace(outcome=1)
    rows = tokenizer.lay_out(tokenizer.tokenise([pair]))
    expected = tokenizer.tokenizer.encode(f"right: {pair.evidence_text}", pair.target_text)
    assert rows.ids.tolist() == expected.ids
    assert rows.types.tolist() == expected.type_ids


def test_the_outcome_changes_the_prediction(tiny_params):
    fitted = _fitted(tiny_params)
    pair = some_pairs(1)[0]
    wrong, right = fitted.predict_proba([pair._replace(outcome=0), pair._replace(outcome=1)])[:, 1]
    assert wrong != right


@pytest.mark.parametrize("head", ["paper", "segments"])
def test_a_pair_without_evidence_text_can_be_scored(tiny_params, head):
    fitted = _fitted({**tiny_params, "head": head})
    assert np.isfinite(fitted.predict_proba([some_pairs(1)[0]._replace(evidence_text="")])).all()


def test_scoring_does_not_depend_on_the_order_of_the_pairs(tiny_params):
    fitted = _fitted(tiny_params)
    pairs = some_pairs(50, seed=9)
    backwards = fitted.predict_proba(pairs[::-1])[::-1]
    assert fitted.predict_proba(pairs) == pytest.approx(backwards, abs=2e-3)
    assert fitted.predict_proba([]).shape == (0, 2)


def test_dropout_keeps_expectations_and_drops_the_share_it_was_given():
    import torch

    from predictors.networks.encoder import Dropout

    output = Dropout(0.25, np.random.default_rng(0))(torch.ones(200, 200))
    assert (output == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert output.mean().item() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_dropout_keeps_is_multiplied_by_one_number(dtype):
    import torch

    from predictors.networks.encoder import Dropout

    values = torch.ones(33, 7, dtype=getattr(torch, dtype))
    dropout = Dropout(0.1, np.random.Generator(np.random.SFC64(5)))
    draws = np.random.Generator(np.random.SFC64(5)).integers(0, 2**64, size=29, dtype=np.uint64).view(np.uint8)[:231]
    expected = torch.from_numpy(draws >= 26).to(values.dtype).view(33, 7) * dropout.scale
    assert torch.equal(dropout.factors(values), expected) and 0 < (expected == 0).sum() < 231


def test_another_kind_of_transformer_trains_saves_and_reloads(tiny_bert, tmp_path):
    import torch
    from transformers import ElectraConfig, ElectraModel

    folder = tmp_path / "electra"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        size = {"hidden_size": 16, "embedding_size": 16, "intermediate_size": 32, "max_position_embeddings": 64}
        ElectraModel(ElectraConfig(vocab_size=200, num_hidden_layers=1, num_attention_heads=2, **size)).save_pretrained(
            folder, safe_serialization=True
        )
    (folder / "tokenizer.json").write_bytes((tiny_bert / "tokenizer.json").read_bytes())
    pairs = some_pairs(300, seed=3)
    labels = learnable_labels(pairs)
    params = {"checkpoint": str(folder), "members": 1, "epochs": 6, "batch_size": 8, "learning_rate": 1e-2}
    fitted = _fitted({**params, "head": "segments"}, pairs, labels)
    assert area_under_curve(labels, fitted.predict_proba(pairs)[:, 1]) > 0.7
    artifacts.save(fitted, tmp_path / "saved")
    (folder / "config.json").unlink()
    again = artifacts.load(tmp_path / "saved")
    assert np.array_equal(fitted.predict_proba(pairs), again.predict_proba(pairs))


def test_a_checkpoint_without_a_pooler_gets_a_fresh_one(tmp_path, tiny_params):
    checkpoint = save_tiny_bert(tmp_path / "bare", pooler=False)
    fitted = _fitted({**tiny_params, "checkpoint": str(checkpoint), "head": "paper"})
    assert "pooler.dense.weight" in fitted.members_[0].network_.head.state()


def test_old_names_of_layer_norms_are_understood():
    import torch

    from predictors.networks.checkpoints import plain_names

    weights = plain_names(
        {
            "bert.embeddings.LayerNorm.gamma": torch.ones(2),
            "bert.embeddings.LayerNorm.beta": torch.ones(2),
            "cls.predictions.bias": torch.ones(2),
        }
    )
    assert sorted(weights) == ["embeddings.LayerNorm.bias", "embeddings.LayerNorm.weight"]


def _without(name):
    def damage(folder):
        (folder / name).unlink()

    return damage


def _garbled(name):
    def damage(folder):
        (folder / name).write_text("{")

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without("config.json"), "no readable config.json"),
        (_garbled("config.json"), "no readable config.json"),
        (_without("model.safetensors"), "holds no safetensors"),
        (_garbled("model.safetensors"), "weights of .* cannot be read"),
        (_garbled("tokenizer.json"), "tokenizer of .* cannot be read"),
    ],
)
def test_a_damaged_checkpoint_is_refused_with_what_is_wrong(tmp_path, tiny_params, damage, message):
    folder = save_tiny_bert(tmp_path / "damaged")
    damage(folder)
    with pytest.raises(CheckpointError, match=message):
        _fitted({**tiny_params, "checkpoint": str(folder)})


@pytest.mark.parametrize("name", ["/no/such/folder", "./nowhere", "bundled:large", "a/b/c"])
def test_a_checkpoint_that_is_not_there_is_refused(tiny_params, name):
    with pytest.raises(CheckpointError, match=r"^checkpoint: "):
        _fitted({**tiny_params, "checkpoint": name})


def test_a_hub_out_of_reach_is_reported_with_what_to_do(tiny_params, monkeypatch):
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def unreachable(*args, **kwargs):
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(CheckpointError, match="check the network, or give a local folder"):
        _fitted({**tiny_params, "checkpoint": "google-bert/bert-base-uncased"})


def test_an_altered_bundled_checkpoint_is_refused(monkeypatch):
    from predictors.networks import checkpoints

    checkpoints._bundled_folder.cache_clear()
    monkeypatch.setattr(checkpoints, "BUNDLED_SHA256", "0" * 64)
    with pytest.raises(CheckpointError, match="missing or altered"):
        checkpoints.locate("bundled:minilm-l6")
    checkpoints._bundled_folder.cache_clear()


def test_the_bundled_checkpoint_is_a_bert_of_six_layers():
    from predictors.networks.checkpoints import read_checkpoint

    checkpoint = read_checkpoint("bundled:minilm-l6")
    assert checkpoint.config["num_hidden_layers"] == 6
    assert checkpoint.weights["encoder.layer.5.output.dense.weight"].shape == (384, 1536)
    assert checkpoint.tokenizer.encode("river " * 200).ids[-1] == 102, "its own limit of 128 tokens must be off"


def test_a_device_that_is_not_there_is_refused(tiny_params):
    with pytest.raises(PredictorError, match=r"^device: 'tpu9'"):
        _fitted({**tiny_params, "device": "tpu9"})


def test_there_is_no_member_beyond_the_last(tiny_params):
    predictor = registry.create("bert", tiny_params)
    with pytest.raises(PredictorError, match="2 is not one of the 2 members"):
        predictor.member(2)
    with pytest.raises(PredictorError, match="there are none"):
        type(predictor).from_members([])


def test_it_refuses_to_predict_before_it_has_learnt(tiny_params):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        registry.create("bert", tiny_params).predict_proba(some_pairs(1))


def test_it_can_be_cloned_like_any_estimator_of_scikit_learn(tiny_params):
    from sklearn.base import clone

    assert json.dumps(clone(_fitted(tiny_params)).get_params()) == json.dumps(
        registry.create("bert", tiny_params).get_params()
    )


@pytest.mark.thorough
@pytest.mark.learning
def test_rows_kept_back_recalibrate_the_average(tiny_params):
    """A teacher's squeezed probabilities teach the order of pairs, and people's labels how far apart they are."""
    rng = np.random.default_rng(8)
    taught, labelled, fresh = some_pairs(240, seed=21), some_pairs(200, seed=22), some_pairs(200, seed=23)
    squeezed = 0.4 + 0.2 * learnable_labels(taught) + 0.01 * rng.normal(size=len(taught))
    rows, labels = taught + labelled, np.append(squeezed, learnable_labels(labelled))
    losses = []
    for share in (0.0, 0.3):
        predictor = registry.create("bert", {**tiny_params, "head": "segments", "calibration_share": share}, 0)
        losses.append(
            negative_log_likelihood(learnable_labels(fresh), predictor.fit(rows, labels).predict_proba(fresh)[:, 1])
        )
    assert losses[1] < losses[0] - 0.02


@pytest.mark.thorough
def test_beside_a_teacher_only_pairs_with_labels_of_people_are_kept_back(tiny_params):
    """A teacher's fractions do not recalibrate, so that all of them teach."""
    taught, labelled = some_pairs(120, seed=27), some_pairs(150, seed=28)
    labels = np.append(0.31 + 0.17 * np.random.default_rng(3).random(120), learnable_labels(labelled))
    predictor = registry.create("bert", {**tiny_params, "epochs": 1}, 0).fit(taught + labelled, labels)
    for member in predictor.members_:
        assert len(member.kept_back_.labels) >= 30 and set(member.kept_back_.labels) == {0.0, 1.0}
        assert member.n_examples_ + len(member.kept_back_.labels) == 270


def test_rows_kept_back_keep_their_labels_and_weights(monkeypatch):
    from types import SimpleNamespace

    from predictors.features import TrainingData
    from predictors.models import bert

    monkeypatch.setattr(bert, "predict", lambda networks, rows, *_others: [np.array([0.25 * row for row in rows])])
    network = SimpleNamespace(tokenise=list)
    data = TrainingData([1, 2], np.array([0.0, 1.0]), np.array([3.0, 1.0]))
    assert [column.tolist() for column in bert._said_of(network, data, None)] == [[0.25, 0.5], [0, 1], [3, 1]]
    assert not any(map(len, bert._said_of(network, TrainingData([], np.empty(0), np.empty(0)), None)))


def test_no_more_rows_are_kept_back_than_two_numbers_need():
    from predictors.models import bert

    pairs = some_pairs(60, seed=29)
    rows = [pair._replace(target_text=f"{number} {pair.target_text}") for number in range(100) for pair in pairs]
    labels = np.tile(learnable_labels(pairs), 100)
    mask = bert._kept_back(bert.TrainingData(rows, labels, np.ones(len(rows))), 0.2, seed=1)
    assert mask.sum() == 1000
    assert not bert._kept_back(bert.TrainingData(rows, labels, np.ones(len(rows))), 0.0, seed=1).any()


@pytest.mark.thorough
def test_shares_of_few_answers_recalibrate_all_alike(tiny_params):
    """Where labels are shares, those that happen to be 0 or 1 are no better than the others."""
    pairs = some_pairs(300, seed=24)
    shares = np.random.default_rng(9).binomial(4, 0.2 + 0.3 * learnable_labels(pairs)) / 4
    predictor = registry.create("bert", {**tiny_params, "calibration_share": 0.5}, 0).fit(pairs, shares)
    assert predictor.predict_proba(pairs)[:, 1].mean() == pytest.approx(shares.mean(), abs=0.05)


@pytest.mark.thorough
def test_nothing_is_kept_back_where_it_would_be_too_little(tiny_params):
    pairs = some_pairs(60, seed=25)
    first, other = (
        registry.create("bert", {**tiny_params, "calibration_share": share}, 0).fit(pairs, learnable_labels(pairs))
        for share in (0.0, 0.4)
    )
    assert (first.predict_proba(pairs) == other.predict_proba(pairs)).all()
    assert other.members_[0].n_examples_ == 60


@pytest.mark.thorough
def test_pairs_kept_back_come_back_from_a_folder(tiny_params, tmp_path):
    pairs = some_pairs(200, seed=26)
    params = {**tiny_params, "calibration_share": 0.4}
    predictor = registry.create("bert", params, 0).fit(pairs, learnable_labels(pairs))
    kept_back = [member.kept_back_ for member in predictor.members_]
    assert all(len(data.labels) >= 40 for data in kept_back)
    assert [
        member.n_examples_ + len(data.labels) for member, data in zip(predictor.members_, kept_back, strict=True)
    ] == [200] * 2
    artifacts.save(predictor, tmp_path / "saved")
    assert (artifacts.load(tmp_path / "saved").predict_proba(pairs) == predictor.predict_proba(pairs)).all()
    folders = [tmp_path / f"one-{index}" for index in range(2)]
    for index, folder in enumerate(folders):
        training.train_member("bert", params, 0, index, pairs, list(learnable_labels(pairs)), None, folder)
    expected = predictor.predict_proba(pairs)[:, 1].astype(np.float32)
    assert training.score(folders, pairs) == pytest.approx(expected, abs=1e-6)


def test_the_outcomes_marks_may_be_tokens_of_the_checkpoint(tiny_bert):
    from predictors.networks.checkpoints import read_checkpoint

    tokenizer = read_checkpoint(str(tiny_bert)).tokenizer
    rows = [Pair("a", "b", "t", "t", outcome) for outcome in (0, 1)]
    marked = RowTokenizer(tokenizer, 64, ("[SEP]", "[CLS]")).tokenise(rows)
    assert [row.mark.tolist() for row in marked] == [[tokenizer.token_to_id(name)] for name in ("[SEP]", "[CLS]")]
    assert BertSettings(marks=["no", "yes"]).marks == ("no", "yes")
    with pytest.raises(PredictorError, match="marks: both are the same"):
        BertSettings(marks=["x", "x"])
