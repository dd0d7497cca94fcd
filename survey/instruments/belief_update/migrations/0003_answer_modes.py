import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("belief_update", "0002_real_evidence"),
    ]

    operations = [
        migrations.CreateModel(
            name="Explanation",
            fields=[
                (
                    "response",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="explanation",
                        serialize=False,
                        to="survey.response",
                    ),
                ),
                ("text", models.TextField(blank=True)),
            ],
        ),
        migrations.CreateModel(
            name="TargetAnswer",
            fields=[
                (
                    "response",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="target_answer",
                        serialize=False,
                        to="survey.response",
                    ),
                ),
                ("text", models.TextField(help_text="The letter of an option, or what was written.")),
                ("correct", models.BooleanField()),
                (
                    "confidence",
                    models.PositiveSmallIntegerField(
                        blank=True, help_text="How sure the person was to be right, in percentage points.", null=True
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("text", ""), _negated=True), name="target_answer_not_empty"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("confidence__isnull", True), ("confidence__lte", 100), _connector="OR"),
                        name="target_answer_confidence_at_most_100",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="belief",
            name="direction",
            field=models.CharField(
                blank=True,
                choices=[("", "not asked"), ("lower", "lower"), ("same", "the same"), ("higher", "higher")],
                max_length=6,
            ),
        ),
        migrations.AddField(
            model_name="belief",
            name="entered_by",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "unknown"),
                    ("typed", "typed into the field"),
                    ("track", "on the track, by pointer"),
                    ("track_keys", "on the track, by keyboard"),
                    ("button", "kept by a button"),
                    ("prefilled", "left as it was filled in"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="belief",
            name="first_value",
            field=models.PositiveSmallIntegerField(blank=True, help_text="The first number that was set.", null=True),
        ),
        migrations.AddField(
            model_name="belief",
            name="value_changes",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="How often the number was set to another value, the first time included.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="belief",
            name="variant",
            field=models.CharField(blank=True, help_text="In which form the screen was shown.", max_length=200),
        ),
        migrations.AddConstraint(
            model_name="belief",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("direction", ""),
                    models.Q(("direction__in", ["lower", "same", "higher"]), ("kind", "posterior")),
                    _connector="OR",
                ),
                name="belief_direction_of_a_posterior",
            ),
        ),
        migrations.AddConstraint(
            model_name="belief",
            constraint=models.CheckConstraint(
                condition=models.Q(("entered_by__in", ["", "typed", "track", "track_keys", "button", "prefilled"])),
                name="belief_entry_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="belief",
            constraint=models.CheckConstraint(
                condition=models.Q(("first_value__isnull", True), ("first_value__lte", 100), _connector="OR"),
                name="belief_first_value_at_most_100",
            ),
        ),
    ]
