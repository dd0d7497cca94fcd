"""Test copies are looked after by the person who walks through them: no alert and no figure of the site is about
one."""

from typing import Any

from survey.models import AuditEntry
from survey.models.study import TEST_ENDING
from survey.services.base import rights


def of_studies(rows: Any) -> Any:
    """These rows without those of test copies.

    Args:
        rows: the manager or the rows of a model that belongs to a study.
    """
    if rows.model is AuditEntry:  # An entry names the study and outlives it.
        return rows.exclude(study__endswith=TEST_ENDING)
    path = rights.path_to_study(rows.model)
    if path is None:
        return rows.all()
    return rows.filter(**{("test_of" if path == "pk" else f"{path}__test_of") + "__isnull": True})
