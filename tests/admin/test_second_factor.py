"""Logging in with codes: setting it up, proving it, losing it, and requiring it."""

import re
from base64 import b32decode
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django_otp.oath import TOTP
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from survey.models import AuditEntry, Study
from survey.services.base import second_factor
from survey.services.base.auditing import actor_of

PASSWORD = "a long and odd sentence 7"
PAGE = "/admin/second-factor/"
NOW = 1_800_000_015
pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _no_waiting(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong code makes nobody wait, but where a test says so; and the clock stands still."""
    settings.OTP_TOTP_THROTTLE_FACTOR = settings.OTP_STATIC_THROTTLE_FACTOR = 0
    monkeypatch.setattr("django_otp.plugins.otp_totp.models.time", SimpleNamespace(time=lambda: NOW))


@pytest.fixture
def helper() -> User:
    return User.objects.create_user("helper", is_staff=True, password=PASSWORD)


def log_in(code: str | None = None, *, password: str = PASSWORD, client: Client | None = None) -> Client:
    client = client or Client()
    fields = {"username": "helper", "password": password}
    client.post("/admin/login/", fields if code is None else {**fields, "code": code})
    return client


def is_in(client: Client) -> bool:
    return client.get("/admin/password_change/").status_code == 200


def secret_of(client: Client) -> bytes:
    page = client.get(PAGE).content.decode()
    match = re.search(r"Secret: <code>([A-Z2-7 ]+)</code>", page)
    assert match
    return b32decode(match[1].replace(" ", ""))


def code_of(secret: bytes, *, step: int = 0) -> str:
    """The code of now, or of steps of 30 s later."""
    codes = TOTP(secret)
    codes.time = NOW + 30 * step
    return f"{codes.token():06d}"


def set_up(client: Client, password: str = PASSWORD) -> tuple[bytes, list[str]]:
    secret = secret_of(client)
    page = client.post(PAGE, {"code": code_of(secret, step=-1), "password": password})
    return secret, page.context["codes"]


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_it_is_set_up_with_a_code_and_the_password(helper: User) -> None:
    client = log_in()
    page = client.get(PAGE).content.decode()
    picture = page[page.index('class="hunch-code-picture"') :].partition("</div>")[0]
    assert "<svg" in picture and "<path" in picture and "style" not in picture
    secret = secret_of(client)
    for wrong in ({"code": "000000"}, {"password": "wrong"}, {"code": ""}):
        refused = client.post(PAGE, {"code": code_of(secret), "password": PASSWORD, **wrong})
        assert refused.context["codes"] == [] and second_factor.app_of(helper) is None
    _secret, codes = set_up(client)
    assert len(set(codes)) == 10 and second_factor.app_of(helper) is not None
    assert actions().count("set_up_second_factor") == 1
    again = client.get(PAGE).content.decode()
    assert "10 recovery codes left" in again and "hunch-code-picture" not in again and codes[0] not in again


def test_an_app_that_was_not_set_up_to_the_end_proves_nothing(helper: User) -> None:
    begun = second_factor.begun_app(helper)
    assert second_factor.prove(helper, code_of(begun.bin_key)) == ""
    assert second_factor.confirm(helper, code_of(begun.bin_key)) != []
    assert second_factor.prove(helper, code_of(begun.bin_key, step=1)) == "code"


def test_a_log_in_asks_for_the_code_and_takes_each_once(helper: User) -> None:
    secret, _codes = set_up(log_in())
    assert not is_in(log_in())
    assert not is_in(log_in("123456"))
    assert not is_in(log_in(code_of(secret), password="wrong"))
    code = code_of(secret)
    assert is_in(log_in(code))
    assert not is_in(log_in(code)), "a code that was used"
    assert is_in(log_in(code_of(secret, step=1)))
    written = AuditEntry.objects.filter(action="log_in").order_by("pk")
    assert [entry.detail["second_factor"] for entry in written] == ["none", "code", "code"]
    assert actions().count("fail_second_factor") == 2


def test_the_code_of_somebody_else_is_none(helper: User, superuser: User) -> None:
    set_up(log_in())
    begun = second_factor.begun_app(superuser)
    second_factor.confirm(superuser, code_of(begun.bin_key, step=-1))
    assert not is_in(log_in(code_of(begun.bin_key)))


def test_guessing_makes_wait(helper: User, settings: Any) -> None:
    secret, codes = set_up(log_in())
    settings.OTP_TOTP_THROTTLE_FACTOR = settings.OTP_STATIC_THROTTLE_FACTOR = 3600
    assert not is_in(log_in("123456"))
    assert not is_in(log_in(code_of(secret))), "the right code, too soon"
    assert is_in(log_in(codes[0])), "a recovery code has a throttle of its own"
    assert not is_in(log_in("wrong-recovery-code"))
    assert not is_in(log_in(codes[1]))


def test_a_recovery_code_works_once_however_it_is_written(helper: User) -> None:
    _secret, codes = set_up(log_in())
    assert is_in(log_in(codes[0].upper().replace("-", " ")))
    assert not is_in(log_in(codes[0]))
    assert second_factor.codes_left(helper) == 9


def test_the_database_alone_makes_no_code(helper: User) -> None:
    secret, codes = set_up(log_in())
    stored = TOTPDevice.objects.get()
    assert stored.bin_key != secret and secret.hex() not in str(stored.__dict__)
    plain = {code.replace("-", "") for code in codes}
    assert not plain & set(StaticToken.objects.values_list("token", flat=True))


def test_new_recovery_codes_and_the_end_need_the_password(helper: User) -> None:
    client = log_in()
    _secret, codes = set_up(client)
    for button in ({}, {"remove": "1"}):
        client.post(PAGE, {"password": "wrong", **button})
    assert second_factor.app_of(helper) is not None and second_factor.codes_left(helper) == 10
    new = client.post(PAGE, {"password": PASSWORD}).context["codes"]
    assert len(new) == 10 and not set(new) & set(codes)
    assert not is_in(log_in(codes[0])) and is_in(log_in(new[0]))
    client.post(PAGE, {"password": PASSWORD, "remove": "1"})
    assert second_factor.app_of(helper) is None and is_in(log_in())
    assert {"replace_recovery_codes", "remove_second_factor"} <= set(actions())


def test_a_session_from_before_needs_a_code_too(helper: User) -> None:
    old = log_in()
    secret, _codes = set_up(log_in())
    old.post(PAGE, {"password": PASSWORD, "remove": "1"})
    old.post(PAGE, {"password": PASSWORD, "remove": "1", "code": "123456"})
    assert second_factor.app_of(helper) is not None
    old.post(PAGE, {"password": PASSWORD, "remove": "1", "code": code_of(secret)})
    assert second_factor.app_of(helper) is None


def test_a_superuser_removes_a_lost_device_and_so_does_a_command(
    helper: User, as_superuser: Client, superuser: User
) -> None:
    set_up(log_in())
    chosen = {"action": "remove_second_factors", "_selected_action": [helper.pk]}
    helper_manages = log_in(second_factor.replace_codes(helper)[0])
    helper_manages.post("/admin/auth/user/", chosen)
    assert second_factor.app_of(helper) is not None
    as_superuser.post("/admin/auth/user/", chosen)
    assert is_in(log_in())
    assert AuditEntry.objects.get(action="remove_second_factor").actor == actor_of(superuser)
    set_up(log_in())
    call_command("unlock", "helper", "--remove-codes")
    assert is_in(log_in())


def test_where_codes_are_required_nothing_else_is_seen_before(helper: User, settings: Any, study: Study) -> None:
    settings.HUNCH_TOTP = "required"
    User.objects.filter(pk=helper.pk).update(is_superuser=True)
    client = log_in()
    for address in ("/admin/", "/admin/password_change/", f"/admin/survey/study/{study.pk}/change/", "/admin/nowhere"):
        response = client.get(address)
        assert (response.status_code, response["Location"]) == (302, PAGE), address
    assert client.get("/api/v1/studies/").status_code in (401, 403)
    assert client.post(f"/admin/survey/study/{study.pk}/export/answers.csv").status_code == 302
    secret, _codes = set_up(client)
    assert is_in(client) and client.get("/api/v1/studies/").status_code == 200
    assert is_in(log_in(code_of(secret)))
    assert Client().get(f"/s/{study.slug}/").status_code != 500


def test_the_pages_of_the_library_which_show_secrets_are_not_there(as_superuser: Client) -> None:
    for address in ("/admin/otp_totp/totpdevice/", "/admin/otp_static/staticdevice/", "/admin/axes/accessattempt/"):
        assert as_superuser.get(address).status_code == 404
