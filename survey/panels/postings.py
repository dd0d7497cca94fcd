"""A study at a panel: its draft from the study file, published, paused, started and given more places.

Every row is stored before the panel is asked. Nothing is published without a spending cap, and the cost of all places
counts as spent before they are offered.

A draft, publishing and more places are first stored as `pending`, under the lock of the study's row; then the panel is
called, outside of any transaction; then what it answered is stored. Where a process dies in between, or an answer gets
lost, `pending` stays, and `take_over` ends it: the panel's own view says what became of the call.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelCannot, PanelClient, PanelError, PanelRefused, PostingAtPanel, PostingState
from survey.exceptions import NotFound, StateRefused
from survey.fees import FeeRates
from survey.figures.words import date_and_time, money
from survey.models import Posting, Stage, Study
from survey.services.base.auditing import record
from survey.services.base.locks import locked_stage
from survey.services.sittings.capacity import free_booklets
from survey.services.sittings.hourly_pay import refuse_low_pay

from .addresses import address_for_panel, public_root
from .asking import at_time, client_of, longest_call, state_meant, state_of
from .money import locked_posting, locked_study, refuse_another_sum, refuse_other_currency, refuse_over_cap

Pending = Posting.Pending
# What calls and readings of the panel change.
CHANGING = (
    *("external_id", "state", "reward", "places", "screen_outs", "draft", "published_at", "pending", "pending_at"),
    *("changed_at", "read_at", "error", "paused_at"),
    *("fee_rate", "vat_rate", "fixed_fee", "group", "panel_facts", "publish_at"),
)


class Move(StrEnum):
    """What can be done to a posting that was published."""

    PAUSE = "pause"  # Nobody else is sent; those inside finish.
    START = "start"  # After a pause.
    STOP = "stop"  # Over for good.


def find_posting(study: Study, number: int | None) -> Posting:
    """The posting with that number (its primary key), or the newest one.

    Raises:
        NotFound: there is none.
    """
    postings = study.postings.select_related("study__bank", "stage")
    posting = postings.filter(pk=number).first() if number is not None else postings.first()
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
        StateRefused: the study has no panel that can be asked, or no reward, or the stage has no place, or the panel
            counts in another currency.
        PayTooLow: an hour would be paid less than the panel's minimum.
        PanelError: the panel did not take it, or cannot be reached.
    """
    study = stage.study
    refuse_without_real_people(study)
    panel = study.config.panel
    if panels.get(panel.kind).client is None:
        raise StateRefused(f'panel.kind: {study.slug} is "{panel.kind}" and has no panel that it could be posted at')
    if panel.reward is None:
        raise StateRefused(f"panel.reward: {study.slug} names none, and the panel needs it")
    refuse_low_pay(study, reward=reward or panel.reward)
    with client_of(panel.kind, client) as asked:
        if not asked.can("draft"):
            raise PanelCannot(
                f"{panel.kind} cannot draft a posting: make it on the panel's own pages, then take it up with "
                f"posting {study.slug} adopt"
            )
        refuse_other_currency(study, _currency_of_wallet(asked))
        posting = _claimed_row(stage, places=places, reward=reward, at=timezone.now(), by=by)
        try:
            _join_group(posting, asked)
            at_panel = _draft_at_panel(posting, asked, root=root)
            _refuse_draft_in_other_currency(posting, at_panel)
            facts = asked.facts(posting.draft) if posting.draft else at_panel.facts
            return _take_up(posting, at_panel, facts, fees_at(posting, asked, at_panel.external_id), by=by, via=via)
        except Exception:
            # The call is over. Whether the panel made the draft, `posting.draft` says: it is kept where it may have.
            _end(posting, Pending.DRAFT)
            raise


