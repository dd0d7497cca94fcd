"""The leaderboard: every run with every way its figures are counted, sorted, printed, exported and served."""

import csv
import json
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from toy_instrument.instrument import Toy

from predictors.evaluation.metrics import losses_of
from predictors.features import Features
from survey.contracts import instruments
from survey.contracts.instruments import AnswerPart, Baseline, Learning, Metric
from survey.figures import csv_lines
from survey.models import ApiToken, Evaluation, PredictorRun, Stage, Study
from survey.services.results.export import contents
from survey.services.stages import lifecycle, training
from survey.services.stages.leaderboard import LeaderboardLine, carried_by, leaderboard, learning_of, sorts_of
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


def named(lines: list[LeaderboardLine]) -> list[tuple[str, Any, str, str]]:
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


def test_it_says_how_few_answers_decide_who_is_ahead(study: Study, admin_client: Client) -> None:
    evaluation = Evaluation.objects.get(predictor_run__name="same_task")
    evaluation.metrics["difference"]["weighted"]["lost"] = 3
    evaluation.save()
    line = leaderboard(study)[1]
    assert (line.lost, leaderboard(study)[3].lost) == (3, None)
    sentence = (
        "same_task on stage 2 (sampled, weighting design): without 3 of 12 answers the main predictor and it would "
        "change places by log score."
    )
    assert carried_by(leaderboard(study)) == [sentence]
    out = StringIO()
    call_command("leaderboard", study.slug, stdout=out)
    assert sentence in out.getvalue()
    page = admin_client.get(reverse("admin:survey_study_leaderboard", args=[study.pk]))
    assert sentence in page.content.decode()


def test_without_these_answers_the_other_predictor_has_the_better_log_score() -> None:
    rng = np.random.default_rng(1)
    labels = (rng.random(60) < 0.5).astype(float)
    scores, main = rng.uniform(0.2, 0.8, 60), rng.uniform(0.2, 0.8, 60)
    lead = losses_of(labels, scores) - losses_of(labels, main)
    count = training._lost(labels, scores, main, None)
    assert count is not None
    # The answers that help the one ahead most, taken off one by one.
    sign = np.sign(lead.mean())
    rest = np.sort(sign * lead)[::-1]
    assert rest[count:].sum() < 0 <= rest[count - 1 :].sum()


def test_it_sorts_from_good_to_bad_with_what_is_unknown_last(study: Study) -> None:
    def values(metric: str, **options: Any) -> list[float | None]:
        return [line.figures[metric]["overall"].value for line in leaderboard(study, sort=metric, **options)]

    assert values("auc") == [0.9, 0.8, 0.7, 0.7, None, None, None]
    assert values("auc", reverse=True) == [0.7, 0.7, 0.8, 0.9, None, None, None]
    assert values("nll") == [0.5, 0.5, 0.6, 0.65, 0.65, 0.7, None]
    for sort in sorts_of(learning_of(study)):
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
    assert "same_task" in lines[2] and "0.900" in lines[2] and "0.900 [0.800, 1.000]" in lines[2]
    assert lines[8].split()[:6] == ["bert", "main", "2", "–", "–", "–"]
    call_command("leaderboard", "small", "--part", "previous_incorrect")
    assert "0.900" not in capsys.readouterr().out
    cast.small_study("fresh")
    call_command("leaderboard", "fresh")
    assert "has trained no predictor yet" in capsys.readouterr().out


def test_the_export_brings_it_along(study: Study) -> None:
    (extra,) = [extra for extra in contents.extra_files(study) if extra.name == "leaderboard.csv"]
    text = "".join(csv_lines.csv_lines(extra.columns, extra.rows))
    rows = list(csv.DictReader(StringIO(text, newline="")))
    assert list(rows[0]) == [column.name for column in extra.columns]
    assert (rows[0]["predictor"], rows[0]["params"], rows[0]["n"]) == ("bert", '{"members": 2}', "12")
    assert (rows[1]["auc_overall"], rows[1]["nll_difference"], rows[1]["auc_difference"]) == ("0.9", "0.1", "")
    assert (rows[6]["evaluated_on"], rows[6]["auc_overall"]) == ("", "")


def test_an_instrument_without_a_label_has_no_leaderboard() -> None:
    made = cast.small_study("quiz", instrument={"kind": "own_answers"})
    assert "leaderboard.csv" not in [extra.name for extra in contents.extra_files(made)]


def test_the_api_serves_the_same_lines(study: Study) -> None:
    user = User.objects.create_user("reader")
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    cast.join_all(user)
    reader = Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})
    lines = reader.get("/api/v1/studies/small/leaderboard/").json()
    assert [(line["predictor"], line["evaluated_on"], line["weighting"]) for line in lines] == [
        (name, on, weighting) for name, on, _answers, weighting in named(leaderboard(study))
    ]
    assert lines[1]["figures"]["auc"]["overall"] == {"value": 0.9, "low": pytest.approx(0.8), "high": 1.0}
    assert lines[1]["difference"]["nll"]["overall"]["value"] == 0.1
    assert json.dumps(lines[0]["params"]) == '{"members": 2}'
    assert Client().get("/api/v1/studies/small/leaderboard/").status_code == 401


# Of another instrument


