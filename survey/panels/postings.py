"""A study at a panel: its draft from the study file, published, paused, started and given more places.

Every row is stored before the panel is asked. Nothing is published without a spending cap, and the cost of all places
counts as spent before they are offered.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelCannot, PanelClient, PanelError, PostingAtPanel, PostingState
from survey.exceptions import NotFound, StateRefused
from survey.models import Posting, Stage, Study
from survey.services.base.auditing import record
from survey.services.base.locks import locked_stage
from survey.services.sittings.capacity import free_booklets
from survey.services.sittings.hourly_pay import refuse_low_pay

from .addresses import address_for_panel, public_root
from .asking import client_of, state_meant, state_of
from .money import locked_study, refuse_over_cap


class Move(StrEnum):
    """What can be done to a posting that was published."""

    PAUSE = "pause"  # Nobody else is sent; those inside finish.
    START = "start"  # After a pause, or when all places were used.
    STOP = "stop"  # Over for good.


def find_posting(study: Study, number: int | None = None) -> Posting:
    """The posting with that number (its primary key), or the newest one.

    Raises:
        NotFound: there is none.
    """
    found = study.postings.select_related("study__bank", "stage")
    posting = found.filter(pk=number).first() if number is not None else found.first()
    if posting is None:
        numbers = ", ".join(str(pk) for pk in study.postings.values_list("pk", flat=True))
        raise NotFound(f"{study.slug} has no such posting; it has: {numbers or 'none yet, draft one first'}")
    return posting


def draft(
    stage: Stage,
    *,
    places: int | None = None,
    reward: int | None = None,
    root: str | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Posting:
    """Make a draft at the panel; nobody sees it there yet. Called again after a failure, it continues the same draft.

    Args:
        reward: in cents, if people take longer than expected and the study file's reward is too low.

    Raises:
        StateRefused: the study has no panel that can be asked, or no reward, or the stage has no place.
        PayTooLow: an hour would be paid less than the panel's minimum.
        PanelError: the panel did not take it, or cannot be reached.
    """
    study = stage.study
    panel = study.config.panel
    if panels.get(panel.kind).client is None:
        raise StateRefused(f'panel.kind: {study.slug} is "{panel.kind}" and has no panel that it could be posted at')
    if panel.reward is None:
        raise StateRefused(f"panel.reward: {study.slug} names none, and the panel needs it")
    reward = reward or panel.reward
    refuse_low_pay(study, reward=reward)
    with client_of(panel.kind, client) as asked:
        if not asked.can("draft"):
            raise PanelCannot(
                f"{panel.kind} cannot draft a posting: make it on the panel's own pages, then take it up with "
                f"posting {study.slug} adopt"
            )
        return _draft(stage, asked, places=places, reward=reward, root=root, by=by, via=via)


def _draft(
    stage: Stage, client: PanelClient, *, places: int | None, reward: int, root: str | None, by: Any, via: str
) -> Posting:
    posting = _row(stage, places=places, reward=reward, by=by)
    if posting.external_id:
        return posting
    # If the panel's answer got lost, the draft is there already, under its internal name.
    found = next((one for one in client.drafts(posting.internal_name) if _is_our_own(one, posting.study)), None)
    if found is None:
        address = address_for_panel(posting.study, root or public_root())
        posting.draft = client.compose(posting, address=address)
        posting.save(update_fields=["draft"])
        found = client.draft(posting.draft)
    posting.external_id, posting.state = found.external_id[:64], found.state[:40]
    posting.save(update_fields=["external_id", "state"])
    _write_into_manifest(posting, client.facts(posting.draft))
    record("draft_posting", posting, by=by, via=via, external_id=posting.external_id, places=posting.places)
    return posting


def _is_our_own(found: PostingAtPanel, study: Study) -> bool:
    """Whether a draft with that name has this study's codes. Another installation (a rehearsal, or this one before its
    database was recreated) may have drafted a study of the same name, with its own codes and its own address."""
    return not found.codes or bool(found.codes & set(study.codes.values_list("code", flat=True)))


@transaction.atomic
def _row(stage: Stage, *, places: int | None, reward: int, by: Any) -> Posting:
    """The stage's posting that is not at the panel yet, or a new one."""
    study = locked_study(stage.study)
    unfinished = stage.postings.filter(external_id="").select_related("study", "stage").first()
    if unfinished is not None:
        return unfinished
    panel = study.config.panel
    wanted = places or panel.places or free_booklets(stage).count() or stage.config.sittings
    return Posting.objects.create(
        study=study,
        stage=stage,
        panel=panel.kind,
        internal_name=f"{study.slug[:60]} stage {stage.index} posting {study.postings.count() + 1}",
        reward=reward,
        currency=panel.currency,
        places=wanted,
        expected_minutes=study.config.expected_minutes,
        created_by=by if getattr(by, "pk", None) else None,
    )


@transaction.atomic
def _write_into_manifest(posting: Posting, facts: Mapping[str, Any]) -> None:
    """Record in the stage's manifest whom the panel may send and for what pay: it describes who gave the answers."""
    stage = locked_stage(posting.stage_id)
    others = [one for one in stage.manifest.get("postings", ()) if one["internal_name"] != posting.internal_name]
    stage.record(postings=[*others, {"internal_name": posting.internal_name, **facts}])
    stage.save(update_fields=["manifest"])


