"""The audit's chain: what is sealed, who may change it, and what is found when somebody did."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from survey import tasks
from survey.models import AuditEntry, AuditSeal
from survey.services.base import audit_chain
from survey.services.base.auditing import actor_of, record
from survey.services.base.hashing import digest
from survey.services.stages import jobs, lifecycle
from tests import cast, databases
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db


def entries(count: int) -> list[AuditEntry]:
    return [record("open_stage", f"small stage {number}", by=None, number=number) for number in range(1, count + 1)]


@pytest.fixture
def sealed() -> list[AuditEntry]:
    """Five entries with their seals, and one without."""
    made = entries(5)
    assert audit_chain.seal_entries() == 5
    return [*made, record("open_stage", "the tail")]


def faults() -> list[str]:
    return audit_chain.verify().faults


def test_a_chain_that_nobody_touched_agrees(sealed: list[AuditEntry]) -> None:
    verification = audit_chain.verify()
    assert (verification.faults, verification.number, verification.unsealed) == ([], 5, 1)
    assert verification.tail == (sealed[-1].pk, sealed[-1].pk)
    assert audit_chain.head().sha256 == verification.sha256 == AuditSeal.objects.get(number=5).sha256
    assert tasks.seal_audit() == 1 and tasks.seal_audit() == 0
    assert (audit_chain.verify().unsealed, audit_chain.head().unsealed) == (0, 0)


def test_each_seal_follows_from_the_one_before_it(sealed: list[AuditEntry]) -> None:
    previous = audit_chain.START
    for seal, entry in zip(AuditSeal.objects.order_by("number"), sealed, strict=False):
        assert seal.entry_id == entry.pk and seal.entry_sha256 == audit_chain.entry_digest(entry)
        previous = audit_chain.seal_digest(
            previous=previous,
            number=seal.number,
            entry_id=seal.entry_id,
            entry_sha256=seal.entry_sha256,
            sealed_at=seal.sealed_at,
        )
        assert seal.sha256 == previous


def test_sealing_goes_on_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_chain, "BATCH", 3)
    entries(8)
    assert audit_chain.seal_entries() == 8
    assert (faults(), AuditSeal.objects.count()) == ([], 8)


def test_seals_go_on_after_the_last_entry_where_keys_were_left_out() -> None:
    """A transaction that is rolled back leaves its key unused."""
    last = entries(2)[-1]
    assert audit_chain.seal_entries() == 2
    far = AuditEntry(pk=last.pk + 50, via="command", action="x", subject="s")
    AuditEntry.objects.bulk_create([far])
    for _entry in range(2):
        assert audit_chain.seal_entries() == 1
        entries(1)
    assert list(AuditSeal.objects.order_by("number").values_list("number", "entry_id"))[2:] == [
        (3, far.pk),
        (4, far.pk + 1),
    ]
    assert faults() == []


# Who may change it


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE survey_auditentry SET subject = 'another'",
        "DELETE FROM survey_auditentry",
        "UPDATE survey_auditseal SET sha256 = ''",
        "DELETE FROM survey_auditseal",
        pytest.param("TRUNCATE survey_auditentry", marks=pytest.mark.postgresql),
        pytest.param("TRUNCATE survey_auditseal", marks=pytest.mark.postgresql),
    ],
)
def test_the_database_refuses_every_change(sealed: list[AuditEntry], statement: str) -> None:
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert (faults(), AuditEntry.objects.count()) == ([], 6)


def test_replacing_a_row_is_refused_too(sealed: list[AuditEntry]) -> None:
    """`INSERT OR REPLACE` of SQLite; PostgreSQL has no such statement, and refuses the second key."""
    verb = "INSERT OR REPLACE" if connection.vendor == "sqlite" else "INSERT"
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{verb} INTO survey_auditseal SELECT * FROM survey_auditseal WHERE number = 2")  # noqa: S608
    assert faults() == []


def test_django_cannot_change_them_either(sealed: list[AuditEntry]) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEntry.objects.filter(pk=sealed[0].pk).update(subject="another")
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEntry.objects.all().delete()


# What is found


def test_a_changed_entry_is_named(sealed: list[AuditEntry]) -> None:
    for change in ({"subject": "another"}, {"detail": {"number": 4}}, {"actor": "u-0"}, {"study": "x"}, {"salt": "0"}):
        with transaction.atomic():
            with databases.unguarded():
                AuditEntry.objects.filter(pk=sealed[2].pk).update(**change)
            assert [f"entry {sealed[2].pk} was changed" in fault for fault in faults()] == [True], change
            transaction.set_rollback(True)


def test_a_moment_less_is_a_change(sealed: list[AuditEntry]) -> None:
    with databases.unguarded():
        AuditEntry.objects.filter(pk=sealed[0].pk).update(at=sealed[0].at + timedelta(microseconds=1))
    assert len(faults()) == 1


def test_a_removed_entry_is_named(sealed: list[AuditEntry]) -> None:
    with databases.unguarded():
        AuditEntry.objects.filter(pk=sealed[1].pk).delete()
    (fault,) = faults()
    assert fault.startswith(f"entry {sealed[1].pk} was removed")


def test_an_entry_that_is_removed_with_its_seal_leaves_a_gap(sealed: list[AuditEntry]) -> None:
    with databases.unguarded():
        AuditEntry.objects.filter(pk=sealed[1].pk).delete()
        AuditSeal.objects.filter(entry_id=sealed[1].pk).delete()
    first, second = faults()
    assert first.startswith("seal 2 is missing") and second.startswith("seal 3 does not follow")


def test_an_inserted_entry_is_named_and_never_sealed(sealed: list[AuditEntry]) -> None:
    with databases.unguarded():
        AuditEntry.objects.filter(pk=sealed[1].pk).delete()
        AuditSeal.objects.all().delete()
    audit_chain.seal_entries()
    with connection.cursor() as cursor:
        columns = "at, actor, via, action, subject, study, detail, salt"
        cursor.execute(
            f"INSERT INTO survey_auditentry (id, {columns}) SELECT %s, {columns} FROM survey_auditentry WHERE id = %s",  # noqa: S608
            [sealed[1].pk, sealed[0].pk],
        )
    assert audit_chain.seal_entries() == 0
    (fault,) = faults()
    assert fault.startswith(f"entry {sealed[1].pk} was inserted")


def insert_far_ahead(key: int) -> AuditEntry:
    """By somebody who writes to the database."""
    entry = AuditEntry(pk=key, action="pay_bonuses", subject="from outside")
    return AuditEntry.objects.bulk_create([entry])[0]


def test_a_row_far_ahead_does_not_end_the_sealing(sealed: list[AuditEntry]) -> None:
    """On PostgreSQL it is named and never sealed; on SQLite the ids that follow are above it."""
    far = insert_far_ahead(10**9)
    later = [record("open_stage", "later") for _number in range(2)]
    audit_chain.seal_entries()
    in_chain = set(AuditSeal.objects.values_list("entry_id", flat=True))
    assert {sealed[-1].pk, *(entry.pk for entry in later)} <= in_chain
    is_named = [fault for fault in faults() if f"entry {far.pk} was inserted" in fault]
    assert bool(is_named) == (far.pk not in in_chain) == (connection.vendor == "postgresql")
    assert len(faults()) == len(is_named)


@pytest.mark.postgresql
def test_where_a_row_far_ahead_was_sealed_the_ids_go_on_above_it(
    sealed: list[AuditEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions have done: what was written in between stays named, and all later entries are sealed."""
    far = insert_far_ahead(10**9)
    with monkeypatch.context() as patch:
        patch.setattr(audit_chain, "_last_given", lambda: None)
        assert audit_chain.seal_entries() == 2
    stranded = record("open_stage", "below it")
    audit_chain.seal_entries()
    later = record("open_stage", "above it")
    assert stranded.pk < far.pk < later.pk and audit_chain.seal_entries() == 1
    assert [fault for fault in faults() if f"entry {stranded.pk} was inserted" in fault] == faults()


