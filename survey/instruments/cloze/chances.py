"""The chance that a position was drawn at least once over a study's stages, from the plans."""

import numpy as np

from bandit import inclusion_probabilities
from bandit.errors import DesignError
from survey.contracts import instruments
from survey.models import CandidateSet, Slot, Stage, Study
from survey.services.answers.counting import ESTIMATED
from survey.services.base import files
from survey.services.base.seeds import generator
from survey.services.plans.candidates import candidate_questions, column_of, drawing_scores

from .models import AskedWord


def chance_of_positions(study: Study) -> dict[int, float]:
    """By the primary key of an item that is in a plan, its chance to be in one plan or more.

    1 - (1 - c1)(1 - c2)..., c being its chance in each stage: the stored one where the stage drew it, and else the one
    that its place among the stage's candidates gave it, from the stored candidates and priorities.
    """
    missed: dict[int, float] = {}
    stages = list(study.main_stages().exclude(state=Stage.State.DRAFT).order_by("index"))
    items = dict(AskedWord.objects.filter(item__study=study).order_by().values_list("item", "item__key"))
    for stage in stages:
        stage.study = study
        if stage.config.design.kind == "test_set":
            continue
        own = stage.slots.filter(role__in=ESTIMATED).order_by()
        drawn = {
            item: inside * (1.0 if pool is None else pool)
            for item, inside, pool in own.values_list("item", "inclusion_probability", "pool_probability").distinct()
            if inside is not None
        }
        other = _not_drawn(stage)
        for item, key in items.items():
            chance = drawn.get(item)
            if chance is None:
                chance = other.get(key, other.get("", 0.0))
            missed[item] = missed.get(item, 1.0) * (1 - min(chance, 1.0))
    return {item: 1 - chance for item, chance in missed.items() if chance < 1}


def _not_drawn(stage: Stage) -> dict[str, float]:
    """What the stage's chances were, by the item's key; under "" that of an item that is not among its candidates."""
    stored = CandidateSet.objects.filter(stage=stage).first()
    slots = stage.slots.filter(role=Slot.Role.SAMPLED).count()
    if stored is None or not slots:
        return {}
    replicates = stage.manifest.get("responses_per_item", 1) or 1
    size = max(1, stored.size)
    mean = stored.probability * slots / replicates / size
    if stored.kind != CandidateSet.Kind.POOL or stage.config.design.kind == "uniform":
        return {"": mean}
    stored.stage = stage
    questions = candidate_questions(stored)
    if questions is None:
        return {"": mean}  # Questions were flagged since, so that its candidates mean others.
    rows = files.load_array(stored.file_sha256)
    scores = drawing_scores(rows)
    try:
        chances = inclusion_probabilities(
            design=stage.config.design.build(),
            n=slots // replicates,
            scores=scores,
            n_candidates=len(rows),
            rng=generator(stage.seed, "compare"),
            disagreement=column_of(rows, "disagreement"),
        )
    except DesignError:
        return {"": mean}
    chances = _same_for_ties(chances, scores) * stored.probability
    instrument = instruments.of_study(stage.study)
    by_key = {instrument.item_key(row, questions): float(chance) for row, chance in zip(rows, chances, strict=True)}
    return {**by_key, "": mean}


def _same_for_ties(chances: np.ndarray, scores: np.ndarray | None) -> np.ndarray:
    """Ties at a cut are broken at random: candidates with equal scores get the mean of their chances."""
    if scores is None:
        return chances
    _values, group = np.unique(scores, return_inverse=True)
    group = group.reshape(-1)
    means: np.ndarray = (np.bincount(group, weights=chances) / np.bincount(group))[group]
    return means
