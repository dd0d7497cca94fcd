"""The report `release`: train.csv, test.csv and a README of counts, as the paper's data are released."""

from dataclasses import asdict
from functools import partial

from predictors.hardness import COLUMNS as BESIDE
from survey.contracts.reports import Argument, Report, ReportArguments, ReportFile, ReportResult
from survey.figures import Column, Table
from survey.figures.words import counted
from survey.models import Study

from . import releasing

COLUMNS = (
    Column("stage", "number", "The stage, from 1."),
    Column("pilot", "0 or 1", "1: a pilot, whose answers are in no file."),
    Column("state", "text", "draft, planned, open, paused, closing or frozen."),
    Column("design", "text", "How it draws.", style="words"),
    Column("frozen", "number", "Frozen answers that count, to sampled and holdout slots."),
    Column("train", "number", "Its rows in train.csv."),
    Column("test", "number", "Its rows in test.csv, one an item."),
)


class ReleaseReport(Report):
    """The study's rows in the columns of the paper's released data."""

    arguments = (
        Argument(
            "columns",
            "further columns of both files: people (priors of training rows), models (the share of them that is right)",
            choices=lambda _study: (*BESIDE, "+".join(BESIDE)),
            without="none",
            label="Further columns",
        ),
    )

    def obstacle(self, study: Study) -> str:
        return releasing.obstacle(study)

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        release = releasing.release_of(study, releasing.checked_names(arguments.one("columns")))
        page = releasing.readme(release)
        lines = [f"{counted(len(release.train), 'training row')}, {counted(len(release.test), 'test row')}"]
        notes = [f"no {releasing.TEST}: {release.without_test}"] if release.without_test else []
        return ReportResult(
            title=f"Release of {study.slug}: {study.title}",
            lines=lines,
            tables=[
                Table(
                    "counts",
                    "Rows by stage",
                    COLUMNS,
                    [[getattr(stage, column.name) for column in COLUMNS] for stage in release.stages],
                )
            ],
            files=[
                *(ReportFile(name, partial(bytes, content)) for name, content in release.files.items()),
                ReportFile("README.md", page.encode),
            ],
            notes=notes,
            data={
                "train_rows": len(release.train),
                "test_rows": len(release.test),
                "without_test": release.without_test,
                "simulated_answers": release.simulated,
                "stages": [asdict(stage) for stage in release.stages],
                "tests": [{"stage": test.stage.index, **test.facts} for test in release.tests],
            },
        )
