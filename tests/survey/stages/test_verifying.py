"""A stage's plan is drawn again from its manifest: changes since then are named, everything else agrees."""

import uuid
from io import StringIO
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.utils import timezone

from survey.contracts import instruments
from survey.exceptions import StateRefused
from survey.instruments.belief_update.models import Belief
from survey.models import Booklet, CandidateSet, Item, Question, Slot, Stage
from survey.services.answers.counting import in_time, with_answers
from survey.services.plans import planning
from survey.services.sittings import expiry
from survey.services.stages import lifecycle
from survey.services.stages.lifecycle import answer_digest
from survey.services.stages.verifying import verify_stage
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

TWO: dict[str, Any] = {
    "stages": [{"sittings": 6}, {"sittings": 6, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
    "sitting": {"items": 5, "expires_after_minutes": 30},
    "roles": {"holdout": 0.2, "controls": 0.2},
    "predictor": {"name": "same_task"},
    "candidates": {"size": 400},
}


def planned(**overrides: Any) -> Stage:
    wide = cast.small_bank(300, name="wide")
    return cast.planned_stage(on=wide, **{**TWO, **overrides})


def fresh(stage: Stage) -> Stage:
    return cast.stage_of(stage.study, stage.index)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pool", "exhaustive"])
def test_a_plan_with_every_role_is_rebuilt(kind: str) -> None:
    stage = planned(candidates={"kind": kind})
    assert {"sampled", "holdout", "control", "repeat"} == set(stage.slots.values_list("role", flat=True))
    verification = verify_stage(fresh(stage))
    assert (verification.differences, verification.slots, verification.answers) == ([], 30, None)


@pytest.mark.thorough
def test_a_scored_stage_is_rebuilt_and_so_is_its_snapshot() -> None:
    wide = cast.small_bank(300, name="wide")
    first = cast.frozen_stage(on=wide, **TWO)
    second = cast.stage_of(first.study, 2)
    assert second.manifest["predictor"]["name"] == "same_task"
    assert [verify_stage(stage).differences for stage in (fresh(first), second)] == [[], []]
    verification = verify_stage(fresh(first))
    assert (verification.answers, verification.withdrawn) == (30, 0)


def test_the_hash_of_an_answer_says_whose_it_is_and_to_which_slot() -> None:
    stage = cast.closed_stage()
    instrument = instruments.of_study(stage.study)
    (answer,) = with_answers(in_time([stage]).filter(slot__number=1), stage.study)
    seen = {answer_digest(answer, instrument)}
    answer.slot.number += 1
    seen.add(answer_digest(answer, instrument))
    answer.slot.item.key += "-another"
    seen.add(answer_digest(answer, instrument))
    answer.sitting.public_id = uuid.uuid4()
    seen.add(answer_digest(answer, instrument))
    assert len(seen) == 4


@pytest.mark.thorough
def test_dealing_again_and_new_flags_change_nothing_about_the_plan() -> None:
    stage = lifecycle.open_stage(planned())
    for visitor in [cast.Visitor(stage.study).to_items() for _place in range(6)]:
        visitor.expire()
    expiry.deal_make_up_booklets(stage)
    Question.objects.filter(position=0).update(flag="broken", flag_reason="a typing error")
    assert verify_stage(fresh(stage)).agrees


@pytest.mark.thorough
def test_withdrawn_answers_are_counted_and_are_no_difference() -> None:
    stage = cast.closed_stage(on=cast.small_bank(300, name="wide"), **TWO)
    lifecycle.freeze(stage)
    stage.snapshot.filter(number__in=[1, 2]).update(withdrawn_at=timezone.now())
    stage.snapshot.filter(number=3).update(withdrawn_at=timezone.now(), assignment=None)
    verification = verify_stage(fresh(stage))
    assert (verification.differences, verification.answers, verification.withdrawn) == ([], 30, 3)


def change_slot(stage: Stage) -> None:
    stage.slots.filter(number=1).update(inclusion_probability=0.5)


def change_item(stage: Stage) -> None:
    Item.objects.filter(slots=stage.slots.get(number=1)).update(key="999:1>998")


def change_role(stage: Stage) -> None:
    Slot.objects.filter(stage=stage, number=2).update(role="holdout")


def lose_slot(stage: Stage) -> None:
    stage.slots.get(number=30).delete()


def change_hash(stage: Stage) -> None:
    Stage.objects.filter(pk=stage.pk).update(plan_sha256="0" * 64)


def change_seed(stage: Stage) -> None:
    Stage.objects.filter(pk=stage.pk).update(manifest={**stage.manifest, "seed": 1})


def change_design(stage: Stage) -> None:
    roles = {**stage.manifest["roles"], "holdout": 0.4}
    Stage.objects.filter(pk=stage.pk).update(manifest={**stage.manifest, "roles": roles})


def change_bank(stage: Stage) -> None:
    stage.study.bank.questions.filter(position=3).update(external_id="another")


def lose_file(stage: Stage) -> None:
    sha256 = stage.manifest["candidates"]["sha256"]
    default_storage.delete(f"{sha256[:2]}/{sha256}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_slot, "slots: inclusion_probability differs in 1, first in 1"),
        (change_item, "slots: item differs in 1, first in 1"),
        (change_role, "slots: role differs in 1, first in 2"),
        (lose_slot, "slots: 29 are stored, 30 are rebuilt"),
        (change_hash, f"the stage has {'0' * 64}"),
        (change_seed, "plan: rebuilt with the hash"),
        (change_design, "plan: rebuilt with the hash"),
        (change_bank, "questions: the 300 that are drawn from now are not the 300 of the plan"),
        (lose_file, "candidates: a file is not in the storage"),
    ],
)
def test_what_was_changed_is_named(change: Any, message: str) -> None:
    stage = planned()
    change(stage)
    assert any(message in difference for difference in verify_stage(fresh(stage)).differences)


def test_an_answer_that_was_changed_is_found_by_its_number() -> None:
    stage = cast.closed_stage(on=cast.small_bank(300, name="wide"), **TWO)
    lifecycle.freeze(stage)
    answer = stage.snapshot.get(number=4).assignment
    Belief.objects.filter(response__assignment=answer, kind="prior").update(value=1)
    (difference,) = verify_stage(fresh(stage)).differences
    assert difference.startswith("snapshot: 1 answers were changed since, first number 4")


def test_a_draft_has_nothing_to_verify() -> None:
    with pytest.raises(StateRefused, match="stage 1 is not planned yet"):
        verify_stage(cast.stage_of(cast.small_study()))


@pytest.mark.thorough
def test_the_command_says_that_the_hashes_agree() -> None:
    stage = cast.closed_stage(on=cast.small_bank(300, name="wide"), **TWO)
    lifecycle.freeze(stage)
    stage.snapshot.filter(number=1).update(withdrawn_at=timezone.now())
    out = StringIO()
    call_command("verify_stage", "small", "1", stdout=out)
    assert f"plan: 30 slots rebuilt, hash {stage.plan_sha256}" in out.getvalue()
    assert "snapshot: 30 answers rebuilt except 1 withdrawn" in out.getvalue()


def test_the_command_ends_with_status_1_and_the_differences() -> None:
    change_hash(planned())
    errors = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("verify_stage", "small", "1", stderr=errors)
    assert ended.value.code == 1
    assert "plan: rebuilt with the hash" in errors.getvalue()


def test_verifying_writes_nothing() -> None:
    stage = planned()
    before = [model.objects.count() for model in (Slot, Booklet, Item, CandidateSet)]
    verify_stage(fresh(stage))
    assert [model.objects.count() for model in (Slot, Booklet, Item, CandidateSet)] == before
    assert planning.plan_stage(fresh(stage)).plan_sha256 == stage.plan_sha256
