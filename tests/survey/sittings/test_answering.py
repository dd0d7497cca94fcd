"""One POST of a respondent: stored once, in order, and whatever else is asked changes nothing."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from survey.exceptions import FieldErrors, OutOfOrder, SittingUnknown
from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, FormAnswer, Response, Sitting
from survey.services.sittings.answering import advance
from survey.services.sittings.forms import is_screened_out, read_form
from survey.services.sittings.queries import sitting_for
from survey.study_file import NOT_SAID, FieldConfig
from tests import cast

pytestmark = pytest.mark.django_db

FORM = {
    "kind": "form",
    "name": "about_you",
    "fields": [
        {"name": "age", "label": "Age", "kind": "number", "minimum": 18, "maximum": 99, "required": True},
        {"name": "uses", "label": "Do you use one?", "kind": "choice", "options": ["yes", "no"]},
        {"name": "remark", "label": "Remark", "kind": "text"},
    ],
}
WITH_FORM = [*cast.BLOCKS[:3], FORM, cast.BLOCKS[3]]


@pytest.fixture
def visitor() -> cast.Visitor:
    return cast.Visitor(cast.open_stage().study).to_items()


def beliefs() -> list[tuple[str, int]]:
    return list(Belief.objects.order_by("response_id").values_list("kind", "value"))


def test_a_sitting_goes_from_consent_to_its_code(visitor: cast.Visitor) -> None:
    seen = []
    while (step := visitor.step).kind == "item":
        assert step.screen is not None
        seen.append((step.position, step.total, step.screen.name))
        visitor.post(value=50)
    assert seen == [(item, 3, screen) for item in (1, 2, 3) for screen in ("prior", "posterior")]
    assert (step.kind, step.outcome, step.code) == ("end", "completed", visitor.code_for("completed"))
    assert visitor.reload().state == "complete" and visitor.sitting.ended_at is not None
    assert visitor.states() == ["counted"] * 3


def test_evidence_and_outcome_are_shown_only_after_the_prior(visitor: cast.Visitor) -> None:
    assert visitor.step.screen is not None and set(visitor.step.screen.parts) == {"target", "variant"}
    after = visitor.post(value=50)
    assert after.screen is not None and set(after.screen.parts) == {"target", "prior", "evidence", "outcome", "variant"}
    assert after.screen.parts["prior"]["value"] == 50


def test_a_repeated_post_stores_one_answer_and_shows_the_same_next_step(visitor: cast.Visitor) -> None:
    step = visitor.step.number
    first = advance(sitting=visitor.sitting, step=step, data={"value": "40"})
    again = advance(sitting=visitor.sitting, step=step, data={"value": "90"})
    assert (again.number, again.screen and again.screen.name) == (first.number, "posterior")
    assert beliefs() == [("prior", 40)]


def test_a_posterior_before_the_prior_is_refused(visitor: cast.Visitor) -> None:
    with pytest.raises(OutOfOrder):
        visitor.post(screen="posterior", value="60")
    assert not Response.objects.exists()


def test_a_step_ahead_is_refused(visitor: cast.Visitor) -> None:
    with pytest.raises(OutOfOrder):
        advance(sitting=visitor.sitting, step=visitor.step.number + 1, data={"value": "60"})
    assert not Response.objects.exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "value",
    ["", "-1", "101", "1e9", "abc", "50.5", "٥٠x", None, [], {"a": 1}, True, "9" * 5000, "NaN", "5\x000", "\ud800"],
)
def test_what_is_no_belief_is_refused_and_nothing_is_stored(visitor: cast.Visitor, value: Any) -> None:
    before = visitor.step.number
    with pytest.raises(FieldErrors) as refused:
        visitor.post(value=value)
    assert set(refused.value.errors) == {"value"}
    assert visitor.step.number == before
    assert not Response.objects.exists()


@pytest.mark.parametrize(("value", "stored"), [("0", 0), ("100", 100), (" 62 ", 62), (62, 62)])
def test_every_whole_number_from_0_to_100_is_a_belief(visitor: cast.Visitor, value: Any, stored: int) -> None:
    visitor.post(value=value)
    assert beliefs() == [("prior", stored)]


def test_responses_keep_when_and_on_what_they_were_given(visitor: cast.Visitor) -> None:
    visitor.post(value=50, client_shown_ms="12", client_changes="2", client_hidden_ms="-4", client_other="1")
    visitor.post(value=60, client_shown_ms="nonsense")
    prior, posterior = Response.objects.order_by("number")
    assert (prior.number, posterior.number) == (1, 2)
    assert prior.client == {"shown_ms": 12, "changes": 2} and posterior.client == {}
    assert prior.screen_sha256 != posterior.screen_sha256
    assert posterior.server_ms == int((posterior.answered_at - prior.answered_at).total_seconds() * 1000)


def test_two_failed_attempts_at_the_checks_end_the_sitting() -> None:
    visitor = cast.Visitor(cast.open_stage().study)
    again = visitor.check(right=False)
    assert (again.kind, again.attempt, again.hints) == ("checks", 2, ("Models.",))
    end = visitor.check(right=False)
    assert (end.kind, end.outcome, end.code) == ("end", "failed_checks", visitor.code_for("failed_checks"))
    assert visitor.reload().state == "failed_checks" and visitor.sitting.booklet is None
    assert visitor.post().code == end.code
    assert visitor.sitting.check_attempts.count() == 2


def test_a_check_without_an_answer_is_no_attempt() -> None:
    visitor = cast.Visitor(cast.open_stage().study)
    with pytest.raises(FieldErrors):
        visitor.post(ready="99")
    assert visitor.sitting.check_attempts.count() == 0


def test_after_the_end_every_post_shows_the_end(visitor: cast.Visitor) -> None:
    visitor.finish()
    before = Response.objects.count()
    assert advance(sitting=visitor.sitting, step=99, data={"value": "1"}).outcome == "completed"
    assert Response.objects.count() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({}, {"age"}),
        ({"age": "17"}, {"age"}),
        ({"age": "old", "uses": "maybe"}, {"age", "uses"}),
        ({"age": "30", "remark": "x" * 5001}, {"remark"}),
        ({"age": "30", "remark": "a\x00b"}, {"remark"}),
        ({"age": "30", "remark": "half a \ud83d"}, {"remark"}),
    ],
)
def test_a_form_refuses_field_by_field(given: dict[str, str], wrong: set[str]) -> None:
    visitor = cast.Visitor(cast.open_stage(blocks=WITH_FORM).study).to_items()
    while visitor.step.kind == "item":
        visitor.answer()
    with pytest.raises(FieldErrors) as refused:
        visitor.post(**given)
    assert set(refused.value.errors) == wrong
    assert not FormAnswer.objects.exists()


def test_a_form_is_stored_with_the_types_of_its_fields() -> None:
    visitor = cast.Visitor(cast.open_stage(blocks=WITH_FORM).study).to_items()
    while visitor.step.kind == "item":
        visitor.answer()
    assert visitor.reload().state == "live"
    assert visitor.post(age=" 30 ", uses="yes", remark="<b>fine</b>", stranger="x").kind == "end"
    assert FormAnswer.objects.get().answers == {"age": 30, "uses": "yes", "remark": "<b>fine</b>"}


NUMBER = {"kind": "number", "minimum": 18, "maximum": 99}
LIKERT = {"kind": "likert", "points": 5, "labels": ["never", "always"]}
CHOICE = {"kind": "choice", "options": ["Yes", "No"]}
SEVERAL = {"kind": "multiple", "options": ["A", "B", "None of them"], "exclusive": ["None of them"]}


@pytest.mark.parametrize(
    ("field", "given", "stored"),
    [
        (NUMBER, "18", 18), (NUMBER, "99", 99), (NUMBER, " 20 ", 20), (NUMBER, "", None),
        (NUMBER, "17", FieldErrors), (NUMBER, "100", FieldErrors), (NUMBER, "2_0", FieldErrors),
        (NUMBER, "2.5", FieldErrors), (NUMBER, "prefer_not_to_say", FieldErrors),
        ({**NUMBER, "required": True}, "", FieldErrors), ({**NUMBER, "required": True}, "  ", FieldErrors),
        ({"kind": "number"}, "-3", -3),
        (LIKERT, "1", 1), (LIKERT, "5", 5), (LIKERT, "0", FieldErrors), (LIKERT, "6", FieldErrors),
        (LIKERT, "01", FieldErrors),
        (CHOICE, "Ja", "Yes"), (CHOICE, "Nein", "No"), (CHOICE, "Yes", FieldErrors),
        ({"kind": "text", "max_characters": 3}, "a\r\nb", "a\r\nb"),
        ({"kind": "text", "max_characters": 3}, "abcd", FieldErrors),
        (SEVERAL, ["B", "A", "B"], ["A", "B"]), (SEVERAL, ["None of them"], ["None of them"]), (SEVERAL, [], None),
        (SEVERAL, ["None of them", "A"], FieldErrors), (SEVERAL, ["C"], FieldErrors),
        ({**SEVERAL, "required": True}, [], FieldErrors),
        ({**SEVERAL, "prefer_not_to_say": True}, [NOT_SAID], [NOT_SAID]),
        ({**SEVERAL, "prefer_not_to_say": True}, [NOT_SAID, "A"], FieldErrors), (SEVERAL, [NOT_SAID], FieldErrors),
        ({**CHOICE, "prefer_not_to_say": True}, NOT_SAID, NOT_SAID), (CHOICE, NOT_SAID, FieldErrors),
    ],
)  # fmt: skip
def test_each_kind_of_question_takes_what_it_asks_for(field: dict[str, Any], given: Any, stored: Any) -> None:
    """Options are stored in the words of the file's first language, whichever the person reads."""
    in_file = FieldConfig(name="q", label="?", **field)
    localised = in_file.model_copy(update={"options": ["Ja", "Nein"]}) if field["kind"] == "choice" else in_file
    if stored is FieldErrors:
        with pytest.raises(FieldErrors) as refused:
            read_form([localised], [in_file], {"q": given})
        assert set(refused.value.errors) == {"q"}
    else:
        assert read_form([localised], [in_file], {"q": given}) == {"q": stored}