@transaction.atomic
def _claimed_row(stage: Stage, *, places: int | None, reward: int | None, at: datetime, by: Any) -> Posting:
    """The stage's posting that is not at the panel yet, or a new one, claimed for drafting it.

    Raises:
        StateRefused: somebody else drafts it just now, or a draft with other places or pay may be at the panel.
    """
    study = _locked_for_real_people(stage.study)
    panel = study.config.panel
    made = {
        "places": places or places_of(stage),
        "reward": reward or panel.reward,
        "screen_outs": panel.screen_outs,
        "currency": panel.currency,
        "expected_minutes": study.config.expected_minutes,
    }
    row = stage.postings.filter(external_id="").first()
    if row is None:
        return Posting.objects.create(
            study=study,
            stage=stage,
            wave=stage.wave,
            panel=panel.kind,
            internal_name=f"{study.slug[:60]} stage {stage.index} posting {study.postings.count() + 1}",
            created_by=by if getattr(by, "pk", None) else None,
            pending=Pending.DRAFT,
            pending_at=at,
            **made,
        )
    if row.pending_at is not None and at - row.pending_at < longest_call(row.panel):
        raise StateRefused(
            f"{row} is being drafted since {at_time(row.pending_at)}, or that broke off: draft it again after "
            f"{at_time(row.pending_at + longest_call(row.panel))}"
        )
    if row.draft:
        # It may be at the panel already, as it was sent.
        for name, asked in (("places", places), ("reward", reward)):
            if asked and asked != getattr(row, name):
                raise StateRefused(
                    f"{name}: {row} may be at the panel already with {getattr(row, name)}, since the answer to an "
                    f"earlier draft got lost: draft it again without --{name} to find it there"
                )
        made = {"currency": panel.currency}
    unchanged = Posting.objects.filter(pk=row.pk, external_id="", pending=row.pending, pending_at=row.pending_at)
    if not unchanged.update(pending=Pending.DRAFT, pending_at=at, **made):
        raise StateRefused(f"{row} was taken up by somebody else: look at it again")
    return Posting.objects.select_related("study", "stage").get(pk=row.pk)


def _join_group(posting: Posting, client: PanelClient) -> None:
    """Find or make the group into which the posting's people come, and of a later wave that of who is invited."""
    panel = posting.study.config.panel
    if posting.wave > 1 and not posting.invited_group and (name := panels.get(posting.panel).invited_group(posting)):
        posting.invited_group = client.group(name, project=panel.project or "")[:64]
        if not _mine(posting, Pending.DRAFT).update(invited_group=posting.invited_group):
            raise StateRefused(f"{posting} was taken up by somebody else: look at it again")
    name = panel.participant_group or panels.get(posting.panel).own_group(posting.study.config)
    if not name or posting.group:
        return
    if not client.can("group"):
        raise PanelCannot(f"{posting.panel} keeps no groups: leave out panel.participant_group")
    try:
        posting.group = client.group(name, project=panel.project or "")[:64]
    except PanelRefused:
        if panel.participant_group:
            raise
        return  # Nobody asked for one: the list of earlier studies stands in for it.
    if not _mine(posting, Pending.DRAFT).update(group=posting.group):
        raise StateRefused(f"{posting} was taken up by somebody else: look at it again")


def fees_at(posting: Posting, client: PanelClient, external_id: str) -> FeeRates:
    """What the panel takes of this posting; the most that it ever takes, where it cannot be asked now."""
    if not client.can("fees"):
        return panels.find(posting.panel).highest_fees
    try:
        return client.fees(external_id or posting.external_id)
    except PanelError:
        return panels.find(posting.panel).highest_fees


def _columns(fees: FeeRates) -> dict[str, int]:
    return {"fee_rate": fees.fee, "vat_rate": fees.vat, "fixed_fee": fees.fixed}


def refuse_over_wallet(posting: Posting, cents: int, client: PanelClient) -> None:
    """The panel refuses by itself what its wallet does not hold; this says so before, with the sums. Where the balance
    cannot be read, the panel alone decides.

    Raises:
        StateRefused: the account has less, or counts in another currency.
    """
    if not client.can("wallet"):
        return
    try:
        wallet = client.wallet()
    except PanelError:
        return
    refuse_other_currency(posting.study, wallet.currency, posting.currency)
    if wallet.available < cents:
        raise StateRefused(
            f"the account at the panel has {money(wallet.available, posting.currency)}, and {money(cents)} are "
            "needed, its fees and VAT included: top it up there; nothing was done"
        )


def _currency_of_wallet(client: PanelClient) -> str:
    """In which the account counts; empty where it does not say."""
    try:
        return client.wallet().currency if client.can("wallet") else ""
    except PanelError:
        return ""


def _refuse_draft_in_other_currency(posting: Posting, at_panel: PostingAtPanel) -> None:
    """Nobody sees the draft, and it costs nothing: it stays at the panel until somebody deletes it there."""
    try:
        refuse_other_currency(posting.study, at_panel.currency, posting.currency)
    except StateRefused:
        _mine(posting, Pending.DRAFT).update(draft={})  # Once the file is changed, another one is made by it.
        raise


