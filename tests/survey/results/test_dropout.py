"""People who left, read from rows: who they are, the test, the weights and the bounds, in every place that shows
them."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

import bandit
from bandit import DesignError
from survey.contracts import instruments
from survey.figures import Figure
from survey.live import people
from survey.models import Assignment, Exclusion, Response, Sitting, Slot, Stage, Study
from survey.services.answers.leaving import Leavers
from survey.services.plans import planning
from survey.services.results.estimates import dropout, sensitivity, stored_estimates, study_estimates, study_figures
from survey.services.results.estimates.stage_rows import GivenItem, StageRows, read_stage
from survey.services.results.estimates.study_figures import StagePart
from survey.services.results.export.contents import extra_files
from survey.services.results.methods import methods_section as methods
from survey.services.sittings import expiry
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import current_step
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.survey.filled import NO_ROLES, answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def leave(sitting: Sitting, after: int) -> None:
    """Take back every answer after item number `after`, as if the person had left there."""
    rest = Assignment.objects.filter(sitting=sitting, position__gt=after)
    for response in Response.objects.filter(assignment__in=rest):
        response.belief.delete()
        response.delete()
    rest.update(state="released", completed_at=None)
    Sitting.objects.filter(pk=sitting.pk).update(state="expired")


def changed(answer_: Assignment) -> bool:
    values = {response.screen: response.belief.value for response in answer_.responses.all()}
    return bool(values["posterior"] != values["prior"])


@pytest.fixture
def left() -> Study:
    """60 people with three items each and a factor. Anyone who changes after the first item leaves, and so do three
    others."""
    study = cast.small_study(
        stages=[{"sittings": 60}], conditions=[{"factor": "framing", "levels": ["plain", "warm"]}], **NO_ROLES
    )
    stage = answer(lifecycle.open_stage(cast.stage_of(study)))
    others = 3
    for number, sitting in enumerate(stage.sittings.order_by("pk")):
        sitting.conditions.create(factor="framing", level=("plain", "warm")[number % 2], probability=0.5, seed=1)
        if changed(sitting.assignments.get(position=1)):
            leave(sitting, 1)
        elif others:
            others -= 1
            leave(sitting, 2)
    return study


def by_hand(study: Study) -> Any:
    """Every answer with whether its person left after it, by plain queries."""
    rows = []
    for assignment in Assignment.objects.filter(slot__stage__study=study, state="counted").select_related("sitting"):
        size = assignment.sitting.assignments.count()
        answered = assignment.sitting.assignments.filter(state="counted").count()
        if assignment.position < size:
            rows.append((assignment.position == answered, changed(assignment), assignment.position))
    return map(np.array, zip(*rows, strict=True))


@pytest.mark.thorough
def test_the_test_is_of_the_last_answer_by_item_number(left: Study) -> None:
    leaving = study_estimates.estimate(left).leaving
    assert leaving is not None and leaving.outcome == "share of beliefs that change"
    whole, *levels = leaving.lines
    gone, value, number = by_hand(left)
    assert whole.test == bandit.leaving_test(left=gone, value=value, stratum=number)
    assert whole.people == 60 and whole.given == 180 and whole.left == gone.sum()
    assert (
        whole.unanswered
        == Assignment.objects.filter(state="released").count()
        == 180 - whole.test.at_risk - (Assignment.objects.filter(state="counted", position=3).count())
    )
    assert [line.title for line in levels] == ["framing=plain", "framing=warm"]
    assert sum(line.left for line in levels) == whole.left and all(line.people == 30 for line in levels)


@pytest.mark.parametrize("condition", [(), ("framing=warm",)])
def test_the_file_of_the_design_gives_the_weighted_figure_again(left: Study, condition: Sequence[str]) -> None:
    """The mean of the answers by the file's weights is the figure, and each answer's weight is by its own chance."""
    stayed = study_estimates.estimate(left, condition=condition).figures[0].stayed
    levels = dict(text.split("=") for text in condition)

    def answered() -> list[dict[str, Any]]:
        study = Study.objects.get(pk=left.pk)
        (file,) = (extra_file for extra_file in extra_files(study, levels=levels) if extra_file.name == "design.csv")
        rows = [dict(zip([column.name for column in file.columns], row, strict=True)) for row in file.rows]
        return [row for row in rows if row["state"] == "answered"]

    rows = answered()
    answers = Assignment.objects.filter(slot__stage__study=left, state="counted").select_related("slot")
    by_place = {(answer.slot.number, answer.sitting.respondent.pseudonym): answer for answer in answers}
    chosen = [by_place[row["slot"], row["respondent"]] for row in rows]
    weight = np.array([row["weight_leaving"] for row in rows])
    assert stayed is not None and len(rows) == stayed.n and weight.mean() == pytest.approx(1)
    assert np.average([changed(assignment) for assignment in chosen], weights=weight) == pytest.approx(stayed.value)
    assert {row["stage"] for row in rows} == {1} and min(row["staying"] for row in rows) < 0.95
    of_stratum = {
        (assignment.slot.stratum_id, assignment.slot.role, round(row["weight_leaving"] * row["staying"], 9))
        for assignment, row in zip(chosen, rows, strict=True)
    }
    assert len(of_stratum) == len({(stratum, role) for stratum, role, _product in of_stratum})
    Study.objects.filter(pk=left.pk).update(is_blind=True)
    hidden = answered()
    assert hidden and {(row["staying"], row["weight_leaving"]) for row in hidden} == {(None, None)}
    assert not any(name.startswith("level__") for name in hidden[0])


@pytest.mark.thorough
def test_weights_and_bounds_stand_beside_every_figure(left: Study) -> None:
    report = study_estimates.estimate(left, by=["outcome", "framing"])
    first = report.figures[0]
    assert first.combined and first.stayed and first.bounds and first.worst_case
    assert first.stayed.weight_range[1] > 1.1 > first.combined.weight_range[1]
    low, high = first.bounds.interval
    assert first.worst_case.interval[0] <= low < first.combined.value < high <= first.worst_case.interval[1]
    assert first.bounds.unanswered == report.leaving.lines[0].unanswered  # type: ignore[union-attr]
    for division in report.divisions:
        inside = [figures[0] for figures in division.figures]
        assert all(figure.stayed and figure.bounds and figure.worst_case for figure in inside)
        assert sum(figure.bounds.unanswered for figure in inside if figure.bounds) == first.bounds.unanswered
    change = next(figure for figure in report.figures if figure.name == "change_over_0")
    assert change.worst_case is not None and change.worst_case.interval[1] > change.bounds.interval[1]  # type: ignore[union-attr]


def test_the_weighted_figure_allows_for_people_who_weigh_much(left: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who stayed where others left pulls the mean to themselves, so that its spread seems too small."""
    report = study_estimates.estimate(left, by=["outcome"])
    after = [report.figures[0].stayed, *(figures[0].stayed for figures in report.divisions[0].figures)]
    monkeypatch.setattr(study_figures, "widen_for_heavy_people", lambda figure, *_arrays: figure)
    report = study_estimates.estimate(left, by=["outcome"])
    before = [report.figures[0].stayed, *(figures[0].stayed for figures in report.divisions[0].figures)]
    for estimate, other in zip(before, after, strict=True):
        assert estimate is not None and other is not None and estimate.value == other.value
        assert estimate.standard_error < other.standard_error < 1.3 * estimate.standard_error
        assert other.degrees_of_freedom <= estimate.degrees_of_freedom


