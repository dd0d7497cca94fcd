"""Writing an export: each file appears whole or not at all. Pages, commands, API, jobs and packages all write here."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from survey.contracts.tables import ExtraFile
from survey.exceptions import HunchError
from survey.figures.csv_lines import csv_lines
from survey.models import Study
from survey.services.base.writing import replace_file
from survey.services.results.export.answers_file import NO_LEVELS, answer_rows
from survey.services.results.export.check_programs import check_programs
from survey.services.results.export.codebook import CODEBOOK_HEADER, codebook, codebook_page
from survey.services.results.export.columns import columns_of
from survey.services.results.export.contents import extra_files
from survey.services.results.export.formats import CSV, WRITERS

ANSWERS, CODEBOOK = "answers.csv", "codebook.csv"
BATCH_SIZE = 1000  # rows


def answers_table(
    study: Study, *, stage: int | None = None, levels: Mapping[str, str] = NO_LEVELS, since: datetime | None = None
) -> ExtraFile:
    """answers.csv as the other files are; its rows are read while they are written."""
    return ExtraFile(ANSWERS, columns_of(study), answer_rows(study, stage=stage, levels=levels, since=since))


def codebook_table(study: Study, tables: Collection[str] | None = None) -> ExtraFile:
    """codebook.csv; with `tables` (without an ending) only of these."""
    entries = (
        (name, column.name, column.kind, column.description)
        for name, column in codebook(study)
        if tables is None or stem_of(name) in tables
    )
    return ExtraFile(CODEBOOK, CODEBOOK_HEADER, entries)


def stem_of(name: str) -> str:
    return name.removesuffix(".csv")


def streamed(file: ExtraFile) -> Iterator[str]:
    """A file as CSV, some lines at a time, for who downloads it: the bytes that every export writes."""
    return csv_lines(file.columns, file.rows)


def answers_csv(study: Study, *, stage: int | None = None, levels: Mapping[str, str] = NO_LEVELS) -> Iterator[str]:
    """answers.csv, for streaming."""
    return streamed(answers_table(study, stage=stage, levels=levels))


def write_table(file: ExtraFile, formats: Mapping[str, Path]) -> Iterator[int]:
    """Write one table in each of these formats at once, each to its path. Gives how many rows each part had, while
    they are written: every part is asked for, or the files are not whole."""
    with ExitStack() as ended:
        writers = [WRITERS[name](path, file.columns) for name, path in formats.items()]
        for writer in writers:
            ended.callback(writer.close)
        rest = iter(file.rows)
        while rows := list(islice(rest, BATCH_SIZE)):
            for writer in writers:
                writer.write(rows)
            yield len(rows)


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [_write(folder, answers_table(study, levels=levels))]
        for extra in extra_files(study, levels=levels, with_pay=True):
            written.append(_write(folder, extra))
        written.append(_write(folder, codebook_table(study)))
        for name, text in {"codebook.md": codebook_page(study, levels), **check_programs(study)}.items():
            with replace_file(folder / name) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")
                _sync(temporary)
            written.append(Written(folder / name))
    except OSError as exc:
        raise HunchError(f"{folder}: cannot be written: {exc.strerror}") from exc
    return written


def _write(folder: Path, file: ExtraFile) -> Written:
    """Nobody may mistake half an export for a whole one."""
    with replace_file(folder / file.name) as temporary:
        rows = sum(write_table(file, {CSV: temporary}))
        _sync(temporary)
    return Written(folder / file.name, rows)


def _sync(path: Path) -> None:
    """The content is on the disk before the file gets its name."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
