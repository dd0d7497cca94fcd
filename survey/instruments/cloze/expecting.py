"""The next person's word next to what models expected: the cloze task's part in the reports that compare."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from survey.contracts.expectations import ComparedEvent, Expectations, Expecting, ItemReader, Items
from survey.exceptions import StateRefused
from survey.models import Assignment, Study

from .analysis.normalising import normalised
from .chances import chance_of_positions
from .estimands import position_part
from .labels import judged_word_of
from .model_words import ModelWords, WrittenText, chances_of_written, words_of_models, written_texts
from .options import ClozeOptions

WORD = ComparedEvent(
    name="word",
    title="the next person writes the sentence’s own word",
    human="whether a person wrote it",
    machine="the chance that the model gave to it",
)
SHOWN = 120  # characters of a fragment in a list


class ClozeExpecting(Expecting):
    """`study`: whose answers, with its options; without it only `events` can be asked for."""

    events = (WORD,)

    def __init__(self, study: Study | None, *, options: ClozeOptions | None) -> None:
        self._study, self._options = study, options

    def of(self, answers: Sequence[Assignment], weights: np.ndarray, *, event: str) -> Expectations:
        if self._study is None or self._options is None:
            raise RuntimeError("cloze: what people expect is read of a study, and there is none")
        lenient = self._options.normalisation == "lenient"
        asked = {answer.slot.item_id: answer.slot.item.asked_word for answer in answers}
        place = {key: index for index, key in enumerate(asked)}
        own_words = {key: normalised(word.target) for key, word in asked.items()}
        item = np.array([place[answer.slot.item_id] for answer in answers], dtype=np.int64)
        value, said = [], []
        for answer in answers:
            score = judged_word_of(answer)
            hit = score is not None and (score.lenient if lenient else score.exact)
            own = own_words[answer.slot.item_id]
            value.append(float(hit))
            said.append(own if hit else "" if score is None else score.normalised)
        words = list(asked.values())
        questions = {word.question_id: word.question for word in words}
        models = [
            words_of_model
            for words_of_model in words_of_models(self._study, list(questions.values()))
            if words_of_model.values
        ]
        if not models:
            raise StateRefused(
                f"{self._study.slug}: no language model has read its sentences; name one in [[models]], then let it "
                "read them: "
                f"`hunch jobs ask prepare {self._study.slug} --now`"
            )
        chances = chance_of_positions(self._study)
        texts = written_texts(self._study)
        keys = list(zip((answer.slot.item_id for answer in answers), said, strict=True))
        readers, notes = [], []
        for model in models:
            reader = _reader(model, words)
            own_chances = _given(model, texts, keys, own_words, reader.chance[item])
            if own_chances is None:
                notes.append(
                    f"{model.config.name}: not every word that people wrote has a chance by it, so that it is scored "
                    f"by the sentence’s own word alone; models on this machine read them by "
                    f"`hunch jobs ask prepare {self._study.slug} --now`"
                )
            readers.append(replace(reader, given=own_chances))
        return Expectations(
            event=WORD,
            items=Items(
                labels=[f"{word.question.external_id}@{word.position}" for word in words],
                texts=[_shown(word.fragment) for word in words],
                groups={
                    "source": np.array([word.question.task.name for word in words], dtype=str),
                    "position": np.array([position_part(word.position) for word in words], dtype=str),
                },
            ),
            item=item,
            person=np.array([answer.sitting.respondent_id for answer in answers], dtype=np.int64),
            weight=weights,
            value=np.array(value, dtype=np.float64),
            readers=readers,
            notes=notes,
            said=said,
            others=_of_others(item, said, self._options.smoothing),
            item_weight=np.array([1 / chances.get(key, 1.0) for key in asked], dtype=np.float64),
            written=self._study.bank.created_at.date(),
        )


def _reader(model: ModelWords, words: Sequence) -> ItemReader:
    keys, places = [word.question_id for word in words], [word.position for word in words]
    chance = np.exp(-np.maximum(model.of("surprisal", keys, places), 0.0))
    return ItemReader(model.config.name, "model", chance, trained=model.config.trained)


def _given(
    model: ModelWords,
    texts: Mapping[tuple[int, str], WrittenText],
    keys: Sequence[tuple[int, str]],
    own_words: Mapping[int, str],
    own_chance: np.ndarray,
) -> np.ndarray | None:
    """The chance of what each person wrote (n,). None where one of them is not known: those that are known are not
    like the others, and a score of them alone would say little."""
    known = chances_of_written(model.config, texts)
    chances = np.array(
        [
            chance if word == own_words[item] else known.get((item, word), np.nan)
            for (item, word), chance in zip(keys, own_chance.tolist(), strict=True)
        ]
    )
    return chances if np.isfinite(chances).all() else None


def _of_others(item: np.ndarray, said: Sequence[str], smoothing: float) -> np.ndarray:
    """(count of this word among the others + a) / (n - 1 + a K), K being the others' distinct words and one more."""
    counts: dict[int, Counter[str]] = {}
    for index, word in zip(item.tolist(), said, strict=True):
        counts.setdefault(index, Counter())[word] += 1
    chances = np.empty(len(said))
    for row, (index, word) in enumerate(zip(item.tolist(), said, strict=True)):
        own = counts[index]
        distinct = len(own) - (own[word] == 1)
        chances[row] = (own[word] - 1 + smoothing) / (own.total() - 1 + smoothing * (distinct + 1))
    return chances


def _shown(fragment: str) -> str:
    text = f"{fragment} …" if fragment else "…"
    return text if len(text) <= SHOWN else f"… {text[-(SHOWN - 2) :]}"
