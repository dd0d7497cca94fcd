"""The report `token_comparison` of a study: people's loss and perplexity, next to models whose loss is known."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from django.db.models import Count, Sum

from survey.contracts import instruments
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError, StateRefused
from survey.figures.words import integer
from survey.instruments.token_comparison.models import StatedChance
from survey.instruments.token_comparison.options import ComparisonOptions
from survey.instruments.token_comparison.study_table import StudyTable
from survey.models import Sitting
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import counting, study_answers
from survey.services.base.seeds import generator
from survey.services.results.reports import CONDITION

from .comparison_results import CONTEXTS, DRAWS, LOSSES, StudyComparisons, report_result, work_out

if TYPE_CHECKING:
    from survey.contracts.tables import Column
    from survey.models import Study


class TokenComparisonReport(Report):
    arguments: ClassVar[Sequence[Argument]] = (
        CONDITION,
        Argument(
            "by",
            "person: each person alone too",
            choices=lambda _study: ("person",),
            without="all together",
            label="By",
        ),
    )
    exported: ClassVar[Mapping[str, "Sequence[Column]"]] = {"losses": LOSSES, "draws": DRAWS, "contexts": CONTEXTS}

    def obstacle(self, study: "Study") -> str:
        if counting(study.main_stages()).exists():
            return ""
        return f"no comparison of {study.slug} is answered yet: open a stage"

    def make(self, study: "Study", arguments: ReportArguments) -> ReportResult:
        by = arguments.one("by")
        if by not in ("", "person"):
            raise HunchError(f"by: {by!r} is not person; leave it out or write person")
        options: ComparisonOptions = instruments.of_study(study).options
        answers = study_answers(study, levels=read_condition(study, arguments["condition"]))
        table = StudyTable(study, options, answers)
        if not len(table.answered):
            raise StateRefused(self.obstacle(study) or f"nothing of {study.slug} is answered under this condition")
        persons = table.persons() if by else None
        material = StudyComparisons(
            comparisons=table.comparisons,
            answers=table.answers(),
            models=table.models,
            contexts=table.names,
            texts=table.texts,
            ratios=options.ratios,
            persons=persons,
        )
        figures = work_out(material, rng=generator(study.config.seed, "token comparison report"))
        if figures is None:
            raise StateRefused(f"no context of {study.slug} has an answer")
        c = table.comparisons
        floor, sittings = floor_of(study, options)
        return report_result(
            material,
            figures,
            title="Comparisons of next tokens",
            lines=[
                f"{integer(len(set(table.people)))} people, {integer(len(table.people))} answers, {c.contexts} "
                f"contexts in {len(table.texts)} texts; {integer(round(float(c.same.sum())))} of "
                f"{integer(round(float(c.draws.sum())))} draws are the true token itself and were not asked",
                f"{integer(floor)} of {integer(sittings)} completed sittings ended at 0 points or below, which pay no "
                "bonus",
            ],
            notes=[
                *table.notes,
                *(
                    ["a bonus that cannot fall below 0 rewards risk near 0: raise the option endowment"]
                    if floor
                    else []
                ),
            ],
            data={
                "answers": len(table.people),
                "respondents": len(set(table.people)),
                "texts": len(table.texts),
                "generator": options.generator,
                "generator_sha256": table.generator_sha256,
                "tokenizer_sha256": table.tokenizer_sha256,
                "floor_reached": floor,
                "sittings": sittings,
            },
        )


def floor_of(study: "Study", options: ComparisonOptions) -> tuple[int, int]:
    """In how many completed sittings endowment and rewards came to 0 or less, and how many there are."""
    rows = (
        StatedChance.objects.filter(
            response__assignment__sitting__stage__study=study,
            response__assignment__sitting__state=Sitting.State.COMPLETE,
        )
        .order_by()
        .values("response__assignment__sitting")
        .annotate(sum=Sum("reward"), n=Count("pk"))
        .values_list("sum", flat=True)
    )
    sums = [float(row) for row in rows]
    return sum(total + options.endowment <= 0 for total in sums), len(sums)
