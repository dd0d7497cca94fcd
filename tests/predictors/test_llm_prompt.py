from __future__ import annotations

import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest

from predictors import artifacts, registry, training
from predictors.endpoints import ChatReply, EndpointError, Usage
from predictors.errors import PredictorError, Stopped
from predictors.models.llm_prompt import changed_probability, parse_reply
from predictors.pairs import Pair
from predictors.prompts import template_of
from predictors.settings import LlmPromptSettings
from tests.predictors import fake_endpoint
from tests.predictors.fake_endpoint import chat, refusal
from tests.predictors.tiny import some_pairs

KEY = "sk-secret-0123456789"
PAIRS = [Pair(f"evidence {number}", f"target {number}", "task", "task", number % 2) for number in range(40)]
LABELS = [float(number % 4 == 0) for number in range(40)]
LIKELY = {"1": math.log(0.6), "0": math.log(0.2), "yes": math.log(0.1)}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("HUNCH_LLM_MODEL", raising=False)
    with fake_endpoint.running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        monkeypatch.setenv("HUNCH_LLM_KEY", KEY)
        yield fake


def fitted(seed=0, pairs=PAIRS, labels=LABELS, weights=None, **params):
    return registry.create("llm_prompt", {"model": "m", **params}, seed).fit(pairs, labels, weights)


def changed(estimator, pairs, progress=None):
    return estimator.predict_proba(pairs, progress)[:, 1].tolist()


def question_in(seen):
    return seen.body["messages"][-1]["content"]


def lists_tokens(seen):
    """A server that lists tokens: likelier 1 for longer numbers of the evidence question."""
    number = int(re.search(r"evidence (\d+)", question_in(seen))[1])
    return chat("1", top=[{"1": math.log((number + 1) / 100), "0": math.log(0.5)}])


def lists_none(*texts):
    """A server that ignores logprobs and gives as many of the texts as were asked for."""
    return lambda seen: chat(*texts[: seen.body.get("n", 1)])


# Examples


def test_it_shows_as_many_examples_of_each_class_as_there_are():
    estimator = fitted(shots=10)
    assert sorted(example.label for example in estimator.examples_) == [0] * 5 + [1] * 5
    assert all(LABELS[PAIRS.index(example.pair)] == example.label for example in estimator.examples_)
    assert len({example.pair for example in estimator.examples_}) == 10


def test_a_class_that_runs_out_is_filled_up_with_the_other():
    estimator = fitted(labels=[1.0] + [0.0] * 39, shots=6)
    assert sorted(example.label for example in estimator.examples_) == [0, 0, 0, 0, 0, 1]
    assert len(fitted(pairs=PAIRS[:3], labels=[0, 1, 0], shots=10).examples_) == 3


def test_an_odd_one_out_is_of_either_class_by_chance():
    counts = {sum(example.label for example in fitted(seed, shots=3).examples_) for seed in range(20)}
    assert counts == {1, 2}


def test_the_seed_decides_which_examples_and_in_which_order():
    assert fitted(3).examples_ == fitted(3).examples_
    assert fitted(3).examples_ != fitted(4).examples_
    orders = {tuple(example.label for example in fitted(seed, shots=4).examples_) for seed in range(30)}
    assert len(orders) == 6


def test_examples_come_by_weight_and_never_with_weight_0():
    weights = [0.0] * 20 + [1.0] * 19 + [1000.0]
    labels = [0.0] * 20 + [1.0] * 5 + [0.0] * 15
    example_sets = [
        {example.pair for example in fitted(seed, PAIRS, labels, weights, shots=2).examples_} for seed in range(20)
    ]
    assert not any(pairs & set(PAIRS[:20]) for pairs in example_sets)
    assert sum(PAIRS[39] in pairs for pairs in example_sets) > 15


def test_a_fraction_comes_as_either_class_by_its_size():
    labels = [0.9] + [0.1] * 19
    labelled = [
        example.label
        for seed in range(40)
        for example in fitted(seed, PAIRS[:20], labels, shots=1).examples_
        if example.pair == PAIRS[0]
    ]
    assert labelled.count(1) > labelled.count(0)


def test_repeated_rows_are_shown_once():
    pairs = [PAIRS[0]] * 30 + [PAIRS[1]] * 30
    for seed in range(5):
        examples = fitted(seed, pairs, [0, 1] * 30, shots=10).examples_
        assert sorted(example.label for example in examples) == [0, 1]
        assert {example.pair for example in examples} == {PAIRS[0], PAIRS[1]}


