"""Attention checks, reports and the choice about one's data at the same time, on PostgreSQL with real threads."""

import pytest
from django.utils import timezone

from survey.exceptions import HunchError
from survey.models import AttentionAnswer, DataChoice, QuestionReport, Response, Withdrawal
from survey.services.sittings.answering import advance
from survey.services.sittings.comments import MAX_REPORTS, report_question
from survey.services.sittings.expiry import expire_sitting
from survey.services.sittings.flow import Step
from survey.services.sittings.withdrawal import withdraw
from tests import cast

from .test_blocks import WITH_CHECKS, at_choice, place_of, report, to_kind
from .test_concurrency import no_errors, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def test_a_double_click_on_an_attention_check_is_one_answer() -> None:
    visitor = cast.Visitor(cast.open_stage(**WITH_CHECKS).study)
    step = to_kind(visitor, "attention")
    results = together(
        *[
            lambda index=index: advance(sitting=visitor.sitting, step=step.number, data={"read": place_of(step, index)})
            for index in (0, 1, 2, 0)
        ]
    )
    no_errors(results)
    assert {(result.kind, result.number) for result in results} == {("item", step.number + 1)}
    assert AttentionAnswer.objects.count() == 1


@pytest.mark.parametrize("_time", range(4))
def test_a_report_and_the_answer_at_the_same_time_are_both_kept(_time: int) -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    step = visitor.step.number
    results = together(
        *[lambda: report(visitor, "odd")] * 3,
        lambda: advance(sitting=visitor.sitting, step=step, data={"value": 40}),
        *[lambda: report(visitor, "strange")] * 2,
    )
    no_errors(results)
    assert sorted(QuestionReport.objects.values_list("text", flat=True)) == ["odd", "strange"]
    assert Response.objects.count() == 1
    assert visitor.step.number == step + 1


def test_many_reports_at_once_stay_below_their_number() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    for number in range(MAX_REPORTS - 2):
        report(visitor, f"number {number}")
    results = together(*[lambda number=number: report(visitor, f"late {number}") for number in range(6)])
    no_errors(results)
    assert sum(result is not None for result in results) == 2
    assert QuestionReport.objects.count() == MAX_REPORTS


WITHDRAW = {"my_data": "withdraw", "my_data_confirmed": "yes"}


def test_withdrawing_twice_at_the_same_time_is_one_withdrawal() -> None:
    visitor = at_choice()
    number = visitor.step.number
    results = together(*[lambda: advance(sitting=visitor.sitting, step=number, data=WITHDRAW)] * 4)
    no_errors(results)
    assert {(result.kind, result.outcome, result.number) for result in results} == {("end", "completed", number + 1)}
    assert Withdrawal.objects.count() == 1 and not DataChoice.objects.exists()
    assert not Response.objects.exists()


def test_of_use_and_withdraw_at_the_same_time_one_stands_with_all_that_follows() -> None:
    visitor = at_choice()
    number = visitor.step.number
    results = together(
        *[
            lambda choice=choice: advance(sitting=visitor.sitting, step=number, data={**WITHDRAW, "my_data": choice})
            for choice in ("use", "withdraw")
        ]
    )
    no_errors(results)
    may_use = DataChoice.objects.filter(may_use=True).exists()
    assert Withdrawal.objects.exists() == (not may_use)
    assert Response.objects.exists() == may_use
    assert {result.kind for result in results} == {"form" if may_use else "end"}


def test_a_sitting_that_expires_while_it_withdraws_is_complete_all_the_same() -> None:
    visitor = at_choice()
    number, now = visitor.step.number, visitor.sitting.last_seen_at

    def choose() -> Step:
        return advance(sitting=visitor.sitting, step=number, data=WITHDRAW)

    results = together(choose, lambda: expire_sitting(visitor.sitting.pk, now=now))
    no_errors(results)
    assert (visitor.reload().state, visitor.step.outcome) == ("complete", "completed")


def test_a_report_after_a_withdrawal_leaves_nothing() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    visitor.answer()
    results = together(
        lambda: withdraw(respondent=visitor.sitting.respondent, now=timezone.now(), reason="a letter"),
        *[lambda number=number: report(visitor, f"odd {number}", screen="posterior") for number in range(3)],
    )
    assert all(isinstance(result, HunchError) or not isinstance(result, Exception) for result in results), results
    assert not QuestionReport.objects.exists()
    with pytest.raises(HunchError):
        report_question(sitting=visitor.sitting, position=1, screen="prior", text="late")
