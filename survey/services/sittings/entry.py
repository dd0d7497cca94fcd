"""Who arrives: a person that a panel sent, a person of an open study, or a simulated person."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.core import signing
from django.utils.translation import gettext as _

from survey.contracts import panels
from survey.contracts.panels import PanelIds, Verdict
from survey.exceptions import EntryRefused
from survey.models import Posting, PostingPart, Sitting, Study

from .enrolment import (
    begin_sitting,
    find_sitting,
    new_open_person,
    refuse_out_of_wave,
    refuse_people_of_others,
)
from .identities import Visitor, began_in, identity_of
from .lookups import look_up
from .refusals import not_checked

# The header is signed with the site's key, so that nobody else can mark a person as simulated.
SIMULATED_HEADER = "X-Hunch-Simulated"
SIMULATED_SALT = "hunch.simulated"


def person_at_the_door(study: Study) -> Visitor:
    """Somebody without ids, if the study is open to anybody.

    Raises:
        EntryRefused: the study's panel sends ids, and they are missing.
    """
    panel = panels.of_study(study)
    if panel.is_open:
        return Visitor(new_open_person(panel.name))
    if study.is_test:  # No panel sends anybody there, and nobody's ids are needed.
        names = panel.parameter_names(study.config)
        made_up = {what: secrets.token_hex(12) for what in ("person", "study", "submission") if what in names}
        return Visitor(
            PanelIds(panel.name, **{"person": secrets.token_hex(12), **made_up}), signed=True, confirmed=True
        )
    raise EntryRefused(panel.how_to_enter(), code="no_panel_ids")


def arrive(
    study: Study,
    sent: Mapping[str, str | Sequence[str]],
    *,
    host: str,
    address: str = "",
    known: Visitor | None = None,
    simulated: bool = False,
) -> Visitor | None:
    """Who came with this address, after checking that the panel sent this person; None if it has no ids.

    A browser that was let in before is not checked again: a signed link is valid for two minutes, and people reload
    pages later than that. Where entry is signed, everybody else needs a valid signature, also to come back. Elsewhere
    the ids alone lead back, since people come back on other devices (see `give_back`).

    Args:
        sent: the value of each parameter of the address, or its values in their order.
        host: our host as the browser named it; a signed link names it too.
        address: the network address that the request came from.
        known: what this browser holds of an earlier visit.
        simulated: not checked, since no panel knows simulated people.

    Raises:
        EntryRefused: a broken link, one the panel did not make, or a person who took part in an excluded study.
    """
    panel = panels.of_study(study)
    parameters = panel.said_once(study.config, sent)
    came_as = panel.recognise(study, parameters)
    if came_as is None:
        return None
    ids = _of_whole_posting(study, came_as) if panel.has_parts else came_as
    here_before = known if known is not None and known.ids == ids else None
    is_signed = study.config.panel.signed_entry
    if here_before is not None and (here_before.signed or not is_signed):
        visitor = here_before
    elif simulated or study.is_test:
        visitor = Visitor(ids, signed=True, confirmed=True)
    elif panel.ids_are_secret:
        visitor = Visitor(ids, confirmed=True)
    elif is_signed:
        try:
            visitor = _signed(study, ids, came_as, parameters, host=host, address=address)
        except EntryRefused:
            if here_before is None:
                raise
            visitor = here_before  # With no more rights than before.
    elif find_sitting(study, ids) is not None:
        visitor = Visitor(ids)
    else:
        ids = _of_our_posting(study, ids, came_as, address=address)
        visitor = Visitor(ids, confirmed=_is_sent(study, came_as, parameters, host=host, address=address))
    if find_sitting(study, visitor.ids) is None:
        refuse_people_of_others(study, visitor.ids)
        refuse_out_of_wave(study, visitor.ids)
    return visitor


def begin(
    study: Study,
    visitor: Visitor,
    *,
    address: str,
    language: str,
    simulated: bool = False,
    levels: Mapping[str, str] | None = None,
) -> Sitting:
    """Begin a visitor's sitting, or give back the one that they began.

    Args:
        address: the visitor's network address; it counts where the visitor may be made up.
        levels: of a test copy's conditions, as who walks through it has chosen them.

    Raises:
        EntryRefused: as `begin_sitting` and `give_back`.
    """
    sitting = begin_sitting(
        study=study,
        ids=visitor.ids,
        language=language,
        simulated=simulated,
        browser=visitor.browser,
        address="" if visitor.confirmed or simulated or study.is_test else address,
        levels=levels,
    )
    return sitting if sitting.is_new else give_back(study, sitting, visitor)


def give_back(study: Study, sitting: Sitting, visitor: Visitor) -> Sitting:
    """The sitting that a visitor's ids began, given back to the visitor. Its `token` is for them.

    It is given back whole to the browser in which it began, by a signed link, and where ids are secrets. Where entry is
    not signed, ids alone give the place back, but nobody withdraws the person's answers by them.

    Raises:
        EntryRefused: entry is signed, and the visitor has shown no valid link.
    """
    # That of wave 1 was read with the sitting.
    identity = sitting.respondent.panel_identity if sitting.wave == 1 else identity_of(sitting)
    if (
        panels.of_study(study).ids_are_secret
        or visitor.signed
        or (identity is not None and began_in(study, identity, visitor.browser))
    ):
        return sitting
    if study.config.panel.signed_entry:
        raise _not_sent()
    sitting.is_by_ids_alone = True
    return sitting


def _signed(
    study: Study, ids: PanelIds, came_as: PanelIds, parameters: Mapping[str, str], *, host: str, address: str
) -> Visitor:
    """Anyone who comes by a signed link. While no link can be checked, new people are looked up instead.

    A look-up does not show that the ids were not taken from somebody: it gives no sitting back.
    """
    panel = panels.of_study(study)
    verdict = panel.verdict(study, came_as, query=parameters, host=host)
    if verdict == Verdict.NOT_SENT:
        raise _not_sent()
    if verdict == Verdict.SENT:
        if find_sitting(study, ids) is None:
            ids = _of_our_posting(study, ids, came_as, address=address)
        return Visitor(ids, signed=True, confirmed=True)
    if not panel.can_look_up() or find_sitting(study, ids) is not None:
        raise not_checked(60)
    ids = _of_our_posting(study, ids, came_as, address=address)
    verdict = look_up(panel, study, came_as, address=address).verdict
    if verdict == Verdict.NOT_SENT:
        raise _not_sent()
    if verdict == Verdict.NOT_KNOWN:
        raise not_checked(60)
    return Visitor(ids, confirmed=True)


def _is_sent(study: Study, ids: PanelIds, parameters: Mapping[str, str], *, host: str, address: str) -> bool:
    """Whether the panel says that it sent this new person; False where it has no way of saying.

    Raises:
        EntryRefused: it says that it did not, or it could not be asked.
    """
    panel = panels.of_study(study)
    verdict = panel.verdict(study, ids, query=parameters, host=host)
    if verdict == Verdict.NOT_KNOWN and panel.can_look_up():
        verdict = look_up(panel, study, ids, address=address).verdict
    if verdict == Verdict.NOT_SENT:
        raise _not_sent()
    return verdict == Verdict.SENT


def _of_whole_posting(study: Study, ids: PanelIds) -> PanelIds:
    """The ids with that of the whole posting, where they name a part of one that is known."""
    parts = PostingPart.objects.filter(posting__study=study, panel=ids.panel, external_id=ids.study)
    whole = parts.values_list("posting__external_id", flat=True).first()
    return replace(ids, study=whole) if whole else ids


def _of_our_posting(study: Study, ids: PanelIds, came_as: PanelIds, *, address: str) -> PanelIds:
    """The ids with that of one of the study's postings. The panel is asked where they may name a part of one.

    Raises:
        EntryRefused: the study has postings, and the person comes from none of them; or the panel could not be asked.
    """
    ours = {posting.external_id: posting for posting in study.postings.exclude(external_id="")}
    if not ours or not ids.study or ids.study in ours:
        return ids
    panel = panels.of_study(study)
    if not panel.has_parts or not panel.can_look_up():
        raise _not_sent()
    looked_up = look_up(panel, study, came_as, address=address)
    if looked_up.verdict == Verdict.NOT_KNOWN:
        raise not_checked(60)
    if looked_up.verdict == Verdict.NOT_SENT or looked_up.part_of not in ours:
        raise _not_sent()
    _remember_part(ours[looked_up.part_of], ids)
    return replace(ids, study=looked_up.part_of)


def _remember_part(posting: Posting, ids: PanelIds) -> None:
    PostingPart.objects.get_or_create(panel=ids.panel, external_id=ids.study[:64], defaults={"posting": posting})


def _not_sent() -> EntryRefused:
    return EntryRefused(
        _("This link is not valid any more. Please start again from the page on which you found this study."),
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
