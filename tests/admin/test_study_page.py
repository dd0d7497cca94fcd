"""The study page: what it shows, what a researcher can do there, and what the audit records."""

import csv
import io
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.admin import stage_actions, study_page
from survey.instruments.belief_update.capabilities import BeliefEstimates
from survey.instruments.belief_update.instrument import BeliefLabelReading, BeliefUpdate
from survey.live.stage_sections import COUNTED, Mean, metric_table, sections, stage_outcomes
from survey.models import Assignment, AuditEntry, JobStep, Question, Sitting, Stage, Study
from survey.services.base.auditing import actor_of
from survey.services.results.export import files
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from tests import cast

from .conftest import client_of, stage_of, take_part

pytestmark = pytest.mark.slow


def page(study: Study) -> str:
    return f"/admin/survey/study/{study.pk}/change/"


def action(study: Study, stage: int, name: str) -> str:
    return f"/admin/survey/study/{study.pk}/stages/{stage}/{name}/"


def offered(client: Client, study: Study) -> dict[int, list[str]]:
    sections = client.get(page(study)).context["sections"]
    return {section.stage.index: [action.name for action in actions] for section, actions in sections}


# What it shows


def test_it_counts_people_answers_and_places_by_stage(study: Study) -> None:
    first, second = sections(study)
    assert (first.in_time, first.counted, first.slots, first.free_booklets) == (6, 6, 6, 0)
    assert (second.in_time, second.counted, second.slots, second.free_booklets) == (3, 3, 9, 1)
    assert dict(first.sittings) == {"complete": 2} and dict(second.sittings) == {"complete": 1, "live": 1}
    strata = {line.name: line for line in second.strata}
    assert set(strata) == {"top", "rest"}
    assert sum(line.drawn for line in second.strata) == 9
    assert sum(line.in_time for line in second.strata) == 3
    assert sum(line.counted for line in second.strata) == 3


def test_it_shows_the_share_that_changed_by_stratum(study: Study) -> None:
    first, second = sections(study)
    assert first.outcomes.name == "changed"
    assert first.outcomes.overall == Mean(value=4 / 6, n=6, is_share=True)
    assert str(first.strata[0].mean) == "66.7 %"
    assert sum(line.mean.n for line in second.strata if line.mean) == 3


def test_another_answer_is_seen_once_the_figures_are_a_minute_old(study: Study, monkeypatch: Any) -> None:
    assert sections(study)[1].outcomes.overall == Mean(value=2 / 3, n=3, is_share=True)
    take_part(study, 203)
    assert sections(study)[1].outcomes.overall.n == 3  # type: ignore[union-attr]
    monkeypatch.setattr("survey.live.stage_sections.MIN_REFRESH", timedelta(0))
    assert sections(study)[1].outcomes.overall == Mean(value=4 / 6, n=6, is_share=True)


def test_answers_that_did_not_change_are_not_read_again(study: Study, monkeypatch: Any) -> None:
    with CaptureQueriesContext(connection) as first:
        before = sections(study)
    monkeypatch.setattr("survey.live.stage_sections.MIN_REFRESH", timedelta(0))
    with CaptureQueriesContext(connection) as second:
        after = sections(study)
    assert [section.outcomes for section in before] == [section.outcomes for section in after]
    assert any("belief_update_belief" in query["sql"] for query in first)
    assert not any("belief_update_belief" in query["sql"] for query in second)


def test_one_statement_gives_the_outcomes_that_the_answers_themselves_give(study: Study, monkeypatch: Any) -> None:
    by_statement = stage_outcomes(study, list(study.stages.all()))
    monkeypatch.setattr(BeliefLabelReading, "first_outcome", lambda *_given: None)
    cache.clear()
    assert stage_outcomes(study, list(study.stages.all())) == by_statement
    assert {outcomes.name for outcomes in by_statement.values()} == {"changed"}


@pytest.mark.django_db
def test_more_stages_take_no_more_queries() -> None:
    def queries(slug: str, count: int) -> int:
        made = cast.small_study(
            slug,
            stages=[{"sittings": 4, "design": {"kind": "uniform"}}] * count,
            flags={"same_answers": {"share": 1.0, "items": 3}},
            exclusions={"flags": ["same_answers"]},
        )
        with CaptureQueriesContext(connection) as captured:
            sections(Study.objects.get(pk=made.pk))
        return len(captured)

    assert queries("many", 6) == queries("few", 2)


def test_an_outcome_that_is_no_share_is_shown_as_a_mean(study: Study, monkeypatch: Any) -> None:
    assert str(Mean(value=1.5, n=2, is_share=False)) == "1.50"
    monkeypatch.setattr(BeliefEstimates, "units", {"changed": "changes"})
    first, _second = sections(study)
    assert first.outcomes.overall == Mean(value=4 / 6, n=6, is_share=False), "counts may be 0 and 1 by chance"


