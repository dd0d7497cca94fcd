"""A language model's Markdown as harmless HTML: markdown-it-py reads it, without HTML in it, and nh3 lets only certain
tags pass. No link, no picture and nothing from elsewhere: the words of a link stay, and of a picture what it shows.
"""

from functools import lru_cache

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

TAGS = {"p", "br", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "h3"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}
HEADING = "h3"  # Under the page's own headings, whichever the model wrote.
KEPT = 128  # replies that a process keeps

_markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_markdown.add_render_rule("image", lambda renderer, tokens, place, options, env: escape(tokens[place].content))


@lru_cache(KEPT)
def as_html(text: str) -> SafeString:
    tokens = _markdown.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = HEADING
    html = _markdown.renderer.render(tokens, _markdown.options, {})
    return mark_safe(nh3.clean(html, tags=TAGS, attributes={"ol": {"start"}}))  # noqa: S308 - it is sanitised
