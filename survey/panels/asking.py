"""Asking a panel: open its client and translate its words. Imports only the contract and the models."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from survey.contracts import panels
from survey.contracts.panels import PanelClient, PanelUnknown, PostingState, SubmissionStatus
from survey.exceptions import HunchError, StateRefused
from survey.models import Posting, Submission


@contextmanager
def client_of(panel: str, client: PanelClient | None = None) -> Iterator[PanelClient]:
    """The client of the panel with that name, or the caller's own client if one is open.

    Raises:
        PanelUnknown: there is no such panel.
        StateRefused: it has no API.
        HunchError: a setting is missing.
    """
    if client is not None:
        yield client
        return
    kind = panels.get(panel).client
    if kind is None:
        raise StateRefused(f'panel.kind: "{panel}" has no API that could be asked')
    with kind.open() as own:
        yield own


def can_ask(panel: str) -> bool:
    """Whether the panel has an API, and every setting for it is there."""
    try:
        kind = panels.get(panel).client
    except PanelUnknown:
        return False
    return kind is not None and not kind.missing_setting()


def longest_call(panel: str) -> timedelta:
    """After this long, a call that was begun is over, even if the process that made it has died."""
    return (panels.find(panel).client or PanelClient).longest_call


def at_time(moment: datetime) -> str:
    """For a sentence about something that has just happened."""
    return f"{moment.astimezone(UTC):%H:%M} UTC"


def words_of(error: Exception) -> str:
    """What is stored of an error. Only our own errors are known to hold no id of a person."""
    if isinstance(error, HunchError):
        return error.message
    return f"{type(error).__name__}, which is no error of the panel: the worker's log says where it was raised"


def state_meant(panel: str, text: str) -> PostingState:
    """What a panel's own word for a posting's state means. A posting without a state is a draft."""
    return panels.find(panel).posting_state(text) if text else PostingState.DRAFT


def state_of(posting: Posting) -> PostingState:
    return state_meant(posting.panel, posting.state)


def status_of(submission: Submission, posting: Posting) -> SubmissionStatus:
    return panels.find(posting.panel).submission_status(submission.status)
