"""What a study has for the analysis: its judgements, the verdicts of its judges, and the replies' texts."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts import instruments
from survey.exceptions import HunchError
from survey.models import ModelAnswer, Study
from survey.services.answers.counting import design_weights, labelled_answers
from survey.services.banks.eligibility import filtered_questions
from survey.services.results.people_and_models.unreadable_replies import notes_on_unreadable, unreadable_by_model

from .analysis.analysing import Material
from .analysis.judgements import Judgements
from .analysis.style import Lengths, lengths_of, style_of
from .instrument import Preference
from .rows import judgements_of, judges_of

if TYPE_CHECKING:
    from survey.models.language_model import ModelAnswerQuerySet

BATCH_SIZE = 500


def questions_of(study: Study) -> Sequence[str]:
    """What the study asks about two replies."""
    questions: tuple[str, ...] = preference_of(study).options.questions
    return questions


def preference_of(study: Study) -> Preference:
    """
    Raises:
        HunchError: the study is of another instrument.
    """
    instrument = instruments.of_study(study)
    if not isinstance(instrument, Preference):
        raise HunchError(f"{study.slug} is a study of {instrument.name}, and this report is about preferences")
    return instrument


def material_of(study: Study, *, question: str = "", levels: dict[str, str] | None = None) -> Material:
    """The study's counted judgements, with the verdicts of every judge on the same replies."""
    instrument = preference_of(study)
    models = instrument.options.models
    answers = labelled_answers(study, levels=levels)
    asked = instrument.usable(filtered_questions(study))
    prompts = [prompt.external_id for prompt in asked]
    there = {
        answer.slot.item.comparison.question.external_id: answer.slot.item.comparison.question for answer in answers
    }
    asked += [prompt for name, prompt in there.items() if name not in set(prompts)]
    prompts = [prompt.external_id for prompt in asked]
    categories = [prompt.task.name for prompt in asked]
    people = judgements_of(answers, models=models, scale=question, prompts=prompts, weights=design_weights(answers))
    texts = _texts(study, models)
    longs = lengths_of([prompt.plain for prompt in asked], texts, models)
    unreadable = unreadable_by_model(_keyed().filter(language_model__name__in=models))
    return Material(
        people=people,
        judges=judges_of(study.bank_id, models, prompts, categories),
        styles=_styles(people, texts),
        lengths=longs,
        accuracy=_accuracy(models),
        unreadable={model: count.replies for model, count in unreadable.items()},
        notes=notes_on_unreadable(unreadable),
    )


def lengths_in_tokens(study: Study, count: Callable[[str], int]) -> list[Lengths]:
    """Lengths of the study's prompts and replies in a model's tokens."""
    instrument = preference_of(study)
    asked = instrument.usable(filtered_questions(study))
    models = instrument.options.models
    return lengths_of([prompt.plain for prompt in asked], _texts(study, models), models, count)


def chosen_and_rejected(study: Study, people: Judgements) -> bytes:
    """JSON Lines with the prompt, the reply that most people preferred and the other one, as trainers of reward models
    read them; one line for each pair of replies, without those that are tied.

    `votes_for`, `votes_against`: people who preferred either; who called it a tie counts for none.
    """
    questions = {question.external_id: question.plain for question in filtered_questions(study)}
    texts = _texts(study, people.models)
    lines = []
    for key in np.unique(people.key):
        rows = people.where(people.key == key)
        low, high = sorted((int(rows.a[0]), int(rows.b[0])))
        for_low = int(((rows.win == 1) & (rows.a == low)).sum() + ((rows.win == 0) & (rows.b == low)).sum())
        for_high = int((rows.win != 0.5).sum()) - for_low
        prompt = people.prompts[int(rows.prompt[0])]
        if for_low == for_high or prompt not in questions:
            continue
        better, worse = (low, high) if for_low > for_high else (high, low)
        models = {"chosen": people.models[better], "rejected": people.models[worse]}
        replies = {side: texts.get((prompt, model)) for side, model in models.items()}
        if None in replies.values():
            continue
        line = {
            "prompt": questions[prompt],
            **replies,
            **{f"{side}_model": model for side, model in models.items()},
            "votes_for": max(for_low, for_high),
            "votes_against": min(for_low, for_high),
            "prompt_id": prompt,
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def _texts(study: Study, models: Sequence[str]) -> dict[tuple[str, str], str]:
    """Every reply of these models by its prompt's id and its model."""
    rows = ModelAnswer.objects.filter(question__bank=study.bank_id, language_model__name__in=models)
    replies = rows.exclude(response="").values_list("question__external_id", "language_model__name", "response")
    return {(prompt, model): text for prompt, model, text in replies.iterator(BATCH_SIZE)}


def _styles(people: Judgements, texts: dict[tuple[str, str], str]) -> dict[int, tuple[float, float, float]]:
    styles = {}
    for key, prompt, a, b in zip(
        people.key.tolist(), people.prompt.tolist(), people.a.tolist(), people.b.tolist(), strict=True
    ):
        pair = [texts.get((people.prompts[prompt], people.models[side])) for side in (a, b)]
        if key not in styles and pair[0] and pair[1]:
            styles[key] = style_of(pair[0], pair[1])
    return styles


def _keyed() -> "ModelAnswerQuerySet":
    """Answers to questions with a key, over all banks."""
    return ModelAnswer.objects.exclude(question__answer="")


def _accuracy(models: Sequence[str]) -> dict[str, float]:
    """The share of questions with a key that each model answers rightly, over all banks."""
    accuracies = {}
    for model in models:
        grades = _keyed().filter(language_model__name=model).by_question()
        if grades:
            accuracies[model] = sum(grades.values()) / len(grades)
    return accuracies
