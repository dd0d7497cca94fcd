"""The models of a study's file read its sentences; what they gave to each word is stored once."""

import io
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction

from predictors.errors import PredictorError
from predictors.readings import NO_DETAIL, Detail, Source, Text
from predictors.readings.sources import ARPA, LOCAL, NETWORK, NGRAM
from predictors.readings.words import LIKELIEST, VALUES, VERSION, word_values
from predictors.word_forms import stripped
from survey.exceptions import HunchError
from survey.models import LanguageModel, Question, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.banks.readings import open_reader, reads_words, text_hash
from survey.services.banks.readings import unknown_words as unknown_words_of
from survey.study_file.language_models import LanguageModelConfig

from .labels import first_word
from .models import AskedWord, SentenceReading, WrittenWord

ON_THIS_MACHINE = (LOCAL, NGRAM, NETWORK, ARPA)
HASHES_PER_QUERY = 500
PART = 200
MAX_EXPECTED = 500_000_000
"""Words times vocabulary up to which a model of words says what it expected at each word: some ten seconds."""
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
    """Let each model of the study file read the study's sentences, and models on this machine the words that people
    wrote in them. What is stored is not read again.

    Args:
        everything: all sentences that the study may ask about, and not only those of its plans.
        only: the name of one model; all without it.
        quick: only n-gram models, which read ten thousand sentences in seconds; and nothing that people wrote.

    Returns:
        How many sentences each model read now.

    Raises:
        HunchError: a model cannot be used, or stopped in the middle; what it had read is stored.
    """
    texts = {text_hash(sentence.plain): sentence.plain for sentence in sentences_to_read(study, everything=everything)}
    read = {}
    for model in study.config.models:
        source = source_of(model)
        if (only and model.name != only) or (quick and source.scheme != NGRAM):
            continue
        stored = set(_hashes(model, list(texts)))
        wanted = [(sha256, text) for sha256, text in texts.items() if sha256 not in stored]
        read[model.name] = _read(source, wanted, progress) if wanted else 0
        if not quick and source.scheme in ON_THIS_MACHINE:
            _read_written(study, model, source)
    return read


def _read_written(study: Study, model: LanguageModelConfig, source: Source) -> None:
    """What people wrote, each word after its fragment: never by a server, which need not know it."""
    texts = {text_hash(written_text.text): written_text for written_text in written_texts(study).values()}
    stored = set(_hashes(model, list(texts)))
    wanted = [(sha256, text) for sha256, text in texts.items() if sha256 not in stored]
    if not wanted:
        return
    reader = open_reader(source, [Text(sha256, text.text) for sha256, text in wanted])
    language_model = LanguageModel.named(source.name)
    pending: list[SentenceReading] = []
    try:
        for place, reading in reader.each([Text(sha256, one.text) for sha256, one in wanted]):
            sha256, written = wanted[place]
            values = np.full(written.position + 1, np.nan, dtype=VALUES)
            tokens = reading.of_text
            values["surprisal"][-1] = -float(tokens["logprob"][tokens["end"] > written.before].sum())
            pending.append(
                SentenceReading(
                    language_model=language_model,
                    text_sha256=sha256,
                    source=str(source),
                    source_sha256=reader.source,
                    code_version=VERSION,
                    values=_bytes(values),
                )
            )
            if len(pending) >= PART:
                _store(pending)
                pending = []
    except PredictorError as exc:
        raise HunchError(f"models: {source.name}: {exc}; run it again to go on") from exc
    finally:
        _store(pending)


@dataclass(frozen=True)
class WrittenText:
    """A fragment with a word that somebody wrote: the text, how many words and characters stand before that word."""

    text: str
    position: int
    before: int


def written_texts(study: Study) -> dict[tuple[int, str], WrittenText]:
    """By item and by the word as it was compared: what a model has to read to say how likely the word was. A word
    stands there as it was written most often."""
    rows = WrittenWord.objects.filter(response__assignment__slot__item__study=study)
    newest: dict[int, tuple[int, str, str]] = {}
    of_newest_rule = rows.order_by("pk", "scores__rule").values_list(
        "pk", "response__assignment__slot__item", "text", "scores__normalised"
    )
    for key, item, text, word in of_newest_rule.iterator(chunk_size=2000):
        newest[key] = (item, text, word)
    forms: dict[tuple[int, str], Counter[str]] = {}
    for item, text, word in newest.values():
        if word is not None:
            forms.setdefault((item, word), Counter())[stripped(first_word(text))] += 1
    asked = AskedWord.objects.select_related("question").in_bulk({item for item, _word in forms})
    texts = {}
    for (item, word), counts in forms.items():
        fragment, position = asked[item].fragment, asked[item].position
        form = min(counts, key=lambda spelling: (-counts[spelling], spelling))
        texts[item, word] = WrittenText(f"{fragment} {form}".strip(), position, len(fragment))
    return texts