@pytest.mark.parametrize(
    ("entered", "named"), [(["A", NOT_SAID], "Prefer not to say"), (["None of them", "A"], "None of them")]
)
def test_which_answer_stands_alone_is_said(entered: list[str], named: str) -> None:
    field = FieldConfig(name="q", label="?", prefer_not_to_say=True, **SEVERAL)
    with pytest.raises(FieldErrors) as refused:
        read_form([field], [field], {"q": entered})
    assert refused.value.errors == {"q": [f"“{named}” does not go together with other answers."]}


def test_any_answer_of_those_named_ends_the_sitting() -> None:
    choice = FieldConfig(name="a", label="?", screen_out=["No"], required=True, **CHOICE)
    other, free = (
        FieldConfig(name="b", label="?", screen_out=["Yes"], required=True, **CHOICE),
        FieldConfig(name="c", label="?", **CHOICE),
    )
    ends = [{"a": "No", "b": None}, {"a": "Yes", "b": "Yes"}]
    goes_on = [{"a": "Yes", "b": "No", "c": "No"}, {"a": None}, {}]
    assert [is_screened_out([choice, other, free], answers) for answers in [*ends, *goes_on]] == [True] * 2 + [
        False
    ] * 3


def test_a_token_opens_its_own_sitting_in_its_own_study_only() -> None:
    mine, other = cast.open_stage("mine"), cast.open_stage("other")
    sitting = cast.Visitor(mine.study).sitting
    assert sitting_for(sitting.token, slug=mine.study.slug) == sitting
    for token, slug in ((sitting.token, other.study.slug), ("forged", mine.study.slug), ("", None), (None, None)):
        with pytest.raises(SittingUnknown):
            sitting_for(token, slug=slug)


