"""Our gunicorn configuration for tests of connections alone: a worker does not load the pages, which takes a second."""

from survey.gunicorn_config import *  # noqa: F403


def post_worker_init(_worker: object) -> None:  # type: ignore[no-redef]
    """In place of what our configuration does here, which needs Django's models."""
