"""Texts read by language models, each stored once: what was read before is taken from there.

A reading is taken again only from the same source: the same weights, tokenizer, server and version of the code. So
readings of two tokenizers are never mixed.
"""

import hashlib
import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from django.db import transaction

from predictors.errors import PredictorError
from predictors.readings import NO_DETAIL, READING_VERSION, Detail, Source, Text, TextReader, TextReading
from predictors.readings.sources import ARPA, ENDPOINT, FILE, LOCAL, NETWORK, NGRAM
from survey.exceptions import HunchError
from survey.models import Bank, LanguageModel, NgramModel, QuestionText, Reading

from . import ngrams, text_files, word_networks

# Readings are written in parts, so that a model that stops in the middle loses little.
PART, PART_SECONDS = 200, 5.0
HASHES_PER_QUERY = 500
BATCH = 2000

Progress = Callable[[int, int], None]
"""Called as progress(texts done, texts in all)."""


@dataclass(frozen=True)
class Readings:
    """One model's readings of the same texts, in their order.

    stored: how many were taken from the database. of_others: stored readings of these texts under the same name that
    another source or version made, and that are not used. vocabulary: how many tokens it chooses from, where it says.
    unknown: of each text which of its tokens were read as one class of everything unknown; None where it does not say.
    """

    source: Source
    of_texts: Sequence[TextReading]
    stored: int
    of_others: int = 0
    vocabulary: int | None = None
    unknown: Sequence[np.ndarray] | None = None

    @property
    def tokenizers(self) -> set[str]:
        return {of_text.tokenizer for of_text in self.of_texts}


def text_hash(text: str) -> str:
    """The SHA-256 under which a text's readings are stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read(
    source: Source, texts: Sequence[Text], *, detail: Detail = NO_DETAIL, progress: Progress | None = None
) -> Readings:
    """Each text as this source reads it. What is not stored yet is read now and stored as it comes.

    Args:
        detail: what each token was expected to be; nothing of it is stored, so the texts are read again for it.

    Raises:
        HunchError: the source cannot be used, or stopped in the middle. What it had read is stored, and the same call
            goes on from there.
    """
    reader = open_reader(source, texts)
    name, hashes = source.name, [text_hash(text.text) for text in texts]
    known = {} if detail.is_wanted else _stored(name, reader.source, hashes)
    wanted: dict[str, int] = {}
    for number, sha256 in enumerate(hashes):
        if sha256 not in known:
            wanted.setdefault(sha256, number)
    numbers = list(wanted.values())
    before = len(texts) - len(numbers)
    store = _Store(source, reader.source, hashes, texts, keeps=not detail.is_wanted)
    readings: dict[str, TextReading] = dict(known)
    if progress is not None:
        progress(before, len(texts))
    try:
        for place, reading in reader.each([texts[number] for number in numbers], detail=detail):
            number = numbers[place]
            readings[hashes[number]] = reading
            store.add(number, reading)
            if progress is not None:
                progress(before + len(readings) - len(known), len(texts))
    except PredictorError as exc:
        store.flush()
        done = f"; {store.written} texts were read and are stored, run it again to go on" if store.written else ""
        raise HunchError(f"{exc}{done}") from exc
    except BaseException:
        store.flush()
        raise
    store.flush()
    others = Reading.objects.filter(language_model__name=name).exclude(
        source_sha256=reader.source, code_version=READING_VERSION
    )
    unused = sum(
        others.filter(text_sha256__in=hashes[start : start + HASHES_PER_QUERY]).count()
        for start in range(0, len(hashes), HASHES_PER_QUERY)
    )
    unknown = reader.unknown_tokens(texts)
    return Readings(source, [readings[sha256] for sha256 in hashes], before, unused, reader.vocabulary_size, unknown)


def open_reader(source: Source, texts: Sequence[Text]) -> TextReader:
    """What reads these texts.

    Raises:
        HunchError: the source cannot be used.
    """
    try:
        return _FileReader(source.target, texts) if source.scheme == FILE else _reader_of(source)
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc


def _reader_of(source: Source) -> TextReader:
    if source.scheme == LOCAL:
        from predictors.readings.causal import CausalReader

        return CausalReader(source.target)
    if source.scheme == ENDPOINT:
        from predictors.endpoints import Endpoint
        from predictors.readings.completions import CompletionReader

        endpoint = Endpoint.from_environment(url_variable="HUNCH_LLM_URL", key_variable="HUNCH_LLM_KEY", concurrency=8)
        return CompletionReader(source.target, endpoint)
    if source.scheme == ARPA:
        from predictors.readings.arpa import ArpaReader

        return ArpaReader(source.target)
    if source.scheme == NETWORK:
        return word_networks.load(source.target)
    return ngrams.load(source.target)


def reads_words(source: Source) -> bool:
    """Whether every token of this source is a whole word, and what it does not know is one class."""
    if source.scheme == NGRAM:
        return NgramModel.objects.filter(name=source.target, unit="word").exists()
    return source.scheme in (ARPA, NETWORK)


def unknown_words(source: Source, texts: Sequence[Text]) -> Sequence[np.ndarray] | None:
    """Of each text which of its words an n-gram model or a network of words reads as one class of everything unknown;
    None for other models, and for an ARPA file, which may be too large for a page."""
    if source.scheme == NETWORK:
        return word_networks.vocabulary(source.target).unknown_tokens(texts)
    if source.scheme == NGRAM and reads_words(source):
        return ngrams.load(source.target).unknown_tokens(texts)
    return None


class _FileReader:
    """Readings that somebody has, in a file. Another file is another source, with a tokenizer of its own."""

    cutter = ""  # It names no ids.
    vocabulary_size = None

    def __init__(self, path: str, texts: Sequence[Text]) -> None:
        if not Path(path).is_file():
            raise HunchError(f"{path}: file: cannot be read (it is no file here): check the path")
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - hashlib wants the open file
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            raise HunchError(f"{path}: file: cannot be read ({exc.strerror}): check the path") from exc
        self.source = hashlib.sha256(f"file {content}".encode()).hexdigest()
        self._found = text_files.token_file(path, texts, tokenizer=self.source)
        self._number = {text.id: number for number, text in enumerate(texts)}

    def each(
        self, texts: Sequence[Text], *, detail: Detail = NO_DETAIL, progress: object = None
    ) -> Iterator[tuple[int, TextReading]]:
        if detail.samples or detail.boundary or detail.among is not None:
            raise PredictorError("samples: a file lists its likeliest tokens alone; leave them out.")
        for place, text in enumerate(texts):
            reading = self._found[self._number[text.id]].reading
            if detail.top and reading.distributions is None:
                raise PredictorError(
                    "top: the file does not list what was expected; give it the column listed, with the likeliest "
                    "tokens at each place."
                )
            yield place, reading

    def unknown_tokens(self, texts: Sequence[Text]) -> list[np.ndarray] | None:
        """What the file's column `unknown` says; None where it has none."""
        marks = [self._found[self._number[text.id]].unknown for text in texts]
        known = [mark for mark in marks if mark is not None]
        return known if len(known) == len(marks) else None


