"""Pages that make a posting: drafting one at the panel, taking up one that was made there, and rehearsing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from survey.admin_base.read_only_admin import admin_page
from survey.contracts import panels
from survey.exceptions import HunchError
from survey.models import Stage, Study
from survey.panels import money, posting_checks, postings, rehearsals
from survey.panels.addresses import public_root
from survey.panels.asking import can_ask
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.sittings.hourly_pay import hourly_pay

MAX_PLACES = 100_000
MAX_CENTS = 1_000_000


class StageForm(forms.Form):
    """Which stage people are sent to."""

    stage = forms.TypedChoiceField(label="Stage", coerce=int)

    def __init__(self, study: Study, data: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.stages = {
            stage.index: stage
            for stage in study.stages.select_related("study__bank").order_by("index")
            if stage.state not in (Stage.State.CLOSING, Stage.State.FROZEN)
        }
        field: Any = self.fields["stage"]
        field.choices = [(index, f"{index}, {stage.get_state_display()}") for index, stage in self.stages.items()]

    @property
    def chosen(self) -> Stage:
        return self.stages[self.cleaned_data["stage"]]


class DraftForm(StageForm):
    places = forms.IntegerField(min_value=1, max_value=MAX_PLACES, help_text="More can be added later, never fewer.")
    reward = forms.IntegerField(
        min_value=1,
        max_value=MAX_CENTS,
        help_text="For each person, in cents or pence.",
    )
    root = forms.RegexField(
        r"^https?://[^\s/?#]+/?$",
        label="Address of this server",
        help_text="Scheme and host under which people reach it, such as https://study.example.org.",
        error_messages={"invalid": "Write scheme and host alone, such as https://study.example.org."},
    )


class AdoptForm(StageForm):
    external_id = forms.CharField(
        max_length=64, strip=True, label="The panel's id", help_text="Of the study, as its page at the panel shows it."
    )


@dataclass(frozen=True)
class Outlook:
    """What a draft would be, before the panel is asked: whether it could be published, and what it may cost."""

    checks: list[posting_checks.PostingCheck]
    cents: int
    committed: int
    cap: int | None
    pay: Any
    fees: Any

    @property
    def stops(self) -> int:
        return sum(bool(check.problem) and check.stops for check in self.checks)


def outlook_of(stage: Stage, *, places: int, reward: int) -> Outlook:
    study = stage.study
    return Outlook(
        checks=posting_checks.checks(stage, places=places, reward=reward),
        cents=posting_checks.cost_of(study, places, reward),
        committed=money.committed(study),
        cap=study.config.panel.spending_cap,
        pay=hourly_pay(study, reward=reward),
        fees=money.fees_expected(study),
    )


def may_draft(user: Any, study: Study) -> bool:
    """Whether the user is offered to post the study."""
    has_client = panels.of_study(study).client is not None
    return has_client and not study.is_test and rights.may(user, Right.RECRUIT, study.pk)


def draft(request: HttpRequest, study: int) -> HttpResponse:
    """The first button says what would happen; only the second one makes the draft. Nobody sees it at the panel
    until somebody who may spend publishes it."""
    visible_study = _study(request, study)
    if why := _without_a_panel(visible_study):
        return _not_posted(request, visible_study, why)
    first = _next_stage(visible_study)
    panel = visible_study.config.panel
    initial = {
        "stage": first.index if first else None,
        "places": postings.places_of(first) if first else None,
        "reward": panel.reward,
        "root": public_root(),
    }
    form = DraftForm(visible_study, request.POST if request.method == "POST" else None, initial=initial)
    outlook, problem = None, ""
    if request.method == "POST" and form.is_valid():
        places, reward = form.cleaned_data["places"], form.cleaned_data["reward"]
        if "draft" in request.POST:
            try:
                made = postings.draft(
                    form.chosen,
                    places=places,
                    reward=reward,
                    root=form.cleaned_data["root"].rstrip("/"),
                    by=request.user,
                    via="admin",
                )
            except HunchError as exc:
                problem = exc.message
            else:
                messages.success(request, f"The draft is at the panel, with {made.places} places.")
                return HttpResponseRedirect(reverse("admin:survey_posting_change", args=[made.pk]))
        outlook = outlook_of(form.chosen, places=places, reward=reward)
    elif request.method != "POST" and first is not None and panel.reward is not None:
        outlook = outlook_of(first, places=int(initial["places"] or 0), reward=panel.reward)
    return admin_page(
        request,
        "posting/draft.html",
        title=f"Draft a posting of {visible_study.slug}",
        study=visible_study,
        form=form,
        outlook=outlook,
        problem=problem,
        currency=panel.currency,
        panel=panels.of_study(visible_study),
        can_be_asked=can_ask(panel.kind),
        is_over=first is None,
        may_adopt=rights.may(request.user, Right.SPEND, visible_study.pk),
    )


def adopt(request: HttpRequest, study: int) -> HttpResponse:
    """Take up a study that somebody made on the panel's own pages."""
    visible_study = _study(request, study)
    # It may be anybody's study of the account, with money in it, and can then be stopped from here.
    rights.require(request.user, Right.SPEND, visible_study.pk)
    if why := _without_a_panel(visible_study):
        return _not_posted(request, visible_study, why)
    first = _next_stage(visible_study)
    initial = {"stage": first.index if first else None}
    form = AdoptForm(visible_study, request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            made = postings.adopt(form.chosen, form.cleaned_data["external_id"], by=request.user, via="admin")
        except HunchError as exc:
            form.add_error("external_id", exc.message)
        else:
            messages.success(request, "The panel's study is a posting now.")
            return HttpResponseRedirect(reverse("admin:survey_posting_change", args=[made.pk]))
    return admin_page(
        request,
        "posting/adopt.html",
        title=f"Take up a study of the panel for {visible_study.slug}",
        study=visible_study,
        form=form,
        panel=panels.of_study(visible_study),
        can_be_asked=can_ask(visible_study.config.panel.kind),
        is_over=first is None,
    )


def rehearse(request: HttpRequest, study: int) -> HttpResponse:
    """The whole life once at the panel, by a test participant and without money. GET shows how far it is."""
    visible_study = _study(request, study)
    if why := _without_a_panel(visible_study):
        return _not_posted(request, visible_study, why, "rehearsed")
    client = panels.of_study(visible_study).client
    begun, problem = rehearsals.newest(visible_study), ""
    if request.method == "POST":
        try:
            if begun is None or "begin" in request.POST:
                root = request.build_absolute_uri("/").rstrip("/")
                begun = rehearsals.begin(visible_study, root=root, by=request.user, via="admin")
            rehearsals.look(begun, by=request.user, via="admin")
        except HunchError as exc:
            problem = exc.message
        else:
            return HttpResponseRedirect(reverse("admin:survey_posting_rehearse", args=[visible_study.pk]))
    return admin_page(
        request,
        "posting/rehearse.html",
        title=f"Rehearse {visible_study.slug}",
        study=visible_study,
        begun=begun,
        steps=rehearsals.steps_of(begun) if begun is not None else (),
        problem=problem,
        panel=panels.of_study(visible_study),
        can_be_asked=can_ask(visible_study.config.panel.kind) and client is not None and client.can("rehearse"),
    )


def _not_posted(request: HttpRequest, study: Study, why: str, what: str = "posted") -> HttpResponse:
    title = f"{study.slug} is not {what}"
    return admin_page(request, "posting/no_panel.html", title=title, study=study, why=why)


def _study(request: HttpRequest, pk: int) -> Study:
    visible_study = rights.visible(request.user, Study.objects.select_related("bank")).filter(pk=pk).first()
    if visible_study is None:
        raise Http404
    rights.require(request.user, Right.RECRUIT, visible_study.pk)
    return visible_study


def _next_stage(study: Study) -> Stage | None:
    over = (Stage.State.CLOSING, Stage.State.FROZEN)
    return study.stages.select_related("study__bank").exclude(state__in=over).order_by("index").first()


def _without_a_panel(study: Study) -> str:
    """Why the study can never be posted; empty if it can."""
    if study.is_test:
        return "This is a test copy, which is never posted. Post the study itself."
    panel = panels.of_study(study)
    if panel.client is None:
        return f'The study file says panel.kind = "{panel.name}", which has no panel that the study could be posted at.'
    return ""
