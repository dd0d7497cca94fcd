"""A study with a ratio, and one in which several people answer each item: against plain computations."""

import math
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

import bandit
from survey.contracts import instruments
from survey.exceptions import HunchError
from survey.models import Assignment, ConditionLevel, Study
from survey.services.results import reports
from survey.services.results.estimates import study_estimates
from survey.services.results.estimates.stage_rows import StageRows
from survey.services.results.people_and_models import people_report
from survey.services.results.policies import comparing
from tests import cast
from tests.survey import readings
from tests.survey.readings import length_of, read_of, right_of, tries_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    readings.make_known(monkeypatch)


GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.4, "top_fraction": 0.5}
TWO = {
    "stages": [{"sittings": 12}, {"sittings": 12, "design": GREEDY}],
    "candidates": {"size": 60},
    "predictor": {"name": "logistic"},
    "conditions": [{"factor": "mode", "levels": ["one", "other"]}],
}


def run(slug: str = "readings", *, lose: int = 0, **overrides: Any) -> Study:
    study = readings.study(slug, **overrides)
    for index in range(1, len(study.config.stages) + 1):
        readings.run_stage(cast.stage_of(study, index), lose=lose)
    return study


def answers_of(study: Study, index: int, role: str = "sampled") -> list[Assignment]:
    rows = Assignment.objects.filter(slot__stage__study=study, slot__stage__index=index, slot__role=role)
    return list(rows.filter(state="counted").select_related("slot__stratum", "slot__item", "sitting"))


def arrays_of(answers: list[Assignment]) -> dict[str, np.ndarray]:
    named = [(int(answer.slot.item.key), answer.sitting.respondent_id) for answer in answers]
    return {
        "right": np.array([right_of(*answer) for answer in named]),
        "tries": np.array([tries_of(*answer) for answer in named]),
        "read": np.array([read_of(*answer) for answer in named]),
        "long": np.array([length_of(item) > 15 for item, _who in named]),
        "weight": np.array([1 / answer.slot.inclusion_probability for answer in answers]),
        "person": np.array([answer.sitting.respondent_id for answer in answers]),
        "item": np.array([answer.slot.item_id for answer in answers]),
    }


def figure_of(figures: Any, name: str) -> Any:
    (named_figure,) = [figure for figure in figures if figure.name == name]
    return named_figure


def ratio_of(arrays: dict[str, np.ndarray], inside: Any = slice(None)) -> float:
    weight = arrays["weight"][inside]
    return float((weight * arrays["right"][inside]).sum() / (weight * arrays["tries"][inside]).sum())


@pytest.mark.thorough
def test_a_ratio_is_estimated_by_stage_together_inside_divisions_and_naively() -> None:
    study = run(**TWO)
    report = study_estimates.estimate(study, by=["length"])
    figure = figure_of(report.figures, "accuracy")
    parts = [arrays_of(answers_of(study, index)) for index in (1, 2)]
    own = [ratio_of(part) for part in parts]
    assert [stage.estimate.value for stage in figure.stages] == pytest.approx(own)
    above = below = 0.0
    for stage, part in zip(figure.stages, parts, strict=True):
        share = stage.weight * part["weight"] / part["weight"].sum()
        above, below = above + np.dot(share, part["right"]), below + np.dot(share, part["tries"])
    assert figure.combined.value == pytest.approx(above / below)
    right, tries = (np.concatenate([part[name] for part in parts]) for name in ("right", "tries"))
    assert figure.naive.value == pytest.approx(right.sum() / tries.sum()) and figure.unit == "share"
    (division,) = report.divisions
    for label, figures in zip(division.labels, division.figures, strict=True):
        inside = [part["long"] == (label == "long") for part in parts]
        for stage, part, mask in zip(figure_of(figures, "accuracy").stages, parts, inside, strict=True):
            if stage.estimate is None:
                assert stage.reason == "no answers there in rest, where it may have candidates" and stage.weight > 0
            else:
                assert stage.estimate.value == pytest.approx(ratio_of(part, mask))
    difference = figure_of(division.differences, "accuracy")
    assert difference.stages[0].estimate.value == pytest.approx(
        ratio_of(parts[0], ~parts[0]["long"]) - ratio_of(parts[0], parts[0]["long"])
    )
    # Predictions assist a ratio too, with a coefficient of its own for what is above the line.
    answers, part = answers_of(study, 2), parts[1]
    stratum = np.unique([answer.slot.stratum_id for answer in answers], return_inverse=True)[1]
    sizes = {answer.slot.stratum_id: answer.slot.stratum for answer in answers}
    fitted = bandit.assist(
        values=part["right"],
        predictions=[answer.slot.score for answer in answers],
        prediction_means=[sizes[key].mean_score for key in sorted(sizes)],
        stratum=stratum,
        weight=part["weight"],
        cluster=part["person"],
        per=part["tries"],
    )
    helped = figure.assisted.stages[1]
    assert (helped.coefficient or 0) == pytest.approx(fitted.coefficient[0])
    assert helped.reason == (f"not assisted: {fitted.withheld}" if fitted.withheld else "")
    adjusted = {**part, "right": part["right"] - fitted.adjustment}
    assert helped.estimate.value == pytest.approx(ratio_of(adjusted))


@pytest.mark.thorough
def test_a_ratio_under_the_levels_of_a_factor_takes_the_answers_under_each() -> None:
    study = run(**TWO)
    (division,) = study_estimates.estimate(study, by=["mode"]).divisions
    assert division.labels == ("one", "other")
    answers = answers_of(study, 1)
    level = {row.sitting_id: row.level for row in ConditionLevel.objects.filter(sitting__stage__study=study)}
    arrays = arrays_of(answers)
    own = []
    for label, figures in zip(division.labels, division.figures, strict=True):
        under = np.array([level[answer.sitting_id] == label for answer in answers])
        own.append(ratio_of(arrays, under))
        assert figure_of(figures, "accuracy").stages[0].estimate.value == pytest.approx(own[-1])
    effect = figure_of(division.differences, "accuracy").stages[0].estimate
    assert effect.value == pytest.approx(own[1] - own[0])


