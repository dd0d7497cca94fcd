import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Levels of factors that are drawn for each item; who flagged a question, and when."""

    dependencies = [("survey", "0007_pilot_and_lock"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="AssignmentCondition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("factor", models.CharField(max_length=40)),
                ("level", models.CharField(max_length=60)),
                ("probability", models.FloatField()),
                ("seed", models.BigIntegerField()),
                (
                    "assignment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="conditions",
                        to="survey.assignment",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("assignment", "factor"), name="item_condition_one_level_a_factor"),
                    models.CheckConstraint(
                        condition=models.Q(("probability__gt", 0), ("probability__lte", 1)),
                        name="item_condition_probability_in_0_1",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="question",
            name="flagged_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="question",
            name="flagged_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.CheckConstraint(
                condition=models.Q(("flag__in", ["", "sensitive", "broken", "excluded"])), name="question_flag_known"
            ),
        ),
    ]
