"""A list of what was erased, kept apart from the database. Imports settings, models and hashing.

A backup still has what was deleted after it was made. The list says whose it was, by keyed hashes, so that a restore
can delete it again. Each erasure is a row first, written in the transaction that deletes; the file follows after the
commit. If it cannot be written then, the next backup and an hourly task write it.
"""

import fcntl
import json
import logging
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from survey.exceptions import HunchError
from survey.models import Erasure, Respondent, Submission

from .hashing import keyed_digest
from .writing import replace_file

HEADER = {"hunch": "erasures", "format": 1}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ListedErasure:
    """A line of the list."""

    public_id: str
    what: str
    refs: frozenset[str]
    at: datetime


def ref_of(row: Respondent | Submission) -> str:
    if isinstance(row, Respondent):
        return keyed_digest(row.pseudonym, purpose="erasure:respondent")
    return keyed_digest(row.submission_hash, purpose="erasure:submission")


def remember(what: Erasure.What, rows: Iterable[Respondent | Submission], *, at: datetime | None = None) -> None:
    """Note in this transaction that this is erased, and write it to the list once it is committed."""
    refs = sorted({ref_of(row) for row in rows})
    if refs:
        Erasure.objects.create(public_id=uuid.uuid4(), what=what, refs=refs, at=at or timezone.now())
        transaction.on_commit(list_or_warn, robust=True)  # The person reads that it is done.


def list_or_warn() -> None:
    """`write_list`, where nothing else may fail because of it."""
    try:
        write_list()
    except OSError as exc:
        logger.error(
            "The list of erasures %s cannot be written (%s). It is tried again every hour.",
            settings.HUNCH_ERASURES,
            exc.strerror,
        )


def write_list() -> int:
    """Append what is not in the file yet; return how many. Makes the file where there is none.

    A line may come twice if a process dies in between, which does no harm.
    """
    waiting = list(Erasure.objects.filter(listed_at=None))
    path = Path(settings.HUNCH_ERASURES)
    if not waiting and path.exists():
        return 0
    lines: list[dict[str, Any]] = [
        {"id": str(row.public_id), "what": row.what, "refs": row.refs, "at": row.at.isoformat()} for row in waiting
    ]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # A disk that was full or a power cut may have left the start of a line. It was not marked as listed.
        whole = file.read().rfind(b"\n") + 1
        file.seek(whole)
        file.truncate()
        begun = [] if whole else [HEADER]
        file.write("".join(json.dumps(line) + "\n" for line in [*begun, *lines]).encode())
        file.flush()
        os.fsync(file.fileno())
    Erasure.objects.filter(pk__in=[row.pk for row in waiting]).update(listed_at=timezone.now())
    return len(waiting)


def copy_list(target: Path) -> int:
    """Copy the list to another disk; return how many lines the copy has. What an earlier copy has and the list lacks
    stays: a list that began again after a disk was lost must not take the place of the whole one.

    Raises:
        HunchError: a list cannot be read, or the copy cannot be written.
    """
    try:
        write_list()
        lines = {**_lines(target), **_lines(Path(settings.HUNCH_ERASURES))}
        with replace_file(target, mode=0o600) as temporary:
            temporary.write_text("".join(f"{line}\n" for line in [json.dumps(HEADER), *lines.values()]))
    except OSError as exc:
        raise HunchError(f"{target}: the list of erasures cannot be copied: {exc.strerror}") from exc
    return len(lines)


def _lines(path: Path) -> dict[str, str]:
    """Each erasure's line, by its id, of a list that may not be there yet."""
    if not path.exists():
        return {}
    listed = read_list(path)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if json.loads(line) != HEADER]
    return {erasure.public_id: line for erasure, line in zip(listed, lines, strict=True)}


def read_list(path: Path) -> list[ListedErasure]:
    """
    Raises:
        HunchError: there is no such file, or a line of it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise HunchError(f"{path}: the list of erasures cannot be read: {exc}") from exc
    erasures = []
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
            if number == 1 and value == HEADER:
                continue
            at = datetime.fromisoformat(value["at"])
            what = Erasure.What(value["what"])
            erasures.append(ListedErasure(str(value["id"]), what, frozenset(value["refs"]), at))
        except (ValueError, TypeError, KeyError) as exc:
            raise HunchError(
                f"{path}, line {number}: is no line of a list of erasures; take a whole copy of the file"
            ) from exc
    return erasures
