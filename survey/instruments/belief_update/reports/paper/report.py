"""The report `paper`: tables 1 to 5 and figures 2 to 7 of a study, with the paper's own numbers next to them."""

from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.models import Study
from survey.services.answers.counting import frozen_stages
from survey.services.studies.lookup import find_study

from ..calibration.report import people_slugs
from ..release import releasing
from .pieces import report_result
from .study import pieces_of


class PaperReport(Report):
    """Each piece by itself: what a study does not have yet says what is missing, and the others stand."""

    arguments = (
        Argument(
            "people_study",
            "the study in which people answer the questions themselves, for figure 7",
            label="Study of people's own answers",
            choices=people_slugs,
            names_studies=True,
        ),
    )

    def obstacle(self, study: Study) -> str:
        return releasing.obstacle(study)

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        if not frozen_stages(study):
            raise StateRefused(f"{study.slug}: no stage is frozen yet; close one and wait until it is frozen")
        people = arguments.one("people_study")
        pieces = pieces_of(study, people_study=find_study(people) if people else None)
        return report_result(f"The paper's tables and figures of {study.slug}: {study.title}", pieces)
