"""Thin Celery tasks: ids in, one service call. State lives in rows, so a lost or doubled message does no harm."""

import logging

from celery import shared_task
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from survey.operation import audit_checks, deliveries, site_health
from survey.panels import purging, submissions, webhooks
from survey.processes import queues
from survey.services.banks import collecting, uploads
from survey.services.base import audit_chain, erasures, leases, rate_limits
from survey.services.base import jobs as asked_jobs
from survey.services.results.estimates import interim, stored_estimates
from survey.services.sittings import expiry
from survey.services.stages import jobs, scoring_parts
from survey.web import lockout

logger = logging.getLogger(__name__)


@shared_task(name="survey.tasks.run_due_steps")
def run_due_steps() -> int:
    """Send a task for every step, every collection of answers, all stored estimates and jobs that are due, and for a
    scoring that others may help with."""
    sent = 0
    for step in jobs.due_steps():
        if leases.mark_sent(step):
            queue = jobs.queue_of(step)
            task = run_step if queue == queues.DEFAULT else run_ml_step
            # The step is sent again after this time. Older messages expire, so that they do not pile up for hours.
            task.apply_async((step.pk,), queue=queue, expires=leases.SEND_AGAIN.total_seconds())
            sent += 1
    # A worker that takes scoring steps and is free helps with one. If none is, one message is enough.
    if (steps := scoring_parts.steps_to_help()) and site_health.queue_lengths().get(queues.SCORE) == 0:
        help_with_scoring.apply_async((steps[0],), queue=queues.SCORE, expires=leases.SEND_AGAIN.total_seconds())
        sent += 1
    for collection in collecting.due_collections():
        if leases.mark_sent(collection):
            run_collection.apply_async((collection.pk,), expires=leases.SEND_AGAIN.total_seconds())
            sent += 1
    for estimate in stored_estimates.due_estimates():
        if leases.mark_sent(estimate):
            compute_estimates.apply_async((estimate.pk,), expires=leases.SEND_AGAIN.total_seconds())
            sent += 1
    for job in asked_jobs.due_jobs():
        if leases.mark_sent(job):
            expires = leases.SEND_AGAIN.total_seconds()
            run_job.apply_async((job.pk,), queue=asked_jobs.queue_of(job), expires=expires)
            sent += 1
    return sent


@shared_task(name="survey.tasks.help_with_scoring")
def help_with_scoring(step_id: int) -> int:
    """Score parts of a step that another worker has."""
    return scoring_parts.help_with(step_id)


@shared_task(name="survey.tasks.run_step")
def run_step(step_id: int) -> bool:
    return jobs.run_step(step_id)


@shared_task(name="survey.tasks.run_ml_step")
def run_ml_step(step_id: int) -> bool:
    return jobs.run_step(step_id)


@shared_task(name="survey.tasks.run_collection")
def run_collection(collection_id: int) -> None:
    collecting.run_collection(collection_id)


@shared_task(name="survey.tasks.compute_estimates")
def compute_estimates(row_id: int) -> bool:
    return stored_estimates.compute(row_id)


@shared_task(name="survey.tasks.run_job")
def run_job(job_id: int) -> bool:
    return asked_jobs.run(job_id)


@shared_task(name="survey.tasks.expire_jobs")
def expire_jobs() -> int:
    return asked_jobs.expire()


@shared_task(name="survey.tasks.expire_sittings")
def expire_sittings() -> int:
    """Expire silent sittings, and delete what was counted at the entrance in spans that are over."""
    rate_limits.forget_ended(now=timezone.now())
    return expiry.expire_sittings()


@shared_task(name="survey.tasks.look_at_stages")
def look_at_stages() -> int:
    """Look at each running stage with a stopping rule. Where one was ended, its postings send nobody else."""
    ended = 0
    for stage in interim.running_stages():
        try:
            seen = interim.look(stage)
        except Exception:
            logger.exception("%s could not be looked at", stage)
            continue
        if seen is not None and seen.reached:
            ended += 1
            submissions.pause_postings(seen.stage)
    return ended


@shared_task(name="survey.tasks.sweep_leases")
def sweep_leases() -> int:
    return jobs.sweep() + asked_jobs.sweep()


@shared_task(name="survey.tasks.read_panels")
def read_panels() -> int:
    return submissions.read_all()


@shared_task(name="survey.tasks.work_on_webhooks")
def work_on_webhooks() -> int:
    return webhooks.work_on_events()


@shared_task(name="survey.tasks.send_events")
def send_events() -> int:
    return deliveries.send_due()


@shared_task(name="survey.tasks.seal_audit")
def seal_audit() -> int:
    return audit_chain.seal_entries()


@shared_task(name="survey.tasks.check_audit")
def check_audit() -> bool:
    """Asked for every hour, done once a day."""
    return audit_checks.check_if_due()


@shared_task(name="survey.tasks.look_after_data")
def look_after_data() -> int:
    """Delete the ids of people who have withdrawn and are paid, what is left of log-ins that have ended, and uploads
    that nobody confirmed. Warn about data that is kept longer than promised."""
    SessionStore.clear_expired()
    lockout.forget_ended()
    deliveries.forget_old(now=timezone.now())
    uploads.forget_old(timezone.now())
    erasures.list_or_warn()
    for study, people in purging.past_their_term():
        logger.warning(
            "%s: data may be kept until %s, but ids or hashes of %s people are still here: run purge_identities",
            study.slug,
            study.config.data.retention_until,
            people,
        )
    return purging.purge_withdrawn()
