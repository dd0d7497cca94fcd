"""The report: how often each model's reply was preferred to another's, and how often the first one was."""

from collections import defaultdict
from typing import TYPE_CHECKING

from survey.contracts import instruments
from survey.contracts.reports import Argument, Findings, Given, Report, Table
from survey.contracts.tables import Column
from survey.exceptions import HunchError, StateRefused
from survey.services.answers.counting import counting

from .models import Rating

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from survey.models import Study

WINS = (
    Column("model", "text", "The model whose reply was preferred."),
    Column("other", "text", "The model whose reply it was compared with."),
    Column("wins", "number", "Answers that prefer it."),
    Column("answers", "number", "Answers to this pair."),
    Column("mean_rating", "number", "Mean rating towards it, -3.5 to 3.5."),
)


class Preferences(Report):
    arguments = (
        Argument(
            "question",
            "which of the study's questions; the first one unless said",
            choices=lambda study: instruments.of_study(study).options.questions,
        ),
    )

    def obstacle(self, study: "Study") -> str:
        return (
            "" if _counted(study).exists() else f"{study.slug} has no judgement yet: open a stage and wait for answers"
        )

    def make(self, study: "Study", arguments: Given) -> Findings:
        scales = instruments.of_study(study).options.questions
        scale = arguments.one("question") or scales[0]
        if scale not in scales:
            raise HunchError(f"question: {scale!r} is none of {', '.join(scales)}", code="invalid")
        ratings = [rating for rating in _ratings(study) if rating.scale == scale]
        if not ratings:
            raise StateRefused(self.obstacle(study))
        towards: dict[tuple[str, str], list[float]] = defaultdict(list)
        for rating in ratings:
            comparison = rating.judgement.response.assignment.slot.item.comparison
            pair = comparison.a.language_model.name, comparison.b.language_model.name
            towards[pair].append(rating.towards_a)
            towards[pair[::-1]].append(-rating.towards_a)
        rows = [
            (model, other, sum(value > 0 for value in values), len(values), round(sum(values) / len(values), 4))
            for (model, other), values in sorted(towards.items())
            if model != other
        ]
        first = sum(rating.given <= 4 for rating in ratings)
        return Findings(
            title=f"Which reply is more {scale}",
            lines=[f"{len(ratings)} answers; the first reply was preferred in {first}"],
            tables=[Table("preferences", "Wins", WINS, rows)],
            data={"answers": len(ratings), "first": first},
        )


def _counted(study: "Study") -> "QuerySet[Rating]":
    counted = counting(study.main_stages())
    return Rating.objects.filter(judgement__cannot_judge=False, judgement__response__assignment__in=counted)


def _ratings(study: "Study") -> list[Rating]:
    item = "judgement__response__assignment__slot__item__comparison"
    return list(
        _counted(study).select_related(f"{item}__a__language_model", f"{item}__b__language_model").order_by("pk")
    )
