"""A client of servers that speak OpenAI's protocol for chats and embeddings: hosted ones, vLLM, Ollama and others.

Needs httpx and numpy alone, and knows neither estimators nor the survey. Requests run in an event loop of a thread
of their own; results, progress and errors come in the caller's thread, where a database may be used.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from predictors.errors import PredictorError
from predictors.pairs import Progress, report

if TYPE_CHECKING:
    import httpx

REFUSED = frozenset({400, 422})
"""Status codes of a server that read a request and does not take what it asks for."""

_TRY_AGAIN = frozenset({408, 409, 429})
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_LONGEST_RETRY_AFTER = 60.0
_CONNECT_TIMEOUT = 10.0
_HAIR = 0.01  # Rounding puts some log-probabilities so far above 0 at most.
_TICK = 0.25  # seconds between two calls of progress while nothing arrives
_EXCERPT = 200
_HINTS = {
    401: "Check the key.",
    403: "Check the key and what it may use.",
    404: "Check the address (most end in /v1) and the model's name.",
}

Answer = TypeVar("Answer")


class EndpointError(PredictorError):
    """A server did not give what it was asked for.

    permanent: asking the same again would be refused the same way. status: the HTTP status, where one was given.
    """

    def __init__(self, message: str, *, permanent: bool, status: int | None = None) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.status = status


@dataclass(frozen=True)
class Usage:
    """Tokens that a server counted; 0 where it does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)


@dataclass(frozen=True)
class ChatCall:
    """One question to a chat model. `messages` are the protocol's {"role", "content"}; None leaves a field out.

    `n` replies are wanted; a server may give fewer. `top_logprobs` is the number of likeliest tokens to list at each
    place, with `logprobs`. `extra` holds further fields of the request, for one server or model alone.
    """

    model: str
    messages: Sequence[Mapping[str, str]]
    temperature: float | None = None
    max_tokens: int | None = None
    n: int = 1
    logprobs: bool = False
    top_logprobs: int | None = None
    seed: int | None = None
    extra: Mapping[str, Any] | None = None

    def body(self) -> dict[str, Any]:
        """The request as the protocol has it."""
        optional = {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "n": self.n if self.n != 1 else None,
            "logprobs": self.logprobs or None,
            "top_logprobs": self.top_logprobs if self.logprobs else None,
            "seed": self.seed,
        }
        options = {name: value for name, value in optional.items() if value is not None}
        return {
            "model": self.model,
            "messages": [dict(message) for message in self.messages],
            **options,
            **(self.extra or {}),
        }


@dataclass(frozen=True)
class ChatReply:
    """What a chat model answered.

    texts: one a reply, "" where it has none. top_logprobs: of the first reply, one entry a token with the likeliest
    tokens there and their natural log-probabilities; None where the server gives none. raw_finish: the server's word
    for why each reply ended.
    """

    texts: tuple[str, ...]
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...] | None
    usage: Usage
    raw_finish: tuple[str | None, ...]


@dataclass(frozen=True)
class PromptTokens:
    """The tokens of a prompt as a server lists them: what each looks like, and its natural log-probability given all
    before it, None where it has none. They may go on after the prompt with a token that was made. likeliest: at each
    token the likeliest ones there; () where the server lists none."""

    strings: tuple[str, ...]
    log_probabilities: tuple[float | None, ...]
    likeliest: tuple[tuple[tuple[str, float], ...], ...] = ()


@dataclass(frozen=True)
class _Request(Generic[Answer]):
    """A body for one path, and how its reply is read. `read` raises KeyError, TypeError and so on where it cannot."""

    path: str
    body: dict[str, Any]
    read: Callable[[dict[str, Any]], Answer]


