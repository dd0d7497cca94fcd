"""Playing next tokens: the standing behind a text, playing on or stopping, and pay by right guess, guess or minute."""

from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from survey.contracts import instruments
from survey.contracts.panels import PanelIds
from survey.exceptions import FileErrors
from survey.instruments.next_token.instrument import NextToken
from survey.instruments.next_token.models import TokenGuess
from survey.instruments.next_token.options import NextTokenOptions
from survey.live.replay import replay
from survey.models import AttentionAnswer, EntryLink, QuotaPlace, Response, Score, Sitting, Study
from survey.panels import money
from survey.panels.owed_list import owed_list
from survey.services.answers.conditions import option_problems
from survey.services.answers.counting import study_answers
from survey.services.answers.leaving import leavers_of
from survey.services.banks import passages
from survey.services.sittings import quotas
from survey.services.sittings.answering import advance
from survey.services.sittings.capacity import slots_without_holder
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.expiry import expire_sitting
from survey.services.sittings.flow import Step, current_step
from survey.services.sittings.links import make_links
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import lifecycle
from survey.services.stages.verifying import verify_stage
from survey.services.studies.checking import check_study
from tests import cast
from tests.survey.instruments.test_next_token import STUDY, opened, prepare_tales

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PANEL = {"kind": "links", "completion_url": "https://panel.example/done", "reward": 200, "bonus_per_point": 3}


WITH_FORM = [*STUDY["blocks"][:2], {"kind": "form", "ready": "comment"}, STUDY["blocks"][2]]


def study_with(*, panel: dict[str, Any] = PANEL, file: dict[str, Any] | None = None, **options: Any) -> Study:
    prepare_tales()
    instrument = {"kind": "next_token", "options": {**STUDY["instrument"]["options"], **options}}
    return cast.study(**{**STUDY, "instrument": instrument, "panel": panel, "slug": "playing", **(file or {})})


def arrives(study: Study) -> Sitting:
    make_links(study, count=1, root="https://hunch.example")
    link = EntryLink.objects.filter(study=study, used_at=None).latest("pk")
    return begin_sitting(study=study, ids=PanelIds(panel="links", person=link.token_hash))


def plays(sitting: Sitting, *, texts: int, guess: str = " the", stops: bool = False) -> Step:
    """Plays so many texts up to the page behind the last of them; then, where it stops, up to the end."""
    ended = 0
    while (step := current_step(sitting)).kind != "end":
        data = {}
        if step.screen is not None and step.screen.name == "ending":
            ended += 1
            if ended == texts:
                if not stops:
                    return step
                data = {"stop": "1"}
        elif step.screen is not None:
            data = {"guess": guess}
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()
    return step


def test_the_page_behind_a_text_says_how_the_person_and_the_models_did_in_the_same_places() -> None:
    study = study_with(beside_models=True)
    opened(study)
    sitting = arrives(study)
    step = plays(sitting, texts=2)
    assert step.screen is not None
    answers = [answer for answer in sitting.assignments.all() if answer.responses.exists()]
    guesses = [
        response.token_guess for answer in answers for response in answer.responses.filter(token_guess__isnull=False)
    ]
    right = sum(guess.right for guess in guesses)
    assert step.screen.words["you"] == f"So far you: {right} of {len(guesses)} right."
    stage = sitting.stage
    advance(sitting=sitting, step=step.number, data={})
    from survey.services.results import reports

    (row,) = [row for row in reports.make(study, "next_token", {}).data["figures"] if row["who"] == "trigram"]
    assert row["asked"] == len(guesses) and stage.study == study
    assert step.screen.words["models"] == (
        f"Language models in the same places: trigram {row['right']} of {len(guesses)}."
    )
    assert step.screen.form is None, "nobody was offered to stop"


def test_who_stops_gets_the_rest_of_the_study_and_their_other_texts_go_to_others() -> None:
    study = study_with(play_on=True)
    stage = opened(study)
    sitting = arrives(study)
    step = plays(sitting, texts=1)
    assert step.screen is not None and step.screen.form is not None
    advance(sitting=sitting, step=step.number, data={"stop": "1"})
    sitting.refresh_from_db()
    assert sitting.state == "complete" and current_step(sitting).kind == "end"
    states = list(sitting.assignments.order_by("position").values_list("state", flat=True))
    assert states == ["counted", "declined"]
    assert len(study_answers(study)) == 1
    (slot,) = [answer.slot for answer in sitting.assignments.all() if answer.state == "declined"]
    assert slot in slots_without_holder(stage)
    # Behind the last text there is nothing to choose; and going on is no answer.
    other = arrives(study)
    step = plays(other, texts=2)
    assert step.screen is not None and step.screen.form is None
    advance(sitting=other, step=step.number, data={"stop": "1"})
    assert [answer.state for answer in other.assignments.all()] == ["counted", "counted"]