def adopt(
    stage: Stage,
    external_id: str,
    *,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Posting:
    """Take up a study that somebody made on the panel's own pages.

    Raises:
        StateRefused: it is somebody's posting already.
        PanelError: the panel does not know it.
    """
    study = stage.study
    panel = study.config.panel
    with client_of(panel.kind, client) as asked:
        found = asked.posting(external_id)
    with transaction.atomic():
        locked_stage(stage.pk)  # Lock the stage before the study, as everywhere.
        locked_study(study)
        if Posting.objects.filter(panel=panel.kind, external_id=external_id).exists():
            raise StateRefused("this study of the panel is a posting already")
        state = found.state[:40]
        posting = Posting.objects.create(
            study=study,
            stage=stage,
            panel=panel.kind,
            internal_name=f"{study.slug[:60]} stage {stage.index} posting {study.postings.count() + 1}",
            external_id=external_id,
            state=state,
            reward=found.reward or panel.reward or 1,
            currency=panel.currency,
            places=found.places or 1,
            expected_minutes=found.minutes or study.config.expected_minutes,
            created_by=by if getattr(by, "pk", None) else None,
            published_at=None if state_meant(panel.kind, state) == PostingState.DRAFT else timezone.now(),
        )
        _write_into_manifest(posting, found.facts)
        record("adopt_posting", posting, by=by, via=via, external_id=external_id)
    return posting


def publish(posting: Posting, *, client: PanelClient | None = None, by: Any = None, via: str = "command") -> Posting:
    """Show it to people. Its stage is open, its pay is enough, and its places fit under the study's cap.

    Raises:
        StateRefused, PayTooLow: one of these does not hold.
        PanelError: if the outcome is unknown, the money counts as committed until the panel is read again.
    """
    _refuse_without_draft(posting)
    stage = Stage.objects.get(pk=posting.stage_id)
    if stage.state != Stage.State.OPEN:
        raise StateRefused(f"stage {stage.index} is {stage.state}: open it first, or people come to a closed door")
    refuse_low_pay(posting.study, reward=posting.reward)
    with client_of(posting.panel, client) as asked:
        with transaction.atomic():
            study = locked_study(posting.study)
            refuse_over_cap(study, posting.reward * posting.places)
            if not Posting.objects.filter(pk=posting.pk, published_at__isnull=True).update(published_at=timezone.now()):
                raise StateRefused(f"{posting} was published before: pause or start it")
        try:
            state = asked.publish(posting.external_id)
        except PanelError as exc:
            if exc.outcome_is_known:
                Posting.objects.filter(pk=posting.pk).update(published_at=None)
            raise
    posting.refresh_from_db(fields=["published_at"])
    _remember(posting, state)
    record("publish_posting", posting, by=by, via=via, places=posting.places, cents=posting.committed)
    return posting


def change(
    posting: Posting, move: Move, *, client: PanelClient | None = None, by: Any = None, via: str = "command"
) -> Posting:
    """Pause, start or stop it.

    Raises:
        PanelError: the panel did not do it.
    """
    _refuse_without_draft(posting)
    with client_of(posting.panel, client) as asked:
        calls = {Move.PAUSE: asked.pause, Move.START: asked.start, Move.STOP: asked.stop}
        _remember(posting, calls[move](posting.external_id))
    record(f"{move}_posting", posting, by=by, via=via)
    return posting


def add_places(
    posting: Posting, more: int, *, client: PanelClient | None = None, by: Any = None, via: str = "command"
) -> Posting:
    """Offer this many places more; places can only be added. A posting whose places were all used is started again.

    Raises:
        StateRefused: not a positive number, or over the cap.
        PanelError: the panel did not do it.
    """
    _refuse_without_draft(posting)
    if more < 1:
        raise StateRefused("places: give a positive number: a panel only ever adds places")
    with client_of(posting.panel, client) as asked:
        with transaction.atomic():
            study = locked_study(posting.study)
            if posting.published_at is not None:
                refuse_over_cap(study, posting.reward * more)
            before = Posting.objects.get(pk=posting.pk).places
            Posting.objects.filter(pk=posting.pk).update(places=before + more)
        try:
            state = asked.set_places(posting.external_id, before + more)
        except PanelError as exc:
            if exc.outcome_is_known:
                Posting.objects.filter(pk=posting.pk, places=before + more).update(places=before)
            raise
        posting.refresh_from_db(fields=["places"])
        _remember(posting, state)
        record("add_places", posting, by=by, via=via, more=more, places=posting.places)
        if state_of(posting) == PostingState.AWAITING_REVIEW:
            change(posting, Move.START, client=asked, by=by, via=via)
    return posting


def leads_to_a_closed_door(posting: Posting) -> bool:
    """Whether the panel still sends people although the stage admits nobody."""
    return state_of(posting) == PostingState.ACTIVE and posting.stage.state != Stage.State.OPEN


def _refuse_without_draft(posting: Posting) -> None:
    if not posting.external_id:
        raise StateRefused(f"{posting} is not at the panel yet: draft it again")


def _remember(posting: Posting, state: str) -> None:
    """Take over the state in the panel's answer; an answer without one changes nothing."""
    posting.state = (state or posting.state)[:40]
    posting.save(update_fields=["state"])
