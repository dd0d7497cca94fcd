"""Entry from other panels and with links for a lab. Programs that only look start nothing."""

from typing import Any

import pytest
from django.test import Client

from survey.contracts.panels import PanelIds
from survey.models import EntryLink, PanelIdentity, Respondent, Sitting, Study
from survey.services.sittings.identities import Visitor, seal, seal_for, unseal, unseal_for
from survey.services.sittings.links import make_links
from tests import cast
from tests.frontend.pages import arrive, get, go_to, read, send

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
GENERIC: dict[str, Any] = {
    "kind": "generic",
    "parameters": {"person": "pid", "study": "survey", "submission": "tic"},
    "completion_url": "https://panel.example/other",
    "completion_urls": {
        "completed": "https://panel.example/ok?c={code}",
        "no_consent": "https://panel.example/no?c={code}",
    },
}
ENTRANCE = "/s/cast/?pid=W-17.x%40y&survey=s1&tic=t1"
EVERYTHING = (Respondent, Sitting, PanelIdentity)


def refusal(response: Any) -> tuple[int, str]:
    return response.status_code, read(response.content.decode()).main["data-refused"]


@pytest.fixture
def panel_study() -> Study:
    return cast.open_study(panel=GENERIC)


@pytest.fixture
def lab_study() -> Study:
    return cast.open_study(panel={"kind": "links"})


def link_to(study: Study) -> str:
    (link,) = make_links(study, count=1, root="http://testserver")
    return link.address.removeprefix("http://testserver")


# A generic panel


def test_the_panels_own_parameters_let_people_in_and_leave_the_address(client: Client, panel_study: Study) -> None:
    response = client.get(ENTRANCE)
    assert (response.status_code, response.headers["Location"]) == (302, "/s/cast/")
    visitor = unseal_for(panel_study, client.cookies["hunch_person"].value, max_age_seconds=60)
    assert visitor is not None and visitor.ids == PanelIds("generic", "W-17.x@y", "s1", "t1")
    page = go_to(client, "end")
    assert f'href="https://panel.example/ok?c={page.code.strip()}"' in client.get("/s/cast/sitting").content.decode()


def test_each_outcome_leads_to_its_own_address_and_else_to_the_common_one(client: Client, panel_study: Study) -> None:
    client.get(ENTRANCE)
    declined = client.post("/s/cast/consent", {"consent": "no"}, follow=True).content.decode()
    assert f'href="https://panel.example/no?c={panel_study.completion_code("no_consent")}"' in declined
    page = go_to(client, "checks")
    for _attempt in range(2):
        wrong = {"first_check": page.value_of("wrong one"), "second_check": page.value_of("wrong")}
        response = client.post("/s/cast/sitting", {**page.hidden, **wrong}, follow=True)
        page = read(response.content.decode())
    assert page.main["data-outcome"] == "failed_checks"
    assert 'href="https://panel.example/other"' in response.content.decode()


@pytest.mark.parametrize(
    "query",
    [
        "pid={{%PID%}}&survey=s&tic=t",
        "pid=[%PID%]&survey=s&tic=t",
        "pid=${pid}&survey=s&tic=t",
        "pid=%25%25pid%25%25&survey=s&tic=t",
        "pid=PID&survey=s&tic=t",
        "pid=undefined&survey=s&tic=t",
        "pid=NULL&survey=s&tic=t",
        "pid=a&survey=s&tic=None",
        "pid=PARTICIPANT_ID&survey=s&tic=t",
        "pid=a&survey=s",
        "tic=t",
        "pid=a&survey=s&tic=" + "c" * 129,
    ],
)
def test_a_link_that_the_panel_did_not_fill_in_is_reported(client: Client, panel_study: Study, query: str) -> None:
    assert refusal(client.get(f"/s/cast/?{query}")) == (400, "bad_panel_ids")


