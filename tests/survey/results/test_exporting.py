"""The export: exact bytes, every slot, no ids, a codebook that matches, and a cost that does not grow with the rows."""

import csv
import json
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.contracts import instruments
from survey.contracts.panels import PanelIds
from survey.contracts.tables import Column, ExtraFile
from survey.figures import csv_lines
from survey.instruments.belief_update.export import BeliefExport
from survey.instruments.belief_update.instrument import BeliefUpdate
from survey.models import Assignment, AuditEntry, AuditSeal, PanelIdentity, Sitting, Slot, Stage, Study
from survey.services.base import audit_chain
from survey.services.base.auditing import record
from survey.services.plans.candidates import SCORE
from survey.services.results.export import answers_file, columns, contents, files, proof_files, sitting_files
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.expiry import deal_make_up_booklets, expire_sitting
from tests import cast
from tests.survey.filled import NO_ROLES

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
CODEBOOK = Path(__file__).parents[3] / "docs/codebook.md"


def rows_of(study: Study, **options: int) -> list[dict[str, str]]:
    text = "".join(files.answers_csv(study, **options))
    return list(csv.DictReader(StringIO(text, newline="")))


@pytest.fixture
def study() -> Study:
    """One person has finished, one has given a prior, two booklets are untaken."""
    study = cast.open_study(conditions=[{"factor": "framing", "levels": ["ai", "human"]}])
    cast.walk(cast.begin(study))
    cast.walk(cast.begin(study), until="item", screen="posterior")
    return study


