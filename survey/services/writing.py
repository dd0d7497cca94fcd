"""Files that people asked for: each appears whole or not at all. Standard library."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to, which takes its place at the end; nothing stays after an error."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)  # mkstemp's own 0600 would keep it from colleagues.
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