def test_who_stopped_and_comes_back_late_has_no_texts_again() -> None:
    study = study_with(play_on=True, file={"blocks": WITH_FORM})
    opened(study)
    sitting = arrives(study)
    step = plays(sitting, texts=1)
    advance(sitting=sitting, step=step.number, data={"stop": "1"})
    sitting.refresh_from_db()
    assert current_step(sitting).kind == "form"
    assert expire_sitting(sitting.pk, now=timezone.now())
    sitting.refresh_from_db()
    advance(sitting=sitting, step=sitting.step, data={"comment": "fun"})
    sitting.refresh_from_db()
    assert sitting.state == "complete"
    assert [answer.state for answer in sitting.assignments.order_by("position")] == ["counted", "declined"]
    from survey.services.results import reports

    made = reports.make(study, "next_token", {})
    assert [row["text"] for row in made.data["remarks"]] == ["fun"]


def test_who_stops_and_goes_silent_in_the_closing_form_has_given_all_and_keeps_their_place() -> None:
    study = study_with(play_on=True, file={"blocks": WITH_FORM})
    stage = opened(study)
    sitting = arrives(study)
    advance(sitting=sitting, step=plays(sitting, texts=1).number, data={"stop": "1"})
    place = QuotaPlace.objects.create(
        sitting=sitting, stage=stage, quota="use", cell="any", state="held", answers={}, at=timezone.now()
    )
    assert expire_sitting(sitting.pk, now=timezone.now())
    leavers = leavers_of([stage])[stage.pk]
    assert leavers.began == {sitting.pk} and not leavers.left
    assert list(quotas.taking(QuotaPlace.objects.all())) == [place]
    # Anyone who goes silent among the texts has left.
    other = arrives(study)
    advance(sitting=other, step=plays(other, texts=1).number, data={})
    assert expire_sitting(other.pk, now=timezone.now())
    assert leavers_of([stage])[stage.pk].left == {other.pk}


READ = {"kind": "instruction", "name": "read", "after_item": 1, "text": "Choose blue.", "options": ["blue", "red"]}
LATER = {"kind": "instruction", "name": "later", "after_item": 2, "text": "Choose green.", "options": ["green", "red"]}


@pytest.mark.parametrize("ends", ["answers", "withdraws"])
def test_who_stops_is_asked_the_checks_of_the_texts_that_they_played(ends: str) -> None:
    study = study_with(play_on=True, file={"sitting": {"items": 2, "attention_checks": [LATER, READ]}})
    opened(study)
    sitting = arrives(study)
    advance(sitting=sitting, step=plays(sitting, texts=1).number, data={"stop": "1"})
    sitting.refresh_from_db()
    step = current_step(sitting)
    assert (step.kind, [check.name for check in step.checks]) == ("attention", ["read"])
    assert expire_sitting(sitting.pk, now=timezone.now())
    sitting.refresh_from_db()
    assert current_step(sitting).kind == "attention", "they come back to it, and to no text"
    if ends == "answers":
        advance(sitting=sitting, step=step.number, data={"read": "1"})
    else:
        withdraw(respondent=sitting.respondent, now=timezone.now())
    sitting.refresh_from_db()
    assert sitting.state == "complete"
    assert list(AttentionAnswer.objects.values_list("name", "position")) == ([("read", 1)] if ends == "answers" else [])


def test_a_wish_to_stop_is_heard_after_the_sitting_expired_on_the_page_behind_a_text() -> None:
    study = study_with(play_on=True)
    opened(study)
    for data, state in (({}, "expired"), ({"stop": "1", "screen": "guess_1"}, "expired"), ({"stop": "1"}, "complete")):
        sitting = arrives(study)
        step = plays(sitting, texts=1)
        assert expire_sitting(sitting.pk, now=timezone.now())
        for _twice in range(2):
            following = advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()
        assert sitting.state == state and following.kind == ("end" if state == "complete" else "item")
    assert [answer.state for answer in sitting.assignments.order_by("position")] == ["counted", "declined"]


def test_the_page_behind_a_text_is_replayed_as_it_was() -> None:
    study = study_with(beside_models=True, play_on=True)
    opened(study)
    sitting = arrives(study)
    plays(sitting, texts=2)
    pages = [page for page in replay(sitting).pages if page.title.endswith("ending")]
    assert len(pages) == 1 and not pages[0].note


