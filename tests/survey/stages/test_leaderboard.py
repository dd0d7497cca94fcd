"""The leaderboard: every run with every way its figures are counted, sorted, printed, exported and served."""

import csv
import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from survey.models import ApiToken, Evaluation, PredictorRun, Stage, Study
from survey.services.base import csv_lines
from survey.services.results.export import contents
from survey.services.stages.leaderboard import COLUMNS, SORTS, Line, leaderboard
from tests import cast

pytestmark = pytest.mark.django_db


def figures(auc: float | None, nll: float, n: int = 12) -> dict[str, Any]:
    """Metrics as the belief update stores them; after an incorrect answer nothing is defined."""

    def cells(value: Any) -> dict[str, Any]:
        return {"overall": value, "previous_correct": value, "previous_incorrect": None}

    return {
        "n": n,
        "auc": cells(auc),
        "nll": cells(nll),
        "intervals": {
            "auc": cells(None if auc is None else [auc - 0.1, auc + 0.1]),
            "nll": cells([nll - 0.2, nll + 0.2]),
        },
    }


def difference(nll: float) -> dict[str, Any]:
    cell = {"difference": nll, "interval": [nll - 0.1, nll + 0.1], "p": 0.5}
    empty = {"difference": None, "interval": None, "p": None}
    return {"nll": {"overall": cell}, "auc": {"overall": empty}}


def run_after(stage: Stage, name: str, role: str, **values: Any) -> PredictorRun:
    return PredictorRun.objects.create(
        stage=stage, name=name, role=role, seed=1, input_sha256=f"{name}{stage.index}", example_count=12, **values
    )


@pytest.fixture
def study() -> Study:
    """A predictor and a compared one judged by stage 2, with a holdout; the predictor of stage 2 by nothing yet."""
    study = cast.small_study(stages=[{"sittings": 4}, {"sittings": 4}, {"sittings": 4}])
    first, second, _third = study.stages.order_by("index")
    main = run_after(first, "bert", "main", params={"members": 2})
    other = run_after(first, "same_task", "compared", params={})
    run_after(second, "bert", "main")
    both = {"weighted": figures(0.8, 0.6), "naive": figures(0.7, 0.5), "holdout": figures(None, 0.65, n=3)}
    Evaluation.objects.create(predictor_run=main, stage=second, metrics={**both, "difference": {}})
    Evaluation.objects.create(
        predictor_run=other,
        stage=second,
        metrics={
            **both,
            "weighted": figures(0.9, 0.7),
            "difference": {"weighted": difference(0.1), "naive": difference(0.0)},
        },
    )
    # Of another study: never among its lines.
    stranger = cast.stage_of(cast.small_study("other"))
    run_after(stranger, "bert", "main")
    return study


def named(lines: list[Line]) -> list[tuple[str, Any, str, str]]:
    return [(line.run.name, line.evaluated_on, line.answers, line.weighting) for line in lines]


def test_every_run_has_a_line_for_each_way_of_counting_and_the_main_one_leads(study: Study) -> None:
    assert named(leaderboard(study)) == [
        ("bert", 2, "sampled", "design"),
        ("same_task", 2, "sampled", "design"),
        ("bert", 2, "sampled", "none"),
        ("same_task", 2, "sampled", "none"),
        ("bert", 2, "holdout", "design"),
        ("same_task", 2, "holdout", "design"),
        ("bert", None, "", ""),
    ]


def test_a_line_has_figures_intervals_and_the_difference_from_the_main_one(study: Study) -> None:
    line = leaderboard(study)[1]
    assert (line.trained_after, line.n, line.predictor) == (1, 12, "same_task")
    auc = line.figures["auc"]
    assert (auc["overall"].value, auc["overall"].high) == (0.9, 1.0) and auc["overall"].low == pytest.approx(0.8)
    assert auc["previous_correct"].value == 0.9 and auc["previous_incorrect"].value is None
    nll = line.difference["nll"]["overall"]
    assert (nll.value, nll.low, nll.high) == (0.1, 0.0, 0.2)
    assert line.difference["auc"]["overall"].value is None


