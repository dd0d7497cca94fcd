from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import numpy as np
import pytest

from predictors.endpoints import ChatCall, Endpoint, EndpointError, Usage
from predictors.errors import PredictorError, Stopped
from tests.predictors import fake_endpoint
from tests.predictors.fake_endpoint import Raw, chat, refusal
from tests.waiting import PATIENCE

KEY = "sk-secret-0123456789"
QUESTION = {"model": "m", "messages": [{"role": "user", "content": "2 + 2?"}]}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with fake_endpoint.running() as fake:
        yield fake


@pytest.fixture
def slept():
    return []


@pytest.fixture
def connect(server, slept):
    """Endpoints whose waits take no time and are kept in `slept`."""

    async def sleep(seconds):
        slept.append(seconds)

    def make(**options):
        return Endpoint(server.url, **{"api_key": KEY, "sleep": sleep, **options})

    return make


def ask(endpoint, **call):
    return endpoint.map([ChatCall(**{**QUESTION, **call})])[0]


def refused(endpoint, **call):
    with pytest.raises(EndpointError) as caught:
        ask(endpoint, **call)
    assert KEY not in str(caught.value) and KEY not in repr(caught.value)
    return caught.value


# Asking


def test_a_question_is_sent_as_the_protocol_has_it_and_its_reply_read(server, connect):
    server.answer = chat("4", None, prompt_tokens=11, completion_tokens=2)
    endpoint = connect()
    reply = ask(endpoint, temperature=0.0, max_tokens=5, n=2, seed=3, extra={"top_k": 1})
    assert reply.texts == ("4", "") and reply.raw_finish == ("stop", "stop") and reply.top_logprobs is None
    assert reply.usage == endpoint.usage == Usage(11, 2)
    [seen] = server.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.body == {**QUESTION, "temperature": 0.0, "max_tokens": 5, "n": 2, "seed": 3, "top_k": 1}


def test_what_is_not_set_is_left_out(server, connect):
    ask(connect(api_key=None), top_logprobs=5)
    assert server.seen[0].body == QUESTION
    assert "Authorization" not in server.seen[0].headers


def test_the_likeliest_tokens_are_read_at_each_place(server, connect):
    server.answer = chat("10", top=[{"1": -0.1, "0": -2.5}, {"0": 1e-9, "7": -9999.0}])
    reply = ask(connect(), logprobs=True, top_logprobs=2)
    assert reply.top_logprobs == ((("1", -0.1), ("0", -2.5)), (("0", 0.0), ("7", -9999.0)))
    assert server.seen[0].body["logprobs"] is True and server.seen[0].body["top_logprobs"] == 2


def test_the_token_that_was_taken_counts_where_no_others_are_listed(server, connect):
    server.answer = Raw(
        {"choices": [{"message": {"content": "1"}, "logprobs": {"content": [{"token": "1", "logprob": -0.25}]}}]}
    )
    assert ask(connect(), logprobs=True).top_logprobs == ((("1", -0.25),),)


def test_tokens_are_summed_over_calls(server, connect):
    endpoint = connect()
    endpoint.map([ChatCall(**QUESTION)] * 5)
    assert endpoint.usage == Usage(35, 5) and endpoint.usage.total_tokens == 40


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([None, -0.5, 0.02], "above 0"),
        ([None, -0.5], "lists no log-probabilities"),
        ([None, -0.5, 0.005], ""),
    ],
)
def test_the_tokens_of_a_prompt_have_logarithms_of_probabilities(server, connect, values, said):
    """A hair above 0 is rounding, and 0; the likeliest tokens are listed in the order of their chances."""
    listed = {
        "tokens": ["a", " b", " c"],
        "token_logprobs": values,
        "top_logprobs": [None, {"x": -2.0, " b": -0.5}, {}],
    }
    server.answer = Raw({"choices": [{"text": "", "logprobs": listed}]})
    ((_number, outcome),) = connect().prompt_tokens(model="m", texts=["a b c"])
    if said:
        assert isinstance(outcome, EndpointError) and outcome.permanent and said in str(outcome)
        return
    assert outcome.strings == ("a", " b", " c") and outcome.log_probabilities == (None, -0.5, 0.0)
    assert outcome.likeliest == ((), ((" b", -0.5), ("x", -2.0)), ())
    sent = {"model": "m", "prompt": "a b c", "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
    assert server.seen[0].body == sent
    listed["top_logprobs"].pop()  # Of two it is not known which of the three tokens they belong to.
    ((_number, outcome),) = connect().prompt_tokens(model="m", texts=["a b c"])
    assert outcome.strings == ("a", " b", " c") and outcome.likeliest == ()


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}, Usage(7, 2)),
        ({"completion_tokens": 2, "total_tokens": 9}, Usage(7, 2)),
        ({"completion_tokens": 2}, Usage(0, 2)),
        ({"prompt_tokens": "7", "completion_tokens": True}, Usage(0, 0)),
        (None, Usage(0, 0)),
    ],
)
def test_tokens_are_counted_as_far_as_the_server_says(server, connect, usage, counted):
    server.answer = Raw({"choices": [{"message": {"content": "1"}}], "usage": usage})
    assert ask(connect()).usage == counted


