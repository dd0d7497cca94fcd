"""Majority labels of a test stage: fixed when it is frozen, known to leaderboard, export, estimates, verification."""

import csv
import json
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, Evaluation, Stage
from survey.services.answers.majorities import ItemMajority, facts_of, majorities_among, majorities_of
from survey.services.base.hashing import digest
from survey.services.results.estimates import study_estimates
from survey.services.results.export.files import write_export
from survey.services.sittings import withdrawal
from survey.services.stages import jobs, lifecycle
from survey.services.stages.leaderboard import leaderboard
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.kept import kept

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

TEST = {"kind": "test_set", "pairs": 6, "responses_per_pair": 4, "top_fraction": 0.05, "bottom_fraction": 0.05}
# Of the four answers to each pair so many change, in the order of the pairs' first slots: two ties among them.
CHANGES = (4, 3, 2, 2, 1, 0)


def study_with(**of_test: Any) -> dict[str, Any]:
    return {
        "stages": [{"sittings": 4}, {"sittings": 8, "design": TEST, "train": False, **of_test}],
        "predictor": {"name": "same_task"},
        "candidates": {"size": 200},
    }


def change(answer: Assignment, *, changes: bool) -> None:
    Belief.objects.filter(response__assignment=answer, kind="prior").update(value=50)
    Belief.objects.filter(response__assignment=answer, kind="posterior").update(value=70 if changes else 50)


@kept
def answered_test_stage(**of_test: Any) -> Stage:
    """The second stage, a test stage, open and full of answers of which `CHANGES` change."""
    first = cast.frozen_stage(**study_with(**of_test))
    second = cast.full_of_answers(lifecycle.open_stage(cast.stage_of(first.study, 2)))
    by_item: dict[int, list[Assignment]] = {}
    for answer in Assignment.objects.filter(slot__stage=second).order_by("slot__number"):
        by_item.setdefault(answer.slot.item_id, []).append(answer)
    for changing, answers in zip(CHANGES, by_item.values(), strict=True):
        for place, answer in enumerate(answers):
            change(answer, changes=place < changing)
    return second


@kept
def frozen_test_stage(**of_test: Any) -> Stage:
    stage = answered_test_stage(**of_test)
    jobs.run_inline(lifecycle.close_stage(stage))
    return cast.stage_of(stage.study, 2)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ties", "labels"),
    [
        (None, [1, 1, 0, 0, 0, 0]),
        ("label_0", [1, 1, 0, 0, 0, 0]),
        ("label_1", [1, 1, 1, 1, 0, 0]),
        ("left_out", [1, 1, None, None, 0, 0]),
    ],
)
def test_a_tie_counts_as_the_study_file_says(ties: str | None, labels: list[int | None]) -> None:
    stage = frozen_test_stage(**({"ties": ties} if ties else {}))
    majorities = majorities_of(stage)
    assert [(majority.answered, majority.ones) for majority in majorities] == [(4, count) for count in CHANGES]
    assert [majority.label for majority in majorities] == labels
    assert [majority.tied for majority in majorities] == [False, False, True, True, False, False]
    assert {majority.stratum for majority in majorities} == {"top", "bottom"}
    facts = stage.manifest["majorities"]
    assert facts["ties"] == (ties or "label_0")
    assert [facts[name] for name in ("items", "label_1", "label_0", "left_out", "tied")] == [
        *(6, labels.count(1), labels.count(0), labels.count(None), 2)
    ]


def test_the_manifest_says_how_many_items_have_each_label() -> None:
    slots = [SimpleNamespace(item=SimpleNamespace(key=f"i{number}"), stratum=None) for number in range(6)]
    labels = [(4, False, 1), (2, True, None), (1, False, 0), (2, True, None), (0, False, 0), (0, False, 0)]
    majorities: list[Any] = [
        ItemMajority(answer=SimpleNamespace(slot=slot), answered=4, ones=ones, tied=tied, label=label)  # type: ignore[arg-type]
        for slot, (ones, tied, label) in zip(slots, labels, strict=True)
    ]
    stage: Any = SimpleNamespace(config=SimpleNamespace(ties="left_out"))
    facts = facts_of(majorities, stage)
    rows = [[f"i{number}", 4, ones, label] for number, (ones, _tied, label) in enumerate(labels)]
    assert facts == {
        "items": 6, "label_1": 1, "label_0": 3, "left_out": 2, "tied": 2, "ties": "left_out", "sha256": digest(rows),
    }  # fmt: skip


