"""The Python client against the real server: create, open, watch, read, export, and what goes wrong."""

import hashlib
import hmac
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from hunch_client import EventRefused, Hunch, HunchAway, HunchError, Job, Study, event_of

from survey.models import ApiToken, JobStep
from survey.models import Study as StudyRow
from survey.operation import channels
from survey.services.base import jobs
from survey.services.results.export import files
from survey.services.stages import jobs as stage_jobs
from survey.services.stages import lifecycle
from tests import cast

ROOT = Path(__file__).resolve().parents[2] / "clients/python"


@pytest.fixture
def owner(db: None) -> User:
    user = User.objects.create_user("owner")
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="survey"))
    return user


def connected(live_server: Any, user: User, scope: str = ApiToken.Scope.RUN) -> Hunch:
    hunch = Hunch(live_server.url, token=ApiToken.issue(user=user, scope=scope)[1])
    hunch._http.pause = lambda _seconds: None
    return hunch


@pytest.fixture
def hunch(live_server: Any, owner: User) -> Iterator[Hunch]:
    with connected(live_server, owner) as client:
        yield client


@pytest.fixture
def study(hunch: Hunch, owner: User) -> Study:
    made = cast.open_study()
    cast.join(owner, made)
    cast.walk(cast.begin(made))
    return hunch.study("cast")


