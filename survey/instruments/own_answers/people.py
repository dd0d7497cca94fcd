"""What a simulated person answers: better people and easier questions give the right answer more often.

The key is on no page, so it is looked up by the text that the page shows.
"""

import hashlib
import math
import random
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from survey.contracts.screens import SimulatedPerson
from survey.services.banks.answer_checking import kind_of, options_of

if TYPE_CHECKING:
    from survey.models import Question, Study

# Logits: the spread of people and of questions, and how often an average person is right on an average question.
PERSON_SD, QUESTION_SD, EASE = 0.7, 1.2, 0.8
WRONG_WORD = {"yes": "no", "no": "yes", "valid": "invalid", "invalid": "valid", "true": "false", "false": "true"}


def readable(text: str) -> str:
    """A text as a page shows it: white space does not count."""
    return " ".join(text.split())


@lru_cache(maxsize=4)
def _questions(study_id: int) -> "dict[str, Question]":
    from survey.models import Study
    from survey.services.banks.eligibility import eligible_questions

    questions: dict[str, Question] = {}
    for question in eligible_questions(Study.objects.get(pk=study_id)):
        questions.setdefault(readable(question.plain), question)
    return questions


def ease_of(text: str) -> float:
    """How easy a question is, in logits: the same for everybody."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return random.Random(seed).gauss(EASE, QUESTION_SD)  # noqa: S311 - reproducible on purpose


class Solver(SimulatedPerson):
    def __init__(self, *, study: "Study", seed: int, confidence: bool) -> None:
        self.questions = _questions(study.pk)
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self.ability = self.random.gauss(0, PERSON_SD)
        self.confidence = confidence

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        text = readable(parts["question"])
        question = self.questions[text]
        chance = 1 / (1 + math.exp(-(self.ability + ease_of(text))))
        right = self.random.random() < chance
        fields = {"answer": self._key(question) if right else self._mistake(question)}
        if self.confidence:
            fields["confidence"] = str(min(100, max(0, round(100 * chance + self.random.gauss(5, 10)))))
        return fields

    @staticmethod
    def _key(question: "Question") -> str:
        key = question.answer.strip()
        return key.strip("().") if kind_of(key) == "letter" else key

    def _mistake(self, question: "Question") -> str:
        key = self._key(question)
        others = [letter for letter in options_of(question.text) if letter != key]
        if others:
            return self.random.choice(others)
        kind = kind_of(question.answer)
        if kind == "number":
            return str(self.random.randint(1001, 9999))
        return WRONG_WORD.get(key.casefold(), "I do not know")
