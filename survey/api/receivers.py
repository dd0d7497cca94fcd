"""Where a study's alerts are sent, over the API: listed, added, tried, switched and removed. Needs the right to run."""

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from survey.exceptions import NotFound
from survey.models import Receiver, Study
from survey.operation import deliveries, receivers
from survey.services.base.rights import Right

from . import shapes
from .researchers import ResearcherView
from .respondents import REFUSED_BODIES, errors
from .serializers import NewReceiverSerializer, ReceiverSwitchSerializer, list_of, response_of, serializer_of

NEWEST = 20  # of what a receiver was sent
RECEIVER = OpenApiParameter("receiver", int, OpenApiParameter.PATH, description="The receiver's number.")


class ReceiverList(ResearcherView):
    @extend_schema(
        operation_id="receivers",
        summary="List where the study's alerts are sent",
        responses={200: serializer_of(shapes.Receiver)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """Webhooks by their host alone, e-mail addresses, and which alerts each gets. It needs the right to run the
        study."""
        rows = self.study(slug, Right.RUN).receivers.select_related("created_by").order_by("pk")
        return list_of(shapes.Receiver, [_as_json(row) for row in rows])

    @extend_schema(
        operation_id="receiver_add",
        summary="Add a webhook or an e-mail address",
        request=NewReceiverSerializer,
        responses={
            201: serializer_of(shapes.ReceiverMade),
            **errors(400, 401, 403, 404, 409, *REFUSED_BODIES, 422, 429),
        },
        tags=["researchers"],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Its secret, which signs every event, is in this answer alone. Without `causes` it gets all alerts."""
        study = self.study(slug, Right.RUN)
        body = NewReceiverSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        receiver, secret = receivers.add(study, **body.validated_data, by=request.user, via="api")
        return response_of(shapes.ReceiverMade, {**_as_json(receiver), "secret": secret}, status=201)


class ReceiverOne(ResearcherView):
    @extend_schema(
        operation_id="receiver",
        summary="Read a receiver and what it was sent",
        parameters=[RECEIVER],
        responses={200: serializer_of(shapes.Receiver), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str, receiver: int) -> Response:
        """With its newest events and the last answer to each."""
        own_receiver = _found(self.study(slug, Right.RUN), receiver)
        return response_of(shapes.Receiver, _as_json(own_receiver, with_events=True))

    @extend_schema(
        operation_id="receiver_switch",
        summary="Switch a receiver on or off",
        parameters=[RECEIVER],
        request=ReceiverSwitchSerializer,
        responses={200: serializer_of(shapes.Receiver), **errors(400, 401, 403, 404, *REFUSED_BODIES, 422, 429)},
        tags=["researchers"],
    )
    def patch(self, request: Request, slug: str, receiver: int) -> Response:
        """What happens while it is off is not sent later. The same again changes nothing."""
        study = self.study(slug, Right.RUN)
        own_receiver = _found(study, receiver)
        body = ReceiverSwitchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        receivers.switch(
            own_receiver, on=body.validated_data["is_active"], why="by a person", by=request.user, via="api"
        )
        return response_of(shapes.Receiver, _as_json(_found(study, receiver), with_events=True))

    @extend_schema(
        operation_id="receiver_remove",
        summary="Remove a receiver",
        parameters=[RECEIVER],
        responses={204: OpenApiResponse(description="It is removed."), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def delete(self, request: Request, slug: str, receiver: int) -> Response:
        """With the list of what it was sent."""
        receivers.remove(_found(self.study(slug, Right.RUN), receiver), by=request.user, via="api")
        return Response(status=204)


class ReceiverTest(ResearcherView):
    @extend_schema(
        operation_id="receiver_test",
        summary="Send a receiver a test event",
        parameters=[RECEIVER],
        request=None,
        responses={202: serializer_of(shapes.Receiver), **errors(400, 401, 403, 404, 409, *REFUSED_BODIES, 429)},
        tags=["researchers"],
    )
    def post(self, request: Request, slug: str, receiver: int) -> Response:
        """A worker sends it within some seconds; reading the receiver shows the answer."""
        own_receiver = _found(self.study(slug, Right.RUN), receiver)
        deliveries.send_test(own_receiver, by=request.user, via="api")
        return response_of(shapes.Receiver, _as_json(own_receiver, with_events=True), status=202)


def _found(study: Study, number: int) -> Receiver:
    own_receiver = study.receivers.select_related("study", "created_by").filter(pk=number).first()
    if own_receiver is None:
        raise NotFound(f"{study.slug} has no receiver {number}")
    return own_receiver


def _as_json(receiver: Receiver, *, with_events: bool = False) -> shapes.Receiver:
    events: list[shapes.ReceiverEvent] = [
        {
            "event": delivery.event,
            "state": delivery.state,
            "tries": delivery.tries,
            "answer": delivery.answer,
            "created_at": delivery.created_at,
        }
        for delivery in (receiver.deliveries.all()[:NEWEST] if with_events else ())
    ]
    return {
        "number": receiver.pk,
        "kind": receiver.kind,
        "shown": receiver.shown,
        "causes": receiver.causes,
        "is_active": receiver.is_active,
        "off_because": receiver.off_because,
        "created_by": receiver.created_by.get_username() if receiver.created_by else "",
        "since": receiver.since,
        "events": events,
    }
