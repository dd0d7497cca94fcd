"""Content-addressed files behind Django's storage: a file's name is the sha256 of its bytes.

So workers on several machines can share files, nothing is overwritten, and a changed byte is noticed. The storage is a
folder, or a bucket that HUNCH_STORAGE_URL names. Every function raises StorageAway where the bucket cannot be reached,
and StorageRefused where it does not let us in.
"""

import errno
import hashlib
import io
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage

from survey.exceptions import StorageAway, StorageRefused

CHUNK = 1 << 20
SPACE = 256 * CHUNK  # bytes that must be free before long work begins: the files of one large predictor


# What speaks to a bucket. Its errors are known by their package: to import it here would load it everywhere.
_SPEAKS_S3 = ("botocore", "boto3", "s3transfer")
_MISSING = (404,)
_WRONG_SETTING = (301, 400, 401, 403, 405)  # another region, a signature that does not fit, no right; no such bucket
_NO_CREDENTIALS = ("NoCredentials", "PartialCredentials", "ProfileNotFound", "ConfigParse")  # what boto3 says itself
_SHA256 = re.compile(r"[0-9a-f]{64}")


def local_folder() -> Path | None:
    """The folder of the storage; None if it is a bucket."""
    try:
        return Path(default_storage.path(""))
    except NotImplementedError:
        return None


def full_folder() -> Path | None:
    """A folder that we write to and whose disk has less than SPACE left; None if all have more."""
    folders = [Path(settings.HUNCH_VAR), Path(tempfile.gettempdir())]
    if (stored := local_folder()) is not None and stored.exists():
        folders.append(stored)
    return next((folder for folder in folders if shutil.disk_usage(folder).free < SPACE), None)


@contextmanager
def _reached() -> Iterator[None]:
    """Turn what libraries of buckets raise into our errors.

    Raises:
        FileNotFoundError: an object is not there.
        StorageAway: the storage cannot be reached, or cannot answer now.
        StorageRefused: it answers that we may not, or that the bucket is not there.
    """
    try:
        yield
    except Exception as exc:
        if type(exc).__module__.partition(".")[0] not in _SPEAKS_S3:
            raise
        answer: dict[str, Any] = getattr(exc, "response", None) or {}
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = str(answer.get("Error", {}).get("Code", "")) or type(exc).__name__
        if status in _MISSING and code != "NoSuchBucket":
            raise FileNotFoundError("not in the storage") from exc
        if status in (*_MISSING, *_WRONG_SETTING) or code.startswith(_NO_CREDENTIALS):
            raise StorageRefused(
                f"HUNCH_STORAGE_URL: {settings.HUNCH_STORAGE_URL} refuses us ({code}); check the bucket, the region, "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may read, write, list and delete there"
            ) from exc
        raise StorageAway(
            f"HUNCH_STORAGE_URL: {settings.HUNCH_STORAGE_URL} cannot be reached now ({code}); check its address, and "
            "that its server runs"
        ) from exc


@contextmanager
def _reading(sha256: str) -> Iterator[Any]:
    """The stored content, unchecked.

    Raises:
        FileNotFoundError: it is not in the storage.
    """
    try:
        with _reached(), default_storage.open(name_of(sha256), "rb") as file:
            yield file
    except FileNotFoundError as exc:
        if exc.filename is not None:
            raise
        raise FileNotFoundError(errno.ENOENT, "not in the storage", name_of(sha256)) from exc  # A bucket does not say.


def check_storage() -> None:
    """Check whether the bucket answers, without a change there. A folder is looked at when Hunch starts.

    Raises:
        StorageAway, StorageRefused: it does not.
    """
    if local_folder() is not None:
        return
    # A list, since a bucket that is not there answers a question after one file as if that file were missing.
    with _reached():
        default_storage.listdir("probe")


