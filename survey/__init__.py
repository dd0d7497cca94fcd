"""The Django project and the core app. May import bandit and predictors; never frontend, and never an instrument."""

from survey.celery import app as celery_app

__all__ = ["celery_app"]
