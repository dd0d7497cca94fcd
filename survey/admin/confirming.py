"""What somebody does after a page has asked: one page says what follows from an action, and does it once it is sent.

What costs money is done only by the person who types the sum as it is at that moment: it may have grown since the page
was made. The services do it once, however often a page is sent, and write the audit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from survey.admin_base.read_only_admin import Links, admin_page
from survey.exceptions import HunchError
from survey.figures.words import money
from survey.services.base import rights
from survey.services.base.rights import Right

NOT_NOW = "It cannot be done now: the page before says what can."


class WordsField(forms.CharField):
    """Words that a service judges; the database has no place for the character NUL."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, strip=False, **options)

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\x00", "")


@dataclass(frozen=True)
class ConfirmedAction:
    """Something that is done to a stage, a posting, a person, ... after a page has asked.

    Attributes:
        name: in the address of the page that asks.
        label: on the button that leads to the page.
        explanation: the sentences that say what follows from it.
        do: does it by a service. It gets the subject, then by name who does it and from where (`by`, `via`, for the
            audit), the sum that was typed (`cents`) if it costs money, and the values of the form. It gives the
            message for who did it, or a file.
        right: what it needs in the study, besides what its page needs.
        is_offered: whether it can be done to the subject as it is now.
        needs: the call of the panel's API that it needs.
        form: what is asked on the page. Its first argument is what was sent.
        costs: how many cents it moves, of the subject and the form's values; None as long as the form has to say it.
            The person who does it types the sum, and `do` does it for no other one.
        can_be_taken_back: whether the sum only counts as spent until somebody takes it back.
        is_final: whether it cannot be undone, apart from the money that it moves.
        button: on the button that does it; the label if left empty.
        ask_price: where the form decides what it costs, what makes sure of the price before the sum is asked for.
        refused: what stands before the words of a refusal; the label with a colon if left out.
        stays: whether a refusal is shown on the page that asked, with what was written there.
    """

    name: str
    label: str
    explanation: str
    do: Callable[..., str | HttpResponse]
    right: Right | None = None
    is_offered: Callable[..., bool] = lambda subject: True
    needs: str = ""
    form: Callable[[Mapping[str, Any] | None], forms.Form] | None = None
    costs: Callable[[Any, Mapping[str, Any]], int | None] | None = None
    can_be_taken_back: bool = False
    is_final: bool = False
    button: str = ""
    ask_price: Callable[[Any], object] | None = None
    refused: str | None = None
    stays: bool = False

    def is_allowed(self, user: Any, study: int) -> bool:
        return self.right is None or rights.may(user, self.right, study)

    @property
    def stands_out(self) -> bool:
        """Whether the button that leads to it has the colour of what cannot be undone."""
        return self.is_final or self.costs is not None


@dataclass(frozen=True)
class Confirmation:
    """The page that asks about an action.

    Attributes:
        model: the kind of rows among whose pages it stands.
        title: its title.
        trail: the pages above it, as text and address.
        back: the address to go back to.
        facts: what is known now, each with its name. Made only when the page is shown.
        notes: sentences below the facts.
        here: its own place in the trail; the action's label if left empty.
        then: the address to go to when it is done or refused, where that is another one.
        cancel: on the button that leads back.
        currency: of the sum.
        obstacle: why the action cannot be done now, which the page says in place of asking; empty if it can.
    """

    model: type[Model]
    title: str
    trail: Sequence[tuple[str, str]]
    back: str
    facts: Callable[[], Iterable[tuple[str, Any]]] = tuple
    notes: Sequence[str] = ()
    here: str = ""
    then: str = ""
    cancel: str = "Back, change nothing"
    currency: str = ""
    obstacle: str = ""


def doing(service: Callable[..., Any], message: str, **options: Any) -> Callable[..., str]:
    """What a service does to the subject, and the message after it, in which {0} is the subject."""

    def do(subject: Any, **by: Any) -> str:
        service(subject, **options, **by)
        return message.format(subject)

    return do


def offers(action: ConfirmedAction) -> Links:
    """The link to the page that asks, while the action can be done to the row."""
    return lambda user, row: [(action.label, ())] if action.is_offered(row) else []


def about(row: Model, title: str, **more: Any) -> Confirmation:
    """The confirmation about a row that leads back to the row's own page."""
    address = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
    return Confirmation(type(row), title, [(str(row), address)], address, **more)


def action_named(actions: Iterable[ConfirmedAction], name: str) -> ConfirmedAction:
    """
    Raises:
        Http404: there is no such action.
    """
    action = next((candidate for candidate in actions if candidate.name == name), None)
    if action is None:
        raise Http404
    return action


def confirm(request: HttpRequest, action: ConfirmedAction, subject: Any, confirmation: Confirmation) -> HttpResponse:
    """GET asks, POST does it. The page asks again where a field is wrong or the sum is not what was typed."""
    form = action.form(request.POST if request.method == "POST" else None) if action.form is not None else None
    is_sent = request.method == "POST" and not confirmation.obstacle and (form is None or form.is_valid())
    values = form.cleaned_data if form is not None and is_sent else {}
    cents, error = None, ""
    try:
        if is_sent and action.ask_price is not None and "sum" not in request.POST:
            action.ask_price(subject)
            is_sent = False  # The page says the price, and asks for the sum.
        if action.costs is not None:
            cents = action.costs(subject, values)
        if is_sent and cents is not None:
            error = sum_error(request, cents, confirmation.currency)
        if is_sent and not error:
            agreed = {} if cents is None else {"cents": cents}
            outcome = action.do(subject, by=request.user, via="admin", **agreed, **values)
            if isinstance(outcome, HttpResponse):
                return outcome
            messages.success(request, outcome)
            return HttpResponseRedirect(confirmation.then or confirmation.back)
    except HunchError as exc:
        if not action.stays:
            before = f"{action.label}: " if action.refused is None else action.refused
            messages.error(request, f"{before}{exc.message}")
            return HttpResponseRedirect(confirmation.then or confirmation.back)
        error = exc.message
    return admin_page(
        request,
        "confirm.html",
        of=confirmation.model,
        title=confirmation.title,
        action=action,
        confirmation=confirmation,
        facts=confirmation.facts(),
        form=form,
        cents=cents,
        says_price=action.ask_price is not None and cents is None,
        error=error,
    )


def sum_error(request: HttpRequest, cents: int, currency: str) -> str:
    """Empty if the sum that was typed is what it costs now."""
    wanted = money(cents)
    typed = request.POST.get("sum", "").replace(currency, "").replace(",", ".").strip()
    return "" if typed == wanted else f"Type the sum as it is now: {wanted}. Nothing was done."
