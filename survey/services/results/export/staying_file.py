"""Who was how likely still there: the weights of the figures weighted for leaving, as a file of an export."""

from collections.abc import Mapping

from survey.contracts.tables import ExtraFile, ValueColumn
from survey.models import Study
from survey.services.results.estimates.study_estimates import stayed_answers

from .common_columns import file_of_study

COLUMNS = (
    ValueColumn("stage", "number", "The stage, from 1.", whole=True),
    ValueColumn("slot", "number", "The slot, as in answers.csv.", whole=True),
    ValueColumn("respondent", "text", "Pseudonym of the respondent who answered."),
    ValueColumn(
        "staying",
        "0 to 1",
        "The chance that the person was still there to answer. One row per answer in the figures weighted for leaving; "
        "no rows where too few people left, or while conditions are hidden.",
    ),
    ValueColumn(
        "weight",
        "number",
        "The answer's weight in these figures, 1 on average: a mean of answers with these weights is the figure of all "
        "stages.",
    ),
)


def staying_file(study: Study, *, levels: Mapping[str, str]) -> ExtraFile:
    return file_of_study(study, "staying.csv", COLUMNS, stayed_answers(study, levels))
