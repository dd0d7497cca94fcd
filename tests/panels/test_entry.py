"""Entering a study at a panel: signed links, looked-up submissions, and people of other studies."""

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelError, PanelIds, PanelMissing, Verdict
from survey.exceptions import EntryRefused
from survey.models import PanelIdentity, Posting, Respondent, Sitting, Study
from survey.panels.generic.signatures import signature_of
from survey.panels.prolific import panel as panel_module
from survey.panels.prolific import tokens
from survey.panels.prolific.fake import FakeProlific, FakeServer
from survey.panels.prolific.panel import Prolific
from survey.services.sittings import entry
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.entry import arrive
from survey.services.sittings.links import make_links
from tests import cast

from .test_prolific import STUDY

pytestmark = pytest.mark.django_db
HOST = "testserver"


def the_study(**panel: Any) -> Study:
    return cast.open_study(panel={**cast.PROLIFIC, **panel})


@pytest.fixture
def place(fake: FakeProlific) -> dict[str, Any]:
    """A submission at the fake, of a study there."""
    fake.studies["study1"] = {**STUDY, "id": "study1", "status": "ACTIVE"}
    new_place = fake.take_place("study1")
    assert new_place
    return new_place


def given(place: dict[str, Any], **changes: str) -> dict[str, str]:
    ids = {"PROLIFIC_PID": place["participant_id"], "STUDY_ID": place["study_id"], "SESSION_ID": place["id"]}
    return {**ids, **changes}


def refusal(study: Study, values: dict[str, str], **more: Any) -> str:
    with pytest.raises(EntryRefused) as caught:
        arrive(study, values, host=HOST, **more)
    return caught.value.code


def signed(fake: FakeProlific, place: dict[str, Any], **claims: Any) -> dict[str, str]:
    """The parameters of a signed link; `claims` can make it wrong."""
    ids = given(place)
    return {**ids, "prolific_token": fake.sign(ids, **{"audience": f"https://{HOST}/s/cast/?STUDY_ID=1", **claims})}


# Looked up


@pytest.mark.parametrize("own", [Verdict.SENT, Verdict.NOT_SENT, Verdict.NOT_KNOWN])
@pytest.mark.parametrize("looked_up", [Verdict.SENT, Verdict.NOT_SENT, Verdict.NOT_KNOWN])
def test_the_panel_is_looked_up_where_it_knows_nothing_else_of_the_person(
    db: None, monkeypatch: pytest.MonkeyPatch, own: Verdict, looked_up: Verdict
) -> None:
    calls: list[str] = []
    panel = panels.get("prolific")
    monkeypatch.setattr(type(panel), "verdict", lambda *_of, **_more: own)
    monkeypatch.setattr(type(panel), "can_look_up", lambda _panel: True)
    monkeypatch.setattr(
        entry, "look_up", lambda *_of, address: calls.append(address) or SimpleNamespace(verdict=looked_up)
    )
    study, values = the_study(), {"PROLIFIC_PID": "p", "STUDY_ID": "s", "SESSION_ID": "x"}
    counts = looked_up if own == Verdict.NOT_KNOWN else own
    if counts == Verdict.NOT_SENT:
        assert refusal(study, values, address="192.0.2.1") == "not_sent_by_panel"
    else:
        visitor = arrive(study, values, host=HOST, address="192.0.2.1")
        assert visitor is not None and visitor.confirmed is (counts == Verdict.SENT)
    assert calls == (["192.0.2.1"] if own == Verdict.NOT_KNOWN else [])


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({}, Verdict.NOT_KNOWN),
        ({"participant_id": "p"}, Verdict.SENT),
        ({"participant": "p", "study_id": "s"}, Verdict.SENT),
        ({"participant": "p", "study_id": "part", "parent_study_id": "s"}, Verdict.SENT),
        ({"study_id": "s"}, Verdict.NOT_KNOWN),
        ({"participant_id": "other", "study_id": "s"}, Verdict.NOT_SENT),
        ({"participant_id": "p", "study_id": "other"}, Verdict.NOT_SENT),
        ({"participant_id": "p", "study_id": "other", "parent_study_id": "third"}, Verdict.NOT_SENT),
        *(
            ({"participant_id": "p", "status": status}, Verdict.NOT_SENT)
            for status in ("RETURNED", "TIMED_OUT", "REJECTED")
        ),
        *(
            ({"participant_id": "p", "status": status}, Verdict.SENT)
            for status in ("RESERVED", "ACTIVE", "APPROVED", "X")
        ),
        (None, Verdict.NOT_SENT),
    ],
)
def test_what_a_look_up_says_of_a_person(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str] | None, verdict: Verdict
) -> None:
    def submission(name: str) -> dict[str, str]:
        assert name == "x"
        if said is None:
            raise PanelMissing("no such submission")
        return said

    monkeypatch.setattr(
        panel_module, "open_client", lambda *, at_the_door: nullcontext(SimpleNamespace(submission=submission))
    )
    looked_up = panels.get("prolific").look_up(Study(), PanelIds("prolific", "p", "s", "x"))
    assert looked_up.verdict == verdict
    assert looked_up.part_of == ((said or {}).get("parent_study_id", "") if verdict != Verdict.NOT_SENT else "")


