"""Jobs: work that somebody asks for and a worker does. Asking, doing, cancelling, fetching, and deleting what is old.

A job's files lie in the storage under a random name of their own and a number for each attempt, so that a worker whose
claim is lost never touches what another one wrote.
"""

import logging
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from predictors.errors import Stopped
from survey.contracts.reports import ReportArguments
from survey.exceptions import HunchError, NotFound, StateRefused, StorageAway, StorageRefused
from survey.models import Job, Study
from survey.storage.database import forget_broken_connection
from survey.storage.outages import is_outage

from . import auditing, files, leases, rights
from .hashing import digest
from .job_kinds import JobKind, Work, find_kind
from .rights import Right

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 10  # jobs of one person that are not over
LONGEST = timedelta(hours=6)  # No job takes so long: its task ends before.
FORGET_AFTER = timedelta(days=90)  # Then the row of a job goes too; the audit keeps that there was one.
MEGABYTE = 1024 * 1024


class JobGone(HunchError):
    """The files of a job are no longer kept."""

    code = "job_gone"
    status = 410


class NotAllowed(HunchError):
    """Who asked may not have this any more."""

    code = "permission_denied"
    status = 403


class JobHold(leases.ReportingHold[Job]):
    """One worker's hold on a job."""

    def progress(self, done: int, total: int, words: str) -> None:
        """
        Raises:
            Stopped: the job was cancelled, or another worker has it.
        """
        if not self.heartbeat(done, total, words):
            raise Stopped

    def fail(self, error: str) -> None:
        self.end(Job.State.FAILED, error=error[:4000], progress_text="")


# Asking


def ask(
    study: Study, kind: str, given_arguments: Mapping[str, Sequence[str]], *, by: Any = None, via: str = "command"
) -> tuple[Job, bool]:
    """The job for this question, and whether it is new. Who asks the same again while it is not over gets the same job.

    Args:
        given: texts by argument; empty ones count as not given.
        by: the user; None: a command, which has all rights.

    Raises:
        NotFound: there is no such kind.
        NotAllowed: the user lacks the kind's right in the study.
        HunchError: an argument cannot be used; StateRefused: too many jobs of this person are not over.
    """
    job_kind = find_kind(kind)
    _refuse_who_may_not(by, job_kind, study)
    arguments = {name: [*texts] for name, texts in job_kind.checked(study, given_arguments).items()}
    asked = digest([kind, arguments, None if by is None else by.pk])
    waiting = Job.objects.filter(asked_by=by).waiting()
    if (same := waiting.filter(study=study, asked_sha256=asked).first()) is not None:
        return same, False
    if by is not None and waiting.count() >= MAX_AT_ONCE:
        raise StateRefused(f"{MAX_AT_ONCE} of your jobs are not over yet: wait for one, or cancel one")
    try:
        with transaction.atomic():
            job = Job.objects.create(study=study, kind=kind, arguments=arguments, asked_by=by, asked_sha256=asked)
            auditing.record("ask_job", study, by=by, via=via, kind=kind, job=job.pk, arguments=arguments)
    except IntegrityError:
        # Somebody else's browser tab was faster, in the moment between.
        return Job.objects.waiting().get(study=study, asked_sha256=asked), False
    return job, True


def jobs_of(user: Any) -> QuerySet[Job]:
    """The jobs that a user sees: their own, in studies that they still see. Superusers see everybody's."""
    rows = rights.visible(user, Job.objects.select_related("study", "asked_by"), Right.SEE)
    return rows if user.is_superuser else rows.filter(asked_by=user)


def find_job(number: int, user: Any = None) -> Job:
    """
    Args:
        user: who must see it; None: a command, which sees all.

    Raises:
        NotFound: there is none.
    """
    rows = Job.objects.select_related("study", "asked_by") if user is None else jobs_of(user)
    job = rows.filter(pk=number).first()
    if job is None:
        raise NotFound(f"there is no job {number}")
    return job


def cancel(job: Job, *, by: Any = None, via: str = "command") -> bool:
    """End a job that is not over. Its worker stops when it next says how far it is. False if it was over."""
    with transaction.atomic():
        changed = (
            Job.objects.waiting()
            .filter(pk=job.pk)
            .update(state=Job.State.CANCELLED, lease_until=None, finished_at=timezone.now(), progress_text="", error="")
        )
        if changed:
            auditing.record("cancel_job", job.study, by=by, via=via, kind=job.kind, job=job.pk)
    return bool(changed)