def test_metrics_are_laid_out_by_part() -> None:
    table = metric_table({"n": 9, "auc": {"overall": 0.75, "previous_correct": None}}, BeliefUpdate().learning)
    assert table.parts == ("overall", "previous correct")
    assert table.rows == (("answers", ("9", "")), ("AUC", ("0.750", "–")))


@pytest.mark.thorough
def test_it_judges_the_predictor_by_the_stage_that_it_planned(study: Study, as_researcher: Client) -> None:
    lifecycle.close_stage(stage_of(study, 2), now=True)
    jobs.run_inline(stage_of(study, 2))
    first, second = sections(study)
    assert first.judged is None
    assert second.judged is not None and second.judged.run == first.runs[0].run
    assert [title for title, _table in second.judged.tables] == list(COUNTED.values())[:2]
    assert first.runs[0].evaluated_on == (second.index,)
    body = as_researcher.get(page(study)).content.decode()
    assert "NLL" in body and "previous incorrect" in body


def test_what_is_offered_follows_from_the_stages_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_actions.lifecycle, "waits_for_a_choice", lambda stage: stage.waits)
    monkeypatch.setattr(stage_actions.lifecycle, "waits_for_training", lambda stage: stage.waits == "for training")

    def section(index: int, state: str, *, plans: bool = False, waits: bool | str = False, **facts: Any) -> Any:
        design = SimpleNamespace(kind=facts.pop("kind", "epsilon_greedy"))
        stage = SimpleNamespace(state=state, plans_on_opening=plans, waits=waits, config=SimpleNamespace(design=design))
        plain = {"index": index, "stage": stage, "candidates": None, "live": 0, "failed_steps": []}
        return SimpleNamespace(**{**plain, **facts})

    def offered(of: Any, before: str = "frozen") -> list[str]:
        sections = [section(1, before), of]
        return [action.name for action in stage_actions.offered(of, sections)]

    assert offered(section(2, "draft")) == []
    assert offered(section(2, "draft", kind="uniform")) == offered(section(2, "draft", candidates="c")) == ["plan"]
    assert offered(section(2, "draft", waits=True)) == ["plan-uniformly"]
    assert "stop-training" in offered(section(2, "draft", waits="for training"))
    assert offered(section(2, "draft", waits="for training"), before="closing") == []
    assert offered(section(2, "draft", waits=True), before="closing") == []
    assert offered(section(2, "draft", plans=True)) == offered(section(2, "planned", candidates="c")) == ["open"]
    assert offered(section(2, "planned"), before="closing") == []
    assert offered(section(2, "open"), before="closing") == ["pause", "close", "close-now"]
    assert offered(section(2, "paused")) == ["resume", "close", "close-now"]
    assert offered(section(2, "closing")) == [] and offered(section(2, "closing", live=1)) == ["close-now"]
    assert offered(section(2, "frozen", live=1, candidates="c", failed_steps=["train"])) == ["retry"]


def test_each_earlier_stage_has_its_own_people_screens_and_checks() -> None:
    rows = {
        name: [SimpleNamespace(stage=index, of=name) for index in (1, 2, 3)]
        for name in ("funnels", "screens", "checks")
    }
    quick = SimpleNamespace(funnels=rows["funnels"], checks=rows["checks"])
    look = SimpleNamespace(quick=quick, slow=SimpleNamespace(screens=rows["screens"]))
    live: Any = SimpleNamespace(newest=2, look=look)
    earlier = study_page.earlier_stages(live)
    assert {index: (stage.funnel, [*stage.screens, *stage.checks]) for index, stage in earlier.items()} == {
        index: (rows["funnels"][index - 1], [rows["screens"][index - 1], rows["checks"][index - 1]]) for index in (1, 3)
    }
    look.slow = None
    assert study_page.earlier_stages(live)[1].screens == [] and study_page.earlier_stages(None) == {}


def test_a_study_is_there_for_who_may_see_it_with_its_people_who_withdrew(study: Study, researcher: User) -> None:
    outsider = User.objects.create_user("outsider", is_staff=True)
    outsider.user_permissions.set(Permission.objects.filter(content_type__app_label="survey"))
    withdraw(respondent=study.respondents.earliest("pk"), now=timezone.now())
    whole = study_page.whole_study(researcher, str(study.pk))
    assert whole == study and whole.withdrawn == 1  # type: ignore[attr-defined]
    assert study_page.whole_study(outsider, str(study.pk)) is None
    assert study_page.whole_study(researcher, "new") is None and study_page.whole_study(researcher, "0") is None


