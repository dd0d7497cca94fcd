"""A panel's API over HTTP: how one call is made, repeated and read. Imports only httpx and the contract of panels.

A failed call is repeated where that is safe: every call that may be made twice, and anything that certainly did not
arrive (no connection, 429). Where a request was sent and no answer to it can be read, `outcome_is_known` is False: the
panel may have done it. A call that spends money is made `once`, whatever comes back. No message, log or repr holds the
token or a person's id.
"""

import functools
import math
import os
import random
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Self
from urllib.parse import quote, urlsplit

import httpx

from survey.exceptions import HunchError

from .panels import PanelBusy, PanelClient, PanelError, PanelMissing, PanelRefused, PanelUnreachable

TIMEOUT = httpx.Timeout(20.0, connect=5.0)
TRIES = 4
# While a person waits for their first page, and a thread of the server with them: `Client.open(**AT_THE_DOOR)`.
AT_THE_DOOR: dict[str, Any] = {"timeout": httpx.Timeout(2.0, connect=1.0), "patience": 1}
FIRST_WAIT = 0.5  # seconds; doubled each time, and a random part of it is waited
LONGEST_WAIT = 30.0  # seconds that a Retry-After may ask for
LONGEST_LIST = 1000  # pages: stops a list whose next page leads in circles
LONGEST_REASON = 500  # characters of the panel's own words in a message
# Who answers 307 or 308 has not carried out the request. After 302 or 303 it may be done, with a page to see next.
NOT_DONE_HERE = (307, 308)
# Who answers so may have carried it out: it took too long, or it came twice on the way and the second was refused. Of a
# call that may be repeated it is a refusal like any other.
MAY_BE_DONE = (408, 409)
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Sleep = Callable[[float], None]


class Answer(dict[str, Any]):
    """The object that a call was answered with. A name that it lacks makes the answer one that cannot be used.

    Args:
        call: the panel and what it was asked to do, for messages.
    """

    def __init__(self, body: Mapping[str, Any], *, call: str) -> None:
        super().__init__(body)
        self._call = call

    def __missing__(self, name: str) -> Any:
        raise PanelUnreachable(f"{self._call}: its answer has no {name!r}", outcome_is_known=False)


