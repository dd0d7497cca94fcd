"""What simulated people do: reading times with a known slope of surprisal, and mostly right answers.

They read by the surprisals that the first model of the study file gives to the passages, where its readings are stored;
elsewhere by made-up ones, a fixed function of the passage. So what is true of a simulated study is known. A word's own
surprisal costs `SLOPE` milliseconds per nat, that of the word before it `SPILL`.
"""

import hashlib
import random
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.screens import SimulatedPerson

if TYPE_CHECKING:
    from survey.models import Study

LEVEL, LETTER, SLOPE, SPILL = 260.0, 6.0, 12.0, 6.0  # ms, ms per letter, ms per nat, ms per nat of the word before
PERSON_SD, PASSAGE_SD, NOISE_SD = 50.0, 12.0, 80.0
RIGHT, CARELESS = 0.95, 0.05  # the chance of a right answer; the share of people who guess
MIN_MS, MAX_MS = 40, 20_000
AWAY = 0.01  # of the passages the window was left in the middle


@lru_cache(maxsize=4)
def _answers(study_id: int) -> dict[str, str]:
    """The right answers by question."""
    from survey.models import Study
    from survey.services.banks.eligibility import eligible_questions

    answers = {}
    for eligible_question in eligible_questions(Study.objects.get(pk=study_id)):
        answers[" ".join(str(eligible_question.extra.get("question", "")).split())] = str(
            eligible_question.extra.get("answer", "")
        )
    return answers


@lru_cache(maxsize=4)
def _read_by_model(study_id: int) -> dict[str, np.ndarray]:
    """The surprisals of each passage by the study's first model, by its text; empty where nothing is stored."""
    from survey.models import Study
    from survey.services.banks.eligibility import eligible_questions

    from .model_words import surprisals

    study = Study.objects.get(pk=study_id)
    questions = eligible_questions(study)
    model_surprisals = next(iter(surprisals(study, questions).values()), {})
    return {
        " ".join(question.plain.split()): model_surprisals[question.pk]
        for question in questions
        if question.pk in model_surprisals
    }


def made_up_surprisal(passage: str, words: int) -> np.ndarray:
    """Surprisals of a passage that no model has read: float64 (words,), nats, from 0.5 to 12."""
    seed = int.from_bytes(hashlib.sha256(passage.encode()).digest()[:8], "big")
    return np.clip(np.random.default_rng(seed).gamma(2.2, 1.7, size=words), 0.5, 12.0)


class ReadingPerson(SimulatedPerson):
    """`null`: surprisal costs no time."""

    def __init__(self, *, study: "Study", seed: int, null: bool = False) -> None:
        self.answers = _answers(study.pk)
        self.read = _read_by_model(study.pk)
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self.null = null
        self.pace = self.random.gauss(0, PERSON_SD)
        self.guesses = self.random.random() < CARELESS
        self.nonce = ""

    def opening(self, *, screen: str) -> str:
        if screen != "passage":
            return ""
        self.nonce = f"{self.random.getrandbits(128):032x}"
        return self.nonce

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        if screen == "passage":
            words = parts["passage"].split()
            return {
                "times": " ".join(map(str, self._times(words))),
                "nonce": self.nonce,
                "lead_ms": str(self.random.randint(300, 1500)),
                "means": "key",
                "marks": "focus" if self.random.random() < AWAY else "",
            }
        right = self.answers.get(" ".join(parts["question_text"].split()), "yes")
        if self.random.random() < (0.5 if self.guesses else RIGHT):
            return {"answer": right}
        return {"answer": "no" if right == "yes" else "yes"}

    def _times(self, words: list[str]) -> list[int]:
        passage = " ".join(words)
        known = self.read.get(passage)
        surprisal = made_up_surprisal(passage, len(words)) if known is None else np.nan_to_num(known, posinf=0.0)
        level = LEVEL + self.pace + PASSAGE_SD * random.Random(passage).gauss(0, 1)  # noqa: S311
        times = []
        for place, word in enumerate(words):
            time = level + LETTER * len(word) + self.random.gauss(0, NOISE_SD)
            if not self.null:
                time += SLOPE * surprisal[place] + (SPILL * surprisal[place - 1] if place else 0.0)
            times.append(round(min(max(time, MIN_MS), MAX_MS)))
        return times