def test_figures_have_their_intervals_beside_them() -> None:
    metrics = {"n": 9, "auc": {"overall": 0.75}, "intervals": {"auc": {"overall": [0.6, 0.9]}}}
    table = metric_table(metrics, BeliefUpdate().learning)
    assert table.rows == (("answers", ("9",)), ("AUC", ("0.750 [0.600, 0.900]",)))


def test_it_shows_addresses_codes_and_the_study_file_as_text(study: Study, as_researcher: Client) -> None:
    Study.objects.filter(pk=study.pk).update(source_text="<script>alert(1)</script>")
    body = as_researcher.get(page(study)).content.decode()
    assert "http://testserver/s/cast/?PROLIFIC_PID={{%PROLIFIC_PID%}}" in body
    assert study.completion_code("completed") in body
    assert study.source_sha256 in body
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body and "<script>alert(1)" not in body


@pytest.mark.thorough
def test_it_has_no_inline_style_or_script(study: Study, as_researcher: Client) -> None:
    body = as_researcher.get(page(study)).content.decode()
    assert " style=" not in body and "<style" not in body
    assert body.count("<script") == body.count("<script src=") + body.count('<script id="django-admin')


def test_a_study_that_does_not_exist_is_not_there(as_researcher: Client) -> None:
    assert as_researcher.get("/admin/survey/study/999/change/").status_code == 404
    assert as_researcher.get("/admin/survey/study/999/stages/1/open/").status_code == 404


# What is done there


@pytest.mark.thorough
def test_only_what_the_state_allows_is_offered(study: Study, as_researcher: Client) -> None:
    assert offered(as_researcher, study) == {1: [], 2: ["pause", "close", "close-now"]}
    lifecycle.pause_stage(stage_of(study, 2))
    assert offered(as_researcher, study)[2] == ["resume", "close", "close-now"]
    lifecycle.close_stage(stage_of(study, 2))
    assert offered(as_researcher, study)[2] == ["close-now"]
    fresh = cast.study(slug="fresh", stages=[{"sittings": 2}, {"sittings": 2}])
    assert offered(as_researcher, fresh) == {1: ["plan", "open"], 2: ["plan"]}


def test_asking_changes_nothing(study: Study, as_researcher: Client) -> None:
    before = AuditEntry.objects.count()
    for name in ("plan", "open", "resume", "pause", "close", "close-now", "retry"):
        response = as_researcher.get(action(study, 2, name))
        assert response.status_code == 200
        assert 'method="post"' in response.content.decode()
    assert stage_of(study, 2).state == Stage.State.OPEN
    assert AuditEntry.objects.count() == before


@pytest.mark.parametrize(
    ("name", "state", "entry"),
    [("pause", "paused", "pause_stage"), ("close", "closing", "close_stage"), ("close-now", "closing", "close_stage")],
)
def test_a_stage_is_moved_and_it_is_written_down_by_whom(
    study: Study, as_researcher: Client, researcher: User, name: str, state: str, entry: str
) -> None:
    response = as_researcher.post(action(study, 2, name), follow=True)
    assert response.status_code == 200
    assert stage_of(study, 2).state == state
    written = AuditEntry.objects.first()
    assert written is not None
    assert (written.action, written.actor, written.via) == (entry, actor_of(researcher), "admin")
    live = Sitting.objects.filter(stage__index=2, state=Sitting.State.LIVE).count()
    assert live == (0 if name == "close-now" else 1)


def test_a_fresh_study_is_planned_opened_paused_and_resumed(as_researcher: Client) -> None:
    fresh = cast.study(slug="fresh")
    for name, state in (("plan", "planned"), ("open", "open"), ("pause", "paused"), ("resume", "open")):
        as_researcher.post(action(fresh, 1, name))
        assert stage_of(fresh).state == state
    entries = AuditEntry.objects.filter(via="admin").exclude(action="log_in").order_by("pk")
    done = list(entries.values_list("action", flat=True))
    assert done == ["plan_stage", "lock_study", "open_stage", "pause_stage", "open_stage"]


def test_a_refused_action_says_why(study: Study, as_researcher: Client) -> None:
    response = as_researcher.post(action(study, 1, "pause"), follow=True)
    assert "stage 1 of cast is frozen and cannot become paused" in response.content.decode()
    assert stage_of(study).state == Stage.State.FROZEN


def test_failed_steps_show_their_error_and_are_retried(study: Study, as_researcher: Client) -> None:
    step = JobStep.objects.filter(stage__index=1).first()
    assert step is not None
    JobStep.objects.filter(pk=step.pk).update(state=JobStep.State.FAILED, error="<no space> left", tries_left=0)
    assert "&lt;no space&gt; left" in as_researcher.get(page(study)).content.decode()
    assert offered(as_researcher, study)[1] == ["retry"]
    as_researcher.post(action(study, 1, "retry"))
    step.refresh_from_db()
    assert (step.state, step.error) == (JobStep.State.QUEUED, "")


