"""Removing a panel's ids of people once they are no longer needed to pay anybody.

The encrypted ids are removed. The keyed hashes stay, since they bar a second participation. They can be removed too
once the study is over; then nothing links a pseudonym to a person any more.
"""

import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from survey.contracts import panels
from survey.contracts.panels import SubmissionStatus
from survey.exceptions import HunchError
from survey.models import Erasure, PanelIdentity, Payment, PaymentBatch, Stage, Study, Submission, WaveIdentity
from survey.services.base import erasures
from survey.services.base.auditing import record
from survey.services.base.retention import is_over

from .asking import status_of
from .money import locked_study, owed
from .owed_list import waiting_for_list
from .submissions import PURGED

BATCH = 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Purge:
    """What can be removed of a study's people, or why nothing can."""

    study: Study
    identities: int
    submissions: int
    hashes: int
    why_not: str = ""
    why_keep_hashes: str = ""


def read_age(text: str) -> timedelta:
    """`90d` as a timedelta.

    Raises:
        HunchError: it is not a number of days.
    """
    match = re.fullmatch(r"([0-9]{1,5})d", text.strip())
    if not match:
        raise HunchError(f"--older-than: {text!r} is no number of days: write for example 90d", code="invalid")
    return timedelta(days=int(match[1]))


def plan_purge(study: Study, *, before: datetime, with_hashes: bool) -> Purge:
    """What `purge` would remove now. Reads only."""
    identities = _identities(study, before)
    why_keep = hashes_needed(study) if with_hashes else ""
    return Purge(
        study=study,
        identities=identities.exclude(ids_encrypted=b"").count(),
        submissions=_submissions(study, before).exclude(ids_encrypted=b"").count(),
        hashes=identities.count() if with_hashes and not why_keep else 0,
        why_not=payments_open(study),
        why_keep_hashes=why_keep,
    )


@transaction.atomic
def purge(study: Study, *, before: datetime, with_hashes: bool, by: Any = None, via: str = "command") -> Purge:
    """Remove the ids of everybody who arrived before that time.

    Raises:
        HunchError: somebody may still have to be paid.
    """
    locked_study(study)
    planned = plan_purge(study, before=before, with_hashes=with_hashes)
    if planned.why_not:
        raise HunchError(f"{study.slug}: {planned.why_not}; nothing was removed", code="state_refused", status=409)
    submissions, identities = _submissions(study, before), _identities(study, before)
    remove_ids(identities, submissions, with_hashes=with_hashes and not planned.why_keep_hashes)
    record(
        "purge_identities",
        study,
        by=by,
        via=via,
        identities=planned.identities,
        submissions=planned.submissions,
        hashes=planned.hashes,
    )
    return planned


def remove_ids(identities: QuerySet[PanelIdentity], submissions: QuerySet[Submission], *, with_hashes: bool) -> None:
    """Remove these ids, even if some may still be paid by them. Call it in a transaction."""
    if not with_hashes:
        identities = identities.exclude(ids_encrypted=b"")
        submissions = submissions.exclude(ids_encrypted=b"")
    people = [identity.respondent for identity in identities.select_related("respondent")]
    what = Erasure.What.HASHES if with_hashes else Erasure.What.IDS
    erasures.remember(what, [*people, *submissions.exclude(submission_hash__startswith=PURGED)])
    Submission.objects.filter(pk__in=list(submissions.values_list("pk", flat=True))).update(ids_encrypted=b"")
    if with_hashes:
        _forget_hashes(submissions)
        identities.delete()  # And with them those of later waves.
    else:
        WaveIdentity.objects.filter(identity__in=identities.values("pk")).update(ids_encrypted=b"")
        identities.update(ids_encrypted=b"")


def _forget_hashes(submissions: QuerySet[Submission]) -> None:
    rows = list(submissions.exclude(submission_hash__startswith=PURGED))
    for row in rows:
        row.submission_hash = PURGED + secrets.token_hex(16)
    Submission.objects.bulk_update(rows, ["submission_hash"], batch_size=BATCH)


def _identities(study: Study, before: datetime) -> QuerySet[PanelIdentity]:
    return PanelIdentity.objects.filter(study=study, created_at__lt=before)


def _submissions(study: Study, before: datetime) -> QuerySet[Submission]:
    """The study's submissions from before that time: when the person arrived or, if unknown, when it was posted."""
    came = Coalesce("started_at", "completed_at", "posting__created_at")
    return Submission.objects.filter(posting__study=study).annotate(came=came).filter(came__lt=before)


def payments_open(study: Study) -> str:
    """Why the ids may still be needed to pay somebody; empty if they are not."""
    if reason := _still_open(study):
        return reason
    if waiting := len(_waiting_for_list(study)):
        return (
            f"{waiting} people are owed money, and no list with their ids was made since they ended: "
            f"reconcile {study.slug} --out FILE.csv --with-panel-ids makes it"
        )
    return ""


def _waiting_for_list(study: Study) -> set[int]:
    """By links nobody has a name that could be removed."""
    panel = panels.of_study(study)
    return waiting_for_list(study) if panel.pays_from_a_list and panel.has_submissions else set()


