"""`tools/verify_study.py` on exported studies: what is right passes, and what somebody has changed is found."""

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from survey.models import AuditEntry, Stage
from survey.services.base import audit_chain, auditing
from survey.services.base.hashing import digest
from survey.services.results.export import files
from survey.services.sittings import withdrawal
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.golden import store
from tests.golden.test_golden import STUDIES, golden, loaded, study_of
from tools import verify_study

pytestmark = pytest.mark.django_db
__all__ = ["golden", "loaded"]


@pytest.fixture(scope="module")
def exported(loaded: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of the study with four stages, with a sealed audit and one entry that is not sealed. Its rows stay in
    the database for all tests here, as those of `loaded` do."""
    folder = tmp_path_factory.mktemp("exported")
    with django_db_blocker.unblock(), override_settings(HUNCH_IDENTITY_KEY=store.IDENTITY_KEY):
        audit_chain.seal_entries()
        study = study_of("beliefs")
        auditing.record("export_answers", study)
        files.write_export(study, folder)
    return folder


@pytest.fixture
def beliefs(exported: Path, golden: None, tmp_path: Path) -> Path:
    """A copy of that export, to be changed."""
    return shutil.copytree(exported, tmp_path / "beliefs")


def change(folder: Path, name: str, changed: Callable[[list[dict[str, str]]], Any]) -> None:
    """Change the rows of one file of an export."""
    rows = verify_study.read(folder, name)
    columns = list(rows[0])
    changed(rows)
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def faults(folder: Path) -> list[str]:
    """Of the golden studies, which are older than the hashes of snapshots and assignments in the audit."""
    return verify_study.verify(folder, older=True).faults


@pytest.mark.slow
@pytest.mark.parametrize("slug", STUDIES)
def test_what_earlier_code_stored_is_right(golden: None, slug: str, tmp_path: Path) -> None:
    audit_chain.seal_entries()
    files.write_export(study_of(slug), tmp_path)
    verification = verify_study.verify(tmp_path, audit_chain.head().sha256, older=True)
    assert verification.faults == []
    stages = Stage.objects.filter(study__slug=slug).count()
    assert sum("the hash of a plan" in line for line in verification.checked) == stages
    assert sum("probabilities to 1e-12" in line for line in verification.checked) == stages


def test_it_says_what_it_checked_and_what_it_cannot(beliefs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_study.main([str(beliefs), "--older"]) == 0
    printed = capsys.readouterr().out
    assert "checked: stage 3: the hash of a plan of 60 slots" in printed
    assert "scores and strata of 40 sampled slots among 600 candidates" in printed
    assert "not checked: the snapshots' hashes of answers, which are keyed" in printed
    assert f"head: seal 236, {audit_chain.head().sha256}; not sealed: 1" in printed
    assert printed.endswith("nothing is wrong\n")


@pytest.mark.parametrize("role", ["sampled", "holdout"])
def test_one_changed_digit_of_a_probability_is_found(beliefs: Path, role: str) -> None:
    def add_a_little(rows: list[dict[str, str]]) -> None:
        row = next(row for row in rows if row["stage"] == "3" and row["role"] == role)
        row["inclusion_probability"] = repr(float(row["inclusion_probability"]) + 1e-11)

    change(beliefs, "answers.csv", add_a_little)
    messages = faults(beliefs)
    assert any("inclusion_probability is" in fault for fault in messages)
    assert any("the plan's hash" in fault for fault in messages)


def test_a_probability_that_was_changed_everywhere_is_found(beliefs: Path) -> None:
    """Also where the hashes of the plan were made again with it."""

    def halve(rows: list[dict[str, str]]) -> None:
        for row in rows:
            if row["stage"] == "3" and row["stratum"] == "top":
                row["inclusion_probability"] = repr(float(row["inclusion_probability"]) / 2)

    change(beliefs, "answers.csv", halve)
    rows = [row for row in verify_study.read(beliefs, "answers.csv") if row["stage"] == "3"]
    firsts = {int(row["slot"]): row for row in reversed(rows) if row["booklet_kind"] == "main"}
    sha256 = digest([verify_study.facts_of(firsts[slot]) for slot in sorted(firsts)])

    def with_hash(stages: list[dict[str, str]]) -> None:
        manifest = {**json.loads(stages[2]["manifest"]), "plan_sha256": sha256}
        stages[2] |= {"plan_sha256": sha256, "manifest": json.dumps(manifest)}

    change(beliefs, "stages.csv", with_hash)
    messages = faults(beliefs)
    assert not any("the plan's hash" in fault for fault in messages)
    assert any("inclusion_probability is" in fault for fault in messages)
    assert any("plan_sha256 is not what the audit's entry" in fault for fault in messages)


def test_a_removed_slot_is_found(beliefs: Path) -> None:
    def remove(rows: list[dict[str, str]]) -> None:
        rows[:] = [row for row in rows if (row["stage"], row["slot"]) != ("2", "60")]

    change(beliefs, "answers.csv", remove)
    assert any(fault.startswith("stage 2: the plan's hash") for fault in faults(beliefs))


def test_a_removed_candidate_is_found_though_nobody_was_asked_it(beliefs: Path) -> None:
    asked = {row["item"] for row in verify_study.read(beliefs, "answers.csv")}
    sizes: list[int] = []

    def remove(rows: list[dict[str, str]]) -> None:
        sizes.append(sum(row["stage"] == "3" for row in rows))
        rows.remove(next(row for row in rows if row["stage"] == "3" and row["item"] not in asked))

    change(beliefs, "candidates.csv", remove)
    said = f"stage 3: candidates.csv has {sizes[0] - 1} items, the manifest {sizes[0]}"
    assert said in faults(beliefs)


def test_each_stages_exclusions_are_those_of_its_own_sittings() -> None:
    stages, sittings, rows = [], [], []
    for number in ("1", "2"):
        hashes = {"plan_sha256": f"plan {number}", "snapshot_sha256": f"snapshot {number}"}
        stages.append({"study": "x", "stage": number, "state": "frozen", **hashes})
        sittings.append({"stage": number, "respondent": f"p{number}", "excluded": "fast slow", "withdrawn_at": ""})
        excluded = [verify_study.canonical([int(number), f"p{number}", ["fast", "slow"]])]
        for action, detail in (
            ("plan_stage", {"plan_sha256": hashes["plan_sha256"]}),
            ("freeze_stage", {"snapshot_sha256": hashes["snapshot_sha256"], "excluded": excluded}),
        ):
            subject = {"action": action, "subject": f"x stage {number}", "entry": "1"}
            rows.append({**subject, "detail": json.dumps(detail)})
    findings = verify_study.VerificationResult()
    verify_study.check_what_the_audit_says(stages, [], sittings, rows, findings)
    assert findings.faults == []
    assert {f"stage {number}: 1 exclusions against the audit" for number in (1, 2)} <= set(findings.checked)


def test_no_more_exclusions_are_gone_than_people_who_withdrew() -> None:
    sittings = [{"respondent": name, "excluded": "", "withdrawn_at": at} for name, at in (("a", "2030"), ("b", ""))]
    for hashes, faulty in ((["x"], False), (["x", "y"], True)):
        findings = verify_study.VerificationResult()
        frozen = [{"detail": json.dumps({"excluded": hashes})}]
        verify_study.check_exclusions({"stage": "1", "state": "frozen"}, {}, sittings, frozen, findings)
        assert (bool(findings.faults), bool(findings.unchecked)) == (faulty, not faulty)


def test_of_all_items_those_that_were_left_out_are_in_no_stratum() -> None:
    manifest = {
        "design": {"kind": "uniform"},
        "candidates": {"kind": "exhaustive", "universe_size": 100, "excluded": 10},
        "responses_per_item": 2,
    }
    expected = verify_study.expected_strata({"stage": "1"}, manifest, 12, verify_study.VerificationResult())
    assert expected == verify_study.Expected({"all": (90, 6)}, 2)
    greedy = {"kind": "epsilon_greedy", "epsilon": 0.5, "top_fraction": 0.1, "floor": 0.0, "rest_strata": 2}
    expected = verify_study.expected_strata(
        {"stage": "1"}, manifest | {"design": greedy}, 12, verify_study.VerificationResult()
    )
    assert expected == verify_study.Expected({"top": (9, 3), "rest 1": (41, 2), "rest 2": (40, 1)}, 2)


def test_an_item_in_the_wrong_stratum_is_found(beliefs: Path) -> None:
    answers = verify_study.read(beliefs, "answers.csv")
    low = next(row for row in answers if (row["stage"], row["stratum"]) == ("3", "rest"))

    def lift(rows: list[dict[str, str]]) -> None:
        for row in rows:
            if (row["stage"], row["item"]) == ("3", low["item"]):
                row["score"] = "0.99"

    change(beliefs, "candidates.csv", lift)
    assert any("its score is not the candidate's" in fault for fault in faults(beliefs))
    change(beliefs, "answers.csv", lift)
    assert any("does not lie in the stratum rest" in fault for fault in faults(beliefs))


@pytest.mark.parametrize("column", ["at", "actor", "via", "action", "subject", "detail", "salt"])
def test_an_edited_row_of_the_audit_is_found(beliefs: Path, column: str) -> None:
    value = {"detail": '{"now": true}', "at": "2026-01-01T00:00:00.000000+00:00"}.get(column, "another")
    change(beliefs, "audit.csv", lambda rows: rows[5].update({column: value}))
    assert any("has another hash than its row makes" in fault for fault in faults(beliefs))


@pytest.mark.slow
@pytest.mark.parametrize("place", [3, 10])
def test_a_removed_row_of_the_audit_is_found(beliefs: Path, place: int) -> None:
    change(beliefs, "audit.csv", lambda rows: rows.pop(place))
    assert any("were removed or inserted" in fault for fault in faults(beliefs))


def test_a_head_that_is_not_in_the_chain_is_said(beliefs: Path) -> None:
    (fault,) = verify_study.verify(beliefs, "f" * 64, older=True).faults
    assert "is no seal" in fault


def test_entries_of_other_studies_are_there_as_hashes_alone(beliefs: Path) -> None:
    text = (beliefs / "audit.csv").read_text(encoding="utf-8")
    assert "beliefs stage 1" in text and "real stage 1" not in text and "answers stage 1" not in text
    rows = verify_study.read(beliefs, "audit.csv")
    assert len([row for row in rows if row["number"]]) == AuditEntry.objects.count() - 1


@pytest.fixture
def excluding(tmp_path: Path) -> Path:
    """The export of a frozen stage of three people, of whom two are left out and one has withdrawn since."""
    study = cast.open_study(flags={"same_answers": {"items": 3, "share": 1.0}}, exclusions={"flags": ["same_answers"]})
    for _person in range(2):
        cast.walk(cast.begin(study))
    leaving = cast.begin(study)
    cast.walk(leaving)
    jobs.run_inline(lifecycle.close_stage(study.stages.get(index=1), now=True))
    withdrawal.withdraw(respondent=leaving.respondent, now=timezone.now())
    audit_chain.seal_entries()
    files.write_export(study, tmp_path)
    return tmp_path


def people_in(folder: Path) -> list[str]:
    return sorted({row["respondent"] for row in verify_study.read(folder, "sittings.csv") if row["excluded"]})


def give_items(folder: Path, change_of: Callable[[dict[str, str]], Any]) -> None:
    """Change the rows of the people who stayed."""
    change(folder, "answers.csv", lambda rows: [change_of(row) for row in rows if row["status"] == "counted"])


def swap_items(folder: Path) -> None:
    """Two slots' items, and the hash of the plan made again wherever it stands in the open."""

    def swap(rows: list[dict[str, str]]) -> None:
        items = {row["slot"]: row["item"] for row in rows}
        first, two, *_rest = items
        for row in rows:
            row["item"] = items[{first: two, two: first}.get(row["slot"], row["slot"])]

    change(folder, "answers.csv", swap)
    firsts = {int(row["slot"]): row for row in reversed(verify_study.read(folder, "answers.csv"))}
    sha256 = digest([verify_study.facts_of(firsts[slot]) for slot in sorted(firsts)])

    def with_hash(stages: list[dict[str, str]]) -> None:
        manifest = {**json.loads(stages[0]["manifest"]), "plan_sha256": sha256}
        stages[0] |= {"plan_sha256": sha256, "manifest": json.dumps(manifest)}

    change(folder, "stages.csv", with_hash)


def swap_people(folder: Path) -> None:
    first, two = people_in(folder)
    others = {first: two, two: first}
    give_items(folder, lambda row: row.update(respondent=others[row["respondent"]]))


def invent_exclusion(folder: Path) -> None:
    person, _two = people_in(folder)
    for name in ("answers.csv", "sittings.csv"):
        change(folder, name, lambda rows: [r.update(excluded="speeder") for r in rows if r["respondent"] == person])


def take_back_exclusions(folder: Path) -> None:
    for name in ("answers.csv", "sittings.csv"):
        change(folder, name, lambda rows: [row.update(excluded="") for row in rows])


def forget_the_freeze(folder: Path) -> None:
    change(folder, "stages.csv", lambda stages: stages[0].update(state="closing", snapshot_sha256=""))


def empty(folder: Path, *actions: str) -> None:
    """As rows of other studies are: with the hash alone, so that the chain still holds."""

    def blank(rows: list[dict[str, str]]) -> None:
        for row in rows:
            if row["action"] in actions:
                row.update(dict.fromkeys(("at", "actor", "via", "action", "subject", "detail", "salt"), ""))

    change(folder, "audit.csv", blank)


@pytest.mark.slow
def test_assignments_and_exclusions_are_checked_against_the_audit(excluding: Path) -> None:
    verification = verify_study.verify(excluding)
    assert verification.faults == []
    assert {"stage 1: 3 assignments against the audit", "stage 1: 2 exclusions against the audit"} <= set(
        verification.checked
    )
    assert "stage 1: 1 exclusions of people who withdrew: only the hashes are left" in verification.unchecked
    swap_people(excluding)
    swapped = verify_study.verify(excluding).faults
    assert any("no claim_booklet with a hash of the slots of 2 people" in fault for fault in swapped)
    assert any(fault.endswith("are in the audit and not in answers.csv") for fault in swapped)


TAMPERINGS: dict[Callable[[Path], None], tuple[str, str]] = {
    swap_items: ("plan_stage", "plan_sha256"),
    swap_people: ("claim_booklet", "hash of the slots of 2 people"),
    invent_exclusion: ("freeze_stage", "is left out"),
    take_back_exclusions: ("freeze_stage", "2 people withdrew|has 3 exclusions"),
    forget_the_freeze: ("freeze_stage", "is closing"),
}


@pytest.mark.slow
@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__)
def test_what_was_changed_is_found_with_its_row_of_the_audit_and_without(excluding: Path, tamper: Any) -> None:
    action, words = TAMPERINGS[tamper]
    tamper(excluding)
    assert any(re.search(words, fault) for fault in verify_study.verify(excluding).faults)
    if tamper is forget_the_freeze:
        return  # Without its row a frozen stage is one that is still closing.
    empty(excluding, action)
    verification = verify_study.verify(excluding)
    assert any(f"no {action} " in fault for fault in verification.faults)
    assert not any(action in line for line in verification.unchecked)


