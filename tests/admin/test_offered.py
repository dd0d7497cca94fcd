"""A page offers nothing that its reader may not do: every link and every form of the pages of a study, by each role."""

import re
from collections import defaultdict
from collections.abc import Iterable, Set
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from survey.models import Study
from survey.services.results import reports
from tests import cast

from .conftest import client_of
from .test_pages import busy

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.any_database, pytest.mark.thorough]
__all__ = ["busy"]
ROLES = ("viewer", "analyst", "editor", "owner who may spend")
NOT_TRIED = ("/admin/logout/", "/admin/jsi18n/")
# The tags that offer something. Reading all others would take a third as long as making the page.
OFFERING = re.compile(r"""<(?:a|/?form|input|button)\b(?:[^>"']|"[^"]*"|'[^']*')*>""")
# What the pages of a table's rows differ in, and those of one list in another order.
ROW_OR_ORDER = re.compile(r"/\d+/change/$|(?<=[?&])(o|sort)=[^&]*(&reverse=1)?")


class Offers(HTMLParser):
    """The links of a page, and where its forms are sent."""

    def __init__(self, address: str, text: str) -> None:
        super().__init__()
        self.address = address
        self.links: set[str] = set()
        self.forms: set[tuple[str, str]] = set()
        self._form: tuple[str, str] | None = None
        self.feed("".join(OFFERING.findall(text)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in attributes:
            self.links.add(self.whole(attributes["href"]))
        elif tag == "form":
            self._form = attributes.get("method", "get").lower(), self.whole(attributes.get("action", ""))
        elif self._form and (attributes.get("type") == "submit" or (tag == "button" and "type" not in attributes)):
            self.forms.add(self._form)  # Django's pages for looking only have a form without a button.

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None

    def whole(self, address: str) -> str:
        return urldefrag(urljoin(self.address, address)).url


def member(study: Study, role: str) -> Client:
    """Somebody whose account may do everything: only the role decides."""
    user = User.objects.create_user(role, is_staff=True)
    apps = {study._meta.app_label, "belief_update", "own_answers", "preference"}
    user.user_permissions.set(Permission.objects.filter(content_type__app_label__in=apps))
    cast.join(user, study, role.split(" ")[0], may_spend="spend" in role)
    return client_of(user)


def offered(client: Client, address: str) -> Offers | None:
    response = client.get(address)
    assert response.status_code < 400, f"{address} is offered and answers {response.status_code}"
    if response.streaming or "html" not in response.headers.get("Content-Type", ""):
        return None
    return Offers(address, response.content.decode())


def is_ours(address: str) -> bool:
    return address.startswith("/admin/") and not address.startswith(NOT_TRIED)


def test_every_link_and_form_that_is_offered_may_be_used(
    busy: Study, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.HUNCH_LIVE_SECONDS = 3600  # One picture of the study for all.
    # A report has the same words for everybody who may open it: each is made once, for all roles.
    made: dict[str, Any] = {}
    make = reports.make

    def make_once(study: Study, name: str, arguments: Any = None) -> Any:
        key = f"{study.pk} {name} {arguments}"
        if key not in made:
            made[key] = make(study, name, arguments)
        return made[key]

    monkeypatch.setattr(reports, "make", make_once)
    tried: set[tuple[str, str]] = set()
    for role in ROLES:
        tried |= walk_as(busy, role, tried)
    assert len(tried) > 100


def two_of_each(links: Iterable[str]) -> list[str]:
    """Of the rows of one table, and of the orders of one list, two."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for link in sorted(links):
        alike[ROW_OR_ORDER.sub("", link)].append(link)
    return [link for same in alike.values() for link in (same if len(same) <= 2 else [same[0], same[-1]])]


def walk_as(busy: Study, role: str, tried: Set[tuple[str, str]]) -> Set[tuple[str, str]]:
    """Gives the forms that it has tried. Those tried before are not tried again: each role may do what the ones before
    it may, as tests/authorization says of every address."""
    client = member(busy, role)
    page = reverse("admin:survey_study_change", args=[busy.pk])

    def pages_of(links: Iterable[str]) -> list[Offers]:
        return [page for link in two_of_each(links) if (page := offered(client, link)) is not None]

    first = pages_of(["/admin/", page])
    second = {link for first_page in first for link in first_page.links if is_ours(link)} - {"/admin/", page}
    pages = [*first, *pages_of(second)]
    assert len(pages) > 10
    # The links of the pages that belong to the study alone, such as a posting's; lists are long, and their rows alike.
    third = {link for page in pages if "/study/" in page.address for link in page.links if is_ours(link)} - second
    pages += pages_of(third - {"/admin/", page})
    forms = {form for page in pages for form in page.forms if is_ours(form[1])}
    for method, address in sorted(forms - tried):
        with transaction.atomic():
            response = client.get(address) if method == "get" else client.post(address)
            if response.streaming:
                response.getvalue()
            transaction.set_rollback(True)
        assert response.status_code not in (403, 404, 405), f"{role}: {method} {address}: {response.status_code}"
    return forms


def test_who_may_run_a_study_is_offered_it_and_a_viewer_is_not(busy: Study) -> None:
    page = reverse("admin:survey_study_change", args=[busy.pk])
    receivers = reverse("admin:survey_study_receivers", args=[busy.pk])
    offers = offered(member(busy, "viewer"), page)
    assert offers is not None and receivers not in offers.links and not any("/stages/" in link for link in offers.links)
    offers = offered(member(busy, "editor"), page)
    assert offers is not None and receivers in offers.links
