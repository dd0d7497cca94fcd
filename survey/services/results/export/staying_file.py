"""Who was how likely still there: the weights of the figures weighted for leaving, as a file of an export."""

from collections.abc import Mapping

from survey.contracts.tables import Column, ExtraFile
from survey.models import Study
from survey.services.results.estimates.study_estimates import staying_rows

COLUMNS = (
    Column("study", "text", "The study's short name."),
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("slot", "number", "The slot, as in answers.csv.", whole=True),
    Column("respondent", "text", "Pseudonym of the respondent who answered."),
    Column(
        "staying",
        "0 to 1",
        "The chance that the person was still there to answer. One row per answer in the figures weighted for leaving; "
        "no rows where too few people left, or while conditions are hidden.",
    ),
    Column(
        "weight",
        "number",
        "The answer's weight in these figures, 1 on average: a mean of answers with these weights is the figure of all "
        "stages.",
    ),
)


def staying_file(study: Study, *, levels: Mapping[str, str]) -> ExtraFile:
    return ExtraFile("staying.csv", COLUMNS, staying_rows(study, levels))
