"""Scoring what the next stage may draw from, on the ml worker: by the predictor that was just trained, by the
instrument's priority, or by both."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction

import bandit
from bandit.designs import Design, EpsilonGreedy, Uncertainty, Uniform
from bandit.errors import DesignError
from bandit.factored import FactoredScores
from predictors import training as predictor_training
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

from .runs import needs_predictor, ready_run
from .training import Claim, folders_of, run_of


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
    folders = folders_of(run) if run is not None else []
    score = _score_all if stage.study.config.candidates.kind == "exhaustive" else _score_pool
    found, result = score(held, following, questions, folders)
    store = store_everything if isinstance(found["candidates"], Everything) else store_candidates
    with transaction.atomic():
        held.lock()
        # Check again: scoring takes long, and somebody may have planned a uniform stage by hand meanwhile.
        following = locked_stage(following.pk)
        if following.state == Stage.State.DRAFT:
            stored = store(
                following,
                found.pop("candidates"),
                questions_sha256=questions_sha256,
                predictor_run=run,
                **found,
            )
            held.finish({**result, "file_sha256": stored.file_sha256})
        else:
            held.finish({"scored": 0})


def _score_pool(
    held: Claim, following: Stage, questions: Sequence[Question], folders: Sequence[Path]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A uniform pool with its scores and, if the design needs it, how far the members disagree."""
    candidates = draw_candidates(following, questions)
    instrument = instruments.of_study(following.study)
    design = following.config.design.build()
    found: dict[str, Any] = {"candidates": candidates}
    result: dict[str, Any] = {"scored": len(candidates.rows)}
    if folders:
        found |= _chances(held, candidates.rows, questions, folders, design, instrument)
    if instrument.priority is not None and not isinstance(design, Uniform):
        found["priority"] = _priority(held, following, candidates.rows, questions, found.get("scores"), instrument)
        result["priority"] = instrument.priority.facts()
    return found, result


def _chances(
    held: Claim,
    rows: np.ndarray,
    questions: Sequence[Question],
    folders: Sequence[Path],
    design: Design,
    instrument: instruments.Instrument,
) -> dict[str, Any]:
    inputs = instruments.learning_of(instrument).inputs(rows=rows, questions=questions)
    if isinstance(design, Uncertainty) and design.by == "disagreement":
        members = np.stack([predictor_training.score([folder], inputs, held.heartbeat) for folder in folders])
        scores, disagreement = members.mean(axis=0), members.std(axis=0)
    else:
        scores, disagreement = predictor_training.score(folders, inputs, held.heartbeat), None
    return {"scores": scores, "disagreement": disagreement}


def _priority(
    held: Claim,
    following: Stage,
    rows: np.ndarray,
    questions: Sequence[Question],
    chances: np.ndarray | None,
    instrument: instruments.Instrument,
) -> np.ndarray:
    """The instrument's priority of each candidate, float64 (M,).

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
        answers = training_examples(stage, kept_back_through=None if run is None else run.kept_back_through)
        found = np.asarray(
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
    fit = np.abs(found) <= np.finfo(np.float32).max
    if found.shape != (len(rows),) or not fit.all():
        raise PlanRefused(
            f"stage {following.index} cannot be planned: the priority {priority.name} of {instrument.name} gives "
            f"shape {found.shape} with {int(np.count_nonzero(~fit))} numbers that are not finite in 32 bits, and "
            f"{len(rows)} candidates need one number each"
        )
    return found


def _score_all(
    held: Claim, following: Stage, questions: Sequence[Question], folders: Sequence[Path]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Score all pairs by a fast scorer that learns from the predictor; the predictor itself scores the drawn ones.

    A uniform stage needs no fast scorer: only the drawn pairs are scored, so that the predictor can be evaluated.
    """
    instrument = instruments.of_study(following.study)
    settings = following.study.config
    everything = everything_of(following, questions)
    recipe = stage_recipe(following)
    design = recipe.design.build()
    fidelity: dict[str, Any] = {}
    if not isinstance(design, Uniform):
        factors, fidelity = _distilled(held, following, questions, folders)
        everything = replace(everything, factors=factors)
        if settings.candidates.shortlist and isinstance(design, EpsilonGreedy):
            everything = replace(everything, shortlist=_shortlist(held, following, questions, folders, factors))
    held.heartbeat(0, 0, f"drawing from {everything.universe_size} pairs")
    try:
        with held.kept_alive():
            drawn = draw_slots(
                everything,
                design=design,
                n=slots_by_role(recipe).sampled.items,
                seed=recipe.seed,
                instrument=instrument,
                questions=questions,
                responses_per_item=recipe.responses,
            )
    except DesignError as exc:
        raise PlanRefused(f"stage {following.index} cannot be planned: {exc}") from exc
    rows = np.unique(drawn.rows)  # Each pair appears as often as it is answered.
    inputs = instruments.learning_of(instrument).inputs(rows=rows, questions=questions)
    scores = predictor_training.score(folders, inputs, held.heartbeat)
    found = {"candidates": everything, "drawn": with_column(rows, SCORE, scores), "fidelity": fidelity}
    return found, {"scored": everything.universe_size - everything.excluded, "fidelity": fidelity}


def _distilled(
    held: Claim, following: Stage, questions: Sequence[Question], folders: Sequence[Path]
) -> tuple[FactoredScores, dict[str, Any]]:
    """The factors of all pairs, and how well they rank fresh pairs compared with the predictor."""
    from predictors import (
        pair_scorer,
    )  # Imported here: only the ml worker has it, and the web side imports this module.

    settings = following.study.config.candidates
    bank = pair_scorer.Questions(
        texts=[question.plain for question in questions], tasks=[question.task.name for question in questions]
    )
    happened = instruments.pairing_of(instruments.of_study(following.study)).outcome_of_evidence(questions)
    scorer = pair_scorer.distil(
        folders=folders,
        questions=bank,
        n_pairs=settings.scored_pairs,
        rank=settings.rank,
        rng=generator(following.seed, "distil"),
        progress=held.heartbeat,
    )
    fidelity = pair_scorer.fidelity(
        scorer,
        folders=folders,
        questions=bank,
        rng=generator(following.seed, "fidelity"),
        outcome=happened,
        progress=held.heartbeat,
    )
    factors = FactoredScores(
        evidence=scorer.evidence,
        target=scorer.target,
        evidence_bias=scorer.evidence_bias,
        target_bias=scorer.target_bias,
        happened=happened,
    )
    return factors, {"scored_pairs": len(scorer.scored), "rank": scorer.rank, **fidelity}


def _shortlist(
    held: Claim, following: Stage, questions: Sequence[Question], folders: Sequence[Path], factors: FactoredScores
) -> np.ndarray:
    """The best pairs by their factors, with the predictor's own scores of them."""
    instrument = instruments.of_study(following.study)
    held.heartbeat(0, 0, "choosing the shortlist")
    size = following.study.config.candidates.shortlist
    with held.kept_alive():
        ranks = bandit.shortlist(factors, size=size, rng=generator(following.seed, "shortlist"))
    rows = instruments.pairing_of(instrument).rows_of_pairs(bandit.pair_from_rank(ranks, factors.n_questions))
    inputs = instruments.learning_of(instrument).inputs(rows=rows, questions=questions)
    found = np.empty(len(ranks), dtype=[(RANK, "<i8"), (SCORE, "<f4")])
    found[RANK], found[SCORE] = ranks, predictor_training.score(folders, inputs, held.heartbeat)
    return found
