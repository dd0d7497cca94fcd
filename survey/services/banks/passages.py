"""Passages: their tokens by one tokenizer, and what language models expect at each. All of it is worked out before a
study and stored; pages and plans read it from there.

A tokenizer is named by its source: `pairs:NAME` is one that `train_tokenizer` made, `local:FOLDER` that of a model on
disk, `ngram:NAME` that of an n-gram model over tokens or characters, and `characters` makes every character a token.
"""

import gzip
import io
import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction

from predictors.errors import PredictorError
from predictors.readings import READING_VERSION, Detail, Source, Text, TextReading
from predictors.readings.by_characters import LISTED_BY_SERVERS, MOST_LISTED, chances_of_spans
from predictors.readings.sources import ENDPOINT, LOCAL, NGRAM
from predictors.readings.tokenizing import (
    CharacterTokenizer,
    FileTokenizer,
    PairTokenizer,
    TextTokenizer,
    can_be_typed,
    check_survives,
)
from survey.exceptions import HunchError, NotFound, StateRefused
from survey.input_tables.problems import Problems
from survey.models import Bank, CutText, LanguageModel, Question, TokenExpectation, TokenizerRecord
from survey.models.passage import EXPECTED
from survey.services.base.auditing import record
from survey.services.base.hashing import digest
from survey.study_file.language_models import LanguageModelConfig

from . import ngrams, texts
from .importing import BANK_NAME, import_rows
from .readings import open_reader, reads_words, text_hash

STARTER_PASSAGES = "starter-passages"  # The bank of passages that comes with Hunch.
CHARACTERS = "characters"
PAIRS = "pairs"
SOURCES = "pairs:NAME, local:FOLDER, ngram:NAME or characters"
PART = 100
HASHES_PER_QUERY = 500
# Passages that are cut, and that an n-gram model reads, while a study is created, in a few seconds. More of them, and
# models on disk, need the command.
MAX_CUT_AT_ONCE, MAX_READ_AT_ONCE = 300, 100
LISTED = 12  # tokens that a list of those with a beginning has at most
PROBLEMS_SHOWN = 20

Progress = Callable[[str, int, int], object]
"""Called as progress(what, texts done, texts in all)."""


# Tokenizers


def train_tokenizer(texts: Sequence[Text], *, name: str, size: int) -> TokenizerRecord:
    """Train a byte-pair tokenizer and store it as pairs:NAME, under a name that is free.

    Raises:
        HunchError: the name cannot be used, or the size or the texts do not do; nothing is written.
    """
    if not BANK_NAME.match(name):
        raise HunchError(f"name: {name!r} is not a name: use up to 80 letters, digits, - and _")
    taken = HunchError(f"name: there is a tokenizer called {name} already; give this one another name")
    source = f"{PAIRS}:{name}"
    if TokenizerRecord.objects.filter(source=source).exists():
        raise taken
    try:
        made = PairTokenizer.train([text.text for text in texts], size=size)
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
    try:
        with transaction.atomic():
            row = _store(source, made, content=made.to_json().encode())
            record("train_tokenizer", row, size=row.size, texts=len(texts), sha256=row.sha256)
    except IntegrityError as exc:
        raise taken from exc
    return row


def open_tokenizer(source: str) -> TextTokenizer:
    """What cuts texts, by its source.

    Raises:
        HunchError: there is no such source, or it cannot be read.
    """
    scheme, _colon, target = source.partition(":")
    try:
        if source == CHARACTERS:
            return CharacterTokenizer()
        if scheme == PAIRS and target:
            return _trained(source)
        if scheme == LOCAL and target:
            return FileTokenizer(target)
        if scheme == NGRAM and target:
            return _of_ngram(target)
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
    raise HunchError(f"tokenizer: {source[:80]!r} names no tokenizer; write {SOURCES}")


def _trained(source: str) -> PairTokenizer:
    row = TokenizerRecord.objects.filter(source=source).first()
    if row is None:
        made = TokenizerRecord.objects.filter(source__startswith=f"{PAIRS}:").values_list("source", flat=True)[:10]
        raise NotFound(
            f"tokenizer: there is no {source}; there are: {', '.join(made) or 'none'}; `hunch train_tokenizer` makes "
            "one"
        )
    return PairTokenizer.from_json(bytes(row.content))


