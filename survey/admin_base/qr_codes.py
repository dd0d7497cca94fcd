"""QR codes inside a page. Imports segno alone."""

import segno
from django.utils.safestring import SafeString, mark_safe


def qr_code(text: str, *, title: str) -> SafeString:
    """As inline SVG, without styles, so that the content policy lets it be drawn."""
    return mark_safe(segno.make(text, error="m").svg_inline(scale=5, light="#fff", title=title))  # noqa: S308
