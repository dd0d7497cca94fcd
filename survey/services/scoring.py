"""Scoring what the next stage may draw from, on the ml worker, with the predictor that was just trained."""

from django.db import transaction

from predictors import training as predictor_training
from survey.instruments import registry
from survey.models import Stage

from . import files
from .locks import locked_stage
from .planning import draw_candidates, drawable_questions, question_set_digest, store_candidates
from .training import Claim, run_of


def score_candidates(held: Claim) -> None:
    """Draw the next stage's candidate set and score it with the new predictor."""
    stage = held.step.stage
    following = stage.following()
    if following is None:
        held.finish({})
        return
    run = run_of(stage)
    questions_sha256 = question_set_digest(stage.study)
    questions = drawable_questions(following)
    candidates = draw_candidates(following, questions)
    inputs = registry.get(stage.study.instrument).predictor_inputs(rows=candidates.rows, questions=questions)
    folders = [files.folder_of(run.members[number]) for number in sorted(run.members, key=int)]
    scores = predictor_training.score(folders, inputs, held.heartbeat)
    with transaction.atomic():
        held.lock()
        # Looked at again: scoring takes long, and a uniform stage may have been planned by hand meanwhile.
        following = locked_stage(following.pk)
        if following.state == Stage.State.DRAFT:
            stored = store_candidates(
                following, candidates, questions_sha256=questions_sha256, scores=scores, predictor_run=run
            )
            held.finish({"scored": len(scores), "file_sha256": stored.file_sha256})
        else:
            held.finish({"scored": 0})
