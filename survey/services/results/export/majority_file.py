"""The majority labels of test stages as a file of an export. Imports models and below."""

from collections.abc import Iterator, Sequence
from typing import Any

from survey.contracts.tables import Column, ExtraFile
from survey.models import Stage, Study
from survey.services.answers.majorities import majorities_of, ties_of

FILE = "majorities.csv"
COLUMNS = (
    Column("study", "text", "The study's short name."),
    Column("stage", "number", "The test stage, from 1, which is frozen.", whole=True),
    Column("item", "text", "The item's key, as in answers.csv."),
    Column("stratum", "text", "The end of the scores that the item was drawn from."),
    Column("answered", "number", "How many of its answers count.", whole=True),
    Column("ones", "number", "How many of these have label 1.", whole=True),
    Column("tied", "0 or 1", "1 where just half of them have."),
    Column("ties", "text", "What a tie counts as: label_0, label_1 or left_out."),
    Column("label", "0 or 1", "The label of more than half of the answers; empty where a tie is left out."),
)


def majorities_file(study: Study) -> ExtraFile:
    """One row for each item of each frozen test stage."""
    return ExtraFile(FILE, COLUMNS, _rows(study))


def _rows(study: Study) -> Iterator[Sequence[Any]]:
    for stage in study.main_stages().filter(state=Stage.State.FROZEN).order_by("index"):
        stage.study = study
        for majority in majorities_of(stage):
            yield [
                *(study.slug, stage.index, majority.item.key, majority.stratum or None),
                *(majority.answered, majority.ones, int(majority.tied), ties_of(stage), majority.label),
            ]
