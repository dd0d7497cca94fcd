"""A dry run: simulated people go through every stage of a study's test copy, and then every figure and table is made.

So the person who set the study up sees before any money is spent what it will show, and what cannot be filled. The
people's answers are made up by the instrument: the figures say that the study works, and nothing about people.

A dry run that broke off goes on where it was: what it has done stands in the test copy.
"""

import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from survey.exceptions import HunchError, StateRefused
from survey.models import JobStep, Stage, Study
from survey.processes import queues
from survey.services.plans import planning
from survey.services.results import reports
from survey.services.results.estimates import stored_estimates
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export import files as exports
from survey.services.stages import jobs, lifecycle
from survey.services.stages.leaderboard import leaderboard, learning_of
from survey.services.studies import test_copies

from .crowd import Crowd
from .habits import REALISTIC
from .own_site import OwnSite

State = Stage.State
Say = Callable[[int, int, str], None]
"""say(done, total, words): how far it is. It may raise, to end the dry run."""

LONGEST = timedelta(minutes=50)
LOOK_EVERY = 1.0  # seconds between two looks at steps that another worker has
RETURN_CHANCE = 0.8  # Of who finished a wave, in the next one.


@dataclass(frozen=True)
class Filled:
    """A figure, table or file of the test copy. `kind`: report, estimates, leaderboard or export; `name`: a report's.
    `why`: why it could not be filled; empty if it was."""

    kind: str
    name: str
    title: str
    why: str = ""


@dataclass(frozen=True)
class DryRun:
    """What came of it. `copy` is the key of the test copy; `notes` say what was done otherwise than in a real study."""

    copy: int
    people: int
    stages: Sequence[Mapping[str, Any]]
    filled: Sequence[Filled]
    notes: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def run(
    study: Study,
    folder: Path,
    *,
    people: int | None = None,
    by: Any = None,
    via: str = "command",
    own_steps: bool = True,
    say: Say = lambda done, total, words: None,
) -> DryRun:
    """Fill the study's test copy, and write everything that it shows to `folder`.

    Args:
        people: in each stage; as many as the stage has places without it.
        own_steps: this process also does what only workers of models do, such as training. Otherwise it waits for them.

    Raises:
        StateRefused: the study is a test copy, or it takes longer than LONGEST: call it again.
        HunchError: no stage can be opened at all.
    """
    copy = _begun(study, by=by, via=via)
    going = _Going(copy, people, own_steps, by, via, say, until=time.monotonic() + LONGEST.total_seconds())
    going.through_all_stages()
    stages = list(copy.stages.order_by("index"))
    filled = list(_filled(copy, folder, lambda words: say(len(stages), len(stages) + 1, words)))
    return DryRun(copy.pk, copy.respondents.count(), going.facts(), filled, going.notes)