def test_a_changed_seal_is_named(sealed: list[AuditEntry]) -> None:
    with databases.unguarded():
        AuditSeal.objects.filter(number=3).update(sha256="f" * 64)
    first, second = faults()
    assert first.startswith("seal 3 does not follow") and second.startswith("seal 4 does not follow")


def test_a_chain_made_anew_lacks_the_head_that_was_noted(sealed: list[AuditEntry]) -> None:
    noted = audit_chain.head().sha256
    assert audit_chain.verify(noted).seen
    with databases.unguarded():
        AuditSeal.objects.all().delete()
        AuditEntry.objects.filter(pk=sealed[2].pk).update(subject="another")
    audit_chain.seal_entries()
    verification = audit_chain.verify(noted)
    assert verification.faults == [] and not verification.seen


def test_a_chain_cut_at_its_end_lacks_the_head_that_was_noted(sealed: list[AuditEntry]) -> None:
    noted = audit_chain.head().sha256
    with databases.unguarded():
        AuditSeal.objects.filter(number__gte=4).delete()
        AuditEntry.objects.filter(pk__gte=sealed[3].pk).delete()
    verification = audit_chain.verify(noted)
    assert verification.faults == [] and not verification.seen


def test_the_command_names_head_tail_and_faults(sealed: list[AuditEntry], capsys: pytest.CaptureFixture[str]) -> None:
    call_command("verify_audit", head=audit_chain.head().sha256)
    printed = capsys.readouterr().out
    assert f"head: seal 5, {audit_chain.head().sha256}" in printed
    assert f"not sealed yet: 1 entries, from {sealed[-1].pk} to {sealed[-1].pk}" in printed
    with databases.unguarded():
        AuditEntry.objects.filter(pk=sealed[0].pk).update(subject="another")
    with pytest.raises(SystemExit) as stopped:
        call_command("verify_audit", head="0123")
    lines = capsys.readouterr().err.splitlines()
    assert stopped.value.code == 1
    assert f"entry {sealed[0].pk} was changed" in lines[0] and "no seal has the hash 0123" in lines[1]


