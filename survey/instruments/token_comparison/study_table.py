"""All answers of a study as the arrays that its figures are worked out from."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.figures.words import integer
from survey.models import Question
from survey.services.banks.eligibility import eligible_questions

from .analysis.checking import CheckModel
from .analysis.loss import ComparisonAnswers, Comparisons, log_odds_of_percent
from .chances import chance_of_any, chance_of_one, drawn_of
from .labels import stated_of
from .models import DrawnToken, PreparedContext
from .options import ComparisonOptions
from .preparing import contexts_of, readings_of

if TYPE_CHECKING:
    from survey.models import Assignment, Study


class StudyTable:
    """All contexts of a study that could have been asked, with its answers, as arrays.

    Contexts whose draws are all the true token enter with the estimate 1 although nobody was asked. A context is
    weighted by 1 / the chance that the study asks anything about it, a comparison within it is as likely as another.
    """

    def __init__(self, study: "Study", options: ComparisonOptions, answers: "Sequence[Assignment]") -> None:
        questions = eligible_questions(study)
        there = contexts_of(options, _with_all(study, questions))
        self.notes: list[str] = []
        self.people: list[int] = []
        self._names: dict[int, str] = {}
        of_answer: list[tuple[int, int, int]] = []
        stated_answers: list[tuple[tuple[int, int], int, int]] = []
        for answer in answers:
            stated = stated_of(answer)
            if stated is None:
                continue
            pair = answer.slot.item.token_pair
            stated_answers.append(((pair.context_id, pair.other_id), answer.sitting.respondent_id, stated.percent_true))
            self._names[answer.sitting.respondent_id] = answer.sitting.respondent.pseudonym
        question_of = {
            context.pk: question for question in _with_all(study, questions) for context in there.get(question.pk, ())
        }
        contexts = {context.pk: context for own in there.values() for context in own}
        universe = sum(len(context.drawn) for context in contexts.values())
        drawn = drawn_of(study)
        asked = {key[0] for key, _person, _percent in stated_answers}
        chosen = [context for context in contexts.values() if context.pk in asked or not context.drawn]
        self.chosen = chosen
        self.shown = [question_of[context.pk].plain[: context.end] for context in chosen]
        place = {context.pk: number for number, context in enumerate(chosen)}
        items = [(place[context.pk], other) for context in chosen for other in context.others]
        number_of = {(chosen[at].pk, other.id): number for number, (at, other) in enumerate(items)}
        for key, person, percent in stated_answers:
            of_answer.append((number_of[key], person, percent))
            self.people.append(person)
        texts = list(dict.fromkeys(question_of[context.pk].external_id for context in chosen))
        text_number = {name: number for number, name in enumerate(texts)}
        own = np.array([len(context.drawn) for context in chosen], dtype=np.int64)
        weight = np.ones(len(chosen))
        if universe and drawn:
            chance = np.where(own > 0, chance_of_any(universe, drawn, own), 1.0)
            weight = 1 / np.maximum(chance, 1e-12)
        item_chance = chance_of_one(universe, drawn) if universe and drawn else 1.0
        self.texts = texts
        self.names = [f"{question_of[context.pk].external_id}@{context.position}" for context in chosen]
        self.comparisons = Comparisons(
            text=np.array([text_number[question_of[context.pk].external_id] for context in chosen], dtype=np.int64),
            log_g_true=np.array([context.log_g_true for context in chosen], dtype=np.float64),
            draws=np.array([context.draws for context in chosen], dtype=np.float64),
            same=np.array([context.same for context in chosen], dtype=np.float64),
            weight=weight,
            context=np.array([at for at, _other in items], dtype=np.int64),
            multiplicity=np.array([other.times for _at, other in items], dtype=np.float64),
            log_g_other=np.array([other.log_g for _at, other in items], dtype=np.float64),
            item_weight=np.full(len(items), 1 / max(item_chance, 1e-12)),
        )
        self.answered = np.array(of_answer, dtype=np.int64).reshape(-1, 3)
        self.models = self._models(study, chosen, items)
        self.generator_sha256 = chosen[0].generator_sha256 if chosen else ""
        self.tokenizer_sha256 = chosen[0].tokenizer.sha256 if chosen else ""
        left = len(items) - len(np.unique(self.answered[:, 0]))
        if left:
            self.notes.append(
                f"{integer(left)} of {integer(len(items))} comparisons have no answer and are weighted for within "
                "their contexts"
            )
        if others := len(contexts) - len(chosen):
            self.notes.append(f"{others} contexts have no answer at all and are left out")

    def answers(self, person: int | None = None) -> ComparisonAnswers:
        """All answers, or those of one person."""
        rows = self.answered if person is None else self.answered[self.answered[:, 1] == person]
        return ComparisonAnswers(rows[:, 0], rows[:, 1], log_odds_of_percent(rows[:, 2].astype(np.float64)))

    def persons(self) -> dict[str, tuple[Comparisons, ComparisonAnswers, Sequence[CheckModel]]]:
        """The same contexts with each person's answers, by pseudonym."""
        return {
            self._names[person]: (self.comparisons, self.answers(person), self.models)
            for person in sorted(set(self.people), key=lambda number: self._names[number])
        }

    def _models(
        self, study: "Study", chosen: Sequence[PreparedContext], items: Sequence[tuple[int, DrawnToken]]
    ) -> list[CheckModel]:
        models = []
        for model in study.config.models:
            read = readings_of(model, chosen)
            if len(read) < len(chosen):
                self.notes.append(
                    f"{model.name}: left out of the checks, since it has not read all contexts: `hunch "
                    f"token_comparison {study.slug} --prepare`"
                )
                continue
            true = np.array([read[context.pk][0] for context in chosen], dtype=np.float64)
            others = np.array([read[chosen[at].pk][1].get(other.id, np.nan) for at, other in items], dtype=np.float64)
            lost = int((~np.isfinite(true)).sum())
            if lost:
                self.notes.append(f"{model.name}: gives {lost} true tokens no probability; its check leaves them out")
            models.append(CheckModel(model.name, true, others))
        return models


def _with_all(study: "Study", questions: Sequence[Question]) -> list[Question]:
    """The study's questions, and those flagged since that have items."""
    known = {question.pk for question in questions}
    keys = study.items.order_by().values_list("token_pair__question", flat=True).distinct()
    further = [key for key in keys if key is not None and key not in known]
    return [*questions, *Question.objects.filter(pk__in=further).order_by("position")]