class PanelApi:
    """One account at a panel whose API takes and gives JSON.

    Args:
        title: what the panel is called at the beginning of every message.
        url: scheme, host and perhaps a path, without a slash at the end.
        headers: sent with every call, with the token among them.
        check: which settings to look at: where the panel does not take the token, and where its API is elsewhere.
        patience: how often a call that is safe to repeat is tried, the first time included.
    """

    def __init__(
        self,
        *,
        title: str,
        url: str,
        headers: Mapping[str, str],
        check: tuple[str, str],
        timeout: httpx.Timeout = TIMEOUT,
        patience: int = TRIES,
        sleep: Sleep = time.sleep,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._title = title
        self._url = url.rstrip("/")
        self._check_token, self._check_url = check
        self._patience = patience
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=self._url,
            headers=dict(headers),
            timeout=timeout,
            transport=transport,
            verify=_certificates(),
            follow_redirects=False,
        )

    def __repr__(self) -> str:
        return f"<{self._title} at {self._url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool = False,
        once: bool = False,
        explain: bool = False,
        empty: bool = False,
    ) -> Answer:
        """Make one call and return the answer's object.

        Args:
            path: every id in it went through `part_of_path`.
            what: words for messages, without any id: "create the draft".
            repeat: the call may be repeated, since twice does no harm.
            once: never repeat, even if the call certainly did not arrive.
            explain: put the panel's own words into the message. Not for calls about people: they may name them.
            empty: expect an answer without a body.

        Raises:
            PanelError: `outcome_is_known` is False if the panel may have done it.
        """
        response = self.send(
            method, path, what, json=json, params=params, headers=headers, repeat=repeat, once=once, explain=explain
        )
        return self._answer({}, what) if empty else self.read(response, what)

    def pages(
        self,
        path: str,
        params: Mapping[str, Any] | None,
        what: str,
        *,
        rows: str = "results",
        following: Callable[[Answer], Any],
    ) -> Iterator[Answer]:
        """Every row of a list.

        Args:
            rows: under which name a page has its rows.
            following: the address of the next page, as a page has it; empty after the last one.
        """
        page = self.call("GET", path, what, params=params, repeat=True)
        for _number in range(LONGEST_LIST):
            yield from self.rows_of(page.get(rows), what)
            address = following(page)
            if not address:
                return
            parts = urlsplit(str(address))
            # Only path and query are used: the token must go to no other host.
            page = self.call("GET", f"{parts.path}?{parts.query}", what, repeat=True)
        raise self.error(PanelUnreachable, what, "the list does not end")

    def send(
        self,
        method: str,
        path: str,
        what: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool = False,
        once: bool = False,
        explain: bool = False,
    ) -> httpx.Response:
        """The first answer that says that the call succeeded. The arguments are those of `call`.

        Raises:
            PanelError: there was none.
        """
        for number in range(self._patience):
            is_last = once or number == self._patience - 1
            try:
                response = self._http.request(method, path, json=json, params=params, headers=dict(headers or {}))
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as exc:
                if is_last:
                    raise self.error(PanelUnreachable, what, "no connection") from exc
                self._wait(number)
                continue
            except httpx.HTTPError as exc:
                if is_last or not repeat:
                    reason = "the connection broke before an answer came"
                    raise self.error(PanelUnreachable, what, reason, outcome_is_known=False) from exc
                self._wait(number)
                continue
            if response.is_success:
                return response
            status = response.status_code
            if status == 429:
                pause = _retry_after(response)
                if is_last or (pause is not None and pause > LONGEST_WAIT):
                    reason = "too many requests; try again later"
                    raise self.error(PanelBusy, what, reason, answered=status, retry_after=math.ceil(pause or 0))
                self._wait(number, at_least=pause or 0.0)
            elif status >= 500:
                if is_last or not repeat:
                    reason = f"it answered {status}"
                    raise self.error(PanelUnreachable, what, reason, answered=status, outcome_is_known=False)
                self._wait(number)
            else:
                raise self._refused(response, what, explain=explain, repeat=repeat)
        raise AssertionError("the last try returns or raises")

    def read(self, response: httpx.Response, what: str) -> Answer:
        """The object in an answer."""
        body = self._body(response, what)
        if not isinstance(body, dict):
            raise self.unreadable(what)
        return self._answer(body, what)

    def read_list(self, response: httpx.Response, what: str) -> list[Answer]:
        """The list of objects that an answer is."""
        return self.rows_of(self._body(response, what), what)

    def rows_of(self, rows: Any, what: str) -> list[Answer]:
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.error(PanelUnreachable, what, "the answer holds no list")
        return [self._answer(row, what) for row in rows]

    def unreadable(self, what: str, form: str = "JSON") -> PanelError:
        return self.error(PanelUnreachable, what, f"its answer is not {form}", outcome_is_known=False)

    def error(self, kind: type[PanelError], what: str, reason: str, **more: Any) -> PanelError:
        return kind(f"{self._title}: to {what}: {reason}", **more)

    def code_in(self, body: Any) -> str:
        """The panel's own code of an error, which names nobody; empty by default."""
        return ""

    def words_in(self, body: Any) -> str:
        """The panel's own words on an error: by default every text of its answer."""
        return "; ".join(sentences(body))

    def _refused(self, response: httpx.Response, what: str, *, explain: bool, repeat: bool) -> PanelError:
        status = response.status_code
        if status < 400:
            reason = f"it points elsewhere; check {self._check_url}"
            return self.error(PanelUnreachable, what, reason, answered=status, outcome_is_known=status in NOT_DONE_HERE)
        try:
            body = response.json()
        except (ValueError, RecursionError):
            body = None
        code, words = self.code_in(body), self.words_in(body)[:LONGEST_REASON] if explain else ""
        reason = f"it answered {status}" + (f" (error {code})" if code else "") + (f": {words}" if words else "")
        if status in (401, 403):
            reason += f"; check {self._check_token}"
        kind = PanelMissing if status == 404 else PanelRefused
        return self.error(kind, what, reason, answered=status, outcome_is_known=repeat or status not in MAY_BE_DONE)

    def _body(self, response: httpx.Response, what: str) -> Any:
        try:
            return response.json()
        except (ValueError, RecursionError) as exc:
            raise self.unreadable(what) from exc

    def _answer(self, body: Mapping[str, Any], what: str) -> Answer:
        return Answer(body, call=f"{self._title}: to {what}")

    def _wait(self, number: int, *, at_least: float = 0.0) -> None:
        jitter = random.uniform(0, FIRST_WAIT * 2**number)  # noqa: S311 - only spreads the tries
        self._sleep(at_least + jitter)


