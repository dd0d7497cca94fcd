"""From arrival to a sitting: who may begin, consent, conditions, and the booklet claimed once the checks are passed."""

import random
import secrets
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.contracts import instruments, panels
from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused, NotFound
from survey.models import (
    Assignment,
    Booklet,
    Consent,
    Respondent,
    Sitting,
    Slot,
    Stage,
    Study,
)
from survey.services.answers.conditions import draw_for_items, draw_for_sitting
from survey.services.base.hashing import digest
from survey.services.base.locks import locked_stage

from .capacity import free_booklets, free_capacity
from .identities import find_respondent, store_identity, submission_hash

# Enough that people who claim at the same moment rarely try the same one; booklets were dealt at random already.
CLAIM_WINDOW = 50


def study_of(slug: str) -> Study:
    """
    Raises:
        NotFound: there is no such study.
    """
    study = None if "\x00" in slug else Study.objects.filter(slug=slug).first()  # PostgreSQL cannot search for NUL
    if study is None:
        raise NotFound(_("There is no study at this address. Please check the link you were given."))
    return study


def new_open_person(panel: str = "open") -> PanelIds:
    """A random identity for a study that is open to anybody with the address: one for each browser."""
    return PanelIds(panel, secrets.token_hex(16))


def find_sitting(study: Study, ids: PanelIds) -> Sitting | None:
    """The sitting that these ids began, to continue it.

    Raises:
        EntryRefused: the person has taken part under another submission.
    """
    respondent = find_respondent(study, ids)
    sitting = respondent and respondent.sittings.order_by("-wave").first()
    if not sitting or respondent is None:
        return None
    known = respondent.panel_identity.submission_hash
    if known and known != submission_hash(study, ids):
        raise EntryRefused(
            _("Our records show that you have taken part in this study before. It can be taken only once."),
            code="already_taken_part",
        )
    return sitting


def refuse_people_of_others(study: Study, ids: PanelIds) -> None:
    """
    Raises:
        EntryRefused: the person took part in a study whose people this one leaves out.
    """
    for slug in study.config.panel.exclude_people_of:
        other = Study.objects.filter(slug=slug).first()
        if other is not None and find_respondent(other, ids) is not None:
            raise EntryRefused(
                _("You have taken part in an earlier study of ours, and this one is for people who have not."),
                code="took_part_in_another",
            )


def _closed() -> EntryRefused:
    return EntryRefused(_("This study is not open at the moment. Nothing has been recorded."), code="closed")


def _full() -> EntryRefused:
    return EntryRefused(_("All places of this study are taken at the moment. Nothing has been recorded."), code="full")


def stage_to_join(study: Study) -> Stage:
    """The stage that is open and has free places, as far as is known without a lock.

    Raises:
        EntryRefused: nothing is open, or the open stage is full.
        InstrumentMissing: the study's items cannot be shown.
    """
    stage = study.admitting_stage()
    if stage is None:
        raise _closed()
    instruments.kind(study.instrument)  # Nobody is let in who could be shown nothing.
    if free_capacity(stage) < 1:
        raise _full()
    return stage


def consent_text(study: Study, language: str) -> str:
    """The consent text as it is shown in that language."""
    return study.config_in(language).consent.text


def consent_sha256(study: Study, language: str) -> str:
    """Hash of the words that a person agrees to, stored with the consent."""
    return digest(consent_text(study, language))


@transaction.atomic
def begin_sitting(*, study: Study, ids: PanelIds, language: str = "en", simulated: bool = False) -> Sitting:
    """Store consent and begin. Repeated by the same person and submission, it returns the same sitting.

    Raises:
        EntryRefused: closed, full, or the person took part under another submission.
    """
    stage = stage_to_join_or_resume(study, ids)
    if isinstance(stage, Sitting):
        return stage
    refuse_people_of_others(study, ids)
    # People begin one at a time under the stage's lock: so capacity and blocks of the randomisation are exact.
    stage = locked_stage(stage.pk)
    if again := find_sitting(study, ids):  # The person has two tabs, and the other one was faster.
        return again
    if stage.state != Stage.State.OPEN:
        raise _closed()
    if free_capacity(stage) < 1:
        raise _full()
    now = timezone.now()
    panels.of_study(study).admit(study, ids, now=now)
    respondent = Respondent.objects.create(study=study, is_simulated=simulated)
    store_identity(respondent=respondent, ids=ids)
    sitting = Sitting.objects.create(
        respondent=respondent,
        stage=stage,
        study_sha256=study.source_sha256,
        language=language,
        block=1,
        step=1,
        started_at=now,
        last_seen_at=now,
    )
    Consent.objects.create(
        sitting=sitting,
        version=study.config.blocks[0].version,
        language=language,
        text_sha256=consent_sha256(study, language),
        given_at=now,
    )
    draw_for_sitting(sitting, stage)
    if sitting.current_block.kind == "items" and not claim_booklet(sitting, now=now):
        raise _full()
    Stage.objects.filter(pk=stage.pk).update(arrivals=stage.arrivals + 1)
    return sitting


def stage_to_join_or_resume(study: Study, ids: PanelIds) -> Stage | Sitting:
    return find_sitting(study, ids) or stage_to_join(study)


def claim_booklet(sitting: Sitting, *, now: datetime) -> bool:
    """Give a sitting a free booklet and its slots; False if none is left. Needs the sitting's lock.

    Free booklets are tried in random order, each by one conditional update. If somebody else gets a booklet first, the
    next one is tried, so the stage is full only if no booklet is free.
    """
    stage = Stage.objects.get(pk=sitting.stage_id)
    if stage.state == Stage.State.FROZEN:
        return False
    while free := list(free_booklets(stage).order_by("kind", "number").values_list("pk", flat=True)[:CLAIM_WINDOW]):
        choice = random.choice(free)  # noqa: S311 - only spreads the claims
        if Booklet.objects.filter(pk=choice, claimed_at__isnull=True).update(claimed_at=now):
            sitting.booklet_id = choice
            sitting.save(update_fields=["booklet"])
            _assign_slots(sitting, now=now)
            return True
    return False


def _assign_slots(sitting: Sitting, *, now: datetime) -> None:
    slots = list(Slot.objects.filter(booklet=sitting.booklet_id).order_by("position"))
    for position, slot in enumerate(slots, start=1):
        # Somebody who came back may have taken slots out of a make-up booklet; the others move up.
        if slot.position != position:
            slot.position = position
            slot.save(update_fields=["position"])
    assignments = Assignment.objects.bulk_create(
        [
            Assignment(sitting=sitting, slot=slot, position=position, assigned_at=now)
            for position, slot in enumerate(slots, start=1)
        ]
    )
    draw_for_items(assignments, sitting)
