"""One POST of a respondent. It runs under a lock on the sitting's row, and decides whether the answer counts.

Nothing here sends a Celery task, so answers are stored even while Redis is down.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from survey.contracts import instruments
from survey.contracts.screens import Screen
from survey.exceptions import FieldErrors, HunchError, OutOfOrder
from survey.letters import control_character
from survey.models import (
    Assignment,
    AttentionAnswer,
    Booklet,
    CheckAttempt,
    FormAnswer,
    Response,
    Score,
    Sitting,
    Slot,
    Stage,
)
from survey.services.base.compiled import insert_where
from survey.services.base.hashing import digest
from survey.services.base.locks import locked_stage

from . import comments, debriefing, practice, quotas
from .attention import due_check
from .enrolment import claim_booklet
from .flow import MAXIMUM_CHECK_ATTEMPTS, CheckQuestion, Step, current_step, step_among_items
from .forms import is_screened_out, read_form, refuse_lists
from .queries import Standing, locked_sitting, sitting_for, standing_of
from .timing import client_facts, milliseconds_since, record_step

# By a later statement than the sitting's lock, which all attempts need.
NEXT_ATTEMPT = f"(SELECT COALESCE(MAX(attempt), 0) + 1 FROM {CheckAttempt._meta.db_table} WHERE sitting_id = %s)"  # noqa: S608
STEP_FIELDS = ("step", "last_seen_at", "block", "state", "ended_at", "booklet")
STEP_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True)
class Answered:
    """What became of a page that was sent.

    `errors`: by field, why it was not accepted; nothing of the answer is stored then. `step`: what to show now; None
    where nobody asked.
    """

    sitting: Sitting
    step: Step | None
    errors: Mapping[str, list[str]] = field(default_factory=dict)


def answer(*, token: str | None, slug: str, data: Mapping[str, Any], with_next: bool) -> Answered:
    """Take a page that was sent, with a remark if one was written on it. See `advance`.

    Args:
        token: names the sitting, which must be of the study called `slug`.
        data: the fields of the page; `step` is the number of the step that it was shown for.
        with_next: whether to say what to show next. Otherwise that is read by the page that shows it.

    Raises:
        SittingUnknown: the token names no sitting of this study.
        OutOfOrder: the step has not been reached.
        HunchError: the step is not a number.
    """
    now = timezone.now()
    with transaction.atomic():
        sitting = sitting_for(token, slug=slug, lock=True)
        with translation.override(sitting.language):
            if _was_taken(sitting, _number_of(data), data, now):
                return Answered(sitting, current_step(sitting) if with_next else None)
            step = current_step(sitting, to_answer=True)
            noted = False
            try:
                noted = comments.note_with_answer(sitting, step, data, now)
                # A remark stays, even if the answer is refused.
                with transaction.atomic() if noted else nullcontext():
                    following = _take(sitting, step, data, now)
                    return Answered(sitting, _step_after(sitting, step, following) if with_next else None)
            except HunchError as exc:
                refusal = exc
                step = _as_its_page_shows_it(sitting, step) if isinstance(exc, FieldErrors) else step
                transaction.set_rollback(not noted)
    if isinstance(refusal, FieldErrors):
        return Answered(sitting, step, refusal.errors)
    raise refusal


def _number_of(data: Mapping[str, Any]) -> int:
    number = str(data.get("step", ""))
    if not STEP_NUMBER.fullmatch(number):
        raise HunchError(_("This page was sent in a form that we cannot read. Please go on from where you are."))
    return int(number)


@transaction.atomic
def advance(*, sitting: Sitting, step: int, data: Mapping[str, Any]) -> Step:
    """Take one POST and return the step to show next. A repeated POST changes nothing and gets the same next step.

    Args:
        step: the number of the step that the form was shown for.
        data: the form's fields; for an item, those of the screen's form.

    Raises:
        FieldErrors: the answer was not accepted; nothing is stored.
        OutOfOrder: the step has not been reached.
    """
    now = timezone.now()
    locked = locked_sitting(sitting.pk)
    locked.is_by_ids_alone = sitting.is_by_ids_alone
    if _was_taken(locked, step, data, now):
        return current_step(locked)
    return _answered(locked, data, now)


def answer_by_token(token: str | None, *, step: int, data: Mapping[str, Any]) -> tuple[Sitting, Step]:
    """As `advance`, for the sitting that a token names; the sitting, too.

    Raises:
        SittingUnknown: the token names no sitting.
        FieldErrors, OutOfOrder: as `advance`.
    """
    now = timezone.now()
    with transaction.atomic():
        sitting = sitting_for(token, lock=True)
        with translation.override(sitting.language):
            if _was_taken(sitting, step, data, now):
                return sitting, current_step(sitting)
            return sitting, _answered(sitting, data, now)


def _answered(sitting: Sitting, data: Mapping[str, Any], now: datetime) -> Step:
    step = current_step(sitting, to_answer=True)
    return _step_after(sitting, step, _take(sitting, step, data, now))


def _as_its_page_shows_it(sitting: Sitting, step: Step) -> Step:
    """A step whose answer was refused. Nothing of the answer is stored, so the sitting is where it was."""
    return current_step(sitting) if step.kind == "checks" else step


def _was_taken(sitting: Sitting, step: int, data: Mapping[str, Any], now: datetime) -> bool:
    """Whether nothing is left to do for a POST of that step. Needs the sitting's lock. A wish to stop is heard although
    the last page of the item counted as read when the sitting expired.

    Raises:
        OutOfOrder: the step has not been reached.
    """
    if sitting.is_over or step < sitting.step:
        if step == sitting.step - 1 and sitting.state == Sitting.State.EXPIRED and _wants_to_stop(sitting, data):
            _revive(sitting, now)
            _stop(sitting, now)
            sitting.step += 1
            sitting.last_seen_at = now
            sitting.save(update_fields=STEP_FIELDS)
        return True
    if step > sitting.step:
        raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))
    return False


def _wants_to_stop(sitting: Sitting, data: Mapping[str, Any]) -> bool:
    """Whether this says to stop, on the last page of the item that was complete when the sitting expired."""
    instrument = instruments.of_study(sitting.stage.study)
    of_then = sitting.assignments.filter(completed_at=sitting.expired_at, state=Assignment.State.COUNTED)
    assignment = instrument.rows.with_items(of_then.order_by("-position")).first()
    if assignment is None or sitting.is_over:
        return False
    assignment.sitting = sitting
    screen = instrument.next_screen(assignment)
    if screen is None or not screen.stop_field or data.get("screen", screen.name) != screen.name:
        return False
    form = screen.fields(data)
    return form is not None and form.is_valid() and bool(form.cleaned_data[screen.stop_field])


def _take(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> Screen | None:
    """Store the answer to the step that the sitting is at. Returns the next screen of the same item, if it has one.
    Needs the sitting's lock."""
    _refuse_unstorable(data)
    refuse_lists(data, step.block.fields)
    if sitting.state == Sitting.State.EXPIRED:
        _revive(sitting, now)
        if step.assignment is not None:
            step.assignment.refresh_from_db(fields=["state"])
    following = None
    if not sitting.is_over:
        following = ACCEPT.get(step.kind, _accept_reading)(sitting, step, data, now)
        if sitting.withdrawn_at is None:
            record_step(sitting, step, data, now)
    sitting.step += 1
    sitting.last_seen_at = now
    sitting.save(update_fields=STEP_FIELDS)
    return following


