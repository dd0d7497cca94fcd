"""Signed addresses of generic panels: HMACs with shared secrets. Imports the contract, the study file and settings.

An entry address is signed with HMAC-SHA256. What is signed is a text of five lines: the study's slug, the ids of
person, study and submission, and the time in seconds since 1970. Ids are signed as they are, not as they are encoded in
an address, and are empty where the study file names no such parameter. The lines are joined by a line feed, and none
follows the last one. The slug is in it, so that an address of one study is worth nothing at another one. No id can hold
a line feed, so that no two addresses have the same text.

An address is good for some minutes. Anyone who was let in stays in by a cookie and needs no signature to go on.

What is signed of a closing address, and how, stands in the study file (`completion_signature`), since each panel wants
something else there.
"""

import base64
import hashlib
import hmac

from django.conf import settings

from survey.contracts.panels import PanelIds
from survey.study_file import CompletionSignatureConfig

VALID = 600  # seconds that an address is good for
EARLY = 60  # seconds that the panel's clock may be ahead of ours


def text_to_sign(slug: str, ids: PanelIds, signed_at: str) -> str:
    return "\n".join((slug, ids.person, ids.study, ids.submission, signed_at))


def signature_of(slug: str, ids: PanelIds, signed_at: str, *, secret: str) -> str:
    """The signature in 64 hexadecimal digits."""
    text = text_to_sign(slug, ids, signed_at)
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def is_signed(slug: str, ids: PanelIds, *, signed_at: str, signature: str, now: float) -> bool:
    """Whether the panel signed these ids for this study, a short time ago."""
    if not (signed_at.isascii() and signed_at.isdecimal() and len(signed_at) <= 12):
        return False
    right = signature_of(slug, ids, signed_at, secret=settings.HUNCH_GENERIC_SECRET)
    if not hmac.compare_digest(right.encode(), signature.lower().encode()):
        return False
    return -EARLY <= now - int(signed_at) <= VALID


def closing_signature(how: CompletionSignatureConfig, text: str, *, secret: str) -> str:
    """The signature of a closing address, in the letters that the panel wants. base64url has no = at its end."""
    digest = hmac.new(secret.encode(), text.encode(), how.algorithm).digest()
    if how.encoding == "hex":
        return digest.hex()
    if how.encoding == "base64":
        return base64.b64encode(digest).decode()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
