"""Jobs: asked once, done once, cancelled, fetched by who asked, and deleted when they are old."""

import errno
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import F
from django.utils import timezone

from predictors.errors import Stopped
from survey.contracts.reports import Argument
from survey.exceptions import HunchError, NotFound, StateRefused
from survey.models import AuditEntry, Job, Study, StudyMembership
from survey.services.base import files, job_kinds, jobs, leases
from survey.services.base.job_kinds import JobKind, Work
from survey.services.base.rights import Right
from survey.services.sittings.withdrawal import withdraw
from tests import cast

pytestmark = pytest.mark.django_db

WORDS = Argument("word", "a word to write", required=True, choices=lambda study: ("left", "right"))


def written(work: Work) -> Mapping[str, Any]:
    work.progress(1, 2, "writing")
    (work.folder / "word.txt").write_text(work.arguments.one("word"))
    return {"letters": len(work.arguments.one("word"))}


WRITE = JobKind("write", "Word", "Writes a word.", Right.EXPORT, written, arguments=(WORDS,))


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    """One kind, and a storage of this test alone."""
    use(monkeypatch, WRITE)
    settings.HUNCH_VAR = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "files")},
        },
    }


def use(monkeypatch: pytest.MonkeyPatch, kind: JobKind) -> None:
    monkeypatch.setattr(jobs, "find_kind", lambda name: kind)


def analyst(study: Study, name: str = "ana") -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    StudyMembership.objects.create(study=study, user=user, role="analyst")
    return user


@pytest.fixture
def study() -> Study:
    return cast.small_study()


@pytest.fixture
def user(study: Study) -> User:
    return analyst(study)


def again(job: Job) -> Job:
    return Job.objects.select_related("study", "asked_by").get(pk=job.pk)


def asked(study: Study, by: Any, word: str = "left") -> Job:
    return jobs.ask(study, "write", {"word": [word]}, by=by)[0]


def done(study: Study, by: Any) -> Job:
    job = asked(study, by)
    assert jobs.run(job.pk)
    return again(job)


def content(job: Job, name: str = "word.txt") -> bytes:
    with jobs.opened(job, name) as file:
        return file.read()


def test_it_is_done_once_and_its_file_can_be_had(study: Study, user: User) -> None:
    job = done(study, user)
    assert (job.state, job.result) == ("done", {"letters": 4})
    file = jobs.file_of(job, "word.txt", by=user)
    assert file["bytes"] == 4 and content(job) == b"left"
    assert not jobs.run(job.pk)  # Its message came twice.
    assert again(job).attempt == 1


def test_who_asks_twice_while_it_is_not_over_gets_the_same_job(study: Study, user: User) -> None:
    first, is_new = jobs.ask(study, "write", {"word": ["left"]}, by=user)
    assert is_new
    assert jobs.ask(study, "write", {"word": ["left"]}, by=user) == (first, False)
    assert asked(study, user, "right") != first and asked(study, analyst(study, "ben")) != first
    jobs.run(first.pk)
    assert asked(study, user) != first  # A later question is about later answers.
    assert AuditEntry.objects.filter(action="ask_job").count() == 4


def test_a_wrong_argument_makes_no_row(study: Study, user: User) -> None:
    for arguments, words in (
        ({}, "there are: left, right"),
        ({"word": ["up"]}, "'up' cannot be chosen"),
        ({"word": ["left", "right"]}, "give it once"),
        ({"word": ["left"], "size": ["2"]}, "no such argument"),
    ):
        with pytest.raises(HunchError, match=words):
            jobs.ask(study, "write", arguments, by=user)
    assert not Job.objects.exists()


def test_who_lacks_the_right_cannot_ask(study: Study) -> None:
    with pytest.raises(jobs.NotAllowed):
        asked(study, User.objects.create_user("nobody"))


