"""What earlier code stored reads the same: exports byte for byte, stages verified, figures to the last digits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from survey.instruments.belief_update.reports import aligning, calibrating
from survey.models import Stage, Study
from survey.services.answers.conditions import pairs_of
from tests.golden import store

pytestmark = pytest.mark.django_db

STUDIES = ("answers", "beliefs", "real")


@pytest.fixture(scope="module")
def loaded(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The stored rows, for all tests here. Each test's own changes are undone after it, the rows after the last one."""
    with django_db_blocker.unblock(), transaction.atomic():
        store.load_database()
        yield
        transaction.set_rollback(True)


@pytest.fixture
def golden(loaded: None, db: None, settings: Any) -> None:
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY


def study_of(slug: str) -> Study:
    return Study.objects.select_related("bank").get(slug=slug)


def differences(found: Any, stored: Any, path: str = "") -> list[str]:
    """Where two JSON values differ; numbers may differ in their last digits, which depend on the machine."""
    if isinstance(found, dict) and isinstance(stored, dict) and found.keys() == stored.keys():
        return [line for name in found for line in differences(found[name], stored[name], f"{path}/{name}")]
    if isinstance(found, list) and isinstance(stored, list) and len(found) == len(stored):
        pairs = enumerate(zip(found, stored, strict=True))
        return [line for place, (one, other) in pairs for line in differences(one, other, f"{path}/{place}")]
    if isinstance(found, float) and isinstance(stored, float):
        return [] if found == pytest.approx(stored, rel=1e-6, abs=1e-9) else [f"{path}: {found} is not {stored}"]
    return [] if found == stored else [f"{path}: {found!r} is not {stored!r}"]


@pytest.mark.parametrize("slug", STUDIES)
def test_exports_and_stages_are_what_they_were(golden: None, slug: str, tmp_path: Path) -> None:
    stored = store.read_results(slug)
    found = store.results_of(study_of(slug), tmp_path)
    exports = {name for name in stored if name.startswith(("export/", "stage_"))}
    assert {name for name in found if name in exports} == exports
    for name in sorted(exports):
        assert found[name] == stored[name], f"{slug}: {name} differs"
    assert not differences(json.loads(found["estimates.json"]), json.loads(stored["estimates.json"]))


@pytest.mark.parametrize("slug", STUDIES)
def test_every_stage_verifies(golden: None, slug: str) -> None:
    for stage in Stage.objects.filter(study__slug=slug):
        plan, snapshot, slots, answers, _withdrawn, found = json.loads(
            store.read_results(slug)[f"stage_{stage.index}.json"]
        )
        assert (stage.plan_sha256, stage.snapshot_sha256) == (plan, snapshot)
        assert slots == stage.slots.count() and answers == stage.snapshot.count()
        assert found == []


def test_alignment_and_calibration_are_what_they_were(golden: None) -> None:
    stored, study = store.read_results("beliefs"), study_of("beliefs")
    found = {
        "alignment.json": aligning.alignment_of(study, samples=200),
        "alignment_warm.json": aligning.alignment_of(study, samples=200, condition=pairs_of(study)[1:2]),
        "calibration.json": calibrating.human_calibration(study, people_study=study_of("answers")),
    }
    for name, report in found.items():
        assert not differences(json.loads(store.as_bytes(report.as_json())), json.loads(stored[name])), name


def test_a_changed_answer_is_noticed(golden: None) -> None:
    from survey.instruments.belief_update.models import Belief
    from survey.services.stages import verifying

    stage = Stage.objects.select_related("study__bank").get(study__slug="beliefs", index=3)
    belief = Belief.objects.filter(
        response__assignment__snapshots__stage=stage, response__assignment__snapshots__withdrawn_at=None
    ).first()
    belief.value = 99 if belief.value != 99 else 98
    belief.save()
    assert not verifying.verify_stage(stage).agrees
