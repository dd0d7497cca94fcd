"""Who gets a begun sitting back, and what they may do in it: by a cookie, by a signed link, by ids alone."""

import hmac
import time
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client, RequestFactory

from frontend import cookies
from survey.contracts.panels import PanelIds
from survey.models import DataChoice, PanelIdentity, Response, Sitting, Study
from survey.panels.generic import signatures
from survey.panels.generic.signatures import signature_of, text_to_sign
from survey.panels.prolific.fake import FakeProlific
from survey.services.sittings.links import make_links
from survey.services.studies.amending import amend
from tests import cast
from tests.frontend.pages import get, go_to, read
from tests.frontend.test_blocks import ASKING, blocks

from .test_prolific import STUDY

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SECRET = "0123456789abcdef0123456789abcdef"
HOME, SITTING = "/s/cast/", "/s/cast/sitting"
BEGIN = "/api/v1/studies/cast/sittings/"
STEP = "/api/v1/sitting/"
SIGNED = {"kind": "generic", "signed_entry": True, "parameters": {"person": "pid", "submission": "tic"}}


def refusal(response: Any) -> tuple[int, str]:
    return response.status_code, read(response.content.decode()).main["data-refused"]


def signed_link(panel: str, fake: FakeProlific, **changes: str) -> dict[str, str]:
    """The parameters of a fresh link of the same person, changed after it was signed."""
    if panel == "generic":
        parameters = {"pid": "anna", "tic": "t1", "ts": str(int(time.time()))}
        text = "\n".join(("cast", parameters["pid"], "", parameters["tic"], parameters["ts"]))
        assert text == text_to_sign("cast", ids_of(parameters), parameters["ts"])
        return {
            **parameters,
            "sig": signature_of("cast", ids_of(parameters), parameters["ts"], secret=SECRET),
            **changes,
        }
    place = fake.submissions.get("s1" * 12) or fake.take_place("study1")
    assert place is not None
    fake.submissions["s1" * 12] = place
    ids = {"PROLIFIC_PID": place["participant_id"], "STUDY_ID": "study1", "SESSION_ID": place["id"]}
    return {**ids, "prolific_token": fake.sign(ids, audience="https://testserver/s/cast/"), **changes}


def ids_of(parameters: dict[str, str]) -> PanelIds:
    return PanelIds("generic", parameters["pid"], "", parameters["tic"])


def ids_alone(link: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in link.items() if name not in ("prolific_token", "sig", "ts")}


@pytest.fixture(params=["prolific", "generic"])
def panel(request: Any, fake: FakeProlific, settings: Any) -> str:
    settings.HUNCH_GENERIC_SECRET = SECRET
    fake.studies["study1"] = {**STUDY, "id": "study1", "status": "ACTIVE"}
    return str(request.param)


@pytest.fixture
def signed_study(panel: str) -> Study:
    config = {**cast.PROLIFIC, "signed_entry": True} if panel == "prolific" else SIGNED
    return cast.open_study(panel=config, blocks=blocks(debriefing=ASKING))


# Signed entry


def test_with_the_ids_alone_nobody_gets_a_begun_sitting(
    client: Client,
    panel: str,
    signed_study: Study,
    fake: FakeProlific,
) -> None:
    link = signed_link(panel, fake)
    assert client.get(HOME, link).status_code == 302
    at = go_to(client, "item", screen="posterior")
    thief, ids = Client(), ids_alone(link)
    assert refusal(thief.get(HOME, ids)) == (403, "not_sent_by_panel")
    thief.post("/s/cast/resume")
    thief.post("/s/cast/consent", {"consent": "yes"})
    assert "hunch_sitting" not in thief.cookies and thief.get(SITTING).status_code == 403
    carried = {"parameters": ids} if panel == "generic" else ids
    begun = thief.post(BEGIN, {"consent": True, **carried}, content_type="application/json")
    assert (begun.status_code, begun.json()["error"]["code"]) == (403, "not_sent_by_panel")
    assert "token" not in begun.json()
    assert get(client, SITTING).main == at.main, "the person goes on"


def test_ids_of_somebody_who_never_came_are_answered_alike(
    client: Client,
    panel: str,
    signed_study: Study,
    fake: FakeProlific,
) -> None:
    """Otherwise anybody could ask who takes part."""
    link = signed_link(panel, fake)
    client.get(HOME, link)
    go_to(client, "item", screen="prior")
    known = Client().get(HOME, ids_alone(link))
    stranger = dict.fromkeys(ids_alone(link), "f" * 24)
    unknown = Client().get(HOME, stranger)
    assert (known.status_code, known.content) == (unknown.status_code, unknown.content)