def _of_ngram(name: str) -> TextTokenizer:
    model = ngrams.load(name)
    if model.cut_by is not None:
        return model.cut_by
    if model.unit == "character":
        return CharacterTokenizer()
    raise HunchError(f"tokenizer: ngram:{name} is a model of words, not of tokens; train one with --unit token")


def registered(source: str) -> TokenizerRecord:
    """The stored tokenizer of this source.

    Raises:
        StateRefused: nothing was cut by it yet.
    """
    row = TokenizerRecord.objects.filter(source=source).first()
    if row is None:
        raise StateRefused(f"tokenizer: nothing was cut by {source} yet: `hunch prepare_passages --tokenizer {source}`")
    return row


def register(source: str) -> tuple[TokenizerRecord, TextTokenizer]:
    """The tokenizer of this source, and its row, which is made where there is none.

    Raises:
        HunchError: it cannot be read, or it is not the one that this source was when passages were first cut.
    """
    tokenizer = open_tokenizer(source)
    row = TokenizerRecord.objects.filter(source=source).first() or _store(source, tokenizer)
    if row.sha256 != tokenizer.sha256:
        raise HunchError(
            f"tokenizer: {source} has changed since passages were cut by it: its hash was {row.sha256[:12]} and is "
            f"{tokenizer.sha256[:12]}; put the old files back, or name the new tokenizer by another path"
        )
    return row, tokenizer


def _store(source: str, tokenizer: TextTokenizer, *, content: bytes = b"") -> TokenizerRecord:
    words = list(tokenizer.vocabulary)
    row, _made = TokenizerRecord.objects.get_or_create(
        source=source,
        defaults={
            "sha256": tokenizer.sha256,
            "size": len(words),
            "words": zlib.compress(json.dumps(words, ensure_ascii=False).encode()),
            "content": content,
        },
    )
    return row


# Pages show the spaces at a token's beginning as raised dots, and take hard blanks for spaces.
RAISED_DOT = "·"
HARD_BLANKS = ("\u00a0", "\u2009", "\u202f")


def is_unmistakable(token: str) -> bool:
    """Whether pages show a token otherwise than every other one: it has no raised dot where a space is shown as one,
    and no blank that is taken for a space."""
    return not token.lstrip(" ").startswith(RAISED_DOT) and not any(blank in token for blank in HARD_BLANKS)


class Vocabulary:
    """The tokens that people can type: those with a text that no other token has, without control characters, and that
    pages show otherwise than every other one."""

    def __init__(self, words: Sequence[str], *, characters: bool = False) -> None:
        self.is_of_characters = characters
        self._words = words
        id_of: dict[str, int] = {}
        twice = set()
        for place, word in enumerate(words):
            if word in id_of:
                twice.add(word)
            id_of.setdefault(word, place)
        self._id_of = {word: at for word, at in id_of.items() if word not in twice and _can_be_asked(word)}

    def id_of(self, text: str) -> int | None:
        """The id of the token with exactly this text; None where nobody can type one."""
        if self.is_of_characters:
            return ord(text) if len(text) == 1 and _can_be_asked(text) else None
        return self._id_of.get(text)

    def text_of(self, token: int) -> str:
        """The text of a token; empty where there is none."""
        if self.is_of_characters:
            return chr(token) if token >= 0 else ""
        return self._words[token] if 0 <= token < len(self._words) else ""

    def typable(self, tokens: np.ndarray) -> np.ndarray:
        """Which of these ids (n,) people can type: bool (n,)."""
        texts_of = [self.text_of(int(token)) for token in tokens]
        return np.array([bool(text) and self.id_of(text) is not None for text in texts_of], dtype=bool)

    def commonest(self, most: int) -> list[str]:
        """Words of few letters that a tokenizer has learnt early, and so stand often."""
        if self.is_of_characters:
            return list("etaoinshrdlu ")[:most]
        words = [word for word in self._id_of if len(word) > 1 and word[0] == " " and word[1:].isalpha()]
        return (words or list(self._id_of))[:most]

    @cached_property
    def ordered(self) -> list[str]:
        """All of them as lists have them: those that a tokenizer has learnt first, since they stand most often. That is
        known without the texts of a study, so that the order says nothing of them."""
        return sorted(self._id_of, key=self._id_of.__getitem__)

    def beginning_with(self, text: str) -> list[str]:
        """Tokens with this beginning, the most frequent first; none without a beginning."""
        matches = (word for word in self.ordered if word.startswith(text) and word.strip())
        return list(itertools.islice(matches, LISTED)) if text else []

    def beginnings_of(self, text: str) -> list[str]:
        """Tokens with which this text begins, the longest first."""
        beginnings = (text[:end] for end in range(len(text), 0, -1))
        matches = (word for word in beginnings if word.strip() and self.id_of(word) is not None)
        return list(itertools.islice(matches, LISTED))


