"""Signed addresses that lead into a study's test copy: for previews, also for people without an account.

The address holds the language and the levels to be shown. It holds for some days, and for this copy: a renewed copy has
new addresses.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlencode

from django.core import signing

from survey.exceptions import FieldErrors, StateRefused
from survey.models import Study
from survey.services.answers.blinding import shown_conditions

PARAMETER = "preview"  # One of study_file's OWN_PARAMETERS.
SALT = "hunch.preview"
HOLDS = timedelta(days=14)


@dataclass(frozen=True)
class Preview:
    """One way through a test copy. `walk` is new for every address: anyone who opens another one begins again."""

    walk: str = field(repr=False)
    language: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)


def secret_of(copy: Study, *, language: str = "", levels: Mapping[str, str] | None = None) -> str:
    """What the address carries, signed.

    Raises:
        StateRefused: the study is no test copy.
        FieldErrors: it has no such language, factor or level.
    """
    if not copy.is_test:
        raise StateRefused(f"{copy.slug} is no test copy: only a test copy has previews")
    config = copy.config
    known = {condition.factor: condition.levels for condition in shown_conditions(copy)}
    errors: dict[str, list[str]] = {}
    if language and language not in config.languages:
        errors["language"] = [f"{language!r} is not one of the study's languages: {', '.join(config.languages)}"]
    for factor, level in (levels or {}).items():
        if factor not in known:
            errors[factor] = [f"the study has no condition {factor!r}; it has: {', '.join(known) or 'none'}"]
        elif level not in known[factor]:
            errors[factor] = [f"{level!r} is no level of it; there are: {', '.join(known[factor])}"]
    if errors:
        raise FieldErrors(errors)
    return signing.dumps([copy.pk, secrets.token_hex(8), language, dict(levels or {})], salt=SALT)


def address_of(copy: Study, *, root: str, language: str = "", levels: Mapping[str, str] | None = None) -> str:
    """The whole address of a preview, which begins a walk of its own.

    Args:
        root: scheme and host of this server.

    Raises:
        StateRefused, FieldErrors: as `secret_of`.
    """
    query = {PARAMETER: secret_of(copy, language=language, levels=levels)}
    return f"{root.rstrip('/')}{copy.get_absolute_url()}?{urlencode(query)}"


def read(study: Study, secret: str) -> Preview | None:
    """The preview of this test copy that the secret is for; None if it is for none, or too old."""
    if not secret or not study.is_test:
        return None
    try:
        key, walk, language, levels = signing.loads(secret, salt=SALT, max_age=HOLDS)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return Preview(walk, language, levels) if key == study.pk else None
