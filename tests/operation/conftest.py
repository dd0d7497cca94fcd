"""Anyone who is told, and a site whose parts a test breaks."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from survey.operation import site_health
from tests.panels.conftest import fake, signing_key

__all__ = ["fake", "signing_key"]
HOOK = "https://chat.example/hook-token"
PING = "https://ping.example/ping-token"


@dataclass
class Outside:
    """What went out over HTTPS, and how it is answered."""

    status: int = 200
    requests: list[httpx.Request] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.status == 0:
            raise httpx.ConnectError("no route to chat.example/hook-token")
        return httpx.Response(self.status, headers={"Location": "https://elsewhere.example/"})

    @property
    def posted(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests if request.method == "POST"]

    @property
    def pinged(self) -> list[str]:
        return [str(request.url) for request in self.requests if request.method == "GET"]


@pytest.fixture
def outside(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Outside:
    """E-mail, webhook and ping are set up."""
    settings.HUNCH_ALERT_EMAILS = ["operator@example.org"]
    settings.HUNCH_ALERT_WEBHOOK = HOOK
    settings.HUNCH_ALERT_WEBHOOK_SECRET = "s" * 32
    settings.HUNCH_PING_URL = PING
    there = Outside()
    client = httpx.Client(transport=httpx.MockTransport(there.answer))
    monkeypatch.setattr(httpx, "post", client.post)
    monkeypatch.setattr(httpx, "get", client.get)
    return there


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Parts of the site that do not work, with what is said of them. A test fills it."""
    parts: dict[str, str] = {}
    monkeypatch.setattr(site_health, "problems", lambda: dict(parts))
    monkeypatch.setattr(site_health, "queues_with_a_worker", lambda: set(site_health.QUEUES))
    return parts