def test_a_stage_without_listed_candidates_hides_none_of_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It draws without scores, is not planned, lists all there are, or its file is gone from the storage."""
    study = cast.small_study(stages=[{"sittings": 1}] * 5, sitting={"items": 1}, **NO_ROLES)
    drawn = [("uniform", {"sha256": "a"}), ("top", {}), ("top", {"sha256": "b", "kind": "exhaustive"})]
    drawn += [("top", {"sha256": "gone"}), ("top", {"sha256": "there", "kind": "pool"})]
    for index, (design, candidates) in enumerate(drawn, start=1):
        manifest = {"design": {"kind": design}, "candidates": candidates}
        study.stages.filter(index=index).update(manifest=manifest)
    rows = np.array([(0.25,), (0.75,)], dtype=[(SCORE, np.float64)])
    stored = dict.fromkeys(("a", "b", "there"), rows)
    monkeypatch.setattr(proof_files.files, "load_array", lambda sha256: stored[sha256])
    monkeypatch.setattr(proof_files, "planned_questions", lambda stage: [])
    monkeypatch.setattr(BeliefUpdate, "item_key", lambda self, row, questions: f"scored {row[SCORE]}")
    (file,) = (file for file in proof_files.proof_files(study) if file.name == "candidates.csv")
    assert list(file.rows) == [
        ["small", 5, "scored 0.25", 0.25, None, None],
        ["small", 5, "scored 0.75", 0.75, None, None],
    ]


def test_every_slot_has_its_row_taken_or_not(study: Study) -> None:
    rows = rows_of(study)
    assert [int(row["slot"]) for row in rows] == list(range(1, 13))
    assert sorted(row["status"] for row in rows) == ["counted"] * 3 + ["live"] * 3 + ["untaken"] * 6
    done = [row for row in rows if row["status"] == "counted"]
    assert {(row["prior"], row["posterior"], row["change"], row["belief_change"]) for row in done} == {
        ("60", "70", "10", "1")
    }
    assert sorted(int(row["position"]) for row in done) == [1, 2, 3]
    assert len({row["respondent"] for row in done}) == 1
    stage = study.stages.get(index=1)
    for row in rows:
        assert float(row["inclusion_probability"]) == 12 / stage.candidate_set.size
        assert float(row["pool_probability"]) == stage.candidate_set.probability


def test_condition_and_responses_stand_as_json(study: Study) -> None:
    row = next(row for row in rows_of(study) if row["status"] == "counted")
    assert json.loads(row["condition"])["framing"] in ("ai", "human")
    assert json.loads(row["condition_probability"]) == {"framing": 0.5}
    responses = json.loads(row["responses"])
    assert [(r["number"], r["screen"]) for r in responses] == [(1, "prior"), (2, "posterior")]
    assert responses[0]["answered_at"] < responses[1]["answered_at"] == row["completed_at"]


def test_levels_of_items_stand_beside_those_of_their_sitting_and_filter_the_rows(tmp_path: Path) -> None:
    study = cast.open_study(
        conditions=[
            {"factor": "framing", "levels": ["ai", "human"]},
            {"factor": "mode", "levels": ["field", "choice", "slider"], "per": "item"},
        ]
    )
    sitting = cast.begin(study)
    cast.walk(sitting)
    own = sitting.levels()["framing"]
    counted = [row for row in rows_of(study) if row["status"] == "counted"]
    drawn = [json.loads(row["condition"]) for row in counted]
    assert sorted(row["mode"] for row in drawn) == ["choice", "field", "slider"]
    assert {row["framing"] for row in drawn} == {own}
    assert json.loads(counted[0]["condition_probability"]) == {"framing": 0.5, "mode": 1 / 3}
    (row,) = csv.DictReader(
        StringIO("".join(files.answers_csv(study, levels={"mode": "field", "framing": own})), newline="")
    )
    assert json.loads(row["condition"]) == {"framing": own, "mode": "field"}
    whole, slot_by_slot = (
        [row for chunk in answers_file.chunks(study, stage=None, levels={}, size=size) for row in chunk.rows]
        for size in (0, 1)
    )
    assert slot_by_slot == whole
    call_command("export", "cast", out=tmp_path, condition=["mode=choice"])
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 2
    assert len((tmp_path / "belief_changes.csv").read_text().splitlines()) == 2
    assert "Only answers under mode=choice are in answers.csv" in (tmp_path / "codebook.md").read_text()
    assert AuditEntry.objects.get(action="export_answers").detail["condition"] == {"mode": "choice"}


def test_a_slot_given_back_and_answered_by_another_has_two_rows(study: Study) -> None:
    expire_sitting(Sitting.objects.get(state=Sitting.State.LIVE).pk, now=timezone.now())
    deal_make_up_booklets(study.stages.get(index=1))
    for _visitor in range(3):
        cast.walk(cast.begin(study))
    rows = rows_of(study)
    by_slot: dict[str, list[str]] = {}
    for row in rows:
        by_slot.setdefault(row["slot"], []).append(row["status"])
    assert sorted(map(tuple, by_slot.values())) == [("counted",)] * 9 + [("released", "counted")] * 3
    assert {row["booklet_kind"] for row in rows} == {"main", "make_up"}


ROUGH = (
    'a "quoted", text',
    "a line\nand a line\r\nand a lone \r return",
    "nothing but a lone \r return",
    " leading and trailing ",
    "=SUM(A1:A9)",
    "é 漢 🎲 \t tab",
    "nan",
    "<b>x</b><br>$a<b$ <MISSING CONDITION>",
    '"',
)


def test_texts_come_back_byte_for_byte() -> None:
    cast.bank(40, texts=tuple(f"{text} {n}" for n, text in enumerate(ROUGH * 5)))
    study = cast.open_study()
    cast.walk(cast.begin(study))
    bank = {question.external_id: question.text for question in study.bank.questions.all()}
    counted = [row for row in rows_of(study) if row["status"] == "counted"]
    assert counted
    for row in counted:
        assert row["evidence_text"] == bank[row["evidence_id"]]
        assert row["target_text"] == bank[row["target_id"]]


@pytest.mark.parametrize("text", ROUGH)
def test_a_text_survives_the_csv(text: str) -> None:
    line = csv_lines.csv_line([1, text, None, 0.1, True, text])
    assert list(csv.reader(StringIO(line, newline=""))) == [["1", text, "", "0.1", "1", text]]


@pytest.mark.thorough
def test_no_panel_id_is_in_any_file(tmp_path: Path) -> None:
    study = cast.open_study(panel=cast.PROLIFIC)
    ids = PanelIds("prolific", "PERSON5f8d0d55", "STUDY60d9aade", "SESSION60e1aade")
    cast.walk(begin_sitting(study=study, ids=ids))
    files.write_export(study, tmp_path)
    hashes = PanelIdentity.objects.get()
    for path in tmp_path.iterdir():
        text = path.read_text(encoding="utf-8")
        for secret in ("PERSON5f8d", "STUDY60d9", "SESSION60e1", hashes.person_hash, hashes.submission_hash):
            assert secret not in text


def test_the_papers_file_holds_counted_draws_alone(study: Study, tmp_path: Path) -> None:
    first = Assignment.objects.filter(state=Assignment.State.COUNTED).order_by("pk").first()
    assert first is not None
    Slot.objects.filter(pk=first.slot_id).update(role=Slot.Role.CONTROL, control_kind="no_evidence")
    extra = next(iter(contents.extra_files(study)))
    assert [column.name for column in extra.columns] == [
        "q1", "q2", "source1", "source2", "previous_correct", "belief_change"
    ]  # fmt: skip
    assert len(list(extra.rows)) == 2


@pytest.mark.thorough
def test_only_an_export_reads_the_answers_for_the_instruments_files(
    study: Study, tmp_path: Path, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an instrument makes its rows at once: lists of files and codebooks need their names alone."""
    read: list[int] = []

    def eager(self: BeliefExport, assignments: Iterable[Assignment]) -> list[ExtraFile]:
        rows = [(assignment.pk,) for assignment in assignments]
        read.append(len(rows))
        return [ExtraFile("eager.csv", (Column("answer", "number", "Its key."),), rows)]

    monkeypatch.setattr(BeliefExport, "extra_files", eager)
    page = admin_client.get(f"/admin/survey/study/{study.pk}/change/").content.decode()
    assert "eager.csv" in page
    other = admin_client.post(f"/admin/survey/study/{study.pk}/export/checks.csv")
    assert other.status_code == 200 and not any(read)
    response = admin_client.post(f"/admin/survey/study/{study.pk}/export/eager.csv")
    assert len(response.getvalue().splitlines()) == 4
    assert [count for count in read if count] == [3]
    files.write_export(study, tmp_path)
    assert [count for count in read if count] == [3, 3]
    assert len((tmp_path / "eager.csv").read_text().splitlines()) == 4
    assert "eager.csv,answer" in (tmp_path / "codebook.csv").read_text()


