"""The study files of named panels: each is walked from the panel's address to the address that leads back.

What goes back is what came in, put in on the server when the person leaves. It stands in no page.
"""

import base64
import hashlib
import hmac
import tomllib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.conf import settings
from django.test import Client

from survey import study_file
from survey.contracts.panels import PanelIds
from survey.models import PanelIdentity, Respondent, Stage, Study
from survey.services.sittings.return_address import address_after
from survey.services.studies.checking import check_study
from survey.study_file import CompletionSignatureConfig
from tests import cast
from tests.frontend.pages import go_to, read, send

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
KEY = "the panel's own key"
SITTING, BACK = "/s/cast/sitting", "/s/cast/back"
UUID = "4b3c2d1e-0000-4a5b-8c9d-112233445566"
# What each panel puts into the address.
COMES = {
    "sona": {"survey_code": "48213"},
    "connect": {"participantId": "ABC123DEF", "projectId": "P77", "assignmentId": "AS99"},
    "positly": {"participantID": "xyz987", "assignmentID": "abc123", "gender": "female"},
    "mturk": {"workerId": "A3456EXAMPLE", "hitId": "123RVWYBAZW00EXAMPLE", "assignmentId": "123RVWYBAZW00EXAMPLE456RV"},
    "cint": {"id": UUID},
}


