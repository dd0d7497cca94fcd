"""Content-addressed files behind Django's storage: a file's name is the sha256 of its bytes.

So workers on several machines can share files, nothing is overwritten, and a changed byte is noticed.
"""

import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage

CHUNK = 1 << 20
SPACE = 256 * CHUNK  # bytes that must be free before long work begins: the files of one large predictor


def full_folder() -> Path | None:
    """A folder that we write to and whose disk has less than SPACE left; None if all have more."""
    folders = (Path(settings.HUNCH_VAR), Path(tempfile.gettempdir()))
    return next((folder for folder in folders if shutil.disk_usage(folder).free < SPACE), None)


def name_of(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"


def _copied(source: IO[bytes], target: IO[bytes] | None = None) -> str:
    """Read a file to its end, copy it to `target` if given, and return its sha256."""
    found = hashlib.sha256()
    while chunk := source.read(CHUNK):
        found.update(chunk)
        if target is not None:
            target.write(chunk)
    return found.hexdigest()


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return _copied(file)


def is_stored(sha256: str) -> bool:
    """Whether the whole content is there. A worker that died while storing may have left a part under the same name."""
    try:
        with default_storage.open(name_of(sha256), "rb") as file:
            return _copied(file) == sha256
    except FileNotFoundError:
        return False


@contextmanager
def opened(sha256: str) -> Iterator[tuple[IO[bytes], int]]:
    """The stored content, unchecked, and its size in bytes."""
    with default_storage.open(name_of(sha256), "rb") as file:
        yield file, default_storage.size(name_of(sha256))


def store(path: Path) -> str:
    """Store a file's content and return its sha256. Storing the same content again changes nothing, or repairs it."""
    sha256 = sha256_of(path)
    if is_stored(sha256):
        return sha256
    name = name_of(sha256)
    default_storage.delete(name)
    with path.open("rb") as file:
        saved = default_storage.save(name, File(file))
    if saved != name:  # Another worker is storing the same content.
        default_storage.delete(saved)
    else:
        _flush(name)
    return sha256


def _flush(name: str) -> None:
    """Flush the file to disk before a row names it. Storages without a local path do that themselves."""
    try:
        local = Path(default_storage.path(name))
    except NotImplementedError:
        return
    for path in (local, local.parent):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def fetch(sha256: str, path: Path) -> None:
    """Write the content to a new file at `path`, checked.

    Raises:
        ValueError: the stored bytes no longer have this hash.
        FileNotFoundError: it is not in the storage.
    """
    with path.open("xb") as target, default_storage.open(name_of(sha256), "rb") as source:
        if _copied(source, target) != sha256:
            raise ValueError(f"the stored file {sha256} has changed: restore it from a backup")


def store_folder(folder: Path) -> dict[str, str]:
    """Every file of a flat folder, as name to sha256."""
    return {path.name: store(path) for path in sorted(folder.iterdir()) if path.is_file()}


def folder_of(files: dict[str, str]) -> Path:
    """A local folder that holds exactly these files. Fetched once per machine and named by their hashes.

    It is filled under a different name and then renamed, so that no process ever reads a half-fetched predictor.

    Raises:
        ValueError: a stored file has changed, or a name is not a plain file name.
        FileNotFoundError: a file is not in the storage.
    """
    for name in files:
        if Path(name).name != name:
            raise ValueError(f"{name!r} is not a plain file name")
    key = hashlib.sha256("\n".join(f"{name}={files[name]}" for name in sorted(files)).encode()).hexdigest()
    folder = Path(settings.HUNCH_VAR) / "cache" / key
    if folder.is_dir() and all((folder / name).is_file() for name in files):
        if all(sha256_of(folder / name) == sha256 for name, sha256 in files.items()):
            return folder
        shutil.rmtree(folder)  # The local copy is damaged: fetch the right bytes again.
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        whole = Path(temporary) / "whole"
        whole.mkdir()
        for name, sha256 in files.items():
            fetch(sha256, whole / name)
        try:
            whole.rename(folder)
        except OSError:
            if not folder.is_dir():  # Another process of this machine was faster.
                raise
    return folder


def store_array(array: np.ndarray) -> str:
    """An array as one .npy file (never pickled)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "array.npy"
        with path.open("wb") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        return store(path)


def load_array(sha256: str) -> np.ndarray:
    with default_storage.open(name_of(sha256), "rb") as file:
        content = file.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the stored file {sha256} has changed: restore it from a backup")
    array: np.ndarray = np.load(io.BytesIO(content), allow_pickle=False)
    return array
