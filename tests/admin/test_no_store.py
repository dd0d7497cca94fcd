"""No browser and no proxy keeps a page, an answer of the API or an export."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admindocs.views import simplify_regex
from django.template.backends.django import Template
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RegexPattern

from survey.admin_base.admin_site import HunchAdminSite
from survey.models import Study

pytestmark = pytest.mark.slow

FILLED = {"app_label": "survey", "name": "answers.csv", "file": "words.csv", "index": "1", "panel": "prolific"}


def routes(patterns: list[Any], before: str = "/") -> Iterator[str]:
    """Every address of the URL configuration, with its placeholders."""
    for pattern in patterns:
        route = str(pattern.pattern)
        if isinstance(pattern.pattern, RegexPattern):
            route = simplify_regex(route).lstrip("/")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, before + route)
        elif isinstance(pattern, URLPattern):
            yield before + route


def addresses(study: Study) -> list[str]:
    return sorted({filled(route, study) for route in routes(get_resolver().url_patterns)})


def filled(route: str, study: Study) -> str:
    """The route with a value in each placeholder. A model's pages lead to its first row, whatever its number is."""
    if page := re.match(r"/admin/(\w+)/(\w+)/<", route):
        row = apps.get_model(page[1], page[2])._default_manager.order_by("pk").first()
        route = re.sub(r"<[^>]+>", str(row.pk if row else 1), route, count=1)
    values = {**FILLED, "slug": study.slug}
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda place: values.get(place[1], "1"), route)


def is_kept(response: Any) -> bool:
    return "no-store" not in response.headers.get("Cache-Control", "")


@pytest.mark.slow
@pytest.mark.any_database
def test_no_address_answers_with_what_may_be_kept(
    study: Study, as_superuser: Client, superuser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a page says is not looked at, and writing it would take most of the time.
    monkeypatch.setattr(SimpleTemplateResponse, "rendered_content", property(lambda _response: ""))
    monkeypatch.setattr(Template, "render", lambda *_given, **_named: " ")
    monkeypatch.setattr(HunchAdminSite, "_desk", lambda *_given: [])
    walked = addresses(study)
    for part in ("/admin/survey/study/", "/s/cast/sitting", "/api/v1/sitting/", "/api/v1/studies/cast/answers.csv"):
        assert part in walked
    stranger, opened = Client(), 0
    for address in walked:
        seen = as_superuser.get(address)
        opened += seen.status_code == 200
        answers = {"seen": seen, "asked": stranger.get(address), "sent": stranger.post(address)}
        assert [name for name, response in answers.items() if is_kept(response)] == [], address
    assert opened > 90


@pytest.mark.thorough
def test_an_export_is_not_kept(study: Study, as_superuser: Client) -> None:
    for name in ("answers.csv", "codebook.md", "forms.csv"):
        response = as_superuser.post(f"/admin/survey/study/{study.pk}/export/{name}")
        assert response.status_code == 200 and not is_kept(response)


def test_a_refused_body_and_an_unknown_page_are_not_kept(db: None, settings: Any) -> None:
    settings.HUNCH_MAX_BODY = 10
    client = Client()
    assert not is_kept(client.post("/api/v1/sitting/", "x" * 100, content_type="text/plain"))
    assert not is_kept(client.get("/nowhere"))
