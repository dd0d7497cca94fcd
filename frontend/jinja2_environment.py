"""What the respondent's pages may use in their templates, which are written in Jinja2.

They are rendered at each step, and Jinja2 takes a fraction of the time of Django's own template language, which the
admin has. An instrument may have either: templates in `jinja2/` are Jinja2's, those in `templates/` are Django's.
"""

from functools import lru_cache
from typing import Any

from django.template.loader import get_template
from django.templatetags.static import static
from django.urls import get_script_prefix, get_urlconf, reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, get_language_info, gettext, ngettext
from jinja2 import ChainableUndefined, Environment, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from survey.contracts.screens import Screen

from .markdown import as_html
from .templatetags.hunch_text import contact, is_sentence, prose, question

# How many sentences and addresses of the last pages a process keeps. Most pages need the same ones.
KEPT = 2_000


def environment(**options: Any) -> Environment:
    """Jinja2 as `TEMPLATES` asks for it. A name that a page does not have is empty, as in Django's templates."""
    made = Environment(  # noqa: S701 - Django's backend turns escaping on
        **{**options, "undefined": ChainableUndefined}, extensions=["jinja2.ext.i18n"]
    )
    made.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]  # of the extension
    made.filters |= {"prose": prose, "question": question, "is_sentence": is_sentence, "contact": contact}
    made.filters["markdown"] = as_html
    made.globals |= {"_": translated, "language": get_language, "shown": shown, "url": address, "spoken": spoken}
    made.globals["static"] = lru_cache(KEPT)(static)
    return made


def translated(message: str, **values: Any) -> Markup:
    """A sentence in the language of the page. Values in it are escaped; it is always a format, as `%%` in it says."""
    language = get_language()
    return _format(language, message) % values if values else _sentence(language, message)


@lru_cache(KEPT)
def _format(_language: str, message: str) -> Markup:
    return Markup(gettext(message))  # noqa: S704 - a sentence of ours, or its translation


@lru_cache(KEPT)
def _sentence(language: str, message: str) -> Markup:
    return _format(language, message) % {}


def spoken(code: str, direction: str = "") -> Markup:
    """The attributes of an element whose text is in another language than the page; none where `code` is empty.
    `direction`: for what is not known to run from right to left."""
    try:
        direction = "rtl" if code and get_language_info(code)["bidi"] else direction
    except KeyError:  # Django does not know it; the first letter decides.
        direction = direction or "auto"
    language = Markup(' lang="{}"').format(code) if code else Markup("")
    return language + (Markup(' dir="{}"').format(direction) if direction else Markup(""))


def address(name: str, *args: Any) -> str:
    return _address(get_urlconf(), get_script_prefix(), name, args)


@lru_cache(KEPT)
def _address(_urlconf: str | None, _prefix: str, name: str, args: tuple[Any, ...]) -> str:
    return reverse(name, args=args)


@pass_context
def shown(page: Context, screen: Screen, bank_language: str = "") -> SafeString:
    """A screen by its instrument's own template, in either language of templates."""
    context = {name: value for name, value in page.get_all().items() if name not in page.environment.globals}
    request = context.pop("request", None)
    context |= {"screen": screen, "parts": screen.parts, "bank_language": bank_language}
    return mark_safe(get_template(screen.template).render(context, request))  # noqa: S308 - a template escapes