def test_a_limit_by_its_newer_name_is_sent_once_the_server_asks_for_it(server, connect):
    def answer(seen):
        if "max_tokens" in seen.body:
            return refusal(400, "Unsupported parameter: use 'max_completion_tokens' instead.")
        return chat(str(seen.body["max_completion_tokens"]))

    server.answer = answer
    endpoint = connect(concurrency=3)
    replies = endpoint.map([ChatCall(**QUESTION, max_tokens=9)] * 6)
    assert [reply.texts for reply in replies] == [("9",)] * 6
    before = len(server.seen)
    ask(endpoint, max_tokens=9)
    assert len(server.seen) == before + 1


# Trying again


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_a_passing_failure_is_tried_again_after_a_longer_and_longer_wait(server, connect, slept, status):
    server.script = [refusal(status)] * 4
    assert ask(connect()).texts == ("1",)
    assert len(server.seen) == 5
    assert [0.25 * 2**i <= wait <= 0.5 * 2**i for i, wait in enumerate(slept)] == [True] * 4


def test_it_waits_as_many_seconds_as_the_server_says(server, connect, slept):
    server.script = [refusal(429, headers={"Retry-After": "7"})]
    ask(connect())
    assert len(slept) == 1 and 6.5 < slept[0] < 7.8


@pytest.mark.parametrize("hours", [0, 2])
def test_it_waits_until_the_date_that_the_server_says(server, connect, slept, hours):
    until = datetime.now(timezone(timedelta(hours=hours))) + timedelta(seconds=20)
    server.script = [refusal(503, headers={"Retry-After": format_datetime(until)})]
    ask(connect())
    assert len(slept) == 1 and 15 < slept[0] < 22.1


@pytest.mark.parametrize(
    ("retry_after", "longest"), [("86400", 66.1), ("inf", 66.1), ("nan", 0.5), ("soon", 0.5), ("-3", 0.5)]
)
def test_a_strange_or_very_long_retry_after_does_not_stop_it(server, connect, slept, retry_after, longest):
    server.script = [refusal(429, headers={"Retry-After": retry_after})]
    ask(connect())
    assert len(slept) == 1 and 0 < slept[0] <= longest


def test_a_rate_limit_holds_back_the_other_calls_too(server, connect, slept):
    server.script = [refusal(429, headers={"Retry-After": "30"})]
    connect(concurrency=1).map([ChatCall(**QUESTION)] * 3)
    assert len([wait for wait in slept if wait > 25]) == 3


def test_a_rate_limit_for_ever_ends_with_how_often_it_tried(server, connect):
    server.answer = refusal(429, "slow down")
    error = refused(connect(tries=3))
    assert not error.permanent and error.status == 429
    assert "status 429: 'slow down'" in str(error) and "Tried 3 times" in str(error)
    assert len(server.seen) == 3


def test_a_wait_beyond_the_deadline_is_not_begun(server, connect, slept):
    server.answer = refusal(429, headers={"Retry-After": "50"})
    error = refused(connect(deadline=40.0))
    assert not error.permanent and "Tried 1 time in 0 seconds" in str(error)
    assert slept == []


def test_a_used_up_budget_is_not_tried_again(server, connect):
    server.answer = refusal(429, "You exceeded your current quota", code="insufficient_quota")
    error = refused(connect())
    assert error.permanent and len(server.seen) == 1


def test_a_connection_cut_in_the_middle_of_a_reply_is_tried_again(server, connect):
    long = chat("4" * 5000)
    server.script = [Raw(long.body, cut=3000), Raw(long.body, cut=len(long.encoded())), long]
    assert ask(connect()).texts == ("4" * 5000,)
    assert len(server.seen) == 3


