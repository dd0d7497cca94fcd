"""One browser for all tests of a module: each has a context of its own, and a launch costs more than a page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHROMIUM_FLAGS


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Any]:
    """A headless browser. Its loop runs in this thread as long as the module does, and Django is told so."""
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        running = playwright.chromium.launch(executable_path=str(chromium), args=CHROMIUM_FLAGS)
        yield running
        running.close()
