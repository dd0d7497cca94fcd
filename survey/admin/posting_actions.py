"""What is done to a posting at its panel, each after a page has asked. What costs money needs the sum to be typed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PostingState
from survey.figures.words import date_and_time
from survey.figures.words import money as in_words
from survey.models import PaymentBatch, Posting
from survey.panels import money, postings, reconciliation, submissions
from survey.panels.asking import can_ask, state_of
from survey.panels.postings import Move
from survey.panels.reconciliation import Reconciliation
from survey.services.base.rights import Right

from .confirming import NOT_NOW, ConfirmedAction, about, action_named, confirm

MAX_PLACES = 100_000


@dataclass(frozen=True)
class PostingFacts:
    """A posting, and what both sides say of its people once that is asked for."""

    posting: Posting

    @cached_property
    def reconciled(self) -> Reconciliation:
        return reconciliation.reconcile(self.posting)

    @property
    def state(self) -> PostingState:
        return state_of(self.posting)


class ScheduleForm(forms.Form):
    at = forms.DateTimeField(
        label="When (UTC)",
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"],
        help_text="Such as 2027-01-31 09:00.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    def clean_at(self) -> datetime:
        at: datetime = self.cleaned_data["at"].replace(tzinfo=UTC)
        if at <= timezone.now():
            raise forms.ValidationError("This is past: name a later time.")
        return at


class PlacesForm(forms.Form):
    more = forms.IntegerField(min_value=1, max_value=MAX_PLACES, label="Places to add")


class OutcomeForm(forms.Form):
    said = forms.CharField(widget=forms.HiddenInput)


def _read(facts: PostingFacts, **by: Any) -> str:
    return f"{submissions.read_posting(facts.posting)} submissions read."


def _publish(facts: PostingFacts, **by: Any) -> str:
    postings.publish(facts.posting, **by)
    return "Published: the panel shows it to people now."


def _changing(service: Callable[..., Posting], *more: Any) -> Callable[..., str]:
    """What the service changes at the panel, and what the panel says after it."""

    def do(facts: PostingFacts, **by: Any) -> str:
        return f"The panel says {service(facts.posting, *more, **by).state} now."

    return do


def _approve(facts: PostingFacts, **by: Any) -> str:
    return f"{reconciliation.approve_finished(facts.posting, **by)} submissions approved."


def _ask_back(facts: PostingFacts, **by: Any) -> str:
    return f"{reconciliation.ask_back(facts.posting, **by)} people asked to return."


def _pay(facts: PostingFacts, **by: Any) -> str:
    people = sum(batch.payments.count() for batch in money.pay_owed(facts.posting, **by))
    return f"{people} bonuses paid."


def _schedule(facts: PostingFacts, *, at: datetime, **by: Any) -> str:
    made = postings.schedule(facts.posting, at, **by)
    return f"The panel shows it to people from {date_and_time(at)} on; it says {made.state} now."


def _add_places(facts: PostingFacts, *, more: int, **by: Any) -> str:
    return f"It has {postings.add_places(facts.posting, more, **by).places} places now."


def _settle(batch: PaymentBatch, *, said: str, cents: int, **by: Any) -> str:
    money.settle(batch, was_paid=said == "paid", **by)
    return "Written down."


def _cost_of_more(facts: PostingFacts, values: Mapping[str, Any]) -> int | None:
    return postings.cost_of_more(facts.posting, values["more"]) if values else None


def _sum_of(batch: PaymentBatch, _values: Mapping[str, Any]) -> int:
    return batch.payments.aggregate(sum=Sum("amount"))["sum"] or 0


ACTIONS = (
    ConfirmedAction(
        "read",
        "Read the panel now",
        "Asks the panel for every submission. The workers do so every five minutes by themselves.",
        _read,
        Right.RECRUIT,
        needs="submissions",
    ),
    ConfirmedAction(
        "publish",
        "Publish",
        "The panel shows the study to people, and its places may cost their reward from now on.",
        _publish,
        Right.SPEND,
        needs="publish",
        is_offered=lambda facts: facts.posting.published_at is None,
        costs=lambda facts, _values: facts.posting.cost,
    ),
    ConfirmedAction(
        "unschedule",
        "Take the schedule back",
        "The posting is a draft again: the panel does not show it by itself, and it costs nothing.",
        _changing(postings.unschedule),
        Right.RECRUIT,
        needs="unschedule",
        is_offered=lambda facts: facts.state == PostingState.SCHEDULED,
    ),
    ConfirmedAction(
        "pause",
        "Pause",
        "The panel sends nobody else. Those inside finish.",
        _changing(postings.change, Move.PAUSE),
        Right.RECRUIT,
        needs="pause",
        is_offered=lambda facts: facts.state == PostingState.ACTIVE,
    ),
    ConfirmedAction(
        "start",
        "Start",
        "The panel goes on sending people.",
        _changing(postings.change, Move.START),
        Right.RECRUIT,
        needs="start",
        is_offered=lambda facts: facts.state == PostingState.PAUSED,
    ),
    ConfirmedAction(
        "stop",
        "Stop",
        "The panel ends the study for good: it sends nobody else, and cannot be started again.",
        _changing(postings.change, Move.STOP),
        Right.RECRUIT,
        needs="stop",
        is_offered=lambda facts: (
            facts.posting.published_at is not None and facts.state not in (PostingState.COMPLETED, PostingState.UNKNOWN)
        ),
        is_final=True,
    ),
    ConfirmedAction(
        "approve",
        "Approve those who finished",
        "Everybody who finished here and waits for review is approved and gets the reward. The panel's fee comes on "
        "top.",
        _approve,
        Right.SPEND,
        needs="approve",
        is_offered=lambda facts: bool(facts.reconciled.to(reconciliation.Action.APPROVE)),
        costs=lambda facts, _values: reconciliation.cost_of_approving(facts.reconciled),
    ),
    ConfirmedAction(
        "ask-back",
        "Ask for returns",
        "Everybody who handed in without finishing is asked to return the submission, each person once.",
        _ask_back,
        Right.RECRUIT,
        needs="ask_to_return",
        is_offered=lambda facts: bool(facts.reconciled.to(reconciliation.Action.ASK_BACK)),
    ),
    ConfirmedAction(
        "pay",
        "Pay what is owed",
        "Bonuses to everybody who is owed one. They are sent once, and cannot be taken back. The panel's fee comes on "
        "top.",
        _pay,
        Right.PAY,
        needs="pay_bonuses",
        is_offered=lambda facts: facts.reconciled.owed_cents > 0,
        costs=lambda facts, _values: facts.reconciled.owed_cents,
    ),
)
SCHEDULE = ConfirmedAction(
    "schedule",
    "Publish later",
    "The panel shows the study to people from that time on, by itself. What it may cost counts as spent from now on. "
    "You can take the schedule back until then.",
    _schedule,
    Right.SPEND,
    needs="schedule",
    is_offered=lambda facts: facts.posting.published_at is None,
    form=ScheduleForm,
    costs=lambda facts, _values: facts.posting.cost,
    can_be_taken_back=True,
    button="Schedule it",
    refused="Schedule: ",
)
PLACES = ConfirmedAction(
    "places",
    "More places",
    "Offers more places at the panel. They can only be added. A posting whose places were all used is started again.",
    _add_places,
    Right.SPEND,
    needs="set_places",
    is_offered=lambda facts: facts.state != PostingState.COMPLETED,
    form=PlacesForm,
    costs=_cost_of_more,
    ask_price=lambda facts: postings.ask_price(facts.posting),
    button="Add the places",
)
# What somebody saw at the panel about a payment whose outcome is unknown.
OUTCOMES = tuple(
    ConfirmedAction(
        said,
        label,
        f"{what_follows} Say it only if you saw it at the panel.",
        _settle,
        Right.PAY,
        form=partial(OutcomeForm, initial={"said": said}),
        costs=_sum_of,
        refused="Payment: ",
    )
    for said, label, what_follows in (
        ("paid", "It was paid", "The bonuses count as paid from now on."),
        ("not-paid", "It was not paid", "The bonuses are owed again, and the next payment sends them again."),
    )
)


def why_not(posting: Posting, action: ConfirmedAction) -> str:
    """Why the panel cannot be asked for the action; empty if it can."""
    panel = panels.find(posting.panel)
    if not posting.external_id:
        return "The posting is not at the panel yet."
    if panel.client is None or not can_ask(posting.panel):
        return panel.problem or "The panel cannot be asked: a setting for it is missing."
    return "" if panel.client.can(action.needs) else f"{panel.title} has no call for this: do it on the panel's pages."


def is_offered(user: Any, facts: PostingFacts, action: ConfirmedAction) -> bool:
    posting = facts.posting
    return not why_not(posting, action) and action.is_allowed(user, posting.study_id) and action.is_offered(facts)


def offered(user: Any, facts: PostingFacts) -> Sequence[tuple[ConfirmedAction, str]]:
    """What the user can do to the posting now, and the address that asks."""
    key = facts.posting.pk
    addresses = [(action, reverse("admin:survey_posting_action", args=[key, action.name])) for action in ACTIONS]
    addresses += [(action, reverse(f"admin:survey_posting_{action.name}", args=[key])) for action in (SCHEDULE, PLACES)]
    return [(action, address) for action, address in addresses if is_offered(user, facts, action)]


# Views


def posting_action(request: HttpRequest, posting: Posting, name: str) -> HttpResponse:
    return confirm_for(request, posting, action_named(ACTIONS, name))


def payment(request: HttpRequest, posting: Posting, batch: int) -> HttpResponse:
    """Store what somebody saw at the panel about a payment whose outcome is unknown."""
    payment_batch = PaymentBatch.objects.filter(posting=posting, pk=batch).first()
    if payment_batch is None:
        raise Http404
    action = action_named(OUTCOMES, (request.POST if request.method == "POST" else request.GET).get("said", ""))
    confirmation = about(
        posting,
        f"{action.label}: {payment_batch}?",
        here=f"payment {payment_batch.pk}",
        currency=posting.currency,
    )
    return confirm(request, action, payment_batch, confirmation)


def confirm_for(request: HttpRequest, posting: Posting, action: ConfirmedAction) -> HttpResponse:
    if not action.is_allowed(request.user, posting.study_id):
        raise PermissionDenied
    facts, obstacle = PostingFacts(posting), ""
    if request.method != "POST":  # What is sent is refused by the services, which look at the panel.
        obstacle = why_not(posting, action) or ("" if action.is_offered(facts) else NOT_NOW)
    confirmation = about(
        posting,
        f"{action.label}: {posting}?",
        facts=partial(_facts, facts),
        currency=posting.currency,
        obstacle=obstacle,
    )
    return confirm(request, action, facts, confirmation)


def committed_in_words(posting: Posting) -> str:
    cap = posting.study.config.panel.spending_cap
    limit = "no cap, so that nothing can be spent" if cap is None else in_words(cap)
    return f"{in_words(money.committed(posting.study))} of {limit}"


def _facts(facts: PostingFacts) -> list[tuple[str, Any]]:
    posting, reconciled = facts.posting, facts.reconciled
    return [
        ("At the panel", posting.state or "not there yet"),
        ("Places", f"{posting.places} at {in_words(posting.reward, posting.currency)}"),
        ("What it may cost, fees and VAT included", in_words(posting.cost, posting.currency)),
        ("Committed so far", committed_in_words(posting)),
        ("Submissions", f"{len(reconciled.findings)}, {len(reconciled.differences)} to settle"),
        ("Owed on top of the rewards", in_words(reconciled.owed_cents, posting.currency)),
    ]
