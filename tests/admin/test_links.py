"""Links in the admin: the list, and making some, which are shown once."""

import csv
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from survey.models import AuditEntry, EntryLink, Study
from survey.services.base.auditing import actor_of
from tests import cast

from .conftest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
LIST, MAKE = "/admin/survey/entrylink/", "/admin/survey/entrylink/add/"


@pytest.fixture
def lab() -> Study:
    return cast.open_study(panel={"kind": "links"})


def made(client: Client, count: int = 2) -> list[dict[str, str]]:
    response = client.post(MAKE, {"study": "cast", "count": count})
    assert response.status_code == 200 and response.headers["Content-Type"].startswith("text/csv")
    assert "no-store" in response.headers["Cache-Control"]
    return list(csv.DictReader(StringIO(response.content.decode())))


def test_links_come_as_a_file_and_let_people_in(
    lab: Study, researcher: Any, as_researcher: Client, client: Client
) -> None:
    rows = made(as_researcher)
    assert [row["number"] for row in rows] == ["1", "2"]
    address = rows[0]["link"].removeprefix("http://testserver")
    assert client.get(address).status_code == 302
    client.post("/s/cast/consent", {"consent": "yes"})
    assert [(link.number, link.used_at is None) for link in EntryLink.objects.all()] == [(1, False), (2, True)]
    entry = AuditEntry.objects.get(action="make_links")
    assert (entry.actor, entry.via) == (actor_of(researcher), "admin")
    assert entry.detail == {"count": 2, "first": 1}


def test_the_list_says_which_are_used_and_shows_no_link(lab: Study, as_researcher: Client, client: Client) -> None:
    token = made(as_researcher)[0]["link"].partition("=")[2]
    client.get(f"/s/cast/?link={token}")
    client.post("/s/cast/consent", {"consent": "yes"})
    body = as_researcher.get(LIST).content.decode()
    assert body.count(">used<") == 1 and body.count(">unused<") == 1
    for link in EntryLink.objects.all():
        page = as_researcher.get(f"{LIST}{link.pk}/change/").content.decode()
        assert token not in body + page and link.token_hash not in body + page


def test_only_studies_that_are_entered_by_links_are_offered(lab: Study, as_researcher: Client) -> None:
    cast.open_study(slug="open-one")
    body = as_researcher.get(MAKE).content.decode()
    assert '<option value="cast">' in body and "open-one" not in body
    response = as_researcher.post(MAKE, {"study": "open-one", "count": 2})
    assert response.status_code == 200 and b"errorlist" in response.content
    assert not EntryLink.objects.exists()


@pytest.mark.thorough
@pytest.mark.parametrize("count", ["0", "-1", "5001", "many", ""])
def test_a_number_that_is_none_is_reported_at_its_field(lab: Study, as_researcher: Client, count: str) -> None:
    response = as_researcher.post(MAKE, {"study": "cast", "count": count})
    assert b"errorlist" in response.content and not EntryLink.objects.exists()


def test_making_links_needs_its_own_permission(lab: Study, onlooker: Any) -> None:
    client = client_of(onlooker)
    assert client.get(MAKE).status_code == client.post(MAKE, {"study": "cast", "count": 2}).status_code == 403
    assert client.get(LIST).status_code == 403
    assert not EntryLink.objects.exists()


def test_the_study_page_offers_what_is_owed(lab: Study, as_researcher: Client) -> None:
    cast.open_study(slug="open-one")
    body = as_researcher.get(f"/admin/survey/study/{lab.pk}/change/").content.decode()
    assert f"/admin/survey/study/{lab.pk}/export/owed.csv" in body
    download = as_researcher.post(f"/admin/survey/study/{lab.pk}/export/owed.csv")
    assert b"".join(download.streaming_content).startswith(b"respondent,stage,state")  # type: ignore[attr-defined]
    other = Study.objects.get(slug="open-one")
    assert as_researcher.post(f"/admin/survey/study/{other.pk}/export/owed.csv").status_code == 404
