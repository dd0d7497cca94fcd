"""Signed entry links: a JSON Web Token, checked by PyJWT with the panel's public keys. Imports PyJWT and `memory`.

PyJWT reads the token, chooses the key by `kid`, and checks signature, issuer, subject and times. This module adds the
rest. It remembers the keys, which stay valid while the panel cannot be reached. It checks that the audience is an
address of our host, and that the token holds the same ids as the address of the page.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import jwt
from jwt.types import Options

from survey.services.base.memory import is_first, recall, remember

ISSUER = "https://www.prolific.com"
ALGORITHM = "RS256"  # The only algorithm allowed: the token itself must never choose how it is checked.
LONGEST_TOKEN = 8192  # characters
LEEWAY = 30  # seconds that two clocks may differ
FRESH = 12 * 3600  # seconds after which the keys are read again
KEPT = 7 * 24 * 3600  # seconds that keys stay valid while the panel cannot be reached
# An unknown key makes us read the list again. Anybody can name one, so we do it no more often than this.
ASK_AGAIN = 60  # seconds
KEYS = "survey.panels.key_set"
ASKED = "survey.panels.key_set.asked"
ReadKeys = Callable[[], Mapping[str, Any]]
OPTIONS: Options = {
    "require": ["exp", "iat", "iss", "aud", "sub"],
    "verify_aud": False,  # PyJWT compares whole addresses; ours need only be of our host.
    "enforce_minimum_key_length": True,
}


class BadToken(Exception):
    """The token is not signed by the panel, not for us, expired, or about other ids."""


class KeysUnavailable(Exception):
    """The panel's keys cannot be read now, and none are cached."""


class PanelKeys(jwt.PyJWKClient):
    """The panel's key set, read through our own client and kept in Django's cache.

    Args:
        read_keys: asks the panel for its key set; may raise any exception, which counts as unreachable.
    """

    def __init__(self, read_keys: ReadKeys) -> None:
        super().__init__(ISSUER, cache_jwk_set=False)  # PyJWT's own cache would end with this object.
        self._read_keys = read_keys

    def fetch_data(self) -> dict[str, Any]:
        return dict(self._read_keys())

    def get_jwk_set(self, refresh: bool = False) -> jwt.PyJWKSet:
        """
        Raises:
            KeysUnavailable: the panel does not give its keys, and none are cached.
        """
        cached: tuple[float, dict[str, Any]] | None = recall(KEYS)
        is_fresh = cached is not None and time.time() - cached[0] < FRESH
        if (refresh or not is_fresh) and is_first(ASKED, seconds=ASK_AGAIN):
            try:
                key_set = self.fetch_data()
                jwk_set = jwt.PyJWKSet.from_dict(key_set)
            except Exception as exc:
                if cached is None:
                    raise KeysUnavailable from exc
            else:
                remember(KEYS, (time.time(), key_set), seconds=KEPT)
                return jwk_set
        if cached is None:
            raise KeysUnavailable
        return jwt.PyJWKSet.from_dict(cached[1])


def check_token(token: str, *, expected: Mapping[str, str], submission: str, host: str, read_keys: ReadKeys) -> None:
    """
    Args:
        expected: the values in the page's address; the token must hold the same ones.
        host: our host as the person's browser named it, with a port if there is one.
        read_keys: as in `PanelKeys`.

    Raises:
        BadToken: the token is not valid.
        KeysUnavailable: the token cannot be checked now.
    """
    if len(token) > LONGEST_TOKEN or not token.isascii():
        raise BadToken("not a token")
    try:
        header = jwt.get_unverified_header(token)
        if header.get("alg") != ALGORITHM or "kid" not in header:
            raise BadToken("not RS256 with a key's name")
        payload = jwt.decode(
            token,
            PanelKeys(read_keys).get_signing_key(header["kid"]),
            algorithms=[ALGORITHM],
            issuer=ISSUER,
            subject=submission,
            leeway=LEEWAY,
            options=OPTIONS,
        )
    except (jwt.PyJWTError, RecursionError) as exc:  # Anybody can write a token whose JSON is nested too deep.
        raise BadToken("not signed by the panel, over, or about another submission") from exc
    audience = payload["aud"]
    addresses = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(address, str) and _host(address) == host.lower() for address in addresses):
        raise BadToken("for another host")
    claimed = payload.get("prolific")
    if not isinstance(claimed, dict) or any(claimed.get(name) != value for name, value in expected.items()):
        raise BadToken("about other ids than the address")


def _host(address: str) -> str:
    try:
        return urlsplit(address).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
