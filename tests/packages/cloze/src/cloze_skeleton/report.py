"""The report: the norms of every gap with enough answers."""

from typing import TYPE_CHECKING

from django.db.models import Count

from survey.contracts import instruments
from survey.contracts.reports import Findings, Given, Report, Table
from survey.exceptions import StateRefused
from survey.services.answers.counting import counting, with_answers

from .norms import COLUMNS, Norm, norms_of, rows_of

if TYPE_CHECKING:
    from survey.models import Study


class ClozeNorms(Report):
    def obstacle(self, study: "Study") -> str:
        least = instruments.of_study(study).options.least
        by_gap = counting(study.main_stages()).order_by().values("slot__item").annotate(n=Count("pk"))
        if by_gap.filter(n__gte=least).exists():
            return ""
        return f"no gap of {study.slug} has {least} answers yet: collect more, or lower the option least"

    def make(self, study: "Study", arguments: Given) -> Findings:
        norms = _enough(study)
        if not norms:
            raise StateRefused(self.obstacle(study))
        options = instruments.of_study(study).options
        rows = list(rows_of(norms, lenient=options.normalisation == "lenient", smoothing=options.smoothing))
        return Findings(
            title="Cloze norms",
            lines=[f"{len(norms)} gaps with at least {options.least} answers"],
            tables=[Table("cloze", "Gaps", COLUMNS, rows)],
            data={"gaps": len(norms)},
        )


def _enough(study: "Study") -> list[Norm]:
    instrument = instruments.of_study(study)
    return [
        norm
        for norm in norms_of(with_answers(counting(study.main_stages()), study))
        if norm.n >= instrument.options.least
    ]
