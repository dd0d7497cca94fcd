"""Simulated people like the longer reply, more or less."""

import random
from collections.abc import Mapping, Sequence

from survey.contracts.screens import SimulatedPerson


class Judge(SimulatedPerson):
    def __init__(self, *, scales: Sequence[str], seed: int) -> None:
        self.random = random.Random(seed)
        self.scales = scales

    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        leaning = (len(parts["reply_2"]) - len(parts["reply_1"])) / 10
        return {scale: str(min(8, max(1, round(4.5 + leaning + self.random.gauss(0, 1))))) for scale in self.scales}
