"""Texts as HTML, everything in them escaped. `question` is the only way a question's text gets into a page."""

import html
import re
from collections.abc import Iterator

from django import template
from django.utils.safestring import SafeString, mark_safe

from survey.models.question import render_text

register = template.Library()
MAIL = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


@register.filter
def question(text: str) -> SafeString:
    """A question of a bank: `<b>`, `</b>` and `<br>` are markup, all else is text."""
    return render_text(text)


@register.filter
def is_sentence(contact: str) -> bool:
    """Whether a study's contact says itself what to do, such as "Please write to us on the platform."."""
    return contact.rstrip().endswith((".", "!", "?")) and " " in contact.strip()


@register.filter
def contact(text: str) -> SafeString:
    """A study's contact; mail addresses in it are links."""
    return mark_safe(MAIL.sub(r'<a href="mailto:\g<0>">\g<0></a>', html.escape(text)))  # noqa: S308 - it is escaped


@register.filter
def prose(text: str) -> SafeString:
    """A study's text: an empty line separates paragraphs, lines that begin with "- " make a list."""
    return mark_safe("\n".join(_blocks(text)))  # noqa: S308 - every line is escaped in _block


def _blocks(text: str) -> Iterator[str]:
    lines: list[str] = []
    in_list = False
    for line in [*text.splitlines(), ""]:
        starts_entry = line.startswith("- ")
        # An indented line continues the list entry above it; any other line ends the list.
        ends = not line.strip() or (starts_entry and not in_list) or (in_list and line[0] not in "- \t")
        if ends and lines:
            yield _block(lines, in_list)
            lines = []
        if line.strip():
            if not lines:
                in_list = starts_entry
            lines.append(line)
        else:
            in_list = False


def _block(lines: list[str], is_list: bool) -> str:
    if not is_list:
        return f"<p>{html.escape(' '.join(line.strip() for line in lines))}</p>"
    entries: list[str] = []
    for line in lines:
        if line.startswith("- "):
            entries.append(line[2:].strip())
        else:
            entries[-1] += " " + line.strip()
    return "<ul>" + "".join(f"<li>{html.escape(entry)}</li>" for entry in entries) + "</ul>"
