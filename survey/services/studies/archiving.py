"""Archiving a study: it leaves the lists, nobody can begin, and no stage opens. It stays readable and exportable."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from survey.exceptions import StateRefused
from survey.models import Stage, Study
from survey.services.base.auditing import record

RUNNING = (Stage.State.OPEN, Stage.State.PAUSED, Stage.State.CLOSING)


@transaction.atomic
def archive(study: Study, *, by: Any = None, via: str = "command") -> Study:
    """
    Raises:
        StateRefused: a stage is open, paused or closing.
    """
    stages, study = _locked(study)
    if running := [stage for stage in stages if stage.state in RUNNING]:
        raise StateRefused(f"stage {running[0].index} is {running[0].state}: close it and wait until it is frozen")
    if study.archived_at is None:
        study.archived_at = timezone.now()
        study.save(update_fields=["archived_at"])
        record("archive_study", study, by=by, via=via)
    return study


@transaction.atomic
def bring_back(study: Study, *, by: Any = None, via: str = "command") -> Study:
    """Make an archived study an ordinary one again."""
    _stages, study = _locked(study)
    if study.archived_at is not None:
        study.archived_at = None
        study.save(update_fields=["archived_at"])
        record("bring_back_study", study, by=by, via=via)
    return study


def _locked(study: Study) -> tuple[list[Stage], Study]:
    """The stages before the study, as everywhere."""
    stages = Stage.objects.select_for_update(of=("self",), no_key=True).filter(study=study).order_by("pk")
    return list(stages), Study.objects.select_for_update(of=("self",), no_key=True).get(pk=study.pk)
