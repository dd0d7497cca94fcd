"""What tests begin with is put back as the services made it, and the tests' own command counts and ranks as it says."""

from collections import Counter
from collections.abc import Callable

import pytest
from django.core.files.storage import default_storage
from django.db import transaction

from survey.models import Bank, Study
from tests import cast, kept, run

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
    chosen, given = run.read_arguments(["--fast", "--repeat", "10", "--shuffle", "7", "tests/api", "-k", "links", "-x"])
    assert (chosen.fast, chosen.repeat, chosen.shuffle, given) == (True, 10, 7, ["tests/api", "-k", "links", "-x"])
