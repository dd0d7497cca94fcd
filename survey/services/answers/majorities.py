"""Majority labels: of each item of a test stage the label that more than half of its counted answers have.

They are fixed by the frozen answers and the study file's `ties`. Freezing writes their counts and a hash into the
manifest. A withdrawal after that takes its answer out of them, as out of everything else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bandit
from survey.contracts import instruments
from survey.models import Assignment, Item, Slot, Stage
from survey.services.answers.counting import frozen_answers
from survey.services.base.hashing import digest
from survey.study_file import DEFAULT_TIES

# By the study file's word for a tie: the label, and what people read.
TIES: Mapping[str, int | None] = {"label_0": 0, "label_1": 1, "left_out": None}
IN_WORDS: Mapping[str, str] = {
    "label_0": "a tie counts as label 0",
    "label_1": "a tie counts as label 1",
    "left_out": "items with a tie have no label",
}


@dataclass(frozen=True, eq=False)
class ItemMajority:
    """An item with `answered` counted answers, `ones` of them with label 1. `label` is None where a tie leaves it
    out. `answer` is one of its answers, from which predictors read what the item is."""

    answer: Assignment
    answered: int
    ones: int
    tied: bool
    label: int | None

    @property
    def item(self) -> Item:
        return self.answer.slot.item

    @property
    def stratum(self) -> str:
        return self.answer.slot.stratum.name if self.answer.slot.stratum else ""

    def as_facts(self) -> list[Any]:
        return [self.item.key, self.answered, self.ones, self.label]


def has_majorities(stage: Stage) -> bool:
    """Whether the stage is a test stage of an instrument that has a label."""
    return stage.config.design.kind == "test_set" and instruments.of_study(stage.study).learning is not None


def ties_of(stage: Stage) -> str:
    return stage.config.ties or DEFAULT_TIES


def majorities_of(stage: Stage) -> list[ItemMajority]:
    """The majority labels of a frozen test stage, in the order of its plan; none for any other stage."""
    if stage.state != Stage.State.FROZEN or not has_majorities(stage):
        return []
    return majorities_among(frozen_answers(stage), stage)


def majorities_among(answers: Sequence[Assignment], stage: Stage) -> list[ItemMajority]:
    """The majorities of these answers to sampled slots of the stage, items in the order of their first answer.

    Labels between 0 and 1, as some instruments have them, count as 1 above a half; exactly a half counts for neither
    side, and such an answer is left out.
    """
    learning = instruments.learning_of(instruments.of_study(stage.study))
    sampled = [answer for answer in answers if answer.slot.role == Slot.Role.SAMPLED]
    fit = learning.learnable(sampled)
    judged = [answer for answer, is_fit in zip(sampled, fit.tolist(), strict=True) if is_fit]
    if not judged:
        return []
    _inputs, graded = learning.checked_examples(judged)
    decided = np.asarray(graded) != 0.5
    decided_answers = [answer for answer, is_decided in zip(judged, decided.tolist(), strict=True) if is_decided]
    if not decided_answers:
        return []
    items = np.array([answer.slot.item_id for answer in decided_answers], dtype=np.int64)
    majority_labels = bandit.majority_labels(values=(np.asarray(graded)[decided] > 0.5).astype(float), item=items)
    first: dict[int, Assignment] = {}
    for answer in decided_answers:
        first.setdefault(answer.slot.item_id, answer)
    of_tie = TIES[ties_of(stage)]
    made = {
        int(item): ItemMajority(
            answer=first[int(item)],
            answered=int(answered),
            ones=int(ones),
            tied=bool(tied),
            label=of_tie if tied else int(label),
        )
        for item, answered, ones, tied, label in zip(
            majority_labels.item,
            majority_labels.answered,
            majority_labels.changed,
            majority_labels.tied,
            majority_labels.label,
            strict=True,
        )
    }
    return [made[item] for item in first]


def facts_of(majorities: Sequence[ItemMajority], stage: Stage) -> dict[str, Any]:
    """What the manifest says of them."""
    labels = [majority.label for majority in majorities]
    return {
        "items": len(majorities),
        "label_1": labels.count(1),
        "label_0": labels.count(0),
        "left_out": labels.count(None),
        "tied": sum(majority.tied for majority in majorities),
        "ties": ties_of(stage),
        "sha256": digest([majority.as_facts() for majority in majorities]),
    }