def _draft_at_panel(posting: Posting, client: PanelClient, *, root: str | None) -> PostingAtPanel:
    # If the panel's answer got lost, the draft is there already, under its internal name.
    taken = set(Posting.objects.filter(panel=posting.panel).values_list("external_id", flat=True))
    for draft in client.drafts(posting.internal_name):
        if draft.external_id not in taken and _is_our_own(draft, posting) and _is_as_asked(draft, posting):
            return draft
    posting.draft = client.compose(posting, address=address_for_panel(posting.study, root or public_root()))
    if not _mine(posting, Pending.DRAFT).update(draft=posting.draft):
        raise StateRefused(f"{posting} was taken up by somebody else: look at it again")
    try:
        return client.draft(posting.draft)
    except PanelError as exc:
        if exc.outcome_is_known:
            _mine(posting, Pending.DRAFT).update(draft={})
        raise


def _is_our_own(at_panel: PostingAtPanel, posting: Posting) -> bool:
    """Whether a draft with that name has our mark; without a mark, whether it has this study's codes. Another
    installation (a rehearsal, or this one before its database was recreated) may have drafted a study of the same name,
    with its own codes and its own address."""
    if at_panel.mark:
        return at_panel.mark == panels.get(posting.panel).mark(posting)
    return not at_panel.codes or bool(at_panel.codes & set(posting.study.codes.values_list("code", flat=True)))


def _is_as_asked(at_panel: PostingAtPanel, posting: Posting) -> bool:
    """Whether it has the posting's pay and places. One that was refused for its currency may have others."""
    return at_panel.reward in (None, posting.reward) and at_panel.places in (None, posting.places)


@transaction.atomic
def _take_up(
    posting: Posting, at_panel: PostingAtPanel, facts: Mapping[str, Any], fees: FeeRates, *, by: Any, via: str
) -> Posting:
    """Store where the draft is at the panel, together with the manifest: neither is there without the other.

    Raises:
        StateRefused: somebody else took it up meanwhile.
    """
    locked_stage(posting.stage_id)  # Lock the stage before the study, as everywhere.
    locked_study(posting.study)
    now = timezone.now()
    state = at_panel.state[:40]
    is_somebodys = Posting.objects.filter(panel=posting.panel, external_id=at_panel.external_id[:64]).exists()
    if is_somebodys or not _end(
        posting,
        Pending.DRAFT,
        external_id=at_panel.external_id[:64],
        state=state,
        changed_at=now,
        published_at=None if state_meant(posting.panel, state) == PostingState.DRAFT else now,
        **_columns(fees),
    ):
        raise StateRefused(
            f"{posting} was taken up by somebody else. If the panel has a second draft {posting.internal_name!r}, "
            "delete it there"
        )
    posting.refresh_from_db(fields=CHANGING)
    _write_into_manifest(posting, facts)
    record("draft_posting", posting, by=by, via=via, external_id=posting.external_id, places=posting.places)
    return posting


@transaction.atomic
def _write_into_manifest(posting: Posting, facts: Mapping[str, Any]) -> None:
    """Record in the stage's manifest whom the panel may send and for what pay: it describes who gave the answers."""
    stage = locked_stage(posting.stage_id)
    others = [entry for entry in stage.manifest.get("postings", ()) if entry["internal_name"] != posting.internal_name]
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
    refuse_without_real_people(study)
    panel = study.config.panel
    with client_of(panel.kind, client) as asked:
        at_panel = asked.posting(external_id)
        fees = fees_at(Posting(study=study, panel=panel.kind), asked, external_id)
    refuse_other_currency(study, at_panel.currency)
    with transaction.atomic():
        _locked_for_real_people(study)
        if Posting.objects.filter(panel=panel.kind, external_id=external_id).exists():
            raise StateRefused("this study of the panel is a posting already")
        state = at_panel.state[:40]
        posting = Posting.objects.create(
            study=study,
            stage=stage,
            wave=stage.wave,
            panel=panel.kind,
            internal_name=f"{study.slug[:60]} stage {stage.index} posting {study.postings.count() + 1}",
            external_id=external_id,
            state=state,
            reward=at_panel.reward or panel.reward or 1,
            currency=panel.currency,
            places=at_panel.places or 1,
            screen_outs=at_panel.screen_outs or 0,
            expected_minutes=at_panel.minutes or study.config.expected_minutes,
            created_by=by if getattr(by, "pk", None) else None,
            **_columns(fees),
            published_at=None if state_meant(panel.kind, state) == PostingState.DRAFT else timezone.now(),
        )
        _write_into_manifest(posting, at_panel.facts)
        record("adopt_posting", posting, by=by, via=via, external_id=external_id)
    return posting


