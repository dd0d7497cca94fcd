"""The report `people`: how much of the answers' variance lies between people, pairs and questions; how people differ.

Nobody is named, and no value of a single person is given: people's effects are shown by percentiles alone.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

import bandit
from bandit import Components, DesignError
from bandit.components import PAIRS, PEOPLE, QUESTIONS, REST
from survey.contracts import instruments
from survey.contracts.measures import SHARE, Measure
from survey.contracts.reports import Argument, Picture, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError, StateRefused
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, Line, LineChart
from survey.figures.words import is_share, number
from survey.models import Stage, Study
from survey.services.answers.blinding import shown_conditions
from survey.services.answers.conditions import in_words, read_condition, relations_of
from survey.services.answers.counting import ESTIMATED, counting
from survey.services.base.garbage import collector_paused
from survey.services.base.seeds import generator
from survey.services.results.estimates.stage_rows import read_stage
from survey.services.results.estimates.study_estimates import subjects_of
from survey.services.results.estimates.weights import answer_weights
from survey.services.results.reports import CONDITION

MIN_DRAWN = 30  # people; with fewer the outer percentiles are single people
PERCENTILES = tuple(range(10, 91, 5))
MAX_RESAMPLES = 2000
IN_WORDS = {
    PEOPLE: "between people",
    PAIRS: "between items (pairs), beyond their questions",
    QUESTIONS: "between questions",
    REST: "the rest: a person on an item, and noise",
}
SHARES = (
    Column("part", "text", "people, pairs (items beyond their questions), questions, or rest."),
    Column("variance", "number", "Its variance, in squared units of the answers; at least 0."),
    FigureColumn(
        "share",
        "share",
        "Its share of the variance of one answer; at least 0.",
        heading="share of the variance",
        prefix="",
        low="Lower end of the share's 95 % interval.",
        high="Upper end.",
    ),
    Column("meaning", "text", "The part in words.", heading="differences", in_file=False),
    Column("deviation", "text", "The root of the variance, in the unit of the answers.", in_file=False),
)
EFFECTS = (
    Column(
        "percentile", "number", "The percentage of people whose effect is lower.", whole=True, heading="people below, %"
    ),
    Column("effect", "number", "The effect there: how far such people are above the mean, shrunken towards 0."),
    Column("size", "text", "The effect in the unit of the answers.", heading="effect", in_file=False),
)


@dataclass(frozen=True, eq=False)
class _Answers:
    """One measure's answers that enter the figures of all stages, arrays of shape (n,); `subjects` (n, 2) or None. Of a
    ratio (`is_ratio`) the values are those of each answer, such as the share of a run's guesses that are right."""

    title: str
    unit: str
    is_ratio: bool
    values: np.ndarray
    person: np.ndarray
    item: np.ndarray
    weight: np.ndarray
    subjects: np.ndarray | None


def figure_titles(study: Study) -> dict[str, str]:
    """The figures of the study's estimates by name, once an answer counts."""
    estimates = instruments.of_study(study).estimates
    rows = counting(study.main_stages()).select_related("sitting", "slot__item").order_by("pk")
    answers = list(rows.prefetch_related(*relations_of(study))[:1])
    if estimates is None or not answers:
        return {}
    instruments.of_study(study).label_reading.read([answers[0].slot.item], answers)
    measures = estimates.estimands(answers, thresholds=tuple(estimates.default_thresholds())).measures
    return {measure.name: measure.title for measure in measures}


class People(Report):
    """Shares of variance with intervals, and the distribution of people's effects, for one figure."""

    arguments = (
        Argument(
            "figure",
            "a figure of the estimates; the first one by default",
            choices=figure_titles,
            without="the first",
            label="Figure",
        ),
        Argument(
            "resamples",
            "for the intervals: more take longer and are more exact",
            default="200",
            on_pages="60",
            most_on_web=bandit.RESAMPLES,
            label="Resamples",
        ),
        CONDITION,
    )

    def obstacle(self, study: Study) -> str:
        if instruments.of_study(study).estimates is None:
            return f"{study.slug}: its instrument names nothing to estimate"
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        resamples = arguments.whole("resamples", lowest=20, highest=MAX_RESAMPLES)
        levels = read_condition(study, arguments["condition"])
        with collector_paused():
            rows = _read(study, arguments.one("figure"), levels)
        try:
            components = bandit.variance_components(
                values=rows.values,
                person=rows.person,
                item=rows.item,
                subjects=rows.subjects,
                weight=rows.weight,
                rng=generator(study.config.seed, "people"),
                resamples=resamples,
            )
        except DesignError as exc:
            raise StateRefused(f"{study.slug}: the variance cannot be shared out: {exc}") from exc
        headline, *lines = _lines(rows, components, levels)
        return ReportResult(
            title=f"People, pairs and questions: {study.title}",
            headline=headline,
            lines=lines,
            tables=list(_tables(rows, components)),
            pictures=list(_pictures(rows, components)),
            notes=list(_notes(study, rows, components, levels)),
            data={
                "figure": rows.title,
                "answers": components.answers,
                "people": components.people,
                "shares": [
                    {
                        "part": share.name,
                        "variance": share.variance,
                        "share": share.share,
                        "interval": list(share.interval),
                    }
                    for share in components.shares
                ],
                "joined_to_the_rest": list(components.joined),
                "effects": [{"percentile": place, "effect": effect} for place, effect in _percentiles(components)],
            },
        )