def _can_be_asked(token: str) -> bool:
    return can_be_typed(token) and is_unmistakable(token)


def vocabulary_of(row: TokenizerRecord) -> Vocabulary:
    """The tokens of a stored tokenizer that people can type; read once in a process."""
    return _vocabulary(row.pk, row.sha256)


@lru_cache(maxsize=4)
def _vocabulary(key: int, sha256: str) -> Vocabulary:
    return Vocabulary(TokenizerRecord.objects.get(pk=key).vocabulary, characters=sha256 == CharacterTokenizer.sha256)


@lru_cache(maxsize=4)
def tokens_as_file(sha256: str) -> bytes:
    """The tokens that people can type, of the tokenizer with this hash: a line each, as `Vocabulary.ordered` has them,
    compressed by gzip. No token holds a line break. Read once in a process.

    Raises:
        NotFound: nothing was cut by a tokenizer with this hash, or its tokens are characters, which need no list.
    """
    row = TokenizerRecord.objects.filter(sha256=sha256).order_by("pk").first()
    if row is None or row.sha256 == CharacterTokenizer.sha256:
        raise NotFound("tokens: there is no list of them at this address")
    return gzip.compress("\n".join(vocabulary_of(row).ordered).encode(), mtime=0)


# Texts


def source_of(model: LanguageModelConfig) -> Source:
    """What reads, of a model of the study file."""
    scheme, _colon, target = model.source.partition(":")
    return Source(scheme, target.strip(), model.name)


def cut_texts(source: str, wanted: Sequence[Text], *, progress: Progress | None = None) -> TokenizerRecord:
    """Cut texts and store their tokens; those that are stored already are passed over.

    Raises:
        HunchError: the tokenizer cannot be used or has changed, or texts do not survive it; nothing is written then.
    """
    row, tokenizer = register(source)
    stored = set(tokens_of(row, wanted))
    made: dict[str, CutText] = {}
    problems = []
    for number, text in enumerate(wanted, start=1):
        sha256 = text_hash(text.text)
        if sha256 not in stored and sha256 not in made:
            try:
                cut = check_survives(tokenizer, text.text)
            except PredictorError as exc:
                problems.append(f"{text.id}: {exc}")
                continue
            made[sha256] = CutText(tokenizer=row, text_sha256=sha256, token_count=len(cut), tokens=_bytes(cut))
        if progress is not None:
            progress("tokens", number, len(wanted))
    if problems:
        more = f"\nand {len(problems) - PROBLEMS_SHOWN} more" if len(problems) > PROBLEMS_SHOWN else ""
        raise HunchError("\n".join(problems[:PROBLEMS_SHOWN]) + more)
    CutText.objects.bulk_create(list(made.values()), batch_size=PART, ignore_conflicts=True)
    return row


def tokens_of(row: TokenizerRecord, wanted: Sequence[Text]) -> dict[str, np.ndarray]:
    """The stored tokens of these texts, by the texts' hashes: (n,) with the fields id, start and end."""
    return {of_text.text_sha256: of_text.token_array for of_text in _of_texts(row.texts.all(), wanted)}


def token_counts(row: TokenizerRecord, wanted: Sequence[Text]) -> dict[str, int]:
    """How many tokens each of these texts has, by the texts' hashes."""
    return {of_text.text_sha256: of_text.token_count for of_text in _of_texts(row.texts.defer("tokens"), wanted)}


