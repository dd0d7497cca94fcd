"""The report `estimates`: every figure of the estimates as tables, for pages, the API, commands and every export.

The page of estimates shows the figures of all stages; here are also those of each stage, worst-case bounds and every
threshold, with all their digits as files.
"""

from typing import Any

from survey.contracts import instruments
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.models import Study
from survey.services.results.estimates import estimate_tables, headlines, stored_estimates
from survey.services.results.estimates.estimate_tables import tables_of
from survey.services.results.estimates.study_estimates import StudyEstimates, own_divisions
from survey.services.results.reports import CONDITION


class EstimatesReport(Report):
    """All figures, who left, the noise of answers, and slots by what became of them."""

    arguments = (
        Argument(
            "by",
            "also inside each part of a division of items, or level of a condition",
            label="Inside each",
            many=True,
            choices=own_divisions,
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
        return report_result(report, study)


def report_result(report: StudyEstimates, study: Study) -> ReportResult:
    """The estimates as a report; for the command, which takes thresholds and groups of people too."""
    estimates: Any = instruments.of_study(study).estimates
    lines = [
        f"Over {report.estimand}: what this study's respondents would answer on average.",
        f"{report.answers} answers of {report.respondents} respondents.",
    ]
    headline, *others = [*headlines.sentences(report, estimates), ""]
    lines += filter(None, others)
    if report.provisional:
        lines.append("Provisional: a stage that counts here is not frozen yet.")
    return ReportResult(
        title=f"All estimates: {report.title}",
        headline=headline,
        lines=lines,
        tables=tables_of(report),
        pictures=[picture] if (picture := headlines.picture(report, estimates)) else [],
        notes=report.assumptions,
        data=report.as_json(),
    )