def test_heavy_people_are_weighed_as_the_weighted_figure_weighs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two stages with two strata each: a stratum's answers together weigh what its candidates do, whoever stayed."""

    @dataclass(frozen=True)
    class Weighted:
        stages: list[Any]
        stayed: Any

    staying = np.array([1.0, 0.5, 0.25, 1.0])
    stratum = np.array([0, 0, 1, 1])
    whole = StagePart(
        *(1, "sampled", ("top", "rest"), (10, 30), (2, 2), None, stratum, np.arange(4)),
        probability=np.array([0.2, 0.2, 2 / 30, 2 / 30]),
        planned_probability=np.array([0.2, 0.2, 2 / 30, 2 / 30]),
        staying=staying,
    )
    passed: list[Any] = []
    monkeypatch.setattr(bandit, "widen_for_far_answers", lambda estimate, **named: passed.append(named))
    figure = Weighted([SimpleNamespace(weight=0.75), SimpleNamespace(weight=0.25)], SimpleNamespace(has_interval=True))
    value = np.array([1.0, 0.0, 0.0, 1.0])
    study_figures.widen_for_heavy_people(figure, [whole] * 2, [value] * 2, [None] * 2, [None] * 2)  # type: ignore[type-var]
    in_stratum = np.array([1 / 3, 2 / 3, 4 / 5, 1 / 5])
    share = in_stratum * np.array([10, 10, 30, 30]) / 40
    assert passed[0]["shares"] == pytest.approx(np.concatenate([0.75 * share, 0.25 * share]))
    error = share * (value - (share * value).sum())
    assert passed[0]["contributions"] == pytest.approx(np.concatenate([0.75 * error, 0.25 * error]))
    assert passed[0]["cluster"].tolist() == [0, 1, 2, 3] * 2


