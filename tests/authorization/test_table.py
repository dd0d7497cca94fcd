"""Every address of the URL configuration, asked by every kind of visitor, answers as authorization.json says.

    python -m tests.renew rights

writes the file again. A new address without a row fails, and so does an answer that is another one than the committed.
What no committed file may allow stands below it: who is no member learns nothing, and a higher role is never refused
what a lower one may read. And no browser or proxy may keep any answer.
"""

import copy
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import auth
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache
from django.db import transaction
from django.db.models import Model
from django.template.backends.django import Template
from django.template.backends.jinja2 import Template as JinjaTemplate
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse
from django.utils import timezone

from survey.admin_base.admin_site import HunchAdminSite
from survey.models import (
    ApiToken,
    Evaluation,
    Job,
    PaymentBatch,
    Posting,
    PredictorRun,
    Receiver,
    Respondent,
    Study,
    StudyInvitation,
    StudyMembership,
    Submission,
)
from survey.services.base import rights
from survey.services.studies import members
from tests import cast
from tests.admin.conftest import study_in_its_second_stage
from tests.admin.test_pages import one_row_of_everything

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.any_database]

FILE = Path(__file__).with_name("authorization.json")
MISSING, MISSING_SLUG = str(10**9), "no-such-study"
# Other people's packages are installed for the tests alone.
NOT_OURS = re.compile(r"admin/toy\w*/")
MODEL_OF_ADMIN = re.compile(r"admin/(?P<app>[a-z_]+)/(?P<model>[a-z]+)/")
# One for all: making one takes longer than most requests.
CLIENT = Client(raise_request_exception=False)
ROLES = ("viewer", "analyst", "editor", "owner")
# Accounts by what they may do: who stands further on may do what those before may.
LADDER = ("no member", *ROLES, "owner who may spend", "superuser")


@dataclass(frozen=True)
class Visitor:
    """What is sent with each request, and with what it was logged in."""

    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def has_account(self) -> bool:
        return settings.SESSION_COOKIE_NAME in self.cookies

    def ask(self, method: str, address: str, *, stays: bool = False) -> int:
        """The status. Nothing that the request changed stays, unless it is said to."""
        CLIENT.cookies = SimpleCookie(self.cookies)
        with transaction.atomic():
            content_type = _content_type(address)
            response = CLIENT.generic(method, address, b"{}", content_type=content_type, headers=self.headers)
            if response.streaming:  # To its end: closing it early would close the test's connection.
                response.getvalue()
            transaction.set_rollback(not stays)
        assert "no-store" in response.headers.get("Cache-Control", ""), f"{method} {address} may be kept"
        return int(response.status_code)


def ask_each(method: str, address: str, everybody: Mapping[str, Visitor], at_once: Visitor) -> dict[str, int]:
    """The statuses by visitor. The admin asks for an account: who has none is asked there with all that anybody else
    sends at once, and one by one only where that is answered otherwise than nothing at all."""
    if not address.startswith("/admin/") or Visitor().ask(method, address) != (same := at_once.ask(method, address)):
        return {name: visitor.ask(method, address) for name, visitor in everybody.items()}
    return {name: visitor.ask(method, address) if visitor.has_account else same for name, visitor in everybody.items()}


def everything_but_an_account(everybody: Mapping[str, Visitor]) -> Visitor:
    """The cookies and headers of a respondent and of a token that may do most."""
    sitting, token = everybody["respondent of this study"], everybody["token to run"]
    return Visitor(sitting.cookies, {**sitting.headers, **token.headers})


def _content_type(address: str) -> str:
    return "application/json" if address.startswith("/api/") else "application/x-www-form-urlencoded"


# Addresses


