"""Pictures of pages for the documents."""

from typing import Any

from .blocks import DOCS

WINDOW = {"width": 1140, "height": 720}  # A picture of it is small to load, and its letters can be read.


def take_picture(page: Any, name: str, *, renew: bool) -> None:
    """What the page shows now, as docs/pictures/NAME, if pictures are renewed."""
    if renew:
        page.evaluate("document.fonts.ready")
        page.screenshot(path=str(DOCS / "pictures" / name), animations="disabled")
