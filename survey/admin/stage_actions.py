"""What is done to a stage from the study page: plan, open, pause, close it, try its failed steps again."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse

from survey.live import snapshots
from survey.live.stage_sections import StageSection
from survey.models import Stage, Study
from survey.services.plans import planning
from survey.services.stages import lifecycle
from survey.services.stages.progress import stage_progress

from .confirming import ConfirmedAction, about, action_named, confirm, doing

State = Stage.State
NEXT = "The study page shows the next steps of work under it."


def _row(section: StageSection) -> Stage:
    """The stage's row, which every section of the page has."""
    if section.stage is None:
        raise ValueError(f"stage {section.index}: the section has no row")
    return section.stage


def _is_next(section: StageSection, all_of_them: Sequence[StageSection]) -> bool:
    """Whether all earlier stages are finished."""
    return all(_row(other).state == State.FROZEN for other in all_of_them if other.index < section.index)


def _can_plan(section: StageSection, all_of_them: Sequence[StageSection]) -> bool:
    return _row(section).state == State.DRAFT and (
        _row(section).config.design.kind == "uniform" or section.candidates is not None
    )


def _can_open(section: StageSection, all_of_them: Sequence[StageSection]) -> bool:
    ready = _row(section).state == State.PLANNED or (
        _row(section).state == State.DRAFT and _row(section).plans_on_opening
    )
    return ready and _is_next(section, all_of_them)


def _plan_uniformly(stage: Stage, **by: Any) -> str:
    lifecycle.choose_uniform(stage, **by)
    return _plan(Stage.objects.select_related("study__bank").get(pk=stage.pk), **by)


def _retry(stage: Stage, **by: Any) -> str:
    count = lifecycle.retry_steps(stage, **by)
    return f"{count} failed step{'' if count == 1 else 's'} of stage {stage.index} will be tried again."


_plan = doing(planning.plan_stage, "Stage {0.index} is planned.")
_open = doing(lifecycle.open_stage, "Stage {0.index} is open.")

ACTIONS = (
    ConfirmedAction(
        "plan",
        "Plan",
        "Draws the stage's items and deals them into booklets, from the stage's stored seed. A plan is never changed.",
        _plan,
        is_offered=_can_plan,
    ),
    ConfirmedAction(
        "plan-uniformly",
        "Plan uniformly",
        "The predictor could learn nothing from the stage before: all its answers were alike, or there were none. This "
        "draws the stage uniformly instead of as the study file says, and records that in the stage's manifest.",
        _plan_uniformly,
        is_offered=lambda section, all_of_them: (
            _is_next(section, all_of_them) and lifecycle.waits_for_a_choice(_row(section))
        ),
        is_final=True,
    ),
    ConfirmedAction(
        "stop-training",
        "Stop training, draw uniformly",
        "Ends the training of the predictor on the stage before; what it has learnt is lost. This draws the stage "
        "uniformly instead of as the study file says, and records that in the stage's manifest. To let a quicker "
        "predictor learn from the same answers, amend the study file instead: naming another predictor stops this "
        "training too.",
        _plan_uniformly,
        is_offered=lambda section, all_of_them: (
            _is_next(section, all_of_them) and lifecycle.waits_for_training(_row(section))
        ),
        is_final=True,
    ),
    ConfirmedAction(
        "open",
        "Open",
        "Respondents can begin. A pilot or a first stage that is not planned yet is planned now. Opening the first "
        "main stage locks the study file: from then on only what changes no figure can be amended.",
        _open,
        is_offered=_can_open,
    ),
    ConfirmedAction(
        "resume",
        "Resume",
        "Respondents can begin again.",
        _open,
        is_offered=lambda section, _all: _row(section).state == State.PAUSED,
    ),
    ConfirmedAction(
        "pause",
        "Pause",
        "Nobody else can begin. People who have begun can finish.",
        doing(lifecycle.pause_stage, "Stage {0.index} is paused."),
        is_offered=lambda section, _all: _row(section).state == State.OPEN,
    ),
    ConfirmedAction(
        "close",
        "Close",
        "Nobody else can begin, for good. People who have begun can finish; then the answers are frozen, the "
        "predictor is trained and the next stage is planned.",
        doing(lifecycle.close_stage, f"Stage {{0.index}} is closing. {NEXT}"),
        is_offered=lambda section, _all: _row(section).state in (State.OPEN, State.PAUSED),
        is_final=True,
    ),
    ConfirmedAction(
        "close-now",
        "Close now",
        "Nobody else can begin, for good, and the stage does not wait. People who have begun can finish, get their "
        "code and are paid, but what they answer from now on does not count.",
        doing(
            lifecycle.close_stage,
            f"Stage {{0.index}} is closing now. {NEXT}",
            now=True,
        ),
        is_offered=lambda section, _all: (
            _row(section).state in (State.OPEN, State.PAUSED)
            or (_row(section).state == State.CLOSING and section.live > 0)
        ),
        is_final=True,
    ),
    ConfirmedAction(
        "retry",
        "Retry failed steps",
        "The workers try the stage's failed steps again.",
        _retry,
        is_offered=lambda section, _all: bool(section.failed_steps),
    ),
)


def offered(section: StageSection, all_of_them: Sequence[StageSection]) -> list[ConfirmedAction]:
    """What can be done to the stage now."""
    return [action for action in ACTIONS if action.is_offered(section, all_of_them)]


def page(request: HttpRequest, study: Study, index: int, name: str) -> HttpResponse:
    action, stage = action_named(ACTIONS, name), study.stages.filter(index=index).first()
    if stage is None:
        raise Http404
    stage.study = study
    title = f"{action.label}: stage {stage.index} of {study.slug}?"
    response = confirm(request, action, stage, about(study, title, facts=partial(_facts, stage)))
    if request.method == "POST":
        snapshots.forget(study)
    return response


def _facts(stage: Stage) -> list[tuple[str, Any]]:
    progress = stage_progress(stage)
    return [
        ("Stage now", stage.get_state_display()),
        ("People inside", progress.live),
        ("Slots answered in time", f"{progress.in_time} of {progress.slots}"),
        ("Answers that count", progress.counted),
        ("Free places", progress.free_booklets),
    ]
