"""The next-token task's priorities: where people and a model part, or where people's share is least certain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.instruments import Priority
from survey.exceptions import StateRefused
from survey.services.banks import passages
from survey.services.banks.readings import text_hash

from .analysis import priority
from .analysis.guesses import KINDS, kind_of
from .screens import guesses_of

if TYPE_CHECKING:
    from survey.models import Assignment, Question

    from .instrument import NextToken


class NextTokenPriority(Priority):
    """Priorities of a study's runs, from frozen guesses and what is stored of its models."""

    needs_predictor = False

    def __init__(self, instrument: "NextToken") -> None:
        self._instrument = instrument
        # A class attribute in the contract; each of the two priorities has its own name in manifests.
        self.name = instrument.options.priority  # type: ignore[misc]

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
            StateRefused: the model whose distance is asked for has not read the passages.
        """
        instrument = self._instrument
        options, tokenizer = instrument.options, instrument.tokenizer
        used = sorted({int(row) for row in rows["question"]})
        texts = passages.texts_of([questions[index] for index in used])
        cut = passages.tokens_of(tokenizer, texts)
        expected = self._expected(texts)
        words = passages.vocabulary_of(tokenizer)
        features: list[list[float]] = []
        model: list[float] = []
        run: list[int] = []
        text: list[int] = []
        places: dict[tuple[int, int], int] = {}
        for number, row in enumerate(rows):
            question, start = questions[row["question"]], int(row["start"])
            sha256 = text_hash(question.plain)
            tokens = cut[sha256][start : start + options.run]
            said = expected.get(sha256)
            for place, token in enumerate(tokens):
                token_text = question.plain[token["start"] : token["end"]]
                if words.id_of(token_text) != token["id"]:
                    continue
                position = start + place
                kind = kind_of(token_text, first=position == 0)
                facts = [np.log1p(position), *(float(kind == known_kind) for known_kind in KINDS)]
                own = None if said is None else said[position]
                facts += [np.nan] * 2 if own is None else [_finite(-own["logprob"]), _finite(own["entropy"])]
                places[question.pk, position] = len(features)
                features.append(facts)
                model.append(np.nan if own is None else float(own["top_id"] == token["id"]))
                run.append(number)
                text.append(used.index(int(row["question"])))
        n, right = np.zeros(len(features)), np.zeros(len(features))
        times = np.zeros(len(rows))
        numbers = {(questions[row["question"]].pk, int(row["start"])): number for number, row in enumerate(rows)}
        for answer in answers:
            own_run = answer.slot.item.token_run
            known = numbers.get((own_run.question_id, own_run.start))
            if known is not None:
                times[known] += 1
            for guess in guesses_of(answer):
                at = places.get((own_run.question_id, guess.position))
                if at is not None:
                    n[at] += 1
                    right[at] += guess.right
        guessed = np.flatnonzero(n)
        predicted = priority.predicted_share(
            np.array(features, dtype=np.float64), np.array(text), guessed, n[guessed], right[guessed]
        )
        if options.priority == "gap":
            return priority.gap(predicted, np.array(model), np.array(run))
        return priority.uncertainty(predicted, np.array(run), times)

    def _expected(self, texts: Sequence[passages.Text]) -> dict[str, np.ndarray]:
        instrument = self._instrument
        models = instrument.study.config.models
        wanted = instrument.options.priority_model or (models[0].name if models else "")
        model = next((model for model in models if model.name == wanted), None)
        expectations = (
            {} if model is None else passages.expectations_of(passages.source_of(model), instrument.tokenizer, texts)
        )
        if instrument.options.priority == "gap" and not expectations:
            raise StateRefused(
                f"{instrument.study.slug}: {wanted} has not read the passages, and the priority is the distance to "
                f"it: `hunch jobs ask prepare {instrument.study.slug} --now`"
            )
        return expectations


def _finite(value: float) -> float:
    return float(value) if np.isfinite(value) else np.nan
