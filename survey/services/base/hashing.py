"""Hashes of what is stored: of canonical JSON, so that equal content has an equal hash on every machine.

Hashes of personal content are keyed.
"""

import hashlib
import hmac
import json
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


@cache
def code_digest() -> str:
    """Hash of the source code that draws plans and trains predictors, for manifests."""
    found = hashlib.sha256()
    for package in ("bandit", "predictors", "survey"):
        for path in sorted((Path(settings.BASE_DIR) / package).rglob("*.py")):
            found.update(path.relative_to(settings.BASE_DIR).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def keyed_digest(value: Any, *, purpose: str) -> str:
    """HMAC with the identity key. From a plain hash, short answers and panel ids could be guessed."""
    return hmac.new(
        settings.HUNCH_IDENTITY_KEY.encode(), purpose.encode() + b"\0" + canonical(value), "sha256"
    ).hexdigest()