@pytest.mark.thorough
def test_an_action_needs_the_permission_to_run_studies(study: Study, researcher: User, onlooker: User) -> None:
    researcher.groups.get().permissions.remove(*_permissions("run_study", "export_study"))
    for user, status in ((researcher, 403), (onlooker, 404)):
        client = client_of(user)
        assert client.post(action(study, 2, "close")).status_code == status
        assert client.get(action(study, 2, "close")).status_code == status
        assert client.post(f"/admin/survey/study/{study.pk}/export/answers.csv").status_code == status
    assert Client().post(action(study, 2, "close")).status_code == 302  # to the login
    assert stage_of(study, 2).state == Stage.State.OPEN
    body = client_of(researcher).get(page(study)).content.decode()
    assert "/stages/2/" not in body and 'value="answers.csv"' not in body
    assert client_of(onlooker).get(page(study)).status_code == 404


def _permissions(*names: str) -> Any:
    return Permission.objects.filter(codename__in=names)


def test_an_action_needs_the_forms_token(study: Study, researcher: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(researcher)
    assert client.post(action(study, 2, "close")).status_code == 403
    assert stage_of(study, 2).state == Stage.State.OPEN


# Downloads


def test_a_download_is_the_export_and_is_written_down(study: Study, as_researcher: Client, researcher: User) -> None:
    response = as_researcher.post(f"/admin/survey/study/{study.pk}/export/answers.csv", {"exact": "1"})
    assert response["Content-Disposition"] == 'attachment; filename="cast-answers.csv"'
    body = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    assert body == "".join(files.answers_csv(study))
    written = AuditEntry.objects.first()
    assert written is not None
    assert (written.action, written.actor, written.via) == ("export_answers", actor_of(researcher), "admin")
    assert written.detail == {"form": "answers.csv", "guarded": False}


@pytest.mark.thorough
def test_a_button_brings_a_table_that_a_spreadsheet_cannot_run(study: Study, as_researcher: Client) -> None:
    Question.objects.filter(bank=study.bank, position__lt=6).update(text='=HYPERLINK("x";"y"), +1')
    address = f"/admin/survey/study/{study.pk}/export/answers.csv"
    page_text = as_researcher.get(page(study)).content.decode()
    assert page_text.count('<summary class="button">Download answers.csv</summary>') == 1
    exact_button = 'name="exact" value="Byte-exact, for programs" aria-label="Byte-exact, for programs: '
    assert f'{exact_button}answers.csv"' in page_text and f"{exact_button}codebook.md" not in page_text
    guarded, exact = as_researcher.post(address), as_researcher.post(address, {"exact": "Byte-exact, for programs"})
    assert guarded["Content-Disposition"] == 'attachment; filename="cast-answers.spreadsheet.csv"'
    ours, theirs = (
        list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))  # type: ignore[attr-defined]
        for response in (exact, guarded)
    )
    assert any(row["target_text"].startswith("=") for row in ours)
    changed = {(name, row[name], other[name]) for row, other in zip(ours, theirs, strict=True) for name in row}
    assert {name for name, old, new in changed if old != new} <= {"target_text", "evidence_text", "responses"}
    assert all(new == f"'{old}" for name, old, new in changed if name == "target_text" and old.startswith("="))
    assert not any(cell.startswith(tuple("=+@")) for row in theirs for cell in row.values())


def test_the_instruments_own_file_and_the_codebook_are_offered(study: Study, as_researcher: Client) -> None:
    files = as_researcher.get(page(study)).context["files"]
    assert (files[0], files[-1]) == ("answers.csv", "codebook.md")
    assert {"belief_changes.csv", "forms.csv", "checks.csv", "question_reports.csv", "leaderboard.csv"} < set(files)
    changes = as_researcher.post(f"/admin/survey/study/{study.pk}/export/belief_changes.csv")
    lines = b"".join(changes.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "q1,q2,source1,source2,previous_correct,belief_change"
    counted = Assignment.objects.filter(state=Assignment.State.COUNTED).count()
    assert sum(line[-2:] in (",0", ",1") for line in lines) == counted
    codebook = as_researcher.post(f"/admin/survey/study/{study.pk}/export/codebook.md")
    assert b"".join(codebook.streaming_content).startswith(b"# Codebook")  # type: ignore[attr-defined]


def test_a_download_is_no_get_and_an_unknown_file_is_none(study: Study, as_researcher: Client) -> None:
    before = AuditEntry.objects.count()
    assert as_researcher.get(f"/admin/survey/study/{study.pk}/export/answers.csv").status_code == 405
    assert as_researcher.post(f"/admin/survey/study/{study.pk}/export/secrets.csv").status_code == 404
    assert as_researcher.post("/admin/survey/study/999/export/answers.csv").status_code == 404
    assert AuditEntry.objects.count() == before