def test_answers_given_after_the_slot_went_to_somebody_else_are_stored_flagged_and_not_counted() -> None:
    stage = cast.open_stage(stages=[{"sittings": 1}])
    visitor = cast.Visitor(stage.study).to_items()
    visitor.answer()
    visitor.expire()
    cast.expiry.deal_make_up_booklets(stage)
    other = cast.Visitor(stage.study).to_items()
    assert len(other.slots()) == 2

    visitor.finish()
    assert visitor.states() == ["counted", "late", "late"]
    assert other.states() == ["live", "live"]
    late = Assignment.objects.filter(state="late")
    assert all(row.completed_at and row.responses.count() == 2 for row in late)
    assert visitor.step.outcome == "completed"  # and is paid as everybody else

    other.finish()
    assert other.states() == ["counted", "counted"]
    assert cast.expiry.free_booklets(stage).count() == 0


def test_no_answer_sends_a_task(visitor: cast.Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    import kombu

    def unreachable(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a respondent's request talked to the broker")

    monkeypatch.setattr(kombu.Connection, "_establish_connection", unreachable)
    monkeypatch.setattr(kombu.messaging.Producer, "publish", unreachable)
    visitor.finish()
    assert Sitting.objects.get().state == "complete"


def test_last_seen_follows_accepted_posts_only(visitor: cast.Visitor) -> None:
    long_ago = timezone.now() - timedelta(minutes=5)
    Sitting.objects.update(last_seen_at=long_ago)
    with pytest.raises(FieldErrors):
        visitor.post(value="x")
    assert visitor.reload().last_seen_at == long_ago
    visitor.post(value="5")
    assert visitor.reload().last_seen_at > long_ago