def test_verifying_takes_as_many_statements_for_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for more in (4, 40):
        entries(more)
        audit_chain.seal_entries()
        with CaptureQueriesContext(connection) as captured:
            assert faults() == []
        counts.append(len(captured))
    # PostgreSQL is also asked how far its sequence has come.
    assert counts[0] == counts[1] <= (5 if connection.vendor == "postgresql" else 4)


# Entries whose transactions end in another order than they began


def in_its_own_transaction(written: threading.Event, may_end: threading.Event, *, fails: bool) -> None:
    try:
        with transaction.atomic():
            record("open_stage", "written first")
            written.set()
            may_end.wait()
            transaction.set_rollback(fails)
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fails", [False, True])
def test_an_entry_of_a_transaction_that_ends_late_is_waited_for(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setattr(audit_chain, "PATIENCE", 0.0)
    record("open_stage", "long before")
    audit_chain.seal_entries()
    record("open_stage", "before")
    written, may_end = threading.Event(), threading.Event()
    slow = threading.Thread(target=in_its_own_transaction, args=(written, may_end), kwargs={"fails": fails})
    slow.start()
    try:
        assert written.wait(PATIENCE)
        record("open_stage", "written second")
        assert audit_chain.seal_entries() == 1  # Only what stands before the gap.
        assert audit_chain.seal_entries() == 0
    finally:
        may_end.set()
        slow.join()
    assert audit_chain.seal_entries() == (1 if fails else 2)
    subjects = dict(AuditEntry.objects.values_list("pk", "subject"))
    order = [subjects[key] for key in AuditSeal.objects.order_by("number").values_list("entry_id", flat=True)]
    assert order == ["long before", "before", *([] if fails else ["written first"]), "written second"]
    assert faults() == []


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_gap_is_passed_while_others_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that began to write after the gap was there cannot fill it."""
    with transaction.atomic():
        record("open_stage", "fails")
        transaction.set_rollback(True)
    record("open_stage", "after the gap")
    written, may_end = threading.Event(), threading.Event()
    later = threading.Thread(target=in_its_own_transaction, args=(written, may_end), kwargs={"fails": False})
    seen = audit_chain._writers

    def begins_meanwhile() -> Any:
        writers = seen()
        if not later.is_alive() and not written.is_set():
            later.start()
            assert written.wait(PATIENCE)
        return writers

    monkeypatch.setattr(audit_chain, "_writers", begins_meanwhile)
    try:
        assert audit_chain.seal_entries() == 1
    finally:
        may_end.set()
        later.join()
    assert audit_chain.seal_entries() == 1 and faults() == []


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_one_process_seals_at_a_time() -> None:
    record("open_stage", "waits")
    held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                assert audit_chain._is_my_turn()
                held.set()
                may_end.wait()
        finally:
            connection.close()

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert held.wait(PATIENCE)
        assert audit_chain.seal_entries() == 0
    finally:
        may_end.set()
        other.join()
    assert audit_chain.seal_entries() == 1


# What is in it


def test_an_entry_has_its_study_and_no_users_name(django_user_model: Any) -> None:
    user = django_user_model.objects.create_user("ada lovelace")
    stage = cast.open_stage()
    of_stage = record("pause_stage", stage, by=user, via="admin")
    assert of_stage.study == record("x", stage.study).study == stage.study.slug
    assert record("x", "nothing of ours").study == "" and record("x", "somebody", study="cast").study == "cast"
    assert of_stage.actor == actor_of(user) and "lovelace" not in str(
        AuditEntry.objects.filter(pk=of_stage.pk).values()
    )
    assert record("x", "y", by=AnonymousUser()).actor == ""
    call_command("create_token", "ada lovelace")
    token = AuditEntry.objects.get(action="create_token")
    assert token.detail["token_user"] == actor_of(user) and "lovelace" not in token.subject


def test_audit_names_depend_on_the_key(django_user_model: Any, settings: Any) -> None:
    user = django_user_model.objects.create_user("ada")
    before = actor_of(user)
    settings.HUNCH_IDENTITY_KEY = "another"
    assert actor_of(user) != before


def test_an_assignment_is_in_it_as_a_hash() -> None:
    study = cast.open_stage().study
    visitor = cast.Visitor(study).to_items()
    sitting = visitor.reload()
    slots = list(sitting.assignments.order_by("position").values_list("slot__number", flat=True))
    assigned_at = sitting.assignments.earliest("position").assigned_at
    entry = AuditEntry.objects.get(action="claim_booklet")
    assert entry.detail == {
        "assigned_at": assigned_at.isoformat(),
        "sha256": digest([1, sitting.respondent.pseudonym, *slots]),
    }
    assert sitting.respondent.pseudonym not in f"{entry.subject}{entry.detail}"


@pytest.mark.slow
def test_freezing_is_in_it_with_the_hash_of_each_exclusion() -> None:
    study = cast.open_study(
        flags={"same_answers": {"items": 3, "share": 1.0}},
        exclusions={"flags": ["same_answers"]},
    )
    sitting = cast.begin(study)
    cast.walk(sitting)
    stage = study.stages.get(index=1)
    jobs.run_inline(lifecycle.close_stage(stage, now=True))
    stage.refresh_from_db()
    entry = AuditEntry.objects.get(action="freeze_stage")
    assert (entry.study, entry.via) == ("cast", "worker")
    assert entry.detail == {
        "answers": 3,
        "snapshot_sha256": stage.snapshot_sha256,
        "excluded": [digest([1, sitting.respondent.pseudonym, ["same_answers"]])],
    }
