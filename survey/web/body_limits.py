"""How many bytes a request may send. Asked by the web process before it keeps a body, and by BodyLimitMiddleware."""

from functools import cache

from django.conf import settings
from django.urls import reverse


@cache
def admin_root() -> str:
    return reverse("admin:index")


@cache
def upload_page() -> str:
    return reverse("admin:survey_bank_add")


def body_limit(path: str) -> int:
    if path == upload_page():
        return int(settings.HUNCH_MAX_UPLOAD_BODY)
    return int(settings.HUNCH_MAX_ADMIN_BODY if path.startswith(admin_root()) else settings.HUNCH_MAX_BODY)
