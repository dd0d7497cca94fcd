"""Writing an export: each file appears whole or not at all."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from survey.exceptions import HunchError
from survey.models import Study
from survey.services.base.csv_lines import csv_lines
from survey.services.base.writing import replace_file
from survey.services.results.export.codebook import CODEBOOK_HEADER, codebook, codebook_page
from survey.services.results.export.columns import columns_of
from survey.services.results.export.contents import extra_files
from survey.services.results.export.reading import NO_LEVELS, answer_rows


def answers_csv(study: Study, *, stage: int | None = None, levels: Mapping[str, str] = NO_LEVELS) -> Iterator[str]:
    """answers.csv, line by line, for streaming."""
    return csv_lines(columns_of(study), answer_rows(study, stage=stage, levels=levels))


@dataclass(frozen=True)
class Written:
    """A file of an export. `rows` are without the header; None if it is not a table."""

    path: Path
    rows: int | None = None


def write_export(study: Study, folder: Path, *, levels: Mapping[str, str] = NO_LEVELS) -> list[Written]:
    """Write every file of the study's export, with what was paid. Each appears whole or not at all; an older one is
    replaced.

    Raises:
        HunchError: the folder cannot be made or written.
    """
    entries = ((name, column.name, column.kind, column.description) for name, column in codebook(study))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [_write(folder / "answers.csv", answers_csv(study, levels=levels))]
        for extra in extra_files(study, levels=levels, with_pay=True):
            written.append(_write(folder / extra.name, csv_lines(extra.columns, extra.rows)))
        written.append(_write(folder / "codebook.csv", csv_lines(CODEBOOK_HEADER, entries)))
        written.append(Written(_write(folder / "codebook.md", [codebook_page(study, levels)]).path))
    except OSError as exc:
        raise HunchError(f"{folder}: cannot be written: {exc.strerror}") from exc
    return written


def _write(path: Path, lines: Iterable[str]) -> Written:
    """Nobody may mistake half an export for a whole one."""
    count = 0
    with replace_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        for count, line in enumerate(lines):  # noqa: B007 - the header is line 0, so the last number counts the rows
            file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return Written(path, count)
