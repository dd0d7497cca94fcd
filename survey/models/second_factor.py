"""The second step of a researcher's log-in: codes of an app, and recovery codes on paper."""

import hmac

from django.conf import settings
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice


class CodeApp(TOTPDevice):
    """An app that shows codes. Its secret is derived from what is stored and from the identity key: a copy of the
    database alone makes no code."""

    class Meta:
        proxy = True
        default_permissions = ()

    @property
    def bin_key(self) -> bytes:
        stored = b"hunch.totp\0" + bytes.fromhex(self.key)
        return hmac.digest(settings.HUNCH_IDENTITY_KEY.encode(), stored, "sha256")[:20]


class RecoveryCodes(StaticDevice):
    """Codes that work once each. Only their hashes are stored."""

    class Meta:
        proxy = True
        default_permissions = ()
