"""The respondents' side: the same flow as the pages, without a login. The sitting's token travels in a header."""

from collections.abc import Mapping
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from survey.contracts import panels
from survey.contracts.instruments import InstrumentMissing
from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused, FieldErrors, OutOfOrder
from survey.models import CompletionCode, Sitting, Study
from survey.services.sittings import comments, enrolment, entry, previews, return_address
from survey.services.sittings.answering import answer_by_token
from survey.services.sittings.comments import report_question
from survey.services.sittings.flow import Step, current_step, words_while_missing
from survey.services.sittings.identities import Visitor
from survey.services.sittings.openings import record_opening
from survey.services.sittings.queries import sitting_for
from survey.services.sittings.timing import record_unfinished
from survey.web.client_address import client_address

from . import shapes
from .examples import examples_of_error
from .schema import REFUSALS  # which also registers the ways of logging in with the OpenAPI schema
from .serializers import AnswerSerializer, BeginSerializer, LeftSerializer, ReportSerializer, serializer_of
from .steps import step_data

PREVIEW_HEADER = "X-Hunch-Preview"  # For front ends of others, to try themselves out in a test copy.
TOKEN_HEADER = "X-Sitting-Token"  # noqa: S105 - a header's name
REFUSED_BODIES = (413, 415)  # Wherever a body is sent: it may be too large, or not JSON.


def errors(*statuses: int) -> dict[Any, Any]:
    """What each refusal looks like. The database may be away whatever is asked, so 503 is one of them everywhere."""
    body = serializer_of(shapes.Error)
    return {
        status: OpenApiResponse(body, description=REFUSALS[status], examples=examples_of_error(status))
        for status in (*statuses, 503)
    }


class SittingToken(BaseAuthentication):
    """Documents the header in the schema, nothing else. `sitting_for` decides who may answer."""

    def authenticate(self, request: Request) -> None:
        return None


class RespondentView(APIView):
    authentication_classes: Any = ()
    permission_classes = (AllowAny,)

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, InstrumentMissing):
            exc = InstrumentMissing(words_while_missing())
        return super().handle_exception(exc)


