"""The toy instrument learns a label from features of its own, and is judged on parts of its own wherever predictors are
compared. tests/survey/stages/test_priority.py has an instrument with a metric of its own."""

import csv
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from toy_instrument.learning import ToyLearning
from toy_instrument.models import Guess

from predictors.features import Features
from survey.exceptions import FileErrors
from survey.models import JobStep, PredictorRun, Question, Slot, Study
from survey.services.results.estimates import study_estimates
from survey.services.results.export import files
from tests import cast
from tests.kept import kept
from tests.survey import toy

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.5}
LEARNING: dict[str, Any] = {
    "predictor": {"name": "logistic"},
    "stages": [{"sittings": 6}, {"sittings": 4, "design": GREEDY}],
}
LONG = 21


def right_when_long(question: Question, person: int) -> list[str]:
    """Most people know long questions, and some know the short ones instead."""
    is_known = (len(question.plain) > LONG) != ((question.position + person) % 5 == 0)
    return ["what", "is", "zebra"] if is_known else ["zebra", "lion", "wolf"]


@kept
def learned_study() -> Study:
    """Two stages, of which the second is drawn by what was learnt from the first."""
    return toy.run(guessing=right_when_long, **LEARNING)


def length_of(slot: Slot) -> int:
    return len(slot.item.passage.question.plain)


@pytest.mark.thorough
def test_it_learns_a_label_from_features_of_its_own() -> None:
    study = learned_study()
    run = PredictorRun.objects.get(stage__study=study, stage__index=1)
    assert (run.name, run.example_count, run.ready_at is not None) == ("logistic", 18, True)
    drawn = list(cast.stage_of(study, 2).slots.select_related("stratum", "item__passage__question"))
    assert len(drawn) == 12 and {slot.stratum.name for slot in drawn if slot.stratum} == {"top", "rest"}
    # It has found that people know long questions: the longer one is, the higher its chance.
    assert len({length_of(slot) for slot in drawn}) > 1
    for first, other in itertools.combinations(drawn, 2):
        assert (first.score < other.score) == (length_of(first) < length_of(other))


def test_it_is_judged_on_parts_of_its_own() -> None:
    study = learned_study()
    run = PredictorRun.objects.get(stage__study=study, stage__index=1)
    judged = run.evaluations.get().metrics["naive"]
    slots = list(cast.stage_of(study, 2).slots.select_related("item__passage__question"))
    lengths = np.array([length_of(slot) for slot in slots])
    known = [Guess.objects.filter(response__assignment__slot=slot, text="what").exists() for slot in slots]
    scores = np.array([slot.score for slot in slots])
    losses = -np.log(np.where(known, scores, 1 - scores))
    assert judged["n"] == 12 and set(judged) == {"n", "nll", "auc", "intervals"}
    assert judged["nll"] == {
        "overall": pytest.approx(losses.mean()),
        "long": pytest.approx(losses[lengths > LONG].mean()),
    }
    low, high = judged["intervals"]["nll"]["overall"]
    assert 0 <= low <= judged["nll"]["overall"] <= high


