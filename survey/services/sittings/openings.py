"""A browser says that it has begun a screen: so the server knows of a second window, and has a clock of its own."""

import re

from django.db import transaction
from django.utils import timezone

from survey.contracts import instruments

from .flow import current_step
from .queries import locked_sitting

NONCE = re.compile(r"[0-9a-f]{16,64}", re.ASCII)


@transaction.atomic
def record_opening(*, sitting_key: int, step: str, nonce: str) -> bool:
    """Tell the instrument that the screen of this step was begun; False if the sitting is at another step, or the text
    is no nonce. A step that is no item is begun without anything being stored."""
    if not NONCE.fullmatch(nonce):
        return False
    now = timezone.now()
    sitting = locked_sitting(sitting_key)
    if sitting.is_over or step != str(sitting.step):
        return False
    current = current_step(sitting)
    if current.assignment is not None and current.screen is not None:
        instrument = instruments.of_study(sitting.stage.study)
        instrument.opened(assignment=current.assignment, screen=current.screen.name, nonce=nonce, now=now)
    return True
