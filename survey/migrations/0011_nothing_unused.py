"""What no row ever had goes: two roles of slots, and the metrics of a predictor run (an evaluation has them)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0010_stored_config")]

    operations = [
        migrations.RemoveConstraint(model_name="slot", name="slot_role_known"),
        migrations.RemoveField(model_name="predictorrun", name="metrics"),
        migrations.AlterField(
            model_name="slot",
            name="role",
            field=models.CharField(
                choices=[
                    ("sampled", "sampled"),
                    ("holdout", "holdout"),
                    ("control", "control"),
                    ("repeat", "repeat"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="slot",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["sampled", "holdout", "control", "repeat"])), name="slot_role_known"
            ),
        ),
    ]
