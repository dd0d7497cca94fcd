"""The page on which a study is tried out before anybody is paid: previews of its pages, and its test copy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils.translation import get_language_info

from survey.admin_base.read_only_admin import admin_page
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

from .confirming import ConfirmedAction, about, action_named, confirm, doing
from .study_file import readable_study

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


def try_page(request: HttpRequest, study: Study) -> HttpResponse:
    """What can be tried out. POST makes the address of a preview: who may not run the study gets one only where
    the copy is there and open."""
    study = _original(request, study)
    form = PreviewForm(study, request.POST if request.method == "POST" else None)
    address, problem = "", ""
    if request.method == "POST" and form.is_valid():
        try:
            opened = _open_for_preview(request, study)
            root = request.build_absolute_uri("/")
            language = form.cleaned_data.get("language", "")
            address = previews.address_of(opened, root=root, language=language, levels=form.levels)
        except HunchError as exc:
            problem = exc.message
    copy = test_copies.copy_of(study)
    stages = list(copy.stages.order_by("index")) if copy else []
    return admin_page(
        request,
        "study/try.html",
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


def copy_page(request: HttpRequest, study: Study, what: str) -> HttpResponse:
    """Make, renew or delete the test copy: what happened in the copy is deleted with it."""
    study, action = _original(request, study), action_named(ACTIONS, what)
    rights.require(request.user, Right.RUN, study.pk)
    copy = test_copies.copy_of(study)
    people = copy.respondents.count() if copy else 0
    people_in_words = f"{people} {pluralize(people, 'person,people')}"
    page = reverse("admin:survey_study_try", args=[study.pk])
    confirmation = about(study, f"{action.label} the test copy of {study.slug}?")
    explanation = action.explanation.format(people=people_in_words)
    action = replace(action, explanation=explanation, button=f"{action.label} it", refused="")
    return confirm(
        request, action, study, replace(confirmation, trail=[*confirmation.trail, ("Try out", page)], back=page)
    )


def _original(request: HttpRequest, study: Study) -> Study:
    """The study; of a test copy, the study that it is a copy of."""
    return study if study.test_of is None else readable_study(request, study.test_of.pk)


def _open_for_preview(request: HttpRequest, study: Study) -> Study:
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


def _delete(study: Study, **by: Any) -> str:
    people = test_copies.delete_copy(study, **by)
    return f"The test copy is deleted, with {people} people."


DELETES = "Deletes the test copy with everything in it: {people}, their answers, its plans, predictors and figures."
ACTIONS = (
    ConfirmedAction(
        "make",
        "Make",
        "Makes a study of its own with this study's file, for previews and simulated people.",
        doing(test_copies.make_copy, "The test copy is there, with the study's present file."),
    ),
    ConfirmedAction(
        "renew",
        "Renew",
        f"{DELETES} Then it is made again from the present file. The study itself is not touched.",
        doing(test_copies.renew_copy, "The test copy is new: nothing has happened in it yet."),
        is_final=True,
    ),
    ConfirmedAction("delete", "Delete", f"{DELETES} The study itself is not touched.", _delete, is_final=True),
)
