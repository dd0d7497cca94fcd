"""Training and evaluating: plain data to `predictors`, files to the storage, results to rows.

Every result is written through the claim of a job step, in one transaction with its end.
"""

import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from django.db import transaction
from django.utils import timezone

from predictors import training as predictor_training
from survey.instruments import registry
from survey.models import CandidateSet, Evaluation, JobStep, PredictorRun, Stage
from survey.selectors.stages import frozen_answers, training_examples

from . import files


class Claim(Protocol):
    """What `jobs` hands to a runner."""

    step: JobStep

    def heartbeat(self, done: int, total: int, text: str) -> bool: ...

    def lock(self) -> None: ...

    def finish(self, result: dict[str, Any]) -> None: ...


def run_of(stage: Stage) -> PredictorRun:
    return stage.predictor_runs.latest("created_at")


def train_member(held: Claim) -> None:
    """Train one member on every frozen answer up to and with the stage, and keep its files."""
    step = held.step
    stage = step.stage
    run = run_of(stage)
    study = stage.study
    inputs, labels = registry.get(study.instrument).examples(list(training_examples(stage)), study)
    held.heartbeat(0, 0, f"{len(labels)} answers")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "member"
        trained = predictor_training.train_member(
            run.name, run.params, run.seed, step.member, inputs, labels.tolist(), None, folder, held.heartbeat
        )
        stored = files.store_folder(folder)
    with transaction.atomic():
        held.lock()
        run = PredictorRun.objects.select_for_update(no_key=True).get(pk=run.pk)
        run.members = {**run.members, str(step.member): stored}
        run.example_count = trained["n_examples"]
        run.seconds += trained["seconds"]
        if len(run.members) == predictor_training.members_of(run.name, run.params):
            run.ready_at = timezone.now()
        run.save(update_fields=["members", "example_count", "seconds", "ready_at"])
        held.finish(dict(trained))


def evaluate(held: Claim) -> None:
    """How the predictor that planned this stage did on its answers, from the scores stored with the slots."""
    stage = held.step.stage
    study = stage.study
    run = CandidateSet.objects.select_related("predictor_run").get(stage=stage).predictor_run
    answers = [answer for answer in frozen_answers(stage) if answer.slot.score is not None]
    scores = np.asarray([answer.slot.score for answer in answers], dtype=np.float64)
    metrics = registry.get(study.instrument).evaluate(answers, scores, study)
    with transaction.atomic():
        held.lock()
        Evaluation.objects.update_or_create(predictor_run=run, stage=stage, defaults={"metrics": metrics})
        held.finish(metrics)