def routes(patterns: Any = None, before: str = "") -> Iterator[str]:
    """Every address as the URL configuration writes it."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        whole = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, whole)
        elif not NOT_OURS.match(whole):
            yield whole


# By the beginning of an address and the name in it: what stands there. The longest beginning that fits counts.
FILLED = {
    ("admin/survey/sitting/", "name"): "ask-back",
    ("", "slug"): "cast",
    ("hooks/", "panel"): "prolific",
    ("tokens/", "sha256"): "f" * 64,
    ("logo/", "name"): "missing",  # One that is there is public and kept, as tokens are.
    ("admin/r/", "rest"): "1/1/",
    ("docs/", "name"): "index",
    ("docs/pictures/", "name"): "idea.svg",
    ("admin/r/", "content_type_id"): "1",
    ("admin/r/", "object_id"): "1",
    ("admin/survey/study/<int:pk>/stages/", "index"): "2",
    ("admin/survey/study/<int:pk>/stages/", "name"): "pause",
    ("admin/survey/study/<int:pk>/receivers/", "name"): "off",
    ("admin/survey/study/<int:pk>/waves/", "wave"): "2",
    ("api/v1/studies/<slug:slug>/waves/", "wave"): "2",
    ("admin/survey/study/<int:pk>/export/", "name"): "answers.csv",
    ("admin/survey/study/<int:pk>/reports/", "name"): "alignment",
    ("admin/survey/study/<int:pk>/reports/", "file"): "alignment.csv",
    ("admin/survey/study/<int:pk>/try/copy/", "what"): "renew",
    ("admin/survey/posting/<int:pk>/do/", "name"): "pay",
    ("admin/survey/job/ask/", "kind"): "export",
    ("admin/survey/job/<int:pk>/files/", "name"): "cast-export.zip",
    ("api/v1/jobs/", "name"): "cast-export.zip",
    ("api/v1/studies/<slug:slug>/reports/", "name"): "alignment",
    ("api/v1/studies/<slug:slug>/stages/", "index"): "2",
    ("api/v1/studies/<slug:slug>/stages/", "action"): "pause",
    ("admin/desk/", "group"): "banks",
    ("admin/survey/bank/upload/", "pk"): MISSING,
}
# What a name stands for, and how it leads to the study.
BY_NAME: dict[str, tuple[type[Model], str]] = {
    "study": (Study, "pk"),
    "number": (Job, "study"),
    "row": (Submission, "posting__study"),
    "batch": (PaymentBatch, "posting__study"),
    "member": (StudyMembership, "study"),
    "receiver": (Receiver, "study"),
    "invitation": (StudyInvitation, "study"),
}
# Addresses that Django writes as expressions.
EXPRESSIONS = {"admin/^(?P<app_label>": "/admin/survey/", "admin/(?P<url>.*)$": "/admin/nothing-is-here"}
PART = re.compile(r"<(?:\w+:)?(\w+)>")


def address_of(route: str, study: Study) -> str:
    """The address of the route about this study; MISSING keys where there is no study."""
    for beginning, address in EXPRESSIONS.items():
        if route.startswith(beginning):
            return address
    query = "?said=paid" if "/payment/" in route else ""
    return "/" + PART.sub(lambda part: _value(route, part[1], study), route) + query


def _value(route: str, name: str, study: Study) -> str:
    fitting = [beginning for beginning, named in FILLED if named == name and route.startswith(beginning)]
    if fitting:
        value = FILLED[max(fitting, key=len), name]
        return MISSING_SLUG if name == "slug" and study.pk is None else value
    if name in BY_NAME:
        model, path = BY_NAME[name]
        row = model._default_manager.filter(**{path: study.pk}).order_by("pk").first() if study.pk else None
        return str(row.pk) if row else MISSING
    match = MODEL_OF_ADMIN.match(route)
    assert match is not None and name in ("pk", "object_id", "id"), f"{route}: say in FILLED what {name} may be"
    if study.pk is None:
        return MISSING
    model = apps.get_model(match["app"], match["model"])
    path = rights.path_to_study(model)
    rows = model._default_manager.filter(**{path: study.pk}) if path else model._default_manager.all()
    row = rows.order_by("pk").first()
    assert row is not None, f"{route}: the test needs a row of {model.__name__}"
    return str(row.pk)


# Visitors


def account(name: str, *, permissions: bool = True, **flags: bool) -> User:
    """An account that may do everything that an account may be permitted: only its role decides."""
    user = User.objects.create_user(name, is_staff=True, **flags)
    if permissions:
        user.user_permissions.set(Permission.objects.filter(content_type__app_label__in=OURS))
    return user


OURS = (
    "survey",
    "belief_update",
    "own_answers",
    "cloze",
    "preference",
    "next_token",
    "token_comparison",
    "self_paced_reading",
)


def logged_in(user: User) -> Visitor:
    client = Client()
    client.force_login(user)
    return Visitor(cookies={name: morsel.value for name, morsel in client.cookies.items()})


def respondent(sitting: Any) -> Visitor:
    return Visitor(cookies={"hunch_sitting": sitting.token}, headers={"X-Sitting-Token": sitting.token})


def with_token(secret: str) -> Visitor:
    return Visitor(headers={"Authorization": f"Token {secret}"})


def visitors(study: Study, other: Study) -> dict[str, Visitor]:
    people = {
        "stranger": Visitor(),
        "respondent of this study": respondent(study.respondents.get(sittings__state="live").sittings.get()),
        "respondent of another": respondent(cast.begin(other)),
    }
    outsider = account("outsider")
    cast.join(outsider, other)
    people["no member"] = logged_in(outsider)
    for role in ROLES:
        user = account(role)
        cast.join(user, study, role, may_spend=False)
        people[role] = logged_in(user)
    spender = account("spender")
    cast.join(spender, study)
    people["owner who may spend"] = logged_in(spender)
    unpermitted = account("unpermitted", permissions=False)
    cast.join(unpermitted, study)
    people["owner without permissions"] = logged_in(unpermitted)
    people["superuser"] = logged_in(User.objects.get(username="super"))
    people["token to read"] = with_token(ApiToken.issue(user=spender)[1])
    people["token to run"] = with_token(ApiToken.issue(user=spender, scope=ApiToken.Scope.RUN)[1])
    expired, secret = ApiToken.issue(user=spender, scope=ApiToken.Scope.RUN)
    ApiToken.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    people["token that expired"] = with_token(secret)
    cast.join(spender, other)
    people["token for another study"] = with_token(ApiToken.issue(user=spender, studies=[other])[1])
    people["superuser's token for another study"] = with_token(
        ApiToken.issue(user=User.objects.get(username="super"), studies=[other])[1]
    )
    return people


def read_once(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """In place of Django's `get_user`: each account with its permissions and memberships, which no request changes for
    good, is read for the first request. Every request gets a copy, so that none finds what another one has noted."""
    known: dict[str, Any] = {}

    def user_of(request: Any) -> Any:
        key = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        if key not in known:
            known[key] = read(request)
            if known[key].is_authenticated:
                rights.may(known[key], rights.Right.EXPORT, 0)
        return copy.copy(known[key])

    return user_of


def at_a_boundary(everybody: Mapping[str, Visitor], stored: Mapping[str, str]) -> dict[str, Visitor]:
    """Everybody but those of the ladder whose neighbours get the same answer, by the committed row: a right that moves
    up or down the ladder shows at a boundary, or at an end. `make test-all` asks all of them."""
    inside = {
        name
        for before, name, after in zip(LADDER, LADDER[1:], LADDER[2:], strict=False)
        if stored and stored[before] == stored[name] == stored[after]
    }
    return {name: visitor for name, visitor in everybody.items() if name not in inside}


OUTSIDE = ("no member", "token for another study", "superuser's token for another study")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[tuple[Study, dict[str, Visitor]]]:
    cache.clear()
    logging.disable(logging.CRITICAL)  # Thousands of requests are refused, each with its traceback.
    # What a page says is no part of the table, and writing it would take most of the time.
    monkeypatch.setattr(SimpleTemplateResponse, "rendered_content", property(lambda _response: ""))
    for kind in (Template, JinjaTemplate):
        monkeypatch.setattr(kind, "render", lambda *_given, **_named: " ")
    monkeypatch.setattr(auth, "get_user", read_once(auth.get_user))
    app_list = AdminSite.get_app_list
    monkeypatch.setattr(AdminSite, "get_app_list", lambda *arguments: app_list(*arguments) if arguments[2:] else [])
    monkeypatch.setattr(HunchAdminSite, "_desk", lambda *_given: [])
    settings.HUNCH_LIVE_SECONDS = 3600  # One picture of the study for all.
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"  # One statement less a request.
    study = study_in_its_second_stage()
    superuser = User.objects.create_superuser("super")
    one_row_of_everything(study, superuser)
    other = cast.open_study(slug="other", bank=cast.bank(name="other").name)
    members.invite(study, role="viewer", may_spend=False, by=superuser, now=timezone.now())
    Group.objects.create(name="some")
    cast.join(User.objects.create_user("somebody else"), study)  # The member whom the addresses are about.
    Evaluation.objects.create(
        predictor_run=PredictorRun.objects.filter(stage__study=study)[0],
        stage=study.stages.get(index=2),
        metrics={"naive": {"n": 1}},
    )
    # There are postings and people to ask about.
    assert Posting.objects.filter(study=study).exists() and Respondent.objects.filter(study=study).exists()
    everybody = visitors(study, other)
    for figures in ("live", "estimates"):  # They are stored, and not made for each visitor.
        everybody["superuser"].ask("GET", reverse(f"admin:survey_study_{figures}", args=[study.pk]), stays=True)
    yield study, everybody
    logging.disable(logging.NOTSET)


def test_every_address_answers_every_visitor_as_the_table_says(
    world: tuple[Study, dict[str, Visitor]], request: pytest.FixtureRequest
) -> None:
    study, everybody = world
    at_once = everything_but_an_account(everybody)
    outside = {name: everybody[name] for name in OUTSIDE}
    asked = [(route, address_of(route, study), address_of(route, Study())) for route in dict.fromkeys(routes())]
    stored = read_table()
    all_of_them = request.config.getoption("--renew") or request.config.getoption("--tier") == "all"
    table: dict[str, dict[str, int]] = {}
    wrong: list[str] = []
    for route, address, elsewhere in asked:
        for method in ("GET", "POST"):
            row = f"{method} {route}"
            whom = everybody if all_of_them else at_a_boundary(everybody, stored.get(row, {}))
            table[row] = ask_each(method, address, whom, at_once)
            wrong += problems(f"{method} {address}", table[row])
            if address != elsewhere and is_of_a_study(route):
                there = ask_each(method, elsewhere, outside, at_once)
                wrong += [
                    f"{method} {address}: {name} learns whether it exists"
                    for name in OUTSIDE
                    if there[name] != table[row][name]
                ]
    if request.config.getoption("--renew"):
        write_table(list(everybody), table)
        stored = read_table()
    assert sorted(stored) == sorted(table), "a route without a row: say who may what"
    assert {list(row) == list(everybody) for row in stored.values()} == {True}
    differing = {
        row: {name: status for name, status in answers.items() if stored[row][name] != str(status)}
        for row, answers in table.items()
    }
    assert {row: answers for row, answers in differing.items() if answers} == {}
    assert not wrong, "\n".join(wrong)


def read_table() -> dict[str, dict[str, str]]:
    """The committed answers: by method and route, then by visitor."""
    rows: Any = json.loads(FILE.read_text(encoding="utf-8"))
    return {row: dict(zip(rows["visitors"], answers.split(), strict=True)) for row, answers in rows["answers"].items()}


def write_table(visitors: list[str], table: dict[str, dict[str, int]]) -> None:
    answers = {row: " ".join(map(str, table[row].values())) for row in sorted(table)}
    FILE.write_text(json.dumps({"visitors": visitors, "answers": answers}, indent=1) + "\n", encoding="utf-8")


def problems(asked: str, answers: dict[str, int]) -> list[str]:
    """What no table may say."""
    messages = [f"{asked}: {name} gets {status}" for name, status in answers.items() if status >= 500 and status != 503]
    ladder = [name for name in LADDER[1:] if name in answers]
    read = [name for name in ladder if answers[name] == 200]
    if read and any(answers[name] != 200 for name in ladder[ladder.index(read[0]) :]):
        messages.append(f"{asked}: {read[0]} may, and a higher role may not")
    return messages


def is_of_a_study(route: str) -> bool:
    """Whether the address names a study or something of it to researchers."""
    if route.startswith("api/v1/studies/<slug:slug>/"):
        return route not in ("api/v1/studies/<slug:slug>/", "api/v1/studies/<slug:slug>/sittings/")
    match = MODEL_OF_ADMIN.match(route)
    return match is not None and rights.is_ruled(apps.get_model(match["app"], match["model"]))
