"""The plan of a stage: candidates, strata, draw, booklets. Written before the stage opens, and nothing drawn later.

Joins `bandit`, which knows numbers alone, to the instrument, which knows what they stand for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone
from numpy.lib import recfunctions

import bandit
from bandit.booklets import deal
from bandit.designs import Design, EpsilonGreedy, Uniform
from bandit.draws import Draw
from bandit.errors import DesignError
from survey.exceptions import PlanRefused, StateRefused
from survey.instruments import registry
from survey.models import (
    Booklet,
    CandidateSet,
    Item,
    JobStep,
    PredictorRun,
    Question,
    Slot,
    Stage,
    Stratum,
    Study,
)
from survey.models.predictor import TRIES
from survey.selectors.questions import eligible_questions
from survey.study_file import DesignConfig, StudyConfig

from . import files
from .auditing import record
from .dealing import deal_short
from .hashing import digest
from .locks import locked_stage
from .seeds import derive, generator

BATCH = 2000
SCORE = "score"


def design_of(config: DesignConfig) -> Design:
    if config.kind == "epsilon_greedy":
        return EpsilonGreedy(epsilon=config.epsilon, top_fraction=config.top_fraction)
    return Uniform()


def plan_stage(stage: Stage, *, short_booklets: bool = False, by: Any = None, via: str = "command") -> Stage:
    """Plan a draft stage from its stored candidate set, drawing a uniform one where none is stored. Safe to call twice.

    Args:
        short_booklets: where one question is in more slots than there are booklets, deal into more, shorter ones. They
            are paid in full, so that a person decides this and no worker does.

    Raises:
        PlanRefused: the design does not fit the candidates, or the slots cannot be dealt into booklets.
        StateRefused: the stage needs scores that the stage before it has not led to yet, or they came meanwhile.
    """
    if stage.state != Stage.State.DRAFT:
        return stage
    if stage.settings.design.kind != "uniform" and not CandidateSet.objects.filter(stage=stage).exists():
        raise StateRefused(
            f"stage {stage.index} draws by predicted change: close stage {stage.index - 1} first, "
            "which trains the predictor and plans this stage"
        )
    questions = drawable_questions(stage)
    draft = _draft(stage, questions, short_booklets=short_booklets)
    with transaction.atomic():
        stage = locked_stage(stage.pk)
        if stage.state != Stage.State.DRAFT:  # Somebody else planned it meanwhile: the same seed gave the same plan.
            return stage
        if not CandidateSet.objects.filter(stage=stage, file_sha256=draft.candidates.file_sha256).exists():
            raise StateRefused(f"the candidates of stage {stage.index} were scored meanwhile: plan it again")
        _write(stage, questions, draft)
        record("plan_stage", stage, by=by, via=via, plan_sha256=stage.plan_sha256, booklets=draft.booklets)
        # Planned by a person where the worker was refused: the worker's step finds it done.
        JobStep.objects.filter(
            stage__study=stage.study_id,
            stage__index=stage.index - 1,
            kind=JobStep.Kind.PLAN,
            state=JobStep.State.FAILED,
        ).update(state=JobStep.State.QUEUED, tries_left=TRIES, error="", sent_at=None, finished_at=None)
    return stage


def check_designs(settings: StudyConfig, *, universe_size: int) -> None:
    """Refuse, before anybody is paid, a study one of whose stages could never be drawn.

    Raises:
        PlanRefused: with the stage's number and the sizes.
    """
    candidates = min(settings.candidates.size, universe_size)
    predicts = registry.get(settings.instrument.kind).predicts
    for index, stage in enumerate(settings.stages, start=1):
        if stage.design.kind != "uniform" and not predicts:
            raise PlanRefused(
                f"stage {index} is {stage.design.kind}, and {settings.instrument.kind} has no label to predict: "
                'use kind = "uniform"'
            )
        try:
            bandit.draw(
                design=design_of(stage.design),
                n=stage.sittings * settings.sitting.items,
                scores=np.zeros(candidates),
                n_candidates=candidates,
                rng=np.random.default_rng(0),
            )
        except DesignError as exc:
            raise PlanRefused(f"stage {index} cannot be drawn: {exc}") from exc


def drawable_questions(stage: Stage) -> list[Question]:
    """
    Raises:
        PlanRefused: no question is left, or one lacks the key that the instrument needs.
    """
    study = stage.study
    instrument = registry.get(study.instrument)
    questions = eligible_questions(study)
    if len(questions) < instrument.fewest_questions:
        raise PlanRefused(
            f"the study's [questions] leave {len(questions)} of the bank's questions, and {instrument.name} needs "
            f"{instrument.fewest_questions}: loosen the filters"
        )
    if instrument.needs_answer_key:
        keyless = [question.external_id for question in questions if not question.answer.strip()]
        if keyless:
            raise PlanRefused(
                f"{len(keyless)} questions have no answer key, which {instrument.name} needs: "
                f"{', '.join(keyless[:5])}; add keys in a new version of the bank or exclude the questions"
            )
    return questions


def question_set_digest(study: Study) -> str:
    """Of what decides which questions are drawn from: the bank, the study's filters and the flags as they are now."""
    flagged = study.bank.questions.exclude(flag=Question.Flag.NONE).order_by("position")
    return digest(
        [
            study.bank.sha256,
            study.settings.questions.model_dump(mode="json"),
            list(flagged.values_list("position", flat=True)),
        ]
    )


