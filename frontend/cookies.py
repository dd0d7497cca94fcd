"""What a respondent's browser holds: who they are to the panel (sealed), their sitting, the language they chose, and
for an hour a page that was not accepted. Imports survey alone.

All are bound to the study's own path, and the first two to the study itself: copied to another study they are invalid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils.translation.trans_real import parse_accept_lang_header

from survey.contracts.panels import PanelIds
from survey.exceptions import SittingUnknown
from survey.models import Sitting, Study
from survey.services.sittings import previews
from survey.services.sittings.identities import Visitor, find_respondent, new_browser, seal_for, unseal_for
from survey.services.sittings.queries import sitting_for

PERSON = "hunch_person"
SITTING = "hunch_sitting"
LANGUAGE = "hunch_language"
PREVIEW = "hunch_preview"
RETURNED = "hunch_returned"
# Long enough to come back to an interrupted sitting, short enough to be forgotten.
DAY = 24 * 3600
MAX_AGE_SECONDS = 30 * DAY
HOUR = 3600
# Browsers drop a cookie of more than 4096 characters, its name and attributes included.
LONGEST = 3600
# What belongs to one sending of a page, and not to what was entered.
OF_ONE_SENDING = ("csrfmiddlewaretoken", "client_")


@dataclass(frozen=True)
class Returned:
    """A page that came back to the person: what was entered, why it was not accepted, or whether a remark was noted."""

    entered: QueryDict
    errors: Mapping[str, list[str]]
    thanks: bool = False


def _path(study: Study) -> str:
    return reverse("frontend:welcome", args=[study.slug])


def _set(response: HttpResponseBase, name: str, value: str, study: Study) -> None:
    response.set_cookie(
        name,
        value,
        max_age=MAX_AGE_SECONDS,
        path=_path(study),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def remember_person(request: HttpRequest, response: HttpResponseBase, study: Study, visitor: Visitor) -> None:
    """Keep who this is, with the browser's secret: an earlier one of the same person stays."""
    before = person(request, study)
    browser = before.browser if before and before.ids == visitor.ids else ""
    _set(response, PERSON, seal_for(study, replace(visitor, browser=browser or new_browser())), study)


def person(request: HttpRequest, study: Study) -> Visitor | None:
    """Who this browser holds. None if it holds nobody, or if the study's panel has changed since."""
    sealed = request.COOKIES.get(PERSON)
    visitor = unseal_for(study, sealed, max_age_seconds=MAX_AGE_SECONDS) if sealed else None
    return visitor if visitor and visitor.ids.panel == study.config.panel.kind else None


def remember_sitting(response: HttpResponseBase, sitting: Sitting) -> None:
    _set(response, SITTING, sitting.token, sitting.stage.study)


def holds_whole(request: HttpRequest, sitting: Sitting) -> bool:
    """Whether this browser holds the sitting's own token, and not only one that was given by ids."""
    held = sitting_token(request) or ""
    return Sitting.public_id_of(held) == sitting.public_id and not Sitting.was_given_by_ids(held)


def sitting_token(request: HttpRequest) -> str | None:
    return request.COOKIES.get(SITTING)


def holds_a_sitting(request: HttpRequest) -> bool:
    """Whether the browser holds a token that was signed here, of whichever sitting."""
    return Sitting.public_id_of(sitting_token(request) or "") is not None


def remember_language(response: HttpResponseBase, study: Study, language: str) -> None:
    _set(response, LANGUAGE, language, study)


def language(request: HttpRequest, study: Study) -> str:
    """The language chosen in this browser; without a choice the first of the study's languages that the browser asks
    for, or the study's first one."""
    languages = study.config.languages
    chosen = request.COOKIES.get(LANGUAGE, "")
    if chosen in languages or len(languages) == 1:
        return chosen if chosen in languages else languages[0]
    asked_for = (code.partition("-")[0] for code, weight in parse_accept_lang_header(_accepted(request)) if weight)
    return next((code for code in asked_for if code in languages), languages[0])


def _accepted(request: HttpRequest) -> str:
    return request.headers.get("Accept-Language", "").lower()


def preview(request: HttpRequest, study: Study) -> previews.Preview | None:
    """The preview of a test copy that this browser was invited to; None in a study."""
    return previews.read(study, request.COOKIES.get(PREVIEW, "")) if study.is_test else None


def begin_preview(response: HttpResponseBase, study: Study, secret: str, invited: previews.Preview) -> None:
    """Keep the invitation, and forget who this browser was in an earlier walk."""
    for name in (PERSON, SITTING, LANGUAGE, RETURNED):
        response.delete_cookie(name, path=_path(study), samesite="Lax")
    _set(response, PREVIEW, secret, study)
    if invited.language:
        remember_language(response, study, invited.language)


def forget_sitting_of_others(request: HttpRequest, response: HttpResponseBase, study: Study, ids: PanelIds) -> None:
    """Delete another person's sitting cookie: on a shared computer the next person must not get into that sitting."""
    try:
        sitting = sitting_for(sitting_token(request), slug=study.slug)
    except SittingUnknown:
        return
    if sitting.respondent != find_respondent([study], ids):
        response.delete_cookie(SITTING, path=_path(study), samesite="Lax")


def remember_returned(response: HttpResponseBase, sitting: Sitting, returned: Returned) -> bool:
    """Keep a page that comes back, so that an address shows it and no reply to a form has to. False if it is too long
    for a cookie: an essay, say."""
    entered = {name: texts for name, texts in returned.entered.lists() if not name.startswith(OF_ONE_SENDING)}
    page = {"entered": entered, "errors": dict(returned.errors), "thanks": returned.thanks}
    sealed = signing.dumps(page, salt=_salt(sitting), compress=True)
    if len(sealed) > LONGEST:
        return False
    response.set_cookie(
        RETURNED,
        sealed,
        max_age=HOUR,
        path=_sitting_path(sitting),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return True


def returned(request: HttpRequest, sitting: Sitting) -> Returned | None:
    """The page of this sitting that came back last; None if there is none. It may be of an earlier step."""
    sealed = request.COOKIES.get(RETURNED)
    if not sealed:
        return None
    try:
        page = signing.loads(sealed, salt=_salt(sitting), max_age=HOUR)
    except signing.BadSignature:
        return None
    entered = QueryDict(mutable=True)
    for name, texts in page["entered"].items():
        entered.setlist(name, texts)
    return Returned(entered, page["errors"], page["thanks"])


def forget_returned(request: HttpRequest, response: HttpResponseBase, sitting: Sitting) -> None:
    if RETURNED in request.COOKIES:
        response.delete_cookie(RETURNED, path=_sitting_path(sitting), samesite="Lax")


def _sitting_path(sitting: Sitting) -> str:
    return reverse("frontend:sitting", args=[sitting.stage.study.slug])


def _salt(sitting: Sitting) -> str:
    """What one person entered is shown to nobody else who uses the same browser."""
    return f"hunch.returned.{sitting.public_id.hex}"
