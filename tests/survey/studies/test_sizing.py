"""Sizes that do not fit a bank are refused with those that would; every stage is told of at once."""

import pytest

from survey.exceptions import FileErrors
from survey.services.studies import sizing
from survey.services.studies.checking import check_study
from survey.services.studies.creating import create_study
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SIZED = {"bank": "small", "roles": {"holdout": 0, "controls": 0}, "predictor": {"name": "same_task"}}


def refusals(**overrides: object) -> list[str]:
    with pytest.raises(FileErrors) as refused:
        create_study(text=cast.study_text(**{**SIZED, **overrides}), source_name="new.toml")
    return [f"{problem.field}: {problem.message}" for problem in refused.value.problems]


def test_too_many_items_are_refused_with_the_largest_number_that_fits() -> None:
    cast.small_bank(20)
    (line,) = refusals(sitting={"items": 12}, stages=[{"sittings": 3}], candidates={"size": 300})
    assert (
        line.startswith("stages.1: ")
        and "20 questions, stage 1 (uniform): at most 10 items a sitting, since no question comes twice in it" in line
    )


def test_too_many_sittings_of_a_greedy_stage_are_refused_with_the_largest_number() -> None:
    cast.small_bank(20)
    design = {"kind": "epsilon_greedy", "epsilon": 0.5, "top_fraction": 0.1}
    stages = [{"sittings": 10}, {"sittings": 60, "design": design}, {"sittings": 70, "design": design}]
    lines = refusals(sitting={"items": 5}, stages=stages, candidates={"size": 300})
    assert len(lines) == 2 and all(line.startswith("stages: stage") for line in lines)
    assert "(epsilon_greedy, top 10 %)" in lines[0] and "with 5 items at most" in lines[0]
    most = int(lines[0].split("with 5 items at most ")[1].split()[0])
    fitting = [{"sittings": 10}, {"sittings": most, "design": design}]
    create_study(
        text=cast.study_text(**SIZED, sitting={"items": 5}, stages=fitting, candidates={"size": 300}), source_name="a"
    )
    more = [{"sittings": 10}, {"sittings": most + 1, "design": design}]
    assert refusals(slug="more", sitting={"items": 5}, stages=more, candidates={"size": 300})


def test_the_checker_says_the_limits_of_a_file_that_fits() -> None:
    cast.small_bank(20)
    text = cast.study_text(**SIZED, sitting={"items": 4}, stages=[{"sittings": 10}], candidates={"size": 100})
    check = check_study(text=text, source_name="new.toml", sizes=True)
    assert not check.has_problems
    (said,) = check.sizes
    assert said.startswith("20 questions, stage 1 (uniform): at most 10 items a sitting")
    assert "with 4 items at most 25 sittings" in said


def test_a_wrong_key_does_not_hide_that_the_bank_is_missing_or_the_slug_taken() -> None:
    cast.small_bank(20)
    cast.small_study("taken")
    lines = refusals(slug="taken", bank="lost", panel={"kind": "open", "rewrd": 5}, questions={"tasks": ["x"]})
    assert any(line.startswith("panel.rewrd: unknown key") for line in lines)
    assert any(line.startswith("slug: a study called 'taken' exists already") for line in lines)
    assert any(line.startswith("bank: there is no bank 'lost'") for line in lines)


def test_what_always_fits_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.small_study()
    monkeypatch.setattr(sizing, "_fits", lambda *_study, **_sizes: True)
    monkeypatch.setattr(sizing, "_without_repeats", lambda *_study: 0)
    assert sizing.limits_of(study, [*study.bank.questions.all()], 1) == ""
