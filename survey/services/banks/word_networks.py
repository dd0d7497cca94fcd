"""Networks of words, trained from texts and stored under a name, their files by their hashes."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from predictors import readings
from predictors.errors import PredictorError, Stopped
from predictors.pairs import Progress
from predictors.readings.word_vocabularies import WordVocabulary
from predictors.settings import WordNetworkSettings
from survey.exceptions import HunchError, NotFound
from survey.models import WordNetwork
from survey.services.base import files
from survey.services.base.auditing import record
from survey.services.base.hashing import digest

from .ngrams import check_free, taken, without_a_tenth

if TYPE_CHECKING:
    from predictors.readings.word_networks import Epoch, WordNetworkReader


def train(
    texts: Sequence[readings.Text],
    *,
    name: str,
    settings: WordNetworkSettings,
    held_out: Sequence[readings.Text] = (),
    random_state: int = 0,
    device: str = "auto",
    after_epoch: "Callable[[Epoch], object] | None" = None,
    progress: Progress | None = None,
) -> "tuple[WordNetwork, WordNetworkReader]":
    """Train a network and store it under a name that is free. Without held-out texts a tenth is kept from the training.

    Raises:
        HunchError: the name cannot be used, a setting does not fit, there is too little text, or it was stopped before
            an epoch had ended; nothing is written.
    """
    from predictors.readings.word_networks import WordNetworkReader

    check_free(WordNetwork, name)
    learnt, kept_out = [text.text for text in texts], [text.text for text in held_out]
    if not kept_out:
        learnt, kept_out = without_a_tenth(learnt, "word")
    if not kept_out:
        raise HunchError(
            "held_out: a tenth of the texts says when to stop, and these are too few to keep one; give ten texts, one "
            "text of ten words, or --held-out FILE"
        )
    try:
        network = WordNetworkReader.train(
            learnt,
            held_out=kept_out,
            settings=settings,
            random_state=random_state,
            device=device,
            after_epoch=after_epoch,
            progress=progress,
        )
    except Stopped as exc:
        raise HunchError("stopped before the first epoch had ended; nothing is stored") from exc
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
    seen = digest([asdict(settings), random_state, learnt, kept_out])
    words = sum(len(text.split()) for text in learnt)
    return _store(network, name, words=words, random_state=random_state, input_sha256=seen), network


def _store(network: "WordNetworkReader", name: str, *, words: int, random_state: int, input_sha256: str) -> WordNetwork:
    settings: dict[str, Any] = asdict(network.settings)
    with tempfile.TemporaryDirectory() as folder:
        network.save(Path(folder))
        stored = files.store_folder(Path(folder))
    try:
        with transaction.atomic():
            row = WordNetwork.objects.create(
                name=name,
                kind=network.settings.kind,
                layers=network.settings.layers,
                units=network.settings.units,
                parameters=network.parameters,
                vocabulary_size=network.vocabulary_size,
                train_words=words,
                epochs=len(network.epochs),
                held_out_perplexity=network.best_epoch.held_out,
                settings=settings,
                random_state=random_state,
                input_sha256=input_sha256,
                files=stored,
            )
            record("train_lm", row, words=words, random_state=random_state, **settings)
    except IntegrityError as exc:
        raise taken(name) from exc
    return row


def load(name: str) -> "WordNetworkReader":
    """The network that was stored under a name. Needs torch.

    Raises:
        NotFound: there is none; lists those that exist.
        HunchError: its files are lost, changed, or of another version.
    """
    from predictors.readings.word_networks import WordNetworkReader

    folder = _folder_of(name)
    try:
        return WordNetworkReader.load(folder)
    except PredictorError as exc:
        raise HunchError(f"lm:{name}: {exc}") from exc


def vocabulary(name: str) -> WordVocabulary:
    """The words of the network that was stored under a name; errors as in `load`, without torch."""
    folder = _folder_of(name)
    try:
        return WordVocabulary.load(folder)
    except PredictorError as exc:
        raise HunchError(f"lm:{name}: {exc}") from exc


def _folder_of(name: str) -> Path:
    row = WordNetwork.objects.filter(name=name).first()
    if row is None:
        known = ", ".join(WordNetwork.objects.values_list("name", flat=True)[:10]) or "none"
        raise NotFound(f"no network of words is called {name!r}; there are: {known}; `hunch train_lm` makes one")
    try:
        return files.folder_of(row.files)
    except (ValueError, FileNotFoundError) as exc:
        raise HunchError(f"lm:{name}: {exc}") from exc
