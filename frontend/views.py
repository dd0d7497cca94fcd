"""The respondent's pages: parse, call a service, answer. This is the top layer: it imports survey, nothing imports it.

A GET writes nothing to the database, but for the count of look-ups at the entrance. An accepted POST redirects to the
next page, so that reload, the back button and a second click do no harm.
"""

import gzip
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.crypto import salted_hmac
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from survey.contracts import instruments, panels
from survey.contracts.instruments import InstrumentMissing
from survey.exceptions import EntryRefused, FieldErrors, HunchError, NotFound, SittingUnknown
from survey.logs import request_ids
from survey.models import CompletionCode, Logo, Sitting, Study
from survey.services.banks.passages import tokens_as_file
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.sittings import comments, debriefing, enrolment, entry, previews, return_address
from survey.services.sittings.answering import answer
from survey.services.sittings.flow import Step, current_step, words_while_missing
from survey.services.sittings.openings import record_opening
from survey.services.sittings.progress import NOWHERE
from survey.services.sittings.queries import sitting_for
from survey.services.sittings.timing import CLIENT_FIELDS, record_unfinished
from survey.storage.outages import is_outage
from survey.study_file import StudyConfig
from survey.web.client_address import client_address

from . import cookies
from .fields import report_field, shown_fields
from .outages import unavailable

# A page's script sends an answer with this header: it takes the next page in the reply, in place of an address.
EXCHANGE_HEADER = "X-Hunch-Exchange"
OUR_SCRIPTS = "frontend/"
# In the address of a step that is shown as if nothing had been entered.
DECIDE_AGAIN = "anew"
# Why the page of the consent is shown again, in its address.
AGAIN = "again"
UNANSWERED, CHANGED, DECLINED, NO_SCRIPT = "unanswered", "changed", "declined", "no_script"
# A field that only a script fills in, where an instrument needs one.
SCRIPT = "script"
# How long a browser keeps the tokens of a tokenizer, in seconds.
TOKENS_KEPT = 30 * 24 * 3600
# Filled by the page's script.
TIMING = format_html_join("", '<input type="hidden" name="client_{}">', ((name,) for name in CLIENT_FIELDS))
View = Callable[..., HttpResponse]


def respondent_page(view: View) -> View:
    """A page of a study. A refusal is shown on a page and never raised."""

    @wraps(view)
    def wrapped(request: HttpRequest, slug: str) -> HttpResponse:
        try:
            study = enrolment.study_of(slug)
            _refuse_before_opening(request, study)
        except NotFound:
            # The same page, whether there is no such study or none that strangers may know of.
            message = _("There is no study at this address. Please check the link you were given.")
            return _error_page(request, status=404, title=_("Page not found"), message=message)
        # The pages' own words are in the language of the study's texts: they are part of what is measured. If the study
        # has several languages, it is the one that the respondent has chosen, or the browser's, or the first one.
        with translation.override(cookies.language(request, study)):
            try:
                response = view(request, study)
            except HunchError as refusal:
                response = _refused(request, study, refusal)
            response.headers.setdefault("Content-Language", translation.get_language() or "en")
            return response

    return wrapped


def sitting_page(view: View) -> View:
    """A page of a sitting, which brings its study with it. A refusal is shown on a page of the study."""

    @wraps(view)
    def wrapped(request: HttpRequest, slug: str) -> HttpResponse:
        try:
            return view(request, slug)
        except HunchError as exc:
            refusal = exc

        def refuse(_request: HttpRequest, _study: Study) -> HttpResponse:
            raise refusal

        return respondent_page(refuse)(request, slug)

    return wrapped


def _refuse_before_opening(request: HttpRequest, study: Study) -> None:
    """Members who are logged in see the pages of a study that was never open, and of its test copy; strangers see that
    there is none. The address of a preview and simulated people lead into a test copy, too.

    Raises:
        NotFound: the study was never open or is a test copy, and nobody who may know of it is asking.
    """
    try:
        enrolment.refuse_before_opening(study, invited=study.is_test and _is_invited(request, study))
    except NotFound:
        if not (request.user.is_staff and rights.may(request.user, Right.SEE, study.pk)):
            raise


def _is_invited(request: HttpRequest, study: Study) -> bool:
    secret = request.GET.get(previews.PARAMETER, "")
    return previews.read(study, secret) is not None or bool(cookies.preview(request, study)) or _is_simulated(request)


