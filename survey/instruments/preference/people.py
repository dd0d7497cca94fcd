"""Simulated people with known strengths of models and a known side bias. They prefer by Bradley and Terry's model.

Which model wrote a reply stands on no page, so it is looked up by the text that the page shows.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from survey.contracts.screens import SimulatedPerson

if TYPE_CHECKING:
    from survey.models import Study

SPAN = 2.0
"""Logits between the strongest and the weakest model."""
GAMMA = 0.3
"""What being shown first adds."""
STEPS = (0.7, 1.6, 2.8)
"""From how many logits on a preference is a place farther from the middle."""
CANNOT = 0.01
REASON = "It answers what was asked. (This person is simulated.)"


@dataclass(frozen=True)
class Truth:
    """The strengths in logits, with mean 0, and the side bias."""

    theta: Mapping[str, float]
    gamma: float


def truth_of(models: Sequence[str], *, null: bool = False) -> Truth:
    """The first model of the study file is the strongest, and the others follow evenly. `null`: all are alike."""
    last = len(models) - 1
    strengths = {model: 0.0 if null else SPAN * (0.5 - place / last) for place, model in enumerate(models)}
    return Truth(strengths, GAMMA)


def readable(text: str) -> str:
    """A text as a page shows it: white space does not count."""
    return " ".join(text.split())


@lru_cache(maxsize=4)
def _authors(bank: int, models: tuple[str, ...], characters: int, _study: str) -> dict[str, str]:
    """Who wrote a reply, by the text as it is shown."""
    from survey.models import ModelAnswer

    from .screens import cut

    rows = ModelAnswer.objects.filter(question__bank=bank, language_model__name__in=models)
    replies = rows.values_list("response", "language_model__name")
    return {readable(cut(response, characters)): model for response, model in replies}


class Judge(SimulatedPerson):
    def __init__(
        self, *, study: "Study", models: Sequence[str], scales: Sequence[str], characters: int, seed: int, null: bool
    ) -> None:
        self.authors = _authors(study.bank_id, tuple(models), characters, f"{study.pk} {study.slug}")
        self.truth = truth_of(models, null=null)
        self.scales = scales
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        first, second = (
            self.truth.theta.get(self.authors.get(readable(parts[part]), ""), 0.0) for part in ("reply_1", "reply_2")
        )
        if self.random.random() < CANNOT:
            return {"cannot_judge": "on"}
        answers = {}
        for scale in self.scales:
            chance = min(max(self.random.random(), 1e-9), 1 - 1e-9)
            leaning = first - second + self.truth.gamma + math.log(chance / (1 - chance))
            far = sum(abs(leaning) > step for step in STEPS)
            answers[scale] = str(4 - far if leaning > 0 else 5 + far)
        return {**answers, "reason": REASON}