@pytest.mark.parametrize(
    ("labels", "said"), [([0.0] * 40, "all 40 are 0"), ([float("nan"), *LABELS[1:]], "row 0 is nan"), ([], "shape")]
)
def test_rows_that_teach_nothing_are_refused(labels, said):
    with pytest.raises(PredictorError, match=said):
        fitted(labels=labels)


def test_without_a_model_it_says_where_to_name_one(monkeypatch):
    monkeypatch.delenv("HUNCH_LLM_MODEL", raising=False)
    with pytest.raises(PredictorError, match=r"^model: none is named; .* HUNCH_LLM_MODEL"):
        fitted(model=None)
    monkeypatch.setenv("HUNCH_LLM_MODEL", "from-environment")
    assert fitted(model=None).model_ == "from-environment"


# The prompt


def test_the_prompt_shows_instruction_examples_and_the_pair_in_turns(server):
    server.answer = lists_tokens
    estimator = fitted(shots=2)
    estimator.predict_proba([PAIRS[7]])
    messages = server.seen[0].body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2 + ["user"]
    assert [messages[1]["content"], messages[3]["content"]] == [str(example.label) for example in estimator.examples_]
    for message, pair in zip(
        messages[::2], [example.pair for example in estimator.examples_] + [PAIRS[7]], strict=True
    ):
        assert pair.evidence_text in message["content"] and pair.target_text in message["content"]
        assert ("answered question A correctly" in message["content"]) == (pair.outcome == 1)
        assert ("answered question A incorrectly" in message["content"]) == (pair.outcome == 0)
    assert ["Reply with a single digit" in message["content"] for message in messages[::2]] == [True, False, False]


def test_without_examples_the_instruction_stands_before_the_pair(server):
    server.answer = lists_tokens
    fitted(shots=0).predict_proba([PAIRS[7]])
    [message] = server.seen[0].body["messages"]
    assert message["content"].startswith("You forecast") and "target 7" in message["content"]


def test_braces_and_quotes_in_a_question_are_only_text(server):
    server.answer = chat("1", top=[LIKELY])
    odd = Pair('{evidence} {0} %s "', "{{target}} \\frac{1}{2} \ud800", "t", "t", 1)
    assert changed(fitted(), [odd]) == pytest.approx([0.75])
    assert odd.evidence_text in question_in(server.seen[0]) and odd.target_text in question_in(server.seen[0])


def test_a_long_question_loses_its_middle(server):
    server.answer = chat("1", top=[LIKELY])
    fitted(max_characters=100, shots=0).predict_proba([Pair("begin " + "x" * 500 + " (A) end", "b" * 100, "t", "t", 1)])
    question = question_in(server.seen[0])
    excerpt = question[question.index("begin") : question.index("(A) end") + 7]
    assert len(excerpt) == 100 and " […] " in excerpt
    assert "b" * 100 in question


# Exact inference


def reply_with(top):
    return ChatReply(texts=("",), top_logprobs=top, usage=Usage(), raw_finish=(None,))


def test_the_probability_is_that_of_1_among_both_answers():
    top = ((("1", math.log(0.3)), ("0", math.log(0.1)), ("Yes", math.log(0.5))),)
    assert changed_probability(reply_with(top)) == pytest.approx(0.75)


def test_variants_of_an_answer_are_summed():
    shares = {"1": 0.2, " 1": 0.1, "1\n": 0.05, "▁1": 0.03, "Ġ1": 0.02, "0": 0.1, " 0": 0.2, "10": 0.2, "01": 0.05}
    top = (tuple((token, math.log(share)) for token, share in shares.items()),)
    assert changed_probability(reply_with(top)) == pytest.approx(0.4 / 0.7)


def test_only_the_first_token_counts():
    top = ((("0", math.log(0.5)), ("1", math.log(0.5))), (("1", 0.0),))
    assert changed_probability(reply_with(top)) == pytest.approx(0.5)


def test_an_answer_that_is_not_listed_counts_with_what_is_left_for_it():
    top = ((("1", math.log(0.9)), ("Yes", math.log(0.06))),)
    assert changed_probability(reply_with(top)) == pytest.approx(0.9 / 0.94)
    top = ((("0", math.log(0.5)), ("Yes", math.log(0.1))),)
    assert changed_probability(reply_with(top)) == pytest.approx(0.1 / 0.6)


def test_no_answer_is_certain():
    assert changed_probability(reply_with(((("1", 0.0),),))) == pytest.approx(1 - 1e-6, abs=1e-12)
    assert changed_probability(reply_with(((("0", 0.0), ("1", -9999.0)),))) == pytest.approx(1e-6, abs=1e-12)


