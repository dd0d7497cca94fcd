"""What is done to a whole study after a page has asked: archive it, bring it back, unblind it, remove panels' ids."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from survey.live import snapshots
from survey.models import Study
from survey.panels import purging
from survey.panels.purging import Purge
from survey.services.answers import blinding
from survey.services.base.retention import is_over
from survey.services.base.rights import Right
from survey.services.studies import archiving

from .confirming import ConfirmedAction, WordsField, about, confirm, doing


class UnblindForm(forms.Form):
    reason = WordsField(
        label="Why", widget=forms.TextInput(attrs={"maxlength": "1000", "size": "60", "required": True})
    )


class RemovalForm(forms.Form):
    days = forms.IntegerField(
        label="Of people who came more than so many days ago",
        min_value=0,
        max_value=99999,
        initial=90,
        help_text="0: of everybody who has come so far.",
    )
    with_hashes = forms.BooleanField(
        label="Remove the keyed hashes as well",
        required=False,
        help_text="They know a person again who comes a second time. Without them, once the study is over, nothing "
        "links a pseudonym to a person any more.",
    )


def _remove_ids(study: Study, *, days: int, with_hashes: bool, **by: Any) -> str:
    before = timezone.now() - timedelta(days=days)
    return f"Removed: {in_words(purging.purge(study, before=before, with_hashes=with_hashes, **by))}."


def in_words(purge: Purge) -> str:
    hashes = f", and the hashes of {purge.hashes} people" if purge.hashes else ""
    why_hashes_stay = f"; the hashes stay, since {purge.why_keep_hashes}" if purge.why_keep_hashes else ""
    return f"the ids of {purge.identities} people and {purge.submissions} submissions{hashes}{why_hashes_stay}"


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

REMOVE_IDS = ConfirmedAction(
    "remove-ids",
    "Remove panels' ids",
    "The ids by which a panel knows people are deleted, and nobody can be paid by them any more. Answers and "
    "pseudonyms stay. The audit records who did it, when, and of how many people.",
    _remove_ids,
    Right.WITHDRAW,
    form=RemovalForm,
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


def remove_ids_page(request: HttpRequest, study: Study) -> HttpResponse:
    purge = purging.plan_purge(study, before=timezone.now(), with_hashes=False)
    confirmation = about(
        study, f"Remove panels' ids of {study.slug}?", facts=lambda: _stored_ids(study, purge), obstacle=purge.why_not
    )
    return confirm(request, REMOVE_IDS, study, confirmation)


def _stored_ids(study: Study, purge: Purge) -> Iterator[tuple[str, Any]]:
    yield "Ids that are stored", f"of {purge.identities} people and {purge.submissions} submissions"
    if until := study.config.data.retention_until:
        yield f"Personal data {'was to be' if is_over(study) else 'is'} kept until", until
