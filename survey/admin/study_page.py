"""The study page: the study's snapshot, with the rows that its actions need as they are now, and what leads on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from survey.admin_base.qr_codes import qr_code
from survey.admin_base.read_only_admin import admin_page
from survey.contracts import instruments, panels
from survey.figures.charts import Axis, Line, LineChart
from survey.live import snapshots
from survey.live.next_action import Facts, NextAction, next_action
from survey.live.people import CheckCount, Funnel, ScreenTimes
from survey.live.snapshots import RemarkFacts, StudyLook
from survey.live.stage_sections import StageSection
from survey.models import QuestionReport, Sitting, Study
from survey.services.answers.blinding import HIDDEN
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.studies.outdated import file_problems

from . import jobs
from .drafting import may_draft
from .exports import files_of
from .pictures import inline
from .stage_actions import ACTIONS, offered
from .study_file import file_facts

State = Sitting.State
MAX_TICKS = 6  # labels of hours that fit side by side
REMARKS_AT_ONCE = 5


LISTS = (
    ("survey_sitting", "Sittings"),
    ("survey_respondent", "Respondents"),
    ("survey_item", "Items"),
    ("survey_slot", "Slots"),
    ("survey_booklet", "Booklets"),
    ("survey_jobstep", "Steps of work"),
    ("survey_predictorrun", "Predictors"),
    ("survey_posting", "Postings at a panel"),
    ("survey_entrylink", "Entry links"),
    ("survey_auditentry", "Who did what"),
)


@dataclass(frozen=True)
class ShownRemark:
    """A remark with its words, which stand in its own row alone."""

    facts: RemarkFacts
    text: str
    at: datetime


@dataclass(frozen=True)
class Addressed:
    """What to do next, the address where it is done, and the words of the link; both empty if there is none for this
    user."""

    found: NextAction
    address: str
    label: str


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
    look = snapshots.look(study, may_wait=may_wait)
    if look is None:
        return None, []
    stages = {stage.index: stage for stage in study.stages.order_by("index")}
    for stage in stages.values():
        stage.study = study
    return look, [replace(stage, stage=stages[stage.index]) for stage in look.quick.stages if stage.index in stages]


def live(study: Study, user: Any, look: StudyLook, sections: Sequence[StageSection]) -> Live:
    now = timezone.now()
    sees_money = rights.may(user, Right.SEE_POSTINGS, study.pk)
    if not sees_money and look.slow is not None:  # What is owed and what panels say is not for everybody.
        paying = replace(look.slow.paying, spent=None, debts=(), postings=(), differences=())
        look = replace(look, slow=replace(look.slow, paying=paying))
    problem = panels.of_study(study).problem or instruments.problem_with(study.instrument) or ""
    stages = [section.stage for section in sections if section.stage is not None]
    facts = Facts(
        study,
        stages,
        {section.index: section for section in look.quick.stages},
        now,
        look.quick.newest_arrival,
        look.slow.paying if look.slow is not None else None,
    )
    wanted = next_action(facts, problem=problem)
    newest = max((funnel.stage for funnel in look.quick.funnels), default=0)
    screens = look.slow.screens if look.slow is not None else ()
    return Live(
        look=look,
        age=look.age(now),
        next=addressed(study, user, wanted),
        newest=newest,
        funnel=next((funnel for funnel in look.quick.funnels if funnel.stage == newest), None),
        screens=[screen for screen in screens if screen.stage == newest],
        checks=[check for check in look.quick.checks if check.stage == newest],
        balance=_balance(study, look, newest),
        remarks=_remarks(look) if rights.may(user, Right.READ_ANSWERS, study.pk) else [],
        arrivals=_arrivals(look),
        curve=_curve(look),
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


def addressed(study: Study, user: Any, wanted: NextAction) -> Addressed:
    return Addressed(wanted, _address(study, user, wanted), _label(wanted))


def _label(wanted: NextAction) -> str:
    """Of the button: a stage's action by its own name."""
    return next((action.label for action in ACTIONS if action.name == wanted.action), "Go there")


