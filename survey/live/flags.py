"""How many sittings each flag of the study file has now, and how many a frozen stage excludes."""

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count

from survey.models import Sitting, Study
from survey.services.answers.sitting_flags import marks_of, rules_in_words


@dataclass(frozen=True)
class FlagLine:
    """One rule of a study: whom it flags, how many sittings it flags now, and whether their answers are excluded."""

    name: str
    rule: str
    sittings: int
    excludes: bool


def flag_lines(study: Study) -> tuple[FlagLine, ...]:
    """A line for each rule. It needs all answers of the study."""
    rules = rules_in_words(study)
    if not rules:
        return ()
    sittings = Sitting.objects.filter(stage__study=study).order_by("pk").values_list("pk", flat=True)
    counts = Counter(name for flags in marks_of(study, list(sittings)).values() for name in flags)
    reasons = study.config.exclusions.flags
    return tuple(FlagLine(name, sentence, counts.get(name, 0), name in reasons) for name, sentence in rules)


def excluded_by_stage(study: Study) -> tuple[tuple[int, int], ...]:
    """(stage, sittings whose answers it excludes), of frozen stages that exclude any."""
    stages = study.stages.annotate(n=Count("exclusions")).filter(n__gt=0).order_by("index")
    return tuple(stages.values_list("index", "n"))
