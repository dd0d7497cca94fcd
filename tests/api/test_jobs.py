"""Jobs over the API: the same as on the pages."""

import hashlib

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from survey.api import jobs as jobs_api
from survey.models import ApiToken, Job, Study
from survey.services.base import jobs
from tests import cast
from tests.api.documented import call

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def study() -> Study:
    return cast.open_study()


@pytest.fixture
def runner(study: Study) -> dict[str, str]:
    return {"Authorization": f"Token {token('runner')}"}


def token(name: str, scope: str = "run") -> str:
    user, is_new = User.objects.get_or_create(username=name)
    if is_new:
        user.user_permissions.add(Permission.objects.get(codename="export_study"))
        cast.join_all(user)
    return ApiToken.issue(user=user, scope=scope)[1]


def test_a_job_is_asked_for_followed_and_downloaded(study: Study, runner: dict[str, str]) -> None:
    path = {"slug": study.slug}
    kinds = call("job_kinds", path=path, headers=runner).json()
    assert "export" in {kind["kind"] for kind in kinds}
    asked = call("job_ask", path=path, headers=runner, body={"kind": "export"})
    assert asked.status_code == 202 and asked.json()["state"] == "queued"
    again = call("job_ask", path=path, headers=runner, body={"kind": "export", "arguments": {}}).json()
    assert again["number"] == asked.json()["number"]
    assert jobs.run(again["number"])
    done = call("job", path={"number": again["number"]}, headers=runner).json()
    assert (done["state"], done["percent"]) == ("done", 100)
    (file,) = done["files"]
    place = {"number": done["number"], "name": file["name"]}
    content = call("job_file", path=place, headers=runner).content
    assert hashlib.sha256(content).hexdigest() == file["sha256"]
    rest = call("job_file", path=place, headers={**runner, "Range": "bytes=10-"})
    assert rest.status_code == 206 and content[:10] + rest.content == content
    assert [job["number"] for job in call("jobs", path=path, headers=runner).json()] == [done["number"]]


def test_a_job_is_cancelled(study: Study, runner: dict[str, str]) -> None:
    job = call("job_ask", path={"slug": study.slug}, headers=runner, body={"kind": "export"}).json()
    assert call("job_cancel", path={"number": job["number"]}, headers=runner).json()["state"] == "cancelled"
    gone = call("job_file", path={"number": job["number"], "name": "a.zip"}, headers=runner)
    assert gone.status_code == 409


def test_a_job_of_another_is_not_there(study: Study, runner: dict[str, str]) -> None:
    job = call("job_ask", path={"slug": study.slug}, headers=runner, body={"kind": "export"}).json()
    other = {"Authorization": f"Token {token('other')}"}
    assert call("job", path={"number": job["number"]}, headers=other).status_code == 404
    assert call("job_cancel", path={"number": job["number"]}, headers=other).status_code == 404
    assert Job.objects.get().state == "queued"


def test_the_same_question_in_another_study_is_another_job(study: Study, runner: dict[str, str]) -> None:
    other = cast.open_study(slug="other")
    cast.join(User.objects.get(username="runner"), other)
    asked = {
        asked_study.slug: call(
            "job_ask", path={"slug": asked_study.slug}, headers=runner, body={"kind": "export"}
        ).json()["number"]
        for asked_study in (study, other)
    }
    assert len(set(asked.values())) == 2
    for slug, number in asked.items():
        (job,) = call("jobs", path={"slug": slug}, headers=runner).json()
        assert (job["number"], job["study"]) == (number, slug)


def test_a_token_that_may_only_read_asks_for_nothing(study: Study) -> None:
    reader = {"Authorization": f"Token {token('reader', 'read')}"}
    assert call("job_ask", path={"slug": study.slug}, headers=reader, body={"kind": "export"}).status_code == 403


def test_a_token_for_other_studies_gets_no_file(study: Study, runner: dict[str, str], client: Client) -> None:
    job = call("job_ask", path={"slug": study.slug}, headers=runner, body={"kind": "export"}).json()
    user = User.objects.get(username="runner")
    secret = ApiToken.issue(user=user, studies=[cast.small_study()])[1]
    assert call("job", path={"number": job["number"]}, headers={"Authorization": f"Token {secret}"}).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "nothing"}, 404),
        ({"kind": "export", "arguments": {"condition": ["none=here"]}}, 400),
        ({"kind": "export", "arguments": {"size": ["3"]}}, 400),
        ({"arguments": {}}, 400),
    ],
)
def test_a_wrong_question_is_refused(
    study: Study, runner: dict[str, str], body: dict[str, object], status: int
) -> None:
    response = call("job_ask", path={"slug": study.slug}, headers=runner, body=body)
    assert response.status_code == status and not Job.objects.exists()


def test_the_newest_jobs_come_first_and_only_so_many(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = {"Authorization": f"Token {token('runner')}"}
    numbers = [
        call("job_ask", path={"slug": study.slug}, headers=runner, body={"kind": kind}).json()["number"]
        for kind in ("export", "package", "screens")
    ]
    monkeypatch.setattr(jobs_api, "MAX_JOBS", 2)
    listed = call("jobs", path={"slug": study.slug}, headers=runner).json()
    assert [job["number"] for job in listed] == [numbers[2], numbers[1]]


def test_a_superuser_sees_how_far_a_job_of_another_is_and_neither_result_nor_files(study: Study) -> None:
    owner, boss = User.objects.create_user("owner"), User.objects.create_superuser("boss")
    job = Job.objects.create(
        study=study,
        kind="export",
        asked_by=owner,
        state=Job.State.DONE,
        expires_at=timezone.now(),
        files=[{"name": "a.zip", "bytes": 1, "sha256": "0" * 64}],
        result={"rows": 3},
    )
    cast.join(owner, study)
    secrets = {user: ApiToken.issue(user=user)[1] for user in (owner, boss)}
    owner.user_permissions.add(Permission.objects.get(codename="export_study"))
    theirs, seen = (
        call("job", path={"number": job.pk}, headers={"Authorization": f"Token {secrets[user]}"}).json()
        for user in (owner, boss)
    )
    assert (theirs["result"], theirs["files"][0]["url"]) == (
        {"rows": 3},
        f"http://localhost/api/v1/jobs/{job.pk}/files/a.zip",
    )
    assert (seen["state"], seen["result"], seen["files"]) == ("done", {}, [])


def test_only_kinds_that_mean_something_in_the_study_are_listed(study: Study, runner: dict[str, str]) -> None:
    kinds = {
        kind["kind"]: kind["arguments"] for kind in call("job_kinds", path={"slug": study.slug}, headers=runner).json()
    }
    assert "demographics" not in kinds and {"export", "package", "screens", "dry_run"} <= set(kinds)
    facts = {argument["name"]: argument for argument in kinds["export"]}
    assert (facts["format"]["default"], facts["format"]["choices"]) == ("csv", ["csv", "jsonl", "parquet"])
    assert (facts["format"]["many"], facts["since"]["many"], facts["since"]["choices"]) == (True, False, [])
