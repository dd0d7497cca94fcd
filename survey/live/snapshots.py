"""One snapshot of a study for all who look at it, in every web process.

It is a row. A process that finds it too old claims it by a conditional update and makes it again; everybody else
gets what is there. So ten people who look cost as much as one. The quick half is made at most every few seconds; the
slow half, which reads the answers, rests for a multiple of the time that it took.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from survey.contracts import instruments, panels
from survey.models import Job, LiveSnapshot, QuestionReport, Stage, Study
from survey.services.answers.counting import in_time
from survey.services.base.rebuilding import rebuilt
from survey.services.results import reports
from survey.services.stages.leaderboard import learning_of, shown_metrics

from . import flags, paying, people, stage_sections
from .stage_sections import Outcomes, StageSection

CLAIM = timedelta(seconds=120)  # Longer than making it ever takes: a process that dies holds it up so long.
RESTS = 10  # times as long as the quick half took, and
SLOW_RESTS = 20  # as the slow half: looking at a page costs a server at most 15 % of one core
FEW_ANSWERS = 2000  # that are read in a moment
# A page waits for the slow half only where it is older than this, and a half that takes long is left to the next look.
SLOW_AT_LEAST = timedelta(minutes=10)
A_MOMENT = 0.5  # seconds
REMARKS = 20


@dataclass(frozen=True)
class ReportFacts:
    """A report of the study: `obstacle` says why it cannot be made now."""

    name: str
    title: str
    summary: str
    obstacle: str
    while_it_runs: bool


@dataclass(frozen=True)
class RemarkFacts:
    """Whose remark on which questions, without its words: these stay in their own row."""

    pk: int
    sitting: int
    pseudonym: str
    screen: str
    item: str
    questions: tuple[str, ...]


@dataclass(frozen=True)
class CurvePoint:
    """The study's predictor after so many answers, judged by a later stage: the leading metric with its interval."""

    stage: int
    examples: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class JobFacts:
    """Something that somebody asked a worker for and that is not over, in words; `seconds_left` is None where nobody
    can say."""

    pk: int
    title: str
    state: str
    percent: int | None
    progress: str
    seconds_left: float | None


@dataclass(frozen=True)
class Quick:
    stages: tuple[StageSection, ...]
    funnels: tuple[people.Funnel, ...]
    arrivals: tuple[people.Hour, ...]
    newest_arrival: datetime | None
    balance: tuple[people.LevelCount, ...]
    checks: tuple[people.CheckCount, ...]
    curve: tuple[CurvePoint, ...]
    metric: str
    metric_title: str
    excluded: tuple[tuple[int, int], ...]
    reports: tuple[ReportFacts, ...]
    remarks: tuple[RemarkFacts, ...]
    remarks_in_all: int
    jobs: tuple[JobFacts, ...] = ()
    quotas: tuple[people.QuotaLine, ...] = ()


@dataclass(frozen=True)
class Slow:
    outcomes: tuple[tuple[int, Outcomes], ...]
    screens: tuple[people.ScreenTimes, ...]
    flags: tuple[flags.FlagLine, ...]
    paying: paying.Paying


@dataclass(frozen=True)
class StudyLook:
    """What somebody who looks is shown: the two halves and when they were made."""

    quick: Quick
    slow: Slow | None
    quick_at: datetime
    slow_at: datetime | None

    def age(self, now: datetime) -> int:
        """Whole seconds since it was made."""
        return max(0, round((now - self.quick_at).total_seconds()))


def look(study: Study, *, may_wait: bool = True, now: datetime | None = None) -> StudyLook | None:
    """The snapshot, made again if it is too old and nobody else is making it; None while somebody makes the first one.

    Args:
        may_wait: whether the one who looks can wait for a half that takes long. A page that refreshes itself first
            shows what is there.
    """
    now = now or timezone.now()
    row = LiveSnapshot.objects.filter(study=study).first()
    if row is None:
        row, _created = LiveSnapshot.objects.get_or_create(study=study)
    if _is_slow_due(row, study, now, may_wait=may_wait):
        _make(row, "slow", now, lambda: _slow(study))
    if _is_quick_due(row, now):
        slow: Slow | None = rebuilt(Slow, row.slow) if row.slow_at is not None else None
        _make(row, "quick", now, lambda: _quick(study, slow, timezone.now()))
    if not row.quick:
        return None
    quick: Quick = rebuilt(Quick, row.quick)
    beside: Slow | None = rebuilt(Slow, row.slow) if row.slow_at is not None else None
    return StudyLook(quick, beside, row.quick_at or row.slow_at or now, row.slow_at)


def forget(study: Study) -> None:
    """Have it made again at the next look: something was just done to the study."""
    rows = LiveSnapshot.objects.filter(study=study)
    rows.update(quick_at=None, quick_attempt=F("quick_attempt") + 1, quick_claimed_until=None)


def _is_quick_due(row: LiveSnapshot, now: datetime) -> bool:
    every = timedelta(seconds=settings.HUNCH_LIVE_SECONDS)
    return not every or _has_rested(row.quick_at, now, max(every, timedelta(seconds=RESTS * row.quick_seconds)))


