"""What simulated people write: the sentence's own word with a chance that depends on word and person, else another.

The words are a fixed function of the sentence and the position, so that what is true of a simulated study is known.
The next word is on no page, so it is looked up by the fragment that the page shows.
"""

import math
import random
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from survey.contracts.screens import SimulatedPerson, normal_of

from .analysis.normalising import stripped
from .labels import is_several

if TYPE_CHECKING:
    from survey.models import Study

LEVEL, SENTENCE_SD, POSITION_SD, PERSON_SD = -0.8, 0.6, 1.4, 0.5
OTHERS = ("the", "and", "very", "thing", "time", "people", "good", "little", "again", "away", "home", "it")
ALIKE = 0.35  # the chance of every word under the null
SEVERAL = 0.02  # of the first tries have two words
SLIP = 0.02  # of the own words have a slip


@lru_cache(maxsize=4)
def _sentences(study_id: int) -> dict[str, tuple[str, ...]]:
    """The next words by fragment: sentences may begin alike."""
    from survey.models import Study
    from survey.services.banks.eligibility import eligible_questions

    sentences: dict[str, list[str]] = {}
    for question in eligible_questions(Study.objects.get(pk=study_id)):
        words = question.plain.split()
        for place, word in enumerate(words):
            sentences.setdefault(" ".join(words[:place]), []).append(word)
    return {fragment: tuple(words) for fragment, words in sentences.items()}


def chance_of(fragment: str, word: str, ability: float = 0.0) -> float:
    """How likely a person writes this word after this fragment, which is that of a sentence with this word."""
    beginning = " ".join(fragment.split()[:1])
    logit = LEVEL + SENTENCE_SD * normal_of("sentence", beginning) + POSITION_SD * normal_of("word", fragment, word)
    return 1 / (1 + math.exp(-(logit + PERSON_SD * ability)))


class ClozePerson(SimulatedPerson):
    """`null`: every word is as likely as every other, whatever the sentence."""

    def __init__(self, *, study: "Study", seed: int, null: bool = False) -> None:
        self.null = null
        self.sentences = _sentences(study.pk)
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self.ability = self.random.gauss(0, 1)

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        fragment = " ".join(parts["fragment"].split())
        word = self._word(fragment)
        if screen == "word" and not is_several(word) and self.random.random() < SEVERAL:
            return {"word": f"{word} indeed"}
        return {"word": word}

    def _word(self, fragment: str) -> str:
        known = self.sentences.get(fragment, ())
        if known:
            word = stripped(self.random.choice(known))
            chance = ALIKE if self.null else chance_of(fragment, word, self.ability)
            if self.random.random() < chance:
                slips = len(word) > 4 and self.random.random() < SLIP
                return word[:2] + word[3:] if slips else word
        # The other words are likelier the earlier they stand, in an order of the fragment's own.
        order = random.Random(fragment).sample(OTHERS, len(OTHERS))  # noqa: S311 - reproducible on purpose
        return self.random.choices(order, weights=[0.7**place for place in range(len(order))])[0]
