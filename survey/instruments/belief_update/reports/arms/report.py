"""The report `arms`: what a condition changes in how far a language model performs as people expect."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from survey.contracts.measures import Measure
from survey.contracts.reports import Argument, Picture, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError, StateRefused
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.figures.words import percent, short
from survey.models import Assignment, LanguageModel, ModelAnswer, Study
from survey.services.answers.blinding import HIDDEN, shown_conditions
from survey.services.results.estimates.study_estimates import LevelFigures, figures_by_level
from survey.services.results.estimates.study_figures import StudyFigure
from survey.services.results.people_and_models.unreadable_replies import UNREADABLE, notes_on_unreadable
from survey.services.results.reports import CONDITION

from ..alignment.aligning import models_of, rules_of, unreadable_of
from ..alignment.report import ALPHA, LARGEST_ALPHA, THRESHOLD, model_names
from ..alignment.scores import PAPER_ALPHAS, threshold_of
from ..rows import belief_rows, belief_update_of
from .measures import ACCURACY, CORRECT, PERFORMANCE, ArmAnswers, ArmMeasure, as_measures, measures_of_arms

OF_BELIEF = {"prior": "before the evidence", "posterior": "after the evidence", None: ""}
WHAT = (
    Column("llm", "text", "The language model."),
    Column("factor", "text", "The factor whose levels are compared."),
)
FIGURE = (
    Column("belief", "text", "prior: beliefs before the evidence. posterior: after it. Empty where none is used."),
    Column("measure", "text", "accuracy, cross_entropy, performance, deployed, or correct (the model on the targets)."),
    Column("alpha", "number", "Of accuracy and cross_entropy: what a wrong deployment weighs against a missed one."),
    Column("rule", "text", "Of performance and deployed: threshold, or proportional."),
    Column("threshold", "share", "The threshold; empty elsewhere."),
)
VALUE = FigureColumn("value", "number", "The figure: a share, or nats for cross_entropy.", digits=3, prefix="")
TITLE = Column("figure", "text", "Which figure it is, in words.", in_file=False)
ARMS = (
    *WHAT,
    Column("level", "text", "The arm."),
    *FIGURE,
    TITLE,
    VALUE,
    Column("answers", "number", "The arm's answers that count.", whole=True),
    Column("people", "number", "Who gave them.", whole=True),
    UNREADABLE,
)
DIFFERENCES = (
    *WHAT,
    Column("level", "text", "The arm whose figure stands first in the difference."),
    Column("less", "text", "The arm whose figure is taken away: the first level of the study file."),
    *FIGURE,
    TITLE,
    replace(VALUE, heading="difference", signed=True),
    Column("p", "number", "Two-sided p of no difference; empty where nothing varies.", style="p"),
)


@dataclass(frozen=True)
class _Compared:
    """The figures of one language model by arm. `unreadable`: how many of its replies could not be read."""

    llm: str
    unreadable: int
    wanted: Sequence[ArmMeasure]
    found: LevelFigures

    def lines(self) -> Iterator[tuple[str, ArmMeasure, StudyFigure]]:
        for level, figures in zip(self.found.levels, self.found.figures, strict=True):
            yield from ((level, measure, figure) for measure, figure in zip(self.wanted, figures, strict=True))

    def differences(self) -> Iterator[tuple[str, ArmMeasure, StudyFigure]]:
        for level, figures in zip(self.found.levels[1:], self.found.differences, strict=True):
            yield from ((level, measure, figure) for measure, figure in zip(self.wanted, figures, strict=True))


def factors_of(study: Study) -> list[str]:
    return [shown_condition.factor for shown_condition in shown_conditions(study)]


class ArmsReport(Report):
    """Alignment and human-deployed performance by the levels of a factor, with differences."""

    arguments = (
        Argument(
            "by",
            "the factor whose levels are compared; the study file's first one by default",
            choices=factors_of,
            without="the first",
            label="Compare the levels of",
        ),
        ALPHA,
        THRESHOLD,
        Argument("llm", "only this language model", choices=model_names, label="Only the language model"),
        CONDITION,
    )
    exported = {"arms": ARMS, "arm_differences": DIFFERENCES}

    def obstacle(self, study: Study) -> str:
        if study.is_blind:
            return f"{study.slug}: conditions are {HIDDEN}"
        if not study.config.conditions:
            return f"{study.slug}: has no [[conditions]], so that there is nothing to compare"
        if not models_of(study):
            return (
                f"{study.slug}: no language model has answered questions of {study.bank}; "
                "`hunch collect_answers` or `hunch import_answers` brings answers"
            )
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        if obstacle := self.obstacle(study):
            raise StateRefused(obstacle)
        alphas = arguments.numbers("alpha", lowest=0, highest=LARGEST_ALPHA) or list(PAPER_ALPHAS)
        # A threshold of 1 deploys nothing.
        rules = rules_of(arguments.number("threshold", lowest=0, highest=0.999))
        by = arguments.one("by") or factors_of(study)[0]
        wanted = measures_of_arms(alphas, rules)
        shown_model = belief_update_of(study).evidence_model
        asked = models_of(study, arguments.one("llm"))
        models = [model for model in asked if not shown_model or model.name == shown_model]
        if not models:
            raise HunchError(f"llm: {_no_such_model(study, arguments.one('llm'), shown_model)}", code="invalid")
        figures = figures_by_level(study, by, _measures(wanted, study, models), condition=arguments["condition"])
        unreadable = unreadable_of(study, [model.name for model in models])
        compared = [
            _Compared(
                model.name,
                unreadable[model.name].replies if model.name in unreadable else 0,
                wanted,
                _part(figures, place, len(wanted)),
            )
            for place, model in enumerate(models)
        ]
        left_out = [model.name for model in asked if model not in models]
        first = compared[0].found
        arms, differences = _arms_table(compared), _differences_table(compared)
        return ReportResult(
            title=f"Alignment by condition: {study.title}",
            lines=[
                f"{_counts(first)}. Figures rest on the beliefs that people stated, and on what the model "
                "really answered to the targets. Intervals are between people.",
                *(sentence for comparison in compared for sentence in _sentences(comparison)),
            ],
            tables=[arms, differences],
            pictures=list(_pictures(compared)),
            notes=[
                *_left_out(left_out, shown_model),
                *notes_on_unreadable(unreadable),
                *_notes(),
            ],
            data={
                "factor": by,
                "levels": list(first.levels),
                "arms": arms.records(),
                "arm_differences": differences.records(),
            },
        )


def _no_such_model(study: Study, wanted: str, shown_model: str) -> str:
    if shown_model:
        return f"the study shows real outcomes of {shown_model} alone, so that no figures of {wanted} can be given"
    return f"no language model called {wanted!r} has answered questions of {study.bank}"


def _left_out(names: Sequence[str], shown_model: str) -> Iterator[str]:
    if names:
        yield f"Left out, since the study shows real outcomes of {shown_model} alone: {', '.join(names)}."


def _measures(
    wanted: Sequence[ArmMeasure], study: Study, models: Sequence[LanguageModel]
) -> Callable[[Sequence[Assignment]], list[Measure]]:
    """The figures of each model after the other, as `figures_by_level` asks for them."""
    answered = [
        ModelAnswer.objects.filter(language_model=model, question__bank=study.bank_id).by_question() for model in models
    ]

    def of(answers: Sequence[Assignment]) -> list[Measure]:
        rows = belief_rows(answers)
        measures: list[Measure] = []
        for known in answered:
            right = np.array([known.get(key, np.nan) for key in rows.evidence.tolist()])
            correct = np.array([known.get(key, np.nan) for key in rows.target.tolist()])
            chance = np.where(rows.outcome == 1, right, 1 - right)
            counts = np.where(np.isfinite(correct), np.nan_to_num(chance), 0.0)
            arm_answers = ArmAnswers(rows.prior / 100, rows.posterior / 100, np.nan_to_num(correct), counts)
            measures += as_measures(wanted, arm_answers)
        return measures

    return of


def _part(level_figures: LevelFigures, place: int, count: int) -> LevelFigures:
    """The figures of the model at this place; `count`: how many each model has."""
    own = slice(place * count, (place + 1) * count)
    return replace(
        level_figures,
        figures=tuple(figures[own] for figures in level_figures.figures),
        differences=tuple(figures[own] for figures in level_figures.differences),
    )


def _counts(figures: LevelFigures) -> str:
    parts = zip(figures.levels, figures.answers, figures.people, strict=True)
    return f"{figures.factor}: " + "; ".join(f"{level}, {n} answers of {people} people" for level, n, people in parts)


def _sentences(comparison: _Compared) -> Iterator[str]:
    """What the arms change in the two figures that are asked for first, after the evidence."""
    first = comparison.found.levels[0]
    for level, what, figure in comparison.differences():
        if what.when != "posterior" or figure.combined is None or not figure.combined.has_interval:
            continue
        is_alignment = what.measure == ACCURACY and what.alpha == 1
        if is_alignment or (what.measure == PERFORMANCE and what.rule is not None and what.rule.kind == "threshold"):
            low, high = figure.combined.interval
            if low > 0 or high < 0:
                verdict = f"is {'higher' if low > 0 else 'lower'} under {level} than under {first}"
            else:
                verdict = f"cannot be distinguished between {level} and {first}"
            yield f"{comparison.llm}: {what.title} {verdict} ({_figure_of(figure).in_words(3, signed=True)})."


def _what(measure: ArmMeasure) -> list[Any]:
    rule = measure.rule
    threshold = rule.threshold if rule is not None and rule.kind == "threshold" else None
    title = measure.title if measure.alpha is None else f"{measure.title} ({percent(threshold_of(measure.alpha)[0])})"
    return [measure.when, measure.measure, measure.alpha, None if rule is None else rule.kind, threshold, title]


def _figure_of(figure: StudyFigure) -> Figure:
    estimate = figure.combined
    if estimate is None:
        return Figure()
    return Figure.between(estimate.value, estimate.interval if estimate.has_interval else None)


def _arms_table(compared: Sequence[_Compared]) -> Table:
    """People see a table for each model and belief: measures down, arms across."""
    rows = []
    for arm in compared:
        sizes = dict(zip(arm.found.levels, zip(arm.found.answers, arm.found.people, strict=True), strict=True))
        for level, what, figure in arm.lines():
            cells = [*_what(what), _figure_of(figure), *sizes[level], arm.unreadable]
            rows.append([arm.llm, arm.found.factor, level, *cells])
    return Table(
        "arms",
        "Figures by condition",
        ARMS,
        rows,
        views=[
            TableView(
                ["figure"],
                where={"llm": one.llm, "belief": when},
                across="level",
                cells="value",
                title=f"{one.llm}: beliefs {of_belief}"
                if of_belief
                else f"{one.llm}: the same under all conditions, up to chance",
            )
            for one in compared
            for when, of_belief in OF_BELIEF.items()
        ],
    )


def _differences_table(compared: Sequence[_Compared]) -> Table:
    rows = [
        [
            *(arm.llm, arm.found.factor, level, arm.found.levels[0], *_what(what), _figure_of(figure)),
            None if figure.combined is None else figure.combined.p_two_sided(),
        ]
        for arm in compared
        for level, what, figure in arm.differences()
    ]
    return Table(
        "arm_differences",
        "Differences between conditions",
        DIFFERENCES,
        rows,
        note="Each arm less the first one. Levels are drawn at random, so that a difference is an effect of the arm.",
        views=[
            TableView(
                ["figure", "belief", "value", "p"],
                where={"llm": arm.llm, "level": level},
                title=f"{arm.llm}: {level} less {arm.found.levels[0]}",
            )
            for arm in compared
            for level in arm.found.levels[1:]
        ],
    )


def _short(measure: ArmMeasure) -> str:
    """A row of the picture, whose names have little room."""
    when = {"prior": ", before", "posterior": ", after", None: ""}[measure.when]
    if measure.rule is None:
        return f"alignment, alpha {short(measure.alpha)}{when}" if measure.alpha is not None else "model right"
    how = f"above {short(measure.rule.threshold)}" if measure.rule.kind == "threshold" else "as believed"
    return f"right, {how}{when}"


def _pictures(compared: Sequence[_Compared]) -> Iterator[Picture]:
    """The differences, one row each, for shares; nats have another unit. A picture of each model, on the same axis."""
    rows_of = [(comparison, _picture_rows(comparison)) for comparison in compared]
    figures = [figure for _comparison, rows in rows_of for row in rows for figure in row.figures]
    same_axis = [end for figure in figures for end in (figure.value, *(figure.interval or ())) if end is not None]
    for comparison, rows in rows_of:
        if any(figure.value is not None for row in rows for figure in row.figures):
            yield _picture(comparison, rows, same_axis)


def _picture_rows(comparison: _Compared) -> list[ForestRow]:
    return [
        ForestRow(
            _short(what),
            [_figure_of(figure) for _level, other, figure in comparison.differences() if other == what],
        )
        for what in comparison.wanted
        if what.measure in (ACCURACY, PERFORMANCE, CORRECT)
    ]


def _picture(comparison: _Compared, rows: Sequence[ForestRow], same_axis: Sequence[float]) -> Picture:
    title = f"Differences between conditions: {comparison.llm}"
    return Picture.of(
        f"arm_differences_{_plain(comparison.llm)}",
        title,
        f"Each arm of {comparison.found.factor} less {comparison.found.levels[0]}, before and after the "
        "evidence: alignment, how "
        "often the model is deployed and right, and how often it is right; bars are 95 % intervals between people.",
        ForestChart(
            title=title,
            x=Axis(f"difference to {comparison.found.levels[0]}", includes=same_axis),
            series=[f"{level} less {comparison.found.levels[0]}" for level in comparison.found.levels[1:]],
            rows=rows,
            mark_at=0.0,
        ),
        beside="Differences between conditions, of each language model",
    )


def _plain(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower())


def _notes() -> list[str]:
    return [
        "Alignment is weighted generalized accuracy (1: beliefs are certain and right), cross-entropy its loss (lower "
        "is better). Deployed and right is human-deployed performance: how often the model is deployed by the belief "
        "and right there.",
        "Figures are about this study's questions, and about pairs with the outcome that the model really had. In "
        "cross-entropy, beliefs of 0 and 100 % count as 0.5 and 99.5 %. A few such beliefs that are wrong "
        "decide it; its interval in one arm allows for that, and is wider.",
    ]
