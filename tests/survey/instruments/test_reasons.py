"""Reasons: by outcome and change, searched, sampled, coded; only those who may read answers see them."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from predictors.errors import PredictorError
from predictors.evaluation.agreement import agreement
from survey.exceptions import HunchError, StateRefused
from survey.instruments.belief_update.models import Explanation, ReasonCode
from survey.instruments.belief_update.reports.reasons.written import reasons_of
from survey.models import Assignment, AuditEntry, Response, Study
from survey.services.results import reports
from survey.services.sittings.withdrawal import withdraw
from tests import cast

pytestmark = pytest.mark.slow

WORDS = ("=1+1 they are alike", "<script>alert(1)</script>", "It is the SAME kind", "", "no idea, \nreally")
ASKING = {"kind": "belief_update", "options": {**cast.PLAIN, "explanation": "all"}}


def explained(stage: Any, words: Sequence[str] = WORDS) -> Study:
    """Every answer of the stage with a reason, in turn."""
    now = timezone.now()
    answers = Assignment.objects.filter(slot__stage=stage).order_by("slot__number")
    rows = Response.objects.bulk_create(
        Response(
            assignment=answer, number=3, screen="explanation", screen_sha256="0" * 64, answered_at=now, server_ms=9
        )
        for answer in answers
    )
    Explanation.objects.bulk_create(
        Explanation(response=row, text=words[place % len(words)]) for place, row in enumerate(rows)
    )
    return cast.stage_of(stage.study).study


@pytest.fixture
def study() -> Study:
    return explained(cast.full_of_answers(cast.open_stage(instrument=ASKING, stages=[{"sittings": 5}])))


def table(study: Study, name: str, **arguments: str) -> list[dict[str, Any]]:
    findings = reports.make(study, "reasons", {key: [value] for key, value in arguments.items()})
    (named_table,) = [table for table in findings.tables if table.name == name]
    return [dict(zip([column.name for column in named_table.columns], row, strict=True)) for row in named_table.rows]


@pytest.mark.django_db
def test_reasons_are_counted_by_outcome_and_change(study: Study) -> None:
    expected: Counter[tuple[str, str]] = Counter()
    for answer in Assignment.objects.select_related("slot__item__pair"):
        # Everybody begins at 50; an even place of the booklet ends at 70.
        change = "raised" if answer.position % 2 == 0 else "kept"
        expected["correct" if answer.slot.item.pair.outcome else "incorrect", change] += 1
    rows = table(study, "reason_counts")
    assert {(row["outcome"], row["change"]): row["asked"] for row in rows} == expected
    assert (sum(row["asked"] for row in rows), sum(row["written"] for row in rows)) == (15, 12)


@pytest.mark.django_db
def test_they_can_be_searched_and_chosen(study: Study) -> None:
    assert {row["reason"] for row in table(study, "reasons", search="same KIND")} == {"It is the SAME kind"}
    assert len(table(study, "reasons", search="same kind")) == 3
    assert "SAME" not in str(reports.make(study, "reasons", {"search": ["same kind"]}).data)
    raised = table(study, "reasons", change="raised", outcome="correct")
    assert raised and {(row["change"], row["outcome"]) for row in raised} == {("raised", "correct")}
    assert {row["posterior"] for row in raised} == {70}
    assert table(study, "reasons", search="nobody wrote this") == []
    with pytest.raises(HunchError, match="change: 'up' is none of raised, lowered, kept"):
        table(study, "reasons", change="up")


@pytest.mark.django_db
def test_a_sample_is_drawn_by_its_seed(study: Study) -> None:
    first = [row["answer"] for row in table(study, "reasons", sample="5", seed="1")]
    assert len(set(first)) == 5
    assert first == [row["answer"] for row in table(study, "reasons", sample="5", seed="1")]
    others = [[row["answer"] for row in table(study, "reasons", sample="5", seed=str(seed))] for seed in range(2, 6)]
    assert any(other != first for other in others)
    assert len(table(study, "reasons", sample="500")) == 12


@pytest.mark.django_db
def test_the_file_to_code_has_no_beliefs_and_nothing_that_a_spreadsheet_runs(study: Study) -> None:
    findings = reports.make(study, "reasons")
    (file,) = findings.files
    rows = list(csv.DictReader(io.StringIO(file.content().decode(), newline="")))
    assert list(rows[0]) == ["answer", "evidence", "target", "reason", "code"]
    assert len(rows) == 12 and {row["code"] for row in rows} == {""}
    assert "'=1+1 they are alike" in {row["reason"] for row in rows}


@pytest.mark.thorough
@pytest.mark.django_db
def test_the_page_withholds_them_from_those_who_may_not_export(study: Study) -> None:
    address = reverse("admin:survey_study_report", args=[study.pk, "reasons"])
    client = Client()
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_study"))
    cast.join(viewer, study, "viewer")
    client.force_login(viewer)
    body = client.get(address, {"search": "alike"}).content.decode()
    nothing = client.get(address, {"search": "not there"}).content.decode()
    assert "Reasons by outcome and change" in body and "they are alike" not in body
    # Nothing tells whether somebody wrote the words that were tried.
    for page in (body, nothing):
        assert "It holds what people wrote" in page
        assert "that fit" not in page and "reason fits" not in page and "12 have one" in page
    file = reverse("admin:survey_study_report_file", args=[study.pk, "reasons", "to_code.csv"])
    assert client.post(file).status_code == 403


@pytest.mark.django_db
def test_a_withdrawn_or_uncounted_answer_has_none(study: Study) -> None:
    Assignment.objects.filter(position=1).update(state="late")
    assert {reason.text for reason in reasons_of(study)} and len(reasons_of(study)) == 10


@pytest.mark.django_db
def test_studies_without_reasons_say_why() -> None:
    plain = cast.open_stage().study
    obstacles = {line.entry.name: line.obstacle for line in reports.lines_of(plain)}
    assert obstacles["reasons"].startswith("small: it does not ask for reasons; set explanation")
    asking = cast.open_stage("asking", instrument=ASKING).study
    with pytest.raises(StateRefused, match="asking: nobody has been asked for reasons yet"):
        reports.make(asking, "reasons")
    by_level = {"factor": "why", "levels": ["yes", "no"], "options": {"yes": {"explanation": "all"}}}
    some = cast.open_stage("some", conditions=[by_level]).study
    assert {line.entry.name: line.obstacle for line in reports.lines_of(some)}["reasons"] == ""


# Codes


def coded(study: Study, path: Path, code: Any) -> Path:
    """`to_code.csv` filled in; `code(row)` says what with."""
    (file,) = reports.make(study, "reasons").files
    rows = list(csv.DictReader(io.StringIO(file.content().decode(), newline="")))
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "code": code(row)} for row in rows)
    return path


def run(*arguments: Any) -> str:
    out = io.StringIO()
    call_command("reason_codes", "small", *map(str, arguments), stdout=out, stderr=io.StringIO())
    return out.getvalue()


def refused(*arguments: Any) -> str:
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("reason_codes", "small", *map(str, arguments), stdout=io.StringIO(), stderr=err)
    return err.getvalue()


@pytest.mark.django_db
def test_codes_come_back_with_the_agreement_of_their_coders(study: Study, tmp_path: Path) -> None:
    ann = coded(study, tmp_path / "ann.csv", lambda row: "alike" if "alike" in row["reason"] else "other")
    bob = coded(study, tmp_path / "bob.csv", lambda row: "alike" if row["reason"][:1] in "'I" else " other ")
    run(ann, bob, "--out", tmp_path / "out")
    with (tmp_path / "out/agreement.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["first"], row["second"], row["n"], row["agree"]) == ("ann", "bob", "12", "0.75")
    by_chance = 3 / 12 * 6 / 12 + 9 / 12 * 6 / 12
    assert float(row["kappa"]) == pytest.approx((0.75 - by_chance) / (1 - by_chance))
    assert float(row["low"]) <= float(row["kappa"]) <= float(row["high"])
    with (tmp_path / "out/alpha.csv").open(newline="") as file:
        (both,) = csv.DictReader(file)
    # With two coders and nothing missing, alpha is 1 - (n - 1) / n (1 - Scott's pi) for n codes.
    share = (3 + 6) / 24
    pi = 1 - 0.25 / (2 * share * (1 - share))
    assert [both[name] for name in ("coders", "n", "codes")] == ["ann, bob", "12", "24"]
    assert float(both["alpha"]) == pytest.approx(1 - 23 / 24 * (1 - pi))
    with (tmp_path / "out/codes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["n"]) for row in rows if row["coder"] == "ann") == 12
    assert {row["code"] for row in rows} == {"alike", "other"}


@pytest.mark.django_db
def test_one_coder_and_one_code_alone_have_no_kappa(study: Study, tmp_path: Path) -> None:
    ann = coded(study, tmp_path / "ann.csv", lambda row: "a")
    assert "There is one coder." in run(ann)
    assert "No reason has codes by two coders." in run(ann)
    text = run(ann, coded(study, tmp_path / "bob.csv", lambda row: "a"))
    assert "100.0 %" in text and "–" in text and "One code alone was given: no alpha." in text
    assert "both used one code alone, so that kappa is not defined." in text


@pytest.mark.django_db
def test_three_coders_with_gaps_have_one_alpha(study: Study, tmp_path: Path) -> None:
    codes = {
        "ann": lambda row: "alike" if "alike" in row["reason"] else "other",
        "bob": lambda row: "" if "SAME" in row["reason"] else "alike" if "alike" in row["reason"] else "other",
        "cy": lambda row: "alike" if "SAME" in row["reason"] else "",
    }
    text = run(*(coded(study, tmp_path / f"{name}.csv", code) for name, code in codes.items()), "--out", tmp_path / "o")
    assert "Agreement of all coders together" in text
    with (tmp_path / "o/alpha.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    # 3 reasons are "alike" twice, 6 "other" twice, 3 both: 12 units, 24 codes, 9 of one kind and 15 of the other.
    assert [row[name] for name in ("coders", "n", "codes")] == ["ann, bob, cy", "12", "24"]
    assert float(row["alpha"]) == pytest.approx(1 - 23 * 3 / (9 * 15))


@pytest.mark.django_db
def test_files_that_cannot_be_codes_are_refused_by_line_and_field(study: Study, tmp_path: Path) -> None:
    assert "code: is empty in every row; fill in at least one" in refused(
        coded(study, tmp_path / "empty.csv", lambda row: "")
    )
    (tmp_path / "odd.csv").write_text("answer,code\ns9n9,a\n")
    assert "odd.csv:2: answer: 's9n9' is no answer with a reason in this study" in refused(tmp_path / "odd.csv")
    (known, *_rest) = [reason.answer for reason in reasons_of(study) if reason.text]
    (tmp_path / "twice.csv").write_text(f"answer,code\n{known},a\n{known},b\n")
    assert f"twice.csv:3: answer: {known} stands twice" in refused(tmp_path / "twice.csv")
    (tmp_path / "other").mkdir()
    same = [coded(study, folder / "ann.csv", lambda row: "a") for folder in (tmp_path, tmp_path / "other")]
    assert "ann: two files have this name" in refused(*same)
    half = coded(study, tmp_path / "half.csv", lambda row: "a" if "alike" in row["reason"] else "")
    rest = coded(study, tmp_path / "rest.csv", lambda row: "" if "alike" in row["reason"] else "a")
    assert "half and rest: have coded no reason in common" in refused(half, rest)
    assert "has no column 'code'" in refused(_without_codes(tmp_path))


def sent(study: Study, folder: Path, **codes: Any) -> list[SimpleUploadedFile]:
    """A file for each coder, as a browser sends it."""
    return [
        SimpleUploadedFile(f"{name}.csv", coded(study, folder / f"{name}.csv", code).read_bytes())
        for name, code in codes.items()
    ]


def member(study: Study, role: str) -> Client:
    user = User.objects.create_user(role, is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=["view_study", "export_study"]))
    cast.join(user, study, role)
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.django_db
def test_the_page_takes_codes_back_and_shows_them_with_their_agreement(study: Study, tmp_path: Path) -> None:
    client, report = member(study, "analyst"), reverse("admin:survey_study_report", args=[study.pk, "reasons"])
    take = reverse("admin:survey_study_report_take", args=[study.pk, "reasons"])
    assert "Codes of the reasons" in client.get(report).content.decode()
    files = sent(study, tmp_path, ann=lambda row: "alike", bob=lambda row: "b" if row["reason"][:1] == "n" else "alike")
    page = client.post(take, {"files": files}, follow=True).content.decode()
    assert "Stored 24 codes: 12 by ann, 12 by bob." in page and "Agreement of the coders" in page
    entry = AuditEntry.objects.get(action="take_report_files")
    assert (entry.study, entry.via, entry.detail["report"]) == (study.slug, "admin", "reasons")
    assert [sorted(file) for file in entry.detail["files"]] == [["bytes", "sha256"]] * 2
    assert "ann" not in str(entry.detail)
    assert [row["n"] for row in table(study, "agreement")] == [12]
    # A coder's new file takes the place of the one before; the others stay.
    client.post(take, {"files": sent(study, tmp_path, ann=lambda row: "new" if "alike" in row["reason"] else "")})
    assert {row["code"] for row in table(study, "codes") if row["coder"] == "ann"} == {"new"}
    assert ReasonCode.objects.filter(coder="ann").count() == 3 and ReasonCode.objects.filter(coder="bob").count() == 12


@pytest.mark.django_db
def test_of_several_files_with_one_fault_none_is_stored(study: Study, tmp_path: Path) -> None:
    client, take = member(study, "analyst"), reverse("admin:survey_study_report_take", args=[study.pk, "reasons"])
    good = sent(study, tmp_path, ann=lambda row: "a")[0]
    (known, *_rest) = [reason.answer for reason in reasons_of(study) if reason.text]
    cases = [
        (b"answer,code\ns9n9,a\n", "bad.csv:2: answer: &#x27;s9n9&#x27; is no answer with a reason"),
        (f"answer,code\n{known},{'x' * 81}\n".encode(), "bad.csv:2: code: must have at most 80 printable characters"),
        (b"\xff\xff", "bad.csv:1: file: byte 1 of this line is not UTF-8"),
        (b"x" * (512 * 1024 + 1), "bad.csv: has 524,289 bytes, and 524,288 are taken"),
    ]
    for content, problem in cases:
        good.seek(0)
        answer = client.post(take, {"files": [good, SimpleUploadedFile("bad.csv", content)]})
        assert answer.status_code == 422 and problem in answer.content.decode(), problem
    assert "choose 1 to 5 files, not 0" in client.post(take).content.decode()
    good.seek(0)
    long = SimpleUploadedFile("n" * 61 + ".csv", good.read())
    assert "which names the coder, must have 1 to 60" in client.post(take, {"files": [long]}).content.decode()
    assert not ReasonCode.objects.exists() and not AuditEntry.objects.filter(action="take_report_files").exists()


@pytest.mark.django_db
def test_who_may_not_export_sends_no_codes(study: Study, tmp_path: Path) -> None:
    viewer, take = member(study, "viewer"), reverse("admin:survey_study_report_take", args=[study.pk, "reasons"])
    assert viewer.post(take, {"files": sent(study, tmp_path, ann=lambda row: "a")}).status_code == 403
    report = reverse("admin:survey_study_report", args=[study.pk, "reasons"])
    assert "take-files" not in viewer.get(report).content.decode()
    address = f"/api/v1/studies/{study.slug}/reports/reasons/files/"
    assert viewer.post(address, {"files": sent(study, tmp_path, ann=lambda row: "a")}).status_code == 403
    analyst = member(study, "analyst")
    assert analyst.get(take).status_code == 405
    other = reverse("admin:survey_study_report_take", args=[study.pk, "alignment"])
    assert analyst.post(other, {"files": sent(study, tmp_path, ann=lambda row: "a")}).status_code == 404
    assert not ReasonCode.objects.exists()


@pytest.mark.django_db
def test_the_api_takes_codes_back(study: Study, tmp_path: Path) -> None:
    client, address = member(study, "analyst"), f"/api/v1/studies/{study.slug}/reports/reasons/files/"
    answer = client.post(address, {"files": sent(study, tmp_path, ann=lambda row: "a", bob=lambda row: "b")})
    assert answer.status_code == 200 and answer.json() == {"stored": "Stored 24 codes: 12 by ann, 12 by bob."}
    report = client.get(f"/api/v1/studies/{study.slug}/reports/reasons/").json()
    assert {table["name"] for table in report["tables"]} >= {"agreement", "codes"}
    wrong = client.post(address, {"files": [SimpleUploadedFile("bad.csv", b"answer,code\ns9n9,a\n")]})
    assert wrong.status_code == 422 and "s9n9" in str(wrong.json())
    assert client.post(f"/api/v1/studies/{study.slug}/reports/alignment/files/").status_code == 404


@pytest.mark.django_db
def test_the_command_stores_codes_and_a_withdrawal_deletes_them(study: Study, tmp_path: Path) -> None:
    ann = coded(study, tmp_path / "ann.csv", lambda row: "a")
    assert "Stored 12 codes: 12 by ann." in run(ann, "--store")
    person = ReasonCode.objects.select_related("explanation__response__assignment__sitting__respondent")[0]
    respondent = person.explanation.response.assignment.sitting.respondent
    own = ReasonCode.objects.filter(explanation__response__assignment__sitting__respondent=respondent).count()
    withdraw(respondent=respondent, now=timezone.now())
    assert own and ReasonCode.objects.count() == 12 - own


def _without_codes(folder: Path) -> Path:
    (folder / "none.csv").write_text("answer\ns1n1\n")
    return folder / "none.csv"


@pytest.mark.thorough
def test_kappa_is_that_of_scikit_learn_and_its_interval_covers() -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 20_000)
    noisy = [np.where(rng.random(20_000) < 0.8, truth, rng.integers(0, 3, 20_000)) for _ in range(2)]
    expected = float(cohen_kappa_score(*noisy))
    covered = 0
    for _ in range(60):
        rows = rng.integers(0, 20_000, 150)
        first, second = ([str(code) for code in codes[rows]] for codes in noisy)
        measured = agreement(first, second, rng=rng, samples=200)
        assert measured["kappa"] == pytest.approx(cohen_kappa_score(first, second))
        assert measured["interval"] is not None
        covered += measured["interval"][0] <= expected <= measured["interval"][1]
    assert covered >= 51


def test_agreement_needs_a_code_by_both_for_each_text() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(PredictorError, match="codes: 1 and 0 codes"):
        agreement(["a"], [], rng=rng)
    assert agreement(["a", "a"], ["a", "a"], rng=rng)["kappa"] is None
