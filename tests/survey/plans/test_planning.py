"""A plan: drawn once from stored seeds, dealt without conflicts, refused with its sizes."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from survey.exceptions import PlanRefused, StateRefused
from survey.models import Booklet, CandidateSet, Item, JobStep, PredictorRun, Question, Slot, Stage, Stratum, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.base import files
from survey.services.base.seeds import derive, generator
from survey.services.plans import candidates, planning
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.1}
TWO_STAGES = {
    "stages": [{"sittings": 4}, {"sittings": 4, "design": GREEDY}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 200},
}


def scored_second_stage(slug: str = "small", *, of: Callable[..., Study] = cast.small_study, **overrides: Any) -> Stage:
    """A second stage whose candidates have scores, as the first stage's predictor would have left them."""
    study = of(slug, **{**TWO_STAGES, **overrides})
    first, second = cast.stage_of(study), cast.stage_of(study, 2)
    run = PredictorRun.objects.create(stage=first, name="same_task", seed=1, input_sha256="0" * 64, example_count=12)
    pool = candidates.draw_candidates(second, candidates.drawable_questions(second))
    scores = np.random.default_rng(3).permutation(np.linspace(0.1, 0.9, len(pool.rows)))
    candidates.store_candidates(
        second,
        pool,
        questions_sha256=candidates.question_set_digest(study),
        scores=scores,
        predictor_run=run,
    )
    return second


def shape_of(stage: Stage) -> list[tuple[object, ...]]:
    return list(
        stage.slots.order_by("number").values_list(
            "number",
            "item__key",
            "stratum__name",
            "inclusion_probability",
            "pool_probability",
            "booklet__number",
            "position",
        )
    )


def test_the_same_seed_gives_the_same_plan() -> None:
    first, second, other = cast.planned_stage("first"), cast.planned_stage("second"), cast.planned_stage("x", seed=8)
    assert first.plan_sha256 == second.plan_sha256 != other.plan_sha256
    assert shape_of(first) == shape_of(second)
    assert first.manifest["candidates"]["sha256"] == second.manifest["candidates"]["sha256"]


def test_stages_of_one_study_draw_from_seeds_of_their_own() -> None:
    study = cast.small_study(stages=[{"sittings": 4}, {"sittings": 4}])
    plans = [planning.plan_stage(cast.stage_of(study, index)).plan_sha256 for index in (1, 2)]
    assert plans[0] != plans[1]


def test_planning_twice_changes_nothing() -> None:
    stage = cast.planned_stage()
    before = shape_of(stage)
    assert planning.plan_stage(stage).plan_sha256 == stage.plan_sha256
    stale = cast.stage_of(stage.study)
    stale.state = "draft"
    assert planning.plan_stage(stale).plan_sha256 == stage.plan_sha256
    assert shape_of(stage) == before


def test_every_slot_lies_in_one_booklet_and_no_question_twice_in_any() -> None:
    stage = cast.planned_stage(stages=[{"sittings": 10}])
    assert [booklet.slots.count() for booklet in stage.booklets.all()] == [3] * 10
    for booklet in stage.booklets.all():
        assert list(booklet.slots.order_by("position").values_list("position", flat=True)) == [1, 2, 3]
        pairs = [slot.item.pair for slot in booklet.slots.select_related("item__pair")]
        assert max(Counter(key for pair in pairs for key in (pair.evidence_id, pair.target_id)).values()) == 1


def test_inclusion_probabilities_are_those_of_the_strata() -> None:
    stage = planning.plan_stage(scored_second_stage())
    strata = {stratum.name: stratum for stratum in stage.strata.all()}
    assert {name: (stratum.size, stratum.slots) for name, stratum in strata.items()} == {
        "top": (20, 9),
        "rest": (180, 3),
    }
    for name, stratum in strata.items():
        drawn = set(stage.slots.filter(stratum=stratum).values_list("inclusion_probability", flat=True))
        assert drawn == {stratum.slots / stratum.size}, name
    inverse = [1 / chance for chance in stage.slots.values_list("inclusion_probability", flat=True)]
    assert sum(inverse) == pytest.approx(200)  # What is drawn stands for all candidates.
    pool = CandidateSet.objects.get(stage=stage)
    assert (pool.size, pool.universe_size) == (200, 2 * 40 * 39)
    assert set(stage.slots.values_list("pool_probability", flat=True)) == {200 / (2 * 40 * 39)}


def test_a_slot_keeps_the_score_that_chose_it() -> None:
    stage = planning.plan_stage(scored_second_stage())
    rows = files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)
    threshold = np.sort(rows["score"])[-20]
    for slot in stage.slots.select_related("stratum"):
        assert slot.score is not None
        assert (slot.score >= threshold) == (slot.stratum is not None and slot.stratum.name == "top")