def test_a_ratio_that_leads_is_left_out_of_what_needs_one_number_an_answer_in_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = run(**TWO, options={"ratio": True})
    report = study_estimates.estimate(study)
    assert report.figures[0].name == "accuracy"
    top = next(line for line in report.parts[1].strata if line.name == "top")
    arrays = arrays_of([assignment for assignment in answers_of(study, 2) if assignment.slot.stratum.name == "top"])
    assert top.mean == pytest.approx(arrays["right"].sum() / arrays["tries"].sum())
    compared = comparing.compare(study, predictors=())
    assert {line.reason for line in compared} == {
        "right tries is a ratio of two sums, and policies are judged by the mean of one number an answer"
    }
    assert compared[0].logged is not None and not compared[0].policies
    call_command("estimate", study.slug)
    assert "right tries" in capsys.readouterr().out
    call_command("compare_policies", study.slug)


def test_people_differ_in_the_ratios_of_their_answers() -> None:
    study = run(**TWO, options={"ratio": True})
    findings = reports.make(study, "people", {"figure": ["accuracy"], "resamples": ["20"]})
    assert findings.data["figure"] == "right tries" and any("ratio of two sums" in note for note in findings.notes)
    rows = people_report._read(study, "accuracy", {})
    answers = [assignment for stage in (1, 2) for assignment in answers_of(study, stage)]
    own = arrays_of(answers)
    assert sorted(rows.values) == pytest.approx(sorted(own["right"][own["tries"] > 0] / own["tries"][own["tries"] > 0]))
    with pytest.raises(HunchError, match="figure: nothing is not one of accuracy"):
        reports.make(study, "people", {"figure": ["nothing"]})


def test_nothing_to_divide_by_is_said_and_not_a_failure() -> None:
    study = run(**TWO)
    rows = StageRows(cast.stage_of(study), slots=[], answers=[], divisions={})
    assert study_estimates._read(rows, "sampled", instruments.of_study(study), (), {}) is None
    from survey.services.results.estimates import study_figures

    answers = answers_of(study, 1)
    arrays = arrays_of(answers)
    made = study_figures.StagePart(
        stage=1,
        role="sampled",
        names=("all",),
        sizes=(60,),
        slots=(len(answers),),
        universe_size=None,
        stratum=np.zeros(len(answers), dtype=np.int64),
        cluster=arrays["person"],
        probability=np.full(len(answers), 0.6),
        planned_probability=np.full(len(answers), 0.6),
    )
    nothing = np.zeros(len(answers))
    assert study_figures.estimate(made, arrays["right"], per=nothing) == (None, "nothing to divide by")
    halves = np.arange(len(answers)) % 2 == 0
    assert study_figures.difference(made, arrays["right"], first=halves, second=~halves, per=nothing)[0] is None
    assert study_figures.effect(made, arrays["right"], first=halves, second=~halves, per=nothing)[0] is None
    assert study_figures.naive([made], [arrays["right"]], [None], False, [nothing]) is None


# Several answers an item


THREE = {"stages": [{"sittings": 12, "responses_per_item": 3}], "candidates": {"size": 60}}


def test_errors_are_between_respondents_and_between_items_where_several_answer_each() -> None:
    study = run("three", **THREE, lose=4)
    report = study_estimates.estimate(study)
    arrays = arrays_of(answers_of(study, 1))
    assert arrays["item"].size == 32 and np.unique(arrays["item"]).size == 12
    figure = figure_of(report.figures, "read")
    plain = bandit.stratified_mean(
        values=arrays["read"],
        stratum=np.zeros(32, dtype=int),
        sizes=(60,),
        cluster=arrays["person"],
        item=arrays["item"],
        universe_size=80,
        share=True,
    )
    assert figure.stages[0].estimate == plain
    # By hand: the weights are equal, so that each answer adds its distance from the mean, over 32.
    share = (arrays["read"] - arrays["read"].mean()) / 32
    _, item = np.unique(arrays["item"], return_inverse=True)
    _, person = np.unique(arrays["person"], return_inverse=True)
    totals, squares, count = (
        np.bincount(item, weights=share),
        np.bincount(item, weights=share**2),
        np.bincount(item).astype(float),
    )
    by_person = np.bincount(person, weights=share)
    people = by_person.size / (by_person.size - 1) * (by_person**2).sum()
    products = max(12 / 11 * (totals**2).sum() - 32 / 31 * squares.sum(), 0)
    spread = products * (count**2).sum() / (count * (count - 1)).sum()
    drawn = 12 / 60 * 60 / 80
    # At least what the noise inside the items and the spread of those that were not drawn come to.
    noise = ((squares - totals**2 / count) * count / np.maximum(count - 1, 1))[count > 1].sum()
    least = noise + (1 - drawn) * spread
    assert plain.standard_error == pytest.approx(math.sqrt(max(people + products - drawn * spread, least)))
    assert plain.degrees_of_freedom == 11
    assert any("Several people answered each item of stage 1" in line for line in report.assumptions)
    single = study_estimates.estimate(run("single", stages=[{"sittings": 12}], candidates={"size": 60}))
    assert not any("Several people" in line for line in single.assumptions)


def test_other_policies_are_not_judged_where_several_people_answered_each_item() -> None:
    study = run("three", **THREE)
    (line,) = comparing.compare(study, predictors=())
    assert line.reason.startswith("several people answered each item")