def test_a_reply_that_ends_in_the_middle_is_tried_again_and_then_said(server, connect):
    server.answer = Raw('{"choices": [{"mess')
    error = refused(connect(tries=2))
    assert not error.permanent and len(server.seen) == 2
    assert 'cut off or no JSON; it begins \'{"choices": [{"mess\'' in str(error)


def test_a_server_that_is_not_there_is_named(connect, server):
    endpoint = Endpoint("http://127.0.0.1:9/v1", KEY, tries=1)
    error = refused(endpoint)
    assert not error.permanent and "http://127.0.0.1:9/v1: " in str(error) and "ConnectError" in str(error)


def test_a_slow_reply_ends_at_the_timeout(server, connect):
    release = threading.Event()
    server.answer = lambda seen: (release.wait(20), chat("late"))[1]
    error = refused(connect(timeout=0.2, tries=2))
    release.set()
    assert not error.permanent and "no complete answer within 0.2 seconds. Tried 2 times" in str(error)


# Not trying again


@pytest.mark.parametrize(
    ("status", "hint"), [(400, ""), (401, "Check the key."), (403, "Check the key"), (404, "Check the address")]
)
def test_a_refusal_is_final_and_says_address_status_and_reason_but_not_the_key(server, connect, status, hint):
    server.answer = refusal(status, f"because of {KEY}" + " and so on" * 100)
    error = refused(connect())
    assert error.permanent and error.status == status and len(server.seen) == 1
    assert str(error).startswith(f"{server.url}: status {status}: 'because of [key] and so on")
    assert hint in str(error) and len(str(error)) < 400


def test_a_refusal_inside_a_reply_that_says_200_counts_by_its_code(server, connect):
    server.script = [Raw({"error": {"message": "busy", "code": 429}})]
    assert ask(connect()).texts == ("1",)
    server.answer = Raw({"error": "model 'm' not found"})
    error = refused(connect())
    assert error.permanent and "model 'm' not found" in str(error)


def test_a_web_page_instead_of_json_is_final(server, connect):
    server.answer = Raw("<!doctype html><title>Welcome</title>", content_type="text/html; charset=utf-8")
    error = refused(connect())
    assert error.permanent and "web page instead of JSON; check the address" in str(error)
    server.script = [Raw("<html>Bad gateway</html>", status=502, content_type="text/html")]
    server.answer = chat("1")
    assert ask(connect()).texts == ("1",)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"object": "chat.completion"}, "no field 'choices'"),
        ({"choices": []}, "'choices' is empty"),
        ({"choices": [{"text": "4"}]}, "no field 'message'"),
        ({"choices": [{"message": {"content": ["4"]}}]}, "'content' is no text"),
        ({"choices": 4}, "not what the protocol asks for"),
        ({"choices": [{"message": {"content": "1"}, "logprobs": {"content": [3]}}]}, "not what the protocol asks for"),
        ([1, 2], "no JSON object"),
    ],
)
def test_a_reply_of_another_shape_is_final_and_shown(server, connect, body, said):
    server.answer = Raw(body)
    error = refused(connect())
    assert error.permanent and said in str(error) and "begins" in str(error) and len(server.seen) == 1


def test_it_is_not_sent_on_to_another_address(server, connect):
    server.answer = Raw(b"", status=307, headers={"Location": "https://elsewhere.example/v1?token=1"})
    error = refused(connect())
    assert error.permanent and "status 307 sends on to https://elsewhere.example/v1; give the final" in str(error)


def test_a_reply_without_end_is_given_up(server, connect):
    server.answer = chat("4" * 50_000)
    error = refused(connect(max_bytes=10_000))
    assert error.permanent and "longer than 10000 bytes" in str(error)


# The key


def test_no_half_of_the_key_is_left_where_a_long_refusal_is_cut(server, connect):
    server.answer = refusal(400, "x" * 190 + KEY + "y" * 50)
    assert "sk-secret" not in str(refused(connect()))


def test_the_key_is_in_no_text_about_the_endpoint(server, connect, caplog):
    caplog.set_level(logging.DEBUG)
    endpoint = connect(tries=2)
    server.script = [refusal(500, f"key {KEY}"), Raw(f"{KEY} is no JSON")]
    error = refused(endpoint)
    chain, seen = error, ""
    while chain is not None:
        seen, chain = f"{seen}{chain!r}", chain.__cause__ or chain.__context__
    assert KEY not in repr(endpoint) + seen + caplog.text


