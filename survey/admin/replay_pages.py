"""One sitting on one page, and what can be done about its person at the panel: approve, pay, ask for a return, reject.

Each action first asks. What costs money is done only by a person who types the sum, as on a posting's page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from survey.admin_base.read_only_admin import admin_page
from survey.contracts import instruments, panels
from survey.contracts.panels import SubmissionStatus
from survey.figures import words
from survey.live import snapshots
from survey.live.replay import replay
from survey.models import Sitting, Submission
from survey.panels import money, owed_list, reconciliation
from survey.panels.reconciliation import Participation
from survey.services.base import rights
from survey.services.base.rights import Right

from .confirming import NOT_NOW, Confirmation, ConfirmedAction, WordsField, action_named, confirm
from .posting_actions import why_not


class RejectForm(forms.Form):
    """What the panel asks for. The service says what is wrong with it, by the panel's rules."""

    category = WordsField(label="The panel's category")
    message = WordsField(label="What the person reads", widget=forms.Textarea(attrs={"rows": 4, "cols": 60}))

    def __init__(self, data: Mapping[str, Any] | None, *, categories: Sequence[str] = ()) -> None:
        super().__init__(data)
        if categories:
            self.fields["category"].widget = forms.Select(choices=[(name, name) for name in categories])


def _submission(participation: Participation) -> Submission:
    """The panel's side of it, without which nothing is done about a person."""
    if participation.submission is None:
        raise ValueError(f"{participation.who}: the panel knows no submission")
    return participation.submission


def _approve(participation: Participation, **by: Any) -> str:
    row = _submission(participation)
    done = reconciliation.approve_finished(row.posting, only=row, **by)
    return "The submission is approved." if done else "Nothing was done: it does not wait for approval any more."


def _pay(participation: Participation, **by: Any) -> str:
    row = _submission(participation)
    batches = money.pay_owed(row.posting, only=row, **by)
    return "What was owed is paid." if batches else "Nothing was done: nothing is owed any more."


def _ask_back(participation: Participation, **by: Any) -> str:
    row = _submission(participation)
    done = reconciliation.ask_back(row.posting, only=row, **by)
    return "The person is asked to return the submission." if done else "Nothing was done: they were asked before."


def _reject(participation: Participation, **by: Any) -> str:
    reconciliation.reject(_submission(participation), **by)
    return "The submission is rejected."


ACTIONS = (
    ConfirmedAction(
        "approve",
        "Approve",
        "The person finished here, and gets the reward.",
        _approve,
        Right.SPEND,
        needs="approve",
        is_offered=lambda participation: participation.judgement.action == reconciliation.Action.APPROVE,
        costs=lambda participation, _values: _submission(participation).posting.reward,
        stays=True,
    ),
    ConfirmedAction(
        "pay",
        "Pay what is owed",
        "A bonus on top of the reward. It is sent once, and cannot be taken back.",
        _pay,
        Right.PAY,
        needs="pay_bonuses",
        is_offered=lambda participation: bool(participation.owed),
        costs=lambda participation, _values: sum(payment.amount for payment in participation.owed),
        stays=True,
    ),
    ConfirmedAction(
        "ask-back",
        "Ask for a return",
        "The panel asks the person to return the submission. They need not, and nothing is held against them.",
        _ask_back,
        Right.RECRUIT,
        needs="ask_to_return",
        is_offered=lambda participation: participation.judgement.action == reconciliation.Action.ASK_BACK,
        stays=True,
    ),
    ConfirmedAction(
        "reject",
        "Reject",
        "The person is not paid, and it is held against them at the panel. Read the whole sitting first.",
        _reject,
        Right.RECRUIT,
        needs="reject",
        is_offered=lambda participation: participation.status == SubmissionStatus.AWAITING_REVIEW,
        form=RejectForm,
        stays=True,
    ),
)


def replay_page(request: HttpRequest, sitting: Sitting) -> HttpResponse:
    problem = instruments.problem_with(sitting.stage.study.instrument)
    participation = _participation(request, sitting)
    return admin_page(
        request,
        "sitting/replay.html",
        title=f"{sitting.respondent.pseudonym} in stage {sitting.stage.index}",
        sitting=sitting,
        problem=problem,
        replay=None if problem else replay(sitting),
        participation=participation,
        listed=_listed(request, sitting),
        actions=[
            action for action in ACTIONS if participation is not None and _may(request.user, action, participation)
        ],
    )


def person_action(request: HttpRequest, sitting: Sitting, name: str) -> HttpResponse:
    action, study = action_named(ACTIONS, name), sitting.stage.study
    if not action.is_allowed(request.user, study.pk):
        raise PermissionDenied
    participation = _participation(request, sitting)
    if participation is None or participation.submission is None:
        raise Http404
    posting = participation.submission.posting
    back = reverse("admin:survey_sitting_replay", args=[sitting.pk])
    client = panels.find(posting.panel).client
    if action.form is RejectForm and client is not None:
        action = replace(action, form=partial(RejectForm, categories=client.rejection_categories))
    confirmation = Confirmation(
        Sitting,
        f"{action.label}: {sitting.respondent.pseudonym}?",
        [(sitting.respondent.pseudonym, back)],
        back,
        facts=partial(_facts, participation),
        currency=posting.currency,
        obstacle="" if _may(request.user, action, participation) else NOT_NOW,
    )
    response = confirm(request, action, participation, confirmation)
    if request.method == "POST":
        snapshots.forget(study)
    return response


def _facts(participation: Participation) -> list[tuple[str, Any]]:
    currency = _submission(participation).posting.currency
    return [
        ("Here", participation.ours),
        ("At the panel", participation.theirs),
        ("Why", participation.why),
        *(("Owed", f"{words.money(debt.amount, currency)}: {debt.kind.label}") for debt in participation.owed),
    ]


def _participation(request: HttpRequest, sitting: Sitting) -> Participation | None:
    """What both sides say of the person; None without a submission, or for who may not see it."""
    if not rights.may(request.user, Right.SEE_POSTINGS, sitting.stage.study_id):
        return None
    rows = Submission.objects.filter(respondent=sitting.respondent_id, posting__wave=sitting.wave)
    row = rows.select_related("posting__study__bank", "posting__stage").order_by("-pk").first()
    return reconciliation.reconcile(row.posting).of(row) if row is not None else None


def _listed(request: HttpRequest, sitting: Sitting) -> str:
    """What is owed where people are paid from a list."""
    study = sitting.stage.study
    if not panels.of_study(study).pays_from_a_list or sitting.respondent.is_simulated:
        return ""
    if not rights.may(request.user, Right.SEE_POSTINGS, study.pk):
        return ""
    points = money.points_of([sitting]).get(sitting.pk, Decimal(0))
    cents = owed_list.owed_for(study, sitting, points)
    return words.money(cents, study.config.panel.currency)


def _may(user: Any, action: ConfirmedAction, participation: Participation) -> bool:
    row = participation.submission
    return (
        row is not None
        and not why_not(row.posting, action)
        and action.is_allowed(user, row.posting.study_id)
        and action.is_offered(participation)
    )
