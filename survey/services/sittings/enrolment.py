"""From arrival to a sitting: who may begin, consent, conditions, and the booklet claimed once the checks are passed."""

import random
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.contracts import instruments, panels
from survey.contracts.panels import Panel, PanelIds
from survey.exceptions import EntryRefused, NotFound
from survey.models import (
    Assignment,
    Booklet,
    ChosenLevels,
    Consent,
    PanelIdentity,
    Posting,
    Respondent,
    Sitting,
    Slot,
    Stage,
    Study,
)
from survey.models.study import FILE_FIELDS
from survey.services.answers.conditions import GivenSlot, draw_for_items, draw_for_sitting
from survey.services.base.auditing import record
from survey.services.base.compiled import Expression, insert_where, run
from survey.services.base.hashing import digest
from survey.services.base.locks import count_arrival
from survey.services.base.rate_limits import Budget, spend

from . import waves
from .capacity import admitting_stage, free_booklets, free_place, has_free_place
from .identities import (
    find_respondent,
    free_identity,
    person_hash,
    store_identity,
    store_wave_identity,
    submission_hash,
)
from .quotas import nobody_fits
from .refusals import too_many_from_here

# Who claims takes any of so many; booklets were dealt at random already.
CLAIM_WINDOW = 50
SPREAD = 65537  # A prime: multiplied modulo it, numbers in order come in another order.
_BOOKLETS, _STAGES, _SLOTS = Booklet._meta.db_table, Stage._meta.db_table, Slot._meta.db_table
_SITTINGS, _IDENTITIES = Sitting._meta.db_table, PanelIdentity._meta.db_table
_ASSIGNMENTS, _RESPONDENTS = Assignment._meta.db_table, Respondent._meta.db_table
HAS_BEGUN = (
    f"EXISTS (SELECT 1 FROM {_IDENTITIES} JOIN {_SITTINGS} ON {_SITTINGS}.respondent_id = {_IDENTITIES}.respondent_id "  # noqa: S608 - names of tables
    f"WHERE {_IDENTITIES}.study_id = %s AND {_IDENTITIES}.person_hash = %s)"
)
LOCK = "-- lock"
CLAIM = f"""
    UPDATE {_BOOKLETS} SET claimed_at = %s
    WHERE claimed_at IS NULL AND id = (
        SELECT id FROM {_BOOKLETS}
        WHERE claimed_at IS NULL AND id IN (
            SELECT free.id FROM {_BOOKLETS} free JOIN {_STAGES} stage ON stage.id = free.stage_id
            WHERE free.stage_id = %s AND free.claimed_at IS NULL AND stage.state <> %s
            ORDER BY free.kind, free.number LIMIT {CLAIM_WINDOW}
        )
        ORDER BY (CAST(number AS bigint) * %s) %% {SPREAD} LIMIT 1 {LOCK}
    )
    RETURNING id, number, (SELECT pseudonym FROM {_RESPONDENTS} WHERE {_RESPONDENTS}.id = %s)
"""  # noqa: S608 - names of tables
ASSIGN = f"""
    INSERT INTO {_ASSIGNMENTS} (sitting_id, slot_id, position, state, assigned_at, completed_at)
    SELECT %s, id, ROW_NUMBER() OVER (ORDER BY position), %s, %s, NULL FROM {_SLOTS} WHERE booklet_id = %s
    RETURNING position, id, slot_id, {
    ", ".join(
        f"(SELECT slot.{name} FROM {_SLOTS} slot WHERE slot.id = {_ASSIGNMENTS}.slot_id)"
        for name in ("number", "position", "repeat_of_id")
    )
}
"""  # noqa: S608 - names of tables
BEGUN, BEGUN_SECONDS = "begun_by_address", 3600


def _named(slug: str) -> QuerySet[Study]:
    opened = Stage.objects.filter(study=OuterRef("pk"), opened_at__isnull=False).order_by()
    # The file is known by its hash.
    return Study.objects.defer(*FILE_FIELDS).annotate(was_opened=Exists(opened)).filter(slug=slug).order_by()  # type: ignore[no-redef]


def study_of(slug: str) -> Study:
    """The study, and with it whether it was ever open.

    Raises:
        NotFound: there is no such study.
    """
    study = None if "\x00" in slug else _named(slug).first()  # PostgreSQL cannot search for NUL
    if study is None:
        raise unknown_study()
    return study


