"""The OpenAPI document at its address: nobody needs an account for it, so it must cost a process little."""

import json
from typing import Any

import pytest
import yaml
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from survey.api import document

pytestmark = pytest.mark.slow

ADDRESS = "/api/schema/"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each time that the document is made, in a process that has made none."""
    entries: list[int] = []
    real = SchemaGenerator.get_schema

    def count(generator: SchemaGenerator, *arguments: Any, **named: Any) -> Any:
        entries.append(1)
        return real(generator, *arguments, **named)

    monkeypatch.setattr(SchemaGenerator, "get_schema", count)
    document._written.cache_clear()
    document._document.cache_clear()
    return entries


@pytest.mark.thorough
def test_it_is_made_once_whoever_asks_for_whatever(client: Client, made: list[int]) -> None:
    first = client.get(ADDRESS)
    asked = [
        client.get(ADDRESS, {"lang": "de", "version": "2"}, headers={"Accept-Language": "de"}),
        client.get(ADDRESS, headers={"Authorization": "Token forged"}),
        client.get(ADDRESS, headers={"Accept": "application/json"}),
    ]
    assert [response.status_code for response in (first, *asked)] == [200] * 4 and len(made) == 1
    assert asked[0].content == asked[1].content == first.content
    assert yaml.safe_load(first.content) == json.loads(asked[2].content)
    assert first["Content-Type"].startswith("application/vnd.oai.openapi; charset=utf-8")
    assert first["Content-Disposition"] == 'inline; filename="hunch.yaml"'


def test_it_names_every_operation_and_no_address_of_the_site(client: Client) -> None:
    document = client.get(ADDRESS, headers={"Accept": "application/json"}).json()
    assert document["openapi"].startswith("3.") and "/api/v1/studies/{slug}/" in document["paths"]
    assert b"testserver" not in client.get(ADDRESS).content
