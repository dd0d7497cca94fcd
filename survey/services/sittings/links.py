"""Links for a lab: each lets one person begin, and later continue the same sitting.

A link is shown only when it is made: only a hash of its token is stored, keyed with the identity key. Looking a link up
writes nothing, so scanners that open every link in a mail do no harm. Consent uses the link up.
"""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused, HunchError, StateRefused
from survey.models import EntryLink, Study
from survey.services.base.auditing import record
from survey.services.base.hashing import keyed_digest

KIND = "links"
PARAMETER = "link"
TOKEN_BYTES = 16  # 128 bits at random
TOKEN = re.compile(r"^[0-9A-Za-z_-]{22}$")
MOST_AT_ONCE = 5000


@dataclass(frozen=True)
class NewLink:
    """A link as it is shown once."""

    number: int
    address: str


def make_links(study: Study, *, count: int, root: str, by: Any = None, via: str = "command") -> list[NewLink]:
    """
    Args:
        root: where respondents reach this server, such as https://study.example.org.

    Raises:
        StateRefused: the study is not entered by links.
        HunchError: the count is 0 or too large, or the root is not an address.
    """
    kind = study.config.panel.kind
    if kind != KIND:
        raise StateRefused(f'panel.kind: {study.slug} is "{kind}"; only a study of the kind "{KIND}" has links')
    if not 1 <= count <= MOST_AT_ONCE:
        raise HunchError(f"count: 1 to {MOST_AT_ONCE} links at once, not {count}", code="invalid")
    if not re.fullmatch(r"https?://[^\s/?#]+", root.rstrip("/")):
        raise HunchError(f"root: {root!r}: write where people reach this server, https://HOST", code="invalid")
    entrance = root.rstrip("/") + study.get_absolute_url()
    tokens = [secrets.token_urlsafe(TOKEN_BYTES) for _number in range(count)]
    with transaction.atomic():
        # Two people who make links at once must not use the same number twice.
        Study.objects.select_for_update(no_key=True).get(pk=study.pk)
        first = (study.entry_links.aggregate(last=Max("number"))["last"] or 0) + 1
        EntryLink.objects.bulk_create(
            EntryLink(
                study=study,
                number=number,
                token_hash=_hash(study, token),
                created_by=by if getattr(by, "pk", None) else None,
            )
            for number, token in enumerate(tokens, start=first)
        )
        record("make_links", study, by=by, via=via, count=count, first=first)
    return [NewLink(number, f"{entrance}?{PARAMETER}={token}") for number, token in enumerate(tokens, start=first)]


def ids_of_link(study: Study, token: str) -> PanelIds:
    """The ids of a person who comes by a link: its hash, so that no cookie and no row holds the link itself.

    Raises:
        EntryRefused: it is not a link of this study.
    """
    ids = PanelIds(KIND, _hash(study, token))
    if not TOKEN.match(token) or not EntryLink.objects.filter(study=study, token_hash=ids.person).exists():
        raise EntryRefused(
            _("We do not know this link. Please check that you opened the whole link that you were given."),
            code="unknown_link",
        )
    return ids


def use_link(study: Study, ids: PanelIds, *, now: datetime) -> None:
    """Use up the link of a person who begins. Call it inside the transaction that begins the sitting.

    Raises:
        EntryRefused: it was used by somebody whose data was removed since, or it is not a link of this study.
    """
    unused = EntryLink.objects.filter(study=study, token_hash=ids.person, used_at__isnull=True)
    if not unused.update(used_at=now):
        raise EntryRefused(
            _("This link has been used before, and each link is for one person."), code="already_taken_part"
        )


def _hash(study: Study, token: str) -> str:
    return keyed_digest(token, purpose=f"link:{study.pk}")