def refuse_before_opening(study: Study, *, invited: bool) -> None:
    """Strangers do not learn which studies are being prepared: a study that was never open is not there for them. A
    test copy never is.

    Args:
        study: as `study_of` gave it.
        invited: to a test copy, by a signed address of it or as a simulated person.

    Raises:
        NotFound: no stage of it was ever open, or it is a test copy. The same as if there were no such study.
    """
    if not (invited if study.is_test else study.was_opened):
        raise unknown_study()


def unknown_study() -> NotFound:
    return NotFound(_("There is no study at this address. Please check the link you were given."))


def new_open_person(panel: str = "open") -> PanelIds:
    """A random identity for a study that is open to anybody with the address: one for each browser."""
    return PanelIds(panel, secrets.token_hex(16))


def find_sitting(study: Study, ids: PanelIds) -> Sitting | None:
    """The sitting that these ids began, to continue it; None for somebody who has begun none, or who comes again after
    they found no free place.

    Raises:
        EntryRefused: the person has taken part under another submission.
    """
    return _to_go_on_with(study, _newest(study, ids), ids)


def _newest(study: Study, ids: PanelIds) -> Sitting | None:
    identity = "respondent__panel_identity"
    of_person = {f"{identity}__study": study, f"{identity}__person_hash": person_hash(study, ids)}
    return Sitting.objects.filter(**of_person).select_related(identity).order_by("-wave").first()


def _to_go_on_with(study: Study, sitting: Sitting | None, ids: PanelIds) -> Sitting | None:
    if sitting is None or _comes_again(study, sitting, ids):
        return None
    if study.config.waves:
        return _of_this_wave(study, sitting, ids)
    known = sitting.respondent.panel_identity.submission_hash
    if known and known != submission_hash(study, ids):
        raise _taken_part()
    return sitting


def _comes_again(study: Study, sitting: Sitting, ids: PanelIds) -> bool:
    """Whether the person of this sitting found no free place in it and comes another time: with another submission, or
    to another stage. In a later wave nobody does: they could not be the same respondent."""
    if sitting.wave > 1 or sitting.state != Sitting.State.TURNED_AWAY or not sitting.found_no_place:
        return False
    if sitting.respondent.panel_identity.submission_hash:
        return waves.submission_is_another(study, sitting, ids)
    stage = admitting_stage(study)
    return stage is not None and stage.pk != sitting.stage_id and waves.wave_of(study, stage) == 1


def _of_this_wave(study: Study, sitting: Sitting, ids: PanelIds) -> Sitting | None:
    """The sitting, if it is what these ids began; None for somebody who comes back for a later wave. A sitting that is
    not over is gone on with first."""
    if waves.is_of_this_visit(study, sitting, ids):
        return sitting
    if sitting.is_over and (stage := admitting_stage(study)) and waves.wave_of(study, stage) > sitting.wave:
        return None
    if waves.submission_is_another(study, sitting, ids):
        raise _taken_part()
    return sitting


def _taken_part() -> EntryRefused:
    return EntryRefused(
        _("Our records show that you have taken part in this study before. It can be taken only once."),
        code="already_taken_part",
    )


def refuse_out_of_wave(study: Study, ids: PanelIds) -> None:
    """Of somebody who has no sitting in the wave that is open.

    Raises:
        EntryRefused: a later wave is open, and they did not finish the one before, or come too early or too late.
    """
    stage = admitting_stage(study) if study.config.waves else None
    if stage is None or (wave := waves.wave_of(study, stage)) == 1:
        return
    waves.refuse_who_is_not_due(study, wave, _newest(study, ids), now=timezone.now())


