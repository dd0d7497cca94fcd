"""Where people reach us."""

from django.conf import settings

from survey.contracts import panels
from survey.models import Study


def public_root() -> str:
    """Scheme and host under which people reach us."""
    if settings.IN_PRODUCTION:
        return f"https://{settings.ALLOWED_HOSTS[0].lstrip('.')}"
    return f"http://127.0.0.1:{settings.HUNCH_PORT}"


def address_for_panel(study: Study, root: str) -> str:
    """The address that the study's panel is given, with the panel's placeholders."""
    return panels.of_study(study).address(study.config, root + study.get_absolute_url())
