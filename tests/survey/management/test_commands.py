"""The commands: what they print, and what a wrong call gets."""

import io
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command, load_command_class
from django.core.management.base import SystemCheckError
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from survey.console import progress_bars
from survey.management.commands import close_stage
from survey.models import ApiToken, AuditEntry, Bank, JobStep, Stage, Study
from survey.services.banks import bbh, mmlu
from survey.services.stages import jobs, lifecycle
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def refused(*arguments: str) -> list[str]:
    """The lines on stderr of a command that ended with status 1 and printed nothing else."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(*arguments, stdout=out, stderr=err)
    assert ended.value.code == 1
    assert out.getvalue() == ""
    return err.getvalue().splitlines()


@pytest.fixture
def bank_file(tmp_path: Path) -> Path:
    path = tmp_path / "bank.csv"
    path.write_text("id,source,question,answer\na,s,What?,1\nb,s,Why is that so?,2\n")
    return path


def test_import_questions_says_what_it_imported(bank_file: Path) -> None:
    assert run("import_questions", str(bank_file), "--bank", "mine") == "imported 2 questions into mine version 1\n"
    assert run("import_questions", str(bank_file), "--bank", "mine") == "imported 2 questions into mine version 2\n"


def test_import_questions_leaves_out_what_is_too_long(bank_file: Path) -> None:
    out = run("import_questions", str(bank_file), "--bank", "mine", "--max-characters", "5").splitlines()
    assert [line.split() for line in out[:1] + out[2:4]] == [
        ["task", "read", "over", "5", "characters", "kept"],
        ["s", "2", "1", "1"],
        ["all", "2", "1", "1"],
    ]
    assert out[4:] == ["imported 1 questions into mine version 1"]


def test_import_questions_adds_both_benchmarks_of_the_paper_and_says_how_many_it_has(tmp_path: Path) -> None:
    mmlu_folder, bbh_folder = tmp_path / "mmlu", tmp_path / "bbh"
    mmlu_folder.mkdir()
    bbh_folder.mkdir()
    for subject in mmlu.DOMAIN_OF:
        (mmlu_folder / f"{subject}_test.csv").write_text(f"Why {subject}?,a,b,c,d,A\n")
    for task in bbh.TASKS:
        examples = [{"input": "Why?", "target": "a"}, {"input": "x" * 751, "target": "a"}]
        (bbh_folder / f"{task}.json").write_text(json.dumps({"examples": examples}))
    first = run("import_questions", str(mmlu_folder), "--bank", "paper", "--format", "mmlu", "--paper").splitlines()
    assert first[-1] == "imported 57 questions into paper version 1"
    out = run("import_questions", str(bbh_folder), "--bank", "paper", "--format", "bbh", "--paper").splitlines()
    table = {cells[0]: cells[1:] for cells in map(str.split, out)}
    assert table["task"] == ["read", "task", "left", "out", "over", "750", "characters", "kept"]
    assert table["bbh_navigate"] == ["2", "0", "1", "1"]
    assert table["bbh_word_sorting"] == ["2", "2", "0", "0"]
    assert table["all"] == ["54", "10", "22", "22"]
    assert out[-2:] == [
        "imported 22 questions into paper version 2, in addition to 57 of version 1: 79 questions in 79 tasks",
        "79 questions pass the paper's filters; the paper prints 16,347",
    ]


def test_import_questions_says_that_answers_of_models_stay_with_the_version_before(tmp_path: Path) -> None:
    bank = tmp_path / "bank.csv"
    bank.write_text("id,source,question,answer\na,s,What?,1\n")
    answers = tmp_path / "answers.csv"
    answers.write_text("llm,question_id,correct\none,a,1\n")
    (tmp_path / "snarks.json").write_text(json.dumps({"examples": [{"input": "Why?", "target": "a"}]}))
    run("import_questions", str(bank), "--bank", "mine")
    run("import_answers", str(answers), "--bank", "mine")
    out = run("import_questions", str(tmp_path), "--bank", "mine", "--format", "bbh").splitlines()
    assert out[-1].startswith("answers of 1 language models stay with version 1: import_answers adds them")


def test_import_questions_refuses_a_folder_of_which_the_filters_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "snarks.json").write_text(json.dumps({"examples": [{"input": "Why is that?", "target": "a"}]}))
    (line,) = refused("import_questions", str(tmp_path), "--bank", "mine", "--format", "bbh", "--max-characters", "3")
    assert "holds no question, or none that the filters leave" in line


def test_import_questions_refuses_with_one_line_a_problem(bank_file: Path) -> None:
    bank_file.write_text("id,source,question,answer\na,s,,1\na,s,Why?,2\n")
    assert refused("import_questions", str(bank_file), "--bank", "mine") == [
        f"{bank_file}:2: question: is empty: give every question a text",
        f"{bank_file}:3: id: 'a' stands already in line 2: ids must differ",
    ]
    assert not Bank.objects.exists()


def test_create_study_says_what_comes_next(tmp_path: Path) -> None:
    cast.bank()
    path = tmp_path / "cast.toml"
    path.write_text(cast.study_text())
    assert run("create_study", str(path)) == (
        "created study cast on cast version 1 with 2 stages; next: open_stage cast\n"
    )


def test_a_studys_owner_is_named_and_members_are_changed_from_the_shell(tmp_path: Path) -> None:
    cast.bank()
    path = tmp_path / "cast.toml"
    path.write_text(cast.study_text())
    assert "--owner: no active user is called 'ada'" in refused("create_study", str(path), "--owner", "ada")[0]
    users = get_user_model().objects
    ada, bob = users.create_user("ada"), users.create_user("bob")
    run("create_study", str(path), "--owner", "ada")
    assert run("members", "cast").splitlines()[-1].split() == ["ada", "owner", "yes"]
    assert run("members", "cast", "set", "bob", "analyst").splitlines()[-1].split() == ["bob", "analyst", "no"]
    assert users.get(pk=bob.pk).has_perm("survey.view_study"), "every role presumes the group"
    run("members", "cast", "set", "bob", "viewer", "--may-spend")
    run("members", "cast", "remove", "bob")
    assert list(Study.objects.get().memberships.values_list("user", flat=True)) == [ada.pk]
    assert "keeps an owner" in refused("members", "cast", "remove", "ada")[0]
    assert "no member 'bob'" in refused("members", "cast", "remove", "bob")[0]


def test_create_study_refuses_with_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "cast.toml"
    path.write_text(cast.study_text())
    (line,) = refused("create_study", str(path))
    assert line.startswith(
        f"{path}:3: bank: there is no bank 'cast'; there are: none; `hunch import_questions` adds one"
    )
    assert not Study.objects.exists()


def test_create_study_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    (line,) = refused("create_study", str(tmp_path / "none.toml"))
    assert line == f"{tmp_path}/none.toml:1: file: cannot be read (No such file or directory): check the path"


def test_plan_stage_says_how_many_slots_it_drew() -> None:
    cast.study()
    out = run("plan_stage", "cast", "1")
    assert out.startswith("cast stage 1 is planned: 12 slots in 4 booklets (12 of 200 in all), plan ")
    assert run("plan_stage", "cast", "1") == out


def test_open_stage_plans_the_first_stage_and_says_where_it_is() -> None:
    cast.study()
    opened, locked = run("open_stage", "cast").splitlines()
    assert opened == "cast stage 1 is open for 4 people at /s/cast/"
    assert locked.startswith(f"the study file is locked ({Study.objects.get().source_sha256})")


def test_pause_stage_and_open_stage_go_back_and_forth() -> None:
    study = cast.open_study()
    assert run("pause_stage", "cast") == "cast stage 1 is paused; `open_stage cast` opens it again\n"
    run("open_stage", "cast")
    assert study.stages.get(index=1).state == Stage.State.OPEN


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("open_stage", "lost"), "no study is called 'lost'; there are: cast"),
        (("plan_stage", "cast", "9"), "cast has no stage 9; it has stages 1 to 2"),
        (("open_stage", "cast", "--stage", "2"), "stage 2 is not planned: open and close stage 1 first"),
        (("pause_stage", "cast"), "stage 1 of cast is draft and cannot become paused"),
        (("close_stage", "cast"), "stage 1 of cast is draft and cannot become closing"),
        (
            ("simulate", "cast", "--respondents", "2"),
            "no stage of cast is open: open the next one (`hunch open_stage cast`)",
        ),
        (("simulate", "cast", "--respondents", "0"), "--respondents: 0 is not 1 or more"),
        (("create_token", "nobody"), "no active user is called 'nobody'"),
    ],
)
def test_a_wrong_call_gets_one_line_and_status_1(arguments: tuple[str, ...], expected: str) -> None:
    cast.study()
    (line,) = refused(*arguments)
    assert line.startswith(expected)


def test_close_stage_tells_how_many_are_inside_and_now_does_not_wait_for_them() -> None:
    study = cast.open_study()
    cast.begin(study)
    assert run("close_stage", "cast").startswith("cast stage 1 is closing; 1 people are still inside\n")
    assert run("close_stage", "cast", "--now").startswith("cast stage 1 is closing\n")


def test_close_stage_waits_until_the_next_stage_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    # In place of a worker: between two looks at the database, the steps are run here.
    monkeypatch.setattr(progress_bars.time, "sleep", lambda seconds: jobs.run_inline(study.stages.get(index=1)))
    out = run("close_stage", "cast", "--wait")
    assert out.splitlines()[-1] == "cast stage 1 is frozen; cast stage 2 is planned"


def test_close_stage_ends_with_status_1_and_the_fix_when_a_step_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.open_study()

    def fail(seconds: float) -> None:
        JobStep.objects.update(state=JobStep.State.FAILED, error="the disk is full")

    monkeypatch.setattr(progress_bars.time, "sleep", fail)
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("close_stage", "cast", "--wait", stdout=out, stderr=err)
    assert ended.value.code == 1
    assert "freeze answers (cast stage 1): the disk is full" in err.getvalue()
    assert "hunch retry_steps cast" in err.getvalue()
    assert run("retry_steps", "cast") == "queued 1 step again\n"
    assert run("retry_steps", "cast") == "no step has failed\n"
    assert study.stages.get(index=1).job_steps.get().state == JobStep.State.QUEUED


def test_ctrl_c_while_waiting_leaves_the_work_going(monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.open_study()

    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(close_stage, "wait_for_pipeline", interrupt)
    with pytest.raises(SystemExit) as ended:
        run("close_stage", "cast", "--wait")
    assert ended.value.code == 130
    assert study.stages.get(index=1).state == Stage.State.CLOSING
    assert study.stages.get(index=1).job_steps.get().state == JobStep.State.QUEUED


def test_who_waits_reads_why_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.open_study()
    stage = study.stages.select_related("study__bank").get(index=1)
    sitting = cast.begin(study)
    monkeypatch.setattr(progress_bars, "STILL_AFTER", 0.0)
    heard: list[str] = []

    def go_on(seconds: float) -> None:
        if heard:
            cast.walk(sitting)
            jobs.run_inline(stage)

    monkeypatch.setattr(progress_bars.time, "sleep", go_on)
    progress_bars.wait_for_pipeline(lifecycle.close_stage(stage), say=heard.append)
    # The demo runs its own workers, and asks nobody to start any.
    assert "hunch up" in progress_bars._why_nothing_moves(stage, own_workers=False)
    assert "start" not in progress_bars._why_nothing_moves(stage, own_workers=True)
    assert heard == ["Waiting for 1 people who are still inside. To stop waiting for them: `close_stage cast --now`."]


def test_create_token_shows_it_once_and_stores_its_hash() -> None:
    user = get_user_model().objects.create_user("ada")
    secret = run("create_token", "ada", "--name", "laptop").strip()
    token = ApiToken.objects.get(user=user)
    assert (token.digest, token.name) == (ApiToken.hashed(secret), "laptop")
    assert secret not in str(AuditEntry.objects.get(action="create_token").__dict__)


def test_a_token_gets_scope_studies_and_an_end_and_is_revoked() -> None:
    user = get_user_model().objects.create_user("ada")
    study = cast.study()
    secret = run("create_token", "ada", "--scope", "run", "--study", "cast", "--days", "1").strip()
    token = ApiToken.objects.get(user=user)
    assert (token.scope, token.for_all_studies, list(token.studies.all())) == ("run", False, [study])
    assert timedelta(hours=23) < token.expires_at - token.created_at <= timedelta(days=1, seconds=5)
    for days in ("0", "367"):
        assert "--days: 1 to 366" in refused("create_token", "ada", "--days", days)[0]
    assert "is revoked" in run("revoke_token", secret[:8])
    assert "was revoked before" in run("revoke_token", secret[:8])
    assert "0 tokens begin with" in refused("revoke_token", "nothing")[0]
    assert re.fullmatch("[0-9a-f]{64}", secret)  # The command line takes no part of it for an option.


def test_a_token_of_an_older_version_may_begin_with_a_dash() -> None:
    user = get_user_model().objects.create_user("ada")
    token, _secret = ApiToken.issue(user=user)
    ApiToken.objects.filter(pk=token.pk).update(prefix="-bCdEfGh")
    assert "is revoked" in run("revoke_token", "--", "-bCdEfGh")


def test_study_status_shows_stages_and_steps() -> None:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    jobs.run_inline(lifecycle.close_stage(study.stages.select_related("study__bank").get(index=1)))
    lines = run("study_status", "cast").splitlines()
    assert lines[0] == "cast: A study of the cast (cast version 1)"
    assert re.match(r" +1 +frozen +1 +0 +3 +3 of 12 +3 +100\.0 %$", lines[3])
    assert re.match(r" +2 +planned +0 +0 +2 +0 of 6 +0 +–$", lines[4])
    assert any(re.match(r" +1 +plan next stage +done", line) for line in lines)


def test_a_database_that_does_not_answer_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, connection: object) -> None:
        raise OperationalError("connection refused\nis the server running?")

    monkeypatch.setattr("survey.console.command.MigrationExecutor.__init__", fail)
    assert refused("study_status", "cast") == [
        "the database cannot be used: connection refused is the server running?; check DATABASE_URL"
    ]


def test_a_database_that_was_not_migrated_gets_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "survey.console.command.MigrationExecutor.migration_plan", lambda self, targets: ["a migration"]
    )
    assert refused("study_status", "cast") == ["the database lacks tables of this version: run `hunch migrate` first"]


@pytest.mark.parametrize("migration", ["0002_designs_and_roles", "0999_later"])
def test_nothing_uses_or_changes_a_database_of_another_version(migration: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("survey.management.commands.up.run_services", lambda **_options: pytest.fail("it starts"))
    MigrationRecorder(connection).record_applied("survey", migration)
    (line,) = refused("study_status", "cast")
    said = "cannot be brought up" if migration < "0999" else "does not know survey.0999_later: install the version"
    assert said in line
    with pytest.raises(SystemCheckError, match=r"hunch\.E006.*version.* made this database"):
        call_command("migrate", skip_checks=False)  # As it is from a command line.
    for command in (["up"], ["demo"]):
        with pytest.raises(SystemCheckError, match=r"hunch\.E006"):
            call_command(*command)


def test_a_package_may_leave_out_what_it_has_squashed() -> None:
    MigrationRecorder(connection).record_applied("axes", "0002_squashed_away")
    assert "no study" in refused("study_status", "cast")[0]


def test_several_policies_are_asked_for_at_once() -> None:
    parser = load_command_class("survey", "compare_policies").create_parser("", "compare_policies")
    asked = parser.parse_args(["slug", "--epsilon", ".1", ".2", "--top-fraction", ".3", ".4"])
    assert (asked.epsilon, asked.top_fraction) == ([0.1, 0.2], [0.3, 0.4])
