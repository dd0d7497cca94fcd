"""An export as a job: chosen tables in chosen formats, counted against the database, in one ZIP with checksums."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from survey.contracts.reports import Argument, ReportArguments
from survey.contracts.tables import ExtraFile
from survey.exceptions import HunchError
from survey.models import (
    Assignment,
    DataChoice,
    FormAnswer,
    PracticeAnswer,
    PredictorRun,
    QuestionReport,
    ScreenTiming,
    Sitting,
    Slot,
    Stage,
    Study,
    UnfinishedScreen,
)
from survey.services.answers.conditions import pairs_of, read_condition
from survey.services.base import audit_chain, rights
from survey.services.base.job_kinds import JobKind, Progress, Work
from survey.services.base.rights import Right
from survey.services.base.writing import replace_file
from survey.storage.paths import installed_version

from . import files
from .check_programs import check_programs
from .codebook import codebook_page
from .contents import extra_files, file_heads
from .formats import CSV, FORMATS
from .increments import read_since

CHUNK = 1 << 20
MOMENT = (1980, 1, 1, 0, 0, 0)  # of the files in the ZIP: the same bytes for the same rows


def table_names(study: Study) -> list[str]:
    """The tables of a study's export, without an ending."""
    return [files.stem_of(name) for name in (files.ANSWERS, *(file.name for file in file_heads(study)))]


def _check(study: Study, arguments: ReportArguments) -> None:
    read_condition(study, arguments["condition"])
    read_since(arguments.one("since"))


