"""How many words a second of a processor networks of words learn from, with the defaults of `hunch train_lm`.

A made-up text of independent words from a vocabulary of 10,000, as frequent as 1 / rank: what is learnt does not change
the speed. One thread, so that processor seconds are those of one core, and a busy machine changes little.

    python benchmarks/word_network_speed.py [--words 60000]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from predictors.settings import WordNetworkSettings
from predictors.training import limit_threads

VOCABULARY = 10_000
LINE = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=60_000)
    wanted = parser.parse_args().words
    limit_threads(1)
    from predictors.readings.word_networks import WordNetworkReader

    share = 1 / np.arange(1, VOCABULARY + 1)
    drawn = np.random.default_rng(0).choice(VOCABULARY, size=wanted, p=share / share.sum())
    words = [f"w{word}" for word in [*range(VOCABULARY), *range(VOCABULARY), *drawn]]
    lstm, transformer = WordNetworkSettings(kind="lstm", epochs=1), WordNetworkSettings(kind="transformer", epochs=1)
    for settings, length in ((lstm, len(words)), (lstm, LINE), (transformer, len(words))):
        texts = [" ".join(words[start : start + length]) for start in range(0, len(words), length)]
        began = process_time()
        network = WordNetworkReader.train(texts, held_out=[texts[0][:500]], settings=settings, device="cpu")
        speed = network.epochs[0].words / (process_time() - began)
        of_lines = f" of lines of {length} words" if length == LINE else ""
        print(f"{settings.kind}{of_lines}: {speed:,.0f} words a processor second, {network.parameters:,} weights")


if __name__ == "__main__":
    main()
