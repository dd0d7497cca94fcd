"""The choice after the debriefing: the answers may be used, or the person withdraws them. Pay does not depend on it,
and neither does the next page."""

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


@dataclass(frozen=True)
class Question:
    label: str
    hint: str
    options: tuple[tuple[str, str], ...]


def question(*, paid: bool) -> Question:
    """The question, in the language of the page; paid people also read that their pay stays the same."""
    hint = _("If you withdraw your answers, we delete them at once, and we cannot bring them back.")
    return Question(
        label=_("May we use your answers?"),
        hint=f"{_('Your pay is the same, whichever you choose.')} {hint}" if paid else hint,
        options=((USE, _("Use my data")), (WITHDRAW, _("Withdraw my data"))),
    )


def take_choice(sitting: Sitting, data: Mapping[str, Any], now: datetime) -> bool:
    """Store the choice; return whether the answers may be used. Needs the sitting's lock.

    If they may not, everything is deleted and the sitting is over: the caller must read its row again.

    Raises:
        FieldErrors: nothing was chosen.
    """
    chosen = str(data.get(FIELD) or "")
    if chosen not in (USE, WITHDRAW):
        raise FieldErrors({FIELD: [_("Choose one of the two answers below.")]})
    DataChoice.objects.create(sitting=sitting, may_use=chosen == USE, at=now)
    if chosen == WITHDRAW:
        withdraw(respondent=sitting.respondent, now=now, reason=DEBRIEFING, via="debriefing")
    return chosen == USE
