"""What a simulated person answers on the same pages as a real one. They know only what a screen shows.

`bandit.simulation` knows the truth: how likely a pair is to change a belief. The truth depends on tasks and ids, which
no page shows, so this module finds the bank's questions by their texts.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import exp
from typing import TYPE_CHECKING

from bandit.simulation import BeliefTruth
from survey.contracts.screens import SimulatedPerson
from survey.services.banks.answer_checking import options_of

from .analysis.composing import after_each, log_odds, points
from .forms import KEEP

if TYPE_CHECKING:
    from survey.models import Question, Study


# Logits between pairs, a third of it not in any text: clear enough for a predictor to learn from a few hundred answers.
PAIR_SD = 2.0
# Now and then an answer differs by a step although the person learnt nothing: the noise that controls measure.
FALSE_CHANGE = 0.08
WOBBLE = 0.3
# How much of a first belief is what an aid next to the target says; the rest is what the person thinks anyway.
AID_WEIGHT = 0.5
# Answers to a practice example, which is in no bank, and texts for questions that ask for words.
EXAMPLE = 50
REASONS = "It seemed so to me. (This person is simulated.)"
GUESS = "I do not know"


@dataclass(frozen=True)
class KnownQuestion:
    index: int
    external_id: str
    task: str


@dataclass(frozen=True)
class SimulatedWorld:
    truth: BeliefTruth
    by_text: Mapping[str, KnownQuestion]


def readable(text: str) -> str:
    """A text as a page shows it: white space does not count."""
    return " ".join(text.split())


def world_of(questions: "Sequence[Question]", *, seed: int, null: bool) -> SimulatedWorld:
    truth = BeliefTruth.for_bank(
        tasks=[question.task.name for question in questions],
        domains=[question.task.domain or question.task.name for question in questions],
        seed=seed,
        pair_sd=PAIR_SD,
        null=null,
    )
    by_text: dict[str, KnownQuestion] = {}
    for index, question in enumerate(questions):
        # Some banks hold one text under several ids: take the first one.
        by_text.setdefault(readable(question.plain), KnownQuestion(index, question.external_id, question.task.name))
    return SimulatedWorld(truth=truth, by_text=by_text)


@lru_cache(maxsize=4)
def _world(study_id: int, created_at: datetime, null: bool) -> SimulatedWorld:
    """The simulated truth of a study. Its time of creation is in the key: a deleted study's number may come again."""
    from survey.models import Study
    from survey.services.banks.eligibility import eligible_questions

    study = Study.objects.get(pk=study_id)
    return world_of(eligible_questions(study), seed=study.seed, null=null)


def as_asked(value: int, *, stated: int, variant: str) -> dict[str, str]:
    """A second number, in the fields of the answer mode that the screen's variant names."""
    if "answer_mode=direction" in variant and value == stated:
        return {"direction": "same"}
    if "answer_mode=direction" in variant:
        return {"direction": "higher" if value > stated else "lower", "value": str(value)}
    if "answer_mode=keep_button" in variant and value == stated:
        return {"keep": KEEP}
    return {"value": str(value)}


# People who see several evidence questions: the log-odds of a change where a pair surely changes beliefs, the sd of
# people's readiness, and of the noise in a stated belief.
MAX_LOGITS = 2.0
READINESS_SD = 0.25
NOISE = 0.2


def with_aid(belief: int, aid: str, *, weight: float) -> int:
    """A belief in percentage points, moved towards what the aid ("7/10") says by this weight, 0 to 1."""
    right, _slash, asked = aid.partition("/")
    return round((1 - weight) * belief + weight * 100 * int(right) / int(asked)) if asked else belief


