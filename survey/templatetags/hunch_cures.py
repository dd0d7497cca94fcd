"""Messages on pages, with links in place of the commands that they name: `{% cured problem %}`."""

from typing import Any

from django import template
from django.template import Context
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from survey.admin_base.cures import with_cures

register = template.Library()


@register.simple_tag(takes_context=True)
def cured(context: Context, message: Any) -> SafeString:
    """The message, escaped, each of its lines on one."""
    text = conditional_escape("" if message is None else message)
    request = getattr(context, "request", None)
    if "`hunch " in text and request is not None:
        text = with_cures(str(message), request.user, context.get("study") or None)
    return mark_safe(text.replace("\n", "<br>")) if "\n" in text else text  # noqa: S308
