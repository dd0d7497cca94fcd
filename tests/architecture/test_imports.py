"""Who may import whom, and what a web process must never load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("torch", "transformers", "tokenizers", "sklearn", "xgboost", "matplotlib", "scipy"),
    *("pandas", "pyarrow", "openpyxl", "rapidfuzz", "PIL"),
)
EXTRAS = ("dask", "distributed", "storages", "boto3", "botocore")


def test_the_layers_hold() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("with_extras", [False, True], ids=["nothing set", "with extras"])
def test_a_web_process_loads_no_heavy_library(with_extras: bool) -> None:
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
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & set({HEAVY + EXTRAS!r})))
"""
    chosen = {"HUNCH_COMPUTE": "dask://127.0.0.1:1", "HUNCH_STORAGE_URL": "s3://files?endpoint=http://127.0.0.1:1"}
    environment = {**os.environ, **(chosen if with_extras else {})}
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [], f"a web process loads {run.stdout.strip()}"
