"""The Django project and the core app. May import bandit and predictors; never frontend, and never an instrument."""

import gc

# Loading Hunch makes 170,000 objects that stay. With Python's own 700 the collector looks through them again and again
# while every process starts, which is a seventh of the time.
gc.set_threshold(10_000, 20, 20)

from survey.celery import app as celery_app  # noqa: E402

__all__ = ["celery_app"]
