"""Addresses of the documents, for links from other pages. Imports Django alone.

A place in the documents is written as in their own links: `panels.md`, or `panels.md#adding-a-panel`. A test looks
whether each that the code names is there.
"""

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString


def help_address(place: str) -> str:
    """The address of a place in the documents: `panels.md#adding-a-panel` is /docs/panels.html#adding-a-panel."""
    page, sharp, anchor = place.partition("#")
    return reverse("document", args=[page.removesuffix(".md")]) + sharp + anchor


def help_link(place: str, text: str) -> SafeString:
    """A link to a place in the documents, for messages and texts that are made in Python."""
    return format_html('<a href="{}">{}</a>', help_address(place), text)
