"""A database made by squashed migrations is the same as one that went through the migrations that these replace."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from survey.backups import schema
from tests import databases, kept

pytestmark = [pytest.mark.slow, pytest.mark.every_database]

APPS = ("survey", "belief_update")
# Where an earlier version ended.
EARLIER = [("survey", "0030_test_copies"), ("belief_update", "0004_reason_codes"), ("own_answers", "0001_initial")]


def test_they_end_in_the_same_models() -> None:
    squashed, chain = MigrationLoader(None), schema.ChainLoader(None)
    by = {key for app in APPS for key in squashed.graph.root_nodes(app)}
    assert by == squashed.replacements.keys() and not by & chain.graph.nodes.keys()
    found, expected = squashed.project_state(), chain.project_state()
    for key, model in expected.models.items():
        assert found.models[key] == model, key
    assert found.models.keys() == expected.models.keys()


def test_who_follows_a_replaced_migration_follows_the_squashed_one() -> None:
    loader = MigrationLoader(None)
    plan = loader.graph.forwards_plan(("cloze", "0001_initial"))
    written = loader.disk_migrations["cloze", "0001_initial"].dependencies
    assert written == [("survey", "0032_receivers")] and loader.graph.root_nodes("survey")[0] in plan
    assert not set(written) & set(plan)


def reached(last: list[schema.Node], loader: MigrationLoader) -> set[schema.Node]:
    """These migrations and all that they follow."""
    return {node for one in last for node in loader.graph.forwards_plan(one)}


@pytest.mark.django_db
def test_only_a_backup_from_within_the_chain_goes_through_it() -> None:
    loader = MigrationLoader(connection)
    newest = schema.plain(loader.graph.nodes, loader)
    assert ("survey", "0001_initial") in newest and not newest & loader.replacements.keys()
    whole = schema.executor_for(newest).loader
    assert whole.graph.nodes.keys() == reached(schema.last_of(newest, whole), whole)
    earlier = reached(EARLIER, schema.ChainLoader(None))
    part = schema.executor_for(earlier).loader
    assert set(EARLIER) <= set(schema.last_of(earlier, part))
    models = part.project_state(schema.last_of(earlier, part)).models
    assert ("survey", "doorcount") in models and ("survey", "budgetcount") not in models


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_earlier_database_becomes_what_a_new_one_is(tmp_path: Path) -> None:
    new = tables(), rows()
    with databases.without_tables(tmp_path), databases.models_rendered_sparingly():
        earlier = reached(EARLIER, schema.ChainLoader(None))
        executor = schema.executor_for(earlier)
        executor.migrate(schema.last_of(earlier, executor.loader))
        names = connection.introspection.table_names()
        assert "survey_doorcount" in names and "survey_budgetcount" not in names
        call_command("migrate", verbosity=0, interactive=False)
        old = tables(), rows()
    assert {kind: old[0][kind] ^ new[0][kind] for kind in new[0]} == dict.fromkeys(new[0], frozenset())
    assert old[1] == new[1]


SQLITE = {"all": "SELECT type, name, sql FROM sqlite_master"}
POSTGRESQL = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
            pg_get_expr(e.adbin, e.adrelid)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN pg_attrdef e ON e.adrelid = c.oid AND e.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'""",
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraints": """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace""",
    "triggers": "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
}
# PostgreSQL keeps the names that it has given itself where a table or a column gets another one.
RENAMED = {
    "survey_doorcount_": "survey_budgetcount_",
    "survey_auditentry_actor_name_": "survey_auditentry_actor_",
    "survey_posting_told_": "survey_posting_panel_facts_",
}
# It writes a condition otherwise where the column was once shorter.
CASTS = re.compile(r"::character varying|::text|\[\]|[()]")


def tables() -> dict[str, frozenset[Any]]:
    """Columns, indexes, constraints and triggers; on SQLite whole tables, their columns in order."""
    found = {}
    with connection.cursor() as cursor:
        for kind, query in (SQLITE if connection.vendor == "sqlite" else POSTGRESQL).items():
            cursor.execute(query)
            found[kind] = frozenset(tuple(map(comparable, row)) for row in cursor.fetchall())
    return found


def comparable(value: Any) -> Any:
    if connection.vendor == "sqlite" or not isinstance(value, str):
        return value
    for old, new in RENAMED.items():
        value = value.replace(old, new)
    return CASTS.sub("", value)


def rows() -> dict[str, set[Any]]:
    """The rows that migrations write, without their keys; and the names of all tables that have others."""
    queries = {
        "migrations": "SELECT app, name FROM django_migrations",
        "kinds": "SELECT app_label, model FROM django_content_type",
        "permissions": "SELECT app_label, model, codename, p.name FROM auth_permission p "
        "JOIN django_content_type c ON c.id = p.content_type_id",
        "groups": "SELECT name FROM auth_group",
        "permissions of groups": "SELECT g.name, codename FROM auth_group_permissions l "
        "JOIN auth_group g ON g.id = l.group_id JOIN auth_permission p ON p.id = l.permission_id",
    }
    found: dict[str, set[Any]] = {"others": set(kept.filled_tables())}
    with connection.cursor() as cursor:
        for kind, query in queries.items():
            cursor.execute(query)
            found[kind] = set(cursor.fetchall())
    return found
