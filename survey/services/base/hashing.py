"""Hashes of what is stored: of canonical JSON, so that equal content has an equal hash on every machine.

Hashes of personal content are keyed.
"""

import base64
import hashlib
import hmac
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


@cache
def code_digest() -> str:
    """Hash of Hunch's source code that draws plans and trains predictors, for manifests."""
    digest = hashlib.sha256()
    for package in ("bandit", "predictors", "survey"):
        for path in sorted((Path(settings.BASE_DIR) / package).rglob("*.py")):
            digest.update(path.relative_to(settings.BASE_DIR).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def package_digest(name: str) -> str:
    """Hash of the source code of an installed package, for manifests of studies whose instrument or panel it brings."""
    spec = find_spec(name)
    folders = [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [(path, folder) for folder in folders for path in sorted(folder.rglob("*.py"))]
    if not folders and spec is not None and spec.origin is not None:  # A single module.
        files = [(Path(spec.origin), Path(spec.origin).parent)]
    digest = hashlib.sha256()
    for path, folder in files:
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def keyed_digest(value: Any, *, purpose: str) -> str:
    """HMAC with the identity key. From a plain hash, short answers and panel ids could be guessed."""
    return hmac.new(
        settings.HUNCH_IDENTITY_KEY.encode(), purpose.encode() + b"\0" + canonical(value), "sha256"
    ).hexdigest()


def identity_cipher() -> Fernet:
    """Encrypts the panels' ids, with a key made from the identity key."""
    key = hashlib.sha256(b"hunch.identities\0" + settings.HUNCH_IDENTITY_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
