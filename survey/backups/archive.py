"""The parts of a backup in one encrypted file: named, hashed, and read from start to end.

Inside the encryption is a compressed tar. Its last part is the contents: what the backup holds, with a sha256 of each
part.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from survey.exceptions import HunchError

from .sealing import BackupDamaged, SealedReader, SealedWriter

FORMAT = 1
CONTENTS, KEYS = "contents.json", "keys.json"
CHUNK = 1 << 20


@dataclass(frozen=True)
class BackedUpTable:
    columns: list[str]
    rows: int


@dataclass
class BackupContents:
    """What a backup holds. `schema`: the migrations that its tables come from. `parts`: sha256 by name."""

    version: str
    made_at: str
    database: str
    schema: list[list[str]]
    tables: dict[str, BackedUpTable] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    missing_files: list[str] = field(default_factory=list)
    last_erasure: str = ""
    parts: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


class PartsWriter:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.parts: dict[str, str] = {}

    def add(self, name: str, content: bytes) -> None:
        self.add_stream(name, io.BytesIO(content), len(content))

    def add_stream(self, name: str, source: IO[bytes], size: int) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = size, 0o600
        hashed = _Hashed(source)
        self._tar.addfile(entry, hashed)
        self.parts[name] = hashed.found.hexdigest()

    def close(self, contents: BackupContents) -> None:
        contents.parts = dict(self.parts)
        self.add(CONTENTS, json.dumps(asdict(contents)).encode())


class _Hashed:
    """A file that hashes what is read of it."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.found = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        read = self._source.read(size)
        self.found.update(read)
        return read


@contextmanager
def written(target: IO[bytes], passphrase: str) -> Iterator[PartsWriter]:
    sealed = SealedWriter(target, passphrase)
    with (
        gzip.GzipFile(fileobj=sealed, mode="wb", compresslevel=5, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        yield PartsWriter(tar)
    sealed.finish()


def parts(path: Path, passphrase: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Every part with its content, which must be read before the next one is asked for.

    Raises:
        HunchError: the file cannot be read, was damaged, or the passphrase is another one.
    """
    try:
        with (
            path.open("rb") as source,
            io.BufferedReader(SealedReader(source, passphrase), CHUNK) as opened,
            gzip.GzipFile(fileobj=opened, mode="rb") as unpacked,
            tarfile.open(fileobj=unpacked, mode="r|") as tar,
        ):
            for entry in tar:
                content = tar.extractfile(entry)
                if content is None:
                    raise BackupDamaged(f"{path}: the part {entry.name} is no file")
                yield entry.name, content
    except OSError as exc:
        raise HunchError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except (tarfile.TarError, EOFError) as exc:
        raise BackupDamaged(f"{path}: the backup is damaged: {exc}") from exc
    except BackupDamaged as exc:
        raise BackupDamaged(f"{path}: {exc.message}") from exc


def verified(path: Path, passphrase: str) -> tuple[BackupContents, dict[str, Any]]:
    """Read a backup to its end and compare every hash; return its contents and keys. Writes nothing.

    Raises:
        HunchError: see `parts`; or the backup is of a later version, or a part is missing or has changed.
    """
    hashes: dict[str, str] = {}
    contents: BackupContents | None = None
    keys: dict[str, Any] = {}
    for name, content in parts(path, passphrase):
        if name == CONTENTS:
            contents = _contents(path, content.read())
            continue
        hashed = _Hashed(content)
        if name == KEYS:
            keys = json.loads(hashed.read())
        else:
            while hashed.read(CHUNK):
                pass
        hashes[name] = hashed.found.hexdigest()
    if contents is None:
        raise BackupDamaged(f"{path}: the backup has no contents: take another copy")
    differing = sorted(name for name in {*hashes, *contents.parts} if hashes.get(name) != contents.parts.get(name))
    if differing:
        raise BackupDamaged(f"{path}: {', '.join(differing[:5])} differ from the backup's contents: take another copy")
    return contents, keys


def _contents(path: Path, content: bytes) -> BackupContents:
    values = json.loads(content)
    if values.get("format") != FORMAT:
        raise HunchError(
            f"{path}: the backup is of a later version of Hunch ({values.get('version')}): install that one"
        )
    values["tables"] = {name: BackedUpTable(**table) for name, table in values["tables"].items()}
    return BackupContents(**values)