def see_other(to: str, slug: str) -> HttpResponseRedirect:
    """303: the browser loads the next page with GET."""
    response = redirect(to, slug)
    response.status_code = 303
    return response


@require_safe
@respondent_page
def welcome(request: HttpRequest, study: Study) -> HttpResponse:
    secret = request.GET.get(previews.PARAMETER, "") if study.is_test else ""
    if invited := previews.read(study, secret):
        response: HttpResponse = redirect("frontend:welcome", study.slug)
        cookies.begin_preview(response, study, secret, invited)
        # In a rehearsal the panel's test participant brings its ids along.
        if (tester := entry.arrive(study, dict(request.GET.lists()), host=request.get_host())) is not None:
            cookies.remember_person(request, response, study, tester)
        return response
    visitor = cookies.person(request, study)
    arrived = entry.arrive(
        study,
        dict(request.GET.lists()),
        host=request.get_host(),
        address=client_address(request),
        known=visitor,
        simulated=_is_simulated(request),
    )
    if arrived is not None:
        # The ids are removed from the address at once: addresses end up in histories, logs and screenshots.
        response = redirect("frontend:welcome", study.slug)
        cookies.remember_person(request, response, study, arrived)
        cookies.forget_sitting_of_others(request, response, study, arrived.ids)
        _remember_choice(request, response, study)
        return response
    if _chosen_language(request, study):
        response = redirect("frontend:welcome", study.slug)
        _remember_choice(request, response, study)
        return response
    newcomer = None
    if visitor is None:
        visitor = newcomer = entry.person_at_the_door(study)
    earlier = enrolment.find_sitting(study, visitor.ids)
    if earlier is None:
        enrolment.stage_to_join(study)
    # A sitting keeps the language it began in, so there is no choice any more.
    shown_in = earlier.language if earlier else cookies.language(request, study)
    response = welcome_page(request, study, shown_in, earlier)
    if newcomer is not None:
        cookies.remember_person(request, response, study, newcomer)
    return response


def welcome_page(request: HttpRequest, study: Study, language: str, earlier: Sitting | None = None) -> HttpResponse:
    """The first page, in this language. `earlier`: the sitting that the person has begun before."""
    with translation.override(language):
        context = {
            "study": study,
            "config": study.config_in(language),
            "earlier": earlier,
            "languages": () if earlier else _language_names(study),
            "chosen": language,
            "needs_script": _needs_script(study),
            **_way_back(study),
        }
        response = render(request, "frontend/welcome.html", context)
        response.headers["Content-Language"] = language
    return response


def _is_simulated(request: HttpRequest) -> bool:
    return entry.is_simulated(request.headers.get(entry.SIMULATED_HEADER))


def _chosen_language(request: HttpRequest, study: Study) -> str:
    """The language that the address asks for, if it is one of the study's several languages; else empty."""
    chosen = request.GET.get("language", "")
    languages = study.config.languages
    return chosen if len(languages) > 1 and chosen in languages else ""


def _remember_choice(request: HttpRequest, response: HttpResponse, study: Study) -> None:
    if chosen := _chosen_language(request, study):
        cookies.remember_language(response, study, chosen)


def _language_names(study: Study) -> list[tuple[str, str]]:
    """The languages to choose from, each with its name in that language; none if there is only one."""
    languages = study.config.languages
    return [(code, translation.get_language_info(code)["name_local"]) for code in languages if len(languages) > 1]


