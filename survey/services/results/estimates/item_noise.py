"""What two people's answers to one item say: how far items differ, and what predictors of items can reach at most."""

from collections.abc import Mapping, Sequence

import numpy as np

import bandit
from bandit import AucLimit, DesignError, Estimate
from survey.models import Assignment

from .study_figures import StagePart

AnswersWithValues = Sequence[tuple[Assignment, float]]


def stage_weights(answers: Sequence[Assignment]) -> np.ndarray:
    """How many items each answer's item stands for, (n,), so that the answers of each part of a stage together count as
    many as they are: each part stands for all items once."""
    weights = np.array([answer.slot.design_weight for answer in answers], dtype=np.float64)
    _, part = np.unique([f"{answer.slot.stage_id} {answer.slot.role}" for answer in answers], return_inverse=True)
    rescaled: np.ndarray = weights * (np.bincount(part) / np.bincount(part, weights=weights))[part]
    return rescaled


def auc_limit(
    parts: Sequence[tuple[StagePart, Sequence[Assignment], np.ndarray]],
    again: AnswersWithValues,
    *,
    share: Estimate | None,
    title: str,
) -> tuple[AucLimit | None, str]:
    """The upper limit of the AUC from items that several people answered, or why there is none.

    Args:
        parts: with the answers of each, and 0 or 1 for each of them.
        again: the answers of other people to items of the same stage, with their 0 or 1.
        share: the first figure over all stages; None if it is no share, or there is none.
        title: the first figure's.
    """
    if share is None:
        return None, f"there is no share to judge predictors by ({title})"
    of_item: dict[tuple[int, int], list[tuple[Assignment, float]]] = {}
    for answer, value in again:
        of_item.setdefault((answer.slot.stage.index, answer.slot.item_id), []).append((answer, value))
    estimates: list[Estimate | None] = []
    reasons = []
    for part, answers, values in parts:
        estimate, reason = _item_variance(part, list(zip(answers, values, strict=True)), of_item, share.value)
        estimates.append(estimate)
        if reason:
            reasons.append(f"{part.title}: {reason}")
    weights = [
        part.plan_weight if estimate is not None else 0.0
        for (part, _answers, _values), estimate in zip(parts, estimates, strict=True)
    ]
    if not any(weights):
        return None, "; ".join(reasons)
    between = bandit.combine_stages(estimates=estimates, plan_weights=weights).estimate
    try:
        return bandit.auc_limit(between_items=between, base_rate=share), ""
    except DesignError as exc:
        return None, str(exc).partition(": ")[2]


def _item_variance(
    part: StagePart, answered: AnswersWithValues, again: Mapping[tuple[int, int], AnswersWithValues], mean: float
) -> tuple[Estimate | None, str]:
    """The variance between items of one part, from its answers and those of other people to its items."""
    if part.obstacle:
        return None, part.obstacle
    values, items, people, strata, weights = [], [], [], [], []
    asked: dict[int, tuple[int, float]] = {}
    for (answer, value), stratum, chance in zip(answered, part.stratum, part.probability, strict=True):
        asked[answer.slot.item_id] = (int(stratum), 1 / float(chance))
        values.append(value)
        items.append(answer.slot.item_id)
        people.append(answer.sitting.respondent_id)
    for item in asked:
        for answer, value in again.get((part.stage, item), ()):
            values.append(value)
            items.append(item)
            people.append(answer.sitting.respondent_id)
    for item in items:
        stratum, weight = asked[item]
        strata.append(stratum)
        weights.append(weight)
    if len(set(zip(items, people, strict=True))) == len(asked):
        return None, "no item was answered by two people"
    try:
        variance = bandit.item_variance(
            values=values,
            item=items,
            cluster=people,
            stratum=strata,
            sizes=part.sizes,
            mean=mean,
            weight=weights if part.is_unequal else None,
        )
    except DesignError:
        return None, f"fewer than {bandit.MIN_ITEMS} items of a stratum were answered by two people"
    return variance, ""