def test_a_person_whom_the_panel_sent_is_let_in(place: dict[str, Any]) -> None:
    visitor = arrive(the_study(), given(place), host=HOST)
    assert visitor is not None and visitor.confirmed and not visitor.signed
    assert visitor.ids == PanelIds("prolific", place["participant_id"], "study1", place["id"])


@pytest.mark.parametrize(
    "changes",
    [{"SESSION_ID": "0" * 24}, {"PROLIFIC_PID": "0" * 24}, {"STUDY_ID": "another"}],
)
def test_ids_that_the_panel_did_not_give_together_are_refused(place: dict[str, Any], changes: dict[str, str]) -> None:
    assert refusal(the_study(), given(place, **changes)) == "not_sent_by_panel"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"])
def test_an_address_with_two_values_of_one_id_is_refused(
    client: Client, place: dict[str, Any], name: str, fake: FakeProlific
) -> None:
    """Whichever was taken, it could be the wrong person's."""
    study, values = the_study(), given(place)
    fake.calls.clear()
    for pair in ([values[name], "other"], ["other", values[name]]):
        page = client.get("/s/cast/", {**values, name: pair})
        assert page.status_code == 400 and f"two different values of {name}" in page.content.decode()
    assert not fake.calls and not PanelIdentity.objects.exists()
    for same in ([values[name]] * 2, [values[name], ""], ["", f" {values[name]} "]):
        assert arrive(study, {**values, name: same}, host=HOST) == arrive(study, values, host=HOST)


def test_the_api_refuses_two_values_of_one_id_too(client: Client, place: dict[str, Any]) -> None:
    the_study()
    address, values = "/api/v1/studies/cast/sittings/", given(place)

    def begun(body: str) -> Any:
        return client.post(address, body, content_type="application/json")

    both = begun(json.dumps({"consent": True, **values, "parameters": {"PROLIFIC_PID": "other"}}))
    assert (both.status_code, both.json()["error"]["code"]) == (400, "bad_panel_ids")
    twice = begun(json.dumps({"consent": True, **values})[:-1] + ', "PROLIFIC_PID": "other"}')
    assert twice.status_code == 400 and "A name stands twice in the body" in twice.content.decode()
    same = {"consent": True, **values, "parameters": {"PROLIFIC_PID": values["PROLIFIC_PID"]}}
    assert begun(json.dumps(same)).status_code == 201


@pytest.mark.parametrize("name", ["pid", "tic", "ts", "sig"])
def test_a_signed_address_of_any_panel_names_one_value(client: Client, settings: Any, name: str) -> None:
    settings.HUNCH_GENERIC_SECRET = "0123456789abcdef0123456789abcdef"
    parameters = {"person": "pid", "submission": "tic"}
    study = cast.open_study(panel={"kind": "generic", "signed_entry": True, "parameters": parameters})
    ids, now = PanelIds("generic", "anna", "", "t1"), str(int(time.time()))
    values = {"pid": "anna", "tic": "t1", "ts": now}
    values["sig"] = signature_of(study.slug, ids, now, secret=settings.HUNCH_GENERIC_SECRET)
    page = client.get("/s/cast/", {**values, name: ["other", values[name]]})
    assert page.status_code == 400 and f"two different values of {name}" in page.content.decode()
    assert client.get("/s/cast/", {**values, name: [values[name]] * 2}).status_code == 302


def test_a_link_of_ones_own_names_one_value(client: Client) -> None:
    study = cast.open_study(panel={"kind": "links"})
    first, second = (
        urlsplit(make_link.address).query for make_link in make_links(study, count=2, root="http://testserver")
    )
    assert client.get(f"/s/cast/?{first}&{second}").status_code == 400
    assert client.get(f"/s/cast/?{first}&{first}").status_code == 302