@pytest.mark.thorough
def test_weights_and_bounds_stand_beside_differences_too(left: Study) -> None:
    """Of two levels, which different people have, and of two parts of the items, which the same people answered."""
    for division in study_estimates.estimate(left, by=["framing", "outcome"]).divisions:
        first, other = (figures[0] for figures in division.figures)
        difference = division.differences[0]
        assert first.stayed and other.stayed and first.bounds and other.bounds
        assert difference.combined and difference.stayed and difference.bounds and difference.worst_case
        assert difference.stayed.value == pytest.approx(other.stayed.value - first.stayed.value)
        assert difference.stayed.value != pytest.approx(difference.combined.value)
        assert difference.bounds.lower.value == pytest.approx(other.bounds.lower.value - first.bounds.upper.value)
        assert difference.bounds.upper.value == pytest.approx(other.bounds.upper.value - first.bounds.lower.value)
        assert difference.bounds.unanswered == first.bounds.unanswered + other.bounds.unanswered
        errors = other.bounds.lower.standard_error, first.bounds.upper.standard_error
        expected = sum(errors) if division.name == "outcome" else float(np.hypot(*errors))
        assert difference.bounds.lower.standard_error == pytest.approx(expected)
        assert difference.worst_case.interval[0] <= difference.bounds.interval[0]
    # Against all others together, where a factor has more than two levels.
    sitting = Sitting.objects.filter(conditions__level="warm").order_by("pk")
    for one_of_them in sitting[:10]:
        one_of_them.conditions.update(level="cold")
    (division,) = study_estimates.estimate(left, by=["framing"]).divisions
    assert division.labels == ("cold", "plain", "warm") and not division.differences
    for place, figures in enumerate(division.rest):
        difference = figures[0]
        assert difference.combined and difference.bounds and difference.stayed
        assert difference.bounds.unanswered == study_estimates.estimate(left).figures[0].bounds.unanswered, place  # type: ignore[union-attr]
        assert difference.bounds.interval[0] < difference.combined.value < difference.bounds.interval[1]


@pytest.mark.thorough
def test_the_odds_ratio_is_the_study_files(left: Study) -> None:
    wide = cast.small_study("wide", estimates={"odds_ratio": 5.0}, stages=[{"sittings": 4}], **NO_ROLES)
    stage = answer(lifecycle.open_stage(cast.stage_of(wide)))
    leave(stage.sittings.order_by("pk")[0], 1)
    report = study_estimates.estimate(wide)
    assert report.figures[0].bounds is not None and report.figures[0].bounds.odds_ratio == 5
    assert (
        report.leaving is not None and report.leaving.no_weights == "1 of 4 people left; weights need at least 10 of 10"
    )
    assert report.figures[0].stayed is None


