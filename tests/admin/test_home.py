"""The studies are the admin's home, the navigation leads to everything, and an empty server gets its first account."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from survey.admin import home
from survey.admin_base.navigation import GROUPS
from survey.logs.log_format import LineFormatter
from survey.models import AuditEntry, FirstAccountLink
from survey.services.base import first_account
from survey.services.base.groups import ensure_researchers_group
from survey.services.stages import lifecycle
from survey.services.studies import test_copies
from tests import cast
from tests.admin.conftest import client_of

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough word"
FORM = {"username": "ada", "password": PASSWORD, "again": PASSWORD}


def entries(page: Any) -> list[str]:
    (nav,) = re.findall(r'(?s)<nav class="desk-nav".*?</nav>', page.content.decode())
    return re.findall(r"<a [^>]*>([^<]+)</a>", nav)


def test_the_home_shows_the_studies_of_the_user_and_what_they_may_make(as_superuser: Client) -> None:
    cast.study()
    user = User.objects.create_user("newcomer", is_staff=True)
    user.groups.add(ensure_researchers_group())
    words = as_superuser.get("/admin/").content.decode()
    assert "A study of the cast" in words and "New study" in words and "New bank" in words
    theirs = client_of(user).get("/admin/").content.decode()
    assert "A study of the cast" not in theirs and "New study" in theirs
    nobodys = client_of(User.objects.create_user("onlooker", is_staff=True)).get("/admin/").content.decode()
    assert "New study" not in nobodys and "may not see studies" in nobodys


def test_a_card_says_how_far_a_study_is_and_leads_to_the_next_step(as_superuser: Client) -> None:
    study = cast.open_study(stages=[{"sittings": 4}, {"sittings": 4}, {"sittings": 4}])
    cast.sitting(cast.stage_of(study), state="complete", ended_at=timezone.now())
    made = home.cards([study], User.objects.get(username="super"))
    assert [(line.first.index, line.last.index, line.state, line.people, line.wanted) for line in made[0].lines] == [
        (1, 1, "open", 1, 4), (2, 3, "draft", 0, 8)
    ]  # fmt: skip
    page = as_superuser.get("/admin/").content.decode()
    assert "1 of 4 people done" in page and "Stages 2 to 3" in page and "0 of 8 people" not in page
    assert "Stage 1 is open, 1 of 4 people are done" in page
    stage = cast.stage_of(study)
    lifecycle.pause_stage(stage)
    page = as_superuser.get("/admin/").content.decode()
    assert f'<a class="button" href="/admin/survey/study/{study.pk}/stages/1/resume/">Resume</a>' in page


def test_a_test_copy_stands_on_the_card_of_its_study(as_superuser: Client) -> None:
    study = cast.study()
    copy = test_copies.make_copy(study, by=User.objects.get(username="super"), via="admin")
    user = User.objects.get(username="super")
    (card,) = home.cards([copy, study], user)
    assert card.study == study and [inner.study for inner in card.copies] == [copy]
    assert [card.study for card in home.cards([copy], user)] == [copy], "its study is archived"
    page = as_superuser.get("/admin/").content.decode()
    assert page.count(f'<h2><a href="/admin/survey/study/{copy.pk}/change/') == 0 and "Test copy</a>" in page


@pytest.mark.slow
def test_the_navigation_has_the_groups_and_marks_where_one_is(as_superuser: Client) -> None:
    assert entries(as_superuser.get("/admin/")) == ["Studies", "Banks", "People", "Payments", "Predictors", "Advanced"]
    for group in GROUPS:
        page = as_superuser.get(f"/admin/desk/{group.name}/")
        assert page.status_code == 200
        for table in group.tables:
            address = f"/admin/{table.model.replace('.', '/')}/"
            assert f'href="{address}"' in page.content.decode() and as_superuser.get(address).status_code == 200
    questions = as_superuser.get("/admin/survey/question/").content.decode()
    assert re.search(r'<a href="/admin/desk/banks/" aria-current="page">', questions)
    study = as_superuser.get(f"/admin/survey/study/{cast.small_study().pk}/change/").content.decode()
    assert re.search(r'<a href="/admin/" aria-current="page">', study)
    assert 'href="/admin/survey/slot/"' in as_superuser.get("/admin/advanced/").content.decode()


def test_who_may_see_nothing_of_a_group_finds_no_such_group(onlooker: Any) -> None:
    client = client_of(onlooker)
    assert entries(client.get("/admin/")) == ["Studies", "Advanced"]
    assert client.get("/admin/desk/people/").status_code == 404
    assert Client().get("/admin/desk/people/").status_code == 302


# The first account


def address() -> str:
    secret = first_account.offer()
    assert secret
    assert first_account.path(secret) == reverse("admin:first_account", query={"secret": secret})
    return f"/admin/first-account/?secret={secret}"


def test_the_login_page_of_an_empty_server_says_where_the_first_address_stands(client: Client) -> None:
    sentence = "Nobody has an account here yet"
    assert sentence in client.get("/admin/login/").content.decode()
    User.objects.create_user("ada")
    assert sentence not in client.get("/admin/login/").content.decode()


def test_the_address_makes_one_superuser_and_logs_them_in(client: Client) -> None:
    there = address()
    assert client.get(there).status_code == 200
    made = client.post(there, FORM)
    assert made.status_code == 302 and made.url == "/admin/"
    user = User.objects.get()
    assert (user.username, user.is_superuser, user.check_password(PASSWORD)) == ("ada", True, True)
    assert client.get("/admin/").status_code == 200
    assert AuditEntry.objects.filter(action="make_first_account").count() == 1
    again = Client().post(there, FORM | {"username": "eve"})
    assert again.status_code == 404 and User.objects.count() == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"again": "another long word"}, "The two passwords differ"),
        ({"password": "short", "again": "short"}, "too short"),
        ({"username": "a b<>"}, "valid username"),
    ],
)
def test_a_wrong_form_uses_the_address_up_for_nobody(client: Client, wrong: dict[str, str], said: str) -> None:
    there = address()
    page = client.post(there, FORM | wrong)
    assert said in page.content.decode() and not User.objects.exists()
    assert client.post(there, FORM).status_code == 302


def test_the_address_ends_after_a_day_with_a_newer_one_and_with_any_account(client: Client) -> None:
    first, second = address(), address()
    assert client.get(first).status_code == 404 and client.get(second).status_code == 200
    FirstAccountLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get(second).status_code == 404 and client.post(second, FORM).status_code == 404
    third = address()
    User.objects.create_user("somebody")
    assert client.get(third).status_code == 404 and client.post(third, FORM).status_code == 404
    assert first_account.offer() is None and User.objects.count() == 1


def test_only_the_hash_of_the_address_is_stored_and_the_audit_does_not_have_it() -> None:
    secret = first_account.offer()
    assert secret and not FirstAccountLink.objects.filter(token_hash=secret).exists()
    assert not any(secret in str(entry.detail) + entry.subject for entry in AuditEntry.objects.all())


def test_no_line_of_a_log_has_the_secret_of_the_address(client: Client, caplog: Any) -> None:
    there = address()
    with caplog.at_level("DEBUG"):
        answer = client.get(there)
        assert client.get(there.replace("secret=", "secret=x")).status_code == 404
    secret = there.partition("secret=")[2]
    # gunicorn and the proxy write the path, and Django what it found at which path.
    assert secret not in answer.wsgi_request.path
    assert caplog.records and not any(secret in LineFormatter().format(record) for record in caplog.records)


def test_the_demos_own_researcher_is_not_the_first_account() -> None:
    User.objects.create_user("researcher", email=first_account.DEMO_EMAIL, is_staff=True)
    assert first_account.offer()
    User.objects.filter(username="researcher").update(is_superuser=True)
    assert first_account.offer() is None


def test_the_command_prints_the_address_while_there_is_no_account(client: Client, capsys: Any) -> None:
    call_command("first_account", "--root", "http://testserver")
    (line,) = capsys.readouterr().out.split()
    assert client.get(line.removeprefix("http://testserver")).status_code == 200
    User.objects.create_user("somebody")
    with pytest.raises(SystemExit):
        call_command("first_account")
    assert "there is an account already" in capsys.readouterr().err