class StudyInfo(RespondentView):
    @extend_schema(
        operation_id="study_info",
        summary="Read what people may know before they begin",
        parameters=[OpenApiParameter("language", str, description="One of `languages`; the first one without it.")],
        responses={200: serializer_of(shapes.StudyInfo), **errors(404, 422, 429)},
        tags=["respondents"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """What people may know before they take part, including the consent text."""
        study = _study(slug, request)
        language = language_of(study, request.query_params.get("language", ""))
        config = study.config_in(language)
        consent, panel = config.consent, panels.of_study(study)
        refusal = ""
        try:
            enrolment.stage_to_join(study)
        except EntryRefused as exc:
            refusal = exc.code
        info: shapes.StudyInfo = {
            "slug": study.slug,
            "title": config.title,
            "language": language,
            "languages": list(study.config.languages),
            "bank_language": study.config.texts.bank_language,
            "welcome": config.welcome,
            "minutes": config.texts.minutes,
            "contact": config.texts.contact,
            "panel": study.config.panel.kind,
            "parameters": [*panel.parameter_names(study.config).values(), *panel.proof_names(study.config)],
            "token": panel.token_name(study.config),
            "consent": {"title": consent.title, "text": consent.text, "version": consent.version},
            "open": not refusal,
            "refusal": refusal,
        }
        return Response(info)


class SittingBegin(RespondentView):
    @extend_schema(
        operation_id="sitting_begin",
        summary="Begin a sitting, or go on with it",
        request=BeginSerializer,
        responses={
            201: serializer_of(shapes.Begun),
            200: OpenApiResponse(
                serializer_of(shapes.Begun), description="The person had begun before; the same sitting."
            ),
            **errors(400, 403, 404, *REFUSED_BODIES, 422, 429),
        },
        tags=["respondents"],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Store consent and begin a sitting, or find the one that this person began."""
        study = _study(slug, request)
        language = request.data.get("language") if isinstance(request.data, Mapping) else None
        language = language_of(study, language if isinstance(language, str) else "")
        with translation.override(language):
            return self._begin(request, study, language)

    def _begin(self, request: Request, study: Study, language: str) -> Response:
        body = BeginSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        is_open = panels.of_study(study).is_open
        if not data["consent"] and is_open:
            raise _without_consent()
        visitor = _person(request, study, data)
        if not data["consent"]:
            refusal = _without_consent()
            if enrolment.find_sitting(study, visitor.ids) is None:
                refusal.details = _ending(study, CompletionCode.Outcome.NO_CONSENT, visitor.ids)
            raise refusal
        try:
            sitting = entry.begin(
                study,
                visitor,
                address=client_address(request),
                language=language,
                simulated=_is_simulated(request),
                levels=_levels(request, study),
            )
        except EntryRefused as refused:
            if refused.code == "full" and not is_open:
                refused.details = _ending(study, CompletionCode.Outcome.STUDY_FULL, visitor.ids)
            raise
        person = visitor.ids.person if is_open else None
        step = _step(sitting, current_step(sitting))
        begun: shapes.Begun = {"token": sitting.token, "person": person, "step": step}
        return Response(begun, status=201 if sitting.is_new else 200)


class CurrentStep(RespondentView):
    """Not throttled: tokens are signed and every step is stored only once, so a limit would protect nothing."""

    authentication_classes = (SittingToken,)
    throttle_classes = ()

    @extend_schema(
        operation_id="sitting_step",
        summary="Read the step that a sitting stands at",
        responses={200: serializer_of(shapes.Step), **errors(403)},
        tags=["respondents"],
    )
    def get(self, request: Request) -> Response:
        """The step that the sitting stands at."""
        sitting = sitting_for(request.headers.get(TOKEN_HEADER))
        with translation.override(sitting.language):
            return Response(_step(sitting, current_step(sitting)))

    @extend_schema(
        operation_id="sitting_answer",
        summary="Answer a step and get the next one",
        request=AnswerSerializer,
        responses={200: serializer_of(shapes.Step), **errors(400, 403, 409, *REFUSED_BODIES, 422)},
        tags=["respondents"],
    )
    def post(self, request: Request) -> Response:
        """Answer a step and get the next one. A repeated POST changes nothing and gets the same next step."""
        token = request.headers.get(TOKEN_HEADER)
        body = AnswerSerializer(data=request.data)
        if not body.is_valid() or (nested := _nested(request.data)):
            sitting = sitting_for(token)  # Who has no sitting learns that first.
            body.is_valid(raise_exception=True)
            with translation.override(sitting.language):
                raise FieldErrors({name: [_("Send a single value.")] for name in nested})
        sitting, step = answer_by_token(token, step=body.validated_data["step"], data=_as_a_form(request.data))
        with translation.override(sitting.language):
            return Response(_step(sitting, step))


class LeftScreens(RespondentView):
    authentication_classes = (SittingToken,)
    throttle_classes = ()  # Only a few for each step are stored.

    @extend_schema(
        operation_id="sitting_left",
        summary="Send the times of a page that was left",
        request=LeftSerializer,
        responses={
            204: OpenApiResponse(description="Stored, or ignored where enough of them are stored already."),
            **errors(400, 403, 409, *REFUSED_BODIES),
        },
        tags=["respondents"],
    )
    def post(self, request: Request) -> Response:
        """Say that a step was left without an answer. The sitting stays at its step, and its time still runs out.

        With `opened`, say that a window has begun the step, for instruments that time what follows.
        """
        sitting = sitting_for(request.headers.get(TOKEN_HEADER))
        body = LeftSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        if opened := data.get("opened"):
            if not record_opening(sitting_key=sitting.pk, step=str(data["step"]), nonce=opened):
                raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))
            return Response(status=204)
        record_unfinished(sitting=sitting, step=str(data["step"]), data=data)
        return Response(status=204)


class QuestionReports(RespondentView):
    authentication_classes = (SittingToken,)
    throttle_classes = ()  # The number for each sitting is limited.

    @extend_schema(
        operation_id="sitting_report",
        summary="Say that something is wrong with a question",
        request=ReportSerializer,
        responses={200: serializer_of(shapes.Reported), **errors(400, 403, 409, *REFUSED_BODIES, 422)},
        tags=["respondents"],
    )
    def post(self, request: Request) -> Response:
        """Say that something is wrong with an item. No step is taken; the same words again are stored once."""
        sitting = sitting_for(request.headers.get(TOKEN_HEADER))
        body = ReportSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        with translation.override(sitting.language):
            report_question(
                sitting=sitting, position=data["position"], screen=data["screen"], text=data[comments.FIELD]
            )
        return Response({"noted": True})


def language_of(study: Study, wanted: str) -> str:
    """The language that was asked for, or the study's first one.

    Raises:
        FieldErrors: the study does not have that language.
    """
    languages = study.config.languages
    if wanted and wanted not in languages:
        raise FieldErrors({"language": [_("This study is in: %(languages)s.") % {"languages": ", ".join(languages)}]})
    return wanted or languages[0]


def _study(slug: str, request: Request) -> Study:
    """
    Raises:
        NotFound: there is no such study, it was never open, or it is a test copy and the request is not for that.
    """
    study = enrolment.study_of(slug)
    enrolment.refuse_before_opening(study, invited=_is_simulated(request) or _invited(request, study) is not None)
    return study


def _invited(request: Request, study: Study) -> previews.Preview | None:
    """The preview of the study's test copy whose secret the request shows, as the address of a preview has it."""
    return previews.read(study, request.headers.get(PREVIEW_HEADER, "")) if study.is_test else None


def _levels(request: Request, study: Study) -> Mapping[str, str] | None:
    invited = _invited(request, study)
    return invited.levels if invited else None


def _is_simulated(request: Request) -> bool:
    return entry.is_simulated(request.headers.get(entry.SIMULATED_HEADER))


def _person(request: Request, study: Study, data: Mapping[str, Any]) -> Visitor:
    panel = panels.of_study(study)
    if panel.is_open and "person" in data:
        return Visitor(PanelIds(panel.name, data["person"]))
    arrived = entry.arrive(
        study,
        _as_an_address(data),
        host=request.get_host(),
        address=client_address(request),
        simulated=_is_simulated(request),
    )
    return arrived or entry.person_at_the_door(study)


def _as_an_address(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """The values of each parameter. An id may stand in the body itself and among `parameters`."""
    sent: dict[str, list[str]] = {}
    for part in (data, data.get("parameters", {})):
        for name, value in part.items():
            if isinstance(value, str):
                sent.setdefault(name, []).append(value)
    return sent


def _nested(body: Any) -> list[str]:
    """The names of values that no form can have: objects, and lists of anything but scalars."""
    return [
        name
        for name, value in body.items()
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict | list) for item in value))
    ]


def _as_a_form(body: Any) -> dict[str, str | list[str]]:
    """Scalars become the texts that a page would send, and lists become lists of them."""
    return {
        name: [_text(item) for item in value] if isinstance(value, list) else _text(value)
        for name, value in body.items()
    }


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _without_consent() -> FieldErrors:
    return FieldErrors({"consent": [_("Nobody takes part without consent. Nothing has been recorded.")]})


def _ending(study: Study, outcome: str, ids: PanelIds) -> dict[str, str]:
    """What the pages, too, show to people of whom nothing is stored."""
    code = study.completion_code(outcome)
    return {"completion_code": code, "completion_url": return_address.address_after(study, outcome, code=code, ids=ids)}


def _step(sitting: Sitting, step: Step) -> shapes.Step:
    address = return_address.address_after_sitting(sitting, step.outcome, code=step.code) if step.code else ""
    return step_data(step, completion_url=address)
