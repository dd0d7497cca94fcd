"""Saved predictors: JSON, safetensors and XGBoost's own files in a folder with a manifest, never pickle.

Imports nothing heavy; the estimator's own module is imported when a folder is loaded. `manifest.json` names the kind
and the SHA-256 of every file, holds no time and no path, and is written last: a folder without it is unfinished.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from predictors.errors import CheckpointError, PredictorError
from predictors.registry import Estimator, class_at, kind_of, kinds

MANIFEST = "manifest.json"
FORMAT = 1

# Digests of large files by path, size and time of change.
_digests: dict[tuple[str, int, int], str] = {}


def save(estimator: Any, folder: Path | str) -> str:
    """Write a fitted estimator into `folder`, which must be missing or empty; returns the folder's digest.

    Raises:
        PredictorError: the folder holds files, or the estimator is of no kind that can be saved.
        sklearn.exceptions.NotFittedError: the estimator was not fitted.
    """
    folder = Path(folder)
    kind = kind_of(estimator)
    if kind is None:
        known = ", ".join(kinds())
        raise PredictorError(f"estimator: {type(estimator).__name__} cannot be saved; known kinds: {known}.")
    if folder.exists() and any(folder.iterdir()):
        raise PredictorError(f"folder: {folder} is not empty; give a new one.")
    folder.mkdir(parents=True, exist_ok=True)
    estimator.save_files(folder)
    files = {path: file_digest(folder / path) for path in _files_in(folder)}
    manifest = {"format": FORMAT, "kind": kind, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return folder_digest(folder)


def load(folder: Path | str) -> Estimator:
    """The fitted estimator saved in `folder`, every file checked against the manifest first.

    Raises:
        CheckpointError: no manifest, an unknown format or kind, or a file that is missing, unexpected or altered.
    """
    folder = Path(folder)
    manifest = verify(folder)
    # Only classes that a predictor declares are ever created from a folder, whatever its manifest says.
    estimator: Estimator = class_at(kinds()[manifest["kind"]], manifest["kind"]).load_files(folder)
    return estimator


def verify(folder: Path | str) -> dict[str, Any]:
    """Check every file of a saved predictor and return its manifest; errors as in `load`."""
    folder = Path(folder)
    manifest = _read_manifest(folder)
    listed: dict[str, str] = manifest["files"]
    present = _files_in(folder)
    for path in sorted(set(listed) - set(present)):
        raise CheckpointError(f"{folder}: the file {path} is missing; restore the folder or train again.")
    for path in sorted(set(present) - set(listed)):
        raise CheckpointError(f"{folder}: the file {path} is not in {MANIFEST}; remove it.")
    for path, digest in listed.items():
        if file_digest(folder / path) != digest:
            raise CheckpointError(f"{folder}: the file {path} was changed; restore the folder or train again.")
    return manifest


def folder_digest(folder: Path | str) -> str:
    """SHA-256 (64 hexadecimal digits) of a saved predictor: equal for equal content, wherever it lies.

    It is the hash of the manifest, which holds the hashes of all files; `load` is what checks the files themselves.
    """
    return file_digest(_manifest_path(Path(folder)))


def file_digest(path: Path) -> str:
    """SHA-256 of one file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checkpoint_digest(folder: Path) -> str:
    """SHA-256 over configuration, tokenizer and weights of a checkpoint, wherever it lies.

    Raises:
        CheckpointError: a file cannot be read.
    """
    digest = hashlib.sha256()
    wanted = [path for pattern in ("*.json", "*.safetensors", "*.txt", "*.model") for path in folder.glob(pattern)]
    try:
        for path in sorted(wanted):
            digest.update(f"{path.name} {_known_digest(path)}\n".encode())
    except OSError as exc:
        raise CheckpointError(f"checkpoint: {exc.filename} cannot be read; check the folder.") from exc
    return digest.hexdigest()


def _files_in(folder: Path) -> list[str]:
    paths = (path for path in folder.rglob("*") if not path.is_dir())
    return sorted(name for path in paths if (name := path.relative_to(folder).as_posix()) != MANIFEST)


def _manifest_path(folder: Path) -> Path:
    path = folder / MANIFEST
    if not path.is_file():
        raise CheckpointError(f"{folder}: no {MANIFEST}, so this is not a saved predictor or saving did not end.")
    return path


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = _manifest_path(folder)
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version, kind, files = manifest["format"], manifest["kind"], manifest["files"]
    except (UnicodeDecodeError, ValueError, KeyError, TypeError) as exc:
        raise CheckpointError(f"{folder}: {MANIFEST} cannot be read; restore the folder or train again.") from exc
    if version != FORMAT or kind not in kinds() or not isinstance(files, dict):
        raise CheckpointError(f"{folder}: {MANIFEST} is of format {version!r} and kind {kind!r}, unknown here.")
    return manifest


def _known_digest(path: Path) -> str:
    """A file's SHA-256, computed again only where its size or time of change differ."""
    status = path.stat()
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    if key not in _digests:
        _digests[key] = file_digest(path)
    return _digests[key]