class BeliefPerson(SimulatedPerson):
    """`kind`: how several pieces of evidence are put together, a name of `analysis.composing.WAYS`."""

    def __init__(self, *, study: "Study", seed: int, null: bool, kind: str = "bayes") -> None:
        self.kind = kind
        self._start = 0.0  # Log-odds of the belief before any evidence of the item.
        self.world = _world(study.pk, study.created_at, null)
        self.person = self.world.truth.person(seed)
        self.aid_weight = 0.0 if null else AID_WEIGHT
        self._chance = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._asked: set[int] = set()

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        if screen == "explanation":
            return {"explanation": REASONS}
        if screen == "own_answer":
            return self._own_answer(parts)
        if screen == "prior":
            return {"value": str(self._prior(parts))}
        if "evidence_order=" in parts.get("variant", "") and "evidence" in parts:
            return as_asked(self._step(parts), stated=int(parts["prior"]), variant=parts["variant"])
        return as_asked(self._posterior(parts), stated=int(parts["prior"]), variant=parts.get("variant", ""))

    def _prior(self, parts: Mapping[str, str]) -> int:
        target = self.world.by_text.get(readable(parts["target"]))
        if target is None:
            return EXAMPLE
        prior = self.person.prior(target_id=target.external_id, target_task=target.task)
        prior = with_aid(prior, parts.get("aid", ""), weight=self.aid_weight)
        if target.index in self._asked:  # The item is asked a second time, and nobody remembers their answer exactly.
            prior = self._a_step_off(prior, chance=WOBBLE)
        self._asked.add(target.index)
        return prior

    def _posterior(self, parts: Mapping[str, str]) -> int:
        stated = int(parts["prior"])
        target = self.world.by_text.get(readable(parts["target"]))
        if "evidence" not in parts:
            return self._a_step_off(stated, chance=FALSE_CHANGE)
        evidence = self.world.by_text.get(readable(parts["evidence"]))
        if target is None or evidence is None:
            return stated
        outcome = int(parts["outcome"] == "correct")
        prior, posterior = self.person.answer(
            probability=self.world.truth.probability(
                evidence.index, target.index, outcome, evidence.external_id, target.external_id
            ),
            outcome=outcome,
            target_id=target.external_id,
            target_task=target.task,
            pair_id=f"{evidence.external_id}>{target.external_id}:{outcome}",
        )
        return min(100, max(0, stated + posterior - prior))

    def _step(self, parts: Mapping[str, str]) -> int:
        """The belief after one of several evidence questions, of which the page shows the earlier ones too."""
        target = readable(parts["target"])
        if "before_1" not in parts:
            self._start = float(log_odds(int(parts["prior"]), clip=0.5))
        seen = [(parts[f"before_{number}"], parts[f"before_{number}_outcome"]) for number in self._before(parts)]
        seen.append((parts["evidence"], parts["outcome"]))
        changes = [self._change(target, readable(text), outcome == "correct") for text, outcome in seen]
        felt = float(after_each(self.kind, self._start, changes)[-1]) + self._chance.gauss(0, NOISE)
        return min(100, max(0, 5 * round(float(points(felt)) / 5)))

    @staticmethod
    def _before(parts: Mapping[str, str]) -> list[str]:
        return [number for number in ("1", "2") if f"before_{number}" in parts]

    def _change(self, target: str, evidence: str, correct: bool) -> float:
        """What one evidence question changes alone, in log-odds."""
        sign = 1 if correct else -1
        about, shown_question = self.world.by_text.get(target), self.world.by_text.get(evidence)
        if about is None or shown_question is None:
            return sign * 0.5
        chance = self.world.truth.probability(
            shown_question.index, about.index, int(correct), shown_question.external_id, about.external_id
        )
        return sign * MAX_LOGITS * chance * exp(READINESS_SD * self.person.readiness / self.person.respondent_sd)

    def _own_answer(self, parts: Mapping[str, str]) -> dict[str, str]:
        options = list(options_of(parts["target"]))
        confidence = str(self._chance.randrange(0, 101, self.person.step))
        return {"answer": self._chance.choice(options) if options else GUESS, "confidence": confidence}

    def _a_step_off(self, value: int, *, chance: float) -> int:
        if self._chance.random() >= chance:
            return value
        step = self.person.step
        return value + step if value + step <= 100 and (self._chance.random() < 0.5 or value < step) else value - step
