"""Rules for all pages: health, headers, limits."""

from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client

from survey import health


@pytest.mark.django_db
def test_it_is_well_without_a_broker_and_says_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "broker_answers", lambda: False)
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"database": "ok", "broker": "down"})


@pytest.mark.redis
@pytest.mark.django_db
def test_it_sees_a_real_broker(client: Client, redis_server: str) -> None:
    assert client.get("/healthz").json() == {"database": "ok", "broker": "ok"}


def test_it_is_not_well_when_answers_cannot_be_stored(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoConnection:
        def cursor(self) -> None:
            raise DatabaseError("gone")

    monkeypatch.setattr(health, "connection", NoConnection())
    assert client.get("/healthz").status_code == 503


@pytest.mark.parametrize("path", ["/s/demo/", "/api/v1/sittings/"])
def test_ten_megabytes_of_form_are_refused_before_anything_reads_them(client: Client, path: str) -> None:
    response = client.post(path, data=b"a=" + b"x" * 10_000_000, content_type="application/x-www-form-urlencoded")
    assert response.status_code == 413
    assert b"Traceback" not in response.content


def test_the_api_refuses_a_large_body_in_its_own_shape(client: Client) -> None:
    response = client.post("/api/v1/sittings/", data=b"[" + b" " * 1_000_000 + b"]", content_type="application/json")
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "too_large"


@pytest.mark.django_db
def test_scripts_and_styles_come_from_us_alone(client: Client) -> None:
    for path in ("/admin/login/", "/healthz"):
        headers = client.get(path).headers
        policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'self'"
        assert "script-src" not in policy and "style-src" not in policy
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"


@pytest.mark.django_db
def test_the_policy_is_the_one_that_its_base_class_makes(client: Client, settings: Any) -> None:
    paths = ("/admin/login/", "/healthz", "/api/docs/", "/nothing-is-here")  # The API's page wants another one.
    ours = [client.get(path).headers["Content-Security-Policy"] for path in paths]
    base = {"survey.web.middleware.PolicyMiddleware": "csp.middleware.CSPMiddleware"}
    settings.MIDDLEWARE = [base.get(name, name) for name in settings.MIDDLEWARE]
    assert "csp.middleware.CSPMiddleware" in settings.MIDDLEWARE
    assert ours == [Client().get(path).headers["Content-Security-Policy"] for path in paths]
    assert len(set(ours)) == 2


@pytest.mark.django_db
def test_swagger_ui_comes_from_our_own_files_without_an_inline_script(client: Client) -> None:
    response = client.get("/api/docs/")
    assert response.status_code == 200
    page = response.content.decode()
    assert "<script>" not in page
    assert "//cdn" not in page
    assert "script-src" not in response.headers["Content-Security-Policy"]


def test_static_files_are_served_without_a_collectstatic(client: Client) -> None:
    response = client.get("/static/admin/css/base.css")
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/css")
