"""Estimates for pages and the API: stored, so that no request of a large study computes them.

A row has a hash of all that its figures rest on (`basis_of`). While that is the same, the row is shown as it is. If it
is not, few answers are estimated at once. With more of them a worker does it; until then the old figures are shown as
out of date, or none if there are none. Commands always compute; exports and reports do where the row is not
current.
"""

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, OuterRef, Subquery
from django.utils import timezone

from survey.contracts import instruments
from survey.exceptions import HunchError, StateRefused
from survey.models import Assignment, Exclusion, FormAnswer, Look, Sitting, Stage, StoredEstimate, Study, Withdrawal
from survey.services.base import leases
from survey.services.base.hashing import code_digest, digest, package_digest
from survey.services.base.rebuilding import rebuilt
from survey.services.plans.candidates import question_set_digest

from . import study_estimates
from .study_estimates import StudyEstimates

logger = logging.getLogger(__name__)

MAX_ANSWERS_IN_REQUEST = 2000  # answers that a request estimates itself, in a third of a second
RESTS = 20  # times as long as it took: while a stage is open, a worker spends at most 5 % of its time on a page
MAX_ROWS = 20  # rows of a study; the oldest ones go


class BeingComputed(StateRefused):
    """The figures are not there yet; a worker computes them."""

    code = "being_computed"


@dataclass(frozen=True)
class ShownEstimates:
    """Figures with their time. If they are not current, something that they rest on has changed since."""

    report: StudyEstimates
    computed_at: datetime
    is_current: bool

    def as_json(self) -> dict[str, Any]:
        return {**self.report.as_json(), "computed_at": self.computed_at, "is_current": self.is_current}


@dataclass(frozen=True)
class Basis:
    """What figures rest on: a hash of it, the complete answers that it has, and the people who have withdrawn."""

    sha256: str
    answers: int
    withdrawals: int


def basis_of(study: Study) -> Basis:
    """By counts, newest rows and hashes. What was answered is never edited, so that no other change goes unseen."""
    package = type(instruments.of_study(study)).__module__.partition(".")[0]
    rows = Assignment.objects.filter(slot__stage__study=study).order_by("slot__stage", "state")
    states = list(
        rows.values_list("slot__stage", "state").annotate(n=Count("pk"), last=Max("pk"), at=Max("completed_at"))
    )
    withdrawals = _withdrawals(study)
    facts = [
        code_digest(),
        package_digest(package) if package != "survey" else "",
        study.source_sha256,
        study.is_blind,
        question_set_digest(study),
        _stage_facts(study),
        [[str(fact) for fact in state] for state in states],
        withdrawals,
    ]
    complete = sum(n for _stage, state, n, *_newest in states if state == Assignment.State.COUNTED)
    return Basis(digest(facts), complete, withdrawals)


def _stage_facts(study: Study) -> list[list[str]]:
    """Of each stage: its state, its plan, its snapshot, its looks, whom it excludes, how many finished, the last page
    that somebody sent, which can change a flag until the stage is frozen, and the last form, which can change a group
    of people."""
    excluded = Exclusion.objects.filter(stage=OuterRef("pk")).order_by().values("stage").annotate(n=Count("pk"))
    looks = Look.objects.filter(stage=OuterRef("pk")).order_by().values("stage").annotate(n=Count("pk"))
    finished = Sitting.objects.filter(stage=OuterRef("pk"), state=Sitting.State.COMPLETE).order_by().values("stage")
    facts = {
        "excluded": Subquery(excluded.values("n")),
        "seen_so_far": Subquery(looks.values("n")),
        "finished": Subquery(finished.annotate(n=Count("pk")).values("n")),
    }
    if study.config.exclusions.flags:
        seen = Sitting.objects.filter(stage=OuterRef("pk")).order_by().values("stage").annotate(at=Max("last_seen_at"))
        facts["seen"] = Subquery(seen.values("at"))
    if any(block.fields for block in study.config.blocks):
        forms = FormAnswer.objects.filter(sitting__stage=OuterRef("pk")).order_by().values("sitting__stage")
        facts["answered_forms"] = Subquery(forms.annotate(last=Max("pk")).values("last"))
    stages = study.stages.order_by("index").annotate(**facts)
    return [
        [str(fact) for fact in row]
        for row in stages.values_list("pk", "state", "plan_sha256", "snapshot_sha256", *facts)
    ]


def _withdrawals(study: Study) -> int:
    return Withdrawal.objects.filter(respondent__study=study).count()


# Showing


