"""This process in place of a server: simulated people walk through the same pages where no server can be reached,
as in a worker on another machine.

No request leaves the process. Each is served in the thread that sends it, with that thread's connection to the
database, which is closed with the browser.
"""

from dataclasses import dataclass, field

import httpx
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection


@dataclass(frozen=True)
class OwnSite:
    """The pages and the API of this process."""

    app: WSGIHandler = field(default_factory=WSGIHandler)  # One for all: a new one lists all static files.

    @property
    def base_url(self) -> str:
        """An address whose host the site answers to."""
        host = settings.ALLOWED_HOSTS[0].lstrip(".") if settings.ALLOWED_HOSTS else "localhost"
        return f"https://{'localhost' if host == '*' else host}"

    def transport(self) -> httpx.BaseTransport:
        """For one browser."""
        return _Served(app=self.app, raise_app_exceptions=False)


class _Served(httpx.WSGITransport):
    def close(self) -> None:
        connection.close()
        super().close()
