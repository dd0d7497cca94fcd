"""Content-addressed files behind Django's storage: a file's name is the sha256 of its bytes, so that workers on several
machines share them, nothing is overwritten, and a changed byte is noticed."""

import hashlib
import io
import os
import tempfile
from pathlib import Path

import numpy as np
from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage

CHUNK = 1 << 20


def _name(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"


def sha256_of(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def store(path: Path) -> str:
    """Keep a file's content and return its sha256. Storing the same content again is a no-op."""
    sha256 = sha256_of(path)
    if not default_storage.exists(_name(sha256)):
        with path.open("rb") as file:
            saved = default_storage.save(_name(sha256), File(file))
        if saved != _name(sha256):  # Another worker stored the same content in this moment.
            default_storage.delete(saved)
    return sha256


def fetch(sha256: str, path: Path) -> None:
    """Write the content to `path`, by way of a temporary name, checked.

    Raises:
        ValueError: the stored bytes no longer have this hash.
        FileNotFoundError: it is not in the storage.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    found = hashlib.sha256()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as target, default_storage.open(_name(sha256), "rb") as source:
            while chunk := source.read(CHUNK):
                found.update(chunk)
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        if found.hexdigest() != sha256:
            raise ValueError(f"the stored file {sha256} has changed: restore it from a backup")
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def store_folder(folder: Path) -> dict[str, str]:
    """Every file of a flat folder, as name to sha256."""
    return {path.name: store(path) for path in sorted(folder.iterdir()) if path.is_file()}


def folder_of(files: dict[str, str]) -> Path:
    """A local folder that holds these files, fetched once a machine and named by their hashes."""
    key = hashlib.sha256("\n".join(f"{name}={files[name]}" for name in sorted(files)).encode()).hexdigest()
    folder = Path(settings.HUNCH_VAR) / "cache" / key
    for name, sha256 in files.items():
        if Path(name).name != name:
            raise ValueError(f"{name!r} is not a plain file name")
        if not (folder / name).exists():
            fetch(sha256, folder / name)
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
    with default_storage.open(_name(sha256), "rb") as file:
        content = file.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the stored file {sha256} has changed: restore it from a backup")
    array: np.ndarray = np.load(io.BytesIO(content), allow_pickle=False)
    return array
