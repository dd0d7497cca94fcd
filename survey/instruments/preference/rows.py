"""Stored answers and verdicts as the arrays of the analysis."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .analysis.judgements import TIE, UNREADABLE, A, B, Judgements
from .labels import judgement_of
from .verdicts import names_of, verdicts_of

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import JudgeVerdict

FIRST = {"a": 1, "b": -1, "": 0}


def judgements_of(
    answers: Sequence["Assignment"],
    *,
    models: Sequence[str],
    scale: str = "",
    prompts: Sequence[str] = (),
    weights: np.ndarray | None = None,
) -> Judgements:
    """Those that could be judged, of n answers with their labels read; controls that show one reply twice are left out.

    Args:
        scale: the question; by default the first.
        prompts: ids of all prompts, which then have these places; by default those of the answers.
        weights: the design weight of each answer (n,); without it 1.
    """
    place = {model: index for index, model in enumerate(models)}
    numbers, rows = [], []
    for number, answer in enumerate(answers):
        judgement, comparison = judgement_of(answer), answer.slot.item.comparison
        if judgement is None or judgement.place is None or comparison.a_id == comparison.b_id:
            continue
        stated_place = judgement.places.get(scale) if scale else judgement.place
        if stated_place is None:
            continue
        numbers.append(number)
        rows.append(
            (
                comparison.question.external_id,
                comparison.question.task.name,
                place[comparison.a.language_model.name],
                place[comparison.b.language_model.name],
                answer.sitting.respondent_id,
                judgement.towards_a(stated_place),
                1 if judgement.a_first else -1,
            )
        )
    names = list(prompts) or sorted({row[0] for row in rows})
    of_prompt = {name: index for index, name in enumerate(names)}
    rating = np.array([row[5] for row in rows], dtype=np.float64)
    weight = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)[numbers]
    return Judgements(
        models=tuple(models),
        prompts=tuple(names),
        prompt=np.array([of_prompt[row[0]] for row in rows], dtype=np.int64),
        a=np.array([row[2] for row in rows], dtype=np.int64),
        b=np.array([row[3] for row in rows], dtype=np.int64),
        category=np.array([row[1] for row in rows], dtype=str),
        person=np.array([row[4] for row in rows], dtype=np.int64),
        outcome=np.where(rating > 0, A, B).astype(np.int64),
        value=rating,
        first=np.array([row[6] for row in rows], dtype=np.int64),
        probability=weight.min(initial=np.inf) / weight,  # Only the ratios count.
        chance=np.full(len(rows), np.nan),
    )


def judges_of(
    bank_id: int, models: Sequence[str], prompts: Sequence[str], categories: Sequence[str]
) -> dict[str, Judgements]:
    """The verdicts of each judge by its name in tables, on these prompts with their categories."""
    of_prompt = {name: index for index, name in enumerate(prompts)}
    verdicts = [verdict for verdict in verdicts_of(bank_id, models) if verdict.a.question.external_id in of_prompt]
    by_judge: dict[str, list[JudgeVerdict]] = {}
    for name, verdict in zip(names_of(verdicts), verdicts, strict=True):
        by_judge.setdefault(name, []).append(verdict)
    return {name: _arrays(own, models, of_prompt, prompts, categories) for name, own in sorted(by_judge.items())}


def _arrays(
    verdicts: Sequence["JudgeVerdict"],
    models: Sequence[str],
    of_prompt: dict[str, int],
    prompts: Sequence[str],
    categories: Sequence[str],
) -> Judgements:
    place = {model: index for index, model in enumerate(models)}
    a = np.array([place[verdict.a.language_model.name] for verdict in verdicts], dtype=np.int64)
    b = np.array([place[verdict.b.language_model.name] for verdict in verdicts], dtype=np.int64)
    turn = np.where(a < b, 1, -1)  # As items have it: A is the one that the study file names first.
    towards = np.array(
        [np.nan if verdict.towards_a is None else verdict.towards_a for verdict in verdicts], dtype=np.float64
    )
    chance = np.array(
        [np.nan if verdict.chance_a is None else verdict.chance_a for verdict in verdicts], dtype=np.float64
    )
    rating = np.nan_to_num(towards) * turn
    prompt = np.array([of_prompt[verdict.a.question.external_id] for verdict in verdicts], dtype=np.int64)
    outcome = np.where(rating > 0, A, np.where(rating < 0, B, TIE))
    return Judgements(
        models=tuple(models),
        prompts=tuple(prompts),
        prompt=prompt,
        a=np.minimum(a, b),
        b=np.maximum(a, b),
        category=np.asarray(categories, dtype=str)[prompt] if len(prompt) else np.empty(0, dtype=str),
        person=np.arange(len(verdicts)),
        outcome=np.where(np.isnan(towards), UNREADABLE, outcome).astype(np.int64),
        value=rating,
        first=np.array([FIRST[verdict.first] for verdict in verdicts], dtype=np.int64) * turn,
        probability=np.ones(len(verdicts)),
        chance=np.where(turn > 0, chance, 1 - chance),
    )
