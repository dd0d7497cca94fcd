"""Light browsers for the benchmarks of the web process: one loop, plain sockets, as little parsing as an answer needs.

A client that costs as much as the server would be measured with it. These speak HTTP/1.1 over kept connections, keep
cookies, follow a redirect after a POST, and read a page to its end. Nothing else of a browser is here.
"""

import asyncio
import html
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

GIVES_UP = 60.0  # seconds a person waits for a page

# Written from the pages of this project: names before values, labels after their radio buttons.
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?')
RADIO = re.compile(r'<input type="radio"[^>]*name="([^"]+)" value="([^"]*)"[^>]*><label[^>]*>(.*?)</label>', re.S)
TYPED = re.compile(r'<input type="(?:number|text)"[^>]*\bname="([^"]+)"')
PRESSED = re.compile(r'<button type="submit"[^>]*\bname="([^"]+)"[^>]*\bvalue="([^"]*)"')
KIND = re.compile(r'data-kind="([^"]*)"')
TAG = re.compile(r"<[^>]+>")


class Refused(Exception):
    """A page was answered by an error."""


@dataclass
class Page:
    status: int
    text: str
    path: str

    @property
    def kind(self) -> str:
        match = KIND.search(self.text)
        return match[1] if match else ""


class Browser:
    """One person's connection, kept open, and cookies."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.cookies: dict[str, str] = {}
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> Page:
        return await self._follow("GET", path, b"", {})

    async def post(self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Page:
        return await self._follow("POST", path, urlencode(fields).encode(), headers or {})

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _follow(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Page:
        async with asyncio.timeout(GIVES_UP):
            for _redirect in range(4):
                status, received, text = await self._exchange(method, path, body, headers)
                if status not in (301, 302, 303, 307):
                    return Page(status, text, path)
                to = urlsplit(received["location"])
                method, path, body, headers = "GET", f"{to.path}?{to.query}" if to.query else to.path, b"", {}
        raise Refused("redirected too often")

    async def _exchange(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], str]:
        host = f"{self.address[0]}:{self.address[1]}"
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
        if self.cookies:
            lines.append("Cookie: " + "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        if method == "POST":
            lines += [f"Content-Length: {len(body)}", "Content-Type: application/x-www-form-urlencoded"]
        request = "\r\n".join([*lines, "", ""]).encode() + body
        was_kept = self._streams is not None
        try:
            return await self._send(request)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            if not was_kept:
                raise
            return await self._send(request)  # The server had ended a kept connection, as it may.

    async def _send(self, request: bytes) -> tuple[int, dict[str, str], str]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self.address)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status, headers = int(head[0].split(" ", 2)[1]), dict[str, str]()
        for line in head[1:]:
            name, _, value = line.partition(":")
            if name.lower() == "set-cookie":
                cookie, _, content = value.partition(";")[0].strip().partition("=")
                self.cookies[cookie] = content
            elif name:
                headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked":
            pieces = []
            while size := int((await reader.readline()).split(b";")[0], 16):
                pieces.append(await reader.readexactly(size + 2))
            await reader.readline()
            body = b"".join(piece[:-2] for piece in pieces)
        else:
            body = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return status, headers, body.decode("utf-8", "replace")


def filled(page: str, right: set[str]) -> dict[str, str]:
    """What a person sends from one of our pages: of each choice one in `right`, else the first; 50 where one types."""
    fields = {name: html.unescape(value) for name, value in HIDDEN.findall(page)}
    choices: dict[str, list[tuple[str, str]]] = {}
    for name, value, label in RADIO.findall(page):
        choices.setdefault(name, []).append((value, html.unescape(TAG.sub("", label)).strip()))
    for name, options in choices.items():
        fields[name] = next((value for value, label in options if label in right), options[0][0])
        if "same" in dict(options):
            fields[name] = "same"  # The belief stays, so no number is asked.
    if "same" not in fields.values():
        fields |= dict.fromkeys(TYPED.findall(page), "50")
    if pressed := PRESSED.search(page):
        fields[pressed[1]] = html.unescape(pressed[2])
    return fields


@dataclass
class Walked:
    """What a crowd did and met."""

    seconds: list[float] = field(default_factory=list)  # of each step
    kinds: Counter[str] = field(default_factory=Counter)  # of pages whose answer was accepted
    errors: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    refused: int = 0  # people for whom there was no place
    took: float = 0.0

    @property
    def steps_per_second(self) -> float:
        return len(self.seconds) / self.took if self.took else 0.0


Person = Callable[[Browser, Walked, Callable[[], bool]], Awaitable[None]]


async def crowd(address: tuple[str, int], people: int, seconds: float, person: Person) -> Walked:
    """So many people at a time, each followed by another one, for so long."""
    walked = Walked()
    begun = time.perf_counter()
    until = begun + seconds

    async def keep_coming() -> None:
        while time.perf_counter() < until and sum(walked.errors.values()) < 100:
            await one_person(address, walked, person, lambda: time.perf_counter() > until)

    await asyncio.gather(*(keep_coming() for _ in range(people)))
    walked.took = time.perf_counter() - begun
    return walked


async def one_person(
    address: tuple[str, int], walked: Walked, person: Person, is_over: Callable[[], bool] = lambda: False
) -> None:
    browser = Browser(address)
    try:
        await person(browser, walked, is_over)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, Refused) as exc:
        walked.errors[f"{type(exc).__name__}: {exc}"[:120]] += 1
    finally:
        browser.close()


def sitting(slug: str, right: set[str], *, by_exchange: bool, think: tuple[float, float] | None = None) -> Person:
    """A whole sitting of one of our studies: from the welcome to the end, with the time of each step."""
    headers = {"X-Hunch-Exchange": "1"} if by_exchange else {}

    async def person(browser: Browser, walked: Walked, is_over: Callable[[], bool]) -> None:
        await browser.get(f"/s/{slug}/")
        page = await browser.get(f"/s/{slug}/consent")
        page = await browser.post(f"/s/{slug}/consent", filled(page.text, right) | {"consent": "yes"})
        while not is_over():
            kind = page.kind
            if page.status == 409 or page.status == 410:
                walked.refused += 1
                return
            if page.status >= 400 or not kind:
                raise Refused(f"{page.status} {kind} {TAG.sub(' ', page.text)[:60]!r}")
            if kind == "end":
                walked.finished += 1
                return
            if think:
                await asyncio.sleep(random.uniform(*think))
            fields = filled(page.text, right)
            started = time.perf_counter()
            page = await browser.post(f"/s/{slug}/sitting", fields, headers)
            walked.seconds.append(time.perf_counter() - started)
            walked.kinds[kind] += page.status < 400

    return person


def form_after_form(path: str, fields: Mapping[str, str]) -> Person:
    """The same form sent again and again: POST, redirect, page."""

    async def person(browser: Browser, walked: Walked, is_over: Callable[[], bool]) -> None:
        page = await browser.get(path)
        while not is_over():
            sent = dict(HIDDEN.findall(page.text)) | fields
            started = time.perf_counter()
            page = await browser.post(path, sent)
            walked.seconds.append(time.perf_counter() - started)
            if page.status >= 400:
                raise Refused(f"{page.status}")
            walked.kinds["form"] += 1

    return person
