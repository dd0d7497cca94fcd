"""Thin Celery tasks: ids in, one service call. State lives in rows, so a lost or doubled message does no harm."""

import logging

from celery import shared_task

from survey.panels import purging, submissions, webhooks
from survey.services.banks import collecting
from survey.services.base import leases
from survey.services.sittings import expiry
from survey.services.stages import jobs

logger = logging.getLogger(__name__)


@shared_task(name="survey.tasks.run_due_steps")
def run_due_steps() -> int:
    """Send a task for every step and every collection of answers that is due."""
    sent = 0
    for step in jobs.due_steps():
        if leases.mark_sent(step):
            task = run_ml_step if step.kind in jobs.ML_KINDS else run_step
            # The step is sent again after this time. Older messages expire, so that they do not pile up for hours.
            task.apply_async((step.pk,), expires=leases.SEND_AGAIN.total_seconds())
            sent += 1
    for collection in collecting.due_collections():
        if leases.mark_sent(collection):
            run_collection.apply_async((collection.pk,), expires=leases.SEND_AGAIN.total_seconds())
            sent += 1
    return sent


@shared_task(name="survey.tasks.run_step")
def run_step(step_id: int) -> bool:
    return jobs.run_step(step_id)


@shared_task(name="survey.tasks.run_ml_step")
def run_ml_step(step_id: int) -> bool:
    return jobs.run_step(step_id)


@shared_task(name="survey.tasks.run_collection")
def run_collection(collection_id: int) -> None:
    collecting.run_collection(collection_id)


@shared_task(name="survey.tasks.expire_sittings")
def expire_sittings() -> int:
    return expiry.expire_sittings()


@shared_task(name="survey.tasks.sweep_leases")
def sweep_leases() -> int:
    return jobs.sweep()


@shared_task(name="survey.tasks.read_panels")
def read_panels() -> int:
    return submissions.read_all()


@shared_task(name="survey.tasks.work_on_webhooks")
def work_on_webhooks() -> int:
    return webhooks.work_on_events()


@shared_task(name="survey.tasks.look_after_data")
def look_after_data() -> int:
    """Delete the ids of people who have withdrawn and are paid. Warn about data that is kept longer than promised."""
    for study, people in purging.past_their_term():
        logger.warning(
            "%s: data may be kept until %s, but ids or hashes of %s people are still here: run purge_identities",
            study.slug,
            study.config.data.retention_until,
            people,
        )
    return purging.purge_withdrawn()
