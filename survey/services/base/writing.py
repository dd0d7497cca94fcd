"""Files that people asked for: each appears whole or not at all. Imports only the errors."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from survey.exceptions import HunchError


@contextmanager
def replace_file(path: Path, *, mode: int = 0o644) -> Iterator[Path]:
    """A temporary file next to `path` to write to. It is renamed to `path` at the end, or removed after an error.

    Args:
        mode: by default colleagues may read it.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_private_file(path: Path, lines: Iterable[str]) -> None:
    """A new file that nobody else on this machine may read. It never replaces an older file, and is removed after an
    error.

    Raises:
        HunchError: it cannot be made.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as exc:
        raise HunchError(f"{path}: cannot be made: {exc.strerror}; name a new file") from exc
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.writelines(lines)
    except BaseException:
        path.unlink()
        raise
