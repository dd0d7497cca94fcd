"""Roles beside the sampled slots, and candidate sets of all items there are."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def keep_plans_as_they_were(apps: Any, schema_editor: Any) -> None:
    """A study that was set up before there were roles has none: its stages must not change while it runs."""
    study_model = apps.get_model("survey", "Study")
    for study in study_model.objects.all():
        study.config.setdefault("roles", {"holdout": 0, "controls": 0})
        study.save(update_fields=["config"])


class Migration(migrations.Migration):
    dependencies = [("survey", "0001_initial")]

    operations = [
        migrations.RunPython(keep_plans_as_they_were, migrations.RunPython.noop),
        migrations.AddField(
            model_name="candidateset",
            name="excluded",
            field=models.PositiveBigIntegerField(
                default=0, help_text="Items that may not be drawn: those planned before."
            ),
        ),
        migrations.AddField(
            model_name="candidateset",
            name="shortlist_sha256",
            field=models.CharField(blank=True, max_length=64, default=""),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="candidateset",
            name="drawn_sha256",
            field=models.CharField(blank=True, max_length=64, default=""),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="candidateset",
            name="fidelity",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="How well the pair scorer ranks fresh pairs as the predictor does.",
            ),
        ),
        migrations.AlterField(
            model_name="candidateset", name="file_sha256", field=models.CharField(blank=True, max_length=64)
        ),
        migrations.AlterField(
            model_name="stratum",
            name="slots",
            field=models.PositiveIntegerField(
                help_text="Candidates drawn from it; each has as many slots as replicates."
            ),
        ),
        migrations.AddField(
            model_name="slot",
            name="control_kind",
            field=models.CharField(
                blank=True,
                default="",
                help_text="What a control slot asks, by the instrument's name for it.",
                max_length=24,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="slot",
            name="repeat_of",
            field=models.ForeignKey(
                blank=True,
                help_text="The slot of the same booklet that a repeat asks again.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="repeats",
                to="survey.slot",
            ),
        ),
        migrations.RemoveConstraint(model_name="slot", name="slot_item_once_a_replicate"),
        migrations.AddConstraint(
            model_name="slot",
            constraint=models.UniqueConstraint(
                condition=models.Q(("role", "repeat"), _negated=True),
                fields=("stage", "role", "item", "replicate"),
                name="slot_item_once_a_replicate",
            ),
        ),
        migrations.AddConstraint(
            model_name="slot",
            constraint=models.UniqueConstraint(fields=("repeat_of",), name="slot_repeated_at_most_once"),
        ),
        migrations.AddConstraint(
            model_name="slot",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("role", "control"), models.Q(("control_kind", ""), _negated=True)),
                    models.Q(models.Q(("role", "control"), _negated=True), ("control_kind", "")),
                    _connector="OR",
                ),
                name="slot_control_has_a_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="slot",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("repeat_of__isnull", False), ("role", "repeat")),
                    models.Q(models.Q(("role", "repeat"), _negated=True), ("repeat_of__isnull", True)),
                    _connector="OR",
                ),
                name="slot_repeat_names_its_slot",
            ),
        ),
    ]