@pytest.mark.parametrize(
    ("predictor", "place"),
    [
        ({"name": "same_task"}, "predictor.name: same_task reads the number 'previous_correct'"),
        (
            {"name": "logistic", "params": {"numbers": ["leters"]}},
            "predictor.params.numbers: logistic reads the number",
        ),
        (
            {"name": "logistic", "compared": [{"name": "logistic", "params": {"numbers": ["words"]}}]},
            "predictor.compared.1.params.numbers: logistic reads the number 'words', which these rows lack",
        ),
    ],
)
def test_a_predictor_that_reads_a_number_which_items_lack_is_refused_with_the_study(
    predictor: dict[str, Any], place: str
) -> None:
    with pytest.raises(FileErrors) as refused:
        toy.study(predictor=predictor)
    assert place in refused.value.message


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"inputs": lambda inputs: inputs[1:]}, "ToyLearning.inputs gives 19 inputs for 20 rows; one a row."),
        (
            {"inputs": lambda inputs: [Features({}, {"letters": np.nan}) for _one in inputs]},
            "numbers: 'letters' is nan, which is no finite number",
        ),
    ],
)
def test_an_instrument_with_broken_inputs_is_noticed_when_a_study_is_made(
    broken: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_learning(monkeypatch, **broken)
    with pytest.raises(FileErrors) as refused:
        toy.study(**LEARNING)
    assert "instrument.kind: " in refused.value.message and message in refused.value.message


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            lambda examples: (examples[0][1:], examples[1]),
            "gives 17 inputs and labels of the shape (18,) for 18 assignments",
        ),
        (lambda examples: (examples[0], examples[1][:, None]), "labels of the shape (18, 1) for 18 assignments"),
        (lambda examples: (examples[0], examples[1] * np.nan), "gives a label that is not from 0 to 1"),
        (lambda examples: (examples[0], examples[1] + 1), "gives a label that is not from 0 to 1"),
    ],
)
def test_broken_examples_end_the_training_with_the_place_to_repair(
    broken: Callable[[Any], Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = toy.study(**LEARNING)
    broken_learning(monkeypatch, examples=broken)
    with pytest.raises(RuntimeError, match="train"):
        toy.run_stage(cast.stage_of(study), guessing=right_when_long)
    failed = JobStep.objects.get(state="failed", predictor_run__role="main")
    assert "toy_instrument.learning.ToyLearning.examples" in failed.error and message in failed.error


def broken_learning(monkeypatch: pytest.MonkeyPatch, **methods: Callable[[Any], Any]) -> None:
    """The toy's learning, where some methods give what these functions make of their results."""
    for name, change in methods.items():
        whole = getattr(ToyLearning, name)

        def half(self: Any, *args: Any, whole: Any = whole, change: Any = change, **more: Any) -> Any:
            return change(whole(self, *args, **more))

        monkeypatch.setattr(ToyLearning, name, half)


@pytest.mark.thorough
def test_its_predictions_assist_the_estimate_of_its_first_measure() -> None:
    report = study_estimates.estimate(learned_study())
    assert report.assisted is not None and report.assisted.name == "found"
    assert report.parts[1].predictions.startswith("logistic")


@pytest.mark.thorough
def test_the_leaderboard_shows_its_parts_in_the_command_the_page_and_the_api(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = learned_study()
    metrics = PredictorRun.objects.get(stage__study=study, stage__index=1).evaluations.get().metrics
    value, long = metrics["naive"]["nll"]["overall"], metrics["naive"]["nll"]["long"]
    call_command("leaderboard", "toy", "--sort", "nll", "--part", "long")
    assert f"{long:.3f}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        call_command("leaderboard", "toy", "--part", "previous_correct")
    assert "--part: 'previous_correct' is not one of overall, long\n" in capsys.readouterr().err
    admin = Client()
    admin.force_login(User.objects.create_superuser("root"))
    page = admin.get(f"/admin/survey/study/{study.pk}/leaderboard/?sort=nll").content.decode()
    assert ">NLL long</th>" in page and f"{value:.3f}" in page and f"{long:.3f}" in page
    lines = admin.get("/api/v1/studies/toy/leaderboard/").json()
    (naive,) = [line for line in lines if line["weighting"] == "none"]
    assert naive["figures"]["nll"]["overall"]["value"] == pytest.approx(value)
    assert set(naive["figures"]) == {"nll", "auc"} and set(naive["figures"]["nll"]) == {"overall", "long"}


def test_the_export_has_its_parts_and_the_codebook_says_what_they_are(tmp_path: Path) -> None:
    study = learned_study()
    metrics = PredictorRun.objects.get(stage__study=study, stage__index=1).evaluations.get().metrics
    files.write_export(study, tmp_path)
    with (tmp_path / "leaderboard.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [name for name in rows[0] if name.startswith("nll")] == [
        f"nll_{part}{end}" for part in ("overall", "long", "difference") for end in ("", "_low", "_high")
    ]
    (naive,) = [row for row in rows if row["weighting"] == "none"]
    assert float(naive["nll_overall"]) == pytest.approx(metrics["naive"]["nll"]["overall"])
    codebook = (tmp_path / "codebook.md").read_text(encoding="utf-8")
    assert "| nll_long | number | Negative log likelihood on questions of more than 21 letters. |" in codebook
    assert "belief" not in codebook
