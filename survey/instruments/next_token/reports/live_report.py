"""The report `next_token_live`: what is known while guesses come in. One statement, and nobody's guesses."""

from django.db.models import Count, Q

from survey.contracts.reports import Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, Table
from survey.figures.words import integer, percent
from survey.models import Study
from survey.services.results.so_far import ANSWER, by_stage

from ..models import TokenGuess

STAGES = (
    Column("stage", "number", "The stage.", whole=True),
    Column("guesses", "number", "Guesses that count so far.", whole=True),
    Column("people", "number", "Who made them.", whole=True),
    Column("runs", "number", "Runs with a guess.", whole=True),
    Column("right", "share", "Of the guesses, those of the true token."),
)


class NextTokenLive(Report):
    """How many guesses there are in how many runs, and how many are right."""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        rows = by_stage(
            study,
            TokenGuess,
            guesses=Count("pk", filter=Q(attempt=1)),
            runs=Count(f"{ANSWER}__slot__item", distinct=True),
            hits=Count("pk", filter=Q(right=True, attempt=1)),
        )
        if not rows:
            raise StateRefused(f"{study.slug}: no guess counts yet")
        guesses, hits = sum(row["guesses"] for row in rows), sum(row["hits"] for row in rows)
        for row in rows:
            row["right"] = row.pop("hits") / row["guesses"]
        return ReportResult(
            title=f"Next tokens so far: {study.title}",
            lines=[f"{integer(guesses)} guesses so far; {percent(hits / guesses)} are right."],
            tables=[Table("stages_so_far", "Guesses by stage", STAGES, rows)],
            notes=["The shares are of the guesses that came in. The report “Next tokens” weighs by the design."],
            data={"guesses": guesses, "right": hits, "stages": len(rows)},
        )