def expect(source: Source, row: TokenizerRecord, wanted: Sequence[Text], *, progress: Progress | None = None) -> int:
    """Let a model read texts that are cut already, and store what it expects at each token. Texts that it has read are
    not read again. A model with the same tokenizer names each token by its id; any other one is read by the characters
    that its likeliest tokens cover (`predictors.readings.by_characters`).

    Returns:
        How many texts it read now.

    Raises:
        HunchError: the model cannot be used, or stopped in the middle; what it had read is stored.
    """
    reader = open_reader(source, wanted)
    names_ids = reader.cutter == row.sha256
    if not names_ids:
        check_lists_text(source)
        tokenizer = open_tokenizer(row.source)
    own = TokenExpectation.objects.filter(
        tokenizer=row, source_sha256=reader.source, language_model__name=source.name, code_version=READING_VERSION
    )
    known = {of_text.text_sha256 for of_text in _of_texts(own.defer("values"), wanted)}
    missing = list({text_hash(text.text): text for text in wanted if text_hash(text.text) not in known}.items())
    if not missing:
        return 0
    cut = tokens_of(row, [text for _sha256, text in missing])
    model = LanguageModel.named(source.name)
    pending: list[TokenExpectation] = []
    done = 0
    try:
        detail = Detail(top=1) if names_ids else listed_detail(source)
        for place, reading in reader.each([text for _sha256, text in missing], detail=detail):
            sha256, text = missing[place]
            if sha256 not in cut:
                raise HunchError(f"{text.id}: has no tokens yet: `hunch prepare_passages --tokenizer {row.source}`")
            pending.append(
                TokenExpectation(
                    language_model=model,
                    tokenizer=row,
                    text_sha256=sha256,
                    source=str(source),
                    source_sha256=reader.source,
                    code_version=READING_VERSION,
                    values=_bytes(
                        _expected(reading, cut[sha256], source.name, text.id)
                        if names_ids
                        else _expected_by_characters(reading, text.text, cut[sha256], tokenizer, vocabulary_of(row))
                    ),
                )
            )
            done += 1
            if len(pending) >= PART:
                TokenExpectation.objects.bulk_create(pending, ignore_conflicts=True)
                pending = []
            if progress is not None:
                progress(source.name, done, len(missing))
    except PredictorError as exc:
        stored = f"; {done} passages were read and are stored, run it again to go on" if done else ""
        raise HunchError(f"models: {source.name}: {exc}{stored}") from exc
    finally:
        TokenExpectation.objects.bulk_create(pending, ignore_conflicts=True)
    return done


def _expected(reading: TextReading, cut: np.ndarray, model: str, text: str) -> np.ndarray:
    own, said = reading.of_text, reading.distributions
    if len(own) != len(cut) or said is None:
        raise HunchError(f"models: {model}: reads {len(own)} tokens in {text}, which has {len(cut)}")
    expected = np.empty(len(cut), dtype=EXPECTED)
    expected["logprob"] = expected["logprob_most"] = own["logprob"]
    expected["sure"] = True
    expected["entropy"] = said.entropy[: len(cut)]
    expected["top_id"] = [ids[0] if len(ids) else -1 for ids in said.top_ids[: len(cut)]]
    expected["top_logprob"] = [top[0][1] if len(top) else np.nan for top in said.top[: len(cut)]]
    return expected


def check_lists_text(source: Source) -> None:
    """
    Raises:
        HunchError: the model reads whole words, which say nothing of the characters between and within them.
    """
    if reads_words(source):
        raise HunchError(
            f"models: {source.name}: reads whole words, and people guess parts of texts with their spaces; take an "
            "n-gram model of tokens or characters (`hunch train_ngram`), a model on disk or one behind a server"
        )


def listed_detail(source: Source) -> Detail:
    """So many of its likeliest tokens is a model asked for that names tokens by what they spell."""
    return Detail(top=LISTED_BY_SERVERS if source.scheme == ENDPOINT else MOST_LISTED)


def first_token(tokenizer: TextTokenizer) -> Callable[[str], str]:
    """What gives the first token of a text."""

    @lru_cache(maxsize=10_000)
    def first(text: str) -> str:
        cut = tokenizer.cut(text)
        return text[: cut["end"][0]] if len(cut) else text

    return first


def _expected_by_characters(
    reading: TextReading, text: str, cut: np.ndarray, tokenizer: TextTokenizer, words: Vocabulary
) -> np.ndarray:
    spans = list(zip(cut["start"].tolist(), cut["end"].tolist(), strict=True))
    chances = chances_of_spans(reading, text, spans, first_token=first_token(tokenizer))
    expected = np.empty(len(cut), dtype=EXPECTED)
    expected["logprob"] = [chance.least for chance in chances]
    expected["logprob_most"] = [chance.most for chance in chances]
    expected["entropy"] = expected["top_logprob"] = np.nan
    expected["sure"] = [chance.is_sure for chance in chances]
    for place, chance in enumerate(chances):
        other = words.id_of(chance.likeliest) if chance.likeliest else None
        expected["top_id"][place] = cut["id"][place] if chance.is_right else -1 if other is None else other
    return expected


