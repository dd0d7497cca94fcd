"""What simulated people guess: the true token with a chance that depends on the place and the person, else another.

They are right less often than the trigram of the demonstration, as people are less often right than language models
(Shlegeris and others, "Language models are better than humans at next-token prediction", 2022). The chances are a fixed
function of the text, so that what is true of a simulated study is known. The next token is on no page, so it is looked
up by the text that the page shows.
"""

import math
import random
import string
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from survey.contracts.screens import SimulatedPerson, normal_of
from survey.services.banks.passages import Vocabulary, registered, texts_of, tokens_of, vocabulary_of
from survey.services.banks.readings import text_hash

if TYPE_CHECKING:
    from survey.models import Study

LEVEL, PLACE_SD, PERSON_SD = -5.2, 2.5, 0.5  # 5 % right, where the trigram of the demonstration has 10 %
ALIKE = 0.05  # the chance of every token under the null
OTHERS = 6  # wrong tokens that people write at a place


@lru_cache(maxsize=4)
def _next_tokens(study_id: int, source: str) -> dict[str, tuple[str, ...]]:
    """The true tokens by the text before them, blanks as one space: passages may begin alike."""
    from survey.models import Study
    from survey.services.banks.eligibility import eligible_questions

    questions = eligible_questions(Study.objects.get(pk=study_id))
    row = registered(source)
    cut = tokens_of(row, texts_of(questions))
    words = vocabulary_of(row)
    next_tokens: dict[str, list[str]] = {}
    for question in questions:
        text = question.plain
        for token in cut.get(text_hash(text), ()):
            if words.id_of(text[token["start"] : token["end"]]) is not None:
                next_tokens.setdefault(_as_shown(text[: token["start"]]), []).append(
                    text[token["start"] : token["end"]]
                )
    return {before: tuple(tokens) for before, tokens in next_tokens.items()}


def _as_shown(text: str) -> str:
    return " ".join(text.split())


def chance_of(before: str, token: str, ability: float = 0.0) -> float:
    """How likely a person guesses this token after this text, which is followed by it."""
    logit = LEVEL + PLACE_SD * normal_of("token", _as_shown(before), token) + PERSON_SD * ability
    return 1 / (1 + math.exp(-logit))


class NextTokenPerson(SimulatedPerson):
    """`null`: every token is as likely guessed as every other, by everybody."""

    def __init__(self, *, study: "Study", tokenizer: str, seed: int, null: bool = False) -> None:
        self.null = null
        self.tokens = _next_tokens(study.pk, tokenizer)
        self.words: Vocabulary = vocabulary_of(registered(tokenizer))
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self.ability = self.random.gauss(0, 1)

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        if not screen.startswith("guess"):
            return {}
        before = _as_shown(parts.get("text", "") + parts.get("new", ""))
        tried = parts.get("tried", "").casefold()
        known = [token for token in self.tokens.get(before, ()) if token.casefold() not in tried]
        truth = self.random.choice(known) if known else ""
        chance = ALIKE if self.null else chance_of(before, truth, self.ability)
        others = [other for other in self._others(before) if other != truth and other.casefold() not in tried]
        # In Shannon's game everything that they think of was wrong at some time.
        if truth and (not others or self.random.random() < chance):
            return {"guess": truth}
        # At each place people have the same few other tokens in mind.
        others = others or [letter for letter in string.ascii_lowercase if letter not in tried]
        return {"guess": self.random.choices(others, weights=[0.6**place for place in range(len(others))])[0]}

    def _others(self, before: str) -> list[str]:
        common = self.words.commonest(60)
        return random.Random(before).sample(common, min(OTHERS + 1, len(common)))  # noqa: S311 - reproducible on purpose