@pytest.mark.parametrize("top", [None, (), ((("Yes", -0.1), ("10", -3.0)),)])
def test_without_either_answer_there_is_no_probability(top):
    assert changed_probability(reply_with(top)) is None


def test_each_pair_gets_its_own_exact_probability(server):
    server.answer = lists_tokens
    expected = [(number + 1) / (number + 51) for number in range(40)]
    assert changed(fitted(), PAIRS) == pytest.approx(expected)
    assert len(server.seen) == 40
    wanted = {"max_tokens": 1, "temperature": 1.0, "logprobs": True, "top_logprobs": 20}
    assert all(wanted.items() <= seen.body.items() and "n" not in seen.body for seen in server.seen)


def test_a_server_that_lists_fewer_tokens_is_asked_for_fewer(server):
    server.answer = lambda seen: (
        refusal(400, "top_logprobs must be at most 5") if seen.body["top_logprobs"] > 5 else lists_tokens(seen)
    )
    assert changed(fitted(), PAIRS[:4]) == pytest.approx([1 / 51, 2 / 52, 3 / 53, 4 / 54])
    assert [seen.body["top_logprobs"] for seen in server.seen] == [20, 5, 5, 5, 5]


def test_exact_alone_says_so_where_the_server_lists_nothing(server):
    server.answer = chat("1")
    with pytest.raises(
        PredictorError, match=r"^mode: .* 3 pairs, the first about the pair of 'evidence 0' \(incorrect"
    ):
        fitted(mode="exact").predict_proba(PAIRS[:3])
    server.answer = refusal(400, "logprobs are not supported")
    with pytest.raises(EndpointError, match="logprobs are not supported"):
        fitted(mode="exact").predict_proba(PAIRS[:3])


# Samples


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0", 0),
        (" 1\n", 1),
        ("1.", 1),
        ("Answer: 1", 1),
        ("answer 0.", 0),
        ("**Answer:** 1", 1),
        ("**0**", 0),
        ("(1)", 1),
        ("'0'", 0),
        ("", None),
        ("10", None),
        ("-1", None),
        ("1.0", None),
        ("0.7", None),
        ("1 or 0", None),
        ("yes", None),
        ("2", None),
        ("Answer:", None),
        ("It did not change, so 0", None),
        ("١", None),
    ],
)
def test_a_reply_is_one_digit_or_unreadable(text, value):
    assert parse_reply(text) == value


def test_a_server_without_likelihoods_is_sampled_instead(server):
    server.answer = lists_none("1", "0", "Answer: 1", "1.", "1")
    assert changed(fitted(), PAIRS[:3]) == pytest.approx([4.5 / 6] * 3)
    sampled = [seen.body for seen in server.seen if "logprobs" not in seen.body]
    assert [body["n"] for body in sampled] == [5, 5, 5]
    assert all(body["temperature"] == 1.0 and body["max_tokens"] == 8 for body in sampled)
    assert len(server.seen) == 4


def test_a_server_that_refuses_likelihoods_is_sampled_instead(server):
    server.answer = lambda seen: refusal(422, "no logprobs") if "logprobs" in seen.body else chat(*["0"] * 5)
    assert changed(fitted(), PAIRS[:3]) == pytest.approx([0.5 / 6] * 3)


def test_one_pair_without_listed_answers_is_sampled_alone(server):
    def answer(seen):
        if "logprobs" not in seen.body:
            return chat(*["1"] * seen.body["n"])
        return chat("x", top=[{"x": -0.1}]) if "evidence 2" in question_in(seen) else chat("1", top=[LIKELY])

    server.answer = answer
    assert changed(fitted(), PAIRS[:4]) == pytest.approx([0.75, 0.75, 5.5 / 6, 0.75])


@pytest.mark.parametrize("refuses", [True, False], ids=["refuses several", "gives one"])
def test_a_server_of_one_reply_at_a_time_is_asked_several_times(server, refuses):
    def answer(seen):
        if refuses and seen.body.get("n", 1) > 1:
            return refusal(400, "n must be 1")
        return chat("1" if "evidence 0" in question_in(seen) else "0")

    server.answer = answer
    assert changed(fitted(mode="samples", samples=3), PAIRS[:3]) == pytest.approx([3.5 / 4, 0.5 / 4, 0.5 / 4])
    first = [seen for seen in server.seen if "evidence 0" in question_in(seen)]
    assert len(first) == (4 if refuses else 3)


def test_unreadable_replies_are_left_out_and_counted(server):
    server.answer = lists_none("1", "maybe", "0", "I think it changed", "1")
    reports = []
    probabilities = changed(fitted(mode="samples"), PAIRS[:2], lambda done, total, text: reports.append(text))
    assert probabilities == pytest.approx([2.5 / 4] * 2)
    assert "4 replies unreadable" in reports[-1]


