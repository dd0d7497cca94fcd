"""What a page or the API writes into the audit names who asked for it, and by what way, in every test that asks.

So each test in which something is written down also fails where `by=` or `via=` is left out, in the view or below it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db.models.signals import post_save
from django.test.client import ClientHandler

from survey.models import AuditEntry
from survey.services.base.auditing import actor_of

BY_PEOPLE = {"admin", "api"}
# Whom an entry names where nobody is logged in: after a wrong password nobody, since that proves nothing.
ACTORS: dict[str, Callable[[AuditEntry, Any], str]] = {
    **dict.fromkeys(("fail_to_log_in", "lock_out", "fail_second_factor"), lambda _entry, _user: ""),
    "make_first_account": lambda entry, _user: entry.subject,
}


class Answered(threading.local):
    """The requests that this thread answers, the innermost last."""

    def __init__(self) -> None:
        self.requests: list[Any] = []


@contextmanager
def checked_entries() -> Iterator[None]:
    """Entries that a request of the test client writes are refused where they leave out the user or the way."""
    answered = Answered()
    answer = ClientHandler.get_response

    def answer_noted(handler: ClientHandler, request: Any) -> Any:
        answered.requests.append(request)
        try:
            return answer(handler, request)
        finally:
            answered.requests.pop()

    def check(instance: AuditEntry, **_signal: Any) -> None:
        if answered.requests:
            check_entry(instance, answered.requests[-1])

    post_save.connect(check, sender=AuditEntry, weak=False)
    try:
        with mock.patch.object(ClientHandler, "get_response", answer_noted):
            yield
    finally:
        post_save.disconnect(check, sender=AuditEntry)


def check_entry(entry: AuditEntry, request: Any) -> None:
    """Fail where the entry says another way than the request's, or another user."""
    assert entry.via != "command", f"{request.path}: {entry.action} does not say via what"
    if entry.via in BY_PEOPLE:
        way = "admin" if request.path.startswith("/admin/") else "api"
        assert entry.via == way, f"{request.path}: {entry.action} came by {way}, and says {entry.via}"
        actor = ACTORS.get(entry.action, lambda _entry, user: actor_of(user))(entry, request.user)
        assert entry.actor == actor, f"{request.path}: {entry.action} names {entry.actor or 'nobody'}, not {actor}"
