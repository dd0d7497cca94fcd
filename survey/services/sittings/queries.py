"""What a page reads of a sitting, in as few statements as can be. Imports models, contracts and base.

Those of the sitting and of its open item are compiled once: only keys differ in them. Under a sitting's lock, what
other transactions may change (assignments, responses) is read by a later statement than the lock. A statement that has
waited for a lock gets the locked row as it is now, but the rows that it joins as they were before.
"""

import uuid
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from django.db.models import Aggregate, Count, Exists, JSONField, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from survey.contracts import instruments
from survey.contracts.instruments import Instrument
from survey.exceptions import SittingUnknown
from survey.models import Assignment, AssignmentCondition, AttentionAnswer, ConditionLevel, Response, Sitting
from survey.models.study import FILE_FIELDS
from survey.services.base.compiled import CompiledQuery

# On no page of a sitting. The file is known by its hash.
LEFT_OUT = ("stage__manifest", *(f"stage__study__{name}" for name in FILE_FIELDS))


def _sittings() -> QuerySet[Sitting]:
    # Its levels may be read by the statement that locks it: they are drawn when it begins and never change.
    levels = _object(ConditionLevel.objects.filter(sitting=OuterRef("pk")), "sitting", "factor", "level")
    rows = Sitting.objects.select_related("stage__study").defer(*LEFT_OUT)
    return rows.annotate(drawn_levels=levels).order_by()


def _locked() -> QuerySet[Sitting]:
    # Only the row itself, and without its key: see `locked_stage`.
    return _sittings().select_for_update(of=("self",), no_key=True)


BY_TOKEN = CompiledQuery(lambda public_id: _sittings().filter(public_id=public_id), public_id=uuid.UUID)
LOCKED_BY_TOKEN = CompiledQuery(lambda public_id: _locked().filter(public_id=public_id), public_id=uuid.UUID)
LOCKED_BY_KEY = CompiledQuery(lambda key: _locked().filter(pk=key), key=int)


def sitting_for(token: str | None, *, slug: str | None = None, lock: bool = False) -> Sitting:
    """The sitting that a token names, with its stage and study.

    Args:
        slug: the study it must be of; None takes any.
        lock: whether to lock its row until the transaction ends.

    Raises:
        SittingUnknown: no token, a forged one, or one from another study.
    """
    public_id = Sitting.public_id_of(token) if token else None
    sitting = public_id and (LOCKED_BY_TOKEN if lock else BY_TOKEN).first(public_id=public_id)
    if not sitting or (slug is not None and sitting.stage.study.slug != slug):
        raise SittingUnknown(
            _("We could not find your place in this study. Please open the link that you were given once more.")
        )
    sitting.is_by_ids_alone = Sitting.was_given_by_ids(token or "")
    return _with_levels(sitting)


def locked_sitting(key: int) -> Sitting:
    """The sitting with that primary key, its row locked until the transaction ends."""
    sitting = LOCKED_BY_KEY.first(key=key)
    if sitting is None:
        raise Sitting.DoesNotExist(f"there is no sitting {key}")
    return _with_levels(sitting)


def _with_levels(sitting: Any) -> Sitting:
    sitting.known_levels = sitting.drawn_levels or {}
    return cast(Sitting, sitting)


@dataclass(frozen=True)
class Standing:
    """Where a sitting stands among its items. Under the sitting's lock nobody else changes it.

    `assignment`: the first item that is not completely answered, whether it counts or is late, with all that its screen
    reads; None if all are answered. `responses` are those to it so far; `assignment.responses.all()` gives this list.
    `total` counts all items, of somebody who stopped those up to there; it is 0 if all are answered and the study has
    no attention checks. `is_last`: whether all items after it are answered. `checks`: the names of the attention checks
    that were answered. `stopped`: the person wanted no more items.
    """

    assignment: Assignment | None = None
    responses: list[Response] = field(default_factory=list)
    total: int = 0
    is_last: bool = True
    checks: frozenset[str] = frozenset()
    stopped: bool = False


