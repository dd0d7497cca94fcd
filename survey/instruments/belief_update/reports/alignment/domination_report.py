"""The report `domination`: which language models are right wherever others are, and do people get less from them?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.words import percent
from survey.models import Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.results.people_and_models.unreadable_replies import Unreadable, notes_on_unreadable
from survey.services.results.reports import CONDITION

from . import aligning
from .domination import DeploymentGap, Domination
from .report import MAX_SAMPLES

DIGITS = 9  # Of what is exported; the last ones of a resampled figure depend on the machine.
DOMINATION = (
    Column("better", "text", "The language model that is right on more of the questions that both have answered."),
    Column("worse", "text", "The other one."),
    Column("questions", "number", "The questions that both have answered."),
    Column("better_correct", "share", "How often the better one is correct on them."),
    Column("worse_correct", "share", "How often the worse one is."),
    Column("more", "number", "Questions on which the better one is right, or right more often, and the worse one not."),
    Column("exceptions", "number", "Questions on which it is the other way round."),
    Column("exception_share", "share", "Exceptions among the questions on which the worse one is right."),
    Column(
        "dominates",
        "0 or 1",
        "1: the better one is right wherever the worse is, up to the allowed exceptions.",
        style="yes or no",
    ),
    Column(
        "better_unreadable",
        "number",
        "How many of the better one's replies to the study's questions could not be read; they count as not right.",
        whole=True,
    ),
    Column("worse_unreadable", "number", "The same of the worse one.", whole=True),
)
DEPLOYED = (
    Column("better", "text", "The language model that is right on more questions."),
    Column("worse", "text", "The other one."),
    Column(
        "dominates",
        "0 or 1",
        "1: it is right wherever the other one is, up to the allowed exceptions.",
        style="yes or no",
    ),
    Column("rule", "text", "threshold: deployed where the belief is above it. proportional: as often as believed."),
    Column("threshold", "share", "The threshold; empty under the other rule."),
    Column("beliefs", "text", "Where the beliefs come from: mixture or regression."),
    Column("better_pairs", "number", "Pairs with the better one's outcome, of questions that both have answered."),
    Column("worse_pairs", "number", "Pairs with the worse one's."),
    Column("better_performance", "share", "Human-deployed performance of the better one."),
    Column("worse_performance", "share", "Human-deployed performance of the worse one."),
    FigureColumn(
        "difference",
        "number",
        "The first less the second.",
        style="points",
        prefix="",
        low="Lower end of its 95 % interval over pairs.",
    ),
    Column(
        "verdict",
        "text",
        "reversed: the interval lies below 0. unclear: only the figure does. kept: neither. undecided: both models are "
        "deployed nowhere, or both everywhere, so that beliefs decide nothing.",
    ),
    Column("better_deployed", "share", "In what share of its pairs the better one is deployed.", digits=0),
    Column("worse_deployed", "share", "The same of the worse one.", digits=0),
    Column("better_in_use", "share", "How often the better one is right where it is deployed."),
    Column("worse_in_use", "share", "How often the worse one is right where it is deployed."),
    FigureColumn(
        "in_use_difference",
        "number",
        "The first less the second; empty where one of the two is deployed nowhere.",
        style="points",
        prefix="in_use_",
        low="Lower end of its 95 % interval over pairs.",
    ),
    Column("in_use_verdict", "text", "As `verdict`, of how often the models are right where they are deployed."),
)


class DominationReport(Report):
    """Every pair of models with its exceptions, and what people get from both."""

    arguments = (
        Argument(
            "exceptions",
            "the share of what the worse one is right on that may be exceptions",
            default="0",
            label="Exceptions (share, 0 to 1)",
        ),
        Argument(
            "threshold", "a model is deployed above this belief", default="0.5", label="Threshold of beliefs (0 to 1)"
        ),
        Argument(
            "samples",
            "of the bootstrap, for the intervals: more take longer and are more exact",
            default="2000",
            on_pages="500",
            most_on_web=2000,
            label="Resamples",
        ),
        CONDITION,
    )
    exported = {"domination": DOMINATION, "domination_deployed": DEPLOYED}

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        allowed = arguments.number("exceptions", lowest=0, highest=1)
        threshold = arguments.number("threshold", lowest=0, highest=0.999)
        samples = arguments.whole("samples", lowest=100, highest=MAX_SAMPLES)
        pairs = aligning.dominations_of(study)
        if not pairs:
            raise StateRefused(
                f"{study.slug}: no two language models have answered the same question of {study.bank}; "
                "`hunch collect_answers` or `hunch import_answers` brings answers"
            )
        notes: list[str] = []
        gaps: Sequence[DeploymentGap] = ()
        try:
            gaps, notes = aligning.deployment_gaps_of(
                study, pairs, threshold=threshold, samples=samples, condition=arguments["condition"]
            )
        except (StateRefused, ValueError) as exc:
            notes = [f"nothing is said about deployment: {exc}"]
        # The pairs are of all models; notes on deployment are on those that it has figures of.
        compared = sorted({name for pair in pairs for name in (pair.better, pair.worse)})
        unreadable = aligning.unreadable_of(study, compared, eligible_questions(study))
        notes += notes_on_unreadable(unreadable)
        holding = {(pair.better, pair.worse) for pair in pairs if pair.holds(allowed)}
        turned = sorted({(gap.better, gap.worse) for gap in gaps if gap.is_reversed} & holding)
        line = f"In {len(holding)} of {len(pairs)} pairs of models the better one dominates"
        if allowed:
            line += f" (at most {percent(allowed)} exceptions)"
        if gaps:
            line += f"; {len(turned)} of them are reversed under human deployment by some rule"
        return ReportResult(
            title=f"Models that are better everywhere: {study.title}",
            headline=f"{line}.",
            tables=[pairs_table(pairs, holding, unreadable), deployed_table(gaps, holding)],
            notes=notes,
            data={
                "allowed_exceptions": allowed,
                "pairs": [
                    {
                        **asdict(pair),
                        "exception_share": pair.exception_share,
                        "dominates": pair.holds(allowed),
                        "better_unreadable": unreadable[pair.better].replies,
                        "worse_unreadable": unreadable[pair.worse].replies,
                    }
                    for pair in pairs
                ],
                "deployed": [
                    {**asdict(gap), "verdict": gap.verdict, "in_use_verdict": gap.in_use_verdict} for gap in gaps
                ],
                "reversed": [list(names) for names in turned],
            },
        )


def pairs_table(
    pairs: Sequence[Domination], holding: set[tuple[str, str]], unreadable: Mapping[str, Unreadable] | None = None
) -> Table:
    """Every pair of models; `holding`: those in which the better one dominates, up to the allowed exceptions;
    `unreadable`: of each model's replies; None where its answers are a file's."""
    rows: list[list[Any]] = [
        [
            *(pair.better, pair.worse, pair.questions, pair.better_correct, pair.worse_correct),
            *(pair.more, pair.exceptions, pair.exception_share, int((pair.better, pair.worse) in holding)),
            *(unreadable and unreadable[name].replies for name in (pair.better, pair.worse)),
        ]
        for pair in pairs
    ]
    return Table(
        "domination",
        "Is one right wherever the other is?",
        DOMINATION,
        rows,
        note="On the questions that both have answered. These are counts of these questions and have no intervals.",
        views=[TableView([column.name for column in DOMINATION[:9]])],
    )


def deployed_table(gaps: Sequence[DeploymentGap], holding: set[tuple[str, str]]) -> Table:
    """What people get from both models of a pair, by rule."""
    rows: list[list[Any]] = []
    for gap in gaps:
        rows.append(
            [
                *(gap.better, gap.worse, int((gap.better, gap.worse) in holding), gap.rule.kind),
                *(gap.rule.threshold if gap.rule.kind == "threshold" else None, gap.beliefs, *gap.pairs),
                *(round(value, DIGITS) for value in gap.performance),
                Figure.between(round(gap.difference, DIGITS), [round(end, DIGITS) for end in gap.interval]),
                gap.verdict,
                *(round(share, DIGITS) for share in gap.deployed),
                *(None if share is None else round(share, DIGITS) for share in gap.in_use),
                _in_use(gap),
                gap.in_use_verdict,
            ]
        )
    note = (
        "Human-deployed performance, and how often a model is right where it is deployed, on pairs whose questions "
        "both have answered; in brackets 95 % intervals over pairs, for one pair of models at a time. reversed: the "
        "better model has less of it, and the interval lies below 0."
    )
    undecided = {gap.undecided: None for gap in gaps if gap.undecided}
    if undecided:
        some = "" if len(undecided) == 1 else f" ({len(undecided) - 1} more such rules and beliefs)"
        note += f" undecided: {next(iter(undecided))}{some}."
    return Table(
        "domination_deployed",
        "Do people get more from the better one?",
        DEPLOYED,
        rows,
        note=note if gaps else "Nothing can be said about deployment yet.",
        views=[
            TableView(
                [
                    *("better", "worse", "dominates", "rule", "threshold", "beliefs", "better_deployed"),
                    *("worse_deployed", "better_performance", "worse_performance", "difference", "verdict"),
                ],
                "Deployed and right",
            ),
            TableView(
                [
                    *("better", "worse", "dominates", "rule", "threshold", "beliefs", "better_in_use", "worse_in_use"),
                    *("in_use_difference", "in_use_verdict"),
                ],
                "Right where deployed",
            ),
        ],
    )


def _in_use(gap: DeploymentGap) -> Figure | None:
    if gap.in_use_difference is None:
        return None
    return Figure.between(round(gap.in_use_difference, DIGITS), [round(end, DIGITS) for end in gap.in_use_interval])