@pytest.mark.thorough
def test_under_a_level_the_weights_are_those_of_everybody(left: Study) -> None:
    under = study_estimates.estimate(left, condition=["framing=warm"])
    (division,) = study_estimates.estimate(left, by=["framing"]).divisions
    assert division.labels[1] == "warm"
    inside = division.figures[1][0]
    assert under.figures[0].stayed is not None and inside.stayed is not None
    assert under.figures[0].stayed.value == pytest.approx(inside.stayed.value)
    assert under.figures[0].bounds == inside.bounds
    assert [line.people for line in under.leaving.lines] == [30]  # type: ignore[union-attr]


@pytest.mark.thorough
def test_who_left_is_counted_whether_or_not_a_rule_leaves_them_out(left: Study) -> None:
    sitting = Sitting.objects.filter(state="expired").order_by("pk")[0]
    before = study_estimates.estimate(left).leaving
    Exclusion.objects.create(stage=sitting.stage, sitting=sitting, flags=["speeder"], decided_at=timezone.now())
    after = study_estimates.estimate(left).leaving
    assert before is not None and after is not None
    assert (after.lines[0].people, after.lines[0].left) == (before.lines[0].people, before.lines[0].left)
    assert after.lines[0].given == before.lines[0].given - 3


def test_whom_a_rule_excludes_is_counted_by_level_and_bounded(left: Study, tmp_path: Path) -> None:
    """A rule excludes ten people under one level and one under the other: the people who remain are not alike."""
    sittings = Sitting.objects.order_by("pk")
    warm, plain = (sittings.filter(conditions__level=level, state="complete") for level in ("warm", "plain"))
    for sitting in [*warm[:10], *plain[:1]]:
        Exclusion.objects.create(stage=sitting.stage, sitting=sitting, flags=["speeder"], decided_at=timezone.now())
    out = io.StringIO()
    call_command("estimate", "small", "--by", "framing", "--out", str(tmp_path), stdout=out)
    report = study_estimates.estimate(left, by=["framing"])
    assert report.leaving is not None
    p = bandit.fisher_exact((10, 30), (1, 30))
    assert [(line.title, line.people, line.excluded, line.p) for line in report.leaving.excluded] == [
        ("everybody", 60, 11, None),
        ("framing=plain", 30, 1, p),
        ("framing=warm", 30, 10, p),
    ]
    assert p < 0.01
    assert sum(line.excluded for line in report.parts[0].strata) == 33
    under = study_estimates.estimate(left, condition=["framing=warm"]).leaving
    assert under is not None and [(line.people, line.excluded) for line in under.excluded] == [(30, 10)]
    assert "framing=warm: 10 of 30 excluded, p = 0.006 against the others: more than chance makes." in out.getvalue()
    (division,) = report.divisions
    for figure in (report.figures[0], division.figures[1][0], division.differences[0]):
        assert figure.combined and figure.bounds and figure.with_excluded
        (low, high), (wide_low, wide_high) = figure.bounds.interval, figure.with_excluded.interval
        assert wide_low < low < high < wide_high
        people = 10 if figure is division.figures[1][0] else 11
        assert figure.with_excluded.unanswered - figure.bounds.unanswered == 3 * people
    with (tmp_path / "leaving.csv").open(newline="") as file:
        rows = {row["level"]: row for row in csv.DictReader(file)}
    assert [rows[level]["excluded"] for level in ("", "plain", "warm")] == ["11", "1", "10"]
    assert float(rows["warm"]["excluded_p"]) == p
    with (tmp_path / "estimates.csv").open(newline="") as file:
        of_all = [row for row in csv.DictReader(file) if (row["figure"], row["label"]) == ("changed_over_0", "")]
    kinds = {row["kind"]: row for row in of_all}
    assert float(kinds["bounds with excluded"]["high"]) > float(kinds["bounds"]["high"])
    first = report.figures[0]
    assert first.with_excluded is not None and "bounds with excluded" in out.getvalue()
    assert str(Figure(None, *first.with_excluded.interval, unit=first.unit)) in out.getvalue()