@pytest.mark.thorough
def test_scored_candidates_give_the_same_plan_again() -> None:
    first, second = (planning.plan_stage(scored_second_stage(slug)) for slug in ("first", "second"))
    assert first.plan_sha256 == second.plan_sha256


def test_items_are_shared_between_stages() -> None:
    study = cast.small_study(
        stages=[{"sittings": 4}, {"sittings": 4}], questions={"tasks": ["algebra"]}, sitting={"items": 2}
    )
    for index in (1, 2):
        planning.plan_stage(cast.stage_of(study, index))
    assert Slot.objects.count() == 16
    assert Item.objects.count() == len(set(Slot.objects.values_list("item__key", flat=True)))


def refused(stage: Stage) -> str:
    with pytest.raises(PlanRefused) as caught:
        planning.plan_stage(stage)
    assert cast.stage_of(stage.study, stage.index).state == "draft"
    assert not Slot.objects.exists() and not Booklet.objects.exists() and not Stratum.objects.exists()
    assert not Item.objects.exists()
    return caught.value.message


def test_more_slots_than_candidates_are_refused_with_both_numbers() -> None:
    message = refused(cast.stage_of(cast.stored_study(candidates={"size": 10})))
    assert "12" in message and "10" in message


def test_a_bank_too_small_for_the_booklets_is_refused() -> None:
    small = cast.small_bank(5, name="tiny", tasks=1)
    message = refused(cast.stage_of(cast.stored_study(on=small, candidates={"size": 40})))
    assert message.startswith("stage 1 cannot be dealt") and "plan_stage small 1 --short-booklets" in message


def test_a_person_may_choose_more_and_shorter_booklets_with_the_same_slots() -> None:
    small = cast.small_bank(5, name="tiny", tasks=1)
    stage = planning.plan_stage(
        cast.stage_of(cast.stored_study(on=small, candidates={"size": 40})), short_booklets=True
    )
    assert stage.slots.count() == 12 and stage.booklets.count() > 4
    for booklet in stage.booklets.all():
        pairs = [slot.item.pair for slot in booklet.slots.select_related("item__pair")]
        asked = [key for pair in pairs for key in (pair.evidence_id, pair.target_id)]
        assert 1 <= len(pairs) <= 3 and len(set(asked)) == len(asked)


def test_candidates_scored_before_a_flag_was_set_are_never_planned() -> None:
    second = scored_second_stage()
    Question.objects.filter(position=0).update(flag="broken", flag_reason="a typing error")
    with pytest.raises(StateRefused, match="flagged since the candidates of stage 2 were scored"):
        planning.plan_stage(second)
    assert not Slot.objects.exists()


def test_a_stratum_that_is_too_small_is_refused() -> None:
    second = scored_second_stage(of=cast.stored_study, candidates={"size": 50})
    assert "stage 2 cannot be planned" in refused(second)


def test_a_question_without_a_key_is_refused_by_name() -> None:
    keyless = cast.small_bank(40, name="keyless", keyless=2)
    keyless.questions.filter(external_id="q38").update(answer=" ")
    message = refused(cast.stage_of(cast.stored_study(on=keyless)))
    assert "2 questions have no answer key" in message and "q38, q39" in message


def test_a_flagged_question_is_never_drawn() -> None:
    keyless = cast.small_bank(40, name="keyless", keyless=2)
    keyless.questions.filter(answer="").update(flag="excluded", flag_reason="no key")
    stage = planning.plan_stage(cast.stage_of(cast.small_study(on=keyless)))
    assert stage.manifest["questions"]["count"] == 38


def test_filters_that_leave_too_little_are_refused() -> None:
    assert "leave 0 of the bank's questions" in refused(cast.stage_of(cast.stored_study(questions={"max_words": 1})))


def test_filters_choose_by_task_and_length() -> None:
    study = cast.stored_study(questions={"tasks": ["biology"], "max_characters": 23})
    questions = eligible_questions(study)
    assert {question.task.name for question in questions} == {"biology"}
    assert all(len(question.plain) <= 23 for question in questions)
    assert 0 < len(questions) < Question.objects.filter(task__name="biology").count()


