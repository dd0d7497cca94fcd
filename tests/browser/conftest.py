"""One browser for all tests of a module, since launching one is slow. Each test has a separate context."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHROMIUM_FLAGS


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Any]:
    """A headless browser. Its event loop runs in this thread while the module runs, and Django must allow that."""
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        running = playwright.chromium.launch(executable_path=str(chromium), args=CHROMIUM_FLAGS)
        yield running
        running.close()
