"""Links for a lab: each lets one person begin, and later continue the same sitting.

A link is shown only when it is made: only a hash of its token is stored, keyed with the identity key. Looking a link up
writes nothing, so scanners that open every link in a mail do no harm. Consent uses the link up.
"""

import re
import secrets
from collections.abc import Sequence
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
MAX_AT_ONCE = 5000


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
    if not 1 <= count <= MAX_AT_ONCE:
        raise HunchError(f"count: 1 to {MAX_AT_ONCE} links at once, not {count}", code="invalid")
    entrance = _entrance(study, root)
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


@dataclass(frozen=True)
class LaterLink(NewLink):
    """A link to a later wave. `first` is the hash of the link with which its person began, `first_number` its
    number."""

    first: str = ""
    first_number: int = 0


def make_later_links(study: Study, *, wave: int, firsts: Sequence[str], root: str) -> list[LaterLink]:
    """One more link for each of these people, which leads to the same person; none for who has one for the wave.

    Args:
        firsts: the hashes of the links with which they began, as their ids have them.
        root: as `make_links`.

    Raises:
        HunchError: the root is not an address.
    """
    entrance = _entrance(study, root)
    with transaction.atomic():
        Study.objects.select_for_update(no_key=True).get(pk=study.pk)
        waiting = study.entry_links.filter(token_hash__in=firsts, wave=1).exclude(later__wave=wave).order_by("number")
        number = study.entry_links.aggregate(last=Max("number"))["last"] or 0
        made, rows = [], []
        for first in waiting:
            token = secrets.token_urlsafe(TOKEN_BYTES)
            number += 1
            rows.append(EntryLink(study=study, number=number, wave=wave, first=first, token_hash=_hash(study, token)))
            address = f"{entrance}?{PARAMETER}={token}"
            made.append(LaterLink(number, address, first=first.token_hash, first_number=first.number))
        EntryLink.objects.bulk_create(rows)
    return made


def _entrance(study: Study, root: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#]+", root.rstrip("/")):
        raise HunchError(f"root: {root!r}: write where people reach this server, https://HOST", code="invalid")
    return root.rstrip("/") + study.get_absolute_url()


def ids_of_link(study: Study, token: str) -> PanelIds:
    """The ids of a person who comes by a link: its hash, so that no cookie and no row holds the link itself.

    Raises:
        EntryRefused: it is not a link of this study.
    """
    hashed = _hash(study, token)
    # A link of a later wave leads to the person of its first link.
    links = EntryLink.objects.filter(study=study, token_hash=hashed)
    known = links.values_list("token_hash", "first__token_hash").first() if TOKEN.match(token) else None
    if known is None:
        raise EntryRefused(
            _("We do not know this link. Please check that you opened the whole link that you were given."),
            code="unknown_link",
        )
    return PanelIds(KIND, known[1] or known[0])


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
