"""The cloze task's priorities: how uncertain people's surprisal is, or how far it lies from a model's."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.instruments import Priority
from survey.exceptions import StateRefused

from .analysis import priority
from .analysis.answers import surprisal
from .analysis.normalising import letters, normalised
from .model_words import ModelWords, read_models, words_of_models
from .norms import norms_of

if TYPE_CHECKING:
    from survey.models import Assignment, Question, Study

    from .options import ClozeOptions


class ClozePriority(Priority):
    """Priorities of a study's positions, from frozen answers and what is stored of its models."""

    needs_predictor = False

    def __init__(self, study: "Study", options: "ClozeOptions") -> None:
        self._study, self._options = study, options
        # A class attribute in the contract; each of the two priorities has its own name in manifests.
        self.name = options.priority  # type: ignore[misc]

    def of(
        self,
        *,
        rows: np.ndarray,
        questions: "Sequence[Question]",
        chances: np.ndarray | None,
        answers: "Sequence[Assignment]",
        rng: np.random.Generator,
    ) -> np.ndarray:
        """As in the contract.

        Raises:
            StateRefused: nobody let the model read the sentences whose distance is asked for.
        """
        options = self._options
        lenient = options.normalisation == "lenient"
        model = self._model(questions)
        keys = np.array([question.pk for question in questions], dtype=np.int64)[rows["question"]]
        features = self._features(rows, questions, keys, model)
        place = {(int(key), int(at)): row for row, (key, at) in enumerate(zip(keys, rows["position"], strict=True))}
        norms = norms_of(answers)
        counts = [(norm.k(lenient=lenient), norm.n, len(norm.counts(lenient=lenient))) for norm in norms]
        known = [place.get((norm.asked.question_id, norm.asked.position), -1) for norm in norms]
        answered = np.array(known, dtype=np.int64)
        table = np.array(counts, dtype=np.int64).reshape(-1, 3)[answered >= 0]
        answered = answered[answered >= 0]
        human = surprisal(table[:, 0], table[:, 1], table[:, 2], options.smoothing)
        predicted = priority.predicted_surprisal(features, answered, human)
        if options.priority == "gap":
            assert model is not None  # noqa: S101 - `_model` refuses a gap without a model
            return priority.gap(predicted, model.of("surprisal", keys, rows["position"]))
        return priority.uncertainty(
            predicted,
            answered,
            table[:, 0],
            table[:, 1],
            smoothing=options.smoothing,
            responses=options.responses_per_item,
        )

    def _model(self, questions: "Sequence[Question]") -> ModelWords | None:
        configs = self._study.config.models
        wanted = self._options.priority_model or (configs[0].name if configs else "")
        if wanted:
            read_models(self._study, everything=True, only=wanted, quick=True)
        models = words_of_models(self._study, questions, likeliest=False)
        chosen_model = next((model for model in models if model.config.name == wanted), None)
        if self._options.priority == "gap" and (chosen_model is None or not chosen_model.values):
            raise StateRefused(
                f"{self._study.slug}: {wanted} has not read the sentences, and the priority is the distance to it: "
                f"`hunch jobs ask prepare {self._study.slug} --now`"
            )
        return chosen_model if chosen_model is not None and chosen_model.values else None

    def _features(
        self, rows: np.ndarray, questions: "Sequence[Question]", keys: np.ndarray, model: ModelWords | None
    ) -> np.ndarray:
        """A model's surprisal and entropy where there is one, and the word's length and log frequency in the bank."""
        words = [[normalised(word) for word in question.plain.split()] for question in questions]
        counts = Counter(word for own in words for word in own)
        targets = [words[row["question"]][row["position"]] for row in rows]
        columns = [
            np.array([letters(word) for word in targets], dtype=np.float64),
            np.log(np.array([counts[word] for word in targets], dtype=np.float64)),
        ]
        if model is not None:
            for name in ("surprisal", "entropy"):
                values = model.of(name, keys, rows["position"])
                if np.isfinite(values).any():
                    columns.append(values)
        return np.stack(columns, axis=1)