@require_http_methods(["GET", "HEAD", "POST"])
@respondent_page
def consent(request: HttpRequest, study: Study) -> HttpResponse:
    visitor = cookies.person(request, study)
    if visitor is None:
        return see_other("frontend:welcome", study.slug)
    config = study.config_in(cookies.language(request, study))
    words = enrolment.consent_sha256(study, cookies.language(request, study))
    answer = request.POST.get("consent")
    if request.method == "POST" and answer not in ("yes", "no"):
        return _consent_again(study, UNANSWERED)
    # People must agree to the words they have read, but the file may have been amended since the page was shown.
    has_changed = request.POST.get("words", words) != words
    agrees = answer == "yes" and not has_changed
    if answer == "yes" and _needs_script(study) and request.POST.get(SCRIPT) != "1":
        return _consent_again(study, NO_SCRIPT)
    # Who agrees is looked for under the stage's lock, where a sitting begins: not twice.
    if not agrees and enrolment.find_sitting(study, visitor.ids):
        return see_other("frontend:welcome", study.slug)
    if agrees:
        invited = cookies.preview(request, study)
        sitting = entry.begin(
            study,
            visitor,
            address=client_address(request),
            language=cookies.language(request, study),
            simulated=_is_simulated(request),
            levels=invited.levels if invited else None,
        )
        response: HttpResponse = see_other("frontend:sitting", study.slug)
        if sitting.is_new or not cookies.holds_whole(request, sitting):
            cookies.remember_sitting(response, sitting)
        return response
    if answer:
        return _consent_again(study, DECLINED if answer == "no" else CHANGED)
    again = request.GET.get(AGAIN, "")
    if again in (DECLINED, NO_SCRIPT):
        # Nothing is stored: the address alone says what was chosen.
        return render(
            request,
            "frontend/declined.html",
            {
                "study": study,
                "config": config,
                "title": _("You do not take part") if again == DECLINED else _("This study needs JavaScript"),
                "no_script": again == NO_SCRIPT,
                **_code_of(study, CompletionCode.Outcome.NO_CONSENT, at_the_door=DECLINED),
            },
        )
    enrolment.stage_to_join(study)
    return consent_page(request, study, config, words=words, again=again)


def consent_page(
    request: HttpRequest, study: Study, config: StudyConfig, *, words: str, again: str = ""
) -> HttpResponse:
    """The page of the consent. `words`: the hash of what people read there; `again`: why it is shown again."""
    context = {
        "study": study,
        "config": config,
        "title": config.consent.title or _("Your consent"),
        "consent": config.consent,
        "words": words,
        "has_changed": again == CHANGED,
        "unanswered": again == UNANSWERED,
        "progress": NOWHERE,
        "needs_script": _needs_script(study),
    }
    return render(request, "frontend/consent.html", context)


def _needs_script(study: Study) -> bool:
    return instruments.is_known(study.instrument) and instruments.kind(study.instrument).needs.script


def _way_back(study: Study) -> dict[str, Any]:
    """For people whose browser runs no script: the way back to where they came from, as for those who do not agree.
    Nothing where no script is needed."""
    if not _needs_script(study):
        return {}
    return _code_of(study, CompletionCode.Outcome.NO_CONSENT, at_the_door=DECLINED)


def _consent_again(study: Study, why: str) -> HttpResponseRedirect:
    """The page of the consent by an address that says why it is shown again: no reply to a form is a page."""
    response = see_other("frontend:consent", study.slug)
    response.headers["Location"] += f"?{AGAIN}={why}"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@respondent_page
