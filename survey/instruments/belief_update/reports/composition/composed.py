"""A study's answers to items with several evidence questions, and everything the report `composition` says of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from survey.contracts import instruments
from survey.exceptions import StateRefused
from survey.figures import Figure
from survey.models import Assignment, Study
from survey.services.answers.conditions import has_levels, read_condition, relations_of
from survey.services.answers.counting import BATCH_SIZE, counting
from survey.services.base.seeds import generator
from survey.services.results.estimates.weights import answer_weights

from ...analysis.bayes_person import bayes_slope
from ...analysis.composition import (
    CLIPS,
    MIN_ITEMS,
    Composition,
    StepAnswers,
    WayFit,
    at_the_ends,
    best_of,
    compose,
    fits,
    halves,
    order_effect,
    scale_of_adding,
)
from ...labels import beliefs_of


@dataclass(frozen=True, eq=False)
class ComposedStudy:
    """`by_clip`: under each clip, the first one the main one. `halves`: of one split, both ways. `ends`: the shares of
    0 and 100. `order`: the effect in log-odds and in points. `bayes`: the slope of people who follow Bayes' rule, with
    beliefs like these."""

    answers: StepAnswers
    by_clip: Sequence[Composition]
    in_points: Composition
    halves: tuple[float | None, float | None]
    ends: tuple[float, float]
    order: tuple[Figure, Figure]
    shape: Figure
    fits: Sequence[WayFit]
    best: str
    bayes: float | None
    left_out: int

    @property
    def main(self) -> Composition:
        return self.by_clip[0]

    @property
    def as_bayes(self) -> bool:
        """Whether the slope's interval holds that of people who follow Bayes' rule."""
        return self.main.slope.holds(1.0 if self.bayes is None else self.bayes)


def composed(study: Study, condition: Sequence[str] = ()) -> ComposedStudy:
    """
    Raises:
        StateRefused: too few items have two people who saw each evidence question first.
        HunchError: there is no such condition.
    """
    answers = step_answers(study, condition)
    compositions = [compose(answers, clip=clip) for clip in CLIPS]
    in_points = compose(answers, in_points=True)
    by_clip = [composition for composition in compositions if composition is not None]
    if len(by_clip) < len(CLIPS) or in_points is None:
        raise StateRefused(
            f"{study.slug}: fewer than {MIN_ITEMS} items have two people for each evidence question who saw it "
            "first, which is what says how much it changes alone: collect more answers of each item "
            '(responses_per_item), with evidence_order = "shuffled"'
        )
    shapes = [
        scale_of_adding(answers, rng=generator(study.seed, "composition", "scale"), cut=cut) for cut in (True, False)
    ]
    every = fits(by_clip[0], in_points)
    return ComposedStudy(
        answers=answers,
        by_clip=by_clip,
        in_points=in_points,
        halves=halves(answers, rng=generator(study.seed, "composition", "halves")),
        ends=at_the_ends(answers),
        order=(order_effect(answers), order_effect(answers, in_points=True)),
        shape=shapes[0],
        fits=every,
        best=best_of(every, shapes),
        bayes=bayes_slope(answers, rng=generator(study.seed, "composition", "bayes")),
        left_out=len(answers.weight) - by_clip[0].items,
    )


def step_answers(study: Study, condition: Sequence[str] = ()) -> StepAnswers:
    """The whole answers that count, of stages that stand for all items. An item weighs as its answers do together.

    Raises:
        StateRefused: there are none.
        HunchError: there is no such condition.
    """
    levels = read_condition(study, condition)
    weight_of = answer_weights(study, levels)
    rows = counting(study.main_stages()).select_related("sitting", "slot__item").order_by("slot__stage", "slot__number")
    rows = rows.prefetch_related(*relations_of(study))
    answers = [row for row in rows.iterator(BATCH_SIZE) if row.pk in weight_of and has_levels(row, levels)]
    instrument = instruments.of_study(study)
    instrument.label_reading.read([answer.slot.item for answer in answers], answers)
    steps = instrument.options.evidence_questions
    whole = [
        answer for answer in answers if len(beliefs_of(answer).steps) == steps and beliefs_of(answer).prior is not None
    ]
    if not whole:
        under = " under this condition" if condition else ""
        raise StateRefused(f"{study.slug}: no answer{under} counts yet in a stage that stands for all items")
    return _as_arrays(whole, np.array([weight_of[answer.pk] for answer in whole]), steps)


def _as_arrays(answers: Sequence[Assignment], weights: np.ndarray, steps: int) -> StepAnswers:
    items = {answer.slot.item_id: answer.slot.item for answer in answers}
    place = {key: number for number, key in enumerate(items)}
    people = {
        key: number for number, key in enumerate(dict.fromkeys(answer.sitting.respondent_id for answer in answers))
    }
    beliefs = [beliefs_of(answer) for answer in answers]
    item = np.array([place[answer.slot.item_id] for answer in answers], dtype=np.int64)
    return StepAnswers(
        item=item,
        person=np.array([people[answer.sitting.respondent_id] for answer in answers], dtype=np.int64),
        order=np.array([[at - 1 for at, _after in belief.steps] for belief in beliefs], dtype=np.int64),
        belief=np.array(
            [[belief.prior, *(after for _at, after in belief.steps)] for belief in beliefs], dtype=np.float64
        ).reshape(-1, steps + 1),
        weight=np.bincount(item, weights=weights, minlength=len(items)).astype(np.float64),
        correct=np.array([[step.correct for step in item.pair.steps] for item in items.values()], dtype=bool),
    )
