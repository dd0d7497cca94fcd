"""Who fails to log in too often has to wait, and a stranger cannot keep a researcher out."""

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.exceptions import NotFound
from survey.models import ApiToken, AuditEntry
from survey.services.base.auditing import actor_of
from survey.tasks import look_after_data
from survey.web.lockout import unlock

PASSWORD = "a long and odd sentence 7"
pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _few(settings: Any) -> None:
    """Fewer failures than in earnest, in the same relation: each costs the hash of a password."""
    settings.AXES_FAILURE_LIMIT, settings.HUNCH_FAILURES_OF_A_NAME = 3, 9


@pytest.fixture
def helper() -> User:
    return User.objects.create_user("helper", is_staff=True, password=PASSWORD)


def log_in(entered: str = "wrong", *, name: str = "helper", address: str = "192.0.2.1", **headers: str) -> Any:
    client = Client(REMOTE_ADDR=address, headers=headers)
    return client.post("/admin/login/?next=/admin/survey/sitting/?q=secretid", {"username": name, "password": entered})


def fail(times: int, **where: str) -> list[int]:
    return [log_in(**where).status_code for _try in range(times)]


@pytest.mark.thorough
def test_an_address_is_locked_out_of_a_name_and_told_when_to_try_again(helper: User) -> None:
    assert fail(3) == [200, 200, 429]
    locked = log_in(PASSWORD, **{"Accept-Language": "de"})
    assert locked.status_code == 429 and "15 min noch einmal" in locked.content.decode()
    assert "again in 15 min" in log_in(PASSWORD).content.decode()
    assert 880 < int(locked["Retry-After"]) <= 901
    assert log_in(PASSWORD, address="192.0.2.2").status_code == 302


def test_all_addresses_are_locked_out_after_many_more_failures(helper: User) -> None:
    for number in range(1, 5):
        assert fail(2, address=f"192.0.2.{number}") == [200, 200]
    assert log_in(address="192.0.2.5").status_code == 429
    assert log_in(PASSWORD, address="192.0.2.6").status_code == 429
    assert fail(1, name="other", address="192.0.2.6") == [200]


def test_the_audit_names_the_address_that_our_proxy_has_seen(helper: User, settings: Any) -> None:
    settings.HUNCH_BEHIND_PROXY = True
    for number, entered in ((7, "wrong"), (8, PASSWORD), (9, "wrong"), (9, "wrong"), (9, "wrong")):
        log_in(entered, **{"X-Forwarded-For": f"198.51.100.1, 203.0.113.{number}"})
    entries = AuditEntry.objects.filter(subject=actor_of(helper))
    assert sorted((entry.action, entry.detail["address"]) for entry in entries) == [
        ("fail_to_log_in", "203.0.113.7"),
        *[("fail_to_log_in", "203.0.113.9")] * 3,
        ("lock_out", "203.0.113.9"),
        ("log_in", "203.0.113.8"),
    ]


def test_a_client_cannot_choose_its_address_or_browser(helper: User) -> None:
    for number in range(2):
        assert log_in(**{"X-Forwarded-For": f"198.51.100.{number}", "User-Agent": f"b{number}"}).status_code == 200
    assert log_in(**{"X-Forwarded-For": "198.51.100.9", "User-Agent": "another"}).status_code == 429


def test_neighbours_in_an_ipv6_network_share_a_count_and_a_server_without_addresses_has_one(helper: User) -> None:
    assert [log_in(address=f"2001:db8::{number}").status_code for number in (1, 2, 3)] == [200, 200, 429]
    assert fail(3, name="second", address="") == [200, 200, 429]


def test_failures_while_locked_out_do_not_make_it_longer(helper: User) -> None:
    fail(3)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=14))
    locked = log_in(PASSWORD)
    assert locked.status_code == 429 and int(locked["Retry-After"]) <= 61 and "in 1 min" in locked.content.decode()
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=15))
    assert log_in(PASSWORD).status_code == 302


def test_a_log_in_forgets_earlier_failures(helper: User) -> None:
    for _round in range(3):
        assert fail(2) == [200, 200]
        assert log_in(PASSWORD).status_code == 302
    assert not AccessAttempt.objects.exists()


def test_nothing_that_was_typed_is_stored_or_logged(helper: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    fail(2)
    fail(1, name="my own password")
    rows = list(AccessAttempt.objects.values())
    assert len(rows) == 2
    for text in ("wrong", "helper", "my own", "secretid", "192.0.2.1"):
        assert text not in caplog.text, text
        assert text == "192.0.2.1" or not any(text in str(value) for row in rows for value in row.values()), text


def test_the_audit_has_each_failure_and_the_beginning_of_a_lockout(helper: User) -> None:
    fail(6)
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", "subject", "detail__address"))
    assert sorted(actions) == [
        *[("fail_to_log_in", actor_of(helper), "192.0.2.1")] * 3,
        ("lock_out", actor_of(helper), "192.0.2.1"),
    ]


def test_a_superuser_unlocks_and_so_does_a_command(helper: User, as_superuser: Client, superuser: User) -> None:
    fail(3)
    chosen = {"action": "unlock_users", "_selected_action": [helper.pk, superuser.pk]}
    page = as_superuser.post("/admin/auth/user/", chosen, follow=True)
    assert "1 of 2 had failed to log in" in page.content.decode()
    assert log_in(PASSWORD).status_code == 302
    fail(3)
    call_command("unlock", "helper")
    assert log_in(PASSWORD).status_code == 302
    entries = AuditEntry.objects.filter(action="unlock").order_by("pk")
    assert [(entry.actor, entry.via) for entry in entries] == [(actor_of(superuser), "admin"), ("", "command")]
    assert not unlock(helper)
    with pytest.raises((NotFound, SystemExit)):
        call_command("unlock", "nobody")


@pytest.mark.thorough
def test_tokens_of_the_api_are_not_counted_and_not_locked(helper: User, superuser: User) -> None:
    _token, secret = ApiToken.issue(user=superuser)
    for _try in range(5):
        assert Client().get("/api/v1/studies/", headers={"Authorization": "Token wrong"}).status_code == 401
    assert not AccessAttempt.objects.exists()
    fail(9, name="super")
    assert Client().get("/api/v1/studies/", headers={"Authorization": f"Token {secret}"}).status_code == 200


def test_what_is_left_of_ended_failures_and_log_ins_is_deleted(helper: User) -> None:
    log_in(PASSWORD)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    log_in(PASSWORD)
    fail(1)
    fail(1, name="other")
    AccessAttempt.objects.filter(pk=AccessAttempt.objects.latest("pk").pk).update(
        attempt_time=timezone.now() - timedelta(minutes=16)
    )
    look_after_data()
    assert (AccessAttempt.objects.count(), Session.objects.count()) == (1, 1)


def test_an_ordinary_page_costs_nothing(as_superuser: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert Client().get("/").status_code == 200
    with CaptureQueriesContext(connection) as queries:
        assert as_superuser.get("/admin/password_change/").status_code == 200
    assert not [query["sql"] for query in queries if "axes_" in query["sql"] or "otp_" in query["sql"]]