def test_a_model_is_counted_only_where_it_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_with(beside_models=True)
    opened(study)
    sitting = arrives(study)
    assert "models" in current_words(sitting)
    positions = sorted(TokenGuess.objects.values_list("position", flat=True))
    read = passages.expectations_of

    def partly(*args: Any) -> Any:
        expected = {key: values.copy() for key, values in read(*args).items()}
        for values in expected.values():
            values["logprob"][unread], values["top_id"][unread] = np.nan, -1
        return expected

    monkeypatch.setattr(passages, "expectations_of", partly)
    unread = positions[:2]
    assert f" of {len(positions) - 2}." in current_words(sitting)["models"]
    unread = positions
    assert "models" not in current_words(sitting)


def current_words(sitting: Sitting) -> Any:
    step = plays(sitting, texts=1)
    assert step.screen is not None
    return step.screen.words


def test_the_check_of_a_file_says_what_people_who_stop_may_cost() -> None:
    study_with()
    options = {**STUDY["instrument"]["options"], "play_on": True}
    for panel, plays_on, is_said in ((PANEL, True, True), (PANEL, False, False), ({"kind": "open"}, True, False)):
        instrument = {"kind": "next_token", "options": {**options, "play_on": plays_on}}
        text = cast.study_text(**{**STUDY, "instrument": instrument, "panel": panel, "slug": "costs"})
        said = [found.message for found in check_study(text=text, source_name="costs.toml").findings]
        assert any("up to 12 people may earn the whole reward, 24.00 USD in all" in line for line in said) is is_said


@pytest.mark.parametrize(
    ("pays", "points"),
    [("guess", len), ("right", lambda guesses: sum(guess.token_guess.right for guess in guesses)), ("minute", None)],
)
def test_guesses_right_guesses_or_minutes_are_paid_to_the_cent(pays: str, points: Any) -> None:
    study = study_with(pays=pays, play_on=True, panel={**PANEL, "bonus_per_point": 50})
    noted = [note.message for note in instruments.of_study(study).remarks()]
    assert any("8.00 USD at most to a person, for 16 tokens" in message for message in noted)
    stage = opened(study)
    sitting = arrives(study)
    plays(sitting, texts=1, stops=True)
    guesses = list(Response.objects.filter(token_guess__isnull=False).order_by("number"))
    if pays == "minute":
        # 1 s, 61 s (of which a minute counts) and 30.5 s for each other guess.
        instrument = instruments.of_study(study)
        times = [1_000, 61_000, *[30_500] * (len(guesses) - 2)]
        for response, milliseconds in zip(guesses, times, strict=True):
            Response.objects.filter(pk=response.pk).update(server_ms=milliseconds)
            response.refresh_from_db()
            earned = instrument.score(response)
            assert earned is not None and earned.rule == "minute of guessing"
            Score.objects.filter(response=response).update(value=earned.value)
        minutes = 1 / 60 + 1 + (len(guesses) - 2) * 30.5 / 60
        expected = round(50 * minutes)
    else:
        expected = 50 * points(guesses)
    (line,) = owed_list(study)
    assert line.amount == 200 + expected
    assert len(money.points_of([sitting])) == 1 and guesses
    lifecycle.freeze(lifecycle.close_stage(stage))
    stage.refresh_from_db()
    assert verify_stage(stage).agrees


def test_a_study_that_cannot_play_so_is_refused_with_the_key_to_change() -> None:
    with pytest.raises(FileErrors, match=r"panel.bonus_per_point: pays = .minute. pays a point of it"):
        study_with(pays="minute", panel={**PANEL, "bonus_per_point": 0})
    instrument = {"kind": "next_token", "options": {"tokenizer": "pairs:tales", "beside_models": True, "reveal": False}}
    with pytest.raises(FileErrors, match="reveal = false keeps from people") as refusal:
        cast.study(**{**STUDY, "instrument": instrument, "models": []})
    assert "there is no model to stand beside people" in refusal.value.message


def test_no_condition_changes_an_option_since_checks_and_reports_read_those_of_the_study() -> None:
    options = dict.fromkeys(NextTokenOptions.model_fields, True)
    other = [{"factor": "way", "levels": ["a", "b"], "options": {"b": options}}]
    study = Study(stored_config=cast.small_config(conditions=other).model_dump(mode="json"))
    problems = [(place[-1], message) for place, message in option_problems(study, NextToken(study))]
    assert problems == [(name, "next_token lets conditions change these options: none") for name in sorted(options)]
