"""Triggers that refuse every change of the audit, in the database itself. Imports nothing.

The initial migration names `create` and `drop`, so they stay where they are. When a column changes, Django copies a
table of SQLite and leaves out its triggers: a migration that changes one of these tables runs `create` afterwards.
"""

from typing import Any

TABLES = ("survey_auditentry", "survey_auditseal")


def statements_to_create(vendor: str) -> list[str]:
    """The statements that make the triggers. The name of each begins with its table's."""
    made = []
    if vendor == "postgresql":
        made.append(
            "CREATE OR REPLACE FUNCTION survey_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'The audit is appended to and never changed: % of % is refused.', TG_OP, TG_TABLE_NAME; "
            "END $$"
        )
    for table in TABLES:
        if vendor == "postgresql":
            made += [
                f"CREATE TRIGGER {table}_rows BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW "
                "EXECUTE FUNCTION survey_audit_refuse()",
                f"CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT "
                "EXECUTE FUNCTION survey_audit_refuse()",
            ]
            continue
        refuse = f"BEGIN SELECT RAISE(ABORT, 'The audit is appended to and never changed: {table}.'); END"
        key = "id" if table == "survey_auditentry" else "number"
        made += [
            f"CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} {refuse}",
            f"CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} {refuse}",
            # INSERT OR REPLACE deletes a row without the trigger for deletions.
            f"CREATE TRIGGER {table}_replace BEFORE INSERT ON {table} "  # noqa: S608
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key}) {refuse}",
        ]
    return made


def statements_to_drop(vendor: str) -> list[str]:
    """The statements that drop the triggers."""
    is_postgresql = vendor == "postgresql"
    names = ("rows", "truncate") if is_postgresql else ("update", "delete", "replace")
    return [
        f"DROP TRIGGER IF EXISTS {table}_{name}{f' ON {table}' if is_postgresql else ''}"
        for table in TABLES
        for name in names
    ]


def create(apps: Any, schema_editor: Any) -> None:
    for statement in statements_to_create(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


def drop(apps: Any, schema_editor: Any) -> None:
    for statement in statements_to_drop(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)