def _still_open(study: Study) -> str:
    """Why people may still come who are to be paid, or the panel may still be to pay some of those who came."""
    panel = panels.of_study(study)
    if panel.is_open:
        return ""
    if to_come := _wave_to_come(study):
        return f"wave {to_come} is still to come: people are invited to it by these ids"
    if panel.problem:
        return f"nobody knows who is still to be paid: {panel.problem}"
    running = study.stages.exclude(state__in=[Stage.State.DRAFT, Stage.State.PLANNED, Stage.State.FROZEN]).first()
    if running is not None:
        return f"stage {running.index} is {running.state}: people may still come who are to be paid"
    for posting in study.postings.exclude(external_id="").select_related("study"):
        if reason := _posting_open(study.slug, posting.submissions.all(), posting.payment_batches.all()):
            return f"{posting} {reason}"
        if due := owed(posting):
            return f"{posting} owes {len(due)} bonuses: `hunch pay_bonuses {study.slug}` shows and pays them"
    return ""


def _wave_to_come(study: Study) -> int:
    """The first later wave that is not over, where people have come; 0 if there is none."""
    if not study.config.waves or not study.respondents.exists():
        return 0
    stages = study.stages.exclude(state=Stage.State.FROZEN).order_by("index")
    return min((stage.wave for stage in stages if stage.wave > 1), default=0)


def _posting_open(slug: str, submissions: QuerySet[Submission], batches: QuerySet[PaymentBatch]) -> str:
    waiting = sum(_waits(row) for row in submissions.select_related("posting"))
    if waiting:
        return f"has {waiting} submissions that are under way or wait for review: `hunch reconcile {slug}` shows them"
    settled = [PaymentBatch.State.PAID, PaymentBatch.State.REFUSED]
    if unsettled := batches.exclude(state__in=settled).first():
        command = f"`hunch pay_bonuses {slug} --settle {unsettled.pk} paid`"
        return f"has payment {unsettled.pk}, whose end is not known: look at the panel, then say it ({command})"
    return ""


def _waits(row: Submission) -> bool:
    status = status_of(row, row.posting)
    return status.is_under_way or status == SubmissionStatus.AWAITING_REVIEW


def hashes_needed(study: Study) -> str:
    """Why the keyed hashes must stay; empty if nobody can come any more."""
    unfinished = study.stages.exclude(state=Stage.State.FROZEN).order_by("index").first()
    if unfinished is not None:
        return f"stage {unfinished.index} is {unfinished.state}: the hashes bar a second participation"
    others = [
        other.slug
        for other in Study.objects.real().exclude(pk=study.pk).only("slug", "stored_config", "source_sha256")
        if study.slug in other.config.panel.exclude_people_of
        and other.stages.exclude(state=Stage.State.FROZEN).exists()
    ]
    return f"{others[0]} leaves this study's people out, and knows them by the hashes" if others else ""


def purge_withdrawn() -> int:
    """Remove the ids of people who withdrew, as soon as none of them is to be paid; return how many.

    A study that cannot be judged stops no other.
    """
    done = 0
    for study in Study.objects.filter(pk__in=_withdrawn().values("study")):
        try:
            done += _purge_withdrawn_of(study)
        except Exception:
            logger.exception("%s: the ids of people who withdrew could not be removed", study)
    return done


def _withdrawn() -> QuerySet[PanelIdentity]:
    return PanelIdentity.objects.filter(respondent__withdrawal__isnull=False).exclude(ids_encrypted=b"")


@transaction.atomic
def _purge_withdrawn_of(study: Study) -> int:
    study = locked_study(study)
    identities = list(_withdrawn().filter(study=study).select_related("respondent"))
    open_ones = _still_to_pay(study, [identity.respondent_id for identity in identities])
    done = [identity for identity in identities if identity.respondent_id not in open_ones]
    remove_ids(
        PanelIdentity.objects.filter(pk__in=[identity.pk for identity in done]),
        Submission.objects.filter(respondent__in=[identity.respondent_id for identity in done]),
        with_hashes=False,
    )
    for identity in done:
        record("purge_withdrawn", identity.respondent, via="worker", study=study.slug)
    return len(done)


def _still_to_pay(study: Study, people: Sequence[int]) -> set[int]:
    """Those of these respondents whose ids may be needed to pay them."""
    if not panels.of_study(study).has_submissions:
        return set()
    # Read before what is owed is: somebody who is under way here and too late a moment later is kept by the first.
    rows = list(Submission.objects.filter(respondent__in=people).select_related("posting__study"))
    known = {row.respondent_id for row in rows}
    unpaid: set[int] = {row.respondent_id for row in rows if row.respondent_id is not None and _waits(row)}
    # The panel was not read since, or people are paid from a list: wait until the whole study is over.
    unknown = set(people) - known
    if unknown and _still_open(study):
        unpaid |= unknown
    elif unknown:
        unpaid |= unknown & _waiting_for_list(study)
    settled = [PaymentBatch.State.PAID, PaymentBatch.State.REFUSED]
    unsettled = Payment.objects.filter(submission__in=rows).exclude(batch__state__in=settled)
    unpaid |= {who for who in unsettled.values_list("submission__respondent", flat=True) if who is not None}
    for posting in {row.posting_id: row.posting for row in rows}.values():
        unpaid |= {
            bonus.submission.respondent_id for bonus in owed(posting) if bonus.submission.respondent_id is not None
        }
    return unpaid


def past_their_term() -> Sequence[tuple[Study, int]]:
    """Studies past the day until which their data was to be kept, and how many people's ids they still have."""
    studies = []
    for study in Study.objects.real().filter(respondents__panel_identity__isnull=False).distinct():
        if is_over(study):
            studies.append((study, PanelIdentity.objects.filter(study=study).count()))
    return studies
