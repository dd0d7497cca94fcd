"""What `manage.py doctor` looks at, part by part: what is found, and what to do where something is wrong.

Nothing is changed, but for the row that `health` writes to see that rows can be written. The panel is only read.
"""

import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.mail import get_connection
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from survey import health
from survey.contracts import panels
from survey.exceptions import ComputeAway, ComputeRefused, HunchError, StorageAway, StorageRefused
from survey.figures.words import date_and_time, number
from survey.models import WatchRecord
from survey.panels.addresses import public_root
from survey.services.base import files, keys
from survey.storage import database

from . import audit_checks, site_health

CLOCKS_AGREE = timedelta(seconds=5)
WATCH_LOOKS = timedelta(minutes=5)


class Grade(StrEnum):
    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True)
class Diagnosis:
    part: str
    grade: Grade
    what: str
    to_do: str = ""


def examine() -> Iterator[Diagnosis]:
    """Look at every part. One that cannot be looked at is broken, and the others are looked at all the same."""
    for part, look in LOOKS.items():
        try:
            yield from look(part)
        except Exception as exc:
            # Its words may hold an address with a password.
            what = exc.message if isinstance(exc, HunchError) else type(exc).__name__
            yield Diagnosis(part, Grade.BROKEN, f"could not be looked at ({what})", "look at the parts above first")


def _ok(part: str, what: str) -> Diagnosis:
    return Diagnosis(part, Grade.OK, what)


def _database(part: str) -> Iterator[Diagnosis]:
    try:
        connection.ensure_connection()
    except Error:
        fix = "start it, and check host, user and password in DATABASE_URL"
        yield Diagnosis(part, Grade.BROKEN, "cannot be reached", fix)
        return
    yield _ok(part, f"{connection.vendor} answers")
    room = database.room()
    if room is not None and room.is_short:
        grade = Grade.BROKEN if room.is_impossible else Grade.WARNING
        yield Diagnosis(part, grade, room.sentence, "raise max_connections, or lower HUNCH_WEB_WORKERS")


def _writes(part: str) -> Iterator[Diagnosis]:
    if health.database_stores():
        yield _ok(part, "a row can be written")
    else:
        fix = "look for a full disk, a standby, a missing table (hunch migrate) or a long lock"
        yield Diagnosis(part, Grade.BROKEN, "no row can be written", fix)


def _migrations(part: str) -> Iterator[Diagnosis]:
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if wrong := database.version_of_others(executor.loader):
        yield Diagnosis(part, Grade.BROKEN, *wrong)
    elif missing:
        yield Diagnosis(part, Grade.BROKEN, f"{len(missing)} are missing", "run: hunch migrate")
    else:
        yield _ok(part, "all are applied")


def _redis(part: str) -> Iterator[Diagnosis]:
    if health.broker_answers(timeout=3.0):
        yield _ok(part, "answers")
    else:
        yield Diagnosis(part, Grade.BROKEN, "does not answer", "start Redis (hunch up starts one), and check REDIS_URL")


def _workers(part: str) -> Iterator[Diagnosis]:
    served = site_health.queues_with_a_worker()
    for queue in site_health.QUEUES:
        if queue in served:
            yield _ok(part, f"the queue {queue} has a worker")
        else:
            fix = f"start a worker with -Q {queue} (hunch up starts all), and read its log"
            yield Diagnosis(part, Grade.BROKEN, f"no worker takes tasks from the queue {queue}", fix)


def _beat(part: str) -> Iterator[Diagnosis]:
    row = WatchRecord.objects.first()
    fix = "start beat, exactly one, and read its log"
    if row is None:
        yield Diagnosis(part, Grade.BROKEN, "its watch has never looked (it first looks after a minute)", fix)
    elif timezone.now() - row.looked_at >= WATCH_LOOKS:
        yield Diagnosis(part, Grade.BROKEN, f"its watch has not looked since {date_and_time(row.looked_at)}", fix)
    elif row.unhealthy_since:
        since = f"{date_and_time(row.unhealthy_since)}"
        yield Diagnosis(part, Grade.BROKEN, f"its watch finds the site unhealthy since {since}", "read the open alerts")
    else:
        yield _ok(part, "its watch looks")


def _disk(part: str) -> Iterator[Diagnosis]:
    free = site_health.free_megabytes()
    if free < settings.HUNCH_DISK_ALERT_MB:
        yield Diagnosis(part, Grade.WARNING, f"{free} MB are left", f"make room on the disk of {settings.HUNCH_VAR}")
    else:
        yield _ok(part, f"{free} MB are left")


def _files(part: str) -> Iterator[Diagnosis]:
    try:
        files.probe()
    except (StorageAway, StorageRefused) as exc:
        what, _semicolon, to_do = exc.message.partition("; ")
        yield Diagnosis(part, Grade.BROKEN, what, to_do)
    except (OSError, ValueError) as exc:
        what = (
            f"{settings.HUNCH_STORAGE_URL} does not keep a file ({exc.strerror if isinstance(exc, OSError) else exc})"
        )
        yield Diagnosis(part, Grade.BROKEN, what, "look at its disk and its rights, and at HUNCH_STORAGE_URL")
    else:
        yield _ok(part, f"{settings.HUNCH_STORAGE_URL} takes a file, gives it back and deletes it")


def _compute(part: str) -> Iterator[Diagnosis]:
    address = settings.HUNCH_COMPUTE
    if not address:
        yield _ok(part, "threads of the worker that scores go through all scores")
        return
    from survey.processes import dask_cluster

    try:
        machines, threads = dask_cluster.looked_at(address)
    except (ComputeAway, ComputeRefused) as exc:
        what, _semicolon, to_do = exc.message.partition("; ")
        yield Diagnosis(part, Grade.BROKEN, what, to_do or "see the log of the scheduler")
    else:
        yield _ok(part, f"{address} answers: {machines} workers with {threads} threads and our code")


