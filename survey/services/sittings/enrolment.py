"""From arrival to a sitting: who may begin, consent, conditions, and the booklet claimed once the checks are passed."""

import random
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
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
from survey.models.study import FILE_FIELDS
from survey.services.answers.conditions import draw_for_items, draw_for_sitting
from survey.services.base.auditing import record
from survey.services.base.budgets import Budget, spend
from survey.services.base.compiled import CompiledQuery, insert, update
from survey.services.base.hashing import digest
from survey.services.base.locks import locked_row

from .capacity import admitting_stage, free_booklets, has_free_place
from .identities import find_respondent, person_hash, store_identity, submission_hash
from .reading import LEFT_OUT
from .refusals import too_many_from_here

# Enough that people who claim at the same moment rarely try the same one; booklets were dealt at random already.
CLAIM_WINDOW = 50
BEGUN, BEGUN_SECONDS = "begun_by_address", 3600


def _named(slug: str) -> QuerySet[Study]:
    opened = Stage.objects.filter(study=OuterRef("pk"), opened_at__isnull=False).order_by()
    # The file is known by its hash.
    return Study.objects.defer(*FILE_FIELDS).annotate(was_opened=Exists(opened)).filter(slug=slug).order_by()  # type: ignore[no-redef]


def _begun(study: int, person: str) -> QuerySet[Sitting]:
    identity = "respondent__panel_identity"
    of_person = Sitting.objects.filter(**{f"{identity}__study": study, f"{identity}__person_hash": person})
    return of_person.select_related(identity).order_by("-wave")[:1]


NAMED = CompiledQuery(_named, slug=str)
BEGUN_BY = CompiledQuery(_begun, study=int, person=str)


def study_of(slug: str) -> Study:
    """The study, and with it whether it was ever open.

    Raises:
        NotFound: there is no such study.
    """
    study = None if "\x00" in slug else NAMED.first(slug=slug)  # PostgreSQL cannot search for NUL
    if study is None:
        raise unknown_study()
    return study


def refuse_before_opening(study: Study) -> None:
    """Strangers do not learn which studies are being prepared: a study that was never open is not there for them.

    Args:
        study: as `study_of` gave it.

    Raises:
        NotFound: no stage of it was ever open. The same as if there were no such study.
    """
    if not study.was_opened:
        raise unknown_study()


def unknown_study() -> NotFound:
    return NotFound(_("There is no study at this address. Please check the link you were given."))


def new_open_person(panel: str = "open") -> PanelIds:
    """A random identity for a study that is open to anybody with the address: one for each browser."""
    return PanelIds(panel, secrets.token_hex(16))


def find_sitting(study: Study, ids: PanelIds) -> Sitting | None:
    """The sitting that these ids began, to continue it.

    Raises:
        EntryRefused: the person has taken part under another submission.
    """
    sitting = BEGUN_BY.first(study=study.pk, person=person_hash(study, ids))
    if sitting is None:
        return None
    known = sitting.respondent.panel_identity.submission_hash
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
    stage = admitting_stage(study)
    if stage is None:
        raise _closed()
    instruments.kind(study.instrument)  # Nobody is let in who could be shown nothing.
    if not has_free_place(stage):
        raise _full()
    return stage


def consent_text(study: Study, language: str) -> str:
    """The consent text as it is shown in that language."""
    return study.config_in(language).consent.text


def consent_sha256(study: Study, language: str) -> str:
    """Hash of the words that a person agrees to, stored with the consent."""
    return digest(consent_text(study, language))


