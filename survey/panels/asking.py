"""Asking a panel: open its client and translate its words. Imports only the contract and the models."""

from collections.abc import Iterator
from contextlib import contextmanager

from survey.contracts import panels
from survey.contracts.panels import PanelClient, PanelUnknown, PostingState, SubmissionStatus
from survey.exceptions import StateRefused
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


def state_meant(panel: str, text: str) -> PostingState:
    """What a panel's own word for a posting's state means. A posting without a state is a draft."""
    return panels.find(panel).posting_state(text) if text else PostingState.DRAFT


def state_of(posting: Posting) -> PostingState:
    return state_meant(posting.panel, posting.state)


def status_of(submission: Submission, posting: Posting) -> SubmissionStatus:
    return panels.find(posting.panel).submission_status(submission.status)
