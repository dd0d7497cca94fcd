"""Bytes become whole requests, however they are cut; what can be understood in two ways is refused."""

import hashlib
from itertools import pairwise
from typing import Any

import pytest
from gunicorn import http
from gunicorn.config import Config
from gunicorn.http import errors
from hypothesis import given
from hypothesis import strategies as st

from survey.serving import limits
from survey.serving.reading import BodyRefusedError, RequestReader, WholeRequest

PEER = ("127.0.0.1", 40000)


def reader(limit: int = 1000) -> RequestReader:
    config = Config()
    return RequestReader(parse=lambda head: next(http.get_parser(config, [head], PEER)), limit=lambda path: limit)


def all_of(one: RequestReader, data: bytes) -> list[WholeRequest]:
    one.feed(data)
    return list(iter(one.take, None))


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b""))


def post(body: bytes, *headers: bytes, path: bytes = b"/s/demo/") -> bytes:
    lines = [b"POST %b HTTP/1.1" % path, b"Host: localhost", *headers]
    return b"\r\n".join([*lines, b"", body])


MIXED = (
    b"\r\nGET /first HTTP/1.1\r\nHost: localhost\r\n\r\n"
    + post(b"a=1&b=2", b"Content-Length: 7")
    + post(chunked(b"hello ", b"world"), b"Transfer-Encoding: chunked")
    + post(b"3;name=value\r\nabc\r\n0\r\nTrailer-One: 1\r\n\r\n", b"Transfer-Encoding: Chunked")
    + b"HEAD /last HTTP/1.1\r\nHost: localhost\r\n\r\n"
)


def described(request: WholeRequest) -> tuple[Any, ...]:
    return request.message.method, request.message.path, request.body.read(), request.length, request.is_refused


@pytest.mark.slow
@given(st.lists(st.integers(0, len(MIXED)), max_size=30))
def test_however_the_bytes_are_cut_the_same_requests_come_out(cuts: list[int]) -> None:
    one = reader()
    found = []
    places = [0, *sorted(cuts), len(MIXED)]
    for start, end in pairwise(places):
        found += [described(request) for request in all_of(one, MIXED[start:end])]
    assert found == [
        ("GET", "/first", b"", 0, False),
        ("POST", "/s/demo/", b"a=1&b=2", 7, False),
        ("POST", "/s/demo/", b"hello world", 11, False),
        ("POST", "/s/demo/", b"abc", 3, False),
        ("HEAD", "/last", b"", 0, False),
    ]
    assert not one.has_begun