def test_a_person_takes_part_once_and_goes_on_with_the_same_submission(client: Client, panel_study: Study) -> None:
    client.get(ENTRANCE)
    page = go_to(client, "item", screen="posterior")
    elsewhere = Client()
    assert "Continue where you were" in get(elsewhere, ENTRANCE).text
    assert read(elsewhere.post("/s/cast/resume", follow=True).content.decode()).main == page.main
    again = Client().get("/s/cast/?pid=W-17.x%40y&survey=s1&tic=t2", follow=True)
    assert refusal(again) == (403, "already_taken_part")
    assert Respondent.objects.count() == 1


def test_a_panel_that_sends_a_person_alone_is_enough(client: Client) -> None:
    cast.open_study(panel={"kind": "generic"})
    client.get("/s/cast/?pid=somebody")
    go_to(client, "item", screen="prior")
    again = Client()
    again.get("/s/cast/?pid=somebody&tic=whatever")
    assert "Continue where you were" in get(again, "/s/cast/").text


def test_without_parameters_nobody_begins(client: Client, panel_study: Study) -> None:
    assert refusal(client.get("/s/cast/")) == (403, "no_panel_ids")


def test_a_panels_parameters_come_by_api_under_their_own_names(client: Client, panel_study: Study) -> None:
    info = client.get("/api/v1/studies/cast/").json()
    assert (info["panel"], info["parameters"]) == ("generic", ["pid", "survey", "tic"])
    address = "/api/v1/studies/cast/sittings/"
    body = {"consent": True, "parameters": {"pid": "a", "survey": "b", "tic": "c"}}
    assert client.post(address, body, content_type="application/json").status_code == 201
    assert client.post(address, body, content_type="application/json").status_code == 200
    missing = client.post(address, {"consent": True, "parameters": {"pid": "a"}}, content_type="application/json")
    assert (missing.status_code, missing.json()["error"]["code"]) == (400, "bad_panel_ids")


# Links


def test_a_link_lets_one_person_in_and_is_used_up_at_consent(client: Client, lab_study: Study) -> None:
    address = link_to(lab_study)
    response = client.get(address)
    assert (response.status_code, response.headers["Location"]) == (302, "/s/cast/")
    assert EntryLink.objects.get().used_at is None
    client.post("/s/cast/consent", {"consent": "no"})
    assert EntryLink.objects.get().used_at is None
    arrive(client)
    assert EntryLink.objects.get().used_at is not None
    assert Respondent.objects.count() == 1


def test_the_same_link_goes_on_elsewhere_and_never_begins_twice(client: Client, lab_study: Study) -> None:
    address = link_to(lab_study)
    client.get(address)
    page = go_to(client, "item", screen="posterior")
    elsewhere = Client()
    assert "Continue where you were" in get(elsewhere, address).text
    assert read(elsewhere.post("/s/cast/resume", follow=True).content.decode()).main == page.main
    assert Respondent.objects.count() == 1


def test_a_link_whose_person_was_forgotten_begins_nothing_again(client: Client, lab_study: Study) -> None:
    address = link_to(lab_study)
    client.get(address)
    arrive(client)
    PanelIdentity.objects.all().delete()
    somebody = Client()
    somebody.get(address)
    assert refusal(somebody.post("/s/cast/consent", {"consent": "yes"})) == (403, "already_taken_part")
    assert Respondent.objects.count() == 1


@pytest.mark.parametrize("token", ["x", "A" * 22, "A" * 21 + "%00", "é" * 22])
def test_what_is_no_link_of_the_study_is_refused(client: Client, lab_study: Study, token: str) -> None:
    link_to(lab_study)
    assert refusal(client.get(f"/s/cast/?link={token}")) == (403, "unknown_link")


def test_a_link_of_another_study_is_refused(client: Client, lab_study: Study) -> None:
    other = cast.open_study(slug="other", panel={"kind": "links"})
    token = link_to(other).partition("=")[2]
    assert refusal(client.get(f"/s/cast/?link={token}")) == (403, "unknown_link")


