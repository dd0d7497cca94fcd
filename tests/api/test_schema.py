"""The OpenAPI schema: complete, without warnings, and with examples that fit."""

import re
from typing import Any

import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from rest_framework.serializers import Serializer

from survey.api import serializers, study_serializers
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


def examples() -> list[tuple[str, type[Serializer[Any]], Any]]:
    found_examples = []
    for module, name in [
        (serializer_module, name)
        for serializer_module in (serializers, study_serializers)
        for name in dir(serializer_module)
    ]:
        described = getattr(module, name)
        if getattr(described, "__module__", module.__name__) != module.__name__:
            continue  # imported from the other one
        for example in getattr(described, "_spectacular_annotation", {}).get("examples", []):
            found_examples.append((f"{name}: {example.name}", described, example.value))
    return found_examples


def test_there_are_examples() -> None:
    assert len(examples()) >= 10


@pytest.mark.parametrize(("name", "serializer", "value"), examples(), ids=[name for name, _s, _v in examples()])
def test_an_example_fits_its_serializer(name: str, serializer: type[Serializer[Any]], value: Any) -> None:
    read = serializer(data=value)
    assert read.is_valid(), read.errors
    if name.startswith("AnswerSerializer"):
        return  # next to `step` it takes the fields of the step, whatever they are called
    assert set(value) <= set(serializer().fields)