class Endpoint:
    """One server. It may be used from several threads, and holds no connection between two calls of a method.

    base_url: up to and with the version, for instance http://localhost:11434/v1.
    timeout: seconds for one try, from connecting to the last byte. deadline: seconds for one call with all its tries
    and waits. concurrency: requests in flight at once. tries: how often one call is sent at most; connections that
    fail, timeouts, replies cut off and the statuses 408, 409, 429 and 5xx are tried again, after a wait that doubles
    (with jitter) or as long as the server's Retry-After says, a minute at most; the whole endpoint waits then.
    max_bytes: the longest reply that is read.

    Raises:
        PredictorError: a value that cannot be used. No message, log or repr ever shows the key.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        timeout: float = 60.0,
        concurrency: int = 4,
        tries: int = 6,
        deadline: float = 300.0,
        max_bytes: int = 64 * 2**20,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        for name, value in (("concurrency", concurrency), ("tries", tries), ("max_bytes", max_bytes)):
            if value < 1:
                raise PredictorError(f"{name}: {value!r} is not 1 or more.")
        for name, seconds in (("timeout", timeout), ("deadline", deadline)):
            if not 0 < seconds < float("inf"):
                raise PredictorError(f"{name}: {seconds!r} is not a number of seconds above 0.")
        self.base_url = _checked_address(base_url)
        self.timeout = timeout
        self.concurrency = concurrency
        self.tries = tries
        self.deadline = deadline
        self.max_bytes = max_bytes
        self.usage = Usage()
        self._key = _checked_key(api_key)
        self._sleep = sleep
        self._lock = threading.Lock()
        self._jitter = np.random.default_rng()
        self._held_until = 0.0
        self._tokens_field = "max_tokens"

    @classmethod
    def from_environment(cls, *, url_variable: str, key_variable: str, **options: Any) -> Self:
        """The server whose address and key stand in these environment variables; the key may be missing.

        Raises:
            PredictorError: no address, or one that cannot be used; the message names the variable.
        """
        address = os.environ.get(url_variable, "").strip()
        if not address:
            raise PredictorError(
                f"{url_variable}: not set; give this environment variable the address of a server that speaks OpenAI's "
                f"protocol, for instance http://localhost:11434/v1, and {key_variable} its key, if it has one."
            )
        try:
            return cls(address, os.environ.get(key_variable), **options)
        except PredictorError as exc:
            message = str(exc).replace("base_url:", f"{url_variable}:").replace("api_key:", f"{key_variable}:")
            raise PredictorError(message) from None

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r}, concurrency={self.concurrency})"

    def map(self, calls: Sequence[ChatCall], progress: Progress | None = None) -> list[ChatReply]:
        """The replies to all calls, in their order; `progress` counts calls.

        Raises:
            EndpointError: the first one of any call; the others are given up. Stopped: `progress` returned False.
        """
        replies: dict[int, ChatReply] = {}
        with closing(self.each(calls, progress)) as answers:
            for index, answer in answers:
                if isinstance(answer, EndpointError):
                    raise answer
                replies[index] = answer
        return [replies[index] for index in range(len(calls))]

    def each(
        self, calls: Sequence[ChatCall], progress: Progress | None = None
    ) -> Generator[tuple[int, ChatReply | EndpointError], None, None]:
        """The number of each call and its reply or error, as they come; `concurrency` calls are in flight.

        Closing it early (`contextlib.closing`) gives up what is in flight; at most twice `concurrency` calls are ahead
        of the reader, so that a reader who counts costs can stop in time.

        Raises:
            Stopped: `progress` returned False.
        """
        requests = (_Request("/chat/completions", call.body(), _read_chat) for call in calls)
        return self._each(requests, len(calls), progress, "answers received")

    def prompt_tokens(
        self, *, model: str, texts: Sequence[str], top: int = 1, progress: Progress | None = None
    ) -> Generator[tuple[int, PromptTokens | EndpointError], None, None]:
        """The number of each text with its tokens and their log-probabilities, or its error, as they come.

        It asks for a completion of one token that repeats the prompt (`echo`) with log-probabilities. A server that
        does not list those of the prompt gives an error that is permanent.

        Args:
            top: how many of the likeliest tokens the server is asked to list at each place, 1 or more.

        Raises:
            Stopped: `progress` returned False.
        """
        requests = (_prompt_request(model, text, top) for text in texts)
        return self._each(requests, len(texts), progress, "texts read")

    def embeddings(
        self,
        *,
        model: str,
        texts: Sequence[str],
        extra: Mapping[str, Any] | None = None,
        batch: int = 64,
        progress: Progress | None = None,
    ) -> NDArray[np.float32]:
        """The vectors of n texts, float32 (n, d) as the server gives them; (0, 0) where there are no texts.

        `extra` holds further fields of the request, for instance {"input_type": "document"}; `batch` texts travel in
        one request; `progress` counts requests.

        Raises:
            EndpointError: as in `map`, or vectors of different lengths. Stopped: `progress` returned False.
        """
        if batch < 1:
            raise PredictorError(f"batch: {batch!r} is not 1 or more.")
        starts = range(0, len(texts), batch)
        requests = (_embeddings_request(model, texts[start : start + batch], extra) for start in starts)
        parts: dict[int, NDArray[np.float32]] = {}
        answers = self._each(requests, len(starts), progress, f"requests of {batch} texts answered")
        with closing(answers):
            for index, part in answers:
                if isinstance(part, EndpointError):
                    raise part
                parts[index] = part
        widths = sorted({part.shape[1] for part in parts.values()})
        if len(widths) > 1:
            raise EndpointError(f"{self.base_url}: gave vectors of {widths} numbers in one go.", permanent=True)
        return np.concatenate([parts[index] for index in range(len(starts))]) if parts else np.empty((0, 0), np.float32)

    def _each(
        self, requests: Iterable[_Request[Answer]], total: int, progress: Progress | None, text: str
    ) -> Generator[tuple[int, Answer | EndpointError], None, None]:
        if not total:
            return
        arrived: queue.SimpleQueue[tuple[int, Answer | EndpointError] | None] = queue.SimpleQueue()
        with _LoopThread() as loop:
            room = _Room(2 * self.concurrency, loop)
            workers = min(self.concurrency, total)
            work = asyncio.run_coroutine_threadsafe(self._answer_all(requests, workers, room, arrived.put), loop)
            work.add_done_callback(lambda _: arrived.put(None))
            done = 0
            while True:
                try:
                    result = arrived.get(timeout=_TICK)
                except queue.Empty:
                    report(progress, done, total, text)
                    continue
                if result is None:
                    work.result()
                    return
                done += 1
                yield result
                room.leave()
                report(progress, done, total, text)

    # What runs in the loop's thread

    async def _answer_all(
        self,
        requests: Iterable[_Request[Answer]],
        workers: int,
        room: _Room,
        deliver: Callable[[tuple[int, Answer | EndpointError]], None],
    ) -> None:
        import httpx  # Late, here and below: it takes long to load, and few processes ask a server.

        numbered = iter(enumerate(requests))
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        # The whole of a try is timed in `_answer`: httpx would only time each read.
        timeout = httpx.Timeout(None, connect=min(self.timeout, _CONNECT_TIMEOUT))

        async def work() -> None:
            # A client each: one that is shared looks at all its connections before and after every request, which at
            # 32 of them costs several times the request itself.
            async with httpx.AsyncClient(headers=headers, timeout=timeout, verify=_certificates()) as client:
                for index, request in numbered:
                    await room.enter()
                    answer = await self._answer(client, request)
                    deliver((index, answer))

        await asyncio.gather(*(work() for _ in range(workers)))

    async def _answer(self, client: httpx.AsyncClient, request: _Request[Answer]) -> Answer | EndpointError:
        """Send one request until it is answered, refused for good, or out of tries or time."""
        import httpx

        started = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            wait = self._held_until - time.monotonic()
            if wait > 0:
                # Those who waited together do not come back in one moment.
                await self._sleep(wait * (1 + self._jitter.uniform(0, 0.1)))
            left = self.deadline - (time.monotonic() - started)
            try:
                async with asyncio.timeout(max(0.0, min(self.timeout, left))):
                    return await self._send(client, request)
            except _Refusal as exc:
                error, wait = exc.error, exc.retry_after or 0.0
                if wait:
                    self._held_until = max(self._held_until, time.monotonic() + wait)
            except TimeoutError:
                error, wait = self._failure(f"no complete answer within {min(self.timeout, left):.3g} seconds."), 0.0
            except httpx.RequestError as exc:
                # Not `from exc`: the request inside holds the key.
                error, wait = self._failure(f"{_words(str(exc)) or type(exc).__name__} ({type(exc).__name__})."), 0.0
            if error.permanent:
                return error
            backoff = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (attempt - 1)) * self._jitter.uniform(0.5, 1.0)
            spent = time.monotonic() - started
            if attempt == self.tries or spent + max(wait, backoff) >= self.deadline:
                tried = f"Tried {attempt} time{'s' if attempt > 1 else ''} in {spent:.0f} seconds; try again later."
                return EndpointError(f"{error} {tried}", permanent=False, status=error.status)
            if not wait:
                await self._sleep(backoff)

    async def _send(self, client: httpx.AsyncClient, request: _Request[Answer]) -> Answer:
        sent = self._tokens_field
        try:
            return await self._post(client, request, sent)
        except _Refusal as exc:
            # Newer hosted models know the limit of a reply under this name alone.
            wanted = "max_completion_tokens"
            if exc.error.status not in REFUSED or wanted not in str(exc.error) or sent == wanted:
                raise
            self._tokens_field = wanted
        return await self._post(client, request, wanted)

    async def _post(self, client: httpx.AsyncClient, request: _Request[Answer], tokens_field: str) -> Answer:
        named = {tokens_field if name == "max_tokens" else name: value for name, value in request.body.items()}
        body = json.dumps(named).encode("ascii")
        content = bytearray()
        async with client.stream("POST", self.base_url + request.path, content=body) as response:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > self.max_bytes:
                    raise _Refusal(self._failure(f"the reply is longer than {self.max_bytes} bytes.", permanent=True))
        payload = self._payload(response, bytes(content))
        try:
            answer = request.read(payload)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as exc:
            what = f"no field {exc}" if isinstance(exc, KeyError) else _words(str(exc))
            message = f"the reply is not what the protocol asks for: {what}. It begins {self._excerpt(_text(content))}"
            raise _Refusal(self._failure(message, permanent=True, status=response.status_code)) from exc
        with self._lock:
            self.usage += _read_usage(payload)
        return answer

    def _payload(self, response: httpx.Response, content: bytes) -> dict[str, Any]:
        """The JSON object of a reply, or a `_Refusal` that says what is wrong with it."""
        status = response.status_code
        if 300 <= status < 400:
            target = re.sub(r"[?#].*", "", response.headers.get("location", "nowhere"))
            message = f"status {status} sends on to {_words(target)}; give the final address."
            raise _Refusal(self._failure(message, permanent=True, status=status))
        is_page = "html" in response.headers.get("content-type", "") or content.lstrip()[:1] == b"<"
        try:
            payload = json.loads(content)
        except (ValueError, RecursionError):
            payload = None
        if status >= 400:
            self._refuse(status, payload, content, response.headers, is_page=is_page)
        if payload is None:
            if is_page:
                message = "answered with a web page instead of JSON; check the address (most end in /v1)."
                raise _Refusal(self._failure(message, permanent=True, status=status))
            message = f"the reply is cut off or no JSON; it begins {self._excerpt(_text(content))}"
            raise _Refusal(self._failure(message, status=status))
        if isinstance(payload, dict) and payload.get("error") and "choices" not in payload and "data" not in payload:
            # Some servers in front of others pass an error on inside a reply that says 200.
            code = payload["error"].get("code") if isinstance(payload["error"], dict) else None
            inner_status = int(str(code)) if str(code).isdecimal() else 400
            self._refuse(inner_status, payload, content, response.headers, is_page=False)
        if not isinstance(payload, dict):
            message = f"the reply is no JSON object; it begins {self._excerpt(_text(content))}"
            raise _Refusal(self._failure(message, permanent=True, status=status))
        return payload

    def _refuse(self, status: int, payload: Any, content: bytes, headers: httpx.Headers, *, is_page: bool) -> None:
        stated = payload.get("error", payload) if isinstance(payload, dict) else payload
        details = stated if isinstance(stated, dict) else {}
        # Tried again, a used-up budget stays used up, though its status is that of a rate limit.
        out_of_budget = "insufficient_quota" in (details.get("code"), details.get("type"))
        again = (status in _TRY_AGAIN or status >= 500) and not out_of_budget
        said = details.get("message") or details.get("detail") or stated
        excerpt = "a web page." if is_page else self._excerpt(said if isinstance(said, str) else _text(content))
        message = " ".join(filter(None, [f"status {status}: {excerpt}", _HINTS.get(status)]))
        error = self._failure(message, permanent=not again, status=status)
        raise _Refusal(error, retry_after=_retry_after(headers) if again else None)

    def _failure(self, message: str, *, permanent: bool = False, status: int | None = None) -> EndpointError:
        return EndpointError(f"{self.base_url}: {self._without_key(message)}", permanent=permanent, status=status)

    def _excerpt(self, text: str) -> str:
        # The key goes before the text is cut, so that no half of it is left.
        text = _words(self._without_key(text))
        return repr(text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…") + "."

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


class _Refusal(Exception):
    """Inside this module: an error of one try, and how long the server wants to be left alone (seconds)."""

    def __init__(self, error: EndpointError, retry_after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after = retry_after


class _Room:
    """How far requests may be ahead of their reader. The reader's thread wakes the loop only where somebody waits."""

    def __init__(self, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self._free = size
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = self._loop.create_future()
            self._waiting.append(turn)
        await turn

    def leave(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            turn = self._waiting.popleft()
        self._loop.call_soon_threadsafe(turn.set_result, None)


class _LoopThread:
    """An event loop that runs in a thread of its own inside `with`; what still runs at the end is cancelled.

    In the caller's thread a running loop would keep progress callbacks from Django's database, and it could not be
    started at all where the caller has one.
    """

    def __enter__(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)
        self._thread.start()
        return self._loop

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._end())
        finally:
            self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# Reading what came


@cache
def _certificates() -> ssl.SSLContext:
    """All endpoints share them: reading them takes longer than many a request."""
    import httpx

    return httpx.create_ssl_context()


def _read_chat(payload: dict[str, Any]) -> ChatReply:
    choices = payload["choices"]
    if not choices:
        raise ValueError("'choices' is empty")
    texts = [choice["message"].get("content") for choice in choices]
    if any(text is not None and not isinstance(text, str) for text in texts):
        raise ValueError("a reply's 'content' is no text")
    return ChatReply(
        texts=tuple(text or "" for text in texts),
        top_logprobs=_read_logprobs(choices[0].get("logprobs")),
        usage=_read_usage(payload),
        raw_finish=tuple(choice.get("finish_reason") for choice in choices),
    )


def _read_logprobs(logprobs: Any) -> tuple[tuple[tuple[str, float], ...], ...] | None:
    """The likeliest tokens at each place, with the one that was taken; None where the server lists none."""
    places = (logprobs or {}).get("content")
    if not places:
        return None
    listed = []
    for place in places:
        tokens = {entry["token"]: entry.get("logprob") for entry in [place, *(place.get("top_logprobs") or [])]}
        numbers = {
            token: value for token, value in tokens.items() if isinstance(value, (int, float)) and value <= _HAIR
        }
        listed.append(tuple((token, min(float(value), 0.0)) for token, value in numbers.items()))
    return tuple(listed)


def _read_usage(payload: dict[str, Any]) -> Usage:
    usage = payload.get("usage")
    counts = {name: value for name, value in usage.items() if type(value) is int} if isinstance(usage, dict) else {}
    completion = counts.get("completion_tokens", 0)
    return Usage(counts.get("prompt_tokens", counts.get("total_tokens", completion) - completion), completion)


def _prompt_request(model: str, text: str, top: int) -> _Request[PromptTokens]:
    body = {"model": model, "prompt": text, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": top}

    def read(payload: dict[str, Any]) -> PromptTokens:
        listed = payload["choices"][0].get("logprobs") or {}
        strings, values = listed.get("tokens") or [], listed.get("token_logprobs") or []
        if not strings or len(strings) != len(values):
            raise ValueError("it lists no log-probabilities of the prompt")
        if not all(isinstance(string, str) for string in strings):
            raise ValueError("a token is no text")
        if any(value is not None and float(value) > _HAIR for value in values):
            raise ValueError("a log-probability is above 0, which no logarithm of a probability is")
        likeliest = listed.get("top_logprobs") or []
        return PromptTokens(
            tuple(strings),
            tuple(None if value is None else min(float(value), 0.0) for value in values),
            tuple(_likeliest(alternatives) for alternatives in likeliest) if len(likeliest) == len(strings) else (),
        )

    return _Request("/completions", body, read)


def _likeliest(listed: Any) -> tuple[tuple[str, float], ...]:
    """The likeliest tokens at a place with their log-probabilities, the likeliest first; () where none are listed."""
    rows = [(str(token), min(float(value), 0.0)) for token, value in (listed or {}).items() if value is not None]
    return tuple(sorted(rows, key=lambda row: -row[1]))


def _embeddings_request(
    model: str, texts: Sequence[str], extra: Mapping[str, Any] | None
) -> _Request[NDArray[np.float32]]:
    def read(payload: dict[str, Any]) -> NDArray[np.float32]:
        rows = payload["data"]
        order = [row.get("index", place) for place, row in enumerate(rows)]
        if sorted(order) != list(range(len(texts))):
            raise ValueError(f"'data' holds {len(rows)} vectors with indices of their own for {len(texts)} texts")
        vectors: list[Any] = [None] * len(texts)
        for place, row in zip(order, rows, strict=True):
            vectors[place] = row["embedding"]
        matrix = np.array(vectors, dtype=np.float32)
        if matrix.ndim != 2 or not matrix.shape[1] or not np.isfinite(matrix).all():
            raise ValueError("'embedding' is not a list of numbers, as many for each text")
        return matrix

    return _Request("/embeddings", {"model": model, "input": list(texts), **(extra or {})}, read)


def _retry_after(headers: httpx.Headers) -> float | None:
    """Seconds that Retry-After asks for (a number or a date), at most a minute; None where it says nothing usable."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER) if seconds == seconds else None


def _text(content: bytes | bytearray) -> str:
    # The beginning is enough for a message.
    return content[:10_000].decode("utf-8", errors="replace")


def _words(text: str) -> str:
    return " ".join(text.split())


def _checked_address(base_url: str) -> str:
    import httpx

    try:
        address = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        raise PredictorError("base_url: not an address; it looks like https://host/v1.") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise PredictorError("base_url: needs http:// or https:// and a host, as in https://host/v1.")
    if address.userinfo or address.query or address.fragment:
        raise PredictorError("base_url: must hold no user, query or fragment; the key goes into api_key.")
    return str(address).rstrip("/")


def _checked_key(api_key: str | None) -> str:
    key = (api_key or "").strip()
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        # httpx would show the key in its own message.
        raise PredictorError("api_key: has a space or a character that a header cannot hold.")
    return key
