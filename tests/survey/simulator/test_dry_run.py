"""A dry run: simulated people go through all stages of the test copy, and everything that a study shows is made."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from predictors.errors import Stopped
from survey.exceptions import StateRefused
from survey.models import Assignment, Job, Posting, Stage, Study
from survey.services.base import jobs as asked
from survey.services.results import reports
from survey.services.stages import jobs, lifecycle, test_stages
from survey.services.studies import test_copies
from survey.simulator import dry_run
from tests import cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.thorough]


def a_study(**overrides: Any) -> Study:
    """Two stages, the second of them drawn by what the first one teaches."""
    design = {"kind": "epsilon_greedy", "top_fraction": 0.2, "epsilon": 0.5}
    config: dict[str, Any] = {
        "stages": [{"sittings": 8}, {"sittings": 6, "design": design}],
        "predictor": {"name": "logistic"},
    }
    return cast.small_study(**{**config, **overrides})


@pytest.fixture
def one_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run makes one report, and says of those that have an obstacle which it is."""
    all_lines = reports.lines_of

    def lines_of(study: Study) -> list[reports.ReportLine]:
        lines = list(all_lines(study))
        quick = next(line for line in lines if not line.obstacle and line.entry.name != "paper")
        return [line for line in lines if line.obstacle or line is quick]

    monkeypatch.setattr(reports, "lines_of", lines_of)


def of_the_way(test: Any) -> Any:
    """What looks at the way through the stages. The first test makes all reports, and sends the same statements."""
    return pytest.mark.any_database(pytest.mark.usefixtures("one_report")(test))


@pytest.mark.every_database
def test_everything_is_filled_or_says_why_and_the_study_is_untouched(tmp_path: Path) -> None:
    study = a_study()
    said: list[str] = []
    report = dry_run.run(study, tmp_path, say=lambda done, total, words: said.append(f"{done}/{total} {words}"))
    copy = test_copies.find_copy(study)
    assert report.copy == copy.pk and report.people == 14 and report.notes == []
    assert [(stage["people"], stage["state"]) for stage in report.stages] == [(8, "frozen"), (6, "frozen")]
    by_name = {entry.name or entry.kind: entry.why for entry in report.filled}
    assert by_name["estimates"] == by_name["leaderboard"] == by_name["export"] == by_name["paper"] == ""
    assert "there is no study in which people answer questions" in by_name["human_calibration"]
    assert (tmp_path / "export" / "answers.csv").read_text().splitlines()[1].endswith(",1")
    assert list((tmp_path / "reports" / "paper").glob("*.csv"))
    assert any("person 8 of 8 in stage 1" in line for line in said)
    shares = [int(line.partition("/")[0]) for line in said if "/300" in line]
    assert shares == sorted(shares) and max(shares) <= 300
    assert not Assignment.objects.filter(slot__stage__study=study).exists()
    assert {stage.state for stage in study.stages.all()} == {"draft"} and not study.respondents.exists()


@of_the_way
def test_another_one_begins_anew_and_one_that_broke_off_goes_on(tmp_path: Path) -> None:
    study = a_study()
    first = dry_run.run(study, tmp_path / "1", people=2)

    def break_off(done: int, total: int, words: str) -> None:
        if "person 2 of 3 in stage 1" in words:
            raise Stopped

    with pytest.raises(Stopped):
        dry_run.run(study, tmp_path / "2", people=3, say=break_off)
    broken = test_copies.find_copy(study)
    assert broken.pk != first.copy and broken.respondents.count() >= 2
    last = dry_run.run(study, tmp_path / "3", people=3)
    assert last.copy == broken.pk
    assert [stage["people"] for stage in last.stages] == [3, 3]


@of_the_way
def test_a_walk_of_a_person_is_not_mixed_into_it(tmp_path: Path) -> None:
    study = a_study()
    walked = test_stages.open_copy(study).study
    cast.begin(walked)
    assert dry_run.run(study, tmp_path, people=2).copy != walked.pk


@of_the_way
def test_what_failed_between_two_stages_is_named_and_the_rest_is_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(held: Any) -> None:
        raise ValueError("no such thing")

    monkeypatch.setitem(jobs.RUNNERS, "train", fail)
    report = dry_run.run(a_study(), tmp_path, people=3)
    (note,) = report.notes
    assert note.startswith("stage 1 could not be gone through:") and "ValueError: no such thing" in note
    assert {entry.kind for entry in report.filled if not entry.why} >= {"estimates", "export"}
    assert [stage["state"] for stage in report.stages] == ["frozen", "draft"]


@of_the_way
def test_a_study_that_may_not_open_says_why(tmp_path: Path) -> None:
    study = a_study(data={})
    report = dry_run.run(study, tmp_path, people=2)
    assert report.people == 0 and "retention_until" in report.notes[0]
    assert all(entry.why for entry in report.filled if entry.kind == "estimates")


@of_the_way
def test_as_a_job_it_leaves_training_to_the_workers_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it waits, a worker of models does what was queued; the files hold everything."""
    study = a_study()

    def another_worker(_seconds: float) -> None:
        for step in jobs.due_steps():
            jobs.run_step(step.pk)

    monkeypatch.setattr(dry_run.time, "sleep", another_worker)
    job, is_new = asked.ask(study, "dry_run", {"people": ["3"]})
    assert is_new and asked.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE and [file["name"] for file in job.files] == ["small-dry-run.zip"]
    assert job.result["notes"] == [] and job.result["people"] == 6
    with asked.opened(job, "small-dry-run.zip") as file, zipfile.ZipFile(file) as archive:
        assert {"export/answers.csv", "estimates.json"} <= set(archive.namelist())


@of_the_way
def test_nobody_deletes_the_copy_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    study = a_study()
    seen: list[str] = []
    filled = dry_run._filled

    def delete_meanwhile(*arguments: Any) -> Any:
        with pytest.raises(StateRefused, match="a dry run goes on in small_test"):
            test_copies.delete_copy(study)
        seen.append("tried")
        return filled(*arguments)

    monkeypatch.setattr(dry_run, "_filled", delete_meanwhile)
    monkeypatch.setattr(
        dry_run.time, "sleep", lambda _seconds: [jobs.run_step(due_step.pk) for due_step in jobs.due_steps()]
    )
    job, _is_new = asked.ask(study, "dry_run", {"people": ["2"]})
    assert asked.run(job.pk) and seen == ["tried"]
    test_copies.delete_copy(study)


@of_the_way
def test_it_fills_the_copy_of_a_study_that_is_posted_and_open(tmp_path: Path) -> None:
    study = a_study(panel={**cast.PROLIFIC, "reward": 500})
    stage = lifecycle.open_stage(cast.stage_of(study))
    Posting.objects.create(
        study=study, stage=stage, panel="prolific", internal_name="x", reward=500, places=1, expected_minutes=1
    )
    assert dry_run.run(study, tmp_path, people=2).people == 4
    assert not study.respondents.exists() and Stage.objects.get(pk=stage.pk).arrivals == 0


@of_the_way
def test_the_command_says_what_was_filled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("dry_run", a_study().slug, out=tmp_path, people=2)
    said = capsys.readouterr().out
    assert "stage 1: 2 people, frozen" in said and "Export: filled" in said
    assert "not filled: " in said
