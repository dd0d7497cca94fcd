from __future__ import annotations

import shutil

import numpy as np
import pytest

from predictors import artifacts, registry, training
from predictors.errors import CheckpointError, PredictorError, Stopped
from predictors.evaluation import area_under_curve
from predictors.pairs import Pair
from predictors.settings import CausalLmSettings
from tests.predictors.fresh_process import printed_by
from tests.predictors.tiny import some_pairs
from tests.predictors.tiny_llama import ANSWERS, byte_tokenizer, change_prompt, save_tiny_llama

pytestmark = pytest.mark.torch

PAIRS = some_pairs(12, seed=1)
LABELS = [0.0, 1.0] * 6


@pytest.fixture(scope="session")
def tiny_llama(one_thread, tmp_path_factory):
    return save_tiny_llama(tmp_path_factory.mktemp("checkpoints") / "llama")


@pytest.fixture(scope="session")
def wordy_llama(one_thread, tmp_path_factory):
    """Its tokenizer reads the answer 0 as three tokens and 1 as two."""
    tokenizer = byte_tokenizer(_0="xyz", _1="qj")
    return save_tiny_llama(tmp_path_factory.mktemp("checkpoints") / "wordy", tokenizer=tokenizer)


@pytest.fixture
def params(tiny_llama):
    return {"checkpoint": str(tiny_llama), "epochs": 1, "learning_rate": 1e-3, "bfloat16": False}


def _fitted(params, pairs=PAIRS, labels=LABELS, weights=None, seed=0, progress=None):
    return registry.create("causal_lm", params, seed).fit(pairs, labels, weights, progress)


def _model_of(fitted):
    return fitted.members_[0].language_model_


def _by_hand(fitted, pair):
    """P(change) from the full texts of both answers, one after the other, without padding or shortcuts."""
    import torch

    language_model = _model_of(fitted)
    scores = []
    for answer in ANSWERS:
        text = change_prompt(pair.evidence_text, pair.target_text, pair.outcome)
        ids = language_model.tokenizer.tokenizer.encode(text + answer).ids
        with torch.no_grad():
            logits = language_model.model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
        scores.append(float(sum(logits[place - 1, ids[place]] for place in range(1, len(ids)))))
    return 1 / (1 + np.exp(scores[0] - scores[1]))


# The prompt


def test_braces_and_marks_in_a_question_are_words_like_any_other():
    prompt = change_prompt("{0} {outcome} %s", "{", 1)
    assert prompt == change_prompt("EVIDENCE", "TARGET", 1).replace("EVIDENCE", "{0} {outcome} %s").replace(
        "TARGET", "{"
    )


def test_the_prompt_tells_both_outcomes_apart():
    assert change_prompt("a", "b", 0) != change_prompt("a", "b", 1)


def test_the_answers_are_the_last_tokens_and_nothing_of_the_prompt_is_lost(params):
    from predictors.networks.causal_network import PromptTokenizer

    tokenizer = PromptTokenizer(byte_tokenizer(), 256)
    (prompt,) = tokenizer.tokenise(PAIRS[:1])
    text = change_prompt(*PAIRS[0][:2], PAIRS[0].outcome)
    for answer, tail in zip(ANSWERS, prompt.tails, strict=True):
        assert tokenizer.tokenizer.decode([*prompt.prefix.tolist(), *tail]) == text + answer
    assert prompt.prefix[0] == 0, "the token before a text"


@pytest.mark.parametrize("words", [(200, 200), (3, 200), (200, 3)])
def test_a_long_prompt_loses_the_ends_of_both_questions_and_nothing_else(words):
    from predictors.networks.causal_network import PromptTokenizer

    tokenizer = PromptTokenizer(byte_tokenizer(), 200)
    pair = Pair("river " * words[0], "metal " * words[1], "t", "t", 0)
    (prompt,) = tokenizer.tokenise([pair])
    assert 190 <= prompt.length <= 200
    text = tokenizer.tokenizer.decode(prompt.prefix.tolist())
    before, between, after = change_prompt("CUT", "CUT", 0).split("CUT")
    assert text.startswith(before) and text.endswith(after) and between in text
    rivers, metals = text.count("river"), text.count("metal")
    assert abs(rivers - metals) <= 2 if words == (200, 200) else min(rivers, metals) == 3


