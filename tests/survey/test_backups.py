"""A backup of a running study, restored on another machine: same exports, same hashes, nobody takes part twice."""

import csv
import errno
import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations import AddField, Migration, RunPython
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import TextField
from django.utils import timezone

from survey.backups import archive, making, restoring, rows, sealing
from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused, HunchError, StorageAway
from survey.models import (
    ApiToken,
    AuditEntry,
    Bank,
    BudgetCount,
    Erasure,
    PanelIdentity,
    Respondent,
    Response,
    Restore,
    Stage,
    Study,
)
from survey.panels import purging
from survey.services.base import erasures, files, keys
from survey.services.results.export.files import write_export
from survey.services.sittings import identities
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages.verifying import verify_stage
from survey.services.studies import members
from tests import cast, databases
from tests.buckets import TestBucket, use
from tests.golden import store

from . import filled

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PASSPHRASE = "correct horse battery staple"
VERIFY_AND_EXPORT = """
import django, sys
from django.core.management import call_command
django.setup()
call_command("verify_stage", "small", "1")
call_command("export", "small", "--out", sys.argv[1])
"""
OTHER_IDENTITY = "b3RoZXIta2V5LW90aGVyLWtleS1vdGhlci1rZXktMDE="
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cheap_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "COST", 4)


@pytest.fixture(autouse=True)
def first_machine(settings: Any, tmp_path: Path) -> None:
    move_to(tmp_path / "first", settings)


def move_to(folder: Path, settings: Any) -> None:
    """Another folder for the run-time files."""
    folder.mkdir()
    settings.HUNCH_VAR = folder
    settings.HUNCH_RUN = folder / "run"
    settings.HUNCH_ERASURES = folder / "erasures.jsonl"
    settings.HUNCH_KEYS_SET = []
    location = {**settings.STORAGES["default"]["OPTIONS"], "location": folder / "files"}
    settings.STORAGES = {**settings.STORAGES, "default": {**settings.STORAGES["default"], "OPTIONS": location}}


