"""A simulated person guesses words from a list of their own."""

import random
from collections.abc import Mapping

from survey.contracts.screens import SimulatedPerson

from .screens import FEEDBACK

WORDS = ("what", "is", "the", "river", "sum", "of")


class Guesser(SimulatedPerson):
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        return {} if screen == FEEDBACK else {"guess": " ".join(self.random.sample(WORDS, 2))}
