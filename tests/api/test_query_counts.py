"""The statements of every endpoint, as query_counts.json has them."""

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from survey.api import urls
from survey.instruments.belief_update.reports.reasons.written import reasons_of
from survey.models import ApiToken, Receiver, Sitting
from survey.operation import deliveries, receivers
from survey.services.base import jobs
from survey.services.results.estimates import weights
from survey.services.sittings.flow import check_questions
from tests import cast
from tests.statements import QueryCounts
from tests.survey.instruments import test_aid, test_evidence_in_steps, test_reasons
from tests.survey.sittings import test_waves

pytestmark = [pytest.mark.django_db, pytest.mark.query_counts("api"), pytest.mark.slow]
# However many answers a list has. An answer and the step after it are one request. Codes are checked against reasons.
# Of answers the first chunk needs the weights, which are over all stages. A move locks, records and counts again.
# These two reports read the answers themselves. The list of reports names the figures that exist.
MOST = {
    "GET": 11,
    "POST": 8,
    "POST report-files": 25,
    "POST stage-action": 12,
    "POST wave-invite": 12,
    "GET reports": 18,
    "GET answers": 15,
    "GET answers-csv": 14,
    "GET report: arms": 28,
    "GET report: composition": 17,
}


def reader() -> Client:
    user = User.objects.create_user("reader")
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    cast.join_all(user)
    client = Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})
    client.get("/api/v1/studies/")  # The token's time of use is written once a minute.
    return client


def runner_token() -> str:
    user = User.objects.create_superuser("runner")
    return ApiToken.issue(user=user, scope=ApiToken.Scope.RUN)[1]


def answer(counts: QueryCounts) -> None:
    """A respondent's whole sitting by the API."""
    client = Client()
    begin = partial(client.post, "/api/v1/studies/cast/sittings/", {"consent": True}, content_type="application/json")
    token = counts.count("POST sittings", begin).json()["token"]
    client = Client(headers={"X-Sitting-Token": token})
    step: dict[str, Any] = counts.count("GET sitting", partial(client.get, "/api/v1/sitting/")).json()
    while step["kind"] != "end":
        data = {"step": step["number"], "first_check": 1, "second_check": 1, "value": 60, "direction": "higher"}
        if step["kind"] == "checks":
            data |= right_options()
        elif step["kind"] == "item" and step["screen"]["name"] == "posterior":
            data["value"] = 70
        elif step["kind"] == "form":
            data = {"step": step["number"], "age": 30, "use": "never"}
        name = f"POST sitting: {step['kind']}" + (f", {step['screen']['name']}" if step.get("screen") else "")
        post = partial(client.post, "/api/v1/sitting/", data, content_type="application/json")
        response = counts.count(name, post)
        assert response.status_code == 200, response.json()
        step = response.json()


def right_options() -> dict[str, int]:
    """The places at which the sitting that was begun last is shown the right options."""
    sitting = Sitting.objects.select_related("stage__study").latest("pk")
    questions = check_questions(sitting, sitting.current_block)
    return {check.name: check.order.index(0) + 1 for check in questions}