def test_a_key_that_no_header_can_hold_is_refused_without_showing_it():
    with pytest.raises(PredictorError, match=r"^api_key: ") as caught:
        Endpoint("http://localhost/v1", "sk-ab\ncd")
    assert "sk-ab" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "https://host/v1"),
        ("localhost:11434/v1", "http:// or https://"),
        ("ftp://host/v1", "http:// or https://"),
        ("http://", "a host"),
        ("http://host:notaport/v1", "not an address"),
        ("https://me:sk-secret@host/v1", "no user"),
        ("https://host/v1?key=sk-secret", "query"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_showing_it(address, said):
    with pytest.raises(PredictorError, match=r"^base_url: ") as caught:
        Endpoint(address)
    assert said in str(caught.value) and "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"), [("concurrency", 0), ("tries", 0), ("timeout", 0), ("deadline", float("nan")), ("max_bytes", 0)]
)
def test_an_option_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(PredictorError, match=f"^{field}: "):
        Endpoint("http://localhost/v1", **{field: value})


def test_address_and_key_come_from_the_named_variables(server, monkeypatch):
    monkeypatch.setenv("HUNCH_LLM_URL", server.url + "/")
    monkeypatch.setenv("HUNCH_LLM_KEY", KEY + "\n")
    names = {"url_variable": "HUNCH_LLM_URL", "key_variable": "HUNCH_LLM_KEY"}
    ask(Endpoint.from_environment(**names))
    assert server.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("HUNCH_LLM_URL", "nonsense")
    with pytest.raises(PredictorError, match=r"^HUNCH_LLM_URL: needs http"):
        Endpoint.from_environment(**names)
    monkeypatch.delenv("HUNCH_LLM_URL")
    with pytest.raises(PredictorError, match=r"^HUNCH_LLM_URL: not set"):
        Endpoint.from_environment(**names)


# Many at once


def test_as_many_calls_as_wished_are_in_flight_and_no_more(server, connect):
    together = threading.Barrier(6, timeout=PATIENCE)

    def answer(seen):
        together.wait()
        return chat(seen.body["messages"][0]["content"])

    server.answer = answer
    calls = [ChatCall("m", [{"role": "user", "content": str(number)}]) for number in range(24)]
    replies = connect(concurrency=6).map(calls)
    assert [reply.texts[0] for reply in replies] == [str(number) for number in range(24)]
    assert server.most_in_flight == 6


@pytest.mark.slow
def test_refusals_and_second_tries_never_put_more_in_flight(server, connect):
    def answer(seen):
        time.sleep(0.005)
        return refusal(429) if len(server.seen) % 3 == 0 else chat("1")

    server.answer = answer
    assert len(connect(concurrency=4, tries=50).map([ChatCall(**QUESTION)] * 60)) == 60
    assert len(server.seen) > 60
    assert server.most_in_flight <= 4


