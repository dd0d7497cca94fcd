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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=60_000)
    wanted = parser.parse_args().words
    limit_threads(1)
    from predictors.readings.word_networks import WordNetworkReader

    share = 1 / np.arange(1, VOCABULARY + 1)
    drawn = np.random.default_rng(0).choice(VOCABULARY, size=wanted, p=share / share.sum())
    text = " ".join(f"w{word}" for word in [*range(VOCABULARY), *range(VOCABULARY), *drawn])
    for kind in ("lstm", "transformer"):
        settings = WordNetworkSettings(kind=kind, epochs=1)
        began = process_time()
        network = WordNetworkReader.train([text], held_out=[text[:500]], settings=settings, device="cpu")
        speed = network.epochs[0].words / (process_time() - began)
        print(f"{kind}: {speed:,.0f} words a processor second, {network.parameters:,} weights")


if __name__ == "__main__":
    main()
