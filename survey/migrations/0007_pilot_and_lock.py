import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Withdrawals, the lock of a study's file and its amendments."""

    dependencies = [
        ("survey", "0006_blocks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Amendment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("via", models.CharField(default="command", help_text="admin, command", max_length=20)),
                ("reason", models.CharField(max_length=1000)),
                ("was_locked", models.BooleanField(help_text="Whether the first main stage had been opened by then.")),
                ("old_sha256", models.CharField(max_length=64)),
                ("new_sha256", models.CharField(max_length=64)),
                (
                    "changes",
                    models.JSONField(
                        default=list, help_text="Key, old value and new value of everything that changed."
                    ),
                ),
                ("old_text", models.TextField(help_text="The study file as it was before.")),
                (
                    "old_config",
                    models.JSONField(help_text="The same, checked: sittings that had begun with it go on with it."),
                ),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="amendments", to="survey.study"
                    ),
                ),
            ],
            options={
                "ordering": ["study", "id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="amendment_has_a_reason"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("old_sha256", models.F("new_sha256")), _negated=True),
                        name="amendment_changes_the_file",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Withdrawal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                (
                    "reason",
                    models.CharField(
                        blank=True, help_text="How we came to know: the debriefing, a letter.", max_length=300
                    ),
                ),
                ("answers", models.PositiveIntegerField(help_text="Items that had been answered to their end.")),
                (
                    "stages",
                    models.JSONField(
                        default=list, help_text="For each stage: its number, its answers, whether it was frozen."
                    ),
                ),
                (
                    "removed",
                    models.JSONField(default=dict, help_text="Table to the number of its rows that were deleted."),
                ),
                (
                    "points",
                    models.DecimalField(
                        decimal_places=4,
                        default=0,
                        help_text="What the scores had come to: a bonus stays owed.",
                        max_digits=12,
                    ),
                ),
                (
                    "predictor_runs",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Trained with the answers before they went.",
                        related_name="withdrawals",
                        to="survey.predictorrun",
                    ),
                ),
                (
                    "respondent",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="withdrawal", to="survey.respondent"
                    ),
                ),
            ],
            options={
                "ordering": ["-at", "-id"],
                "permissions": [("withdraw_people", "Can delete a person's answers at their wish")],
            },
        ),
        migrations.AlterModelOptions(
            name="study",
            options={
                "ordering": ["-created_at", "slug"],
                "permissions": [
                    ("run_study", "Can open, pause, close and retry stages"),
                    ("export_study", "Can export answers"),
                    ("amend_study", "Can change a study's file"),
                ],
                "verbose_name_plural": "studies",
            },
        ),
        migrations.RemoveConstraint(
            model_name="assignment",
            name="assignment_state_known",
        ),
        migrations.RemoveConstraint(
            model_name="assignment",
            name="assignment_open_is_incomplete",
        ),
        migrations.AddField(
            model_name="sitting",
            name="study_sha256",
            field=models.CharField(blank=True, help_text="Of the study file in force when it began.", max_length=64),
        ),
        migrations.AddField(
            model_name="sitting",
            name="withdrawn_at",
            field=models.DateTimeField(blank=True, help_text="When its person took all of it back.", null=True),
        ),
        migrations.AddField(
            model_name="study",
            name="locked_at",
            field=models.DateTimeField(blank=True, help_text="When its first main stage was opened.", null=True),
        ),
        migrations.AddField(
            model_name="study",
            name="locked_sha256",
            field=models.CharField(blank=True, help_text="Of the study file in force at that time.", max_length=64),
        ),
        migrations.AlterField(
            model_name="assignment",
            name="state",
            field=models.CharField(
                choices=[
                    ("live", "live"),
                    ("counted", "complete in time"),
                    ("released", "released unanswered"),
                    ("late", "late"),
                    ("withdrawn", "taken back by the person"),
                ],
                default="live",
                max_length=9,
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["live", "counted", "released", "late", "withdrawn"])),
                name="assignment_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state__in", ["live", "released", "withdrawn"]), _negated=True),
                    ("completed_at__isnull", True),
                    _connector="OR",
                ),
                name="assignment_open_is_incomplete",
            ),
        ),
        migrations.AddConstraint(
            model_name="sitting",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("withdrawn_at__isnull", True), models.Q(("state", "live"), _negated=True), _connector="OR"
                ),
                name="sitting_withdrawn_is_not_live",
            ),
        ),
        migrations.AddConstraint(
            model_name="study",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("locked_at__isnull", True), ("locked_sha256", "")),
                    models.Q(("locked_at__isnull", False), models.Q(("locked_sha256", ""), _negated=True)),
                    _connector="OR",
                ),
                name="study_locked_with_a_hash",
            ),
        ),
    ]
