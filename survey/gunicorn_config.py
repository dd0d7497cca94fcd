"""How gunicorn serves the web process (`gunicorn -c python:survey.gunicorn_config survey.wsgi`).

Imports settings and database only, and keys when a worker starts.

Neither the access line nor gunicorn's own error lines may carry a query string or a referrer: a panel's entry address
holds the ids of a person. So the access line (survey/web/web_worker.py) names neither, and every line goes through our
formatter.
"""

import gc
import os
from typing import Any

from django.conf import settings
from django.db import Error
from django.urls import get_resolver
from gunicorn.arbiter import Arbiter

from survey.storage import database

bind = f"0.0.0.0:{settings.HUNCH_PORT}"  # the process manager passes a loopback socket instead
worker_class = "survey.web.web_worker.WaitressWorker"
workers = settings.HUNCH_WEB_WORKERS
threads = settings.HUNCH_WEB_THREADS
timeout = 60  # seconds that every thread of a process may be at one request before the process is replaced
# Seconds without a byte from or to a client, between requests too; longer than the proxy keeps its own side, or
# it would send into a connection that closes.
keepalive = 30
worker_connections = 1000
graceful_timeout = 20
# The file whose times say that a worker is alive: a busy disk must not stop it.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
max_requests = 20_000
max_requests_jitter = 2_000
control_socket_disable = True
accesslog = "-"
logconfig_dict = {
    "formatters": settings.LOGGING["formatters"],
    "handlers": settings.LOGGING["handlers"],
    "root": {"handlers": ["console"], "level": settings.HUNCH_LOG_LEVEL},
    "loggers": {
        "gunicorn.error": {"handlers": ["console"], "level": settings.HUNCH_LOG_LEVEL, "propagate": False},
        "gunicorn.access": {"handlers": ["console"], "level": settings.HUNCH_LOG_LEVEL, "propagate": False},
    },
}


def on_starting(server: Any) -> None:
    """Called by gunicorn once, before the first worker: refuse to start where PostgreSQL has too few connections."""
    try:
        room = database.room()
    except Error as exc:
        server.log.warning("The database cannot be reached yet (%s); its connections are not counted.", exc)
        return
    if room is not None and room.is_impossible:
        raise SystemExit(f"{room.sentence} Raise max_connections, or lower HUNCH_WEB_WORKERS or HUNCH_WEB_THREADS.")
    if room is not None and room.is_short:
        server.log.warning("%s", room.sentence)


def post_worker_init(worker: Any) -> None:
    """Called by gunicorn in each worker before it takes requests: check the keys, and settle down.

    For the keys see survey/services/base/keys.py.
    """
    from survey.services.base import keys  # Needs the models.

    try:
        keys.check_at_start()
    except keys.KeysDiffer as exc:
        worker.log.critical("%s", exc.message)
        raise SystemExit(Arbiter.WORKER_BOOT_ERROR) from None  # With this status no other worker is started.
    settle()


def settle() -> None:
    """Load what the first request would load, and let the garbage collector pass over all of it.

    It would look at all that stays to the end, 170,000 objects and more, again and again while people wait.
    What requests leave behind is looked at after 10,000 objects (see survey/__init__.py).
    """
    get_resolver().reverse_dict  # noqa: B018 (imports every view)
    gc.collect()
    gc.freeze()
