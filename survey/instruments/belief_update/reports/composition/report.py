"""The report `composition`: whether beliefs after several evidence questions add up as Bayes' rule has it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from survey.contracts import instruments
from survey.contracts.reports import Argument, Picture, Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.figures.tables import Columns
from survey.figures.words import counted, number, percent, short
from survey.models import Study
from survey.services.results.reports import CONDITION

from ...analysis.composing import TITLES, WAYS
from ...analysis.composition import Composition
from ...export_steps import order_is_hidden
from .composed import ComposedStudy, composed

FIGURES = (
    Column("clip", "number", "Beliefs nearer than so many points to 0 or 100 count as that; empty: it needs no clip."),
    Column("figure", "text", "Which figure it is."),
    Column("scale", "text", "log-odds or points: in what changes are counted."),
    FigureColumn(
        "value",
        "number",
        "The figure; empty where it is not defined.",
        prefix="",
        low="The lower end of its 95 % interval.",
        high="The upper end.",
    ),
)
WAY_COLUMNS = (
    Column("way", "text", "How people may put evidence together."),
    Column("says", "text", "What that means.", heading="what it says"),
    Column("scale", "text", "log-odds or points: the scale on which it has its weights."),
    Column(
        "distance",
        "number",
        "Wald statistic: how far the weights that were found lie from its weights; 0 is none.",
        digits=1,
    ),
    Column("penalty", "number", "What is added for a parameter that was estimated."),
    Column(
        "parameter", "number", "How much a change keeps for each step; empty where the way has no parameter.", digits=2
    ),
    Column("explained", "number", "The share of the systematic change that it foresees; 1 is all of it.", digits=2),
    Column("best", "0 or 1", "1: it fits best.", heading="fits best", style="yes or no"),
)
METHOD = (
    "What an evidence question changes alone is known from the people who saw it first. Their noise is kept apart: a "
    "sequence is set against the single changes of other people, and these against those of others again. Intervals "
    "take respondents and items as clusters."
)
ENDS = (
    "The scale ends at 0 and 100, and numbers are rounded: the slope of people who follow Bayes’ rule is therefore not "
    "quite 1. It is worked out from the beliefs and single changes of this study, and the slope is held against it."
)


class CompositionReport(Report):
    """Slope and weights in log-odds, order effects, ways to put evidence together next to each other."""

    arguments: ClassVar[Sequence[Argument]] = (CONDITION,)
    exported: ClassVar[Mapping[str, Columns]] = {"composition": FIGURES, "composition_ways": WAY_COLUMNS}

    def obstacle(self, study: Study) -> str:
        if instruments.of_study(study).options.evidence_questions == 1:
            return (
                f"{study.slug}: its items have one evidence question; set evidence_questions to 2 or 3 in a new study"
            )
        if order_is_hidden(study):
            return f"{study.slug}: is blind, and the order of the evidence is a condition; unblind it first"
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        if problem := self.obstacle(study):
            raise StateRefused(problem)
        study_steps = composed(study, arguments["condition"])
        main, figures = study_steps.main, _figures(study_steps)
        return ReportResult(
            title=f"How evidence adds up: {study.title}",
            lines=_lines(study_steps),
            tables=[figures, _ways(study_steps)],
            pictures=[
                Picture.of("composition", "What each step counts for", _weights_in_words(main), _chart(study_steps))
            ],
            notes=_notes(study_steps),
            data=_data(study_steps, figures),
        )


def _lines(composition: ComposedStudy) -> list[str]:
    main, answers = composition.main, composition.answers
    none, all_ = composition.ends
    says = next(way.says for way in WAYS if way.name == composition.best)
    aim = 1.0 if composition.bayes is None else composition.bayes
    verdict = "holds" if composition.as_bayes else "does not hold"
    return [
        f"{counted(main.answers, 'answer')} of {counted(main.people, 'person', 'people')} to "
        f"{counted(main.items, 'item')} with {answers.steps} evidence questions.",
        f"The whole change is {main.slope} times the sum of the single changes, in log-odds. People "
        f"who follow Bayes’ rule, with beliefs like these, would have {number(aim, 3)}; the interval {verdict} that.",
        f"What fits best: {TITLES[composition.best]} ({says}).",
        f"{percent(none)} of all stated beliefs are 0, and {percent(all_)} are 100.",
    ]


def _rows(composition: ComposedStudy) -> list[tuple[float | None, str, str, Figure]]:
    rows: list[tuple[float | None, str, str, Figure]] = []
    for clipped in composition.by_clip:
        rows.append((clipped.clip, "slope on the sum of single changes", "log-odds", clipped.slope))
        rows += [
            (clipped.clip, f"weight of step {step}", "log-odds", weight)
            for step, weight in enumerate(clipped.weights, 1)
        ]
        rows.append((clipped.clip, "weight of the last step less the first", "log-odds", clipped.recency))
    clip = composition.main.clip
    first, second = composition.halves
    points = composition.in_points
    return [
        *rows,
        (clip, "slope of people who follow Bayes’ rule, with these beliefs", "log-odds", Figure(composition.bayes)),
        (clip, "slope, single changes of the first half of the people", "log-odds", Figure(first)),
        (clip, "slope, single changes of the second half", "log-odds", Figure(second)),
        (clip, "slope without parting the people", "log-odds", Figure(composition.main.naive)),
        (None, "slope on the sum of single changes", "points", points.slope),
        *((None, f"weight of step {step}", "points", weight) for step, weight in enumerate(points.weights, 1)),
        (clip, "order effect: a correct answer last less an incorrect one last", "log-odds", composition.order[0]),
        (None, "order effect: a correct answer last less an incorrect one last", "points", composition.order[1]),
        (clip, "scale on which full changes add: 1 log-odds, 0 points", "both", composition.shape),
        (None, "share of 0", "share", Figure(composition.ends[0], unit="share")),
        (None, "share of 100", "share", Figure(composition.ends[1], unit="share")),
    ]


def _figures(study_steps: ComposedStudy) -> Table:
    return Table(
        "composition",
        "Figures",
        FIGURES,
        _rows(study_steps),
        note="The slope without parting the people is too small where single changes are noisy.",
        views=[TableView(["figure", "clip", "scale", "value"])],
    )


def _ways(composition: ComposedStudy) -> Table:
    says = {way.name: way.says for way in WAYS}
    rows = [
        [
            TITLES[fit.name],
            says[fit.name],
            "points" if fit.name == "additive" else "log-odds",
            fit.distance,
            fit.penalty,
            fit.kept,
            fit.explained,
            int(fit.name == composition.best),
        ]
        for fit in composition.fits
    ]
    return Table(
        "composition_ways",
        "Ways to put evidence together",
        WAY_COLUMNS,
        rows,
        note=(
            "The smallest distance, with the penalty for a parameter, fits best; between Bayes and adding points the "
            "scale on which changes add decides as well. Another way than these five may be the true one."
        ),
        views=[TableView(["way", "says", "distance", "parameter", "explained", "best"])],
    )


def _weights_in_words(main: Composition) -> str:
    each = ", ".join(f"step {step}: {weight_figure}" for step, weight_figure in enumerate(main.weights, 1))
    return (
        f"The weight of the single change of each step in the whole change, in log-odds: {each}. Bayes’ rule: 1 each."
    )


def _chart(study_steps: ComposedStudy) -> ForestChart:
    rows = [
        ForestRow("slope on the sum", [clip.slope for clip in study_steps.by_clip]),
        *(
            ForestRow(f"weight of step {step + 1}", [clip.weights[step] for clip in study_steps.by_clip])
            for step in range(study_steps.answers.steps)
        ),
        ForestRow("last step less first", [clip.recency for clip in study_steps.by_clip]),
    ]
    return ForestChart(
        title="What each step counts for",
        x=Axis("weight in log-odds, with 95 % interval", includes=(0.0, 1.0)),
        series=[f"clip {short(clip.clip)} %" for clip in study_steps.by_clip],
        rows=rows,
        mark_at=1.0,
    )


def _notes(composition: ComposedStudy) -> list[str]:
    notes = [METHOD, ENDS]
    if composition.left_out:
        notes.append(
            f"Left out: {counted(composition.left_out, 'item')}, in which not every evidence question came "
            "first for two."
        )
    if composition.ends[0] + composition.ends[1] > 0.05:
        notes.append(
            "Many beliefs are 0 or 100, which have no log-odds: compare the figures of the three clips before you "
            "trust one."
        )
    return notes


def _data(study_steps: ComposedStudy, figures: Table) -> Mapping[str, Any]:
    main = study_steps.main
    return {
        "answers": main.answers,
        "people": main.people,
        "items": main.items,
        "items_left_out": study_steps.left_out,
        "steps": study_steps.answers.steps,
        "best": study_steps.best,
        "slope_of_bayes": study_steps.bayes,
        "slope_as_bayes": study_steps.as_bayes,
        "share_of_0": study_steps.ends[0],
        "share_of_100": study_steps.ends[1],
        "figures": figures.records(),
        "ways": [
            {
                "way": fit.name,
                "distance": fit.distance,
                "penalty": fit.penalty,
                "parameter": fit.kept,
                "explained": fit.explained,
            }
            for fit in study_steps.fits
        ],
    }
