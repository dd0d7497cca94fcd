"""How hard a target question is, for people and for language models: numbers next to the texts of a pair. Needs numpy.

The paper's task is text alone. A predictor that reads these columns does another task, so that it is never ranked
among those that read texts.

- `people`: the mean chance of a right answer that people stated before they saw evidence (the prior). A predictor is
  given priors when it learns and never when it predicts: what it knows of a target comes from other people's answers
  in the training rows, so that nothing of a row that was kept back can enter.
- `models`: the share of language models that answered the target right. It is known for a question no matter who is
  asked about it, and is given for every row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.errors import PredictorError
from predictors.pairs import Pair

PEOPLE, MODELS = "people", "models"
COLUMNS = (PEOPLE, MODELS)
# Where they come from in files, for messages.
IN_FILES = {PEOPLE: "prior", MODELS: "models_right"}
MISSING = {
    PEOPLE: "give the column prior in a file",
    MODELS: "import answers of language models into the bank (import_answers), give the column models_right in a file",
}

# So many answers about other targets of its task a target's own mean is shrunk by, and a task's by those of all.
_OF_TASK, _OF_ALL = 3.0, 10.0

Numbers = NDArray[np.float64]
Given = Mapping[str, ArrayLike]
"""By column: fractions (n,) in [0, 1], NaN where nothing is known of a row."""


def checked_columns(value: Any) -> tuple[str, ...]:
    """The columns that a setting names, as a tuple in the order of `COLUMNS`; a text may join them with + or commas.

    Raises:
        ValueError: one is not known, or is there twice.
    """
    names = re.split(r"[+,\s]+", value.strip()) if isinstance(value, str) else list(value)
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"{name!r} is not one of {', '.join(COLUMNS)}.")
    if len(set(names)) < len(names):
        raise ValueError(f"{', '.join(names)} names one twice; name each once.")
    return tuple(name for name in COLUMNS if name in names)


class Hardness:
    """What training rows say of how hard targets are, and the numbers made of it: k columns, standardised, then each
    once more with the sign of the outcome, since a hard target is met by good news and by bad news in other ways.
    """

    def __init__(self, columns: Sequence[str], state: Mapping[str, Any]) -> None:
        self.columns = tuple(columns)
        self._of_target: dict[str, list[float]] = dict(state["of_target"])
        self._of_task: dict[str, list[float]] = dict(state["of_task"])
        self._of_all: list[float] = list(state["of_all"])
        self._usual: dict[str, float] = dict(state["usual"])
        self._centre = np.asarray(state["centre"], dtype=np.float64)
        self._scale = np.asarray(state["scale"], dtype=np.float64)

    @classmethod
    def learn(
        cls, columns: Sequence[str], pairs: Sequence[Pair], weights: ArrayLike, given: Given | None
    ) -> tuple[Self, Numbers]:
        """The hardness of targets by n training rows, and the numbers of these rows, (n, 2 k).

        The prior of a training row's own pair counts in no number of that row: for a row that is predicted later its
        own prior is not known either.

        Args:
            columns: of `COLUMNS`.
            weights: (n,), how many answers a row counts as.
            given: each of the columns, (n,).

        Raises:
            PredictorError: a column is not given, is of another length, is out of [0, 1] or known of no row.
        """
        known = {name: _checked(name, given, len(pairs)) for name in columns}
        hardness = cls(columns, {"of_target": {}, "of_task": {}, "of_all": [0.0, 0.0], "usual": {}, **_UNSCALED})
        for name, values in known.items():
            is_told = np.isfinite(values)
            if not is_told.any():
                raise PredictorError(f"columns: {name}: no training row says it; {MISSING[name]}, or leave {name} out.")
            hardness._usual[name] = float(values[is_told].mean())
        own: dict[Pair, list[float]] = {}
        if PEOPLE in known:
            counts = np.asarray(weights, dtype=np.float64)
            for pair, value, weight in zip(pairs, known[PEOPLE].tolist(), counts.tolist(), strict=True):
                if value == value:  # Not NaN.
                    for sums in (
                        hardness._of_target.setdefault(pair.target_text, [0.0, 0.0]),
                        hardness._of_task.setdefault(pair.target_task, [0.0, 0.0]),
                        own.setdefault(pair, [0.0, 0.0]),
                        hardness._of_all,
                    ):
                        sums[0] += value * weight
                        sums[1] += weight
        raw = hardness._raw(pairs, known, own)
        # Over the rows of which it is known: others hold what is usual, and would squeeze the scale.
        is_known = np.stack([np.isfinite(known[name]) for name in hardness.columns], axis=1)
        hardness._centre = raw.mean(axis=0, where=is_known)
        spread = raw.std(axis=0, where=is_known)
        hardness._scale = np.where(spread > 1e-9, 1 / np.where(spread > 1e-9, spread, 1.0), 0.0)
        return hardness, hardness._signed(pairs, raw)

    def numbers(self, pairs: Sequence[Pair], given: Given | None) -> Numbers:
        """The numbers of n rows to be predicted, (n, 2 k). Priors among `given` are not looked at.

        Raises:
            PredictorError: `models` is read and not given, or as `learn`.
        """
        known = {name: _checked(name, given, len(pairs)) for name in self.columns if name != PEOPLE}
        return self._signed(pairs, self._raw(pairs, known, {}))

    def state(self) -> dict[str, Any]:
        """All of it as JSON, for `Hardness(columns, state)`. It holds means of answers by question, and no person."""
        return {
            "of_target": self._of_target,
            "of_task": self._of_task,
            "of_all": self._of_all,
            "usual": self._usual,
            "centre": self._centre.tolist(),
            "scale": self._scale.tolist(),
        }

    def _raw(self, pairs: Sequence[Pair], known: Mapping[str, Numbers], own: Mapping[Pair, list[float]]) -> Numbers:
        columns = []
        for name in self.columns:
            if name == PEOPLE:
                columns.append(np.array([self._expected(pair, own.get(pair, [0.0, 0.0])) for pair in pairs]))
            else:
                columns.append(np.where(np.isfinite(known[name]), known[name], self._usual[name]))
        return np.stack(columns, axis=1) if pairs else np.empty((0, len(self.columns)))

    def _expected(self, pair: Pair, less: Sequence[float]) -> float:
        """The mean prior of a target without the answers that sum up to `less`, shrunk to its task's, and so on."""

        def rest(sums: Sequence[float]) -> tuple[float, float]:
            # Sums of the same numbers in another order differ by rounding.
            count = sums[1] - less[1]
            return (sums[0] - less[0], count) if count > 1e-9 else (0.0, 0.0)

        total, count = rest(self._of_all)
        usual = total / count if count else self._usual[PEOPLE]
        total, count = rest(self._of_task.get(pair.target_task, less))
        of_task = (total + _OF_ALL * usual) / (count + _OF_ALL)
        total, count = rest(self._of_target.get(pair.target_text, less))
        return (total + _OF_TASK * of_task) / (count + _OF_TASK)

    def _signed(self, pairs: Sequence[Pair], raw: Numbers) -> Numbers:
        sides = np.array([2.0 * pair.outcome - 1.0 for pair in pairs])
        numbers = (raw - self._centre) * self._scale
        return np.hstack([numbers, numbers * sides[:, None]])


_UNSCALED: Mapping[str, Any] = {"centre": [], "scale": []}


def _checked(name: str, given: Given | None, n: int) -> Numbers:
    if given is None or name not in given:
        raise PredictorError(f"columns: {name} is not given for these rows; give it, or leave it out of the settings.")
    values = np.asarray(given[name], dtype=np.float64)
    if values.shape != (n,):
        raise PredictorError(f"columns: {name} has the shape {values.shape} for {n} rows; give one number a row.")
    told = values[np.isfinite(values)]
    if (told < 0).any() or (told > 1).any():
        raise PredictorError(f"columns: {name} must lie between 0 and 1, and be NaN where it is not known.")
    return values