def test_a_pair_of_unreadable_replies_alone_is_named(server):
    server.answer = lambda seen: chat(*["Perhaps" if "evidence 1" in question_in(seen) else "1"] * 5)
    with pytest.raises(
        PredictorError, match=r"none of the 5 replies of m about the pair of 'evidence 1' \(correct\)"
    ) as e:
        fitted(mode="samples").predict_proba(PAIRS[:2])
    assert "the first is 'Perhaps'" in str(e.value)


# Asking well


def test_equal_pairs_are_asked_about_once_and_never_again(server):
    server.answer = lists_tokens
    estimator = fitted()
    first = estimator.predict_proba([PAIRS[0], PAIRS[1], PAIRS[0]])
    assert len(server.seen) == 2 and first[0].tolist() == first[2].tolist()
    again = estimator.predict_proba([PAIRS[1], PAIRS[0]._replace(outcome=1), PAIRS[0]])
    assert len(server.seen) == 3
    assert again[0].tolist() == first[1].tolist() and again[2].tolist() == first[0].tolist()


def test_another_server_is_asked_again(server, monkeypatch):
    server.answer = lists_tokens
    estimator = fitted()
    first = estimator.predict_proba(PAIRS[:2])
    with fake_endpoint.running() as other:
        monkeypatch.setenv("HUNCH_LLM_URL", other.url)
        other.answer = lists_none("1")
        assert (estimator.predict_proba(PAIRS[:2]) != first).all() and other.seen
    monkeypatch.setenv("HUNCH_LLM_URL", server.url)
    asked = len(server.seen)
    assert (estimator.predict_proba(PAIRS[:2]) == first).all() and len(server.seen) == asked


@pytest.mark.parametrize(
    "change", [{"mode": "samples"}, {"samples": 7}, {"temperature": 0.3}, {"max_tokens": 9}, {"max_characters": 500}]
)
def test_under_other_settings_the_same_pair_is_asked_about_again(server, change):
    server.answer = lists_tokens
    estimator = fitted()
    estimator.predict_proba(PAIRS[:1])
    asked = len(server.seen)
    estimator.predict_proba(PAIRS[:1])
    assert len(server.seen) == asked
    estimator.set_params(**change)
    estimator.predict_proba(PAIRS[:1])
    assert len(server.seen) > asked


def test_what_was_answered_before_an_error_is_kept(server):
    refusing = [True]
    server.answer = lambda seen: (
        refusal(400, "too long") if refusing and "evidence 3" in question_in(seen) else lists_tokens(seen)
    )
    estimator = fitted(concurrency=1)
    with pytest.raises(EndpointError, match=r"too long.* It was asked about the pair of 'evidence 3' \(correct\)"):
        estimator.predict_proba(PAIRS[:6])
    refusing.clear()
    before = len(server.seen)
    estimator.predict_proba(PAIRS[:6])
    # By what was asked: a request that was on its way when the error came may be seen late.
    assert len({question_in(seen) for seen in server.seen[before:]}) == 3


def test_progress_counts_pairs_and_may_stop(server):
    server.answer = lists_none("1")
    reports = []
    fitted(mode="samples", samples=2).predict_proba(
        PAIRS[:4], lambda done, total, text: reports.append((done, total, text))
    )
    assert [done for done, _, _ in reports] == sorted(done for done, _, _ in reports)
    assert reports[-1] == (4, 4, "asking m: 64 tokens")
    with pytest.raises(Stopped):
        fitted().predict_proba(PAIRS, lambda done, total, text: done < 3)
    assert len(server.seen) < 40


def test_a_refused_key_ends_it_at_once_without_showing_the_key(server):
    server.answer = refusal(401, f"wrong key {KEY}")
    with pytest.raises(EndpointError, match=r"status 401: 'wrong key \[key\]'. Check the key") as caught:
        fitted().predict_proba(PAIRS)
    assert caught.value.permanent and KEY not in str(caught.value) and len(server.seen) == 1


def test_without_an_address_it_names_the_variable(monkeypatch):
    monkeypatch.delenv("HUNCH_LLM_URL", raising=False)
    with pytest.raises(PredictorError, match=r"^HUNCH_LLM_URL: not set"):
        fitted().predict_proba(PAIRS)
    with pytest.raises(PredictorError, match=r"^HUNCH_LLM_OTHER: not set"):
        fitted(url_variable="HUNCH_LLM_OTHER").predict_proba(PAIRS)


