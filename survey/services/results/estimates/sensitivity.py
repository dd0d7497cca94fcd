"""What stands next to each plain figure: other assumptions about the same mean, and sentences about what they say.

`estimate_tables` makes tables of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bandit import Bounds, Estimate
from survey.contracts.instruments import ANOTHER_PERSON
from survey.figures import Figure
from survey.figures.words import number, short, spaced
from survey.services.answers.leaving import late_in_words

from .dropout import ExcludedLine, Leaving
from .study_estimates import CarryOver, Noise
from .study_figures import DivisionFigures, StudyFigure, in_words_p


@dataclass(frozen=True)
class AlternativeEstimate:
    """One of them: `kind` as files name it, `title` in words, its value (bounds have none), its interval, and a
    note. `ends` of bounds: the lowest and the highest value itself, without what chance does to them."""

    kind: str
    title: str
    estimate: Estimate | None
    interval: tuple[float, float]
    note: str
    ends: tuple[float, float] | None = None


SUCH_QUESTIONS, STAYED, BOUNDS, WORST_CASE = "such questions", "weighted for leaving", "bounds", "worst case"
POPULATION = "weighted to the population"
WITH_EXCLUDED = "bounds with excluded"

MEANINGS = {
    SUCH_QUESTIONS: "holds if the bank's questions are a random draw from questions like them, of the same tasks",
    STAYED: "holds if leaving depends on nothing but the item's number, the person's own answers before, and levels",
    POPULATION: "holds if people of one group of the margins answer alike, whether or not they took part",
    BOUNDS: "holds if unanswered items differ from answered ones by an odds ratio",
    WITH_EXCLUDED: "counts the items of people whom a rule excludes as unanswered too, and holds if these differ from "
    "answered ones by an odds ratio",
    WORST_CASE: "holds whatever the unanswered items had got",
}


def alternatives(figure: StudyFigure) -> Iterator[AlternativeEstimate]:
    if figure.superpopulation is not None:
        yield AlternativeEstimate(
            SUCH_QUESTIONS,
            "such questions",
            figure.superpopulation,
            figure.superpopulation.interval,
            MEANINGS[SUCH_QUESTIONS],
        )
    if figure.stayed is not None:
        yield AlternativeEstimate(
            STAYED,
            "weighted for leaving",
            figure.stayed,
            figure.stayed.interval,
            MEANINGS[STAYED],
        )
    if figure.population is not None:
        yield AlternativeEstimate(
            POPULATION, POPULATION, figure.population, figure.population.interval, MEANINGS[POPULATION]
        )
    if figure.bounds is not None:
        yield _of_bounds(
            BOUNDS,
            f"bounds, odds ratio {short(figure.bounds.odds_ratio)}",
            figure.bounds,
            f"{MEANINGS[BOUNDS]} of at most {short(figure.bounds.odds_ratio)}",
        )
    if figure.with_excluded is not None:
        yield _of_bounds(
            WITH_EXCLUDED,
            f"bounds with excluded, odds ratio {short(figure.with_excluded.odds_ratio)}",
            figure.with_excluded,
            f"{MEANINGS[WITH_EXCLUDED]} of at most {short(figure.with_excluded.odds_ratio)}",
        )
    if figure.worst_case is not None:
        yield _of_bounds(WORST_CASE, "worst case", figure.worst_case, MEANINGS[WORST_CASE])


def _of_bounds(kind: str, title: str, bounds: Bounds, note: str) -> AlternativeEstimate:
    items = "item" if bounds.unanswered == 1 else "items"
    note = f"{note}; {bounds.unanswered} unanswered {items}"
    return AlternativeEstimate(kind, title, None, bounds.interval, note, (bounds.lower.value, bounds.upper.value))


# Carry-over

FIRST_ITEMS, SAMPLED_MINUS_HOLDOUT = "first items", "sampled - holdout"


def carry_over_sentences(carry_over: CarryOver) -> Iterator[str]:
    """How to read the table of carry-over, in sentences."""
    yield (
        "Figures take it that an answer does not depend on the items that the person saw before. In an adaptive stage "
        "these are others than in a uniform one, so that with carry-over its answers would be of something else. "
        "Nothing came before people's first items, so that their figure is free of it. They are few."
    )
    if carry_over.no_difference:
        yield f"No comparison of sampled items with a holdout: {carry_over.no_difference}."
        return
    first = carry_over.differences[0]
    if first.combined is None:
        yield f"No comparison of sampled items with a holdout: {first.notes}."
        return
    p = first.combined.p_two_sided()
    verdict = (
        "More than chance makes: answers seem to depend on the items before them, or the holdout's people differ. Read "
        "the figures of the holdouts and of first items."
        if p is not None and p < 0.05
        else "No more than chance makes. A holdout is small, so that a small effect would hardly be seen."
    )
    yield (
        f"Sampled minus holdout, whose people get uniform booklets, {first.title}: "
        f"{Figure.of(first.combined, first.unit)}, {in_words_p(p)}. {verdict}"
    )


# Groups of people

FROM_THE_REST = "difference to the rest"


def group_sentences(division: DivisionFigures) -> Iterator[str]:
    """Of a division by groups of people: which have no difference to the others."""
    if division.withheld and len(division.labels) > 1:
        rest = division.rest or ((),) * len(division.labels)
        for label, sentence, figures in zip(division.labels, division.withheld, rest, strict=True):
            if not sentence and not figures:
                yield f"{label}: no difference to the others, since they are too few people together."


# People who left


def dropout_sentences(leaving: Leaving) -> Iterator[str]:
    """How to read the table of people who left, in sentences."""
    yield from _excluded_sentences(leaving.excluded)
    whole = leaving.lines[0]
    if not (whole.unanswered or whole.left or leaving.finished_late):
        yield "Everybody who began has answered all their items, or still can: nothing is lost."
        return
    late = late_in_words(leaving.finished_late)
    yield f"{whole.left} of {whole.people} people left before their last item{f'; {late}' if late else ''}."
    yield (
        f"{whole.unanswered} of the {whole.given} items that people were given have no answer that counts"
        f"{' (without those whom a rule excludes)' if leaving.excluded else ''}."
    )
    test = whole.test
    if test is not None and test.p is not None:
        verdict = (
            "People leave by what they have just answered: read the weighted figures."
            if test.p < 0.05
            else "The test finds no such difference. That does not rule out people who left instead of giving an "
            "answer: the bounds are for them."
        )
        yield (
            f"Test of leaving on the last answer ({leaving.outcome}), inside each stage and item number: "
            f"{in_words_p(test.p)}. {verdict}"
        )
    elif test is not None:
        yield f"No test of leaving on the last answer: {test.reason}."
    if leaving.no_weights:
        yield f"No figures weighted for leaving: {leaving.no_weights}."
    yield (
        f"Bounds hold if the odds of an answer differ between unanswered and answered items by a factor of at most "
        f"{short(leaving.odds_ratio)} (odds_ratio in [estimates] of the study file). "
        "The report estimates has worst-case bounds."
    )


def _excluded_sentences(lines: Sequence[ExcludedLine]) -> Iterator[str]:
    if not lines:
        return
    whole = lines[0]
    yield (
        f"A rule of the study file excludes {whole.excluded} of {whole.people} people with all their answers. Figures "
        "are of the others; the bounds with excluded people count these people's items as unanswered."
    )
    for line in lines[1:]:
        p = 1.0 if line.p is None else line.p
        verdict = (
            ": more than chance makes. The levels' other people are no longer alike, so that a difference between them "
            "may be the rule's: use its bounds with excluded people"
            if p < 0.05
            else ""
        )
        yield f"{line.title}: {line.excluded} of {line.people} excluded, {in_words_p(p)} against the others{verdict}."


# The noise of answers


def auc_sentences(noise: Noise) -> Iterator[str]:
    """What predictors of items can reach at most on single answers, or why that is not said."""
    limit = noise.auc_limit
    if limit is None:
        if noise.false_changes or noise.retests:
            yield (
                f"No upper limit of the AUC ({noise.no_limit}). It needs items that several people answer: "
                f"controls of the kind “{spaced(ANOTHER_PERSON)}”, or several answers to each item (control_kinds and "
                "responses_per_item in the study file)."
            )
        return
    sd = max(limit.between_items.value, 0.0) ** 0.5
    yield (
        f"Upper limit of the AUC: {number(limit.limit, 3)}, from {limit.items} items that several people answered. At "
        "95 % confidence, a predictor that knows the item alone, and not the person, reaches no higher AUC on single "
        "answers of other such people. The best one may well stay under it: this is no estimate of what can be "
        "reached. "
        f"Chances differ between items with a standard deviation of {number(sd)} (at most "
        f"{number(limit.highest_variance**0.5)})."
    )
