from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


# In SQL: in a database that goes on with the migrations that a squashed one replaces, the key of the question is not
# resolved in the state of this migration.
JUDGED = (
    "request_sha256 <> '' AND question_id IN (SELECT id FROM survey_question WHERE answer <> '')"  # noqa: S608
)


def name_the_first_rules(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """What was judged so far, was judged by the first rules. Imported verdicts have none."""
    schema_editor.execute(f"UPDATE survey_modelanswer SET rules_version = '1' WHERE {JUDGED}")  # noqa: S608
    schema_editor.execute(
        f"UPDATE survey_modelanswer SET unreadable = 1 WHERE {JUDGED} AND reason <> ''"  # noqa: S608
    )


class Migration(migrations.Migration):
    dependencies = [("survey", "0040_withdrawn_times")]

    operations = [
        migrations.AddField(
            model_name="modelanswer",
            name="rules_version",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Of the rules that judged it; empty where its verdict was imported.",
                max_length=20,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="modelanswer",
            name="unreadable",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="How many of the replies state no answer, or two. They count as not right."
            ),
        ),
        migrations.RunPython(name_the_first_rules, migrations.RunPython.noop, elidable=True),
    ]
