"""The models of a study's file read its sentences; what they gave to each word is stored once."""

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction

from predictors.errors import PredictorError
from predictors.readings import NO_DETAIL, Detail, Source, Text
from predictors.readings.sources import LOCAL, NGRAM
from predictors.readings.words import LIKELIEST, VERSION, word_values
from survey.exceptions import HunchError
from survey.models import LanguageModel, NgramModel, Question, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.banks.readings import open_reader, text_hash
from survey.study_file.language_models import LanguageModelConfig

from .models import AskedWord, SentenceReading

ASKED_AT_ONCE = 500
PART = 200
MOST_EXPECTED = 500_000_000
"""Words times vocabulary up to which an n-gram model says what it expected at each word: some ten seconds."""
Progress = Callable[[str, int, int], object]
"""Called as progress(model, sentences done, sentences)."""


def source_of(model: LanguageModelConfig) -> Source:
    scheme, _colon, target = model.source.partition(":")
    return Source(scheme, target.strip(), model.name)


def sentences_to_read(study: Study, *, everything: bool) -> list[Question]:
    """The study's sentences: all that it may ask about, or those that a plan has."""
    if everything:
        return eligible_questions(study)
    keys = AskedWord.objects.filter(item__study=study).order_by().values_list("question", flat=True).distinct()
    return list(Question.objects.filter(pk__in=keys).order_by("position"))


def read_models(
    study: Study, *, everything: bool, only: str = "", quick: bool = False, progress: Progress | None = None
) -> dict[str, int]:
    """Let each model of the study file read the study's sentences. What is stored is not read again.

    Args:
        everything: all sentences that the study may ask about, and not only those of its plans.
        only: the name of one model; all without it.
        quick: only n-gram models, which read ten thousand sentences in seconds.

    Returns:
        How many sentences each model read now.

    Raises:
        HunchError: a model cannot be used, or stopped in the middle; what it had read is stored.
    """
    texts = {text_hash(one.plain): one.plain for one in sentences_to_read(study, everything=everything)}
    read = {}
    for model in study.config.models:
        source = source_of(model)
        if (only and model.name != only) or (quick and source.scheme != NGRAM):
            continue
        stored = {row.text_sha256 for row in _rows(model, list(texts))}
        wanted = [(sha256, text) for sha256, text in texts.items() if sha256 not in stored]
        read[model.name] = _read(source, wanted, progress) if wanted else 0
    return read


def _read(source: Source, wanted: Sequence[tuple[str, str]], progress: Progress | None) -> int:
    texts = [Text(sha256, text) for sha256, text in wanted]
    reader = open_reader(source, texts)
    whole = source.scheme == NGRAM and NgramModel.objects.filter(name=source.target, unit="word").exists()
    detail = NO_DETAIL
    if source.scheme == LOCAL:
        detail = Detail(top=4 * LIKELIEST, boundary=True)
    elif whole and sum(len(one.text.split()) for one in texts) * (reader.vocabulary_size or 0) <= MOST_EXPECTED:
        detail = Detail(top=2 * LIKELIEST)
    language_model, _made = LanguageModel.objects.get_or_create(name=source.name)
    pending: list[SentenceReading] = []
    done = 0
    try:
        for place, reading in reader.each(texts, detail=detail):
            text = texts[place]
            values, likeliest = word_values(text.text, reading, words_are_tokens=whole)
            pending.append(
                SentenceReading(
                    language_model=language_model,
                    text_sha256=text.id,
                    source=str(source),
                    source_sha256=reader.source,
                    code_version=VERSION,
                    values=_bytes(values),
                    likeliest=[[[word, round(chance, 6)] for word, chance in words] for words in likeliest],
                )
            )
            done += 1
            if len(pending) >= PART:
                _store(pending)
                pending = []
            if progress is not None:
                progress(source.name, done, len(texts))
    except PredictorError as exc:
        _store(pending)
        stored = f"; {done} sentences were read and are stored, run it again to go on" if done else ""
        raise HunchError(f"models: {source.name}: {exc}{stored}") from exc
    except BaseException:
        _store(pending)
        raise
    _store(pending)
    return done


def _store(rows: Sequence[SentenceReading]) -> None:
    with transaction.atomic():
        SentenceReading.objects.bulk_create(rows, ignore_conflicts=True)


def _bytes(values: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, values, allow_pickle=False)
    return content.getvalue()


def _rows(model: LanguageModelConfig, hashes: Sequence[str]) -> Iterator[SentenceReading]:
    """Stored readings of these texts by this model as the study file names it: those of its newest source alone, so
    that two versions of a model or of its tokenizer are never mixed."""
    own = SentenceReading.objects.filter(
        language_model__name=model.name, source=str(source_of(model)), code_version=VERSION
    )
    newest = own.order_by("-pk").values_list("source_sha256", flat=True).first()
    if newest is None:
        return
    for start in range(0, len(hashes), ASKED_AT_ONCE):
        yield from own.filter(source_sha256=newest, text_sha256__in=hashes[start : start + ASKED_AT_ONCE])


@dataclass(frozen=True, eq=False)
class ModelWords:
    """What one model gave to the words of sentences, by the sentence's primary key."""

    config: LanguageModelConfig
    values: Mapping[int, np.ndarray]
    likeliest: Mapping[int, Sequence[Sequence[tuple[str, float]]]]

    def of(self, name: str, questions: Collection[int], positions: Collection[int]) -> np.ndarray:
        """A value at each of n positions (n,); NaN where it is not known."""
        found = np.full(len(questions), np.nan)
        for row, (question, position) in enumerate(zip(questions, positions, strict=True)):
            words = self.values.get(int(question))
            if words is not None and position < len(words):
                found[row] = words[name][position]
        return found

    def words(self, question: int, position: int) -> Sequence[tuple[str, float]]:
        """The likeliest words at a position; empty where they are not known."""
        own: Sequence[Any] = self.likeliest.get(question, ())
        return own[position] if position < len(own) else ()


def words_of_models(study: Study, questions: Sequence[Question], *, likeliest: bool = True) -> list[ModelWords]:
    """What is stored of each model of the study file, in its order; models without a reading have no values."""
    of_text: dict[str, list[int]] = {}
    for question in questions:
        of_text.setdefault(text_hash(question.plain), []).append(question.pk)
    found = []
    for model in study.config.models:
        values: dict[int, np.ndarray] = {}
        words: dict[int, Sequence[Sequence[tuple[str, float]]]] = {}
        for row in _rows(model, list(of_text)):
            array = row.word_array
            for key in of_text[row.text_sha256]:
                values[key] = array
                if likeliest:
                    words[key] = [[(word, chance) for word, chance in one] for one in row.likeliest]
        found.append(ModelWords(model, values, words))
    return found