def _stored(name: str, source: str, hashes: Sequence[str]) -> dict[str, TextReading]:
    readings: dict[str, TextReading] = {}
    rows = Reading.objects.filter(language_model__name=name, source_sha256=source, code_version=READING_VERSION)
    for start in range(0, len(hashes), HASHES_PER_QUERY):
        for row in rows.filter(text_sha256__in=hashes[start : start + HASHES_PER_QUERY]):
            readings[row.text_sha256] = TextReading(row.token_array, row.tokenizer_sha256, row.reads_end)
    return readings


class _Store:
    """Writes readings in parts, as they come."""

    def __init__(
        self, source: Source, source_sha256: str, hashes: Sequence[str], texts: Sequence[Text], *, keeps: bool
    ) -> None:
        self._source, self._source_sha256 = source, source_sha256
        self._hashes, self._texts = hashes, texts
        self._keeps = keeps
        self._model: LanguageModel | None = None
        self._pending: list[Reading] = []
        self._flushed = time.monotonic()
        self.written = 0

    def add(self, number: int, reading: TextReading) -> None:
        if not self._keeps:
            return
        if self._model is None:
            self._model = LanguageModel.named(self._source.name)
        content = io.BytesIO()
        np.save(content, reading.tokens, allow_pickle=False)
        self._pending.append(
            Reading(
                language_model=self._model,
                text_sha256=self._hashes[number],
                characters=len(self._texts[number].text),
                source=str(self._source),
                source_sha256=self._source_sha256,
                tokenizer_sha256=reading.tokenizer,
                token_count=len(reading.tokens),
                reads_end=reading.reads_end,
                tokens=content.getvalue(),
                code_version=READING_VERSION,
            )
        )
        if len(self._pending) >= PART or time.monotonic() - self._flushed > PART_SECONDS:
            self.flush()

    def flush(self) -> None:
        part, self._pending = self._pending, []
        if part:
            with transaction.atomic():
                Reading.objects.bulk_create(part, ignore_conflicts=True)
        self.written += len(part)
        self._flushed = time.monotonic()


@transaction.atomic
def note_bank(bank: Bank) -> None:
    """Store the hash of every question's text, so that the readings of a bank are found, by those who see the bank."""
    missing = bank.questions.filter(text_hash=None).order_by("position").only("text", "position", "bank_id")
    rows = [
        QuestionText(question=question, text_sha256=text_hash(question.plain))
        for question in missing.iterator(chunk_size=BATCH)
    ]
    QuestionText.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)


def same_texts(train: Sequence[Text], test: Sequence[Text]) -> list[str]:
    """The names of the test texts that are among the training texts, word for word."""
    learnt = {text.text for text in train}
    return [text.id for text in test if text.text in learnt]
