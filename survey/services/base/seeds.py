"""Where randomness comes from: every draw has a separate seed, which is derived from the study's seed and stored."""

import hashlib

import numpy as np


def derive(seed: int, *names: str | int) -> int:
    """A seed below 2**53 for the draw with that name. The same on every machine; other names give unrelated seeds."""
    text = ":".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11


def generator(seed: int, *names: str | int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(derive(seed, *names)))
