"""What a researcher should do next, in one sentence. Reads nothing itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.utils import timezone

from survey.contracts import panels
from survey.figures.words import counted, duration
from survey.models import JobStep, Stage, Study
from survey.services.sittings import links
from survey.services.stages.runs import needs_predictor

from .paying import Paying
from .stage_sections import StageSection

State = Stage.State
LONGEST_ERROR = 200  # characters; the stage's steps show all of it


@dataclass(frozen=True)
class NextAction:
    """A sentence, and where to do it: a stage's action by name, a posting, a way to invite people, or nowhere."""

    words: str
    stage: int | None = None
    action: str = ""
    posting: int | None = None
    is_urgent: bool = False
    invites: Literal["", "posting", "links", "address"] = ""


@dataclass(frozen=True)
class Facts:
    """What it is decided by. `stages`: as they are now, in order; `paying`: None where it was not read."""

    study: Study
    stages: Sequence[Stage]
    sections: Mapping[int, StageSection]
    now: datetime
    newest_arrival: datetime | None = None
    paying: Paying | None = None


def next_action(facts: Facts, *, problem: str = "") -> NextAction:
    """The first that applies: what is broken, then people's money, then the stage that is running, then the next one.

    Args:
        problem: why nobody is let in, or why the answers cannot be read; empty if all is well.
    """
    if problem:
        return NextAction(f"Fix this first: {problem}", is_urgent=True)
    for choose in (_broken, _owed, _running, _waiting):
        if action := next(choose(facts), None):
            return action
    return NextAction("Every stage is frozen. Read the estimates and the reports, and export the data.")


def _broken(facts: Facts) -> Iterator[NextAction]:
    for stage in facts.stages:
        section = facts.sections.get(stage.index)
        if section and section.failed_steps:
            title = section.failed_steps[0].title
            error = section.failed_steps[0].error.split("\n")[0][:LONGEST_ERROR].rstrip(". ")
            words = f"A step of stage {stage.index} has failed ({title}): {error}. Once that is mended, try it again."
            yield NextAction(words, stage.index, "retry", is_urgent=True)


def _owed(facts: Facts) -> Iterator[NextAction]:
    if facts.paying is None:
        return
    for posting in facts.paying.postings:
        if posting.unsettled:
            words = f"A payment of posting {posting.posting} may have been made or not: look at the panel and say so."
            yield NextAction(words, posting=posting.posting, is_urgent=True)
    for posting in facts.paying.postings:
        if posting.to_review:
            people = "1 person waits" if posting.to_review == 1 else f"{posting.to_review} people wait"
            words = f"{people} to be approved at the panel: read the panel, then approve who finished."
            yield NextAction(words, posting=posting.posting)
    for debt in facts.paying.debts:
        how = "pay them on the posting's page" if debt.posting else "save the list and pay from it"
        yield NextAction(f"{debt}: {how}.", posting=debt.posting)
    if facts.paying.pay is not None and facts.paying.pay.is_too_low:
        yield NextAction(f"Too little is paid: {facts.paying.pay.words}.", is_urgent=True)


def _running(facts: Facts) -> Iterator[NextAction]:
    for stage in facts.stages:
        section = facts.sections.get(stage.index)
        if section is None:
            continue
        so_far = f"{section.complete} of {stage.config.sittings} people are done"
        if stage.state == State.PAUSED:
            yield NextAction(f"Stage {stage.index} is paused, {so_far}: resume it or close it.", stage.index, "resume")
        if stage.state == State.OPEN:
            yield _of_open(stage, section, so_far, facts)
        if section.inside is not None:
            people = counted(section.inside.people, "person", "people")
            until = f"{timezone.localtime(section.inside.until):%H:%M %Z}"
            words = (
                f"Stage {stage.index} waits for {people} still inside, until {until} if they send nothing more. "
                "Close it now if you will not wait."
            )
            yield NextAction(words, stage.index, "close-now")
        if section.is_working:
            yield _of_work(stage, section, facts.stages)
        if stage.state == State.CLOSING:
            yield NextAction(f"Stage {stage.index} is closing: its answers are frozen in a moment.")


