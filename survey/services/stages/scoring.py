"""Scoring what the next stage may draw from: by the predictor that was just trained, by the instrument's priority, or
by both."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from django.db import transaction

from bandit.designs import Design, EpsilonGreedy, Uniform
from bandit.errors import DesignError
from survey.contracts import instruments
from survey.exceptions import PlanRefused
from survey.models import Question, Stage
from survey.services.answers.counting import training_examples
from survey.services.base.locks import locked_stage
from survey.services.base.seeds import generator
from survey.services.plans.candidates import (
    RANK,
    SCORE,
    Everything,
    draw_candidates,
    draw_slots,
    drawable_questions,
    question_set_digest,
    store_candidates,
    store_everything,
    with_column,
)
from survey.services.plans.drafting import slots_by_role, stage_recipe
from survey.services.plans.planning import everything_of

from .claims import Claim
from .runs import needs_predictor, ready_run
from .scoring_parts import RowScorer, SharedScoring
from .training import folders_of, run_of

UNIFORM = 5000  # candidates that are scored for reports where all items are candidates


def score_candidates(held: Claim) -> None:
    """Draw the next stage's candidate set and score it with the new predictor, if there is one. If the stage draws by
    the instrument's priority, the priority is stored next to the predictor's chances."""
    stage = held.step.stage
    following = stage.following()
    if following is None:
        held.finish({})
        return
    run = run_of(stage) if needs_predictor(following) else ready_run(stage)
    questions_sha256 = question_set_digest(stage.study)
    questions = drawable_questions(following)
    scoring = None
    if run is not None:
        scorer = RowScorer(run, folders_of(run), questions, instruments.of_study(following.study))
        scoring = SharedScoring(held, scorer, questions_sha256)
    if stage.study.config.candidates.kind == "exhaustive" and scoring is not None:
        contents, result = _score_all(held, following, questions, scoring)
    else:
        contents, result = _score_pool(held, following, questions, scoring)
    store = store_everything if isinstance(contents["candidates"], Everything) else store_candidates
    with transaction.atomic():
        held.lock()
        held.step.parts.all().delete()
        # Check again: scoring takes long, and somebody may have planned a uniform stage by hand meanwhile.
        following = locked_stage(following.pk)
        if following.state == Stage.State.DRAFT:
            stored = store(
                following,
                contents.pop("candidates"),
                questions_sha256=questions_sha256,
                predictor_run=run,
                **contents,
            )
            held.finish({**result, "file_sha256": stored.file_sha256})
        else:
            held.finish({"scored": 0})


def _score_pool(
    held: Claim, following: Stage, questions: Sequence[Question], scoring: SharedScoring | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A uniform pool with its scores and, if the design needs it, how far the members disagree."""
    candidates = draw_candidates(following, questions)
    instrument = instruments.of_study(following.study)
    design = following.config.design.build()
    contents: dict[str, Any] = {"candidates": candidates}
    result: dict[str, Any] = {"scored": len(candidates.rows)}
    if scoring is not None:
        contents |= _chances(candidates.rows, scoring, design)
    if instrument.priority is not None and not isinstance(design, Uniform):
        chances = contents.get("scores")
        further = instrument.priority.further_rows(candidates.rows)
        if scoring is not None and chances is not None and len(further):
            chances = np.concatenate([chances, scoring.of(further)])
        contents["priority"] = _priority(held, following, candidates.rows, questions, chances, instrument)
        result["priority"] = instrument.priority.facts()
    return contents, result


def _chances(rows: np.ndarray, scoring: SharedScoring, design: Design) -> dict[str, Any]:
    if design.needs_disagreement:
        members = np.stack([scoring.of(rows, member=member) for member in range(len(scoring.scorer.folders))])
        return {"scores": members.mean(axis=0), "disagreement": members.std(axis=0)}
    return {"scores": scoring.of(rows), "disagreement": None}