def given_item(sitting: Sitting, levels: dict[str, str], *, is_answered: bool = True) -> GivenItem:
    answer = Assignment(pk=sitting.pk * 10, sitting=sitting) if is_answered else None
    return GivenItem(Slot(pk=sitting.pk), sitting, 1, answer, True, levels)


def test_under_one_factors_level_the_people_who_left_are_listed_by_the_other_factors() -> None:
    """A factor that is filtered by has one level left; whichever comes first, the others have their lines."""
    levels = [{"a": "x", "b": "u"}, {"a": "x", "b": "v"}, {"a": "y", "b": "u"}, {"a": "x"}]
    asked_items = [
        given_item(Sitting(pk=number, respondent_id=number), own, is_answered=number != 2)
        for number, own in enumerate(levels, start=1)
    ]
    leavers = Leavers(frozenset({1, 2, 3, 4}), frozenset({2}))
    rows = [StageRows(Stage(index=1), [], [], {}, asked_items, leavers=leavers)]
    answered = dropout.read_answered(rows, {}, ())

    def lines(**under: str) -> list[tuple[str, int, int]]:
        return [(line.title, line.people, line.left) for line in dropout.lines(rows, answered, ["a", "b"], under)]

    assert lines() == [("everybody", 4, 1), ("a=x", 3, 1), ("a=y", 1, 0), ("b=u", 2, 0), ("b=v", 1, 1)]
    assert lines(a="x") == [("everybody", 3, 1), ("b=u", 1, 0), ("b=v", 1, 1)]
    assert lines(b="u") == [("everybody", 2, 0), ("a=x", 1, 0), ("a=y", 1, 0)]


def test_fishers_test_is_fishers() -> None:
    """The lady tasting tea, and a table with equal shares."""
    assert bandit.fisher_exact((3, 4), (1, 4)) == pytest.approx(34 / 70)
    assert bandit.fisher_exact((4, 4), (0, 4)) == pytest.approx(2 / 70)
    assert bandit.fisher_exact((2, 6), (4, 12)) == 1 == bandit.fisher_exact((0, 0), (3, 9))
    with pytest.raises(DesignError, match="5 of 4"):
        bandit.fisher_exact((5, 4), (0, 4))


def test_who_still_goes_on_has_not_left() -> None:
    study = cast.small_study(stages=[{"sittings": 4}], **NO_ROLES)
    stage = answer(lifecycle.open_stage(cast.stage_of(study)))
    sitting = stage.sittings.order_by("pk")[0]
    leave(sitting, 1)
    sitting.assignments.filter(state="released").update(state="live")
    report = study_estimates.estimate(study)
    assert report.leaving is not None and (report.leaving.lines[0].left, report.leaving.lines[0].unanswered) == (0, 0)
    assert report.figures[0].bounds is None
    assert [*sensitivity.dropout_sentences(report.leaving)] == [
        "Everybody who began has answered all their items, or still can: nothing is lost."
    ]