def _read(study: Study, figure: str, levels: Mapping[str, str]) -> _Answers:
    """
    Raises:
        StateRefused: no answer counts yet, or there is nothing to estimate.
        HunchError: an unknown figure.
    """
    instrument = instruments.of_study(study)
    estimates = instruments.estimates_of(instrument)
    weights = answer_weights(study, levels)
    values, people, items, weight, subjects = [], [], [], [], []
    title, unit, is_ratio = "", "", False
    for stage in study.main_stages().exclude(state=Stage.State.DRAFT).order_by("index"):
        stage.study = study
        rows = read_stage(stage, instrument, levels)
        answers = [answer for answer in rows.answers if answer.slot.role in ESTIMATED and answer.pk in weights]
        if not answers:
            continue
        measures = estimates.estimands(answers, thresholds=tuple(estimates.default_thresholds())).measures
        if figure and figure not in [measure.name for measure in measures]:
            there_are = ", ".join(measure.name for measure in measures)
            raise HunchError(f"figure: {figure} is not one of {there_are}", code="invalid")
        measure = next(measure for measure in measures if not figure or measure.name == figure)
        title, unit, is_ratio = measure.title, measure.unit, measure.per is not None
        mask, own = _single_values(measure, len(answers))
        values.append(own[mask])
        people.append(np.array([answer.sitting.respondent_id for answer in answers], dtype=np.int64)[mask])
        items.append(np.array([answer.slot.item_id for answer in answers], dtype=np.int64)[mask])
        weight.append(np.array([weights[answer.pk] for answer in answers])[mask])
        of_stage = subjects_of(answers, instrument)
        subjects.append(None if of_stage is None else of_stage[mask])
    if not values:
        under = f" under {in_words(levels)}" if levels else ""
        raise StateRefused(f"{study.slug}: no answer{under} counts yet, so there is nothing to share out")
    known_subjects = [subject for subject in subjects if subject is not None]
    return _Answers(
        title=title,
        unit=unit,
        is_ratio=is_ratio,
        values=np.concatenate(values),
        person=np.concatenate(people),
        item=np.concatenate(items),
        weight=np.concatenate(weight),
        subjects=np.concatenate(known_subjects) if len(known_subjects) == len(subjects) else None,
    )


