"""The admin's pages of a study's file, its pilot, and withdrawing a person: who may, what is shown, what is done."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from survey.models import Amendment, Respondent, Response, Stage, Study, Withdrawal
from survey.services.stages import lifecycle
from tests import cast

from .conftest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def with_permission(user: Any, codename: str) -> Client:
    user.user_permissions.add(Permission.objects.get(codename=codename, content_type__app_label="survey"))
    return client_of(type(user).objects.get(pk=user.pk))


@pytest.fixture
def open_study(db: None) -> Study:
    return Study.objects.get(pk=cast.open_study().pk)


def page(study: Study, name: str = "change") -> str:
    return f"/admin/survey/study/{study.pk}/{name}/"


def new_file(**overrides: Any) -> dict[str, str]:
    return {"reason": "a typo", "text": cast.study_text(**overrides).replace("\n", "\r\n")}


def test_only_who_may_amend_sees_the_page(open_study: Study, researcher: Any, as_researcher: Client) -> None:
    assert as_researcher.get(page(open_study, "amend")).status_code == 403
    assert "/amend/" not in as_researcher.get(page(open_study)).content.decode()
    may = with_permission(researcher, "amend_study")
    assert may.get(page(open_study, "amend")).status_code == 200
    assert "/amend/" in may.get(page(open_study)).content.decode()


def test_it_shows_first_and_changes_by_the_second_button(open_study: Study, as_superuser: Client) -> None:
    file = new_file(title="Another <title>")
    body = as_superuser.post(page(open_study, "amend"), {**file, "show": "1"}).content.decode()
    assert "Another &lt;title&gt;" in body and 'name="amend"' in body
    assert not Amendment.objects.exists()
    done = as_superuser.post(page(open_study, "amend"), {**file, "amend": "1"}, follow=True).content.decode()
    assert "The study file was changed: 1 keys." in done and "a typo" in done
    made = Amendment.objects.get()
    assert (made.actor.username, made.via, made.was_locked) == ("super", "admin", True)
    assert Study.objects.get().source_text == cast.study_text(title="Another <title>")


def test_it_says_what_is_refused_and_offers_no_button(open_study: Study, as_superuser: Client) -> None:
    file = new_file(seed=8)
    body = as_superuser.post(page(open_study, "amend"), {**file, "show": "1"}).content.decode()
    assert "stage 1 was drawn by it" in body and 'name="amend"' not in body
    forced = as_superuser.post(page(open_study, "amend"), {**file, "amend": "1"}).content.decode()
    assert "cast.toml: seed: stage 1 was drawn by it" in forced and not Amendment.objects.exists()
    broken = as_superuser.post(page(open_study, "amend"), {"reason": "x", "text": "slug = ", "show": "1"})
    assert "cast.toml:1:" in broken.content.decode()


def test_the_study_page_shows_lock_term_and_amendments(open_study: Study, as_superuser: Client) -> None:
    body = as_superuser.get(page(open_study)).content.decode()
    assert open_study.source_sha256 in body and "31 December 2099" in body and "not yet: opening" not in body
    open_study.stored_config["data"]["retention_until"] = "2020-01-01"
    open_study.save(update_fields=["stored_config"])
    cure = as_superuser.get(page(open_study)).content.decode().partition("remove what is left of it. ")[2][:300]
    assert cure.startswith("<a ") and "Remove panels&#x27; ids</a>" in cure
    open_study.stored_config["data"]["retention_until"] = None
    open_study.save(update_fields=["stored_config"])
    assert "no stage opens without it" in as_superuser.get(page(open_study)).content.decode()


def test_the_page_of_a_pilot(as_researcher: Client) -> None:
    study = cast.open_study(stages=[{"sittings": 3, "pilot": True}, {"sittings": 4}])
    assert "nobody has begun" in as_researcher.get(page(study, "reports/pilot")).content.decode().lower()
    cast.walk(cast.begin(study))
    body = as_researcher.get(page(study, "reports/pilot")).content.decode()
    assert "posterior is exactly 100" in body and "first_check" in body
    assert "pilot, uniform" in as_researcher.get(page(study)).content.decode()


def test_a_pilot_is_closed_and_the_first_main_stage_opened_from_the_page(as_superuser: Client) -> None:
    study = cast.open_study(stages=[{"sittings": 3, "pilot": True}, {"sittings": 4}])
    assert "stages/2/open" not in as_superuser.get(page(study)).content.decode()
    lifecycle.close_stage(Stage.objects.get(study=study, index=1))
    lifecycle.freeze(Stage.objects.get(study=study, index=1))
    assert "stages/2/open" in as_superuser.get(page(study)).content.decode()
    as_superuser.post(f"/admin/survey/study/{study.pk}/stages/2/open/")
    assert Study.objects.get().locked_at is not None


@pytest.fixture
def person(open_study: Study) -> Respondent:
    sitting = cast.begin(open_study)
    cast.walk(sitting)
    return sitting.respondent


def test_only_who_may_withdraws_a_person(person: Respondent, researcher: Any, as_researcher: Client) -> None:
    address = f"/admin/survey/respondent/{person.pk}/withdraw/"
    assert as_researcher.get(address).status_code == 403
    assert as_researcher.post(address).status_code == 403
    assert address not in as_researcher.get(f"/admin/survey/respondent/{person.pk}/change/").content.decode()
    may = with_permission(researcher, "withdraw_people")
    assert address in may.get(f"/admin/survey/respondent/{person.pk}/change/").content.decode()
    body = may.get(address).content.decode()
    assert "6</dd>" in body and "This cannot be undone" in body
    assert Response.objects.count() == 6
    done = may.post(address, {"reason": "a letter"}, follow=True).content.decode()
    assert f"3 answers of {person} are deleted." in done and address not in done
    assert not Response.objects.exists()
    assert Withdrawal.objects.get().reason == "a letter"
    assert may.get("/admin/survey/respondent/999/withdraw/").status_code == 404


def test_identities_that_are_gone_say_so(person: Respondent, as_superuser: Client) -> None:
    identity = person.panel_identity
    type(identity).objects.update(ids_encrypted=b"", created_at=timezone.now() - timedelta(days=1))
    body = as_superuser.get(f"/admin/survey/panelidentity/{identity.pk}/change/").content.decode()
    assert "removed, as was promised" in body
