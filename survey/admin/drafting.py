"""Pages that make a posting: drafting one at the panel, taking up one that was made there, and offering more places."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from survey.contracts import panels
from survey.exceptions import HunchError
from survey.models import Posting, Stage, Study
from survey.panels import money, posting_checks, postings, rehearsals
from survey.panels.addresses import public_root
from survey.panels.asking import can_ask
from survey.read_only_admin import ReadOnlyAdmin
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.sittings.hourly_pay import hourly_pay

from .sums import sum_error

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


class PostingPages(ReadOnlyAdmin):
    """What all pages of postings share."""

    def _require(self, request: HttpRequest, right: Right, posting: Posting) -> None:
        rights.require(request.user, right, posting.study_id)
        if not self.has_view_permission(request, posting):
            raise PermissionDenied

    def _act(self, request: HttpRequest, posting: Posting, label: str, act: Callable[[], str]) -> HttpResponse:
        try:
            messages.success(request, act())
        except HunchError as exc:
            messages.error(request, f"{label}: {exc.message}")
        return HttpResponseRedirect(reverse("admin:survey_posting_change", args=[posting.pk]))

    def _posting(self, request: HttpRequest, pk: Any) -> Posting:
        rows = self.visible_to(request.user, Posting.objects.select_related("study__bank", "stage__study"))
        posting: Posting | None = rows.filter(pk=pk).first() if str(pk).isdecimal() else None
        if posting is None:
            raise Http404
        return posting

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/survey/posting/{template}",
            {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media, **context},
        )


class DraftingPages(PostingPages):
    """Mixed into the postings' admin."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("draft/<int:study>/", wrap(self.draft_view), name="survey_posting_draft"),
            path("adopt/<int:study>/", wrap(self.adopt_view), name="survey_posting_adopt"),
            path("rehearse/<int:study>/", wrap(self.rehearse_view), name="survey_posting_rehearse"),
            path("<int:pk>/places/", wrap(self.places_view), name="survey_posting_places"),
            path("<int:pk>/schedule/", wrap(self.schedule_view), name="survey_posting_schedule"),
            *super().get_urls(),
        ]

    def draft_view(self, request: HttpRequest, study: int) -> HttpResponse:
        """The first button says what would happen; only the second one makes the draft. Nobody sees it at the panel
        until somebody who may spend publishes it."""
        visible_study = self._study(request, study)
        if why := _without_a_panel(visible_study):
            return self._page(
                request, "no_panel.html", title=f"{visible_study.slug} is not posted", study=visible_study, why=why
            )
        first = self._next_stage(visible_study)
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
        return self._page(
            request,
            "draft.html",
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

    def adopt_view(self, request: HttpRequest, study: int) -> HttpResponse:
        """Take up a study that somebody made on the panel's own pages."""
        visible_study = self._study(request, study)
        # It may be anybody's study of the account, with money in it, and can then be stopped from here.
        rights.require(request.user, Right.SPEND, visible_study.pk)
        if why := _without_a_panel(visible_study):
            return self._page(
                request, "no_panel.html", title=f"{visible_study.slug} is not posted", study=visible_study, why=why
            )
        first = self._next_stage(visible_study)
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
        return self._page(
            request,
            "adopt.html",
            title=f"Take up a study of the panel for {visible_study.slug}",
            study=visible_study,
            form=form,
            panel=panels.of_study(visible_study),
            can_be_asked=can_ask(visible_study.config.panel.kind),
            is_over=first is None,
        )

    def rehearse_view(self, request: HttpRequest, study: int) -> HttpResponse:
        """The whole life once at the panel, by a test participant and without money. GET shows how far it is."""
        visible_study = self._study(request, study)
        if why := _without_a_panel(visible_study):
            return self._page(
                request, "no_panel.html", title=f"{visible_study.slug} is not rehearsed", study=visible_study, why=why
            )
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
        return self._page(
            request,
            "rehearse.html",
            title=f"Rehearse {visible_study.slug}",
            study=visible_study,
            begun=begun,
            steps=rehearsals.steps_of(begun) if begun is not None else (),
            problem=problem,
            panel=panels.of_study(visible_study),
            can_be_asked=can_ask(visible_study.config.panel.kind) and client is not None and client.can("rehearse"),
        )

    def places_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Offer more places. The first button says what they cost; only a person who then types the sum offers them."""
        posting = self._posting(request, pk)
        self._require(request, Right.SPEND, posting)
        form = PlacesForm(request.POST if request.method == "POST" else None)
        cents, error = None, ""
        if request.method == "POST" and form.is_valid():
            more = form.cleaned_data["more"]
            if "add" not in request.POST:
                try:
                    postings.ask_price(posting)
                except HunchError as exc:
                    messages.error(request, f"More places: {exc.message}")
                    return HttpResponseRedirect(reverse("admin:survey_posting_change", args=[posting.pk]))
            cents = agreed = postings.cost_of_more(posting, more)
            error = sum_error(request, cents, posting.currency) if "add" in request.POST else ""
            if "add" in request.POST and not error:
                return self._act(
                    request, posting, "More places", lambda: _more_places(posting, more, agreed, request.user)
                )
        return self._page(
            request,
            "places.html",
            title=f"More places: {posting}",
            posting=posting,
            form=form,
            cents=cents,
            error=error,
            committed=money.committed(posting.study),
            cap=posting.study.config.panel.spending_cap,
        )

    def schedule_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Have the panel show it from a time on. Only a person who types the sum schedules it: it counts from now
        on."""
        posting = self._posting(request, pk)
        self._require(request, Right.SPEND, posting)
        form = ScheduleForm(request.POST if request.method == "POST" else None)
        error = ""
        if request.method == "POST" and form.is_valid():
            agreed = posting.cost
            error = sum_error(request, agreed, posting.currency)
            if not error:
                at = form.cleaned_data["at"]
                return self._act(request, posting, "Schedule", lambda: _scheduled(posting, at, agreed, request.user))
        return self._page(
            request,
            "schedule.html",
            title=f"Schedule: {posting}",
            posting=posting,
            form=form,
            error=error,
            committed=money.committed(posting.study),
            cap=posting.study.config.panel.spending_cap,
        )

    def _study(self, request: HttpRequest, pk: int) -> Study:
        visible_study = rights.visible(request.user, Study.objects.select_related("bank")).filter(pk=pk).first()
        if visible_study is None:
            raise Http404
        rights.require(request.user, Right.RECRUIT, visible_study.pk)
        return visible_study

    @staticmethod
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


def _scheduled(posting: Posting, at: datetime, cents: int, user: Any) -> str:
    made = postings.schedule(posting, at, cents=cents, by=user, via="admin")
    return f"The panel shows it to people from {at:%Y-%m-%d %H:%M} UTC on; it says {made.state} now."


def _more_places(posting: Posting, more: int, cents: int, user: Any) -> str:
    made = postings.add_places(posting, more, cents=cents, by=user, via="admin")
    return f"It has {made.places} places now."