def shown_estimates(study: Study, *, by: Sequence[str] = (), condition: Sequence[str] = ()) -> ShownEstimates:
    """The stored figures; figures of few answers are computed now if they are out of date.

    Raises:
        BeingComputed: there are none at the moment, and a worker computes them.
        StateRefused, HunchError: as `study_estimates.estimate`.
    """
    study_estimates.check_question(study, by, condition)
    asked = {"by": [*by], "condition": [*condition]}
    basis = basis_of(study)
    row = StoredEstimate.objects.filter(study=study, asked_sha256=digest(asked)).first() or _new_row(study, asked)
    if row.basis_sha256 == basis.sha256:
        return _shown(row, is_current=True)
    if basis.answers <= MAX_ANSWERS_IN_REQUEST:
        if not _store(row, study, basis):
            raise _being_computed(study)
        return _shown(row, is_current=True)
    if row.may_be_computed_again(timezone.now(), RESTS):
        StoredEstimate.objects.filter(pk=row.pk).queue()
    if not row.report:
        raise _being_computed(study)
    return _shown(row, is_current=False)


def current_estimates(study: Study, *, by: Sequence[str], condition: Sequence[str]) -> StudyEstimates:
    """The figures as of now: the stored ones if they are current, else computed, without storing them.

    Raises:
        StateRefused, HunchError: as `study_estimates.estimate`.
    """
    study_estimates.check_question(study, by, condition)
    asked = digest({"by": [*by], "condition": [*condition]})
    row = StoredEstimate.objects.filter(study=study, asked_sha256=asked).first()
    if row is not None and row.report and row.basis_sha256 == basis_of(study).sha256:
        return _from_text(row.report)
    return study_estimates.estimate(study, by=by, condition=condition)


def _being_computed(study: Study) -> BeingComputed:
    return BeingComputed(
        f"{study.slug}: the estimates are being computed, since there are none yet or a person has withdrawn; look "
        "again in a minute",
        retry_after=30,
    )


def _shown(row: StoredEstimate, *, is_current: bool) -> ShownEstimates:
    if row.problem:
        raise StateRefused(row.problem)
    return ShownEstimates(_from_text(row.report), row.computed_at or timezone.now(), is_current)


def _new_row(study: Study, asked: dict[str, list[str]]) -> StoredEstimate:
    rows = StoredEstimate.objects.filter(study=study)
    newest = rows.order_by("-pk").values_list("pk", flat=True)[: MAX_ROWS - 1]
    rows.exclude(pk__in=list(newest)).delete()
    return rows.get_or_create(asked_sha256=digest(asked), defaults={"study": study, "asked": asked, "state": "done"})[0]


# Computing


def due_estimates() -> list[StoredEstimate]:
    return leases.due(StoredEstimate.objects.filter(state=StoredEstimate.QUEUED))


def compute(row_id: int) -> bool:
    """Compute one queued row in a worker. False if there was nothing to do, or it has to be done again."""
    row = leases.claim(StoredEstimate.objects.all(), row_id)
    if row is None:
        return False
    hold, basis = leases.Hold(row), basis_of(row.study)
    with hold.kept_alive():
        try:
            is_stored = _store(row, row.study, basis, hold)
        except Exception as exc:
            logger.exception("%s cannot be computed", row)
            problem = f"they cannot be computed ({type(exc).__name__}); the log of the worker says more"
            hold.end("done", report="", problem=problem, basis_sha256=basis.sha256)
            return False
    if not is_stored:
        hold.give_back()
    return is_stored


def _store(row: StoredEstimate, study: Study, basis: Basis, hold: leases.Hold[StoredEstimate] | None = None) -> bool:
    """Compute a row, and store it unless somebody has withdrawn meanwhile."""
    begun = time.monotonic()
    row.report = row.problem = ""
    try:
        row.report = _as_text(study_estimates.estimate(study, by=row.asked["by"], condition=row.asked["condition"]))
    except HunchError as exc:
        row.problem = exc.message
    row.computed_at, row.seconds, row.basis_sha256 = timezone.now(), time.monotonic() - begun, basis.sha256
    fields = ("report", "problem", "computed_at", "seconds", "basis_sha256")
    values = {name: getattr(row, name) for name in fields}
    with transaction.atomic():
        # A withdrawal holds these locks until it is committed: it is seen here, or it empties what is stored here.
        locked = Stage.objects.select_for_update(of=("self",), no_key=True).filter(study=study).order_by("pk")
        list(locked.values_list("pk", flat=True))
        if _withdrawals(study) != basis.withdrawals:
            return False
        if hold is not None:
            return hold.end("done", **values)
        return bool(StoredEstimate.objects.filter(pk=row.pk).update(state="done", lease_until=None, **values))


# As text and back. Numbers keep every digit, whole ones stay whole, and NaN stays NaN.


def _as_text(report: StudyEstimates) -> str:
    return json.dumps(asdict(report), default=lambda value: value.item())


def _from_text(text: str) -> StudyEstimates:
    report: StudyEstimates = rebuilt(StudyEstimates, json.loads(text))
    return report
