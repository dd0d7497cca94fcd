"""Answers whether a part of Hunch works. Imports only Django and redis.

`GET /healthz` asks the web process. `python -m survey.health web|worker|beat` is what a container's health check runs:
web over HTTP, worker and beat by the age of the file that they touch while they can talk to the broker.
"""

import argparse
import os
import sys
import time
import urllib.request
from pathlib import Path

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

HEARTBEAT_MAX_AGE = 30.0  # seconds; a worker's heart beats every 2 s, beat sends something every 2 s


def database_answers() -> bool:
    """One statement through the connection of this thread."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def broker_answers(*, timeout: float = 1.0) -> bool:
    """One PING to Redis on a separate connection."""
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=timeout, socket_connect_timeout=timeout) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def healthz(request: HttpRequest) -> JsonResponse:
    """200 while answers can be stored, else 503. A lost broker is named, but respondents can still take part."""
    database = database_answers()
    body = {"database": "ok" if database else "down", "broker": "ok" if broker_answers() else "down"}
    return JsonResponse(body, status=200 if database else 503)


def heartbeat_is_fresh(path: Path, *, since: float = 0.0) -> bool:
    """Whether the file was touched after `since` (seconds since the epoch) and in the last HEARTBEAT_MAX_AGE."""
    try:
        touched = path.stat().st_mtime
    except FileNotFoundError:
        return False
    return touched >= since and time.time() - touched < HEARTBEAT_MAX_AGE


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
        host = settings.ALLOWED_HOSTS[0].lstrip(
            "."
        )  # a leading dot stands for a whole domain and is not part of a name
        return 0 if web_answers(f"http://127.0.0.1:{settings.HUNCH_PORT}", host=host) else 1
    return 0 if heartbeat_is_fresh(Path(settings.HUNCH_HEARTBEAT)) else 1


if __name__ == "__main__":
    sys.exit(main())
