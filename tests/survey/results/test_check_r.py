"""`check.R`: a second computation of every figure, in R, from an export's files alone. It agrees with ours on studies
of all kinds, and says so when an estimator of ours is wrong."""

import csv
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

import bandit
import bandit.assistance
import bandit.clustered
import bandit.combining
import bandit.dropout
import bandit.estimate
import bandit.estimators
import bandit.pooling
import bandit.questions
from survey.contracts import instruments
from survey.models import Sitting, Stage, Study
from survey.services.results.estimates import study_estimates, study_figures
from survey.services.results.export import check_programs
from survey.services.stages import jobs, lifecycle
from tests import cast, r_packages
from tests.clients.test_r import examples
from tests.conftest import unavailable
from tests.golden import store
from tests.golden.test_golden import golden, loaded, study_of
from tests.survey import filled
from tests.survey.answers import test_majorities
from tests.survey.filled import NO_ROLES, run_study
from tests.survey.results import test_dropout, test_people_groups
from tests.survey.sittings import test_waves

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
__all__ = ["golden", "loaded"]

ADAPTIVE: dict[str, Any] = {"predictor": {"name": "same_task"}, "candidates": {"size": 500}}
CHECKED = (
    *("value", "standard_error", "degrees_of_freedom", "low", "high", "lowest", "highest", "weight"),
    *("effective_sample_size", "respondents", "p", "agree_p", "coefficient"),
)
HEADS = (
    *("combined", "assisted", "check", "difference", "difference to the rest", "assisted difference", "first items"),
    *("sampled - holdout", "at any time", "majority", "change within person", "withheld"),
)
GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25}


@pytest.fixture
def r() -> None:
    if not r_packages.is_installed("survey"):
        unavailable("check.R, since R with the package survey is not installed.")


@pytest.fixture(autouse=True)
def same_key(settings: Any) -> None:
    """The golden studies lie beside those of other tests here, and were made with this one."""
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY


def checked(folder: Path) -> tuple[int, str]:
    """How check.R ends, and what it says."""
    run = subprocess.run(["Rscript", str(folder / "check.R")], capture_output=True, text=True, check=False, timeout=900)
    return run.returncode, run.stdout + run.stderr


def agrees(study: Study, folder: Path, *arguments: str) -> str:
    """That check.R agrees with all that `estimate` writes about the study; what it says."""
    call_command("estimate", study.slug, *arguments, "--out", str(folder), verbosity=0)
    code, said = checked(folder)
    assert code == 0, said
    first = said.splitlines()[0].split()
    assert first[0] == first[2] and int(first[0]) > 0, said
    with (folder / "estimates.csv").open(newline="", encoding="utf-8") as file:
        rows = sum(1 for _row in csv.DictReader(file))
    left_out = sum(int(line.split()[2]) for line in said.splitlines() if line.startswith("not computed"))
    assert int(first[0]) + left_out == rows, "every row is computed, or named and counted"
    return said


def divided_by(study: Study) -> list[str]:
    """Options that divide by the instrument's first division and by every factor."""
    first = next(iter(instruments.estimates_of(instruments.of_study(study)).divisions([])), None)
    factors = [condition.factor for condition in study.config.conditions]
    return [f"--by={name}" for name in [*([first] if first else []), *factors]]


# Studies


def with_conditions(*levels: str) -> Study:
    """A uniform and an adaptive stage with holdouts, and levels that are drawn for people."""
    study = cast.small_study(
        stages=[{"sittings": 24}, {"sittings": 24, "design": GREEDY}],
        conditions=[{"factor": "framing", "levels": levels}],
        roles={"holdout": 0.25, "controls": 0},
        **ADAPTIVE,
    )
    for stage in study.stages.select_related("study__bank").order_by("index"):
        lifecycle.open_stage(stage)
        filled.answer(stage, seed=stage.index, lose=5)
        for number, sitting in enumerate(stage.sittings.order_by("pk")):
            level, probability = levels[number % len(levels)], 1 / len(levels)
            sitting.conditions.create(factor="framing", level=level, probability=probability, seed=1)
        jobs.run_inline(lifecycle.close_stage(stage))
    return study


def with_waves() -> Study:
    """Two waves, most of whose people answered in both."""
    stages = [{"sittings": 8}, {"sittings": 8, "wave": 2}]
    study = test_waves.wavy(stages=stages, roles={"holdout": 0, "controls": 0})
    people: list[list[int]] = []
    for index in (1, 2):
        stage = filled.answer(lifecycle.open_stage(cast.stage_of(study, index)), seed=index)
        jobs.run_inline(lifecycle.close_stage(stage))
        people.append(list(stage.sittings.order_by("pk").values_list("respondent", flat=True)))
    back = [*people[0][:6], *people[1][6:]]
    for sitting, respondent in zip(cast.stage_of(study, 2).sittings.order_by("pk"), back, strict=True):
        Sitting.objects.filter(pk=sitting.pk).update(respondent=respondent, wave=2)
    return study


