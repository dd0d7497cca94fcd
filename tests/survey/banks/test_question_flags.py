"""Flags of questions: who, when and why, all or none, and what they change in plans to come."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.utils import timezone

from survey.exceptions import FieldErrors, HunchError, NotFound, StateRefused
from survey.models import AuditEntry, Bank, Question, Slot, Study
from survey.services.banks.eligibility import filtered_questions
from survey.services.banks.question_flags import flag_questions, read_ids, waiting_stage
from survey.services.base.auditing import actor_of
from survey.services.plans import planning
from survey.services.plans.candidates import draw_candidates, drawable_questions, question_set_digest, store_candidates
from survey.services.results.export import files
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def bank() -> Bank:
    return cast.small_bank()


def test_it_keeps_who_flagged_when_and_why(bank: Bank) -> None:
    who = get_user_model().objects.create_user("rita")
    before = timezone.now()
    changed = flag_questions(bank=bank, external_ids=["q3", "q5", "q3"], kind="broken", reason=" two  keys ", by=who)
    assert [question.external_id for question in changed] == ["q3", "q5"]
    for question in bank.questions.filter(external_id__in=["q3", "q5"]):
        assert (question.flag, question.flag_reason, question.flagged_by) == ("broken", "two keys", who)
        assert question.flagged_at is not None and question.flagged_at >= before
    assert bank.questions.exclude(flag="").count() == 2
    written = AuditEntry.objects.filter(action="flag_question")
    assert {entry.subject for entry in written} == {f"{bank} question q3", f"{bank} question q5"}
    assert {entry.actor for entry in written} == {actor_of(who)}


def test_taking_a_flag_away_leaves_nothing_of_it(bank: Bank) -> None:
    flag_questions(bank=bank, external_ids=["q3"], kind="sensitive", reason="faith")
    (question,) = flag_questions(bank=bank, external_ids=["q3"], kind="", reason="never mind")
    question.refresh_from_db()
    assert (question.flag, question.flag_reason, question.flagged_at, question.flagged_by) == ("", "", None, None)


def test_what_has_the_flag_already_is_not_written_again(bank: Bank) -> None:
    flag_questions(bank=bank, external_ids=["q3"], kind="sensitive", reason="faith")
    assert flag_questions(bank=bank, external_ids=["q3"], kind="sensitive", reason="faith") == []
    assert AuditEntry.objects.filter(action="flag_question").count() == 1


def test_it_refuses_strange_kinds_missing_reasons_and_unknown_questions_and_writes_nothing(bank: Bank) -> None:
    for kind, reason, field in (
        ("odd", "why", "flag"),
        ("broken", "  ", "flag_reason"),
        ("broken", "x" * 501, "flag_"),
    ):
        with pytest.raises(FieldErrors, match=field):
            flag_questions(bank=bank, external_ids=["q3"], kind=kind, reason=reason)
    with pytest.raises(NotFound, match="has no question called q99: check the ids"):
        flag_questions(bank=bank, external_ids=["q3", "q99"], kind="broken", reason="why")
    assert not bank.questions.exclude(flag="").exists()


def test_no_flag_changes_between_the_candidates_of_a_stage_and_its_plan(bank: Bank) -> None:
    stage = cast.stage_of(cast.small_study(on=bank))
    drawn = draw_candidates(stage, drawable_questions(stage))
    store_candidates(stage, drawn, questions_sha256=question_set_digest(stage.study))
    with pytest.raises(StateRefused, match="Plan it first"):
        flag_questions(bank=bank, external_ids=["q3"], kind="broken", reason="why")


def test_candidates_of_a_planned_stage_a_test_copy_or_another_bank_hold_no_flag_up(bank: Bank) -> None:
    study = cast.small_study(on=bank)
    stage = cast.stage_of(study)
    drawn = draw_candidates(stage, drawable_questions(stage))
    store_candidates(stage, drawn, questions_sha256=question_set_digest(study))
    assert waiting_stage(bank.pk) == stage
    assert waiting_stage(cast.bank(name="other").pk) is None
    Study.objects.filter(pk=study.pk).update(slug="other_test", test_of=cast.small_study("original", on=bank))
    assert waiting_stage(bank.pk) is None
    Study.objects.filter(pk=study.pk).update(slug="small", test_of=None)
    # A reason that changes changes no set of questions.
    Question.objects.filter(bank=bank, external_id="q3").update(flag="broken", flag_reason="why")
    assert flag_questions(bank=bank, external_ids=["q3"], kind="broken", reason="why else")
    planning.plan_stage(cast.stage_of(study))
    assert waiting_stage(bank.pk) is None


def test_questions_are_left_out_by_flag_task_and_length_at_their_bounds() -> None:
    bank = cast.small_bank()
    texts = {"q0": "one two three", "q1": "one two thre", "q2": "one two", "q3": "one two three four"}
    for name, text in texts.items():
        bank.questions.filter(external_id=name).update(text=text)
    study = cast.stored_study(on=bank, questions={})
    bank.questions.exclude(external_id__in=texts).delete()

    def left(**wanted: Any) -> list[str]:
        study.stored_config["questions"] = wanted
        study.save()
        return [
            filtered_question.external_id for filtered_question in filtered_questions(Study.objects.get(pk=study.pk))
        ]

    assert left() == ["q0", "q1", "q2", "q3"]
    assert left(max_characters=12) == ["q1", "q2"]
    assert left(max_words=3) == ["q0", "q1", "q2"]
    tasks = dict(bank.questions.values_list("external_id", "task__name"))
    assert left(tasks=[tasks["q1"]]) == [name for name, task in tasks.items() if task == tasks["q1"]]
    bank.questions.filter(external_id="q1").update(flag="sensitive", flag_reason="why")
    assert left(max_characters=12) == ["q2"]


def test_a_plan_that_is_drawn_keeps_its_slots_and_the_next_one_has_none(bank: Bank) -> None:
    made = cast.small_study(on=bank, stages=[{"sittings": 4}, {"sittings": 4}])
    first = planning.plan_stage(cast.stage_of(made))
    position = int(Slot.objects.filter(stage=first).first().item.key.rpartition(">")[2])  # type: ignore[union-attr]
    planned = set(first.slots.values_list("item__key", flat=True))
    flag_questions(bank=bank, external_ids=[f"q{position}"], kind="broken", reason="a typing error")
    assert set(first.slots.values_list("item__key", flat=True)) == planned
    again = planning.plan_stage(cast.stage_of(cast.small_study("later", on=bank)))
    keys = again.slots.values_list("item__key", flat=True)
    assert not any(str(position) in (key.partition(":")[0], key.rpartition(">")[2]) for key in keys)


def test_the_export_says_which_questions_are_flagged(bank: Bank, tmp_path: Path) -> None:
    made = cast.small_study(on=bank)
    flag_questions(bank=bank, external_ids=["q3"], kind="sensitive", reason="faith, and more")
    files.write_export(made, tmp_path)
    lines = (tmp_path / "questions.csv").read_text().splitlines()
    assert lines[0] == "position,id,task,domain,flag,flag_reason,flagged_at" and len(lines) == 1 + 40
    assert lines[4].startswith('3,q3,drawing,,sensitive,"faith, and more",2') and lines[5] == "4,q4,algebra,,,,"


def test_the_command_takes_ids_or_a_file_with_reasons_of_its_own(
    bank: Bank, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("flag_questions", "q1", "q2", bank="small", kind="excluded", reason="seen in a pilot")
    assert "changed 2 of 2 questions; 2 of small version 1 are flagged now" in capsys.readouterr().out
    file = tmp_path / "odd.csv"
    file.write_text("task,id,reason\nx,q3,no right answer\nx,q4,\n")
    call_command("flag_questions", str(file), bank="small", kind="broken", reason="see the file")
    reasons = dict(bank.questions.filter(flag="broken").values_list("external_id", "flag_reason"))
    assert reasons == {"q3": "no right answer", "q4": "see the file"}
    file.write_text("q1\n\nq2\n")
    call_command("flag_questions", str(file), bank="small", kind="none")
    assert set(Question.objects.exclude(flag="").values_list("external_id", flat=True)) == {"q3", "q4"}


def test_the_command_writes_nothing_where_one_id_is_wrong(bank: Bank, tmp_path: Path) -> None:
    file = tmp_path / "odd.csv"
    file.write_text("id,reason\nq3,one reason\nq99,another reason\n")
    with pytest.raises(SystemExit):
        call_command("flag_questions", str(file), bank="small", kind="broken")
    assert not bank.questions.exclude(flag="").exists()
    with pytest.raises(SystemExit):
        call_command("flag_questions", "q3", bank="small", kind="broken")
    assert not bank.questions.exclude(flag="").exists()


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.csv"
    file.write_text("id,reason\n")
    with pytest.raises(HunchError, match="names no question"):
        read_ids(file)
