"""The page on which people are invited to a later wave."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone

from survey.contracts import panels
from survey.models import Sitting, Study
from survey.panels import inviting
from survey.services.base import rights
from survey.services.sittings import waves

from .confirming import ConfirmedAction, about, confirm

BY_LINKS = (
    "Each of them gets a link of their own, in a file with the number of the link with which they began. Links are "
    "shown once. Who has one for this wave gets no second one. Their first links lead to this wave too."
)
BY_THE_PANEL = (
    "Those who may begin now are put into the group of this wave at {panel}. Who is in it already stays once. Invite "
    "again when others are due."
)


def links(user: Any, study: Study) -> Sequence[tuple[str, tuple[Any, ...]]]:
    return [(f"Invite to wave {wave}", (wave,)) for wave in inviting.may_invite(user, study)]


def page(request: HttpRequest, study: Study, wave: int) -> HttpResponse:
    """GET asks first, with how many can come. POST invites them."""
    right = inviting.right_needed(study)
    rights.require(request.user, right, study.pk)
    if not 2 <= wave <= len(study.config.waves) + 1:
        raise Http404
    panel, config = panels.of_study(study), study.config.waves[wave - 2]
    invites = BY_LINKS if panel.invites_by_links else BY_THE_PANEL.format(panel=panel.title)
    action = ConfirmedAction(
        "invite",
        f"Wave {wave}",
        f"A person may begin wave {wave} {_days(config.after_days)} after they finished the wave before, for "
        f"{_days(config.open_days)}. {invites}",
        partial(_invite, wave=wave, root=request.build_absolute_uri("/").rstrip("/")),
        right,
        button="Make and download the links" if panel.invites_by_links else "Invite them",
        refused="",
    )
    confirmation = about(
        study,
        f"Invite people of {study.slug} to wave {wave}",
        facts=partial(_facts, study, wave),
        then=reverse("admin:survey_study_wave", args=[study.pk, wave]),
        cancel="Back, invite nobody",
    )
    return confirm(request, action, study, confirmation)


def _days(number: int) -> str:
    return f"{number} day{pluralize(number)}"


def _invite(study: Study, *, wave: int, root: str, **by: Any) -> str | HttpResponse:
    """Links come as a file, in the answer itself: a redirect would mean that they are stored in between."""
    invited = inviting.invite(study, wave, root=root, **by)
    if not invited.links:
        return invited.sentence
    response = HttpResponse("".join(inviting.lines_of(invited)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{study.slug}-wave-{wave}-links.csv"'
    return response


def _facts(study: Study, wave: int) -> list[tuple[str, int]]:
    now = timezone.now()
    due = waves.due_for(study, wave, now=now)
    return [
        ("Finished the wave before, and can still come", len(due)),
        ("Of these, may begin now", sum(candidate.window.opens <= now for candidate in due)),
        (f"Have begun wave {wave}", Sitting.objects.filter(respondent__study=study, wave=wave).count()),
    ]
