"""Filling a database from a backup: everything is checked before anything is written, and rows come in one transaction.

At the end what was erased since the backup is erased again. Until then the database refuses to be used.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO

from django.apps.registry import Apps
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, IntegrityError, connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from survey.exceptions import HunchError
from survey.models import Erasure, PanelIdentity, Posting, Respondent, Restore, Submission
from survey.panels import money, purging
from survey.processes.process_manager import manager_lock
from survey.services.base import erasures, files
from survey.services.base.auditing import record
from survey.services.base.erasures import ListedErasure
from survey.services.base.keys import IDENTITY, SECRET
from survey.services.sittings import withdrawal

from . import archive, rows
from .archive import BackupContents

# What `migrate` writes into an empty database, and what a start or a first log-in leaves there.
NOT_DATA = {
    "auth_group",
    "auth_group_permissions",
    "auth_permission",
    "django_content_type",
    "survey_keyfingerprint",
    *rows.LEFT_OUT,
    *rows.WITHOUT_MODEL,
}
KEY_FILES = {SECRET: "secret_key", IDENTITY: "identity_key"}


@dataclass
class Restored:
    contents: BackupContents
    erased_again: dict[str, int] = field(default_factory=dict)
    new_keys: list[str] = field(default_factory=list)


def restore(path: Path, passphrase: str, *, listed: list[ListedErasure] | None, replace: bool = False) -> Restored:
    """Fill the database, the storage and the key files from a backup, and bring the tables up to this version.

    Args:
        listed: what was erased, from the list that is kept apart; None to go on without it.
        replace: the database has rows, which are deleted.

    Raises:
        HunchError: the backup cannot be used, or the database is not empty or in use; nothing was written then.
    """
    contents, keys = archive.verified(path, passphrase)
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    _refuse_later_version(contents, executor)
    new_keys = _keys_to_replace(keys)
    if listed is not None:
        _refuse_older_list(contents, listed)
    with _nothing_running():
        models = _tables_of_that_time(contents, executor, replace=replace)
        _fill(path, passphrase, contents, models)
        _write_keys(keys, new_keys)
        ContentType.objects.clear_cache()
        call_command("migrate", verbosity=0, interactive=False)
        _hold_payments(datetime.fromisoformat(contents.made_at))
        done = Restored(contents, _erase_again(listed or []), new_keys)
        Restore.objects.filter(finished_at=None).update(finished_at=timezone.now())
        record("restore", contents.made_at, erased_again=done.erased_again, with_list=listed is not None)
    return done


# Before anything is written


def _refuse_later_version(contents: BackupContents, executor: MigrationExecutor) -> None:
    known = executor.loader.disk_migrations
    later = [f"{app}.{name}" for app, name in contents.schema if (app, name) not in known]
    if later:
        raise HunchError(
            f"the backup was made by Hunch {contents.version} with tables that this version does not know "
            f"({', '.join(later[:5])}): install that version, or the package that is missing"
        )


def _keys_to_replace(keys: dict[str, str]) -> list[str]:
    """The keys whose files get the backup's. A key that the environment names must be the backup's."""
    differing = [name for name in KEY_FILES if getattr(settings, name) != keys[name]]
    if named := [name for name in differing if name in settings.HUNCH_KEYS_SET]:
        raise HunchError(
            f"the environment sets another {' and another '.join(named)} than the backup's: take the backup's keys by "
            "`hunch restore FILE --keys-to FOLDER` and set them, then restore"
        )
    return differing


def _refuse_older_list(contents: BackupContents, listed: list[ListedErasure]) -> None:
    if contents.last_erasure and contents.last_erasure not in {entry.public_id for entry in listed}:
        raise HunchError(
            "the list of erasures is older than the backup: take the newest copy of it, or go on without it "
            "(--without-erasures), and what was erased after the backup will be back"
        )


@contextmanager
def _nothing_running() -> Iterator[None]:
    """
    Raises:
        HunchError: web or workers use this database.
    """
    stop = "stop web, workers and beat first"
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND application_name = %s",
                [settings.HUNCH_APPLICATION_NAME],
            )
            if others := cursor.fetchone()[0]:
                raise HunchError(f"{others} other connections of Hunch use this database: {stop}")
        yield
        return
    with manager_lock() as is_only:
        if not is_only:
            raise HunchError(f"Hunch runs from {settings.HUNCH_VAR}: {stop}")
        yield


# Writing


def _tables_of_that_time(contents: BackupContents, executor: MigrationExecutor, *, replace: bool) -> Apps:
    """Make sure that the database has the backup's tables; return their models."""
    nodes = {(app, name) for app, name in contents.schema}
    there = connection.introspection.table_names()
    data = rows.filled(name for name in there if name not in NOT_DATA)
    if data and not replace:
        raise HunchError(
            f"the database is not empty ({', '.join(data[:3])} have rows): name an empty one in DATABASE_URL, or "
            "delete all that is in it with --replace"
        )
    if executor.loader.applied_migrations.keys() != nodes:
        if data:
            raise HunchError(
                "the database has the tables of another version than the backup: name an empty one in DATABASE_URL"
            )
        if there:
            rows.drop_tables(there)
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
        executor.migrate(_last_of(nodes, executor.loader))
    return executor.loader.project_state(_last_of(nodes, executor.loader)).apps