def test_only_frozen_test_stages_have_majorities() -> None:
    stage = answered_test_stage()
    assert majorities_of(stage) == []
    first = cast.stage_of(stage.study, 1)
    assert first.state == Stage.State.FROZEN and majorities_of(first) == []
    assert "majorities" not in first.manifest


def test_a_stage_without_answers_has_none_and_is_frozen() -> None:
    first = cast.frozen_stage(**study_with())
    second = lifecycle.open_stage(cast.stage_of(first.study, 2))
    jobs.run_inline(lifecycle.close_stage(second))
    second = cast.stage_of(first.study, 2)
    assert (majorities_of(second), second.manifest["majorities"]["items"]) == ([], 0)
    assert not Evaluation.objects.filter(stage=second).exists()
    assert study_estimates.estimate(second.study).majorities == ()


def test_predictors_are_judged_by_the_majorities_each_item_once() -> None:
    stage = frozen_test_stage(ties="left_out")
    lines = [line for line in leaderboard(stage.study) if line.answers == "majorities"]
    assert {line.run.name for line in lines} == {"same_task", "previous_correct"}
    assert {(line.n, line.weighting, line.evaluated_on) for line in lines} == {(4, "none", 2)}
    metrics = Evaluation.objects.get(stage=stage, predictor_run__role="main").metrics["majority"]
    labelled = [majority for majority in majorities_of(stage) if majority.label is not None]
    scores = [majority.answer.slot.score for majority in labelled]
    above = [
        (high > low) + 0.5 * (high == low)
        for high, majority in zip(scores, labelled, strict=True)
        for low, other in zip(scores, labelled, strict=True)
        if majority.label == 1 and other.label == 0
    ]
    assert metrics["auc"]["overall"] == pytest.approx(sum(above) / len(above))
    out = StringIO()
    call_command("leaderboard", "small", stdout=out)
    assert "majorities" in out.getvalue()
    assert "none of all items" in out.getvalue()


def test_items_whose_pair_trained_are_not_judged() -> None:
    """A pair of the first stage that the test stage asks about too, the other way round."""
    stage = answered_test_stage()
    seen = cast.stage_of(stage.study, 1).slots.order_by("number").first()
    item = stage.slots.order_by("number").first().item
    other = seen.item.pair
    type(other).objects.filter(item=item).update(evidence=other.target_id, target=other.evidence_id)
    jobs.run_inline(lifecycle.close_stage(stage))
    (line, _other) = [entry for entry in leaderboard(stage.study) if entry.answers == "majorities"]
    assert line.n == 5


def test_estimates_say_the_share_of_majority_labels_by_stratum_and_that_it_is_none_of_all_items(
    tmp_path: Path,
) -> None:
    stage = frozen_test_stage(ties="left_out")
    report = study_estimates.estimate(stage.study)
    (whole,) = [line for line in report.majorities if not line.stratum]
    assert (whole.items, whole.label_1, whole.label_0, whole.tied, whole.left_out) == (6, 2, 2, 2, 2)
    assert (whole.fewest_answers, whole.most_answers, whole.share) == (4, 4, 0.5)
    assert whole.low is not None and whole.high is not None and 0 < whole.low < 0.5 < whole.high < 1
    assert "no share of all items" in whole.notes and "2 items with a tie are left out" in whole.notes
    of_strata = [line for line in report.majorities if line.stratum]
    assert sum(line.items for line in of_strata) == 6
    out = StringIO()
    call_command("estimate", "small", "--out", str(tmp_path), stdout=out)
    assert "Majority labels of the test stage" in out.getvalue() and "extremes of the scores" in out.getvalue()
    rows = list(csv.DictReader((tmp_path / "estimates.csv").open(encoding="utf-8", newline="")))
    (row,) = [row for row in rows if row["figure"] == "majority_label" and row["label"] == "all"]
    assert (row["kind"], row["stage"], row["value"], row["low"]) == ("majority", "2", "0.5", repr(whole.low))
    assert row["notes"] == whole.notes
    as_json = json.loads((tmp_path / "estimates.json").read_text(encoding="utf-8"))
    assert [line["stratum"] for line in as_json["majorities"]][-1] == ""


def test_a_stratum_with_one_labelled_item_has_no_share() -> None:
    stage = frozen_test_stage(ties="left_out")
    lines = {line.stratum: line for line in study_estimates.estimate(stage.study).majorities}
    labelled = {name: line.items - line.left_out for name, line in lines.items()}
    assert all((line.share is None) == (labelled[name] < 2) for name, line in lines.items())
    few = stage.slots.order_by("number").first()
    withdraw_all_but(stage, few.item_id)
    (line,) = study_estimates.estimate(stage.study).majorities
    assert (line.items, line.share) == (1, None)
    assert "fewer than 2 labelled items: no share" in line.notes


