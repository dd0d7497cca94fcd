"""Researchers' tokens: `Authorization: Token SECRET`. Only the hash is stored."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from survey.models import ApiToken
from survey.services.base import rights


class ApiTokenAuthentication(BaseAuthentication):
    keyword = "Token"

    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != self.keyword.lower().encode():
            return None
        if len(parts) != 2:
            raise AuthenticationFailed(_("The Authorization header must read: Token SECRET."))
        try:
            secret = parts[1].decode("ascii")
        except UnicodeDecodeError:
            raise AuthenticationFailed(_("The token has characters that no token has.")) from None
        token = ApiToken.objects.select_related("user").filter(digest=ApiToken.hashed(secret)).first()
        if token is None or token.revoked_at is not None or not token.user.is_active:
            raise AuthenticationFailed(_("The token is unknown or was revoked."))
        now = timezone.now()
        if token.expires_at <= now:
            raise AuthenticationFailed(_("The token has expired: make a new one."))
        if not token.for_all_studies:
            pairs = token.studies.values_list("pk", "test_copy")  # A token for a study is one for its test copy.
            rights.limit(token.user, [key for pair in pairs for key in pair if key is not None])
        # Updated at most once a minute: a client that pages through an export must not cause a write for every page.
        if token.last_used_at is None or (now - token.last_used_at).total_seconds() > 60:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword
