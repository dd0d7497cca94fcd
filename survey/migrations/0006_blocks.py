import secrets

import django.db.models.deletion
from django.db import migrations, models

LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # As services.studies makes codes.


def give_each_study_a_code_for_those_screened_out(apps, schema_editor):
    study, code = apps.get_model("survey", "Study"), apps.get_model("survey", "CompletionCode")
    for one in study.objects.all():
        taken = set(code.objects.filter(study=one).values_list("code", flat=True))
        new = next(iter(taken), "")
        while not new or new in taken:
            new = "".join(secrets.choice(LETTERS) for _ in range(10))
        code.objects.get_or_create(study=one, outcome="screened_out", defaults={"code": new})


class Migration(migrations.Migration):
    dependencies = [("survey", "0005_recruitment")]

    operations = [
        migrations.AddField(
            model_name="checkattempt",
            name="shown",
            field=models.JSONField(
                default=dict, help_text="Check id to the indices of its options in the order shown."
            ),
        ),
        migrations.AddField(
            model_name="formanswer",
            name="version",
            field=models.CharField(default="1", help_text="Of the block's questions.", max_length=40),
        ),
        migrations.AlterField(
            model_name="completioncode",
            name="outcome",
            field=models.CharField(
                choices=[
                    ("completed", "completed"),
                    ("no_consent", "no consent"),
                    ("failed_checks", "failed checks"),
                    ("study_full", "study full"),
                    ("screened_out", "screened out"),
                ],
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="sitting",
            name="state",
            field=models.CharField(
                choices=[
                    ("live", "live"),
                    ("complete", "complete"),
                    ("expired", "expired"),
                    ("failed_checks", "failed checks"),
                    ("turned_away", "turned away (stage full)"),
                    ("screened_out", "screened out"),
                ],
                default="live",
                max_length=14,
            ),
        ),
        migrations.RemoveConstraint(model_name="sitting", name="sitting_state_known"),
        migrations.AddConstraint(
            model_name="sitting",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["live", "complete", "expired", "failed_checks", "turned_away", "screened_out"])
                ),
                name="sitting_state_known",
            ),
        ),
        migrations.CreateModel(
            name="AttentionAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(help_text="The check's name in the study file.", max_length=40)),
                (
                    "position",
                    models.PositiveSmallIntegerField(help_text="How many items the person had answered before."),
                ),
                (
                    "answer",
                    models.PositiveSmallIntegerField(help_text="The chosen option's index in the study file, from 0."),
                ),
                ("shown", models.JSONField(help_text="Indices of the options in the order shown.")),
                ("passed", models.BooleanField()),
                ("at", models.DateTimeField()),
                (
                    "sitting",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attention_answers",
                        to="survey.sitting",
                    ),
                ),
            ],
            options={
                "ordering": ["sitting", "at", "id"],
                "constraints": [
                    models.UniqueConstraint(fields=("sitting", "name"), name="attention_answer_once_a_check")
                ],
            },
        ),
        migrations.CreateModel(
            name="QuestionReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "screen",
                    models.CharField(help_text="The item's screen that it was sent from.", max_length=40),
                ),
                ("text", models.CharField(max_length=500)),
                ("at", models.DateTimeField()),
                (
                    "assignment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="question_reports",
                        to="survey.assignment",
                    ),
                ),
                (
                    "sitting",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="question_reports",
                        to="survey.sitting",
                    ),
                ),
            ],
            options={
                "ordering": ["-at", "-id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("assignment", "screen", "text"), name="question_report_once_in_these_words"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("text", ""), _negated=True), name="question_report_has_words"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DataChoice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("may_use", models.BooleanField()),
                ("at", models.DateTimeField()),
                (
                    "sitting",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="data_choice",
                        to="survey.sitting",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PracticeAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField(help_text="1, 2, ... inside the sitting.")),
                ("screen", models.CharField(max_length=40)),
                ("data", models.JSONField(help_text="The fields that were accepted, by name.")),
                ("at", models.DateTimeField()),
                (
                    "sitting",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="practice_answers",
                        to="survey.sitting",
                    ),
                ),
            ],
            options={
                "ordering": ["sitting", "number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("sitting", "number"), name="practice_answer_number_unique_in_sitting"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1)), name="practice_answer_number_at_least_1"
                    ),
                ],
            },
        ),
        # Last: PostgreSQL alters no table of which rows still wait for their check.
        migrations.RunPython(give_each_study_a_code_for_those_screened_out, migrations.RunPython.noop),
    ]
