"""Reading what the panel says of a posting's submissions, whole or one by one, into our rows.

Polling is the base, since webhooks get lost; both end here. A row remembers when the panel was asked, so that an older
answer never overwrites a newer one.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from survey.exceptions import StateRefused
from survey.models import PanelIdentity, Posting, Sitting, Submission
from survey.panels.errors import PanelError
from survey.panels.money import sittings_of
from survey.services.sittings.expiry import expire_sitting
from survey.services.sittings.identities import PanelIds, seal, submission_hash

from .client import ProlificClient, is_configured, open_client
from .postings import change
from .statuses import RETURNED, as_told

# Nothing changes any more at a posting that is over, but for what people do by hand.
OVER = "COMPLETED"
CHUNK = 100
PURGED = "purged-"  # In the place of a submission's hash that was removed for good.


def is_forgotten(posting: Posting) -> bool:
    """Whether its people's ids and hashes were removed for good: what the panel says would bring them back."""
    return posting.submissions.filter(submission_hash__startswith=PURGED).exists()


def read_posting(posting: Posting, *, client: ProlificClient | None = None) -> int:
    """Read a posting's state and all its submissions; return how many there are.

    Raises:
        PanelError: what was read before it stays.
        StateRefused: its people's ids were removed for good.
    """
    if is_forgotten(posting):
        raise StateRefused(f"{posting}: its people were forgotten (purge_identities); reading it would bring them back")
    if client is None:
        with open_client() as own:
            return read_posting(posting, client=own)
    now = timezone.now()
    try:
        study = client.study(posting.external_id)
        count = store(posting, client.submissions(posting.external_id), read_at=now)
    except PanelError as exc:
        posting.error = exc.message
        posting.save(update_fields=["error"])
        raise
    posting.state = str(study.get("status") or "")[:40]
    places = study.get("total_available_places")
    if isinstance(places, int) and places > posting.places:
        posting.places = places  # Somebody added some at the panel: they cost money all the same.
    if posting.published_at is None and posting.state not in ("", "UNPUBLISHED"):
        posting.published_at = now
    posting.read_at, posting.error = now, ""
    posting.save(update_fields=["state", "places", "published_at", "read_at", "error"])
    return count


def read_all() -> int:
    """Read every posting that people may still be in; return how many could be read.

    One that still sends people while its stage admits nobody is paused: they would give their time for a closed door.
    """
    if not is_configured():
        return 0
    done = 0
    under_way = Posting.objects.exclude(external_id="").exclude(state=OVER)
    for posting in under_way.select_related("study", "stage"):
        if is_forgotten(posting):
            continue
        try:
            with open_client() as client:
                read_posting(posting, client=client)
                if posting.leads_to_a_closed_door:
                    change(posting, "PAUSE", client=client, via="worker")
        except PanelError:
            continue  # It stands in the posting's row, and the next round tries again.
        done += 1
    return done


def store(posting: Posting, told: Iterable[Mapping[str, Any]], *, read_at: datetime) -> int:
    """Write what the panel said at `read_at` about some of a posting's submissions."""
    rows = iter(told)
    count = 0
    while chunk := list(islice(rows, CHUNK)):
        count += len(chunk)
        _store_chunk(posting, chunk, read_at)
    return count


def _store_chunk(posting: Posting, told: Sequence[Mapping[str, Any]], read_at: datetime) -> None:
    by_key: dict[str, tuple[PanelIds, Mapping[str, Any]]] = {}
    for facts in told:
        if not facts.get("id"):
            continue
        # A list calls it participant_id, a single submission participant.
        person = str(facts.get("participant_id") or facts.get("participant") or "")
        ids = PanelIds(posting.panel, person, posting.external_id, str(facts["id"]))
        by_key[submission_hash(posting.study, ids)] = ids, facts
    known = {row.submission_hash: row for row in posting.submissions.filter(submission_hash__in=by_key)}
    identities = PanelIdentity.objects.filter(study=posting.study_id, submission_hash__in=by_key)
    people = dict(identities.values_list("submission_hash", "respondent"))
    returned: list[Submission] = []
    for key, (ids, facts) in by_key.items():
        row = known.get(key)
        if row is None:
            row = Submission(posting=posting, submission_hash=key, ids_encrypted=seal(ids).encode())
        elif row.read_at > read_at:
            continue
        row.respondent_id = people.get(key)
        row.status = as_told(facts.get("status"))
        row.entered_code = str(facts.get("study_code") or facts.get("entered_code") or "")[:100]
        row.started_at, row.completed_at = _time(facts.get("started_at")), _time(facts.get("completed_at"))
        row.seconds = _seconds(facts.get("time_taken"))
        row.read_at = read_at
        _write(row)
        if row.status == RETURNED:
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
    """Who returned does not come back: their slots go to the next person without waiting for the sitting to expire."""
    now = timezone.now()
    for sitting in sittings_of(posting, returned).values():
        if sitting.state == Sitting.State.LIVE:
            expire_sitting(sitting.pk, now=now)


def _time(text: Any) -> datetime | None:
    try:
        found = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is None or timezone.is_aware(found) else timezone.make_aware(found)


def _seconds(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**31 else None