def _priority(
    held: Claim,
    following: Stage,
    rows: np.ndarray,
    questions: Sequence[Question],
    chances: np.ndarray | None,
    instrument: instruments.Instrument,
) -> np.ndarray:
    """The instrument's priority of each candidate, float64 (M,). `chances`: as `Priority.of` takes them.

    Raises:
        PlanRefused: it is not one finite number for each.
    """
    priority = instrument.priority
    if priority is None:
        raise LookupError(f"{instrument.name} has no priority")
    stage = held.step.stage
    run = ready_run(stage)
    held.heartbeat(0, 0, f"the priority {priority.name}")
    with held.kept_alive():
        # Leave out what was held out when the predictor was trained; without one, what all plans so far hold out.
        answers = training_examples(stage, held_out_through=None if run is None else run.held_out_through)
        priorities = np.asarray(
            priority.of(
                rows=rows,
                questions=questions,
                chances=None if chances is None else np.asarray(chances, dtype=np.float64),
                answers=answers,
                rng=generator(following.seed, "priority"),
            ),
            dtype=np.float64,
        )
    # Stored as float32, in which a large number becomes infinite.
    fit = np.abs(priorities) <= np.finfo(np.float32).max
    if priorities.shape != (len(rows),) or not fit.all():
        raise PlanRefused(
            f"stage {following.index} cannot be planned: the priority {priority.name} of {instrument.name} gives "
            f"shape {priorities.shape} with {int(np.count_nonzero(~fit))} numbers that are not finite in 32 bits, and "
            f"{len(rows)} candidates need one number each"
        )
    return priorities


def _score_all(
    held: Claim, following: Stage, questions: Sequence[Question], scoring: SharedScoring
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Score all items by a fast scorer that learns from the predictor; the predictor itself scores the drawn ones.

    A uniform stage needs no fast scorer: only the drawn items are scored, so that the predictor can be evaluated.
    """
    instrument = instruments.of_study(following.study)
    config = following.study.config
    everything = everything_of(following, questions)
    recipe = stage_recipe(following)
    design = recipe.design.build()
    fidelity: dict[str, Any] = {}
    if not isinstance(design, Uniform):
        scores, fidelity = _scores_of_all(held, following, questions, scoring)
        everything = replace(everything, scores=scores)
        if config.candidates.shortlist and isinstance(design, EpsilonGreedy):
            everything = replace(everything, shortlist=_shortlist(held, following, questions, scoring, scores))
    try:
        drawn = draw_slots(
            everything,
            design=design,
            n=slots_by_role(recipe).sampled.items,
            seed=recipe.seed,
            instrument=instrument,
            questions=questions,
            responses_per_item=recipe.responses,
            progress=held.reporting(f"drawing from {everything.universe_size} items"),
        )
    except DesignError as exc:
        raise PlanRefused(f"stage {following.index} cannot be planned: {exc}") from exc
    rows = np.unique(drawn.rows)  # Each item appears as often as it is answered.
    drawn_rows = with_column(rows, SCORE, scoring.of(rows))
    uniform = _uniform_rows(following, questions, scoring.of)
    contents = {"candidates": everything, "drawn": drawn_rows, "uniform": uniform, "fidelity": fidelity}
    return contents, {"scored": everything.universe_size - everything.excluded, "fidelity": fidelity}


def _uniform_rows(
    following: Stage, questions: Sequence[Question], score: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Uniform candidates with the predictor's own scores: what reports say of all items rests on them."""
    instrument = instruments.of_study(following.study)
    size = min(UNIFORM, instrument.universe_size(questions))
    rows = instrument.draw_candidates(questions=questions, size=size, rng=generator(following.seed, "uniform")).rows
    return with_column(rows, SCORE, score(rows))


def _scores_of_all(
    held: Claim, following: Stage, questions: Sequence[Question], scoring: SharedScoring
) -> tuple[np.ndarray, dict[str, Any]]:
    """Scores of all items by a fast scorer, and how well they rank fresh items compared with the predictor."""
    candidates = following.study.config.candidates
    return instruments.pairing_of(instruments.of_study(following.study)).score_all(
        folders=scoring.scorer.folders,
        score=scoring.of,
        questions=questions,
        n_scored=candidates.scored_pairs,
        rank=candidates.rank,
        rng=generator(following.seed, "distil"),
        fidelity_rng=generator(following.seed, "fidelity"),
        progress=held.heartbeat,
    )


def _shortlist(
    held: Claim, following: Stage, questions: Sequence[Question], scoring: SharedScoring, scores: np.ndarray
) -> np.ndarray:
    """The best items by these scores, with the predictor's own scores of them."""
    pairing = instruments.pairing_of(instruments.of_study(following.study))
    size = following.study.config.candidates.shortlist
    rng, progress = generator(following.seed, "shortlist"), held.reporting("choosing the shortlist")
    ranks = pairing.shortlist(scores, size=size, rng=rng, progress=progress)
    shortlist = np.empty(len(ranks), dtype=[(RANK, "<i8"), (SCORE, "<f4")])
    shortlist[RANK], shortlist[SCORE] = ranks, scoring.of(pairing.rows_at(ranks, questions))
    return shortlist
