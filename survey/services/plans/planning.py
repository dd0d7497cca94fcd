"""The plan of a stage: candidates, strata, draw, roles, booklets. Written before the stage opens, and never added to.

Connects `bandit`, which knows only numbers, with the instrument, which knows what they stand for.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

import bandit
from bandit.anytime import ALPHA, Scale, mixture_parameter
from bandit.designs import Design, EpsilonGreedy, items_in
from bandit.errors import DesignError
from survey.contracts import instruments, panels
from survey.contracts.measures import Measure
from survey.exceptions import PlanRefused, StateRefused
from survey.models import Booklet, CandidateSet, Item, JobStep, Question, Slot, Stage, Stratum, Study
from survey.models.predictor import TRIES
from survey.services.base import files
from survey.services.base.auditing import record
from survey.services.base.hashing import code_digest, digest, package_digest
from survey.services.base.locks import is_in_force, locked_stage
from survey.study_file import StudyConfig

from .candidates import (
    PRIORITY,
    Everything,
    ListedPool,
    candidates_are_outdated,
    draw_candidates,
    drawable_questions,
    load_source,
    planned_before,
    question_set_digest,
    store_candidates,
    store_everything,
)
from .drafting import (
    CannotDeal,
    Draft,
    Recipe,
    draft,
    instrument_of_file,
    recipe_of,
    slots_by_role,
    stage_recipe,
    try_holdout,
)
from .learning import figures_of, with_what_it_learns

BATCH = 2000


def anytime_rho(sittings: int) -> float:
    """The rho of a stage's intervals that hold at any time: they are narrowest after half of its sittings."""
    return mixture_parameter(max(1, sittings // 2))


def span_of_first(study: Study, *, is_difference: bool) -> list[float] | None:
    """The lowest and the highest value that a study's first figure, or a difference of it between two levels, can have;
    None where its instrument does not say."""
    first = _first_measure(study)
    if first is None:
        return None
    span = first.range_of_difference if is_difference else first.range
    return None if span is None else list(span)


def scale_of_first(study: Study, *, is_difference: bool) -> Scale:
    """On which scale the interval of a study's first figure that holds at any time is laid around it."""
    first = _first_measure(study)
    return "plain" if first is None or is_difference else first.scale


def _first_measure(study: Study) -> Measure | None:
    estimates = instruments.of_study(study).estimates
    if estimates is None:
        return None
    measures = estimates.estimands([], thresholds=tuple(estimates.default_thresholds())).measures
    return measures[0] if measures else None


class QuestionsChanged(StateRefused):
    """A question was flagged, or a flag was removed, while a stage was planned. Nothing was written; plan it again."""


def scores_are_outdated(stage: Stage) -> bool:
    """Whether the workers must score the stage's candidates again, since a flag was set or removed meanwhile."""
    if not candidates_are_outdated(stage):
        return False
    return stage.config.design.kind != "uniform" or CandidateSet.objects.get(stage=stage).predictor_run_id is not None


def plan_stage(stage: Stage, *, short_booklets: bool = False, by: Any = None, via: str = "command") -> Stage:
    """Plan a draft stage from its stored candidate set, or from a new uniform one. Safe to call twice.

    Args:
        short_booklets: if one question is in more slots than there are booklets, deal into more, shorter ones. They
            are paid in full, so a person must decide this, not a worker.

    Raises:
        PlanRefused: the design does not fit the candidates, or the slots cannot be dealt into booklets.
        QuestionsChanged: questions were flagged meanwhile.
        StateRefused: the stage needs scores that do not exist yet, or they came while it was planned.
    """
    if stage.state != Stage.State.DRAFT:
        return stage
    if problems := stage.study.config.problems:
        raise StateRefused(
            f"this version of Hunch does not accept the study file any more ({problems[0]}): amend it first"
        )
    if stage.config.design.kind != "uniform" and not CandidateSet.objects.filter(stage=stage).exists():
        before = stage.before()
        is_closed = before is not None and before.state == Stage.State.FROZEN
        raise StateRefused(
            f"stage {stage.index} draws by what the answers before it say: "
            + (
                f"stage {stage.index - 1} is closed, and its jobs train the predictor and plan this stage; wait for "
                "them, or ask for those that failed once more. "
                if is_closed
                else f"close stage {stage.index - 1} first, which trains the predictor and plans this stage. "
            )
            + "Where its answers were no use for that, a person may "
            f"have it drawn uniformly: `hunch plan_stage {stage.study.slug} {stage.index} --uniform`"
        )
    read = stage.study
    questions_sha256 = question_set_digest(read)  # Before the questions are read: a flag set meanwhile is noticed.
    questions = drawable_questions(stage)
    candidates = _candidates_of(stage, questions, questions_sha256)
    drawn, recipe = _draft(stage, questions, candidates, short_booklets=short_booklets)
    positions_sha256 = files.store_array(np.array([question.position for question in questions], dtype="<i4"))
    with transaction.atomic():
        stage = locked_stage(stage.pk)
        if (
            stage.state != Stage.State.DRAFT
        ):  # Somebody else planned it at the same time: the same seed gave the same plan.
            return stage
        if not is_in_force(read):
            raise StateRefused(f"the file of {read.slug} was changed meanwhile: plan stage {stage.index} again")
        if not CandidateSet.objects.filter(stage=stage, file_sha256=candidates.file_sha256).exists():
            raise StateRefused(f"the candidates of stage {stage.index} were scored meanwhile: plan it again")
        if question_set_digest(stage.study) != questions_sha256:
            raise QuestionsChanged(f"questions were flagged meanwhile: plan stage {stage.index} again")
        _write(stage, questions, drawn)
        _record(stage, questions, candidates, recipe, positions_sha256)
        stage.save(update_fields=["state", "planned_at", "plan_sha256", "manifest"])
        record("plan_stage", stage, by=by, via=via, plan_sha256=stage.plan_sha256, booklets=drawn.booklets)
        # If a person planned it after a worker was refused, the worker's step now finds it done.
        JobStep.objects.filter(
            stage__study=stage.study_id,
            stage__index=stage.index - 1,
            kind=JobStep.Kind.PLAN,
            state=JobStep.State.FAILED,
        ).update(state=JobStep.State.QUEUED, tries_left=TRIES, error="", sent_at=None, finished_at=None)
    return stage


def check_designs(config: StudyConfig, *, universe_size: int, instrument: instruments.Instrument | None = None) -> None:
    """Refuse a study with a stage that could never be drawn, before anybody is paid.

    Args:
        instrument: the study's instrument; by default the one that the file names, with the file's options.

    Raises:
        PlanRefused: with the stage's number and the sizes.
    """
    for _index, message in design_problems(config, universe_size=universe_size, instrument=instrument):
        raise PlanRefused(message)


def design_problems(
    config: StudyConfig,
    *,
    universe_size: int,
    instrument: instruments.Instrument | None,
    only: int | None = None,
) -> Iterator[tuple[int, str]]:
    """Each stage that could never be drawn, with its number, and why. Stage 0: all of them.

    Args:
        only: look at this stage alone.
    """
    instrument = instrument or instrument_of_file(config)
    exhaustive = config.candidates.kind == "exhaustive"
    if exhaustive and config.predictor is not None and instrument.pairing is None:
        yield (
            0,
            (
                f"candidates: {config.instrument.kind} does not pair questions, so that they cannot all be scored: "
                'use kind = "pool"'
            ),
        )
        return
    for index, stage in enumerate(config.stages, start=1):
        if only is not None and index != only:
            continue
        if problem := drawing_problem(config, index=index, instrument=instrument):
            yield index, f"stage {index}: {problem}"
            continue
        if stage.stop is not None and instrument.estimates is None:
            yield index, f"stage {index}: stop: {config.instrument.kind} names nothing to estimate: remove it"
            continue
        try:
            recipe = recipe_of(config, index=index, seed=0, instrument=instrument)
            roles = slots_by_role(recipe)
            if roles.holdout.items > universe_size:
                raise DesignError(f"holdout: needs {roles.holdout.items} items and there are {universe_size}; lower it")
            if exhaustive:
                _allocate(
                    stage.design.build(),
                    items_in(roles.sampled.items, recipe.responses),
                    universe_size,
                    shortlist=config.candidates.shortlist,
                )
            else:
                candidates = min(config.candidates.size, universe_size)
                bandit.draw(
                    design=stage.design.build(),
                    n=roles.sampled.items,
                    scores=np.zeros(candidates),
                    disagreement=np.zeros(candidates),
                    n_candidates=candidates,
                    rng=np.random.default_rng(0),
                    responses_per_item=recipe.responses,
                )
        except DesignError as exc:
            yield index, f"stage {index} cannot be drawn: {exc}"


def drawing_problem(config: StudyConfig, *, index: int, instrument: instruments.Instrument) -> str:
    """Why stage `index` (from 1) lacks the score that it should be drawn by: a predictor's chance, or the instrument's
    priority. Empty if it has the score, or needs none."""
    design, priority, name = config.stages[index - 1].design, instrument.priority, config.instrument.kind
    kind = design.kind
    if kind == "uniform":
        return ""
    if design.learns:
        try:
            figures_of(instrument, design.build())
        except DesignError as exc:
            return str(exc)
    if priority is None:
        if instrument.learning is None:
            return f'{kind} draws by predictions, and {name} has no label to predict: use kind = "uniform"'
        return "" if config.predictor is not None else f"{kind} needs a [predictor]"
    if priority.needs_predictor and config.predictor is None:
        return f"{kind} draws by the priority {priority.name} of {name}, which needs a [predictor]"
    if config.candidates.kind == "exhaustive":
        return (
            f"{kind} draws by the priority {priority.name} of {name}, which is a number for each listed candidate: use "
            '[candidates] kind = "pool", or kind = "uniform" for the stage'
        )
    if design.build().needs_chances:
        return (
            f"{kind} draws by the predictor's chances, and {name} has the priority {priority.name} instead: use "
            "epsilon_greedy, softmax or uniform"
        )
    return ""


def _allocate(design: Design, n: int, universe_size: int, *, shortlist: int) -> None:
    """Whether a design fits "all items", which are too many for a trial draw."""
    if design.needs_list:
        raise DesignError(f"{type(design).__name__} cannot draw from all items there are")
    if shortlist and isinstance(design, EpsilonGreedy):
        if shortlist >= universe_size:
            raise DesignError(f"shortlist: {shortlist} of {universe_size} items is no short list; lower it")
        chosen = design.ends(shortlist).highest
        design.allocate(n, (chosen, universe_size - chosen))
    else:
        design.allocate(n, design.ends(universe_size).sizes)


def try_stage(stage: Stage, questions: Sequence[Question]) -> None:
    """Try to draw and deal the part of a stage that needs no scores. Stores nothing, and needs no stored row.

    Raises:
        PlanRefused: it cannot be drawn or dealt.
    """
    source: ListedPool | Everything
    instrument = instruments.of_study(stage.study)
    if stage.config.design.kind != "uniform":
        try:
            try_holdout(stage_recipe(stage), instrument=instrument, questions=questions)
        except DesignError as exc:
            raise PlanRefused(str(exc)) from exc
        return
    if stage.study.config.candidates.kind == "exhaustive":
        source = Everything(universe_size=instrument.universe_size(questions))
    else:
        pool = draw_candidates(stage, questions)
        source = ListedPool(rows=pool.rows, probability=pool.probability)
    try:
        draft(
            stage_recipe(stage),
            source,
            instrument=instrument,
            questions=questions,
        )
    except DesignError as exc:
        raise PlanRefused(str(exc)) from exc


def everything_of(stage: Stage, questions: Sequence[Question]) -> Everything:
    """All items that the stage may draw from, not scored."""
    instrument = instruments.of_study(stage.study)
    exclude = planned_before(stage)
    return Everything(
        universe_size=instrument.universe_size(questions),
        exclude=frozenset(exclude),
        excluded=len(instruments.pairing_of(instrument).ranks_of(exclude, questions)) if exclude else 0,
    )


def _candidates_of(stage: Stage, questions: Sequence[Question], questions_sha256: str) -> CandidateSet:
    """The stored candidate set, or an unscored one of these questions."""
    if scores_are_outdated(stage):
        raise QuestionsChanged(
            f"questions were flagged since the candidates of stage {stage.index} were scored: "
            f"the workers score them again by themselves while stage {stage.index - 1} waits for this plan"
        )
    if candidates_are_outdated(stage):
        CandidateSet.objects.filter(stage=stage).delete()
    stored = CandidateSet.objects.filter(stage=stage).select_related("predictor_run").first()
    if stored is not None:
        return stored
    if stage.study.config.candidates.kind == "exhaustive":
        return store_everything(stage, everything_of(stage, questions), questions_sha256=questions_sha256)
    return store_candidates(stage, draw_candidates(stage, questions), questions_sha256=questions_sha256)


def _draft(
    stage: Stage, questions: Sequence[Question], candidates: CandidateSet, *, short_booklets: bool
) -> tuple[Draft, Recipe]:
    study = stage.study
    candidates.stage = stage
    source = load_source(candidates, exclude=planned_before(stage), questions=questions)
    try:
        recipe = with_what_it_learns(stage_recipe(stage, short_booklets=short_booklets), stage, source)
        drawn = draft(recipe, source, instrument=instruments.of_study(study), questions=questions)
    except CannotDeal as exc:
        raise PlanRefused(
            f"stage {stage.index} cannot be dealt: {exc}. With more, shorter booklets it can: {exc.booklets} "
            f"sittings instead of {stage.config.sittings}, by: `hunch plan_stage {study.slug} {stage.index} "
            "--short-booklets`"
        ) from exc
    except DesignError as exc:
        raise PlanRefused(f"stage {stage.index} cannot be planned: {exc}") from exc
    return drawn, recipe


def _write(stage: Stage, questions: Sequence[Question], drawn: Draft) -> None:
    strata = {
        stratum.name: Stratum.objects.create(
            stage=stage,
            name=stratum.name,
            size=stratum.size,
            slots=stratum.slots,
            lowest_score=stratum.lowest,
            mean_score=stratum.mean,
            highest_score=stratum.highest,
        )
        for stratum in drawn.strata
    }
    booklets = Booklet.objects.bulk_create(
        [Booklet(stage=stage, number=number) for number in range(1, drawn.booklets + 1)], batch_size=BATCH
    )
    items = _items(stage, questions, drawn)
    asked = [slot for slot in drawn.slots if slot.repeat_of is None]
    repeats = [slot for slot in drawn.slots if slot.repeat_of is not None]
    made: dict[int | None, Slot] = {}
    for part in (asked, repeats):  # The slot that a repeat asks again is stored first.
        rows = [
            Slot(
                stage=stage,
                number=slot.number,
                item=items[slot.key],
                replicate=slot.replicate,
                role=slot.role,
                control_kind=slot.control_kind,
                repeat_of=made.get(slot.repeat_of),
                stratum=None if slot.stratum is None else strata[slot.stratum],
                inclusion_probability=slot.inclusion_probability,
                pool_probability=slot.pool_probability,
                score=slot.score,
                booklet=booklets[slot.booklet - 1],
                position=slot.position,
            )
            for slot in part
        ]
        made |= {row.number: row for row in Slot.objects.bulk_create(rows, batch_size=BATCH)}
    stage.state = Stage.State.PLANNED
    stage.planned_at = timezone.now()
    stage.plan_sha256 = drawn.sha256


def _record(
    stage: Stage, questions: Sequence[Question], candidates: CandidateSet, recipe: Recipe, positions_sha256: str
) -> None:
    """Everything that the plan depends on, for the manifest."""
    run = candidates.predictor_run
    stage.record(
        code_sha256=code_digest(),
        **_package_facts(stage.study),
        bank={"name": stage.study.bank.name, "version": stage.study.bank.version, "sha256": stage.study.bank.sha256},
        questions={
            "count": len(questions),
            "sha256": digest([question.external_id for question in questions]),
            "positions_sha256": positions_sha256,
        },
        study_file_sha256=stage.study.source_sha256,
        candidates={
            "kind": candidates.kind,
            "size": candidates.size,
            "universe_size": candidates.universe_size,
            "excluded": candidates.excluded,
            "probability": candidates.probability,
            "seed": candidates.seed,
            "sha256": candidates.file_sha256,
            "shortlist_sha256": candidates.shortlist_sha256,
            "drawn_sha256": candidates.drawn_sha256,
            "fidelity": candidates.fidelity,
        },
        predictor=None
        if run is None
        else {"name": run.name, "params": run.params, "input_sha256": run.input_sha256, "members": run.members},
        plan_sha256=stage.plan_sha256,
        **_priority_facts(stage, candidates),
        **_stop_facts(stage, recipe),
        **recipe.as_facts(),
    )


def _package_facts(study: Study) -> dict[str, Any]:
    """Hashes of the packages that bring the study's instrument and panel, whose code decides with Hunch's own what is
    drawn; empty where both are Hunch's own."""
    brought = {
        type(plugin).__module__.partition(".")[0] for plugin in (instruments.of_study(study), panels.of_study(study))
    } - {"survey"}
    return {"packages_sha256": {name: package_digest(name) for name in sorted(brought)}} if brought else {}


def _stop_facts(stage: Stage, recipe: Recipe) -> dict[str, Any]:
    """The rule that may end the stage early, with all numbers that its intervals need; empty without one."""
    rule = stage.config.stop
    if rule is None:
        return {}
    return {
        "stop": {
            **rule.model_dump(mode="json"),
            "at_most": recipe.sittings,
            "alpha": ALPHA,
            "rho": anytime_rho(recipe.sittings),
            "span": span_of_first(stage.study, is_difference=rule.factor is not None),
            "scale": scale_of_first(stage.study, is_difference=rule.factor is not None),
        }
    }


def _priority_facts(stage: Stage, candidates: CandidateSet) -> dict[str, Any]:
    """The priority by which the candidates were scored, as it was then; empty without one."""
    if candidates.kind != CandidateSet.Kind.POOL:
        return {}
    if PRIORITY not in (files.load_array(candidates.file_sha256).dtype.names or ()):
        return {}
    before = stage.preceding()
    scored = before.job_steps.filter(kind=JobStep.Kind.SCORE, state=JobStep.State.DONE) if before is not None else ()
    for step in scored:
        if step.result.get("file_sha256") == candidates.file_sha256:
            return {"priority": step.result["priority"]}
    priority = instruments.of_study(stage.study).priority
    return {"priority": None if priority is None else priority.facts()}


def _items(stage: Stage, questions: Sequence[Question], drawn: Draft) -> dict[str, Item]:
    """Items by key, those of earlier stages reused."""
    study = stage.study
    keys = list(drawn.rows)
    known: dict[str, Item] = {}
    for start in range(0, len(keys), BATCH):
        known.update({item.key: item for item in study.items.filter(key__in=keys[start : start + BATCH])})
    fresh = [key for key in keys if key not in known]
    created = Item.objects.bulk_create([Item(study=study, key=key) for key in fresh], batch_size=BATCH)
    if created:
        rows = np.array([drawn.rows[key] for key in fresh])
        instruments.of_study(study).create_typed_items(items=created, rows=rows, questions=questions)
    known.update({item.key: item for item in created})
    return known
