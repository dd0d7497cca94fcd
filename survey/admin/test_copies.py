"""The page on which a study is tried out before anybody is paid: previews of its pages, and its test copy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import get_language_info

from survey.contracts import instruments
from survey.exceptions import HunchError
from survey.models import Job, Study
from survey.services.answers.blinding import shown_conditions
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.sittings import previews
from survey.services.sittings.capacity import admitting_stage, has_free_place
from survey.services.stages import test_stages
from survey.services.studies import test_copies

from .report_pages import ReportPages

__test__ = False  # Its name would make pytest collect it.


class PreviewForm(forms.Form):
    """The language and the level of each condition that the pages are shown in."""

    def __init__(self, study: Study, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="preview_%s")
        config = study.config
        conditions = shown_conditions(study)  # A blind study's are drawn, and nobody chooses them.
        self.factors = [condition.factor for condition in conditions]
        if len(config.languages) > 1:
            choices = [(code, get_language_info(code)["name_local"]) for code in config.languages]
            self.fields["language"] = forms.ChoiceField(label="Language", choices=choices)
        for condition in conditions:
            levels = [("", "as it is drawn"), *((level, level) for level in condition.levels)]
            self.fields[f"level_{condition.factor}"] = forms.ChoiceField(
                label=f"Condition {condition.factor}", choices=levels, required=False
            )

    @property
    def levels(self) -> dict[str, str]:
        """The levels that were chosen, by factor."""
        chosen = {factor: self.cleaned_data.get(f"level_{factor}", "") for factor in self.factors}
        return {factor: level for factor, level in chosen.items() if level}


class TestCopyPages(ReportPages):
    """Mixed into the study's admin."""

    __test__ = False

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/try/", wrap(self.try_view), name="survey_study_try"),
            path("<int:pk>/try/copy/<slug:what>/", wrap(self.copy_view), name="survey_study_test_copy"),
            *super().get_urls(),
        ]

    def try_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """What can be tried out. POST makes the address of a preview: a user who may not run the study gets one only
        where the copy is there and open."""
        study = self._original(request, pk)
        form = PreviewForm(study, request.POST if request.method == "POST" else None)
        address, problem = "", ""
        if request.method == "POST" and form.is_valid():
            try:
                opened = self._open_for_preview(request, study)
                root = request.build_absolute_uri("/")
                language = form.cleaned_data.get("language", "")
                address = previews.address_of(opened, root=root, language=language, levels=form.levels)
            except HunchError as exc:
                problem = exc.message
        copy = test_copies.copy_of(study)
        stages = list(copy.stages.order_by("index")) if copy else []
        return self._page(
            request,
            "try.html",
            title=f"Try out {study.slug}",
            study=study,
            form=form,
            address=address,
            holds=previews.HOLDS.days,
            problem=problem,
            copy=copy,
            stages=stages,
            people=copy.respondents.count() if copy else 0,
            is_current=copy is not None and test_copies.is_current(copy),
            may_run=rights.may(request.user, Right.RUN, study.pk),
            screens=_newest(study, "screens").filter(asked_by=request.user.pk).first(),
            dry_run=_shown_dry_run(study, copy),
            instrument_problem=instruments.problem_with(study.instrument),
        )

    def copy_view(self, request: HttpRequest, pk: int, what: str) -> HttpResponse:
        """Make, renew or delete the test copy. GET asks first: what happened in the copy is deleted with it."""
        study = self._original(request, pk, Right.RUN)
        do = ACTIONS.get(what)
        if do is None:
            return HttpResponseNotAllowed([])
        if request.method == "POST":
            try:
                messages.success(request, do(study, request.user))
            except HunchError as exc:
                messages.error(request, exc.message)
            return HttpResponseRedirect(reverse("admin:survey_study_try", args=[pk]))
        copy = test_copies.copy_of(study)
        return self._page(
            request,
            "test_copy.html",
            title=f"{what.capitalize()} the test copy of {study.slug}?",
            study=study,
            what=what,
            people=copy.respondents.count() if copy else 0,
        )

    def _original(self, request: HttpRequest, pk: int, right: Right = Right.SEE) -> Study:
        """The study; of a test copy, the study that it is a copy of."""
        study = self._study(request, pk, right)
        return study if study.test_of is None else self._study(request, study.test_of.pk, right)

    def _open_for_preview(self, request: HttpRequest, study: Study) -> Study:
        copy = test_copies.copy_of(study)
        stage = admitting_stage(copy) if copy is not None and test_copies.is_current(copy) else None
        if stage is None:
            rights.require(request.user, Right.RUN, study.pk)
            stage = test_stages.open_copy(study, by=request.user, via="admin")
        if not has_free_place(stage):
            raise HunchError(
                f"all places of stage {stage.index} of the test copy are taken: renew the test copy, or close the stage"
            )
        return stage.study


def _newest(study: Study, kind: str) -> QuerySet[Job]:
    return Job.objects.filter(study=study, kind=kind).order_by("-pk")


@dataclass(frozen=True)
class ShownDryRun:
    """A dry run as the page shows it. `lines`: what was to be made, the address of its page (empty where the copy was
    renewed since), and why it was not made."""

    job: Job
    lines: Sequence[tuple[str, str, str]]

    @property
    def unfilled(self) -> int:
        return sum(bool(why) for _title, _address, why in self.lines)


def _shown_dry_run(study: Study, copy: Study | None) -> ShownDryRun | None:
    """The newest one, no matter who asked for it: what it filled are pages of the test copy, which all members see."""
    job = _newest(study, "dry_run").select_related("asked_by").first()
    if job is None:
        return None
    key = copy.pk if copy is not None and copy.pk == job.result.get("copy") else None
    lines = [
        (entry["title"], _address_of(entry, key) if key else "", entry["why"]) for entry in job.result.get("filled", ())
    ]
    return ShownDryRun(job, lines)


def _address_of(filled: Mapping[str, str], copy: int) -> str:
    if filled["kind"] == "report":
        return reverse("admin:survey_study_report", args=[copy, filled["name"]])
    if filled["kind"] == "export":
        return reverse("admin:survey_study_change", args=[copy]) + "#export"
    return reverse(f"admin:survey_study_{filled['kind']}", args=[copy])


def _make(study: Study, user: Any) -> str:
    test_copies.make_copy(study, by=user, via="admin")
    return "The test copy is there, with the study's present file."


def _renew(study: Study, user: Any) -> str:
    test_copies.renew_copy(study, by=user, via="admin")
    return "The test copy is new: nothing has happened in it yet."


def _delete(study: Study, user: Any) -> str:
    people = test_copies.delete_copy(study, by=user, via="admin")
    return f"The test copy is deleted, with {people} people."


ACTIONS: Mapping[str, Callable[[Study, Any], str]] = {"make": _make, "renew": _renew, "delete": _delete}
