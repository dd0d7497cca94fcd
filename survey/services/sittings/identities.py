"""Panel ids: stored encrypted, found by a hash with a separate key for each study, and kept apart from answers."""

import base64
import hashlib
import json
from dataclasses import asdict
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from survey.contracts.panels import PanelIds
from survey.models import PanelIdentity, Respondent, Study
from survey.services.base.hashing import keyed_digest


def _cipher() -> Fernet:
    key = hashlib.sha256(b"hunch.identities\0" + settings.HUNCH_IDENTITY_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


def seal(ids: PanelIds) -> str:
    """Ids as an encrypted text, for storing."""
    return _cipher().encrypt(json.dumps(asdict(ids)).encode()).decode()


def unseal(sealed: str) -> PanelIds | None:
    """Decrypt ids; None for a text that was not sealed here or was changed."""
    values = _opened(sealed)
    return PanelIds(**values) if isinstance(values, dict) else None


def seal_for(study: Study, ids: PanelIds) -> str:
    """Ids as an encrypted text that is valid for one study, for the cookie between entry and consent."""
    return _cipher().encrypt(json.dumps([study.pk, asdict(ids)]).encode()).decode()


def unseal_for(study: Study, sealed: str, *, max_age_seconds: int) -> PanelIds | None:
    """Decrypt ids; None for a text that was not sealed here for this study, was changed, or is too old."""
    values = _opened(sealed, max_age_seconds)
    if not isinstance(values, list) or values[0] != study.pk:
        return None
    return PanelIds(**values[1])


def _opened(sealed: str, max_age_seconds: int | None = None) -> Any:
    try:
        return json.loads(_cipher().decrypt(sealed.encode(), ttl=max_age_seconds))
    except (InvalidToken, ValueError):
        return None


def person_hash(study: Study, ids: PanelIds) -> str:
    return keyed_digest([ids.panel, ids.person], purpose=f"person:{study.pk}")


def submission_hash(study: Study, ids: PanelIds) -> str:
    return (
        keyed_digest([ids.panel, ids.study, ids.submission], purpose=f"submission:{study.pk}") if ids.submission else ""
    )


def find_respondent(study: Study, ids: PanelIds) -> Respondent | None:
    return Respondent.objects.filter(
        panel_identity__study=study, panel_identity__person_hash=person_hash(study, ids)
    ).first()


def store_identity(*, respondent: Respondent, ids: PanelIds) -> PanelIdentity:
    return PanelIdentity.objects.create(
        respondent=respondent,
        study=respondent.study,
        panel=ids.panel,
        person_hash=person_hash(respondent.study, ids),
        submission_hash=submission_hash(respondent.study, ids),
        ids_encrypted=seal(ids).encode(),
    )
