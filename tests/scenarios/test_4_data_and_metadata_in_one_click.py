"""4. The data with all that describes it, asked for by one button and saved as one file."""

import io
import json
import zipfile

import pytest
from django.test import Client

from survey.models import Job
from survey.services.base import jobs
from tests import cast

from .pages import read, send, study_page

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


def test_one_button_makes_a_package_that_describes_itself(browser_of: Client) -> None:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    ask = f"/admin/survey/job/ask/{study.pk}/package/"
    assert ask in read(browser_of, study_page(study))
    send(browser_of, ask, author="A. Researcher", licence="https://creativecommons.org/licenses/by/4.0/")
    job = Job.objects.get(kind="package")
    assert "package" in read(browser_of, study_page(study)), "the study page says that a worker makes it"
    assert jobs.run(job.pk)
    job.refresh_from_db()
    (name,) = (file["name"] for file in job.files if file["name"].endswith(".zip"))
    response = browser_of.post(f"/admin/survey/job/{job.pk}/files/{name}")
    with zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))) as archive:  # type: ignore[attr-defined]
        names = archive.namelist()
        described = json.loads(archive.read(next(name for name in names if name.endswith("dataset_description.json"))))
    assert described["name"] and any("answers" in name for name in names)
    for wanted in ("croissant.json", "CHANGES", "README"):
        assert any(wanted in name for name in names), wanted
