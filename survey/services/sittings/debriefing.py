"""The choice after the debriefing: the answers may be used, or the person withdraws them. Pay does not depend on it,
and neither does the next page.

Withdrawing cannot be taken back. So it is asked again, and not done for somebody who has only named the ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from survey.exceptions import FieldErrors
from survey.models import DataChoice, Sitting

from .withdrawal import DEBRIEFING, withdraw

FIELD = "my_data"  # The choice's name in forms and the API.
USE, WITHDRAW = "use", "withdraw"
CONFIRMED = "my_data_confirmed"  # The name of the second question, which comes after WITHDRAW.
YES = "yes"


@dataclass(frozen=True)
class ChoiceQuestion:
    label: str
    hint: str
    options: tuple[tuple[str, str], ...]


def question(*, paid: bool) -> ChoiceQuestion:
    """The question, in the language of the page; paid people also read that their pay stays the same."""
    hint = _("If you withdraw your answers, we delete them at once, and we cannot bring them back.")
    return ChoiceQuestion(
        label=_("May we use your answers?"),
        hint=f"{_('Your pay is the same, whichever you choose.')} {hint}" if paid else hint,
        options=((USE, _("Use my data")), (WITHDRAW, _("Withdraw my data"))),
    )


def second_question(*, paid: bool) -> ChoiceQuestion:
    """What is asked after somebody chose to withdraw, with what goes and what stays. There is one answer; who thinks
    again leaves it out."""
    # `withdrawal.STAYS` is what stays in the database; a test compares the two.
    stays = _(
        "What stays: when and in which language you agreed to take part, when you ended and withdrew, which questions "
        "and versions lay before you, how much was deleted, and a code by which we notice if you come again."
    )
    if paid:
        stays += " " + _(
            "We also keep what you are owed, and until you are paid the number under which you came. Your pay is the "
            "same."
        )
    lines = [
        _("This deletes everything that you gave us in this study:"),
        "- " + _("your answers to all questions and forms"),
        "- " + _("what you wrote in your own words, and your remarks"),
        "- " + _("the times of the pages, and how you entered your answers"),
    ]
    return ChoiceQuestion(
        label=_("Do you want us to delete all your answers?"),
        hint="\n\n".join(["\n".join(lines), _("It is done at once, and we cannot bring anything back."), stays]),
        options=((YES, _("Yes, delete my answers")),),
    )


def take_choice(sitting: Sitting, data: Mapping[str, Any], now: datetime) -> bool:
    """Store the choice; return whether the answers may be used. Needs the sitting's lock.

    If they may not, everything is deleted and the sitting is over: the caller must read its row again.

    Raises:
        FieldErrors: nothing was chosen, the withdrawal was not confirmed, or it may not be done for the person here.
    """
    chosen = str(data.get(FIELD) or "")
    if chosen not in (USE, WITHDRAW):
        raise FieldErrors({FIELD: [_("Choose one of the two answers below.")]})
    if chosen == WITHDRAW and sitting.is_by_ids_alone:
        raise FieldErrors(
            {
                FIELD: [
                    _(
                        "You have come back in another browser, and we cannot be sure that it is you. To have your "
                        "answers deleted, choose this in the browser in which you began. Or go on here with the other "
                        "button, and write to those who run the study."
                    )
                ]
            }
        )
    if chosen == WITHDRAW and data.get(CONFIRMED) != YES:
        raise FieldErrors({CONFIRMED: [_("Please confirm that all your answers are to be deleted.")]})
    if chosen == WITHDRAW:
        withdraw(respondent=sitting.respondent, now=now, reason=DEBRIEFING, via="debriefing")
    else:
        DataChoice.objects.create(sitting=sitting, may_use=True, at=now)
    return chosen == USE