def refuse_people_of_others(study: Study, ids: PanelIds) -> None:
    """
    Raises:
        EntryRefused: the person took part in a study whose people this one leaves out.
    """
    slugs = study.config.panel.exclude_people_of
    others = Study.objects.filter(slug__in=slugs).only("pk").order_by() if slugs else ()
    respondent = find_respondent(others, ids)
    if respondent is not None and not all(sitting.found_no_place for sitting in respondent.sittings.all()):
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
    if not has_free_place(stage) or nobody_fits(stage):
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
    levels: Mapping[str, str] | None = None,
) -> Sitting:
    """Store consent and begin. Repeated by the same person and submission, it returns the same sitting; `is_new` says
    which of the two it was.

    Args:
        browser: the secret of the person's browser, if they came by one.
        address: the network address of a person who may be made up; empty for others, who are not counted.
        levels: of a test copy's conditions, chosen by who walks through it; the others are drawn.

    Raises:
        EntryRefused: closed, full, the person took part under another submission, or too many began from there.
    """
    # People begin one at a time under the stage's lock: so capacity and blocks of the randomisation are exact.
    stage = count_arrival(study)
    if stage is not None and (wave := waves.wave_of(study, stage)) > 1:
        return _begin_again(
            stage, study, ids, wave=wave, language=language, simulated=simulated, browser=browser, levels=levels
        )
    panel, respondent = panels.of_study(study), Respondent(study=study, is_simulated=simulated)
    # It is asked before there is a row of the person. Of who walks through a test copy it knows nothing.
    panel_decides = type(panel).admit is not Panel.admit and (simulated or not study.is_test)
    before: Sitting | None = None

    def admitted() -> bool:
        if stage is None:
            return False
        sql, values = _may_begin(stage, study, ids)
        if panel_decides:
            return bool(run(f"SELECT {sql}", *values)[0][0])
        return insert_where(respondent, (sql, values)) is not None

    may_begin = admitted()
    if not may_begin and (before := _newest(study, ids)):  # Or in another tab, which was faster.
        if begun := _to_go_on_with(study, before, ids):
            transaction.set_rollback(True)  # Nobody has arrived.
            return begun
        respondent.came_before = before.respondent
        free_identity(before.respondent)  # Where the person does not begin after all, all of it is rolled back.
        may_begin = admitted()
    if stage is None:
        raise _closed()
    instruments.kind(study.instrument)  # Nobody is let in who could be shown nothing.
    if simulated and (why := why_no_simulated_people(study)):
        raise EntryRefused(why, code="not_for_simulated_people")
    refuse_people_of_others(study, ids)
    if not may_begin:
        raise _full()
    now = timezone.now()
    _refuse_crowds(study, address, now)
    if panel_decides:
        if before is None:
            panel.admit(study, ids, now=now)
        respondent.save(force_insert=True)
    store_identity(respondent=respondent, ids=ids, browser=browser)
    return _began(respondent, stage, study, wave=1, language=language, levels=levels, now=now)


def _begin_again(
    stage: Stage,
    study: Study,
    ids: PanelIds,
    *,
    wave: int,
    language: str,
    simulated: bool,
    browser: str,
    levels: Mapping[str, str] | None,
) -> Sitting:
    """Begin a later wave as the same respondent. The panel let the person in when they came first (`Panel.admit`)."""
    if begun := find_sitting(study, ids):
        transaction.set_rollback(True)  # Nobody has arrived.
        return begun
    instruments.kind(study.instrument)
    now = timezone.now()
    before = waves.refuse_who_is_not_due(study, wave, _newest(study, ids), now=now)
    if before.respondent.is_simulated != simulated and not study.is_test:
        raise EntryRefused("real and simulated people do not stand in for each other", code="not_for_simulated_people")
    refuse_people_of_others(study, ids)
    if not has_free_place(stage):
        raise _full()
    respondent = before.respondent
    respondent.study = study
    store_wave_identity(respondent=respondent, wave=wave, ids=ids, browser=browser)
    return _began(respondent, stage, study, wave=wave, language=language, levels=levels, now=now)