def test_what_is_wanted_now_stays_where_too_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_file, "KEPT", 3)
    cache = {1: "a", 2: "b"}
    assert answers_file._make_room(cache, [3, 2]) == [3] and cache == {1: "a", 2: "b"}
    assert answers_file._make_room(cache, [4, 3, 2]) == [3, 4] and cache == {2: "b"}
    assert answers_file._make_room(cache, [2]) == []


def test_a_studys_audit_begins_at_the_seal_before_its_first_entry() -> None:
    other = cast.small_study("other")
    audit_chain.seal_entries()
    before = AuditSeal.objects.order_by("number").last()
    study = cast.small_study("own")
    record("open_stage", other, by=None)
    audit_chain.seal_entries()
    record("open_stage", study, by=None)
    rows = [*ExtraFile.of("audit.csv", proof_files.AUDIT, proof_files._audit(study)).rows]
    assert before is not None and (rows[0][0], rows[0][2]) == (before.number + 1, before.sha256)
    seals = [row for row in rows if row[0] is not None]
    assert [row[0] for row in seals] == [*range(before.number + 1, audit_chain.head().number + 1)]
    assert [row[2] for row in seals[1:]] == [row[5] for row in seals[:-1]]
    own = list(AuditEntry.objects.filter(study="own").order_by("pk").values_list("pk", flat=True))
    assert [row[1] for row in rows if row[6] is not None] == own and rows[-1][0] is None


def test_words_are_those_of_an_option_that_is_still_there() -> None:
    check: Any = SimpleNamespace(options=["yes", "no"])
    blank = sitting_files.CheckAnswer(*[None] * len(sitting_files.CheckAnswer._fields))  # type: ignore[arg-type]
    answers = [blank._replace(check=check, answer=1), blank._replace(check=check, answer=2), blank._replace(answer=0)]
    assert [answer.words for answer in answers] == ["no", None, None]


def test_a_pilot_weighs_nothing_in_the_answers_of_its_study() -> None:
    study = cast.open_study(stages=[{"sittings": 2, "pilot": True}, {"sittings": 2}])
    weighed: list[list[int]] = []

    def weighing(_study: Study, _levels: object, stages: list[Stage]) -> dict[int, float]:
        weighed.append([stage.index for stage in stages])
        return {}

    assert [*answers_file.chunks(study, stage=1, levels={}, weighing=weighing)]
    assert weighed == [[]]


