"""The pages of jobs: asked for, followed, cancelled and downloaded by who asked, alone."""

import io
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

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