def test_it_sorts_from_good_to_bad_with_what_is_unknown_last(study: Study) -> None:
    def values(metric: str, **options: Any) -> list[float | None]:
        return [line.figures[metric]["overall"].value for line in leaderboard(study, sort=metric, **options)]

    assert values("auc") == [0.9, 0.8, 0.7, 0.7, None, None, None]
    assert values("auc", reverse=True) == [0.7, 0.7, 0.8, 0.9, None, None, None]
    assert values("nll") == [0.5, 0.5, 0.6, 0.65, 0.65, 0.7, None]
    for sort in SORTS:
        assert len(leaderboard(study, sort=sort)) == 7


def test_figures_from_before_there_were_weights_are_shown_as_naive(study: Study) -> None:
    old = Evaluation.objects.get(predictor_run__role="main")
    Evaluation.objects.exclude(pk=old.pk).delete()
    Evaluation.objects.update(metrics={"naive": {"n": 5, "auc": {"overall": 0.6}, "nll": {"overall": 0.5}}})
    line = leaderboard(study)[0]
    assert (line.weighting, line.n, line.figures["auc"]["overall"].value) == ("none", 5, 0.6)
    assert line.figures["auc"]["overall"].low is None


def test_more_runs_take_no_more_queries(study: Study) -> None:
    with CaptureQueriesContext(connection) as captured:
        leaderboard(study)
    for number in range(5):
        run_after(cast.stage_of(study), f"more{number}", "compared")
    with CaptureQueriesContext(connection) as again:
        leaderboard(study)
    assert len(again) == len(captured) == 2


# Printed, exported, served


def test_the_command_prints_a_line_each(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("leaderboard", "small", "--sort", "auc")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["predictor", "role", "after"]
    assert "same_task" in lines[2] and "0.900" in lines[2] and "0.800 to 1.000" in lines[2]
    assert lines[8].split()[:6] == ["bert", "main", "2", "-", "-", "-"]
    call_command("leaderboard", "small", "--part", "previous_incorrect")
    assert "0.900" not in capsys.readouterr().out
    cast.small_study("fresh")
    call_command("leaderboard", "fresh")
    assert "has trained no predictor yet" in capsys.readouterr().out


def test_the_export_brings_it_along(study: Study) -> None:
    (extra,) = [extra for extra in contents.extra_files(study) if extra.name == "leaderboard.csv"]
    text = "".join(csv_lines.csv_lines(extra.columns, extra.rows))
    rows = list(csv.DictReader(StringIO(text, newline="")))
    assert list(rows[0]) == [column.name for column in COLUMNS]
    assert (rows[0]["predictor"], rows[0]["params"], rows[0]["n"]) == ("bert", '{"members": 2}', "12")
    assert (rows[1]["auc_overall"], rows[1]["nll_difference"], rows[1]["auc_difference"]) == ("0.9", "0.1", "")
    assert (rows[6]["evaluated_on"], rows[6]["auc_overall"]) == ("", "")


def test_an_instrument_without_a_label_has_no_leaderboard() -> None:
    made = cast.small_study("quiz", instrument={"kind": "own_answers"})
    assert "leaderboard.csv" not in [extra.name for extra in contents.extra_files(made)]


def test_the_api_serves_the_same_lines(study: Study) -> None:
    user = User.objects.create_user("reader")
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    reader = Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})
    lines = reader.get("/api/v1/studies/small/leaderboard/").json()
    assert [(line["predictor"], line["evaluated_on"], line["weighting"]) for line in lines] == [
        (name, on, weighting) for name, on, _answers, weighting in named(leaderboard(study))
    ]
    assert lines[1]["figures"]["auc"]["overall"] == {"value": 0.9, "low": pytest.approx(0.8), "high": 1.0}
    assert lines[1]["difference"]["nll"]["overall"]["value"] == 0.1
    assert json.dumps(lines[0]["params"]) == '{"members": 2}'
    assert Client().get("/api/v1/studies/small/leaderboard/").status_code == 401