def panel_of(name: str) -> dict[str, Any]:
    """The file's [panel], with what the panel would give in place of YOUR-."""
    text = (settings.BASE_DIR / "studies/panels" / f"{name}.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text.replace("YOUR-", "their-"))["panel"])


def leave(client: Client, query: str = "") -> str:
    response = client.get(BACK + query)
    assert response.status_code == 303, response.content.decode()
    assert response.headers["Referrer-Policy"] == "no-referrer"
    return str(response.headers["Location"])


@pytest.fixture(autouse=True)
def _closing_key(settings: Any) -> None:
    settings.HUNCH_GENERIC_CLOSING_SECRET = KEY


@pytest.mark.any_database
@pytest.mark.parametrize("name", sorted(COMES))
def test_people_come_in_and_go_back(client: Client, name: str) -> None:
    panel = panel_of(name)
    made = cast.open_study(panel=panel)
    other = Client()
    other.get("/s/cast/", {key: value[:-1] + "9" for key, value in COMES[name].items()})
    declined = read(other.post("/s/cast/consent", {"consent": "no"}, follow=True).content.decode())
    assert bool(declined.code) == (name == "mturk"), "where addresses hold no code, no outcome shows one"
    assert client.get("/s/cast/", COMES[name]).headers["Location"] == "/s/cast/"
    page = go_to(client, "end")
    body = client.get(SITTING).content.decode()
    assert not [value for value in COMES[name].values() if value in body]
    address = panel.get("completion_urls", {}).get("completed", "")
    if name == "mturk":
        assert page.code == made.completion_code("completed") and "Go back to" not in body
    elif name in ("connect", "positly"):
        assert f'href="{address}"' in body and page.code == ""
    else:
        assert f'href="{BACK}"' in body and page.code == "" and urlsplit(address).netloc not in body
        came = next(iter(COMES[name].values()))
        expected = address.replace("{person}", came)
        if name == "cint":
            unsigned = expected.removesuffix("&sig={signature}")
            signature = hmac.new(KEY.encode(), unsigned.encode(), hashlib.sha256).hexdigest()
            expected = f"{unsigned}&sig={signature}"
        assert leave(client) == expected


SIGNED = {
    "kind": "generic",
    "parameters": {"person": "id", "submission": "tic"},
    "completion_url": "https://panel.example/{submission}?p={person}&c={code}&s={signature}",
    "completion_signature": {"of": ["outcome", "person", "code"], "separator": "|", "encoding": "base64url"},
}
ODD = "a+b~c@d|e:f"


def signed(outcome: str, person: str, code: str) -> str:
    mac = hmac.new(KEY.encode(), f"{outcome}|{person}|{code}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).decode().rstrip("=")


def test_each_outcome_is_signed_with_the_ids_as_they_came(client: Client, django_assert_max_num_queries: Any) -> None:
    """Encoded in the address, and signed as they are."""
    made = cast.open_study(panel=SIGNED)
    client.get("/s/cast/", {"id": ODD, "tic": "t/1".replace("/", ".")})
    declined = client.post("/s/cast/consent", {"consent": "no"}, follow=True).content.decode()
    page = read(declined)
    assert f'href="{BACK}?again=declined"' in declined
    code = made.completion_code("no_consent")
    assert page.code == code
    address = urlsplit(leave(client, "?again=declined"))
    assert (address.scheme, address.netloc, address.path) == ("https", "panel.example", "/t.1")
    assert dict(parse_qsl(address.query)) == {"p": ODD, "c": code, "s": signed("no_consent", ODD, code)}
    go_to(client, "end")
    with django_assert_max_num_queries(5):
        address = urlsplit(leave(client))
    code = made.completion_code("completed")
    assert dict(parse_qsl(address.query)) == {"p": ODD, "c": code, "s": signed("completed", ODD, code)}


def test_nobody_leaves_before_the_end_and_no_address_changes_where_to(client: Client) -> None:
    cast.open_study(panel=SIGNED)
    assert client.get(BACK).headers["Location"] == "/s/cast/", "nobody"
    client.get("/s/cast/", {"id": "anna", "tic": "t1"})
    assert client.get(BACK).status_code == 409, "she may begin"
    go_to(client, "item")
    for query in ("", "?again=declined", "?to=https://evil.example", "?id=eve&tic=t9"):
        response = client.get(BACK + query)
        assert response.status_code == 409 and "panel.example" not in response.content.decode()
    page = read(client.get(SITTING).content.decode())
    while page.main["data-kind"] != "end":
        page = send(client, page)
    assert leave(client, "?to=https://evil.example&id=eve&tic=t9") == leave(client)
    stranger = Client()
    stranger.get("/s/cast/", {"id": "eve", "tic": "t1"})
    assert stranger.get(BACK).status_code == 409


def test_who_finds_all_places_taken_goes_back_as_that(client: Client) -> None:
    made = cast.open_study(panel=SIGNED, stages=[{"sittings": 2}])
    go_to_with(Client(), "zero")
    go_to_with(Client(), "first")
    client.get("/s/cast/", {"id": "second", "tic": "t2"})
    full = client.get("/s/cast/")
    assert f'href="{BACK}"' in full.content.decode()
    code = made.completion_code("study_full")
    assert signed("study_full", "second", code) in leave(client)
    code = made.completion_code("no_consent")
    assert signed("no_consent", "second", code) in leave(client, "?again=declined"), "who said no said no"
    Stage.objects.update(state=Stage.State.CLOSING)
    assert client.get(BACK).status_code == 409, "a closed study sends nobody back as full"


def go_to_with(client: Client, person: str) -> None:
    client.get("/s/cast/", {"id": person, "tic": f"t-{person}"})
    go_to(client, "end")


def test_by_api_the_address_is_in_the_last_step_alone(client: Client) -> None:
    made = cast.open_study(panel=SIGNED)
    body = {"consent": True, "parameters": {"id": "anna", "tic": "t1"}}
    begun = client.post("/api/v1/studies/cast/sittings/", body, content_type="application/json")
    assert "panel.example" not in begun.content.decode()
    refused = client.post(
        "/api/v1/studies/cast/sittings/",
        {"consent": False, "parameters": {"id": "eve", "tic": "t2"}},
        content_type="application/json",
    ).json()["error"]
    assert signed("no_consent", "eve", refused["completion_code"]) in refused["completion_url"]
    cast.walk(made.stages.get(index=1).sittings.get())
    step = client.get("/api/v1/sitting/", headers={"X-Sitting-Token": begun.json()["token"]}).json()
    assert signed("completed", "anna", step["code"]) in step["completion_url"]


def test_with_the_ids_deleted_the_page_says_to_go_alone(client: Client) -> None:
    cast.open_study(panel=SIGNED)
    go_to_with(client, "anna")
    PanelIdentity.objects.all().delete()
    response = client.get(BACK)
    assert response.status_code == 410 and "not known any more" in response.content.decode()


def test_without_the_key_nobody_comes_in(client: Client, settings: Any) -> None:
    settings.HUNCH_GENERIC_CLOSING_SECRET = ""
    cast.open_study(panel=SIGNED)
    refused = client.get("/s/cast/", {"id": "anna", "tic": "t1"})
    assert read(refused.content.decode()).main["data-refused"] == "closed"
    assert not Respondent.objects.exists()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("sona", {"survey_code": "48213x"}),
        ("sona", {"survey_code": "%SURVEY_CODE%"}),
        ("sona", {"survey_code": "1" * 13}),
        ("mturk", {"workerId": "a3456example"}),
        ("mturk", {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}),
        ("mturk", {"assignmentId": "short"}),
        ("cint", {"id": UUID[:-1]}),
        ("cint", {"id": "[ID]"}),
    ],
)
def test_ids_that_are_not_the_panels_let_nobody_in(client: Client, name: str, changes: dict[str, str]) -> None:
    cast.open_study(panel=panel_of(name))
    refused = client.get("/s/cast/", {**COMES[name], **changes})
    assert refused.status_code == 400
    assert read(refused.content.decode()).main["data-refused"] == "bad_panel_ids"
    assert next(iter(changes.values())) not in refused.content.decode()