def draw_candidates(stage: Stage, questions: Sequence[Question]) -> registry.Candidates:
    """The stage's uniform candidate set. The same seed and questions give the same set on every machine."""
    return registry.get(stage.study.instrument).draw_candidates(
        questions=questions, size=stage.study.settings.candidates.size, rng=generator(stage.seed, "candidates")
    )


def store_candidates(
    stage: Stage,
    candidates: registry.Candidates,
    *,
    questions_sha256: str,
    scores: np.ndarray | None = None,
    predictor_run: PredictorRun | None = None,
) -> CandidateSet:
    """Keep the candidates (with their scores, where there are any) as one file, and the row that names it.

    Scored candidates replace unscored ones, and never the other way round.
    """
    rows = candidates.rows
    if scores is not None:
        rows = recfunctions.append_fields(rows, SCORE, scores.astype("<f4"), usemask=False)
    values = {
        "kind": CandidateSet.Kind.POOL,
        "size": len(rows),
        "universe_size": candidates.universe_size,
        "probability": candidates.probability,
        "seed": derive(stage.seed, "candidates"),
        "predictor_run": predictor_run,
        "file_sha256": files.store_array(rows),
        "questions_sha256": questions_sha256,
    }
    if scores is None:
        stored, _created = CandidateSet.objects.get_or_create(stage=stage, defaults=values)
    else:
        stored, _created = CandidateSet.objects.update_or_create(stage=stage, defaults=values)
    return stored


class _Draft:
    """A drawn and dealt plan that is not written yet."""

    def __init__(
        self, rows: np.ndarray, drawn: Draw, dealt: list[list[int]], keys: list[str], candidates: CandidateSet
    ):
        self.rows = rows
        self.drawn = drawn
        self.keys = keys
        self.candidates = candidates
        self.place = {
            slot: (number, position)
            for number, slots in enumerate(dealt, start=1)
            for position, slot in enumerate(slots, start=1)
        }
        self.booklets = len(dealt)

    def stratum_of(self, slot: int) -> str:
        return self.drawn.strata[self.drawn.stratum[slot]].name

    def probability_of(self, slot: int) -> float:
        return float(self.drawn.inclusion_probability[slot])


def candidates_are_outdated(stage: Stage) -> bool:
    """Whether a flag was set or taken off since the stage's candidates were drawn: their rows count other questions."""
    stored = CandidateSet.objects.filter(stage=stage).first()
    return stored is not None and stored.questions_sha256 != question_set_digest(stage.study)


