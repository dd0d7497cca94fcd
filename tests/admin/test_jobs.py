"""The pages of jobs: asked for, followed, cancelled and downloaded by who asked, alone."""

import io
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from survey.admin import jobs as job_pages
from survey.models import AuditEntry, Job, Study, StudyMembership
from survey.services.base import jobs
from survey.services.base.groups import ensure_researchers_group
from tests import cast
from tests.admin.conftest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def address(name: str, *args: Any) -> str:
    return reverse(f"admin:survey_job_{name}", args=args)


def member(study: Study, role: str = "analyst") -> Any:
    user = User.objects.create_user(role, is_staff=True)
    user.groups.add(ensure_researchers_group())
    cast.join(user, study, role)
    return user


@pytest.fixture
def analyst(study: Study) -> Any:
    return member(study)


def ask(client: Client, study: Study, **fields: Any) -> Job:
    response = client.post(address("ask", study.pk, "export"), fields)
    assert response.status_code == 302, response.content.decode()
    return Job.objects.latest("pk")


def finished(client: Client, study: Study) -> Job:
    job = ask(client, study)
    assert jobs.run(job.pk), Job.objects.get(pk=job.pk).error
    return Job.objects.get(pk=job.pk)


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_an_export_is_asked_for_followed_and_downloaded(study: Study, analyst: Any) -> None:
    client = client_of(analyst)
    job = ask(client, study)
    page = text(client.get(address("changelist")))
    assert "queued" in page and 'hx-trigger="every 2s"' in page and "Cancel job" in page
    jobs.run(job.pk)
    page = text(client.get(address("change", job.pk)))
    assert "hx-trigger" not in page
    name = Job.objects.get(pk=job.pk).files[0]["name"]
    response = client.get(address("file", job.pk, name))
    content = response.getvalue()
    assert "no-store" in response["Cache-Control"] and "answers.csv" in zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))[-2:] == ["ask_job", "download_job"]


def test_a_download_that_stopped_goes_on(study: Study, analyst: Any) -> None:
    client = client_of(analyst)
    job = finished(client, study)
    place = address("file", job.pk, job.files[0]["name"])
    whole = client.get(place)
    content = whole.getvalue()
    assert "span" not in AuditEntry.objects.get(action="download_job").detail
    rest = client.get(place, headers={"Range": "bytes=100-", "If-Range": whole["ETag"]})
    assert rest.status_code == 206 and content[:100] + rest.getvalue() == content
    assert rest["Content-Range"] == f"bytes 100-{len(content) - 1}/{len(content)}"
    assert client.get(place, headers={"Range": "bytes=-5"}).getvalue() == content[-5:]
    assert client.get(place, headers={"Range": "bytes=0-0"}).getvalue() == content[:1]
    assert client.get(place, headers={"Range": f"bytes={len(content)}-"}).status_code == 416
    changed = client.get(place, headers={"Range": "bytes=100-", "If-Range": '"other"'})
    assert changed.status_code == 200 and changed.getvalue() == content
    assert AuditEntry.objects.filter(action="download_job", detail__span=rest["Content-Range"]).count() == 1


def test_asking_twice_leads_to_the_same_job(study: Study, analyst: Any) -> None:
    client = client_of(analyst)
    assert ask(client, study) == ask(client, study)
    assert "asked for before" in text(client.get(address("changelist")))


def test_a_wrong_argument_is_said_on_the_form(study: Study, analyst: Any) -> None:
    response = client_of(analyst).post(address("ask", study.pk, "export"), {"condition": "framing=cold"})
    assert response.status_code == 200 and "framing=cold" in text(response) and not Job.objects.exists()


def test_the_table_alone_is_sent_to_a_page_that_is_open(study: Study, analyst: Any) -> None:
    client = client_of(analyst)
    ask(client, study)
    fragment = text(client.get(address("changelist"), headers={"HX-Request": "true"}))
    assert fragment.startswith('<div id="hunch-jobs"') and "<html" not in fragment


def test_a_job_is_cancelled(study: Study, analyst: Any) -> None:
    client = client_of(analyst)
    job = ask(client, study)
    assert client.get(address("cancel", job.pk)).status_code == 405
    assert client.post(address("cancel", job.pk)).status_code == 302
    assert Job.objects.get(pk=job.pk).state == "cancelled"


def test_nobody_else_sees_it(study: Study, analyst: Any, as_researcher: Client, as_superuser: Client) -> None:
    job = finished(client_of(analyst), study)
    place = address("file", job.pk, job.files[0]["name"])
    assert as_researcher.get(address("change", job.pk)).status_code == 404
    assert as_researcher.get(place).status_code == 404
    assert as_researcher.post(address("cancel", job.pk)).status_code == 404
    # A superuser sees that there is one, and gets no file either.
    assert job.files[0]["name"] not in text(as_superuser.get(address("changelist")))
    assert "somebody else" in text(as_superuser.get(place, follow=True))


