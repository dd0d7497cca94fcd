"""The report `token_comparison_live`: what is known while answers come in. One statement, and nobody's answers."""

from django.db.models import Avg, Count, Q

from survey.contracts.reports import Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, Table
from survey.figures.words import integer, percent
from survey.models import Study
from survey.services.results.so_far import ANSWER, by_stage

from ..analysis.rewards import UNSURE
from ..models import StatedChance

STAGES = (
    Column("stage", "number", "The stage.", whole=True),
    Column("answers", "number", "Answers that count so far.", whole=True),
    Column("people", "number", "Who gave them.", whole=True),
    Column("contexts", "number", "Contexts with an answer.", whole=True),
    Column("towards_true", "share", "Of the answers, those that gave the true token more than 50 %."),
    Column("unsure", "share", "Of the answers, those of 50 %.", heading="50 %"),
    Column("reward", "number", "Mean reward of an answer, in points.", heading="mean reward", digits=1),
)
TOWARDS_TRUE = Q(true_is_left=True, percent_left__gt=UNSURE) | Q(true_is_left=False, percent_left__lt=UNSURE)


class ComparisonLive(Report):
    """How many answers there are at how many contexts, and how many lean towards the true token."""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        rows = by_stage(
            study,
            StatedChance,
            answers=Count("pk"),
            contexts=Count(f"{ANSWER}__slot__item__token_pair__context", distinct=True),
            towards_true=Count("pk", filter=TOWARDS_TRUE),
            unsure=Count("pk", filter=Q(percent_left=UNSURE)),
            mean=Avg("reward"),
        )
        if not rows:
            raise StateRefused(f"{study.slug}: no comparison counts yet")
        answers, towards = sum(row["answers"] for row in rows), sum(row["towards_true"] for row in rows)
        for row in rows:
            row["towards_true"] /= row["answers"]
            row["unsure"] /= row["answers"]
            row["reward"] = float(row.pop("mean"))
        return ReportResult(
            title=f"Comparisons so far: {study.title}",
            lines=[
                f"{integer(answers)} answers so far; {percent(towards / answers)} gave the true token more than "
                f"{UNSURE} %."
            ],
            tables=[Table("stages_so_far", "Answers by stage", STAGES, rows)],
            notes=["The shares are of the answers that came in. “Comparisons of next tokens” has people’s loss."],
            data={"answers": answers, "towards_true": towards, "stages": len(rows)},
        )
