"""Figures for Prometheus, read from the database and Redis: right in every process, no matter which one answers.

No label names a person. A label names a study only where HUNCH_METRICS_STUDIES says so. Each figure is one statement.
"""

import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Max, Min, Q
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from survey.contracts.panels import PostingState
from survey.models import (
    Alert,
    AnswerCollection,
    Assignment,
    AuditEntry,
    JobStep,
    Posting,
    Sitting,
    Slot,
    WatchRecord,
    WebhookEvent,
)
from survey.panels.postings import postings_in

from . import audit_checks, site_health
from .studies import of_studies

__all__ = ["CONTENT_TYPE_LATEST", "exposition"]

KEEP = 10  # seconds that a process keeps its figures
KEY = "survey.metrics"


def exposition() -> bytes:
    """All figures in Prometheus' text format, at most KEEP seconds old."""
    text = cache.get(KEY)
    if text is None:
        registry = CollectorRegistry()
        registry.register(_Figures())
        text = generate_latest(registry)
        cache.set(KEY, text, KEEP)
    return bytes(text)


class _Figures:
    def collect(self) -> Iterator[Metric]:
        started = time.monotonic()
        now = timezone.now()
        yield from _people()
        yield from _work(now)
        yield from _panels(now)
        yield from _site(now)
        yield _gauge("hunch_metrics_seconds", "How long these figures took to read.", time.monotonic() - started)


def _people() -> Iterator[Metric]:
    by_study = "stage__study__slug"
    yield _counted("hunch_sittings", "Sittings by state.", Sitting.objects, "state", study=by_study)
    # `counted` and `late` are answers; `live` are claims.
    of_slots = f"slot__{by_study}"
    yield _counted("hunch_assignments", "Slots given to people, by state.", Assignment.objects, "state", study=of_slots)
    open_slots = Slot.objects.filter(stage__state="open", booklet__claimed_at__isnull=True)
    yield _counted("hunch_open_slots", "Slots of open stages that nobody has claimed.", open_slots, study=by_study)


def _work(now: datetime) -> Iterator[Metric]:
    yield _counted("hunch_steps", "Steps between two stages.", JobStep.objects, "kind", "state")
    yield _counted("hunch_collections", "Collections of answers of language models.", AnswerCollection.objects, "state")
    queued = of_studies(JobStep.objects).filter(state=JobStep.State.QUEUED).aggregate(first=Min("created_at"))["first"]
    yield _age("hunch_oldest_queued_step_seconds", "Age of the step that waits longest.", queued, now)
    running = of_studies(JobStep.objects).filter(state=JobStep.State.RUNNING)
    ages = running.aggregate(begun=Min("started_at"), heard=Min("heartbeat_at"), lease=Min("lease_until"))
    yield _age(
        "hunch_longest_running_step_seconds", "How long the longest step runs, training above all.", ages["begun"], now
    )
    yield _age("hunch_step_silent_seconds", "Seconds since a running step last reported progress.", ages["heard"], now)
    yield _age("hunch_step_lease_over_seconds", "Since when the lease of a running step is over.", ages["lease"], now)
    lengths = GaugeMetricFamily("hunch_queue_length", "Messages that wait in Redis.", labels=["queue"])
    for queue, length in _queue_lengths():
        lengths.add_metric([queue], length)
    yield lengths


def _panels(now: datetime) -> Iterator[Metric]:
    yield _counted("hunch_postings", "Postings, by the panel's word.", Posting.objects, "panel", "state")
    facts = Posting.objects.aggregate(unreadable=Count("pk", ~Q(error="")), unanswered=Count("pk", ~Q(pending="")))
    yield _gauge("hunch_postings_unreadable", "Postings that could not be read the last time.", facts["unreadable"])
    yield _gauge("hunch_posting_calls_unanswered", "Calls that the panel has not answered.", facts["unanswered"])
    read = postings_in(PostingState.ACTIVE).aggregate(oldest=Min("read_at"))["oldest"]
    yield _age("hunch_panel_read_age_seconds", "Since when an active posting was not read.", read, now)
    actions = CounterMetricFamily("hunch_actions", "What was done, by the audit.", labels=["action"])
    for action, count in _rows(AuditEntry.objects, "action"):
        actions.add_metric([action], count)
    yield actions
    yield _counted("hunch_webhook_events", "Events of panels by state.", WebhookEvent.objects, "panel", "state")
    waiting = WebhookEvent.objects.filter(state=WebhookEvent.State.WAITING).aggregate(first=Min("received_at"))
    yield _age("hunch_oldest_webhook_seconds", "Age of the event that waits longest.", waiting["first"], now)
    newest = WebhookEvent.objects.aggregate(last=Max("received_at"))["last"]
    yield _age("hunch_last_webhook_seconds", "Since when no event came.", newest, now)


def _site(now: datetime) -> Iterator[Metric]:
    watch = WatchRecord.objects.first()
    looked_at = watch.looked_at if watch else None
    yield _age("hunch_watch_age_seconds", "Since when the watch has not looked.", looked_at, now)
    since = watch.unhealthy_since if watch else None
    yield _gauge("hunch_unhealthy_seconds", "Since when the site does not work; 0 if it does.", _seconds(since, now))
    still_open = Alert.objects.filter(resolved_at__isnull=True)
    yield _counted("hunch_alerts", "Open alerts by cause.", still_open, "cause")
    yield from _audit(now)
    free = 1_000_000 * site_health.free_megabytes()
    yield _gauge("hunch_disk_free_bytes", "Room on the disk of HUNCH_VAR.", free)


def _audit(now: datetime) -> Iterator[Metric]:
    """Without a sample until the first check: an absent figure is an alert, a wrong one is not."""
    age = GaugeMetricFamily("hunch_audit_check_age_seconds", "Since when the audit's chain was not checked.")
    faults = GaugeMetricFamily("hunch_audit_faults", "Faults that the last check of the audit's chain found.")
    if (check := audit_checks.last_check()) is not None:
        age.add_metric([], _seconds(check.at, now))
        faults.add_metric([], check.detail["faults"])
    yield age
    yield faults


def _queue_lengths() -> Iterable[tuple[str, int]]:
    """None where Redis is away: an absent figure is an alert, a wrong one is not."""
    return site_health.queue_lengths().items()


def _rows(rows: Any, *names: str) -> Iterable[Any]:
    rows = of_studies(rows)
    return rows.order_by().values_list(*names).annotate(n=Count("pk")) if names else [(rows.count(),)]


def _counted(name: str, text: str, rows: Any, *labels: str, study: str = "") -> GaugeMetricFamily:
    """How many rows there are, by these columns."""
    columns = [*labels, *([study] if study and settings.HUNCH_METRICS_STUDIES else [])]
    named = [*labels, *(["study"] if len(columns) > len(labels) else [])]
    figure = GaugeMetricFamily(name, text, labels=named)
    for *values, count in _rows(rows, *columns):
        figure.add_metric([str(value) for value in values], count)
    return figure


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _age(name: str, text: str, moment: datetime | None, now: datetime) -> GaugeMetricFamily:
    """Seconds since that moment; 0 where there is none, or where it lies ahead."""
    return _gauge(name, text, _seconds(moment, now))


def _seconds(moment: datetime | None, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds()) if moment is not None else 0.0
