"""Sends one request to an address that a user of ours has named. Imports no model.

The address must lead out of our own network. Its name is resolved once, each of its addresses is looked at, and the
connection goes to one of exactly these: a name that resolves otherwise a moment later leads nowhere. No redirect is
followed, little of the answer is read, and all of it together may take only some seconds.
"""

import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from survey.figures.words import number

LONGEST = 10.0  # seconds for connecting, sending and the answer's first line together
LONGEST_LOOKUP = 4.0  # seconds for the host's name, of those
LONGEST_ADDRESS = 500  # characters
MAX_READ = 16 * 1024  # bytes of an answer's head


class AddressRefused(Exception):
    """Nothing is sent to such an address. `str()` says why, and what to write instead."""


class NotSent(Exception):
    """The request did not arrive, or nobody knows whether it did."""


@dataclass(frozen=True)
class Destination:
    """A parsed address: where to connect, and what to ask for there."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"https": 443, "http": 80}[self.scheme]
        return host if self.port == usual else f"{host}:{self.port}"


def read_address(address: str) -> Destination:
    """
    Raises:
        AddressRefused: it is no address that a webhook can have. Nothing is resolved here.
    """
    if len(address) > LONGEST_ADDRESS:
        raise AddressRefused(f"The address has more than {LONGEST_ADDRESS} characters.")
    if not address.isascii() or not address.isprintable() or " " in address:
        raise AddressRefused("Write the address in plain ASCII characters, without spaces.")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise AddressRefused("This is not an address. Write https://HOST/PATH.") from None
    allowed = ("https", "http") if settings.HUNCH_WEBHOOKS_INSIDE else ("https",)
    if parts.scheme not in allowed or not host:
        raise AddressRefused(f"Write {' or '.join(f'{scheme}://HOST/PATH' for scheme in allowed)}.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("Leave out the user name and password: a webhook's body is signed.")
    if parts.fragment:
        raise AddressRefused("Leave out # and what follows it.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(parts.scheme, host, port or {"https": 443, "http": 80}[parts.scheme], target)


def resolve(destination: Destination, *, longest: float = LONGEST_LOOKUP) -> list[str]:
    """The IP addresses of the host, each outside of our own network.

    Raises:
        AddressRefused: one of them is inside, or the name means nothing.
        NotSent: it cannot be resolved now.
    """
    # Nothing ends a lookup that hangs, so it has a thread of its own that nobody waits for.
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_look_up, args=(destination, answers), daemon=True).start()
    try:
        address_infos = answers.get(timeout=longest)
    except queue.Empty:
        raise NotSent("the name of the host could not be resolved in time") from None
    if isinstance(address_infos, Exception):
        if isinstance(address_infos, socket.gaierror) and address_infos.errno == socket.EAI_AGAIN:
            raise NotSent("the name of the host could not be resolved") from address_infos
        host = destination.host
        raise AddressRefused(f"There is no host {host}: check whether the address is right.") from address_infos
    addresses = list(dict.fromkeys(str(address_info[4][0]) for address_info in address_infos))
    if not settings.HUNCH_WEBHOOKS_INSIDE and not all(is_outside(address) for address in addresses):
        raise AddressRefused(f"{destination.host} leads into a private network. Use an address that is public.")
    return addresses


def _look_up(destination: Destination, answers: "queue.SimpleQueue[Any]") -> None:
    try:
        answers.put(socket.getaddrinfo(destination.host, destination.port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as exc:
        answers.put(exc)


# IPv4 addresses are written inside of these IPv6 ones: what they lead to counts.
NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_outside(address: str) -> bool:
    """Whether an IP address belongs to a host anywhere in the public internet."""
    try:
        ip_address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip_address, ipaddress.IPv6Address):
        inner = [ip_address.ipv4_mapped, ip_address.sixtofour, *(ip_address.teredo or ())]
        if ip_address in NAT64:
            return is_outside(str(ipaddress.IPv4Address(int(ip_address) & 0xFFFFFFFF)))
        if any(inner_address is not None for inner_address in inner):
            return all(is_outside(str(inner_address)) for inner_address in inner if inner_address is not None)
    return ip_address.is_global and not ip_address.is_multicast and not ip_address.is_reserved


def post(destination: Destination, body: bytes, headers: Mapping[str, str]) -> int:
    """The status of the answer. Only its first line and its headers are read.

    Raises:
        AddressRefused: the host leads into our own network.
        NotSent: there was no answer in time.
    """
    import h11  # Late: most processes send nothing.

    until = time.monotonic() + LONGEST
    addresses = resolve(destination)
    connection = _connected(addresses, destination, until)
    try:
        if destination.scheme == "https":
            connection.settimeout(_left(until))
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=destination.host)
        return _ask(connection, destination, body, headers, until)
    except TimeoutError as exc:
        raise NotSent(f"no answer within {number(LONGEST, 0)} seconds") from exc
    except ssl.SSLError as exc:
        raise NotSent(f"TLS failed ({exc.reason or 'no reason given'})") from exc
    except h11.LocalProtocolError as exc:
        raise AddressRefused("The address has a character that no request can have.") from exc
    except h11.RemoteProtocolError as exc:
        raise NotSent("the answer is not HTTP") from exc
    except OSError as exc:
        raise NotSent(f"the connection broke ({exc.strerror or type(exc).__name__})") from exc
    finally:
        connection.close()


def _connected(addresses: list[str], destination: Destination, until: float) -> socket.socket:
    """A connection to the first address that takes one."""
    last: OSError | None = None
    for address in addresses[:4]:
        try:
            return socket.create_connection((address, destination.port), timeout=_left(until))
        except OSError as exc:
            last = exc
    reason = "no answer" if isinstance(last, TimeoutError) else getattr(last, "strerror", None) or "no address"
    raise NotSent(f"no connection ({reason})") from last


def _ask(
    connection: socket.socket, destination: Destination, body: bytes, headers: Mapping[str, str], until: float
) -> int:
    import h11

    talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_READ)
    named = [("Host", destination.host_header), ("Content-Length", str(len(body))), ("Connection", "close")]
    request = h11.Request(method="POST", target=destination.target, headers=[*named, *headers.items()])
    for part in (request, h11.Data(data=body), h11.EndOfMessage()):
        connection.settimeout(_left(until))
        connection.sendall(talk.send(part) or b"")
    while True:
        event = talk.next_event()
        if isinstance(event, h11.Response):
            return int(event.status_code)
        if event is h11.NEED_DATA:
            connection.settimeout(_left(until))
            talk.receive_data(connection.recv(4096))
        elif not isinstance(event, h11.InformationalResponse):
            raise NotSent("the connection was closed without an answer")


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