def _draft(stage: Stage, questions: Sequence[Question], *, short_booklets: bool) -> _Draft:
    study = stage.study
    instrument = registry.get(study.instrument)
    if candidates_are_outdated(stage):
        if CandidateSet.objects.get(stage=stage).predictor_run_id is not None:
            raise StateRefused(
                f"questions were flagged since the candidates of stage {stage.index} were scored: "
                f"the workers score them again by themselves while stage {stage.index - 1} waits for this plan"
            )
        CandidateSet.objects.filter(stage=stage).delete()
    stored = CandidateSet.objects.filter(stage=stage).first()
    if stored is None:
        stored = store_candidates(stage, draw_candidates(stage, questions), questions_sha256=question_set_digest(study))
    rows = files.load_array(stored.file_sha256)
    scores = rows[SCORE].astype(np.float64) if SCORE in (rows.dtype.names or ()) else None
    size = study.settings.sitting.items
    try:
        drawn = bandit.draw(
            design=design_of(stage.settings.design),
            n=stage.settings.sittings * size,
            scores=scores,
            n_candidates=len(rows),
            rng=generator(stage.seed, "draw"),
        )
        chosen = rows[drawn.selected]
    except DesignError as exc:
        raise PlanRefused(f"stage {stage.index} cannot be planned: {exc}") from exc
    keys = [instrument.conflict_keys(row) for row in chosen]
    try:
        dealt = deal(
            conflict_keys=keys,
            groups=[(Slot.Role.SAMPLED.value, int(stratum)) for stratum in drawn.stratum],
            size=size,
            rng=generator(stage.seed, "deal"),
        )
    except DesignError as exc:
        dealt = deal_short(keys, size=size, rng=generator(stage.seed, "deal_short"))
        if not short_booklets:
            raise PlanRefused(
                f"stage {stage.index} cannot be dealt: {exc}. With more, shorter booklets it can: {len(dealt)} "
                f"sittings instead of {stage.settings.sittings}, by: manage.py plan_stage {study.slug} {stage.index} "
                "--short-booklets"
            ) from exc
    return _Draft(chosen, drawn, dealt, [instrument.item_key(row, questions) for row in chosen], stored)


def _write(stage: Stage, questions: Sequence[Question], draft: _Draft) -> None:
    strata = {
        stratum.name: Stratum.objects.create(
            stage=stage,
            name=stratum.name,
            size=stratum.size,
            slots=stratum.n,
            lowest_score=stratum.lowest,
            mean_score=stratum.mean,
            highest_score=stratum.highest,
        )
        for stratum in draft.drawn.strata
    }
    booklets = Booklet.objects.bulk_create(
        [Booklet(stage=stage, number=number) for number in range(1, draft.booklets + 1)], batch_size=BATCH
    )
    items = _items(stage, questions, draft)
    has_score = SCORE in (draft.rows.dtype.names or ())
    slots = []
    for index, key in enumerate(draft.keys):
        number, position = draft.place[index]
        slots.append(
            Slot(
                stage=stage,
                number=index + 1,
                item=items[key],
                role=Slot.Role.SAMPLED,
                stratum=strata[draft.stratum_of(index)],
                inclusion_probability=draft.probability_of(index),
                pool_probability=draft.candidates.probability,
                score=float(draft.rows[SCORE][index]) if has_score else None,
                booklet=booklets[number - 1],
                position=position,
            )
        )
    Slot.objects.bulk_create(slots, batch_size=BATCH)
    stage.state = Stage.State.PLANNED
    stage.planned_at = timezone.now()
    stage.plan_sha256 = plan_digest(draft)
    stage.record(
        bank={"name": stage.study.bank.name, "version": stage.study.bank.version, "sha256": stage.study.bank.sha256},
        questions={"count": len(questions), "sha256": digest([question.external_id for question in questions])},
        study_file_sha256=stage.study.source_sha256,
        seed=stage.seed,
        candidates={
            "size": draft.candidates.size,
            "universe_size": draft.candidates.universe_size,
            "probability": draft.candidates.probability,
            "sha256": draft.candidates.file_sha256,
        },
        design=stage.settings.design.model_dump(),
        plan_sha256=stage.plan_sha256,
    )
    stage.save(update_fields=["state", "planned_at", "plan_sha256", "manifest"])


def _items(stage: Stage, questions: Sequence[Question], draft: _Draft) -> dict[str, Item]:
    """Items by key, those of earlier stages reused."""
    study = stage.study
    known: dict[str, Item] = {}
    for start in range(0, len(draft.keys), BATCH):
        part = draft.keys[start : start + BATCH]
        known.update({item.key: item for item in study.items.filter(key__in=part)})
    fresh = [index for index, key in enumerate(draft.keys) if key not in known]
    created = Item.objects.bulk_create([Item(study=study, key=draft.keys[index]) for index in fresh], batch_size=BATCH)
    registry.get(study.instrument).create_typed_items(items=created, rows=draft.rows[fresh], questions=questions)
    known.update({item.key: item for item in created})
    return known


def plan_digest(draft: _Draft) -> str:
    """Of every slot in the order of the draw: its item, stratum, probabilities and place."""
    return digest(
        [
            [
                index + 1,
                key,
                draft.stratum_of(index),
                draft.probability_of(index),
                draft.candidates.probability,
                *draft.place[index],
            ]
            for index, key in enumerate(draft.keys)
        ]
    )