@pytest.mark.thorough
def test_a_fresh_link_gives_it_back_whole_and_an_old_one_does_not(
    client: Client,
    panel: str,
    signed_study: Study,
    fake: FakeProlific,
    time_machine: Any,
) -> None:
    link = signed_link(panel, fake)
    client.get(HOME, link)
    go_to(client, "debriefing")
    time_machine.move_to(time.time() + 700)
    assert refusal(Client().get(HOME, link)) == (403, "not_sent_by_panel")
    fresh = signed_link(panel, fake)
    phone = Client()
    assert "Continue where you were" in get(phone, f"{HOME}?{query(fresh)}").text
    page = read(phone.post("/s/cast/resume", follow=True).content.decode())
    assert page.main["data-kind"] == "debriefing"
    fields = {**page.hidden, "my_data": "withdraw", "my_data_confirmed": "yes"}
    assert phone.post(SITTING, fields).status_code == 303
    assert not DataChoice.objects.exists() and not Response.objects.exists()


def query(parameters: dict[str, str]) -> str:
    return "&".join(f"{name}={value}" for name, value in parameters.items())


def test_the_browser_that_was_let_in_needs_no_second_link(
    client: Client,
    panel: str,
    signed_study: Study,
    fake: FakeProlific,
    time_machine: Any,
) -> None:
    link = signed_link(panel, fake)
    client.get(HOME, link)
    go_to(client, "item", screen="prior")
    del client.cookies["hunch_sitting"]
    time_machine.move_to(time.time() + 3600)
    assert client.get(HOME, link).status_code == 302, "reloaded, with the old link"
    assert client.post("/s/cast/resume").status_code == 303
    assert client.get(SITTING).status_code == 200


def test_a_cookie_from_before_entry_was_signed_gives_nothing_back(
    client: Client,
    fake: FakeProlific,
    settings: Any,
) -> None:
    settings.HUNCH_GENERIC_SECRET = SECRET
    unsigned = {**SIGNED, "signed_entry": False}
    study = cast.open_study(panel=unsigned)
    link = signed_link("generic", fake)
    client.get(HOME, ids_alone(link))
    go_to(client, "item", screen="prior")
    thief = Client()
    thief.get(HOME, ids_alone(link))
    amend(study, text=cast.study_text(panel=SIGNED), source_name="cast.toml", reason="safer")
    assert refusal(thief.post("/s/cast/resume")) == (403, "not_sent_by_panel")
    assert refusal(thief.post("/s/cast/resume", follow=True)) == (403, "not_sent_by_panel")
    assert thief.get(HOME, signed_link("generic", fake)).status_code == 302
    assert thief.post("/s/cast/resume").status_code == 303, "a fresh link turns the old cookie into a good one"
    del client.cookies["hunch_sitting"]
    assert client.post("/s/cast/resume").status_code == 303, "it began in this browser"


def test_where_no_link_can_be_checked_a_look_up_gives_nothing_back(
    client: Client,
    fake: FakeProlific,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake.studies["study1"] = {**STUDY, "id": "study1", "status": "ACTIVE"}
    monkeypatch.setattr(fake, "key_set", lambda: {"keys": "gone"})
    cast.open_study(panel={**cast.PROLIFIC, "signed_entry": True})
    link = signed_link("prolific", fake)
    assert client.get(HOME, link).status_code == 302, "somebody new is looked up"
    go_to(client, "item", screen="prior")
    response = Client().get(HOME, link)
    assert refusal(response) == (503, "entry_not_checked") and response.headers["Retry-After"] == "60"
    assert client.get(SITTING).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": "berta"},
        {"tic": "t2"},
        {"ts": "1"},
        {"ts": ""},
        {"ts": "1e9"},
        {"ts": "９９９９９９９９９９"},
        {"ts": "9" * 5000},
        {"sig": ""},
        {"sig": "0" * 64},
        {"sig": "é"},
    ],
    ids=str,
)
def test_a_changed_link_of_a_generic_panel_is_refused(
    fake: FakeProlific,
    settings: Any,
    changes: dict[str, str],
) -> None:
    settings.HUNCH_GENERIC_SECRET = SECRET
    cast.open_study(panel=SIGNED)
    assert refusal(Client().get(HOME, signed_link("generic", fake, **changes))) == (403, "not_sent_by_panel")
    assert Client().get(HOME, signed_link("generic", fake)).status_code == 302


@pytest.mark.parametrize(("age", "status"), [(0, 302), (590, 302), (610, 403), (-50, 302), (-70, 403)])
def test_a_generic_panels_link_is_good_for_ten_minutes(
    fake: FakeProlific,
    settings: Any,
    time_machine: Any,
    age: int,
    status: int,
) -> None:
    settings.HUNCH_GENERIC_SECRET = SECRET
    cast.open_study(panel=SIGNED)
    time_machine.move_to("2026-03-01T12:00:00Z", tick=False)
    link = signed_link("generic", fake)
    time_machine.shift(age)
    assert Client().get(HOME, link).status_code == status


