"""The Celery application. Imports nothing of survey: the settings name the tasks by string.

State lives in our own rows, so no result backend exists. Queues: `default` for short tasks, `ml` for training and
scoring. A worker and beat each touch a file while they can talk to the broker; `survey.health` reads it.
"""

import logging.config
import os
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import after_task_publish, beat_init, heartbeat_sent, setup_logging
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")

app = Celery("survey")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect(weak=False)
def _log_as_the_web_does(**signal: Any) -> None:
    """Set up our logging. Because this receiver exists, Celery does not set up its own, in the worker and its pool."""
    logging.config.dictConfig(settings.LOGGING)


def touch_heartbeat(**_signal: Any) -> None:
    """Touch the file that shows that this process is alive; without HUNCH_HEARTBEAT there is none."""
    if settings.HUNCH_HEARTBEAT:
        Path(settings.HUNCH_HEARTBEAT).touch()


@heartbeat_sent.connect(weak=False)
def _worker_is_alive(**signal: Any) -> None:
    touch_heartbeat()


@beat_init.connect(weak=False)
def _beat_has_started(**signal: Any) -> None:
    # Only beat connects this: a web process may publish too, and that says nothing about beat.
    after_task_publish.connect(touch_heartbeat, weak=False)
