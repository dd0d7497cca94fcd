"""The audit's chain: entries without names and foreign keys, their seals, and triggers that refuse every change.

Django makes a table of SQLite anew when one of its columns changes, and leaves its triggers out: a later migration that
changes one of these tables makes them again, by `guard`.
"""

import hmac
import json
import re
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.db import migrations, models

import survey.models.audit

TABLES = ("survey_auditentry", "survey_auditseal")
PSEUDONYM = re.compile(r"\br-[0-9a-f]{16}\b")


def actor_of(user_id: int) -> str:
    """As `survey.services.base.auditing` writes it."""
    key, what = settings.HUNCH_IDENTITY_KEY.encode(), b"audit actor\0" + json.dumps(user_id).encode()
    return f"u-{hmac.new(key, what, 'sha256').hexdigest()[:16]}"


def study_in(subject: str, detail: dict[str, Any], slugs: Collection[str]) -> str:
    """The study that an entry from before this migration is about; empty if its words name none."""
    if detail.get("study") in slugs:
        return str(detail["study"])
    named = re.match(r"(?:.* of )?([\w-]+)(?: stage \d+\b.*)?$", subject)
    return named[1] if named and named[1] in slugs else ""


def take_names_out(apps: Any, schema_editor: Any) -> None:
    """Entries from before get pseudonyms in place of users, and their study. Nothing else of them changes."""
    entries, respondents = apps.get_model("survey", "AuditEntry"), apps.get_model("survey", "Respondent")
    slugs = set(apps.get_model("survey", "Study").objects.values_list("slug", flat=True))
    users = apps.get_model(*settings.AUTH_USER_MODEL.split(".")).objects
    keys = dict(users.values_list("username", "pk"))
    changed = []
    for entry in entries.objects.order_by("pk").iterator(1000):
        entry.actor_name = actor_of(entry.actor_id) if entry.actor_id is not None else ""
        entry.study = study_in(entry.subject, entry.detail, slugs)
        if not entry.study and (person := PSEUDONYM.search(entry.subject)):
            entry.study = respondents.objects.filter(pseudonym=person[0]).values_list("study__slug", flat=True).first() or ""
        if entry.action in ("create_token", "revoke_token"):
            entry.subject = f"token {entry.subject.partition('…')[0]}"
            owner = keys.get(entry.detail.get("token_user"))
            entry.detail = {**entry.detail, "token_user": actor_of(owner) if owner is not None else ""}
        changed.append(entry)
        if len(changed) == 1000:
            entries.objects.bulk_update(changed, ["actor_name", "study", "subject", "detail"])
            changed = []
    entries.objects.bulk_update(changed, ["actor_name", "study", "subject", "detail"])


def guards(vendor: str) -> list[str]:
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
            f"CREATE TRIGGER {table}_replace BEFORE INSERT ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key}) {refuse}",  # noqa: S608
        ]
    return made


def unguards(vendor: str) -> list[str]:
    """The statements that drop the triggers."""
    if vendor == "postgresql":
        kinds = ("rows", "truncate")
        return [f"DROP TRIGGER IF EXISTS {table}_{kind} ON {table}" for table in TABLES for kind in kinds]
    kinds = ("update", "delete", "replace")
    return [f"DROP TRIGGER IF EXISTS {table}_{kind}" for table in TABLES for kind in kinds]


def guard(apps: Any, schema_editor: Any) -> None:
    for statement in guards(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


def unguard(apps: Any, schema_editor: Any) -> None:
    for statement in unguards(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("survey", "0019_operation"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="auditentry",
            options={"ordering": ["-id"], "verbose_name_plural": "audit entries"},
        ),
        migrations.AddField(
            model_name="auditentry",
            name="actor_name",
            field=models.CharField(
                blank=True, default="", help_text="The user's audit name; empty for nobody or a worker.", max_length=24
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="auditentry",
            name="study",
            field=models.CharField(
                blank=True, default="", help_text="Short name of the study that it is about.", max_length=80
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="auditentry",
            name="salt",
            field=models.CharField(
                blank=True,
                default="",
                editable=False,
                help_text="Random: from the hash alone, nobody can guess the entry.",
                max_length=32,
            ),
            preserve_default=False,
        ),
        migrations.RunPython(take_names_out, migrations.RunPython.noop),
        migrations.RemoveField(model_name="auditentry", name="actor"),
        migrations.RenameField(model_name="auditentry", old_name="actor_name", new_name="actor"),
        migrations.AlterField(
            model_name="auditentry",
            name="salt",
            field=models.CharField(
                blank=True,
                default=survey.models.audit.new_salt,
                editable=False,
                help_text="Random: from the hash alone, nobody can guess the entry.",
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="via",
            field=models.CharField(default="command", help_text="admin, api, web, command, worker", max_length=20),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["action", "subject"], name="audit_entry_by_action"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["study"], name="audit_entry_by_study"),
        ),
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("entry_id", models.BigIntegerField(unique=True)),
                ("entry_sha256", models.CharField(max_length=64)),
                ("sealed_at", models.DateTimeField()),
                (
                    "sha256",
                    models.CharField(help_text="Of the seal before, and of this one's other columns.", max_length=64),
                ),
            ],
            options={"ordering": ["number"]},
        ),
        migrations.RunPython(guard, unguard),
    ]
