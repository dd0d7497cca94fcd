"""The words of the console are people's words: labels with units in place of the program's names."""

import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from survey.admin.report_pages import Field, in_labels
from survey.contracts.reports import Argument, Report
from survey.models import Study
from survey.services.base import job_kinds
from survey.services.results import reports
from survey.services.studies import members
from tests.admin.test_pages import busy
from tests.authorization.test_table import address_of, routes
from tests.survey.results.test_every_report import every_report

__all__ = ["busy"]
# The tags whose text is a heading, a label, an entry of a menu, a button or the head of a table.
NAMING = {"h1", "h2", "h3", "h4", "label", "legend", "th", "dt", "summary", "a", "button", "option", "abbr", "title"}
TEXT = {"p", "li", "dd", "td", "caption"}


class Said(HTMLParser):
    """The texts of a page by their tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[tuple[str, str]] = []
        self._open: list[tuple[str, list[str]]] = []
        self._silent = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in ("script", "style", "svg"):
            self._silent += 1
        if tag == "input" and attributes.get("type") == "submit":
            self.texts.append(("button", attributes.get("value", "")))
        if "aria-label" in attributes:
            self.texts.append(("aria", attributes["aria-label"]))
        if "title" in attributes:
            self.texts.append(("tip", attributes["title"]))
        if tag in NAMING | TEXT:
            self._open.append((tag, []))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "svg"):
            self._silent -= 1
        if any(name == tag for name, _t in self._open):
            while True:
                name, parts = self._open.pop()
                self.texts.append((name, " ".join("".join(parts).split())))
                if name == tag:
                    break

    def handle_data(self, data: str) -> None:
        if not self._silent:
            for _tag, parts in self._open:
                parts.append(data)


# 15:04 without UTC behind it. Stored JSON has 2026-11-28T15:04:00.
TIME_WITHOUT_ZONE = re.compile(r"(?<![\dT:+])\d{1,2}:\d\d(:\d\d)?\b(?!:| [A-Z]{3})")
OTHER_DATE = re.compile(r"\b[ap]\.m\.|\b[A-Z][a-z]{2,8}\.? \d{1,2}, \d{4}\b|\d{4}-\d\d-\d\d \d")
LONGEST = 62  # characters of a label: it stands in one line of a phone


def addresses(study: Study) -> Iterator[str]:
    """Of every page of the console: those that the site has, and a form of every report and job."""
    for route in dict.fromkeys(routes()):
        if route.startswith("admin/") and "logout" not in route:
            yield address_of(route, study)
    for entry in reports.entries_of(study):
        yield reverse("admin:survey_study_report", args=[study.pk, entry.name])
    for kind in job_kinds.all_kinds():
        yield reverse("admin:survey_job_ask", args=[study.pk, kind.name])


@pytest.fixture
def said(busy: Study, as_superuser: Client) -> Iterator[dict[tuple[str, str], str]]:
    """Every text of every page by its tag, with the address of a page that has it."""
    Group.objects.create(name="some")
    user = User.objects.get(username="super")
    members.invite(busy, role="viewer", may_spend=False, by=user, now=timezone.now())
    texts: dict[tuple[str, str], str] = defaultdict(str)
    logging.disable(logging.CRITICAL)
    for address in dict.fromkeys(addresses(busy)):
        response = as_superuser.get(address)
        if response.status_code < 400 and "html" in response.headers.get("Content-Type", ""):
            texts |= dict.fromkeys(Said(response.content.decode()).texts, address)
    yield texts
    logging.disable(logging.NOTSET)


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.any_database
def test_no_page_speaks_the_program(said: dict[tuple[str, str], str]) -> None:
    assert len(said) > 3000
    wrong = [
        f"{address}: {tag}: {text[:200]}"
        for (tag, text), address in said.items()
        for pattern in (TIME_WITHOUT_ZONE, OTHER_DATE)
        if pattern.search(text)
    ]
    # A form asks in words, and a list is called what it holds.
    wrong += [f"{address}: {text}" for (tag, text), address in said.items() if tag == "label" and "_" in text]
    wrong += [f"{address}: {text}" for (tag, text), address in said.items() if tag == "h1" and " to view" in text]
    wrong += [f"{address}: {text}" for (_tag, text), address in said.items() if "`hunch " in text]
    assert wrong == [], "\n".join(wrong)


def reports_of_all() -> list[tuple[str, Report]]:
    entries: list[Any] = [parameters.values[1] for parameters in every_report()]
    return [(entry.name, entry.load()) for entry in entries]


def test_every_argument_of_a_report_or_job_has_a_label_in_words_on_pages() -> None:
    arguments = [(name, argument) for name, report in reports_of_all() for argument in report.arguments]
    arguments += [(kind.name, argument) for kind in job_kinds.all_kinds() for argument in kind.arguments]
    assert len(arguments) > 60
    wrong = [
        f"{name}: {argument.name}: {argument.label!r}"
        for name, argument in arguments
        if not argument.label
        or "_" in argument.label
        or not argument.label[0].isupper()
        or len(argument.label) > LONGEST
    ]
    assert wrong == []


def test_a_choice_stands_on_the_page_under_its_words_and_is_sent_by_its_value() -> None:
    argument = Argument("marked", "", choices=lambda _study: {"leave_out": "left out", "keep": "count too"})
    assert Field(argument, argument.choices_in(None), ()).options == [  # type: ignore[arg-type]
        ("leave_out", "left out"),
        ("keep", "count too"),
    ]
    assert Field(argument, ["a", "b"], ()).options == [("a", "a"), ("b", "b")]


def test_a_message_on_a_page_names_the_label_that_stands_there() -> None:
    fee = Argument("fee", "", label="The panel's fee (share, 0 to 1)")
    said = in_labels("fee: '9' is not a number from 0 to 5\nother: stays: as it is", [fee])
    assert said == "The panel's fee (share, 0 to 1): '9' is not a number from 0 to 5\nother: stays: as it is"
