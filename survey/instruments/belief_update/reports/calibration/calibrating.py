"""Are people calibrated about people and about models: a belief study's posteriors against what was really answered.

Answerers are language models, and the people of a study in which they answer questions themselves. Both answer
questions of the same bank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from survey.exceptions import HunchError, NotFound, StateRefused
from survey.instruments.own_answers.instrument import OwnAnswers
from survey.instruments.own_answers.rows import answer_rows
from survey.models import Assignment, LanguageModel, ModelAnswer, Study
from survey.services.answers.blinding import shown_conditions
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import design_weights, study_answers
from survey.services.banks.eligibility import eligible_questions
from survey.services.base.seeds import generator
from survey.services.results.people_and_models.unreadable_replies import notes_on_unreadable, unreadable_by_model

from ..rows import belief_rows, belief_update_of
from .expectations import StatedExpectations, expectations
from .figure7 import BeliefsAboutOthers, CalibrationLine, RealAnswers, calibration, calibration_table

PEOPLE, MODELS = "people", "language models"


@dataclass(frozen=True)
class HumanCalibration:
    """The lines of figure 7, how much the same people expected what happened, how many beliefs and people these come
    from, how many replies of the language models could not be read, by the name of their line, and notes for the
    reader."""

    lines: tuple[CalibrationLine, ...]
    expectations: tuple[StatedExpectations, ...]
    beliefs: int
    people: int
    unreadable: Mapping[str, int]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values; None where a figure is not defined."""
        return {
            "beliefs": self.beliefs,
            "people": self.people,
            "points": calibration_table(self.lines, self.unreadable).records(),
            "notes": list(self.notes),
        }


def people_studies(study: Study) -> list[Study]:
    """Studies in which people answered questions of the same bank themselves."""
    others = Study.objects.real().filter(bank=study.bank_id).exclude(pk=study.pk).order_by("slug")
    return list(others.filter(instrument=OwnAnswers.name))


def human_calibration(
    study: Study,
    *,
    people_study: Study | None,
    models: Sequence[str] = (),
    condition: Sequence[str] = (),
    answered: Sequence[Assignment] | None = None,
) -> HumanCalibration:
    """
    Args:
        people_study: None: language models alone.
        models: names of language models; empty means all that have answered questions of the study.
        condition: FACTOR=LEVEL, any number of times, to take only the beliefs under these levels.
        answered: the study's counted answers under these levels, if they have been read already.

    Raises:
        StateRefused: a study has another instrument, other questions or no answers; says what to do.
        NotFound: there is no such language model.
        HunchError: no such condition, or nobody answered both questions of any pair.
    """
    if people_study is not None and study.bank_id != people_study.bank_id:
        raise StateRefused(
            f"{people_study.slug} asks questions of {people_study.bank}, {study.slug} of {study.bank}: nobody answered "
            "the questions that beliefs are about; take studies on the same version of a bank"
        )
    notes: list[str] = []
    beliefs = _beliefs(study, condition, notes, answered)
    people = None if people_study is None else _people(people_study)
    chosen = _models(study, models)
    if people is None and not chosen:
        raise StateRefused(f"{study.slug}: neither people nor language models have answered questions of {study.bank}")
    answerers = [] if people is None else [(PEOPLE, people)]
    unreadable: dict[str, int] = {}
    if chosen:
        real, unreadable[MODELS] = _answers_of(study, chosen, notes)
        answerers.append((MODELS, real))
    try:
        lines = [calibration(name, beliefs, answers) for name, answers in answerers]
        expected = [
            expectations(name, beliefs, answers, rng=generator(study.seed, "perplexity of expectations", name))
            for name, answers in answerers
        ]
    except ValueError as exc:
        named = study.slug if people_study is None else f"{study.slug} and {people_study.slug}"
        raise HunchError(f"{named}: {exc}") from exc
    if not chosen:
        notes.append(
            f"no language model has answered questions of {study.bank}; `hunch collect_answers` or `hunch "
            "import_answers` brings answers"
        )
    if len(chosen) == 1:
        notes.append(f"one language model: the standard errors hold for {chosen[0].name}, not for models at large")
    return HumanCalibration(
        lines=tuple(lines),
        expectations=tuple(expected),
        beliefs=len(beliefs.posterior),
        people=0 if people is None else len(np.unique(people.answerer)),
        unreadable=unreadable,
        notes=tuple(notes),
    )


def _beliefs(
    study: Study, condition: Sequence[str], notes: list[str], answered: Sequence[Assignment] | None
) -> BeliefsAboutOthers:
    belief_update_of(study)
    levels = read_condition(study, condition)
    answers = study_answers(study, levels=levels) if answered is None else answered
    if others := [
        shown_condition.factor for shown_condition in shown_conditions(study) if shown_condition.factor not in levels
    ]:
        notes.append(f"beliefs of all levels of {', '.join(others)} together; --condition FACTOR=LEVEL takes one")
    rows = belief_rows(answers)
    return BeliefsAboutOthers(
        posterior=rows.posterior,
        respondent=np.array([answer.sitting.respondent_id for answer in answers], dtype=np.int64),
        evidence=rows.evidence,
        outcome=rows.outcome,
        target=rows.target,
        weight=design_weights(answers),
    )


def _people(study: Study) -> RealAnswers:
    if study.instrument != OwnAnswers.name:
        raise StateRefused(
            f"{study.slug}: {study.instrument} does not have people answer questions themselves; take a study of the "
            f"kind {OwnAnswers.name}"
        )
    answers = study_answers(study)
    rows = answer_rows(answers)
    who = np.array([answer.sitting.respondent_id for answer in answers], dtype=np.int64)
    # In a repeated measurement a person can get a question again: use the first answer.
    first = np.sort(np.unique(np.stack([who, rows.question]), axis=1, return_index=True)[1])
    return RealAnswers(answerer=who[first], question=rows.question[first], correct=rows.correct[first].astype(np.int64))


def _models(study: Study, names: Sequence[str]) -> list[LanguageModel]:
    known = list(LanguageModel.objects.filter(answers__question__bank=study.bank_id).distinct().order_by("name"))
    strangers = [name for name in names if name not in {model.name for model in known}]
    if strangers:
        there_are = ", ".join(model.name for model in known) or "none"
        raise NotFound(
            f"no language model called {', '.join(strangers)} has answered {study.bank}; there are: {there_are}"
        )
    return [model for model in known if not names or model.name in names]


def _answers_of(study: Study, models: Sequence[LanguageModel], notes: list[str]) -> tuple[RealAnswers, int]:
    """What the models answered, and how many of their replies could not be read."""
    asked = {question.pk for question in eligible_questions(study)}
    answerer: list[int] = []
    question: list[int] = []
    correct: list[float] = []
    for model in models:
        stored = ModelAnswer.objects.filter(language_model=model, question__bank=study.bank_id).by_question()
        stored_answers = {key: stored[key] for key in sorted(asked & stored.keys())}
        answerer += [model.pk] * len(stored_answers)
        question += stored_answers
        correct += stored_answers.values()
        if missing := len(asked) - len(stored_answers):
            notes.append(f"{model.name}: no answer to {missing} of the study's {len(asked)} questions")
    answers = ModelAnswer.objects.filter(language_model__in=models, question__bank=study.bank_id)
    counts = unreadable_by_model(answers, questions=asked)
    notes += notes_on_unreadable(counts)
    real = RealAnswers(
        answerer=np.array(answerer, dtype=np.int64),
        question=np.array(question, dtype=np.int64),
        correct=np.array(correct, dtype=np.float64),
    )
    return real, sum(count.replies for count in counts.values())
