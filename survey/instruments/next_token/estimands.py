"""What guesses estimate: right guesses over guesses, in all and by what the token is."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from survey.contracts.instruments import Estimates
from survey.contracts.measures import Estimands, Measure
from survey.figures.words import integer

from .analysis.guesses import KINDS, kind_of
from .screens import guesses_of

if TYPE_CHECKING:
    from survey.models import Assignment, Item

UNIT = "share of guesses"
SENTENCES = {  # by kind of token
    "begins a word": "where a word begins, {} of guesses are right",
    "goes on": "where a word goes on, {} of guesses are right",
}


class NextTokenEstimates(Estimates):
    units: ClassVar[Mapping[str, str]] = {"right": UNIT}

    def outcomes(self, assignments: Sequence["Assignment"]) -> dict[str, np.ndarray]:
        """The share of a run's guesses that are right; float64 (n,)."""
        shares = [[guess.right for guess in guesses_of(assignment)] for assignment in assignments]
        return {"right": np.array([np.mean(share) if share else 0.0 for share in shares], dtype=np.float64)}

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        return f"all {integer(universe_size)} runs in the bank's {integer(n_questions)} passages"

    def estimands(self, assignments: Sequence["Assignment"], *, thresholds: Sequence[int] = ()) -> Estimands:
        """Ratios: right guesses over guesses, of all tokens and of each kind of token."""
        n = len(assignments)
        right, asked = {kind: np.zeros(n) for kind in KINDS}, {kind: np.zeros(n) for kind in KINDS}
        for row, assignment in enumerate(assignments):
            run = assignment.slot.item.token_run
            tokens = run.run_tokens
            for guess in guesses_of(assignment):
                kind = kind_of(run.text_of(tokens[guess.place]), first=guess.position == 0)
                right[kind][row] += guess.right
                asked[kind][row] += 1
        measures = [
            Measure(
                *("right", "right guesses", UNIT),
                np.sum([*right.values()], axis=0),
                per=np.sum([*asked.values()], axis=0),
                sentence="{} of guesses are right",
            )
        ]
        for kind in KINDS:
            name = f"right_{kind.replace(' ', '_')}"
            measures.append(
                Measure(
                    *(name, f"right guesses, {kind}", UNIT),
                    *(right[kind], asked[kind] > 0, asked[kind]),
                    sentence=SENTENCES.get(kind, ""),
                )
            )
        return Estimands(measures)

    def divisions(self, items: Sequence["Item"]) -> dict[str, np.ndarray]:
        runs = [item.token_run for item in items]
        return {
            "source": np.array([run.question.task.name for run in runs], dtype=str),
            "start": np.array([f"from token {run.start}" for run in runs], dtype=str),
        }
