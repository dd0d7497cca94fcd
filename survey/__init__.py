"""The Django project and the core app. May import bandit and predictors; never frontend, and never an instrument."""

import gc
import os

# Loading Hunch makes 170,000 objects that stay. With Python's own 700 the collector looks through them again and again
# while every process starts, which is a seventh of the time.
gc.set_threshold(10_000, 20, 20)

# For gunicorn's configuration and health checks, which read the settings before anything else of ours.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")
