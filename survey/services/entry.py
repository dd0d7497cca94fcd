"""Who stands at the door: a person a panel sent, one of an open study, or a simulated one."""

from collections.abc import Mapping

from django.core import signing
from django.utils.translation import gettext as _

from survey.exceptions import EntryRefused
from survey.models import Study

from .enrolment import new_open_person, read_panel_ids
from .identities import PanelIds

# The header is signed with the site's key, so that nobody outside can mark a person as simulated.
SIMULATED_HEADER = "X-Hunch-Simulated"
SIMULATED_SALT = "hunch.simulated"


def person_at_the_door(study: Study, given: Mapping[str, str]) -> PanelIds:
    """The ids that were given, or new ones where the study is open to anybody.

    Raises:
        EntryRefused: the study's panel sends ids along, and they are missing or not ids.
    """
    ids = read_panel_ids(study, given)
    if ids is not None:
        return ids
    if study.settings.panel.kind == "open":
        return new_open_person()
    raise EntryRefused(
        _("This study is entered from the panel's own page. Please open it there once more; your place is kept."),
        code="no_panel_ids",
    )


def simulated_mark() -> str:
    return signing.Signer(salt=SIMULATED_SALT).sign("simulator")


def is_simulated(mark: str | None) -> bool:
    """Whether the header's value was signed here. Anything else comes from a real person and is no error."""
    if not mark:
        return False
    try:
        signing.Signer(salt=SIMULATED_SALT).unsign(mark)
    except signing.BadSignature:
        return False
    return True
