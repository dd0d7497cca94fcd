"""`manage.py demo` as a whole, with all its processes, on the smallest study and a predictor that learns in no time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests import databases

pytestmark = pytest.mark.thorough

ROOT = Path(settings.BASE_DIR)
RUN = """
import sys
from dataclasses import replace
from survey.contracts import instruments
kind = instruments.kind("belief_update")
kind.demonstration = replace(kind.demonstration, study_file=sys.argv[1])
from django.core.management import call_command
call_command("demo", "--exit", "--respondents", "4", "--port", "0")
"""


@pytest.fixture
def small_study(tmp_path: Path) -> Path:
    text = (ROOT / "studies" / "demo.toml").read_text(encoding="utf-8")
    text = re.sub(r"(?ms)^\[predictor\]\n.*?(?=^\[\[stages\]\])", '[predictor]\nname = "same_task"\n\n', text)
    path = tmp_path / "demo.toml"
    # Short sittings: with few booklets of many items, a question that the predictor likes could not be dealt.
    text = re.sub(r"(?m)^items = \d+", "items = 3", text)
    text = re.sub(r"(?m)^after_item = \d+", "after_item = 2", text)
    # One stage that is drawn uniformly, and one that the pipeline between them plans; a third would be like the second.
    text, removed = re.subn(r"(?m)^\[\[stages\]\]\nsittings = \d+\n\[stages\.design\]\n(?:.+\n)+\n", "", text, count=1)
    assert removed == 1
    path.write_text(re.sub(r"(?m)^size = \d+", "size = 500", text), encoding="utf-8")
    return path


def processes_with(text: str) -> list[int]:
    """Processes whose environment holds the text."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "environ").read_bytes():
                processes.append(int(folder.name))
        except OSError:
            continue
    return processes


@pytest.mark.redis
@pytest.mark.slow
def test_the_demo_runs_from_end_to_end_and_leaves_no_process_behind(
    small_study: Path, tmp_path: Path, django_db_setup: None
) -> None:
    variable = f"{tmp_path}/var"
    databases.copy_for_a_process(tmp_path / "var" / "hunch.sqlite3")
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    environment |= {"HUNCH_VAR": variable, "DJANGO_SETTINGS_MODULE": "survey.settings", "PYTHONPATH": str(ROOT)}
    environment["HUNCH_WEB_WORKERS"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup(){RUN}", str(small_study)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout.splitlines()[-1].startswith("{"), done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert list(last) == ["seconds", "stages", "lift", "p"]
    assert [(stage["stage"], stage["answers"]) for stage in last["stages"]] == [(1, 12), (2, 12)]
    assert last["stages"][0]["auc"] is None and last["stages"][1]["auc"] is not None
    assert done.returncode == (0 if last["p"] < 0.05 else 1), done.stderr
    assert ("PASSED" if last["p"] < 0.05 else "FAILED") in done.stdout
    assert "password" in done.stdout and "Traceback" not in done.stderr
    assert processes_with(f"HUNCH_VAR={variable}") == []