def publish(
    posting: Posting,
    *,
    cents: int | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Posting:
    """Show it to people. Its stage is open, its pay is enough, and its places fit under the study's cap.

    Args:
        cents: what somebody agreed that it may cost; None: anything under the cap.

    Raises:
        StateRefused, PayTooLow: one of these does not hold; or it costs another sum by now.
        PanelError: if the outcome is unknown, the money counts as committed until the panel is read again.
    """
    _refuse_without_draft(posting)
    with client_of(posting.panel, client) as asked:
        ask_price(posting, client=asked)
        _refuse_dear(posting, asked)
        row = _intend_to_publish(posting, cents, by=by, via=via)
        try:
            state = asked.publish(row.external_id)
        except PanelError as exc:
            if _was_not_done(exc, row, asked) and _end(row, Pending.PUBLISH, published_at=None):
                record("publish_posting_failed", row, by=by, via=via, why=exc.message)
            raise
    # Published, even if a reading has taken it for a draft meanwhile.
    _answered(row, Pending.PUBLISH, state, published_at=Coalesce(F("published_at"), row.pending_at))
    posting.refresh_from_db(fields=CHANGING)
    return posting


def ask_price(posting: Posting, *, client: PanelClient | None = None) -> None:
    """Ask the panel what the posting costs now, and store it: its fees, and the pay and places that somebody raised on
    its own pages. So a page names the sum that is committed next.

    Raises:
        StateRefused: the panel counts in another currency.
        PanelError: it could not be asked.
    """
    with client_of(posting.panel, client) as asked:
        posting.refresh_from_db(fields=CHANGING)
        at_panel = asked.posting(posting.external_id)
        refuse_other_currency(posting.study, at_panel.currency, posting.currency)
        facts = posting.panel_facts
        try:
            fees = asked.fees(posting.external_id)
        except PanelError:
            fees, facts = (
                panels.find(posting.panel).highest_fees,
                {**facts, "fees": False},
            )  # A later reading asks again.
    changes: dict[str, Any] = {
        name: Greatest(F(name), value)
        for name, value in (
            ("reward", at_panel.reward),
            ("places", at_panel.places),
            ("screen_outs", at_panel.screen_outs),
        )
        if value is not None and value > getattr(posting, name)
    }
    if fees != posting.fees and (posting.published_at is None or posting.cost_with(fees) > posting.cost):
        # Of places that were offered before, the dearer fees count: nobody here knows by which they are charged.
        changes |= {"panel_facts": facts, **_columns(fees)}
    if changes:
        Posting.objects.filter(pk=posting.pk).update(**changes)
        posting.refresh_from_db(fields=CHANGING)


def _refuse_dear(posting: Posting, client: PanelClient) -> None:
    """Ask for the balance only where nothing of our own speaks against publishing."""
    row = Posting.objects.select_related("stage", "study").get(pk=posting.pk)
    _refuse_to_publish(row)
    refuse_over_wallet(row, row.cost, client)


def _was_not_done(error: PanelError, posting: Posting, client: PanelClient) -> bool:
    """Whether the panel has certainly not published it. It also refuses a request that came twice on the way, of which
    it has carried out the first: so its own view is asked for before the money counts as free."""
    if not error.outcome_is_known:
        return False
    try:
        return state_meant(posting.panel, client.posting(posting.external_id).state) == PostingState.DRAFT
    except PanelError:
        return False


@transaction.atomic
def _intend_to_publish(
    posting: Posting, cents: int | None, *, by: Any, via: str, at: datetime | None = None
) -> Posting:
    row = locked_posting(posting)
    _refuse_to_publish(row)
    refuse_another_sum(row.cost, cents, row.currency)
    now = timezone.now()
    _claim(row, Pending.PUBLISH, now, published_at=now, publish_at=at)
    when = {"at": at.isoformat()} if at else {}
    record("publish_posting", row, by=by, via=via, places=row.places, cents=row.cost, **when)
    return row


def _refuse_to_publish(row: Posting) -> None:
    _refuse_while_pending(row)
    if row.published_at is not None:
        raise StateRefused(f"{row} was published before: pause or start it")
    if row.stage.state != Stage.State.OPEN:
        closed = f"stage {row.stage.index} is {row.stage.state}"
        raise StateRefused(f"{closed}: open it first, or nobody who comes can begin")
    refuse_low_pay(row.study, reward=row.reward)
    refuse_over_cap(row.study, row.cost)


def schedule(
    posting: Posting,
    at: datetime,
    *,
    cents: int | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Posting:
    """Have the panel show it to people from then on. Its money counts as spent from now on, as where it is published.

    Args:
        cents: as `publish`.

    Raises:
        StateRefused, PayTooLow: as `publish`; or the time is past.
        PanelError: as `publish`.
    """
    _refuse_without_draft(posting)
    if at <= timezone.now():
        raise StateRefused(f"at: {date_and_time(at)} is past: name a later time, or publish it now")
    with client_of(posting.panel, client) as asked:
        if not asked.can("schedule"):
            raise PanelCannot(f"{posting.panel} cannot schedule a posting: publish it when the time has come")
        ask_price(posting, client=asked)
        _refuse_dear(posting, asked)
        row = _intend_to_publish(posting, cents, by=by, via=via, at=at)
        try:
            state = asked.schedule(row.external_id, at)
        except PanelError as exc:
            if _was_not_done(exc, row, asked) and _end(row, Pending.PUBLISH, published_at=None, publish_at=None):
                record("publish_posting_failed", row, by=by, via=via, why=exc.message)
            raise
    _answered(row, Pending.PUBLISH, state, published_at=Coalesce(F("published_at"), row.pending_at))
    posting.refresh_from_db(fields=CHANGING)
    return posting


def unschedule(posting: Posting, *, client: PanelClient | None = None, by: Any = None, via: str = "command") -> Posting:
    """Take a schedule back: the posting is a draft again, and costs nothing.

    Raises:
        StateRefused: it is not scheduled.
        PanelError: the panel did not do it; a later reading says what it is.
    """
    _refuse_without_draft(posting)
    if state_of(posting) != PostingState.SCHEDULED:
        raise StateRefused(f"{posting} is {posting.state or 'not at the panel'}: only what is scheduled is taken back")
    with client_of(posting.panel, client) as asked:
        state = asked.unschedule(posting.external_id)
    _remember(posting, state, published_at=None, publish_at=None)
    posting.refresh_from_db(fields=CHANGING)
    record("unschedule_posting", posting, by=by, via=via)
    return posting


def change(
    posting: Posting, move: Move, *, client: PanelClient | None = None, by: Any = None, via: str = "command"
) -> Posting:
    """Pause, start or stop it.

    Raises:
        StateRefused: it is to be started and was never published: its places count as spent from then on.
        PanelError: the panel did not do it.
    """
    _refuse_without_draft(posting)
    if move == Move.START and not Posting.objects.filter(pk=posting.pk, published_at__isnull=False).exists():
        raise StateRefused(f"{posting} was never published: publish it")
    with client_of(posting.panel, client) as asked:
        calls = {Move.PAUSE: asked.pause, Move.START: asked.start, Move.STOP: asked.stop}
        paused_at = timezone.now() if move == Move.PAUSE else None
        _remember(posting, calls[move](posting.external_id), paused_at=paused_at)
    posting.refresh_from_db(fields=CHANGING)
    record(f"{move}_posting", posting, by=by, via=via)
    return posting


def store_pause(posting: int, state: str, *, at: datetime, why: str) -> None:
    """Store that the watch paused the posting with that key at the panel. What the panel answered later stands."""
    with transaction.atomic():
        older = Q(changed_at__isnull=True) | Q(changed_at__lt=at)
        said = {"state": state[:40]} if state else {}
        Posting.objects.filter(older, pk=posting).update(changed_at=at, paused_at=at, **said)
        paused = Posting.objects.select_related("stage__study").get(pk=posting)
        record("pause_posting", paused, via="watch", why=why, paused_at=at.isoformat())


def postings_in(state: PostingState) -> QuerySet[Posting]:
    """The postings that are in this state, by what the panel last said."""
    at_panels = Posting.objects.exclude(external_id="").order_by()
    words = at_panels.values_list("panel", "state").distinct()
    meant = [Q(panel=panel, state=text) for panel, text in words if state_meant(panel, text) == state]
    return Posting.objects.filter(reduce(or_, meant)) if meant else Posting.objects.none()


def add_places(
    posting: Posting,
    more: int,
    *,
    cents: int | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Posting:
    """Offer this many places more; places can only be added.

    Args:
        cents: what somebody agreed that they may cost; None: anything under the cap.

    Raises:
        StateRefused: not a positive number, or over the cap; or they cost another sum by now.
        PanelError: the panel did not do it. If the outcome is unknown, they count until the panel is read again.
    """
    _refuse_without_draft(posting)
    if more < 1:
        raise StateRefused("places: give a positive number: a panel only ever adds places")
    with client_of(posting.panel, client) as asked:
        ask_price(posting, client=asked)
        refuse_over_wallet(posting, cost_of_more(posting, more), asked)
        row = _intend_to_add(posting, more, cents, by=by, via=via)
        try:
            state = asked.set_places(row.external_id, row.places)
        except PanelError as exc:
            if exc.outcome_is_known:
                _take_back(row, more)
                record("add_places_failed", row, by=by, via=via, why=exc.message)
            raise
        # The panel makes it active again by itself if all places were used, and leaves it paused if somebody paused it.
        _answered(row, Pending.PLACES, state, places=Greatest(F("places"), row.places))
    posting.refresh_from_db(fields=CHANGING)
    return posting


def cost_of_more(posting: Posting, more: int) -> int:
    """What so many places more would cost, in cents, with fee and VAT."""
    return posting.cost_with(posting.fees, more=more) - posting.cost


@transaction.atomic
def _intend_to_add(posting: Posting, more: int, cents: int | None, *, by: Any, via: str) -> Posting:
    """The posting with as many places as it is to have."""
    row = locked_posting(posting)
    _refuse_while_pending(row)
    if row.published_at is not None:
        refuse_over_cap(row.study, cost_of_more(row, more))
    refuse_another_sum(cost_of_more(row, more), cents, row.currency)
    row.places += more
    _claim(row, Pending.PLACES, timezone.now(), places=row.places)
    record("add_places", row, by=by, via=via, more=more, places=row.places)
    return row


@transaction.atomic
def _take_back(posting: Posting, more: int) -> None:
    """The panel refused them. If a reading has found more places than these meanwhile, it is right."""
    if _end(posting, Pending.PLACES):
        Posting.objects.filter(pk=posting.pk, places=posting.places).update(places=posting.places - more)


# What the panel was asked for


def _claim(posting: Posting, what: Posting.Pending, at: datetime, **changes: Any) -> None:
    """Store what the panel is about to be asked for."""
    if not Posting.objects.filter(pk=posting.pk, pending="").update(pending=what, pending_at=at, **changes):
        raise StateRefused(f"{posting} was taken up by somebody else: look at it again")
    posting.pending, posting.pending_at = what, at


def _mine(posting: Posting, what: Posting.Pending) -> Any:
    return Posting.objects.filter(pk=posting.pk, pending=what, pending_at=posting.pending_at)


def _end(posting: Posting, what: Posting.Pending, **changes: Any) -> bool:
    """What the panel was asked for is answered; False if a reading has ended it before, and nothing was written."""
    return bool(_mine(posting, what).update(pending="", pending_at=None, **changes))


@transaction.atomic
def _answered(posting: Posting, what: Posting.Pending, state: str, **done: Any) -> None:
    """The panel did it: that stands, no matter who has ended it before."""
    _end(posting, what)
    _remember(posting, state, **done)


def _remember(posting: Posting, state: str, **done: Any) -> None:
    """Take over the state in the panel's answer; an answer without one leaves it."""
    said = {"state": state[:40]} if state else {}
    Posting.objects.filter(pk=posting.pk).update(changed_at=timezone.now(), **said, **done)


def _locked_for_real_people(study: Study) -> Study:
    """The study's row, locked. Its stages are locked before it, as everywhere: no simulated person begins meanwhile,
    and none begins once the posting is there.

    Raises:
        StateRefused: as `refuse_without_real_people`.
    """
    list(Stage.objects.select_for_update(of=("self",), no_key=True).filter(study=study).order_by("pk"))
    refuse_without_real_people(study)
    return locked_study(study)


def places_of(stage: Stage) -> int:
    """How many places are offered where nobody says how many: as the study file says, or as many as are free."""
    return stage.study.config.panel.places or free_booklets(stage).count() or stage.config.sittings


def refuse_without_real_people(study: Study) -> None:
    """
    Raises:
        StateRefused: nobody real may be sent to this study: it is a test copy, or simulated people took part in it.
    """
    if study.is_test:
        raise StateRefused(f"{study.slug} is a test copy and is never posted: post the study itself")
    if study.respondents.filter(is_simulated=True).exists():
        raise StateRefused(
            f"simulated people have taken part in {study.slug}, and their answers count there: make a new study for "
            "real people, and try it out in its test copy"
        )


def _refuse_without_draft(posting: Posting) -> None:
    if not posting.external_id:
        raise StateRefused(f"{posting} is not at the panel yet: draft it again")


def _refuse_while_pending(posting: Posting) -> None:
    if posting.pending_at is not None:
        raise StateRefused(
            f"{posting}: the panel was asked at {at_time(posting.pending_at)} to {posting.get_pending_display()}, and "
            f"has not answered. Read it (reconcile {posting.study.slug}): at the latest from "
            f"{at_time(posting.pending_at + longest_call(posting.panel))} on, that says whether it did"
        )


# What a reading of the panel says


@transaction.atomic
def take_over(posting: Posting, at_panel: PostingAtPanel, *, read_at: datetime, patience: timedelta) -> None:
    """Store what the panel said about a posting when it was asked at `read_at`, unless a newer reading is stored.

    What was changed after `read_at` stands: the panel was asked before it. Places and pay that somebody raised at the
    panel cost money all the same.

    Args:
        patience: how long a call may last. From then on a call that was not answered is over, and what the panel says
            has become of it: published or still a draft, with more places or without.
    """
    row = locked_posting(posting)
    if row.read_at is None or row.read_at < read_at:
        learnt = _learnt(row, at_panel, read_at, patience)
        Posting.objects.filter(pk=row.pk).update(read_at=read_at, error="", **learnt)
        if learnt.get("state", row.state) != row.state:
            record("posting_state", row, via="worker", was=row.state, now=learnt["state"])
        if "pending" in learnt:
            published = learnt.get("published_at", row.published_at) is not None
            facts = {"asked_for": row.pending, "published": published, "places": learnt["places"]}
            record("end_pending", row, via="worker", **facts)
    posting.refresh_from_db(fields=CHANGING)


def _learnt(row: Posting, at_panel: PostingAtPanel, read_at: datetime, patience: timedelta) -> dict[str, Any]:
    """The columns that a reading changes."""
    said = state_meant(row.panel, at_panel.state) if at_panel.state else None
    learnt: dict[str, Any] = {
        "places": max(row.places, at_panel.places or 0),
        "reward": max(row.reward, at_panel.reward or 0),
        "screen_outs": max(row.screen_outs, at_panel.screen_outs or 0),
    }
    if said is not None and (row.changed_at is None or row.changed_at < read_at):
        learnt["state"] = at_panel.state[:40]
    is_shown = said not in (None, PostingState.DRAFT)
    if is_shown and row.published_at is None:
        learnt["published_at"] = read_at
    asked = max((at for at in (row.pending_at, row.changed_at, row.published_at) if at is not None), default=None)
    is_over = asked is None or read_at - asked >= patience
    if said == PostingState.DRAFT and is_over:
        learnt |= {"published_at": None, "publish_at": None}
    if row.pending_at is None:
        return learnt
    has_places = at_panel.places is not None and at_panel.places >= row.places
    if is_over or (is_shown if row.pending == Pending.PUBLISH else has_places):
        learnt |= {"pending": "", "pending_at": None}
        if row.pending == Pending.PLACES and at_panel.places is not None:
            learnt["places"] = at_panel.places
    return learnt


def paused_by_the_panel() -> QuerySet[Posting]:
    """Postings of open stages that are paused, though nobody here has paused them. A panel does so when a place becomes
    free after all were used: nobody comes until somebody starts it."""
    paused = postings_in(PostingState.PAUSED).filter(paused_at=None, stage__state=Stage.State.OPEN)
    return paused.select_related("study", "stage__study").order_by("pk")


def leads_to_a_closed_door(posting: Posting) -> bool:
    """Whether the panel still sends people although the stage admits nobody."""
    return state_of(posting) == PostingState.ACTIVE and posting.stage.state != Stage.State.OPEN
