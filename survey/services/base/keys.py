"""Whether the keys in force are those that this database was used with. Imports settings, models and exceptions.

With another identity key everybody could take part twice, and the panel's ids could not be read. With another
SECRET_KEY nobody could go on with a sitting. So the first start stores a keyed hash of a fixed label under each key,
and every later start compares.
"""

import hmac
import logging
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from survey.exceptions import HunchError
from survey.models import (
    EntryLink,
    KeyFingerprint,
    PanelIdentity,
    Restore,
    SnapshotAnswer,
    Submission,
    WaveIdentity,
)

from .hashing import identity_cipher

IDENTITY, SECRET = "HUNCH_IDENTITY_KEY", "SECRET_KEY"
LABEL = b"hunch.key.fingerprint.1"

logger = logging.getLogger(__name__)


class KeysDiffer(HunchError):
    """Nothing may run on this database with these keys."""

    code = "keys_differ"
    status = 503


def fingerprint(key: str) -> str:
    return hmac.new(key.encode(), LABEL, "sha256").hexdigest()


def in_force() -> dict[str, list[str]]:
    """The fingerprints of the keys of this process, by setting: the key first, then those that were in force before."""
    keys = {IDENTITY: [settings.HUNCH_IDENTITY_KEY], SECRET: [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]}
    return {name: [fingerprint(key) for key in own_keys] for name, own_keys in keys.items()}


def check() -> None:
    """`compare`, and store the fingerprint of a key that has none yet, or that has followed on the stored one.

    Raises:
        KeysDiffer: see `compare`.
    """
    stored = compare()
    for name, (newest, *_before) in in_force().items():
        if name not in stored:
            KeyFingerprint.objects.get_or_create(name=name, defaults={"fingerprint": newest})
        elif stored[name] != newest:
            KeyFingerprint.objects.update_or_create(name=name, defaults={"fingerprint": newest})


def compare() -> dict[str, str]:
    """Compare the keys in force with the stored fingerprints, which are returned. Reads only.

    Raises:
        KeysDiffer: with the key that differs, and what to do; or a restore was not finished.
    """
    stored = dict(KeyFingerprint.objects.values_list("name", "fingerprint"))
    if Restore.objects.filter(finished_at=None).exists():
        raise KeysDiffer("a restore was not finished: repeat it with `hunch restore FILE --replace`")
    for name, fingerprints in in_force().items():
        if name in stored:
            fits = stored[name] in fingerprints
        else:  # A database from before there were fingerprints: its ids say whether this is their key.
            fits = name != IDENTITY or _opens_ids()
        if not fits:
            raise KeysDiffer(_what_to_do(name))
    return stored


def _opens_ids() -> bool:
    """Whether the newest ids that are stored can be decrypted; true where there are none."""
    newest = PanelIdentity.objects.exclude(ids_encrypted=b"").order_by("-pk").values_list("ids_encrypted", flat=True)
    sealed = newest.first()
    if sealed is None:
        return True
    try:
        identity_cipher().decrypt(bytes(sealed))
    except InvalidToken:
        return False
    return True


def _what_to_do(name: str) -> str:
    if name == IDENTITY:
        return (
            f"{IDENTITY} is not the key that this database was used with: everybody could take part twice, and the "
            "panel's ids could not be read. Set the old key again; `hunch restore FILE --keys-to FOLDER` takes it from "
            "a backup"
        )
    return (
        f"{SECRET} is not the key that this database was used with: nobody could go on with a sitting. Set the old key "
        "again, or put it into SECRET_KEY_FALLBACKS next to the new one. If it is lost: `hunch keys "
        "--accept-secret-key`"
    )


def accept(name: str) -> None:
    """Take the key in force for the right one from now on.

    Raises:
        KeysDiffer: what the old identity key has encrypted or hashed is still here.
    """
    if name == IDENTITY and (encrypted := _made_with_identity_key()):
        raise KeysDiffer(
            f"{IDENTITY} cannot be accepted: {encrypted} were made with the old key, and only it can read them"
        )
    KeyFingerprint.objects.update_or_create(name=name, defaults={"fingerprint": in_force()[name][0]})


def _made_with_identity_key() -> str:
    models: list[Any] = [PanelIdentity, WaveIdentity, Submission, EntryLink, SnapshotAnswer]
    counts = {str(model._meta.verbose_name_plural): model._base_manager.count() for model in models}
    return " and ".join(f"{count} {name}" for name, count in counts.items() if count)


def check_at_start() -> None:
    """`check` for a process that is about to begin. Where the database cannot be asked yet, its first connection is.

    Leaves no connection open, since the process may fork.

    Raises:
        KeysDiffer: see `check`.
    """
    try:
        check()
    except DatabaseError as exc:
        logger.warning("The database cannot be asked yet (%s); the keys are compared later.", type(exc).__name__)
        connection_created.connect(_check_first, dispatch_uid="hunch.keys")
    finally:
        connections.close_all()


def _check_first(connection: BaseDatabaseWrapper, **_signal: Any) -> None:
    """On every new connection until the keys have been compared once."""
    try:
        check()
    except DatabaseError:
        return
    except KeysDiffer as exc:
        logger.critical("%s", exc.message)
        connection.close()
        raise
    connection_created.disconnect(dispatch_uid="hunch.keys")
