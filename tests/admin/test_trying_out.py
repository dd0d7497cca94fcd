"""The page on which a study is tried out, and test copies in the admin's lists."""

import re
from typing import Any

import pytest
from django.test import Client

from survey.models import Study
from survey.services.base.groups import ensure_researchers_group
from survey.services.stages import test_stages
from survey.services.studies import test_copies
from tests import cast
from tests.frontend import pages
from tests.survey.printed_screens.test_screens import TWO_LANGUAGES

from .conftest import client_of

pytestmark = pytest.mark.django_db
MOOD = {"factor": "mood", "levels": ["calm", "hurried"]}


def address_in(html: str) -> str:
    found = re.search(r'href="http://testserver(/s/[^"]+)"', html)
    assert found is not None, html
    return found[1].replace("&amp;", "&")


def test_a_preview_is_made_from_the_page_and_stores_nothing_in_the_study(as_superuser: Client) -> None:
    study = cast.study(**{**TWO_LANGUAGES, "conditions": [MOOD]})
    page = as_superuser.get(f"/admin/survey/study/{study.pk}/try/").content.decode()
    assert "Condition mood" in page and "Language" in page
    made = as_superuser.post(f"/admin/survey/study/{study.pk}/try/", {"language": "de", "level_mood": "calm"})
    stranger = Client()
    assert stranger.get(address_in(made.content.decode()), follow=True).headers["Content-Language"] == "de"
    pages.arrive(stranger, slug="cast_test")
    (sitting,) = test_copies.find_copy(study).stages.get(index=1).sittings.all()
    assert (sitting.language, sitting.levels()) == ("de", {"mood": "calm"})
    assert not study.respondents.exists() and study.stages.get(index=1).state == "draft"


def test_a_viewer_previews_an_open_copy_and_makes_none(onlooker: Any) -> None:
    study = cast.study()
    onlooker.groups.add(ensure_researchers_group())
    cast.join(onlooker, study, "viewer", may_spend=False)
    browser = client_of(onlooker)
    here = f"/admin/survey/study/{study.pk}/try/"
    assert b"Somebody who may run the study" in browser.get(here).content
    assert browser.post(here).status_code == 403
    assert browser.post(f"{here}copy/make/").status_code == 403
    test_stages.open_copy(study)
    assert address_in(browser.post(here).content.decode())
    assert Study.objects.count() == 2


def test_the_copy_is_renewed_and_deleted_after_a_question(as_superuser: Client) -> None:
    study = cast.study()
    here = f"/admin/survey/study/{study.pk}/try/"
    as_superuser.post(f"{here}copy/make/")
    first = test_copies.find_copy(study)
    cast.begin(test_stages.open_copy(study).study)
    assert b"1 person, their answers" in as_superuser.get(f"{here}copy/renew/").content
    assert test_copies.find_copy(study) == first
    as_superuser.post(f"{here}copy/renew/")
    assert test_copies.find_copy(study) != first
    as_superuser.post(f"{here}copy/delete/")
    assert test_copies.copy_of(study) is None


def test_a_full_copy_says_what_to_do(as_superuser: Client) -> None:
    study = cast.study(stages=[{"sittings": 2}])
    for _person in range(2):
        cast.walk(cast.begin(test_stages.open_copy(study).study))
    said = as_superuser.post(f"/admin/survey/study/{study.pk}/try/").content.decode()
    assert "all places of stage 1 of the test copy are taken: renew the test copy" in said


def test_the_page_of_a_copy_says_what_it_is_and_leads_back(as_superuser: Client) -> None:
    study = cast.study()
    copy = test_stages.open_copy(study).study
    page = as_superuser.get(f"/admin/survey/study/{copy.pk}/change/").content.decode()
    assert "This is the test copy of" in page and f"/admin/survey/study/{study.pk}/try/" in page
    assert f"/admin/survey/study/{copy.pk}/amend/" not in page
    assert as_superuser.get(f"/admin/survey/study/{copy.pk}/try/").context["study"] == study


def test_lists_are_of_studies_unless_a_copy_is_asked_for(as_superuser: Client) -> None:
    study = cast.open_study()
    copy = test_stages.open_copy(study).study
    cast.walk(cast.begin(copy))
    for name in ("study", "sitting", "assignment", "respondent", "stage", "slot", "item", "booklet"):
        address = f"/admin/survey/{name}/"
        shown = as_superuser.get(address).context["cl"].queryset
        owners = {str(one) for one in shown.values_list("slug" if name == "study" else _path(name), flat=True)}
        assert copy.slug not in owners, name
        only = {"copies": "only"} if name == "study" else {"study": copy.slug}
        assert as_superuser.get(address, only).context["cl"].queryset.exists(), name


def _path(name: str) -> str:
    ways = {"sitting": "stage__study__slug", "assignment": "slot__stage__study__slug", "slot": "stage__study__slug"}
    return {**ways, "booklet": "stage__study__slug"}.get(name, "study__slug")


def test_the_api_lists_copies_where_they_are_asked_for(as_superuser: Client) -> None:
    copy = test_copies.make_copy(cast.study())
    here = "/api/v1/studies/"
    assert [one["slug"] for one in as_superuser.get(here).json()] == ["cast"]
    assert [one["slug"] for one in as_superuser.get(here, {"test_copies": "true"}).json()] == [copy.slug]
    assert as_superuser.get(here, {"test_copies": "maybe"}).status_code == 400
    assert as_superuser.get(f"{here}{copy.slug}/stages/").status_code == 200
