"""The panel's group of those who have begun here. Later postings keep its members away, and nobody else.

Prolific puts people into it by the code they come back with. Who leaves without one, or by hand, comes in with the next
reading. It holds exactly those whom the study would refuse. Who only found all places taken is not in it and may come
again, whether before or after they agreed.
"""

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from survey.contracts.panels import PanelClient
from survey.models import Posting, QuotaPlace, Sitting, Submission

from .money import ids_of

AT_ONCE = 500


def feed(posting: Posting, client: PanelClient) -> int:
    """Put everybody into the group who has begun here and is not in it; return how many.

    Adding twice does no harm: where the answer is lost, the same people are added again.

    Raises:
        PanelError: who was added before stays.
    """
    if not posting.group or not client.can("add_to_group"):
        return 0
    waiting = posting.submissions.filter(respondent__isnull=False, grouped_at=None).exclude(ids_encrypted=b"")
    rows = list(waiting.filter(~Exists(_may_find_no_place(posting))).order_by("pk"))
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        client.add_to_group(posting.group, [ids_of(row).person for row in part])
        Submission.objects.filter(pk__in=[row.pk for row in part]).update(grouped_at=timezone.now())
    return len(rows)


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
