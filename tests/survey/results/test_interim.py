"""Looks at a running stage: when they are made, what they store, and that a rule ends the stage once."""

import math
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

import bandit
from survey import study_file, tasks
from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, AuditEntry, ConditionLevel, Look, Stage, Study
from survey.services.results.estimates import interim, study_estimates
from survey.services.results.export import files as export_files
from survey.services.results.methods import methods_section
from survey.services.sittings import capacity, enrolment
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.studies import amending
from tests import cast
from tests.kept import kept
from tests.survey.filled import NO_ROLES, answer
from tools import verify_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PEOPLE = 80
START = datetime.fromisoformat("2026-05-04T08:00:00+00:00")


def running(width: float, *, after: int = 30, factor: str | None = None, **more: Any) -> Stage:
    """An open stage of 80 sittings, all of them answered: the person with the n-th booklet n minutes after the start.
    Its last places are free again, so that somebody could come in."""
    return cast.stage_of(study_that_runs(width, after=after, factor=factor, **more))


@kept
def study_that_runs(width: float, *, after: int, factor: str | None, **more: Any) -> Study:
    stop = {"width": width, "after": after, **({"factor": factor} if factor else {})}
    conditions = [{"factor": "framing", "levels": ["one", "two"]}] if factor else []
    settings = {"conditions": conditions, "candidates": {"size": 900}, **NO_ROLES, **more}
    study = cast.small_study(stages=[{"sittings": PEOPLE, "stop": stop}], **settings)
    stage = answer(lifecycle.open_stage(cast.stage_of(study)))
    sittings = list(stage.sittings.order_by("booklet__number"))
    numbers = {sitting.pk: number for number, sitting in enumerate(sittings, start=1)}
    assignments = list(Assignment.objects.filter(sitting__in=sittings))
    for assignment in assignments:
        assignment.completed_at = START + timedelta(minutes=numbers[assignment.sitting_id])
    Assignment.objects.bulk_update(assignments, ["completed_at"], batch_size=100)
    if factor:
        ConditionLevel.objects.bulk_create(
            ConditionLevel(sitting=sitting, factor=factor, level=("one", "two")[n % 2], probability=0.5, seed=n)
            for n, sitting in enumerate(sittings, start=1)
        )
    return study


def after(people: int) -> datetime:
    """When so many people have answered, and a minute more for their answers to be stored."""
    return START + timedelta(minutes=people + 1, seconds=1)


def look_often(stage: Stage, *, every: int = 5) -> list[Look]:
    """The looks that a watch makes that comes after so many people: it makes one each time, from 30 people on."""
    times = range(every, PEOPLE + 1, every)
    return [made for people in times if (made := interim.look(cast.stage_of(stage.study), now=after(people)))]


def ended() -> Stage:
    """A stage that its rule has ended, with all its looks."""
    return cast.stage_of(study_that_was_ended())


@kept
def study_that_was_ended() -> Study:
    stage = running(0.34)
    look_often(stage)
    return stage.study


def ended_and_frozen() -> Stage:
    return cast.stage_of(study_that_was_frozen())


@kept
def study_that_was_frozen() -> Study:
    stage = ended()
    jobs.run_inline(stage)
    return stage.study


@pytest.mark.thorough
def test_it_looks_from_the_first_people_on_and_after_every_few_more() -> None:
    stage = running(0.01)
    looks = look_often(stage, every=1)
    assert [look.people for look in looks] == list(range(30, PEOPLE + 1, 5))
    assert [look.number for look in looks] == list(range(1, 12))
    assert [look.answers for look in looks] == [3 * look.people for look in looks]
    assert not any(look.reached for look in looks) and cast.stage_of(stage.study).state == "open"
    assert interim.verify_looks(cast.stage_of(stage.study)) == []


def test_an_answer_of_the_very_moment_is_left_to_the_next_look() -> None:
    stage = running(0.01)
    moment = START + timedelta(minutes=30)
    assert study_estimates.take_interim_look(stage, factor="", until=moment).answers == 3 * 29
    assert interim.look(stage, now=moment + interim.SETTLED) is None
    made = interim.look(stage, now=moment + interim.SETTLED + timedelta(seconds=1))
    assert made is not None and (made.people, made.answers) == (30, 90)


