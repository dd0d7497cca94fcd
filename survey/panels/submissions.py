"""Reading what the panel says about a posting's submissions, all or one, into our rows.

Polling is the main way, since webhooks get lost; both use this module. A row stores when the panel was asked, so that
an older answer never overwrites a newer one.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.db.models import Q
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelClient, PanelIds, PostingState, SubmissionAtPanel, SubmissionStatus
from survey.exceptions import HunchError, StateRefused
from survey.models import Posting, Sitting, Stage, Submission
from survey.services.sittings.expiry import expire_sitting
from survey.services.sittings.identities import people_by_submission, seal, submission_hash

from . import accounts, groups
from .asking import can_ask, client_of, longest_call, state_of, status_of, words_of
from .money import hold_more, sittings_of
from .postings import Move, change, leads_to_a_closed_door, take_over

logger = logging.getLogger(__name__)

CHUNK = 100
READ_AGAIN = timedelta(days=1)  # A posting that is over.
LONGEST_READ = timedelta(days=30)
PURGED = "purged-"  # Replaces the hash of a submission whose hash was removed for good.


def is_forgotten(posting: Posting) -> bool:
    """Whether its people's ids and hashes were removed for good. Reading the panel would bring them back."""
    return posting.submissions.filter(submission_hash__startswith=PURGED).exists()


def read_posting(posting: Posting, *, client: PanelClient | None = None) -> int:
    """Read a posting's state and all its submissions; return how many there are.

    Raises:
        PanelError: what was read before the failure stays.
        StateRefused: its people's ids were removed for good.
    """
    if is_forgotten(posting):
        raise StateRefused(
            f"{posting}: the panel's ids of its people were removed, as was promised; reading it would bring them back"
        )
    now = timezone.now()
    try:
        with client_of(posting.panel, client) as asked:
            at_panel = asked.posting(posting.external_id)
            parts = posting.parts.order_by("pk").values_list("external_id", flat=True)
            count = sum(
                store(posting, asked.submissions(external_id), read_at=now)
                for external_id in [posting.external_id, *parts]
            )
            patience = asked.longest_call
            groups.feed(posting, asked)
            accounts.read(posting, asked)
    except Exception as exc:
        unless_newer = Q(read_at__isnull=True) | Q(read_at__lt=now)
        Posting.objects.filter(unless_newer, pk=posting.pk).update(error=words_of(exc))
        raise
    take_over(posting, at_panel, read_at=now, patience=patience)
    hold_more(posting)
    return count


def read_all() -> int:
    """Read every posting that people may still be in; return how many could be read.

    A posting that still sends people while its stage admits nobody is paused: they would come for nothing. One that
    cannot be read stops no other: its error is stored in its row, and the next round tries again.
    """
    done = 0
    for pk in Posting.objects.exclude(external_id="").order_by("pk").values_list("pk", flat=True):
        # Fresh for each: reading those before it may have taken minutes.
        posting = Posting.objects.select_related("study", "stage").get(pk=pk)
        try:
            done += _read_if_needed(posting)
        except HunchError as exc:
            logger.warning("%s could not be read: %s", posting, exc.message)
        except Exception:
            logger.exception("%s could not be read", posting)
    return done


def _read_if_needed(posting: Posting) -> bool:
    if _is_settled(posting) or not can_ask(posting.panel) or is_forgotten(posting):
        return False
    read_posting(posting)
    posting.stage.refresh_from_db()
    if leads_to_a_closed_door(posting):
        try:
            change(posting, Move.PAUSE, via="worker")
        except Exception as exc:
            Posting.objects.filter(pk=posting.pk).update(error=words_of(exc))
            raise
    return True


def _is_settled(posting: Posting) -> bool:
    """Whether it is over and nobody is inside any more. Then it changes only by hand, and is read once a day for a
    month: more places make a posting active again."""
    if state_of(posting) != PostingState.COMPLETED or posting.pending or posting.read_at is None:
        return False
    words = set(posting.submissions.order_by().values_list("status", flat=True).distinct())
    meant = {panels.find(posting.panel).submission_status(text) for text in words}
    if any(status.is_under_way or status == SubmissionStatus.AWAITING_REVIEW for status in meant):
        return False
    now = timezone.now()
    last = max(at for at in (posting.changed_at, posting.published_at, posting.created_at) if at is not None)
    return now - posting.read_at < READ_AGAIN or now - last > LONGEST_READ


def pause_postings(stage: Stage) -> int:
    """Pause the postings that still send people to a stage that has just been closed; return how many. What fails is
    tried again when the postings are read (`read_all`)."""
    paused = 0
    for posting in stage.postings.exclude(external_id="").select_related("study", "stage"):
        if not can_ask(posting.panel) or not leads_to_a_closed_door(posting):
            continue
        try:
            change(posting, Move.PAUSE, via="worker")
            paused += 1
        except Exception as exc:
            logger.exception("%s could not be paused", posting)
            Posting.objects.filter(pk=posting.pk).update(error=words_of(exc))
    return paused


