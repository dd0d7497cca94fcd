"""The fake panel on loopback, and the settings that point at it."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from django.core.cache import cache

from survey.contracts import panel_api
from survey.models import AuditEntry
from survey.panels.prolific.fake import FakeProlific, FakeServer

from .prolific_contract import STUDY_MOVES, SUBMISSION_MOVES, Keeper


@pytest.fixture(scope="session")
def signing_key() -> RSAPrivateKey:
    """Made once: each takes a tenth of a second or more."""
    return FakeProlific(seed=11).key


@pytest.fixture
def fake(settings: Any, monkeypatch: pytest.MonkeyPatch, signing_key: RSAPrivateKey) -> Iterator[FakeProlific]:
    """A running fake, with its token and secret in our settings. There is no wait between two tries."""
    cache.clear()
    monkeypatch.setattr(panel_api, "FIRST_WAIT", 0.0)
    # Sums are easier to read without fees. Tests of the fees bring them.
    panel = FakeProlific(seed=11, fee=Decimal(0), vat=Decimal(0))
    panel._key = signing_key
    keeper = held_to_the_contract(panel, monkeypatch)
    with FakeServer(panel):
        settings.HUNCH_PROLIFIC_URL = panel.url
        settings.HUNCH_PROLIFIC_TOKEN = panel.token
        settings.HUNCH_PROLIFIC_WEBHOOK_SECRET = panel.secret
        yield panel
    cache.clear()
    assert not keeper.faults, "what was sent or answered is not what Prolific takes or answers"


@pytest.fixture
def audit_names_who(db: None) -> Iterator[None]:
    """What somebody did on a page stands in the audit with their name."""
    yield
    nameless = AuditEntry.objects.filter(via="admin", actor="").values_list("action", flat=True)
    assert not list(nameless)


def held_to_the_contract(panel: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """Everything that goes to this fake, and everything that it says, is compared with `prolific_contract`."""
    keeper = Keeper()
    answer, move, sign_webhook, sign = panel.answer, panel._move, panel.sign_webhook, panel.sign

    def answered(method: str, target: str, *, token: str, body: bytes = b"") -> Any:
        states = {key: study["status"] for key, study in panel.studies.items()}
        reply = answer(method, target, token=token, body=body)
        if "key_set" not in vars(panel) or not target.startswith("/.well-known"):  # Else a test has broken the keys.
            keeper.look_at_call(method, target, body, reply[0], reply[2])
        for key, was in states.items():
            keeper.look_at_move("study", was, panel.studies[key]["status"], STUDY_MOVES)
        return reply

    def moved(submission: dict[str, Any], status: str) -> None:
        keeper.look_at_move("submission", submission["status"], status, SUBMISSION_MOVES)
        move(submission, status)

    def signed_event(body: bytes, *, event_id: str) -> Any:
        if event_id.startswith(f"event-{panel.seed}-"):  # Tests make others.
            keeper.look_at_event(body)
        return sign_webhook(body, event_id=event_id)

    def signed(values: Any, *, audience: str, **claims: Any) -> str:
        token = sign(values, audience=audience, **claims)
        if not claims and str(audience).startswith("http"):  # Tests make wrong ones.
            keeper.look_at_token(token)
        return token

    for name, seen in (("answer", answered), ("_move", moved), ("sign_webhook", signed_event), ("sign", signed)):
        monkeypatch.setattr(panel, name, seen)
    panel.keeper = keeper  # type: ignore[attr-defined] - for tests of answers that Prolific never gives
    return keeper
