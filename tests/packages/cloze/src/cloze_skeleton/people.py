"""Simulated people go on as the sentence does, every second time."""

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

from survey.contracts.screens import SimulatedPerson
from survey.services.banks.eligibility import eligible_questions

if TYPE_CHECKING:
    from survey.models import Study

OTHERS = ("thing", "quietly", "of")


class Reader(SimulatedPerson):
    def __init__(self, *, study: "Study", seed: int) -> None:
        self.random = random.Random(seed)
        self.sentences = [question.plain.split() for question in eligible_questions(study)]

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        shown = parts["fragment"].split()
        next_words = [words[len(shown)] for words in self.sentences if words[: len(shown)] == shown != words]
        if next_words and self.random.random() < 0.5:
            return {"word": self.random.choice(next_words)}
        return {"word": self.random.choice(OTHERS)}