@transaction.atomic
def begin_sitting(
    *,
    study: Study,
    ids: PanelIds,
    language: str = "en",
    simulated: bool = False,
    browser: str = "",
    address: str = "",
) -> Sitting:
    """Store consent and begin. Repeated by the same person and submission, it returns the same sitting; `is_new` says
    which of the two it was.

    Args:
        browser: the secret of the person's browser, if they came by one.
        address: the network address of a person who may be made up; empty for others, who are not counted.

    Raises:
        EntryRefused: closed, full, the person took part under another submission, or too many began from there.
    """
    # People begin one at a time under the stage's lock: so capacity and blocks of the randomisation are exact.
    admitting = admitting_stage(study)
    stage = locked_row(admitting.pk) if admitting else None
    if begun := find_sitting(study, ids):  # Or in another tab, which was faster.
        return begun
    if stage is None or stage.state != Stage.State.OPEN:
        raise _closed()
    stage.study = study
    instruments.kind(study.instrument)  # Nobody is let in who could be shown nothing.
    refuse_people_of_others(study, ids)
    if not has_free_place(stage):
        raise _full()
    now = timezone.now()
    _refuse_crowds(study, address, now)
    panels.of_study(study).admit(study, ids, now=now)
    respondent = insert(Respondent(study=study, is_simulated=simulated))
    store_identity(respondent=respondent, ids=ids, browser=browser)
    sitting = insert(
        Sitting(
            respondent=respondent,
            stage=stage,
            study_sha256=study.source_sha256,
            language=language,
            block=1,
            step=1,
            started_at=now,
            last_seen_at=now,
        )
    )
    insert(
        Consent(
            sitting=sitting,
            version=study.config.blocks[0].version,
            language=language,
            text_sha256=consent_sha256(study, language),
            given_at=now,
        )
    )
    draw_for_sitting(sitting, stage)
    if sitting.current_block.kind == "items" and not claim_booklet(sitting, now=now):
        raise _full()
    stage.arrivals += 1
    update(stage, "arrivals")
    sitting.is_new = True
    return sitting


def _refuse_crowds(study: Study, address: str, now: datetime) -> None:
    """Where people can be made up, one address begins a limited number of sittings an hour.

    Raises:
        EntryRefused: it has begun as many.
    """
    most = study.config.sitting.begins_per_address
    if not address or not most:
        return
    budget = Budget(BEGUN, most=most, seconds=BEGUN_SECONDS)
    if seconds := spend(budget, who=f"{study.pk} {address}", now=now):
        raise too_many_from_here(seconds)


def claim_booklet(sitting: Sitting, *, now: datetime) -> bool:
    """Give a sitting a free booklet and its slots; False if none is left. Needs the sitting's lock.

    Free booklets are tried in random order, each by one conditional update. If somebody else gets a booklet first, the
    next one is tried, so the stage is full only if no booklet is free.
    """
    # One statement for the stage as it is now and for whom the audit is about.
    row = Sitting.objects.select_related("respondent", "stage__study").defer(*LEFT_OUT).get(pk=sitting.pk)
    stage = row.stage
    if stage.state == Stage.State.FROZEN:
        return False
    while free := list(free_booklets(stage).order_by("kind", "number").values_list("pk", flat=True)[:CLAIM_WINDOW]):
        choice = random.choice(free)  # noqa: S311 - only spreads the claims
        if Booklet.objects.filter(pk=choice, claimed_at__isnull=True).update(claimed_at=now):
            sitting.booklet_id = choice
            sitting.save(update_fields=["booklet"])
            _record_claim(row, _assign_slots(sitting, now=now), now=now)
            return True
    return False


def _record_claim(row: Sitting, slots: Sequence[int], *, now: datetime) -> None:
    """The assignment as a hash, so that a slot that is given to somebody else later can be shown. `docs/audit.md`.

    With the assignment's own time, which is a little earlier than the entry's.
    """
    record(
        "claim_booklet",
        row.stage,
        via="web",
        assigned_at=now.astimezone(UTC).isoformat(),
        sha256=digest([row.stage.index, row.respondent.pseudonym, *slots]),
    )


def _assign_slots(sitting: Sitting, *, now: datetime) -> list[int]:
    """The numbers of the slots that the sitting was given, in their order."""
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
    return [slot.number for slot in slots]
