"""How long PostgreSQL waits for us, how many connections we need, and whose tables there are. Imports Django alone.

Pages wait briefly: a lock that somebody holds for ever must not take the whole site. Jobs (commands, workers, exports)
may take long. Every process begins with the limits of jobs; the web process takes those of pages (survey/wsgi.py).
"""

import logging
import select
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.conf import settings
from django.core.signals import request_started
from django.db import DatabaseError, connection, transaction
from django.db.models import Model

if TYPE_CHECKING:
    from django.db.migrations.loader import MigrationLoader

logger = logging.getLogger(__name__)

# Connections in addition to those of the threads that serve pages: the pools of the workers (default, train and score,
# collect), their parents, and some for commands and health checks.
WORKERS = 2 + 1 + 2
PARENTS = 3
COMMANDS = 5

# Each database of a version before 1.0.0 has run this migration, which is now a part of the first one.
BEFORE_FIRST_RELEASE = ("survey", "0002_designs_and_roles")

# Seconds for which a connection that was found usable is known to be, as long as the database sends nothing of itself.
KNOWN_FOR = 20.0


def is_postgresql() -> bool:
    return connection.vendor == "postgresql"


def serve_pages() -> None:
    """Give this process the limits of pages. Called before its first connection."""
    if is_postgresql():
        options = settings.DATABASES["default"]["OPTIONS"]
        options["options"] = options.get("options", "") + settings.HUNCH_PAGE_LIMITS.as_options()
        request_started.connect(skip_needless_check)


def refresh_statistics(*models: type[Model]) -> None:
    """Let PostgreSQL count what is in these tables, as after many rows have come at once.

    Until then it may take a table for nearly empty, and join it row by row: a count of 18,480 answers took minutes. It
    looks by itself, but up to a minute later. Where that fails, the next statements are slow and still right.
    """
    if is_postgresql():
        tables = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in models)
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(f"ANALYZE {tables}")
        except DatabaseError as exc:
            logger.warning("the statistics of %s were not refreshed: %s", tables, exc)


def skip_needless_check(**_signal: Any) -> None:
    """Let Django ask the database before a request only where its connection may be gone.

    Django sends `SELECT 1` before the first statement of each request. A server that ends a connection says so, as at a
    restart. So a connection on which nothing has arrived and that was asked a moment ago is usable. Django's own
    receiver runs before this one and has closed what is too old.
    """
    now = time.monotonic()
    if connection.connection is None or connection.in_atomic_block or connection.settings_dict["OPTIONS"].get("pool"):
        return
    asked_at = getattr(connection, "hunch_asked_at", -KNOWN_FOR)
    if now - asked_at < KNOWN_FOR and _is_quiet(connection.connection):
        connection.health_check_done = True  # type: ignore[attr-defined]
    else:
        connection.hunch_asked_at = now  # type: ignore[attr-defined]


def _is_quiet(server: Any) -> bool:
    """Whether nothing has arrived on this connection, not even its end."""
    if server.closed:
        return False
    poll = select.poll()
    poll.register(server.fileno(), select.POLLIN)
    return not poll.poll(0)


@contextmanager
def patiently() -> Iterator[None]:
    """The limits of jobs for what runs inside: an export in a web process."""
    if not is_postgresql():
        yield
        return
    limits = settings.HUNCH_JOB_LIMITS.milliseconds
    with connection.cursor() as cursor:
        for name, value in limits.items():
            cursor.execute("SELECT set_config(%s, %s, false)", [name, str(value)])
    try:
        yield
    finally:
        if connection.connection is not None and not connection.needs_rollback and connection.is_usable():
            with connection.cursor() as cursor:
                for name in limits:
                    cursor.execute(f"RESET {name}")


def written_patiently(lines: Iterable[str]) -> Iterator[str]:
    """The same lines, each read with the limits of jobs."""
    with patiently():
        yield from lines


def forget_broken_connection() -> None:
    """Let the next statement connect again if the database has ended this thread's connection, as by a restart.

    Django does it between two requests or tasks; long work does it in between.
    """
    if not connection.in_atomic_block and connection.connection is not None and not connection.is_usable():
        connection.close()


def connections_needed() -> int:
    """How many connections everything that runs on one machine opens at most."""
    return int(settings.HUNCH_WEB_WORKERS * settings.HUNCH_WEB_THREADS) + WORKERS + PARENTS + COMMANDS


@dataclass(frozen=True)
class Room:
    """Connections: how many PostgreSQL allows us, how many others hold now, how many we need."""

    allowed: int
    held_by_others: int
    needed: int

    @property
    def is_impossible(self) -> bool:
        return self.needed > self.allowed

    @property
    def is_short(self) -> bool:
        return self.needed + self.held_by_others > self.allowed

    @property
    def sentence(self) -> str:
        return (
            f"PostgreSQL allows us {self.allowed} connections, other programs hold {self.held_by_others} of them, and "
            f"Hunch needs up to {self.needed} (HUNCH_WEB_WORKERS={settings.HUNCH_WEB_WORKERS}, "
            f"HUNCH_WEB_THREADS={settings.HUNCH_WEB_THREADS})."
        )


def room() -> Room | None:
    """Counted on a connection of its own, so that a process may fork afterwards; None where the database is no server.

    Raises django.db.Error or psycopg.Error where it cannot be reached.
    """
    if not is_postgresql():
        return None
    params: Mapping[str, Any] = connection.get_connection_params()
    params = {name: value for name, value in params.items() if name not in ("cursor_factory", "context")}
    with connection.Database.connect(**params) as server:  # type: ignore[attr-defined]
        (allowed,) = server.execute(
            "SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END) FROM pg_settings "
            "WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')"
        ).fetchone()
        (others,) = server.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> %s",
            [settings.HUNCH_APPLICATION_NAME],
        ).fetchone()
    return Room(allowed=int(allowed), held_by_others=int(others), needed=connections_needed())


def version_of_others(loader: "MigrationLoader") -> tuple[str, str] | None:
    """What is wrong and what to do, where another version of Hunch made tables that this one cannot use.

    `loader` has read which migrations this database has run. Those of packages are not looked at: a package may leave
    out what it has squashed.
    """
    ours = {config.label for config in apps.get_app_configs() if config.name.partition(".")[0] == "survey"}
    unknown = loader.applied_migrations.keys() - loader.disk_migrations.keys()
    if BEFORE_FIRST_RELEASE in unknown:
        return (
            "a version before 1.0.0 made this database, which cannot be brought up to this one",
            "read it with the version that made it, and name an empty database in DATABASE_URL for this one",
        )
    if later := sorted(f"{app}.{name}" for app, name in unknown if app in ours):
        return (
            f"a later version made this database: this one does not know {', '.join(later[:5])}",
            "install the version that made it",
        )
    return None
