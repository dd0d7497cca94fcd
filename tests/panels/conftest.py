"""The fake panel on loopback, and the settings that point at it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache

from survey.panels.prolific import client
from survey.panels.prolific.fake import FakeProlific, FakeServer


@pytest.fixture
def fake(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProlific]:
    """A running fake, with its token and secret in our settings. There is no wait between two tries."""
    cache.clear()
    monkeypatch.setattr(client, "FIRST_WAIT", 0.0)
    panel = FakeProlific(seed=11)
    with FakeServer(panel):
        settings.HUNCH_PROLIFIC_URL = panel.url
        settings.HUNCH_PROLIFIC_TOKEN = panel.token
        settings.HUNCH_PROLIFIC_WEBHOOK_SECRET = panel.secret
        yield panel
    cache.clear()
