"""Domination among language models: counts by hand, appendix B's reversal, and the report in all its places."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from survey.contracts.reports import ReportArguments
from survey.exceptions import NotFound, StateRefused
from survey.instruments.belief_update.reports.alignment import aligning, domination_report, reversal
from survey.instruments.belief_update.reports.alignment.deployment import ModelRows, Rule
from survey.instruments.belief_update.reports.alignment.domination import (
    Domination,
    deployment_gaps,
    dominations,
    resampled_pairs,
)
from survey.models import LanguageModel, ModelAnswer, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.results import reports
from survey.services.results.people_and_models.unreadable_replies import Unreadable
from survey.simulator import demonstration
from tests import cast
from tests.survey.filled import run_study
from tests.survey.instruments.test_aligning import ADAPTIVE


def test_a_model_that_is_right_wherever_another_is_dominates_it() -> None:
    (pair,) = dominations({"poor": {1: 1, 2: 0, 3: 0, 9: 1}, "good": {1: 1, 2: 1, 3: 0, 8: 0}})
    assert pair == Domination("good", "poor", 3, pytest.approx(2 / 3), pytest.approx(1 / 3), 1, 0, 1)
    assert pair.holds() and pair.exception_share == 0


def test_exceptions_are_counted_and_may_be_allowed() -> None:
    (pair,) = dominations({"good": {1: 1, 2: 1, 3: 1, 4: 0}, "poor": {1: 1, 2: 0, 3: 0, 4: 1}})
    assert (pair.better, pair.more, pair.exceptions, pair.exception_share) == ("good", 2, 1, 0.5)
    assert not pair.holds() and not pair.holds(0.4) and pair.holds(0.5)


def test_models_that_answer_alike_do_not_dominate_and_ones_without_a_common_question_are_no_pair() -> None:
    (pair,) = dominations({"a": {1: 1, 2: 0}, "b": {1: 1, 2: 0}})
    assert not pair.holds()
    assert dominations({"a": {1: 1}, "b": {2: 1}}) == []
    (nothing,) = dominations({"a": {1: 0}, "b": {1: 1}})
    assert nothing.exception_share is None and nothing.holds()


def test_fractions_are_compared_question_by_question() -> None:
    (pair,) = dominations({"a": {1: 0.5, 2: 0.75}, "b": {1: 0.75, 2: 0.25}})
    assert (pair.better, pair.more, pair.exceptions, pair.right) == ("a", 1, 1, 2)


def test_a_model_that_is_better_everywhere_can_do_worse_where_people_deploy_it() -> None:
    """People deploy the worse one exactly where it is right, and the better one nowhere."""
    n = 400
    worse = np.tile([1.0, 0.0], n // 2)
    known = np.ones(n, dtype=bool)
    rows = (
        ModelRows("good", np.full(n, 0.4), np.ones(n), known),
        ModelRows("poor", np.where(worse == 1, 0.9, 0.1), worse, known),
    )
    counts = resampled_pairs(n, samples=200, rng=np.random.default_rng(0))
    (gap,) = deployment_gaps([rows], Rule("threshold", 0.5), "mixture", counts=counts)
    assert (gap.performance, gap.difference, gap.verdict) == ((0.0, 0.5), -0.5, "reversed")
    assert gap.interval[0] < -0.5 < gap.interval[1] < 0
    (only_gap,) = deployment_gaps([rows], Rule("threshold", 0.3), "mixture", counts=counts)
    assert (only_gap.performance, only_gap.verdict) == ((1.0, 0.5), "kept")


def test_a_better_model_is_worse_in_use_where_people_use_it_for_what_it_cannot_do() -> None:
    """The worse one is right on a quarter and used there alone. The better one is right on half, and used everywhere:
    people get more right answers from it, and are wrong half of the time where they never were."""
    worse = np.tile([1.0, 0.0, 0.0, 0.0], 100)
    known = np.ones(400, dtype=bool)
    rows = (
        ModelRows("good", np.full(400, 0.9), np.tile([1.0, 1.0, 0.0, 0.0], 100), known),
        ModelRows("poor", np.where(worse == 1, 0.9, 0.1), worse, known),
    )
    counts = resampled_pairs(400, samples=200, rng=np.random.default_rng(0))
    (gap,) = deployment_gaps([rows], Rule("threshold", 0.5), "mixture", counts=counts)
    assert (gap.performance, gap.verdict) == ((0.5, 0.25), "kept")
    assert (gap.in_use, gap.in_use_difference, gap.in_use_verdict) == ((0.5, 1.0), -0.5, "reversed")
    assert gap.is_reversed and gap.in_use_interval[0] < -0.5 < gap.in_use_interval[1] < -0.4
    nowhere = ModelRows("poor", np.full(400, 0.1), worse, known)
    (gap,) = deployment_gaps([(rows[0], nowhere)], Rule("threshold", 0.5), "mixture", counts=counts)
    assert (gap.in_use, gap.in_use_difference, gap.in_use_verdict) == ((0.5, None), None, "undecided")
    assert domination_report.deployed_table([gap], set()).rows[0][-2:] == [None, "undecided"] and not gap.is_reversed


@pytest.mark.parametrize(("exceptions", "turned"), [("0", []), ("1", [["good", "poor"]])])
def test_only_a_model_that_dominates_is_reversed(
    exceptions: str, turned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (pair,) = dominations({"good": {1: 1, 2: 1, 3: 1, 4: 0}, "poor": {1: 1, 2: 0, 3: 0, 4: 1}})
    known = np.ones(40, dtype=bool)
    rows = (
        ModelRows("good", np.full(40, 0.4), np.ones(40), known),
        ModelRows("poor", np.tile([0.9, 0.1], 20), np.tile([1.0, 0.0], 20), known),
    )
    counts = resampled_pairs(40, samples=50, rng=np.random.default_rng(0))
    gaps = deployment_gaps([rows], Rule("threshold", 0.5), "mixture", counts=counts)
    monkeypatch.setattr(aligning, "dominations_of", lambda _study: [pair])
    monkeypatch.setattr(aligning, "deployment_gaps_of", lambda *_study, **_options: (gaps, []))
    monkeypatch.setattr(aligning, "unreadable_of", lambda *_study: dict.fromkeys(("good", "poor"), Unreadable(4, 0)))
    monkeypatch.setattr(domination_report, "eligible_questions", lambda _study: [])
    report = domination_report.DominationReport()
    asked = {"exceptions": (exceptions,), "threshold": ("0.5",), "samples": ("100",), "condition": ()}
    made = report.make(Study(slug="s"), ReportArguments(asked))
    assert made.data["reversed"] == turned


# Of a study


def models(study: Study) -> None:
    """`good` is right wherever `poor` is, and on more; `other` is right elsewhere."""
    questions = eligible_questions(study)
    for name, places in (("good", {1, 2, 3}), ("poor", {1}), ("other", {0})):
        made = LanguageModel.objects.create(name=name)
        ModelAnswer.objects.bulk_create(
            ModelAnswer(language_model=made, question=question, correct=number % 4 in places)
            for number, question in enumerate(questions)
        )


@pytest.fixture
def study() -> Study:
    made = run_study(**ADAPTIVE)
    models(made)
    return made


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_study_has_its_pairs_of_models_and_what_people_get_from_them(study: Study) -> None:
    findings = reports.make(study, "domination", {"samples": ["200"]})
    first, *others = findings.data["pairs"]
    n = len(eligible_questions(study))
    assert (first["better"], first["worse"], first["exceptions"], first["dominates"]) == ("good", "poor", 0, True)
    assert (first["questions"], first["more"]) == (n, n // 2)
    assert not any(pair["dominates"] for pair in others) and len(others) == 2
    assert [row["dominates"] for row in findings.tables[0].records()] == [1, 0, 0]
    deployed = findings.data["deployed"]
    assert {(table["rule"]["kind"], table["beliefs"]) for table in deployed} == {
        (rule, beliefs) for rule in ("threshold", "proportional") for beliefs in ("mixture", "regression")
    }
    # The figures are those of the report `alignment`, since all models have answered everything.
    by_name = {
        model.name: model.performance
        for table in aligning.alignment_of(study, samples=100).deployment
        if (table.rule.kind, table.beliefs) == ("proportional", "mixture")
        for model in table.models
    }
    for entry in deployed:
        if (entry["rule"]["kind"], entry["beliefs"]) == ("proportional", "mixture"):
            assert entry["performance"] == pytest.approx((by_name[entry["better"]], by_name[entry["worse"]]))
    assert "In 1 of 3 pairs of models the better one dominates" in findings.headline


@pytest.mark.django_db
def test_without_a_scored_stage_it_says_nothing_about_deployment() -> None:
    study = cast.small_study()
    with pytest.raises(StateRefused, match="no two language models have answered the same question"):
        reports.make(study, "domination")
    models(study)
    findings = reports.make(study, "domination")
    assert len(findings.data["pairs"]) == 3 and findings.data["deployed"] == []
    assert "no stage has a uniform pool" in findings.notes[0] and len(findings.notes) == 1
    ModelAnswer.objects.filter(language_model__name="poor", correct=False).update(unreadable=2)
    findings = reports.make(study, "domination")
    assert findings.notes[1] == "poor: 60 of its replies to 40 questions could not be read; they count as not right"
    counts = {"poor": 60, "good": 0, "other": 0}
    for row, pair in zip(findings.tables[0].rows, findings.data["pairs"], strict=True):
        assert row[-2:] == [pair["better_unreadable"], pair["worse_unreadable"]] == [counts[row[0]], counts[row[1]]]
    with pytest.raises(Exception, match="exceptions: '2' is not a number from 0 to 1"):
        reports.make(study, "domination", {"exceptions": ["2"]})


@pytest.mark.slow
@pytest.mark.django_db
def test_a_study_of_real_answers_compares_no_deployment_and_says_why() -> None:
    bank = cast.small_bank()
    models(cast.small_study("first", on=bank))
    options: dict[str, Any] = {"evidence": "real", "language_model": "good"}
    stages = [*ADAPTIVE["stages"]]
    study = run_study(
        "real", **{**ADAPTIVE, "stages": stages, "instrument": {"kind": "belief_update", "options": options}}, on=bank
    )
    findings = reports.make(study, "domination", {"samples": ["100"]})
    assert findings.data["deployed"] == []
    assert any("poor: left out; the study shows real outcomes of good alone" in note for note in findings.notes)


# The demonstration of a reversal


@pytest.mark.slow
@pytest.mark.django_db
def test_the_demonstration_of_a_reversal_has_a_model_that_dominates() -> None:
    bank = reversal.load_bank()
    assert reversal.load_bank() == bank
    answers = {
        name: ModelAnswer.objects.filter(language_model__name=name, question__bank=bank).by_question()
        for name in (reversal.BROAD, reversal.NARROW)
    }
    (pair,) = dominations(answers)
    assert (pair.better, pair.exceptions, pair.holds()) == (reversal.BROAD, 0, True)
    assert pair.questions == bank.question_count
    study = demonstration.create_demo_study(respondents=40, reversal=True)
    config = study.config
    assert (study.slug, config.predictor.name, config.candidates.size) == ("demo-reversal", "same_task", 20_000)


@pytest.mark.parametrize(
    ("in_use", "interval", "null", "passed"),
    [
        ([0.7, 1.0], [-0.4, -0.1], False, True),
        ([0.7, 1.0], [-0.4, -0.1], True, False),
        ([0.9, 1.0], [-0.3, 0.1], False, False),
        ([0.9, 1.0], [-0.3, 0.1], True, True),
        ([0.9, None], [None, None], False, False),
    ],
)
def test_the_demonstration_says_whether_the_better_model_is_worse_in_use(
    in_use: list[Any], interval: list[Any], null: bool, passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"better": reversal.BROAD, "worse": reversal.NARROW}
    difference = None if None in in_use else in_use[0] - in_use[1]
    word = "reversed" if (interval[1] or 0) < 0 else "unclear"
    gap = {"beliefs": "mixture", "in_use": in_use, "in_use_difference": difference, "in_use_interval": interval}
    rule = {"kind": "threshold"}
    data = {
        "pairs": [{**names, "dominates": True, "better_correct": 0.64, "worse_correct": 0.29}],
        "deployed": [{**names, **gap, "rule": rule, "in_use_verdict": word}],
    }
    asked: list[Any] = []
    averages = SimpleNamespace(prior=0.6, posterior_correct=0.7)
    monkeypatch.setattr(aligning, "alignment_of", lambda _study, samples: SimpleNamespace(averages=averages))
    made = SimpleNamespace(data=data)
    monkeypatch.setattr(reversal.reports, "make", lambda _study, _name, arguments: asked.append(arguments) or made)
    verdict = reversal.verdict(Study(slug="s"), null)
    assert verdict.passed is passed and asked == [{"threshold": ["0.65"]}]
    assert ("one of them nowhere" in verdict.sentence) is (difference is None)
    if in_use == [0.7, 1.0]:
        assert "on 70.0 % and the other on 100.0 %, a difference of -30.0 [-40.0, -10.0] points" in verdict.sentence


def test_only_an_instrument_with_a_reversal_demonstrates_one() -> None:
    with pytest.raises(NotFound, match=r"cloze brings no demonstration of a reversal; these do: belief_update"):
        demonstration.demonstration_of("cloze", reversal=True)
