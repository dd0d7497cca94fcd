"""System checks for what `settings` cannot check while it is read. Imports Django and database.

Each has an id `hunch.…` and a hint that says what to do.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader

from survey.storage import database

# For commands that ask for these alone: the others look at the code, and load all pages for that.
OURS = "hunch"
SOCKET_PATH_LIMIT = 107  # bytes: sockaddr_un.sun_path holds 108 with its closing zero


@register(OURS)
def run_time_folder_is_writable(**_kwargs: Any) -> list[CheckMessage]:
    probe = Path(settings.HUNCH_VAR) / ".writable"
    try:
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as exc:
        return [
            Error(
                f"HUNCH_VAR: {settings.HUNCH_VAR} cannot be written ({exc.strerror}).",
                hint="Set HUNCH_VAR to a folder that this user may write.",
                id="hunch.E001",
            )
        ]
    return []


@register(OURS)
def folder_of_files_is_writable(**_kwargs: Any) -> list[CheckMessage]:
    """Where HUNCH_STORAGE_URL names a folder. A bucket is asked by `doctor`, and before each step that stores files."""
    if not settings.HUNCH_STORAGE_URL.startswith("file://"):
        return []
    folder = Path(settings.STORAGES["default"]["OPTIONS"]["location"])
    probe = folder / ".writable"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as exc:
        return [
            Error(
                f"HUNCH_STORAGE_URL: {folder} cannot be written ({exc.strerror}).",
                hint="Name a folder that this user may write, such as file:///srv/hunch/files.",
                id="hunch.E005",
            )
        ]
    return []


@register(OURS)
def keys_are_private(**_kwargs: Any) -> list[CheckMessage]:
    """Keys are made with mode 0600 on the first run; a copied or restored folder may have lost that mode."""
    return [
        Error(f"{path} can be read by other users.", hint=f"Run: chmod 600 {path}", id="hunch.E002")
        for path in (Path(settings.HUNCH_VAR) / "secret_key", Path(settings.HUNCH_VAR) / "identity_key")
        if path.exists() and path.stat().st_mode & 0o077
    ]


@register(OURS)
def redis_socket_path_fits(**_kwargs: Any) -> list[CheckMessage]:
    url = urlsplit(settings.REDIS_URL)
    size = len(url.path.encode())
    if url.scheme == "unix" and size > SOCKET_PATH_LIMIT:
        return [
            Error(
                f"REDIS_URL: the socket path has {size} bytes; the system allows {SOCKET_PATH_LIMIT}.",
                hint="Put the socket into a folder with a shorter path.",
                id="hunch.E003",
            )
        ]
    return []


@register(Tags.database)
def connections_suffice(databases: Sequence[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """`migrate` runs this, and so does the web process when it starts."""
    if not databases or DEFAULT_DB_ALIAS not in databases:
        return []
    room = database.room()
    hint = "Raise max_connections of PostgreSQL, or lower HUNCH_WEB_WORKERS or HUNCH_WEB_THREADS."
    if room is None or not room.is_short:
        return []
    if room.is_impossible:
        return [Error(room.sentence, hint=hint, id="hunch.E004")]
    return [Warning(room.sentence, hint=hint, id="hunch.W002")]


@register(Tags.database)
def tables_are_of_this_version(databases: Sequence[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """`migrate` runs this too. It would take the tables of another version for its own, or fail half-way."""
    if not databases or DEFAULT_DB_ALIAS not in databases:
        return []
    wrong = database.version_of_others(MigrationLoader(connections[DEFAULT_DB_ALIAS]))
    if wrong is None:
        return []
    what, fix = wrong
    return [Error(f"DATABASE_URL: {what}.", hint=f"{fix[0].upper()}{fix[1:]}.", id="hunch.E006")]


@register(deploy=True)
def proxy_header_is_set_behind_a_proxy(**_kwargs: Any) -> list[CheckMessage]:
    if settings.SECURE_SSL_REDIRECT and not settings.SECURE_PROXY_SSL_HEADER:
        return [
            Warning(
                "HUNCH_BEHIND_PROXY is off: behind a proxy that ends TLS every page would redirect to itself.",
                hint="Set HUNCH_BEHIND_PROXY=true if a proxy sets X-Forwarded-Proto and X-Forwarded-For.",
                id="hunch.W001",
            )
        ]
    return []
