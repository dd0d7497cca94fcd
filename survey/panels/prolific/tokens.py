"""Signed entry links: a JSON Web Token by RS256, checked with the panel's public keys. Imports only Django's cache.

The rules are those of RFC 7519 and of the panel: one algorithm and no other, the key named by `kid`, issued by the
panel, for our host, not over, and about the very ids that stand in the address.
"""

import base64
import binascii
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA256
from django.core.cache import cache

ISSUER = "https://www.prolific.com"
LONGEST_TOKEN = 8192
LEEWAY = 30  # seconds that two clocks may differ
FRESH = 12 * 3600  # seconds after which keys are read again
KEPT = 7 * 24 * 3600  # seconds that keys are good for while the panel cannot be reached
# An unknown key asks for a fresh list, and anybody can name one: so not more often than this.
ASK_AGAIN = 60  # seconds
KEYS = "survey.panels.jwks"
ASKED = "survey.panels.jwks.asked"
ReadKeys = Callable[[], Mapping[str, Any]]


class BadToken(Exception):
    """Not signed by the panel, not for us, over, or about other ids."""


class KeysUnavailable(Exception):
    """The panel's keys cannot be read now, and none are kept."""


def check_token(
    token: str,
    *,
    expected: Mapping[str, str],
    submission: str,
    host: str,
    read_keys: ReadKeys,
    now: float | None = None,
) -> None:
    """
    Args:
        expected: what the address says, which must stand in the token too, each value the same.
        host: ours, as the person's browser named it, with a port if there is one.
        read_keys: asks the panel for its key set; may raise any exception, which counts as unreachable.

    Raises:
        BadToken: it is no pass.
        KeysUnavailable: nothing can be said.
    """
    now = time.time() if now is None else now
    header, payload, signature, signed = _parts(token)
    if header.get("alg") != "RS256" or not isinstance(header.get("kid"), str):
        raise BadToken("not RS256 with a key's name")
    key = _key(header["kid"], read_keys, now)
    try:
        key.verify(signature, signed, padding.PKCS1v15(), SHA256())
    except InvalidSignature as exc:
        raise BadToken("the signature is not the panel's") from exc
    _check_claims(payload, expected=expected, submission=submission, host=host, now=now)


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    pieces = token.split(".")
    if len(token) > LONGEST_TOKEN or len(pieces) != 3:
        raise BadToken("not a token")
    try:
        header, payload = (json.loads(_decoded(piece)) for piece in pieces[:2])
        signature = _decoded(pieces[2])
    except (ValueError, binascii.Error, RecursionError) as exc:
        raise BadToken("not a token") from exc
    if not isinstance(header, dict) or not isinstance(payload, dict):
        raise BadToken("not a token")
    return header, payload, signature, f"{pieces[0]}.{pieces[1]}".encode()


def _decoded(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _check_claims(
    payload: Mapping[str, Any], *, expected: Mapping[str, str], submission: str, host: str, now: float
) -> None:
    expires, issued = payload.get("exp"), payload.get("iat")
    if not isinstance(expires, int | float) or not isinstance(issued, int | float):
        raise BadToken("says no time")
    if expires + LEEWAY < now or issued - LEEWAY > now:
        raise BadToken("its time is over, or has not come")
    if payload.get("iss") != ISSUER:
        raise BadToken("issued by somebody else")
    audience = payload.get("aud")
    addresses = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(address, str) and _host(address) == host.lower() for address in addresses):
        raise BadToken("for another host")
    claimed = payload.get("prolific")
    if not isinstance(claimed, Mapping) or not _same(payload.get("sub"), submission):
        raise BadToken("about another submission")
    if not all(_same(claimed.get(name), value) for name, value in expected.items()):
        raise BadToken("about other ids than the address")


def _host(address: str) -> str:
    try:
        return urlsplit(address).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""


def _same(claimed: Any, value: str) -> bool:
    return isinstance(claimed, str) and hmac.compare_digest(claimed.encode(), value.encode())


def _key(kid: str, read_keys: ReadKeys, now: float) -> Any:
    kept: tuple[float, Mapping[str, tuple[str, str]]] | None = cache.get(KEYS)
    is_fresh = kept is not None and now - kept[0] < FRESH
    if (kept is None or not is_fresh or kid not in kept[1]) and _may_ask(now):
        try:
            kept = (now, _usable(read_keys()))
            cache.set(KEYS, kept, timeout=KEPT)
        except Exception as exc:
            if kept is None:
                raise KeysUnavailable from exc
    if kept is None:
        raise KeysUnavailable
    if kid not in kept[1]:
        raise BadToken("signed with a key that the panel does not name")
    modulus, exponent = kept[1][kid]
    return RSAPublicNumbers(n=_integer(modulus), e=_integer(exponent)).public_key()


def _may_ask(now: float) -> bool:
    if now - cache.get(ASKED, -ASK_AGAIN) < ASK_AGAIN:
        return False
    cache.set(ASKED, now, timeout=ASK_AGAIN)
    return True


def _usable(key_set: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    keys = {
        key["kid"]: (key["n"], key["e"])
        for key in key_set["keys"]
        if key.get("kty") == "RSA" and key.get("alg", "RS256") == "RS256" and key.get("use", "sig") == "sig"
    }
    for modulus, exponent in keys.values():
        RSAPublicNumbers(n=_integer(modulus), e=_integer(exponent)).public_key()
    return keys


def _integer(text: str) -> int:
    return int.from_bytes(_decoded(text), "big")
