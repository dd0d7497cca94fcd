"""The page on which a study is tried out, and test copies in the admin's lists."""

import re
import zipfile
from typing import Any

import pytest
from django.contrib.admin import SimpleListFilter
from django.test import Client
from django.utils import timezone

from survey.models import Job, Study
from survey.services.base import jobs
from survey.services.base.groups import ensure_researchers_group
from survey.services.stages import test_stages
from survey.services.studies import test_copies
from tests import cast
from tests.frontend import pages
from tests.survey.printed_screens.test_screens import SHORT, TWO_LANGUAGES

from .conftest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MOOD = {"factor": "mood", "levels": ["calm", "hurried"]}


def address_in(html: str) -> str:
    match = re.search(r'href="http://testserver(/s/[^"]+)"', html)
    assert match is not None, html
    return match[1].replace("&amp;", "&")


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


@pytest.mark.thorough
def test_lists_are_of_studies_unless_a_copy_is_asked_for(as_superuser: Client) -> None:
    study = cast.open_study()
    copy = test_stages.open_copy(study).study
    cast.walk(cast.begin(copy))
    for name in ("study", "sitting", "assignment", "respondent", "stage", "slot", "item", "booklet"):
        address = f"/admin/survey/{name}/"
        queryset = as_superuser.get(address).context["cl"].queryset
        owners = {str(owner) for owner in queryset.values_list("slug" if name == "study" else _path(name), flat=True)}
        assert copy.slug not in owners, name
        only = {"copies": "only"} if name == "study" else {"study": copy.slug}
        assert as_superuser.get(address, only).context["cl"].queryset.exists(), name


def test_filters_leave_out_copies_and_other_studies(as_superuser: Client) -> None:
    cast.small_study("other")
    copy = test_copies.make_copy(cast.study())

    def listed(model: str, **query: str) -> tuple[set[str], dict[str, list[str]]]:
        cl = as_superuser.get(f"/admin/survey/{model}/", query).context["cl"]
        filters = [spec for spec in cl.filter_specs if isinstance(spec, SimpleListFilter)]
        offered = {spec.parameter_name: [label for _key, label in spec.lookup_choices] for spec in filters}
        return {str(row) for row in cl.queryset}, offered

    assert listed("study")[0] == {"cast", "other"} and listed("study", copies="only")[0] == {copy.slug}
    rows, offered = listed("stage")
    assert rows == {"cast stage 1", "cast stage 2", "other stage 1"} and offered["study"] == ["cast", "other"]
    assert listed("stage", study="other")[0] == {"other stage 1"}
    rows, offered = listed("stage", study=copy.slug)
    assert rows == {f"{copy.slug} stage 1", f"{copy.slug} stage 2"} and offered["study"] == ["cast", copy.slug, "other"]
    assert listed("slot")[1]["stage"] == ["cast stage 1", "cast stage 2", "other stage 1"]
    assert listed("slot", study="other")[1]["stage"] == ["other stage 1"]


def _path(name: str) -> str:
    ways = {"sitting": "stage__study__slug", "assignment": "slot__stage__study__slug", "slot": "stage__study__slug"}
    return {**ways, "booklet": "stage__study__slug"}.get(name, "study__slug")


def test_the_api_lists_copies_where_they_are_asked_for(as_superuser: Client) -> None:
    copy = test_copies.make_copy(cast.study())
    here = "/api/v1/studies/"
    assert [study["slug"] for study in as_superuser.get(here).json()] == ["cast"]
    assert [study["slug"] for study in as_superuser.get(here, {"test_copies": "true"}).json()] == [copy.slug]
    assert as_superuser.get(here, {"test_copies": "maybe"}).status_code == 400
    assert as_superuser.get(f"{here}{copy.slug}/stages/").status_code == 200


def test_the_page_links_to_what_a_dry_run_has_filled_and_says_what_it_could_not(as_superuser: Client) -> None:
    study = cast.study()
    copy = test_copies.make_copy(study)
    filled = [
        {"kind": "estimates", "name": "", "title": "Estimates", "why": ""},
        {"kind": "report", "name": "paper", "title": "The paper", "why": ""},
        {"kind": "leaderboard", "name": "", "title": "Leaderboard", "why": "no predictor was trained"},
    ]
    job, _is_new = jobs.ask(study, "dry_run", {"people": ["3"]})
    result = {"copy": copy.pk, "filled": filled, "notes": ["stage 2 was drawn uniformly"]}
    Job.objects.filter(pk=job.pk).update(state="done", result=result, expires_at=timezone.now())
    here = f"/admin/survey/study/{study.pk}/try/"
    page = as_superuser.get(here).content.decode()
    assert f'<a href="/admin/survey/study/{copy.pk}/estimates/">Estimates</a>' in page
    assert f'<a href="/admin/survey/study/{copy.pk}/reports/paper/">The paper</a>' in page
    assert "1 of 3 could not be filled" in page and "no: no predictor was trained" in page
    assert "Stage 2 was drawn uniformly" in page
    test_copies.renew_copy(study)  # Its pages show another copy's figures now.
    assert f"/admin/survey/study/{copy.pk}/" not in as_superuser.get(here).content.decode()


def test_a_dry_run_is_for_who_may_run_the_study_and_not_of_its_copy(as_superuser: Client, onlooker: Any) -> None:
    study = cast.study()
    onlooker.groups.add(ensure_researchers_group())
    cast.join(onlooker, study, "analyst", may_spend=False)
    assert client_of(onlooker).post(f"/admin/survey/job/ask/{study.pk}/dry_run/").status_code == 403
    copy = test_copies.make_copy(study)
    said = as_superuser.post(f"/admin/survey/job/ask/{copy.pk}/dry_run/").content.decode()
    assert "is the test copy of a study and has no dry run of its own" in said
    wrong = as_superuser.post(f"/admin/survey/job/ask/{study.pk}/dry_run/", {"people": "-3"}).content.decode()
    assert "is not a whole number of 1 or more" in wrong
    assert not Job.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_the_screens_are_asked_for_and_fetched_on_the_page(as_superuser: Client) -> None:
    study = cast.study(blocks=SHORT["blocks"], sitting=SHORT["sitting"])
    as_superuser.post(f"/admin/survey/job/ask/{study.pk}/screens/")
    job = Job.objects.get()
    assert jobs.run(job.pk)
    page = as_superuser.get(f"/admin/survey/study/{study.pk}/try/").content.decode()
    job.refresh_from_db()
    assert job.result["screens"] > 3 and "cast-screens.zip" in page
    has_pdf = "cast-screens-en.pdf" in page
    assert has_pdf != ("Without a PDF: there is no Chromium" in page)
    with jobs.opened(job, "cast-screens.zip") as file, zipfile.ZipFile(file) as archive:
        assert {"index.html", "en/all.html", "hunch.css"} <= set(archive.namelist())
    if has_pdf:
        with jobs.opened(job, "cast-screens-en.pdf") as file:
            assert file.read(5) == b"%PDF-"