def _balance(study: Study, look: StudyLook, stage: int) -> list[tuple[str, Sequence[tuple[str, int, int]]]]:
    """By factor: its levels with how many were given it and how many of these are complete. Of a blind study only how
    large the groups are, the largest first, without names."""
    factors: dict[str, list[tuple[str, int, int]]] = {}
    for cell in look.quick.balance:
        if cell.stage == stage:
            factors.setdefault(f"{cell.factor} (of each {cell.per})", []).append(
                (cell.level, cell.given, cell.complete)
            )
    if study.is_blind:
        sizes = [
            sorted(((assigned, complete) for _l, assigned, complete in factor), reverse=True)
            for factor in factors.values()
        ]
        return [
            (f"factor {number}", [(HIDDEN, assigned, complete) for assigned, complete in levels])
            for number, levels in enumerate(sizes, start=1)
        ]
    return list(factors.items())


def _remarks(look: StudyLook) -> list[ShownRemark]:
    if not look.quick.remarks:
        return []
    rows = QuestionReport.objects.in_bulk([remark.pk for remark in look.quick.remarks])
    return [
        ShownRemark(remark, rows[remark.pk].text, rows[remark.pk].at)
        for remark in look.quick.remarks
        if remark.pk in rows  # A person who withdraws takes their remarks along.
    ]


def _arrivals(look: StudyLook) -> SafeString | str:
    hours = look.quick.arrivals
    if not hours:
        return ""
    local = [timezone.localtime(hour.at) for hour in hours]
    every = math.ceil(len(hours) / MAX_TICKS)
    ticks = [(float(place), f"{at:%d %b %H:00}") for place, at in enumerate(local) if place % every == 0]
    points = [(float(place), float(hour.arrivals)) for place, hour in enumerate(hours)]
    chart = LineChart(
        title="People who arrived, by the hour",
        x=Axis(f"hour ({local[0]:%Z})", ticks=ticks),
        y=Axis("people", includes=(0.0,)),
        lines=[Line("arrivals", points)],
    )
    return inline(chart.svg("arrivals"))


def _curve(look: StudyLook) -> SafeString | str:
    points = look.quick.curve
    if not points:
        return ""
    line = Line(
        "the study's predictor",
        [(float(point.examples), point.value) for point in points],
        [(point.low, point.high) for point in points if point.low is not None and point.high is not None]
        if all(point.low is not None for point in points)
        else (),
    )
    ticks = [(float(point.examples), f"{point.examples} (stage {point.stage})") for point in points]
    chart = LineChart(
        title=f"{look.quick.metric_title} on the answers of the stage after",
        x=Axis("answers that it had learnt from", ticks=ticks),
        y=Axis(look.quick.metric),
        lines=[line],
    )
    return inline(chart.svg("curve"))


@dataclass(frozen=True)
class Earlier:
    """The people of a stage before the one that refreshes by itself."""

    funnel: Funnel
    screens: Sequence[ScreenTimes]
    checks: Sequence[CheckCount]


def earlier_stages(live_part: Live | None) -> dict[int, Earlier]:
    """By the number of the stage: every stage that people have begun, but the newest."""
    if live_part is None:
        return {}
    quick, slow = live_part.look.quick, live_part.look.slow
    return {
        funnel.stage: Earlier(
            funnel,
            [screen for screen in (slow.screens if slow is not None else ()) if screen.stage == funnel.stage],
            [check for check in quick.checks if check.stage == funnel.stage],
        )
        for funnel in quick.funnels
        if funnel.stage != live_part.newest
    }


# Addresses