def _step_after(sitting: Sitting, step: Step, following: Screen | None) -> Step:
    """The step that follows an answer, from what was read for the answer as far as that goes."""
    if step.standing is None or following is None:
        return current_step(sitting)
    return step_among_items(sitting, step.standing, screen=following)


def _refuse_unstorable(data: Mapping[str, Any]) -> None:
    """PostgreSQL cannot store NUL, nor half a surrogate pair, which JSON can carry; other control characters would
    change a terminal that shows them."""
    errors = {
        str(name): [_("This text holds a character that cannot be stored. Please remove it.")]
        for name, value in data.items()
        if control_character(str(value))
    }
    if errors:
        raise FieldErrors(errors)


def _enter_next_block(sitting: Sitting, now: datetime) -> None:
    sitting.block += 1
    kind = sitting.current_block.kind
    if kind == "items" and not claim_booklet(sitting, now=now):
        _end(sitting, Sitting.State.TURNED_AWAY, now)
    elif kind == "end":
        _end(sitting, Sitting.State.COMPLETE, now)


def _end(sitting: Sitting, state: Sitting.State, now: datetime) -> None:
    sitting.state = state
    sitting.ended_at = now


def _accept_reading(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> None:
    _enter_next_block(sitting, now)


def _accept_checks(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> None:
    answers = _chosen(step.checks, data)
    passed = all(index == 0 for index in answers.values())  # In the study file the right option comes first.
    attempt = CheckAttempt(
        sitting=sitting,
        answers=answers,
        shown={check.name: check.order for check in step.checks},
        passed=passed,
        at=now,
    )
    insert_where(attempt, attempt=(NEXT_ATTEMPT, [sitting.pk]))
    if passed:
        _enter_next_block(sitting, now)
    elif attempt.attempt >= MAXIMUM_CHECK_ATTEMPTS:
        _end(sitting, Sitting.State.FAILED_CHECKS, now)


def _accept_attention(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> None:
    (check,), standing = step.checks, _standing(step)
    chosen = _chosen(step.checks, data)[check.name]
    AttentionAnswer.objects.create(
        sitting=sitting,
        name=check.name,
        position=sitting.assignments.filter(completed_at__isnull=False).count(),
        answer=chosen,
        shown=check.order,
        passed=chosen < check.right,
        at=now,
    )
    _leave_finished_items(sitting, replace(standing, checks=standing.checks | {check.name}), now)


def _standing(step: Step) -> Standing:
    if step.standing is None:
        raise RuntimeError(f"a step of the kind {step.kind} knows where the sitting stands among its items")
    return step.standing


def _chosen(checks: Sequence[CheckQuestion], data: Mapping[str, Any]) -> dict[str, int]:
    """The chosen option's index in the file, by check."""
    answers: dict[str, int] = {}
    errors: dict[str, list[str]] = {}
    for check in checks:
        # The shown position is sent: the index in the file would reveal which option is right.
        offered = {str(place): index for place, (index, _text) in enumerate(check.options, start=1)}
        chosen = offered.get(str(data.get(check.name, "")))
        if chosen is None:
            errors[check.name] = [_("Choose one of the answers.")]
        else:
            answers[check.name] = chosen
    if errors:
        raise FieldErrors(errors)
    return answers


def _accept_form(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> None:
    in_file = sitting.config.blocks[sitting.block].fields
    answers = read_form(step.block.fields, in_file, data)
    FormAnswer.objects.create(
        sitting=sitting, block=step.block.name or "form", version=step.block.version, answers=answers, at=now
    )
    if is_screened_out(in_file, answers):
        _end(sitting, Sitting.State.SCREENED_OUT, now)
    elif ended := quotas.place(sitting, answers, now):
        _end(sitting, ended, now)
    else:
        _enter_next_block(sitting, now)


def _accept_debriefing(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> None:
    if not step.block.asks_to_use or debriefing.take_choice(sitting, data, now):
        _enter_next_block(sitting, now)
    else:
        # Under this same lock everything was deleted and the sitting ended.
        sitting.refresh_from_db(fields=["state", "ended_at", "expired_at", "withdrawn_at"])


def _accept_item(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> Screen | None:
    assignment, screen, standing = step.assignment, step.screen, _standing(step)
    if assignment is None or screen is None:
        raise RuntimeError("an item step has an assignment and a screen")
    if (posted := data.get("screen")) and posted != screen.name:
        raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))
    cleaned = screen.accepted(data)
    instrument = instruments.of_study(sitting.stage.study)
    response = Response.objects.create(
        assignment=assignment,
        number=len(standing.responses) + 1,
        screen=screen.name,
        screen_sha256=digest(screen.content()),
        answered_at=now,
        server_ms=milliseconds_since(sitting.last_seen_at, now),
        client=client_facts(data),
    )
    standing.responses.append(response)
    if screen.form is not None:
        instrument.save(response=response, cleaned=cleaned)
    if points := instrument.score(response):
        Score.objects.create(response=response, value=points.value, rule=points.rule, version=points.version)
    following = instrument.next_screen(assignment)
    if following is None:
        assignment.completed_at = now
        if assignment.state == Assignment.State.LIVE:
            assignment.state = Assignment.State.COUNTED
        assignment.save(update_fields=["state", "completed_at"])
        if screen.stop_field and cleaned[screen.stop_field]:
            _stop(sitting, now)
        elif standing.is_last:
            _leave_finished_items(sitting, replace(standing, assignment=None), now)
    return following


def _stop(sitting: Sitting, now: datetime) -> None:
    """The person wants no more items: what they did not answer is dealt again to others."""
    sitting.assignments.filter(completed_at__isnull=True).update(state=Assignment.State.DECLINED)
    _leave_finished_items(sitting, standing_of(sitting), now)


def _leave_finished_items(sitting: Sitting, standing: Standing, now: datetime) -> None:
    if standing.assignment is None and due_check(sitting, standing) is None:
        _enter_next_block(sitting, now)


def _accept_practice(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> None:
    if step.screen is None:
        if not practice.go_to_next_example(sitting, now):
            _enter_next_block(sitting, now)
        return
    if (posted := data.get("screen")) and posted != step.screen.name:
        raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))
    practice.accept(sitting=sitting, screen=step.screen, data=data, now=now)


Accept = Callable[[Sitting, Step, Mapping[str, Any], datetime], Screen | None]
# By the kind of the step; steps that are only read are left out.
ACCEPT: dict[str, Accept] = {
    "practice": _accept_practice,
    "checks": _accept_checks,
    "item": _accept_item,
    "attention": _accept_attention,
    "form": _accept_form,
    "debriefing": _accept_debriefing,
}


def _revive(sitting: Sitting, now: datetime) -> None:
    """A person comes back after expiry: take back the slots that are still free; the others are answered late.

    Once the stage is closing, all answers are late, and a person without a booklet gets none: people who left must not
    delay a stage that was closed. Needs the stage's lock, since make-up booklets are dealt from the same slots.
    """
    stage = locked_stage(sitting.stage_id)
    collecting = stage.state in (Stage.State.OPEN, Stage.State.PAUSED)
    if sitting.booklet_id is None and not collecting:
        _end(sitting, Sitting.State.TURNED_AWAY, now)
        return
    without_place = quotas.take_back(sitting, stage)
    if without_place and sitting.booklet_id is None:
        _end(sitting, without_place, now)
        return
    collecting = collecting and without_place is None  # Who has begun the items goes on, and counts no more.
    sitting.state = Sitting.State.LIVE
    for assignment in sitting.assignments.filter(state=Assignment.State.RELEASED).select_related("slot"):
        free = collecting and _take_back(assignment.slot, sitting, assignment.position)
        assignment.state = Assignment.State.LIVE if free else Assignment.State.LATE
        assignment.save(update_fields=["state"])


def _take_back(slot: Slot, sitting: Sitting, position: int) -> bool:
    """Put a slot back into the sitting's own booklet unless somebody else has it already."""
    if slot.assignments.filter(state__in=Assignment.HOLDING).exists():
        return False
    if slot.booklet_id == sitting.booklet_id:
        return True
    if slot.booklet_id is not None:
        # Locked, so that nobody claims the make-up booklet while a slot is taken out of it. We do not wait for the
        # lock: its holder may be waiting for a booklet that we hold.
        unclaimed = Booklet.objects.filter(pk=slot.booklet_id, claimed_at__isnull=True)
        lying_in = unclaimed.select_for_update(skip_locked=True, no_key=True).first()
        if lying_in is None:
            return False
    slot.booklet_id, slot.position, left = sitting.booklet_id, position, slot.booklet_id
    slot.save(update_fields=["booklet", "position"])
    if left is not None and not Slot.objects.filter(booklet_id=left).exists():
        Booklet.objects.filter(pk=left).delete()
    return True
