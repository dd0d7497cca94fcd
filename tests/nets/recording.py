"""What acts said, which files they wrote and which rows they changed, as text that is compared with a recorded one.

    python -m tests.renew commands pages sittings money bounds

writes the texts again; the diff shows what has changed. The clock stands still between two acts, and chance comes from
a seed. What is another one with each version of the code, and each key, stands as <hash>, <secret> and so on.
"""

import csv
import difflib
import hashlib
import io
import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import pytest
import time_machine
from django.contrib import admin
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client

from survey.models import CompletionCode, Respondent
from tests import kept

T = TypeVar("T")
DATA = Path(__file__).with_name("data")
START = "2026-03-02T09:00:00Z"
STEP = 60  # seconds between two acts
ROOT = str(Path(__file__).parents[2])
MOST_ROWS, MOST_LINES, MOST_CHARACTERS = 6, 30, 160
# What nobody reads off again: sessions, logs of the admin, permissions.
NOT_COMPARED = re.compile(r"^(auth_permission|django_|auth_group|axes_)")
LEFT_OUT = ("id", "salt")
MASKED = [
    (re.compile(r"\b[0-9a-f]{64}\b"), "<hash>"),
    (re.compile(r"gAAAA[\w=-]{60,}"), "<sealed>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<hex>"),
    (re.compile(r"\b[0-9a-f]{48}\b"), "<hex>"),
    (re.compile(r"(?<![\w/.-])(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{22,}(?![\w.-])"), "<secret>"),
    (re.compile(r'(?<="bytes": )\d+'), "<number>"),
    (re.compile(r"\bport \d+|(127\.0\.0\.1|localhost):\d+"), "<port>"),
    (re.compile(r"\b\d+(\.\d+)? (MB|GB|KiB|MiB|GiB)\b"), r"<number> \2"),
]
LONG_NUMBER = re.compile(r"-?\d+\.\d{5,}(?:e-?\d+)?|-?\d+(?:\.\d+)?e-\d+")


def number_of_any_processor(number: float) -> str:
    """A number with the digits that every processor gives: what is nearly 0 is 0, and a whole one has its point."""
    if abs(number) < 1e-9:
        return "0.0"
    digits = f"{number:.5g}"
    return digits if "." in digits or "e" in digits else f"{digits}.0"


