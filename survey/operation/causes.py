"""What may be wrong with studies and the machine, each looked at in a few statements."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, QuerySet

from survey.contracts import panels
from survey.contracts.panels import PostingState, SubmissionStatus
from survey.figures.words import date_and_time, money
from survey.models import Alert, Booklet, JobStep, Posting, Sitting, Stage, Submission
from survey.panels.money import committed
from survey.panels.postings import paused_by_the_panel, postings_in
from survey.services.base.leases import WAITS
from survey.services.stages.waiting import why_not_begun

from . import audit_checks, site_health
from .alerting import Cause, Trouble
from .pausing import subject_of
from .studies import of_studies

MAX_ROWS = 50  # rows of a cause; more say nothing new
ENOUGH = 10  # people whose participation ended, before a share of them says anything


def failed_steps(now: datetime) -> Iterator[Trouble]:
    rows = (
        of_studies(JobStep.objects)
        .filter(state=JobStep.State.FAILED)
        .select_related("stage__study")
        .defer("result", "error")
    )
    for step in rows.order_by("-pk")[:MAX_ROWS]:
        # Not the error itself: an exception's words may hold what a person wrote.
        message = (
            f"{step} failed, and the study does not go on. Read why on the study's page, mend it, then "
            f"try it again: `hunch retry_steps {step.stage.study.slug}`."
        )
        yield Trouble(Cause.STEP_FAILED, f"step {step.pk} of {step.stage}", message, step.stage.study_id)


def full_stages(now: datetime) -> Iterator[Trouble]:
    for stage in _open_stages().filter(~_has_room())[:MAX_ROWS]:
        message = "All booklets are taken: anyone who comes now is turned away, unless somebody inside gives up. "
        message += "Close the stage, or stop what sends people to it."
        yield Trouble(Cause.STAGE_FULL, str(stage), message, stage.study_id)


def no_arrivals(now: datetime) -> Iterator[Trouble]:
    minutes = settings.HUNCH_NO_ARRIVALS_MINUTES
    if not minutes:
        return
    since = now - timedelta(minutes=minutes)
    began = Sitting.objects.filter(stage=OuterRef("stage"), started_at__gte=since)
    in_open_stages = Exists(_open_stages().filter(_has_room(), pk=OuterRef("stage")))
    quiet = _active().filter(~Exists(began), in_open_stages, published_at__lt=since)
    for posting in quiet.exclude(changed_at__gte=since)[:MAX_ROWS]:
        message = (
            f"The posting is active at {posting.panel}, and nobody has begun for {minutes} minutes. Open its link "
            "yourself; look at its filters and its pay."
        )
        yield Trouble(Cause.NO_ARRIVALS, subject_of(posting.pk, posting.study.slug), message, posting.study_id)


def caps_near(now: datetime) -> Iterator[Trouble]:
    seen: set[int] = set()
    for posting in _active()[:MAX_ROWS]:
        cap = posting.study.config.panel.spending_cap
        if cap is None or posting.study_id in seen:
            continue
        seen.add(posting.study_id)
        spent = committed(posting.study)
        if 100 * spent >= cap * settings.HUNCH_CAP_ALERT_PERCENT:
            message = f"{money(spent)} of {money(cap, posting.currency)} (panel.spending_cap) are committed."
            yield Trouble(Cause.CAP_NEAR, posting.study.slug, message, posting.study_id)


def high_returns(now: datetime) -> Iterator[Trouble]:
    """Many people give back their place, or let its time run out: something on the pages or in the pay is wrong."""
    active = list(_active()[:MAX_ROWS])
    status_counts: dict[int, Counter[SubmissionStatus]] = defaultdict(Counter)
    rows = Submission.objects.filter(posting__in=active).order_by().values_list("posting", "posting__panel", "status")
    for pk, panel, status, n in rows.annotate(n=Count("pk")):
        status_counts[pk][panels.find(panel).submission_status(status)] += n
    for posting in active:
        counts = status_counts[posting.pk]
        left = counts[SubmissionStatus.RETURNED] + counts[SubmissionStatus.TIMED_OUT]
        ended = sum(n for status, n in counts.items() if not status.is_under_way)
        if ended >= ENOUGH and 100 * left >= ended * settings.HUNCH_RETURNS_ALERT_PERCENT:
            message = (
                f"{left} of {ended} people at {posting.panel} gave back their place or ran out of time. Look at the "
                "page where they leave, at the remarks, and at the time that the posting promises."
            )
            yield Trouble(Cause.RETURNS_HIGH, subject_of(posting.pk, posting.study.slug), message, posting.study_id)


def low_disk(now: datetime) -> Iterator[Trouble]:
    free = site_health.free_megabytes()
    if free < settings.HUNCH_DISK_ALERT_MB:
        message = f"{free} MB are left, and at least {settings.HUNCH_DISK_ALERT_MB} MB should be (HUNCH_DISK_ALERT_MB)."
        yield Trouble(Cause.DISK_LOW, "the disk of HUNCH_VAR", message)


def still_paused(now: datetime) -> Iterator[Trouble]:
    """An alert for each posting that the watch has paused, until a person has started or stopped it."""
    alerts = list(Alert.objects.filter(cause=Cause.POSTING_PAUSED, resolved_at__isnull=True))
    if alerts:
        paused = postings_in(PostingState.PAUSED).values_list("pk", "study__slug")
        subjects = {subject_of(pk, slug) for pk, slug in paused}
        for row in alerts:
            if row.subject in subjects:
                yield Trouble(Cause.POSTING_PAUSED, row.subject, row.message, row.study_id)
    for posting in paused_by_the_panel():
        message = (
            f"{posting} is paused, and nobody here paused it: perhaps somebody did on the panel's own pages, or the "
            "panel itself, when a place was given back after all were used. Nobody is sent until you start it: "
            f"`hunch posting {posting.study.slug} start`."
        )
        yield Trouble(Cause.POSTING_PAUSED, subject_of(posting.pk, posting.study.slug), message, posting.study_id)


def broken_audit() -> Iterator[Trouble]:
    last = audit_checks.last_check()
    if last is not None and last.detail["faults"]:
        message = (
            f"By the check of {date_and_time(last.at)}, entries of the audit were changed, removed or inserted "
            f"(faults in its chain: {last.detail['faults']}). Which ones: `hunch verify_audit`. Look who "
            "can write to the database."
        )
        yield Trouble(Cause.UNHEALTHY, "audit", message)


def waiting_steps(now: datetime) -> Iterator[Trouble]:
    """Work that does not begin: its files cannot be stored, a cluster is away, or no worker takes it. Nothing else
    would tell."""
    rows = of_studies(JobStep.objects).filter(state=JobStep.State.QUEUED).select_related("stage__study")
    steps = list(rows.defer("result").order_by("pk")[:MAX_ROWS])
    if step := next((step for step in steps if step.error.startswith(WAITS)), None):
        message = (
            f"{step} waits, since files cannot be stored or HUNCH_COMPUTE does not answer, and the study does not go "
            "on. `hunch doctor` says what is wrong, and the study's page why it waits. Then it goes on by itself."
        )
        yield Trouble(Cause.UNHEALTHY, "work between stages", message)
    others = [step for step in steps if not step.error.startswith(WAITS)]
    reasons = why_not_begun(others, now)
    for step in others:
        if (waiting := reasons.get(step.pk)) is not None and waiting.is_untaken:
            message = f"{step} waits {waiting.words}. Look at that worker's log: it is not there, or cannot start."
            yield Trouble(Cause.UNHEALTHY, "workers", message)
            return


def broken_parts(now: datetime) -> Iterator[Trouble]:
    yield from broken_audit()
    yield from waiting_steps(now)


def _open_stages() -> QuerySet[Stage]:
    return of_studies(Stage.objects).filter(state=Stage.State.OPEN).select_related("study").order_by("pk")


def _has_room() -> Exists:
    return Exists(Booklet.objects.filter(stage=OuterRef("pk"), claimed_at__isnull=True))


def _active() -> QuerySet[Posting]:
    return postings_in(PostingState.ACTIVE).select_related("study", "stage__study").order_by("pk")


LOOKS: dict[Alert.Cause, Callable[[datetime], Iterator[Trouble]]] = {
    Cause.STEP_FAILED: failed_steps,
    Cause.STAGE_FULL: full_stages,
    Cause.NO_ARRIVALS: no_arrivals,
    Cause.CAP_NEAR: caps_near,
    Cause.RETURNS_HIGH: high_returns,
    Cause.DISK_LOW: low_disk,
    Cause.POSTING_PAUSED: still_paused,
    Cause.UNHEALTHY: broken_parts,
}
