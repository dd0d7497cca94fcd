"""Other policies from logged chances, against sums written out; and refusals if the logs do not suffice."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

import bandit
from survey.exceptions import HunchError, StateRefused
from survey.models import Assignment, CandidateSet, Study
from survey.services.base import files
from survey.services.results.policies import comparing
from survey.study_file import DesignConfig
from tests import cast
from tests.survey.filled import NO_ROLES, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ADAPTIVE: dict[str, Any] = {
    "stages": [{"sittings": 60}, {"sittings": 60, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 2000},
    **NO_ROLES,
}


@pytest.fixture
def study() -> Study:
    return run_study(**ADAPTIVE, lose=6)


def line_of(stage: comparing.StageComparison, policy: str, predictor: str) -> comparing.PolicyLine:
    (named_line,) = [line for line in stage.policies if (line.policy, line.predictor) == (policy, predictor)]
    return named_line


def by_score(scores: np.ndarray, chances: np.ndarray) -> dict[float, float]:
    """The chance of a candidate by its score, tied ones alike."""
    return {float(score): float(chances[scores == score].mean()) for score in np.unique(scores)}


def test_another_epsilon_is_judged_by_inverse_chances(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learnt_from, examples = [], comparing.training_examples
    monkeypatch.setattr(
        comparing, "training_examples", lambda stage: learnt_from.append(stage.index) or examples(stage)
    )
    first, second = comparing.compare(study, epsilons=[0.5], predictors=["previous_correct"])
    assert learnt_from == [1]
    title = "epsilon greedy (epsilon 0.5, top fraction 0.1)"
    evaluation = line_of(second, title, comparing.AS_PLANNED).found
    assert evaluation is not None
    stage = study.stages.get(index=2)
    scores = files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)["score"].astype(float)
    rng = np.random.default_rng(0)
    logged, other = (
        by_score(
            scores,
            bandit.inclusion_probabilities(
                design=bandit.EpsilonGreedy(epsilon=epsilon), n=180, scores=scores, n_candidates=2000, rng=rng
            ),
        )
        for epsilon in (0.25, 0.5)
    )
    answered = {
        stratum.pk: Assignment.objects.filter(slot__stratum=stratum, state="counted").count()
        for stratum in stage.strata.all()
    }
    over = under = 0.0
    for assignment in Assignment.objects.filter(slot__stage=stage, state="counted").select_related("slot__stratum"):
        prior, posterior = (response.belief.value for response in assignment.responses.order_by("number"))
        assert assignment.slot.score is not None and assignment.slot.stratum is not None
        weight = other[assignment.slot.score] / logged[assignment.slot.score]
        weight *= assignment.slot.stratum.slots / answered[assignment.slot.stratum.pk]
        over, under = over + weight * (prior != posterior), under + weight
    assert evaluation.self_normalised.value == pytest.approx(over / under, rel=1e-9)
    assert evaluation.plain.value == pytest.approx(over / 180, rel=1e-9)

    # By the stage's own scores the policy it ran with found what it found.
    (own,) = comparing.compare(study, designs=[comparing.parse_design("epsilon_greedy:epsilon=0.25")])[1:]
    logged_line = line_of(own, "epsilon greedy (epsilon 0.25, top fraction 0.1)", comparing.AS_PLANNED)
    assert logged_line.found is not None and logged_line.reason == ""
    assert second.logged is not None
    assert logged_line.found.self_normalised.value == pytest.approx(second.logged.value, abs=0.01)

    # A stage without scores, and another predictor: trained on the first stage alone, and too far from what was run.
    assert line_of(first, "any by predicted change", comparing.AS_PLANNED).reason.startswith("the stage was planned")
    assert line_of(first, "any by predicted change", "previous_correct").reason == "no answers come before it"
    assert line_of(second, title, "previous_correct").reason.startswith("not enough support: effective sample size")

    out = io.StringIO()
    call_command("compare_policies", "small", "--epsilon", "0.5", "--out", str(tmp_path), stdout=out, stderr=out)
    assert (
        f"{100 * evaluation.self_normalised.value:.1f} %" in out.getvalue() and "not enough support" in out.getvalue()
    )
    with (tmp_path / "policies.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    rows = [row for row in written if row["policy"] == title and row["stage"] == "2"]
    assert float(rows[0]["self_normalised"]) == pytest.approx(evaluation.self_normalised.value)
    # By the same answers the difference from the stage's own policy is known far better than either figure.
    difference = line_of(second, title, comparing.AS_PLANNED).difference
    assert difference is not None and float(rows[0]["difference"]) == difference.value
    assert difference.standard_error < 0.5 * evaluation.self_normalised.standard_error
    own_policy = logged_line.difference
    assert own_policy is not None and own_policy.value == pytest.approx(0, abs=1e-9)
    # Without enough support the files leave the figures out too, and say how little there was.
    unsupported = next(row for row in written if row["reason"].startswith("not enough support"))
    assert [unsupported[name] for name in ("plain", "self_normalised", "self_normalised_low", "difference")] == [""] * 4
    assert float(unsupported["effective_sample_size"]) < 100


@pytest.mark.thorough
def test_a_flag_changes_nothing_for_a_stage_that_was_planned_before(study: Study) -> None:
    before = comparing.compare(study, epsilons=[0.5], predictors=["previous_correct"])
    study.bank.questions.filter(position=3).update(flag="broken", flag_reason="a typing error")
    assert comparing.compare(study, epsilons=[0.5], predictors=["previous_correct"]) == before


@pytest.mark.thorough
@pytest.mark.parametrize("lacks", ["the list of its questions", "its file"])
def test_without_the_questions_of_its_plan_nobody_knows_what_its_candidates_mean_after_a_flag(
    study: Study, lacks: str
) -> None:
    """As plans have it that are older than the list. Without a flag the present questions are those of the plan."""
    before = comparing.compare(study, epsilons=[0.5])
    for stage in study.stages.all():
        if lacks == "its file":
            stage.manifest["questions"]["positions_sha256"] = "0" * 64
        else:
            del stage.manifest["questions"]["positions_sha256"]
        stage.save(update_fields=["manifest"])
    assert comparing.compare(study, epsilons=[0.5]) == before
    study.bank.questions.filter(position=3).update(flag="broken", flag_reason="a typing error")
    assert {stage.reason for stage in comparing.compare(study)} == {
        "questions were flagged since, so its candidates are no longer known"
    }


def test_nothing_frozen_and_unknown_names_are_refused() -> None:
    stage = cast.open_stage(**NO_ROLES)
    with pytest.raises(StateRefused, match="no stage is frozen yet"):
        comparing.compare(stage.study)
    with pytest.raises(HunchError, match="oracle"):
        comparing.compare(stage.study, predictors=["oracle"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("greedy", "'greedy' is not one of uniform, epsilon_greedy, proportional, robust, softmax, uncertainty"),
        ("test_set", "'test_set' is not one of"),
        ("softmax:epsilon=0.1", r"'epsilon=0.1' is not NAME=VALUE with one of softmax's parameters \(temperature"),
        (
            "softmax:temperature=-1",
            r"^'softmax:temperature=-1': temperature: input should be greater than 0, not '-1'$",
        ),
        ("softmax:temperature=hot", r"^'softmax:temperature=hot': temperature: input should be a valid number.*'hot'$"),
    ],
)
def test_a_design_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(HunchError, match=message):
        comparing.parse_design(text)


def test_a_design_is_read_as_it_is_named() -> None:
    mixed = comparing.parse_design("proportional:trade_off=0.1,power=8")
    assert comparing.design_words(mixed) == "proportional (trade off 0.1, power 8)"
    design = comparing.parse_design("softmax:temperature=0.05,floor=0.2")
    assert (design.kind, design.temperature, design.floor) == ("softmax", 0.05, 0.2)
    assert comparing.design_words(design) == "softmax (temperature 0.05, floor 0.2)"
    assert comparing.parse_design("uniform") == DesignConfig(kind="uniform")