@pytest.mark.django_db(transaction=True)
class TestServed:
    @pytest.mark.thorough
    def test_a_study_is_created_opened_and_closed(self, hunch: Hunch, study: Study, tmp_path: Path) -> None:
        path = tmp_path / "study.toml"
        path.write_text(cast.study_text(slug="from-python"), encoding="utf-8")
        assert hunch.check(path).slug == "from-python"
        assert not StudyRow.objects.filter(slug="from-python").exists()
        made = hunch.create(path)
        assert made.file() == path.read_text(encoding="utf-8")
        assert made.overview().title == "A study of the cast" and "run" in made.overview().rights
        stage = made.stage(1).open()
        assert (stage.state, stage.slots, stage.study) == ("open", 12, made)
        assert stage.pause().state == "paused"
        assert stage.resume().state == "open"
        assert made.stage(1).close(now=True).state == "closing"
        assert {study.slug for study in hunch.studies()} == {"cast", "from-python"}

    def test_every_problem_of_a_file_comes_with_its_key(self, hunch: Hunch, study: Study) -> None:
        with pytest.raises(HunchError, match="exists already") as refused:
            hunch.create(cast.study_text())
        assert (refused.value.status, list(refused.value.fields)) == (422, ["slug"])
        assert refused.value.request_id

    def test_a_stage_is_planned_and_its_failed_steps_tried_again(self, hunch: Hunch, study: Study) -> None:
        hunch.create(cast.study_text(slug="planned"))
        assert hunch.study("planned").stage(1).plan().state == "planned"
        row = StudyRow.objects.get(slug="cast").stages.get(index=1)
        JobStep.objects.create(stage=row, kind="freeze", input_sha256="0" * 64, state="failed", error="it broke")
        with pytest.raises(HunchError, match="freeze answers after stage 1 failed: it broke"):
            study.wait_for(1, "frozen")
        assert study.stage(1).retry().retried == 1
        assert [step.state for step in study.steps()] == ["queued"]

    def test_a_study_is_watched_until_every_stage_is_frozen(self, hunch: Hunch, owner: User) -> None:
        row = cast.open_study(stages=[{"sittings": 4}])
        cast.join(owner, row)
        study = hunch.study("cast")
        moves = iter([lambda: cast.walk(cast.begin(row)), lambda: None, lambda: _freeze(row)])
        study._http.pause = lambda _seconds: next(moves)()
        seen = [(stages[0].state, stages[0].counted) for stages in study.watch(every=1)]
        assert seen == [("open", 0), ("open", 3), ("frozen", 3)]
        assert study.wait_for(1, "frozen").frozen_at is not None

    def test_answers_are_read_row_by_row_and_as_a_data_frame(self, study: Study) -> None:
        pandas = pytest.importorskip("pandas")
        rows = list(study.answers())
        frame = study.frame()
        assert len(rows) == len(frame) == 12
        counted = frame[frame["status"] == "counted"]
        assert counted["prior"].tolist() == [row["prior"] for row in rows if row["status"] == "counted"] == [60] * 3
        times = [name for name in frame.columns if name.endswith("_at")]
        assert times and all(isinstance(frame[name].dtype, pandas.DatetimeTZDtype) for name in times)
        assert study.csv() == "".join(files.answers_csv(StudyRow.objects.get(slug="cast"))).encode()
        assert list(study.answers(stage=2)) == [] and len(study.frame(stage=2)) == 0

    def test_all_pages_of_answers_are_read(self, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("survey.services.results.export.answers_file.CHUNK", 5)
        assert [row["slot"] for row in study.answers(stage=1)] == list(range(1, 13))

    @pytest.mark.thorough
    def test_the_figures_are_read(self, study: Study) -> None:
        assert study.estimates()["study"] == "cast"
        assert study.leaderboard() == [] and study.runs() == [] and study.postings() == []
        lines = study.reports()
        names = [line["name"] for line in lines]
        assert "<budget: Budget>" in map(repr, lines) and max(len(repr(line)) for line in lines) < 400
        assert study.report("budget")["report"] == "budget" and "budget" in names
        with pytest.raises(HunchError, match="no stage has a uniform pool"):
            study.report("alignment")

    def test_an_export_is_made_by_a_worker_and_downloaded(self, study: Study, tmp_path: Path) -> None:
        job = study.ask("export")
        assert study.ask("export").number == job.number  # The same while it is not over.
        study._http.pause = lambda _seconds: jobs.run(job.number)
        (path,) = job.wait().download(tmp_path / "new")
        assert path.name == "cast-export.zip" and path.read_bytes().startswith(b"PK")
        assert not list(path.parent.glob("*.part"))

    @pytest.mark.thorough
    def test_half_a_download_goes_on_and_a_wrong_one_begins_anew(self, study: Study, tmp_path: Path) -> None:
        job = study.ask("export")
        assert jobs.run(job.number)
        (path,) = job.refresh().download(tmp_path)
        whole = path.read_bytes()
        path.unlink()
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(whole[:100])
        asked: list[Any] = []
        study._http.client.event_hooks["request"] = [asked.append]
        assert job.download(tmp_path)[0].read_bytes() == whole
        assert asked[0].headers["Range"] == "bytes=100-"
        path.unlink()
        part.write_bytes(b"x" * 100)
        with pytest.raises(HunchError, match="is not what the server says"):
            job.download(tmp_path)
        assert job.download(tmp_path)[0].read_bytes() == whole

    def test_a_job_is_cancelled(self, study: Study) -> None:
        job = study.ask("export").cancel()
        assert job.is_over and study.jobs()[0].state == "cancelled"
        with pytest.raises(HunchError, match="is cancelled"):
            job.wait()

    def test_who_may_not_is_told_why(self, live_server: Any, hunch: Hunch, study: Study, owner: User) -> None:
        reading = connected(live_server, owner, ApiToken.Scope.READ)
        with pytest.raises(HunchError, match="only read") as refused:
            reading.study("cast").stage(1).pause()
        assert (refused.value.status, refused.value.code) == (403, "permission_denied")
        with pytest.raises(HunchError, match="no study"):
            hunch.study("nobody")
        with pytest.raises(HunchError) as unknown:
            Hunch(live_server.url, token="forged").studies()
        assert unknown.value.status == 401


def _freeze(row: StudyRow) -> None:
    stage_jobs.run_inline(lifecycle.close_stage(row.stages.get(index=1), now=True))


# What goes wrong on the way


def answering(hunch: Hunch, *answers: httpx.Response | Exception) -> list[httpx.Request]:
    """Let the server answer with these, one after the other."""
    asked: list[httpx.Request] = []
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        response = left.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    hunch._http.client = httpx.Client(transport=httpx.MockTransport(answer))
    return asked


@pytest.fixture
def alone() -> tuple[Hunch, list[float]]:
    hunch, pauses = Hunch("https://survey.example.org", token="secret"), []
    hunch._http.pause = pauses.append
    return hunch, pauses


AWAY = httpx.Response(503, json={"error": {"code": "unavailable", "message": "not now"}}, headers={"Retry-After": "7"})


def test_reading_is_tried_again_and_waits_as_the_server_asks(alone: tuple[Hunch, list[float]]) -> None:
    hunch, pauses = alone
    asked = answering(hunch, AWAY, httpx.ConnectError("no route"), httpx.Response(200, json=[]))
    assert hunch.studies() == [] and len(asked) == 3 and pauses == [7, 4]


def test_an_action_is_sent_again_only_where_nothing_was_done(alone: tuple[Hunch, list[float]]) -> None:
    hunch, _pauses = alone
    asked = answering(hunch, AWAY, httpx.ReadTimeout("late"))
    with pytest.raises(HunchAway, match="does not answer"):
        hunch.create('slug = "a"\n')
    assert len(asked) == 2


def test_a_server_that_stays_away_is_given_up(alone: tuple[Hunch, list[float]]) -> None:
    hunch, _pauses = alone
    asked = answering(hunch, *[AWAY] * 5)
    with pytest.raises(HunchAway, match="not now"):
        hunch.studies()
    assert len(asked) == 5


def test_an_answer_of_somebody_else_is_reported(alone: tuple[Hunch, list[float]]) -> None:
    hunch, _pauses = alone
    answering(hunch, httpx.Response(200, text="<html>"), httpx.Response(404, text="<html>"))
    with pytest.raises(HunchError, match="is this a Hunch server"):
        hunch.studies()
    with pytest.raises(HunchError, match="answered 404"):
        hunch.studies()


def test_the_token_goes_to_nobody_else(alone: tuple[Hunch, list[float]]) -> None:
    hunch, _pauses = alone
    with pytest.raises(ValueError, match="https"):
        Hunch("http://survey.example.org", token="secret")
    page = {"next": "https://elsewhere.example/?cursor=1", "results": []}
    asked = answering(hunch, httpx.Response(200, json=page))
    with pytest.raises(HunchError, match="somebody else"):
        list(Study("cast", hunch._http).answers())
    assert len(asked) == 1


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "..", ""])
def test_a_file_is_written_nowhere_else(alone: tuple[Hunch, list[float]], tmp_path: Path, name: str) -> None:
    hunch, _pauses = alone
    entry = {"name": name, "bytes": 1, "sha256": "0", "url": "/x"}
    job = Job(1, "export", "done", 100, "", 0, "", {}, [entry], "/x", hunch._http)
    with pytest.raises(HunchError, match="leads elsewhere"):
        job.download(tmp_path)


