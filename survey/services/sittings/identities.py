"""Panel ids: stored encrypted, found by a hash with a separate key for each study, and kept apart from answers."""

import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from cryptography.fernet import InvalidToken

from survey.contracts.panels import PanelIds
from survey.models import PanelIdentity, Respondent, Sitting, Study, WaveIdentity
from survey.services.base.hashing import identity_cipher, keyed_digest


@dataclass(frozen=True)
class Visitor:
    """Somebody at the entrance.

    signed: they came with an address whose signature was valid when they came.
    confirmed: the panel, or a link that we made, says that this person exists. Others may be made up.
    browser: a secret of this browser. Anyone who shows it later is at the same browser. Empty for a program.
    """

    ids: PanelIds
    signed: bool = False
    confirmed: bool = False
    browser: str = field(default="", repr=False)


def new_browser() -> str:
    return secrets.token_urlsafe(16)


def seal(ids: PanelIds) -> str:
    """Ids as an encrypted text, for storing."""
    return identity_cipher().encrypt(json.dumps(asdict(ids)).encode()).decode()


def unseal(sealed: str) -> PanelIds | None:
    """Decrypt ids; None for a text that was not sealed here or was changed."""
    values = _opened(sealed)
    return PanelIds(**values) if isinstance(values, dict) else None


def seal_for(study: Study, visitor: Visitor) -> str:
    """A visitor as an encrypted text that is valid for one study, for the cookie from the entrance on."""
    facts = {"signed": visitor.signed, "confirmed": visitor.confirmed, "browser": visitor.browser}
    return identity_cipher().encrypt(json.dumps([study.pk, asdict(visitor.ids), facts]).encode()).decode()


def unseal_for(study: Study, sealed: str, *, max_age_seconds: int) -> Visitor | None:
    """Decrypt a visitor; None for a text that was not sealed here for this study, was changed, or is too old."""
    values = _opened(sealed, max_age_seconds)
    if not isinstance(values, list) or values[0] != study.pk:
        return None
    _study, ids, facts = values
    return Visitor(PanelIds(**ids), **facts)


def _opened(sealed: str, max_age_seconds: int | None = None) -> Any:
    try:
        return json.loads(identity_cipher().decrypt(sealed.encode(), ttl=max_age_seconds))
    except (InvalidToken, ValueError):
        return None


def person_hash(study: Study, ids: PanelIds) -> str:
    return keyed_digest([ids.panel, ids.person], purpose=f"person:{study.pk}")


def submission_hash(study: Study, ids: PanelIds) -> str:
    return (
        keyed_digest([ids.panel, ids.study, ids.submission], purpose=f"submission:{study.pk}") if ids.submission else ""
    )


def find_respondent(studies: Iterable[Study], ids: PanelIds) -> Respondent | None:
    """The person with these ids in one of the studies."""
    hashes = {study.pk: person_hash(study, ids) for study in studies}
    if not hashes:
        return None
    # A hash is of one study alone.
    known = Respondent.objects.filter(panel_identity__study__in=hashes, panel_identity__person_hash__in=hashes.values())
    return known.order_by().first()


def store_identity(*, respondent: Respondent, ids: PanelIds, browser: str) -> PanelIdentity:
    return PanelIdentity.objects.create(
        respondent=respondent,
        study=respondent.study,
        panel=ids.panel,
        person_hash=person_hash(respondent.study, ids),
        submission_hash=submission_hash(respondent.study, ids),
        browser_hash=_browser_hash(respondent.study, browser),
        ids_encrypted=seal(ids).encode(),
    )


def free_identity(respondent: Respondent) -> None:
    """Let the person of a visit that found no place come again as a new respondent. The visit keeps its ids, which it
    may be paid by; by the hash, the person is found no more."""
    identity = respondent.panel_identity
    identity.person_hash = keyed_digest([identity.person_hash, respondent.pk], purpose="came before")
    identity.save(update_fields=["person_hash"])


def store_wave_identity(*, respondent: Respondent, wave: int, ids: PanelIds, browser: str) -> WaveIdentity:
    """The ids with which somebody comes back. The person hash is that of wave 1 and stays there."""
    study = respondent.study
    return WaveIdentity.objects.create(
        identity=respondent.panel_identity,
        wave=wave,
        submission_hash=submission_hash(study, ids),
        browser_hash=_browser_hash(study, browser),
        ids_encrypted=seal(ids).encode(),
    )


def identity_of(sitting: Sitting) -> PanelIdentity | WaveIdentity | None:
    """The ids with which the sitting's person came for it; None if they were deleted."""
    if sitting.wave == 1:
        return PanelIdentity.objects.filter(respondent=sitting.respondent_id).first()
    return WaveIdentity.objects.filter(identity__respondent=sitting.respondent_id, wave=sitting.wave).first()


def people_by_submission(study: Study, hashes: Iterable[str]) -> dict[str, int]:
    """The respondent, by key, of each of these submissions that is known, in whichever wave."""
    wanted = list(hashes)
    first = PanelIdentity.objects.filter(study=study, submission_hash__in=wanted)
    people = dict(first.values_list("submission_hash", "respondent"))
    if study.config.waves:
        later = WaveIdentity.objects.filter(identity__study=study, submission_hash__in=wanted)
        people |= dict(later.values_list("submission_hash", "identity__respondent"))
    return people


def began_in(study: Study, identity: PanelIdentity | WaveIdentity, browser: str) -> bool:
    """Whether the person consented in the browser with this secret."""
    hashed = _browser_hash(study, browser)
    return bool(hashed) and hmac.compare_digest(hashed, identity.browser_hash)


def _browser_hash(study: Study, browser: str) -> str:
    return keyed_digest(browser, purpose=f"browser:{study.pk}") if browser else ""
