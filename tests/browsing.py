"""One headless browser for all tests of a process. Each test gets tabs of its own, without cookies or stored data.

A tab of a browser context of its own starts a process that draws it, which takes longer than most tests have to say.
So there is one context for each set of options, which a blank tab keeps alive, and it is emptied after each test.
"""

import json
from typing import Any
from urllib.parse import urlsplit

from tests.waiting import PATIENCE

# What playwright sets on a tab as well as on a context.
MEDIA = {"color_scheme", "reduced_motion", "forced_colors"}


class Context:
    """A browser context that stays, and the blank tab that keeps its process alive."""

    def __init__(self, running: Any, options: dict[str, Any]) -> None:
        self.context = running.new_context(**options)
        self.context.set_default_timeout(PATIENCE * 1000)  # milliseconds
        self.blank = self.context.new_page()
        self.devtools = self.context.new_cdp_session(self.blank)
        self.used = False
        self.origins: set[str] = set()  # Wherever its tabs have been, also those that a page or a test has closed.
        self.context.on("page", self._follow)

    def new_page(self) -> Any:
        self.used = True
        return self.context.new_page()

    def _follow(self, page: Any) -> None:
        page.on("framenavigated", lambda frame: self.origins.add("{0.scheme}://{0.netloc}".format(urlsplit(frame.url))))

    def empty(self) -> None:
        """Leave nothing of a test to the next."""
        if not self.used:
            return
        self.used = False
        self.context.set_offline(False)
        self.context.unroute_all(behavior="ignoreErrors")
        for page in self.context.pages:
            if page != self.blank:
                page.close()
        for origin in self.origins:
            if origin.startswith("http"):
                self.devtools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self.origins.clear()
        self.devtools.send("Network.clearBrowserCache")
        self.context.clear_cookies()
        self.context.clear_permissions()


class Browser:
    """What the fixture `browser` gives."""

    def __init__(self, running: Any) -> None:
        self._running = running
        self._contexts: dict[str, Context] = {}

    def new_page(self, *, viewport: dict[str, int] | None = None, **options: Any) -> Any:
        """A tab (playwright's Page) of a browser that nobody has used. It is closed after the test.

        Args:
            options: those of playwright's `new_context`. Tabs with the same options share cookies and stored data, as
                those of one person do, and so do tabs that differ in size or colour scheme alone.
        """
        media = {name: options.pop(name) for name in MEDIA.intersection(options)}
        key = json.dumps(options, sort_keys=True)
        if key not in self._contexts:
            self._contexts[key] = Context(self._running, options)
        page = self._contexts[key].new_page()
        if viewport is not None:
            page.set_viewport_size(viewport)
        if media:
            page.emulate_media(**media)
        return page

    def empty(self) -> None:
        for context in self._contexts.values():
            context.empty()
