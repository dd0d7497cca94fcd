"""From which network address a request comes. Imports only Django's settings.

A client can write any `X-Forwarded-For`. The header is read only where HUNCH_BEHIND_PROXY says that a proxy of ours
adds to it, and then only its last entry, which is the one that the proxy added.
"""

from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

# Who has one IPv6 address has all of a network of this size.
IPV6_PREFIX = 64
UNKNOWN = "unknown"  # A server on a socket file names no address. All its clients then share one budget.


def client_address(request: HttpRequest) -> str:
    """The client's address, so that what is counted by address counts one household or one building once.

    IPv4 addresses are returned whole, IPv6 addresses as their network of 64 bits.
    """
    named = str(request.META.get("REMOTE_ADDR", ""))
    if settings.HUNCH_BEHIND_PROXY:
        added = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).rpartition(",")[2].strip()
        named = added or named
    return _counted(named)


def _counted(text: str) -> str:
    try:
        address = ip_address(text.strip().strip("[]"))
    except ValueError:
        return UNKNOWN
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ip_network((int(address), IPV6_PREFIX), strict=False))
    return str(address)