class OtherMachine:
    """Its own folder, a database with tables and no rows, and keys that it has made itself."""

    def __init__(self, folder: Path, settings: Any) -> None:
        self._first = connection.settings_dict["NAME"]
        move_to(folder, settings)
        self._name = str(folder / "hunch.sqlite3")
        if connection.vendor == "postgresql":
            self._name = f"other_{uuid.uuid4().hex[:12]}"
        databases.copy_template(self._name)
        settings.SECRET_KEY = "made on the other machine " * 3
        settings.HUNCH_IDENTITY_KEY = OTHER_IDENTITY
        restoring.write_key(folder / "secret_key", settings.SECRET_KEY)
        restoring.write_key(folder / "identity_key", settings.HUNCH_IDENTITY_KEY)
        databases.lead_to(self._name)

    def leave(self) -> None:
        databases.lead_to(self._first)
        if connection.vendor == "postgresql":
            self._execute(f'DROP DATABASE "{self._name}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        with connection.creation._nodb_cursor() as cursor:
            cursor.execute(statement)


@pytest.fixture
def other_machine(settings: Any, tmp_path: Path) -> Iterator[Any]:
    made: list[OtherMachine] = []

    def move() -> OtherMachine:
        made.append(OtherMachine(tmp_path / f"other{len(made)}", settings))
        return made[-1]

    yield move
    for machine in reversed(made):
        machine.leave()


def restore(path: Path, listed: Path | None = None, **options: Any) -> restoring.Restored:
    entries = erasures.read_list(listed) if listed else []
    return restoring.restore(path, PASSPHRASE, listed=entries, **options)


def verified(slug: str) -> list[Any]:
    return [
        [stage.plan_sha256, stage.snapshot_sha256, verify_stage(stage).differences]
        for stage in Stage.objects.select_related("study__bank").filter(study__slug=slug).order_by("index")
    ]


@pytest.mark.thorough
def test_the_golden_studies_are_the_same_on_another_machine(tmp_path: Path, settings: Any, other_machine: Any) -> None:
    settings.HUNCH_IDENTITY_KEY, secret = store.IDENTITY_KEY, settings.SECRET_KEY
    store.load_database()
    keys.check()
    erasures.write_list()
    made = making.make(tmp_path / "a.backup", PASSPHRASE)
    assert made.missing_files == [] and len(made.files) > 5
    listed = settings.HUNCH_ERASURES
    other_machine()
    done = restore(tmp_path / "a.backup", listed)
    assert done.new_keys == ["SECRET_KEY", "HUNCH_IDENTITY_KEY"] and not done.erased_again
    assert (store.IDENTITY_KEY, secret) == (settings.HUNCH_IDENTITY_KEY, settings.SECRET_KEY)
    assert (settings.HUNCH_VAR / "identity_key").read_text().strip() == store.IDENTITY_KEY
    assert (settings.HUNCH_VAR / "identity_key").stat().st_mode & 0o077 == 0
    for name, key in (("secret_key", "made on the other machine " * 3), ("identity_key", OTHER_IDENTITY)):
        (before,) = settings.HUNCH_VAR.glob(f"{name}.before-restore-*")
        assert before.read_text().strip() == key.strip(), "this machine's own key is kept next to it"
    keys.check()
    for slug in ("answers", "beliefs", "real"):
        stored = store.read_results(slug)
        study = Study.objects.select_related("bank").get(slug=slug)
        folder = tmp_path / slug
        folder.mkdir()
        write_export(study, folder)
        exported = {f"export/{path.name}": path.read_bytes() for path in folder.iterdir()}
        # Later versions write more files.
        before = {name: content for name, content in stored.items() if name.startswith("export/")}
        assert before and {name: exported.get(name) for name in before} == before
        assert all(differences == [] for _plan, _snapshot, differences in verified(slug))
    ids = PanelIds("prolific", "P0003", "S1", "SUB0003")
    beliefs = Study.objects.get(slug="beliefs")
    assert identities.find_respondent([beliefs], ids) is not None
    assert identities.unseal(bytes(PanelIdentity.objects.filter(study=beliefs)[0].ids_encrypted).decode()) is not None
    # The next rows get keys of their own.
    Bank.objects.create(name="new", version=1, sha256="0" * 64, question_count=0)


@pytest.mark.thorough
@pytest.mark.any_database
def test_files_of_a_bucket_are_in_a_backup_and_restored_to_a_folder_or_a_bucket(
    bucket: TestBucket, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, other_machine: Any
) -> None:
    filled.run_study()
    names = files.names_stored()
    made = making.make(tmp_path / "a.backup", PASSPHRASE)
    assert set(made.files) == names and len(names) > 1 and not made.missing_files
    lost, changed = made.files[:2]
    content = {
        sha256: bucket.client.get_object(Bucket=bucket.name, Key=key)["Body"].read()
        for sha256, key in ((key.rpartition("/")[2], key) for key in bucket.objects())
    }
    bucket.delete(lost)
    bucket.put(changed, b"other")
    assert set(making.make(tmp_path / "b.backup", PASSPHRASE).missing_files) == {lost, changed}
    plans = list(Stage.objects.exclude(plan_sha256="").order_by("pk").values_list("plan_sha256", flat=True))
    # The bucket repairs what was lost in it, and a folder of another machine gets all.
    for place in ("bucket", "folder"):
        other_machine()
        url = bucket.url if place == "bucket" else (tmp_path / "shared").as_uri()
        use(url, settings, monkeypatch, Path(settings.HUNCH_VAR))
        restore(tmp_path / "a.backup")
        assert files.names_stored() == names
        for sha256 in names:
            with files.opened(sha256) as (file, size):
                assert file.read() == content[sha256] and size == len(content[sha256])
        assert list(Stage.objects.exclude(plan_sha256="").order_by("pk").values_list("plan_sha256", flat=True)) == plans
        assert all(verify_stage(stage).agrees for stage in Stage.objects.exclude(plan_sha256=""))


@pytest.mark.any_database
def test_a_backup_while_the_bucket_is_away_fails_and_leaves_no_file(
    bucket: TestBucket, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.run_study()
    use(bucket.url.replace(bucket.server, "http://127.0.0.1:9"), settings, monkeypatch, tmp_path / "machine")
    with pytest.raises(StorageAway, match="cannot be reached now"):
        making.make(tmp_path / "a.backup", PASSPHRASE)
    assert not (tmp_path / "a.backup").exists() and not list(tmp_path.glob(".a.backup*"))


def test_who_took_part_is_refused_after_a_restore(tmp_path: Path, other_machine: Any) -> None:
    study = cast.open_stage(panel=cast.PROLIFIC).study
    first = begin_sitting(study=study, ids=PanelIds("prolific", "P1", "S1", "SUB1"))
    making.make(tmp_path / "a.backup", PASSPHRASE)
    other_machine()
    restore(tmp_path / "a.backup")
    study = Study.objects.get(slug=study.slug)
    again = begin_sitting(study=study, ids=PanelIds("prolific", "P1", "S1", "SUB1"))
    assert (again.pk, again.is_new, again.token) == (first.pk, False, first.token)
    with pytest.raises(EntryRefused) as refusal:
        begin_sitting(study=study, ids=PanelIds("prolific", "P1", "S1", "SUB2"))
    assert refusal.value.code not in ("closed", "full")
    assert begin_sitting(study=study, ids=PanelIds("prolific", "P2", "S1", "SUB3")).is_new


@pytest.mark.every_database
def test_every_value_is_restored_as_it_was(tmp_path: Path, other_machine: Any) -> None:
    filled.run_study()
    erasures.write_list()
    before = everything()
    assert sum(map(len, before.values())) > 300
    making.make(tmp_path / "a.backup", PASSPHRASE)
    other_machine()
    restore(tmp_path / "a.backup")
    after = everything()
    for table in ("survey_restore", "survey_auditentry"):
        after[table] = before[table]
    assert after == before


def everything() -> dict[str, list[Any]]:
    from django.apps import apps

    return {
        table: list(model._base_manager.order_by("pk").values_list(*[f.attname for f in rows.fields_of(model)]))
        for table, model in rows.tables_of(apps).items()
    }


def test_what_was_erased_after_the_backup_is_erased_again(tmp_path: Path, settings: Any, other_machine: Any) -> None:
    study = cast.open_stage().study
    gone, purged, stays = [cast.Visitor(study).finish().sitting.respondent for _ in range(3)]
    making.make(tmp_path / "a.backup", PASSPHRASE)
    withdraw(respondent=gone, now=timezone.now())
    none = purging.Submission.objects.none()
    purging.remove_ids(PanelIdentity.objects.filter(respondent=purged), none, with_hashes=False)
    listed = settings.HUNCH_ERASURES
    text = listed.read_text()
    assert gone.pseudonym not in text and purged.pseudonym not in text and len(text.splitlines()) == 3
    answers = Response.objects.count()
    other_machine()
    done = restore(tmp_path / "a.backup", listed)
    assert done.erased_again == {"answers": 1, "ids": 1}
    assert Response.objects.count() == answers
    assert not Response.objects.filter(assignment__sitting__respondent__pseudonym=gone.pseudonym).exists()
    of = {identity.respondent.pseudonym: bytes(identity.ids_encrypted) for identity in PanelIdentity.objects.all()}
    assert of[purged.pseudonym] == b"" and of[stays.pseudonym]
    assert AuditEntry.objects.filter(action="restore").count() == 1
    # It is in this machine's own list as well.
    assert {entry.what for entry in erasures.read_list(settings.HUNCH_ERASURES)} == {"answers", "ids"}


def test_hashes_that_were_removed_do_not_come_back(tmp_path: Path, settings: Any, other_machine: Any) -> None:
    cast.Visitor(cast.open_stage().study).finish()
    making.make(tmp_path / "a.backup", PASSPHRASE)
    none = purging.Submission.objects.none()
    purging.remove_ids(PanelIdentity.objects.all(), none, with_hashes=True)
    listed = settings.HUNCH_ERASURES
    other_machine()
    assert restore(tmp_path / "a.backup", listed).erased_again == {"hashes": 1}
    assert not PanelIdentity.objects.exists() and Respondent.objects.exists()


def test_log_ins_and_the_way_into_an_empty_server_are_in_no_backup() -> None:
    tables = set(rows.tables_of(apps))
    assert not tables & {"django_session", "survey_upload", "survey_firstaccountlink"}
    assert {"auth_user", "survey_apitoken", "survey_erasure", "survey_payment", "survey_auditentry"} <= tables


def test_columns_are_restored_by_their_names() -> None:
    """An earlier version may have had them in another order."""
    BudgetCount.objects.create(what="visits", who="w" * 64, until=timezone.now(), count=3)
    (before,) = BudgetCount.objects.values()
    columns, ((line,),) = rows.columns_of(BudgetCount), rows.parts_of(BudgetCount)
    BudgetCount.objects.all().delete()
    rows.insert(BudgetCount, columns[::-1], [json.dumps(json.loads(line)[::-1])])
    assert list(BudgetCount.objects.values()) == [before]


def test_who_had_withdrawn_before_the_backup_is_not_withdrawn_again(settings: Any) -> None:
    study = cast.open_stage().study
    before, after = [cast.Visitor(study).finish().sitting.respondent for _ in range(2)]
    withdraw(respondent=before, now=timezone.now())
    erasures.write_list()
    (line,) = erasures.read_list(settings.HUNCH_ERASURES)
    both = replace(line, refs=frozenset({erasures.ref_of(before), erasures.ref_of(after)}))
    assert restoring._erase_again([both]) == {"answers": 1}
    assert restoring._erase_again([both]) == {}
    assert after.withdrawal.at == line.at


def test_a_list_older_than_the_backup_is_refused(tmp_path: Path, settings: Any, other_machine: Any) -> None:
    study = cast.open_stage().study
    erasures.write_list()
    old = tmp_path / "old.jsonl"
    old.write_bytes(settings.HUNCH_ERASURES.read_bytes())
    withdraw(respondent=cast.Visitor(study).finish().sitting.respondent, now=timezone.now())
    making.make(tmp_path / "a.backup", PASSPHRASE)
    other_machine()
    with pytest.raises(HunchError, match="older than the backup"):
        restore(tmp_path / "a.backup", old)
    assert not Study.objects.exists()


def test_a_backup_copies_the_list_of_erasures_and_keeps_what_the_copy_has(
    tmp_path: Path, settings: Any, other_machine: Any
) -> None:
    """Also once the disk with the list was lost, and it began again."""
    settings.HUNCH_BACKUP_PASSPHRASE = PASSPHRASE
    study = cast.open_stage().study
    first, second = [cast.Visitor(study).finish().sitting.respondent for _ in range(2)]
    copy = tmp_path / "erasures.jsonl"
    call("backup", tmp_path / "a.backup", "--copy-erasures", copy)
    assert erasures.read_list(copy) == [] and copy.stat().st_mode & 0o077 == 0
    withdraw(respondent=first, now=timezone.now())
    said = call("backup", tmp_path / "b.backup", "--copy-erasures", copy)
    assert "the list of erasures, 1 lines" in said
    assert copy.read_text() == settings.HUNCH_ERASURES.read_text()
    settings.HUNCH_ERASURES.unlink()
    withdraw(respondent=second, now=timezone.now())
    call("backup", tmp_path / "c.backup", "--copy-erasures", copy)
    refs = {erasures.ref_of(first), erasures.ref_of(second)}
    assert set().union(*(entry.refs for entry in erasures.read_list(copy))) == refs
    assert "cannot be copied" in call("backup", tmp_path / "d.backup", "--copy-erasures", tmp_path / "nowhere" / "list")
    other_machine()
    assert restore(tmp_path / "a.backup", copy).erased_again == {"answers": 2}


def test_a_restore_says_whom_it_lets_in_again(tmp_path: Path, settings: Any, other_machine: Any) -> None:
    study = cast.open_stage().study
    settings.HUNCH_BACKUP_PASSPHRASE = PASSPHRASE
    users = get_user_model().objects
    leaver, owner = users.create_user("leaver"), users.create_user("owner")
    users.create_user("disabled", is_active=False)
    for user in (leaver, owner):
        cast.join(user, study)
    tokens = [ApiToken.issue(user=leaver)[0] for _ in range(3)]
    tokens[0].revoked_at = tokens[1].expires_at = timezone.now()
    for token in tokens:
        token.save()
    members.invite(study, role="viewer", may_spend=False, by=owner, now=timezone.now())
    erasures.write_list()
    listed = settings.HUNCH_ERASURES
    call("backup", tmp_path / "a.backup")
    other_machine()
    said = call("restore", tmp_path / "a.backup", "--erasures", listed)
    assert "2 accounts may log in" in said and "2 members of studies" in said and "1 invitations" in said
    assert f"API tokens that hold: {tokens[2].prefix} of leaver:" in said
    assert all(tokens[index].prefix not in said for index in (0, 1))
    assert all(command in said for command in ("members SLUG remove", "revoke_token", "unlock USER --remove-codes"))


def test_the_list_catches_up_when_it_could_not_be_written(settings: Any, caplog: Any) -> None:
    respondent = cast.Visitor(cast.open_stage().study).finish().sitting.respondent
    erasures.write_list()
    whole = settings.HUNCH_ERASURES.read_text()
    settings.HUNCH_ERASURES.chmod(0o600)
    right, settings.HUNCH_ERASURES = settings.HUNCH_ERASURES, settings.HUNCH_ERASURES / "below a file" / "list"
    withdraw(respondent=respondent, now=timezone.now())
    assert "cannot be written" in caplog.text and Erasure.objects.get().listed_at is None
    settings.HUNCH_ERASURES = right
    right.write_text(whole + '{"id": "half a li')
    assert erasures.write_list() == 1 and erasures.write_list() == 0
    assert [entry.what for entry in erasures.read_list(right)] == ["answers"]


def test_a_backup_is_of_one_moment_and_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.open_stage().study
    cast.Visitor(study).finish()
    answers = Response.objects.count()
    plain = rows.tables_of

    def meanwhile() -> None:
        try:
            cast.Visitor(Study.objects.get(pk=study.pk)).finish()
        finally:
            connection.close()

    def tables_of(apps: Any) -> Any:
        tables = plain(apps)
        for table, model in tables.items():
            if table == "survey_response":
                other = threading.Thread(target=meanwhile)
                other.start()
                other.join(60)
                assert not other.is_alive()
            yield table, model

    class Tables:
        def __init__(self, apps: Any) -> None:
            self.items = lambda: tables_of(apps)

        def __iter__(self) -> Any:
            return iter(())

    with monkeypatch.context() as patch:
        patch.setattr(making, "rows", _with(rows, tables_of=Tables, unknown_tables=lambda apps: []))
        made = making.make(tmp_path / "a.backup", PASSPHRASE)
    assert made.tables["survey_response"].rows == answers
    assert Response.objects.count() == 2 * answers


def _with(module: Any, **replaced: Any) -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(**{**vars(module), **replaced})


def test_nothing_is_readable_without_the_passphrase(tmp_path: Path, settings: Any) -> None:
    cast.open_stage()
    made = tmp_path / "a.backup"
    making.make(made, PASSPHRASE)
    content = made.read_bytes()
    assert b"survey_study" not in content and settings.HUNCH_IDENTITY_KEY.encode() not in content
    assert made.stat().st_mode & 0o077 == 0
    with pytest.raises(HunchError, match="passphrase"):
        archive.verified(made, "another passphrase")


@pytest.mark.parametrize("change", ["flip", "cut", "longer"])
def test_a_damaged_backup_is_refused_before_anything_is_written(
    change: str, tmp_path: Path, other_machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "PIECE", 1024)
    cast.open_stage()
    path = tmp_path / "a.backup"
    making.make(path, PASSPHRASE)
    content = bytearray(path.read_bytes())
    assert len(content) > 5 * 1024
    if change == "flip":
        content[len(content) // 2] ^= 1
    elif change == "cut":
        # At the end of a piece, where each piece by itself is whole.
        content = content[: sealing.HEADER.size + 3 * (1024 + sealing.TAG)]
    else:
        content += content[-100:]
    path.write_bytes(content)
    other_machine()
    with pytest.raises(HunchError, match="damaged"):
        restore(path)
    assert not Study.objects.exists()


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cast.open_stage()
    folder = tmp_path / "backups"
    folder.mkdir()

    def full(*_args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(making.os, "fsync", full)
    with pytest.raises(HunchError, match=r"No space left on device; nothing was left there"):
        making.make(folder / "a.backup", PASSPHRASE)
    assert list(folder.iterdir()) == []


def test_a_file_that_is_missing_or_changed_is_named(tmp_path: Path) -> None:
    filled.run_study()
    made = making.make(tmp_path / "a.backup", PASSPHRASE)
    lost, changed = made.files[:2]
    default_storage.delete(files.name_of(lost))
    Path(default_storage.path(files.name_of(changed))).write_bytes(b"other")
    again = making.make(tmp_path / "b.backup", PASSPHRASE)
    assert set(again.missing_files) == {lost, changed}
    assert archive.verified(tmp_path / "b.backup", PASSPHRASE)[0].files == made.files[2:]


def test_a_part_that_is_gone_changed_or_not_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    cast.open_stage()
    making.make(tmp_path / "a.backup", PASSPHRASE)
    whole = {name: content.read() for name, content in archive.parts(tmp_path / "a.backup", PASSPHRASE)}
    (name, *_others) = (part for part in whole if part not in (archive.CONTENTS, archive.KEYS))

    keys = {name: getattr(settings, name) for name in ("SECRET_KEY", "HUNCH_IDENTITY_KEY")}
    assert archive.verified(tmp_path / "a.backup", PASSPHRASE)[1] == keys and len(set(keys.values())) == 2

    def verify(parts: dict[str, bytes]) -> None:
        monkeypatch.setattr(archive, "parts", lambda *_of: ((part, BytesIO(parts[part])) for part in parts))
        archive.verified(tmp_path / "a.backup", PASSPHRASE)

    verify(whole)
    gone = {part: content for part, content in whole.items() if part != name}
    for parts, words in (
        (gone, f"{name} differ"),
        ({**whole, name: whole[name] + b" "}, f"{name} differ"),
        ({**whole, "another": b""}, "another differ"),
        ({part: whole[part] for part in whole if part != archive.KEYS}, f"{archive.KEYS} differ"),
        ({part: whole[part] for part in whole if part != archive.CONTENTS}, "has no contents"),
    ):
        with pytest.raises(HunchError, match=words):
            verify(parts)


def test_a_database_with_rows_is_replaced_only_where_it_is_said(tmp_path: Path) -> None:
    study = cast.open_stage().study
    making.make(tmp_path / "a.backup", PASSPHRASE)
    cast.Visitor(study).finish()
    with pytest.raises(HunchError, match="not empty"):
        restore(tmp_path / "a.backup")
    assert Response.objects.exists()
    restore(tmp_path / "a.backup", replace=True)
    assert not Response.objects.exists() and Study.objects.count() == 1


def test_a_restore_that_fails_leaves_the_old_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.open_stage().study
    making.make(tmp_path / "a.backup", PASSPHRASE)
    cast.Visitor(study).finish()
    monkeypatch.setattr(rows, "go_on_counting", lambda models: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        restore(tmp_path / "a.backup", replace=True)
    assert Response.objects.exists() and not Restore.objects.exists()


def test_a_backup_with_a_row_of_a_study_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = cast.open_stage().study
    making.make(tmp_path / "a.backup", PASSPHRASE)
    cast.Visitor(study).finish()
    monkeypatch.setattr(rows, "go_on_counting", lambda models: Stage.objects.update(study_id=study.pk + 1))
    with pytest.raises(HunchError, match="the backup is not whole, so nothing was restored"):
        restore(tmp_path / "a.backup", replace=True)
    assert Response.objects.exists() and not Restore.objects.exists()


def test_one_that_was_cut_off_before_the_end_lets_nothing_start_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast.open_stage()
    making.make(tmp_path / "a.backup", PASSPHRASE)
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "_erase_again", lambda listed: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restore(tmp_path / "a.backup", replace=True)
    with pytest.raises(keys.KeysDiffer, match="not finished"):
        keys.check()
    restore(tmp_path / "a.backup", replace=True)
    keys.check()


def add_migration(patch: pytest.MonkeyPatch, *operations: Operation) -> None:
    """As if this were a later version, with one more migration of `survey`."""
    plain = MigrationLoader.load_disk

    def load_disk(self: Any) -> None:
        plain(self)
        later = Migration("0999_later", "survey")
        later.dependencies = [max(node for node in self.disk_migrations if node[0] == "survey")]
        later.operations = list(operations)
        self.disk_migrations["survey", "0999_later"] = later

    patch.setattr(MigrationLoader, "load_disk", load_disk)


@pytest.mark.thorough
def test_a_backup_of_an_earlier_version_gets_its_tables_and_then_all_later_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other_machine: Any
) -> None:
    cast.open_stage()
    making.make(tmp_path / "a.backup", PASSPHRASE)
    met: list[int] = []

    def title(apps: Any, _editor: Any) -> None:
        met.append(apps.get_model("survey", "Study").objects.update(title="changed by a later step"))

    add_migration(
        monkeypatch,
        AddField("Study", "later_column", TextField(default="of the later version")),
        RunPython(title),
    )
    other_machine()
    call_command("migrate", verbosity=0)
    restore(tmp_path / "a.backup")
    assert met == [0, 1] and Study.objects.get().title == "changed by a later step"
    with connection.cursor() as cursor:
        cursor.execute("SELECT later_column FROM survey_study")
        assert cursor.fetchall() == [("of the later version",)]
        with pytest.raises(DatabaseError, match="never changed"):
            cursor.execute("DELETE FROM survey_auditentry")


def test_a_backup_of_a_later_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("survey", "0999_later")
    try:
        with monkeypatch.context() as patch:
            add_migration(patch)
            making.make(tmp_path / "a.backup", PASSPHRASE)
    finally:
        recorder.record_unapplied("survey", "0999_later")
    with pytest.raises(HunchError, match=r"survey\.0999_later"):
        restore(tmp_path / "a.backup")


def test_a_table_that_nobody_could_restore_is_not_passed_over(tmp_path: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE lost_instrument_answer (id integer)")
    try:
        with pytest.raises(HunchError, match="lost_instrument_answer"):
            making.make(tmp_path / "a.backup", PASSPHRASE)
        assert making.make(tmp_path / "a.backup", PASSPHRASE, leave_out=frozenset({"lost_instrument_answer"}))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE lost_instrument_answer")


def test_another_key_in_the_environment_is_refused(tmp_path: Path, settings: Any, other_machine: Any) -> None:
    cast.open_stage()
    making.make(tmp_path / "a.backup", PASSPHRASE)
    other_machine()
    settings.HUNCH_KEYS_SET = ["HUNCH_IDENTITY_KEY"]
    with pytest.raises(HunchError, match="sets another HUNCH_IDENTITY_KEY"):
        restore(tmp_path / "a.backup")
    assert not Study.objects.exists()


def call(*arguments: Any) -> str:
    out = StringIO()
    try:
        call_command(*map(str, arguments), stdout=out, stderr=out)
    except SystemExit as exc:
        return f"{out.getvalue()}status {exc.code}"
    return out.getvalue()


def test_the_commands_ask_for_what_is_missing_and_say_what_they_did(
    tmp_path: Path, settings: Any, other_machine: Any
) -> None:
    cast.open_stage()
    settings.HUNCH_BACKUP_PASSPHRASE = ""
    path, word = tmp_path / "a.backup", tmp_path / "passphrase"
    assert "--passphrase-file" in call("backup", path) and not path.exists()
    word.write_text("short\n")
    assert "use at least 12" in call("backup", path, "--passphrase-file", word)
    word.write_text(PASSPHRASE + "\n")
    said = call("backup", path, "--passphrase-file", word)
    assert "files and the keys" in said and PASSPHRASE not in said
    assert "is there already" in call("backup", path, "--passphrase-file", word)
    assert "all hashes agree" in call("restore", path, "--check", "--passphrase-file", word)
    call("restore", path, "--keys-to", tmp_path / "keys", "--passphrase-file", word)
    assert (tmp_path / "keys" / "identity_key").read_text().strip() == settings.HUNCH_IDENTITY_KEY
    other_machine()
    settings.HUNCH_BACKUP_PASSPHRASE = PASSPHRASE
    assert "--without-erasures" in call("restore", path)
    assert not Study.objects.exists()
    said = call("restore", path, "--without-erasures")
    assert "WITHOUT A LIST OF ERASURES" in said and "pay_bonuses --settle" in said
    assert Study.objects.exists()


def entries_in(audit: bytes) -> dict[str, dict[str, str]]:
    """The rows of an audit.csv, by the entry's id."""
    return {row["entry"]: row for row in csv.DictReader(StringIO(audit.decode()))}


@pytest.mark.postgresql
def test_a_machine_without_the_keys_gets_the_same_study_in_sqlite(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the commands, into a database without tables and of another kind."""
    filled.run_study()
    erasures.write_list()
    listed, exported = settings.HUNCH_ERASURES, tmp_path / "exported"
    exported.mkdir()
    write_export(Study.objects.select_related("bank").get(), exported)
    making.make(tmp_path / "a.backup", PASSPHRASE)
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "HUNCH_TEST_FOLDER": str(tmp_path / "elsewhere"),
        "HUNCH_BACKUP_PASSPHRASE": PASSPHRASE,
    }

    def python(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "restored" in python("manage.py", "restore", str(tmp_path / "a.backup"), "--erasures", str(listed))
    assert "agrees with its manifest" in python("-c", VERIFY_AND_EXPORT, str(tmp_path / "again"))
    before, again = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (exported, tmp_path / "again")
    )
    audit_before, audit_again = entries_in(before.pop("audit.csv")), entries_in(again.pop("audit.csv"))
    # Two processes may add up in different orders, so that the last digits differ.
    estimates = (again.pop("estimates.csv"), before.pop("estimates.csv"))
    assert store.differences_of("estimates.csv", *estimates) == []
    assert again == before and audit_before
    # Entries come after these, and those that were not sealed then may be by now. What was written stays.
    for entry, row in audit_before.items():
        assert audit_again[entry].items() >= {name: value for name, value in row.items() if value}.items()
    later = [row["action"] for entry, row in audit_again.items() if entry not in audit_before]
    assert "export_answers" in later
    contents = archive.verified(tmp_path / "a.backup", PASSPHRASE)[0]
    assert contents.database == connection.vendor and json.dumps(contents.schema)
