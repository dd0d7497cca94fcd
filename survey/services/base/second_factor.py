"""The second step of a log-in: setting it up, proving it, removing it. django-otp refuses a code that was used, and
makes who guesses wait twice as long each time.
"""

import secrets
from base64 import b32encode
from typing import Any

from django.db import transaction

from survey.models import CodeApp, RecoveryCodes
from survey.services.base import auditing
from survey.services.base.hashing import keyed_digest

SESSION_KEY = "second_factor"
RECOVERY_CODES = 10
DIGITS = 6


def mark(session: Any) -> None:
    """Its user has proved the second factor. It gets another key: the one from before may be known to others."""
    if not is_marked(session):
        session.cycle_key()
        session[SESSION_KEY] = True


def unmark(session: Any) -> None:
    session.pop(SESSION_KEY, None)


def is_marked(session: Any) -> bool:
    return SESSION_KEY in session


def app_of(user: Any) -> CodeApp | None:
    """The confirmed one."""
    return CodeApp.objects.filter(user=user, confirmed=True).first()


def codes_left(user: Any) -> int:
    return sum(codes.token_set.count() for codes in RecoveryCodes.objects.filter(user=user))


@transaction.atomic
def prove(user: Any, code: str) -> str:
    """Use up a code of the user's app or a recovery code: returns which it was, or an empty text if it is wrong."""
    text = "".join(code.split()).replace("-", "").lower()
    if text.isdecimal() and len(text) == DIGITS:
        app = CodeApp.objects.select_for_update().filter(user=user, confirmed=True).first()
        return "code" if app is not None and app.verify_token(text) else ""
    codes = RecoveryCodes.objects.select_for_update().filter(user=user, confirmed=True).first()
    return "recovery code" if codes is not None and codes.verify_token(_hashed(user, text)) else ""


def begun_app(user: Any) -> CodeApp:
    """The app that is being set up. It counts for nothing until a code of it has been entered."""
    begun = CodeApp.objects.filter(user=user, confirmed=False).order_by("pk").first()
    return begun or CodeApp.objects.create(user=user, confirmed=False, name="app")


def shown_secret(app: CodeApp) -> str:
    """For apps that take no picture, in groups of four."""
    text = b32encode(app.bin_key).decode()
    return " ".join(text[place : place + 4] for place in range(0, len(text), 4))


@transaction.atomic
def confirm(user: Any, code: str) -> list[str]:
    """Finish the set-up by a code of the app. Returns the recovery codes, or nothing if the code is wrong."""
    app = CodeApp.objects.select_for_update().filter(user=user, confirmed=False).order_by("pk").first()
    if app is None or app_of(user) is not None or not app.verify_token("".join(code.split())):
        return []
    CodeApp.objects.filter(pk=app.pk).update(confirmed=True)
    auditing.record("set_up_second_factor", user, by=user, via="admin")
    return _new_codes(user)


@transaction.atomic
def replace_codes(user: Any) -> list[str]:
    """New recovery codes; the old ones no longer work."""
    auditing.record("replace_recovery_codes", user, by=user, via="admin")
    return _new_codes(user)


@transaction.atomic
def remove(user: Any, *, by: Any = None, via: str = "command") -> bool:
    """Whether there was one."""
    was_there = CodeApp.objects.filter(user=user, confirmed=True).exists()
    CodeApp.objects.filter(user=user).delete()
    RecoveryCodes.objects.filter(user=user).delete()
    if was_there:
        auditing.record("remove_second_factor", user, by=by, via=via)
    return was_there


def _new_codes(user: Any) -> list[str]:
    RecoveryCodes.objects.filter(user=user).delete()
    recovery_codes = RecoveryCodes.objects.create(user=user, name="recovery codes")
    codes = [b32encode(secrets.token_bytes(10)).decode().lower() for _number in range(RECOVERY_CODES)]
    for code in codes:
        recovery_codes.token_set.create(token=_hashed(user, code))
    return ["-".join(code[place : place + 4] for place in range(0, 16, 4)) for code in codes]


def _hashed(user: Any, code: str) -> str:
    return keyed_digest(code, purpose=f"recovery:{user.pk}")[:16]
