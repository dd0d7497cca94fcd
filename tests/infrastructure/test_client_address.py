"""From which address a request comes, and that nobody chooses it."""

from typing import Any

import pytest
from django.test import RequestFactory

from survey.web.client_address import UNKNOWN, client_address


def address(settings: Any, remote: str, forwarded: str | None = None, *, behind_proxy: bool) -> str:
    settings.HUNCH_BEHIND_PROXY = behind_proxy
    headers = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    return client_address(RequestFactory().get("/", REMOTE_ADDR=remote, **headers))


@pytest.mark.parametrize("forwarded", ["203.0.113.9", "1.1.1.1, 203.0.113.9", "", "nonsense"])
def test_without_a_proxy_the_header_is_not_read(settings: Any, forwarded: str) -> None:
    assert address(settings, "198.51.100.7", forwarded, behind_proxy=False) == "198.51.100.7"


@pytest.mark.parametrize(
    ("forwarded", "expected"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("1.1.1.1, 2.2.2.2,203.0.113.9", "203.0.113.9"),  # Only the last entry is the proxy's own.
        ("1.1.1.1, nonsense", UNKNOWN),
        ("", "10.0.0.2"),
        (None, "10.0.0.2"),
    ],
)
def test_behind_a_proxy_what_it_added_counts(settings: Any, forwarded: str | None, expected: str) -> None:
    assert address(settings, "10.0.0.2", forwarded, behind_proxy=True) == expected


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("", UNKNOWN),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(settings: Any, remote: str, expected: str) -> None:
    assert address(settings, remote, behind_proxy=False) == expected