def test_who_left_is_known_once_nothing_of_theirs_can_be_answered_any_more() -> None:
    """One person has gone after their first item, one has a second one left that is given back, one is still at it."""
    study = cast.small_study(stages=[{"sittings": 4}], **NO_ROLES)
    stage = answer(lifecycle.open_stage(cast.stage_of(study)))
    gone, going_on, inside, complete = stage.sittings.order_by("pk")
    for sitting in (gone, going_on, inside):
        leave(sitting, 1)
    going_on.assignments.filter(position=3).update(state="live")
    inside.assignments.filter(position__gt=1).update(state="live")
    rows = [read_stage(stage, instruments.of_study(study), {})]
    keys = Assignment.objects.filter(state="counted").values_list("pk", flat=True)
    answered = dropout.read_answered(rows, dict.fromkeys(keys, 0.5), ())
    facts = list(
        zip(
            answered.sitting.tolist(),
            answered.number.tolist(),
            answered.known.tolist(),
            answered.left.tolist(),
            strict=True,
        )
    )
    assert facts == [
        (gone.pk, 1, True, True),
        (going_on.pk, 1, False, False),
        (inside.pk, 1, False, False),
        (complete.pk, 1, True, False),
        (complete.pk, 2, True, False),
        (complete.pk, 3, False, False),
    ]


def take_part(study: Study, *, until: str = "end", position: int = 0) -> Sitting:
    """Somebody who stands at that step, or at that item, or has finished."""
    sitting = cast.begin(study)
    step = current_step(sitting)
    while step.kind != until or (position and step.position != position):
        step = advance(sitting=sitting, step=step.number, data=cast.answers_for(step))
    return sitting


def test_who_left_is_one_number_on_all_pages(client: Client) -> None:
    """One person of each kind: only two left before their last item, one of whom took the first answer back too."""
    fields = [{"name": "age", "label": "Your age", "kind": "number", "minimum": 18, "maximum": 99, "required": True}]
    blocks = [*cast.BLOCKS[:-1], {"kind": "form", "name": "about_you", "fields": fields}, cast.BLOCKS[-1]]
    study = cast.small_study(stages=[{"sittings": 8}], blocks=blocks, **NO_ROLES)
    stage = lifecycle.open_stage(planning.plan_stage(cast.stage_of(study)))
    take_part(study)
    late = take_part(study)
    late.assignments.filter(position=3).update(state="late")
    take_part(study, until="item", position=2)  # Still inside.
    gone = [take_part(study, **where) for where in ({"until": "checks"}, {"until": "form"})]
    gone += [take_part(study, until="item", position=2) for _person in range(2)]
    for sitting in gone:
        assert expiry.expire_sitting(sitting.pk, now=timezone.now())
    withdraw(respondent=gone[-1].respondent, reason="a letter", now=timezone.now())
    (funnel,) = people.funnels(study, [stage])
    assert (funnel.arrived, funnel.finished, funnel.finished_late, funnel.left) == (7, 2, 1, 2)
    assert sum(line.left for line in funnel.lines if line.is_item) == 2
    by_step = {name: number for name, number, _text in methods.methods_of(study).flow}
    assert [by_step[name] for name in ("passed", "left", "left_after_items", "inside", "finished")] == [6, 2, 1, 1, 2]
    assert by_step["finished_late"] == 1
    leaving = study_estimates.estimate(study).leaving
    assert leaving is not None and (leaving.lines[0].people, leaving.lines[0].left) == (6, 2)
    client.force_login(get_user_model().objects.create_superuser("super"))
    page = client.get(f"/admin/survey/study/{study.pk}/change/").content.decode()
    assert "7 arrived, 2 finished (1 of them with an answer that came too late), 2 left before their last item" in page
    text = client.get(f"/admin/survey/study/{study.pk}/estimates/").content.decode()
    assert "2 of 6 people left before their last item; 1 finished, with an answer that came too late." in text
    assert "2 left before their last item, 1 left after their last item" in " ".join(
        methods.paragraphs(methods.methods_of(study))["People"]
    )


