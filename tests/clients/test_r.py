"""The examples of docs/from-r.md, run by R against the real server. R and its httr2 may be absent, under CI too."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from survey.models import ApiToken, Job, Study
from survey.services.base import jobs
from survey.services.stages import lifecycle
from tests import cast, r_packages

PAGE = Path(__file__).resolve().parents[2] / "docs/from-r.md"
ADDRESS = "https://survey.example.org"
# Where an example waits, the test does what people and workers would do meanwhile.
WAITING = """
Sys.sleep <- function(seconds) {
  file.create("waiting")
  while (file.exists("waiting")) base::Sys.sleep(0.02)
}
"""
LONGEST = 120  # seconds


def examples() -> list[str]:
    """Of the page, in its order."""
    return re.findall(r"(?ms)^```r\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))


@pytest.mark.django_db(transaction=True)
def test_the_examples_for_r_run(live_server: Any, tmp_path: Path) -> None:
    if not r_packages.is_installed("httr2"):
        pytest.skip("Not tested: the examples of docs/from-r.md, since R or its package httr2 is not installed")
    user = User.objects.create_user("owner")
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="survey"))
    cast.join(user, cast.open_study())  # Whose bank the new study takes.
    (tmp_path / "my-study.toml").write_text(cast.study_text(slug="my-study"), encoding="utf-8")
    setting, studies, _weights, _models, estimates, run, files = examples()
    printing = (
        "print(nrow(counted)); print(nrow(figures)); print(stages$state); print(file.size(job$files[[1]]$name) > 0)"
    )
    script = "\n".join([WAITING, setting.replace(ADDRESS, live_server.url), run, studies, estimates, files, printing])
    (tmp_path / "examples.R").write_text(script, encoding="utf-8")

    def meanwhile() -> None:
        study = Study.objects.get(slug="my-study")
        if (stage := study.stages.filter(index=1, state="open").first()) is not None:
            for _person in range(4):
                cast.walk(cast.begin(study))
            lifecycle.close_stage(stage, now=True)
        for job in Job.objects.waiting():
            assert jobs.run(job.pk)

    output = _run_r(tmp_path, meanwhile, token=ApiToken.issue(user=user, scope=ApiToken.Scope.RUN)[1])
    counted, figures, states, is_there = output[-4:]
    assert (counted, is_there) == ("[1] 12", "[1] TRUE") and int(figures.split()[1]) >= 2, output
    assert '"open"' not in states


def _run_r(folder: Path, meanwhile: Callable[[], None], *, token: str) -> list[str]:
    """The lines that examples.R prints."""
    environment = {**os.environ, "TOKEN_OF_HUNCH": token, "no_proxy": "*"}
    with subprocess.Popen(
        ["Rscript", "--vanilla", "examples.R"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            for _look in range(LONGEST * 20):
                if (folder / "waiting").exists():
                    meanwhile()
                    (folder / "waiting").unlink()
                try:
                    process.wait(timeout=0.05)
                except subprocess.TimeoutExpired:
                    continue
                break
        finally:
            process.kill()
        output, problems = process.communicate()
    assert process.returncode == 0, problems
    return output.splitlines()