def _of_work(stage: Stage, section: StageSection, stages: Sequence[Stage]) -> NextAction:
    unfinished = section.unfinished_steps
    running = [step for step in unfinished if step.state == JobStep.State.RUNNING]
    step = next(iter([*running, *(step for step in unfinished if step.waits is not None), *unfinished]))
    if step.waits is not None:
        words = f"Stage {stage.index} does not go on: {step.title} waits {step.waits.words.rstrip('.')}."
        return NextAction(words, is_urgent=step.waits.is_untaken)
    is_training = step.kind == JobStep.Kind.TRAIN
    seconds = section.training_seconds_left if is_training else step.seconds_left
    left = "" if seconds is None else f", about {duration(seconds)} left"
    turn = "" if running else " waits for its turn"
    words = f"Stage {stage.index} is being worked on: {step.title}{turn}{left}."
    following = next((other for other in stages if other.index == stage.index + 1), None)
    if not is_training or following is None or following.state != State.DRAFT or not needs_predictor(following):
        return NextAction(f"{words} It goes on by itself.")
    choice = f"stop it and draw stage {following.index} uniformly, or name a quicker predictor in the study file"
    return NextAction(f"{words} If you will not wait: {choice}.", following.index, "stop-training")


def _of_open(stage: Stage, section: StageSection, so_far: str, facts: Facts) -> NextAction:
    if section.booklets and not section.free_booklets and not section.live:
        return NextAction(f"Stage {stage.index} is full, {so_far}: close it.", stage.index, "close")
    nobody = not section.sittings and not stage.study.is_test
    panel = panels.of_study(stage.study)
    posted = None if facts.paying is None else {posting.stage for posting in facts.paying.postings}
    if nobody and panel.client is not None and posted is not None and stage.index not in posted:
        words = f"Stage {stage.index} is open, and nobody knows of it yet: draft a posting at {panel.title}."
        return NextAction(words, invites="posting")
    quiet = timedelta(minutes=settings.HUNCH_NO_ARRIVALS_MINUTES)
    since = max(filter(None, (facts.newest_arrival, stage.opened_at)), default=None)
    if quiet and since is not None and facts.now - since >= quiet and section.free_booklets:
        long = duration((facts.now - since).total_seconds())
        return NextAction(
            f"Nobody has arrived at stage {stage.index} for {long}, and {section.free_booklets} places are free, "
            f"{so_far}: look at the posting or the links.",
            is_urgent=True,
        )
    if nobody and panel.client is None:
        if stage.study.config.panel.kind == links.KIND:
            return NextAction(f"Stage {stage.index} is open: make links and hand them out.", invites="links")
        return NextAction(f"Stage {stage.index} is open: give people the study's address.", invites="address")
    inside = f" and {counted(section.live, 'person', 'people')} inside" if section.live else ""
    if section.booklets and not section.free_booklets:
        people = counted(section.live, "person", "people")
        return NextAction(
            f"Stage {stage.index} is open, {so_far}, and all places are taken: it waits for {people} inside."
        )
    free = counted(section.free_booklets, "more person", "more people")
    return NextAction(
        f"Stage {stage.index} is open, {so_far}{inside}: it waits for {free}. Close it when you have enough."
    )


def _waiting(facts: Facts) -> Iterator[NextAction]:
    for stage in facts.stages:
        if stage.state == State.PLANNED or (stage.state == State.DRAFT and stage.plans_on_opening):
            yield NextAction(f"Stage {stage.index} is ready: open it.", stage.index, "open")
        elif stage.state == State.DRAFT:
            yield NextAction(f"Stage {stage.index} has no plan yet: plan it.", stage.index, "plan")