def _single_values(measure: Measure, answers: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of n answers have a value of the measure, and the values (n,)."""
    mask = np.ones(answers, dtype=bool) if measure.where is None else np.asarray(measure.where, dtype=bool)
    own = np.asarray(measure.values, dtype=np.float64)
    if measure.per is None:
        return mask, own
    per = np.asarray(measure.per, dtype=np.float64)
    return mask & (per != 0), np.divide(own, per, out=np.zeros(answers), where=per != 0)


def _percentiles(components: Components) -> list[tuple[int, float]]:
    """By percentile: people's effects; none with fewer people than `MIN_DRAWN`, or where they do not differ."""
    if components.people < MIN_DRAWN or not np.ptp(components.effects) > 0:
        return []
    return [(place, float(np.percentile(components.effects, place))) for place in PERCENTILES]


def _size(value: float, unit: str) -> str:
    return f"{number(100 * value, 1)} points" if is_share(unit) else f"{number(value)} {unit}"


def _lines(rows: _Answers, components: Components, levels: Mapping[str, str]) -> Iterator[str]:
    people = components.shares[0]
    under = f" under {in_words(levels)}" if levels else ""
    title = f"{rows.title[:1].upper()}{rows.title[1:]}"
    yield (
        f"{title}: {Figure.between(people.share, people.interval, SHARE)} of the variance of single answers{under} "
        f"lies between people, from {components.answers} answers of {components.people} people."
    )
    yield f"People's own means differ with a standard deviation of {_size(math.sqrt(people.variance), rows.unit)}."


def _tables(rows: _Answers, components: Components) -> Iterator[Table]:
    yield Table(
        "variance_shares",
        "Where answers differ",
        SHARES,
        [
            {
                "part": part.name,
                "variance": part.variance,
                "share": Figure.between(part.share, part.interval),
                "meaning": IN_WORDS[part.name],
                "deviation": _size(math.sqrt(part.variance), rows.unit),
            }
            for part in components.shares
        ],
        note="Design-weighted: of all candidates, and not of those that were shown more often.",
        views=[TableView({"meaning": "part", "deviation": "standard deviation", "share": ""})],
    )
    if effects := _percentiles(components):
        yield Table(
            "people_effects",
            "How people differ",
            EFFECTS,
            [[place, effect, _size(effect, rows.unit)] for place, effect in effects],
            note="Each person's mean less that of all, shrunken towards 0 by how little their answers say.",
            views=[
                TableView(["percentile", "size"], rows=[n for n, (place, _e) in enumerate(effects) if not place % 10])
            ],
        )


def _pictures(rows: _Answers, components: Components) -> Iterator[Picture]:
    if effects := _percentiles(components):
        low, middle, high = (dict(effects)[place] for place in (10, 50, 90))
        yield Picture.of(
            "people_effects",
            f"How people differ: {rows.title}",
            f"The shares of people below each effect, from 10 to 90 %. Half of the people are below "
            f"{_size(middle, rows.unit)}; eight in ten lie between {_size(low, rows.unit)} and "
            f"{_size(high, rows.unit)}. The second line is a normal distribution with the estimated standard "
            "deviation, which is not shrunken.",
            chart_of_effects(effects, math.sqrt(components.shares[0].variance), rows.unit),
        )


def chart_of_effects(effects: list[tuple[int, float]], deviation: float, unit: str) -> LineChart:
    """The shares of people below each effect, and those of a normal distribution."""
    factor = 100.0 if is_share(unit) else 1.0
    points = [(factor * effect, place / 100) for place, effect in effects]
    lines = [Line("people, shrunken", points)]
    reach = max(abs(x) for x, _y in points)
    if deviation > 0:
        reach = max(reach, 1.3 * factor * deviation)
        places = np.linspace(-reach, reach, 61).tolist()
        normal = [(x, 0.5 * (1 + math.erf(x / (factor * deviation * math.sqrt(2))))) for x in places]
        lines.append(Line("normal, not shrunken", normal, marked=False))
    what = "points" if is_share(unit) else unit
    return LineChart(
        title="How people differ",
        x=Axis(f"effect of a person, in {what}"),
        y=Axis("people below", share=True, includes=(0.0,)),
        lines=lines,
    )


def _notes(study: Study, rows: _Answers, components: Components, levels: Mapping[str, str]) -> Iterator[str]:
    if components.joined:
        lost = ", ".join(components.joined)
        yield (
            f"Too few answers share what separates them: {lost} cannot be separated from the rest, which holds them. "
            "Items that several people answer are needed (responses_per_item) to see how pairs differ."
        )
    if rows.subjects is None:
        yield (
            "Items of this study are not about one or two questions each, so that questions have no part of their own: "
            "what questions do is in the part of items."
        )
    yield (
        "The parts are those of a linear model with effects of people, items and questions that do not depend on each "
        "other. A question in another place of the item (target, evidence) has another effect."
    )
    if sum(share.share for share in components.shares) > 1 + 1e-9:
        yield "A share that is estimated below 0 is shown as 0, so that the shares add up to more than 100 %."
    if rows.is_ratio:
        yield (
            "The figure is a ratio of two sums. Here each answer has a ratio of its own, and counts the same whether "
            "it is long or short; what one answer's own parts differ by is in the rest."
        )
    if rows.unit == SHARE:
        yield "The answers are 0 or 1: most of their variance is chance, so that 10 % between people is much."
    if others := [
        shown_condition.factor
        for shown_condition in shown_conditions(study)
        if shown_condition.per == "sitting" and shown_condition.factor not in levels
    ]:
        yield (
            f"Levels of {', '.join(others)} are drawn for people, so that what they do counts as a difference between "
            "people here; choose a level to leave it out."
        )
    if components.people < MIN_DRAWN:
        yield f"People's effects are not shown: {components.people} people, and their distribution needs {MIN_DRAWN}."
    yield "Shrunken effects lie closer together than people do. No single person's effect is shown or stored."