def unread_by(source: Source, row: TokenizerRecord, wanted: Sequence[Text]) -> list[Text]:
    """Those of these texts for which nothing is stored of what a model expects, by the newest version of it."""
    own = _newest_of(source, row)
    known = set() if own is None else {of_text.text_sha256 for of_text in _of_texts(own.defer("values"), wanted)}
    return [text for text in wanted if text_hash(text.text) not in known]


def is_cut_quickly(tokenizer: str, count: int) -> bool:
    """Whether so many passages are cut in a few seconds by the tokenizer with this source."""
    return count <= MAX_CUT_AT_ONCE and (tokenizer == CHARACTERS or tokenizer.partition(":")[0] in (PAIRS, NGRAM))


def is_read_quickly(model: str, count: int) -> bool:
    """Whether so many passages are read in a few seconds by the model with this source."""
    return count <= MAX_READ_AT_ONCE and model.partition(":")[0] == NGRAM


def expectations_of(source: Source, row: TokenizerRecord, wanted: Sequence[Text]) -> dict[str, np.ndarray]:
    """What a model expects at each token of these texts, by the texts' hashes: (n,) of `EXPECTED`. Of several versions
    of a model only the newest counts."""
    own = _newest_of(source, row)
    return {} if own is None else {of_text.text_sha256: of_text.token_array for of_text in _of_texts(own, wanted)}


def _newest_of(source: Source, row: TokenizerRecord) -> Any:
    """What is stored of the newest version of a model; None where nothing is."""
    own = TokenExpectation.objects.filter(
        tokenizer=row, source=str(source), language_model__name=source.name, code_version=READING_VERSION
    )
    newest = own.order_by("-pk").values_list("source_sha256", flat=True).first()
    return None if newest is None else own.filter(source_sha256=newest)


def _of_texts(rows: Any, wanted: Sequence[Text]) -> Iterator[Any]:
    hashes = list({text_hash(text.text) for text in wanted})
    for start in range(0, len(hashes), HASHES_PER_QUERY):
        yield from rows.filter(text_sha256__in=hashes[start : start + HASHES_PER_QUERY])


def _bytes(values: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, values, allow_pickle=False)
    return content.getvalue()


# Banks


def texts_of(questions: Sequence[Question]) -> list[Text]:
    """The passages of questions, by their ids."""
    return [Text(question.external_id, question.plain) for question in questions]


@dataclass(frozen=True)
class PreparedPassages:
    """What `prepare` did: passages, their tokens, and how many passages each model read now."""

    tokenizer: TokenizerRecord
    passages: int
    tokens: int
    read: Mapping[str, int]


def prepare(
    questions: Sequence[Question],
    *,
    tokenizer: str,
    models: Sequence[Source] = (),
    progress: Progress | None = None,
) -> PreparedPassages:
    """Cut passages into tokens, and let models read them. What is stored is passed over.

    Raises:
        HunchError: as in `cut_texts` and `expect`.
    """
    wanted = texts_of(questions)
    row = cut_texts(tokenizer, wanted, progress=progress)
    read = {model.name: expect(model, row, wanted, progress=progress) for model in models}
    return PreparedPassages(row, len(wanted), sum(token_counts(row, wanted).values()), read)


def load_starter_passages() -> Bank:
    """The passages that come with Hunch; imported only if no version of the bank holds the same ones."""
    path = Path(__file__).with_name("passages.csv")
    problems = Problems()
    rows = list(texts.read(path, problems, format="passages"))
    problems.raise_if_any()
    known = Bank.objects.filter(name=STARTER_PASSAGES, sha256=digest([row.content for row in rows])).first()
    return known or import_rows(rows, problems, bank_name=STARTER_PASSAGES, source_file=path.name)


STARTER_TOKENIZER = f"{PAIRS}:starter"
STARTER_SIZE = 2000


def load_starter_tokenizer(learnt: Sequence[Text]) -> TokenizerRecord:
    """The tokenizer pairs:starter, which is trained on these texts unless it is stored."""
    known = TokenizerRecord.objects.filter(source=STARTER_TOKENIZER).first()
    return known or train_tokenizer(learnt, name=STARTER_TOKENIZER.partition(":")[2], size=STARTER_SIZE)
