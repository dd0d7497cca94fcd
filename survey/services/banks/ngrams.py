"""N-gram models, trained from texts and stored under a name, their files by their hashes."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import IntegrityError, transaction

from predictors import readings
from predictors.errors import PredictorError
from predictors.readings.ngrams import NgramReader, OrderLine, units_of
from predictors.readings.tokenizing import PairTokenizer
from survey.exceptions import HunchError, NotFound
from survey.models import NgramModel, WordNetwork
from survey.services.base import files
from survey.services.base.auditing import record
from survey.services.base.hashing import digest

from .importing import BANK_NAME

TEST_SHARE = 10  # Every tenth text tests, or the last tenth of the only one.


@dataclass(frozen=True)
class Trained:
    """What was stored, and how each order does on the training texts and on those that were kept from it."""

    row: NgramModel
    lines: Sequence[OrderLine]
    train: Sequence[str]
    test: Sequence[str]
    in_both: int


def train(
    texts: Sequence[readings.Text],
    *,
    name: str,
    order: int,
    unit: str,
    smoothing: str,
    test: Sequence[readings.Text] = (),
    cut_by: PairTokenizer | None = None,
) -> Trained:
    """Train a model and store it under a name that is free.

    Without test texts a tenth is kept from the training: every tenth text, or the last tenth of the units of the only
    one.

    Args:
        cut_by: what makes the units of a model over tokens.

    Raises:
        HunchError: the name cannot be used, a setting is wrong, or there is too little text; nothing is written.
    """
    check_free(NgramModel, name)
    learnt, test_texts = [text.text for text in texts], [test_text.text for test_text in test]
    if not test_texts:
        learnt, test_texts = without_a_tenth(learnt, unit, cut_by)
    try:
        model = NgramReader.train(learnt, order=order, unit=unit, smoothing=smoothing, cut_by=cut_by)
        lines = model.overfitting(learnt, test_texts)
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
    seen = digest([order, unit, smoothing, learnt, *([] if cut_by is None else [cut_by.sha256])])
    row = _store(model, name, texts=len(learnt), input_sha256=seen)
    both = set(learnt)
    return Trained(row, lines, learnt, test_texts, sum(text in both for text in test_texts))


def from_counts(counts: Mapping[str, int], *, name: str) -> NgramModel:
    """Store a unigram of words from their counts, under a name that is free: how frequent words are, for studies.

    Raises:
        HunchError: the name cannot be used, or the counts cannot; nothing is written.
    """
    check_free(NgramModel, name)
    try:
        model = NgramReader.from_counts(counts)
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
    return _store(model, name, texts=0, input_sha256=digest([1, "counts", sorted(counts.items())]))


def _store(model: NgramReader, name: str, *, texts: int, input_sha256: str) -> NgramModel:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder))
        stored = files.store_folder(Path(folder))
    try:
        with transaction.atomic():
            row = NgramModel.objects.create(
                name=name,
                order=model.order,
                unit=model.unit,
                smoothing=model.smoothing,
                vocabulary_size=model.predicted_size,
                states=model.states(),
                train_texts=texts,
                input_sha256=input_sha256,
                files=stored,
            )
            record("train_ngram", row, order=model.order, unit=model.unit, smoothing=model.smoothing, texts=texts)
    except IntegrityError as exc:
        raise taken(name) from exc
    return row


def check_free(kind: type[NgramModel | WordNetwork], name: str) -> None:
    """Refuse what is no name, or the name of another model of this kind.

    Raises:
        HunchError: says which of the two.
    """
    if not BANK_NAME.match(name):
        raise HunchError(f"name: {name!r} is not a name: use up to 80 letters, digits, - and _")
    if kind._default_manager.filter(name=name).exists():
        raise taken(name)


def taken(name: str) -> HunchError:
    """The error where a name is another model's."""
    return HunchError(f"name: there is a model called {name} already; give this one another name")


def without_a_tenth(
    texts: Sequence[str], unit: str, cut_by: PairTokenizer | None = None
) -> tuple[list[str], list[str]]:
    """The texts without a tenth, and this tenth: every tenth text, or the last tenth of the units of the only one; of
    fewer texts none."""
    if len(texts) >= TEST_SHARE:
        test_texts = [text for place, text in enumerate(texts) if place % TEST_SHARE == TEST_SHARE - 1]
        return [text for place, text in enumerate(texts) if place % TEST_SHARE != TEST_SHARE - 1], test_texts
    if len(texts) != 1:
        return list(texts), []
    _units, starts, _ends = units_of(texts[0], unit, cut_by)
    if len(starts) < TEST_SHARE:
        return list(texts), []
    cut = int(starts[len(starts) - len(starts) // TEST_SHARE])
    return [texts[0][:cut]], [texts[0][cut:]]


def load(name: str) -> NgramReader:
    """The model that was stored under a name.

    Raises:
        NotFound: there is none; lists those that exist.
        HunchError: its files are lost, changed, or of another version.
    """
    row = NgramModel.objects.filter(name=name).first()
    if row is None:
        known = ", ".join(NgramModel.objects.values_list("name", flat=True)[:10]) or "none"
        raise NotFound(f"no n-gram model is called {name!r}; there are: {known}; `hunch train_ngram` makes one")
    try:
        return NgramReader.load(files.folder_of(row.files))
    except (ValueError, FileNotFoundError) as exc:
        raise HunchError(f"ngram:{name}: {exc}") from exc
