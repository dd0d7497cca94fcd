"""What `estimate` estimates, as files: one row per answer with what it says about each figure, and the figures
themselves.

With both, anybody redoes the main table without Hunch. Imports models and below.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from survey.contracts import instruments
from survey.contracts.measures import Measure
from survey.contracts.tables import Column, ExtraFile
from survey.models import Stage, Study
from survey.services.answers.counting import ESTIMATED
from survey.services.results.estimates import study_estimates
from survey.services.results.estimates.stage_rows import read_stage
from survey.services.results.estimates.weights import answer_weights

WHO = (
    Column("study", "text", "The study's short name."),
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("slot", "number", "The slot, as in answers.csv.", whole=True),
    Column("respondent", "text", "Pseudonym of the respondent."),
    Column("weight", "number", "The answer's weight in the figures of all stages, 1 on average."),
)
MAIN = (
    Column("figure", "text", "Its name: the column of outcomes.csv whose weighted mean it is."),
    Column("title", "text", "The same in words."),
    Column("unit", "text", "share, or the unit."),
    Column("value", "number", "The plain figure of all stages together."),
    Column("low", "number", "Lower end of its 95 % interval; empty without one."),
    Column("high", "number", "Upper end of it."),
    Column("naive", "number", "The plain mean of the answers without weights, for comparison."),
    Column("answers", "number", "How many answers it rests on.", whole=True),
    Column("people", "number", "How many people gave them.", whole=True),
)


def outcome_files(study: Study) -> tuple[ExtraFile, ExtraFile]:
    """outcomes.csv and main_table.csv.

    Raises:
        StateRefused: no answer counts yet, or there is nothing to estimate.
    """
    report = study_estimates.estimate(study)
    names = [figure.name for figure in report.figures]
    of_ratio = _ratios(study)
    columns = [*WHO]
    for figure in report.figures:
        columns.append(Column(figure.name, "number", f"{figure.title}: what the answer says of it; empty: nothing."))
        if figure.name in of_ratio:
            columns.append(Column(f"{figure.name}__per", "number", "The figure divides by the weighted sum of this."))
    main = [
        [
            *(figure.name, figure.title, figure.unit, figure.combined.value),
            *(_finite(end) for end in figure.combined.interval),
            *(figure.naive.value if figure.naive else None, figure.combined.n, figure.combined.n_clusters),
        ]
        for figure in report.figures
        if figure.combined is not None
    ]
    rows = _outcomes(study, names, of_ratio)
    return ExtraFile("outcomes.csv", columns, rows), ExtraFile("main_table.csv", MAIN, main)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _parts(study: Study) -> Iterator[tuple[Stage, list[Any], Mapping[str, Measure]]]:
    instrument = instruments.of_study(study)
    estimates = instruments.estimates_of(instrument)
    for stage in study.main_stages().exclude(state=Stage.State.DRAFT).order_by("index"):
        stage.study = study
        rows = read_stage(stage, instrument, {})
        answers = [answer for answer in rows.answers if answer.slot.role in ESTIMATED]
        if answers:
            estimands = estimates.estimands(answers, thresholds=tuple(estimates.default_thresholds()))
            yield stage, answers, {measure.name: measure for measure in estimands.measures}


def _ratios(study: Study) -> frozenset[str]:
    for _stage, _answers, measures in _parts(study):
        return frozenset(name for name, measure in measures.items() if measure.per is not None)
    return frozenset()


def _outcomes(study: Study, names: Sequence[str], of_ratio: frozenset[str]) -> Iterator[Sequence[Any]]:
    weights = answer_weights(study, {})
    for stage, answers, measures in _parts(study):
        for place, answer in enumerate(answers):
            if (weight := weights.get(answer.pk)) is None:
                continue
            row: list[Any] = [study.slug, stage.index, answer.slot.number, answer.sitting.respondent.pseudonym, weight]
            for name in names:
                measure = measures[name]
                is_about = measure.where is None or bool(measure.where[place])
                row.append(float(measure.values[place]) if is_about else None)
                if name in of_ratio:
                    row.append(float(measure.per[place]) if is_about and measure.per is not None else None)
            yield row
