"""The results of a budget as tables, figures and sentences: for a study, or from a file."""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from survey.contracts.reports import Picture, ReportFile, ReportResult
from survey.figures import Column, Table, TableView
from survey.figures.charts import Axis, Line, LineChart
from survey.figures.words import number, percent, short

from .budgeting import FrontierPoint, PlannedBudget
from .simulation import PolicyOutlook

POLICIES = (
    Column("policy", "text", "The policy's name."),
    Column("studies", "number", "Simulated studies."),
    Column("answers", "number", "Answers to sampled items in a study."),
    Column("changes_found", "number", "Changes of belief among them, expected.", digits=0),
    Column("monte_carlo_error", "number", "The simulation's own standard error of that.", digits=1),
    Column("changes_per_answer", "share", "Changes found an answer.", heading="per answer", style="number", digits=3),
    Column(
        "width_share",
        "share",
        "Width of the final 95 % interval of the share that changes, over all pairs.",
        heading="share that changes",
    ),
    Column("width_change", "points", "The same of the mean change.", heading="change (points)", digits=2),
    Column("width_size", "points", "The same of the mean size of a change.", heading="size (points)", digits=2),
    Column("coverage_share", "share", "How often the first interval holds the truth."),
    Column("naive_bias", "share", "The plain share of all answers less the truth.", signed=True),
    Column(
        "detectable_outcome",
        "share",
        "Smallest difference found with 80 % power: incorrect against correct.",
        heading="after incorrect against correct",
    ),
    Column("detectable_condition", "share", "The same between two conditions.", heading="condition A against B"),
    Column(
        "detectable_evidence",
        "share",
        "The same between evidence and none; empty without such controls.",
        heading="evidence against none",
    ),
    Column("auc_last", "share", "AUC of the last predictor over all pairs."),
    Column("auc_highest", "share", "The highest AUC that there can be.", style="number", digits=3),
    Column("people", "number", "Who begins."),
    Column("complete", "number", "Who finishes, expected."),
    Column("hours", "number", "All people's hours."),
    Column("rewards", "money", "Paid to those who finish."),
    Column("fees", "money", "The panel's fees and their tax."),
    Column("cost", "money", "Both together."),
    Column("currency", "text", "The currency."),
)
STAGES = (
    Column("policy", "text", "The policy's name."),
    Column("stage", "number", "The stage, from 1."),
    Column("answers", "number", "Answers to sampled items."),
    Column("changes_found", "number", "Changes of belief among them, expected.", digits=0),
    Column("auc", "share", "AUC over all pairs of the predictor trained after the stage.", style="number", digits=3),
)
FRONTIER = (
    Column("design", "text", "The design of every stage but the first."),
    Column("value", "number", "The epsilon of epsilon_greedy, the trade_off of proportional."),
    Column(
        "changes_per_answer",
        "share",
        "Changes found an answer from stage 2 on, expected.",
        heading="changes per answer",
        style="number",
        digits=3,
    ),
    Column("monte_carlo_error", "share", "The simulation's own standard error of that.", style="number", digits=4),
    Column(
        "width_share",
        "share",
        "Width of the final 95 % interval of the share that changes, over all pairs.",
        heading="share that changes",
    ),
)


def report_result(budget: PlannedBudget, *, title: str = "", notes: tuple[str, ...] = ()) -> ReportResult:
    return ReportResult(
        title=title or budget.config.title,
        lines=[*_lines(budget), *budget.sentences()],
        tables=[_policies(budget), _stages(budget), *([_frontier(budget)] if budget.frontier else [])],
        pictures=_pictures(budget),
        files=[ReportFile("sentences.txt", lambda: ("\n\n".join(budget.sentences()) + "\n").encode())],
        notes=(*notes, *budget.left_out),
        data=_data(budget),
    )


def _lines(budget: PlannedBudget) -> Iterator[str]:
    costs, truth = budget.costs, budget.config.truth
    yield f"{budget.config.title}: {budget.config.studies} simulated studies of each policy"
    yield (
        f"Truth: {percent(truth.changes_incorrect, 0)} of beliefs change after an incorrect, "
        f"{percent(truth.changes_correct, 0)} after a correct answer; logit sd {short(truth.pair_sd)} between pairs "
        f"({percent(truth.hidden_share, 0)} of it in no text) and {short(truth.respondent_sd)} between people."
    )
    yield (
        f"{costs.people} people begin, {number(costs.complete, 0)} finish; {number(costs.hours, 0)} hours; "
        f"{number(costs.rewards)} rewards + {number(costs.fees)} fees = {number(costs.total)} {costs.currency}."
    )


