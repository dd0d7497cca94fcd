"""A study whose instrument is gone: pages, API, admin, commands and workers say so, and nothing is lost."""

import logging
from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from survey.contracts import instruments
from survey.models import Assignment, QuestionReport, Response, Sitting, Stage, Study
from survey.services.sittings import expiry
from survey.services.stages import jobs, lifecycle
from survey.study_file.kept import forget_files
from tests import cast
from tests.frontend.pages import arrive

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
WHY = "no instrument is called 'belief_update'; there are: "
STEP = "/api/v1/sitting/"


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The instrument is not installed any more."""
    kinds = {name: kind for name, kind in instruments._kinds.items() if name != "belief_update"}
    monkeypatch.setattr(instruments, "_kinds", kinds)
    return


@pytest.fixture
def begun() -> cast.Visitor:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    visitor.post(value=60)
    return visitor


def token(visitor: cast.Visitor) -> dict[str, str]:
    return {"X-Sitting-Token": visitor.sitting.token}


def test_nobody_is_let_in_and_the_page_says_why_in_german_too(begun: cast.Visitor, gone: None, client: Client) -> None:
    page = client.get("/s/small/", follow=True)
    assert page.status_code == 503
    text = page.content.decode()
    assert "This study cannot be shown at the moment. Nothing is lost" in text and WHY not in text
    study = begun.sitting.stage.study
    Study.objects.filter(pk=study.pk).update(
        stored_config={
            **study.stored_config,
            "texts": {**study.stored_config["texts"], "language": "de", "languages": ["de"]},
        }
    )
    forget_files()  # An amended file has another hash; this one has not.
    german = client.get("/s/small/", follow=True).content.decode()
    assert "Diese Studie kann im Moment nicht gezeigt werden. Es ist nichts verloren" in german


def test_who_is_inside_sees_it_and_goes_on_once_it_is_back(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    cast.open_stage(blocks=[block for block in cast.BLOCKS if block["kind"] != "checks"])
    page = arrive(client, slug="small")
    with monkeypatch.context() as patch:
        patch.setattr(instruments, "_kinds", {})
        for answered in (
            client.get("/s/small/sitting"),
            client.post("/s/small/sitting", {**page.hidden, "value": "60"}),
        ):
            assert answered.status_code == 503 and "Nothing is lost" in answered.content.decode()
        assert not Response.objects.exists() and Sitting.objects.get().state == "live"
    client.post("/s/small/sitting", {**page.hidden, "value": "60"})
    assert Response.objects.count() == 1


def test_who_has_finished_still_gets_the_code(gone: None, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    visitor = cast.Visitor(cast.open_stage().study).finish()
    monkeypatch.setattr(instruments, "_kinds", {})
    step = client.get(STEP, headers=token(visitor)).json()
    assert (step["kind"], step["outcome"]) == ("end", "completed") and step["code"]


def test_the_api_answers_with_its_error(begun: cast.Visitor, gone: None, client: Client) -> None:
    for answered in (
        client.get(STEP, headers=token(begun)),
        client.post(STEP, {"step": 3, "value": 50}, content_type="application/json", headers=token(begun)),
        client.get("/api/v1/studies/small/"),
        client.post("/api/v1/studies/small/sittings/", {"consent": True}, content_type="application/json"),
    ):
        assert answered.status_code == 503
        error = answered.json()["error"]
        assert error["code"] == "instrument_missing" and "Nothing is lost" in error["message"]


def test_the_admin_says_it_in_the_figures_place(begun: cast.Visitor, gone: None, admin_client: Client) -> None:
    begun.sitting.assignments.update(state="released")
    answered = admin_client.get(reverse("admin:survey_study_change", args=[begun.sitting.stage.study_id]))
    assert answered.status_code == 200 and WHY.replace("'", "&#x27;") in answered.content.decode()
    estimates = admin_client.get(reverse("admin:survey_study_estimates", args=[begun.sitting.stage.study_id]))
    assert estimates.status_code == 200 and WHY.replace("'", "&#x27;") in estimates.content.decode()


@pytest.mark.thorough
@pytest.mark.any_database
def test_no_page_of_the_admin_breaks(gone: None, admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).finish()
    left = cast.Visitor(stage.study).to_items()
    QuestionReport.objects.create(
        sitting=left.sitting,
        assignment=left.sitting.assignments.first(),
        screen="prior",
        text="odd",
        at=stage.opened_at,
    )
    assert visitor.sitting.assignments.filter(state="counted").count() == 3
    monkeypatch.setattr(instruments, "_kinds", {})
    study = stage.study_id
    names = [url.name for url in admin.site._registry[Study].get_urls() if url.name]
    pages = [
        reverse(f"admin:{name}", args=[study])
        for name in names
        if name.startswith("survey_study_")
        and name.rpartition("_")[2] in ("estimates", "leaderboard", "pilot", "reports")
    ]
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        pages.append(reverse(f"{name}_changelist"))
        if row := model._default_manager.first():
            pages.append(reverse(f"{name}_change", args=[row.pk]))
    admin_client.raise_request_exception = False
    for page in pages:
        assert admin_client.get(page).status_code in (200, 302, 404, 503), page
    answer = admin_client.get(reverse("admin:survey_assignment_change", args=[Assignment.objects.first().pk]))
    assert answer.status_code == 200 and "no instrument is called" in answer.content.decode()


@pytest.mark.parametrize("command", [["estimate", "small"], ["export", "small", "--out", "unused"]])
def test_commands_end_with_the_sentence(
    command: list[str], begun: cast.Visitor, gone: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command(*command)
    assert ended.value.code == 1 and WHY in capsys.readouterr().err


def test_a_step_fails_with_the_sentence_and_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.closed_stage()
    (step,) = stage.job_steps.all()
    with monkeypatch.context() as patch:
        patch.setattr(instruments, "_kinds", {})
        assert not jobs.run_step(step.pk)
        step.refresh_from_db()
        assert (step.state, step.error.startswith(WHY)) == ("failed", True)
    lifecycle.retry_steps(stage)
    jobs.run_inline(stage)
    assert Stage.objects.get(pk=stage.pk).state == "frozen"


def test_the_sweep_of_one_study_says_it_once_and_does_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = cast.frozen_stage()
    Stage.objects.filter(pk=stage.pk).update(settled_at=None)
    stored = dict(stage.study.stored_config)
    Study.objects.filter(pk=stage.study_id).update(stored_config={**stored, "predictor": {"name": "same_task"}})
    monkeypatch.setattr(instruments, "_kinds", {})
    with caplog.at_level(logging.WARNING):
        for _beat in range(3):
            jobs.due_steps()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "does not go on: no instrument is called" in caplog.text


def test_nobody_expires_while_nothing_can_be_shown(begun: cast.Visitor, gone: None) -> None:
    begun.sitting.stage.sittings.update(last_seen_at="2020-01-01T00:00:00Z")
    assert expiry.expire_sittings() == 0
    assert begun.reload().state == "live"