@pytest.mark.slow
@given(st.binary(max_size=3000), st.integers(1, 700))
def test_a_body_arrives_as_it_was_sent(body: bytes, size: int) -> None:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    for sent in (
        post(body, b"Content-Length: %d" % len(body)),
        post(chunked(*pieces), b"Transfer-Encoding: chunked"),
    ):
        (request,) = all_of(reader(limit=3000), sent)
        assert hashlib.sha256(request.body.read()).digest() == hashlib.sha256(body).digest()


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (post(b"", b"Content-Length: 1", b"Content-Length: 2"), errors.InvalidHeader),
        (post(b"", b"Content-Length: +1"), errors.InvalidHeader),
        (post(b"", b"Content-Length: 1", b"Transfer-Encoding: chunked"), errors.InvalidHeader),
        (post(b"", b"Transfer-Encoding: gzip, chunked"), errors.UnsupportedTransferCoding),
        (post(b"", b"Transfer-Encoding: chunked, chunked"), errors.InvalidHeader),
        (post(b"0x3\r\nabc\r\n", b"Transfer-Encoding: chunked"), errors.InvalidChunkSize),
        (post(b"+3\r\nabc\r\n", b"Transfer-Encoding: chunked"), errors.InvalidChunkSize),
        (post(b"-1\r\nabc\r\n", b"Transfer-Encoding: chunked"), errors.InvalidChunkSize),
        (post(b"3 \r\nabc\r\n", b"Transfer-Encoding: chunked"), errors.InvalidChunkSize),
        (post(b"\r\n", b"Transfer-Encoding: chunked"), errors.InvalidChunkSize),
        (post(b"123456789\r\n", b"Transfer-Encoding: chunked"), errors.InvalidChunkSize),
        (post(b"3\nabc\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"), errors.InvalidChunkSize),
        (post(b"3;a\nb\r\nabc\r\n", b"Transfer-Encoding: chunked"), errors.InvalidChunkExtension),
        (post(b"3\r\nabcd\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"), errors.ChunkMissingTerminator),
        (post(b"3\r\nabc\n0\r\n\r\n", b"Transfer-Encoding: chunked"), errors.ChunkMissingTerminator),
        (post(b"3;" + b"x" * 5000, b"Transfer-Encoding: chunked"), errors.InvalidChunkSize),
        (post(b"0\r\n" + b"A: b\r\n" * 3000, b"Transfer-Encoding: chunked"), errors.LimitRequestHeaders),
        (b"GET / HTTP/9.9\r\n\r\n", errors.InvalidHTTPVersion),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * limits.HEAD_LIMIT, errors.LimitRequestHeaders),
        (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", errors.InvalidHeaderName),
    ],
)
def test_it_refuses(sent: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        all_of(reader(), sent)


@pytest.mark.parametrize(
    "sent",
    [
        post(b"", b"Content-Length: 1001"),
        post(b"", b"Content-Length: 99999999999"),
        post(b"3e9\r\n", b"Transfer-Encoding: chunked"),
        post(b"3e8\r\n" + b"x" * 1000 + b"\r\n1\r\n", b"Transfer-Encoding: chunked"),
    ],
)
def test_a_body_over_the_limit_is_not_read_and_the_application_can_still_answer(sent: bytes) -> None:
    (request,) = all_of(reader(limit=1000), sent)
    assert request.is_refused and request.length >= (1001 if request.is_chunked else 0)
    with pytest.raises(BodyRefusedError):
        request.body.read()


def test_a_body_of_exactly_the_limit_is_read() -> None:
    (request,) = all_of(reader(limit=1000), post(b"x" * 1000, b"Content-Length: 1000"))
    assert len(request.body.read()) == 1000 and not request.is_refused


def test_the_limit_is_asked_for_the_path_as_the_application_will_see_it() -> None:
    asked = []
    one = RequestReader(
        parse=lambda head: next(http.get_parser(Config(), [head], PEER)), limit=lambda path: asked.append(path) or 10
    )
    all_of(one, b"GET /%61dmin/?x=1 HTTP/1.1\r\n\r\n")
    assert asked == ["/admin/"]
    assert limits.body_limit("/admin/survey/bank/add/") > limits.body_limit("/s/admin/")


@pytest.mark.parametrize("body", [b"Content-Length: 3", b"Transfer-Encoding: chunked"])
def test_who_waits_for_a_word_to_go_on_gets_it_once(body: bytes) -> None:
    one = reader()
    assert all_of(one, post(b"", b"Expect: 100-continue", body)) == []
    assert (one.continue_is_due(), one.continue_is_due()) == (True, False)


@pytest.mark.parametrize(
    "sent",
    [
        post(b"a", b"Expect: 100-continue", b"Content-Length: 3"),
        post(b"", b"Content-Length: 3"),
        post(b"", b"Expect: 100-continue", b"Content-Length: 3").replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
def test_who_does_not_wait_gets_none(sent: bytes) -> None:
    one = reader()
    assert all_of(one, sent) == []
    assert not one.continue_is_due()


def test_what_is_held_of_a_body_is_counted() -> None:
    one = reader()
    all_of(one, post(b"abcd", b"Content-Length: 10"))
    assert (one.held, one.has_begun) == (4, True)
