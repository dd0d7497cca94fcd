"""What is reported to a Sentry server names nobody, whatever the failing view had in its hands."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from survey.logs.error_reports import cleaned
from tests.conftest import unavailable

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PERSON = "5f1a2b3c4d5e6f7a8b9c0d1e"
# In a process of its own: Sentry's SDK changes Django and Celery for good.
PROGRAM = f"""
import logging, os, sys, types
import django
django.setup()
import sentry_sdk
from sentry_sdk.transport import Transport
from django.core.wsgi import get_wsgi_application
from django.test import RequestFactory, override_settings
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt
from survey.logs import error_reports
from survey.exceptions import NotFound

class Kept(Transport):
    def capture_envelope(self, envelope):
        sys.stdout.write("ENVELOPE " + envelope.serialize().decode("utf-8", "replace").replace("\\n", " ") + "\\n")

sentry_sdk.init(**error_reports.options(), transport=Kept)

@csrf_exempt
def fails(request):
    person = request.GET["PROLIFIC_PID"]
    sitting = {{"person": person, "body": request.body}}
    logging.getLogger("survey.tests").error("the panel knows %s", person)
    try:
        {{}}[person]
    except KeyError as exc:
        raise NotFound("no such study: PROLIFIC_PID=" + person) from exc

urls = types.ModuleType("failing_urls")
urls.urlpatterns = [path("fails", fails), path("", include("survey.urls"))]
urls.handler500 = "frontend.views.server_error"
sys.modules["failing_urls"] = urls
with override_settings(ROOT_URLCONF="failing_urls"):
    sent = {{"HTTP_REFERER": "http://localhost/?pid={PERSON}", "HTTP_COOKIE": "hunch={PERSON}"}}
    asked = RequestFactory(SERVER_NAME="localhost").post("/fails?PROLIFIC_PID={PERSON}", {{"text": "{PERSON}"}}, **sent)
    begun = []
    list(get_wsgi_application()(asked.environ, lambda status, headers: begun.append((status, dict(headers)))))
sentry_sdk.flush()
((status, headers),) = begun
print("STATUS", status[:3], headers["X-Request-ID"])
"""


@pytest.mark.thorough
@pytest.mark.slow
def test_a_view_that_fails_is_reported_without_the_person_it_was_about(tmp_path: Path) -> None:
    if importlib.util.find_spec("sentry_sdk") is None:
        unavailable("what is reported to Sentry: install sentry-sdk")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "survey.settings",
            "HUNCH_VAR": str(tmp_path),
            "SENTRY_DSN": "https://key@sentry.invalid/1",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    sent = [line for line in lines if line.startswith("ENVELOPE")]
    (status,) = [line for line in lines if line.startswith("STATUS")]
    assert status.split()[1] == "500"
    assert len(sent) == 2 and not any(PERSON in line for line in sent)
    failed = next(line for line in sent if "NotFound" in line)
    assert '"fails"' in failed and "no such study: PROLIFIC_PID=[removed]" in failed and "KeyError" in failed
    assert status.split()[2] in failed and "http://localhost/fails" in failed
    assert '"the panel knows %s"' in next(line for line in sent if line is not failed)


def test_a_report_is_built_from_what_is_named_alone() -> None:
    frame = {"function": "view", "lineno": 3, "vars": {"person": PERSON}, "abs_path": f"/{PERSON}"}
    event = {
        "event_id": "1",
        "logger": "survey.tasks",
        "user": {"id": PERSON},
        "extra": {"celery-job": {"args": [PERSON]}},
        "breadcrumbs": {"values": [{"message": PERSON}]},
        "contexts": {"any": {"thing": PERSON}},
        "tags": {"person": PERSON},
        "server_name": PERSON,
        "request": {
            "method": "POST",
            "url": f"https://a.example/s/x/?pid={PERSON}",
            "query_string": PERSON,
            "cookies": PERSON,
            "headers": {"Referer": PERSON},
            "data": PERSON,
            "env": PERSON,
        },
        "logentry": {"message": "about %s", "params": [PERSON], "formatted": f"about {PERSON}"},
        "exception": {"values": [{"type": "KeyError", "value": PERSON, "stacktrace": {"frames": [frame]}}]},
    }
    report = cleaned(event, {})
    assert PERSON not in json.dumps(report)
    assert set(report) == {"event_id", "logger", "tags", "request", "logentry", "exception"}
    assert report["request"] == {"method": "POST", "url": "https://a.example/s/x/"}


@pytest.mark.thorough
def test_it_says_what_to_install_where_the_package_is_missing(tmp_path: Path) -> None:
    program = "import sys; sys.modules['sentry_sdk'] = None; import django; django.setup()"
    environment = {**os.environ, "HUNCH_VAR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "survey.settings"}
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**environment, "SENTRY_DSN": "https://key@sentry.invalid/1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0 and 'SENTRY_DSN: nothing can be reported; run: pip install "hunch[sentry]"' in run.stderr