def _refuse_who_may_not(by: Any, kind: JobKind, study: Study) -> None:
    """
    Raises:
        NotAllowed: the user lacks the kind's right in the study, or the kind forbids it. A command may all.
    """
    if by is None:
        return
    if not rights.may(by, kind.right, study.pk):
        raise NotAllowed(f"{kind.title}: {_lacks(kind)}")
    if why := kind.forbids(study, by):
        raise NotAllowed(f"{kind.title}: {why}")


def _lacks(kind: JobKind) -> str:
    return f"your role in this study, or your account, does not give the right to {kind.right.replace('_', ' ')}"


# Doing


def due_jobs(*, now: datetime | None = None) -> list[Job]:
    return leases.due(Job.objects.filter(tries_left__gt=0), now=now)


def queue_of(job: Job) -> str:
    try:
        return find_kind(job.kind).queue
    except NotFound:  # An older version asked; the worker says so.
        return JobKind.queue


def run(job_id: int) -> bool:
    """Do a job to its end. False if there was nothing to do: it is over, another worker has it, or it waits."""
    if words := _why_it_waits():
        Job.objects.filter(pk=job_id, state=Job.State.QUEUED).update(error=f"{leases.WAITS}{words}"[:4000])
        return False
    row = leases.claim(
        Job.objects.filter(tries_left__gt=0),
        job_id,
        tries_left=F("tries_left") - 1,
        started_at=timezone.now(),
        progress_done=0,
        progress_total=0,
        progress_text="",
        error="",
    )
    if row is None:
        return False
    hold = JobHold(row)
    try:
        with hold.kept_alive(), _folder(row) as folder:
            _make(hold, folder)
    except Stopped:
        logger.info("job %s: it was cancelled, or another worker has it", row.pk)
        _delete(row.place_of(""))
        return False
    except Exception as exc:
        _delete(row.place_of(""))
        _end_with(hold, exc)
        return False
    return True


def _why_it_waits() -> str:
    if (full := files.full_folder()) is not None:
        return f"less than {files.SPACE // MEGABYTE} MB are free in {full}; make room, then it goes on by itself"
    try:
        files.check_storage()
    except (StorageAway, StorageRefused) as exc:
        return f"{exc}; then it goes on by itself"
    return ""


@contextmanager
def _folder(job: Job) -> Iterator[Path]:
    """A folder to write to. What workers that were killed have left is deleted first."""
    parent = Path(settings.HUNCH_VAR) / "jobs"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in parent.iterdir():
        with suppress(OSError):
            if left.name.startswith(job.key) or time.time() - left.stat().st_mtime > LONGEST.total_seconds():
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=f"{job.key}-{job.attempt}-", dir=parent) as folder:
        yield Path(folder)


def _make(hold: JobHold, folder: Path) -> None:
    job = hold.row
    kind = find_kind(job.kind)
    _refuse_who_may_not(job.asked_by, kind, job.study)
    arguments = ReportArguments({name: tuple(texts) for name, texts in job.arguments.items()})
    result = kind.make(Work(job.study, arguments, folder, hold.progress, job.asked_by))
    made = []
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    for number, path in enumerate(paths):
        hold.progress(number, len(paths), f"storing {path.name}")
        sha256 = files.put(job.place_of(path.name), path)
        made.append({"name": path.name, "bytes": path.stat().st_size, "sha256": sha256})
    now = timezone.now()
    changes = {"files": made, "result": dict(result), "expires_at": now + kind.keeps, "error": "", "progress_text": ""}
    if not hold.end(Job.State.DONE, **changes):
        raise Stopped