def test_a_person_has_a_few_at_once(study: Study, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MAX_AT_ONCE", 1)
    asked(study, user)
    with pytest.raises(StateRefused, match="not over yet"):
        asked(study, user, "right")


def test_the_work_is_done_again_after_its_worker_died(
    study: Study, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker is killed when it has stored its file: no exception, no end."""
    job = asked(study, user)
    dies = True

    def killed(self: leases.Hold[Job], state: str, **changes: Any) -> bool:
        if dies:
            raise SystemExit
        return leases.Hold.end(self, state, **changes)

    monkeypatch.setattr(jobs.JobHold, "end", killed)
    with pytest.raises(SystemExit):
        jobs.run(job.pk)
    assert again(job).state == "running" and jobs.due_jobs() == []
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert jobs.due_jobs() == [job]
    dies = False
    assert jobs.run(job.pk)
    assert content(again(job)) == b"left" and Job.objects.count() == 1
    jobs.expire()
    assert files.folders_at(job.place) == ["2"]  # What the first one had stored is gone.


def test_it_fails_when_its_tries_are_used_up(study: Study, user: User) -> None:
    job = asked(study, user)
    Job.objects.filter(pk=job.pk).update(
        state="running", tries_left=0, attempt=F("attempt") + 3, lease_until=timezone.now() - timedelta(seconds=1)
    )
    assert not jobs.run(job.pk)
    assert jobs.sweep() == 1
    assert again(job).state == "failed" and "ask again" in again(job).error


def test_one_that_is_cancelled_stops_at_its_next_heartbeat(
    study: Study, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancelled_meanwhile(work: Work) -> Mapping[str, Any]:
        assert jobs.cancel(Job.objects.get(), by=user)
        work.progress(2, 2, "half")
        raise AssertionError("it must have stopped")

    use(monkeypatch, replace(WRITE, make=cancelled_meanwhile))
    job = asked(study, user)
    assert not jobs.run(job.pk)
    assert again(job).state == "cancelled" and not jobs.cancel(again(job))
    assert files.folders_at(job.place) == []
    with pytest.raises(StateRefused, match="cancelled"):
        jobs.file_of(again(job), "word.txt", by=user)


def test_a_queued_one_that_is_cancelled_never_begins(study: Study, user: User) -> None:
    job = asked(study, user)
    jobs.cancel(job, by=user)
    assert not jobs.run(job.pk) and jobs.due_jobs() == []


def test_a_claim_that_was_lost_changes_nothing(study: Study, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def outrun(work: Work) -> Mapping[str, Any]:
        Job.objects.update(attempt=F("attempt") + 1)
        return {"letters": 99}

    use(monkeypatch, replace(WRITE, make=outrun))
    job = asked(study, user)
    assert not jobs.run(job.pk)
    assert again(job).result == {} and again(job).state == "running"


def test_a_full_disk_is_said_and_the_work_goes_on_by_itself(
    study: Study, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = asked(study, user)
    with monkeypatch.context() as full:
        full.setattr(files, "full_folder", lambda: Path("/full"))
        assert not jobs.run(job.pk)
    assert again(job).state == "queued" and "are free in /full" in again(job).error
    assert jobs.run(job.pk) and again(job).error == ""


def test_a_disk_that_is_full_in_the_middle_costs_a_try(
    study: Study, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(work: Work) -> Mapping[str, Any]:
        raise OSError(errno.ENOSPC, "No space left on device")

    use(monkeypatch, replace(WRITE, make=full))
    job = asked(study, user)
    jobs.run(job.pk)
    assert (again(job).state, again(job).tries_left) == ("queued", 2) and "No space left" in again(job).error
    jobs.run(job.pk)
    jobs.run(job.pk)
    assert again(job).state == "failed" and "make room" in again(job).error


def test_an_error_is_said_in_words(study: Study, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(work: Work) -> Mapping[str, Any]:
        raise StateRefused("there is no stage yet")

    use(monkeypatch, replace(WRITE, make=refused))
    job = asked(study, user)
    assert not jobs.run(job.pk)
    assert (again(job).state, again(job).error) == ("failed", "there is no stage yet")


def test_who_lost_the_right_gets_nothing(study: Study, user: User) -> None:
    waiting, finished = asked(study, user, "right"), done(study, user)
    StudyMembership.objects.filter(user=user).update(role="viewer")
    fresh = User.objects.get(pk=user.pk)
    assert not jobs.run(waiting.pk)
    assert again(waiting).state == "failed" and "right to export" in again(waiting).error
    with pytest.raises(jobs.NotAllowed):
        jobs.file_of(finished, "word.txt", by=fresh)


def test_only_who_asked_gets_the_files(study: Study, user: User) -> None:
    job = done(study, user)
    other = analyst(study, "ben")
    assert list(jobs.jobs_of(other)) == [] and list(jobs.jobs_of(user)) == [job]
    with pytest.raises(NotFound):
        jobs.find_job(job.pk, other)
    boss = User.objects.create_superuser("boss")
    assert list(jobs.jobs_of(boss)) == [job]
    with pytest.raises(NotFound, match="somebody else"):
        jobs.file_of(job, "word.txt", by=boss)


def test_old_files_are_deleted(study: Study, user: User) -> None:
    job = done(study, user)
    later = timezone.now() + timedelta(days=8)
    assert jobs.expire() == 0 and content(job) == b"left"
    assert jobs.expire(now=later) == 1
    assert files.folders_at("jobs") == []
    with pytest.raises(jobs.JobGone):
        jobs.file_of(again(job), "word.txt", by=user)
    jobs.expire(now=timezone.now() + timedelta(days=100))
    assert not Job.objects.exists()


def test_files_of_no_job_are_deleted(study: Study, user: User) -> None:
    job = done(study, user)
    Job.objects.all().delete()
    assert files.folders_at("jobs") == [job.key]
    jobs.expire()
    assert files.folders_at("jobs") == []


def test_a_file_that_is_gone_from_the_storage_is_said(study: Study, user: User) -> None:
    job = done(study, user)
    files.delete_folder(f"{job.place}/{job.attempt}")
    with pytest.raises(jobs.JobGone, match="ask for it again"):
        content(job)


@pytest.mark.slow
def test_a_withdrawal_ends_results_and_work_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.open_stage().study
    visitor, someone = cast.Visitor(study).finish(), analyst(study)
    finished = done(study, someone)

    def withdrawn_meanwhile(work: Work) -> Mapping[str, Any]:
        withdraw(respondent=visitor.sitting.respondent, now=timezone.now())
        return written(work)

    use(monkeypatch, replace(WRITE, make=withdrawn_meanwhile))
    running = asked(study, someone, "right")
    assert not jobs.run(running.pk)
    assert again(running).state == "queued"
    with pytest.raises(jobs.JobGone):
        jobs.file_of(again(finished), "word.txt", by=someone)
    jobs.expire()
    assert files.folders_at("jobs") == []


def test_the_time_left_follows_the_pace(study: Study, user: User) -> None:
    now = timezone.now()
    job = Job(state="running", started_at=now - timedelta(seconds=30), progress_done=1, progress_total=4)
    assert job.time_left(now) == timedelta(seconds=90) and job.percent == 25
    assert Job(state="running", started_at=now).time_left(now) is None


def test_every_kind_can_be_loaded() -> None:
    assert [kind.name for kind in job_kinds.all_kinds()] == list(job_kinds.KINDS)


def test_a_stopped_claim_says_so(study: Study, user: User) -> None:
    job = asked(study, user)
    row = leases.claim(Job.objects.all(), job.pk)
    assert row is not None
    jobs.cancel(job)
    with pytest.raises(Stopped):
        jobs.JobHold(row).progress(1, 1, "too late")
