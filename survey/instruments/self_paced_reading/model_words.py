"""What the models of a study file give to the words of its passages, from readings that are stored."""

from collections.abc import Callable, Sequence

import numpy as np
from django.db.models import QuerySet

from predictors.errors import PredictorError
from predictors.readings import READING_VERSION, Source, Text, TextReading
from predictors.readings.sources import NGRAM
from predictors.readings.words import word_values
from survey.exceptions import HunchError
from survey.models import Question, Reading, Study
from survey.services.banks import readings
from survey.services.banks.eligibility import eligible_questions
from survey.services.banks.readings import text_hash
from survey.study_file.language_models import LanguageModelConfig

QUICK = 300  # passages that an n-gram model reads while a study is created
Progress = Callable[[str, int, int], object]
"""Called as progress(model, passages done, passages)."""


def source_of(model: LanguageModelConfig) -> Source:
    scheme, _colon, target = model.source.partition(":")
    return Source(scheme, target.strip(), model.name)


def read_models(study: Study, *, progress: Progress | None = None) -> dict[str, int]:
    """Let each model of the study file read the study's passages. What is stored is not read again.

    Returns:
        How many passages each model read now.

    Raises:
        HunchError: a model cannot be used, or stopped in the middle; what it had read is stored.
    """
    texts = [
        Text(eligible_question.external_id, eligible_question.plain) for eligible_question in eligible_questions(study)
    ]
    read = {}
    for model in study.config.models:

        def shown(done: int, total: int, name: str = model.name) -> None:
            if progress is not None:
                progress(name, done, total)

        result = readings.read(source_of(model), texts, progress=shown)
        read[model.name] = len(texts) - result.stored
    return read


def read_quickly(model: LanguageModelConfig, questions: Sequence[Question]) -> None:
    """Let an n-gram model read a few hundred passages, unless it has read all of them. Nothing with other models, or
    with more passages: the command `reading --read` is for these.

    Raises:
        HunchError: there is no such model, or it cannot read.
    """
    source = source_of(model)
    if source.scheme != NGRAM or len(questions) > QUICK:
        return
    hashes = {text_hash(question.plain) for question in questions}
    if len(set(_newest_of(model).filter(text_sha256__in=hashes).values_list("text_sha256", flat=True))) < len(hashes):
        readings.read(source, [Text(question.external_id, question.plain) for question in questions])


def surprisals(study: Study, questions: Sequence[Question]) -> dict[str, dict[int, np.ndarray]]:
    """The surprisal of each word in nats (words,), by model and the passage's primary key; of the newest source of each
    model alone. Models without a reading have none.

    Raises:
        HunchError: the words of a passage and of a model's text do not agree.
    """
    return {model.name: _of_model(model, questions) for model in study.config.models}


def _newest_of(model: LanguageModelConfig) -> QuerySet[Reading]:
    """What is stored of the newest source of a model."""
    own = Reading.objects.filter(
        language_model__name=model.name, source=str(source_of(model)), code_version=READING_VERSION
    )
    return own.filter(source_sha256=own.order_by("-pk").values_list("source_sha256", flat=True).first())


def _of_model(model: LanguageModelConfig, questions: Sequence[Question]) -> dict[int, np.ndarray]:
    source = source_of(model)
    hashes = {text_hash(question.plain) for question in questions}
    stored = {row.text_sha256: row for row in _newest_of(model).filter(text_sha256__in=hashes)}
    whole = readings.reads_words(source)
    surprisals = {}
    for question in questions:
        row = stored.get(text_hash(question.plain))
        if row is None:
            continue
        reading = TextReading(row.token_array, row.tokenizer_sha256, row.reads_end)
        try:
            values, _likeliest = word_values(question.plain, reading, words_are_tokens=whole)
        except PredictorError as exc:
            raise HunchError(f"models: {model.name}: passage {question.external_id}: {exc}") from exc
        surprisals[question.pk] = values["surprisal"].astype(np.float64)
    return surprisals