def make(work: Work) -> Mapping[str, Any]:
    study, begun = work.study, timezone.now()
    levels = read_condition(study, work.arguments["condition"])
    since = read_since(work.arguments.one("since"))
    with_pay = work.asked_by is None or rights.may(work.asked_by, Right.SEE_POSTINGS, study.pk)
    audit_chain.seal_entries()  # So that the export holds the entry about itself, with its seal.
    wanted = [name for name in table_names(study) if not work.arguments["table"] or name in work.arguments["table"]]
    all_of_it = not levels and since is None
    counts = {name: count for name, count in counts_of(study).items() if name in wanted} if all_of_it else {}
    answers = files.answers_table(study, levels=levels, since=since)
    further = extra_files(study, levels=levels, since=since, with_pay=with_pay) if set(wanted) - {"answers"} else ()
    name = work.folder / f"{study.slug}-export.zip"
    with (
        TemporaryDirectory(dir=work.folder) as scratch,
        replace_file(name) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        pack = Pack(
            archive,
            Path(scratch),
            work.arguments["format"],
            work.progress,
            total=sum(count() for count in counts.values()),
        )
        for file in _files(answers, further):
            stem = files.stem_of(file.name)
            if stem in wanted:
                pack.add(file, counts.get(stem))
        pack.add(files.codebook_table(study, wanted), None, formats=(CSV,))
        pack.add_text("codebook.md", codebook_page(study, levels))
        if CSV in work.arguments["format"]:
            for program, text in check_programs(study, wanted).items():
                pack.add_text(program, text)
        manifest = {
            "study": study.slug,
            "study_sha256": study.source_sha256,
            "hunch": installed_version(),
            "made_at": begun.isoformat(),
            "since": since.isoformat() if since else None,
            "next_since": begun.isoformat(),
            "condition": levels,
            "rows": pack.rows,
            "counted": sorted(counts),
        }
        pack.add_text("manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
        pack.add_checksums()
    return {name: manifest[name] for name in ("rows", "counted", "next_since")}


@dataclass
class Pack:
    """The ZIP that grows, with the hash of each file in it and the rows of each table."""

    archive: zipfile.ZipFile
    scratch: Path
    formats: Sequence[str]
    progress: Progress
    total: int

    def __post_init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.hashes: dict[str, str] = {}
        self.done = 0

    def add(self, file: ExtraFile, count: Callable[[], int] | None, *, formats: Sequence[str] = ()) -> None:
        """One table in every format.

        Args:
            count: how many rows the database has now, counted without reading them.

        Raises:
            HunchError: other rows were written than there are.
        """
        stem, before = files.stem_of(file.name), count() if count else 0
        paths = {name: self.scratch / f"{stem}.{name}" for name in formats or self.formats}
        written = 0
        for rows in files.write_table(file, paths):
            written += rows
            self.done += rows if count else 0
            self.progress(min(self.done, self.total), self.total, f"writing {stem}")
        if count:
            _compare(stem, written, before, count())
        self.rows[stem] = written
        for path in paths.values():
            self._pack(path)

    def _pack(self, path: Path) -> None:
        entry = zipfile.ZipInfo(path.name, MOMENT)
        entry.compress_type = zipfile.ZIP_STORED if path.suffix == ".parquet" else zipfile.ZIP_DEFLATED
        digest = hashlib.sha256()
        # A file whose size is not known beforehand may be larger than 2 GiB.
        with path.open("rb") as source, self.archive.open(entry, "w", force_zip64=True) as target:
            while chunk := source.read(CHUNK):
                digest.update(chunk)
                target.write(chunk)
                self.progress(min(self.done, self.total), self.total, f"packing {path.name}")
        self.hashes[path.name] = digest.hexdigest()
        path.unlink()

    def add_text(self, name: str, text: str) -> None:
        content = text.encode()
        entry = zipfile.ZipInfo(name, MOMENT)
        self.archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
        self.hashes[name] = hashlib.sha256(content).hexdigest()

    def add_checksums(self) -> None:
        """In the form that `sha256sum --check` reads."""
        lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(self.hashes.items()))
        self.archive.writestr(zipfile.ZipInfo("SHA256SUMS", MOMENT), lines, zipfile.ZIP_DEFLATED)


def _compare(table: str, written: int, before: int, after: int) -> None:
    """While a study runs, rows come between counting and reading; then they lie between both counts."""
    low, high = sorted((before, after))
    if not low <= written <= high:
        there_are = f"{before}" if before == after else f"{before} to {after}"
        raise HunchError(
            f"{table}: {written} rows were written, and the database has {there_are}; nothing was kept. Ask again, and "
            "tell your administrator if it happens again"
        )


def counts_of(study: Study) -> dict[str, Callable[[], int]]:
    """How many rows each table has, counted by statements of their own."""
    planned = Q(slot__stage__study=study) & ~Q(slot__stage__state=Stage.State.DRAFT)
    of_sittings = {"sitting__stage__study": study}

    def answers() -> int:
        slots = Slot.objects.filter(stage__study=study).exclude(stage__state=Stage.State.DRAFT)
        untaken = slots.annotate(given=Count("assignments")).filter(given=0).count()
        return Assignment.objects.filter(planned).count() + untaken

    def forms() -> int:
        form_answers = FormAnswer.objects.filter(**of_sittings).order_by().values_list("answers", flat=True)
        return sum(map(len, form_answers.iterator())) + DataChoice.objects.filter(**of_sittings).count()

    return {
        "answers": answers,
        "sittings": Sitting.objects.filter(stage__study=study).count,
        "plan": Slot.objects.filter(stage__study=study).count,
        "runs": PredictorRun.objects.filter(stage__study=study).count,
        "forms": forms,
        "practice": PracticeAnswer.objects.filter(**of_sittings).count,
        "question_reports": QuestionReport.objects.filter(**of_sittings).count,
        "steps": ScreenTiming.objects.filter(**of_sittings).count,
        "unfinished_screens": UnfinishedScreen.objects.filter(**of_sittings).count,
        "questions": study.bank.questions.count,
    }


def _files(answers: ExtraFile, further: Iterable[ExtraFile]) -> Iterator[ExtraFile]:
    yield answers
    yield from further


KIND = JobKind(
    name="export",
    title="Export",
    summary="Tables of answers, sittings, forms, plans and more with their codebook and checksums, in one ZIP.",
    right=Right.EXPORT,
    make=make,
    arguments=(
        Argument("table", "only these tables; without it, all of them", many=True, choices=table_names, label="Tables"),
        Argument(
            "format",
            "csv, jsonl or parquet; each of them may be given",
            many=True,
            default=CSV,
            choices=lambda _study: FORMATS,
            label="File formats",
        ),
        Argument(
            "condition",
            "only answers under this level of a factor; one for each factor at most",
            many=True,
            choices=pairs_of,
            label="Only under the condition",
        ),
        Argument(
            "since",
            "only what was stored from this day or time on: the next_since of your last export. "
            "Weights and flags of earlier rows may have changed too",
            label="Only what is new since",
            example="2030-01-31T09:00:00Z",
        ),
    ),
    check=_check,
)
