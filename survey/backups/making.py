"""Making a backup while the study runs: every row as it was at one moment, the files that rows name, and the keys."""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.apps import apps
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from survey.exceptions import HunchError
from survey.models import Erasure
from survey.services.base import erasures, files
from survey.services.stages.needed_files import needed_files
from survey.storage.paths import installed_version

from . import archive, rows
from .archive import BackedUpTable, BackupContents

SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


def make(path: Path, passphrase: str, *, leave_out: frozenset[str] = frozenset()) -> BackupContents:
    """Write a backup to a new file. An error leaves no file.

    Args:
        leave_out: tables of no installed app, which could not be restored.

    Raises:
        HunchError: the file is there already or cannot be written; or a table is of no installed app.
    """
    if unknown := [name for name in rows.unknown_tables(apps) if name not in leave_out]:
        raise HunchError(
            f"the tables {', '.join(unknown)} are of no package that is installed here, so their rows could not be "
            f"backed up. Install the package again, or leave them out: --leave-out {' --leave-out '.join(unknown)}"
        )
    erasures.list_or_warn()
    with _new_file(path) as target, archive.written(target, passphrase) as writer:
        contents = _written_rows(writer)
        for sha256 in contents.files:
            with files.opened(sha256) as (source, size):
                writer.add_stream(f"files/{sha256}", source, size)
        keys = {"SECRET_KEY": settings.SECRET_KEY, "HUNCH_IDENTITY_KEY": settings.HUNCH_IDENTITY_KEY}
        writer.add(archive.KEYS, json.dumps(keys).encode())
        writer.close(contents)
    return contents


def _written_rows(writer: archive.PartsWriter) -> BackupContents:
    named: set[str] = set()
    with rows.one_moment():
        last = Erasure.objects.exclude(listed_at=None).order_by("pk").last()
        loader = MigrationLoader(connections[DEFAULT_DB_ALIAS])
        # Not those of packages that are no longer installed: a restore could not repeat them.
        applied = loader.applied_migrations.keys() & loader.disk_migrations.keys()
        contents = BackupContents(
            version=installed_version(),
            made_at=timezone.now().isoformat(),
            database=connection.vendor,
            schema=sorted([app, name] for app, name in applied),
            last_erasure=str(last.public_id) if last else "",
        )
        for table, model in rows.tables_of(apps).items():
            count = 0
            for number, part in enumerate(rows.parts_of(model), start=1):
                text = "\n".join(part)
                named.update(SHA256.findall(text))
                writer.add(f"rows/{table}/{number:06}.jsonl", text.encode())
                count += len(part)
            contents.tables[table] = BackedUpTable(rows.columns_of(model), count)
        needed = set(needed_files())
    # After that moment: stored files are never changed or removed.
    stored = named & files.names_stored()
    contents.files = sorted(sha256 for sha256 in stored if files.is_stored(sha256))
    contents.missing_files = sorted((stored | needed) - set(contents.files))
    return contents


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file next to `path`, which gets its name when all of it is on the disk."""
    if path.exists():
        raise HunchError(f"{path}: is there already; name a new file")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)  # Refuses a file that came meanwhile.
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as exc:
        raise HunchError(
            f"{path}: the backup cannot be written: {exc.strerror or exc}; nothing was left there"
        ) from exc
