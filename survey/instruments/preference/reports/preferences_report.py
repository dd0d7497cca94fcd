"""The report `preferences`: the ranking by people and judges, agreement, and judges held against people."""

from collections.abc import Sequence

import numpy as np

from survey.contracts import instruments
from survey.contracts.reports import Argument, Findings, Given, Report
from survey.exceptions import HunchError, StateRefused
from survey.models import ModelAnswer, Study
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import counting, design_weights, study_answers
from survey.services.banks.eligibility import filtered_questions
from survey.services.base.seeds import derive
from survey.services.results.reports import CONDITION

from ..analysis.analysing import Analysis, Material, Settings, analyse
from ..analysis.bradley_terry import RIDGE, NoRanking
from ..analysis.judgements import Judgements
from ..analysis.style import Lengths, lengths, style_of
from ..instrument import Preference
from ..rows import judgements_of, judges_of
from .tables import ASSISTED, JUDGES, KAPPAS, RANKING, SIDES, WINS, findings

TEXTS_AT_ONCE = 500


def questions_of(study: Study) -> Sequence[str]:
    """What the study asks about two replies."""
    found: tuple[str, ...] = preference_of(study).options.questions
    return found


def preference_of(study: Study) -> Preference:
    """
    Raises:
        HunchError: the study is of another instrument.
    """
    found = instruments.of_study(study)
    if not isinstance(found, Preference):
        raise HunchError(f"{study.slug} is a study of {found.name}, and this report is about preferences")
    return found


class PreferencesReport(Report):
    arguments = (
        Argument("question", "which of the study's questions; the first unless said", choices=questions_of),
        Argument("ridge", "the penalty on strengths, from 0", default=f"{RIDGE:g}"),
        Argument("tie", "none or 4-5: the two middle places are ties; the study file's unless said"),
        Argument("side", "no: without the side bias", default="yes"),
        CONDITION,
    )
    exported = {
        "ranking": RANKING,
        "sides": SIDES,
        "wins": WINS,
        "kappas": KAPPAS,
        "judges": JUDGES,
        "assisted": ASSISTED,
    }

    def obstacle(self, study: Study) -> str:
        if not counting(study.main_stages()).exists():
            return f"{study.slug}: no judgement counts yet; open a stage and wait for people"
        return ""

    def make(self, study: Study, given: Given) -> Findings:
        found = analysis_of(study, given)
        question = given.one("question") or questions_of(study)[0]
        return findings(found, title=f"Preferences: {study.title}", lines=[f"Which reply is more {question}?"])


def analysis_of(study: Study, given: Given) -> Analysis:
    """
    Raises:
        HunchError: an argument cannot be used, or there is nothing to rank.
    """
    instrument = preference_of(study)
    options = instrument.options
    question = given.one("question") or options.questions[0]
    if question not in options.questions:
        raise HunchError(f"question: {question!r} is none of {', '.join(options.questions)}")
    tie, side = given.one("tie") or options.tie, given.one("side")
    if tie not in ("none", "4-5"):
        raise HunchError(f'tie: {tie!r} is neither "none" nor "4-5"')
    if side not in ("yes", "no"):
        raise HunchError(f'side: {side!r} is neither "yes" nor "no"')
    settings = Settings(
        each_answer=True, ridge=given.number("ridge", lowest=0, highest=1000), side=side == "yes", tie=tie
    )
    material = material_of(study, question=question, levels=read_condition(study, given["condition"]))
    if not material.people.n:
        raise StateRefused(f"{study.slug}: no judgement counts yet; open a stage and wait for people")
    try:
        return analyse(material, settings, rng=np.random.default_rng(derive(study.seed, "preferences")))
    except NoRanking as exc:
        raise StateRefused(f"{study.slug}: {exc}") from exc


def material_of(study: Study, *, question: str = "", levels: dict[str, str] | None = None) -> Material:
    """The study's counted judgements, with the verdicts of every judge on the same replies."""
    instrument = preference_of(study)
    models = instrument.options.models
    answers = study_answers(study, levels=levels or {})
    asked = instrument.usable(filtered_questions(study))
    prompts = [one.external_id for one in asked]
    there = {one.slot.item.comparison.question.external_id: one.slot.item.comparison.question for one in answers}
    asked += [one for name, one in there.items() if name not in set(prompts)]
    prompts = [one.external_id for one in asked]
    categories = [one.task.name for one in asked]
    people = judgements_of(answers, models=models, scale=question, prompts=prompts, weights=design_weights(answers))
    texts = _texts(study, models)
    longs = [lengths("prompts", [one.plain for one in asked])]
    for model in models:
        own = [text for (prompt, name), text in texts.items() if name == model]
        longs.append(lengths(f"replies of {model}", own))
    return Material(
        people=people,
        judges=judges_of(study.bank_id, models, prompts, categories),
        styles=_styles(people, texts),
        lengths=[one for one in longs if isinstance(one, Lengths)],
        accuracy=_accuracy(study, models),
    )


def _texts(study: Study, models: Sequence[str]) -> dict[tuple[str, str], str]:
    """Every reply of these models by its prompt's id and its model."""
    rows = ModelAnswer.objects.filter(question__bank=study.bank_id, language_model__name__in=models)
    found = rows.exclude(response="").values_list("question__external_id", "language_model__name", "response")
    return {(prompt, model): text for prompt, model, text in found.iterator(TEXTS_AT_ONCE)}


def _styles(people: Judgements, texts: dict[tuple[str, str], str]) -> dict[int, tuple[float, float, float]]:
    found = {}
    for key, prompt, a, b in zip(
        people.key.tolist(), people.prompt.tolist(), people.a.tolist(), people.b.tolist(), strict=True
    ):
        pair = [texts.get((people.prompts[prompt], people.models[one])) for one in (a, b)]
        if key not in found and pair[0] and pair[1]:
            found[key] = style_of(pair[0], pair[1])
    return found


def _accuracy(study: Study, models: Sequence[str]) -> dict[str, float]:
    """The share of questions with a key that each model answers rightly, over all banks."""
    found = {}
    for model in models:
        grades = ModelAnswer.objects.filter(language_model__name=model).exclude(question__answer="").by_question()
        if grades:
            found[model] = sum(grades.values()) / len(grades)
    return found
