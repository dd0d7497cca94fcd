"""What a sitting holds in addition to its items: attention checks, forms, the choice about one's data, reports."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.http import QueryDict

from survey.exceptions import FieldErrors, OutOfOrder
from survey.models import (
    Assignment,
    AttentionAnswer,
    Booklet,
    CheckAttempt,
    DataChoice,
    FormAnswer,
    QuestionReport,
    Response,
    ScreenTiming,
    Sitting,
    Slot,
    Stage,
    Study,
    Withdrawal,
)
from survey.services.results.export import contents
from survey.services.results.export.sitting_files import sitting_files
from survey.services.results.pilots.commented_questions import reports_by_question
from survey.services.sittings import attention
from survey.services.sittings.answering import advance
from survey.services.sittings.capacity import free_capacity
from survey.services.sittings.comments import MAX_REPORTS, report_question
from survey.services.sittings.flow import Step
from survey.services.sittings.queries import Standing
from survey.services.stages import lifecycle
from survey.services.studies.creating import remarks_on
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

READ = {
    "name": "read",
    "after_item": 1,
    "kind": "instruction",
    "text": "Please choose “often” here, so that we see that you read.",
    "options": ["often", "never", "sometimes"],
}
SWIM = {
    "name": "swim",
    "after_item": 3,
    "kind": "nonsense",
    "text": "I swim across the Atlantic every morning.",
    "options": ["strongly disagree", "disagree", "agree", "strongly agree"],
    "right": 2,
    "shuffle": False,
}
WITH_CHECKS: dict[str, Any] = {"sitting": {"items": 3, "attention_checks": [READ, SWIM]}}


def place_of(step: Step, index: int) -> str:
    (check,) = step.checks
    return str(check.order.index(index) + 1)


def to_kind(visitor: cast.Visitor, kind: str) -> Step:
    """Walk until a step of that kind, answering items and passing attention checks on the way."""
    step = visitor.to_items().step
    while step.kind not in (kind, "end"):
        if step.kind == "item":
            step = visitor.answer()
        elif step.kind == "attention":
            step = visitor.post(**{step.checks[0].name: place_of(step, 0)})
        else:
            step = visitor.post()
    return step


def kinds_of_a_sitting(visitor: cast.Visitor) -> list[str]:
    kinds = []
    step = visitor.to_items().step
    while step.kind != "end":
        kinds.append(step.kind)
        if step.kind == "item":
            step = visitor.answer()
        else:
            step = visitor.post(**{step.checks[0].name: place_of(step, 0)})
    return kinds


def test_the_next_attention_check_is_the_first_by_its_item_that_was_not_answered() -> None:
    """In whatever order the study file has them, and after the last item those that a short booklet did not reach."""
    checks = [SimpleNamespace(name=name, after_item=item) for name, item in (("late", 3), ("early", 1), ("middle", 2))]
    config = SimpleNamespace(sitting=SimpleNamespace(attention_checks=checks))

    def due(position: int | None, *answered: str) -> str | None:
        item = None if position is None else Assignment(position=position)
        standing = Standing(assignment=item, checks=frozenset(answered))
        check = attention.due_check(SimpleNamespace(shown_config=config), standing)  # type: ignore[arg-type]
        return None if check is None else check.name

    assert [due(position) for position in (1, 2, 3, 4, None)] == [None, *["early"] * 4]
    assert [due(position, "early") for position in (2, 3, 4, None)] == [None, *["middle"] * 3]
    assert [due(position, "early", "middle") for position in (3, 4, None)] == [None, "late", "late"]
    assert due(None, "early", "middle", "late") is None


def test_attention_checks_come_after_their_items_and_have_no_position() -> None:
    visitor = cast.Visitor(cast.open_stage(**WITH_CHECKS).study).to_items()
    assert visitor.step.total == 3
    step = visitor.answer()
    assert (step.kind, step.checks[0].name, step.position, step.total) == ("attention", "read", 0, 0)
    step = visitor.post(read=place_of(step, 0))
    assert (step.kind, step.position, step.total) == ("item", 2, 3)
    assert kinds_of_a_sitting(cast.Visitor(visitor.sitting.stage.study)) == [
        *("item", "attention", "item", "item", "attention")
    ]


def test_the_answer_to_a_check_is_stored_with_what_was_shown() -> None:
    visitor = cast.Visitor(cast.open_stage(**WITH_CHECKS).study)
    step = to_kind(visitor, "attention")
    visitor.post(read=place_of(step, 2))
    to_kind(visitor, "attention")
    visitor.post(swim="2")
    read, swim = AttentionAnswer.objects.order_by("pk")
    assert (read.name, read.position, read.answer, read.passed) == ("read", 1, 2, False)
    assert read.shown == step.checks[0].order and sorted(read.shown) == [0, 1, 2]
    # "disagree" is right as well, and a scale stays in its order.
    assert (swim.name, swim.position, swim.answer, swim.passed, swim.shown) == ("swim", 3, 1, True, [0, 1, 2, 3])
    timed = ScreenTiming.objects.filter(kind="attention").order_by("step")
    assert list(timed.values_list("name", flat=True)) == ["read", "swim"]


def test_the_order_of_a_checks_options_differs_between_sittings() -> None:
    stage = cast.open_stage(stages=[{"sittings": 12}], **WITH_CHECKS)
    orders = {tuple(to_kind(cast.Visitor(stage.study), "attention").checks[0].order) for _person in range(12)}
    assert len(orders) > 1


def test_who_fails_every_check_sees_what_everybody_sees() -> None:
    stage = cast.open_stage(**WITH_CHECKS)
    seen: dict[bool, list[Any]] = {}
    for wrong in (False, True):
        visitor = cast.Visitor(stage.study)
        seen[wrong] = []
        step = visitor.to_items().step
        while step.kind != "end":
            seen[wrong].append((step.kind, step.text, step.hints, step.total))
            if step.kind == "item":
                step = visitor.answer()
            else:
                step = visitor.post(**{step.checks[0].name: place_of(step, 2 if wrong else 0)})
        seen[wrong].append((step.kind, step.outcome, step.code, step.text))
    assert seen[True] == seen[False]
    assert attention.failed_checks(Sitting.objects.all()) == {visitor.sitting.pk: 2}


def test_a_check_is_answered_once_whoever_posts_it_again() -> None:
    visitor = cast.Visitor(cast.open_stage(**WITH_CHECKS).study)
    step = to_kind(visitor, "attention")
    after = visitor.post(read=place_of(step, 0))
    again = advance(sitting=visitor.sitting, step=step.number, data={"read": place_of(step, 1)})
    assert (again.kind, again.number) == (after.kind, after.number)
    assert AttentionAnswer.objects.get().passed


@pytest.mark.parametrize("given", [{}, {"read": "4"}, {"read": ""}, {"other": "1"}, {"read": ["1"]}])
def test_a_check_without_an_answer_is_asked_again(given: dict[str, Any]) -> None:
    visitor = cast.Visitor(cast.open_stage(**WITH_CHECKS).study)
    number = to_kind(visitor, "attention").number
    with pytest.raises(FieldErrors) as refused:
        visitor.post(**given)
    assert set(refused.value.errors) == {"read"}
    assert visitor.step.number == number and not AttentionAnswer.objects.exists()


def test_in_a_shorter_booklet_the_late_checks_come_after_its_last_item() -> None:
    stage = cast.open_stage(**WITH_CHECKS)
    visitor = cast.Visitor(stage.study)
    booklet = Booklet.objects.exclude(claimed_at__isnull=False).first()
    assert booklet is not None
    Booklet.objects.exclude(pk=booklet.pk).filter(claimed_at__isnull=True).update(claimed_at=visitor.sitting.started_at)
    Slot.objects.filter(booklet=booklet).exclude(position=1).update(booklet=None, position=None)
    assert kinds_of_a_sitting(visitor) == ["item", "attention", "attention"]
    assert [row.position for row in AttentionAnswer.objects.order_by("pk")] == [1, 1]
    assert visitor.reload().state == "complete"


def test_a_sitting_that_expired_at_its_last_check_is_gone_on_with() -> None:
    visitor = cast.Visitor(cast.open_stage(sitting={"items": 3, "attention_checks": [SWIM]}).study)
    to_kind(visitor, "attention")
    visitor.expire()
    assert visitor.post(swim="1").kind == "end"
    assert visitor.reload().state == "complete" and visitor.states() == ["counted"] * 3


def test_a_long_study_with_too_few_checks_gets_a_remark() -> None:
    few = {"items": 3, "attention_checks": [READ]}
    long, short = {"minutes": 5}, {"minutes": 4}
    (note,) = remarks_on(cast.small_study("few", sitting=few, texts=long))
    assert note.field == "sitting.attention_checks" and note.message.startswith("1; panels ask for 2 failed ones")
    assert "attention_checks: none;" in str(remarks_on(cast.small_study("none", texts=long))[0])
    assert not remarks_on(cast.small_study("two", texts=long, **WITH_CHECKS))
    assert not remarks_on(cast.small_study("short", texts=short))


# Comprehension checks


def test_both_attempts_at_the_comprehension_checks_are_stored_with_the_order_shown() -> None:
    visitor = cast.Visitor(cast.open_stage().study)
    order = visitor.step.checks[0].order
    visitor.check(right=False)
    visitor.check(right=False)
    attempts = CheckAttempt.objects.order_by("attempt")
    assert [(row.attempt, row.answers, row.shown, row.passed) for row in attempts] == [
        (1, {"ready": 1}, {"ready": order}, False),
        (2, {"ready": 1}, {"ready": order}, False),
    ]


# Forms


def with_form(*fields: dict[str, Any], before: bool = False) -> dict[str, Any]:
    form = {"kind": "form", "name": "about", "version": "7", "fields": list(fields)}
    place = 2 if before else 3
    return {"blocks": [*cast.BLOCKS[:place], form, *cast.BLOCKS[place:]]}


def at_form(*fields: dict[str, Any], before: bool = False, **study: Any) -> cast.Visitor:
    visitor = cast.Visitor(cast.open_stage(**with_form(*fields, before=before), **study).study)
    if before:
        assert visitor.check().kind == "form"
    else:
        assert to_kind(visitor, "form").kind == "form"
    return visitor


AGREE = {"name": "agree", "label": "How far?", "kind": "likert", "points": 5, "labels": ["not at all", "fully"]}
TOOLS = {
    "name": "tools",
    "label": "Which?",
    "kind": "multiple",
    "options": ["A pen", "A pencil", "None"],
    "values": ["pen", "pencil", "none"],
    "exclusive": ["none"],
    "prefer_not_to_say": True,
}
NOTE = {"name": "note", "label": "Note", "kind": "text", "max_characters": 5}


@pytest.mark.parametrize(
    ("field", "given", "stored"),
    [
        (AGREE, "5", 5),
        (AGREE, "", None),
        ({**AGREE, "prefer_not_to_say": True}, "prefer_not_to_say", "prefer_not_to_say"),
        (TOOLS, ["pencil", "pen"], ["pen", "pencil"]),
        (TOOLS, "pen", ["pen"]),
        (TOOLS, ["none"], ["none"]),
        (TOOLS, ["prefer_not_to_say"], ["prefer_not_to_say"]),
        (TOOLS, [], None),
        (NOTE, "ab\r\ncd", "ab\r\ncd"),
    ],
)
def test_a_field_is_stored_in_its_own_type(field: dict[str, Any], given: Any, stored: Any) -> None:
    visitor = at_form(field)
    assert visitor.post(**{field["name"]: given}).kind == "end"
    row = FormAnswer.objects.get()
    assert (row.block, row.version, row.answers) == ("about", "7", {field["name"]: stored})


@pytest.mark.parametrize(
    ("field", "given"),
    [
        (AGREE, "0"),
        (AGREE, "6"),
        (AGREE, "5.0"),
        (AGREE, "prefer_not_to_say"),
        (AGREE, ["1"]),
        ({**AGREE, "required": True}, ""),
        (TOOLS, ["none", "pen"]),
        (TOOLS, ["prefer_not_to_say", "pen"]),
        (TOOLS, ["A pen"]),
        (TOOLS, ["brush"]),
        ({**TOOLS, "required": True}, []),
        (NOTE, "abcdef"),
        ({**NOTE, "kind": "text", "required": True}, "  "),
    ],
)
def test_a_field_refuses_what_it_did_not_offer(field: dict[str, Any], given: Any) -> None:
    visitor = at_form(field)
    with pytest.raises(FieldErrors) as refused:
        visitor.post(**{field["name"]: given})
    assert set(refused.value.errors) == {field["name"]}
    assert not FormAnswer.objects.exists()


def test_check_boxes_of_a_page_are_all_taken() -> None:
    visitor = at_form(TOOLS)
    data = QueryDict("tools=pencil&tools=pen")
    advance(sitting=visitor.sitting, step=visitor.step.number, data=data)
    assert FormAnswer.objects.get().answers == {"tools": ["pen", "pencil"]}


@pytest.mark.parametrize("name", ["demographics", "ai_use", "looked_up", "comment"])
def test_a_ready_form_is_asked_and_stored_under_its_own_name(name: str) -> None:
    blocks = [*cast.BLOCKS[:3], {"kind": "form", "ready": name}, cast.BLOCKS[3]]
    visitor = cast.Visitor(cast.open_stage(blocks=blocks).study)
    step = to_kind(visitor, "form")
    assert step.block.title and step.block.fields and all(field.label for field in step.block.fields)
    assert visitor.post().kind == "end"
    row = FormAnswer.objects.get()
    assert (row.block, row.version) == (name, "1")
    assert set(row.answers.values()) == {None}


# Screening out

SCREEN = {
    "name": "adult",
    "label": "Are you 18 or older?",
    "kind": "choice",
    "options": ["Yes", "No"],
    "screen_out": ["No"],
    "required": True,
}


def test_who_is_screened_out_ends_with_a_code_of_that_outcome_and_holds_no_place() -> None:
    visitor = at_form(SCREEN, before=True, panel={"kind": "generic"})
    stage = Stage.objects.get()
    before = free_capacity(stage)
    end = visitor.post(adult="No")
    assert (end.kind, end.outcome, end.code) == ("end", "screened_out", visitor.code_for("screened_out"))
    assert end.text.startswith("Thank you for your answers.")
    sitting = visitor.reload()
    assert (sitting.state, sitting.booklet, sitting.is_over) == ("screened_out", None, True)
    assert sitting.ended_at is not None
    assert free_capacity(stage) == before + 1
    assert FormAnswer.objects.get().answers == {"adult": "No"}
    assert visitor.post(adult="Yes").outcome == "screened_out"


def test_who_is_not_screened_out_goes_on() -> None:
    visitor = at_form(SCREEN, before=True)
    with pytest.raises(FieldErrors):
        visitor.post()
    assert visitor.post(adult="Yes").kind == "item"


# The choice about one's data

CHOICE = {"kind": "debriefing", "text": "It was about this.", "asks_to_use": True}
COMMENT = {"kind": "form", "ready": "comment"}


def at_choice() -> cast.Visitor:
    blocks = [*cast.BLOCKS[:3], CHOICE, COMMENT, cast.BLOCKS[3]]
    visitor = cast.Visitor(cast.open_stage(blocks=blocks).study)
    assert to_kind(visitor, "debriefing").kind == "debriefing"
    return visitor


def test_who_lets_the_data_be_used_goes_on() -> None:
    visitor = at_choice()
    assert visitor.post(my_data="use").kind == "form"
    assert DataChoice.objects.get().may_use
    assert visitor.post(comment="Nice").outcome == "completed"
    assert Response.objects.count() == 6 and not Withdrawal.objects.exists()


def test_who_withdraws_is_finished_and_paid_and_nothing_of_the_answers_is_left() -> None:
    visitor = at_choice()
    end = visitor.post(my_data="withdraw", my_data_confirmed="yes")
    assert (end.kind, end.outcome, end.code) == ("end", "completed", visitor.code_for("completed"))
    assert end.text == "We have deleted your answers, as you wished. Thank you for your time."
    sitting = visitor.reload()
    assert sitting.state == "complete" and sitting.withdrawn_at is not None
    assert not Response.objects.exists() and set(visitor.states()) == {"withdrawn"}
    assert Withdrawal.objects.get().answers == 3
    assert not DataChoice.objects.exists() and not ScreenTiming.objects.exists()


@pytest.mark.parametrize(("first", "second"), [("use", "withdraw"), ("withdraw", "use"), ("withdraw", "withdraw")])
def test_the_first_choice_stands(first: str, second: str) -> None:
    visitor = at_choice()
    number = visitor.step.number
    after = visitor.post(my_data=first, my_data_confirmed="yes")
    again = advance(sitting=visitor.sitting, step=number, data={"my_data": second, "my_data_confirmed": "yes"})
    assert (again.kind, again.number) == (after.kind, after.number)
    assert DataChoice.objects.filter(may_use=True).count() == DataChoice.objects.count() == (first == "use")
    assert Withdrawal.objects.count() == (first == "withdraw")


@pytest.mark.parametrize("given", [{}, {"my_data": "maybe"}, {"my_data": ["use"]}])
def test_no_choice_is_no_consent(given: dict[str, Any]) -> None:
    visitor = at_choice()
    with pytest.raises(FieldErrors) as refused:
        visitor.post(**given)
    assert set(refused.value.errors) == {"my_data"}
    assert visitor.step.kind == "debriefing" and not DataChoice.objects.exists()


# Reports


def report(visitor: cast.Visitor, text: str = "Two options are the same.", **changes: Any) -> QuestionReport | None:
    return report_question(sitting=visitor.sitting, **{"position": 1, "screen": "prior", "text": text, **changes})


@pytest.fixture
def visitor() -> cast.Visitor:
    return cast.Visitor(cast.open_stage().study).to_items()


def test_a_report_is_stored_and_takes_no_step(visitor: cast.Visitor) -> None:
    before = visitor.step.number, visitor.sitting.last_seen_at
    report(visitor)
    row = QuestionReport.objects.get()
    assert (row.sitting, row.assignment.position, row.screen) == (visitor.sitting, 1, "prior")
    assert row.text == "Two options are the same."
    assert (visitor.step.number, visitor.sitting.last_seen_at) == before
    assert not Response.objects.exists()
    visitor.answer()
    assert visitor.states()[0] == "counted"


def test_the_same_words_from_one_screen_are_one_report(visitor: cast.Visitor) -> None:
    first = report(visitor, " odd\r\nthing ")
    assert report(visitor, "odd\nthing") == first
    assert report(visitor, "another") != first
    visitor.answer()
    later = report(visitor, "odd\nthing", screen="posterior")
    assert later != first and report(visitor, "odd\nthing", position=2) not in (first, later)
    assert QuestionReport.objects.count() == 4


def test_an_item_that_was_answered_can_still_be_reported_from_a_tab_left_open(visitor: cast.Visitor) -> None:
    visitor.answer()
    report(visitor, "late", screen="posterior")
    assert QuestionReport.objects.get().assignment.position == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"screen": "posterior"},
        {"screen": "stranger"},
        {"position": 2},
        {"position": 99},
        {"position": "x"},
        {"position": "-1"},
        {"position": ""},
        {"position": "9" * 30},
    ],
)
def test_what_was_never_shown_cannot_be_reported(visitor: cast.Visitor, changes: dict[str, Any]) -> None:
    with pytest.raises(OutOfOrder):
        report(visitor, **changes)
    assert not QuestionReport.objects.exists()


def test_nothing_is_stored_for_a_sitting_that_is_over(visitor: cast.Visitor) -> None:
    visitor.finish()
    with pytest.raises(OutOfOrder):
        report(visitor)
    assert not QuestionReport.objects.exists()


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 501, "a\x00b", "half a \ud83d"])
def test_a_report_needs_words_that_can_be_stored(visitor: cast.Visitor, text: str) -> None:
    with pytest.raises(FieldErrors) as refused:
        report(visitor, text)
    assert set(refused.value.errors) == {"report"}
    assert not QuestionReport.objects.exists()


def test_a_report_may_have_as_many_characters_of_any_alphabet_as_it_says(visitor: cast.Visitor) -> None:
    assert report(visitor, "🎲" * 500) is not None


def test_more_reports_than_anybody_reads_are_thanked_for_and_not_stored(visitor: cast.Visitor) -> None:
    for number in range(MAX_REPORTS):
        assert report(visitor, f"number {number}") is not None
    assert report(visitor, "one more") is None
    assert QuestionReport.objects.count() == MAX_REPORTS


def test_reports_are_counted_by_the_questions_that_were_shown_by_then(visitor: cast.Visitor) -> None:
    """The evidence comes after the first page of an item: nobody can have meant it there."""
    for text in ("one", "two"):
        report(visitor, text)
    visitor.answer()
    report(visitor, "later", screen="posterior")
    report(visitor, "three", position=2)
    first, second = (Assignment.objects.get(position=place, sitting=visitor.sitting).slot.item.pair for place in (1, 2))
    counted = {count.question.pk: count.reports for count in reports_by_question(Study.objects.filter(slug="small"))}
    assert counted == {first.target_id: 3, first.evidence_id: 1, second.target_id: 1}
    assert reports_by_question(Study.objects.filter(slug="another")) == []


def test_reports_of_a_study_whose_instrument_is_missing_hide_none_of_another(visitor: cast.Visitor) -> None:
    other = cast.Visitor(cast.open_stage("other").study).to_items()
    for somebody in (visitor, other):
        report(somebody)
    Study.objects.filter(slug="small").update(instrument="gone")
    (counted,) = reports_by_question(Study.objects.all())
    pair = Assignment.objects.get(position=1, sitting=other.sitting).slot.item.pair
    assert (counted.question, counted.reports) == (pair.target, 1)


# Files


def test_forms_checks_and_reports_are_exported() -> None:
    blocks = [*with_form(AGREE, TOOLS)["blocks"][:4], CHOICE, cast.BLOCKS[3]]
    visitor = cast.Visitor(cast.open_stage(blocks=blocks, **WITH_CHECKS).study)
    visitor.check(right=False)
    visitor.to_items()
    report(visitor, "odd")
    to_kind(visitor, "form")
    visitor.post(agree="4", tools=["pencil"])
    visitor.post(my_data="use")
    study = visitor.reload().stage.study
    files = {
        file.name: [dict(zip([c.name for c in file.columns], row, strict=True)) for row in file.rows]
        for file in sitting_files(study, since=None)
    }
    answers = {(row["block"], row["version"], row["field"]): row["answer"] for row in files["forms.csv"]}
    assert answers == {
        ("about", "7", "agree"): 4,
        ("about", "7", "tools"): '["pencil"]',
        ("debriefing", None, "my_data"): "use",
    }
    checks = [(r["kind"], r["check"], r["attempt"], r["answer_text"], r["passed"]) for r in files["checks.csv"]]
    assert checks == [
        ("comprehension", "ready", 1, "People", False),
        ("comprehension", "ready", 2, "Language models", True),
        ("attention", "read", 1, "often", True),
        ("attention", "swim", 1, "strongly disagree", True),
    ]
    (report_row,) = files["question_reports.csv"]
    assert (report_row["position"], report_row["screen"], report_row["text"]) == (1, "prior", "odd")
    assert {"forms.csv", "checks.csv", "question_reports.csv"} <= {file.name for file in contents.extra_files(study)}


# Languages


def test_in_another_language_the_same_is_asked_and_the_same_is_stored() -> None:
    both = {"languages": ["en", "de"]}
    read = {
        **READ,
        "text": {"en": "Choose “often” here.", "de": "Wählen Sie hier „oft“."},
        "options": [{"en": "often", "de": "oft"}, {"en": "never", "de": "nie"}],
    }
    blocks = [*cast.BLOCKS[:3], {"kind": "form", "ready": "ai_use"}, cast.BLOCKS[3]]
    # Its other texts are in one language, which a study file of today may not be.
    sitting = {"items": 3, "attention_checks": [read]}
    stage = lifecycle.open_stage(cast.stage_of(cast.stored_study(blocks=blocks, texts=both, sitting=sitting)))
    visitor = cast.Visitor(stage.study)
    Sitting.objects.filter(pk=visitor.sitting.pk).update(language="de")
    step = to_kind(visitor, "attention")
    assert step.checks[0].question == "Wählen Sie hier „oft“."
    assert {text for _index, text in step.checks[0].options} == {"oft", "nie"}
    visitor.post(read=place_of(step, 0))
    step = to_kind(visitor, "form")
    assert step.block.title == "Sie und KI-Programme"
    visitor.post(frequency="daily", purposes=["code"], familiarity="4")
    assert AttentionAnswer.objects.get().passed
    assert FormAnswer.objects.get().answers == {"frequency": "daily", "purposes": ["code"], "familiarity": 4}
