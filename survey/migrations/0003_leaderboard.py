"""Several predictors a stage: a run's role, the run that a training step trains, figures by weighting."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def name_the_runs(apps: Any, schema_editor: Any) -> None:
    """Until now a stage trained one predictor."""
    steps = apps.get_model("survey", "JobStep").objects.filter(kind="train", predictor_run=None)
    for run in apps.get_model("survey", "PredictorRun").objects.order_by("created_at"):
        steps.filter(stage_id=run.stage_id).update(predictor_run=run)


def nest_figures(apps: Any, schema_editor: Any) -> None:
    """Until now the figures were those of the answers as they came."""
    for evaluation in apps.get_model("survey", "Evaluation").objects.exclude(metrics={}):
        evaluation.metrics = {"naive": evaluation.metrics}
        evaluation.save(update_fields=["metrics"])


def flatten_figures(apps: Any, schema_editor: Any) -> None:
    for evaluation in apps.get_model("survey", "Evaluation").objects.all():
        evaluation.metrics = evaluation.metrics.get("naive", {})
        evaluation.save(update_fields=["metrics"])


class Migration(migrations.Migration):
    dependencies = [("survey", "0002_designs_and_roles")]

    operations = [
        migrations.AddField(
            model_name="predictorrun",
            name="role",
            field=models.CharField(
                choices=[("main", "main"), ("compared", "compared"), ("baseline", "baseline")],
                default="main",
                help_text="Only the main one plans a stage.",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="predictorrun",
            name="kept_back_through",
            field=models.PositiveSmallIntegerField(
                default=0,
                help_text="The pairs that the plans of the stages up to this one hold out were kept from it.",
            ),
        ),
        migrations.AddConstraint(
            model_name="predictorrun",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["main", "compared", "baseline"])), name="predictor_run_role_known"
            ),
        ),
        migrations.AddField(
            model_name="jobstep",
            name="predictor_run",
            field=models.ForeignKey(
                blank=True,
                help_text="What a training step trains.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="job_steps",
                to="survey.predictorrun",
            ),
        ),
        migrations.RunPython(name_the_runs, migrations.RunPython.noop),
        migrations.RunPython(nest_figures, flatten_figures),
    ]
