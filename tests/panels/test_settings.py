"""The panel's variables: an impossible value stops the start, and the message names it."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from survey.settings import read_service_url, read_token


@pytest.mark.parametrize("value", ["https://api.prolific.com", "https://api.prolific.com/", "http://127.0.0.1:8100"])
def test_an_address_is_taken_without_its_last_slash(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HUNCH_PROLIFIC_URL", value)
    assert read_service_url("HUNCH_PROLIFIC_URL", "") == value.rstrip("/")


@pytest.mark.parametrize(
    "value", ["api.prolific.com", "http://api.prolific.com", "https://x.example/api", "https://", "ftp://127.0.0.1"]
)
def test_a_token_is_not_sent_without_tls_or_elsewhere(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HUNCH_PROLIFIC_URL", value)
    with pytest.raises(ImproperlyConfigured, match="HUNCH_PROLIFIC_URL"):
        read_service_url("HUNCH_PROLIFIC_URL", "")


@pytest.mark.parametrize("value", ["two words", "ünicode", "line\nbreak"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HUNCH_PROLIFIC_TOKEN", value)
    with pytest.raises(ImproperlyConfigured, match="HUNCH_PROLIFIC_TOKEN") as caught:
        read_token("HUNCH_PROLIFIC_TOKEN")
    assert value not in str(caught.value)
