"""What simulated people say: odds from a distribution of tokens that is known, with noise, as the nearest ratio.

A simulated person holds the generator's distribution with each logarithm moved by a fixed amount of the context and the
token: so h(x) / h(y) of every comparison is known. They cannot tell which token is true.
"""

import hashlib
import math
import random
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from survey.contracts.screens import SimulatedPerson

from .analysis.rewards import UNSURE
from .options import ComparisonOptions

if TYPE_CHECKING:
    from survey.models import Study

MOVED, PERSON_SD, ANSWER_SD = 0.8, 0.1, 0.2


@lru_cache(maxsize=4)
def _contexts(study_id: int) -> dict[str, dict[str, float]]:
    """ln h without its constant, by context (blanks as one space) and token."""
    from survey.contracts import instruments
    from survey.models import Study
    from survey.services.banks.eligibility import eligible_questions

    from .preparing import contexts_of

    study = Study.objects.get(pk=study_id)
    options: ComparisonOptions = instruments.of_study(study).options
    questions = eligible_questions(study)
    held: dict[str, dict[str, float]] = {}
    text_of = {question.pk: question.plain for question in questions}
    for key, contexts in contexts_of(options, questions).items():
        for prepared in contexts:
            context = text_of[key][: prepared.end]
            own = held.setdefault(" ".join(context.split()), {})
            for text, log_g in (
                (prepared.true_text, prepared.log_g_true),
                *((other.text, other.log_g) for other in prepared.others),
            ):
                own[text] = log_held(context, text, log_g)
    return held


def log_held(context: str, token: str, log_g: float) -> float:
    """ln h(token | context) of simulated people, but for a constant of the context."""
    seed = int.from_bytes(hashlib.sha256(f"{context}\n{token}".encode()).digest()[:8], "big")
    return log_g + MOVED * random.Random(seed).gauss(0, 1)  # noqa: S311 - reproducible on purpose


class ComparingPerson(SimulatedPerson):
    """`null`: whatever is shown, this person does not know."""

    def __init__(self, *, study: "Study", ratios: tuple[int, ...], seed: int, null: bool = False) -> None:
        self.null, self.ratios = null, ratios
        self.contexts = _contexts(study.pk)
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self.ability = self.random.gauss(0, PERSON_SD)

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        if "left" not in parts:
            return {}
        known = self.contexts.get(" ".join(parts["context"].split()), {})
        left, right = (known.get(parts[side]) for side in ("left", "right"))
        if self.null or left is None or right is None:
            return {"percent_left": str(UNSURE)}
        odds = left - right + self.ability + self.random.gauss(0, ANSWER_SD)
        chance = 100 / (1 + math.exp(-odds))
        return {"percent_left": str(min(self.ratios, key=lambda ratio: abs(ratio - chance)))}
