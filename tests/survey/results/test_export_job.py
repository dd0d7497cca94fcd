"""An export as a job: chosen tables, every format, counted, with checksums, and increments."""

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.utils import timezone

from survey.contracts.tables import Column
from survey.exceptions import HunchError
from survey.models import Exclusion, Job, Sitting, Study
from survey.services.base import jobs
from survey.services.results.export import answers_file, columns, files, formats, increments
from survey.services.results.export import job as export_job
from tests import cast
from tests.admin.conftest import study_in_its_second_stage, take_part
from tests.admin.test_pages import recruit_at_a_panel

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def study(db: None) -> Study:
    return study_in_its_second_stage()


def exported(study: Study, *, by: Any = None, **arguments: Any) -> zipfile.ZipFile:
    asked = {name: [value] if isinstance(value, str) else value for name, value in arguments.items()}
    job, _is_new = jobs.ask(study, "export", asked, by=by)
    assert jobs.run(job.pk), Job.objects.get(pk=job.pk).error
    job.refresh_from_db()
    with jobs.opened(job, job.files[0]["name"]) as file:
        return zipfile.ZipFile(io.BytesIO(file.read()))


def table(archive: zipfile.ZipFile, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(archive.read(f"{name}.csv").decode(), newline="")))


def lines(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in archive.read(f"{name}.jsonl").decode().splitlines()]


def manifest(archive: zipfile.ZipFile) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(archive.read("manifest.json"))
    return content


@pytest.mark.thorough
def test_it_holds_the_same_bytes_as_the_command_writes(study: Study, tmp_path: Path) -> None:
    archive = exported(study)
    files.write_export(study, tmp_path)
    for path in tmp_path.iterdir():
        if path.name not in ("audit.csv", "codebook.csv"):  # The audit has an entry more.
            assert archive.read(path.name) == path.read_bytes(), path.name
    assert set(archive.namelist()) - {path.name for path in tmp_path.iterdir()} == {"manifest.json", "SHA256SUMS"}


@pytest.mark.thorough
def test_every_file_has_its_checksum(study: Study) -> None:
    archive = exported(study, format=["csv", "parquet"], table=["answers", "sittings"])
    sums = dict(reversed(line.split("  ")) for line in archive.read("SHA256SUMS").decode().splitlines())
    assert set(sums) == set(archive.namelist()) - {"SHA256SUMS"}
    assert all(hashlib.sha256(archive.read(name)).hexdigest() == digest for name, digest in sums.items())


@pytest.mark.thorough
def test_formats_hold_the_same_with_their_types(study: Study) -> None:
    archive = exported(study, format=list(formats.FORMATS))
    for name, rows in manifest(archive)["rows"].items():
        if f"{name}.parquet" not in archive.namelist():
            continue
        as_csv, as_json = table(archive, name), lines(archive, name)
        as_parquet = pyarrow.parquet.read_table(io.BytesIO(archive.read(f"{name}.parquet")))
        assert len(as_csv) == len(as_json) == as_parquet.num_rows == rows, name
    answers = pyarrow.parquet.read_table(io.BytesIO(archive.read("answers.parquet")))
    kinds = {name: str(answers.schema.field(name).type) for name in ("prior", "weight", "completed_at", "item")}
    assert kinds == {"prior": "int64", "weight": "double", "completed_at": "timestamp[us, tz=UTC]", "item": "string"}
    first = next(row for row in answers.to_pylist() if row["status"] == "counted")
    same = next(row for row in lines(archive, "answers") if row["slot"] == first["slot"] and row["status"] == "counted")
    assert first["prior"] == same["prior"] == 60 and isinstance(same["responses"], list)
    assert first["completed_at"] == datetime.fromisoformat(same["completed_at"])
    text = next(row for row in table(archive, "answers") if row["status"] == "counted")
    assert text["prior"] == "60" and float(text["weight"]) == same["weight"]


def test_only_chosen_tables(study: Study) -> None:
    archive = exported(study, table=["sittings", "plan"])
    assert set(archive.namelist()) == {
        *("sittings.csv", "plan.csv", "codebook.csv", "codebook.md", "manifest.json", "SHA256SUMS")
    }
    assert {row["file"] for row in table(archive, "codebook")} == {"sittings.csv", "plan.csv"}
    sums = dict(reversed(line.split("  ")) for line in archive.read("SHA256SUMS").decode().splitlines())
    assert sums == {
        name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist() if name != "SHA256SUMS"
    }


def test_a_sitting_is_a_row_with_what_a_person_did(study: Study) -> None:
    rows = table(exported(study, table="sittings"), "sittings")
    assert len(rows) == study.respondents.count()
    done = next(row for row in rows if row["state"] == "complete")
    items = int(done["given"])
    assert items and int(done["answered"]) == items and done["checks_passed"] == "1"
    assert json.loads(done["condition"])["framing"] in ("plain", "warm") and json.loads(done["forms"])
    inside = next(row for row in rows if row["state"] == "live")
    assert inside["answered"] == "0" and not inside["ended_at"]