def test_two_tokens_are_refused(fake: FakeProlific, place: dict[str, Any]) -> None:
    study, values = the_study(signed_entry=True), signed(fake, place)
    again = signed(fake, place, exp=9_000_000_000)["prolific_token"]
    assert refusal(study, {**values, "prolific_token": [values["prolific_token"], again]}) == "bad_panel_ids"


def test_a_token_that_is_nested_too_deep_is_none(client: Client, fake: FakeProlific, place: dict[str, Any]) -> None:
    the_study(signed_entry=True)
    head = base64.urlsafe_b64encode(b'{"alg":"RS256","kid":' + b"[" * 4000).decode().rstrip("=")
    page = client.get("/s/cast/", {**given(place), "prolific_token": f"{head}.e30.AAAA"})
    assert page.status_code == 403


@pytest.mark.parametrize(("is_signed", "name"), [(True, "prolific_token"), (False, "")])
def test_the_api_names_the_token_as_a_key_of_its_own(
    client: Client, fake: FakeProlific, place: dict[str, Any], is_signed: bool, name: str
) -> None:
    the_study(signed_entry=is_signed)
    document = client.get("/api/v1/studies/cast/").json()
    assert (document["token"], document["parameters"]) == (name, ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"])
    values = signed(fake, place)
    body = {"consent": True, "parameters": {key: values[key] for key in document["parameters"]}}
    if document["token"]:
        body[document["token"]] = values["prolific_token"]
    begun = client.post("/api/v1/studies/cast/sittings/", json.dumps(body), content_type="application/json")
    assert begun.status_code == 201


@pytest.mark.parametrize("leave", [FakeProlific.give_up, FakeProlific.time_out])
def test_nobody_begins_who_would_not_be_paid(fake: FakeProlific, place: dict[str, Any], leave: Any) -> None:
    leave(fake, place["id"])
    assert refusal(the_study(), given(place)) == "not_sent_by_panel"


def test_who_began_goes_on_though_the_panels_time_is_over(fake: FakeProlific, place: dict[str, Any]) -> None:
    study = the_study()
    begin_sitting(study=study, ids=PanelIds("prolific", place["participant_id"], "study1", place["id"]))
    fake.time_out(place["id"])
    assert arrive(study, given(place), host=HOST)


def test_a_study_that_we_posted_lets_in_its_own_people_alone(place: dict[str, Any]) -> None:
    study = the_study()
    Posting.objects.create(
        study=study, stage=study.stages.get(index=1), panel="prolific", internal_name="x", external_id="study2",
        reward=1, currency="USD", places=1, expected_minutes=1,
    )  # fmt: skip
    assert refusal(study, given(place)) == "not_sent_by_panel"


def test_nobody_is_let_in_unchecked_while_the_panel_is_too_busy(fake: FakeProlific, place: dict[str, Any]) -> None:
    fake.busy_every = 1
    study = the_study()
    assert refusal(study, given(place)) == "entry_not_checked"
    assert len(fake.calls) == 1, "somebody is waiting: it is asked once"
    fake.busy_every = 0
    assert arrive(study, given(place), host=HOST), "who tries again is let in"


def test_nothing_is_asked_without_a_token_or_of_simulated_people(
    fake: FakeProlific, settings: Any, place: dict[str, Any]
) -> None:
    stranger = given(place, SESSION_ID="0" * 24)
    study = the_study()
    assert arrive(study, stranger, host=HOST, simulated=True)
    settings.HUNCH_PROLIFIC_TOKEN = ""
    visitor = arrive(study, stranger, host=HOST)
    assert visitor is not None and not visitor.confirmed
    assert fake.calls == []


def test_who_was_let_in_before_is_not_asked_about_again(fake: FakeProlific, place: dict[str, Any]) -> None:
    study = the_study()
    visitor = arrive(study, given(place), host=HOST)
    assert visitor
    arrive(study, given(place), host=HOST, known=visitor)
    begin_sitting(study=study, ids=visitor.ids)
    arrive(study, given(place), host=HOST)
    assert len(fake.calls) == 1


def test_a_browser_that_was_let_in_vouches_for_nobody_else(fake: FakeProlific, place: dict[str, Any]) -> None:
    study = the_study()
    known = arrive(study, given(place), host=HOST)
    assert known
    stranger = {"PROLIFIC_PID": "f" * 24, "STUDY_ID": place["study_id"], "SESSION_ID": "e" * 24}
    assert refusal(study, stranger, known=known) == "not_sent_by_panel"
    assert ("GET", f"/api/v1/submissions/{'e' * 24}/") in fake.calls, "and looked up"


# Signed


def test_a_signed_link_opens_the_door_and_asks_for_the_keys_once(fake: FakeProlific, place: dict[str, Any]) -> None:
    study = the_study(signed_entry=True)
    for _ in range(3):
        assert arrive(study, signed(fake, place), host=HOST)
    assert [path for _method, path in fake.calls] == ["/.well-known/study/jwks.json"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "claims",
    [
        {"audience": "https://elsewhere.example/s/cast/"},
        {"audience": f"https://elsewhere.example/?{HOST}"},
        {"audience": f"https://{HOST}@elsewhere.example/"},
        {"iss": "https://www.prolific.example"},
        {"exp": 1_000_000_000},
        {"iat": 9_000_000_000, "exp": 9_000_000_120},
        {"exp": "later"},
        {"sub": "0" * 24},
        {"prolific": {}},
        {"prolific": None},
        {"header": {"alg": "none", "kid": "fake-1"}},
        {"header": {"alg": "HS256", "kid": "fake-1"}},
        {"header": {"alg": "RS256", "kid": "unknown"}},
        {"header": {"alg": "RS256"}},
        {"header": {"alg": "RS256", "kid": 7}},
        {"header": {"alg": ["RS256"], "kid": "fake-1"}},
        {"header": {"alg": "RS256", "kid": "fake-1", "crit": ["b64"], "b64": False}},
        {"header": {"alg": "RS256", "kid": "fake-1", "crit": ["unknown"], "unknown": 1}},
    ],
    ids=str,
)
def test_a_wrong_token_is_refused(fake: FakeProlific, place: dict[str, Any], claims: dict[str, Any]) -> None:
    assert refusal(the_study(signed_entry=True), signed(fake, place, **claims)) == "not_sent_by_panel"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b.c",
        "....",
        "é.é.é",
        "e30.e30.e30",
        "W10.W10.W10",
        "x" * 9000,
        "W1tb" * 1500 + ".e30.e30",
        "\ud800.e30.e30",
    ],
)
def test_what_is_no_token_is_refused(place: dict[str, Any], token: str) -> None:
    assert refusal(the_study(signed_entry=True), given(place, prolific_token=token)) == "not_sent_by_panel"


