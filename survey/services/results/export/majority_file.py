"""The majority labels of test stages as a file of an export. Imports models and below."""

from collections.abc import Iterator
from typing import NamedTuple

from survey.contracts.tables import ExtraFile, ValueColumn
from survey.models import Stage, Study
from survey.services.answers.majorities import ItemMajority, majorities_of, ties_of

from .common_columns import file_of_study, text


class StageMajority(NamedTuple):
    """What most answers to an item of a test stage say."""

    stage: Stage
    of_item: ItemMajority


COLUMNS = (
    ValueColumn("stage", "number", "The test stage, from 1, which is frozen.", whole=True, value="stage.index"),
    ValueColumn("item", "text", "The item's key, as in answers.csv.", value="of_item.item.key"),
    ValueColumn(
        "stratum", "text", "The end of the scores that the item was drawn from.", value=text("of_item.stratum")
    ),
    ValueColumn("answered", "number", "How many of its answers count.", whole=True, value="of_item.answered"),
    ValueColumn("ones", "number", "How many of these have label 1.", whole=True, value="of_item.ones"),
    ValueColumn("tied", "0 or 1", "1 where just half of them have.", value=lambda row: int(row.of_item.tied)),
    ValueColumn(
        "ties", "text", "What a tie counts as: label_0, label_1 or left_out.", value=lambda row: ties_of(row.stage)
    ),
    ValueColumn(
        "label",
        "0 or 1",
        "The label of more than half of the answers; empty where a tie is left out.",
        value="of_item.label",
    ),
)


def majorities_file(study: Study) -> ExtraFile:
    """One row for each item of each frozen test stage."""
    return file_of_study(study, "majorities.csv", COLUMNS, _majorities(study))


def _majorities(study: Study) -> Iterator[StageMajority]:
    for stage in study.main_stages().filter(state=Stage.State.FROZEN).order_by("index"):
        stage.study = study
        for majority in majorities_of(stage):
            yield StageMajority(stage, majority)