class HttpPanelClient(PanelClient):
    """A client of a panel whose API takes and gives JSON, with a token that an environment variable holds.

    A subclass states the first four attributes and overrides the calls that the API has; each is one `self.api.call`.
    """

    # What the panel is called at the beginning of messages, and where its API is.
    title: ClassVar[str]
    url: ClassVar[str]
    # The variables that hold the token, and another address of the API, such as that of a fake on this machine.
    token_variable: ClassVar[str]
    url_variable: ClassVar[str]
    # The header that the token is sent in, and its value.
    token_header: ClassVar[tuple[str, str]] = ("Authorization", "Bearer {token}")

    def __init__(self, api: PanelApi) -> None:
        self.api = api

    @classmethod
    def missing_setting(cls) -> str:
        if os.environ.get(cls.token_variable, "").strip():
            return ""
        return f"{cls.token_variable} is not set: without it {cls.title} cannot be asked"

    @classmethod
    def open(cls, **more: Any) -> Self:
        """A client of the account that the environment names.

        Args:
            more: `timeout`, `patience`, `sleep` and `transport` of the `PanelApi`.

        Raises:
            HunchError: a variable is missing, or cannot be used.
        """
        if missing := cls.missing_setting():
            raise HunchError(missing)
        token = os.environ[cls.token_variable].strip()
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise HunchError(f"{cls.token_variable}: holds a character that no token has; copy it again")
        url = os.environ.get(cls.url_variable, "").strip() or cls.url
        parts = urlsplit(url)
        if not parts.hostname or not (
            parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        ):
            raise HunchError(
                f"{cls.url_variable}: every call carries a token: write https://HOST, or http://127.0.0.1:PORT"
            )
        name, value = cls.token_header
        headers = {name: value.format(token=token)}
        check = (cls.token_variable, cls.url_variable)
        return cls(PanelApi(title=cls.title, url=url, headers=headers, check=check, **more))

    def close(self) -> None:
        self.api.close()


def part_of_path(identifier: str) -> str:
    """An id as one part of a path, whatever characters it has."""
    return quote(identifier, safe="")


def whole_number(value: Any) -> int | None:
    """A number of an answer that is no amount below 0 and fits a column; None if it is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 2**31 else None


def sentences(detail: Any, name: str = "") -> Iterator[str]:
    """The texts of an error's detail: one text, a list of them, or texts by the name of a field, to any depth."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            yield from sentences(value, f"{name}.{key}" if name else str(key))
    elif isinstance(detail, list):
        for value in detail:
            yield from sentences(value, name)
    elif isinstance(detail, str | int | float) and detail != "":
        yield f"{name}: {detail}" if name else str(detail)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """All clients share them: reading them takes longer than most calls."""
    return httpx.create_ssl_context()


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds; None where the header is missing, or neither a number nor a date."""
    text = response.headers.get("Retry-After", "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            until = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None