def test_an_increment_holds_the_sittings_since(study: Study) -> None:
    first = exported(study)
    moment = manifest(first)["next_since"]
    assert table(exported(study, since=moment), "answers") == []
    take_part(study, 203)
    later = exported(study, since=moment)
    rows = table(later, "answers")
    assert len({row["respondent"] for row in rows}) == 1 and len(table(later, "sittings")) == 1
    assert manifest(later)["since"] == moment
    before, now = table(first, "answers"), table(exported(study), "answers")
    known = {(row["stage"], row["slot"], row["respondent"]) for row in before}
    assert {(row["stage"], row["slot"], row["respondent"]) for row in now} - known == {
        (row["stage"], row["slot"], row["respondent"]) for row in rows
    }


@pytest.mark.parametrize("given", ["yesterday", "2030-13-01", "2999-01-01"])
def test_a_wrong_moment_is_refused(study: Study, given: str) -> None:
    with pytest.raises(HunchError, match=r"^since: "):
        jobs.ask(study, "export", {"since": [given]})


def test_rows_that_are_lost_are_noticed(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader skips a row: nothing is kept, and the job says so."""
    whole = answers_file.answer_rows
    monkeypatch.setattr(files, "answer_rows", lambda *arguments, **named: list(whole(*arguments, **named))[1:])
    job, _is_new = jobs.ask(study, "export", {})
    assert not jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == "failed" and "answers: " in job.error and job.files == []


@pytest.mark.parametrize("written", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("counted", [(2, 4), (4, 2)])
def test_rows_that_come_or_go_meanwhile_lie_between_both_counts(written: int, counted: tuple[int, int]) -> None:
    if 2 <= written <= 4:
        export_job._compare("answers", written, *counted)
        return
    with pytest.raises(HunchError, match=f"answers: {written} rows were written, and the database has"):
        export_job._compare("answers", written, *counted)


def test_pay_is_for_who_may_see_postings(study: Study) -> None:
    user = User.objects.create_user("ana", is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=["export_study", "view_posting"]))
    cast.join(user, study, "analyst", may_spend=False)
    recruit_at_a_panel(cast.stage_of(study), study.respondents.all()[0], "posted")
    assert {row["reward"] for row in table(exported(study, by=user, table="sittings"), "sittings")} == {""}
    assert {row["reward"] for row in table(exported(study, table="sittings"), "sittings")} != {""}


def test_the_command_makes_the_same_file(study: Study, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command(
        "export",
        study.slug,
        "--out",
        str(tmp_path),
        "--format",
        "jsonl",
        "--table",
        "answers",
        "--table",
        "plan",
        stdout=out,
    )
    archive = zipfile.ZipFile(tmp_path / f"{study.slug}-export.zip")
    assert len(lines(archive, "answers")) == manifest(archive)["rows"]["answers"]
    assert "for the next increment: --since " in out.getvalue()
    assert [path.name for path in tmp_path.iterdir()] == [f"{study.slug}-export.zip"]


def test_a_column_that_holds_something_else_is_named(tmp_path: Path) -> None:
    writer = formats.ParquetWriter(tmp_path / "odd.parquet", [Column("size", "number", "How large.", whole=True)])
    with pytest.raises(HunchError, match=r"odd: the column size is said to be 'number'"):
        writer.write([[1.5]])
    writer.write([])
    writer.write([[2]])
    writer.close()
    assert pyarrow.parquet.read_table(tmp_path / "odd.parquet").to_pydict() == {"size": [2]}


def test_an_increment_has_every_sitting_in_which_anything_was_stored_since(db: None) -> None:
    stage = cast.stage_of(cast.small_study("since"))
    since = timezone.now() - timedelta(hours=1)
    before = {"state": "expired", "last_seen_at": since - timedelta(seconds=1)}
    cast.sitting(stage, **before)
    changed = [cast.sitting(stage, **{**before, "last_seen_at": since})]
    changed += [cast.sitting(stage, **before, **{name: since}) for name in ("expired_at", "ended_at", "withdrawn_at")]
    excluded, excluded_before = (cast.sitting(stage, **before) for _person in range(2))
    changed.append(excluded)
    for sitting, decided_at in ((excluded, since), (excluded_before, before["last_seen_at"])):
        Exclusion.objects.create(stage=stage, sitting=sitting, flags=["speeder"], decided_at=decided_at)
    assert [*Sitting.objects.filter(increments.changed_since(since)).order_by("pk")] == changed
    assert Sitting.objects.filter(increments.changed_since(None)).count() == len(changed) + 2
    assert Exclusion.objects.get(increments.changed_since(since, "sitting__")).sitting == excluded


def test_since_reads_times_and_dates() -> None:
    read_since = increments.read_since
    assert read_since("") is None
    assert read_since("2024-02-01") == datetime(2024, 2, 1, tzinfo=UTC)
    assert read_since("2024-02-01T10:00:00+01:00") == datetime(2024, 2, 1, 9, tzinfo=UTC)
    assert read_since("2024-02-01T10:00:00") == datetime(2024, 2, 1, 10, tzinfo=UTC)


@pytest.mark.thorough
def test_every_table_of_an_export_has_rows_for_its_columns(study: Study) -> None:
    archive = exported(study)
    for entry in table(archive, "codebook"):
        rows = table(archive, entry["file"].removesuffix(".csv"))
        assert not rows or entry["column"] in rows[0]
    assert [column.name for column in columns.columns_of(study)] == list(table(archive, "answers")[0])
