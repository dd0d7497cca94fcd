"""The report `next_token_live`: what is known while guesses come in. One statement, and nobody's guesses."""

from django.db.models import Count, Q

from survey.contracts.reports import Findings, Given, Layout, Report, Table
from survey.contracts.tables import Column
from survey.exceptions import StateRefused
from survey.models import Study
from survey.services.answers.counting import counting

from ..models import TokenGuess

STAGES = (
    Column("stage", "number", "The stage.", whole=True),
    Column("guesses", "number", "Guesses that count so far.", whole=True),
    Column("people", "number", "Who made them.", whole=True),
    Column("runs", "number", "Runs with a guess.", whole=True),
    Column("right", "share", "Of the guesses, those of the true token."),
)
ANSWER = "response__assignment"


class NextTokenLive(Report):
    """How many guesses there are in how many runs, and how many are right."""

    def make(self, study: Study, given: Given) -> Findings:
        answers = counting(study.main_stages()).order_by().values("pk")
        by_stage = (
            TokenGuess.objects.filter(**{f"{ANSWER}__in": answers})
            .values(f"{ANSWER}__slot__stage__index")
            .annotate(
                guesses=Count("pk"),
                people=Count(f"{ANSWER}__sitting__respondent", distinct=True),
                runs=Count(f"{ANSWER}__slot__item", distinct=True),
                hits=Count("pk", filter=Q(right=True)),
            )
            .order_by(f"{ANSWER}__slot__stage__index")
        )
        rows = [
            (
                row[f"{ANSWER}__slot__stage__index"],
                row["guesses"],
                row["people"],
                row["runs"],
                row["hits"] / row["guesses"],
                row["hits"],
            )
            for row in by_stage
        ]
        if not rows:
            raise StateRefused(f"{study.slug}: no guess counts yet")
        guesses, hits = sum(row[1] for row in rows), sum(row[5] for row in rows)
        shown = [[*(f"{value:,}" for value in row[:4]), f"{100 * row[4]:.1f} %"] for row in rows]
        return Findings(
            title=f"Next tokens so far: {study.title}",
            lines=[f"{guesses:,} guesses so far; {100 * hits / guesses:.1f} % are right."],
            tables=[
                Table(
                    "stages_so_far",
                    "Guesses by stage",
                    STAGES,
                    [row[:5] for row in rows],
                    layouts=[Layout(["stage", "guesses", "people", "runs", "right"], shown)],
                )
            ],
            notes=["The shares are of the guesses that came in. Figures that weigh by the design: next_token."],
            data={"guesses": guesses, "right": hits, "stages": len(rows)},
        )
