"""What a researcher should do next, in one sentence. Decides by the snapshot and the stages' rows alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings

from survey.contracts import panels
from survey.models import Stage, Study
from survey.services.sittings import links

from .snapshots import StudyLook
from .stage_sections import StageSection

State = Stage.State


@dataclass(frozen=True)
class NextAction:
    """A sentence, and where to do it: a stage's action by name, a posting, a way to invite people, or nowhere."""

    words: str
    stage: int | None = None
    action: str = ""
    posting: int | None = None
    is_urgent: bool = False
    invites: Literal["", "posting", "links", "address"] = ""


def next_action(
    study: Study, stages: Sequence[Stage], look: StudyLook, now: datetime, *, problem: str = ""
) -> NextAction:
    """The first that applies: what is broken, then people's money, then the stage that is running, then the next one.

    Args:
        stages: the study's stages as they are now, in order.
        problem: why nobody is let in, or why the answers cannot be read; empty if all is well.
    """
    if problem:
        return NextAction(f"Fix this first: {problem}", is_urgent=True)
    sections = {section.index: section for section in look.quick.stages}
    for choose in (_broken, _owed, _running, _waiting):
        if action := next(choose(study, stages, sections, look, now), None):
            return action
    return NextAction("Every stage is frozen. Read the estimates and the reports, and export the data.")


def _broken(
    study: Study, stages: Sequence[Stage], sections: dict[int, StageSection], look: StudyLook, now: datetime
) -> Iterator[NextAction]:
    for stage in stages:
        section = sections.get(stage.index)
        if section and section.failed_steps:
            title = section.failed_steps[0].title
            words = f"A step of stage {stage.index} has failed ({title}): read its error, then try it again."
            yield NextAction(words, stage.index, "retry", is_urgent=True)


def _owed(
    study: Study, stages: Sequence[Stage], sections: dict[int, StageSection], look: StudyLook, now: datetime
) -> Iterator[NextAction]:
    if look.slow is None:
        return
    for posting in look.slow.paying.postings:
        if posting.unsettled:
            words = f"A payment of posting {posting.posting} may have been made or not: look at the panel and say so."
            yield NextAction(words, posting=posting.posting, is_urgent=True)
    for posting in look.slow.paying.postings:
        if posting.to_review:
            people = "1 person waits" if posting.to_review == 1 else f"{posting.to_review} people wait"
            words = f"{people} to be approved at the panel: read the panel, then approve who finished."
            yield NextAction(words, posting=posting.posting)
    for debt in look.slow.paying.debts:
        how = "pay them on the posting's page" if debt.posting else "save the list and pay from it"
        yield NextAction(f"{debt}: {how}.", posting=debt.posting)
    if look.slow.paying.pay is not None and look.slow.paying.pay.is_too_low:
        yield NextAction(f"Too little is paid: {look.slow.paying.pay.words}.", is_urgent=True)


def _running(
    study: Study, stages: Sequence[Stage], sections: dict[int, StageSection], look: StudyLook, now: datetime
) -> Iterator[NextAction]:
    for stage in stages:
        section = sections.get(stage.index)
        if section is None:
            continue
        so_far = f"{section.complete} of {stage.config.sittings} people are done"
        if stage.state == State.PAUSED:
            yield NextAction(f"Stage {stage.index} is paused, {so_far}: resume it or close it.", stage.index, "resume")
        if stage.state == State.OPEN:
            yield _of_open(stage, section, so_far, look, now)
        if stage.state == State.CLOSING and not section.is_working:
            words = f"Stage {stage.index} is closing and waits for the {section.live} people who are still inside."
            yield NextAction(words if section.live else f"Stage {stage.index} is closing. Nothing to do now.")
        if section.is_working:
            step = next(step for step in section.steps if step.state in ("queued", "running"))
            yield NextAction(f"Stage {stage.index} is being worked on ({step.title}). Nothing to do now.")


def _of_open(stage: Stage, section: StageSection, so_far: str, look: StudyLook, now: datetime) -> NextAction:
    if section.booklets and not section.free_booklets and not section.live:
        return NextAction(f"Stage {stage.index} is full, {so_far}: close it.", stage.index, "close")
    nobody = not section.sittings and not stage.study.is_test
    panel = panels.of_study(stage.study)
    posted = None if look.slow is None else {posting.stage for posting in look.slow.paying.postings}
    if nobody and panel.client is not None and posted is not None and stage.index not in posted:
        words = f"Stage {stage.index} is open, and nobody knows of it yet: draft a posting at {panel.title}."
        return NextAction(words, invites="posting")
    quiet = timedelta(minutes=settings.HUNCH_NO_ARRIVALS_MINUTES)
    since = max(filter(None, (look.quick.newest_arrival, stage.opened_at)), default=None)
    if quiet and since is not None and now - since >= quiet and section.free_booklets:
        hours, minutes = divmod(int((now - since).total_seconds()) // 60, 60)
        long = f"{hours} h {minutes} min" if hours else f"{minutes} min"
        return NextAction(
            f"Nobody has arrived at stage {stage.index} for {long}, and {section.free_booklets} places are free, "
            f"{so_far}: look at the posting or the links.",
            is_urgent=True,
        )
    if nobody and panel.client is None:
        if stage.study.config.panel.kind == links.KIND:
            return NextAction(f"Stage {stage.index} is open: make links and hand them out.", invites="links")
        return NextAction(f"Stage {stage.index} is open: give people the study's address.", invites="address")
    return NextAction(f"Stage {stage.index} is open, {so_far}. Nothing to do now.")


def _waiting(
    study: Study, stages: Sequence[Stage], sections: dict[int, StageSection], look: StudyLook, now: datetime
) -> Iterator[NextAction]:
    for stage in stages:
        if stage.state == State.PLANNED or (stage.state == State.DRAFT and stage.plans_on_opening):
            yield NextAction(f"Stage {stage.index} is ready: open it.", stage.index, "open")
        elif stage.state == State.DRAFT:
            yield NextAction(f"Stage {stage.index} has no plan yet: plan it.", stage.index, "plan")
