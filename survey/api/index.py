"""`/api/v1/`: every address of the API with what it does, taken from the OpenAPI document."""

from functools import cache
from typing import Any

from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from . import shapes
from .respondents import errors
from .serializers import response_of, serializer_of


class Index(APIView):
    authentication_classes: Any = ()
    permission_classes: Any = ()

    @extend_schema(
        operation_id="index",
        summary="List the addresses of the API",
        responses={200: serializer_of(shapes.Index), **errors(429)},
        tags=["anybody"],
    )
    def get(self, request: Request) -> Response:
        """Every address, who uses it, and what each method does."""
        index: shapes.Index = {
            "name": "Hunch",
            "version": "1",
            "schema": request.build_absolute_uri(reverse("schema")),
            "documentation": request.build_absolute_uri(reverse("docs")),
            "addresses": addresses(),
        }
        return response_of(shapes.Index, index)


@cache
def addresses() -> list[shapes.Address]:
    """The operations of the OpenAPI document by address. They change only with the code."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    return [
        {
            "address": path,
            "used_by": sorted({tag for operation in operations.values() for tag in operation["tags"]}),
            "operations": [
                {"method": method.upper(), "name": operation["operationId"], "summary": operation.get("summary", "")}
                for method, operation in operations.items()
            ],
        }
        for path, operations in document["paths"].items()
    ]