def addresses(study: Study, root: str) -> list[tuple[str, str]]:
    """The study's public addresses, with what each is for. `root` is scheme and host, without a slash."""
    survey = root + study.get_absolute_url()
    panel = panels.of_study(study)
    address = panel.address(study.config, survey)
    label = "Survey"
    if address != survey:
        label = f"Study address for {panel.title}" + (", each ... filled in by it" if "..." in address else "")
    return [
        (label, address),
        ("Answers by API (JSON)", root + reverse("api:answers", args=[study.slug])),
        ("Answers by API (CSV)", root + reverse("api:answers-csv", args=[study.slug])),
    ]


def _picture(study: Study, root: str) -> SafeString | str:
    """A QR code of the address that people open by hand; at a panel each person has their own."""
    survey = root + study.get_absolute_url()
    is_filled_in = panels.of_study(study).address(study.config, survey) != survey
    return "" if is_filled_in else qr_code(survey, title=f"QR code of {survey}")


# Pages


def whole_study(user: Any, key: str) -> Study | None:
    """The study with its file, and as `withdrawn` how many people have withdrawn, in one statement."""
    if not key.isdecimal():
        return None
    rows = Study.objects.select_related("bank", "created_by").annotate(withdrawn=Count("respondents__withdrawal"))
    return rights.visible(user, rows).filter(pk=int(key)).first()


def page(request: HttpRequest, study: Study, *, links: Mapping[str, Sequence[tuple[str, str]]]) -> HttpResponse:
    """
    Args:
        study: as `whole_study` gave it.
        links: by group, to the study's other pages.
    """
    root = request.build_absolute_uri("/").rstrip("/")
    may_run = rights.may(request.user, Right.RUN, study.pk)
    context = _live_context(study, request.user, may_wait=False)
    look = context["look"]
    return admin_page(
        request,
        "study/page.html",
        title=f"{study.title} (test copy)" if study.is_test else study.title,
        study=study,
        links=links,
        addresses=addresses(study, root),
        codes=study.codes.order_by("pk") if may_run else [],  # With a code a person is paid.
        picture=_picture(study, root),
        reports=look.quick.reports if look else [],
        not_yet=[line for line in look.quick.reports if line.obstacle] if look else [],
        **context,
        may_draft=may_draft(request.user, study),
        **file_facts(study, request.user),
        files=files_of(study, request.user),
        file_problems=[] if context["instrument_problem"] else file_problems(study),
        job_kinds=jobs.kinds_for(study, request.user),
        lists=[
            (label, f"{reverse(f'admin:{name}_changelist')}?study={study.slug}")
            for name, label in LISTS
            if _may_list(request, study, name.removeprefix("survey_"))
        ],
    )


def live_part(request: HttpRequest, study: Study) -> HttpResponse:
    """The part of the study page that refreshes by itself. The page's script knows it by the header."""
    context = _live_context(study, request.user, may_wait=True)
    response = admin_page(request, "study/live.html", study=study, title=study.title, is_refresh=True, **context)
    response["X-Hunch-Live"] = "1"
    return response


def _live_context(study: Study, user: Any, *, may_wait: bool) -> dict[str, Any]:
    """What the part of the page shows that refreshes by itself, and what its stages' sections need."""
    look, sections = shown(study, may_wait=may_wait)
    may_run = rights.may(user, Right.RUN, study.pk)
    current = live(study, user, look, sections) if look else None
    return {
        "look": look,
        "live": current,
        "earlier": earlier_stages(current),
        "sections": [(section, offered(section, sections) if may_run else []) for section in sections],
        "has_details": any(section.slots or section.steps for section in sections),
        "outcome": next((section.outcomes.name for section in sections if section.outcomes.name), ""),
        "instrument_problem": instruments.problem_with(study.instrument),
        "panel_problem": panels.of_study(study).problem,
        "alerts": list(study.alerts.filter(resolved_at__isnull=True)),
    }


def _may_list(request: HttpRequest, study: Study, name: str) -> bool:
    """Whether the list of that model shows the user anything of the study."""
    page: Any = admin.site.get_model_admin(apps.get_model("survey", name))
    right = page.right or rights.right_to_see(page.model)
    return page.has_view_permission(request) and rights.may(request.user, right, study.pk)
