"""The panel's group of those who have begun here. Later postings keep its members away, and nobody else.

Prolific puts people into it by the code they come back with. Who leaves without one, or by hand, comes in with the next
reading. In it is exactly whom the study's door would refuse: who only found all places taken may come again, whether
before or after they agreed. Who expired before the items is in it, since the door knows them; should they come back and
find no place, they are taken out again.
"""

from collections.abc import Iterator

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from survey.contracts.panels import PanelClient
from survey.models import Posting, QuotaPlace, Sitting, Submission

from .money import ids_of

BATCH_SIZE = 500


def feed(posting: Posting, client: PanelClient) -> int:
    """Put everybody into the group who has begun here and is not in it; return how many.

    Who may come again is taken out. Both may be repeated: where the answer is lost, the same people are added or taken
    out again.

    Raises:
        PanelError: who was added before stays.
    """
    if not posting.group or not client.can("add_to_group"):
        return 0
    known = posting.submissions.filter(respondent__isnull=False).exclude(ids_encrypted=b"").order_by("pk")
    may_come_again = Exists(_may_find_no_place(posting))
    if client.can("remove_from_group"):
        for part in _parts(known.filter(may_come_again, grouped_at__isnull=False)):
            client.remove_from_group(posting.group, [ids_of(row).person for row in part])
            Submission.objects.filter(pk__in=[row.pk for row in part]).update(grouped_at=None)
    added = 0
    for part in _parts(known.filter(~may_come_again, grouped_at=None)):
        client.add_to_group(posting.group, [ids_of(row).person for row in part])
        added += Submission.objects.filter(pk__in=[row.pk for row in part]).update(grouped_at=timezone.now())
    return added


def _parts(rows: QuerySet[Submission]) -> Iterator[list[Submission]]:
    all_rows = list(rows)
    for start in range(0, len(all_rows), BATCH_SIZE):
        yield all_rows[start : start + BATCH_SIZE]


def _may_find_no_place(posting: Posting) -> QuerySet[Sitting]:
    """Sittings of whom may come again, or may yet find all places taken: they have no items yet."""
    unwanted = QuotaPlace.objects.filter(sitting=OuterRef("pk"), state=QuotaPlace.State.OUTSIDE)
    found_none = Q(state=Sitting.State.TURNED_AWAY) & ~Exists(unwanted)
    return Sitting.objects.filter(
        Q(state=Sitting.State.LIVE) | found_none,
        respondent=OuterRef("respondent"),
        wave=posting.wave,
        booklet=None,
        withdrawn_at=None,
    )
