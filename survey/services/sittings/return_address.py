"""Where a person goes back to the panel. Imports models, panels' contract and the files next to it.

An address that holds ids or a signature is personal. It is made when its person leaves, from the ids that they came
with, and stands in no page: pages have an address of ours in its place, without ids. The host is the study file's.
"""

from django.utils.translation import gettext as _

from survey.contracts import panels
from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused, HunchError, OutOfOrder
from survey.models import CompletionCode, Sitting, Study

from .endings import outcome_of
from .enrolment import find_sitting, stage_to_join
from .identities import identity_of, unseal

Outcome = CompletionCode.Outcome


def shows_code(study: Study, outcome: str) -> bool:
    """Whether pages show the code of an outcome: not where no panel asks for it, nor where the panel's addresses take
    people back without any."""
    panel = study.config.panel
    if panel.closing_template(outcome):
        return panel.takes_code_after(outcome)
    return panels.of_study(study).has_submissions and (panel.uses_codes or not panel.completion_addresses)


def address_after(study: Study, outcome: str, *, code: str, ids: PanelIds | None) -> str:
    """The address at the panel for somebody whose sitting ended so; empty if there is none. From a test copy nobody
    goes to the panel."""
    if study.is_test:
        return ""
    return panels.of_study(study).closing_address(study, outcome=outcome, code=code, ids=ids)


def address_after_sitting(sitting: Sitting, outcome: str, *, code: str) -> str:
    """The same, with the ids that the sitting's person came with."""
    study = sitting.stage.study
    is_personal = study.config.panel.is_personal_after(outcome)
    return address_after(study, outcome, code=code, ids=_ids_of(sitting) if is_personal else None)


def address_to_leave_by(sitting: Sitting) -> str:
    """The address at the panel for a person whose sitting is over.

    Raises:
        OutOfOrder: it is not over.
        HunchError: there is no such address, as when the ids were deleted.
    """
    if not sitting.is_over:
        raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))
    outcome = outcome_of(sitting)
    return _or_refuse(address_after_sitting(sitting, outcome, code=sitting.stage.study.completion_code(outcome)))


def address_from_the_door(study: Study, ids: PanelIds, *, declined: bool) -> str:
    """The address at the panel for a person who begins no sitting: they did not agree, or all places are taken.

    Raises:
        OutOfOrder: they have begun one, or may begin.
        HunchError: there is no such address.
    """
    if find_sitting(study, ids) is None:
        outcome = Outcome.NO_CONSENT if declined else _why_nobody_begins(study)
        if outcome:
            return _or_refuse(address_after(study, outcome, code=study.completion_code(outcome), ids=ids))
    raise OutOfOrder(_("This page has not been reached yet. Please go on from where you are."))


def _why_nobody_begins(study: Study) -> str:
    try:
        stage_to_join(study)
    except EntryRefused as refusal:
        return Outcome.STUDY_FULL if refusal.code == "full" else ""
    return ""


def _ids_of(sitting: Sitting) -> PanelIds | None:
    """The ids that the sitting's person came with; None if they were deleted."""
    identity = identity_of(sitting)
    return unseal(bytes(identity.ids_encrypted).decode()) if identity is not None else None


def _or_refuse(address: str) -> str:
    if not address:
        raise HunchError(
            _("The way back to the site that you came from is not known any more. Please go there by yourself."),
            code="no_way_back",
            status=410,
        )
    return address
