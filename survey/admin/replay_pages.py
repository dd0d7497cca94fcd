"""One sitting on one page, and what can be done about its person at the panel: approve, pay, ask for a return, reject.

Each action first asks. What costs money is done only by a person who types the sum, as on a posting's page.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from survey.contracts import instruments, panels
from survey.contracts.panels import PanelClient, SubmissionStatus
from survey.exceptions import HunchError
from survey.figures import words
from survey.live import snapshots
from survey.live.replay import replay
from survey.models import Sitting, Submission
from survey.panels import money, owed_list, reconciliation
from survey.panels.asking import can_ask
from survey.panels.reconciliation import Action, Participation
from survey.services.base import rights
from survey.services.base.rights import Right

from .sitting_flags import FlaggedSittings
from .sums import sum_error

Status = SubmissionStatus


@dataclass(frozen=True)
class PersonAction:
    """Something that can be done about one person at the panel. `needs` is the panel's own ability. `run` gets the sum
    that was typed, if it costs money."""

    name: str
    label: str
    explanation: str
    right: Right
    needs: str
    is_offered: Callable[[Participation], bool]
    run: Callable[[Submission, HttpRequest, int | None], str]
    costs: Callable[[Participation], int] | None = None
    says_why: bool = False


def _approve(row: Submission, request: HttpRequest, cents: int | None) -> str:
    done = reconciliation.approve_finished(row.posting, only=row, cents=cents, by=request.user, via="admin")
    return "The submission is approved." if done else "Nothing was done: it does not wait for approval any more."


def _pay(row: Submission, request: HttpRequest, cents: int | None) -> str:
    batches = money.pay_owed(row.posting, only=row, cents=cents, by=request.user, via="admin")
    return "What was owed is paid." if batches else "Nothing was done: nothing is owed any more."


def _ask_back(row: Submission, request: HttpRequest, cents: int | None) -> str:
    done = reconciliation.ask_back(row.posting, only=row, by=request.user, via="admin")
    return "The person is asked to return the submission." if done else "Nothing was done: they were asked before."


def _reject(row: Submission, request: HttpRequest, cents: int | None) -> str:
    category, message = (request.POST.get(name, "").replace("\x00", "") for name in ("category", "message"))
    reconciliation.reject(row, category=category, message=message, by=request.user, via="admin")
    return "The submission is rejected."


def _waits(participation: Participation) -> bool:
    return participation.status == Status.AWAITING_REVIEW


ACTIONS = (
    PersonAction(
        "approve",
        "Approve",
        "The person finished here, and gets the reward.",
        Right.SPEND,
        "approve",
        lambda participation: participation.judgement.action == Action.APPROVE,
        _approve,
        costs=lambda participation: participation.submission.posting.reward if participation.submission else 0,
    ),
    PersonAction(
        "pay",
        "Pay what is owed",
        "A bonus on top of the reward. It is sent once, and cannot be taken back.",
        Right.PAY,
        "pay_bonuses",
        lambda participation: bool(participation.owed),
        _pay,
        costs=lambda participation: sum(payment.amount for payment in participation.owed),
    ),
    PersonAction(
        "ask-back",
        "Ask for a return",
        "The panel asks the person to return the submission. They need not, and nothing is held against them.",
        Right.RECRUIT,
        "ask_to_return",
        lambda participation: participation.judgement.action == Action.ASK_BACK,
        _ask_back,
    ),
    PersonAction(
        "reject",
        "Reject",
        "The person is not paid, and it is held against them at the panel. Read the whole sitting first.",
        Right.RECRUIT,
        "reject",
        _waits,
        _reject,
        says_why=True,
    ),
)
ACTION_BY_NAME = {action.name: action for action in ACTIONS}


class ReplayPages(FlaggedSittings):
    """Mixed into the sittings' admin."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/replay/", wrap(self.replay_view), name="survey_sitting_replay"),
            path("<int:pk>/do/<slug:name>/", wrap(self.person_view), name="survey_sitting_action"),
            *super().get_urls(),
        ]

    def replay_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        sitting = self._sitting(request, pk)
        problem = instruments.problem_with(sitting.stage.study.instrument)
        participation = self._participation(request, sitting)
        return self._page(
            request,
            "replay.html",
            title=f"{sitting.respondent.pseudonym} in stage {sitting.stage.index}",
            sitting=sitting,
            problem=problem,
            replay=None if problem else replay(sitting),
            found=participation,
            listed=self._listed(request, sitting),
            actions=[
                action for action in ACTIONS if participation is not None and self._may(request, action, participation)
            ],
        )

    def person_view(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        """GET asks first, POST acts."""
        sitting, action = self._sitting(request, pk), ACTION_BY_NAME.get(name)
        if action is None:
            raise Http404
        rights.require(request.user, action.right, sitting.stage.study_id)
        participation = self._participation(request, sitting)
        if participation is None or participation.submission is None:
            raise Http404
        row, error = participation.submission, ""
        cents = action.costs(participation) if action.costs is not None else None
        client = panels.find(row.posting.panel).client
        if request.method == "POST":
            error = "" if cents is None else sum_error(request, cents, row.posting.currency)
            if not error and not self._may(request, action, participation):
                error = "It cannot be done now: the panel says something else than before."
            if not error:
                try:
                    messages.success(request, action.run(row, request, cents))
                    snapshots.forget(sitting.stage.study)
                    return HttpResponseRedirect(reverse("admin:survey_sitting_replay", args=[pk]))
                except HunchError as exc:
                    error = exc.message
        return self._page(
            request,
            "act.html",
            title=f"{action.label}: {sitting.respondent.pseudonym}?",
            sitting=sitting,
            action=action,
            found=participation,
            cents=cents,
            error=error,
            categories=client.rejection_categories if client is not None else (),
            said={name: request.POST.get(name, "") for name in ("category", "message")},
        )

    def _sitting(self, request: HttpRequest, pk: int) -> Sitting:
        rows = self.visible_to(request.user, Sitting.objects.select_related("stage__study__bank", "respondent"))
        sitting: Sitting | None = rows.filter(pk=pk).first()
        if sitting is None:
            raise Http404
        if not self.has_view_permission(request, sitting):
            raise PermissionDenied
        return sitting

    def _participation(self, request: HttpRequest, sitting: Sitting) -> Participation | None:
        """What both sides say of the person; None without a submission, or for a user who may not see it."""
        if not rights.may(request.user, Right.SEE_POSTINGS, sitting.stage.study_id):
            return None
        rows = Submission.objects.filter(respondent=sitting.respondent_id, posting__wave=sitting.wave)
        row = rows.select_related("posting__study__bank", "posting__stage").order_by("-pk").first()
        return reconciliation.reconcile(row.posting).of(row) if row is not None else None

    def _listed(self, request: HttpRequest, sitting: Sitting) -> str:
        """What is owed where people are paid from a list."""
        study = sitting.stage.study
        if not panels.of_study(study).pays_from_a_list or sitting.respondent.is_simulated:
            return ""
        if not rights.may(request.user, Right.SEE_POSTINGS, study.pk):
            return ""
        points = money.points_of([sitting]).get(sitting.pk, Decimal(0))
        cents = owed_list.owed_for(study, sitting, points)
        return words.money(cents, study.config.panel.currency)

    def _may(self, request: HttpRequest, action: PersonAction, participation: Participation) -> bool:
        row = participation.submission
        if row is None or not row.posting.external_id or not can_ask(row.posting.panel):
            return False
        client: type[PanelClient] | None = panels.find(row.posting.panel).client
        return (
            client is not None
            and client.can(action.needs)
            and rights.may(request.user, action.right, row.posting.study_id)
            and action.is_offered(participation)
        )

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/survey/sitting/{template}",
            {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media, **context},
        )
