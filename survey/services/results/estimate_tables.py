"""A study's estimates as tables with every digit, for files, exports and the report `estimates`; what columns mean."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from bandit import Estimate
from survey.contracts.tables import Column

from . import beside
from .beside import (
    BOUNDS,
    FIRST_ITEMS,
    FROM_THE_REST,
    SAMPLED_MINUS_HOLDOUT,
    STAYED,
    SUCH_QUESTIONS,
    WITH_EXCLUDED,
    WORST_CASE,
)
from .estimating import Noise, StudyEstimates
from .estimators import Figure
from .leaving import LeavingLine
from .stage_rows import STATES

ESTIMATES = (
    Column("figure", "text", "The figure's name."),
    Column("title", "text", "The figure in words."),
    Column("unit", "text", "share (0 to 1), or the unit of the answers."),
    Column("division", "text", "How items or people are divided; empty for all of them."),
    Column("label", "text", "The part of that division."),
    Column(
        "kind",
        "text",
        "combined: all stages together. naive: the plain mean of the answers. assisted: with the help of predictions. "
        "check: a difference that should be chance. difference: between two parts. With ', one stage' behind it, each "
        f"of these from one stage. {FROM_THE_REST}: the part minus all the others together. withheld: a group of too "
        f"few people, without figures. {SUCH_QUESTIONS}: the same mean with an interval for a population of questions. "
        f"{STAYED}: answers weighted by 1 / the chance that their person was still there. {BOUNDS}: what the figure "
        f"can be for the stated odds ratio between unanswered and answered items. {WITH_EXCLUDED}: the same, with the "
        f"items of people whom a rule excludes among the unanswered ones. {WORST_CASE}: what it can be "
        f"whatever these had got. {FIRST_ITEMS}: from people's first items alone. {SAMPLED_MINUS_HOLDOUT}: the mean by "
        "the sampled slots of adaptive stages minus that by their holdouts. at any time: one stage alone, with an "
        "interval that holds however often one looks. "
        "majority: the share of majority labels 1 of a test stage. change within person: a wave minus the one before, "
        "over the people who answered in both.",
    ),
    Column("stage", "number", "The stage, in rows of one stage.", whole=True),
    Column("role", "text", "sampled or holdout, in rows of one stage."),
    Column("weight", "number", "The stage's weight in the mean over the stages, fixed by the plans."),
    Column("value", "number", "The estimate. Bounds have none."),
    Column("standard_error", "number", "Its standard error."),
    Column("low", "number", "The lower end of the 95 % interval; of bounds, that of the lowest mean."),
    Column("high", "number", "The upper end of the 95 % interval; of bounds, that of the highest mean."),
    Column("method", "text", "t (Student's) or wilson."),
    Column("degrees_of_freedom", "number", "Of Student's t."),
    Column("answers", "number", "How many answers it rests on.", whole=True),
    Column("respondents", "number", "How many people gave them.", whole=True),
    Column("effective_sample_size", "number", "How many equally weighted answers would be as precise."),
    Column("weight_lowest", "number", "The smallest weight of an answer, in mean weights."),
    Column("weight_highest", "number", "The largest weight of an answer, in mean weights."),
    Column("too_few", "text", "Why the interval is not reliable; empty if it is."),
    Column("p", "number", "Of differences: how often chance alone would take them so far from 0."),
    Column("agree_p", "number", "How often chance alone would take the stages so far apart. Empty where withheld."),
    Column("notes", "text", "What to know about the row; of bounds, what they assume."),
    Column("lowest", "number", "Of bounds: the lowest value that the assumption allows, as estimated."),
    Column("highest", "number", "Of bounds: the highest value that the assumption allows, as estimated."),
)
SLOTS = (
    Column("division", "text", "What slots are divided by: stratum (of a stage and role), position, or another part."),
    Column("label", "text", "The part of that division."),
    Column("planned", "number", "Slots of the plans in it.", whole=True),
    Column("answered", "number", "Slots with an answer that counts.", whole=True),
    Column("excluded", "number", "Slots whose answer a rule of the study file leaves out.", whole=True),
    Column("withdrawn", "number", "Slots whose answer was taken back by its person.", whole=True),
    Column("late", "number", "Slots that have a late answer alone.", whole=True),
    Column("lost", "number", "Slots without any answer, in frozen stages.", whole=True),
    Column("open", "number", "Slots without any answer yet, in stages that are not frozen.", whole=True),
    Column("candidates", "number", "Of strata: how many candidates the plan drew from.", whole=True),
)
LEAVING = (
    Column("factor", "text", "The condition's factor; empty in the row of everybody."),
    Column("level", "text", "The level of that factor."),
    Column("people", "number", "People who were given items.", whole=True),
    Column("left", "number", "How many of them left before their last item.", whole=True),
    Column(
        "given",
        "number",
        "Items that they were given. An item that somebody left may have been given to somebody else again.",
        whole=True,
    ),
    Column(
        "unanswered",
        "number",
        "Of these, the items without an answer that counts, which can get none from that person any more.",
        whole=True,
    ),
    Column(
        "at_risk",
        "number",
        "Answers with a further item to come of which it is known whether the person went on.",
        whole=True,
    ),
    Column("left_after_it", "share", "How many left after an answer above 0 of the first figure, such as a change."),
    Column("left_otherwise", "share", "The share of people who left after another answer."),
    Column("odds_ratio", "number", "Mantel and Haenszel's of leaving between the two, by stage and item number."),
    Column("p", "number", "Two-sided p of the test that leaving does not depend on the last answer."),
    Column("reason", "text", "Why there is no p."),
    Column(
        "excluded",
        "number",
        "People whom a rule of the study file excludes, with all their answers; the other columns are without them.",
        whole=True,
    ),
    Column(
        "excluded_p",
        "number",
        "Of levels that are drawn for people: Fisher's exact p that rules exclude as many under the other levels.",
    ),
)
NOISE = (
    Column(
        "kind",
        "text",
        "false change: a share that changes without reason. retest: two answers of one person to an item, correlated. "
        "same again: how often these two are equal. auc_limit: the upper limit of the AUC, at 95 % confidence. "
        "item_variance: the variance between items of their chances.",
    ),
    Column("name", "text", "The kind of control, or the figure."),
    Column("value", "number", "The figure; of retests design-weighted."),
    Column("low", "number", "The lower end of the 95 % interval."),
    Column("high", "number", "The upper end of the 95 % interval. For item_variance see highest."),
    Column("highest", "number", "Of item_variance: its upper limit at 96 % confidence, which makes the limit's."),
    Column("n", "number", "Answers, items asked twice, or items that several people answered.", whole=True),
    Column("people", "number", "How many people gave them.", whole=True),
    Column("note", "text", "What to know; in place of the limit, why there is none."),
)


def estimate_rows(report: StudyEstimates) -> Iterator[list[Any]]:
    """Every figure of all stages and of each, by division and label; in the order of `ESTIMATES`."""
    for figure in report.figures:
        yield from _figure_rows(figure, "combined")
    if report.assisted:
        yield from _figure_rows(report.assisted, "assisted")
    for figure in report.checks:
        yield from _figure_rows(figure, "check")
    if report.carry_over is not None:
        for kind, figures in (
            (FIRST_ITEMS, report.carry_over.first_items),
            (SAMPLED_MINUS_HOLDOUT, report.carry_over.differences),
        ):
            for figure in figures:
                is_difference = kind == SAMPLED_MINUS_HOLDOUT and figure.combined is not None
                yield _row(
                    **_head(figure.name, figure.title, figure.unit, "", "", kind),
                    **_values(figure.combined),
                    p=figure.combined.p_two_sided() if is_difference and figure.combined is not None else None,
                    notes=figure.notes,
                )
    for division in report.divisions:
        for label, figures in zip(division.labels, division.figures, strict=True):
            for figure in figures:
                yield from _figure_rows(figure, "combined", division.name, label)
        for figure in division.differences:
            yield from _figure_rows(figure, "difference", division.name, f"{division.labels[1]} - {division.labels[0]}")
        for label, figures in zip(division.labels, division.rest or [()] * len(division.labels), strict=True):
            for figure in figures:
                yield from _figure_rows(figure, FROM_THE_REST, division.name, label)
        for place, sentence in enumerate(division.withheld):
            if sentence:
                yield _row(
                    division=division.name,
                    label=division.labels[place],
                    kind="withheld",
                    respondents=division.people[place],
                    notes=sentence,
                )
    for change in report.waves:
        yield _row(
            **_head(change.name, change.title, change.unit, "wave", change.label, "change within person"),
            **_values(change.estimate),
            p=None if change.estimate is None else change.estimate.p_two_sided(),
            notes="; ".join(filter(None, (change.notes, f"{change.not_back} did not come back"))),
        )
    for seen in report.anytime:
        yield _row(
            **_head(report.figures[0].name, seen.title, seen.unit, seen.factor, seen.label, "at any time"),
            stage=seen.stage,
            role="sampled",
            value=seen.value,
            standard_error=seen.standard_error,
            low=seen.low,
            high=seen.high,
            respondents=seen.people,
            notes=seen.notes,
        )
    for line in report.majorities:
        title = "share of items with the majority label 1"
        yield _row(
            **_head("majority_label", title, "share", "stratum", line.stratum or "all", "majority"),
            stage=line.stage,
            role="sampled",
            value=line.share,
            low=line.low,
            high=line.high,
            notes=line.notes,
        )


def _figure_rows(figure: Figure, kind: str, division: str = "", label: str = "") -> Iterator[list[Any]]:
    is_difference = kind in ("check", "difference", FROM_THE_REST)

    def head(kind: str) -> dict[str, Any]:
        return _head(figure.name, figure.title, figure.unit, division, label, kind)

    yield _row(
        **head(kind),
        **_values(figure.combined),
        p=figure.combined.p_two_sided() if figure.combined is not None and is_difference else None,
        agree_p=None if figure.agreement is None else figure.agreement.p,
        notes=figure.notes,
    )
    if figure.naive is not None:
        yield _row(**head("naive"), **_values(figure.naive))
    for other in beside.beside(figure):
        low, high = map(_known, other.interval)
        lowest, highest = other.ends or (None, None)
        values = {**_values(other.estimate), "low": low, "high": high, "lowest": lowest, "highest": highest}
        yield _row(**head(other.kind), **values, notes=other.note)
    for stage in figure.stages:
        yield _row(
            **head(f"{kind}, one stage"),
            stage=stage.stage,
            role=stage.role,
            weight=stage.weight,
            **_values(stage.estimate),
            notes=stage.reason,
        )


def slot_rows(report: StudyEstimates) -> Iterator[list[Any]]:
    """Slots by stratum of each stage, and by the divisions of the report; in the order of `SLOTS`."""
    for part in report.parts:
        for line in part.strata:
            title = f"stage {part.stage} {part.role} {line.name}"
            yield ["stratum", title, line.planned, *(getattr(line, state) for state in STATES), line.size]
    for name, lines in report.slots.items():
        for slots in lines:
            yield [name, slots.label, slots.planned, *(getattr(slots, state) for state in STATES), None]


def leaving_rows(report: StudyEstimates) -> Iterator[list[Any]]:
    """People who left, all and by level; in the order of `LEAVING`."""
    if report.leaving is None:
        return
    excluded = {(line.factor, line.level): line for line in report.leaving.excluded}
    for line in report.leaving.lines:
        out = excluded.get((line.factor, line.level))
        people = 0 if not excluded else None if out is None else out.excluded
        yield [*_leaving_row(line), people, None if out is None else out.p]


def _leaving_row(line: LeavingLine) -> list[Any]:
    test = line.test
    before = [line.factor, line.level, line.people, line.left, line.given, line.unanswered]
    if test is None:
        return [*before, 0, None, None, None, None, "nobody could leave after an answer"]
    return [*before, test.at_risk, test.share_after, test.share_else, test.odds_ratio, test.p, test.reason]


def noise_rows(noise: Noise) -> Iterator[list[Any]]:
    """False changes, retests and the limit of the AUC; in the order of `NOISE`."""
    for kind, found in noise.false_changes.items():
        ends = map(_known, found.interval)
        yield ["false change", kind, found.value, *ends, None, found.n, found.n_clusters, found.too_few]
    for name, retest in noise.retests.items():
        ends = map(_known, retest.interval)
        yield ["retest", name, _known(retest.correlation), *ends, None, retest.n, retest.n_clusters, ""]
        yield ["same again", name, retest.same, None, None, None, retest.n, retest.n_clusters, ""]
    limit = noise.auc_limit
    if limit is None:
        yield ["auc_limit", "", *[None] * 6, noise.no_limit]
        return
    between = limit.between_items
    yield ["auc_limit", "", limit.limit, None, None, None, limit.items, between.n_clusters, ""]
    yield [
        *("item_variance", "", between.value, *map(_known, between.interval), limit.highest_variance),
        *(limit.items, between.n_clusters, ""),
    ]


def codebook_rows() -> Iterator[list[str]]:
    """What every column of the four files means."""
    files: Sequence[tuple[str, Sequence[Column]]] = (
        ("estimates.csv", ESTIMATES),
        ("slots.csv", SLOTS),
        ("leaving.csv", LEAVING),
        ("noise.csv", NOISE),
    )
    for file, columns in files:
        for column in columns:
            yield [file, column.name, column.description]


def _head(name: str, title: str, unit: str, division: str, label: str, kind: str) -> dict[str, Any]:
    return {"figure": name, "title": title, "unit": unit, "division": division, "label": label, "kind": kind}


def _row(**values: Any) -> list[Any]:
    return [values.get(column.name) for column in ESTIMATES]


def _values(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return {}
    low, high = map(_known, estimate.interval)
    return {
        "value": estimate.value,
        "standard_error": _known(estimate.standard_error),
        "low": low,
        "high": high,
        "method": estimate.method,
        "degrees_of_freedom": estimate.degrees_of_freedom,
        "answers": estimate.n,
        "respondents": estimate.n_clusters,
        "effective_sample_size": estimate.effective_sample_size,
        "weight_lowest": estimate.weight_range[0],
        "weight_highest": estimate.weight_range[1],
        "too_few": estimate.too_few,
    }


def _known(value: float) -> float | None:
    """Nothing where it is not known, as with one person alone."""
    return None if math.isnan(value) else value
