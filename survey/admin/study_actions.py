"""What is done to a whole study after a page has asked: archive it, bring it back, unblind it."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse

from survey.live import snapshots
from survey.models import Study
from survey.services.answers import blinding
from survey.services.studies import archiving

from .confirming import ConfirmedAction, WordsField, about, confirm, doing


class UnblindForm(forms.Form):
    reason = WordsField(
        label="Why", widget=forms.TextInput(attrs={"maxlength": "1000", "size": "60", "required": True})
    )


ARCHIVE = ConfirmedAction(
    "archive",
    "Archive",
    "The study leaves the list of studies, and no stage of it opens. Nothing is deleted: its page, figures and exports "
    "stay, and it can be brought back.",
    doing(archiving.archive, "{0.slug} is archived. The list of archived studies has it."),
    refused="Not archived: ",
)
BRING_BACK = ConfirmedAction(
    "bring-back",
    "Bring back",
    "The study comes back into the list of studies, and its stages can be opened again.",
    doing(archiving.bring_back, "{0.slug} is back in the list of studies."),
    refused="Not archived: ",
)
UNBLIND = ConfirmedAction(
    "unblind",
    "Unblind",
    "From then on everybody who sees the study sees its conditions: in pages, commands, the API and exports. The audit "
    "records who did it, when and why.",
    doing(blinding.unblind, "The conditions are shown from now on."),
    is_offered=lambda study: study.is_blind,
    form=UnblindForm,
    is_final=True,
    stays=True,
)


def archive_links(user: Any, study: Study) -> list[tuple[str, tuple[Any, ...]]]:
    return [(_archiving(study).label, ())]


def _archiving(study: Study) -> ConfirmedAction:
    return ARCHIVE if study.archived_at is None else BRING_BACK


def archive_page(request: HttpRequest, study: Study) -> HttpResponse:
    action = _archiving(study)
    return confirm(request, action, study, about(study, f"{action.label} {study.slug}?"))


def unblind_page(request: HttpRequest, study: Study) -> HttpResponse:
    response = confirm(request, UNBLIND, study, about(study, f"Unblind {study.slug}?"))
    if request.method == "POST":
        snapshots.forget(study)
    return response
