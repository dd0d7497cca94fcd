"""Estimates against direct computations from the rows."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

import bandit
from bandit import Estimate
from survey.contracts.instruments import Estimates
from survey.exceptions import HunchError, StateRefused
from survey.instruments.question_pairs import packed
from survey.models import Assignment, CandidateSet, PredictorRun, Sitting, Slot, SnapshotAnswer, Study
from survey.services.base import files
from survey.services.plans import candidates, planning
from survey.services.results.estimates import stored_estimates, study_estimates, study_figures
from survey.services.results.estimates.stage_rows import STATES
from survey.services.results.estimates.study_figures import StagePart
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import lifecycle
from tests import cast
from tests.bandit.laws import least_variance
from tests.survey.filled import NO_ROLES, answer, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ADAPTIVE: dict[str, Any] = {
    "stages": [{"sittings": 36}, {"sittings": 36, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 1500},
    **NO_ROLES,
}


def rows_of(study: Study) -> list[dict[str, Any]]:
    """Every counted answer with what estimates need, by plain queries."""
    rows = []
    answers = Assignment.objects.filter(slot__stage__study=study, state="counted")
    for assignment in answers.select_related("slot__stratum", "slot__stage", "slot__item__pair__evidence", "sitting"):
        values = {response.screen: response.belief.value for response in assignment.responses.all()}
        rows.append(
            {
                "stage": assignment.slot.stage.index,
                "role": assignment.slot.role,
                "stratum": assignment.slot.stratum_id,
                "person": assignment.sitting.respondent_id,
                "outcome": assignment.slot.item.pair.outcome,
                "score": assignment.slot.score,
                "prior": values["prior"],
                "change": values["posterior"] - values["prior"],
                "sitting": assignment.sitting_id,
                "slot": assignment.slot_id,
                "repeat_of": assignment.slot.repeat_of_id,
                "kind": assignment.slot.control_kind,
                "weight": 1 / (assignment.slot.inclusion_probability * assignment.slot.pool_probability)
                if assignment.slot.inclusion_probability
                else None,
            }
        )
    return rows


def figure_of(report: study_estimates.StudyEstimates, name: str) -> Any:
    (named_figure,) = [figure for figure in report.figures if figure.name == name]
    return named_figure


def by_hand(
    rows: list[dict[str, Any]], values: list[float], sizes: dict[int, int], universe: int
) -> tuple[float, float]:
    """The stratified mean and its standard error, written out term by term."""
    whole = sum(sizes.values())
    of_stratum: dict[int, list[float]] = {}
    for row, value in zip(rows, values, strict=True):
        of_stratum.setdefault(row["stratum"], []).append(value)
    means = {stratum: sum(inside) / len(inside) for stratum, inside in of_stratum.items()}
    mean = sum(sizes[stratum] / whole * means[stratum] for stratum in sizes)
    totals: Counter[int] = Counter()
    for row, value in zip(rows, values, strict=True):
        weight = sizes[row["stratum"]] / len(of_stratum[row["stratum"]]) / whole
        totals[row["person"]] += weight * (value - means[row["stratum"]])  # type: ignore[assignment]
    people = len(totals)
    variance = people / (people - 1) * sum(total**2 for total in totals.values())
    single, weights, answered = [], [], []
    for row, value in zip(rows, values, strict=True):
        answered.append(len(of_stratum[row["stratum"]]))
        weights.append(sizes[row["stratum"]] / answered[-1] / whole)
        single.append(weights[-1] * (value - means[row["stratum"]]))
    variance = max(variance, least_variance(single, weights, answered=answered, strata=len(sizes)))
    variance += (
        (1 - whole / universe) / whole * sum(sizes[stratum] / whole * (means[stratum] - mean) ** 2 for stratum in sizes)
    )
    return mean, variance**0.5


@pytest.mark.thorough
def test_a_census_of_all_pairs_gives_their_plain_mean() -> None:
    small = cast.small_bank(12, name="tiny")
    study = run_study(on=small, stages=[{"sittings": 88}], candidates={"size": 5000}, **NO_ROLES)
    assert study.stages.get().slots.count() == bandit.universe_size(12) == 264
    rows, report = rows_of(study), study_estimates.estimate(study)
    changed = [abs(row["change"]) > 0 for row in rows]
    figure = figure_of(report, "changed_over_0")
    assert figure.combined.value == pytest.approx(np.mean(changed), abs=1e-12)
    assert figure_of(report, "prior").combined.value == pytest.approx(np.mean([row["prior"] for row in rows]), abs=1e-9)
    for name, outcome in (("posterior_incorrect", False), ("posterior_correct", True)):
        own = [row["prior"] + row["change"] for row in rows if row["outcome"] == outcome]
        assert figure_of(report, name).combined.value == pytest.approx(np.mean(own), abs=1e-9)
    assert report.estimand.startswith("all 264 pairs of this bank's 12 questions")
    assert not report.provisional
    # Nothing was left to chance but the people, so that the pool's phase adds nothing.
    value, error = by_hand(rows, [float(is_changed) for is_changed in changed], {rows[0]["stratum"]: 264}, 264)
    assert (figure.combined.value, figure.combined.standard_error) == pytest.approx((value, error), abs=1e-12)


@pytest.fixture
def adaptive() -> Study:
    return run_study(**ADAPTIVE, lose=9, late=4)


@pytest.fixture
def plain() -> Study:
    return run_study(stages=[{"sittings": 12}], **NO_ROLES)


@pytest.mark.thorough
def test_every_figure_of_an_adaptive_study_is_what_the_formulas_say(adaptive: Study) -> None:
    rows, report = rows_of(adaptive), study_estimates.estimate(adaptive, by=["outcome"])
    universe = bandit.universe_size(40)
    kinds = {
        "changed_over_0": lambda row: float(abs(row["change"]) > 0),
        "changed_over_5": lambda row: float(abs(row["change"]) > 5),
        "change_over_10": lambda row: float(row["change"]) if abs(row["change"]) > 10 else 0.0,
        "size_over_0": lambda row: float(abs(row["change"])),
        "prior": lambda row: float(row["prior"]),
    }
    weights = []
    for stage in adaptive.stages.order_by("index"):
        strata = list(stage.strata.all())
        sizes, slots = [s.size for s in strata], [s.slots for s in strata]
        alone = sum(size**2 / n for size, n in zip(sizes, slots, strict=True)) / sum(sizes) ** 2
        # 36 people with 3 slots each, dealt as evenly as whole slots allow; answers of one person correlate by 0.2.
        parts = [n / 36 % 1 for n in slots]
        uneven = sum((size / n) ** 2 * f * (1 - f) for size, n, f in zip(sizes, slots, parts, strict=True))
        weights.append(1 / (0.8 * alone + 0.2 * (1 / 36 + 36 * uneven / sum(sizes) ** 2)))
    for name, value_of in kinds.items():
        figure, own = figure_of(report, name), []
        for index, stage in enumerate(adaptive.stages.order_by("index")):
            inside = [row for row in rows if row["stage"] == stage.index]
            sizes_of = {stratum.pk: stratum.size for stratum in stage.strata.all()}
            own.append(by_hand(inside, [value_of(row) for row in inside], sizes_of, universe))
            stage_estimate = figure.stages[index].estimate
            assert (stage_estimate.value, stage_estimate.standard_error) == pytest.approx(own[-1], rel=1e-9), (
                name,
                stage.index,
            )
            assert figure.stages[index].weight == pytest.approx(weights[index] / sum(weights))
        mean = sum(w * estimate[0] for w, estimate in zip(weights, own, strict=True)) / sum(weights)
        error = sum((w * estimate[1]) ** 2 for w, estimate in zip(weights, own, strict=True)) ** 0.5 / sum(weights)
        assert (figure.combined.value, figure.combined.standard_error) == pytest.approx((mean, error), rel=1e-9), name
        assert figure.naive.value == pytest.approx(np.mean([value_of(row) for row in rows]))
    # The naive share is what adaptive sampling makes of it: nearly twice as high here.
    share = figure_of(report, "changed_over_0")
    assert share.naive.value > share.combined.value + 0.08

    # A domain is a ratio of weighted sums.
    (division,) = report.divisions
    assert division.labels == ("correct", "incorrect")
    for label, figures in zip(division.labels, division.figures, strict=True):
        stage_estimate = figures[0].stages[1].estimate
        second = [row for row in rows if row["stage"] == 2]
        answered = Counter(row["stratum"] for row in second)
        sizes_of = {stratum.pk: stratum.size for stratum in adaptive.stages.get(index=2).strata.all()}
        over, under = 0.0, 0.0
        for row in second:
            weight = sizes_of[row["stratum"]] / answered[row["stratum"]]
            if row["outcome"] == (label == "correct"):
                over, under = over + weight * (abs(row["change"]) > 0), under + weight
        assert stage_estimate.value == pytest.approx(over / under, rel=1e-9)
    difference = division.differences[0]
    first, second_label = (figures[0].combined for figures in division.figures)
    assert difference.combined.value == pytest.approx(second_label.value - first.value, rel=1e-9)


@pytest.mark.thorough
def test_the_prior_that_must_not_differ_by_outcome_is_checked(adaptive: Study) -> None:
    (check,) = study_estimates.estimate(adaptive).checks
    assert check.combined is not None and check.combined.p_two_sided() > 0.01
    for belief in [
        response.belief
        for assignment in Assignment.objects.filter(slot__item__pair__outcome=True, state="counted")
        for response in assignment.responses.all()
        if response.screen == "prior"
    ]:
        belief.value = min(100, belief.value + 20)
        belief.save(update_fields=["value"])
    out = io.StringIO()
    call_command("estimate", "small", stdout=out)
    assert "MORE than chance makes" in out.getvalue()


@pytest.mark.thorough
def test_the_model_assists_without_moving_the_mean_of_what_it_predicts(adaptive: Study) -> None:
    report = study_estimates.estimate(adaptive)
    second = adaptive.stages.get(index=2)
    rows = [row for row in rows_of(adaptive) if row["stage"] == 2]
    scores = np.sort(files.load_array(CandidateSet.objects.get(stage=second).file_sha256)["score"].astype(float))[::-1]
    strata = {stratum.name: stratum for stratum in second.strata.all()}
    means = {"top": scores[: strata["top"].size].mean(), "rest": scores[strata["top"].size :].mean()}
    answered = {name: sum(row["stratum"] == stratum.pk for row in rows) for name, stratum in strata.items()}
    place = {stratum.pk: list(strata).index(name) for name, stratum in strata.items()}
    label = np.array([place[row["stratum"]] for row in rows])
    weight = np.array([strata[name].size / answered[name] for name in strata])[label]
    changed = np.array([abs(row["change"]) > 0 for row in rows], dtype=float)
    fitted = bandit.assist(
        values=changed,
        predictions=[row["score"] for row in rows],
        prediction_means=[means[name] for name in strata],
        stratum=label,
        weight=weight,
        cluster=[row["person"] for row in rows],
    )
    assert report.assisted is not None
    second_stage = report.assisted.stages[1]
    assert second_stage.estimate.value == pytest.approx(np.average(changed - fitted.adjustment, weights=weight))
    assert (second_stage.coefficient or 0) == pytest.approx(fitted.coefficient[0])
    assert second_stage.reason == (f"not assisted: {fitted.withheld}" if fitted.withheld else "")
    assert [part.predictions[:9] for part in report.parts] == ["a logisti", "same_task"]
    plain = figure_of(report, "changed_over_0").combined
    assert report.assisted.combined.standard_error < 1.1 * plain.standard_error
    assert abs(report.assisted.combined.value - plain.value) < 3 * plain.standard_error


@pytest.mark.thorough
def test_where_all_pairs_were_cut_the_scorer_assists() -> None:
    study = cast.small_study(**{**ADAPTIVE, "candidates": {"kind": "exhaustive"}})
    first, second = cast.stage_of(study), cast.stage_of(study, 2)
    answer(lifecycle.open_stage(first))
    run = PredictorRun.objects.create(stage=first, name="same_task", seed=1, input_sha256="0" * 64, example_count=12)
    # As good a scorer as there can be: 90 for two questions of one task (every fourth question is of the same).
    same = np.tile((np.arange(40) % 4)[:, None] == np.arange(4), (2, 1, 1)).astype(int)
    zeros = np.zeros((2, 40), dtype=int)
    factors = bandit.FactoredScores(evidence=9 * same, target=10 * same, evidence_bias=zeros, target_bias=zeros)
    candidates.store_everything(
        second,
        candidates.Everything(universe_size=bandit.universe_size(40), scores=packed(factors)),
        questions_sha256=candidates.question_set_digest(study),
        predictor_run=run,
    )
    answer(planning.plan_stage(second), seed=2)
    report = study_estimates.estimate(study)
    assert [part.universe_size for part in report.parts] == [3120, 3120]
    assert report.parts[1].predictions.startswith("the scorer that planned the stage")
    assert report.assisted is not None
    plain, assisted = figure_of(report, "changed_over_0").stages[1].estimate, report.assisted.stages[1].estimate
    assert assisted.value == pytest.approx(plain.value, abs=3 * plain.standard_error)
    assert assisted.standard_error < 1.05 * plain.standard_error


@pytest.mark.thorough
def test_slots_are_counted_by_what_became_of_them(adaptive: Study) -> None:
    report = study_estimates.estimate(adaptive)
    for part in report.parts:
        stage = adaptive.stages.get(index=part.stage)
        assert sum(line.planned for line in part.strata) == stage.slots.count() == 108
        assert [sum(getattr(line, state) for line in part.strata) for state in STATES] == [95, 0, 0, 4, 9, 0]
        for line in part.strata:
            inside = Slot.objects.filter(stage=stage, stratum__name=line.name)
            assert line.answered == inside.filter(assignments__state="counted").count()
            assert line.late == inside.filter(assignments__state="late").count()
    for name in ("outcome", "position"):
        lines = report.slots[name]
        assert sum(line.planned for line in lines) == 216
        assert [sum(getattr(line, state) for line in lines) for state in STATES] == [190, 0, 0, 8, 18, 0]
    wrong = next(line for line in report.slots["outcome"] if line.label == "incorrect")
    assert wrong.planned == Slot.objects.filter(item__pair__outcome=False).count()
    third = next(line for line in report.slots["position"] if line.label == "3")
    assert third.answered == Assignment.objects.filter(position=3, state="counted").count()


def test_a_slot_that_was_begun_late_and_not_completed_is_lost(plain: Study) -> None:
    Assignment.objects.filter(pk=Assignment.objects.order_by("pk")[0].pk).update(state="late", completed_at=None)
    (line,) = study_estimates.estimate(plain).parts[0].strata
    assert (line.late, line.lost) == (0, 1)


def test_what_is_kept_for_pages_follows_late_answers_and_withdrawals() -> None:
    study = run_study(stages=[{"sittings": 4}], lose=3, **NO_ROLES)
    answered_slots = {*Assignment.objects.values_list("slot", flat=True)}
    first, second, _third = Slot.objects.exclude(pk__in=answered_slots).select_related("stage").order_by("pk")

    def kept() -> tuple[int, int, int]:
        (line,) = stored_estimates.shown_estimates(study).report.parts[0].strata
        return line.late, line.withdrawn, line.lost

    assert kept() == (0, 0, 3)
    late, gone = (cast.sitting(slot.stage, state="expired") for slot in (first, second))
    cast.assignment(late, first, state="late", completed_at=timezone.now())
    assert kept() == (1, 0, 2)
    cast.assignment(gone, second, state="late")
    withdraw(respondent=gone.respondent, now=timezone.now())
    assert kept() == (1, 1, 1)


@pytest.mark.thorough
def test_a_stage_that_gives_some_pair_no_chance_is_left_out_and_named() -> None:
    greedy = {**ADAPTIVE, "candidates": {"size": 3000}}
    greedy["stages"] = [{"sittings": 36}, {"sittings": 36, "design": {"kind": "epsilon_greedy", "epsilon": 0.0}}]
    report = study_estimates.estimate(run_study(**greedy))
    figure = figure_of(report, "changed_over_0")
    assert [(stage.weight, stage.reason) for stage in figure.stages] == [
        (1.0, ""),
        (0.0, "gives the candidates in rest probability 0"),
    ]
    assert figure.combined.value == figure.stages[0].estimate.value
    assert "left out: stage 2 (gives the candidates in rest probability 0)" in figure.notes


@pytest.mark.parametrize("kind", ["proportional", pytest.param("softmax", marks=pytest.mark.thorough)])
def test_unequal_chances_are_weighted_one_by_one(kind: str) -> None:
    soft = {**ADAPTIVE, "stages": [{"sittings": 36}, {"sittings": 36, "design": {"kind": kind}}]}
    study = run_study(**soft)
    figure = figure_of(study_estimates.estimate(study), "changed_over_0")
    over, under = 0.0, 0.0
    planned = []
    answers = {row["slot"]: row for row in rows_of(study)}
    for slot in study.stages.get(index=2).slots.all():
        row = answers[slot.pk]
        over, under = (
            over + (abs(row["change"]) > 0) / slot.inclusion_probability,
            under + 1 / slot.inclusion_probability,
        )
        planned.append(slot.inclusion_probability)
    assert figure.stages[1].estimate.value == pytest.approx(over / under, rel=1e-9)
    kish = [1 / (0.8 / 108 + 0.2 / 36), bandit.kish_size(planned, people=36)]
    assert figure.stages[1].weight == pytest.approx(kish[1] / sum(kish))
    # The predictor that planned the stage assists there too, weighted by the same chances.
    report = study_estimates.estimate(study)
    assert report.assisted is not None
    slots = list(study.stages.get(index=2).slots.all())
    weight = [1 / slot.inclusion_probability for slot in slots]
    changed = np.array([abs(answers[slot.pk]["change"]) > 0 for slot in slots], dtype=float)
    fitted = bandit.assist(
        values=changed,
        predictions=[slot.score for slot in slots],
        prediction_means=[study.stages.get(index=2).strata.get().mean_score],
        stratum=np.zeros(len(slots), dtype=int),
        weight=weight,
        cluster=[answers[slot.pk]["person"] for slot in slots],
    )
    helped = report.assisted.stages[1]
    assert helped.estimate.value == pytest.approx(np.average(changed - fitted.adjustment, weights=weight), rel=1e-9)
    assert (helped.coefficient or 0) == pytest.approx(fitted.coefficient[0])


def test_a_holdout_speaks_for_all_pairs_and_controls_for_the_noise() -> None:
    study = run_study(
        stages=[{"sittings": 40}], sitting={"items": 6}, candidates={"size": 1500},
        roles={"holdout": 0.2, "controls": 0.25},
    )  # fmt: skip
    rows, report = rows_of(study), study_estimates.estimate(study)
    assert [(part.role, part.stage) for part in report.parts] == [("sampled", 1), ("holdout", 1)]
    held = [abs(row["change"]) > 0 for row in rows if row["role"] == "holdout"]
    figure = figure_of(report, "changed_over_0")
    assert figure.stages[1].estimate.value == pytest.approx(np.mean(held))
    assert figure.stages[1].weight == pytest.approx(len(held) / report.answers)
    assert report.answers == sum(row["role"] in ("sampled", "holdout") for row in rows)

    kinds = {row["kind"] for row in rows if row["kind"]}
    assert set(report.noise.false_changes) == {*kinds, "all kinds"}
    for kind in kinds:
        own = [abs(row["change"]) > 0 for row in rows if row["kind"] == kind]
        false_change = report.noise.false_changes[kind]
        assert (false_change.value, false_change.n) == (pytest.approx(np.mean(own)), len(own))
    before = {(row["sitting"], row["slot"]): row for row in rows}
    pairs = [(before[row["sitting"], row["repeat_of"]], row) for row in rows if row["repeat_of"]]
    retest = report.noise.retests["prior"]
    assert retest.n == len(pairs) > 5
    # The repeats of sampled items stand for all pairs once, and so do those of the holdout.
    weights = [first["weight"] for first, _ in pairs]
    for role in ("sampled", "holdout"):
        own = [index for index, (first, _) in enumerate(pairs) if first["role"] == role]
        total = sum(weights[index] for index in own)
        for index in own:
            weights[index] *= len(own) / total
    covariance = np.cov(
        [first["prior"] for first, _ in pairs], [other["prior"] for _, other in pairs], aweights=np.array(weights)
    )
    assert retest.correlation == pytest.approx(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    assert report.noise.auc_limit is None  # Nobody answered another one's item.
    assert report.noise.no_limit == (
        "stage 1: no item was answered by two people; stage 1 holdout: no item was answered by two people"
    )
    out = io.StringIO()
    call_command("estimate", "small", stdout=out)
    assert "No upper limit of the AUC (stage 1: no item was answered by two people" in out.getvalue()


def test_a_withdrawn_answer_no_longer_counts(plain: Study) -> None:
    before = study_estimates.estimate(plain)
    withdrawn = SnapshotAnswer.objects.filter(stage__index=1).first()
    assert withdrawn is not None
    withdrawn.withdrawn_at = timezone.now()
    withdrawn.save()
    assert study_estimates.estimate(plain).answers == before.answers - 1


@pytest.mark.thorough
def test_conditions_divide_the_people() -> None:
    study = cast.small_study(
        stages=[{"sittings": 36}], conditions=[{"factor": "framing", "levels": ["plain", "warm"]}], **NO_ROLES
    )
    stage = answer(lifecycle.open_stage(cast.stage_of(study)))
    for number, sitting in enumerate(stage.sittings.order_by("pk")):
        sitting.conditions.create(factor="framing", level=("plain", "warm")[number % 2], probability=0.5, seed=1)
    report = study_estimates.estimate(study, by=["framing"])
    assert report.provisional
    (division,) = report.divisions
    assert division.labels == ("plain", "warm")
    first = division.figures[0][0].combined
    own = [
        abs(row["change"]) > 0
        for row in rows_of(study)
        if stage.sittings.get(pk=row["sitting"]).levels()["framing"] == "plain"
    ]
    assert first.value == pytest.approx(np.mean(own)) and first.n_clusters == 18
    assert "18 respondents, fewer than 30" in division.figures[0][0].notes


@pytest.mark.thorough
def test_levels_of_items_divide_the_answers_and_each_level_stands_for_all_candidates() -> None:
    study = cast.small_study(
        stages=[{"sittings": 36}],
        conditions=[{"factor": "mode", "levels": ["field", "choice"], "per": "item"}],
        **NO_ROLES,
    )
    stage = answer(lifecycle.open_stage(cast.stage_of(study)))
    answers = list(Assignment.objects.filter(slot__stage=stage).order_by("pk"))
    for number, assignment in enumerate(answers):
        assignment.conditions.create(factor="mode", level=("field", "choice")[number % 3 == 0], probability=0.5, seed=1)
    report = study_estimates.estimate(study, by=["mode"])
    (division,) = report.divisions
    assert division.labels == ("choice", "field") and "Levels are drawn at random" in division.note
    assert "Answers under all levels of mode together, each as often as it was drawn." in report.assumptions
    for label, figures in zip(division.labels, division.figures, strict=True):
        alone = study_estimates.estimate(study, condition=[f"mode={label}"])
        assert figures[0].combined.value == pytest.approx(alone.figures[0].combined.value)
        assert figures[0].combined.n == alone.answers == len(answers) // 3 * (1 if label == "choice" else 2)
        assert any(
            f"Only answers under mode={label}. Levels are drawn at random" in assumption
            for assumption in alone.assumptions
        )
    for first, second, difference in zip(*division.figures, division.differences, strict=True):
        expected = second.combined.value - first.combined.value
        assert difference.combined.value == pytest.approx(expected), difference.name


def test_an_unknown_condition_is_refused_and_one_without_answers_said(plain: Study) -> None:
    with pytest.raises(HunchError, match=r"condition: .* has no 'mode=field'; there are: none"):
        study_estimates.estimate(plain, condition=["mode=field"])
    study = cast.small_study("levels", conditions=[{"factor": "mode", "levels": ["field", "choice"]}], **NO_ROLES)
    answer(lifecycle.open_stage(cast.stage_of(study)))
    with pytest.raises(StateRefused, match="no answer under mode=field counts yet"):
        study_estimates.estimate(study, condition=["mode=field"])


def test_other_thresholds_may_be_asked_for(plain: Study) -> None:
    report = study_estimates.estimate(plain, thresholds=[7])
    assert [figure.name for figure in report.figures][:3] == ["changed_over_7", "change_over_7", "size_over_7"]
    assert study_estimates.estimate(plain).thresholds == (0, 5, 10)


def test_a_study_with_other_items_is_estimated_all_the_same() -> None:
    stage = cast.open_stage(instrument={"kind": "toy"}, stages=[{"sittings": 4}], candidates={"size": 30}, **NO_ROLES)
    with pytest.raises(StateRefused, match="no answer counts yet"):
        study_estimates.estimate(stage.study)
    visitor = cast.Visitor(stage.study).to_items()
    while visitor.step.kind == "item":
        visitor.post(guess="what is the river")
    report = study_estimates.estimate(stage.study)
    assert [figure.name for figure in report.figures] == ["found", "accuracy", "points"] and report.divisions == ()
    assert report.estimand == "all 40 items of the bank's 40 questions"
    for figure in report.figures:
        assert figure.combined is None  # One person says nothing of how people differ.
        assert "no estimate" in figure.notes


def test_an_unknown_division_is_refused_with_those_there_are(plain: Study) -> None:
    with pytest.raises(HunchError, match="weather is not one of outcome, evidence_task"):
        study_estimates.estimate(plain, by=["weather"])


@pytest.mark.thorough
def test_the_files_hold_what_was_estimated(plain: Study, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("estimate", "small", "--by", "same_task", "--out", str(tmp_path / "new"), stdout=out)
    report = study_estimates.estimate(plain, by=["same_task"])
    with (tmp_path / "new/estimates.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    overall = next(
        row for row in rows if (row["figure"], row["kind"], row["label"]) == ("changed_over_0", "combined", "")
    )
    estimate: Estimate = figure_of(report, "changed_over_0").combined
    assert float(overall["value"]) == estimate.value and float(overall["high"]) == estimate.interval[1]
    inside = [row for row in rows if row["division"] == "same_task" and row["kind"] == "difference"]
    assert inside and inside[0]["label"] == "same task - other task"
    stored = json.loads((tmp_path / "new/estimates.json").read_text())
    assert stored["figures"][0]["combined"]["value"] == estimate.value and stored["assumptions"]
    with (tmp_path / "new/slots.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    strata = [row for row in lines if row["division"] == "stratum"]
    assert sum(int(row["planned"]) for row in strata) == 36
    sizes = [line.size for part in report.parts for line in part.strata]
    assert [int(row["candidates"]) for row in strata] == sizes and min(sizes) > 0
    assert {row["candidates"] for row in lines if row["division"] != "stratum"} == {""}
    assert "figure, n" not in out.getvalue() and f"{100 * estimate.value:.1f} %" in out.getvalue()


WITHHELD = "no test whether the stages agree: 1 of 2 stages have an effective sample of 30 and 10 people"


def test_stages_too_small_to_compare_are_said_so_in_command_page_files_and_api(
    adaptive: Study, tmp_path: Path, admin_client: Client
) -> None:
    report = study_estimates.estimate(adaptive)
    share = figure_of(report, "changed_over_0")
    small = share.stages[1].estimate.effective_sample_size
    assert small < 30 and share.agreement is None and WITHHELD.endswith(share.agreement_withheld)
    out = io.StringIO()
    call_command("estimate", "small", "--out", str(tmp_path), stdout=out)
    assert f"all figures: {WITHHELD}" in out.getvalue() or WITHHELD in out.getvalue()
    assert "more than chance (p" not in out.getvalue()
    with (tmp_path / "estimates.csv").open(newline="") as file:
        row = next(line for line in csv.DictReader(file) if line["kind"] == "combined")
    assert row["agree_p"] == "" and WITHHELD in row["notes"]
    stored = json.loads((tmp_path / "estimates.json").read_text())["figures"][0]
    assert stored["agreement"] is None and WITHHELD.endswith(stored["agreement_withheld"])
    page = admin_client.get(reverse("admin:survey_study_estimates", args=[adaptive.pk])).content.decode()
    assert WITHHELD in page


def test_stages_that_differ_are_said_to_where_they_are_large_enough() -> None:
    study = run_study(stages=[{"sittings": 36}, {"sittings": 36}], **NO_ROLES)
    figure = figure_of(study_estimates.estimate(study), "changed_over_0")
    assert figure.agreement is not None and figure.agreement_withheld == ""
    for answered in Assignment.objects.filter(slot__stage__study=study, state="counted").select_related("slot__stage"):
        values = {response.screen: response.belief for response in answered.responses.all()}
        changed = answered.slot.stage.index == 2 or answered.pk % 4 == 0
        values["posterior"].value = values["prior"].value + (10 if values["prior"].value < 50 else -10) * changed
        values["posterior"].save(update_fields=["value"])
    out = io.StringIO()
    call_command("estimate", "small", stdout=out)
    assert "further apart than their errors (p < 0.001)" in out.getvalue() and "p = 0.000" not in out.getvalue()


def test_where_all_answers_are_alike_there_is_no_interval_and_no_p(plain: Study, tmp_path: Path) -> None:
    for answered in Assignment.objects.filter(slot__stage__study=plain, state="counted"):
        values = {response.screen: response.belief for response in answered.responses.all()}
        values["prior"].value, values["posterior"].value = 50, 60
        for belief in values.values():
            belief.save(update_fields=["value"])
    report = study_estimates.estimate(plain, by=["outcome"])
    change = figure_of(report, "change_over_0").combined
    assert (change.value, change.standard_error, change.has_interval) == (10, 0, False)
    assert figure_of(report, "changed_over_0").combined.has_interval  # Of a share Wilson's says how many there may be.
    (difference, *_others) = report.divisions[0].differences
    assert difference.combined.p_two_sided() is None
    out = io.StringIO()
    call_command("estimate", "small", "--by", "outcome", "--out", str(tmp_path), stdout=out)
    text = out.getvalue()
    assert "no interval" in text and "nothing varies between the answers" in text
    assert not re.search(r"\bnan\b", text) and "[10.00, 10.00]" not in text
    with (tmp_path / "estimates.csv").open(newline="") as file:
        row = next(
            line for line in csv.DictReader(file) if (line["figure"], line["kind"]) == ("change_over_0", "combined")
        )
    assert (row["low"], row["high"]) == ("", "") and "nothing varies" in row["too_few"]
    figures = {load["name"]: load for load in json.loads((tmp_path / "estimates.json").read_text())["figures"]}
    assert figures["change_over_0"]["combined"]["interval"] == [None, None]


def part_with(stratum: list[int], **change: Any) -> StagePart:
    count = len(stratum)
    fields: dict[str, Any] = {
        "stage": 2,
        "role": "sampled",
        "names": ("top", "rest"),
        "sizes": (100, 900),
        "slots": (20, 20),
        "universe_size": None,
        "stratum": np.array(stratum, dtype=np.int64),
        "cluster": np.arange(count, dtype=np.int64),
        "probability": np.ones(count),
        "planned_probability": np.ones(1),
        "people": 20,
    }
    return StagePart(**(fields | change))


def predicted_part(people: int = 12, **change: Any) -> tuple[StagePart, np.ndarray, np.ndarray]:
    """A stage of two strata whose predictions tell half of what its 8 answers per person are; these, and two levels."""
    rng = np.random.default_rng(7)
    stratum = np.sort(np.arange(8 * people) % 4 == 0).astype(int)
    predictions = rng.random(stratum.size)
    part = part_with(
        stratum.tolist(),
        slots=tuple(np.bincount(stratum).tolist()),
        cluster=rng.permutation(stratum.size) % people,
        predictions=study_figures.ItemPredictions(predictions, (0.5, 0.5), "made up"),
        **change,
    )
    return part, predictions + rng.normal(0, 0.3, stratum.size), np.arange(stratum.size) % 2 == 0


def test_predictions_assist_a_stage_with_the_coefficient_that_its_answers_fit() -> None:
    part, values, _level = predicted_part(universe_size=5000)
    common = {"stratum": part.stratum, "cluster": part.cluster}
    weight = np.array(part.sizes)[part.stratum] / np.bincount(part.stratum)[part.stratum]
    predictions = part.predictions.values
    fitted = bandit.assist(values=values, predictions=predictions, prediction_means=[0.5, 0.5], weight=weight, **common)
    helped = study_figures.assisted(part, values)
    assert helped.reason == "" and helped.coefficient == pytest.approx(fitted.coefficient[0])
    assert helped.estimate == bandit.stratified_mean(
        values=values, sizes=part.sizes, universe_size=5000, adjustment=helped.adjustment, **common
    )
    assert helped.adjustment == pytest.approx(fitted.adjustment)
    plain, _reason = study_figures.estimate(part, values)
    assert helped.estimate.standard_error < 0.95 * plain.standard_error
    # A ratio has a coefficient of its own.
    per = 1 + predictions
    assert study_figures.assisted(part, values, per=per).coefficient < helped.coefficient


def test_predictions_assist_a_stage_in_which_items_had_chances_of_their_own() -> None:
    part, values, _level = predicted_part()
    chance = np.random.default_rng(3).uniform(0.1, 0.9, values.size)
    unequal = replace(
        part,
        names=("all",),
        sizes=(300,),
        slots=(values.size,),
        stratum=np.zeros(values.size, dtype=int),
        probability=chance,
        planned_probability=chance,
        universe_size=900,
        predictions=replace(part.predictions, means=(0.5,)),
    )
    helped = study_figures.assisted(unequal, values)
    assert helped.coefficient is not None
    assert helped.estimate == bandit.hajek(
        values=values,
        probability=chance,
        cluster=part.cluster,
        adjustment=helped.adjustment,
        candidates=300,
        universe_size=900,
    )


def test_the_difference_of_two_levels_is_assisted_under_each() -> None:
    part, values, level = predicted_part(people=24)
    values = values + 0.2 * level
    helped = study_figures.assisted_effect(part, values, first=~level, second=level)
    sides = [study_figures.assisted(part.under(side), values[side]) for side in (~level, level)]
    assert helped.coefficient == pytest.approx(np.mean([side.coefficient for side in sides]))
    assert helped.estimate.value == pytest.approx(sides[1].estimate.value - sides[0].estimate.value)
    plain, _reason = study_figures.effect(part, values, first=~level, second=level)
    assert helped.reason == "" and helped.estimate.standard_error < 0.9 * plain.standard_error


def test_where_predictions_do_not_help_the_plain_estimate_stands_with_the_reason() -> None:
    part, values, level = predicted_part(people=5)
    plain = study_figures.estimate(part, values)[0]
    reason = "not assisted: 5 people, and a coefficient needs 10"
    assert study_figures.assisted(part, values) == (plain, reason, None, None)
    effect = study_figures.effect(part, values, first=~level, second=level)[0]
    assert study_figures.assisted_effect(part, values, first=~level, second=level) == (effect, reason, None, None)
    without = replace(part, predictions="nobody predicts these")
    assert study_figures.assisted(without, values) == (plain, "not assisted: nobody predicts these", None, None)
    # Without a plain estimate there is no assisted one.
    nothing = replace(part, slots=(30, 0))
    assert study_figures.assisted(nothing, values)[:2] == study_figures.estimate(nothing, values)


def test_predictions_of_a_first_stage_say_why_there_are_none() -> None:
    part = replace(predicted_part(people=9)[0], names=("all",), stratum=np.zeros(72, dtype=int), sizes=(500,))
    more = {"item": np.arange(72), "candidates": np.ones((500, 1)), "rng": np.random.default_rng(1)}

    def predictions(part: StagePart, features: np.ndarray) -> Any:
        return study_figures.folded_predictions(part, np.arange(72) % 2 * 1.0, features=features, **more)

    assert predictions(part, np.ones((72, 1))) == "9 people, and a coefficient needs 10"
    enough = replace(part, cluster=np.arange(72) % 10)
    everybody = {**more, "item": np.zeros(72)}
    assert str(
        study_figures.folded_predictions(enough, np.ones(72), features=np.ones((72, 1)), **everybody)
    ).startswith("too few people and items")
    # Alike items have the same prediction in each fold: its own mean, which says nothing.
    assert not predictions(enough, np.ones((72, 1))).values.round(12).any()


@pytest.mark.parametrize(("scale", "kind"), [(1, "logistic"), (10, "linear")])
def test_a_first_stage_is_predicted_by_what_is_known_of_its_items(scale: int, kind: str) -> None:
    part = replace(predicted_part(people=20)[0], names=("all",), stratum=np.zeros(160, dtype=int), sizes=(500,))
    known = np.random.default_rng(2).random((660, 1)) < 0.5
    values = scale * known[:160, 0].astype(float)
    values[::7] = scale - values[::7]
    predicted = study_figures.folded_predictions(
        part,
        values,
        item=np.arange(160),
        features=known[:160].astype(float),
        candidates=known[160:].astype(float),
        rng=np.random.default_rng(1),
    )
    assert predicted.source.startswith(f"a {kind} regression") and predicted.means == (0.0,)
    low, high = (predicted.values[known[:160, 0] == kind_of].mean() for kind_of in (False, True))
    assert 0.5 * scale < high - low < scale and np.std(predicted.values[known[:160, 0]]) < 0.1 * scale


def test_a_part_of_the_items_without_answers_in_a_stratum_gets_no_estimate_from_that_stage() -> None:
    part = part_with([0] * 20 + [1] * 20)
    values = np.where(part.stratum == 0, 0.8, 0.2) + np.arange(40) % 2 / 10
    only_top = np.arange(40) < 5
    assert study_figures.estimate(part, values, where=only_top) == (
        None,
        "no answers there in rest, where it may have candidates",
    )
    both = only_top | (np.arange(40) >= 38)
    estimate, reason = study_figures.estimate(part, values, where=both)
    assert estimate is not None and reason == ""
    # None in the top stratum: at most 3 of 20 parts of the 100 candidates there, next to 450 in the rest.
    only_rest = np.arange(40) >= 30
    assert study_figures.estimate(part, values, where=only_rest)[0] is None
    large = part_with([0] * 200 + [1] * 20, slots=(200, 20))
    estimate, _reason = study_figures.estimate(large, np.arange(220) % 3 * 1.0, where=np.arange(220) >= 210)
    assert estimate is not None  # Of 200 answers none is of it, so that the top stratum has next to none of it.
    assert study_figures.difference(part, values, first=only_top, second=both)[0] is None


def test_the_plans_decide_the_weights_of_parts_of_the_items_whatever_was_answered() -> None:
    part, values = part_with([0] * 20 + [1] * 20), np.arange(40) % 3 * 1.0
    inside = [np.arange(40) % 2 == 0, np.arange(40) < 5]
    estimates = [study_figures.estimate(part, values, where=mask) for mask in inside]
    assert [estimate is None for estimate, _reason in estimates] == [False, True]
    figure = study_figures.combine(
        [part, part],
        estimates,
        name="",
        title="",
        unit="points",
        naive=None,
        pooled=[part.stage_answers(values, inside=mask) for mask in inside],
    )
    assert [stage.weight for stage in figure.stages] == [0.5, 0.5] and "left out" not in figure.notes
    assert figure.combined is not None and figure.combined.n == 25


def test_one_answer_in_a_stratum_gives_no_estimate() -> None:
    part = part_with([0] * 20 + [1])
    estimate, reason = study_figures.estimate(part, np.arange(21.0))
    assert estimate is None and reason == "one answer in rest, which does not say how much answers vary there"
    part = part_with([0] * 20 + [1] * 20)
    inside = (np.arange(40) == 19) | (np.arange(40) == 20)  # The one in the rest has nine tenths of the weight.
    assert study_figures.estimate(part, np.arange(40.0), where=inside) == (None, study_figures.ONE_DECIDES)


def test_stages_are_said_to_differ_below_a_p_of_5_percent_alone() -> None:
    whole = bandit.naive_mean(values=np.arange(40.0), cluster=np.arange(40))
    figure = study_figures.StudyFigure("", "", "", (), whole, None, None)
    for p, said in ((0.049, True), (0.05, False), (0.5, False)):
        agreement = bandit.Agreement(f=1.0, degrees_of_freedom=(1.0, 30.0), p=p)
        assert ("further apart" in replace(figure, agreement=agreement).notes) == said
    assert figure.notes == "" and replace(figure, combined=None).notes == "no estimate"
    assert [study_figures.in_words_p(p) for p in (None, 0.0009, 0.001, 0.5)] == [
        "no p, since nothing varies", "p < 0.001", "p = 0.001", "p = 0.500",
    ]  # fmt: skip


def test_a_part_says_why_it_gives_no_mean_and_whether_it_counts_in_figures_of_several_stages() -> None:
    whole = {"names": ("all",), "sizes": (600,), "slots": (20,)}
    assert part_with([0] * 20 + [1] * 20, slots=(20, 0)).obstacle == "gives the candidates in rest probability 0"
    assert part_with([0] * 20).obstacle == "no answers in rest"
    assert part_with([], **whole).obstacle == "no answers"
    assert part_with([0], **whole).obstacle == "" and not part_with([0], **whole).weighs
    part = part_with([0] * 20 + [1, 1])  # Two answers of nine tenths of the weight: as precise as 2.5 alike.
    assert part.obstacle == "" and part.weighs and part.answer_weights.sum() == pytest.approx(1)
    assert not replace(part, cluster=np.zeros(22, dtype=np.int64)).weighs
    assert not replace(part, item=np.zeros(22, dtype=np.int64)).weighs
    assert replace(part, item=np.arange(22) % 2).weighs
    # Chances of their own: two answers that weigh alike are enough, one that weighs nearly everything is not.
    for chances, weighs in (([0.01, 0.01, 0.9], True), ([0.001, 0.5, 0.9], False)):
        own = part_with([0] * 3, **whole, probability=np.array(chances), planned_probability=np.array(chances))
        assert own.is_unequal and own.weighs == weighs
        assert own.answer_weights == pytest.approx((1 / np.array(chances)) / (1 / np.array(chances)).sum())
        assert own.stage_answers(np.arange(3.0), inside=None).universe_size is None, (
            "the pool's phase is in these chances"
        )


@pytest.mark.thorough
def test_a_stage_is_read_in_a_fixed_number_of_queries(plain: Study, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(44):
        study_estimates.estimate(plain, by=["outcome", "evidence_task"])


class WordCounts(Estimates):
    units = {"words": "words"}

    def outcomes(self, assignments: Sequence[Assignment]) -> dict[str, np.ndarray]:
        return {
            "words": np.array([len(str(assignment)) for assignment in assignments]),
            "odd": np.ones(len(assignments)),
        }


@pytest.mark.parametrize("texts", [["a", "b"], ["a", "bc"]])
def test_units_are_the_instruments_whatever_the_values_are(texts: Sequence[Any]) -> None:
    """One word each, by chance, is no share: a part of a study would have another unit than the next."""
    assert [(measure.unit, measure.is_share) for measure in WordCounts().estimands(texts).measures] == [
        ("words", False),
        ("mean", False),
    ]


# Carry-over


def with_holdouts(**more: Any) -> Study:
    settings = {**ADAPTIVE, "roles": {"holdout": 0.34, "controls": 0}, **more}
    settings["stages"] = [{**stage, "sittings": 18} for stage in settings["stages"]]
    return run_study(**settings)


def stratum_means(rows: Sequence[tuple[int, float]], sizes: dict[int, int]) -> float:
    total = sum(sizes.values())
    return sum(
        size / total * float(np.mean([value for stratum, value in rows if stratum == key]))
        for key, size in sizes.items()
    )


def test_first_items_and_sampled_minus_holdout_stand_beside_the_figures(tmp_path: Path) -> None:
    study = with_holdouts()
    report = study_estimates.estimate(study)
    assert report.carry_over is not None and report.carry_over.no_difference == ""
    assert [figure.name for figure in report.carry_over.first_items] == [figure.name for figure in report.figures]
    answers = Assignment.objects.filter(slot__stage__study=study, state="counted")
    rows: dict[tuple[int, str], list[tuple[int, int, float]]] = {}
    for assignment in answers.select_related("slot__stage"):
        values = {response.screen: response.belief.value for response in assignment.responses.all()}
        key = (assignment.slot.stage.index, assignment.slot.role)
        changed = float(values["posterior"] != values["prior"])
        rows.setdefault(key, []).append((assignment.position, assignment.slot.stratum_id or 0, changed))
    sizes = {
        key: dict(
            Slot.objects.filter(stage__study=study, stage__index=key[0], role=key[1])
            .values_list("stratum", "stratum__size")
            .distinct()
        )
        for key in rows
    }
    first = report.carry_over.first_items[0]
    weights = {(stage.stage, stage.role): stage.weight for stage in first.stages if stage.weight}
    expected = {
        key: stratum_means([(stratum, value) for position, stratum, value in rows[key] if position == 1], sizes[key])
        for key in weights
    }
    assert first.combined is not None and len(weights) > 1
    assert first.combined.value == pytest.approx(sum(weights[key] * expected[key] for key in weights))
    assert first.combined.n == sum(position == 1 for key in weights for position, *_rest in rows[key])
    difference = report.carry_over.differences[0].combined
    sampled, holdout = (
        stratum_means([(stratum, value) for _at, stratum, value in rows[2, role]], sizes[2, role])
        for role in ("sampled", "holdout")
    )
    assert difference is not None and difference.value == pytest.approx(sampled - holdout)
    (of_sampled, of_holdout) = (
        next(stage.estimate for stage in report.figures[0].stages if (stage.stage, stage.role) == (2, role))
        for role in ("sampled", "holdout")
    )
    assert of_sampled is not None and of_holdout is not None
    assert difference.standard_error == pytest.approx(np.hypot(of_sampled.standard_error, of_holdout.standard_error))
    # The command, the files, the page and the API.
    out = io.StringIO()
    call_command("estimate", study.slug, "--out", str(tmp_path), stdout=out)
    sentence = "Sampled minus holdout, whose people get uniform booklets, share of beliefs that change:"
    assert sentence in out.getvalue()
    with (tmp_path / "estimates.csv").open(newline="", encoding="utf-8") as file:
        of_kind = {row["kind"]: row for row in csv.DictReader(file) if row["figure"] == "changed_over_0"}
    assert float(of_kind["first items"]["value"]) == first.combined.value
    assert float(of_kind["sampled - holdout"]["p"]) == pytest.approx(difference.p_two_sided())
    stored = stored_estimates.shown_estimates(study)
    assert stored_estimates.shown_estimates(study).report == stored.report
    assert stored.as_json()["carry_over"]["differences"][0]["combined"]["value"] == difference.value


def test_without_an_adaptive_stage_or_a_holdout_there_is_no_difference() -> None:
    uniform = study_estimates.estimate(run_study(stages=[{"sittings": 12}], **NO_ROLES)).carry_over
    assert uniform is not None and (uniform.differences, uniform.no_difference) == ((), "no stage is adaptive")
    assert uniform.first_items[0].combined is not None and uniform.first_items[0].combined.n == 12


@pytest.mark.thorough
def test_an_adaptive_stage_without_a_holdout_says_so() -> None:
    carry_over = study_estimates.estimate(run_study(**ADAPTIVE)).carry_over
    assert carry_over is not None
    assert (carry_over.differences, carry_over.no_difference) == ((), "no adaptive stage has answers to a holdout")


@pytest.mark.thorough
def test_no_interval_reaches_beyond_what_can_be_true(study_of_few: Study) -> None:
    """Two people a stage: Student's t with one degree of freedom reaches 12 standard errors far."""
    report = study_estimates.estimate(study_of_few, by=["outcome", "framing"])
    spans = {"changed": (0, 1), "change": (-100, 100), "size": (0, 100), "prior": (0, 100), "posterior": (0, 100)}
    cut = 0
    figures = [*report.figures, *(figure for part in report.divisions for own in part.figures for figure in own)]
    differences = [figure for part in report.divisions for figure in part.differences]
    for figure in [*figures, *differences]:
        low, high = spans[figure.name.partition("_")[0]]
        if figure in differences:
            low, high = low - high, high - low
        others = [
            figure.combined,
            figure.naive,
            figure.superpopulation,
            *(stage.estimate for stage in figure.stages),
        ]
        intervals = [estimate.interval for estimate in others if estimate is not None and estimate.has_interval]
        intervals += [estimate.interval for estimate in (figure.bounds, figure.worst_case) if estimate is not None]
        assert all(low <= interval[0] <= interval[1] <= high for interval in intervals), figure.name
        cut += sum(interval[0] == low or interval[1] == high for interval in intervals)
    assert cut > 5, "some of them would have reached beyond"


@pytest.fixture
def study_of_few() -> Study:
    study = run_study(
        stages=[{"sittings": 3}, {"sittings": 3}],
        conditions=[{"factor": "framing", "levels": ["plain", "warm"]}],
        lose=2,
        **NO_ROLES,
    )
    for number, sitting in enumerate(Sitting.objects.filter(stage__study=study).order_by("pk")):
        sitting.conditions.create(factor="framing", level=("plain", "warm")[number % 2], probability=0.5, seed=1)
    return study
