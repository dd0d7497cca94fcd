"""The next person's guess next to what models expected: the next-token task's part in the reports that compare."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.expectations import ComparedEvent, Expectations, Expecting, ItemReader, Items
from survey.exceptions import StateRefused
from survey.services.banks import passages
from survey.services.banks.readings import text_hash

from .analysis.guesses import kind_of
from .screens import guesses_of
from .wording import shown_token

if TYPE_CHECKING:
    from survey.models import Assignment, Question

    from .instrument import NextToken

GUESSED = ComparedEvent(
    name="guessed",
    title="the next person guesses the text’s own token",
    human="whether a person guessed it",
    machine="the chance that the model gave to it",
)
SHOWN = 80  # characters before a token in a list


class NextTokenExpecting(Expecting):
    """`instrument`: that of the study; without one only `events` can be asked for. An item is a position of a passage,
    and each guess is an answer to it."""

    events = (GUESSED,)

    def __init__(self, instrument: "NextToken") -> None:
        self._instrument = instrument

    def of(self, answers: "Sequence[Assignment]", weights: np.ndarray, *, event: str) -> Expectations:
        instrument = self._instrument
        place: dict[tuple[int, int], int] = {}
        item, person, weight, value = [], [], [], []
        labels, texts, kinds, sources = [], [], [], []
        where: list[tuple[str, int]] = []
        questions: dict[int, Question] = {}
        for answer, own_weight in zip(answers, weights, strict=True):
            run = answer.slot.item.token_run
            question = questions.setdefault(run.question_id, run.question)
            tokens, text = run.run_tokens, question.plain
            for guess in guesses_of(answer):
                key = (run.question_id, guess.position)
                if key not in place:
                    token = tokens[guess.place]
                    own = text[token.start : token.end]
                    place[key] = len(place)
                    labels.append(f"{question.external_id}@{guess.position}")
                    texts.append(f"{text[max(0, token.start - SHOWN) : token.start]} [{shown_token(own)}]")
                    kinds.append(kind_of(own, first=guess.position == 0))
                    sources.append(question.task.name)
                    where.append((text_hash(text), guess.position))
                item.append(place[key])
                person.append(answer.sitting.respondent_id)
                weight.append(own_weight)
                value.append(float(guess.right))
        readers = self._readers(passages.texts_of(list(questions.values())), where)
        return Expectations(
            event=GUESSED,
            items=Items(
                labels=labels,
                texts=texts,
                groups={"token": np.array(kinds, dtype=str), "source": np.array(sources, dtype=str)},
            ),
            item=np.array(item, dtype=np.int64),
            person=np.array(person, dtype=np.int64),
            weight=np.array(weight, dtype=np.float64),
            value=np.array(value, dtype=np.float64),
            readers=readers,
            written=instrument.study.bank.created_at.date(),
        )

    def _readers(self, texts: Sequence[passages.Text], where: Sequence[tuple[str, int]]) -> list[ItemReader]:
        instrument = self._instrument
        readers = []
        for model in instrument.study.config.models:
            expected = passages.expectations_of(passages.source_of(model), instrument.tokenizer, texts)
            chance = np.full(len(where), np.nan)
            for row, (sha256, position) in enumerate(where):
                said = expected.get(sha256)
                if said is not None and position < len(said):
                    chance[row] = min(1.0, float(np.exp(said[position]["logprob"])))
            if np.isfinite(chance).any():
                readers.append(ItemReader(model.name, "model", chance, trained=model.trained))
        if not readers:
            raise StateRefused(
                f"{instrument.study.slug}: no language model has read its passages; name one in [[models]], then let "
                "it "
                f"read them: `hunch jobs ask prepare {instrument.study.slug} --now`"
            )
        return readers