def pack(folder: Path, target: Path) -> None:
    """Everything that was written, as one ZIP."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder).as_posix())


def _begun(study: Study, *, by: Any, via: str) -> Study:
    """The copy to be filled: the one of a dry run that broke off, or a new one."""
    test_copies.refuse_copy(study, "has no dry run of its own")
    copy = test_copies.copy_of(study)
    is_empty_of_walks = copy is not None and not copy.respondents.filter(is_simulated=False).exists()
    is_over = copy is not None and not copy.stages.exclude(state=State.FROZEN).exists()
    if copy is not None and test_copies.is_current(copy) and is_empty_of_walks and not is_over:
        return copy
    return test_copies.renew_copy(study, in_dry_run=True, by=by, via=via)


class _Going:
    """On the way through the stages."""

    def __init__(
        self,
        copy: Study,
        people: int | None,
        own_steps: bool,
        by: Any,
        via: str,
        say: Say,
        *,
        until: float,
    ) -> None:
        self.copy = copy
        self.people = people
        self.own_steps = own_steps
        self.by, self.via = by, via
        self.until = until
        self.notes: list[str] = []
        self.site = OwnSite()
        self._say = say
        self._total = len(copy.config.stages)

    def through_all_stages(self) -> None:
        for stage in self.copy.stages.select_related("study__bank").order_by("index"):
            try:
                self._through(stage)
            except TooLong:
                raise
            except (HunchError, PlanFailed) as exc:
                # What the stages before have shown is worth seeing.
                self.notes.append(f"stage {stage.index} could not be gone through: {exc}")
                return

    def facts(self) -> list[dict[str, Any]]:
        return [
            {"stage": stage.index, "state": stage.state, "people": stage.sittings.count()}
            for stage in self.copy.stages.order_by("index")
        ]

    def _through(self, stage: Stage) -> None:
        if stage.state in (State.DRAFT, State.PLANNED, State.PAUSED):
            stage = self._opened(stage)
        if stage.state == State.OPEN:
            self._fill(stage)
            stage = lifecycle.close_stage(stage, now=True, by=self.by, via=self.via)
        self._settle(stage)

    def _opened(self, stage: Stage) -> Stage:
        if lifecycle.waits_for_a_choice(stage):
            lifecycle.choose_uniform(stage, by=self.by, via=self.via)
            stage = Stage.objects.select_related("study__bank").get(pk=stage.pk)
            planning.plan_stage(stage, by=self.by, via=self.via)
            self.notes.append(
                f"stage {stage.index} was drawn uniformly: the predictor had nothing to learn from the made-up answers"
            )
            stage = Stage.objects.select_related("study__bank").get(pk=stage.pk)
        return lifecycle.open_stage(stage, by=self.by, via=self.via)

    def _fill(self, stage: Stage) -> None:
        there = stage.sittings.count()
        wanted = min(self.people or stage.config.sittings, stage.config.sittings)
        if wanted <= there:
            return
        crowd = Crowd(
            study=self.copy,
            respondents=wanted - there,
            rates=REALISTIC,
            concurrency=1,
            site=self.site,
            return_chance=RETURN_CHANCE,
        )
        wanted = there + len(crowd.people)
        if not crowd.people:
            self.notes.append(f"stage {stage.index}: nobody came back for wave {stage.wave}")
        for number, _visit in enumerate(crowd.visits(), start=there + 1):
            self.say(stage, number / wanted / 2, f"person {number} of {wanted} in stage {stage.index}")

    def _settle(self, stage: Stage) -> None:
        """Until all that follows from closing is done."""
        while True:
            stage = Stage.objects.select_related("study__bank").get(pk=stage.pk)
            steps = [step for step in lifecycle.next_steps(stage) if step.state != JobStep.State.DONE]
            if not steps:
                return
            if failed := next((step for step in steps if step.state == JobStep.State.FAILED), None):
                raise PlanFailed(f"{failed.title} failed: {failed.error}")
            self.say(stage, 0.5, f"after stage {stage.index}: {steps[0].title}")
            ours = [step for step in steps if self.own_steps or jobs.queue_of(step) == queues.DEFAULT]
            if not any(jobs.run_step(step.pk) for step in ours):
                time.sleep(LOOK_EVERY)  # Another worker has it, or it waits for files.

    def say(self, stage: Stage, share: float, words: str) -> None:
        if time.monotonic() > self.until:
            raise TooLong(
                f"the dry run is not over after {LONGEST // timedelta(minutes=1)} minutes ({words}): ask for it "
                "again, and it goes on from here; if nothing moves, check whether the workers run (doctor)"
            )
        self._say(round(100 * (stage.index - 1 + share)), 100 * (self._total + 1), words)


class TooLong(StateRefused):
    """The time of a job is over."""


class PlanFailed(Exception):
    """Work between two stages has failed."""


def _filled(copy: Study, folder: Path, say: Callable[[str], None]) -> Iterator[Filled]:
    """Make everything that the copy can show, one after the other. What fails does not stop the others."""
    copy = Study.objects.select_related("bank", "test_of").get(pk=copy.pk)

    def made(kind: str, name: str, title: str, make: Callable[[], Any]) -> Filled:
        say(title)
        try:
            make()
        except HunchError as exc:
            return Filled(kind, name, title, exc.message)
        except Exception as exc:  # An instrument of others, or a mistake of ours: just what a dry run is to find.
            return Filled(kind, name, title, f"{type(exc).__name__}: {exc}")
        return Filled(kind, name, title)

    yield made("estimates", "", "Estimates", lambda: _estimates(copy, folder))
    if learning_of(copy) is not None:
        yield made("leaderboard", "", "Leaderboard", lambda: _leaderboard(copy))
    yield made("export", "", "Export", lambda: exports.write_export(copy, folder / "export"))
    for line in reports.lines_of(copy):
        name, title = line.entry.name, line.entry.title
        if line.obstacle:
            yield Filled("report", name, title, line.obstacle)
            continue
        yield made("report", name, title, partial(_report, copy, line, folder))


def _estimates(copy: Study, folder: Path) -> None:
    estimates = estimate(copy)
    (folder / "estimates.json").write_text(json.dumps(estimates.as_json(), ensure_ascii=False, indent=1, default=str))
    with suppress(stored_estimates.BeingComputed):  # Then the page has them once a worker has computed them.
        stored_estimates.shown_estimates(copy)


def _leaderboard(copy: Study) -> None:
    if not leaderboard(copy):
        raise StateRefused("no predictor was trained and judged by later answers")


def _report(copy: Study, line: reports.ReportLine, folder: Path) -> None:
    arguments = {}
    for argument in line.arguments:
        if argument.required:
            choices = list(reports.choices_of(copy, line.entry, argument))
            if not choices:
                raise StateRefused(f"{argument.name}: {argument.help}: there is none yet")
            arguments[argument.name] = choices[:1]
    findings = reports.make(copy, line.entry.name, arguments)
    reports.write(copy, line.entry.name, findings, folder / "reports" / line.entry.name)
