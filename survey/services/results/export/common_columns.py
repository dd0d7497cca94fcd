"""What tables of an export have in common: who a row is about, values as files write them, rows of a study's sittings.
Imports models and below."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet

from survey.contracts.tables import Column, ExtraFile, ValueColumn
from survey.models import Study
from survey.services.results.export.increments import changed_since

CHUNK = 500
STUDY = Column("study", "text", "The study's short name.")
# Of rows that belong to a sitting.
WHO = (
    ValueColumn("stage", "number", "The stage, from 1.", whole=True, value="sitting.stage.index"),
    ValueColumn("respondent", "text", "Pseudonym of the respondent.", value="sitting.respondent.pseudonym"),
    ValueColumn(
        "simulated", "0 or 1", "1: the respondent was a simulated one.", value="sitting.respondent.is_simulated"
    ),
)


def file_of_study(study: Study, name: str, columns: Sequence[ValueColumn], rows: Iterable[Any]) -> ExtraFile:
    """A file with the study's short name before the columns' values of each row."""
    file = ExtraFile.of(name, columns, rows)
    return ExtraFile(name, (STUDY, *columns), ([study.slug, *cells] for cells in file.rows))


def rows_of_sittings(
    rows: QuerySet[Any], study: Study, since: datetime | None, *related: str, by: str = "at"
) -> Iterator[Any]:
    """Rows that belong to sittings of the study, in the order of stages and sittings. They are read while they are
    iterated.

    Args:
        since: only of sittings in which anything was stored since.
        by: their order within a sitting.
    """
    selected = rows.filter(changed_since(since, "sitting__"), sitting__stage__study=study)
    selected = selected.select_related("sitting__respondent", "sitting__stage", *related)
    yield from selected.order_by("sitting__stage__index", "sitting", by, "pk").iterator(CHUNK)


def in_utc(at: datetime | None) -> str | None:
    """A time as exports write it; None if there is none."""
    return at.astimezone(UTC).isoformat() if at else None


def in_json(value: Any) -> str | None:
    """A value as exports write it; None if it is empty."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if value else None


def time(path: str) -> Callable[[Any], str | None]:
    """Reads a time."""
    read = attrgetter(path)
    return lambda row: in_utc(read(row))


def text(path: str) -> Callable[[Any], Any]:
    """Reads a text or a number; None for an empty one."""
    read = attrgetter(path)
    return lambda row: read(row) or None