def test_without_a_link_nobody_begins(client: Client, lab_study: Study) -> None:
    response = client.get("/s/cast/")
    assert refusal(response) == (403, "no_panel_ids")
    assert "by a link of your own" in response.content.decode()
    assert "panel" not in read(response.content.decode()).text


def test_a_link_lets_a_person_in_by_api(client: Client, lab_study: Study) -> None:
    token = link_to(lab_study).partition("=")[2]
    body = {"consent": True, "parameters": {"link": token}}
    assert client.post("/api/v1/studies/cast/sittings/", body, content_type="application/json").status_code == 201


def test_of_a_link_nothing_is_stored_but_a_hash(client: Client, lab_study: Study) -> None:
    address = link_to(lab_study)
    token = address.partition("=")[2]
    client.get(address)
    arrive(client)
    link = EntryLink.objects.get()
    visitor = unseal_for(lab_study, client.cookies["hunch_person"].value, max_age_seconds=60)
    assert visitor is not None and visitor.ids == PanelIds("links", link.token_hash)
    assert token not in str(vars(link)) + str(vars(PanelIdentity.objects.get())) + str(client.cookies)
    assert len(link.token_hash) == 64


# Cookies


def test_a_persons_cookie_is_good_for_its_own_study_alone(client: Client) -> None:
    for slug in ("cast", "other"):
        cast.open_study(slug=slug, panel=cast.PROLIFIC)
    client.get("/s/cast/?PROLIFIC_PID=a1&STUDY_ID=b2&SESSION_ID=c3")
    sealed = client.cookies["hunch_person"].value
    thief = Client()
    thief.cookies["hunch_person"] = sealed
    assert refusal(thief.get("/s/other/")) == (403, "no_panel_ids")
    assert thief.post("/s/other/consent", {"consent": "yes"}).status_code == 303
    assert not Respondent.objects.exists()
    assert thief.get("/s/cast/").status_code == 200


def test_stored_ids_are_no_cookie_and_a_cookie_is_no_stored_id(panel_study: Study) -> None:
    ids = PanelIds("generic", "a")
    assert unseal_for(panel_study, seal(ids), max_age_seconds=60) is None
    assert unseal(seal_for(panel_study, Visitor(ids))) is None


# Programs that only look


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["open", "prolific", "generic", "links"])
@pytest.mark.parametrize("how", ["get", "head", "prefetch"])
def test_scanners_and_prefetchers_start_nothing(kind: str, how: str) -> None:
    """They follow every address that they find, with the cookies that they received."""
    study = cast.open_study(panel={**GENERIC} if kind == "generic" else {"kind": kind})
    entrance = {
        "open": "/s/cast/",
        "prolific": "/s/cast/?PROLIFIC_PID=a1&STUDY_ID=b2&SESSION_ID=c3",
        "generic": ENTRANCE,
        "links": link_to(study) if kind == "links" else "",
    }[kind]
    scanner = Client()
    headers = {"Sec-Purpose": "prefetch"} if how == "prefetch" else {}
    ask = scanner.head if how == "head" else scanner.get
    for path in (entrance, *(f"/s/cast/{page}" for page in ("", "consent", "resume", "sitting", "beacon"))):
        assert ask(path, headers=headers).status_code < 500, path
    assert not any(model.objects.exists() for model in EVERYTHING)
    assert not EntryLink.objects.filter(used_at__isnull=False).exists()
    person = Client()
    person.get(entrance)
    arrive(person)
    assert Sitting.objects.count() == 1


def test_looking_at_a_step_moves_nothing(client: Client) -> None:
    cast.open_study()
    page = go_to(client, "item", screen="prior")
    before = Sitting.objects.values().get()
    for ask in (client.get, client.head):
        ask("/s/cast/sitting", headers={"Sec-Purpose": "prefetch;prerender"})
        ask("/s/cast/beacon")
    assert Sitting.objects.values().get() == before
    assert send(client, page).form["data-screen"] == "posterior"
