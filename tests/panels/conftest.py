"""The fake panel on loopback, and the settings that point at it."""

from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from django.core.cache import cache

from survey.panels.prolific import client
from survey.panels.prolific.fake import FakeProlific, FakeServer


@pytest.fixture(scope="session")
def signing_key() -> RSAPrivateKey:
    """Made once: each takes a tenth of a second or more."""
    return FakeProlific(seed=11).key


@pytest.fixture
def fake(settings: Any, monkeypatch: pytest.MonkeyPatch, signing_key: RSAPrivateKey) -> Iterator[FakeProlific]:
    """A running fake, with its token and secret in our settings. There is no wait between two tries."""
    cache.clear()
    monkeypatch.setattr(client, "FIRST_WAIT", 0.0)
    panel = FakeProlific(seed=11)
    panel._key = signing_key
    with FakeServer(panel):
        settings.HUNCH_PROLIFIC_URL = panel.url
        settings.HUNCH_PROLIFIC_TOKEN = panel.token
        settings.HUNCH_PROLIFIC_WEBHOOK_SECRET = panel.secret
        yield panel
    cache.clear()