def _began(
    respondent: Respondent,
    stage: Stage,
    study: Study,
    *,
    wave: int,
    language: str,
    levels: Mapping[str, str] | None,
    now: datetime,
) -> Sitting:
    """The sitting with its consent, its levels and, where the items come first, its booklet.

    Raises:
        EntryRefused: no booklet is left.
    """
    sitting = Sitting.objects.create(
        respondent=respondent,
        wave=wave,
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
    if levels and study.is_test:
        ChosenLevels.objects.create(sitting=sitting, levels=dict(levels))
    draw_for_sitting(sitting, stage)
    if sitting.current_block.kind == "items":
        if not claim_booklet(sitting, now=now):
            raise _full()
        sitting.save(update_fields=["booklet"])
    sitting.is_new = True
    return sitting


def why_no_simulated_people(study: Study) -> str:
    """Why simulated people may not take part in this study itself; empty if they may. Where one begins, it is asked
    under the stage's lock, which a posting takes too before it is drafted or published."""
    if study.is_test:
        return ""
    instead = f"run simulate {study.slug} --test, which sends them through its test copy"
    if Posting.objects.filter(study=study).exists():
        return f"{study.slug} has a posting: simulated people would take real people's places; {instead}"
    if Respondent.objects.filter(study=study, is_simulated=False).exists():
        return f"real people have taken part in {study.slug}, and simulated answers would be among theirs; {instead}"
    return ""


def _may_begin(stage: Stage, study: Study, ids: PanelIds) -> Expression:
    """Whether the stage has a free place and these ids have begun no sitting, for a statement under the stage's lock
    and later than it: so it knows of everybody who has begun."""
    free, in_stage = free_place(stage)
    return f"{free} AND NOT {HAS_BEGUN}", [*in_stage, study.pk, person_hash(study, ids)]


def _refuse_crowds(study: Study, address: str, now: datetime) -> None:
    """Where people can be made up, one address begins a limited number of sittings per hour.

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
    """Give a sitting a free booklet and its slots; False if none is left. Needs the sitting's lock. The caller stores
    the sitting's `booklet`.

    A booklet is claimed by one conditional update, which passes over those that others are about to claim. Where it
    finds none, it waits for one of them, since that one may be given back. So the stage is full only if no booklet is
    free.
    """
    # Nothing is claimed in a frozen stage, as it is now.
    free = free_booklets(sitting.stage).exclude(stage__state=Stage.State.FROZEN)
    claimed = _claim_one(sitting, now, pass_over=connection.features.has_select_for_update_skip_locked)
    while not claimed and free.exists():
        # Without a lock inside the statement: PostgreSQL would keep those of booklets that others were faster to claim,
        # and two who wait would wait for each other.
        claimed = _claim_one(sitting, now, pass_over=False)
    if not claimed:
        return False
    ((sitting.booklet_id, booklet, pseudonym),) = claimed
    _record_claim(sitting, pseudonym, _assign_slots(sitting, booklet=booklet, now=now), now=now)
    return True


def _claim_one(sitting: Sitting, now: datetime, *, pass_over: bool) -> list[tuple[Any, ...]]:
    """Claim one of the first free booklets of the stage; its key, its number and the respondent's pseudonym. Nothing if
    none is free, or somebody else got it first."""
    sql = CLAIM.replace(LOCK, "FOR NO KEY UPDATE SKIP LOCKED" if pass_over else "")
    multiplier = random.randrange(1, SPREAD)  # noqa: S311 - only spreads the claims
    return run(sql, now, sitting.stage_id, Stage.State.FROZEN.value, multiplier, sitting.respondent_id)


def _record_claim(sitting: Sitting, pseudonym: str, slots: Sequence[int], *, now: datetime) -> None:
    """The assignment as a hash, so that a slot that is given to somebody else later can be shown. `docs/audit.md`.

    With the assignment's own time, which is a little earlier than the entry's.
    """
    record(
        "claim_booklet",
        sitting.stage,
        via="web",
        assigned_at=now.astimezone(UTC).isoformat(),
        sha256=digest([sitting.stage.index, pseudonym, *slots]),
    )


def _assign_slots(sitting: Sitting, *, booklet: int, now: datetime) -> list[int]:
    """The numbers of the slots that the sitting was given, in their order.

    Args:
        booklet: the booklet's number in its stage.
    """
    rows = run(ASSIGN, sitting.pk, Assignment.State.LIVE.value, now, sitting.booklet_id)
    given_slots = [GivenSlot(*row) for row in sorted(rows)]
    for given_slot in given_slots:
        # Somebody who came back may have taken slots out of a make-up booklet; the others move up.
        if given_slot.in_booklet != given_slot.position:
            Slot.objects.filter(pk=given_slot.slot).update(position=given_slot.position)
    draw_for_items(given_slots, sitting, booklet=booklet)
    return [given_slot.number for given_slot in given_slots]