def people_who_left() -> Study:
    study: Study = test_dropout.left.__wrapped__()
    return study


def unequal(kind: str) -> Study:
    return run_study(stages=[{"sittings": 20}, {"sittings": 24, "design": {"kind": kind}}], **ADAPTIVE, **NO_ROLES)


def several_answers() -> Study:
    stages = [{"sittings": 12, "responses_per_item": 3}, {"sittings": 12, "responses_per_item": 2, "design": GREEDY}]
    return run_study(stages=stages, predictor={"name": "same_task"}, candidates={"size": 200}, **NO_ROLES)


def majorities() -> Study:
    study: Study = test_majorities.frozen_test_stage().study
    return study


KINDS: Mapping[str, Callable[[], Study]] = {
    "conditions": lambda: with_conditions("plain", "warm"),
    "three levels": lambda: with_conditions("plain", "warm", "cold"),
    "waves": with_waves,
    "left": people_who_left,
    "softmax": lambda: unequal("softmax"),
    "proportional": lambda: unequal("proportional"),
    "robust": lambda: unequal("robust"),
    "several": several_answers,
    "groups": test_people_groups.asked_study,
    "majorities": majorities,
}


def test_r_agrees_with_groups_of_people_and_names_what_is_changed_or_missing(r: None, tmp_path: Path) -> None:
    study = test_people_groups.asked_study()
    said = agrees(study, tmp_path, "--by=use")
    assert "means and linearised errors are those of the package survey" in said
    path = tmp_path / "estimates.csv"
    with path.open(newline="", encoding="utf-8") as file:
        header, first, *rest = csv.reader(file)
    place = header.index("standard_error")
    first[place] = str(1.00001 * float(first[place]))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, first, *rest])
    code, said = checked(tmp_path)
    lines = [line for line in said.splitlines() if line.startswith(f"{first[0]}, combined: standard_error")]
    assert code == 1 and len(lines) == 1, said
    kind, division = header.index("kind"), header.index("division")
    dropped = [next(row for row in rest if row[kind] == "combined, one stage")]
    dropped += [row for row in rest if row[division] == "use" and row[kind].startswith("assisted")]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *(row for row in [first, *rest] if row not in dropped)])
    code, said = checked(tmp_path)
    sentence = f"{len(dropped)} rows are missing in estimates.csv: {dropped[0][0]} |  |  | combined, one stage"
    assert code == 1 and sentence in said, said
    assert {row[kind] for row in dropped[1:]} > {"assisted", "assisted difference"}