def _last_of(nodes: set[tuple[str, str]], loader: MigrationLoader) -> list[tuple[str, str]]:
    """The migrations that no other one of these depends on: all others come before them."""
    node_map = loader.graph.node_map
    there = nodes & node_map.keys()
    return sorted(node for node in there if not any(child.key in there for child in node_map[node].children))


def _fill(path: Path, passphrase: str, contents: BackupContents, apps: Apps) -> None:
    models = rows.tables_of(apps)
    with transaction.atomic(durable=True):
        there = set(connection.introspection.table_names())
        rows.empty_tables(sorted(there & {*models, *rows.LEFT_OUT}))
        for name, content in archive.parts(path, passphrase):
            kind, _slash, rest = name.partition("/")
            if kind == "rows":
                table = rest.partition("/")[0]
                rows.insert(models[table], contents.tables[table].columns, content.read().decode().splitlines())
            elif kind == "files":
                _store(content)
        rows.go_on_counting(models.values())
        apps.get_model("survey", "Restore").objects.create(backup_at=datetime.fromisoformat(contents.made_at))
        _refuse_missing_rows()


def _refuse_missing_rows() -> None:
    """
    Raises:
        HunchError: a row names a row that is not there. It says which, where the end of a transaction does not.
    """
    try:
        connection.check_constraints()
    except IntegrityError as exc:
        raise HunchError(f"the backup is not whole, so nothing was restored: {exc}") from exc


def _store(content: IO[bytes]) -> None:
    with tempfile.NamedTemporaryFile(dir=settings.HUNCH_VAR) as temporary:
        while chunk := content.read(archive.CHUNK):
            temporary.write(chunk)
        temporary.flush()
        files.store(Path(temporary.name))


def _write_keys(keys: dict[str, str], names: list[str]) -> None:
    """Put the backup's keys in place of those of this machine, which stay next to them under another name."""
    for name in names:
        path = Path(settings.HUNCH_VAR) / KEY_FILES[name]
        if path.exists():
            path.rename(path.with_name(f"{path.name}.before-restore-{timezone.now():%Y%m%d-%H%M%S}"))
        write_key(path, keys[name])
        setattr(settings, name, keys[name])  # The rest of this process goes on with it.


def write_key(path: Path, key: str) -> None:
    """A new file that only we may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(key + "\n")
        file.flush()
        os.fsync(file.fileno())


def _hold_payments(since: datetime) -> None:
    """Bonuses may have been paid after the backup. Before any is paid again, a person looks at the panel."""
    why = f"the database was restored from a backup of {since:%Y-%m-%d %H:%M} UTC: this may have been paid after it"
    payable = Submission.objects.exclude(ids_encrypted=b"").values("posting")
    for posting in Posting.objects.filter(pk__in=payable).select_related("study").order_by("pk"):
        money.hold(posting, since=since, why=why)


# Erasing again


def _erase_again(listed: list[ListedErasure]) -> dict[str, int]:
    """Delete what was deleted after the backup. Return of how many people and submissions, by what was deleted."""
    people = {erasures.ref_of(person): person for person in Respondent.objects.select_related("study")}
    sent = {erasures.ref_of(row): row.pk for row in Submission.objects.only("submission_hash")}
    counts = dict.fromkeys(Erasure.What.values, 0)
    with transaction.atomic():
        for entry in listed:
            persons = [people[ref] for ref in sorted(entry.refs) if ref in people]
            if entry.what == Erasure.What.ANSWERS:
                for person in persons:
                    counts[entry.what] += _withdraw_again(person, entry.at)
                continue
            identities = PanelIdentity.objects.filter(respondent__in=persons)
            submissions = Submission.objects.filter(pk__in=[sent[ref] for ref in entry.refs if ref in sent])
            with_hashes = entry.what == Erasure.What.HASHES
            if not with_hashes:
                identities = identities.exclude(ids_encrypted=b"")
                submissions = submissions.exclude(ids_encrypted=b"")
            counts[entry.what] += identities.count() + submissions.count()
            purging.remove_ids(identities, submissions, with_hashes=with_hashes)
    return {what: count for what, count in counts.items() if count}


def _withdraw_again(person: Respondent, at: datetime) -> int:
    with suppress(Respondent.withdrawal.RelatedObjectDoesNotExist):
        return 0 if person.withdrawal else 1
    withdrawal.withdraw(respondent=person, now=at, reason="withdrawn before; done again after a restore", via="restore")
    return 1
