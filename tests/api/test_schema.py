"""The OpenAPI schema: complete, without warnings, and with examples that fit."""

import re
from typing import Any, is_typeddict

import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from rest_framework.serializers import Serializer

from survey.api import serializers, shapes
from survey.api.examples import recorded
from survey.api.urls import urlpatterns


@pytest.fixture(scope="module")
def schema() -> Any:
    GENERATOR_STATS.reset()
    made = SchemaGenerator().get_schema(request=None, public=True)
    assert GENERATOR_STATS._warn_cache == {} and GENERATOR_STATS._error_cache == {}
    return made


@pytest.mark.thorough
def test_the_schema_is_valid_and_comes_without_warnings(schema: Any) -> None:
    validate_schema(schema)


def test_every_address_stands_in_the_schema(schema: Any) -> None:
    ours = {re.sub(r"<\w+:(\w+)>", r"{\1}", f"/api/v1/{pattern.pattern}") for pattern in urlpatterns}
    assert set(schema["paths"]) == ours


def test_who_may_call_what_stands_in_the_schema(schema: Any) -> None:
    security = {
        f"{method} {path}": operation.get("security")
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    }
    assert {"token": []} in security["get /api/v1/studies/{slug}/answers.csv"]
    assert {"sitting": []} in security["post /api/v1/sitting/"]
    assert security["post /api/v1/studies/{slug}/sittings/"] in (None, [], [{}])


def test_every_operation_has_a_summary_of_its_own(schema: Any) -> None:
    summaries = [operation.get("summary") for path in schema["paths"].values() for operation in path.values()]
    assert all(summaries) and len(set(summaries)) == len(summaries)


def serializer_named(name: str) -> type[Serializer[Any]]:
    shape = getattr(shapes, name, None)
    if is_typeddict(shape):
        return serializers.serializer_of(shape)
    described: type[Serializer[Any]] = getattr(serializers, f"{name}Serializer")
    return described


BODIES = [
    pytest.param(name, value, id=f"{name}: {example}")
    for name, values in recorded()["bodies"].items()
    for example, value in values.items()
]


def test_every_body_that_is_answered_has_examples(schema: Any) -> None:
    bare = [
        f"{operation['operationId']} {status}"
        for path in schema["paths"].values()
        for operation in path.values()
        for status, response in operation["responses"].items()
        for kind, body in response.get("content", {}).items()
        if kind == "application/json" and not body.get("examples")
    ]
    assert bare == []


@pytest.mark.parametrize(("name", "value"), BODIES)
def test_an_example_fits_its_serializer(name: str, value: Any) -> None:
    serializer = serializer_named(name)
    read = serializer(data=value)
    assert read.is_valid(), read.errors
    if name == "Answer":
        return  # next to `step` it takes the fields of the step, whatever they are called
    assert set(value) <= set(serializer().fields)
