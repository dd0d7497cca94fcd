"""The Celery application. Imports background and request_ids of survey alone, and keys when a process starts: the
settings name the tasks by string.

State lives in our own rows, so no result backend exists. survey/processes/queues.py names the queues. A worker and beat
each touch a file while they can talk to the broker; `survey.health` reads it. Beat runs the watch
(survey/operation/watch.py), and a thread of each worker looks after the watch.
"""

import logging.config
import os
from pathlib import Path
from typing import Any

import django
from celery import Celery
from celery.signals import (
    after_task_publish,
    beat_init,
    before_task_publish,
    celeryd_init,
    heartbeat_sent,
    setup_logging,
    task_prerun,
    worker_init,
    worker_ready,
)
from django.conf import settings
from django.utils.module_loading import import_string

from survey.logs import request_ids
from survey.processes import background

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")
# Celery would run Django's checks when a worker, each process of a spawned pool and beat start, and look at no result.
# That loads all pages: a second of work and 30 MB in each.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

app = Celery("survey")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_init.connect(weak=False)
def _leave_the_machine_to_the_pages(**_signal: Any) -> None:
    """Before the pool is started: its processes inherit it, and load numpy and torch afterwards."""
    if settings.HUNCH_BACKGROUND:
        background.step_back()


@setup_logging.connect(weak=False)
def _log_as_the_web_does(**signal: Any) -> None:
    """Set up our logging. Because this receiver exists, Celery does not set up its own, in the worker and its pool."""
    logging.config.dictConfig(settings.LOGGING)


@before_task_publish.connect(weak=False)
def _give_the_request_id_along(headers: dict[str, Any], **_signal: Any) -> None:
    headers["request_id"] = request_ids.current.get() or request_ids.make()


@task_prerun.connect(weak=False)
def _take_up_the_request_id(task: Any, **_signal: Any) -> None:
    request_ids.current.set(task.request.get("request_id") or request_ids.make())


def touch_heartbeat(**_signal: Any) -> None:
    """Touch the file that shows that this process is alive; without HUNCH_HEARTBEAT there is none."""
    if settings.HUNCH_HEARTBEAT:
        Path(settings.HUNCH_HEARTBEAT).touch()


@worker_init.connect(weak=False)
def _refuse_other_keys(**_signal: Any) -> None:
    """In the worker before its pool is started, and in beat: see survey/services/base/keys.py."""
    django.setup()
    from survey.services.base import keys  # Needs the models.

    try:
        keys.check_at_start()
    except keys.KeysDiffer as exc:
        raise SystemExit(exc.message) from None


@heartbeat_sent.connect(weak=False)
def _worker_is_alive(**signal: Any) -> None:
    touch_heartbeat()


@beat_init.connect(weak=False)
def _beat_has_started(**signal: Any) -> None:
    _refuse_other_keys()
    # Only beat connects this: a web process may publish too, and that says nothing about beat.
    after_task_publish.connect(touch_heartbeat, weak=False)
    import_string("survey.operation.watch.start_in_beat")()  # By name: Django is set up only now.


@worker_ready.connect(weak=False)
def _worker_has_started(**signal: Any) -> None:
    import_string("survey.operation.watch.start_in_worker")()