def test_one_stage_can_be_read_alone(study: Study) -> None:
    assert len(rows_of(study, stage=1)) == 12
    assert rows_of(study, stage=2) == []


@pytest.mark.thorough
def test_the_number_of_queries_does_not_depend_on_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def queries(slug: str, sittings: int) -> int:
        study = cast.open_study(slug=slug, stages=[{"sittings": sittings}])
        for _visitor in range(sittings):
            cast.walk(cast.begin(study))
        with CaptureQueriesContext(connection) as captured:
            assert len(rows_of(study)) == 3 * sittings
        return len(captured)

    with monkeypatch.context() as patch:
        patch.setattr(answers_file, "CHUNK", 500)  # Small for all other tests.
        assert queries("few", 2) == queries("many", 8)
    monkeypatch.setattr(answers_file, "CHUNK", 6)
    study = Study.objects.get(slug="many")
    with CaptureQueriesContext(connection) as captured:
        assert [int(row["slot"]) for row in rows_of(study)] == list(range(1, 25))
    assert len(captured) <= 2 + 5 * 12


def test_the_codebook_in_the_docs_is_what_an_export_writes(
    study: Study, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    files.write_export(study, tmp_path)
    written = (tmp_path / "codebook.md").read_text(encoding="utf-8")
    if request.config.getoption("--renew"):
        CODEBOOK.write_text(written, encoding="utf-8")
    assert written == CODEBOOK.read_text(encoding="utf-8"), "run python -m tests.renew codebook"


def test_the_codebook_lists_the_columns_of_every_file(study: Study, tmp_path: Path) -> None:
    files.write_export(study, tmp_path)
    with (tmp_path / "codebook.csv").open(encoding="utf-8", newline="") as file:
        entries = list(csv.DictReader(file))
    for name in ("answers.csv", "belief_changes.csv", "leaderboard.csv"):
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            assert next(csv.reader(file)) == [entry["column"] for entry in entries if entry["file"] == name]
    assert all(entry["description"] for entry in entries)


@pytest.mark.thorough
def test_the_command_says_what_it_wrote(study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    call_command("export", "cast", "--out", str(out))
    output = capsys.readouterr().out
    assert f"wrote {out}/answers.csv (12 rows)" in output
    assert f"wrote {out}/belief_changes.csv (3 rows)" in output
    assert sorted(path.name for path in out.iterdir()) == [
        "agreement.csv", "amendments.csv", "answers.csv", "arm_differences.csv", "arms.csv", "audit.csv",
        "belief_changes.csv", "calibration.csv",
        "candidates.csv", "check.R", "checks.csv", "codebook.csv", "codebook.md", "design.csv", "domination.csv",
        "domination_deployed.csv",
        "estimates.csv", "figures.csv", "forms.csv", "formulas.R", "gaps.csv",
        "leaderboard.csv", "leaving.csv", "looks.csv", "majorities.csv",
        "noise.csv", "plan.csv", "practice.csv", "question_reports.csv", "questions.csv", "reliability.csv",
        "runs.csv", "sittings.csv", "slots.csv", "stages.csv",
        "steps.csv", "unfinished_screens.csv",
    ]  # fmt: skip
    assert AuditEntry.objects.filter(action="export_answers", subject="cast").count() == 1


def test_an_unknown_study_is_one_line_and_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        call_command("export", "nobody", "--out", str(tmp_path / "out"))
    assert stopped.value.code == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_one_line_and_status_1(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        call_command("export", "cast", "--out", str(tmp_path / "file" / "out"))
    assert "cannot be written" in capsys.readouterr().err


def test_an_export_that_breaks_leaves_the_old_file_whole(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write_export(study, tmp_path)
    before = (tmp_path / "answers.csv").read_bytes()

    def broken(*_given: object) -> list[object]:
        raise RuntimeError("half way")

    monkeypatch.setattr(answers_file._Reader, "_row", broken)
    with pytest.raises(RuntimeError):
        files.write_export(study, tmp_path)
    assert (tmp_path / "answers.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("name", instruments.names())
def test_no_column_of_an_instrument_has_a_name_of_ours(name: str) -> None:
    header = [
        column.name
        for column in (*columns.BEFORE, *instruments.kind(name)().export.columns, *columns.AFTER, columns.IS_TEST)
    ]
    assert [name for name in header if header.count(name) > 1] == []