@pytest.mark.parametrize(
    ("people", "of_estimate", "error", "last", "is_stored"),
    [
        (10, 10, 0.1, None, True),
        (9, 10, 0.1, None, False),
        (10, 9, 0.1, None, False),
        (10, 10, math.inf, None, False),
        (30, 30, 0.1, 10, True),
        (29, 30, 0.1, 10, False),
        (30, 29, 0.1, 10, False),
    ],
)
def test_a_look_needs_enough_people_in_the_stage_and_in_its_estimate(
    people: int, of_estimate: int, error: float, last: int | None, is_stored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = SimpleNamespace(n_clusters=of_estimate, standard_error=error)
    monkeypatch.setattr(interim, "_people", lambda stage, until: people)
    monkeypatch.setattr(interim, "take_interim_look", lambda stage, **_named: SimpleNamespace(estimate=estimate))
    monkeypatch.setattr(interim, "_store", lambda *_arguments, **_named: "stored")
    looks = SimpleNamespace(last=lambda: None if last is None else SimpleNamespace(people=last))
    rule = {"after": 10, "factor": None, "at_most": 1000}
    stage: Any = SimpleNamespace(manifest={"stop": rule}, state=Stage.State.OPEN, looks=looks)
    assert (interim.look(stage) is not None) is is_stored


@pytest.mark.thorough
def test_of_a_large_stage_it_looks_at_every_fiftieth_part() -> None:
    stage = running(0.01)
    stage.manifest["stop"]["at_most"] = 700
    stage.save(update_fields=["manifest"])
    assert [look.people for look in look_often(stage, every=1)] == [30, 44, 58, 72]


@pytest.mark.thorough
def test_each_look_has_the_estimate_of_that_moment_and_an_interval_for_all_moments() -> None:
    stage = running(0.01)
    (first, *_others) = look_often(stage)
    values, cluster = [], []
    for assignment in Assignment.objects.filter(completed_at__lt=first.answers_until).select_related("sitting"):
        beliefs = {response.screen: response.belief.value for response in assignment.responses.all()}
        values.append(float(beliefs["prior"] != beliefs["posterior"]))
        cluster.append(assignment.sitting_id)
    assert first.value == pytest.approx(np.mean(values))
    plain = bandit.stratified_mean(
        values=values, stratum=np.zeros(90, int), sizes=[900], cluster=cluster, universe_size=3120, share=True
    )
    assert first.standard_error == pytest.approx(plain.standard_error)
    rho = bandit.mixture_parameter(PEOPLE // 2)
    assert stage.manifest["stop"] == {
        "width": 0.01, "factor": None, "after": 30, "at_most": PEOPLE, "alpha": 0.05, "rho": rho, "span": [0.0, 1.0],
        "scale": "logit",
    }  # fmt: skip
    ends = bandit.anytime_ends(plain.value, plain.standard_error, 30, rho=rho, scale="logit")
    assert (first.low, first.high) == pytest.approx(ends)
    assert first.width > 1.3 * (plain.interval[1] - plain.interval[0])


def test_the_manifest_has_all_numbers_of_the_rule_that_may_end_a_stage() -> None:
    stop = {"width": 0.2, "after": 30}
    settings = {"candidates": {"size": 900}, **NO_ROLES}
    stage = cast.planned_stage(stages=[{"sittings": PEOPLE, "stop": stop}], **settings)
    assert stage.manifest["stop"] == {
        **stop, "factor": None, "at_most": PEOPLE, "alpha": 0.05, "rho": bandit.mixture_parameter(PEOPLE // 2),
        "span": [0.0, 1.0], "scale": "logit",
    }  # fmt: skip


def test_the_look_that_is_narrow_enough_ends_the_stage_and_is_remembered() -> None:
    stage = running(0.34)
    looks = look_often(stage)
    ended = cast.stage_of(stage.study)
    assert [look.reached for look in looks] == [False] * (len(looks) - 1) + [True]
    assert 30 < looks[-1].people < PEOPLE and looks[-1].width < 0.34 <= looks[-2].width
    assert ended.state == "closing"
    assert ended.manifest["stopped"] == interim.facts_of(looks[-1])
    entry = AuditEntry.objects.get(action="reach_stop")
    assert entry.via == "worker" and entry.detail["people"] == looks[-1].people
    assert interim.look(ended, now=after(PEOPLE)) is None
    assert interim.verify_looks(ended) == []
    written = methods_section.paragraphs(methods_section.methods_of(stage.study))
    assert (
        f"By its stopping rule stage 1 ends once its interval is narrower than 0.34, with 30 to {PEOPLE} people; "
        f"it was looked at {len(looks)} times, and the last look, at {looks[-1].people} people, ended it."
    ) in written["Design"][1]
    assert any("ended by its stopping rule" in line for line in written["Estimates"])


@pytest.mark.thorough
def test_a_stage_that_was_ended_admits_nobody_while_people_inside_finish() -> None:
    stage = running(0.34, sitting={"items": 3})
    inside = stage.sittings.order_by("-pk").first()
    assert inside is not None
    open_slots = inside.assignments.order_by("position")
    stage.sittings.filter(pk=inside.pk).update(state="live", ended_at=None)
    open_slots.update(state="live", completed_at=None)
    look_often(stage)
    ended = cast.stage_of(stage.study)
    assert ended.state == "closing" and capacity.admitting_stage(stage.study) is None
    with pytest.raises(enrolment.EntryRefused):
        enrolment.stage_to_join(stage.study)
    with pytest.raises(lifecycle.StillLive):
        lifecycle.freeze(ended)
    open_slots.update(state="counted", completed_at=after(PEOPLE))
    stage.sittings.filter(pk=inside.pk).update(state="complete", ended_at=after(PEOPLE))
    jobs.run_inline(ended)
    assert cast.stage_of(stage.study).state == "frozen"
    assert interim.verify_looks(cast.stage_of(stage.study)) == []


def test_a_second_worker_stores_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = running(0.01)
    real = interim.take_interim_look

    def while_another_looks(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(interim, "take_interim_look", real)
        assert interim.look(cast.stage_of(stage.study), now=after(40)) is not None
        return real(*args, **options)

    monkeypatch.setattr(interim, "take_interim_look", while_another_looks)
    assert interim.look(stage, now=after(40)) is None
    assert stage.looks.count() == 1


def test_the_database_holds_that_a_stage_is_ended_once() -> None:
    last = ended().looks.get(reached=True)
    last.pk, last.number = None, last.number + 1
    with pytest.raises(IntegrityError), transaction.atomic():
        last.save()


@pytest.mark.thorough
def test_no_change_at_all_is_no_narrow_interval() -> None:
    stage = running(0.34)
    Belief.objects.filter(response__assignment__slot__stage=stage).update(value=50)
    looks = look_often(stage)
    assert looks and {look.width for look in looks} == {0.0} and not any(look.reached for look in looks)
    assert study_estimates.estimate(stage.study).anytime == ()
    assert cast.stage_of(stage.study).state == "open"


@pytest.mark.thorough
def test_a_narrow_interval_of_too_few_changes_ends_nothing() -> None:
    stage = running(0.34)
    beliefs = Belief.objects.filter(response__assignment__slot__stage=stage)
    beliefs.update(value=50)
    for belief in beliefs.filter(response__screen="posterior").order_by("response__assignment__completed_at")[:2]:
        Belief.objects.filter(pk=belief.pk).update(value=80)
    looks = look_often(stage)
    assert all(0 < look.width < 0.34 for look in looks) and not any(look.reached for look in looks)
    assert cast.stage_of(stage.study).state == "open" and interim.verify_looks(cast.stage_of(stage.study)) == []


@pytest.mark.thorough
def test_a_rule_about_a_difference_looks_at_both_levels() -> None:
    stage = running(0.5, factor="framing")
    looks = look_often(stage)
    assert looks[0].people == 30
    by_level: dict[str, list[float]] = {"one": [], "two": []}
    for assignment in Assignment.objects.filter(completed_at__lt=looks[0].answers_until):
        beliefs = {response.screen: response.belief.value for response in assignment.responses.all()}
        by_level[ConditionLevel.objects.get(sitting=assignment.sitting_id).level].append(
            float(beliefs["prior"] != beliefs["posterior"])
        )
    assert looks[0].value == pytest.approx(np.mean(by_level["two"]) - np.mean(by_level["one"]))
    assert looks[-1].reached and cast.stage_of(stage.study).state == "closing"
    report = study_estimates.estimate(stage.study)
    line = next(line for line in report.anytime if line.factor)
    assert (line.label, line.rule_width, line.stopped) == ("two - one", 0.5, True)
    assert line.looks == len(looks) > 0
    other = next(line for line in report.anytime if not line.factor)
    assert (other.rule_width, other.looks, other.stopped) == (None, 0, False)


def test_estimates_show_the_interval_of_all_stages_and_say_what_a_stop_does() -> None:
    stage = running(0.34)
    before = study_estimates.estimate(stage.study)
    (line,) = before.anytime
    assert (line.people, line.looks, line.stopped, line.rule_width) == (PEOPLE, 0, False, 0.34)
    assert line.low < before.figures[0].combined.interval[0] and line.high > before.figures[0].combined.interval[1]
    assert not any("stopping rule" in assumption for assumption in before.assumptions)
    look_often(stage)
    estimates = study_estimates.estimate(stage.study)
    assert any("Stage 1 was ended by its stopping rule" in assumption for assumption in estimates.assumptions)
    assert "ended the stage" in study_estimates.rule_in_words(estimates.anytime[0])


def test_beat_looks_at_every_running_stage_and_at_no_other() -> None:
    stage = running(0.34)
    assert tasks.look_at_stages() == 1  # All of them answered long ago.
    assert stage.looks.get().people == PEOPLE and stage.looks.get().reached
    assert tasks.look_at_stages() == 0
    assert stage.looks.count() == 1


def test_an_error_of_one_stage_is_logged_and_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = running(0.34)
    monkeypatch.setattr(
        interim,
        "running_stages",
        lambda: [Stage(study=stage.study, index=1, manifest={"stop": {}}, state="open"), stage],
    )
    assert tasks.look_at_stages() == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"low": 0.001}, "the interval of look 1 is not that of its estimate"),
        ({"number": 99}, "number 1 is missing"),
        ({"reached": True}, "cannot have ended the stage"),
    ],
)
def test_a_look_that_was_changed_is_found(changed: dict[str, Any], message: str) -> None:
    stage = running(0.01)
    look_often(stage, every=20)
    Look.objects.filter(pk=stage.looks.order_by("number")[0].pk).update(**changed)
    assert any(message in line for line in interim.verify_looks(cast.stage_of(stage.study)))


