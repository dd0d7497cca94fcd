"""Only a name: the column keeps its own, and `config` is the checked study file from here on."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0009_timing_and_links")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField(model_name="study", old_name="config", new_name="stored_config"),
                migrations.AlterField(
                    model_name="study",
                    name="stored_config",
                    field=models.JSONField(
                        db_column="config", help_text="The study file, checked, with its defaults filled in."
                    ),
                ),
            ]
        )
    ]
