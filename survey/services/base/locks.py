"""Two locks: on a stage's row, for letting people in and moving slots; and on a study's file."""

from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from survey.models import Stage, Study

from .auditing import record
from .compiled import run


def locked_stage(pk: int) -> Stage:
    """The stage with its study and bank. Its row is locked until the transaction ends.

    The lock leaves out the key. At commit, PostgreSQL looks up the stage of every row that refers to it. Under a full
    lock such a transaction would wait for us while we wait for a booklet that it has claimed.
    """
    return Stage.objects.select_for_update(of=("self",), no_key=True).select_related("study__bank").get(pk=pk)


_STAGES = Stage._meta.db_table
# What is needed of a stage to begin in it.
_READ = ("id", "study_id", "index", "state", "seed", "arrivals")
# As the lock does, the update leaves out the key. If the row was changed while the statement waited, PostgreSQL looks
# at the row as it is then: a stage that closes meanwhile admits nobody.
_COUNT = (
    f"UPDATE {_STAGES} SET arrivals = arrivals + 1 WHERE state = %s AND id = "  # noqa: S608 - names of columns
    f'(SELECT id FROM {_STAGES} WHERE study_id = %s AND state = %s ORDER BY "index" DESC LIMIT 1) '
    "RETURNING " + ", ".join(f'"{name}"' for name in _READ)
)


def count_arrival(study: Study) -> Stage | None:
    """Count one more arrival in the newest open stage, which locks its row until the transaction ends; None if no stage
    is open. Roll back where the person does not begin.

    `arrivals` of what is returned is the number of those who came before.
    """
    rows = run(_COUNT, Stage.State.OPEN.value, study.pk, Stage.State.OPEN.value)
    if not rows:
        return None
    stage = Stage.from_db(DEFAULT_DB_ALIAS, _READ, rows[0])
    stage.arrivals -= 1
    stage.study = study
    return stage


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
