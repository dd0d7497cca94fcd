"""Keeps simulated people on this machine: made-up answers must not reach a real study. Standard library."""

import ipaddress
import socket
from urllib.parse import urlsplit

from survey.exceptions import HunchError


def loopback_url(url: str) -> str:
    """The address without a trailing slash.

    Raises:
        HunchError: it is not http(s), cannot be resolved, or any of its host's addresses is not a loopback address.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as exc:
        raise HunchError(f"--base-url: {url!r} is not an address ({exc})") from exc
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise HunchError(f"--base-url: {url!r} is not like http://127.0.0.1:8000")
    try:
        addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise HunchError(f"--base-url: {parts.hostname} cannot be resolved ({exc.strerror}); use 127.0.0.1") from exc
    for *_rest, address in addresses:
        if not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
            raise HunchError(
                f"--base-url: {parts.hostname} is {address[0]}, which is not this machine; simulated people are sent "
                "to loopback addresses only"
            )
    return url.rstrip("/")
