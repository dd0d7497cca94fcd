"""Flags by the study file's rules, and what a frozen stage leaves out for them."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.models import AttentionAnswer, Exclusion, FormAnswer, Response, Sitting, Stage
from survey.services.answers.counting import counted_answers, frozen_answers, study_answers, training_examples
from survey.services.answers.exclusions import excluded_sittings
from survey.services.answers.sitting_flags import flags_of, rules_in_words
from survey.services.results.estimates import stored_estimates, study_estimates
from survey.services.results.export import answers_file, columns, contents
from survey.services.sittings.withdrawal import runs_that_learnt_from
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.survey.filled import answer, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SAME_ANSWERS: dict[str, Any] = {"flags": {"same_answers": {"share": 1.0, "items": 2}}}
LEAVE_OUT: dict[str, Any] = {**SAME_ANSWERS, "exclusions": {"flags": ["same_answers"]}}


def full_stage(slug: str = "small", **overrides: Any) -> Stage:
    """Four people with three items each, closing; their beliefs are 50, then 50 or 70."""
    return cast.closed_stage(slug, **overrides)


def sittings_of(stage: Stage) -> list[Sitting]:
    return list(stage.sittings.order_by("pk"))


def make_alike(sitting: Sitting) -> None:
    """As if they had said 50 throughout."""
    for response in Response.objects.filter(assignment__sitting=sitting).select_related("belief"):
        response.belief.value = 50
        response.belief.save()


def flags(stage: Stage) -> list[tuple[str, ...]]:
    all_flags = flags_of(sitting.pk for sitting in sittings_of(stage))
    return [all_flags[sitting.pk] for sitting in sittings_of(stage)]


def test_without_rules_nobody_is_flagged() -> None:
    assert flags(full_stage()) == [()] * 4


# The rules


@pytest.mark.parametrize(("ms", "flagged"), [(1999, True), (2000, False)])
def test_a_speeders_median_item_takes_less_than_the_limit(ms: int, flagged: bool) -> None:
    stage = full_stage(flags={"speeder": {"seconds_per_item": 4, "words_per_second": 0}})
    Response.objects.update(server_ms=60_000)
    first, other = sittings_of(stage)[:2]
    quick = Response.objects.filter(assignment__sitting=first, assignment__position__in=[1, 3])
    quick.update(server_ms=ms)
    # One quick item of three is no median.
    Response.objects.filter(assignment__sitting=other, assignment__position=2).update(server_ms=10)
    assert flags(stage) == [("speeder",) if flagged else (), (), (), ()]


def test_a_speeder_reads_more_words_a_second_than_the_limit() -> None:
    stage = full_stage(flags={"speeder": {"seconds_per_item": 0, "words_per_second": 6}})
    # Evidence and target have seven words each ("what is the river of 0"): six in the bank, and the options none.
    pair = stage.slots.order_by("number")[0].item.pair
    assert pair.evidence is not None
    words = pair.target.word_count + pair.evidence.word_count
    Response.objects.update(server_ms=60_000)
    quick, slow = sittings_of(stage)[:2]
    Response.objects.filter(assignment__sitting=quick).update(server_ms=1000 * words // 12 - 50)
    Response.objects.filter(assignment__sitting=slow).update(server_ms=1000 * words // 12 + 50)
    assert flags(stage) == [("speeder",), (), (), ()]


def test_the_same_answer_throughout_is_flagged_and_too_few_answers_are_not() -> None:
    stage = full_stage(flags={"same_answers": {"share": 1.0, "items": 3}})
    # All priors of the cast are 50.
    assert flags(stage) == [("same_answers",)] * 4
    first = Response.objects.filter(assignment__sitting=sittings_of(stage)[0], number=1)[0]
    first.belief.value = 51
    first.belief.save()
    assert flags(stage)[0] == ()
    second = sittings_of(stage)[1]
    for response in Response.objects.filter(assignment__sitting=second, assignment__position=3):
        response.belief.delete()
    assert flags(stage)[1] == ()


def test_failed_attention_checks_flag_from_the_number_that_is_named() -> None:
    checks = [
        {"name": name, "after_item": 1, "kind": "nonsense", "text": "Can you eat the moon?", "options": ["no", "yes"]}
        for name in ("moon", "sun")
    ]
    stage = full_stage(flags={"attention": {"failed": 2}}, sitting={"items": 3, "attention_checks": checks})
    once, twice, passed = sittings_of(stage)[:3]
    for sitting, name, passes in (
        (once, "moon", False),
        (once, "sun", True),
        (twice, "moon", False),
        (twice, "sun", False),
        (passed, "moon", True),
    ):
        AttentionAnswer.objects.create(
            sitting=sitting, name=name, position=1, answer=0, shown=[0, 1], passed=passes, at=timezone.now()
        )
    assert flags(stage) == [(), ("attention",), (), ()]


def test_who_says_that_they_looked_something_up_is_flagged() -> None:
    blocks = [*cast.BLOCKS[:-1], {"kind": "form", "ready": "looked_up"}, cast.BLOCKS[-1]]
    stage = full_stage(blocks=blocks, flags={"looked_up": {}})
    for sitting, said in zip(sittings_of(stage), ["no", "asked_ai", None, "prefer_not_to_say"], strict=True):
        FormAnswer.objects.create(sitting=sitting, block="looked_up", answers={"looked_up": said}, at=timezone.now())
    assert flags(stage) == [(), ("looked_up",), (), ()]


def test_who_was_elsewhere_for_half_of_the_time_is_flagged() -> None:
    stage = full_stage(flags={"hidden": {"share": 0.5}})
    there, away, silent, odd = sittings_of(stage)
    for sitting, client in (
        (there, {"shown_ms": 100, "submitted_ms": 1100, "hidden_ms": 499}),
        (away, {"shown_ms": 100, "submitted_ms": 1100, "hidden_ms": 500}),
        (silent, {"hidden_ms": 9000}),
        (odd, {"shown_ms": 900, "submitted_ms": 100, "hidden_ms": 9000}),
    ):
        Response.objects.filter(assignment__sitting=sitting).update(client=client)
    assert flags(stage) == [(), ("hidden",), (), ()]


def test_a_screen_hidden_for_longer_than_it_was_shown_hides_no_other_screen() -> None:
    stage = full_stage(flags={"hidden": {"share": 0.5}})
    mine = Response.objects.filter(assignment__sitting=sittings_of(stage)[0])
    mine.update(client={"shown_ms": 0, "submitted_ms": 1000})
    mine.filter(number=1, assignment__position=1).update(
        client={"shown_ms": 0, "submitted_ms": 1000, "hidden_ms": 9000}
    )
    assert flags(stage) == [()] * 4


def test_several_flags_come_in_one_order_and_the_rules_are_reported_in_words() -> None:
    stage = full_stage(flags={"hidden": {}, "same_answers": {"items": 2}, "speeder": {}})
    Response.objects.update(client={"shown_ms": 0, "submitted_ms": 10, "hidden_ms": 10})
    assert flags(stage) == [("speeder", "same_answers", "hidden")] * 4
    assert rules_in_words(stage.study) == [
        ("speeder", "the median item took less than 4 s or more than 12 words read a second"),
        ("same_answers", "one answer makes up 90 % or more of 2 or more answers"),
        ("hidden", "the page was hidden for 50 % or more of the time on items"),
    ]


def test_many_sittings_of_several_studies_take_as_many_queries_as_few() -> None:
    rules = {"hidden": {}, "same_answers": {"items": 2}, "speeder": {}}
    few = full_stage("few", flags=rules)
    many = full_stage("many", flags=rules, stages=[{"sittings": 9}])

    def queries(stage: Stage) -> int:
        wanted = [sitting.pk for sitting in sittings_of(stage)]
        with CaptureQueriesContext(connection) as captured:
            flags_of(wanted)
        return len(captured)

    assert queries(few) == queries(many) <= 8
    both = [sitting.pk for stage in (few, many) for sitting in sittings_of(stage)]
    assert set(flags_of(both)) == set(both)


# Exclusions


def varied(stage: Stage) -> Stage:
    """Priors that differ, but for the first person, who says 50 throughout."""
    first = sittings_of(stage)[0]
    for response in Response.objects.filter(number=1).exclude(assignment__sitting=first).select_related("belief"):
        response.belief.value = 50 + response.assignment.position
        response.belief.save()
    make_alike(first)
    return stage


def frozen(stage: Stage) -> Stage:
    jobs.run_inline(stage)
    stage.refresh_from_db()
    assert stage.state == Stage.State.FROZEN
    return stage


def test_freezing_stores_whose_answers_do_not_count_and_why() -> None:
    stage = frozen(varied(full_stage(**LEAVE_OUT)))
    out = Exclusion.objects.get()
    assert (out.sitting, out.flags, out.stage) == (sittings_of(stage)[0], ["same_answers"], stage)
    snapshot = stage.manifest["snapshot"]
    mine = sorted(stage.snapshot.filter(assignment__sitting=out.sitting).values_list("number", flat=True))
    assert (snapshot["answers"], snapshot["excluded"]) == (12, mine) and len(mine) == 3
    assert snapshot["exclusion_rules"] == {"same_answers": {"share": 1.0, "items": 2}}
    assert verify_stage(stage).differences == []


def test_what_is_left_out_is_in_no_training_estimate_or_calibration() -> None:
    stage = varied(full_stage(**LEAVE_OUT))
    out = sittings_of(stage)[0].pk
    # Before the freeze the flags as they are decide.
    assert {counted_answer.sitting_id for counted_answer in counted_answers(stage)} == {
        sitting.pk for sitting in sittings_of(stage)[1:]
    }
    frozen(stage)
    for answers in (
        counted_answers(stage), frozen_answers(stage), training_examples(stage),
        study_answers(stage.study), list(answers_file.CountedAnswers(stage.study)),
    ):  # fmt: skip
        assert len(answers) == 9 and out not in {answer.sitting_id for answer in answers}


def test_estimates_list_the_slots_of_those_who_are_left_out_as_unanswered() -> None:
    stage = frozen(varied(full_stage(**LEAVE_OUT)))
    report = study_estimates.estimate(stage.study)
    (stratum,) = report.parts[0].strata
    assert (stratum.planned, stratum.answered, stratum.excluded, stratum.lost) == (12, 9, 3, 0)
    assert sum(line.excluded for line in report.slots["position"]) == 3
    assert (report.answers, report.respondents) == (9, 3)
    assert "or with one that a rule of the study file leaves out" in report.assumptions[1]


def test_rules_that_change_later_do_not_rewrite_a_frozen_stage() -> None:
    stage = frozen(varied(full_stage(**LEAVE_OUT)))
    before = excluded_sittings(stage)
    stage.study.stored_config["flags"], stage.study.stored_config["exclusions"] = {}, {"flags": []}
    stage.study.save()
    stage = cast.stage_of(stage.study)
    assert excluded_sittings(stage) == before != {}
    assert len(training_examples(stage)) == 9
    assert verify_stage(stage).differences == []


def test_rules_that_come_later_leave_out_nobody_of_a_frozen_stage() -> None:
    stage = frozen(varied(full_stage(**SAME_ANSWERS)))
    stage.study.stored_config["exclusions"] = {"flags": ["same_answers"]}
    stage.study.save()
    stage = cast.stage_of(stage.study)
    assert flags(stage)[0] == ("same_answers",)
    assert len(counted_answers(stage)) == len(training_examples(stage)) == 12


def test_a_flag_that_is_no_reason_leaves_out_nobody() -> None:
    rules = {"flags": {**SAME_ANSWERS["flags"], "hidden": {}}, "exclusions": {"flags": ["hidden"]}}
    stage = varied(full_stage(**rules))
    assert flags(stage)[0] == ("same_answers",) and len(counted_answers(stage)) == 12
    assert excluded_sittings(frozen(stage)) == {}


def test_a_page_from_the_cache_follows_a_flag_that_came_after_the_last_answer() -> None:
    checks = [{"name": "moon", "after_item": 1, "kind": "nonsense", "text": "Eat it?", "options": ["no", "yes"]}]
    stage = full_stage(
        sitting={"items": 3, "attention_checks": checks},
        flags={"attention": {}},
        exclusions={"flags": ["attention"]},
    )
    assert stored_estimates.shown_estimates(stage.study).report.answers == 12
    first = sittings_of(stage)[0]
    AttentionAnswer.objects.create(
        sitting=first, name="moon", position=1, answer=1, shown=[0, 1], passed=False, at=timezone.now()
    )
    Sitting.objects.filter(pk=first.pk).update(last_seen_at=timezone.now())
    assert stored_estimates.shown_estimates(stage.study).report.answers == 9


def test_without_exclusions_the_snapshot_and_its_hash_are_as_before() -> None:
    plain, flagged = (frozen(varied(full_stage(name, **rules))) for name, rules in (("a", {}), ("b", SAME_ANSWERS)))
    for stage in (plain, flagged):
        assert not Exclusion.objects.exists()
        assert set(stage.manifest["snapshot"]) == {"answers", "sha256"}
        assert len(training_examples(stage)) == 12


def test_a_tampered_exclusion_is_found_when_the_stage_is_verified() -> None:
    stage = frozen(varied(full_stage(**LEAVE_OUT)))
    Exclusion.objects.all().delete()
    assert [line for line in verify_stage(stage).differences if line.startswith("exclusions: 3 answers")]
    stage.manifest["snapshot"]["excluded"] = []
    stage.save()
    assert [line for line in verify_stage(stage).differences if line.startswith("snapshot: its hashes")]


def test_the_export_keeps_the_rows_with_the_flags_and_the_reason() -> None:
    stage = frozen(varied(full_stage(**LEAVE_OUT)))
    names = [column.name for column in columns.columns_of(stage.study)]
    rows = [dict(zip(names, row, strict=True)) for row in answers_file.answer_rows(stage.study)]
    first = sittings_of(stage)[0].respondent.pseudonym
    assert len(rows) == 12
    for row in rows:
        mine = row["respondent"] == first
        assert (row["flags"], row["excluded"], row["status"]) == (
            "same_answers" if mine else None, "same_answers" if mine else None, "counted",
        )  # fmt: skip
    assert len(list(next(iter(contents.extra_files(stage.study))).rows)) == 9


@pytest.mark.thorough
def test_predictors_are_judged_without_those_who_are_left_out() -> None:
    study = run_study(
        stages=[{"sittings": 12}, {"sittings": 12}], predictor={"name": "same_task"},
        flags={"same_answers": {"share": 0.3, "items": 6}}, sitting={"items": 6},
        exclusions={"flags": ["same_answers"]},
    )  # fmt: skip
    second = cast.stage_of(study, 2)
    out = second.exclusions.count()
    assert 0 < out < 12
    judged = second.evaluations.first()
    assert judged is not None and judged.metrics["naive"]["n"] == 72 - 6 * out


def test_a_page_from_the_cache_follows_a_rule_that_was_amended() -> None:
    rule = {"seconds_per_item": 1.0, "words_per_second": 0}
    stage = full_stage(flags={"speeder": rule}, exclusions={"flags": ["speeder"]})
    Response.objects.filter(assignment__sitting=sittings_of(stage)[0]).update(server_ms=300)
    assert stored_estimates.shown_estimates(stage.study).report.answers == 9
    stage.study.stored_config["flags"]["speeder"]["seconds_per_item"] = 0.5
    stage.study.source_sha256 = "1" * 64
    stage.study.save()
    assert stored_estimates.shown_estimates(cast.stage_of(stage.study).study).report.answers == 12


def test_predictors_did_not_learn_from_who_was_left_out() -> None:
    stage = varied(full_stage(**LEAVE_OUT, stages=[{"sittings": 4}] * 2, predictor={"name": "same_task"}))
    out, *others = sittings_of(stage)
    unchanged = Response.objects.get(assignment__sitting=others[0], assignment__position=1, number=2)
    unchanged.belief.value = 51
    unchanged.belief.save()
    jobs.run_inline(stage)
    assert Exclusion.objects.get().sitting == out
    assert runs_that_learnt_from(out.respondent) == []
    assert runs_that_learnt_from(others[0].respondent)


def test_answering_after_the_freeze_changes_no_exclusion() -> None:
    stage = cast.open_stage(**LEAVE_OUT)
    answer(stage)
    late = cast.sitting(stage)
    lifecycle.close_stage(stage, now=True)
    frozen(stage)
    assert late.pk not in excluded_sittings(stage)
