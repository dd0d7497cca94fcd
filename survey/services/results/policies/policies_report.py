"""The report `policies`: what other policies would have found in each frozen stage, and how much more than its own."""

from collections.abc import Iterator, Sequence
from typing import Any

from survey.contracts import instruments
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.models import Study
from survey.services.results.policies import comparing
from survey.services.results.policies.comparing import PolicyLine, StageComparison

MAX_POLICIES = 12  # policies or predictors at once: each predictor is trained again for each stage
LOW, HIGH = "The lower end of its 95 % interval.", "The upper end."
POLICIES = (
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("policy", "text", "The other policy, or the stage's own."),
    Column("predictor", "text", "Whose scores it goes by; empty for a policy that needs none."),
    FigureColumn("plain", "number", "What an answer would have found, by inverse chances.", low=LOW, high=HIGH),
    FigureColumn("self_normalised", "number", "The same, divided by the sum of the weights.", low=LOW, high=HIGH),
    FigureColumn(
        "difference",
        "number",
        "How much more than the stage's own policy, by the same answers.",
        heading="more than planned",
        parts={
            "low": Column("difference_low", "number", LOW),
            "high": Column("difference_high", "number", HIGH),
            "standard_error": Column("difference_standard_error", "number", "The standard error of the difference."),
        },
    ),
    Column(
        "effective_sample_size",
        "number",
        "How many equally weighted answers would be as precise.",
        heading="effective answers",
        digits=0,
    ),
    Column("unsupported", "share", "The policy's slots on candidates that the stage could not draw."),
    Column("answers", "number", "Answers that say something about it.", whole=True),
    Column("reason", "text", "Why there are no figures; empty where there are.", heading="to know"),
)
SHOWN = ("policy", "predictor", "self_normalised", "plain", "difference", "effective_sample_size", "reason")


def _quick_predictors(study: Study) -> list[str]:
    """The instrument's baselines, which train at once."""
    learning = instruments.of_study(study).learning
    return [baseline.name for baseline in learning.baselines] if learning is not None else []


class PoliciesReport(Report):
    """By inverse chances, for each frozen stage: its candidates, and what was known before it."""

    arguments = (
        Argument(
            "epsilon",
            "the share of slots that is drawn uniformly, above 0 and below 1",
            many=True,
            label="Other epsilons (0 to 1)",
            example="0.2",
        ),
        Argument(
            "top_fraction",
            "the share of candidates that counts as the top, above 0 and below 1",
            many=True,
            label="Other top fractions (0 to 1)",
            example="0.1",
        ),
        Argument(
            "design",
            "a design with its settings, such as uniform or proportional:trade_off=0.1",
            many=True,
            label="Other designs",
            example="proportional:trade_off=0.1",
        ),
        Argument(
            "predictor",
            "one of the instrument's baselines, trained on the answers before each stage",
            many=True,
            choices=_quick_predictors,
            label="Predictors",
        ),
    )

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        for name in ("epsilon", "top_fraction", "design", "predictor"):
            if len(arguments[name]) > MAX_POLICIES:
                raise HunchError(f"{name}: give at most {MAX_POLICIES}, not {len(arguments[name])}", code="invalid")
        quick = _quick_predictors(study)
        for name in arguments["predictor"]:
            if name not in quick:
                raise HunchError(
                    f"predictor: {name} is not one of {', '.join(quick) or 'none'}, which train at once; for others: "
                    "`hunch "
                    f"compare_policies {study.slug} --predictor {name}`",
                    code="invalid",
                )
        stages = comparing.compare(
            study,
            epsilons=_inside(arguments, "epsilon"),
            top_fractions=_inside(arguments, "top_fraction"),
            designs=[_design(text) for text in arguments["design"]],
            predictors=arguments["predictor"],
        )
        return report_result(study, stages)


def report_result(study: Study, stages: Sequence[StageComparison]) -> ReportResult:
    """The comparisons as a report; for the command, which trains any predictor too."""
    table = Table(
        "policies",
        "Each stage by itself",
        POLICIES,
        [*policy_rows(stages)],
        views=[
            TableView(SHOWN, title=f"Stage {stage.stage}", where={"stage": stage.stage})
            for stage in stages
            if not stage.reason
        ],
    )
    return ReportResult(
        title=f"Other sampling designs: {study.title}",
        lines=[*INTRODUCTION, *(stage_in_words(stage) for stage in stages)],
        tables=[table],
        data={
            "policies": table.records(),
            "stages": [
                {
                    "stage": stage.stage,
                    "design": stage.design,
                    "slots": stage.slots,
                    "answers": stage.answers,
                    "found": None if stage.logged is None else stage.logged.value,
                    "unit": stage.unit,
                    "reason": stage.reason,
                }
                for stage in stages
            ],
        },
    )


INTRODUCTION = (
    "Each stage separately: the same candidates, and the answers before it. Figures: expected finding per answer.",
    "Logs cannot say how a whole study would have gone: its later stages would have learnt from other answers.",
)


def _inside(arguments: ReportArguments, name: str) -> list[float]:
    numbers = arguments.numbers(name, lowest=0, highest=1)
    if any(value in (0, 1) for value in numbers):
        raise HunchError(f"{name}: must lie strictly between 0 and 1, not {', '.join(arguments[name])}", code="invalid")
    return numbers


def _design(text: str) -> Any:
    try:
        return comparing.parse_design(text)
    except HunchError as exc:
        raise HunchError(f"design: {exc.message}", code="invalid") from exc


def stage_in_words(stage: StageComparison) -> str:
    finding = "nothing" if stage.logged is None else Figure.of(stage.logged, stage.unit)
    text = (
        f"Stage {stage.stage}, planned {stage.design}: {stage.answers} answers to {stage.slots} slots found {finding}"
    )
    text += f" ({stage.title})." if stage.title else "."
    return f"{text} It cannot be compared: {stage.reason}." if stage.reason else text


def policy_rows(stages: Sequence[StageComparison]) -> Iterator[dict[str, Any]]:
    """Every policy of every stage, by the columns of `POLICIES`. Without enough support the figures are left out; how
    little there was stays."""
    for stage in stages:
        for line in stage.policies:
            row = {"stage": stage.stage, "policy": line.policy, "predictor": line.predictor, "reason": line.reason}
            yield row | _values(line, stage.unit)


def _values(line: PolicyLine, unit: str) -> dict[str, Any]:
    if line.found is None:
        return {}
    support = {
        "effective_sample_size": line.found.effective_sample_size,
        "unsupported": line.found.unsupported,
        "answers": line.found.self_normalised.n,
    }
    if line.reason:
        return support
    figures = {"plain": line.found.plain, "self_normalised": line.found.self_normalised, "difference": line.difference}
    return {
        name: None if estimate is None else Figure.of(estimate, unit) for name, estimate in figures.items()
    } | support
