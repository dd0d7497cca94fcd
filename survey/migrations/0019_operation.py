from django.db import migrations, models


def lock_studies_that_were_opened_before(apps, schema_editor):
    """A study whose first main stage was opened before studies were locked: lock it as of that time."""
    study, amendment = apps.get_model("survey", "Study"), apps.get_model("survey", "Amendment")
    stage = apps.get_model("survey", "Stage")
    for one in study.objects.filter(locked_at=None):
        pilots = sum(bool(part.get("pilot")) for part in one.stored_config.get("stages", []))
        first = stage.objects.filter(study=one, index=pilots + 1, opened_at__isnull=False).first()
        if first is None:
            continue
        # The file in force at that time: the one that the first later change replaced.
        later = amendment.objects.filter(study=one, at__gt=first.opened_at).order_by("pk").first()
        one.locked_at = first.opened_at
        one.locked_sha256 = later.old_sha256 if later else one.source_sha256
        one.save(update_fields=["locked_at", "locked_sha256"])


class Migration(migrations.Migration):
    """What the operation must remember: fingerprints of the keys, erasures, restores. And the lock of older studies."""

    dependencies = [
        ("survey", "0018_alerts"),
    ]

    operations = [
        migrations.RunPython(lock_studies_that_were_opened_before, migrations.RunPython.noop),
        migrations.CreateModel(
            name="KeyFingerprint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        help_text="The setting: HUNCH_IDENTITY_KEY or SECRET_KEY.", max_length=40, unique=True
                    ),
                ),
                ("fingerprint", models.CharField(max_length=64)),
                ("since", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Restore",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("backup_at", models.DateTimeField(help_text="When the backup was made.")),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public_id", models.UUIDField(editable=False, unique=True)),
                (
                    "what",
                    models.CharField(
                        choices=[
                            ("answers", "all that a person gave"),
                            ("ids", "the panel's ids"),
                            ("hashes", "the panel's ids and the hashes that bar a second participation"),
                        ],
                        max_length=8,
                    ),
                ),
                ("refs", models.JSONField(help_text="Whose: keyed hashes of pseudonyms and submissions.")),
                ("at", models.DateTimeField()),
                (
                    "listed_at",
                    models.DateTimeField(blank=True, help_text="When it was written to the file.", null=True),
                ),
            ],
            options={
                "ordering": ["id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("listed_at__isnull", True)), fields=["id"], name="erasure_to_be_listed"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("what__in", ["answers", "ids", "hashes"])), name="erasure_what_known"
                    )
                ],
            },
        ),
    ]