def test_a_cut_does_not_split_a_letter():
    from predictors.networks.causal_network import PromptTokenizer

    tokenizer = PromptTokenizer(byte_tokenizer(), 160)
    (prompt,) = tokenizer.tokenise([Pair("日本" * 50, "日本" * 50, "t", "t", 1)])
    text = tokenizer.tokenizer.decode(prompt.prefix.tolist())
    assert "\ufffd" not in text and "日本" in text and prompt.length <= 160


def test_a_special_token_in_a_question_is_read_as_letters():
    from predictors.networks.causal_network import PromptTokenizer

    (prompt,) = PromptTokenizer(byte_tokenizer(), 256).tokenise([Pair("</s><s>", "a", "t", "t", 1)])
    assert prompt.prefix.tolist().count(0) == 1 and prompt.prefix.tolist().count(1) == 0


def test_a_token_after_every_text_is_left_off():
    from tokenizers import processors

    from predictors.networks.causal_network import PromptTokenizer

    tokenizer = byte_tokenizer()
    plain = PromptTokenizer(tokenizer, 256).tokenise(PAIRS[:1])[0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    ended = PromptTokenizer(tokenizer, 256).tokenise(PAIRS[:1])[0]
    assert np.array_equal(plain.prefix, ended.prefix) and plain.tails == ended.tails


def test_a_length_that_holds_no_questions_is_refused(params):
    with pytest.raises(PredictorError, match=r"^max_length: 20 leaves the questions no room.* give \d+ or more"):
        _fitted({**params, "max_length": 20})


# Likelihoods


@pytest.mark.thorough
@pytest.mark.parametrize("budget", [1, 700])
def test_probabilities_are_the_exact_likelihoods_of_the_two_answers(params, budget):
    fitted = _fitted({**params, "token_budget": budget})
    probabilities = fitted.predict_proba(PAIRS)
    assert probabilities.shape == (12, 2) and probabilities.sum(axis=1) == pytest.approx(1)
    assert probabilities[:, 1] == pytest.approx([_by_hand(fitted, pair) for pair in PAIRS], abs=1e-5)
    assert len(set(probabilities[:, 1].round(6))) > 6


def test_answers_of_several_tokens_are_scored_exactly(params, wordy_llama):
    fitted = _fitted({**params, "checkpoint": str(wordy_llama)})
    tails = _model_of(fitted).tokenizer.tokenise(PAIRS[:1])[0].tails
    assert sorted(map(len, tails)) == [2, 3]
    assert fitted.predict_proba(PAIRS)[:, 1] == pytest.approx([_by_hand(fitted, pair) for pair in PAIRS], abs=1e-5)


def test_a_model_that_cannot_pick_places_gives_the_same(params):
    fitted = _fitted(params)
    expected = fitted.predict_proba(PAIRS)
    assert _model_of(fitted).picks_places
    _model_of(fitted).picks_places = False
    assert fitted.predict_proba(PAIRS) == pytest.approx(expected, abs=1e-6)


def test_answers_that_read_alike_are_refused(params, tmp_path):
    folder = save_tiny_llama(tmp_path / "blind", tokenizer=byte_tokenizer(_0="x", _1="x"))
    with pytest.raises(CheckpointError, match="reads the answers 0 and 1 as the same tokens"):
        _fitted({**params, "checkpoint": str(folder)})


# Learning


@pytest.mark.thorough
@pytest.mark.learning
def test_it_learns_what_the_pairs_hold_and_lora_unlearns_it(params, tmp_path):
    pairs = some_pairs(160, seed=3, words=3)
    labels = np.array([float(pair.outcome == 0) for pair in pairs])
    params = {**params, "epochs": 6, "batch_size": 8, "learning_rate": 1e-2}
    fitted = _fitted(params, pairs[:120], labels[:120])
    assert area_under_curve(labels[120:], fitted.predict_proba(pairs[120:])[:, 1]) > 0.8
    artifacts.save(fitted, tmp_path / "saved")
    # What was trained in full is a checkpoint like any other.
    lora = {**params, "checkpoint": str(tmp_path / "saved/member-00/model"), "adaptation": "lora", "epochs": 8}
    turned = _fitted(lora, pairs[:120], 1 - labels[:120])
    assert area_under_curve(labels[120:], turned.predict_proba(pairs[120:])[:, 1]) < 0.2


@pytest.mark.thorough
@pytest.mark.learning
@pytest.mark.parametrize("weights", [None, [3.0, 1.0]])
def test_a_fraction_or_two_weighted_rows_are_learnt_as_a_probability(params, weights):
    params = {**params, "epochs": 60, "learning_rate": 1e-2, "batch_size": 4}
    pair, labels = (PAIRS[:1] * 4, [0.25] * 4) if weights is None else (PAIRS[:1] * 2, [0.0, 1.0])
    fitted = _fitted(params, pair, labels, weights)
    assert fitted.predict_proba(PAIRS[:1])[0, 1] == pytest.approx(0.25, abs=0.1)


def test_a_fraction_has_the_gradient_of_its_two_rows(params, wordy_llama):
    import torch

    from predictors.networks.causal_network import pretrained

    language_model = pretrained(CausalLmSettings(**{**params, "checkpoint": str(wordy_llama)}))
    prompts = language_model.tokenizer.tokenise(PAIRS[:1])

    def gradient(rows, wanted, weights):
        language_model.model.zero_grad()
        scores = language_model.log_likelihoods(prompts * rows, np.array(wanted))
        (torch.tensor(weights) * scores).sum().backward()
        return torch.cat([parameter.grad.flatten() for parameter in language_model.model.parameters()])

    fraction = gradient(1, [[True, True]], [[0.7, 0.3]])
    rows = gradient(2, [[True, False], [False, True]], [[0.7, 0.0], [0.0, 0.3]])
    assert torch.allclose(fraction, rows, atol=1e-5) and fraction.abs().max() > 1e-3


def test_the_loss_is_that_of_the_answer_alone(params):
    import torch

    fitted = _fitted({**params, "learning_rate": 1e-12}, labels=[1.0] * 11 + [0.0])
    language_model = _model_of(fitted)
    with torch.no_grad():
        scores = language_model.log_likelihoods(language_model.tokenizer.tokenise(PAIRS)).numpy()
    assert fitted.members_[0].loss_ == pytest.approx(-(scores[:11, 1].sum() + scores[11, 0]) / 12, abs=1e-4)


def test_accumulated_batches_take_the_step_of_one_large_batch(params):
    whole = _fitted({**params, "batch_size": 6})
    parts = _fitted({**params, "batch_size": 2, "gradient_accumulation": 3})
    assert [fitted.members_[0].n_steps_ for fitted in (whole, parts)] == [2, 2]
    assert parts.members_[0].loss_ == pytest.approx(whole.members_[0].loss_, rel=1e-3)
    assert parts.predict_proba(PAIRS) == pytest.approx(whole.predict_proba(PAIRS), abs=1e-4)


def test_lora_leaves_the_checkpoint_as_it_was_and_full_training_does_not(params, tiny_llama):
    from safetensors.torch import load_file

    before = load_file(tiny_llama / "model.safetensors")
    adapted = dict(_model_of(_fitted({**params, "adaptation": "lora"})).model.named_parameters())
    base = {name.removeprefix("base_model.model.").replace(".base_layer", ""): p for name, p in adapted.items()}
    assert all((base[name] == tensor).all() for name, tensor in before.items())
    assert any("lora_B" in name and p.abs().max() > 0 for name, p in adapted.items())
    trained = dict(_model_of(_fitted(params)).model.named_parameters())
    assert not any((trained[name] == tensor).all() for name, tensor in before.items() if "embed" not in name)


def test_lora_learns_at_the_layers_it_is_given(params):
    lora = {**params, "adaptation": "lora", "lora_targets": "q_proj, v_proj", "lora_rank": 3}
    adapted = {n: p for n, p in _model_of(_fitted(lora)).model.named_parameters() if "lora_A" in n}
    assert len(adapted) == 4 and all(("q_proj" in n or "v_proj" in n) and p.shape[0] == 3 for n, p in adapted.items())
    with pytest.raises(PredictorError, match=r"^lora_targets: 'no_such_layer'"):
        _fitted({**lora, "lora_targets": "no_such_layer"})


def test_the_learning_rate_depends_on_what_is_trained():
    assert CausalLmSettings().rate == 1e-5 and CausalLmSettings(adaptation="lora").rate == 2e-4
    assert CausalLmSettings(adaptation="lora", learning_rate=1e-3).rate == 1e-3


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_network_and_members_differ(params):
    first, same = (_fitted({**params, "members": 2}, seed=4) for _ in range(2))
    assert np.array_equal(first.predict_proba(PAIRS), same.predict_proba(PAIRS))
    first_member, two = (member.predict_proba(PAIRS) for member in first.members_)
    assert not np.array_equal(first_member, two)
    assert first.predict_proba(PAIRS) == pytest.approx((first_member + two) / 2)


@pytest.mark.thorough
def test_training_leaves_the_global_seed_alone(params):
    import torch

    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    _fitted({**params, "adaptation": "lora"})
    assert torch.equal(torch.rand(1), expected)


def test_training_that_diverges_is_reported(params):
    with pytest.raises(PredictorError, match=r"^learning_rate: training diverged"):
        _fitted({**params, "learning_rate": 1e30, "epochs": 4, "max_grad_norm": 1e30})


# Saving


@pytest.mark.thorough
def test_it_reloads_bit_for_bit_in_a_fresh_process(params, tmp_path):
    kinds = {f"{adaptation}-{bf}": (adaptation, bf) for adaptation in ("full", "lora") for bf in (False, True)}
    expected = []
    for name, (adaptation, bfloat16) in kinds.items():
        variant = {**params, "adaptation": adaptation, "bfloat16": bfloat16}
        fitted = _fitted(variant)
        digest = artifacts.save(fitted, tmp_path / name)
        expected.append(fitted.predict_proba(PAIRS).tobytes().hex())
        assert artifacts.save(_fitted(variant), tmp_path / "again" / name) == digest
    code = f"""
import torch
torch.set_num_threads(1)
from predictors import artifacts
from tests.predictors.tiny import some_pairs
for name in {list(kinds)!r}:
    print(artifacts.load({str(tmp_path)!r} + "/" + name).predict_proba(some_pairs(12, seed=1)).tobytes().hex())
"""
    output = printed_by(code)
    assert output.split() == expected and len(set(expected)) == 4
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json", ".safetensors"}


def test_a_model_trained_in_full_needs_no_checkpoint_again(params, tmp_path):
    checkpoint = shutil.copytree(params["checkpoint"], tmp_path / "checkpoint")
    fitted = _fitted({**params, "checkpoint": str(checkpoint)})
    artifacts.save(fitted, tmp_path / "saved")
    shutil.rmtree(checkpoint)
    assert np.array_equal(artifacts.load(tmp_path / "saved").predict_proba(PAIRS), fitted.predict_proba(PAIRS))


def test_an_adapter_is_saved_alone_and_refuses_another_checkpoint(params, tiny_llama, tmp_path):
    checkpoint = shutil.copytree(tiny_llama, tmp_path / "checkpoint")
    fitted = _fitted({**params, "checkpoint": str(checkpoint), "adaptation": "lora"})
    artifacts.save(fitted, tmp_path / "saved")
    names = {path.name for path in (tmp_path / "saved").rglob("*") if path.is_file()}
    assert names == {"manifest.json", "causal_lm.json", "tokenizer.json", "adapter.safetensors"}
    save_tiny_llama(checkpoint, seed=9)
    with pytest.raises(CheckpointError, match=r"is not what the adapter in .* was trained on"):
        artifacts.load(tmp_path / "saved")
    shutil.rmtree(checkpoint)
    with pytest.raises(CheckpointError, match="there is no folder"):
        artifacts.load(tmp_path / "saved")


def test_a_worker_trains_its_members_and_scores_with_them(params, tmp_path):
    params = {**params, "members": 2}
    training.forget_predictors()
    folders = [tmp_path / "one", tmp_path / "two"]
    results = [training.train_member("causal_lm", params, 5, n, PAIRS, LABELS, None, folders[n]) for n in range(2)]
    assert [result["steps"] for result in results] == [3, 3] and all(result["n_examples"] == 12 for result in results)
    expected = _fitted(params, seed=5).predict_proba(PAIRS)[:, 1]
    assert training.score(folders, PAIRS) == pytest.approx(expected, abs=1e-6)


# Refusals


def test_progress_counts_steps_of_all_members_and_may_stop_the_work(params):
    seen = []
    fitted = _fitted({**params, "members": 2}, progress=lambda done, total, text: seen.append((done, total)))
    assert seen == [(done, 6) for done in range(1, 7)]
    seen.clear()
    fitted.predict_proba(PAIRS, lambda done, total, text: seen.append((done, total)))
    assert seen[-1] == (24, 24) and [done for done, _ in seen] == sorted(done for done, _ in seen)
    with pytest.raises(Stopped):
        _fitted(params, progress=lambda done, total, text: False)
    with pytest.raises(Stopped):
        fitted.predict_proba(PAIRS, lambda done, total, text: False)


def test_a_bert_is_not_taken_for_a_causal_model(params, tiny_bert):
    for checkpoint in (str(tiny_bert), "bundled:minilm-l6"):
        with pytest.raises(CheckpointError, match="is a BertModel, not a causal language model"):
            _fitted({**params, "checkpoint": checkpoint})


def test_a_checkpoint_without_its_last_layer_is_refused(params, tiny_llama, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(tiny_llama, tmp_path / "headless")
    weights = load_file(folder / "model.safetensors")
    weights.pop("lm_head.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"lacks weights of a causal model \(lm_head.weight\)"):
        _fitted({**params, "checkpoint": str(folder)})


def test_a_damaged_checkpoint_is_refused(params, tiny_llama, tmp_path):
    folder = shutil.copytree(tiny_llama, tmp_path / "damaged")
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(CheckpointError, match=r"^checkpoint: transformers cannot load"):
        _fitted({**params, "checkpoint": str(folder)})


def test_a_hub_out_of_reach_is_reported(params, monkeypatch):
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def unreachable(*args, **kwargs):
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(CheckpointError, match="could not be fetched from the Hugging Face hub") as refusal:
        _fitted({**params, "checkpoint": "meta-llama/Llama-2-7b-hf"})
    assert "minilm" not in str(refusal.value)  # That one is no causal model.


@pytest.mark.parametrize(
    ("labels", "message"),
    [([1.0] * 12, "training needs rows of the class 0 too"), ([float("nan")] * 12, "labels: row 0 is nan")],
)
def test_it_refuses_what_cannot_be_learnt_from(params, labels, message):
    with pytest.raises(PredictorError, match=message):
        _fitted(params, labels=labels)
    with pytest.raises(PredictorError, match="rows: there are none"):
        _fitted(params, [], [])


def test_nothing_to_score_gives_nothing(params):
    assert _fitted(params).predict_proba([]).shape == (0, 2)


def test_there_is_no_member_beyond_the_last(params):
    predictor = registry.create("causal_lm", params)
    with pytest.raises(PredictorError, match="1 is not one of the 1 members"):
        predictor.member(1)
    with pytest.raises(PredictorError, match="there are none"):
        type(predictor).from_members([])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("checkpoint", ""),
        ("adaptation", "half"),
        ("lora_rank", 0),
        ("lora_alpha", 1.5),
        ("lora_dropout", 1.0),
        ("lora_targets", ""),
        ("members", 0),
        ("epochs", True),
        ("batch_size", 0),
        ("learning_rate", 0),
        ("gradient_accumulation", 0),
        ("weight_decay", -1),
        ("max_grad_norm", 0),
        ("max_length", 0),
        ("token_budget", 0),
        ("bfloat16", "yes"),
        ("device", ""),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(PredictorError, match=f"^{field}: "):
        CausalLmSettings(**{field: value})


def test_all_special_tokens_behind_a_text_are_cut_and_none_before_it():
    from types import SimpleNamespace

    from predictors.networks.causal_network import _without_end

    for ids, special, left in (
        ([1, 5, 6, 2, 2], [1, 0, 0, 1, 1], [1, 5, 6]),
        ([5, 6], [0, 0], [5, 6]),
        ([2, 2], [1, 1], []),
    ):
        assert _without_end(SimpleNamespace(ids=ids, special_tokens_mask=special)) == left


OWN = """use = "change"
right = "solved"
wrong = "missed"
prompt = "{evidence} {outcome} {target}?\\n"
[[models]]
model = "*llama*"
system = "S"
format = "<<{system}>> {prompt}"
"""


def test_a_template_of_ones_own_is_learnt_and_stays_with_the_member(params, tmp_path):
    fitted = _fitted({**params, "template": OWN})
    tokenizer = _model_of(fitted).tokenizer
    assert tokenizer.prompt(Pair("A{target}", "B", "t", "t", 1)) == "<<S>> A{target} solved B?\n"
    (prompt,) = tokenizer.tokenise(PAIRS[:1])
    assert tokenizer.tokenizer.decode(prompt.tails[1]) == "1", "after a line break without a blank"
    artifacts.save(fitted, tmp_path / "saved")
    reloaded = artifacts.load(tmp_path / "saved")
    assert reloaded.members_[0].template_ == OWN
    assert np.array_equal(reloaded.predict_proba(PAIRS), fitted.predict_proba(PAIRS))
    other = registry.create("causal_lm", params).member(0).fit(PAIRS, LABELS)
    with pytest.raises(PredictorError, match="templates differ"):
        type(fitted).from_members([fitted.members_[0], other])
