"""The report `policies`: what other policies would have found in each frozen stage, and how much more than its own."""

from collections.abc import Iterator, Sequence
from typing import Any

from bandit import Estimate
from survey.contracts import instruments
from survey.contracts.measures import SHARE
from survey.contracts.reports import Argument, Findings, Given, Layout, Report, Table
from survey.contracts.tables import Column
from survey.exceptions import HunchError
from survey.models import Study

from . import beside, comparing
from .comparing import PolicyLine, StageComparison

MOST = 12  # policies or predictors at once: each predictor is trained anew for each stage
NOTHING = "–"
POLICIES = (
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("policy", "text", "The other policy, or the stage's own."),
    Column("predictor", "text", "Whose scores it goes by; empty for a policy that needs none."),
    Column("plain", "number", "What an answer would have found, by inverse chances."),
    Column("plain_low", "number", "The lower end of its 95 % interval."),
    Column("plain_high", "number", "The upper end."),
    Column("self_normalised", "number", "The same, divided by the sum of the weights."),
    Column("self_normalised_low", "number", "The lower end of its 95 % interval."),
    Column("self_normalised_high", "number", "The upper end."),
    Column("difference", "number", "How much more than the stage's own policy, by the same answers."),
    Column("difference_low", "number", "The lower end of its 95 % interval."),
    Column("difference_high", "number", "The upper end."),
    Column("difference_standard_error", "number", "The standard error of the difference."),
    Column("effective_sample_size", "number", "How many equally weighted answers would be as precise."),
    Column("unsupported", "share", "The policy's slots on candidates that the stage could not draw."),
    Column("answers", "number", "Answers that say something about it.", whole=True),
    Column("reason", "text", "Why there are no figures; empty where there are."),
)
SHOWN = ("policy", "predictor", "self-normalised", "plain", "more than planned", "effective", "to know")


def _quick_predictors(study: Study) -> list[str]:
    """The instrument's baselines, which train at once."""
    learning = instruments.of_study(study).learning
    return [one.name for one in learning.baselines] if learning is not None else []


class PoliciesReport(Report):
    """By inverse chances, for each frozen stage: its candidates, and what was known before it."""

    arguments = (
        Argument("epsilon", "another epsilon, above 0 and below 1; several for several", many=True),
        Argument("top_fraction", "another top fraction, above 0 and below 1; several for several", many=True),
        Argument("design", "a design, such as uniform or proportional:trade_off=0.1; several for several", many=True),
        Argument(
            "predictor",
            "one of the instrument's baselines, trained on the answers before each stage (compare_policies takes all)",
            many=True,
            choices=_quick_predictors,
        ),
    )

    def make(self, study: Study, given: Given) -> Findings:
        for name in ("epsilon", "top_fraction", "design", "predictor"):
            if len(given[name]) > MOST:
                raise HunchError(f"{name}: give at most {MOST}, not {len(given[name])}", code="invalid")
        quick = _quick_predictors(study)
        for name in given["predictor"]:
            if name not in quick:
                raise HunchError(
                    f"predictor: {name} is not one of {', '.join(quick) or 'none'}, which train at once; run: hunch "
                    f"compare_policies {study.slug} --predictor {name}",
                    code="invalid",
                )
        stages = comparing.compare(
            study,
            epsilons=_inside(given, "epsilon"),
            top_fractions=_inside(given, "top_fraction"),
            designs=[_design(text) for text in given["design"]],
            predictors=given["predictor"],
        )
        rows = [*policy_rows(stages)]
        return Findings(
            title=f"Other policies: {study.title}",
            lines=[*INTRODUCTION, *(stage_in_words(stage) for stage in stages)],
            tables=[Table("policies", "Each stage by itself", POLICIES, rows, layouts=[*_layouts(stages)])],
            data={
                "policies": [dict(zip([column.name for column in POLICIES], row, strict=True)) for row in rows],
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


def _inside(given: Given, name: str) -> list[float]:
    found = given.numbers(name, lowest=0, highest=1)
    if any(value in (0, 1) for value in found):
        raise HunchError(f"{name}: must lie strictly between 0 and 1, not {', '.join(given[name])}", code="invalid")
    return found


def _design(text: str) -> Any:
    try:
        return comparing.parse_design(text)
    except HunchError as exc:
        raise HunchError(f"design: {exc.message}", code="invalid") from exc


def stage_in_words(stage: StageComparison) -> str:
    found = "nothing" if stage.logged is None else number(stage.logged, stage.unit)
    text = f"Stage {stage.stage}, planned {stage.design}: {stage.answers} answers to {stage.slots} slots found {found}"
    text += f" ({stage.title})." if stage.title else "."
    return f"{text} It cannot be compared: {stage.reason}." if stage.reason else text


def _layouts(stages: Sequence[StageComparison]) -> Iterator[Layout]:
    for stage in stages:
        if not stage.reason:
            rows = [shown_row(line, stage.unit, nothing=NOTHING) for line in stage.policies]
            yield Layout(SHOWN, rows, f"Stage {stage.stage}")


def shown_row(line: PolicyLine, unit: str, *, nothing: str) -> list[str]:
    """A policy in words and rounded numbers; without enough support only how little there is."""
    found, difference = line.found, line.difference
    predictor = line.predictor or "none"
    if found is None:
        return [line.policy, predictor, *[nothing] * 4, line.reason]
    return [
        *(line.policy, predictor),
        *(nothing if line.reason else number(one, unit) for one in (found.self_normalised, found.plain)),
        nothing if difference is None else number(difference, unit),
        *(f"{found.effective_sample_size:.0f}", line.reason),
    ]


def number(estimate: Estimate, unit: str) -> str:
    """An estimate with its interval, if it has one."""
    value = beside.number(estimate.value, unit)
    if not estimate.has_interval:
        return value
    ends = [f"{100 * end:.1f}" if unit == SHARE else f"{end:.2f}" for end in estimate.interval]
    return f"{value} [{', '.join(ends)}]"


def policy_rows(stages: Sequence[StageComparison]) -> Iterator[list[Any]]:
    """Every policy of every stage, in the order of `POLICIES`. Without enough support the figures are left out here
    too; how little there was stays."""
    for stage in stages:
        for line in stage.policies:
            yield [stage.stage, line.policy, line.predictor, *_values(line), line.reason]


def _values(line: PolicyLine) -> list[Any]:
    if line.found is None:
        return [None] * 13
    plain, other = line.found.plain, line.found.self_normalised
    support = [line.found.effective_sample_size, line.found.unsupported, other.n]
    if line.reason:
        return [*[None] * 10, *support]
    difference: list[Any] = [None] * 4
    if line.difference is not None:
        difference = [line.difference.value, *_ends(line.difference), line.difference.standard_error]
    return [plain.value, *_ends(plain), other.value, *_ends(other), *difference, *support]


def _ends(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.interval if estimate.has_interval else (None, None)
