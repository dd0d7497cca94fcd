"""The report `live`: the figures of a study while its answers come in. Reads few columns of many rows."""

from collections.abc import Iterator, Sequence

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from survey.contracts.instruments import learning_of
from survey.contracts.reports import Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Figure
from survey.figures.words import percent
from survey.models import Assignment, AssignmentCondition, ConditionLevel, Slot, Study
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import ESTIMATED, counting
from survey.services.results.reports import CONDITION
from survey.services.stages.leaderboard import SAMPLED, leaderboard

from ...models import Belief
from ..rows import belief_update_of
from . import tables as live_figures
from .tables import AreaOfStage, LiveAnswers, LiveFigure

COLUMNS = (
    *("pk", "slot__stage__index", "slot__stratum__name", "slot__role", "sitting__respondent"),
    *("slot__item__pair__outcome", "slot__inclusion_probability", "slot__pool_probability", "slot__score"),
)


class LiveReport(Report):
    """Histograms of beliefs, shares that changed, AUC and lift by stage, reliability, the rank curve."""

    arguments = (CONDITION,)

    # No obstacle: whether answers count would be asked of the database for every list of reports. `make` says it.

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        answers = live_answers(study, arguments["condition"])
        if not len(answers):
            under = " under this condition" if arguments["condition"] else ""
            raise StateRefused(f"{study.slug}: no answer{under} counts yet")
        figures = [
            live_figures.histograms(answers),
            live_figures.changed_by_stage(answers),
            live_figures.areas_by_stage(list(_areas(study, arguments["condition"]))),
            live_figures.lift_by_stage(answers, study.seed),
            *live_figures.judged(answers),
        ]
        shown_figures = [figure for figure in figures if figure.table.rows]
        people = len(np.unique(answers.respondent))
        return ReportResult(
            title=f"Beliefs so far: {study.title}",
            lines=[
                f"{len(answers)} answers of {people} people count so far; "
                f"{percent(answers.changed.mean())} of them changed by more than {answers.threshold} points."
            ],
            tables=[figure.table for figure in shown_figures],
            pictures=[picture for figure in shown_figures for picture in figure.pictures],
            notes=_missing(figures),
            data={"answers": len(answers), "people": people, "changed": float(answers.changed.mean())},
        )


def _missing(figures: Sequence[LiveFigure]) -> list[str]:
    """What cannot be shown yet."""
    names = {figure.table.name for figure in figures if figure.table.rows}
    notes = []
    if "auc_by_stage" not in names:
        notes.append("No predictor has been judged by a later stage yet, so that there is no AUC by stage.")
    if "reliability" not in names:
        notes.append("No drawn item has a prediction yet, so that there is no reliability and no rank curve.")
    return notes


def live_answers(study: Study, condition: Sequence[str] = ()) -> LiveAnswers:
    """The counted answers of all main stages with both beliefs, in the order of stages and plans.

    Raises:
        HunchError: no such condition.
    """
    stages = list(study.main_stages())
    for stage in stages:
        stage.study = study
    counted = _under(counting(stages, roles=ESTIMATED), read_condition(study, condition))
    beliefs: dict[int, dict[str, int]] = {}
    stated = Belief.objects.filter(response__assignment__in=counted.order_by().values("pk")).order_by()
    for answer, kind, value in stated.values_list("response__assignment", "kind", "value").iterator(5000):
        beliefs.setdefault(answer, {})[kind] = value
    rows = counted.order_by("slot__stage__index", "slot__number").values_list(*COLUMNS)
    complete = [row for row in rows.iterator(5000) if row[5] is not None and len(beliefs.get(row[0], ())) == 2]
    columns = list(zip(*complete, strict=True)) or [()] * len(COLUMNS)
    inclusion, pool = (np.array(columns[place], dtype=np.float64) for place in (6, 7))
    return LiveAnswers(
        stage=np.array(columns[1], dtype=np.int64),
        stratum=np.array(columns[2], dtype=str),
        drawn=np.array([role == Slot.Role.SAMPLED for role in columns[3]], dtype=bool),
        respondent=np.array(columns[4], dtype=np.int64),
        outcome=np.array(columns[5], dtype=np.int64),
        prior=np.array([beliefs[pk]["prior"] for pk in columns[0]], dtype=np.float64),
        posterior=np.array([beliefs[pk]["posterior"] for pk in columns[0]], dtype=np.float64),
        weight=1.0 / (inclusion * pool),
        score=np.array([np.nan if score is None else score for score in columns[8]], dtype=np.float64),
        threshold=belief_update_of(study).options.threshold,
    )


def _under(rows: QuerySet[Assignment], levels: dict[str, str]) -> QuerySet[Assignment]:
    """The answers under these levels, which are drawn for a sitting or for an item."""
    for factor, level in levels.items():
        of_sitting = ConditionLevel.objects.filter(sitting=OuterRef("sitting"), factor=factor, level=level)
        of_item = AssignmentCondition.objects.filter(assignment=OuterRef("pk"), factor=factor, level=level)
        rows = rows.filter(Exists(of_sitting) | Exists(of_item))
    return rows


def _areas(study: Study, condition: Sequence[str]) -> Iterator[AreaOfStage]:
    """Of the study's own predictor, judged by each later stage; under several levels together there are none."""
    if len(condition) > 1:
        return
    titles = {part.name: part.title for part in learning_of(belief_update_of(study)).parts}
    for line in leaderboard(study, level="".join(condition)):
        if not line.is_main or line.evaluated_on is None or (line.answers, line.weighting) != (SAMPLED, "design"):
            continue
        for part, figure in line.figures["auc"].items():
            if figure.value is not None:
                area = Figure(figure.value, figure.low, figure.high)
                yield AreaOfStage(line.evaluated_on, line.run.example_count, titles[part], area)