# Events


def test_an_event_is_believed_if_its_signature_is_right_and_new() -> None:
    body, now = json.dumps({"id": "evt_1"}).encode(), int(timezone.now().timestamp())
    header = channels.signature(body, at=now, secret="s" * 32)
    assert event_of(body, header, "s" * 32)["id"] == "evt_1"
    for wrong in (
        (body + b" ", header, "s" * 32),
        (body, header, "another"),
        (body, "", "s" * 32),
        (body, f"t=x,{header.split(',')[1]}", "s" * 32),
        (body, f"t={now + 1},{header.split(',')[1]}", "s" * 32),
        (body, f"t={now},v1=é", "s" * 32),
    ):
        with pytest.raises(EventRefused):
            event_of(*wrong)
    with pytest.raises(EventRefused, match="too old"):
        event_of(body, header, "s" * 32, now=now + 301)
    digest = hmac.new(b"s" * 32, f"{now}.".encode() + b"[]", hashlib.sha256).hexdigest()
    with pytest.raises(EventRefused, match="no event"):
        event_of(b"[]", f"t={now},v1={digest}", "s" * 32)


# The package


def test_the_client_needs_nothing_of_the_server() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"] == ["httpx"]
    allowed = {"httpx", "pandas", "hunch_client", *sys.stdlib_module_names}
    for path in (ROOT / "src/hunch_client").glob("*.py"):
        named = re.findall(r"(?m)^\s*(?:from|import) ([a-z_]+)", path.read_text(encoding="utf-8"))
        assert set(named) <= allowed, path.name


def test_every_call_of_the_readme_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    from hunch_client import Stage

    for name in re.findall(r"`study\.(\w+)\(", text):
        assert callable(getattr(Study, name)), name
    for name in re.findall(r"`(?:stage)?\.(\w+)\(", text):
        assert callable(getattr(Stage, name, None) or getattr(Job, name)), name


def test_the_version_of_the_api_is_the_one_that_the_client_knows(client: Client) -> None:
    assert client.get("/api/v1/").json()["version"] == "1"