def store(posting: Posting, read: Iterable[SubmissionAtPanel], *, read_at: datetime) -> int:
    """Store what the panel said at `read_at` about some of a posting's submissions."""
    rows = iter(read)
    count = 0
    while chunk := list(islice(rows, CHUNK)):
        count += len(chunk)
        _store_chunk(posting, chunk, read_at)
    return count


def _store_chunk(posting: Posting, read: Sequence[SubmissionAtPanel], read_at: datetime) -> None:
    by_key: dict[str, tuple[PanelIds, SubmissionAtPanel]] = {}
    for submission in read:
        ids = PanelIds(posting.panel, submission.person, posting.external_id, submission.submission)
        by_key[submission_hash(posting.study, ids)] = ids, submission
    known = {row.submission_hash: row for row in posting.submissions.filter(submission_hash__in=by_key)}
    people = people_by_submission(posting.study, by_key)
    returned: list[Submission] = []
    for key, (ids, submission) in by_key.items():
        row = known.get(key)
        if row is None:
            row = Submission(posting=posting, submission_hash=key, ids_encrypted=seal(ids).encode())
        elif row.read_at > read_at:
            continue
        row.respondent_id = people.get(key)
        row.status, row.entered_code = submission.status[:40], submission.code[:100]
        row.started_at, row.completed_at, row.seconds = (
            submission.started_at,
            submission.completed_at,
            submission.seconds,
        )
        row.asked_back_at = (
            row.asked_back_at or submission.asked_back_at
        )  # Perhaps by somebody on the panel's own pages.
        row.read_at = read_at
        _write(row)
        if row.pending:
            was_asked = submission.asked_back_at is not None and row.pending == Submission.Pending.ASK_BACK
            _end_pending(row, status_of(row, posting), longest_call(posting.panel), was_asked=was_asked)
        if status_of(row, posting) == SubmissionStatus.RETURNED:
            returned.append(row)
    _free_places_of(posting, returned)


FIELDS = (
    *("respondent_id", "status", "entered_code", "started_at", "completed_at", "seconds", "asked_back_at"),
    "read_at",
)


def _write(row: Submission) -> None:
    if row.pk is None:
        stored, created = Submission.objects.get_or_create(
            posting=row.posting,
            submission_hash=row.submission_hash,
            defaults={"ids_encrypted": row.ids_encrypted, **{name: getattr(row, name) for name in FIELDS}},
        )
        row.pk = stored.pk
        row._state.adding = False
        if created:
            return
    fresh = Submission.objects.filter(pk=row.pk, read_at__lte=row.read_at)
    fresh.update(**{name: getattr(row, name) for name in FIELDS})


def _end_pending(row: Submission, status: SubmissionStatus, patience: timedelta, *, was_asked: bool) -> None:
    """What the panel was asked for and has not answered, by what it says now.

    A rejection shows in the status. A request for a return shows where the panel says so (`was_asked`); elsewhere only
    the end of the submission ends it.
    """
    if row.pending_at is None or row.pending_at >= row.read_at:
        return  # The panel was asked before.
    mine = Submission.objects.filter(pk=row.pk, pending=row.pending, pending_at=row.pending_at, read_at=row.read_at)
    ended: dict[str, Any] = {"pending": "", "pending_at": None}
    if row.pending == Submission.Pending.REJECT and status == SubmissionStatus.REJECTED:
        mine.update(**ended, **was_rejected(row.rejection_category, row.status, at=row.pending_at))
    elif was_asked or status != SubmissionStatus.AWAITING_REVIEW:
        mine.update(**ended)
    elif row.pending == Submission.Pending.REJECT and row.read_at - row.pending_at >= patience:
        mine.update(**ended)  # It was not rejected.


def was_rejected(category: str, status: str, *, at: datetime) -> dict[str, Any]:
    """The columns of a submission that we rejected: that settles it as long as the panel's status stays the same."""
    return {
        "rejected_at": at,
        "resolution": f"rejected by us: {category}"[:300],
        "resolved_status": status,
        "resolved_at": at,
    }


def _free_places_of(posting: Posting, returned: list[Submission]) -> None:
    """Free the slots of people who returned: the next person need not wait until the sitting expires."""
    now = timezone.now()
    for sitting in sittings_of(posting, returned).values():
        if sitting.state == Sitting.State.LIVE:
            try:
                expire_sitting(sitting.pk, now=now)
            except Exception:
                # It expires later, when it was silent for long enough. The others are read all the same.
                logger.exception("%s returned, and the sitting could not be expired", sitting)
