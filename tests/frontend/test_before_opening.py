"""A study that was never open is not there for strangers."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from survey.services.plans.planning import plan_stage
from survey.services.stages.lifecycle import pause_stage
from survey.services.studies import test_copies
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PAGES = ("", "?PROLIFIC_PID=a&STUDY_ID=b&SESSION_ID=c", "consent", "resume", "sitting", "report")


@pytest.fixture(params=["draft", "planned"])
def hidden(request: Any) -> None:
    study = cast.study(texts={"language": "de"})  # Its own pages would be in another language than the browser's.
    if request.param == "planned":
        plan_stage(study.stages.get(index=1))


def shown(client: Client, path: str, method: str = "get") -> tuple[int, str, set[str]]:
    response = getattr(client, method)(path, headers={"Accept-Language": "en"})
    text = re.sub(response.headers["X-Request-ID"], "", response.content.decode())
    return response.status_code, text, set(response.cookies)


def without_id(response: Any) -> Any:
    said = response.json()
    del said["error"]["request_id"]
    return said


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("method", ["get", "post"])
def test_strangers_see_the_page_of_an_unknown_address(hidden: None, page: str, method: str) -> None:
    response = shown(Client(), f"/s/cast/{page}", method)
    assert response == shown(Client(), f"/s/nobody/{page}", method)
    # The welcome page takes no POST, and a GET of a report leads to the sitting, whatever the study.
    assert response[0] == {("", "post"): 405, ("report", "get"): 303}.get((page.partition("?")[0], method), 404)


@pytest.mark.thorough
def test_a_token_of_another_study_shows_no_more(hidden: None) -> None:
    token = cast.begin(cast.open_study(slug="other")).token
    stranger = Client()
    stranger.cookies["hunch_sitting"] = token
    assert shown(stranger, "/s/cast/sitting") == shown(Client(), "/s/nobody/sitting")


def test_by_api_it_is_unknown_too(client: Client, hidden: None) -> None:
    for slug in ("cast", "nobody"):
        info = client.get(f"/api/v1/studies/{slug}/")
        begun = client.post(f"/api/v1/studies/{slug}/sittings/", {"consent": True}, content_type="application/json")
        assert (info.status_code, begun.status_code) == (404, 404)
        unknown = client.get("/api/v1/studies/nobody/")
        assert without_id(info) == without_id(begun) == without_id(unknown)


def test_members_who_are_logged_in_see_that_it_is_closed(client: Client, hidden: None) -> None:
    somebody = User.objects.create_user("somebody")
    client.force_login(somebody)
    assert client.get("/s/cast/").status_code == 404
    cast.join_all(somebody, "viewer")
    assert client.get("/s/cast/").status_code == 404, "the pages of researchers are not for this account"
    researcher = User.objects.create_user("researcher", is_staff=True)
    client.force_login(researcher)
    assert client.get("/s/cast/").status_code == 404
    cast.join_all(researcher, "viewer")
    response = client.get("/s/cast/")
    assert response.status_code == 403 and b'data-refused="closed"' in response.content


def test_a_test_copy_says_on_its_pages_that_it_is_one(client: Client) -> None:
    study = cast.open_study()
    copy = test_copies.make_copy(study)
    researcher = User.objects.create_user("researcher", is_staff=True)
    cast.join_all(researcher, "viewer")
    client.force_login(researcher)
    notice = "<strong>[Test]</strong> This is a test: nothing that you enter here counts."
    assert notice in client.get(f"/s/{copy.slug}/").content.decode()
    assert notice not in client.get("/s/cast/").content.decode()


def test_a_study_that_was_open_says_that_it_is_closed(client: Client) -> None:
    study = cast.open_study()
    pause_stage(study.stages.get(index=1))
    assert client.get("/s/cast/").status_code == 403
    assert client.get("/api/v1/studies/cast/").json()["refusal"] == "closed"
