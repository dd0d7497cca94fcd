import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("survey", "0020_audit_chain")]

    operations = [
        migrations.CreateModel(
            name="StoredEstimate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("state", models.CharField(default="queued", max_length=8)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "asked",
                    models.JSONField(
                        help_text="The divisions (by) and the levels (condition) that somebody asked for."
                    ),
                ),
                ("asked_sha256", models.CharField(max_length=64)),
                (
                    "basis_sha256",
                    models.CharField(blank=True, help_text="Of all that the figures rest on.", max_length=64),
                ),
                (
                    "report",
                    models.TextField(blank=True, help_text="The figures as JSON; empty if there are none now."),
                ),
                ("problem", models.TextField(blank=True, help_text="Why there can be none.")),
                ("computed_at", models.DateTimeField(blank=True, null=True)),
                ("seconds", models.FloatField(default=0, help_text="How long it took.")),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stored_estimates",
                        to="survey.study",
                    ),
                ),
            ],
            options={
                "ordering": ["study", "id"],
                "constraints": [
                    models.UniqueConstraint(fields=["study", "asked_sha256"], name="stored_estimate_once_a_question"),
                    models.CheckConstraint(
                        condition=Q(state__in=["queued", "running", "done"]), name="stored_estimate_state_known"
                    ),
                    models.CheckConstraint(
                        condition=~Q(state="running") | Q(lease_until__isnull=False),
                        name="stored_estimate_running_has_a_lease",
                    ),
                ],
            },
        ),
        migrations.RemoveIndex(model_name="booklet", name="booklet_free_in_stage"),
        migrations.AddIndex(
            model_name="booklet",
            index=models.Index(
                condition=Q(claimed_at__isnull=True), fields=["stage", "kind", "number"], name="booklet_free_in_order"
            ),
        ),
        migrations.AddIndex(
            model_name="sitting",
            index=models.Index(
                condition=Q(booklet__isnull=True, state="live"), fields=["stage"], name="sitting_waiting_in_stage"
            ),
        ),
    ]