@pytest.mark.thorough
def test_leavers_are_compared_with_who_had_the_same_item_of_the_same_stage() -> None:
    study = cast.small_study(stages=[{"sittings": 30}, {"sittings": 30}], **NO_ROLES)
    for index in (1, 2):
        stage = answer(lifecycle.open_stage(cast.stage_of(study, index)), seed=index)
        for number, sitting in enumerate(stage.sittings.order_by("pk")):
            if changed(sitting.assignments.get(position=1)) or (index == 1 and number % 2):
                leave(sitting, 1)
        jobs.run_inline(lifecycle.close_stage(stage))
    rows = []
    for assignment in Assignment.objects.filter(state="counted", position__lt=3).select_related("slot__stage"):
        left = not assignment.sitting.assignments.filter(state="counted", position__gt=assignment.position).exists()
        rows.append((left, changed(assignment), assignment.slot.stage.index * 10 + assignment.position))
    gone, value, stratum = map(np.array, zip(*rows, strict=True))
    leaving = study_estimates.estimate(study).leaving
    assert leaving is not None and leaving.lines[0].test is not None
    expected = bandit.leaving_test(left=gone, value=value, stratum=stratum)
    assert (leaving.lines[0].test.p, leaving.lines[0].test.odds_ratio) == pytest.approx(
        (expected.p, expected.odds_ratio)
    )
    assert expected.p != bandit.leaving_test(left=gone, value=value, stratum=stratum % 10).p


@pytest.mark.thorough
def test_command_files_page_and_api_show_the_same(left: Study, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("estimate", "small", "--by", "framing", "--out", str(tmp_path), stdout=out)
    report = study_estimates.estimate(left, by=["framing"])
    first = report.figures[0]
    assert first.bounds is not None and first.stayed is not None and report.leaving is not None
    difference = report.divisions[0].differences[0]
    assert difference.bounds is not None and difference.stayed is not None
    bounds = str(Figure(None, *first.bounds.interval, unit=first.unit))
    cells = [
        *(bounds, str(Figure.of(first.stayed, first.unit)), "framing=warm"),
        str(Figure(None, *difference.bounds.interval, unit=difference.unit)),
        str(Figure.of(difference.stayed, difference.unit)),
    ]
    assert [words for words in cells if words not in out.getvalue()] == []

    with (tmp_path / "estimates.csv").open(newline="") as file:
        rows = {row["kind"]: row for row in csv.DictReader(file) if (row["figure"], row["label"]) == (first.name, "")}
    assert float(rows["weighted for leaving"]["value"]) == first.stayed.value
    assert (float(rows["bounds"]["low"]), float(rows["bounds"]["high"])) == first.bounds.interval
    assert "odds ratio of at most 2" in rows["bounds"]["notes"] and rows["bounds"]["value"] == ""
    assert float(rows["worst case"]["low"]) <= float(rows["bounds"]["low"])
    with (tmp_path / "leaving.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["level"] for line in lines] == ["", "plain", "warm"]
    assert int(lines[0]["left"]) == report.leaving.lines[0].left
    with (tmp_path / "codebook.csv").open(newline="") as file:
        described = {(row["file"], row["column"]) for row in csv.DictReader(file) if row["meaning"]}
    for name in ("estimates.csv", "leaving.csv"):
        with (tmp_path / name).open(newline="") as file:
            assert {(name, column) for column in next(csv.reader(file))} <= described
    assert json.loads((tmp_path / "estimates.json").read_text())["figures"][0]["bounds"]["interval"] == [
        *first.bounds.interval
    ]

    stored = stored_estimates.shown_estimates(left, by=["framing"])
    assert stored.report == report and stored_estimates.shown_estimates(left, by=["framing"]).report == report
    user = get_user_model().objects.create_superuser("root", password="-")
    page, api = Client(), APIClient()
    page.force_login(user)
    api.force_authenticate(user)
    text = page.get(f"/admin/survey/study/{left.pk}/estimates/?by=framing").content.decode()
    assert '<h2 id="table-leaving">People who left</h2>' in text
    assert [words for words in cells if words not in text] == []
    body = api.get("/api/v1/studies/small/estimates/").json()
    assert body["leaving"]["lines"][0]["left"] == report.leaving.lines[0].left
    assert body["figures"][0]["bounds"]["interval"] == [*first.bounds.interval]
