"""The results of a budget as tables, figures and sentences: for a study, or from a file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from survey.contracts.budget_files import Costs
from survey.contracts.budgets import STUDIES, BudgetColumn, PlanOutlook
from survey.contracts.reports import Picture
from survey.figures import Column, Table, TableView
from survey.figures.charts import Axis, Line, LineChart
from survey.figures.words import number, short

from .simulation import BeliefPlan

Outlook = PlanOutlook[BeliefPlan]


def by_stage(outlook: Outlook, name: str) -> list[float]:
    """The means of a figure that each stage has."""
    stages = range(1, len(outlook.setting.setting.sittings) + 1)
    return [math.nan if (value := outlook.mean(f"{name} {stage}")) is None else value for stage in stages]


def per_answer(outlook: Outlook) -> float:
    """Changes found per answer."""
    return (outlook.mean("changes_found") or 0.0) / (outlook.mean("answers") or math.nan)


def monte_carlo_error(outlook: Outlook) -> float:
    """The simulation's own standard error of the changes found."""
    totals = [figure.number for figure in outlook.figures("changes_found")]
    return float(np.std(totals, ddof=1) / math.sqrt(len(totals))) if len(totals) > 1 else math.nan


def naive_bias(outlook: Outlook) -> float:
    """The plain share of all answers less the truth."""
    plan = outlook.setting
    return (outlook.mean("naive") or 0.0) - plan.setting.share_that_changes(plan.world)


POLICIES = (
    Column("policy", "text", "The policy's name.", style="words"),
    STUDIES,
    BudgetColumn("answers", "number", "Answers to sampled items in a study."),
    BudgetColumn("changes_found", "number", "Changes of belief among them, expected.", digits=0),
    BudgetColumn(
        "monte_carlo_error", "number", "The simulation's own standard error of that.", digits=1, of=monte_carlo_error
    ),
    BudgetColumn(
        "changes_per_answer",
        "share",
        "Changes found an answer.",
        heading="per answer",
        style="number",
        digits=3,
        of=per_answer,
    ),
    BudgetColumn(
        "width_share",
        "share",
        "Width of the final 95 % interval of the share that changes, over all pairs.",
        heading="share that changes",
        width_of="share",
    ),
    BudgetColumn(
        "width_change", "points", "The same of the mean change.", heading="change (points)", digits=2, width_of="change"
    ),
    BudgetColumn(
        "width_size",
        "points",
        "The same of the mean size of a change.",
        heading="size (points)",
        digits=2,
        width_of="size",
    ),
    BudgetColumn(
        "coverage_share",
        "share",
        "How often the first interval holds the truth.",
        of=lambda outlook: outlook.mean("covered"),
    ),
    BudgetColumn("naive_bias", "share", "The plain share of all answers less the truth.", signed=True, of=naive_bias),
    BudgetColumn(
        "detectable_outcome",
        "share",
        "Smallest difference found with 80 % power: incorrect against correct.",
        heading="after incorrect against correct",
    ),
    BudgetColumn("detectable_condition", "share", "The same between two conditions.", heading="condition A against B"),
    BudgetColumn(
        "detectable_evidence",
        "share",
        "The same between evidence and none; empty without such controls.",
        heading="evidence against none",
    ),
    BudgetColumn("auc_last", "share", "AUC of the last predictor over all pairs."),
    BudgetColumn("auc_highest", "share", "The highest AUC that there can be.", style="number", digits=3),
)
COSTS = (
    Column("people", "number", "Who begins."),
    Column("complete", "number", "Who finishes, expected."),
    Column("hours", "number", "All people's hours."),
    Column("rewards", "money", "Paid to those who finish."),
    Column("fees", "money", "The panel's fees and their tax."),
    Column("cost", "money", "Both together."),
    Column("currency", "text", "The currency."),
)
POLICY_VIEWS = (
    TableView(
        [
            *("policy", "changes_found", "monte_carlo_error", "changes_per_answer"),
            *("width_share", "width_change", "width_size", "naive_bias"),
        ],
        title="What each policy finds, and how wide its final 95 % intervals over all pairs are",
    ),
    TableView(
        ["policy", "detectable_outcome", "detectable_condition", "detectable_evidence"],
        title="Smallest difference of shares found with 80 % power (two-sided, 5 %)",
    ),
)
STAGES = (
    Column("policy", "text", "The policy's name.", style="words"),
    Column("stage", "number", "The stage, from 1."),
    Column("answers", "number", "Answers to sampled items."),
    Column("changes_found", "number", "Changes of belief among them, expected.", digits=0),
    Column("auc", "share", "AUC over all pairs of the predictor trained after the stage.", style="number", digits=3),
)
FRONTIER = (
    Column("design", "text", "The design of every stage but the first.", style="words"),
    Column("value", "number", "The epsilon of epsilon greedy, the trade-off of proportional, the find of robust."),
    Column(
        "changes_per_answer",
        "share",
        "Changes found an answer from stage 2 on, expected.",
        heading="changes per answer",
        style="number",
        digits=3,
    ),
    Column(
        "monte_carlo_error",
        "share",
        "The simulation's own standard error of that.",
        heading="Monte Carlo error",
        style="number",
        digits=4,
    ),
    Column(
        "width_share",
        "share",
        "Width of the final 95 % interval of the share that changes, over all pairs.",
        heading="share that changes",
    ),
)


