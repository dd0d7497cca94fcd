"""Where a study's alerts are sent: receivers are added, tried and switched off, with what each was sent."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse

from survey.admin_base.read_only_admin import admin_page
from survey.exceptions import FieldErrors, HunchError
from survey.models import Receiver, Study
from survey.operation import deliveries, outbound, receivers

SHOWN = 50  # deliveries on a receiver's page


class ReceiverForm(forms.Form):
    kind = forms.ChoiceField(choices=Receiver.Kind.choices)
    address = forms.CharField(
        max_length=outbound.LONGEST_ADDRESS,
        help_text="For a webhook https://HOST/PATH, which must be public; for e-mail one address.",
    )
    causes = forms.MultipleChoiceField(
        label="Tell it of",
        choices=[(cause.value, str(cause.label).capitalize()) for cause in receivers.OFFERED],
        initial=[cause.value for cause in receivers.OFFERED],
        widget=forms.CheckboxSelectMultiple,
    )


def page(request: HttpRequest, study: Study) -> HttpResponse:
    """The list, and the form for a new one. Its secret is shown in the answer itself, once."""
    form = ReceiverForm(request.POST if request.method == "POST" else None)
    made, secret = None, ""
    if request.method == "POST" and form.is_valid():
        try:
            made, secret = receivers.add(study, **form.cleaned_data, by=request.user, via="admin")
        except FieldErrors as exc:
            for name, words in exc.errors.items():
                form.add_error(name if name in form.fields else None, list(words))
        except HunchError as exc:
            form.add_error(None, exc.message)
        else:
            form = ReceiverForm()
    return admin_page(
        request,
        "study/receivers.html",
        title=f"Alert receivers of {study.slug}",
        study=study,
        rows=study.receivers.select_related("created_by"),
        form=form,
        made=made,
        secret=secret,
        signature_header=deliveries.channels.SIGNATURE_HEADER,
    )


def receiver_page(request: HttpRequest, study: Study, receiver: int) -> HttpResponse:
    own_receiver = _receiver(study, receiver)
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    return admin_page(
        request,
        "study/receiver.html",
        title=str(own_receiver),
        study=own_receiver.study,
        receiver=own_receiver,
        causes=[receivers.Cause(cause).label for cause in own_receiver.causes],
        rows=own_receiver.deliveries.all()[:SHOWN],
        most=SHOWN,
    )


def receiver_action(request: HttpRequest, study: Study, receiver: int, name: str) -> HttpResponse:
    """By POST: send a test event, switch it on or off, remove it."""
    own_receiver = _receiver(study, receiver)
    if name not in ("test", "on", "off", "remove"):
        raise Http404
    by: dict[str, Any] = {"by": request.user, "via": "admin"}
    try:
        if name == "remove":
            receivers.remove(own_receiver, **by)
            messages.success(request, f"{own_receiver} is removed, with the list of what it was sent.")
            return HttpResponseRedirect(reverse("admin:survey_study_receivers", args=[study.pk]))
        if name == "test":
            deliveries.send_test(own_receiver, **by)
            messages.success(request, "A test event is sent within some seconds. Reload this page to see it.")
        elif receivers.switch(own_receiver, on=name == "on", why="by a person", **by):
            messages.success(request, f"It is switched {name}.")
    except HunchError as exc:
        messages.error(request, exc.message)
    return HttpResponseRedirect(reverse("admin:survey_study_receiver", args=[study.pk, receiver]))


def _receiver(study: Study, receiver: int) -> Receiver:
    own_receiver = study.receivers.select_related("study").filter(pk=receiver).first()
    if own_receiver is None:
        raise Http404
    return own_receiver
