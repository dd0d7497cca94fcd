"""Who may import whom, and what a web process must never load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("torch", "transformers", "tokenizers", "sklearn", "xgboost", "scipy"),
    *("pandas", "pyarrow", "openpyxl", "rapidfuzz", "resvg_py"),
)
# They take long to load, and few requests and jobs need them.
LATE = ("httpx", "h11", "rich", "numpy.ma")
EXTRAS = ("dask", "distributed", "storages", "boto3", "botocore")


def test_the_layers_hold() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "with_extras", [pytest.param(False, marks=pytest.mark.thorough), True], ids=["nothing set", "with extras"]
)
def test_web_and_workers_load_no_heavy_library_and_workers_no_pages(with_extras: bool) -> None:
    """import-linter does not see a heavy import behind `predictors`: so start up for real, in a fresh process. First as
    a worker and beat do, then as web."""
    program = f"""
import sys
from survey.celery import app
app.loader.import_default_modules()
assert "survey.tasks" in sys.modules
pages = ("survey.urls", "survey.admin", "frontend.urls", "drf_spectacular.views")
print(*(name for name in pages if name in sys.modules))
import django
django.setup()
from django.contrib import admin
from django.core.handlers.wsgi import WSGIHandler
from django.urls import get_resolver
admin.autodiscover()
get_resolver().check()
WSGIHandler()
names = {{name.partition(".")[0] for name in sys.modules}} | set(sys.modules)
print(*sorted(names & set({HEAVY + LATE + EXTRAS!r})))
"""
    chosen = {"HUNCH_COMPUTE": "dask://127.0.0.1:1", "HUNCH_STORAGE_URL": "s3://files?endpoint=http://127.0.0.1:1"}
    environment = {**os.environ, **(chosen if with_extras else {})}
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    pages, libraries = run.stdout.splitlines()
    assert pages == "", f"a worker loads {pages}"
    assert libraries == "", f"a web process or a worker loads {libraries}"
