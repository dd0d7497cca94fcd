"""One POST of a respondent. It runs under a lock on the sitting's row, and decides whether the answer counts.

Nothing here sends a Celery task, so answers are stored even while Redis is down.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.contracts import instruments
from survey.exceptions import FieldErrors, OutOfOrder, SittingUnknown
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
    Study,
)
from survey.services.base.hashing import digest
from survey.services.base.locks import locked_stage

from . import debriefing, practice
from .attention import due_check
from .enrolment import claim_booklet
from .flow import MAXIMUM_CHECK_ATTEMPTS, CheckQuestion, Step, current_step, open_assignment
from .forms import is_screened_out, read_form, refuse_lists
from .timing import client_facts, milliseconds_since, record_step


def sitting_for(token: str | None, *, study: Study | None = None) -> Sitting:
    """The sitting that a token names.

    Raises:
        SittingUnknown: no token, a forged one, or one from another study.
    """
    public_id = Sitting.public_id_of(token) if token else None
    sitting = public_id and (
        Sitting.objects.select_related("stage__study__bank", "respondent", "booklet")
        .filter(public_id=public_id)
        .first()
    )
    if not sitting or (study is not None and sitting.stage.study_id != study.pk):
        raise SittingUnknown(
            _("We could not find your place in this study. Please open the link that you were given once more.")
        )
    return sitting


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
    # Lock only the row itself: PostgreSQL refuses to lock the nullable side of a join.
    locked = (
        Sitting.objects.select_for_update(of=("self",), no_key=True)
        .select_related("stage__study__bank", "respondent")
        .get(pk=sitting.pk)
    )
    if locked.is_over or step < locked.step:
        return current_step(locked)
    if step > locked.step:
        raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))
    shown = current_step(locked)
    _refuse_unstorable(data)
    refuse_lists(data, shown.block.fields)
    if locked.state == Sitting.State.EXPIRED:
        _revive(locked, now)
    if not locked.is_over:
        accept = ACCEPT.get(shown.kind, _accept_reading)
        accept(locked, shown, data, now)
        if locked.withdrawn_at is None:
            record_step(locked, shown, data, now)
    locked.step += 1
    locked.last_seen_at = now
    locked.save(update_fields=["step", "last_seen_at", "block", "state", "ended_at", "booklet"])
    return current_step(locked)


def _refuse_unstorable(data: Mapping[str, Any]) -> None:
    """PostgreSQL cannot store NUL, nor half a surrogate pair, which JSON can carry."""
    errors = {}
    for name, value in data.items():
        try:
            text = str(value)
            text.encode()
        except UnicodeEncodeError:
            errors[str(name)] = [_("This text holds a character that cannot be stored. Please remove it.")]
        else:
            if "\x00" in text:
                errors[str(name)] = [_("This text holds a character that cannot be stored. Please remove it.")]
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


def _accept_reading(sitting: Sitting, shown: Step, data: Mapping[str, Any], now: datetime) -> None:
    _enter_next_block(sitting, now)


def _accept_checks(sitting: Sitting, shown: Step, data: Mapping[str, Any], now: datetime) -> None:
    answers = _chosen(shown.checks, data)
    passed = all(index == 0 for index in answers.values())  # In the study file the right option comes first.
    CheckAttempt.objects.create(
        sitting=sitting,
        attempt=shown.attempt,
        answers=answers,
        shown={check.name: check.order for check in shown.checks},
        passed=passed,
        at=now,
    )
    if passed:
        _enter_next_block(sitting, now)
    elif shown.attempt >= MAXIMUM_CHECK_ATTEMPTS:
        _end(sitting, Sitting.State.FAILED_CHECKS, now)


def _accept_attention(sitting: Sitting, shown: Step, data: Mapping[str, Any], now: datetime) -> None:
    (check,) = shown.checks
    chosen = _chosen(shown.checks, data)[check.name]
    AttentionAnswer.objects.create(
        sitting=sitting,
        name=check.name,
        position=sitting.assignments.filter(completed_at__isnull=False).count(),
        answer=chosen,
        shown=check.order,
        passed=chosen < check.right,
        at=now,
    )
    _leave_finished_items(sitting, now)


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


def _accept_form(sitting: Sitting, shown: Step, data: Mapping[str, Any], now: datetime) -> None:
    in_file = sitting.config.blocks[sitting.block].fields
    answers = read_form(shown.block.fields, in_file, data)
    FormAnswer.objects.create(
        sitting=sitting, block=shown.block.name or "form", version=shown.block.version, answers=answers, at=now
    )
    if is_screened_out(in_file, answers):
        _end(sitting, Sitting.State.SCREENED_OUT, now)
    else:
        _enter_next_block(sitting, now)


def _accept_debriefing(sitting: Sitting, shown: Step, data: Mapping[str, Any], now: datetime) -> None:
    if not shown.block.asks_to_use or debriefing.take_choice(sitting, data, now):
        _enter_next_block(sitting, now)
    else:
        # Under this same lock everything was deleted and the sitting ended.
        sitting.refresh_from_db(fields=["state", "ended_at", "expired_at", "withdrawn_at"])


def _accept_item(sitting: Sitting, shown: Step, data: Mapping[str, Any], now: datetime) -> None:
    assignment, screen = shown.assignment, shown.screen
    if assignment is None or screen is None:
        raise RuntimeError("an item step has an assignment and a screen")
    if (posted := data.get("screen")) and posted != screen.name:
        raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))
    cleaned = screen.accepted(data)
    # Read again: the person's return may have changed its state.
    assignment = Assignment.objects.select_related("slot__item", "slot__stage", "sitting").get(pk=assignment.pk)
    instrument = instruments.of_study(sitting.stage.study)
    response = Response.objects.create(
        assignment=assignment,
        number=assignment.responses.count() + 1,
        screen=screen.name,
        screen_sha256=digest(screen.content()),
        answered_at=now,
        server_ms=milliseconds_since(sitting.last_seen_at, now),
        client=client_facts(data),
    )
    if screen.form is not None:
        instrument.save(response=response, cleaned=cleaned)
    if points := instrument.score(response):
        Score.objects.create(response=response, value=points.value, rule=points.rule, version=points.version)
    if instrument.next_screen(assignment) is None:
        assignment.completed_at = now
        if assignment.state == Assignment.State.LIVE:
            assignment.state = Assignment.State.COUNTED
        assignment.save(update_fields=["state", "completed_at"])
        _leave_finished_items(sitting, now)


def _leave_finished_items(sitting: Sitting, now: datetime) -> None:
    if open_assignment(sitting) is None and due_check(sitting, None) is None:
        _enter_next_block(sitting, now)


def _accept_practice(sitting: Sitting, shown: Step, data: Mapping[str, Any], now: datetime) -> None:
    if shown.screen is None:
        if not practice.go_to_next_example(sitting, now):
            _enter_next_block(sitting, now)
        return
    if (posted := data.get("screen")) and posted != shown.screen.name:
        raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))
    practice.accept(sitting=sitting, screen=shown.screen, data=data, now=now)


Accept = Callable[[Sitting, Step, Mapping[str, Any], datetime], None]
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
