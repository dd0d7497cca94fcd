"""Whether the site works: the database takes a row, the disk has room, Redis and a worker answer, pages are served."""

import shutil
from collections.abc import Callable

import redis
from celery import current_app
from django.conf import settings

from survey import health
from survey.processes import queues

QUEUES = queues.ALL
# With less than this part of HUNCH_DISK_ALERT_MB left, the site counts as unhealthy.
DISK_IS_FULL = 0.1


def free_megabytes() -> int:
    """Of the disk that HUNCH_VAR lies on."""
    return int(shutil.disk_usage(settings.HUNCH_VAR).free // 1_000_000)


def queues_with_a_worker(*, timeout: float = 3.0) -> set[str]:
    """The queues that a worker takes tasks from. A worker answers while its processes are at work, too."""
    try:
        answers = current_app.control.inspect(timeout=timeout).active_queues()
    except Exception:  # Redis went away in between: kombu passes on errors of sockets and of Redis.
        return set()
    return {queue["name"] for queues in (answers or {}).values() for queue in queues or ()}


def queue_lengths() -> dict[str, int]:
    """How many tasks wait in each queue; empty where Redis is away."""
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as client:
            return {queue: int(client.llen(queue)) for queue in QUEUES}
    except (redis.RedisError, OSError):
        return {}


def database_problem() -> str:
    return "" if health.database_stores() else "No row can be written: the database is away, full or read only."


def disk_problem() -> str:
    free = free_megabytes()
    if free >= settings.HUNCH_DISK_ALERT_MB * DISK_IS_FULL:
        return ""
    return f"The disk of HUNCH_VAR has {free} MB left: nothing can be stored soon. Make room."


def queue_problem() -> str:
    return "" if health.broker_answers(timeout=3.0) else "Redis does not answer: no work is done behind the pages."


def web_problem() -> str:
    address = settings.HUNCH_WATCH_WEB
    if not address or health.web_answers(address, host=health.own_host(), timeout=10.0):
        return ""
    return "The web process does not answer, or cannot store an answer: see its log."


PARTS: dict[str, Callable[[], str]] = {
    "database": database_problem,
    "disk": disk_problem,
    "queue": queue_problem,
    "web": web_problem,
}


def problems() -> dict[str, str]:
    """What is wrong, by part; empty if the site works."""
    return {part: problem for part, look in PARTS.items() if (problem := look())}