def test_a_test_copy_sends_nobody_to_the_panel() -> None:
    made = cast.open_study(panel=SIGNED)
    ids = PanelIds("generic", "anna", "", "t1")
    copy = Study(test_of=made, slug=f"{made.slug}-test", stored_config=made.stored_config)
    assert address_after(made, "completed", code="AB", ids=ids) != ""
    assert address_after(copy, "completed", code="AB", ids=ids) == ""


# The study file


def refusal(**panel: Any) -> str:
    with pytest.raises(study_file.StudyFileError) as caught:
        study_file.parse(cast.study_text(panel={"kind": "generic", **panel}))
    return str(caught.value)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("https://{person}.example/", "behind the host"),
        ("https://panel.example{person}", "behind the host"),
        ("http://panel.example/?p={person}", "behind the host"),
        ("javascript:alert({code})", "behind the host"),
        ("https://panel.example/?p={who}", "there is no {who}"),
        ("https://panel.example/?p={person}&q={person}", "at most once"),
        ("https://panel.example/?s={signature}", "needs [panel.completion_signature]"),
    ],
)
def test_addresses_that_could_lead_elsewhere_are_refused(address: str, words: str) -> None:
    assert words in refusal(completion_url=address)


def test_what_is_signed_must_be_known_and_last() -> None:
    both = "https://panel.example/?s={signature}&p={person}"
    assert "as the last parameter" in refusal(completion_url=both, completion_signature={})
    assert "no completion address has {signature}" in refusal(completion_signature={})
    assert "each once" in refusal(completion_url=both, completion_signature={"of": ["code", "code"]})
    assert "named twice" in refusal(formats=[{"of": "person"}, {"of": "person", "characters": "hex"}])
    assert "swap them" in refusal(formats=[{"of": "person", "shortest": 9, "longest": 8}])


@pytest.mark.parametrize(
    ("panel", "words"),
    [
        ({"kind": "prolific", "completion_url": "https://p.example/?p={person}"}, "holds {code} alone"),
        ({"kind": "generic", "completion_url": "https://p.example/?p={submission}"}, "[panel.parameters], submission"),
        ({"kind": "generic", "formats": [{"of": "study"}]}, "no study comes in"),
    ],
)
def test_ids_that_do_not_come_in_cannot_go_back(panel: dict[str, Any], words: str) -> None:
    cast.bank()
    check = check_study(text=cast.study_text(panel=panel), source_name="new.toml")
    assert [finding for finding in check.findings if words in finding.message], check.findings


@pytest.mark.parametrize(
    ("of", "text"),
    [
        ("address", "https://p.example/?p=1"),
        ("address_and_separator", "https://p.example/?p=1&"),
        (["code", "person"], "AB\n1"),
    ],
)
def test_what_is_signed(of: Any, text: str) -> None:
    how = CompletionSignatureConfig(of=of)
    assert how.text_to_sign("https://p.example/?p=1&s={signature}", {"code": "AB", "person": "1"}) == text
