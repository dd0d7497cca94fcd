"""A server on the loopback that speaks OpenAI's protocol, well or badly, as a test asks."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from predictors.readings import Detail, Text, TextReader


@dataclass
class Raw:
    """A reply as bytes: status, content type, headers; `cut` ends the connection this many bytes early."""

    body: bytes | str | dict | list
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0

    def encoded(self) -> bytes:
        if isinstance(self.body, (dict, list)):
            return json.dumps(self.body).encode()
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass
class Seen:
    """One request that came in."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]


Reply = Raw | Callable[[Seen], Raw]


def refusal(status: int, message: str = "no", headers: dict[str, str] | None = None, **details: Any) -> Raw:
    return Raw({"error": {"message": message, **details}}, status=status, headers=headers or {})


def chat(*texts: str | None, top: list[dict[str, float]] | None = None, **usage: int) -> Raw:
    """A chat's reply: one choice per text, and the likeliest tokens at each position of the first."""
    logprobs = None
    if top is not None:
        places = [[{"token": token, "logprob": value} for token, value in place.items()] for place in top]
        logprobs = {"content": [{**place[0], "top_logprobs": place} for place in places]}
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for index, text in enumerate(texts)
    ]
    choices[0]["logprobs"] = logprobs
    return Raw({"choices": choices, "usage": usage or {"prompt_tokens": 7, "completion_tokens": len(texts)}})


def embeddings(seen: Seen) -> Raw:
    """Each text's length and its first letter's number, in reversed order with their indices."""
    rows = [
        {"index": index, "embedding": [float(len(text)), float(ord(text[0]))]}
        for index, text in enumerate(seen.body["input"])
    ]
    return Raw({"data": rows[::-1], "usage": {"total_tokens": len(rows)}})


def serving(model: TextReader) -> Callable[[Seen], Raw]:
    """The answers of a server that has this model behind it: a prompt's tokens, and the likeliest ones, as text."""

    def answer(seen: Seen) -> Raw:
        prompt = seen.body["prompt"]
        ((_number, reading),) = model.each([Text("prompt", prompt)], detail=Detail(top=seen.body["logprobs"]))
        count = len(reading.of_text)
        assert reading.distributions is not None
        listed = {
            "tokens": [*reading.strings(prompt)[:count], " made"],
            "token_logprobs": [*reading.log_probabilities.tolist(), -1.0],
            "top_logprobs": [*(dict(top) for top in reading.distributions.top[:count]), {}],
        }
        return Raw({"choices": [{"text": "", "logprobs": listed}], "usage": {}})

    return answer


class FakeEndpoint:
    """`script` is worked off one request at a time, then `answer` replies to all; `seen` keeps the requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[Reply] = []
        self.answer: Reply = chat("1")
        self.seen: list[Seen] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.lock = threading.Lock()

    def reply(self, seen: Seen) -> Raw:
        with self.lock:
            self.seen.append(seen)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            chosen = self.script.pop(0) if self.script else self.answer
        try:
            return chosen if isinstance(chosen, Raw) else chosen(seen)
        finally:
            with self.lock:
                self.in_flight -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    fake: FakeEndpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        raw = self.server.fake.reply(Seen(self.path, body, dict(self.headers.items())))
        content = raw.encoded()
        headers = {"Content-Type": raw.content_type, "Content-Length": str(len(content)), **raw.headers}
        head = f"HTTP/1.1 {raw.status} Told\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        # In one write: a head and a body in two packets wait for each other.
        self.wfile.write((head + "\r\n").encode() + content[: len(content) - raw.cut])
        if raw.cut:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `seen` instead."""


@contextmanager
def running() -> Iterator[FakeEndpoint]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.fake = FakeEndpoint(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
