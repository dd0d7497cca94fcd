"""The report `paper`: tables 1 to 5 and figures 2, 3 and 5 of a study, with the paper's own numbers beside them."""

from survey.contracts.reports import Findings, Given, Report
from survey.exceptions import StateRefused
from survey.models import Study
from survey.services.answers.counting import frozen_stages

from . import releasing
from .paper import findings
from .paper_study import pieces_of

NOT_YET = (
    "Figures 4, 6 and 7 are not here. The report alignment lists misleading answers; human_calibration has figure 7."
)


class PaperReport(Report):
    """Each piece by itself: what a study does not have yet says what is missing, and the others stand."""

    def obstacle(self, study: Study) -> str:
        return releasing.obstacle(study)

    def make(self, study: Study, given: Given) -> Findings:
        if not frozen_stages(study):
            raise StateRefused(f"{study.slug}: no stage is frozen yet; close one and wait until it is frozen")
        return findings(f"The paper's tables and figures of {study.slug}: {study.title}", pieces_of(study), [NOT_YET])
