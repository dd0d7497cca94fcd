"""Programs that open links to see whether they are safe, as mail servers and panels do. They read and send nothing."""

from collections.abc import Mapping
from urllib.parse import urldefrag, urljoin

import httpx

from .page import Page
from .visitors import SimulationError

MAX_ADDRESSES = 12
OTHER_PAGES = ("", "consent", "sitting", "resume", "report")


def scan(*, client: httpx.Client, slug: str, ids: Mapping[str, str]) -> int:
    """Open a link, prefetch it as a browser does, and follow the links on the page. Returns the number of requests.

    Raises:
        SimulationError: the server fails at one of them.
    """
    home = f"/s/{slug}/"
    _look(client.head(home, params=dict(ids)))
    _look(client.get(home, params=dict(ids), headers={"Sec-Purpose": "prefetch"}))
    first = _look(client.get(home, params=dict(ids)))
    links = [urldefrag(urljoin(str(first.url.path), link)).url for link in Page(first.text).links]
    within = [address for address in links if address.startswith(home)]
    addresses = list(dict.fromkeys([*within, *(home + page for page in OTHER_PAGES)]))[:MAX_ADDRESSES]
    for address in addresses:
        _look(client.get(address))
        _look(client.head(address))
    return 3 + 2 * len(addresses)


def _look(response: httpx.Response) -> httpx.Response:
    if response.is_server_error:
        raise SimulationError(
            f"{response.request.method} {response.url.path} answered {response.status_code} to a program that reads"
        )
    return response