def test_a_token_of_one_submission_is_no_pass_for_another(fake: FakeProlific, place: dict[str, Any]) -> None:
    other = fake.take_place("study1")
    assert other
    values = given(other, prolific_token=signed(fake, place)["prolific_token"])
    assert refusal(the_study(signed_entry=True), values) == "not_sent_by_panel"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"])
def test_every_id_in_a_token_must_be_the_addresss(fake: FakeProlific, place: dict[str, Any], name: str) -> None:
    """Signed by the panel and about this submission, with one other value among those that it claims."""
    claimed = {**given(place), name: "0" * 24}
    values = signed(fake, place, sub=place["id"], prolific={**claimed, "workspace_id": "fake-workspace"})
    assert refusal(the_study(signed_entry=True), values) == "not_sent_by_panel"
    missing = {key: value for key, value in given(place).items() if key != name}
    values = signed(fake, place, sub=place["id"], prolific=missing)
    assert refusal(cast.open_study(slug="other", panel={**cast.PROLIFIC, "signed_entry": True}), values) == (
        "not_sent_by_panel"
    )


def test_a_changed_token_is_refused(fake: FakeProlific, place: dict[str, Any]) -> None:
    values = signed(fake, place)
    head, _payload, signature = values["prolific_token"].split(".")
    forged = signed(fake, place, exp=9_000_000_000)["prolific_token"].split(".")[1]
    values["prolific_token"] = f"{head}.{forged}.{signature}"
    assert refusal(the_study(signed_entry=True), values) == "not_sent_by_panel"


def test_a_reload_after_the_link_is_over_keeps_who_was_let_in(client: Client, fake: FakeProlific, place: Any) -> None:
    the_study(signed_entry=True)
    address = {**signed(fake, place)}
    assert client.get("/s/cast/", address).status_code == 302
    fake.calls.clear()
    late = {**address, "prolific_token": signed(fake, place, exp=1_000_000_000)["prolific_token"]}
    assert client.get("/s/cast/", late).status_code == 302
    assert fake.calls == []


