"""The audit's chain: every entry is sealed by a hash over the seal before it. Imports models.

Entries are appended without a link, since the head of a chain would be a lock that everybody who writes waits for. One
task seals them every few seconds, in the order of their ids. `docs/audit.md` says how the hashes are made, and
`tools/verify_study.py` makes them without this code.

Why no entry is left behind: PostgreSQL gives an id when a row is written, and the row is seen when its transaction
ends. So an entry may appear below one that is sealed already, and sealing must wait for it. An id that is not there yet
shows as a gap, and the transaction that has taken it holds PostgreSQL's lock of writers on the table until the end of
the transaction. The lock is taken before the id. Therefore:

- without a gap below an entry, it can be sealed;
- a gap is final once everybody who wrote when it was seen has ended: the id belongs to a transaction that failed;
- while one of them goes on, only what is below the first gap is sealed. The rest waits for the next time.

On SQLite one transaction writes at a time, and sealing is one, so ids are seen in their order. An entry that appears
below the last seal in spite of this was not written by `record`. It is never sealed, and `verify` names it.

So is one whose id PostgreSQL has not given yet: sealed, it would leave all later entries below itself, and none of them
would ever be sealed. Where an earlier version has sealed one, the ids go on above it (SQLite's do so by themselves).
"""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from survey.models import AuditEntry, AuditSeal

BATCH = 1000
START = "0" * 64  # What the first seal hashes in place of the seal before it.
# How long one run waits for writers before it leaves what is above a gap to the next one.
PATIENCE = 1.0
POLL = 0.02
SEALING = 0x48756E6368  # The key of PostgreSQL's advisory lock: one process seals at a time.
MAX_FAULTS = 10
TABLE = AuditEntry._meta.db_table


def entry_digest(entry: AuditEntry) -> str:
    """The hash of everything in an entry's row."""
    return _digest(
        {
            "id": entry.pk,
            "at": written(entry.at),
            "actor": entry.actor,
            "via": entry.via,
            "action": entry.action,
            "subject": entry.subject,
            "study": entry.study,
            "detail": entry.detail,
            "salt": entry.salt,
        }
    )


def seal_digest(*, previous: str, number: int, entry_id: int, entry_sha256: str, sealed_at: datetime) -> str:
    return _digest([previous, number, entry_id, entry_sha256, written(sealed_at)])


def written(at: datetime) -> str:
    """A time as the hashes take it: UTC, to the microsecond."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _digest(value: Any) -> str:
    # ASCII: any text that a database has stored can be written, also a half of a surrogate pair.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# Sealing


def seal_entries() -> int:
    """Seal every entry that is decided; how many. Does nothing while another process is at it."""
    done = 0
    if (last := AuditSeal.objects.order_by("-number").first()) is not None:
        _go_on_above(last.entry_id)
    while head().unsealed:
        with transaction.atomic():
            sealed = _seal_batch() if _is_my_turn() else 0
        done += sealed
        if sealed < BATCH:
            break
    return done


def _is_my_turn() -> bool:
    """On SQLite, a transaction that writes is alone anyway."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [SEALING])
        return bool(cursor.fetchone()[0])


def _seal_batch() -> int:
    last = AuditSeal.objects.order_by("-number").first()
    sealed, after, previous = (last.number, last.entry_id, last.sha256) if last else (0, 0, START)
    now = timezone.now()
    seals = []
    for number, entry in enumerate(_decided(after), start=sealed + 1):
        entry_sha256 = entry_digest(entry)
        previous = seal_digest(
            previous=previous, number=number, entry_id=entry.pk, entry_sha256=entry_sha256, sealed_at=now
        )
        seals.append(
            AuditSeal(number=number, entry_id=entry.pk, entry_sha256=entry_sha256, sealed_at=now, sha256=previous)
        )
    AuditSeal.objects.bulk_create(seals, batch_size=BATCH)
    return len(seals)


def _decided(after: int) -> list[AuditEntry]:
    """The entries above this id, as far as no other can appear between them. The module's docstring says why."""
    unsealed = AuditEntry.objects.filter(pk__gt=after).order_by("pk")
    if (last_id := _last_given()) is not None:
        unsealed = unsealed.filter(pk__lte=last_id)
    keys = list(unsealed.values_list("pk", flat=True)[:BATCH])
    if not keys:
        return []
    # The order of the statements matters: the last key, then who writes, then the entries.
    waiting = _writers() if _has_gap(keys, after) else set()
    deadline = time.monotonic() + PATIENCE
    while waiting and time.monotonic() < deadline:
        time.sleep(POLL)
        waiting &= _writers()
    entries = list(unsealed.filter(pk__lte=keys[-1]))
    if not waiting:
        return entries
    return [entry for place, entry in enumerate(entries, start=after + 1) if entry.pk == place]


