"""A connection against a server that sends bytes as the test says, so that every way of ending a reply is tried."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import ssl

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from predictors.connections import EndpointConnection, needs_proxy

pytestmark = pytest.mark.slow

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def talk(replies, *, ask=None, secure=None, trusted=None):
    """What `ask(client, url)` comes to while a server sends these bytes, one reply a request, and what it was sent.

    An empty reply closes the connection. The texts of the replies, one request a reply, if `ask` is not given.
    """
    requests, connections = [], []
    left = list(replies)

    async def handle(reader, writer):
        connections.append(writer)
        try:
            while left:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                requests.append(head + await reader.readexactly(length))
                reply = left.pop(0)
                writer.write(reply)
                await writer.drain()
                if not reply or b"close" in reply:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def ask_all(client, url):
        return [(await client.post(url, content=b"{}")).text for _ in replies]

    async def main():
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=secure)
        port = server.sockets[0].getsockname()[1]
        url = f"{'https' if secure else 'http'}://127.0.0.1:{port}/v1"
        transport = EndpointConnection(trusted or ssl.create_default_context())
        try:
            async with server, httpx.AsyncClient(transport=transport, timeout=20) as client:
                return await (ask or ask_all)(client, url)
        finally:
            for writer in connections:
                writer.close()

    return asyncio.run(main()), requests, len(connections)


def test_a_request_is_written_whole_and_its_reply_read():
    async def ask(client, url):
        reply = await client.post(f"{url}/chat?x=1", content=b'{"q": 1}', headers={"X-Mine": "yes"})
        return reply.status_code, reply.headers["Content-Type"], reply.text

    found, [sent], _ = talk(
        [b"HTTP/1.1 418 Teapot\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\ntea"], ask=ask
    )
    assert found == (418, "text/plain", "tea")
    assert sent.startswith(b"POST /v1/chat?x=1 HTTP/1.1\r\n") and sent.endswith(b'\r\n\r\n{"q": 1}')
    assert b"X-Mine: yes\r\n" in sent


def test_one_connection_serves_request_after_request():
    texts, _, connections = talk([PLAIN] * 3)
    assert texts == ["hi"] * 3 and connections == 1


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi",
        b"HTTP/1.1 102 Processing\r\n\r\n" + PLAIN,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
        % (len(gzip.compress(b"hi")), gzip.compress(b"hi")),
    ],
    ids=["in chunks", "to the end of the connection", "announced", "compressed"],
)
def test_every_way_of_sending_a_reply_is_read_and_the_next_request_goes_through(reply):
    assert talk([reply, PLAIN])[0] == ["hi", "hi"]


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again():
    async def ask(client, url):
        first = await client.post(url, content=b"{}")
        await asyncio.sleep(0.05)
        return first.text, (await client.post(url, content=b"{}")).text

    texts, _, connections = talk([PLAIN.replace(b"\r\n\r\n", b"\r\nX-Then: close\r\n\r\n"), PLAIN], ask=ask)
    assert texts == ("hi", "hi") and connections == 2


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX-Then: close\r\n\r\nhi", httpx.RemoteProtocolError),
        (b"this is not http, close\r\n\r\n", httpx.RemoteProtocolError),
    ],
    ids=["closed without a reply", "cut in the middle", "something else"],
)
def test_a_reply_that_breaks_off_is_an_error_and_the_next_request_goes_through(reply, error):
    async def ask(client, url):
        with pytest.raises(error) as caught:
            await client.post(url, content=b"{}")
        assert str(caught.value)
        return (await client.post(url, content=b"{}")).text

    text, _, connections = talk([reply, PLAIN], ask=ask)
    assert text == "hi" and connections == 2


def test_a_reply_that_nobody_waits_for_any_more_does_not_answer_the_next_request():
    async def ask(client, url):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.post(url, content=b"{}")
        return (await client.post(url, content=b"{}")).text

    late = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nold"
    text, _, connections = talk([late, PLAIN], ask=ask)
    assert text == "hi" and connections == 2


def test_a_reply_that_is_left_unread_does_not_answer_the_next_request():
    async def ask(client, url):
        async with client.stream("POST", url, content=b"{}"):
            pass
        return (await client.post(url, content=b"{}")).text

    assert talk([b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold", PLAIN], ask=ask)[0] == "hi"


def test_a_server_that_is_not_there_is_a_connect_error():
    async def ask(client, url):
        with pytest.raises(httpx.ConnectError, match=r"refused|failed"):
            await client.post("http://127.0.0.1:1/v1", content=b"{}")

    talk([], ask=ask)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The file of a key and a certificate of 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server of the tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def test_a_secure_address_is_spoken_to_only_with_a_certificate_that_is_trusted(certificate):
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(certificate)
    trusted = ssl.create_default_context(cafile=certificate)
    assert talk([PLAIN, PLAIN], secure=secure, trusted=trusted)[0] == ["hi", "hi"]

    async def ask(client, url):
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
            await client.post(url, content=b"{}")

    assert talk([PLAIN], ask=ask, secure=secure)[1] == [], "the request went to a stranger"


@pytest.mark.parametrize(
    ("variables", "address", "expected"),
    [
        ({}, "https://host/v1", False),
        ({"https_proxy": "http://proxy:1"}, "https://host/v1", True),
        ({"all_proxy": "http://proxy:1"}, "https://host/v1", True),
        ({"https_proxy": "http://proxy:1"}, "http://host/v1", False),
        ({"https_proxy": "http://proxy:1", "no_proxy": "host"}, "https://host:8000/v1", False),
        ({"https_proxy": "http://proxy:1", "no_proxy": "*"}, "https://host/v1", False),
    ],
)
def test_it_knows_which_addresses_the_environment_sends_to_a_proxy(monkeypatch, variables, address, expected):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert needs_proxy(httpx.URL(address)) is expected