def _is_slow_due(row: LiveSnapshot, study: Study, now: datetime, *, may_wait: bool) -> bool:
    """Also who cannot wait makes it where it is made in a moment, or is much too old: without a script, only the page
    itself is ever asked for."""
    every = timedelta(seconds=settings.HUNCH_LIVE_SECONDS)
    if not every:
        return True
    if row.slow_at is None:
        return may_wait or bool(row.quick) or in_time(_stages(study)).count() <= FEW_ANSWERS
    rest = max(6 * every, timedelta(seconds=SLOW_RESTS * row.slow_seconds))
    if not may_wait and row.slow_seconds > A_MOMENT:
        rest = max(rest, SLOW_AT_LEAST)
    return _has_rested(row.slow_at, now, rest)


def _has_rested(made_at: datetime | None, now: datetime, rest: timedelta) -> bool:
    """Whether that long has passed; also where a clock was set back since."""
    return made_at is None or not timedelta(0) <= now - made_at < rest


def _make(row: LiveSnapshot, half: str, now: datetime, make: Callable[[], Any]) -> None:
    """Make a half and store it, unless somebody else is making it, or has made it again meanwhile. What fails gives it
    back."""
    attempt = getattr(row, f"{half}_attempt")
    until = f"{half}_claimed_until"
    free = Q(**{f"{until}__isnull": True}) | Q(**{f"{until}__lt": now}) | Q(**{f"{until}__gt": now + 2 * CLAIM})
    unclaimed = LiveSnapshot.objects.filter(free, pk=row.pk, **{f"{half}_attempt": attempt})
    if not unclaimed.update(**{f"{half}_attempt": attempt + 1, until: now + CLAIM}):
        return
    mine = LiveSnapshot.objects.filter(pk=row.pk, **{f"{half}_attempt": attempt + 1})
    begun, at = time.monotonic(), timezone.now()
    try:
        content = plain(make())
    except BaseException:
        if not transaction.get_connection().needs_rollback:
            mine.update(**{until: None})
        raise
    made = {half: content, f"{half}_at": at, f"{half}_seconds": time.monotonic() - begun, until: None}
    if mine.update(**made):
        for name, value in made.items():
            setattr(row, name, value)


def plain(content: Any) -> Any:
    """The data class as plain JSON."""
    return json.loads(json.dumps(asdict(content), cls=DjangoJSONEncoder))


# Making it


def _slow(study: Study) -> Slow:
    stages = _stages(study)
    known = instruments.is_known(study.instrument)  # Flags and outcomes are read from the answers.
    return Slow(
        outcomes=tuple(stage_sections.stage_outcomes(study, stages).items()),
        screens=people.screen_times(study, stages),
        flags=flags.flag_lines(study) if known else (),
        paying=paying.paying(study, stages),
    )


def _quick(study: Study, slow: Slow | None, now: datetime) -> Quick:
    stages = _stages(study)
    sections = stage_sections.sections(study, dict(slow.outcomes) if slow else {}, now=now)
    metric = next(iter(shown_metrics(learning_of(study))), None)
    remarks = QuestionReport.objects.filter(sitting__stage__study=study)
    return Quick(
        stages=tuple(replace(section, stage=None) for section in sections),
        funnels=people.funnels(study, stages),
        arrivals=people.arrivals(stages, now),
        newest_arrival=people.newest_arrival(stages),
        balance=people.balance(study, stages),
        checks=people.checks(study, stages),
        curve=_curve(sections),
        metric=metric.head if metric else "",
        metric_title=metric.title if metric else "",
        excluded=flags.excluded_by_stage(study),
        reports=tuple(
            ReportFacts(line.entry.name, line.entry.title, line.entry.summary, line.obstacle, line.entry.while_it_runs)
            for line in reports.lines_of(study)
        ),
        remarks=_remarks(study, remarks),
        remarks_in_all=remarks.count(),
        jobs=tuple(_job(job, now) for job in Job.objects.filter(study=study).waiting().order_by("pk")),
        quotas=people.quota_lines(study, stages),
    )


def _job(job: Job, now: datetime) -> JobFacts:
    left = job.time_left(now)
    return JobFacts(
        job.pk,
        job.kind.replace("_", " "),
        job.get_state_display(),
        job.percent,
        job.progress_text or job.error,
        None if left is None else left.total_seconds(),
    )


def _stages(study: Study) -> list[Stage]:
    stages = list(study.stages.order_by("index"))
    for stage in stages:
        stage.study = study
    return stages


def _curve(sections: Sequence[StageSection]) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(
            section.index,
            section.judged.run.example_count,
            section.judged.leading,
            *(section.judged.interval or (None, None)),
        )
        for section in sections
        if section.judged is not None and section.judged.leading is not None
    )


def _remarks(study: Study, remarks: Any) -> tuple[RemarkFacts, ...]:
    newest = list(
        remarks.select_related("assignment__slot__item", "sitting__respondent").order_by("-at", "-pk")[:REMARKS]
    )
    items = [remark.assignment.slot.item for remark in newest]
    questions: list[tuple[Any, ...]] = [() for _item in items]
    if items and instruments.is_known(study.instrument):
        questions = list(instruments.of_study(study).rows.questions_of(items))
    return tuple(
        RemarkFacts(
            remark.pk,
            remark.sitting_id,
            remark.sitting.respondent.pseudonym,
            remark.screen,
            remark.assignment.slot.item.key,
            tuple(question.external_id for question in asked),
        )
        for remark, asked in zip(newest, questions, strict=True)
    )


def panel_problem(study: Study) -> str:
    """Why nobody is let in now; empty if the panel of the study can be used."""
    return panels.of_study(study).problem
