"""Two locks: on a stage's row, for letting people in and moving slots; and on a study's file."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from survey.models import Stage, Study

from .auditing import record
from .compiled import CompiledQuery


def locked_stage(pk: int) -> Stage:
    """The stage with its study and bank. Its row is locked until the transaction ends.

    The lock leaves out the key. At commit, PostgreSQL looks up the stage of every row that refers to it. Under a full
    lock such a transaction would wait for us while we wait for a booklet that it has claimed.
    """
    return Stage.objects.select_for_update(of=("self",), no_key=True).select_related("study__bank").get(pk=pk)


def _rows(key: int) -> QuerySet[Stage]:
    return Stage.objects.select_for_update(of=("self",), no_key=True).defer("manifest").filter(pk=key).order_by()


ROWS = CompiledQuery(_rows, key=int)


def locked_row(pk: int) -> Stage | None:
    """The same lock by a statement that is compiled once, for pages: the stage without study and manifest."""
    return ROWS.first(key=pk)


def is_in_force(study: Study) -> bool:
    """Whether this object still has the stored study file: nothing may be drawn by a file that was replaced."""
    return Study.objects.filter(pk=study.pk, source_sha256=study.source_sha256).exists()


def lock_study(study: Study, *, now: datetime, by: Any = None, via: str = "command") -> bool:
    """Lock the study's file if it is not locked yet; True if this call did. Call it under the stage's lock.

    A locked file can be amended only where that changes no figure unnoticed (see `amending`).
    """
    locked = Study.objects.select_for_update(of=("self",), no_key=True).get(pk=study.pk)
    if locked.locked_at is not None:
        return False
    locked.locked_at, locked.locked_sha256 = now, locked.source_sha256
    locked.save(update_fields=["locked_at", "locked_sha256"])
    record("lock_study", locked, by=by, via=via, source_sha256=locked.source_sha256)
    return True