def test_every_export_with_answers_brings_the_programs_and_what_they_read(tmp_path: Path) -> None:
    study = run_study(stages=[{"sittings": 4}], **NO_ROLES)
    call_command("export", study.slug, "--out", str(tmp_path), verbosity=0)
    for name in (*check_programs.NAMES, *(f"{table}.csv" for table in check_programs.READS)):
        assert (tmp_path / name).stat().st_size > 100, name
    with (tmp_path / "design.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    answered = [row for row in rows if row["state"] == "answered"]
    assert len(answered) == study_estimates.estimate(study).answers
    assert {row["state"] for row in rows} <= {"answered", "unanswered", "excluded", "planned"}
    stage = Stage.objects.get(study=study)
    slots = {row["slot"] for row in rows if row["state"] in ("answered", "planned")}
    assert slots == {str(slot.number) for slot in stage.slots.all()}
    assert check_programs.check_programs(study, ["design", "estimates"]) == {}, "figures.csv is missing"
    text = "".join(check_programs.check_programs(study).values())
    assert len(check_programs.check_programs(study)[check_programs.CHECK].splitlines()) <= 120
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "slug", ["answers", "beliefs", "real", "words", "guesses", "replies", "pace", "chances", "steps"]
)
def test_r_agrees_with_the_golden_studies(golden: None, r: None, slug: str, tmp_path: Path) -> None:
    study = study_of(slug)
    agrees(study, tmp_path / "divided", *divided_by(study))
    call_command("export", slug, "--out", str(tmp_path / "export"), verbosity=0)
    code, said = checked(tmp_path / "export")
    assert code == 0, said
    if slug == "beliefs":
        agrees(study, tmp_path / "level", "--condition", "framing=warm", "--threshold=0,5")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_r_agrees_with_studies_of_every_kind(r: None, kind: str, tmp_path: Path) -> None:
    study = KINDS[kind]()
    options = divided_by(study)
    if kind == "groups":
        population = tmp_path / "population.toml"
        population.write_text('[[margins]]\nby = ["use"]\nshares = { never = 0.2, weekly = 0.2, daily = 0.6 }\n')
        options += ["--by=use", "--by=age", f"--weighting={population}"]
    said = agrees(study, tmp_path, *options)
    with (tmp_path / "estimates.csv").open(newline="", encoding="utf-8") as file:
        kinds = {row["kind"] for row in csv.DictReader(file)}
    expected = {
        "conditions": {"sampled - holdout", "difference", "assisted difference"},
        "three levels": {"difference to the rest", "assisted difference"},
        "waves": {"change within person"},
        "left": {"weighted for leaving", "worst case"},
        "groups": {"difference to the rest", "assisted difference", "weighted to the population"},
        "majorities": {"majority"},
    }
    assert expected.get(kind, {"combined"}) <= kinds, said


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["conditions", "three levels", "groups", "left", "majorities", "waves"])
def test_r_notices_a_changed_digit_and_a_missing_row_of_every_kind(r: None, kind: str, tmp_path: Path) -> None:
    study = KINDS[kind]()
    if kind == "majorities":  # Their labels are in exports alone.
        call_command("export", study.slug, "--out", str(tmp_path), verbosity=0)
    else:
        population = tmp_path / "population.toml"
        population.write_text('[[margins]]\nby = ["use"]\nshares = { never = 0.3, weekly = 0.3, daily = 0.4 }\n')
        groups = ["--by=use", "--by=age", f"--weighting={population}"] if kind == "groups" else []
        call_command("estimate", study.slug, *divided_by(study), *groups, "--out", str(tmp_path), verbosity=0)
    path = tmp_path / "estimates.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def written(changed: Sequence[Mapping[str, str]]) -> list[str]:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(changed)
        code, said = checked(tmp_path)
        assert code == 1, said
        return said.splitlines()

    damaged = [dict(row) for row in rows]
    by_kind = {row["kind"]: [other for other in damaged if other["kind"] == row["kind"]] for row in rows}
    changes = 0
    for own in by_kind.values():
        for column in CHECKED:
            row = next((row for row in own if row[column] not in ("", "0.0") and row.get("damaged") is None), None)
            if row is not None:
                row[column] = str(int(row[column]) + 1) if column == "respondents" else str(1.0001 * float(row[column]))
                row["damaged"] = column
                changes += 1
    named = [{name: cell for name, cell in row.items() if name != "damaged"} for row in damaged]
    differing = [line for line in written(named) if " is here " in line]
    assert len(differing) == changes >= len(by_kind), "each changed row has a line"
    there = [row for row in rows if row["value"] or row["low"] or row["kind"] == "withheld"]
    # What stands next to a figure is taken from the first one, the heads of figures from the last.
    dropped = {row["kind"]: row for row in reversed(there)} | {
        row["kind"]: row for row in there if row["kind"] in HEADS
    }
    lines = written([row for row in rows if row not in dropped.values()])
    (line,) = [line for line in lines if "rows are missing" in line]
    wanted = {
        " | ".join(
            [*(row[name] for name in ("figure", "division", "label", "kind")), f"{row['stage']} {row['role']}".strip()]
        )
        for row in dropped.values()
    }
    assert wanted == set(line.split("estimates.csv: ")[1].split("; "))


@pytest.mark.thorough
@pytest.mark.parametrize("trim", [100, 1.4], ids=["raked", "trimmed"])
def test_r_weighs_people_to_several_margins(r: None, trim: float, tmp_path: Path) -> None:
    population = tmp_path / "population.toml"
    ages = '"under 30" = 0.15, "30 to 49" = 0.45, "50 or more" = 0.4'
    population.write_text(
        f"trim = {trim}\n"
        '[[margins]]\nby = ["use"]\nshares = { never = 0.45, weekly = 0.3, daily = 0.25 }\n'
        f'[[margins]]\nby = ["age"]\nshares = {{ {ages} }}\n'
    )
    study = test_people_groups.asked_study()
    assert "not computed" not in agrees(study, tmp_path, f"--weighting={population}")
    with (tmp_path / "population.csv").open(newline="", encoding="utf-8") as file:
        off = max(abs(float(row["weighted"]) - float(row["in_population"])) for row in csv.DictReader(file))
    assert (off > 0.001) == (trim == 1.4), "only a limit moves shares"


