"""Words whose meaning a page shows on request: `{% term "Counted" %}`, and `{% term_notes %}` once at the page's end.

A word with a meaning is a button. Its meaning is a popover, which browsers show without a script: a click, a tap or
Enter opens it, Escape or a click elsewhere closes it. The pointer sees it as a title, too.
"""

import re

from django import template
from django.template import Context
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from survey.figures import glossary
from survey.figures.words import spaced

register = template.Library()
LINK = re.compile(r" ?\(?\[[^\]]*\]\([^)]*\)\)?")  # To another document: pages of the console cannot follow it.


register.filter("spaced", spaced)


@register.simple_tag(takes_context=True)
def term(context: Context, text: str, meaning: str = "") -> SafeString:
    """The word, with its meaning: the one that is passed, or that of our words. Without one, only the word."""
    word = glossary.word_of(text)
    meaning = meaning or (LINK.sub("", word.meaning) if word else "")
    request = getattr(context, "request", None)
    if not meaning or request is None:
        return conditional_escape(text)
    terms = request.__dict__.setdefault("hunch_terms", {})
    place = terms.setdefault((text, meaning), f"term-{len(terms) + 1}")
    return format_html(
        '<button type="button" class="hunch-term" popovertarget="{}" title="{}">{}</button>', place, meaning, text
    )


@register.simple_tag(takes_context=True)
def term_notes(context: Context) -> SafeString:
    """The meanings of the words on this page."""
    terms = getattr(getattr(context, "request", None), "hunch_terms", {})
    return format_html_join(
        "",
        '<div popover id="{}" class="hunch-note"><strong>{}</strong>: {}</div>',
        ((place, text, meaning) for (text, meaning), place in terms.items()),
    )
