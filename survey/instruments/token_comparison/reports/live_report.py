"""The report `token_comparison_live`: what is known while answers come in. One statement, and nobody's answers."""

from django.db.models import Avg, Count, Q

from survey.contracts.reports import Findings, Given, Layout, Report, Table
from survey.contracts.tables import Column
from survey.exceptions import StateRefused
from survey.models import Study
from survey.services.answers.counting import counting

from ..analysis.rewards import UNSURE
from ..models import StatedChance

STAGES = (
    Column("stage", "number", "The stage.", whole=True),
    Column("answers", "number", "Answers that count so far.", whole=True),
    Column("people", "number", "Who gave them.", whole=True),
    Column("contexts", "number", "Contexts with an answer.", whole=True),
    Column("towards_true", "share", "Of the answers, those that gave the true token more than 50 %."),
    Column("unsure", "share", "Of the answers, those of 50 %."),
    Column("reward", "number", "Mean reward of an answer, in points."),
)
ANSWER = "response__assignment"
TOWARDS_TRUE = Q(true_is_left=True, percent_left__gt=UNSURE) | Q(true_is_left=False, percent_left__lt=UNSURE)


class ComparisonLive(Report):
    """How many answers there are at how many contexts, and how many lean towards the true token."""

    def make(self, study: Study, given: Given) -> Findings:
        counted = counting(study.main_stages()).order_by().values("pk")
        by_stage = (
            StatedChance.objects.filter(**{f"{ANSWER}__in": counted})
            .values(f"{ANSWER}__slot__stage__index")
            .annotate(
                answers=Count("pk"),
                people=Count(f"{ANSWER}__sitting__respondent", distinct=True),
                contexts=Count(f"{ANSWER}__slot__item__token_pair__context", distinct=True),
                towards=Count("pk", filter=TOWARDS_TRUE),
                unsure=Count("pk", filter=Q(percent_left=UNSURE)),
                mean=Avg("reward"),
            )
            .order_by(f"{ANSWER}__slot__stage__index")
        )
        found = list(by_stage)
        if not found:
            raise StateRefused(f"{study.slug}: no comparison counts yet")
        rows = [
            (
                row[f"{ANSWER}__slot__stage__index"],
                row["answers"],
                row["people"],
                row["contexts"],
                row["towards"] / row["answers"],
                row["unsure"] / row["answers"],
                float(row["mean"]),
            )
            for row in found
        ]
        answers, towards = sum(row["answers"] for row in found), sum(row["towards"] for row in found)
        shown = [
            [*(f"{value:,}" for value in row[:4]), f"{100 * row[4]:.1f} %", f"{100 * row[5]:.1f} %", f"{row[6]:.1f}"]
            for row in rows
        ]
        header = ["stage", "answers", "people", "contexts", "more for the true one", "50 %", "mean reward"]
        return Findings(
            title=f"Comparisons so far: {study.title}",
            lines=[
                f"{answers:,} answers so far; {100 * towards / answers:.1f} % gave the true token more than {UNSURE} %."
            ],
            tables=[Table("stages_so_far", "Answers by stage", STAGES, rows, layouts=[Layout(header, shown)])],
            notes=["The shares are of the answers that came in. People's loss, with its checks: token_comparison."],
            data={"answers": answers, "towards_true": towards, "stages": len(rows)},
        )