@dataclass(frozen=True)
class FrontierPoint:
    """What a design finds and how precisely it estimates, where it draws every stage but the first.

    `value`: the epsilon of `epsilon_greedy`, the trade_off of `proportional`, the find of `robust`. `found`: the share
    of the answers from stage 2 on that are changes, expected; `error`: the simulation's own standard error of it.
    `width`: of the final 95 % interval of the share that changes over all pairs.
    """

    kind: str
    value: float
    found: float
    error: float
    width: float

    @classmethod
    def of(cls, kind: str, value: float, outlook: Outlook) -> "FrontierPoint":
        later = sum(by_stage(outlook, "answers")[1:]) or math.nan
        width_of_share = outlook.width("share")
        return cls(
            kind=kind,
            value=value,
            found=sum(by_stage(outlook, "changed")[1:]) / later,
            # Of the total, in which the first stage's share is small and the same under every policy.
            error=monte_carlo_error(outlook) / later,
            width=math.nan if width_of_share is None else width_of_share,
        )


def with_costs(policies: Table, costs: Costs) -> Table:
    """The plans' table with the same costs in every row."""
    own = (costs.people, costs.complete, costs.hours, costs.rewards, costs.fees, costs.total, costs.currency)
    return replace(policies, columns=[*policies.columns, *COSTS], rows=[[*row, *own] for row in policies.rows])


def stages(outlooks: Sequence[Outlook]) -> Table:
    """What each policy finds in each stage."""
    values = [
        [outlook.plan.name, stage, *of_stage]
        for outlook in outlooks
        for stage, of_stage in enumerate(
            zip(*(by_stage(outlook, name) for name in ("answers", "changed", "auc")), strict=True), start=1
        )
    ]
    headings = {stage: f"stage {stage}" for _name, stage, *_of_stage in values}
    highest = "; ".join(f"{outlook.plan.name} {number(outlook.mean('auc_highest'), 3)}" for outlook in outlooks)
    return Table(
        "stages",
        "Stage by stage",
        STAGES,
        values,
        views=[
            TableView(
                ["policy"],
                across="stage",
                cells="auc",
                headings=headings,
                title="AUC over all pairs of the predictor trained after each stage",
                note=f"The highest possible: {highest}.",
            ),
            TableView(
                ["policy"],
                across="stage",
                cells="changes_found",
                headings=headings,
                title="Changes found in each stage",
            ),
        ],
    )


def frontier(points: Sequence[FrontierPoint]) -> Table:
    """What one has to choose between."""
    return Table(
        "frontier",
        "Between finding and estimating",
        FRONTIER,
        [[point.kind, point.value, point.found, point.error, point.width] for point in points],
        views=[
            TableView(title="Changes found from stage 2 on, and how wide the final 95 % interval over all pairs is")
        ],
    )