def _last_given() -> int | None:
    """The last id that PostgreSQL gave to an entry; None where inserting an id makes the next ones follow it."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sequence_last_value(pg_get_serial_sequence(%s, 'id')::regclass)", [TABLE])
        return int(cursor.fetchone()[0] or 0)


def _go_on_above(key: int) -> None:
    """Let the ids of later entries be above that of the last seal."""
    if (last_id := _last_given()) is not None and last_id < key:
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id')::regclass, %s)", [TABLE, key])


def _has_gap(keys: list[int], after: int) -> bool:
    return keys[-1] - after != len(keys)


def _writers() -> set[str]:
    """The other transactions that have written entries, or are about to, and have not ended."""
    if connection.vendor != "postgresql":
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' "
            "AND granted AND pid IS DISTINCT FROM pg_backend_pid() AND relation = %s::regclass "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [TABLE],
        )
        return {str(name) for (name,) in cursor.fetchall()}


# Verifying


@dataclass(frozen=True)
class ChainHead:
    """The last seal, and how many entries wait for theirs."""

    number: int
    sha256: str
    sealed_at: datetime | None
    unsealed: int


def head() -> ChainHead:
    last = AuditSeal.objects.order_by("-number").first()
    unsealed = AuditEntry.objects.filter(pk__gt=last.entry_id if last else 0).count()
    if last is None:
        return ChainHead(number=0, sha256=START, sealed_at=None, unsealed=unsealed)
    return ChainHead(number=last.number, sha256=last.sha256, sealed_at=last.sealed_at, unsealed=unsealed)


@dataclass
class ChainCheck:
    """What `verify` found. `faults` has the first ones, in the order of the chain; `tail` the ids of unsealed entries,
    first and last."""

    faults: list[str] = field(default_factory=list)
    fault_count: int = 0
    number: int = 0
    sha256: str = START
    sealed_at: datetime | None = None
    unsealed: int = 0
    tail: tuple[int, int] = (0, 0)
    seen: bool = False

    def add(self, fault: str) -> None:
        self.fault_count += 1
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(fault)


def verify(expected: str = "", *, after: AuditSeal | None = None) -> ChainCheck:
    """Make every hash again, and compare. Reads in a stream; writes nothing.

    Args:
        expected: the hash of a seal that was noted earlier, for instance the head of an export. `seen` says whether the
            chain has it: one that was made again from its beginning has not.
        after: only what was sealed after this seal.
    """
    chain_check = ChainCheck(seen=not expected or expected == START)
    if after is not None:
        chain_check.number, chain_check.sha256, chain_check.sealed_at = after.number, after.sha256, after.sealed_at
    # Up to this seal: what it and those before it seal was there before the entries are read.
    last = head().number
    entries = _EntriesInOrder(after.entry_id if after else 0)
    seals = AuditSeal.objects.filter(number__gt=chain_check.number, number__lte=last).order_by("number")
    for seal in seals.iterator(BATCH):
        for stranger in entries.below(seal.entry_id):
            chain_check.add(_inserted(stranger))
        _check_seal(seal, entries.take(seal.entry_id), chain_check)
        chain_check.number, chain_check.sha256, chain_check.sealed_at = seal.number, seal.sha256, seal.sealed_at
        chain_check.seen |= seal.sha256 == expected
    tail = list[AuditEntry]()
    for entry in entries.rest():
        chain_check.unsealed += 1
        chain_check.tail = (chain_check.tail[0] or entry.pk, entry.pk)
        tail = [*tail[1 - BATCH :], entry]
    last_id = _last_given()  # After the entries: a process that writes meanwhile has an id by now.
    for stranger in [entry for entry in tail if last_id is not None and entry.pk > last_id]:
        chain_check.add(f"entry {stranger.pk} was inserted: the database has given no such id yet ({stranger})")
    return chain_check


def _check_seal(seal: AuditSeal, entry: AuditEntry | None, chain_check: ChainCheck) -> None:
    if seal.number != chain_check.number + 1:
        chain_check.add(f"seal {chain_check.number + 1} is missing: seal {seal.number} follows")
    expected = seal_digest(
        previous=chain_check.sha256,
        number=seal.number,
        entry_id=seal.entry_id,
        entry_sha256=seal.entry_sha256,
        sealed_at=seal.sealed_at,
    )
    if seal.sha256 != expected:
        chain_check.add(
            f"seal {seal.number} does not follow from the one before it: its row or an earlier one was changed"
        )
    if entry is None:
        chain_check.add(f"entry {seal.entry_id} was removed: seal {seal.number} is all that is left of it")
    elif entry_digest(entry) != seal.entry_sha256:
        chain_check.add(f"entry {entry.pk} was changed after seal {seal.number} ({entry})")


def _inserted(entry: AuditEntry) -> str:
    return f"entry {entry.pk} was inserted: entries above it were sealed before it was there ({entry})"


class _EntriesInOrder:
    """All entries above an id, by id, each read once, without holding them."""

    def __init__(self, after: int) -> None:
        self._rows: Iterator[AuditEntry] = AuditEntry.objects.filter(pk__gt=after).order_by("pk").iterator(BATCH)
        self._next = next(self._rows, None)

    def below(self, key: int) -> Iterator[AuditEntry]:
        """Those that come before this id and were not taken."""
        while (row := self._next) is not None and row.pk < key:
            self._next = next(self._rows, None)
            yield row

    def take(self, key: int) -> AuditEntry | None:
        """The entry with this id; None if there is none. Those before it must be read already."""
        if (row := self._next) is None or row.pk != key:
            return None
        self._next = next(self._rows, None)
        return row

    def rest(self) -> Iterator[AuditEntry]:
        while (row := self._next) is not None:
            self._next = next(self._rows, None)
            yield row