def test_a_link_of_one_study_opens_no_other(fake: FakeProlific, settings: Any) -> None:
    settings.HUNCH_GENERIC_SECRET = SECRET
    cast.open_study(panel=SIGNED)
    cast.open_study(slug="other", panel=SIGNED)
    assert refusal(Client().get("/s/other/", signed_link("generic", fake))) == (403, "not_sent_by_panel")


def test_without_the_secret_nobody_enters_and_nobody_is_blamed(fake: FakeProlific, settings: Any) -> None:
    settings.HUNCH_GENERIC_SECRET = ""
    cast.open_study(panel=SIGNED)
    assert refusal(Client().get(HOME, signed_link("generic", fake))) == (503, "entry_not_checked")


def test_the_api_names_the_parameters_of_a_signed_link(client: Client, fake: FakeProlific, settings: Any) -> None:
    settings.HUNCH_GENERIC_SECRET = SECRET
    cast.open_study(panel=SIGNED)
    assert client.get("/api/v1/studies/cast/").json()["parameters"] == ["pid", "tic", "ts", "sig"]
    body = {"consent": True, "parameters": signed_link("generic", fake)}
    assert client.post(BEGIN, body, content_type="application/json").status_code == 201


# Ids alone, where entry is not signed


def unsigned_study(kind: str) -> dict[str, str]:
    panel = cast.PROLIFIC if kind == "prolific" else {"kind": "generic"}
    cast.open_study(panel=panel, blocks=blocks(debriefing=ASKING))
    return {"PROLIFIC_PID": "p", "STUDY_ID": "s", "SESSION_ID": "x"} if kind == "prolific" else {"pid": "p"}


@pytest.mark.parametrize("kind", ["prolific", "generic"])
def test_ids_alone_give_the_place_back_but_withdraw_nothing(client: Client, kind: str) -> None:
    ids = unsigned_study(kind)
    client.get(HOME, ids)
    go_to(client, "debriefing")
    thief = Client()
    thief.get(HOME, ids)
    page = read(thief.post("/s/cast/resume", follow=True).content.decode())
    assert page.main["data-kind"] == "debriefing"
    withdraws = {**page.hidden, "my_data": "withdraw", "my_data_confirmed": "yes"}
    response = thief.post(SITTING, withdraws, follow=True)
    assert response.redirect_chain and read(response.content.decode()).main["data-kind"] == "debriefing"
    assert "choose this in the browser in which you began" in response.content.decode()
    assert Response.objects.exists() and not DataChoice.objects.exists()
    assert client.post(SITTING, withdraws).status_code == 303, "where it began it is done"
    assert not Response.objects.exists()


def test_by_api_ids_alone_withdraw_nothing_either(client: Client) -> None:
    ids = unsigned_study("generic")
    client.get(HOME, ids)
    page = go_to(client, "debriefing")
    body = {"consent": True, "parameters": ids}
    begun = Client().post(BEGIN, body, content_type="application/json")
    assert begun.status_code == 200 and begun.json()["step"]["kind"] == "debriefing"
    header = {"X-Sitting-Token": begun.json()["token"]}
    wish = {"step": int(page.hidden["step"]), "my_data": "withdraw", "my_data_confirmed": "yes"}
    refused = Client().post(STEP, wish, content_type="application/json", headers=header)
    assert (refused.status_code, set(refused.json()["error"]["fields"])) == (422, {"my_data"})
    assert Response.objects.exists()
    uses = Client().post(STEP, {**wish, "my_data": "use"}, content_type="application/json", headers=header)
    assert uses.status_code == 200 and uses.json()["outcome"] == "completed"


@pytest.mark.parametrize("kind", ["generic", "prolific"])
def test_by_api_the_person_of_an_open_study_is_none_of_a_panels(client: Client, kind: str) -> None:
    unsigned_study(kind)
    body = {"consent": True, "person": "a" * 32}
    refused = client.post(BEGIN, body, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "no_panel_ids")
    assert not Sitting.objects.exists()


def test_by_api_who_declines_gets_the_code_for_it_unless_they_have_begun(client: Client) -> None:
    ids = unsigned_study("generic")
    study = Study.objects.get()
    body = {"consent": False, "parameters": ids}
    declined = client.post(BEGIN, body, content_type="application/json").json()["error"]
    assert declined["completion_code"] == study.completion_code("no_consent")
    begun = client.post(BEGIN, {**body, "consent": True}, content_type="application/json")
    assert (begun.status_code, begun.json()["person"]) == (201, None)
    declined = client.post(BEGIN, body, content_type="application/json").json()["error"]
    assert "completion_code" not in declined