@pytest.mark.slow
def test_everything_changed_and_all_its_rows_emptied_is_found(excluding: Path) -> None:
    for tamper in (swap_items, invent_exclusion, swap_people):
        tamper(excluding)
    empty(excluding, "plan_stage", "freeze_stage", "claim_booklet")
    assert verify_study.main([str(excluding)]) == 1
    text = "\n".join(verify_study.verify(excluding).faults)
    assert all(f"no {action} " in text for action in ("plan_stage", "freeze_stage", "claim_booklet"))


@pytest.mark.slow
def test_exclusions_of_one_file_alone_are_found(excluding: Path) -> None:
    change(excluding, "answers.csv", lambda rows: [row.update(excluded="") for row in rows])
    assert any("say different exclusions" in fault for fault in verify_study.verify(excluding).faults)


def test_it_needs_nothing_of_hunch(beliefs: Path) -> None:
    """As somebody runs it who has the file and numpy alone."""
    script = Path(settings.BASE_DIR) / "tools" / "verify_study.py"
    ran = subprocess.run(
        [sys.executable, "-P", str(script), str(beliefs), "--older"],
        capture_output=True,
        text=True,
        check=False,
        cwd=beliefs,
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line.split() for line in script.read_text(encoding="utf-8").splitlines()]
    imported = {words[1].partition(".")[0] for words in lines if words[:1] in (["import"], ["from"])}
    assert imported - sys.stdlib_module_names == {"numpy"}
    assert verify_study.main([str(beliefs / "nowhere")]) == 2
