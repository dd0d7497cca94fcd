import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0008_conditions"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="ScreenTiming",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("step", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=20)),
                (
                    "name",
                    models.CharField(
                        blank=True, help_text="The block's name in the study file, or the screen's.", max_length=60
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                (
                    "server_ms",
                    models.PositiveBigIntegerField(help_text="Since the sitting's previous accepted POST."),
                ),
                (
                    "client",
                    models.JSONField(blank=True, default=dict, help_text="What the browser measured, as it sent it."),
                ),
                (
                    "sitting",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="screen_timings",
                        to="survey.sitting",
                    ),
                ),
            ],
            options={
                "ordering": ["sitting", "step"],
                "constraints": [
                    models.UniqueConstraint(fields=("sitting", "step"), name="screen_timing_once_a_step"),
                ],
            },
        ),
        migrations.CreateModel(
            name="UnfinishedScreen",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("step", models.PositiveIntegerField()),
                (
                    "number",
                    models.PositiveSmallIntegerField(help_text="1, 2, ... for each time that the step was left."),
                ),
                ("kind", models.CharField(max_length=20)),
                ("name", models.CharField(blank=True, max_length=60)),
                ("left_at", models.DateTimeField(help_text="When the browser's word came.")),
                (
                    "client",
                    models.JSONField(blank=True, default=dict, help_text="What the browser measured, as it sent it."),
                ),
                (
                    "sitting",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="unfinished_screens",
                        to="survey.sitting",
                    ),
                ),
            ],
            options={
                "ordering": ["sitting", "step", "number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("sitting", "step", "number"), name="unfinished_screen_number_once_a_step"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1), ("number__lte", 5)),
                        name="unfinished_screens_a_step_limited",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Exclusion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("flags", models.JSONField(help_text="The flags that it had and that leave answers out.")),
                ("decided_at", models.DateTimeField()),
                (
                    "sitting",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="exclusion", to="survey.sitting"
                    ),
                ),
                (
                    "stage",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="exclusions", to="survey.stage"
                    ),
                ),
            ],
            options={"ordering": ["stage", "sitting"]},
        ),
        migrations.CreateModel(
            name="EntryLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "number",
                    models.PositiveIntegerField(help_text="As in the file that the links were written into."),
                ),
                ("token_hash", models.CharField(editable=False, max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "used_at",
                    models.DateTimeField(blank=True, help_text="When somebody consented who came by it.", null=True),
                ),
                (
                    "created_by",
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entry_links",
                        to="survey.study",
                    ),
                ),
            ],
            options={
                "ordering": ["study", "number"],
                "permissions": [("make_links", "Can make entry links")],
                "constraints": [
                    models.UniqueConstraint(fields=("study", "number"), name="entry_link_number_once_a_study"),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1)), name="entry_link_number_at_least_1"
                    ),
                ],
            },
        ),
    ]