def test_who_may_not_export_cannot_ask(study: Study) -> None:
    client = client_of(member(study, "viewer"))
    assert client.get(address("ask", study.pk, "export")).status_code == 403
    assert client.get(address("ask", study.pk, "nothing")).status_code == 404


def test_who_lost_the_role_gets_no_file(study: Study, analyst: Any) -> None:
    job = finished(client_of(analyst), study)
    place = address("file", job.pk, job.files[0]["name"])
    StudyMembership.objects.filter(user=analyst).update(role="viewer")
    assert client_of(analyst).get(place).status_code == 403
    StudyMembership.objects.filter(user=analyst).delete()
    assert client_of(analyst).get(place).status_code == 404


def test_a_file_that_expired_is_said(study: Study, analyst: Any) -> None:
    client = client_of(analyst)
    job = finished(client, study)
    Job.objects.filter(pk=job.pk).update(state="expired")
    assert "no longer kept" in text(client.get(address("file", job.pk, job.files[0]["name"]), follow=True))


def test_everybody_is_offered_what_they_may_ask_for_and_what_means_something(study: Study, superuser: Any) -> None:
    offered = {
        name: [kind.name for kind in job_pages.kinds_for(study, user)]
        for name, user in (("viewer", member(study, "viewer")), ("analyst", member(study)), ("superuser", superuser))
    }
    assert offered["viewer"] == ["screens"]
    assert offered["analyst"] == ["export", "package", "screens"]
    assert {"demographics", "dry_run"} < set(offered["superuser"])
    without_panel = cast.small_study("lab")
    assert "demographics" not in [kind.name for kind in job_pages.kinds_for(without_panel, superuser)]


def test_the_form_has_the_defaults_chosen_and_what_was_sent_where_it_is_refused(study: Study, analyst: Any) -> None:
    client = client_of(analyst)

    def chosen(response: Any) -> dict[str, list[str]]:
        return {field.argument.name: list(field.chosen) for field in response.context["fields"]}

    asked = client.get(address("ask", study.pk, "export"))
    assert chosen(asked) == {"table": [], "format": ["csv"], "condition": [], "since": []}
    sent = {"format": ["jsonl", "parquet"], "since": ["yesterday", "today"]}
    refused = client.post(address("ask", study.pk, "export"), sent)
    assert chosen(refused) == {**sent, "table": [], "condition": []}
    assert [field.argument.name for field in refused.context["fields"] if field.errors] == ["since"]


def test_the_list_is_of_ones_own_jobs_the_newest_first_page_by_page_and_by_study(
    study: Study, analyst: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "ON_A_PAGE", 2)
    other = cast.small_study("other")
    cast.join(analyst, other, "analyst")
    rows = [
        Job.objects.create(study=of, kind=kind, asked_by=analyst, asked_sha256=f"{number}")
        for number, (of, kind) in enumerate([(study, "export"), (other, "export"), (study, "package"), (study, "gone")])
    ]
    Job.objects.create(study=study, kind="export", asked_by=None, asked_sha256="of a command")
    client = client_of(analyst)

    def listed(**query: Any) -> list[Job]:
        return [line.job for line in client.get(address("changelist"), query).context["shown"]]

    assert listed() == [rows[3], rows[2]] and listed(p=2) == [rows[1], rows[0]]
    assert listed(study="other") == [rows[1]] and listed(study="cast", p=2) == [rows[0]]
    page = client.get(address("changelist"), {"study": "cast"})
    assert [line.title for line in page.context["shown"]] == ["gone", "Data package"]
    assert "?p=2&amp;study=cast" in page.content.decode()


def test_a_jobs_own_page_refreshes_its_table_alone_and_takes_nothing(study: Study, analyst: Any) -> None:
    client = client_of(analyst)
    job = ask(client, study)
    page = client.get(address("change", job.pk))
    assert page.context["title"] == f"Export of {study}" and "<html" in text(page) and "Cancel job" in text(page)
    assert "<html" not in text(client.get(address("change", job.pk), headers={"HX-Request": "true"}))
    assert client.post(address("change", job.pk)).status_code == 403
    Job.objects.filter(pk=job.pk).update(state="failed")
    assert "Cancel job" not in text(client.get(address("change", job.pk)))
    client.post(address("cancel", job.pk))
    assert Job.objects.get(pk=job.pk).state == "failed"
    assert not AuditEntry.objects.filter(action="cancel_job").exists()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (59, "less than a minute left"),
        (60, "about 2 minutes left"),
        (88 * 60 + 59, "about 89 minutes left"),
        (89 * 60, "about 2 hours left"),
        (3 * 3600, "about 3 hours left"),
    ],
)
def test_the_time_left_is_said_roughly(seconds: int, words: str) -> None:
    assert job_pages.in_words(timedelta(seconds=seconds)) == words
