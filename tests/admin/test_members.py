"""The members' pages: who sees them, what owners do there, and an invitation from its link to the membership."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from survey.models import AuditEntry, Study
from survey.services.base.auditing import actor_of
from survey.services.base.groups import ensure_researchers_group
from tests import cast

from .conftest import client_of

pytestmark = pytest.mark.slow


@pytest.fixture
def fresh(db: None) -> Study:
    return cast.small_study()


@pytest.fixture
def owned(fresh: Study, researcher: User) -> Study:
    return fresh


def page(study: Study, rest: str = "") -> str:
    return f"/admin/survey/study/{study.pk}/members/{rest}"


def colleague(name: str) -> Any:
    user = User.objects.create_user(name, password="x", is_staff=True)
    user.groups.add(ensure_researchers_group())
    return user


def link(client: Client, study: Study, **fields: str) -> str:
    body = client.post(page(study, "invite/"), {"role": "analyst", **fields}).content.decode()
    (path,) = re.findall(r"http://testserver(/admin/survey/study/invitation/\?secret=[\w-]+)", body)
    return path


def test_an_invitation_is_accepted_after_a_login_and_once(owned: Study, as_researcher: Client) -> None:
    address = link(as_researcher, owned)
    guest = colleague("guest")
    client = Client()
    led = client.get(address)
    assert led.status_code == 302 and "/admin/login/" in led["Location"]
    back = parse_qs(urlsplit(led["Location"]).query)["next"][0]
    assert client.post(led["Location"], {"username": "guest", "password": "x", "next": back})["Location"] == address
    body = client.get(address).content.decode()
    assert "researcher invites you to the study small as analyst" in body
    assert client.get(f"/admin/survey/study/{owned.pk}/change/").status_code == 404, "opening it accepts nothing"
    assert client.post(address, follow=True).status_code == 200
    assert owned.memberships.get(user=guest).role == "analyst"
    assert client_of(colleague("second")).post(address).status_code == 404
    assert AuditEntry.objects.filter(study=owned.slug, action="accept_invitation", actor=actor_of(guest)).count() == 1


def test_a_revoked_link_lets_nobody_in(owned: Study, as_researcher: Client) -> None:
    address = link(as_researcher, owned)
    made = owned.invitations.get()
    assert "Revoke" in as_researcher.get(page(owned)).content.decode()
    as_researcher.post(f"/admin/survey/study/{owned.pk}/invitations/{made.pk}/revoke/")
    assert client_of(colleague("guest")).post(address).status_code == 404
    assert "Revoke" not in as_researcher.get(page(owned)).content.decode()


def test_an_owner_changes_and_removes_and_the_last_one_stays(
    owned: Study, researcher: User, as_researcher: Client
) -> None:
    member = cast.join(colleague("other"), owned, "viewer", may_spend=False)
    as_researcher.post(page(owned, f"{member.pk}/"), {"role": "editor", "may_spend": "on"})
    member.refresh_from_db()
    assert (member.role, member.may_spend) == ("editor", True)
    mine = owned.memberships.get(user=researcher)
    for change in ({"remove": "1"}, {"role": "viewer"}):
        refused = as_researcher.post(page(owned, f"{mine.pk}/"), change, follow=True)
        assert "A study keeps an owner" in refused.content.decode()
    as_researcher.post(page(owned, f"{member.pk}/"), {"remove": "1"})
    assert list(owned.memberships.all()) == [mine]


def test_others_see_who_is_a_member_and_only_leave(owned: Study, researcher: User) -> None:
    user = colleague("editor")
    own, mine = cast.join(user, owned, "editor"), owned.memberships.get(user=researcher)
    client = client_of(user)
    body = client.get(page(owned)).content.decode()
    assert "researcher" in body and "Invite" not in body
    for rest in ("invite/", f"{mine.pk}/"):
        assert client.get(page(owned, rest)).status_code == client.post(page(owned, rest)).status_code == 403
    assert client.post(page(owned, f"{own.pk}/"), {"role": "owner"}).status_code == 403
    assert client.post(page(owned, f"{own.pk}/"), {"remove": "1"}).status_code == 302
    assert client.get(page(owned)).status_code == 404