def test_the_token_that_began_by_api_withdraws(client: Client) -> None:
    ids = unsigned_study("generic")
    begun = client.post(BEGIN, {"consent": True, "parameters": ids}, content_type="application/json")
    assert begun.status_code == 201
    sitting = Sitting.objects.get()
    cast.walk(sitting, until="debriefing")
    sitting.refresh_from_db()
    wish = {"step": sitting.step, "my_data": "withdraw", "my_data_confirmed": "yes"}
    header = {"X-Sitting-Token": begun.json()["token"]}
    assert client.post(STEP, wish, content_type="application/json", headers=header).status_code == 200
    assert not Response.objects.exists()


def test_the_browser_in_which_it_began_gets_all_of_it_back(client: Client) -> None:
    """Also if the reply to the consent was lost, or if its cookie of the sitting is gone."""
    ids = unsigned_study("prolific")
    client.get(HOME, ids)
    client.get("/s/cast/consent")
    client.post("/s/cast/consent", {"consent": "yes"})
    del client.cookies["hunch_sitting"]
    client.get(HOME, ids)
    client.post("/s/cast/resume")
    assert not Sitting.was_given_by_ids(client.cookies["hunch_sitting"].value)


def test_who_uses_the_browser_after_somebody_gets_their_sitting_back_by_the_ids_alone(client: Client) -> None:
    unsigned_study("generic")
    client.get(HOME, {"pid": "anna"})
    go_to(client, "debriefing")
    client.get(HOME, {"pid": "bert"})
    assert not client.cookies["hunch_sitting"].value, "bert does not get into anna's sitting"
    client.get(HOME, {"pid": "anna"})
    client.post("/s/cast/resume")
    assert Sitting.was_given_by_ids(client.cookies["hunch_sitting"].value)


def test_coming_back_by_the_panels_link_does_not_take_rights_from_the_own_browser(client: Client) -> None:
    ids = unsigned_study("prolific")
    client.get(HOME, ids)
    go_to(client, "debriefing")
    whole = client.cookies["hunch_sitting"].value
    del client.cookies["hunch_person"]
    client.get(HOME, ids)
    client.post("/s/cast/resume")
    assert client.cookies["hunch_sitting"].value == whole


def test_links_of_a_lab_and_open_studies_give_back_all_of_it(client: Client) -> None:
    study = cast.open_study(panel={"kind": "links"}, blocks=blocks(debriefing=ASKING))
    address = make_links(study, count=1, root="http://testserver")[0].address.removeprefix("http://testserver")
    client.get(address)
    go_to(client, "debriefing")
    phone = Client()
    phone.get(address)
    page = read(phone.post("/s/cast/resume", follow=True).content.decode())
    assert phone.post(SITTING, {**page.hidden, "my_data": "withdraw", "my_data_confirmed": "yes"}).status_code == 303
    assert not Response.objects.exists()


def test_a_token_given_by_ids_is_no_whole_token_and_cannot_be_made_into_one() -> None:
    cast.open_study(panel={"kind": "generic"})
    Client().post(BEGIN, {"consent": True, "parameters": {"pid": "p"}}, content_type="application/json")
    sitting = Sitting.objects.get()
    whole = sitting.token
    sitting.is_by_ids_alone = True
    assert sitting.token != whole and Sitting.public_id_of(sitting.token) == sitting.public_id
    mixed = f"{whole.partition(':')[0]}:{sitting.token.partition(':')[2]}"
    assert Sitting.was_given_by_ids(mixed) and not Sitting.was_given_by_ids(whole)
    assert PanelIdentity.objects.get().browser_hash == ""
    for token, is_whole in ((whole, True), (sitting.token, False), ("x", False)):
        request = RequestFactory().get(HOME)
        request.COOKIES[cookies.SITTING] = token
        assert cookies.holds_whole(request, sitting) == is_whole


@pytest.mark.parametrize(("seconds", "is_valid"), [(-61, False), (-60, True), (0, True), (600, True), (601, False)])
def test_a_signature_is_of_all_ids_and_of_its_own_time(settings: Any, seconds: int, is_valid: bool) -> None:
    settings.HUNCH_GENERIC_SECRET = "the secret"
    ids = PanelIds("generic", "anna", "s9", "t1")
    signature = hmac.new(b"the secret", b"cast\nanna\ns9\nt1\n1700000000", "sha256").hexdigest()

    def is_signed(slug: str = "cast", ids: PanelIds = ids, signed_at: str = "1700000000") -> bool:
        now = 1_700_000_000 + seconds
        return signatures.is_signed(slug, ids, signed_at=signed_at, signature=signature, now=now)

    assert is_signed() is is_valid
    assert not is_signed(signed_at="1700000001") and not is_signed("other")
    assert not any(is_signed(ids=replace(ids, **{name: "other"})) for name in ("person", "study", "submission"))