@pytest.mark.thorough
def test_r_agrees_with_a_study_of_18480_answers(r: None, tmp_path: Path) -> None:
    study = run_study(
        on=cast.small_bank(400, name="large"),
        sitting={"items": 15},
        stages=[{"sittings": 308}] * 4,
        candidates={"size": 12000},
        **NO_ROLES,
    )
    agrees(study, tmp_path)
    with (tmp_path / "design.csv").open(newline="", encoding="utf-8") as file:
        assert sum(row["state"] == "answered" for row in csv.DictReader(file)) == 18_480


@pytest.mark.thorough
def test_the_page_for_r_shows_models_and_quantiles_on_the_same_design(r: None, tmp_path: Path) -> None:
    study = run_study(stages=[{"sittings": 20}, {"sittings": 20, "design": GREEDY}], **ADAPTIVE, **NO_ROLES)
    call_command("export", study.slug, "--out", str(tmp_path), verbosity=0)
    _setting, _studies, weights, models, *_rest = examples()
    reading = 'answers <- read.csv("answers.csv", na.strings = "", encoding = "UTF-8")'
    printing = 'cat("mean", format(coef(svymean(~changed_over_0, items)), digits = 10), "\\n")'
    (tmp_path / "examples.R").write_text("\n".join([reading, weights, models, printing]), encoding="utf-8")
    run = subprocess.run(["Rscript", "examples.R"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("mean ")]
    figure = study_estimates.estimate(study).figures[0].combined
    assert figure is not None and float(line.split()[-1]) == pytest.approx(figure.value, rel=1e-8)


# Faults of ours that R says


def _with(function: Any, **changed: Any) -> Callable[..., Any]:
    return lambda *args, **named: function(*args, **{**named, **changed})


FAULTS: Mapping[str, tuple[str, Any, str, Callable[[Any], Any]]] = {
    "no C / (C - 1)": (
        "conditions",
        bandit.clustered,
        "_one_way",
        lambda _old: lambda rows, label: (totals := bandit.clustered.cluster_totals(rows, label)).T @ totals,
    ),
    "the floor borrows twice as much": ("conditions", bandit.estimators, "BORROWED", lambda old: 2 * old),
    "no floor": ("conditions", bandit.estimators, "_least_of_mean", lambda _old: lambda *_args: 0.0),
    "plans weigh by another correlation": ("conditions", bandit, "plan_weight", lambda old: _with(old, clustering=0.3)),
    "no Wilson": ("conditions", bandit.estimate, "WILSON_BELOW", lambda _old: 0),
    "a pool adds nothing": (
        "conditions",
        bandit.estimators._Stratified,
        "first_phase",
        lambda _old: lambda *_args: 0.0,
    ),
    "degrees of freedom are added": (
        "conditions",
        bandit.combining,
        "satterthwaite",
        lambda _old: lambda _variances, freedoms: float(sum(freedoms)),
    ),
    "the errors of bounds are a tenth too wide": (
        "left",
        bandit.dropout._Side,
        "variance",
        lambda old: lambda side, value, size: 1.21 * old(side, value, size),
    ),
    "predictions are trusted too much": ("conditions", bandit.assistance, "CAUTION", lambda old: old / 2),
    "an answer fits its own coefficient": (
        "conditions",
        bandit.assistance._Fit,
        "_of_others",
        lambda _old: lambda _fit, pieces: np.broadcast_to(pieces.sum(axis=0), pieces.shape),
    ),
    "questions count as people do": (
        "conditions",
        bandit.questions,
        "effective_size",
        lambda _old: lambda weight: float(np.count_nonzero(weight)),
    ),
    "intervals are not cut": ("conditions", study_figures, "cut", lambda _old: lambda figure, _span: figure),
    "leaving is forgotten": ("left", bandit, "stratified_mean", lambda old: _with(old, staying=None)),
    "heavy people are not allowed for": (
        "left",
        study_figures,
        "widen_for_heavy_people",
        lambda _old: lambda figure, *_rest: figure,
    ),
    "items are not clusters": (
        "several",
        bandit.estimators._Items,
        "variance",
        lambda _old: lambda _self, _contributions, by_person: by_person,
    ),
    "heavy answers count as light ones": (
        "proportional",
        bandit.estimators,
        "_freedom_of_weights",
        lambda _old: lambda _weight, _cluster: None,
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("fault", FAULTS)
def test_r_says_that_an_estimator_of_ours_is_wrong(
    r: None, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, owner, name, change = FAULTS[fault]
    study = KINDS[kind]()
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    call_command("estimate", study.slug, "--out", str(tmp_path), verbosity=0)
    code, said = checked(tmp_path)
    assert code == 1 and "is here" in said, said
