"""Requests to one server: errors in one shape, and trying again where that does no harm."""

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx

from .errors import HunchAway, HunchError

TRIES = 5
LONGEST_PAUSE = 60.0  # seconds
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# The server says with these that it did nothing: the same may be sent again, whatever it is.
NOTHING_DONE = (429, 503)
Query = Mapping[str, str | int | Sequence[str]]


class Http:
    """A connection with a token. `pause` waits between two tries; tests replace it."""

    def __init__(self, root: str, token: str, *, timeout: float, pause: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(root)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{root!r} is no address: write https://HOST")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise ValueError("a token is only sent by https; http is for this machine alone")
        self.root = f"{parts.scheme}://{parts.netloc}"
        self.pause = pause
        self.client = httpx.Client(
            headers={"Authorization": f"Token {token}", "User-Agent": "hunch-client"},
            timeout=timeout,
            follow_redirects=False,
        )

    def close(self) -> None:
        self.client.close()

    def get(self, path: str, query: Query | None = None) -> Any:
        return self._json(self.send("GET", path, query=query))

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._json(self.send("POST", path, body=body or {}))

    def delete(self, path: str) -> Any:
        return self._json(self.send("DELETE", path))

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """The answer, if it is a good one.

        Raises:
            HunchError: it was refused.
            HunchAway: the server did not answer, at every try.
        """
        last: HunchError | None = None
        for number in range(TRIES):
            if last is not None:
                self.pause(_pause(number, last))
            try:
                answer = self.client.request(method, self.address(path), params=_params(query), json=body)
            except httpx.TransportError as exc:
                last = HunchAway(f"{self.root} does not answer ({type(exc).__name__})", code="away")
                if method != "GET":  # Nobody knows whether it was done.
                    raise last from exc
                continue
            if answer.is_success:
                return answer
            last = error_of(answer)
            if answer.status_code not in NOTHING_DONE:
                raise last
        assert last is not None  # noqa: S101 - there was a try
        raise last

    def stream(self, address: str, headers: Mapping[str, str]) -> Any:
        """A context manager with an answer whose body is read piece by piece."""
        return self.client.stream("GET", self.address(address), headers=dict(headers))

    def address(self, path: str) -> str:
        """The whole address. One that the server gave must be its own: the token goes to nobody else."""
        if path.startswith("/"):
            return self.root + path
        parts = urlsplit(path)
        # Behind a proxy a server may name itself by another scheme or port; path and query are what counts.
        if parts.hostname != urlsplit(self.root).hostname:
            raise HunchError(f"the server names an address of somebody else: {parts.hostname}", code="foreign_address")
        return self.root + parts.path + (f"?{parts.query}" if parts.query else "")

    def _json(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError as exc:
            raise HunchError("the answer is no JSON: is this a Hunch server?", status=answer.status_code) from exc

    def __enter__(self) -> "Http":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def error_of(answer: httpx.Response) -> HunchError:
    answer.read()
    try:
        error = answer.json()["error"]
        known = {name: error[name] for name in ("code", "fields", "request_id") if name in error}
        words = str(error["message"])
    except (ValueError, KeyError, TypeError):
        known, words = {}, f"the server answered {answer.status_code}"
    kind = HunchAway if answer.status_code in (502, 503, 504) else HunchError
    error = kind(words, status=answer.status_code, **known)
    asked = answer.headers.get("Retry-After", "")
    error.retry_after = int(asked) if asked.isascii() and asked.isdigit() else None
    return error


def _pause(number: int, last: HunchError) -> float:
    """As long as the server asks for, or twice as long each time."""
    return min(2.0**number if last.retry_after is None else last.retry_after, LONGEST_PAUSE)


def _params(query: Query | None) -> httpx.QueryParams | None:
    """None where there is nothing to add: an address may have a query of its own."""
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in (query or {}).items():
        values = [value] if isinstance(value, str | int) else value
        pairs += [(name, str(value)) for value in values]
    return httpx.QueryParams(pairs) if pairs else None
