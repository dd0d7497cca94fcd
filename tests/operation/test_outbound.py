"""What leaves for addresses that a user has named: it stays out of our own network, and nobody can make it hang."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from survey.operation import outbound
from survey.operation.outbound import AddressRefused, NotSent, is_outside, post, read_address, resolve

from .receiving import Receiving, receiving

INSIDE = (
    *("127.0.0.1", "0.0.0.0", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1"),  # noqa: S104
    *("255.255.255.255", "198.18.0.1", "192.0.2.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "2002:a00:1::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
    *("2001:db8::1", "nonsense", ""),
)
OUTSIDE = ("8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")
REFUSED = {
    "http://example.org/hook": "https://HOST/PATH",
    "ftp://example.org/": "https://HOST/PATH",
    "https://": "https://HOST/PATH",
    "/hook": "https://HOST/PATH",
    "https://user:password@example.org/": "user name",
    "https://example.org/#part": "#",
    "https://example.org/a b": "spaces",
    "https://example.org/\r\nHost: inside": "spaces",
    "https://exämple.org/": "ASCII",
    "https://[::1/": "not an address",
    "https://example.org:99999/": "not an address",
    "https://example.org/" + "a" * 500: "more than",
}


@pytest.fixture
def inside(settings: Any) -> None:
    settings.HUNCH_WEBHOOKS_INSIDE = True


@pytest.fixture
def receiver(inside: None) -> Iterator[Receiving]:
    with receiving() as there:
        yield there


def names(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let each lookup of a name have the next of these answers; the returned list grows by what was looked up."""
    asked: list[str] = []

    def look_up(host: str, port: int, **_given: Any) -> list[Any]:
        asked.append(host)
        return [
            (socket.AF_INET6 if ":" in answer else socket.AF_INET, socket.SOCK_STREAM, 6, "", (answer, port))
            for answer in answers[min(len(asked), len(answers)) - 1]
        ]

    monkeypatch.setattr(outbound.socket, "getaddrinfo", look_up)
    return asked


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_of_our_own_network_is_inside(address: str) -> None:
    assert not is_outside(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_is_outside(address: str) -> None:
    assert is_outside(address)


@pytest.mark.parametrize(("address", "words"), REFUSED.items())
def test_what_no_webhook_can_have_is_refused_in_words(address: str, words: str) -> None:
    with pytest.raises(AddressRefused, match=words):
        read_address(address)


@pytest.mark.parametrize("found", [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::ffff:169.254.169.254"]])
def test_a_name_that_leads_inside_is_refused(monkeypatch: pytest.MonkeyPatch, found: list[str]) -> None:
    names(monkeypatch, found)
    with pytest.raises(AddressRefused, match="private network"):
        resolve(read_address("https://hook.example/"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "[::1]", "localhost"])
def test_no_spelling_of_this_machine_is_taken(host: str) -> None:
    with pytest.raises(AddressRefused):
        resolve(read_address(f"https://{host}/"))


def test_a_name_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_given: Any, **_named: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(outbound.socket, "getaddrinfo", unknown)
    with pytest.raises(AddressRefused, match="no host"):
        resolve(read_address("https://hook.example/"))


def test_the_name_is_resolved_once_and_the_connection_goes_to_what_was_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that means a public host when it is looked at, and this machine a moment later."""
    asked = names(monkeypatch, ["8.8.8.8"], ["127.0.0.1"])
    connected: list[Any] = []

    def connect(where: Any, timeout: float) -> Any:
        connected.append(where)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(outbound.socket, "create_connection", connect)
    with pytest.raises(NotSent, match="Connection refused"):
        post(read_address("https://hook.example/"), b"{}", {})
    assert (asked, connected) == (["hook.example"], [("8.8.8.8", 443)])


def test_a_request_is_sent_whole(receiver: Receiving) -> None:
    assert post(read_address(receiver.address), b'{"a": 1}', {"X-Hunch-Event": "evt_1"}) == 204
    assert receiver.requests[0].startswith(b"POST /hook?token=x HTTP/1.1\r\n")
    assert receiver.headers()["host"] == f"127.0.0.1:{receiver.port}"
    assert (receiver.headers()["x-hunch-event"], receiver.body()) == ("evt_1", b'{"a": 1}')


def test_no_redirect_is_followed(receiver: Receiving) -> None:
    receiver.answer = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {receiver.address}\r\n\r\n".encode()
    assert post(read_address(receiver.address), b"{}", {}) == 307
    assert len(receiver.requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize("answer", [None, "drip"])
def test_who_hangs_or_answers_byte_by_byte_is_given_up(
    receiver: Receiving, answer: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.answer = answer
    monkeypatch.setattr(outbound, "LONGEST", 0.4)
    with pytest.raises(NotSent):
        post(read_address(receiver.address), b"{}", {})


@pytest.mark.parametrize(
    "answer",
    [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40_000],
    ids=["nothing", "no HTTP", "half a head", "a head without end"],
)
def test_what_is_no_answer_is_reported(receiver: Receiving, answer: bytes) -> None:
    receiver.answer = answer
    with pytest.raises(NotSent):
        post(read_address(receiver.address), b"{}", {})


@pytest.mark.slow
def test_a_server_without_tls_is_reported(receiver: Receiving) -> None:
    receiver.answer = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with pytest.raises(NotSent):
        post(read_address(receiver.address.replace("http:", "https:")), b"{}", {})
