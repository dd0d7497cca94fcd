"""What earlier code stored reads the same: exports byte for byte, stages verified, figures to the last digits.

    python -m tests.renew golden

stores what is read now; the diff shows what has changed.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from survey.models import Stage, Study
from tests.golden import store

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

STUDIES = ("answers", "beliefs", "real")
INSTRUMENTS = ("chances", "guesses", "pace", "replies", "steps", "words")


@pytest.fixture(scope="module")
def loaded(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The stored rows, for all tests here. Each test's own changes are undone after it, the rows after the last one."""
    with django_db_blocker.unblock(), transaction.atomic():
        store.load_with_instruments()
        yield
        transaction.set_rollback(True)


@pytest.fixture
def golden(loaded: None, db: None, settings: Any) -> None:
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY


def study_of(slug: str) -> Study:
    return Study.objects.select_related("bank").get(slug=slug)


def compare(folder: str, results: Mapping[str, bytes], request: pytest.FixtureRequest) -> None:
    """Those of which there is a stored file: reports that joined the exports later have tests of their own, and one
    codebook says as much as six."""
    first = (name for name in results if "codebook" not in name)
    names = sorted(store.read_results(folder) or first)
    assert set(names) <= results.keys()
    if request.config.getoption("--renew"):
        store.write_results(folder, {name: results[name] for name in names})
    stored = store.read_results(folder)
    assert [line for name in names for line in store.differences_of(name, results[name], stored[name])] == []


@pytest.mark.parametrize("slug", [*STUDIES, *INSTRUMENTS])
def test_exports_and_figures_are_what_they_were(
    golden: None, slug: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compare(slug, store.results_of(study_of(slug), tmp_path), request)


@pytest.mark.parametrize("slug", [*STUDIES, *INSTRUMENTS])
def test_every_stage_verifies(golden: None, slug: str) -> None:
    for stage in Stage.objects.filter(study__slug=slug):
        plan, snapshot, slots, answers, _withdrawn, differences = json.loads(
            store.read_results(slug)[f"stage_{stage.index}.json"]
        )
        assert (stage.plan_sha256, stage.snapshot_sha256) == (plan, snapshot)
        assert slots == stage.slots.count() and answers == stage.snapshot.count()
        assert differences == []


@pytest.mark.thorough
def test_alignment_and_calibration_are_what_they_were(golden: None, request: pytest.FixtureRequest) -> None:
    compare("models", store.reports_about_models(study_of("beliefs"), study_of("answers")), request)


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
