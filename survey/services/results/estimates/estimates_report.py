"""The report `estimates`: every figure of the estimates as tables, for pages, the API, commands and every export.

The page of estimates shows the figures of all stages; here are also those of each stage, worst-case bounds and every
threshold, with all their digits as files.
"""

from survey.contracts import instruments
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.figures.words import spaced
from survey.models import Study
from survey.services.results.estimates import estimate_tables, main_picture, stored_estimates
from survey.services.results.estimates.estimate_tables import tables_of
from survey.services.results.estimates.study_estimates import StudyEstimates, own_divisions
from survey.services.results.reports import CONDITION


def division_titles(study: Study) -> dict[str, str]:
    return {name: spaced(name) for name in own_divisions(study)}


class EstimatesReport(Report):
    """All figures, who left, the noise of answers, and slots by what became of them."""

    arguments = (
        Argument(
            "by",
            "also inside each part of a division of items, or level of a condition",
            label="Inside each",
            many=True,
            choices=division_titles,
        ),
        CONDITION,
    )
    exported = {
        "estimates": estimate_tables.ESTIMATES,
        "slots": estimate_tables.SLOTS,
        "leaving": estimate_tables.LEAVING,
        "noise": estimate_tables.NOISE,
    }

    def obstacle(self, study: Study) -> str:
        if instruments.of_study(study).estimates is None:
            return f"{study.slug}: its instrument names nothing to estimate"
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        known = own_divisions(study)
        for name in arguments["by"]:
            if name not in known:
                raise HunchError(
                    f"by: {name} is not one of {', '.join(known)}; groups of people are in "
                    f"`hunch estimate {study.slug} --by {name}`",
                    code="invalid",
                )
        report = stored_estimates.current_estimates(study, by=arguments["by"], condition=arguments["condition"])
        return report_result(report)


def report_result(report: StudyEstimates) -> ReportResult:
    """The estimates as a report; for the command, which takes thresholds and groups of people too."""
    headline, *others = [*report.headlines, ""]
    lines = [
        *filter(None, others),
        f"Over {report.estimand}: what this study's respondents would answer on average.",
        f"{report.answers} answers of {report.respondents} respondents.",
    ]
    if report.provisional:
        lines.append("Provisional: a stage that counts here is not frozen yet.")
    return ReportResult(
        title=f"All estimates: {report.title}",
        headline=headline,
        lines=lines,
        tables=tables_of(report),
        pictures=[picture] if (picture := main_picture.picture(report)) else [],
        notes=report.assumptions,
        data=report.as_json(),
    )