def test_verify_stage_makes_the_last_look_again(capsys: pytest.CaptureFixture[str]) -> None:
    stage = ended_and_frozen()
    last = stage.looks.get(reached=True)
    call_command("verify_stage", stage.study.slug, "1")
    assert f"looks: {last.number} agree with their stopping rule" in capsys.readouterr().out
    rule = study_estimates.interval_by(stage.manifest["stop"])
    low, high = bandit.anytime_ends(0.5, last.standard_error, last.people, **rule)
    Look.objects.filter(pk=last.pk).update(value=0.5, low=low, high=high)
    frozen = cast.stage_of(stage.study)
    frozen.record(stopped=interim.facts_of(Look.objects.get(pk=last.pk)))
    assert interim.verify_looks(frozen) == [f"looks: look {last.number} found 0.5, and its answers make {last.value}"]


def test_after_a_withdrawal_the_look_stands_by_its_own_numbers() -> None:
    stage = ended_and_frozen()
    withdraw(respondent=stage.sittings.order_by("pk")[0].respondent, now=timezone.now())
    assert interim.verify_looks(cast.stage_of(stage.study)) == []


def test_the_export_holds_the_looks_and_the_check_makes_them_again(tmp_path: Path) -> None:
    stage = ended_and_frozen()
    looks = stage.looks.order_by("number")
    export_files.write_export(stage.study, tmp_path)
    verification = verify_study.verify(tmp_path)
    assert not any("look" in fault for fault in verification.faults)
    assert f"stage 1: {len(looks)} looks by its stopping rule" in verification.checked
    text = (tmp_path / "looks.csv").read_text(encoding="utf-8")
    (tmp_path / "looks.csv").write_text(text.replace(repr(looks[0].low), "0.25"), encoding="utf-8")
    assert any("look 1: low is 0.25" in fault for fault in verify_study.verify(tmp_path).faults)
    (tmp_path / "looks.csv").write_text("\n".join(text.splitlines()[:-1]), encoding="utf-8")
    assert any("the look that ended the stage" in fault for fault in verify_study.verify(tmp_path).faults)


