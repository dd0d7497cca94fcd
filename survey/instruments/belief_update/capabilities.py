"""The belief update's capabilities: practice, controls, estimates, signals."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bandit.roles import NO_EVIDENCE, REPEAT, UNRELATED_EVIDENCE
from survey.contracts.instruments import Controls, Estimates, Practice, Signals
from survey.contracts.measures import SHARE, Estimands
from survey.contracts.screens import Screen
from survey.models import Assignment, Item, Question, Sitting
from survey.services.banks.eligibility import word_counts

from . import controls, estimands, practice, real_evidence, variants
from .labels import beliefs_of
from .models import Belief, Pair
from .options import BeliefUpdateOptions
from .pairing import ROW, BeliefPairs
from .sequences import BeliefSequences


class BeliefPractice(Practice):
    """`options_of`: a sitting's options under its levels. `steps`: how many evidence questions an item has."""

    def __init__(self, options_of: Any, *, steps: int = 1) -> None:
        self._options_of = options_of
        self._steps = steps

    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        return practice.problems(example, steps=self._steps)

    def screen(
        self, *, sitting: Sitting, example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        setting = variants.of_practice(sitting, self._options_of(sitting))
        return practice.next_screen(setting, example=example, given=given)

    def summary(self, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        return practice.summary(given)


class BeliefControls(Controls):
    """A target without evidence, evidence that has nothing to do with its target, and an earlier item again."""

    kinds = (NO_EVIDENCE, UNRELATED_EVIDENCE, REPEAT)

    def __init__(self, pairing: BeliefPairs, sequences: BeliefSequences | None = None) -> None:
        self._pairing = pairing
        self._sequences = sequences

    def draw(self, *, kind: str, count: int, questions: Sequence[Question], rng: np.random.Generator) -> np.ndarray:
        rows = np.full(count, -1, dtype=ROW if self._sequences is None else self._sequences.row)
        if kind == NO_EVIDENCE:
            rows["target"] = controls.targets(count=count, n_questions=len(questions), rng=rng)
            return rows
        if kind != UNRELATED_EVIDENCE:
            return super().draw(kind=kind, count=count, questions=questions, rng=rng)
        if self._sequences is not None:
            return self._sequences.unrelated(questions=questions, count=count, rng=rng)
        if self._pairing.real is not None:
            drawn = self._pairing.real.unrelated(questions=questions, count=count, rng=rng)
        else:
            places = [(question.task.domain, question.task.name) for question in questions]
            drawn = controls.unrelated_pairs(count=count, places=places, rng=rng)
        return self._pairing.rows_of_pairs(drawn)


class BeliefEstimates(Estimates):
    """Shares, changes and beliefs; `options` are the study's, None without a study."""

    units = {"changed": SHARE}

    def __init__(self, options: BeliefUpdateOptions | None, pairing: BeliefPairs) -> None:
        self._options = options
        self._pairing = pairing

    @property
    def _threshold(self) -> int:
        if self._options is None:
            raise RuntimeError("belief_update: estimates need a study, since they use its threshold")
        return self._options.threshold

    def outcomes(self, assignments: Sequence[Assignment]) -> dict[str, np.ndarray]:
        """`changed`: 1 where the belief changed by more than the threshold."""
        changed = [bool(beliefs_of(assignment).changed(self._threshold)) for assignment in assignments]
        return {"changed": np.asarray(changed, dtype=np.float64)}

    def in_words(self, figure: str, title: str) -> str:
        kind, _over, threshold = figure.partition("_over_")
        if kind != "changed":
            return title
        return f"beliefs that changed {'at all' if threshold == '0' else f'by more than {threshold} points'}"

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        if self._options is not None and self._options.evidence_questions > 1:
            return estimands.of_steps_in_words(
                self._options.evidence_questions,
                language_model=None if self._pairing.real is None else self._pairing.real.language_model,
                universe_size=universe_size,
                n_questions=n_questions,
            )
        if self._pairing.real is not None:
            return real_evidence.in_words(
                language_model=self._pairing.real.language_model, universe_size=universe_size, n_questions=n_questions
            )
        return estimands.in_words(universe_size=universe_size, n_questions=n_questions)

    def estimands(self, assignments: Sequence[Assignment], *, thresholds: Sequence[int] = ()) -> Estimands:
        return estimands.of_answers(assignments, thresholds or self.default_thresholds())

    def default_thresholds(self) -> tuple[int, ...]:
        own = self._threshold
        return (own, *(threshold for threshold in estimands.THRESHOLDS if threshold != own))

    def divisions(self, items: Sequence[Item]) -> dict[str, np.ndarray]:
        return estimands.divisions(items)

    def item_features(self, items: Sequence[Item]) -> np.ndarray:
        return estimands.item_features(items)

    def candidate_features(self, *, rows: np.ndarray, questions: Sequence[Question]) -> np.ndarray:
        return estimands.candidate_features(rows, questions)


class BeliefSignals(Signals):
    round_values = (0, 50, 100)

    def word_counts(self, items: Collection[int]) -> dict[int, int]:
        asked = ("target", "evidence", "evidence_2", "evidence_3")
        pairs = list(Pair.objects.filter(pk__in=items).values_list("pk", *asked))
        words = word_counts({key for _item, *asked in pairs for key in asked if key is not None})
        return {item: sum(words.get(key or 0, 0) for key in asked) for item, *asked in pairs}

    def stated_values(self, sittings: Collection[int]) -> Iterable[tuple[int, str, Hashable]]:
        stated = Belief.objects.filter(response__assignment__sitting__in=sittings).order_by()
        return stated.values_list("response__assignment__sitting", "kind", "value").iterator()
