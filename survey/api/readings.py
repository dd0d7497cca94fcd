"""Readings of texts, for researchers: how probable each token of a text was to each language model that read it."""

import math
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from survey.models import QuestionText, Reading
from survey.services.base import rights

from . import shapes
from .researchers import ResearcherView
from .respondents import errors
from .serializers import serializer_of

MAX_READINGS = 200  # Readings of one answer: each language model and version that read the text.


class ReadingList(ResearcherView):
    filters = ("text_id", "text_sha256", "bank", "language_model")

    @extend_schema(
        operation_id="readings",
        summary="List the readings of a text",
        parameters=[
            OpenApiParameter("text_id", str, description="The id of a text in a bank; or give text_sha256."),
            OpenApiParameter("text_sha256", str, description="The hash of a text."),
            OpenApiParameter("bank", str, description="With `text_id`: only this bank, NAME or NAME@VERSION."),
            OpenApiParameter("language_model", str, description="Only this language model."),
        ],
        responses={200: serializer_of(shapes.Reading)(many=True), **errors(400, 401, 403, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request) -> Response:
        """Readings of one text, the newest first, at most 200: of texts in the banks of your studies."""
        query = request.query_params
        if unusable := [name for name in query if "\0" in query[name]]:
            raise ValidationError({name: [_("Holds a character that no text has.")] for name in unusable})
        rows = rights.visible(request.user, Reading.objects.select_related("language_model"))
        if "text_id" in query:
            texts = rights.visible(request.user, QuestionText.objects.filter(question__external_id=query["text_id"]))
            name, at, version = query.get("bank", "").partition("@")
            if name:
                texts = texts.filter(question__bank__name=name)
            if at:
                is_number = version.isdecimal() and version.isascii() and len(version) < 9
                texts = texts.filter(question__bank__version=int(version)) if is_number else texts.none()
            rows = rows.filter(text_sha256__in=texts.order_by().values("text_sha256"))
        elif "bank" in query:
            raise ValidationError({"bank": [_("Needs text_id: the id of a text in that bank.")]})
        elif "text_sha256" not in query:
            raise ValidationError({"text_id": [_("Say which text: give text_id or text_sha256.")]})
        if "text_sha256" in query:
            rows = rows.filter(text_sha256=query["text_sha256"])
        if "language_model" in query:
            rows = rows.filter(language_model__name=query["language_model"])
        return Response([_as_json(row) for row in rows.order_by("-pk")[:MAX_READINGS]])


def _as_json(row: Reading) -> dict[str, Any]:
    tokens = row.token_array
    return {
        **serializer_of(shapes.Reading)(
            {
                "language_model": row.language_model.name,
                "text_sha256": row.text_sha256,
                "characters": row.characters,
                "source": row.source,
                "tokenizer_sha256": row.tokenizer_sha256,
                "reads_end": row.reads_end,
                "code_version": row.code_version,
                "created_at": row.created_at,
                "tokens": [],
            }
        ).data,
        # A serializer for each of thousands of tokens would take most of the time.
        "tokens": [
            {
                "start": start,
                "end": end,
                "logprob": value if math.isfinite(value) else None,
                "impossible": value == -math.inf,
            }
            for start, end, value in tokens.tolist()
        ],
    }
