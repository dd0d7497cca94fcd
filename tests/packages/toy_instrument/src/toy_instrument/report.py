"""The toy's report: how often each word was guessed."""

from collections import Counter
from typing import TYPE_CHECKING

from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult, Table
from survey.contracts.tables import Column
from survey.exceptions import StateRefused
from survey.services.answers.counting import counting

from .models import Guess

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from survey.models import Study

COLUMNS = (
    Column("word", "text", "A word that was guessed, in small letters."),
    Column("guesses", "number", "In how many guesses of counted answers it stands."),
)


class GuessedWords(Report):
    arguments = (Argument("least", "leave out words in fewer guesses", default="1"),)
    exported = {"guessed_words": COLUMNS}

    def obstacle(self, study: "Study") -> str:
        return "" if _counted(study).exists() else f"{study.slug} has no guess yet: open a stage and wait for answers"

    def make(self, study: "Study", arguments: ReportArguments) -> ReportResult:
        least = arguments.whole("least", lowest=1, highest=1_000_000)
        if obstacle := self.obstacle(study):
            raise StateRefused(obstacle)
        guesses = _guesses(study)
        counted = Counter(word for text in guesses for word in set(text.lower().split()))
        rows = [(word, count) for word, count in sorted(counted.items()) if count >= least]
        return ReportResult(
            title="Guessed words",
            lines=[f"{len(counted)} different words in {len(guesses)} guesses"],
            tables=[Table("guessed_words", "Words", COLUMNS, rows)],
            data={"guesses": len(guesses), "words": dict(rows)},
        )


def _counted(study: "Study") -> "QuerySet[Guess]":
    return Guess.objects.filter(response__assignment__in=counting(study.main_stages()))


def _guesses(study: "Study") -> list[str]:
    return list(_counted(study).order_by("response_id").values_list("text", flat=True))
