"""Reading what the panel says about a posting's submissions, all or one, into our rows.

Polling is the main way, since webhooks get lost; both use this module. A row stores when the panel was asked, so that
an older answer never overwrites a newer one.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

from django.utils import timezone

from survey.contracts.panels import PanelClient, PanelError, PanelIds, PostingState, SubmissionAtPanel, SubmissionStatus
from survey.exceptions import StateRefused
from survey.models import PanelIdentity, Posting, Sitting, Submission
from survey.services.sittings.expiry import expire_sitting
from survey.services.sittings.identities import seal, submission_hash

from .asking import can_ask, client_of, state_of, status_of
from .money import sittings_of
from .postings import Move, change, leads_to_a_closed_door

CHUNK = 100
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
        raise StateRefused(f"{posting}: its people were forgotten (purge_identities); reading it would bring them back")
    with client_of(posting.panel, client) as asked:
        now = timezone.now()
        try:
            found = asked.posting(posting.external_id)
            count = store(posting, asked.submissions(posting.external_id), read_at=now)
        except PanelError as exc:
            posting.error = exc.message
            posting.save(update_fields=["error"])
            raise
    posting.state = found.state[:40]
    if found.places is not None and found.places > posting.places:
        posting.places = found.places  # Somebody added places at the panel: they cost money all the same.
    if posting.published_at is None and state_of(posting) != PostingState.DRAFT:
        posting.published_at = now
    posting.read_at, posting.error = now, ""
    posting.save(update_fields=["state", "places", "published_at", "read_at", "error"])
    return count


def read_all() -> int:
    """Read every posting that people may still be in; return how many could be read.

    A posting that still sends people while its stage admits nobody is paused: they would come for nothing.
    """
    done = 0
    for posting in Posting.objects.exclude(external_id="").select_related("study", "stage"):
        # A posting that is over changes only by hand, so it need not be read.
        if not can_ask(posting.panel) or state_of(posting) == PostingState.COMPLETED or is_forgotten(posting):
            continue
        try:
            with client_of(posting.panel) as client:
                read_posting(posting, client=client)
                if leads_to_a_closed_door(posting):
                    change(posting, Move.PAUSE, client=client, via="worker")
        except PanelError:
            continue  # The error is stored in the posting's row, and the next round tries again.
        done += 1
    return done


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
    for one in read:
        ids = PanelIds(posting.panel, one.person, posting.external_id, one.submission)
        by_key[submission_hash(posting.study, ids)] = ids, one
    known = {row.submission_hash: row for row in posting.submissions.filter(submission_hash__in=by_key)}
    identities = PanelIdentity.objects.filter(study=posting.study_id, submission_hash__in=by_key)
    people = dict(identities.values_list("submission_hash", "respondent"))
    returned: list[Submission] = []
    for key, (ids, one) in by_key.items():
        row = known.get(key)
        if row is None:
            row = Submission(posting=posting, submission_hash=key, ids_encrypted=seal(ids).encode())
        elif row.read_at > read_at:
            continue
        row.respondent_id = people.get(key)
        row.status, row.entered_code = one.status[:40], one.code[:100]
        row.started_at, row.completed_at, row.seconds = one.started_at, one.completed_at, one.seconds
        row.read_at = read_at
        _write(row)
        if status_of(row, posting) == SubmissionStatus.RETURNED:
            returned.append(row)
    _free_places_of(posting, returned)


FIELDS = ("respondent_id", "status", "entered_code", "started_at", "completed_at", "seconds", "read_at")


def _write(row: Submission) -> None:
    if row.pk is None:
        found, created = Submission.objects.get_or_create(
            posting=row.posting,
            submission_hash=row.submission_hash,
            defaults={"ids_encrypted": row.ids_encrypted, **{name: getattr(row, name) for name in FIELDS}},
        )
        row.pk = found.pk
        row._state.adding = False
        if created:
            return
    fresh = Submission.objects.filter(pk=row.pk, read_at__lte=row.read_at)
    fresh.update(**{name: getattr(row, name) for name in FIELDS})


def _free_places_of(posting: Posting, returned: list[Submission]) -> None:
    """Free the slots of people who returned: the next person need not wait until the sitting expires."""
    now = timezone.now()
    for sitting in sittings_of(posting, returned).values():
        if sitting.state == Sitting.State.LIVE:
            expire_sitting(sitting.pk, now=now)