class LengthLearning(Learning):
    """The label is a number, so that predictors are judged by how far off they are."""

    metrics = (Metric("rmse", "Root mean squared error", highest_first=False, chance="the mean has 1"),)
    parts = (AnswerPart("everything", "over everything"), AnswerPart("long", "over long passages", "long ones"))
    baselines = (Baseline("same_task", {"strength": 2.0}),)

    def inputs(self, *, rows: Any, questions: Any) -> list[Any]:
        return [Features(numbers={"previous_correct": 1.0, "same_task": 0.0}) for _row in rows]

    def examples(self, assignments: Any) -> Any:
        return [], np.zeros(0)

    def evaluate(self, assignments: Any, scores: Any, **how: Any) -> dict[str, Any]:
        return {}

    def compare(self, assignments: Any, scores: Any, others: Any, **how: Any) -> dict[str, Any]:
        return {}


class Lengths(Toy):
    name = "lengths"
    learning = LengthLearning()


@pytest.fixture
def other_kind(monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study of an instrument whose predictors are judged by another metric on other parts."""
    monkeypatch.setitem(instruments._kinds, Lengths.name, Lengths)
    study = cast.small_study(
        "lengths",
        instrument={"kind": "lengths"},
        predictor={"name": "same_task"},
        candidates={"size": 40},
        stages=[{"sittings": 4}, {"sittings": 4}],
    )
    first, second = study.stages.order_by("index")
    for name, role, error in (("bert", "main", 0.4), ("same_task", "baseline", 0.3)):
        run = run_after(first, name, role)
        judged = {"n": 12, "rmse": {"everything": error, "long": 2 * error}, "intervals": {"rmse": {"long": [0.1, 1]}}}
        compared = {"weighted": {"rmse": {"everything": {"difference": -0.1, "interval": [-0.2, 0]}}}}
        Evaluation.objects.create(
            predictor_run=run,
            stage=second,
            metrics={"weighted": judged, "difference": {} if role == "main" else compared},
        )
    return study


def test_metrics_parts_and_sorts_are_the_instruments(other_kind: Study, capsys: pytest.CaptureFixture[str]) -> None:
    lines = leaderboard(other_kind, sort="rmse")
    assert [(line.run.name, line.figures["rmse"]["everything"].value) for line in lines] == [
        ("same_task", 0.3),
        ("bert", 0.4),
    ]
    assert lines[1].figures["rmse"]["long"].high == 1 and lines[0].difference["rmse"]["everything"].value == -0.1
    call_command("leaderboard", "lengths", "--sort", "rmse", "--part", "long")
    output = capsys.readouterr().out
    assert output.splitlines()[0].split()[:7] == ["predictor", "role", "after", "on", "answers", "weighting", "n"]
    assert " RMSE" in output.splitlines()[0]
    assert "RMSE: lower is better, the mean has 1.\n" in output and "AUC" not in output and "0.800" in output
    for flag, known in (("--sort", "evaluated, trained, predictor, n, rmse"), ("--part", "everything, long")):
        with pytest.raises(SystemExit):
            call_command("leaderboard", "lengths", flag, "auc")
        assert f"{flag}: 'auc' is not one of {known}\n" in capsys.readouterr().err
    (extra,) = [extra for extra in contents.extra_files(other_kind) if extra.name == "leaderboard.csv"]
    assert [column.name for column in extra.columns][9:] == [
        *(f"rmse_{part}{end}" for part in ("everything", "long", "difference") for end in ("", "_low", "_high")),
        "columns",
    ]
    assert extra.columns[12].description == "Root mean squared error over long passages."
    assert [row[9] for row in extra.rows] == [0.4, 0.3]


def test_the_pages_show_the_metrics_that_the_instrument_has(other_kind: Study) -> None:
    admin = Client()
    admin.force_login(User.objects.create_superuser("root"))
    page = admin.get(f"/admin/survey/study/{other_kind.pk}/leaderboard/?sort=rmse").content.decode()
    assert "RMSE long ones</th>" in page and "RMSE less the main one's</th>" in page and ">AUC" not in page
    assert page.index("same_task") < page.index("bert") and "0.100 to 1.000" in page
    study = admin.get(f"/admin/survey/study/{other_kind.pk}/change/").content.decode()
    assert "RMSE" in study and "0.400" in study and ">AUC" not in study
    listed = admin.get("/admin/survey/evaluation/").content.decode()
    assert "RMSE" in listed and "AUC" in listed and "0.400" in listed
    line = admin.get("/api/v1/studies/lengths/leaderboard/").json()[0]
    assert line["figures"] == {
        "rmse": {
            "everything": {"value": 0.4, "low": None, "high": None},
            "long": {"value": 0.8, "low": 0.1, "high": 1.0},
        }
    }


def test_the_baselines_are_the_instruments(other_kind: Study) -> None:
    first = cast.stage_of(other_kind)
    names = [(choice.role, choice.name, choice.params) for choice in lifecycle._predictors_of(first)]
    assert names == [("main", "same_task", {})]
    other_kind.stored_config["predictor"]["name"] = "bert"
    other_kind.save()
    first = cast.stage_of(other_kind)
    assert [(choice.role, choice.name, choice.params) for choice in lifecycle._predictors_of(first)] == [
        ("main", "bert", {}),
        ("baseline", "same_task", {"strength": 2.0}),
    ]
