"""Answers whether a part of Hunch works. Imports only Django, and redis where the broker is asked.

`GET /healthz` asks the web process. `python -m survey.health web|worker|beat` is what a container's health check runs:
web over HTTP, worker and beat by the age of the file that they touch while they can talk to the broker.
"""

import argparse
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache

HEARTBEAT_MAX_AGE = 30.0  # seconds; a worker's heart beats every 2 s, beat sends something every 2 s
PROBE_EVERY = 2.0  # seconds between two writes that test the database
WAITS = ("statement_timeout", "lock_timeout")
STORE = (
    "INSERT INTO django_session (session_key, session_data, expire_date) VALUES ('healthz', '', %s) "
    "ON CONFLICT (session_key) DO UPDATE SET expire_date = excluded.expire_date"
)


def database_stores(*, timeout: float = 3.0) -> bool:
    """One row written and committed through the connection of this thread: a full disk or a standby refuses it.

    The row is a session that has ended, always the same one. `clearsessions` may remove it at any time.
    """
    try:
        with connection.cursor() as cursor, _waiting_at_most(cursor, timeout):
            cursor.execute(STORE, [connection.ops.adapt_datetimefield_value(timezone.now())])
    except Error:
        return False
    return True


@contextmanager
def _waiting_at_most(cursor: Any, seconds: float) -> Iterator[None]:
    milliseconds = int(1000 * seconds)
    if connection.vendor == "sqlite":
        usual = int(1000 * connection.settings_dict["OPTIONS"].get("timeout", 5))
        cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {usual}")
        return
    # lock_timeout too: what waits for a lock is not at work, and says so sooner.
    for name in WAITS:
        cursor.execute("SELECT set_config(%s, %s, false)", [name, str(milliseconds)])
    try:
        yield
    finally:
        if connection.connection is not None and not connection.connection.closed and not connection.needs_rollback:
            for name in WAITS:
                cursor.execute(f"RESET {name}")


def stores_lately() -> bool:
    """`database_stores`, asked once in PROBE_EVERY seconds by each process: anybody may call /healthz."""
    known = cache.get("health-database")
    if known is None:
        known = database_stores()
        cache.set("health-database", known, PROBE_EVERY)
    return bool(known)


def broker_answers(*, timeout: float = 1.0) -> bool:
    """One PING to Redis on a separate connection."""
    import redis  # Not at the top: to load it took a third of the time of a health check that only looks at a file.

    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=timeout, socket_connect_timeout=timeout) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def broker_answers_lately() -> bool:
    """`broker_answers`, asked as seldom: a broker that takes connections and says nothing would hold a thread."""
    known = cache.get("health-broker")
    if known is None:
        known = broker_answers()
        cache.set("health-broker", known, PROBE_EVERY)
    return bool(known)


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while answers can be stored, else 503. A lost broker is named, but respondents can still take part."""
    database = stores_lately()
    body = {"database": "ok" if database else "down", "broker": "ok" if broker_answers_lately() else "down"}
    return JsonResponse(body, status=200 if database else 503)


def heartbeat_is_fresh(path: Path) -> bool:
    """Whether the file was touched in the last HEARTBEAT_MAX_AGE. One from the future is as old as it is far away: the
    clock may have been set back."""
    try:
        touched = path.stat().st_mtime
    except FileNotFoundError:
        return False
    return abs(time.time() - touched) < HEARTBEAT_MAX_AGE


def own_host() -> str:
    """A name that the web process answers to. A leading dot stands for a whole domain and is not part of a name."""
    return str(settings.ALLOWED_HOSTS[0]).lstrip(".")


def web_answers(base_url: str, *, host: str = "", timeout: float = 5.0) -> bool:
    """Whether GET /healthz is 200. `host` is the name in the request: production refuses names it does not know."""
    headers = {"Host": host} if host else {}
    request = urllib.request.Request(f"{base_url}/healthz", headers=headers)  # noqa: S310 (our own http address)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            return bool(response.status == 200)
    except OSError:
        return False


def main() -> int:
    """Exit status 0 if the named part works."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")
    parser = argparse.ArgumentParser(prog="python -m survey.health", description="Exit status 0 if the part is well.")
    parser.add_argument("part", choices=("web", "worker", "beat"))
    if parser.parse_args().part == "web":
        return 0 if web_answers(f"http://127.0.0.1:{settings.HUNCH_PORT}", host=own_host()) else 1
    return 0 if heartbeat_is_fresh(Path(settings.HUNCH_HEARTBEAT)) else 1


if __name__ == "__main__":
    sys.exit(main())