def test_without_keys_a_signed_study_looks_up_and_else_says_try_again(
    fake: FakeProlific, settings: Any, place: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "key_set", lambda: {"keys": "gone"})
    study = the_study(signed_entry=True)
    assert arrive(study, signed(fake, place), host=HOST)
    settings.HUNCH_PROLIFIC_TOKEN = ""
    assert refusal(study, signed(fake, place)) == "entry_not_checked"


def test_where_neither_the_link_nor_the_panel_says_anything_nobody_comes_in(
    fake: FakeProlific, place: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "key_set", lambda: {"keys": "gone"})
    monkeypatch.setattr(Prolific, "look_up", lambda *_arguments: Verdict.NOT_KNOWN)
    assert refusal(the_study(signed_entry=True), signed(fake, place)) == "entry_not_checked"


def in_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned(payload: Mapping[str, Any], **header: Any) -> str:
    return ".".join(in_base64(json.dumps(part).encode()) for part in (header, payload))


def test_a_token_without_a_signature_is_refused(fake: FakeProlific, place: dict[str, Any]) -> None:
    study = the_study(signed_entry=True)
    values = signed(fake, place)
    payload = jwt.decode(values["prolific_token"], options={"verify_signature": False})
    for algorithm in ("none", "None", "RS256"):
        values["prolific_token"] = unsigned(payload, alg=algorithm, kid="fake-1") + "."
        assert refusal(study, values) == "not_sent_by_panel"


def test_the_public_key_is_no_shared_secret(fake: FakeProlific, place: dict[str, Any]) -> None:
    study = the_study(signed_entry=True)
    values = signed(fake, place)
    payload = jwt.decode(values["prolific_token"], options={"verify_signature": False})
    encoding, style = serialization.Encoding, serialization.PublicFormat
    for secret in (
        fake.key.public_key().public_bytes(encoding.PEM, style.SubjectPublicKeyInfo),
        fake.key.public_key().public_bytes(encoding.DER, style.PKCS1),
        json.dumps(fake.key_set()["keys"][0]).encode(),
    ):
        text = unsigned(payload, alg="HS256", kid="fake-1")
        signature = hmac.new(secret, text.encode(), hashlib.sha256).digest()
        values["prolific_token"] = f"{text}.{in_base64(signature)}"
        assert refusal(study, values) == "not_sent_by_panel"


@pytest.mark.parametrize("kid", ["fake-1", "thief-1"])
def test_a_key_that_the_token_brings_along_is_not_used(fake: FakeProlific, place: dict[str, Any], kid: str) -> None:
    study = the_study(signed_entry=True)
    thief = FakeProlific(seed=12)
    theirs = {**thief.key_set()["keys"][0], "kid": kid}
    with FakeServer(thief):
        address = f"{thief.url}/.well-known/study/jwks.json"
        for extra in ({}, {"jwk": theirs}, {"jku": address}, {"jwk": theirs, "jku": address, "x5u": address}):
            values = signed(thief, place, header={"alg": "RS256", "kid": kid, **extra})
            assert refusal(study, values) == "not_sent_by_panel"
    assert thief.calls == []
    assert {path for _method, path in fake.calls} == {"/.well-known/study/jwks.json"}
    right = signed(fake, place, header={"alg": "RS256", "kid": "fake-1", "jwk": theirs, "jku": address})
    assert arrive(study, right, host=HOST), "what it brings along is passed over"


