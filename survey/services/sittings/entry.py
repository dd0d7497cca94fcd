"""Who arrives: a person that a panel sent, a person of an open study, or a simulated person."""

from collections.abc import Mapping

from django.core import signing
from django.utils.translation import gettext as _

from survey.contracts import panels
from survey.contracts.panels import PanelIds, Verdict
from survey.exceptions import EntryRefused
from survey.models import Study

from .enrolment import find_sitting, new_open_person, refuse_people_of_others

# The header is signed with the site's key, so that nobody else can mark a person as simulated.
SIMULATED_HEADER = "X-Hunch-Simulated"
SIMULATED_SALT = "hunch.simulated"


def person_at_the_door(study: Study, given: Mapping[str, str]) -> PanelIds:
    """The given ids, or new ones if the study is open to anybody.

    Raises:
        EntryRefused: the study's panel sends ids, and they are missing or not ids.
    """
    panel = panels.of_study(study)
    ids = panel.recognise(study, given)
    if ids is not None:
        return ids
    if panel.is_open:
        return new_open_person(panel.name)
    raise EntryRefused(panel.how_to_enter(), code="no_panel_ids")


def arrive(
    study: Study, given: Mapping[str, str], *, host: str, known: PanelIds | None = None, simulated: bool = False
) -> PanelIds | None:
    """The ids in the address, after checking that the panel sent this person; None if there are none.

    A person whom the panel has confirmed is not checked again: a signed link is valid for two minutes, and people
    reload pages later than that.

    Args:
        host: our host as the browser named it; a signed link names it too.
        known: the ids of this browser's earlier visit.
        simulated: not checked, since no panel knows simulated people.

    Raises:
        EntryRefused: a broken link, one the panel did not make, or a person who took part in an excluded study.
    """
    ids = panels.of_study(study).recognise(study, given)
    if ids is None:
        return None
    if find_sitting(study, ids) is None:
        if ids != known and not simulated:
            _refuse_strangers(study, ids, given, host=host)
        refuse_people_of_others(study, ids)
    return ids


def _refuse_strangers(study: Study, ids: PanelIds, given: Mapping[str, str], *, host: str) -> None:
    ours = set(study.postings.exclude(external_id="").values_list("external_id", flat=True))
    if ours and ids.study and ids.study not in ours:
        raise _not_sent()
    verdict = panels.of_study(study).verdict(study, ids, query=given, host=host)
    if verdict == Verdict.NOT_SENT:
        raise _not_sent()
    if verdict == Verdict.NOT_KNOWN and study.config.panel.signed_entry:
        raise EntryRefused(
            _("We cannot check your link at the moment. Nothing has been recorded. Please try again in a minute."),
            code="entry_not_checked",
            status=503,
        )


def _not_sent() -> EntryRefused:
    return EntryRefused(
        _("This link does not come from the panel's page, or it is too old. Please start again from there."),
        code="not_sent_by_panel",
    )


def simulated_mark() -> str:
    return signing.Signer(salt=SIMULATED_SALT).sign("simulator")


def is_simulated(mark: str | None) -> bool:
    """Whether the header's value was signed here. Without a valid signature the person counts as real."""
    if not mark:
        return False
    try:
        signing.Signer(salt=SIMULATED_SALT).unsign(mark)
    except signing.BadSignature:
        return False
    return True
