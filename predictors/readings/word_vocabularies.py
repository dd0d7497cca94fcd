"""The words that a network of `train_lm` knows, and its settings. Needs numpy alone: pages ask without torch which
words a network does not know.

Words are what stands between white space. Those that the training texts hold less often than `min_count` are read as
<unk>, as every other word that is not known; so is "<unk>" itself, as Penn Treebank and WikiText write it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.errors import CheckpointError, PredictorError
from predictors.settings import WordNetworkSettings

from .ngrams import UNKNOWN, units_of
from .text_reading import Text

FORMAT = 1
FILE = "network.json"
UNK, END = 0, 1  # Numbers of what stands before the words; END begins a text too.
_SPECIAL = (UNKNOWN, "END")


class WordVocabulary:
    """`words`: what can come next, by number: <unk>, END and the words."""

    def __init__(self, words: Sequence[str], settings: WordNetworkSettings) -> None:
        self.words, self.settings = list(words), settings
        self._number = {word: place for place, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def of_texts(cls, texts: Sequence[str], settings: WordNetworkSettings) -> WordVocabulary:
        """The words of training texts that occur often enough.

        Raises:
            PredictorError: there are not two of them, so that there is nothing to learn.
        """
        counts = Counter(word for text in texts for word in units_of(text, "word")[0])
        counts.pop(UNKNOWN, None)
        often = sorted(word for word, count in counts.items() if count >= settings.min_count)
        if len(often) < 2:
            raise PredictorError(
                f"texts: hold {len(often)} different words that occur {settings.min_count} times or more, and a "
                "language model needs two (words are what stands between white space); give more text, or a smaller "
                "min_count."
            )
        return cls([*_SPECIAL, *often], settings)

    def numbers(self, text: str) -> NDArray[np.int64]:
        """The words of a text by number, between the END before it and its own."""
        return np.array([END, *(self._number_of(word) for word in units_of(text, "word")[0]), END], dtype=np.int64)

    def _number_of(self, word: str) -> int:
        # "END" in a text is a word like any other, which has the place after the special ones.
        place = self._number.get(word, UNK)
        return place if place > END else UNK

    def unknown_tokens(self, texts: Sequence[Text]) -> list[NDArray[np.bool_]]:
        """As in `TextReader`: words that the network does not know."""
        return [self.numbers(text.text)[1:-1] == UNK for text in texts]

    @property
    def sha256(self) -> str:
        """Of all that decides how a text is cut."""
        return hashlib.sha256(json.dumps(["network", self.words]).encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """What the file says."""
        return {"format": FORMAT, "settings": asdict(self.settings), "words": self.words}

    def save(self, folder: Path) -> None:
        """Write it into an existing folder."""
        (folder / FILE).write_text(json.dumps(self.facts(), ensure_ascii=True), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> WordVocabulary:
        """Read back what `save` wrote.

        Raises:
            CheckpointError: the file is missing or damaged, or was written by another version.
        """
        try:
            facts = json.loads((folder / FILE).read_text(encoding="utf-8"))
            if facts["format"] != FORMAT:
                raise CheckpointError(
                    f"language model: its files have format {facts['format']!r}, this version reads {FORMAT}; train it "
                    "again."
                )
            return cls(facts["words"], WordNetworkSettings(**facts["settings"]))
        except CheckpointError:
            raise
        except (OSError, ValueError, KeyError, TypeError, PredictorError) as exc:
            raise CheckpointError(f"language model: its files cannot be read ({exc}); train it again.") from exc