def test_a_proxy_of_the_environment_is_asked_instead_of_the_server(server, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    assert ask(Endpoint("http://models.invalid/v1")).texts == ("1",)
    assert server.seen[0].path == "http://models.invalid/v1/chat/completions"


def test_each_gives_errors_beside_replies_and_goes_on(server, connect):
    def answer(seen):
        text = seen.body["messages"][0]["content"]
        return refusal(400, "too long") if text == "2" else chat(text)

    server.answer = answer
    calls = [ChatCall("m", [{"role": "user", "content": str(number)}]) for number in range(4)]
    replies = dict(connect().each(calls))
    assert isinstance(replies.pop(2), EndpointError)
    assert {index: reply.texts[0] for index, reply in replies.items()} == {0: "0", 1: "1", 3: "3"}


def test_a_reader_who_stops_has_few_paid_calls_ahead(server, connect):
    calls = [ChatCall(**QUESTION)] * 200
    for count, _ in enumerate(connect(concurrency=2).each(calls), start=1):
        if count == 10:
            time.sleep(0.2)  # a slow reader: what is answered meanwhile waits for it
            break
    assert 10 <= len(server.seen) <= 9 + 2 * 2


def test_the_first_error_of_a_map_ends_it(server, connect):
    server.script = [refusal(401)]
    with pytest.raises(EndpointError):
        connect(concurrency=2).map([ChatCall(**QUESTION)] * 100)
    assert len(server.seen) < 100


def test_progress_counts_calls_in_the_callers_thread_and_may_stop(server, connect):
    heard = []

    def progress(done, total, text):
        heard.append((done, total, threading.current_thread()))
        return done < 3

    with pytest.raises(Stopped):
        connect(concurrency=1).map([ChatCall(**QUESTION)] * 50, progress)
    assert heard == [(done, 50, threading.main_thread()) for done in (1, 2, 3)]
    assert len(server.seen) < 10


def test_progress_is_heard_while_nothing_arrives_and_stops_what_is_in_flight(server, connect, monkeypatch):
    monkeypatch.setattr("predictors.endpoints._TICK", 0.01)
    release = threading.Event()
    server.answer = lambda seen: (release.wait(20), chat("late"))[1]
    beats = []
    started = time.monotonic()
    with pytest.raises(Stopped):
        connect(concurrency=2).map([ChatCall(**QUESTION)] * 2, lambda *beat: beats.append(beat) or len(beats) < 3)
    release.set()
    assert [done for done, _, _ in beats] == [0, 0, 0]
    assert time.monotonic() - started < 15, "it waited for replies that nobody wants"


def test_no_thread_is_left_behind(server, connect):
    before = {thread for thread in threading.enumerate() if thread.name == "endpoint"}
    endpoint = connect()
    ask(endpoint)
    server.answer = refusal(401)
    with pytest.raises(EndpointError):
        endpoint.map([ChatCall(**QUESTION)] * 5)
    for _ in endpoint.each([ChatCall(**QUESTION)] * 5):
        break
    assert {thread for thread in threading.enumerate() if thread.name == "endpoint"} == before


def test_no_calls_need_no_server():
    assert Endpoint("http://127.0.0.1:9/v1").map([]) == []


# Embeddings


def test_texts_are_embedded_in_their_order_a_batch_at_a_time(server, connect):
    server.answer = fake_endpoint.embeddings
    texts = [chr(97 + number) * (number + 1) for number in range(7)]
    heard = []
    endpoint = connect()
    vectors = endpoint.embeddings(
        model="e",
        texts=texts,
        extra={"input_type": "document"},
        batch=3,
        progress=lambda done, total, text: heard.append((done, total)),
    )
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[number + 1, 97 + number] for number in range(7)]
    # While an answer takes long, it is said again how far it is.
    assert [step for step in dict.fromkeys(heard) if step[0]] == [(1, 3), (2, 3), (3, 3)]
    assert endpoint.usage == Usage(7, 0)
    assert {seen.path for seen in server.seen} == {"/v1/embeddings"}
    first = next(seen.body for seen in server.seen if seen.body["input"][0] == "a")
    assert first == {"model": "e", "input": ["a", "bb", "ccc"], "input_type": "document"}
    assert endpoint.embeddings(model="e", texts=[]).shape == (0, 0)


@pytest.mark.parametrize(
    "data",
    [
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [2.0, 3.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [None]}],
        [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}],
        [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}],
        [{"index": 0}, {"index": 1}],
        [{"index": "a", "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}],
    ],
    ids=["too few", "twice", "ragged", "null", "text", "empty", "missing", "odd index"],
)
def test_embeddings_of_another_shape_are_refused(server, connect, data):
    server.answer = Raw({"data": data})
    with pytest.raises(EndpointError, match="not what the protocol asks for") as caught:
        connect().embeddings(model="e", texts=["a", "b"])
    assert caught.value.permanent


def test_embeddings_that_change_their_length_between_requests_are_refused(server, connect):
    server.answer = lambda seen: Raw({"data": [{"embedding": [1.0] * len(seen.body["input"][0])}]})
    with pytest.raises(EndpointError, match=r"vectors of \[1, 2\] numbers"):
        connect().embeddings(model="e", texts=["a", "bb"], batch=1)


def test_a_reply_of_as_many_bytes_as_are_read_is_taken_and_one_more_is_not(server, connect):
    server.answer = chat("4" * 500)
    size = len(server.answer.encoded())
    assert ask(connect(max_bytes=size)).texts == ("4" * 500,)
    assert f"longer than {size - 1} bytes" in str(refused(connect(max_bytes=size - 1)))