def probe() -> None:
    """Write a file, read it, and delete it.

    Raises:
        OSError: a folder cannot be written to.
        ValueError: something else was read than was written, or it is still there.
        StorageAway, StorageRefused: the bucket cannot be used.
    """
    content = uuid.uuid4().bytes
    with _reached():
        name = default_storage.save(f"probe/{uuid.uuid4().hex}", ContentFile(content))
        try:
            with default_storage.open(name, "rb") as file:
                stored_content = file.read()
        finally:
            default_storage.delete(name)
        if stored_content != content:
            raise ValueError("what was read is not what was written")
        if default_storage.exists(name):
            raise ValueError("what was deleted is still there")


def name_of(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"


def _copied(source: IO[bytes], target: IO[bytes] | None = None) -> str:
    """Read a file to its end, copy it to `target` if given, and return its sha256."""
    digest = hashlib.sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return _copied(file)


def is_stored(sha256: str) -> bool:
    """Whether the whole content is there. A worker that died while storing may have left a part under the same name."""
    try:
        with _reading(sha256) as file:
            return _copied(file) == sha256
    except FileNotFoundError:
        return False


def names_stored() -> set[str]:
    """The hashes under which something is stored, whole or not. Asked for at once: a bucket answers slowly."""
    with _reached():
        try:
            folders = default_storage.listdir("")[0]
        except FileNotFoundError:  # Nothing was stored yet.
            return set()
        names = (name for folder in folders if len(folder) == 2 for name in default_storage.listdir(folder)[1])
        return {name for name in names if _SHA256.fullmatch(name)}


@contextmanager
def opened(sha256: str) -> Iterator[tuple[IO[bytes], int]]:
    """The stored content, unchecked, and its size in bytes."""
    with _reading(sha256) as file:
        yield file, file.size


def store(path: Path) -> str:
    """Store a file's content and return its sha256. Storing the same content again changes nothing, or repairs it."""
    sha256 = sha256_of(path)
    if is_stored(sha256):
        return sha256
    name = name_of(sha256)
    with _reached():
        if default_storage.exists(name):
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
    with path.open("xb") as target, _reading(sha256) as source:
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
    """
    Raises:
        ValueError: the stored bytes no longer have this hash.
        FileNotFoundError: it is not in the storage.
    """
    with _reading(sha256) as file:
        content = file.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the stored file {sha256} has changed: restore it from a backup")
    array: np.ndarray = np.load(io.BytesIO(content), allow_pickle=False)
    return array


# Files under names of their own: the results of jobs, which are deleted one day. `put` never replaces a file.


def put(name: str, path: Path) -> str:
    """Store a file's content under this name and return its sha256.

    Raises:
        OSError: something is stored under that name.
    """
    with _reached(), path.open("rb") as file:
        saved = default_storage.save(name, File(file))
    if saved != name:
        with _reached():
            default_storage.delete(saved)
        raise FileExistsError(errno.EEXIST, "something is stored under that name", name)
    _flush(name)
    return sha256_of(path)


@contextmanager
def opened_at(name: str) -> Iterator[IO[bytes]]:
    """
    Raises:
        FileNotFoundError: nothing is stored under that name.
    """
    with _reached(), default_storage.open(name, "rb") as file:
        yield file


def folders_at(name: str) -> list[str]:
    """The names of the folders inside a folder; none if it is not there."""
    with _reached():
        try:
            return sorted(default_storage.listdir(name)[0])
        except FileNotFoundError:
            return []


def delete_folder(name: str) -> None:
    """Delete a folder and the files in it; nothing if it is not there."""
    with _reached():
        try:
            inside = default_storage.listdir(name)[1]
        except FileNotFoundError:
            return
        for file in inside:
            default_storage.delete(f"{name}/{file}")
    delete_empty(name)


def delete_empty(name: str) -> None:
    """Delete a folder that is empty. A bucket has no folders."""
    if (root := local_folder()) is not None:
        with suppress(OSError):
            (root / name).rmdir()
