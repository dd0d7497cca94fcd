"""Who may import whom, and what a web process must never load."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "sklearn", "xgboost", "matplotlib", "scipy", "dask", "distributed")


def test_the_layers_hold() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_web_process_loads_no_heavy_library() -> None:
    """import-linter does not see a heavy import behind `predictors`: so start up for real, in a fresh process."""
    program = f"""
import sys
import django
django.setup()
from django.contrib import admin
from django.core.handlers.wsgi import WSGIHandler
from django.urls import get_resolver
from survey.celery import app
admin.autodiscover()
get_resolver().check()
WSGIHandler()
app.loader.import_default_modules()
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & set({HEAVY!r})))
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [], f"a web process loads {run.stdout.strip()}"