def _end_with(hold: JobHold, exc: Exception) -> None:
    """Queue the job again where time may repair what went wrong; otherwise it fails, and says why."""
    job = hold.row
    if is_outage(exc) and job.tries_left:
        logger.warning("job %s (%s): the database or the disk cannot be used: %s", job.pk, job, exc)
        forget_broken_connection()
        hold.give_back(sent_at=timezone.now(), error=f"it is tried again after: {exc}"[:4000])
    elif is_outage(exc):
        forget_broken_connection()
        hold.fail(f"the database or the disk could not be used: {exc}; make room, then ask again")
    elif isinstance(exc, HunchError):
        hold.fail(exc.message)
    else:
        logger.error("job %s (%s) failed", job.pk, job, exc_info=exc)
        hold.fail(f"it stopped because of a mistake in Hunch or in the study's data ({type(exc).__name__}: {exc})")


def sweep(*, now: datetime | None = None) -> int:
    """Mark jobs as failed whose workers died too often; return how many."""
    now = now or timezone.now()
    return Job.objects.filter(Job.is_free(now), tries_left=0).update(
        state=Job.State.FAILED,
        error="its worker died or lost the database every time; see the log of the worker, then ask again",
        finished_at=now,
        lease_until=None,
    )


# Fetching


def file_of(job: Job, name: str, *, by: Any = None) -> Mapping[str, Any]:
    """A result file's name, bytes and sha256, for who may have it now.

    Args:
        by: the user; None: a command.

    Raises:
        NotFound: the job has no such file, or somebody else asked for it.
        NotAllowed: the user has lost the right that the kind needs.
        JobGone: the files are no longer kept.
        StateRefused: the job is not done.
    """
    if by is not None and job.asked_by_id != by.pk:
        raise NotFound(f"job {job.pk} was asked for by somebody else, who alone gets its files; ask for one yourself")
    kind = find_kind(job.kind)
    if by is not None and not rights.may(by, kind.right, job.study_id):
        raise NotAllowed(f"{kind.title}: {_lacks(kind)}")
    if job.state == Job.State.EXPIRED or (job.expires_at is not None and job.expires_at <= timezone.now()):
        raise JobGone(f"job {job.pk}: its files are no longer kept; ask for it again")
    if job.state != Job.State.DONE:
        raise StateRefused(f"job {job.pk} is {job.get_state_display()}; its files come when it is done")
    file = job.file_named(name)
    if file is None:
        there_are = ", ".join(file["name"] for file in job.files) or "none"
        raise NotFound(f"job {job.pk} has no file {name!r}; there are: {there_are}")
    return file


@contextmanager
def opened(job: Job, name: str) -> Iterator[IO[bytes]]:
    """The content of a result file. Ask `file_of` first.

    Raises:
        JobGone: it is not in the storage any more.
    """
    try:
        with files.opened_at(job.place_of(name)) as file:
            yield file
    except FileNotFoundError as exc:
        raise JobGone(f"job {job.pk}: {name} is not in the storage any more; ask for it again") from exc


def record_download(job: Job, name: str, *, by: Any, via: str, span: str = "") -> None:
    """`span`: which bytes, where a download goes on that had stopped."""
    further = {"span": span} if span else {}
    auditing.record("download_job", job.study, by=by, via=via, kind=job.kind, job=job.pk, file=name, **further)


# Deleting


def expire(*, now: datetime | None = None) -> int:
    """Delete the files that are no longer kept, and those that no job has; return how many jobs expired."""
    now = now or timezone.now()
    old = Job.objects.filter(state=Job.State.DONE, expires_at__lte=now)
    count = old.update(state=Job.State.EXPIRED, files=[], result={})
    over = Job.objects.exclude(state__in=[*Job.WAITING, Job.State.DONE])
    over.filter(created_at__lte=now - FORGET_AFTER).delete()
    for key in files.folders_at("jobs"):
        for attempt in files.folders_at(f"jobs/{key}"):
            # Read after the listing: what a newer claim writes is not in it.
            job = Job.objects.filter(key=key).first()
            if job is None or job.state not in (Job.State.RUNNING, Job.State.DONE) or attempt != str(job.attempt):
                _delete(f"jobs/{key}/{attempt}")
        files.delete_empty(f"jobs/{key}")
    return count


def _delete(place: str) -> None:
    """What cannot be deleted now is found by the next `expire`."""
    try:
        files.delete_folder(place.rstrip("/"))
    except (OSError, StorageAway, StorageRefused) as exc:
        logger.warning("%s cannot be deleted now: %s", place, exc)
