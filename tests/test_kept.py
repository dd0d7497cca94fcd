"""What tests begin with is put back as the services made it, and the tests' own command counts and ranks as it says."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core.files.storage import default_storage
from django.core.management.color import no_style
from django.db import connection, transaction
from django.utils import timezone

from survey.models import Bank, Study
from tests import cast, databases, kept, run

pytestmark = pytest.mark.slow

made: Counter[str] = Counter()


@kept.kept
def opened(slug: str = "kept") -> Study:
    made[slug] += 1
    return cast.open_study.__wrapped__(slug=slug)  # type: ignore[attr-defined]


def undone(make: Callable[..., Study], **arguments: str) -> tuple[Study, list[kept.Table]]:
    """What a function returns and all rows that it writes, which are gone again."""
    with transaction.atomic():
        study = make(**arguments)
        tables = [kept.read_table(name) for name in kept.our_tables()]
        transaction.set_rollback(True)
    return study, tables


@pytest.mark.django_db
def test_rows_are_put_back_as_they_were_made() -> None:
    made.clear()
    first, rows = undone(opened, slug="same")
    again, rows_again = undone(opened, slug="same")
    assert made == {"same": 1}
    assert rows_again == rows and sum(len(table.rows) for table in rows) > 50
    assert again == first and again is not first and again.config == first.config
    other, _rows = undone(opened, slug="other")
    assert other.slug == "other" and made == {"same": 1, "other": 1}


@pytest.mark.django_db
def test_another_process_puts_back_what_this_one_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUNCH_TEST_FOLDER", str(tmp_path))
    made.clear()
    make = opened.__wrapped__  # type: ignore[attr-defined]
    _study, rows = undone(kept.kept(make), slug="shared")
    _study, rows_there = undone(kept.kept(make), slug="shared")
    assert rows_there == rows and made == {"shared": 1}


@pytest.mark.django_db
def test_where_there_are_rows_already_and_after_a_while_they_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made.clear()
    undone(opened, slug="again")
    with transaction.atomic():
        Bank.objects.create(name="another", version=1, sha256="0" * 64, question_count=0)
        opened(slug="again")
        transaction.set_rollback(True)
    assert made == {"again": 2}
    monkeypatch.setattr(kept, "FRESH", 0.0)
    undone(opened, slug="again")
    assert made == {"again": 3}


@pytest.mark.django_db
def test_where_a_clock_stands_still_the_rows_have_its_time_and_another_moment_has_rows_of_its_own(
    time_machine: Any,
) -> None:
    made.clear()
    for moment, times in (("2026-03-01T12:00:01Z", 1), ("2026-03-01T12:00:01Z", 1), ("2026-03-01T12:00:02Z", 2)):
        time_machine.move_to(moment, tick=False)
        study, _rows = undone(opened, slug="stopped")
        assert study.created_at == timezone.now() and made == {"stopped": times}
    time_machine.move_to("2026-03-01T12:00:02Z", tick=True)
    undone(opened, slug="stopped")
    assert made == {"stopped": 3}, "a clock that runs"


@pytest.mark.django_db
def test_a_fake_panel_at_another_address_changes_no_row_and_another_setting_does(settings: Any) -> None:
    made.clear()
    for name, times in (("HUNCH_PROLIFIC_URL", 1), ("HUNCH_PROLIFIC_TOKEN", 2)):
        undone(opened, slug="settings")
        setattr(settings, name, "http://127.0.0.1:9")
        undone(opened, slug="settings")
        assert made == {"settings": times}


@pytest.mark.django_db
def test_files_that_a_test_lost_are_there_again() -> None:
    undone(opened, slug="files")
    with transaction.atomic():
        sha256 = opened(slug="files").stages.get(index=1).candidate_set.file_sha256
        name = f"{sha256[:2]}/{sha256}"
        transaction.set_rollback(True)
    default_storage.delete(name)
    undone(opened, slug="files")
    assert default_storage.exists(name)


@pytest.mark.django_db
def test_the_keys_of_new_rows_go_on_after_those_put_back() -> None:
    undone(opened, slug="keys")
    study = opened(slug="keys")
    assert cast.bank(name="later").pk > study.bank_id


@pytest.mark.django_db
def test_the_keys_of_new_rows_go_on_where_another_test_has_set_the_sequences_back() -> None:
    """As restoring a backup does."""
    made.clear()
    undone(opened, slug="set-back")
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Study, Bank]):
            cursor.execute(statement)
    study = opened(slug="set-back")
    assert made["set-back"] == 1
    more = Bank.objects.create(name="another", version=1, sha256="0" * 64, question_count=0)
    assert more.pk > study.bank_id


# The migrated file


@pytest.mark.parametrize("changed", ["migrations/0001_initial.py", "models.py", "models/row.py"])
def test_a_changed_migration_or_model_has_a_file_migrated_anew(
    changed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("migrations/0001_initial.py", "models.py", "models/row.py", "views.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(apps, "get_app_configs", lambda: [SimpleNamespace(label="one", path=str(tmp_path))])
    before = databases.schema_digest()
    (tmp_path / "views.py").write_text("changed")
    assert databases.schema_digest() == before
    (tmp_path / changed).write_text("changed")
    assert databases.schema_digest() != before


# The command


SECONDS = {
    ("SQLite", "tests/a/b/test_x.py::test_one"): 1.0,
    ("SQLite", "tests/a/b/test_y.py::test_two[tests/odd]"): 2.5,
    ("PostgreSQL", "tests/a/b/test_x.py::test_one"): 3.0,
    ("SQLite", "tests/test_z.py::test_three"): 0.25,
}


def test_the_slowest_tests_and_folders_come_first() -> None:
    assert [line.split() for line in run.slowest_tests(SECONDS)][:2] == [
        ["3.00", "s", "PostgreSQL", "tests/a/b/test_x.py::test_one"],
        ["2.50", "s", "SQLite", "tests/a/b/test_y.py::test_two[tests/odd]"],
    ]
    assert [" ".join(line.split()) for line in run.time_by_folder(SECONDS)] == [
        "3.50 s SQLite tests/a/b, 2 tests",
        "3.00 s PostgreSQL tests/a/b, 1 test",
        "0.25 s SQLite tests, 1 test",
    ]
    many = {("SQLite", f"tests/test_m.py::test_{number}"): float(number) for number in range(30)}
    assert len(run.slowest_tests(many)) == 20


def test_each_run_takes_the_next_seed_and_other_arguments_go_to_pytest() -> None:
    chosen, pytest_arguments = run.read_arguments(
        ["--fast", "--repeat", "10", "--shuffle", "7", "tests/api", "-k", "links", "-x"]
    )
    assert (chosen.tier, chosen.repeat, chosen.shuffle, pytest_arguments) == (
        "check",
        10,
        7,
        ["tests/api", "-k", "links", "-x"],
    )
    assert run.read_arguments([])[0].tier == "test" and run.read_arguments(["--all"])[0].tier == "all"


def test_the_parts_of_a_run_write_bytecode_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    chosen, pytest_arguments = run.read_arguments(["--fast"])
    (part,) = run.parts_of_run(chosen, pytest_arguments, {"SQLite": ""}, tmp_path)
    command = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"]
    told = subprocess.run(command, env=part.whole_environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
