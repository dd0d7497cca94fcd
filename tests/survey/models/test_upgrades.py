"""A database of an earlier schema, with studies in it, becomes one of this version: nothing is lost, all of it reads.

The golden rows were stored at one of these schemas. The schemas before it get them by migrating back, which drops what
these did not know.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from survey.backups.schema import ChainLoader
from survey.models import PanelIdentity, Stage, Study
from tests import databases
from tests.golden import store

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

STORED_AT = "0009_timing_and_links"
# The first one, the last without locks and withdrawals, and that of the golden rows. Each goes through all later ones.
SCHEMAS = ["0001_initial", "0006_blocks", STORED_AT]
INSTRUMENTS = [("belief_update", "0003_answer_modes"), ("own_answers", "0001_initial")]


@pytest.fixture
def empty_database(tmp_path: Path) -> Iterator[None]:
    with databases.without_tables(tmp_path):
        yield


def migrate(*nodes: tuple[str, str]) -> Any:
    """To these schemas, and the models of that time."""
    executor = MigrationExecutor(connection)
    executor.loader = ChainLoader(connection)
    executor.migrate(list(nodes))
    return ChainLoader(connection).project_state(list(nodes)).apps


def load(apps: Any) -> None:
    """The golden rows, by the models of their time."""
    rows = json.loads(gzip.decompress((store.DATA / "database.json.gz").read_bytes()))
    with transaction.atomic():
        for row in rows:
            model = apps.get_model(row["model"])
            fields = {field.name: field for field in model._meta.concrete_fields}
            values = {
                fields[name].attname: fields[name].to_python(value)
                for name, value in row["fields"].items()
                if name in fields
            }
            one = model(pk=row["pk"], **values)
            model._base_manager.bulk_create([one])
            # `auto_now_add` has put another time in its place.
            times = {name: value for name, value in values.items() if getattr(fields.get(name), "auto_now_add", False)}
            if times:
                model._base_manager.filter(pk=one.pk).update(**times)
            for name in row["fields"].keys() - fields.keys():
                getattr(one, name).set(row["fields"][name])


def counts(apps: Any) -> dict[str, int]:
    return {
        model._meta.label: model._base_manager.count()
        for config in apps.get_app_configs()
        if config.label
        in (
            "survey",
            "belief_update",
            "own_answers",
            "cloze",
            "preference",
            "next_token",
            "token_comparison",
            "self_paced_reading",
        )
        for model in config.get_models()
    }


def give_up_what_was_unknown(apps: Any, schema: str) -> None:
    """Values that the rules of an earlier schema do not allow."""
    if schema < "0007":
        apps.get_model("survey", "Assignment").objects.filter(state="withdrawn").update(state="released")
    if schema < "0002":  # There were no controls and repeats, which show an item again.
        shown: Counter[tuple[int, int]] = Counter()
        for slot in apps.get_model("survey", "Slot").objects.order_by("pk"):
            slot.replicate = shown[slot.stage_id, slot.item_id]
            if slot.role in ("control", "repeat"):
                slot.role, slot.control_kind, slot.repeat_of = "sampled", "", None
                slot.inclusion_probability = slot.pool_probability = 0.5
                slot.stratum = slot.stage.strata.first()
            slot.save()
            shown[slot.stage_id, slot.item_id] += 1


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_database_of(schema: str, empty_database: None, settings: Any, tmp_path: Path) -> None:
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY
    newest = migrate(("survey", STORED_AT), *INSTRUMENTS)
    load(newest)
    opened = dict(newest.get_model("survey", "Stage").objects.values_list("pk", "opened_at"))
    old = newest
    if schema != STORED_AT:
        give_up_what_was_unknown(newest, schema)
        old = migrate(("survey", schema))
    before = counts(old)
    assert before["survey.Study"] == 3 and before["survey.Response"] == 808
    call_command("migrate", verbosity=0, interactive=False)
    connection.check_constraints()
    from django.apps import apps

    after = counts(apps)
    assert {name: after[name] for name in before if name in after} == {n: c for n, c in before.items() if n in after}
    for study in Study.objects.all():
        first = study.main_stages().first()
        assert first is not None and study.config.stages
        assert (study.locked_at, bool(study.locked_sha256)) == (opened[first.pk], True)
    assert all(bytes(identity.ids_encrypted) for identity in PanelIdentity.objects.all())
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
