"""The report `human_calibration`: do people foresee what people and language models get right? Figure 7."""

from survey.contracts.reports import Argument, Picture, Report, ReportArguments, ReportResult
from survey.models import Study
from survey.services.results.reports import CONDITION
from survey.services.studies.lookup import find_study

from ..alignment.report import model_names
from . import calibrating
from .expectations import perplexity_table
from .figure7 import calibration_chart, calibration_table


def people_slugs(study: Study) -> list[str]:
    return [people_study.slug for people_study in calibrating.people_studies(study)]


class CalibrationReport(Report):
    """Accuracy of the answerers by what a study's people expected of them."""

    arguments = (
        Argument(
            "people_study",
            "the study in which people answer the questions themselves",
            label="Study of people's own answers",
            required=True,
            choices=people_slugs,
            names_studies=True,
        ),
        Argument(
            "model", "only this language model; all without it", many=True, choices=model_names, label="Language models"
        ),
        CONDITION,
    )

    def obstacle(self, study: Study) -> str:
        if not calibrating.people_studies(study):
            return (
                f"{study.slug}: there is no study in which people answer questions of {study.bank} themselves; create "
                "one with the instrument own_answers on the same version of the bank"
            )
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        calibration = calibrating.human_calibration(
            study,
            people_study=find_study(arguments.one("people_study")),
            models=arguments["model"],
            condition=arguments["condition"],
        )
        perplexity = perplexity_table(calibration.expectations)
        return ReportResult(
            title=f"Do people foresee who answers correctly? {study.title}",
            lines=[
                f"Accuracy of the answerers by posterior belief: {calibration.beliefs} beliefs, "
                f"{calibration.people} people "
                "answering",
            ],
            tables=[calibration_table(calibration.lines, calibration.unreadable), perplexity],
            pictures=[
                Picture.of(
                    "figure7",
                    "Figure 7",
                    "The accuracy of people and of language models in three regions of what people expected of them, "
                    "with standard errors.",
                    calibration_chart(calibration.lines),
                )
            ],
            notes=calibration.notes,
            data={**calibration.as_json(), "perplexity": perplexity.records()},
        )
