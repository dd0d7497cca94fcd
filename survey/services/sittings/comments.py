"""Respondents' reports that something is wrong with an item. They do not move the sitting on. Imports models and below.

Only researchers read them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.exceptions import FieldErrors, OutOfOrder
from survey.letters import control_character
from survey.models import Assignment, QuestionReport, Sitting
from survey.models.checks import LONGEST_REPORT

from .flow import Step, current_step
from .queries import locked_sitting

FIELD = "report"  # The name of the text field in forms and the API.
MAX_REPORTS = 30  # for one sitting


@transaction.atomic
def report_question(*, sitting: Sitting, position: Any, screen: str, text: str) -> QuestionReport | None:
    """Store a remark on the item at that position of the sitting, sent from that screen. The sitting stays at its step.

    The same words again count as the same remark: a double click stores one. None if the sitting has sent too many;
    the person is thanked anyway.

    Raises:
        FieldErrors: the text is empty, too long, or cannot be stored.
        OutOfOrder: the sitting is over, or was never shown that screen.
    """
    now = timezone.now()
    words = _words(text)
    # Lock the sitting's row, as for an answer: of two remarks at once, the second one sees the first.
    locked = locked_sitting(sitting.pk)
    assignment = None if locked.is_over else _shown_item(locked, str(position), screen)
    if assignment is None:
        raise OutOfOrder(_("This question is not among those that you were shown. Please go on from where you are."))
    return _store(locked, assignment, screen, words, now)


def note_with_answer(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> bool:
    """Store a remark that was written but sent with Continue instead of with its own button; whether there was one.
    Needs the sitting's lock.

    Args:
        step: the one that the sitting is at, which the page was shown for.

    Raises:
        FieldErrors: the text is too long, or cannot be stored.
    """
    text = data.get(FIELD, "")
    if not text.strip() or step.assignment is None or step.screen is None:
        return False
    _store(sitting, step.assignment, step.screen.name, _words(text), now)
    return True


def _words(text: str) -> str:
    words = text.replace("\r\n", "\n").strip()
    if not words:
        raise FieldErrors({FIELD: [_("Please say in a few words what is wrong.")]})
    if len(words) > LONGEST_REPORT:
        raise FieldErrors({FIELD: [_("Please write at most %(limit)d characters.") % {"limit": LONGEST_REPORT}]})
    if control_character(words):
        raise FieldErrors({FIELD: [_("This text holds a character that cannot be stored. Please remove it.")]})
    return words


def _shown_item(sitting: Sitting, position: str, screen: str) -> Assignment | None:
    """The item at that position, if the sitting was shown that screen of it."""
    if not (position.isascii() and position.isdigit() and len(position) < 5):
        return None
    assignment = sitting.assignments.filter(position=int(position)).first()
    if assignment is None:
        return None
    step = current_step(sitting)
    if step.assignment == assignment and step.screen is not None and step.screen.name == screen:
        return assignment
    return assignment if assignment.responses.filter(screen=screen).exists() else None


def _store(sitting: Sitting, assignment: Assignment, screen: str, words: str, now: datetime) -> QuestionReport | None:
    earlier = list(sitting.question_reports.all())
    for report in earlier:
        if (report.assignment_id, report.screen, report.text) == (assignment.pk, screen, words):
            return report
    if len(earlier) >= MAX_REPORTS:
        return None
    return QuestionReport.objects.create(sitting=sitting, assignment=assignment, screen=screen, text=words, at=now)