def _clock(part: str) -> Iterator[Diagnosis]:
    if connection.vendor != "postgresql":
        yield _ok(part, "the database has no clock of its own")
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (there,) = cursor.fetchone()
    apart = abs(datetime.now(UTC) - there)
    if apart > CLOCKS_AGREE:
        what = f"the database's clock is {number(apart.total_seconds(), 0)} seconds away from ours"
        yield Diagnosis(part, Grade.BROKEN, what, "run NTP on both machines: leases and deadlines compare times")
    else:
        yield _ok(part, "agrees with the database's")


def _keys(part: str) -> Iterator[Diagnosis]:
    try:
        keys.compare()
    except keys.KeysDiffer as exc:
        what, _sentence, to_do = exc.message.partition(". ")
        yield Diagnosis(part, Grade.BROKEN, what, to_do or "nothing starts until this is done")
    else:
        yield _ok(part, "the keys are those that this database was used with; keep a copy outside this machine")
    for message in checks.run_checks(include_deployment_checks=settings.IN_PRODUCTION):
        # Whatever Django and Hunch check: keys that others can read, hosts, TLS, cookies.
        grade = Grade.BROKEN if message.level >= checks.ERROR else Grade.WARNING
        yield Diagnosis(part, grade, f"{message.id}: {message.msg}", str(message.hint or ""))


def _audit(part: str) -> Iterator[Diagnosis]:
    last = audit_checks.last_check()
    if last is None:
        yield Diagnosis(
            part, Grade.WARNING, "its chain was never checked", "run: hunch verify_audit (beat does it daily)"
        )
    elif last.detail["faults"]:
        what = f"has faults in its chain ({last.detail['faults']}), by the check of {date_and_time(last.at)}"
        yield Diagnosis(part, Grade.BROKEN, what, "run: hunch verify_audit, and look who can write to the database")
    elif timezone.now() - last.at > audit_checks.OVERDUE:
        what = f"its chain was not checked since {date_and_time(last.at)}"
        yield Diagnosis(part, Grade.WARNING, what, "run: hunch verify_audit, and look at the worker's log")
    else:
        yield _ok(part, f"agrees with its chain, checked {date_and_time(last.at)}")


def _hosts(part: str) -> Iterator[Diagnosis]:
    yield _ok(part, f"answers to {', '.join(settings.ALLOWED_HOSTS)}; people are sent to {public_root()}")
    if not settings.IN_PRODUCTION:
        what = "HUNCH_ENV is not production: only this machine reaches the pages"
        yield Diagnosis(part, Grade.WARNING, what, "set HUNCH_ENV=production where people take part")


def _tls_and_proxy(part: str) -> Iterator[Diagnosis]:
    if not settings.IN_PRODUCTION:
        yield _ok(part, "not needed on this machine alone")
    elif not settings.HUNCH_BEHIND_PROXY:
        fix = "set HUNCH_BEHIND_PROXY=true, and let the proxy set X-Forwarded-Proto and X-Forwarded-For"
        yield Diagnosis(part, Grade.BROKEN, "HUNCH_BEHIND_PROXY is off: every page redirects to itself", fix)
    else:
        yield _ok(part, "X-Forwarded-Proto and X-Forwarded-For are trusted: only the proxy may reach web")


def _email(part: str) -> Iterator[Diagnosis]:
    if not settings.HUNCH_ALERT_EMAILS and not settings.HUNCH_ALERT_WEBHOOK:
        what = "alerts are sent to nobody"
        yield Diagnosis(
            part, Grade.WARNING, what, "set HUNCH_ALERT_EMAILS with HUNCH_EMAIL_URL, or HUNCH_ALERT_WEBHOOK"
        )
    if not settings.HUNCH_PING_URL:
        fix = "set HUNCH_PING_URL to a dead-man service: a dead host sends no e-mail"
        yield Diagnosis(part, Grade.WARNING, "nobody outside notices that this host is dead", fix)
    if settings.EMAIL_HOST:
        server: Any = get_connection()
        try:
            server.open()
            server.close()
        except (OSError, ssl.SSLError) as exc:  # smtplib's errors are OSErrors
            what = f"the mail server does not take us ({type(exc).__name__})"
            yield Diagnosis(part, Grade.BROKEN, what, "check HUNCH_EMAIL_URL")
        else:
            yield _ok(part, "the mail server takes us")


def _panels(part: str) -> Iterator[Diagnosis]:
    for name in panels.names():
        kind = panels.get(name).client
        if kind is None:
            continue
        if missing := kind.missing_setting():
            yield Diagnosis(part, Grade.WARNING, f"{name} is not set up", missing)
            continue
        with kind.open() as client:
            # Nobody's posting has this name: the answer is empty, and says that the token is taken.
            list(client.drafts("hunch doctor"))
        yield _ok(part, f"{name} takes our token")


LOOKS: dict[str, Callable[[str], Iterator[Diagnosis]]] = {
    "database": _database,
    "writes": _writes,
    "migrations": _migrations,
    "redis": _redis,
    "workers": _workers,
    "beat": _beat,
    "disk": _disk,
    "files": _files,
    "compute": _compute,
    "clock": _clock,
    "keys and settings": _keys,
    "audit": _audit,
    "hosts": _hosts,
    "TLS and proxy": _tls_and_proxy,
    "alerts": _email,
    "panels": _panels,
}
