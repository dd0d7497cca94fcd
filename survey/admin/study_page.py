"""What the study page shows: the study's snapshot, with the rows that its actions need as they are now."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from survey.contracts import instruments, panels
from survey.figures.charts import Axis, Line, LineChart
from survey.live import snapshots
from survey.live.next_action import NextAction, next_action
from survey.live.people import CheckCount, Funnel, ScreenTimes
from survey.live.snapshots import RemarkFacts, StudyLook
from survey.live.stage_sections import StageSection
from survey.models import QuestionReport, Sitting, Study
from survey.services.answers.blinding import HIDDEN
from survey.services.base import rights
from survey.services.base.rights import Right

from .drafting import may_draft
from .pictures import inline

State = Sitting.State
MOST_TICKS = 6  # labels of hours that fit side by side
REMARKS_AT_ONCE = 5


@dataclass(frozen=True)
class ShownRemark:
    """A remark with its words, which stand in its own row alone."""

    facts: RemarkFacts
    text: str
    at: datetime


@dataclass(frozen=True)
class Addressed:
    """What to do next, and the address where it is done; empty if there is none for this user."""

    found: NextAction
    address: str


@dataclass(frozen=True, eq=False)
class Live:
    """Everything of the page that refreshes by itself. `newest` is the last stage that somebody has begun."""

    look: StudyLook
    age: int
    next: Addressed
    newest: int
    funnel: Funnel | None
    screens: Sequence[ScreenTimes]
    checks: Sequence[CheckCount]
    balance: Sequence[tuple[str, Sequence[tuple[str, int, int]]]]
    remarks: Sequence[ShownRemark]
    arrivals: SafeString | str
    curve: SafeString | str

    @property
    def newest_remarks(self) -> Sequence[ShownRemark]:
        return self.remarks[:REMARKS_AT_ONCE]

    @property
    def older_remarks(self) -> Sequence[ShownRemark]:
        return self.remarks[REMARKS_AT_ONCE:]


def shown(study: Study, *, may_wait: bool = True) -> tuple[StudyLook | None, list[StageSection]]:
    """The snapshot, and its stages with their rows as they are now; without a snapshot, none of them."""
    found = snapshots.look(study, may_wait=may_wait)
    if found is None:
        return None, []
    stages = {stage.index: stage for stage in study.stages.order_by("index")}
    for stage in stages.values():
        stage.study = study
    return found, [replace(one, stage=stages[one.index]) for one in found.quick.stages if one.index in stages]


def live(study: Study, user: Any, found: StudyLook, sections: Sequence[StageSection]) -> Live:
    now = timezone.now()
    sees_money = rights.may(user, Right.SEE_POSTINGS, study.pk)
    if not sees_money and found.slow is not None:  # What is owed and what panels say is not for everybody.
        paying = replace(found.slow.paying, spent=None, debts=(), postings=(), differences=())
        found = replace(found, slow=replace(found.slow, paying=paying))
    problem = panels.of_study(study).problem or instruments.problem_with(study.instrument) or ""
    stages = [section.stage for section in sections if section.stage is not None]
    wanted = next_action(study, stages, found, now, problem=problem)
    newest = max((funnel.stage for funnel in found.quick.funnels), default=0)
    screens = found.slow.screens if found.slow is not None else ()
    return Live(
        look=found,
        age=found.age(now),
        next=Addressed(wanted, _address(study, user, wanted)),
        newest=newest,
        funnel=next((funnel for funnel in found.quick.funnels if funnel.stage == newest), None),
        screens=[one for one in screens if one.stage == newest],
        checks=[one for one in found.quick.checks if one.stage == newest],
        balance=_balance(study, found, newest),
        remarks=_remarks(found) if rights.may(user, Right.READ_ANSWERS, study.pk) else [],
        arrivals=_arrivals(found),
        curve=_curve(found),
    )


def _address(study: Study, user: Any, wanted: NextAction) -> str:
    if wanted.posting is not None and rights.may(user, Right.SEE_POSTINGS, study.pk):
        return reverse("admin:survey_posting_change", args=[wanted.posting])
    if wanted.action and wanted.stage is not None and rights.may(user, Right.RUN, study.pk):
        return reverse("admin:survey_study_action", args=[study.pk, wanted.stage, wanted.action])
    if wanted.invites == "posting" and may_draft(user, study):
        return reverse("admin:survey_posting_draft", args=[study.pk])
    if wanted.invites == "links" and rights.may(user, Right.MAKE_LINKS, study.pk):
        return f"{reverse('admin:survey_entrylink_add')}?study={study.slug}"
    return "#addresses" if wanted.invites == "address" else ""


def _balance(study: Study, found: StudyLook, stage: int) -> list[tuple[str, Sequence[tuple[str, int, int]]]]:
    """By factor: its levels with how many were given it and how many of these are complete. Of a blind study only how
    large the groups are, the largest first, without names."""
    factors: dict[str, list[tuple[str, int, int]]] = {}
    for one in found.quick.balance:
        if one.stage == stage:
            factors.setdefault(f"{one.factor} (of each {one.per})", []).append((one.level, one.given, one.complete))
    if study.is_blind:
        sizes = [sorted(((given, complete) for _l, given, complete in one), reverse=True) for one in factors.values()]
        return [
            (f"factor {number}", [(HIDDEN, given, complete) for given, complete in levels])
            for number, levels in enumerate(sizes, start=1)
        ]
    return list(factors.items())


def _remarks(found: StudyLook) -> list[ShownRemark]:
    if not found.quick.remarks:
        return []
    rows = QuestionReport.objects.in_bulk([remark.pk for remark in found.quick.remarks])
    return [
        ShownRemark(one, rows[one.pk].text, rows[one.pk].at)
        for one in found.quick.remarks
        if one.pk in rows  # A person who withdraws takes their remarks along.
    ]


def _arrivals(found: StudyLook) -> SafeString | str:
    hours = found.quick.arrivals
    if not hours:
        return ""
    local = [timezone.localtime(one.at) for one in hours]
    every = math.ceil(len(hours) / MOST_TICKS)
    ticks = [(float(place), f"{at:%d %b %H:00}") for place, at in enumerate(local) if place % every == 0]
    points = [(float(place), float(one.arrivals)) for place, one in enumerate(hours)]
    chart = LineChart(
        title="People who arrived, by the hour",
        x=Axis("hour", ticks=ticks),
        y=Axis("people", includes=(0.0,)),
        lines=[Line("arrivals", points)],
    )
    return inline(chart.svg("arrivals"))


def _curve(found: StudyLook) -> SafeString | str:
    points = found.quick.curve
    if not points:
        return ""
    line = Line(
        "the study's predictor",
        [(float(one.examples), one.value) for one in points],
        [(one.low, one.high) for one in points if one.low is not None and one.high is not None]
        if all(one.low is not None for one in points)
        else (),
    )
    ticks = [(float(one.examples), f"{one.examples} (stage {one.stage})") for one in points]
    chart = LineChart(
        title=f"{found.quick.metric_title} on the answers of the stage after",
        x=Axis("answers that it had learnt from", ticks=ticks),
        y=Axis(found.quick.metric),
        lines=[line],
    )
    return inline(chart.svg("curve"))


@dataclass(frozen=True)
class Earlier:
    """The people of a stage before the one that refreshes by itself."""

    funnel: Funnel
    screens: Sequence[ScreenTimes]
    checks: Sequence[CheckCount]


def earlier_stages(found: Live | None) -> dict[int, Earlier]:
    """By the number of the stage: every stage that people have begun, but the newest."""
    if found is None:
        return {}
    quick, slow = found.look.quick, found.look.slow
    return {
        funnel.stage: Earlier(
            funnel,
            [one for one in (slow.screens if slow is not None else ()) if one.stage == funnel.stage],
            [one for one in quick.checks if one.stage == funnel.stage],
        )
        for funnel in quick.funnels
        if funnel.stage != found.newest
    }


# Addresses


def addresses(study: Study, root: str) -> list[tuple[str, str]]:
    """The study's public addresses, with what each is for. `root` is scheme and host, without a slash."""
    survey = root + study.get_absolute_url()
    panel = panels.of_study(study)
    given = panel.address(study.config, survey)
    label = "Survey"
    if given != survey:
        label = f"Study address for {panel.title}" + (", each ... filled in by it" if "..." in given else "")
    return [
        (label, given),
        ("Answers by API (JSON)", root + reverse("api:answers", args=[study.slug])),
        ("Answers by API (CSV)", root + reverse("api:answers-csv", args=[study.slug])),
    ]
