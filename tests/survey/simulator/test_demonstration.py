"""The demo's study, login, table and verdict; `make demo` itself is the test of the rest."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model

from bandit.estimators import compare_shares
from survey.contracts import instruments
from survey.contracts.instruments import DemonstrationVerdict, InstrumentMissing, Metric
from survey.exceptions import NotFound, StateRefused
from survey.figures.rendering import aligned
from survey.models import Sitting
from survey.services.banks.importing import load_starter_bank
from survey.services.sittings.answering import advance
from survey.services.stages import jobs, lifecycle
from survey.simulator import demonstration, dry_run
from survey.simulator.demonstration import DemoVerdict, StageLine
from survey.simulator.own_site import OwnSite
from tests import cast


@pytest.fixture
def starter(db):
    return load_starter_bank()


@pytest.mark.slow
def test_the_demo_study_takes_the_next_free_slug(starter) -> None:
    slugs = [demonstration.create_demo_study().slug for _time in range(3)]
    assert slugs == ["demo", "demo-2", "demo-3"]
    assert demonstration.create_demo_study(name="demo-open").slug == "demo-open"


@pytest.mark.slow
def test_every_demonstration_names_the_bank_that_it_loads(db) -> None:
    for name in instruments.names():
        if (own_demonstration := instruments.kind(name).demonstration) is not None:
            assert demonstration.load_bank(name).name == own_demonstration.bank
            matching = instruments.demonstration_with(own_demonstration.bank, instrument=name)
            assert matching is own_demonstration, name
    assert instruments.demonstration_with("mine") is None and instruments.demonstration_with("") is None


def test_the_demo_study_stores_the_file_that_was_run(starter) -> None:
    study = demonstration.create_demo_study(seed=99, respondents=8)
    stored = tomllib.loads(study.source_text)
    assert (study.seed, stored["seed"], stored["slug"]) == (99, 99, study.slug)
    assert {stage["sittings"] for stage in stored["stages"]} == {8}
    assert study.config.questions.max_words == 30


@pytest.mark.slow
def test_without_a_seed_the_demo_has_the_files(starter) -> None:
    first, second = demonstration.create_demo_study(), demonstration.create_demo_study()
    assert first.seed == second.seed == tomllib.loads(first.source_text)["seed"]


def test_the_researcher_sees_and_runs_studies_but_no_panel_identity(db) -> None:
    user, password = demonstration.make_researcher()
    user = get_user_model().objects.get(pk=user.pk)
    assert user.is_staff and not user.is_superuser and user.check_password(password)
    assert user.has_perms(
        ["survey.run_study", "survey.export_study", "survey.view_assignment", "belief_update.view_pair"]
    )
    assert not user.has_perm("survey.see_panel_identity")
    assert not user.has_perm("survey.view_panelidentity")
    assert not user.has_perm("survey.change_study")


def test_the_demos_own_researcher_gets_a_new_password(db) -> None:
    first, old = demonstration.make_researcher()
    second, new = demonstration.make_researcher()
    assert first == second
    assert not get_user_model().objects.get().check_password(old)
    assert old != new


def test_somebody_elses_login_is_left_alone(db) -> None:
    other = get_user_model().objects.create_user("researcher", password="theirs")
    user, _password = demonstration.make_researcher()
    assert user.username == "researcher-2"
    other.refresh_from_db()
    assert other.check_password("theirs") and not other.is_staff


@pytest.mark.slow
def test_the_table_has_shares_by_stratum_and_the_metrics_of_the_steps(db) -> None:
    study = cast.open_study(
        predictor={"name": "previous_correct"},
        stages=[{"sittings": 4}, {"sittings": 2, "train": False, "design": {"kind": "epsilon_greedy", "epsilon": 0.5}}],
    )
    for stage in study.stages.select_related("study__bank").order_by("index"):
        lifecycle.open_stage(stage)
        for _person in range(stage.config.sittings):
            answer_in_turns(cast.begin(study))
        jobs.run_inline(lifecycle.close_stage(stage))
    assert Sitting.objects.filter(state="complete").count() == 6
    first, second = demonstration.stage_lines(study)
    assert (first.answers, first.share, first.top, first.judged) == (12, 2 / 3, None, None)
    assert first.training_seconds is not None and first.planning_seconds is not None
    assert (second.answers, second.share, (second.top or 0) + (second.rest or 0)) == (6, 2 / 3, 4 / 3)
    assert (second.training_seconds, second.planning_seconds) == (None, None)
    judged = stage.evaluations.get(predictor_run__role="main").metrics
    assert second.judged == judged["naive"]["auc"]["overall"] is not None
    verdict = demonstration.verdict_on(study, null=False)
    assert (verdict.comparison.first, verdict.comparison.second, verdict.passed) == (2 / 3, 2 / 3, False)
    table_lines = demonstration.stage_table([first, second]).splitlines()
    assert table_lines[2].split()[:6] == ["1", "12", "66.7", "%", "–", "–"]


def answer_in_turns(sitting: Sitting) -> None:
    """Keep the belief in the second of three items, change it in the others."""
    while (step := cast.walk(sitting, until="item", screen="posterior")).kind == "item":
        value = "60" if step.position == 2 else "70"
        advance(sitting=sitting, step=step.number, data=cast.answers_for(step, value=value))


def comparison(first: float, second: float):
    """Twenty people of fifteen answers in each stage, of which these shares changed."""

    def stage(share: float):
        return (7 * np.arange(300) % 10 < 10 * share).astype(float), np.arange(300) // 15

    (a, a_people), (b, b_people) = stage(first), stage(second)
    return compare_shares(first=a, first_cluster=a_people, second=b, second_cluster=b_people)


@pytest.mark.parametrize(
    ("second", "null", "passed", "said"),
    [
        (0.7, False, True, "PASSED: the last stage finds more changes (30.0 % changed in the first stage"),
        (0.3, False, False, "FAILED: the last stage does not find more changes"),
        (0.1, False, False, "FAILED: the last stage does not find more changes"),
        (0.3, True, True, "PASSED: no lift, as expected here"),
        (0.7, True, False, "FAILED: a lift, although none exists here"),
    ],
)
def test_the_verdict_is_said_plainly(second: float, null: bool, passed: bool, said: str) -> None:
    verdict = DemoVerdict(comparison=comparison(0.3, second), null=null)
    assert verdict.passed is passed
    assert verdict.sentence.startswith(said)


def test_a_lift_is_of_what_the_design_drew_and_not_of_the_holdout(monkeypatch) -> None:
    asked = []
    values = SimpleNamespace(outcomes=lambda _answers: {"changed": np.zeros(0), "other": np.ones(0)})
    monkeypatch.setattr(demonstration, "counted_answers", lambda stage, **named: asked.append(named) or [])
    monkeypatch.setattr(demonstration.instruments, "of_study", lambda study: None)
    monkeypatch.setattr(demonstration.instruments, "estimates_of", lambda instrument: values)
    demonstration._changes(SimpleNamespace(study=None))
    assert asked == [{"roles": ("sampled",)}]


@pytest.mark.parametrize(
    ("hosts", "address"), [(["*"], "localhost"), ([".example.org", "x"], "example.org"), ([], "localhost")]
)
def test_simulated_people_come_to_a_host_that_the_site_answers_to(settings, hosts, address) -> None:
    settings.ALLOWED_HOSTS = hosts
    assert OwnSite().base_url == f"https://{address}"


def test_the_summary_is_one_json_object_with_all_numbers() -> None:
    auc = Metric("auc", "Area under the ROC curve", highest_first=True)
    line = StageLine(1, 300, 1 / 3, None, None, None, 50.123456, None, auc)
    verdict = DemoVerdict(comparison=comparison(0.3, 0.6), null=False)
    summary = json.loads(
        json.dumps(demonstration.summary(seconds=12.34, lines=[line, replace(line, stage=2)], verdict=verdict))
    )
    assert list(summary) == ["seconds", "stages", "lift", "p"]
    assert summary["stages"][0] == {
        "stage": 1,
        "answers": 300,
        "share": 0.3333,
        "top": None,
        "rest": None,
        "auc": None,
        "training_seconds": 50.1235,
        "planning_seconds": None,
    }
    assert summary["lift"] == 2.0
    assert 0 < summary["p"] < 0.001


def test_a_table_sets_its_columns_right() -> None:
    assert aligned(["a", "long"], [["22", "3"]]) == " a  long\n--  ----\n22     3"


def test_a_verdict_without_anything_that_varies_has_no_p() -> None:
    alike = compare_shares(first=[0, 0], first_cluster=[1, 2], second=[1, 1], second_cluster=[3, 4])
    verdict = demonstration.DemoVerdict(comparison=alike, null=False)
    assert not verdict.lifted and not verdict.passed
    assert "no test, since nothing varies between respondents" in verdict.sentence
    assert demonstration.summary(seconds=1.0, lines=[], verdict=verdict)["p"] is None


def test_an_instrument_without_a_demonstration_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(NotFound, match=r"own_answers brings no demonstration; these do: .*belief_update"):
        demonstration.demonstration_of("own_answers")
    with pytest.raises(InstrumentMissing, match="belief_update"):
        demonstration.demonstration_of("nothing")


def test_an_instrument_says_itself_what_its_demonstration_must_find(starter, monkeypatch) -> None:
    kind = instruments.kind("belief_update")
    study = demonstration.create_demo_study()
    own = replace(kind.demonstration, verdict=f"{__name__}.own_verdict")
    monkeypatch.setattr(kind, "demonstration", own)
    verdict = demonstration.verdict_on(study, null=True)
    assert verdict.passed is False and verdict.sentence == f"FAILED: {study.slug}"
    assert demonstration.summary(seconds=1.0, lines=[], verdict=verdict)["found"] == 0.3333


def own_verdict(study, null) -> DemonstrationVerdict:
    return DemonstrationVerdict(passed=not null, sentence=f"FAILED: {study.slug}", figures={"found": 1 / 3})


def test_each_report_is_written_to_its_own_folder_with_the_arguments_it_cannot_do_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Any] = []
    choices = {"llm": ["parrot", "owl"], "other": []}
    fakes = SimpleNamespace(
        choices_of=lambda _copy, _entry, argument: choices[argument.name],
        make=lambda _copy, name, arguments: calls.append((name, arguments)) or "findings",
        write=lambda _copy, name, findings, folder: calls.append((name, findings, folder)),
    )
    monkeypatch.setattr(dry_run, "reports", fakes)
    required, optional, lacking = (
        SimpleNamespace(name=name, required=is_required, help="a model")
        for name, is_required in (("llm", True), ("llm", False), ("other", True))
    )
    copy: Any = None

    def report(*arguments: Any) -> None:
        line: Any = SimpleNamespace(entry=SimpleNamespace(name="words"), arguments=arguments)
        dry_run._report(copy, line, tmp_path)

    report(required)
    report(optional)
    folder = tmp_path / "reports" / "words"
    written = ("words", "findings", folder)
    assert calls == [("words", {"llm": ["parrot"]}), written, ("words", {}), written]
    with pytest.raises(StateRefused, match="other: a model: there is none yet"):
        report(lacking)