def withdraw_all_but(stage: Stage, item: int) -> None:
    """Take the answers to the other items out of the stage, as a withdrawal does."""
    stage.snapshot.exclude(assignment__slot__item=item).update(withdrawn_at=timezone.now())


@pytest.mark.thorough
def test_the_estimates_of_a_level_have_no_majorities() -> None:
    factor = {"factor": "mode", "levels": ["field", "choice"], "per": "item"}
    first = cast.frozen_stage(**study_with(), conditions=[factor])
    second = lifecycle.open_stage(cast.stage_of(first.study, 2))
    cast.fill(second)
    jobs.run_inline(lifecycle.close_stage(second))
    study = cast.stage_of(first.study, 2).study
    assert study_estimates.estimate(study).majorities
    assert study_estimates.estimate(study, condition=["mode=field"]).majorities == ()
    assert "majority" not in str(Evaluation.objects.filter(stage=second).first().metrics["levels"])


def test_the_export_lists_every_item_with_its_label(tmp_path: Path) -> None:
    stage = frozen_test_stage(ties="left_out")
    write_export(stage.study, tmp_path)
    rows = list(csv.DictReader((tmp_path / "majorities.csv").open(encoding="utf-8", newline="")))
    assert [(row["answered"], row["ones"], row["tied"], row["label"]) for row in rows] == [
        ("4", "4", "0", "1"),
        ("4", "3", "0", "1"),
        ("4", "2", "1", ""),
        ("4", "2", "1", ""),
        ("4", "1", "0", "0"),
        ("4", "0", "0", "0"),
    ]
    assert {(row["study"], row["stage"], row["ties"]) for row in rows} == {("small", "2", "left_out")}
    keys = set(stage.slots.values_list("item__key", flat=True))
    assert {row["item"] for row in rows} == keys


def test_verifying_finds_labels_that_are_not_those_of_the_manifest() -> None:
    stage = frozen_test_stage()
    assert verify_stage(stage).differences == []
    stage.manifest = {**stage.manifest, "majorities": {**stage.manifest["majorities"], "label_1": 5}}
    stage.save(update_fields=["manifest"])
    (difference,) = verify_stage(cast.stage_of(stage.study, 2)).differences
    assert difference.startswith("majorities: the frozen answers make others than the manifest has (label_1)")


def test_a_withdrawal_takes_its_answers_out_of_the_majorities_and_verifying_still_agrees() -> None:
    stage = frozen_test_stage()
    before = {majority.item.pk: majority.answered for majority in majorities_of(stage)}
    gone = Assignment.objects.filter(slot__stage=stage).order_by("pk").first()
    assert gone is not None
    withdrawal.withdraw(respondent=gone.sitting.respondent, now=timezone.now(), reason="asked")
    stage = cast.stage_of(stage.study, 2)
    after = {majority.item.pk: majority.answered for majority in majorities_of(stage)}
    assert sum(before.values()) - sum(after.values()) == 3
    assert verify_stage(stage).differences == []


def test_excluded_answers_are_in_no_majority() -> None:
    stage = answered_test_stage()
    study = stage.study
    study.stored_config["flags"] = {"same_answers": {"share": 0.6, "items": 2}}
    study.stored_config["exclusions"] = {"flags": ["same_answers"]}
    study.save(update_fields=["stored_config"])
    jobs.run_inline(lifecycle.close_stage(cast.stage_of(study, 2)))
    second = cast.stage_of(study, 2)
    facts = second.manifest["majorities"]
    assert facts["items"] == 0  # Everybody gives the same priors.
    assert majorities_of(second) == []


def test_graded_labels_count_as_1_above_a_half(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from survey.instruments.belief_update.learning import BeliefLearning

    stage = answered_test_stage()
    answers = list(Assignment.objects.filter(slot__stage=stage).order_by("slot__number"))
    monkeypatch.setattr(
        BeliefLearning,
        "examples",
        lambda self, assignments: (list(assignments), np.array([0.4, 0.5, 0.6, 0.9][: len(assignments)])),
    )
    item = answers[0].slot.item_id
    of_one = [answer for answer in answers if answer.slot.item_id == item]
    (majority,) = majorities_among(of_one, stage)
    assert (majority.answered, majority.ones, majority.label) == (3, 2, 1)
