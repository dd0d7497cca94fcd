"""A database of an earlier schema, with studies in it, becomes one of this version: nothing is lost, all of it reads.

The golden rows were stored at one of these schemas. The schemas before it get them by migrating back, which drops what
these did not know.
"""

import gzip
import itertools
import json
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from survey.backups.schema import ChainLoader
from survey.models import Stage, Study
from tests import databases
from tests.golden import store

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.every_database]

STORED_AT = "0009_timing_and_links"
NEWEST = "the newest one"
# The first schema and that of the golden rows go through all later ones. The last one without locks and withdrawals
# goes as far as the golden rows: from there on its rows are like those of the other two. PostgreSQL takes each
# migration with rows once: the first schema goes as far as the golden rows, which go through all later ones.
WAYS = {"0001_initial": NEWEST, "0006_blocks": STORED_AT, STORED_AT: NEWEST}
WAYS_ON_POSTGRESQL = {"0001_initial": STORED_AT, STORED_AT: NEWEST}
INSTRUMENTS = [("belief_update", "0003_answer_modes"), ("own_answers", "0001_initial")]
OURS = (
    "survey",
    "belief_update",
    "own_answers",
    "cloze",
    "preference",
    "next_token",
    "token_comparison",
    "self_paced_reading",
)


@contextmanager
def led_to(name: str) -> Iterator[None]:
    first = connection.settings_dict["NAME"]
    databases.lead_to(name)
    try:
        yield
    finally:
        databases.lead_to(first)


def with_the_golden_rows(name: str) -> None:
    """Make this database, at the schema of the golden rows. Once in a run."""
    if connection.vendor == "postgresql":
        with connection.creation._nodb_cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
    with led_to(name):
        migrate(("survey", STORED_AT), *INSTRUMENTS)
        load(models_at(("survey", STORED_AT), *INSTRUMENTS))


@pytest.fixture(autouse=True)
def models_rendered_sparingly() -> Iterator[None]:
    with databases.models_rendered_sparingly():
        yield


@pytest.fixture
def golden_database(tmp_path: Path, models_rendered_sparingly: None) -> Iterator[None]:
    name = str(tmp_path / "old.sqlite3")
    if connection.vendor == "postgresql":
        name = f"old_{uuid.uuid4().hex[:12]}"
    databases.copy_template(name, databases.once("golden_rows", with_the_golden_rows))
    with led_to(name):
        yield
    if connection.vendor == "postgresql":
        with connection.creation._nodb_cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def migrate(*nodes: tuple[str, str]) -> None:
    executor = MigrationExecutor(connection)
    executor.loader = ChainLoader(connection)
    executor.migrate(list(nodes))


def models_at(*nodes: tuple[str, str]) -> Any:
    return ChainLoader(connection).project_state(list(nodes)).apps


def load(apps: Any) -> None:
    """The golden rows, by the models of their time. Rows of one model that follow each other go in together."""
    rows = json.loads(gzip.decompress((store.DATA / "database.json.gz").read_bytes()))
    with transaction.atomic():
        for name, together in itertools.groupby(rows, key=lambda row: str(row["model"])):
            model = apps.get_model(name)
            fields = {field.name: field for field in model._meta.concrete_fields}
            for field in fields.values():
                field.auto_now_add = False  # It would put another time in the place of the row's.
            made = []
            for row in together:
                values = {
                    fields[name].attname: fields[name].to_python(value)
                    for name, value in row["fields"].items()
                    if name in fields
                }
                made.append((model(pk=row["pk"], **values), row["fields"]))
            model._base_manager.bulk_create([one for one, _given in made])
            for one, given in made:
                for name in given.keys() - fields.keys():
                    getattr(one, name).set(given[name])


def rows_of(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def counts() -> dict[str, int]:
    """The rows of each table of ours, by no model: these change from schema to schema."""
    names = connection.introspection.table_names()
    return {
        name: rows_of(f'SELECT COUNT(*) FROM "{name}"')[0][0]  # noqa: S608
        for name in names
        if name.startswith(tuple(f"{app}_" for app in OURS))
    }


def give_up_what_was_unknown(schema: str) -> None:
    """Values that the rules of an earlier schema do not allow."""
    with connection.cursor() as cursor:
        if schema < "0007":
            cursor.execute("UPDATE survey_assignment SET state = 'released' WHERE state = 'withdrawn'")
    if schema < "0002":  # There were no controls and repeats, which show an item again.
        shown: Counter[tuple[int, int]] = Counter()
        for slot in models_at(("survey", STORED_AT)).get_model("survey", "Slot").objects.order_by("pk"):
            slot.replicate = shown[slot.stage_id, slot.item_id]
            if slot.role in ("control", "repeat"):
                slot.role, slot.control_kind, slot.repeat_of = "sampled", "", None
                slot.inclusion_probability = slot.pool_probability = 0.5
                slot.stratum = slot.stage.strata.first()
            slot.save()
            shown[slot.stage_id, slot.item_id] += 1


OPENED = "SELECT id, opened_at FROM survey_stage ORDER BY id"
LOCKED = "SELECT id, locked_at, locked_sha256 <> '' FROM survey_study ORDER BY id"
SEALED = "SELECT id, ids_encrypted FROM survey_panelidentity ORDER BY id"


@pytest.mark.parametrize(
    "schema",
    [one if one in WAYS_ON_POSTGRESQL else pytest.param(one, marks=pytest.mark.any_database) for one in WAYS],
)
def test_a_database_of(schema: str, golden_database: None, settings: Any, tmp_path: Path) -> None:
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY
    last = (WAYS_ON_POSTGRESQL if connection.vendor == "postgresql" else WAYS)[schema]
    opened, locked = rows_of(OPENED), rows_of(LOCKED)
    assert len(locked) == 3 and all(at and is_hashed for _study, at, is_hashed in locked)
    if schema != STORED_AT:
        give_up_what_was_unknown(schema)
        migrate(("survey", schema))
    before = counts()
    assert before["survey_study"] == 3 and before["survey_response"] == 808
    if last == NEWEST:
        call_command("migrate", verbosity=0, interactive=False)
    else:
        migrate(("survey", last))
    connection.check_constraints()
    after = counts()
    assert {name: after[name] for name in before if name in after} == {n: c for n, c in before.items() if n in after}
    assert rows_of(OPENED) == opened
    assert all(bytes(ids) for _identity, ids in rows_of(SEALED))
    if last != NEWEST:
        return
    assert rows_of(LOCKED) == locked  # A migration locks what was opened before there were locks.
    for study in Study.objects.all():
        first = study.main_stages().first()
        assert first is not None and study.config.stages
        assert (study.locked_at, bool(study.locked_sha256)) == (first.opened_at, True)
    if schema == STORED_AT:
        with store.zipfile.ZipFile(store.DATA / "files.zip") as archive:
            archive.extractall(store.stored_files())
        folder = tmp_path / "export"
        folder.mkdir()
        found = store.results_of(Study.objects.select_related("bank").get(slug="answers"), folder)
        stored = store.read_results("answers")
        # Newer files are in no golden study.
        for name in (name for name in stored if "estimates" not in name):
            assert found[name] == stored[name], name
        assert Stage.objects.filter(state="frozen").count() == 7