def _policies(budget: PlannedBudget) -> Table:
    return Table(
        "policies",
        "Policies",
        POLICIES,
        [_policy_row(budget, outlook) for outlook in budget.outlooks],
        views=[
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
        ],
    )


def _policy_row(budget: PlannedBudget, outlook: PolicyOutlook) -> list[Any]:
    costs = budget.costs
    return [
        *(outlook.name, outlook.studies, sum(outlook.answers), outlook.total, outlook.found_error, outlook.per_answer),
        *(
            *outlook.widths,
            outlook.coverage,
            outlook.naive_bias,
            *outlook.detectable,
            outlook.auc[-1],
            outlook.best_auc,
        ),
        *(costs.people, costs.complete, costs.hours, costs.rewards, costs.fees, costs.total, costs.currency),
    ]


def _stages(budget: PlannedBudget) -> Table:
    headings = {stage: f"stage {stage}" for stage in range(1, len(budget.config.study.sittings) + 1)}
    return Table(
        "stages",
        "Stage by stage",
        STAGES,
        [
            [outlook.name, stage, *values]
            for outlook in budget.outlooks
            for stage, values in enumerate(zip(outlook.answers, outlook.found, outlook.auc, strict=True), start=1)
        ],
        views=[
            TableView(
                ["policy"],
                across="stage",
                cells="auc",
                headings=headings,
                title="AUC over all pairs of the predictor trained after each stage",
                note="The highest possible: "
                + "; ".join(f"{outlook.name} {number(outlook.best_auc, 3)}" for outlook in budget.outlooks)
                + ".",
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


def _frontier(budget: PlannedBudget) -> Table:
    return Table(
        "frontier",
        "Between finding and estimating",
        FRONTIER,
        [[point.kind, point.value, point.found, point.error, point.width] for point in budget.frontier],
        views=[
            TableView(title="Changes found from stage 2 on, and how wide the final 95 % interval over all pairs is")
        ],
    )


def _pictures(budget: PlannedBudget) -> list[Picture]:
    frontier = Picture.of(
        "frontier",
        "Between finding and estimating",
        "Changes found an answer from stage 2 on, against the width of the final interval, a line a design.",
        _frontier_chart(budget.frontier),
    )
    return [
        *([frontier] if any(math.isfinite(point.width) for point in budget.frontier) else []),
        Picture.of(
            "found",
            "Changes of belief found, expected",
            "The changes found so far after each stage, a line a policy.",
            _found_by_stage(budget.outlooks),
        ),
        Picture.of(
            "auc",
            "How well the predictor ranks pairs that nobody chose",
            "The AUC over all pairs after each stage, a line a policy, and the highest that there can be.",
            _auc_by_stage(budget.outlooks),
        ),
    ]


def _found_by_stage(outlooks: Sequence[PolicyOutlook]) -> LineChart:
    return LineChart(
        title="Changes of belief found, expected",
        x=Axis("after stage", ticks=_stage_ticks(outlooks)),
        y=Axis("changes so far", includes=(0.0,)),
        lines=[Line(outlook.name, list(enumerate(accumulate(outlook.found), start=1))) for outlook in outlooks],
    )


def _auc_by_stage(outlooks: Sequence[PolicyOutlook]) -> LineChart:
    best = sum(outlook.best_auc for outlook in outlooks) / len(outlooks)
    stages = _stage_ticks(outlooks)
    highest = [(place, best) for place, _words in stages]
    return LineChart(
        title="How well the predictor ranks pairs that nobody chose",
        x=Axis("after stage", ticks=stages),
        y=Axis("AUC over uniform pairs"),
        lines=[
            *(Line(outlook.name, list(enumerate(outlook.auc, start=1))) for outlook in outlooks),
            Line("highest possible", highest, marked=False, reference=True),
        ],
    )


def _stage_ticks(outlooks: Sequence[PolicyOutlook]) -> list[tuple[float, str]]:
    return [(float(stage), str(stage)) for stage in range(1, max(len(outlook.auc) for outlook in outlooks) + 1)]


def _frontier_chart(points: Sequence[FrontierPoint]) -> LineChart:
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
        lines=lines,
    )


def _data(budget: PlannedBudget) -> dict[str, Any]:
    return {
        "config": budget.config.model_dump(mode="json", exclude={"policies"}),
        "costs": {**vars(budget.costs), "total": budget.costs.total},
        "policies": [vars(outlook) for outlook in budget.outlooks],
        "frontier": [vars(point) for point in budget.frontier],
        "sentences": budget.sentences(),
    }