class Chance:
    """Secrets and drawn numbers, the same each time: an act has its own, whatever was drawn before it."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, act: str) -> None:
        self.act, self.counts = act, Counter[int]()
        random.seed(act)

    def draw(self, size: int) -> bytes:
        self.counts[size] += 1
        return hashlib.shake_256(f"{self.act}/{size}/{self.counts[size]}".encode()).digest(size)


@contextmanager
def fixed_chance() -> Iterator[Chance]:
    chance, state = Chance(), random.getstate()
    with mock.patch.object(os, "urandom", chance.draw), mock.patch.object(random, "_urandom", chance.draw):
        yield chance
    random.setstate(state)


@contextmanager
def no_time_passes() -> Iterator[None]:
    """Training and predicting say how long they took."""
    with ExitStack() as patches:
        for module in ("training", "comparison"):
            patches.enter_context(mock.patch(f"predictors.{module}.perf_counter", return_value=0.0))
        yield


def count_keys_from_one() -> None:
    """SQLite goes on where an earlier test has ended. What migrations wrote stays."""
    with connection.cursor() as cursor:
        for name, migrated in kept.every_table():
            if not migrated:
                cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [name])


class Script:
    """Acts one after the other, and all that they said and changed."""

    def __init__(self, folder: Path, clock: Any, chance: Chance) -> None:
        self.folder, self.clock, self.chance = folder, clock, chance
        self.titles: Counter[str] = Counter()
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._rows = self._read_rows()

    def act(self, title: str, do: Callable[[], Any], *, rows: bool = True) -> Any:
        """Do it, and note what it gave where that is text, what it refused, and which rows are other ones now."""
        self.clock.shift(STEP)
        self.titles[title] += 1
        self.chance.begin(f"{title} {self.titles[title]}")
        self.lines.append(f"## {title}")
        result = None
        try:
            result = do()
            said = result if isinstance(result, str) else ""
        except (SystemExit, CommandError) as exc:
            said = f"ended: {exc}"
        except Exception as exc:
            said = f"{type(exc).__name__}: {exc}"
        self._know_names()
        self.lines += [f"   {line}".rstrip() for line in self.clean(said).splitlines()]
        if rows:
            self._note_rows()
        return result

    def prepare(self, make: Callable[[], T]) -> T:
        """What is made for the acts to come, and not noted."""
        self.chance.begin("")
        made = make()
        # What is made may have been kept, with its secrets: they are not drawn again.
        self.chance.begin("prepared")
        self._rows = self._read_rows()
        return made

    def command(self, *words: Any, rows: bool = True, **options: Any) -> str:
        """What the command printed. Files that it wrote into the folder are noted too."""
        self._files = self._read_files()
        printed = self.act(self.clean(" ".join(map(str, words))), lambda: self._call(words, options), rows=rows)
        self._note_files()
        return str(printed)

    def page(
        self, client: Client, address: str, data: Any = None, *, rows: bool = True, most: int = 10_000, **more: Any
    ) -> Any:
        """A page's visible text; with `data` a form is sent, and the page that follows is noted. Behind `most` lines
        stands a digest alone."""
        response: Any = None

        def ask() -> str:
            nonlocal response
            ask_for = client.get if data is None else client.post
            response = ask_for(address, data or {}, **more)
            return "\n".join(shortened(self.clean(text_of(response)).splitlines(), most))

        method = "GET" if data is None else f"POST {json.dumps(data, default=str, sort_keys=True)}"
        self.act(self.clean(f"{method} {address}"), ask, rows=rows and data is not None)
        return response

    def clean(self, text: str) -> str:
        text = text.replace(str(self.folder), "FOLDER").replace(ROOT, "HUNCH").replace(os.environ["HUNCH_VAR"], "VAR")
        for name, word in self.names.items():
            text = text.replace(name, word)
        for pattern, word in MASKED:
            text = pattern.sub(word, text)
        return LONG_NUMBER.sub(lambda match: number_of_any_processor(float(match[0])), text)

    def compare(self, name: str, *, renew: bool) -> None:
        path = DATA / f"{name}.txt"
        text = "\n".join(self.lines) + "\n"
        if renew:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        stored = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        differences = list(difflib.unified_diff(stored, text.splitlines(), "recorded", "now", lineterm="", n=2))
        kind = name.partition("/")[0]
        assert not differences, "\n".join(
            [*differences[:80], f"If that is meant: `python -m tests.renew {kind}`, and look at the diff."]
        )

    # Commands and their files

    def _call(self, words: tuple[Any, ...], options: dict[str, Any]) -> str:
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command(*map(str, words), stdout=out, stderr=err, **options)
        except (SystemExit, CommandError) as exc:
            err.write(f"ended: {exc}\n")
        return out.getvalue() + "".join(f"! {line}\n" for line in err.getvalue().splitlines())

    def _read_files(self) -> dict[str, str]:
        return {
            path.relative_to(self.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def _note_files(self) -> None:
        for name, digest in self._read_files().items():
            if self._files.get(name) != digest:
                self.lines += [f"   file {self.clean(name)}:", *self._file_lines(self.folder / name)]

    def _file_lines(self, path: Path) -> list[str]:
        if path.suffix not in (".csv", ".json", ".txt", ".md", ".toml", ".tsv", ".R", ".tex", ".html"):
            return ["      (not compared)"]
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".html":
            text = text_of_page(text)
        return [f"      {line}" for line in shortened(self.clean(text).splitlines(), MOST_LINES)]

    # Rows

    def _read_rows(self) -> dict[str, dict[Any, dict[str, Any]]]:
        rows: dict[str, dict[Any, dict[str, Any]]] = {}
        for name in kept.filled_tables():
            if not NOT_COMPARED.match(name):
                table = kept.read_table(name)
                key = table.columns.index("id") if "id" in table.columns else 0
                rows[name] = {row[key]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
        return rows

    def _note_rows(self) -> None:
        before, after = self._rows, self._read_rows()
        for name in sorted({*before, *after}):
            old, new = before.get(name, {}), after.get(name, {})
            lines = [f"   - {name} {key}" for key in old if key not in new]
            lines += [f"   + {name} {key}: {self._row(new[key])}" for key in new if key not in old]
            lines += [
                f"   ~ {name} {key}: {self._change(old[key], new[key])}"
                for key in new
                if key in old and old[key] != new[key]
            ]
            self.lines += shortened(lines, MOST_ROWS)
        self._rows = after

    def _row(self, row: dict[str, Any]) -> str:
        cells = {name: self._cell(value) for name, value in row.items() if name not in LEFT_OUT}
        return ", ".join(f"{name}={cell}" for name, cell in cells.items() if cell not in ("-", "0", "", "[]", "{}"))

    def _change(self, old: dict[str, Any], new: dict[str, Any]) -> str:
        changed = [name for name in new if old[name] != new[name]]
        return ", ".join(f"{name} {self._cell(old[name])} > {self._cell(new[name])}" for name in changed)

    def _cell(self, value: Any) -> str:
        if value is None:
            return "-"
        if isinstance(value, bytes | memoryview):
            return f"<{len(bytes(value))} bytes>"
        if isinstance(value, float):
            return f"{value:.5g}"
        text = self.clean(" ".join(str(value).split()))
        return text if len(text) <= MOST_CHARACTERS else f"{text[:60]}... {digest_of(text)}"

    def _know_names(self) -> None:
        """Codes and pseudonyms are drawn by chance: each stands by what it is."""
        for code in CompletionCode.objects.select_related("study"):
            self.names.setdefault(code.code, f"<code {code.study.slug} {code.outcome}>")
        for number, pseudonym in Respondent.objects.order_by("pk").values_list("pk", "pseudonym"):
            self.names.setdefault(pseudonym, f"<person {number}>")


def digest_of(text: str) -> str:
    return f"#{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def shortened(lines: list[str], most: int) -> list[str]:
    """The first lines, and a digest of the others."""
    if len(lines) <= most + 1:
        return lines
    margin = re.match(r" *", lines[0])[0]  # type: ignore[index]
    return [*lines[:most], f"{margin}... and {len(lines) - most} more {digest_of(chr(10).join(lines[most:]))}"]


def text_of(response: Any) -> str:
    """The status, where it leads to, and what a reader sees."""
    head = str(response.status_code)
    if "Location" in response.headers:
        return f"{head} to {response.headers['Location']}"
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    body = response.getvalue() if response.streaming else response.content
    if kind == "text/html":
        return f"{head}\n{text_of_page(body.decode())}"
    if kind in ("text/csv", "text/plain", "application/json", "text/markdown", "application/toml"):
        return "\n".join([f"{head} {kind}", *shortened(body.decode().splitlines(), MOST_LINES)])
    return f"{head} {kind}"


class VisibleText(HTMLParser):
    """One line for each text, link, field and button."""

    SKIPPED = {"script", "style", "svg", "head", "nav", "template"}
    BLOCKS = {
        *("p", "div", "li", "ul", "ol", "dt", "dd", "td", "th", "tr", "table", "caption", "h1", "h2", "h3", "h4"),
        *("label", "section", "legend", "form", "summary", "figcaption", "option", "pre", "br", "main"),
    }

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line: list[str] = []
        self._skipped: list[str] = []
        self.feed(page)
        self._end_line()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = {name: value or "" for name, value in attrs}
        if tag in self.SKIPPED:
            self._skipped.append(tag)
        elif self._skipped:
            return
        elif tag in self.BLOCKS:
            self._end_line()
        if tag == "option":
            self._line.append(f"<option {about.get('value', '')}{'*' if 'selected' in about else ''}>")
        elif tag == "a" and about.get("href"):
            self._line.append(f"<to {about['href']}>")
        elif tag in ("input", "select", "textarea", "button") and not NOT_SEEN.match(about.get("name", "")):
            wanted = ("type", "name", "value", "min", "max", "step", "checked", "required", "maxlength", "disabled")
            parts = [name if about[name] == "" else f"{name}={about[name]}" for name in wanted if name in about]
            self._line.append(f"<{' '.join([tag, *parts])}>")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            if tag == self._skipped[-1]:
                self._skipped.pop()
        elif tag in self.BLOCKS or tag == "button":
            self._end_line()

    def handle_data(self, data: str) -> None:
        if not self._skipped and data.strip():
            self._line.append(" ".join(data.split()))

    def _end_line(self) -> None:
        if self._line:
            self.lines.append(PERMISSION.sub(r"<option\1> \2", " ".join(self._line)))
            self._line = []


# A new model would give all permissions behind its own another number.
PERMISSION = re.compile(r"^<option \d+(\*?)> (.* \| Can )")
NOT_SEEN = re.compile(r"csrfmiddlewaretoken|client_")
MAIN = re.compile(r"<main\b.*?</main>", re.DOTALL)


def text_of_page(page: str) -> str:
    main = MAIN.search(page)
    return "\n".join(VisibleText(main[0] if main else page).lines)


def table(path: Path, header: str, rows: Any) -> Path:
    """A file of comma-separated values; the header as one text."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header.split(","), *rows])
    return path


@pytest.fixture
def script(db: None, tmp_path: Path, settings: Any, request: pytest.FixtureRequest) -> Iterator[Script]:
    """A script in an empty database, compared at the end with the text that is named like the test and its file."""
    count_keys_from_one()
    admin.autodiscover()  # It notes in the audit who logs in; else an order of tests would tell whether it is loaded.
    with no_time_passes(), fixed_chance() as chance, time_machine.travel(START, tick=False) as clock:
        made = Script(tmp_path, clock, chance)
        yield made
    kind = request.module.__name__.rpartition("test_")[2]
    name = request.node.name.removeprefix("test_").replace("[", "-").rstrip("]")
    made.compare(f"{kind}/{name}", renew=request.config.getoption("--renew"))
