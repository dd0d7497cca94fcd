"""Large bodies: refused before anything parses them, with more room for researchers who are logged in."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import multipartparser
from django.test import Client

from tests import cast

pytestmark = pytest.mark.django_db
LOGIN = "/admin/login/"
KILOBYTE = 1024


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The forms with files that were parsed."""
    seen: list[str] = []
    parse = multipartparser.MultiPartParser.parse

    def noted(parser: Any) -> Any:
        seen.append("parsed")
        return parse(parser)

    monkeypatch.setattr(multipartparser.MultiPartParser, "parse", noted)
    return seen


def upload(client: Client, address: str, size: int) -> int:
    file = SimpleUploadedFile("large.csv", b"x" * size)
    return int(client.post(address, {"file": file, "text": "a"}).status_code)


@pytest.mark.parametrize("size", [300 * KILOBYTE, 2000 * KILOBYTE])
@pytest.mark.parametrize("who", ["stranger", "somebody", "left"])
def test_whoever_is_no_researcher_sends_little(parsed: list[str], who: str, size: int) -> None:
    client = Client(enforce_csrf_checks=True)
    if who != "stranger":
        user = User.objects.create_user(who, is_staff=who == "left")
        client.force_login(user)
        User.objects.filter(pk=user.pk).update(is_active=who != "left")
    assert upload(client, LOGIN, size) == 413
    assert parsed == []


def test_a_researcher_sends_a_study_file_and_no_more(parsed: list[str], client: Client) -> None:
    client.force_login(User.objects.create_superuser("super"))
    study = cast.study()
    address = f"/admin/survey/study/{study.pk}/amend/"
    assert upload(client, address, 700 * KILOBYTE) == 200 and parsed == ["parsed"]
    assert upload(client, address, 1200 * KILOBYTE) == 413 and parsed == ["parsed"]


def test_a_study_file_as_large_as_may_be_gets_a_page_that_says_what_is_wrong(client: Client) -> None:
    client.force_login(User.objects.create_superuser("super"))
    study = cast.study()
    fields = {"text": "ä" * 140_000, "reason": "x", "look": "x"}
    response = client.post(f"/admin/survey/study/{study.pk}/amend/", fields)
    assert response.status_code == 200
    assert "a study file has at most 262,144" in response.content.decode()