def resume(request: HttpRequest, study: Study) -> HttpResponse:
    """Give a returning person the cookie of their sitting again."""
    visitor = cookies.person(request, study)
    sitting = enrolment.find_sitting(study, visitor.ids) if visitor and request.method == "POST" else None
    if visitor is None or sitting is None:
        return see_other("frontend:welcome", study.slug)
    response = see_other("frontend:sitting", study.slug)
    if not cookies.holds_whole(request, sitting):
        cookies.remember_sitting(response, entry.give_back(study, sitting, visitor))
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@sitting_page
def sitting(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        current = sitting_for(cookies.sitting_token(request), slug=slug)
        if DECIDE_AGAIN in request.GET:
            moved = see_other("frontend:sitting", slug)
            cookies.forget_returned(request, moved, current)
            return moved
        return step_page(request, current, returned=cookies.returned(request, current))
    in_one = _is_exchange(request)
    answered = answer(token=cookies.sitting_token(request), slug=slug, data=request.POST, with_next=in_one)
    if answered.errors:
        came_back = cookies.Returned(request.POST, answered.errors)
        return _give_back(request, answered.sitting, came_back, answered.step)
    response = step_page(request, answered.sitting, answered.step) if in_one else see_other("frontend:sitting", slug)
    cookies.forget_returned(request, response, answered.sitting)
    return response


def _is_exchange(request: HttpRequest) -> bool:
    return request.headers.get(EXCHANGE_HEADER) == "1"


def _give_back(
    request: HttpRequest, sitting: Sitting, returned: cookies.Returned, step: Step | None = None
) -> HttpResponse:
    """A page comes back to the person. Without the page's script by an address of its own, so that reload and the back
    button send nothing again; what is too long to be kept for that is in the reply itself."""
    moved = see_other("frontend:sitting", sitting.stage.study.slug)
    if not _is_exchange(request) and cookies.remember_returned(moved, sitting, returned):
        return moved
    response = step_page(request, sitting, step, returned=returned, status=422 if returned.errors else 200)
    cookies.remember_returned(response, sitting, returned)
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@sitting_page
def report(request: HttpRequest, slug: str) -> HttpResponse:
    """Store a report that something is wrong with a question. The question stays, with what was entered."""
    if request.method != "POST":
        return see_other("frontend:sitting", slug)
    current = sitting_for(cookies.sitting_token(request), slug=slug)
    with translation.override(current.language):
        data = request.POST
        try:
            comments.report_question(
                sitting=current,
                position=data.get("position", ""),
                screen=data.get("screen", ""),
                text=data.get(comments.FIELD, ""),
            )
        except FieldErrors as refusal:
            return _give_back(request, current, cookies.Returned(data, refusal.errors))
        return _give_back(request, current, cookies.Returned(data, {}, thanks=True))


@require_safe
@respondent_page
def back(request: HttpRequest, study: Study) -> HttpResponse:
    """Send a person whose part is over to the panel, with the ids that they came with.

    Only the study file says to which host. The ids stand in no page and in no address of ours.
    """
    sitting = None
    with suppress(SittingUnknown):
        sitting = sitting_for(cookies.sitting_token(request), slug=study.slug)
    if sitting is not None:
        address = return_address.address_to_leave_by(sitting)
    elif visitor := cookies.person(request, study):
        declined = request.GET.get(AGAIN) == DECLINED
        address = return_address.address_from_the_door(study, visitor.ids, declined=declined)
    else:
        return see_other("frontend:welcome", study.slug)
    response = HttpResponse(status=303)
    response.headers["Location"] = address
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


@require_POST
def beacon(request: HttpRequest, slug: str) -> HttpResponse:
    """The browser reports that a screen was left unfinished, or begun. The reply is empty: its status alone says
    whether a screen that was begun is the one that the sitting is at."""
    with suppress(HunchError):
        current = sitting_for(cookies.sitting_token(request), slug=slug)
        if opened := request.POST.get("opened", ""):
            known = record_opening(sitting_key=current.pk, step=request.POST.get("step", ""), nonce=opened)
            return HttpResponse(status=204 if known else 409)
        record_unfinished(sitting=current, step=request.POST.get("step", ""), data=request.POST)
    return HttpResponse(status=204)


def step_page(
    request: HttpRequest,
    sitting: Sitting,
    step: Step | None = None,
    *,
    returned: cookies.Returned | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page of the sitting's current step. It is in the language that the sitting began in, since its screens are
    part of what is measured.

    Args:
        step: that step, where it is known already.
        returned: a page that came back, if it was of this step; another tab may be further.
    """
    with translation.override(sitting.language):
        return _shown_step(request, sitting, step or current_step(sitting), returned=returned, status=status)


def _shown_step(
    request: HttpRequest, sitting: Sitting, step: Step, *, returned: cookies.Returned | None, status: int
) -> HttpResponse:
    study = sitting.stage.study
    thanks = returned is not None and returned.thanks
    if returned is not None and returned.entered.get("step") != str(step.number):
        returned, status = None, 200
    data = returned.entered if returned is not None else None
    errors = returned.errors if returned is not None else {}
    context: dict[str, Any] = {"study": study, "config": sitting.shown_config, "step": step, "title": _title(step)}
    own_texts = sitting.shown_config.texts.text_language
    context["title_in"] = own_texts if _has_own_title(step) else ""
    context["fields_in"] = own_texts if step.kind in ("checks", "form", "attention") else ""
    if step.kind == "end":
        context |= _code(study, step.outcome, step.code)
    else:
        fields = shown_fields(step, data=data, errors=errors)
        context |= {"thanks": thanks}
        if step.kind == "item":
            entered = "" if thanks or data is None else data.get(comments.FIELD, "")
            context["report"] = report_field(entered=entered, errors=errors.get(comments.FIELD, ()))
        all_fields = [*fields, *filter(None, [context.get("report")])]
        if debriefing.CONFIRMED in errors:
            withdraw = {"name": debriefing.FIELD, "value": debriefing.WITHDRAW}
            context |= {"asks_again": withdraw, "title": _("Please confirm"), "title_in": ""}
        context |= {
            "fields": fields,
            "errors": [field for field in all_fields if field.errors],
            "timing": TIMING,
            "kept": _key_of_page(sitting, step),
            # An instrument's own script was written for a document of its own: such a page is loaded as one.
            "in_one": all(script.startswith(OUR_SCRIPTS) for script in (step.screen.scripts if step.screen else ())),
        }
    response = render(request, f"frontend/step_{step.kind}.html", context, status=status)
    response.headers["Content-Language"] = sitting.language
    return response


def _key_of_page(sitting: Sitting, step: Step) -> str:
    """Under which a browser keeps what was entered on this page of this sitting. It says nothing of either."""
    return salted_hmac("hunch.kept", f"{sitting.public_id.hex} {step.number}").hexdigest()[:24]


def _has_own_title(step: Step) -> bool:
    """Whether the heading is a text of the study's file, and none of the pages' words."""
    if step.screen is not None or step.outcome not in ("", CompletionCode.Outcome.COMPLETED):
        return False
    return step.kind == "attention" or bool(step.block.title)


def _title(step: Step) -> str:
    if step.screen is not None:
        return str(step.screen.title)
    if step.kind == "attention":
        return step.checks[0].question
    endings: dict[str, str] = {
        CompletionCode.Outcome.FAILED_CHECKS: _("The study ends here"),
        CompletionCode.Outcome.STUDY_FULL: _("All places are taken"),
        CompletionCode.Outcome.SCREENED_OUT: _("The study ends here"),
    }
    defaults = {
        "instructions": _("Instructions"),
        "practice": _("That is how it works"),
        "checks": _("Questions about the instructions"),
        "form": _("Some questions"),
        "debriefing": _("What this study was about"),
        "end": _("Thank you"),
    }
    return str(endings.get(step.outcome) or step.block.title or defaults[step.kind])


def _code(study: Study, outcome: str, code: str, *, at_the_door: str = "") -> dict[str, Any]:
    """The one code that was earned, the panel's address for it, and whether people go back to a panel at all. A code
    that no panel asks for is not shown: where the panel's address takes people back without it, or there is no panel.

    A personal address stands in no page: `back` sends the person there.

    Args:
        at_the_door: why somebody begins no sitting, as its address says it.
    """
    panel = panels.of_study(study)
    if study.config.panel.is_personal_after(outcome):
        address = reverse("frontend:back", args=[study.slug]) + (f"?{AGAIN}={at_the_door}" if at_the_door else "")
    else:
        address = study.config.panel.address_after(outcome, code)
    return {
        "code": code if return_address.shows_code(study, outcome) else "",
        # From a test copy nobody goes to the panel, but the button is shown as it will be.
        "completion_url": "#" if address and study.is_test else address,
        "goes_back": panel.has_submissions,
        "panel_name": panel.name_for_people,
    }


def _code_of(study: Study, outcome: str, *, at_the_door: str = "") -> dict[str, Any]:
    return _code(study, outcome, study.completion_code(outcome), at_the_door=at_the_door)


def _refused(request: HttpRequest, study: Study, refusal: HunchError) -> HttpResponse:
    at_the_door, is_missing = isinstance(refusal, EntryRefused), isinstance(refusal, InstrumentMissing)
    titles = {
        "closed": _("This study is not open"),
        "full": _("All places are taken"),
        "already_taken_part": _("You have taken part already"),
        "bad_panel_ids": _("The link is incomplete"),
        "not_sent_by_panel": _("Please start where you found this study"),
        "took_part_in_another": _("You have taken part in an earlier study"),
        "no_panel_ids": _("Please start where you found this study")
        if panels.of_study(study).has_submissions
        else _("Please open your link"),
        "unknown_link": _("Please open your link"),
        "out_of_order": _("This page has not been reached yet"),
        "entry_not_checked": _("Please try again in a moment"),
        "too_many_from_here": _("Please try again later"),
        "instrument_missing": _("This study cannot be shown at the moment"),
    }
    context = {
        "study": study,
        "config": study.config_in(translation.get_language() or ""),
        "title": titles.get(refusal.code, _("This did not work")),
        "message": words_while_missing() if is_missing else refusal.message,
        "is_for_now": bool(refusal.retry_after),
        "code_name": refusal.code,
        "go_on": None
        if at_the_door or is_missing
        else ("frontend:welcome" if isinstance(refusal, SittingUnknown) else "frontend:sitting"),
    }
    if refusal.code == "full" and panels.of_study(study).has_submissions:
        context |= _code_of(study, CompletionCode.Outcome.STUDY_FULL)
    response = render(request, "frontend/refused.html", context, status=refusal.status)
    if refusal.retry_after:
        response.headers["Retry-After"] = str(refusal.retry_after)
    return response


@require_safe
def root(request: HttpRequest) -> HttpResponse:
    return render(request, "frontend/root.html")


@require_safe
def tokens(request: HttpRequest, sha256: str) -> HttpResponse:
    """All tokens that people can type, of a tokenizer by its hash. The file is the same for everybody and at any page,
    so that it says nothing of a text, and a browser asks for it once."""
    try:
        content = tokens_as_file(sha256)
    except NotFound as refusal:
        return HttpResponse(refusal.message, status=404, content_type="text/plain; charset=utf-8")
    is_small = "gzip" in request.headers.get("Accept-Encoding", "")
    response = HttpResponse(content if is_small else gzip.decompress(content), content_type="text/plain; charset=utf-8")
    response.headers["Cache-Control"] = f"public, max-age={TOKENS_KEPT}, immutable"
    response.headers["Vary"] = "Accept-Encoding"
    if is_small:
        response.headers["Content-Encoding"] = "gzip"
    return response


@require_safe
def logo(request: HttpRequest, name: str) -> HttpResponse:
    """An institution's logo. Under one name it is always the same picture, so that a browser asks for it once."""
    stored = Logo.objects.filter(name=name).first()
    if stored is None:
        return HttpResponse("There is no such logo.", status=404, content_type="text/plain; charset=utf-8")
    response = HttpResponse(bytes(stored.content), content_type="image/png")
    response.headers["Cache-Control"] = f"public, max-age={TOKENS_KEPT}, immutable"
    return response


def _error_page(request: HttpRequest, *, status: int, title: str, message: str) -> HttpResponse:
    if request.path_info.startswith("/api/"):
        codes = {400: "bad_request", 403: "forbidden", 404: "not_found"}
        error = {"code": codes.get(status, "error"), "message": message, "request_id": request_ids.current.get()}
        return JsonResponse({"error": error}, status=status)
    context = {"title": title, "message": message, "request_id": request_ids.current.get()}
    return render(request, "frontend/error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _error_page(
        request,
        status=400,
        title=_("This could not be read"),
        message=_("What was sent could not be read. Nothing has been stored. Please go back and try again."),
    )


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _error_page(
        request, status=403, title=_("Not allowed"), message=_("You do not have access to what is at this address.")
    )


# Addresses of researchers, with what somebody can do who has mistyped one.
NOTHING_FOR_RESEARCHERS = {
    "/api/": "There is nothing at this address. GET /api/v1/ lists what there is.",
    "/admin/": "There is nothing at this address, or it belongs to a study of which you are not a member.",
}


def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    message = _("There is nothing at this address. Please check the link you were given.")
    own = [said for beginning, said in NOTHING_FOR_RESEARCHERS.items() if request.path_info.startswith(beginning)]
    return _error_page(request, status=404, title=_("Page not found"), message=own[0] if own else message)


def server_error(request: HttpRequest) -> HttpResponse:
    error = sys.exc_info()[1]
    if error is not None and is_outage(error):
        return unavailable(request, error, is_checked=False)
    return _error_page(
        request,
        status=500,
        title=_("Something went wrong on our side"),
        message=_(
            "We are sorry. Answers that you gave on earlier pages are stored. "
            "Please wait a minute and load the page again."
        ),
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _error_page(
        request,
        status=403,
        title=_("This page has been open for too long"),
        message=_(
            "For your safety the page was not accepted. Nothing is lost: please go back, load the page again and send "
            "it once more. Cookies must be allowed for this site."
        ),
    )