def test_a_planned_rule_is_never_changed() -> None:
    stage = running(0.34)
    text = stage.study.source_text.replace("width = 0.34", "width = 0.5")
    assert text != stage.study.source_text
    refusals = amending.propose(stage.study, text=text, source_name="f").refusals
    assert "stage 1 is planned: a plan is never changed" in refusals["stages.1.stop.width"]


@pytest.mark.parametrize(
    ("stage", "more", "message"),
    [
        ({"stop": {"width": 0}}, {}, r"stages\.1\.stop\.width: must be more than 0"),
        ({"stop": {"width": 0.1, "after": 81}}, {}, r"stages\.1\.stop\.after: 81 people, and the stage has 80"),
        (
            {"stop": {"width": 0.1, "factor": "x"}},
            {},
            r"stages.1.stop.factor: x is no factor of \[\[conditions\]\] \(none",
        ),
        (
            {"stop": {"width": 0.1, "factor": "x"}},
            {"conditions": [{"factor": "x", "levels": ["a", "b", "c"]}]},
            r"stages\.1\.stop\.factor: x has 3 levels, and a difference needs two",
        ),
        ({"stop": {"width": 0.1}, "responses_per_item": 2}, {}, r"stages\.1\.stop: answers of different people to one"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused_with_its_key(
    stage: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(study_file.StudyFileError, match=message):
        study_file.parse(cast.study_text(stages=[{"sittings": PEOPLE, **stage}], **more))


def test_a_pilot_has_no_rule() -> None:
    stages = [{"sittings": 40, "pilot": True, "stop": {"width": 0.1}}, {"sittings": 4}]
    with pytest.raises(study_file.StudyFileError, match=r"stages\.1\.stop: a pilot's answers are not estimated"):
        study_file.parse(cast.study_text(stages=stages))