def test_nothing_to_predict_needs_no_server(monkeypatch):
    monkeypatch.delenv("HUNCH_LLM_URL", raising=False)
    assert fitted().predict_proba([]).shape == (0, 2)


def test_it_refuses_to_predict_before_it_has_learnt():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        registry.create("llm_prompt", {"model": "m"}).predict_proba(PAIRS)


# Saved, and in a study


@pytest.mark.thorough
@pytest.mark.slow
def test_it_reloads_to_the_same_prompts_in_a_fresh_process_and_holds_no_key(server, tmp_path):
    server.answer = lists_tokens
    estimator = fitted(5, shots=4)
    expected = estimator.predict_proba(PAIRS[:5])
    prompts = [seen.body["messages"] for seen in server.seen]
    artifacts.save(estimator, tmp_path / "saved")
    written = b"".join(path.read_bytes() for path in (tmp_path / "saved").iterdir())
    assert KEY.encode() not in written and server.url.encode() not in written
    server.seen.clear()
    code = f"""
from predictors import artifacts
from tests.predictors.test_llm_prompt import PAIRS
print(artifacts.load({str(tmp_path / "saved")!r}).predict_proba(PAIRS[:5]).tobytes().hex())
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == expected.tobytes().hex()
    key = json.dumps
    assert sorted(map(key, prompts)) == sorted(key(seen.body["messages"]) for seen in server.seen)


@pytest.mark.slow
def test_it_works_as_the_predictor_of_a_stage(server, tmp_path):
    server.answer = lists_tokens
    pairs = some_pairs(12)
    trained = training.train_member("llm_prompt", {"model": "m"}, 1, 0, pairs, [0, 1, 1] * 4, None, tmp_path / "member")
    assert trained["loss"] == pytest.approx(-(math.log(1 / 3) / 3 + math.log(2 / 3) * 2 / 3))
    assert trained["n_examples"] == 12 and trained["steps"] == 0
    scores = training.score([tmp_path / "member"], (pair for pair in PAIRS), block=16)
    assert scores == pytest.approx(np.array([(number + 1) / (number + 51) for number in range(40)]), abs=1e-6)
    training.forget_predictors()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", ""),
        ("url_variable", "SECRET_KEY"),
        ("key_variable", "HUNCH_IDENTITY_KEY"),
        ("key_variable", "sk-secret"),
        ("shots", -1),
        ("mode", "sample"),
        ("samples", 0),
        ("temperature", -0.1),
        ("max_tokens", 0),
        ("max_characters", 10),
        ("concurrency", 0),
        ("timeout", 0),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(PredictorError, match=f"^{field}: ") as caught:
        LlmPromptSettings(**{field: value})
    assert "sk-secret" not in str(caught.value)


OWN = """use = "change"
system = "Be brief."
right = "solved"
wrong = "missed"
prompt = "{evidence} {outcome} {target}?"
"""


def test_a_template_of_ones_own_has_its_system_message_and_stays_with_what_was_fitted(server, tmp_path):
    server.answer = lists_tokens
    estimator = fitted(template=OWN, shots=0)
    changed(estimator, PAIRS[1:2])
    artifacts.save(estimator, tmp_path / "saved")
    again = artifacts.load(tmp_path / "saved")
    changed(again, PAIRS[2:3])
    for seen, said in zip(server.seen, ("evidence 1 solved target 1?", "evidence 2 missed target 2?"), strict=True):
        assert [(message["role"], message["content"]) for message in seen.body["messages"]] == [
            ("system", "Be brief."),
            ("user", said),
        ]
    assert again.template_.text == OWN


def test_another_template_asks_again(server):
    server.answer = lists_tokens
    estimator = fitted(shots=0)
    changed(estimator, PAIRS[1:2])
    estimator.template_ = template_of(OWN, "change")
    changed(estimator, PAIRS[1:2])
    assert len(server.seen) == 2


def test_a_plain_average_is_the_share_of_ones(server):
    server.answer = lists_none("1", "1", "0", "1", "maybe")
    assert changed(fitted(mode="samples", average="plain"), PAIRS[:1]) == [0.75]
    server.answer = lists_none("1", "1", "1", "1", "1")
    assert changed(fitted(mode="samples", average="plain"), PAIRS[:1]) == [pytest.approx(1 - 1e-6)]


def test_drawn_examples_come_as_often_as_their_class():
    labels = [1.0] * 4 + [0.0] * 36
    ones = [
        sum(example.label for example in fitted(seed, PAIRS, labels, shots=10, examples="drawn").examples_)
        for seed in range(60)
    ]
    assert sum(ones) / 60 < 2 < 4 < max(ones) + 2
