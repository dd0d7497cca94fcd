"""The API as its OpenAPI document describes it: every answer is checked against the document."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from drf_spectacular.generators import SchemaGenerator

# schemathesis takes a second to import, and every process that collects tests imports this module.


@cache
def document() -> dict[str, Any]:
    made: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return made


@cache
def operations() -> dict[str, Any]:
    """Every operation of the document by its id, to be called in process."""
    import schemathesis
    from schemathesis.core.result import Ok

    schema = schemathesis.openapi.from_dict(document())
    schema.app = WSGIHandler()  # survey.wsgi would give this process the limits of pages.
    results = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    return {operation.definition.raw["operationId"]: operation for operation in results}


def generated(operation: Any, mode: str) -> Any:
    """A hypothesis strategy: calls of the operation that fit the document ("positive"), or do not ("negative")."""
    from schemathesis import GenerationMode

    return operation.as_strategy(generation_mode=GenerationMode(mode))


def validate(case: Any, response: Any) -> None:
    """Fails where the response is another one than the document says."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    case.validate_response(
        response,
        checks=[
            not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
            checks.response_headers_conformance,
        ],
    )


@contextmanager
def connection_kept() -> Iterator[None]:
    """As Django's own test client has it: a request in process does not close the connection of the test."""
    connected = [signal for signal in (request_started, request_finished) if signal.disconnect(close_old_connections)]
    try:
        yield
    finally:
        for signal in connected:
            signal.connect(close_old_connections)


def call(
    name: str, *, path: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None, **options: Any
) -> Any:
    """Call an operation; its answer, which fits the document."""
    case = operations()[name].Case(path_parameters=dict(path or {}), **options)
    with connection_kept():
        response = case.call(headers=dict(headers or {}))
    validate(case, response)
    return response