def test_every_endpoint_takes_as_many_statements_as_are_committed(
    query_counts: QueryCounts, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.HUNCH_WEBHOOKS_INSIDE = True
    monkeypatch.setattr(weights, "_KNOWN", {})  # Nobody has read a page of these answers before.
    study = cast.open_study()
    count, anybody, researcher = query_counts.count, Client(), reader()
    anybody.get("/api/v1/studies/cast/")  # Once, so that this process keeps the study's file.
    count("GET study", partial(anybody.get, "/api/v1/studies/cast/"))
    answer(query_counts)
    inside = cast.begin(study)
    step = cast.walk(inside, until="item")
    person = Client(headers={"X-Sitting-Token": inside.token})
    send = partial(person.post, content_type="application/json")
    count("POST sitting-left", partial(send, "/api/v1/sitting/left/", {"step": step.number}))
    remark = {"position": 1, "screen": "prior", "report": "It is cut off."}
    assert count("POST sitting-report", partial(send, "/api/v1/sitting/report/", remark)).status_code == 200
    researcher.get("/api/v1/studies/cast/estimates/")  # Once, so that they are stored.
    for name, path in (
        ("studies", "/api/v1/studies/"),
        ("stages", "/api/v1/studies/cast/stages/"),
        ("answers", "/api/v1/studies/cast/answers/"),
        ("reports", "/api/v1/studies/cast/reports/"),
        ("leaderboard", "/api/v1/studies/cast/leaderboard/"),
        ("readings", "/api/v1/readings/?text_id=q1"),
        ("estimates", "/api/v1/studies/cast/estimates/"),
        ("report", "/api/v1/studies/cast/reports/alignment/"),
        ("overview", "/api/v1/studies/cast/overview/"),
        ("file", "/api/v1/studies/cast/file/"),
        ("stage", "/api/v1/studies/cast/stages/1/"),
        ("steps", "/api/v1/studies/cast/steps/"),
        ("runs", "/api/v1/studies/cast/runs/"),
    ):
        count(f"GET {name}", partial(researcher.get, path))
    for made, name in ((test_aid.answered_arms(), "arms"), (test_evidence_in_steps.answered_steps(), "composition")):
        cast.join_all(User.objects.get(username="reader"))
        get = partial(researcher.get, f"/api/v1/studies/{made.slug}/reports/{name}/")
        assert count(f"GET report: {name}", get).status_code == 200
    asking = cast.open_stage("why", instrument=test_reasons.ASKING)
    cast.join_all(User.objects.get(username="reader"))
    explained = test_reasons.explained(cast.full_of_answers(asking))
    (known, *_rest) = [reason.answer for reason in reasons_of(explained) if reason.text]
    codes = {"files": [SimpleUploadedFile("ann.csv", f"answer,code\n{known},alike\n".encode())]}
    coder = Client()
    coder.force_login(User.objects.get(username="reader"))
    send_files = partial(coder.post, "/api/v1/studies/why/reports/reasons/files/", codes)
    assert count("POST report-files", send_files).status_code == 200
    count("GET answers-csv", lambda: researcher.get("/api/v1/studies/cast/answers.csv").getvalue())
    job, _is_new = jobs.ask(study, "export", {}, by=User.objects.get(username="reader"))
    assert jobs.run(job.pk)
    count("GET jobs", partial(researcher.get, "/api/v1/studies/cast/jobs/"))
    count("GET job-kinds", partial(researcher.get, "/api/v1/studies/cast/job-kinds/"))
    file = count("GET job", partial(researcher.get, f"/api/v1/jobs/{job.pk}/")).json()["files"][0]
    count("GET job-file", lambda: researcher.get(file["url"]).getvalue())
    count("GET index", partial(anybody.get, "/api/v1/"))
    runner = Client(headers={"Authorization": f"Token {runner_token()}"})
    runner.get("/api/v1/studies/")  # The token's time of use is written once a minute.
    count("GET postings", partial(runner.get, "/api/v1/studies/cast/postings/"))
    made, _secret = receivers.add(
        study, kind=Receiver.Kind.WEBHOOK, address="http://127.0.0.1:9/", causes=[receivers.OFFERED[0].value]
    )
    deliveries.send_test(made)
    place = f"/api/v1/studies/cast/receivers/{made.pk}/"
    count("GET receivers", partial(runner.get, "/api/v1/studies/cast/receivers/"))
    count("GET receiver", partial(runner.get, place))
    count("POST receiver-test", partial(runner.post, f"{place}test/", content_type="application/json"))
    test_waves.study_in_wave_2()
    invite = partial(runner.post, "/api/v1/studies/waves/waves/2/invite/", content_type="application/json")
    assert count("POST wave-invite", invite).json()["invited"] == 3
    pause = partial(runner.post, "/api/v1/studies/cast/stages/1/pause/", content_type="application/json")
    response = query_counts.count("POST stage-action", pause)
    assert (response.status_code, response.json()["state"]) == (200, "paused")
    for pattern in urls.urlpatterns:
        assert any(name.split(" ")[1].rstrip(":") == pattern.name for name in query_counts.rows), pattern.name
    for name, number in query_counts.rows.items():
        assert number <= MOST.get(name, MOST[name.split(" ")[0]]), (name, number)