def test_a_stage_that_draws_by_score_waits_for_the_scores() -> None:
    second = cast.stage_of(cast.small_study(**TWO_STAGES), 2)
    with pytest.raises(StateRefused, match="close stage 1 first"):
        planning.plan_stage(second)
    assert not CandidateSet.objects.exists()
    first = planning.plan_stage(cast.stage_of(second.study))
    Stage.objects.filter(pk=first.pk).update(state="frozen", snapshot_sha256="0" * 64)
    with pytest.raises(StateRefused, match="stage 1 is closed, and its jobs train"):
        planning.plan_stage(cast.stage_of(second.study, 2))


def test_scores_are_not_lost_to_somebody_who_plans_by_hand() -> None:
    second = scored_second_stage()
    unscored = candidates.draw_candidates(second, candidates.drawable_questions(second))
    stored = candidates.store_candidates(second, unscored, questions_sha256="0" * 64)
    assert stored.predictor_run is not None and "score" in (files.load_array(stored.file_sha256).dtype.names or ())


def test_a_plan_of_candidates_that_changed_meanwhile_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.stage_of(cast.small_study())
    draft = planning._draft

    def slowly(*args: object, **options: object) -> object:
        made = draft(*args, **options)  # type: ignore[arg-type]
        CandidateSet.objects.update(file_sha256="f" * 64)
        return made

    monkeypatch.setattr(planning, "_draft", slowly)
    with pytest.raises(StateRefused, match="plan it again"):
        planning.plan_stage(stage)
    assert not Slot.objects.exists()


def test_a_plan_by_a_file_that_was_replaced_meanwhile_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.stage_of(cast.small_study())
    draft = planning._draft

    def slowly(*args: object, **options: object) -> object:
        made = draft(*args, **options)  # type: ignore[arg-type]
        Study.objects.update(source_sha256="f" * 64)
        return made

    monkeypatch.setattr(planning, "_draft", slowly)
    with pytest.raises(StateRefused, match="the file of small was changed meanwhile: plan stage 1 again"):
        planning.plan_stage(stage)
    assert not Slot.objects.exists()


def test_a_person_who_plans_a_stage_mends_the_step_that_should_have_planned_it_and_no_other() -> None:
    second = scored_second_stage()
    first = cast.stage_of(second.study)
    failed = {"state": "failed", "error": "x", "tries_left": 0, "finished_at": timezone.now()}
    steps = [
        JobStep.objects.create(stage=of, kind=kind, input_sha256="0" * 64, **failed)
        for of, kind in ((first, "plan"), (first, "train"), (second, "plan"))
    ]
    planning.plan_stage(second)
    states = []
    for step in steps:
        step.refresh_from_db()
        states.append((step.state, step.error, step.tries_left > 0, step.finished_at is None))
    assert states == [("queued", "", True, True), ("failed", "x", False, False), ("failed", "x", False, False)]


def test_scores_are_outdated_by_a_flag_where_a_stage_draws_by_them_or_has_some() -> None:
    drawn_by, with_scores = (
        scored_second_stage("drawn"),
        scored_second_stage("uniform", stages=[{"sittings": 4}, {"sittings": 4}]),
    )
    plain = cast.stage_of(cast.small_study("plain"))
    candidates.store_candidates(
        plain,
        candidates.draw_candidates(plain, candidates.drawable_questions(plain)),
        questions_sha256=candidates.question_set_digest(plain.study),
    )
    stages = (drawn_by, with_scores, plain)
    assert [planning.scores_are_outdated(stage) for stage in stages] == [False] * 3
    Question.objects.filter(position=0).update(flag="broken", flag_reason="a typing error")
    assert [planning.scores_are_outdated(stage) for stage in stages] == [True, True, False]


def checked(**overrides: Any) -> None:
    planning.check_designs(cast.small_config(**overrides), universe_size=3120)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"candidates": {"size": 5}}, "stage 1 cannot be drawn"),
        ({**TWO_STAGES, "candidates": {"size": 50}}, "stage 2 cannot be drawn"),
        ({**TWO_STAGES, "instrument": {"kind": "own_answers"}}, "own_answers has no label to predict"),
    ],
)
def test_a_study_that_could_never_be_drawn_is_refused_before_it_begins(
    overrides: dict[str, object], message: str
) -> None:
    with pytest.raises(PlanRefused, match=message):
        checked(**overrides)


def test_a_study_that_can_be_drawn_is_not_refused() -> None:
    checked(**TWO_STAGES)


def test_seeds_depend_on_every_name_and_stay_exact_in_json() -> None:
    seeds = {derive(seed, *names) for seed in (1, 2) for names in (("a",), ("b",), ("a", 1), ("a", 2), ("a1",))}
    assert len(seeds) == 10
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert generator(1, "a").integers(1000, size=3).tolist() == generator(1, "a").integers(1000, size=3).tolist()
