"""Contexts are drawn, the generator draws tokens for them, and models read them: before a study, never while it runs.

Tokens that nobody can read are never drawn, and all probabilities are those among the others. So a person, the
generator and the models that are checked are compared over the same tokens.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import transaction

from predictors.errors import PredictorError
from predictors.readings import Detail, Source, Text, TextReader
from predictors.readings.by_characters import chances_of_spans
from predictors.readings.sources import FILE, LOCAL, NGRAM
from predictors.readings.text_reading import Distributions
from survey.exceptions import HunchError, StateRefused
from survey.models import LanguageModel, Question, TokenizerRecord
from survey.services.banks import passages
from survey.services.banks.readings import open_reader, text_hash
from survey.services.base.hashing import digest
from survey.services.base.seeds import derive, generator
from survey.study_file.language_models import LanguageModelConfig

from .models import ContextReading, PreparedContext
from .options import MIN_CONTEXT, ComparisonOptions

VERSION = "1"
MAX_PROBLEMS_IN_MESSAGE = 10  # problems that an error lists
HASHES_PER_QUERY = 500
TOKENS_PER_READING = 1000  # A reading says no more of one place (`predictors.readings.Detail.top`).
MAX_READ_IN_REQUEST = 300
"""Passages that an n-gram model prepares while a study is created. More of them, and models on disk, need the command.
"""

Progress = Callable[[str, int, int], object]
"""Called as progress(what, texts done, texts)."""


@dataclass(frozen=True)
class PreparedComparisons:
    """What `prepare` did: contexts, those that were made now, and how many contexts each model read now."""

    contexts: int
    made: int
    read: Mapping[str, int]


def generator_of(options: ComparisonOptions) -> Source:
    """What draws.

    Raises:
        HunchError: the option names nothing that can draw.
    """
    scheme, colon, target = options.generator.partition(":")
    if not colon or scheme not in (LOCAL, NGRAM) or not target.strip():
        raise HunchError(
            f"instrument.options.generator: {options.generator[:80]!r} names nothing that can draw tokens; write "
            "local:FOLDER (a language model on disk) or ngram:NAME (one that `hunch train_ngram FILE` made of tokens)"
        )
    return Source(scheme, target.strip(), "generator")


def preparation_of(options: ComparisonOptions) -> str:
    """The hash of all settings that decide which comparisons there are."""
    return digest(
        [
            *("token comparison", VERSION, str(generator_of(options)), options.draws, options.context_tokens),
            *(options.contexts_per_text, options.draw_seed),
        ]
    )


def contexts_of(options: ComparisonOptions, questions: Sequence[Question]) -> dict[int, list[PreparedContext]]:
    """The prepared contexts of each question, by its primary key, in the order of their places."""
    of_text: dict[str, list[int]] = {}
    for question in questions:
        of_text.setdefault(text_hash(question.plain), []).append(question.pk)
    contexts: dict[int, list[PreparedContext]] = {}
    for row in _stored(preparation_of(options), list(of_text)):
        for key in of_text[row.text_sha256]:
            contexts.setdefault(key, []).append(row)
    return contexts


def _stored(preparation: str, hashes: Sequence[str]) -> Iterator[PreparedContext]:
    rows = PreparedContext.objects.filter(preparation=preparation).order_by("text_sha256", "position")
    for start in range(0, len(hashes), HASHES_PER_QUERY):
        yield from rows.filter(text_sha256__in=hashes[start : start + HASHES_PER_QUERY]).select_related("tokenizer")


def missing(options: ComparisonOptions, questions: Sequence[Question]) -> list[Question]:
    """Those of the questions that have no context yet."""
    there = contexts_of(options, questions)
    return [question for question in questions if question.pk not in there]


def is_quick(source: str, count: int) -> bool:
    """Whether so many passages are prepared in a few seconds."""
    return source.startswith(f"{NGRAM}:") and count <= MAX_READ_IN_REQUEST


def not_prepared(slug: str, count: int) -> StateRefused:
    return StateRefused(
        f"{slug}: {count} passages have no contexts yet: `hunch token_comparison {slug} --prepare`, or the same with "
        "the "
        "study's file"
    )


def prepare(
    questions: Sequence[Question],
    options: ComparisonOptions,
    models: Sequence[LanguageModelConfig] = (),
    *,
    progress: Progress | None = None,
) -> PreparedComparisons:
    """Draw contexts and tokens of passages, and let models read them. What is stored is passed over.

    Raises:
        HunchError: the generator or a model cannot be used or has changed, a passage is too short or has no token that
            people can read, or the generator gives a true token the probability 0. Lists the passages; nothing of the
            contexts is written then.
    """
    source, preparation = generator_of(options), preparation_of(options)
    texts = {text_hash(question.plain): Text(question.external_id, question.plain) for question in questions}
    stored = {row.text_sha256 for row in _stored(preparation, list(texts))}
    wanted = [(sha256, text) for sha256, text in texts.items() if sha256 not in stored]
    made: list[PreparedContext] = []
    if wanted:
        row = passages.cut_texts(str(source), [text for _sha256, text in wanted])
        reader = _reader(source, row)
        _refuse_changed(preparation, reader, source)
        cut = passages.tokens_of(row, [text for _sha256, text in wanted])
        maker = _Maker(options, row, reader, str(source), preparation)
        try:
            for number, (sha256, text) in enumerate(wanted, start=1):
                made += maker.contexts(sha256, text, cut[sha256])
                if progress is not None:
                    progress("draws", number, len(wanted))
        except PredictorError as exc:
            raise HunchError(f"generator: {exc}") from exc
        maker.raise_if_any()
        with transaction.atomic():
            PreparedContext.objects.bulk_create(made, batch_size=200, ignore_conflicts=True)
    contexts = list(_stored(preparation, list(texts)))
    read = {model.name: _read(model, contexts, texts, progress) for model in models}
    return PreparedComparisons(len(contexts), len(made), read)


def check_reads_tokens(source: Source) -> None:
    """
    Raises:
        HunchError: the model cannot say what it gives to tokens that are in no text.
    """
    if source.scheme == FILE:
        raise HunchError(
            f"models: {source.name}: a file of readings says nothing of the tokens that were drawn beside the true "
            "one; take a model that reads them: endpoint:MODEL, local:FOLDER or ngram:NAME"
        )
    passages.check_lists_text(source)


def _reader(source: Source, row: TokenizerRecord) -> TextReader:
    reader = open_reader(source, [])
    if reader.cutter != row.sha256:
        raise HunchError(
            f"{source.name}: {source} cuts texts otherwise than {row.source}, so that its tokens are not those of the "
            "contexts; take a model with the same tokenizer"
        )
    return reader


def _refuse_changed(preparation: str, reader: TextReader, source: Source) -> None:
    known = PreparedContext.objects.filter(preparation=preparation).order_by("pk").first()
    if known is not None and known.generator_sha256 != reader.source:
        raise HunchError(
            f"generator: {source} has changed since contexts were made with it: its hash was "
            f"{known.generator_sha256[:12]} and is {reader.source[:12]}; put the old files back, or change the option "
            "draw_seed to draw all contexts anew"
        )


class _Maker:
    """Makes the contexts of one text after the other."""

    def __init__(
        self, options: ComparisonOptions, row: TokenizerRecord, reader: TextReader, source: str, preparation: str
    ) -> None:
        self._options, self._row, self._reader = options, row, reader
        self._source, self._preparation = source, preparation
        self._vocabulary = passages.vocabulary_of(row)
        self._readable = readable_ids(row)
        self._problems: list[str] = []

    def contexts(self, sha256: str, text: Text, cut: np.ndarray) -> list[PreparedContext]:
        """None where the text cannot be used; why is kept."""
        options = self._options
        if len(cut) <= MIN_CONTEXT:
            self._problems.append(f"{text.id}: has {len(cut)} tokens, and a context needs {MIN_CONTEXT} and one more")
            return []
        places = np.arange(MIN_CONTEXT, min(options.context_tokens + 1, len(cut)))
        places = places[np.isin(cut["id"][places], self._readable)]
        if not len(places):
            self._problems.append(f"{text.id}: none of its tokens after the {MIN_CONTEXT}th can be read by people")
            return []
        rng = generator(options.draw_seed, "contexts", sha256)
        count = min(options.contexts_per_text, len(places))
        chosen = np.sort(rng.choice(places, size=count, replace=False))
        seed = derive(options.draw_seed, "draws", sha256)
        said = _said(self._reader, text, Detail(samples=options.draws, seed=seed, among=self._readable))
        logs = log_probabilities(self._reader, text, cut["id"][chosen], chosen)
        contexts = []
        for place in chosen.tolist():
            true = int(cut["id"][place])
            mass = _mass(said, place)
            log_given = logs[place].get(true, -math.inf) - mass
            if not math.isfinite(log_given):
                self._problems.append(
                    f"{text.id}: the generator gives its token {place + 1}, "
                    f"{self._vocabulary.text_of(true)!r}, the probability 0; take one that is smoothed, or that knows "
                    "this token"
                )
                continue
            contexts.append(self._context(sha256, place, seed, cut, log_given, said.drawn[place], mass))
        return contexts

    def _context(
        self,
        sha256: str,
        place: int,
        seed: int,
        cut: np.ndarray,
        log_true: float,
        drawn: Sequence[tuple[int, float]],
        mass: float,
    ) -> PreparedContext:
        true = int(cut["id"][place])
        times = Counter(int(token) for token, _log in drawn)
        logs = {int(token): float(log) - mass for token, log in drawn}
        text_of = self._vocabulary.text_of
        return PreparedContext(
            preparation=self._preparation,
            text_sha256=sha256,
            position=place,
            end=int(cut["start"][place]),
            tokenizer=self._row,
            generator=self._source,
            generator_sha256=self._reader.source,
            seed=seed,
            draws=len(drawn),
            same=times[true],
            true_id=true,
            true_text=text_of(true),
            log_g_true=min(log_true, 0.0),
            drawn=[
                [token, text_of(token), count, min(logs[token], 0.0)]
                for token, count in sorted(times.items())
                if token != true
            ],
        )

    def raise_if_any(self) -> None:
        if self._problems:
            more = (
                f"\nand {len(self._problems) - MAX_PROBLEMS_IN_MESSAGE} more"
                if len(self._problems) > MAX_PROBLEMS_IN_MESSAGE
                else ""
            )
            raise HunchError("\n".join(self._problems[:MAX_PROBLEMS_IN_MESSAGE]) + more)


def readable_ids(row: TokenizerRecord) -> np.ndarray:
    """The ids of the tokens that people can read, rising."""
    ids = np.arange(row.size, dtype=np.int64)
    readable: np.ndarray = ids[passages.vocabulary_of(row).typable(ids)]
    return readable


def _said(reader: TextReader, text: Text, detail: Detail) -> Distributions:
    (_place, reading) = next(iter(reader.each([text], detail=detail)))
    if reading.distributions is None:
        raise PredictorError("it does not say what it expected at each token.")
    return reading.distributions


def _mass(said: Distributions, place: int) -> float:
    return float(said.mass[place]) if said.mass is not None else math.nan


def log_probabilities(
    reader: TextReader, text: Text, tokens: np.ndarray, places: Iterable[int]
) -> Sequence[Mapping[int, float]]:
    """At each of these places of a text the natural log-probability of each of these tokens, by id; without those that
    the model cannot give. At its other places nothing need stand."""
    looked_at = frozenset(map(int, places))
    wanted = np.unique(np.asarray(tokens, dtype=np.int64))
    logs: list[dict[int, float]] = []
    for start in range(0, len(wanted), TOKENS_PER_READING):
        part = wanted[start : start + TOKENS_PER_READING]
        said = _said(reader, text, Detail(top=len(part), among=part, places=looked_at))
        logs = logs or [{} for _place in said.top]
        for known, ids, top in zip(logs, said.top_ids, said.top, strict=True):
            known.update(
                {int(token): float(log) for token, (_text, log) in zip(ids, top, strict=True) if math.isfinite(log)}
            )
    return logs


Logs = list[float | None]


def _logs_by_ids(reader: TextReader, text: Text, contexts: Sequence[PreparedContext]) -> list[Logs]:
    """Of each context of a text the natural log-probability of its true token and of the drawn ones, among all tokens
    that people can read; None where the model cannot give one."""
    places = frozenset(context.position for context in contexts)
    mass = _said(reader, text, Detail(among=readable_ids(contexts[0].tokenizer), places=places))
    ids_of = [[context.true_id, *(other.id for other in context.others)] for context in contexts]
    # All contexts of a text in one reading: a model on disk takes a second for each.
    logs_at = log_probabilities(reader, text, np.concatenate(ids_of), places)
    return [
        [
            logs_at[context.position][token] - _mass(mass, context.position)
            if token in logs_at[context.position]
            else None
            for token in ids
        ]
        for context, ids in zip(contexts, ids_of, strict=True)
    ]


def _logs_by_characters(
    reader: TextReader, detail: Detail, text: Text, contexts: Sequence[PreparedContext]
) -> list[Logs]:
    """The same of a model that cuts texts otherwise: it reads each context with each token after it. Chances are those
    that its tokens surely give to the characters of the token (`predictors.readings.by_characters`)."""
    first = passages.first_token(passages.open_tokenizer(contexts[0].tokenizer.source))
    read_texts, spans = [], []
    for context in contexts:
        before = text.text[: context.end]
        for word in (context.true_text, *(other.text for other in context.others)):
            read_texts.append(Text(f"{text.id}, token {context.position + 1}", before + word))
            spans.append((context.end, context.end + len(word)))
    logs: Logs = [None] * len(spans)
    for number, reading in reader.each(read_texts, detail=detail):
        (chance,) = chances_of_spans(reading, read_texts[number].text, [spans[number]], first_token=first)
        logs[number] = chance.least if math.isfinite(chance.least) else None
    ends = np.cumsum([1 + len(context.others) for context in contexts]).tolist()
    return [logs[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _read(
    model: LanguageModelConfig,
    contexts: Sequence[PreparedContext],
    texts: Mapping[str, Text],
    progress: Progress | None,
) -> int:
    """Let a model read the contexts that it has not read yet."""
    source = passages.source_of(model)
    row = contexts[0].tokenizer
    check_reads_tokens(source)
    reader = open_reader(source, [])
    known = _readings(model, contexts, reader.source)
    wanted: dict[str, list[PreparedContext]] = {}
    for context in contexts:
        if context.pk not in known:
            wanted.setdefault(context.text_sha256, []).append(context)
    if not wanted:
        return 0
    language_model = LanguageModel.named(model.name)
    names_ids = reader.cutter == row.sha256
    pending: list[ContextReading] = []
    try:
        for number, (sha256, own) in enumerate(wanted.items(), start=1):
            if names_ids:
                logs = _logs_by_ids(reader, texts[sha256], own)
            else:
                logs = _logs_by_characters(reader, passages.listed_detail(source), texts[sha256], own)
            for context, values in zip(own, logs, strict=True):
                pending.append(
                    ContextReading(
                        context=context,
                        language_model=language_model,
                        source=str(source),
                        source_sha256=reader.source,
                        log_true=values[0],
                        log_others=values[1:],
                    )
                )
            if progress is not None:
                progress(model.name, number, len(wanted))
    except PredictorError as exc:
        raise HunchError(f"models: {model.name}: {exc}; what it had read is stored, run it again to go on") from exc
    finally:
        ContextReading.objects.bulk_create(pending, batch_size=200, ignore_conflicts=True)
    return len(pending)


def readings_of(
    model: LanguageModelConfig, contexts: Sequence[PreparedContext]
) -> dict[int, tuple[float, dict[int, float]]]:
    """By the primary key of a context what a model of the study file gives to the true token and to the others by id;
    NaN where it cannot. Of several versions of a model only the newest counts."""
    newest = (
        ContextReading.objects.filter(
            language_model__name=model.name,
            source=str(passages.source_of(model)),
            context__in=[context.pk for context in contexts],
        )
        .order_by("-pk")
        .values_list("source_sha256", flat=True)
        .first()
    )
    if newest is None:
        return {}
    readings = {}
    rows = _readings(model, contexts, newest)
    for context in contexts:
        row = rows.get(context.pk)
        if row is not None:
            logs = [math.nan if log is None else float(log) for log in row.log_others]
            true = math.nan if row.log_true is None else row.log_true
            readings[context.pk] = (true, {other.id: log for other, log in zip(context.others, logs, strict=True)})
    return readings


def _readings(
    model: LanguageModelConfig, contexts: Sequence[PreparedContext], source_sha256: str
) -> dict[int, ContextReading]:
    keys = [context.pk for context in contexts]
    readings: dict[int, ContextReading] = {}
    for start in range(0, len(keys), HASHES_PER_QUERY):
        rows = ContextReading.objects.filter(
            language_model__name=model.name,
            source=str(passages.source_of(model)),
            source_sha256=source_sha256,
            context__in=keys[start : start + HASHES_PER_QUERY],
        )
        readings.update({row.context_id: row for row in rows})
    return readings