def pictures(outlooks: Sequence[Outlook], points: Sequence[FrontierPoint]) -> list[Picture]:
    """The frontier, what has been found after each stage, and how well the predictor ranks."""
    frontier = Picture.of(
        "frontier",
        "Between finding and estimating",
        "Changes found an answer from stage 2 on, against the width of the final interval: a line a design, and where "
        "each policy lies.",
        _frontier_chart(points, [FrontierPoint.of(outlook.plan.name, math.nan, outlook) for outlook in outlooks]),
    )
    return [
        *([frontier] if any(math.isfinite(point.width) for point in points) else []),
        Picture.of(
            "found",
            "Changes of belief found, expected",
            "The changes found so far after each stage, a line a policy.",
            _found_by_stage(outlooks),
        ),
        Picture.of(
            "auc",
            "How well the predictor ranks pairs that nobody chose",
            "The AUC over all pairs after each stage, a line a policy, and the highest that there can be.",
            _auc_by_stage(outlooks),
        ),
    ]


def _found_by_stage(outlooks: Sequence[Outlook]) -> LineChart:
    return LineChart(
        title="Changes of belief found, expected",
        x=Axis("after stage", ticks=_stage_ticks(outlooks)),
        y=Axis("changes so far", includes=(0.0,)),
        lines=[
            Line(outlook.plan.name, list(enumerate(accumulate(by_stage(outlook, "changed")), start=1)))
            for outlook in outlooks
        ],
    )


def _auc_by_stage(outlooks: Sequence[Outlook]) -> LineChart:
    best = sum(outlook.mean("auc_highest") or math.nan for outlook in outlooks) / len(outlooks)
    stages = _stage_ticks(outlooks)
    highest = [(place, best) for place, _words in stages]
    return LineChart(
        title="How well the predictor ranks pairs that nobody chose",
        x=Axis("after stage", ticks=stages),
        y=Axis("AUC over uniform pairs"),
        lines=[
            *(Line(outlook.plan.name, list(enumerate(by_stage(outlook, "auc"), start=1))) for outlook in outlooks),
            Line("highest possible", highest, marked=False, reference=True),
        ],
    )


def _stage_ticks(outlooks: Sequence[Outlook]) -> list[tuple[float, str]]:
    return [(float(stage), str(stage)) for stage in range(1, len(by_stage(outlooks[0], "auc")) + 1)]


def _frontier_chart(points: Sequence[FrontierPoint], policies: Sequence[FrontierPoint]) -> LineChart:
    lines = [
        Line(
            f"{kind} ({', '.join(short(point.value) for point in own)})",
            [(100 * point.width, point.found) for point in own],
            [(point.found - 1.96 * point.error, point.found + 1.96 * point.error) for point in own],
        )
        for kind in dict.fromkeys(point.kind for point in points)
        if (own := sorted((point for point in points if point.kind == kind), key=lambda item: -item.width))
    ]
    return LineChart(
        title="Between finding and estimating",
        x=Axis("width of the final 95 % interval of the share, in points"),
        y=Axis("changes found per answer from stage 2 on"),
        lines=[
            *lines,
            *(
                Line(policy.kind, [(100 * policy.width, policy.found)])
                for policy in policies
                if math.isfinite(policy.width) and math.isfinite(policy.found)
            ),
        ],
    )


def as_json(outlook: Outlook) -> dict[str, Any]:
    """A policy's means: lists by stage, widths of the share, the change and its size, what is detected by effect."""
    return {
        "name": outlook.plan.name,
        "studies": len(outlook.studies),
        "answers": by_stage(outlook, "answers"),
        "found": by_stage(outlook, "changed"),
        "found_error": monte_carlo_error(outlook),
        "auc": by_stage(outlook, "auc"),
        "best_auc": outlook.mean("auc_highest"),
        "widths": [outlook.width(name) for name in ("share", "change", "size")],
        "coverage": outlook.mean("covered"),
        "naive_bias": naive_bias(outlook),
        "detectable": [outlook.mean(f"detectable_{effect}") for effect in ("outcome", "condition", "evidence")],
    }
