"""A study's file changes freely before the first main stage opens, and then only in what was not drawn or measured."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from survey.contracts.panels import PanelIds
from survey.exceptions import FileErrors, StateRefused
from survey.models import Amendment, AuditEntry, Posting, Respondent, Sitting, Stage, Study
from survey.services.answers import blinding
from survey.services.plans import planning
from survey.services.results.export import files
from survey.services.results.export.sitting_files import sitting_files
from survey.services.results.pilots.pilot_data import pilot_report
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import current_step
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from survey.services.studies import amending
from survey.study_file import StudyConfig
from tests import cast
from tests.survey.instruments.test_next_token import STUDY as GUESSING
from tests.survey.instruments.test_next_token import prepare_tales
from tests.survey.instruments.test_real_evidence import REAL, answered

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PILOTED: dict[str, Any] = {"stages": [{"sittings": 2, "pilot": True}, {"sittings": 4}]}


def block(kind: str, **changes: Any) -> list[dict[str, Any]]:
    """The blocks of the cast with one changed."""
    return [{**block, **changes} if block["kind"] == kind else block for block in cast.BASE["blocks"]]


def amend(study: Study, why: str = "a typo", **overrides: Any) -> Amendment:
    return amending.amend(study, text=cast.study_text(**overrides), source_name="new.toml", reason=why)


def refusals(study: Study, **overrides: Any) -> list[str]:
    with pytest.raises(FileErrors) as refused:
        amend(study, **overrides)
    return refused.value.lines


def fresh(study: Study) -> Study:
    return Study.objects.get(pk=study.pk)


def stage(study: Study, index: int) -> Stage:
    return Stage.objects.select_related("study__bank").get(study=study, index=index)


def test_who_may_change_the_file_before_the_lock_alone_is_refused_once_it_is_locked() -> None:
    study = cast.study()
    text = cast.study_text(title="Another title")
    amending.amend(study, text=text, source_name="new.toml", reason="r", only_unlocked=True)
    Study.objects.filter(pk=study.pk).update(locked_at=timezone.now(), locked_sha256="s")
    text = cast.study_text(title="A third title")
    with pytest.raises(amending.FileLocked, match="was opened meanwhile"):
        amending.amend(study, text=text, source_name="new.toml", reason="r", only_unlocked=True)
    assert fresh(study).title == "Another title"
    amending.amend(study, text=text, source_name="new.toml", reason="r")


def test_before_anything_is_planned_everything_but_the_name_may_change() -> None:
    study = cast.study()
    made = amend(
        study, seed=8, sitting={"items": 5}, stages=[{"sittings": 3}], instrument={"options": {"threshold": 5}}
    )
    study = fresh(study)
    assert study.config.sitting.items == 5 and study.seed == 8
    assert [stage.index for stage in study.stages.all()] == [1]
    assert stage(study, 1).seed != 0 and made.was_locked is False
    keys = {change["key"]: (change["old"], change["new"]) for change in made.changes}
    assert keys["seed"] == (7, 8) and keys["sitting.items"] == (3, 5) and keys["stages.1.sittings"] == (4, 3)
    assert keys["stages.2"][1] is None
    assert planning.plan_stage(stage(study, 1)).slots.count() == 15
    assert refusals(study, slug="other")[0].startswith("new.toml:1: slug: this study is called 'cast'")


def test_seeds_of_stages_follow_the_studys_seed() -> None:
    study = cast.study()
    before = stage(study, 1).seed
    amend(study, seed=9, stages=[{"sittings": 2}, {"sittings": 2}, {"sittings": 2}])
    assert stage(study, 1).seed != before and stage(study, 3).state == "draft"


@pytest.mark.thorough
def test_a_planned_stage_is_not_contradicted() -> None:
    study = cast.study()
    planning.plan_stage(stage(study, 1))
    assert refusals(study, sitting={"items": 5}) == [
        "new.toml: sitting.items: stage 1 was drawn by it: a plan is never changed"
    ]
    assert refusals(study, stages=[{"sittings": 5}, {"sittings": 2}]) == [
        "new.toml: stages.1.sittings: stage 1 is planned: a plan is never changed"
    ]
    assert refusals(study, seed=9)[0].startswith("new.toml: seed: stage 1 was drawn by it")
    amend(study, blocks=block("form", title="You"), stages=[{"sittings": 4}, {"sittings": 9}])
    assert fresh(study).config.stages[1].sittings == 9


def test_opening_the_first_main_stage_locks_the_file() -> None:
    study = cast.study()
    out = StringIO()
    call_command("open_stage", study.slug, stdout=out)
    study = fresh(study)
    assert study.locked_at is not None and study.locked_sha256 == study.source_sha256
    assert f"the study file is locked ({study.source_sha256})" in out.getvalue()
    assert AuditEntry.objects.filter(action="lock_study").count() == 1
    lifecycle.pause_stage(stage(study, 1))
    out = StringIO()
    call_command("open_stage", study.slug, stdout=out)
    assert "locked" not in out.getvalue()


def test_a_pilot_locks_nothing_and_what_follows_may_be_quite_different() -> None:
    study = cast.open_study(**PILOTED)
    assert study.locked_at is None and fresh(study).locked_at is None
    cast.walk(cast.begin(study))
    lifecycle.close_stage(stage(study, 1))
    jobs.run_inline(stage(study, 1))
    shorter = [block for block in cast.BASE["blocks"] if block["kind"] != "form"]
    amend(study, why="the pilot took too long", blocks=shorter, sitting={"items": 2}, **PILOTED)
    opened = lifecycle.open_stage(stage(study, 2))
    assert opened.slots.count() == 8
    assert fresh(study).locked_sha256 == fresh(study).source_sha256
    assert refusals(study, blocks=shorter, sitting={"items": 2}, stages=PILOTED["stages"][1:])[0].startswith(
        "new.toml: stages.1.sittings: stage 1 is planned"
    )


@pytest.mark.thorough
def test_a_pilot_that_is_over_is_rebuilt_by_the_file_it_had() -> None:
    study = cast.open_study(**PILOTED)
    cast.walk(cast.begin(study))
    lifecycle.close_stage(stage(study, 1))
    jobs.run_inline(stage(study, 1))
    amend(study, candidates={"size": 90}, sitting={"items": 2}, **PILOTED)
    assert verify_stage(stage(study, 1)).differences == []


@pytest.fixture
def locked() -> Study:
    return fresh(cast.open_study())


ALLOWED: dict[str, dict[str, Any]] = {
    "title": {"title": "Another title"},
    "texts.contact": {"texts": {**cast.BASE["texts"], "contact": "new@example.org"}},
    "texts.minutes": {"texts": {**cast.BASE["texts"], "minutes": 9}},
    "blocks.2.text": {"blocks": block("instructions", text="Read this, please.")},
    "blocks.7.title": {"blocks": block("end", title="Done")},
    "sitting.expires_after_minutes": {"sitting": {"items": 3, "expires_after_minutes": 90}},
    "stages.2.sittings": {"stages": [{"sittings": 4}, {"sittings": 20}]},
    "stages.3": {"stages": [{"sittings": 4}, {"sittings": 2}, {"sittings": 2}]},
    "data.retention_until": {"data": {"retention_until": "2098-01-01"}},
}
REFUSED: dict[str, dict[str, Any]] = {
    "bank": {"bank": "other"},
    "seed": {"seed": 1},
    "candidates.size": {"candidates": {"size": 100}},
    "roles.controls": {"roles": {"holdout": 0, "controls": 0.3}},
    "sitting.items": {"sitting": {"items": 2}},
    "stages.1.sittings": {"stages": [{"sittings": 3}, {"sittings": 2}]},
    "instrument.options.threshold": {"instrument": {"options": {"threshold": 9}}},
    "texts.answerer": {
        "texts": {
            **cast.BASE["texts"],
            "answerer": {"a": "a bot", "the": "the bot", "same": "the same bot", "another": "another bot"},
        }
    },
    "conditions": {"conditions": [{"factor": "framing", "levels": ["a", "b"]}]},
    "blocks.5.fields.2.label": {
        "blocks": block(
            "form",
            fields=[
                cast.BASE["blocks"][4]["fields"][0],
                {**cast.BASE["blocks"][4]["fields"][1], "label": "Other words?"},
                cast.BASE["blocks"][4]["fields"][2],
            ],
        )
    },
    "blocks": {"blocks": [block for block in cast.BASE["blocks"] if block["kind"] != "form"]},
}


@pytest.mark.parametrize("key", ALLOWED)
def test_what_may_change_once_it_is_locked(locked: Study, key: str) -> None:
    made = amend(locked, **ALLOWED[key])
    assert [change["key"] for change in made.changes] == [key]
    assert made.was_locked and fresh(locked).source_sha256 == made.new_sha256 != fresh(locked).locked_sha256


@pytest.mark.parametrize("key", REFUSED)
def test_what_may_not_change_once_it_is_locked(locked: Study, key: str) -> None:
    if key == "bank":
        cast.bank(name="other")
    lines = refusals(locked, **REFUSED[key])
    assert [line.split(": ")[1] for line in lines] == [key]
    assert not Amendment.objects.exists() and fresh(locked).source_sha256 == locked.source_sha256


@pytest.mark.parametrize("later", [{"retention_until": "2099-12-31"}, {"retention_until": "2150-01-01"}, {}])
def test_data_is_kept_no_longer_than_people_have_agreed(locked: Study, later: dict[str, str]) -> None:
    """An earlier day may be given at any time, and any day where nobody has agreed, or all have withdrawn."""
    amend(locked, data={"retention_until": "2098-12-31"})
    simulated = cast.begin(fresh(locked))
    simulated.respondent.is_simulated = True
    simulated.respondent.save()
    amend(fresh(locked), data={"retention_until": "2098-06-30"})
    sitting = cast.begin(fresh(locked))
    (refusal,) = refusals(fresh(locked), data=later)
    assert "retention_until" in refusal and "agreed that their data is kept until 2098-06-30" in refusal
    amend(fresh(locked), data={"retention_until": "2098-06-29"})
    withdraw(respondent=sitting.respondent, now=timezone.now())
    if later:
        amend(fresh(locked), data=later)


def test_new_words_to_consent_to_need_a_new_version(locked: Study) -> None:
    cast.begin(locked)
    lines = refusals(locked, blocks=block("consent", text="Other words."))
    assert "blocks.1.version: the text of the consent changed" in lines[0]
    amend(locked, blocks=block("consent", text="Other words.", version="3"))
    assert cast.begin(fresh(locked)).consent.version == "3"


def test_a_sitting_goes_on_with_the_file_it_began_with_and_the_next_has_the_new_one(locked: Study) -> None:
    begun = cast.begin(locked)
    assert begun.study_sha256 == locked.source_sha256
    amend(locked, blocks=block("instructions", text="Read this, please."))
    begun = Sitting.objects.get(pk=begun.pk)
    assert current_step(begun).text.startswith("Read this.")
    later = cast.begin(fresh(locked))
    assert current_step(later).text == "Read this, please."
    assert later.study_sha256 == fresh(locked).source_sha256


@pytest.mark.thorough
def test_a_sitting_of_a_pilot_finishes_though_its_blocks_are_gone() -> None:
    study = cast.open_study(**PILOTED)
    sitting = cast.begin(study)
    cast.walk(sitting, until="form")
    amend(
        study, blocks=[block for block in cast.BASE["blocks"] if block["kind"] not in ("form", "debriefing")], **PILOTED
    )
    sitting = Sitting.objects.get(pk=sitting.pk)
    step = current_step(sitting)
    assert step.kind == "form"
    assert advance(sitting=sitting, step=step.number, data=cast.answers_for(step)).kind == "debriefing"
    assert cast.walk(sitting).outcome == "completed"


@pytest.mark.thorough
def test_a_pilots_checks_are_exported_in_the_words_that_were_shown() -> None:
    study = cast.open_study(**PILOTED)
    cast.walk(cast.begin(study), until="form")
    first, second = cast.BASE["blocks"][2]["checks"]
    amend(study, blocks=block("checks", checks=[{**first, "options": ["other words", "no"]}, second]), **PILOTED)
    checks = next(file for file in sitting_files(fresh(study), since=None) if file.name == "checks.csv")
    place = [column.name for column in checks.columns].index("answer_text")
    assert [row[place] for row in checks.rows] == ["right one", "right"]


def test_a_pilots_report_has_remarks_to_a_question_that_came_while_it_ran() -> None:
    fields = [*cast.BASE["blocks"][4]["fields"], {"name": "more", "label": "What else?", "kind": "text"}]
    study = cast.open_study(**PILOTED)
    cast.walk(cast.begin(study))
    amend(study, blocks=block("form", fields=fields), **PILOTED)
    later = cast.begin(fresh(study))
    step = cast.walk(later, until="form")
    advance(sitting=later, step=step.number, data=cast.answers_for(step, more="too long"))
    assert ("What else?", "too long") in {(remark.where, remark.text) for remark in pilot_report(fresh(study)).remarks}


@pytest.mark.thorough
def test_it_is_in_every_export(locked: Study, tmp_path: Path) -> None:
    sitting = cast.begin(locked)
    cast.walk(sitting)
    old = locked.source_sha256
    amend(locked, why="the address was wrong", **ALLOWED["texts.contact"])
    files.write_export(fresh(locked), tmp_path)
    lines = (tmp_path / "amendments.csv").read_text().splitlines()
    assert len(lines) == 2 and "the address was wrong" in lines[1] and '""new@example.org""' in lines[1]
    assert old in lines[1]
    assert old in (tmp_path / "answers.csv").read_text()


def test_a_reason_is_asked_for(locked: Study) -> None:
    with pytest.raises(StateRefused, match="reason: is missing"):
        amend(locked, why="  ", **ALLOWED["title"])


def test_the_file_in_force_changes_nothing(locked: Study) -> None:
    with pytest.raises(StateRefused, match="this is the file that the study has already"):
        amend(locked)


def test_a_file_that_no_study_could_be_created_from_is_refused_whole(locked: Study) -> None:
    lines = refusals(locked, sittings=3, title="x" * 999)
    assert len(lines) == 2 and not Amendment.objects.exists()


def test_what_is_planned_by_a_file_that_was_replaced_meanwhile_is_refused() -> None:
    study = cast.study()
    read = stage(study, 1)
    assert read.study.config.sitting.items == 3
    amend(study, sitting={"items": 2})
    with pytest.raises(StateRefused, match="was changed meanwhile"):
        planning.plan_stage(read)


def test_a_stage_that_is_planned_from_answers_is_not_touched_meanwhile() -> None:
    second = {"sittings": 2, "design": {"kind": "epsilon_greedy"}}
    study = cast.open_study(stages=[{"sittings": 2}, second], predictor={"name": "same_task"})
    lifecycle.close_stage(stage(study, 1))
    lines = refusals(study, stages=[{"sittings": 2}, {**second, "sittings": 3}], predictor={"name": "same_task"})
    assert "stage 2 is being planned" in lines[0]
    assert changed_by(None, study, stages=[{"sittings": 2}, second], predictor={"name": "previous_correct"}) == []


def test_a_stage_that_is_posted_at_a_panel_is_not_left_out(locked: Study) -> None:
    last = locked.stages.order_by("-index")[0]
    Posting.objects.create(
        study=locked, stage=last, panel="prolific", internal_name="p", reward=1, places=1, currency="USD",
        expected_minutes=1,
    )  # fmt: skip
    assert "stage 2 is posted at the panel" in refusals(locked, stages=[{"sittings": 4}])[0]


def test_an_amendment_is_never_changed(locked: Study) -> None:
    made = amend(locked, **ALLOWED["title"])
    made.reason = "another"
    with pytest.raises(TypeError):
        made.save()
    with pytest.raises(TypeError), transaction.atomic():
        made.delete()


def test_the_command_shows_and_does_it(locked: Study, tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    file.write_text(cast.study_text(title="Another title"))
    out = StringIO()
    call_command("amend_study", str(file), "--dry-run", stdout=out)
    assert 'title: "A study of the cast" -> "Another title"' in out.getvalue()
    assert "nothing was changed" in out.getvalue() and not Amendment.objects.exists()
    call_command("amend_study", str(file), "--reason", "clearer", stdout=out)
    assert fresh(locked).title == "Another title"
    file.write_text(cast.study_text(title="Another title", seed=1))
    err = StringIO()
    with pytest.raises(SystemExit):
        call_command("amend_study", str(file), "--reason", "why not", stdout=out, stderr=err)
    assert "seed: stage 1 was drawn by it" in err.getvalue()


# Money

AT_PANEL = {"kind": "prolific", "reward": 100, "spending_cap": 10_000}
AT_LIST = {"kind": "generic", "reward": 100}


def changed_by(user: Any, study: Study, **overrides: Any) -> list[str]:
    """The keys that the user may not change."""
    text = cast.study_text(**overrides)
    return sorted(amending.propose(study, text=text, source_name="new.toml", by=user).refusals)


@pytest.fixture
def editor(django_user_model: Any) -> Any:
    user = django_user_model.objects.create_user("editor", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["add_study", "amend_study", "recruit"]))
    return user


@pytest.mark.thorough
@pytest.mark.parametrize(
    "panel",
    [
        {"spending_cap": 99_999_900},
        {"spending_cap": None},
        {"reward": 6000},
        {"bonus_per_point": 500},
        {"turned_away_pay": 50},
        {"currency": "GBP"},
        {"screen_out_pay": 20, "screen_out_places": 5},
        {"places": 500},
        {"expected_minutes": 2},
        {"project": "another-wallet"},
        {"representative_sample": "UK_REP_SAMPLE"},
        {"signed_entry": True},
        {"codes": {"completed": "automatically_approve"}},
    ],
)
def test_keys_about_money_are_changed_by_who_may_spend(editor: Any, panel: dict[str, Any]) -> None:
    study = cast.study(panel=AT_PANEL)
    member = cast.join(editor, study, "editor", may_spend=False)
    new = {name: value for name, value in {**AT_PANEL, **panel}.items() if value is not None}
    keys = ["panel.codes.completed"] if "codes" in panel else [f"panel.{name}" for name in sorted(panel)]
    assert changed_by(editor, study, panel=new) == keys
    with pytest.raises(FileErrors, match="it is about money: only a member who may spend changes it"):
        amending.amend(study, text=cast.study_text(panel=new), source_name="a.toml", reason="more", by=editor)
    member.may_spend = True
    member.save()
    spender = type(editor).objects.get(pk=editor.pk)
    assert changed_by(spender, study, panel=new) == []
    amending.amend(study, text=cast.study_text(panel=new), source_name="a.toml", reason="more", by=spender)


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"stages": [{"sittings": 200}]}, ["stages.1.sittings"]),
        ({"stages": [{"sittings": 2}, {"sittings": 2}]}, ["stages.2"]),
        ({"sitting": {"items": 1, "begins_per_address": 0}}, ["sitting.begins_per_address"]),
    ],
)
def test_how_many_are_paid_is_about_money_too_and_where_nobody_is_paid_it_is_not(
    editor: Any, changes: dict[str, Any], keys: list[str]
) -> None:
    now = {"stages": [{"sittings": 2}], "sitting": {"items": 1}}
    listed = cast.study(panel=AT_LIST, **now)
    free = cast.study(slug="free", **now)
    for study in (listed, free):
        cast.join(editor, study, "editor", may_spend=False)
    assert changed_by(editor, listed, panel=AT_LIST, **{**now, **changes}) == keys
    assert changed_by(editor, free, slug="free", **{**now, **changes}) == []


@pytest.mark.parametrize(
    "options", [{"pays": "guess"}, {"until_right": True}, {"run": 7}, {"play_on": True}, {"reveal": False}]
)
def test_options_by_which_people_earn_are_about_money_where_points_are_paid(
    editor: Any, options: dict[str, Any]
) -> None:
    prepare_tales()
    game = {"unit": "character", "run": 6, "start": "drawn"}
    now, then = ({"kind": "next_token", "options": changed} for changed in (game, {**game, **options}))
    for slug, point, keys in (
        ("paid", 2, [f"instrument.options.{name}" for name in options if name != "reveal"]),
        ("unpaid", 0, []),
    ):
        panel = {**AT_LIST, "bonus_per_point": point}
        few = {"models": [], "sitting": {"items": 1}}
        file = {**GUESSING, **few, "slug": slug, "panel": panel, "instrument": now}
        study = cast.study(**file)
        cast.join(editor, study, "editor", may_spend=False)
        if point or "pays" not in options:  # Without points `pays` is refused anyway.
            assert changed_by(editor, study, **{**file, "instrument": then}) == keys


def test_conditions_under_which_people_earn_are_about_money(editor: Any) -> None:
    answered(cast.bank())
    conditions = [{"factor": "paid", "levels": ["no", "yes"]}]
    file = {"panel": {**AT_LIST, "bonus_per_point": 50}, "instrument": REAL}
    study = cast.study(**file, conditions=conditions)
    cast.join(editor, study, "editor", may_spend=False)
    others = [{**conditions[0], "options": {"yes": {"show_answer": True}}}]
    assert changed_by(editor, study, **file, conditions=others) == []
    paying = [{**conditions[0], "options": {"yes": {"pay_for_accuracy": True}}}]
    assert changed_by(editor, study, **file, conditions=paying) == ["conditions.1.options.yes"]
    amend(study, **file, conditions=paying)
    more = [{**paying[0], "levels": ["no", "yes", "neither"]}]
    assert changed_by(editor, fresh(study), **file, conditions=more) == ["conditions.1.levels"]
    assert changed_by(editor, fresh(study), **file, conditions=[]) == ["conditions"]


def test_a_study_for_nobody_paid_becomes_no_paid_one_by_an_editor(editor: Any) -> None:
    study = cast.study()
    cast.join(editor, study, "editor", may_spend=False)
    assert "panel.kind" in changed_by(editor, study, panel=AT_LIST)


def test_what_moves_no_money_an_editor_changes(editor: Any) -> None:
    study = cast.study(panel=AT_PANEL)
    cast.join(editor, study, "editor", may_spend=False)
    assert changed_by(editor, study, title="Another", panel={**AT_PANEL, "devices": ["desktop"]}) == []


def test_the_currency_of_a_posted_study_stays(editor: Any) -> None:
    study = cast.open_study(panel=AT_PANEL)
    posting = Posting.objects.create(
        study=study, stage=stage(study, 1), panel="prolific", internal_name="a", reward=100, currency="USD",
        places=1, expected_minutes=3,
    )  # fmt: skip
    pounds = {**AT_PANEL, "currency": "GBP"}
    assert changed_by(None, study, panel=pounds) == [], "a draft that the panel never took is not there"
    Posting.objects.filter(pk=posting.pk).update(external_id="x")
    (line,) = refusals(study, panel=pounds)
    assert "panel.currency" in line and "its sums are in this currency" in line


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "stays"), [("generic", True), ("open", False)])
def test_the_currency_stays_once_somebody_was_promised_pay_in_it(kind: str, stays: bool) -> None:
    """A list to pay from would name the same number of another currency, also for who took the answers back."""
    study = cast.open_study(panel={"kind": kind})
    sitting = cast.begin(study, PanelIds(kind, "somebody", "s", "x"))
    pounds = {"kind": kind, "currency": "GBP"}
    Respondent.objects.update(is_simulated=True)
    assert changed_by(None, study, panel=pounds) == []
    Respondent.objects.update(is_simulated=False)
    withdraw(respondent=sitting.respondent, now=timezone.now())
    assert changed_by(None, study, panel=pounds) == ["panel.currency"] * stays
    if stays:
        assert "promised their pay in this currency" in refusals(study, panel=pounds)[0]


# What has happened, and what may change then


def change(key: str, old: Any = 1, new: Any = 2) -> amending.Change:
    path = tuple(int(part) - 1 if part.isdecimal() else part for part in key.split("."))
    return amending.Change(path, old, new)


NOTHING: dict[str, Any] = {
    **dict.fromkeys(("is_locked", "has_people", "has_agreed", "is_at_panel", "has_promised_pay"), False),
    **dict.fromkeys(("planned", "scored", "pilots_over", "posted"), frozenset()),
    "learnt": 0,
    "trained": 0,
    "stages": 2,
}


@pytest.mark.parametrize(
    ("key", "old", "new", "facts", "reason"),
    [
        ("bank", 1, 2, {"planned": {1}}, "items were drawn from it"),
        ("bank", 1, 2, {"is_locked": True}, ""),
        ("instrument.kind", 1, 2, {"planned": {1}}, "items were drawn from it"),
        ("panel.kind", 1, 2, {"has_people": True}, "people have come from this panel"),
        ("panel.reward", 1, 2, {"has_people": True, "is_locked": True}, ""),
        ("blind", True, False, {}, "until an owner unblinds the study"),
        ("blind", False, True, {}, ""),
        ("texts.language", "en", "de", {"is_locked": True}, "words of the first language"),
        ("texts.languages", 1, 2, {"is_locked": True}, "words of the first language"),
        ("texts.language", "en", "de", {"planned": {1}}, ""),
        ("texts.answerer.a", 1, 2, {"is_locked": True}, "in the questions that are measured"),
        ("predictor.name", 1, 2, {"learnt": 2, "trained": 2}, "stage 2 has trained it"),
        ("predictor.name", 1, 2, {"learnt": 1, "is_locked": True}, ""),
        ("predictor.name", 1, 2, {"planned": {1}}, ""),
        ("seed", 1, 2, {"planned": {1, 2}, "pilots_over": {1}}, "stage 2 was drawn by it"),
        ("seed", 1, 2, {"planned": {1}, "pilots_over": {1}, "is_locked": True}, ""),
        ("candidates.size", 1, 2, {"scored": {2}}, "stage 2 was drawn by it"),
        ("sitting.begins_per_address", 1, 2, {"planned": {1}, "is_locked": True}, ""),
        ("quotas.1.cells.1.places", 1, 2, {"is_locked": True}, ""),
        ("quotas.1.cells.1.answers", 1, 2, {"is_locked": True}, "it changes what is measured"),
        ("blocks.2.text", 1, 2, {"is_locked": True}, ""),
        ("blocks.2", 1, 2, {"is_locked": True}, "it changes what is measured"),
        ("blocks.2.fields.1.label", 1, 2, {"is_locked": True}, "it changes what is measured"),
        ("stages.2", 1, None, {"planned": {1, 2}, "posted": {2}}, "stage 2 is planned, so it cannot be removed"),
        ("stages.2", 1, None, {"planned": {1}, "posted": {2}}, "stage 2 is posted at the panel"),
        ("stages.2", 1, None, {"planned": {1}}, ""),
        ("stages.2.train", 1, 2, {"planned": {1, 2}, "learnt": 1}, ""),
        ("stages.2.opens", 1, 2, {"planned": {1, 2}, "learnt": 2}, "stage 2 is planned: a plan is never changed"),
        ("stages.2.sittings", 1, None, {"planned": {1, 2}}, "stage 2 is planned: a plan is never changed"),
        ("stages.2.sittings", 1, 2, {"planned": {1}, "scored": {2}, "learnt": 1}, "stage 2 is being planned"),
        ("stages.3", None, 2, {"planned": {1, 2}, "learnt": 2}, "stage 2 is closed: a stage after it"),
        ("stages.3", None, 2, {"planned": {1, 2}, "learnt": 1}, ""),
    ],
)
def test_what_happened_decides_what_may_change(
    key: str, old: Any, new: Any, facts: dict[str, Any], reason: str
) -> None:
    refusal = amending._World(**{**NOTHING, **facts}).refuses(change(key, old, new))
    assert refusal == reason if not reason else reason in refusal


@pytest.mark.parametrize("is_asked", [True, False])
def test_the_consent_needs_a_new_version_once_there_are_people(is_asked: bool) -> None:
    world = amending._World(**{**NOTHING, "has_people": is_asked})

    def config(text: str, version: str = "1", **others: Any) -> StudyConfig:
        consent = {**cast.BLOCKS[0], "text": text, "version": version}
        return cast.small_config(blocks=[consent, *cast.BLOCKS[1:]], **others)

    assert bool(world.refuses_new_consent(config("A"), config("B"))) == is_asked
    assert world.refuses_new_consent(config("A"), config("B", "2")) == ""
    assert world.refuses_new_consent(config("A"), config("A")) == ""
    # A value that the text names changes what people agree to; one that it does not name changes nothing.
    longer = {"texts": {"minutes": 30}}
    assert bool(world.refuses_new_consent(config("{minutes}"), config("{minutes}", **longer))) == is_asked
    assert world.refuses_new_consent(config("A"), config("A", **longer)) == ""


@pytest.mark.parametrize(
    ("key", "paid", "unpaid"),
    [
        ("panel", True, True),
        ("panel.kind", True, True),
        ("panel.codes.completed", True, True),
        ("panel.codes.no_consent", False, False),
        ("panel.devices", False, False),
        ("quotas.1.cells.1.places", True, False),
        ("stages.2", True, False),
        ("stages.2.sittings", True, False),
        ("stages.2.design.kind", False, False),
        ("sitting.begins_per_address", True, False),
        ("sitting.items", False, False),
        ("title", False, False),
    ],
)
def test_what_moves_money_is_told_by_its_key(key: str, paid: bool, unpaid: bool) -> None:
    assert (amending.costs(change(key), pays=True), amending.costs(change(key), pays=False)) == (paid, unpaid)


@pytest.mark.thorough
def test_who_makes_a_paid_study_an_open_one_does_not_change_its_places_unasked(editor: Any) -> None:
    """People are paid by the file before: what is about money stays so."""
    study = cast.study(panel=AT_LIST, stages=[{"sittings": 2}])
    cast.join(editor, study, "editor", may_spend=False)
    assert "stages.1.sittings" in changed_by(editor, study, stages=[{"sittings": 3}])


def test_an_unblinded_study_stays_so_whatever_its_next_file_says() -> None:
    factors = {"conditions": [{"factor": "framing", "levels": ["a", "b"]}], "blind": True}
    study = cast.study(**factors)
    blinding.unblind(study, reason="It is over.")
    amend(study, **factors, title="Another")
    assert not fresh(study).is_blind and fresh(study).config.blind
    other = cast.study(**{**factors, "slug": "other", "blind": False})
    amend(other, **factors, slug="other")
    assert fresh(other).is_blind