def standing_of(sitting: Sitting) -> Standing:
    """Read it: one statement, and one for the responses if the item has any."""
    kind = type(instruments.of_study(sitting.stage.study))
    with_levels = bool(sitting.config.conditions)
    with_checks = bool(sitting.config.sitting.attention_checks)
    assignment: Any = _open_item(kind, with_levels, with_checks).first(sitting=sitting.pk)
    if assignment is None:
        return _all_answered(sitting) if with_checks else Standing()
    assignment.sitting = sitting
    if assignment.slot.stage_id == sitting.stage_id:
        assignment.slot.stage = sitting.stage
    assignment.known_levels = (assignment.item_levels or {}) if with_levels else {}
    checks = frozenset(assignment.checks or ()) if with_checks else frozenset()
    responses: list[Response] = []
    if assignment.is_begun:
        answered = Response.objects.filter(assignment=assignment.pk).order_by("number")
        responses = list(kind.rows.with_answers(answered))
    for response in responses:
        response.assignment = assignment
    assignment.hand_responses(responses)
    return Standing(assignment, responses, assignment.items, is_last=not assignment.has_following, checks=checks)


def _all_answered(sitting: Sitting) -> Standing:
    """Where no item is left, and a check may be: how many items there were, whether the
    person stopped, and which checks were answered."""
    items = Assignment.objects.filter(sitting=OuterRef("pk")).order_by()
    declined = items.filter(state=Assignment.State.DECLINED)
    wanted = items.exclude(state=Assignment.State.DECLINED).values("sitting")
    answered = AttentionAnswer.objects.filter(sitting=OuterRef("pk"))
    rows: Any = Sitting.objects.filter(pk=sitting.pk).order_by()
    counted = rows.annotate(
        items=Subquery(wanted.annotate(n=Count("pk")).values("n")),
        checks=_object(answered, "sitting", "name", "position"),
        stopped=Exists(declined),
    ).values("items", "checks", "stopped")[0]
    checks = frozenset(counted["checks"] or ())
    return Standing(total=counted["items"] or 0, checks=checks, stopped=counted["stopped"])


class _ObjectOf(Aggregate):
    """A JSON object of two columns: names and values."""

    name = "ObjectOf"
    output_field = JSONField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, function="JSON_GROUP_OBJECT", **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, function="JSONB_OBJECT_AGG", **context)


def _object(rows: QuerySet[Any], owner: str, name: str, value: str) -> Subquery:
    """A JSON object of two columns of these rows, which all belong to one row; null if there are none."""
    return Subquery(rows.order_by().values(owner).annotate(found=_ObjectOf(name, value)).values("found"))


@cache
def _open_item(kind: type[Instrument], with_levels: bool, with_checks: bool) -> CompiledQuery[Assignment]:
    """By the class of the instrument, which joins rows of its own."""

    def build(sitting: int) -> QuerySet[Assignment]:
        all_of_it = Assignment.objects.filter(sitting=OuterRef("sitting")).order_by()
        rows = Assignment.objects.filter(sitting=sitting, completed_at__isnull=True).exclude(
            state=Assignment.State.DECLINED
        )
        rows = rows.select_related("slot__item")
        rows = rows.annotate(
            items=Subquery(all_of_it.values("sitting").annotate(n=Count("pk")).values("n")),
            has_following=Exists(all_of_it.filter(completed_at__isnull=True, position__gt=OuterRef("position"))),
            is_begun=Exists(Response.objects.filter(assignment=OuterRef("pk")).order_by()),
        )
        if with_levels:
            of_item = AssignmentCondition.objects.filter(assignment=OuterRef("pk"))
            rows = rows.annotate(item_levels=_object(of_item, "assignment", "factor", "level"))
        if with_checks:
            answered = AttentionAnswer.objects.filter(sitting=OuterRef("sitting"))
            rows = rows.annotate(checks=_object(answered, "sitting", "name", "position"))
        return kind.rows.with_items(rows.order_by("position"))[:1]

    return CompiledQuery(build, sitting=int)
