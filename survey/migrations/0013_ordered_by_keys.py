"""Rows are listed by keys of their own table: by a relation, every list joined the tables behind it. No table changes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("survey", "0012_further_columns")]

    operations = [
        migrations.AlterModelOptions(
            name="assignment",
            options={"ordering": ["sitting_id", "position"]},
        ),
        migrations.AlterModelOptions(
            name="attentionanswer",
            options={"ordering": ["sitting_id", "at", "id"]},
        ),
        migrations.AlterModelOptions(
            name="booklet",
            options={"ordering": ["stage_id", "number"]},
        ),
        migrations.AlterModelOptions(
            name="checkattempt",
            options={"ordering": ["sitting_id", "attempt"]},
        ),
        migrations.AlterModelOptions(
            name="exclusion",
            options={"ordering": ["stage_id", "sitting_id"]},
        ),
        migrations.AlterModelOptions(
            name="practiceanswer",
            options={"ordering": ["sitting_id", "number"]},
        ),
        migrations.AlterModelOptions(
            name="response",
            options={"ordering": ["assignment_id", "number"]},
        ),
        migrations.AlterModelOptions(
            name="screentiming",
            options={"ordering": ["sitting_id", "step"]},
        ),
        migrations.AlterModelOptions(
            name="sitting",
            options={"ordering": ["stage_id", "started_at"]},
        ),
        migrations.AlterModelOptions(
            name="slot",
            options={"ordering": ["stage_id", "number"]},
        ),
        migrations.AlterModelOptions(
            name="stratum",
            options={"ordering": ["stage_id", "name"], "verbose_name_plural": "strata"},
        ),
        migrations.AlterModelOptions(
            name="unfinishedscreen",
            options={"ordering": ["sitting_id", "step", "number"]},
        ),
    ]
