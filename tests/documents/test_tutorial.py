"""The tutorial from a terminal works: its commands are run in their order in one folder, and the reader takes part
where the page says so. Its pictures show its own study.

    python -m tests.renew pictures

makes the pictures again.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from django.contrib.auth.models import User
from django.test import Client

from survey.models import Study
from survey.services.banks.importing import import_questions
from survey.services.stages import lifecycle
from survey.services.studies.creating import create_study
from tests import cast, databases
from tests.browsing import Browser
from tests.frontend.pages import fields_for, read
from tests.infrastructure.test_process_manager import alive
from tests.waiting import eventually

from .blocks import DOCS, blocks_of, files_of
from .picturing import take_picture

pytestmark = pytest.mark.thorough

PAGE = "tutorial-shell.md"
LONGEST = 240  # seconds for one command on a busy machine
MANAGE = Path(__file__).resolve().parents[2] / "manage.py"


# The commands


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


# Each command runs in a process of its own that has loaded Hunch already: `hunch` as often would load it for long.
SHELL = """
import json, os, sys
import django
django.setup()
from survey import cli
for line in sys.stdin:
    *sys.argv, output = json.loads(line)
    if (child := os.fork()) == 0:
        sys.stdin.close()
        said = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        cli.main()
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Shell:
    """Where the reader types commands, one after the other."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.output = folder / "said.txt"
        self.process = subprocess.Popen(
            [sys.executable, "-c", SHELL],
            cwd=folder,
            env={**environment, "PYTHONPATH": str(MANAGE.parent), "DJANGO_SETTINGS_MODULE": "survey.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, line: str) -> str:
        """What a command printed."""
        assert line.startswith("hunch "), line
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([*line.split(), str(self.output)]) + "\n")
        self.process.stdin.flush()
        status, said = self.process.stdout.readline().strip(), self.output.read_text(encoding="utf-8")
        assert status == "0", f"{line}: {status}\n{said[-6000:]}"
        return said

    def close(self) -> None:
        self.process.communicate()


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.any_database
def test_its_commands_run_in_their_order_in_a_folder_of_their_own(
    tmp_path: Path, redis_server: Any, django_db_setup: None
) -> None:
    """In an empty folder the first command makes the database: see tests/infrastructure/test_wheel.py."""
    databases.copy_for_a_process(tmp_path / "var" / "hunch.sqlite3")
    port = free_port()
    environment = {**os.environ, "HUNCH_VAR": str(tmp_path / "var"), "HUNCH_PORT": str(port), "HUNCH_WEB_WORKERS": "1"}
    for name in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"):
        environment.pop(name, None)
    server: subprocess.Popen[bytes] | None = None
    shell = Shell(tmp_path, environment)
    said = took_part = ""
    try:
        for block in blocks_of(PAGE):
            if block.name:
                (tmp_path / block.name).write_text(block.text, encoding="utf-8")
            elif block.is_background:
                server = started(block.text.strip(), tmp_path, environment, port)
            else:
                for line in block.text.strip().splitlines():
                    # The page's own port may be taken on this machine.
                    line = line.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
                    line += f" --base-url http://127.0.0.1:{port}" if " simulate " in line else ""
                    printed = shell.run(line)
                    said += printed
                    if " preview " in line:  # "Open it, and take part yourself".
                        took_part = take_part(printed.split()[-1])
    finally:
        shell.close()
        if server is not None:
            children = psutil.Process(server.pid).children(recursive=True)
            # The services of Hunch as Ctrl-C ends them.
            os.killpg(server.pid, signal.SIGINT)
            status = server.wait(timeout=60)
    assert status == 0 and len(children) >= 8
    assert eventually(lambda: not alive(children)), alive(children)
    assert "[Test]" in took_part and "That was all." in took_part, "the reader came to the end"
    assert "imported 12 questions" in said and "created study first" in said
    # Some of the simulated people leave, as real ones do.
    in_time = re.search(r"1\s+open\s+\d+\s+\d+\s+\d+\s+(\d+) of 30", said)
    assert in_time is not None and int(in_time[1]) > 0, said
    answers = (tmp_path / "export" / "answers.csv").read_text(encoding="utf-8")
    assert answers.count(",counted,") == int(in_time[1])


def take_part(address: str) -> str:
    """Whoever opens the preview goes through all its pages. What the last one says."""
    home = address.partition("?")[0]
    with httpx.Client(follow_redirects=True, timeout=30) as client:
        client.get(address)
        fields = {"consent": "yes", "script": "1", **read(client.get(f"{home}consent").text).hidden}
        answer = client.post(f"{home}consent", data=fields, headers={"Referer": home})
        while (page := read(answer.text)).main.get("data-kind") != "end":
            assert page.form, answer.text
            answer = client.post(f"{home}sitting", data=fields_for(page), headers={"Referer": home})
        return answer.text


def started(line: str, folder: Path, environment: dict[str, str], port: int) -> "subprocess.Popen[bytes]":
    """Pages and workers, once they answer."""
    command = [sys.executable, str(MANAGE), *line.split()[1:]]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    transport = httpx.HTTPTransport(retries=0)
    with httpx.Client(transport=transport, timeout=5) as client:
        for _try in range(LONGEST * 2):
            assert server.poll() is None, (folder / "server.log").read_text()[-3000:]
            try:
                if client.get(f"http://127.0.0.1:{port}/healthz").status_code == 200:
                    return server
            except httpx.HTTPError:
                pass
            try:
                server.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError((folder / "server.log").read_text()[-3000:])


# The pictures


@pytest.fixture
def study(transactional_db: None, tmp_path: Path) -> Study:
    """The tutorial's own study."""
    files = files_of(PAGE)
    path = tmp_path / "questions.csv"
    path.write_text(files["questions.csv"], encoding="utf-8")
    import_questions(path, "mine")
    made = create_study(text=files["first.toml"], source_name="first.toml")
    lifecycle.open_stage(made.stages.get(index=1))
    return made


@pytest.fixture
def page(browser: Browser) -> Any:
    return browser.new_page(viewport={"width": 900, "height": 640}, reduced_motion="reduce")


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.any_database
def test_its_pictures_show_its_own_study(
    study: Study, page: Any, live_server: Any, request: pytest.FixtureRequest
) -> None:
    taken: list[str] = []

    def take(name: str) -> None:
        taken.append(f"shell-{name}.png")
        take_picture(page, taken[-1], renew=request.config.getoption("--renew"))

    page.goto(f"{live_server.url}/s/first/")
    assert "You will say what you expect of a language model." in page.content()
    take("welcome")
    page.locator("[data-action=begin]").click()
    page.locator("#consent-yes").click()
    page.locator("main[data-kind=instructions] button[type=submit]").first.click()
    page.locator("[data-screen=prior]").first.wait_for()
    take("item")
    for _person in range(3):
        cast.walk(cast.begin(study))
    user = User.objects.create_superuser("ada")
    client = Client()
    client.force_login(user)
    cookie = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    page.goto(f"{live_server.url}/admin/survey/study/{study.pk}/change/")
    assert page.locator("#overview").is_visible()
    take("study")
    named = set(re.findall(r"pictures/(shell-[\w-]+\.png)", (DOCS / PAGE).read_text(encoding="utf-8")))
    assert named == set(taken) == {path.name for path in (DOCS / "pictures").glob("shell-*.png")}