def test_a_key_of_another_kind_or_too_short_signs_nothing(
    fake: FakeProlific, place: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = fake.key_set()["keys"][0]
    study = the_study(signed_entry=True)
    for change in ({"use": "enc"}, {"alg": "RS512"}, {"kty": "oct", "k": right["n"]}, {"n": in_base64(b"\x81" * 64)}):
        cache.clear()
        other = {**right, "kid": "fake-2"}
        monkeypatch.setattr(fake, "key_set", lambda keys=({**right, **change}, other): {"keys": list(keys)})
        assert refusal(study, signed(fake, place)) == "not_sent_by_panel", change
        assert arrive(study, signed(fake, place, header={"alg": "RS256", "kid": "fake-2"}), host=HOST)


def test_one_of_several_audiences_may_be_ours(fake: FakeProlific, place: dict[str, Any]) -> None:
    study = the_study(signed_entry=True)
    elsewhere = "https://elsewhere.example/"
    assert arrive(study, signed(fake, place, audience=[elsewhere, f"https://{HOST}/s/cast/"]), host=HOST)
    for others in ([], [elsewhere], [elsewhere, None, 7], [[f"https://{HOST}/"]], {"": f"https://{HOST}/"}, 7, ""):
        assert refusal(study, signed(fake, place, audience=others)) == "not_sent_by_panel", others


def test_two_clocks_may_differ_by_half_a_minute(fake: FakeProlific, place: dict[str, Any]) -> None:
    study = the_study(signed_entry=True)
    now = int(time.time())
    for times in ({"exp": now - 15}, {"iat": now + 15}, {"nbf": now + 15}):
        assert arrive(study, signed(fake, place, **times), host=HOST), times
    for times in ({"exp": now - 45}, {"iat": now + 60}, {"nbf": now + 60}, {"exp": None}, {"iat": None}):
        assert refusal(study, signed(fake, place, **times)) == "not_sent_by_panel", times


def test_refused_tokens_leave_no_id_and_no_key_in_the_log(
    fake: FakeProlific, place: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    study = the_study(signed_entry=True)
    with caplog.at_level(logging.DEBUG):
        for wrong in ({"header": {"alg": "RS256", "kid": "made-up-kid"}}, {"sub": "0" * 24}, {"exp": 1}):
            values = signed(fake, place, **wrong)
            assert refusal(study, values) == "not_sent_by_panel"
    modulus = fake.key_set()["keys"][0]["n"]
    for secret in (*values.values(), "made-up-kid", "fake-1", modulus):
        assert secret not in caplog.text


class KeyList:
    """The panel's list of keys at moments that a test chooses; counts how often it was read."""

    def __init__(self, fake: FakeProlific, place: dict[str, Any], clock: Any) -> None:
        self.fake, self.values, self.clock = fake, given(place), clock
        self.reads = 0
        self.is_reachable = True

    def read(self) -> Any:
        self.reads += 1
        if not self.is_reachable:
            raise PanelError("no answer")
        return self.fake.key_set()

    def check(self, now: float, **claims: Any) -> None:
        self.clock.move_to(now, tick=False)
        token = self.fake.sign(self.values, audience=f"https://{HOST}/", **{"iat": now, "exp": now + 120, **claims})
        tokens.check_token(
            token, expected=self.values, submission=self.values["SESSION_ID"], host=HOST, read_keys=self.read
        )


@pytest.fixture
def key_list(fake: FakeProlific, place: dict[str, Any], time_machine: Any) -> KeyList:
    return KeyList(fake, place, time_machine)


def test_new_keys_are_fetched_but_not_for_every_made_up_name(key_list: KeyList) -> None:
    key_list.check(1e9)
    for _ in range(5):
        with pytest.raises(tokens.BadToken):
            key_list.check(1e9 + 90, header={"alg": "RS256", "kid": "made up"})
    assert key_list.reads == 2
    key_list.check(1e9 + 100)
    assert key_list.reads == 2
    key_list.check(1e9 + tokens.FRESH + 200)
    assert key_list.reads == 3


def test_keys_are_kept_for_days_while_the_panel_cannot_be_reached(key_list: KeyList) -> None:
    key_list.check(1e9)
    key_list.is_reachable = False
    key_list.check(1e9 + tokens.KEPT - 10)
    assert key_list.reads == 2
    with pytest.raises(tokens.KeysUnavailable):
        key_list.check(1e9 + tokens.KEPT + 100)
    with pytest.raises(tokens.KeysUnavailable):
        key_list.check(1e9 + tokens.KEPT + 101)
    assert key_list.reads == 3, "it is asked once a minute while it is away"
    key_list.is_reachable = True
    key_list.check(1e9 + tokens.KEPT + 200)


@pytest.mark.parametrize("answer", [{"keys": "gone"}, {"keys": []}, {}, [], "busy", None, {"keys": [{"kty": "RSA"}]}])
def test_a_list_without_a_key_does_not_replace_the_keys_that_are_kept(
    key_list: KeyList, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    key_list.check(1e9)
    monkeypatch.setattr(key_list.fake, "key_set", lambda: answer)
    key_list.check(1e9 + tokens.FRESH + 1)
    assert key_list.reads == 2


# People of other studies


def test_people_of_an_excluded_study_are_turned_away_before_and_at_consent(settings: Any) -> None:
    settings.HUNCH_PROLIFIC_TOKEN = ""
    earlier = cast.open_study(slug="earlier", panel=cast.PROLIFIC)
    study = cast.open_study(slug="later", panel={**cast.PROLIFIC, "exclude_people_of": ["earlier"]})
    begin_sitting(study=earlier, ids=PanelIds("prolific", "p1", "s1", "x1"))
    again = {"PROLIFIC_PID": "p1", "STUDY_ID": "s2", "SESSION_ID": "x2"}
    assert refusal(study, again) == "took_part_in_another"
    with pytest.raises(EntryRefused):
        begin_sitting(study=study, ids=PanelIds("prolific", "p1", "s2", "x2"))
    assert arrive(study, {**again, "PROLIFIC_PID": "p2"}, host=HOST)
    assert Respondent.objects.filter(study=study).count() == 0


def test_who_found_no_place_once_and_took_part_another_time_is_left_out() -> None:
    """In whichever order; who found no place and nothing else has not taken part."""
    earlier = cast.open_study(slug="earlier", panel=cast.PROLIFIC)
    study = cast.open_study(slug="later", panel={**cast.PROLIFIC, "exclude_people_of": ["earlier"]})
    states = {"p1": ("turned_away", "complete"), "p2": ("complete", "turned_away"), "p3": ("turned_away",)}
    for person, of_waves in states.items():
        sitting = begin_sitting(study=earlier, ids=PanelIds("prolific", person, "s1", person))
        now = timezone.now()
        Sitting.objects.filter(pk=sitting.pk).update(state=of_waves[0], ended_at=now)
        for wave, state in enumerate(of_waves[1:], start=2):
            Sitting.objects.create(
                respondent=sitting.respondent,
                stage=sitting.stage,
                wave=wave,
                state=state,
                started_at=now,
                last_seen_at=now,
                ended_at=now,
            )
    for person in ("p1", "p2"):
        with pytest.raises(EntryRefused) as refused:
            begin_sitting(study=study, ids=PanelIds("prolific", person, "s2", f"{person} again"))
        assert refused.value.code == "took_part_in_another"
    assert begin_sitting(study=study, ids=PanelIds("prolific", "p3", "s2", "p3 again")).is_new


@pytest.mark.slow
def test_an_excluded_study_that_is_gone_lets_nobody_of_the_others_in() -> None:
    """It was removed after this study was made."""
    earlier = cast.open_study(slug="earlier", panel=cast.PROLIFIC)
    gone = cast.study(slug="gone", panel=cast.PROLIFIC)
    study = cast.open_study(slug="later", panel={**cast.PROLIFIC, "exclude_people_of": ["gone", "earlier"]})
    gone.stages.all().delete()
    gone.codes.all().delete()
    gone.delete()
    begin_sitting(study=earlier, ids=PanelIds("prolific", "p1", "s1", "x1"))
    with pytest.raises(EntryRefused) as refused:
        begin_sitting(study=study, ids=PanelIds("prolific", "p1", "s2", "x2"))
    assert refused.value.code == "took_part_in_another"


def test_the_refusals_are_pages_that_tell_nothing_of_the_person(
    client: Client, fake: FakeProlific, place: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    the_study()
    with caplog.at_level(logging.DEBUG):
        response = client.get("/s/cast/", given(place, SESSION_ID="0" * 24))
    assert response.status_code == 403 and b'data-refused="not_sent_by_panel"' in response.content
    assert place["participant_id"] not in response.content.decode() + caplog.text


def test_by_api_the_panel_is_asked_too(client: Client, fake: FakeProlific, place: dict[str, Any]) -> None:
    the_study(signed_entry=True)
    address = "/api/v1/studies/cast/sittings/"
    body = {"consent": True, **given(place)}
    response = client.post(address, body, content_type="application/json")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "not_sent_by_panel")
    response = client.post(address, {"consent": True, **signed(fake, place)}, content_type="application/json")
    assert response.status_code == 201, response.content


def test_a_simulated_mark_that_was_not_made_here_does_not_help(client: Client, place: dict[str, Any]) -> None:
    the_study()
    header = {entry.SIMULATED_HEADER: "simulator"}
    assert client.get("/s/cast/", given(place, SESSION_ID="0" * 24), headers=header).status_code == 403