def chances_of_written(model: LanguageModelConfig, texts: Mapping[tuple[int, str], WrittenText]) -> dict[Any, float]:
    """The chance that a model gave to each word, of those that it has read."""
    places: dict[str, list[tuple[int, str]]] = {}
    for key, text in texts.items():
        places.setdefault(text_hash(text.text), []).append(key)
    chances: dict[Any, float] = {}
    for row in _rows(model, list(places)):
        values = row.word_array
        for key in places[row.text_sha256]:
            if texts[key].position < len(values):
                value = float(values["surprisal"][texts[key].position])
                chances[key] = float(np.exp(-max(value, 0.0)))
    return chances


def _read(source: Source, wanted: Sequence[tuple[str, str]], progress: Progress | None) -> int:
    texts = [Text(sha256, text) for sha256, text in wanted]
    reader = open_reader(source, texts)
    whole = reads_words(source)
    detail = NO_DETAIL
    if source.scheme == LOCAL:
        detail = Detail(top=4 * LIKELIEST, boundary=True)
    elif (
        whole
        and source.scheme in (NGRAM, NETWORK)
        and sum(len(text.text.split()) for text in texts) * (reader.vocabulary_size or 0) <= MAX_EXPECTED
    ):
        detail = Detail(top=2 * LIKELIEST)
    language_model = LanguageModel.named(source.name)
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
    for start in range(0, len(hashes), HASHES_PER_QUERY):
        yield from own.filter(source_sha256=newest, text_sha256__in=hashes[start : start + HASHES_PER_QUERY])


def _hashes(model: LanguageModelConfig, hashes: Sequence[str]) -> Iterator[str]:
    for row in _rows(model, hashes):
        yield row.text_sha256


@dataclass(frozen=True, eq=False)
class ModelWords:
    """What one model gave to the words of sentences, by the sentence's primary key."""

    config: LanguageModelConfig
    values: Mapping[int, np.ndarray]
    likeliest: Mapping[int, Sequence[Sequence[tuple[str, float]]]]

    def of(self, name: str, questions: Collection[int], positions: Collection[int]) -> np.ndarray:
        """A value at each of n positions (n,); NaN where it is not known."""
        surprisals = np.full(len(questions), np.nan)
        for row, (question, position) in enumerate(zip(questions, positions, strict=True)):
            words = self.values.get(int(question))
            if words is not None and position < len(words):
                surprisals[row] = words[name][position]
        return surprisals

    def words(self, question: int, position: int) -> Sequence[tuple[str, float]]:
        """The likeliest words at a position; empty where they are not known."""
        own: Sequence[Any] = self.likeliest.get(question, ())
        return own[position] if position < len(own) else ()


def words_of_models(study: Study, questions: Sequence[Question], *, likeliest: bool = True) -> list[ModelWords]:
    """What is stored of each model of the study file, in its order; models without a reading have no values."""
    of_text: dict[str, list[int]] = {}
    for question in questions:
        of_text.setdefault(text_hash(question.plain), []).append(question.pk)
    model_words = []
    for model in study.config.models:
        values: dict[int, np.ndarray] = {}
        words: dict[int, Sequence[Sequence[tuple[str, float]]]] = {}
        for row in _rows(model, list(of_text)):
            array = row.word_array
            for key in of_text[row.text_sha256]:
                values[key] = array
                if likeliest:
                    words[key] = [[(word, chance) for word, chance in likeliest] for likeliest in row.likeliest]
        model_words.append(ModelWords(model, values, words))
    return model_words


def unknown_words(
    model: LanguageModelConfig, questions: Mapping[int, Question], keys: Sequence[int], places: Sequence[int]
) -> np.ndarray:
    """At which of n positions, words of sentences by their primary key, a model of words reads a word as one class of
    everything unknown: bool (n,); nowhere for other models."""
    texts = [Text(str(key), question.plain) for key, question in questions.items()]
    of_texts = unknown_words_of(source_of(model), texts)
    if of_texts is None:
        return np.zeros(len(keys), dtype=bool)
    marks = dict(zip(questions, of_texts, strict=True))
    return np.array(
        [place < len(marks[key]) and bool(marks[key][place]) for key, place in zip(keys, places, strict=True)],
        dtype=bool,
    )
